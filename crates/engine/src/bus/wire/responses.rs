//! The JSON of responses: what a worker says of a turn, and how a gateway reads it.
//!
//! Our own workers say more than the first system knows of. Whoever does not know a word leaves it out, so a process of an older
//! version reads what it always did.

use std::borrow::Cow;

use confidant_display::parted;
use confidant_model::ModelError;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{bytes, id};
use crate::approval::ApprovalRequest;
use crate::audience::Audience;
use crate::error::{Error, StoreError, Tampering};
use crate::head::Lacks;
use crate::turn::{
    DataRequest, Ending, Enrichment, Final, MemoryState, Metadata, Outbound, Question, SafetyRecord,
};

/// What a gateway hears.
#[derive(Debug)]
pub(in crate::bus) enum Heard {
    /// A worker has heard it and has no room: it takes it as soon as it has, unless another is faster.
    Queued,
    /// Somebody has taken it.
    Accepted,
    /// It still runs.
    Alive,
    Event(Outbound),
    /// The turn has no answer, or none yet; and how harmful its conversation has been, where only the worker knows that.
    Unanswered(Box<Outbound>, SafetyRecord),
    /// The turn wants something of the person's device, under this number.
    Wants(u64, DataRequest),
    /// There are no more messages.
    Done,
}

impl Heard {
    /// What came of the turn, if that is what was said.
    pub(in crate::bus) fn into_event(self) -> Option<Outbound> {
        match self {
            Self::Event(event) => Some(event),
            Self::Unanswered(event, _) => Some(*event),
            _ => None,
        }
    }
}

/// A response as it was read.
#[derive(Debug)]
pub(in crate::bus) struct Response {
    pub(in crate::bus) request_id: String,
    /// Which call it answers; a plain one does not say.
    pub(in crate::bus) attempt: Option<String>,
    pub(in crate::bus) heard: Heard,
}

#[derive(Deserialize)]
struct ResponseForm {
    request_id: String,
    #[serde(default)]
    message_type: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(default)]
    attempt: Option<String>,
    /// The first system's first version: the answer, and how it went.
    #[serde(default)]
    response: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    error: Value,
}

/// An event as a response; none if the first system has no such message.
pub(in crate::bus) fn response(
    request_id: &str,
    attempt: Option<&str>,
    heard: &Heard,
) -> Option<Zeroizing<Vec<u8>>> {
    let (message_type, content, metadata) = said(heard, attempt.is_some())?;
    let mut response = json!({
        "request_id": request_id,
        "message_type": message_type,
        "content": content,
        "metadata": metadata,
    });
    if let Some(attempt) = attempt {
        response["attempt"] = json!(attempt);
    }
    Some(bytes(&response))
}

/// An event of a turn, for our own processes.
pub(in crate::bus) fn event(request_id: &str, event: &Outbound) -> Option<Zeroizing<Vec<u8>>> {
    let (message_type, content, metadata) = said_of(event, true)?;
    Some(bytes(&json!({
        "request_id": request_id,
        "message_type": message_type,
        "content": content,
        "metadata": metadata,
    })))
}

/// Reads such an event; none if it is not one.
pub(in crate::bus) fn read_event(json: &[u8]) -> Option<Outbound> {
    read_response(json)?.heard.into_event()
}

fn said(heard: &Heard, ours: bool) -> Option<(&'static str, Cow<'_, str>, Value)> {
    let only_ours = |word| ours.then(|| (word, Cow::Borrowed(""), Value::Object(Map::new())));
    match heard {
        Heard::Queued => only_ours("queued"),
        Heard::Accepted => only_ours("accepted"),
        Heard::Alive => only_ours("alive"),
        Heard::Done => only_ours("done"),
        Heard::Wants(number, data_request) => {
            let metadata = json!({ "number": number, "wish": data_request });
            ours.then_some(("wanted", Cow::Borrowed(""), metadata))
        }
        Heard::Event(event) => said_of(event, ours),
        Heard::Unanswered(event, safety) => {
            let (word, content, mut metadata) = said_of(event, ours)?;
            if ours {
                metadata[SAFETY] = json!(safety);
            }
            Some((word, content, metadata))
        }
    }
}

