CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY,
    scope_tag  BLOB NOT NULL UNIQUE,
    person_tag BLOB NOT NULL,
    tenant_tag BLOB NOT NULL,
    kid        BLOB NOT NULL,
    version    INTEGER NOT NULL, -- as of `head`
    head       INTEGER NOT NULL, -- its newest settled record, also when a snapshot covers that one; 0 for none
    dead       INTEGER,          -- the newest record that a snapshot covers and that was not swept yet
    expires_at INTEGER,
    owner      BLOB
);
CREATE UNIQUE INDEX sessions_by_kid ON sessions (kid);
CREATE INDEX sessions_by_person ON sessions (person_tag);
CREATE INDEX sessions_by_dead ON sessions (dead) WHERE dead IS NOT NULL;
CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX sessions_by_owner ON sessions (owner) WHERE owner IS NOT NULL;

CREATE TABLE records (
    id     INTEGER PRIMARY KEY, -- in the order of arrival
    log    INTEGER,             -- the key id of the log it belongs to; NULL for an audit record
    seq    INTEGER NOT NULL,    -- its place in that log, or in the audit chain
    prev   INTEGER NOT NULL,    -- the log's record before it; 0 for none
    sealed BLOB NOT NULL
);

CREATE TABLE session_snapshots (
    session INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL,
    sealed  BLOB NOT NULL
);

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL UNIQUE,
    person_tag BLOB,
    sealed     BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX tokens_by_person ON tokens (person_tag) WHERE person_tag IS NOT NULL;
