//! Tools that the client has, as it speaks of them: which they are, what was called, what that gave.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call of one of the client's tools.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCall {
    /// Names the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with, as the model wrote it: an object, or a text that is none.
    pub arguments: Value,
}

/// What a call of one of the client's tools gave.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientResult {
    /// The call.
    pub id: String,
    /// The result.
    pub text: String,
}

/// Calls of the client's tools in this turn, and what they gave, as the client has them. Of calls that were handed to it here, the
/// results are enough.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientStep {
    /// What the model said with them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ClientCall>,
    /// The results.
    pub results: Vec<ClientResult>,
}

/// What a tool said in an earlier turn, as the client has it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSaid {
    /// The tool.
    pub tool: String,
    /// What it said.
    pub text: String,
}

/// Whether one of the client's tools may be called that: ours have a dot, or are taken.
#[must_use]
pub fn may_be_the_clients(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(allowed) && name != TAKEN
}

/// In characters, as with `OpenAI`.
const LONGEST_NAME: usize = 64;
/// The one tool of ours without a dot.
const TAKEN: &str = "capture_concepts";

debug_without_content!(ClientCall, ClientResult, ClientStep, ToolSaid);
