//! Floors and manifest: which chats an account has, and how far each one is.
//!
//! ```text
//! floor 0 … f   {chat: a head that it has reached}, a chat on the shelf of the first hex digit of H(chat id)
//! manifest      {g, uk, box, box_pub, floors: 16 × H(envelope), chain, …}
//! ```
//!
//! Owns the two records. Easy to get wrong: a floor late. A chat gets its floor in the write that creates it and loses it
//! in the write that deletes it; a chat without a floor is refused. Only the head may be ahead, by up to 60 seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::bytes::{Digest, PublicKey, hash};
use crate::error::Refused;
use crate::head::Mark;
use crate::ids::{ChatId, DeviceId};
use crate::json::{self, Record};
use crate::record::Shelf;

/// The chats of one shelf, each with a head that it has reached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// Version, 1.
    pub v: u32,
    /// Chat to head. With the envelope's hash and not only the revision, a device that remembers nothing cannot be shown
    /// another head of the same revision.
    pub chats: BTreeMap<ChatId, Mark>,
}

/// What is sealed as an account's manifest.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version, 1.
    pub v: u32,
    /// Generation of the account key.
    pub g: u32,
    /// Number of the newest entry in the account's ring.
    pub uk: u32,
    /// Number of the newest entry in the mailbox's ring.
    #[serde(rename = "box")]
    pub box_n: u32,
    /// The mailbox's public key.
    pub box_pub: PublicKey,
    /// `H(envelope)` of each floor, shelf 0 first.
    pub floors: [Digest; 16],
    /// The chain up to this manifest.
    pub chain: Digest,
    /// When it was written, in milliseconds since 1970.
    pub at: u64,
    /// Which device wrote it.
    pub device: DeviceId,
}

impl Record for Floor {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Record for Manifest {
    fn version(&self) -> u32 {
        self.v
    }
}

impl Floor {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`; a chat of another shelf is refused too.
    pub fn from_json(shelf: Shelf, bytes: &[u8]) -> Result<Self, Refused> {
        let floor: Self = json::read(bytes)?;
        let here = floor.chats.keys().all(|chat| Shelf::of(chat) == shelf);
        if here { Ok(floor) } else { Err(Refused::RecordRefused) }
    }
}

impl Manifest {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refused> {
        json::read(bytes)
    }

    /// What the chain has in place of a chat's list: `H(floors joined)`.
    pub fn live(floors: &[Digest; 16]) -> Digest {
        hash(&floors.each_ref().map(|floor| &floor.as_bytes()[..]))
    }
}

confidant_display::debug_without_content!(Floor { chats: chats.len() }, Manifest { g, chain });
