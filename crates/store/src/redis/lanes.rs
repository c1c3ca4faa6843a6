//! The audit log in lists: a lane's records are in one for each eighth of the time that records are kept, and each list expires
//! as a whole. A lane's head says who writes it, how long it is, and where each list begins.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::Sealed;
use redis::Cmd;

use super::data::RedisStore;
use super::link::{For, Link, odd};
use super::names::KeySpace;
use super::scripts::{ADOPT_LANE, CLAIM_LANE, Call, RECORD};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::lane::Lane;
use crate::lanes::{LaneKeeper, LanePool, Linked, Taken};
use crate::leases::Leases;
use crate::{Audit, AuditHead, AuditLane, AuditPlace, Instance, PendingAudit, Result};

/// How long a list outlives what the keyring is told, so that clocks need not agree to the second.
const SLACK: Duration = Duration::from_secs(60);

#[async_trait]
impl Audit for RedisStore {
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.settle(Vec::new()).await?;
        self.lanes.record(&audit).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        self.lanes.all().await
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.lanes.adopt(lane, before, records).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        self.lanes.read(lane, after, limit).await
    }
}

/// The lanes of a process on a Redis.
#[derive(Debug)]
pub(super) struct Lanes {
    link: Arc<Link>,
    space: KeySpace,
    leases: Arc<Leases>,
    own: LanePool,
    keep: Duration,
}

/// Records that are sealed into their places, with the keys they go to.
pub(super) struct Addressed {
    pub(super) linked: Linked,
    head: String,
    list: String,
    until: Millis,
}

impl Lanes {
    pub(super) fn new(
        link: Arc<Link>,
        space: KeySpace,
        leases: Arc<Leases>,
        me: Instance,
        keep: Duration,
    ) -> Self {
        // Lists of less than a minute would be too many.
        Self { link, space, leases, own: LanePool::new(me), keep: keep.max(Duration::from_secs(480)) }
    }

    /// Takes a lane for one write.
    pub(super) async fn take(&self) -> Result<Taken<'_>> {
        self.own.take(self).await
    }

    /// Gives back the lanes that are not in use.
    pub(super) async fn release(&self) -> Result<()> {
        self.own.release(self).await
    }

    /// Where records go.
    pub(super) fn addressed(&self, linked: Linked) -> Addressed {
        let until = self.until();
        let (head, list) = (self.space.lane(linked.lane), self.space.lane_list(linked.lane, until));
        Addressed { linked, head, list, until }
    }

    /// Appends records; says where their lane stands then.
    pub(super) async fn record(&self, audit: &[PendingAudit]) -> Result<Option<AuditHead>> {
        if audit.is_empty() {
            return Ok(None);
        }
        loop {
            let taken = self.take().await?;
            let to = self.addressed(taken.link(audit));
            let (head, list) = to.keys();
            let state: String =
                self.link.call(to.records(to.lane(RECORD.call().key(head).key(list)))).await?;
            match state.as_str() {
                "done" | "again" => {
                    taken.advanced(&to.linked);
                    return Ok(to.linked.after);
                }
                "lost" => taken.lost(),
                _ => return Err(odd()),
            }
        }
    }

    /// Appends records that have their places already.
    pub(super) async fn adopt(
        &self,
        lane: Lane,
        before: Option<AuditHead>,
        records: Vec<Sealed>,
    ) -> Result<()> {
        let mut count = redis::cmd("GET");
        count.arg(self.space.lanes());
        let count: Option<u32> = self.link.run(For::Reading, count).await?;
        if count.unwrap_or(0) <= lane.number() {
            let mut raise = redis::cmd("SET");
            raise.arg(self.space.lanes()).arg(lane.number() + 1);
            self.link.run::<()>(For::Writing, raise).await?;
        }
        let to = self.addressed(Linked::adopted(self.own.me(), lane, before, records));
        let (head, list) = to.keys();
        let begin = ADOPT_LANE
            .call()
            .key(head)
            .arg(self.own.me().0)
            .number(before.map_or(0, |head| head.seq))
            .arg(before.map_or_else(Vec::new, |head| head.tag.to_vec()));
        self.link.call::<()>(begin).await?;
        match self.link.call::<String>(to.records(to.lane(RECORD.call().key(head).key(list)))).await?.as_str()
        {
            "done" | "again" => Ok(()),
            _ => Err(odd()),
        }
    }

    /// Every lane with a record.
    pub(super) async fn all(&self) -> Result<Vec<AuditLane>> {
        let heads = self.heads().await?;
        let mut asked = Vec::new();
        for (lane, head) in &heads {
            for (until, _) in &head.lists {
                let mut cmd = redis::cmd("EXISTS");
                cmd.arg(self.space.lane_list(*lane, *until));
                asked.push(cmd);
            }
        }
        let mut there = self.link.all::<bool>(For::Reading, &asked).await?.into_iter();
        let mut lanes = Vec::new();
        for (_, head) in heads {
            let live: Vec<_> = head.lists.iter().filter(|_| there.next() == Some(true)).collect();
            let Some(last) = head.last else { continue };
            let floor = live.first().map_or(Some(last), |(_, first)| before(*first));
            let until = head.lists.last().map(|(until, _)| *until);
            lanes.push(AuditLane { head: last, floor, until });
        }
        Ok(lanes)
    }

    /// Records of a lane after a sequence.
    pub(super) async fn read(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let mut head: Vec<BTreeMap<String, Vec<u8>>> = self.link.all(For::Reading, &[self.get(lane)]).await?;
        let Head { lists, .. } = Head::read(lane, &head.pop().unwrap_or_default());
        let mut records = Vec::new();
        for (i, (until, first)) in lists.iter().enumerate() {
            let next = lists.get(i + 1).map_or(u64::MAX, |(_, next)| next.seq);
            let from = after.saturating_add(1).max(first.seq);
            let left = limit - records.len();
            if from >= next || left == 0 {
                continue;
            }
            let start = from - first.seq;
            let mut cmd = redis::cmd("LRANGE");
            cmd.arg(self.space.lane_list(lane, *until)).arg(start).arg(start + left as u64 - 1);
            let found: Vec<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
            records.extend((from..).zip(found.into_iter().map(Sealed::from_bytes)));
        }
        Ok(records)
    }

    async fn heads(&self) -> Result<Vec<(Lane, Head)>> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.space.lanes());
        let count: Option<u32> = self.link.run(For::Reading, cmd).await?;
        let lanes: Vec<Lane> = (0..count.unwrap_or(0)).map(Lane::new).collect();
        let asked: Vec<Cmd> = lanes.iter().map(|lane| self.get(*lane)).collect();
        let found: Vec<BTreeMap<String, Vec<u8>>> = self.link.all(For::Reading, &asked).await?;
        Ok(lanes.into_iter().zip(found).map(|(lane, fields)| (lane, Head::read(lane, &fields))).collect())
    }

    fn get(&self, lane: Lane) -> Cmd {
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(self.space.lane(lane));
        cmd
    }

    /// From when on what is written now may be missing: the end of this eighth, and the whole time after it.
    fn until(&self) -> Millis {
        let keep = i64::try_from(self.keep.as_millis()).unwrap_or(i64::MAX / 2);
        let eighth = keep / 8;
        Millis((SystemClock.now().0 / eighth + 1) * eighth + keep)
    }
}