fn said_of(event: &Outbound, ours: bool) -> Option<(&'static str, Cow<'_, str>, Value)> {
    let nothing = || Value::Object(Map::new());
    Some(match event {
        Outbound::Progress { text } => ("progress", Cow::Borrowed(&**text), nothing()),
        Outbound::Final(answer) => {
            ("final_response", Cow::Borrowed(&*answer.content), json!(answer.metadata))
        }
        Outbound::Approval(request) => ("hitl_request", Cow::Borrowed(&*request.question), json!(request)),
        Outbound::Error(error) => ("error", Cow::Owned(error.to_string()), json!({ "code": error.code() })),
        Outbound::Delta { seq, text } if ours => ("delta", Cow::Borrowed(&**text), json!({ "seq": seq })),
        Outbound::SettingsWanted { names } if ours => {
            ("settings_wanted", Cow::Borrowed(""), json!({ "names": names }))
        }
        Outbound::Enriched(enrichment) if ours => ("enriched", Cow::Borrowed(""), json!(enrichment)),
        // Said as `Heard::Wants`, where it can be.
        Outbound::Delta { .. }
        | Outbound::SettingsWanted { .. }
        | Outbound::Wanted(_)
        | Outbound::Enriched(_) => return None,
    })
}

/// Reads a response; none if it is not one.
pub(in crate::bus) fn read_response(json: &[u8]) -> Option<Response> {
    let form: ResponseForm = serde_json::from_slice(json).ok()?;
    let ResponseForm { request_id, message_type, content, metadata, attempt, response, status, error } = form;
    let content = content.or(response).unwrap_or_default();
    let metadata = metadata.unwrap_or_default();
    // Only our own say which call they answer.
    let safety = attempt.as_ref().and_then(|_| metadata.get(SAFETY)).cloned();
    let well = error.is_null() && matches!(status.as_deref(), None | Some("success" | "ok" | "completed"));
    let word = message_type.unwrap_or_else(|| if well { "final_response" } else { "error" }.to_owned());
    let event = match word.as_str() {
        "queued" => return Some(Response { request_id, attempt, heard: Heard::Queued }),
        "accepted" => return Some(Response { request_id, attempt, heard: Heard::Accepted }),
        "alive" => return Some(Response { request_id, attempt, heard: Heard::Alive }),
        "done" => return Some(Response { request_id, attempt, heard: Heard::Done }),
        "wanted" => {
            let data_request = serde_json::from_value(metadata.get("wish")?.clone()).ok()?;
            let heard = Heard::Wants(metadata.get("number")?.as_u64()?, data_request);
            return Some(Response { request_id, attempt, heard });
        }
        "progress" => Outbound::Progress { text: Cow::Owned(content) },
        "delta" => Outbound::Delta { seq: metadata.get("seq")?.as_u64()?, text: content },
        "final_response" => {
            let metadata = Box::new(answer_metadata(metadata));
            Outbound::Final(Final { request_id: request_id.clone(), content, metadata })
        }
        "hitl_request" => match serde_json::from_value::<ApprovalRequest>(metadata.clone()) {
            Ok(request) => Outbound::Approval(Box::new(request)),
            Err(_) => Outbound::Final(foreign_question(&request_id, content, &metadata)),
        },
        "error" => {
            let code = metadata.get("code").and_then(Value::as_str).unwrap_or_default();
            Outbound::Error(coded(code, &content))
        }
        "settings_wanted" => {
            let names = serde_json::from_value(metadata.get("names")?.clone()).ok()?;
            Outbound::SettingsWanted { names }
        }
        "enriched" => Outbound::Enriched(Box::new(serde_json::from_value::<Enrichment>(metadata).ok()?)),
        _ => return None,
    };
    let safety = safety.and_then(|safety| serde_json::from_value(safety).ok());
    let heard = match (event, safety) {
        (event @ (Outbound::Error(_) | Outbound::Approval(_)), Some(safety)) => {
            Heard::Unanswered(Box::new(event), safety)
        }
        (event, _) => Heard::Event(event),
    };
    Some(Response { request_id, attempt, heard })
}

/// What is said besides of a turn without an answer.
const SAFETY: &str = "safety";

/// A question that a foreign worker asks in its own way, and keeps track of itself: the person's next message is the answer.
fn foreign_question(request_id: &str, content: String, said: &Value) -> Final {
    let question = match said.get("question").and_then(Value::as_str) {
        Some(question) if content.trim().is_empty() => question.to_owned(),
        _ => content,
    };
    let options = said.get("options").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let options: Vec<String> = options.iter().filter_map(option).take(MOST_OPTIONS).collect();
    let content = match options.as_slice() {
        [] => question.clone(),
        options => format!("{question}\n\nAnswer with one of: {}", options.join(", ")),
    };
    let timeout_seconds = said.get("timeout_seconds").and_then(Value::as_u64);
    let mut metadata = Box::new(Metadata::new(MemoryState::Off, Audience::Room));
    metadata.asks = Some(Box::new(Question { question, options, timeout_seconds }));
    Final { request_id: request_id.to_owned(), content, metadata }
}

