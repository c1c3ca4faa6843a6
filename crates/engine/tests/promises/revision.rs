//! Promise 6 for what a person takes back, and for what is kept beside a session.

use confidant_engine::{Actor, Error};

use crate::rig::*;

on_every_store! {
    promise_6_what_is_taken_back_is_gone,
    promise_6_what_is_kept_beside_a_session_ends_with_it,
}

const ID: &str = "discord_conv:111";

/// The sealed records and snapshots that are in the file now.
fn sealed(place: &Place) -> Vec<Vec<u8>> {
    let path = place.file("confidant.db");
    if !path.exists() {
        return Vec::new();
    }
    let file = rusqlite::Connection::open(path).unwrap();
    let mut all = Vec::new();
    for sql in ["SELECT sealed FROM records WHERE log IS NOT NULL", "SELECT sealed FROM session_snapshots"] {
        let mut statement = file.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
        all.extend(rows.map(Result::unwrap));
    }
    all
}

async fn promise_6_what_is_taken_back_is_gone(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    for n in 0..4 {
        one.turn(says_as(&format!("r{n}"), &format!("word-{n}"))).finish().await.unwrap();
    }
    let before = sealed(&place);
    assert!(one.remove("r1").await.unwrap());
    assert_eq!(transcript(&engine, ID).await.concat().matches("word-1").count(), 0);
    // Not one record from before is left in any file: the old words are in none of the bytes, sealed or not.
    let bytes = place.bytes();
    for old in &before {
        assert!(!bytes.windows(old.len()).any(|window| window == old), "an old record is still there");
    }
    one.turn(says("what did I say?")).finish().await.unwrap();
    let prompt = model.last();
    assert!(prompt.contains("word-0") && prompt.contains("word-2") && !prompt.contains("word-1"), "{prompt}");
    // It stays gone, and its request is not answered anew.
    assert!(matches!(one.turn(says_as("r1", "word-1")).finish().await, Err(Error::AnswerGone)));
    assert!(one.remove("r1").await.unwrap(), "taking back twice is no error");
    stop(engine).await;
    let engine = place.engine(&model).await;
    assert_eq!(transcript(&engine, ID).await.len(), 8);
    let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert_eq!((verified.sessions, verified.refused, verified.audit_fault), (1, vec![], None));
}

async fn promise_6_what_is_kept_beside_a_session_ends_with_it(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let (one, other) = (session(&engine, ID), session(&engine, "discord_conv:222"));
    let sealed = one.seal_beside("thing", b"kept").await.unwrap();
    assert_eq!(one.open_beside("thing", &sealed).await.unwrap().unwrap().as_slice(), b"kept");
    assert!(one.open_beside("other thing", &sealed).await.unwrap().is_none());
    other.turn(says("hello")).finish().await.unwrap();
    assert!(other.open_beside("thing", &sealed).await.unwrap().is_none());
    one.turn(says("hello")).finish().await.unwrap();
    assert!(one.open_beside("thing", &sealed).await.unwrap().is_some(), "the log uses the same key");
    one.erase().await.unwrap();
    assert!(one.open_beside("thing", &sealed).await.unwrap().is_none());
    one.turn(says("hello again")).finish().await.unwrap();
    assert!(one.open_beside("thing", &sealed).await.unwrap().is_none(), "a new session has a new key");
}
