//! The keyring: session keys, sealed under the root; what erasure destroys.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::lanes::{get, many, odd};
use super::pool::{For, Pool};
use crate::clock::Millis;
use crate::lane::Lane;
use crate::{Anchor, Anchors, Created, DataKeys, KeyRow, LaneAnchor, Result, Rotation, SystemKeys, Upkeep};

/// The keyring in a database.
#[derive(Debug)]
pub struct PostgresKeys {
    pool: Arc<Pool>,
}

impl PostgresKeys {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { pool }
    }
}

#[async_trait]
impl SystemKeys for PostgresKeys {
    async fn root(&self) -> Result<Option<Kid>> {
        let rows = self.pool.query(For::Reading, "SELECT kid FROM key_roots", &[]).await?;
        rows.first().map(|row| kid(row, 0)).transpose()
    }

    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool> {
        let to = to.as_bytes().to_vec();
        let rows = match from {
            // Also if it is `to` already: then this was done before, and its reply was lost.
            None => {
                let sql = "INSERT INTO key_roots AS r VALUES (1, $1)
                           ON CONFLICT (one) DO UPDATE SET kid = excluded.kid WHERE r.kid = excluded.kid RETURNING 1";
                self.pool.query(For::Writing, sql, &[&to]).await?
            }
            Some(from) => {
                let sql = "UPDATE key_roots SET kid = $2 WHERE kid IN ($1, $2) RETURNING 1";
                self.pool.query(For::Writing, sql, &[&from.as_bytes().to_vec(), &to]).await?
            }
        };
        Ok(!rows.is_empty())
    }

    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>> {
        let sql = "SELECT root, sealed FROM named_keys WHERE name = $1";
        let rows = self.pool.query(For::Reading, sql, &[&name]).await?;
        rows.first().map(|row| Ok((kid(row, 0)?, Sealed::from_bytes(get(row, 1)?)))).transpose()
    }

    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool> {
        let (root, to) = (root.as_bytes().to_vec(), to.as_bytes());
        let rows = match from {
            None => {
                let sql = "INSERT INTO named_keys AS n VALUES ($1, $2, $3)
                           ON CONFLICT (name) DO UPDATE SET root = excluded.root WHERE n.sealed = excluded.sealed RETURNING 1";
                self.pool.query(For::Writing, sql, &[&name, &root, &to]).await?
            }
            Some(from) => {
                let sql = "UPDATE named_keys SET root = $2, sealed = $3 WHERE name = $1 AND sealed IN ($3, $4) RETURNING 1";
                self.pool.query(For::Writing, sql, &[&name, &root, &to, &from.as_bytes()]).await?
            }
        };
        Ok(!rows.is_empty())
    }
}

#[async_trait]
impl DataKeys for PostgresKeys {
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>> {
        let sql = "SELECT scope_tag, generation, root, kid, sealed_key, sealed_scope, anchor, expires_at FROM session_keys
                   WHERE scope_tag = $1";
        let rows = self.pool.query(For::Reading, sql, &[&scope.as_bytes().to_vec()]).await?;
        rows.first().map(key_row).transpose()
    }

    async fn create(&self, row: KeyRow) -> Result<Created> {
        let sql = "SELECT outcome, other_root FROM create_key($1, $2, $3, $4, $5, $6, $7, $8)";
        let bytes = |bytes: &[u8]| bytes.to_vec();
        let (scope, root, kid_) =
            (bytes(row.scope.as_bytes()), bytes(row.root.as_bytes()), bytes(row.kid.as_bytes()));
        let (generation, anchor) = (row.generation.cast_signed(), row.anchor.cast_signed());
        let expires_at = row.expires_at.map(|at| at.0);
        let (key, readable) = (row.sealed_key.as_bytes(), row.sealed_scope.as_bytes());
        let args: [&(dyn ToSql + Sync); 8] =
            [&scope, &generation, &root, &kid_, &key, &readable, &anchor, &expires_at];
        for _ in 0..MOST_TRIES {
            let rows = self.pool.query(For::Writing, sql, &args).await?;
            let said = rows.first().ok_or_else(odd)?;
            match get::<&str>(said, 0)? {
                "new" => return Ok(Created::New),
                "root" => return Ok(Created::RootChanged(kid(said, 1)?)),
                // It may be gone again by now: then it is made after all.
                _ => {
                    if let Some(existing) = self.get(row.scope).await? {
                        return Ok(Created::Existing(existing));
                    }
                }
            }
        }
        Err(odd())
    }

