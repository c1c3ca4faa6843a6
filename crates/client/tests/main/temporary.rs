//! Temporary chats: asked and answered like any other, and kept nowhere.

use confidant_chat_format::ChatId;
use confidant_chat_protocol::Given;
use confidant_chats::answerer::MemoryAnswerer;
use confidant_client::{AskOptions, Awaiting, Consent, Device, Error, Phase, TurnUpdate};

use crate::asks::{answered, hear, is_end, is_made, plain, shown};
use crate::world::{MemoryFiles, World};

fn bodies(device: &Device, chat: &ChatId) -> Vec<String> {
    device.chat(chat).unwrap().branch.into_iter().map(|message| message.body).collect()
}

/// Asks, and hears the answer out.
async fn told(device: &mut Device, chat: &ChatId, words: &str) -> Vec<TurnUpdate> {
    let asked = device.ask_temporary(chat, words, None, &plain()).await.unwrap();
    hear(device, &asked.turn, is_end).await
}

#[tokio::test]
async fn a_temporary_chat_is_answered_with_what_the_device_sends_and_kept_nowhere() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let files = MemoryFiles::new();
    let (mut one, ana) = world.ana_over(world.transport(), &files).await;
    let stored = one.new_chat(Some("Trip")).unwrap();
    answered(&mut one, &stored, "kept").await;

    let chat = one.new_temporary().unwrap();
    assert!(one.is_temporary(&chat) && !one.is_cached(&chat));
    assert_eq!(shown(&told(&mut one, &chat, "hello").await), "known=0: hello");
    assert!(answerer.lines(&chat).is_empty(), "the server has nothing once the answer is here");
    // The device has all of it, and gives it.
    let second = told(&mut one, &chat, "and then").await;
    assert!(second.contains(&TurnUpdate::History(2)), "{second:?}");
    assert_eq!(bodies(&one, &chat), ["hello", "known=0: hello", "and then", "known=2: and then"]);
    assert!(answerer.lines(&chat).is_empty());

    // Not in the list of chats, not in the queue, not in a file, and on no other device.
    one.sync(Phase::All).await.unwrap();
    one.flush().await.unwrap();
    assert_eq!(one.chats(), std::slice::from_ref(&stored));
    assert!(one.waiting().is_empty() && one.awaited().is_empty() && !one.listed().contains(&chat));
    let two = world.second(&ana).await;
    assert_eq!(two.chat(&chat).unwrap_err(), Error::NoSuchChat);
    assert_eq!(world.open(&files).chat(&chat).unwrap_err(), Error::NoSuchChat);
    assert!(!world.open(&files).is_temporary(&chat));
    one.end_temporary(&chat).await;
    assert_eq!(one.chat(&chat).unwrap_err(), Error::NoSuchChat);
    assert_eq!(bodies(&one, &stored), ["kept", "known=0: kept"], "others go on");
}

#[tokio::test]
async fn another_answer_and_another_question_are_branches_of_it() {
    let world = World::answering(&MemoryAnswerer::default()).await;
    let (mut one, _) = world.ana().await;
    let chat = one.new_temporary().unwrap();
    told(&mut one, &chat, "first").await;
    let asked = one.ask_temporary(&chat, "second", None, &plain()).await.unwrap();
    hear(&mut one, &asked.turn, is_end).await;
    let instead = one.ask_temporary(&chat, "other", Some(&asked.message), &plain()).await.unwrap();
    hear(&mut one, &instead.turn, is_end).await;
    assert_eq!(bodies(&one, &chat), ["first", "known=0: first", "other", "known=2: other"]);
    let again = one.retry_temporary(&chat, &asked.message, &plain()).await.unwrap();
    hear(&mut one, &again.turn, is_end).await;
    assert_eq!(bodies(&one, &chat), ["first", "known=0: first", "second", "known=2: second"]);
    assert_eq!(one.chat(&chat).unwrap().messages.len(), 7, "every answer stays");
    // What is made of an answer is not kept, either.
    hear(&mut one, &again.turn, is_made).await;
    assert!(one.waiting().is_empty() && one.chat(&chat).unwrap().fields.is_empty());
}

#[tokio::test]
async fn nothing_of_other_chats_is_given_in_it_and_nothing_is_written_to_it() {
    let world = World::answering(&MemoryAnswerer::default()).await;
    let (mut one, _) = world.ana().await;
    one.remember("city", Some("Cork")).unwrap();
    one.flush().await.unwrap();
    let chat = one.new_temporary().unwrap();
    // Though somebody is there to say yes, and the question names it.
    let mut options = AskOptions::default();
    (options.consent, options.available) = (Consent::Person, one.memories());
    let asked = one.ask_temporary(&chat, "want settings want search", None, &options).await.unwrap();
    let told = hear(&mut one, &asked.turn, is_end).await;
    assert_eq!(shown(&told), "known=0: want settings want search [] []");
    assert!(!told.iter().any(|one| matches!(one, TurnUpdate::DataRequest(_) | TurnUpdate::Gave(_))));
    for refused in [
        one.ask(&chat, "stored", &plain()).map(drop),
        one.say(&chat, "stored").map(drop),
        one.edit(&chat, &asked.message, "stored"),
        one.delete(&chat, &asked.message),
        one.rename(&chat, "stored"),
        one.share(&chat, Given::Settings, true),
        one.set_cached(&chat, true),
        one.set_draft(&chat, Some("stored")),
        one.delete_chat(&chat),
    ] {
        assert_eq!(refused.unwrap_err(), Error::Temporary);
    }
    assert!(one.waiting().is_empty());
}

#[tokio::test]
async fn a_temporary_chat_that_ends_in_the_middle_of_an_answer_leaves_nothing_behind() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, _) = world.ana().await;
    let stored = one.new_chat(Some("Trip")).unwrap();
    one.flush().await.unwrap();
    let chat = one.new_temporary().unwrap();
    let asked = one.ask_temporary(&chat, "stop me in the middle", None, &plain()).await.unwrap();
    assert_eq!(one.awaited()[0].state, Awaiting::Running);
    answerer.let_say(1);
    hear(&mut one, &asked.turn, |told| matches!(told, TurnUpdate::Words { .. })).await;
    one.end_temporary(&chat).await;
    assert!(one.awaited().is_empty());
    // What still comes of it is no answer to anything, and no attack.
    answered(&mut one, &stored, "go on").await;
    assert_eq!(bodies(&one, &stored), ["go on", "known=0: go on"]);
    assert!(answerer.lines(&chat).is_empty());
}
