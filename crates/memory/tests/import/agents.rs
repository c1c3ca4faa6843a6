//! What comes out of each agent's shape.

use confidant_memory::import::{Agent, Root};
use confidant_memory::{Gate, import::Import};
use serde_json::{Value, json};

use crate::{fixtures, messages, run, run_file};

const CLAUDE: &str = "11111111-2222-4333-8444-555555555555";
const CODEX: &str = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee";

#[test]
fn claude_code_comes_with_its_sub_agents() {
    let (all, report, discovery) = run(&[Root::path(fixtures().join("claude"))]);
    assert_eq!((discovery.files.len(), discovery.files[0].parts().len()), (1, 2));
    assert_eq!(report, Import { files: 1, sessions: 1, skipped: 1, ..Import::default() });
    let session = all.value(CLAUDE);
    assert_eq!(
        session["summary"], "The watering timer fires twice on Sundays. Find out why and fix it.",
        "neither a wrapped command nor another session's summary"
    );
    assert_eq!(session["timestamp"], "2026-03-01T10:07:00Z", "the sub-agent was the last");
    assert_eq!(session["tool_name"], "claude-code");
    assert_eq!(session["todos"], json!(["Add a test for Sundays"]));
    assert_eq!(
        session["metadata"],
        json!({"project": "garden", "git_branch": "fix/timer", "model": "claude-example-1", "agent_version": "2.1.0"})
    );
    assert_eq!(
        messages(&session),
        [
            ("user", "/model fast"),
            ("user", "The watering timer fires twice on Sundays. Find out why and fix it."),
            ("assistant", "I will look at the scheduler first."),
            ("tool", "command: grep -rn sunday src/\ndescription: Find it"),
            ("tool", "src/timer.rs:12: // sunday\nDATABASE_URL=postgres://app:fakefakefake@db.example/app"),
            ("tool", session["messages"][5]["content"].as_str().unwrap()),
            ("system", "This session is being continued from a previous conversation. We fixed the timer."),
            ("assistant", "Done: the timer used <= where it needed <."),
            ("tool", "Search the docs for daylight saving."),
            ("assistant", "Nothing about daylight saving there."),
            ("tool", "Count the timers."),
            ("assistant", "There are three timers."),
        ]
    );
    assert_eq!(session["messages"][4]["tool"], "Bash", "a result knows its tool");
    assert_eq!(session["messages"][4]["timestamp"], "2026-03-01T10:00:06Z");
}

#[test]
fn codex_takes_each_text_once_and_honours_rollback() {
    let (all, report, _) = run(&[Root::path(fixtures().join("codex"))]);
    assert_eq!(report, Import { files: 1, sessions: 1, ..Import::default() });
    let session = all.value(CODEX);
    assert_eq!(session["summary"], "Why does the oven log say E4012?");
    assert_eq!(session["timestamp"], "2026-03-02T08:01:00Z");
    assert_eq!(session["todos"], json!(["Close the door in software"]));
    assert_eq!(
        session["metadata"],
        json!({"project": "bakery", "git_branch": "ovens", "model": "gpt-example", "agent_version": "0.99.0"})
    );
    assert_eq!(
        messages(&session),
        [
            ("user", "Why does the oven log say E4012?"),
            ("tool", "command: cat oven.log"),
            ("tool", "E4012: door open\npassword=Zq7vT2xK9mLpR4wN"),
            ("tool", messages(&session)[3].1),
            ("assistant", "E4012 means that the door is open."),
            ("tool", "List the error codes."),
            ("assistant", "E4011, E4012, E4013."),
        ]
    );
    assert_eq!(session["messages"][2]["tool"], "shell");
}

#[test]
fn compressed_rollouts_are_the_same_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("rollout-2026-03-02T08-00-00-{CODEX}.jsonl");
    let plain = fixtures().join("codex/sessions/2026/03/02").join(&name);
    let bytes = std::fs::read(&plain).unwrap();
    let packed = ruzstd::encoding::compress_to_vec(&bytes[..], ruzstd::encoding::CompressionLevel::Fastest);
    let path = folder.path().join(name + ".zst");
    std::fs::write(&path, &packed).unwrap();
    let (from_plain, _) = run_file(Agent::Codex, &plain);
    let (from_packed, report, discovery) = run(&[Root::path(folder.path())]);
    assert_eq!(discovery.files[0].agent(), Agent::Codex);
    assert_eq!(report.skipped, 0);
    assert_eq!(from_packed.value(CODEX), from_plain.value(CODEX));
    assert_eq!(from_packed.keys, from_plain.keys);

    std::fs::write(&path, &packed[..packed.len() - 20]).unwrap();
    let (_, report, _) = run(&[Root::path(folder.path())]);
    assert_eq!((report.failed, report.skipped), (0, 1), "a damaged end is one skipped line");
}

