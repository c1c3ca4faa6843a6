//! The command line: a file per command, each from its arguments to what it prints.
//!
//! Data goes to stdout and everything else to stderr. Commands work on the data folder themselves, also while a
//! server runs on it, and stop their engine before they end so that nothing is left unwritten.

mod account;
mod audit;
mod chat;
mod concepts;
mod doctor;
mod hidden;
mod keys;
mod lines;
mod manual;
mod markdown;
#[cfg(feature = "matrix")]
mod matrix;
mod mcp;
mod memory;
mod page;
mod person;
mod redact;
mod remote;
mod serve;
mod session;
mod shared;
mod store;
mod token;
mod tools;
mod turn;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use futures_util::future::LocalBoxFuture;

use crate::config::{self, Environment, Flags, Loaded, LogLevel};
use crate::output;
#[cfg(feature = "fuzzing")]
pub(crate) use audit::parse_receipt;
#[cfg(feature = "fuzzing")]
pub(crate) use memory::hooks::tried as hooks_tried;
use shared::Outcome;

/// Private memory for AI agents.
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
    /// The settings file [default: ./confidant.toml if there is one; `mcp` needs it named]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// The data folder [default: server.data_dir, ./confidant-data]
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Settings")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve agents and OpenAI clients over HTTP
    Serve(serve::ServeArgs),
    /// Talk to the agent, line by line or once
    Chat(Box<chat::ChatArgs>),
    /// List, show, export and delete sessions; approve, deny and cancel their turns
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Export or erase everything about a person
    #[command(subcommand)]
    Person(person::PersonCommand),
    /// Invite people to chats that only they can open; count accounts, restore lost ones
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Serve the page of chats from this machine, so that you need not trust the server's code
    Page(page::PageArgs),
    /// Make, rotate and check master keys
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Copy to another store; import conversations of the older system that Confidant replaces
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
    /// Import, find, approve and export public concepts; show those in scope of a conversation
    #[command(subcommand)]
    Concepts(concepts::ConceptsCommand),
    /// Serve the memory to an MCP client over stdin and stdout
    Mcp(mcp::McpArgs),
    /// List the tools of MCP servers, and call one by hand
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Log in the Matrix account, and make its recovery key; with a password, `serve` logs in by itself
    #[cfg(feature = "matrix")]
    #[command(subcommand)]
    Matrix(matrix::MatrixCommand),
    /// Not in this build
    #[cfg(not(feature = "matrix"))]
    #[command(hide = true, disable_help_flag = true)]
    Matrix {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Replace secrets and personal data in text or JSON; needs no data folder and no key
    Redact(redact::RedactArgs),
    /// Check everything and say how to fix what is wrong
    Doctor(doctor::DoctorArgs),
    /// Print every setting with its default, as a confidant.toml; or those in use, and where each came from
    #[command(after_help = "Examples:\n  confidant config > confidant.toml\n  confidant config --effective")]
    Config(ConfigArgs),
    /// Print a script that completes commands and options in your shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(manual::ManArgs),
}

#[derive(Debug, Args)]
struct ConfigArgs {
    /// Print the settings in use, each with its source: default, file, variable or flag
    #[arg(long)]
    effective: bool,
    /// Print JSON
    #[arg(long, requires = "effective")]
    json: bool,
}

impl Cli {
    /// Whether the command does something about Ctrl-C itself.
    pub(crate) fn hears_interrupts(&self) -> bool {
        use session::SessionCommand::{Approve, Deny};
        matches!(
            self.command,
            Some(
                Command::Serve(_)
                    | Command::Chat(_)
                    | Command::Page(_)
                    | Command::Session(Approve(_) | Deny(_))
            )
        )
    }
}

