//! Words worth quoting: errors, and what stands in quotation marks.

use super::lines::{Form, Statement};
use super::source::Source;
use super::words::{clip, has_blob, one_line, without_placeholders, words};

/// At most `most` quotes of [`SHORTEST`] to [`LONGEST`] characters, the most telling first.
pub(super) fn quotes(said: &[Statement], most: usize) -> Vec<String> {
    let mut found: Vec<(u8, usize, String)> = Vec::new();
    let mut traceback = false;
    for (at, statement) in said.iter().enumerate() {
        let text = statement.text.as_str();
        let code = statement.form == Form::Code;
        if code && text.starts_with("Traceback ") {
            traceback = true;
            continue;
        }
        if code && traceback && is_exception(text) {
            traceback = false;
            found.extend(quote(text).map(|quote| (5, at, quote)));
            continue;
        }
        if let Some(weight) = error_weight(statement).filter(|_| !is_stack(text)) {
            found.extend(quote(without_time(text)).map(|quote| (weight, at, quote)));
        }
        if !code && statement.source != Source::Output {
            let weight = if matches!(statement.source, Source::Summary | Source::Error) { 6 } else { 2 };
            found.extend(quoted(text).into_iter().filter_map(quote).map(|quote| (weight, at, quote)));
        }
    }
    // The last errors tell more than the first, but what was quoted is told in its order.
    found.sort_by_key(|(weight, at, _)| (std::cmp::Reverse(*weight), *at));
    let mut kept: Vec<String> = Vec::new();
    for (_, _, quote) in found {
        let plain = quote.to_lowercase();
        let known = kept.iter().any(|other| {
            let other = other.to_lowercase();
            other.contains(&plain) || plain.contains(&other)
        });
        if !known {
            kept.push(quote);
        }
        if kept.len() == most {
            break;
        }
    }
    kept
}

/// How much an error line tells; none when it is no error.
fn error_weight(statement: &Statement) -> Option<u8> {
    let text = statement.text.as_str();
    if statement.source == Source::Error {
        return Some(if is_error(text) { 5 } else { 4 });
    }
    let readable = statement.form == Form::Code || matches!(statement.source, Source::Output | Source::Other);
    (is_error(text) && readable).then_some(match statement.source {
        Source::Request | Source::Final => 4,
        _ => 3,
    })
}

/// What compilers, test runners and shells write when something is wrong.
fn is_error(text: &str) -> bool {
    let plain = text.to_ascii_lowercase();
    let marks = [
        "error:",
        "error[",
        "panicked at",
        "fatal:",
        "exception:",
        "caused by:",
        "permission denied",
        "command not found",
        "segmentation fault",
        "assertion failed",
    ];
    let none = [
        "to rerun pass",
        "could not compile",
        "aborting due to",
        "0 errors",
        "no errors",
        "0 failed",
        "error: 0",
        "errors: 0",
    ]
    .iter()
    .any(|none| plain.contains(none));
    let failed = text.contains("FAILED") || text.starts_with("FAIL ") || plain.starts_with("failed ");
    !none && (marks.iter().any(|mark| plain.contains(mark)) || failed || exits(&plain))
}

/// `exit code 1`, `exited with status 101`, but not 0.
fn exits(plain: &str) -> bool {
    let marks = [
        "exit code ",
        "exit code: ",
        "exit status ",
        "exit status: ",
        "exited with ",
        "exited with code ",
        "exited with status ",
    ];
    marks.iter().any(|mark| {
        plain.find(mark).is_some_and(|at| {
            plain[at + mark.len()..].starts_with(|first: char| first.is_ascii_digit() && first != '0')
        })
    })
}

/// `ValueError: no`: the last line of a traceback.
fn is_exception(text: &str) -> bool {
    let name = text.split([':', ' ']).next().unwrap_or_default();
    name.ends_with("Error")
        || name.ends_with("Exception")
        || name.ends_with("Exit")
        || name.ends_with("Interrupt")
}

/// Frames of a stack.
fn is_stack(text: &str) -> bool {
    let starts =
        ["at ", "File \"", "in ", "--> ", "#0", "#1", "#2", "...", "| ", "= note", "note:", "goroutine "];
    let numbered = text
        .split_once(": ")
        .is_some_and(|(lead, _)| !lead.is_empty() && lead.bytes().all(|byte| byte.is_ascii_digit()));
    starts.iter().any(|start| text.starts_with(start)) || numbered
}

/// A log line without the time it begins with.
fn without_time(text: &str) -> &str {
    let mut rest = text;
    while let Some((word, more)) = rest.split_once(' ') {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        if digits < 4 || digits * 2 < word.len() || !word.contains([':', '-', '/', '.']) {
            break;
        }
        rest = more.trim_start();
    }
    rest
}

/// What stands in quotation marks.
fn quoted(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, close)) = opening(text, at) {
        let Some(end) = text[start..].find(close).map(|offset| start + offset) else { break };
        found.push(&text[start..end]);
        at = end + close.len_utf8();
    }
    found
        .retain(|inner| words(inner).len() > 1 && !inner.contains(['{', '}', '=']) && !inner.contains("://"));
    found
}

fn opening(text: &str, from: usize) -> Option<(usize, char)> {
    let (at, open) =
        text[from..].char_indices().find(|(_, letter)| matches!(letter, '"' | '“' | '„' | '«' | '「'))?;
    let close = match open {
        '“' => '”',
        '„' => '“',
        '«' => '»',
        '「' => '」',
        _ => '"',
    };
    Some((from + at + open.len_utf8(), close))
}

fn quote(text: &str) -> Option<String> {
    let line = one_line(text);
    let quote = clip(line.trim_matches([' ', '│', '|', '-', '=', '>', '*', ':']), LONGEST)?;
    let letters = without_placeholders(&quote).chars().filter(|letter| letter.is_alphabetic()).count();
    (quote.chars().count() >= SHORTEST && letters >= LEAST_LETTERS && !has_blob(&quote)).then_some(quote)
}

pub(super) const SHORTEST: usize = 10;
pub(super) const LONGEST: usize = 160;
/// Placeholders aside.
const LEAST_LETTERS: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    fn of(text: &str, source: Source) -> Vec<String> {
        quotes(&statements(text, source), 5)
    }

    #[test]
    fn errors_and_quoted_words_are_quoted() {
        let cases: &[(&str, &[&str])] = &[
            ("JWT failed with \"Invalid token format\".", &["Invalid token format"]),
            ("He said “it is what it is” and «c'est la vie»", &["it is what it is", "c'est la vie"]),
            ("Only \"short\" and \"a=b {c}\" here", &[]),
            ("Mail \"<REDACTED:EMAIL> <REDACTED:PHONE>\"", &[]),
            (
                "```\nerror[E0308]: mismatched types\n  --> src/main.rs:1\n```",
                &["error[E0308]: mismatched types"],
            ),
            (
                "```\nTraceback (most recent call last):\n  File \"a.py\", line 1\nValueError: bad input\n```",
                &["ValueError: bad input"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text, Source::Summary), expected, "{text}");
        }
        let output = "2024-05-01T10:00:00Z ERROR: cannot open the file\nok\n0 errors\nprocess exited with code 101\n\
            thread 'main' panicked at src/main.rs:4:5\n   0: rust_begin_unwind error:";
        let expected = [
            "ERROR: cannot open the file",
            "process exited with code 101",
            "thread 'main' panicked at src/main.rs:4:5",
        ];
        assert_eq!(of(output, Source::Output), expected);
    }
}