#[test]
fn codex_without_items_falls_back_to_what_was_shown_and_old_rollouts_have_no_envelope() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().join("shown.jsonl");
    let lines = [
        json!({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"session_id": "shown"}}),
        json!({"type": "event_msg", "payload": {"type": "user_message", "message": "Hello oven"}}),
        json!({"type": "event_msg", "payload": {"type": "agent_message", "message": "Hello baker"}}),
        json!({"type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": "Greetings"}}),
    ];
    std::fs::write(&shown, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let old = folder.path().join("old.jsonl");
    let lines = [
        json!({"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": null}),
        json!({"record_type": "state"}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Old oven"}]}),
        json!({"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls", "-l"]}}),
        json!({"type": "function_call_output", "call_id": "c", "output": "nothing"}),
    ];
    std::fs::write(&old, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let (all, report, _) = run(&[Root::path(folder.path())]);
    assert_eq!(report, Import { files: 2, sessions: 2, ..Import::default() });
    assert_eq!(all.value("shown")["summary"], "Greetings");
    assert_eq!(messages(&all.value("shown")), [("user", "Hello oven"), ("assistant", "Hello baker")]);
    assert_eq!(all.value("old")["timestamp"], "2025-05-01T00:00:00Z");
    assert_eq!(
        messages(&all.value("old")),
        [("user", "Old oven"), ("tool", "command: ls -l"), ("tool", "nothing")]
    );
    assert_eq!(all.value("old")["messages"][2]["tool"], "local_shell");
}

#[test]
fn gemini_logs_are_played_back() {
    let (all, report, _) = run(&[Root::path(fixtures().join("gemini"))]);
    assert_eq!(report, Import { files: 2, sessions: 2, ..Import::default() });
    let old = all.value("aaaaaaaa-0000-4000-8000-000000000001");
    assert_eq!(old["summary"], "Rename the boats table to vessels.");
    assert_eq!(old["timestamp"], "2026-03-03T07:10:00Z");
    assert_eq!(
        messages(&old),
        [
            ("user", "/help"),
            ("user", "Rename the boats table to vessels."),
            ("assistant", "Renaming it."),
            ("tool", "command: sqlite3 port.db"),
            ("tool", "renamed"),
        ]
    );
    let new = all.value("aaaaaaaa-0000-4000-8000-000000000002");
    assert_eq!(new["summary"], "Added a draught column");
    assert_eq!(new["timestamp"], "2026-03-04T08:00:00Z");
    assert_eq!(new["metadata"], json!({"project": "port", "model": "gemini-example"}));
    assert_eq!(
        messages(&new),
        [
            ("user", "Add a column for the draught."),
            ("assistant", "Added the column draught."),
            ("user", "Thanks, now index it."),
            ("tool", "Look for indexes."),
            ("assistant", "There are two indexes."),
        ]
    );
}

#[test]
fn gemini_rewound_to_nowhere_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let lines = [
        json!({"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z"}),
        json!({"id": "1", "type": "user", "content": "gone"}),
        json!({"$rewindTo": "unknown"}),
        json!({"$set": {"messages": [{"id": "2", "type": "user", "content": "here"}]}}),
    ];
    std::fs::write(&path, lines.map(|line| line.to_string()).join("\n")).unwrap();
    let (all, _, _) = run(&[Root::path(&path)]);
    assert_eq!(messages(&all.value("s")), [("user", "here")]);
}

