//! What people may ask of their data, and what an operator can check.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::home::{CONTENT, Home};

#[test]
fn a_session_is_listed_shown_exported_and_deleted() {
    let home = Home::with_alice();
    home.bob("Hello, I'm Bob").done();
    let id = "cli:db:main:alice";
    let listed = home.run(&["session", "list", "--json"]).done().json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    home.run(&["session", "list", "--tenant", "other"]).nothing_found();
    let shown = home.run(&["session", "show", id]).done().out;
    assert!(shown.starts_with("cli:db:main:alice: 2 messages\n") && shown.contains(CONTENT), "{shown}");
    let export = home.run(&["session", "export", id]).done().json();
    let kinds: Vec<&str> =
        export["messages"].as_array().unwrap().iter().map(|m| m["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["human", "ai"]);
    let dry = home.run(&["session", "delete", id, "--dry-run"]).done().out;
    assert_eq!(dry, "would delete 1 session with 2 records and its key\n");
    let receipt = home.run(&["session", "delete", id]).done();
    assert_eq!(receipt.json()["sessions"], 1);
    assert!(!receipt.out.contains("alice") && !receipt.err.contains("alice"));
    for arguments in [&["session", "show", id][..], &["session", "export", id], &["session", "delete", id]] {
        assert_eq!(home.run(arguments).nothing_found().out, "");
    }
    home.run(&["session", "delete", id, "--dry-run"]).nothing_found();
    assert_eq!(home.run(&["session", "list", "--json"]).done().json().as_array().unwrap().len(), 1);
}

#[test]
fn a_person_is_erased_with_a_receipt_that_verifies() {
    let home = Home::with_alice();
    home.run(&["chat", "--user", "alice", "--once", "Hello again"]).done();
    home.bob("Hello, I'm Bob").done();
    let export = home.run(&["person", "export", "alice"]).done().json();
    assert_eq!(export["sessions"].as_array().unwrap().len(), 2);
    let dry = home.run(&["person", "erase", "alice", "--dry-run"]).done().out;
    assert_eq!(dry, "would erase 2 sessions and their keys\n");
    let receipt = home.run(&["person", "erase", "alice"]).done();
    assert_eq!(receipt.json()["sessions"], 2);
    fs::write(home.path("receipt.json"), &receipt.out).unwrap();
    let verified = home.run(&["audit", "verify", "--receipt", "receipt.json"]).done().out;
    assert!(verified.contains("the receipt is genuine"), "{verified}");
    let empty = home.run(&["person", "export", "alice"]).nothing_found().json();
    assert_eq!(empty["sessions"], serde_json::json!([]));
    assert!(home.run(&["person", "export", "bob"]).done().out.contains("Bob"));
    fs::write(home.path("receipt.json"), receipt.out.replace("\"sessions\": 2", "\"sessions\": 3")).unwrap();
    let verify = ["audit", "verify", "--receipt", "receipt.json"];
    home.run(&verify).failed("signature is not valid", "unchanged");
    fs::write(home.path("receipt.json"), CONTENT).unwrap();
    home.run(&verify).failed("this is not a receipt", "unchanged");
    home.run(&["audit", "verify", "--receipt", "none.json"]).failed("cannot be read", "check the path");
}

#[test]
fn yesterdays_data_does_not_open_for_an_erased_person() {
    let home = Home::with_alice();
    home.bob("Hello, I'm Bob").done();
    let yesterday = fs::read(home.data("confidant.db")).unwrap();
    home.run(&["person", "erase", "alice"]).done();
    fs::write(home.data("confidant.db"), yesterday).unwrap();
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2, "{}", doctor.out);
    assert!(doctor.out.contains("fail  "), "{}", doctor.out);
    let export = home.run(&["person", "export", "alice"]);
    assert_eq!(export.code, 2);
    assert!(!export.out.contains(CONTENT));
    assert_eq!(export.json()["unreadable"], serde_json::json!(["key-gone"]));
}

#[test]
fn a_restored_backup_is_noticed_and_can_be_accepted() {
    let home = Home::with_alice();
    let backup = fs::read(home.data("confidant.db")).unwrap();
    home.alice("And I like tea").done();
    fs::write(home.data("confidant.db"), backup).unwrap();
    let degraded = home.alice("What is my name?").done();
    assert!(!degraded.out.contains("Alice"), "{}", degraded.out);
    assert!(
        degraded.err.contains("answered without memory") && degraded.err.contains("rolled-back"),
        "{}",
        degraded.err
    );
    home.run(&["session", "show", "cli:db:main:alice"]).failed("rolled-back", "--accept-restore");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2);
    assert!(doctor.out.contains("fail") && doctor.out.contains("--accept-restore"), "{}", doctor.out);
    let accepted = home.run(&["doctor", "--accept-restore"]).done().out;
    assert!(accepted.contains("ok    restore: accepted: 1 session"), "{accepted}");
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let home = Home::new();
    let made = home.run(&["token", "new", "--role", "user:alice", "--tenant", "acme"]).done();
    let token = made.out.trim();
    assert!(token.starts_with("cft_"), "{token}");
    assert!(!made.err.contains(token) && !home.holds(token));
    let listed = home.run(&["token", "list", "--json"]).done();
    assert!(!listed.out.contains(token));
    let listed = listed.json();
    assert_eq!((&listed[0]["tenant"], &listed[0]["role"]), (&"acme".into(), &"user:alice".into()));
    let id = listed[0]["id"].as_str().unwrap();
    home.run(&["token", "revoke", id]).done();
    home.run(&["token", "revoke", id]).nothing_found();
    home.run(&["token", "list"]).nothing_found();
    home.run(&["token", "new", "--role", "king"]).failed("the role is unknown", "admin, agent or user:<id>");
    home.run(&["token", "new", "--role", "account:acct_x"])
        .failed("so no token has it", "admin, agent or user:<id>");
}

