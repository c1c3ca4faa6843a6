//! What is heard on the channel, read as gateways read it but without a server and without tags.

use super::senders::{Heard, Senders};
use super::wire::{Message, parse_piece};

/// Reads each line as a piece, and each message that these make; then all of it as one message. What is read is written and
/// read the same.
///
/// # Panics
/// If it is not.
pub fn heard(text: &str) {
    let mut senders = Senders::default();
    for line in text.lines() {
        let Some(piece) = parse_piece(line) else { continue };
        if let Heard::Whole(text) | Heard::AfterLoss(text) = senders.take(&piece) {
            message(&text);
        }
    }
    message(text);
}

fn message(text: &str) {
    let Some(read) = Message::read(text) else { return };
    let written = read.write().expect("what was read is not longer when written");
    let again = Message::read(&written).expect("what is written is read");
    assert_eq!(again.write().as_deref(), Some(&*written));
}
