//! Lists of words in sections: `[name]`, then words. Folded like the texts they are compared with.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::text::folded_words;

/// The sections of a data file, each with its words as they stand.
pub(super) fn sections(data: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in data.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name, Vec::new()));
        } else if let Some((_, words)) = sections.last_mut() {
            words.extend(line.split_whitespace());
        }
    }
    sections
}

/// What is known of words. Looking a word up is most of what the rules do, so it is fast rather than safe against chosen
/// keys: what is in these maps is ours alone.
pub(super) type ByWord<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;

/// Eight bytes at a time, as rustc hashes names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..piece.len()].copy_from_slice(piece);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(eight)).wrapping_mul(0xf135_7aea_2e62_a9c5);
        }
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

/// Words that say nothing about a subject, each with the languages that have it.
pub(super) struct StopWords {
    languages: Vec<&'static str>,
    words: ByWord<String, u32>,
}

impl StopWords {
    fn read(data: &'static str) -> Self {
        let mut stop = Self { languages: Vec::new(), words: ByWord::default() };
        for (name, words) in sections(data) {
            let bit = stop.bit(name);
            for word in words.into_iter().flat_map(folded_words) {
                *stop.words.entry(word).or_default() |= bit;
            }
        }
        stop
    }

    /// The bit of a section's language, a new one if it has none yet.
    fn bit(&mut self, section: &'static str) -> u32 {
        if section == ALL {
            return 0;
        }
        let language = section.trim_end_matches('+');
        let known = self.languages.iter().position(|known| *known == language);
        let at = known.unwrap_or_else(|| {
            self.languages.push(language);
            self.languages.len() - 1
        });
        1 << at
    }

    /// Whether a folded word says nothing about a subject.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words.contains_key(word)
    }

    /// The languages that have a word, as bits in the order of [`Self::languages`].
    pub(super) fn languages_of(&self, word: &str) -> u32 {
        self.words.get(word).copied().unwrap_or(0)
    }

    /// The languages that have words here.
    pub(super) fn languages(&self) -> &[&'static str] {
        &self.languages
    }
}

/// The words of `data/stop_words.txt`.
pub(super) static STOP_WORDS: LazyLock<StopWords> =
    LazyLock::new(|| StopWords::read(include_str!("../data/stop_words.txt")));

/// The section of words that tell no language.
const ALL: &str = "all";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_read() {
        let stop = &*STOP_WORDS;
        assert!(stop.languages().len() > 15 && stop.languages().len() < 32);
        assert!(stop.has("please") && stop.has("fur") && !stop.has("database"));
        let named = |word: &str| -> Vec<&str> {
            let bits = stop.languages_of(word);
            let has = |(at, name): (usize, &&'static str)| (bits >> at & 1 == 1).then_some(*name);
            stop.languages().iter().enumerate().filter_map(has).collect()
        };
        assert_eq!(named("nicht"), ["de"]);
        assert_eq!(named("the"), ["en"]);
        assert_eq!(named("weiter"), ["de"]);
        assert!(named("ok").is_empty() && stop.has("ok"));
    }
}
