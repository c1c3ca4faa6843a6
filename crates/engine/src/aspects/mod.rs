//! Aspects: the named pieces of the system prompt, in a fixed order, each failing alone.
//!
//! An aspect returns text or nothing. One that fails is left out and named in the answer's metadata; it never takes
//! the turn with it. What is easy to get wrong: text speaks as the operator, so what a person wrote, or anybody else,
//! is no text but a quoted block.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_model::Block;
use confidant_prepare::Prepared;
use confidant_seal::Scope;

use crate::audience::Audience;
use crate::clock::Millis;
use crate::concepts::InScope;

mod instructions;
mod notes;
mod profile;

pub use instructions::{Catalogue, Fault, FocusMode, Instructions, Mate};
pub use notes::{AppsNote, AudienceNote, Fixed, InjectionWarning, LanguageNote};
pub use profile::{Profile, ProfileNote};

/// Where in the system prompt an aspect stands. The order of the variants is the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Slot {
    /// What the conversation is focused on.
    Focus,
    /// What the agent will and will not do.
    Ethics,
    /// The persona that answers.
    Mate,
    /// The apps that can be used.
    Apps,
    /// Whose law applies.
    Jurisdiction,
    /// What the agent is.
    Agent,
    /// What the person chose to have known.
    Profile,
    /// The concepts in scope.
    ConversationContext,
    /// What must be said with every answer.
    Disclaimer,
    /// Anything else, such as an application's own instructions.
    Additional,
}

impl Slot {
    /// All of them, in their order.
    pub const ALL: [Self; 10] = [
        Self::Focus,
        Self::Ethics,
        Self::Mate,
        Self::Apps,
        Self::Jurisdiction,
        Self::Agent,
        Self::Profile,
        Self::ConversationContext,
        Self::Disclaimer,
        Self::Additional,
    ];

    /// Its name in configuration and metadata.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Focus => "focus",
            Self::Ethics => "ethics",
            Self::Mate => "mate",
            Self::Apps => "apps",
            Self::Jurisdiction => "jurisdiction",
            Self::Agent => "agent",
            Self::Profile => "profile",
            Self::ConversationContext => "conversation_context",
            Self::Disclaimer => "disclaimer",
            Self::Additional => "additional",
        }
    }
}

/// What an aspect may look at.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Whose memory the turn concerns; nothing for a turn without memory.
    pub scope: Option<&'a Scope>,
    /// Who will read the answer.
    pub audience: Audience,
    /// When.
    pub now: Millis,
    /// What was found out about the turn, if it was prepared.
    pub prepared: Option<&'a Prepared>,
    /// What the person chose to have known in this turn.
    pub profile: &'a Profile,
    /// The focus mode that is on.
    pub focus: Option<&'a str>,
    /// How many tools the turn is offered.
    pub tools: usize,
    /// The concepts in scope.
    pub concepts: &'a InScope,
}

/// An aspect gave no text because it failed; says nothing of why, which it logs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the aspect failed")]
pub struct AspectFailed;

/// A named piece of the system prompt.
#[async_trait]
pub trait Aspect: Send + Sync + std::fmt::Debug {
    /// Where it stands.
    fn slot(&self) -> Slot;
    /// Its text for this turn, or nothing.
    async fn text(&self, situation: Situation<'_>) -> Result<Option<String>, AspectFailed>;
    /// What it has to quote in this turn, if anything: data, which never speaks as the operator.
    async fn block(&self, situation: Situation<'_>) -> Result<Option<Block>, AspectFailed> {
        let _ = situation;
        Ok(None)
    }
}

/// The aspects of an engine, in their order.
#[derive(Clone, Debug, Default)]
pub struct Aspects(Vec<Arc<dyn Aspect>>);

/// The composed system text, what is quoted beside it, and the aspects that failed.
#[derive(Debug)]
pub(crate) struct Composed {
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) failed: Vec<&'static str>,
}

impl Aspects {
    /// Aspects in any order; they stand where their slots say, those of one slot as given.
    #[must_use]
    pub fn new(mut aspects: Vec<Arc<dyn Aspect>>) -> Self {
        aspects.sort_by_key(|aspect| aspect.slot());
        Self(aspects)
    }

    /// What one slot says, as far as its aspects do not fail.
    pub(crate) async fn text_of(&self, slot: Slot, situation: Situation<'_>) -> String {
        let mut texts = Vec::new();
        for aspect in self.0.iter().filter(|aspect| aspect.slot() == slot) {
            texts.extend(aspect.text(situation).await.ok().flatten());
        }
        texts.join("\n\n")
    }

    pub(crate) async fn compose(&self, situation: Situation<'_>) -> Composed {
        let mut composed = Composed { text: String::new(), blocks: Vec::new(), failed: Vec::new() };
        for aspect in &self.0 {
            let (text, block) = match (aspect.text(situation).await, aspect.block(situation).await) {
                (Ok(text), Ok(block)) => (text, block),
                (text, block) => {
                    composed.failed.push(aspect.slot().name());
                    (text.ok().flatten(), block.ok().flatten())
                }
            };
            if let Some(text) = text {
                if !composed.text.is_empty() {
                    composed.text.push_str("\n\n");
                }
                composed.text.push_str(text.trim());
            }
            composed.blocks.extend(block);
        }
        composed
    }
}

/// Situations for tests.
#[cfg(test)]
mod situation {
    use super::*;
    use confidant_prepare::{HarmScores, PreparedBy};

    /// Nothing known, nobody else there.
    pub(super) fn plain() -> Situation<'static> {
        static NOTHING: Profile = Profile {
            learning_style: None,
            interests: Vec::new(),
            jurisdictions: Vec::new(),
            persona: None,
            more: std::collections::BTreeMap::new(),
        };
        static NONE: std::sync::LazyLock<InScope> = std::sync::LazyLock::new(InScope::default);
        Situation {
            scope: None,
            audience: Audience::Private,
            now: Millis(0),
            prepared: None,
            profile: &NOTHING,
            focus: None,
            tools: 0,
            concepts: &NONE,
        }
    }

    pub(super) fn prepared(category: &str, language: &str, injection: f32) -> Prepared {
        Prepared {
            language_code: language.to_owned(),
            category: category.to_owned(),
            selected_model: String::new(),
            selection_reason: String::new(),
            harm: HarmScores::default(),
            prompt_injection_chance: injection,
            tags: Vec::new(),
            relevant_app_skills: Vec::new(),
            relevant_app_focus_modes: Vec::new(),
            relevant_app_settings_and_memories: Vec::new(),
            title: None,
            icon_names: Vec::new(),
            by: PreparedBy::Rules,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Broken;

    #[async_trait]
    impl Aspect for Broken {
        fn slot(&self) -> Slot {
            Slot::Mate
        }

        async fn text(&self, _: Situation<'_>) -> Result<Option<String>, AspectFailed> {
            Err(AspectFailed)
        }
    }

    #[tokio::test]
    async fn aspects_stand_in_their_order_and_fail_alone() {
        let aspects = Aspects::new(vec![
            Arc::new(Fixed::new(Slot::Additional, "last")),
            Arc::new(Broken),
            Arc::new(AudienceNote),
            Arc::new(Fixed::new(Slot::Focus, " first ")),
            Arc::new(Fixed::new(Slot::Agent, "")),
        ]);
        let composed = aspects.compose(situation::plain()).await;
        assert_eq!(composed.text, "first\n\nOnly the person who asks will read your answer.\n\nlast");
        assert_eq!(composed.failed, ["mate"]);
    }
}
