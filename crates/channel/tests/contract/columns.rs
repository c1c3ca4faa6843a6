//! Promises 1, 4 and 6 against somebody who can write to `channels.db` and has no key: every column of every table is changed,
//! exchanged between two people, deleted, duplicated and put back.
//!
//! For each, one of these holds: everybody sees what they saw before; or it is hidden, and `doctor` reports it. In no case does
//! anybody see another's words, does erasing one person end what is another's, or does what was erased come back with its row.

use std::collections::BTreeSet;
use std::path::Path;

use confidant_channel::{Inbox, InboxError};
use confidant_engine::clock::Clock as _;
use confidant_engine::rights::Derived as _;
use confidant_engine::{Engine, UserId};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Rig, says, tenant, whispers};

const PEOPLE: [&str; 2] = ["alice", "bob"];
const WORDS: [&str; 2] = ["quince", "medlar"];

fn user(who: usize) -> UserId {
    UserId::new(PEOPLE[who]).unwrap()
}

/// Both have said something that is done, and something that is not.
async fn rig() -> Rig {
    let rig = Rig::new();
    let bot = rig.start().await;
    for (who, name) in PEOPLE.iter().enumerate() {
        bot.take(says(&format!("e{who}"), name, "hello")).await;
    }
    bot.idle().await;
    rig.model.shut();
    for (who, name) in PEOPLE.iter().enumerate() {
        bot.take(says(&format!("e1{who}"), name, &format!("about {}", WORDS[who]))).await;
        bot.take(whispers(&format!("e2{who}"), name, &format!("more of {}", WORDS[who]))).await;
    }
    // Where a connection stood.
    bot.inbox.vault(&bot.engine, "double", "one").keep("resume", b"a session").await.unwrap();
    bot.inbox.vault(&bot.engine, "double", "two").keep("resume", b"another").await.unwrap();
    bot.kill().await;
    rig
}

