//! A text that comes in parts and is never held whole.
//!
//! Text is looked at in windows at fixed places, each with a margin of its neighbours on both sides; a find belongs
//! to the window that it begins in. The windows depend on the text alone and not on how it came, so a stream and a
//! whole give the same result by construction: [`crate::Redactor::redact_text`] is a stream of one part. Easy to get
//! wrong: a find longer than the margin ends at the margin; private keys, the longest there are, are shorter.

use crate::finding::{self, Finding, Hit};
use crate::placeholders::Placeholders;
use crate::{Redacted, Redactor};

/// Redacts a text part by part.
///
/// ```
/// # use confidant_redact::{Options, Redactor, Stream};
/// let redactor = Redactor::new(Options::default())?;
/// let mut stream = Stream::new(&redactor);
/// let mut text = stream.push("write to jane@exa");
/// text += &stream.push("mple.org");
/// let rest = stream.finish();
/// assert_eq!(text + &rest.text, "write to <REDACTED:EMAIL>");
/// # Ok::<(), confidant_redact::OpenError>(())
/// ```
#[derive(Debug)]
pub struct Stream<'r> {
    redactor: &'r Redactor,
    /// Text from `margin` before the current window on.
    held: String,
    /// Where in `held` the current window begins.
    window: usize,
    /// Where in `held` text begins that is not given out yet: inside the window after a find that reaches into it.
    given: usize,
    /// Code points given out already.
    points: usize,
    placeholders: Placeholders,
    findings: Vec<Finding>,
}

impl<'r> Stream<'r> {
    /// An empty stream.
    #[must_use]
    pub fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            held: String::new(),
            window: 0,
            given: 0,
            points: 0,
            placeholders: Placeholders::default(),
            findings: Vec::new(),
        }
    }

    /// Takes a part and gives out what is certain by now.
    pub fn push(&mut self, part: &str) -> String {
        let mut out = String::new();
        let mut rest = part;
        while !rest.is_empty() {
            // One window at a time, however large the part.
            let room = (self.window + WINDOW + MARGIN + SLACK).saturating_sub(self.held.len());
            let (now, later) = rest.split_at(floor(rest, room.max(SLACK)));
            self.held.push_str(now);
            rest = later;
            while self.held.len() >= self.window + WINDOW + MARGIN + SLACK {
                let end = floor(&self.held, self.window + WINDOW);
                self.give(end, &mut out);
            }
        }
        out
    }

    /// Gives out the rest, with all findings.
    #[must_use]
    pub fn finish(mut self) -> Redacted {
        let mut text = String::new();
        let end = self.held.len();
        self.give(end, &mut text);
        let blocked = finding::blocks(&self.findings);
        let report = finding::report(&self.findings);
        Redacted { text, findings: self.findings, blocked, report }
    }

    /// Looks at the window that ends at `end` and moves on to the next one.
    fn give(&mut self, end: usize, out: &mut String) {
        let seen = floor(&self.held, end + MARGIN);
        let hits = self.redactor.hits(&self.held[..seen]);
        let whole = end == self.held.len();
        for hit in hits {
            if hit.end > self.given && (hit.start < end || whole) {
                self.replace(&Hit { start: hit.start.max(self.given), ..hit }, out);
            }
        }
        if self.given < end {
            let text = &self.held[self.given..end];
            self.points += text.chars().count();
            out.push_str(text);
            self.given = end;
        }
        let drop = floor(&self.held, end.saturating_sub(MARGIN));
        self.held.drain(..drop);
        self.window = end - drop;
        self.given -= drop;
    }

    fn replace(&mut self, hit: &Hit, out: &mut String) {
        let before = &self.held[self.given..hit.start];
        let value = &self.held[hit.start..hit.end];
        out.push_str(before);
        let numbering = self.redactor.options.numbering;
        out.push_str(&self.placeholders.placeholder(numbering, hit.rule.label, value));
        let start = self.points + before.chars().count();
        self.points = start + value.chars().count();
        self.given = hit.end;
        let (rule, tier) = (hit.rule.id, hit.rule.tier);
        self.findings.push(Finding { rule, tier, start, end: self.points, path: None });
    }
}

/// The hits of a whole text in the same windows, in bytes. `look` says what is in a window with its margins.
pub(crate) fn hits(text: &str, look: impl Fn(&str) -> Vec<Hit>) -> Vec<Hit> {
    let (mut start, mut given) = (0, 0);
    let mut all = Vec::new();
    loop {
        let last = text.len() < start + WINDOW + MARGIN + SLACK;
        let end = if last { text.len() } else { floor(text, start + WINDOW) };
        let from = floor(text, start.saturating_sub(MARGIN));
        let seen = floor(text, end + MARGIN);
        for hit in look(&text[from..seen]) {
            let hit = Hit { start: hit.start + from, end: hit.end + from, ..hit };
            let begun = given.max(start);
            if hit.end > begun && (hit.start < end || last) {
                given = hit.end;
                all.push(Hit { start: hit.start.max(begun), ..hit });
            }
        }
        if last {
            return all;
        }
        start = end;
    }
}

/// The nearest boundary of a character at or before a place.
fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

const WINDOW: usize = 512 * 1024;
const MARGIN: usize = 24 * 1024;
/// More than the bytes of a character, so that a boundary of one is never missed.
const SLACK: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn a_stream_gives_what_the_whole_gives() {
        let redactor = Redactor::new(Options::default()).unwrap();
        let mut text = String::new();
        for number in 0..12_000 {
            text.push_str(&format!("line {number} \u{e9} of jane{number}@example.org and more words\n"));
        }
        let whole = redactor.redact_text(&text);
        assert_eq!(whole.findings.len(), 12_000);
        for size in [1_000, 70_001, 400_000] {
            let mut stream = Stream::new(&redactor);
            let mut given = String::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(floor(rest, size));
                given.push_str(&stream.push(now));
                rest = later;
            }
            let last = stream.finish();
            given.push_str(&last.text);
            assert!(given == whole.text && last.findings == whole.findings, "parts of {size}");
        }
    }
}
