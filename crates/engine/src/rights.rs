//! What people may ask of their data: a portable copy, and its end, with proof.
//!
//! Erasure destroys the key first, in the keyring, so that from that moment on nothing opens, whatever copies of the
//! data exist; then the rows, then what journals and free pages still hold. The receipt says what went, is signed with
//! the audit key and names the audit record that stands for it.

use std::sync::Arc;

use confidant_seal::{Kid, Scope, Tag, TenantId, UserId};
use serde::{Deserialize, Serialize};

use crate::audience::Audience;
use crate::audit::{self, Action, Actor, AuditLine, AuditRecord};
use crate::clock::Millis;
use crate::engine::Inner;
use crate::entry::{Entry, Exchange, Reply, ReplyFrom};
use crate::error::{Error, Tampering};
use crate::session::{self, Session, Wrote};
use crate::store::{Anchor, Find, Listed};

/// A session's content, decrypted and portable.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The form of this document.
    pub format: String,
    /// Whose memory it is.
    pub session_id: String,
    /// When it was exported.
    pub exported_at: Millis,
    /// The log's version.
    pub version: u64,
    /// What was said, oldest first.
    pub messages: Vec<ExportedMessage>,
}

/// One message of an export.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedMessage {
    /// `human`, `ai` or `tool`.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// What was said.
    pub content: String,
    /// When.
    pub timestamp: Millis,
    /// Who could read it.
    pub audience: Audience,
    /// The turn it belongs to.
    pub request_id: String,
    /// The model or tool that spoke.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Why the message has no answer, if its turn ended without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unanswered: Option<String>,
}

/// Who speaks in an exported message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageKind {
    /// The person.
    Human,
    /// The agent.
    Ai,
    /// A tool.
    Tool,
}

/// Everything that is kept of a person.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonExport {
    /// The form of this document.
    pub format: String,
    /// Who it is about.
    pub user_id: String,
    /// When it was exported.
    pub exported_at: Millis,
    /// Their sessions.
    pub sessions: Vec<Export>,
    /// Sessions of theirs that could not be opened, by the name of the reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<String>,
}

/// Proof of an erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What was erased: `session` or `person`.
    pub erased: String,
    /// Whose, as a tag: only the keyring can tell whom it stands for.
    pub subject: String,
    /// When.
    pub at: Millis,
    /// Sessions that went.
    pub sessions: u64,
    /// Log records that went.
    pub records: u64,
    /// Access tokens of the person that went.
    pub tokens: u64,
    /// The data keys that were destroyed, by id.
    pub keys: Vec<String>,
    /// The audit record that stands for it.
    pub audit_seq: u64,
    /// That record's tag.
    pub audit_tag: String,
    /// Signature with the audit key over all of the above.
    pub signature: String,
}

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

const FORMAT: &str = "confidant/export/v1";

impl Session {
    /// The session's content, to be taken away; `None` if there is no such session.
    pub async fn export(&self) -> Result<Option<Export>, Error> {
        self.content(Action::SessionExported).await
    }

    /// The session's content, to be looked at; `None` if there is no such session.
    pub async fn view(&self) -> Result<Option<Export>, Error> {
        self.content(Action::SessionViewed).await
    }

    async fn content(&self, action: Action) -> Result<Option<Export>, Error> {
        let Some((log, _)) = session::open(self).await? else { return Ok(None) };
        // Recorded before anything is handed out.
        self.inner.record(self.record(action).counting(log.version())).await?;
        Ok(Some(Export {
            format: FORMAT.to_owned(),
            session_id: self.id(),
            exported_at: self.inner.now(),
            version: log.version(),
            messages: log.checkpoint().exchanges().iter().flat_map(exported).collect(),
        }))
    }

    /// Ends the session: key, log, warm copies. Works on a session that is unreadable or absent, too.
    pub async fn erase(&self) -> Result<Receipt, Error> {
        erase(&self.inner, &self.actor, Subject::Session, self.names.scope, &[self.names.scope]).await
    }

    /// Appends an exchange that no model of ours made, such as one that is being imported.
    pub async fn record_exchange(
        &self,
        audience: Audience,
        human: &str,
        ai: &str,
        by: &str,
    ) -> Result<(), Error> {
        let mut held = self.lock().await?;
        loop {
            let open = held.log().await?.and_then(|log| log.checkpoint().open_exchange()).is_some();
            if open {
                return Err(Error::Busy);
            }
            let at = self.inner.now();
            let request_id = uuid::Uuid::now_v7().to_string();
            let reply =
                Reply { from: ReplyFrom::Ai, content: ai.to_owned(), tokens: None, name: by.to_owned() };
            let entries = vec![
                Entry::Accepted {
                    request_id: request_id.clone(),
                    at,
                    audience,
                    content: human.to_owned(),
                    tokens: None,
                },
                Entry::Answered { request_id, at, replies: vec![reply] },
            ];
            if held.write(entries, None, self.record(Action::SessionRecorded)).await? == Wrote::Done {
                return Ok(());
            }
        }
    }

