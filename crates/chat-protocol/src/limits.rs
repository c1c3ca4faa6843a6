//! How large anything may be. Readers stop at these limits while they read.
//!
//! Easy to get wrong: a limit that a full account does not fit in. A floor has a line of about 103 bytes for each chat
//! on its shelf; 10,000 chats are about 625 a shelf, which is more than 64 KiB.

/// A frame, or a large body, in bytes of JSON. An embed of the greatest size fits, in base64url.
pub const MAX_FRAME: usize = 8 * 1024 * 1024;
/// A body of a request or answer that has no list of chats or keys, in bytes of JSON.
pub const MAX_BODY: usize = 64 * 1024;
/// What opens an account, in bytes of JSON: it comes from somebody who has none, and has empty floors.
pub const MAX_REGISTER: usize = 256 * 1024;
/// The JSON text inside a signed request, in bytes.
pub const MAX_SIGNED: usize = 4 * 1024 * 1024;
/// A message's envelope, in bytes.
pub const MAX_MESSAGE: usize = 256 * 1024;
/// An embed's envelope, in bytes.
pub const MAX_EMBED: usize = 4 * 1024 * 1024;
/// The envelope of a head, a manifest, a chat's field or a piece of account data, in bytes.
pub const MAX_RECORD: usize = 64 * 1024;
/// A floor's envelope, in bytes.
pub const MAX_FLOOR: usize = 160 * 1024;
/// A draft's envelope, in bytes.
pub const MAX_DRAFT: usize = 128 * 1024;
/// The envelope of a key or a device's label, in bytes.
pub const MAX_KEY: usize = 1024;
/// Items that one write puts or removes.
pub const MAX_PUTS: usize = 1_000;
/// Items of a chat.
pub const MAX_ITEMS: usize = 5_000;
/// Entries of one ring of keys.
pub const MAX_RING: usize = 256;
/// Chats of an account.
pub const MAX_CHATS: usize = 10_000;
/// Chats in one frame, or in one request for chats.
pub const MAX_BATCH: usize = 100;
/// Writes between what a device has seen and what the server has, in one frame.
pub const MAX_STEPS: usize = 10_000;
/// Changes in one answer about what changed.
pub const MAX_CHANGES: usize = 1_000;
/// Writes, and drafts, that a device sends at once after it was offline.
pub const MAX_OFFLINE: usize = 100;
/// Results of what a device sent at once: its writes and its drafts.
pub const MAX_RESULTS: usize = 2 * MAX_OFFLINE;
/// Letters that wait, of one account.
pub const MAX_LETTERS: usize = 1_000;
/// The envelopes of one snapshot, together, in bytes.
pub const MAX_SNAPSHOT: usize = 4 * 1024 * 1024;
/// Messages and embeds of one snapshot.
pub const MAX_SNAPSHOT_ITEMS: usize = 1_000;
/// Snapshots of an account.
pub const MAX_SNAPSHOTS: usize = 100;
/// How long a snapshot can be read, in days.
pub const MAX_SNAPSHOT_DAYS: u32 = 90;
/// Pieces of account data in one frame.
pub const MAX_DATA: usize = 100;
/// Devices, and sessions, of an account.
pub const MAX_DEVICES: usize = 100;
/// Credentials of an account.
pub const MAX_CREDENTIALS: usize = 16;
/// Rings in one step of a rotation or a restore.
pub const MAX_RINGS: usize = 1_000;
/// Floors of an account: always all of them.
pub const SHELVES: usize = 16;
/// What happened, or what to do, in an error; in bytes.
pub const MAX_WORDS: usize = 512;
/// An invitation, in bytes.
pub const MAX_INVITE: usize = 128;
/// What one device seals for another while pairing, in bytes.
pub const MAX_PAIRING: usize = 1024;
/// A receipt of erasure, in bytes.
pub const MAX_RECEIPT: usize = 512 * 1024;
/// The greatest number: above it, programs that keep numbers as doubles lose digits.
pub const MAX_NUMBER: u64 = (1 << 53) - 1;
/// How much of an unknown event's name an error repeats, in characters.
pub const MAX_NAME: usize = 40;
/// The words of one message, in bytes. Sealed, they have to fit into a message's envelope.
pub const MAX_QUERY: usize = 192 * 1024;
/// Messages of a history in one frame. A frame may have room for fewer.
pub const MAX_HISTORY: usize = 1_000;
/// Words of an answer in one frame, in bytes.
pub const MAX_DELTA: usize = 16 * 1024;
/// Padding of such a frame, in bytes.
pub const MAX_PADDING: usize = 64;
/// A name, a title, a tag; in bytes.
pub const MAX_SHORT: usize = 256;
/// Things that a person switches off, or settings that a device has.
pub const MAX_OFF: usize = 200;
/// Tags of a chat, icons, terms of a question.
pub const MAX_TAGS: usize = 16;
/// Suggestions of one kind.
pub const MAX_SUGGESTIONS: usize = 6;
/// What a tool is called with, as the person is shown it, in bytes.
pub const MAX_TOOL_INPUT: usize = 16 * 1024;
/// What a device gives for one turn besides the history: pieces, and bytes of each and of all.
pub const MAX_PIECES: usize = 3;
/// See [`MAX_PIECES`].
pub const MAX_CLIENT_DATA: usize = 4 * 1024;
/// What a server remembers of a chat's safety, in bytes.
pub const MAX_SAFETY: usize = 4 * 1024;
/// Tools, or focus modes, that a device is told of.
pub const MAX_CATALOGUE: usize = 500;
/// Kinds of things that a server may ask a device for during one turn.
pub const MAX_ASKS: usize = 3;
/// Kinds of things that a server may keep of a chat beyond its words.
pub const MAX_REMEMBERS: usize = 4;
/// One thing that is kept so, in bytes of JSON; and how many of them come in one frame.
pub const MAX_REMEMBERED: usize = 64 * 1024;
/// See [`MAX_REMEMBERED`].
pub const MAX_RECORDS: usize = 32;
/// Messages beside one answer: what tools said, and a summary.
pub const MAX_BESIDE: usize = 32;
/// The words of one of them.
pub const MAX_BESIDE_TEXT: usize = 16 * 1024;
