//! Checkpoints as the first system left them on a Redis: strings under the names that sessions have here, too.

use std::sync::Arc;

use super::link::{For, Link};
use super::{RedisSettings, connect};
use crate::Result;

/// Reads them. Nothing is written but where it is asked to make way.
#[derive(Debug)]
pub struct Checkpoints {
    link: Arc<Link>,
}

const BEGINS: &str = "checkpoint:";
const ENDS: &str = ":latest";
/// What goes before the name of a checkpoint that made way for a session of ours.
const ASIDE: &str = "legacy:";
const PATTERNS: [&str; 2] = ["checkpoint:*:latest", "legacy:checkpoint:*:latest"];

impl Checkpoints {
    pub async fn connect(settings: &RedisSettings) -> Result<Self> {
        Ok(Self { link: connect(settings).await? })
    }

    /// The ids of all sessions that have one, in order.
    pub async fn ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for pattern in PATTERNS {
            let id = |key: Vec<u8>| Some(id_in(std::str::from_utf8(&key).ok()?)?.to_owned());
            ids.extend(self.link.names(pattern, Some("string")).await?.into_iter().filter_map(id));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// What else has the name of a checkpoint and is none: keys of other types, and names that are not text. Sessions of
    /// ours, which have these names, too, are left out. Each with what it is.
    pub async fn others(&self) -> Result<Vec<(String, String)>> {
        let mut others = Vec::new();
        for pattern in PATTERNS {
            for key in self.link.names(pattern, None).await? {
                let (mut kind, mut field) = (redis::cmd("TYPE"), redis::cmd("HMGET"));
                kind.arg(&key);
                let kind: String = self.link.run(For::Reading, kind).await?;
                let text = std::str::from_utf8(&key).ok();
                let is_ours = kind == "hash" && {
                    // The version, the key's id and the names: every session has them.
                    field.arg(&key).arg("v").arg("k").arg("s");
                    let fields: Vec<Option<Vec<u8>>> = self.link.run(For::Reading, field).await?;
                    fields.iter().all(Option::is_some)
                };
                let is_read = kind == "string" && text.is_some_and(|text| id_in(text).is_some());
                if !is_ours && !is_read && kind != "none" {
                    let name = text.map_or_else(|| String::from_utf8_lossy(&key).into_owned(), str::to_owned);
                    others.push((name, kind));
                }
            }
        }
        others.sort();
        Ok(others)
    }

    /// What is stored for a session. Where there are two, the first system went on after one was set aside.
    pub async fn row(&self, id: &str) -> Result<Option<Vec<u8>>> {
        for key in [own(id), aside(&own(id))] {
            if is_string(&self.link, &key).await? {
                let mut get = redis::cmd("GET");
                get.arg(&key);
                return self.link.run(For::Reading, get).await;
            }
        }
        Ok(None)
    }

    /// Makes way for a session of ours under the same name. Its lifetime stays.
    ///
    /// Written and then removed, not renamed: in a Cluster the names are in two places. Cut off in between, both are the same.
    pub async fn set_aside(&self, id: &str) -> Result<()> {
        let key = own(id);
        if !is_string(&self.link, &key).await? {
            return Ok(());
        }
        let (mut get, mut left) = (redis::cmd("GET"), redis::cmd("PTTL"));
        get.arg(&key);
        left.arg(&key);
        let row: Option<Vec<u8>> = self.link.run(For::Reading, get).await?;
        let left: i64 = self.link.run(For::Reading, left).await?;
        if let Some(row) = row {
            let mut set = redis::cmd("SET");
            set.arg(aside(&key)).arg(row);
            if left >= 0 {
                set.arg("PX").arg(left.max(1));
            }
            self.link.run::<()>(For::Writing, set).await?;
        }
        remove(&self.link, &key).await
    }

    /// Removes what was set aside: a session of ours holds it now, and ends it when it ends.
    pub async fn remove(&self, id: &str) -> Result<()> {
        remove(&self.link, &aside(&own(id))).await
    }
}

/// Ends what the first system left of a session: under its key, or where it made way for it.
pub(super) async fn erase(link: &Link, session: &str) -> Result<()> {
    if !session.starts_with(BEGINS) {
        return Ok(());
    }
    if is_string(link, session).await? {
        remove(link, session).await?;
    }
    remove(link, &aside(session)).await
}

/// The session's id in the name of a checkpoint.
fn id_in(key: &str) -> Option<&str> {
    key.strip_prefix(ASIDE).unwrap_or(key).strip_prefix(BEGINS)?.strip_suffix(ENDS)
}

fn own(id: &str) -> String {
    format!("{BEGINS}{id}{ENDS}")
}

fn aside(key: &str) -> String {
    format!("{ASIDE}{key}")
}

async fn is_string(link: &Link, key: &str) -> Result<bool> {
    let mut kind = redis::cmd("TYPE");
    kind.arg(key);
    Ok(link.run::<String>(For::Reading, kind).await? == "string")
}

async fn remove(link: &Link, key: &str) -> Result<()> {
    let mut cmd = redis::cmd("DEL");
    cmd.arg(key);
    link.run::<u64>(For::Writing, cmd).await.map(drop)
}
