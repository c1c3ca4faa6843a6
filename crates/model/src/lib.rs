//! The one port behind which every language model stands.
//!
//! A model gets a [`Prompt`], which keeps its parts apart (system text, quoted blocks, history, query), so that the
//! built-in answerer can tell a room line from a memory and a remote adapter can decide how to flatten them. What is
//! easy to get wrong: a [`ModelError`] must never carry the provider's reply, which may quote the prompt.

mod attachment;
mod choice;
mod embedding;
mod extractive;
#[cfg(feature = "remote")]
mod remote;
pub mod tokens;

use async_trait::async_trait;
use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use confidant_redact::Fence;

pub use attachment::{Attachment, AttachmentSource};
pub use choice::{ChosenModel, Models, OfferedModel};
pub use embedding::{Embedded, Embedding, EmbeddingInput};
pub use extractive::Extractive;
#[cfg(feature = "remote")]
pub use remote::{FormStyle, Provider, Remote, RemoteSettings, RemoteSetupError};

/// A language model, or something that answers like one.
#[async_trait]
pub trait Model: Send + Sync + std::fmt::Debug {
    /// The name that answers, exports and `/v1/models` give.
    fn name(&self) -> &str;

    /// Answers `prompt`. Each piece of text goes to `deltas` as soon as it is there, in order; their concatenation is
    /// the answer's text. An answer that calls tools is not the last word: the caller runs them and asks again.
    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError>;

    /// Fills in a form: one structured call whose result is a JSON object. What comes back is only known to be JSON;
    /// whoever asked checks it field by field.
    async fn fill(&self, form: &Form) -> Result<Value, ModelError> {
        let _ = form;
        Err(ModelError::NoForms)
    }

    /// The first thing in `sampling` that the model cannot do, by the name that `OpenAI` gives it. What changes nothing where
    /// it is not known, such as a seed, is not among them.
    fn refuses(&self, sampling: &Sampling) -> Option<&'static str> {
        let _ = sampling;
        None
    }

    /// Whether it calls tools at all.
    fn calls_tools(&self) -> bool {
        true
    }

    /// Whether it takes such an image or file with a query, as far as that is known before it is asked.
    fn takes(&self, attachment: &Attachment) -> bool {
        let _ = attachment;
        false
    }

    /// The name of the model that makes embeddings at the same server, if one is set up.
    fn embedding_model(&self) -> Option<&str> {
        None
    }

    /// Makes an embedding of each input, in their order.
    async fn embed(&self, embedding: &Embedding) -> Result<Embedded, ModelError> {
        let _ = embedding;
        Err(ModelError::NoEmbeddings)
    }

    /// Whether the model can be reached now, without asking it anything.
    async fn check(&self) -> Result<(), ModelError>;
}

/// Where a model puts its answer while it is being made.
pub type Deltas<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// Everything a model is told in one turn.
#[derive(Clone)]
pub struct Prompt {
    /// What the quoted blocks of this turn stand in.
    pub fence: Fence,
    /// Instructions of the operator; never holds anything a person said.
    pub system: String,
    /// Quoted data, each fenced and labelled as untrusted.
    pub blocks: Vec<Block>,
    /// What this person and the agent said before, oldest first.
    pub history: Vec<PromptMessage>,
    /// What the person says now.
    pub query: String,
    /// Images and files that came with it.
    pub attachments: Vec<Attachment>,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// Whether it may call any of it now. Tools that were called stay in the prompt, since providers want to know them.
    pub calling: Calling,
    /// What was called in this turn so far, and what came back.
    pub steps: Vec<Step>,
    /// How to answer; unset means the model's own default.
    pub sampling: Sampling,
}

/// A block of quoted lines, such as the recent room discussion.
#[derive(Clone)]
pub struct Block {
    /// What the lines are, as one sentence for the model.
    pub intro: String,
    /// A word that names the fence, such as `room`.
    pub label: &'static str,
    /// The lines, oldest first, already sanitised.
    pub lines: Vec<BlockLine>,
}

/// One quoted line.
#[derive(Clone)]
pub struct BlockLine {
    /// Who said it, under a name that is unambiguous in its block; empty where nobody did.
    pub speaker: String,
    /// Whose words these are, as the asker sees it.
    pub voice: Voice,
    /// What was said: one line, without invisible characters or fences.
    pub text: String,
}

/// Whose words a quoted line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The person who asks.
    Asker,
    /// Somebody else.
    Other,
    /// The agent itself.
    Agent,
}

/// A message of the history.
#[derive(Clone)]
pub struct PromptMessage {
    /// Whose message it is.
    pub role: Role,
    /// Its text.
    pub text: String,
}

/// A tool as a model is told of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its full name, such as `files.read`.
    pub name: String,
    /// What it does, as its maker says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
    /// Whether the provider holds the model to the schema; unset leaves that to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Whether a model may call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calling {
    /// As it likes.
    #[default]
    Free,
    /// Not any more: it is to say its last word.
    Over,
}

/// A call that a model wants made.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own name for the call.
    pub id: String,
    /// The tool's full name; whatever the model wrote, so it may not exist.
    pub name: String,
    /// The arguments as the model wrote them: not checked yet.
    pub arguments: Value,
    /// What a provider wants back with the call, unread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
}

/// One round of tools: what the model said, what it called, and what came back, call by call.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What the model said with its calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The calls.
    pub calls: Vec<ToolCall>,
    /// The results, as many as calls when the step is done; fenced and bounded.
    pub results: Vec<String>,
}

