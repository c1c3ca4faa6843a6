//! How a context is kept: sealed under a key of its own, merged atomically, forgotten with its sessions.
//!
//! A conversation has a data key in the keyring like a session, so that rotation covers it and destroying it ends every
//! copy. What is easy to get wrong: a merge must start from what is stored now, never from what a turn loaded minutes ago,
//! and one that cannot read what is stored must leave it alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use confidant_seal::{Key, Kid, Scope, Tag, TenantId};
use futures_util::TryFutureExt as _;

use super::context::{ConversationContext, Event};
use super::conversation::{Conversation, capture_row, content, key_of, open_event, opened};
use super::{ConceptSettings, Shared, lifetime};
use crate::audit::{Action, Actor, AuditRecord};
use crate::clock::Millis;
use crate::engine::Inner;
use crate::error::{Error, Tampering};
use crate::session::Session;
use crate::store::Anchor;
use crate::store::contexts::{CaptureRow, CapturesOf, ContextRow, ConversationName, Put, PutContext};

/// A context as it was read, with what it takes to write it again.
#[derive(Debug)]
struct Read {
    context: ConversationContext,
    version: u64,
    /// When it is over if nothing more is said, as far as the keyring knows.
    expires_at: Option<Millis>,
}

/// The context of a session's conversation; an empty one where there is none, or none in use.
pub(super) async fn load(session: &Session) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let Some(shared) = inner.concepts.shared() else { return Ok(ConversationContext::default()) };
    let conversation = Conversation::of(session);
    let Some((read, key)) = read(inner, &shared.settings, &conversation).await? else {
        return Ok(ConversationContext::default());
    };
    let last = Anchor {
        scope: conversation.name.conversation,
        kid: key.kid(),
        version: read.version,
        expires_at: read.expires_at,
    };
    lifetime::prolong(session, conversation.name, last);
    Ok(read.context)
}

async fn read(
    inner: &Inner,
    settings: &ConceptSettings,
    conversation: &Conversation,
) -> Result<Option<(Read, Key)>, Error> {
    let names = conversation.names(inner);
    for attempt in 0..TRIES_TO_READ {
        let key = inner.keyring.data_key(&conversation.scope, &names);
        let row = inner.store.context(conversation.name);
        // At once at first, which mostly is enough. Else the key first: its anchor must not be newer than the context that is
        // held against it.
        let in_order = attempt > 0;
        let (key, row) = if in_order {
            (key.await?, row.await?)
        } else {
            tokio::try_join!(key, row.map_err(Error::from))?
        };
        match (key, row) {
            (None, None) => return Ok(None),
            (Some(key), None) if key.anchor == 0 => return Ok(None),
            // Over: the store ended it by itself.
            (Some(key), None) if key.expires_at.is_some_and(|at| at <= inner.now()) => {
                inner.keyring.destroy(&[names.scope]).await?;
                return Ok(None);
            }
            (Some(key), None) if in_order && inner.keyring.still_has(names.scope, key.key.kid()).await? => {
                return Err(Tampering::RolledBack.into());
            }
            (Some(key), Some(row)) if in_order && key.key.kid() == row.kid && row.version < key.anchor => {
                return Err(Tampering::RolledBack.into());
            }
            (Some(key), Some(row)) if key.key.kid() == row.kid && row.version >= key.anchor => {
                let context = match row.archived_at {
                    Some(_) => ConversationContext::default(),
                    None => opened(settings, conversation, &key.key, &row)?,
                };
                let read = Read { context, version: row.version, expires_at: key.expires_at };
                return Ok(Some((read, key.key)));
            }
            // The key is missing, newer or another's: look again, since it may just be changing.
            _ => {}
        }
    }
    Err(Tampering::KeyGone.into())
}

const TRIES_TO_READ: usize = 4;

/// What a merge is to do.
#[derive(Debug)]
pub(super) struct Merge<'m> {
    pub(super) event: &'m Event,
    /// Ids that the graph does not have any more, with their successors.
    pub(super) moved: &'m [(String, Option<String>)],
    pub(super) audit: Vec<AuditRecord>,
}

