//! What channels keep beside the log: keyed names for it, and seals that end with the session they belong to.
//!
//! A channel stores an event before any turn knows of it, so the log cannot be its place. What it stores is sealed here
//! instead: content under the session's own data key, so that erasing the session ends every copy of it; what is needed
//! to find the way back (rooms, cursors) under a key of the keyring that rotation covers.

use std::sync::Arc;

use confidant_seal::{Context, Key, Scope, Sealed, Suite, Tag, TenantId, UserId, open, seal};
use futures_util::future::BoxFuture;
use zeroize::Zeroizing;

use crate::engine::Engine;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::Actor;
use crate::ledger::erased;
use crate::ledger::erasures::Asked;
use crate::ledger::session::Session;

/// The names and the key that channels work with.
#[derive(Clone, Debug)]
pub struct ChannelKeys {
    inner: Arc<Inner>,
}

impl Engine {
    /// The names and the key that channels work with.
    #[must_use]
    pub fn channel_keys(&self) -> ChannelKeys {
        ChannelKeys { inner: Arc::clone(self.inner()) }
    }

    /// The session that goes by this tag; `None` if there is none, or none any more.
    pub fn session_by_tag(&self, tag: Tag, actor: Actor) -> BoxFuture<'_, Result<Option<Session>, Error>> {
        Box::pin(async move {
            let keyring = &self.inner().ledger.keyring;
            let Some(row) = keyring.store().get(tag).await? else { return Ok(None) };
            let scope = keyring.scope_of(&row)?;
            Ok(Some(Session::new(Arc::clone(self.inner()), scope, actor)))
        })
    }
}

impl ChannelKeys {
    /// The key for what is about places and connections. Random, sealed under the root, and rotated with it; derive from
    /// it what another store needs.
    #[must_use]
    pub fn key(&self) -> &Key {
        self.inner.ledger.keyring.channel_key()
    }

    /// The name of a session.
    #[must_use]
    pub fn session_tag(&self, scope: &Scope) -> Tag {
        self.inner.ledger.keyring.names(scope).scope
    }

    /// The name of a person: the same in every channel of a tenant.
    #[must_use]
    pub fn person_tag(&self, tenant: &TenantId, user: &UserId) -> Tag {
        self.inner.ledger.keyring.person(tenant, user)
    }
}

impl Session {
    /// Seals something of this session that is kept elsewhere. Erasing the session ends it, wherever it was copied to.
    ///
    /// `object` names the thing, and it opens under that name only.
    pub fn seal_beside<'a>(
        &'a self,
        object: &'a str,
        data: &'a [u8],
    ) -> BoxFuture<'a, Result<Sealed, Error>> {
        Box::pin(async move {
            let (key, _) = erased::data_key(self, &mut Asked::now(&self.inner.ledger, None)).await?;
            Ok(seal(&key, Suite::ChaCha20Poly1305, &context(&key.kid().to_string(), object), 1, data))
        })
    }

    /// Opens it again; `None` if its key is gone, or it is not what was sealed under this name.
    pub fn open_beside<'a>(
        &'a self,
        object: &'a str,
        sealed: &'a Sealed,
    ) -> BoxFuture<'a, Result<Option<Zeroizing<Vec<u8>>>, Error>> {
        Box::pin(async move {
            let Some(found) = self.inner.ledger.keyring.data_key(&self.scope, &self.names).await? else {
                return Ok(None);
            };
            let kid = found.key.kid().to_string();
            Ok(open(&found.key, &context(&kid, object), sealed).ok().map(|opened| opened.data))
        })
    }
}

fn context<'a>(container: &'a str, object: &'a str) -> Context<'a> {
    Context { purpose: "beside", owner: "", container, object, field: "" }
}
