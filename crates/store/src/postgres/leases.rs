//! Whose turns are open, and who is alive.

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::Tag;

use super::PostgresStore;
use super::data::tag;
use super::lanes::{get, odd};
use super::pool::{For, Pool};
use crate::claims::LEASE;
use crate::error::StoreError;
use crate::leases::{LeaseKeeper, Work};
use crate::{Claims, Instance, Owner, Result};

#[async_trait]
impl Claims for PostgresStore {
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>> {
        let sql = "SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL ORDER BY scope_tag";
        let rows = self.pool.query(For::Reading, sql, &[]).await?;
        let open = rows.iter().map(|row| Ok((tag(row, 0)?, owner(get(row, 1)?).ok_or_else(odd)?)));
        let open = open.collect::<Result<Vec<_>>>()?;
        let owners: HashSet<Instance> = open.iter().filter_map(|(_, owner)| owner.instance()).collect();
        let alive = self.leases.alive(&owners.into_iter().collect::<Vec<_>>()).await?;
        let is_alive = |owner: Owner| owner.instance().is_some_and(|instance| alive.contains(&instance));
        Ok(open.into_iter().filter(|(_, owner)| !is_alive(*owner)).collect())
    }

    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool> {
        let sql = "UPDATE sessions SET owner = $3 WHERE scope_tag = $1 AND owner IN ($2, $3) RETURNING 1";
        let (scope, from, to) = (scope.as_bytes().to_vec(), from.to_bytes().to_vec(), to.0.to_vec());
        Ok(!self.pool.query(For::Writing, sql, &[&scope, &from, &to]).await?.is_empty())
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.leases.enlist(instance).await?))
    }

    async fn resign(&self, instance: Instance) -> Result<()> {
        let parting = async {
            self.lanes.release().await?;
            self.leases.end(instance).await
        };
        // Others find out by themselves if it must be: no reason to keep a process from ending.
        let parted = tokio::time::timeout(std::time::Duration::from_secs(3), parting).await;
        parted.unwrap_or_else(|_| Err(StoreError::Unreachable("timed out".to_owned())))
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.leases.alive(&[instance]).await?.contains(&instance))
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        self.leases.others_alive(than).await
    }
}

/// Leases as rows.
#[derive(Debug)]
pub(super) struct Keeper(Arc<Pool>);

impl Keeper {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self(pool)
    }
}

#[async_trait]
impl LeaseKeeper for Keeper {
    async fn renew(&self, leases: &[(Instance, Work)]) -> Result<()> {
        let sql = "INSERT INTO instances
                   SELECT id, answers, now() + $3 * interval '1 second' FROM unnest($1::bytea[], $2::boolean[]) AS i (id, answers) ORDER BY id
                   ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until RETURNING 1";
        let ids: Vec<Vec<u8>> = leases.iter().map(|(instance, _)| instance.0.to_vec()).collect();
        let answers: Vec<bool> = leases.iter().map(|(_, work)| *work == Work::Turns).collect();
        self.0.query(For::Writing, sql, &[&ids, &answers, &LEASE.as_secs_f64()]).await.map(drop)
    }

    async fn engines(&self) -> Result<Vec<Instance>> {
        let sql = "SELECT id FROM instances WHERE answers AND alive_until > now()";
        let rows = self.0.query(For::Reading, sql, &[]).await?;
        rows.iter().map(|row| instance(get(row, 0)?).ok_or_else(odd)).collect()
    }

    async fn end(&self, instance: Instance) -> Result<()> {
        let sql = "DELETE FROM instances WHERE id = $1";
        self.0.query(For::Writing, sql, &[&instance.0.to_vec()]).await.map(drop)
    }

    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        let sql = "SELECT id FROM instances WHERE id = ANY($1::bytea[]) AND alive_until > now()";
        let rows = self.0.query(For::Reading, sql, &[&ids(instances)]).await?;
        rows.iter().map(|row| instance(get(row, 0)?).ok_or_else(odd)).collect()
    }
}

fn ids(instances: &[Instance]) -> Vec<Vec<u8>> {
    instances.iter().map(|instance| instance.0.to_vec()).collect()
}

fn instance(id: Vec<u8>) -> Option<Instance> {
    id.try_into().ok().map(Instance)
}

pub(super) fn owner(id: Vec<u8>) -> Option<Owner> {
    id.try_into().ok().map(Owner::from_bytes)
}
