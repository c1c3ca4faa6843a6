//! Temporary.
use super::*;
use crate::clock::Millis;
use crate::model::Form;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub(crate) fn rules(view: &View<'_>, offer: &Offer) -> Prepared {
    Prepared {
        language_code: "en".into(),
        category: offer.categories.first().cloned().unwrap_or_default(),
        selected_model: offer.models.first().map(|m| m.name.clone()).unwrap_or_default(),
        selection_reason: String::new(),
        harm: HarmScores::default(),
        prompt_injection_chance: 0.0,
        tags: vec![],
        relevant_app_skills: vec![],
        relevant_app_focus_modes: vec![],
        relevant_app_settings_and_memories: vec![],
        title: view.wants_title.then(|| view.query.chars().take(40).collect()),
        icon_names: vec![],
        by: PreparedBy::Rules,
    }
}
pub(crate) fn forms(_: &View<'_>, _: &Offer) -> Vec<Form> {
    vec![]
}
pub(crate) struct Found;
pub(crate) fn read(_: &Value, _: &View<'_>, _: &Offer) -> Option<Found> {
    None
}
pub(crate) fn merge(_: Vec<Option<Found>>, fallback: Prepared) -> Prepared {
    fallback
}
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Running;
impl Running {
    pub(crate) fn update(&mut self, _: &HarmScores, _: Millis) {}
    pub(crate) fn is_calm(&self) -> bool {
        true
    }
}
#[derive(Clone, Debug, Default)]
pub struct SafetyRules;
impl SafetyRules {
    pub(crate) fn decide(&self, _: &HarmScores, _: &Running) -> Decision {
        Decision::default()
    }
}
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) actions: Vec<Action>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    RefuseAndRedirect,
    ProvideCrisisResources,
    FlagForHumanReview,
    TerminateConversation,
}
#[derive(Clone, Debug, Default)]
pub struct SafetyTexts;
impl SafetyTexts {
    pub(crate) fn refusal(&self, _: &str) -> String {
        String::new()
    }
    pub(crate) fn crisis(&self, _: &str) -> String {
        String::new()
    }
    pub(crate) fn terminated(&self, _: &str) -> String {
        String::new()
    }
}
