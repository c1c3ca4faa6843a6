//! What a client and the engine agree that a conversation is, without its words.
//!
//! ```text
//! client   {count, before, after} ──▶ turn: is `before` the log's head? ── yes ─▶ answer, and `after` is the head
//!                                                                       └─ no ──▶ the client sends its history
//! ```
//!
//! A digest is made with a key that this program does not have, so here it is bytes that are equal or not. Easy to get wrong:
//! showing one. Whoever can present it is taken for a device of the chat's owner, so it is treated like a secret.

use confidant_display::debug_without_content;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A digest of a conversation that only the devices of its owner can make.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Digest {
    /// Takes as long whatever it finds.
    fn eq(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(&other.0).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differing) == 0
    }
}

impl Eq for Digest {}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(&*text, &mut bytes).map_err(|_| serde::de::Error::custom("not a digest"))?;
        Ok(Self(bytes))
    }
}

/// Where a conversation stands.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// How many messages it has.
    pub count: u64,
    /// Which ones, in the client's words for it.
    pub digest: Digest,
}

/// What a client says of the conversation that it adds a message to.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// How many messages it has before this one.
    pub count: u64,
    /// Which ones: the log's head, or the history must be sent.
    pub before: Digest,
    /// The same with this message and its answer: the log's head once the answer is in it.
    pub after: Digest,
}

impl Claim {
    /// Where the conversation must stand.
    #[must_use]
    pub const fn head(&self) -> Head {
        Head { count: self.count, digest: self.before }
    }

    /// Where it stands with the message and its answer.
    #[must_use]
    pub const fn next(&self) -> Head {
        Head { count: self.count + 2, digest: self.after }
    }
}

/// Where a client's branch stood before a message, in its words for it: kept here, and not looked into.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stand {
    /// How many messages were before it.
    pub count: u64,
    /// What its transcript was then.
    pub transcript: Digest,
}

/// What a log says of where its conversation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadState {
    /// There is no log, or it does not say.
    Missing,
    /// There is one that cannot be opened, and this is why, by name.
    Unreadable(&'static str),
    /// Here.
    Known(Head),
}

/// What is wrong with the history that a turn would be answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// There is none.
    Missing,
    /// It cannot be opened.
    Unreadable,
    /// It is another than the client's.
    Differs,
}

impl Lacks {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Missing, Self::Unreadable, Self::Differs];

    /// The word that names it in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing => "history_missing",
            Self::Unreadable => "history_unreadable",
            Self::Differs => "history_differs",
        }
    }
}

debug_without_content!(Digest(***));
debug_without_content!(Head { count });
debug_without_content!(Claim { count });
debug_without_content!(Stand { count });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_compared_whole_written_as_hex_and_not_shown() {
        let digest = Digest::from_bytes([0xab; 32]);
        let mut other = [0xab; 32];
        other[31] = 0xaa;
        assert!(digest == Digest::from_bytes([0xab; 32]) && digest != Digest::from_bytes(other));
        let head = Head { count: 3, digest };
        let json = serde_json::to_string(&head).unwrap();
        assert_eq!(json, format!(r#"{{"count":3,"digest":"{}"}}"#, "ab".repeat(32)));
        assert_eq!(serde_json::from_str::<Head>(&json).unwrap(), head);
        for wrong in [r#""ab""#, r#""zz""#, "7"] {
            assert!(serde_json::from_str::<Digest>(wrong).is_err());
        }
        assert!(!format!("{head:?} {digest:?}").contains("ab"), "{head:?}");
    }

    #[test]
    fn a_claim_says_where_a_conversation_stands_before_and_after() {
        let (before, after) = (Digest::from_bytes([1; 32]), Digest::from_bytes([2; 32]));
        let claim = Claim { count: 4, before, after };
        assert_eq!(
            (claim.head(), claim.next()),
            (Head { count: 4, digest: before }, Head { count: 6, digest: after })
        );
    }
}
