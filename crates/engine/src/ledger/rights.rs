//! What people may ask of their data: a portable copy, and its end, with proof.
//!
//! [`Session`] has the rights over one's own; [`Administrator`] the door to everybody's, which is audited. `erasure` says
//! how an end is made final and proved.

mod administrator;
mod census;
mod erasure;
mod owned;
mod receipt;

use std::collections::BTreeMap;

use confidant_display::debug_without_content;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::about::{About, Summary};
use crate::audience::Audience;
use crate::clock::Millis;
use crate::concepts;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::{Exchange, Outcome};
pub use crate::ledger::derived::Derived;
use crate::ledger::entry::{Entry, Label, Reply, ReplyFrom};
use crate::ledger::session::{self, Session, Wrote};
pub use administrator::{
    Administrator, AuditCursor, AuditEnd, AuditPage, ReceiptProof, SessionSummary, Verified,
};
pub use census::{Census, Kept};
use erasure::{Subject, erase};
pub(crate) use erasure::{Whose, erase_concepts};
pub use receipt::Receipt;

/// A session's content, decrypted and portable.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Export {
    /// The format of this document.
    pub format: String,
    /// Whose memory it is.
    pub session_id: String,
    /// When it was exported.
    pub exported_at: Millis,
    /// The log's version.
    pub version: u64,
    /// What was said, oldest first.
    pub messages: Vec<ExportedMessage>,
    /// What is known about the conversation as a whole, such as its title.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub about: Option<About>,
    /// Its beginning in few words, where it has become too long.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub summaries: Vec<ExportedSummary>,
    /// The concepts that its turns named, and what was done with them by hand, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub concepts: Vec<serde_json::Value>,
    /// What applications attached to it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub labels: Vec<ExportedLabels>,
}

/// Names and values that an application attached to a conversation, or to an answer in it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedLabels {
    /// The turn, unless it is the whole conversation that is meant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<String>,
    /// The names, each with its value.
    pub values: BTreeMap<String, String>,
    /// How the answer was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked_for: Option<serde_json::Value>,
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
    /// What a tool was called with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub arguments: Option<serde_json::Value>,
    /// Why the message has no answer, if its turn ended without one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unanswered: Option<String>,
}

/// The beginning of a conversation in few words.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedSummary {
    /// Who may hear it.
    pub audience: Audience,
    /// When it was made.
    pub timestamp: Millis,
    /// The words.
    pub content: String,
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
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PersonExport {
    /// The format of this document.
    pub format: String,
    /// Who it is about.
    pub user_id: String,
    /// When it was exported.
    pub exported_at: Millis,
    /// Their sessions.
    pub sessions: Vec<Export>,
    /// Sessions of theirs that could not be opened, by the name of the reason, and the names of what else could not be reached.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unreadable: Vec<String>,
    /// What else is kept of them, such as `memories`.
    #[serde(flatten)]
    pub derived: BTreeMap<String, Vec<serde_json::Value>>,
}

const FORMAT: &str = "confidant/export/v1";

