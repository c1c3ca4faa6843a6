//! An answer in OpenAI's chunks.
//!
//! Role first, then the text in pieces, then the reason why it ended, then (if asked for) what was spent, then `[DONE]`.
//! The reply's head waits for the first word, so that a turn that fails before it fails with a status, as clients expect.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::{Final, Outbound, Turn};
use futures_util::{Stream, stream};
use serde_json::{Value, json};

use super::request::StreamOptions;
use super::{About, MEMORY, Usage, memory_header};
use crate::http::App;
use crate::http::error::ApiError;
use crate::http::turns;

/// Answers with a stream of chunks.
pub(super) async fn respond(
    app: App,
    mut turn: Turn,
    about: About,
    options: StreamOptions,
) -> Result<Response, ApiError> {
    let first = match tokio::time::timeout(app.settings.request_timeout, first_word(&mut turn)).await {
        Ok(Some(Outbound::Error(error))) => return Err(error.into()),
        Ok(None) => return Err(turns::cut_off(&app)),
        Ok(first) => first,
        // Slow is not failed: the stream begins, and keep-alives hold the connection.
        Err(_) => None,
    };
    let memory = match &first {
        Some(Outbound::Final(answer)) => Some(memory_header(answer.metadata.memory)),
        _ => None,
    };
    let chunks = Chunks { app, turn, about, options, queue: VecDeque::new(), spoken: false, ended: false };
    let events = chunks.into_stream(first);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().extend(memory.map(|memory| (MEMORY, memory)));
    Ok(response)
}

async fn first_word(turn: &mut Turn) -> Option<Outbound> {
    loop {
        match turn.next().await {
            Some(Outbound::Progress { .. }) => {}
            event => return event,
        }
    }
}

struct Chunks {
    app: App,
    turn: Turn,
    about: About,
    options: StreamOptions,
    /// What is ready to be sent.
    queue: VecDeque<String>,
    /// Whether any of the answer was sent.
    spoken: bool,
    ended: bool,
}

impl Chunks {
    fn into_stream(
        mut self,
        first: Option<Outbound>,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        self.push(&json!({ "role": "assistant", "content": "", "refusal": null }), &Value::Null, None);
        if let Some(first) = first {
            self.take(Some(first));
        }
        stream::unfold(self, |mut chunks| async move {
            loop {
                if let Some(data) = chunks.queue.pop_front() {
                    return Some((Ok(Event::default().data(data)), chunks));
                }
                if chunks.ended {
                    return None;
                }
                let event = chunks.turn.next().await;
                chunks.take(event);
            }
        })
    }

    fn take(&mut self, event: Option<Outbound>) {
        match event {
            Some(Outbound::Progress { .. }) => {}
            Some(Outbound::Delta { text, .. }) => self.say(&text),
            Some(Outbound::Final(answer)) => self.end(&answer),
            Some(Outbound::Error(error)) => self.fail(&error.into()),
            None => self.fail(&turns::cut_off(&self.app)),
        }
    }

    fn say(&mut self, text: &str) {
        self.spoken = true;
        self.push(&json!({ "content": text }), &Value::Null, None);
    }

    fn end(&mut self, answer: &Final) {
        // An answer from the log, or one that no model made, comes without deltas.
        if !self.spoken && !answer.content.is_empty() {
            self.say(&answer.content);
        }
        let metadata = serde_json::to_value(&answer.metadata).unwrap_or_default();
        self.push(&json!({}), &json!("stop"), Some(metadata));
        if self.options.include_usage {
            let usage = Usage::of(&answer.metadata);
            let mut chunk = self.chunk(json!([]));
            chunk["usage"] = serde_json::to_value(usage).unwrap_or_default();
            self.queue.push_back(chunk.to_string());
        }
        self.queue.push_back("[DONE]".to_owned());
        self.ended = true;
    }

    /// What was sent cannot be taken back; clients know an `error` among the chunks.
    fn fail(&mut self, error: &ApiError) {
        self.queue.push_back(serde_json::to_string(&error.openai_body()).unwrap_or_default());
        self.ended = true;
    }

    fn push(&mut self, delta: &Value, finish_reason: &Value, confidant: Option<Value>) {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        let mut chunk = self.chunk(json!([choice]));
        if let Some(confidant) = confidant {
            chunk["confidant"] = confidant;
        }
        self.queue.push_back(chunk.to_string());
    }

    fn chunk(&self, choices: Value) -> Value {
        let About { id, created, model } = &self.about;
        let mut chunk =
            json!({ "id": id, "object": "chat.completion.chunk", "created": created, "model": model });
        chunk["choices"] = choices;
        if self.options.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }
}
