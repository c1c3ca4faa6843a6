//! A small model that fills in forms as it is told to, and engines that have one beside the models that answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::model::{Answer, ChosenModel, Deltas, Form, Model, ModelError, Models, Prompt};
use confidant_engine::{Engine, HistoryLimits, Parts, Session, TurnRequest};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::tools::{Caller, Counting};
use super::*;

/// A small model that fills in forms as a test says, and keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Small {
    pub(crate) forms: Mutex<Vec<(String, Value, String)>>,
    /// What it was told to do, form by form.
    pub(crate) systems: Mutex<Vec<String>>,
    replies: Mutex<BTreeMap<&'static str, Result<Value, ModelError>>>,
    pub(crate) gate: Semaphore,
    /// The only form that the gate is for, if not for all.
    pub(crate) held: Mutex<Option<&'static str>>,
}

impl Small {
    pub(crate) fn new() -> Arc<Self> {
        let (forms, systems, replies, held) = Default::default();
        Arc::new(Self { forms, systems, replies, held, gate: Semaphore::new(1_000_000) })
    }

    pub(crate) fn says(&self, form: &'static str, reply: Value) {
        self.replies.lock().unwrap().insert(form, Ok(reply));
    }

    pub(crate) fn fails(&self, form: &'static str, error: ModelError) {
        self.replies.lock().unwrap().insert(form, Err(error));
    }

    pub(crate) fn asked(&self, form: &str) -> Vec<(Value, String)> {
        let forms = self.forms.lock().unwrap();
        forms.iter().filter(|(name, _, _)| name == form).map(|(_, s, m)| (s.clone(), m.clone())).collect()
    }
}

#[async_trait]
impl Model for Small {
    fn name(&self) -> &str {
        "small"
    }

    async fn respond(&self, _: &Prompt, _: Deltas<'_>) -> Result<Answer, ModelError> {
        Err(ModelError::Refused(500))
    }

    async fn fill(&self, form: &Form) -> Result<Value, ModelError> {
        let asked = (form.name.to_owned(), form.schema.clone(), form.material.clone());
        self.forms.lock().unwrap().push(asked);
        self.systems.lock().unwrap().push(form.system.clone());
        let held = self.held.lock().unwrap().is_none_or(|held| held == form.name);
        let _permit = if held { Some(self.gate.acquire().await.unwrap()) } else { None };
        self.replies.lock().unwrap().get(form.name).cloned().unwrap_or(Err(ModelError::Malformed))
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// An engine with a small model and two that answer, `default` and `coder`.
pub(crate) struct Setting {
    pub(crate) small: Arc<Small>,
    pub(crate) default: Arc<Caller>,
    pub(crate) engine: Engine,
}

pub(crate) async fn setting(place: &Place, change: impl FnOnce(&mut Parts)) -> Setting {
    setting_with(place, &Caller::new(), &Arc::new(Counting::default()), change).await
}

/// The same with a coder and tools that the test holds.
pub(crate) async fn setting_with(
    place: &Place,
    coder: &Arc<Caller>,
    tools: &Arc<Counting>,
    change: impl FnOnce(&mut Parts),
) -> Setting {
    let (small, default) = (Small::new(), Caller::new());
    let named = |name: &str, model: &Arc<Caller>, strengths: &[&str]| ChosenModel {
        name: name.to_owned(),
        model: Arc::clone(model) as _,
        strengths: strengths.iter().map(|word| (*word).to_owned()).collect(),
        cost: 1.0,
    };
    let models = Models::new(named("default", &default, &[]), vec![named("coder", coder, &["coding"])]);
    let mut parts = Parts {
        models: models.with_small(Arc::clone(&small) as _),
        toolbox: Arc::clone(tools) as _,
        ..Parts::new(place.storage().await, keys(&[1]), Arc::clone(&default) as _)
    };
    parts.settings.processing.enrich = false;
    // However slow the machine is: only a test of slowness wants less.
    parts.settings.processing.timeout = Duration::from_secs(120);
    change(&mut parts);
    let engine = Engine::open(parts).await.unwrap();
    Setting { small, default, engine }
}

/// What the small model would say of a harmless turn that the rules see the same way.
pub(crate) fn plain() -> Value {
    json!({
        "language_code": "en", "category": "general", "selected_model": "default",
        "selection_reason": "It is a plain question.", "prompt_injection_chance": 0,
        "direct_self_harm": 0, "indirect_self_harm": 0, "gradual_escalation_patterns": 0,
        "emotional_distress_indicators": 0, "illegal": 0,
        "tags": ["greeting"], "relevant_app_skills": [], "relevant_app_focus_modes": [],
        "relevant_app_settings_and_memories": [], "title": "A greeting", "icon_names": ["smile"],
    })
}

pub(crate) fn with(changes: Value) -> Value {
    let mut reply = plain();
    for (key, value) in changes.as_object().unwrap() {
        reply[key] = value.clone();
    }
    reply
}

/// A setting whose prompts have little room, while much is kept.
pub(crate) async fn long(place: &Place, history_tokens: u32) -> Setting {
    let s = setting(place, |parts| {
        parts.settings.history = HistoryLimits { max_messages: 100, token_budget: 4_000 };
        parts.settings.processing.history_tokens = history_tokens;
        parts.settings.processing.timeout = Duration::from_secs(60);
        parts.settings.max_query_bytes = 1_000_000;
    })
    .await;
    s.small.says("prepare_turn", plain());
    s
}

/// Six turns of some 26 000 tokens each.
pub(crate) async fn talk_at_length(alice: &Session) {
    for n in 0..6 {
        let query = format!("Chapter {n} begins. {}", " word".repeat(26_000));
        alice.turn(private(&query)).finish().await.unwrap();
    }
}

/// What was looked at before the last turn, block by block.
pub(crate) async fn looked_at(s: &Setting, alice: &Session, request: TurnRequest) -> Vec<String> {
    let before = s.small.asked("prepare_turn").len();
    alice.turn(request).finish().await.unwrap();
    s.small.asked("prepare_turn").split_off(before).into_iter().map(|(_, material)| material).collect()
}
