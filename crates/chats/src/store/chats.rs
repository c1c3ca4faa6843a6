//! Chats: written as a whole, read as what changed.
//!
//! ```text
//! Write ── head rev + 1 ──┬─ items put and removed     ┐
//!                         ├─ an entry of its ring      │ one transaction
//!                         └─ its floor and manifest    ┘
//! ```
//!
//! The revision of the head is the chat's `messages_v`. Each item remembers the head that last put it, so a device that has
//! revision 7 asks for the items of heads 8 and later.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest, Entry, ItemId, Trail};
use confidant_seal::Sealed;

use super::lists::ListPut;
use super::{Millis, Result};

/// Chats.
#[async_trait]
pub trait Chats: Send + Sync + std::fmt::Debug {
    /// Creates or continues a chat; all of it happens, or none. `conflict` carries the revision of the head that is there.
    ///
    /// | refused with | because |
    /// |---|---|
    /// | `conflict` | head, item, floor or manifest has another revision; the ring another length, or is frozen; an id was deleted |
    /// | `key-refused` | an item's key is none that the ring lists for such items; the head's is not the newest, or older than the account key |
    /// | `list-refused`, `forked` | the list after the write is not the one claimed; the chain does not follow |
    /// | `record-refused`, `rolled-back` | no envelope of suite 1; its revision does not grow |
    /// | `ring-gap`, `ring-forked` | a new chat has no key; a key is in the ring already |
    async fn write(&self, write: Write) -> Result<Written>;
    /// Deletes a chat with its items, drafts and ring. Its id stays taken. Returns the number of the change.
    async fn delete_chat(&self, delete: DeleteChat) -> Result<u64>;
    /// Puts or removes a chat's draft. Returns the number of the change.
    async fn put_draft(&self, put: PutDraft) -> Result<u64>;
    /// Notes that somebody has opened a chat: a hint for the order of synchronising, not a change.
    async fn opened(&self, account: &AccountId, chat: &ChatId, now: Millis) -> Result<()>;
    /// What a device lacks of a chat, in one consistent view: everything but the envelopes of items.
    async fn chat(&self, account: &AccountId, chat: &ChatId, have: Have) -> Result<ChatDelta>;
    /// Items with their envelopes, in the order asked for, as many as fit into `bytes`, at least one. Items that are not there
    /// (any more) are left out.
    async fn items(
        &self,
        account: &AccountId,
        chat: &ChatId,
        items: Vec<ItemId>,
        bytes: usize,
    ) -> Result<Vec<ItemRow>>;
}

/// One write to a chat.
#[derive(Clone, Debug)]
pub struct Write {
    /// Whose.
    pub account: AccountId,
    /// Which; its id is made by the client.
    pub chat: ChatId,
    /// The revision of the head before; 0 creates the chat.
    pub expected: u32,
    /// A new entry of the chat's ring. The first write has the first one.
    pub append: Option<Entry>,
    /// The new head, sealed; its revision is one more than `expected`.
    pub head: Sealed,
    /// The digest of the list after this write, as the head has it inside.
    pub live: Digest,
    /// The chain, as the head has it inside.
    pub chain: Digest,
    /// Items that are new or replaced; none twice.
    pub puts: Vec<Put>,
    /// Items that go.
    pub removes: Vec<ItemId>,
    /// The chat's floor and the manifest. Needed when the chat is created.
    pub list: Option<ListPut>,
    /// When.
    pub now: Millis,
}

/// An item that is new or replaced.
#[derive(Clone, Debug)]
pub struct Put {
    /// Which.
    pub item: ItemId,
    /// The revision that it replaces; 0 says that there must be none.
    pub expected: u32,
    /// It, sealed; its revision is in its header.
    pub envelope: Sealed,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The revision of the head.
    pub rev: u32,
    /// The number of the account's newest change.
    pub seq: u64,
}

/// The deletion of a chat.
#[derive(Clone, Debug)]
pub struct DeleteChat {
    /// Whose.
    pub account: AccountId,
    /// Which.
    pub chat: ChatId,
    /// The revision of its head.
    pub expected: u32,
    /// The floor without it, and the manifest.
    pub list: ListPut,
    /// When.
    pub now: Millis,
}

/// A new draft, or its removal.
#[derive(Clone, Debug)]
pub struct PutDraft {
    /// Whose.
    pub account: AccountId,
    /// Of which chat.
    pub chat: ChatId,
    /// The revision that it replaces; 0 for the first.
    pub expected: u32,
    /// It, sealed; `None` removes it, with revision `expected + 1`.
    pub envelope: Option<Sealed>,
    /// When.
    pub now: Millis,
}

/// What a device has of a chat already; all zero for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Have {
    /// The revision of the head.
    pub messages_v: u32,
    /// The revision of the draft.
    pub draft_v: u32,
    /// Where the trail begins: at the head that the device remembers, or else at the one in the chat's floor. 0: no trail.
    pub trail_from: u32,
}

impl Have {
    /// Everything: what is asked for is whether the chat is there.
    pub const ALL: Self = Self { messages_v: u32::MAX, draft_v: u32::MAX, trail_from: 0 };
}

/// What a device lacks of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatDelta {
    /// The chat as it is.
    pub chat: ChatRow,
    /// Its whole ring.
    pub ring: Vec<Entry>,
    /// How the head follows from the one that the device has named.
    pub trail: Trail,
    /// Items put since then, by id.
    pub changed: Vec<ItemLine>,
    /// Items removed since then, by id. None for a device that has nothing.
    pub gone: Vec<Gone>,
    /// The draft, if the device has another revision.
    pub draft: Option<DraftRow>,
}

/// A chat as stored, without its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRow {
    /// The revision of the head.
    pub messages_v: u32,
    /// Grows whenever the field `title` is put or removed.
    pub title_v: u32,
    /// The revision of the draft; 0 for none so far.
    pub draft_v: u32,
    /// When it was created.
    pub created_at: Millis,
    /// When it was last written to.
    pub updated_at: Millis,
    /// When a device last opened it; when it was created, if none did.
    pub opened_at: Millis,
    /// How many items it has.
    pub count: u32,
    /// The head, sealed.
    pub head: Sealed,
}

/// An item without its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemLine {
    /// Which.
    pub item: ItemId,
    /// Its revision.
    pub rev: u32,
    /// `H(envelope)`.
    pub hash: Digest,
    /// In which order items came; a hint, and nothing that a client relies on.
    pub seq: u32,
    /// How many bytes its envelope has.
    pub bytes: u32,
}

/// An item that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub item: ItemId,
    /// The revision of the head that removed it.
    pub at: u32,
}

/// An item with its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRow {
    /// Which.
    pub item: ItemId,
    /// Its revision.
    pub rev: u32,
    /// It, sealed.
    pub envelope: Sealed,
}

/// A draft as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftRow {
    /// Its revision.
    pub rev: u32,
    /// It, sealed; `None` once it was removed.
    pub envelope: Option<Sealed>,
}
