//! A response in OpenAI's events.
//!
//! Each event says its type and its place in the stream. Items come one after the other: the agent's message in pieces, then calls of the
//! client's tools, each whole; at the end the whole response. The reply's head waits for the first word, so that a turn that fails before
//! it fails with a status, and one that must go on in a copy can.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::Turn;
use confidant_engine::turn::{Ending, Outbound};
use futures_util::{Stream, stream};
use serde_json::{Value, json};

use super::objects::{
    About, COMPLETED, CallObject, FAILED, FailureObject, IN_PROGRESS, ItemObject, Standing, TextObject,
    UsageObject,
};
use super::{Begun, Names, Told};
use crate::answers::cut_off;
use crate::app::App;
use crate::error::ApiError;
use crate::openai::stream::first_word;
use crate::openai::{MEMORY, memory_header};

/// Answers with a stream of events.
pub(super) async fn respond(app: App, begun: Begun, about: About) -> Result<Response, ApiError> {
    let Begun { mut turn, names } = begun;
    let first = match tokio::time::timeout(app.settings.request_timeout, first_word(&mut turn)).await {
        Ok(Some(Outbound::Error(error))) => return Err(error.into()),
        Ok(None) => return Err(cut_off(&app)),
        Ok(first) => first,
        // Slow is not failed: the stream begins, and keep-alives hold the connection.
        Err(_) => None,
    };
    let memory = match &first {
        Some(Outbound::Final(answer)) => Some(memory_header(&Ending::Answer(answer.clone()))),
        _ => None,
    };
    let events = Events {
        app,
        turn,
        names,
        about,
        queue: VecDeque::new(),
        sent: 0,
        said: None,
        output: Vec::new(),
        ended: false,
    };
    let mut response = Sse::new(events.into_stream(first)).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().extend(memory.map(|memory| (MEMORY, memory)));
    Ok(response)
}

struct Events {
    app: App,
    turn: Turn,
    names: Names,
    about: About,
    /// What is ready to be sent: types with their data.
    queue: VecDeque<(&'static str, String)>,
    /// How many events there were.
    sent: u64,
    /// What was said of the message, once it has begun.
    said: Option<String>,
    /// Items that are done.
    output: Vec<ItemObject>,
    ended: bool,
}

impl Events {
    fn into_stream(
        mut self,
        first: Option<Outbound>,
    ) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        for kind in ["response.created", "response.in_progress"] {
            self.whole(kind, IN_PROGRESS, Standing::default());
        }
        if let Some(first) = first {
            self.take(first);
        }
        stream::unfold(self, |mut events| async move {
            loop {
                if let Some((kind, data)) = events.queue.pop_front() {
                    return Some((Ok(Event::default().event(kind).data(data)), events));
                }
                if events.ended {
                    return None;
                }
                match events.turn.next().await {
                    Some(event) => events.take(event),
                    None => {
                        let error = cut_off(&events.app);
                        events.fail(&error);
                    }
                }
            }
        })
    }

    fn take(&mut self, event: Outbound) {
        match event {
            Outbound::Progress { .. }
            | Outbound::SettingsWanted { .. }
            | Outbound::Wanted(_)
            | Outbound::Enriched(_) => {}
            Outbound::Delta { text, .. } => self.say(&text),
            Outbound::Final(answer) => self.end(Ending::Answer(answer)),
            Outbound::Approval(request) => self.end(Ending::Approval(request)),
            Outbound::Error(error) => self.fail(&error.into()),
        }
    }

    fn say(&mut self, text: &str) {
        if self.said.is_none() {
            let item = ItemObject::said(self.names.message(), IN_PROGRESS, None);
            self.push("response.output_item.added", json!({ "output_index": 0, "item": item }));
            let part = TextObject::of_agent(String::new());
            self.push_part("response.content_part.added", json!({ "part": part }));
        }
        self.said.get_or_insert_default().push_str(text);
        self.push_part("response.output_text.delta", json!({ "delta": text, "logprobs": [] }));
    }

    fn end(&mut self, ending: Ending) {
        let asks = matches!(ending, Ending::Approval(_));
        let told = Told::from(ending);
        match (self.said.is_some(), asks) {
            // A question follows what the model said before it.
            (true, true) => self.say(&format!("\n\n{}", told.content)),
            (true, false) => {}
            // An answer from the log, or one that no model made, comes without deltas.
            (false, _) if told.content.is_empty() && !told.calls.is_empty() => {}
            (false, _) => self.say(&told.content),
        }
        if let Some(text) = self.said.clone() {
            let part = TextObject::of_agent(text.clone());
            self.push_part("response.output_text.done", json!({ "text": text, "logprobs": [] }));
            self.push_part("response.content_part.done", json!({ "part": part }));
            let item = ItemObject::said(self.names.message(), COMPLETED, Some(text));
            self.done(item);
        }
        let calls: Vec<CallObject> = told.call_items(&self.names).collect();
        for call in calls {
            self.call(call);
        }
        let standing = Standing {
            output: std::mem::take(&mut self.output),
            completed_at: Some(self.app.now()),
            usage: Some(UsageObject::of(told.usage)),
            confidant: Some(told.confidant),
            error: None,
        };
        self.whole("response.completed", COMPLETED, standing);
        self.ended = true;
    }

    /// A call, whole: models hand over none of it before it is.
    fn call(&mut self, call: CallObject) {
        let (index, item) = (self.output.len(), ItemObject::Call(call.clone()));
        let mut begun = json!(item);
        (begun["status"], begun["arguments"]) = (json!(IN_PROGRESS), json!(""));
        let (id, arguments) = (item.id().to_owned(), call.arguments);
        self.push("response.output_item.added", json!({ "output_index": index, "item": begun }));
        let delta = json!({ "output_index": index, "item_id": id, "delta": arguments });
        self.push("response.function_call_arguments.delta", delta);
        let done = json!({ "output_index": index, "item_id": id, "arguments": arguments });
        self.push("response.function_call_arguments.done", done);
        self.done(item);
    }

    fn done(&mut self, item: ItemObject) {
        let data = json!({ "output_index": self.output.len(), "item": item });
        self.push("response.output_item.done", data);
        self.output.push(item);
    }

    /// What was sent cannot be taken back: the response says that it failed.
    fn fail(&mut self, error: &ApiError) {
        let message = format!("{}; hint: {}", error.message, error.hint);
        let output = std::mem::take(&mut self.output);
        let error = Some(FailureObject { code: "server_error", message });
        self.whole("response.failed", FAILED, Standing { output, error, ..Standing::default() });
        self.ended = true;
    }

    /// An event of the whole response.
    fn whole(&mut self, kind: &'static str, status: &'static str, standing: Standing) {
        let response = self.about.response(status, standing);
        self.push(kind, json!({ "response": response }));
    }

    /// An event of the message's one part.
    fn push_part(&mut self, kind: &'static str, mut data: Value) {
        data["item_id"] = json!(self.names.message());
        (data["output_index"], data["content_index"]) = (json!(0), json!(0));
        self.push(kind, data);
    }

    fn push(&mut self, kind: &'static str, mut data: Value) {
        (data["type"], data["sequence_number"]) = (json!(kind), json!(self.sent));
        self.sent += 1;
        self.queue.push_back((kind, data.to_string()));
    }
}
