//! Putting concepts in: one that was approved, or the statements of a vocabulary, one by one.
//!
//! A vocabulary's statements about a concept may stand anywhere in its file, so each is applied as it comes, and a
//! concept is there once something says that it is one. Applying a statement twice changes nothing, which is what
//! makes an import that was cut off safe to take up again.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Result, SqliteGraph, failed, read};
use crate::concept::{Concept, concept_id, normalised};

/// Brings in a concept that was approved. Everything that was said of it before is replaced, but for its relations.
pub(super) fn approve(c: &mut Connection, concept: &Concept) -> rusqlite::Result<String> {
    let tx = c.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let sql = "INSERT INTO concepts (name, domain, kind, jurisdiction, state) VALUES (?1, ?2, ?3, ?4, 1)
               ON CONFLICT (name) DO UPDATE SET domain = ?2, kind = ?3, jurisdiction = ?4, state = 1
               RETURNING id";
    let values = params![concept.id, concept.domain, concept.kind, concept.jurisdiction];
    let row: i64 = tx.query_row(sql, values, |row| row.get(0))?;
    tx.execute("DELETE FROM labels WHERE concept = ?1 AND language IN ('', 'en')", [row])?;
    tx.execute("DELETE FROM definitions WHERE concept = ?1 AND language IN ('', 'en')", [row])?;
    tx.execute("DELETE FROM sources WHERE concept = ?1", [row])?;
    label(&tx, row, 0, "en", &concept.pref_label)?;
    for alt in &concept.alt_labels {
        label(&tx, row, 1, "en", alt)?;
    }
    if let Some(text) = &concept.definition {
        tx.execute("INSERT INTO definitions VALUES (?1, 'en', ?2)", params![row, text])?;
    }
    for url in &concept.source_urls {
        tx.execute("INSERT OR IGNORE INTO sources VALUES (?1, ?2)", params![row, url])?;
    }
    tx.commit()?;
    Ok(concept.id.clone())
}

fn label(c: &Connection, concept: i64, kind: u8, language: &str, text: &str) -> rusqlite::Result<()> {
    let sql =
        "INSERT OR IGNORE INTO labels (concept, kind, language, text, plain) VALUES (?1, ?2, ?3, ?4, ?5)";
    c.prepare_cached(sql)?.execute(params![concept, kind, language, text, normalised(text)]).map(drop)
}

/// Something that a vocabulary says of a concept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    IsConcept,
    Withdrawn,
    SupersededBy(String),
    Label { kind: u8, language: String, text: String },
    Definition { language: String, text: String },
    Source(String),
    Domain(String),
    Kind(String),
    Jurisdiction(String),
    Relation { kind: u8, other: String },
}

/// An import on its way into a graph. What was kept of it stays when it is dropped.
#[derive(Debug)]
pub struct Pending<'g> {
    writer: parking_lot::MutexGuard<'g, Connection>,
    digest: Vec<u8>,
    /// Statements that were applied, those of earlier tries included.
    applied: u64,
    /// Row ids of what was met.
    known: HashMap<String, i64>,
}

impl SqliteGraph {
    /// Begins an import of the file with this digest, or takes it up; nothing if it was done before.
    pub(crate) fn import(&self, digest: &[u8]) -> Result<Option<Pending<'_>>> {
        let writer = self.writer();
        let applied = match read::digest_state(&writer, digest)? {
            Some((_, true)) => return Ok(None),
            Some((applied, false)) => applied,
            None => 0,
        };
        writer.execute_batch("BEGIN IMMEDIATE").map_err(|e| failed(&e))?;
        Ok(Some(Pending { writer, digest: digest.to_vec(), applied, known: HashMap::new() }))
    }
}

impl Pending<'_> {
    /// How many statements were applied before.
    pub(crate) fn applied(&self) -> u64 {
        self.applied
    }

    /// Applies what is said of a concept.
    pub(crate) fn apply(&mut self, iri: &str, said: &Said) -> Result<()> {
        let row = self.row(iri)?;
        let other = match said {
            Said::SupersededBy(other) | Said::Relation { other, .. } => Some(self.row(other)?),
            _ => None,
        };
        apply(&self.writer, row, said, other).map_err(|e| failed(&e))
    }

    /// Looks a concept up that was applied before.
    pub(crate) fn meet(&mut self, iri: &str) -> Result<()> {
        self.row(iri).map(drop)
    }

    /// Keeps what was applied up to this statement.
    pub(crate) fn keep(&mut self, applied: u64) -> Result<()> {
        self.applied = applied;
        self.note(false)?;
        self.writer.execute_batch("COMMIT; BEGIN IMMEDIATE").map_err(|e| failed(&e))
    }

    /// Names the concepts that have parts, and ends the import. Says how many concepts the file had.
    pub(crate) fn finish(&mut self, defaults: &crate::skos::Defaults) -> Result<u64> {
        let rows: Vec<i64> = self.known.values().copied().collect();
        let mut concepts = 0;
        for row in rows {
            concepts += u64::from(name(&self.writer, row, defaults).map_err(|e| failed(&e))?);
        }
        self.note(true)?;
        // A merged index is smaller and faster, and a vocabulary seldom changes.
        let end = "INSERT INTO label_words (label_words) VALUES ('optimize'); COMMIT; PRAGMA optimize";
        self.writer.execute_batch(end).map_err(|e| failed(&e))?;
        Ok(concepts)
    }

    fn note(&self, done: bool) -> Result<()> {
        let sql = "INSERT INTO imports VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE SET triples = ?2, done = ?3";
        let values = params![self.digest, self.applied, done];
        self.writer.execute(sql, values).map(drop).map_err(|e| failed(&e))
    }

    fn row(&mut self, iri: &str) -> Result<i64> {
        if let Some(row) = self.known.get(iri) {
            return Ok(*row);
        }
        let find = || {
            let found = self
                .writer
                .prepare_cached("SELECT id FROM concepts WHERE iri = ?1")?
                .query_row([iri], |row| row.get(0))
                .optional()?;
            match (found, id_in(iri)) {
                (Some(row), _) => Ok(row),
                (None, own) => {
                    let name = own.as_deref().unwrap_or(iri);
                    let sql = "INSERT INTO concepts (name, iri) VALUES (?1, ?2)
                               ON CONFLICT (name) DO UPDATE SET iri = ?2 RETURNING id";
                    self.writer.prepare_cached(sql)?.query_row(params![name, iri], |row| row.get(0))
                }
            }
        };
        let row = find().map_err(|e: rusqlite::Error| failed(&e))?;
        self.known.insert(iri.to_owned(), row);
        Ok(row)
    }
}

