//! What devices are about to load, kept for a while: client ciphertext of an account's newest chats.
//!
//! ```text
//! user:{account}:sync                          an index: who is loading, and which chats are here, with their sizes
//! user:{account}:chat:{chat}:messages:sync     one chat's envelopes
//! ```
//!
//! All of it can be read from the store of chats at any time, so nothing here fails: what is not there, or cannot be had within
//! a moment, is as if it had never been kept. A server that does not answer is left alone for a while.
//!
//! Easy to get wrong: an entry that is written while its chat is deleted. The index is asked again afterwards, and an entry
//! that it does not name goes.

use std::future::Future;
use std::time::Duration;

use confidant_display::debug_without_content;
use confidant_seal::TenantId;
use parking_lot::Mutex;
use redis::Cmd;
use tokio::time::{Instant, timeout};

use super::link::{For, Link};
use super::scripts::{SHELVE, UNSHELVE};
use super::settings::{RedisNames, RedisSettings};
use crate::Result;

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfLimits {
    /// How long it is kept after it was last added to.
    pub lives: Duration,
    /// Chats of one account.
    pub chats: usize,
    /// Bytes of one account.
    pub bytes: usize,
}

/// Client ciphertext that devices are about to load, on a Redis.
pub struct SyncShelf {
    link: Link,
    prefix: String,
    limits: ShelfLimits,
    /// Until when the server is left alone.
    resting: Mutex<Option<Instant>>,
    /// What could not be removed yet.
    owed: Mutex<Vec<(String, Option<String>)>>,
}

debug_without_content!(SyncShelf { limits });

impl SyncShelf {
    /// A shelf for the accounts of a tenant. Does not connect yet.
    pub fn open(settings: &RedisSettings, tenant: &TenantId, limits: ShelfLimits) -> Result<Self> {
        let mut prefix = settings.prefix.clone();
        if let RedisNames::Readable { bare_tenant } = &settings.names
            && bare_tenant != tenant
        {
            let tenant = tenant.as_str().replace('%', "%25").replace(':', "%3A");
            prefix.push_str(&format!("tenant:{tenant}:"));
        }
        let link = Link::new(&settings.address, settings.ca.as_deref())?;
        Ok(Self { link, prefix, limits, resting: Mutex::default(), owed: Mutex::default() })
    }

    /// A device of the account is about to load it.
    pub async fn begin(&self, account: &str, device: &str) {
        self.settle().await;
        let index = self.index(account);
        let (mut set, mut expire) = (redis::cmd("HSET"), redis::cmd("PEXPIRE"));
        set.arg(&index).arg(reader(device)).arg(1);
        expire.arg(&index).arg(self.lives());
        self.try_to(async { self.link.all::<u64>(For::Writing, &[set, expire]).await }).await;
    }

    /// Keeps a chat, if a device of the account is about to load it and there is room.
    pub async fn put(&self, account: &str, chat: &str, bytes: &[u8]) {
        let (index, key) = (self.index(account), self.entry(account, chat));
        let call = SHELVE
            .call()
            .key(&index)
            .arg(entry_field(chat))
            .arg(bytes.len().to_string())
            .arg(self.limits.chats.to_string())
            .arg(self.limits.bytes.to_string())
            .arg(self.lives().to_string());
        let putting = async {
            if self.link.call::<u64>(call).await? == 0 {
                return Ok(());
            }
            let (mut set, mut check) = (redis::cmd("SET"), redis::cmd("HEXISTS"));
            set.arg(&key).arg(bytes).arg("PX").arg(self.lives());
            self.link.run::<()>(For::Writing, set).await?;
            check.arg(&index).arg(entry_field(chat));
            // Deleted meanwhile, it is not in the index any more.
            if self.link.run::<u64>(For::Reading, check).await? == 0 {
                self.link.run::<u64>(For::Writing, del(&key)).await?;
            }
            Ok(())
        };
        self.try_to(putting).await;
    }

    /// A chat, if it is here.
    pub async fn get(&self, account: &str, chat: &str) -> Option<Vec<u8>> {
        let mut cmd = redis::cmd("GETRANGE");
        // One byte more than there can be: longer ones are not ours.
        cmd.arg(self.entry(account, chat)).arg(0).arg(self.limits.bytes);
        let bytes: Vec<u8> = self.try_to(self.link.run(For::Reading, cmd)).await?;
        Some(bytes).filter(|bytes| !bytes.is_empty() && bytes.len() <= self.limits.bytes)
    }

