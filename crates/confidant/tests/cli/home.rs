//! A place to run the program in, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_confidant");
/// Words that a person says, and that no message of ours may repeat.
pub(crate) const CONTENT: &str = "zanzibar-marker";
pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
pub(crate) const OTHER_KEY: &str = "ICECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A folder to run in, and the environment to run with.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
    pub(crate) variables: BTreeMap<String, String>,
}

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: BTreeMap::new() }
    }

    /// A folder in which alice has said something.
    pub(crate) fn with_alice() -> Self {
        let home = Self::new();
        home.alice(&format!("Hello, I'm Alice and I prefer {CONTENT}")).done();
        home
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.path("confidant-data").join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.folder.path()).env_clear().envs(&self.variables);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    pub(crate) fn alice(&self, text: &str) -> Ran {
        self.run(&["chat", "--user", "alice", "--room", "db", "--once", text])
    }

    pub(crate) fn bob(&self, text: &str) -> Ran {
        self.run(&["chat", "--user", "bob", "--room", "db", "--once", text])
    }

    /// Every byte of every file below.
    pub(crate) fn all_bytes(&self) -> Vec<u8> {
        fn collect(folder: &Path, bytes: &mut Vec<u8>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, bytes);
                } else {
                    // A journal may go between the look and the read.
                    bytes.extend(fs::read(path).unwrap_or_default());
                }
            }
        }
        let mut bytes = Vec::new();
        collect(self.folder.path(), &mut bytes);
        bytes
    }

    pub(crate) fn holds(&self, text: &str) -> bool {
        self.all_bytes().windows(text.len()).any(|window| window == text.as_bytes())
    }

    pub(crate) fn master_key(&self) -> String {
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
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// There was nothing; that is no error.
    #[track_caller]
    pub(crate) fn nothing_found(self) -> Self {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(!self.err.contains("error:"), "{}", self.err);
        self
    }

    /// It failed, with these words, a hint, no data and no secret.
    #[track_caller]
    pub(crate) fn failed(self, what: &str, hint: &str) -> Self {
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

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A server on a port of its own, ended with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    rest: Option<BufReader<std::process::ChildStderr>>,
    said: String,
}

impl Server {
    pub(crate) fn start(home: &Home) -> Self {
        Self::start_as(home, "all")
    }

    /// Only a gateway, say.
    pub(crate) fn start_as(home: &Home, role: &str) -> Self {
        let mut command = home.command(&["serve", "--role", role, "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let rest = Some(BufReader::new(child.stderr.take().unwrap()));
        let mut server = Self { child, address: String::new(), rest, said: String::new() };
        server.wait_until_it_says(LISTENING);
        let last = server.said.lines().last().unwrap_or_default();
        server.address = last.strip_prefix(LISTENING).unwrap().to_owned();
        server
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Asks it to stop and returns its exit status and all that it said.
    pub(crate) fn stop(mut self) -> (i32, String) {
        self.signal("TERM");
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let mut said = std::mem::take(&mut self.said);
        self.rest.take().unwrap().read_to_string(&mut said).unwrap();
        (code, said)
    }

    /// What it said up to now.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Reads what it says until a line has this word.
    pub(crate) fn wait_until_it_says(&mut self, word: &str) {
        let lines = self.rest.as_mut().unwrap();
        loop {
            let before = self.said.len();
            assert_ne!(lines.read_line(&mut self.said).unwrap(), 0, "{}", self.said);
            if self.said[before..].contains(word) {
                return;
            }
        }
    }

    /// Sends a request without waiting for the answer.
    pub(crate) fn connect(&self, request: &str, token: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn ask(&self, request: &str, token: &str, body: &str) -> String {
        let mut answer = String::new();
        self.connect(request, token, body).read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LISTENING: &str = "listening on http://";
