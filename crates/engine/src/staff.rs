//! What works: models, what they are told, and the tools that they may call.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_model::{Model, Models, tokens};
use confidant_redact::Redactor;
use parking_lot::Mutex;

use crate::aspects::{Aspects, Instructions};
use crate::tools::{Tool, ToolPolicy, Toolbox};
use crate::turn::Safety;

/// Who answers, and with what.
#[derive(Debug)]
pub(crate) struct Staff {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) models: Models,
    pub(crate) aspects: Aspects,
    pub(crate) instructions: Instructions,
    pub(crate) toolbox: Arc<dyn Toolbox>,
    pub(crate) policy: ToolPolicy,
    pub(crate) safety: Safety,
    /// What everything derived from a conversation goes through.
    pub(crate) gate: Redactor,
    /// Tokens of tools by their names; cleared when it grows.
    pub(crate) tool_tokens: Mutex<HashMap<String, (usize, u32)>>,
    /// The last system text and its tokens: it seldom changes from turn to turn.
    pub(crate) system_tokens: Mutex<(String, u32)>,
}

impl Staff {
    pub(crate) fn count_system(&self, text: &str) -> u32 {
        let mut known = self.system_tokens.lock();
        if known.0 != text {
            *known = (text.to_owned(), tokens::count(text));
        }
        known.1
    }

    /// About what a tool costs in a prompt; counted again when its description or schema changes length.
    pub(crate) fn count_tool(&self, tool: &Tool) -> u32 {
        let schema = tool.spec.schema.to_string();
        let length = tool.spec.description.len() + schema.len();
        let mut known = self.tool_tokens.lock();
        if let Some((known_length, tokens)) = known.get(&tool.spec.name)
            && *known_length == length
        {
            return *tokens;
        }
        if known.len() > 4096 {
            known.clear();
        }
        let tokens =
            tokens::count(&tool.spec.name) + tokens::count(&tool.spec.description) + tokens::count(&schema);
        known.insert(tool.spec.name.clone(), (length, tokens));
        tokens
    }
}