    /// The device has loaded everything. When no other one is loading, all that is kept of the account goes.
    pub async fn end(&self, account: &str, device: &str) {
        self.try_to(self.take_down(account, &reader(device))).await;
    }

    /// Removes a chat, or all of an account. If that cannot be done now, it is done later, and what is left ends with its time.
    pub async fn forget(&self, account: &str, chat: Option<&str>) {
        if !self.removed(account, chat).await {
            let mut owed = self.owed.lock();
            if owed.len() < OWED {
                owed.push((account.to_owned(), chat.map(str::to_owned)));
            }
            tracing::warn!(
                "what was read ahead for a device cannot be removed from Redis now; it expires by itself"
            );
        }
    }

    /// Removes what could not be removed before.
    async fn settle(&self) {
        let owed = std::mem::take(&mut *self.owed.lock());
        for (account, chat) in owed {
            if !self.removed(&account, chat.as_deref()).await {
                self.owed.lock().push((account, chat));
            }
        }
    }

    async fn removed(&self, account: &str, chat: Option<&str>) -> bool {
        let removing = async {
            let Some(chat) = chat else { return self.take_down(account, "").await };
            let mut cmd = redis::cmd("HDEL");
            cmd.arg(self.index(account)).arg(entry_field(chat));
            self.link.run::<u64>(For::Writing, cmd).await?;
            self.link.run::<u64>(For::Writing, del(&self.entry(account, chat))).await.map(drop)
        };
        self.try_to(removing).await.is_some()
    }

    async fn take_down(&self, account: &str, reader: &str) -> Result<()> {
        let call = UNSHELVE.call().key(self.index(account)).arg(reader);
        let fields: Vec<String> = self.link.call(call).await?;
        let keys = fields.iter().filter_map(|field| field.strip_prefix(ENTRY));
        let cmds: Vec<Cmd> = keys.map(|chat| del(&self.entry(account, chat))).collect();
        self.link.all::<u64>(For::Writing, &cmds).await.map(drop)
    }

    /// What comes of this, unless the server does not answer in time, or has not answered lately.
    async fn try_to<T>(&self, asking: impl Future<Output = Result<T>>) -> Option<T> {
        if self.resting.lock().is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let asked = timeout(PATIENCE, asking).await;
        if let Ok(Ok(answer)) = asked {
            *self.resting.lock() = None;
            return Some(answer);
        }
        *self.resting.lock() = Some(Instant::now() + REST);
        tracing::debug!("what is read ahead for devices cannot be reached; the store is asked instead");
        None
    }

    fn lives(&self) -> u64 {
        u64::try_from(self.limits.lives.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST)
    }

    fn index(&self, account: &str) -> String {
        format!("{}user:{account}:sync", self.prefix)
    }

    fn entry(&self, account: &str, chat: &str) -> String {
        format!("{}user:{account}:chat:{chat}:messages:sync", self.prefix)
    }
}

fn reader(device: &str) -> String {
    format!("d:{device}")
}

fn entry_field(chat: &str) -> String {
    format!("{ENTRY}{chat}")
}

fn del(key: &str) -> Cmd {
    let mut cmd = redis::cmd("DEL");
    cmd.arg(key);
    cmd
}

const ENTRY: &str = "c:";
/// How long an answer is awaited: a sync waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a server that did not answer is left alone.
const REST: Duration = Duration::from_secs(5);
/// Removals that are remembered.
const OWED: usize = 10_000;
/// The longest lifetime, in milliseconds: a hundred years.
const LONGEST: u64 = 100 * 365 * 86_400_000;

#[cfg(test)]
mod tests {
    use super::super::RedisAddress;
    use super::super::tests::settings;
    use super::*;

    const LIMITS: ShelfLimits = ShelfLimits { lives: Duration::from_secs(60), chats: 2, bytes: 100 };

