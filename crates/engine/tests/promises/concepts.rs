//! Concepts in scope: they are captured, told to the next turn, kept apart, forgotten with their person, and never fail a
//! chat. The model here names what the test tells it to for a query.

mod crashes;
mod failure;
mod moving;
mod outage;
mod poison;
mod redis_keys;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_concepts::skos::{Defaults, Form, import};
use confidant_concepts::{Graph, SqliteGraph};
use confidant_engine::*;
use serde_json::{Value, json};

use crate::on_every_store;
use crate::rig::*;

on_every_store! {
    the_next_turn_is_told_what_the_last_one_captured,
    concepts_never_reach_the_reader,
    sixty_four_turns_at_once_lose_no_concept,
    what_was_private_stays_with_its_person,
    promise_6_forgotten_concepts_are_gone,
    promise_6_what_is_taken_back_is_out_of_scope,
    people_can_pin_and_ask_why,
    a_context_is_made_anew_from_its_log,
    contexts_nobody_uses_are_archived_and_say_so,
    a_context_lasts_as_long_as_its_sessions,
    candidates_become_public_only_by_approval,
    superseded_concepts_are_followed_and_vanished_ones_dropped,
    concepts_survive_a_rotation_of_keys,
}

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

    fn last_system(&self) -> String {
        self.prompts.lock().unwrap().last().unwrap().system.clone()
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
    pub(crate) keys: Arc<TestKeys>,
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
    rig_at(place, port, graph, settings, SystemClock.now()).await
}

pub(crate) async fn rig_at(
    place: &Place,
    port: Arc<dyn Graph>,
    graph: SqliteGraph,
    settings: ConceptSettings,
    now: Millis,
) -> Rig {
    let model = Arc::new(Namer::default());
    let clock = Arc::new(ManualClock::new(now));
    let keys = keys(&[1]);
    let parts = Parts {
        concepts: Concepts::new(port, settings),
        aspects: Aspects::new(vec![Arc::new(ConversationContextAspect::default())]),
        clock: Arc::clone(&clock) as _,
        ..Parts::new(place.storage().await, Arc::clone(&keys) as _, Arc::clone(&model) as _)
    };
    Rig { engine: Engine::open(parts).await.unwrap(), model, graph, clock, keys }
}