#[async_trait]
impl LaneKeeper for Lanes {
    async fn writers(&self) -> Result<Vec<(Lane, Option<Instance>)>> {
        Ok(self.heads().await?.into_iter().map(|(lane, head)| (lane, head.writer)).collect())
    }

    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        self.leases.alive(instances).await
    }

    async fn add(&self) -> Result<Lane> {
        let mut cmd = redis::cmd("INCR");
        cmd.arg(self.space.lanes());
        let count: u32 = self.link.run(For::Writing, cmd).await?;
        Ok(Lane::new(count.saturating_sub(1)))
    }

    async fn hand_over(
        &self,
        lane: Lane,
        from: Option<Instance>,
        to: Option<Instance>,
    ) -> Result<Option<Option<AuditHead>>> {
        let id = |instance: Option<Instance>| instance.map_or_else(Vec::new, |instance| instance.0.to_vec());
        let call = CLAIM_LANE.call().key(self.space.lane(lane)).arg(id(from)).arg(id(to));
        let claimed: Option<(Option<u64>, Option<Vec<u8>>)> = self.link.call(call).await?;
        Ok(claimed.map(|(length, tag)| {
            let head = length.zip(tag.and_then(|tag| tag.try_into().ok()));
            head.map(|(seq, tag)| AuditHead { lane, seq, tag })
        }))
    }
}

impl Addressed {
    /// The lane's head and the list.
    pub(super) fn keys(&self) -> (&str, &str) {
        (&self.head, &self.list)
    }

    /// Adds the lane's seven arguments; see `scripts/lane.lua`.
    pub(super) fn lane(&self, call: Call) -> Call {
        let Linked { writer, before, after, records, .. } = &self.linked;
        let tag = |head: &Option<AuditHead>| head.map_or_else(Vec::new, |head| head.tag.to_vec());
        call.arg(writer.0)
            .number(before.map_or(0, |head| head.seq))
            .arg(tag(before))
            .arg(tag(after))
            .number(self.until.0)
            .number(self.until.plus(SLACK).0)
            .number(records.len())
    }

    /// Adds the records.
    pub(super) fn records(&self, call: Call) -> Call {
        self.linked.records.iter().fold(call, |call, record| call.arg(record.as_bytes()))
    }
}

/// A lane's head as stored.
struct Head {
    writer: Option<Instance>,
    last: Option<AuditHead>,
    /// For each list when it may go, and the place of its first record.
    lists: Vec<(Millis, AuditPlace)>,
}

impl Head {
    /// Reads what is there. What is not as it was written is left out: the records then do not follow.
    fn read(lane: Lane, fields: &BTreeMap<String, Vec<u8>>) -> Self {
        let bytes = |name: &str| fields.get(name)?.as_slice().try_into().ok();
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
        let seq = fields.get("n").and_then(|text| number(text));
        let last = seq.zip(bytes("t")).map(|(seq, tag)| AuditHead { lane, seq, tag });
        let mut lists: Vec<_> = fields
            .iter()
            .filter_map(|(name, value)| {
                let until = name.strip_prefix('s')?.parse().ok()?;
                let colon = value.iter().position(|byte| *byte == b':')?;
                let previous = value[colon + 1..].try_into().ok();
                Some((Millis(until), AuditPlace { lane, seq: number(&value[..colon])?, previous }))
            })
            .collect();
        lists.sort_by_key(|(until, _)| *until);
        Self { writer: bytes("o").map(Instance), last, lists }
    }
}

/// The record before a place.
fn before(place: AuditPlace) -> Option<AuditHead> {
    Some(AuditHead { lane: place.lane, seq: place.seq - 1, tag: place.previous? })
}
