//! The tables of `chats.db`.
//!
//! ```text
//! accounts ─┬─ credentials, devices, sessions, codes, pairings
//!           ├─ rings, rotations, staged, staged_floors, floors, manifests, list_steps, data, feed, deleted_chats
//!           └─ chats ── items ─ envelopes, steps, tombstones, drafts, letters, marks, safety, snapshots
//! attempts  (by keyed tags), unscrubbed
//! ```
//!
//! Rows name accounts and chats by number; the numbers are never shown. Everything ends with its account or chat by
//! `ON DELETE CASCADE`. Items lie apart from their envelopes, so that a list of (id, hash) is read without its contents.

/// One after the other; only ever added to.
pub(super) const STEPS: &[&str] = &[FIRST, SECOND, THIRD, FOURTH, FIFTH];

const FIRST: &str = "
CREATE TABLE accounts (
    n INTEGER PRIMARY KEY,
    account TEXT NOT NULL UNIQUE,
    login BLOB NOT NULL UNIQUE,
    rev INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    frozen_until INTEGER,
    record BLOB NOT NULL
) STRICT;
CREATE INDEX accounts_frozen ON accounts (frozen_until) WHERE frozen_until IS NOT NULL;
CREATE TABLE credentials (
    tag BLOB PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_account ON credentials (account);

CREATE TABLE rings (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    container TEXT NOT NULL,
    kind INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kid BLOB NOT NULL,
    subs BLOB NOT NULL,
    born INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (account, container, kind, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE staged (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    container TEXT NOT NULL,
    kind INTEGER NOT NULL,
    n INTEGER NOT NULL,
    kid BLOB NOT NULL,
    subs BLOB NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (account, container, kind, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE floors (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    shelf INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    hash BLOB NOT NULL,
    envelope BLOB NOT NULL,
    PRIMARY KEY (account, shelf)
) STRICT;
CREATE TABLE manifests (
    account INTEGER PRIMARY KEY REFERENCES accounts (n) ON DELETE CASCADE,
    rev INTEGER NOT NULL,
    chain BLOB NOT NULL,
    hash BLOB NOT NULL,
    envelope BLOB NOT NULL
) STRICT;
CREATE TABLE list_steps (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    rev INTEGER NOT NULL,
    live BLOB NOT NULL,
    chain BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (account, rev)
) STRICT, WITHOUT ROWID;
CREATE TABLE data (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    rev INTEGER NOT NULL,
    envelope BLOB,
    PRIMARY KEY (account, kind, name)
) STRICT;

CREATE TABLE chats (
    n INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    chat TEXT NOT NULL,
    rev INTEGER NOT NULL,
    title_v INTEGER NOT NULL,
    draft_v INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    chain BLOB NOT NULL,
    hash BLOB NOT NULL,
    head BLOB NOT NULL,
    UNIQUE (account, chat)
) STRICT;
CREATE INDEX chats_updated ON chats (account, updated_at, chat);
CREATE INDEX chats_opened ON chats (account, opened_at, chat);
CREATE TABLE deleted_chats (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    chat TEXT NOT NULL,
    PRIMARY KEY (account, chat)
) STRICT, WITHOUT ROWID;
CREATE TABLE items (
    chat INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE,
    item TEXT NOT NULL,
    hash BLOB NOT NULL,
    rev INTEGER NOT NULL,
    put_at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    envelope INTEGER NOT NULL,
    PRIMARY KEY (chat, item)
) STRICT, WITHOUT ROWID;
CREATE TABLE envelopes (
    n INTEGER PRIMARY KEY,
    chat INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE,
    envelope BLOB NOT NULL
) STRICT;
CREATE INDEX envelopes_chat ON envelopes (chat);
CREATE TABLE steps (
    chat INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE,
    rev INTEGER NOT NULL,
    live BLOB NOT NULL,
    chain BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (chat, rev)
) STRICT, WITHOUT ROWID;
CREATE TABLE tombstones (
    chat INTEGER NOT NULL REFERENCES chats (n) ON DELETE CASCADE,
    item TEXT NOT NULL,
    removed_at INTEGER NOT NULL,
    PRIMARY KEY (chat, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX tombstones_removed ON tombstones (chat, removed_at);
CREATE TABLE drafts (
    chat INTEGER PRIMARY KEY REFERENCES chats (n) ON DELETE CASCADE,
    envelope BLOB NOT NULL
) STRICT;

CREATE TABLE feed (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    what INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (account, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE devices (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    device TEXT NOT NULL,
    label BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    seen_day INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (account, device)
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    id BLOB PRIMARY KEY,
    secret BLOB NOT NULL,
    account INTEGER NOT NULL,
    device TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    seen_day INTEGER NOT NULL,
    FOREIGN KEY (account, device) REFERENCES devices (account, device) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_device ON sessions (account, device);
CREATE INDEX sessions_expires ON sessions (expires_at);

CREATE TABLE codes (
    kind INTEGER NOT NULL,
    key BLOB NOT NULL,
    account INTEGER REFERENCES accounts (n) ON DELETE CASCADE,
    login BLOB,
    carries BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX codes_account ON codes (account) WHERE account IS NOT NULL;
CREATE INDEX codes_login ON codes (login) WHERE login IS NOT NULL;
CREATE INDEX codes_expires ON codes (expires_at);
CREATE TABLE pairings (
    id BLOB PRIMARY KEY,
    account INTEGER REFERENCES accounts (n) ON DELETE CASCADE,
    offer BLOB NOT NULL,
    answer BLOB,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pairings_expires ON pairings (expires_at);
CREATE INDEX pairings_account ON pairings (account) WHERE account IS NOT NULL;
CREATE TABLE attempts (
    login BLOB NOT NULL,
    network BLOB NOT NULL,
    failures INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (login, network)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_last ON attempts (last);
";

/// Which key seals what is staged, the floors that a rotation stages, accounts whose erasure has begun, and erasures whose
/// traces were not scrubbed yet: a random id each, which says nothing about whose.
const SECOND: &str = "
ALTER TABLE accounts ADD COLUMN erasing INTEGER NOT NULL DEFAULT 0;
CREATE INDEX accounts_erasing ON accounts (n) WHERE erasing = 1;
CREATE TABLE unscrubbed (
    id BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE rotations (
    account INTEGER PRIMARY KEY REFERENCES accounts (n) ON DELETE CASCADE,
    wrap BLOB NOT NULL
) STRICT;
CREATE TABLE staged_floors (
    account INTEGER NOT NULL REFERENCES accounts (n) ON DELETE CASCADE,
    shelf INTEGER NOT NULL,
    envelope BLOB NOT NULL,
    PRIMARY KEY (account, shelf)
) STRICT;
";

/// Letters, and what is remembered of a chat without its words. They name their chat by its id, so that an account's letters are
/// counted and ordered without a look at its chats.
const THIRD: &str = "
CREATE TABLE letters (
    account INTEGER NOT NULL,
    chat TEXT NOT NULL,
    turn TEXT NOT NULL,
    reply TEXT NOT NULL,
    left_at INTEGER NOT NULL,
    letter BLOB NOT NULL,
    more BLOB,
    PRIMARY KEY (account, chat, turn),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
) STRICT;
CREATE INDEX letters_oldest ON letters (account, left_at, chat, turn);
CREATE INDEX letters_left ON letters (left_at);
CREATE TABLE safety (
    account INTEGER NOT NULL,
    chat TEXT NOT NULL,
    rev INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (account, chat),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
) STRICT;
";

/// Marks of answers that are on their way.
const FOURTH: &str = "
CREATE TABLE marks (
    account INTEGER NOT NULL,
    chat TEXT NOT NULL,
    turn TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    look_at INTEGER NOT NULL,
    held INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (account, chat, turn),
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
) STRICT;
CREATE INDEX marks_oldest ON marks (account, asked_at, chat, turn);
CREATE INDEX marks_asked ON marks (asked_at);
CREATE INDEX marks_due ON marks (look_at);
";

/// Snapshots that are shared, by the digest of their ids.
const FIFTH: &str = "
CREATE TABLE snapshots (
    id BLOB PRIMARY KEY,
    account INTEGER NOT NULL,
    chat TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    line BLOB NOT NULL,
    content BLOB NOT NULL,
    FOREIGN KEY (account, chat) REFERENCES chats (account, chat) ON DELETE CASCADE
) STRICT;
CREATE INDEX snapshots_account ON snapshots (account, id);
CREATE INDEX snapshots_chat ON snapshots (account, chat);
CREATE INDEX snapshots_expires ON snapshots (expires_at);
";
