//! A text in, a redacted text out.

use std::ops::Range;

use serde::Serialize;

use crate::dictionary::Dictionary;
use crate::encoded::Decoded;
use crate::finding::{self, Count, Finding, Hit, Tier};
use crate::normalise::{Escapes, Those, View};
use crate::placeholders::{self, Numbering, Placeholders};
use crate::rules::{self, Family, NAME, PRIVATE_KEY_BODY, Rule};
use crate::scan::Which;
use crate::stream::Stream;
use crate::{encoded, names, scan};

/// What to look for beyond the rules, and how to replace it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Whether placeholders are numbered.
    pub numbering: Numbering,
    /// Look for people's names too: best effort, and much slower than everything else.
    pub names: bool,
    /// Words and phrases that are always replaced.
    pub always: Vec<String>,
    /// Values that are left alone, unless they are critical.
    pub never: Vec<String>,
}

/// Why a redactor cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The list of words to replace always does not fit an automaton.
    #[error("the list of words to replace is too long; hint: shorten it")]
    TooManyWords,
}

/// A redacted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Redacted {
    /// The text with placeholders.
    pub text: String,
    /// What was found, in the order of the text.
    pub findings: Vec<Finding>,
    /// Whether something critical was found: then nothing of the text may be stored durably.
    pub blocked: bool,
    /// How often each rule held.
    pub report: Vec<Count>,
}

/// Finds and replaces. Cheap to make (what all share is made at the first text), and shared by all threads that hold a reference.
#[derive(Debug)]
pub struct Redactor {
    pub(crate) options: Options,
    dictionary: Dictionary,
}

impl Redactor {
    /// A redactor with these options.
    ///
    /// # Errors
    ///
    /// When the lists of words are too long to search for.
    pub fn new(options: Options) -> Result<Self, OpenError> {
        let dictionary = Dictionary::open(&options.always, &options.never)?;
        Ok(Self { options, dictionary })
    }

