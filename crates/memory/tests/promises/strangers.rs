//! Promise 1 by property: whatever owners store, ask, open and forget, and whatever is swapped between their rows, keys,
//! blobs and indexes, nobody ever sees a word of another's.
//!
//! Every owner has a word of their own, which stands in whatever they store. The names of owners, the ids of sessions and
//! the queries are such as would collide if parts were joined carelessly, or mean something if they were syntax.

use std::collections::BTreeMap;

use confidant_memory::api::Forget;
use confidant_memory::{Error, Memory, OwnMemory, Owner};
use confidant_seal::{TenantId, UserId};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;
use serde_json::json;

use crate::support::{Place, query, request};

/// Tenant, user, and the word in all that is theirs.
const OWNERS: [(&str, &str, &str); 6] = [
    ("acme", "alice", "zanzibarite"),
    ("acme", "Alice", "quillborne"),
    ("acm", "ealice", "marlinspike"),
    ("acme:alice", "main", "halyardine"),
    ("acme", "alice:main", "brontolith"),
    ("other", "alice", "wolframene"),
];
const SESSIONS: [&str; 6] = ["demo-001", "alice", "../demo-001", "%", "' OR owner <> '", "cascade://demo"];
const QUERIES: [&str; 12] = [
    "",
    "deployed staging",
    "zanzibarite quillborne marlinspike halyardine brontolith wolframene",
    "*",
    "\"",
    "owner:alice OR title:*",
    "zanzibarit~2 [a TO z] -(x",
    "' UNION SELECT * FROM memories --",
    "quilborn marlinspikes",
    "acme:alice",
    "\u{0}\u{202e}",
    "demo-001",
];

