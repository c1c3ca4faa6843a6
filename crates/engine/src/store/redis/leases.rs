//! Who is alive: an instance holds a key that expires, and renews it as long as it lives. A process that is gone, or cut off
//! from the server for longer than that, counts as dead, and others may take up its turns and its audit lane. If it comes
//! back, it finds its writes refused by version or by lane.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use redis::Cmd;
use tokio::sync::Mutex as AsyncMutex;

use super::link::{For, Link};
use super::names::KeySpace;
use crate::store::{Instance, Result};

/// How long an instance counts as alive after its last sign.
const LEASE: Duration = Duration::from_secs(15);
const RENEWED: Duration = Duration::from_secs(4);
/// How long the list of instances outlives the last sign of any.
pub(super) const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);

/// The instances that this process keeps alive.
#[derive(Debug)]
pub(super) struct Leases {
    link: Arc<Link>,
    space: KeySpace,
    state: Mutex<State>,
    /// Held while leases are being renewed: one that ends in the meantime would be brought back.
    renewing: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    kept: HashSet<Instance>,
    /// Those that were let go of here: nobody need ask the server about them.
    gone: HashSet<Instance>,
}

impl Leases {
    /// Must be called within a Tokio runtime; the task that renews ends with what is returned.
    pub(super) fn new(link: Arc<Link>, space: KeySpace) -> Arc<Self> {
        let leases = Arc::new(Self { link, space, state: Mutex::default(), renewing: AsyncMutex::default() });
        tokio::spawn(renew(Arc::downgrade(&leases)));
        leases
    }

    /// Keeps an instance alive until it is let go of.
    pub(super) async fn keep(&self, instance: Instance) -> Result<()> {
        self.lock().kept.insert(instance);
        self.link.all::<()>(For::Writing, &self.signs(&[instance])).await.map(drop)
    }

    /// Stops keeping an instance alive; others find out when its lease runs out.
    pub(super) fn let_go(&self, instance: Instance) {
        let mut state = self.lock();
        if state.kept.remove(&instance) {
            state.gone.insert(instance);
        }
    }

    /// Stops keeping an instance alive, and says so.
    pub(super) async fn end(&self, instance: Instance) -> Result<()> {
        self.let_go(instance);
        let _renewing = self.renewing.lock().await;
        let mut end = redis::cmd("DEL");
        end.arg(self.space.lease(instance));
        self.link.run(For::Writing, end).await
    }

    /// Those of `instances` that are alive.
    pub(super) async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        let asked: Vec<Cmd> = instances
            .iter()
            .map(|instance| {
                let mut cmd = redis::cmd("EXISTS");
                cmd.arg(self.space.lease(*instance));
                cmd
            })
            .collect();
        let there: Vec<bool> = self.link.all(For::Reading, &asked).await?;
        let state = self.lock();
        let alive =
            instances.iter().zip(there).filter(|(instance, there)| *there && !state.gone.contains(instance));
        Ok(alive.map(|(instance, _)| *instance).collect())
    }

    /// Signs of life: the lease, and the entry in the list of instances.
    fn signs(&self, instances: &[Instance]) -> Vec<Cmd> {
        let mut signs = Vec::with_capacity(2 * instances.len() + 1);
        for instance in instances {
            let mut lease = redis::cmd("SET");
            lease.arg(self.space.lease(*instance)).arg(1).arg("PX").arg(millis(LEASE));
            let mut listed = redis::cmd("ZADD");
            listed.arg(self.space.instances()).arg(0).arg(&instance.0[..]);
            signs.extend([lease, listed]);
        }
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(self.space.instances()).arg(millis(REMEMBERED));
        signs.push(expire);
        signs
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Holds the leases only while it renews them, so that dropping them ends this task.
async fn renew(leases: Weak<Leases>) {
    loop {
        tokio::time::sleep(RENEWED).await;
        let Some(leases) = leases.upgrade() else { return };
        let _renewing = leases.renewing.lock().await;
        let kept: Vec<Instance> = leases.lock().kept.iter().copied().collect();
        if !kept.is_empty()
            && let Err(error) = leases.link.all::<()>(For::Writing, &leases.signs(&kept)).await
        {
            tracing::warn!(error = %error, "the sign of life could not be renewed; trying again");
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Lets go of an instance when it goes.
#[derive(Debug)]
pub(super) struct Enlisted {
    pub(super) leases: Arc<Leases>,
    pub(super) instance: Instance,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.leases.let_go(self.instance);
    }
}
