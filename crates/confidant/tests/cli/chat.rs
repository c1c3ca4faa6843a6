//! Conversations: remembered for whom they are with, and for nobody else.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::home::{CONTENT, Home, Ran};

#[test]
fn alice_is_remembered_and_bob_does_not_hear_of_her() {
    let home = Home::new();
    let first = home.alice("Hello, I'm Alice and I prefer Rust").done();
    assert!(first.err.contains("made a master key: ./confidant-data/master.key"), "{}", first.err);
    assert!(first.err.contains("back it up"), "{}", first.err);
    let second = home.alice("What is my name?").done();
    assert!(second.out.contains("Alice"), "{}", second.out);
    assert_eq!(second.err, "");
    assert!(!home.bob("What is my name?").done().out.contains("Alice"));
    assert!(!home.holds("Alice") && !home.holds("Rust"));
}

#[test]
fn room_lines_answer_and_are_in_no_file() {
    let home = Home::new();
    let chat = ["chat", "--user", "dave", "--room", "db", "--once", "what database did we choose?"];
    let line = ["--room-line", "bob: we chose PostgreSQL as our database"];
    let ran = home.run(&[&chat[..], &line[..]].concat()).done();
    assert!(ran.out.contains("PostgreSQL"), "{}", ran.out);
    assert!(!home.holds("PostgreSQL as our"));
    fs::write(
        home.path("room.json"),
        r#"[{"sender": "bob", "content": "we chose MariaDB as our database"}]"#,
    )
    .unwrap();
    let ran = home.run(&[&chat[..], &["--room-context", "room.json"]].concat()).done();
    fs::remove_file(home.path("room.json")).unwrap();
    assert!(ran.out.contains("MariaDB"), "{}", ran.out);
    assert!(!home.holds("MariaDB as our"));
}

#[test]
fn room_context_that_is_not_one_is_refused_without_being_quoted() {
    let home = Home::new();
    fs::write(home.path("room.json"), format!("[{{\"sender\": 1, \"content\": \"{CONTENT}\"}}]")).unwrap();
    home.run(&["chat", "--once", CONTENT, "--room-context", "room.json"])
        .failed("line 1, column", "JSON array");
    home.run(&["chat", "--once", CONTENT, "--room-line", CONTENT]).failed("no name", "NAME: TEXT");
}

#[test]
fn a_turn_in_json_says_where_it_went() {
    let home = Home::new().set("USER", "erin");
    let ran = home.run(&["chat", "--once", "Hello, I'm Erin", "--json", "--request-id", "r1"]).done().json();
    assert_eq!((&ran["session_id"], &ran["request_id"]), (&"cli_conv:erin".into(), &"r1".into()));
    assert_eq!(
        (&ran["metadata"]["memory"], &ran["metadata"]["audience"]),
        (&"kept".into(), &"private".into())
    );
    let again =
        home.run(&["chat", "--once", "Hello, I'm Erin", "--json", "--request-id", "r1"]).done().json();
    assert_eq!(again["metadata"]["replayed"], true);
}

#[test]
fn lines_from_a_pipe_are_a_conversation() {
    let home = Home::new();
    let mut command = home.command(&["chat", "--user", "frank"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Hello, I'm Frank\n\nWhat is my name?\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).done();
    assert!(ran.out.contains("Frank"), "{}", ran.out);
    let listed = home.run(&["session", "list"]).done();
    assert!(listed.out.starts_with("cli_conv:frank\tdefault\t4 records\tkept"), "{}", listed.out);
}

#[test]
fn data_in_memory_leaves_nothing() {
    let home = Home::new().set("CONFIDANT_STORE__URL", "memory:");
    assert!(home.alice("Hello, I'm Alice").done().err.is_empty());
    assert_eq!(fs::read_dir(home.folder.path()).unwrap().count(), 0);
    home.run(&["session", "list"]).failed("memory:", "use sqlite:");
}

#[test]
fn the_keyring_can_live_elsewhere() {
    let home = Home::new();
    let elsewhere = home.path("elsewhere");
    let home = home.set("CONFIDANT_KEYRING__URL", &format!("sqlite:{}", elsewhere.display()));
    home.alice("Hello, I'm Alice").done();
    assert!(elsewhere.join("keyring.db").exists() && !home.data("keyring.db").exists());
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn processes_that_start_at_once_agree_on_one_key() {
    let home = Home::new();
    let say = |user: usize| {
        let (user, text) = (format!("u{user}"), format!("Hello, I'm Name{user}"));
        home.run(&["chat", "--user", &user, "--once", &text]).done()
    };
    let said: Vec<Ran> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|user| {
                scope.spawn({
                    let say = &say;
                    move || say(user)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(said.iter().filter(|ran| ran.err.contains("made a master key")).count(), 1);
    assert!(home.run(&["keys", "verify"]).done().out.starts_with("all open: 6 keys and 6 sessions"));
}

#[test]
fn somebody_who_asks_to_be_forgotten_is() {
    let home = Home::with_alice();
    assert!(home.alice("forget our conversation").done().out.contains("erased"));
    assert!(!home.alice("What is my name?").done().out.contains("Alice"));
}
