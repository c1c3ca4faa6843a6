//! The four verification steps of the requirement, literally, with its user ids.

use crate::rig::Rig;

const A: u64 = 111;
const B: u64 = 222;

#[tokio::test(flavor = "multi_thread")]
async fn step_1_context_isolation_with_a_restart() {
    let rig = Rig::new().await;
    let (fake, a, b) = (&rig.fake, rig.fake.direct(A), rig.fake.direct(B));
    let bot = rig.start().await;
    fake.say(A, a, "I want to talk about rust programming");
    fake.say(B, b, "I want to talk about python programming");
    fake.answered(a, 1).await;
    fake.answered(b, 1).await;
    bot.idle().await;
    bot.stop().await;
    let bot = rig.start().await;
    fake.say(A, a, "continue");
    let answers = fake.answered(a, 2).await;
    assert_eq!(answers[1].text, "noted: continue");
    let prompt = rig.model.prompt("continue");
    assert!(prompt.contains("rust programming") && !prompt.contains("python"), "{prompt}");
    fake.say(B, b, "continue, please");
    fake.answered(b, 2).await;
    let prompt = rig.model.prompt("continue, please");
    assert!(prompt.contains("python programming") && !prompt.contains("rust"), "{prompt}");
    bot.stop().await;
    for marker in ["rust programming", "python programming"] {
        assert!(!rig.has(marker), "{marker} can be read in the folder");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn step_2_ten_messages_limit_five_the_last_five_in_order() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start_with(|settings| settings.load_past_conversations = 5).await;
    for n in 1..=10 {
        fake.say(A, a, &format!("message number {n}."));
    }
    fake.answered(a, 10).await;
    bot.idle().await;
    bot.stop().await;
    // At every restart, not only at the first.
    for (round, want) in [(1, vec![6, 7, 8, 9, 10]), (2, vec![7, 8, 9, 10])] {
        let bot = rig.start_with(|settings| settings.load_past_conversations = 5).await;
        let query = format!("what do you remember? ({round})");
        fake.say(A, a, &query);
        fake.answered(a, 10 + round).await;
        let prompt = rig.model.prompt(&query);
        let place = |n: i32| prompt.find(&format!("Human: message number {n}."));
        let mut seen: Vec<(usize, i32)> = (1..=10).filter_map(|n| Some((place(n)?, n))).collect();
        seen.sort_unstable();
        assert_eq!(seen.into_iter().map(|(_, n)| n).collect::<Vec<_>>(), want, "{prompt}");
        bot.idle().await;
        bot.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn step_3_two_users_at_once_under_separate_keys() {
    let rig = Rig::new().await;
    let (fake, a, b) = (&rig.fake, rig.fake.direct(A), rig.fake.direct(B));
    let bot = rig.start().await;
    for n in 0..15 {
        fake.say(A, a, &format!("alpha-{n}"));
        fake.say(B, b, &format!("beta-{n}"));
    }
    fake.answered(a, 15).await;
    fake.answered(b, 15).await;
    bot.idle().await;
    for (query, prompt) in rig.model.prompts.lock().unwrap().iter() {
        let other = if query.starts_with("alpha") { "beta" } else { "alpha" };
        assert!(!prompt.contains(other), "{prompt}");
    }
    assert!(fake.answers(a).iter().all(|post| post.text.starts_with("noted: alpha")));
    assert!(fake.answers(b).iter().all(|post| post.text.starts_with("noted: beta")));
    assert_eq!(bot.sessions().await, ["discord_conv:111", "discord_conv:222"]);
    assert_eq!(bot.transcript("discord_conv:111").await.len(), 30);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn step_4_limit_zero_starts_fresh_and_deletes_nothing() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start_with(|settings| settings.load_past_conversations = 0).await;
    fake.say(A, a, "my favourite colour is teal");
    fake.answered(a, 1).await;
    bot.idle().await;
    bot.stop().await;
    let bot = rig.start_with(|settings| settings.load_past_conversations = 0).await;
    fake.say(A, a, "what is my favourite colour?");
    fake.answered(a, 2).await;
    assert!(!rig.model.prompt("what is my favourite colour?").contains("teal"));
    bot.idle().await;
    bot.stop().await;
    let bot = rig.start().await;
    fake.say(A, a, "and now?");
    fake.answered(a, 3).await;
    assert!(rig.model.prompt("and now?").contains("teal"), "it was never deleted");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_a_hundred_messages_are_kept_in_mind() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    for n in 0..60 {
        fake.say(A, a, &format!("m{n:03}"));
    }
    fake.answered(a, 60).await;
    fake.say(A, a, "and?");
    fake.answered(a, 61).await;
    let prompt = rig.model.prompt("and?");
    assert!(!prompt.contains("m009") && prompt.contains("m010") && prompt.contains("m059"), "{prompt}");
    bot.stop().await;
}