/// Puts an event into the context and into the capture log, on top of whatever is stored by now. A turn's is put there
/// once, however often this is done.
pub(super) async fn merge(
    session: &Session,
    shared: &Shared,
    merge: Merge<'_>,
) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let conversation = Conversation::of(session);
    for attempt in 0..TRIES_TO_WRITE {
        let read = read(inner, &shared.settings, &conversation).await?;
        let expires_at = lifetime::of(session, read.as_ref().and_then(|(read, _)| read.expires_at));
        let (mut context, expected, key) = match read {
            Some((read, key)) => (read.context, read.version, key),
            None => {
                let names = conversation.names(inner);
                let key = inner.keyring.data_key_or_new(&conversation.scope, &names, expires_at).await?.key;
                (ConversationContext::default(), 0, key)
            }
        };
        context.follow(merge.moved);
        context.apply(merge.event, &shared.settings);
        let capture = capture_row(session, &conversation, &key, merge.event);
        let put = PutContext {
            name: conversation.name,
            kid: key.kid(),
            expected,
            content: content(&shared.settings, &conversation, &key, expected + 1, &context),
            updated_at: merge.event.at,
            archived_at: None,
            expires_at,
            capture: Some(capture),
            forget: None,
            audit: merge.audit.iter().map(|note| note.clone().pending(&inner.keyring)).collect(),
        };
        match inner.store.put_context(put).await? {
            Put::Done => {
                inner.anchors.mark(Anchor {
                    scope: conversation.name.conversation,
                    kid: key.kid(),
                    version: expected + 1,
                    expires_at,
                });
                return after(session, &conversation, expected, &key).await.map(|()| context);
            }
            Put::Known => return Ok(context),
            Put::Conflict => inner.counters.conflicts.add(),
        }
        if attempt > 2 {
            tokio::task::yield_now().await;
        }
    }
    Err(Error::Busy)
}

/// A conversation or a session that was erased while this was being written leaves nothing behind.
async fn after(
    session: &Session,
    conversation: &Conversation,
    expected: u64,
    key: &Key,
) -> Result<(), Error> {
    let inner = &session.inner;
    if expected == 0 && !inner.keyring.still_has(conversation.name.conversation, key.kid()).await? {
        inner.store.erase_context(conversation.name, Vec::new()).await?;
        return Err(Error::Erased);
    }
    if inner.keyring.store().get(session.names.scope).await?.is_none() {
        forget(inner, session.names.scope, Some(conversation.name)).await?;
        return Err(Error::Erased);
    }
    Ok(())
}

/// Under so many writers at once a turn gives up and says so; nothing is lost but its own addition.
const TRIES_TO_WRITE: usize = 512;

/// What went when a session's concepts were forgotten.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// Records of the capture log.
    pub(crate) captures: u64,
    /// Keys of conversations that ended with it.
    pub(crate) keys: Vec<Kid>,
}

/// Takes a session out of every context that it had a part in. What nobody else had a part in ends, key first.
///
/// Those are found by the store, and the session's own in any case: by `own`, or by its scope, as long as its key is there.
pub(crate) async fn forget(
    inner: &Arc<Inner>,
    scope: Tag,
    own: Option<ConversationName>,
) -> Result<Forgotten, Error> {
    let rows = captures_of(inner, scope, own).await?;
    let mut forgotten = Forgotten { captures: rows.len() as u64, keys: Vec::new() };
    let names: BTreeSet<ConversationName> = rows.iter().map(|row| row.name).collect();
    for name in names {
        forgotten.keys.extend(take_out(inner, name, Part::Session(scope), None).await?);
    }
    Ok(forgotten)
}

