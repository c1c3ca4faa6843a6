//! An answer in the making, and how far a turn got with it.

use std::sync::Arc;

use confidant_prepare::RunningHarm;
use parking_lot::Mutex;

use super::data_request::Piece;
use super::enrich::{Enrichment, Material};
use super::outbound::{Final, MemoryState, Metadata};
use super::request::Inbound;
use crate::about::Note;
use crate::approval::Work;
use crate::concepts::InScope;
use crate::error::Error;
use crate::head::Claim;

/// An answer in the making: which turn it is for, and what is known of how it came about.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) request_id: String,
    pub(super) metadata: Metadata,
    /// Tokens of the prompt, as counted here.
    pub(super) prompt_tokens: u32,
    /// Messages of the history that found no place in the prompt.
    pub(super) left_out: usize,
    /// The first exchange of the log that found one, or the turn itself.
    pub(super) kept_from: u64,
    /// Whether the log is nearly as long as it may be, so that its beginning goes soon.
    pub(super) crowded: bool,
    /// What the turn found out about the conversation, for the log.
    pub(super) note: Note,
    pub(super) harm: Option<RunningHarm>,
    /// What something can be made of after the turn.
    pub(super) material: Option<Material>,
    /// What the person's settings say, and their names.
    pub(super) settings: Vec<String>,
    pub(super) known_settings: Vec<String>,
    /// What the person's device gave on the way: settings, then past chats.
    pub(super) pieces: [Vec<Piece>; 2],
    /// The concepts in scope, and what the person said: what is captured is held against both.
    pub(super) concepts: Arc<InScope>,
    pub(super) query: String,
    /// Whether what it names is for everybody in the conversation.
    pub(super) shared: bool,
    /// Where the conversation stands for its client before and after it.
    pub(super) claim: Option<Claim>,
    /// What counts if it has no answer; shared by all copies.
    pub(super) judged: Arc<Mutex<Judged>>,
}

/// How harmful a turn was found to be, so far.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// What counts of it.
    pub(super) scored: Option<Scored>,
    /// Whether everybody has spoken who judges it.
    pub(super) is_done: bool,
}

/// The harm of a turn that has no answer, or none yet, for the log.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) note: Note,
    pub(super) harm: RunningHarm,
}

impl Draft {
    pub(super) fn new(inbound: &Inbound, memory: MemoryState) -> Self {
        let metadata = Metadata::new(memory, inbound.audience);
        Self {
            request_id: inbound.request_id.clone(),
            metadata,
            prompt_tokens: 0,
            left_out: 0,
            kept_from: 0,
            crowded: false,
            note: Note::default(),
            harm: None,
            material: None,
            settings: Vec::new(),
            known_settings: Vec::new(),
            pieces: Default::default(),
            concepts: Arc::default(),
            query: String::new(),
            shared: inbound.request.shared,
            claim: inbound.request.claim,
            judged: Arc::default(),
        }
    }
}

/// How far a turn got.
#[derive(Debug)]
pub(super) enum Reached {
    /// To its answer.
    Answer(Box<Answered>),
    /// To something that somebody must decide, or that the client must do.
    Pause(Box<Paused>),
}

impl Reached {
    /// The answer of a turn that has no log, and so cannot wait; a client that is handed calls brings back all that it needs.
    pub(super) fn into_final(self) -> Result<Final, Error> {
        match self {
            Self::Answer(answered) => Ok(answered.into_final()),
            Self::Pause(paused) if paused.work.handed.is_some() => Ok(paused.into_final()),
            Self::Pause(_) => Err(Error::AwaitsApproval),
        }
    }
}

/// An answer that is not yet in the log.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) draft: Draft,
    pub(super) text: String,
    pub(super) tokens: u32,
    /// The tools that were called on the way.
    pub(super) steps: Vec<confidant_model::Step>,
    /// How many of the steps the client has heard of before.
    pub(super) told: usize,
    /// What was made of it, where that had to be before it was heard.
    pub(super) enrichment: Option<Enrichment>,
}

impl Answered {
    pub(super) fn into_final(self) -> Final {
        Final {
            request_id: self.draft.request_id,
            content: self.text,
            metadata: Box::new(self.draft.metadata),
        }
    }
}

/// A turn that waits, with the work up to there.
#[derive(Debug)]
pub(super) struct Paused {
    pub(super) request_id: String,
    pub(super) work: Work,
    /// What the client hears with the calls that it is handed, and how they came about.
    pub(super) text: String,
    pub(super) metadata: Metadata,
    /// What counts of it, whatever is decided.
    pub(super) scored: Option<Scored>,
}

impl Paused {
    /// Takes back what the client would hear with its calls.
    pub(super) fn unsay(&mut self) {
        let Some(handed) = &self.work.handed else { return };
        self.text.clear();
        self.work.done.iter_mut().skip(handed.from).for_each(|step| step.text.clear());
        self.work.current.iter_mut().for_each(|current| current.text.clear());
    }

    /// What a turn comes to, for now, that has handed calls to the client.
    pub(super) fn into_final(self) -> Final {
        let Self { request_id, text, metadata, .. } = self;
        Final { request_id, content: text, metadata: Box::new(metadata) }
    }
}

/// Why a turn has no answer, with the turn it is.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) request_id: String,
    pub(super) error: Error,
    /// What counts of it all the same.
    pub(super) scored: Option<Box<Scored>>,
}

impl Unanswered {
    pub(super) fn new(request_id: String, error: Error) -> Self {
        Self { request_id, error, scored: None }
    }
}

impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        unanswered.error
    }
}
