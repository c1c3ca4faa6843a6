//! Importing again does only what is new.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use confidant_memory::import::{Import, Imported, Progress, Root, Visitor, discover, import};
use confidant_memory::{Error, Result};

use crate::{All, fixtures};

fn again(root: &Path, all: &mut All) -> Import {
    import(&discover(&[Root::path(root)]).files, all).unwrap()
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    let mut all = All::default();
    let first = again(&fixtures(), &mut all);
    assert_eq!((first.unchanged, first.failed), (0, 0));
    let sessions = all.sessions.len();
    let second = again(&fixtures(), &mut all);
    assert_eq!(second, Import { unchanged: first.files, ..Import::default() });
    assert_eq!(all.sessions.len(), sessions);
}

#[test]
fn a_touched_or_moved_file_is_the_same_and_a_longer_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.jsonl");
    std::fs::copy(fixtures().join("generic/mixed.jsonl"), &path).unwrap();
    let mut all = All::default();
    assert_eq!(again(&path, &mut all).files, 1);

    let touch = |to: SystemTime| File::options().append(true).open(&path).unwrap().set_modified(to).unwrap();
    touch(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    assert_eq!(again(&path, &mut all), Import { unchanged: 1, ..Import::default() });

    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(file, r#"{{"session_id":"one","role":"user","content":"And the cactus."}}"#).unwrap();
    let before = all.keys.clone();
    all.keys.clear();
    assert_eq!(again(&path, &mut all).files, 1);
    let new: Vec<_> = all.keys.iter().filter(|key| !before.contains(key)).map(|key| key.session()).collect();
    assert_eq!((all.keys.len(), new), (3, vec!["one"]), "the key tells which session is new");
}

#[test]
fn the_time_of_a_file_is_no_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.jsonl");
    std::fs::copy(fixtures().join("generic/plain.jsonl"), &path).unwrap();
    let keys = || {
        let mut all = All::default();
        again(&path, &mut all);
        (all.keys[0].clone(), all.value("plain")["timestamp"].clone())
    };
    let (before, time_before) = keys();
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400)).unwrap();
    let (after, time_after) = keys();
    assert_eq!(before, after);
    assert_ne!(time_before, time_after);
    assert_eq!(time_after, "1970-01-02T00:00:00Z");
}

#[test]
fn a_changed_sub_agent_changes_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let source = fixtures().join("claude/projects/-work-garden");
    let main = "11111111-2222-4333-8444-555555555555.jsonl";
    for name in [main, "agent-b8.jsonl"] {
        std::fs::copy(source.join(name), folder.path().join(name)).unwrap();
    }
    let mut all = All::default();
    assert_eq!(again(folder.path(), &mut all).files, 1);
    let mut part = OpenOptions::new().append(true).open(folder.path().join("agent-b8.jsonl")).unwrap();
    writeln!(part, r#"{{"type":"assistant","uuid":"n","isSidechain":true,"message":{{"content":"Four."}}}}"#)
        .unwrap();
    assert_eq!(again(folder.path(), &mut all).files, 1);
    assert_ne!(all.keys[0], all.keys[1]);
    assert_eq!(all.keys[0].session(), all.keys[1].session());
}

#[test]
fn progress_goes_up_to_all() {
    let mut all = All::default();
    let files = discover(&[Root::path(fixtures())]).files;
    import(&files, &mut all).unwrap();
    assert!(all.progress.is_sorted_by_key(|progress| (progress.files_done, progress.bytes_done)));
    let last = all.progress.last().unwrap();
    assert_eq!((last.files_done, last.bytes_done), (files.len(), last.bytes_total));
    assert!(last.bytes_total > 0 && last.files_total == files.len());
}

#[test]
fn progress_grows_within_a_file_of_many_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let session = |at: usize| {
        let text = format!("Please rename module {at}. ").repeat(40);
        serde_json::json!({"session_id": format!("s{at}"), "messages": [{"role": "user", "content": text}]})
    };
    let lines: Vec<String> = (0..3).map(|at| session(at).to_string()).collect();
    std::fs::write(folder.path().join("many.jsonl"), lines.join("\n")).unwrap();
    let mut all = All::default();
    assert_eq!(again(folder.path(), &mut all).sessions, 3);
    let told: Vec<_> = all.progress.iter().map(|told| (told.sessions_done, told.files_done)).collect();
    assert_eq!(told, [(0, 0), (1, 0), (2, 0), (3, 1)]);
    assert!(all.progress.windows(2).all(|two| two[0].bytes_done < two[1].bytes_done), "{:?}", all.progress);
}

#[test]
fn a_visitor_that_refuses_ends_the_import() {
    struct Refuses(usize);
    impl Visitor for Refuses {
        fn session(&mut self, _: Imported, _: Progress) -> Result<()> {
            self.0 += 1;
            Err(Error::Changed)
        }
    }
    let mut refuses = Refuses(0);
    let files = discover(&[Root::path(fixtures())]).files;
    assert_eq!(import(&files, &mut refuses), Err(Error::Changed));
    assert_eq!(refuses.0, 1);
}
