//! How a turn of a chat is made that only its owner can open: what is off is in no model's request, a title is made once, harm
//! outlives the session, and nothing of it goes anywhere else.

use std::sync::Arc;

use confidant_engine::aspects::{Aspects, Instructions, Slot};
use confidant_engine::head::HeadState;
use confidant_engine::prepare::{Harm, SafetyAction};
use confidant_engine::tools::{ToolPolicy, ToolRule, Verdict};
use confidant_engine::turn::{History, Said, SaidBy, SwitchedOff};
use confidant_engine::{Keep, TurnRequest};
use serde_json::json;

use crate::rig::processing::{Setting, looked_at, plain, setting, setting_with, with};
use crate::rig::tools::{Caller, Counting};
use crate::rig::*;
use crate::web::*;

on_every_store! {
    what_is_switched_off_is_in_no_models_request,
    a_focus_mode_that_is_off_is_in_no_models_request,
    an_account_is_told_what_its_answers_may_use_and_nothing_else,
    a_turn_that_goes_on_after_a_kill_has_off_what_was_off,
    a_title_is_made_once_for_each_chat,
    a_chat_whose_first_answer_had_no_title_gets_one_later,
    harm_outlives_the_session,
    what_a_client_sends_again_is_looked_at_as_a_whole,
}

/// The names of what the model was told that it may call, in the last prompt.
fn told(model: &Caller) -> Vec<String> {
    let prompts = model.prompts.lock().unwrap();
    prompts.last().unwrap().tools.iter().map(|tool| tool.name.clone()).collect()
}

fn off(tools: &[&str]) -> SwitchedOff {
    let tools = tools.iter().map(|name| (*name).to_owned()).collect();
    SwitchedOff { tools, ..SwitchedOff::default() }
}

async fn what_is_switched_off_is_in_no_models_request(place: Place) {
    let s: Setting = setting(&place, |parts| parts.settings.processing.enrich = true).await;
    let skills = json!(["files.read", "files.secret", "files.write"]);
    s.small.says("prepare_turn", with(json!({ "relevant_app_skills": skills })));
    s.small.says("enrich_turn", json!({ "chat_tags": ["tides"] }));
    let chat = chat(&s.engine, CHAT);
    let request = |n: u8, off: SwitchedOff| TurnRequest {
        off,
        ..asks(&format!("t{n}"), "Read the files", u64::from(n) * 2, n, n + 1)
    };
    chat.turn(request(0, SwitchedOff::default())).finish().await.unwrap();
    s.engine.settle().await;
    assert_eq!(told(&s.default), ["files.read", "files.secret", "files.write"]);
    let asked = s.small.asked("prepare_turn").pop().unwrap();
    assert!(asked.0.to_string().contains("files.secret") && s.small.asked("enrich_turn").len() == 1);
    // Neither the model that answers nor the one that prepares hears of it, and nothing is made of the turn.
    chat.turn(request(1, SwitchedOff { enrichment: true, ..off(&["files.secret", "files.w*"]) }))
        .finish()
        .await
        .unwrap();
    s.engine.settle().await;
    assert_eq!(told(&s.default), ["files.read"]);
    let (schema, material) = s.small.asked("prepare_turn").pop().unwrap();
    let whole = format!("{schema} {material}");
    assert!(
        whole.contains("files.read") && !whole.contains("files.secret") && !whole.contains("files.write")
    );
    assert_eq!(s.small.asked("enrich_turn").len(), 1);
    stop(s.engine).await;
}

/// Whether the last requests to either model name the focus mode, or say what the operator says of it.
fn is_focused(s: &Setting) -> bool {
    let prompts = s.default.prompts.lock().unwrap();
    let prompt = prompts.last().unwrap();
    let mut all = vec![prompt.system.clone()];
    all.extend(prompt.tools.iter().map(|tool| format!("{} {}", tool.description, tool.schema)));
    let (schema, material) = s.small.asked("prepare_turn").pop().unwrap();
    all.extend([schema.to_string(), material]);
    all.extend(s.small.systems.lock().unwrap().last().cloned());
    let all = all.concat();
    all.contains("web.research") || all.contains("Cite every source.")
}

