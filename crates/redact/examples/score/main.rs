//! Recall, precision and speed on a labelled file, beside the goals:
//! `cargo run --release -p confidant-redact --example score -- redaction-dev.jsonl [--names | --names-only] [--show FAMILY] [--half A|B]`
//!
//! `--half` scores the cases whose text hashes to one half or the other: rules are fitted on A and believed on B.

#![expect(clippy::print_stdout, reason = "it prints a table")]

mod disguise;
mod names;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use confidant_redact::{Options, Redacted, Redactor};
use serde_json::Value;

/// A labelled text.
struct Case {
    text: String,
    expect: String,
    tier: String,
    entity: String,
    scope: String,
    kind: String,
    source: String,
    spans: Vec<(usize, usize)>,
    /// Every person that the text names, where people are labelled.
    people: Vec<(usize, usize)>,
}

#[derive(Default)]
struct Tally {
    hits: usize,
    all: usize,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = arguments.first() else {
        println!("usage: score FILE [--names] [--show FAMILY] [--half A|B]");
        return ExitCode::FAILURE;
    };
    let names = arguments.iter().any(|argument| argument == "--names");
    let option = |name: &str| {
        arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1))
    };
    let (show, half) = (option("--show"), option("--half"));
    let wanted =
        |case: &Case| half.is_none_or(|half| half == if fnv(&case.text) & 1 == 0 { "A" } else { "B" });
    let cases = match std::fs::read_to_string(path) {
        Ok(text) => text.lines().filter_map(case).filter(wanted).collect::<Vec<_>>(),
        Err(error) => {
            println!("{path} cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    let started = Instant::now();
    let redactor = redactor(false);
    let _ = redactor.redact_text("start@example.org");
    let start = started.elapsed();
    if let Some(path) = option("--dump-only") {
        dump(&redactor, &cases, path);
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--speed") {
        speed(&redactor, &cases, "without names", 20.0);
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|argument| argument == "--names-only") {
        names::score(&cases, show.map(String::as_str));
        return ExitCode::SUCCESS;
    }
    let tallies = score(&redactor, &cases, show.map(String::as_str));
    if let Some(path) = option("--dump") {
        dump(&redactor, &cases, path);
    }
    print_table(&tallies);
    if names {
        names::score(&cases, show.map(String::as_str));
    }
    println!("\nstart: {:.1} ms (goal 150)", start.as_secs_f64() * 1e3);
    speed(&redactor, &cases, "without names", 20.0);
    ExitCode::SUCCESS
}

/// FNV-1a, folded: the same half whatever the file's order.
fn fnv(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 29)
}

fn redactor(names: bool) -> Redactor {
    let mut options = Options::default();
    options.names = names;
    Redactor::new(options).expect("no lists of words were given")
}

fn case(line: &str) -> Option<Case> {
    let value: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let span = |span: &Value| Some((span[0].as_u64()? as usize, span[1].as_u64()? as usize));
    let spans = match (&value["spans"], span(&value["span"])) {
        (Value::Array(spans), _) => spans.iter().filter_map(span).collect(),
        (_, Some(span)) => vec![span],
        _ => Vec::new(),
    };
    let people = value["entities"].as_array().map(Vec::as_slice).unwrap_or_default();
    let people = people.iter().filter(|entity| entity[2] == "PERSON").filter_map(span).collect();
    let (entity, kind) = (text("entity"), text("neg_kind"));
    let (tier, scope, source) = (text("tier"), text("scope"), text("source"));
    Some(Case {
        text: text("text"),
        expect: text("expect"),
        tier,
        entity,
        scope,
        kind,
        source,
        spans,
        people,
    })
}

/// The families that are scored, with what a family's case must be and how a hit is told.
fn score(redactor: &Redactor, cases: &[Case], show: Option<&str>) -> BTreeMap<String, Tally> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut count = |family: &str, hit: bool, case: &Case, redacted: &Redacted| {
        let tally = tallies.entry(family.to_owned()).or_default();
        tally.all += 1;
        tally.hits += usize::from(hit);
        if show == Some(family) && hit == family.starts_with("clean")
            || show == Some(family) && !hit && !family.starts_with("clean")
        {
            let rules: Vec<_> =
                redacted.findings.iter().map(|finding| (finding.rule, finding.start, finding.end)).collect();
            println!(
                "{} {:?} {:?} {rules:?}",
                case.source,
                case.spans,
                case.text.chars().take(180).collect::<String>()
            );
        }
    };
    for case in cases {
        let redacted = redactor.redact_text(&case.text);
        let found = covers(&redacted, &case.spans);
        match (case.tier.as_str(), case.scope.as_str()) {
            ("critical", "core") => {
                count("critical blocked", redacted.blocked, case, &redacted);
                let nested =
                    serde_json::json!({ "body": serde_json::json!({ "log": [case.text] }).to_string() });
                count("critical in nested JSON", redactor.redact_json(&nested).blocked, case, &redacted);
                let packed = disguise::base64(&case.text);
                count("critical in base64", redactor.redact_text(&packed).blocked, case, &redacted);
            }
            ("clean", "core") if case.kind.starts_with("invalid") => {
                count("invalid ids left alone", redacted.findings.is_empty(), case, &redacted);
            }
            ("clean", "core") => {
                let touched = !redacted.findings.is_empty();
                count("clean blocked", redacted.blocked, case, &redacted);
                count("clean touched", touched, case, &redacted);
                // Keys of a wrong length and the like, which other tools' tests call clean.
                let near = if case.kind == "near_miss" { "only" } else { "aside" };
                count(&format!("clean touched, near misses {near}"), touched, case, &redacted);
            }
            ("noncritical", "weak") if case.expect == "secret" => {
                count("weak secrets and passwords", found, case, &redacted);
            }
            ("noncritical", "core") if case.expect == "secret" => {
                count("secrets, all others", found, case, &redacted);
                count(&format!("  {}", case.entity), found, case, &redacted);
            }
            ("noncritical", "core") if case.entity != "PERSON" => {
                count(&case.entity, found, case, &redacted);
            }
            _ => {}
        }
        // What is found plainly must be found in disguise.
        let people = case.entity == "PERSON" || case.scope != "core" || case.tier == "clean";
        if found && !people {
            for disguise in disguise::ALL {
                let again = redactor.redact_text(&(disguise.of)(&case.text));
                count(disguise.name, disguise.hides(case, &again), case, &again);
            }
        }
        let twice = redactor.redact_text(&redacted.text);
        count("twice is once", twice.text == redacted.text, case, &twice);
    }
    tallies
}

