//! Words, placeholders and the cuts between them.
//!
//! All that a card says is a piece of redacted text, and the pieces are made here. What is easy to get wrong: a cut inside a
//! word, or two halves of a word brought together, can make something that looks like a secret where there was none.
//! So text is cut at blanks only (and between the signs of scripts that have none), and nothing is ever joined but across
//! what cannot be seen, where the gate has read it as one already.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use confidant_redact::is_invisible;

use super::lists;

/// Where placeholders are in a text.
pub(super) fn placeholders(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(PLACEHOLDER).map(|offset| at + offset) {
        at = start + PLACEHOLDER.len();
        let inner =
            text.as_bytes()[at..].iter().take(LONGEST_LABEL).take_while(|byte| is_label(**byte)).count();
        if inner > 0 && text.as_bytes().get(at + inner) == Some(&b'>') {
            at += inner + 1;
            found.push(start..at);
        }
    }
    found
}

/// The text with a blank for each placeholder, for judging what else it says.
pub(super) fn without_placeholders(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for place in placeholders(text) {
        left.push_str(&text[at..place.start]);
        left.push(' ');
        at = place.end;
    }
    left.push_str(&text[at..]);
    left
}

/// At most `most` characters, cut at a blank and closed with an ellipsis. None when its first word is longer.
pub(super) fn clip(text: &str, most: usize) -> Option<String> {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return (!text.is_empty()).then(|| text.to_owned());
    };
    // One character is for the ellipsis.
    let end = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    let mut before = None;
    let mut cut = 0;
    for (at, letter) in text[..end].char_indices().chain(text[end..].chars().next().map(|next| (end, next))) {
        let between = before.is_some_and(is_spaceless) && is_spaceless(letter);
        if letter.is_whitespace() || between {
            cut = at;
        }
        before = Some(letter);
    }
    let kept = text[..cut].trim_end_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, ',' | ';' | ':' | '-' | '–' | '—' | '(' | '.')
    });
    (!kept.is_empty()).then(|| format!("{kept}…"))
}

/// One line: runs of white space and control characters are one blank each; of what cannot be seen, only what parts
/// words is one, and the rest (joiners, soft hyphens, selectors) is not there.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_whitespace() || letter.is_control() || letter == ZERO_WIDTH_SPACE {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !is_invisible(letter) {
            line.push(letter);
        }
    }
    line.truncate(line.trim_end().len());
    line
}

const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// The words of a text in order; a run of signs of a script without blanks is one. Placeholders are none.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    for place in placeholders(text).into_iter().chain(std::iter::once(text.len()..text.len())) {
        words_of(&text[at..place.start], &mut found);
        at = place.end;
    }
    found
}

fn words_of<'t>(text: &'t str, found: &mut Vec<&'t str>) {
    let mut start: Option<(usize, bool)> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        let spaceless = is_spaceless(letter);
        let inside = letter.is_alphanumeric()
            || letter == '_'
            || is_mark(letter)
            || (start.is_some_and(|(_, spaceless)| !spaceless)
                && joins(text[..at].chars().next_back(), letter, next));
        let same = start.is_none_or(|(_, before)| before == spaceless);
        if let Some((from, _)) = start.filter(|_| !inside || !same) {
            found.push(&text[from..at]);
            start = None;
        }
        if inside && start.is_none() {
            start = Some((at, spaceless));
        }
    }
    if let Some((from, _)) = start {
        found.push(&text[from..]);
    }
}

/// Whether a sign holds two halves of one word together: `it's`, `auth-service`, `v2.3`, `a::b`; `C++` and `C#` end in one.
fn joins(before: Option<char>, sign: char, next: Option<char>) -> bool {
    let followed = next.is_some_and(|next| (next.is_alphanumeric() && !is_spaceless(next)) || next == '_');
    match sign {
        '\'' | '’' | '.' | '-' | '/' | '@' => followed,
        ':' => next == Some(':') || (before == Some(':') && followed),
        '+' | '#' => next.is_none_or(|next| next == sign || !next.is_alphanumeric()),
        _ => false,
    }
}

