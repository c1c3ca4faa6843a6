//! What is in scope of conversations: a hash for each, with its context and the records of why.
//!
//! Three indexes find them: by tenant, by session, by last use. On one server they are written by the script that writes the
//! hash; in a Cluster before it, and once more after it. Whoever takes an entry out looks at the hash afterwards and puts it
//! back if it is right. So an index may name what is not there, and misses what is only where a process ended between the
//! two writes: the next sweep finds it again by its key. All of it has the lifetime that the engine gives a context.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use redis::Cmd;

use super::data::{RedisStore, kid_of, moment, number};
use super::link::{For, odd};
use super::names::{SHARDS, shard};
use super::scripts::{ADOPT_CONTEXT, Call, ERASE_CONTEXT, INDEX_CONTEXT, PUT_CONTEXT};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::contexts::{
    CaptureRow, CapturesOf, ContextRow, ContextUpkeep, Contexts, ConversationName, Put, PutContext,
    WholeContext,
};
use crate::{PendingAudit, Result};

/// How many conversations are read in one round trip.
const READ_AT_ONCE: usize = 256;

#[async_trait]
impl Contexts for RedisStore {
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>> {
        Ok(self.rows(&[name]).await?.pop().flatten())
    }

    async fn put_context(&self, put: PutContext) -> Result<Put> {
        let indexes = self.indexes(put.name, put.archived_at, put.capture.iter());
        let apart = self.link.is_cluster();
        if apart {
            self.index(put.name, put.updated_at, put.expires_at, &indexes).await?;
        }
        let wrote = loop {
            if let Some(wrote) = self.try_put(&put, if apart { &[] } else { &indexes }).await? {
                break wrote;
            }
        };
        if wrote != Put::Done {
            return Ok(wrote);
        }
        // It is written: whatever becomes of what follows, to say otherwise would be wrong.
        let follows = async {
            if apart {
                self.index(put.name, put.updated_at, put.expires_at, &indexes).await?;
            }
            match put.forget {
                // Of a turn there is none: the session may still have a part in it.
                Some(whose) => self.unindex(put.name, vec![self.space.captured(whose)]).await,
                None => Ok(()),
            }
        };
        if let Err(error) = follows.await {
            tracing::warn!(conversation.tag = %put.name.conversation, error = %error, "an index could not be updated; it will be repaired later");
        }
        if apart && let Err(error) = self.settle(put.audit).await {
            tracing::warn!(conversation.tag = %put.name.conversation, error = %error, "audit records could not be written yet; will retry");
        }
        Ok(Put::Done)
    }

    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>> {
        let index = match of {
            CapturesOf::Conversation(name) => {
                return Ok(sorted(self.captures_in(&[name]).await?.into_iter().flatten()));
            }
            CapturesOf::Session(scope) | CapturesOf::SessionOf { scope, .. } => self.space.captured(scope),
            CapturesOf::Tenant(tenant) => self.space.contexts(tenant),
        };
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(&index).arg(0).arg(-1);
        let members: Vec<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        let names: Vec<ConversationName> = members.iter().filter_map(|member| named(member)).collect();
        let mut all = Vec::new();
        for some in names.chunks(READ_AT_ONCE) {
            for (name, mut rows) in some.iter().zip(self.captures_in(some).await?) {
                if let CapturesOf::Session(scope) | CapturesOf::SessionOf { scope, .. } = of {
                    rows.retain(|row| row.scope == scope);
                }
                if rows.is_empty() {
                    self.unindex(*name, vec![index.clone()]).await?;
                }
                if let CapturesOf::SessionOf { tenant, .. } = of {
                    rows.retain(|row| row.name.tenant == tenant);
                }
                all.extend(rows);
            }
        }
        Ok(sorted(all))
    }

    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64> {
        // What is about to be done is recorded first: between the two, it may only be said too early.
        self.lanes.record(&audit).await?;
        let before = self.captures(CapturesOf::Conversation(name)).await?;
        let gone: Vec<Vec<u8>> = self.link.call(ERASE_CONTEXT.call().key(self.space.context(name))).await?;
        // If the first reply was lost, the second says that there was nothing.
        let count = gone.len().max(before.len()) as u64;
        let gone = gone.into_iter().filter_map(|scope| scope.try_into().ok()).map(Tag::from_bytes);
        let scopes: BTreeSet<Tag> = before.iter().map(|row| row.scope).chain(gone).collect();
        let mut indexes = vec![self.space.contexts(name.tenant), self.space.used(shard(name.conversation))];
        indexes.extend(scopes.into_iter().map(|scope| self.space.captured(scope)));
        self.unindex(name, indexes).await?;
        Ok(count)
    }

    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        loop {
            let found = self.used_before(before, limit).await?;
            let mut idle = Vec::new();
            for some in found.chunks(READ_AT_ONCE) {
                for (name, row) in some.iter().zip(self.rows(some).await?) {
                    match row.filter(|row| row.archived_at.is_none()) {
                        Some(row) if row.updated_at < before => idle.push((row.updated_at, *name)),
                        Some(row) => self.used_since(*name, row.updated_at).await?,
                        None => self.unindex(*name, vec![self.space.used(shard(name.conversation))]).await?,
                    }
                }
            }
            // What was not idle is not found again, so this ends.
            if !idle.is_empty() || found.is_empty() {
                idle.sort_unstable();
                return Ok(idle.into_iter().map(|(_, name)| name).take(limit).collect());
            }
        }
    }

    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        expires_at: Option<Millis>,
    ) -> Result<()> {
        self.erase_context(name, Vec::new()).await?;
        let WholeContext { row, captures } = whole;
        let indexes = self.indexes(name, row.archived_at, captures.iter());
        self.index(name, row.updated_at, expires_at, &indexes).await?;
        let mut call = ADOPT_CONTEXT.call().key(self.space.context(name)).arg(moment_or_none(expires_at));
        call = call.arg("v").number(row.version).arg("k").arg(row.kid.as_bytes()).arg("d").arg(&row.content);
        call = call.arg("u").number(row.updated_at.0).arg("a").arg(moment_or_none(row.archived_at));
        call = captures.iter().fold(call, |call, row| call.arg(field(row)).arg(record(row)));
        self.link.call(call).await
    }
}