    async fn destroy(&self, scopes: &[Tag]) -> Result<u64> {
        let scopes: Vec<&[u8]> = scopes.iter().map(|scope| &scope.as_bytes()[..]).collect();
        let sql = "DELETE FROM session_keys WHERE scope_tag = ANY($1) RETURNING 1";
        Ok(self.pool.query(For::Writing, sql, &[&scopes]).await?.len() as u64)
    }

    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>> {
        let sql = "SELECT scope_tag, generation, root, kid, sealed_key, sealed_scope, anchor, expires_at FROM session_keys
                   WHERE scope_tag > $1 ORDER BY scope_tag LIMIT $2";
        let after = after.map_or_else(Vec::new, |tag| tag.as_bytes().to_vec());
        self.pool.query(For::Reading, sql, &[&after, &many(limit)]).await?.iter().map(key_row).collect()
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let sql = "SELECT scope_tag FROM session_keys WHERE expires_at <= $1 LIMIT $2";
        let rows = self.pool.query(For::Reading, sql, &[&now.0, &many(limit)]).await?;
        rows.iter().map(|row| tag(row, 0)).collect()
    }
}

#[async_trait]
impl Rotation for PostgresKeys {
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>> {
        // Two ranges instead of `<>`, so that the index by root finds the few that are left among the many.
        let sql = "(SELECT scope_tag, generation, root, kid, sealed_key, sealed_scope, anchor, expires_at FROM session_keys
                    WHERE root < $1 LIMIT $2)
                   UNION ALL
                   (SELECT scope_tag, generation, root, kid, sealed_key, sealed_scope, anchor, expires_at FROM session_keys
                    WHERE root > $1 LIMIT $2)
                   LIMIT $2";
        let root = root.as_bytes().to_vec();
        self.pool.query(For::Reading, sql, &[&root, &many(limit)]).await?.iter().map(key_row).collect()
    }

    async fn count(&self, root: Kid) -> Result<(u64, u64)> {
        let sql = "SELECT count(*), count(*) FILTER (WHERE root <> $1) FROM session_keys";
        let rows = self.pool.query(For::Reading, sql, &[&root.as_bytes().to_vec()]).await?;
        let row = rows.first().ok_or_else(odd)?;
        Ok((get::<i64>(row, 0)?.cast_unsigned(), get::<i64>(row, 1)?.cast_unsigned()))
    }

    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64> {
        let sql = "UPDATE session_keys k SET root = n.root, sealed_key = n.sealed_key, sealed_scope = n.sealed_scope
                   FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[])
                        AS n (scope, seen, root, sealed_key, sealed_scope)
                   WHERE k.scope_tag = n.scope AND k.sealed_key IN (n.seen, n.sealed_key) RETURNING 1";
        let column = |of: fn(&(KeyRow, KeyRow)) -> &[u8]| rows.iter().map(of).collect::<Vec<&[u8]>>();
        let scopes = column(|(from, _)| from.scope.as_bytes());
        let seen = column(|(from, _)| from.sealed_key.as_bytes());
        let roots = column(|(_, to)| to.root.as_bytes());
        let keys = column(|(_, to)| to.sealed_key.as_bytes());
        let readable = column(|(_, to)| to.sealed_scope.as_bytes());
        let args: [&(dyn ToSql + Sync); 5] = [&scopes, &seen, &roots, &keys, &readable];
        Ok(self.pool.query(For::Writing, sql, &args).await?.len() as u64)
    }
}

