//! Models behind a network address: any OpenAI-compatible server, Anthropic, Gemini and Ollama.
//!
//! Owns the flattening of a [`Prompt`] into chat messages and the translation of failures; the wire formats are the
//! `genai` crate's. What is easy to get wrong: `genai` looks into the environment for keys unless a whole target is
//! handed to it, and its errors quote the provider, so neither its defaults nor its messages leave this file. It
//! also logs those errors, so a subscriber has to switch the target `genai` off.

use std::time::Duration;

use async_trait::async_trait;
use confidant_display::debug_without_content;
use futures_util::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, JsonSpec, StreamEnd, ToolChoice};
use genai::resolver::{AuthData, Endpoint};
use genai::webc::StreamTimeout;
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::{StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    Answer, AnswerFormat, Attachment, Calling, Deltas, Embedded, Embedding, Form, Model, ModelError, Prompt,
    Sampling, ToolCall, ToolUse, Usage,
};

mod embeddings;
mod messages;

use messages::{Names, filled, flatten, form_request};

/// Which wire format a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The chat completions API of `OpenAI` and of every server that copies it.
    OpenAi,
    /// Anthropic's messages API.
    Anthropic,
    /// Google's generate-content API.
    Gemini,
    /// Ollama's own chat API.
    Ollama,
}

/// What it takes to reach a model.
#[derive(Clone, Debug)]
pub struct RemoteSettings {
    /// The wire format.
    pub provider: Provider,
    /// The model's name, as the server knows it.
    pub model: String,
    /// Where the server is, such as `http://127.0.0.1:8080/v1`; unset means the provider's public address.
    pub base_url: Option<String>,
    /// The key to show, for servers that want one.
    pub api_key: Option<SecretString>,
    /// How long the server may be silent, before its first byte and between two of them.
    pub timeout: Duration,
    /// How to answer when a prompt does not say.
    pub sampling: Sampling,
    /// How the server is asked to fill in forms.
    pub forms: FormStyle,
    /// The model that makes embeddings, as the server knows it; unset means that none are made.
    pub embedding_model: Option<String>,
}

/// How a server is asked for a structured reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FormStyle {
    /// As the call of a function, which it must make.
    #[default]
    Function,
    /// As an answer that fits a JSON Schema, for servers that hold their model to one.
    JsonSchema,
}

/// Why a remote model cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteSetupError {
    /// The address is not one.
    #[error("model.base_url is not an http or https address; write it like http://127.0.0.1:8080/v1")]
    BadAddress,
    /// No model is named.
    #[error("model.model is empty; name a model that the server has")]
    NoModel,
    /// The key holds a character that no header may hold.
    #[error("the model's API key holds characters that cannot be sent; check its variable for line breaks")]
    BadKey,
    /// A model for embeddings of a provider that makes none.
    #[error("model.embedding_model is set, but Anthropic makes no embeddings; leave it out")]
    NoEmbeddings,
    /// No client, which on every known system means no root certificates.
    #[error("no TLS client could be made; install the system's root certificates (ca-certificates)")]
    NoTls,
}

/// A model that answers over the network.
pub struct Remote {
    settings: RemoteSettings,
    target: ServiceTarget,
    client: genai::Client,
    /// The same connections as `client`, for probes.
    http: reqwest::Client,
    probe: Url,
    /// The model for embeddings and where it is asked, if there is one.
    embeddings: Option<(String, Url)>,
}

impl Remote {
    /// Checks the settings and prepares a client; connects to nothing.
    pub fn new(settings: RemoteSettings) -> Result<Self, RemoteSetupError> {
        if settings.model.trim().is_empty() {
            return Err(RemoteSetupError::NoModel);
        }
        if settings.api_key.as_ref().is_some_and(|key| !fits_header(key.expose_secret())) {
            return Err(RemoteSetupError::BadKey);
        }
        let base = address(settings.base_url.as_deref().unwrap_or(default_address(settings.provider)))?;
        let probe = base.join(probe_path(settings.provider)).map_err(|_| RemoteSetupError::BadAddress)?;
        let embeddings = settings.embedding_model.clone().map(|model| {
            let address = embeddings::address(settings.provider, &base);
            address.map(|address| (model, address)).ok_or(RemoteSetupError::NoEmbeddings)
        });
        let embeddings = embeddings.transpose()?;
        let http = http_client(&base, settings.timeout)?;
        let client = genai::Client::builder()
            .with_reqwest(http.clone())
            .build()
            .map_err(|_| RemoteSetupError::NoTls)?;
        let target = ServiceTarget {
            auth: auth(&settings, &base)?,
            endpoint: Endpoint::from_owned(String::from(base)),
            model: ModelIden::new(adapter(settings.provider), settings.model.clone()),
        };
        Ok(Self { settings, target, client, http, probe, embeddings })
    }

