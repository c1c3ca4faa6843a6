//! JSON on its way in from a server, less what nobody will read.
//!
//! A result of ten megabytes is mostly one long text, or a long list, of which a model sees the beginning. So strings are
//! cut at a length, and when a message has grown large, the rest of whatever list or object it is in is left out, while
//! the bytes go by and before any of them is kept. What comes out is the same JSON with less in it: the message still
//! parses, still has its id, and finds the call that waits for it. Easy to get wrong: a cut inside an escape, a character
//! or a pair of surrogates would spoil the message, and one near the top would lose its id.
//!
//! What is no JSON comes out as something that is none, either. A message that stays too long, or a stream that has too
//! many of them, is an error, and ends the connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How a stream is divided into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One to a line.
    Lines,
    /// Server-sent events, with an empty line after each.
    Events,
    /// One, and that is all.
    Whole,
}

/// Why a stream is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Overrun {
    /// A message too long even after trimming.
    #[error("a message is too long")]
    TooLong,
    /// Too many messages in too short a time.
    #[error("too many messages")]
    TooMany,
}

/// What became of a connection's streams, for those who watch over it.
#[derive(Debug, Default)]
pub(super) struct Wire {
    overrun: OnceLock<Overrun>,
    noticed: Notify,
    shortened: AtomicU64,
}

impl Wire {
    /// How many messages have been shortened by more than strings so far.
    pub(super) fn shortened(&self) -> u64 {
        self.shortened.load(Ordering::Relaxed)
    }

    /// Says that the connection is not to be used any more.
    pub(super) fn overran(&self, overrun: Overrun) {
        let _ = self.overrun.set(overrun);
        self.noticed.notify_one();
    }

    pub(super) fn overrun_so_far(&self) -> Option<Overrun> {
        self.overrun.get().copied()
    }

    /// Waits until the connection is not to be used any more.
    pub(super) async fn overrun(&self) -> Overrun {
        loop {
            if let Some(overrun) = self.overrun.get() {
                return *overrun;
            }
            self.noticed.notified().await;
        }
    }
}

/// One stream that is being trimmed.
#[derive(Debug)]
pub(super) struct Trim {
    framing: Framing,
    wire: Arc<Wire>,
    /// The most bytes of a string, decoded, that are kept. Those beyond may be left out.
    longest: usize,
    pace: Pace,
    place: Place,
    /// How many lists and objects are open.
    depth: u32,
    /// The depth of the list or object whose rest is left out.
    leaving: Option<u32>,
    /// Bytes of this message that came in, and that were kept.
    came: usize,
    kept: usize,
    line: Line,
}

/// Where in the JSON the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Between strings.
    Outside,
    /// In a string of which this much was kept; `half` is a surrogate that waits for its other half.
    Inside {
        kept: usize,
        half: bool,
    },
    /// Behind a backslash.
    Escape {
        kept: usize,
    },
    /// In the digits of `\u`, of which these have been read.
    Unicode {
        kept: usize,
        unit: u16,
        digits: u8,
    },
    /// In the part of a string that is left out, and behind a backslash there.
    Rest,
    RestEscape,
}

/// The line that is being read, for [`Framing::Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Empty,
    /// Empty, after a carriage return: a line feed belongs to the line before.
    AfterReturn,
    Filled,
}

impl Trim {
    pub(super) fn new(framing: Framing, longest: usize, wire: Arc<Wire>) -> Self {
        Self {
            framing,
            wire,
            longest,
            pace: Pace::new(MESSAGES_AT_ONCE, MESSAGES_PER_SECOND),
            place: Place::Outside,
            depth: 0,
            leaving: None,
            came: 0,
            kept: 0,
            line: Line::Empty,
        }
    }

    /// Takes the next bytes and appends what is kept of them.
    pub(super) fn take(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), Overrun> {
        self.read(input, output).inspect_err(|overrun| {
            // What is no stream is over with this message, and so is the trouble.
            if self.framing != Framing::Whole {
                self.wire.overran(*overrun);
            }
        })
    }

