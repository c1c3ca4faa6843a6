//! `confidant memory`: the tools for people and scripts.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::{CONTENT, Home, Ran};

/// A session with something to redact and something to find it by.
fn session(home: &Home) -> String {
    let session = json!({
        "timestamp": "2025-12-21T12:00:00Z",
        "summary": format!("Investigated the login of {CONTENT}, reported by jane@example.org. \
                            We decided to roll back to v2.3.1."),
        "tags": ["bug-fix"]
    });
    let path = home.path("session.json");
    std::fs::write(&path, session.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn piped(home: &Home, arguments: &[&str], input: &str) -> Ran {
    let mut command = home.command(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

fn uris(ran: &Ran) -> Vec<String> {
    let hits = ran.json()["hits"].as_array().unwrap().clone();
    hits.iter().map(|hit| hit["cascade_uri"].as_str().unwrap().to_owned()).collect()
}

/// Whether what a pipe gets to read is one fence, opened and closed by us with the same word.
fn is_fenced(out: &str, label: &str) -> bool {
    let mut lines = out.lines().skip(1);
    let word = lines.next().and_then(|line| line.strip_prefix(&format!("<<<{label} "))).map(str::to_owned);
    let close = word.map(|word| format!("{word} {label}>>>"));
    close.is_some_and(|close| lines.last() == Some(close.as_str()))
        && (out.matches("<<<").count(), out.matches(">>>").count()) == (1, 1)
}

#[test]
fn a_memory_from_dry_run_to_forgotten() {
    let home = Home::new();
    let file = session(&home);
    let store = ["memory", "store", "demo-001", "--session", &file, "--tag", "production"];
    let shown = home.run(&[&store[..], &["--dry-run", "--json"]].concat()).done().json();
    let (preview, sha256) = (&shown["preview"], shown["preview"]["sha256"].as_str().unwrap());
    assert_eq!(
        serde_json::from_str::<Value>(preview["payload_json"].as_str().unwrap()).unwrap(),
        preview["payload"]
    );
    home.run(&["memory", "list"]).failed("there is no data", "confidant serve");
    // The first run that keeps something says that it made a key.
    home.run(&["memory", "import", home.folder.path().join("nothing").to_str().unwrap()]);

    let other = "0".repeat(64);
    home.run(&[&store[..], &["--expect-sha256", &other]].concat())
        .failed("does not match the given hash", "dry run");
    let stored = home.run(&[&store[..], &["--expect-sha256", sha256]].concat()).done();
    let uri = stored.out.trim_end();
    assert!(uri.starts_with("cascade://") && stored.err.contains("artifact_only"), "{}", stored.err);
    assert!(!stored.out.contains("jane@"));

    let found =
        home.run(&["memory", "query", "login", "roll", "back", "--tag", "production", "--json"]).done();
    assert_eq!(uris(&found), [uri]);
    let told = home.run(&["memory", "query", "login"]).done();
    assert!(told.out.contains("#production") && told.out.contains(uri), "{}", told.out);
    assert!(is_fenced(&told.out, "memories"), "{}", told.out);
    home.run(&["memory", "query", "login", "--since", "2026-01-01"]).nothing_found();

    let opened = home.run(&["memory", "retrieve", uri, "--json"]).done().json();
    assert_eq!((&opened["artifact"], &opened["crypto"]["verified"]), (&preview["payload"], &true.into()));
    let told = home.run(&["memory", "retrieve", uri]).done();
    assert!(told.out.contains("decided") && told.out.contains("Roll back to v2.3.1"), "{}", told.out);
    assert!(is_fenced(&told.out, "memory"), "{}", told.out);

    let would = home.run(&["memory", "forget", "--session-id", "demo-001", "--dry-run", "--json"]).done();
    assert_eq!(would.json()["cascade_uris"], json!([uri]));
    home.run(&["memory", "forget", uri]).done();
    home.run(&["memory", "retrieve", uri]).nothing_found();
    home.run(&["memory", "list"]).nothing_found();
    std::fs::remove_file(file).unwrap();
    assert!(!home.holds(CONTENT));
}

/// Stores something, and forgets it while a folder stands where its blob was: the removal is left undone.
fn leave_a_removal(home: &Home) {
    let file = session(home);
    let stored = home.run(&["memory", "store", "left", "--session", &file]).done();
    let uri = stored.out.trim_end();
    let hash = uri.trim_start_matches("cascade://");
    let blob = home.data("memory/blobs").join(&hash[..2]).join(&hash[2..4]).join(hash);
    std::fs::remove_file(&blob).unwrap();
    std::fs::create_dir(&blob).unwrap();
    let told = home.run(&["memory", "forget", uri]).done();
    assert!(told.err.contains("1 blob is still to be deleted"), "{}", told.err);
    assert!(home.run(&["doctor"]).out.contains("0 uploads and 1 removal are not finished"));
    std::fs::remove_dir(&blob).unwrap();
}

#[test]
fn what_a_command_left_undone_is_done_by_the_next_one_that_writes() {
    let home = Home::new();
    leave_a_removal(&home);
    let file = session(&home);
    let store = ["memory", "store", "next", "--session", &file];
    home.run(&[&store[..], &["--dry-run"]].concat()).done();
    assert!(home.run(&["doctor"]).out.contains("1 removal are not finished"), "a dry run writes nothing");
    home.run(&store).done();
    assert!(!home.run(&["doctor"]).out.contains("are not finished"));
}

#[test]
fn what_a_command_left_undone_is_done_by_a_server_for_agents() {
    let home = Home::new();
    leave_a_removal(&home);
    let mut server = home.command(&["mcp"]);
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}
        }
    });
    let mut input = server.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    let done = (0..200).any(|_| !home.run(&["doctor"]).out.contains("are not finished"));
    drop(input);
    server.wait().unwrap();
    assert!(done, "nobody did it");
}