    /// Redacts a text.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> Redacted {
        let mut stream = Stream::new(self);
        let mut redacted = stream.push(text);
        let rest = stream.finish();
        redacted.push_str(&rest.text);
        Redacted { text: redacted, ..rest }
    }

    /// A text without what is found in it; nothing if that is critical, since what stands around it may be, too.
    #[must_use]
    pub fn redact_unless_critical(&self, text: &str) -> Option<String> {
        let redacted = self.redact_text(text);
        let critical = redacted.findings.iter().any(|finding| finding.tier == Tier::Critical);
        (!critical).then_some(redacted.text)
    }

    /// What is found in a text that is short enough to be looked at as a whole: sorted, apart from each other, at
    /// boundaries of characters, and such that nothing is found in what is left.
    pub(crate) fn hits(&self, text: &str) -> Vec<Hit> {
        let mut hits = self.look(text, &mut Layers::over(text), Wanted::Everything);
        for _ in 0..MOST_ROUNDS {
            if hits.is_empty() {
                break;
            }
            // A replacement changes what stands beside it, and so what is found there.
            let left = Left::of(text, &hits);
            let more = self.look(&left.text, &mut Layers::over(&left.text), Wanted::Everything);
            let mut more = more.into_iter().filter_map(|hit| left.place_back(hit)).peekable();
            if more.peek().is_none() {
                break;
            }
            hits.extend(more);
            hits.retain(|hit| text.get(hit.start..hit.end).is_some());
            hits = finding::join(hits);
        }
        hits
    }

    /// What is critical in a text that is short enough to be looked at as a whole.
    pub(crate) fn critical_hits(&self, text: &str) -> Vec<Hit> {
        self.look(text, &mut Layers::over(text), Wanted::Critical)
    }

    /// One look at a text, at its other readings, and at what is encoded in them.
    fn look(&self, text: &str, layers: &mut Layers, wanted: Wanted) -> Vec<Hit> {
        let mut hits = Vec::new();
        let plain = View::plain(text);
        self.look_at(&plain, &mut hits);
        self.look_inside(&plain, layers, &mut hits, wanted);
        self.look_further(&plain, layers, &mut hits, wanted);
        match wanted {
            Wanted::Everything if self.options.names => {
                let found = names::find(text).into_iter();
                hits.extend(found.map(|range| Hit { start: range.start, end: range.end, rule: NAME }));
            }
            Wanted::Everything => {}
            Wanted::Critical => hits.retain(|hit| hit.rule.tier == Tier::Critical),
        }
        let kept = placeholders::find(text);
        hits.iter_mut().for_each(|hit| snap(hit, text));
        hits.retain_mut(|hit| {
            let sound = text.get(hit.start..hit.end).is_some_and(|value| !value.is_empty());
            sound && stands_beside(&kept, hit) && !self.dictionary.spares(hit, text)
        });
        finding::join(hits)
    }

    /// The other readings of a view: without escapes, until none is left, without colours, and with its lines joined.
    fn look_further(&self, plain: &View<'_>, layers: &mut Layers, hits: &mut Vec<Hit>, wanted: Wanted) {
        let mut views: Vec<(View<'static>, Escapes)> = Vec::new();
        for escapes in Escapes::ALL {
            views.extend(plain.undone(escapes, Those::All).map(|view| (view, escapes)));
        }
        let unescaped =
            views.iter().find(|(_, escapes)| *escapes == Escapes::Backslash).map(|(view, _)| view);
        for view in std::iter::once(plain).chain(unescaped) {
            if let Some(view) = view.uncoloured() {
                self.look_at(&view, hits);
            }
            if let Some(view) = view.joined() {
                look_at_joined(&view, hits);
                self.look_inside(&view, layers, hits, Wanted::Critical);
            }
        }
        let first = views.len();
        let mut at = 0;
        while let Some((view, last)) = views.get(at) {
            // A view of a view is work that only what is wrapped twice asks for.
            if at >= first && !layers.take(view.bytes().len()) {
                break;
            }
            self.look_at(view, hits);
            self.look_inside(view, layers, hits, wanted);
            let deeper = Escapes::ALL.into_iter().filter_map(|escapes| {
                // Two kinds side by side are undone in one order; one that hides another, in any.
                let which = if escapes > *last { Those::All } else { Those::Uncovered };
                Some((view.undone(escapes, which)?, escapes))
            });
            let deeper: Vec<(View<'static>, Escapes)> =
                if at < MOST_VIEWS { deeper.collect() } else { Vec::new() };
            views.extend(deeper);
            at += 1;
        }
    }

    fn look_at(&self, view: &View<'_>, hits: &mut Vec<Hit>) {
        let mut found = Vec::new();
        scan::scan(view.bytes(), Which::All, &mut found);
        self.dictionary.scan(view.bytes(), &mut found);
        hits.extend(found.into_iter().map(|hit| in_place(view, hit)));
    }

    /// What base64 and hexadecimal hide, in as many layers as there are.
    fn look_inside(&self, view: &View<'_>, layers: &mut Layers, hits: &mut Vec<Hit>, wanted: Wanted) {
        // What reads the same in the text, and between the same signs, was looked at there.
        let is_new = |run: Range<usize>| {
            !view.is_reading() || view.is_changed(run.start.saturating_sub(1)..run.end + 1)
        };
        for (range, decoded) in encoded::runs(view.bytes(), is_new) {
            let rule = match decoded {
                Decoded::Key => Some(PRIVATE_KEY_BODY),
                Decoded::Text(text) => self.worst_in(&text, layers, wanted),
            };
            if let Some(rule) = rule {
                let place = view.place(range);
                hits.push(Hit { start: place.start, end: place.end, rule });
            }
        }
    }

    /// The worst that a decoded text holds.
    fn worst_in(&self, decoded: &str, layers: &mut Layers, wanted: Wanted) -> Option<&'static Rule> {
        if layers.depth == MOST_LAYERS || !layers.take(decoded.len()) {
            return None;
        }
        layers.depth += 1;
        let mut found = self.look(decoded, layers, wanted);
        layers.depth -= 1;
        // The head of a JSON web token names its key, often like a person; `jwt` judges it.
        if decoded.starts_with("{\"alg\"") || decoded.starts_with("{\"typ\"") {
            found.retain(|hit| !matches!(hit.rule.family, Family::Personal | Family::Loose));
        }
        found.iter().max_by_key(|hit| (hit.rule.tier, hit.rule.family.sureness())).map(|hit| hit.rule)
    }
}

/// What is believed in a view of joined lines.
fn look_at_joined(view: &View<'_>, hits: &mut Vec<Hit>) {
    let mut found = Vec::new();
    scan::scan(view.bytes(), Which::Joined, &mut found);
    found.retain(|hit| rules::survives_joining(hit.rule, &view.bytes()[hit.start..hit.end]));
    hits.extend(found.into_iter().map(|hit| in_place(view, hit)));
}

/// A hit of a view, where it is in the text.
fn in_place(view: &View<'_>, hit: Hit) -> Hit {
    let place = view.place(hit.start..hit.end);
    Hit { start: place.start, end: place.end, ..hit }
}

/// How deep a look is, and how much more may be unwrapped in it. Every layer of base64 is shorter than what it was in, so
/// an honest text is unwrapped to its core; what is made to take long ends here.
#[derive(Debug)]
struct Layers {
    depth: usize,
    /// Bytes.
    left: usize,
}

