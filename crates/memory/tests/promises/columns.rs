//! Promises 1, 4 and 6 against somebody who can write to the files and has no key: every column of every table of `memory.db`
//! and `memory-keys.db` is changed, exchanged between two owners, deleted, duplicated and put back, and so are the blobs.
//!
//! For each, one of these holds, for everybody: what they see is what they saw before; or it is refused by name or hidden, and
//! `doctor` reports it. In no case does anybody see another's words, does what was forgotten come back, or does erasing one
//! person end what is another's, or leave what is theirs to come back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use confidant_memory::api::{Forget, ImportRequest};
use confidant_memory::blobs::Blobs;
use confidant_memory::blobs::local::Local;
use confidant_memory::import::{Agent, Root};
use confidant_memory::{Memory, OwnMemory, Owner};
use confidant_seal::{TenantId, UserId};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use serde_json::{Value, json};

use crate::support::{Place, copy, query, request};

const FILES: [&str; 2] = ["memory/memory.db", "keys/memory-keys.db"];
/// Tenant, person, and the word that is in everything of theirs.
const OWNERS: [(&str, &str, &str); 2] =
    [("acme", "alice", "quincequince"), ("globex", "bob", "medlarmedlar")];
/// In what each of them had and forgot.
const FORGOTTEN: &str = "sorbsorbsorb";

/// An installation to be copied, before and after both forgot something.
struct Template {
    before: Place,
    after: Place,
    /// What everybody sees.
    seen: [Value; 2],
}

fn open(place: &Place) -> Memory {
    try_open(place).expect("it opens")
}

/// What does not even open is refused by name.
fn try_open(place: &Place) -> Option<Memory> {
    let opened = place.try_open_with(|parts| {
        let local = Local::open(place.folder.path().join("memory/blobs")).expect("a folder for blobs");
        parts.stores.insert("mock".to_owned(), Arc::new(local) as Arc<dyn Blobs>);
    });
    opened.map_err(|error| assert_eq!(error.code(), "unavailable", "{error}")).ok()
}

fn owner(who: usize) -> Owner {
    let (tenant, user, _) = OWNERS[who];
    Owner { tenant: TenantId::new(tenant).expect("a tenant"), user: UserId::new(user).expect("a person") }
}

fn of(memory: &Memory, who: usize) -> OwnMemory {
    memory.of(owner(who), "test")
}

fn copied(place: &Place) -> Place {
    let new = Place::new();
    copy(place.folder.path(), new.folder.path());
    new
}

async fn template() -> Template {
    let before = Place::new();
    let memory = open(&before);
    for who in [0, 1] {
        let (own, word) = (of(&memory, who), OWNERS[who].2);
        for (session, text) in [
            ("first", format!("Deployed {word} to staging.")),
            ("first", format!("Deployed {word} to staging, and then to production.")),
            ("second", format!("Planted {word} in the orchard.")),
            ("doomed", format!("Said {FORGOTTEN} of {word}.")),
        ] {
            own.store(&request(session, &json!({ "summary": text }))).await.expect("it is stored");
        }
        let file = before.folder.path().join(format!("{word}.json"));
        let sessions =
            json!({ "imported": { "session_id": "imported", "summary": format!("Imported {word}.") } });
        std::fs::write(&file, sessions.to_string()).expect("a file");
        own.import(&importing(&file), |_| std::ops::ControlFlow::Continue(())).await.expect("it is imported");
    }
    drop(memory);
    let after = copied(&before);
    let memory = open(&after);
    for who in [0, 1] {
        of(&memory, who).forget(&Forget::Session("doomed".to_owned()), false).await.expect("it is forgotten");
    }
    let seen = [see(&memory, 0).await, see(&memory, 1).await];
    assert!(seen.iter().all(|seen| seen["export"].as_array().is_some_and(|all| all.len() == 4)), "{seen:?}");
    let checked = memory.verify().await.expect("it can be looked at");
    assert!(checked.is_sound() && checked.artifacts == 8, "{checked:?}");
    drop(memory);
    Template { before, after, seen }
}

fn importing(file: &Path) -> ImportRequest {
    ImportRequest {
        roots: vec![Root::of(Agent::Fixture, file)],
        tags: Vec::new(),
        mode: None,
        dry_run: false,
        again: false,
        tell_all: true,
        only: None,
    }
}

