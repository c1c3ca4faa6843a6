//! What people see: answers where they asked, growing and in parts, and their data when they ask for it.

use std::time::Duration;

use confidant_channel::Channel as _;
use confidant_discord::Isolation;

use crate::fake::{GENERAL, ME};
use crate::rig::Rig;

const A: u64 = 111;
const B: u64 = 222;

fn to_bot(text: &str) -> String {
    format!("<@{ME}> {text}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_in_private_is_not_recalled_in_a_server() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.say(A, a, "my salary is 4200");
    fake.answered(a, 1).await;
    fake.say(A, GENERAL, &to_bot("what do you know of me?"));
    fake.answered(GENERAL, 1).await;
    assert!(!rig.model.prompt("what do you know of me?").contains("salary is 4200"));
    // What a room heard may be recalled in private, and what is private stays with its person there.
    fake.say(A, GENERAL, &to_bot("I work in the tower"));
    fake.answered(GENERAL, 2).await;
    fake.say(A, a, "what do you know of me in private?");
    fake.answered(a, 2).await;
    let prompt = rig.model.prompt("what do you know of me in private?");
    assert!(prompt.contains("salary is 4200") && prompt.contains("tower"), "{prompt}");
    fake.say(A, a, "!share-private on");
    fake.answered(a, 3).await;
    fake.say(A, GENERAL, &to_bot("and now?"));
    fake.answered(GENERAL, 3).await;
    assert!(rig.model.prompt("and now?").contains("salary is 4200"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_room_is_read_and_only_mentions_are_answered() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start().await;
    fake.say(A, GENERAL, "let us use PostgreSQL");
    fake.say(101, GENERAL, "I am another bot");
    let gone = fake.say(B, GENERAL, "this is taken back");
    let changed = fake.say(B, GENERAL, "deploy to Azure");
    fake.delete(gone);
    fake.edit(changed, "deploy to AWS");
    fake.say(333, GENERAL, &to_bot("what database did we choose?"));
    let answers = fake.answered(GENERAL, 1).await;
    let prompt = rig.model.prompt("what database did we choose?");
    assert!(
        prompt.contains("User 111: let us use PostgreSQL") && prompt.contains("User 222: deploy to AWS"),
        "{prompt}"
    );
    assert!(!prompt.contains("taken back") && !prompt.contains("Azure"), "{prompt}");
    assert_eq!(
        prompt.matches("what database did we choose?").count(),
        1,
        "the question itself is not quoted"
    );
    assert!(answers[0].reply_to.is_some() && fake.pings() == 0);
    assert!(fake.counted("typing") >= 1);
    // The bot's own answer is in the room now, as its own.
    fake.say(333, GENERAL, &to_bot("really?"));
    fake.answered(GENERAL, 2).await;
    assert!(rig.model.prompt("really?").contains("assistant: noted: what database"));
    assert_eq!(rig.model.asked(), 2, "nobody else was answered");
    bot.stop().await;
    assert!(!rig.has("PostgreSQL"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_bot_says_beside_answers_is_no_line_of_the_room() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start().await;
    fake.say(A, GENERAL, &to_bot("!help"));
    fake.answered(GENERAL, 1).await;
    rig.model.shut();
    fake.say(A, GENERAL, &to_bot("a long story"));
    fake.until("a draft", |fake| fake.answers(GENERAL).iter().any(|post| post.text == "noted: a ")).await;
    // Asked while the other answer grows, and after a restart, which knows no more than Discord does.
    fake.say(B, GENERAL, &to_bot("what is this?"));
    fake.until("the question", |_| rig.model.asked() == 2).await;
    let prompt = rig.model.prompt("what is this?");
    assert!(prompt.contains("a long story") && !prompt.contains("noted: a "), "{prompt}");
    assert!(!prompt.contains("!forget"), "a notice: {prompt}");
    bot.kill().await;
    rig.model.open();
    let bot = rig.start().await;
    bot.idle().await;
    fake.say(B, GENERAL, &to_bot("and now?"));
    fake.until("an answer", |fake| fake.answers(GENERAL).iter().any(|post| post.text == "noted: and now?"))
        .await;
    let prompt = rig.model.prompt("and now?");
    assert!(prompt.contains("assistant: noted: a long story") && !prompt.contains("!forget"), "{prompt}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_grows_and_long_ones_are_split_without_breaking_code() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    rig.model.shut();
    fake.say(A, a, "slowly, please");
    fake.until("a draft", |fake| fake.answers(a).iter().any(|post| post.text == "noted: slo")).await;
    rig.model.open();
    fake.until("the whole", |fake| fake.answers(a)[0].text == "noted: slowly, please").await;
    bot.idle().await;
    assert_eq!(fake.answers(a).len(), 1, "one message, edited");
    let code: String = (0..200).map(|n| format!("let value_{n} = compute({n});\n")).collect();
    *rig.model.answer.lock().unwrap() = Some(format!("Here:\n```rust\n{code}```\nThat is all."));
    fake.say(A, a, "show me the code");
    fake.until("its end", |fake| fake.answers(a).last().unwrap().text.ends_with("That is all.")).await;
    bot.idle().await;
    let parts = fake.answers(a);
    let parts = &parts[1..];
    assert!(parts.len() >= 3);
    for part in parts {
        assert!(
            part.text.chars().count() <= 2000 && part.text.matches("```").count() % 2 == 0,
            "{}",
            part.text
        );
    }
    assert_eq!(parts.iter().filter(|part| part.reply_to.is_some()).count(), 1, "only the first points back");
    assert_eq!(fake.pings(), 0, "nobody is notified, by edits neither");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_and_deletes_reach_the_memory() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    let name = fake.say(A, a, "my name is Alice");
    let code = fake.say(A, a, "the door code is 991177");
    fake.answered(a, 2).await;
    bot.idle().await;
    fake.edit(name, "my name is Alicia");
    fake.delete(code);
    fake.until("both", |_| bot.status().received >= 4).await;
    bot.idle().await;
    assert_eq!(bot.transcript("discord_conv:111").await, ["human:my name is alicia"]);
    fake.say(A, a, "what is my name, and the code?");
    fake.answered(a, 3).await;
    let prompt = rig.model.prompt("what is my name, and the code?");
    assert!(prompt.contains("Alicia") && !prompt.contains("991177"), "{prompt}");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgetting_exporting_and_asking_by_words_and_by_slash() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    assert_eq!(fake.commands(), ["forget", "export", "privacy", "help", "cancel"]);
    fake.say(A, GENERAL, &to_bot("I like green tea"));
    fake.answered(GENERAL, 1).await;
    fake.say(A, GENERAL, &to_bot("!export"));
    let said = fake.answered(GENERAL, 2).await;
    assert!(said[1].text.contains("in private"), "{}", said[1].text);
    let sent = fake.answered(a, 1).await;
    assert!(sent[0].files[0].contains("I like green tea"), "the file goes to the direct channel");
    for (name, word) in
        [("help", "`!forget`"), ("privacy", "destroys the key"), ("export", "I like green tea")]
    {
        let token = fake.slash(A, GENERAL, name);
        fake.until(name, |fake| fake.interaction(&token).iter().any(|said| said.contains(word))).await;
    }
    let token = fake.slash(A, GENERAL, "forget");
    fake.until("forget", |fake| fake.interaction(&token).iter().any(|said| said.contains("erased"))).await;
    bot.idle().await;
    assert!(bot.sessions().await.is_empty());
    let token = fake.slash(A, GENERAL, "export");
    fake.until("nothing", |fake| {
        fake.interaction(&token).iter().any(|said| said.contains("nothing about you"))
    })
    .await;
    assert_eq!(fake.answers(GENERAL).len(), 2, "slash commands are answered to their giver alone");
    assert_eq!(fake.pings(), 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_takes_no_direct_messages_is_told_so() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start().await;
    fake.say(A, GENERAL, &to_bot("hello"));
    fake.answered(GENERAL, 1).await;
    fake.refuse_direct();
    fake.say(A, GENERAL, &to_bot("!export"));
    let said = fake.answered(GENERAL, 2).await;
    assert!(said[1].text.contains("could not send it to you in private"), "{}", said[1].text);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_are_left_aside_with_a_word() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    fake.attach(A, a, "look at this");
    let said = fake.answered(a, 1).await;
    assert!(said[0].text.starts_with("noted: look at this") && said[0].text.contains("attachments"));
    fake.attach(A, a, "");
    let said = fake.answered(a, 2).await;
    assert!(said[1].text.contains("cannot look at attachments"));
    assert_eq!(rig.model.asked(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_can_be_kept_apart() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    fake.add_channel(7_002);
    let bot = rig
        .start_with(|settings| {
            settings.isolation = Isolation::Place;
            settings.room_lines = 0;
        })
        .await;
    fake.say(A, GENERAL, &to_bot("the word is plum"));
    fake.answered(GENERAL, 1).await;
    fake.say(A, 7_002, &to_bot("what is the word?"));
    fake.answered(7_002, 1).await;
    assert!(!rig.model.prompt("what is the word?").contains("plum"));
    assert_eq!(bot.sessions().await, ["discord:7001:main:111", "discord:7002:main:111"]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_is_a_room_of_its_own_and_is_read_back() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    fake.add_thread(7_100);
    let bot = rig.start().await;
    fake.say(B, GENERAL, "in the channel we said Oracle");
    fake.say(B, 7_100, "in the thread we said PostgreSQL");
    fake.say(A, 7_100, &to_bot("which database?"));
    fake.answered(7_100, 1).await;
    let prompt = rig.model.prompt("which database?");
    assert!(prompt.contains("PostgreSQL") && !prompt.contains("Oracle"), "{prompt}");
    assert!(fake.answers(GENERAL).is_empty());
    bot.idle().await;
    bot.stop().await;
    fake.forget_sessions();
    fake.post(A, 7_100, &to_bot("said while you were away"));
    let bot = rig.start().await;
    fake.answered(7_100, 2).await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_are_allowed_are_answered() {
    let rig = Rig::new().await;
    let (fake, a, b) = (&rig.fake, rig.fake.direct(A), rig.fake.direct(B));
    let bot = rig
        .start_with(|settings| {
            settings.allowed = confidant_channel::Allowed::new(&["111".to_owned()]);
            settings.mention_only = false;
        })
        .await;
    fake.say(B, b, "hello");
    fake.say(B, GENERAL, "hello");
    let token = fake.slash(B, GENERAL, "help");
    fake.say(A, a, "hello");
    fake.say(A, GENERAL, "hello");
    fake.answered(a, 1).await;
    fake.answered(GENERAL, 1).await;
    fake.until("a refusal", |fake| fake.interaction(&token).iter().any(|said| said.contains("may not talk")))
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    bot.idle().await;
    assert_eq!((fake.answers(b).len(), fake.answers(GENERAL).len(), bot.status().received), (0, 1, 2));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_is_there_and_what_is_not() {
    let rig = Rig::new().await;
    let bot = rig.start().await;
    let findings = bot.discord.check(None).await;
    let bad: Vec<&str> =
        findings.iter().filter(|finding| !finding.good).map(|finding| finding.what.as_str()).collect();
    assert_eq!(bad, ["in 1 of 1 servers the bot lacks the permission Send Messages in Threads"]);
    assert!(findings.iter().filter(|finding| !finding.good).all(|finding| finding.hint.is_some()));
    rig.fake.allow_intents(false);
    let findings = bot.discord.check(None).await;
    assert!(findings.iter().any(|finding| !finding.good && finding.what.contains("Message Content intent")));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_command_is_answered_though_discord_is_slow_to_hear_that_it_was_heard() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start().await;
    fake.slow_callbacks(Duration::from_millis(700));
    let token = fake.slash(A, GENERAL, "help");
    fake.until("help", |fake| fake.interaction(&token).iter().any(|said| said.contains("`!forget`"))).await;
    bot.idle().await;
    assert_eq!(bot.status().undelivered, 0);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_called_off_by_words_and_by_slash() {
    let rig = Rig::new().await;
    let (fake, a) = (&rig.fake, rig.fake.direct(A));
    let bot = rig.start().await;
    rig.model.shut();
    fake.say(A, a, "a long story");
    fake.until("a draft", |fake| fake.answers(a).len() == 1).await;
    fake.say(A, a, "!cancel");
    fake.until("both", |fake| {
        let texts: Vec<String> = fake.answers(a).into_iter().map(|post| post.text).collect();
        texts == ["(This was cancelled.)", "Cancelled."]
    })
    .await;
    fake.say(A, a, "another one");
    fake.until("a draft", |fake| fake.answers(a).len() == 3).await;
    let token = fake.slash(A, a, "cancel");
    fake.until("cancelled", |fake| fake.interaction(&token).iter().any(|said| said == "Cancelled.")).await;
    fake.until("the draft's end", |fake| fake.answers(a)[2].text == "(This was cancelled.)").await;
    bot.idle().await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_that_cannot_be_read_is_answered_without() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start().await;
    fake.close_history();
    fake.say(B, GENERAL, "let us use PostgreSQL");
    fake.say(A, GENERAL, &to_bot("what database?"));
    fake.answered(GENERAL, 1).await;
    assert!(!rig.model.prompt("what database?").contains("PostgreSQL"));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_are_answered_at_once_and_no_more() {
    let rig = Rig::new().await;
    let fake = &rig.fake;
    let bot = rig.start_with(|settings| settings.concurrency = 2).await;
    rig.model.shut();
    let rooms: Vec<u64> = (300..308).map(|user| fake.direct(user)).collect();
    for (user, room) in (300..308).zip(&rooms) {
        fake.say(user, *room, "hello");
    }
    fake.until("all of them", |_| bot.status().received == 8).await;
    fake.until("two", |_| rig.model.asked() == 2).await;
    rig.model.open();
    for room in rooms {
        fake.answered(room, 1).await;
    }
    assert_eq!(rig.model.most(), 2);
    bot.stop().await;
}
