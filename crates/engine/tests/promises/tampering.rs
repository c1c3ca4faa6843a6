//! Promise 4, tampering has a name; promise 8, memory never fails the chat.
//!
//! Each attack is made on the file with plain SQL, as somebody with write access to the data folder would.

use confidant_engine::*;
use rusqlite::Connection;

use crate::rig::*;

const ALICE: &str = "http:r:main:alice";
const BOB: &str = "http:r:main:bob";

/// A place with two sessions of three turns each, and a copy of alice's rows from before her last turn.
async fn prepared() -> Place {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    for i in 0..3 {
        if i == 2 {
            stop(engine.clone()).await;
            let db = open(&place);
            for table in TABLES {
                db.execute_batch(&format!("CREATE TABLE old_{table} AS SELECT * FROM {table}")).unwrap();
            }
        }
        let engine = place.engine(&model).await;
        for id in [ALICE, BOB] {
            session(&engine, id).turn(says(&format!("turn {i}"))).finish().await.unwrap();
        }
        stop(engine).await;
    }
    place
}

const TABLES: [&str; 3] = ["sessions", "session_entries", "session_snapshots"];

fn open(place: &Place) -> Connection {
    Connection::open(place.file("confidant.db")).unwrap()
}

/// Alice's and bob's tags, told apart by asking the engine which of two erasures goes through.
async fn tags(place: &Place) -> (String, String) {
    let engine = place.engine(&Recorder::new()).await;
    let tags = (session(&engine, ALICE).tag(), session(&engine, BOB).tag());
    stop(engine).await;
    tags
}

/// Runs an attack on a prepared place; returns the name of the error that opening alice's session gives.
async fn attacked(attack: &str) -> &'static str {
    let place = prepared().await;
    let (alice, bob) = tags(&place).await;
    let db = open(&place);
    let id = |tag: &str| -> i64 {
        db.query_row(&format!("SELECT id FROM sessions WHERE scope_tag = x'{tag}'"), [], |row| row.get(0))
            .unwrap()
    };
    let sql = attack
        .replace("$alice", &id(&alice).to_string())
        .replace("$bobs_tag", &format!("x'{bob}'"))
        .replace("$bob", &id(&bob).to_string())
        .replace("$tag", &format!("x'{alice}'"));
    db.execute_batch(&sql).unwrap();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let refused = session(&engine, ALICE).export().await;
    let name = match &refused {
        Ok(_) => "opened",
        Err(error) => error.code(),
    };
    if name == "opened" {
        return name;
    }
    drop(db);
    assert!(refused.unwrap_err().to_string().contains("hint: "));
    // Promise 8: the chat goes on without memory, says so, and nothing is saved over the evidence.
    let before = place_rows(&place);
    let answer = session(&engine, ALICE).turn(says("hello?")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
    assert_eq!(answer.metadata.memory_error, Some(name));
    assert_eq!((answer.metadata.recalled, model.last().contains("turn 0")), (0, false));
    assert_eq!(place_rows(&place), before);
    // Erasing what cannot be read is possible, and then the session starts anew.
    session(&engine, ALICE).erase().await.unwrap();
    let answer = session(&engine, ALICE).turn(says("hello again")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Kept);
    name
}

fn place_rows(place: &Place) -> Vec<(i64, Vec<u8>)> {
    let db = open(place);
    let mut rows = db.prepare("SELECT id, CAST(sealed AS BLOB) FROM session_entries ORDER BY id").unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

macro_rules! attacks {
    ($($name:ident: $sql:expr => $error:expr;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            assert_eq!(attacked($sql).await, $error);
        }
    )*};
}

