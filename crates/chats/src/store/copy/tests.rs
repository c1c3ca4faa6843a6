//! Copies between back ends, and that no table and no column is forgotten.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::super::conformance::device::{Device, Edit, NOW, message};
use super::super::conformance::fresh_folder;
use super::super::conformance::person::{add_the_rest, person};
use super::super::sqlite::SqliteChats;
use super::super::*;
use super::{Cell, Of, Place, TABLES, Table, next};

/// Every row that there is.
async fn everything(store: &dyn Copied) -> Vec<Part> {
    let (mut parts, mut place) = (Vec::<Part>::new(), Place::default());
    while let Some(part) = next(store, &mut place).await.unwrap() {
        match parts.last_mut() {
            Some(last) if (last.table, &last.account) == (part.table, &part.account) => {
                last.rows.extend(part.rows);
            }
            _ => parts.push(part),
        }
    }
    parts
}

/// Two people, one with rows in every table and more than a page of some.
async fn people(store: &dyn ChatStore) -> Vec<Device> {
    let mut people = Vec::new();
    for name in ["ana", "bea"] {
        let (mut device, chat, write) = person(store, name).await;
        store.write(write).await.unwrap();
        device.pull(store).await;
        let puts = (0..20).map(|_| message()).collect();
        device.put(store, &chat, &Edit { puts, floor: true, ..Edit::default() }).await.unwrap();
        device.create(store, 3).await;
        if name == "ana" {
            add_the_rest(store, &device, name).await;
        }
        people.push(device);
    }
    let (gone, _) = (person(store, "cleo").await.0, ());
    store.erase(&gone.id).await.unwrap();
    people
}

/// Whether the copy is one, and goes on as the store would.
async fn goes_on<S: ChatStore + Copied>(from: &[Part], store: &S, people: &[Device]) {
    let copied = everything(store).await;
    assert_eq!(copied.len(), from.len());
    for (one, other) in copied.iter().zip(from) {
        assert_eq!((one.table.name, &one.account), (other.table.name, &other.account));
        assert!(one.rows == other.rows, "{} differs", one.table.name);
    }
    store.check().await.unwrap();
    for person in people {
        let mut device = person.clone();
        device.pull(store).await;
        let chat = device.chats.keys().next().unwrap().clone();
        let edit = Edit { puts: vec![message()], floor: true, ..Edit::default() };
        device.put(store, &chat, &edit).await.unwrap();
        store.abandon_rotation(&device.id).await.unwrap();
        device.create(store, 1).await;
        device.pull(store).await;
    }
}

fn sqlite() -> (tempfile::TempDir, SqliteChats) {
    let folder = fresh_folder();
    let store = SqliteChats::open(folder.path()).unwrap();
    (folder, store)
}

#[tokio::test]
async fn a_copy_has_every_row_and_made_again_changes_nothing() {
    let ((_one, from), (_two, to)) = (sqlite(), sqlite());
    let people = people(&from).await;
    let before = everything(&from).await;
    let tables: BTreeSet<&str> = before.iter().map(|part| part.table.name).collect();
    assert_eq!(tables.len(), TABLES.len(), "every table has a row: {tables:?}");
    let rows: usize = before.iter().map(|part| part.rows.len()).sum();
    assert_eq!(copy(&from, &to).await, Ok(rows as u64));
    assert_eq!(copy(&from, &to).await, Ok(rows as u64));
    goes_on(&before, &to, &people).await;
    assert!(everything(&from).await == before, "the store that is copied stays as it is");
    // It went on since: it is no beginning of a copy any more, and nothing is copied into it.
    let after = everything(&to).await;
    assert_eq!(copy(&from, &to).await, Err(StoreError::NotEmpty));
    assert!(everything(&to).await == after);
    // One row is enough to be something else.
    let (_three, little) = sqlite();
    little.login_failed(people[0].login, people[1].login, NOW).await.unwrap();
    assert_eq!(copy(&from, &little).await, Err(StoreError::NotEmpty));
}

/// A store that takes so many parts, and then is away.
#[derive(Debug)]
struct Cut<'a> {
    store: &'a SqliteChats,
    left: AtomicUsize,
}