fn copied(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    copy(from, to.path());
    to
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

async fn see(inbox: &Inbox, who: usize) -> Value {
    let exported = inbox.export(&tenant(), &user(who)).await.unwrap();
    let counted = inbox.count(&tenant(), &user(who)).await.unwrap();
    json!({ "exported": exported, "counted": counted })
}

async fn look(rig: &Rig, folder: &Path) -> (Engine, Inbox, [Value; 2]) {
    let (engine, inbox) = rig.looks_at(folder).await;
    let seen = [see(&inbox, 0).await, see(&inbox, 1).await];
    for who in [0, 1] {
        assert!(!seen[who].to_string().contains(WORDS[1 - who]), "{who} sees another's words: {}", seen[who]);
    }
    (engine, inbox, seen)
}

fn tables(db: &Connection) -> Vec<String> {
    let sql =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn read(db: &Connection, table: &str) -> (Vec<String>, Vec<Vec<SqlValue>>) {
    let mut statement = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let rows = statement.query_map([], |row| (0..columns.len()).map(|at| row.get(at)).collect()).unwrap();
    let rows = rows.collect::<Result<_, _>>().unwrap();
    (columns, rows)
}

/// Writes a table anew; false if it cannot be as it should.
fn write(db: &Connection, table: &str, rows: &[Vec<SqlValue>]) -> bool {
    let attempt = || -> rusqlite::Result<()> {
        db.execute_batch(&format!("BEGIN; DELETE FROM {table}"))?;
        rows.iter().try_for_each(|row| put(db, table, row, "INSERT"))?;
        db.execute_batch("COMMIT")
    };
    let written = attempt().is_ok();
    if !written {
        db.execute_batch("ROLLBACK").unwrap();
    }
    written
}

fn put(db: &Connection, table: &str, row: &[SqlValue], how: &str) -> rusqlite::Result<()> {
    let marks: Vec<String> = (1..=row.len()).map(|at| format!("?{at}")).collect();
    let sql = format!("{how} INTO {table} VALUES ({})", marks.join(", "));
    db.execute(&sql, params_from_iter(row.iter().cloned())).map(drop)
}

fn changed(value: &SqlValue) -> SqlValue {
    match value {
        SqlValue::Integer(number) => SqlValue::Integer(if *number == 0 { 3 } else { number - 1 }),
        SqlValue::Text(text) => SqlValue::Text(format!("{text}0")),
        SqlValue::Blob(bytes) if !bytes.is_empty() => {
            let mut bytes = bytes.clone();
            bytes[0] ^= 1;
            SqlValue::Blob(bytes)
        }
        _ => SqlValue::Blob(vec![1; 16]),
    }
}

fn attacks(columns: &[String], rows: &[Vec<SqlValue>]) -> Vec<(String, Vec<Vec<SqlValue>>)> {
    let mut attacks = Vec::new();
    let (one, other) = (rows.len() - 2, rows.len() - 1);
    for (at, column) in columns.iter().enumerate() {
        let news = [
            ("changed", changed(&rows[one][at])),
            ("emptied", SqlValue::Null),
            ("a text", SqlValue::Text("x".to_owned())),
            ("given away", rows[other][at].clone()),
        ];
        for (what, new) in news {
            let mut rows = rows.to_vec();
            rows[one][at] = new;
            attacks.push((format!("{column} {what}"), rows));
        }
        let mut exchanged = rows.to_vec();
        (exchanged[one][at], exchanged[other][at]) = (rows[other][at].clone(), rows[one][at].clone());
        attacks.push((format!("{column} exchanged"), exchanged));
    }
    attacks.push(("a row deleted".to_owned(), rows[..other].to_vec()));
    attacks.push(("all rows deleted".to_owned(), Vec::new()));
    let mut twice = rows.to_vec();
    twice.push(rows[one].iter().map(changed).collect());
    attacks.push(("a row duplicated".to_owned(), twice));
    attacks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_changed_in_the_inbox_nobody_sees_or_ends_what_is_anothers_and_doctor_says_so() {
    let rig = rig().await;
    let original = copied(rig.folder.path());
    let (_engine, inbox, before) = look(&rig, original.path()).await;
    assert_eq!((&before[0]["counted"], before[0]["exported"].as_array().unwrap().len()), (&json!(3), 2));
    assert!(before[0].to_string().contains(WORDS[0]) && before[1].to_string().contains(WORDS[1]));
    assert!(inbox.verify(rig.clock.now()).await.unwrap().is_empty());
    let db = Connection::open(original.path().join("channels.db")).unwrap();
    let mut met = BTreeSet::new();
    for table in tables(&db) {
        let (columns, mut rows) = read(&db, &table);
        if rows.len() == 1 {
            rows.push(rows[0].clone());
            let attacks = attacks(&columns, &rows).into_iter().map(|(what, mut rows)| {
                rows.truncate(1);
                (what, rows)
            });
            for (what, rows) in attacks.collect::<Vec<_>>() {
                met.insert(table.clone());
                attacked(&rig, original.path(), &before, (&table, &what, &rows)).await;
            }
            continue;
        }
        for (what, rows) in attacks(&columns, &rows) {
            met.insert(table.clone());
            attacked(&rig, original.path(), &before, (&table, &what, &rows)).await;
        }
    }
    assert_eq!(met.into_iter().collect::<Vec<_>>(), ["cursors", "events", "kept", "rolls"]);
}

async fn attacked(
    rig: &Rig,
    original: &Path,
    before: &[Value; 2],
    (table, what, rows): (&str, &str, &[Vec<SqlValue>]),
) {
    let attack = format!("{table}: {what}");
    let place = copied(original);
    let db = Connection::open(place.path().join("channels.db")).unwrap();
    if !write(&db, table, rows) {
        return;
    }
    drop(db);
    let (engine, inbox, seen) = look(rig, place.path()).await;
    let reported = !inbox.verify(rig.clock.now()).await.unwrap().is_empty();
    for who in [0, 1] {
        assert!(!seen[who].to_string().contains(WORDS[1 - who]), "{attack}: {who} sees another's words");
    }
    assert!(reported || seen == *before, "{attack}: somebody sees something else, and nobody is told");
    drop((engine, inbox));
    for who in [0, 1] {
        let place = copied(place.path());
        let (engine, inbox, seen) = look(rig, place.path()).await;
        let gone = inbox.erase(&tenant(), &user(who)).await.unwrap();
        assert_eq!(
            see(&inbox, 1 - who).await,
            seen[1 - who],
            "{attack}: erasing {who} changed what another sees"
        );
        assert!(gone >= seen[who]["counted"].as_u64().unwrap(), "{attack}");
        assert_eq!(see(&inbox, who).await, json!({ "exported": [], "counted": 0 }), "{attack}");
        drop((engine, inbox));
        // Every row as it was; what says which are to be worked on stays.
        let from = Connection::open(original.join("channels.db")).unwrap();
        let to = Connection::open(place.path().join("channels.db")).unwrap();
        for row in read(&from, "events").1 {
            put(&to, "events", &row, "INSERT OR REPLACE").unwrap();
        }
        drop(to);
        let (_engine, inbox, seen) = look(rig, place.path()).await;
        assert!(!seen[who].to_string().contains(WORDS[who]), "{attack}: {who} was erased and is back");
        assert!(!inbox.verify(rig.clock.now()).await.unwrap().is_empty(), "{attack}: a row put back");
    }
}

/// A row that was answered, or erased, and is put back as it was before, is not worked on again.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_was_done_and_is_put_back_is_not_answered_again() {
    let rig = rig().await;
    let before = copied(rig.folder.path());
    rig.model.open();
    let bot = rig.start().await;
    bot.idle().await;
    bot.stop().await;
    let answered = rig.world.shown.lock().unwrap().len();
    let from = Connection::open(before.path().join("channels.db")).unwrap();
    let to = Connection::open(rig.folder.path().join("channels.db")).unwrap();
    for row in read(&from, "events").1 {
        put(&to, "events", &row, "INSERT OR REPLACE").unwrap();
    }
    to.execute("UPDATE events SET state = 0, not_before = 0 WHERE body IS NOT NULL", []).unwrap();
    drop(to);
    let bot = rig.start().await;
    bot.idle().await;
    assert_eq!(rig.world.shown.lock().unwrap().len(), answered);
    assert!(!bot.inbox.verify(rig.clock.now()).await.unwrap().is_empty());
    bot.stop().await;
}

/// A file of the version before has neither stamps nor a roll: they are made once, and what waits in it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_of_the_version_before_is_stamped_once_and_answered() {
    let rig = rig().await;
    let db = Connection::open(rig.folder.path().join("channels.db")).unwrap();
    db.execute_batch("ALTER TABLE events DROP COLUMN stamp; DROP TABLE rolls; PRAGMA user_version = 1")
        .unwrap();
    drop(db);
    rig.model.open();
    let bot = rig.start().await;
    bot.idle().await;
    assert!(bot.transcript("alice").await.iter().any(|line| line.contains("quince")));
    assert!(bot.inbox.verify(rig.clock.now()).await.unwrap().is_empty());
    bot.stop().await;
}

#[test]
fn an_inbox_of_a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(Inbox::open(folder.path()).unwrap());
    let path = folder.path().join("channels.db");
    let newer = Connection::open(&path).unwrap();
    let version: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    newer.pragma_update(None, "user_version", version + 1).unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(Inbox::open(folder.path()).unwrap_err(), InboxError::Newer);
    assert!(std::fs::read(&path).unwrap() == before, "it was changed");
}
