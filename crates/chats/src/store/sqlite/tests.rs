//! What only SQLite can answer for: what is in the file after a kill, after an error in the middle, and after an erasure.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use confidant_chat_format::{AccountId, ChatId, DeviceId, Digest, EmbedId, ItemId, Place, Shelf};
use confidant_sqlite::File;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::super::conformance::device::{Device, Edit, NOW, message, sealed, tag, title};
use super::super::conformance::fresh_folder;
use super::super::conformance::letters::{letter_of, row};
use super::super::conformance::marks::mark_of;
use super::super::conformance::snapshots::snapshot_of;
use super::super::*;
use super::kills::audit;
use super::{FILE, Halt, NAME, SqliteChats, rotation, write};

fn open(folder: &Path) -> SqliteChats {
    SqliteChats::open(folder).unwrap()
}

/// Every row of every table.
fn dump(folder: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    let file = Connection::open(folder.join(NAME)).unwrap();
    let mut tables =
        file.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let names = names.collect::<rusqlite::Result<Vec<_>>>().unwrap();
    names.into_iter().map(|name| (name.clone(), rows(&file, &name))).collect()
}

fn rows(file: &Connection, table: &str) -> Vec<Vec<Value>> {
    let columns = file.prepare(&format!("SELECT * FROM {table}")).unwrap().column_count();
    let order = if columns > 1 { "1, 2" } else { "1" };
    let mut all = file.prepare(&format!("SELECT * FROM {table} ORDER BY {order}")).unwrap();
    let rows = all.query_map([], |row| (0..columns).map(|at| row.get(at)).collect()).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

/// What a kill at this moment leaves: the files as they are.
fn killed(folder: &Path) -> tempfile::TempDir {
    let left = fresh_folder();
    for name in [NAME.to_owned(), format!("{NAME}-wal")] {
        std::fs::copy(folder.join(&name), left.path().join(&name)).unwrap();
    }
    left
}

/// A person with a chat, and a write to it that touches every table of a chat.
async fn person(store: &SqliteChats) -> (Device, ChatId, Write) {
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 2).await;
    let old: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let puts = vec![message(), title(), old[0].clone()];
    let edit = Edit { puts, removes: vec![old[1].clone()], new_key: true, floor: true, length: 0 };
    let write = ana.write(&chat, &edit).0;
    (ana, chat, write)
}

#[tokio::test]
async fn a_write_that_is_killed_before_its_commit_leaves_nothing() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (mut ana, chat, write) = person(&store).await;
    let before = dump(folder.path());
    let (path, done) = (folder.path().to_owned(), write.clone());
    let left = store.write_with(move |c| {
        write::write(c, &done)?;
        // Everything is written, and nothing committed.
        let left = killed(&path);
        Ok(left)
    });
    let left = left.await.unwrap();
    assert!(dump(left.path()) == before);
    let mut other = ana.clone();
    other.pull(&open(left.path())).await;
    open(left.path()).write(write).await.unwrap();
    ana.pull(&store).await;
    assert_eq!(ana.chats[&chat].head.unwrap().0.rev, 2);
}

#[tokio::test]
async fn a_write_that_fails_at_any_table_leaves_nothing() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (mut ana, _, write) = person(&store).await;
    let before = dump(folder.path());
    let places = [
        "INSERT ON rings",
        "INSERT ON envelopes",
        "UPDATE ON envelopes",
        "INSERT ON items",
        "DELETE ON items",
        "DELETE ON envelopes",
        "INSERT ON tombstones",
        "INSERT ON steps",
        "UPDATE ON chats",
        "UPDATE ON accounts",
        "INSERT ON feed",
        "INSERT ON floors",
        "INSERT ON manifests",
        "INSERT ON list_steps",
    ];
    for place in places {
        let trigger =
            format!("CREATE TEMP TRIGGER fails AFTER {place} BEGIN SELECT RAISE (FAIL, 'disk'); END");
        store.write_with(move |c| Ok(c.execute_batch(&trigger)?)).await.unwrap();
        let failed = store.write(write.clone()).await;
        assert!(matches!(failed, Err(StoreError::Failed(_))), "{place}: {failed:?}");
        store.write_with(|c| Ok(c.execute_batch("DROP TRIGGER fails")?)).await.unwrap();
        assert!(dump(folder.path()) == before, "{place} left something");
    }
    ana.pull(&store).await;
    store.write(write).await.unwrap();
    ana.pull(&store).await;
    assert_eq!(audit(folder.path()), (1, 3));
}