#[async_trait::async_trait]
impl Copied for Cut<'_> {
    async fn accounts_after(&self, after: &str) -> Result<Vec<String>> {
        self.store.accounts_after(after).await
    }

    async fn rows(&self, table: &'static Table, account: &str, after: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        self.store.rows(table, account, after).await
    }

    async fn put_rows(&self, part: &Part) -> Result<()> {
        match self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => self.store.put_rows(part).await,
            Err(_) => Err(StoreError::NotFound),
        }
    }
}

#[tokio::test]
async fn a_copy_that_was_cut_off_anywhere_goes_on() {
    let (_one, from) = sqlite();
    people(&from).await;
    let before = everything(&from).await;
    let rows: usize = before.iter().map(|part| part.rows.len()).sum();
    let (mut cuts, mut place) = (0, Place::default());
    while next(&from, &mut place).await.unwrap().is_some() {
        let (_two, to) = sqlite();
        // Twice, the second time a little further.
        for left in [cuts, 2] {
            let cut = Cut { store: &to, left: AtomicUsize::new(left) };
            let _cut_off = copy(&from, &cut).await;
        }
        assert_eq!(copy(&from, &to).await, Ok(rows as u64), "cut off after {cuts}");
        assert!(everything(&to).await == before, "cut off after {cuts}");
        cuts += 5;
        for _ in 0..4 {
            next(&from, &mut place).await.unwrap();
        }
    }
    assert!(cuts > 30, "there are so many parts");
    // What was brought over is not there any more: it is nobody's beginning.
    let (_three, to) = sqlite();
    let cut = Cut { store: &to, left: AtomicUsize::new(cuts / 2) };
    copy(&from, &cut).await.unwrap_err();
    let gone = from.accounts_after("").await.unwrap().remove(0);
    from.erase(&confidant_chat_format::AccountId::parse(&gone).unwrap()).await.unwrap();
    let there = everything(&to).await;
    assert_eq!(copy(&from, &to).await, Err(StoreError::NotEmpty));
    assert!(everything(&to).await == there);
}

/// What a back end has beside the columns that are copied: the numbers that join its tables, and whose a row is.
fn joins(table: &str) -> &'static [&'static str] {
    match table {
        "accounts" | "chats" => &["n", "account"],
        "items" | "drafts" | "steps" | "tombstones" => &["chat", "account", "envelope"],
        "codes" | "pairings" | "attempts" | "unscrubbed" => &[],
        _ => &["account"],
    }
}

/// Whether all columns of a back end's tables are copied.
fn covers(columns: &[(String, String)]) {
    for (table, column) in columns.iter().filter(|(table, _)| table != "envelopes") {
        let known = TABLES.iter().find(|known| known.name == table).unwrap_or_else(|| panic!("{table}"));
        let is_copied = known.columns.contains(&column.as_str())
            || known.key.iter().any(|(name, _)| name == column)
            || joins(table).contains(&column.as_str());
        assert!(is_copied, "{table}.{column} is not copied");
    }
    for table in &TABLES {
        assert!(columns.iter().any(|(name, _)| name == table.name), "{} is not there", table.name);
    }
    assert_eq!(TABLES.iter().filter(|table| table.of == Of::Items).count(), 1);
}

#[test]
fn every_column_of_the_file_is_copied() {
    let (folder, _store) = sqlite();
    let file = rusqlite::Connection::open(folder.path().join("chats.db")).unwrap();
    let sql = "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'";
    let mut columns = file.prepare(sql).unwrap();
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    covers(&columns.collect::<rusqlite::Result<Vec<_>>>().unwrap());
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn every_column_of_the_database_is_copied() {
    let Some(place) = super::super::postgres::tests::place().await else { return };
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns
               WHERE table_schema = current_schema() AND table_name <> 'migrations'";
    let columns = place.everything.query(sql, &[]).await.unwrap();
    covers(&columns.iter().map(|row| (row.get(0), row.get(1))).collect::<Vec<_>>());
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_store_goes_to_the_other_back_end_and_back() {
    let Some(place) = super::super::postgres::tests::place().await else { return };
    let ((_one, from), (_two, back)) = (sqlite(), sqlite());
    let people = people(&from).await;
    let before = everything(&from).await;
    let rows = copy(&from, &place.store).await.unwrap();
    assert_eq!(copy(&from, &place.store).await, Ok(rows));
    assert_eq!(copy(&place.store, &back).await, Ok(rows));
    goes_on(&before, &back, &people).await;
    goes_on(&before, &place.store, &people).await;
}