impl Layers {
    fn over(text: &str) -> Self {
        Self { depth: 0, left: LEAST_WORK + MOST_WORK * text.len() }
    }

    /// Whether so many bytes more may be looked at.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Everything,
    /// For what is looked at once more; names, the slowest, are none of it.
    Critical,
}

/// Takes in the whole of a character that a find cuts in two.
fn snap(hit: &mut Hit, text: &str) {
    hit.end = hit.end.min(text.len());
    while !text.is_char_boundary(hit.start) {
        hit.start -= 1;
    }
    while !text.is_char_boundary(hit.end) {
        hit.end += 1;
    }
}

/// Whether a find is more than what placeholders have taken the place of. What is critical may have some inside, such as
/// the address in the comment of a key, and then takes them with it, whole.
fn stands_beside(kept: &[Range<usize>], hit: &mut Hit) -> bool {
    let first = kept.partition_point(|range| range.end <= hit.start);
    let touched = kept[first..].iter().take_while(|range| range.start < hit.end);
    let Some((start, end)) =
        touched.map(|range| (range.start, range.end)).reduce(|first, last| (first.0, last.1))
    else {
        return true;
    };
    let single = kept[first].end == end;
    if hit.rule.tier != Tier::Critical || (single && start <= hit.start && hit.end <= end) {
        return false;
    }
    (hit.start, hit.end) = (hit.start.min(start), hit.end.max(end));
    true
}

/// What is left around each hit after replacing. Farther off nothing has changed, so that is not in it.
#[derive(Debug, Default)]
struct Left {
    text: String,
    pieces: Vec<Piece>,
    /// Where in it something was left out.
    cuts: Vec<usize>,
}

/// A stretch of what is left.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins in what is left.
    at: usize,
    /// Where it begins in the text.
    start: usize,
    /// Where what it replaces ends in the text, if it is a placeholder.
    end: Option<usize>,
}

impl Left {
    fn of(text: &str, hits: &[Hit]) -> Self {
        let mut left = Self::default();
        let mut at = 0;
        left.begin(0, None);
        let mut placeholders = Placeholders::default();
        for (index, hit) in hits.iter().enumerate() {
            let from = blank(text, hit.start.saturating_sub(AROUND));
            if from > at {
                left.cuts.push(left.text.len());
                left.text.push('\n');
                left.begin(from, None);
                at = from;
            }
            left.text.push_str(&text[at..hit.start]);
            left.begin(hit.start, Some(hit.end));
            left.text.push_str(&placeholders.placeholder(Numbering::None, hit.rule.label, ""));
            at = hit.end;
            left.begin(at, None);
            let next = hits.get(index + 1).map_or(text.len(), |next| next.start);
            let until = if at + AROUND >= next { next } else { blank(text, at + AROUND).max(at) };
            left.text.push_str(&text[at..until]);
            at = until;
        }
        left
    }

    fn begin(&mut self, start: usize, end: Option<usize>) {
        self.pieces.push(Piece { at: self.text.len(), start, end });
    }

    /// A hit in what was left, in terms of the text before. A placeholder is in it as a whole or not at all. What goes
    /// over a cut is no hit of the text.
    fn place_back(&self, hit: Hit) -> Option<Hit> {
        let cut = self.cuts.partition_point(|cut| *cut < hit.start);
        if self.cuts.get(cut).is_some_and(|cut| *cut < hit.end) {
            return None;
        }
        let piece =
            |at: usize| self.pieces[self.pieces.partition_point(|piece| piece.at <= at).saturating_sub(1)];
        let last = hit.end - 1;
        let (first, second) = (piece(hit.start), piece(last));
        let start = first.start + if first.end.is_some() { 0 } else { hit.start - first.at };
        Some(Hit { start, end: second.end.unwrap_or(second.start + last - second.at + 1), ..hit })
    }
}

/// A blank at or before a place, if one is near; else a boundary of a character.
fn blank(text: &str, at: usize) -> usize {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let back = text.as_bytes()[..at].iter().rev().take(AROUND / 4).position(u8::is_ascii_whitespace);
    back.map_or(at, |back| at - back)
}

/// How far a replacement can be felt.
const AROUND: usize = 320;
/// Base64 in base64 in base64: an eighth of the text is left by then.
const MOST_LAYERS: usize = 16;
/// Escapes in escapes: readings of one text that are read further.
const MOST_VIEWS: usize = 16;
/// How many times its length is unwrapped of a text, and how much of a short one.
const MOST_WORK: usize = 8;
const LEAST_WORK: usize = 64 * 1024;
/// It takes one to find that nothing is left; more only where someone tries.
const MOST_ROUNDS: usize = 8;
