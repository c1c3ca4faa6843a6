//! Tools: what a model may call, who may let it, and how little is believed of what comes back.
//!
//! A [`Toolbox`] has tools and runs them; the engine decides which of them a turn is offered, checks arguments against
//! their schemas, asks the rules again at the call, and hands the model a bounded, fenced text. Tools of MCP servers
//! are a toolbox outside this crate.

mod check;
mod policy;

use async_trait::async_trait;
use confidant_display::debug_without_content;
use confidant_model::ToolSpec;
use serde_json::Value;

pub(crate) use check::misfit;
pub(crate) use policy::Caller;
pub use policy::{ToolPolicy, ToolRule, Verdict};

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// What a model is told of it. Its name is `server.tool`.
    pub spec: ToolSpec,
    /// What its maker says that it does to the world. A hint, never a permission.
    pub effect: Effect,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Reads,
    /// It changes something, and calling it twice with the same key changes no more than once.
    WritesOnce,
    /// It changes something.
    Writes,
    /// It changes something that cannot be undone.
    Destroys,
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct Invocation<'a> {
    /// The tool's full name.
    pub tool: &'a str,
    /// The arguments, which fit the tool's schema.
    pub arguments: &'a Value,
    /// The same for every try of the same call, and for no other: a tool that minds it does nothing twice.
    pub key: &'a str,
    /// The most bytes that a result is read to.
    pub max_bytes: usize,
}

/// What a tool gave back: untrusted text.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text of it.
    pub text: String,
    /// Whether the tool says that it failed.
    pub failed: bool,
    /// Whether more came than is here.
    pub cut: bool,
}

/// Why a tool gave nothing back. Says nothing of arguments or results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// No such tool.
    #[error("there is no such tool")]
    Unknown,
    /// Its server cannot be reached, or went away; nothing was called.
    #[error("the tool's server cannot be reached")]
    Unreachable,
    /// The call went out and no result came.
    #[error("the connection to the tool's server was lost during the call; whether it was done is not known")]
    Lost,
    /// No result in time.
    #[error("the tool did not answer in time; whether it was done is not known")]
    TimedOut,
    /// Its server refused the call as such.
    #[error("the tool's server refused the call")]
    Refused,
    /// A reply that makes no sense.
    #[error("the tool's reply could not be understood")]
    Malformed,
}

/// Something that has tools and runs them.
#[async_trait]
pub trait Toolbox: Send + Sync + std::fmt::Debug {
    /// The tools there are now. Answers from what is known: a server that is away takes its tools with it, not the
    /// turn's time.
    async fn tools(&self) -> Vec<Tool>;

    /// Waits until it is known which tools there are, as at a start. The caller sets the time limit.
    async fn settled(&self) {}

    /// Calls one. Dropping the future cancels the call. The caller sets the time limit.
    async fn call(&self, call: Invocation<'_>) -> Result<ToolOutput, ToolError>;
}

debug_without_content!(Invocation<'_> { tool });
debug_without_content!(ToolOutput { failed, cut });

/// No tools at all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoTools;

#[async_trait]
impl Toolbox for NoTools {
    async fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    async fn call(&self, _: Invocation<'_>) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Unknown)
    }
}

/// How tools are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Rounds of calls in one turn.
    pub max_steps: usize,
    /// Calls that run side by side.
    pub max_parallel: usize,
    /// The longest that a call may take.
    pub call_timeout: std::time::Duration,
    /// The most bytes of a result that a model gets to read.
    pub max_result_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        let call_timeout = std::time::Duration::from_secs(30);
        Self { max_steps: 8, max_parallel: 4, call_timeout, max_result_bytes: 64 * 1024 }
    }
}
