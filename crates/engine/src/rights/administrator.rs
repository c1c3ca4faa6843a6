//! The door to what is not one's own: listing, people, the audit log, checks of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use confidant_seal::{Scope, TenantId, UserId};
use serde::Serialize;

use super::erasure::{Receipt, Subject, erase, is_signed};
use super::{FORMAT, PersonExport};
use crate::audit::{self, Action, Actor, AuditLine, AuditRecord, Lane};
use crate::clock::Millis;
use crate::concepts;
use crate::engine::Inner;
use crate::error::{Error, Tampering};
use crate::session::{self, Session};
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
        AuditRecord::new(self.inner.now(), &self.actor, action)
    }

    /// Sessions of a tenant or of everyone, `limit` at most.
    pub async fn sessions(
        &self,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>, Error> {
        let find = tenant.map_or(Find::All, |tenant| Find::Tenant(self.inner.keyring.tenant(tenant)));
        let listed = self.all(find, limit).await?;
        self.inner.record(self.note(Action::SessionListed).counting(listed.len() as u64)).await?;
        let mut summaries = Vec::with_capacity(listed.len());
        for one in listed {
            // One key that does not open hides its own session's id, and no other's.
            let scope = match self.scope_of(&one).await {
                Err(Error::Tampered(_)) => None,
                scope => scope?,
            };
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
    }

    /// Everything that is kept of a person in a tenant.
    pub async fn export_person(&self, tenant: &TenantId, user: &UserId) -> Result<PersonExport, Error> {
        let person = self.inner.keyring.person(tenant, user);
        let listed = self.all_of(tenant, user).await?;
        let note = self.note(Action::PersonExported).about(person).counting(listed.len() as u64);
        self.inner.record(note).await?;
        let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
        for one in listed {
            let exported = match self.scope_of(&one).await {
                Ok(Some(scope)) => {
                    Session::new(Arc::clone(&self.inner), scope, self.actor.clone()).export().await
                }
                Ok(None) => Err(Tampering::KeyGone.into()),
                Err(error) => Err(error),
            };
            match exported {
                Ok(export) => sessions.extend(export),
                Err(Error::Tampered(tampering)) => unreadable.push(tampering.name().to_owned()),
                Err(error) => return Err(error),
            }
        }
        sessions.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        let exported_at = self.inner.now();
        let user_id = user.as_str().to_owned();
        let mut derived = BTreeMap::new();
        for one in &self.inner.derived {
            derived.insert(one.name().to_owned(), one.export(tenant, user).await?);
        }
        Ok(PersonExport { format: FORMAT.to_owned(), user_id, exported_at, sessions, unreadable, derived })
    }

    /// Puts what somebody did with what is derived from a person's conversations into the audit log.
    pub async fn note_derived(
        &self,
        action: Action,
        tenant: &TenantId,
        user: &UserId,
        count: u64,
    ) -> Result<(), Error> {
        let person = self.inner.keyring.person(tenant, user);
        self.inner.record(self.note(action).about(person).counting(count)).await.map(drop)
    }

    /// Says in the audit log that somebody asked for this person's data and was refused.
    pub async fn refuse_person(&self, tenant: &TenantId, user: &UserId) -> Result<(), Error> {
        let person = self.inner.keyring.person(tenant, user);
        self.inner.record(self.note(Action::AccessRefused).about(person)).await.map(drop)
    }

    /// How many sessions an erasure of this person would end.
    pub async fn count_person(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error> {
        Ok(self.all_of(tenant, user).await?.len() as u64)
    }

    /// How much of what is derived an erasure of this person would end, by name.
    pub async fn count_derived(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let mut counts = BTreeMap::new();
        for one in &self.inner.derived {
            counts.insert(one.name().to_owned(), one.count(tenant, user).await?);
        }
        let mut captures = 0;
        for one in self.all_of(tenant, user).await? {
            captures += concepts::count(&self.inner, one.names.scope).await?;
        }
        if captures > 0 {
            counts.insert("captures".to_owned(), captures);
        }
        Ok(counts)
    }

    /// Ends everything of a person in a tenant, in every channel.
    pub async fn erase_person(&self, tenant: &TenantId, user: &UserId) -> Result<Receipt, Error> {
        let person = self.inner.keyring.person(tenant, user);
        let listed = self.all_of(tenant, user).await?;
        let scopes: Vec<_> = listed.iter().map(|one| (one.names, None)).collect();
        // What was derived goes first: if it cannot be ended, there is no receipt that says so.
        let mut derived = BTreeMap::new();
        for one in &self.inner.derived {
            derived.insert(one.name().to_owned(), one.erase(tenant, user).await?);
        }
        erase(&self.inner, &self.actor, Subject::Person(derived), person, &scopes).await
    }

    /// The newest audit records of all lanes, oldest first, each checked against the one before it.
    pub async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, Error> {
        let mut lines = Vec::new();
        for lane in self.inner.store.lanes().await? {
            let after = lane.head.seq.saturating_sub(limit as u64);
            let after = after.max(lane.floor.map_or(0, |floor| floor.seq));
            lines.extend(self.audit_lane(lane.head.lane, after, limit).await?);
        }
        lines.sort_by_key(|line| (line.record.at, line.lane, line.seq));
        Ok(lines.split_off(lines.len().saturating_sub(limit)))
    }

    /// Audit records of a lane after a sequence, each checked against the one before it.
    pub async fn audit_lane(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<AuditLine>, Error> {
        let store = &self.inner.store;
        let before = match store.lanes().await?.iter().find(|found| found.head.lane == lane) {
            None => return Ok(Vec::new()),
            // What the lane begins with follows from its floor.
            Some(found) if found.floor.map_or(0, |floor| floor.seq) >= after => found.floor,
            Some(_) => match store.audit(lane, after - 1, 1).await?.first() {
                Some((seq, sealed)) => sealed.tag().map(|tag| AuditHead { lane, seq: *seq, tag }),
                None => return Ok(Vec::new()),
            },
        };
        audit::read(store, self.inner.keyring.audit_key(), lane, before, limit).await
    }

    /// Checks the whole audit log, lane by lane; says how many records it has.
    pub async fn verify_audit(&self) -> Result<u64, Error> {
        let (store, key) = (&self.inner.store, self.inner.keyring.audit_key());
        // The keyring first: what it has seen must not be newer than the lanes that are held against it.
        let anchors = self.inner.keyring.store().lane_anchors().await?;
        let lanes = store.lanes().await?;
        let names: BTreeSet<Lane> =
            lanes.iter().map(|lane| lane.head.lane).chain(anchors.iter().map(|anchor| anchor.lane)).collect();
        let mut records = 0;
        for lane in names {
            let found = lanes.iter().find(|found| found.head.lane == lane);
            records += audit::verify(store, key, lane, found, &anchors, self.inner.now()).await?;
        }
        Ok(records)
    }

    /// Checks a receipt: its signature, its audit record as long as that is kept, and that what it says is gone is gone.
    pub async fn verify_receipt(&self, receipt: &Receipt) -> Result<ReceiptProof, Error> {
        let unverified = |what: &str| Error::Unverified {
            what: what.to_owned(),
            hint: "check that the receipt is unchanged and belongs to this installation",
        };
        if !is_signed(&self.inner, receipt) {
            return Err(unverified("the receipt's signature does not hold"));
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
            false => return Err(unverified("the audit log has no such record")),
        };
        let mut after = None;
        loop {
            let rows = self.inner.keyring.store().list(after, AT_ONCE).await?;
            let Some(last) = rows.last() else { return Ok(proof) };
            after = Some(last.scope);
            if rows.iter().any(|row| receipt.keys.contains(&row.kid.to_string())) {
                return Err(unverified("a key that the receipt says was destroyed is in the keyring"));
            }
        }
    }

    /// Whether the audit log has let go of a receipt's record in time, and nobody cut it out.
    async fn is_past_its_time(&self, receipt: &Receipt) -> Result<bool, Error> {
        let anchors = self.inner.keyring.store().lane_anchors().await?;
        let lanes = self.inner.store.lanes().await?;
        let found = lanes.iter().find(|found| found.head.lane == receipt.audit_lane);
        let floor = found.map_or(u64::MAX, |lane| lane.floor.map_or(0, |floor| floor.seq));
        let gone = audit::may_be_gone(receipt.audit_lane, &anchors, self.inner.now());
        Ok(receipt.audit_seq <= gone.min(floor))
    }

    /// Opens every key and every log.
    pub async fn verify_everything(&self) -> Result<Verified, Error> {
        let (keys, refused) = self.inner.keyring.verify().await?;
        let mut verified = Verified { keys, ..Verified::default() };
        let mut faults: BTreeMap<String, &'static str> =
            refused.iter().map(|tag| (tag.to_string(), Tampering::KeyRefused.name())).collect();
        for one in self.all(Find::All, usize::MAX).await? {
            let opened = match self.scope_of(&one).await {
                Ok(Some(scope)) => {
                    let session = Session::new(Arc::clone(&self.inner), scope, self.actor.clone());
                    session::open(&session).await.map(drop)
                }
                Ok(None) => Err(Tampering::KeyGone.into()),
                Err(error) => Err(error),
            };
            match opened {
                Ok(()) => verified.sessions += 1,
                Err(Error::Tampered(tampering)) => {
                    faults.entry(one.names.scope.to_string()).or_insert(tampering.name());
                }
                Err(error) => return Err(error),
            }
        }
        verified.refused = faults.into_iter().map(|(tag, reason)| (tag, reason.to_owned())).collect();
        match self.verify_audit().await {
            Ok(records) => verified.audit_records = records,
            Err(Error::Unverified { what, hint }) => {
                verified.audit_fault = Some(format!("{what}; hint: {hint}"))
            }
            Err(error) => return Err(error),
        }
        Ok(verified)
    }

    /// Takes the logs as they are now for the truth, as after restoring a backup; says how many were behind. One whose key
    /// does not open is left as it is, and stays refused.
    pub async fn accept_restore(&self) -> Result<u64, Error> {
        let (mut behind, mut after) = (Vec::new(), None);
        loop {
            let rows = self.inner.keyring.store().list(after, AT_ONCE).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last.scope);
            for row in rows {
                let scope = match self.inner.keyring.scope_of(&row) {
                    Err(Error::Tampered(tampering)) => {
                        let reason = tampering.name();
                        tracing::warn!(scope.tag = %row.scope, reason, "a key does not open; it is left as it is");
                        continue;
                    }
                    scope => scope?,
                };
                let version = if concepts::is_conversation(&scope) {
                    concepts::stored_version(&self.inner, scope).await?
                } else {
                    self.inner.store.load(row.scope, None).await?.map_or(0, |loaded| loaded.version)
                };
                if version < row.anchor {
                    let KeyRow { scope, kid, expires_at, .. } = row;
                    behind.push(Anchor { scope, kid, version, expires_at });
                }
            }
        }
        let lanes = self.inner.lanes_as_they_are().await?;
        self.inner.keyring.store().reset_anchors(&behind, &lanes).await?;
        self.inner.slots.clear();
        self.inner.record(self.note(Action::RestoreAccepted).counting(behind.len() as u64)).await?;
        Ok(behind.len() as u64)
    }

    /// The sessions of a person in a tenant.
    async fn all_of(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<Listed>, Error> {
        let keyring = &self.inner.keyring;
        let find = Find::Person { tenant: keyring.tenant(tenant), person: keyring.person(tenant, user) };
        self.all(find, usize::MAX).await
    }

    async fn all(&self, find: Find, limit: usize) -> Result<Vec<Listed>, Error> {
        let mut all: Vec<Listed> = Vec::new();
        while all.len() < limit {
            let after = all.last().map(|one| one.names.scope);
            let page = self.inner.store.list(find, after, AT_ONCE.min(limit - all.len())).await?;
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        Ok(all)
    }

    async fn scope_of(&self, listed: &Listed) -> Result<Option<Scope>, Error> {
        let keyring = &self.inner.keyring;
        match keyring.store().get(listed.names.scope).await? {
            Some(row) => keyring.scope_of(&row).map(Some),
            None => Ok(None),
        }
    }
}

const AT_ONCE: usize = 500;

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

/// What a receipt was held against.
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
