//! Checkpoints as the first system left them on a Redis: strings under the names that sessions have here, too.

use std::sync::Arc;

use super::link::{For, Link};
use super::{RedisSettings, connect};
use crate::error::StoreError;
use crate::store::Result;

/// Reads them. Nothing is written but where it is asked to make way.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    link: Arc<Link>,
}

const BEGINS: &str = "checkpoint:";
const ENDS: &str = ":latest";
/// What goes before the name of a checkpoint that made way for a session of ours.
const ASIDE: &str = "legacy:";

impl Checkpoints {
    pub(crate) async fn connect(settings: &RedisSettings) -> Result<Self> {
        let link = connect(settings).await?;
        if link.is_cluster() {
            return Err(StoreError::Mismatch(
                "checkpoints of the first system cannot be read from a Cluster; hint: give the address of one of its servers as \
                 redis://…, one after the other"
                    .to_owned(),
            ));
        }
        Ok(Self { link })
    }

    /// The ids of all sessions that have one, in order.
    pub(crate) async fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for pattern in [format!("{BEGINS}*{ENDS}"), format!("{ASIDE}{BEGINS}*{ENDS}")] {
            let mut cursor = 0_u64;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(500).arg("TYPE").arg("string");
                let (next, keys): (u64, Vec<Vec<u8>>) = self.link.run(For::Reading, scan).await?;
                let id = |key: Vec<u8>| {
                    let key = String::from_utf8(key).ok()?;
                    let key = key.strip_prefix(ASIDE).unwrap_or(&key);
                    Some(key.strip_prefix(BEGINS)?.strip_suffix(ENDS)?.to_owned())
                };
                ids.extend(keys.into_iter().filter_map(id));
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// What is stored for a session.
    pub(crate) async fn row(&self, id: &str) -> Result<Option<Vec<u8>>> {
        for key in [format!("{ASIDE}{BEGINS}{id}{ENDS}"), format!("{BEGINS}{id}{ENDS}")] {
            let mut kind = redis::cmd("TYPE");
            kind.arg(&key);
            if self.link.run::<String>(For::Reading, kind).await? == "string" {
                let mut get = redis::cmd("GET");
                get.arg(&key);
                return self.link.run(For::Reading, get).await;
            }
        }
        Ok(None)
    }

    /// Makes way for a session of ours under the same name. Its lifetime stays.
    pub(crate) async fn set_aside(&self, id: &str) -> Result<()> {
        let key = format!("{BEGINS}{id}{ENDS}");
        let mut kind = redis::cmd("TYPE");
        kind.arg(&key);
        if self.link.run::<String>(For::Reading, kind).await? == "string" {
            let mut rename = redis::cmd("RENAMENX");
            rename.arg(&key).arg(format!("{ASIDE}{key}"));
            self.link.run::<()>(For::Writing, rename).await?;
        }
        Ok(())
    }
}
