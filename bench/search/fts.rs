//! Plain FTS5: a table of texts, BM25, nothing else.

use std::path::Path;

use confidant_memory::index::Document;
use rusqlite::{Connection, params};

use crate::Result;

/// A full-text table in a file.
#[derive(Debug)]
pub(crate) struct Fts(Connection);

impl Fts {
    pub(crate) fn create(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE cards USING fts5(title, body);
             CREATE TABLE facts (id INTEGER PRIMARY KEY, at INTEGER NOT NULL);
             CREATE INDEX facts_at ON facts(at);
             CREATE TABLE tags (tag TEXT, id INTEGER, PRIMARY KEY (tag, id)) WITHOUT ROWID;",
        )?;
        Ok(Self(connection))
    }

    pub(crate) fn add(&mut self, documents: &[Document]) -> Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut card =
                transaction.prepare_cached("INSERT INTO cards (rowid, title, body) VALUES (?, ?, ?)")?;
            let mut fact = transaction.prepare_cached("INSERT INTO facts VALUES (?, ?)")?;
            let mut tag = transaction.prepare_cached("INSERT INTO tags VALUES (?, ?)")?;
            for document in documents {
                let id = document.id.cast_signed();
                card.execute(params![id, document.card.title, body(document)])?;
                fact.execute(params![id, document.created_at])?;
                for name in &document.tags {
                    tag.execute(params![name, id])?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// The best for a query in FTS5's own syntax.
    pub(crate) fn search(
        &self,
        matching: &str,
        tag: Option<&str>,
        from: Option<i64>,
        limit: usize,
    ) -> Result<Vec<u64>> {
        let mut statement = self.0.prepare_cached(
            "SELECT rowid FROM cards WHERE cards MATCH ?1
               AND (?2 IS NULL OR EXISTS (SELECT 1 FROM tags WHERE tag = ?2 AND tags.id = cards.rowid))
               AND (?3 IS NULL OR EXISTS (SELECT 1 FROM facts WHERE facts.id = cards.rowid AND at >= ?3))
             ORDER BY rank LIMIT ?4",
        )?;
        let rows =
            statement.query_map(params![matching, tag, from, limit as i64], |row| row.get::<_, i64>(0))?;
        rows.map(|row| Ok(row?.cast_unsigned())).collect()
    }
}

/// A text's words as an FTS5 query: all of them must be there, or any.
pub(crate) fn query(text: &str, joined: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(joined)
}

fn body(document: &Document) -> String {
    let card = &document.card;
    let lists = [
        &card.summary_bullets,
        &card.decisions,
        &card.todos,
        &card.entities,
        &card.keywords,
        &card.notable_quotes,
        &document.tags,
    ];
    lists.iter().flat_map(|list| list.iter()).map(String::as_str).collect::<Vec<_>>().join("\n")
}
