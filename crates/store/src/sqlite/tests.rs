//! What only this back end can get wrong: pointers, what folds leave behind, and what the writer thinks it knows.

use std::path::Path;

use confidant_seal::{Context, Key, Kid, Sealed, Suite, Tag, seal};
use rusqlite::Connection;

use super::{Durability, SqliteKeys, SqliteStore, records};
use crate::error::StoreError;
use crate::lane::Lane;
use crate::{
    Anchors as _, Append, Appended, Audit as _, Claims as _, DataKeys as _, Find, Instance, LaneAnchor,
    Logs as _, Names, PendingAudit, Upkeep as _,
};

fn tag(n: u8) -> Tag {
    Tag::from_bytes([n; 16])
}

fn sealed(text: &str) -> Sealed {
    let context = Context { purpose: "test", owner: "", container: "", object: "", field: "" };
    seal(&Key::from_bytes([7; 32]), Suite::ChaCha20Poly1305, &context, 1, text.as_bytes())
}

fn append(n: u8, expected: u64) -> Append {
    Append {
        names: Names { scope: tag(n), person: tag(100), tenant: tag(200) },
        name: None,
        kid: Kid::from_bytes([n; 8]),
        expected,
        entries: vec![sealed(&format!("{n} {expected} {}", "word ".repeat(200)))],
        snapshot: None,
        expires_at: None,
        owner: None,
        audit: Vec::new(),
    }
}

fn folding(n: u8, expected: u64) -> Append {
    Append { snapshot: Some((expected + 1, sealed("fold"))), ..append(n, expected) }
}

fn note() -> PendingAudit {
    PendingAudit::new(|place| sealed(&format!("{place:?}")))
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, Durability::Process).unwrap()
}

fn raw(folder: &Path) -> Connection {
    Connection::open(folder.join("confidant.db")).unwrap()
}

fn rows(folder: &Path) -> i64 {
    raw(folder).query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap()
}

async fn done(store: &SqliteStore, append: Append) {
    assert_eq!(store.append(append).await.unwrap(), Appended::Done);
}

/// Nobody is told that something is gone while a page of it may be in the journal.
#[tokio::test]
async fn scrubbing_waits_for_readers_and_says_when_it_could_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    done(&store, append(1, 0)).await;
    let journal = || std::fs::metadata(folder.path().join("confidant.db-wal")).unwrap().len();
    let reader = raw(folder.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM records;").unwrap();
    done(&store, append(1, 1)).await;
    assert_eq!(store.scrub().await, Err(StoreError::Busy));
    assert!(journal() > 0);
    drop(reader);
    store.scrub().await.unwrap();
    assert_eq!(journal(), 0);
}

/// SQLite leaves copies of rows in the unused part of pages that it splits or joins, whatever `secure_delete` says.
#[tokio::test]
async fn of_a_destroyed_key_no_copy_is_left_in_any_page() {
    for seed in 1..=4 {
        let folder = tempfile::tempdir().unwrap();
        let keys = SqliteKeys::open(folder.path()).unwrap();
        let file = folder.path().join("keyring.db");
        let other = Connection::open(&file).unwrap();
        let mut bytes = Bytes(seed);
        let mut rows: Vec<(Tag, Vec<u8>)> = Vec::new();
        for n in 0..600 {
            let (scope, key) = (bytes.take(16), bytes.take(150));
            let sql = "INSERT INTO session_keys VALUES (?1, 1, x'01', x'02', ?2, ?3, 0, NULL)";
            let length = [80, 120, 200][n % 3];
            other.execute(sql, rusqlite::params![scope, key, bytes.take(length)]).unwrap();
            rows.push((Tag::from_bytes(scope.try_into().unwrap()), key));
        }
        drop(other);
        let (gone, kept) = rows.split_at(200);
        let destroyed: Vec<Tag> = gone.iter().map(|(scope, _)| *scope).collect();
        assert_eq!(keys.destroy(&destroyed).await.unwrap(), 200);
        keys.scrub().await.unwrap();
        let mut left = std::fs::read(&file).unwrap();
        left.extend(std::fs::read(folder.path().join("keyring.db-wal")).unwrap_or_default());
        let is_left = |(_, key): &&(Tag, Vec<u8>)| left.windows(32).any(|window| *window == key[..32]);
        assert_eq!(gone.iter().filter(is_left).count(), 0, "seed {seed}");
        assert!(kept.iter().all(|row| is_left(&row)));
    }
}

