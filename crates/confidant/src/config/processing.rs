//! `[processing]`: what is found out about a turn before its answer, and what is made of it afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use confidant_engine::Processing;
use confidant_engine::model::FormStyle;
use confidant_engine::prepare::{Decay, Harm, Measure, SafetyAction, SafetyText};
use confidant_engine::turn::Safety;
use serde::de::{Deserialize, Deserializer, Error as _};

use super::seconds;

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProcessingSection {
    /// The small model, by its name; local rules without it.
    pub(super) model: Option<String>,
    /// Whether turns are prepared.
    pub(crate) prepare: bool,
    /// Whether something is made of them afterwards.
    pub(crate) enrich: bool,
    /// Whether an answer is begun beside the small model's call.
    pub(crate) beside: bool,
    /// How long the small model may take.
    #[serde(rename = "timeout_seconds", deserialize_with = "seconds::some")]
    pub(crate) timeout: Duration,
    /// How models are asked to fill in forms.
    pub(super) forms: FormStyle,
    /// The chance of an injection from which on the model is warned.
    #[serde(deserialize_with = "score")]
    pub(crate) injection_warning: f32,
    /// The most tokens of what is kept that the small model looks at before the answer.
    pub(crate) history_tokens: u32,
    /// Whether a private conversation that begins is told of similar ones of the same person.
    pub(crate) past_chats: bool,
    /// The harm of an answer from which on it is made again; never without it.
    #[serde(deserialize_with = "maybe_score")]
    pub(crate) reprocess_at: Option<f32>,
    /// What is done about harm.
    pub(crate) safety: SafetySection,
}

/// What is done about each kind of harm; the engine's own rules for a kind and a measure that are not here.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SafetySection {
    pub(crate) direct_self_harm: Option<SafetyRules>,
    pub(crate) indirect_self_harm: Option<SafetyRules>,
    pub(crate) gradual_escalation_patterns: Option<SafetyRules>,
    pub(crate) emotional_distress_indicators: Option<SafetyRules>,
    pub(crate) illegal: Option<SafetyRules>,
    /// How fast the past of a conversation counts less.
    pub(crate) decay: Decay,
    /// What the person is told, by kind and language; the engine's own words for the rest.
    #[serde(deserialize_with = "texts")]
    pub(crate) texts: Texts,
}

type Texts = BTreeMap<SafetyText, BTreeMap<String, String>>;

/// Rules for one kind of harm; none of them to do nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SafetyRules(pub(crate) Vec<SafetyRule>);

/// From this score on, do these.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SafetyRule {
    /// Of the turn, or of the conversation.
    #[serde(default)]
    pub(crate) of: Option<Measure>,
    #[serde(deserialize_with = "score")]
    pub(crate) at: f32,
    pub(crate) then: Vec<SafetyAction>,
}

impl Default for ProcessingSection {
    fn default() -> Self {
        Self {
            model: None,
            prepare: true,
            enrich: true,
            beside: true,
            timeout: Duration::from_secs(5),
            forms: FormStyle::Function,
            injection_warning: 6.0,
            history_tokens: 280_000,
            past_chats: false,
            reprocess_at: None,
            safety: SafetySection::default(),
        }
    }
}

impl ProcessingSection {
    /// What the engine does before and after an answer.
    pub(crate) fn settings(&self) -> Processing {
        Processing {
            prepare: self.prepare,
            enrich: self.enrich,
            beside: self.beside,
            timeout: self.timeout,
            injection_warning: self.injection_warning,
            history_tokens: self.history_tokens,
            past_chats: self.past_chats,
            reprocess_at: self.reprocess_at,
        }
    }

    /// What it does about harm: for each kind, these rules, or the engine's own.
    pub(crate) fn safety(&self) -> Safety {
        let mut safety = Safety::default();
        for harm in Harm::ALL {
            let chosen = match harm {
                Harm::DirectSelfHarm => &self.safety.direct_self_harm,
                Harm::IndirectSelfHarm => &self.safety.indirect_self_harm,
                Harm::GradualEscalationPatterns => &self.safety.gradual_escalation_patterns,
                Harm::EmotionalDistressIndicators => &self.safety.emotional_distress_indicators,
                Harm::Illegal => &self.safety.illegal,
            };
            let Some(SafetyRules(rules)) = chosen else { continue };
            for measure in Measure::ALL {
                let of = |rule: &&SafetyRule| rule.of.unwrap_or(Measure::usual(harm)) == measure;
                let each =
                    |rule: &SafetyRule| rule.then.iter().map(|action| (rule.at, *action)).collect::<Vec<_>>();
                let of_measure: Vec<_> = rules.iter().filter(of).flat_map(each).collect();
                // No rules at all: nothing is done. None of this measure: the engine's own.
                if rules.is_empty() || rules.iter().any(|rule| of(&rule)) {
                    safety.rules.replace(harm, measure, &of_measure);
                }
            }
        }
        safety.rules.decay = self.safety.decay;
        for (kind, texts) in &self.safety.texts {
            for (language, text) in texts {
                safety.texts = safety.texts.with(*kind, language, text);
            }
        }
        safety
    }
}

