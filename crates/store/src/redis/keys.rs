//! The keyring: session keys, sealed under the root; what erasure destroys.
//!
//! Rows are divided into shards by tag. In a Cluster a shard is a slot: its rows, their index and the root under which new
//! rows are made lie together, so that a row is made under the root of its shard or not at all. The root of the keyring is
//! that of shard 0, which is changed last: once it is, no shard takes a row under the old one.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use parking_lot::Mutex;
use redis::{Cmd, Value};

use super::link::{For, Link, convert, odd};
use super::names::{KeySpace, SHARDS, shard};
use super::scripts::{
    Call, KEY_ANCHOR, KEY_COUNT, KEY_CREATE, KEY_DESTROY, KEY_REWRAP, PUT_NAMED, RAISE_LANES, SET_ROOT,
};
use super::{RedisSettings, health};
use crate::clock::Millis;
use crate::lane::Lane;
use crate::{Anchor, Anchors, Created, DataKeys, KeyRow, LaneAnchor, Result, Rotation, SystemKeys, Upkeep};

/// How long a row outlives its log: the keyring hears of a turn a moment later than the log does. As in `key_index.lua`.
const GRACE: std::time::Duration = std::time::Duration::from_secs(60);

/// The keyring on a Redis.
#[derive(Debug)]
pub struct RedisKeys {
    link: Arc<Link>,
    space: KeySpace,
    /// The first shard that may have rows under another root than this one: rotating asks again and again.
    rotated: Mutex<Option<(Kid, usize)>>,
}

impl RedisKeys {
    pub(super) fn new(link: Arc<Link>, settings: &RedisSettings) -> Self {
        Self { link, space: KeySpace::new(&settings.prefix), rotated: Mutex::default() }
    }

    /// Rows of these tags, in their order; those that are gone are left out.
    async fn rows(&self, scopes: &[Tag]) -> Result<Vec<KeyRow>> {
        let asked: Vec<Cmd> = scopes.iter().map(|scope| self.get(*scope)).collect();
        let found: Vec<HashMap<String, Vec<u8>>> = self.link.all(For::Reading, &asked).await?;
        Ok(scopes.iter().zip(&found).filter_map(|(scope, fields)| read_row(*scope, fields)).collect())
    }

    /// Members of a shard's index: root and tag.
    async fn members(&self, shard: usize) -> Result<Vec<(Kid, Tag)>> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.space.key_index(shard)).arg(0).arg(-1);
        let found: Vec<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        Ok(found.iter().filter_map(|bytes| member(bytes)).collect())
    }

    fn get(&self, scope: Tag) -> Cmd {
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(self.space.key_row(scope));
        cmd
    }

    /// One call for each shard that has some of these, with its index and their rows as keys.
    fn by_shard<T: Copy>(
        &self,
        all: &[T],
        scope: impl Fn(T) -> Tag,
        begin: impl Fn() -> Call,
        add: impl Fn(Call, T) -> Call,
    ) -> Vec<Call> {
        let mut shards: HashMap<usize, Vec<T>> = HashMap::new();
        for one in all {
            shards.entry(shard(scope(*one))).or_default().push(*one);
        }
        let calls = shards.into_iter().flat_map(|(shard, all)| {
            all.chunks(ROWS_IN_A_CALL)
                .map(|some| {
                    let call = begin().key(self.space.key_index(shard));
                    let call = some.iter().fold(call, |call, one| call.key(self.space.key_row(scope(*one))));
                    some.iter().fold(call, |call, one| add(call, *one))
                })
                .collect::<Vec<_>>()
        });
        calls.collect()
    }
}

