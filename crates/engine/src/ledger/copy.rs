//! Moving to another store: every row as it is, sealed as it is.
//!
//! Keys, logs, contexts, tokens and the audit log are taken over byte for byte, so that receipts still hold and nothing is opened on the
//! way; only what a session is called is read, for stores that want names. Everything that was written is read back and held
//! against what it was copied from. Cut off anywhere, it goes on where it was; what changed or went meanwhile is put right.
//! What is over stays behind. Until it is done, the destination is marked, and no engine opens it; it is done only if nobody
//! has worked on the source meanwhile.

mod contexts;
mod living;
pub(crate) mod mark;

use std::sync::Arc;

use confidant_seal::{Kid, Sealed, Tag};
use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::clock::{Clock as _, Millis, SystemClock};
use crate::error::{OpenError, StoreError};
use crate::ledger::erasures;
use crate::ledger::keyring::{KeySource, Keyring, NAMED, ROTATED};
use crate::ledger::storage::Storage;
use crate::store::{
    Append, Appended, Audit, AuditHead, Created, DataKeys, Find, Instance, KeyRow, Known, LEASE, Listed,
    Loaded, Logs, Owner, Store, Tokens,
};
use crate::turn::forgotten;
use mark::{BEGUN, DONE, MARK, mark};

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Session keys at the destination.
    pub keys: u64,
    /// Sessions at the destination.
    pub sessions: u64,
    /// Of those, the ones that an earlier run had copied already.
    pub already: u64,
    /// Sessions whose lifetime is over, which were left behind.
    pub expired: u64,
    /// Conversations with concepts in scope.
    pub contexts: u64,
    /// Access tokens.
    pub tokens: u64,
    /// Audit records.
    pub audit_records: u64,
    /// Whether an earlier run had copied everything: then this one did nothing, and what else is here is not counted.
    pub complete: bool,
}

/// Copies everything of an installation to an empty store, or goes on with that. Nobody else may work on either.
///
/// `progress` gets the number of sessions done so far and in all.
pub fn copy<'a>(
    from: &'a Storage,
    to: &'a Storage,
    source: Arc<dyn KeySource>,
    progress: &'a (dyn Fn(u64, u64) + Send + Sync),
) -> BoxFuture<'a, Result<Copied, OpenError>> {
    Box::pin(async move {
        let Some(root) = from.keys.root().await? else {
            return Err(refused("there is nothing to copy", "check the address after --from"));
        };
        // Before anything else: the destination of a finished copy is in use by then.
        if is_complete(from, to, root).await? {
            return Ok(Copied { complete: true, ..Copied::default() });
        }
        if is_used(from, to).await? {
            let hint = format!("stop it, then copy again; {}", outlived());
            return Err(refused("a server or a command is using one of the stores", &hint));
        }
        let keyring = Keyring::open(Arc::clone(&from.keys), source, true).await?;
        let (keys, under_others) = from.keys.count(root).await?;
        if under_others > 0 {
            return Err(refused(
                "a key rotation is unfinished",
                "finish it with `confidant keys rotate`, then copy again",
            ));
        }
        begin(from, to, root).await?;
        from.store.introduce(keyring.name_sealer());
        to.store.introduce(keyring.name_sealer());
        contexts::remove_ended(from, to, &keyring).await?;
        let mut copied = Copied { keys: copy_keys(from, &*to.keys, &keyring).await?, ..Copied::default() };
        copied.contexts = contexts::copy(from, to, &keyring).await?;
        progress(0, keys);
        let progress = |done| progress(done, keys.max(done));
        let seen = copy_sessions(&*from.store, &*to.store, &keyring, &mut copied, &progress).await?;
        remove_strangers(&*from.store, &*to.store).await?;
        copied.tokens = copy_tokens(&*from.store, &*to.store).await?;
        copied.audit_records = copy_audit(&*from.store, &*to.store).await?;
        to.keys.anchor(&[], &from.keys.lane_anchors().await?).await?;
        if is_used(from, to).await? || has_changed(from, to, seen).await? {
            let hint = format!("stop it, then run the same command again to resume; {}", outlived());
            return Err(refused("a server or a command used one of the stores during the copy", &hint));
        }
        if to.keys.put_named(MARK, Some(&mark(BEGUN)), root, &mark(DONE)).await? {
            return Ok(copied);
        }
        Err(refused("another process is copying to this store", "let one of them finish"))
    })
}

