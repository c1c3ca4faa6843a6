//! What we send, as events: text with its HTML, what it answers, and which kind of message of ours it is. Pure.

use confidant_channel::{Nonce, Outgoing, OutgoingKind};
use matrix_sdk::ruma::{EventId, OwnedTransactionId};
use serde_json::{Value, json};

use crate::heard::OURS;
use crate::html;
use crate::route::Place;

/// A new message.
pub(crate) fn message(outgoing: &Outgoing<'_>, place: &Place) -> Value {
    let mut content = words(outgoing);
    // Only who asked is told; whoever else is named in an answer is not.
    content["m.mentions"] = if outgoing.part == 0 { json!({ "user_ids": [place.asker] }) } else { json!({}) };
    let reply = json!({ "event_id": place.event });
    match (&place.thread, outgoing.part) {
        (Some(root), part) => {
            content["m.relates_to"] = json!({
                "rel_type": "m.thread", "event_id": root, "is_falling_back": part > 0, "m.in_reply_to": reply,
            });
        }
        (None, 0) => content["m.relates_to"] = json!({ "m.in_reply_to": reply }),
        (None, _) => {}
    }
    content
}

/// Another text for a message.
pub(crate) fn edit(outgoing: &Outgoing<'_>, message: &EventId) -> Value {
    let mut new = words(outgoing);
    new["m.mentions"] = json!({});
    // Who cannot show edits sees the beginning; the whole again would not fit an event.
    let beginning: String = outgoing.text.chars().take(FALLBACK).collect();
    let mut content = json!({
        "msgtype": new["msgtype"], "body": format!("* {beginning}"), "m.mentions": {},
        "m.relates_to": { "rel_type": "m.replace", "event_id": message },
    });
    content["m.new_content"] = new;
    content
}

fn words(outgoing: &Outgoing<'_>) -> Value {
    // Other bots leave notices alone.
    let kind = if outgoing.kind == OutgoingKind::Notice { "m.notice" } else { "m.text" };
    let mut content = json!({ "msgtype": kind, "body": outgoing.text });
    content[OURS] = json!(name(outgoing.kind));
    if let Some(html) = html::of(outgoing.text).filter(|html| html.len() <= MOST_HTML) {
        content["format"] = json!("org.matrix.custom.html");
        content["formatted_body"] = json!(html);
    }
    content
}

/// Kinds as the field of ours names them.
fn name(kind: OutgoingKind) -> &'static str {
    match kind {
        OutgoingKind::Draft => "draft",
        OutgoingKind::Answer => ANSWER,
        OutgoingKind::Question => QUESTION,
        OutgoingKind::Notice => "notice",
    }
}

/// The name of a new message: the server shows nothing new under one that it has seen.
pub(crate) fn transaction(nonce: Nonce) -> OwnedTransactionId {
    nonce.short().into()
}

/// The name of an edit: the same for the same text of the same message.
pub(crate) fn edit_transaction(outgoing: &Outgoing<'_>) -> OwnedTransactionId {
    let said = format!("{}/{}", name(outgoing.kind), outgoing.text);
    format!("{}-{:016x}", outgoing.nonce.short(), fnv(said.as_bytes())).into()
}

/// FNV-1a. Only tells edits of one message apart, which nobody but us writes.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The kind that a line of a room has if we said it and it is whole.
pub(crate) const ANSWER: &str = "answer";
/// The kind of a message that asks for an approval.
pub(crate) const QUESTION: &str = "question";
/// An event holds 64 KiB, encrypted and with everything around it.
const MOST_HTML: usize = 25_000;
const FALLBACK: usize = 200;

#[cfg(test)]
mod tests {
    use matrix_sdk::ruma::{event_id, owned_event_id, owned_room_id, owned_user_id};

    use super::*;

    fn outgoing(text: &str, kind: OutgoingKind, part: usize) -> Outgoing<'_> {
        let nonce = Nonce::from_bytes([7; 16]);
        Outgoing { text, kind, nonce, part, first: part == 0, again: false }
    }

    fn place(threaded: bool) -> Place {
        Place {
            room: owned_room_id!("!r:x"),
            event: owned_event_id!("$q"),
            thread: threaded.then(|| owned_event_id!("$root")),
            asker: owned_user_id!("@a:x"),
            private: false,
        }
    }

    #[test]
    fn a_reply_says_what_it_answers_and_tells_only_who_asked() {
        let said = message(&outgoing("**yes**", OutgoingKind::Answer, 0), &place(false));
        let expected = json!({
            "msgtype": "m.text", "body": "**yes**", "confidant.kind": "answer",
            "format": "org.matrix.custom.html", "formatted_body": "<strong>yes</strong>",
            "m.mentions": { "user_ids": ["@a:x"] }, "m.relates_to": { "m.in_reply_to": { "event_id": "$q" } },
        });
        assert_eq!(said, expected);
        let second = message(&outgoing("more", OutgoingKind::Answer, 1), &place(false));
        assert_eq!((&second["m.relates_to"], &second["m.mentions"]), (&Value::Null, &json!({})));
        for (part, fallback) in [(0, false), (1, true)] {
            let said = message(&outgoing("x", OutgoingKind::Notice, part), &place(true));
            assert_eq!(said["msgtype"], "m.notice");
            let relation = json!({ "rel_type": "m.thread", "event_id": "$root", "is_falling_back": fallback,
                "m.in_reply_to": { "event_id": "$q" } });
            assert_eq!(said["m.relates_to"], relation);
        }
    }

    #[test]
    fn an_edit_is_the_whole_text_once_and_fits_an_event() {
        let long = "\u{1f980}\"<\n".repeat(15_000 / 7);
        let edited = edit(&outgoing(&long, OutgoingKind::Draft, 0), event_id!("$m"));
        assert_eq!(edited["m.new_content"]["body"], long.as_str());
        assert_eq!(edited["m.new_content"]["confidant.kind"], "draft");
        assert_eq!(edited["m.relates_to"], json!({ "rel_type": "m.replace", "event_id": "$m" }));
        // Encrypted, it grows by a third.
        assert!(edited.to_string().len() * 4 / 3 < 60_000, "{}", edited.to_string().len());
    }

    #[test]
    fn names_are_the_same_for_the_same_and_others_for_others() {
        let name = |text, kind| edit_transaction(&outgoing(text, kind, 0));
        assert_eq!(transaction(Nonce::from_bytes([7; 16])).as_str(), "07".repeat(12));
        assert_eq!(name("a", OutgoingKind::Draft), name("a", OutgoingKind::Draft));
        assert_ne!(name("a", OutgoingKind::Draft), name("b", OutgoingKind::Draft));
        assert_ne!(
            name("a", OutgoingKind::Draft),
            name("a", OutgoingKind::Answer),
            "a draft that is the answer is settled, too"
        );
    }
}
