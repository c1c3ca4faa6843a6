//! Takes what a person's settings and memories say out of a text.
//!
//! A model may write it in other letters: in capitals, with other blanks, without what cannot be seen. So both are
//! compared folded, and every place in the folded text knows the letter it comes from. What is easy to get wrong: folding
//! changes lengths (`ß` becomes `ss`), so a place in the one text is no place in the other.

use std::ops::Range;

use crate::fence::is_invisible;

/// The text with `with` in the place of whatever one of `values` says, as a whole or in one of its lines.
pub(super) fn stripped(text: &str, values: &[String], with: &str) -> String {
    if values.is_empty() {
        return text.to_owned();
    }
    let folded = Folded::of(text);
    let mut places: Vec<Range<usize>> = Vec::new();
    for part in values.iter().flat_map(|value| parts(value)) {
        folded.find(&Folded::of(part).text, &mut places);
    }
    places.sort_unstable_by_key(|place| place.start);
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for place in places {
        // One that begins inside another only makes it longer.
        if place.start >= done {
            out.push_str(&text[done..place.start]);
            out.push_str(with);
        }
        done = done.max(place.end);
    }
    out.push_str(&text[done..]);
    out
}

/// Whether a text says what one of `values` does.
pub(super) fn says(text: &str, values: &[String]) -> bool {
    stripped(text, values, "") != text
}

/// A setting as a whole, and line by line; what is too short to be anybody's is left alone.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    std::iter::once(value).chain(value.lines()).map(str::trim).filter(|part| part.chars().count() >= SHORTEST)
}

struct Folded {
    text: String,
    /// For each of its bytes, the bytes of the letter that it comes from.
    from: Vec<Range<usize>>,
}

impl Folded {
    fn of(text: &str) -> Self {
        let mut folded =
            Self { text: String::with_capacity(text.len()), from: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices() {
            let letter = at..at + c.len_utf8();
            if c.is_whitespace() {
                if !folded.text.ends_with(' ') {
                    folded.push(' ', &letter);
                }
            } else if c.is_ascii() {
                folded.push(c.to_ascii_lowercase(), &letter);
            } else if !is_invisible(c) {
                // Small, capital and small again: letters that share one form share this one.
                let small = c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
                small.filter(|c| *c != DOT_ABOVE).for_each(|c| folded.push(c, &letter));
            }
        }
        folded
    }

    fn push(&mut self, c: char, letter: &Range<usize>) {
        self.text.push(c);
        self.from.resize(self.text.len(), letter.clone());
    }

    /// Where a folded value stands, in bytes of the text that was folded.
    fn find(&self, value: &str, places: &mut Vec<Range<usize>>) {
        let value = value.trim();
        if value.is_empty() {
            return;
        }
        for (at, found) in self.text.match_indices(value) {
            let (first, last) = (&self.from[at], &self.from[at + found.len() - 1]);
            places.push(first.start..last.end);
        }
    }
}

/// What `İ` leaves beside its `i`.
const DOT_ABOVE: char = '\u{307}';
const SHORTEST: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, value: &str) -> String {
        stripped(text, &[value.to_owned()], "#")
    }

    #[test]
    fn a_value_is_found_however_it_is_written() {
        for (text, value, expected) in [
            ("I live in İstanbul, in BLUE LAGOON 7.", "Blue Lagoon 7", "I live in İstanbul, in #."),
            ("They live in ISTANBUL", "İstanbul", "They live in #"),
            ("ẞ: HAUPTSTRASSE 9 it is", "Hauptstraße 9", "ẞ: # it is"),
            ("300 K and 300 K", "300 k", "# and #"),
            ("at Blue\u{200b}  Lagoon\n7", "Blue Lagoon 7", "at #"),
            ("ΟΔΟΣ and οδος", "οδός", "ΟΔΟΣ and οδος"),
            ("ΟΔΟΣ and οδος", "οδος", "# and #"),
            ("so is it", "is", "so is it"),
            ("aaaa", "aaa", "#a"),
        ] {
            assert_eq!(without(text, value), expected, "{text}");
        }
        let values = ["Blue Lagoon 7\nred house".to_owned(), "house of cards".to_owned()];
        assert_eq!(stripped("the RED HOUSE OF CARDS, lagoon", &values, "#"), "the #, lagoon");
        assert_eq!(
            stripped("\u{200b}\u{200b}\u{200b}", &["\u{200b}\u{200c}\u{200b}".to_owned()], "#")
                .chars()
                .count(),
            3
        );
    }

    proptest::proptest! {
        /// Nothing of a value is left, in whatever case it is written between whatever else.
        #[test]
        fn nothing_of_a_value_is_left(
            before in "[a-cİẞßKſ ı]{0,12}",
            value in "[a-cİẞßKſé]{3,8}",
            after in "[a-cİẞßKſ ı]{0,12}",
            case in 0..3,
        ) {
            let written = match case {
                0 => value.to_uppercase(),
                1 => value.to_lowercase(),
                _ => value.clone(),
            };
            let left = without(&format!("{before}{written}{after}"), &value);
            proptest::prop_assert!(left.contains('#'), "{left}");
            let wanted = Folded::of(&value).text;
            for piece in left.split('#') {
                proptest::prop_assert!(!Folded::of(piece).text.contains(&wanted), "{left}");
            }
        }
    }
}
