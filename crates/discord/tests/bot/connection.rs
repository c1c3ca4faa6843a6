//! Connections that end in every way that Discord ends them: nothing is lost, nothing is answered twice.

use std::time::Duration;

use confidant_channel::Condition;

use crate::fake::{GENERAL, ME, OTHER, OTHER_TOKEN};
use crate::rig::Rig;

const A: u64 = 111;

fn to_bot(text: &str) -> String {
    format!("<@{ME}> {text}")
}

fn texts(rig: &Rig, channel: u64) -> Vec<String> {
    rig.fake.answers(channel).into_iter().map(|post| post.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_resumed_and_what_was_missed_is_replayed() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.say(A, a, "one");
    fake.answered(a, 1).await;
    for round in 0..3 {
        fake.cut();
        fake.say(A, a, &format!("said into the silence {round}"));
        fake.answered(a, 2 + round).await;
    }
    bot.idle().await;
    let want = [
        "noted: one",
        "noted: said into the silence 0",
        "noted: said into the silence 1",
        "noted: said into the silence 2",
    ];
    assert_eq!(texts(&rig, a), want);
    assert_eq!((fake.identifies(), fake.resumes() >= 3), (1, true));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnect_that_discord_asks_for_is_a_resume() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.ask_to_reconnect();
    fake.until("a resume", |fake| fake.resumes() == 1).await;
    fake.say(A, a, "still there?");
    fake.answered(a, 1).await;
    assert_eq!(fake.identifies(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_session_is_made_anew_and_rooms_are_read_back() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.say(A, a, "one");
    fake.say(A, GENERAL, &to_bot("two"));
    fake.answered(a, 1).await;
    fake.answered(GENERAL, 1).await;
    bot.idle().await;
    // Nobody tells of these: there is no session that could.
    fake.invalidate();
    fake.post(A, a, "three");
    fake.post(A, GENERAL, &to_bot("four"));
    fake.post(A, GENERAL, "not for the bot");
    fake.answered(a, 2).await;
    fake.answered(GENERAL, 2).await;
    bot.idle().await;
    assert_eq!(texts(&rig, a), ["noted: one", "noted: three"]);
    assert_eq!(texts(&rig, GENERAL), ["noted: two", "noted: four"]);
    assert_eq!(fake.identifies(), 2);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_resumes_where_this_one_stopped() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.say(A, a, "one");
    fake.answered(a, 1).await;
    bot.idle().await;
    bot.stop().await;
    fake.say(A, a, "while you were away");
    let bot = rig.start().await;
    fake.answered(a, 2).await;
    bot.idle().await;
    assert_eq!(texts(&rig, a), ["noted: one", "noted: while you were away"]);
    assert_eq!((fake.identifies(), fake.resumes()), (1, 1));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_comes_too_late_to_resume_reads_back() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    // Seen once, so that it has a place to read on from.
    fake.post(A, GENERAL, "before the bot came");
    let bot = rig.start().await;
    fake.say(A, a, "one");
    fake.answered(a, 1).await;
    bot.idle().await;
    bot.stop().await;
    fake.forget_sessions();
    for n in 0..130 {
        fake.post(A, a, &format!("missed {n}"));
    }
    fake.post(A, GENERAL, &to_bot("in the server, too"));
    let bot = rig.start().await;
    fake.answered(a, 131).await;
    fake.answered(GENERAL, 1).await;
    bot.idle().await;
    let want: Vec<String> = std::iter::once("noted: one".to_owned())
        .chain((0..130).map(|n| format!("noted: missed {n}")))
        .collect();
    assert_eq!(texts(&rig, a), want, "each once, in order");
    assert_eq!(
        texts(&rig, GENERAL),
        ["noted: in the server, too"],
        "what was said before it came is not answered"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_an_answer_it_is_answered_once() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    rig.model.shut();
    fake.say(A, a, "a long story");
    fake.until("a draft", |fake| fake.answers(a).iter().any(|post| post.text.starts_with("noted"))).await;
    bot.kill().await;
    rig.model.open();
    let bot = rig.start().await;
    fake.until("the whole", |fake| fake.answers(a).iter().any(|post| post.text == "noted: a long story"))
        .await;
    bot.idle().await;
    assert_eq!(texts(&rig, a), ["noted: a long story"]);
    assert_eq!(bot.transcript("discord_conv:111").await, ["human:a long story", "ai:noted: a long story"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_go_on_and_a_silent_gateway_is_left() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.until("heartbeats", |fake| fake.counted("heartbeats") >= 2).await;
    fake.answer_heartbeats(false);
    fake.until("a resume", |fake| fake.resumes() >= 1).await;
    fake.answer_heartbeats(true);
    fake.say(A, a, "hello");
    fake.answered(a, 1).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_for_a_while_is_found_again() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    rig.model.shut();
    fake.say(A, a, "answer me when you can");
    fake.until("a draft", |fake| fake.answers(a).len() == 1).await;
    fake.set_down(true);
    bot.until(Condition::Down).await;
    rig.model.open();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let status = bot.status();
    assert!(status.trouble.unwrap().contains("; hint: "), "said so that it can be seen");
    fake.set_down(false);
    fake.until("the answer", |fake| fake.answers(a)[0].text == "noted: answer me when you can").await;
    bot.until(Condition::Up).await;
    assert!(bot.status().reconnects >= 1);
    fake.say(A, a, "thanks");
    fake.answered(a, 2).await;
    bot.idle().await;
    assert_eq!(texts(&rig, a).len(), 2);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_arrived_though_nobody_said_so_is_not_sent_twice() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    for (n, text) in ["by its nonce", "by what it answers"].into_iter().enumerate() {
        fake.swallow(1);
        fake.say(A, a, text);
        fake.until("another try", |_| bot.status().answered == n as u64 + 1).await;
        fake.forget_nonces();
    }
    bot.idle().await;
    assert_eq!(texts(&rig, a), ["noted: by its nonce", "noted: by what it answers"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_account_that_is_gone_left_undone_holds_nobody_up() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    rig.model.shut();
    fake.say(A, a, "to the one who goes");
    fake.until("the question", |_| rig.model.asked() == 1).await;
    bot.kill().await;
    rig.model.open();
    let bot = rig.start_with(|settings| settings.token = OTHER_TOKEN.into()).await;
    let with_other = fake.direct_with(A, OTHER);
    fake.say(A, with_other, "to the one who comes");
    fake.until("an answer", |fake| {
        fake.answers(with_other).iter().any(|post| post.text == "noted: to the one who comes")
    })
    .await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_while_nobody_listened_is_changed_and_once() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    let name = fake.say(A, a, "my name is Alice");
    fake.answered(a, 1).await;
    let town = fake.say(A, GENERAL, &to_bot("I live in Berlin"));
    fake.answered(GENERAL, 1).await;
    bot.idle().await;
    bot.stop().await;
    fake.forget_sessions();
    fake.edit(name, "my name is Alicia");
    fake.edit(town, &to_bot("I live in Bern"));
    // Changed before anybody has read it: nothing but its last words were ever known.
    let drink = fake.post(A, a, "I like tee");
    fake.edit(drink, "I like tea");
    let bot = rig.start().await;
    fake.until("all of it", |_| bot.status().received == 3).await;
    fake.answered(a, 2).await;
    bot.idle().await;
    let now = ["human:my name is alicia", "human:i live in bern", "human:i like tea", "ai:noted: i like tea"];
    assert_eq!(bot.transcript("discord_conv:111").await, now);
    bot.stop().await;
    // Another time there is nothing new.
    fake.forget_sessions();
    let reads = fake.counted("reads");
    let bot = rig.start().await;
    fake.until("both rooms", |fake| fake.counted("reads") >= reads + 3).await;
    fake.say(A, a, "still there?");
    fake.answered(a, 3).await;
    bot.idle().await;
    assert_eq!(bot.transcript("discord_conv:111").await[..4], now);
    assert_eq!((bot.status().received, fake.answers(a).len()), (1, 3));
    bot.stop().await;
}