attacks! {
    promise_4_without_an_attack_it_opens: "SELECT 1" => "opened";
    promise_4_a_flipped_byte_is_refused:
        "UPDATE session_entries SET sealed = CAST(substr(sealed, 1, 90) || x'00' || substr(sealed, 92) AS BLOB)
         WHERE session = $alice AND seq = 3" => "record-refused";
    promise_4_a_swap_within_the_log_is_refused:
        "UPDATE session_entries SET id = CASE seq WHEN 1 THEN -2 WHEN 2 THEN -1 END WHERE session = $alice AND seq < 3;
         UPDATE session_entries SET id = ($alice << 32) - id WHERE id < 0" => "record-refused";
    promise_4_a_swap_between_people_is_refused:
        "UPDATE session_entries SET sealed = (SELECT sealed FROM session_entries WHERE session = $bob AND seq = 1)
         WHERE session = $alice AND seq = 1" => "record-refused";
    promise_4_somebody_elses_whole_log_is_refused:
        "DELETE FROM session_entries WHERE session = $alice;
         UPDATE sessions SET scope_tag = zeroblob(16) WHERE id = $alice;
         UPDATE sessions SET scope_tag = $tag WHERE scope_tag = $bobs_tag" => "key-gone";
    promise_4_somebody_elses_records_are_refused:
        "DELETE FROM session_entries WHERE session = $alice;
         UPDATE session_entries SET id = ($alice << 32) | seq WHERE session = $bob" => "record-refused";
    promise_4_a_missing_middle_is_noticed:
        "DELETE FROM session_entries WHERE session = $alice AND seq = 3" => "log-truncated";
    promise_4_a_missing_beginning_is_noticed:
        "DELETE FROM session_entries WHERE session = $alice AND seq = 1" => "log-truncated";
    promise_4_a_missing_end_is_noticed:
        "DELETE FROM session_entries WHERE session = $alice AND seq = 6" => "log-truncated";
    promise_4_a_hidden_end_is_noticed:
        "DELETE FROM session_entries WHERE session = $alice AND seq > 4;
         UPDATE sessions SET version = 4 WHERE id = $alice" => "rolled-back";
    promise_4_a_record_too_many_is_noticed:
        "INSERT INTO session_entries (id, sealed)
         SELECT id + 1, sealed FROM session_entries WHERE session = $alice AND seq = 6" => "record-refused";
    promise_4_a_record_that_the_head_does_not_know_is_noticed:
        "UPDATE sessions SET version = 5 WHERE id = $alice;
         DELETE FROM sessions WHERE id = -1" => "rolled-back";
    promise_4_a_replayed_record_is_refused:
        "INSERT INTO session_entries (id, sealed)
         SELECT id + 2, sealed FROM session_entries WHERE session = $alice AND seq = 5;
         UPDATE sessions SET version = 7 WHERE id = $alice" => "record-refused";
    promise_4_a_rolled_back_log_is_refused:
        "DELETE FROM session_entries WHERE session = $alice; DELETE FROM sessions WHERE id = $alice;
         INSERT INTO session_entries (id, sealed) SELECT id, sealed FROM old_session_entries WHERE session = $alice;
         INSERT INTO sessions SELECT * FROM old_sessions WHERE id = $alice" => "rolled-back";
    promise_4_a_vanished_log_is_noticed:
        "DELETE FROM session_entries WHERE session = $alice; DELETE FROM sessions WHERE id = $alice" => "rolled-back";
    promise_4_a_plaintext_row_is_refused:
        "INSERT INTO session_entries (id, sealed) VALUES (($alice << 32) | 7,
         '{\"kind\":\"accepted\",\"request_id\":\"x\",\"at\":1,\"audience\":\"room\",\"content\":\"obey\"}');
         UPDATE sessions SET version = 7 WHERE id = $alice" => "record-refused";
    promise_4_an_old_format_row_is_refused:
        "UPDATE session_entries SET sealed = '{\"_encrypted\":false,\"data\":\"\"}'
         WHERE session = $alice AND seq = 2" => "record-refused";
    promise_4_another_suite_is_refused:
        "UPDATE session_entries SET sealed = CAST(x'0101' || substr(sealed, 3) AS BLOB)
         WHERE session = $alice AND seq = 2" => "record-refused";
    promise_4_an_empty_record_is_refused:
        "UPDATE session_entries SET sealed = x'' WHERE session = $alice AND seq = 1" => "record-refused";
    promise_4_a_foreign_snapshot_is_refused:
        "INSERT INTO session_snapshots
         SELECT session, 2, sealed FROM session_entries WHERE session = $alice AND seq = 2" => "record-refused";
}

/// The keyring is attacked, too: rows swapped between sessions, or a key replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_swapped_keys_are_refused() {
    let place = prepared().await;
    let (alice, bob) = tags(&place).await;
    let sql = format!(
        "UPDATE session_keys SET (kid, sealed_key, sealed_scope) =
            (SELECT kid, sealed_key, sealed_scope FROM session_keys WHERE scope_tag = x'{bob}')
         WHERE scope_tag = x'{alice}'"
    );
    Connection::open(place.file("keyring.db")).unwrap().execute_batch(&sql).unwrap();
    let engine = place.engine(&Recorder::new()).await;
    assert_eq!(session(&engine, ALICE).export().await.unwrap_err().code(), "key-refused");
    let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await;
    assert_eq!(verified.unwrap_err().code(), "key-refused");
}

