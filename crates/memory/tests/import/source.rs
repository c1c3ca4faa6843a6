//! Finding a session by its id.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use confidant_memory::import::{Agent, Root};
use confidant_memory::source::{Adapter, Sources};
use confidant_memory::{Error, Session};
use serde_json::{Map, Value, json};

use crate::fixtures;

fn files() -> Sources {
    Sources { roots: vec![Root::path(fixtures())], ..Sources::default() }
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn parts(error: &Error) -> (&str, &str, &str) {
    match error {
        Error::Invalid { what, hint }
        | Error::NotFound { what, hint }
        | Error::Unavailable { what, hint } => (error.code(), what, hint),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_is_given_goes_before_what_is_found() {
    let id = "11111111-2222-4333-8444-555555555555";
    let given = files().resolve(id, Some(members(json!({"summary": "given"})))).await.unwrap();
    assert_eq!(given.members()["summary"], "given");
    let found = files().resolve(id, None).await.unwrap();
    assert_eq!(found.members()["tool_name"], "claude-code");
}

#[tokio::test]
async fn every_agents_sessions_are_found_by_id() {
    for (id, agent) in [
        ("0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee", "codex"),
        ("aaaaaaaa-0000-4000-8000-000000000001", "gemini-cli"),
        ("aaaaaaaa-0000-4000-8000-000000000002", "gemini-cli"),
        ("ses_01", "opencode"),
        ("one", "generic"),
        ("three", "planner"),
        ("plain", "generic"),
        ("test-session-001", "bug-tracker"),
    ] {
        let session = files().find(id).await.unwrap();
        assert_eq!((session.id(), &session.members()["tool_name"]), (id, &json!(agent)));
    }
    let aider = crate::run(&[Root::path(fixtures().join("aider"))]).0;
    for session in &aider.sessions {
        assert_eq!(files().find(session.id()).await.unwrap(), *session);
    }
}

#[tokio::test]
async fn of_a_session_that_was_written_again_the_last_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines.jsonl");
    let line = |summary: &str| json!({"session_id": "s", "summary": summary}).to_string();
    std::fs::write(&lines, [line("begun"), line("done")].join("\n")).unwrap();
    // Messages are put together at the end, whatever else calls itself the same.
    let list = folder.path().join("list.json");
    std::fs::write(&list, json!([{"role": "user", "content": "done"}, {"summary": "begun"}]).to_string())
        .unwrap();
    for (path, id) in [(lines, "s"), (list, "list")] {
        let imported = crate::run_file(Agent::Generic, &path).0;
        assert_eq!(imported.sessions.len(), 2);
        let sources = Sources { roots: vec![Root::of(Agent::Generic, path)], ..Sources::default() };
        let found = sources.find(id).await.unwrap();
        assert_eq!((&found.members()["summary"], Some(&found)), (&json!("done"), imported.sessions.last()));
    }
}

#[tokio::test]
async fn an_unknown_id_says_where_was_looked() {
    let sources = Sources {
        adapter: Some(Adapter::new(vec!["true".into()]).unwrap()),
        fixtures: Some(fixtures().join("fixtures.json")),
        ..files()
    };
    let error = sources.find("nobody").await.unwrap_err();
    let (code, what, hint) = parts(&error);
    assert_eq!((code, what), ("not_found", "there is no session with this id"));
    assert_eq!(
        hint,
        "searched agents' session files, the adapter command, the fixtures: check the id, or give the session inline"
    );
    let gone = Sources { roots: vec![Root::path(fixtures().join("gone"))], ..Sources::default() };
    let error = gone.find("nobody").await.unwrap_err();
    assert!(parts(&error).2.starts_with("searched agents' session files (1 could not be read): "));
    let error = Sources::default().find("nobody").await.unwrap_err();
    assert!(parts(&error).2.starts_with("no source of sessions is configured"));
    assert!(!error.to_string().contains("nobody"));
}

#[tokio::test]
async fn ids_that_look_like_paths_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(folder.path().join("x.jsonl"), r#"{"role":"user","content":"out"}"#).unwrap();
    let sources = Sources { roots: vec![Root::of(Agent::Generic, &inside)], ..Sources::default() };
    let absolute = folder.path().join("x").to_str().unwrap().to_owned();
    for id in ["../x", "../x.jsonl", "x", absolute.as_str(), "..", "/", "%2e%2e/x", "*", "' OR 1=1 --"] {
        assert_eq!(sources.find(id).await.unwrap_err().code(), "not_found", "{id}");
    }
    for id in ["", "a\0b", "a\nb"] {
        assert_eq!(sources.find(id).await.unwrap_err().code(), "invalid");
    }
}

#[tokio::test]
async fn fixtures_come_last() {
    let sources = Sources { fixtures: Some(fixtures().join("fixtures.json")), ..Sources::default() };
    let session = sources.find("test-session-001").await.unwrap();
    assert_eq!(session.members()["tags"], json!(["production", "bug-fix"]));
    assert_eq!(sources.find("test-session-002").await.unwrap_err().code(), "invalid", "it has another id");
    let missing = Sources { fixtures: Some(fixtures().join("missing.json")), ..Sources::default() };
    assert_eq!(missing.find("x").await.unwrap_err().code(), "unavailable");
    let garbage = Sources { fixtures: Some(fixtures().join("generic/mixed.jsonl")), ..Sources::default() };
    assert_eq!(garbage.find("x").await.unwrap_err().code(), "invalid");
}

#[cfg(unix)]
mod adapter {
    use super::*;

    /// A shell that runs this script; the id is `$1`.
    fn shell(script: &str) -> Adapter {
        Adapter::new(["sh", "-c", script, "sh"].map(str::to_owned).to_vec()).unwrap()
    }

    async fn ask(adapter: Adapter, id: &str) -> confidant_memory::Result<Session> {
        Sources { adapter: Some(adapter), ..Sources::default() }.find(id).await
    }

    #[tokio::test]
    async fn the_id_arrives_twice_and_unharmed() {
        let id = "a b;$(touch x)'\"`*\\";
        let script =
            r#"[ "$1" = "$CONFIDANT_SESSION_ID" ] && [ $# = 1 ] && printf '{"summary":"%s"}' "${#1}""#;
        let session = ask(shell(script), id).await.unwrap();
        assert_eq!(session.members()["summary"], id.len().to_string());
    }

    #[tokio::test]
    async fn variables_can_be_hidden() {
        let script = r#"printf '{"summary":"%s%s"}' "$HOME" "$CONFIDANT_SESSION_ID""#;
        let session = ask(shell(script).hiding(vec!["HOME".into()]), "s").await.unwrap();
        assert_eq!(session.members()["summary"], "s");
    }

    #[tokio::test]
    async fn failures_are_told_apart_and_quote_nothing() {
        let huge = shell("yes secret").printing_at_most(100_000);
        for (adapter, code, what) in [
            (shell("echo secret >&2; exit 3"), "unavailable", "the adapter command failed"),
            (shell("echo '{\"summary\":\"secret\"}'; exit 1"), "unavailable", "the adapter command failed"),
            (shell("echo secret"), "invalid", "the adapter command did not print one JSON object"),
            (shell("echo '[\"secret\"]'"), "invalid", "the adapter command did not print one JSON object"),
            (
                shell("echo '{\"session_id\":\"secret\"}'"),
                "invalid",
                "the adapter command printed a session with another session_id",
            ),
            (huge, "invalid", "the adapter command printed more than 100000 bytes and was stopped"),
            (
                Adapter::new(vec!["/no/such/secret".into()]).unwrap(),
                "unavailable",
                "the adapter command cannot be started",
            ),
            (shell("true"), "not_found", "there is no session with this id"),
            (shell("echo null"), "not_found", "there is no session with this id"),
        ] {
            let error = ask(adapter, "s").await.unwrap_err();
            assert_eq!((parts(&error).0, parts(&error).1), (code, what));
            assert!(!error.to_string().contains("secret") && !parts(&error).2.is_empty());
        }
        assert!(Adapter::new(vec![]).is_err() && Adapter::new(vec![" ".into()]).is_err());
    }

    #[tokio::test]
    async fn an_id_is_never_an_option() {
        let error = ask(shell("echo '{}'"), "--help").await.unwrap_err();
        assert_eq!(error.code(), "not_found");
    }

    /// A command that waits for ever for a child, and the file in which it says who that is.
    fn hanging(folder: &Path) -> (Adapter, PathBuf) {
        let file = folder.join("pid");
        let script = format!("sleep 600 & echo $! > '{}'; wait", file.to_str().unwrap());
        (shell(&script).within(Duration::from_secs(600)), file)
    }

    /// Waits until the child has told its number.
    async fn told(file: &Path) -> String {
        loop {
            match std::fs::read_to_string(file) {
                Ok(told) if told.ends_with('\n') => return told.trim().to_owned(),
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Waits until the child is gone: when its new parent takes note, which is soon.
    async fn ends(child: &str) {
        let is_there = || {
            let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        let started = Instant::now();
        while cfg!(target_os = "linux") && is_there() {
            assert!(started.elapsed() < Duration::from_secs(60), "the child of the command is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_ends_with_all_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let (adapter, file) = hanging(folder.path());
        let error = ask(adapter.within(Duration::from_secs(6)), "s").await.unwrap_err();
        assert_eq!(parts(&error).1, "the adapter command was not done after 6 s and was stopped");
        ends(&told(&file).await).await;
    }

    #[tokio::test]
    async fn a_command_whose_asker_goes_away_ends_with_all_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let (adapter, file) = hanging(folder.path());
        let asking = tokio::spawn(async move { ask(adapter, "s").await });
        let child = told(&file).await;
        asking.abort();
        ends(&child).await;
    }

    #[tokio::test]
    async fn a_child_that_keeps_the_output_open_does_not_hang_for_ever() {
        let adapter = shell("echo '{}'; sleep 600 & exit 0").within(Duration::from_millis(500));
        assert_eq!(ask(adapter, "s").await.unwrap_err().code(), "unavailable");
    }

    #[tokio::test]
    async fn fixtures_are_asked_even_if_the_command_failed() {
        let sources = Sources {
            adapter: Some(shell("exit 1")),
            fixtures: Some(fixtures().join("fixtures.json")),
            ..Sources::default()
        };
        assert!(sources.find("test-session-001").await.is_ok());
        assert_eq!(parts(&sources.find("nobody").await.unwrap_err()).1, "the adapter command failed");
    }
}