#[async_trait]
impl SystemKeys for RedisKeys {
    async fn root(&self) -> Result<Option<Kid>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.space.key_shard(0)).arg("root");
        let root: Option<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        root.map(|root| kid(&root).ok_or_else(odd)).transpose()
    }

    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool> {
        let is = self.root().await?;
        if is != from && is != Some(to) {
            return Ok(false);
        }
        // Whatever the others had: an earlier change may have been cut off between them.
        let others: Vec<Cmd> = (1..SHARDS)
            .map(|shard| {
                let mut cmd = redis::cmd("HSET");
                cmd.arg(self.space.key_shard(shard)).arg("root").arg(&to.as_bytes()[..]);
                cmd
            })
            .collect();
        self.link.all::<()>(For::Writing, &others).await?;
        let from = from.map_or_else(Vec::new, |from| from.as_bytes().to_vec());
        self.link.call(SET_ROOT.call().key(self.space.key_shard(0)).arg(from).arg(to.as_bytes())).await
    }

    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.space.named()).arg(name);
        let found: Option<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        Ok(found.as_deref().and_then(named))
    }

    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool> {
        let from = from.map_or(&[][..], Sealed::as_bytes);
        let call = PUT_NAMED
            .call()
            .key(self.space.named())
            .arg(name)
            .arg(from)
            .arg(root.as_bytes())
            .arg(to.as_bytes());
        self.link.call(call).await
    }
}

#[async_trait]
impl DataKeys for RedisKeys {
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>> {
        let fields: HashMap<String, Vec<u8>> = self.link.run(For::Reading, self.get(scope)).await?;
        Ok(read_row(scope, &fields))
    }

    async fn create(&self, row: KeyRow) -> Result<Created> {
        let shard = shard(row.scope);
        let mut call = KEY_CREATE
            .call()
            .key(self.space.key_shard(shard))
            .key(self.space.key_index(shard))
            .key(self.space.key_row(row.scope))
            .arg(row.root.as_bytes())
            .arg(row.scope.as_bytes())
            .arg(row.expires_at.map_or_else(|| "inf".to_owned(), |at| at.0.to_string()))
            .arg(goes(row.expires_at));
        for (name, value) in write_row(&row) {
            call = call.arg(name).arg(value);
        }
        match self.link.call(call).await? {
            Value::Int(_) => Ok(Created::New),
            Value::BulkString(root) => Ok(Created::RootChanged(kid(&root).ok_or_else(odd)?)),
            row_fields => {
                let fields: HashMap<String, Vec<u8>> = convert(row_fields)?;
                Ok(Created::Existing(read_row(row.scope, &fields).ok_or_else(odd)?))
            }
        }
    }

    async fn destroy(&self, scopes: &[Tag]) -> Result<u64> {
        let add = |call: Call, scope: Tag| call.arg(scope.as_bytes());
        let calls = self.by_shard(scopes, |scope| scope, || KEY_DESTROY.call(), add);
        let gone = self.link.calls_together(&calls).await?;
        gone.into_iter().map(convert::<u64>).sum()
    }

    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>> {
        let mut rows = Vec::new();
        for part in after.map_or(0, shard)..SHARDS {
            let mut scopes: Vec<Tag> =
                self.members(part).await?.into_iter().map(|(_, scope)| scope).collect();
            scopes.retain(|scope| after.is_none_or(|after| *scope > after));
            scopes.sort_unstable();
            scopes.dedup();
            for some in scopes.chunks(ROWS_IN_A_CALL) {
                rows.extend(self.rows(some).await?);
                if rows.len() >= limit {
                    rows.truncate(limit);
                    return Ok(rows);
                }
            }
        }
        Ok(rows)
    }