/// A caller that goes away at any moment: the write ends as a whole, or was never begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_all_or_nothing() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let mut ana = Device::register(&store, "ana").await;
    let chat = ana.create(&store, 1).await;
    for round in 0..30_u64 {
        let (write, _) = ana.write(&chat, &Edit { puts: vec![message()], floor: true, ..Edit::default() });
        let doomed = store.clone();
        let task = tokio::spawn(async move { doomed.write(write).await });
        for _ in 0..round * 20 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _ = task.await;
        ana.pull(&store).await;
    }
    store.check().await.unwrap();
}

#[tokio::test]
async fn a_rotation_that_is_killed_at_any_step_changes_nothing() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (ana, ..) = person(&store).await;
    let rings = |folder: &Path| dump(folder).remove("rings").unwrap();
    let (before, all_before) = (rings(folder.path()), dump(folder.path()));
    let begin = BeginRotation { account: ana.id.clone(), expected: 1, session: Digest::ZERO, now: NOW };
    let path = folder.path().to_owned();
    let left = store.write_with(move |c| {
        rotation::begin(c, &begin)?;
        let left = killed(&path);
        Ok((left, begin))
    });
    let (left, begin) = left.await.unwrap();
    assert!(dump(left.path()) == all_before, "epoch, freeze and rings are as before");
    let frozen = store.begin_rotation(begin).await.unwrap();
    let staged = store.rings(&ana.id, None).await.unwrap();
    let (path, id, part) = (folder.path().to_owned(), ana.id.clone(), staged.clone());
    let left = store.write_with(move |c| {
        rotation::stage(c, &stage(&id, frozen.epoch, part))?;
        let left = killed(&path);
        Ok(left)
    });
    let left = left.await.unwrap();
    assert_eq!(dump(left.path())["staged"], Vec::<Vec<Value>>::new());
    store.stage(stage(&ana.id, frozen.epoch, staged)).await.unwrap();
    // Staged, committed to the file, and killed: after a start nothing is in force, and in time nothing is left.
    let left = killed(folder.path());
    assert_eq!(rings(left.path()), before);
    let after = open(left.path());
    after.expire(frozen.until).await.unwrap();
    after.scrub().await.unwrap();
    assert_eq!(dump(left.path())["staged"], Vec::<Vec<Value>>::new());
    ana.clone().pull(&after).await;
}

fn stage(account: &AccountId, epoch: u32, entries: Vec<RingEntry>) -> Stage {
    let wrap = entries[0].entry.sealed.kid();
    let floors = vec![(Shelf::all().next().unwrap(), sealed("a staged floor"))];
    Stage { account: account.clone(), epoch, wrap, entries, floors, now: NOW }
}

/// Sixteen bytes of everything that could tell that somebody was here.
fn markers(device: &Device) -> HashSet<[u8; 16]> {
    let mut markers = HashSet::new();
    let mut add = |bytes: &[u8]| {
        markers.extend(bytes.first_chunk::<16>().copied());
        markers.extend(bytes.last_chunk::<16>().copied());
        // Somewhere in the middle, for what spills over to other pages.
        markers.extend(bytes.get(bytes.len() / 2..).and_then(|rest| rest.first_chunk::<16>().copied()));
    };
    add(device.id.as_str().as_bytes());
    add(device.login.as_bytes());
    device.ring.iter().chain(&device.boxes).for_each(|entry| add(entry.sealed.as_bytes()));
    for (chat, room) in &device.chats {
        add(chat.as_str().as_bytes());
        room.ring.iter().for_each(|entry| add(entry.sealed.as_bytes()));
        for (item, envelope) in &room.items {
            if !matches!(item, ItemId::Field(_)) {
                add(item.to_string().as_bytes());
            }
            add(envelope.as_bytes());
            add(Digest::of(envelope.as_bytes()).as_bytes());
        }
    }
    markers
}

