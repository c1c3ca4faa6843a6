//! The history of a question: asked for once on a socket, and taken once, however often a device sends it.

use confidant_chat_format::MessageId;
use confidant_chat_protocol::{ChatHistory, ChatMessageAdded, Heard, SaidBy};

use super::answers::{answered, ask_event, hear, heard};
use super::*;

fn part(question: &ChatMessageAdded, messages: Vec<Heard>, more: bool) -> ClientEvent {
    let (chat, turn) = (question.chat.clone(), question.turn.clone());
    ClientEvent::ChatHistory(ChatHistory { chat, turn, messages: List::new(messages).unwrap(), more })
}

#[tokio::test]
async fn a_socket_that_asks_again_is_not_asked_for_the_history_again() {
    let (world, _, ana, mut socket, mut asker) = answered(false).await;
    asker.branch = vec![MessageId::random(), MessageId::random()];
    let question = asker.question("hello");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    // As where the first answer was given up.
    let frames = ask(&mut socket, ask_event(&question)).await.unwrap();
    let names: Vec<_> = frames.iter().map(|frame| frame.event.name()).collect();
    assert_eq!(names, ["ai_task_initiated"]);
    // Another socket was not asked so far.
    let mut next = world.connect(&ana).await;
    let frames = ask(&mut next, ask_event(&question)).await.unwrap();
    let names: Vec<_> = frames.iter().map(|frame| frame.event.name()).collect();
    assert_eq!(names, ["ai_task_initiated", "request_chat_history"]);
    let line = |at: usize| heard(&asker.branch[at], SaidBy::User, "words", None);
    let whole = part(&question, vec![line(0), line(1)], false);
    assert!(ask(&mut next, whole).await.unwrap().is_empty());
    assert_eq!(hear(&mut next, &question.turn).await.0, "known=2: hello");
}

#[tokio::test]
async fn a_part_that_comes_twice_counts_once() {
    let (_world, answerer, _ana, mut socket, mut asker) = answered(false).await;
    asker.branch = (0..3).map(|_| MessageId::random()).collect();
    let question = asker.question("hello");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    let line = |at: usize| heard(&asker.branch[at], SaidBy::User, "words", None);
    for (at, more) in [(0, true), (0, true), (1, true), (1, true), (2, false)] {
        assert!(ask(&mut socket, part(&question, vec![line(at)], more)).await.unwrap().is_empty());
    }
    assert_eq!(hear(&mut socket, &question.turn).await.0, "known=3: hello");
    let ids: Vec<_> = answerer.lines(&asker.chat).into_iter().take(3).map(|line| line.id).collect();
    assert_eq!(ids, asker.branch);
}
