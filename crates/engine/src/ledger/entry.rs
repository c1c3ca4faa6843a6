//! The sealed items of a session's log. What they fold to is in `checkpoint.rs`.
//!
//! These are stored types: their JSON is pinned by a snapshot test, and a change needs a reader for the old form.

use std::collections::BTreeMap;

use confidant_model::{Sampling, ToolSpec};
use confidant_prepare::RunningHarm;
use serde::{Deserialize, Serialize};

use crate::about::{Note, Summary};
use crate::approval::{Decided, Work};
use crate::audience::{Audience, Sharing};
use crate::clock::Millis;
use crate::concepts::Captured;
use crate::head::{Claim, Digest, Head, Stand};
use crate::turn::{Enrichment, Restore, SwitchedOff, TokenUsage};

/// One item of the log.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A turn was accepted: what the person said, before any model saw it.
    Accepted {
        request_id: String,
        at: Millis,
        audience: Audience,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
    },
    /// What an accepted turn was given besides, as far as taking it up again needs it.
    Given { request_id: String, given: Box<Given> },
    /// A turn that was cut off or failed is being tried again, or one that waited goes on.
    Resumed { request_id: String, at: Millis },
    /// A turn was answered.
    Answered { request_id: String, at: Millis, replies: Vec<Reply> },
    /// A turn ended without an answer, and this was reported.
    Failed { request_id: String, at: Millis, reason: String },
    /// A turn was called off before it was accepted: only its name is kept, so that it is not run when it is sent again.
    CalledOff { request_id: String, at: Millis },
    /// A call that changes something is about to go out, or the client gave what it was asked for; this is the work up to it.
    Working { request_id: String, at: Millis, work: Box<Work> },
    /// A turn stopped to wait for somebody's decision, or for the client; this is the work up to it.
    Waiting { request_id: String, at: Millis, work: Box<Work> },
    /// Somebody decided what a turn waits for.
    Decided { request_id: String, at: Millis, decided: Decided },
    /// What a turn found out about the conversation.
    Noted {
        request_id: String,
        at: Millis,
        note: Box<Note>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        harm: Option<RunningHarm>,
    },
    /// What a turn named as the concepts of its answer. They are yet to come into scope.
    Captured { capture: Capture },
    /// What these turns named is in scope.
    Merged { request_ids: Vec<String> },
    /// What was made of a turn after it.
    Enriched { request_id: String, at: Millis, enrichment: Box<Enrichment> },
    /// The beginning of the conversation, in few words.
    Summarised { summary: Summary },
    /// The messages before this one were said elsewhere and taken over at once; all of them are to be kept.
    TakenOver { messages: u64 },
    /// What the client has of the conversation, in the place of everything that was said here.
    Adopted {
        at: Millis,
        said: Vec<Taken>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<Head>,
    },
    /// Where the conversation stands for its client after the answer in the same record.
    Head { head: Head },
    /// The person changed what they said; the answer to what they said before is forgotten with it.
    Amended {
        request_id: String,
        at: Millis,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
    },
    /// The person took back what they said; the answer is forgotten with it.
    Removed { request_id: String, at: Millis },
    /// The person chose how far their private words may reach.
    Sharing { at: Millis, sharing: Sharing },
    /// An application attached names and values: to the conversation, or to one of the answers of a turn.
    Labelled { at: Millis, label: Label },
    /// From here on the log ends at that moment, unless something more is written; at none if there is none.
    Lives {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Millis>,
    },
}

impl Entry {
    /// Whether the log must not keep what it had before this entry.
    pub(crate) fn takes_back(&self) -> bool {
        matches!(self, Self::Amended { .. } | Self::Removed { .. } | Self::Adopted { .. })
    }
}

/// What a turn was given besides what the person said. The rest is not kept: room, instructions, settings, profile and what
/// an application brought along are for the first try only.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Given {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restore: Option<Restore>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) sampling: Sampling,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) capture: bool,
    /// What it was called by whoever asked for it on a plain bus: an end that comes later is told there under this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked_as: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) shared: bool,
    /// Where the conversation stood for its client, and stands with the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Claim>,
    /// What its transcript was before the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transcript: Option<Digest>,
    /// What the person switched off.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) off: SwitchedOff,
    /// Whether the client has a title.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) titled: bool,
    /// Tools that the client has and runs itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<ToolSpec>,
}

impl Given {
    /// Where the client's branch stood before the question.
    pub(crate) fn stand(&self) -> Option<Stand> {
        let (claim, transcript) = (self.claim?, self.transcript?);
        Some(Stand { count: claim.count, transcript })
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Names and values that an application attached, which mean something to it alone.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Label {
    /// The turn, unless it is the whole conversation that is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The step of the turn that the answer began with: one that hands out calls has several answers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) step: usize,
    pub(crate) values: BTreeMap<String, String>,
    /// How the application asked for the answer, for it to read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_for: Option<serde_json::Value>,
    /// How the answer came to its end. An entry that has this adds it to what is attached there, and changes nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Done>,
}

/// How an answer came to its end.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) at: Millis,
    /// What was spent on it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<TokenUsage>,
}

/// What a turn named as the concepts of its answer, checked.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Capture {
    pub(crate) request_id: String,
    pub(crate) at: Millis,
    pub(crate) audience: Audience,
    pub(crate) concepts: Vec<Captured>,
}

/// What was said in one exchange, as the client has it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) request_id: String,
    pub(crate) at: Millis,
    /// What the person said; nothing where somebody else began.
    pub(crate) content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) replies: Vec<Reply>,
    /// Where the client's branch stood before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stand: Option<Stand>,
}

/// One message of an answer.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Who speaks: the agent or a tool.
    pub(crate) from: ReplyFrom,
    pub(crate) content: String,
    /// Tokens of the content, once somebody needed to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u32>,
    /// The model or the tool, by name.
    pub(crate) name: String,
    /// What a tool was called with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<serde_json::Value>,
    /// The step of its turn that it belongs to, counted from 0; none of what is the answer itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<usize>,
}

impl Reply {
    /// A message of the agent.
    pub(crate) fn ai(content: String, tokens: Option<u32>, name: String) -> Self {
        Self { from: ReplyFrom::Ai, content, tokens, name, arguments: None, step: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplyFrom {
    Ai,
    Tool,
    /// What was said earlier, in few words that our own model made.
    Summary,
    /// Words of which nobody can prove who said them: data, and never the agent's own.
    Quoted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_lists_every_kind_of_entry() {
        // Asked for one that it does not know, serde names those that it knows.
        let refused = serde_json::from_str::<Entry>(r#"{"kind":"?"}"#).err().unwrap().to_string();
        let (_, known) = refused.split_once("expected one of ").unwrap();
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let format = include_str!("../../../../docs/FORMAT.md");
        let (_, list) = format.split_once("Entries of a session record, ").unwrap();
        let list = list.split_once("\n### ").unwrap().0;
        let listed: Vec<&str> =
            list.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(listed, known);
        assert!(list.starts_with(&format!("{} kinds", known.len())));
    }
}
