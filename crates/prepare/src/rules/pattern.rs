//! Patterns over words, read from the data files beside this module, and finding them in a text.
//!
//! ```text
//! @want = want to|wanna|going to      a name for a choice
//! [section]
//! 9! i ~2 @want kill|harm* myself     score, firm or not, then one element after the other
//! ```
//!
//! An element is a word, a choice `a|b`, or a choice in parentheses whose members may have several words; `*` ends the
//! beginning of a word, `~2` lets up to two words stand between, `?` after an element makes it optional. Words are
//! folded like the text. What is easy to get wrong: the first element decides where a pattern is tried, so it can be
//! neither optional nor a gap. The gaps of a pattern are bounded together, so a text takes linear time.

mod draft;

use super::text::{Text, Word};
use super::words::ByWord;
use draft::{Draft, DraftElement, DraftPiece, Names, choices};

/// Patterns that are looked for together.
pub(crate) struct Patterns {
    rules: Vec<Rule>,
    /// The words of all patterns, each with its number: numbers compare faster than words.
    numbers: ByWord<String, u32>,
    /// Rules by the number of their first word.
    by_word: Vec<Vec<u16>>,
    /// Rules whose first word is only a beginning, by its first letters.
    by_start: ByWord<[u8; START], Vec<u16>>,
}

/// One pattern and what it means.
pub(super) struct Rule {
    /// Where in the file it stands.
    pub(super) section: usize,
    /// How much it says, 0 to 10.
    pub(super) score: f32,
    /// Whether what stands around it takes nothing away.
    pub(super) firm: bool,
    elements: Vec<Element>,
}

/// Where a pattern was found.
pub(super) struct Hit<'p> {
    pub(super) rule: &'p Rule,
    /// The first word.
    pub(super) from: usize,
    /// The word after the last.
    pub(super) to: usize,
    /// Which words, counted from the first, a gap skipped.
    skipped: u64,
}

impl Hit<'_> {
    /// The words that stand between those of the pattern.
    pub(super) fn skipped(&self) -> impl Iterator<Item = usize> {
        (0..(self.to - self.from).min(64)).filter(|at| self.skipped >> at & 1 == 1).map(|at| self.from + at)
    }
}

/// Whether a pattern may reach over the end of a sentence.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Sentence,
    Text,
}

/// One place of a pattern: what may stand there.
struct Element {
    /// The most words that may stand before it.
    gap: usize,
    optional: bool,
    /// Single words by number, sorted.
    words: Vec<u32>,
    /// Beginnings of single words.
    starts: Vec<String>,
    /// Several words one after the other.
    phrases: Vec<Vec<Piece>>,
}

/// One word of a phrase.
enum Piece {
    Word(u32),
    Start(String),
}