#[async_trait]
impl ContextUpkeep for RedisStore {
    async fn prolong_context(&self, name: ConversationName, expires_at: Option<Millis>) -> Result<()> {
        // What finds it first, so that it is found for as long as it is there.
        self.find_until(name, expires_at).await?;
        let key = self.space.context(name);
        let mut cmd = redis::cmd(if expires_at.is_some() { "PEXPIREAT" } else { "PERSIST" });
        cmd.arg(key);
        if let Some(at) = expires_at {
            cmd.arg(at.0);
        }
        self.link.run::<u64>(For::Writing, cmd).await.map(drop)
    }

    fn may_lose_contexts(&self) -> bool {
        self.link.is_cluster()
    }

    async fn find_again(&self, name: ConversationName) -> Result<()> {
        let mut cmd = redis::cmd("PTTL");
        cmd.arg(self.space.context(name));
        let left: i64 = self.link.run(For::Reading, cmd).await?;
        let until = u64::try_from(left).ok().map(|left| SystemClock.now().plus(Duration::from_millis(left)));
        self.find_until(name, until).await
    }
}

impl RedisStore {
    /// One try at a write. `None` says that the audit lane was not ours any more, and nothing was written.
    async fn try_put(&self, put: &PutContext, indexes: &[String]) -> Result<Option<Put>> {
        let with_lane = !self.link.is_cluster() && !put.audit.is_empty();
        let lane = if with_lane { Some(self.lanes.take().await?) } else { None };
        let linked = lane.as_ref().map(|lane| self.lanes.addressed(lane.link(&put.audit)));
        let mut call = PUT_CONTEXT.call().key(self.space.context(put.name));
        if let Some(linked) = &linked {
            let (head, list) = linked.keys();
            call = call.key(head).key(list);
        }
        call = indexes.iter().fold(call, |call, index| call.key(index));
        call = header(call, put);
        call = match &linked {
            Some(linked) => linked.records(linked.lane(call)),
            None => ["", "", "", "", "", "", "0"].iter().fold(call, |call, none| call.arg(none)),
        };
        let reply: String = self.link.call(call).await?;
        let wrote = match reply.as_str() {
            "done" | "again" => Put::Done,
            "conflict" => Put::Conflict,
            "known" => Put::Known,
            // The next try takes another.
            "lost" => {
                if let Some(lane) = lane {
                    lane.lost();
                }
                return Ok(None);
            }
            _ => return Err(odd()),
        };
        match (lane, linked) {
            (Some(lane), _) if wrote != Put::Done => lane.unchanged(),
            (Some(lane), Some(linked)) => lane.advanced(&linked.linked),
            _ => {}
        }
        Ok(Some(wrote))
    }

