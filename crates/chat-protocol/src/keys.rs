//! Rings of keys, as they are sent.

use confidant_chat_format::{ChatId, Digest, Entry, PublicKey, Step, Trail};
use confidant_seal::Kid;

use crate::limits::{MAX_KEY, MAX_RECORD, MAX_RING, MAX_STEPS};
use crate::lists::List;
use crate::malformed::{Malformed, Why};
use crate::shapes::{objects, words};
use crate::values::Envelope;

words! {
    /// Whose ring.
    pub enum RingKind {
        /// A chat's.
        Chat = "chat",
        /// The account's own.
        Account = "account",
        /// The mailbox's.
        Mailbox = "box",
    }
}

objects! {
    /// An entry of a ring. It is taken only as the next one: `n` is the ring's length plus one, else `conflict`.
    pub struct KeyEntry {
        /// Its number, from 1.
        pub n: u32,
        /// The id of the key inside.
        pub kid: Kid,
        /// The ids of the sub-keys that seal: `msg`, `meta`, `embed` of a chat, `meta` of an account.
        pub subs: List<Kid, 3>,
        /// The key, sealed under the account key.
        pub sealed: Envelope<MAX_KEY>,
    }

    /// Entries of one ring.
    pub struct RingRows (check check_rows) {
        /// Whose ring.
        pub kind: RingKind,
        /// The chat; left out for the account's rings.
        pub chat: Option<ChatId>,
        /// The entries.
        pub entries: List<KeyEntry, MAX_RING>,
    }

    /// A new head or manifest, with what the server needs to check that it follows.
    pub struct HeadPut {
        /// The sealed head or manifest; its revision is one more than that of the one before.
        pub envelope: Envelope<MAX_RECORD>,
        /// The digest of the list after this write; for a manifest, of the floors.
        pub live: Digest,
        /// The chain up to this one.
        pub chain: Digest,
    }

    /// The newest entry of the mailbox's ring, with its public half.
    pub struct MailboxPut {
        /// The next entry of the mailbox's ring.
        pub entry: KeyEntry,
        /// The public key that the server seals replies to.
        pub box_pub: PublicKey,
    }

    /// One write, as the server keeps it for good.
    pub struct StepSent {
        /// The digest of the list after it.
        pub live: Digest,
        /// The hash of the envelope that was written.
        pub envelope: Digest,
    }

    /// How what the server has follows from what the device has seen.
    pub struct TrailSent {
        /// The chain in the head or manifest that the device has seen.
        pub chain: Digest,
        /// Every write since, the newest last.
        pub steps: List<StepSent, MAX_STEPS>,
    }
}

fn check_rows(rows: &RingRows) -> Result<(), (&'static str, Why)> {
    match (rows.kind, &rows.chat) {
        (RingKind::Chat, Some(_)) | (RingKind::Account | RingKind::Mailbox, None) => Ok(()),
        (RingKind::Chat, None) => Err(("chat", Why::Missing)),
        _ => Err(("chat", Why::Expected("a chat's ring, if there is a chat"))),
    }
}

impl TryFrom<Entry> for KeyEntry {
    type Error = Malformed;

    fn try_from(entry: Entry) -> Result<Self, Malformed> {
        let Entry { n, kid, subs, sealed } = entry;
        Ok(Self { n, kid, subs: List::new(subs)?, sealed: Envelope::new(sealed)? })
    }
}

impl From<KeyEntry> for Entry {
    fn from(entry: KeyEntry) -> Self {
        let KeyEntry { n, kid, subs, sealed } = entry;
        Self { n, kid, subs: subs.into_vec(), sealed: sealed.into_sealed() }
    }
}

impl TryFrom<Trail> for TrailSent {
    type Error = Malformed;

    fn try_from(trail: Trail) -> Result<Self, Malformed> {
        let step = |Step { live, envelope }| StepSent { live, envelope };
        Ok(Self { chain: trail.chain, steps: List::new(trail.steps.into_iter().map(step).collect())? })
    }
}

impl From<TrailSent> for Trail {
    fn from(trail: TrailSent) -> Self {
        let step = |StepSent { live, envelope }| Step { live, envelope };
        Self { chain: trail.chain, steps: trail.steps.into_vec().into_iter().map(step).collect() }
    }
}
