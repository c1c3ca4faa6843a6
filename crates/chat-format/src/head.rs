//! A chat's head: what the chat consists of, sealed with every write.
//!
//! ```text
//! live  = H("seal/v1/live" ‖ u32 count ‖ for each item by id: lp(id) ‖ H(envelope))
//! chain = H("seal/v1/chain" ‖ chain before ‖ H(envelope of the head before) ‖ live)      32 zeros twice at first
//! ```
//!
//! Owns head, live and chain. Leaves to [`crate::opening`] when a head is refused. Easy to get wrong: a chain of lists
//! alone. Two heads with one list may name different keys or pending replies, and would share a chain; so each link also
//! has the envelope before it.

use std::collections::BTreeMap;

use confidant_seal::Kid;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::bytes::{Digest, count, hash, put};
use crate::error::Refused;
use crate::ids::{DeviceId, ItemId, MessageId, TurnId};
use crate::json::{self, Record};

/// A chat's list: every item and the hash of its envelope.
pub type List = BTreeMap<ItemId, Digest>;

/// The digest of a chat's list.
pub fn live(list: &List) -> Digest {
    let mut bytes = Vec::new();
    for (id, envelope) in list {
        put(&mut bytes, &id.to_string());
        bytes.extend_from_slice(envelope.as_bytes());
    }
    hash(&[b"seal/v1/live", &count(list.len()), &bytes])
}

/// The next link: after a chain and the envelope that has it, with the list (or floors) of the new one.
pub fn chain(before: &Digest, envelope_before: &Digest, live: &Digest) -> Digest {
    hash(&[b"seal/v1/chain", before.as_bytes(), envelope_before.as_bytes(), live.as_bytes()])
}

/// A reply that this account waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// The turn that asks.
    pub turn: TurnId,
    /// The message that the reply answers.
    pub parent: MessageId,
    /// The reply's id, which the client picked.
    pub reply: MessageId,
}

/// What is sealed as a chat's head. Its revision is the number of writes to the chat.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Version, 1.
    pub v: u32,
    /// Number of the newest key in the chat's ring.
    pub key: u32,
    /// Id of that key.
    #[serde(serialize_with = "kid_to_hex", deserialize_with = "kid_from_hex")]
    pub kid: Kid,
    /// How many items the list has.
    pub count: u32,
    /// The list's digest.
    pub live: Digest,
    /// The chain up to this head.
    pub chain: Digest,
    /// The last message of the branch that is shown; `null` for an empty chat.
    pub leaf: Option<MessageId>,
    /// Replies that are waited for.
    pub pending: Vec<Pending>,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// Which device wrote it.
    pub device: DeviceId,
}

