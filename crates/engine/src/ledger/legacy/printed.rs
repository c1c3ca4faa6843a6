//! Messages as Python prints them: `content='Hello' additional_kwargs={}`, or `HumanMessage(content='Hello', …)`.
//!
//! Only what is needed of that language: texts in quotes with their escapes, and what a list of parts holds. What is easy to
//! get wrong: what comes after the content tells who speaks, and the content may hold the same words.

use super::messages::{Said, Speaker};

/// Reads one; `None` if it is none.
pub(super) fn message(text: &str) -> Option<Said> {
    let (class, rest) = match text.split_once("content=")? {
        ("", rest) => (None, rest),
        (class, rest) => (Some(class.strip_suffix('(')?), rest),
    };
    let (content, whole, rest) = if rest.starts_with('[') {
        parts(rest)?
    } else {
        let (content, rest) = literal(rest)?;
        (content, true, rest)
    };
    let by = match class {
        Some(class) => Speaker::named(class, name(rest)),
        None if rest.contains(" tool_call_id=") => Speaker::named("tool", name(rest)),
        None if rest.contains(" tool_calls=") || rest.contains(" usage_metadata=") => Speaker::Ai,
        None => Speaker::Unsaid,
    };
    // A call that says more than the name of its tool.
    let calls = rest.split_once(" tool_calls=[{").map_or("", |(_, calls)| calls);
    let called =
        calls.match_indices("'args': {").any(|(at, found)| !calls[at + found.len()..].starts_with('}'));
    Some(Said { by, text: content, whole: whole && !called })
}

/// The name that a message has besides its content.
fn name(rest: &str) -> Option<String> {
    Some(literal(rest.split_once(" name=")?.1)?.0)
}

/// A text in quotes at the beginning, and what follows it.
fn literal(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let (_, escape) = chars.next()?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => {
                        out.push(match escape {
                            'n' => '\n',
                            'r' => '\r',
                            't' => '\t',
                            other => other,
                        });
                        continue;
                    }
                };
                let hex: String = chars.by_ref().take(digits).map(|(_, digit)| digit).collect();
                // Halves of pairs stand for nothing alone.
                out.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?).unwrap_or('\u{fffd}'));
            }
            c if c == quote => return Some((out, &text[at + 1..])),
            c => out.push(c),
        }
    }
    None
}

/// The texts of a list of parts at the beginning, whether that is all of it, and what follows it: those that stand in it
/// alone, and those under `text`.
fn parts(text: &str) -> Option<(String, bool, &str)> {
    let (mut texts, mut depth, mut key) = (Vec::new(), 0_usize, None::<String>);
    let mut pieces = 0_usize;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match c {
            '\'' | '"' => {
                let (text, after) = literal(rest)?;
                rest = after;
                pieces += usize::from(depth == 1);
                if depth == 1 || (depth == 2 && key.take().is_some_and(|key| key == "text")) {
                    texts.push(text);
                } else if rest.starts_with(": ") {
                    key = Some(text);
                }
                continue;
            }
            '[' | '{' | '(' => {
                pieces += usize::from(depth == 1);
                depth += 1;
            }
            ']' | '}' | ')' => {
                depth -= 1;
                if depth == 0 {
                    let whole = texts.len() >= pieces;
                    return Some((texts.join("\n"), whole, &rest[1..]));
                }
            }
            ',' => key = None,
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    None
}
