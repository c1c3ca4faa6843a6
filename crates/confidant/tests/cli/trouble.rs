//! What is wrong is named, with what to do about it, and nothing is lost by it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::home::{CONTENT, Home, Server};

#[test]
fn a_missing_keyring_is_said_and_nothing_is_lost() {
    let home = Home::with_alice();
    let keyring = fs::read(home.data("keyring.db")).unwrap();
    fs::remove_file(home.data("keyring.db")).unwrap();
    let hint = "put keyring.db back beside confidant.db";
    home.alice("What is my name?").failed("the keyring is empty", hint);
    home.alice("What is my name?").failed("the keyring is empty", hint);
    fs::write(home.data("keyring.db"), keyring).unwrap();
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn a_damaged_database_is_named() {
    for name in ["confidant.db", "keyring.db"] {
        let home = Home::with_alice();
        fs::write(home.data(name), vec![0x55; 8192]).unwrap();
        home.alice("What is my name?").failed(name, "restore it from a backup");
        let doctor = home.run(&["doctor"]);
        assert_eq!(doctor.code, 2);
        assert!(
            doctor.out.contains(&format!("fail  opening: the database file {name} is damaged")),
            "{}",
            doctor.out
        );
    }
}

/// Promise 8: what a conversation does not need does not stop it.
#[test]
fn a_damaged_graph_stops_neither_talking_nor_erasing() {
    let home = Home::with_alice();
    fs::write(home.data("concepts.db"), vec![0x55; 8192]).unwrap();
    let answer = home.alice("What is my name?").done();
    assert!(answer.out.contains("Alice"), "{}", answer.out);
    assert!(answer.err.contains("the graph of concepts cannot be opened"), "{}", answer.err);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 2 && doctor.out.contains("fail  concepts: the graph"), "{}", doctor.out);
    home.run(&["concepts", "list"]).failed("the graph of concepts cannot be opened", "");
    assert_eq!(home.run(&["person", "erase", "alice"]).done().json()["sessions"], 1);
    assert_eq!(fs::read(home.data("concepts.db")).unwrap(), vec![0x55; 8192], "left as it is");
    let server = Server::start(&home);
    let ready = server.ask("GET /readyz", "", "");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("\"part\":\"concepts\""), "{ready}");
}

/// The same for chats that only their owner can open.
#[test]
fn a_damaged_database_of_chats_stops_neither_talking_nor_erasing() {
    let home = Home::with_alice();
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    let (ready, metrics) = (server.ask("GET /readyz", "", ""), server.ask("GET /metrics", token.trim(), ""));
    assert!(ready.starts_with("HTTP/1.1 200") && !ready.contains("damaged"), "{ready}");
    assert!(metrics.contains("\nconfidant_chats_sockets 0\n"), "{metrics}");
    assert_eq!(server.stop().0, 0);
    for beside in ["chats.db-wal", "chats.db-shm"] {
        let _ = fs::remove_file(home.data(beside));
    }
    assert!(home.data("chats.db").exists());
    fs::write(home.data("chats.db"), vec![0x55; 8192]).unwrap();
    let answer = home.alice("What is my name?").done();
    assert!(answer.out.contains("Alice"), "{}", answer.out);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 2 && doctor.out.contains("fail  chats: "), "{}", doctor.out);
    let server = Server::start(&home);
    assert!(server.said().contains("chats.db"), "{}", server.said());
    let ready = server.ask("GET /readyz", "", "");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("\"part\":\"chats\""), "{ready}");
    let asked = server.ask("POST /account/prelogin", "", r#"{"login": "ana"}"#);
    assert!(!asked.starts_with("HTTP/1.1 200"), "{asked}");
    drop(server);
    // Nobody can say what is in there of whom.
    home.run(&["person", "erase", "alice"]).failed("there is no receipt", "erase again");
    home.run(&["session", "list"]).nothing_found();
    assert_eq!(fs::read(home.data("chats.db")).unwrap(), vec![0x55; 8192], "left as it is");
}