/// Whether an earlier copy of this source to this destination was finished: then it is in use, and what is kept beside conversations
/// is its own affair as well.
pub fn is_copied<'a>(from: &'a Storage, to: &'a Storage) -> BoxFuture<'a, Result<bool, OpenError>> {
    Box::pin(async move {
        match from.keys.root().await? {
            Some(root) => is_complete(from, to, root).await,
            None => Ok(false),
        }
    })
}

/// Whether the destination is a finished copy of this source: it was done, and has the source's own keys.
async fn is_complete(from: &Storage, to: &Storage, root: Kid) -> Result<bool, OpenError> {
    let marked = to.keys.named(MARK).await?.map(|(_, found)| found);
    if marked != Some(mark(DONE)) {
        return Ok(false);
    }
    let mut same = to.keys.root().await? == Some(root);
    for name in NAMED {
        let (here, there) = (from.keys.named(name).await?, to.keys.named(name).await?);
        same &= here == there;
    }
    Ok(same)
}

/// How long a killed process still counts as running.
fn outlived() -> String {
    format!("on a server, a killed process counts as running for up to {} seconds", LEASE.as_secs())
}

const AT_ONCE: usize = 500;

/// Whether a server or a command is using one of the stores.
async fn is_used(from: &Storage, to: &Storage) -> Result<bool, OpenError> {
    let nobody = Instance([0; 16]);
    Ok(from.store.others_alive(nobody).await? || to.store.others_alive(nobody).await?)
}

/// Whether the source is another than it was when it was read: its sessions, or its audit log, which all that is done adds to.
async fn has_changed(from: &Storage, to: &Storage, mut seen: Vec<Seen>) -> Result<bool, OpenError> {
    let (mut now_there, mut after) = (Vec::new(), None);
    loop {
        let page = from.store.list(Find::All, after, AT_ONCE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.names.scope);
        now_there.extend(page.iter().map(Seen::of));
    }
    // What came to its end in between did so by itself.
    let now = SystemClock.now();
    seen.retain(|one| !is_over(one.expires_at, now));
    now_there.retain(|one| !is_over(one.expires_at, now));
    let heads = async |store: &dyn Store| -> Result<Vec<AuditHead>, StoreError> {
        let heads = store.lanes().await?.into_iter().map(|lane| lane.head);
        let mut heads: Vec<AuditHead> = heads.filter(|head| head.seq > 0).collect();
        heads.sort_unstable_by_key(|head| head.lane);
        Ok(heads)
    };
    Ok(seen != now_there || heads(&*from.store).await? != heads(&*to.store).await?)
}

/// A session of the source, as it was when it was copied.
#[derive(PartialEq, Eq)]
struct Seen {
    scope: Tag,
    kid: Kid,
    version: u64,
    expires_at: Option<Millis>,
}

impl Seen {
    fn of(listed: &Listed) -> Self {
        let Listed { names, kid, version, expires_at, .. } = *listed;
        Self { scope: names.scope, kid, version, expires_at }
    }
}

fn is_over(expires_at: Option<Millis>, now: Millis) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

/// Marks the destination, and takes over the root and the named keys.
async fn begin(from: &Storage, to: &Storage, root: Kid) -> Result<(), OpenError> {
    let marked = to.keys.named(MARK).await?.map(|(_, found)| found);
    let empty =
        to.keys.root().await?.is_none() && to.store.is_empty().await? && to.store.lanes().await?.is_empty();
    if marked.is_none() && empty {
        to.keys.put_named(MARK, None, root, &mark(BEGUN)).await?;
    } else if marked != Some(mark(BEGUN)) {
        return Err(refused("the destination is not empty", "choose an empty store as the destination"));
    }
    if to.keys.root().await?.is_none() {
        to.keys.set_root(None, root).await?;
    }
    let mut same = to.keys.root().await? == Some(root);
    for name in NAMED {
        let Some((sealed_by, sealed)) = from.keys.named(name).await? else { continue };
        if to.keys.named(name).await?.is_none() {
            to.keys.put_named(name, None, sealed_by, &sealed).await?;
        }
        same &= to.keys.named(name).await? == Some((sealed_by, sealed));
    }
    let noted = [ROTATED].into_iter().chain(forgotten::SHELVES).map(str::to_owned);
    for name in noted.chain(erasures::rows()) {
        let Some((root, noted)) = from.keys.named(&name).await? else { continue };
        let known = to.keys.named(&name).await?.map(|(_, known)| known);
        to.keys.put_named(&name, known.as_ref(), root, &noted).await?;
    }
    if same {
        return Ok(());
    }
    Err(refused(
        "the destination holds an unfinished copy of another store, or of this one before its keys were rotated",
        "choose an empty store as the destination",
    ))
}