    /// The indexes that a conversation is to be in.
    fn indexes<'c>(
        &self,
        name: ConversationName,
        archived_at: Option<Millis>,
        captures: impl Iterator<Item = &'c CaptureRow>,
    ) -> Vec<String> {
        let scopes: BTreeSet<Tag> = captures.map(|row| row.scope).collect();
        let mut indexes = vec![self.space.contexts(name.tenant)];
        indexes.extend(scopes.into_iter().map(|scope| self.space.captured(scope)));
        if archived_at.is_none() {
            indexes.push(self.space.used(shard(name.conversation)));
        }
        indexes
    }

    /// Puts a conversation into indexes, which last as long as it does.
    async fn index(
        &self,
        name: ConversationName,
        used_at: Millis,
        expires_at: Option<Millis>,
        indexes: &[String],
    ) -> Result<()> {
        let until = moment_or_none(expires_at);
        let call =
            |index: &String| INDEX_CONTEXT.call().key(index).number(used_at.0).arg(member(name)).arg(&until);
        self.link.calls_together(&indexes.iter().map(call).collect::<Vec<Call>>()).await.map(drop)
    }

    /// Puts a conversation that is there into every index that it is to be in, for so long.
    async fn find_until(&self, name: ConversationName, expires_at: Option<Millis>) -> Result<()> {
        let Some(row) = self.context(name).await? else { return Ok(()) };
        let captures = self.captures_in(&[name]).await?.pop().unwrap_or_default();
        let indexes = self.indexes(name, row.archived_at, captures.iter());
        self.index(name, row.updated_at, expires_at, &indexes).await
    }

    /// Takes a conversation out of indexes that it does not belong in, and puts it back where it turns out to.
    async fn unindex(&self, name: ConversationName, indexes: Vec<String>) -> Result<()> {
        let removals = indexes.iter().map(|index| {
            let mut cmd = redis::cmd("ZREM");
            cmd.arg(index).arg(&member(name)[..]);
            cmd
        });
        self.link.all::<u64>(For::Writing, &removals.collect::<Vec<Cmd>>()).await?;
        let Some(row) = self.context(name).await? else { return Ok(()) };
        let captures = self.captures_in(&[name]).await?.pop().unwrap_or_default();
        let mut right = self.indexes(name, row.archived_at, captures.iter());
        right.retain(|index| indexes.contains(index));
        if right.is_empty() {
            return Ok(());
        }
        self.find_again(name).await
    }

    /// Takes note of a use that is later than an index says.
    async fn used_since(&self, name: ConversationName, used_at: Millis) -> Result<()> {
        let index = self.space.used(shard(name.conversation));
        let mut cmd = redis::cmd("ZADD");
        cmd.arg(index).arg("XX").arg(used_at.0).arg(&member(name)[..]);
        self.link.run(For::Writing, cmd).await
    }

    /// Conversations that may be idle: so many of each shard at most.
    async fn used_before(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        let asked = (0..SHARDS).map(|shard| {
            let mut cmd = redis::cmd("ZRANGEBYSCORE");
            cmd.arg(self.space.used(shard)).arg("-inf").arg(format!("({}", before.0));
            cmd.arg("LIMIT").arg(0).arg(limit);
            cmd
        });
        let found: Vec<Vec<Vec<u8>>> = self.link.all(For::Reading, &asked.collect::<Vec<Cmd>>()).await?;
        Ok(found.iter().flatten().filter_map(|member| named(member)).collect())
    }

    /// The contexts of conversations, in the order given.
    async fn rows(&self, names: &[ConversationName]) -> Result<Vec<Option<ContextRow>>> {
        let asked = names.iter().map(|name| {
            let mut cmd = redis::cmd("HMGET");
            cmd.arg(self.space.context(*name)).arg(&["v", "k", "d", "u", "a"]);
            cmd
        });
        let found: Vec<Vec<Option<Vec<u8>>>> =
            self.link.all(For::Reading, &asked.collect::<Vec<Cmd>>()).await?;
        Ok(found.into_iter().map(row).collect())
    }

    /// The records of conversations, in the order given.
    async fn captures_in(&self, names: &[ConversationName]) -> Result<Vec<Vec<CaptureRow>>> {
        let asked = names.iter().map(|name| {
            let mut cmd = redis::cmd("HGETALL");
            cmd.arg(self.space.context(*name));
            cmd
        });
        let found: Vec<HashMap<Vec<u8>, Vec<u8>>> =
            self.link.all(For::Reading, &asked.collect::<Vec<Cmd>>()).await?;
        let rows = names.iter().zip(found).map(|(name, fields)| {
            fields.iter().filter_map(|(field, value)| capture(*name, field, value)).collect()
        });
        Ok(rows.collect())
    }
}

