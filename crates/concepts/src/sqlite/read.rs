//! Looking concepts up. Every value is a parameter; words to look for are quoted, so they are never query syntax.

use rusqlite::{Connection, Row, params};
use serde::Serialize;

use super::{Result, SqliteGraph, failed};
use crate::concept::{Node, normalised};
use crate::graph::Look;

/// What a node is made of, given a concept `c` and the language as `?2`.
const NODE: &str = "c.name, c.domain, c.kind, c.jurisdiction,
    (SELECT text FROM labels WHERE concept = c.id AND kind = 0
        ORDER BY language = ?2 DESC, language = 'en' DESC, language LIMIT 1),
    (SELECT json_group_array(text) FROM (SELECT text FROM labels WHERE concept = c.id AND kind < 2 LIMIT 33)),
    (SELECT text FROM definitions WHERE concept = c.id
        ORDER BY language = ?2 DESC, language = 'en' DESC, language LIMIT 1),
    (SELECT json_group_array(url) FROM (SELECT url FROM sources WHERE concept = c.id LIMIT 16)),
    (SELECT json_group_array(r.kind || o.name) FROM relations r JOIN concepts o ON o.id = r.other
        WHERE r.concept = c.id AND o.state = 1)";

/// The nodes of these ids, in their order.
pub(super) fn nodes(c: &Connection, ids: &[String], language: &str) -> rusqlite::Result<Vec<Option<Node>>> {
    let mut found: Vec<Option<Node>> = vec![None; ids.len()];
    let sql = format!(
        "WITH RECURSIVE asked (place, id, hops) AS (
            SELECT key, coalesce((SELECT id FROM concepts WHERE name = value),
                                 (SELECT id FROM concepts WHERE iri = value)), 0 FROM json_each(?1)
            UNION ALL
            SELECT place, o.superseded_by, hops + 1 FROM asked JOIN concepts o ON o.id = asked.id
            WHERE o.superseded_by IS NOT NULL AND hops < 8)
         SELECT place, {NODE} FROM asked CROSS JOIN concepts c ON c.id = asked.id
         WHERE c.state = 1 AND c.superseded_by IS NULL"
    );
    let asked = serde_json::to_string(ids).unwrap_or_default();
    let mut statement = c.prepare_cached(&sql)?;
    let mut rows = statement.query(params![asked, language])?;
    while let Some(row) = rows.next()? {
        if let Some(place) = found.get_mut(row.get::<_, usize>(0)?) {
            *place = Some(node(row, 1)?);
        }
    }
    Ok(found)
}

/// A look that can go to another thread.
pub(super) enum Owned {
    Parts(String, String, String),
    Label(String, Option<String>),
    Words(String),
}

impl From<Look<'_>> for Owned {
    fn from(look: Look<'_>) -> Self {
        match look {
            Look::Parts { domain, jurisdiction, kind } => {
                Self::Parts(domain.to_owned(), jurisdiction.to_owned(), kind.to_owned())
            }
            Look::Label { label, jurisdiction } => {
                Self::Label(label.to_owned(), jurisdiction.map(str::to_owned))
            }
            Look::Words(words) => Self::Words(words.to_owned()),
        }
    }
}

impl Owned {
    pub(super) fn look(&self) -> Look<'_> {
        match self {
            Self::Parts(domain, jurisdiction, kind) => Look::Parts { domain, jurisdiction, kind },
            Self::Label(label, jurisdiction) => Look::Label { label, jurisdiction: jurisdiction.as_deref() },
            Self::Words(words) => Look::Words(words),
        }
    }
}

