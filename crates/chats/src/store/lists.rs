//! Which chats an account has (sixteen floors and a manifest), and its small data.
//!
//! A floor never changes without the manifest, whose chain has the hashes of all sixteen. The store computes that chain
//! itself, so a manifest that does not follow is refused before anybody relies on it.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Entry, FieldName, Shelf, Trail};
use confidant_seal::Sealed;

use super::rings::RingEntry;
use super::{Millis, Result};

/// Floors, manifest, account data.
#[async_trait]
pub trait Lists: Send + Sync + std::fmt::Debug {
    /// What a device lacks to check which chats there are, in one consistent view.
    async fn list(&self, account: &AccountId, have: HaveList) -> Result<AccountList>;
    /// Writes floors and manifest, and entries of the account's and the mailbox's ring with them. Returns the number of the
    /// change.
    async fn write_list(&self, write: ListWrite) -> Result<u64>;
    /// Puts or removes a piece of account data, by compare-and-set on its revision. Returns the number of the change.
    async fn put_data(&self, put: PutData) -> Result<u64>;
    /// The account's data, by kind and name.
    async fn data(&self, account: &AccountId) -> Result<Vec<DataRow>>;
}

/// New floors and their manifest.
#[derive(Clone, Debug)]
pub struct ListPut {
    /// The floors that change; none twice.
    pub floors: Vec<FloorPut>,
    /// The manifest.
    pub manifest: ManifestPut,
}

/// A new floor.
#[derive(Clone, Debug)]
pub struct FloorPut {
    /// Which.
    pub shelf: Shelf,
    /// The revision that it replaces.
    pub expected: u32,
    /// It, sealed; its revision is in its header.
    pub envelope: Sealed,
}

/// A new manifest.
#[derive(Clone, Debug)]
pub struct ManifestPut {
    /// The revision that it replaces; its own is one more.
    pub expected: u32,
    /// It, sealed.
    pub envelope: Sealed,
    /// `H(floors joined)`, as it has it inside.
    pub live: Digest,
    /// Its chain, as it has it inside.
    pub chain: Digest,
}

/// A write of floors and manifest alone.
#[derive(Clone, Debug)]
pub struct ListWrite {
    /// Whose.
    pub account: AccountId,
    /// New entries of the account's or the mailbox's ring, which the manifest names.
    pub append: Vec<RingEntry>,
    /// The floors and the manifest.
    pub list: ListPut,
    /// When.
    pub now: Millis,
}

/// What a device has of its account's list already; all zero for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HaveList {
    /// The revision of each floor, shelf 0 first.
    pub floors: [u32; 16],
    /// Where the trail begins: at the manifest that the device remembers. 0: no trail.
    pub trail_from: u32,
}

/// What a device needs to know which chats there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountList {
    /// The manifest.
    pub manifest: ManifestRow,
    /// How it follows from the one that the device has named.
    pub trail: Trail,
    /// Floors whose revision is not the one that the device has.
    pub floors: Vec<FloorRow>,
    /// The account's ring.
    pub ring: Vec<Entry>,
    /// The mailbox's ring.
    pub box_ring: Vec<Entry>,
}

/// A manifest as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestRow {
    /// Its revision.
    pub rev: u32,
    /// It, sealed.
    pub envelope: Sealed,
    /// Its chain.
    pub chain: Digest,
}

/// A floor as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorRow {
    /// Which.
    pub shelf: Shelf,
    /// Its revision.
    pub rev: u32,
    /// It, sealed.
    pub envelope: Sealed,
}

/// A new piece of account data, or its removal.
#[derive(Clone, Debug)]
pub struct PutData {
    /// Whose.
    pub account: AccountId,
    /// Its kind.
    pub kind: FieldName,
    /// Its name.
    pub name: FieldName,
    /// The revision that it replaces; 0 says that there must be none.
    pub expected: u32,
    /// It, sealed; `None` removes it, with revision `expected + 1`.
    pub envelope: Option<Sealed>,
    /// When.
    pub now: Millis,
}

/// A piece of account data as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRow {
    /// Its kind.
    pub kind: FieldName,
    /// Its name.
    pub name: FieldName,
    /// Its revision.
    pub rev: u32,
    /// It, sealed; `None` once it was removed. Its revision stays, so that it only ever grows.
    pub envelope: Option<Sealed>,
}