/// The first ten arguments of a write; see `scripts/put_context.lua`.
fn header(call: Call, put: &PutContext) -> Call {
    let capture = put.capture.as_ref();
    call.number(put.expected)
        .arg(put.kid.as_bytes())
        .arg(&put.content)
        .number(put.updated_at.0)
        .arg(moment_or_none(put.archived_at))
        .arg(capture.map_or_else(Vec::new, field))
        .arg(capture.map_or_else(Vec::new, record))
        .arg(put.forget.map_or_else(Vec::new, |scope| scope.as_bytes().to_vec()))
        .arg(member(put.name))
        .arg(moment_or_none(put.expires_at))
}

fn moment_or_none(at: Option<Millis>) -> String {
    at.map_or_else(String::new, |at| at.0.to_string())
}

/// Reads the fields of a context. What is not as it was written is handed on as it is: opening it finds out.
fn row(fields: Vec<Option<Vec<u8>>>) -> Option<ContextRow> {
    let [version, kid, content, updated_at, archived_at] = fields.try_into().ok()?;
    if version.is_none() && content.is_none() {
        return None;
    }
    Some(ContextRow {
        version: version.and_then(|version| number(&version)).unwrap_or(0),
        kid: kid_of(kid.as_deref()),
        content: content.unwrap_or_default(),
        updated_at: moment(updated_at.as_deref()).unwrap_or(Millis(0)),
        archived_at: moment(archived_at.as_deref()),
    })
}

/// What a record's field is called; those of the context itself are one letter.
fn field(row: &CaptureRow) -> Vec<u8> {
    [b"c", row.request.as_bytes().as_slice()].concat()
}

/// A record: its session, the person, when, and what is sealed.
fn record(row: &CaptureRow) -> Vec<u8> {
    [row.scope.as_bytes(), row.person.as_bytes(), row.at.0.to_be_bytes().as_slice(), row.sealed.as_bytes()]
        .concat()
}

fn capture(name: ConversationName, field: &[u8], value: &[u8]) -> Option<CaptureRow> {
    let request = field.strip_prefix(b"c")?.try_into().ok()?;
    let (scope, rest) = value.split_first_chunk::<16>()?;
    let (person, rest) = rest.split_first_chunk::<16>()?;
    let (at, sealed) = rest.split_first_chunk::<8>()?;
    Some(CaptureRow {
        name,
        request: Tag::from_bytes(request),
        scope: Tag::from_bytes(*scope),
        person: Tag::from_bytes(*person),
        at: Millis(i64::from_be_bytes(*at)),
        sealed: Sealed::from_bytes(sealed.to_vec()),
    })
}

fn sorted(rows: impl IntoIterator<Item = CaptureRow>) -> Vec<CaptureRow> {
    let mut rows: Vec<CaptureRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| (row.at, row.request));
    rows
}

/// The two tags of a conversation, as indexes have them.
fn member(name: ConversationName) -> [u8; 32] {
    let mut member = [0; 32];
    for (part, tag) in member.chunks_exact_mut(16).zip([name.tenant, name.conversation]) {
        part.copy_from_slice(tag.as_bytes());
    }
    member
}

/// Reads what [`member`] wrote.
fn named(member: &[u8]) -> Option<ConversationName> {
    let (tenant, conversation) = member.split_first_chunk::<16>()?;
    let conversation = conversation.try_into().ok()?;
    Some(ConversationName { tenant: Tag::from_bytes(*tenant), conversation: Tag::from_bytes(conversation) })
}
