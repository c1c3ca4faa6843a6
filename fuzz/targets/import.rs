//! Session files of every form, whatever is in them: what comes out has an id, keeps the bounds, is the same the second
//! time, packed or not, and by its id; no text is cut, for half a secret is not recognised as one; reports quote nothing.

#![no_main]

#[path = "import/files.rs"]
mod files;

use confidant_memory::fuzzing::{LONGEST_LEAF, find};
use confidant_memory::import::{
    FileOutcome, Fingerprint, Import, Imported, Progress, Root, SessionFile, Visitor, discover, import,
};
use confidant_memory::{Result, when};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

use files::Form;

/// A word that is looked for, whole and in halves, and stands in the file wherever the input has a question mark.
const CANARY: &str = "zq7canary7qz";

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let form = Form::ALL[usize::from(choice) % Form::ALL.len()];
    let bytes = canaries(rest);
    let folder = tempfile::tempdir().expect("a folder can be made");
    let found = read(&form.write(folder.path(), &bytes));

    for imported in &found.sessions {
        sound(imported, form);
        assert!(!format!("{imported:?} {:?}", found.report).contains(CANARY));
    }
    if form.is_lines() && !bytes.starts_with(&files::PACKED) {
        // In the same place, whose name is part of what some say.
        let packed = read(&form.write(folder.path(), &files::pack(&bytes)));
        assert_eq!(packed.keys(), found.keys());
    }
});

fn canaries(input: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = input.split(|byte| *byte == b'?').collect();
    parts.join(CANARY.as_bytes())
}

#[derive(Default)]
struct Found {
    known: Option<Fingerprint>,
    sessions: Vec<Imported>,
    outcomes: Vec<FileOutcome>,
    report: Import,
}

impl Found {
    fn keys(&self) -> Vec<[u8; 32]> {
        self.sessions.iter().map(|imported| imported.key.to_bytes()).collect()
    }
}

impl Visitor for Found {
    fn known(&mut self, _: &SessionFile) -> Option<Fingerprint> {
        self.known
    }

    fn session(&mut self, imported: Imported, _: Progress) -> Result<()> {
        self.sessions.push(imported);
        Ok(())
    }

    fn file_done(&mut self, _: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        assert!(progress.files_done <= progress.files_total && progress.bytes_done <= progress.bytes_total);
        self.outcomes.push(outcome);
        Ok(())
    }
}

/// Imports, again, with what is known by then, and one by one.
fn read(root: &Root) -> Found {
    let files = discover(std::slice::from_ref(root)).files;
    let mut found = Found::default();
    found.report = import(&files, &mut found).expect("the visitor takes everything");
    let Import { files: read, unchanged, failed, sessions, .. } = found.report;
    assert_eq!((read + failed, unchanged, sessions), (files.len(), 0, found.sessions.len()));

    let mut again = Found::default();
    again.report = import(&files, &mut again).expect("the visitor takes everything");
    assert_eq!((again.report, again.keys()), (found.report, found.keys()));

    let [file] = &files[..] else { return found };
    if let [FileOutcome::Read(fingerprint)] = found.outcomes[..] {
        let kept = Fingerprint::from_bytes(&fingerprint.to_bytes()).expect("its own bytes");
        let mut later = Found { known: Some(kept), ..Found::default() };
        later.report = import(&files, &mut later).expect("the visitor takes everything");
        assert!(later.sessions.is_empty() && later.report.unchanged == 1);
        for (at, imported) in found.sessions.iter().enumerate() {
            let id = imported.session.id();
            // The last of several that call themselves the same is the one that holds.
            if found.sessions[at + 1..].iter().all(|later| later.session.id() != id) {
                assert_eq!(find(file, id).as_ref(), Some(&imported.session));
            }
        }
    }
    found
}

fn sound(imported: &Imported, form: Form) {
    let (id, members) = (imported.session.id(), imported.session.members());
    assert!(!id.is_empty() && id.len() <= 512 && id.trim() == id && !id.chars().any(char::is_control));
    assert_eq!((members.get("session_id"), imported.key.session()), (Some(&Value::from(id)), id));
    members.values().for_each(leaves);
    if form.is_whole() {
        return;
    }
    let messages = members.get("messages").and_then(Value::as_array).expect("what has none is no session");
    for message in messages {
        let role = message["role"].as_str().expect("somebody said it");
        assert!(["user", "assistant", "tool", "system"].contains(&role), "{role}");
        assert!(message["content"].is_string());
        time(message.get("timestamp"));
    }
    time(members.get("timestamp"));
}

/// Every text within its bound and nowhere cut through the word.
fn leaves(value: &Value) {
    match value {
        Value::String(text) => {
            assert!(text.len() <= LONGEST_LEAF, "{} bytes", text.len());
            let count = |part: &str| text.matches(part).count();
            let (half, other_half) = CANARY.split_at(CANARY.len() / 2);
            assert_eq!((count(half), count(other_half)), (count(CANARY), count(CANARY)), "{text:?}");
        }
        Value::Array(items) => items.iter().for_each(leaves),
        Value::Object(members) => members.values().for_each(leaves),
        _ => {}
    }
}

/// A time that is written is read as the same.
fn time(value: Option<&Value>) {
    let Some(written) = value else { return };
    let read = when::parse(written).expect("a time that we wrote");
    assert_eq!(written, &Value::from(when::format(read)));
}