impl Session {
    /// Exports the session's content; `None` if there is no such session.
    pub fn export(&self) -> BoxFuture<'_, Result<Option<Export>, Error>> {
        Box::pin(async move { self.content(Action::SessionExported).await })
    }

    /// The session's content, for display; `None` if there is no such session.
    pub fn view(&self) -> BoxFuture<'_, Result<Option<Export>, Error>> {
        Box::pin(async move { self.content(Action::SessionViewed).await })
    }

    /// What is known about the conversation as a whole; `None` if there is no such session.
    pub fn about(&self) -> BoxFuture<'_, Result<Option<About>, Error>> {
        Box::pin(async move {
            let Some((log, _)) = session::open(self).await? else { return Ok(None) };
            self.inner.ledger.record(self.record(Action::SessionViewed)).await?;
            Ok(Some(log.checkpoint().about_with_made()))
        })
    }

    async fn content(&self, action: Action) -> Result<Option<Export>, Error> {
        let Some((log, _)) = session::open(self).await? else { return Ok(None) };
        // Recorded before anything is handed out.
        self.inner.ledger.record(self.record(action).counting(log.version())).await?;
        Ok(Some(Export {
            format: FORMAT.to_owned(),
            session_id: self.id(),
            exported_at: self.inner.ledger.now(),
            version: log.version(),
            messages: log.checkpoint().all().flat_map(exported).collect(),
            about: Some(log.checkpoint().about_with_made()).filter(|about| !about.is_empty()),
            summaries: log.checkpoint().summaries().iter().map(exported_summary).collect(),
            concepts: self.exported_concepts().await?,
            labels: log.checkpoint().labels().all().map(exported_labels).collect(),
        }))
    }

    /// How many derived things an erasure of this session would delete, by name.
    pub fn count_derived(&self) -> BoxFuture<'_, Result<BTreeMap<String, u64>, Error>> {
        Box::pin(async move {
            let mut counts = BTreeMap::from([(
                "captures".to_owned(),
                concepts::count(&self.inner, self.names.scope).await?,
            )]);
            for one in &self.inner.ledger.derived {
                counts.insert(one.name().to_owned(), one.count_session(&self.scope).await?);
            }
            counts.retain(|_, count| *count > 0);
            Ok(counts)
        })
    }

    /// Ends the session: key, log, warm copies. Works on a session that is unreadable or absent, too.
    pub fn erase(&self) -> BoxFuture<'_, Result<Receipt, Error>> {
        Box::pin(async move {
            let _room = self.inner.ledger.room();
            let epoch = self.inner.ledger.begin_erasure(self.names.scope).await?;
            let (mut derived, mut left) = (BTreeMap::new(), None);
            for one in &self.inner.ledger.derived {
                match one.erase_session(&self.scope).await {
                    Ok(0) => {}
                    Ok(gone) => drop(derived.insert(one.name().to_owned(), gone)),
                    Err(error) => left = left.or(Some(error)),
                }
            }
            let subject = Subject::Session(derived);
            let names = (self.names, self.name.clone());
            let whose = (self.names.scope, self.names.tenant, epoch);
            let erased = erase(&self.inner, &self.actor, subject, whose, &[names]).await?;
            left.map_or(Ok(erased), |error| Err(erasure::incomplete(error)))
        })
    }

    /// Appends an exchange that no model of ours made, such as one that is being imported.
    pub fn record_exchange<'a>(
        &'a self,
        audience: Audience,
        human: &'a str,
        ai: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut held = self.lock().await?;
            loop {
                let open = held.log().await?.and_then(|log| log.checkpoint().open_exchange()).is_some();
                if open {
                    return Err(Error::Busy);
                }
                let at = self.inner.ledger.now();
                let request_id = uuid::Uuid::now_v7().to_string();
                let reply = Reply::ai(ai.to_owned(), None, by.to_owned());
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
        })
    }

    /// Makes the session of what was said elsewhere, in one write; false if there is one already.
    pub(crate) async fn take_over(
        &self,
        audience: Audience,
        exchanges: Vec<(String, Vec<Reply>)>,
    ) -> Result<bool, Error> {
        let mut held = self.lock().await?;
        if held.log().await?.is_some() {
            return Ok(false);
        }
        let at = self.inner.ledger.now();
        let note = self.record(Action::SessionRecorded).counting(exchanges.len() as u64);
        let messages = exchanges.iter().map(|(_, replies)| 1 + replies.len() as u64).sum();
        let entries = exchanges.into_iter().flat_map(|(content, replies)| {
            let request_id = uuid::Uuid::now_v7().to_string();
            [
                Entry::Accepted { request_id: request_id.clone(), at, audience, content, tokens: None },
                Entry::Answered { request_id, at, replies },
            ]
        });
        let entries = entries.chain([Entry::TakenOver { messages }]).collect();
        Ok(held.write(entries, None, note).await? == Wrote::Done)
    }

    /// How many messages of these exchanges the session does not hold, in their order, as the store has it now.
    pub(crate) async fn lacks(&self, exchanges: &[(String, Vec<Reply>)]) -> Result<u64, Error> {
        let opened = session::open(self).await?;
        let mut held = opened.iter().flat_map(|(log, _)| log.checkpoint().all()).peekable();
        // What a session has lost it lost from its beginning, so what is missing comes before what is there.
        let missing = exchanges.iter().filter(|(content, replies)| {
            let same =
                |(one, other): (&Reply, &Reply)| one.from == other.from && one.content == other.content;
            let is_next = |one: &&Exchange| {
                one.content == *content
                    && one.replies().len() == replies.len()
                    && one.replies().iter().zip(replies).all(same)
            };
            held.next_if(is_next).is_none()
        });
        Ok(missing.map(|(_, replies)| 1 + replies.len() as u64).sum())
    }

    /// Says in the audit log that somebody asked for this session and was refused.
    pub fn refuse(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.inner.ledger.record(self.record(Action::AccessRefused)).await.map(drop) })
    }
}

