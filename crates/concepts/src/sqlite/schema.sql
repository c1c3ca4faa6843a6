CREATE TABLE concepts (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE, -- the concept's id, such as TAX:IE:VAT; its IRI where its parts are not known
    iri           TEXT UNIQUE,
    domain        TEXT,
    kind          TEXT,
    jurisdiction  TEXT,
    state         INTEGER NOT NULL DEFAULT 0, -- 0 only mentioned, 1 a concept, 2 withdrawn
    superseded_by INTEGER
);
CREATE INDEX concepts_by_parts ON concepts (domain, jurisdiction, kind) WHERE domain IS NOT NULL;

CREATE TABLE labels (
    id       INTEGER PRIMARY KEY,
    concept  INTEGER NOT NULL,
    kind     INTEGER NOT NULL, -- 0 preferred, 1 other, 2 hidden: good for finding, never shown
    language TEXT NOT NULL,
    text     TEXT NOT NULL,
    plain    TEXT NOT NULL,    -- as labels are compared
    UNIQUE (concept, kind, language, text)
);
CREATE INDEX labels_by_plain ON labels (plain);

CREATE VIRTUAL TABLE label_words USING fts5 (
    plain, content = 'labels', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', columnsize = 0
);
CREATE TRIGGER labels_added AFTER INSERT ON labels BEGIN
    INSERT INTO label_words (rowid, plain) VALUES (new.id, new.plain);
END;
CREATE TRIGGER labels_removed AFTER DELETE ON labels BEGIN
    INSERT INTO label_words (label_words, rowid, plain) VALUES ('delete', old.id, old.plain);
END;

CREATE TABLE definitions (
    concept  INTEGER NOT NULL,
    language TEXT NOT NULL,
    text     TEXT NOT NULL,
    PRIMARY KEY (concept, language, text)
) WITHOUT ROWID;

CREATE TABLE sources (
    concept INTEGER NOT NULL,
    url     TEXT NOT NULL,
    PRIMARY KEY (concept, url)
) WITHOUT ROWID;

CREATE TABLE relations (
    concept INTEGER NOT NULL,
    kind    INTEGER NOT NULL, -- 0 broader, 1 narrower, 2 related
    other   INTEGER NOT NULL,
    PRIMARY KEY (concept, kind, other)
) WITHOUT ROWID;

CREATE TABLE imports (
    digest  BLOB PRIMARY KEY,
    triples INTEGER NOT NULL,
    done    INTEGER NOT NULL
) WITHOUT ROWID;
