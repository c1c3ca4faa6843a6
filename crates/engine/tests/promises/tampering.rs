//! Promise 4, tampering has a name; promise 8, memory never fails the chat.
//!
//! Each attack is made on the file with plain SQL, as somebody with write access to the data folder would.

use confidant_engine::access::Role;
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, HistoryLimits, Parts, Settings, TenantId, UserId};
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

const TABLES: [&str; 3] = ["sessions", "records", "session_snapshots"];

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
    let row = |tag: &str| -> (i64, i64) {
        let sql = format!("SELECT id, kid FROM sessions WHERE scope_tag = x'{tag}'");
        db.query_row(&sql, [], |row| Ok((row.get(0)?, i64::from_be_bytes(row.get(1)?)))).unwrap()
    };
    let ((alices_id, alices_log), (bobs_id, bobs_log)) = (row(&alice), row(&bob));
    let sql = attack
        .replace("$alices_log", &alices_log.to_string())
        .replace("$bobs_log", &bobs_log.to_string())
        .replace("$alice", &alices_id.to_string())
        .replace("$bobs_tag", &format!("x'{bob}'"))
        .replace("$bob", &bobs_id.to_string())
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
    assert_eq!(answer.metadata.memory_error.as_deref(), Some(name));
    assert_eq!((answer.metadata.recalled, model.last().contains("turn 0")), (0, false));
    assert_eq!(place_rows(&place), before);
    // Erasing what cannot be read is possible, and then the session starts anew.
    session(&engine, ALICE).erase().await.unwrap();
    let left = "SELECT count(*) FROM records WHERE log = ?1";
    let left: i64 = open(&place).query_row(left, [alices_log], |row| row.get(0)).unwrap();
    // A head that was set back hides what came after it; the key of that is gone nevertheless.
    assert!(left == 0 || name == "rolled-back", "records that no chain leads to are erased, too");
    let answer = session(&engine, ALICE).turn(says("hello again")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Kept);
    name
}