/// The same for one that a newer program wrote.
#[test]
fn a_graph_of_a_newer_version_stops_no_conversation_and_is_left_alone() {
    let home = Home::with_alice();
    for beside in ["concepts.db-wal", "concepts.db-shm"] {
        let _ = fs::remove_file(home.data(beside));
    }
    let mut newer = fs::read(home.data("concepts.db")).unwrap();
    // Where SQLite has a file's version.
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(home.data("concepts.db"), &newer).unwrap();
    let answer = home.alice("What is my name?").done();
    assert!(answer.out.contains("Alice"), "{}", answer.out);
    let (what, hint) = ("concepts.db was written by a newer version of Confidant", "upgrade this program");
    assert!(answer.err.contains(what), "{}", answer.err);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.code == 2 && doctor.out.contains(what), "{}", doctor.out);
    home.run(&["concepts", "list"]).failed(what, hint);
    assert!(fs::read(home.data("concepts.db")).unwrap() == newer, "it was changed");
}

/// The same, and nothing is said to be gone that could not be reached.
#[test]
fn a_damaged_memory_or_inbox_stops_neither_talking_nor_the_end_of_sessions() {
    for (name, part, kept) in
        [("memory/memory.db", "memory", "memories"), ("channels.db", "channels", "channel_events")]
    {
        let home = Home::with_alice();
        let sound = fs::read(home.data(name)).unwrap_or_default();
        for beside in ["-wal", "-shm"] {
            let _ = fs::remove_file(home.data(&format!("{name}{beside}")));
        }
        fs::write(home.data(name), vec![0x55; 8192]).unwrap();
        let answer = home.alice("What is my name?").done();
        assert!(answer.out.contains("Alice"), "{}", answer.out);
        let doctor = home.run(&["doctor"]);
        assert!(doctor.out.contains(&format!("fail  {part}: ")), "{}", doctor.out);
        let exported = home.run(&["person", "export", "alice"]);
        assert!(exported.code == 2 && exported.json()["unreadable"][0] == kept, "{}", exported.err);
        assert_eq!(exported.json()["sessions"].as_array().unwrap().len(), 1);
        let erased = home.run(&["person", "erase", "alice"]);
        erased.failed("there is no receipt", "erase again");
        home.run(&["session", "list"]).nothing_found();
        match sound.is_empty() {
            true => fs::remove_file(home.data(name)).unwrap(),
            false => fs::write(home.data(name), sound).unwrap(),
        }
        let receipt = home.run(&["person", "erase", "alice"]);
        assert_eq!(receipt.json()["sessions"], 0, "{}", receipt.err);
    }
}

#[test]
fn unknown_settings_are_named_with_their_source() {
    let home = Home::new();
    fs::write(home.path("confidant.toml"), "[server]\nlistn = 'x'\n").unwrap();
    home.alice(CONTENT).failed("confidant.toml: unknown key server.listn", "did you mean server.listen?");
    fs::remove_file(home.path("confidant.toml")).unwrap();
    home.run(&["session", "list", "--config", "other.toml"])
        .failed("other.toml: the file cannot be read", "--config");
    let home = home.set("CONFIDANT_SERVER__LISTN", "x");
    let hint = "did you mean CONFIDANT_SERVER__LISTEN?";
    home.alice(CONTENT).failed("CONFIDANT_SERVER__LISTN: unknown key", hint);
    assert_eq!(home.run(&["serve"]).failed("unknown key", hint).out, "");
    assert!(!home.data("").exists());
}

#[test]
fn stores_that_cannot_be_used_are_refused_without_their_password() {
    let home = Home::new().set("CONFIDANT_STORE__URL", &format!("postgres://me:{CONTENT}@localhost/db"));
    home.alice(CONTENT)
        .failed("store.url is a server, so you must provide the master key", "confidant keys generate");
    let home = Home::new().set("CONFIDANT_STORE__URL", &format!("mysql://{CONTENT}"));
    home.alice(CONTENT).failed("not the address of a store", "sqlite:/path/folder");
}