/// Takes out of scope what one turn of a session put there, with the record of it: its words are taken back.
pub(crate) async fn take_back(session: &Session, request_id: &str) -> Result<(), Error> {
    let inner = &session.inner;
    let request = inner.keyring.request(&session.scope, request_id);
    let rows = captures_of(inner, session.names.scope, Some(Conversation::of(session).name)).await?;
    let note = session.record(Action::ContextErased).counting(1);
    for row in rows.iter().filter(|row| row.request == request) {
        take_out(inner, row.name, Part::Turn(request), Some(&note)).await?;
    }
    Ok(())
}

/// What is taken out of a context.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// All that a session has in it.
    Session(Tag),
    /// What one turn has in it.
    Turn(Tag),
}

/// Takes a part out of a context, with the records of it. Says which key ended, where nothing else was in it.
async fn take_out(
    inner: &Arc<Inner>,
    name: ConversationName,
    part: Part,
    note: Option<&AuditRecord>,
) -> Result<Option<Kid>, Error> {
    let settings = inner.concepts.settings().cloned().unwrap_or_default();
    for _ in 0..TRIES_TO_WRITE {
        let Some(row) = inner.store.context(name).await? else { return end(inner, name).await };
        let left = match part {
            Part::Session(scope) => without_session(inner, &settings, name, scope).await,
            Part::Turn(request) => without_turn(inner, &settings, name, request).await,
        };
        let left = match left {
            Ok(left) => left,
            Err(Error::Tampered(_)) => None,
            Err(error) => return Err(error),
        };
        // Nothing of anybody else's, or nothing that can be read: then it ends as a whole.
        let Some((conversation, key, version, context)) = left else { return end(inner, name).await };
        let expires_at = inner.keyring.store().get(name.conversation).await?.and_then(|row| row.expires_at);
        let (Part::Session(forget) | Part::Turn(forget)) = part;
        let put = PutContext {
            name,
            kid: key.kid(),
            expected: version,
            content: content(&settings, &conversation, &key, version + 1, &context),
            // Nobody used it: what is out of use stays so.
            updated_at: row.updated_at,
            archived_at: row.archived_at,
            expires_at,
            capture: None,
            forget: Some(forget),
            audit: note.map(|note| note.clone().pending(&inner.keyring)).into_iter().collect(),
        };
        if row.version == version && inner.store.put_context(put).await? == Put::Done {
            let scope = name.conversation;
            inner.anchors.mark(Anchor { scope, kid: key.kid(), version: version + 1, expires_at });
            return Ok(None);
        }
    }
    Err(Error::Busy)
}

/// What a context is without one turn; nothing where that is nothing. It is made anew from the records of the others: who
/// else used a concept, and how often, is in them.
async fn without_turn(
    inner: &Inner,
    settings: &ConceptSettings,
    name: ConversationName,
    request: Tag,
) -> Result<Option<Left>, Error> {
    let mut events = events(inner, CapturesOf::Conversation(name)).await?;
    events.retain(|(row, _)| row.request != request);
    let Ok((conversation, _)) = key_of(inner, name).await? else { return Ok(None) };
    let Some((read, key)) = read(inner, settings, &conversation).await? else { return Ok(None) };
    let context = read.context.made_anew(events.iter().map(|(_, event)| event), inner.now(), settings);
    if events.is_empty() && context.is_empty() {
        return Ok(None);
    }
    Ok(Some((conversation, key, read.version, context)))
}

/// How much [`forget`] would take out.
pub(crate) async fn count(inner: &Arc<Inner>, scope: Tag) -> Result<u64, Error> {
    Ok(captures_of(inner, scope, None).await?.len() as u64)
}

async fn captures_of(
    inner: &Arc<Inner>,
    scope: Tag,
    own: Option<ConversationName>,
) -> Result<Vec<CaptureRow>, Error> {
    let own = match own {
        Some(own) => Some(own),
        None => {
            let row = inner.keyring.store().get(scope).await?;
            let readable = row.and_then(|row| inner.keyring.scope_of(&row).ok());
            readable.map(|readable| Conversation::of_scope(inner, &readable).name)
        }
    };
    let of =
        own.map_or(CapturesOf::Session(scope), |own| CapturesOf::SessionOf { tenant: own.tenant, scope });
    let mut rows = inner.store.captures(of).await?;
    if let Some(own) = own.filter(|own| rows.iter().all(|row| row.name != *own)) {
        let missed = inner.store.captures(CapturesOf::Conversation(own)).await?;
        rows.extend(missed.into_iter().filter(|row| row.scope == scope));
    }
    Ok(rows)
}

