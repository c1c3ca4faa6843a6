//! Who is alive, for stores that several processes share: an instance has a lease, and renews it as long as it lives. A process
//! that is gone, or cut off from the store for longer than that, counts as dead, and others may take up its turns and its
//! audit lane. If it comes back, it finds its writes refused, by version or by lane.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Mutex as AsyncMutex;

use super::{Instance, Result, StoreError};

const RENEWED: Duration = Duration::from_secs(4);

/// What a lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Turns: an engine.
    Turns,
    /// Audit lanes: a store's own.
    Lanes,
}

/// Where leases are kept.
#[async_trait]
pub(super) trait LeaseKeeper: Send + Sync + std::fmt::Debug {
    /// Takes or renews the leases of these instances.
    async fn renew(&self, leases: &[(Instance, Work)]) -> Result<()>;
    /// Every instance that answers turns and has a lease; it may give some that had one.
    async fn engines(&self) -> Result<Vec<Instance>>;
    /// Ends a lease.
    async fn end(&self, instance: Instance) -> Result<()>;
    /// Those of the instances that have a lease.
    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>>;
}

/// The instances that this process keeps alive.
#[derive(Debug)]
pub(super) struct Leases {
    keeper: Arc<dyn LeaseKeeper>,
    state: Mutex<State>,
    /// Held while leases are being renewed: one that ends in the meantime would be brought back.
    renewing: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    kept: HashMap<Instance, Work>,
    /// Those that were let go of here: nobody need ask the store about them.
    gone: HashSet<Instance>,
    /// Why the leases could not be renewed the last time, if they could not.
    failed: Option<StoreError>,
}

impl Leases {
    /// Must be called within a Tokio runtime; the task that renews ends with what is returned.
    pub(super) fn new(keeper: Arc<dyn LeaseKeeper>) -> Arc<Self> {
        let leases = Arc::new(Self { keeper, state: Mutex::default(), renewing: AsyncMutex::default() });
        tokio::spawn(renew(Arc::downgrade(&leases)));
        leases
    }

    /// Keeps the writer of a process's lanes alive.
    pub(super) async fn keep_writer(&self, instance: Instance) -> Result<()> {
        self.keep(instance, Work::Lanes).await
    }

    /// Keeps an instance alive for as long as the guard lives.
    pub(super) async fn enlist(self: &Arc<Self>, instance: Instance) -> Result<Enlisted> {
        self.keep(instance, Work::Turns).await?;
        Ok(Enlisted { leases: Arc::clone(self), instance })
    }

    /// Stops keeping an instance alive, and says so.
    pub(super) async fn end(&self, instance: Instance) -> Result<()> {
        self.let_go(instance);
        let _renewing = self.renewing.lock().await;
        self.keeper.end(instance).await
    }

    /// Those of `instances` that are alive.
    pub(super) async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        let mut alive = self.keeper.alive(instances).await?;
        let state = self.lock();
        alive.retain(|instance| !state.gone.contains(instance));
        Ok(alive)
    }

    /// The engines that are alive, and perhaps some that were.
    pub(super) async fn engines(&self) -> Result<Vec<Instance>> {
        self.keeper.engines().await
    }

    /// Whether any engine other than this one is alive.
    pub(super) async fn others_alive(&self, than: Instance) -> Result<bool> {
        let mut others = self.keeper.engines().await?;
        others.retain(|other| *other != than);
        Ok(!others.is_empty() && !self.alive(&others).await?.is_empty())
    }

    /// Whether the store takes what is written to it, as its last sign of life shows. One that cannot be reached cannot be read
    /// either, which whoever asks finds out sooner.
    pub(super) fn writable(&self) -> Result<()> {
        match &self.lock().failed {
            Some(error @ (StoreError::Full | StoreError::ReadOnly | StoreError::Refused(_))) => {
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }

    async fn keep(&self, instance: Instance, work: Work) -> Result<()> {
        self.lock().kept.insert(instance, work);
        self.keeper.renew(&[(instance, work)]).await
    }

    /// Stops keeping an instance alive; others find out when its lease runs out.
    fn let_go(&self, instance: Instance) {
        let mut state = self.lock();
        if state.kept.remove(&instance).is_some() {
            state.gone.insert(instance);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Holds the leases only while it renews them, so that dropping them ends this task.
async fn renew(leases: Weak<Leases>) {
    loop {
        tokio::time::sleep(RENEWED).await;
        let Some(leases) = leases.upgrade() else { return };
        let _renewing = leases.renewing.lock().await;
        let kept: Vec<(Instance, Work)> = leases.lock().kept.iter().map(|(of, work)| (*of, *work)).collect();
        if kept.is_empty() {
            continue;
        }
        let renewed = leases.keeper.renew(&kept).await;
        if let Err(error) = &renewed {
            tracing::warn!(error = %error, "this process's lease could not be renewed; will retry");
        }
        leases.lock().failed = renewed.err();
    }
}

/// Releases an instance when this is dropped.
#[derive(Debug)]
pub(super) struct Enlisted {
    leases: Arc<Leases>,
    instance: Instance,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.leases.let_go(self.instance);
    }
}
