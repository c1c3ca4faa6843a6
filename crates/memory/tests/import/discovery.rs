//! Which files are found, and whose they are said to be.

use std::collections::BTreeMap;
use std::path::Path;

use confidant_memory::import::{Agent, Import, Root, discover};

use crate::{fixtures, run};

#[test]
fn agents_are_told_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = BTreeMap::new();
    for (agent, path) in [
        (Agent::ClaudeCode, "claude/projects/-work-garden/11111111-2222-4333-8444-555555555555.jsonl"),
        (
            Agent::Codex,
            "codex/sessions/2026/03/02/rollout-2026-03-02T08-00-00-0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee.jsonl",
        ),
        (Agent::Gemini, "gemini/tmp/0123abcd/chats/session-2026-03-03T07-00-aaaaaaaa.json"),
        (Agent::Gemini, "gemini/tmp/0123abcd/chats/session-2026-03-04T07-00-aaaaaaaa.jsonl"),
        (Agent::Aider, "aider/orchard/.aider.chat.history.md"),
        (Agent::Generic, "generic/mixed.jsonl"),
        (Agent::Generic, "generic/plain.jsonl"),
        (Agent::Fixture, "fixtures.json"),
    ] {
        // Names say nothing.
        let copy = folder.path().join(format!("file{}", expected.len()));
        std::fs::copy(fixtures().join(path), &copy).unwrap();
        expected.insert(copy.canonicalize().unwrap(), agent);
    }
    let roots: Vec<Root> = expected.keys().map(Root::path).collect();
    let found = discover(&roots);
    let found: BTreeMap<_, _> =
        found.files.iter().map(|file| (file.path().to_owned(), file.agent())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_home_folder_is_looked_through_in_the_usual_places_only() {
    let home = tempfile::tempdir().unwrap();
    let place = |from: &str, to: &str| {
        let to = home.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(fixtures().join(from), to).unwrap();
    };
    place("claude/projects/-work-garden/agent-b8.jsonl", ".claude/projects/-x/agent-b8.jsonl");
    place("generic/plain.jsonl", ".codex/history.jsonl");
    place(
        "gemini/tmp/0123abcd/chats/session-2026-03-03T07-00-aaaaaaaa.json",
        ".gemini/tmp/h/chats/session-1.json",
    );
    place("fixtures.json", ".gemini/tmp/h/logs.json");
    place("aider/orchard/.aider.chat.history.md", ".aider.chat.history.md");
    place("generic/plain.jsonl", "documents/plain.jsonl");
    let (all, report, discovery) = run(&[Root::Home(home.path().to_owned())]);
    assert_eq!((discovery.unreadable, discovery.unknown), (0, 0));
    assert_eq!((report.files, report.sessions), (3, 5));
    assert!(
        all.ids().contains(&"11111111-2222-4333-8444-555555555555"),
        "a sub-agent whose session is gone stands for it"
    );
    assert_eq!(run(&[Root::Home(home.path().join("nobody"))]).1, Import::default());
}

#[test]
fn a_session_that_is_named_comes_with_its_sub_agents_and_only_those() {
    let folder = tempfile::tempdir().unwrap();
    let source = fixtures().join("claude/projects/-work-garden");
    let id = "11111111-2222-4333-8444-555555555555";
    std::fs::create_dir_all(folder.path().join(id).join("subagents")).unwrap();
    for name in [format!("{id}.jsonl"), format!("{id}/subagents/agent-a7.jsonl"), "agent-b8.jsonl".to_owned()]
    {
        std::fs::copy(source.join(&name), folder.path().join(&name)).unwrap();
    }
    let other =
        r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"other","message":{"content":"hi"}}"#;
    std::fs::write(folder.path().join("agent-c9.jsonl"), other).unwrap();
    std::fs::write(folder.path().join("other.jsonl"), other).unwrap();
    let found = discover(&[Root::path(folder.path().join(format!("{id}.jsonl")))]);
    assert_eq!((found.files.len(), found.files[0].parts().len()), (1, 2));
    let found = discover(&[Root::path(folder.path())]);
    let parts: Vec<usize> = found.files.iter().map(|file| file.parts().len()).collect();
    assert_eq!(parts, [2, 1]);
}