/// Runs the command.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<Outcome> {
    let Some(command) = cli.command else {
        return output::text(&Cli::command().render_help().to_string()).map(|()| Outcome::Done);
    };
    let listen = if let Command::Serve(args) = &command { args.listen } else { None };
    match command {
        // These work without settings, good or bad.
        Command::Config(ConfigArgs { effective: false, .. }) => {
            return output::text(config::EXAMPLE).map(|()| Outcome::Done);
        }
        Command::Keys(keys::KeysCommand::Generate(args)) => return keys::generate(&args),
        Command::Redact(args) => return redact::run(&args),
        Command::Completions(args) => return manual::completions(&args, Cli::command()),
        Command::Man(args) => return manual::man(&args, Cli::command()),
        Command::Tools(tools::ToolsCommand::Keep(args)) => return tools::keep(&args),
        _ => {}
    }
    // An agent starts it in any project, whose settings could name programs to run.
    let only_named = matches!(command, Command::Mcp(_));
    let flags = Flags { config: cli.place.config, data_dir: cli.place.data_dir, listen, only_named };
    if matches!(&command, Command::Memory(command) if command.is_hooked())
        && memory::hook::leave_the_project(flags.config.as_deref()).is_err()
    {
        // An agent must not stop because of us.
        return Ok(Outcome::Done);
    }
    let loaded = config::load(&flags, &Environment::of_this_process());
    match &command {
        Command::Memory(memory::MemoryCommand::Hook(args)) => return memory::hook::run(args, loaded).await,
        Command::Memory(memory::MemoryCommand::HookWorker) => return memory::hook::work(loaded).await,
        _ => {}
    }
    if let Command::Doctor(args) = &command {
        return doctor::run(args, loaded).await;
    }
    let mut loaded = loaded?;
    if let Command::Config(args) = &command {
        return effective(args, &loaded);
    }
    if matches!(command, Command::Memory(_) | Command::Mcp(_)) {
        loaded = loaded.for_a_person();
    }
    let serves = matches!(command, Command::Serve(_) | Command::Mcp(_));
    let most = if serves { LogLevel::Trace } else { LogLevel::Error };
    crate::logging::start(loaded.config.log, most);
    // Each boxed: one state machine with all of them in it would be as large as all of them.
    let running: LocalBoxFuture<'_, anyhow::Result<Outcome>> = match command {
        Command::Serve(args) => Box::pin(serve::run(args, &loaded)),
        Command::Chat(args) => Box::pin(chat::run(*args, &loaded)),
        Command::Session(command) => Box::pin(session::run(command, &loaded)),
        Command::Person(command) => Box::pin(person::run(command, &loaded)),
        Command::Page(args) => Box::pin(page::run(args, &loaded)),
        Command::Account(command) => Box::pin(account::run(command, &loaded)),
        Command::Keys(command) => Box::pin(keys::run(command, &loaded)),
        Command::Store(command) => Box::pin(store::run(command, &loaded)),
        Command::Audit(command) => Box::pin(audit::run(command, &loaded)),
        Command::Token(command) => Box::pin(token::run(command, &loaded)),
        Command::Memory(command) => Box::pin(memory::run(command, &loaded)),
        Command::Concepts(command) => Box::pin(concepts::run(command, &loaded)),
        Command::Mcp(args) => Box::pin(mcp::run(args, loaded)),
        Command::Tools(command) => Box::pin(tools::run(command, &loaded)),
        #[cfg(feature = "matrix")]
        Command::Matrix(command) => Box::pin(matrix::run(command, &loaded)),
        #[cfg(not(feature = "matrix"))]
        Command::Matrix { .. } => return Err(crate::channels::without_matrix()),
        Command::Doctor(_)
        | Command::Redact(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Man(_) => return Ok(Outcome::Done),
    };
    running.await
}

/// Prints the settings in use, as a file of settings whose comments say where each came from.
fn effective(args: &ConfigArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let effective = loaded.sources.effective();
    if args.json {
        output::json(&effective)?;
    } else {
        output::text(&effective.to_string())?;
    }
    Ok(Outcome::Done)
}

/// Says why a command failed. A reader who went away is not a failure.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    if output::is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    output::error(&output::whole(error));
    Outcome::Faulty.into()
}

const EXAMPLES: &str = "\
Examples:
  confidant serve                            serve on 127.0.0.1:7367
  confidant chat --user alice                talk to the agent
  confidant chat --user alice --room db --once \"What is my name?\"
  confidant session list                     list what is kept
  confidant person erase alice --dry-run     show what would be erased
  confidant memory query JWT auth bug        search earlier sessions
  claude mcp add confidant -- confidant mcp  give an agent its memory
  confidant redact < notes.txt               take out secrets and personal data
  confidant doctor                           check everything

Settings: `confidant config` prints them all. Exit status: 0 done, 1 nothing found, 2 error.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
