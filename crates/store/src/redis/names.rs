//! What every key is called. Readable ids are in the names of sessions only, and random ones in those of `shelf`; everything
//! else has tags and numbers.
//!
//! These never expire, and there are no others: [`KeySpace::format`], [`KeySpace::tokens`], [`KeySpace::lanes`],
//! [`KeySpace::lane`], [`KeySpace::named`], [`KeySpace::key_shard`] and [`KeySpace::anchors`]; with them the sessions
//! without a lifetime and what belongs to those, contexts among them.
//!
//! What stands in braces decides the slot in a Cluster: keys that a script touches together share it.

use confidant_seal::Tag;

use crate::clock::Millis;
use crate::contexts::ConversationName;
use crate::lane::Lane;
use crate::{Instance, KeyName, Owner};

/// How many parts indexes and the keyring are divided into, by the first bits of a tag, so that parts are in order.
pub(super) const SHARDS: usize = 64;

/// The names of an installation's keys.
#[derive(Clone, Debug)]
pub(super) struct KeySpace {
    prefix: String,
}

impl KeySpace {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// A session's hash.
    pub(super) fn session(&self, name: &KeyName) -> String {
        format!("{}{}", self.prefix, name.as_str())
    }

    /// The sessions of a shard: names, by expiry.
    pub(super) fn sessions(&self, shard: usize) -> String {
        self.own(&format!("sessions:{{s{shard:02x}}}"))
    }

    /// A session's name, sealed.
    pub(super) fn locator(&self, scope: Tag) -> String {
        self.own(&format!("at:{{s{:02x}}}:{scope}", shard(scope)))
    }

    /// The sessions of a person: names, by expiry.
    pub(super) fn person(&self, person: Tag) -> String {
        self.own(&format!("person:{{{person}}}"))
    }

    /// A conversation's context and the records of why: one hash, so that one script writes it in a Cluster, too.
    pub(super) fn context(&self, name: ConversationName) -> String {
        self.own(&format!("context:{{{}:{}}}", name.tenant, name.conversation))
    }

    /// The conversations of a tenant.
    pub(super) fn contexts(&self, tenant: Tag) -> String {
        self.own(&format!("contexts:{{{tenant}}}"))
    }

    /// The conversations that a session had a part in.
    pub(super) fn captured(&self, scope: Tag) -> String {
        self.own(&format!("captured:{{{scope}}}"))
    }

    /// The conversations of a shard, by last use or earlier.
    pub(super) fn used(&self, shard: usize) -> String {
        self.own(&format!("used:{{u{shard:02x}}}"))
    }

    /// That an instance is alive.
    pub(super) fn lease(&self, instance: Instance) -> String {
        self.own(&format!("alive:{{{}}}", hex(instance.0)))
    }

    /// The sessions with an open turn that somebody answers, or that wait for something.
    pub(super) fn open(&self, owner: Owner) -> String {
        self.own(&format!("open:{{{}}}", hex(owner.to_bytes())))
    }

    /// The instances that may have open turns.
    pub(super) fn instances(&self) -> String {
        self.own("instances")
    }

    /// Access tokens, by hash.
    pub(super) fn tokens(&self) -> String {
        self.own("tokens")
    }

    /// How many audit lanes there are.
    pub(super) fn lanes(&self) -> String {
        self.own("lanes")
    }

    /// The head of an audit lane.
    pub(super) fn lane(&self, lane: Lane) -> String {
        self.own(&format!("lane:{{{}}}", lane.number()))
    }

    /// The records of an audit lane that may go after a moment.
    pub(super) fn lane_list(&self, lane: Lane, until: Millis) -> String {
        self.own(&format!("lane:{{{}}}:{}", lane.number(), until.0))
    }

    /// What the layout is, and what sessions are called.
    pub(super) fn format(&self) -> String {
        self.own("format")
    }

    /// The root of a shard of the keyring.
    pub(super) fn key_shard(&self, shard: usize) -> String {
        self.own(&format!("keys:{{k{shard:02x}}}"))
    }

    /// The rows of a shard of the keyring: root and tag, by expiry.
    pub(super) fn key_index(&self, shard: usize) -> String {
        self.own(&format!("keys:{{k{shard:02x}}}:index"))
    }

    /// A session's row of the keyring.
    pub(super) fn key_row(&self, scope: Tag) -> String {
        self.own(&format!("keys:{{k{:02x}}}:{scope}", shard(scope)))
    }

    /// What fits all rows of the keyring, and nothing else.
    pub(super) fn key_rows(&self) -> String {
        self.own("keys:{k??}:????????????????????????????????")
    }

    /// The keyring's named keys.
    pub(super) fn named(&self) -> String {
        self.own("named")
    }

    /// How long the keyring has seen audit lanes to be.
    pub(super) fn anchors(&self) -> String {
        self.own("anchors")
    }

    fn own(&self, name: &str) -> String {
        format!("{}confidant:{name}", self.prefix)
    }
}

/// The shard of a tag. Shards are in the order of tags.
pub(super) fn shard(tag: Tag) -> usize {
    usize::from(tag.as_bytes()[0]) * SHARDS / 256
}

fn hex(id: [u8; 16]) -> String {
    Tag::from_bytes(id).to_string()
}