    fn read(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), Overrun> {
        let large = LARGE.max(self.longest.saturating_mul(2));
        for &byte in input {
            self.came += 1;
            if self.is_kept(byte, large) {
                output.push(byte);
                self.kept += 1;
            }
            if self.kept > large.saturating_mul(4) || self.came > large.saturating_mul(128) {
                return Err(Overrun::TooLong);
            }
            if self.is_end(byte) {
                (self.came, self.kept, self.depth, self.leaving) = (0, 0, 0, None);
                if !self.pace.allows(Instant::now()) {
                    return Err(Overrun::TooMany);
                }
            }
        }
        Ok(())
    }

    fn is_kept(&mut self, byte: u8, large: usize) -> bool {
        // No string goes on behind the end of a line, so what looked like one was none.
        if byte == b'\n' || byte == b'\r' {
            self.place = Place::Outside;
            return true;
        }
        self.place = match self.place {
            Place::Outside => {
                self.step_outside(byte, large);
                match byte {
                    b'"' if self.leaving.is_some() => Place::Rest,
                    b'"' => Place::Inside { kept: 0, half: false },
                    _ => Place::Outside,
                }
            }
            Place::Inside { .. } | Place::Rest if byte == b'"' => Place::Outside,
            Place::Inside { kept, half: false } if kept >= self.longest && !continues_a_character(byte) => {
                if byte == b'\\' {
                    Place::RestEscape
                } else {
                    Place::Rest
                }
            }
            Place::Inside { kept, .. } if byte == b'\\' => Place::Escape { kept },
            Place::Inside { kept, .. } => Place::Inside { kept: kept + 1, half: false },
            Place::Escape { kept } if byte == b'u' => Place::Unicode { kept, unit: 0, digits: 0 },
            Place::Escape { kept } => Place::Inside { kept: kept + 1, half: false },
            Place::Unicode { kept, unit, digits } => {
                let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
                let unit = (unit << 4) | digit.unwrap_or_default();
                if digits < 3 {
                    Place::Unicode { kept, unit, digits: digits + 1 }
                } else {
                    Place::Inside { kept: kept + 1, half: (0xD800..0xDC00).contains(&unit) }
                }
            }
            Place::Rest if byte == b'\\' => Place::RestEscape,
            Place::Rest | Place::RestEscape => Place::Rest,
        };
        self.leaving.is_none() && !matches!(self.place, Place::Rest | Place::RestEscape)
    }

    /// Follows lists and objects, and decides which are not read to their end.
    fn step_outside(&mut self, byte: u8, large: usize) {
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.leaving == Some(self.depth) {
                    self.leaving = None;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.leaving.is_none() && self.depth >= TOP && self.kept > large => {
                self.leaving = Some(self.depth);
                self.wire.shortened.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Whether a message ends with this byte.
    fn is_end(&mut self, byte: u8) -> bool {
        match self.framing {
            Framing::Whole => false,
            Framing::Lines => byte == b'\n',
            Framing::Events => {
                let before = self.line;
                self.line = match byte {
                    b'\n' => Line::Empty,
                    b'\r' => Line::AfterReturn,
                    _ => Line::Filled,
                };
                match byte {
                    b'\n' => before == Line::Empty,
                    b'\r' => before != Line::Filled,
                    _ => false,
                }
            }
        }
    }
}

/// A limit on how often something happens, with some to spare for when it happens all at once.
#[derive(Debug)]
pub(super) struct Pace {
    most: u32,
    per_second: u32,
    left: f64,
    at: Option<Instant>,
}

impl Pace {
    pub(super) fn new(most: u32, per_second: u32) -> Self {
        Self { most, per_second, left: f64::from(most), at: None }
    }

    /// Whether it may happen once more, now.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let gone = self.at.replace(now).map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let earned = gone.as_secs_f64() * f64::from(self.per_second);
        self.left = (self.left + earned).min(f64::from(self.most)) - 1.0;
        self.left >= 0.0
    }
}

/// Whether this byte is one of those after the first of a character.
fn continues_a_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Nothing is left out of a message's own object or of its result's: ids, errors and flags stand there.
const TOP: u32 = 3;
/// A message of more than this, or of two longest strings, is not read to the end of its lists: a list of all tools of a
/// large server fits, and parsing takes some thirty times as much. If four times as much is left of it, or it is 128 times
/// as long, it is not read at all.
const LARGE: usize = 512 * 1024;
/// Servers log and report progress; none has a reason to do it this often.
const MESSAGES_AT_ONCE: u32 = 2000;
const MESSAGES_PER_SECOND: u32 = 200;

#[cfg(test)]
mod tests;
