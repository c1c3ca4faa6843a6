//! Audit lanes for stores that several processes share: each lane has one writer at a time.
//!
//! A process has as many lanes as it has writes under way at once, takes one for the time of a write, and knows where it
//! stands, since nobody else writes it: so a write need not ask before its audit records are sealed into their places. Lanes
//! are numbered and used again: one whose writer is gone is the next one's. How lanes are kept is a [`LaneKeeper`]'s.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use confidant_seal::Sealed;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit};

use super::{AuditHead, AuditPlace, Instance, PendingAudit, Result};
use crate::error::StoreError;
use crate::lane::Lane;

/// The most lanes that one process writes.
const MOST_LANES: usize = 16;

/// How often another lane is tried. With so many processes that begin at once something else is wrong.
const MOST_TRIES: usize = 4096;

/// How often in a row a lane may be lost. Another process that takes it over does so once.
const MOST_LOST: u32 = 3;

/// With so many that were lost it is not the lanes: making more of them would not help.
const MOST_SPOILT: usize = 64;

/// Where lanes are kept.
#[async_trait]
pub(super) trait LaneKeeper: Send + Sync {
    /// Every lane, with its writer.
    async fn writers(&self) -> Result<Vec<(Lane, Option<Instance>)>>;
    /// Those of the instances that are alive.
    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>>;
    /// Makes another lane, without a writer.
    async fn add(&self) -> Result<Lane>;
    /// Makes `to` the writer of a lane that `from` has, and says where the lane stands; nothing if it is another's.
    async fn hand_over(
        &self,
        lane: Lane,
        from: Option<Instance>,
        to: Option<Instance>,
    ) -> Result<Option<Option<AuditHead>>>;
}

/// The lanes of a process.
#[derive(Debug)]
pub(super) struct LanePool {
    /// The writer that this process is.
    me: Instance,
    permits: Semaphore,
    /// Lanes that are ours and not in use.
    idle: Mutex<Vec<Own>>,
    /// Lanes that are ours, in use or not.
    held: Mutex<HashSet<Lane>>,
    /// How often in a row a lane was not as it had been said to be: whoever changed it, it is left alone then.
    lost: Mutex<HashMap<Lane, u32>>,
    /// Held by whoever is looking for a lane.
    claiming: AsyncMutex<()>,
}

/// A lane of ours, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Own {
    lane: Lane,
    head: Option<AuditHead>,
}

/// A lane of ours for the time of one write. Unless it is said what became of the write, where the lane stands is not known
/// any more, and it is looked at again.
pub(super) struct Taken<'a> {
    pool: &'a LanePool,
    own: Option<Own>,
    _permit: SemaphorePermit<'a>,
}

/// Records that are sealed into their places.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) writer: Instance,
    pub(super) lane: Lane,
    /// Where the lane stands before them, and after.
    pub(super) before: Option<AuditHead>,
    pub(super) after: Option<AuditHead>,
    pub(super) records: Vec<Sealed>,
}

impl Linked {
    /// Records that have their places already.
    pub(super) fn adopted(
        writer: Instance,
        lane: Lane,
        before: Option<AuditHead>,
        records: Vec<Sealed>,
    ) -> Self {
        let seq = before.map_or(0, |head| head.seq) + records.len() as u64;
        let after = records.last().and_then(Sealed::tag).map(|tag| AuditHead { lane, seq, tag });
        Self { writer, lane, before, after, records }
    }
}

impl LanePool {
    pub(super) fn new(me: Instance) -> Self {
        Self {
            me,
            permits: Semaphore::new(MOST_LANES),
            idle: Mutex::default(),
            held: Mutex::default(),
            lost: Mutex::default(),
            claiming: AsyncMutex::default(),
        }
    }

    /// The writer that this process is.
    pub(super) fn me(&self) -> Instance {
        self.me
    }

