//! The audit log: lanes, each with one writer at a time.
//!
//! A process has as many lanes as it has writes under way at once, takes one for the time of a write, and knows where it
//! stands, since nobody else writes it: so a turn and its audit records are one script and one round trip. Lanes are numbered
//! and used again: one whose writer is gone is the next one's. A lane's records are in lists, one for each eighth of the time
//! that records are kept, and each list expires as a whole.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_seal::Sealed;
use redis::Cmd;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit};

use super::leases::Leases;
use super::link::{For, Link, odd};
use super::names::KeySpace;
use super::scripts::{CLAIM_LANE, Call, RECORD};
use crate::audit::Lane;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::store::{AuditHead, AuditLane, AuditPlace, Instance, PendingAudit, Result};

/// The most lanes that one process writes.
const MOST_LANES: usize = 16;
/// How long a list outlives what the keyring is told, so that clocks need not agree to the second.
const SLACK: Duration = Duration::from_secs(60);

/// The lanes of a process.
#[derive(Debug)]
pub(super) struct Lanes {
    link: Arc<Link>,
    space: KeySpace,
    leases: Arc<Leases>,
    /// The writer that this process is.
    me: Instance,
    keep: Duration,
    permits: Semaphore,
    /// Lanes that are ours and not in use.
    idle: Mutex<Vec<Own>>,
    /// Lanes that are ours, in use or not.
    held: Mutex<HashSet<Lane>>,
    /// Held by whoever is looking for a lane.
    claiming: AsyncMutex<()>,
}

/// A lane of ours, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Own {
    lane: Lane,
    head: Option<AuditHead>,
}

/// A lane of ours for the time of one write.
pub(super) struct Taken<'a> {
    lanes: &'a Lanes,
    own: Option<Own>,
    _permit: SemaphorePermit<'a>,
}

/// Records that are sealed into their places.
pub(super) struct Linked {
    after: Own,
    head_key: String,
    list_key: String,
    /// The lane's seven arguments; see `scripts/lane.lua`.
    args: [Vec<u8>; 7],
    records: Vec<Sealed>,
}

impl Lanes {
    pub(super) fn new(
        link: Arc<Link>,
        space: KeySpace,
        leases: Arc<Leases>,
        me: Instance,
        keep: Duration,
    ) -> Self {
        Self {
            link,
            space,
            leases,
            me,
            // Lists of less than a minute would be too many.
            keep: keep.max(Duration::from_secs(480)),
            permits: Semaphore::new(MOST_LANES),
            idle: Mutex::default(),
            held: Mutex::default(),
            claiming: AsyncMutex::default(),
        }
    }

    /// Appends records; says where their lane stands then.
    pub(super) async fn record(&self, audit: &[PendingAudit]) -> Result<Option<AuditHead>> {
        if audit.is_empty() {
            return Ok(None);
        }
        loop {
            let mut taken = self.take().await?;
            let linked = taken.link(audit);
            let call = linked.records(linked.lane(RECORD.call().key(&linked.head_key).key(&linked.list_key)));
            let state: String = self.link.call(call).await?;
            match state.as_str() {
                "done" | "again" => return Ok(taken.advanced(linked)),
                "lost" => {}
                _ => return Err(odd()),
            }
        }
    }

