//! What turns wait for, decided from the command line; and turns that are called off from there.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::Arc;

use confidant_engine::approval::ApprovalRequest;
use confidant_engine::model::Model;
use confidant_engine::storage::Durability;
use confidant_engine::turn::Ending;
use confidant_engine::{
    Actor, Engine, Error, Recovered, Scope, Session, Storage, TenantId, Turn, TurnRequest,
};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::home::{Home, KEY, Ran, Server};
use crate::testing::{Caller, Counting, DELETE, engine};

const SESSION: &str = "http:r:main:alice";

/// A folder of data, and an engine on it that has tools, as a server has.
struct Setting {
    home: Home,
    runtime: Runtime,
    tools: Arc<Counting>,
    engine: Option<Engine>,
}

impl Setting {
    fn new() -> Self {
        Self::with(Caller::new())
    }

    fn with(model: Arc<dyn Model>) -> Self {
        let home = Home::new().set("CHECKPOINT_ENCRYPTION_KEY", KEY);
        home.bob("Hello, I'm Bob").done();
        let (runtime, tools) = (Runtime::new().unwrap(), Counting::new());
        let data = home.path("confidant-data");
        let storage = {
            let _inside = runtime.enter();
            Storage::sqlite(&data, &data, Durability::Process).unwrap()
        };
        let engine = runtime.block_on(engine(storage, model, tools.clone(), Vec::new()));
        Self { home, runtime, tools, engine: Some(engine) }
    }

    fn session(&self) -> Session {
        let scope = Scope::parse(TenantId::new("default").unwrap(), SESSION).unwrap();
        self.engine.as_ref().unwrap().session(scope, Actor::cli())
    }

    fn turn(&self, request_id: &str, query: &str) -> Turn {
        let _inside = self.runtime.enter();
        let request_id = Some(request_id.to_owned());
        self.session().turn(TurnRequest { request_id, query: query.to_owned(), ..TurnRequest::default() })
    }

    /// A turn that waits.
    fn asked(&self, request_id: &str) -> ApprovalRequest {
        match self.runtime.block_on(self.turn(request_id, DELETE).end()).unwrap() {
            Ending::Approval(request) => *request,
            Ending::Answer(answer) => panic!("answered: {}", answer.content),
        }
    }

    /// Ends the engine, as when a server stops.
    fn stop(&mut self) {
        let engine = self.engine.take().unwrap();
        self.runtime.block_on(engine.stop(std::time::Duration::from_secs(5)));
    }

    fn decide(&self, word: &str, request: &ApprovalRequest, more: &[&str]) -> Ran {
        self.home.run(&[&["session", word, SESSION, &request.approval_id], more].concat())
    }
}

