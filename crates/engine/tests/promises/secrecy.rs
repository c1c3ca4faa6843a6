//! Promise 2, nothing readable at rest; promise 3, room context is never written.

use std::collections::BTreeMap;

use confidant_engine::access::Role;
use confidant_engine::{Actor, TenantId, TurnRequest, UserId};

use crate::rig::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_nothing_readable_at_rest() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let admin = engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let user = UserId::new("@MARKuser:x.org").unwrap();
    admin.new_token(&tenant, &Role::User(user.clone())).await.unwrap();
    for room in 0..3 {
        let alice = session(&engine, &format!("!MARKroom{room}:x.org:main:@MARKuser:x.org"));
        for i in 0..40 {
            let room = serde_json::from_value(serde_json::json!([
                {"sender": "@MARKbob:x.org", "content": format!("room line MARKline{i}")}
            ]))
            .unwrap();
            let mut turn = alice
                .turn(TurnRequest { room, ..says_as(&format!("MARKrequest{i}"), &format!("MARKquery{i}")) });
            if i == 7 {
                // Also one that fails, and one that is cut off in the middle.
                turn = alice.turn(says("MARKfailed"));
                model.broken.store(true, std::sync::atomic::Ordering::SeqCst);
            }
            let _ = turn.finish().await;
            model.broken.store(false, std::sync::atomic::Ordering::SeqCst);
        }
        let labels = BTreeMap::from([("MARKname".to_owned(), "MARKvalue".to_owned())]);
        alice.label(labels.clone()).await.unwrap();
        let asked_for = Some(serde_json::json!({ "instructions": "MARKasked" }));
        alice.turn(TurnRequest { labels, asked_for, ..says("MARKlabelled") }).finish().await.unwrap();
        alice.export().await.unwrap().unwrap();
    }
    model.shut();
    model.take();
    let hanging = session(&engine, "!MARKroom9:x.org:main:@MARKuser:x.org").turn(says("MARKcutoff"));
    model.until(1).await;
    // While running, with the write-ahead log full of it…
    assert!(place.file("confidant.db-wal").exists());
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
    drop(hanging);
    engine.stop(std::time::Duration::ZERO).await;
    drop((engine, admin));
    // …and after the end.
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
}

/// The tester's tester: the search does find what is there.
#[test]
fn promise_2_the_marker_scan_can_fail() {
    let place = Place::sqlite();
    std::fs::create_dir(place.file("deep")).unwrap();
    std::fs::write(place.file("deep").join("note"), "a MARK in a file").unwrap();
    assert!(contains(&place.bytes(), "MARK"));
}

/// Two messages of different length and the same message twice: sizes are padded, ciphertexts differ.
#[tokio::test]
async fn promise_2_equal_messages_do_not_look_equal() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    // The first also says how long the log lives.
    for _ in 0..3 {
        session(&engine, "discord_conv:a").turn(says("the same words")).finish().await.unwrap();
    }
    stop(engine).await;
    let db = rusqlite::Connection::open(place.file("confidant.db")).unwrap();
    let mut rows = db.prepare("SELECT sealed FROM records WHERE log IS NOT NULL ORDER BY seq").unwrap();
    let rows: Vec<Vec<u8>> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows.len(), rows[2].len()), (6, rows[4].len()));
    assert_ne!(rows[2][14..], rows[4][14..]);
}