#[test]
fn gemini_lists_of_what_was_typed_count_where_there_is_nothing_better() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join(".gemini/tmp/0123abcd");
    std::fs::create_dir_all(&project).unwrap();
    let typed = |session: &str, number: u32, text: &str| {
        json!({"sessionId": session, "messageId": number, "type": "user", "message": text,
            "timestamp": format!("2025-07-01T10:00:0{number}.000Z")})
    };
    let list = json!([typed("a", 0, "Caulk the hull."), typed("b", 0, "Paint it."), typed("a", 1, "/quit")]);
    std::fs::write(project.join("logs.json"), serde_json::to_string_pretty(&list).unwrap()).unwrap();
    for root in [Root::path(folder.path()), Root::Home(folder.path().to_owned())] {
        let (all, report, _) = run(std::slice::from_ref(&root));
        assert_eq!(report, Import { files: 1, sessions: 2, ..Import::default() });
        assert_eq!(messages(&all.value("a")), [("user", "Caulk the hull."), ("user", "/quit")]);
        assert_eq!(all.value("a")["timestamp"], "2025-07-01T10:00:01Z");
        assert_eq!(all.value("b")["tool_name"], "gemini-cli");
    }
    // With files of their own beside, they would only replace what is more.
    std::fs::create_dir(project.join("chats")).unwrap();
    for root in [Root::path(folder.path()), Root::Home(folder.path().to_owned())] {
        let found = run(std::slice::from_ref(&root)).2;
        assert_eq!((found.files.len(), found.unknown), (0, 0));
    }
}

#[test]
fn aider_has_several_chats_in_a_file() {
    let (all, report, _) = run(&[Root::path(fixtures().join("aider"))]);
    assert_eq!(report, Import { files: 1, sessions: 3, ..Import::default() });
    let first = all.sessions[0].id();
    assert!(first.starts_with("aider-20260305T060000-"), "{first}");
    assert_eq!(all.sessions[1].id(), format!("{first}-2"), "a second chat of the same second");
    let session = all.value(first);
    assert_eq!(session["summary"], "Count pears by tree\nand print the total.");
    assert_eq!(session["metadata"]["agent_version"], "0.90.1");
    assert_eq!(session["metadata"]["model"], "example/model");
    assert_eq!(
        messages(&session),
        [
            ("tool", "Aider v0.90.1\nMain model: example/model with diff edit format"),
            ("user", "/add pears.py"),
            ("tool", "Added pears.py to the chat"),
            ("user", "Count pears by tree\nand print the total."),
            ("assistant", "Here is the change:\n\n```python\nprint(sum(pears))\n```"),
            ("tool", "Applied edit to pears.py"),
        ]
    );
    assert_eq!(
        messages(&all.value(all.sessions[2].id())),
        [("user", "What is a pear?"), ("assistant", "A fruit.")]
    );
}

#[test]
fn lines_of_anybody_are_sorted_into_sessions() {
    let (all, report, _) = run(&[Root::path(fixtures().join("generic"))]);
    assert_eq!(report, Import { files: 2, sessions: 4, skipped: 1, ..Import::default() });
    assert_eq!(all.ids(), ["one", "plain", "three", "two"]);
    let one = all.value("one");
    assert_eq!(one["timestamp"], "2026-03-07T04:01:00Z");
    assert_eq!(
        messages(&one),
        [("user", "Water the fern."), ("assistant", "Watered."), ("tool", "litres: 1")]
    );
    let two = all.value("two");
    assert_eq!(two["timestamp"], "2026-03-07T05:00:00Z");
    assert_eq!(messages(&two), [("user", "Feed the cat."), ("tool", "grams: 50"), ("assistant", "Fed.")]);
    assert_eq!(
        all.value("three"),
        json!({"session_id": "three", "timestamp": "2026-03-07T06:00:00Z", "tool_name": "planner", "success": false,
            "summary": "Planned the week", "messages": [{"role": "user", "content": "plan"}], "custom": {"kept": [1]}})
    );
    let plain = all.value("plain");
    assert_eq!(messages(&plain), [("user", "How deep is the well?"), ("assistant", "Nine metres.")]);
    assert!(plain["timestamp"].as_str().unwrap().ends_with('Z'), "the file's time stands in");
}

