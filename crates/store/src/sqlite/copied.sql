-- Audit lanes of another store, as they were copied. Our own follows them.
CREATE TABLE copied_lanes (
    lane      INTEGER PRIMARY KEY,
    floor     INTEGER NOT NULL, -- the last sequence before the records that are there
    floor_tag BLOB,
    head      INTEGER NOT NULL,
    head_tag  BLOB NOT NULL
);
CREATE TABLE copied_records (
    lane   INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (lane, seq)
) WITHOUT ROWID;