#[test]
fn neighbours_are_not_taken_for_parts() {
    let folder = tempfile::tempdir().unwrap();
    // A project in a folder that is called like a sub-agent's.
    let project = folder.path().join("subagents/projects/-x");
    std::fs::create_dir_all(&project).unwrap();
    for id in ["one", "two"] {
        let line = format!(
            r#"{{"type":"user","uuid":"1","parentUuid":null,"sessionId":"{id}","message":{{"content":"hi"}}}}"#
        );
        std::fs::write(project.join(format!("{id}.jsonl")), line).unwrap();
    }
    // A copy of a thread, and threads that say they spawned each other.
    let thread = |name: &str, id: &str, parent: Option<&str>| {
        let source = parent
            .map(|parent| serde_json::json!({"subagent": {"thread_spawn": {"parent_thread_id": parent}}}));
        let meta = serde_json::json!({"type": "session_meta", "payload": {"id": id, "source": source}});
        let item =
            serde_json::json!({"type": "event_msg", "payload": {"type": "user_message", "message": "hi"}});
        std::fs::write(folder.path().join(name), format!("{meta}\n{item}\n")).unwrap();
    };
    thread("a.jsonl", "a", None);
    thread("archived-a.jsonl", "a", None);
    thread("b.jsonl", "b", Some("c"));
    thread("c.jsonl", "c", Some("b"));
    thread("d.jsonl", "d", Some("e"));
    thread("e.jsonl", "e", Some("a"));
    let (all, _, discovery) = run(&[Root::path(folder.path())]);
    let parts: Vec<usize> = discovery.files.iter().map(|file| file.parts().len()).collect();
    assert_eq!(parts, [2, 0, 0, 0, 0, 0]);
    assert_eq!(all.ids(), ["a", "a", "b", "c", "one", "two"]);
    assert_ne!(all.keys[0], all.keys[1], "the copy has no sub-agents");
}

#[test]
fn what_nobody_writes_is_unknown_and_what_is_not_there_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let odd = [
        file("a.json", br#"{"name":"package","version":"1"}"#),
        file("b.jsonl", b"\xff\xfe\n[]\n"),
        file("c", b""),
    ];
    let mut roots: Vec<Root> = odd.iter().map(Root::path).collect();
    roots.push(Root::path(folder.path().join("missing")));
    let found = discover(&roots);
    assert_eq!((found.files.len(), found.unknown, found.unreadable, found.missing), (0, 3, 1, true));
    let found = discover(&[Root::path(folder.path())]);
    assert_eq!((found.files.len(), found.missing), (0, false));
    assert_eq!(found.unknown, 2, "in a folder, those that are called like session files");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_loops_end() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = r#"{"role":"user","content":"hello"}"#;
    std::fs::write(folder.path().join("in.jsonl"), line).unwrap();
    std::fs::write(outside.path().join("out.jsonl"), line).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("away")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("out.jsonl"), folder.path().join("link.jsonl")).unwrap();
    std::os::unix::fs::symlink("self.jsonl", folder.path().join("self.jsonl")).unwrap();
    let names = |root: &Path| -> Vec<String> {
        let found = discover(&[Root::path(root)]);
        found.files.iter().map(|file| file.path().file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(folder.path()), ["in.jsonl"]);
    assert_eq!(names(&folder.path().join("loop")), ["in.jsonl"], "a root may be a link");
    assert_eq!(discover(&[Root::path(folder.path()), Root::path(folder.path().join("loop"))]).files.len(), 1);
}

#[test]
fn debug_output_has_no_paths() {
    let found = discover(&[Root::path(fixtures())]);
    let text = format!("{found:?} {:?} {:?}", Root::path("/secret"), Root::Home("/secret".into()));
    assert!(!text.contains("secret") && !text.contains("fixtures"), "{text}");
}
