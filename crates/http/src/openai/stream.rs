//! An answer in OpenAI's chunks.
//!
//! Role first, then the text in pieces, then calls of the client's tools, then other answers where several are wanted, then the reason why
//! it ended, then (if asked for) what was spent, then `[DONE]`.
//! The reply's head waits for the first word, so that a turn that fails before it fails with a status, as clients expect.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::Turn;
use confidant_engine::turn::{Ending, Outbound};
use futures_util::{Stream, stream};
use serde_json::{Value, json};

use super::request::StreamOptions;
use super::{About, MEMORY, Reply, memory_header};
use crate::answers::cut_off;
use crate::app::App;
use crate::error::ApiError;

/// Answers with a stream of chunks.
pub(super) async fn respond(
    app: App,
    mut turn: Turn,
    about: About,
    options: StreamOptions,
) -> Result<Response, ApiError> {
    let first = match tokio::time::timeout(app.settings.request_timeout, first_word(&mut turn)).await {
        Ok(Some(Outbound::Error(error))) => return Err(error.into()),
        Ok(None) => return Err(cut_off(&app)),
        Ok(first) => first,
        // Slow is not failed: the stream begins, and keep-alives hold the connection.
        Err(_) => None,
    };
    let first = first.map(Word::from);
    let memory = match &first {
        Some(Word::Last(ending)) => Some(memory_header(ending)),
        _ => None,
    };
    let chunks = Chunks { app, turn, about, options, queue: VecDeque::new(), spoken: false, ended: false };
    let events = chunks.into_stream(first);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().extend(memory.map(|memory| (MEMORY, memory)));
    Ok(response)
}

/// Waits for the first that a client hears of a turn.
pub(super) async fn first_word(turn: &mut Turn) -> Option<Outbound> {
    loop {
        match turn.next().await {
            Some(Outbound::Progress { .. } | Outbound::SettingsWanted { .. } | Outbound::Wanted(_)) => {}
            event => return event,
        }
    }
}

/// What a turn says next, as far as a client of this form hears it.
enum Word {
    /// Nothing that has a place in a chunk.
    None,
    Piece(String),
    Last(Ending),
    Error(ApiError),
}

impl From<Outbound> for Word {
    fn from(event: Outbound) -> Self {
        match event {
            Outbound::Progress { .. }
            | Outbound::SettingsWanted { .. }
            | Outbound::Wanted(_)
            | Outbound::Enriched(_) => Self::None,
            Outbound::Delta { text, .. } => Self::Piece(text),
            Outbound::Final(answer) => Self::Last(Ending::Answer(answer)),
            Outbound::Approval(request) => Self::Last(Ending::Approval(request)),
            Outbound::Error(error) => Self::Error(error.into()),
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
        first: Option<Word>,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        self.push(&json!({ "role": "assistant", "content": "", "refusal": null }), &Value::Null, None);
        if let Some(first) = first {
            self.take(first);
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
                chunks.take(event.map_or_else(|| Word::Error(cut_off(&chunks.app)), Word::from));
            }
        })
    }

    fn take(&mut self, word: Word) {
        match word {
            Word::None => {}
            Word::Piece(text) => self.say(&text),
            Word::Last(ending) => self.end(ending),
            Word::Error(error) => self.fail(&error),
        }
    }

    fn say(&mut self, text: &str) {
        self.spoken = true;
        self.push(&json!({ "content": text }), &Value::Null, None);
    }

    fn end(&mut self, ending: Ending) {
        let asks = matches!(ending, Ending::Approval(_));
        let Reply { content, calls, others, usage, confidant } = ending.into();
        match (self.spoken, asks) {
            // A question follows what the model said before it.
            (true, true) => self.say(&format!("\n\n{content}")),
            (true, false) => {}
            // An answer from the log, or one that no model made, comes without deltas.
            (false, _) if content.is_empty() => {}
            (false, _) => self.say(&content),
        }
        let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
        for (index, call) in calls.into_iter().enumerate() {
            let mut piece = serde_json::to_value(call).unwrap_or_default();
            piece["index"] = json!(index);
            self.push(&json!({ "tool_calls": [piece] }), &Value::Null, None);
        }
        // Whole, since they were made behind the first.
        for (index, text) in (1..).zip(others) {
            let delta = json!({ "role": "assistant", "content": text, "refusal": null });
            self.push_at(index, &delta, &Value::Null, None);
            self.push_at(index, &json!({}), &json!("stop"), None);
        }
        self.push(&json!({}), &json!(reason), serde_json::to_value(confidant).ok());
        if self.options.include_usage {
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
        self.push_at(0, delta, finish_reason, confidant);
    }

    /// A piece of the choice with this index.
    fn push_at(&mut self, index: u32, delta: &Value, finish_reason: &Value, confidant: Option<Value>) {
        let choice =
            json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
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