#[derive(Clone, Debug)]
enum Step {
    Store { who: usize, session: usize, around: String },
    Query { who: usize, text: String },
    Retrieve { who: usize, which: prop::sample::Index },
    ForgetOne { who: usize, which: prop::sample::Index },
    ForgetSession { who: usize, session: usize },
    Erase { who: usize },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = 0..OWNERS.len();
    let session = 0..SESSIONS.len();
    let text = prop_oneof![
        4 => prop::sample::select(&QUERIES[..]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let wordless = |text: &String| OWNERS.iter().all(|(.., word)| !text.contains(word));
    let around = text.clone().prop_filter("it has no owner's word in it", wordless);
    let around = prop_oneof![3 => Just(String::new()), 2 => around];
    let which = any::<prop::sample::Index>;
    let step = prop_oneof![
        12 => (who.clone(), session.clone(), around)
            .prop_map(|(who, session, around)| Step::Store { who, session, around }),
        8 => (who.clone(), text).prop_map(|(who, text)| Step::Query { who, text }),
        6 => (who.clone(), which()).prop_map(|(who, which)| Step::Retrieve { who, which }),
        3 => (who.clone(), which()).prop_map(|(who, which)| Step::ForgetOne { who, which }),
        2 => (who.clone(), session).prop_map(|(who, session)| Step::ForgetSession { who, session }),
        1 => who.prop_map(|who| Step::Erase { who }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, STEPS)
}

/// What there should be: by uri, whose it is, of which session, and what it says.
type Known = BTreeMap<String, (usize, usize, String)>;

#[tokio::test]
async fn promise_1_nobody_ever_sees_another_owners_word() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..HISTORIES {
        let mut world = World::new();
        for (at, step) in steps().new_tree(&mut runner).unwrap().current().into_iter().enumerate() {
            world.take(step, at).await;
        }
        for who in 0..OWNERS.len() {
            everything_of_their_own(&world.of(who), who, &world.known).await;
        }
        assert_eq!(world.place.shelf.len(), world.known.len(), "a blob for each memory, and no other");
        assert!(world.stored >= STEPS / 4, "only {} were stored: there was little to see", world.stored);
    }
}

struct World {
    place: Place,
    memory: Memory,
    known: Known,
    /// Names that nobody has any more or ever had, to be asked for again.
    gone: Vec<String>,
    stored: usize,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let gone = vec!["cascade://".to_owned(), format!("cascade://{}", "0".repeat(64))];
        Self { memory: place.open(), place, known: Known::new(), gone, stored: 0 }
    }

    fn of(&self, who: usize) -> OwnMemory {
        of(&self.memory, who)
    }

    async fn take(&mut self, step: Step, at: usize) {
        match step {
            Step::Store { who, session, around } => self.store(who, session, &around, at).await,
            Step::Query { who, text } => {
                only_own(who, &self.of(who).query(&query(&text)).await.unwrap());
                only_own(who, &self.of(who).list(&query("")).await.unwrap());
            }
            Step::Retrieve { who, which } => self.retrieve(who, &self.pick(which)).await,
            Step::ForgetOne { who, which } => self.forget_one(who, self.pick(which)).await,
            Step::ForgetSession { who, session } => self.forget_session(who, session).await,
            Step::Erase { who } => {
                let erased = self.memory.erase(&owner(who)).await.unwrap();
                assert_eq!(erased.memories, self.drop_known(|it| it.0 == who).len() as u64);
            }
            Step::Restart => self.memory = self.place.open(),
        }
    }

    async fn store(&mut self, who: usize, session: usize, around: &str, at: usize) {
        let marker = format!("{}{at}", OWNERS[who].2);
        let text = format!("Deployed {marker} to staging. {around}");
        let wish = request(SESSIONS[session], &json!({ "summary": text }));
        match self.of(who).store(&wish).await {
            Ok(kept) => {
                only_own(who, &kept);
                self.known.insert(kept.cascade_uri, (who, session, marker));
                self.stored += 1;
            }
            Err(error) => assert_eq!(error.code(), "blocked", "{error}"),
        }
    }

    async fn retrieve(&self, who: usize, uri: &str) {
        let found = self.of(who).retrieve(uri, None).await;
        match self.known.get(uri).filter(|(owner, ..)| *owner == who) {
            Some((.., marker)) => {
                let found = found.unwrap();
                only_own(who, &found);
                assert!(found.artifact.to_string().contains(marker));
            }
            None => refused(found.err().as_ref()),
        }
    }

    async fn forget_one(&mut self, who: usize, uri: String) {
        let forgotten = self.of(who).forget(&Forget::Uri(uri.clone()), false).await;
        let Some((_, session, marker)) = self.known.get(&uri).filter(|(owner, ..)| *owner == who).cloned()
        else {
            return refused(forgotten.err().as_ref());
        };
        // The newest of a session takes with it those that it stands in for.
        let of_session = |it: &(usize, usize, String)| (it.0, it.1) == (who, session);
        let step = |marker: &str| marker[OWNERS[who].2.len()..].parse::<usize>().unwrap();
        let mut others = self.known.values().filter(|it| of_session(it));
        let is_newest = others.all(|it| step(&it.2) <= step(&marker));
        let mut expected = self.drop_known(|it| of_session(it) && (is_newest || it.2 == marker));
        let mut uris = forgotten.unwrap().cascade_uris;
        uris.sort_unstable();
        expected.sort_unstable();
        assert_eq!(uris, expected);
    }

    async fn forget_session(&mut self, who: usize, session: usize) {
        let what = Forget::Session(SESSIONS[session].to_owned());
        let forgotten = self.of(who).forget(&what, false).await;
        let expected = self.drop_known(|it| (it.0, it.1) == (who, session));
        match forgotten {
            Ok(forgotten) => {
                let mut uris = forgotten.cascade_uris;
                uris.sort_unstable();
                assert_eq!(uris, expected);
            }
            Err(error) => assert!(error.code() == "not_found" && expected.is_empty(), "{error}"),
        }
    }

    /// Strikes off what should be gone now.
    fn drop_known(&mut self, is_gone: impl Fn(&(usize, usize, String)) -> bool) -> Vec<String> {
        let uris: Vec<String> = self.known.extract_if(.., |_, it| is_gone(it)).map(|(uri, _)| uri).collect();
        self.gone.extend(uris.iter().cloned());
        uris
    }

    /// Any name that was ever handed out, and some that never were.
    fn pick(&self, which: prop::sample::Index) -> String {
        let all: Vec<&String> = self.known.keys().chain(&self.gone).collect();
        which.get(&all).to_string()
    }
}

/// Exactly what is theirs, by every way to it.
async fn everything_of_their_own(own: &OwnMemory, who: usize, known: &Known) {
    let exported = own.export().await.unwrap();
    only_own(who, &exported);
    let mut uris: Vec<&str> = exported.iter().map(|one| one["cascade_uri"].as_str().unwrap()).collect();
    uris.sort_unstable();
    let theirs = known.iter().filter(|(_, (owner, ..))| *owner == who).map(|(uri, _)| uri.as_str());
    assert_eq!(uris, theirs.collect::<Vec<_>>());
    assert_eq!(own.count().await.unwrap(), uris.len() as u64);
    let listed = own.list(&query("")).await.unwrap();
    only_own(who, &listed);
    assert!(listed.hits.iter().all(|hit| uris.contains(&hit.cascade_uri.as_str())));
    assert_eq!(listed.hits.is_empty(), uris.is_empty());
    let found = own.query(&query(OWNERS[who].2)).await.unwrap();
    only_own(who, &found);
}

/// What can be exchanged between two owners by somebody who can write to the disk.
#[derive(Clone, Copy, Debug)]
enum Swap {
    /// Whose rows they are.
    RowOwners,
    /// Whose rows and whose artifact keys they are.
    RowAndKeyOwners,
    /// All texts of the rows.
    Texts,
    /// Rows and the artifacts that they are of.
    Artifacts,
    /// Rows and the blobs that they name.
    Pointers,
    /// The keys of the artifacts.
    ArtifactKeys,
    /// The keys of the owners.
    OwnerKeys,
    /// The bytes of the blobs.
    Blobs,
    /// The folders of the search indexes.
    Indexes,
    /// The folders of the search indexes with the keys of their files.
    IndexesAndKeys,
}

const SWAPS: [Swap; 10] = [
    Swap::RowOwners,
    Swap::RowAndKeyOwners,
    Swap::Texts,
    Swap::Artifacts,
    Swap::Pointers,
    Swap::ArtifactKeys,
    Swap::OwnerKeys,
    Swap::Blobs,
    Swap::Indexes,
    Swap::IndexesAndKeys,
];

#[tokio::test]
async fn promise_1_nothing_that_is_swapped_between_owners_opens() {
    for swap in SWAPS {
        let place = Place::new();
        let memory = place.open();
        let uris = both_remember(&memory).await;
        if matches!(swap, Swap::Indexes | Swap::IndexesAndKeys) {
            both_have_an_index(&memory, &place).await;
        }
        exchange(&place, swap);
        // A process that has them open, and one that reads them now.
        for memory in [memory, place.open()] {
            for who in [0, 1] {
                strangers_see_nothing(&of(&memory, who), who, &uris, swap).await;
            }
        }
    }
}

async fn both_remember(memory: &Memory) -> Vec<String> {
    let mut uris = Vec::new();
    for who in [0, 1] {
        let own = of(memory, who);
        let text = format!("Deployed {}7 to staging.", OWNERS[who].2);
        let stored = own.store(&request("demo-001", &json!({ "summary": text }))).await.unwrap();
        uris.push(stored.cascade_uri);
        assert_eq!(own.query(&query("staging")).await.unwrap().hits.len(), 1);
    }
    uris
}

/// Indexes are only written to disk when there is enough to write.
async fn both_have_an_index(memory: &Memory, place: &Place) {
    for at in 0..MANY {
        for who in [0, 1] {
            let text = format!("Planted {} in row {at} of the orchard.", OWNERS[who].2);
            of(memory, who).store(&request(&format!("row-{at}"), &json!({ "summary": text }))).await.unwrap();
        }
    }
    let index = place.folder.path().join("memory/index");
    // They are written beside other work, and are there when a search has waited for them.
    for who in [0, 1] {
        while std::fs::read_dir(&index).map_or(0, Iterator::count) <= who {
            of(memory, who).query(&query("orchard")).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
}

async fn strangers_see_nothing(own: &OwnMemory, who: usize, uris: &[String], swap: Swap) {
    for text in ["staging", OWNERS[0].2, OWNERS[1].2, ""] {
        // A search that meets what does not open may fail, but shows nothing of it.
        if let Ok(hits) = own.query(&query(text)).await {
            only_own(who, &hits);
        }
    }
    if let Ok(exported) = own.export().await {
        only_own(who, &exported);
    }
    let other = own.retrieve(&uris[1 - who], None).await;
    refused(other.as_ref().err());
    let found = own.retrieve(&uris[who], None).await;
    match swap {
        // The index has nothing that is not in the rows, and is made anew.
        Swap::Indexes | Swap::IndexesAndKeys => {
            only_own(who, &found.unwrap());
            let hits = own.query(&query("staging")).await.unwrap().hits;
            assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&uris[who]], "{swap:?}");
            assert_eq!(own.query(&query("orchard")).await.unwrap().hits.len(), 5);
        }
        _ => refused(found.err().as_ref()),
    }
}

fn exchange(place: &Place, swap: Swap) {
    let rows = || Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
    let keys = || Connection::open(place.folder.path().join("keys/memory-keys.db")).unwrap();
    match swap {
        Swap::RowOwners => exchange_columns(&rows(), "memories", &["owner"]),
        Swap::RowAndKeyOwners => {
            exchange_columns(&rows(), "memories", &["owner"]);
            exchange_columns(&keys(), "artifacts", &["owner"]);
        }
        Swap::Texts => {
            let texts = [
                "tags_json",
                "source_session_id",
                "source_tool",
                "title",
                "snippet",
                "metadata_json",
                "locator",
            ];
            exchange_columns(&rows(), "memories", &texts);
        }
        Swap::Artifacts => exchange_columns(&rows(), "memories", &["artifact"]),
        Swap::Pointers => exchange_columns(&rows(), "memories", &["pointer", "content_hash"]),
        Swap::ArtifactKeys => exchange_columns(&keys(), "artifacts", &["sealed_key"]),
        Swap::OwnerKeys => exchange_columns(&keys(), "owners", &["sealed_key"]),
        Swap::Blobs => {
            let mut blobs = place.shelf.blobs.lock().unwrap();
            let mut bytes: Vec<Vec<u8>> = blobs.values().cloned().collect();
            bytes.rotate_left(1);
            blobs.values_mut().zip(bytes).for_each(|(blob, other)| *blob = other);
        }
        Swap::Indexes => exchange_indexes(place),
        Swap::IndexesAndKeys => {
            exchange_indexes(place);
            exchange_owners_of_files(&keys());
        }
    }
}

/// Exchanges columns between the two rows of a table.
fn exchange_columns(db: &Connection, table: &str, columns: &[&str]) {
    let names = columns.join(", ");
    // Tables without row numbers are told by their first column, which is not exchanged.
    let key = if table == "artifacts" {
        "id"
    } else if table == "owners" {
        "owner"
    } else {
        "rowid"
    };
    let mut rows: Vec<(SqlValue, Vec<SqlValue>)> = {
        let mut statement = db.prepare(&format!("SELECT {key}, {names} FROM {table}")).unwrap();
        let read = statement.query_map([], |row| {
            Ok((row.get(0)?, (1..=columns.len()).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?))
        });
        read.unwrap().collect::<rusqlite::Result<_>>().unwrap()
    };
    let [(_, one), (_, other)] = &mut rows[..] else { panic!("two rows of {table}") };
    assert_ne!(one, other);
    std::mem::swap(one, other);
    // Some are unique: out of the way first.
    for column in columns {
        db.execute(&format!("UPDATE {table} SET {column} = randomblob(16)"), []).unwrap();
    }
    let set: Vec<String> =
        columns.iter().enumerate().map(|(at, name)| format!("{name} = ?{}", at + 2)).collect();
    for (id, values) in rows {
        let sql = format!("UPDATE {table} SET {} WHERE {key} = ?1", set.join(", "));
        assert_eq!(db.execute(&sql, params_from_iter(std::iter::once(id).chain(values))).unwrap(), 1);
    }
}

fn exchange_indexes(place: &Place) {
    let index = place.folder.path().join("memory/index");
    let folders: Vec<_> = std::fs::read_dir(&index).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [one, other] = &folders[..] else { panic!("an index for each owner, not {}", folders.len()) };
    let aside = index.join("aside");
    std::fs::rename(one, &aside).unwrap();
    std::fs::rename(other, one).unwrap();
    std::fs::rename(&aside, other).unwrap();
}

fn exchange_owners_of_files(keys: &Connection) {
    keys.execute_batch(
        // At once: somebody may still be taking in what was stored, and make a key meanwhile.
        "BEGIN IMMEDIATE;
         CREATE TEMP TABLE two AS SELECT min(owner) AS one, max(owner) AS other FROM owners;
         CREATE TEMP TABLE exchanged AS
             SELECT CASE owner WHEN one THEN other ELSE one END AS owner, name, sealed_key FROM files, two;
         DELETE FROM files;
         INSERT INTO files SELECT owner, name, sealed_key FROM exchanged;
         COMMIT;",
    )
    .unwrap();
}

fn owner(who: usize) -> Owner {
    let (tenant, user, _) = OWNERS[who];
    Owner { tenant: TenantId::new(tenant).unwrap(), user: UserId::new(user).unwrap() }
}

fn of(memory: &Memory, who: usize) -> OwnMemory {
    memory.of(owner(who), "test")
}

#[track_caller]
fn only_own(who: usize, said: &impl Serialize) {
    let said = serde_json::to_string(said).unwrap();
    for (at, (.., word)) in OWNERS.iter().enumerate() {
        assert!(at == who || !said.contains(word), "{who} sees the word of {at}: {said}");
    }
}

/// Not there for this owner, or not what it says it is; and in neither case a word of anybody.
#[track_caller]
fn refused(error: Option<&Error>) {
    let error = error.expect("it is another's, gone, or swapped");
    assert!(["not_found", "tampered", "invalid"].contains(&error.code()), "{error}");
    assert!(OWNERS.iter().all(|(.., word)| !error.to_string().contains(word)), "{error}");
}

/// So many are written to an index on disk.
const MANY: usize = 300;
const HISTORIES: usize = 6;
const STEPS: usize = 120;
