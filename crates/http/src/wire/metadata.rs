//! How an answer was made.

use std::borrow::Cow;

use confidant_engine as engine;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Audience, ConceptsOfTurn, ContextStatus, Preparation, Receipt, SafetyAction, all, is_zero};

/// How an answer was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct Metadata {
    /// What memory did in this turn.
    memory: MemoryState,
    /// Why memory could not be used: the error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_error: Option<Cow<'static, str>>,
    /// Who will read the answer.
    audience: Audience,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Messages of the history that the model saw.
    recalled: u64,
    /// Messages that were left out because of the audience.
    #[serde(skip_serializing_if = "is_zero")]
    withheld: u64,
    /// The oldest messages that the application sent along and that did not fit the prompt.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
    /// Room lines that the model saw.
    room_lines: u64,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// Whether the turn was interrupted and resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
    /// Parts of the system prompt that failed and were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed_aspects: Vec<Cow<'static, str>>,
    /// Tools that were called, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    /// Whether the beginning of the conversation was summarized, since it no longer fits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    compressed: bool,
    /// Exchanges at the beginning of the conversation that are no longer kept, except in a summary.
    #[serde(skip_serializing_if = "is_zero")]
    dropped: u64,
    /// What the small model or the rules found out about the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    preparation: Option<Preparation>,
    /// The mate (persona) that answered, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    mate: Option<String>,
    /// The focus mode that is active after the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// What was done about harmful content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    safety: Vec<SafetyAction>,
    /// Whether the answer skipped its safety check because the small model failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unjudged: bool,
    /// Settings and memories of the client that would have helped; the next turn can send them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requested_settings: Vec<String>,
    /// What happened to the concepts in scope; missing if concepts are off.
    #[serde(skip_serializing_if = "ContextStatus::is_off")]
    context_status: ContextStatus,
    /// The concepts that the answer is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    concepts: Option<ConceptsOfTurn>,
    /// Approvals in this session that are still pending.
    #[serde(skip_serializing_if = "is_zero")]
    pending_approvals: u64,
    /// Tokens of prompt and answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    /// What was erased, when the person asked to be forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
    /// A question of a foreign worker; the next message answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    asks: Option<Question>,
    /// Calls of the client's own tools, which it must make before there is an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ClientCall>,
}

impl From<engine::turn::Metadata> for Metadata {
    fn from(metadata: engine::turn::Metadata) -> Self {
        let engine::turn::Metadata {
            memory,
            memory_error,
            audience,
            model,
            recalled,
            withheld,
            left_out,
            room_lines,
            replayed,
            resumed,
            failed_aspects,
            tools,
            compressed,
            dropped,
            preparation,
            mate,
            focus,
            safety,
            unjudged,
            requested_settings,
            context_status,
            concepts,
            pending_approvals,
            usage,
            receipt,
            asks,
            chat: _,
            calls,
            beside: _,
            others: _,
        } = metadata;
        Self {
            memory: memory.into(),
            memory_error,
            audience: audience.into(),
            model,
            recalled: recalled as u64,
            withheld: withheld as u64,
            left_out: left_out as u64,
            room_lines: room_lines as u64,
            replayed,
            resumed,
            failed_aspects,
            tools,
            compressed,
            dropped,
            preparation: preparation.map(|prepared| (*prepared).into()),
            mate,
            focus,
            safety: all(safety),
            unjudged,
            requested_settings,
            context_status: context_status.into(),
            concepts: concepts.map(|concepts| (*concepts).into()),
            pending_approvals: pending_approvals as u64,
            usage: usage.map(TokenUsage::from),
            receipt: receipt.map(|receipt| (*receipt).into()),
            asks: asks.map(|asks| (*asks).into()),
            calls: all(calls),
        }
    }
}

/// A call of one of the client's own tools.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClientCall {
    /// Names the call; its result is sent under this name.
    id: String,
    /// The tool.
    name: String,
    /// Its arguments, as the model wrote them.
    arguments: serde_json::Value,
}

impl From<engine::turn::ClientCall> for ClientCall {
    fn from(call: engine::turn::ClientCall) -> Self {
        let engine::turn::ClientCall { id, name, arguments } = call;
        Self { id, name, arguments }
    }
}

/// What memory did in a turn.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemoryState {
    /// The turn is in the log.
    Kept,
    /// The request asked for a turn without memory.
    Off,
    /// The log could not be opened; nothing was recalled, and nothing was overwritten.
    Unavailable,
    /// The person asked to be forgotten.
    Forgotten,
}

mirrors!(turn::MemoryState { Kept, Off, Unavailable, Forgotten });

/// Tokens of a turn.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub(crate) struct TokenUsage {
    /// Tokens of the prompt.
    prompt_tokens: u32,
    /// Tokens of the answer.
    completion_tokens: u32,
}

impl From<engine::turn::TokenUsage> for TokenUsage {
    fn from(usage: engine::turn::TokenUsage) -> Self {
        let engine::turn::TokenUsage { prompt_tokens, completion_tokens } = usage;
        Self { prompt_tokens, completion_tokens }
    }
}

/// A question of a foreign worker.
///
/// Described as having no other fields: an approval has these too, and a reply is one or the other.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(description = "A question of a foreign worker.")]
pub(crate) struct Question {
    /// The question's text.
    question: String,
    /// The possible answers, if it gives them.
    options: Vec<String>,
    /// How long it waits, if it gives a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<u64>,
}

impl From<engine::turn::Question> for Question {
    fn from(asked: engine::turn::Question) -> Self {
        let engine::turn::Question { question, options, timeout_seconds } = asked;
        Self { question, options, timeout_seconds }
    }
}
