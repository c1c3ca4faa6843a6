//! What a turn of a chat asks the person's device for: by name, once, within limits, never kept, and nobody waits for long.

use std::time::Duration;

use confidant_engine::turn::{DataRequest, Final, MayAsk, Outbound, Piece, SwitchedOff, Turn, Wanted};
use confidant_engine::{HistoryLimits, TurnRequest};
use serde_json::json;

use crate::rig::processing::{Setting, plain, setting, with};
use crate::rig::*;
use crate::web::*;

on_every_store! {
    settings_are_asked_for_by_name_and_go_into_this_prompt_only,
    a_chat_that_begins_is_told_of_similar_ones_once,
    a_search_looks_on_the_device_once_and_is_not_kept,
    a_device_that_does_not_answer_holds_up_nothing,
    what_is_off_is_not_asked_for_and_in_no_request,
    nobody_but_the_device_of_a_chat_is_asked,
    no_concept_is_captured_in_a_chat_that_did_not_ask_for_it,
}

const ALL: MayAsk = MayAsk { settings: true, past_chats: true, search: true };

fn piece(name: &str, text: &str) -> Piece {
    Piece { name: name.to_owned(), text: text.to_owned() }
}

/// Hears a turn out; what it wants is answered like this.
async fn heard(mut turn: Turn, mut answer: impl FnMut(Wanted)) -> (Final, Vec<DataRequest>) {
    let (mut data_requests, mut last) = (Vec::new(), None);
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Wanted(wanted) => {
                data_requests.push(wanted.data_request.clone());
                answer(*wanted);
            }
            Outbound::Final(answer) => last = Some(answer),
            Outbound::Error(error) => panic!("{error}"),
            _ => {}
        }
    }
    (last.unwrap(), data_requests)
}

/// All that the model was told, in every prompt so far.
fn told(s: &Setting) -> Vec<String> {
    let prompts = s.default.prompts.lock().unwrap();
    let told = |prompt: &confidant_engine::model::Prompt| {
        let blocks: String = prompt.blocks.iter().map(|block| block.render(&prompt.fence)).collect();
        let tools: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        let history: Vec<&str> = prompt.history.iter().map(|said| said.text.as_str()).collect();
        format!("{} {blocks} {tools:?} {history:?} {:?}", prompt.system, prompt.steps)
    };
    prompts.iter().map(told).collect()
}

async fn settings_are_asked_for_by_name_and_go_into_this_prompt_only(place: Place) {
    let s = setting(&place, |parts| parts.settings.processing.enrich = true).await;
    let wants = ["city", "no_such", "diet"];
    s.small.says("prepare_turn", with(json!({ "relevant_app_settings_and_memories": wants })));
    s.small.says("enrich_turn", json!({ "chat_summary": "They live in marker-cork-77." }));
    let chat = chat(&s.engine, CHAT);
    let request = TurnRequest {
        available_settings: vec!["city".into(), "diet".into(), "job".into()],
        asks: MayAsk { settings: true, ..MayAsk::default() },
        ..asks("t1", "What is the weather?", 0, 0, 1)
    };
    // Of what is given, only what was asked for counts.
    let given = || vec![piece("city", "marker-cork-77"), piece("job", "marker-baker-78")];
    let (answer, data_requests) = heard(chat.turn(request), |wanted| wanted.give(given())).await;
    assert!(
        data_requests == [DataRequest::Settings(vec!["city".into(), "diet".into()])],
        "{data_requests:?}"
    );
    assert_eq!(answer.metadata.requested_settings, ["diet"], "what was not given is named with the answer");
    s.engine.settle().await;
    let prompt = told(&s).pop().unwrap();
    assert!(prompt.contains("city: marker-cork-77") && !prompt.contains("marker-baker-78"), "{prompt}");
    let (schema, material) = s.small.asked("prepare_turn").pop().unwrap();
    assert!(!format!("{schema}{material}").contains("marker-cork-77"), "it was asked for after that");
    // What is made of the turn does not repeat it, and the next turn knows nothing of it.
    let made = chat.turn(asks("t2", "And now?", 2, 1, 2)).finish().await.unwrap();
    s.engine.settle().await;
    assert!(made.metadata.requested_settings.is_empty());
    let last = told(&s).pop().unwrap();
    let (_, enriched) = s.small.asked("enrich_turn").pop().unwrap();
    assert!(!format!("{last}{enriched}").contains("marker-cork-77"), "{last} {enriched}");
    stop(s.engine).await;
}