/// An option: a word, a number, or something that has a word for people.
fn option(value: &Value) -> Option<String> {
    let names = ["label", "text", "title", "value", "id"];
    let text = id(value).or_else(|| names.into_iter().find_map(|name| id(value.get(name)?)))?;
    let line = crate::fence::one_line(&text);
    let short: String = line.chars().take(LONGEST_OPTION).collect();
    (!short.trim().is_empty()).then_some(short)
}

const MOST_OPTIONS: usize = 32;
const LONGEST_OPTION: usize = 200;

/// How a turn ended, for a bot on a plain bus that no longer waits for it.
pub(in crate::bus) fn late(request_id: &str, outcome: &Result<Ending, Error>) -> Zeroizing<Vec<u8>> {
    let (message_type, content, metadata) = match outcome {
        Ok(Ending::Answer(answer)) => ("final_response", answer.content.clone(), json!(answer.metadata)),
        Ok(Ending::Approval(request)) => ("hitl_request", request.question.clone(), json!(request)),
        Err(error) => ("error", error.to_string(), json!({ "code": error.code() })),
    };
    bytes(&json!({
        "request_id": request_id,
        "message_type": message_type,
        "content": content,
        "metadata": metadata,
    }))
}

/// How an answer came about, as far as it is said: a foreign worker has other things to say, and its own memory.
fn answer_metadata(value: Value) -> Metadata {
    serde_json::from_value(value).unwrap_or_else(|_| Metadata::new(MemoryState::Off, Audience::Room))
}

/// The error that a word in a session's log stands for.
pub(crate) fn error(word: &str) -> Error {
    match word {
        "interrupted" => Error::Model(ModelError::CutOff),
        code => coded(code, "the turn was refused; hint: look at the worker's log"),
    }
}

/// The error that a code stands for. A foreign worker's own words are not repeated: they may quote anything.
fn coded(code: &str, text: &str) -> Error {
    let (what, hint) = parted(text).unwrap_or((text, "look at the worker's log"));
    match code {
        "invalid_request" | "invalid_session_id" => {
            Error::Invalid { what: what.to_owned(), hint: hint.to_owned() }
        }
        "request_id_reused" => Error::RequestReused,
        "answer_gone" => Error::AnswerGone,
        "busy" => Error::Busy,
        "erased" => Error::Erased,
        "awaits_approval" => Error::AwaitsApproval,
        "no_such_approval" => Error::NoSuchApproval,
        "already_decided" => Error::AlreadyDecided("elsewhere"),
        "approval_expired" => Error::ApprovalExpired,
        "not_your_approval" => Error::NotYourApproval,
        "cancelled" => Error::Cancelled,
        "interrupted" => Error::Interrupted,
        "no_worker" => Error::NoWorker,
        "bus_unreachable" => Error::Bus(StoreError::Unreachable("elsewhere".to_owned())),
        "stopping" => Error::Stopping,
        "storage_full" => Error::Store(StoreError::Full),
        "storage_failed" => Error::Store(StoreError::Failed("a worker's store".to_owned())),
        "model_failed" => Error::Model(model_error(text)),
        "" => Error::Model(ModelError::Elsewhere),
        _ => {
            let lacks = Lacks::ALL.into_iter().find(|lacks| lacks.code() == code);
            let tampering = Tampering::ALL.into_iter().find(|tampering| tampering.name() == code);
            let tampered = tampering.map_or(Error::Internal, Error::Tampered);
            lacks.map_or(tampered, Error::History)
        }
    }
}

fn model_error(text: &str) -> ModelError {
    let known = [
        ModelError::Unreachable,
        ModelError::Unauthorised,
        ModelError::RateLimited,
        ModelError::TimedOut,
        ModelError::Malformed,
        ModelError::CutOff,
        ModelError::NoForms,
        ModelError::NoEmbeddings,
        ModelError::AttachmentRefused,
        ModelError::Elsewhere,
    ];
    let status = text.split_whitespace().find_map(|word| word.trim_end_matches(';').parse().ok());
    known
        .into_iter()
        .find(|error| error.to_string() == text)
        .unwrap_or_else(|| status.map_or(ModelError::Unreachable, ModelError::Refused))
}