/// Copies the keys of what is not over; says how many those are.
async fn copy_keys(from: &Storage, to: &dyn DataKeys, keyring: &Keyring) -> Result<u64, OpenError> {
    let (mut after, mut count) = (None, 0);
    loop {
        let all = from.keys.list(after, AT_ONCE).await?;
        // What is there and not here, between what is here.
        let last = all.last().map(|row| row.scope);
        let there = keys_until(to, after, last).await?;
        let mut rows = Vec::with_capacity(all.len());
        for row in all {
            rows.extend(living::key(from, keyring, row).await?);
        }
        let strangers: Vec<Tag> = there
            .iter()
            .map(|row| row.scope)
            .filter(|scope| rows.iter().all(|row| row.scope != *scope))
            .collect();
        to.destroy(&strangers).await?;
        let Some(last) = last else { return Ok(count) };
        after = Some(last);
        for row in rows {
            count += 1;
            if there.contains(&row) {
                continue;
            }
            to.destroy(&[row.scope]).await?;
            if to.create(row.clone()).await? != Created::New || to.get(row.scope).await? != Some(row) {
                return Err(differs());
            }
        }
    }
}

/// The rows after one tag, up to another or to the end.
async fn keys_until(
    keys: &dyn DataKeys,
    mut after: Option<Tag>,
    last: Option<Tag>,
) -> Result<Vec<KeyRow>, OpenError> {
    let mut all = Vec::new();
    loop {
        let rows = keys.list(after, AT_ONCE).await?;
        let Some(end) = rows.last().map(|row| row.scope) else { return Ok(all) };
        after = Some(end);
        all.extend(rows.into_iter().filter(|row| last.is_none_or(|last| row.scope <= last)));
        if last.is_some_and(|last| end >= last) {
            return Ok(all);
        }
    }
}

/// Copies every session that is not over; says what the source had.
async fn copy_sessions(
    from: &dyn Logs,
    to: &dyn Logs,
    keyring: &Keyring,
    copied: &mut Copied,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<Vec<Seen>, OpenError> {
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = from.list(Find::All, after, AT_ONCE).await?;
        let Some(last) = page.last() else { return Ok(seen) };
        after = Some(last.names.scope);
        seen.extend(page.iter().map(Seen::of));
        for one in page {
            if is_over(one.expires_at, SystemClock.now()) {
                copied.expired += 1;
                continue;
            }
            match copy_session(from, to, keyring, &one).await? {
                Some(Went::Now) => copied.sessions += 1,
                Some(Went::Before) => {
                    (copied.sessions, copied.already) = (copied.sessions + 1, copied.already + 1)
                }
                None => copied.expired += 1,
            }
            progress(copied.sessions + copied.expired);
            // Stores that never wait would keep everybody else waiting.
            tokio::task::yield_now().await;
        }
    }
}

enum Went {
    Now,
    Before,
}

