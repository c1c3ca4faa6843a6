//! What a client and a server agree that a branch is, without the words.
//!
//! `hist = mac(sub(CK, "hist"), "hist/v1", u32 count ‖ each: lp(id) ‖ u32 rev)`. Keyed: whoever stole a session cannot
//! compute it, and so gets nothing out of the server's cache. Easy to get wrong: comparing digests of two chat keys. After a
//! new key the server asks for the history once.

use serde::{Deserialize, Serialize};

use crate::bytes::{Digest, count, put};
use crate::ids::MessageId;
use crate::ring::Held;

/// The digest of a branch, from its first message to its last.
pub fn history<'a>(chat_key: &Held, branch: impl ExactSizeIterator<Item = (&'a MessageId, u32)>) -> Digest {
    let mut bytes = count(branch.len()).to_vec();
    for (id, rev) in branch {
        put(&mut bytes, id.as_str());
        bytes.extend_from_slice(&rev.to_be_bytes());
    }
    Digest::from_bytes(chat_key.key().derive("hist").mac("hist/v1", &bytes))
}

/// What a client sends with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// How many messages the branch has before this one.
    pub count: u32,
    /// The digest before this message; the server has it in its cache, or asks for the history.
    pub before: Digest,
    /// The digest with this message and its reply, at revision 1; the server stores it when it commits.
    pub after: Digest,
}

impl Claim {
    /// The claim for `message`, written as revision `rev` after `branch`, and for the reply with the id that the client
    /// picked.
    ///
    /// # Panics
    /// When a branch has more than 2^32 messages.
    pub fn new(
        chat_key: &Held,
        branch: &[(MessageId, u32)],
        message: (&MessageId, u32),
        reply: &MessageId,
    ) -> Self {
        let all: Vec<_> = branch.iter().map(|(id, rev)| (id, *rev)).chain([message, (reply, 1)]).collect();
        let before = all[..branch.len()].iter().copied();
        Self {
            count: u32::from_be_bytes(count(branch.len())),
            before: history(chat_key, before),
            after: history(chat_key, all.iter().copied()),
        }
    }
}