/// Bytes that look random, and are the same in every run.
struct Bytes(u64);

impl Bytes {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0]
        };
        std::iter::repeat_with(next).take(count).collect()
    }
}

/// A walk ends wherever a pointer does not lead down to a record of the same log, and never elsewhere than there.
#[tokio::test]
async fn a_pointer_that_leads_elsewhere_ends_the_walk() {
    for (prev, walked) in [
        ("(SELECT id FROM records WHERE log = $one AND seq = 2)", vec![1, 2, 3, 4]),
        ("(SELECT id FROM records WHERE log = $two AND seq = 2)", vec![3, 4]),
        ("(SELECT id FROM records WHERE log = $one AND seq = 4)", vec![3, 4]),
        ("(SELECT id FROM records WHERE log IS NULL LIMIT 1)", vec![3, 4]),
        ("id", vec![3, 4]),
        ("0", vec![3, 4]),
        ("-1", vec![3, 4]),
        ("9223372036854775807", vec![3, 4]),
        ("'text'", vec![3, 4]),
        ("x'00'", vec![3, 4]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        store.record(vec![note()]).await.unwrap();
        for expected in 0..4 {
            done(&store, append(1, expected)).await;
            done(&store, append(2, expected)).await;
        }
        let log = |n: u8| i64::from_be_bytes([n; 8]).to_string();
        let sql = format!("UPDATE records SET prev = {prev} WHERE log = $one AND seq = 3");
        raw(folder.path()).execute_batch(&sql.replace("$one", &log(1)).replace("$two", &log(2))).unwrap();
        let loaded = store.load(tag(1), None).await.unwrap().unwrap();
        let seqs: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, walked, "{prev}");
        // Erasing goes all the way nevertheless, and takes nobody else's.
        store.erase(tag(1), None, vec![]).await.unwrap();
        assert_eq!(rows(folder.path()), 5, "{prev}");
        assert_eq!(store.load(tag(2), None).await.unwrap().unwrap().entries.len(), 4, "{prev}");
    }
}

/// What a fold replaced goes with the session, swept or not, and with the sweep, erased or not.
#[tokio::test]
async fn what_a_fold_replaced_goes_with_the_session_and_with_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in [1, 2, 3] {
        for expected in 0..10 {
            let write = if expected % 4 == 3 { folding(n, expected) } else { append(n, expected) };
            done(&store, write).await;
        }
    }
    let before = store.load(tag(2), None).await.unwrap();
    assert_eq!(rows(folder.path()), 3 * 8);
    assert_eq!(store.erase(tag(1), None, vec![]).await.unwrap(), 3);
    assert_eq!(rows(folder.path()), 2 * 8);
    store.tidy().await.unwrap();
    assert_eq!((rows(folder.path()), store.load(tag(2), None).await.unwrap()), (2 * 2, before));
    // Where everything is covered, the head is swept, too; the log goes on all the same.
    done(&store, folding(2, 10)).await;
    store.tidy().await.unwrap();
    assert_eq!(rows(folder.path()), 2);
    done(&store, append(2, 11)).await;
    done(&store, append(2, 12)).await;
    let seqs = |entries: &[(u64, Sealed)]| entries.iter().map(|(seq, _)| *seq).collect::<Vec<_>>();
    assert_eq!(seqs(&store.load(tag(2), None).await.unwrap().unwrap().entries), [12, 13]);
    assert_eq!(store.erase(tag(2), None, vec![]).await.unwrap(), 3);
    assert_eq!(store.erase(tag(3), None, vec![]).await.unwrap(), 3);
    assert_eq!(rows(folder.path()), 0);
}

/// A fold that covers less than everything leaves the rest of the chain as it is.
#[tokio::test]
async fn a_fold_may_cover_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for expected in 0..6 {
        done(&store, append(1, expected)).await;
    }
    done(&store, Append { snapshot: Some((4, sealed("fold"))), ..append(1, 6) }).await;
    let before = store.load(tag(1), None).await.unwrap().unwrap();
    assert_eq!(before.entries.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [5, 6, 7]);
    store.tidy().await.unwrap();
    assert_eq!((rows(folder.path()), store.load(tag(1), None).await.unwrap()), (3, Some(before)));
}

