//! What can be set: limits, lifetimes, and what is done with turns.

use std::time::Duration;

use crate::ledger::lifetimes::Lifetimes;
use crate::room::RoomLimits;
use crate::tools::ToolLimits;

/// Limits and lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How much of a conversation is kept and recalled.
    pub history: HistoryLimits,
    /// How much of a room goes into a prompt.
    pub room: RoomLimits,
    /// How long sessions live.
    pub lifetimes: Lifetimes,
    /// How tools are used.
    pub tools: ToolLimits,
    /// What is done before and after the answer.
    pub processing: Processing,
    /// The longest that a model may take for an answer.
    pub answer_timeout: Duration,
    /// The longest that a turn waits for the session's previous one.
    pub wait_for_turn: Duration,
    /// What happens to turns that were cut off.
    pub recovery: Recovery,
    /// How many sessions are kept warm.
    pub warm_sessions: usize,
    /// How long an unused session stays warm.
    pub warm_for: Duration,
    /// The longest query, in bytes.
    pub max_query_bytes: usize,
    /// Sessions of chats that only their owner can open.
    pub web: WebCache,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: HistoryLimits { max_messages: 100, token_budget: 6000 },
            room: RoomLimits { lines: 20, max_age_seconds: None },
            lifetimes: Lifetimes::default(),
            tools: ToolLimits::default(),
            processing: Processing::default(),
            answer_timeout: Duration::from_secs(120),
            wait_for_turn: Duration::from_secs(60),
            recovery: Recovery::Resume,
            warm_sessions: 1024,
            warm_for: Duration::from_secs(900),
            max_query_bytes: 64 * 1024,
            web: WebCache::default(),
        }
    }
}

/// How long chats that only their owner can open have a session here, and how many of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebCache {
    /// After the last use.
    pub lives: Duration,
    /// The newest by use; older ones are ended.
    pub chats: usize,
    /// How long a turn waits for what it asked the person's device for, before it goes on without.
    pub asks: Duration,
}

impl Default for WebCache {
    fn default() -> Self {
        Self { lives: Duration::from_secs(86_400), chats: 3, asks: Duration::from_secs(10) }
    }
}

/// What is done before and after the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processing {
    /// Whether turns are prepared: by the small model if there is one, else by local rules.
    pub prepare: bool,
    /// Whether the small model makes something of finished turns.
    pub enrich: bool,
    /// Whether an answer is begun beside the small model's call.
    pub beside: bool,
    /// The longest that the small model may take before a turn goes on without it.
    pub timeout: Duration,
    /// From which chance of an injection on the model is warned.
    pub injection_warning: f32,
    /// The most tokens of the conversation that the small model looks at before the answer, in blocks of at most 70 000:
    /// of what is kept, not only of what a prompt has room for.
    pub history_tokens: u32,
    /// Whether a private conversation that begins is told of similar ones of the same person, in other sessions.
    pub past_chats: bool,
    /// From which `harmful_response` on an answer is made again; it is heard only after that was found out.
    pub reprocess_at: Option<f32>,
}

impl Default for Processing {
    fn default() -> Self {
        let timeout = Duration::from_secs(5);
        Self {
            prepare: true,
            enrich: true,
            beside: true,
            timeout,
            injection_warning: 6.0,
            history_tokens: 280_000,
            past_chats: false,
            reprocess_at: None,
        }
    }
}

/// How much of a conversation is kept and recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The most messages kept; older ones go when the log is folded.
    pub max_messages: usize,
    /// Tokens that a whole prompt may have.
    pub token_budget: u32,
}

/// What happens to turns that were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// They are answered at the next start.
    Resume,
    /// They are closed as interrupted at the next start.
    Report,
}
