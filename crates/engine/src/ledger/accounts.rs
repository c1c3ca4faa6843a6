//! Keys of accounts whose chats only their owner can open.
//!
//! What the server keeps of such an account is sealed by its owner. The server seals it once more, under a key of the account
//! or of one of its chats: without the keyring, a stolen database is no basis for guessing passwords, and an erasure destroys
//! a key, whatever copies there are. These keys have scopes of their own (`account_scope`). The anchor of each is the highest
//! revision that was seen of the one row which it protects from being put back: an account's record, or what the server
//! remembers of a chat.
//!
//! Easy to get wrong: a lifetime. These keys have none, whatever the settings say of sessions.

use std::sync::Arc;

use confidant_seal::{Key, Tag, TenantId};
use futures_util::future::BoxFuture;

use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::account_scope;
use crate::ledger::audit::Actor;
use crate::ledger::epoch::Epoch;
use crate::ledger::erased;
use crate::ledger::erasures::Asked;
use crate::ledger::keyring::DataKey;
use crate::ledger::session::Session;
use crate::store::Anchor;

/// The keys of a tenant's accounts.
#[derive(Clone, Debug)]
pub struct AccountKeys {
    inner: Arc<Inner>,
    tenant: TenantId,
}

impl AccountKeys {
    pub(crate) fn new(inner: Arc<Inner>, tenant: TenantId) -> Self {
        Self { inner, tenant }
    }

    /// Whose accounts they are.
    #[must_use]
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// A name for something that tells nothing of it: a login, a credential, a network. The same for ever, on every gateway.
    #[must_use]
    pub fn tag(&self, label: &str, bytes: &[u8]) -> Tag {
        self.of_tenant().tag(label, bytes)
    }

    /// 32 bytes that only the server can make of these.
    #[must_use]
    pub fn mac(&self, label: &str, bytes: &[u8]) -> [u8; 32] {
        self.of_tenant().mac(label, bytes)
    }

    /// The key of an account, or of one of its chats; nothing if there is none. One that came back after an erasure is refused.
    pub fn key<'a>(
        &'a self,
        account: &'a str,
        chat: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Key>, Error>> {
        Box::pin(async move {
            let session = self.session(account, chat)?;
            Ok(self.found(&session).await?.map(|found| found.key))
        })
    }

    /// The same, made if there is none.
    pub fn key_or_new<'a>(
        &'a self,
        account: &'a str,
        chat: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Key, Error>> {
        Box::pin(async move {
            let session = self.session(account, chat)?;
            let (key, _) = erased::data_key(&session, &mut Asked::now(&self.inner.ledger, None)).await?;
            Ok(key)
        })
    }

    /// The highest revision of an account's record that was seen; 0 if none was.
    pub fn anchor<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<u64, Error>> {
        self.anchor_of(account, None)
    }

    /// Notes that a revision was seen. It never goes back.
    pub fn raise<'a>(&'a self, account: &'a str, rev: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.raise_of(account, None, rev)
    }

    /// Takes this revision for the newest, though a newer one was seen: after restoring a backup on purpose.
    pub fn accept<'a>(&'a self, account: &'a str, rev: u64) -> BoxFuture<'a, Result<(), Error>> {
        self.accept_of(account, None, rev)
    }

    /// [`Self::anchor`] of an account, or of what is remembered of one of its chats.
    pub fn anchor_of<'a>(
        &'a self,
        account: &'a str,
        chat: Option<&'a str>,
    ) -> BoxFuture<'a, Result<u64, Error>> {
        Box::pin(async move {
            let session = self.session(account, chat)?;
            Ok(self.found(&session).await?.map_or(0, |found| found.anchor))
        })
    }

    /// [`Self::raise`] of an account, or of what is remembered of one of its chats.
    pub fn raise_of<'a>(
        &'a self,
        account: &'a str,
        chat: Option<&'a str>,
        rev: u64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let anchor = self.anchor_at(account, chat, rev).await?;
            Ok(self.inner.ledger.keyring.store().anchor(&[anchor], &[]).await?)
        })
    }

    /// [`Self::accept`] of an account, or of what is remembered of one of its chats.
    pub fn accept_of<'a>(
        &'a self,
        account: &'a str,
        chat: Option<&'a str>,
        rev: u64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let anchor = self.anchor_at(account, chat, rev).await?;
            let store = self.inner.ledger.keyring.store();
            // Those of the audit log stay as they are.
            Ok(store.reset_anchors(&[anchor], &store.lane_anchors().await?).await?)
        })
    }

    /// Whether an account was erased. It stays so, for as long as this keyring is kept.
    pub fn was_erased<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let session = self.session(account, None)?;
            Ok(self.inner.ledger.last_erasure(&session.names).await? > Epoch::default())
        })
    }

    /// Removes the key of an account that was not made after all: nothing that it sealed was kept.
    pub fn discard<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let session = self.session(account, None)?;
            // Not scrubbed: that writes all keys anew, which strangers who fail to register must not be able to ask for.
            self.inner.ledger.keyring.store().destroy(&[session.names.scope]).await?;
            Ok(())
        })
    }

    /// Destroys the keys of chats, beyond recovery. Those of a whole account go with its person.
    pub fn destroy_chats<'a>(
        &'a self,
        account: &'a str,
        chats: &'a [&'a str],
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let sessions: Result<Vec<_>, _> =
                chats.iter().map(|chat| self.session(account, Some(chat))).collect();
            let tags: Vec<Tag> = sessions?.iter().map(|session| session.names.scope).collect();
            self.inner.ledger.keyring.destroy(&tags).await?;
            Ok(())
        })
    }

    async fn anchor_at(&self, account: &str, chat: Option<&str>, version: u64) -> Result<Anchor, Error> {
        let session = self.session(account, chat)?;
        let Some(found) = self.found(&session).await? else { return Err(Tampering::KeyGone.into()) };
        Ok(Anchor { scope: session.names.scope, kid: found.key.kid(), version, expires_at: None })
    }

    async fn found(&self, session: &Session) -> Result<Option<DataKey>, Error> {
        let ledger = &self.inner.ledger;
        let Some(found) = ledger.keyring.data_key(&session.scope, &session.names).await? else {
            return Ok(None);
        };
        if found.born < ledger.last_erasure(&session.names).await? {
            return Err(Tampering::PutBack.into());
        }
        Ok(Some(found))
    }

    fn session(&self, account: &str, chat: Option<&str>) -> Result<Session, Error> {
        let scope = account_scope::scope(&self.tenant, account, chat)?;
        Ok(Session::new(Arc::clone(&self.inner), scope, Actor::system()))
    }

    /// Two tenants may have people with one login.
    fn of_tenant(&self) -> Key {
        let tenant = self.inner.ledger.keyring.tenant(&self.tenant);
        self.inner.ledger.keyring.login_key().derive(&format!("tenant {tenant}"))
    }
}
