//! `[aspects]`: what the system prompt says, piece by piece, in the engine's order.

use std::path::PathBuf;
use std::sync::Arc;

use confidant_engine::aspects::{
    AppsNote, Aspect, Aspects, AudienceNote, Fixed, InjectionWarning, Instructions, LanguageNote,
    ProfileNote, Slot,
};
use confidant_engine::concepts::ConversationContextAspect;
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AspectsSection {
    /// The folder of files that add to these texts or take their place.
    pub(super) instructions: Option<PathBuf>,
    focus: Option<String>,
    ethics: Option<String>,
    pub(super) mate: Option<String>,
    apps: Option<String>,
    jurisdiction: Option<String>,
    agent: Option<String>,
    profile: Option<String>,
    /// The note on the language to answer in.
    language: Option<String>,
    conversation_context: Option<String>,
    disclaimer: Option<String>,
    additional: Option<String>,
    /// The warning of a request that is after the instructions.
    injection_warning: Option<String>,
}

impl AspectsSection {
    /// What was written here and in files, and the notes that Confidant writes itself.
    pub(super) fn aspects(
        &self,
        instructions: &Instructions,
        warn_at: f32,
        in_scope: Option<u32>,
    ) -> Aspects {
        let written = |slot: Slot, text: &Option<String>| {
            text.as_ref().map(|text| Arc::new(Fixed::new(slot, text)) as Arc<dyn Aspect>)
        };
        let texts = [
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
        let mut aspects: Vec<Arc<dyn Aspect>> = texts
            .into_iter()
            .map(|(slot, text)| {
                let own = (slot == Slot::Apps).then(|| Arc::new(AppsNote) as Arc<dyn Aspect>);
                instructions.aspect(slot, written(slot, text).or(own))
            })
            .collect();
        let warning = InjectionWarning::new(warn_at);
        let warning = match &self.injection_warning {
            Some(text) => warning.saying(text),
            None => warning,
        };
        let language = self.language.as_ref().map_or_else(LanguageNote::default, LanguageNote::new);
        let notes: [Arc<dyn Aspect>; 4] =
            [Arc::new(ProfileNote), Arc::new(AudienceNote), Arc::new(language), Arc::new(warning)];
        aspects.extend(notes);
        aspects.extend(
            in_scope.map(|tokens| Arc::new(ConversationContextAspect::new(tokens)) as Arc<dyn Aspect>),
        );
        Aspects::new(aspects)
    }
}

impl Default for AspectsSection {
    fn default() -> Self {
        Self {
            instructions: None,
            focus: None,
            ethics: Some(ETHICS.to_owned()),
            mate: None,
            apps: None,
            jurisdiction: None,
            agent: Some(AGENT.to_owned()),
            profile: None,
            language: None,
            conversation_context: None,
            disclaimer: None,
            additional: None,
            injection_warning: None,
        }
    }
}

/// Short, since small models read every word of it with every turn.
const AGENT: &str = "You are a friendly assistant. You remember what this person told you before. \
Answer from the conversation and the room discussion, in a few short sentences. \
If you do not know, say so.";

/// Short for the same reason.
const ETHICS: &str = "Be honest. Never help anyone to harm themself or others.";
