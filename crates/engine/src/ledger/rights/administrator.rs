//! The door to what is not one's own: listing, people, the audit log, checks of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use confidant_seal::{Scope, Tag, TenantId, UserId};
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::erasure::{Subject, Whose, erase, incomplete, is_signed};
use super::receipt::Receipt;
use super::{FORMAT, PersonExport, owned};
use crate::clock::Millis;
use crate::concepts;
use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::account_scope::is_account_key;
use crate::ledger::audit::{self, Action, Actor, AuditLine, AuditRecord, Lane};
use crate::ledger::epoch::Epoch;
use crate::ledger::keyring::{Owned, born};
use crate::ledger::session::{self, Session};
use crate::ledger::web_cache;
use crate::ledger::web_scope::is_web;
use crate::store::{Anchor, AuditHead, Find, KeyRow, Listed};

/// The handle that can see and erase what is not its own. Everything it does is audited.
#[derive(Clone, Debug)]
pub struct Administrator {
    inner: Arc<Inner>,
    actor: Actor,
}

impl Administrator {
    pub(crate) fn new(inner: Arc<Inner>, actor: Actor) -> Self {
        Self { inner, actor }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    pub(crate) fn note(&self, action: Action) -> AuditRecord {
        AuditRecord::new(self.inner.ledger.now(), &self.actor, action)
    }

    /// Sessions of a tenant or of everyone, `limit` at most.
    pub fn sessions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, Error>> {
        Box::pin(async move {
            let find =
                tenant.map_or(Find::All, |tenant| Find::Tenant(self.inner.ledger.keyring.tenant(tenant)));
            let listed = self.all(find, limit).await?;
            let mut note = self.note(Action::SessionListed).counting(listed.len() as u64);
            note.tenant = tenant.map(|tenant| self.inner.ledger.keyring.tenant(tenant).to_string());
            self.inner.ledger.record(note).await?;
            let mut summaries = Vec::with_capacity(listed.len());
            for one in listed {
                // One key that does not open hides its own session's id, and no other's.
                let scope = match self.scope_of(&one).await {
                    Err(Error::Tampered(_)) => None,
                    scope => scope?,
                };
                // The tag only found it. What is another tenant's is not shown here, nor what cannot say whose it is.
                if tenant.is_some() && scope.as_ref().map(Scope::tenant) != tenant {
                    continue;
                }
                summaries.push(SessionSummary {
                    session_id: scope.as_ref().map(Scope::session_id),
                    tenant: scope.as_ref().map(|scope| scope.tenant().as_str().to_owned()),
                    tag: one.names.scope.to_string(),
                    version: one.version,
                    expires_at: one.expires_at,
                    open_turn: one.owner.is_some(),
                });
            }
            Ok(summaries)
        })
    }

    /// Everything that is kept of a person in a tenant.
    pub fn export_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<PersonExport, Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            let theirs = owned::all_of(&self.inner, tenant, user).await?;
            let note = self.note(Action::PersonExported).about(person).counting(theirs.len());
            let note = note.within(self.inner.ledger.keyring.tenant(tenant));
            self.inner.ledger.record(note).await?;
            let known: Vec<Tag> = theirs.names(&self.inner).iter().map(|names| names.scope).collect();
            let mut sessions = Vec::new();
            let mut unreadable = vec![Tampering::KeyGone.name().to_owned(); theirs.without_key.len()];
            unreadable.extend(std::iter::repeat_n(Tampering::KeyRefused.name().to_owned(), theirs.unsaid));
            // What a model has of chats that only their owner can open is a copy: their owner exports those, and nobody else.
            for scope in theirs.scopes.into_iter().filter(|scope| !is_web(scope)) {
                let exported =
                    Session::new(Arc::clone(&self.inner), scope, self.actor.clone()).export().await;
                match exported {
                    Ok(export) => sessions.extend(export),
                    Err(Error::Tampered(tampering)) => unreadable.push(tampering.name().to_owned()),
                    Err(error) => return Err(error),
                }
            }
            sessions.sort_by(|a, b| a.session_id.cmp(&b.session_id));
            let exported_at = self.inner.ledger.now();
            let user_id = user.as_str().to_owned();
            let mut derived = BTreeMap::new();
            for one in &self.inner.ledger.derived {
                match one.export(tenant, user).await {
                    Ok(all) => drop(derived.insert(one.name().to_owned(), all)),
                    // The rest is theirs all the same; that this is missing is said.
                    Err(error @ Error::Derived { .. }) => {
                        tracing::warn!(derived = one.name(), error = %error, "derived data was left out of an export");
                        unreadable.push(one.name().to_owned());
                    }
                    Err(error) => return Err(error),
                }
            }
            // What is in scope of conversations whose sessions have expired.
            let concepts = concepts::export_person(&self.inner, person, &known).await?;
            if !concepts.is_empty() {
                derived.insert("concepts".to_owned(), concepts);
            }
            Ok(PersonExport {
                format: FORMAT.to_owned(),
                user_id,
                exported_at,
                sessions,
                unreadable,
                derived,
            })
        })
    }

    /// How many erasures there have been. What waits elsewhere to become a person's data brings along what this was when it
    /// was asked for.
    pub fn erasures(&self) -> BoxFuture<'_, Result<Epoch, Error>> {
        Box::pin(async move { self.inner.ledger.epoch().await })
    }

    /// The last erasure of this person; the epoch before all others if there was none. What was asked for before it must not
    /// be kept.
    pub fn last_erasure_of_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Epoch, Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            self.inner.ledger.last_erasure_of(person).await
        })
    }

    /// Puts what somebody did with what is derived from a person's conversations into the audit log.
    pub fn note_derived<'a>(
        &'a self,
        action: Action,
        tenant: &'a TenantId,
        user: &'a UserId,
        count: u64,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            let note = self.note(action).about(person).within(self.inner.ledger.keyring.tenant(tenant));
            self.inner.ledger.record(note.counting(count)).await.map(drop)
        })
    }

    /// The same, with the reason in a word that says nothing of the data.
    pub fn note_derived_because<'a>(
        &'a self,
        action: Action,
        tenant: &'a TenantId,
        user: &'a UserId,
        count: u64,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            let note = self.note(action).about(person).within(self.inner.ledger.keyring.tenant(tenant));
            self.inner.ledger.record(note.counting(count).because(reason)).await.map(drop)
        })
    }

    /// The newest audit records about this person that are of one of these kinds, oldest first, `limit` at most. Only the
    /// newest 5,000 records of each lane are looked at.
    pub fn audit_of_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
        actions: &'a [Action],
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditLine>, Error>> {
        Box::pin(async move {
            let person = Some(self.inner.ledger.keyring.person(tenant, user).to_string());
            let mut lines = self.audit(MOST_READ).await?;
            lines.retain(|line| line.record.subject == person && actions.contains(&line.record.action));
            Ok(lines.split_off(lines.len().saturating_sub(limit)))
        })
    }

    /// Says in the audit log that somebody asked for this person's data and was refused.
    pub fn refuse_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            let note = self.note(Action::AccessRefused).about(person);
            self.inner.ledger.record(note.within(self.inner.ledger.keyring.tenant(tenant))).await.map(drop)
        })
    }

    /// How many sessions an erasure of this person would delete.
    pub fn count_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<u64, Error>> {
        Box::pin(async move { Ok(owned::all_of(&self.inner, tenant, user).await?.len()) })
    }

    /// How many derived things an erasure of this person would delete, by name.
    pub fn count_derived<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, u64>, Error>> {
        Box::pin(async move {
            let mut counts = BTreeMap::new();
            for one in &self.inner.ledger.derived {
                counts.insert(one.name().to_owned(), one.count(tenant, user).await?);
            }
            let mut captures = 0;
            let theirs = owned::all_of(&self.inner, tenant, user).await?.names(&self.inner);
            let sessions: Vec<Tag> = theirs.iter().map(|names| names.scope).collect();
            for scope in &sessions {
                captures += concepts::count(&self.inner, *scope).await?;
            }
            let person = self.inner.ledger.keyring.person(tenant, user);
            captures += concepts::count_person(&self.inner, person, &sessions).await?;
            if captures > 0 {
                counts.insert("captures".to_owned(), captures);
            }
            Ok(counts)
        })
    }

    /// Erases everything of a person in a tenant, in every channel.
    pub fn erase_person<'a>(
        &'a self,
        tenant: &'a TenantId,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Receipt, Error>> {
        Box::pin(async move {
            let person = self.inner.ledger.keyring.person(tenant, user);
            let _room = self.inner.ledger.room();
            // Before anything is looked for: what is made after the look was asked for after this, or is refused.
            let epoch = self.inner.ledger.begin_erasure(person).await?;
            let theirs = owned::all_of(&self.inner, tenant, user).await?;
            let scopes: Vec<_> = theirs.names(&self.inner).into_iter().map(|names| (names, None)).collect();
            // What was derived goes first. What of it cannot be ended keeps nothing else from its end, but there is no receipt.
            let (mut derived, mut left) = (BTreeMap::new(), None);
            for one in &self.inner.ledger.derived {
                match one.erase(tenant, user).await {
                    Ok(gone) => drop(derived.insert(one.name().to_owned(), gone)),
                    Err(error) => left = left.or(Some(error)),
                }
            }
            let whose = Whose { tenant: tenant.clone(), user: user.clone() };
            let tags = (person, self.inner.ledger.keyring.tenant(tenant), epoch);
            let erased =
                erase(&self.inner, &self.actor, Subject::Person(derived, whose), tags, &scopes).await?;
            web_cache::end_elsewhere(&self.inner, tenant, user).await;
            left.map_or(Ok(erased), |error| Err(incomplete(error)))
        })
    }

    /// The newest audit records of all lanes, oldest first, each checked against the one before it.
    pub fn audit(&self, limit: usize) -> BoxFuture<'_, Result<Vec<AuditLine>, Error>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            for lane in self.inner.ledger.store.lanes().await? {
                let after = lane.head.seq.saturating_sub(limit as u64);
                let after = after.max(lane.floor.map_or(0, |floor| floor.seq));
                lines.extend(self.audit_lane(lane.head.lane, after, limit).await?);
            }
            lines.sort_by_key(|line| (line.record.at, line.lane, line.seq));
            Ok(lines.split_off(lines.len().saturating_sub(limit)))
        })
    }

    /// Audit records of a lane after a sequence, each checked against the one before it.
    pub fn audit_lane(
        &self,
        lane: Lane,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AuditLine>, Error>> {
        Box::pin(async move {
            let store = &*self.inner.ledger.store;
            let before = match store.lanes().await?.iter().find(|found| found.head.lane == lane) {
                None => return Ok(Vec::new()),
                // What the lane begins with follows from its floor.
                Some(found) if found.floor.map_or(0, |floor| floor.seq) >= after => found.floor,
                Some(_) => match store.audit(lane, after - 1, 1).await?.first() {
                    Some((seq, sealed)) => sealed.tag().map(|tag| AuditHead { lane, seq: *seq, tag }),
                    None => return Ok(Vec::new()),
                },
            };
            audit::read(store, self.inner.ledger.keyring.audit_key(), lane, before, limit).await
        })
    }

    /// A page of the audit records of one tenant, lane by lane and oldest first, each checked against the one before it.
    /// Begins at `from`; `next` says where the next page does, and is nothing at the end. A lane is read to where it ended when
    /// its reading began: reading is recorded, too, and would have no end otherwise.
    pub fn audit_page<'a>(
        &'a self,
        tenant: &'a TenantId,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<AuditPage, Error>> {
        Box::pin(async move {
            let whose = Some(self.inner.ledger.keyring.tenant(tenant).to_string());
            let mut heads: Vec<AuditHead> =
                self.inner.ledger.store.lanes().await?.iter().map(|lane| lane.head).collect();
            heads.sort_unstable_by_key(|head| head.lane);
            let (mut lines, mut read, mut next) = (Vec::new(), 0, None);
            'lanes: for head in
                heads.into_iter().filter(|head| from.is_none_or(|from| head.lane >= from.lane))
            {
                let begins = AuditCursor { lane: head.lane, after: 0, until: head.seq };
                let mut at = from.filter(|from| from.lane == head.lane).unwrap_or(begins);
                while at.after < at.until {
                    if lines.len() >= limit || read >= MOST_READ {
                        next = Some(at);
                        break 'lanes;
                    }
                    let most = (limit - lines.len()).clamp(1, AT_ONCE);
                    let mut page = self.audit_lane(at.lane, at.after, most).await?;
                    page.retain(|line| line.seq <= at.until);
                    let Some(last) = page.last() else { break };
                    (at.after, read) = (last.seq, read + page.len());
                    lines.extend(page.into_iter().filter(|line| line.record.tenant == whose));
                }
            }
            let note = self.note(Action::AuditViewed).within(self.inner.ledger.keyring.tenant(tenant));
            self.inner.ledger.record(note.counting(lines.len() as u64)).await?;
            Ok(AuditPage { lines, next })
        })
    }

    /// Writes into the audit log that keys were used, and for how many.
    pub fn note_keys(&self, action: Action, count: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.inner.ledger.record(self.note(action).counting(count)).await.map(drop) })
    }

    /// Where every lane of the audit log ends now: kept elsewhere, it shows later whether the log was cut or replaced.
    pub fn audit_heads(&self) -> BoxFuture<'_, Result<Vec<AuditEnd>, Error>> {
        Box::pin(async move {
            let lanes = self.inner.ledger.store.lanes().await?;
            let end = |head: AuditHead| AuditEnd {
                lane: head.lane,
                seq: head.seq,
                tag: Tag::from_bytes(head.tag).to_string(),
            };
            Ok(lanes.into_iter().map(|lane| end(lane.head)).collect())
        })
    }

    /// Checks the whole audit log, lane by lane; says how many records it has.
    pub fn verify_audit(&self) -> BoxFuture<'_, Result<u64, Error>> {
        Box::pin(async move {
            let (store, key) = (&*self.inner.ledger.store, self.inner.ledger.keyring.audit_key());
            // The keyring first: what it has seen must not be newer than the lanes that are held against it.
            let anchors = self.inner.ledger.keyring.store().lane_anchors().await?;
            let lanes = store.lanes().await?;
            let names: BTreeSet<Lane> = lanes
                .iter()
                .map(|lane| lane.head.lane)
                .chain(anchors.iter().map(|anchor| anchor.lane))
                .collect();
            let mut records = 0;
            for lane in names {
                let found = lanes.iter().find(|found| found.head.lane == lane);
                records += audit::verify(store, key, lane, found, &anchors, self.inner.ledger.now()).await?;
            }
            Ok(records)
        })
    }

    /// Checks a receipt: its signature, its audit record as long as that is kept, and that what it says is gone is gone.
    pub fn verify_receipt<'a>(&'a self, receipt: &'a Receipt) -> BoxFuture<'a, Result<ReceiptProof, Error>> {
        Box::pin(async move {
            let unverified = |what: &str| Error::Unverified {
                what: what.to_owned(),
                hint: "check that the receipt is unchanged and belongs to this installation",
            };
            if !is_signed(&self.inner, receipt) {
                return Err(unverified("the receipt's signature is not valid"));
            }
            self.verify_audit().await?;
            let lines = self.audit_lane(receipt.audit_lane, receipt.audit_seq.saturating_sub(1), 1).await?;
            let stands = lines.first().is_some_and(|line| {
                line.seq == receipt.audit_seq
                    && line.tag == receipt.audit_tag
                    && line.record.subject.as_ref() == Some(&receipt.subject)
            });
            let proof = match stands {
                true => ReceiptProof::Recorded,
                false if self.is_past_its_time(receipt).await? => ReceiptProof::Outlived,
                false => return Err(unverified("the audit log has no record of this erasure")),
            };
            let mut after = None;
            loop {
                let rows = self.inner.ledger.keyring.store().list(after, AT_ONCE).await?;
                let Some(last) = rows.last() else { return Ok(proof) };
                after = Some(last.scope);
                for row in rows {
                    if receipt.keys.contains(&row.kid.to_string()) {
                        return Err(unverified(
                            "the keyring holds a key that the receipt says was destroyed",
                        ));
                    }
                    if self.is_there_again(receipt, &row).await? {
                        return Err(Error::Unverified {
                            what: "a session that the receipt says was erased exists again".to_owned(),
                            hint: "erase the person or session again, and find out who put it back",
                        });
                    }
                }
            }
        })
    }

    /// Whether a key is of what the receipt is about, older than that erasure, and has a log. What was begun afterwards is fine.
    async fn is_there_again(&self, receipt: &Receipt, row: &KeyRow) -> Result<bool, Error> {
        let keyring = &self.inner.ledger.keyring;
        if born(row) >= receipt.epoch {
            return Ok(false);
        }
        let of_it = if receipt.subject == row.scope.to_string() {
            true
        } else if receipt.erased == "person" {
            // One that does not open is nobody's; `keys verify` names it.
            let scope = keyring.scope_of(row).ok();
            scope.is_some_and(|scope| keyring.names(&scope).person.to_string() == receipt.subject)
        } else {
            false
        };
        Ok(of_it && self.inner.ledger.store.load(row.scope, None).await?.is_some())
    }

    /// Whether the audit log has let go of a receipt's record in time, and nobody cut it out.
    async fn is_past_its_time(&self, receipt: &Receipt) -> Result<bool, Error> {
        let anchors = self.inner.ledger.keyring.store().lane_anchors().await?;
        let lanes = self.inner.ledger.store.lanes().await?;
        let found = lanes.iter().find(|found| found.head.lane == receipt.audit_lane);
        let floor = found.map_or(u64::MAX, |lane| lane.floor.map_or(0, |floor| floor.seq));
        let gone = audit::may_be_gone(receipt.audit_lane, &anchors, self.inner.ledger.now());
        Ok(receipt.audit_seq <= gone.min(floor))
    }

    /// Opens every key and every log.
    pub fn verify_everything(&self) -> BoxFuture<'_, Result<Verified, Error>> {
        Box::pin(async move {
            let mut verified = Verified::default();
            let mut faults: BTreeMap<String, &'static str> = BTreeMap::new();
            let mut owners: BTreeMap<Tag, Scope> = BTreeMap::new();
            let inner = &self.inner;
            let (marks, behind) = inner.ledger.all_erasures().await?;
            faults.extend(behind.into_iter().map(|name| (name, Tampering::PutBack.name())));
            inner
                .ledger
                .keyring
                .read_through(&mut |Owned { row, scope, fault }| {
                    let fault = match scope {
                        Ok(scope) => {
                            let erased = marks.last(&inner.ledger.keyring.names(&scope));
                            owners.insert(row.scope, scope);
                            fault.or((born(&row) < erased).then_some(Tampering::PutBack))
                        }
                        Err(fault) => Some(fault),
                    };
                    match fault {
                        None => verified.keys += 1,
                        Some(fault) => drop(faults.insert(row.scope.to_string(), fault.name())),
                    }
                })
                .await?;
            for one in self.all(Find::All, usize::MAX).await? {
                let fault = match owners.get(&one.names.scope) {
                    None => Some(Tampering::KeyGone),
                    Some(scope) if inner.ledger.keyring.names(scope) != one.names => {
                        Some(Tampering::Relabelled)
                    }
                    Some(_) => None,
                };
                if let Some(fault) = fault {
                    faults.entry(one.names.scope.to_string()).or_insert(fault.name());
                }
            }
            // By the keys, not by the lists: a log that was taken out of these, or away, is missed.
            for (tag, scope) in owners {
                let opened = if concepts::is_conversation(&scope) {
                    concepts::check(inner, scope).await.map(|()| false)
                } else if is_account_key(&scope) {
                    Ok(false)
                } else {
                    let session = Session::new(Arc::clone(inner), scope, self.actor.clone());
                    session::open(&session).await.map(|opened| opened.is_some())
                };
                match opened {
                    Ok(there) => {
                        verified.sessions += u64::from(there && !faults.contains_key(&tag.to_string()))
                    }
                    Err(Error::Tampered(tampering)) => {
                        faults.entry(tag.to_string()).or_insert(tampering.name());
                    }
                    Err(error) => return Err(error),
                }
            }
            for id in self.refused_tokens().await? {
                faults.entry(format!("token {id}")).or_insert(Tampering::RecordRefused.name());
            }
            self.note_keys(Action::KeysVerified, verified.keys).await?;
            verified.refused = faults.into_iter().map(|(tag, reason)| (tag, reason.to_owned())).collect();
            match self.verify_audit().await {
                Ok(records) => verified.audit_records = records,
                Err(Error::Unverified { what, hint }) => {
                    verified.audit_fault = Some(format!("{what}; hint: {hint}"))
                }
                Err(error) => return Err(error),
            }
            Ok(verified)
        })
    }

    /// Takes the logs as they are now for the truth, as after restoring a backup; says how many were behind. One whose key
    /// does not open is left as it is, and stays refused.
    pub fn accept_restore(&self) -> BoxFuture<'_, Result<u64, Error>> {
        Box::pin(async move {
            let (mut behind, mut after) = (Vec::new(), None);
            loop {
                let rows = self.inner.ledger.keyring.store().list(after, AT_ONCE).await?;
                let Some(last) = rows.last() else { break };
                after = Some(last.scope);
                for row in rows {
                    let scope = match self.inner.ledger.keyring.scope_of(&row) {
                        Err(Error::Tampered(tampering)) => {
                            let reason = tampering.name();
                            tracing::warn!(scope.tag = %row.scope, reason, "a key cannot be opened; it is left as it is");
                            continue;
                        }
                        scope => scope?,
                    };
                    // Its record says which revision it is, and is not ours to read.
                    if is_account_key(&scope) {
                        continue;
                    }
                    let version = if concepts::is_conversation(&scope) {
                        concepts::stored_version(&self.inner, scope).await?
                    } else {
                        self.inner
                            .ledger
                            .store
                            .load(row.scope, None)
                            .await?
                            .map_or(0, |loaded| loaded.version)
                    };
                    if version < row.anchor {
                        let KeyRow { scope, kid, expires_at, .. } = row;
                        behind.push(Anchor { scope, kid, version, expires_at });
                    }
                }
            }
            let lanes = self.inner.ledger.lanes_as_they_are().await?;
            self.inner.ledger.keyring.store().reset_anchors(&behind, &lanes).await?;
            self.inner.ledger.slots.clear();
            self.inner
                .ledger
                .record(self.note(Action::RestoreAccepted).counting(behind.len() as u64))
                .await?;
            Ok(behind.len() as u64)
        })
    }

    async fn all(&self, find: Find, limit: usize) -> Result<Vec<Listed>, Error> {
        owned::all(&self.inner, find, limit).await
    }

    async fn scope_of(&self, listed: &Listed) -> Result<Option<Scope>, Error> {
        let keyring = &self.inner.ledger.keyring;
        match keyring.store().get(listed.names.scope).await? {
            Some(row) => keyring.scope_of(&row).map(Some),
            None => Ok(None),
        }
    }
}

