//! What a chat keeps beside its answers: what tools said, and its beginning in few words. The log has it, and every process tells the same.

use std::sync::Arc;

use confidant_engine::head::Stand;
use confidant_engine::turn::{Beside, Ending, Final, History, Said, SaidBy, Standing, SummedUp, Told};
use confidant_engine::{HistoryLimits, TurnRequest};
use serde_json::json;

use crate::rig::processing::{Setting, plain, setting};
use crate::rig::tools::{Caller, Counting, engine_with_tools};
use crate::rig::*;
use crate::web::*;

on_every_store! {
    what_tools_said_comes_with_the_answer_and_is_the_same_ever_after,
    what_tools_said_before_is_told_by_their_names,
    a_summary_is_told_once_with_where_it_ends,
    a_chat_sent_from_its_summary_on_goes_on_from_there,
    no_other_conversation_is_told_what_is_beside,
}

/// The same, with the transcript before it.
fn proving(id: &str, query: &str, count: u64, before: u8, after: u8) -> TurnRequest {
    TurnRequest { transcript: Some(digest(100 + before)), ..asks(id, query, count, before, after) }
}

const READS: &str = "call files.read {\"path\":\"/a\"}\ncall files.made_up {}";

fn beside(answer: &Final) -> Beside {
    answer.metadata.beside.as_deref().cloned().unwrap_or_default()
}

async fn what_tools_said_comes_with_the_answer_and_is_the_same_ever_after(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let chat = chat(&engine, CHAT);
    let answer = chat.turn(proving("t1", READS, 0, 0, 1)).finish().await.unwrap();
    let Beside { tools, summed_up } = beside(&answer);
    let [read] = tools.as_slice() else { panic!("what was not called said nothing: {}", tools.len()) };
    assert!(read.starts_with("files.read\n") && !read.contains("<<<") && summed_up.is_none(), "{read}");
    let said = [(SaidBy::User, READS.to_owned()), (SaidBy::Tool, read.clone())];
    let lines = said.into_iter().chain([(SaidBy::Assistant, answer.content.clone())]).collect();
    let told = Some(Told { after: Some(digest(100)), lines });
    assert!(chat.told().await.unwrap() == told);
    // Who asks again, here or elsewhere, is told the same.
    let again = chat.turn(proving("t1", READS, 0, 0, 1)).finish().await.unwrap();
    assert!(again.metadata.replayed && beside(&again) == beside(&answer));
    stop(engine).await;
    let engine = place.engine(&Recorder::new()).await;
    let chat = crate::web::chat(&engine, CHAT);
    assert!(chat.told().await.unwrap() == told);
    let Standing::Ended(Ending::Answer(found)) = chat.standing("t1").await.unwrap() else { panic!() };
    assert!(beside(&found) == beside(&answer));
    // A turn without tools has nothing beside it, and stands behind what the one before said.
    let next = chat.turn(proving("t2", "Go on", 2, 1, 2)).finish().await.unwrap();
    assert!(next.metadata.beside.is_none());
    assert_eq!(chat.told().await.unwrap().unwrap().after, Some(digest(101)));
    stop(engine).await;
}

async fn what_tools_said_before_is_told_by_their_names(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let chat = chat(&engine, CHAT);
    let stand = |n: u8| Some(Stand { count: n.into(), transcript: digest(100 + n) });
    let line = |kind, id: &str, text: &str, n| Said { stand: stand(n), ..said(kind, id, text) };
    let said = vec![
        line(SaidBy::User, "m1", "When is high water?", 0),
        line(SaidBy::Tool, "m2", "tides.look\nat six:\nharbour", 1),
        line(SaidBy::Tool, "m3", "obey: me\nat nine", 1),
        line(SaidBy::Assistant, "m4", "At six.", 1),
    ];
    chat.adopt(History { said: said.clone(), head: head(2, 9) }).await.unwrap();
    let told = chat.told().await.unwrap().unwrap();
    assert_eq!(told.after, Some(digest(100)));
    assert!(told.lines == said.iter().map(|one| (one.kind, one.text.clone())).collect::<Vec<_>>());
    chat.turn(proving("t1", "And low water?", 2, 9, 10)).finish().await.unwrap();
    let prompt = model.prompts.lock().unwrap().pop().unwrap();
    let block = prompt.blocks.iter().find(|block| block.label == "tool_results").unwrap();
    let block = block.render(&prompt.fence);
    assert!(
        block.contains("tides.look: at six: harbour") && block.contains("tool: obey: me at nine"),
        "{block}"
    );
    stop(engine).await;
}

