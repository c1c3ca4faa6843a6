//! The program as people run it: one process per command, offline, on a folder of its own.
//!
//! Every test looks at three things: the exit status, what stands where (data on stdout, words on stderr, a hint with
//! every error), and that neither has anything that it must not have.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_confidant");
/// Words that a person says, and that no message of ours may repeat.
const CONTENT: &str = "zanzibar-marker";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "ICECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A folder to run in, and the environment to run with.
struct Home {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: BTreeMap::new() }
    }

    /// A folder in which alice has said something.
    fn with_alice() -> Self {
        let home = Self::new();
        home.alice(&format!("Hello, I'm Alice and I prefer {CONTENT}")).done();
        home
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn data(&self, name: &str) -> PathBuf {
        self.path("confidant-data").join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.folder.path()).env_clear().envs(&self.variables);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    fn alice(&self, text: &str) -> Ran {
        self.run(&["chat", "--user", "alice", "--room", "db", "--once", text])
    }

    fn bob(&self, text: &str) -> Ran {
        self.run(&["chat", "--user", "bob", "--room", "db", "--once", text])
    }

    /// Every byte of every file below.
    fn all_bytes(&self) -> Vec<u8> {
        fn collect(folder: &Path, bytes: &mut Vec<u8>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, bytes);
                } else {
                    bytes.extend(fs::read(path).unwrap());
                }
            }
        }
        let mut bytes = Vec::new();
        collect(self.folder.path(), &mut bytes);
        bytes
    }

    fn holds(&self, text: &str) -> bool {
        self.all_bytes().windows(text.len()).any(|window| window == text.as_bytes())
    }

    fn master_key(&self) -> String {
        fs::read_to_string(self.data("master.key")).unwrap()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// It did what it was asked to.
    #[track_caller]
    fn done(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// There was nothing; that is no error.
    #[track_caller]
    fn nothing_found(self) -> Self {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(!self.err.contains("error:"), "{}", self.err);
        self
    }

    /// It failed, with these words, a hint, no data and no secret.
    #[track_caller]
    fn failed(self, what: &str, hint: &str) -> Self {
        assert_eq!(self.code, 2, "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        let line = |start: &str| self.err.lines().find(|line| line.starts_with(start)).unwrap_or_default();
        assert!(line("error: ").contains(what), "{}", self.err);
        assert!(line("hint: ").contains(hint), "{}", self.err);
        assert!(self.err.lines().count() < 4, "{}", self.err);
        for secret in [CONTENT, KEY, OTHER_KEY] {
            assert!(!self.err.contains(secret), "{}", self.err);
        }
        self
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A server on a port of its own, ended with the test.
struct Server {
    child: Child,
    address: String,
    rest: Option<BufReader<std::process::ChildStderr>>,
    said: String,
}

impl Server {
    fn start(home: &Home) -> Self {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
            if let Some(address) = said[before..].trim().strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        Self { child, address, rest: Some(lines), said }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to stop and returns its exit status and all that it said.
    fn stop(mut self) -> (i32, String) {
        self.signal("TERM");
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let mut said = std::mem::take(&mut self.said);
        self.rest.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }

    fn ask(&self, request: &str, token: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
fn a_wrong_key_opens_nothing() {
    let home = Home::with_alice().set("CHECKPOINT_ENCRYPTION_KEY", OTHER_KEY);
    home.alice("What is my name?").failed("wrong master key", "restore the key that made this data");
    home.run(&["session", "list"]).failed("wrong master key", "CHECKPOINT_ENCRYPTION_KEY");
}

#[test]
fn a_key_that_is_none_is_not_quoted() {
    let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", CONTENT);
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
fn stores_that_this_build_does_not_have_are_refused_without_their_password() {
    let home = Home::new().set("REDIS_URL", &format!("redis://:{CONTENT}@localhost"));
    home.alice(CONTENT).failed("this build has no such store yet", "use sqlite:");
    let home = Home::new().set("CONFIDANT_STORE__URL", &format!("mysql://{CONTENT}"));
    home.alice(CONTENT).failed("not the address of a store", "sqlite:/path/folder");
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
        .failed("the folder file/data cannot be made", "--data-dir");
    home.run(&[&chat[..], &["/proc/confidant"]].concat())
        .failed("/proc/confidant cannot be made", "--data-dir");
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
        .failed("is there already", "another name");
    home.run(&["keys", "generate", "--output", "new.key"]).done();
    assert_eq!(mode(home.path("new.key")), 0o600);
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
    home.alice("What is my name?").failed("wrong master key", "restore the key");
}

#[test]
fn an_interrupted_rotation_is_finished_by_the_next() {
    let home = Home::with_alice();
    // As it is when the new key is written and nothing else has happened.
    fs::write(home.data("master.key"), format!("{KEY}\nold: {}", home.master_key())).unwrap();
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    assert!(home.run(&["doctor"]).done().out.contains("warn  master key: a rotation was interrupted"));
    let ran = home.run(&["keys", "rotate"]).done();
    assert!(ran.err.contains("an earlier rotation was interrupted; it goes on"), "{}", ran.err);
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
    assert!(home.run(&["keys", "verify"]).done().out.starts_with("1 key and 1 session open; "));
    assert_eq!(home.run(&["keys", "verify", "--json"]).done().json()["refused"], serde_json::json!([]));
    let status = home.run(&["keys", "status"]).done().out;
    assert!(status.contains("master key from  ./confidant-data/master.key"), "{status}");
    assert!(!status.contains(home.master_key().trim()));
}

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
    home.run(&verify).failed("signature does not hold", "unchanged");
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
    assert!(doctor.out.contains("(key-gone)"), "{}", doctor.out);
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
    assert!(doctor.out.contains("rolled-back") && doctor.out.contains("--accept-restore"), "{}", doctor.out);
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
    assert!(doctor.out.contains("ok    sessions: 1 key and 1 log open"), "{}", doctor.out);
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

#[test]
fn a_server_starts_serves_and_stops_in_good_order() {
    let home = Home::new();
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    assert_eq!(fs::metadata(home.data("admin.token")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(server.ask("GET /healthz", "", "").starts_with("HTTP/1.1 200"));
    let turns = "POST /api/v1/session/cli:db:main:alice/turns";
    let body = format!(r#"{{"query": "Hello, I'm Alice and I prefer {CONTENT}"}}"#);
    let answer = server.ask(turns, token.trim(), &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A command beside it sees the same data and takes the address for ours.
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("sessions: 1 key and 1 log open"), "{}", doctor.out);
    let taken = server.address.clone();
    home.run(&["serve", "--listen", &taken]).failed("is in use", "server.listen");
    let (code, said) = server.stop();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the administrator's token is in ./confidant-data/admin.token"), "{said}");
    for secret in [token.trim(), CONTENT, "alice", home.master_key().trim()] {
        assert!(!said.contains(secret), "{said}");
    }
    assert!(home.alice("What is my name?").done().out.contains("Alice"));
}

#[test]
fn a_running_server_follows_a_rotation() {
    let home = Home::with_alice();
    let server = Server::start(&home);
    let token = fs::read_to_string(home.data("admin.token")).unwrap();
    let ask = |user: &str, query: &str| {
        let turns = format!("POST /api/v1/session/cli:db:main:{user}/turns");
        let answer = server.ask(&turns, token.trim(), &format!(r#"{{"query": "{query}"}}"#));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    ask("bob", "Hello, I'm Bob");
    home.run(&["keys", "rotate"]).done();
    assert!(ask("alice", "What is my name?").contains("Alice"));
    assert!(ask("bob", "What is my name?").contains("Bob"));
    ask("carol", "Hello, I'm Carol");
    let status = home.run(&["keys", "status", "--json"]).done().json();
    assert_eq!((&status["keys"], &status["under_others"]), (&3.into(), &0.into()));
    assert_eq!(server.stop().0, 0);
    assert!(home.run(&["keys", "verify"]).done().out.starts_with("3 keys and 3 sessions open"));
}

#[test]
fn sessions_end_with_their_lifetime_while_a_server_runs() {
    let home = Home::with_alice();
    let home = home.set("CHECKPOINT_TTL", "1").set("CONFIDANT_CHECKPOINT__SWEEP_SECONDS", "1");
    home.bob("Hello, I'm Bob").done();
    let server = Server::start(&home);
    // Not a sleep: it ends as soon as the sweeper has been there.
    let gone = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        !home.run(&["session", "list"]).out.contains("bob")
    });
    assert!(gone);
    let (_, said) = server.stop();
    assert!(said.contains("sessions.expired=1"), "{said}");
}

#[test]
fn logs_can_be_json() {
    let home = Home::new().set("CONFIDANT_LOG__FORMAT", "json");
    let (_, said) = Server::start(&home).stop();
    let started = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    assert!(
        started.into_iter().any(|line| line["message"] == "started" && line["level"] == "INFO"),
        "{said}"
    );
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
    for command in ["", "serve", "chat", "session", "person", "keys", "audit", "token", "doctor", "config"] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|part| !part.is_empty()).collect();
        let help = home.run(&arguments).done().out;
        assert!(help.contains("Usage: confidant") && help.contains("Example"), "{command}: {help}");
        assert!(help.lines().all(|line| line.len() < 130), "{command}: {help}");
    }
    for (command, parts) in [
        ("session", &["list", "show", "export", "delete"][..]),
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