/// What two texts about the same share: lower-case words that say something, without common endings.
pub(super) fn content(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in words(text) {
        if word.chars().next().is_some_and(is_spaceless) {
            let signs: Vec<char> = word.chars().collect();
            found.extend(signs.windows(2).map(|pair| pair.iter().collect::<String>()));
            continue;
        }
        let word = word.to_lowercase();
        if !lists::STOP.has(&word) {
            found.insert(stem(&word).to_owned());
        }
    }
    found
}

/// Whether two texts say the same: nearly all content of the smaller is in the other.
pub(super) fn alike(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let least = one.len().min(other.len());
    least > 0 && one.intersection(other).count() * 5 >= least * 4 && least * 2 >= one.len().max(other.len())
}

/// A set of the words of large texts, small in memory: a word is known by its hash.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashSet<u64>);

impl Vocabulary {
    pub(super) fn learn(&mut self, text: &str) {
        for word in words(text) {
            if word.chars().next().is_some_and(is_spaceless) {
                let mut before: Option<char> = None;
                for letter in word.chars() {
                    if let Some(before) = before {
                        self.0.insert(hash([before, letter].into_iter()));
                    }
                    before = Some(letter);
                }
                continue;
            }
            self.put(word);
            // What a model may well say of `auth-service` and `src/main.rs` are their parts.
            word.split(['-', '.', '/', ':', '_', '@'])
                .filter(|part| part.len() < word.len())
                .for_each(|part| self.put(part));
        }
    }

    fn put(&mut self, word: &str) {
        let word = word.to_lowercase();
        self.0.insert(hash(stem(&word).chars()));
    }

    /// Whether at least half of what the text says was in what was learned. A text that says nothing is not.
    pub(super) fn supports(&self, text: &str) -> bool {
        let content = content(text);
        let known = content.iter().filter(|word| self.0.contains(&hash(word.chars()))).count();
        !content.is_empty() && known * 2 >= content.len()
    }
}

/// FNV-1a: the same on every machine.
fn hash(letters: impl Iterator<Item = char>) -> u64 {
    letters
        .fold(0xcbf2_9ce4_8422_2325, |hash, letter| (hash ^ u64::from(letter)).wrapping_mul(0x0100_0000_01b3))
}

/// A lower-case word without the commonest English endings.
pub(super) fn stem(word: &str) -> &str {
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word;
    }
    let cut = |ending: &str, least: usize| word.strip_suffix(ending).filter(|rest| rest.len() >= least);
    cut("ing", 4)
        .or_else(|| cut("ed", 4))
        .or_else(|| cut("es", 4))
        .or_else(|| cut("s", 3).filter(|rest| !rest.ends_with('s')))
        .unwrap_or(word)
        .trim_end_matches('e')
}

/// Whether a word is nothing that anyone would say: a hash, an id, a piece of a key.
pub(super) fn is_opaque(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    // Short ones with dashes are tickets.
    let whole = !word.contains('-') || word.len() >= 20;
    let hex = word.len() >= 7
        && digits > 0
        && whole
        && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    hex || (word.len() >= 16 && digits >= 4 && digits * 8 > letters) || digits >= 7
}

/// Whether a text holds something that only machines read: a long token without words, a long number, or a value
/// given to a name that secrets have.
pub(super) fn has_blob(text: &str) -> bool {
    // How far towards a value: at a name that secrets have, or behind its equals sign.
    let (mut named, mut given) = (false, false);
    text.split_whitespace().any(|token| {
        let (name, value) = token.split_once('=').unwrap_or((token, ""));
        let value = if given { token } else { value };
        given = given || is_credential(name) || (named && name.is_empty());
        let found = given && !value.is_empty() && !value.starts_with('<');
        (named, given) = (is_credential(token), given && value.is_empty() && token.ends_with('='));
        found || is_blob(&without_placeholders(token))
    })
}