/// Ends a context, key first; says which key that was.
pub(super) async fn end(inner: &Arc<Inner>, name: ConversationName) -> Result<Option<Kid>, Error> {
    let kid = inner.keyring.store().get(name.conversation).await?.map(|row| row.kid);
    inner.keyring.destroy(&[name.conversation]).await?;
    let note =
        AuditRecord::new(inner.now(), &Actor::system(), Action::ContextErased).about(name.conversation);
    inner.store.erase_context(name, vec![note.pending(&inner.keyring)]).await?;
    Ok(kid)
}

type Left = (Conversation, Key, u64, ConversationContext);

/// What a context is without this session; nothing where that is nothing.
async fn without_session(
    inner: &Inner,
    settings: &ConceptSettings,
    name: ConversationName,
    scope: Tag,
) -> Result<Option<Left>, Error> {
    let others = inner.store.captures(CapturesOf::Conversation(name)).await?;
    let Some(row) = inner.keyring.store().get(name.conversation).await? else { return Ok(None) };
    let conversation = Conversation::at(inner, inner.keyring.scope_of(&row)?);
    let Some((mut read, key)) = read(inner, settings, &conversation).await? else { return Ok(None) };
    let left = read.context.forget(&scope.to_string(), inner.now(), settings);
    if !left && others.iter().all(|row| row.scope == scope) {
        return Ok(None);
    }
    Ok(Some((conversation, key, read.version, read.context)))
}

/// Ends the context of a conversation that an application named; says how many records went.
pub(super) async fn erase_shared(inner: &Arc<Inner>, tenant: &TenantId, id: &str) -> Result<u64, Error> {
    let conversation = Conversation::named(inner, tenant, "shared", id);
    inner.keyring.destroy(&[conversation.name.conversation]).await?;
    Ok(inner.store.erase_context(conversation.name, Vec::new()).await?)
}

/// What a turn that was answered before had captured.
pub(super) async fn event_of(session: &Session, request_id: &str) -> Result<Option<Event>, Error> {
    let inner = &session.inner;
    let request = inner.keyring.request(&session.scope, request_id);
    let events = events(inner, session.captures()).await?;
    Ok(events.into_iter().find(|(row, _)| row.request == request).map(|(_, event)| event))
}

/// Puts contexts out of use that nobody used for too long; says how many.
pub(crate) async fn sweep(inner: &Arc<Inner>) -> Result<u64, Error> {
    let looked = *inner.looked_for_contexts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let next = lifetime::find_again(inner, looked).await?;
    *inner.looked_for_contexts.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = next;
    let Some(after) = inner.concepts.settings().and_then(|settings| settings.archive_after) else {
        return Ok(0);
    };
    let now = inner.now();
    let before = Millis(now.0.saturating_sub(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)));
    let mut archived = 0;
    loop {
        let idle = inner.store.idle_contexts(before, SWEPT_AT_ONCE).await?;
        if idle.is_empty() {
            return Ok(archived);
        }
        for name in idle {
            let Some(row) = inner.store.context(name).await? else { continue };
            let note =
                AuditRecord::new(now, &Actor::system(), Action::ContextArchived).about(name.conversation);
            archived += u64::from(archive(inner, name, row, note).await?);
        }
    }
}

