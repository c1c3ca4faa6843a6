//! Databases of other programs are read in whatever state they are, and left exactly as they were.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use confidant_memory::import::{Agent, FileOutcome, Import, Root, discover, import};
use rusqlite::Connection;
use serde_json::json;

use crate::{All, fixtures, messages, run};

const SCHEMA: &str = "
    CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT,
        version TEXT, revert TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
    CREATE TABLE todo (session_id TEXT, content TEXT, status TEXT, position INTEGER);
    INSERT INTO session VALUES ('ses_1', 'p', NULL, '/work/mill', 'Grinding noise', '1.2.3', NULL, 1772900000000, 1772900900000),
        ('ses_2', 'p', 'ses_1', '/work/mill', 'Child session - 1', '1.2.3', NULL, 1772900001000, 1772900002000);
    INSERT INTO message VALUES ('msg_1', 'ses_1', 1772900000000, '{\"role\":\"user\",\"time\":{\"created\":1772900000000}}'),
        ('msg_2', 'ses_1', 1772900001000, '{\"role\":\"assistant\",\"modelID\":\"example-model\"}'),
        ('msg_3', 'ses_2', 1772900001500, '{\"role\":\"user\"}'), ('msg_4', 'ses_1', 1772900001600, 'garbage');
    INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', '{\"type\":\"text\",\"text\":\"What grinds?\"}'),
        ('prt_2', 'msg_2', 'ses_1', '{\"type\":\"tool\",\"tool\":\"bash\",\"state\":{\"input\":{\"command\":\"listen\"},\"output\":\"grrr\"}}'),
        ('prt_3', 'msg_2', 'ses_1', '{\"type\":\"text\",\"text\":\"The stone does.\"}'),
        ('prt_4', 'msg_3', 'ses_2', '{\"type\":\"text\",\"text\":\"Look at the stone.\"}');
    INSERT INTO todo VALUES ('ses_1', 'Grease it', 'pending', 0);";

/// Names, lengths and hashes of all files in a folder.
fn snapshot(folder: &Path) -> BTreeMap<String, (usize, u64)> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&bytes);
        files.insert(entry.file_name().into_string().unwrap(), (bytes.len(), hash));
    }
    files
}

fn check(folder: &Path) {
    let before = snapshot(folder);
    let (all, report, discovery) = run(&[Root::path(folder.join("opencode.db"))]);
    assert_eq!(discovery.files[0].agent(), Agent::OpenCode);
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 1, ..Import::default() });
    let session = all.value("ses_1");
    assert_eq!(session["summary"], "Grinding noise");
    assert_eq!(session["timestamp"], "2026-03-07T16:28:20Z");
    assert_eq!(session["todos"], json!(["Grease it"]));
    assert_eq!(
        session["metadata"],
        json!({"project": "mill", "model": "example-model", "agent_version": "1.2.3"})
    );
    assert_eq!(
        messages(&session),
        [
            ("user", "What grinds?"),
            ("tool", "command: listen"),
            ("tool", "grrr"),
            ("assistant", "The stone does."),
            ("tool", "Look at the stone."),
        ]
    );
    assert_eq!(snapshot(folder), before, "nothing was written");
}

fn make(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("opencode.db")).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
}

/// Locks, and the index of the log, are shared within a process, so the agent has to be another one.
#[test]
fn a_database_in_use_is_read_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "databases::an_agent_at_work", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = agent.stdin.take().unwrap();
    writeln!(stdin, "{}", folder.path().to_str().unwrap()).unwrap();
    let mut output = BufReader::new(agent.stdout.take().unwrap()).lines();
    assert!(output.any(|line| line.unwrap().contains("at work")));
    assert_eq!(snapshot(folder.path()).len(), 3, "database, log, and index of the log");
    check(folder.path());
    drop(stdin);
    assert!(agent.wait().unwrap().success());
    assert_eq!(snapshot(folder.path()).len(), 1, "it could end its work as if nobody had been there");
}

#[test]
#[ignore = "started by another test"]
#[expect(clippy::print_stdout, reason = "the other test waits for it")]
fn an_agent_at_work() {
    let mut folder = String::new();
    if std::io::stdin().read_line(&mut folder).unwrap() == 0 {
        return;
    }
    let _in_use = make(Path::new(folder.trim()));
    println!("at work");
    std::io::stdin().read_to_string(&mut folder).unwrap();
}

#[test]
fn a_database_left_by_a_crash_is_read_with_its_log() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _in_use = make(folder.path());
    for name in ["opencode.db", "opencode.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    check(copy.path());
    // With an index that nobody keeps.
    std::fs::copy(folder.path().join("opencode.db-shm"), copy.path().join("opencode.db-shm")).unwrap();
    check(copy.path());
}