    async fn unlisted(&self) -> Result<Vec<KeyRow>> {
        let mut known: Vec<Tag> = Vec::new();
        for part in 0..SHARDS {
            known.extend(self.members(part).await?.into_iter().map(|(_, scope)| scope));
        }
        known.sort_unstable();
        let there = self.link.names(&self.space.key_rows(), Some("hash")).await?;
        let tag = |name: &Vec<u8>| {
            Tag::from_hex(std::str::from_utf8(name.rsplit(|byte| *byte == b':').next()?).ok()?)
        };
        let mut unlisted: Vec<Tag> =
            there.iter().filter_map(tag).filter(|scope| known.binary_search(scope).is_err()).collect();
        unlisted.sort_unstable();
        unlisted.dedup();
        let mut rows = Vec::new();
        for some in unlisted.chunks(ROWS_IN_A_CALL) {
            rows.extend(self.rows(some).await?);
        }
        Ok(rows)
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let asked: Vec<Cmd> = (0..SHARDS)
            .map(|shard| {
                let mut cmd = redis::cmd("ZRANGEBYSCORE");
                cmd.arg(self.space.key_index(shard)).arg("-inf").arg(now.0).arg("LIMIT").arg(0).arg(limit);
                cmd
            })
            .collect();
        let found: Vec<Vec<Vec<u8>>> = self.link.all(For::Reading, &asked).await?;
        let mut scopes: Vec<Tag> =
            found.iter().flatten().filter_map(|bytes| Some(member(bytes)?.1)).collect();
        // What the index still names and is gone already needs nothing more.
        scopes.truncate(limit);
        Ok(self.rows(&scopes).await?.into_iter().map(|row| row.scope).collect())
    }
}

#[async_trait]
impl Rotation for RedisKeys {
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>> {
        let known = *self.rotated.lock();
        let from = known.filter(|(under, _)| *under == root).map_or(0, |(_, shard)| shard);
        // Once around: shards before `from` were looked at earlier, and are once more before it is said that none is left.
        for part in (from..SHARDS).chain(0..from) {
            let others: Vec<Tag> = self
                .members(part)
                .await?
                .into_iter()
                .filter(|(under, _)| *under != root)
                .map(|(_, tag)| tag)
                .take(limit)
                .collect();
            let rows: Vec<KeyRow> =
                self.rows(&others).await?.into_iter().filter(|row| row.root != root).collect();
            if !rows.is_empty() {
                *self.rotated.lock() = Some((root, part));
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    async fn count(&self, root: Kid) -> Result<(u64, u64)> {
        let calls: Vec<Call> = (0..SHARDS)
            .map(|shard| KEY_COUNT.call().key(self.space.key_index(shard)).arg(root.as_bytes()))
            .collect();
        let (mut all, mut others) = (0, 0);
        for counted in self.link.calls_together(&calls).await? {
            let (more, more_others): (u64, u64) = convert(counted)?;
            (all, others) = (all + more, others + more_others);
        }
        Ok((all, others))
    }

    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64> {
        let calls: Vec<Call> = rows
            .iter()
            .map(|(from, to)| {
                KEY_REWRAP
                    .call()
                    .key(self.space.key_index(shard(from.scope)))
                    .key(self.space.key_row(from.scope))
                    .arg(from.scope.as_bytes())
                    .arg(from.sealed_key.as_bytes())
                    .arg(to.root.as_bytes())
                    .arg(to.sealed_key.as_bytes())
                    .arg(to.sealed_scope.as_bytes())
            })
            .collect();
        let changed = self.link.calls_together(&calls).await?;
        changed.into_iter().map(convert::<u64>).sum()
    }
}

#[async_trait]
impl Anchors for RedisKeys {
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let add = |call: Call, log: Anchor| {
            call.arg(log.scope.as_bytes())
                .arg(log.kid.as_bytes())
                .number(log.version)
                .arg(log.expires_at.map_or_else(String::new, |at| at.0.to_string()))
                .arg(goes(log.expires_at))
        };
        let mut calls = self.by_shard(logs, |log| log.scope, || KEY_ANCHOR.call(), add);
        // The word comes before the rows' own arguments.
        calls.iter_mut().for_each(|call| call.begin_with("raise"));
        calls.extend(self.raise(lanes));
        self.link.calls_together(&calls).await.map(drop)
    }

    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let add = |call: Call, log: Anchor| {
            call.arg(log.scope.as_bytes()).arg(log.kid.as_bytes()).number(log.version)
        };
        let mut calls = self.by_shard(logs, |log| log.scope, || KEY_ANCHOR.call(), add);
        calls.iter_mut().for_each(|call| call.begin_with("set"));
        self.link.calls_together(&calls).await?;
        let mut clear = redis::cmd("DEL");
        clear.arg(self.space.anchors());
        self.link.run::<()>(For::Writing, clear).await?;
        self.link.calls_together(&self.raise(lanes).into_iter().collect::<Vec<_>>()).await.map(drop)
    }

    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>> {
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(self.space.anchors());
        let fields: HashMap<String, u64> = self.link.run(For::Reading, cmd).await?;
        let anchor = |(field, seq): (&String, &u64)| {
            let (lane, until) = field.split_once(':')?;
            let until = if until.is_empty() { None } else { Some(Millis(until.parse().ok()?)) };
            Some(LaneAnchor { lane: Lane::new(lane.parse().ok()?), until, seq: *seq })
        };
        let mut anchors: Vec<LaneAnchor> = fields.iter().filter_map(anchor).collect();
        anchors.sort_unstable();
        Ok(anchors)
    }
}

#[async_trait]
impl Upkeep for RedisKeys {
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        health(&self.link).await
    }
}