pub(super) fn find(
    c: &Connection,
    look: Look<'_>,
    language: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Node>> {
    match look {
        Look::Parts { domain, jurisdiction, kind } => {
            let sql = format!(
                "SELECT {NODE} FROM concepts c WHERE c.domain = ?1 AND c.jurisdiction = ?3 AND c.kind = ?4
                 AND c.state = 1 AND c.superseded_by IS NULL ORDER BY c.id LIMIT ?5"
            );
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement
                .query_map(params![domain, language, jurisdiction, kind, limit], |row| node(row, 0))?;
            rows.collect()
        }
        Look::Label { label, jurisdiction } => {
            let sql = format!(
                "SELECT {NODE} FROM (SELECT concept, min(kind) AS kind FROM labels WHERE plain = ?1 GROUP BY concept) l
                 CROSS JOIN concepts c ON c.id = l.concept
                 WHERE (?3 IS NULL OR c.jurisdiction IS NULL OR c.jurisdiction = ?3)
                 AND c.state = 1 AND c.superseded_by IS NULL ORDER BY l.kind, c.id LIMIT ?4"
            );
            let mut statement = c.prepare_cached(&sql)?;
            let values = params![normalised(label), language, jurisdiction, limit];
            let rows = statement.query_map(values, |row| node(row, 0))?;
            rows.collect()
        }
        Look::Words(words) => find_words(c, words, language, limit),
    }
}

/// Concepts whose labels have these words: those that are called exactly so first, then the shorter labels.
///
/// Only so many labels are weighed, since a common word has very many.
fn find_words(c: &Connection, words: &str, language: &str, limit: usize) -> rusqlite::Result<Vec<Node>> {
    let plain = normalised(words);
    let terms: Vec<&str> = plain.split(' ').filter(|term| !term.is_empty()).take(MOST_TERMS).collect();
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let query: Vec<String> = terms.iter().map(|term| format!("\"{term}\"*")).collect();
    let sql = format!(
        "SELECT {NODE} FROM (
            SELECT concept, min(weight) AS weight FROM (
                SELECT concept, -1 AS weight FROM labels WHERE plain = ?1
                UNION ALL
                SELECT concept, length(plain) FROM (SELECT rowid FROM label_words WHERE label_words MATCH ?3 LIMIT ?4) w
                CROSS JOIN labels ON labels.id = w.rowid)
            GROUP BY concept ORDER BY weight LIMIT ?5) best
         CROSS JOIN concepts c ON c.id = best.concept
         WHERE c.state = 1 AND c.superseded_by IS NULL ORDER BY best.weight, c.id"
    );
    let mut statement = c.prepare_cached(&sql)?;
    let values = params![plain, language, query.join(" "), MOST_WEIGHED, limit];
    let rows = statement.query_map(values, |row| node(row, 0))?;
    rows.collect()
}

pub(super) fn count(c: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM concepts WHERE state = 1 AND superseded_by IS NULL";
    c.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

fn node(row: &Row<'_>, from: usize) -> rusqlite::Result<Node> {
    let list = |at: usize| -> rusqlite::Result<Vec<String>> {
        let text: String = row.get(from + at)?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    };
    let id: String = row.get(from)?;
    let pref_label = row.get::<_, Option<String>>(from + 4)?.unwrap_or_else(|| id.clone());
    let relations = list(8)?;
    let related =
        |kind: char| relations.iter().filter_map(|text| text.strip_prefix(kind).map(str::to_owned)).collect();
    let mut alt_labels = list(5)?;
    alt_labels.retain(|label| *label != pref_label);
    Ok(Node {
        domain: row.get(from + 1)?,
        kind: row.get(from + 2)?,
        jurisdiction: row.get(from + 3)?,
        alt_labels,
        definition: row.get(from + 6)?,
        source_urls: list(7)?,
        broader: related('0'),
        narrower: related('1'),
        related: related('2'),
        pref_label,
        id,
    })
}

/// A page of a graph's concepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConceptList {
    /// The concepts, by id.
    pub concepts: Vec<Node>,
    /// How many there are in all.
    pub total: u64,
}