/// How many of the markers are in the files.
fn found(folder: &Path, markers: &HashSet<[u8; 16]>) -> usize {
    let mut there = HashSet::new();
    for name in [NAME.to_owned(), format!("{NAME}-wal"), format!("{NAME}-shm")] {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
        let windows = bytes.windows(16).filter_map(|window| window.first_chunk::<16>());
        there.extend(windows.filter(|window| markers.contains(*window)).copied());
    }
    there.len()
}

/// Rows of several people lie side by side, and pages are split and joined, which leaves copies of cells behind.
#[tokio::test]
async fn after_an_erasure_no_byte_of_the_account_is_in_the_files() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let mut people = Vec::new();
    for name in ["ana", "bea", "cleo", "dora"] {
        people.push((Device::register(&store, name).await, HashSet::new()));
    }
    for round in 0..40 {
        for (person, seen) in &mut people {
            live_a_little(&store, person, round).await;
            seen.extend(markers(person));
        }
    }
    let (mut dora, _) = people.pop().unwrap();
    let (kept, all): (_, HashSet<_>) =
        (markers(&dora), people.iter().flat_map(|(_, seen)| seen.clone()).collect());
    for (person, _) in &people {
        let current = markers(person);
        assert_eq!(found(folder.path(), &current), current.len(), "all of it is there before");
        if person.login == tag("ana") {
            add_the_rest(&store, person).await;
        }
        store.erase(&person.id).await.unwrap();
    }
    let free = || -> i64 {
        let raw = Connection::open(folder.path().join(NAME)).unwrap();
        raw.query_row("PRAGMA freelist_count", [], |row| row.get(0)).unwrap()
    };
    assert!(free() > 0);
    store.scrub().await.unwrap();
    assert_eq!(free(), 0, "the file is written anew");
    assert_eq!(found(folder.path(), &all), 0, "of {} markers", all.len());
    let rest = [
        "a label of ana's",
        "an answer of ana's",
        "a code of ana's.",
        "a letter to ana.",
        "an addition to it",
    ];
    let rest = rest.map(sealed);
    let rest = rest.iter().filter_map(|sealed| sealed.as_bytes().first_chunk::<16>().copied()).collect();
    assert_eq!(found(folder.path(), &rest), 0);
    assert_eq!(found(folder.path(), &kept), kept.len(), "and all of the other's");
    dora.pull(&store).await;
    store.check().await.unwrap();
    audit(folder.path());
}

/// Creates, writes, edits, removes and deletes.
async fn live_a_little(store: &SqliteChats, person: &mut Device, round: usize) {
    let chat = match round % 4 {
        0 => person.create(store, 3).await,
        _ => person.chats.keys().nth(round % person.chats.len()).unwrap().clone(),
    };
    let known: Vec<ItemId> = person.chats[&chat].items.keys().cloned().collect();
    let mut puts: Vec<ItemId> = (0..round % 7).map(|_| message()).collect();
    puts.extend(round.is_multiple_of(5).then(|| ItemId::Embed(EmbedId::random())));
    puts.extend(known.first().filter(|_| round % 3 == 1).cloned());
    let removes = known.first().filter(|_| round.is_multiple_of(3)).cloned().into_iter().collect();
    let edit =
        Edit { puts, removes, new_key: round.is_multiple_of(9), floor: round.is_multiple_of(2), length: 0 };
    person.put(store, &chat, &edit).await.unwrap();
    if round % 11 == 10 {
        let (delete, after) = person.deletion(&chat);
        store.delete_chat(delete).await.unwrap();
        *person = after;
    }
}