impl Record for Head {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Head {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`. Two pending items with one reply id are refused too.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refused> {
        let head: Self = json::read(bytes)?;
        let mut replies: Vec<_> = head.pending.iter().map(|pending| &pending.reply).collect();
        replies.sort();
        if replies.windows(2).any(|pair| pair[0] == pair[1]) { Err(Refused::RecordRefused) } else { Ok(head) }
    }

    /// Whether this is the head of that list; else `list-refused`.
    pub fn check_list(&self, list: &List) -> Result<(), Refused> {
        let leaf = self.leaf.as_ref().is_none_or(|leaf| list.contains_key(&ItemId::Message(leaf.clone())));
        if u32::try_from(list.len()) == Ok(self.count) && live(list) == self.live && leaf {
            Ok(())
        } else {
            Err(Refused::ListRefused)
        }
    }
}

confidant_display::debug_without_content!(Head { key, kid, count, live, chain });

/// A sealed head or manifest, by its revision and the hash of its envelope: what a device remembers, and what a floor says
/// of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// The revision.
    pub rev: u32,
    /// `H(envelope)`.
    pub envelope: Digest,
}

/// One write, as the server keeps it for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The list's digest after it.
    pub live: Digest,
    /// `H(envelope)` of the head or manifest that was written.
    pub envelope: Digest,
}

/// What a server sends to show that what it has follows from what a device remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// The chain in the remembered head. Taken on trust: a false one cannot end in the right chain.
    pub chain: Digest,
    /// Every write since, the newest last.
    pub steps: Vec<Step>,
}

impl Trail {
    /// Nothing was written since.
    pub const NONE: Self = Self { chain: Digest::ZERO, steps: Vec::new() };

    /// Whether a head or manifest with this mark, chain and list follows from the remembered one: an older one is
    /// `rolled-back`; another of the same revision, or one that the steps do not lead to, is `forked`. Without memory
    /// only the first revision can be checked: it follows from nothing.
    pub fn check(
        &self,
        remembered: Option<&Mark>,
        now: &Mark,
        chain_now: &Digest,
        live_now: &Digest,
    ) -> Result<(), Refused> {
        let Some(seen) = remembered else {
            let first = chain(&Digest::ZERO, &Digest::ZERO, live_now);
            return if now.rev != 1 || first == *chain_now { Ok(()) } else { Err(Refused::Forked) };
        };
        if now.rev < seen.rev {
            return Err(Refused::RolledBack);
        }
        if now.rev == seen.rev {
            return if now.envelope == seen.envelope { Ok(()) } else { Err(Refused::Forked) };
        }
        let mut at = (self.chain, seen.envelope);
        for step in &self.steps {
            at = (chain(&at.0, &at.1, &step.live), step.envelope);
        }
        let whole = u32::try_from(self.steps.len()) == Ok(now.rev - seen.rev);
        let last = self.steps.last().is_some_and(|step| step.live == *live_now);
        if whole && last && at == (*chain_now, now.envelope) { Ok(()) } else { Err(Refused::Forked) }
    }

    /// Whether the way from the remembered head passes through this one; else `forked`. One from before the remembered
    /// head cannot be told.
    pub(crate) fn passes(&self, seen: &Mark, through: &Mark) -> Result<(), Refused> {
        let there = match through.rev.checked_sub(seen.rev) {
            None => return Ok(()),
            Some(0) => Some(seen.envelope),
            Some(after) => {
                usize::try_from(after - 1).ok().and_then(|at| self.steps.get(at)).map(|step| step.envelope)
            }
        };
        if there == Some(through.envelope) { Ok(()) } else { Err(Refused::Forked) }
    }
}

fn kid_to_hex<S: Serializer>(kid: &Kid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kid)
}

fn kid_from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Kid, D::Error> {
    let text = String::deserialize(deserializer)?;
    Kid::from_hex(&text).ok_or_else(|| D::Error::custom("not the id of a key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(rev: u32, name: &str) -> Mark {
        Mark { rev, envelope: Digest::of(name.as_bytes()) }
    }

    #[test]
    fn a_trail_has_a_step_for_every_revision_and_ends_in_the_list() {
        let (seen, live) = (mark(3, "third"), Digest::of(b"live"));
        let (before, now) = (Digest::of(b"chain"), mark(4, "fourth"));
        let trail = Trail { chain: before, steps: vec![Step { live, envelope: now.envelope }] };
        let right = chain(&before, &seen.envelope, &live);
        assert_eq!(trail.check(Some(&seen), &now, &right, &live), Ok(()));
        let far = Mark { rev: 5, ..now };
        assert_eq!(
            trail.check(Some(&seen), &far, &right, &live),
            Err(Refused::Forked),
            "a revision without a step"
        );
        assert_eq!(
            trail.check(Some(&seen), &now, &right, &Digest::ZERO),
            Err(Refused::Forked),
            "another list"
        );
        assert_eq!(trail.check(Some(&seen), &now, &before, &live), Err(Refused::Forked), "another chain");
        let other = Mark { envelope: Digest::ZERO, ..now };
        assert_eq!(trail.check(Some(&seen), &other, &right, &live), Err(Refused::Forked), "another envelope");
    }

    #[test]
    fn the_first_revision_follows_from_nothing() {
        let live = Digest::of(b"live");
        let right = chain(&Digest::ZERO, &Digest::ZERO, &live);
        let check = |rev, chain| Trail::NONE.check(None, &mark(rev, "x"), chain, &live);
        assert_eq!(check(1, &right), Ok(()));
        assert_eq!(check(1, &live), Err(Refused::Forked));
        assert_eq!(check(2, &live), Ok(()), "without memory nothing more can be told");
    }

    #[test]
    fn a_head_has_the_count_the_list_and_the_leaf() {
        let id = MessageId::from_bits(&[1; 16]);
        let list: List = [(ItemId::Message(id.clone()), Digest::ZERO)].into();
        let head = Head {
            v: 1,
            key: 1,
            kid: Kid::from_bytes([0; 8]),
            count: 1,
            live: live(&list),
            chain: Digest::ZERO,
            leaf: Some(id),
            pending: vec![],
            at: 0,
            device: DeviceId::from_bits(&[0; 16]),
        };
        assert_eq!(head.check_list(&list), Ok(()));
        let empty = Head { count: 0, live: live(&List::new()), ..head.clone() };
        for (head, list) in [
            (Head { count: 2, ..head.clone() }, &list),
            (Head { live: Digest::ZERO, ..head.clone() }, &list),
            (Head { leaf: Some(MessageId::from_bits(&[2; 16])), ..head.clone() }, &list),
            (empty, &List::new()),
        ] {
            assert_eq!(head.check_list(list), Err(Refused::ListRefused));
        }
    }
}
