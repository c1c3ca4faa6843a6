//! `keyring.db`: session keys, sealed under the root; what erasure destroys.
//!
//! Every commit here waits for the disk, whatever the data's durability: a key that is lost takes its log with it,
//! and a key that comes back after its destruction breaks a promise.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::writer::Writer;
use super::{Durability, File, Readers, kid_at, many, number, number_at, sealed_at, tag_at};
use crate::clock::Millis;
use crate::lane::Lane;
use crate::{Anchor, Anchors, Created, DataKeys, KeyRow, LaneAnchor, Result, Rotation, SystemKeys, Upkeep};

const KEYS: File = File {
    name: "keyring.db",
    migrations: &[
        "
        CREATE TABLE roots (one INTEGER PRIMARY KEY CHECK (one = 1), kid BLOB NOT NULL);
        CREATE TABLE named (name TEXT PRIMARY KEY, root BLOB NOT NULL, sealed BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE session_keys (
            scope_tag    BLOB PRIMARY KEY,
            generation   INTEGER NOT NULL,
            root         BLOB NOT NULL,
            kid          BLOB NOT NULL,
            sealed_key   BLOB NOT NULL,
            sealed_scope BLOB NOT NULL,
            anchor       INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX session_keys_by_root ON session_keys (root);
        CREATE TABLE audit_anchor (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL);
    ",
        "
        CREATE TABLE lane_anchors (
            lane  INTEGER NOT NULL,
            until INTEGER NOT NULL, -- 0 for never
            seq   INTEGER NOT NULL,
            PRIMARY KEY (lane, until)
        ) WITHOUT ROWID;
        INSERT INTO lane_anchors (lane, until, seq) SELECT 0, 0, seq FROM audit_anchor;
        DROP TABLE audit_anchor;
    ",
        "ALTER TABLE session_keys ADD COLUMN expires_at INTEGER",
    ],
};

const COLUMNS: &str = "scope_tag, generation, root, kid, sealed_key, sealed_scope, anchor, expires_at";

/// The keyring in one SQLite file.
#[derive(Debug)]
pub struct SqliteKeys {
    writer: Writer,
    readers: Arc<Readers>,
}

impl SqliteKeys {
    /// Opens or makes `folder/keyring.db`.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(KEYS.name);
        let writer = Writer::new(KEYS, KEYS.open(&path, Durability::Power)?);
        Ok(Self { writer, readers: Readers::new(KEYS, path) })
    }
}

#[async_trait]
impl SystemKeys for SqliteKeys {
    async fn root(&self) -> Result<Option<Kid>> {
        self.readers.read(root).await
    }

    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool> {
        let set = move |c: &Connection| {
            if root(c)? != from {
                return Ok(false);
            }
            c.execute("INSERT OR REPLACE INTO roots (one, kid) VALUES (1, ?1)", [to.as_bytes()])?;
            Ok(true)
        };
        self.writer.write(set).await
    }

    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>> {
        let name = name.to_owned();
        self.readers.read(move |c| named(c, &name)).await
    }

    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool> {
        let (name, from, to) = (name.to_owned(), from.cloned(), to.clone());
        let put = move |c: &Connection| {
            if named(c, &name)?.map(|(_, sealed)| sealed) != from {
                return Ok(false);
            }
            c.execute(
                "INSERT OR REPLACE INTO named (name, root, sealed) VALUES (?1, ?2, ?3)",
                params![name, root.as_bytes(), to.as_bytes()],
            )?;
            Ok(true)
        };
        self.writer.write(put).await
    }
}

#[async_trait]
impl DataKeys for SqliteKeys {
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>> {
        // Short, and never kept waiting by a writer, so not worth a thread.
        self.readers.with(|c| get(c, scope))
    }

    async fn create(&self, row: KeyRow) -> Result<Created> {
        let create = move |c: &Connection| {
            if let Some(existing) = get(c, row.scope)? {
                return Ok(Created::Existing(existing));
            }
            if let Some(root) = root(c)?
                && root != row.root
            {
                return Ok(Created::RootChanged(root));
            }
            let sql = format!("INSERT INTO session_keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
            c.prepare_cached(&sql)?.execute(params![
                row.scope.as_bytes(),
                row.generation,
                row.root.as_bytes(),
                row.kid.as_bytes(),
                row.sealed_key.as_bytes(),
                row.sealed_scope.as_bytes(),
                number(row.anchor),
                row.expires_at.map(|at| at.0)
            ])?;
            Ok(Created::New)
        };
        self.writer.write(create).await
    }

    async fn destroy(&self, scopes: &[Tag]) -> Result<u64> {
        let scopes = scopes.to_vec();
        let destroy = move |c: &Connection| {
            let mut delete = c.prepare_cached("DELETE FROM session_keys WHERE scope_tag = ?1")?;
            let mut gone = 0;
            for scope in &scopes {
                gone += delete.execute([scope.as_bytes()])? as u64;
            }
            Ok(gone)
        };
        self.writer.write(destroy).await
    }

    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>> {
        let list = move |c: &Connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM session_keys WHERE scope_tag > ?1 ORDER BY scope_tag LIMIT ?2"
            );
            let after = after.map_or_else(Vec::new, |tag| tag.as_bytes().to_vec());
            let mut statement = c.prepare_cached(&sql)?;
            statement.query_map(params![after, many(limit)], key_row)?.collect()
        };
        self.readers.read(list).await
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let expired = move |c: &Connection| {
            // Without an index: every turn would have to write it, and this is asked once a minute.
            let sql = "SELECT scope_tag FROM session_keys WHERE expires_at <= ?1 LIMIT ?2";
            let mut statement = c.prepare_cached(sql)?;
            statement.query_map(params![now.0, many(limit)], |row| tag_at(row, 0))?.collect()
        };
        self.readers.read(expired).await
    }
}

