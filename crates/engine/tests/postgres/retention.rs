//! How long the audit log is kept in a database that has been told so.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use confidant_engine::clock::{Clock as _, ManualClock, Millis, SystemClock};
use confidant_engine::rights::ReceiptProof;
use confidant_engine::storage::PostgresSettings;
use confidant_engine::{Actor, Engine, Parts, Storage};

use crate::rig::*;
use crate::server::*;

const ID: &str = "http:r:main:alice";
const DAY: i64 = 86_400_000;

async fn engine_in(settings: &PostgresSettings, days: i64) -> Engine {
    let storage = Storage::postgres(settings).await.unwrap();
    let clock = Arc::new(ManualClock::new(Millis(SystemClock.now().0 + days * DAY)));
    let parts = Parts { clock, ..Parts::new(storage, keys(&[1]), Recorder::new() as _) };
    Engine::open(parts).await.unwrap()
}

async fn records(settings: &PostgresSettings) -> HashSet<(i32, i64)> {
    let client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    client.batch_execute("SELECT set_config('confidant.tenant', '*', false)").await.unwrap();
    let rows = client.query("SELECT lane, seq FROM audit_records", &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_audit_records_go_in_their_time_and_not_before() {
    let Some(url) = server("CONFIDANT_TEST_POSTGRES") else { return };
    let keep_audit = Some(Duration::from_secs(8 * 86_400));
    let settings = PostgresSettings { keep_audit, ..postgres_settings(&url) };
    let engine = engine_in(&settings, 0).await;
    session(&engine, ID).turn(says("hello")).finish().await.unwrap();
    let receipt = session(&engine, ID).erase().await.unwrap();
    engine.sweep().await.unwrap();
    stop(engine).await;
    let before = records(&settings).await;
    // A week later all is there.
    let engine = engine_in(&settings, 7).await;
    engine.sweep().await.unwrap();
    let admin = engine.dangerously_administer(Actor::cli());
    assert_eq!(admin.verify_receipt(&receipt).await.unwrap(), ReceiptProof::Recorded);
    stop(engine).await;
    assert!(records(&settings).await.is_superset(&before));
    // When their time is over they go, and the chain holds without its beginning.
    let engine = engine_in(&settings, 10).await;
    engine.sweep().await.unwrap();
    let left = records(&settings).await;
    assert!(left.is_disjoint(&before), "{before:?} {left:?}");
    let admin = engine.dangerously_administer(Actor::cli());
    admin.verify_audit().await.unwrap();
    assert_eq!(admin.verify_receipt(&receipt).await.unwrap(), ReceiptProof::Outlived);
    session(&engine, ID).turn(says("hello again")).finish().await.unwrap();
    admin.verify_audit().await.unwrap();
    stop(engine).await;
    // Without the setting nothing ever goes.
    let settings = PostgresSettings { keep_audit: None, ..postgres_settings(&url) };
    let engine = engine_in(&settings, 0).await;
    session(&engine, ID).turn(says("hello")).finish().await.unwrap();
    stop(engine).await;
    let before = records(&settings).await;
    let engine = engine_in(&settings, 4000).await;
    engine.sweep().await.unwrap();
    assert!(records(&settings).await.is_superset(&before));
    // Whoever cuts it off before its time is noticed.
    let client = raw(&url, &settings.schema).await;
    client.batch_execute("SELECT set_config('confidant.tenant', '*', false)").await.unwrap();
    assert_eq!(client.execute("DELETE FROM audit_records WHERE seq = 1", &[]).await.unwrap(), 1);
    assert!(engine.dangerously_administer(Actor::cli()).verify_audit().await.is_err());
}