impl Patterns {
    /// Reads a data file whose sections are exactly these. Says which line is wrong.
    pub(super) fn parse(data: &str, sections: &[&str]) -> Result<Self, String> {
        let mut patterns = Self {
            rules: Vec::new(),
            numbers: ByWord::default(),
            by_word: Vec::new(),
            by_start: ByWord::default(),
        };
        let mut names = Names::new();
        let mut section = None;
        for (number, line) in data.lines().enumerate() {
            let wrong = |what: &str| format!("line {}: {what}", number + 1);
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let at = sections.iter().position(|known| *known == name);
                section = Some(at.ok_or_else(|| wrong("no such section"))?);
            } else if let Some((name, choice)) = line.strip_prefix('@').and_then(|line| line.split_once('='))
            {
                let choices = choices(choice.trim(), &names).map_err(|what| wrong(&what))?;
                names.insert(name.trim().to_owned(), choices);
            } else {
                let section = section.ok_or_else(|| wrong("a pattern before the first section"))?;
                let draft = Draft::read(line, section, &names).map_err(|what| wrong(&what))?;
                patterns.add(draft);
            }
        }
        Ok(patterns)
    }

    fn add(&mut self, draft: Draft) {
        let id = u16::try_from(self.rules.len()).unwrap_or(u16::MAX);
        let elements: Vec<Element> =
            draft.elements.into_iter().map(|element| self.numbered(element)).collect();
        let Element { words, starts, phrases, .. } = &elements[0];
        let mut first_words = words.clone();
        let mut first_starts: Vec<&str> = starts.iter().map(String::as_str).collect();
        for phrase in phrases {
            match &phrase[0] {
                Piece::Word(number) => first_words.push(*number),
                Piece::Start(start) => first_starts.push(start),
            }
        }
        for number in first_words {
            let ids = &mut self.by_word[number as usize];
            if ids.last() != Some(&id) {
                ids.push(id);
            }
        }
        for word in first_starts {
            let ids = self.by_start.entry(start(word).unwrap_or_default()).or_default();
            if ids.last() != Some(&id) {
                ids.push(id);
            }
        }
        self.rules.push(Rule { section: draft.section, score: draft.score, firm: draft.firm, elements });
    }

    fn numbered(&mut self, draft: DraftElement) -> Element {
        let (mut words, mut starts, mut phrases) = (Vec::new(), Vec::new(), Vec::new());
        for mut choice in draft.choices {
            if choice.len() > 1 {
                phrases.push(choice.into_iter().map(|piece| self.piece(piece)).collect());
                continue;
            }
            match choice.pop().map(|piece| self.piece(piece)) {
                Some(Piece::Word(number)) => words.push(number),
                Some(Piece::Start(start)) => starts.push(start),
                None => {}
            }
        }
        words.sort_unstable();
        Element { gap: draft.gap, optional: draft.optional, words, starts, phrases }
    }

    fn piece(&mut self, draft: DraftPiece) -> Piece {
        if draft.start {
            return Piece::Start(draft.text);
        }
        let next = u32::try_from(self.by_word.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(draft.text).or_insert(next);
        if number == next {
            self.by_word.push(Vec::new());
        }
        Piece::Word(number)
    }

    /// Calls `found` for every pattern and place where it stands, once for each.
    pub(super) fn find(&self, text: &Text<'_>, reach: Reach, mut found: impl FnMut(Hit<'_>)) {
        let number = |word: &Word| self.numbers.get(text.plain(word)).copied().unwrap_or(UNKNOWN);
        let numbers: Vec<u32> = text.words().iter().map(number).collect();
        let mut possible = Possible::new(self, &numbers);
        for (from, word) in text.words().iter().enumerate() {
            let exact = self.by_word.get(numbers[from] as usize).into_iter().flatten();
            let begun =
                start(text.plain(word)).and_then(|start| self.by_start.get(&start)).into_iter().flatten();
            for id in exact.chain(begun) {
                let rule = &self.rules[usize::from(*id)];
                if !possible.is(*id, rule) {
                    continue;
                }
                if let Some((to, skipped)) =
                    (Try { text, numbers: &numbers, from, reach }).rest(&rule.elements, from, 0)
                {
                    found(Hit { rule, from, to, skipped });
                }
            }
        }
    }
}

/// Which rules a text can have at all: all of their words stand in it somewhere. Looked at once for each rule, so that
/// a common first word costs little.
struct Possible {
    present: Vec<bool>,
    known: Vec<Option<bool>>,
}

impl Possible {
    fn new(patterns: &Patterns, numbers: &[u32]) -> Self {
        let mut present = vec![false; patterns.by_word.len()];
        for number in numbers {
            if let Some(there) = present.get_mut(*number as usize) {
                *there = true;
            }
        }
        Self { present, known: vec![None; patterns.rules.len()] }
    }

    fn is(&mut self, id: u16, rule: &Rule) -> bool {
        let present = &self.present;
        let there = |piece: &Piece| match piece {
            Piece::Word(number) => present[*number as usize],
            Piece::Start(_) => true,
        };
        let can = |element: &Element| {
            element.optional
                || !element.starts.is_empty()
                || element.words.iter().any(|number| present[*number as usize])
                || element.phrases.iter().any(|phrase| phrase.iter().all(there))
        };
        *self.known[usize::from(id)].get_or_insert_with(|| rule.elements.iter().all(can))
    }
}

/// One try of a pattern at a place.
struct Try<'t> {
    text: &'t Text<'t>,
    numbers: &'t [u32],
    from: usize,
    reach: Reach,
}

