//! The first hour: what somebody meets who has just built it, and does not know it yet.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::home::{CONTENT, Home, KEY};

#[test]
fn bare_it_prints_help_and_touches_nothing() {
    let home = Home::new();
    let ran = home.run(&[]).done();
    assert!(ran.out.contains("Usage: confidant") && ran.out.contains("confidant serve"), "{}", ran.out);
    assert_eq!(ran.err, "");
    assert_eq!(fs::read_dir(home.folder.path()).unwrap().count(), 0);
}

#[test]
fn manual_pages_and_completions_need_no_settings() {
    let home = Home::new();
    fs::write(home.path("confidant.toml"), "this is no setting").unwrap();
    assert!(home.run(&["completions", "bash"]).done().out.contains("complete -F _confidant"));
    assert!(home.run(&["man"]).done().out.contains(".TH confidant 1"));
    let written = home.run(&["man", "share/man1"]).done();
    assert!(written.out.is_empty() && written.err.contains("manual pages in share/man1"), "{}", written.err);
    assert!(fs::read_to_string(home.path("share/man1/confidant-keys-rotate.1")).unwrap().contains(".TH"));
    home.run(&["man", "confidant.toml"]).failed("confidant.toml cannot be written", "check its folder");
    let wrong = home.run(&["completions", "dos"]);
    assert!(wrong.code == 2 && wrong.err.contains("possible values: bash"), "{}", wrong.err);
}