    /// Whether the server is the provider's public one.
    fn is_providers_own(&self) -> bool {
        let own = Url::parse(default_address(self.settings.provider)).ok();
        own.is_some_and(|own| own.host_str() == self.probe.host_str())
    }

    /// The options of one request: what the prompt asks for, else what the settings say.
    fn options(&self, asked: &Sampling) -> ChatOptions {
        let default = &self.settings.sampling;
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_stream_header_timeout(self.settings.timeout)
            .with_stream_read_timeout(self.settings.timeout);
        options.temperature = asked.temperature.or(default.temperature);
        options.top_p = asked.top_p.or(default.top_p);
        options.max_tokens = asked.max_tokens.or(default.max_tokens);
        options.stop_sequences.clone_from(&asked.stop);
        if self.settings.provider != Provider::OpenAi {
            options.seed = asked.seed.and_then(|seed| u64::try_from(seed).ok());
            options.response_format = asked.format.as_ref().map(messages::answer_format);
        }
        match (self.settings.provider, &self.settings.api_key) {
            // `genai` cuts endings such as `-high` and `-max` off a name and takes them for an effort.
            (Provider::OpenAi, _) => {
                options.with_extra_body(messages::openai_options(&self.settings.model, asked))
            }
            // It also knows no key for Ollama, though one behind a proxy may want it.
            (Provider::Ollama, Some(key)) => options.with_extra_headers(bearer(key)),
            _ => options,
        }
    }

    /// Asks, and passes text on as it comes.
    async fn ask(
        &self,
        request: ChatRequest,
        options: &ChatOptions,
        deltas: Deltas<'_>,
    ) -> Result<Answer, ModelError> {
        let reply = self.client.exec_chat_stream(self.target.clone(), request, Some(options)).await;
        let mut stream = reply.map_err(|error| failure(&error, Progress::Nothing))?.stream;
        let (mut text, mut called) = (String::new(), 0);
        while let Some(event) = stream.next().await {
            let progress = if text.is_empty() { Progress::Nothing } else { Progress::Begun };
            match event.map_err(|error| failure(&error, progress))? {
                ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                    deltas(&chunk.content);
                    text.push_str(&chunk.content);
                }
                // The pieces are put together by `genai`; here they only count.
                ChatStreamEvent::ToolCallChunk(_) => called += 1,
                ChatStreamEvent::End(end) => return self.finish(text, end),
                _ => {}
            }
            if text.len() > LONGEST_ANSWER || called > MOST_CALL_PIECES {
                return Err(ModelError::CutOff);
            }
        }
        Err(if text.is_empty() { ModelError::Malformed } else { ModelError::CutOff })
    }

    /// Turns the end of a stream into an answer, or says why it is none.
    fn finish(&self, text: String, end: StreamEnd) -> Result<Answer, ModelError> {
        let counted = end.captured_usage.as_ref();
        // These two have no end mark of their own, so `genai` makes one up when the connection closes.
        let ended = match self.settings.provider {
            Provider::OpenAi | Provider::Anthropic => true,
            Provider::Gemini => end.captured_stop_reason.is_some(),
            Provider::Ollama => end.captured_stop_reason.is_some() || counted.is_some(),
        };
        let calls = end.captured_tool_calls().is_some_and(|calls| !calls.is_empty());
        if text.trim().is_empty() && !calls {
            return Err(ModelError::Malformed);
        }
        if !ended {
            return Err(ModelError::CutOff);
        }
        let count = |tokens: Option<i32>| tokens.and_then(|tokens| u32::try_from(tokens).ok());
        let usage = counted.and_then(|usage| {
            Some(Usage { prompt: count(usage.prompt_tokens)?, completion: count(usage.completion_tokens)? })
        });
        let calls = end.captured_into_tool_calls().unwrap_or_default().into_iter().map(|call| ToolCall {
            id: call.call_id,
            name: call.fn_name,
            arguments: call.fn_arguments,
            signatures: call.thought_signatures.unwrap_or_default(),
        });
        Ok(Answer { text, calls: calls.collect(), model: self.settings.model.clone(), usage })
    }
}

