//! What comes out of a turn: pieces on the way, and its end.

use std::borrow::Cow;

use confidant_display::debug_without_content;
use confidant_prepare::{Prepared, SafetyAction};
use serde::{Deserialize, Serialize};

use super::client_tools::ClientCall;
use super::data_request::Wanted;
use super::enrich::Enrichment;
use super::safety::SafetyRecord;
use super::usage::TokenUsage;
use crate::approval::ApprovalRequest;
use crate::audience::Audience;
use crate::concepts::{ConceptsOfTurn, ContextStatus};
use crate::error::Error;
use crate::head::Stand;
use crate::ledger::rights::Receipt;

/// What comes out of a turn, in this order: any number of `Progress`, `Delta`, `SettingsWanted` and `Wanted`, then one `Final`,
/// `Approval` or `Error`; and after a `Final`, where a small model makes something of turns, one `Enriched`.
#[derive(Debug)]
pub enum Outbound {
    /// What is being done.
    Progress {
        /// In a few words.
        text: Cow<'static, str>,
    },
    /// The next piece of the answer.
    Delta {
        /// Counts from 0.
        seq: u64,
        /// The piece.
        text: String,
    },
    /// The whole answer.
    Final(Final),
    /// There is none yet: somebody must approve something first. The turn goes on when they have.
    Approval(Box<ApprovalRequest>),
    /// There is none.
    Error(Error),
    /// Settings and memories that the client has and that would help. The turn goes on without them; a new one can bring
    /// them.
    SettingsWanted {
        /// Their names.
        names: Vec<String>,
    },
    /// Something that only the person's device can give. The turn waits for it, for a few seconds.
    Wanted(Box<Wanted>),
    /// What was made of the turn, after its end.
    Enriched(Box<Enrichment>),
}

/// How a turn ended, for now.
#[derive(Debug)]
pub enum Ending {
    /// With an answer, or with calls that the client is to make first.
    Answer(Final),
    /// With a question that somebody must decide.
    Approval(Box<ApprovalRequest>),
}

/// The whole answer.
#[derive(Clone)]
pub struct Final {
    /// The turn's name.
    pub request_id: String,
    /// The answer's text.
    pub content: String,
    /// How it came about.
    pub metadata: Box<Metadata>,
}

/// How an answer came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// What memory did in this turn.
    pub memory: MemoryState,
    /// Why memory could not be used, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_error: Option<Cow<'static, str>>,
    /// Who will read the answer.
    pub audience: Audience,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Messages of the history that the model saw.
    pub recalled: usize,
    /// Messages that were left out because of the audience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// Messages that the application sent along and that did not fit the prompt, the oldest of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Room lines that the model saw.
    pub room_lines: usize,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether the turn was cut off before and taken up again; its room context is gone then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Aspects that failed and were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_aspects: Vec<Cow<'static, str>>,
    /// Tools that were called, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether the beginning of the conversation was given in few words, since it no longer fits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compressed: bool,
    /// Exchanges at the beginning of the conversation that are kept no longer, since it has more than
    /// `history.max_messages`: only a summary can still tell of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// What was found out about the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Box<Prepared>>,
    /// The mate that answered, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mate: Option<String>,
    /// The focus mode that is on after the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// What was done about harm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<SafetyAction>,
    /// Whether the answer was to be judged before it was heard, and was not, since the small model failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unjudged: bool,
    /// Settings and memories that would have helped: a new turn can bring them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested_settings: Vec<String>,
    /// What became of the concepts in scope.
    #[serde(default, skip_serializing_if = "is_off")]
    pub context_status: ContextStatus,
    /// The concepts that the answer is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concepts: Option<Box<ConceptsOfTurn>>,
    /// Approvals in this session that somebody has still to decide.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pending_approvals: usize,
    /// Tokens of prompt and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What was erased, when the person asked to be forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
    /// The answer is a question of a foreign worker, which the person's next message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<Question>>,
    /// What only a chat that its owner's devices keep needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Box<ChatOutcome>>,
    /// Calls that the client is to make: the turn goes on when it comes back with what they gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ClientCall>,
    /// What such a chat keeps beside the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Box<Beside>>,
    /// Other answers to the same, where several were wanted. Nobody remembers them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherAnswer>,
}

/// An answer that is given beside the one that is remembered.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherAnswer {
    /// Its text.
    pub text: String,
}

/// What a turn of a chat that its owner's devices keep leaves with whoever keeps the chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatOutcome {
    /// How harmful it has been, with this turn: longer than its session lives.
    pub safety: SafetyRecord,
    /// Something that only a device can do, which the person asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Offered>,
}

/// What a device is to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offered {
    /// To delete the chat.
    DeleteChat,
}

/// What a chat that its owner's devices keep has beside an answer.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// What tools said on the way, in their order: the tool's name, a line break, and its words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The beginning of the conversation, where it was summed up and the chat was not told yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summed_up: Option<SummedUp>,
}

/// The beginning of a conversation in few words.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SummedUp {
    /// The words.
    pub text: String,
    /// Where the branch stood behind what they stand for.
    pub through: Stand,
}

/// What a foreign worker asks. It keeps track of that itself, so there is nothing here to decide.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// In its words.
    pub question: String,
    /// What it can be answered with, if it says so.
    pub options: Vec<String>,
    /// How long it waits, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// What memory did in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// The turn is in the log.
    Kept,
    /// The turn was asked to go without.
    Off,
    /// The log could not be loaded or opened; nothing was recalled and nothing saved over it.
    Unavailable,
    /// The person asked to be forgotten.
    Forgotten,
}

impl Metadata {
    pub(crate) fn new(memory: MemoryState, audience: Audience) -> Self {
        Self {
            memory,
            memory_error: None,
            audience,
            model: None,
            recalled: 0,
            withheld: 0,
            left_out: 0,
            room_lines: 0,
            replayed: false,
            resumed: false,
            failed_aspects: Vec::new(),
            tools: Vec::new(),
            compressed: false,
            dropped: 0,
            preparation: None,
            mate: None,
            focus: None,
            safety: Vec::new(),
            unjudged: false,
            requested_settings: Vec::new(),
            context_status: ContextStatus::Off,
            concepts: None,
            pending_approvals: 0,
            usage: None,
            receipt: None,
            asks: None,
            chat: None,
            calls: Vec::new(),
            beside: None,
            others: Vec::new(),
        }
    }
}

fn is_off(status: &ContextStatus) -> bool {
    *status == ContextStatus::Off
}

fn is_zero<T: Default + PartialEq>(n: &T) -> bool {
    *n == T::default()
}

debug_without_content!(Beside { tools: tools.len() });
debug_without_content!(SummedUp { through });
debug_without_content!(OtherAnswer, Question);
debug_without_content!(Final { metadata });
