//! Replies that came when no device was there: sealed by the server to the account's public key.
//!
//! `wire = E ‖ seal(HKDF(X25519, "", "seal/v1/box" ‖ E ‖ box_pub, 32), (reply, account, chat, reply id, turn), rev 1, JSON)`,
//! with a new key pair E for each. What came after the answer, such as suggestions, is sealed likewise with the purpose
//! `reply-more`. Anybody could write such a letter, so it counts only if the chat's sealed head waits for
//! it. Easy to get wrong: acknowledging first. The message under the chat's key and the head without the pending item are
//! one write; the letter goes after it.

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, seal};
use x25519_dalek::{PublicKey as Point, StaticSecret};
use zeroize::Zeroizing;

use crate::bytes::{PublicKey, hkdf, random};
use crate::error::Refused;
use crate::head::{Head, List, Pending};
use crate::ids::{AccountId, ChatId, ItemId, MessageId, TurnId};
use crate::record::{Message, Role, Text};
use crate::ring::{Held, SUITE, open_suite_1};

/// The private half of a mailbox.
#[derive(Clone)]
pub struct BoxKey {
    secret: StaticSecret,
    public: PublicKey,
}

impl BoxKey {
    /// The one in an entry of the mailbox's ring.
    pub fn of(held: &Held) -> Self {
        Self::from_key(held.key())
    }

    /// The one with these 32 bytes.
    pub fn from_key(key: &Key) -> Self {
        let secret = StaticSecret::from(*key.dangerously_expose_bytes());
        let public = PublicKey::from_bytes(*Point::from(&secret).as_bytes());
        Self { secret, public }
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// A secret that both sides have; `None` if the other side's key makes it zero.
    pub(crate) fn agree(&self, other: &PublicKey) -> Option<x25519_dalek::SharedSecret> {
        let shared = self.secret.diffie_hellman(&Point::from(*other.as_bytes()));
        shared.was_contributory().then_some(shared)
    }

    pub(crate) fn random() -> Self {
        Self::from_key(&Key::from_bytes(*random()))
    }
}

debug_without_content!(BoxKey(***));

/// What a letter is about. The server says it; the seal and the head prove it.
#[derive(Debug, Clone, Copy)]
pub struct Letter<'a> {
    /// Whose.
    pub account: &'a AccountId,
    /// In which chat.
    pub chat: &'a ChatId,
    /// The id that the client picked for the reply.
    pub reply: &'a MessageId,
    /// The turn that it answers.
    pub turn: &'a TurnId,
}

impl Letter<'_> {
    /// Seals a reply. A public key that makes the shared secret zero is `record-refused`.
    pub fn seal(&self, box_pub: &PublicKey, message: &Message) -> Result<Vec<u8>, Refused> {
        self.seal_with(&BoxKey::random(), box_pub, message)
    }

    /// Seals what came after the reply. A public key that makes the shared secret zero is `record-refused`.
    pub fn seal_more(&self, box_pub: &PublicKey, more: &Text) -> Result<Vec<u8>, Refused> {
        let context = Context { purpose: MORE, ..self.context() };
        seal_wire(&BoxKey::random(), box_pub, &context, &more.to_json())
    }

    pub(crate) fn seal_with(
        &self,
        ephemeral: &BoxKey,
        box_pub: &PublicKey,
        message: &Message,
    ) -> Result<Vec<u8>, Refused> {
        seal_wire(ephemeral, box_pub, &self.context(), &message.to_json())
    }

    /// Opens a letter with whichever key of the mailbox it was sealed to, and checks it against the chat. In this order:
    /// the reply is in the list: `duplicate`; nobody waits for it: `unasked`; it does not open, or is not a message of the
    /// assistant: `record-refused`; it answers another message than was asked: `unasked`.
    pub fn open(&self, boxes: &[BoxKey], head: &Head, list: &List, wire: &[u8]) -> Result<Message, Refused> {
        if list.contains_key(&ItemId::Message(self.reply.clone())) {
            return Err(Refused::Duplicate);
        }
        let pending = self.pending(head)?;
        let message = Message::from_json(&open_wire(boxes, &self.context(), wire)?)?;
        if message.role != Role::Assistant {
            return Err(Refused::RecordRefused);
        }
        if message.parent.as_ref() == Some(&pending.parent) { Ok(message) } else { Err(Refused::Unasked) }
    }

    /// Opens what came after the reply, which the head still waits for: open both before either is written. Nobody waits:
    /// `unasked`; it does not open: `record-refused`.
    pub fn open_more(&self, boxes: &[BoxKey], head: &Head, wire: &[u8]) -> Result<Text, Refused> {
        self.pending(head)?;
        Text::from_json(&open_wire(boxes, &Context { purpose: MORE, ..self.context() }, wire)?)
    }

    /// The item of the head that waits for this reply to this turn; else `unasked`.
    fn pending<'h>(&self, head: &'h Head) -> Result<&'h Pending, Refused> {
        let waited = head.pending.iter().find(|pending| pending.reply == *self.reply);
        waited.filter(|pending| pending.turn == *self.turn).ok_or(Refused::Unasked)
    }

    /// The context of the envelope.
    pub fn context(&self) -> Context<'_> {
        Context {
            purpose: "reply",
            owner: self.account.as_str(),
            container: self.chat.as_str(),
            object: self.reply.as_str(),
            field: self.turn.as_str(),
        }
    }
}

fn seal_wire(
    ephemeral: &BoxKey,
    box_pub: &PublicKey,
    context: &Context<'_>,
    json: &[u8],
) -> Result<Vec<u8>, Refused> {
    let key = letter_key(ephemeral, box_pub, &ephemeral.public, box_pub)?;
    let sealed = seal(&key, SUITE, context, REV, json);
    Ok([&ephemeral.public.as_bytes()[..], sealed.as_bytes()].concat())
}

/// Opens with whichever key of the mailbox it was sealed to; else `record-refused`.
fn open_wire(boxes: &[BoxKey], context: &Context<'_>, wire: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refused> {
    let (point, sealed) = wire.split_first_chunk::<32>().ok_or(Refused::RecordRefused)?;
    let (point, sealed) = (PublicKey::from_bytes(*point), Sealed::from_bytes(sealed.to_vec()));
    for own in boxes.iter().rev() {
        let key = letter_key(own, &point, &point, &own.public)?;
        if sealed.kid() != Some(key.kid()) {
            continue;
        }
        return match open_suite_1(&key, context, &sealed) {
            Some((REV, json)) => Ok(json),
            _ => Err(Refused::RecordRefused),
        };
    }
    Err(Refused::RecordRefused)
}

/// The key of one letter. `ours` and `theirs` agree on it from either side.
pub(crate) fn letter_key(
    ours: &BoxKey,
    theirs: &PublicKey,
    point: &PublicKey,
    box_pub: &PublicKey,
) -> Result<Key, Refused> {
    let shared = ours.agree(theirs).ok_or(Refused::RecordRefused)?;
    let info: [&[u8]; 3] = [b"seal/v1/box", point.as_bytes(), box_pub.as_bytes()];
    Ok(Key::from_bytes(*hkdf(shared.as_bytes(), &[], &info)))
}

/// The purpose of what came after a reply.
const MORE: &str = "reply-more";
/// A letter is written once.
const REV: u32 = 1;