#[test]
fn the_audit_log_has_reads_and_no_content() {
    let home = Home::with_alice();
    home.run(&["session", "export", "cli:db:main:alice"]).done();
    let shown = home.run(&["audit", "show"]).done().out;
    for word in ["turn.accepted", "turn.answered", "session.exported", "\tcli\t"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(!shown.contains("alice") && !shown.contains(CONTENT), "{shown}");
    let last = home.run(&["audit", "show", "--last", "1", "--json"]).done().json();
    assert_eq!(last[0]["action"], "session.exported");
    let records = home.run(&["audit", "verify", "--json"]).done().json()["records"].as_u64().unwrap();
    assert_eq!(last[0]["seq"].as_u64(), Some(records));
}

#[test]
fn the_doctor_finds_a_sound_installation_sound() {
    let home = Home::with_alice().set("CONFIDANT_SERVER__LISTEN", "127.0.0.1:0");
    let doctor = home.run(&["doctor"]).done();
    assert!(doctor.out.lines().all(|line| line.starts_with("ok    ")), "{}", doctor.out);
    assert!(doctor.out.contains("ok    sessions: all open: 1 key and 1 log"), "{}", doctor.out);
    fs::set_permissions(home.data(""), fs::Permissions::from_mode(0o755)).unwrap();
    let doctor = home.run(&["doctor", "--json"]).done().json();
    let folder = doctor.as_array().unwrap().iter().find(|check| check["name"] == "folder").unwrap();
    assert_eq!(folder["state"], "warn");
    let home = home.set("CONFIDANT_HISTORY__MAX_MESSAGES", "none");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2);
    assert!(doctor.out.starts_with("fail  settings: CONFIDANT_HISTORY__MAX_MESSAGES"), "{}", doctor.out);
}

#[test]
fn the_doctor_says_that_a_model_cannot_be_reached() {
    let home = Home::with_alice()
        .set("CONFIDANT_SERVER__LISTEN", "127.0.0.1:0")
        .set("CONFIDANT_MODEL__PROVIDER", "openai")
        .set("CONFIDANT_MODEL__MODEL", "m")
        .set("CONFIDANT_MODEL__BASE_URL", "http://127.0.0.1:9/v1");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 2);
    assert!(
        doctor.out.contains("fail  model: the model cannot be reached\n      hint: check"),
        "{}",
        doctor.out
    );
    home.alice(CONTENT).failed("the model cannot be reached", "model.base_url");
}
