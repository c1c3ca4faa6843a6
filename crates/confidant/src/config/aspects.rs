//! `[aspects]`: what the system prompt says, piece by piece, in the engine's order.

use std::sync::Arc;

use confidant_engine::{Aspect, Aspects, AudienceNote, Fixed, Slot};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AspectsSection {
    focus: Option<String>,
    ethics: Option<String>,
    pub(super) mate: Option<String>,
    apps: Option<String>,
    jurisdiction: Option<String>,
    agent: Option<String>,
    profile: Option<String>,
    conversation_context: Option<String>,
    disclaimer: Option<String>,
    additional: Option<String>,
}

impl AspectsSection {
    /// The aspects that were written, and the one that says who reads along.
    pub(crate) fn aspects(&self) -> Aspects {
        let written = [
            (Slot::Focus, &self.focus),
            (Slot::Ethics, &self.ethics),
            (Slot::Mate, &self.mate),
            (Slot::Apps, &self.apps),
            (Slot::Jurisdiction, &self.jurisdiction),
            (Slot::Agent, &self.agent),
            (Slot::Profile, &self.profile),
            (Slot::ConversationContext, &self.conversation_context),
            (Slot::Disclaimer, &self.disclaimer),
            (Slot::Additional, &self.additional),
        ];
        let fixed = written.into_iter().filter_map(|(slot, text)| {
            let text = text.as_ref().filter(|text| !text.trim().is_empty())?;
            Some(Arc::new(Fixed::new(slot, text)) as Arc<dyn Aspect>)
        });
        Aspects::new(fixed.chain([Arc::new(AudienceNote) as Arc<dyn Aspect>]).collect())
    }
}

impl Default for AspectsSection {
    fn default() -> Self {
        Self {
            focus: None,
            ethics: None,
            mate: None,
            apps: None,
            jurisdiction: None,
            agent: Some(AGENT.to_owned()),
            profile: None,
            conversation_context: None,
            disclaimer: None,
            additional: None,
        }
    }
}

/// Short, since small models read every word of it with every turn.
const AGENT: &str = "You are a friendly assistant. You remember what this person told you before. \
Answer from the conversation and the room discussion, in a few short sentences. \
If you do not know, say so.";