/// One rule, or a list of them.
impl<'de> Deserialize<'de> for SafetyRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        let rules = match value {
            toml::Value::Array(rules) => rules,
            rule => vec![rule],
        };
        let rules: Result<Vec<SafetyRule>, toml::de::Error> =
            rules.into_iter().map(toml::Value::try_into).collect();
        rules.map(Self).map_err(|error| D::Error::custom(error.message()))
    }
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
    let texts = Texts::deserialize(deserializer)?;
    let is_code =
        |language: &String| language.len() == 2 && language.chars().all(|c| c.is_ascii_alphabetic());
    if !texts.values().flat_map(BTreeMap::keys).all(is_code) {
        return Err(D::Error::custom("this is not a language; hint: give two letters, such as en"));
    }
    Ok(texts)
}

fn score<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    let score = f32::deserialize(deserializer)?;
    if !(0.0..=10.0).contains(&score) {
        return Err(D::Error::custom("this is not a valid score; hint: give a number from 0 to 10"));
    }
    Ok(score)
}

fn maybe_score<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f32>, D::Error> {
    score(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_harm_has_one_rule_or_several() {
        let text = "reprocess_at = 8\n[safety]\nillegal = { at = 7, then = ['refuse_and_redirect'] }\n\
            direct_self_harm = [{ at = 4.5, then = ['provide_crisis_resources'] },\n\
            { at = 9, then = ['flag_for_human_review', 'terminate_conversation'] }]\nindirect_self_harm = []";
        let found: ProcessingSection = toml::from_str(text).unwrap();
        let rule = |at, then: &[SafetyAction]| SafetyRule { of: None, at, then: then.to_vec() };
        let expected = SafetySection {
            illegal: Some(SafetyRules(vec![rule(7.0, &[SafetyAction::RefuseAndRedirect])])),
            direct_self_harm: Some(SafetyRules(vec![
                rule(4.5, &[SafetyAction::ProvideCrisisResources]),
                rule(9.0, &[SafetyAction::FlagForHumanReview, SafetyAction::TerminateConversation]),
            ])),
            indirect_self_harm: Some(SafetyRules(Vec::new())),
            ..SafetySection::default()
        };
        assert_eq!((found.reprocess_at, found.safety), (Some(8.0), expected));
    }

    fn rules(text: &str, harm: Harm) -> Vec<(Measure, f32, SafetyAction)> {
        let found: ProcessingSection = toml::from_str(text).unwrap();
        let rules = found.safety().rules.rules.into_iter().filter(|rule| rule.harm == harm);
        rules.map(|rule| (rule.of, rule.at_least, rule.action)).collect()
    }

    /// Setting what is done about a turn leaves what is done about the conversation, and the other way round.
    #[test]
    fn a_rule_replaces_those_of_its_own_measure() {
        use Measure::{Conversation, Turn};
        use SafetyAction::{FlagForHumanReview, RefuseAndRedirect, TerminateConversation};
        let (flag, refuse) = ((Conversation, 9.0, FlagForHumanReview), (Turn, 8.0, RefuseAndRedirect));
        let ends = |of| (of, 7.0, TerminateConversation);
        for (text, expected) in [
            ("", vec![refuse, flag]),
            ("illegal = { at = 7, then = ['terminate_conversation'] }", vec![flag, ends(Turn)]),
            ("illegal = { of = 'turn', at = 7, then = ['terminate_conversation'] }", vec![flag, ends(Turn)]),
            (
                "illegal = { of = 'conversation', at = 7, then = ['terminate_conversation'] }",
                vec![refuse, ends(Conversation)],
            ),
            ("illegal = { of = 'conversation', at = 7, then = [] }", vec![refuse]),
            ("illegal = []", vec![]),
        ] {
            assert_eq!(rules(&format!("[safety]\n{text}"), Harm::Illegal), expected, "{text}");
        }
        let text = "[safety]\ngradual_escalation_patterns = { at = 6, then = ['flag_for_human_review'] }";
        let expected = [(Turn, 9.0, RefuseAndRedirect), (Conversation, 6.0, FlagForHumanReview)];
        assert_eq!(rules(text, Harm::GradualEscalationPatterns), expected);
    }

    #[test]
    fn decay_and_words_are_the_operators() {
        let text =
            "[safety]\ndecay = { half_life_turns = 2 }\n[safety.texts.crisis_resources]\nEN = 'Call us.'";
        let found = toml::from_str::<ProcessingSection>(text).unwrap().safety();
        assert_eq!(found.rules.decay, Decay { half_life_turns: 2, ..Decay::default() });
        assert_eq!(found.texts.text(SafetyText::CrisisResources, "en"), "Call us.");
        for wrong in ["[safety.texts.refusal]\nenglish = 'No.'", "[safety.texts.excuse]\nen = 'No.'"] {
            assert!(toml::from_str::<ProcessingSection>(wrong).is_err(), "{wrong}");
        }
    }
}
