//! How long a context is kept: that of a session for as long as the session, one that people share by a time of its own.
//!
//! A session's context ends with it, when it is swept or erased. Beside that it has a lifetime in the keyring and in
//! a store that ends things by itself, so that nothing stays where nobody sweeps. What is easy to get wrong: a turn that
//! names nothing does not write the context, and still it must not end before the session; so it is given twice the time,
//! and more when the first half is over. A conversation that an application named is the application's, not a session's: it
//! lasts for `delete_after` since it was last used, and so does everybody's part in it since they last spoke.

use std::sync::Arc;

use confidant_seal::{Scope, Tag};

use super::conversation::{Conversation, is_conversation};
use super::keep;
use super::members::Seat;
use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::inner::Inner;
use crate::ledger::keyring::Keyring;
use crate::ledger::session::Session;
use crate::running::Running;
use crate::store::contexts::{CapturesOf, ConversationName};
use crate::store::{Anchor, DataKeys, Logs, Store};

/// When the context of a session's conversation is over, if nothing more is said; not earlier than is known.
pub(super) fn of(session: &Session, seat: &Seat, known: Option<Millis>) -> Option<Millis> {
    let inner = &session.inner;
    if seat.part.is_some() {
        let until = kept_until(inner)?;
        return Some(known.map_or(until, |known| known.max(until)));
    }
    let now = inner.ledger.now();
    let ends = inner.ledger.expiry(&session.scope, now)?;
    let twice = Millis(ends.0.saturating_add(ends.0.saturating_sub(now.0)));
    Some(known.map_or(twice, |known| known.max(twice)))
}

/// When a conversation that is used now, or a part in one, is over if nothing more is said.
pub(super) fn kept_until(inner: &Inner) -> Option<Millis> {
    let settings = inner.ledger.concepts.settings();
    Some(inner.ledger.now().plus(settings?.delete_after?))
}

/// Whether something lasts long enough, so that not every turn writes how long.
fn is_enough(inner: &Inner, have: Option<Millis>) -> bool {
    match (have, kept_until(inner)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(have), Some(until)) => have.0 >= until.0 - (until.0 - inner.ledger.now().0) / 8,
    }
}

/// Extends the lifetime of a session's part in a conversation, if it is time to.
pub(super) fn prolong_part(inner: &Inner, seat: &Seat) {
    if let Some((part, row)) = &seat.part
        && !is_enough(inner, row.expires_at)
    {
        let (scope, kid, version) = (part.names.scope, row.kid, row.anchor);
        inner.ledger.anchors.mark(Anchor { scope, kid, version, expires_at: kept_until(inner) });
    }
}

/// Extends the lifetime of a context in use, if it is time to; `last` is how far the keyring knows it.
pub(super) fn prolong(session: &Session, seat: &Seat, last: Anchor) {
    let inner = &session.inner;
    let name = seat.conversation.name;
    let is_enough = if seat.part.is_some() {
        is_enough(inner, last.expires_at)
    } else {
        match (last.expires_at, inner.ledger.expiry(&session.scope, inner.ledger.now())) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(have), Some(needed)) => have >= needed,
        }
    };
    if is_enough {
        return;
    }
    let anchor = Anchor { expires_at: of(session, seat, last.expires_at), ..last };
    let engine = Arc::clone(inner);
    Running::aside(inner, async move {
        match engine.ledger.store.prolong_context(name, anchor.expires_at).await {
            Ok(()) => engine.ledger.anchors.mark(anchor),
            Err(error) => {
                tracing::warn!(error = %error, "a context's lifetime could not be extended; the next turn tries again")
            }
        }
    });
}

/// Keeps the context of a session that waits for a decision until the wait is over.
pub(crate) fn wait(session: &Session, until: Millis) {
    if session.inner.ledger.concepts.shared().is_none() {
        return;
    }
    let session = session.clone();
    Running::aside(&Arc::clone(&session.inner), async move {
        if let Err(error) = keep_until(&session, until).await {
            tracing::warn!(
                error = error.code(),
                "a context's lifetime could not be extended; it may expire before the approval that its session waits for"
            );
        }
    });
}

