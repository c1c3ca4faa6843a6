//! A person's rights over their memories: exported with what is in them, and ended with rows, index, blobs and keys.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::home::{Home, Ran, Server};

/// Words of alice's first session, of her transcript, and of bob's session.
const CARD: &str = "marlinspike";
const TRANSCRIPT: &str = "halyardine";
const BOBS: &str = "brontolith";
/// So many are written to an index on disk.
const MANY: usize = 300;

/// Stores a session of a person; gives the memory's name.
fn remember(home: &Home, user: &str, id: &str, session: &serde_json::Value, more: &[&str]) -> String {
    let file = home.path("session.json");
    fs::write(&file, session.to_string()).unwrap();
    let store = ["memory", "store", id, "--session", file.to_str().unwrap(), "--user", user];
    let stored = home.run(&[&store[..], more].concat()).done();
    fs::remove_file(file).unwrap();
    stored.out.trim_end().to_owned()
}

/// Alice has two memories, one with its transcript, and a conversation; bob has a memory.
fn remembered() -> (Home, Vec<String>, String) {
    let home = Home::new();
    home.alice("Hello, I'm Alice").done();
    let card = json!({"summary": format!("Moved {CARD} to the new cluster."), "tags": ["harbour"]});
    let spoken = json!({
        "summary": "Looked at the rigging.",
        "messages": [{"role": "user", "content": format!("Please splice the {TRANSCRIPT} once more, then rest")}],
    });
    let raw = ["--raw", "--i-understand-the-risk", "--metadata", "team=riggers"];
    let hers = vec![
        remember(&home, "alice", "demo-001", &card, &[]),
        remember(&home, "alice", "demo-002", &spoken, &raw),
    ];
    let his = json!({"summary": format!("Moved {BOBS} to the new cluster.")});
    let his = remember(&home, "bob", "demo-001", &his, &[]);
    for user in ["alice", "bob"] {
        home.run(&["memory", "query", "cluster", "--user", user]).done();
    }
    (home, hers, his)
}