impl Rig {
    pub(crate) fn session(&self, tenant: &str, conversation: &str, user: &str) -> Session {
        let tenant = TenantId::new(tenant).unwrap();
        let scope = Scope::parse(tenant, &format!("chat:{conversation}:main:{user}")).unwrap();
        self.engine.session(scope, Actor::cli())
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

    async fn audited(&self) -> Vec<(String, Option<u64>)> {
        let lines = self.engine.dangerously_administer(Actor::cli()).audit(10_000).await.unwrap();
        let refused = lines.into_iter().filter(|line| line.record.action == Action::ConceptRefused);
        refused.map(|line| (line.record.reason.unwrap_or_default(), line.record.count)).collect()
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

fn kinds(names: impl IntoIterator<Item = String>) -> Value {
    let one = |name: String| concept(&name, &format!("Tax named {name}"), "a tax.");
    json!({ "concepts": names.into_iter().map(one).collect::<Vec<_>>() })
}

const PARAGRAPH: &str = "In this conversation, the following regulatory concepts are already in scope:\n\
    - Value-Added Tax (VAT) (IE) – general indirect tax on goods and services in Ireland.\n\
    - Vehicle Registration Tax (VRT) (IE) – tax levied on registration of vehicles in Ireland.\n\
    Where relevant, prefer grounded explanations that reuse these concepts.";

async fn ids(session: &Session) -> Vec<String> {
    session.concepts_in_scope().await.unwrap().active_node_ids
}

async fn the_next_turn_is_told_what_the_last_one_captured(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    let first = rig.says(&alice, "What do I pay when I import a car?", Audience::Private, taxes()).await;
    assert_eq!(first.metadata.context_status, ContextStatus::Empty);
    let of_turn = first.metadata.concepts.unwrap();
    assert_eq!(of_turn.referenced_nodes, ["TAX:IE:VAT", "TAX:IE:VRT"]);
    assert_eq!(
        (of_turn.jurisdictions, of_turn.uncertainty_level),
        (vec!["IE".to_owned()], Uncertainty::High)
    );
    let second = rig.turn(&alice, "And for a bike?", Audience::Private).await;
    assert_eq!(second.metadata.context_status, ContextStatus::Loaded);
    assert_eq!(rig.model.last_system(), PARAGRAPH);
    // The same conversation id of another tenant is another conversation.
    let stranger = rig.session("other", "c1", "alice");
    let theirs = rig.turn(&stranger, "And for a bike?", Audience::Private).await;
    assert_eq!(
        (theirs.metadata.context_status, rig.model.last_system()),
        (ContextStatus::Empty, String::new())
    );
    // After a restart it is still there.
    stop(rig.engine).await;
    let rig = self::rig(&place).await;
    rig.turn(&rig.session("acme", "c1", "alice"), "And now?", Audience::Private).await;
    assert_eq!(rig.model.last_system(), PARAGRAPH);
}

async fn concepts_never_reach_the_reader(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.model.on("hello", taxes());
    let mut turn = alice.turn(TurnRequest { capture: true, ..says("hello") });
    let mut heard = String::new();
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Progress { text } => heard.push_str(&text),
            Outbound::Delta { text, .. } => heard.push_str(&text),
            Outbound::Final(answer) => {
                assert_eq!((answer.content.as_str(), answer.metadata.tools.len()), ("about 5", 0));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(heard.ends_with("about 5") && !heard.contains("capture") && !heard.contains("VAT"), "{heard}");
    // An answer that came with its concepts costs no second call of the model.
    assert_eq!(rig.model.prompts.lock().unwrap().len(), 1);
    // Where nothing asks for concepts, and none are known, the model is not asked for any.
    rig.session("acme", "c2", "alice").turn(says("hello")).finish().await.unwrap();
    assert!(rig.model.prompts.lock().unwrap()[1].tools.is_empty());
}

async fn sixty_four_turns_at_once_lose_no_concept(place: Place) {
    let rig = rig(&place).await;
    let mut turns = Vec::new();
    for n in 0..64 {
        let query = format!("question {n}");
        rig.model.on(&query, kinds((0..3).map(|k| format!("T{n}X{k}"))));
        let session = rig.session("acme", "c1", &format!("user{n}"));
        let request = TurnRequest { capture: true, audience: Some(Audience::Room), ..says(&query) };
        turns.push(session.turn(request));
    }
    for turn in turns {
        assert_ne!(turn.finish().await.unwrap().metadata.context_status, ContextStatus::SaveFailed);
    }
    let found: BTreeSet<String> = ids(&rig.session("acme", "c1", "user0")).await.into_iter().collect();
    let all = (0..64).flat_map(|n| (0..3).map(move |k| format!("TAX:IE:T{n}X{k}"))).collect();
    assert_eq!(found, all);
}

async fn what_was_private_stays_with_its_person(place: Place) {
    let rig = rig(&place).await;
    let (alice, bob) = (rig.session("acme", "c1", "alice"), rig.session("acme", "c1", "bob"));
    rig.says(&alice, "in private", Audience::Private, kinds(["SECRET".to_owned()])).await;
    rig.says(&alice, "to all", Audience::Room, kinds(["OPEN".to_owned()])).await;
    assert_eq!(ids(&bob).await, ["TAX:IE:OPEN"]);
    assert_eq!(ids(&alice).await.len(), 2);
    rig.turn(&bob, "tell me", Audience::Private).await;
    assert!(!rig.model.last_system().contains("SECRET") && rig.model.last_system().contains("OPEN"));
    // Not even Alice's own answer tells the room.
    rig.turn(&alice, "tell us", Audience::Room).await;
    assert!(!rig.model.last_system().contains("SECRET"));
    assert_eq!(bob.why_in_scope("TAX:IE:SECRET").await.unwrap(), []);
    assert!(!bob.choose_concept("TAX:IE:SECRET", ConceptChoice::Pin).await.unwrap());
    let why = bob.why_in_scope("TAX:IE:OPEN").await.unwrap();
    assert_eq!((why.len(), why[0].yours, &why[0].request_id), (1, false, &None));
    // Another channel's conversation is its own session, even under a name that looks alike.
    let elsewhere = session(&rig.engine, "http:c1:main:alice");
    assert_eq!(ids(&elsewhere).await, Vec::<String>::new());
}

async fn promise_6_forgotten_concepts_are_gone(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let (alice, bob) = (rig.session("acme", "c1", "alice"), rig.session("acme", "c1", "bob"));
    rig.says(&alice, "one", Audience::Room, kinds(["MINE".to_owned(), "OURS".to_owned()])).await;
    rig.says(&bob, "two", Audience::Room, kinds(["OURS".to_owned()])).await;
    let private = session(&rig.engine, "discord_conv:alice");
    rig.says(&private, "three", Audience::Private, kinds(["ALONE".to_owned()])).await;
    assert_eq!(private.export().await.unwrap().unwrap().concepts.len(), 1);
    assert_eq!(admin.candidates(&tenant).await.unwrap().len(), 3);
    let user = UserId::new("alice").unwrap();
    let would = admin.count_derived(&tenant, &user).await.unwrap();
    let receipt = admin.erase_person(&tenant, &user).await.unwrap();
    assert_eq!(would, receipt.derived, "a dry run says the same");
    assert_eq!((receipt.sessions, receipt.derived.get("captures")), (2, Some(&2)), "{receipt:?}");
    // Her sessions' two keys, and that of the conversation that was hers alone.
    assert_eq!(receipt.keys.len(), 3);
    admin.verify_receipt(&receipt).await.unwrap();
    assert_eq!(ids(&bob).await, ["TAX:IE:OURS"]);
    assert_eq!(ids(&private).await, Vec::<String>::new());
    let left: Vec<String> =
        admin.candidates(&tenant).await.unwrap().into_iter().map(|one| one.concept.id).collect();
    assert_eq!(left, ["TAX:IE:OURS"]);
    // One session alone, and then by a person's own wish.
    let would = bob.count_derived().await.unwrap();
    let gone = bob.erase().await.unwrap();
    assert_eq!(would, gone.derived, "a dry run says the same");
    assert_eq!((gone.derived.get("captures"), gone.keys.len()), (Some(&1), 2));
    assert_eq!(admin.candidates(&tenant).await.unwrap(), []);
    rig.says(&bob, "again", Audience::Private, taxes()).await;
    assert_eq!(bob.forget_concepts().await.unwrap(), 1);
    assert_eq!(ids(&bob).await, Vec::<String>::new());
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
}

async fn promise_6_what_is_taken_back_is_out_of_scope(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let (alice, bob) = (rig.session("acme", "c1", "alice"), rig.session("acme", "c1", "bob"));
    let named = |names: &[&str]| kinds(names.iter().map(|name| (*name).to_owned()));
    let one = rig.says(&alice, "one", Audience::Room, named(&["MINE", "OURS"])).await;
    rig.says(&bob, "two", Audience::Room, named(&["OURS"])).await;
    let three = rig.says(&alice, "three", Audience::Room, named(&["LATER"])).await;
    let in_scope = async |session: &Session| ids(session).await.into_iter().collect::<BTreeSet<_>>();
    let only = |names: &[&str]| names.iter().map(|name| format!("TAX:IE:{name}")).collect::<BTreeSet<_>>();
    assert_eq!(in_scope(&bob).await, only(&["MINE", "OURS", "LATER"]));
    // Removed: what nobody else named is gone, with the reason; what somebody else named stays.
    assert!(alice.remove(&one.request_id).await.unwrap());
    assert_eq!(in_scope(&bob).await, only(&["OURS", "LATER"]));
    assert!(alice.why_in_scope("TAX:IE:MINE").await.unwrap().is_empty());
    assert_eq!(alice.export().await.unwrap().unwrap().concepts.len(), 1);
    let tenant = TenantId::new("acme").unwrap();
    let candidates = admin.candidates(&tenant).await.unwrap().into_iter().map(|one| one.concept.id);
    assert_eq!(candidates.collect::<BTreeSet<_>>(), only(&["OURS", "LATER"]));
    // Changed: the answer went with it, and so does what it named. Asked for again, nothing more goes.
    for _ in 0..2 {
        assert!(alice.amend(&three.request_id, "three, otherwise").await.unwrap());
        assert_eq!(in_scope(&bob).await, only(&["OURS"]));
    }
    // Nothing is left: then there is no context.
    let private = session(&rig.engine, "discord_conv:alice");
    let alone = rig.says(&private, "four", Audience::Private, named(&["ALONE"])).await;
    assert!(private.remove(&alone.request_id).await.unwrap());
    assert_eq!(in_scope(&private).await, only(&[]));
    rig.says(&private, "five", Audience::Private, named(&["NEW"])).await;
    assert_eq!(in_scope(&private).await, only(&["NEW"]));
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
}

async fn people_can_pin_and_ask_why(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, kinds(["OLD".to_owned()])).await;
    rig.clock.advance(Duration::from_secs(30 * 86_400));
    rig.says(&alice, "two", Audience::Private, kinds(["NEW".to_owned()])).await;
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW", "TAX:IE:OLD"], "what was used lately comes first");
    assert!(alice.choose_concept("TAX:IE:OLD", ConceptChoice::Pin).await.unwrap());
    assert!(!alice.choose_concept("TAX:IE:NONE", ConceptChoice::Pin).await.unwrap());
    let view = alice.concepts_in_scope().await.unwrap();
    assert_eq!(view.active_node_ids, ["TAX:IE:OLD", "TAX:IE:NEW"], "what is pinned comes before it");
    assert_eq!((view.concepts[0].pinned, view.concepts[0].label.as_str()), (true, "Tax named OLD"));
    let why: Vec<&str> =
        alice.why_in_scope("TAX:IE:OLD").await.unwrap().iter().map(|reason| reason.what).collect();
    assert_eq!(why, ["used", "pinned"]);
    assert!(alice.choose_concept("TAX:IE:OLD", ConceptChoice::Unpin).await.unwrap());
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW", "TAX:IE:OLD"]);
}

async fn a_context_is_made_anew_from_its_log(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    for n in 0..5 {
        rig.says(&alice, &format!("q{n}"), Audience::Private, kinds([format!("T{n}"), "SAME".to_owned()]))
            .await;
        rig.clock.advance(Duration::from_secs(60));
    }
    alice.choose_concept("TAX:IE:T0", ConceptChoice::Pin).await.unwrap();
    let before = alice.concepts_in_scope().await.unwrap();
    let rebuilt = alice.rebuild_concepts().await.unwrap();
    assert_eq!(rebuilt.active_node_ids, before.active_node_ids);
    assert_eq!(alice.concepts_in_scope().await.unwrap(), before);
}

async fn contexts_nobody_uses_are_archived_and_say_so(place: Place) {
    let rig = rig(&place).await;
    // A session that has no end of its own.
    let alice = session(&rig.engine, "discord_conv:alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    rig.clock.advance(Duration::from_secs(89 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert_eq!(ids(&alice).await.len(), 2);
    rig.clock.advance(Duration::from_secs(2 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert_eq!(ids(&alice).await, Vec::<String>::new());
    let lines = rig.engine.dangerously_administer(Actor::cli()).audit(1000).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.record.action == Action::ContextArchived).count(), 1);
    // It begins anew, and what is in a session with an end goes with it.
    rig.says(&alice, "two", Audience::Private, kinds(["NEW".to_owned()])).await;
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW"]);
    let short = rig.session("acme", "c1", "alice");
    rig.says(&short, "three", Audience::Private, taxes()).await;
    rig.clock.advance(Duration::from_secs(2 * 86_400));
    assert_eq!(rig.engine.sweep().await.unwrap(), 1);
    assert_eq!(ids(&short).await, Vec::<String>::new());
    assert_eq!(rig.engine.key_status().await.unwrap().keys, 2, "the log's key and the conversation's");
}

/// Turns that name nothing keep what is in scope as they keep the session; a decision that is waited for does, too.
async fn a_context_lasts_as_long_as_its_sessions(place: Place) {
    let rig = rig(&place).await;
    let (alice, bob) = (rig.session("acme", "c1", "alice"), rig.session("acme", "c1", "bob"));
    rig.says(&alice, "one", Audience::Room, taxes()).await;
    rig.says(&bob, "two", Audience::Room, kinds(["BOBS".to_owned()])).await;
    for n in 0..6 {
        rig.clock.advance(Duration::from_secs(20 * 3600));
        rig.turn(&alice, &format!("and then {n}"), Audience::Room).await;
        rig.engine.sweep().await.unwrap();
        // Bob's went with his session, hers are here.
        assert_eq!(ids(&alice).await.len(), if n == 0 { 3 } else { 2 });
    }
    rig.clock.advance(Duration::from_secs(25 * 3600));
    rig.engine.sweep().await.unwrap();
    assert_eq!(rig.engine.key_status().await.unwrap().keys, 0);
    assert_eq!(ids(&alice).await, Vec::<String>::new());
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let lines = admin.audit(1000).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.record.action == Action::ContextErased).count(), 1);
    assert_eq!(admin.candidates(&TenantId::new("acme").unwrap()).await.unwrap(), []);
}

async fn candidates_become_public_only_by_approval(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let alice = rig.session("acme", "c1", "alice");
    let mut vat = concept("VAT", "Value-Added Tax", "general indirect tax.");
    vat["altLabels"] = json!(["VAT", "my own words for it"]);
    let named = json!({ "concepts": [vat, concept("VRT", "car thing tax", "a tax on cars.")] });
    rig.says(&alice, "What is VAT, my own words for it, and the car thing tax?", Audience::Private, named)
        .await;
    assert_eq!(rig.graph.count().await.unwrap(), 0, "capturing changes nothing that is shared");
    let candidates = admin.candidates(&tenant).await.unwrap();
    assert_eq!(candidates.len(), 2);
    assert_eq!((candidates[0].said, candidates[0].concept.alt_labels.len()), (false, 0), "{candidates:?}");
    assert!(candidates[1].said, "its label is what she said");
    assert_eq!(admin.candidates(&TenantId::new("other").unwrap()).await.unwrap(), []);
    let approve = async |id: &str, label: Option<&str>| admin.approve_concept(&tenant, id, label, &[]).await;
    assert_eq!(approve("TAX:IE:NONE", None).await.unwrap(), None);
    assert!(matches!(approve("TAX:IE:VRT", None).await, Err(Error::Invalid { .. })));
    assert!(approve("TAX:IE:VRT", Some("mail jane@example.org")).await.is_err());
    assert_eq!(rig.graph.count().await.unwrap(), 0);
    assert!(approve("TAX:IE:VRT", Some("Vehicle Registration Tax")).await.unwrap().is_some());
    approve("TAX:IE:VAT", None).await.unwrap().unwrap();
    assert_eq!(admin.candidates(&tenant).await.unwrap(), []);
    // Now everybody's, under its public name, and an answer that names it stands on it.
    let stranger = rig.session("other", "c9", "bob");
    let label = concept("VRT", "whatever the model calls it", "what it says of it.");
    let theirs = rig.says(&stranger, "hm", Audience::Private, json!({ "concepts": [label] })).await;
    assert_eq!(theirs.metadata.concepts.unwrap().uncertainty_level, Uncertainty::Low);
    let view = stranger.concepts_in_scope().await.unwrap();
    assert_eq!(
        (view.concepts[0].label.as_str(), view.concepts[0].candidate),
        ("Vehicle Registration Tax", false)
    );
}

async fn superseded_concepts_are_followed_and_vanished_ones_dropped(place: Place) {
    let rig = rig(&place).await;
    let turtle = |more: &str| {
        format!(
            "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix c: <urn:confidant:ns:> .
             @prefix d: <http://purl.org/dc/terms/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
             <urn:x:old> a skos:Concept ; skos:prefLabel \"Old Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"OLD\" .
             <urn:x:new> a skos:Concept ; skos:prefLabel \"New Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"NEW\" .
             <urn:x:end> a skos:Concept ; skos:prefLabel \"End Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"END\" .
             {more}"
        )
    };
    let take = |text: &str| {
        import(&rig.graph, Form::Turtle, text.as_bytes(), text.as_bytes(), &Defaults::default(), &|_, _| ())
            .unwrap()
    };
    assert_eq!(take(&turtle("")).concepts, 3);
    let alice = rig.session("acme", "c1", "alice");
    let named = json!({ "concepts": [concept("OLD", "Old Tax", ""), concept("END", "End Tax", "")] });
    let first = rig.says(&alice, "one", Audience::Private, named).await;
    assert_eq!(first.metadata.concepts.unwrap().uncertainty_level, Uncertainty::Low);
    take(&turtle("<urn:x:old> d:isReplacedBy <urn:x:new> . <urn:x:end> owl:deprecated true ."));
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW"]);
    rig.turn(&alice, "two", Audience::Private).await;
    let system = rig.model.last_system();
    assert!(system.contains("- New Tax (IE)") && !system.contains("Old Tax") && !system.contains("End Tax"));
    // The next capture writes down what the graph said.
    rig.says(&alice, "three", Audience::Private, kinds(["MORE".to_owned()])).await;
    let stored = alice.rebuild_concepts().await.unwrap().active_node_ids;
    assert!(stored.contains(&"TAX:IE:OLD".to_owned()), "the log keeps what was captured as it was");
}

async fn concepts_survive_a_rotation_of_keys(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    rig.keys.set(&[2, 1]);
    rig.engine.rotate_keys(&Actor::cli(), &|_, _| ()).await.unwrap();
    assert_eq!(ids(&alice).await.len(), 2);
    rig.says(&alice, "two", Audience::Private, kinds(["MORE".to_owned()])).await;
    assert_eq!(ids(&alice).await.len(), 3);
}

/// Promise 2, for what is captured: labels, definitions, ids and the conversation's own name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_no_concept_is_readable_at_rest() {
    let place = Place::sqlite();
    let rig = rig(&place).await;
    for user in 0..3 {
        let session = rig.session("MARKtenant", "MARKconversation", &format!("MARKuser{user}"));
        for n in 0..20 {
            let named = json!({ "concepts": [concept(&format!("MARKkind{n}"), &format!("MARKlabel{n}"), "MARKdefinition")] });
            rig.says(&session, &format!("MARKquery{user}x{n}"), Audience::Room, named).await;
        }
        session.choose_concept("TAX:IE:MARKKIND3", ConceptChoice::Pin).await.unwrap();
        session.rebuild_concepts().await.unwrap();
        assert_eq!(ids(&session).await.len(), 20);
    }
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
    stop(rig.engine).await;
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
}

/// Where the operator chose readable contexts, they are JSON as in the seed; the log of them stays sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_are_readable_only_by_choice() {
    let place = Place::sqlite();
    let graph = SqliteGraph::in_memory().unwrap();
    let settings = ConceptSettings { seal_context: false, ..ConceptSettings::default() };
    let rig = rig_with(&place, Arc::new(graph.clone()), graph, settings).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    rig.turn(&alice, "two", Audience::Private).await;
    assert_eq!(rig.model.last_system(), PARAGRAPH);
    let db = rusqlite::Connection::open(place.file("confidant.db")).unwrap();
    let json: Vec<u8> =
        db.query_row("SELECT context_json FROM conversation_context", [], |row| row.get(0)).unwrap();
    let stored: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(stored["activeNodeIds"], json!(["TAX:IE:VAT", "TAX:IE:VRT"]));
}