async fn a_chat_that_begins_is_told_of_similar_ones_once(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", with(json!({ "tags": ["tides", "sailing"] })));
    let chat = chat(&s.engine, CHAT);
    let request = |n: u8| TurnRequest {
        asks: MayAsk { past_chats: true, ..MayAsk::default() },
        ..asks(&format!("t{n}"), "When is high water?", u64::from(n) * 2, n, n + 1)
    };
    // Four are given: three are told of.
    let given = || (0..4).map(|n| piece(&format!("Chat {n}"), &format!("marker-tide-{n}"))).collect();
    let (_, data_requests) = heard(chat.turn(request(0)), |wanted| wanted.give(given())).await;
    assert!(
        data_requests == [DataRequest::PastChats(vec!["tides".into(), "sailing".into()])],
        "{data_requests:?}"
    );
    let prompt = told(&s).pop().unwrap();
    assert!(prompt.contains("Chat 2: marker-tide-2") && !prompt.contains("marker-tide-3"), "{prompt}");
    let (_, data_requests) = heard(chat.turn(request(1)), |wanted| wanted.give(given())).await;
    assert!(data_requests.is_empty(), "it goes on");
    assert!(!told(&s).pop().unwrap().contains("marker-tide"));
    stop(s.engine).await;
}

async fn a_search_looks_on_the_device_once_and_is_not_kept(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", plain());
    let chat = chat(&s.engine, CHAT);
    let query =
        "call memory.search {\"query\": \"harbour\"}\ncall memory.search {\"query\": \"the harbour\"}";
    let request =
        TurnRequest { asks: MayAsk { search: true, ..MayAsk::default() }, ..asks("t1", query, 0, 0, 1) };
    let given = || vec![piece("Trip", "marker-harbour-79")];
    let (answer, data_requests) = heard(chat.turn(request), |wanted| wanted.give(given())).await;
    let [DataRequest::Search(words)] = data_requests.as_slice() else { panic!("{data_requests:?}") };
    assert!(words == "harbour" || words == "the harbour", "{words}");
    assert_eq!(answer.content.matches("Trip: marker-harbour-79").count(), 1, "{}", answer.content);
    assert!(told(&s)[0].contains("memory.search"), "offered, though nothing is left out of the prompt");
    // What the tool found is nowhere in the log; the answer is, as the device has it.
    let lines = chat.told().await.unwrap().unwrap();
    assert_eq!(lines.lines.len(), 2);
    let next =
        TurnRequest { asks: MayAsk { search: true, ..MayAsk::default() }, ..asks("t2", "Go on", 2, 1, 2) };
    heard(chat.turn(next), |_| {}).await;
    let prompt = s.default.prompts.lock().unwrap().pop().unwrap();
    assert!(prompt.steps.is_empty() && !prompt.blocks.iter().any(|block| block.label == "tool_results"));
    stop(s.engine).await;
}

async fn a_device_that_does_not_answer_holds_up_nothing(place: Place) {
    let s = setting(&place, |parts| parts.settings.web.asks = Duration::from_millis(50)).await;
    let wants = with(json!({ "relevant_app_settings_and_memories": ["city"], "tags": ["tides"] }));
    s.small.says("prepare_turn", wants);
    let request = |n: u8| TurnRequest {
        available_settings: vec!["city".into()],
        asks: ALL,
        ..asks(&format!("t{n}"), "call memory.search {\"query\": \"tides\"}", u64::from(n) * 2, n, n + 1)
    };
    // Nothing is said: the turn goes on, and what comes later is not heard.
    let chat = chat(&s.engine, CHAT);
    let mut held = Vec::new();
    let (answer, data_requests) = heard(chat.turn(request(0)), |wanted| held.push(wanted)).await;
    assert_eq!(data_requests.len(), 3, "settings, similar chats, a search: {data_requests:?}");
    assert!(answer.content.starts_with("Looking.") && answer.content.contains("done:"));
    held.into_iter().for_each(|wanted| wanted.give(vec![piece("city", "marker-late-80")]));
    // It is refused, or nobody hears of it: at once.
    s.small.says("prepare_turn", with(json!({ "relevant_app_settings_and_memories": ["city"] })));
    let (_, data_requests) = heard(chat.turn(request(1)), drop).await;
    assert_eq!(data_requests.len(), 2, "the chat has begun: {data_requests:?}");
    drop(chat.turn(request(2)).finish().await.unwrap());
    assert!(!told(&s).concat().contains("marker-late-80"));
    stop(s.engine).await;
}

