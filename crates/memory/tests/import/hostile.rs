//! Whatever is in a file, nothing panics, nothing is cut, and what is skipped is counted.

use std::path::Path;

use confidant_memory::import::{Agent, Import, Root, discover};
use proptest::prelude::*;

use crate::{fixtures, run, run_file};

#[test]
fn bad_lines_are_counted_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut bytes = b"{\"role\":\"user\",\"content\":\"before\"}\n{broken\n\n[]\n".to_vec();
    bytes.extend_from_slice(b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}\n");
    bytes.extend_from_slice(b"{\"role\":\"user\",\"content\":\"after\"}\n{\"role\":\"user\",\"cont");
    std::fs::write(&path, bytes).unwrap();
    let (all, report) = run_file(Agent::Generic, &path);
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 4, ..Import::default() });
    assert_eq!(crate::messages(&all.value("s")), [("user", "before"), ("user", "after")]);
}

#[test]
fn long_lines_are_skipped_and_long_texts_left_out_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let line = |length: usize| {
        format!("{{\"role\":\"tool\",\"name\":\"Bash\",\"content\":\"{}\"}}\n", "x".repeat(length))
    };
    let text =
        line(9 << 20) + &line(2 << 20) + &line(1 << 20) + "{\"role\":\"user\",\"content\":\"hello\"}\n";
    std::fs::write(&path, text).unwrap();
    let (all, report) = run_file(Agent::Generic, &path);
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 1, left_out: 1, ..Import::default() });
    let session = all.value("s");
    assert_eq!(session["metadata"]["left_out"], 1);
    let messages = session["messages"].as_array().unwrap();
    assert_eq!((&messages[0]["content"], &messages[0]["left_out"]), (&"".into(), &(2 << 20).into()));
    assert_eq!(messages[1]["content"].as_str().unwrap().len(), 1 << 20, "what fits is whole");
    assert_eq!(messages.len(), 3);
}

#[test]
fn deep_json_is_a_bad_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let deep = format!("{{\"role\":\"user\",\"content\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    std::fs::write(&path, deep).unwrap();
    for agent in Agent::ALL {
        let (all, _) = run_file(agent, &path);
        assert!(all.sessions.is_empty());
    }
}

#[test]
fn ids_that_cannot_be_ids_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let long = "x".repeat(600);
    let text = format!(
        "{{\"session_id\":\"a\\u0000b\",\"role\":\"user\",\"content\":\"x\"}}\n{{\"session_id\":\"{long}\",\"summary\":\"x\"}}\n"
    );
    std::fs::write(&path, text).unwrap();
    let (_, report) = run_file(Agent::Generic, &path);
    assert_eq!(report, Import { files: 1, skipped: 2, ..Import::default() });
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_read_are_counted_and_the_others_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jsonl", "b.jsonl"] {
        std::fs::copy(fixtures().join("generic/plain.jsonl"), folder.path().join(name)).unwrap();
    }
    let locked = folder.path().join("a.jsonl");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&locked).is_ok() {
        // Nothing is unreadable to root; a file that has gone since it was found does as well.
        let files = discover(&[Root::of(Agent::Generic, folder.path())]).files;
        std::fs::remove_file(&locked).unwrap();
        let mut all = crate::All::default();
        let report = confidant_memory::import::import(&files, &mut all).unwrap();
        assert_eq!((report.failed, all.ids()), (1, vec!["b"]));
        return;
    }
    let (all, report, _) = run(&[Root::of(Agent::Generic, folder.path())]);
    assert_eq!((report.failed, all.ids()), (1, vec!["b"]));
}

/// A pipe that nobody writes to would be waited for until the end of the process.
#[cfg(unix)]
#[test]
fn pipes_links_and_devices_are_not_read_and_nothing_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::copy(fixtures().join("generic/plain.jsonl"), at("b.jsonl")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe.jsonl")).status().unwrap().success());
    std::os::unix::fs::symlink(at("b.jsonl"), at("link.jsonl")).unwrap();
    std::os::unix::fs::symlink(at("pipe.jsonl"), at("to-pipe.jsonl")).unwrap();
    let all_agents = Agent::ALL.into_iter().map(Some).chain([None]);
    for (name, agent) in ["pipe.jsonl", "link.jsonl", "to-pipe.jsonl"]
        .into_iter()
        .flat_map(|name| all_agents.clone().map(move |agent| (name, agent)))
    {
        let found = discover(&[Root::Path { path: at(name), agent }]);
        assert_eq!((found.files.len(), found.unreadable, found.missing), (0, 1, false), "{name} {agent:?}");
    }
    let found = discover(&[Root::Path { path: "/dev/null".into(), agent: Some(Agent::Generic) }]);
    assert_eq!((found.files.len(), found.unreadable), (0, 1));
    // One that becomes a pipe, or a link, after it was found is not waited for or followed either.
    for becomes in ["pipe", "link"] {
        let path = at("c.jsonl");
        std::fs::copy(fixtures().join("generic/plain.jsonl"), &path).unwrap();
        let files = discover(&[Root::of(Agent::Generic, &path)]).files;
        std::fs::remove_file(&path).unwrap();
        if becomes == "pipe" {
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink(at("b.jsonl"), &path).unwrap();
        }
        let mut all = crate::All::default();
        let report = confidant_memory::import::import(&files, &mut all).unwrap();
        assert_eq!((report.failed, all.sessions.len()), (1, 0), "{becomes}");
        std::fs::remove_file(&path).unwrap();
    }
    // In a folder they are passed over, and the file beside them is read.
    let (all, _, _) = run(&[Root::of(Agent::Generic, folder.path())]);
    assert_eq!(all.ids(), ["b"]);
}

