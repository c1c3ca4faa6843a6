//! `confidant memory store`: from a session to its memory.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use confidant_memory::OwnMemory;
use confidant_memory::api::{DryRun, Raw, Redaction, StoreRequest, Stored};
use serde_json::{Map, Value};

use super::super::shared::{JsonArg, Outcome, OwnerArgs};
use super::{ModeArg, json};
use crate::output::{self, Paint, clean, counted, note};

#[derive(Debug, Args)]
#[command(after_help = "\
A session is JSON: {\"summary\": \"…\", \"messages\": [{\"role\": \"user\", \"content\": \"…\"}], \"tool_name\", \"output\",
\"error_message\", \"success\", \"timestamp\", \"tags\"}, all optional. Only its card is stored, unless you add --raw.

Examples:
  confidant memory store demo-001 --session session.json --dry-run --json | jq -r .preview.sha256
  confidant memory store demo-001 --session session.json --expect-sha256 SHA256
  jq . session.json | confidant memory store demo-001 --session - --tag production --tag bug-fix
  confidant memory store demo-001 --session session.json --raw --i-understand-the-risk

Exit status 2 with a list of rules and places: it has a private key, an Authorization header or a bearer token.")]
pub(in crate::cli) struct StoreArgs {
    /// The session's id
    session_id: String,
    /// The session as JSON; - reads stdin. If left out, the session is looked up by its id
    #[arg(long, value_name = "FILE")]
    session: Option<PathBuf>,
    /// A tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Extra data to keep with it, redacted like the rest; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    #[command(flatten)]
    mode: ModeArg,
    /// Show exactly what would be stored, and store nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Store only if the payload has this hash, which a dry run shows
    #[arg(long, value_name = "SHA256")]
    expect_sha256: Option<String>,
    /// Store the redacted transcript too; asks on a terminal
    #[arg(long, requires = "i_understand_the_risk")]
    raw: bool,
    /// Accept that redaction may have missed something
    #[arg(long, requires = "raw")]
    i_understand_the_risk: bool,
    #[command(flatten)]
    pub(super) owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) fn request(args: &StoreArgs) -> anyhow::Result<StoreRequest> {
    Ok(StoreRequest {
        session_id: args.session_id.clone(),
        session: args.session.as_deref().map(session).transpose()?,
        tags: args.tags.clone(),
        metadata: metadata(&args.metadata)?,
        mode: args.mode.name().map(str::to_owned),
        raw: if args.raw { Raw::Acknowledged } else { Raw::No },
        expect_sha256: args.expect_sha256.as_ref().map(|hash| hash.trim().to_ascii_lowercase()),
    })
}

pub(super) async fn run(
    args: &StoreArgs,
    mut request: StoreRequest,
    own: &OwnMemory,
) -> anyhow::Result<Outcome> {
    if args.dry_run {
        let shown = own.preview(&request).await?;
        return if args.output.json { json(&shown) } else { preview(&shown) };
    }
    if args.raw && io::stdin().is_terminal() && io::stderr().is_terminal() {
        let shown = own.preview(&request).await?;
        if !agrees(&shown)? {
            note("nothing was stored; without --raw, only the card is stored");
            return Ok(Outcome::NothingFound);
        }
        request.expect_sha256.get_or_insert(shown.preview.sha256);
    }
    let stored = own.store(&request).await?;
    if args.output.json { json(&stored) } else { told(&stored) }
}

/// A session from a file. What is wrong with it is said by place only.
fn session(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = output::read(path)?;
    let value: Value = confidant_redact::read_json(text.as_bytes()).map_err(|error| {
        anyhow!(
            "the session is not valid JSON (line {}, column {}); hint: `confidant memory store --help` shows \
             its format",
            error.line(),
            error.column()
        )
    })?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(anyhow!(
            "the session is not a JSON object; hint: `confidant memory store --help` shows its format"
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
    note("This is the whole redacted transcript. Redaction is careful, but not perfect.");
    prompt("Store it? Type yes: ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

fn prompt(text: &str) {
    let _ = write!(io::stderr().lock(), "{text}");
    let _ = io::stderr().flush();
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
    let done = if stored.already_stored { "was already stored" } else { "stored" };
    note(&format!("{} {}", paint.green(done), clean(&stored.memory_card.title)));
    note(&format!(
        "{}, {} sealed with {}; redacted: {}",
        stored.artifact_type.as_str(),
        counted(stored.crypto.bytes as u64, "byte"),
        stored.crypto.enc,
        redacted(&stored.redaction)
    ));
    if !stored.indexed {
        note(&paint.yellow("it is not in the search index yet; searches will find it later"));
    }
    Ok(Outcome::Done)
}

fn redacted(redaction: &Redaction) -> String {
    let fired = redaction.rules_fired.iter().map(|fired| format!("{} × {}", fired.count, fired.rule));
    let fired: Vec<String> = fired.collect();
    if fired.is_empty() { "nothing".to_owned() } else { fired.join(", ") }
}
