//! Master keys: where they come from, and what happens when they change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::home::{CONTENT, Home, KEY, OTHER_KEY, Server};

#[test]
fn a_wrong_key_opens_nothing() {
    let home = Home::with_alice().set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY);
    home.alice("What is my name?").failed("wrong master key", "set the key that this data was made with");
    home.run(&["session", "list"]).failed("wrong master key", "CHECKPOINT_ENCRYPTION_KEY");
}

#[test]
fn a_key_that_is_none_is_not_quoted() {
    let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", &format!("{CONTENT}!"));
    home.alice(CONTENT)
        .failed("CHECKPOINT_ENCRYPTION_KEY: the master key is not base64", "confidant keys generate");
}

#[test]
fn a_missing_key_is_not_made_anew() {
    let home = Home::with_alice();
    fs::remove_file(home.data("master.key")).unwrap();
    home.alice("What is my name?").failed("master.key is missing", "put your backup of master.key back");
    assert!(!home.data("master.key").exists());
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let home = Home::with_alice();
    fs::set_permissions(home.data("master.key"), fs::Permissions::from_mode(0o644)).unwrap();
    home.alice("What is my name?").failed("can be read by other users (mode 644)", "chmod 600");
    let home = Home::new();
    let file = home.path("key");
    fs::write(&file, KEY).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY_FILE", file.to_str().unwrap());
    home.alice(CONTENT).failed("can be read by other users (mode 640)", "chmod 600");
}

#[test]
fn keys_come_from_a_private_file_and_from_a_command() {
    let home = Home::new();
    let file = home.path("key");
    fs::write(&file, KEY).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY_FILE", file.to_str().unwrap());
    home.alice("Hello, I'm Alice").done();
    assert!(!home.data("master.key").exists());
    let mut home = home;
    home.variables.clear();
    let home = home.set("CONFIDANT_KEYS__COMMAND", &format!(r#"["/bin/echo", "{KEY}"]"#));
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn after_a_rotation_the_old_key_opens_nothing() {
    let home = Home::with_alice();
    let old = home.master_key();
    let rotated = home.run(&["keys", "rotate", "--json"]).done().json();
    assert_eq!((&rotated["keys"], &rotated["rewrapped"]), (&1.into(), &1.into()));
    assert_ne!(home.master_key(), old);
    assert_eq!(home.master_key().lines().count(), 1);
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", old.trim());
    home.alice("What is my name?").failed("wrong master key", "set the key");
}

#[test]
fn an_interrupted_rotation_is_finished_by_the_next() {
    let home = Home::with_alice();
    // As it is when the new key is written and nothing else has happened.
    fs::write(home.data("master.key"), format!("{KEY}\nold: {}", home.master_key())).unwrap();
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    assert!(home.run(&["doctor"]).done().out.contains("warn  master key: a rotation was interrupted"));
    let ran = home.run(&["keys", "rotate"]).done();
    assert!(ran.err.contains("an earlier rotation was interrupted; resuming it"), "{}", ran.err);
    assert_eq!(home.master_key(), format!("{KEY}\n"));
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn keys_of_the_environment_rotate_by_hand() {
    let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", KEY);
    home.alice("Hello, I'm Alice").done();
    home.run(&["keys", "rotate"]).failed("only one master key is given", "OLD_CHECKPOINT_ENCRYPTION_KEY");
    let home = home.set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY).set("OLD_CHECKPOINT_ENCRYPTION_KEY", KEY);
    let ran = home.run(&["keys", "rotate"]).done();
    assert!(ran.err.contains("remove it (OLD_CHECKPOINT_ENCRYPTION_KEY)"), "{}", ran.err);
    let home = home.set("OLD_CHECKPOINT_ENCRYPTION_KEY", "");
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let status = home.run(&["keys", "status", "--json"]).done().json();
    assert_eq!((&status["keys"], &status["under_others"]), (&1.into(), &0.into()));
    assert_eq!(status["source"], "CHECKPOINT_ENCRYPTION_KEY");
}

#[test]
fn keys_are_generated_verified_and_described() {
    let home = Home::with_alice();
    let key = home.run(&["keys", "generate"]).done().out;
    assert_eq!((key.len(), key.lines().count()), (45, 1));
    assert_ne!(key, home.run(&["keys", "generate"]).done().out);
    assert!(home.run(&["keys", "verify"]).done().out.starts_with("all open: 1 key and 1 session; "));
    assert_eq!(home.run(&["keys", "verify", "--json"]).done().json()["refused"], serde_json::json!([]));
    let status = home.run(&["keys", "status"]).done().out;
    assert!(status.contains("master key from  ./confidant-data/master.key"), "{status}");
    assert!(!status.contains(home.master_key().trim()));
}

/// Who had the keys in hand is written down, and so is where the log ends.
#[test]
fn the_use_of_keys_is_in_the_audit_log_whose_end_can_be_kept() {
    let home = Home::with_alice();
    home.run(&["keys", "status"]).done();
    home.run(&["keys", "verify"]).done();
    drop(Server::start(&home));
    home.run(&["keys", "rotate"]).done();
    let shown = home.run(&["audit", "show", "--last", "100", "--json"]).done().json();
    let records = shown.as_array().unwrap();
    let actions: Vec<&str> = records.iter().filter_map(|record| record["action"].as_str()).collect();
    let keys: Vec<&&str> = actions.iter().filter(|action| action.starts_with("keys.")).collect();
    assert_eq!(keys, [&"keys.viewed", &"keys.verified", &"keys.opened", &"keys.rotated"]);
    let verified = home.run(&["audit", "verify", "--json"]).done().json();
    let last = records.last().unwrap();
    assert_eq!(verified["records"], last["seq"]);
    assert_eq!(verified["heads"], serde_json::json!([{ "lane": 0, "seq": last["seq"], "tag": last["tag"] }]));
}