/// However long conversations go on, the file stays about as large as what they hold.
#[tokio::test]
async fn the_file_does_not_grow_with_what_was_folded() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (mut version, mut sizes) = (0, Vec::new());
    for round in 0..12 {
        for turn in 0..40 {
            for n in 1..=20 {
                let write = if turn % 20 == 19 { folding(n, version) } else { append(n, version) };
                done(&store, write).await;
            }
            version += 1;
        }
        if round % 3 == 2 {
            store.tidy().await.unwrap();
            store.scrub().await.unwrap();
            sizes.push(std::fs::metadata(folder.path().join("confidant.db")).unwrap().len());
        }
    }
    assert!(sizes[3] <= sizes[0] + sizes[0] / 4, "{sizes:?}");
    assert_eq!(rows(folder.path()), 0);
}

/// Enough folds sweep themselves, without anybody asking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_folds_are_swept_beside_the_turns() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 1..=5 {
        for expected in 0..1000 {
            done(&store, Append { entries: vec![sealed("x")], ..append(n, expected) }).await;
        }
        done(&store, folding(n, 1000)).await;
    }
    // The sweep has its own thread; whoever writes after it has waited for it.
    for expected in 1001.. {
        if rows(folder.path()) < 1000 {
            break;
        }
        assert!(expected < 20_000, "nobody swept");
        done(&store, append(1, expected)).await;
    }
}

/// Two processes on one file, or two stores: what one has written is known to the other's next write.
#[tokio::test]
async fn writers_of_one_file_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let mut version = 0;
    for _ in 0..5 {
        done(&one, Append { audit: vec![note()], ..append(1, version) }).await;
        done(&other, Append { audit: vec![note()], ..append(1, version + 1) }).await;
        assert_eq!(one.append(append(1, version + 1)).await.unwrap(), Appended::Conflict);
        version += 2;
    }
    let (first, second) = (Instance([1; 16]), Instance([2; 16]));
    let owner = Some(first.into());
    done(&one, Append { owner, ..append(1, version) }).await;
    assert!(other.claim(tag(1), first.into(), second).await.unwrap());
    done(&one, Append { owner, ..append(1, version + 1) }).await;
    assert_eq!(other.load(tag(1), None).await.unwrap().unwrap().owner, owner);
    done(&one, folding(1, version + 2)).await;
    other.tidy().await.unwrap();
    done(&one, append(1, version + 3)).await;
    let seqs: Vec<u64> = other.audit(Lane::ZERO, 0, 100).await.unwrap().iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=10).collect::<Vec<_>>());
    assert_eq!(other.erase(tag(1), None, vec![]).await.unwrap(), 2);
    assert_eq!(one.append(append(1, version + 4)).await.unwrap(), Appended::Conflict);
    done(&one, append(1, 0)).await;
    assert_eq!(other.load(tag(1), None).await.unwrap().unwrap().entries.len(), 1);
}

/// A write that was undone is not remembered as done.
#[tokio::test]
async fn what_was_undone_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    done(&store, Append { audit: vec![note()], ..append(1, 0) }).await;
    let undone = store.writer.write_with(|c, known| {
        records::append(c, known, &Append { audit: vec![note()], ..append(1, 1) })?;
        Err::<(), _>(rusqlite::Error::InvalidQuery)
    });
    assert!(undone.await.is_err());
    assert_eq!(store.append(append(1, 2)).await.unwrap(), Appended::Conflict);
    done(&store, Append { audit: vec![note()], ..append(1, 1) }).await;
    assert_eq!(store.record(vec![note()]).await.unwrap().unwrap().seq, 3);
}

/// Audit records are found by their sequence between all the others, also where those were swept away.
#[tokio::test]
async fn the_audit_chain_pages_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for expected in 0..30 {
        let audit = (0..expected % 3).map(|_| note()).collect();
        let write = if expected % 7 == 6 { folding(1, expected) } else { append(1, expected) };
        done(&store, Append { audit, ..write }).await;
        if expected == 20 {
            store.tidy().await.unwrap();
        }
    }
    for after in 0..=31 {
        let seqs: Vec<u64> =
            store.audit(Lane::ZERO, after, 4).await.unwrap().iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (after + 1..=30).take(4).collect::<Vec<_>>(), "after {after}");
    }
}