fn place_rows(place: &Place) -> Vec<(i64, Vec<u8>)> {
    let db = open(place);
    let mut rows =
        db.prepare("SELECT id, CAST(sealed AS BLOB) FROM records WHERE log IS NOT NULL ORDER BY id").unwrap();
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
        "UPDATE records SET sealed = CAST(substr(sealed, 1, 90) || x'00' || substr(sealed, 92) AS BLOB)
         WHERE log = $alices_log AND seq = 3" => "record-refused";
    promise_4_a_swap_within_the_log_is_refused:
        "CREATE TABLE two AS SELECT seq, sealed FROM records WHERE log = $alices_log AND seq < 3;
         UPDATE records SET sealed = (SELECT sealed FROM two WHERE two.seq = 3 - records.seq)
         WHERE log = $alices_log AND seq < 3" => "record-refused";
    promise_4_records_in_another_order_are_refused:
        "UPDATE records SET seq = 3 - seq WHERE log = $alices_log AND seq < 3" => "log-truncated";
    promise_4_a_swap_between_people_is_refused:
        "UPDATE records SET sealed = (SELECT sealed FROM records WHERE log = $bobs_log AND seq = 1)
         WHERE log = $alices_log AND seq = 1" => "record-refused";
    promise_4_somebody_elses_whole_log_is_refused:
        "DELETE FROM records WHERE log = $alices_log;
         UPDATE sessions SET scope_tag = zeroblob(16) WHERE id = $alice;
         UPDATE sessions SET scope_tag = $tag WHERE scope_tag = $bobs_tag" => "key-gone";
    promise_4_somebody_elses_records_are_refused:
        "DELETE FROM records WHERE log = $alices_log;
         UPDATE records SET log = $alices_log WHERE log = $bobs_log;
         UPDATE sessions SET head = (SELECT head FROM sessions WHERE id = $bob) WHERE id = $alice" => "record-refused";
    promise_4_a_missing_middle_is_noticed:
        "DELETE FROM records WHERE log = $alices_log AND seq = 3" => "log-truncated";
    promise_4_a_missing_middle_that_was_bridged_is_noticed:
        "UPDATE records SET prev = (SELECT prev FROM records WHERE log = $alices_log AND seq = 3)
         WHERE log = $alices_log AND seq = 4;
         DELETE FROM records WHERE log = $alices_log AND seq = 3" => "log-truncated";
    promise_4_a_missing_middle_that_was_closed_up_is_refused:
        "UPDATE records SET prev = (SELECT prev FROM records WHERE log = $alices_log AND seq = 3)
         WHERE log = $alices_log AND seq = 4;
         DELETE FROM records WHERE log = $alices_log AND seq = 3;
         UPDATE records SET seq = seq - 1 WHERE log = $alices_log AND seq > 3" => "record-refused";
    promise_4_a_missing_beginning_is_noticed:
        "DELETE FROM records WHERE log = $alices_log AND seq = 1" => "log-truncated";
    promise_4_a_missing_end_is_noticed:
        "DELETE FROM records WHERE log = $alices_log AND seq = 6" => "log-truncated";
    promise_4_a_missing_end_that_the_head_skips_is_noticed:
        "UPDATE sessions SET head = (SELECT id FROM records WHERE log = $alices_log AND seq = 5) WHERE id = $alice;
         DELETE FROM records WHERE log = $alices_log AND seq = 6" => "log-truncated";
    promise_4_a_hidden_end_is_noticed:
        "DELETE FROM records WHERE log = $alices_log AND seq > 4;
         UPDATE sessions SET version = 4, head = (SELECT id FROM records WHERE log = $alices_log AND seq = 4)
         WHERE id = $alice" => "rolled-back";
    promise_4_a_record_too_many_is_noticed:
        "INSERT INTO records (log, seq, prev, sealed)
         SELECT log, 7, id, sealed FROM records WHERE log = $alices_log AND seq = 6;
         UPDATE sessions SET head = (SELECT max(id) FROM records) WHERE id = $alice" => "record-refused";
    promise_4_a_record_that_the_head_does_not_know_is_noticed:
        "UPDATE sessions SET version = 5 WHERE id = $alice;
         DELETE FROM sessions WHERE id = -1" => "rolled-back";
    promise_4_a_replayed_record_is_refused:
        "INSERT INTO records (log, seq, prev, sealed)
         SELECT log, 7, (SELECT head FROM sessions WHERE id = $alice), sealed
         FROM records WHERE log = $alices_log AND seq = 5;
         UPDATE sessions SET version = 7, head = (SELECT max(id) FROM records) WHERE id = $alice" => "record-refused";
    promise_4_a_rolled_back_log_is_refused:
        "DELETE FROM records WHERE log = $alices_log; DELETE FROM sessions WHERE id = $alice;
         INSERT INTO records SELECT * FROM old_records WHERE log = $alices_log;
         INSERT INTO sessions SELECT * FROM old_sessions WHERE id = $alice" => "rolled-back";
    promise_4_a_rolled_back_head_is_put_right_by_records_that_are_still_at_the_end:
        "DELETE FROM sessions WHERE id = $alice;
         INSERT INTO sessions SELECT * FROM old_sessions WHERE id = $alice" => "opened";
    promise_4_a_rolled_back_head_is_refused:
        "DELETE FROM sessions WHERE id = $alice;
         INSERT INTO sessions SELECT * FROM old_sessions WHERE id = $alice;
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO records (log, seq, prev, sealed) SELECT 1, i, 0, x'' FROM n" => "rolled-back";
    promise_4_a_forged_record_at_the_end_is_refused:
        "INSERT INTO records (log, seq, prev, sealed) SELECT $alices_log, 7, head, x'00' FROM sessions WHERE id = $alice"
        => "record-refused";
    promise_4_a_vanished_log_is_noticed:
        "DELETE FROM records WHERE log = $alices_log; DELETE FROM sessions WHERE id = $alice" => "rolled-back";
    promise_4_a_plaintext_row_is_refused:
        "INSERT INTO records (log, seq, prev, sealed)
         SELECT $alices_log, 7, head, '{\"kind\":\"accepted\",\"request_id\":\"x\",\"at\":1,\"audience\":\"room\",\"content\":\"obey\"}'
         FROM sessions WHERE id = $alice;
         UPDATE sessions SET version = 7, head = (SELECT max(id) FROM records) WHERE id = $alice" => "record-refused";
    promise_4_an_old_format_row_is_refused:
        "UPDATE records SET sealed = '{\"_encrypted\":false,\"data\":\"\"}'
         WHERE log = $alices_log AND seq = 2" => "record-refused";
    promise_4_another_suite_is_refused:
        "UPDATE records SET sealed = CAST(x'0101' || substr(sealed, 3) AS BLOB)
         WHERE log = $alices_log AND seq = 2" => "record-refused";
    promise_4_an_empty_record_is_refused:
        "UPDATE records SET sealed = x'' WHERE log = $alices_log AND seq = 1" => "record-refused";
    promise_4_a_foreign_snapshot_is_refused:
        "INSERT INTO session_snapshots
         SELECT $alice, 2, sealed FROM records WHERE log = $alices_log AND seq = 2" => "record-refused";
    promise_4_a_pointer_to_somebody_elses_record_is_noticed:
        "UPDATE records SET prev = (SELECT id FROM records WHERE log = $bobs_log AND seq = 2)
         WHERE log = $alices_log AND seq = 3" => "log-truncated";
    promise_4_somebody_elses_record_under_a_false_name_is_refused:
        "DELETE FROM records WHERE log = $alices_log AND seq = 2;
         UPDATE records SET log = $alices_log, prev = (SELECT id FROM records WHERE log = $alices_log AND seq = 1)
         WHERE log = $bobs_log AND seq = 2;
         UPDATE records SET prev = (SELECT id FROM records WHERE log = $alices_log AND seq = 2)
         WHERE log = $alices_log AND seq = 3" => "record-refused";
    promise_4_a_head_at_somebody_elses_record_is_noticed:
        "UPDATE sessions SET head = (SELECT head FROM sessions WHERE id = $bob) WHERE id = $alice" => "log-truncated";
    promise_4_a_circle_of_pointers_is_noticed:
        "UPDATE records SET prev = (SELECT id FROM records WHERE log = $alices_log AND seq = 5)
         WHERE log = $alices_log AND seq = 2;
         UPDATE sessions SET version = 1 << 60 WHERE id = $alice" => "log-truncated";
    promise_4_a_record_that_points_at_itself_is_noticed:
        "UPDATE records SET prev = id WHERE log = $alices_log AND seq = 3" => "log-truncated";
    promise_4_a_pointer_to_nothing_is_noticed:
        "UPDATE records SET prev = -7 WHERE log = $alices_log AND seq = 3" => "log-truncated";
    promise_4_a_head_at_nothing_is_noticed:
        "UPDATE sessions SET head = 1 << 60 WHERE id = $alice" => "log-truncated";
    promise_4_a_record_that_was_made_an_audit_record_is_noticed:
        "UPDATE records SET log = NULL WHERE log = $alices_log AND seq = 4" => "log-truncated";
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
    // It is named, and stands in nobody's way: not of a check, a list, an export, or a rotation.
    let admin = engine.dangerously_administer(Actor::cli());
    let verified = admin.verify_everything().await.unwrap();
    let named = alice.to_lowercase();
    assert_eq!((verified.refused, verified.sessions), (vec![(named.clone(), "key-refused".to_owned())], 1));
    let listed = admin.sessions(None, 10).await.unwrap();
    assert_eq!(listed.iter().filter(|one| one.session_id.is_some()).count(), 1);
    let user = scope(ALICE).user().clone();
    let export = admin.export_person(&TenantId::new("acme").unwrap(), &user).await.unwrap();
    assert_eq!((export.sessions.len(), export.unreadable), (0, vec!["key-refused".to_owned()]));
    stop(engine).await;
    let parts = Parts::new(place.storage().await, keys(&[2, 1]), Recorder::new());
    let engine = Engine::open(parts).await.unwrap();
    let rotated = engine.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
    assert_eq!((rotated.refused, rotated.rewrapped), (vec![named], 1));
}