#[test]
fn an_approval_is_listed_and_decided_where_the_turn_came_from() {
    let setting = Setting::new();
    setting.home.run(&["session", "approvals"]).nothing_found();
    let request = setting.asked("r1");
    let listed = setting.home.run(&["session", "approvals"]).done().out;
    let line = format!("{SESSION}\t{}\tdefault\tfiles.delete\tuntil 2", request.approval_id);
    assert!(listed.starts_with(&line) && listed.ends_with("Z\t{\"path\":\"/a\"}\n"), "{listed}");
    let listed = setting.home.run(&["session", "approvals", SESSION, "--json"]).done().json();
    assert_eq!(listed[0]["session_id"], SESSION);
    assert_eq!(listed[0]["approval_id"], request.approval_id);
    assert_eq!(listed[0]["arguments"], json!({ "path": "/a" }));
    setting.home.run(&["session", "approvals", "http:r:main:bob"]).nothing_found();
    setting.home.run(&["session", "approvals", "--tenant", "other"]).nothing_found();

    setting.decide("approve", &request, &[]).failed("an administrator may not decide", "--as USER");
    setting
        .decide("approve", &request, &["--as", "mallory"])
        .failed("somebody else must decide", "approvers");
    let tenant = ["--as", "alice", "--tenant", "other"];
    setting.decide("approve", &request, &tenant).failed("no such approval", "session approvals");
    assert_eq!(setting.tools.runs(), 0);

    // The command leaves it to the engine that has the tools, and waits for it.
    let ran = std::thread::scope(|scope| {
        let deciding = scope.spawn(|| setting.decide("approve", &request, &["--as", "alice"]));
        let engine = setting.engine.as_ref().unwrap();
        setting.runtime.block_on(async {
            while engine.recover().await.unwrap() == Recovered::default() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        deciding.join().unwrap().done()
    });
    assert!(ran.out.starts_with("Looking.\n\ndone: The tool said"), "{}", ran.out);
    assert!(ran.out.contains("content of /a"), "{}", ran.out);
    assert_eq!(setting.tools.runs(), 1);
    let again = setting.decide("deny", &request, &["--as", "alice"]);
    again.failed("you already decided this approval (approved)", "nothing more to do");
}

#[test]
fn a_running_server_carries_it_out() {
    let mut setting = Setting::new();
    let request = setting.asked("r1");
    setting.stop();
    let server = Server::start(&setting.home);
    let ran = setting.decide("approve", &request, &["--as", "alice", "--json"]).done().json();
    assert_eq!((&ran["message_type"], &ran["request_id"]), (&json!("final_response"), &json!("r1")), "{ran}");
    let (_, said) = server.stop();
    assert!(said.contains("resumed unfinished turns"), "{said}");
    assert!(said.contains("outcome=\"answered\""), "{said}");
    for content in ["files", SESSION, &request.approval_id] {
        assert!(!said.contains(content), "{said}");
    }
    // Tools are the server's, and this one has none.
    let shown = setting.home.run(&["session", "show", SESSION]).done().out;
    assert!(shown.contains("Not called: there is no tool files.delete here."), "{shown}");
    assert_eq!(setting.tools.runs(), 0);
}

#[test]
fn without_a_server_the_command_carries_it_out() {
    let mut setting = Setting::new();
    let (one, two) = (setting.asked("r1"), setting.asked("r2"));
    setting.stop();
    let ran = setting.decide("deny", &one, &["--as", "alice", "--json"]).done().json();
    assert_eq!((&ran["session_id"], &ran["request_id"]), (&json!(SESSION), &json!("r1")));
    assert_eq!(ran["metadata"]["pending_approvals"], 1);
    let shown = setting.home.run(&["session", "show", SESSION]).done().out;
    assert!(shown.contains("Not called: it was denied."), "{shown}");
    assert!(shown.contains("[no answer: waiting for approval]"), "{shown}");
    assert!(!setting.decide("approve", &two, &["--as", "alice"]).done().out.is_empty());
    setting.home.run(&["session", "approvals", SESSION]).nothing_found();
}

#[test]
fn a_chat_shows_what_it_waits_for_and_how_to_decide() {
    let mut setting = Setting::new();
    let request = setting.asked("r1");
    setting.stop();
    let chat = ["chat", "--channel", "http", "--room", "r", "--user", "alice"];
    let once = ["--once", DELETE, "--request-id", "r1"];
    let ran = setting.home.run(&[&chat[..], &once].concat()).done();
    assert_eq!(ran.out, format!("{}\n", request.question));
    let how = format!("`confidant session approve '{SESSION}' {} --as USER`", request.approval_id);
    assert!(ran.err.contains(&how), "{}", ran.err);
    let ran = setting.home.run(&[&chat[..], &once, &["--json"]].concat()).done().json();
    assert_eq!((&ran["message_type"], &ran["content"]), (&json!("hitl_request"), &json!(request.question)));
    assert_eq!((&ran["metadata"]["hash"], &ran["session_id"]), (&json!(request.hash), &json!(SESSION)));
    // Later messages are answered, and its exact words decide.
    let later = setting.home.run(&[&chat[..], &["--once", "hello"]].concat()).done();
    assert!(later.err.contains("1 approval in this session still pending"), "{}", later.err);
    let mut child = piped(&setting.home, &chat);
    child.stdin.take().unwrap().write_all(format!("deny {}\n", request.code).as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).done();
    assert!(!ran.out.is_empty() && ran.err.is_empty(), "{}{}", ran.out, ran.err);
    setting.home.run(&["session", "approvals"]).nothing_found();
}

#[test]
fn what_waits_and_what_runs_elsewhere_is_cancelled() {
    let model = Caller::shut();
    let setting = Setting::with(model.clone());
    let request = setting.asked("r1");
    setting.home.run(&["session", "cancel", SESSION, "another"]).nothing_found();
    assert_eq!(setting.home.run(&["session", "cancel", SESSION]).done().out, "cancelled 1 turn\n");
    setting.decide("approve", &request, &["--as", "alice"]).failed("no such approval", "session approvals");

    let turn = setting.turn("r2", "hello");
    setting.runtime.block_on(model.until_asked(2));
    let ran = setting.home.run(&["session", "cancel", SESSION, "r2", "--json"]).done().json();
    assert_eq!(ran, json!({ "cancelled": 1 }));
    model.gate.add_permits(1);
    let ended = setting.runtime.block_on(turn.finish());
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    let again = setting.home.run(&["session", "cancel", SESSION, "--json"]).nothing_found().json();
    assert_eq!(again, json!({ "cancelled": 0 }));
}

fn piped(home: &Home, arguments: &[&str]) -> Child {
    let mut command = home.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: &Child) {
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn ctrl_c_cancels_the_answer_and_says_so() {
    // A model that is asked and does not answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let home = Home::new()
        .set("CONFIDANT_MODEL__PROVIDER", "openai")
        .set("CONFIDANT_MODEL__BASE_URL", &url)
        .set("CONFIDANT_MODEL__MODEL", "mute")
        .set("OPENAI_API_KEY", "none");
    let asked = || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream
    };
    let chat = ["chat", "--user", "alice", "--room", "db"];
    let child = piped(&home, &[&chat[..], &["--once", "hello", "--request-id", "r1"]].concat());
    let _open = asked();
    interrupt(&child);
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.contains("cancelling; press Ctrl-C again"), "{}", ran.err);
    assert!(ran.err.contains("error: the turn was cancelled"), "{}", ran.err);

    // In a conversation, the conversation goes on.
    let mut child = piped(&home, &chat);
    let mut lines = child.stdin.take().unwrap();
    lines.write_all(b"hello again\n").unwrap();
    let _open = asked();
    interrupt(&child);
    lines.write_all(b"/help\n").unwrap();
    drop(lines);
    let ran = Ran::from(child.wait_with_output().unwrap()).done();
    assert!(ran.err.contains("the turn was cancelled") && ran.err.contains("/quit"), "{}", ran.err);
    let shown = home.run(&["session", "show", "cli:db:main:alice"]).done().out;
    assert_eq!(shown.matches("[no answer: cancelled]").count(), 2, "{shown}");
}
