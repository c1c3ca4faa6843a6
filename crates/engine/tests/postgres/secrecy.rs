//! Promise 2 on what PostgreSQL writes to its disk: tables, indexes and the log it writes ahead.

use std::path::Path;

use confidant_engine::access::Role;
use confidant_engine::{Actor, TenantId, TurnRequest, UserId};

use crate::rig::*;
use crate::server::*;

/// Whether a word is in any file below a folder. Files come and go while the server runs.
fn holds(folder: &Path, word: &str) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| match entry.file_type().unwrap().is_dir() {
        true => holds(&entry.path(), word),
        false => std::fs::read(entry.path()).is_ok_and(|bytes| contains(&bytes, word)),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_nothing_readable_in_tables_and_logs() {
    let Some(settings) = settings() else { return };
    let files = server("CONFIDANT_TEST_POSTGRES_FILES").unwrap();
    let engine = engine_at(&settings, &Recorder::new()).await;
    let admin = engine.dangerously_administer(Actor::cli());
    let user = Role::User(UserId::new("@IDMARKPGuser:x.org").unwrap());
    admin.new_token(&TenantId::new("acme").unwrap(), &user).await.unwrap();
    let alice = session(&engine, "!IDMARKPGroom:x.org:main:@IDMARKPGuser:x.org");
    for i in 0..30 {
        let room = serde_json::json!([{"sender": "@WORDMARKPGbob:x.org", "content": "a WORDMARKPG line"}]);
        let request = says_as(&format!("WORDMARKPG{i}"), &format!("WORDMARKPG {}", "long ".repeat(200)));
        let request = TurnRequest { room: serde_json::from_value(room).unwrap(), ..request };
        alice.turn(request).finish().await.unwrap();
    }
    alice.export().await.unwrap().unwrap();
    // The tester's tester: what is written is found.
    let superuser = raw(&server("CONFIDANT_TEST_POSTGRES_SUPERUSER").unwrap(), &settings.schema).await;
    superuser.batch_execute("CREATE TABLE note AS SELECT 'SEENMARKPG' AS word; CHECKPOINT").await.unwrap();
    let files = Path::new(&files);
    assert!(holds(files, "SEENMARKPG"), "what is written is found");
    assert!(!holds(files, "WORDMARKPG"), "a word is readable in a file");
    assert!(!holds(files, "IDMARKPG"), "an id is readable in a file");
}