async fn what_is_off_is_not_asked_for_and_in_no_request(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says(
        "prepare_turn",
        with(json!({ "relevant_app_settings_and_memories": ["zqtown"], "tags": ["tides"] })),
    );
    let chat = chat(&s.engine, CHAT);
    let off = SwitchedOff {
        tools: ["memory.search".to_owned()].into(),
        past_chats: true,
        settings: true,
        ..SwitchedOff::default()
    };
    let request = TurnRequest {
        available_settings: vec!["zqtown".into()],
        asks: ALL,
        off,
        ..asks("t1", "call memory.search {\"query\": \"tides\"}", 0, 0, 1)
    };
    let (answer, data_requests) =
        heard(chat.turn(request), |wanted| wanted.give(vec![piece("zqtown", "Cork")])).await;
    assert!(data_requests.is_empty(), "{data_requests:?}");
    assert!(answer.content.contains("there is no tool memory.search"), "{}", answer.content);
    let (schema, material) = s.small.asked("prepare_turn").pop().unwrap();
    assert!(!format!("{schema}{material}").contains("zqtown"), "{schema}");
    assert!(!told(&s)[0].contains("memory.search\""), "{}", told(&s)[0]);
    stop(s.engine).await;
}

async fn nobody_but_the_device_of_a_chat_is_asked(place: Place) {
    let s = setting(&place, |parts| {
        parts.settings.history = HistoryLimits { max_messages: 100, token_budget: 6_000 };
    })
    .await;
    s.small.says(
        "prepare_turn",
        with(json!({ "relevant_app_settings_and_memories": ["city"], "tags": ["tides"] })),
    );
    let request = TurnRequest {
        available_settings: vec!["city".into()],
        asks: ALL,
        ..says("call memory.search {\"query\": \"tides\"}")
    };
    let (_, data_requests) = heard(session(&s.engine, "http:r:main:alice").turn(request), drop).await;
    assert!(data_requests.is_empty(), "{data_requests:?}");
    // A chat whose question allows nothing.
    let request = TurnRequest {
        available_settings: vec!["city".into()],
        ..asks("t1", "call memory.search {\"query\": \"tides\"}", 0, 0, 1)
    };
    let (answer, data_requests) = heard(chat(&s.engine, CHAT).turn(request), drop).await;
    assert!(data_requests.is_empty(), "{data_requests:?}");
    assert_eq!(answer.metadata.requested_settings, ["city"], "it is named, and a new turn can bring it");
    stop(s.engine).await;
}

async fn no_concept_is_captured_in_a_chat_that_did_not_ask_for_it(place: Place) {
    let rig = crate::rig::concepts::rig(&place).await;
    rig.model.on("What is VAT?", crate::rig::concepts::taxes());
    let chat = chat(&rig.engine, CHAT);
    let request = |n: u8, capture| TurnRequest {
        capture,
        ..asks(&format!("t{n}"), "What is VAT?", u64::from(n) * 2, n, n + 1)
    };
    let answer = chat.turn(request(0, false)).finish().await.unwrap();
    let is_offered = || rig.model.last_prompt().tools.iter().any(|tool| tool.name == "capture_concepts");
    assert!(answer.metadata.concepts.is_none() && !is_offered());
    chat.turn(request(1, true)).finish().await.unwrap();
    assert!(!is_offered(), "its owner has not switched it on");
    assert!(web(&rig.engine).keep_concepts(ACCOUNT, CHAT).await.unwrap());
    chat.turn(request(2, true)).finish().await.unwrap();
    assert!(is_offered(), "it can be switched on");
    stop(rig.engine).await;
}