async fn a_focus_mode_that_is_off_is_in_no_models_request(place: Place) {
    let folder = place.file("instructions");
    std::fs::create_dir_all(&folder).unwrap();
    let file = "---\nslot: focus\nfocus: web.research\nname: Research\n---\nCite every source.";
    std::fs::write(folder.join("research.md"), file).unwrap();
    let instructions = Instructions::open(folder);
    let s = setting(&place, |parts| {
        parts.aspects = Aspects::new(vec![instructions.aspect(Slot::Focus, None)]);
        parts.instructions = instructions;
    })
    .await;
    s.small.says("prepare_turn", with(json!({ "relevant_app_focus_modes": ["web.research"] })));
    let chat = chat(&s.engine, CHAT);
    let off = |names: &[&str]| SwitchedOff {
        focus_modes: names.iter().map(|name| (*name).to_owned()).collect(),
        ..SwitchedOff::default()
    };
    let chosen = |n: u8, off| TurnRequest {
        off,
        focus: Some("web.research".to_owned()),
        ..asks(&format!("t{n}"), "look it up", u64::from(n) * 2, n, n + 1)
    };
    let all = [off(&[]), off(&["*"]), off(&["web.research"]), off(&["plot.coup"])];
    for (n, off) in (0_u8..).zip(all) {
        chat.turn(chosen(n, off)).finish().await.unwrap();
        assert_eq!(is_focused(&s), n == 0 || n == 3, "{n}");
    }
    // Nor one that was switched on in the conversation, by the tool that would end it.
    let alice = session(&s.engine, "http:r:main:alice");
    alice.turn(says("!focus web.research")).finish().await.unwrap();
    for off in [off(&[]), off(&["*"])] {
        let is_on = off == SwitchedOff::default();
        alice.turn(TurnRequest { off, ..says("look it up") }).finish().await.unwrap();
        assert_eq!(is_focused(&s), is_on);
    }
    stop(s.engine).await;
}

async fn an_account_is_told_what_its_answers_may_use_and_nothing_else(place: Place) {
    let folder = place.file("instructions");
    std::fs::create_dir_all(&folder).unwrap();
    for (file, says) in [
        ("research.md", "focus: web.research\nname: Research\ndescription: Cites sources."),
        ("other.md", "focus: their.focus\ntenant: others"),
        ("room.md", "focus: room.focus\naudience: room"),
    ] {
        std::fs::write(folder.join(file), format!("---\nslot: focus\n{says}\n---\nSECRET WORDS")).unwrap();
    }
    let rule = |tool: &str, users: Option<&str>| ToolRule {
        tool: tool.to_owned(),
        tenant: None,
        users: users.map(|user| vec![user.to_owned()]),
        when: std::collections::BTreeMap::new(),
        then: Verdict::Deny,
    };
    let s = setting(&place, |parts| {
        parts.instructions = Instructions::open(folder);
        parts.policy =
            ToolPolicy::new(vec![rule("files.secret", Some(ACCOUNT)), rule("files.write", Some("bob"))]);
    })
    .await;
    let offers = web(&s.engine).offers(ACCOUNT).await.unwrap();
    let tools: Vec<&str> = offers.tools.iter().map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(tools, ["files.read", "files.write", "files.delete"]);
    let [mode] = &offers.focus_modes[..] else { panic!("{:?}", offers.focus_modes) };
    assert_eq!((mode.id.as_str(), mode.name.as_str()), ("web.research", "Research"));
    assert_eq!(mode.description.as_deref(), Some("Cites sources."));
    assert!(offers.whole && !format!("{offers:?}").contains("SECRET"));
    stop(s.engine).await;
}