/// What an account has besides chats.
async fn add_the_rest(store: &SqliteChats, ana: &Device) {
    let device = DeviceId::random();
    let label = sealed("a label of ana's");
    store.add_device(&ana.id, NewDevice { device: device.clone(), label, now: NOW }).await.unwrap();
    let session = Session {
        id: Digest::of(b"session"),
        secret: Digest::of(b"secret"),
        account: ana.id.clone(),
        device,
        epoch: 1,
        created_at: NOW,
        expires_at: Millis(NOW.0 + 9),
        seen_day: NOW.day(),
    };
    store.add_session(session).await.unwrap();
    let chat = ana.chats.keys().next().unwrap();
    let envelope = Some(ana.seal(chat, &Place::Draft(chat), 1, &[b'x'; 9000]));
    let draft = PutDraft { account: ana.id.clone(), chat: chat.clone(), expected: 0, envelope, now: NOW };
    store.put_draft(draft).await.unwrap();
    let letter = letter_of(ana, chat, "a letter to ana.");
    store.put_letter(letter.clone()).await.unwrap();
    store.put_letter_more(&ana.id, chat, &letter.turn, b"an addition to it".to_vec()).await.unwrap();
    store.put_mark(mark_of(ana, chat)).await.unwrap();
    store.put_snapshot(snapshot_of(ana, chat)).await.unwrap();
    let (account, sealed_row) = (ana.id.clone(), row(1));
    let safety = PutSafety { account, chat: chat.clone(), expected: 0, sealed: sealed_row };
    store.put_safety(safety).await.unwrap();
    store.login_failed(tag("ana"), tag("home"), NOW).await.unwrap();
    let code = Code {
        kind: CodeKind::Challenge,
        key: Digest::of(b"challenge"),
        account: None,
        login: Some(tag("ana")),
        carries: b"a code of ana's.".to_vec(),
        expires_at: Millis(NOW.0 + 60_000),
    };
    store.issue(code).await.unwrap();
    store.open_slot([1; 16], vec![1; 32], NOW).await.unwrap();
    store.answer_slot(&ana.id, [1; 16], sealed("an answer of ana's"), NOW).await.unwrap();
}

#[tokio::test]
async fn a_table_that_an_erasure_forgets_is_noticed() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (ana, ..) = person(&store).await;
    add_the_rest(&store, &ana).await;
    let begin =
        BeginRotation { account: ana.id.clone(), expected: 1, session: Digest::of(b"session"), now: NOW };
    let frozen = store.begin_rotation(begin).await.unwrap();
    let staged = store.rings(&ana.id, None).await.unwrap();
    store.stage(stage(&ana.id, frozen.epoch, staged)).await.unwrap();
    store.mark_erasing(&ana.id).await.unwrap();
    assert_eq!(store.erasing().await, Ok(vec![ana.id.clone()]));
    store.erase(&ana.id).await.unwrap();
    assert_eq!(store.must_scrub().await, Ok(true));
    store.scrub().await.unwrap();
    assert_eq!(store.must_scrub().await, Ok(false));
    for (table, rows) in dump(folder.path()) {
        assert!(rows.is_empty(), "{table} has {} rows", rows.len());
    }
}

/// Deleted items count, so that a chat does not grow for ever; and yet deleting is never refused.
#[tokio::test]
async fn deleted_items_count_when_something_new_is_added() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (mut ana, chat, _) = person(&store).await;
    let full = format!("UPDATE chats SET gone = {}", limits::ITEMS_EVER - 2);
    store.write_with(move |c| Ok(c.execute_batch(&full)?)).await.unwrap();
    let old: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let new = ana.put(&store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await;
    assert_eq!(new, Err(StoreError::TooMany("items in this chat, deleted ones included")));
    let edit = Edit { puts: old[..1].to_vec(), removes: old[1..].to_vec(), ..Edit::default() };
    ana.put(&store, &chat, &edit).await.unwrap();
    ana.pull(&store).await;
}

