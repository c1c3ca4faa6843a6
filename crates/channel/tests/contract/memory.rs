//! Whose memory it is, what stays in it, and what goes.

use confidant_channel::{Edited, Event, OutgoingKind, Removed, Taken};
use confidant_engine::{Actor, UserId};

use crate::rig::{CONCURRENCY, Rig, person, says, tenant, whispers};

fn edits(event: &str, target: &str, user: &str, text: &str) -> Event {
    let (event, target, text) = (event.to_owned(), target.to_owned(), text.to_owned());
    Event::Edited(Edited { event, target, scope: person(user), text })
}

fn removes(event: &str, target: &str) -> Event {
    Event::Removed(Removed { event: event.to_owned(), target: target.to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_readable_in_the_folder_at_any_moment() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    rig.world.room.lock().unwrap().push(("222".to_owned(), "marker-in-the-room".to_owned()));
    bot.take(says("event-1790", "user-4711", "marker-being-answered")).await;
    bot.take(says("event-1791", "user-4711", "marker-that-waits-its-turn")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.kind == OutgoingKind::Draft)).await;
    for marker in ["marker-", "event-179", "user-4711", "hall-8833", "bot-1"] {
        assert!(!rig.has(marker), "{marker} in the middle");
    }
    rig.model.open();
    bot.idle().await;
    bot.stop().await;
    for marker in ["marker-", "event-179", "user-4711", "hall-8833", "bot-1"] {
        assert!(!rig.has(marker), "{marker} at the end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_ends_the_conversation_and_what_waits_of_it_and_is_answered() {
    let rig = Rig::new();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "I am Alice")).await;
    bot.take(says("e2", "u", "@bot forget our conversation")).await;
    bot.take(says("e3", "u", "what is my name?")).await;
    bot.idle().await;
    assert_eq!(bot.transcript("u").await, ["human:what is my name?", "ai:noted: what is my name?"]);
    assert!(!rig.model.last().contains("Alice"));
    assert!(rig.world.texts()[1].contains("erased our conversation"), "{:?}", rig.world.texts());
    // An event that is told of again after the erasure stays answered.
    assert_eq!(bot.take(says("e1", "u", "I am Alice")).await, Taken::Known);
    bot.stop().await;
}

/// The erasure is made by a process that does not have this inbox, as on another machine, while the bot is away.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_received_before_an_erasure_elsewhere_ends_with_it() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    // Everybody is at work, so that nobody begins with Carol's: there is no log that an erasure could find.
    for n in 0..CONCURRENCY {
        bot.take(says(&format!("e{n}"), &format!("user-{n}"), "hello")).await;
    }
    rig.model.until(CONCURRENCY).await;
    bot.take(says("e90", "user-0", "two")).await;
    bot.take(says("e91", "carol", "my name is Carol")).await;
    bot.kill().await;
    let elsewhere = rig.beside(|parts| parts).await;
    let administrator = elsewhere.dangerously_administer(Actor::cli());
    let mut receipts = Vec::new();
    for user in ["user-0", "carol"] {
        let user = UserId::new(user).unwrap();
        receipts.push(administrator.erase_person(&tenant(), &user).await.unwrap());
    }
    rig.model.open();
    let bot = rig.start().await;
    bot.idle().await;
    assert_eq!(bot.transcript("user-1").await, ["human:hello", "ai:noted: hello"]);
    for user in ["user-0", "carol"] {
        assert!(bot.transcript(user).await.is_empty(), "{user}");
        bot.take(says(&format!("e92-{user}"), user, "anew")).await;
        bot.idle().await;
        assert_eq!(bot.transcript(user).await, ["human:anew", "ai:noted: anew"]);
    }
    for receipt in &receipts {
        administrator.verify_receipt(receipt).await.unwrap();
    }
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_person_ends_their_events_and_nobody_elses() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "alice", "one")).await;
    bot.take(says("e2", "alice", "two")).await;
    bot.take(says("e3", "bob", "three")).await;
    rig.model.until(2).await;
    let administrator = bot.engine.dangerously_administer(Actor::cli());
    let alice = UserId::new("alice").unwrap();
    let export = administrator.export_person(&tenant(), &alice).await.unwrap();
    assert_eq!(export.derived["channel_events"].len(), 2);
    assert_eq!(export.derived["channel_events"][1]["text"], "two");
    // The dry runs know of them: of the person, and of the one session.
    assert_eq!(administrator.count_derived(&tenant(), &alice).await.unwrap()["channel_events"], 2);
    assert_eq!(
        bot.engine.session(person("alice"), Actor::cli()).count_derived().await.unwrap()["channel_events"],
        2
    );
    let receipt = administrator.erase_person(&tenant(), &alice).await.unwrap();
    assert_eq!(receipt.derived["channel_events"], 2);
    administrator.verify_receipt(&receipt).await.unwrap();
    rig.model.open();
    bot.idle().await;
    assert!(bot.transcript("alice").await.is_empty());
    assert_eq!(bot.transcript("bob").await, ["human:three", "ai:noted: three"]);
    assert_eq!(administrator.count_derived(&tenant(), &alice).await.unwrap()["channel_events"], 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_changes_the_memory_and_a_removal_takes_it_away() {
    let rig = Rig::new();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "my name is Alice")).await;
    bot.take(says("e2", "u", "my code is marker-secret-code")).await;
    bot.idle().await;
    // Somebody else cannot change it.
    assert_eq!(bot.take(edits("x", "e1", "mallory", "my name is Mallory")).await, Taken::Nothing);
    assert_eq!(bot.take(edits("e1/1", "e1", "u", "my name is Alicia")).await, Taken::New);
    assert_eq!(bot.take(edits("e1/1", "e1", "u", "my name is Alicia")).await, Taken::Known);
    assert_eq!(bot.take(removes("e2/gone", "e2")).await, Taken::New);
    assert_eq!(bot.take(removes("e9/gone", "e9")).await, Taken::Nothing);
    bot.idle().await;
    assert_eq!(bot.transcript("u").await, ["human:my name is alicia"]);
    bot.take(says("e3", "u", "what is my name?")).await;
    bot.idle().await;
    let prompt = rig.model.last();
    assert!(
        prompt.contains("Alicia") && !prompt.contains("Alice\n") && !prompt.contains("marker"),
        "{prompt}"
    );
    let verified = bot.engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert_eq!((verified.sessions, verified.refused, verified.audit_fault), (1, vec![], None));
    bot.stop().await;
    let bot = rig.start().await;
    assert_eq!(bot.transcript("u").await.len(), 3);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_back_before_anybody_read_it_is_not_answered() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "first")).await;
    bot.take(says("e2", "u", "never mind")).await;
    rig.model.until(1).await;
    bot.take(removes("e2/gone", "e2")).await;
    rig.model.open();
    bot.idle().await;
    assert_eq!(rig.world.texts(), ["noted: first"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_back_before_it_could_be_read_is_not_answered_when_it_can() {
    let rig = Rig::new();
    let bot = rig.start().await;
    assert_eq!(bot.take(removes("e1/gone", "e1")).await, Taken::Nothing);
    assert_eq!(bot.take(says("e1", "u", "never mind")).await, Taken::Known);
    bot.idle().await;
    assert!(rig.world.texts().is_empty() && bot.transcript("u").await.is_empty());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_messages_come_back_after_a_restart_and_none_is_lost() {
    let rig = Rig::new();
    let bot = rig.start().await;
    for n in 1..=10 {
        bot.take(says(&format!("a{n}"), "u", &format!("word-{n}."))).await;
    }
    bot.idle().await;
    bot.stop().await;
    let seen = |prompt: &str| -> Vec<usize> {
        let place = |n: usize| prompt.find(&format!("Human: word-{n}."));
        let mut seen: Vec<(usize, usize)> = (1..=10).filter_map(|n| Some((place(n)?, n))).collect();
        seen.sort_unstable();
        seen.into_iter().map(|(_, n)| n).collect()
    };
    for (limit, first, want) in
        [(Some(5), "b1", vec![6, 7, 8, 9, 10]), (Some(0), "c1", vec![]), (None, "d1", (1..=10).collect())]
    {
        *rig.world.restore.lock().unwrap() = limit;
        let bot = rig.start().await;
        bot.take(says(first, "u", "continue")).await;
        bot.idle().await;
        assert_eq!(seen(&rig.model.last()), want, "{limit:?}");
        bot.take(says(&format!("{first}-again"), "u", "and on")).await;
        bot.idle().await;
        assert!(rig.model.last().contains("Human: continue"), "what was said since the start is there");
        bot.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_kept_every_message_stands_alone() {
    let rig = Rig::new();
    *rig.world.keeping.lock().unwrap() = confidant_channel::Keeping::Nothing;
    let bot = rig.start().await;
    bot.take(says("e1", "u", "the word is marker-77")).await;
    bot.idle().await;
    assert!(rig.model.last().contains("marker-77"), "it is answered");
    bot.take(says("e2", "u", "what is the word?")).await;
    bot.idle().await;
    assert!(!rig.model.last().contains("Human: the word is marker-77"), "{}", rig.model.last());
    // Kept again, there is nothing from before.
    bot.stop().await;
    *rig.world.keeping.lock().unwrap() = confidant_channel::Keeping::Conversations;
    let bot = rig.start().await;
    bot.take(says("e3", "u", "and now?")).await;
    bot.idle().await;
    assert!(!rig.model.last().contains("Human: the word"), "{}", rig.model.last());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_in_private_stays_there_unless_the_person_allows_it() {
    let rig = Rig::new();
    let bot = rig.start().await;
    bot.take(whispers("e1", "u", "my salary is marker-4200")).await;
    bot.take(says("e2", "u", "what do you know of me?")).await;
    bot.idle().await;
    assert!(!rig.model.last().contains("marker"), "told in a room");
    // The switch is not for rooms.
    bot.take(says("e3", "u", "!share-private on")).await;
    bot.take(whispers("e4", "u", "what do you know of me?")).await;
    bot.idle().await;
    assert!(rig.model.last().contains("marker-4200"), "kept from its own person");
    bot.take(whispers("e5", "u", "!share-private on")).await;
    bot.take(says("e6", "u", "and now?")).await;
    bot.idle().await;
    assert!(rig.model.last().contains("marker-4200"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_moved_to_another_account_does_not_open() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "alice", "for alice")).await;
    bot.take(says("e2", "bob", "for bob")).await;
    rig.model.until(2).await;
    bot.kill().await;
    let file = rusqlite::Connection::open(rig.folder.path().join("channels.db")).unwrap();
    // Bob's content under Alice's way back: her answer would tell it.
    file.execute(
        "UPDATE events SET body = (SELECT body FROM events WHERE seq = 2), sent = NULL WHERE seq = 1",
        [],
    )
    .unwrap();
    drop(file);
    rig.model.open();
    let before = rig.world.shown.lock().unwrap().len();
    let bot = rig.start().await;
    bot.idle().await;
    let shown = rig.world.shown.lock().unwrap().clone();
    assert!(shown.iter().skip(before).all(|one| one.reply_to == "e2"), "{shown:#?}");
    assert!(!shown.iter().any(|one| one.reply_to == "e1" && one.text().contains("for bob")));
    bot.stop().await;
}