#[test]
fn a_page_that_the_memory_does_not_give_is_refused_not_cut() {
    let home = Home::new();
    for (flag, value) in [("--limit", "0"), ("--limit", "101"), ("--offset", "10001")] {
        for command in [&["memory", "list"][..], &["memory", "query", "login"]] {
            let ran = home.run(&[command, &[flag, value]].concat());
            assert_eq!(ran.code, 2, "{flag} {value}");
            assert!(ran.err.contains(flag) && ran.err.contains("is not in"), "{}", ran.err);
        }
    }
}

#[test]
fn the_price_table_in_the_guide_is_one() {
    let guide = include_str!("../../../../docs/MEMORY.md");
    let table = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let home = Home::new().set("CONFIDANT_MEMORY__PRICES_FILE", "prices.toml");
    std::fs::write(home.path("prices.toml"), table).unwrap();
    let told = home.run(&["memory", "estimate", "1024", "--json"]).done().json();
    assert_eq!(told["assumptions"]["price_table"], "our contract");
    std::fs::write(home.path("prices.toml"), "[s3]\nprice = 1\n").unwrap();
    home.run(&["memory", "estimate", "1024"]).failed("not a table of prices", "docs/MEMORY.md");
}

#[test]
fn one_person_does_not_see_anothers() {
    let home = Home::new();
    let file = session(&home);
    let stored = home.run(&["memory", "store", "s", "--session", &file, "--user", "alice"]).done();
    let uri = stored.out.trim_end();
    home.run(&["memory", "query", "login", "--user", "bob"]).nothing_found();
    home.run(&["memory", "retrieve", uri, "--user", "bob"]).nothing_found();
    home.run(&["memory", "forget", uri, "--user", "bob"]).nothing_found();
    home.run(&["memory", "list", "--user", "alice", "--tenant", "other"]).nothing_found();
    home.run(&["memory", "retrieve", uri, "--user", "alice"]).done();
}

