//! `confidant redact`: text in, text without secrets out.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use confidant_redact::{Count, Finding, Options, Redactor};
use serde::Serialize;
use serde_json::Value;

use super::Outcome;
use super::output::{self, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  confidant redact < notes.txt > clean.txt
  confidant redact --json < notes.txt            text, findings and report as JSON
  confidant redact --jsonl < sessions.jsonl      a JSON value a line, each leaf and key

Names of people and addresses are best effort; --no-names leaves names in and is several times faster. Exit status 2: a private key, an Authorization header or a
bearer token was found; it was replaced, but nothing of such a text should be stored.")]
pub(super) struct RedactArgs {
    /// Read one JSON value a line, a string or an object, and print a line for each
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Print text, findings and report as JSON
    #[arg(long)]
    json: bool,
    /// Leave people's names in; faster
    #[arg(long)]
    no_names: bool,
    /// Number the placeholders: the same value, the same number
    #[arg(long)]
    numbered: bool,
    /// A file of words, one a line, that are always replaced
    #[arg(long, value_name = "FILE")]
    always: Option<PathBuf>,
    /// A file of values, one a line, that are left alone
    #[arg(long, value_name = "FILE")]
    never: Option<PathBuf>,
}

/// Redacts stdin; needs neither settings nor data.
pub(super) fn run(args: &RedactArgs) -> anyhow::Result<Outcome> {
    let redactor = Redactor::new(options(args)?)?;
    if args.jsonl {
        return lines(&redactor);
    }
    let text = io::read_to_string(io::stdin()).map_err(|error| not_text(&error))?;
    let redacted = redactor.redact_text(&text);
    if args.json {
        output::json(&redacted)?;
        return Ok(Outcome::Done);
    }
    output::text(&redacted.text)?;
    for Count { rule, count, .. } in &redacted.report {
        note(&format!("{count:>6}  {rule}"));
    }
    if redacted.blocked {
        return Err(anyhow!(
            "blocked: a private key, an Authorization header or a bearer token was found; \
             hint: it was replaced here, but revoke it, and store nothing of this text"
        ));
    }
    Ok(Outcome::Done)
}

fn options(args: &RedactArgs) -> anyhow::Result<Options> {
    let words = |file: &Option<PathBuf>| -> anyhow::Result<Vec<String>> {
        let text = file.as_ref().map(output::read).transpose()?.unwrap_or_default();
        Ok(text.lines().map(str::to_owned).collect())
    };
    let mut options = Options::default();
    options.names = !args.no_names;
    if args.numbered {
        options.numbering = confidant_redact::Numbering::PerDocument;
    }
    options.always = words(&args.always)?;
    options.never = words(&args.never)?;
    Ok(options)
}

/// What is printed for a line.
#[derive(Serialize)]
struct Line<'l> {
    blocked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'l Value>,
    findings: &'l [Finding],
}

fn lines(redactor: &Redactor) -> anyhow::Result<Outcome> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (at, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| not_text(&error))?;
        if line.trim().is_empty() {
            continue;
        }
        let value: Value = serde_json::from_str(&line)
            .map_err(|_| anyhow!("line {} is no JSON; hint: give one JSON value a line", at + 1))?;
        if let Value::String(text) = &value {
            let redacted = redactor.redact_text(text);
            let (blocked, text) = (redacted.blocked, Some(redacted.text.as_str()));
            print(&mut out, &Line { blocked, text, value: None, findings: &redacted.findings })?;
        } else {
            let redacted = redactor.redact_json(&value);
            let (blocked, value) = (redacted.blocked, Some(&redacted.value));
            print(&mut out, &Line { blocked, text: None, value, findings: &redacted.findings })?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn print(out: &mut impl io::Write, line: &Line<'_>) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    out.write_all(b"\n").context("stdout cannot be written")
}

fn not_text(error: &io::Error) -> anyhow::Error {
    anyhow!("stdin cannot be read ({}); hint: give UTF-8 text", error.kind())
}
