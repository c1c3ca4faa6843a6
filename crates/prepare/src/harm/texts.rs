//! What is said when a request is declined or help is named, in the person's language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Decision, SafetyAction};
use crate::Harm;

/// What can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafetyText {
    /// That a request is declined.
    Refusal,
    /// The same to somebody who speaks of hurting themself.
    SelfHarmRefusal,
    /// What the agent would rather help with.
    Redirect,
    /// Where to find help.
    CrisisResources,
    /// That the conversation is over.
    Termination,
}

/// The operator's own texts, by kind and language (two letters); those built in speak for the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SafetyTexts(BTreeMap<SafetyText, BTreeMap<String, String>>);

impl SafetyTexts {
    /// Sets a text of the operator's.
    #[must_use]
    pub fn with(mut self, kind: SafetyText, language: &str, text: &str) -> Self {
        self.0.entry(kind).or_default().insert(language.to_lowercase(), text.to_owned());
        self
    }

    /// A text in a language: the operator's, else the built-in one, else the operator's English one, else ours.
    #[must_use]
    pub fn text(&self, kind: SafetyText, language: &str) -> &str {
        let language = language.get(..2).unwrap_or("en").to_lowercase();
        let own = |language: &str| self.0.get(&kind)?.get(language).map(String::as_str);
        let built_in = |language: &str| BUILT_IN.get(&(kind, language)).copied();
        own(&language)
            .or_else(|| built_in(&language))
            .or_else(|| own("en"))
            .or_else(|| built_in("en"))
            .unwrap_or("")
    }

    /// The whole answer where a decision leaves none to the model: refusal or end, then help if that is due.
    #[must_use]
    pub fn instead_of_answer(&self, decision: &Decision, language: &str) -> Option<String> {
        let ends = decision.has(SafetyAction::TerminateConversation);
        if !ends && !decision.has(SafetyAction::RefuseAndRedirect) {
            return None;
        }
        let of_self = [Harm::DirectSelfHarm, Harm::IndirectSelfHarm, Harm::EmotionalDistressIndicators];
        let about_self = decision.harms.iter().any(|harm| of_self.contains(harm));
        let refusal = if about_self { SafetyText::SelfHarmRefusal } else { SafetyText::Refusal };
        let mut parts = vec![self.text(refusal, language)];
        if decision.has(SafetyAction::ProvideCrisisResources) || about_self {
            parts.push(self.text(SafetyText::CrisisResources, language));
        }
        parts.push(self.text(if ends { SafetyText::Termination } else { SafetyText::Redirect }, language));
        parts.retain(|part| !part.is_empty());
        Some(parts.join("\n\n"))
    }

    /// What is put after the model's answer: where to find help, if that is due.
    #[must_use]
    pub fn after_answer(&self, decision: &Decision, language: &str) -> Option<&str> {
        let due = decision.has(SafetyAction::ProvideCrisisResources)
            && !decision.has(SafetyAction::RefuseAndRedirect)
            && !decision.has(SafetyAction::TerminateConversation);
        due.then(|| self.text(SafetyText::CrisisResources, language))
    }
}

static BUILT_IN: LazyLock<BTreeMap<(SafetyText, &'static str), &'static str>> = LazyLock::new(|| {
    let lines = include_str!("../data/safety_texts.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let (head, text) = line.split_once('|')?;
        let (kind, language) = head.trim().split_once(' ')?;
        let kind = match kind {
            "refusal" => SafetyText::Refusal,
            "self_harm_refusal" => SafetyText::SelfHarmRefusal,
            "redirect" => SafetyText::Redirect,
            "crisis_resources" => SafetyText::CrisisResources,
            "termination" => SafetyText::Termination,
            _ => return None,
        };
        Some(((kind, language), text.trim()))
    };
    lines.filter_map(read).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [SafetyText; 5] = [
        SafetyText::Refusal,
        SafetyText::SelfHarmRefusal,
        SafetyText::Redirect,
        SafetyText::CrisisResources,
        SafetyText::Termination,
    ];

    fn decision(actions: &[SafetyAction], harms: &[Harm]) -> Decision {
        Decision { actions: actions.to_vec(), harms: harms.to_vec() }
    }

    #[test]
    fn every_text_is_there_in_every_language() {
        for language in ["en", "de", "fr", "es", "pt", "it"] {
            for kind in KINDS {
                assert!(BUILT_IN.contains_key(&(kind, language)), "{kind:?} {language}");
            }
            let crisis = SafetyTexts::default().text(SafetyText::CrisisResources, language).to_owned();
            assert!(crisis.contains("findahelpline.com") && crisis.contains("112"), "{language}");
        }
        assert_eq!(BUILT_IN.len(), KINDS.len() * 6);
    }

    #[test]
    fn the_operator_has_the_last_word() {
        let texts = SafetyTexts::default().with(SafetyText::Refusal, "de", "Nein.").with(
            SafetyText::CrisisResources,
            "en",
            "Call us.",
        );
        assert_eq!(texts.text(SafetyText::Refusal, "de"), "Nein.");
        assert_eq!(texts.text(SafetyText::CrisisResources, "sv"), "Call us.");
        let built_in = SafetyTexts::default();
        assert_eq!(
            texts.text(SafetyText::CrisisResources, "de"),
            built_in.text(SafetyText::CrisisResources, "de")
        );
        for odd in ["", "x", "日本", "de-AT"] {
            assert!(!texts.text(SafetyText::Redirect, odd).is_empty(), "{odd}");
        }
        let json = serde_json::to_string(&texts).unwrap();
        assert_eq!(json, r#"{"refusal":{"de":"Nein."},"crisis_resources":{"en":"Call us."}}"#);
        assert_eq!(serde_json::from_str::<SafetyTexts>(&json).unwrap(), texts);
    }

    #[test]
    fn a_person_in_need_is_not_only_refused() {
        let texts = SafetyTexts::default();
        let refused = decision(&[SafetyAction::RefuseAndRedirect], &[Harm::DirectSelfHarm]);
        let said = texts.instead_of_answer(&refused, "en").unwrap();
        assert!(
            said.contains("findahelpline.com")
                && said.contains(texts.text(SafetyText::SelfHarmRefusal, "en"))
        );
        let unlawful = decision(&[SafetyAction::RefuseAndRedirect], &[Harm::Illegal]);
        let said = texts.instead_of_answer(&unlawful, "de").unwrap();
        assert!(!said.contains("findahelpline.com") && said.contains(texts.text(SafetyText::Redirect, "de")));
        let help = decision(&[SafetyAction::ProvideCrisisResources], &[Harm::IndirectSelfHarm]);
        assert_eq!(texts.instead_of_answer(&help, "en"), None);
        assert!(texts.after_answer(&help, "en").is_some() && texts.after_answer(&refused, "en").is_none());
        assert_eq!(texts.after_answer(&Decision::default(), "en"), None);
    }
}