    /// Takes a lane for one write. Whoever does not say that it advanced has lost it, and it is looked at again.
    pub(super) async fn take(&self) -> Result<Taken<'_>> {
        let permit = self.permits.acquire().await.map_err(|_| odd())?;
        let taken = |own| Taken { lanes: self, own: Some(own), _permit: permit };
        if let Some(own) = self.idle().pop() {
            return Ok(taken(own));
        }
        let _claiming = self.claiming.lock().await;
        // Somebody may have given one back while we waited.
        let found = self.idle().pop();
        match found {
            Some(own) => Ok(taken(own)),
            None => Ok(taken(self.claim().await?)),
        }
    }

    /// Gives back the lanes that are not in use, for the next process.
    pub(super) async fn release(&self) -> Result<()> {
        let _claiming = self.claiming.lock().await;
        let idle = std::mem::take(&mut *self.idle());
        let calls: Vec<Call> = idle.iter().map(|own| self.hand_over(own.lane, Some(self.me), None)).collect();
        self.held().retain(|lane| idle.iter().all(|own| own.lane != *lane));
        self.link.calls_together(&calls).await.map(drop)
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

    /// Finds a lane without a living writer, or makes one.
    async fn claim(&self) -> Result<Own> {
        loop {
            let heads = self.heads().await?;
            let writers: Vec<Instance> = heads.iter().filter_map(|(_, head)| head.writer).collect();
            let alive = self.leases.alive(&writers).await?;
            let held = self.held().clone();
            let free = heads.iter().find(|(lane, head)| {
                // One of ours that a failed write left: where it stands is not known any more.
                let ours = head.writer == Some(self.me);
                !held.contains(lane) && (ours || head.writer.is_none_or(|writer| !alive.contains(&writer)))
            });
            let (lane, from) = match free {
                Some((lane, head)) => (*lane, head.writer),
                None => {
                    let mut cmd = redis::cmd("INCR");
                    cmd.arg(self.space.lanes());
                    let count: u32 = self.link.run(For::Writing, cmd).await?;
                    (Lane::new(count.saturating_sub(1)), None)
                }
            };
            let claimed: Option<(Option<u64>, Option<Vec<u8>>)> =
                self.link.call(self.hand_over(lane, from, Some(self.me))).await?;
            // Otherwise somebody else was faster.
            if let Some((length, tag)) = claimed {
                self.held().insert(lane);
                let head = length.zip(tag.and_then(|tag| tag.try_into().ok()));
                return Ok(Own { lane, head: head.map(|(seq, tag)| AuditHead { lane, seq, tag }) });
            }
        }
    }

    fn hand_over(&self, lane: Lane, from: Option<Instance>, to: Option<Instance>) -> Call {
        let id = |instance: Option<Instance>| instance.map_or_else(Vec::new, |instance| instance.0.to_vec());
        CLAIM_LANE.call().key(self.space.lane(lane)).arg(id(from)).arg(id(to))
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

    fn held(&self) -> std::sync::MutexGuard<'_, HashSet<Lane>> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Own>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Taken<'_> {
    /// Seals records into the lane's next places.
    pub(super) fn link(&self, audit: &[PendingAudit]) -> Linked {
        let Taken { lanes, own, .. } = self;
        let own = own.expect("a lane is there until the write that it was taken for has ended");
        let mut head = own.head;
        let mut records = Vec::with_capacity(audit.len());
        for pending in audit {
            let place = head.map_or(AuditPlace::first(own.lane), AuditHead::next);
            let sealed = pending.link(place);
            head = sealed.tag().map(|tag| AuditHead { lane: own.lane, seq: place.seq, tag });
            records.push(sealed);
        }
        let (lane, until) = (own.lane, lanes.until());
        let tag = |head: Option<AuditHead>| head.map_or_else(Vec::new, |head| head.tag.to_vec());
        let text = |number: i64| number.to_string().into_bytes();
        let args = [
            lanes.me.0.to_vec(),
            own.head.map_or(0, |head| head.seq).to_string().into_bytes(),
            tag(own.head),
            tag(head),
            text(until.0),
            text(until.plus(SLACK).0),
            records.len().to_string().into_bytes(),
        ];
        let (head_key, list_key) = (lanes.space.lane(lane), lanes.space.lane_list(lane, until));
        Linked { after: Own { lane, head }, head_key, list_key, args, records }
    }

    /// The records are written; says where the lane stands.
    pub(super) fn advanced(&mut self, linked: Linked) -> Option<AuditHead> {
        self.own = None;
        self.lanes.idle().push(linked.after);
        linked.after.head
    }

    /// Nothing was written: the lane is where it was.
    pub(super) fn unchanged(&mut self) {
        self.lanes.idle().extend(self.own.take());
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            self.lanes.held().remove(&own.lane);
        }
    }
}

impl Linked {
    pub(super) fn keys(&self) -> (&str, &str) {
        (&self.head_key, &self.list_key)
    }

    /// Adds the lane's seven arguments.
    pub(super) fn lane(&self, call: Call) -> Call {
        self.args.iter().fold(call, |call, arg| call.arg(arg))
    }

    /// Adds the records.
    pub(super) fn records(&self, call: Call) -> Call {
        self.records.iter().fold(call, |call, record| call.arg(record.as_bytes()))
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