fn is_blob(token: &str) -> bool {
    let count = |such: fn(&u8) -> bool| token.bytes().filter(such).count();
    let (digits, upper, lower) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let mixed = digits > 1 && upper > 2 && lower > 2 && digits * 8 > upper + lower;
    let coded = upper > 5 && lower > 5 && (digits > 2 || token.contains('+')) && !token.contains("://");
    let dated = token.len() <= 35 && matches!(token.as_bytes(), [_, _, _, _, b'-', _, _, b'-', ..]);
    (digits >= 9 && !dated) || (token.len() >= 20 && mixed) || (token.len() >= 32 && coded)
}

/// `DB_PASS`, `authToken`, but not `keyboard`.
fn is_credential(name: &str) -> bool {
    let name = name.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()).to_ascii_lowercase();
    let ends = [
        "pass",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "token",
        "key",
        "credential",
        "credentials",
    ];
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether a script writes words without blanks.
pub(super) fn is_spaceless(letter: char) -> bool {
    matches!(letter, '\u{3005}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{0e01}'..='\u{0e4e}' | '\u{20000}'..='\u{2fa1f}')
}

/// Accents that stand apart from their letters; Thai and Indic vowels among them.
fn is_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{65f}' | '\u{900}'..='\u{dff}' | '\u{e31}'..='\u{e4e}')
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b':')
}

pub(super) const PLACEHOLDER: &str = "<REDACTED:";
const LONGEST_LABEL: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_blank_and_never_in_a_placeholder() {
        let cases = [
            ("short", 10, Some("short")),
            ("one two three", 9, Some("one two…")),
            ("one two, three", 10, Some("one two…")),
            ("mail <REDACTED:EMAIL:2> now", 12, Some("mail…")),
            ("mail <REDACTED:EMAIL:2> now", 24, Some("mail <REDACTED:EMAIL:2>…")),
            ("unbreakable-and-long", 8, None),
            ("认证服务无法验证", 5, Some("认证服务…")),
            ("", 5, None),
        ];
        for (text, most, expected) in cases {
            let clipped = clip(text, most);
            assert_eq!(clipped.as_deref(), expected, "{text}");
            assert!(clipped.is_none_or(|text| text.chars().count() <= most), "{text}");
        }
    }

    #[test]
    fn words_are_kept_whole() {
        let text =
            "It's auth-service v2.3.1, C++ (src/main.rs): a::b, foo_bar! 认证failed <REDACTED:EMAIL> end.";
        let expected = [
            "It's",
            "auth-service",
            "v2.3.1",
            "C++",
            "src/main.rs",
            "a::b",
            "foo_bar",
            "认证",
            "failed",
            "end",
        ];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn ids_are_opaque_and_names_are_not() {
        for id in ["0f3a9c5b7d", "29f63271-dc2f-4734-8221-5b31b5169bac", "k3Jd9fQw7eRt5yUi1oPa"] {
            assert!(is_opaque(id), "{id}");
        }
        for name in ["springSecurityOauth2AutoconfigureVersion", "decade", "v2.3.1", "E0308", "ABC-123"] {
            assert!(!is_opaque(name), "{name}");
        }
    }

    #[test]
    fn blobs_are_what_only_machines_read() {
        for text in [
            "SET_PASS = 0xf1",
            "DB_PASSWORD=abc",
            "see vcb_BQuu9ChDu3n6Pfh6YQnCshpoYkWDSFKogLqmBtQ0",
            "id 44051401458",
        ] {
            assert!(has_blob(text), "{text}");
        }
        for text in [
            "Added start_paused = true to it",
            "The token = sign, no",
            "password=<REDACTED:PASSWORD> and <REDACTED:PHONE>",
            "springSecurityOauth2AutoconfigureVersion in https://docs.example.com/Some/Path/To/Page",
            "from 2025-03-02T03:12:44Z to 03:46",
        ] {
            assert_eq!(has_blob(text), text.contains("token ="), "{text}");
        }
    }

    #[test]
    fn control_and_invisible_characters_part_words() {
        assert_eq!(one_line(" a\u{0}b\u{200b}c \n\t d\u{202e} "), "a b c d");
    }
}
