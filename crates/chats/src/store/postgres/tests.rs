//! What only PostgreSQL can answer for: whose rows a statement sees, and what is left after an error, a cut connection or an
//! erasure.

mod cuts;
mod security;
mod trips;

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_chat_format::{DeviceId, Digest, ItemId};
use confidant_postgres::{Link, Pool, PostgresAddress};
use tokio_postgres::Client;
use tokio_postgres::types::{FromSql, Type};

use super::super::conformance::device::{Device, Edit, NOW, message, tag};
use super::super::conformance::letters::{letter_of, row};
use super::super::conformance::marks::mark_of;
use super::super::conformance::person::{add_the_rest, person};
use super::super::conformance::snapshots::snapshot_of;
use super::super::*;
use super::{PostgresChats, open};

/// The server that a variable names, with a schema of its own.
pub(crate) fn link(variable: &str) -> Option<Link> {
    let schema = format!("test_{}_chats", DeviceId::random().as_str().replace('-', "").to_lowercase());
    confidant_postgres::testing::link(variable, schema)
}

/// A store, and whoever sees all of its rows.
pub(crate) struct Database {
    pub(crate) link: Link,
    pub(crate) store: PostgresChats,
    /// A superuser, whom row-level security does not bind.
    pub(crate) everything: Client,
}

pub(crate) async fn place() -> Option<Database> {
    let link = link("CONFIDANT_TEST_POSTGRES")?;
    let store = open(&link).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let url = std::env::var("CONFIDANT_TEST_POSTGRES_SUPERUSER").unwrap();
    let all = Link { address: PostgresAddress::parse(&url).unwrap(), ..link.clone() };
    let everything = Pool::new(&all, &[]).unwrap().connect_apart().await.unwrap();
    Some(Database { link, store, everything })
}

impl Database {
    /// The tables that there are, but for the one of migrations.
    pub(crate) async fn tables(&self) -> Vec<String> {
        let sql = "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace
                   AND relkind = 'r' AND relname <> 'migrations' ORDER BY relname";
        self.everything.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    /// Every row of every table.
    pub(crate) async fn dump(&self) -> BTreeMap<String, Vec<String>> {
        let mut dump = BTreeMap::new();
        for table in self.tables().await {
            let sql = format!("SELECT t::text FROM {table} AS t ORDER BY 1");
            let rows = self.everything.query(&sql, &[]).await.unwrap();
            dump.insert(table, rows.iter().map(|row| row.get(0)).collect());
        }
        dump
    }

    /// The bytes of every column of every row.
    pub(crate) async fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for table in self.tables().await {
            let rows = self.everything.query(&format!("SELECT * FROM {table}"), &[]).await.unwrap();
            for row in &rows {
                for at in 0..row.len() {
                    bytes.extend(row.get::<_, Raw>(at).0);
                    bytes.push(0);
                }
            }
        }
        bytes
    }

    /// Whether everything agrees that no key is needed for: counts with rows, hashes with envelopes, numbers without gaps.
    async fn audit(&self) {
        for (what, sql) in [
            (
                "counts",
                "SELECT count(*) FROM chats AS c WHERE count <> (SELECT count(*) FROM items AS i WHERE i.chat = c.n)",
            ),
            (
                "removed",
                "SELECT count(*) FROM chats AS c WHERE gone <> (SELECT count(*) FROM tombstones AS t WHERE t.chat = c.n)",
            ),
            (
                "steps",
                "SELECT count(*) FROM chats AS c WHERE rev <> (SELECT count(*) FROM steps AS s WHERE s.chat = c.n AND s.rev <= c.rev)",
            ),
            (
                "heads",
                "SELECT count(*) FROM chats AS c LEFT JOIN steps AS s ON s.chat = c.n AND s.rev = c.rev WHERE s.chain IS DISTINCT FROM c.chain OR s.hash IS DISTINCT FROM c.hash",
            ),
            (
                "envelopes",
                "SELECT count(*) FROM items AS i FULL JOIN envelopes AS e USING (chat, item) WHERE length(e.envelope) IS DISTINCT FROM i.bytes OR e.account IS DISTINCT FROM i.account",
            ),
            (
                "manifests",
                "SELECT count(*) FROM manifests AS m LEFT JOIN list_steps AS s USING (account, rev) WHERE s.chain IS DISTINCT FROM m.chain",
            ),
            (
                "feeds",
                "SELECT count(*) FROM accounts AS a WHERE seq <> (SELECT count(*) FROM feed AS f WHERE f.account = a.account AND f.seq BETWEEN 1 AND a.seq)",
            ),
            (
                "owners",
                "SELECT count(*) FROM items AS i JOIN chats AS c ON c.n = i.chat WHERE c.account <> i.account",
            ),
        ] {
            let wrong: i64 = self.everything.query_one(sql, &[]).await.unwrap().get(0);
            assert_eq!(wrong, 0, "{what}");
        }
    }

