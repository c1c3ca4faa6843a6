//! `confidant doctor` on memories: how many artifacts it opens, and what it says of those that were damaged.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::home::{CONTENT, Home};

/// Stores a memory and returns its `cascade_uri`.
fn stored(home: &Home, name: &str) -> String {
    let session = json!({"summary": format!("Investigated {CONTENT} of {name}. We decided to roll back.")});
    let path = home.path("session.json");
    std::fs::write(&path, session.to_string()).unwrap();
    let ran = home.run(&["memory", "store", name, "--session", path.to_str().unwrap()]).done();
    ran.out.trim_end().to_owned()
}

fn blob(home: &Home, uri: &str) -> PathBuf {
    let hash = uri.trim_start_matches("cascade://");
    home.data("memory/blobs").join(&hash[..2]).join(&hash[2..4]).join(hash)
}

/// What a deep look says of the memory, and how it ends.
fn looked_at(home: &Home) -> (Vec<Value>, i32) {
    let ran = home.run(&["doctor", "--deep", "--json"]);
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains(CONTENT), "{text}");
    }
    let checks = ran.json();
    let checks = checks.as_array().unwrap().iter().filter(|check| check["name"] == "memory");
    (checks.cloned().collect(), ran.code)
}

/// The failed check that begins so names all of these.
#[track_caller]
fn names(checks: &[Value], begins: &str, uris: &[&String]) {
    let what = |check: &Value| check["what"].as_str().unwrap_or_default().to_owned();
    let Some(check) = checks.iter().find(|check| what(check).starts_with(begins)) else {
        panic!("{begins}: {checks:?}")
    };
    assert_eq!(check["state"], "fail", "{check}");
    assert!(check["hint"].as_str().is_some_and(|hint| hint.contains("forget them")), "{check}");
    assert!(uris.iter().all(|uri| what(check).contains(uri.as_str())), "{check}");
    assert_eq!(what(check).matches("cascade://").count(), uris.len(), "{check}");
}

#[test]
fn a_sound_memory_says_how_many_artifacts_were_opened() {
    let home = Home::new();
    stored(&home, "one");
    stored(&home, "two");
    for arguments in [&["doctor"][..], &["doctor", "--deep"]] {
        let told = home.run(arguments).done().out;
        assert!(told.contains("ok    memory: all open: 2 memories and 2 artifacts"), "{told}");
    }
    let (checks, code) = looked_at(&home);
    assert_eq!((checks.len(), code, &checks[0]["state"]), (1, 0, &"ok".into()));
}

#[test]
fn artifacts_that_were_removed_damaged_or_swapped_are_named_and_told_apart() {
    let home = Home::new();
    let [_, missing, flipped, folder, one, other] =
        ["sound", "missing", "flipped", "folder", "one", "other"].map(|name| stored(&home, name));
    std::fs::remove_file(blob(&home, &missing)).unwrap();
    let mut bytes = std::fs::read(blob(&home, &flipped)).unwrap();
    bytes[7] ^= 1;
    std::fs::write(blob(&home, &flipped), bytes).unwrap();
    std::fs::remove_file(blob(&home, &folder)).unwrap();
    std::fs::create_dir(blob(&home, &folder)).unwrap();
    let bytes = std::fs::read(blob(&home, &one)).unwrap();
    std::fs::rename(blob(&home, &other), blob(&home, &one)).unwrap();
    std::fs::write(blob(&home, &other), bytes).unwrap();

    let (checks, code) = looked_at(&home);
    assert_eq!((checks.len(), code), (3, 2), "{checks:?}");
    names(&checks, "artifacts that are missing from their store (1): ", &[&missing]);
    names(&checks, "artifacts that do not match their row in memory.db (3): ", &[&flipped, &one, &other]);
    names(&checks, "artifacts that cannot be opened (1): ", &[&folder]);
    // So few are a sample of their own.
    let told = home.run(&["doctor"]);
    assert_eq!(told.code, 2);
    assert!(
        told.out.contains("fail  memory: artifacts that are missing from their store (1)"),
        "{}",
        told.out
    );

    // The hint can be followed.
    std::fs::remove_dir(blob(&home, &folder)).unwrap();
    for uri in [&missing, &flipped, &folder, &one, &other] {
        home.run(&["memory", "forget", uri]).done();
    }
    let (checks, code) = looked_at(&home);
    assert_eq!((checks.len(), code), (1, 0), "{checks:?}");
    assert_eq!(checks[0]["what"], "all open: 1 memory and 1 artifact");
}

#[test]
fn rows_that_were_swapped_or_removed_are_found() {
    let home = Home::new();
    let (one, other) = (stored(&home, "one"), stored(&home, "other"));
    let change = |sql: &str| {
        Connection::open(home.data("memory/memory.db")).unwrap().execute_batch(sql).unwrap();
    };
    change(
        "CREATE TEMP TABLE was AS SELECT id, pointer FROM memories;
         UPDATE memories SET pointer = 'x' || pointer;
         UPDATE memories SET pointer = (SELECT was.pointer FROM was WHERE was.id <> memories.id);",
    );
    let (checks, code) = looked_at(&home);
    assert_eq!(code, 2, "{checks:?}");
    names(&checks, "memories that cannot be opened (2): ", &[&one, &other]);

    change("DELETE FROM memories WHERE id = 1");
    let (checks, code) = looked_at(&home);
    let told: Vec<&str> = checks.iter().filter_map(|check| check["what"].as_str()).collect();
    assert!(code == 2 && told.iter().any(|what| what.contains("a memory has a key, but no row")), "{told:?}");
}
