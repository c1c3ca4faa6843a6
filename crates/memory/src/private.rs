//! Parts that a person marked as private: `<private>…</private>`. They are taken out before anything else sees a session.
//!
//! The one place for it is the door to every [`Session`](crate::Session), so that an import, a hook, a tool and the command
//! line behave the same. Marks may be nested. One that is never closed goes on to the end of its message, also over the
//! blocks that the message is made of. What is taken out leaves a blank, so that nothing new comes together around it.

use serde_json::{Map, Value};

/// The same text without its private parts.
#[must_use]
pub fn without(text: &str) -> String {
    cut(text, &mut 0)
}

/// The members of a session without their private parts. Each message stands for itself, and so does each member beside
/// them.
pub(crate) fn without_in(members: Map<String, Value>) -> Map<String, Value> {
    if !members.iter().any(|(name, value)| is_marked(name) || has_marks(value)) {
        return members;
    }
    let own = |(name, value): (String, Value)| {
        let value = match value {
            // A list is of messages, or of things that have as little to do with each other.
            Value::Array(items) => items.into_iter().map(|item| walk(item, &mut 0)).collect(),
            value => walk(value, &mut 0),
        };
        (without(&name), value)
    };
    members.into_iter().map(own).collect()
}

/// A value of a message. What is open goes on from block to block, in their order; the members of a block do not follow
/// each other.
fn walk(value: Value, open: &mut usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&text, open)),
        Value::Array(items) => items.into_iter().map(|item| walk(item, open)).collect(),
        Value::Object(members) => {
            let before = *open;
            let (mut opened, mut closed) = (0, 0);
            let mut kept = Map::new();
            for (name, value) in members {
                let mut open = before;
                let value = walk(value, &mut open);
                opened = opened.max(open.saturating_sub(before));
                closed = closed.max(before.saturating_sub(open));
                kept.insert(without(&name), value);
            }
            *open = before.saturating_sub(closed) + opened;
            Value::Object(kept)
        }
        // Inside a private part, a number is as private as a word.
        other => {
            if *open == 0 {
                other
            } else {
                Value::Null
            }
        }
    }
}

fn has_marks(value: &Value) -> bool {
    match value {
        Value::String(text) => is_marked(text),
        Value::Array(items) => items.iter().any(has_marks),
        Value::Object(members) => members.iter().any(|(name, value)| is_marked(name) || has_marks(value)),
        _ => false,
    }
}

/// Whether there may be a mark in a text: a quick look, for nearly all have none.
fn is_marked(text: &str) -> bool {
    let word = WORD.as_bytes();
    text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// What of a text is outside the marks. `open` says how many are open before it, and after it.
fn cut(text: &str, open: &mut usize) -> String {
    if *open == 0 && !is_marked(text) {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let (mut rest, mut from) = (text, 0);
    // Bytes that begin a mark are ASCII, so they are never inside a character.
    while let Some(at) = rest[from..].find(['<', '&', '\\']).map(|at| from + at) {
        let Some(mark) = Mark::at(&rest[at..]) else {
            from = at + 1;
            continue;
        };
        if *open == 0 {
            kept.push_str(&rest[..at]);
        }
        kept.push(' ');
        match mark.kind {
            Kind::Opens => *open += 1,
            Kind::Closes => *open = open.saturating_sub(1),
            Kind::Empty => {}
        }
        rest = &rest[at + mark.length..];
        from = 0;
    }
    if *open == 0 {
        kept.push_str(rest);
    }
    kept
}

/// A mark, and how long it is.
struct Mark {
    kind: Kind,
    length: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Opens,
    Closes,
    Empty,
}

impl Mark {
    /// The mark at the beginning of a text, in whatever case, with attributes or without. Also as it stands in JSON or
    /// markup that is quoted.
    fn at(text: &str) -> Option<Self> {
        let rest = BEGINNINGS.iter().find_map(|begins| after(text, begins))?;
        let (closes, rest) = match after(rest, "\\/").or_else(|| after(rest, "/")) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let rest = after(rest, WORD)?;
        let end = rest.char_indices().take(LONGEST_ATTRIBUTES).find_map(|(at, _)| {
            let begins =
                |marks: &[&str]| marks.iter().find_map(|mark| after(&rest[at..], mark).map(|_| mark.len()));
            // A mark that another one begins in was not closed itself.
            begins(&ENDS)
                .map(|length| (at, length, true))
                .or_else(|| begins(&BEGINNINGS).map(|_| (at, 0, false)))
        });
        let (at, length, is_closed) = end?;
        let attributes = &rest[..at];
        // `<privately>` is another word.
        let is_whole =
            attributes.is_empty() || attributes.starts_with(|c: char| c.is_whitespace() || c == '/');
        if !is_whole {
            return None;
        }
        // In doubt, what is open stays open.
        let kind = match (closes, attributes.trim_end().ends_with('/')) {
            (true, _) if is_closed => Kind::Closes,
            (true, _) | (false, true) => Kind::Empty,
            (false, false) => Kind::Opens,
        };
        Some(Self { kind, length: text.len() - rest.len() + at + length })
    }
}

/// What follows a beginning, whatever its case.
fn after<'t>(text: &'t str, begins: &str) -> Option<&'t str> {
    let head = text.get(..begins.len())?;
    head.eq_ignore_ascii_case(begins).then(|| &text[begins.len()..])
}

