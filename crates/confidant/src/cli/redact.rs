//! `confidant redact`: text in, text without secrets out.

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;
use confidant_redact::{Count, Finding, Options, Redactor};
use serde::Serialize;
use serde_json::Value;
use serde_json::error::Category;

use super::Outcome;
use crate::output::{self, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  confidant redact < notes.txt > clean.txt
  confidant redact --json < notes.txt            text, findings and report as JSON
  confidant redact --jsonl < sessions.jsonl      one JSON value per line, every value and key

Names of people and addresses are best effort; --no-names leaves names in and is several times faster. Exit status 2: a private key, an Authorization header or a
bearer token was found; it was replaced, but do not store such a text. With --jsonl, status 2 means that a line was not JSON: an object with
`error` is printed in its place.")]
pub(super) struct RedactArgs {
    /// Read one JSON value per line, a string or an object, and print a line for each
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Print text, findings and report as JSON
    #[arg(long)]
    json: bool,
    /// Do not replace people's names; faster
    #[arg(long)]
    no_names: bool,
    /// Number the placeholders; the same value gets the same number
    #[arg(long)]
    numbered: bool,
    /// A file of words, one per line, that are always replaced
    #[arg(long, value_name = "FILE")]
    always: Option<PathBuf>,
    /// A file of values, one per line, that are never replaced
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
            "blocked: a private key, an Authorization header or a bearer token was found; hint: it was \
             replaced here; revoke it, and do not store this text"
        ));
    }
    Ok(Outcome::Done)
}

fn options(args: &RedactArgs) -> anyhow::Result<Options> {
    let words = |file: &Option<PathBuf>| -> anyhow::Result<Vec<String>> {
        let text = file.as_deref().map(output::read).transpose()?.unwrap_or_default();
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

/// What is printed in place of a line that is no JSON. Nothing of the line is in it.
#[derive(Serialize)]
struct Refused {
    error: String,
}

fn lines(redactor: &Redactor) -> anyhow::Result<Outcome> {
    let mut input = io::BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut refused, mut line) = (0, Vec::new());
    for number in 1_u64.. {
        // Somebody may wait for the answers so far before they give the next line.
        if input.buffer().is_empty() {
            out.flush().context("stdout cannot be written")?;
        }
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(|error| not_text(&error))? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parsed(line.trim_ascii_end()) {
            Ok(Value::String(text)) => {
                let redacted = redactor.redact_text(&text);
                let (blocked, text) = (redacted.blocked, Some(redacted.text.as_str()));
                print(&mut out, &Line { blocked, text, value: None, findings: &redacted.findings })?;
            }
            Ok(value) => {
                let redacted = redactor.redact_json(&value);
                let (blocked, value) = (redacted.blocked, Some(&redacted.value));
                print(&mut out, &Line { blocked, text: None, value, findings: &redacted.findings })?;
            }
            Err(reason) => {
                refused += 1;
                print(&mut out, &Refused { error: format!("line {number} is not JSON: {reason}") })?;
            }
        }
    }
    if refused > 0 {
        let lines = if refused == 1 { "1 line is".to_owned() } else { format!("{refused} lines are") };
        output::error(&format!("{lines} not JSON; hint: give one JSON value per line"));
        return Ok(Outcome::Faulty);
    }
    Ok(Outcome::Done)
}

/// The value of a line, or why it has none, in words that quote nothing of it.
fn parsed(line: &[u8]) -> Result<Value, String> {
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8 text".to_owned())?;
    confidant_redact::read_json(line.as_bytes()).map_err(|error| match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        _ => format!("it has an error at column {}", error.column()),
    })
}

fn print(out: &mut impl io::Write, line: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    out.write_all(b"\n").context("stdout cannot be written")
}

fn not_text(error: &io::Error) -> anyhow::Error {
    anyhow!("stdin cannot be read ({}); hint: give UTF-8 text", error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_refused_is_not_quoted() {
        assert_eq!(parsed(br#""ok \ud83d lone""#), Ok(Value::from("ok \u{fffd} lone")));
        for line in [&b"\"open"[..], b"hunter2", b"\"\xff\"", b"\"\\", b"{\"a\": \"\\u12\""] {
            let reason = parsed(line).unwrap_err();
            assert!(reason.starts_with("it ") && !reason.contains("hunter2"), "{reason}");
        }
    }
}
