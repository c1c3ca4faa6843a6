//! Languages by the names that models give them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The two letters of ISO 639-1 for a code or a name: `de`, `DE`, `de-AT`, `deu`, `German`, `Deutsch`.
pub(crate) fn code(name: &str) -> Option<&'static str> {
    let name = name.trim();
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let known = |name: &str| LANGUAGES.get(name).copied();
    known(&lower).or_else(|| known(lower.split(['-', '_', ' ', '(']).next()?))
}

static LANGUAGES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("../data/languages.txt").lines().filter(|line| !line.starts_with('#'));
    let mut languages = HashMap::new();
    for line in lines {
        let mut names = line.split_whitespace();
        let Some(code) = names.next() else { continue };
        languages.insert(code, code);
        for name in names {
            languages.entry(name).or_insert(code);
        }
    }
    languages
});

/// In bytes.
const LONGEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_their_names() {
        for (name, expected) in [
            ("en", Some("en")),
            (" EN ", Some("en")),
            ("de-AT", Some("de")),
            ("pt_BR", Some("pt")),
            ("deu", Some("de")),
            ("German", Some("de")),
            ("français", Some("fr")),
            ("nb", Some("no")),
            ("zh-Hans", Some("zh")),
            ("xx", None),
            ("", None),
            ("english please", Some("en")),
        ] {
            assert_eq!(code(name), expected, "{name}");
        }
    }
}
