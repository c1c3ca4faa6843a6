//! Engines with concepts, and a model that names what it is told to for a query.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use confidant_concepts::{Graph, SqliteGraph};
use confidant_engine::aspects::Aspects;
use confidant_engine::clock::{Clock as _, ManualClock, Millis, SystemClock};
use confidant_engine::concepts::{ConceptSettings, Concepts, ConversationContextAspect};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall};
use confidant_engine::room::Audience;
use confidant_engine::turn::Final;
use confidant_engine::{Actor, Engine, Fence, Parts, Scope, Session, TenantId, TurnRequest};
use serde_json::{Value, json};

use super::*;

/// Names concepts for a query, as told; answers in words with the call.
#[derive(Debug, Default)]
pub(crate) struct Namer {
    pub(crate) prompts: Mutex<Vec<Prompt>>,
    script: Mutex<BTreeMap<String, Value>>,
}

impl Namer {
    pub(crate) fn on(&self, query: &str, arguments: Value) {
        self.script.lock().unwrap().insert(query.to_owned(), arguments);
    }

    pub(crate) fn last_prompt(&self) -> Prompt {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }

    /// What the model was told of concepts: the operator's sentence, then what is quoted.
    pub(crate) fn last_text(&self) -> String {
        let prompt = self.last_prompt();
        let quoted = prompt.blocks.iter().map(|block| block.render(&Fence::new([0; 8])));
        std::iter::once(prompt.system).chain(quoted).collect::<Vec<_>>().join("\n\n").trim().to_owned()
    }

    /// The lines of the concepts that it was told.
    pub(crate) fn last_concepts(&self) -> String {
        let prompt = self.last_prompt();
        let lines =
            prompt.blocks.iter().filter(|block| block.label == "concepts").flat_map(|block| &block.lines);
        lines.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

#[async_trait]
impl Model for Namer {
    fn name(&self) -> &str {
        "namer"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let arguments = self.script.lock().unwrap().get(&prompt.query).cloned();
        let call = |arguments| ToolCall {
            id: "c1".into(),
            name: "capture_concepts".into(),
            arguments,
            signatures: vec![],
        };
        let offered = prompt.tools.iter().any(|tool| tool.name == "capture_concepts");
        let calls = arguments.filter(|_| offered).map(call).into_iter().collect();
        let text = format!("about {}", prompt.query.len());
        deltas(&text);
        Ok(Answer { text, calls, model: "namer".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// An engine with concepts, and what a test holds of it.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) model: Arc<Namer>,
    pub(crate) graph: SqliteGraph,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) async fn rig(place: &Place) -> Rig {
    let graph = SqliteGraph::in_memory().unwrap();
    rig_with(place, Arc::new(graph.clone()), graph, ConceptSettings::default()).await
}

pub(crate) async fn rig_with(
    place: &Place,
    port: Arc<dyn Graph>,
    graph: SqliteGraph,
    settings: ConceptSettings,
) -> Rig {
    // Near the real one, which is what a Redis ends sessions by.
    rig_at(place, port, graph, settings, SystemClock.now(), &keys(&[1])).await
}

pub(crate) async fn rig_at(
    place: &Place,
    port: Arc<dyn Graph>,
    graph: SqliteGraph,
    settings: ConceptSettings,
    now: Millis,
    keys: &Arc<TestKeys>,
) -> Rig {
    let model = Arc::new(Namer::default());
    let clock = Arc::new(ManualClock::new(now));
    let parts = Parts {
        concepts: Concepts::new(port, settings),
        aspects: Aspects::new(vec![Arc::new(ConversationContextAspect::default())]),
        clock: Arc::clone(&clock) as _,
        ..Parts::new(place.storage().await, Arc::clone(keys) as _, Arc::clone(&model) as _)
    };
    Rig { engine: Engine::open(parts).await.unwrap(), model, graph, clock }
}

impl Rig {
    pub(crate) fn session(&self, tenant: &str, conversation: &str, user: &str) -> Session {
        let tenant = TenantId::new(tenant).unwrap();
        let scope = Scope::parse(tenant, &format!("chat:{conversation}:main:{user}")).unwrap();
        self.engine.session(scope, Actor::cli())
    }

    /// The same of somebody who was let into the conversation.
    pub(crate) async fn joined(&self, tenant: &str, conversation: &str, user: &str) -> Session {
        let session = self.session(tenant, conversation, user);
        assert!(session.join_conversation().await.unwrap());
        session
    }

    /// A turn in which the model names this.
    pub(crate) async fn says(
        &self,
        session: &Session,
        query: &str,
        audience: Audience,
        names: Value,
    ) -> Final {
        self.model.on(query, names);
        self.turn(session, query, audience).await
    }

    pub(crate) async fn turn(&self, session: &Session, query: &str, audience: Audience) -> Final {
        let request = TurnRequest { capture: true, audience: Some(audience), ..says(query) };
        let answer = session.turn(request).finish().await.unwrap();
        // What the log hears afterwards must not be said in another time.
        self.engine.settle().await;
        answer
    }
}

pub(crate) fn concept(kind: &str, label: &str, definition: &str) -> Value {
    json!({ "domain": "tax", "kind": kind, "jurisdiction": "IE", "prefLabel": label, "definition": definition })
}

pub(crate) fn taxes() -> Value {
    json!({ "concepts": [
        concept("VAT", "Value-Added Tax (VAT)", "general indirect tax on goods and services in Ireland."),
        concept("VRT", "Vehicle Registration Tax (VRT)", "tax levied on registration of vehicles in Ireland."),
    ] })
}

pub(crate) fn kinds(names: impl IntoIterator<Item = String>) -> Value {
    let one = |name: String| concept(&name, &format!("Tax named {name}"), "a tax.");
    json!({ "concepts": names.into_iter().map(one).collect::<Vec<_>>() })
}

pub(crate) const LINES: &str = "- Value-Added Tax (VAT) (IE) – general indirect tax on goods and services in Ireland.\n\
    - Vehicle Registration Tax (VRT) (IE) – tax levied on registration of vehicles in Ireland.";

pub(crate) async fn ids(session: &Session) -> Vec<String> {
    session.concepts_in_scope().await.unwrap().active_node_ids
}
