//! Descriptions and samples of every type: what `docs/PROTOCOL.md` and the tests are made from.
//!
//! Only with the feature `describe`; no program has it. Easy to get wrong: a description by hand. What is said about a
//! field is its doc comment, its limit is the constant that the reader has, and a sample is a value that was written.

mod bodies;
mod page;

pub use bodies::{bodies, read_body};
pub use page::page;

/// Types with fields, in the order in which they are met.
#[derive(Debug, Default)]
pub struct Book {
    entries: Vec<Entry>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) doc: String,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Object(Vec<Field>),
    Choice(Vec<Field>),
    Words(Vec<(&'static str, String)>),
}

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    pub(crate) name: &'static str,
    pub(crate) what: String,
    pub(crate) optional: bool,
    pub(crate) doc: &'static [&'static str],
}

/// An event, for the page.
#[derive(Debug)]
pub(crate) struct Described<E> {
    pub(crate) name: &'static str,
    pub(crate) why: &'static [&'static str],
    pub(crate) describe: fn(&mut Book) -> String,
    pub(crate) sample: E,
}

/// A body that was made, written, read, and written again.
#[derive(Debug)]
pub struct Made {
    /// Its JSON.
    pub json: Vec<u8>,
    /// Its JSON after it was read.
    pub again: Vec<u8>,
    /// Its JSON over several lines, as the page has it.
    pub pretty: String,
    /// What `Debug` shows of it.
    pub debug: String,
}

impl Book {
    pub(crate) fn object(
        &mut self,
        name: &'static str,
        doc: &[&str],
        fields: impl FnOnce(&mut Self) -> Vec<Field>,
    ) -> String {
        self.enter(name, doc, |book| Content::Object(fields(book)))
    }

    pub(crate) fn choice(
        &mut self,
        name: &'static str,
        doc: &[&str],
        cases: impl FnOnce(&mut Self) -> Vec<Field>,
    ) -> String {
        self.enter(name, doc, |book| Content::Choice(cases(book)))
    }

    pub(crate) fn words(
        &mut self,
        name: &'static str,
        doc: &[&str],
        words: &[(&'static str, &[&str])],
    ) -> String {
        let words = words.iter().map(|(word, doc)| (*word, joined(doc))).collect();
        self.enter(name, doc, |_| Content::Words(words))
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    fn enter(
        &mut self,
        name: &'static str,
        doc: &[&str],
        content: impl FnOnce(&mut Self) -> Content,
    ) -> String {
        if self.get(name).is_none() {
            // Entered before its parts, so that it stands before them.
            self.entries.push(Entry { name, doc: joined(doc), content: Content::Words(Vec::new()) });
            let content = content(self);
            let entry = self.entries.iter_mut().find(|entry| entry.name == name);
            entry.expect("entered above").content = content;
        }
        format!("[{name}](#{})", name.to_lowercase())
    }
}

/// Doc comments as one text: lines of a paragraph joined, paragraphs kept apart.
pub(crate) fn joined(doc: &[&str]) -> String {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    let paragraphs = lines.split(|line| line.is_empty()).map(|part| part.join(" "));
    paragraphs.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// A number with its thousands apart.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// What values are made from: bytes of a test, or nothing for a sample, which has every field and one of everything.
#[derive(Debug)]
pub struct Dice<'a> {
    bytes: Option<&'a [u8]>,
    count: u8,
}

impl<'a> Dice<'a> {
    /// For samples.
    pub fn sample() -> Self {
        Self { bytes: None, count: 0 }
    }

    /// For tests: the same bytes give the same value.
    pub fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes: Some(bytes), count: 0 }
    }

    /// A number up to `max`.
    pub fn number(&mut self, max: u64) -> u64 {
        match self.bytes {
            None => 1.min(max),
            Some(_) => match self.roll() % 8 {
                0 => max,
                1 => 0,
                _ => u64::from_be_bytes(self.bytes()) % (max + 1),
            },
        }
    }

    /// One of `len`.
    pub fn choice(&mut self, len: usize) -> usize {
        if self.bytes.is_none() { 0 } else { usize::from(self.roll()) % len }
    }

    /// A value that fits: the first of a few tries, or the sample.
    pub(crate) fn fitting<T>(&mut self, make: impl Fn(&mut Dice<'_>) -> T, fits: impl Fn(&T) -> bool) -> T {
        let tries = (0..4).map(|_| make(self)).find(|value| fits(value));
        tries.unwrap_or_else(|| make(&mut Dice::sample()))
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.bytes.is_none() || self.roll().is_multiple_of(2)
    }

    pub(crate) fn many(&mut self, min: usize, max: usize) -> usize {
        let more = if self.bytes.is_none() { 1 } else { usize::from(self.roll() % 4) };
        more.clamp(min, max)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        if self.bytes.is_none() {
            self.count = self.count.wrapping_add(1);
            return [self.count; N];
        }
        std::array::from_fn(|_| self.roll())
    }

    pub(crate) fn text(&mut self) -> String {
        self.pick(&["words for people", "", "\u{1f44b} \"quoted\" \\ \n \u{0}", "ä"], |text| {
            Some(text.to_owned())
        })
    }

    pub(crate) fn pick<T>(&mut self, from: &[&str], parse: impl Fn(&str) -> Option<T>) -> T {
        parse(from[self.choice(from.len())]).expect("every one of these is valid")
    }

    /// The next byte; when they are spent, a count, so that ids differ.
    fn roll(&mut self) -> u8 {
        match self.bytes.and_then(|bytes| bytes.split_first()) {
            Some((first, rest)) => {
                self.bytes = Some(rest);
                *first
            }
            None => {
                self.count = self.count.wrapping_add(1);
                self.count
            }
        }
    }
}
