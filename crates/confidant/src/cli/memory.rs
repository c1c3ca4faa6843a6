//! `confidant memory`: the tools of `confidant mcp` for people and scripts.
//!
//! `--json` prints exactly what the tool of the same name returns.

mod estimate;
mod import;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use confidant_engine::Actor;
use confidant_memory::api::{DryRun, Forget, Forgotten, Hits, QueryRequest, Raw, StoreRequest, Stored};
use confidant_memory::{Card, Error, OwnMemory};
use serde_json::{Map, Value};

use super::output::{self, Paint, clean, counted, note};
use super::{JsonArg, Outcome, OwnerArgs, with_engine};
use crate::config::Loaded;
use crate::open::Purpose;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant memory store demo-001 --session session.json --tag production --dry-run
  confidant memory store demo-001 --session session.json --tag production
  confidant memory query JWT auth bug --tag production
  confidant memory retrieve cascade://…
  confidant memory import --dry-run
  confidant memory forget --session-id demo-001 --dry-run

For agents: claude mcp add confidant -- confidant mcp")]
pub(super) enum MemoryCommand {
    /// Redact a session, derive its card, seal and store it
    Store(StoreArgs),
    /// Search memories; local, without any network
    Query(QueryArgs),
    /// List memories, the newest first
    List(ListArgs),
    /// Fetch, check and open a memory
    Retrieve(RetrieveArgs),
    /// Store what coding agents kept of their sessions
    Import(import::ImportArgs),
    /// Say what keeping an artifact costs
    Estimate(estimate::EstimateArgs),
    /// Destroy a memory with its key, or all of a session
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A session is JSON: {\"summary\": \"…\", \"messages\": [{\"role\": \"user\", \"content\": \"…\"}], \"tool_name\", \"output\",
\"error_message\", \"success\", \"timestamp\", \"tags\"}, any of them. Only its card is stored, unless --raw says otherwise.

Examples:
  confidant memory store demo-001 --session session.json --dry-run --json | jq -r .preview.sha256
  confidant memory store demo-001 --session session.json --expect-sha256 SHA256
  jq . session.json | confidant memory store demo-001 --session - --tag production --tag bug-fix
  confidant memory store demo-001 --session session.json --raw --i-understand-the-risk

Exit status 2 and a list of rules and places: a private key, an Authorization header or a bearer token is in it.")]
pub(super) struct StoreArgs {
    /// The session's id
    session_id: String,
    /// The session as JSON; - reads stdin. Without it, it is looked for by its id
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    /// A tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// More to keep with it, redacted like the rest; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    #[command(flatten)]
    mode: ModeArg,
    /// Show exactly what would be stored, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Store only if the payload has this hash, which a dry run shows
    #[arg(long, value_name = "SHA256")]
    expect_sha256: Option<String>,
    /// Store the redacted transcript too; asks on a terminal
    #[arg(long, requires = "i_understand_the_risk")]
    raw: bool,
    /// That redaction may have missed something
    #[arg(long, requires = "raw")]
    i_understand_the_risk: bool,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct QueryArgs {
    /// What to look for; any of the words may match
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    #[command(flatten)]
    page: PageArgs,
    /// The most to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    limit: usize,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// The most to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
struct PageArgs {
    /// Only memories that have this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only sessions not before this moment, such as 2025-12-21 or 2025-12-21T12:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    since: Option<i64>,
    /// Only sessions before this moment
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    until: Option<i64>,
    /// After so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
}

#[derive(Debug, Args)]
pub(super) struct RetrieveArgs {
    /// The memory, as query and list print it
    cascade_uri: String,
    #[command(flatten)]
    mode: ModeArg,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The memory, as query and list print it
    #[arg(required_unless_present = "session_id", conflicts_with = "session_id")]
    cascade_uri: Option<String>,
    /// All that was stored of this session
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Say what would be forgotten, and forget nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
struct ModeArg {
    /// Where artifacts are kept [default: memory.mode]
    #[arg(long, value_enum)]
    mode: Option<Mode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    // Without help of their own, which would make all of the help long.
    Mock,
    Live,
}

impl ModeArg {
    fn name(&self) -> Option<&'static str> {
        self.mode.map(|mode| match mode {
            Mode::Mock => "mock",
            Mode::Live => "live",
        })
    }
}

pub(super) async fn run(command: MemoryCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let owner = match &command {
        // Arithmetic needs no memory.
        MemoryCommand::Estimate(args) => return estimate::run(args),
        MemoryCommand::Store(args) => &args.owner,
        MemoryCommand::Query(args) => &args.owner,
        MemoryCommand::List(args) => &args.owner,
        MemoryCommand::Retrieve(args) => &args.owner,
        MemoryCommand::Import(args) => &args.owner,
        MemoryCommand::Forget(args) => &args.owner,
    };
    let owner = owner.owner(loaded)?;
    let purpose = match &command {
        MemoryCommand::Store(_) | MemoryCommand::Import(_) => Purpose::SetUp,
        _ => Purpose::LookAtData,
    };
    with_engine(loaded, purpose, async |opened| {
        let Some(memory) = &opened.memory else {
            note("no memories");
            return Ok(Outcome::NothingFound);
        };
        let own = memory.of(owner, Actor::cli().as_str()).reading_files();
        dispatch(command, &own, loaded).await.or_else(explained)
    })
    .await
}

async fn dispatch(command: MemoryCommand, own: &OwnMemory, loaded: &Loaded) -> anyhow::Result<Outcome> {
    match command {
        MemoryCommand::Store(args) => store(args, own).await,
        MemoryCommand::Query(args) => {
            let request = QueryRequest { query: args.words.join(" "), ..page(args.page, args.limit) };
            hits(own.query(&request).await, &args.output, args.limit)
        }
        MemoryCommand::List(args) => {
            hits(own.list(&page(args.page, args.limit)).await, &args.output, args.limit)
        }
        MemoryCommand::Retrieve(args) => retrieve(&args, own).await,
        MemoryCommand::Import(args) => import::run(args, own, loaded.home.clone()).await,
        MemoryCommand::Estimate(args) => estimate::run(&args),
        MemoryCommand::Forget(args) => forget(args, own).await,
    }
}

/// That there is nothing is no error, and where a secret is must be said.
fn explained(error: anyhow::Error) -> anyhow::Result<Outcome> {
    match error.downcast_ref::<Error>() {
        Some(Error::NotFound { what, hint }) => {
            note(&format!("{what}\nhint: {hint}"));
            Ok(Outcome::NothingFound)
        }
        Some(Error::Blocked { places } | Error::Unclean { places }) => {
            for place in places {
                note(&format!(
                    "  {} at {}",
                    place.rule,
                    if place.path.is_empty() { "/" } else { &place.path }
                ));
            }
            Err(error)
        }
        _ => Err(error),
    }
}

async fn store(args: StoreArgs, own: &OwnMemory) -> anyhow::Result<Outcome> {
    let mut request = StoreRequest {
        session: args.session.as_ref().map(session).transpose()?,
        session_id: args.session_id,
        tags: args.tags,
        metadata: metadata(&args.metadata)?,
        mode: args.mode.name().map(str::to_owned),
        raw: if args.raw { Raw::Acknowledged } else { Raw::No },
        expect_sha256: args.expect_sha256.map(|hash| hash.trim().to_ascii_lowercase()),
    };
    if args.dry_run {
        let shown = own.preview(&request).await?;
        return if args.output.json { json(&shown) } else { preview(&shown) };
    }
    if args.raw && io::stdin().is_terminal() && io::stderr().is_terminal() {
        let shown = own.preview(&request).await?;
        if !agrees(&shown)? {
            note("nothing was stored; without --raw only the card is");
            return Ok(Outcome::NothingFound);
        }
        request.expect_sha256.get_or_insert(shown.preview.sha256);
    }
    let stored = own.store(&request).await?;
    if args.output.json { json(&stored) } else { told(&stored) }
}

/// A session from a file. What is wrong with it is said by place only.
fn session(path: &PathBuf) -> anyhow::Result<Map<String, Value>> {
    let text = output::read(path)?;
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        anyhow!(
            "the session is no JSON (line {}, column {}); hint: `confidant memory store --help` shows its form",
            error.line(),
            error.column()
        )
    })?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(anyhow!(
            "the session is no JSON object; hint: `confidant memory store --help` shows its form"
        )),
    }
}

fn metadata(pairs: &[String]) -> anyhow::Result<Map<String, Value>> {
    let parted = pairs.iter().map(|pair| match pair.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), Value::from(value))),
        _ => Err(anyhow!("a --metadata has no key; hint: write it as KEY=VALUE")),
    });
    parted.collect()
}

