//! Accepted is never lost, answered is never doubled.

use std::collections::HashMap;
use std::time::Duration;

use confidant_channel::{Event, OutgoingKind, Said, Taken, Trouble};

use crate::rig::{Rig, Shown, says};

fn answers(shown: &[Shown]) -> HashMap<String, Vec<String>> {
    let mut by_event: HashMap<String, Vec<String>> = HashMap::new();
    for one in shown {
        by_event.entry(one.reply_to.clone()).or_default().push(one.text().to_owned());
    }
    by_event
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_answered_once_however_often_and_in_whatever_order_it_comes() {
    let rig = Rig::new();
    let bot = rig.start().await;
    let mut events: Vec<usize> = (0..200).chain(0..200).chain(50..100).collect();
    // A fixed shuffle: each run meets the same order.
    events.sort_by_key(|n| (n * 7919 + n / 3) % 211);
    for n in events {
        bot.feed(says(&format!("e{n}"), &format!("u{}", n % 9), &format!("question {n}")));
    }
    rig.world.until(|shown| shown.iter().filter(|one| one.kind == OutgoingKind::Answer).count() >= 200).await;
    bot.idle().await;
    let answers = answers(&rig.world.shown.lock().unwrap());
    assert_eq!(answers.len(), 200);
    for n in 0..200 {
        assert_eq!(answers[&format!("e{n}")], [format!("noted: question {n}")]);
    }
    let status = &bot.runtime.health().all()[0];
    assert_eq!((status.received, status.duplicates, status.answered), (200, 250, 200));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_answered_in_its_order() {
    let rig = Rig::new();
    let bot = rig.start().await;
    rig.model.shut();
    for n in 0..6 {
        bot.take(says(&format!("e{n}"), "u", &format!("q{n}"))).await;
    }
    rig.model.open();
    bot.idle().await;
    let want: Vec<String> = (0..6).flat_map(|n| [format!("human:q{n}"), format!("ai:noted: q{n}")]).collect();
    assert_eq!(bot.transcript("u").await, want);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_an_answer_it_is_answered_once_in_the_same_message() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "tell me a story")).await;
    // The first half is shown, the rest is not there yet.
    rig.world
        .until(|shown| {
            shown.iter().any(|one| one.kind == OutgoingKind::Draft && one.text().starts_with("noted"))
        })
        .await;
    bot.kill().await;
    rig.model.open();
    let bot = rig.start().await;
    rig.world.until(|shown| shown.iter().any(|one| one.kind == OutgoingKind::Answer)).await;
    bot.idle().await;
    assert_eq!(rig.world.texts(), ["noted: tell me a story"]);
    assert_eq!(bot.transcript("u").await, ["human:tell me a story", "ai:noted: tell me a story"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_a_send_and_its_note_nothing_is_sent_twice() {
    let rig = Rig::new();
    for part in 0..3 {
        let before = rig.world.shown.lock().unwrap().len();
        *rig.model.answer.lock().unwrap() = Some("word ".repeat(100).trim().to_owned());
        let bot = rig.start().await;
        bot.take(says(&format!("a{part}"), "u", "at length, please")).await;
        // Everything before this part is told as usual; this one reaches the server, and nobody hears of it.
        let wanted = before + part;
        rig.world.until(|shown| shown.len() >= wanted).await;
        *rig.world.swallow.lock().unwrap() = true;
        let swallowed =
            tokio::time::timeout(Duration::from_secs(2), rig.world.swallowed.notified()).await.is_ok();
        bot.kill().await;
        *rig.world.swallow.lock().unwrap() = false;
        let bot = rig.start().await;
        bot.idle().await;
        let shown = rig.world.shown.lock().unwrap().clone();
        let own: Vec<&Shown> = shown.iter().filter(|one| one.reply_to == format!("a{part}")).collect();
        let told: Vec<&str> = own.iter().flat_map(|one| one.text().split(' ')).collect();
        assert_eq!(told.len(), 100, "part {part}, swallowed {swallowed}: {own:#?}");
        assert!(own.iter().all(|one| one.kind == OutgoingKind::Answer));
        bot.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_neither_loses_nor_doubles() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    for n in 0..20 {
        bot.take(says(&format!("e{n}"), &format!("u{}", n % 4), &format!("q{n}"))).await;
    }
    rig.model.until(4).await;
    let model = std::sync::Arc::clone(&rig.model);
    // What runs may finish; what was not begun is left.
    let opening = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        model.open();
    });
    bot.stop().await;
    opening.await.unwrap();
    let bot = rig.start().await;
    rig.world.until(|shown| shown.iter().filter(|one| one.kind == OutgoingKind::Answer).count() >= 20).await;
    bot.idle().await;
    let answers = answers(&rig.world.shown.lock().unwrap());
    assert!(answers.len() == 20 && answers.values().all(|texts| texts.len() == 1), "{answers:#?}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_is_away_is_tried_again_and_a_room_that_is_gone_is_not() {
    let rig = Rig::new();
    let bot = rig.start().await;
    let away = || Trouble::passing("the server is away", "wait");
    // A draft and the answer fail; later the answer comes through.
    rig.world.troubles.lock().unwrap().extend([away(), away(), away()]);
    bot.take(says("e1", "u", "hello")).await;
    let clock = std::sync::Arc::clone(&rig.clock);
    let hurry = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            clock.advance(Duration::from_secs(1));
        }
    });
    rig.world.until(|shown| shown.iter().any(|one| one.kind == OutgoingKind::Answer)).await;
    bot.idle().await;
    rig.world.troubles.lock().unwrap().extend([Trouble::Gone, Trouble::Gone, Trouble::Gone]);
    bot.take(says("e2", "u", "are you there")).await;
    bot.idle().await;
    hurry.abort();
    rig.world.troubles.lock().unwrap().clear();
    assert_eq!(bot.take(says("e2", "u", "are you there")).await, Taken::Known);
    bot.take(says("e3", "u", "still")).await;
    bot.idle().await;
    assert_eq!(rig.world.texts().last().unwrap(), "noted: still");
    let status = &bot.runtime.health().all()[0];
    assert_eq!((status.answered, status.undelivered), (2, 1));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_does_not_serve_the_same_channels() {
    let rig = Rig::new();
    let bot = rig.start().await;
    let other = confidant_channel::Inbox::open(rig.folder.path()).unwrap();
    assert_eq!(other.lock().unwrap_err(), confidant_channel::InboxError::Taken);
    bot.stop().await;
    assert!(other.lock().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_behind_something_missing_makes_no_cursor() {
    let rig = Rig::new();
    let bot = rig.start().await;
    let Event::Said(said) = says("e5", "u", "hi") else { unreachable!() };
    bot.take(Event::Said(Said { order: None, ..said })).await;
    bot.idle().await;
    assert!(bot.cursors().await.is_empty());
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_only_move_forward_and_survive_a_restart() {
    let rig = Rig::new();
    let bot = rig.start().await;
    for n in [3, 9, 5] {
        bot.take(says(&format!("{n}"), "u", "hi")).await;
    }
    bot.idle().await;
    bot.stop().await;
    let bot = rig.start().await;
    let cursors = bot.cursors().await;
    assert_eq!(cursors.len(), 1);
    assert_eq!((cursors[0].room.as_str(), cursors[0].event.as_str()), ("hall-8833", "9"));
    bot.stop().await;
}
