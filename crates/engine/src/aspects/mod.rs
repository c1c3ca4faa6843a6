//! Aspects: the named pieces of the system prompt, in a fixed order, each failing alone.
//!
//! An aspect returns text or nothing. One that fails is left out and named in the answer's metadata; it never takes
//! the turn with it.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::Scope;

use crate::audience::Audience;
use crate::clock::Millis;
use crate::turn::Prepared;

mod profile;

pub use profile::Profile;

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
}

/// An aspect whose text the operator wrote.
#[derive(Clone, Debug)]
pub struct Fixed {
    slot: Slot,
    text: String,
}

impl Fixed {
    /// Text for a slot.
    #[must_use]
    pub fn new(slot: Slot, text: impl Into<String>) -> Self {
        Self { slot, text: text.into() }
    }
}

#[async_trait]
impl Aspect for Fixed {
    fn slot(&self) -> Slot {
        self.slot
    }

    async fn text(&self, _: Situation<'_>) -> Result<Option<String>, AspectFailed> {
        Ok(Some(self.text.clone()).filter(|text| !text.trim().is_empty()))
    }
}

/// Tells the model who reads along, so that it can mind its words.
#[derive(Clone, Copy, Debug, Default)]
pub struct AudienceNote;

#[async_trait]
impl Aspect for AudienceNote {
    fn slot(&self) -> Slot {
        Slot::Profile
    }

    async fn text(&self, situation: Situation<'_>) -> Result<Option<String>, AspectFailed> {
        Ok(Some(match situation.audience {
            Audience::Private => "Only the person who asks will read your answer.".to_owned(),
            Audience::Room => "Everyone in the room will read your answer.".to_owned(),
        }))
    }
}

/// The aspects of an engine, in their order.
#[derive(Clone, Debug, Default)]
pub struct Aspects(Vec<Arc<dyn Aspect>>);

/// The composed system text, and the aspects that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) text: String,
    pub(crate) failed: Vec<&'static str>,
}

impl Aspects {
    /// Aspects in any order; they stand where their slots say, those of one slot as given.
    #[must_use]
    pub fn new(mut aspects: Vec<Arc<dyn Aspect>>) -> Self {
        aspects.sort_by_key(|aspect| aspect.slot());
        Self(aspects)
    }

    pub(crate) async fn compose(&self, situation: Situation<'_>) -> Composed {
        let mut composed = Composed { text: String::new(), failed: Vec::new() };
        for aspect in &self.0 {
            match aspect.text(situation).await {
                Ok(Some(text)) => {
                    if !composed.text.is_empty() {
                        composed.text.push_str("\n\n");
                    }
                    composed.text.push_str(text.trim());
                }
                Ok(None) => {}
                Err(AspectFailed) => composed.failed.push(aspect.slot().name()),
            }
        }
        composed
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
        let situation = Situation {
            scope: None,
            audience: Audience::Private,
            now: Millis(0),
            prepared: None,
            profile: &Profile::default(),
            focus: None,
        };
        let composed = aspects.compose(situation).await;
        assert_eq!(composed.text, "first\n\nOnly the person who asks will read your answer.\n\nlast");
        assert_eq!(composed.failed, ["mate"]);
    }
}
