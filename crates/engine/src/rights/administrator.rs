//! The door to what is not one's own: listing, people, the audit log, checks of everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_seal::{Scope, Tag, TenantId, UserId};
use serde::Serialize;

use super::erasure::{Receipt, Subject, erase, is_signed};
use super::{FORMAT, PersonExport};
use crate::audit::{self, Action, Actor, AuditLine, AuditRecord};
use crate::clock::Millis;
use crate::concepts;
use crate::engine::Inner;
use crate::error::{Error, Tampering};
use crate::session::{self, Session};
use crate::store::{Anchor, Find, Listed};

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
            let scope = self.scope_of(&one).await?;
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
        let listed = self.all(Find::Person(person), usize::MAX).await?;
        let note = self.note(Action::PersonExported).about(person).counting(listed.len() as u64);
        self.inner.record(note).await?;
        let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
        for one in listed {
            let exported = match self.scope_of(&one).await? {
                Some(scope) => {
                    Session::new(Arc::clone(&self.inner), scope, self.actor.clone()).export().await
                }
                None => Err(Tampering::KeyGone.into()),
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
        let person = self.inner.keyring.person(tenant, user);
        Ok(self.all(Find::Person(person), usize::MAX).await?.len() as u64)
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
        Ok(counts)
    }

    /// Ends everything of a person in a tenant, in every channel.
    pub async fn erase_person(&self, tenant: &TenantId, user: &UserId) -> Result<Receipt, Error> {
        let person = self.inner.keyring.person(tenant, user);
        let scopes: Vec<Tag> =
            self.all(Find::Person(person), usize::MAX).await?.iter().map(|l| l.names.scope).collect();
        // What was derived goes first: if it cannot be ended, there is no receipt that says so.
        let mut derived = BTreeMap::new();
        for one in &self.inner.derived {
            derived.insert(one.name().to_owned(), one.erase(tenant, user).await?);
        }
        erase(&self.inner, &self.actor, Subject::Person(derived), person, &scopes).await
    }

    /// Audit records after a sequence, each checked against the one before it.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditLine>, Error> {
        let previous = match after {
            0 => None,
            after => match self.inner.store.audit(after - 1, 1).await?.first() {
                Some((_, sealed)) => sealed.tag(),
                None => return Ok(Vec::new()),
            },
        };
        audit::read(&self.inner.store, self.inner.keyring.audit_key(), after, previous, limit).await
    }

    /// Checks the whole audit chain; says how many records it has.
    pub async fn verify_audit(&self) -> Result<u64, Error> {
        let (mut seq, mut previous) = (0, None);
        loop {
            let store = &self.inner.store;
            let lines = audit::read(store, self.inner.keyring.audit_key(), seq, previous, AT_ONCE).await?;
            let Some(last) = lines.last() else { break };
            seq = last.seq;
            previous = Tag::from_hex(&last.tag).map(|tag| *tag.as_bytes());
        }
        let anchor = self.inner.keyring.store().audit_anchor().await?;
        if seq < anchor {
            return Err(audit::broken(seq + 1, "and all after it are missing: the keyring has seen more"));
        }
        Ok(seq)
    }

    /// Checks a receipt: its signature, its audit record, and that what it says is gone is gone.
    pub async fn verify_receipt(&self, receipt: &Receipt) -> Result<(), Error> {
        let unverified = |what: &str| Error::Unverified {
            what: what.to_owned(),
            hint: "check that the receipt is unchanged and belongs to this installation",
        };
        if !is_signed(&self.inner, receipt) {
            return Err(unverified("the receipt's signature does not hold"));
        }
        self.verify_audit().await?;
        let lines = self.audit(receipt.audit_seq.saturating_sub(1), 1).await?;
        let stands = lines.first().is_some_and(|line| {
            line.seq == receipt.audit_seq
                && line.tag == receipt.audit_tag
                && line.record.subject.as_ref() == Some(&receipt.subject)
        });
        if !stands {
            return Err(unverified("the audit log has no such record"));
        }
        let mut after = None;
        loop {
            let rows = self.inner.keyring.store().list(after, AT_ONCE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.scope);
            if rows.iter().any(|row| receipt.keys.contains(&row.kid.to_string())) {
                return Err(unverified("a key that the receipt says was destroyed is in the keyring"));
            }
        }
    }

    /// Opens every key and every log.
    pub async fn verify_everything(&self) -> Result<Verified, Error> {
        let mut verified = Verified { keys: self.inner.keyring.verify().await?, ..Verified::default() };
        for one in self.all(Find::All, usize::MAX).await? {
            let opened = match self.scope_of(&one).await? {
                Some(scope) => {
                    let session = Session::new(Arc::clone(&self.inner), scope, self.actor.clone());
                    session::open(&session).await.map(drop)
                }
                None => Err(Tampering::KeyGone.into()),
            };
            match opened {
                Ok(()) => verified.sessions += 1,
                Err(Error::Tampered(t)) => {
                    verified.refused.push((one.names.scope.to_string(), t.name().to_owned()))
                }
                Err(error) => return Err(error),
            }
        }
        match self.verify_audit().await {
            Ok(records) => verified.audit_records = records,
            Err(Error::Unverified { what, hint }) => {
                verified.audit_fault = Some(format!("{what}; hint: {hint}"))
            }
            Err(error) => return Err(error),
        }
        Ok(verified)
    }

    /// Takes the logs as they are now for the truth, as after restoring a backup; says how many were behind.
    pub async fn accept_restore(&self) -> Result<u64, Error> {
        let (mut behind, mut after) = (Vec::new(), None);
        loop {
            let rows = self.inner.keyring.store().list(after, AT_ONCE).await?;
            let Some(last) = rows.last() else { break };
            after = Some(last.scope);
            for row in rows {
                let scope = self.inner.keyring.scope_of(&row)?;
                let version = if concepts::is_conversation(&scope) {
                    concepts::stored_version(&self.inner, scope).await?
                } else {
                    self.inner.store.load(row.scope).await?.map_or(0, |loaded| loaded.version)
                };
                if version < row.anchor {
                    behind.push(Anchor { scope: row.scope, kid: row.kid, version });
                }
            }
        }
        let audit = self.inner.store.record(Vec::new()).await?.map_or(0, |head| head.seq);
        self.inner.keyring.store().reset_anchors(&behind, audit).await?;
        self.inner.slots.clear();
        self.inner.record(self.note(Action::RestoreAccepted).counting(behind.len() as u64)).await?;
        Ok(behind.len() as u64)
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
    /// Its readable id; missing when its key is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tenant; missing when the key is gone.
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

/// What a check of everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Session keys that open.
    pub keys: u64,
    /// Session logs that open, from their first record to their last.
    pub sessions: u64,
    /// Sessions that do not, by tag, with the name of the reason.
    pub refused: Vec<(String, String)>,
    /// Audit records that are in their place.
    pub audit_records: u64,
    /// What is wrong with the audit chain, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_fault: Option<String>,
}
