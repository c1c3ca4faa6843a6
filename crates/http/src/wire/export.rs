//! Portable copies: of a session, and of everything about a person.

use std::collections::BTreeMap;

use confidant_engine as engine;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{About, Audience, all};

/// A session's content, decrypted and portable.
#[derive(Serialize, ToSchema)]
pub(crate) struct Export {
    /// The format of this document.
    format: String,
    /// Whose memory it is.
    session_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// The log's version.
    version: u64,
    /// What was said, oldest first.
    messages: Vec<ExportedMessage>,
    /// What is known about the conversation as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    /// A summary of its beginning, if it has become too long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<ExportedSummary>,
    /// The concepts that its turns named, and pins made by hand, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    concepts: Vec<Value>,
    /// Names and values that applications attached to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<ExportedLabels>,
    /// The same messages as `{messages: [{type, content}]}`, for clients of the older system that Confidant replaces; only in the export of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Checkpoint>,
}

impl Export {
    /// The export of one session.
    pub(crate) fn of_session(export: engine::rights::Export) -> Self {
        let mut ours = Self::from(export);
        let said = ours
            .messages
            .iter()
            .map(|one| CheckpointMessage { kind: one.kind, content: one.content.clone() });
        ours.data = Some(Checkpoint { messages: said.collect() });
        ours
    }
}

impl From<engine::rights::Export> for Export {
    fn from(export: engine::rights::Export) -> Self {
        let engine::rights::Export {
            format,
            session_id,
            exported_at,
            version,
            messages,
            about,
            summaries,
            concepts,
            labels,
        } = export;
        Self {
            format,
            session_id,
            exported_at: exported_at.0,
            version,
            messages: all(messages),
            about: about.map(About::from),
            summaries: all(summaries),
            concepts,
            labels: all(labels),
            data: None,
        }
    }
}

/// Messages in the format of the older system that Confidant replaces.
#[derive(Serialize, ToSchema)]
pub(crate) struct Checkpoint {
    /// Oldest first.
    messages: Vec<CheckpointMessage>,
}

/// One of these messages.
#[derive(Serialize, ToSchema)]
pub(crate) struct CheckpointMessage {
    /// `human`, `ai` or `tool`.
    #[serde(rename = "type")]
    kind: MessageKind,
    /// What was said.
    content: String,
}

/// Names and values that an application attached to a session, or to an answer in it.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExportedLabels {
    /// The turn's request id, unless they belong to the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// The names, each with its value.
    values: BTreeMap<String, String>,
    /// How the answer was asked for: what a response gives back of its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    asked_for: Option<serde_json::Value>,
}

impl From<engine::rights::ExportedLabels> for ExportedLabels {
    fn from(labels: engine::rights::ExportedLabels) -> Self {
        let engine::rights::ExportedLabels { request_id, values, asked_for } = labels;
        Self { request_id, values, asked_for }
    }
}

/// A summary of the beginning of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExportedSummary {
    /// Who may read it.
    audience: Audience,
    /// When it was made, in milliseconds since 1970.
    timestamp: i64,
    /// The text.
    content: String,
}

impl From<engine::rights::ExportedSummary> for ExportedSummary {
    fn from(summary: engine::rights::ExportedSummary) -> Self {
        let engine::rights::ExportedSummary { audience, timestamp, content } = summary;
        Self { audience: audience.into(), timestamp: timestamp.0, content }
    }
}

/// One message of an export.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExportedMessage {
    /// `human`, `ai` or `tool`.
    #[serde(rename = "type")]
    kind: MessageKind,
    /// What was said.
    content: String,
    /// When, in milliseconds since 1970.
    timestamp: i64,
    /// Who could read it.
    audience: Audience,
    /// The turn it belongs to.
    request_id: String,
    /// The model or tool that spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The arguments of the tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// Why the message has no answer, if its turn ended without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered: Option<String>,
}

impl From<engine::rights::ExportedMessage> for ExportedMessage {
    fn from(message: engine::rights::ExportedMessage) -> Self {
        let engine::rights::ExportedMessage {
            kind,
            content,
            timestamp,
            audience,
            request_id,
            name,
            arguments,
            unanswered,
        } = message;
        Self {
            kind: kind.into(),
            content,
            timestamp: timestamp.0,
            audience: audience.into(),
            request_id,
            name,
            arguments,
            unanswered,
        }
    }
}

/// Who speaks.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageKind {
    /// The person.
    Human,
    /// The agent.
    Ai,
    /// A tool.
    Tool,
}

mirrors!(rights::MessageKind { Human, Ai, Tool });

/// Everything that is kept about a person.
#[derive(Serialize, ToSchema)]
pub(crate) struct PersonExport {
    /// The format of this document.
    format: String,
    /// The person it is about.
    user_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// Their sessions.
    sessions: Vec<Export>,
    /// The reasons why some of their sessions could not be opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    /// Their messages that came through a channel and are not answered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Object>)]
    channel_events: Option<Vec<Value>>,
    /// Concepts of conversations whose sessions have expired, and pins made by hand, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Object>)]
    concepts: Option<Vec<Value>>,
    /// Their memories: cards of sessions, the transcripts that are kept, and where the artifacts are. One whose artifact
    /// could not be fetched says so in `unreadable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Object>)]
    memories: Option<Vec<Value>>,
    /// Whatever else is kept about them, by kind.
    #[serde(flatten)]
    more: BTreeMap<String, Vec<Value>>,
}

impl From<engine::rights::PersonExport> for PersonExport {
    fn from(export: engine::rights::PersonExport) -> Self {
        let engine::rights::PersonExport { format, user_id, exported_at, sessions, unreadable, mut derived } =
            export;
        Self {
            format,
            user_id,
            exported_at: exported_at.0,
            sessions: all(sessions),
            unreadable,
            channel_events: derived.remove("channel_events"),
            concepts: derived.remove("concepts"),
            memories: derived.remove("memories"),
            more: derived,
        }
    }
}