/// Shows a person what would be stored besides the card, and asks.
fn agrees(shown: &DryRun) -> anyhow::Result<bool> {
    preview_head(shown, note);
    note("This is the whole redacted transcript. Redaction is careful and not perfect.");
    eprint_prompt("Store it? Type yes: ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

fn eprint_prompt(text: &str) {
    use std::io::Write as _;
    let _ = write!(io::stderr().lock(), "{text}");
    let _ = io::stderr().flush();
}

fn json(value: &impl serde::Serialize) -> anyhow::Result<Outcome> {
    output::json(value).map(|()| Outcome::Done)
}

fn preview_head(shown: &DryRun, mut say: impl FnMut(&str)) {
    let preview = &shown.preview;
    say(&format!("would store  {} ({})", clean(&shown.session_id), preview.artifact_type.as_str()));
    say(&format!("bytes        {}", preview.bytes));
    say(&format!("sha256       {}", preview.sha256));
    say(&format!("redacted     {}", redacted(&shown.redaction)));
}

fn preview(shown: &DryRun) -> anyhow::Result<Outcome> {
    let mut head = String::new();
    preview_head(shown, |line| head.push_str(&format!("{line}\n")));
    output::text(&head)?;
    output::line(&format!("\n{}", serde_json::to_string_pretty(&shown.preview.payload)?))?;
    note("nothing was stored; --expect-sha256 stores exactly this");
    Ok(Outcome::Done)
}

fn told(stored: &Stored) -> anyhow::Result<Outcome> {
    output::line(&stored.cascade_uri)?;
    let paint = Paint::of_stderr();
    let done = if stored.already_stored { "was stored already" } else { "stored" };
    note(&format!("{} {}", paint.green(done), clean(&stored.memory_card.title)));
    note(&format!(
        "{}, {} sealed with {}; redacted: {}",
        stored.artifact_type.as_str(),
        counted(stored.crypto.bytes as u64, "byte"),
        stored.crypto.enc,
        redacted(&stored.redaction)
    ));
    if !stored.indexed {
        note(&paint.yellow("it is not in the index yet; a search finds it later"));
    }
    Ok(Outcome::Done)
}

fn redacted(redaction: &confidant_memory::api::Redaction) -> String {
    let fired = redaction.rules_fired.iter().map(|fired| format!("{} × {}", fired.count, fired.rule));
    let fired: Vec<String> = fired.collect();
    if fired.is_empty() { "nothing".to_owned() } else { fired.join(", ") }
}

fn page(args: PageArgs, limit: usize) -> QueryRequest {
    let PageArgs { tags, since: from, until, offset } = args;
    QueryRequest { query: String::new(), tags, limit, offset, from, until }
}

fn hits(found: confidant_memory::Result<Hits>, output: &JsonArg, limit: usize) -> anyhow::Result<Outcome> {
    let found = found?;
    if output.json {
        output::json(&found)?;
    } else {
        let paint = Paint::of_stdout();
        for hit in &found.hits {
            let tags: Vec<String> = hit.tags.iter().map(|tag| format!("#{}", clean(tag))).collect();
            output::line(&format!("{}  {}", clean(&hit.title), paint.dim(&tags.join(" "))))?;
            if !hit.snippet.is_empty() {
                output::line(&format!("  {}", clean(&hit.snippet)))?;
            }
            let place = format!("  {}  {}  {}", hit.created_at, clean(&hit.cass_session_id), hit.cascade_uri);
            output::line(&paint.dim(&place))?;
        }
    }
    if found.hits.is_empty() {
        note("no memories");
        return Ok(Outcome::NothingFound);
    }
    if found.hits.len() == limit {
        note("there may be more; raise --limit or --offset");
    }
    Ok(Outcome::Done)
}

async fn retrieve(args: &RetrieveArgs, own: &OwnMemory) -> anyhow::Result<Outcome> {
    let found = own.retrieve(&args.cascade_uri, args.mode.name()).await?;
    if args.output.json {
        return json(&found);
    }
    let card = found.artifact.get("memory_card").cloned().unwrap_or_default();
    let card: Card = serde_json::from_value(card)
        .map_err(|_| anyhow!("the artifact has no card that can be shown; hint: use --json"))?;
    show(&card)?;
    if found.artifact.get("raw_session").is_some() {
        note("the redacted transcript is there too; --json prints it");
    }
    Ok(Outcome::Done)
}

fn show(card: &Card) -> anyhow::Result<()> {
    let paint = Paint::of_stdout();
    output::line(&clean(&card.title))?;
    let lists = [
        ("what happened", &card.summary_bullets),
        ("decided", &card.decisions),
        ("to do", &card.todos),
        ("quotes", &card.notable_quotes),
    ];
    for (name, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        output::line(&format!("\n{}", paint.dim(name)))?;
        for line in lines {
            output::line(&format!("  - {}", clean(line)))?;
        }
    }
    for (name, words) in [("entities", &card.entities), ("keywords", &card.keywords)] {
        if !words.is_empty() {
            output::line(&format!("\n{}  {}", paint.dim(name), clean(&words.join(", "))))?;
        }
    }
    Ok(())
}

async fn forget(args: ForgetArgs, own: &OwnMemory) -> anyhow::Result<Outcome> {
    let what = match (args.cascade_uri, args.session_id) {
        (Some(uri), _) => Forget::Uri(uri),
        (None, Some(id)) => Forget::Session(id),
        (None, None) => {
            return Err(anyhow!("it was not said what to forget; hint: give a cascade_uri or --session-id"));
        }
    };
    let gone = own.forget(&what, args.dry_run).await?;
    if args.output.json {
        output::json(&gone)?;
    } else {
        forgotten(&gone)?;
    }
    if gone.forgotten == 0 {
        note("no such memory; `confidant memory list` prints those there are");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

fn forgotten(gone: &Forgotten) -> anyhow::Result<()> {
    for uri in &gone.cascade_uris {
        output::line(uri)?;
    }
    let would = if gone.dry_run { "would be forgotten" } else { "forgotten" };
    let memories = if gone.forgotten == 1 { "memory" } else { "memories" };
    note(&format!("{} {memories} {would}", gone.forgotten));
    if gone.permanent > 0 {
        note(&format!(
            "{} cannot be deleted where it is stored; its key is destroyed",
            counted(gone.permanent, "blob")
        ));
    }
    if gone.pending > 0 {
        note(&format!("{} is still to be deleted; its key is destroyed", counted(gone.pending, "blob")));
    }
    Ok(())
}

fn moment(text: &str) -> Result<i64, &'static str> {
    confidant_memory::when::parse_text(text).ok_or("write it like 2025-12-21 or 2025-12-21T12:00:00Z")
}
