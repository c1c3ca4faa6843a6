//! What tests of several surfaces share: a model that calls what it is told to, and tools that count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::approval::Approver;
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall, ToolSpec};
use confidant_engine::tools::{
    Effect, Invocation, Tool, ToolError, ToolOutput, ToolPolicy, ToolRule, Toolbox, Verdict,
};
use confidant_engine::{Engine, Parts, StaticKeys, Storage};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// What makes the model ask for something that must be approved.
pub(crate) const DELETE: &str = "call files.delete {\"path\":\"/a\"}";

/// One key, the same for every test.
pub(crate) fn keys() -> Arc<StaticKeys> {
    Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap())
}

/// A model that reads its orders from the query: `call NAME ARGS`, one per line, makes it call; then it says "done" and
/// what the tools said.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Permits to say the last word.
    pub(crate) gate: Semaphore,
    /// How often it was asked.
    pub(crate) asked: AtomicUsize,
}

impl Caller {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_gate(1_000_000)
    }

    /// One that does not come to an end until it is let.
    pub(crate) fn shut() -> Arc<Self> {
        Self::with_gate(0)
    }

    fn with_gate(permits: usize) -> Arc<Self> {
        Arc::new(Self { gate: Semaphore::new(permits), asked: AtomicUsize::new(0) })
    }

    /// Waits until it was asked that often.
    pub(crate) async fn until_asked(&self, times: usize) {
        while self.asked.load(Ordering::SeqCst) < times {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn orders(query: &str) -> Vec<ToolCall> {
    let calls = query.lines().filter_map(|line| line.strip_prefix("call ")?.split_once(' '));
    let call = |(at, (name, arguments)): (usize, (&str, &str))| ToolCall {
        id: format!("c{at}"),
        name: name.to_owned(),
        arguments: serde_json::from_str(arguments).unwrap(),
        signatures: Vec::new(),
    };
    calls.enumerate().map(call).collect()
}

#[async_trait]
impl Model for Caller {
    fn name(&self) -> &str {
        "caller"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let calls = orders(&prompt.query);
        if !calls.is_empty() && prompt.steps.is_empty() {
            deltas("Looking.");
            return Ok(Answer { text: "Looking.".into(), calls, model: "caller".into(), usage: None });
        }
        self.gate.acquire().await.unwrap().forget();
        let results: Vec<String> = prompt.steps.iter().flat_map(|step| step.results.clone()).collect();
        let text = format!("done: {}", results.join(" | "));
        deltas(&text);
        Ok(Answer { text, calls: Vec::new(), model: "caller".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// Tools that count how often they ran, by what they ran on.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub(crate) runs: Mutex<BTreeMap<String, usize>>,
    /// Calls that began do not end, when set.
    pub(crate) hangs: AtomicBool,
}

impl Counting {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.lock().unwrap().values().sum()
    }

    /// Waits until that many calls have begun.
    pub(crate) async fn until_run(&self, times: usize) {
        while self.runs() < times {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn tool(name: &str, effect: Effect) -> Tool {
    let schema =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    Tool {
        spec: ToolSpec { name: name.to_owned(), description: "A tool.".to_owned(), schema, strict: None },
        effect,
    }
}

#[async_trait]
impl Toolbox for Counting {
    async fn tools(&self) -> Vec<Tool> {
        vec![tool("files.read", Effect::Reads), tool("files.delete", Effect::Destroys)]
    }

    async fn call(&self, call: Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let path = call.arguments["path"].as_str().unwrap_or_default().to_owned();
        *self.runs.lock().unwrap().entry(path.clone()).or_default() += 1;
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(ToolOutput { text: format!("content of {path}"), failed: false, cut: false })
    }
}

/// A rule that everything of `files` must be approved by these.
pub(crate) fn approved_by(approvers: Vec<Approver>) -> Vec<ToolRule> {
    let then = Verdict::Approve { approvers, expires: Duration::from_secs(60) };
    vec![ToolRule { tool: "files.*".into(), tenant: None, users: None, when: BTreeMap::new(), then }]
}

/// An engine with this model and these tools.
pub(crate) async fn engine(
    storage: Storage,
    model: Arc<dyn Model>,
    toolbox: Arc<dyn Toolbox>,
    rules: Vec<ToolRule>,
) -> Engine {
    let policy = ToolPolicy::new(rules);
    let parts = Parts { toolbox, policy, ..Parts::new(storage, keys(), model) };
    Engine::open(parts).await.unwrap()
}

/// What a model orders, as JSON.
pub(crate) fn delete(path: &str) -> Value {
    json!({ "query": format!("call files.delete {{\"path\":\"{path}\"}}") })
}