    pub(crate) async fn batch(&self, sql: &str) {
        self.everything.batch_execute(sql).await.unwrap();
    }
}

/// A column as the server sends it.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Vec::new()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[tokio::test]
async fn a_table_that_an_erasure_forgets_is_noticed() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let (ana, _, write) = person(store, "ana").await;
    store.write(write).await.unwrap();
    add_the_rest(store, &ana, "ana").await;
    store.mark_erasing(&ana.id).await.unwrap();
    for (table, rows) in place.dump().await {
        assert!(!rows.is_empty() || table == "unscrubbed", "{table} has no row to be erased");
    }
    store.erase(&ana.id).await.unwrap();
    assert_eq!(store.must_scrub().await, Ok(true));
    store.scrub().await.unwrap();
    assert_eq!(store.must_scrub().await, Ok(false));
    for (table, rows) in place.dump().await {
        assert!(rows.is_empty(), "{table} has {} rows", rows.len());
    }
}

/// Made by the migrations of the version before, written to by it, then opened.
#[tokio::test]
async fn a_database_of_the_version_before_letters_goes_on() {
    let Some(link) = link("CONFIDANT_TEST_POSTGRES") else { return };
    let pool = Arc::new(Pool::new(&link, &[]).unwrap());
    confidant_postgres::migrate(&pool, &super::MIGRATIONS[..2]).await.unwrap();
    let old = PostgresChats { pool };
    let (mut ana, chat, write) = person(&old, "ana").await;
    old.write(write).await.unwrap();
    let put = letter_of(&ana, &chat, "an answer");
    assert!(matches!(old.put_letter(put.clone()).await, Err(StoreError::Failed(_))), "it has no such table");
    let store = open(&link).await.unwrap();
    ana.pull(&store).await;
    assert_eq!(store.put_letter(put).await, Ok(Kept::Now));
    store.put_mark(mark_of(&ana, &chat)).await.unwrap();
    store.put_snapshot(snapshot_of(&ana, &chat)).await.unwrap();
    let (account, sealed) = (ana.id.clone(), row(1));
    store.put_safety(PutSafety { account, chat, expected: 0, sealed }).await.unwrap();
    store.check().await.unwrap();
    assert_eq!(store.erase(&ana.id).await.unwrap().letters, 1);
}

#[tokio::test]
async fn what_a_newer_program_made_is_refused_and_left_alone() {
    let Some(place) = place().await else { return };
    place.batch("INSERT INTO migrations (version) VALUES (99)").await;
    let before = place.dump().await;
    assert_eq!(open(&place.link).await.err(), Some(StoreError::Newer));
    assert_eq!(place.dump().await, before);
}

/// A row that we never write is damage, not a panic, and what it says is not quoted.
#[tokio::test]
async fn a_damaged_row_is_named_and_not_quoted() {
    let Some(place) = place().await else { return };
    let (ana, chat, write) = person(&place.store, "ana").await;
    place.batch("ALTER TABLE envelopes DROP CONSTRAINT envelopes_chat_item_fkey").await;
    place.batch("UPDATE items SET item = 'secret' WHERE item = (SELECT max(item) FROM items)").await;
    let read = place.store.chat(&ana.id, &chat, Have::default()).await.err();
    for error in [read, place.store.write(write).await.err()] {
        let error = error.unwrap();
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    }
}

/// Deleted items count, so that a chat does not grow for ever; and yet deleting is never refused.
#[tokio::test]
async fn deleted_items_count_when_something_new_is_added() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let (mut ana, chat, _) = person(store, "ana").await;
    place.batch(&format!("UPDATE chats SET gone = {}", limits::ITEMS_EVER - 2)).await;
    let old: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let new = ana.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await;
    assert_eq!(new, Err(StoreError::TooMany("items in this chat, deleted ones included")));
    let edit = Edit { puts: old[..1].to_vec(), removes: old[1..].to_vec(), ..Edit::default() };
    ana.put(store, &chat, &edit).await.unwrap();
    ana.pull(store).await;
}

/// One that an old backup brings back, say.
#[tokio::test]
async fn a_session_of_another_epoch_is_not_valid_even_if_its_row_is_there() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let (ana, ..) = person(store, "ana").await;
    add_the_rest(store, &ana, "ana").await;
    let id = Digest::of(b"ana");
    assert!(store.session(id, NOW).await.unwrap().is_some());
    place.batch("UPDATE accounts SET epoch = epoch + 1").await;
    assert_eq!(store.session(id, NOW).await, Ok(None));
    assert_eq!(store.sessions(&ana.id, NOW).await, Ok(vec![]));
}