    /// Says in the audit log that somebody asked for this session and was refused.
    pub async fn refuse(&self) -> Result<(), Error> {
        self.inner.record(self.record(Action::AccessRefused)).await.map(drop)
    }
}

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
        Ok(PersonExport { format: FORMAT.to_owned(), user_id, exported_at, sessions, unreadable })
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

    /// Ends everything of a person in a tenant, in every channel.
    pub async fn erase_person(&self, tenant: &TenantId, user: &UserId) -> Result<Receipt, Error> {
        let person = self.inner.keyring.person(tenant, user);
        let scopes: Vec<Tag> =
            self.all(Find::Person(person), usize::MAX).await?.iter().map(|l| l.names.scope).collect();
        erase(&self.inner, &self.actor, Subject::Person, person, &scopes).await
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
        if !ring_eq(&sign(&self.inner, receipt), &receipt.signature) {
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
                let version = self.inner.store.load(row.scope).await?.map_or(0, |loaded| loaded.version);
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

#[derive(Clone, Copy)]
enum Subject {
    Session,
    Person,
}

async fn erase(
    inner: &Arc<Inner>,
    actor: &Actor,
    subject: Subject,
    tag: Tag,
    scopes: &[Tag],
) -> Result<Receipt, Error> {
    let mut keys: Vec<Kid> = Vec::new();
    for scope in scopes {
        keys.extend(inner.keyring.store().get(*scope).await?.map(|row| row.kid));
    }
    // The keys first: whatever happens after this line, nothing of it opens again.
    inner.keyring.destroy(scopes).await?;
    let (mut sessions, mut records) = (0, 0);
    for scope in scopes {
        inner.slots.forget(*scope);
        let note = AuditRecord::new(inner.now(), actor, Action::SessionErased).about(*scope);
        let gone = inner.store.erase(*scope, vec![note.pending(&inner.keyring)]).await?;
        records += gone;
        sessions += u64::from(gone > 0);
        inner.counters.erased.add();
    }
    let (word, action, tokens) = match subject {
        Subject::Session => ("session", Action::SessionErased, 0),
        Subject::Person => {
            let which = crate::store::TokenSelector::Person(tag);
            ("person", Action::PersonErased, inner.store.remove_tokens(which, Vec::new()).await?)
        }
    };
    let at = inner.now();
    let note = AuditRecord::new(at, actor, action).about(tag).counting(sessions);
    let head = inner.record(note).await?;
    inner.store.scrub().await?;
    let mut receipt = Receipt {
        erased: word.to_owned(),
        subject: tag.to_string(),
        at,
        sessions,
        records,
        tokens,
        keys: keys.iter().map(Kid::to_string).collect(),
        audit_seq: head.seq,
        audit_tag: Tag::from_bytes(head.tag).to_string(),
        signature: String::new(),
    };
    receipt.signature = sign(inner, &receipt);
    Ok(receipt)
}

/// The signature that a receipt with this content has.
fn sign(inner: &Inner, receipt: &Receipt) -> String {
    use std::fmt::Write as _;
    let unsigned = Receipt { signature: String::new(), ..receipt.clone() };
    let bytes = serde_json::to_vec(&unsigned).expect("a receipt has string keys only, so it is always JSON");
    let mac = inner.keyring.audit_key().derive("receipt").mac("receipt", &bytes);
    mac.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Comparison in constant time.
fn ring_eq(a: &str, b: &str) -> bool {
    confidant_seal::Key::from_bytes(digest(a)) == confidant_seal::Key::from_bytes(digest(b))
}

fn digest(text: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

fn exported(exchange: &Exchange) -> Vec<ExportedMessage> {
    let unanswered = match &exchange.outcome {
        crate::entry::Outcome::Open { .. } => Some("open".to_owned()),
        crate::entry::Outcome::Failed { reason, .. } => Some(reason.clone()),
        crate::entry::Outcome::Answered { .. } => None,
    };
    let human = ExportedMessage {
        kind: MessageKind::Human,
        content: exchange.content.clone(),
        timestamp: exchange.at,
        audience: exchange.audience,
        request_id: exchange.request_id.clone(),
        name: None,
        unanswered,
    };
    let answered_at = match &exchange.outcome {
        crate::entry::Outcome::Answered { at, .. } => *at,
        _ => exchange.at,
    };
    let replies = exchange.replies().iter().map(|reply| ExportedMessage {
        kind: match reply.from {
            ReplyFrom::Ai => MessageKind::Ai,
            ReplyFrom::Tool => MessageKind::Tool,
        },
        content: reply.content.clone(),
        timestamp: answered_at,
        audience: exchange.audience,
        request_id: exchange.request_id.clone(),
        name: Some(reply.name.clone()),
        unanswered: None,
    });
    std::iter::once(human).chain(replies).collect()
}

macro_rules! debug_without_content {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
debug_without_content!(Export, ExportedMessage, PersonExport, SessionSummary);
