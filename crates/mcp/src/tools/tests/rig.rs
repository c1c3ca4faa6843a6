//! A toolbox with one server in it, and what can be asked of it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use confidant_engine::tools::{Invocation, ToolError, ToolOutput, Toolbox as _};
use serde_json::{Value, json};

use crate::tools::server::State;
use crate::tools::toolbox::Times;
use crate::tools::{Keeper, Limits, McpToolbox, Reach, ServerName, ServerSettings, address};

pub(super) const MOST: usize = 10_000;

pub(super) struct Rig {
    pub(super) toolbox: McpToolbox,
    name: ServerName,
    /// The server, if it is not the toolbox's to start.
    http: Option<HttpServer>,
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Stdio,
    /// Answers are single messages.
    Json,
    /// Answers are streams.
    Events,
}

impl Rig {
    /// A server over stdio, started with these arguments.
    pub(super) fn stdio(arguments: &[&str]) -> Self {
        let mut command = vec!["python3".to_owned(), script()];
        command.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let variables = [("PATH".to_owned(), path().into()), ("GIVEN".to_owned(), "yes".into())];
        Self::reaching(Reach::Process { command, variables: BTreeMap::from(variables) }, None)
    }

    pub(super) fn over(over: Over) -> Self {
        let events: &[&str] = match over {
            Over::Stdio => return Self::stdio(&[]),
            Over::Json => &[],
            Over::Events => &["--events"],
        };
        let server = HttpServer::start(events);
        let url = address(&format!("http://127.0.0.1:{}/mcp", server.port), true).unwrap();
        Self::reaching(Reach::Http { url, token: Some(TOKEN.into()) }, Some(server))
    }

    pub(super) fn reaching(reach: Reach, http: Option<HttpServer>) -> Self {
        let name = ServerName::try_from("s".to_owned()).unwrap();
        let settings = ServerSettings { name: name.clone(), reach, only: None };
        let times = Times {
            answer: Duration::from_secs(10),
            first_pause: Duration::from_millis(10),
            last_pause: Duration::from_millis(50),
            gather: Duration::from_millis(10),
            ..Times::default()
        };
        let limits = Limits { max_result_bytes: MOST, times };
        Self { toolbox: McpToolbox::start(vec![settings], limits, &Keeper::Nobody), name, http }
    }

    /// Another toolbox for the same address.
    pub(super) fn with_token(&self, token: Option<&str>) -> Self {
        let port = self.http.as_ref().unwrap().port;
        let url = address(&format!("http://127.0.0.1:{port}/mcp"), true).unwrap();
        Self::reaching(Reach::Http { url, token: token.map(Into::into) }, None)
    }

    /// Ends the server behind the address.
    pub(super) fn end_http(&mut self) {
        self.http = None;
    }

    /// Waits until this is how the server is.
    pub(super) async fn until(&self, is_so: impl Fn(&State) -> bool) {
        let mut state = self.toolbox.servers[&self.name].clone();
        let waited =
            tokio::time::timeout(Duration::from_secs(60), state.wait_for(|state| is_so(state))).await;
        assert!(waited.is_ok(), "{:?}", self.toolbox);
    }

    pub(super) async fn ready(self) -> Self {
        self.until(is_ready).await;
        self
    }

    pub(super) async fn names(&self) -> Vec<String> {
        self.toolbox.tools().await.into_iter().map(|tool| tool.spec.name).collect()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let call =
            Invocation { tool: &format!("s.{tool}"), arguments: &arguments, key: "key-1", max_bytes: MOST };
        let called = tokio::time::timeout(Duration::from_secs(60), self.toolbox.call(call)).await;
        called.unwrap_or_else(|_| panic!("no answer from {tool}: {:?}", self.toolbox))
    }

    /// What a tool says that did not fail.
    pub(super) async fn says(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(!output.failed && !output.cut, "{tool}: {}", output.text);
        output.text
    }

    pub(super) async fn works(&self) {
        assert_eq!(self.says("echo", json!({"text": "still here"})).await, "still here");
    }
}

pub(super) fn is_ready(state: &State) -> bool {
    matches!(state, State::Ready(_))
}

/// The misbehaving server, at an address.
pub(super) struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(script()).arg("--http").args(arguments).env("TOOL_SERVER_TOKEN", TOKEN);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().parse().unwrap() }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script() -> String {
    format!("{}/../../tests/tool_server.py", env!("CARGO_MANIFEST_DIR"))
}

#[expect(clippy::disallowed_methods, reason = "a test stands in for the settings here")]
fn path() -> String {
    std::env::var("PATH").unwrap()
}

const TOKEN: &str = "hush-hush";