/// Copies a session, unless it is there; nothing if it ended meanwhile.
async fn copy_session(
    from: &dyn Logs,
    to: &dyn Logs,
    keyring: &Keyring,
    listed: &Listed,
) -> Result<Option<Went>, OpenError> {
    let names = listed.names;
    let name_in = async |naming| -> Result<_, OpenError> {
        let Some(row) = keyring.store().get(names.scope).await? else { return Ok(None) };
        Ok(keyring.scope_of(&row).ok().and_then(|scope| keyring.key_name(naming, &scope, names.scope)))
    };
    let Some(mut here) = from.load(names.scope, None).await? else { return Ok(None) };
    // Whoever was answering it is not there: somebody who is takes it up.
    here.owner = here.owner.map(|owner| match owner {
        Owner::Parked => Owner::Parked,
        Owner::Running(_) | Owner::Decided | Owner::Captured => Owner::Decided,
    });
    let naming = to.naming();
    let name = name_in(&naming).await?;
    if naming != crate::store::Naming::Tags && name.is_none() {
        // Without its key it opens nowhere, and has no name to go by.
        return Ok(None);
    }
    let known = Known { tenant: names.tenant, name: name.as_ref() };
    let there = to.load(names.scope, Some(known)).await?;
    if there.as_ref() == Some(&here) {
        return Ok(Some(Went::Before));
    }
    if there.is_some() {
        to.erase(names.scope, Some(known), Vec::new()).await?;
    }
    let written = to.append(whole(listed, name.clone(), &here)).await? == Appended::Done;
    let there = to.load(names.scope, Some(known)).await?;
    match there {
        Some(there) if written && there == here => Ok(Some(Went::Now)),
        None if is_over(here.expires_at, SystemClock.now()) => Ok(None),
        _ => Err(differs()),
    }
}

/// The write that makes a session what it is elsewhere. What its snapshot covers is gone; it has places, and nothing in them.
fn whole(listed: &Listed, name: Option<crate::store::KeyName>, loaded: &Loaded) -> Append {
    let covered = loaded.snapshot.as_ref().map_or(0, |(covers, _)| *covers);
    let gone = (0..covered).map(|_| Sealed::from_bytes(Vec::new()));
    Append {
        names: listed.names,
        name,
        kid: loaded.kid,
        expected: 0,
        entries: gone.chain(loaded.entries.iter().map(|(_, sealed)| sealed.clone())).collect(),
        snapshot: loaded.snapshot.clone(),
        expires_at: loaded.expires_at,
        owner: loaded.owner,
        audit: Vec::new(),
    }
}

/// Removes sessions that an earlier run copied and that are gone or over since.
async fn remove_strangers(from: &dyn Logs, to: &dyn Logs) -> Result<(), OpenError> {
    let mut after = None;
    loop {
        let page = to.list(Find::All, after, AT_ONCE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.names.scope);
        for one in page {
            let here = from.load(one.names.scope, None).await?;
            if here.is_none_or(|here| is_over(here.expires_at, SystemClock.now())) {
                to.erase(one.names.scope, None, Vec::new()).await?;
            }
        }
    }
}

async fn copy_tokens(from: &dyn Tokens, to: &dyn Tokens) -> Result<u64, OpenError> {
    let (here, there) = (from.tokens().await?, to.tokens().await?);
    for gone in there.iter().filter(|row| !here.contains(row)) {
        to.remove_token(gone.hash, Vec::new()).await?;
    }
    for row in here.iter().filter(|row| !there.contains(row)) {
        to.add_token(row.clone(), Vec::new()).await?;
    }
    if to.tokens().await? == here { Ok(here.len() as u64) } else { Err(differs()) }
}

async fn copy_audit(from: &dyn Audit, to: &dyn Audit) -> Result<u64, OpenError> {
    let (mut count, there) = (0, to.lanes().await?);
    for lane in from.lanes().await? {
        let name = lane.head.lane;
        let mut at =
            there.iter().find(|found| found.head.lane == name).map_or(lane.floor, |found| Some(found.head));
        while at.map_or(0, |at| at.seq) < lane.head.seq {
            let records = from.audit(name, at.map_or(0, |at| at.seq), AT_ONCE).await?;
            let Some((seq, tag)) = records.last().and_then(|(seq, sealed)| Some((*seq, sealed.tag()?)))
            else {
                return Err(differs());
            };
            to.adopt(name, at, records.into_iter().map(|(_, sealed)| sealed).collect()).await?;
            at = Some(AuditHead { lane: name, seq, tag });
        }
        if at != Some(lane.head) {
            return Err(differs());
        }
        count += lane.head.seq - lane.floor.map_or(0, |floor| floor.seq);
    }
    Ok(count)
}

fn refused(what: &str, hint: &str) -> OpenError {
    OpenError::Store(StoreError::Mismatch(format!("{what}; hint: {hint}")))
}

fn differs() -> OpenError {
    refused(
        "the copy differs from its source: something is using one of the stores, or one is damaged",
        "stop everything that uses them, then run the same command again to resume",
    )
}
