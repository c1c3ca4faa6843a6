//! Sync in phases: the last opened chat, the 20 most recent, the rest of the last 100; older ones on demand.
//!
//! The device says what it has, and gets what changed. What it gets is a claim of the server's, which
//! `confidant_chat_format::Account` and `Chat` check before anything is shown. Easy to get wrong: a chat that does not
//! fit in one frame. It comes in parts, and only after the last one it can be checked.

use confidant_chat_format::{
    AccountId, ChatId, DeviceId, Digest, EmbedId, FieldName, ItemId, PublicKey, Shelf,
};

use crate::chats::{EncryptedChatMetadata, EncryptedMetadataStored, ItemSent, WriteConflict};
use crate::drafts::{ChatDraftUpdated, UpdateDraft};
use crate::errors::RefusedSent;
use crate::keys::{KeyEntry, TrailSent};
use crate::limits::{
    MAX_BATCH, MAX_CHANGES, MAX_CHATS, MAX_DRAFT, MAX_FLOOR, MAX_ITEMS, MAX_OFFLINE, MAX_RECORD, MAX_RESULTS,
    MAX_RING, SHELVES,
};
use crate::lists::{List, Map};
use crate::malformed::Why;
use crate::shapes::{choices, objects, words};
use crate::values::{Envelope, Secret};

words! {
    /// How far to sync.
    pub enum Phase {
        /// The account and the last opened chat.
        LastChat = "last_chat",
        /// The 20 most recent chats.
        Recent = "recent",
        /// The rest of the last 100 chats.
        Rest = "rest",
        /// All three, in this order.
        All = "all",
    }
}

