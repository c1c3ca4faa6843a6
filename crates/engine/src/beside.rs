//! What channels keep beside the log: keyed names for it, and seals that end with the session they belong to.
//!
//! A channel stores an event before any turn knows of it, so the log cannot be its place. What it stores is sealed here
//! instead: content under the session's own data key, so that erasing the session ends every copy of it; what is needed
//! to find the way back (rooms, cursors) under a key of the keyring that rotation covers.

use std::sync::Arc;

use confidant_seal::{Context, Key, Scope, Sealed, Suite, Tag, TenantId, UserId, open, seal};
use zeroize::Zeroizing;

use crate::audit::Actor;
use crate::engine::{Engine, Inner};
use crate::error::Error;
use crate::session::Session;

/// The names and the key that channels work with.
#[derive(Clone, Debug)]
pub struct Beside {
    inner: Arc<Inner>,
}

impl Engine {
    /// The names and the key that channels work with.
    #[must_use]
    pub fn beside(&self) -> Beside {
        Beside { inner: Arc::clone(self.inner()) }
    }

    /// The session that goes by this tag; `None` if there is none, or none any more.
    pub async fn session_by_tag(&self, tag: Tag, actor: Actor) -> Result<Option<Session>, Error> {
        let keyring = &self.inner().keyring;
        let Some(row) = keyring.store().get(tag).await? else { return Ok(None) };
        let scope = keyring.scope_of(&row)?;
        Ok(Some(Session::new(Arc::clone(self.inner()), scope, actor)))
    }
}

impl Beside {
    /// The key for what is about places and connections. Random, sealed under the root, and rotated with it; derive from
    /// it what another store needs.
    #[must_use]
    pub fn key(&self) -> &Key {
        self.inner.keyring.channel_key()
    }

    /// The name of a session.
    #[must_use]
    pub fn session_tag(&self, scope: &Scope) -> Tag {
        self.inner.keyring.names(scope).scope
    }

    /// The name of a person: the same in every channel of a tenant.
    #[must_use]
    pub fn person_tag(&self, tenant: &TenantId, user: &UserId) -> Tag {
        self.inner.keyring.person(tenant, user)
    }
}

impl Session {
    /// Seals something of this session that is kept elsewhere. Erasing the session ends it, wherever it was copied to.
    ///
    /// `object` names the thing, and it opens under that name only.
    pub async fn seal_beside(&self, object: &str, data: &[u8]) -> Result<Sealed, Error> {
        let inner = &self.inner;
        let expires_at = inner.settings.lifetimes.expiry(&self.scope, inner.now());
        let key = inner.keyring.data_key_or_new(&self.scope, &self.names, expires_at).await?.key;
        Ok(seal(&key, Suite::ChaCha20Poly1305, &context(&key.kid().to_string(), object), 1, data))
    }

    /// Opens it again; `None` if its key is gone, or it is not what was sealed under this name.
    pub async fn open_beside(
        &self,
        object: &str,
        sealed: &Sealed,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let Some(found) = self.inner.keyring.data_key(&self.scope, &self.names).await? else {
            return Ok(None);
        };
        let kid = found.key.kid().to_string();
        Ok(open(&found.key, &context(&kid, object), sealed).ok().map(|opened| opened.data))
    }
}

fn context<'a>(container: &'a str, object: &'a str) -> Context<'a> {
    Context { purpose: "beside", owner: "", container, object, field: "" }
}