#[async_trait]
impl Rotation for SqliteKeys {
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>> {
        let not_under = move |c: &Connection| {
            // Two ranges instead of `!=`, so that the index by root finds the few that are left among the many.
            let sql = format!(
                "SELECT * FROM (SELECT {COLUMNS} FROM session_keys WHERE root < ?1 LIMIT ?2)
                 UNION ALL SELECT * FROM (SELECT {COLUMNS} FROM session_keys WHERE root > ?1 LIMIT ?2) LIMIT ?2"
            );
            let mut statement = c.prepare_cached(&sql)?;
            statement.query_map(params![root.as_bytes(), many(limit)], key_row)?.collect()
        };
        self.readers.read(not_under).await
    }

    async fn count(&self, root: Kid) -> Result<(u64, u64)> {
        let count = move |c: &Connection| {
            let sql = "SELECT count(*), count(*) FILTER (WHERE root != ?1) FROM session_keys";
            c.prepare_cached(sql)?
                .query_row([root.as_bytes()], |row| Ok((number_at(row, 0)?, number_at(row, 1)?)))
        };
        self.readers.read(count).await
    }

    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64> {
        let rewrap = move |c: &Connection| {
            let mut update = c.prepare_cached(
                "UPDATE session_keys SET root = ?3, sealed_key = ?4, sealed_scope = ?5
                 WHERE scope_tag = ?1 AND sealed_key = ?2",
            )?;
            let mut changed = 0;
            for (from, to) in &rows {
                changed += update.execute(params![
                    from.scope.as_bytes(),
                    from.sealed_key.as_bytes(),
                    to.root.as_bytes(),
                    to.sealed_key.as_bytes(),
                    to.sealed_scope.as_bytes()
                ])? as u64;
            }
            Ok(changed)
        };
        self.writer.write(rewrap).await
    }
}

#[async_trait]
impl Anchors for SqliteKeys {
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let (logs, lanes) = (logs.to_vec(), lanes.to_vec());
        let raise = move |c: &Connection| {
            set_anchors(c, "anchor = ?3, expires_at = ?4 WHERE anchor <= ?3", &logs)?;
            raise_lanes(c, &lanes)
        };
        self.writer.write(raise).await
    }

    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let (logs, lanes) = (logs.to_vec(), lanes.to_vec());
        let set = move |c: &Connection| {
            set_anchors(c, "anchor = ?3 WHERE ?4 IS ?4", &logs)?;
            c.execute("DELETE FROM lane_anchors", [])?;
            raise_lanes(c, &lanes)
        };
        self.writer.write(set).await
    }

    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>> {
        let all = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT lane, until, seq FROM lane_anchors ORDER BY lane, until")?;
            statement.query_map([], lane_anchor)?.collect()
        };
        self.readers.read(all).await
    }
}

#[async_trait]
impl Upkeep for SqliteKeys {
    async fn scrub(&self) -> Result<()> {
        self.readers.rewrite().await
    }

    async fn check(&self) -> Result<String> {
        self.readers.check().await
    }
}

fn root(c: &Connection) -> rusqlite::Result<Option<Kid>> {
    c.prepare_cached("SELECT kid FROM roots")?.query_row([], |row| kid_at(row, 0)).optional()
}

fn named(c: &Connection, name: &str) -> rusqlite::Result<Option<(Kid, Sealed)>> {
    let mut statement = c.prepare_cached("SELECT root, sealed FROM named WHERE name = ?1")?;
    statement.query_row([name], |row| Ok((kid_at(row, 0)?, sealed_at(row, 1)?))).optional()
}

fn get(c: &Connection, scope: Tag) -> rusqlite::Result<Option<KeyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM session_keys WHERE scope_tag = ?1");
    c.prepare_cached(&sql)?.query_row([scope.as_bytes()], key_row).optional()
}

fn set_anchors(c: &Connection, change: &str, logs: &[Anchor]) -> rusqlite::Result<()> {
    let sql = format!("UPDATE session_keys SET {change} AND scope_tag = ?1 AND kid = ?2");
    let mut update = c.prepare_cached(&sql)?;
    for log in logs {
        let expires_at = log.expires_at.map(|at| at.0);
        update.execute(params![log.scope.as_bytes(), log.kid.as_bytes(), number(log.version), expires_at])?;
    }
    Ok(())
}

fn raise_lanes(c: &Connection, lanes: &[LaneAnchor]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO lane_anchors (lane, until, seq) VALUES (?1, ?2, ?3)
               ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq)";
    let mut raise = c.prepare_cached(sql)?;
    for anchor in lanes {
        let until = anchor.until.map_or(0, |until| until.0);
        raise.execute(params![anchor.lane.number(), until, number(anchor.seq)])?;
    }
    Ok(())
}

fn lane_anchor(row: &Row<'_>) -> rusqlite::Result<LaneAnchor> {
    let until = Some(row.get(1)?).filter(|until| *until != 0).map(Millis);
    Ok(LaneAnchor { lane: Lane::new(row.get(0)?), until, seq: number_at(row, 2)? })
}

fn key_row(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        scope: tag_at(row, 0)?,
        generation: row.get(1)?,
        root: kid_at(row, 2)?,
        kid: kid_at(row, 3)?,
        sealed_key: sealed_at(row, 4)?,
        sealed_scope: sealed_at(row, 5)?,
        anchor: number_at(row, 6)?,
        expires_at: row.get::<_, Option<i64>>(7)?.map(Millis),
    })
}