async fn a_turn_that_goes_on_after_a_kill_has_off_what_was_off(place: Place) {
    let tools = Arc::new(Counting::default());
    let s =
        setting_with(&place, &Caller::new(), &tools, |parts| parts.settings.processing.prepare = false).await;
    s.default.gate.forget_permits(1_000_000);
    let request = TurnRequest { off: off(&["files.*"]), ..asks("t1", "Read the files", 0, 0, 1) };
    drop(chat(&s.engine, CHAT).turn(request));
    while s.default.prompts.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    s.engine.stop(std::time::Duration::ZERO).await;
    let s =
        setting_with(&place, &Caller::new(), &tools, |parts| parts.settings.processing.prepare = false).await;
    assert_eq!(s.engine.recover().await.unwrap().resumed, 1);
    assert!(told(&s.default).is_empty(), "{:?}", told(&s.default));
    assert_eq!(chat(&s.engine, CHAT).head().await.unwrap(), HeadState::Known(head(2, 1)));
    stop(s.engine).await;
}

async fn a_title_is_made_once_for_each_chat(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", plain());
    let chat = chat(&s.engine, CHAT);
    let answer = chat.turn(asks("t1", "Hello", 0, 0, 1)).finish().await.unwrap();
    let first = answer.metadata.preparation.unwrap();
    assert_eq!((first.title.as_deref(), first.icon_names.len()), (Some("A greeting"), 1));
    assert_eq!(chat.about().await.unwrap().unwrap().category.as_deref(), Some("general"));
    // Its session is over, or there never is one: the client has a title all the same, and says so.
    for keep in Keep::ALL {
        web(&s.engine).end(ACCOUNT, CHAT).await.unwrap();
        let again = web(&s.engine).open(ACCOUNT, CHAT, keep).await.unwrap();
        let mut request = TurnRequest { titled: true, ..asks("t2", "Hello", 2, 1, 2) };
        request.history = Some(history(SaidBy::Assistant, "Hello", 1));
        let answer = again.turn(request).finish().await.unwrap();
        let later = answer.metadata.preparation.unwrap();
        assert_eq!((later.title, later.icon_names.len()), (None, 0), "{keep:?}");
        let about = again.about().await.unwrap().unwrap();
        assert_eq!((about.title, about.category), (None, None), "{keep:?}");
        let (schema, _) = s.small.asked("prepare_turn").pop().unwrap();
        assert!(!schema.to_string().contains("icon_names"), "nobody is asked for one: {schema}");
    }
    stop(s.engine).await;
}

async fn a_chat_whose_first_answer_had_no_title_gets_one_later(place: Place) {
    let s = setting(&place, |_| {}).await;
    s.small.says("prepare_turn", plain());
    let chat = chat(&s.engine, CHAT);
    let answer = chat.turn(asks("t1", "Forget our conversation!", 0, 0, 1)).finish().await.unwrap();
    assert!(answer.metadata.preparation.is_none());
    let answer = chat.turn(asks("t2", "Hello", 2, 1, 2)).finish().await.unwrap();
    assert_eq!(answer.metadata.preparation.unwrap().title.as_deref(), Some("A greeting"));
    // It was made, and never came to the device: it says so, and there is another.
    let answer = chat.turn(asks("t3", "Hello again", 4, 2, 3)).finish().await.unwrap();
    assert_eq!(answer.metadata.preparation.unwrap().title.as_deref(), Some("A greeting"));
    let request = TurnRequest { titled: true, ..asks("t4", "And again", 6, 3, 4) };
    let answer = chat.turn(request).finish().await.unwrap();
    assert_eq!(answer.metadata.preparation.unwrap().title, None);
    stop(s.engine).await;
}

