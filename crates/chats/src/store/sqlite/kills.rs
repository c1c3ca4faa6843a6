//! Processes that are killed in the middle of writing, and what the file says afterwards.
//!
//! The test runs itself again as another process, which writes without end, and kills it. Then every row is compared with
//! every other that it must agree with, without any key.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use confidant_chat_format::{Digest, List, Manifest, chain, live};
use rusqlite::{Connection, params};

use super::super::conformance::device::{Device, Edit, message};
use super::super::conformance::fresh_folder;
use super::super::*;
use super::rows::{all, digest_at, value};
use super::{NAME, SqliteChats, write};

/// Whether everything agrees: lists with heads, chains with steps, hashes with envelopes, numbers without gaps.
pub(super) fn audit(folder: &Path) -> (usize, usize) {
    let c = Connection::open(folder.join(NAME)).unwrap();
    let numbers = |sql: &str| all(&c, sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let accounts = numbers("SELECT n FROM accounts");
    for account in &accounts {
        let newest: u64 = value(&c, "SELECT seq FROM accounts WHERE n = ?1", params![account]).unwrap();
        let sql = "SELECT seq FROM feed WHERE account = ?1 ORDER BY seq";
        assert!(
            all(&c, sql, params![account], |row| row.get::<_, u64>(0)).unwrap().into_iter().eq(1..=newest)
        );
        let sql = "SELECT hash FROM floors WHERE account = ?1 ORDER BY shelf";
        let floors = all(&c, sql, params![account], |row| digest_at(row, 0)).unwrap();
        let steps = "SELECT rev, live, chain, hash FROM list_steps WHERE account = ?1 ORDER BY rev";
        let manifest = "SELECT rev, chain, hash, envelope FROM manifests WHERE account = ?1";
        chained(&c, *account, steps, manifest, &Manifest::live(&floors.try_into().unwrap()));
    }
    let chats = numbers("SELECT n FROM chats");
    for chat in &chats {
        let list: List = write::list(&c, *chat).unwrap();
        let count: usize = value(&c, "SELECT count FROM chats WHERE n = ?1", params![chat]).unwrap();
        assert_eq!(list.len(), count);
        let sql = "SELECT gone = (SELECT count(*) FROM tombstones WHERE chat = n) FROM chats WHERE n = ?1";
        assert!(value::<bool, _>(&c, sql, params![chat]).unwrap());
        let steps = "SELECT rev, live, chain, hash FROM steps WHERE chat = ?1 ORDER BY rev";
        chained(&c, *chat, steps, "SELECT rev, chain, hash, head FROM chats WHERE n = ?1", &live(&list));
    }
    let sql = "SELECT i.hash, e.envelope FROM items AS i LEFT JOIN envelopes AS e ON e.n = i.envelope AND e.chat = i.chat";
    let items = all(&c, sql, [], |row| Ok((digest_at(row, 0)?, row.get::<_, Vec<u8>>(1)?))).unwrap();
    assert!(items.iter().all(|(hash, envelope)| *hash == Digest::of(envelope)));
    assert_eq!(numbers("SELECT count(*) FROM envelopes"), [i64::try_from(items.len()).unwrap()]);
    (chats.len(), items.len())
}

/// Whether the steps lead from nothing to the newest head or manifest, which has this list.
fn chained(c: &Connection, of: i64, steps: &str, newest: &str, list: &Digest) {
    let steps = all(c, steps, params![of], |row| {
        Ok((row.get::<_, u32>(0)?, digest_at(row, 1)?, digest_at(row, 2)?, digest_at(row, 3)?))
    });
    let mut at = (0, Digest::ZERO, Digest::ZERO, Digest::ZERO);
    for (rev, live, link, hash) in steps.unwrap() {
        assert_eq!((rev, link), (at.0 + 1, chain(&at.2, &at.3, &live)));
        at = (rev, live, link, hash);
    }
    let newest = all(c, newest, params![of], |row| {
        let hash = Digest::of(&row.get::<_, Vec<u8>>(3)?);
        assert_eq!(hash, digest_at(row, 2)?);
        Ok((row.get(0)?, *list, digest_at(row, 1)?, hash))
    });
    assert_eq!(newest.unwrap(), [at]);
}

/// Not a test: the process that is killed. It is alone in its folder, which has this file.
#[tokio::test]
#[ignore = "run by a_process_that_is_killed_leaves_whole_writes"]
async fn writes_until_it_is_killed() {
    if !Path::new(MAY_WRITE).exists() {
        return;
    }
    let store = SqliteChats::open(Path::new(".")).unwrap();
    let mut person = Device::register(&store, &format!("process {}", std::process::id())).await;
    loop {
        let chat = person.create(&store, 3).await;
        for round in 0..10 {
            let old = person.chats[&chat].items.keys().next().unwrap().clone();
            let mut edit =
                Edit { puts: vec![message(), message()], floor: round % 2 == 0, ..Edit::default() };
            edit.new_key = round % 4 == 3;
            edit.removes.extend((round % 3 == 2).then_some(old));
            person.put(&store, &chat, &edit).await.unwrap();
        }
        let (delete, after) = person.deletion(&chat);
        if person.chats.len() > 2 {
            store.delete_chat(delete).await.unwrap();
            person = after;
        }
    }
}

const MAY_WRITE: &str = "killed-process-may-write";

/// How many bytes the file and its journal have.
fn written(folder: &Path) -> u64 {
    let length = |name: String| std::fs::metadata(folder.join(name)).map_or(0, |file| file.len());
    length(NAME.to_owned()) + length(format!("{NAME}-wal"))
}

#[tokio::test]
async fn a_process_that_is_killed_leaves_whole_writes() {
    let folder = fresh_folder();
    std::fs::write(folder.path().join(MAY_WRITE), "").unwrap();
    let mut seen = 0;
    for round in 0..8_u32 {
        let spawn = || {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "--ignored", "store::sqlite::kills::writes_until_it_is_killed"])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let before = written(folder.path());
        // Two at once, so that one of them may be killed while the other waits for its lock.
        let mut children = [spawn(), spawn()];
        while written(folder.path()) == before {
            std::thread::sleep(Duration::from_millis(5));
        }
        // No moment is the right one: it is the disorder that is wanted.
        std::thread::sleep(Duration::from_millis(u64::from(20 + 37 * round)));
        for child in &mut children {
            assert_eq!(child.try_wait().unwrap(), None, "it has stopped by itself");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let store = SqliteChats::open(folder.path()).unwrap();
        store.check().await.unwrap();
        seen = audit(folder.path()).1;
    }
    assert!(seen > 0, "nobody has written anything");
}
