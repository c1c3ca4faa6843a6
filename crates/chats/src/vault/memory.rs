//! A vault in memory, for tests: gone with the process.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use confidant_display::debug_without_content;
use confidant_seal::{Key, Tag};
use parking_lot::Mutex;

use super::{Vault, VaultError};

/// Keys in memory.
pub struct MemoryVault {
    logins: Key,
    kept: Mutex<Kept>,
}

#[derive(Clone, Default)]
struct Kept {
    keys: HashMap<(AccountId, Option<ChatId>), Key>,
    anchors: HashMap<(AccountId, Option<ChatId>), u32>,
    destroyed: HashSet<AccountId>,
    is_down: bool,
}

debug_without_content!(MemoryVault(***));

impl MemoryVault {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self { logins: Key::random(), kept: Mutex::default() }
    }

    /// The same keys once more, as a backup has them.
    #[must_use]
    pub fn backup(&self) -> Self {
        Self { logins: self.logins.clone(), kept: Mutex::new(self.kept.lock().clone()) }
    }

    /// How many keys there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kept.lock().keys.len()
    }

    /// Puts an account's key there, as if it had never gone.
    pub fn put(&self, account: &AccountId, key: Key) {
        self.kept.lock().keys.insert((account.clone(), None), key);
    }

    /// Loses the key of an account or of one of its chats: nobody destroyed it.
    pub fn lose(&self, account: &AccountId, chat: Option<&ChatId>) {
        let mut kept = self.kept.lock();
        let which = (account.clone(), chat.cloned());
        kept.keys.remove(&which);
        kept.anchors.remove(&which);
    }

    /// From now on nothing can be asked (`true`), or everything again.
    pub fn set_down(&self, is_down: bool) {
        self.kept.lock().is_down = is_down;
    }

    fn up<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> Result<T, VaultError> {
        let mut kept = self.kept.lock();
        if kept.is_down { Err(VaultError("it is down".to_owned())) } else { Ok(work(&mut kept)) }
    }
}

impl Default for MemoryVault {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Vault for MemoryVault {
    fn tag(&self, label: &str, bytes: &[u8]) -> Tag {
        self.logins.tag(label, bytes)
    }

    async fn key(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Option<Key>, VaultError> {
        self.up(|kept| kept.keys.get(&(account.clone(), chat.cloned())).cloned())
    }

    async fn key_or_new(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Key, VaultError> {
        self.up(|kept| kept.keys.entry((account.clone(), chat.cloned())).or_insert_with(Key::random).clone())
    }

    async fn anchor(&self, account: &AccountId) -> Result<u32, VaultError> {
        self.up(|kept| kept.anchors.get(&(account.clone(), None)).copied().unwrap_or(0))
    }

    async fn raise(&self, account: &AccountId, rev: u32) -> Result<(), VaultError> {
        self.up(|kept| {
            let anchor = kept.anchors.entry((account.clone(), None)).or_default();
            *anchor = rev.max(*anchor);
        })
    }

    async fn accept(&self, account: &AccountId, rev: u32) -> Result<(), VaultError> {
        self.up(|kept| {
            kept.anchors.insert((account.clone(), None), rev);
        })
    }

    async fn chat_anchor(&self, account: &AccountId, chat: &ChatId) -> Result<u32, VaultError> {
        let whose = (account.clone(), Some(chat.clone()));
        self.up(|kept| kept.anchors.get(&whose).copied().unwrap_or(0))
    }

    async fn raise_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError> {
        self.up(|kept| {
            let anchor = kept.anchors.entry((account.clone(), Some(chat.clone()))).or_default();
            *anchor = rev.max(*anchor);
        })
    }

    async fn accept_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError> {
        self.up(|kept| {
            kept.anchors.insert((account.clone(), Some(chat.clone())), rev);
        })
    }

    async fn was_destroyed(&self, account: &AccountId) -> Result<bool, VaultError> {
        self.up(|kept| kept.destroyed.contains(account))
    }

    async fn discard(&self, account: &AccountId) -> Result<(), VaultError> {
        self.up(|kept| {
            kept.keys.remove(&(account.clone(), None));
            kept.anchors.remove(&(account.clone(), None));
        })
    }

    async fn destroy_chats(&self, account: &AccountId, chats: &[ChatId]) -> Result<(), VaultError> {
        self.up(|kept| {
            for chat in chats {
                let whose = (account.clone(), Some(chat.clone()));
                kept.keys.remove(&whose);
                kept.anchors.remove(&whose);
            }
        })
    }

    async fn destroy_account(&self, account: &AccountId) -> Result<Option<String>, VaultError> {
        self.up(|kept| {
            kept.keys.retain(|(whose, _), _| whose != account);
            kept.anchors.retain(|(whose, _), _| whose != account);
            kept.destroyed.insert(account.clone());
            None
        })
    }
}