fn exported_summary(summary: &Summary) -> ExportedSummary {
    ExportedSummary { audience: summary.audience, timestamp: summary.at, content: summary.text.clone() }
}

fn exported_labels(label: &Label) -> ExportedLabels {
    let Label { request_id, values, asked_for, .. } = label.clone();
    ExportedLabels { request_id, values, asked_for }
}

fn exported(exchange: &Exchange) -> Vec<ExportedMessage> {
    let unanswered = match &exchange.outcome {
        Outcome::Open { .. } => Some("open".to_owned()),
        Outcome::Waiting { .. } if exchange.handed().is_some() => {
            Some("waiting for the application".to_owned())
        }
        Outcome::Waiting { .. } => Some("waiting for approval".to_owned()),
        Outcome::Failed { reason, .. } => Some(reason.clone()),
        Outcome::Answered { .. } => None,
    };
    let human = ExportedMessage {
        kind: MessageKind::Human,
        content: exchange.content.clone(),
        timestamp: exchange.at,
        audience: exchange.audience,
        request_id: exchange.request_id.clone(),
        name: None,
        arguments: None,
        unanswered,
    };
    let answered_at = match &exchange.outcome {
        Outcome::Answered { at, .. } => *at,
        _ => exchange.at,
    };
    let replies = exchange.replies().iter().map(|reply| ExportedMessage {
        kind: match reply.from {
            ReplyFrom::Ai => MessageKind::Ai,
            ReplyFrom::Tool | ReplyFrom::Summary | ReplyFrom::Quoted => MessageKind::Tool,
        },
        content: reply.content.clone(),
        timestamp: answered_at,
        audience: exchange.audience,
        request_id: exchange.request_id.clone(),
        name: Some(reply.name.clone()),
        arguments: reply.arguments.clone(),
        unanswered: None,
    });
    // What the client gave of a turn that goes on with it.
    let handed = exchange.handed().and(exchange.work()).into_iter().flat_map(|work| &work.done);
    let given = handed.flat_map(|step| step.calls.iter().zip(&step.results));
    let given = given.map(|(call, result)| ExportedMessage {
        kind: MessageKind::Tool,
        content: result.clone(),
        timestamp: exchange.at,
        audience: exchange.audience,
        request_id: exchange.request_id.clone(),
        name: Some(call.name.clone()),
        arguments: Some(call.arguments.clone()),
        unanswered: None,
    });
    std::iter::once(human).chain(given).chain(replies).collect()
}

debug_without_content!(
    Export,
    ExportedLabels,
    ExportedMessage,
    ExportedSummary,
    PersonExport,
    SessionSummary
);