const WORD: &str = "private";
const BEGINNINGS: [&str; 3] = ["<", "&lt;", "\\u003c"];
const ENDS: [&str; 3] = [">", "&gt;", "\\u003e"];
/// In characters. What goes on for longer is no mark.
const LONGEST_ATTRIBUTES: usize = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn members(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(members) => members,
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn what_is_marked_is_gone_however_it_is_written() {
        for (text, expected) in [
            ("a <private>b</private> c", "a    c"),
            ("a<private>b<private>c</private>d</private>e", "a    e"),
            ("a<private>b", "a "),
            ("a</private>b", "a b"),
            ("a<PRIVATE>b</Private>c", "a  c"),
            ("a<private >b</private >c", "a  c"),
            ("a< private >b", "a< private >b"),
            ("a<private why=\"pay\">b</private>c", "a  c"),
            ("a<private/>b", "a b"),
            ("a&lt;private&gt;b&lt;/private&gt;c", "a  c"),
            (r"a\u003cprivate\u003eb\u003c/private\u003ec", "a  c"),
            (r"a<private>b<\/private>c", "a  c"),
            ("a <privately>b</privately>", "a <privately>b</privately>"),
            ("a<private <b>c", "a "),
            ("a<private>b</private <i>c", "a  "),
            ("private < b > c", "private < b > c"),
            ("ä<private>ö</private>ü", "ä  ü"),
        ] {
            assert_eq!(without(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_new_comes_together_around_what_is_gone() {
        let text = "<pri<private>x</private>vate>secret";
        assert_eq!(without(text), "<pri  vate>secret");
        assert_eq!(without(&without(text)), without(text));
    }

    #[test]
    fn one_that_is_not_closed_ends_with_its_message() {
        let session = json!({
            "summary": "a <private>one",
            "output": "b",
            "messages": [
                {"role": "user", "content": "c <private>two"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "d <private>three"},
                    {"type": "text", "text": "four"},
                    {"type": "text", "text": "five</private> e"},
                    {"type": "text", "text": "f"},
                ]},
                {"role": "tool", "tool": "Bash", "content": "g", "args": {"x": "<private>six</private>", "n": 7}},
            ],
        });
        let left = Value::Object(without_in(members(session))).to_string();
        for word in ["one", "two", "three", "four", "five", "six"] {
            assert!(!left.contains(word), "{word}: {left}");
        }
        for word in
            ["a ", "\"b\"", "\"c ", "\"d ", " e\"", "\"f\"", "\"g\"", "Bash", "user", "assistant", "7"]
        {
            assert!(left.contains(word), "{word}: {left}");
        }
    }

    #[test]
    fn a_session_without_marks_stays_as_it_is() {
        let session = members(json!({"summary": "<b>bold</b>", "n": 1, "messages": [{"content": null}]}));
        assert_eq!(without_in(session.clone()), session);
    }

    fn piece() -> impl Strategy<Value = (bool, String)> {
        (any::<bool>(), "[a-z &<>/\\\\é]{0,8}")
    }

    proptest! {
        /// Pieces, some of them private: of those no mark of ours is left, of the others all are.
        #[test]
        fn private_pieces_are_gone_and_public_ones_stay(pieces in prop::collection::vec(piece(), 0..12), unclosed in any::<bool>()) {
            let mut text = String::new();
            for (at, (is_private, words)) in pieces.iter().enumerate() {
                let words = words.replace(['<', '&', '\\'], "");
                if *is_private {
                    text.push_str(&format!("<private>{words} hidden{at}hidden <private>x</private></private>"));
                } else {
                    text.push_str(&format!("{words} shown{at}shown "));
                }
            }
            if unclosed {
                text.push_str("<private> hidden and no end");
            }
            let session = json!({"messages": [{"content": text.clone()}], "output": {"deep": [[text.clone()]]}});
            for left in [without(&text), Value::Object(without_in(members(session))).to_string()] {
                prop_assert!(!left.contains("hidden"), "{left}");
                for (at, _) in pieces.iter().enumerate().filter(|(_, (is_private, _))| !is_private) {
                    let name = format!("shown{at}shown");
                    prop_assert!(left.contains(&name), "{name}: {left}");
                }
            }
        }

        /// Whatever is given, a second look finds nothing more, and nothing panics.
        #[test]
        fn once_is_enough(text in "(<|>|/|&lt;|&gt;|\\\\u003c|private|PRIVATE| |x|é){0,24}") {
            let once = without(&text);
            prop_assert_eq!(without(&once), once);
        }
    }
}
