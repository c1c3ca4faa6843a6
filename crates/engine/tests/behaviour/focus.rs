//! Focus modes: a model proposes, the person consents, the conversation remembers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::approval::{ApprovalRequest, Decider, Decision};
use confidant_engine::aspects::{Aspects, Instructions, Slot};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall};
use confidant_engine::turn::{CarryOut, Ending};
use confidant_engine::{Engine, Parts, Session};
use serde_json::json;

use crate::rig::*;

on_every_store! {
    a_focus_mode_is_started_with_consent_and_stays,
    a_focus_mode_that_is_denied_is_not_on,
    a_person_starts_and_ends_a_focus_mode_themself,
}

const ID: &str = "http:r:main:alice";
const RULES: &str = "Cite every source.";

/// Calls what a query orders: `start`, `stop`, or nothing.
#[derive(Debug, Default)]
struct Proposer {
    prompts: Mutex<Vec<Prompt>>,
}

impl Proposer {
    fn last(&self) -> Prompt {
        self.prompts.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl Model for Proposer {
    fn name(&self) -> &str {
        "proposer"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let word = prompt.query.split(' ').next().unwrap_or_default();
        let order = match word {
            "research" => Some(("focus.start", json!({ "focus": "web.research" }))),
            "unknown" => Some(("focus.start", json!({ "focus": "plot.coup" }))),
            "stop" => Some(("focus.stop", json!({}))),
            _ => None,
        };
        let called = prompt.steps.iter().flat_map(|step| &step.results).cloned().collect::<Vec<_>>();
        let calls = match order.filter(|_| called.is_empty()) {
            Some((name, arguments)) => {
                vec![ToolCall { id: "c1".into(), name: name.into(), arguments, signatures: vec![] }]
            }
            None => Vec::new(),
        };
        let text = if calls.is_empty() { format!("said: {}", called.join(" ")) } else { String::new() };
        deltas(&text);
        Ok(Answer { text, calls, model: "proposer".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

async fn engine(place: &Place) -> (Engine, Arc<Proposer>) {
    let folder = place.file("instructions");
    std::fs::create_dir_all(&folder).unwrap();
    let file = format!("---\nslot: focus\nfocus: web.research\nname: Research\n---\n{RULES}");
    std::fs::write(folder.join("research.md"), file).unwrap();
    let instructions = Instructions::open(folder);
    let model = Arc::new(Proposer::default());
    let parts = Parts {
        aspects: Aspects::new(vec![instructions.aspect(Slot::Focus, None)]),
        instructions,
        ..Parts::new(place.storage().await, keys(&[1]), Arc::clone(&model) as _)
    };
    (Engine::open(parts).await.unwrap(), model)
}

fn tools(prompt: &Prompt) -> Vec<&str> {
    prompt.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn asked(session: &Session, query: &str) -> ApprovalRequest {
    match session.turn(says(query)).end().await.unwrap() {
        Ending::Approval(request) => *request,
        Ending::Answer(answer) => panic!("{}", answer.content),
    }
}

async fn a_focus_mode_is_started_with_consent_and_stays(place: Place) {
    let (engine, model) = engine(&place).await;
    let alice = session(&engine, ID);
    // Only what the turn may need is offered, and only what there is can be started.
    alice.turn(says("hello there")).finish().await.unwrap();
    assert_eq!(tools(&model.last()), [""; 0]);
    let refused = alice.turn(says("unknown research of the web")).finish().await.unwrap();
    assert!(refused.content.contains("Not called"), "{}", refused.content);
    assert_eq!(tools(&model.last()), ["focus.start"]);
    let request = asked(&alice, "research the web for me").await;
    assert_eq!(
        (request.tool.as_str(), &request.arguments),
        ("focus.start", &json!({ "focus": "web.research" }))
    );
    assert_eq!(alice.about().await.unwrap().unwrap().focus, None, "nothing is on before the person says so");
    // The consent comes after a restart, from the person and nobody else.
    engine.stop(Duration::from_secs(5)).await;
    let (engine, model) = self::engine(&place).await;
    let alice = session(&engine, ID);
    let answer = alice.turn(says("approve")).finish().await.unwrap();
    assert!(answer.content.contains(RULES), "the model hears at once what it means: {}", answer.content);
    assert_eq!(answer.metadata.focus.as_deref(), Some("web.research"));
    // It holds for what comes next, whoever asks, and is not offered again.
    let next = alice.turn(says("and now some research of the web")).finish().await.unwrap();
    assert_eq!(model.last().system, RULES);
    assert_eq!(
        (tools(&model.last()), next.metadata.focus.as_deref()),
        (vec!["focus.stop"], Some("web.research"))
    );
    assert_eq!(alice.about().await.unwrap().unwrap().focus.as_deref(), Some("web.research"));
    let bob = session(&engine, "http:r:main:bob");
    bob.turn(says("hello")).finish().await.unwrap();
    assert_eq!(model.last().system, "", "another session is not in it");
    // Ending it needs nobody.
    let ended = alice.turn(says("stop it please")).finish().await.unwrap();
    assert_eq!(ended.metadata.focus, None);
    alice.turn(says("hello again")).finish().await.unwrap();
    assert_eq!((model.last().system.as_str(), tools(&model.last())), ("", vec![]));
}

async fn a_focus_mode_that_is_denied_is_not_on(place: Place) {
    let (engine, model) = engine(&place).await;
    let alice = session(&engine, ID);
    let request = asked(&alice, "research the web for me").await;
    let by = Decider::Person("mallory".to_owned());
    let wrong = alice.decide(&request.approval_id, Decision::Approve, by, CarryOut::Here);
    assert!(wrong.finish().await.is_err());
    let answer = alice.turn(says("deny")).finish().await.unwrap();
    assert!(answer.content.contains("it was denied") && answer.metadata.focus.is_none());
    alice.turn(says("hello")).finish().await.unwrap();
    assert_eq!(model.last().system, "");
}

async fn a_person_starts_and_ends_a_focus_mode_themself(place: Place) {
    let (engine, model) = engine(&place).await;
    let alice = session(&engine, ID);
    let error = alice.turn(says("!focus plot.coup")).finish().await.unwrap_err();
    assert!(error.to_string().contains("; hint: choose one of web.research"), "{error}");
    alice.turn(says("!focus web.research")).finish().await.unwrap();
    alice.turn(says("hello")).finish().await.unwrap();
    assert_eq!(model.last().system, RULES);
    alice.turn(says("!focus off")).finish().await.unwrap();
    alice.turn(says("hello")).finish().await.unwrap();
    assert_eq!(model.last().system, "");
}
