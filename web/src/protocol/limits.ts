// How large anything may be. Readers stop at these limits while they read.
//
// Easy to get wrong: a limit that a full account does not fit in. A floor has a line of about 103 bytes for each chat on its shelf; 10,000
// chats are about 625 a shelf, which is more than 64 KiB.

/** A frame, or a large body, in bytes of JSON. An embed of the greatest size fits, in base64url. */
export const MAX_FRAME = 8 * 1024 * 1024;

/** A body of a request or answer that has no list of chats or keys, in bytes of JSON. */
export const MAX_BODY = 64 * 1024;

/** What opens an account, in bytes of JSON: it comes from somebody who has none, and has empty floors. */
export const MAX_REGISTER = 256 * 1024;

/** The JSON text inside a signed request, in bytes. */
export const MAX_SIGNED = 4 * 1024 * 1024;

/** A message's envelope, in bytes. */
export const MAX_MESSAGE = 256 * 1024;

/** An embed's envelope, in bytes. */
export const MAX_EMBED = 4 * 1024 * 1024;

/** The envelope of a head, a manifest, a chat's field or a piece of account data, in bytes. */
export const MAX_RECORD = 64 * 1024;

/** A floor's envelope, in bytes. */
export const MAX_FLOOR = 160 * 1024;

/** A draft's envelope, in bytes. */
export const MAX_DRAFT = 128 * 1024;

/** The envelope of a key or a device's label, in bytes. */
export const MAX_KEY = 1024;

/** Items that one write puts or removes. */
export const MAX_PUTS = 1_000;

/** Items of a chat. */
export const MAX_ITEMS = 5_000;

/** Entries of one ring of keys. */
export const MAX_RING = 256;

/** Chats of an account. */
export const MAX_CHATS = 10_000;

/** Chats in one frame, or in one request for chats. */
export const MAX_BATCH = 100;

/** Writes between what a device has seen and what the server has, in one frame. */
export const MAX_STEPS = 10_000;

/** Changes in one answer about what changed. */
export const MAX_CHANGES = 1_000;

/** Writes, and drafts, that a device sends at once after it was offline. */
export const MAX_OFFLINE = 100;

/** Results of what a device sent at once: its writes and its drafts. */
export const MAX_RESULTS = 2 * MAX_OFFLINE;

/** Letters that wait, of one account. */
export const MAX_LETTERS = 1_000;

/** The envelopes of one snapshot, together, in bytes. */
export const MAX_SNAPSHOT = 4 * 1024 * 1024;

/** Messages and embeds of one snapshot. */
export const MAX_SNAPSHOT_ITEMS = 1_000;

/** Snapshots of an account. */
export const MAX_SNAPSHOTS = 100;

/** How long a snapshot can be read, in days. */
export const MAX_SNAPSHOT_DAYS = 90;

/** Pieces of account data in one frame. */
export const MAX_DATA = 100;

/** Devices, and sessions, of an account. */
export const MAX_DEVICES = 100;

/** Credentials of an account. */
export const MAX_CREDENTIALS = 16;

/** Rings in one step of a rotation or a restore. */
export const MAX_RINGS = 1_000;

/** Floors of an account: always all of them. */
export const SHELVES = 16;

/** What happened, or what to do, in an error; in bytes. */
export const MAX_WORDS = 512;

/** An invitation, in bytes. */
export const MAX_INVITE = 128;

/** What one device seals for another while pairing, in bytes. */
export const MAX_PAIRING = 1024;

/** A receipt of erasure, in bytes. */
export const MAX_RECEIPT = 512 * 1024;

/** The greatest number: above it, programs that keep numbers as doubles lose digits. */
export const MAX_NUMBER = 2 ** 53 - 1;

/** How much of an unknown event's name an error repeats, in characters. */
export const MAX_NAME = 40;

/** The words of one message, in bytes. Sealed, they have to fit into a message's envelope. */
export const MAX_QUERY = 192 * 1024;

/** Messages of a history in one frame. A frame may have room for fewer. */
export const MAX_HISTORY = 1_000;

/** Words of an answer in one frame, in bytes. */
export const MAX_DELTA = 16 * 1024;

/** Padding of such a frame, in bytes. */
export const MAX_PADDING = 64;

/** A name, a title, a tag; in bytes. */
export const MAX_SHORT = 256;

/** Things that a person switches off, or settings that a device has. */
export const MAX_OFF = 200;

/** Tags of a chat, icons, terms of a question. */
export const MAX_TAGS = 16;

/** Suggestions of one kind. */
export const MAX_SUGGESTIONS = 6;

/** What a tool is called with, as the person is shown it, in bytes. */
export const MAX_TOOL_INPUT = 16 * 1024;

/** What a device gives for one turn besides the history: pieces, and bytes of each and of all. */
export const MAX_PIECES = 3;
/** Tools, or focus modes, that a device is told of. */
export const MAX_CATALOGUE = 500;
/** Kinds of things that a server may ask a device for during one turn. */
export const MAX_ASKS = 3;
/** Kinds of things that a server may keep of a chat beyond its words. */
export const MAX_REMEMBERS = 4;
/** One thing that is kept so, in bytes of JSON; and how many of them come in one frame. */
export const MAX_REMEMBERED = 64 * 1024;
export const MAX_RECORDS = 32;

/** Messages beside one answer: what tools said, and a summary. */
export const MAX_BESIDE = 32;
/** The words of one of them. */
export const MAX_BESIDE_TEXT = 16 * 1024;
/** What a server remembers of a chat's safety, in bytes. */
export const MAX_SAFETY = 4 * 1024;

/** The bytes of what a device gives for one turn, together. */
export const MAX_CLIENT_DATA = 4 * 1024;