/// A setting that keeps so few messages that the beginning of a chat is summed up soon.
async fn short(place: &Place) -> Setting {
    let s = setting(place, |parts| {
        parts.settings.history = HistoryLimits { max_messages: 16, token_budget: 20_000 };
    })
    .await;
    s.small.says("prepare_turn", plain());
    s.small.says("sum_up", json!({ "summary": "They settled on heliotrope." }));
    s
}

async fn a_summary_is_told_once_with_where_it_ends(place: Place) {
    let s = short(&place).await;
    let chat = chat(&s.engine, CHAT);
    let mut told: Vec<(u8, SummedUp)> = Vec::new();
    for n in 0..24 {
        let request = || proving(&format!("t{n}"), &format!("Small talk {n}"), 2 * u64::from(n), n, n + 1);
        let answer = chat.turn(request()).finish().await.unwrap();
        if let Some(summed_up) = beside(&answer).summed_up {
            let again = chat.turn(request()).finish().await.unwrap();
            assert!(beside(&again).summed_up.as_ref() == Some(&summed_up), "told with the same turn again");
            told.push((n, summed_up));
        }
        s.engine.settle().await;
        assert!(chat.told().await.unwrap().is_some(), "the end is known, though the beginning goes");
    }
    assert!((2..s.small.asked("sum_up").len() + 1).contains(&told.len()), "{}", told.len());
    for (n, SummedUp { text, through }) in &told {
        assert_eq!(text, "They settled on heliotrope.");
        let exchange = u8::try_from(through.count / 2).unwrap();
        assert!(exchange > 0 && exchange <= *n, "{through:?} with {n}");
        assert_eq!((through.count % 2, through.transcript), (0, digest(100 + exchange)));
    }
    assert!(
        told.windows(2).all(|two| two[0].1.through.count < two[1].1.through.count),
        "each reaches further"
    );
    stop(s.engine).await;
}

async fn a_chat_sent_from_its_summary_on_goes_on_from_there(place: Place) {
    let s = short(&place).await;
    let chat = chat(&s.engine, CHAT);
    let line = |kind, id: &str, text: &str, n: u8| Said {
        stand: Some(Stand { count: n.into(), transcript: digest(100 + n) }),
        ..said(kind, id, text)
    };
    let said = vec![
        line(SaidBy::Summary, "m1", "They settled on heliotrope.", 0),
        line(SaidBy::User, "m2", "Shall it be velvet?", 40),
        line(SaidBy::Assistant, "m3", "It shall.", 41),
    ];
    let mut request = asks("t1", "And the rods?", 42, 42, 43);
    request.history = Some(History { said, head: head(42, 42) });
    request.transcript = Some(digest(142));
    chat.turn(request).finish().await.unwrap();
    let prompt = s.default.prompts.lock().unwrap().pop().unwrap();
    let blocks: String = prompt.blocks.iter().map(|block| block.render(&prompt.fence)).collect();
    assert!(blocks.contains("summary: They settled on heliotrope."), "{blocks}");
    assert!(prompt.history.iter().any(|said| said.text == "Shall it be velvet?"));
    let told = chat.told().await.unwrap().unwrap();
    assert_eq!((told.after, told.lines.len()), (Some(digest(142)), 2));
    // Summed up further, it says how many messages that are from the first one on.
    let mut last = None;
    for k in 0..20 {
        let mut request =
            asks(&format!("s{k}"), &format!("Small talk {k}"), 44 + 2 * u64::from(k), 43 + k, 44 + k);
        request.transcript = Some(digest(143 + k));
        let answer = chat.turn(request).finish().await.unwrap();
        last = beside(&answer).summed_up.or(last);
        s.engine.settle().await;
    }
    let last = last.unwrap();
    assert!(last.through.count > 42, "{:?}", last.through);
    stop(s.engine).await;
}

async fn no_other_conversation_is_told_what_is_beside(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let other = session(&engine, "http:r:main:alice");
    let answer = other.turn(says_as("t1", READS)).finish().await.unwrap();
    assert!(answer.metadata.beside.is_none());
    let again = other.turn(says_as("t1", READS)).finish().await.unwrap();
    assert!(again.metadata.replayed && again.metadata.beside.is_none());
    stop(engine).await;
}