impl SqliteGraph {
    /// Concepts in the order of their ids, after `after`.
    pub fn list(&self, after: Option<&str>, language: &str, limit: usize) -> Result<ConceptList> {
        let sql = format!(
            "SELECT {NODE} FROM concepts c WHERE c.name > ?1 AND c.state = 1 AND c.superseded_by IS NULL
             ORDER BY c.name LIMIT ?3"
        );
        self.with_reader(|c| {
            let mut statement = c.prepare_cached(&sql)?;
            let rows =
                statement.query_map(params![after.unwrap_or(""), language, limit], |row| node(row, 0))?;
            Ok(ConceptList { concepts: rows.collect::<rusqlite::Result<_>>()?, total: count(c)? })
        })
    }

    /// Everything of every concept, for an export, in pages: each call gets the row after `after` and on.
    pub(crate) fn rows(&self, after: i64, limit: usize) -> Result<Vec<FullRow>> {
        self.with_reader(|c| full_rows(c, after, limit))
    }
}

/// A concept with everything that is known of it.
#[derive(Debug)]
pub(crate) struct FullRow {
    pub(crate) row: i64,
    pub(crate) name: String,
    pub(crate) iri: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) jurisdiction: Option<String>,
    pub(crate) withdrawn: bool,
    pub(crate) superseded_by: Option<(String, Option<String>)>,
    /// Kind, language, text.
    pub(crate) labels: Vec<(u8, String, String)>,
    pub(crate) definitions: Vec<(String, String)>,
    pub(crate) sources: Vec<String>,
    /// Kind, name, IRI.
    pub(crate) relations: Vec<(u8, String, Option<String>)>,
}

fn full_rows(c: &Connection, after: i64, limit: usize) -> rusqlite::Result<Vec<FullRow>> {
    let sql = "SELECT c.id, c.name, c.iri, c.domain, c.kind, c.jurisdiction, c.state = 2, o.name, o.iri
               FROM concepts c LEFT JOIN concepts o ON o.id = c.superseded_by
               WHERE c.id > ?1 AND c.state > 0 ORDER BY c.id LIMIT ?2";
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(params![after, limit], |row| {
        let superseded: Option<String> = row.get(7)?;
        let superseded_iri: Option<String> = row.get(8)?;
        Ok(FullRow {
            row: row.get(0)?,
            name: row.get(1)?,
            iri: row.get(2)?,
            domain: row.get(3)?,
            kind: row.get(4)?,
            jurisdiction: row.get(5)?,
            withdrawn: row.get(6)?,
            superseded_by: superseded.map(|name| (name, superseded_iri)),
            labels: Vec::new(),
            definitions: Vec::new(),
            sources: Vec::new(),
            relations: Vec::new(),
        })
    })?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    for one in &mut rows {
        let mut labels =
            c.prepare_cached("SELECT kind, language, text FROM labels WHERE concept = ?1 ORDER BY id")?;
        let found = labels.query_map([one.row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        one.labels = found.collect::<rusqlite::Result<_>>()?;
        let mut texts = c.prepare_cached("SELECT language, text FROM definitions WHERE concept = ?1")?;
        let found = texts.query_map([one.row], |row| Ok((row.get(0)?, row.get(1)?)))?;
        one.definitions = found.collect::<rusqlite::Result<_>>()?;
        let mut urls = c.prepare_cached("SELECT url FROM sources WHERE concept = ?1")?;
        one.sources = urls.query_map([one.row], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let sql = "SELECT r.kind, o.name, o.iri FROM relations r JOIN concepts o ON o.id = r.other WHERE r.concept = ?1";
        let mut relations = c.prepare_cached(sql)?;
        let found = relations.query_map([one.row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        one.relations = found.collect::<rusqlite::Result<_>>()?;
    }
    Ok(rows)
}

/// More words than this do not make a search better.
const MOST_TERMS: usize = 8;
/// Labels that are weighed: enough for a good one to be among them, few enough for a millisecond or two.
const MOST_WEIGHED: usize = 2_000;

pub(super) fn digest_state(c: &Connection, digest: &[u8]) -> Result<Option<(u64, bool)>> {
    use rusqlite::OptionalExtension as _;
    c.query_row("SELECT triples, done FROM imports WHERE digest = ?1", [digest], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })
    .optional()
    .map_err(|e| failed(&e))
}