#[async_trait]
impl Anchors for PostgresKeys {
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let sql = "UPDATE session_keys k SET anchor = n.version, expires_at = n.expires_at
                   FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[]) AS n (scope, kid, version, expires_at)
                   WHERE k.scope_tag = n.scope AND k.kid = n.kid AND k.anchor <= n.version RETURNING 1";
        self.change_anchors(sql, logs).await?;
        self.raise(lanes).await
    }

    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let sql = "UPDATE session_keys k SET anchor = n.version
                   FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[]) AS n (scope, kid, version, expires_at)
                   WHERE k.scope_tag = n.scope AND k.kid = n.kid RETURNING 1";
        self.change_anchors(sql, logs).await?;
        self.pool.query(For::Writing, "DELETE FROM lane_anchors", &[]).await?;
        self.raise(lanes).await
    }

    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>> {
        let sql = "SELECT lane, until, seq FROM lane_anchors ORDER BY lane, until";
        let anchor = |row: &Row| {
            let until = Some(get::<i64>(row, 1)?).filter(|until| *until != 0).map(Millis);
            let lane = Lane::new(get::<i32>(row, 0)?.cast_unsigned());
            Ok(LaneAnchor { lane, until, seq: get::<i64>(row, 2)?.cast_unsigned() })
        };
        self.pool.query(For::Reading, sql, &[]).await?.iter().map(anchor).collect()
    }
}

#[async_trait]
impl Upkeep for PostgresKeys {
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        self.pool.check().await
    }
}

impl PostgresKeys {
    async fn change_anchors(&self, sql: &'static str, logs: &[Anchor]) -> Result<()> {
        if logs.is_empty() {
            return Ok(());
        }
        // In order, so that processes that do this at once seldom wait for each other in a circle.
        let mut logs = logs.to_vec();
        logs.sort_by_key(|log| log.scope);
        let scopes: Vec<&[u8]> = logs.iter().map(|log| &log.scope.as_bytes()[..]).collect();
        let kids: Vec<&[u8]> = logs.iter().map(|log| &log.kid.as_bytes()[..]).collect();
        let versions: Vec<i64> = logs.iter().map(|log| log.version.cast_signed()).collect();
        let expiries: Vec<Option<i64>> = logs.iter().map(|log| log.expires_at.map(|at| at.0)).collect();
        self.pool.query(For::Writing, sql, &[&scopes, &kids, &versions, &expiries]).await.map(drop)
    }

    async fn raise(&self, lanes: &[LaneAnchor]) -> Result<()> {
        if lanes.is_empty() {
            return Ok(());
        }
        let sql = "INSERT INTO lane_anchors AS a SELECT lane, until, seq
                   FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS n (lane, until, seq) ORDER BY lane, until
                   ON CONFLICT (lane, until) DO UPDATE SET seq = greatest(a.seq, excluded.seq) RETURNING 1";
        let numbers: Vec<i32> = lanes.iter().map(|anchor| anchor.lane.number().cast_signed()).collect();
        let untils: Vec<i64> = lanes.iter().map(|anchor| anchor.until.map_or(0, |until| until.0)).collect();
        let seqs: Vec<i64> = lanes.iter().map(|anchor| anchor.seq.cast_signed()).collect();
        self.pool.query(For::Writing, sql, &[&numbers, &untils, &seqs]).await.map(drop)
    }
}

fn tag(row: &Row, index: usize) -> Result<Tag> {
    let bytes: Vec<u8> = get(row, index)?;
    bytes.try_into().map(Tag::from_bytes).map_err(|_| odd())
}

fn kid(row: &Row, index: usize) -> Result<Kid> {
    let bytes: Vec<u8> = get(row, index)?;
    bytes.try_into().map(Kid::from_bytes).map_err(|_| odd())
}

fn key_row(row: &Row) -> Result<KeyRow> {
    Ok(KeyRow {
        scope: tag(row, 0)?,
        generation: get::<i32>(row, 1)?.cast_unsigned(),
        root: kid(row, 2)?,
        kid: kid(row, 3)?,
        sealed_key: Sealed::from_bytes(get(row, 4)?),
        sealed_scope: Sealed::from_bytes(get(row, 5)?),
        anchor: get::<i64>(row, 6)?.cast_unsigned(),
        expires_at: get::<Option<i64>>(row, 7)?.map(Millis),
    })
}

/// How often a key may be gone again when it is looked at.
const MOST_TRIES: usize = 1000;