objects! {
    /// The first message on a socket, within five seconds. Answer: `ready`.
    pub struct Hello {
        /// The version of this protocol, 1.
        pub v: u32,
        /// The ticket from `POST /chats/ticket`: good once, for 30 seconds, for this session and origin.
        pub ticket: Secret,
        /// The last `seq` that this device has handled, which the server notes; left out by a new device.
        pub seq: Option<u64>,
    }

    /// The socket is open for requests.
    pub struct Ready {
        /// The version of this protocol, 1.
        pub v: u32,
        /// Whose socket it is.
        pub account: AccountId,
        /// Which device, as the server knows it.
        pub device: DeviceId,
        /// The newest `seq` of the account.
        pub seq: u64,
    }

    /// Asks whether the other side is there. Answer: `pong`.
    pub struct Ping {}

    /// The other side is there.
    pub struct Pong {}

    /// What a device has of a chat, or what the server has.
    pub struct Versions {
        /// The revision of its head.
        pub messages_v: u32,
        /// How often its title changed.
        pub title_v: u32,
        /// The revision of its draft; 0 if there is none.
        pub draft_v: u32,
    }

    /// Asks for what changed. Answers: `account_state`, then the events of the phases, then `phased_sync_complete`.
    pub struct PhasedSyncRequest {
        /// How far.
        pub phase: Phase,
        /// The revision of the manifest that the device has; 0 if none.
        pub manifest: u32,
        /// What the device has of each chat.
        pub client_chat_versions: Map<ChatId, Versions, MAX_CHATS>,
    }

    /// The account: rings, manifest, floors, and which chats there are.
    pub struct AccountState {
        /// The revision of the account.
        pub account_rev: u32,
        /// The generation of the account key.
        pub generation: u32,
        /// The account's ring.
        pub ring: List<KeyEntry, MAX_RING>,
        /// The mailbox's ring.
        pub mailbox: List<KeyEntry, MAX_RING>,
        /// The public key that the server seals replies to.
        pub box_pub: PublicKey,
        /// The sealed manifest.
        pub manifest: Envelope<MAX_RECORD>,
        /// How it follows from the one that the device has; left out if the device has none or the same.
        pub trail: Option<TrailSent>,
        /// Floors that the device does not have; those with an unchanged hash may be left out.
        pub floors: List<FloorSent, SHELVES>,
        /// Every chat of the account.
        pub chats: Map<ChatId, Versions, MAX_CHATS>,
        /// Whether more of it follows, in another one of these: floors, chats and the steps of the trail are joined.
        /// Check it after the last part.
        pub more: bool,
    }

    /// A floor as the server has it.
    pub struct FloorSent {
        /// Which of the sixteen.
        pub shelf: Shelf,
        /// The sealed floor.
        pub envelope: Envelope<MAX_FLOOR>,
    }

    /// Chats, whole or since what the device has.
    pub struct ChatsSent {
        /// The chats.
        pub chats: List<ChatSent, MAX_BATCH>,
        /// Whether more of this phase follow in another message.
        pub more: bool,
    }

    /// A chat, whole or since what the device has.
    pub struct ChatSent {
        /// The chat.
        pub chat: ChatId,
        /// What the server has of it.
        pub versions: Versions,
        /// Whether this is everything: the device forgets what is not listed. Else it is what changed.
        pub whole: bool,
        /// Whether more of this chat follows, in the next one of these: items, removals and the steps of the trail are
        /// joined. Check it after the last part.
        pub more: bool,
        /// The chat's ring.
        pub ring: List<KeyEntry, MAX_RING>,
        /// The sealed head.
        pub head: Envelope<MAX_RECORD>,
        /// How the head follows from the one that the device has; left out if it has none or the same. A device that has
        /// none, and a head that is ahead of the chat's floor, asks again from the floor's revision on.
        pub trail: Option<TrailSent>,
        /// Items.
        pub items: List<ItemSent, MAX_ITEMS>,
        /// Items that were removed since.
        pub removed: List<Removed, MAX_ITEMS>,
        /// The sealed draft, if there is one that the device does not have.
        pub draft: Option<Envelope<MAX_DRAFT>>,
        /// When it was created, in milliseconds since 1970.
        pub created_at: u64,
        /// When it was last written, in milliseconds since 1970.
        pub updated_at: u64,
        /// When a device last opened it, in milliseconds since 1970.
        pub opened_at: Option<u64>,
    }

    /// An item that was removed.
    pub struct Removed {
        /// Which.
        pub item: ItemId,
        /// The revision of the head that removed it.
        pub rev: u32,
    }

    /// The phases that were asked for are done.
    pub struct PhasedSyncComplete {
        /// How far.
        pub phase: Phase,
        /// Everything up to this `seq` was sent; what comes later comes as an event.
        pub seq: u64,
        /// Whether there are older chats, for `load_more_chats`.
        pub older: bool,
    }

    /// Asks for chats by id, since what the device has. Answer: `chat_content_batch_response`, perhaps several.
    pub struct RequestChatContentBatch {
        /// The chats, with what the device has of each; zeros for nothing.
        pub chats: Map<ChatId, Versions, MAX_BATCH>,
    }

    /// Chats that were asked for.
    pub struct ChatContentBatchResponse {
        /// The chats.
        pub chats: List<ChatSent, MAX_BATCH>,
        /// Those that are not there.
        pub missing: List<ChatId, MAX_BATCH>,
        /// Whether more follow in another message.
        pub more: bool,
    }

    /// Asks for chats that are older than one. Answer: `load_more_chats_response`.
    pub struct LoadMoreChats (check check_limit) {
        /// The oldest chat that the device has; left out to begin with the newest.
        pub before: Option<ChatId>,
        /// How many, at most 100.
        pub limit: u32,
    }

    /// Older chats, the newest first.
    pub struct LoadMoreChatsResponse {
        /// The chats.
        pub chats: List<ChatSent, MAX_BATCH>,
        /// Whether more of these follow in another message.
        pub more: bool,
        /// Whether there are chats older than these.
        pub older: bool,
    }

    /// Asks for embeds, which sync leaves out. Answer: `send_embed_data`, perhaps several.
    pub struct RequestEmbed {
        /// The chat.
        pub chat: ChatId,
        /// The embeds.
        pub embeds: List<EmbedId, MAX_BATCH>,
    }

    /// Embeds that were asked for.
    pub struct SendEmbedData {
        /// The chat.
        pub chat: ChatId,
        /// The embeds.
        pub items: List<ItemSent, MAX_BATCH>,
        /// Those that are not there.
        pub missing: List<EmbedId, MAX_BATCH>,
        /// Whether more follow in another message.
        pub more: bool,
    }

    /// Asks what changed since a `seq`. Answer: `sync_status`.
    pub struct SyncStatusRequest {
        /// The last `seq` that this device has handled.
        pub since: u64,
    }

    /// What changed, in order.
    pub struct SyncStatus {
        /// The newest `seq` of the account.
        pub seq: u64,
        /// The changes.
        pub changes: List<Change, MAX_CHANGES>,
        /// Whether there are more, after the last of these.
        pub more: bool,
        /// Whether the server no longer knows all changes since: sync in phases instead.
        pub gap: bool,
    }

    /// A change of the account.
    pub struct Change {
        /// Its number.
        pub seq: u64,
        /// What changed.
        pub what: Changed,
    }

    /// A piece of account data, by its name.
    pub struct DataName {
        /// What kind.
        pub kind: FieldName,
        /// Its name.
        pub name: FieldName,
    }

    /// Sends what was written offline, in order. Each is stored or not by itself. Answer: `offline_sync_complete`.
    pub struct SyncOfflineChanges {
        /// Writes to chats.
        pub writes: List<EncryptedChatMetadata, MAX_OFFLINE>,
        /// Drafts.
        pub drafts: List<UpdateDraft, MAX_OFFLINE>,
    }

    /// What became of each, writes first, in the order in which they were sent.
    pub struct OfflineSyncComplete {
        /// The results.
        pub results: List<OfflineResult, MAX_RESULTS>,
    }

    /// Another device changed credentials, rings, floors or manifest. Sync to get them.
    pub struct AccountUpdated {
        /// The revision of the account now.
        pub account_rev: u32,
        /// The generation of the account key now.
        pub generation: u32,
        /// The revision of the manifest now.
        pub manifest: u32,
        /// The hash of the manifest's envelope.
        pub envelope: Digest,
    }
}

choices! {
    /// What changed.
    pub enum Changed {
        /// This chat was written or created.
        Chat(ChatId) = "chat",
        /// This chat was deleted.
        ChatDeleted(ChatId) = "chat_deleted",
        /// The draft of this chat.
        Draft(ChatId) = "draft",
        /// A piece of account data.
        Data(DataName) = "data",
        /// Credentials, rings, floors or manifest; the manifest's revision now.
        Account(u32) = "account",
        /// This device, or its sessions.
        Device(DeviceId) = "device",
    }

    /// What became of a write that was made offline.
    pub enum OfflineResult {
        /// It was stored.
        Stored(EncryptedMetadataStored) = "stored",
        /// The draft was stored.
        Draft(ChatDraftUpdated) = "draft",
        /// Another device wrote first. Keep this one as a conflicted copy, where a person sees it.
        Conflict(WriteConflict) = "conflict",
        /// It was refused.
        Refused(RefusedSent) = "refused",
    }
}

fn check_limit(request: &LoadMoreChats) -> Result<(), (&'static str, Why)> {
    let most = u64::try_from(MAX_BATCH).expect("100 is a number");
    if u64::from(request.limit) <= most { Ok(()) } else { Err(("limit", Why::OutOfRange(most))) }
}
