//! How a context is kept: sealed under a key of its own, merged atomically, forgotten with its sessions.
//!
//! A conversation has a data key in the keyring like a session, so that rotation covers it and destroying it ends every
//! copy; and where several people share one, so has everybody's part in it ([`parts`](super::parts)). What is easy to get wrong: a merge must start from what is stored now, never from what a turn loaded minutes ago,
//! and one that cannot read what is stored must leave it alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use confidant_seal::{Key, Kid, Scope, Tag, TenantId};
use futures_util::TryFutureExt as _;

use super::context::{ConversationContext, Event};
use super::conversation::{Conversation, PartName, capture_row, content, key_of, open_event, opened};
use super::members::{Seat, shared_of};
use super::parts::{PartKeys, Stored};
use super::{ConceptSettings, Shared, lifetime};
use crate::clock::Millis;
use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor, AuditRecord};
use crate::ledger::epoch::Epoch;
use crate::ledger::session::Session;
use crate::store::Anchor;
use crate::store::contexts::{CaptureRow, CapturesOf, ContextRow, ConversationName, Put, PutContext};

/// A context as it was read, with what it takes to write it again.
#[derive(Debug)]
struct Read {
    stored: Stored,
    version: u64,
    /// When it is over if nothing more is said, as far as the keyring knows.
    expires_at: Option<Millis>,
}

/// The context of a session's conversation; an empty one where there is none, or none in use.
pub(super) async fn load(session: &Session) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let Some(shared) = inner.ledger.concepts.shared() else { return Ok(ConversationContext::default()) };
    let seat = Seat::of(session).await?;
    if !seat.keeps(session) {
        return Ok(ConversationContext::default());
    }
    lifetime::prolong_part(inner, &seat);
    let Some((read, key)) = read(inner, &shared.settings, &seat.conversation).await? else {
        return Ok(ConversationContext::default());
    };
    let last = Anchor {
        scope: seat.conversation.name.conversation,
        kid: key.kid(),
        version: read.version,
        expires_at: read.expires_at,
    };
    lifetime::prolong(session, &seat, last);
    Ok(read.stored.join(inner, &seat.conversation, &PartKeys::default()).await?.0)
}

