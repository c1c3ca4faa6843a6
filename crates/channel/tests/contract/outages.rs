//! Promise 8 in a channel: with the store away, people are answered without memory and told so.

use confidant_channel::OutgoingKind;
use rusqlite::Connection;

use crate::rig::{Rig, says};

/// Takes every session's key out of reach and has logs refuse what is written, or puts it all back.
fn store_away(rig: &Rig, away: bool) {
    let run = |file: &str, sql: &str| {
        let db = Connection::open(rig.folder.path().join(file)).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        db.execute_batch(sql).unwrap();
    };
    if away {
        run("keyring.db", "ALTER TABLE session_keys RENAME TO away");
        let refuse = "CREATE TRIGGER away BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'away'); END";
        run("confidant.db", refuse);
    } else {
        run("confidant.db", "DROP TRIGGER away");
        run("keyring.db", "ALTER TABLE away RENAME TO session_keys");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_8_people_are_answered_while_the_store_is_away() {
    let rig = Rig::new();
    let bot = rig.start().await;
    bot.take(says("e1", "u", "I am Alice")).await;
    bot.idle().await;
    store_away(&rig, true);
    // Somebody who is known, and somebody who is not.
    bot.take(says("e2", "u", "marker-said-while-away")).await;
    bot.take(says("e3", "v", "marker-of-a-stranger")).await;
    rig.world.until(|shown| shown.iter().filter(|one| one.kind == OutgoingKind::Answer).count() == 3).await;
    bot.idle().await;
    let texts = rig.world.texts();
    for (at, said) in [(1, "marker-said-while-away"), (2, "marker-of-a-stranger")] {
        let told = texts.iter().find(|text| text.contains(said)).unwrap_or_else(|| panic!("{at}: {texts:?}"));
        assert!(told.contains("I could not open my memory of us"), "{told}");
    }
    assert!(!rig.has("marker-"), "it waited sealed");
    store_away(&rig, false);
    bot.take(says("e4", "u", "are you back?")).await;
    bot.idle().await;
    // The log of the one who was known has heard of it, and in its order.
    let said = ["i am alice", "marker-said-while-away", "are you back?"];
    let whole: Vec<_> =
        said.iter().flat_map(|said| [format!("human:{said}"), format!("ai:noted: {said}")]).collect();
    assert_eq!(bot.transcript("u").await, whole);
    assert!(!rig.world.texts()[3].contains("could not open"), "{:?}", rig.world.texts());
    bot.stop().await;
}
