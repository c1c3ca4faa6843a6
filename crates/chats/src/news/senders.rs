//! What is heard of other gateways, put together again, and what of it is missing.
//!
//! Each gateway counts its messages. One that comes twice was said again after a connection broke. A number that is left out
//! was lost, and whoever hears the next one finds out.

use std::collections::HashMap;

use super::wire::{Gateway, Piece};

/// The gateways that were heard.
#[derive(Debug, Default)]
pub(super) struct Senders {
    known: HashMap<Gateway, Sender>,
    /// Counts what was heard, so that the one silent for longest is known.
    clock: u64,
}

#[derive(Debug, Default)]
struct Sender {
    /// The number of its last message that is whole; none yet for one that is new.
    last: Option<u64>,
    /// The message whose pieces are coming.
    coming: Option<Coming>,
    at: u64,
}

#[derive(Debug)]
struct Coming {
    number: u64,
    count: usize,
    have: usize,
    text: String,
}

/// What a piece makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing yet, or nothing new.
    Nothing,
    /// A message is whole.
    Whole(String),
    /// So it is, and messages before it were lost.
    AfterLoss(String),
    /// The beginning of it was lost.
    Lost,
}

impl Senders {
    /// Takes in a piece.
    pub(super) fn take(&mut self, piece: &Piece<'_>) -> Heard {
        self.clock += 1;
        if !self.known.contains_key(&piece.gateway) && self.known.len() >= GATEWAYS {
            let silent = self.known.iter().min_by_key(|(_, sender)| sender.at).map(|(gateway, _)| *gateway);
            silent.and_then(|silent| self.known.remove(&silent));
        }
        let sender = self.known.entry(piece.gateway).or_default();
        sender.at = self.clock;
        sender.take(piece)
    }
}

impl Sender {
    fn take(&mut self, piece: &Piece<'_>) -> Heard {
        if self.last.is_some_and(|last| piece.number <= last) {
            return Heard::Nothing;
        }
        if piece.place == 0 {
            let (number, count) = (piece.number, piece.count);
            self.coming = Some(Coming { number, count, have: 0, text: String::new() });
        }
        let fits = |coming: &&mut Coming| {
            (coming.number, coming.count, coming.have) == (piece.number, piece.count, piece.place)
        };
        let Some(coming) = self.coming.as_mut().filter(fits) else {
            // Counted as heard: it is said once that it is lost.
            (self.coming, self.last) = (None, Some(piece.number));
            return Heard::Lost;
        };
        coming.text.push_str(piece.text);
        coming.have += 1;
        if coming.have < coming.count {
            return Heard::Nothing;
        }
        let text = std::mem::take(&mut coming.text);
        let follows = self.last.is_none_or(|last| last.checked_add(1) == Some(piece.number));
        (self.coming, self.last) = (None, Some(piece.number));
        if follows { Heard::Whole(text) } else { Heard::AfterLoss(text) }
    }
}

/// Gateways that are known at a time: many times as many as there are, since each start makes a new one.
const GATEWAYS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u64, place: usize, count: usize, text: &str) -> Piece<'_> {
        Piece { gateway: [1; 16], number, place, count, text }
    }

    #[test]
    fn pieces_become_messages_and_what_is_said_twice_is_heard_once() {
        let mut senders = Senders::default();
        assert_eq!(senders.take(&piece(5, 0, 1, "five")), Heard::Whole("five".to_owned()));
        assert_eq!(senders.take(&piece(6, 0, 2, "s")), Heard::Nothing);
        // The connection broke, and it is said again.
        assert_eq!(senders.take(&piece(6, 0, 2, "s")), Heard::Nothing);
        assert_eq!(senders.take(&piece(6, 1, 2, "ix")), Heard::Whole("six".to_owned()));
        assert_eq!(senders.take(&piece(6, 0, 2, "s")), Heard::Nothing);
        assert_eq!(senders.take(&piece(6, 1, 2, "ix")), Heard::Nothing);
        assert_eq!(senders.take(&piece(7, 0, 1, "seven")), Heard::Whole("seven".to_owned()));
    }

    #[test]
    fn what_is_lost_is_noticed_with_the_next() {
        let mut senders = Senders::default();
        assert_eq!(senders.take(&piece(1, 0, 1, "one")), Heard::Whole("one".to_owned()));
        assert_eq!(senders.take(&piece(3, 0, 1, "three")), Heard::AfterLoss("three".to_owned()));
        assert_eq!(senders.take(&piece(4, 1, 2, "end")), Heard::Lost, "its beginning is not there");
        assert_eq!(senders.take(&piece(5, 0, 2, "begin")), Heard::Nothing);
        assert_eq!(senders.take(&piece(6, 0, 1, "six")), Heard::AfterLoss("six".to_owned()));
        assert_eq!(senders.take(&piece(u64::MAX, 0, 1, "last")), Heard::AfterLoss("last".to_owned()));
        assert_eq!(senders.take(&piece(u64::MAX, 0, 1, "last")), Heard::Nothing);
    }

    #[test]
    fn gateways_of_long_ago_are_forgotten() {
        let mut senders = Senders::default();
        for gateway in 0..=255_u8 {
            senders.take(&Piece { gateway: [gateway; 16], ..piece(1, 0, 1, "one") });
        }
        senders.take(&Piece { gateway: [0; 16], ..piece(2, 0, 1, "two") });
        senders.take(&Piece {
            gateway: [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8],
            ..piece(1, 0, 1, "new")
        });
        assert_eq!(senders.known.len(), GATEWAYS);
        assert!(senders.known.contains_key(&[0; 16]) && !senders.known.contains_key(&[1; 16]));
    }
}
