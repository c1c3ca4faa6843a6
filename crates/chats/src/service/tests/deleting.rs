//! Deleting a chat while a turn runs in it: refused, it takes nothing with it.

use confidant_chat_protocol::{ChatMessageAdded, DeleteChat, Remembered, ResumeAiTask};

use super::answers::{answered, ask_event, hear};
use super::*;
use crate::answerer::{Answerer as _, MemoryAnswerer};

/// The deletion of a chat as a device without the newest state would ask for it.
fn deletion(ana: &Person, chat: &ChatId, expected: u32) -> ClientEvent {
    let (floors, manifest) = sent_list(ana.device.deletion(chat).0.list);
    let floor = floors[0].clone();
    ClientEvent::DeleteChat(DeleteChat { chat: chat.clone(), expected, floor, manifest })
}

async fn kept(answerer: &MemoryAnswerer, ana: &Person, chat: &ChatId) -> usize {
    answerer.remembered(&ana.device.id, chat, Remembered::Concepts).await.unwrap().len()
}

#[tokio::test]
async fn a_deletion_that_is_refused_takes_nothing_with_it() {
    let (_world, answerer, mut ana, mut socket, mut asker) = answered(false).await;
    let chat = asker.chat.clone();
    let first = asker.question("first");
    ask(&mut socket, ask_event(&first)).await.unwrap();
    hear(&mut socket, &first.turn).await;
    asker.take(&first);
    answerer.hold();
    let concepts = List::new(vec![Remembered::Concepts]).unwrap();
    let question = ChatMessageAdded { remembers: Some(concepts), ..asker.question("one two") };
    ask(&mut socket, ask_event(&question)).await.unwrap();
    answerer.let_say(1);
    while news(&mut socket).await.event.name() != "ai_message_update" {}
    // Of a chat that was written to since, beside a list that was written since, and with the wrong part of the list.
    let stale = deletion(&ana, &chat, 7);
    let before = deletion(&ana, &chat, 1);
    let mut other = ana.create(&mut socket, 0).await;
    while Shelf::of(&other) == Shelf::of(&chat) {
        other = ana.create(&mut socket, 0).await;
    }
    let ClientEvent::DeleteChat(mut wrong) = deletion(&ana, &chat, 1) else { panic!() };
    let ClientEvent::DeleteChat(elsewhere) = deletion(&ana, &other, 1) else { panic!() };
    (wrong.floor, wrong.manifest) = (elsewhere.floor, elsewhere.manifest);
    for delete in [stale, before, ClientEvent::DeleteChat(wrong)] {
        let answer = name(&ask(&mut socket, delete).await.unwrap());
        assert!(["write_conflict", "list-refused"].contains(&answer.as_str()), "{answer}");
        assert_eq!(kept(&answerer, &ana, &chat).await, 1);
    }
    assert!(!answerer.lines(&chat).is_empty());
    // The answer goes on where it was.
    let resume = ResumeAiTask {
        chat: chat.clone(),
        turn: question.turn.clone(),
        after: question.after,
        from: 0,
        message: None,
        reply: None,
    };
    let frames = ask(&mut socket, ClientEvent::ResumeAiTask(resume)).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    answerer.let_say(100);
    while news(&mut socket).await.event.name() != "ai_typing_ended" {}
    assert_eq!(answerer.lines(&chat).last().map(|line| line.text.as_str()), Some("known=2: one two"));
    // One that is accepted takes everything, and once more as well: it may have been cut off in between.
    let delete = deletion(&ana, &chat, 1);
    assert_eq!(name(&ask(&mut socket, delete.clone()).await.unwrap()), "chat_deleted");
    assert!(answerer.lines(&chat).is_empty());
    assert_eq!(kept(&answerer, &ana, &chat).await, 0);
    assert_eq!(name(&ask(&mut socket, delete).await.unwrap()), "not-found");
}