#[async_trait]
impl Model for Remote {
    fn name(&self) -> &str {
        &self.settings.model
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let names = Names::of(prompt);
        let mut request = flatten(prompt, &names);
        let mut options = self.options(&prompt.sampling).with_capture_tool_calls(!prompt.tools.is_empty());
        let choice = match (prompt.calling, &prompt.sampling.tool_choice) {
            (Calling::Over, _) => Some(ToolChoice::None),
            (Calling::Free, Some(ToolUse::Any)) => Some(ToolChoice::Required),
            (Calling::Free, Some(ToolUse::Named(name))) => Some(ToolChoice::tool(names.wire(name))),
            // Which tools there are is not the client's to say: those of this program may still be called.
            (Calling::Free, Some(ToolUse::Nothing) | None) => None,
        };
        match (self.settings.provider, choice) {
            // Providers want to know the tools that were called; Ollama does not, and knows no way to forbid them.
            (Provider::Ollama, Some(ToolChoice::None)) => request.tools = None,
            (_, Some(choice)) if request.tools.is_some() => options = options.with_tool_choice(choice),
            _ => {}
        }
        let asked = self.ask(request, &options, deltas).await;
        let mut answer = asked.map_err(|error| match error {
            // Whether a model can see, its server says only when it is asked.
            ModelError::Refused(400..=499) if !prompt.attachments.is_empty() => ModelError::AttachmentRefused,
            error => error,
        })?;
        for call in &mut answer.calls {
            call.name = names.ours(&call.name);
        }
        Ok(answer)
    }

    async fn fill(&self, form: &Form) -> Result<serde_json::Value, ModelError> {
        let sampling =
            Sampling { temperature: Some(0.0), max_tokens: Some(form.max_tokens), ..Sampling::default() };
        let options = self.options(&sampling);
        let options = match self.settings.forms {
            FormStyle::Function => {
                options.with_capture_tool_calls(true).with_tool_choice(ToolChoice::tool(form.name))
            }
            FormStyle::JsonSchema => {
                options.with_response_format(JsonSpec::new(form.name, form.schema.clone()))
            }
        };
        let request = form_request(form, self.settings.forms);
        filled(self.ask(request, &options, &|_| {}).await?)
    }

    fn refuses(&self, sampling: &Sampling) -> Option<&'static str> {
        let provider = self.settings.provider;
        if provider == Provider::OpenAi {
            return None;
        }
        let is_known = match sampling.format {
            None => true,
            // `genai` has no way to ask these for one or the other.
            Some(AnswerFormat::Json) => provider == Provider::Ollama,
            Some(AnswerFormat::Schema(_)) => provider != Provider::Ollama,
        };
        let must_call = matches!(sampling.tool_choice, Some(ToolUse::Any | ToolUse::Named(_)));
        let one_by_one = sampling.parallel_tool_calls == Some(false);
        let refused = [
            ("response_format", !is_known),
            ("tool_choice", must_call && provider == Provider::Ollama),
            ("parallel_tool_calls", one_by_one),
        ];
        let refused = refused.into_iter().find_map(|(name, refused)| refused.then_some(name));
        sampling.penalty().or(refused)
    }

    fn takes(&self, attachment: &Attachment) -> bool {
        let (image, pdf) = (attachment.is_image(), attachment.media_type == "application/pdf");
        match (self.settings.provider, attachment.is_elsewhere()) {
            // A server of the operator's own would fetch it from inside the operator's network.
            (Provider::OpenAi, true) => image && self.is_providers_own(),
            (Provider::OpenAi | Provider::Gemini, false) => true,
            (Provider::Anthropic, false) => image || pdf,
            (Provider::Ollama, false) => image,
            // `genai` has no way to say so.
            (Provider::Anthropic | Provider::Gemini | Provider::Ollama, true) => false,
        }
    }

    fn embedding_model(&self) -> Option<&str> {
        self.embeddings.as_ref().map(|(model, _)| model.as_str())
    }

    async fn embed(&self, embedding: &Embedding) -> Result<Embedded, ModelError> {
        let (model, url) = self.embeddings.as_ref().ok_or(ModelError::NoEmbeddings)?;
        let (key, limit) = (self.settings.api_key.as_ref(), self.settings.timeout);
        embeddings::ask(&self.http, url.clone(), key, limit, (model, embedding)).await
    }

    async fn check(&self) -> Result<(), ModelError> {
        let mut request = self.http.get(self.probe.clone()).timeout(self.settings.timeout.min(PROBE_LIMIT));
        if let Some(key) = &self.settings.api_key {
            let key = key.expose_secret();
            request = match self.settings.provider {
                Provider::OpenAi | Provider::Ollama => request.bearer_auth(key),
                Provider::Anthropic => {
                    request.header("x-api-key", key).header("anthropic-version", "2023-06-01")
                }
                Provider::Gemini => request.header("x-goog-api-key", key),
            };
        }
        match request.send().await {
            Ok(reply) => match refusal(reply.status()) {
                ModelError::Unauthorised => Err(ModelError::Unauthorised),
                _ => Ok(()),
            },
            Err(error) if error.is_timeout() && !error.is_connect() => Err(ModelError::TimedOut),
            Err(_) => Err(ModelError::Unreachable),
        }
    }
}