/// Gives both so many more that a search index is written to disk.
fn remember_many(home: &Home) {
    let session =
        |at: usize| json!({"tool_name": "notes", "summary": format!("Planted row {at} of the orchard.")});
    let sessions: serde_json::Map<_, _> = (0..MANY).map(|at| (format!("row-{at}"), session(at))).collect();
    let file = home.path("sessions.json");
    fs::write(&file, json!(sessions).to_string()).unwrap();
    for user in ["alice", "bob"] {
        let import = ["memory", "import", file.to_str().unwrap(), "--user", user, "--json"];
        assert_eq!(home.run(&import).done().json()["stored"], MANY);
        home.run(&["memory", "query", "orchard", "--user", user]).done();
    }
    fs::remove_file(file).unwrap();
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn names(export: &Ran) -> Vec<String> {
    let memories = export.json()["memories"].as_array().cloned().unwrap_or_default();
    memories.iter().map(|memory| memory["cascade_uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_export_has_a_persons_memories_with_all_that_is_in_them() {
    let (home, hers, his) = remembered();
    let export = home.run(&["person", "export", "alice"]).done();
    assert_eq!(names(&export), hers);
    let memories = &export.json()["memories"];
    let (first, second) = (&memories[0], &memories[1]);
    assert!(first["memory_card"].to_string().contains(CARD), "{first}");
    assert_eq!((&first["session_id"], &first["tags"]), (&json!("demo-001"), &json!(["harbour"])));
    assert_eq!(second["artifact_type"], "raw_plus_artifact");
    assert!(second["raw_session"].to_string().contains(TRANSCRIPT), "{second}");
    assert_eq!(second["metadata"], json!({"team": "riggers"}));
    assert!(!export.out.contains(BOBS) && !export.out.contains(&his));
    let export = home.run(&["person", "export", "bob"]).done();
    assert_eq!(names(&export), [his]);
    assert!(!export.out.contains(CARD) && !export.out.contains(TRANSCRIPT));
    home.run(&["person", "export", "alice", "--tenant", "other"]).nothing_found();
    let audit = home.run(&["audit", "show"]).done().out;
    assert!(audit.contains("person.exported") && !audit.contains(CARD), "{audit}");
}

#[test]
fn an_export_says_which_memory_it_could_not_fetch_and_has_the_rest() {
    let (home, hers, _) = remembered();
    fs::remove_dir_all(home.data("memory/blobs")).unwrap();
    let export = home.run(&["person", "export", "alice"]);
    assert_eq!(export.code, 2, "{}", export.err);
    assert!(export.err.contains("2 items could not be fetched completely"), "{}", export.err);
    assert_eq!(names(&export), hers);
    let memories = &export.json()["memories"];
    assert!(memories[0]["memory_card"].to_string().contains(CARD));
    assert_eq!(
        (&memories[1]["unreadable"], &memories[1]["raw_session"]),
        (&json!("not_found"), &json!(null))
    );
}

#[test]
fn an_erased_person_has_no_memories_and_the_receipt_counts_them() {
    let (home, hers, his) = remembered();
    remember_many(&home);
    let (blobs, index) = (home.data("memory/blobs"), home.data("memory/index"));
    let kept = || (files(&blobs), fs::read_dir(&index).unwrap().count());
    assert_eq!(kept(), (3 + 2 * MANY, 2));
    let yesterday = tempfile::tempdir().unwrap();
    copy(&home.data("memory"), yesterday.path());

    let dry = home.run(&["person", "erase", "alice", "--dry-run"]).done();
    assert_eq!(dry.out, format!("would erase 1 session, {} memories and their keys\n", 2 + MANY));
    let dry = home.run(&["person", "erase", "alice", "--dry-run", "--json"]).done().json();
    assert_eq!(dry["derived"], json!({"memories": 2 + MANY}));
    let export = names(&home.run(&["person", "export", "alice"]).done());
    assert!(export.starts_with(&hers) && export.len() == 2 + MANY, "a dry run erases nothing");

    let receipt = home.run(&["person", "erase", "alice"]).done();
    let told = receipt.json();
    assert_eq!((&told["sessions"], &told["derived"]), (&json!(1), &json!({"memories": 2 + MANY})));
    assert!(!receipt.out.contains("alice"));
    fs::write(home.path("receipt.json"), &receipt.out).unwrap();
    let verify = ["audit", "verify", "--receipt", "receipt.json"];
    assert!(home.run(&verify).done().out.contains("the receipt is genuine"));
    let fewer = receipt.out.replace(&format!("\"memories\": {}", 2 + MANY), "\"memories\": 2");
    assert_ne!(fewer, receipt.out);
    fs::write(home.path("receipt.json"), fewer).unwrap();
    home.run(&verify).failed("signature is not valid", "unchanged");

    assert_eq!(kept(), (1 + MANY, 1));
    gone(&home, &hers);
    untouched(&home, &his);
    // Yesterday's rows, index and blobs with today's keys: nothing of hers opens, and all of his does.
    fs::remove_dir_all(home.data("memory")).unwrap();
    copy(yesterday.path(), &home.data("memory"));
    assert_eq!(kept(), (3 + 2 * MANY, 2));
    gone(&home, &hers);
    untouched(&home, &his);
    let again = home.run(&["person", "erase", "alice"]);
    assert_eq!(
        again.json()["derived"],
        json!({"memories": 2 + MANY}),
        "the rows of the backup can be ended as well"
    );
    assert_eq!(kept(), (1 + MANY, 1));
    untouched(&home, &his);
}

/// No command has anything of alice's.
fn gone(home: &Home, hers: &[String]) {
    let export = home.run(&["person", "export", "alice"]).nothing_found();
    assert!(names(&export).is_empty() && !export.out.contains(CARD));
    home.run(&["memory", "list", "--user", "alice"]).nothing_found();
    for word in [CARD, TRANSCRIPT, "cluster", "rigging", "orchard"] {
        home.run(&["memory", "query", word, "--user", "alice"]).nothing_found();
    }
    for uri in hers {
        for user in ["alice", "bob"] {
            home.run(&["memory", "retrieve", uri, "--user", user]).nothing_found();
        }
    }
}

fn untouched(home: &Home, his: &str) {
    assert!(home.run(&["memory", "query", "cluster", "--user", "bob"]).done().out.contains(BOBS));
    let opened = home.run(&["memory", "retrieve", his, "--user", "bob", "--json"]).done();
    assert!(opened.out.contains(BOBS) && opened.json()["crypto"]["verified"] == true);
    let export = names(&home.run(&["person", "export", "bob"]).done());
    assert_eq!(export[0], his);
}

#[test]
fn the_same_over_http_for_the_person_alone() {
    let (home, hers, his) = remembered();
    let token = |role: &str| home.run(&["token", "new", "--role", role]).done().out.trim().to_owned();
    let (alice, bob) = (token("user:alice"), token("user:bob"));
    let server = Server::start(&home);
    let body = |answer: &str| -> serde_json::Value {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    };
    for request in ["GET /api/v1/person/alice/export", "DELETE /api/v1/person/alice"] {
        let refused = server.ask(request, &bob, "");
        assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains(CARD), "{refused}");
    }
    let export = body(&server.ask("GET /api/v1/person/alice/export", &alice, ""));
    assert_eq!(export["memories"].as_array().unwrap().len(), 2);
    assert!(
        export["memories"].to_string().contains(CARD) && export["memories"].to_string().contains(TRANSCRIPT)
    );
    let dry = body(&server.ask("DELETE /api/v1/person/alice?dry_run=true", &alice, ""));
    assert_eq!(dry["derived"], json!({"chats": 0, "memories": 2}));

    let answer = server.ask("DELETE /api/v1/person/alice", &alice, "");
    let receipt = body(&answer);
    assert_eq!((&receipt["derived"], &receipt["tokens"]), (&json!({"chats": 0, "memories": 2}), &json!(1)));
    fs::write(home.path("receipt.json"), receipt.to_string()).unwrap();
    let verified = home.run(&["audit", "verify", "--receipt", "receipt.json"]).done().out;
    assert!(verified.contains("the receipt is genuine"), "{verified}");
    // Her token went with her, beside a server that still runs.
    assert!(server.ask("GET /api/v1/person/alice/export", &alice, "").starts_with("HTTP/1.1 401"));
    gone(&home, &hers);
    untouched(&home, &his);
    let export = body(&server.ask("GET /api/v1/person/bob/export", &bob, ""));
    assert!(export["memories"].to_string().contains(BOBS));
    let (code, said) = server.stop();
    assert_eq!(code, 0, "{said}");
    for secret in [CARD, TRANSCRIPT, BOBS, "alice", &alice] {
        assert!(!said.contains(secret), "{said}");
    }
}