#[test]
fn ids_that_are_none_are_refused_without_being_quoted() {
    let home = Home::with_alice();
    home.run(&["session", "show", CONTENT]).failed("invalid session id", "channel:place:thread:user");
    home.run(&["session", "delete", "cli:db:%20:alice"]).failed("invalid session id", "%25");
    home.run(&["chat", "--user", "", "--once", "x"]).failed("is empty", "at least one character");
    home.run(&["person", "erase", &"x".repeat(600)]).failed("longer than 512 bytes", "shorter");
}

#[test]
fn looking_does_not_make_anything() {
    let home = Home::new();
    for arguments in [&["session", "list"][..], &["keys", "status"], &["audit", "verify"], &["token", "list"]]
    {
        home.run(arguments).failed("there is no data", "confidant serve");
    }
    assert!(home.run(&["doctor"]).done().out.contains("warn  data: ./confidant-data has no data yet"));
    assert_eq!(fs::read_dir(home.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let home = Home::new();
    fs::write(home.path("file"), "").unwrap();
    let chat = ["chat", "--once", CONTENT, "--data-dir"];
    home.run(&[&chat[..], &["file/data"]].concat())
        .failed("the folder file/data cannot be created", "--data-dir");
    home.run(&[&chat[..], &["/proc/confidant"]].concat())
        .failed("/proc/confidant cannot be created", "--data-dir");
    let locked = home.path("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    // Nothing is read-only to root.
    if fs::write(locked.join("probe"), "").is_err() {
        home.run(&[&chat[..], &["locked"]].concat()).failed("cannot be written", "permissions");
    }
}

#[test]
fn files_are_private() {
    let home = Home::with_alice();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.data("")), 0o700);
    for name in ["master.key", "confidant.db", "keyring.db"] {
        assert_eq!(mode(home.data(name)), 0o600, "{name}");
    }
    home.run(&["person", "export", "alice", "--output", "alice.json"]).done();
    assert_eq!(mode(home.path("alice.json")), 0o600);
    home.run(&["person", "export", "alice", "--output", "alice.json"])
        .failed("already exists", "another name");
    home.run(&["keys", "generate", "--output", "new.key"]).done();
    assert_eq!(mode(home.path("new.key")), 0o600);
}

#[test]
fn a_reader_who_leaves_ends_it_quietly() {
    let home = Home::new();
    let mut child = home.command(&["config"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn the_printed_settings_are_settings() {
    let home = Home::new();
    fs::write(home.path("confidant.toml"), home.run(&["config"]).done().out).unwrap();
    home.alice("Hello, I'm Alice").done();
}

#[test]
fn every_command_has_help_with_examples() {
    let home = Home::new();
    for command in
        ["", "serve", "chat", "page", "session", "person", "keys", "audit", "token", "doctor", "config"]
    {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|part| !part.is_empty()).collect();
        let help = home.run(&arguments).done().out;
        assert!(help.contains("Usage: confidant") && help.contains("Example"), "{command}: {help}");
        assert!(help.lines().all(|line| line.len() < 130), "{command}: {help}");
    }
    for (command, parts) in [
        ("session", &["list", "show", "export", "delete", "approvals", "approve", "deny", "cancel"][..]),
        ("person", &["export", "erase"]),
        ("keys", &["generate", "rotate", "verify", "status"]),
        ("audit", &["show", "verify"]),
        ("token", &["new", "list", "revoke"]),
    ] {
        for part in parts {
            let help = home.run(&[command, part, "--help"]).done().out;
            assert!(help.contains("--json") && help.contains("--data-dir"), "{command} {part}: {help}");
        }
    }
    let unknown = home.run(&["chatt"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("similar subcommand exists: 'chat'"), "{}", unknown.err);
}
