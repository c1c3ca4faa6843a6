//! The command line: a file per command, each from its arguments to what it prints.
//!
//! Data goes to stdout and everything else to stderr. Commands work on the data folder themselves, also while a
//! server runs on it, and stop their engine before they end so that nothing is left unwritten.

mod audit;
mod chat;
mod concepts;
mod doctor;
mod keys;
#[cfg(feature = "matrix")]
mod matrix;
mod mcp;
mod memory;
mod output;
mod person;
mod redact;
mod serve;
mod session;
mod store;
mod token;
mod tools;
mod turn;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use confidant_engine::{Engine, TenantId, UserId};
use confidant_memory::Owner;

use crate::config::{self, Environment, Flags, Loaded, LogLevel};
use crate::daemon;
use crate::keys::Prepared;
use crate::open::{self, Opened, Purpose};

pub(crate) use audit::parse_receipt;
pub(crate) use output::note;
pub(crate) use serve::Role;

/// The private memory of AI agents.
#[derive(Debug, Parser)]
#[command(name = "confidant", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// The settings file [default: ./confidant.toml if there is one]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// The data folder [default: server.data_dir, ./confidant-data]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Settings")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve agents and OpenAI clients over HTTP (the default command)
    Serve(serve::ServeArgs),
    /// Talk to the agent, line by line or once
    Chat(chat::ChatArgs),
    /// List, show, export and delete sessions; decide what their turns wait for, and cancel them
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Export or erase everything of a person
    #[command(subcommand)]
    Person(person::PersonCommand),
    /// Make, rotate and check master keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Copy to another store, and take over the conversations of the first system
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Show and verify the audit log, and receipts of erasures
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Make, list and revoke access tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Remember sessions: store, search, open and forget their cards
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Import, look up, approve and export public concepts; see what is in scope of a conversation
    #[command(subcommand)]
    Concepts(concepts::ConceptsCommand),
    /// Serve the memory to an MCP client over stdin and stdout
    Mcp(mcp::McpArgs),
    /// List the tools of MCP servers, and call one by hand
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Log the Matrix account in, and make its recovery key; `serve` does the first by itself if it has a password
    #[cfg(feature = "matrix")]
    #[command(subcommand)]
    Matrix(matrix::MatrixCommand),
    /// Replace secrets and personal data in text or JSON; needs no data folder and no key
    Redact(redact::RedactArgs),
    /// Check everything and say what to do about what is wrong
    Doctor(doctor::DoctorArgs),
    /// Print every setting with its default, as a confidant.toml
    #[command(after_help = "Example:\n  confidant config > confidant.toml")]
    Config,
}

/// How a command ended, if not by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what it was asked to.
    Done,
    /// There was nothing to do it to.
    NothingFound,
    /// It found faults, and has named them.
    Faulty,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::NothingFound => 1,
            Outcome::Faulty => 2,
        })
    }
}