impl Try<'_> {
    /// Where the pattern ends when `elements` follow from the word `at` on, and which words were skipped.
    fn rest(&self, elements: &[Element], at: usize, skipped: u64) -> Option<(usize, u64)> {
        let Some((element, after)) = elements.split_first() else {
            return Some((at, skipped));
        };
        let mut skipped_here = skipped;
        for place in at..=at + element.gap {
            // A gap does not reach over the end of a sentence either.
            if !self.reaches(place) {
                break;
            }
            for length in element.fits(self, place) {
                if let Some(found) = self.rest(after, place + length, skipped_here) {
                    return Some(found);
                }
            }
            skipped_here |= 1 << (place - self.from).min(63);
        }
        if element.optional { self.rest(after, at, skipped) } else { None }
    }

    /// Whether there is a word at a place, and no sentence ended between it and the one before.
    fn reaches(&self, place: usize) -> bool {
        let Some(word) = self.text.words().get(place) else { return false };
        self.reach == Reach::Text || place == self.from || !word.first
    }
}

impl Element {
    /// How many words of the text at a place are this element: at most one word, and phrases.
    fn fits<'f>(&'f self, at: &'f Try<'_>, place: usize) -> impl Iterator<Item = usize> + 'f {
        let plain = |place: usize| at.text.plain(&at.text.words()[place]);
        let one = self.words.binary_search(&at.numbers[place]).is_ok()
            || (!self.starts.is_empty() && self.starts.iter().any(|start| plain(place).starts_with(start)));
        let piece = move |(offset, piece): (usize, &Piece)| {
            at.reaches(place + offset)
                && match piece {
                    Piece::Word(number) => at.numbers[place + offset] == *number,
                    Piece::Start(start) => plain(place + offset).starts_with(start),
                }
        };
        let phrases = self.phrases.iter().filter(move |phrase| phrase.iter().enumerate().all(piece));
        phrases.map(Vec::len).chain(one.then_some(1))
    }
}

/// The letters by which a beginning is found.
fn start(word: &str) -> Option<[u8; START]> {
    word.as_bytes().first_chunk().copied()
}

/// The number of a word that no pattern has.
const UNKNOWN: u32 = u32::MAX;

/// Letters by which beginnings of words are found.
const START: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(data: &str, text: &str) -> Vec<(f32, usize, usize, Vec<usize>)> {
        let patterns = Patterns::parse(data, &["a", "b"]).unwrap();
        let mut found = Vec::new();
        patterns.find(&Text::read(text), Reach::Sentence, |hit| {
            found.push((hit.rule.score, hit.from, hit.to, hit.skipped().collect()));
        });
        found
    }

    #[test]
    fn patterns_are_found() {
        let data =
            "@want = want to|wanna\n[a]\n5 i ~2 @want (go home|leave)\n3! leav* early?\n[b]\nça va bien";
        assert_eq!(found(data, "So I do not want to go home"), [(5.0, 1, 8, vec![2, 3])]);
        assert_eq!(found(data, "I wanna leave. Early."), [(5.0, 0, 3, vec![]), (3.0, 2, 3, vec![])]);
        assert_eq!(found(data, "leaving early"), [(3.0, 0, 2, vec![])]);
        assert_eq!(found(data, "CA VA BIEN"), [(0.0, 0, 3, vec![])]);
        assert_eq!(found(data, "I. want to leave now"), [(3.0, 3, 4, vec![])]);
        assert_eq!(found(data, "I really do not want to leave").len(), 1);
    }

    #[test]
    fn wrong_data_names_its_line() {
        for (data, expected) in [
            ("a b", "line 1: a pattern before the first section"),
            ("[c]", "line 1: no such section"),
            ("[a]\n11 b", "line 2: a score is 0 to 10"),
            ("[a]\n1 b? c", "line 2: the first element is neither optional nor after a gap"),
            ("[a]\n1 ab* c", "line 2: the beginning of a first word has at least 3 letters"),
            ("[a]\n1 a ~5 b ~5 c ~5 d", "line 2: too many or too long gaps"),
            ("[a]\n1 a ~9 b", "line 2: a gap has at most 6 words"),
            ("[a]\n1 a ~1", "line 2: a gap at the end"),
            ("[a]\n1 @x b", "line 2: no choice is called x"),
            ("[a]\n1 (b c", "line 2: an open parenthesis"),
            ("[a]\n1 a|", "line 2: no choice: \"\""),
            ("[a]\n1 (a (b)|c)", "line 2: no choice: \"a (b)\""),
        ] {
            assert_eq!(Patterns::parse(data, &["a", "b"]).err().as_deref(), Some(expected), "{data}");
        }
    }

    #[test]
    fn long_runs_of_first_words_end() {
        let data = "[a]\n1 i ~6 i ~6 j";
        assert!(found(data, &"i ".repeat(5_000)).is_empty());
    }
}