    /// Takes a lane for one write.
    pub(super) async fn take(&self, keeper: &dyn LaneKeeper) -> Result<Taken<'_>> {
        let closed = |_| StoreError::Failed("a write was interrupted".to_owned());
        let permit = self.permits.acquire().await.map_err(closed)?;
        let taken = |own| Taken { pool: self, own: Some(own), _permit: permit };
        if let Some(own) = lock(&self.idle).pop() {
            return Ok(taken(own));
        }
        let _claiming = self.claiming.lock().await;
        // Somebody may have given one back while we waited.
        let found = lock(&self.idle).pop();
        match found {
            Some(own) => Ok(taken(own)),
            None => Ok(taken(self.claim(keeper).await?)),
        }
    }

    /// Gives back the lanes that are not in use, for the next process.
    pub(super) async fn release(&self, keeper: &dyn LaneKeeper) -> Result<()> {
        let _claiming = self.claiming.lock().await;
        let idle = std::mem::take(&mut *lock(&self.idle));
        for own in idle {
            lock(&self.held).remove(&own.lane);
            keeper.hand_over(own.lane, Some(self.me), None).await?;
        }
        Ok(())
    }

    /// Finds a lane without a living writer, or makes one.
    async fn claim(&self, keeper: &dyn LaneKeeper) -> Result<Own> {
        // Others were faster there, or it says of its writer what no process wrote.
        let mut missed = HashSet::new();
        for _ in 0..MOST_TRIES {
            if lock(&self.lost).len() > MOST_SPOILT {
                break;
            }
            let lanes = keeper.writers().await?;
            let writers: Vec<Instance> = lanes.iter().filter_map(|(_, writer)| *writer).collect();
            let alive = keeper.alive(&writers).await?;
            let held = lock(&self.held).clone();
            let spoilt = |lane: &Lane| lock(&self.lost).get(lane).is_some_and(|times| *times >= MOST_LOST);
            let free = lanes.into_iter().find(|(lane, writer)| {
                // One of ours that a failed write left counts as free.
                let free = writer.is_none_or(|writer| writer == self.me || !alive.contains(&writer));
                free && !held.contains(lane) && !missed.contains(lane) && !spoilt(lane)
            });
            let (lane, from) = match free {
                Some(free) => free,
                None => (keeper.add().await?, None),
            };
            if let Some(head) = keeper.hand_over(lane, from, Some(self.me)).await? {
                lock(&self.held).insert(lane);
                return Ok(Own { lane, head });
            }
            missed.insert(lane);
        }
        Err(StoreError::Failed("the audit log has no free lane".to_owned()))
    }
}

impl Taken<'_> {
    /// Seals records into the lane's next places.
    pub(super) fn link(&self, audit: &[PendingAudit]) -> Linked {
        let own = self.own.expect("a lane is there until the write that it was taken for has ended");
        let mut head = own.head;
        let mut records = Vec::with_capacity(audit.len());
        for pending in audit {
            let place = head.map_or(AuditPlace::first(own.lane), AuditHead::next);
            let sealed = pending.link(place);
            head = sealed.tag().map(|tag| AuditHead { lane: own.lane, seq: place.seq, tag });
            records.push(sealed);
        }
        Linked { writer: self.pool.me, lane: own.lane, before: own.head, after: head, records }
    }

    /// The lane is not where it stood, or another's: it is given up.
    pub(super) fn lost(self) {
        if let Some(own) = self.own {
            *lock(&self.pool.lost).entry(own.lane).or_default() += 1;
        }
    }

    /// The records are written.
    pub(super) fn advanced(mut self, linked: &Linked) {
        self.own = None;
        lock(&self.pool.lost).remove(&linked.lane);
        lock(&self.pool.idle).push(Own { lane: linked.lane, head: linked.after });
    }

    /// Nothing was written: the lane is where it was.
    pub(super) fn unchanged(mut self) {
        lock(&self.pool.idle).extend(self.own.take());
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            lock(&self.pool.held).remove(&own.lane);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