#[test]
fn a_database_at_rest_is_read_without_making_a_log() {
    let folder = tempfile::tempdir().unwrap();
    drop(make(folder.path()));
    assert_eq!(snapshot(folder.path()).len(), 1, "closing folds the log into the database");
    check(folder.path());
}

#[cfg(unix)]
#[test]
fn a_database_with_an_odd_path_in_a_folder_that_cannot_be_written_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a?b#c%20 d");
    std::fs::create_dir(&odd).unwrap();
    drop(make(&odd));
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o555)).unwrap();
    check(&odd);
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_only_in_the_log_changes_the_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let connection = make(folder.path());
    let roots = [Root::path(folder.path())];
    let mut all = All::default();
    import(&discover(&roots).files, &mut all).unwrap();
    assert_eq!(
        import(&discover(&roots).files, &mut all).unwrap(),
        Import { unchanged: 1, ..Import::default() }
    );
    connection.execute("UPDATE session SET title = 'Silence' WHERE id = 'ses_1'", []).unwrap();
    let report = import(&discover(&roots).files, &mut all).unwrap();
    assert_eq!((report.files, report.sessions), (1, 1));
    assert_eq!(all.sessions.last().unwrap().members()["summary"], "Silence");
}

#[test]
fn the_tree_of_older_versions_is_read_and_yields_to_a_database() {
    let (all, report, discovery) = run(&[Root::path(fixtures().join("opencode"))]);
    assert_eq!((discovery.files.len(), discovery.files[0].parts().len()), (1, 1));
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 1, ..Import::default() });
    let session = all.value("ses_01");
    assert_eq!(session["summary"], "Lamp flicker");
    assert_eq!(session["todos"], json!(["Replace the relay"]));
    assert_eq!(
        messages(&session),
        [
            ("user", "Why does the lamp flicker?"),
            ("tool", "command: dmesg"),
            ("tool", "relay bounce"),
            ("assistant", "The relay bounces."),
            ("assistant", "A helper found the relay."),
        ]
    );

    let home = tempfile::tempdir().unwrap();
    let opencode = home.path().join(".local/share/opencode");
    std::fs::create_dir_all(opencode.join("storage/session/p")).unwrap();
    std::fs::create_dir_all(opencode.join("storage/message")).unwrap();
    std::fs::write(opencode.join("storage/session/p/ses_1.json"), r#"{"id":"ses_1"}"#).unwrap();
    drop(make(&opencode));
    let (all, report, _) = run(&[Root::Home(home.path().to_owned())]);
    assert_eq!((report.files, all.ids()), (1, vec!["ses_1"]));
}

#[test]
fn cursor_conversations_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let connection = Connection::open(folder.path().join("state.vscdb")).unwrap();
    connection.execute_batch("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)").unwrap();
    let put = |key: &str, value: serde_json::Value| {
        connection.execute("INSERT INTO cursorDiskKV VALUES (?1, ?2)", (key, value.to_string())).unwrap();
    };
    put(
        "composerData:c1",
        json!({"composerId": "c1", "lastUpdatedAt": 1_772_900_000_000_u64, "fullConversationHeadersOnly":
            [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}, {"bubbleId": "gone", "type": 2}]}),
    );
    put("bubbleId:c1:b1", json!({"type": 1, "text": "Sort the nails."}));
    put(
        "bubbleId:c1:b2",
        json!({"type": 2, "text": "Sorted.", "toolFormerData": {"name": "run", "rawArgs": "{\"by\":\"size\"}"}}),
    );
    put("composerData:c2", json!({"conversation": []}));
    drop(connection);
    let (all, report, _) = run(&[Root::path(folder.path())]);
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 1, ..Import::default() });
    assert_eq!(all.value("c1")["summary"], "Sort the nails.");
    assert_eq!(
        messages(&all.value("c1")),
        [("user", "Sort the nails."), ("assistant", "Sorted."), ("tool", "by: size")]
    );
}

#[test]
fn a_damaged_database_is_a_failed_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    std::fs::write(&path, [&b"SQLite format 3\0"[..], &[7; 5000]].concat()).unwrap();
    let files = discover(&[Root::of(Agent::OpenCode, &path)]).files;
    let mut all = All::default();
    assert_eq!(import(&files, &mut all).unwrap(), Import { failed: 1, ..Import::default() });
    assert_eq!(all.outcomes, [FileOutcome::Failed]);
}
