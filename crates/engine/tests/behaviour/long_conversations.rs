//! Conversations that have more messages than are kept: what goes is summed up before, and nobody is left to guess.

use confidant_engine::model::{ModelError, Prompt, PromptMessage, Role as MessageRole};
use confidant_engine::room::Audience;
use confidant_engine::turn::Metadata;
use confidant_engine::{HistoryLimits, Session, Settings, TurnRequest};
use serde_json::json;

use crate::rig::processing::{Setting, plain, setting};
use crate::rig::*;

on_every_store! {
    what_is_kept_no_longer_was_summed_up_before,
    a_summary_stays_when_its_words_are_gone,
    what_was_not_summed_up_is_said_to_be_gone,
    where_nothing_is_kept_nothing_is_summed_up,
    what_an_application_sends_along_has_its_bound,
    the_newest_history_is_recalled_in_order,
}

/// A setting that keeps so many messages, with room for all of them in a prompt.
async fn keeping(place: &Place, max_messages: usize) -> Setting {
    let s = setting(place, |parts| {
        parts.settings.history = HistoryLimits { max_messages, token_budget: 20_000 };
    })
    .await;
    s.small.says("prepare_turn", plain());
    s
}

fn earlier(prompt: &Prompt) -> String {
    let blocks = prompt.blocks.iter().filter(|block| block.label == "earlier");
    blocks.map(|block| block.render(&prompt.fence)).collect()
}

fn last(s: &Setting) -> Prompt {
    s.default.prompts.lock().unwrap().last().unwrap().clone()
}

async fn chat(s: &Setting, alice: &Session, turns: usize) -> Metadata {
    let mut metadata = None;
    for n in 0..turns {
        let answer = alice.turn(private(&format!("Small talk {n}"))).finish().await.unwrap();
        metadata = Some(*answer.metadata);
        s.engine.settle().await;
    }
    metadata.unwrap()
}

async fn what_is_kept_no_longer_was_summed_up_before(place: Place) {
    let s = keeping(&place, 16).await;
    s.small.says("sum_up", json!({ "summary": "They settled on heliotrope." }));
    let alice = session(&s.engine, "discord_conv:alice");
    alice.turn(private("The curtains shall be heliotrope.")).finish().await.unwrap();
    let metadata = chat(&s, &alice, 7).await;
    assert!(s.small.asked("sum_up")[0].1.contains("The curtains shall be heliotrope"), "while it is there");
    assert_eq!((metadata.dropped, metadata.compressed), (0, false), "everything is there word for word");
    let metadata = chat(&s, &alice, 13).await;
    assert!(metadata.dropped > 10 && metadata.compressed, "{metadata:?}");
    assert!(earlier(&last(&s)).contains("heliotrope"));
    assert!(last(&s).tools.iter().any(|tool| tool.name == "memory.search"));
    let sums = s.small.asked("sum_up").len();
    assert!((5..18).contains(&sums), "not with every turn: {sums}");
    let export = alice.export().await.unwrap().unwrap();
    assert_eq!(export.messages.len(), 16, "what is kept word for word has its bound");
    // What a room reads, it is not told.
    alice.turn(TurnRequest { audience: Some(Audience::Room), ..says("Hello") }).finish().await.unwrap();
    assert_eq!(earlier(&last(&s)), "");
}

async fn a_summary_stays_when_its_words_are_gone(place: Place) {
    let s = keeping(&place, 16).await;
    s.small.says("sum_up", json!({ "summary": "They settled on heliotrope." }));
    let alice = session(&s.engine, "discord_conv:alice");
    chat(&s, &alice, 8).await;
    s.small.fails("sum_up", ModelError::Unreachable);
    let metadata = chat(&s, &alice, 20).await;
    assert!(metadata.compressed && earlier(&last(&s)).contains("heliotrope"));
    stop(s.engine).await;
    let s = keeping(&place, 16).await;
    let alice = session(&s.engine, "discord_conv:alice");
    assert!(chat(&s, &alice, 1).await.compressed && earlier(&last(&s)).contains("heliotrope"));
}

async fn what_was_not_summed_up_is_said_to_be_gone(place: Place) {
    let s = keeping(&place, 16).await;
    s.small.fails("sum_up", ModelError::Unreachable);
    let alice = session(&s.engine, "discord_conv:alice");
    alice.turn(private("The curtains shall be heliotrope.")).finish().await.unwrap();
    let metadata = chat(&s, &alice, 20).await;
    assert!(metadata.dropped > 10 && !metadata.compressed);
    let search = private("call memory.search {\"query\":\"curtains\"}");
    let answer = alice.turn(search).finish().await.unwrap();
    assert!(answer.content.contains("kept no longer"), "{}", answer.content);
}

async fn where_nothing_is_kept_nothing_is_summed_up(place: Place) {
    let s = keeping(&place, 0).await;
    let alice = session(&s.engine, "discord_conv:alice");
    chat(&s, &alice, 4).await;
    assert!(s.small.asked("sum_up").is_empty());
}

async fn what_an_application_sends_along_has_its_bound(place: Place) {
    let s = setting(&place, |parts| {
        parts.settings.history = HistoryLimits { max_messages: 100, token_budget: 500 };
    })
    .await;
    s.small.says("prepare_turn", plain());
    let message = |n: usize| PromptMessage {
        role: if n.is_multiple_of(2) { MessageRole::Human } else { MessageRole::Ai },
        text: format!("<{n}> {}", "and so on, at some length ".repeat(4)),
    };
    let brought: Vec<PromptMessage> = (0..100).map(message).collect();
    let request = || TurnRequest { brought: brought.clone(), ..private("What was the last?") };
    let alice = session(&s.engine, "discord_conv:alice");
    for answer in [
        alice.turn(request()).finish().await.unwrap(),
        s.engine.turn_without_memory(None, request()).finish().await.unwrap(),
    ] {
        let prompt = last(&s);
        assert!(prompt.history.last().unwrap().text.starts_with("<99>"), "the newest are told");
        assert_eq!(answer.metadata.left_out + prompt.history.len(), 100);
        assert!(answer.metadata.usage.unwrap().prompt_tokens <= 500, "{:?}", answer.metadata.usage);
    }
}

/// Seed 002's faults: the oldest were restored instead of the newest, and a small window erased the rest.
async fn the_newest_history_is_recalled_in_order(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    for i in 1..=60 {
        session(&engine, "discord_conv:a").turn(says(&format!("message <{i}>"))).finish().await.unwrap();
    }
    stop(engine).await;
    let few =
        Settings { history: HistoryLimits { max_messages: 10, token_budget: 6000 }, ..Settings::default() };
    let engine = place.engine_with(&model, few).await;
    let answer = session(&engine, "discord_conv:a").turn(says("continue")).finish().await.unwrap();
    let order: Vec<String> = (56..=60).map(|i| format!("Human: message <{i}>")).collect();
    let recalled: Vec<String> =
        model.last().lines().filter(|l| l.starts_with("Human: ")).map(str::to_owned).collect();
    assert_eq!((recalled, answer.metadata.recalled), (order, 10));
    stop(engine).await;
    // Loading less deleted nothing: with the old limit, more is there again.
    let engine = place.engine(&model).await;
    let answer = session(&engine, "discord_conv:a").turn(says("continue again")).finish().await.unwrap();
    assert!(answer.metadata.recalled > 50, "{:?}", answer.metadata);
}