async fn read(
    inner: &Inner,
    settings: &ConceptSettings,
    conversation: &Conversation,
) -> Result<Option<(Read, Key)>, Error> {
    let names = conversation.names(inner);
    for attempt in 0..TRIES_TO_READ {
        let key = inner.ledger.keyring.data_key(&conversation.scope, &names);
        let row = inner.ledger.store.context(conversation.name);
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
            (Some(key), None) if key.expires_at.is_some_and(|at| at <= inner.ledger.now()) => {
                inner.ledger.keyring.destroy(&[names.scope]).await?;
                return Ok(None);
            }
            (Some(key), None)
                if in_order && inner.ledger.keyring.still_has(names.scope, key.key.kid()).await? =>
            {
                return Err(Tampering::RolledBack.into());
            }
            (Some(key), Some(row)) if in_order && key.key.kid() == row.kid && row.version < key.anchor => {
                return Err(Tampering::RolledBack.into());
            }
            (Some(key), Some(row)) if key.key.kid() == row.kid && row.version >= key.anchor => {
                let stored = match row.archived_at {
                    Some(_) => Stored::default(),
                    None => opened(settings, conversation, &key.key, &row)?,
                };
                let read = Read { stored, version: row.version, expires_at: key.expires_at };
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
    /// The data key of the log that has it, where a turn's log does.
    pub(super) under: Option<Kid>,
}

/// Puts an event into the context and into the capture log, on top of whatever is stored by now. A turn's is put there
/// once, however often this is done.
pub(super) async fn merge(
    session: &Session,
    shared: &Shared,
    merge: Merge<'_>,
) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let seat = Seat::of(session).await?;
    if !seat.keeps(session) {
        // Switched off since the turn began.
        return Err(Error::Erased);
    }
    let conversation = &seat.conversation;
    let mut known = PartKeys::default();
    for attempt in 0..TRIES_TO_WRITE {
        let read = read(inner, &shared.settings, conversation).await?;
        let expires_at = lifetime::of(session, &seat, read.as_ref().and_then(|(read, _)| read.expires_at));
        let (stored, expected, key) = match read {
            Some((read, key)) => (read.stored, read.version, key),
            None => {
                let names = conversation.names(inner);
                // Of many people's, perhaps: the erasure of one of them takes out their part, and not the key.
                let born = Epoch::default();
                let key = inner.ledger.keyring.data_key_or_new(&conversation.scope, &names, expires_at, born);
                (Stored::default(), 0, key.await?.key)
            }
        };
        let (mut context, mut keys) = stored.join(inner, conversation, &known).await?;
        let part = own_part(inner, &seat, &mut keys).await?;
        context.follow(merge.moved);
        context.apply(merge.event, &shared.settings);
        let place = part.as_ref().map_or((&conversation.scope, &key), |(name, key)| (&name.scope, key));
        let capture = capture_row(session, conversation, place, merge.event);
        let stored = Stored::of(inner, &shared.settings, conversation, &context, &mut keys).await?;
        let put = PutContext {
            name: conversation.name,
            kid: key.kid(),
            expected,
            content: content(&shared.settings, conversation, &key, expected + 1, &stored),
            updated_at: merge.event.at,
            archived_at: None,
            expires_at,
            capture: Some(capture),
            forget: None,
            audit: merge.audit.iter().map(|note| note.clone().pending(&inner.ledger.keyring)).collect(),
        };
        match inner.ledger.store.put_context(put).await? {
            Put::Done => {
                inner.ledger.anchors.mark(Anchor {
                    scope: conversation.name.conversation,
                    kid: key.kid(),
                    version: expected + 1,
                    expires_at,
                });
                after(session, conversation, (expected, &key), part.as_ref(), &merge).await?;
                return Ok(context);
            }
            Put::Known => return Ok(context),
            Put::Conflict => inner.ledger.counters.conflicts.add(),
        }
        known = keys;
        if attempt > 2 {
            tokio::task::yield_now().await;
        }
    }
    Err(Error::Busy)
}

/// The part that a session writes to, with its key; nothing where the conversation is its own.
async fn own_part(inner: &Inner, seat: &Seat, keys: &mut PartKeys) -> Result<Option<(PartName, Key)>, Error> {
    let Some((name, row)) = &seat.part else { return Ok(None) };
    let found = inner.ledger.keyring.data_key(&name.scope, &name.names).await?;
    // Gone, or another: they were taken out of the conversation since the turn began.
    let key = found.map(|found| found.key).filter(|key| key.kid() == row.kid).ok_or(Error::Erased)?;
    keys.add(name, &key);
    Ok(Some((name.clone(), key)))
}

/// A conversation, a part or a session that was erased while this was being written leaves nothing behind.
async fn after(
    session: &Session,
    conversation: &Conversation,
    (expected, key): (u64, &Key),
    part: Option<&(PartName, Key)>,
    merge: &Merge<'_>,
) -> Result<(), Error> {
    let inner = &session.inner;
    if expected == 0 && !inner.ledger.keyring.still_has(conversation.name.conversation, key.kid()).await? {
        inner.ledger.store.erase_context(conversation.name, Vec::new()).await?;
        return Err(Error::Erased);
    }
    if let Some((name, key)) = part
        && !inner.ledger.keyring.still_has(name.names.scope, key.kid()).await?
    {
        take_out(inner, conversation.name, Part::Session(name.by), None).await?;
        return Err(Error::Erased);
    }
    match (inner.ledger.keyring.store().get(session.names.scope).await?, merge.under) {
        // What somebody has in a shared conversation outlives the session that it came from.
        (None, _) if part.is_none() => {
            forget(inner, session.names.scope, Some(&session.scope)).await?;
            Err(Error::Erased)
        }
        // The person has begun anew since: what they named then stays, and this goes.
        (Some(row), Some(kid)) if row.kid != kid => {
            take_back(session, &merge.event.request_id).await?;
            Err(Error::Erased)
        }
        _ => Ok(()),
    }
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
/// Those are found by the store, and the session's own in any case: by `readable`, or by its key, as long as that is there.
pub(crate) async fn forget(
    inner: &Arc<Inner>,
    scope: Tag,
    readable: Option<&Scope>,
) -> Result<Forgotten, Error> {
    let found = found(inner, scope, readable).await?;
    let mut forgotten = Forgotten { captures: found.rows.len() as u64, keys: Vec::new() };
    // The keys first: from here on nothing of it opens, in whatever copy.
    forgotten.keys.extend(found.destroy_parts(inner, scope).await?);
    let names: BTreeSet<ConversationName> = found.rows.iter().map(|row| row.name).collect();
    for name in names {
        forgotten.keys.extend(take_out(inner, name, Part::Session(scope), None).await?);
    }
    Ok(forgotten)
}

/// The same for a session whose lifetime is over. What it has in a conversation that an application named stays: that lives
/// by its own time.
pub(crate) async fn forget_expired(inner: &Arc<Inner>, scope: Tag) -> Result<(), Error> {
    let found = found(inner, scope, None).await?;
    let names: BTreeSet<ConversationName> = found.rows.iter().map(|row| row.name).collect();
    for name in names {
        let mut is_shared = false;
        for part in found.parts_in(inner, name, scope).await? {
            is_shared |= inner.ledger.keyring.store().get(part.names.scope).await?.is_some();
        }
        if !is_shared {
            take_out(inner, name, Part::Session(scope), None).await?;
        }
    }
    Ok(())
}

/// Takes one part out of a shared conversation: its key first, then what it says.
pub(super) async fn forget_part(
    inner: &Arc<Inner>,
    conversation: &Conversation,
    part: &PartName,
) -> Result<Forgotten, Error> {
    let rows = inner.ledger.store.captures(CapturesOf::Conversation(conversation.name)).await?;
    let captures = rows.iter().filter(|row| row.scope == part.by).count() as u64;
    let mut keys: Vec<Kid> =
        inner.ledger.keyring.store().get(part.names.scope).await?.map(|row| row.kid).into_iter().collect();
    inner.ledger.keyring.destroy(&[part.names.scope]).await?;
    if inner.ledger.store.context(conversation.name).await?.is_some() {
        keys.extend(take_out(inner, conversation.name, Part::Session(part.by), None).await?);
    }
    Ok(Forgotten { captures, keys })
}

/// Takes a person out of every conversation that they have a part in, also where no session of theirs is left. The parts are
/// found by their keys, which no column of a table can hide.
pub(crate) async fn forget_person(inner: &Arc<Inner>, person: Tag) -> Result<Forgotten, Error> {
    let mut forgotten = Forgotten::default();
    for (conversation, part) in parts_of(inner, person).await? {
        let Forgotten { captures, keys } = forget_part(inner, &conversation, &part).await?;
        forgotten.captures += captures;
        forgotten.keys.extend(keys);
    }
    Ok(forgotten)
}

/// Every part that a person has in a conversation.
pub(super) async fn parts_of(inner: &Inner, person: Tag) -> Result<Vec<(Conversation, PartName)>, Error> {
    let (mut parts, mut after) = (Vec::new(), None);
    loop {
        let rows = inner.ledger.keyring.store().list(after, KEYS_AT_ONCE).await?;
        let Some(last) = rows.last() else { return Ok(parts) };
        after = Some(last.scope);
        // A key that does not open is another check's to report; nothing opens with it.
        let scopes = rows.iter().filter_map(|row| inner.ledger.keyring.scope_of(row).ok());
        let found = scopes.filter_map(|scope| Conversation::of_part(&inner.ledger.keyring, &scope));
        parts.extend(found.filter(|(_, part)| part.person == person));
    }
}

const KEYS_AT_ONCE: usize = 500;

/// Takes out of scope what one turn of a session put there, with the record of it: its words are taken back.
pub(crate) async fn take_back(session: &Session, request_id: &str) -> Result<(), Error> {
    let inner = &session.inner;
    let request = inner.ledger.keyring.request(&session.scope, request_id);
    let found = found(inner, session.names.scope, Some(&session.scope)).await?;
    let note = session.record(Action::ContextErased).counting(1);
    for row in found.rows.iter().filter(|row| row.request == request) {
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
    let settings = inner.ledger.concepts.settings().cloned().unwrap_or_default();
    for _ in 0..TRIES_TO_WRITE {
        let Some(row) = inner.ledger.store.context(name).await? else { return end(inner, name).await };
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
        let Some((conversation, key, version, stored)) = left else { return end(inner, name).await };
        let expires_at =
            inner.ledger.keyring.store().get(name.conversation).await?.and_then(|row| row.expires_at);
        let (Part::Session(forget) | Part::Turn(forget)) = part;
        let put = PutContext {
            name,
            kid: key.kid(),
            expected: version,
            content: content(&settings, &conversation, &key, version + 1, &stored),
            // Nobody used it: what is out of use stays so.
            updated_at: row.updated_at,
            archived_at: row.archived_at,
            expires_at,
            capture: None,
            forget: Some(forget),
            audit: note.map(|note| note.clone().pending(&inner.ledger.keyring)).into_iter().collect(),
        };
        if row.version == version && inner.ledger.store.put_context(put).await? == Put::Done {
            let scope = name.conversation;
            inner.ledger.anchors.mark(Anchor { scope, kid: key.kid(), version: version + 1, expires_at });
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
    let version = read.version;
    let (context, mut keys) = read.stored.join(inner, &conversation, &PartKeys::default()).await?;
    add_keys(inner, &conversation, &events, &mut keys).await?;
    let context = context.made_anew(events.iter().map(|(_, event)| event), inner.ledger.now(), settings);
    if events.is_empty() && context.is_empty() {
        return Ok(None);
    }
    let stored = Stored::of(inner, settings, &conversation, &context, &mut keys).await?;
    Ok(Some((conversation, key, version, stored)))
}

/// How much [`forget`] would take out.
pub(crate) async fn count(inner: &Arc<Inner>, scope: Tag) -> Result<u64, Error> {
    Ok(found(inner, scope, None).await?.rows.len() as u64)
}

/// How much [`forget_person`] would take out besides what these sessions have.
pub(crate) async fn count_person(inner: &Arc<Inner>, person: Tag, besides: &[Tag]) -> Result<u64, Error> {
    let mut count = 0;
    for (conversation, part) in parts_of(inner, person).await? {
        if !besides.contains(&part.by) {
            let rows = inner.ledger.store.captures(CapturesOf::Conversation(conversation.name)).await?;
            count += rows.iter().filter(|row| row.scope == part.by).count() as u64;
        }
    }
    Ok(count)
}

/// What an export of a person has of conversations besides what these sessions have.
pub(crate) async fn export_person(
    inner: &Arc<Inner>,
    person: Tag,
    besides: &[Tag],
) -> Result<Vec<serde_json::Value>, Error> {
    let mut exported = Vec::new();
    for (conversation, part) in parts_of(inner, person).await? {
        // What is kept of a chat that only its owner can open is in its owner's export, and in nobody else's.
        if !besides.contains(&part.by) && !conversation.is_chat() {
            let events = events(inner, CapturesOf::Conversation(conversation.name)).await?;
            let theirs = events.into_iter().filter(|(row, _)| row.scope == part.by);
            exported.extend(theirs.filter_map(|(_, event)| serde_json::to_value(event).ok()));
        }
    }
    Ok(exported)
}

/// What a session has in contexts.
struct Found {
    rows: Vec<CaptureRow>,
    /// The session's person, and its part in the conversation that its application named, as far as its scope is known.
    person: Option<Tag>,
    part: Option<PartName>,
}

impl Found {
    /// The parts that the session may have in a conversation. The person is known from the session's own scope; the
    /// column that says it too is for sessions whose key is gone.
    async fn parts_in(
        &self,
        inner: &Inner,
        name: ConversationName,
        scope: Tag,
    ) -> Result<Vec<PartName>, Error> {
        let Some(conversation) = Conversation::by_name(&inner.ledger.keyring, name).await? else {
            return Ok(Vec::new());
        };
        let rows = self.rows.iter().filter(|row| row.name == name).map(|row| row.person);
        let persons: BTreeSet<Tag> = rows.chain(self.person).collect();
        Ok(persons
            .into_iter()
            .map(|person| conversation.part(&inner.ledger.keyring, scope, person))
            .collect())
    }

    /// Destroys the keys of all its parts; says which they were.
    async fn destroy_parts(&self, inner: &Inner, scope: Tag) -> Result<Vec<Kid>, Error> {
        let names: BTreeSet<ConversationName> = self.rows.iter().map(|row| row.name).collect();
        let mut parts: BTreeSet<Tag> = self.part.iter().map(|part| part.names.scope).collect();
        for name in names {
            parts.extend(self.parts_in(inner, name, scope).await?.iter().map(|part| part.names.scope));
        }
        let mut kids = Vec::new();
        for part in &parts {
            kids.extend(inner.ledger.keyring.store().get(*part).await?.map(|row| row.kid));
        }
        if !kids.is_empty() {
            inner.ledger.keyring.destroy(&parts.into_iter().collect::<Vec<_>>()).await?;
        }
        Ok(kids)
    }
}

async fn found(inner: &Arc<Inner>, scope: Tag, readable: Option<&Scope>) -> Result<Found, Error> {
    let readable = match readable {
        Some(readable) => Some(readable.clone()),
        None => {
            let row = inner.ledger.keyring.store().get(scope).await?;
            row.and_then(|row| inner.ledger.keyring.scope_of(&row).ok())
        }
    };
    let Some(readable) = readable else {
        let rows = inner.ledger.store.captures(CapturesOf::Session(scope)).await?;
        return Ok(Found { rows, person: None, part: None });
    };
    let names = inner.ledger.keyring.names(&readable);
    let mut rows = inner.ledger.store.captures(CapturesOf::SessionOf { tenant: names.tenant, scope }).await?;
    let shared = shared_of(inner, &readable);
    let own = Conversation::own(&inner.ledger.keyring, &readable).name;
    // What finds them may be lost; where they are is known all the same.
    for own in shared.iter().map(|(conversation, _)| conversation.name).chain([own]) {
        if rows.iter().all(|row| row.name != own) {
            let missed = inner.ledger.store.captures(CapturesOf::Conversation(own)).await?;
            rows.extend(missed.into_iter().filter(|row| row.scope == scope));
        }
    }
    Ok(Found { rows, person: Some(names.person), part: shared.map(|(_, part)| part) })
}

/// Ends a context, keys first; says which the conversation's was.
pub(super) async fn end(inner: &Arc<Inner>, name: ConversationName) -> Result<Option<Kid>, Error> {
    let kid = inner.ledger.keyring.store().get(name.conversation).await?.map(|row| row.kid);
    inner.ledger.keyring.destroy(&keys_in(inner, name).await?).await?;
    let note = AuditRecord::new(inner.ledger.now(), &Actor::system(), Action::ContextErased)
        .about(name.conversation);
    inner.ledger.store.erase_context(name, vec![note.pending(&inner.ledger.keyring)]).await?;
    Ok(kid)
}

/// The keys of a conversation: its own and those of the parts in it, as far as they can be found.
async fn keys_in(inner: &Arc<Inner>, name: ConversationName) -> Result<Vec<Tag>, Error> {
    let mut keys = BTreeSet::from([name.conversation]);
    if let Some(conversation) = Conversation::by_name(&inner.ledger.keyring, name).await? {
        let settings = inner.ledger.concepts.settings().cloned().unwrap_or_default();
        let rows = inner.ledger.store.captures(CapturesOf::Conversation(name)).await?;
        let mut parts: BTreeSet<(Tag, Tag)> = rows.iter().map(|row| (row.scope, row.person)).collect();
        if let Ok(Some((read, _))) = read(inner, &settings, &conversation).await {
            parts.extend(read.stored.parts());
        }
        let tag = |(by, person)| conversation.part(&inner.ledger.keyring, by, person).names.scope;
        keys.extend(parts.into_iter().map(tag));
    }
    Ok(keys.into_iter().collect())
}

type Left = (Conversation, Key, u64, Stored);

/// What a context is without this session; nothing where that is nothing.
async fn without_session(
    inner: &Inner,
    settings: &ConceptSettings,
    name: ConversationName,
    scope: Tag,
) -> Result<Option<Left>, Error> {
    let others = inner.ledger.store.captures(CapturesOf::Conversation(name)).await?;
    let Some(conversation) = Conversation::by_name(&inner.ledger.keyring, name).await? else {
        return Ok(None);
    };
    let Some((mut read, key)) = read(inner, settings, &conversation).await? else { return Ok(None) };
    let left = read.stored.forget(&scope.to_string(), inner.ledger.now(), settings);
    if !left && others.iter().all(|row| row.scope == scope) {
        return Ok(None);
    }
    Ok(Some((conversation, key, read.version, read.stored)))
}

/// Ends the context of a conversation that an application named; says how many records went.
pub(super) async fn erase_shared(inner: &Arc<Inner>, tenant: &TenantId, id: &str) -> Result<u64, Error> {
    let conversation = Conversation::named(&inner.ledger.keyring, tenant, "shared", id);
    inner.ledger.keyring.destroy(&keys_in(inner, conversation.name).await?).await?;
    Ok(inner.ledger.store.erase_context(conversation.name, Vec::new()).await?)
}

/// What a turn that was answered before had captured.
pub(super) async fn event_of(session: &Session, request_id: &str) -> Result<Option<Event>, Error> {
    let inner = &session.inner;
    let request = inner.ledger.keyring.request(&session.scope, request_id);
    let events = events(inner, session.captures()).await?;
    Ok(events.into_iter().find(|(row, _)| row.request == request).map(|(_, event)| event))
}

/// Puts contexts out of use that nobody used for too long; says how many.
pub(crate) async fn sweep(inner: &Arc<Inner>) -> Result<u64, Error> {
    let looked = *inner.ledger.looked_for_contexts.lock();
    let next = lifetime::find_again(inner, looked).await?;
    *inner.ledger.looked_for_contexts.lock() = next;
    let Some(after) = inner.ledger.concepts.settings().and_then(|settings| settings.archive_after) else {
        return Ok(0);
    };
    let now = inner.ledger.now();
    let before = Millis(now.0.saturating_sub(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)));
    let mut archived = 0;
    loop {
        let idle = inner.ledger.store.idle_contexts(before, SWEPT_AT_ONCE).await?;
        if idle.is_empty() {
            return Ok(archived);
        }
        for name in idle {
            let Some(row) = inner.ledger.store.context(name).await? else { continue };
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
    let settings = inner.ledger.concepts.settings().cloned().unwrap_or_default();
    let ContextRow { version, kid, updated_at, .. } = row;
    // The version is in the seal, so it is sealed again; what cannot be opened is kept as it is, and out of use.
    let expires_at =
        inner.ledger.keyring.store().get(name.conversation).await?.and_then(|row| row.expires_at);
    let again = match key_of(inner, name).await? {
        Ok((conversation, key)) if key.kid() == kid => opened(&settings, &conversation, &key, &row)
            .ok()
            .map(|stored| content(&settings, &conversation, &key, version + 1, &stored)),
        _ => None,
    };
    let put = PutContext {
        name,
        kid,
        expected: version,
        content: again.unwrap_or(row.content),
        // The time of the last use stays, for whoever asks.
        updated_at,
        archived_at: Some(inner.ledger.now()),
        expires_at,
        capture: None,
        forget: None,
        audit: vec![note.pending(&inner.ledger.keyring)],
    };
    let done = inner.ledger.store.put_context(put).await? == Put::Done;
    if done {
        inner.ledger.anchors.mark(Anchor { scope: name.conversation, kid, version: version + 1, expires_at });
    }
    Ok(done)
}

const SWEPT_AT_ONCE: usize = 100;

/// The events of a conversation, oldest first, each with its row. Those of a part whose key is gone are gone, whoever put
/// the row back. Of a whole tenant's, those that do not open are left out, so that one damaged conversation does not hide the
/// others; and those of chats that only their owner can open.
pub(super) async fn events(inner: &Inner, of: CapturesOf) -> Result<Vec<(CaptureRow, Event)>, Error> {
    let mut events = Vec::new();
    let mut keys: BTreeMap<ConversationName, Result<(Conversation, Key), Tampering>> = BTreeMap::new();
    let mut parts: BTreeMap<(ConversationName, Tag, Tag), Option<(Scope, Key)>> = BTreeMap::new();
    for row in inner.ledger.store.captures(of).await? {
        let known = match keys.entry(row.name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(key_of(inner, row.name).await?),
        };
        // What was captured in a chat that only its owner can open is shown to nobody else.
        if matches!(of, CapturesOf::Tenant(_)) && matches!(known, Ok((one, _)) if one.is_chat()) {
            continue;
        }
        let opened = match known {
            Ok((conversation, key)) if row.sealed.kid() == Some(key.kid()) => {
                open_event(&conversation.scope, key, &row)
            }
            Ok((conversation, _)) => {
                let part = match parts.entry((row.name, row.scope, row.person)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => {
                        let name = conversation.part(&inner.ledger.keyring, row.scope, row.person);
                        let key = inner.ledger.keyring.data_key(&name.scope, &name.names).await?;
                        place.insert(key.map(|key| (name.scope, key.key)))
                    }
                };
                match part {
                    Some((scope, key)) if row.sealed.kid() == Some(key.kid()) => open_event(scope, key, &row),
                    Some(_) | None => continue,
                }
            }
            Err(tampering) => Err(*tampering),
        };
        match (opened, of) {
            (Ok(event), _) => events.push((row, event)),
            (Err(tampering), CapturesOf::Tenant(_)) => {
                tracing::warn!(reason = tampering.name(), "a record of the capture log cannot be opened");
            }
            (Err(tampering), _) => return Err(tampering.into()),
        }
    }
    Ok(events)
}

/// Adds the keys of the parts that these events are of.
async fn add_keys(
    inner: &Inner,
    conversation: &Conversation,
    events: &[(CaptureRow, Event)],
    keys: &mut PartKeys,
) -> Result<(), Error> {
    let whose: BTreeSet<(Tag, Tag)> = events.iter().map(|(row, _)| (row.scope, row.person)).collect();
    for (by, person) in whose {
        let name = conversation.part(&inner.ledger.keyring, by, person);
        if let Some(found) = inner.ledger.keyring.data_key(&name.scope, &name.names).await? {
            keys.add(&name, &found.key);
        }
    }
    Ok(())
}

/// Makes the context anew from the capture log, on top of whatever is stored; gives what it is then.
pub(super) async fn rebuild(session: &Session, shared: &Shared) -> Result<ConversationContext, Error> {
    let inner = &session.inner;
    let seat = Seat::of(session).await?;
    let conversation = &seat.conversation;
    for _ in 0..TRIES_TO_WRITE {
        let row = inner.ledger.store.context(conversation.name).await?;
        let mut context = ConversationContext::default();
        let events = events(inner, CapturesOf::Conversation(conversation.name)).await?;
        for (_, event) in &events {
            context.apply(event, &shared.settings);
        }
        let names = conversation.names(inner);
        let Some(key) = inner.ledger.keyring.data_key(&conversation.scope, &names).await? else {
            return Ok(context);
        };
        let mut keys = PartKeys::default();
        own_part(inner, &seat, &mut keys).await?;
        add_keys(inner, conversation, &events, &mut keys).await?;
        let stored = Stored::of(inner, &shared.settings, conversation, &context, &mut keys).await?;
        let expires_at = lifetime::of(session, &seat, key.expires_at);
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
            content: content(&shared.settings, conversation, &key.key, expected_next, &stored),
            updated_at: inner.ledger.now(),
            archived_at: None,
            expires_at,
            capture: None,
            forget: None,
            audit: vec![
                session
                    .record(Action::ContextRebuilt)
                    .counting(events.len() as u64)
                    .pending(&inner.ledger.keyring),
            ],
        };
        if inner.ledger.store.put_context(put).await? == Put::Done {
            inner.ledger.anchors.mark(Anchor {
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
    let conversation = Conversation::at(&inner.ledger.keyring, scope);
    Ok(inner.ledger.store.context(conversation.name).await?.map_or(0, |row| row.version))
}

/// Whether what is kept of a conversation opens.
pub(crate) async fn check(inner: &Inner, scope: Scope) -> Result<(), Error> {
    let Some(shared) = inner.ledger.concepts.shared() else { return Ok(()) };
    read(inner, &shared.settings, &Conversation::at(&inner.ledger.keyring, scope)).await.map(drop)
}