impl RedisKeys {
    fn raise(&self, lanes: &[LaneAnchor]) -> Option<Call> {
        let call = RAISE_LANES.call().key(self.space.anchors());
        let call = lanes.iter().fold(call, |call, anchor| {
            let until = anchor.until.map_or_else(String::new, |until| until.0.to_string());
            call.arg(format!("{}:{until}", anchor.lane.number())).number(anchor.seq)
        });
        (!lanes.is_empty()).then_some(call)
    }
}

/// How many rows one script or one round trip takes.
const ROWS_IN_A_CALL: usize = 256;

/// Reads what stands under a name: the root, then what it sealed.
fn named(bytes: &[u8]) -> Option<(Kid, Sealed)> {
    let (root, sealed) = bytes.split_first_chunk::<8>()?;
    Some((Kid::from_bytes(*root), Sealed::from_bytes(sealed.to_vec())))
}

/// When a row goes, if ever.
fn goes(expires_at: Option<Millis>) -> String {
    expires_at.map_or_else(String::new, |at| at.plus(GRACE).0.to_string())
}

/// A row's fields: generation, root, key id, sealed key, sealed scope, anchor, expiry.
fn write_row(row: &KeyRow) -> [(&'static str, Vec<u8>); 7] {
    [
        ("g", row.generation.to_string().into_bytes()),
        ("r", row.root.as_bytes().to_vec()),
        ("k", row.kid.as_bytes().to_vec()),
        ("d", row.sealed_key.as_bytes().to_vec()),
        ("n", row.sealed_scope.as_bytes().to_vec()),
        ("a", row.anchor.to_string().into_bytes()),
        ("x", row.expires_at.map_or_else(Vec::new, |at| at.0.to_string().into_bytes())),
    ]
}

/// Reads a row; nothing if it is gone or not what was written.
fn read_row(scope: Tag, fields: &HashMap<String, Vec<u8>>) -> Option<KeyRow> {
    let text = |name: &str| std::str::from_utf8(fields.get(name)?).ok();
    let sealed = |name: &str| Some(Sealed::from_bytes(fields.get(name)?.clone()));
    Some(KeyRow {
        scope,
        generation: text("g")?.parse().ok()?,
        root: kid(fields.get("r")?)?,
        kid: kid(fields.get("k")?)?,
        sealed_key: sealed("d")?,
        sealed_scope: sealed("n")?,
        anchor: text("a")?.parse().ok()?,
        expires_at: text("x")?.parse().ok().map(Millis),
    })
}

fn kid(bytes: &[u8]) -> Option<Kid> {
    bytes.try_into().ok().map(Kid::from_bytes)
}

fn member(bytes: &[u8]) -> Option<(Kid, Tag)> {
    let (root, tag) = bytes.split_first_chunk::<8>()?;
    Some((Kid::from_bytes(*root), Tag::from_bytes(tag.try_into().ok()?)))
}