debug_without_content!(Remote { provider: settings.provider, model: settings.model });

/// Whether a part of the answer has already gone out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Nothing,
    Begun,
}

/// What a failure means to us; whatever the provider wrote stays behind.
fn failure(error: &genai::Error, progress: Progress) -> ModelError {
    let broken = if progress == Progress::Begun { ModelError::CutOff } else { ModelError::Malformed };
    match error {
        genai::Error::HttpError { status, .. } => refusal(*status),
        genai::Error::WebStream { error, .. } => {
            if error.is::<StreamTimeout>() {
                ModelError::TimedOut
            } else if let Some(error) = error.downcast_ref::<genai::Error>() {
                failure(error, progress)
            } else if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                connection_failure(error, progress)
            } else {
                broken
            }
        }
        // An error in the middle of a stream that began with status 200; some servers repeat the status inside.
        genai::Error::ChatResponse { body, .. } if progress == Progress::Nothing => {
            let code = body.get("code").and_then(serde_json::Value::as_u64);
            let status = code.and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
            status.map_or(ModelError::CutOff, refusal)
        }
        _ => broken,
    }
}

fn connection_failure(error: &reqwest::Error, progress: Progress) -> ModelError {
    if progress == Progress::Begun || error.is_body() || error.is_decode() {
        ModelError::CutOff
    } else if error.is_timeout() && !error.is_connect() {
        ModelError::TimedOut
    } else {
        ModelError::Unreachable
    }
}

fn refusal(status: StatusCode) -> ModelError {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ModelError::Unauthorised,
        StatusCode::TOO_MANY_REQUESTS => ModelError::RateLimited,
        other => ModelError::Refused(other.as_u16()),
    }
}

fn adapter(provider: Provider) -> AdapterKind {
    match provider {
        Provider::OpenAi => AdapterKind::OpenAI,
        Provider::Anthropic => AdapterKind::Anthropic,
        Provider::Gemini => AdapterKind::Gemini,
        Provider::Ollama => AdapterKind::Ollama,
    }
}

/// Always explicit, so that `genai` has no reason to look for a key by itself.
fn auth(settings: &RemoteSettings, base: &Url) -> Result<AuthData, RemoteSetupError> {
    match (&settings.api_key, settings.provider) {
        (Some(key), _) => Ok(AuthData::from_single(key.expose_secret())),
        // A server without keys gets no Authorization header rather than an empty one.
        (None, Provider::OpenAi) => {
            let mut url = base.join("chat/completions").map_err(|_| RemoteSetupError::BadAddress)?;
            url.set_query(base.query());
            Ok(AuthData::RequestOverride { url: url.into(), headers: Headers::default() })
        }
        (None, _) => Ok(AuthData::from_single("")),
    }
}

fn bearer(key: &SecretString) -> Headers {
    Headers::from(("Authorization".to_owned(), format!("Bearer {}", key.expose_secret())))
}

fn fits_header(key: &str) -> bool {
    reqwest::header::HeaderValue::from_str(key).is_ok()
}

/// A base address that ends with a slash, so that paths can be joined to it.
fn address(text: &str) -> Result<Url, RemoteSetupError> {
    let mut url = Url::parse(text.trim()).map_err(|_| RemoteSetupError::BadAddress)?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(RemoteSetupError::BadAddress);
    }
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

fn default_address(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi => "https://api.openai.com/v1/",
        Provider::Anthropic => "https://api.anthropic.com/v1/",
        Provider::Gemini => "https://generativelanguage.googleapis.com/v1beta/",
        Provider::Ollama => "http://127.0.0.1:11434/",
    }
}

fn probe_path(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi | Provider::Anthropic | Provider::Gemini => "models",
        Provider::Ollama => "api/tags",
    }
}

/// One client for the life of the model, so that connections are reused.
///
/// It follows no redirects: a prompt goes to the configured server or nowhere. A loopback server is never asked
/// through a proxy, for the same reason. Without TLS it also loads no certificates, which takes a while and fails on
/// a bare system.
fn http_client(base: &Url, timeout: Duration) -> Result<reqwest::Client, RemoteSetupError> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timeout.min(CONNECT_LIMIT))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    // Somebody else in the process may have installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if base.scheme() == "http" {
        builder = builder.tls_certs_only(std::iter::empty());
    }
    if is_loopback(base) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|_| RemoteSetupError::NoTls)
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Nobody waits longer than this for a connection, however patient they are with the answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Nobody waits longer than this to learn whether a server is there.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// No honest call comes in more pieces.
const MOST_CALL_PIECES: usize = 100_000;

/// No honest answer is longer; a server that goes on is broken or hostile.
const LONGEST_ANSWER: usize = 4 << 20;

#[cfg(test)]
mod tests;
