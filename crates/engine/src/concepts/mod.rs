//! Concepts in scope: which public concepts a conversation has touched, so that later answers build on them.
//!
//! ```text
//! recall:  context ─▶ ids, ranked ─▶ graph ─▶ "- Label (IE) – description"      a failure costs the paragraph, no more
//! commit:  capture_concepts ─▶ checked ─▶ resolved ─▶ merged, with its reason   a failure costs the memory, no more
//! ```
//!
//! `context` is what is remembered and how it is ranked, `keep` how it is kept, sealed and forgotten, `capture` what
//! is taken of a model's word, `aspect` what a prompt says of it, `members` who is in a conversation, `rights` what
//! people and administrators can do.
//! What a model captures and the shared graph does not have stays with the conversation, as a candidate, until somebody
//! approves it. What is easy to get wrong: a context is per conversation, but a person's erasure is per session, so each
//! use in it says whose it is.

mod aspect;
mod capture;
mod context;
mod conversation;
mod keep;
mod lifetime;
mod lookup;
mod members;
mod parts;
mod recall;
mod rights;
mod settle;
mod shared;

pub use aspect::ConversationContextAspect;
#[cfg(feature = "fuzzing")]
pub(crate) use capture::checked;
pub(crate) use capture::{NAME, NOTED, Taken, take, tool};
pub use confidant_concepts::{Concept, Graph, GraphError, Look, Node};
pub(crate) use context::Captured;
pub use context::{ConversationContext, ConversationIdentity};
pub(crate) use conversation::{is_concepts_key, is_conversation};
pub(crate) use keep::{
    check, count, count_person, export_person, forget, forget_expired, forget_person, stored_version, sweep,
    take_back,
};
pub(crate) use lifetime::{Until, over, wait};
pub(crate) use lookup::{FIND, find_tool, look_up};
pub(crate) use recall::recall;
pub use rights::{ApprovedConcept, Candidate, ConceptChoice, ConceptInScope, Reason, ScopeView};
pub(crate) use settle::{catch_up, note, recorded};
pub use shared::{
    CaptureWhen, ConceptSettings, Concepts, ConceptsOfTurn, ContextStatus, InScope, Uncertainty,
};
pub(crate) use shared::{ScopeNode, Shared};