    fn shelves(limits: ShelfLimits) -> Option<[SyncShelf; 2]> {
        let settings = settings("CONFIDANT_TEST_REDIS")?;
        // Two gateways.
        let open = || SyncShelf::open(&settings, &TenantId::new("default").unwrap(), limits).unwrap();
        Some([open(), open()])
    }

    async fn keys(shelf: &SyncShelf) -> Vec<String> {
        let names = shelf.link.names(&format!("{}*", shelf.prefix), None).await.unwrap();
        let mut names: Vec<String> = names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
        names.iter_mut().for_each(|name| drop(name.drain(..shelf.prefix.len())));
        names.sort();
        names
    }

    #[tokio::test]
    async fn what_one_gateway_keeps_another_has_until_the_last_device_is_done() {
        let Some([one, two]) = shelves(LIMITS) else { return };
        one.put("a", "x", b"bytes").await;
        assert_eq!(one.get("a", "x").await, None, "nobody waits for it");
        one.begin("a", "d1").await;
        two.begin("a", "d2").await;
        one.put("a", "x", b"bytes").await;
        one.put("a", "y", b"more").await;
        assert_eq!(two.get("a", "x").await.as_deref(), Some(&b"bytes"[..]));
        assert_eq!(two.get("b", "x").await, None);
        let all = ["user:a:chat:x:messages:sync", "user:a:chat:y:messages:sync", "user:a:sync"];
        assert_eq!(keys(&one).await, all);
        two.end("a", "d1").await;
        assert_eq!(keys(&one).await, all);
        two.end("a", "d2").await;
        assert_eq!(keys(&one).await, [""; 0]);
    }

    #[tokio::test]
    async fn an_account_has_so_many_chats_and_bytes_and_all_of_them_expire() {
        let Some([one, _]) = shelves(LIMITS) else { return };
        one.begin("a", "d").await;
        one.put("a", "x", &[1; 60]).await;
        one.put("a", "too large", &[1; 41]).await;
        one.put("a", "y", &[1; 40]).await;
        one.put("a", "too many", &[1; 0]).await;
        one.put("a", "x", &[2; 60]).await;
        assert_eq!(one.get("a", "x").await, Some(vec![2; 60]));
        assert_eq!(one.get("a", "y").await, Some(vec![1; 40]));
        assert_eq!(keys(&one).await.len(), 3);
        for key in keys(&one).await {
            let mut cmd = redis::cmd("PTTL");
            cmd.arg(format!("{}{key}", one.prefix));
            let left: i64 = one.link.run(For::Reading, cmd).await.unwrap();
            assert!((1..=60_000).contains(&left), "{key}: {left}");
        }
        // What somebody else put there is as long as it likes.
        let mut cmd = redis::cmd("SET");
        cmd.arg(one.entry("a", "x")).arg(vec![7_u8; 101]);
        one.link.run::<()>(For::Writing, cmd).await.unwrap();
        assert_eq!(one.get("a", "x").await, None);
    }

    #[tokio::test]
    async fn a_deleted_chat_and_an_erased_account_leave_nothing() {
        let Some([one, two]) = shelves(LIMITS) else { return };
        one.begin("a", "d").await;
        one.put("a", "x", b"1").await;
        one.put("a", "y", b"2").await;
        two.forget("a", Some("x")).await;
        assert_eq!(keys(&one).await, ["user:a:chat:y:messages:sync", "user:a:sync"]);
        two.forget("a", None).await;
        assert_eq!(keys(&one).await, [""; 0]);
        one.put("a", "y", b"late").await;
        assert_eq!(keys(&one).await, [""; 0], "nobody waits for it any more");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_as_if_nothing_were_kept() {
        let address = RedisAddress::parse("redis://127.0.0.1:1").unwrap();
        let tenant = TenantId::new("other").unwrap();
        let settings = RedisSettings::new(address, TenantId::new("default").unwrap());
        let shelf = SyncShelf::open(&settings, &tenant, LIMITS).unwrap();
        assert_eq!(shelf.prefix, "tenant:other:");
        shelf.begin("a", "d").await;
        shelf.put("a", "x", b"1").await;
        assert_eq!(shelf.get("a", "x").await, None);
        shelf.end("a", "d").await;
        shelf.forget("a", None).await;
        assert_eq!(shelf.owed.lock().len(), 1);
    }
}
