//! What a device is about to load, read ahead: the envelopes of an account's newest chats, as people sealed them.
//!
//! ```text
//! login ─▶ warm: the newest chats' envelopes ─▶ cache ─▶ parts of the sync      dropped when the device's last phase was sent
//! ```
//!
//! A cache may be old, or somebody may have written into it: every envelope is held against the hash that the store has of it,
//! and what does not match is read from the store. So it is never asked whether it is right, only whether it is there.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, DeviceId, ItemId};
use confidant_seal::Sealed;
use parking_lot::Mutex;

use super::Inner;
use super::refusals::Answer;
use crate::store::{Have, Millis, Phase};

/// Envelopes of a chat, by item.
pub type Envelopes = Vec<(ItemId, Sealed)>;

/// Where what is read ahead is kept, for a while. Whatever fails is as if it were not there.
#[async_trait]
pub trait SyncCache: Send + Sync + std::fmt::Debug {
    /// A device of the account is about to load it.
    async fn begin(&self, account: &AccountId, device: &DeviceId, now: Millis);
    /// Keeps the envelopes of a chat.
    async fn put(&self, account: &AccountId, chat: &ChatId, envelopes: Envelopes, now: Millis);
    /// What is kept of a chat; nothing if nothing is.
    async fn get(&self, account: &AccountId, chat: &ChatId, now: Millis) -> Envelopes;
    /// The device has loaded everything. When no other one is loading, all that is kept of the account goes.
    async fn end(&self, account: &AccountId, device: &DeviceId);
    /// The account is gone, or a chat of it: nothing is kept of it any more.
    async fn forget(&self, account: &AccountId, chat: Option<&ChatId>);
}

/// In this process.
#[derive(Debug)]
pub struct MemoryCache {
    lives: Duration,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    accounts: HashMap<AccountId, Account>,
    bytes: usize,
}

#[derive(Debug)]
struct Account {
    until: Millis,
    loading: HashSet<DeviceId>,
    chats: HashMap<ChatId, Envelopes>,
    bytes: usize,
}

impl Kept {
    fn expire(&mut self, now: Millis) {
        self.accounts.retain(|_, account| account.until > now);
        self.bytes = self.accounts.values().map(|account| account.bytes).sum();
    }

    fn remove(&mut self, account: &AccountId) {
        if let Some(account) = self.accounts.remove(account) {
            self.bytes = self.bytes.saturating_sub(account.bytes);
        }
    }
}

impl MemoryCache {
    /// Keeps what it is given for so long.
    #[must_use]
    pub fn new(lives: Duration) -> Self {
        Self { lives, kept: Mutex::default() }
    }
}

#[async_trait]
impl SyncCache for MemoryCache {
    async fn begin(&self, account: &AccountId, device: &DeviceId, now: Millis) {
        let mut kept = self.kept.lock();
        kept.expire(now);
        let until = now.plus(self.lives);
        let empty = || Account { until, loading: HashSet::new(), chats: HashMap::new(), bytes: 0 };
        let account = kept.accounts.entry(account.clone()).or_insert_with(empty);
        account.until = until;
        account.loading.insert(device.clone());
    }

    async fn put(&self, account: &AccountId, chat: &ChatId, envelopes: Envelopes, now: Millis) {
        let mut kept = self.kept.lock();
        kept.expire(now);
        let size: usize = envelopes.iter().map(|(_, envelope)| envelope.as_bytes().len() + ITEM).sum();
        let total = kept.bytes;
        // Only for somebody who is loading it, and only as much as there is room for.
        let Some(account) = kept.accounts.get_mut(account) else { return };
        if account.bytes + size > OF_ONE || total + size > OF_ALL || account.chats.contains_key(chat) {
            return;
        }
        account.bytes += size;
        account.chats.insert(chat.clone(), envelopes);
        kept.bytes += size;
    }

    async fn get(&self, account: &AccountId, chat: &ChatId, now: Millis) -> Envelopes {
        let kept = self.kept.lock();
        let account = kept.accounts.get(account).filter(|account| account.until > now);
        account.and_then(|account| account.chats.get(chat)).cloned().unwrap_or_default()
    }

    async fn end(&self, account: &AccountId, device: &DeviceId) {
        let mut kept = self.kept.lock();
        let Some(one) = kept.accounts.get_mut(account) else { return };
        one.loading.remove(device);
        if one.loading.is_empty() {
            kept.remove(account);
        }
    }

    async fn forget(&self, account: &AccountId, chat: Option<&ChatId>) {
        let mut kept = self.kept.lock();
        match chat {
            None => kept.remove(account),
            Some(chat) => {
                if let Some(account) = kept.accounts.get_mut(account) {
                    account.chats.remove(chat);
                }
            }
        }
    }
}

impl super::Service {
    /// Reads ahead what a device that has just logged in will ask for.
    pub(crate) fn warm(&self, account: &AccountId, device: &DeviceId) {
        if self.inner.hooks.cache.is_none() || self.inner.settings.read_ahead == 0 {
            return;
        }
        let (service, account, device) = (self.downgrade(), account.clone(), device.clone());
        tokio::spawn(async move {
            let Some(service) = service.upgrade() else { return };
            if let Err(refused) = service.inner.read_ahead(&account, &device).await {
                tracing::debug!(reason = refused.error.name(), "chats: nothing was read ahead for a device");
            }
        });
    }
}

impl Inner {
    async fn read_ahead(&self, account: &AccountId, device: &DeviceId) -> Answer<()> {
        let Some(cache) = &self.hooks.cache else { return Ok(()) };
        cache.begin(account, device, self.now()).await;
        let mut lines = self.store.lines(account, Phase::LastOpened).await?;
        for phase in [Phase::Recent, Phase::Rest] {
            lines.extend(self.store.lines(account, phase).await?);
        }
        let mut seen = HashSet::new();
        lines.retain(|line| seen.insert(line.chat.clone()));
        for line in lines.into_iter().take(self.settings.read_ahead) {
            let changed = self.store.chat(account, &line.chat, Have::default()).await?.changed;
            let items = changed.into_iter().map(|line| line.item);
            let wanted: Vec<ItemId> = items.filter(|item| !matches!(item, ItemId::Embed(_))).collect();
            let rows = self.store.items(account, &line.chat, wanted, OF_ONE).await?;
            let envelopes = rows.into_iter().map(|row| (row.item, row.envelope)).collect();
            cache.put(account, &line.chat, envelopes, self.now()).await;
        }
        Ok(())
    }

    /// What was read ahead of a chat.
    pub(crate) async fn ahead(&self, account: &AccountId, chat: &ChatId) -> HashMap<ItemId, Sealed> {
        match &self.hooks.cache {
            Some(cache) => cache.get(account, chat, self.now()).await.into_iter().collect(),
            None => HashMap::new(),
        }
    }

    /// The device has everything.
    pub(crate) async fn loaded(&self, account: &AccountId, device: &DeviceId) {
        if let Some(cache) = &self.hooks.cache {
            cache.end(account, device).await;
        }
    }

    /// Nothing is kept of it any more.
    pub(crate) async fn forget_ahead(&self, account: &AccountId, chat: Option<&ChatId>) {
        if let Some(cache) = &self.hooks.cache {
            cache.forget(account, chat).await;
        }
    }
}

/// What an item takes beside its envelope, about.
const ITEM: usize = 100;
/// Bytes of one account, and of all.
const OF_ONE: usize = 16 << 20;
const OF_ALL: usize = 128 << 20;
