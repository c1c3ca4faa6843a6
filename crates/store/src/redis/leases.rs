//! Leases as keys that expire, and the list of those that may have open turns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::Cmd;

use super::link::{For, Link};
use super::names::KeySpace;
use crate::claims::LEASE;
use crate::leases::{LeaseKeeper, Work};
use crate::{Instance, Result};

/// How long the list of instances outlives the last sign of any.
pub(super) const REMEMBERED: Duration = Duration::from_secs(7 * 86_400);

/// Leases on a Redis.
#[derive(Debug)]
pub(super) struct Keeper {
    link: Arc<Link>,
    space: KeySpace,
}

impl Keeper {
    pub(super) fn new(link: Arc<Link>, space: KeySpace) -> Self {
        Self { link, space }
    }
}

#[async_trait]
impl LeaseKeeper for Keeper {
    async fn renew(&self, leases: &[(Instance, Work)]) -> Result<()> {
        let mut signs = Vec::with_capacity(2 * leases.len() + 1);
        for (instance, work) in leases {
            let mut lease = redis::cmd("SET");
            lease.arg(self.space.lease(*instance)).arg(1).arg("PX").arg(millis(LEASE));
            signs.push(lease);
            if *work == Work::Turns {
                let mut listed = redis::cmd("ZADD");
                listed.arg(self.space.instances()).arg(0).arg(&instance.0[..]);
                signs.push(listed);
            }
        }
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(self.space.instances()).arg(millis(REMEMBERED));
        signs.push(expire);
        self.link.all::<()>(For::Writing, &signs).await.map(drop)
    }

    async fn engines(&self) -> Result<Vec<Instance>> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.space.instances()).arg(0).arg(-1);
        let ids: Vec<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        Ok(ids.into_iter().filter_map(|id| id.try_into().ok()).map(Instance).collect())
    }

    async fn end(&self, instance: Instance) -> Result<()> {
        let mut end = redis::cmd("DEL");
        end.arg(self.space.lease(instance));
        self.link.run(For::Writing, end).await
    }

    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        let asked: Vec<Cmd> = instances
            .iter()
            .map(|instance| {
                let mut cmd = redis::cmd("EXISTS");
                cmd.arg(self.space.lease(*instance));
                cmd
            })
            .collect();
        let there: Vec<bool> = self.link.all(For::Reading, &asked).await?;
        Ok(instances.iter().zip(there).filter(|(_, there)| *there).map(|(instance, _)| *instance).collect())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