#[test]
fn every_setting_says_where_it_came_from() {
    let home = Home::new()
        .set("CONFIDANT_HISTORY__TOKEN_BUDGET", "7000")
        .set("REDIS_URL", &format!("redis://:{CONTENT}@127.0.0.1:1"));
    fs::write(home.path("confidant.toml"), "[history]\nmax_messages = 7\ntoken_budget = 1\n").unwrap();
    let beside =
        format!("ROOM_CONTEXT_LIMIT=3\nCHECKPOINT_ENCRYPTION_KEY={KEY}\nCONFIDANT_HISTORY__TOKEN_BUDGET=9\n");
    fs::write(home.path(".env"), beside).unwrap();
    fs::set_permissions(home.path(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    let all = ["config", "--effective", "--data-dir", "elsewhere"];
    let ran = home.run(&all).done();
    let source = |key: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap_or_default();
        line.split_once(" # ").map(|(_, source)| source.to_owned()).unwrap_or_default()
    };
    for (key, expected) in [
        ("server.data_dir", "--data-dir"),
        ("server.listen", "default"),
        ("history.max_messages", "confidant.toml"),
        ("history.token_budget", "CONFIDANT_HISTORY__TOKEN_BUDGET"),
        ("room_context.limit", "ROOM_CONTEXT_LIMIT in .env"),
        ("store.url", "REDIS_URL"),
    ] {
        assert_eq!(source(key), expected, "{key}: {}", ran.out);
    }
    assert!(ran.out.contains("# CHECKPOINT_ENCRYPTION_KEY is set"), "{}", ran.out);
    assert!(!ran.out.contains(KEY) && !ran.out.contains(CONTENT), "{}", ran.out);
    let json = home.run(&["config", "--effective", "--json"]).done().json();
    let settings = json["settings"].as_array().unwrap();
    let kept = settings.iter().find(|one| one["key"] == "history.max_messages").unwrap();
    assert_eq!((&kept["value"], &kept["source"]), (&7.into(), &"confidant.toml".into()));
}

#[test]
fn a_file_beside_the_settings_is_environment_of_lower_rank() {
    let home = Home::new();
    fs::write(home.path(".env"), format!("CHECKPOINT_ENCRYPTION_KEY={KEY}\n")).unwrap();
    // Alone it is another program's.
    home.run(&["chat", "--once", "hello"]).done();
    assert!(home.data("master.key").exists());
    let home = Home::new();
    fs::write(home.path("confidant.toml"), "").unwrap();
    fs::write(home.path(".env"), format!("CHECKPOINT_ENCRYPTION_KEY={KEY}\n")).unwrap();
    fs::set_permissions(home.path(".env"), fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&["chat", "--once", "hello"]).failed("other users can read this file", "chmod 600");
    fs::set_permissions(home.path(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    home.run(&["chat", "--once", "hello"]).done();
    assert!(!home.data("master.key").exists());
    let status = home.run(&["keys", "status"]).done();
    assert!(status.out.contains("CHECKPOINT_ENCRYPTION_KEY"), "{}", status.out);
}

#[test]
fn a_missing_api_key_is_said_by_its_variable() {
    let home = Home::new()
        .set("CONFIDANT_MODEL__PROVIDER", "openai")
        .set("CONFIDANT_MODEL__MODEL", "any")
        .set("CONFIDANT_MODEL__BASE_URL", "http://127.0.0.1:1/v1")
        .set("CONFIDANT_TURN__ANSWER_TIMEOUT_SECONDS", "5");
    // A server of one's own may want none.
    let ran = home.run(&["chat", "--once", "hello"]);
    assert!(!ran.err.contains("API key"), "{}", ran.err);
    let home = home.set("CONFIDANT_MODEL__API_KEY_ENV", "MY_SERVERS_KEY");
    let ran = home.run(&["chat", "--once", "hello"]);
    assert!(
        ran.err.contains("warning: [model] has no API key") && ran.err.contains("set MY_SERVERS_KEY"),
        "{}",
        ran.err
    );
    let home = home.set("MY_SERVERS_KEY", CONTENT);
    let ran = home.run(&["chat", "--once", "hello"]);
    assert!(!ran.err.contains("has no API key") && !ran.err.contains(CONTENT), "{}", ran.err);
}

/// A folder that may not be looked at, which is here one whose name leads nowhere: whoever is root may look at all others.
#[test]
fn a_folder_that_cannot_be_looked_at_is_not_an_empty_one() {
    let home = Home::with_alice();
    fs::rename(home.path("confidant-data"), home.path("aside")).unwrap();
    std::os::unix::fs::symlink("confidant-data", home.path("confidant-data")).unwrap();
    for command in [
        &["session", "list"][..],
        &["chat", "--once", "hello"],
        &["person", "erase", "alice"],
        &["memory", "query", "anything"],
        &["memory", "store", "s", "--session", "session.json", "--dry-run"],
    ] {
        fs::write(home.path("session.json"), r#"{"summary": "a"}"#).unwrap();
        let ran = home.run(command);
        assert_eq!(ran.code, 2, "{command:?}: {}{}", ran.out, ran.err);
        assert!(
            ran.err.contains("hint: ") && !ran.err.contains("there is no data"),
            "{command:?}: {}",
            ran.err
        );
    }
    fs::remove_file(home.path("confidant-data")).unwrap();
    fs::rename(home.path("aside"), home.path("confidant-data")).unwrap();
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    // A settings file that may not be looked at is not a missing one, either.
    std::os::unix::fs::symlink("confidant.toml", home.path("confidant.toml")).unwrap();
    home.run(&["session", "list"]).failed("the file cannot be read", "permissions");
}

#[test]
fn errors_are_said_in_plain_words() {
    let home = Home::new();
    let with = |text: &str| {
        fs::write(home.path("confidant.toml"), text).unwrap();
        home.run(&["session", "list"])
    };
    let missing = home.run(&["session", "list", "--config", "nowhere.toml"]);
    missing.failed("(no such file or folder)", "--config");
    with("[history]\nmax_messages = 'many'").failed("expected a whole number", "confidant config");
    let listen = with("[server]\nlisten = 7");
    assert!(!listen.err.contains("SocketAddr") && !listen.err.contains("invalid type"), "{}", listen.err);
}

#[test]
fn serving_other_machines_without_tls_is_said() {
    for (address, warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false), ("[::1]:0", false)] {
        let home = Home::new();
        let mut command = home.command(&["serve", "--listen", address]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
        let said: Vec<String> = std::iter::from_fn(|| lines.next()?.ok())
            .take_while(|line| !line.contains("listening on"))
            .collect();
        assert_eq!(said.iter().any(|line| line.contains("without TLS")), warned, "{address}: {said:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A shell that starts something in the background has it ignore Ctrl-C. It is heard all the same.
#[test]
fn ctrl_c_is_heard_though_it_was_ignored_at_the_start() {
    let home = Home::new();
    // Waits for its input for ever.
    let script = format!("trap '' INT; exec {} redact", env!("CARGO_BIN_EXE_confidant"));
    let mut child = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(home.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let code = loop {
        // Sent again, since it may not listen yet.
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(std::time::Duration::from_millis(100));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        assert!(std::time::Instant::now() < deadline, "it does not hear");
    };
    // By its own word, or by the signal itself in the moment before it has one.
    assert!(matches!(code, Some(130) | None), "{code:?}");
}
