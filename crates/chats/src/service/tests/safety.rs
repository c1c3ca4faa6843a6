//! What is remembered of a chat without its words.

use confidant_chat_protocol::CancelAiTask;

use super::answers::{answered, ask_event};
use super::*;
use crate::vault::Vault as _;

#[tokio::test]
async fn what_is_remembered_of_a_chat_is_sealed_and_counted() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let (service, id) = (&world.service.inner, ana.device.id.clone());
    let read = async || service.safety(&id, &chat).await.map(|row| row.map(|row| (row.rev, row.bytes.to_vec())));
    assert_eq!(read().await, Ok(None));
    assert_eq!(service.remember_safety(&id, &chat, 0, b"MARKER-OF-A-SCORE").await, Ok(1));
    assert_eq!(read().await, Ok(Some((1, b"MARKER-OF-A-SCORE".to_vec()))));
    let twice = service.remember_safety(&id, &chat, 0, b"x").await.unwrap_err();
    assert_eq!(twice.error.name(), "conflict", "of two turns at once, one counts again");
    assert_eq!(service.remember_safety(&id, &chat, 1, b"more").await, Ok(2));
    let large = service.remember_safety(&id, &chat, 2, &[0; 4096]).await.unwrap_err();
    assert_eq!(large.error.name(), "too-large");
    let bytes = world.home.bytes().await;
    assert!(!bytes.windows(17).any(|window| window == b"MARKER-OF-A-SCORE"));
    // No time and no sweep ends it.
    world.pass(Duration::from_secs(400 * 24 * 3600));
    world.service.upkeep().await.unwrap();
    assert_eq!(read().await, Ok(Some((2, b"more".to_vec()))));
    // The chat does, with its key.
    let (delete, after) = ana.device.deletion(&chat);
    let (floors, manifest) = sent_list(delete.list);
    let (chat_id, floor) = (chat.clone(), floors[0].clone());
    let delete = confidant_chat_protocol::DeleteChat { chat: chat_id, expected: 1, floor, manifest };
    let ana_again = world.second(&ana).await;
    let mut socket = world.connect(&ana_again).await;
    let frames = ask(&mut socket, ClientEvent::DeleteChat(delete)).await.unwrap();
    assert_eq!(name(&frames), "chat_deleted");
    ana.device = after;
    assert_eq!(read().await, Ok(None));
    assert_eq!(world.vault.chat_anchor(&id, &chat).await, Ok(0));
    let gone = service.remember_safety(&id, &chat, 0, b"x").await.unwrap_err();
    assert_eq!(gone.error.name(), "not-found");
}

#[tokio::test]
async fn a_row_that_is_put_back_taken_away_or_moved_is_refused() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let (chat, other) = (ana.create(&mut socket, 1).await, ana.create(&mut socket, 1).await);
    let (service, id) = (&world.service.inner, ana.device.id.clone());
    let refused = async |chat: &ChatId| {
        let read = service.safety(&id, chat).await;
        read.map(|row| row.map(|row| row.rev)).map_err(|refused| refused.error.name())
    };
    for rev in 0..3 {
        service.remember_safety(&id, &chat, rev, b"ended").await.unwrap();
        if rev == 0 {
            world.home.sql("CREATE TABLE old AS SELECT * FROM safety").await;
        }
    }
    service.remember_safety(&id, &other, 0, b"{}").await.unwrap();
    assert_eq!((refused(&chat).await, refused(&other).await), (Ok(Some(3)), Ok(Some(1))));
    let sound = Checked { accounts: 1, refused: Vec::new() };
    assert_eq!(world.service.check().await, Ok(sound.clone()));
    // The first one again.
    let back = format!(
        "UPDATE safety SET rev = 1, sealed = (SELECT sealed FROM old) WHERE chat = '{chat}'"
    );
    world.home.sql(&back).await;
    assert_eq!(refused(&chat).await, Err("rolled-back"));
    let reasons = async || -> Vec<&'static str> {
        world.service.check().await.unwrap().refused.into_iter().map(|(_, reason)| reason).collect()
    };
    assert_eq!(reasons().await, ["rolled-back"]);
    // None at all.
    world.home.sql(&format!("DELETE FROM safety WHERE chat = '{chat}'")).await;
    assert_eq!(refused(&chat).await, Err("rolled-back"));
    // Another chat's.
    let moved = format!("UPDATE safety SET sealed = (SELECT sealed FROM old) WHERE chat = '{other}'");
    world.home.sql(&moved).await;
    assert_eq!(refused(&other).await, Err("record-refused"));
    // Whoever restored a backup on purpose says so; what does not open stays refused.
    assert_eq!(world.service.accept_restore().await, Ok(1));
    assert_eq!(world.service.accept_restore().await, Ok(0));
    assert_eq!((refused(&chat).await, refused(&other).await), (Ok(None), Err("record-refused")));
    assert_eq!(service.remember_safety(&id, &chat, 0, b"{}").await, Ok(1));
    assert_eq!(refused(&chat).await, Ok(Some(1)));
    // A key that is gone is no row that is gone.
    world.vault.destroy_chats(&id, std::slice::from_ref(&chat)).await.unwrap();
    assert_eq!(refused(&chat).await, Err("unavailable"));
}

#[tokio::test]
async fn a_turn_without_an_answer_counts_all_the_same() {
    for (words, begins, ends) in [
        ("approve me", None, "ai_approval_requested"),
        ("stop me at once", Some("preprocessing_step"), "ai_task_failed"),
    ] {
        let (world, _, ana, mut socket, asker) = answered(begins.is_some()).await;
        let question = asker.question(words);
        ask(&mut socket, ask_event(&question)).await.unwrap();
        if let Some(begins) = begins {
            while news(&mut socket).await.event.name() != begins {}
            let cancel = CancelAiTask { chat: asker.chat.clone(), turn: question.turn.clone() };
            assert!(ask(&mut socket, ClientEvent::CancelAiTask(cancel)).await.unwrap().is_empty());
        }
        while news(&mut socket).await.event.name() != ends {}
        let row = world.service.inner.safety(&ana.device.id, &asker.chat).await.unwrap().unwrap();
        assert_eq!((row.rev, row.bytes.as_slice()), (1, b"turns=1".as_slice()), "{words}");
    }
}