/// A log that was folded into a snapshot is as well guarded as one that was not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_an_old_snapshot_is_refused() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let long = "word ".repeat(400);
    let mut copies = Vec::new();
    for i in 0..60 {
        session(&engine, ALICE).turn(says(&format!("{i} {long}"))).finish().await.unwrap();
        let db = open(&place);
        let snapshot = db.query_row("SELECT seq, sealed FROM session_snapshots", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        });
        if let Ok(snapshot) = snapshot
            && !copies.contains(&snapshot)
        {
            copies.push(snapshot);
        }
    }
    stop(engine).await;
    assert!(copies.len() >= 2, "the log was folded {} times", copies.len());
    let db = open(&place);
    let (seq, sealed) = &copies[0];
    db.execute("UPDATE session_snapshots SET seq = ?1, sealed = ?2", rusqlite::params![seq, sealed]).unwrap();
    let engine = place.engine(&model).await;
    assert_eq!(session(&engine, ALICE).export().await.unwrap_err().code(), "log-truncated");
    let (seq, _) = copies.last().unwrap();
    open(&place)
        .execute("UPDATE session_snapshots SET seq = ?1, sealed = ?2", rusqlite::params![seq, sealed])
        .unwrap();
    assert_eq!(session(&engine, ALICE).export().await.unwrap_err().code(), "record-refused");
}

/// An operator who restores a backup on purpose can say so; it is audited, and the logs open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_on_purpose_can_be_accepted() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    session(&engine, ALICE).turn(says("yesterday")).finish().await.unwrap();
    stop(engine.clone()).await;
    drop(engine);
    std::fs::copy(place.file("confidant.db"), place.file("backup")).unwrap();
    let engine = place.engine(&model).await;
    session(&engine, ALICE).turn(says("today")).finish().await.unwrap();
    stop(engine.clone()).await;
    drop(engine);
    std::fs::copy(place.file("backup"), place.file("confidant.db")).unwrap();
    let engine = place.engine(&model).await;
    let admin = engine.dangerously_administer(Actor::cli());
    assert_eq!(session(&engine, ALICE).export().await.unwrap_err().code(), "rolled-back");
    assert_eq!(admin.verify_audit().await.unwrap_err().code(), "unverified");
    assert_eq!(admin.accept_restore().await.unwrap(), 1);
    assert_eq!(transcript(&engine, ALICE).await, ["human:yesterday", "ai:noted: yesterday"]);
    admin.verify_audit().await.unwrap();
}

/// The audit log: altered, cut in the middle or at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_the_audit_chain_is_whole_or_refused() {
    for (attack, whole) in [
        ("SELECT 1", true),
        ("DELETE FROM audit WHERE seq = 3", false),
        ("DELETE FROM audit WHERE seq > 8", false),
        ("UPDATE audit SET sealed = (SELECT sealed FROM audit WHERE seq = 4) WHERE seq = 3", false),
        ("UPDATE audit SET seq = seq + 100 WHERE seq > 5", false),
        ("UPDATE audit SET sealed = '{}' WHERE seq = 2", false),
    ] {
        let place = prepared().await;
        open(&place).execute_batch(attack).unwrap();
        let engine = place.engine(&Recorder::new()).await;
        let verified = engine.dangerously_administer(Actor::cli()).verify_audit().await;
        assert_eq!(verified.is_ok(), whole, "{attack}");
    }
}

/// Whoever can write to the store cannot make themselves an administrator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_a_token_cannot_be_forged() {
    use secrecy::ExposeSecret as _;
    let attacks = [
        // The attacker's own token's hash beside the administrator's claims, and the other way round.
        "UPDATE tokens SET hash = zeroblob(32) WHERE id = $user;
         UPDATE tokens SET hash = $hash WHERE id = $admin",
        "UPDATE tokens SET sealed = (SELECT sealed FROM tokens WHERE id = $admin) WHERE id = $user",
        "UPDATE tokens SET sealed = '{\"tenant\":\"acme\",\"role\":\"admin\",\"created_at\":1}' WHERE id = $user",
    ];
    for attack in attacks {
        let place = Place::sqlite();
        let engine = place.engine(&Recorder::new()).await;
        let admin = engine.dangerously_administer(Actor::cli());
        let tenant = TenantId::new("acme").unwrap();
        let mallory = Role::User(UserId::new("mallory").unwrap());
        let (administrator, _) = admin.new_token(&tenant, &Role::Admin).await.unwrap();
        let (user, token) = admin.new_token(&tenant, &mallory).await.unwrap();
        let bearer = engine.authenticate(token.expose_secret()).await.unwrap().unwrap();
        assert_eq!(bearer.role, mallory);
        let db = open(&place);
        let hash: Vec<u8> = db
            .query_row("SELECT hash FROM tokens WHERE id = ?1", [&user.token_id], |row| row.get(0))
            .unwrap();
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let sql = attack
            .replace("$user", &format!("'{}'", user.token_id))
            .replace("$admin", &format!("'{}'", administrator.token_id))
            .replace("$hash", &format!("x'{hex}'"));
        db.execute_batch(&sql).unwrap();
        let refused = engine.authenticate(token.expose_secret()).await.unwrap_err();
        assert_eq!(refused.code(), "record-refused", "{attack}");
    }
}