/// One that an old copy of the file brings back, say.
#[tokio::test]
async fn a_session_of_another_epoch_is_not_valid_even_if_its_row_is_there() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (ana, ..) = person(&store).await;
    add_the_rest(&store, &ana).await;
    let id = Digest::of(b"session");
    assert!(store.session(id, NOW).await.unwrap().is_some());
    store.write_with(|c| Ok(c.execute_batch("UPDATE accounts SET epoch = 2")?)).await.unwrap();
    assert_eq!(store.session(id, NOW).await.unwrap(), None);
    assert_eq!(store.sessions(&ana.id, NOW).await.unwrap(), []);
}

#[tokio::test]
async fn a_file_of_the_first_version_goes_on() {
    let folder = fresh_folder();
    let (mut ana, ..) = person(&open(folder.path())).await;
    let first = Connection::open(folder.path().join(NAME)).unwrap();
    let back = "DROP INDEX accounts_erasing; ALTER TABLE accounts DROP COLUMN erasing; DROP TABLE unscrubbed;
                DROP TABLE rotations; DROP TABLE staged_floors; DROP TABLE letters; DROP TABLE safety;
                DROP TABLE marks; DROP TABLE snapshots;
                PRAGMA user_version = 1";
    first.execute_batch(back).unwrap();
    drop(first);
    let store = open(folder.path());
    ana.pull(&store).await;
    store.mark_erasing(&ana.id).await.unwrap();
    assert_eq!(store.erasing().await, Ok(vec![ana.id.clone()]));
}