#[test]
fn talks_in_the_forms_of_model_apis_and_collections_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: &[Value]| {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        std::fs::write(folder.path().join(name), lines.join("\n")).unwrap();
    };
    write(
        "shared.jsonl",
        &[
            json!({"id": "share-1", "conversations": [{"from": "system", "value": "Be brief."},
                {"from": "human", "value": "Water the fern."}, {"from": "gpt", "value": "Watered."}]}),
            json!({"contents": [{"role": "user", "parts": [{"text": "Feed"}, {"text": "the cat."}]},
                {"role": "model", "parts": ["Fed."]}]}),
        ],
    );
    write(
        "parts.jsonl",
        &[
            json!({"role": "user", "parts": [{"text": "How deep?"}]}),
            json!({"role": "model", "parts": [{"text": "Nine."}]}),
        ],
    );
    write(
        "texts.jsonl",
        &[json!({"role": "user", "text": "How high?"}), json!({"role": "assistant", "text": "Ten."})],
    );
    write(
        "turns.jsonl",
        &[json!({"from": "human", "value": "How wide?"}), json!({"from": "gpt", "value": "Two."})],
    );
    write("short.jsonl", &[json!({"id": "short", "summary": "Mended the gate."})]);
    write(
        "list.json",
        &[
            json!([{"role": "user", "content": "How far?"}, {"role": "model", "parts": [{"text": "A mile."}]}]),
        ],
    );
    let (all, report, discovery) = run(&[Root::path(folder.path())]);
    assert_eq!((discovery.unknown, report.skipped), (0, 0));
    let names = ["list", "parts", "share-1", "shared", "short", "texts", "turns"];
    assert_eq!(all.ids(), names);
    for (id, said) in [
        ("share-1", vec![("system", "Be brief."), ("user", "Water the fern."), ("assistant", "Watered.")]),
        ("shared", vec![("user", "Feed\n\nthe cat."), ("model", "Fed.")]),
        ("parts", vec![("user", "How deep?"), ("assistant", "Nine.")]),
        ("texts", vec![("user", "How high?"), ("assistant", "Ten.")]),
        ("turns", vec![("user", "How wide?"), ("assistant", "Two.")]),
        ("list", vec![("user", "How far?"), ("assistant", "A mile.")]),
    ] {
        assert_eq!(messages(&all.value(id)), said, "{id}");
    }
    assert_eq!(all.value("short")["summary"], "Mended the gate.");
}

#[test]
fn a_mark_at_the_beginning_of_a_file_is_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let marked = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), format!("\u{feff}{text}")).unwrap();
    };
    marked("lines.jsonl", &json!({"role": "user", "content": "How deep is the well?"}).to_string());
    let whole = json!({"id": "whole", "messages": [{"role": "user", "content": "How high?"}]});
    marked("whole.json", &serde_json::to_string_pretty(&whole).unwrap());
    marked("history.md", "# aider chat started at 2026-03-05 06:00:00\n\n#### How wide is it?\n\nTwo.\n");
    let roots = ["lines.jsonl", "whole.json", "history.md"].map(|name| Root::path(folder.path().join(name)));
    let (all, report, discovery) = run(&roots);
    assert_eq!((discovery.unknown, report.sessions, report.skipped), (0, 3, 0));
    assert_eq!(messages(&all.value("lines")), [("user", "How deep is the well?")]);
}

#[test]
fn fixtures_keep_every_field() {
    let (all, report, discovery) = run(&[Root::path(fixtures().join("fixtures.json"))]);
    assert_eq!(discovery.files[0].agent(), Agent::Fixture);
    assert_eq!(report, Import { files: 1, sessions: 2, skipped: 1, ..Import::default() });
    assert_eq!(
        all.value("test-session-001"),
        json!({"session_id": "test-session-001", "timestamp": "2025-12-21T12:00:00Z", "tool_name": "bug-tracker",
            "success": true, "summary": "Fixed the JWT check of the auth service.", "tags": ["production", "bug-fix"]})
    );
    assert_eq!(all.value("test-session-003")["session_id"], "test-session-003");
}

#[test]
fn nothing_private_to_the_model_comes_out_and_secrets_come_out_whole_for_the_gate() {
    let (all, _, _) = run(&[Root::path(fixtures())]);
    assert_eq!(all.sessions.len(), 14);
    let gate = Gate::new(confidant_redact::Options::default()).unwrap();
    let (mut before, mut after) = (String::new(), String::new());
    for session in &all.sessions {
        let value = Value::Object(session.members().clone());
        before += &value.to_string();
        after += &gate.pass(&value).redacted.value().to_string();
    }
    assert!(!before.contains("PRIVATE THOUGHT"));
    for secret in ["fakefakefake", "Zq7vT2xK9mLpR4wN"] {
        assert!(before.contains(secret) && !after.contains(secret), "{secret}");
    }
}