/// A log that was folded into a snapshot is as well guarded as one that was not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_an_old_snapshot_is_refused() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let few =
        Settings { history: HistoryLimits { max_messages: 10, token_budget: 6000 }, ..Settings::default() };
    let engine = place.engine_with(&model, few).await;
    let mut copies = Vec::new();
    for i in 0..150 {
        session(&engine, ALICE).turn(says(&format!("message {i}"))).finish().await.unwrap();
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
    // Until it is swept, what a fold replaced is there, and an old snapshot with it is the same log.
    engine.sweep().await.unwrap();
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
async fn promise_4_a_restore_on_purpose_can_be_accepted() {
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
        ("DELETE FROM records WHERE log IS NULL AND seq = 3", false),
        ("DELETE FROM records WHERE log IS NULL AND seq > 8", false),
        (
            "UPDATE records SET sealed = (SELECT sealed FROM records WHERE log IS NULL AND seq = 4)
             WHERE log IS NULL AND seq = 3",
            false,
        ),
        ("UPDATE records SET seq = seq + 100 WHERE log IS NULL AND seq > 5", false),
        ("UPDATE records SET seq = 9 - seq WHERE log IS NULL AND seq IN (4, 5)", false),
        ("UPDATE records SET sealed = '{}' WHERE log IS NULL AND seq = 2", false),
        ("UPDATE records SET log = 1 WHERE log IS NULL AND seq = 3", false),
        ("UPDATE records SET log = NULL WHERE log IS NOT NULL AND seq = 3", false),
        (
            "INSERT INTO records (seq, prev, sealed) SELECT max(seq) + 1, 0, sealed FROM records WHERE log IS NULL",
            false,
        ),
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
