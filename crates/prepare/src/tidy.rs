//! What a small model or a person wrote, made fit to be shown and kept: short, one line, no markup, known names only.

use std::collections::HashMap;

use confidant_redact::quote_line as one_line;

/// A tag, or nothing if nothing of it is left.
pub(super) fn tag(text: &str) -> Option<String> {
    plain(text.trim_start_matches(|c: char| c.is_whitespace() || c == '#'), LONGEST_TAG)
}

/// A title, or nothing if nothing of it is left.
pub(super) fn title(text: &str) -> Option<String> {
    plain(text, LONGEST_TITLE)
}

/// A sentence, or nothing if nothing of it is left.
pub(super) fn sentence(text: &str) -> Option<String> {
    plain(text, LONGEST_REASON)
}

/// One line without markup, addresses and more than `longest` characters.
fn plain(text: &str, longest: usize) -> Option<String> {
    let start = text.floor_char_boundary(LONGEST_LOOK);
    let line = one_line(&text[..start].replace(MARKUP, " "));
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty() && !word.contains("://")).collect();
    let line = words.join(" ");
    let line = line
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '“' | '”' | ',' | ';' | ':'));
    let end = line.char_indices().nth(longest).map_or(line.len(), |(at, _)| at);
    let line = line[..end].trim_end();
    // What small models write when they do not know: "1.1.1.1.1".
    line.contains(char::is_alphabetic).then(|| line.to_owned())
}

/// Names that exist, found again under other spellings.
pub(super) struct Known<'o> {
    exact: HashMap<&'o str, &'o str>,
    /// By what is left of a name without case, blanks and marks; nothing where two names leave the same.
    alike: HashMap<String, Option<&'o str>>,
}

impl<'o> Known<'o> {
    /// Just these names.
    pub(super) fn new(names: impl IntoIterator<Item = &'o str>) -> Self {
        let mut known = Self { exact: HashMap::new(), alike: HashMap::new() };
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            if known.exact.insert(name, name).is_none() {
                known.alike.entry(key(name)).and_modify(|alike| *alike = None).or_insert(Some(name));
            }
        }
        known
    }

    /// The name that is meant, if there is exactly one.
    pub(super) fn find(&self, name: &str) -> Option<&'o str> {
        if let Some(known) = self.exact.get(name) {
            return Some(known);
        }
        if name.len() > LONGEST_LOOK {
            return None;
        }
        self.alike.get(&key(name)).copied().flatten()
    }
}

/// A name without what models change about names.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What makes text into something else in Markdown or HTML.
const MARKUP: &[char] = &['<', '>', '`', '*', '[', ']', '{', '}', '|', '\\'];

/// At most so many tags.
pub(super) const MOST_TAGS: usize = 10;

/// At most so many icons.
pub(super) const MOST_ICONS: usize = 3;

/// At most so many tools, focus modes and settings.
pub(super) const MOST_SKILLS: usize = 12;
pub(super) const MOST_FOCUS_MODES: usize = 3;
pub(super) const MOST_SETTINGS: usize = 8;

/// In characters.
pub(super) const LONGEST_TITLE: usize = 60;
const LONGEST_TAG: usize = 40;
const LONGEST_REASON: usize = 240;

/// In bytes: what is longer is not even looked at to its end.
const LONGEST_LOOK: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_plain_short_and_on_one_line() {
        assert_eq!(title("  **Hello**\n\u{202e}<b>World</b>  ").as_deref(), Some("Hello b World /b"));
        assert_eq!(title(&"ab ".repeat(100)).unwrap().chars().count(), 59);
        assert_eq!(tag("#rust").as_deref(), Some("rust"));
        assert_eq!(tag("\"cold, dark\"").as_deref(), Some("cold, dark"));
        assert_eq!(sentence("see https://evil.org/x?q=1 now").as_deref(), Some("see now"));
        for empty in ["", "  ", "***", "\u{200b}", "https://a.org/b", "1.1.1.1"] {
            assert_eq!(title(empty), None, "{empty:?}");
        }
    }

    #[test]
    fn names_are_found_under_other_spellings() {
        let known = Known::new(["web.search", "Web Search 2", "a.b", "ab", "images.generate"]);
        for (given, expected) in [
            ("web.search", Some("web.search")),
            ("Web-Search", Some("web.search")),
            (" web_search ", Some("web.search")),
            ("websearch2", Some("Web Search 2")),
            ("a.b", Some("a.b")),
            ("A-B", None),
            ("web.searching", None),
            ("", None),
        ] {
            assert_eq!(known.find(given), expected, "{given}");
        }
    }
}