/// Everything that somebody can see, by every way to it; an error by its name.
async fn see(memory: &Memory, who: usize) -> Value {
    let own = of(memory, who);
    let told = |result: Result<Value, confidant_memory::Error>| match result {
        Ok(value) => value,
        Err(error) => {
            assert!(["not_found", "tampered", "unavailable"].contains(&error.code()), "{error}");
            json!({ "error": error.code(), "said": error.to_string() })
        }
    };
    let export = told(own.export().await.map(Value::Array));
    let list = told(own.list(&query("")).await.map(|hits| json!(hits)));
    let found = told(own.query(&query("staging orchard")).await.map(|hits| json!(hits.hits.len())));
    let count = told(own.count().await.map(|count| json!(count)));
    let mut retrieved = Vec::new();
    for exported in export.as_array().map(Vec::as_slice).unwrap_or_default() {
        if let Some(uri) = exported["cascade_uri"].as_str() {
            retrieved.push(told(own.retrieve(uri, None).await.map(|found| json!(found))));
        }
    }
    json!({ "export": export, "list": list, "found": found, "count": count, "retrieved": retrieved })
}

/// Nobody sees another's words or what was forgotten; and where anybody sees something else than before, `doctor` says so.
async fn holds(template: &Template, place: &Place, attack: &str) {
    let Some(memory) = try_open(place) else { return };
    let mut same = true;
    for who in [0, 1] {
        let seen = see(&memory, who).await;
        let text = seen.to_string();
        assert!(!text.contains(OWNERS[1 - who].2), "{attack}: {who} sees another's words: {text}");
        assert!(!text.contains(FORGOTTEN), "{attack}: what was forgotten is back: {text}");
        same &= seen == template.seen[who];
    }
    let reported = match memory.verify().await {
        Ok(checked) => !checked.is_sound(),
        Err(error) => ["tampered", "unavailable"].contains(&error.code()),
    };
    assert!(same || reported, "{attack}: somebody sees something else, and nobody is told");
}

/// Erasing one of them ends nothing of the other's; and what it ends stays ended when what was changed is put right again.
async fn erases(template: &Template, place: &Place, attack: &str) {
    for who in [0, 1] {
        let place = copied(place);
        let Some(memory) = try_open(&place) else { return };
        let others = see(&memory, 1 - who).await;
        let erased = memory.erase(&owner(who)).await;
        // What was refused before may be hidden now; what could be seen is seen.
        let after = see(&memory, 1 - who).await;
        let refused = others.to_string().contains("\"error\"");
        assert!(after == others || refused, "{attack}: erasing {who} changed what another sees: {after}");
        let Ok(erased) = erased else { continue };
        assert!(erased.memories >= 4 || erased.keys > 0, "{attack}: {erased:?}");
        drop(memory);
        // All rows and blobs as they were, and the keys that were changed or are missing.
        for file in FILES {
            restore(&template.after.folder.path().join(file), &place.folder.path().join(file));
        }
        copy(&template.after.folder.path().join("memory/blobs"), &place.folder.path().join("memory/blobs"));
        let Some(memory) = try_open(&place) else { continue };
        let seen = see(&memory, who).await.to_string();
        assert!(!seen.contains(OWNERS[who].2), "{attack}: {who} was erased and is back: {seen}");
    }
}

/// Puts every row that was there back, beside what is there now: all but what says which keys live.
fn restore(from: &Path, to: &Path) {
    let (from, to) = (Connection::open(from).expect("a database"), Connection::open(to).expect("a database"));
    for table in tables(&from).iter().filter(|table| !["registers", "anchors"].contains(&table.as_str())) {
        let (columns, rows) = read(&from, table);
        let marks: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
        for row in rows {
            let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({})", marks.join(", "));
            to.execute(&sql, params_from_iter(row)).expect("it is put back");
        }
    }
}

fn tables(db: &Connection) -> Vec<String> {
    let sql =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = db.prepare(sql).expect("tables");
    let names = statement.query_map([], |row| row.get(0)).expect("tables");
    names.collect::<Result<_, _>>().expect("tables")
}

fn read(db: &Connection, table: &str) -> (Vec<String>, Vec<Vec<SqlValue>>) {
    let mut statement = db.prepare(&format!("SELECT * FROM {table}")).expect("a table");
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let rows =
        statement.query_map([], |row| (0..columns.len()).map(|at| row.get(at)).collect()).expect("rows");
    let rows = rows.collect::<Result<_, _>>().expect("rows");
    (columns, rows)
}

/// Writes a table anew; false if it cannot be as it should.
fn write(db: &Connection, table: &str, rows: &[Vec<SqlValue>]) -> bool {
    let attempt = || -> rusqlite::Result<()> {
        db.execute_batch(&format!("BEGIN; DELETE FROM {table}"))?;
        for row in rows {
            let marks: Vec<String> = (1..=row.len()).map(|at| format!("?{at}")).collect();
            let sql = format!("INSERT INTO {table} VALUES ({})", marks.join(", "));
            db.execute(&sql, params_from_iter(row.iter().cloned()))?;
        }
        db.execute_batch("COMMIT")
    };
    let written = attempt();
    if written.is_err() {
        db.execute_batch("ROLLBACK").expect("it can be taken back");
    }
    written.is_ok()
}