/// Made by the steps of the version before, written to by it, then opened.
#[tokio::test]
async fn a_file_of_the_version_before_letters_goes_on() {
    let folder = fresh_folder();
    let path = folder.path().join(NAME);
    let before = File { steps: &super::schema::STEPS[..2], ..FILE };
    let writer = Arc::new(tokio::sync::Mutex::new(before.open(&path).unwrap()));
    let reading = Arc::new(tokio::sync::Semaphore::new(1));
    let inner = super::Inner { path: path.clone(), writer, reading, idle: parking_lot::Mutex::default() };
    let old = SqliteChats { inner: Arc::new(inner) };
    let (mut ana, chat, write) = person(&old).await;
    old.write(write).await.unwrap();
    let rows = dump(folder.path());
    assert!(!rows.contains_key("letters") && !rows.contains_key("safety"));
    drop(old);
    let store = open(folder.path());
    let mut after = dump(folder.path());
    for new in ["letters", "safety", "marks", "snapshots"] {
        assert_eq!(after.remove(new), Some(vec![]), "{new}");
    }
    assert!(after == rows, "every row is as it was");
    ana.pull(&store).await;
    let put = letter_of(&ana, &chat, "an answer");
    assert_eq!(store.put_letter(put).await, Ok(Kept::Now));
    store.put_mark(mark_of(&ana, &chat)).await.unwrap();
    store.put_snapshot(snapshot_of(&ana, &chat)).await.unwrap();
    let (account, sealed) = (ana.id.clone(), row(1));
    store.put_safety(PutSafety { account, chat, expected: 0, sealed }).await.unwrap();
    assert_eq!(store.erase(&ana.id).await.unwrap().letters, 1);
    store.check().await.unwrap();
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_alone() {
    let folder = fresh_folder();
    drop(open(folder.path()));
    let path = folder.path().join(NAME);
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", super::schema::STEPS.len() + 1).unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(SqliteChats::open(folder.path()).err(), Some(StoreError::Newer));
    assert!(std::fs::read(&path).unwrap() == before);
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = fresh_folder();
    let store = open(folder.path());
    Device::register(&store, "ana").await;
    for name in [NAME.to_owned(), format!("{NAME}-wal"), format!("{NAME}-shm")] {
        let mode = std::fs::metadata(folder.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// A row that we never write is damage, not a panic, and what it says is not quoted.
#[tokio::test]
async fn a_damaged_row_is_named_and_not_quoted() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (ana, chat, write) = person(&store).await;
    let raw = Connection::open(folder.path().join(NAME)).unwrap();
    raw.execute_batch("UPDATE items SET item = 'secret' WHERE item = (SELECT max(item) FROM items)").unwrap();
    for error in [store.chat(&ana.id, &chat, Have::default()).await.err(), store.write(write).await.err()] {
        let error = error.unwrap();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(matches!(error, StoreError::Corrupt(NAME) | StoreError::Conflict { .. }), "{error:?}");
    }
}

/// The cost of a write does not depend on how large a chat's envelopes are, nor on how many chats there are.
#[test]
fn the_list_is_read_without_envelopes_and_every_statement_has_an_index() {
    let folder = fresh_folder();
    drop(open(folder.path()));
    let raw = Connection::open(folder.path().join(NAME)).unwrap();
    let plan = |sql: &str| -> String {
        raw.query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [], |row| row.get(3)).unwrap()
    };
    assert_eq!(
        plan("SELECT item, hash FROM items WHERE chat = 1"),
        "SEARCH items USING PRIMARY KEY (chat=?)"
    );
    for sql in [
        "SELECT n FROM chats WHERE account = 1 AND chat = 'x'",
        "SELECT n FROM chats WHERE account = 1 ORDER BY updated_at DESC, chat DESC LIMIT 20",
        "SELECT n FROM chats WHERE account = 1 AND (updated_at, chat) < (1, 'x') ORDER BY updated_at DESC, chat DESC",
        "SELECT n FROM chats WHERE account = 1 ORDER BY opened_at DESC, chat DESC LIMIT 1",
        "SELECT item FROM tombstones WHERE chat = 1 AND removed_at > 1 ORDER BY item",
        "SELECT n FROM rings WHERE account = 1 AND (container, kind, n) > ('', 0, 0) ORDER BY container, kind, n",
        "DELETE FROM envelopes WHERE chat = 1",
        "DELETE FROM codes WHERE expires_at <= 1",
        "DELETE FROM codes WHERE login = x'00'",
        "DELETE FROM attempts WHERE last <= 1",
        "DELETE FROM attempts WHERE login = x'00'",
        "DELETE FROM sessions WHERE account = 1 AND id <> x'00'",
        "DELETE FROM sessions WHERE expires_at <= 1",
        "SELECT n FROM accounts WHERE frozen_until <= 1",
        "SELECT turn FROM letters WHERE account = 1 AND (chat, turn) > ('', '') ORDER BY chat, turn",
        "SELECT rowid FROM letters WHERE account = 1 ORDER BY left_at DESC, chat DESC, turn DESC LIMIT -1 OFFSET 999",
        "DELETE FROM letters WHERE left_at <= 1",
        "SELECT 1 FROM marks WHERE look_at <= 1 LIMIT 1",
        "SELECT rowid FROM marks WHERE account = 1 ORDER BY asked_at DESC, chat DESC, turn DESC LIMIT -1 OFFSET 999",
        "DELETE FROM marks WHERE asked_at <= 1",
        "SELECT chat FROM snapshots WHERE id = x'00' AND expires_at > 1",
        "SELECT chat FROM snapshots WHERE account = 1 AND expires_at > 1 ORDER BY id",
        "SELECT count(*) FROM snapshots WHERE account = 1",
        "DELETE FROM snapshots WHERE account = 1 AND id = x'00'",
        "DELETE FROM snapshots WHERE expires_at <= 1",
        "SELECT rev FROM safety WHERE account = 1 AND chat = 'x'",
    ] {
        assert!(plan(sql).starts_with("SEARCH"), "{sql}: {}", plan(sql));
    }
}

/// What is refused inside a transaction is undone with it.
#[tokio::test]
async fn a_refusal_undoes_what_was_written_before_it() {
    let folder = fresh_folder();
    let store = open(folder.path());
    let (_, _, write) = person(&store).await;
    let before = dump(folder.path());
    let undone = store.write_with(move |c| {
        write::write(c, &write)?;
        Err::<(), Halt>(StoreError::NotFound.into())
    });
    assert_eq!(undone.await, Err(StoreError::NotFound));
    assert!(dump(folder.path()) == before);
}
