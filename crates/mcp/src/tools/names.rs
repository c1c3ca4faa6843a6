//! Names: of servers as the operator gives them, of tools as models may write them, and patterns over both.

use std::fmt;

use serde::Deserialize;

/// The name of a server: `a-z`, `0-9`, `_` and `-`, so that the first dot of a full name ends it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ServerName(String);

impl ServerName {
    /// The full name of one of its tools; nothing if it is too long for models to call.
    pub(super) fn of_tool(&self, tool: &str) -> Option<String> {
        let full = format!("{}.{}", self.0, written(tool));
        (!tool.is_empty() && full.len() <= LONGEST_FULL_NAME).then_some(full)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ServerName {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
        if name.is_empty() || name.len() > LONGEST_SERVER_NAME || !name.bytes().all(good) {
            return Err("not a valid server name; hint: use up to 32 of a-z, 0-9, _ and -");
        }
        if name == BUILT_IN {
            return Err("the name memory is reserved for Confidant's own tools; hint: use another name");
        }
        Ok(Self(name))
    }
}

/// The first part of the names of built-in tools, such as `memory.search`.
const BUILT_IN: &str = "memory";

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tool's own name as a part of its full name: letters, digits, `_` and `-` stay, everything else becomes the number of
/// its character, as in `read_x2F_file` for `read/file`. No two names are written alike.
pub(super) fn written(name: &str) -> String {
    let mut written = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        // An underscore that would look like the beginning of a number is a number itself.
        let is_plain = c.is_ascii_alphanumeric() || c == '-' || (c == '_' && rest.peek() != Some(&'x'));
        if is_plain {
            written.push(c);
        } else {
            written.push_str(&format!("_x{:X}_", u32::from(c)));
        }
    }
    written
}

/// A pattern in which `*` is any text, also none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Pattern(String);

impl Pattern {
    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether all of the text fits. Takes at most the product of both lengths, whatever they are.
    pub fn matches(&self, text: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
        let mut last = None;
        // What stands between two stars may stand anywhere, and its first place leaves most for those after it.
        for piece in pieces {
            if let Some(middle) = last.replace(piece) {
                let Some(at) = rest.find(middle) else { return false };
                rest = &rest[at + middle.len()..];
            }
        }
        last.map_or(rest.is_empty(), |last| rest.ends_with(last))
    }
}

impl From<String> for Pattern {
    fn from(pattern: String) -> Self {
        Self(pattern)
    }
}

const LONGEST_SERVER_NAME: usize = 32;
/// What the strictest of the common model servers takes.
const LONGEST_FULL_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// The other way round: that it can be had is what makes names unambiguous.
    fn read(mut written: &str) -> String {
        let mut name = String::new();
        while let Some(at) = written.find("_x") {
            name.push_str(&written[..at]);
            let end = at + 2 + written[at + 2..].find('_').unwrap();
            name.push(char::from_u32(u32::from_str_radix(&written[at + 2..end], 16).unwrap()).unwrap());
            written = &written[end + 1..];
        }
        name + written
    }

    #[test]
    fn names_that_models_may_write_stay_as_they_are() {
        for name in ["read_file", "get-sum", "x", "_", "a__b", "Echo2"] {
            assert_eq!(written(name), name);
        }
        assert_eq!(written("read/file.txt"), "read_x2F_file_x2E_txt");
        assert_eq!(written("a_x"), "a_x5F_x");
    }

    #[test]
    fn full_names_are_whole_or_refused() {
        let server = ServerName::try_from("files".to_owned()).unwrap();
        assert_eq!(server.of_tool("read").as_deref(), Some("files.read"));
        assert_eq!(server.of_tool(&"x".repeat(58)).map(|name| name.len()), Some(64));
        assert_eq!(server.of_tool(&"x".repeat(59)), None);
        assert_eq!(server.of_tool(""), None);
        for bad in ["", "Files", "a.b", "a b", "ä", &"x".repeat(33)] {
            assert!(ServerName::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_fit_all_of_the_text() {
        for (pattern, text, fits) in [
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "unread_file", false),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("*.txt", "a.txt.txt", true),
            ("ab*ba", "aba", false),
            ("**", "x", true),
            ("/etc/*", "/etc/passwd", true),
        ] {
            assert_eq!(Pattern(pattern.to_owned()).matches(text), fits, "{pattern} {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_two_names_are_written_alike(name in "[a-z_xX/. é5F-]{1,12}|\\PC{1,12}") {
            let full = written(&name);
            proptest::prop_assert!(full.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-'));
            proptest::prop_assert_eq!(read(&full), name);
        }

        /// The same as trying every way to share the text out, on short texts.
        #[test]
        fn patterns_agree_with_the_obvious(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            fn obvious(pattern: &[u8], text: &[u8]) -> bool {
                match pattern {
                    [] => text.is_empty(),
                    [b'*', rest @ ..] => (0..=text.len()).any(|at| obvious(rest, &text[at..])),
                    [c, rest @ ..] => text.first() == Some(c) && obvious(rest, &text[1..]),
                }
            }
            proptest::prop_assert_eq!(
                Pattern(pattern.clone()).matches(&text),
                obvious(pattern.as_bytes(), text.as_bytes())
            );
        }
    }
}
