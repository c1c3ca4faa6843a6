//! The files and folders in which an input becomes a session.

use std::fs;
use std::path::{Path, PathBuf};

use confidant_memory::import::{Agent, Root};
use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// How the input is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One file of this agent.
    File(Agent),
    /// One file whose agent is to be told by what is in it.
    Unknown,
    /// A packed file, of which only the magic number is given.
    Packed,
    /// `OpenCode`'s tree of files, one line each.
    Tree,
    /// `OpenCode`'s database, a row from each line.
    OpenCodeRows,
    /// Cursor's database, a row from each line.
    CursorRows,
}

pub const PACKED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl Form {
    pub const ALL: [Self; 13] = [
        Self::File(Agent::ClaudeCode),
        Self::File(Agent::Codex),
        Self::File(Agent::Gemini),
        Self::File(Agent::Aider),
        Self::File(Agent::OpenCode),
        Self::File(Agent::Cursor),
        Self::File(Agent::Generic),
        Self::File(Agent::Fixture),
        Self::Unknown,
        Self::Packed,
        Self::Tree,
        Self::OpenCodeRows,
        Self::CursorRows,
    ];

    /// Whether packing the file makes no difference.
    pub fn is_lines(self) -> bool {
        matches!(self, Self::File(Agent::ClaudeCode | Agent::Codex | Agent::Aider))
    }

    /// Whether sessions may be taken as they are, without our having put them together.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::File(Agent::Generic | Agent::Fixture) | Self::Unknown)
    }

    /// Writes the input in this form.
    pub fn write(self, folder: &Path, input: &[u8]) -> Root {
        let file = |name: &str, bytes: &[u8]| -> PathBuf {
            let path = folder.join(name);
            fs::write(&path, bytes).expect("a file can be written");
            path
        };
        match self {
            // The list of what was typed is known by its name.
            Self::File(agent @ Agent::Gemini) if input.starts_with(b"[") => {
                Root::of(agent, file("logs.json", input))
            }
            Self::File(agent) => Root::of(agent, file(name(agent), input)),
            Self::Unknown => Root::path(file("unknown", input)),
            Self::Packed => Root::of(Agent::Codex, file("rollout.jsonl.zst", &[&PACKED, input].concat())),
            Self::Tree => {
                tree(folder, input);
                Root::of(Agent::OpenCode, folder)
            }
            Self::OpenCodeRows => {
                Root::of(Agent::OpenCode, database(folder.join("opencode.db"), OPENCODE, input, opencode_row))
            }
            Self::CursorRows => {
                Root::of(Agent::Cursor, database(folder.join("state.vscdb"), CURSOR, input, cursor_row))
            }
        }
    }
}

pub fn pack(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

fn name(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => "11111111-2222-4333-8444-555555555555.jsonl",
        Agent::Codex => "rollout-2026-03-02T08-00-00-0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl",
        Agent::Gemini => "session-2026-03-03T07-00-aaaaaaaa.json",
        Agent::Aider => ".aider.chat.history.md",
        Agent::OpenCode => "opencode.db",
        Agent::Cursor => "state.vscdb",
        _ => "sessions.jsonl",
    }
}

/// Each line with the letter that says what it is and its number.
fn lines(input: &[u8]) -> impl Iterator<Item = (u8, usize, &[u8])> {
    let lines = input.split(|byte| *byte == b'\n').take(MOST_LINES).enumerate();
    lines.filter_map(|(at, line)| line.split_first().map(|(kind, rest)| (*kind, at, rest)))
}

/// `s`: a session, `m`: a message of the last session, `p`: a part of the last message, `t`: its to-do list.
fn tree(folder: &Path, input: &[u8]) {
    let write = |path: PathBuf, bytes: &[u8]| {
        fs::create_dir_all(path.parent().expect("a path below a folder")).expect("a folder can be made");
        fs::write(path, bytes).expect("a file can be written");
    };
    let (mut session, mut message) = ("ses_0".to_owned(), "msg_0".to_owned());
    write(folder.join("message/ses_0/msg_0.json"), br#"{"role":"user"}"#);
    write(folder.join("session/p/ses_0.json"), b"{}");
    for (kind, at, line) in lines(input) {
        match kind {
            b's' => {
                session = format!("ses_{at}");
                write(folder.join(format!("session/p/{session}.json")), line);
            }
            b'm' => {
                message = format!("msg_{at}");
                write(folder.join(format!("message/{session}/{message}.json")), line);
            }
            b't' => write(folder.join(format!("todo/{session}.json")), line),
            _ => write(folder.join(format!("part/{message}/prt_{at}.json")), line),
        }
    }
}

type AddRow = fn(&Connection, (u8, usize, &[u8])) -> rusqlite::Result<usize>;

fn database(path: PathBuf, schema: &str, input: &[u8], row: AddRow) -> PathBuf {
    let fill = || -> rusqlite::Result<()> {
        let db = Connection::open(&path)?;
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
        db.execute_batch(schema)?;
        for line in lines(input) {
            row(&db, line)?;
        }
        db.execute_batch("COMMIT")
    };
    fill().expect("a database can be filled");
    path
}

/// As in the tree; the first line of `s` is the root's title, of `r` what it takes back, of `c` a sub-agent's title.
fn opencode_row(db: &Connection, (kind, at, line): (u8, usize, &[u8])) -> rusqlite::Result<usize> {
    let text = String::from_utf8_lossy(line);
    match kind {
        b's' => db.execute("UPDATE session SET title = ?1 WHERE id = 'ses_0'", [&text]),
        b'r' => db.execute("UPDATE session SET revert = ?1 WHERE id = 'ses_0'", [&text]),
        b'c' => db.execute(
            "INSERT INTO session VALUES (?1, ?2, 'p', 'x', '1', NULL, ?3, 2)",
            (format!("ses_{at}"), &text, at),
        ),
        b'm' => db.execute(
            "INSERT INTO message VALUES (?1, (SELECT max(id) FROM session), ?2, ?3)",
            (format!("msg_{at:04}"), at, line),
        ),
        b't' => db.execute("INSERT INTO todo VALUES ('ses_0', ?1, NULL)", [&text]),
        _ => db.execute(
            "INSERT INTO part VALUES (?1, (SELECT max(id) FROM message), ?2)",
            (format!("prt_{at:04}"), line),
        ),
    }
}

/// `c`: a conversation, `k`: one with a name of its own, otherwise a bubble of conversation 0.
fn cursor_row(db: &Connection, (kind, at, line): (u8, usize, &[u8])) -> rusqlite::Result<usize> {
    let key = match kind {
        b'c' => "composerData:0".to_owned(),
        b'k' => format!("composerData:{}", String::from_utf8_lossy(line)),
        _ => format!("bubbleId:0:{at}"),
    };
    db.execute("INSERT OR REPLACE INTO cursorDiskKV VALUES (?1, ?2)", (key, line))
}

const OPENCODE: &str = "\
CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT, time_created INT, time_updated INT);
CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT);
CREATE TABLE part (id TEXT, message_id TEXT, data TEXT);
CREATE TABLE todo (session_id TEXT, content TEXT, status TEXT);
INSERT INTO session VALUES ('ses_0', NULL, 'p', 'New session - x', '1', NULL, 1, 2);";
const CURSOR: &str = "CREATE TABLE cursorDiskKV (key TEXT PRIMARY KEY, value BLOB);";
const MOST_LINES: usize = 64;