async fn archive(
    inner: &Inner,
    name: ConversationName,
    row: ContextRow,
    note: AuditRecord,
) -> Result<bool, Error> {
    let settings = inner.concepts.settings().cloned().unwrap_or_default();
    let ContextRow { version, kid, updated_at, .. } = row;
    // The version is in the seal, so it is sealed again; what cannot be opened is kept as it is, and out of use.
    let expires_at = inner.keyring.store().get(name.conversation).await?.and_then(|row| row.expires_at);
    let again = match key_of(inner, name).await? {
        Ok((conversation, key)) if key.kid() == kid => opened(&settings, &conversation, &key, &row)
            .ok()
            .map(|context| content(&settings, &conversation, &key, version + 1, &context)),
        _ => None,
    };
    let put = PutContext {
        name,
        kid,
        expected: version,
        content: again.unwrap_or(row.content),
        // The time of the last use stays, for whoever asks.
        updated_at,
        archived_at: Some(inner.now()),
        expires_at,
        capture: None,
        forget: None,
        audit: vec![note.pending(&inner.keyring)],
    };
    let done = inner.store.put_context(put).await? == Put::Done;
    if done {
        inner.anchors.mark(Anchor { scope: name.conversation, kid, version: version + 1, expires_at });
    }
    Ok(done)
}

const SWEPT_AT_ONCE: usize = 100;

/// The events of a conversation, oldest first, each with its row. Of a whole tenant's, those that do not open are left
/// out, so that one damaged conversation does not hide the others.
pub(super) async fn events(inner: &Inner, of: CapturesOf) -> Result<Vec<(CaptureRow, Event)>, Error> {
    let mut events = Vec::new();
    let mut keys: BTreeMap<ConversationName, Result<(Conversation, Key), Tampering>> = BTreeMap::new();
    for row in inner.store.captures(of).await? {
        let known = match keys.entry(row.name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(key_of(inner, row.name).await?),
        };
        let opened = match known {
            Ok((conversation, key)) => open_event(conversation, key, &row),
            Err(tampering) => Err(*tampering),
        };
        match (opened, of) {
            (Ok(event), _) => events.push((row, event)),
            (Err(tampering), CapturesOf::Tenant(_)) => {
                tracing::warn!(reason = tampering.name(), "a record of the capture log does not open");
            }
            (Err(tampering), _) => return Err(tampering.into()),
        }
    }
    Ok(events)
}

/// Makes the context anew from the capture log, on top of whatever is stored; gives what it is then.
pub(super) async fn rebuild(session: &Session, shared: &Shared) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let conversation = Conversation::of(session);
    for _ in 0..TRIES_TO_WRITE {
        let row = inner.store.context(conversation.name).await?;
        let mut context = ConversationContext::default();
        let events = events(inner, CapturesOf::Conversation(conversation.name)).await?;
        for (_, event) in &events {
            context.apply(event, &shared.settings);
        }
        let names = conversation.names(inner);
        let Some(key) = inner.keyring.data_key(&conversation.scope, &names).await? else {
            return Ok(context);
        };
        let expires_at = lifetime::of(session, key.expires_at);
        let expected = row.as_ref().map_or(0, |row| row.version);
        // Behind the anchor it would be taken for a rollback, so it goes on from there.
        let expected_next = expected.max(key.anchor) + 1;
        if expected_next != expected + 1 {
            return Err(Tampering::RolledBack.into());
        }
        let put = PutContext {
            name: conversation.name,
            kid: key.key.kid(),
            expected,
            content: content(&shared.settings, &conversation, &key.key, expected_next, &context),
            updated_at: inner.now(),
            archived_at: None,
            expires_at,
            capture: None,
            forget: None,
            audit: vec![
                session.record(Action::ContextRebuilt).counting(events.len() as u64).pending(&inner.keyring),
            ],
        };
        if inner.store.put_context(put).await? == Put::Done {
            inner.anchors.mark(Anchor {
                scope: conversation.name.conversation,
                kid: key.key.kid(),
                version: expected_next,
                expires_at,
            });
            return Ok(context);
        }
    }
    Err(Error::Busy)
}

/// The version that is stored of a conversation, for accepting a restored backup.
pub(crate) async fn stored_version(inner: &Inner, scope: Scope) -> Result<u64, Error> {
    let conversation = Conversation::at(inner, scope);
    Ok(inner.store.context(conversation.name).await?.map_or(0, |row| row.version))
}
