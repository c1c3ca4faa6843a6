//! A bot in so many servers that Discord wants several connections.

use confidant_channel::Condition;

use crate::fake::{GENERAL, ME};
use crate::rig::Rig;

const A: u64 = 111;
const AWAY: u64 = 8_001;

async fn in_two() -> Rig {
    let rig = Rig::new().await;
    rig.fake.ask_for_shards(2, 2);
    rig.fake.add_far(AWAY);
    rig
}

/// Says something in every place, and waits for the answers.
async fn talk(rig: &Rig, word: &str, times: usize) {
    let (fake, direct) = (&rig.fake, rig.fake.direct(A));
    fake.say(A, direct, word);
    fake.say(A, GENERAL, &format!("<@{ME}> {word}"));
    fake.say(A, AWAY, &format!("<@{ME}> {word}"));
    for place in [direct, GENERAL, AWAY] {
        let answers = fake.answered(place, times).await;
        assert_eq!(answers.last().unwrap().text, format!("noted: {word}"));
    }
}

fn counted(rig: &Rig) -> Vec<usize> {
    [rig.fake.direct(A), GENERAL, AWAY].map(|place| rig.fake.answers(place).len()).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_is_heard_on_its_connection_and_direct_messages_on_the_first() {
    let rig = in_two().await;
    let bot = rig.start().await;
    assert_eq!(rig.fake.identifies(), 2);
    talk(&rig, "one", 1).await;
    bot.idle().await;
    bot.stop().await;
    // The next process resumes both.
    for place in [rig.fake.direct(A), GENERAL, AWAY] {
        rig.fake.say(A, place, &format!("<@{ME}> while you were away"));
    }
    let bot = rig.start().await;
    talk(&rig, "two", 3).await;
    bot.idle().await;
    assert_eq!((rig.fake.identifies(), rig.fake.resumes()), (2, 2));
    assert_eq!(counted(&rig), [3, 3, 3]);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_does_not_silence_the_others() {
    let rig = in_two().await;
    let bot = rig.start().await;
    talk(&rig, "one", 1).await;
    rig.fake.cut_shard(1);
    talk(&rig, "two", 2).await;
    bot.until(Condition::Up).await;
    // Forgotten sessions are begun again, and what was missed is read back on both.
    bot.idle().await;
    rig.fake.invalidate();
    for place in [rig.fake.direct(A), GENERAL, AWAY] {
        rig.fake.post(A, place, &format!("<@{ME}> three"));
    }
    for place in [rig.fake.direct(A), GENERAL, AWAY] {
        rig.fake.answered(place, 3).await;
    }
    bot.idle().await;
    assert_eq!(counted(&rig), [3, 3, 3]);
    assert_eq!(rig.fake.identifies(), 4);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_are_made_when_discord_asks_for_more() {
    let rig = Rig::new().await;
    rig.fake.add_far(AWAY);
    let bot = rig.start().await;
    talk(&rig, "one", 1).await;
    bot.idle().await;
    // It has grown: the session of the one connection is worth nothing any more.
    rig.fake.ask_for_shards(2, 2);
    rig.fake.close(4011);
    rig.fake.until("two connections", |fake| fake.identifies() == 3).await;
    bot.until(Condition::Up).await;
    talk(&rig, "two", 2).await;
    bot.idle().await;
    // And again, from several.
    rig.fake.ask_for_shards(3, 3);
    rig.fake.close(4011);
    rig.fake.until("three connections", |fake| fake.identifies() == 6).await;
    bot.until(Condition::Up).await;
    talk(&rig, "three", 3).await;
    bot.idle().await;
    bot.stop().await;
    // And fewer again.
    rig.fake.ask_for_shards(1, 1);
    let bot = rig.start().await;
    talk(&rig, "four", 4).await;
    bot.idle().await;
    assert_eq!((rig.fake.identifies(), counted(&rig)), (7, vec![4, 4, 4]));
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_of_ones_own_counts_and_a_spent_allowance_is_said() {
    let rig = Rig::new().await;
    rig.fake.add_far(AWAY);
    let bot = rig.start_with(|settings| settings.shards = std::num::NonZeroU32::new(3)).await;
    assert_eq!(rig.fake.identifies(), 3);
    talk(&rig, "one", 1).await;
    bot.idle().await;
    bot.stop().await;
    rig.fake.allow_sessions(0);
    // What can be resumed is.
    let bot = rig.start_with(|settings| settings.shards = std::num::NonZeroU32::new(3)).await;
    talk(&rig, "two", 2).await;
    bot.idle().await;
    bot.stop().await;
    let bot = rig.begin(|_| ()).await;
    let said = |status: &confidant_channel::Status| {
        status.trouble.as_ref().is_some_and(|trouble| trouble.contains("begin new sessions for 60 minutes"))
    };
    let said = async {
        while !bot.runtime.health().all().iter().any(said) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(std::time::Duration::from_secs(180), said).await.is_ok(),
        "{:?}",
        bot.runtime.health().all()
    );
    assert_eq!(rig.fake.identifies(), 3);
    bot.stop().await;
}
