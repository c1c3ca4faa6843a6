//! What an operator got wrong, and what Discord refuses: a clear report, and the process lives on.

use std::time::Duration;

use confidant_channel::Condition;

use crate::fake::{GENERAL, ME};
use crate::rig::Rig;

const A: u64 = 111;

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_token_is_reported_and_never_shown() {
    let rig = Rig::new().await;
    let bot = rig.begin(|settings| settings.token = "MTAw.wrong.token".into()).await;
    bot.until(Condition::Refused).await;
    let report = bot.status().trouble.unwrap();
    assert!(report.contains("does not know this bot token") && report.contains("; hint: "), "{report}");
    assert!(!report.contains("wrong") && !format!("{:?}", bot.discord).contains("wrong"));
    // Everything else goes on.
    bot.engine.ping().await.unwrap();
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_intent_is_reported_before_and_at_the_gateway() {
    let rig = Rig::new().await;
    rig.fake.allow_intents(false);
    let bot = rig.begin(|_| ()).await;
    bot.until(Condition::Refused).await;
    assert!(bot.status().trouble.unwrap().contains("Message Content intent"));
    assert_eq!(rig.fake.identifies(), 0, "found out without the gateway");
    bot.stop().await;
    // Switched off while it runs: the gateway says so.
    rig.fake.allow_intents(true);
    let bot = rig.start().await;
    rig.fake.close(4014);
    bot.until(Condition::Refused).await;
    let report = bot.status().trouble.unwrap();
    assert!(report.contains("Message Content intent") && report.contains("developer portal"), "{report}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_withdrawn_while_it_runs_is_reported() {
    let rig = Rig::new().await;
    let bot = rig.start().await;
    rig.fake.close(4004);
    bot.until(Condition::Refused).await;
    assert!(bot.status().trouble.unwrap().contains("does not know this bot token"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bot_that_is_put_out_of_its_server_says_so_and_answers_elsewhere() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start_with(|settings| settings.guild_id = Some("7000".to_owned())).await;
    rig.model.shut();
    fake.say(A, GENERAL, &format!("<@{ME}> answer me"));
    fake.until("the question", |_| rig.model.asked() == 1).await;
    fake.kick();
    bot.until(Condition::Refused).await;
    assert!(bot.status().trouble.unwrap().contains("not in the server"));
    rig.model.open();
    fake.say(A, a, "and here?");
    fake.answered(a, 1).await;
    bot.idle().await;
    assert_eq!(bot.status().undelivered, 1, "the answer that had nowhere to go");
    fake.invite();
    bot.until(Condition::Up).await;
    fake.say(A, GENERAL, &format!("<@{ME}> back again"));
    fake.until("an answer", |fake| fake.answers(GENERAL).iter().any(|post| post.text == "noted: back again"))
        .await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_are_waited_out() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.limit(&[0.2, 0.3, 0.1]);
    fake.say(A, a, "one");
    fake.answered(a, 1).await;
    assert!(fake.counted("429") >= 3);
    fake.bound(2, Duration::from_millis(500));
    for n in 0..8 {
        fake.say(A, a, &format!("m{n}"));
    }
    fake.answered(a, 9).await;
    bot.idle().await;
    let texts: Vec<String> = fake.answers(a).into_iter().map(|post| post.text).collect();
    let want: Vec<String> =
        std::iter::once("noted: one".to_owned()).chain((0..8).map(|n| format!("noted: m{n}"))).collect();
    assert_eq!(texts, want);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_entries_of_one_account_do_not_both_answer() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start_beside(|settings| settings.label = "bot-2".to_owned()).await;
    let conditions = || {
        let mut all: Vec<Condition> = bot.runtime.health().all().iter().map(|one| one.condition).collect();
        all.sort_by_key(|condition| format!("{condition:?}"));
        all
    };
    fake.until("one of them", |_| conditions() == [Condition::Refused, Condition::Up]).await;
    let refused = bot.runtime.health().all().into_iter().find(|one| one.condition == Condition::Refused);
    let report = refused.unwrap().trouble.unwrap();
    assert!(report.contains("the same account as discord bot-") && report.contains("; hint: "), "{report}");
    fake.say(A, a, "hello");
    fake.answered(a, 1).await;
    bot.idle().await;
    assert_eq!(fake.answers(a).len(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_outlives_a_token_that_is_not_known_and_a_proxy_that_answers_instead() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    for (n, instead) in [
        (401, r#"{"message":"401: Unauthorized","code":0}"#),
        (404, "<html><h1>404 Not Found</h1><hr>nginx</html>"),
    ]
    .into_iter()
    .enumerate()
    {
        rig.model.shut();
        fake.say(A, a, "still there?");
        fake.until("the question", |_| rig.model.asked() > n).await;
        let before = fake.counted("instead");
        fake.answer(Some(instead));
        rig.model.open();
        fake.until("a few tries", |fake| fake.counted("instead") > before + 3).await;
        assert_eq!(bot.status().undelivered, 0, "{instead:?}");
        fake.answer(None);
        fake.until("an answer", |fake| {
            fake.answers(a).iter().filter(|post| post.text == "noted: still there?").count() == n + 1
        })
        .await;
        bot.idle().await;
    }
    assert_eq!((fake.answers(a).len(), bot.status().undelivered), (2, 0));
    bot.stop().await;
}