fn changed(value: &SqlValue) -> SqlValue {
    match value {
        SqlValue::Null => SqlValue::Blob(vec![1; 16]),
        SqlValue::Integer(number) => SqlValue::Integer(if *number == 1 { 2 } else { number - 1 }),
        SqlValue::Real(number) => SqlValue::Real(number + 1.0),
        SqlValue::Text(text) => SqlValue::Text(format!("{text}0")),
        SqlValue::Blob(bytes) => {
            let mut bytes = bytes.clone();
            match bytes.last_mut() {
                Some(last) => *last ^= 1,
                None => bytes.push(1),
            }
            SqlValue::Blob(bytes)
        }
    }
}

type Attack = (String, Vec<Vec<SqlValue>>);

/// Everything that can be done to one table.
fn attacks(
    name: &str,
    table: &str,
    columns: &[String],
    rows: &[Vec<SqlValue>],
    removed: &[Vec<SqlValue>],
) -> Vec<Attack> {
    let mut attacks = Vec::new();
    let mut add =
        |what: String, rows: Vec<Vec<SqlValue>>| attacks.push((format!("{name} {table}: {what}"), rows));
    let owner = columns.iter().position(|column| column == "owner");
    // A row of each of them, as far as rows say whose they are.
    let other = rows.iter().position(|row| owner.is_some_and(|at| row[at] != rows[0][at]));
    let other = other.or(rows.len().checked_sub(1)).unwrap_or(0);
    for (at, column) in columns.iter().enumerate().filter(|_| !rows.is_empty()) {
        for (what, new) in [
            ("changed", changed(&rows[0][at])),
            ("emptied", SqlValue::Null),
            ("a text", SqlValue::Text("x".to_owned())),
        ] {
            let mut rows = rows.to_vec();
            rows[0][at] = new;
            add(format!("{column} {what}"), rows);
        }
        let mut exchanged = rows.to_vec();
        (exchanged[0][at], exchanged[other][at]) = (rows[other][at].clone(), rows[0][at].clone());
        add(format!("{column} exchanged"), exchanged);
        let mut given = rows.to_vec();
        given[0][at] = rows[other][at].clone();
        add(format!("{column} given away"), given);
    }
    if !rows.is_empty() {
        add("a row deleted".to_owned(), rows[1..].to_vec());
        add("all rows deleted".to_owned(), Vec::new());
        let mut twice = rows.to_vec();
        twice.push(rows[0].iter().map(changed).collect());
        add("a row duplicated".to_owned(), twice);
    }
    for row in removed {
        let mut back = rows.to_vec();
        back.push(row.clone());
        add("a removed row put back".to_owned(), back);
    }
    attacks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_changed_in_the_files_nobody_sees_or_ends_what_is_anothers_and_doctor_says_so() {
    let template = template().await;
    let mut met = BTreeSet::new();
    for file in FILES {
        let db = Connection::open(template.after.folder.path().join(file)).expect("a database");
        let old = Connection::open(template.before.folder.path().join(file)).expect("a database");
        for table in tables(&db) {
            let (columns, rows) = read(&db, &table);
            let (_, before) = read(&old, &table);
            let removed: Vec<_> = before.into_iter().filter(|row| !rows.contains(row)).collect();
            for (attack, rows) in attacks(file, &table, &columns, &rows, &removed) {
                let place = copied(&template.after);
                let changed = Connection::open(place.folder.path().join(file)).expect("a database");
                if !write(&changed, &table, &rows) {
                    continue;
                }
                drop(changed);
                met.insert((file, table.clone()));
                holds(&template, &place, &attack).await;
                if !attack.ends_with("a text") && !attack.ends_with("emptied") {
                    erases(&template, &place, &attack).await;
                }
            }
        }
    }
    // Tasks and orders to erase are not left over; what somebody else writes there is in the next test.
    assert!(met.len() >= 8, "{met:?}");
}

#[tokio::test]
async fn what_was_forgotten_does_not_come_back_with_all_its_rows_and_its_key() {
    let template = template().await;
    let place = copied(&template.after);
    for file in FILES {
        restore_missing(&template.before.folder.path().join(file), &place.folder.path().join(file));
    }
    copy(&template.before.folder.path().join("memory/blobs"), &place.folder.path().join("memory/blobs"));
    holds(&template, &place, "rows, keys and blobs put back").await;
    assert!(!open(&place).verify().await.expect("it can be looked at").is_sound());
    // Nor does an import bring it back once the mark is gone.
    let place = copied(&template.after);
    let keys = Connection::open(place.folder.path().join(FILES[1])).expect("the keys");
    assert_eq!(keys.execute("DELETE FROM forgotten", []).expect("it can be written"), 2);
    let file = place.folder.path().join("again.json");
    let session =
        json!({ "doomed": { "session_id": "doomed", "summary": format!("Said {FORGOTTEN} again.") } });
    std::fs::write(&file, session.to_string()).expect("a file");
    let imported =
        of(&open(&place), 0).import(&importing(&file), |_| std::ops::ControlFlow::Continue(())).await;
    assert_eq!(imported.expect_err("nobody knows what was forgotten").code(), "tampered");
    holds(&template, &place, "marks deleted").await;
}

/// Puts rows back that are not there any more, and leaves the others.
fn restore_missing(from: &Path, to: &Path) {
    let (from, to) = (Connection::open(from).expect("a database"), Connection::open(to).expect("a database"));
    for table in ["memories", "artifacts", "imports"]
        .into_iter()
        .filter(|table| tables(&from).iter().any(|t| t == table))
    {
        let (columns, rows) = read(&from, table);
        let marks: Vec<String> = (1..=columns.len()).map(|at| format!("?{at}")).collect();
        for row in rows {
            let sql = format!("INSERT OR IGNORE INTO {table} VALUES ({})", marks.join(", "));
            to.execute(&sql, params_from_iter(row)).expect("it is put back");
        }
    }
}

#[tokio::test]
async fn orders_that_nothing_vouches_for_are_not_carried_out() {
    let template = template().await;
    let orders = [
        "INSERT INTO erasing (owner) SELECT DISTINCT owner FROM memories",
        "INSERT INTO erasing (owner, sealed) SELECT owner, sealed FROM anchors",
        "INSERT INTO outbox (kind, owner, memory, artifact, pointer, mode, instance)
         SELECT 'remove', owner, id, artifact, pointer, mode, randomblob(16) FROM memories",
        "UPDATE memories SET state = 0; INSERT INTO outbox (kind, owner, memory, artifact, pointer, mode, instance, sealed)
         SELECT 'put', owner, id, randomblob(16), pointer, mode, randomblob(16), steer FROM memories",
    ];
    for order in orders {
        let place = copied(&template.after);
        let db = Connection::open(place.folder.path().join(FILES[0])).expect("a database");
        db.execute_batch(order).expect("it can be written");
        drop(db);
        let memory = open(&place);
        memory.recover().await.expect("it goes on");
        for who in [0, 1] {
            let (export, then) =
                (of(&memory, who).export().await.expect("all is there"), &template.seen[who]["export"]);
            assert_eq!(&Value::Array(export), then, "{order}");
        }
        assert!(!memory.verify().await.expect("it can be looked at").is_sound(), "{order}");
    }
}

#[tokio::test]
async fn blobs_that_are_changed_exchanged_missing_or_something_else_are_reported() {
    let template = template().await;
    let blobs = blobs(&template.after.folder.path().join("memory/blobs"), template.after.folder.path());
    assert!(blobs.len() >= 8, "{}", blobs.len());
    let (one, other) = (&blobs[0], &blobs[blobs.len() - 1]);
    for attack in ["flipped", "truncated", "deleted", "exchanged", "a link", "a pipe", "a folder"] {
        let place = copied(&template.after);
        let (one, other) = (place.folder.path().join(one), place.folder.path().join(other));
        let bytes = std::fs::read(&one).expect("a blob");
        std::fs::remove_file(&one).expect("it can be removed");
        match attack {
            "flipped" => {
                let mut bytes = bytes;
                bytes[7] ^= 1;
                std::fs::write(&one, bytes).expect("written");
            }
            "truncated" => std::fs::write(&one, &bytes[..9]).expect("written"),
            "exchanged" => {
                std::fs::rename(&other, &one).expect("moved");
                std::fs::write(&other, bytes).expect("written");
            }
            "a link" => std::os::unix::fs::symlink(&other, &one).expect("a link"),
            "a pipe" => {
                assert!(std::process::Command::new("mkfifo").arg(&one).status().expect("mkfifo").success())
            }
            "a folder" => std::fs::create_dir(&one).expect("a folder"),
            _ => {}
        }
        holds(&template, &place, attack).await;
        let lost = open(&place).verify().await.expect("it can be looked at").lost.len();
        assert_eq!(lost, if attack == "exchanged" { 2 } else { 1 }, "{attack}");
    }
}

/// Every blob, in order, from `root`.
fn blobs(folder: &Path, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(blobs(&path, root));
        } else {
            found.push(path.strip_prefix(root).expect("it is below").to_owned());
        }
    }
    found.sort();
    found
}
