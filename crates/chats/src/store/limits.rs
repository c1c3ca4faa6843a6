//! How large and how many. Whoever goes past one is refused with `too-large` or `too-many`, and nothing is written.
//!
//! What travels has its limit in the protocol ([`confidant_chat_protocol::limits`]); here it is only named, so that the two
//! cannot differ. Deleting is never refused. Ids that were deleted cannot be used again, so they are counted when something
//! new is added.

use std::time::Duration;

use confidant_chat_protocol::limits as wire;

/// The envelope of a message.
pub const MESSAGE_BYTES: usize = wire::MAX_MESSAGE;
/// The envelope of an embed.
pub const EMBED_BYTES: usize = wire::MAX_EMBED;
/// The envelope of a head, a manifest, a chat's field or a piece of account data.
pub const HEAD_BYTES: usize = wire::MAX_RECORD;
/// The envelope of a floor.
pub const FLOOR_BYTES: usize = wire::MAX_FLOOR;
/// The envelope of a draft.
pub const DRAFT_BYTES: usize = wire::MAX_DRAFT;
/// The sealed key of a ring entry, what is exchanged while pairing, or a device's label: the seal of the server around that of
/// the client included.
pub const ENTRY_BYTES: usize = 2 * wire::MAX_KEY;
/// A letter: the mailbox's key pair of the sender and the envelope of a message.
pub const LETTER_BYTES: usize = wire::MAX_MESSAGE;
/// What came after an answer, sealed likewise.
pub const MORE_BYTES: usize = wire::MAX_RECORD;
/// The mark of an answer that is on its way, sealed by the server.
pub const MARK_BYTES: usize = 1 << 10;
/// A chat's safety row, sealed by the server.
pub const SAFETY_BYTES: usize = 4 << 10;
/// What the owner of a snapshot sees in a list, sealed by the server.
pub const SNAPSHOT_LINE_BYTES: usize = 4 << 10;
/// What the link of a snapshot opens, sealed by the server: the answer, in JSON.
pub const SNAPSHOT_BYTES: usize = 2 * wire::MAX_SNAPSHOT;
/// An account's sealed record, or what a one-use code carries.
pub const RECORD_BYTES: usize = 64 << 10;

/// Items in a chat.
pub const ITEMS: u32 = wire::MAX_ITEMS as u32;
/// Items in a chat, with those that were deleted.
pub const ITEMS_EVER: u32 = 5 * ITEMS;
/// Chats of an account.
pub const CHATS: u32 = wire::MAX_CHATS as u32;
/// Chats of an account, with those that were deleted.
pub const CHATS_EVER: u32 = 10 * CHATS;
/// Items that one write puts and removes.
pub const ITEMS_A_WRITE: usize = wire::MAX_PUTS;
/// Entries of a ring. A chat gets one with the first write after each rotation; at a limit nobody could write to it again.
pub const RING_ENTRIES: u32 = wire::MAX_RING as u32;
/// Entries that are staged in one call.
pub const STAGED_A_CALL: usize = 1_000;
/// Pieces of account data.
pub const DATA: u32 = 1_000;
/// Credentials of an account.
pub const CREDENTIALS: usize = wire::MAX_CREDENTIALS;
/// Devices of an account.
pub const DEVICES: u32 = wire::MAX_DEVICES as u32;
/// Web sessions of an account.
pub const SESSIONS: u32 = wire::MAX_DEVICES as u32;
/// Letters of an account. One more, and the oldest goes.
pub const LETTERS: u32 = wire::MAX_LETTERS as u32;
/// Marks of an account. One more, and the oldest goes.
pub const MARKS: u32 = LETTERS;
/// Snapshots of an account.
pub const SNAPSHOTS: u32 = wire::MAX_SNAPSHOTS as u32;
/// Rows that one call of a list returns.
pub const PAGE: usize = wire::MAX_CHANGES;

/// How long rings stay frozen for a rotation that is neither committed nor abandoned.
pub const FREEZE: Duration = Duration::from_secs(600);
/// How long a letter waits; and a mark, for its letter.
pub const LETTER_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long a snapshot can be read, at most.
pub const SNAPSHOT_LIFE: Duration = Duration::from_secs(wire::MAX_SNAPSHOT_DAYS as u64 * 24 * 3600);
/// How long a pairing slot is open.
pub const PAIRING: Duration = Duration::from_secs(120);