const AT_ONCE: usize = 500;
/// The most records that one page looks at, so that a tenant of few among many is told what there is so far.
const MOST_READ: usize = 5000;

/// A page of a tenant's audit records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The records.
    pub lines: Vec<AuditLine>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<AuditCursor>,
}

/// A place in the audit log, while it is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCursor {
    /// The lane that is being read.
    pub lane: Lane,
    /// The last record that was read.
    pub after: u64,
    /// The record that the lane ended with when its reading began.
    pub until: u64,
}

/// Where a lane of the audit log ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditEnd {
    /// The lane.
    pub lane: Lane,
    /// The sequence of its last record.
    pub seq: u64,
    /// That record's tag in hex.
    pub tag: String,
}

/// One session in a list.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct SessionSummary {
    /// Its readable id; missing when its key is gone or does not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tenant; missing when the key is gone or does not open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The name under which logs mention it.
    pub tag: String,
    /// The log's version.
    pub version: u64,
    /// When it ends if nothing more is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
    /// Whether a turn is open.
    pub open_turn: bool,
}

/// What a receipt was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptProof {
    /// Its signature, its audit record, and the keyring.
    Recorded,
    /// Its signature and the keyring: the audit record is past its time.
    Outlived,
}

/// What a check of everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Session keys that open.
    pub keys: u64,
    /// Session logs that open, from their first record to their last.
    pub sessions: u64,
    /// Keys and sessions that do not, by tag, with the name of the reason.
    pub refused: Vec<(String, String)>,
    /// Audit records that are in their place.
    pub audit_records: u64,
    /// What is wrong with the audit chain, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_fault: Option<String>,
}