/// A structured call: what is to be filled in, and from what.
#[derive(Clone)]
pub struct Form {
    /// The function's name: letters, digits and underscores.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The JSON Schema of the result, an object.
    pub schema: Value,
    /// Instructions of ours.
    pub system: String,
    /// The data to look at, as one text with its parts fenced and labelled.
    pub material: String,
    /// The most tokens that the result may have.
    pub max_tokens: u32,
}

/// The two sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person.
    Human,
    /// The agent.
    Ai,
}

/// How to answer; unset fields leave the choice to the model.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Randomness, 0 for none.
    pub temperature: Option<f64>,
    /// Probability mass to sample from.
    pub top_p: Option<f64>,
    /// The most tokens an answer may have.
    pub max_tokens: Option<u32>,
    /// Words before which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The same for the same answer, as far as the provider can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// How much to avoid what was said at all, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// How much to avoid what was said often, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// What form the answer has; unset means text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<AnswerFormat>,
    /// Which of the client's tools are called; unset leaves that to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolUse>,
    /// Whether several tools may be called at once; unset leaves that to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// How many answers are wanted; unset means one. A model makes one each time: the caller asks again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<u32>,
}

/// What a model is to do with the tools of the client.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUse {
    /// To call none of them.
    Nothing,
    /// To call at least one.
    Any,
    /// The tool of this name.
    Named(String),
}

/// A form of answers other than text.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema(AnswerSchema),
}

/// A schema that an answer is to fit.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerSchema {
    /// Its name: letters, digits, dashes and underscores.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Value,
    /// Whether the provider holds the model to it; unset leaves that to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// A finished answer.
#[derive(Clone)]
pub struct Answer {
    /// Its text.
    pub text: String,
    /// Tools that the model wants called before it goes on.
    pub calls: Vec<ToolCall>,
    /// The name of the model that made it.
    pub model: String,
    /// Tokens as the provider counted them, if it did.
    pub usage: Option<Usage>,
}

/// Tokens as a provider counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens of the answer.
    pub completion: u32,
}

/// Why a model gave no answer. Says nothing of what was asked or answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No connection.
    #[error("the model cannot be reached; check model.base_url and that the server runs")]
    Unreachable,
    /// Credentials were refused.
    #[error("the model's server refused the credentials; check its API key variable")]
    Unauthorised,
    /// Too many requests.
    #[error("the model's server is rate-limiting; try again later")]
    RateLimited,
    /// Any other refusal, by HTTP status.
    #[error("the model's server answered with status {0}; check model.model and the server's log")]
    Refused(u16),
    /// No answer in time.
    #[error("the model did not answer in time; raise model.timeout_seconds or use a faster model")]
    TimedOut,
    /// A reply that is not one.
    #[error("the model's reply could not be understood; check that model.provider fits the server")]
    Malformed,
    /// The stream ended before the answer did.
    #[error("the model's answer was cut off; send the turn again")]
    CutOff,
    /// It cannot fill in forms.
    #[error("this model cannot fill in forms; set processing.model to one that can call functions")]
    NoForms,
    /// It makes no embeddings.
    #[error("this model makes no embeddings; set model.embedding_model to one that its server has")]
    NoEmbeddings,
    /// It refused what came with an image or a file.
    #[error(
        "the model's server refused a request with an image or a file; leave it out, or use a model that takes it"
    )]
    AttachmentRefused,
    /// A worker that is not one of ours said so, and not why.
    #[error("the worker that answers reported an error; look at its log")]
    Elsewhere,
}

impl Sampling {
    /// The first penalty that is asked for.
    pub(crate) fn penalty(&self) -> Option<&'static str> {
        let asks = |penalty: Option<f64>| penalty.is_some_and(|penalty| penalty != 0.0);
        let presence = asks(self.presence_penalty).then_some("presence_penalty");
        presence.or_else(|| asks(self.frequency_penalty).then_some("frequency_penalty"))
    }
}

impl Default for Prompt {
    /// Nothing to say, in a fence of its own.
    fn default() -> Self {
        Self {
            fence: fresh_fence(),
            system: String::new(),
            blocks: Vec::new(),
            history: Vec::new(),
            query: String::new(),
            attachments: Vec::new(),
            tools: Vec::new(),
            calling: Calling::default(),
            steps: Vec::new(),
            sampling: Sampling::default(),
        }
    }
}

/// A fence with a new word, which nobody knows before it is there.
#[must_use]
pub fn fresh_fence() -> Fence {
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .expect("the operating system gives random bytes, or nothing here can be safe");
    Fence::new(random)
}

impl Block {
    /// The block as text: intro, opening fence, one `speaker: text` per line, closing fence.
    #[must_use]
    pub fn render(&self, fence: &Fence) -> String {
        let mut text = format!("{}\n{}\n", self.intro, fence.open(self.label));
        for line in &self.lines {
            if !line.speaker.is_empty() {
                text.push_str(&line.speaker);
                text.push_str(": ");
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        text.push_str(&fence.close(self.label));
        text
    }
}

debug_without_content!(Prompt { blocks: blocks.len(), history: history.len() });
debug_without_content!(ToolCall { name });
debug_without_content!(ToolSpec, ToolUse);
debug_without_content!(Sampling { temperature, top_p, max_tokens });
debug_without_content!(AnswerFormat, AnswerSchema);
debug_without_content!(Form { name });
debug_without_content!(Step { calls: calls.len() });
debug_without_content!(Block { label });
debug_without_content!(BlockLine { voice });
debug_without_content!(PromptMessage { role });
debug_without_content!(Answer { model, usage });