#[test]
fn a_dry_run_makes_nothing_even_where_nothing_is() {
    let home = Home::new();
    let before = files(home.folder.path());
    let input =
        json!({"messages": [{"role": "user", "content": "We decided to keep Postgres."}]}).to_string();
    let shown = piped(&home, &["memory", "store", "s", "--session", "-", "--dry-run", "--json"], &input);
    assert!(shown.done().out.contains("Postgres"));
    home.run(&["memory", "import", "--dry-run", home.folder.path().to_str().unwrap()]).nothing_found();
    assert_eq!(files(home.folder.path()), before);
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn a_critical_secret_blocks_by_rule_and_place() {
    let home = Home::new();
    let secret =
        format!("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{CONTENT}\n-----END RSA PRIVATE KEY-----");
    let input = json!({"messages": [{"role": "tool", "content": secret}]}).to_string();
    // The first run says that it made a key.
    home.run(&["memory", "import", home.folder.path().to_str().unwrap()]).nothing_found();
    let ran = piped(&home, &["memory", "store", "s", "--session", "-"], &input);
    let ran = ran.failed("blocked", "revoke");
    assert!(ran.err.contains("private_key at /session/messages/0/content"), "{}", ran.err);
    home.run(&["memory", "list"]).nothing_found();
    assert!(!home.holds(CONTENT));
}

#[test]
fn the_transcript_takes_both_flags() {
    let home = Home::new();
    let file = session(&home);
    let store = ["memory", "store", "s", "--session", &file];
    assert_eq!(home.run(&[&store[..], &["--raw"]].concat()).code, 2);
    assert_eq!(home.run(&[&store[..], &["--i-understand-the-risk"]].concat()).code, 2);
    let stored =
        home.run(&[&store[..], &["--raw", "--i-understand-the-risk", "--json"]].concat()).done().json();
    assert_eq!(stored["artifact_type"], "raw_plus_artifact");
    let opened = home.run(&["memory", "retrieve", stored["cascade_uri"].as_str().unwrap(), "--json"]).done();
    assert!(opened.out.contains("raw_session") && !opened.out.contains("jane@"), "{}", opened.out);
}

#[test]
fn files_are_imported_once() {
    let home = Home::new();
    let lines = [
        json!({"type": "user", "sessionId": "11111111-2222-4333-8444-555555555555", "uuid": "a", "cwd": "/p",
               "timestamp": "2025-12-21T12:00:00Z", "message": {"role": "user", "content": "Fix the login"}}),
        json!({"type": "assistant", "sessionId": "11111111-2222-4333-8444-555555555555", "uuid": "b", "cwd": "/p",
               "timestamp": "2025-12-21T12:01:00Z",
               "message": {"role": "assistant", "content": [{"type": "text", "text": "Fixed the login by a rollback."}]}}),
    ];
    let folder = home.path(".claude/projects/p");
    std::fs::create_dir_all(&folder).unwrap();
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(folder.join("11111111-2222-4333-8444-555555555555.jsonl"), text.join("\n")).unwrap();
    let at_home = home.folder.path().to_str().unwrap().to_owned();
    let home = home.set("HOME", &at_home);

    let would = home.run(&["memory", "import", "--dry-run", "--json"]).done().json();
    assert_eq!((&would["stored"], &would["items"][0]["outcome"]), (&1.into(), &"would_store".into()));
    home.run(&["memory", "list"]).failed("there is no data", "confidant serve");
    let done = home.run(&["memory", "import", "--tag", "imported"]).done();
    assert!(done.out.contains("claude-code") && done.err.contains("1 stored"), "{}{}", done.out, done.err);
    let again = home.run(&["memory", "import", "--json"]).done().json();
    assert_eq!((&again["stored"], &again["unchanged_files"]), (&0.into(), &1.into()));
    home.run(&["memory", "query", "rollback", "--tag", "imported"]).done();
    let nowhere = home.run(&["memory", "import", "no-such-folder"]).nothing_found();
    assert!(
        nowhere.err.contains("no file or folder") && nowhere.err.contains("full path"),
        "{}",
        nowhere.err
    );
}

#[test]
fn an_import_lists_every_session_if_it_is_asked_to() {
    let home = Home::new();
    let session =
        |at: usize| json!({"tool_name": "notes", "summary": format!("Planted row {at} of the orchard.")});
    let sessions: serde_json::Map<_, _> = (0..53).map(|at| (format!("row-{at}"), session(at))).collect();
    let file = home.path("sessions.json");
    std::fs::write(&file, json!(sessions).to_string()).unwrap();
    let import = ["memory", "import", file.to_str().unwrap(), "--json"];
    let listed = |ran: Ran| {
        let report = ran.json();
        (report["stored"].clone(), report["items"].as_array().unwrap().len(), report["more_items"].clone())
    };
    // A dry run is there to be read. JSON is a summary otherwise.
    let shown = home.run(&[&import[..], &["--dry-run"]].concat()).done();
    assert_eq!(listed(shown), (53.into(), 53, 0.into()));
    assert_eq!(listed(home.run(&import).done()), (53.into(), 50, 3.into()));
    let all = home.run(&[&import[..], &["--verbose", "--user", "bob"]].concat()).done();
    assert_eq!(listed(all), (53.into(), 53, 0.into()));
    // A pipe has the lines as before.
    let told = home.run(&[&import[..3], &["--user", "carol"]].concat()).done();
    assert_eq!(told.out.lines().filter(|line| line.starts_with("stored")).count(), 53, "{}", told.out);
    assert!(told.err.contains("53 stored") && !told.err.contains("--verbose"), "{}", told.err);
}

#[test]
fn wrong_arguments_are_not_repeated() {
    let home = Home::new();
    let store = ["memory", "store", "s", "--session", "-"];
    piped(&home, &store, &format!("{{\"summary\": {CONTENT}}}")).failed("not valid JSON (line 1", "--help");
    piped(&home, &store, &format!("[\"{CONTENT}\"]")).failed("not a JSON object", "--help");
    piped(&home, &[&store[..], &["--metadata", CONTENT]].concat(), "{}").failed("has no key", "KEY=VALUE");
    assert!(!home.path("confidant-data").exists());
    home.run(&["memory", "store", "no-such-session"]).nothing_found();
}

#[test]
fn costs_need_no_data() {
    let home = Home::new();
    let cost = home.run(&["memory", "estimate", "1024", "--redundancy", "3", "--json"]).done().json();
    assert_eq!((&cost["ok"], &cost["bytes"]), (&true.into(), &1024.into()));
    let told = home.run(&["memory", "estimate", "1024", "--provider", "cascade"]).done();
    assert!(told.out.contains("LUME"), "{}", told.out);
    assert!(!home.path("confidant-data").exists());
}