/// Runs the command.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<Outcome> {
    let command = cli.command.unwrap_or_else(|| Command::Serve(serve::ServeArgs::default()));
    let listen = if let Command::Serve(args) = &command { args.listen } else { None };
    match command {
        // These work without settings, good or bad.
        Command::Config => return output::text(config::EXAMPLE).map(|()| Outcome::Done),
        Command::Keys(keys::KeysCommand::Generate(args)) => return keys::generate(&args),
        Command::Redact(args) => return redact::run(&args),
        Command::Tools(tools::ToolsCommand::Keep(args)) => return tools::keep(&args),
        _ => {}
    }
    let flags = Flags { config: cli.place.config, data_dir: cli.place.data_dir, listen };
    let loaded = config::load(&flags, &Environment::of_this_process());
    if let Command::Doctor(args) = &command {
        return doctor::run(args, loaded).await;
    }
    let mut loaded = loaded?;
    if matches!(command, Command::Memory(_) | Command::Mcp(_)) {
        loaded = loaded.for_a_person();
    }
    let serves = matches!(command, Command::Serve(_) | Command::Mcp(_));
    let most = if serves { LogLevel::Trace } else { LogLevel::Error };
    crate::logging::start(loaded.config.log, most);
    match command {
        Command::Serve(args) => daemon::run(&loaded, args.role, args.listen).await.map(|()| Outcome::Done),
        Command::Chat(args) => chat::run(args, &loaded).await,
        Command::Session(command) => session::run(command, &loaded).await,
        Command::Person(command) => person::run(command, &loaded).await,
        Command::Keys(command) => keys::run(command, &loaded).await,
        Command::Store(command) => store::run(command, &loaded).await,
        Command::Audit(command) => audit::run(command, &loaded).await,
        Command::Token(command) => token::run(command, &loaded).await,
        Command::Memory(command) => memory::run(command, &loaded).await,
        Command::Concepts(command) => concepts::run(command, &loaded).await,
        Command::Mcp(args) => mcp::run(args, loaded).await,
        Command::Tools(command) => tools::run(command, &loaded).await,
        #[cfg(feature = "matrix")]
        Command::Matrix(command) => matrix::run(command, &loaded).await,
        Command::Doctor(_) | Command::Redact(_) | Command::Config => Ok(Outcome::Done),
    }
}

/// Says why a command failed. A reader who went away is not a failure.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if output::is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    output::error(&output::whole(error));
    Outcome::Faulty.into()
}

/// Says, once, that a master key was made.
pub(crate) fn tell_of_new_key(prepared: &Prepared) {
    if let Prepared::Made(path) = prepared {
        note(&format!(
            "made a master key: {}\nback it up apart from the data: without it, nothing opens again",
            path.display()
        ));
    }
}

/// Opens an engine, does something with it, and stops it whatever happened.
async fn with_engine<T>(
    loaded: &Loaded,
    purpose: Purpose,
    work: impl AsyncFnOnce(&Opened) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let opened = open::open(loaded, purpose).await?;
    tell_of_new_key(&opened.prepared);
    if let Some(toolbox) = &opened.toolbox {
        // A server has time to reach its tools; a single turn would be over before.
        toolbox.settle(TOOLS_PATIENCE).await;
    }
    let done = work(&opened).await;
    stop(&opened.engine).await;
    opened.stop_tools().await;
    done
}

const TOOLS_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

async fn stop(engine: &Engine) {
    engine.stop(GRACE).await;
}

#[derive(Debug, Args)]
struct TenantArg {
    /// The tenant whose data it is
    #[arg(long, value_name = "TENANT", default_value = DEFAULT_TENANT)]
    tenant: String,
}

impl TenantArg {
    fn id(&self) -> anyhow::Result<TenantId> {
        Ok(TenantId::new(&self.tenant)?)
    }
}

/// Whose memory it is.
#[derive(Debug, Args)]
struct OwnerArgs {
    /// Whose memory it is [default: your login name, or me]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
}

impl OwnerArgs {
    fn owner(&self, loaded: &Loaded) -> anyhow::Result<Owner> {
        let user = self.user.as_deref().or(loaded.login.as_deref()).unwrap_or("me");
        Ok(Owner { tenant: self.tenant.id()?, user: UserId::new(user)? })
    }
}

#[derive(Debug, Args)]
struct JsonArg {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The tenant of an installation that has only one.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// A command has waited for its own turns already.
const GRACE: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  confidant                                  serve on 127.0.0.1:7367
  confidant chat --user alice                talk to the agent
  confidant chat --user alice --room db --once \"What is my name?\"
  confidant session list                     what is kept
  confidant person erase alice --dry-run     what an erasure would end
  confidant memory query JWT auth bug        what earlier sessions left
  claude mcp add confidant -- confidant mcp  give an agent its memory
  confidant redact < notes.txt               take out secrets and personal data
  confidant doctor                           check everything

Settings: `confidant config` prints them all. Exit status: 0 done, 1 nothing found, 2 error.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