async fn keep_until(session: &Session, until: Millis) -> Result<(), Error> {
    let inner = &session.inner;
    let name = Seat::of(session).await?.conversation.name;
    let Some(row) = inner.ledger.keyring.store().get(name.conversation).await? else { return Ok(()) };
    if row.expires_at.is_none_or(|at| at >= until) {
        return Ok(());
    }
    inner.ledger.store.prolong_context(name, Some(until)).await?;
    let anchor =
        Anchor { scope: name.conversation, kid: row.kid, version: row.anchor, expires_at: Some(until) };
    Ok(inner.ledger.keyring.store().anchor(&[anchor], &[]).await?)
}

/// Ends a conversation's context whose lifetime is over, unless somebody who had a part in it is still there, or one such
/// part. Says whether it is any of these at all.
pub(crate) async fn over(inner: &Arc<Inner>, tag: Tag) -> Result<bool, Error> {
    // Ended a moment ago with the conversation that it was of: nothing is left to end.
    let Some(row) = inner.ledger.keyring.store().get(tag).await? else { return Ok(true) };
    let Ok(scope) = inner.ledger.keyring.scope_of(&row) else { return Ok(false) };
    if let Some((conversation, part)) = Conversation::of_part(&inner.ledger.keyring, &scope) {
        keep::forget_part(inner, &conversation, &part).await?;
        return Ok(true);
    }
    if !is_conversation(&scope) {
        return Ok(false);
    }
    let name = Conversation::at(&inner.ledger.keyring, scope).name;
    let until =
        Until::of_context(&inner.ledger.keyring, &*inner.ledger.store, inner.ledger.now(), name).await?;
    let expires_at = match until {
        Until::Over => {
            keep::end(inner, name).await?;
            return Ok(true);
        }
        Until::At(at) => Some(at),
        Until::Ever => None,
    };
    inner.ledger.store.prolong_context(name, expires_at).await?;
    let anchor = Anchor { scope: tag, kid: row.kid, version: row.anchor, expires_at };
    inner.ledger.keyring.store().anchor(&[anchor], &[]).await?;
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
    /// How long a context is there: as long as any session that had a part in it, or any part that has a time of its own.
    pub(crate) async fn of_context(
        keyring: &Keyring,
        store: &dyn Store,
        now: Millis,
        name: ConversationName,
    ) -> Result<Self, StoreError> {
        let (keys, mut until) = (keyring.store(), Self::Over);
        let conversation = match keys.get(name.conversation).await? {
            Some(row) => keyring.scope_of(&row).ok().map(|scope| Conversation::at(keyring, scope)),
            None => None,
        };
        for capture in store.captures(CapturesOf::Conversation(name)).await? {
            let part = conversation.as_ref().map(|all| all.part(keyring, capture.scope, capture.person));
            let part = match part {
                Some(part) => keys.get(part.names.scope).await?,
                None => None,
            };
            until = until.max(match part.map(|row| row.expires_at) {
                Some(None) => Self::Ever,
                Some(Some(at)) if at > now => Self::At(at),
                // What a session has in a conversation that people share does not last by the session.
                Some(Some(_)) => Self::Over,
                None => Self::of_session(keys, store, now, capture.scope).await?,
            });
        }
        Ok(until)
    }

    /// How long a session is there.
    pub(crate) async fn of_session(
        keys: &dyn DataKeys,
        store: &dyn Logs,
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
    if !inner.ledger.store.may_lose_contexts() {
        return Ok(None);
    }
    let rows = inner.ledger.keyring.store().list(after, LOOKED_AT_ONCE).await?;
    for row in &rows {
        if let Some(scope) =
            inner.ledger.keyring.scope_of(row).ok().filter(|scope: &Scope| is_conversation(scope))
        {
            inner.ledger.store.find_again(Conversation::at(&inner.ledger.keyring, scope).name).await?;
        }
    }
    Ok(rows.last().map(|row| row.scope).filter(|_| rows.len() == LOOKED_AT_ONCE))
}

const LOOKED_AT_ONCE: usize = 256;