/// Reads bytes as every agent's file; all that matters is that it ends.
fn read_as_all(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session-x.json");
    std::fs::write(&path, bytes).unwrap();
    for agent in Agent::ALL {
        let (all, report) = run_file(agent, &path);
        assert_eq!(all.sessions.len(), report.sessions);
    }
    let _ = run(&[Root::path(&path)]);
}

fn samples() -> Vec<Vec<u8>> {
    fn collect(folder: &Path, out: &mut Vec<Vec<u8>>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { collect(&path, out) } else { out.push(std::fs::read(path).unwrap()) }
        }
    }
    let mut out = Vec::new();
    collect(&fixtures(), &mut out);
    out.sort();
    let packed = ruzstd::encoding::compress_to_vec(&out[0][..], ruzstd::encoding::CompressionLevel::Fastest);
    out.push(packed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let schema = "CREATE TABLE session (id, parent_id); CREATE TABLE message (id, session_id, data);
        CREATE TABLE part (id, message_id, data); INSERT INTO session VALUES ('a', NULL), ('b', 'c'), ('c', 'b');
        INSERT INTO message VALUES ('m', 'a', '{}'); CREATE TABLE cursorDiskKV (key, value);
        INSERT INTO cursorDiskKV VALUES ('composerData:x', '{}');";
    connection.execute_batch(schema).unwrap();
    drop(connection);
    out.push(std::fs::read(path).unwrap());
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        read_as_all(&bytes);
    }

    #[test]
    fn any_lines_of_json(lines in proptest::collection::vec(json_object(), 0..8)) {
        read_as_all(lines.join("\n").as_bytes());
    }

    #[test]
    fn any_change_of_a_good_file(
        sample in proptest::sample::select(samples()),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..12),
        keep in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = sample;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(keep.index(bytes.len()) + 1);
        read_as_all(&bytes);
    }
}

/// Objects made of the names that importers look for, with values that they do not expect.
fn json_object() -> impl Strategy<Value = String> {
    let names = [
        "type",
        "message",
        "content",
        "payload",
        "sessionId",
        "session_id",
        "uuid",
        "timestamp",
        "role",
        "id",
        "messages",
        "$set",
        "$rewindTo",
        "toolCalls",
        "result",
        "args",
        "summary",
        "leafUuid",
        "input",
        "name",
        "text",
        "todos",
        "isSidechain",
        "parentUuid",
        "call_id",
        "arguments",
        "output",
        "num_turns",
        "cwd",
        "projectHash",
        "source",
    ];
    let words = [
        "user",
        "assistant",
        "summary",
        "tool_use",
        "tool_result",
        "text",
        "message",
        "response_item",
        "event_msg",
        "session_meta",
        "function_call",
        "thread_rolled_back",
        "gemini",
        "compacted",
        "TodoWrite",
        "update_plan",
        "é",
        "",
    ];
    let leaf = prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(|word| serde_json::json!(word)),
        any::<i64>().prop_map(|number| serde_json::json!(number)),
        any::<f64>().prop_map(|number| serde_json::json!(number)),
        Just(serde_json::Value::Null),
        Just(serde_json::json!(true)),
        "\\PC{0,12}".prop_map(|text| serde_json::json!(text)),
    ];
    let object = move |inner: BoxedStrategy<serde_json::Value>| {
        let names = proptest::sample::select(names.to_vec());
        proptest::collection::vec((names, inner), 0..8)
            .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            .prop_map(serde_json::Value::Object)
    };
    let inner_object = object;
    let value = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            inner_object(inner.boxed())
        ]
    });
    object(value.boxed()).prop_map(|value| value.to_string())
}
