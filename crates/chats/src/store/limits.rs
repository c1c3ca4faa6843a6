//! How large and how many. Whoever goes past one is refused with `too-large` or `too-many`, and nothing is written.
//!
//! Deleting is never refused. Ids that were deleted cannot be used again, so they are counted when something new is added.

use std::time::Duration;

/// The envelope of a message or a chat's field.
pub const MESSAGE_BYTES: usize = 256 << 10;
/// The envelope of an embed.
pub const EMBED_BYTES: usize = 4 << 20;
/// The envelope of a head, a manifest or a piece of account data.
pub const HEAD_BYTES: usize = 64 << 10;
/// The envelope of a floor. A chat takes up to 110 bytes there, and of 10,000 chats about 700 are on the fullest shelf: 77 KB.
pub const FLOOR_BYTES: usize = 160 << 10;
/// The envelope of a draft.
pub const DRAFT_BYTES: usize = 128 << 10;
/// The sealed key of a ring entry. The seal of the server around that of the client included, it has about 300 bytes.
pub const ENTRY_BYTES: usize = 2 << 10;
/// An account's sealed record, the sealed label of a device, or what a one-use code carries.
pub const RECORD_BYTES: usize = 64 << 10;

/// Items in a chat.
pub const ITEMS: u32 = 5_000;
/// Items in a chat, with those that were deleted.
pub const ITEMS_EVER: u32 = 25_000;
/// Chats of an account.
pub const CHATS: u32 = 10_000;
/// Chats of an account, with those that were deleted.
pub const CHATS_EVER: u32 = 100_000;
/// Items that one write puts and removes.
pub const ITEMS_A_WRITE: usize = 1_000;
/// Entries of a ring. A chat gets one with the first write after each rotation; at a limit nobody could write to it again.
pub const RING_ENTRIES: u32 = 256;
/// Entries that are staged in one call.
pub const STAGED_A_CALL: usize = 1_000;
/// Pieces of account data.
pub const DATA: u32 = 1_000;
/// Credentials of an account.
pub const CREDENTIALS: usize = 32;
/// Devices of an account.
pub const DEVICES: u32 = 100;
/// Web sessions of an account.
pub const SESSIONS: u32 = 200;
/// Rows that one call of a list returns.
pub const PAGE: usize = 1_000;

/// How long rings stay frozen for a rotation that is neither committed nor abandoned.
pub const FREEZE: Duration = Duration::from_secs(600);
/// How long a pairing slot is open.
pub const PAIRING: Duration = Duration::from_secs(120);
