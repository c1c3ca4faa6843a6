//! How things are told: growing, in parts, and privately where that matters.

use confidant_channel::OutgoingKind;

use crate::rig::{CONCURRENCY, Rig, says};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_grows_in_one_message_and_long_ones_go_on_in_more() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "hello there")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "noted: he")).await;
    rig.model.open();
    bot.idle().await;
    {
        let shown = rig.world.shown.lock().unwrap();
        assert_eq!(
            (shown.len(), shown[0].kind, shown[0].text()),
            (1, OutgoingKind::Answer, "noted: hello there")
        );
    }
    let code: String = (0..60).map(|n| format!("line {n}\n")).collect();
    *rig.model.answer.lock().unwrap() = Some(format!("See:\n```text\n{code}```\nThat is all."));
    bot.take(says("e2", "u", "show me")).await;
    bot.idle().await;
    let parts: Vec<String> = rig.world.texts().into_iter().skip(1).collect();
    assert!(parts.len() > 2);
    assert!(parts.iter().all(|part| part.len() <= 200 && part.matches("```").count() % 2 == 0), "{parts:#?}");
    assert!(parts.last().unwrap().ends_with("That is all."));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_room_is_in_the_prompt_and_in_nothing_else() {
    let rig = Rig::new();
    let bot = rig.start().await;
    rig.world.room.lock().unwrap().push(("bob".to_owned(), "we chose PostgreSQL".to_owned()));
    bot.take(says("e1", "dave", "what did we choose?")).await;
    bot.idle().await;
    assert!(rig.model.last().contains("we chose PostgreSQL"));
    rig.world.room.lock().unwrap().clear();
    bot.take(says("e2", "dave", "and now?")).await;
    bot.idle().await;
    assert!(!rig.model.last().contains("PostgreSQL"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_obeyed_and_never_reach_the_model() {
    let rig = Rig::new();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "I like tea")).await;
    bot.take(says("e2", "v", "I like coffee")).await;
    bot.idle().await;
    let asked = rig.model.prompts.lock().unwrap().len();
    for (event, text) in [("e3", "!help"), ("e4", "!privacy"), ("e5", "!export")] {
        bot.take(says(event, "u", text)).await;
    }
    bot.idle().await;
    assert_eq!(rig.model.prompts.lock().unwrap().len(), asked);
    let texts = rig.world.texts().join("\n");
    assert!(texts.contains("`!forget`") && texts.contains("destroys the key"), "{texts}");
    assert!(texts.contains("sent it to you in private"));
    let files = rig.world.files.lock().unwrap().clone();
    assert_eq!((files.len(), files[0].0.as_str()), (1, "u"));
    assert!(files[0].1.contains("I like tea") && !files[0].1.contains("coffee"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_does_not_wait_for_what_it_cancels() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "a long story")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text().starts_with("noted"))).await;
    bot.take(says("e2", "u", "!cancel")).await;
    bot.idle().await;
    let texts = rig.world.texts();
    assert!(texts.contains(&"Cancelled.".to_owned()), "{texts:?}");
    assert!(!texts.iter().any(|text| text.starts_with("noted")), "a draft was left behind: {texts:?}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_does_not_wait_for_a_place_among_others() {
    let rig = Rig::new();
    rig.model.shut();
    let bot = rig.start().await;
    for n in 0..CONCURRENCY {
        bot.take(says(&format!("e{n}"), &format!("u{n}"), "a long story")).await;
    }
    rig.model.until(CONCURRENCY).await;
    bot.take(says("e90", "u0", "!cancel")).await;
    rig.world.until(|shown| shown.iter().any(|one| one.text() == "Cancelled.")).await;
    rig.model.open();
    bot.idle().await;
    bot.stop().await;
}
