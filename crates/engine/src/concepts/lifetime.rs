//! How long a context is kept: for as long as any session that had a part in it.
//!
//! It ends with the last of them, when that is swept or erased. Beside that it has a lifetime of its own, in the keyring and in
//! a store that ends things by itself, so that nothing stays where nobody sweeps. What is easy to get wrong: a turn that
//! names nothing does not write the context, and still it must not end before the session; so it is given twice the time,
//! and more when the first half is over.

use std::sync::Arc;

use confidant_seal::{Scope, Tag};

use super::conversation::{Conversation, is_conversation};
use super::keep;
use crate::clock::Millis;
use crate::engine::Inner;
use crate::error::{Error, StoreError};
use crate::running::Running;
use crate::session::Session;
use crate::store::contexts::{CapturesOf, ConversationName};
use crate::store::{Anchor, KeyStore, Store};

/// When the context of a session's conversation is over, if nothing more is said; not earlier than is known.
pub(super) fn of(session: &Session, known: Option<Millis>) -> Option<Millis> {
    let now = session.inner.now();
    let ends = session.inner.settings.lifetimes.expiry(&session.scope, now)?;
    let twice = Millis(ends.0.saturating_add(ends.0.saturating_sub(now.0)));
    Some(known.map_or(twice, |known| known.max(twice)))
}

/// Keeps a context that is used for longer, if it is time to; `last` is how far the keyring knows it.
pub(super) fn prolong(session: &Session, name: ConversationName, last: Anchor) {
    let inner = &session.inner;
    let needed = inner.settings.lifetimes.expiry(&session.scope, inner.now());
    let is_enough = match (last.expires_at, needed) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(have), Some(needed)) => have >= needed,
    };
    if is_enough {
        return;
    }
    let anchor = Anchor { expires_at: of(session, last.expires_at), ..last };
    let engine = Arc::clone(inner);
    Running::aside(inner, async move {
        match engine.store.prolong_context(name, anchor.expires_at).await {
            Ok(()) => engine.anchors.mark(anchor),
            Err(error) => tracing::warn!(error = %error, "a context is kept for longer by the next turn"),
        }
    });
}

/// Keeps the context of a session that waits for a decision for as long as the session waits.
pub(crate) fn wait(session: &Session, until: Millis) {
    if session.inner.concepts.shared().is_none() {
        return;
    }
    let session = session.clone();
    Running::aside(&Arc::clone(&session.inner), async move {
        if let Err(error) = keep_until(&session, until).await {
            tracing::warn!(error = error.code(), "a context may end before what its session waits for");
        }
    });
}

async fn keep_until(session: &Session, until: Millis) -> Result<(), Error> {
    let inner = &session.inner;
    let name = Conversation::of(session).name;
    let Some(row) = inner.keyring.store().get(name.conversation).await? else { return Ok(()) };
    if row.expires_at.is_none_or(|at| at >= until) {
        return Ok(());
    }
    inner.store.prolong_context(name, Some(until)).await?;
    let anchor =
        Anchor { scope: name.conversation, kid: row.kid, version: row.anchor, expires_at: Some(until) };
    Ok(inner.keyring.store().anchor(&[anchor], &[]).await?)
}

/// Ends a conversation's context whose lifetime is over, unless a session that had a part in it is still there. Says whether
/// it is a conversation at all.
pub(crate) async fn over(inner: &Arc<Inner>, tag: Tag) -> Result<bool, Error> {
    let Some(row) = inner.keyring.store().get(tag).await? else { return Ok(false) };
    let Some(scope) = inner.keyring.scope_of(&row).ok().filter(is_conversation) else { return Ok(false) };
    let name = Conversation::at(inner, scope).name;
    let until = Until::of_context(inner.keyring.store(), &*inner.store, inner.now(), name).await?;
    let expires_at = match until {
        Until::Over => {
            keep::end(inner, name).await?;
            return Ok(true);
        }
        Until::At(at) => Some(at),
        Until::Ever => None,
    };
    inner.store.prolong_context(name, expires_at).await?;
    let anchor = Anchor { scope: tag, kid: row.kid, version: row.anchor, expires_at };
    inner.keyring.store().anchor(&[anchor], &[]).await?;
    Ok(true)
}

/// How long something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Until {
    Over,
    At(Millis),
    Ever,
}

impl Until {
    /// How long a context is there: as long as any session that had a part in it.
    pub(crate) async fn of_context(
        keys: &dyn KeyStore,
        store: &dyn Store,
        now: Millis,
        name: ConversationName,
    ) -> Result<Self, StoreError> {
        let mut until = Self::Over;
        for capture in store.captures(CapturesOf::Conversation(name)).await? {
            until = until.max(Self::of_session(keys, store, now, capture.scope).await?);
        }
        Ok(until)
    }

    /// How long a session is there.
    pub(crate) async fn of_session(
        keys: &dyn KeyStore,
        store: &dyn Store,
        now: Millis,
        session: Tag,
    ) -> Result<Self, StoreError> {
        let Some(row) = keys.get(session).await? else { return Ok(Self::Over) };
        let mut expires_at = row.expires_at;
        if expires_at.is_some_and(|at| at <= now) {
            // A turn of the last moment is not in the keyring yet.
            let Some(log) = store.load(session, None).await? else { return Ok(Self::Over) };
            expires_at = log.expires_at;
        }
        Ok(match expires_at {
            None => Self::Ever,
            Some(at) if at <= now => Self::Over,
            Some(at) => Self::At(at),
        })
    }
}

/// Puts right what finds contexts, in a store that may have lost it: those of some keys after `after`. Says where to go on.
pub(crate) async fn find_again(inner: &Inner, after: Option<Tag>) -> Result<Option<Tag>, Error> {
    if !inner.store.may_lose_contexts() {
        return Ok(None);
    }
    let rows = inner.keyring.store().list(after, LOOKED_AT_ONCE).await?;
    for row in &rows {
        if let Some(scope) = inner.keyring.scope_of(row).ok().filter(|scope: &Scope| is_conversation(scope)) {
            inner.store.find_again(Conversation::at(inner, scope).name).await?;
        }
    }
    Ok(rows.last().map(|row| row.scope).filter(|_| rows.len() == LOOKED_AT_ONCE))
}

const LOOKED_AT_ONCE: usize = 256;