/// A session's newest record is found by everybody at every moment, whether or not its row says so yet.
#[tokio::test]
async fn a_head_is_found_before_and_after_it_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    let mut stale = 0;
    for expected in 0..150_u64 {
        for n in 1..=3 {
            let audit = (0..(expected + u64::from(n)) % 3).map(|_| note()).collect();
            let writer = if expected % 40 < 30 { &one } else { &other };
            let write = if expected % 50 == 49 { folding(n, expected) } else { append(n, expected) };
            done(writer, Append { audit, ..write }).await;
            if expected % 13 == 7 {
                one.tidy().await.unwrap();
            }
            let loaded = other.load(tag(n), None).await.unwrap().unwrap();
            let covers = loaded.snapshot.map_or(0, |(covers, _)| covers);
            let seqs: Vec<u64> = loaded.entries.iter().map(|(seq, _)| *seq).collect();
            assert_eq!((loaded.version, seqs), (expected + 1, (covers + 1..=expected + 1).collect()));
            let listed = other.list(Find::All, None, 10).await.unwrap();
            assert_eq!(listed[usize::from(n) - 1].version, expected + 1);
            let row = "SELECT version FROM sessions WHERE scope_tag = ?1";
            let row: u64 = raw(folder.path()).query_row(row, [[n; 16]], |row| row.get(0)).unwrap();
            stale += u64::from(row != expected + 1);
        }
    }
    assert!(stale > 300, "nothing was put off: {stale}");
    // Ids at the end that are given again, because those who had them were erased, mislead nobody.
    for again in 0..40 {
        for n in 1..=3 {
            let gone = one.erase(tag(n), None, vec![]).await.unwrap();
            assert_eq!(gone, if again == 0 { 1 } else { 2 }, "session {n}, time {again}");
            let kid = Kid::from_bytes([n + 10 * (again % 20 + 1); 8]);
            for expected in 0..2 {
                done(&other, Append { kid, ..append(n, expected) }).await;
            }
            assert_eq!(one.load(tag(n), None).await.unwrap().unwrap().entries.len(), 2);
        }
    }
    assert!(
        raw(folder.path())
            .query_row("SELECT count(*) FROM records WHERE log IS NOT NULL", [], |row| row.get::<_, i64>(0))
            .unwrap()
            == 6
    );
}

/// A keyring from before there were lanes has seen one chain: it is lane 0 now.
#[tokio::test]
async fn an_old_keyring_keeps_what_it_has_seen_of_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    drop(SqliteKeys::open(folder.path()).unwrap());
    let old = Connection::open(folder.path().join("keyring.db")).unwrap();
    old.execute_batch(
        "DROP TABLE lane_anchors;
         ALTER TABLE session_keys DROP COLUMN expires_at;
         CREATE TABLE audit_anchor (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL);
         INSERT INTO audit_anchor VALUES (1, 7);
         PRAGMA user_version = 1",
    )
    .unwrap();
    let keys = SqliteKeys::open(folder.path()).unwrap();
    assert_eq!(keys.lane_anchors().await.unwrap(), [LaneAnchor { lane: Lane::ZERO, until: None, seq: 7 }]);
}

/// Neither file is opened by a program that does not know what a newer one has made of it, and neither is changed by trying.
#[test]
fn files_of_a_newer_version_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop((open(folder.path()), SqliteKeys::open(folder.path()).unwrap()));
    for name in ["confidant.db", "keyring.db"] {
        let path = folder.path().join(name);
        let newer = Connection::open(&path).unwrap();
        let version: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        newer.pragma_update(None, "user_version", version + 1).unwrap();
        drop(newer);
        let before = std::fs::read(&path).unwrap();
        let refused = match name {
            "confidant.db" => SqliteStore::open(folder.path(), Durability::Power).err(),
            _ => SqliteKeys::open(folder.path()).err(),
        };
        assert_eq!(refused, Some(StoreError::Newer), "{name}");
        assert!(std::fs::read(&path).unwrap() == before, "{name} was changed");
    }
}

/// Whoever opens them, the program or another that uses the engine.
#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let _open = (open(folder.path()), SqliteKeys::open(folder.path()).unwrap());
    for name in ["confidant.db", "confidant.db-wal", "keyring.db", "keyring.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