/// The id in an IRI that an export of ours made.
fn id_in(iri: &str) -> Option<String> {
    iri.strip_prefix(crate::skos::OWN).map(crate::skos::decoded)
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.writer.is_autocommit() {
            let _ = self.writer.execute_batch("ROLLBACK");
        }
    }
}

fn apply(c: &Connection, row: i64, said: &Said, other: Option<i64>) -> rusqlite::Result<()> {
    let set = |sql: &str, value: &str| c.prepare_cached(sql)?.execute(params![row, value]).map(drop);
    match said {
        Said::IsConcept => c
            .prepare_cached("UPDATE concepts SET state = 1 WHERE id = ?1 AND state = 0")?
            .execute([row])
            .map(drop),
        Said::Withdrawn => {
            c.prepare_cached("UPDATE concepts SET state = 2 WHERE id = ?1")?.execute([row]).map(drop)
        }
        Said::SupersededBy(_) => {
            // Nothing succeeds itself.
            let sql = "UPDATE concepts SET superseded_by = ?2 WHERE id = ?1 AND id <> ?2";
            c.prepare_cached(sql)?.execute(params![row, other]).map(drop)
        }
        Said::Label { kind, language, text } => label(c, row, *kind, language, text),
        Said::Definition { language, text } => c
            .prepare_cached("INSERT OR IGNORE INTO definitions VALUES (?1, ?2, ?3)")?
            .execute(params![row, language, text])
            .map(drop),
        Said::Source(url) => set("INSERT OR IGNORE INTO sources VALUES (?1, ?2)", url),
        Said::Domain(text) => set("UPDATE concepts SET domain = ?2 WHERE id = ?1", text),
        Said::Kind(text) => set("UPDATE concepts SET kind = ?2 WHERE id = ?1", text),
        Said::Jurisdiction(text) => set("UPDATE concepts SET jurisdiction = ?2 WHERE id = ?1", text),
        Said::Relation { kind, .. } => {
            let add = "INSERT OR IGNORE INTO relations VALUES (?1, ?2, ?3)";
            c.prepare_cached(add)?.execute(params![row, kind, other])?;
            // Broader one way is narrower the other; related is both.
            let back = match kind {
                0 => 1,
                1 => 0,
                same => *same,
            };
            c.prepare_cached(add)?.execute(params![other, back, row]).map(drop)
        }
    }
}

/// Gives a concept whose parts are known the id that they make; says whether it is a concept.
fn name(c: &Connection, row: i64, defaults: &crate::skos::Defaults) -> rusqlite::Result<bool> {
    let sql = "SELECT name, iri, domain, kind, jurisdiction, state,
               (SELECT text FROM labels WHERE concept = ?1 AND kind = 0 ORDER BY language = 'en' DESC, language LIMIT 1)
               FROM concepts WHERE id = ?1";
    type Parts = (String, Option<String>, Option<String>, Option<String>, Option<String>, u8, Option<String>);
    let (known, iri, domain, kind, jurisdiction, state, label): Parts =
        c.prepare_cached(sql)?.query_row([row], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?))
        })?;
    if state != 1 {
        return Ok(false);
    }
    let domain = domain.or_else(|| defaults.domain.clone());
    let jurisdiction = jurisdiction.or_else(|| defaults.jurisdiction.clone());
    if let (Some(domain), Some(jurisdiction), Some(label)) = (&domain, &jurisdiction, label) {
        let kind = kind.unwrap_or_default();
        let id = concept_id(domain, jurisdiction, &kind, &label);
        let own = if kind.is_empty() { id.rsplit(':').next().unwrap_or_default().to_owned() } else { kind };
        // A name that is taken stays where it is: two concepts are never made one by their parts.
        let free: bool = c
            .prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM concepts WHERE name = ?1 AND id <> ?2)")?
            .query_row(params![id, row], |r| r.get(0))?;
        let id = if free && iri.as_deref() == Some(known.as_str()) { id } else { known };
        let sql = "UPDATE concepts SET name = ?2, domain = ?3, jurisdiction = ?4, kind = ?5 WHERE id = ?1";
        c.prepare_cached(sql)?.execute(params![
            row,
            id,
            domain.to_uppercase(),
            jurisdiction.to_uppercase(),
            own
        ])?;
    }
    Ok(true)
}