/// What was found in each case, a line each, for a closer look with other tools; and the seconds that it took.
fn dump(redactor: &Redactor, cases: &[Case], path: &str) {
    let started = Instant::now();
    let results: Vec<Redacted> = cases.iter().map(|case| redactor.redact_text(&case.text)).collect();
    let seconds = started.elapsed().as_secs_f64();
    let line = |(case, redacted): (&Case, &Redacted)| {
        let found = covers(redacted, &case.spans);
        serde_json::json!({ "text": case.text, "found": found, "findings": redacted.findings }).to_string()
            + "\n"
    };
    let lines: String = cases.iter().zip(&results).map(line).collect();
    if let Err(error) = std::fs::write(path, lines) {
        println!("{path} cannot be written: {error}");
    }
    println!("seconds: {seconds}");
}

/// Half of each labelled place, or anything where no place is labelled.
fn covers(redacted: &Redacted, spans: &[(usize, usize)]) -> bool {
    let covered = |start: usize, end: usize| {
        let inside = |finding: &confidant_redact::Finding| {
            finding.end.min(end).saturating_sub(finding.start.max(start))
        };
        redacted.findings.iter().map(inside).sum::<usize>() * 2 >= end - start
    };
    if spans.is_empty() {
        !redacted.findings.is_empty()
    } else {
        spans.iter().all(|(start, end)| covered(*start, *end))
    }
}

fn print_table(tallies: &BTreeMap<String, Tally>) {
    println!("{:<32} {:>6} {:>6} {:>8}  goal", "family", "hits", "of", "rate");
    for (family, tally) in tallies {
        let goal = GOALS.iter().find(|(name, _)| name == family).map_or("", |(_, goal)| goal);
        let rate = 100.0 * tally.hits as f64 / tally.all as f64;
        println!("{family:<32} {:>6} {:>6} {rate:>7.2}%  {goal}", tally.hits, tally.all);
    }
}

fn speed(redactor: &Redactor, cases: &[Case], what: &str, goal: f64) {
    let text: String =
        cases.iter().filter(|case| case.tier == "clean").map(|case| case.text.clone() + "\n").collect();
    let hundred: String = text.chars().take(100_000).collect();
    let best = |text: &str, times: usize| {
        let run = |_| {
            let started = processor_seconds();
            for _ in 0..times {
                let _ = redactor.redact_text(text);
            }
            (processor_seconds() - started) / times as f64
        };
        (0..5).map(run).fold(f64::MAX, f64::min)
    };
    let (long, short) = (best(&text, 6), best(&hundred, 30) * 1e3);
    println!(
        "speed {what}: {:.1} MB/s (goal {goal}); 100 KB in {short:.1} ms",
        text.len() as f64 / 1e6 / long
    );
}

/// Seconds that this thread has had a processor, where the system tells: other work on the machine does not count. The
/// system counts in coarse steps, so what is timed must last.
fn processor_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |count| count / 1e9)
}

const GOALS: &[(&str, &str)] = &[
    ("critical blocked", ">= 99"),
    ("critical in nested JSON", ">= 99"),
    ("critical in base64", ">= 90"),
    ("clean blocked", "<= 0.1"),
    ("clean touched", "<= 1"),
    ("clean touched, near misses aside", "<= 1"),
    ("invalid ids left alone", ">= 95"),
    ("secrets, all others", ">= 90"),
    ("weak secrets and passwords", ">= 60"),
    ("EMAIL", ">= 99"),
    ("IBAN", ">= 99"),
    ("SSN", ">= 99"),
    ("IP_ADDRESS", ">= 99"),
    ("MAC_ADDRESS", ">= 99"),
    ("CRYPTO", ">= 99"),
    ("CREDIT_CARD", ">= 97"),
    ("PHONE", ">= 85"),
    ("disguise: zero width", ">= 95"),
    ("disguise: full width", ">= 95"),
    ("disguise: no break", ">= 95"),
    ("disguise: base64", ">= 90"),
    ("twice is once", "100"),
];