async fn harm_outlives_the_session(place: Place) {
    let s = setting(&place, |parts| {
        let ends = [(9.0, SafetyAction::TerminateConversation)];
        parts.safety.rules.replace(Harm::Illegal, confidant_engine::prepare::Measure::Turn, &ends);
    })
    .await;
    s.small.says("prepare_turn", with(json!({ "illegal": 6 })));
    let chat = chat(&s.engine, CHAT);
    let answer = chat.turn(asks("t1", "Tell me of locks", 0, 0, 1)).finish().await.unwrap();
    let safety = answer.metadata.chat.unwrap().safety;
    assert!(safety.harm.score(Harm::Illegal) >= 6.0 && !safety.terminated);
    // The log has the same, but for the millisecond in which it was written.
    let kept = chat.safety().await.unwrap().unwrap();
    assert_eq!(kept.harm.score(Harm::Illegal), safety.harm.score(Harm::Illegal));
    assert_eq!((kept.flagged_for_review, kept.terminated), (safety.flagged_for_review, safety.terminated));
    // The session is over, and the history is sent again without what led here: harm is where it was.
    web(&s.engine).end(ACCOUNT, CHAT).await.unwrap();
    s.small.says("prepare_turn", plain());
    let mut request = TurnRequest { safety: Some(safety), ..asks("t2", "Hello", 2, 9, 2) };
    request.history = Some(history(SaidBy::Assistant, "Hello", 9));
    let answer = chat.turn(request).finish().await.unwrap();
    let later = answer.metadata.chat.unwrap().safety;
    assert!(later.harm.score(Harm::Illegal) > 4.0, "{later:?}");
    // A conversation that was ended stays so, however it is sent again.
    s.small.says("prepare_turn", with(json!({ "illegal": 10 })));
    let answer = chat.turn(asks("t3", "Tell me more", 4, 2, 3)).finish().await.unwrap();
    let ended = answer.metadata.chat.unwrap().safety;
    assert!(ended.terminated);
    web(&s.engine).end(ACCOUNT, CHAT).await.unwrap();
    s.small.says("prepare_turn", plain());
    let before = s.default.prompts.lock().unwrap().len();
    let request = TurnRequest { safety: Some(ended), ..asks("t4", "Hello", 0, 0, 1) };
    let answer = chat.turn(request).finish().await.unwrap();
    assert_eq!(answer.metadata.safety, [SafetyAction::TerminateConversation]);
    assert!(answer.metadata.chat.unwrap().safety.terminated);
    assert_eq!(s.default.prompts.lock().unwrap().len(), before, "no model answered");
    // Whoever has no chat to keep it in hears nothing of it.
    let other = session(&s.engine, "http:r:main:alice");
    let request = TurnRequest { safety: Some(ended), ..says("Hello") };
    let answer = other.turn(request).finish().await.unwrap();
    assert!(answer.metadata.chat.is_none() && answer.metadata.safety.is_empty());
    stop(s.engine).await;
}

/// Some 90 000 tokens are looked at in two blocks, though a prompt has room for few of them.
async fn what_a_client_sends_again_is_looked_at_as_a_whole(place: Place) {
    let s = crate::rig::processing::long(&place, 280_000).await;
    let words = " word".repeat(900);
    let said: Vec<Said> = (0..100)
        .map(|n| {
            let kind = if n % 2 == 0 { SaidBy::User } else { SaidBy::Assistant };
            crate::web::said(kind, &format!("m{n}"), &format!("Chapter {n} begins.{words}"))
        })
        .collect();
    let mut request = asks("t1", "What came first?", 100, 1, 2);
    request.history = Some(History { said, head: head(100, 1) });
    let blocks = looked_at(&s, &chat(&s.engine, CHAT), request).await;
    assert_eq!(blocks.len(), 2);
    let whole = blocks.concat();
    assert!((0..100).all(|n| whole.contains(&format!("Chapter {n} begins."))));
    let last = s.default.prompts.lock().unwrap().pop().unwrap();
    assert!(last.history.len() < 10 && last.tools.iter().any(|tool| tool.name == "memory.search"));
    stop(s.engine).await;
}
