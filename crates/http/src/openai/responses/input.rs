//! The input of a response, by what it is for.
//!
//! The last words of the user are the query. What stands before them was said before; what comes after them are calls of the client's own
//! tools with their results, and belongs to the same turn. Items that were listed or answered here have names of ours, which say where
//! they belong.

use confidant_display::debug_without_content;
use confidant_engine::model::Attachment;
use confidant_engine::turn::{ClientCall, ClientResult, ClientStep, ListedWhat, may_be_the_clients};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::openai::attached::{Attached, Refusal, file, file_at, image};
use crate::openai::ids::ItemId;
use crate::openai::messages::LONGEST_ID;
use crate::openai::request::bad;
use crate::openai::tools::arguments_read;

/// What a response is made for: a text, or items.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ResponseInput)]
pub(in crate::openai) enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// An item: a message, a call of one of the client's tools, or its result.
#[derive(Deserialize, ToSchema)]
pub(in crate::openai) struct InputItem {
    /// `message` (also if it is missing), `function_call`, `function_call_output`, `item_reference` or `reasoning`, which is ignored.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The item's name, if it was answered or listed here.
    id: Option<String>,
    /// With a message: `user`, `assistant`, `system` or `developer`.
    role: Option<String>,
    /// With a message: a text, or parts. Images and files are for the model only if they are in the user's last message; of earlier ones
    /// it hears that there were some.
    content: Option<InputContent>,
    /// With a call or its result: which call it is.
    call_id: Option<String>,
    /// With a call: the tool.
    name: Option<String>,
    /// With a call: what it is called with, as JSON.
    arguments: Option<String>,
    /// With a result: a text, or parts of type `input_text`.
    output: Option<InputContent>,
}

/// A text, or parts.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub(in crate::openai) enum InputContent {
    Text(String),
    Parts(Vec<InputPart>),
}

/// A part of an item.
#[derive(Deserialize, ToSchema)]
pub(in crate::openai) struct InputPart {
    /// `input_text` or `output_text`; in messages of the user also `input_image` and `input_file`, as far as the model takes them.
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    /// With `input_image`: a data URL. OpenAI's own server also takes https addresses; nothing here fetches them.
    image_url: Option<String>,
    /// With `input_file`: a data URL, or base64 with a name that says what it is.
    file_data: Option<String>,
    filename: Option<String>,
    /// With `input_file`: an https address, if the model takes those.
    file_url: Option<String>,
}

/// An item that was read.
pub(in crate::openai) struct Read {
    /// Its name, if it is one of ours.
    pub(in crate::openai) id: Option<ItemId>,
    pub(in crate::openai) what: What,
    /// What came with it.
    pub(in crate::openai) attachments: Vec<Attachment>,
}

/// What an item is.
pub(in crate::openai) enum What {
    /// Instructions for this response.
    Operator(String),
    Listed(ListedWhat),
    /// Only a name.
    Reference,
}

/// Items by what they are for.
#[derive(Default)]
pub(super) struct Spoken {
    pub(super) instructions: Vec<String>,
    /// What was said before, with the names that are ours.
    pub(super) listed: Vec<(Option<ItemId>, ListedWhat)>,
    /// Calls since the query, with what they gave.
    pub(super) steps: Vec<ClientStep>,
    /// Nothing if only results were sent.
    pub(super) query: String,
    /// What came with it.
    pub(super) attachments: Vec<Attachment>,
    /// The last item that has a name of ours.
    pub(super) newest: Option<ItemId>,
}

impl Spoken {
    pub(super) fn of(input: Input) -> Result<Self, ApiError> {
        let items = match input {
            Input::Text(query) => return Ok(Self { query, ..Self::default() }),
            Input::Items(items) => items,
        };
        let mut spoken = Self::default();
        let mut said: Vec<(Option<ItemId>, ListedWhat)> = Vec::new();
        let mut sent: Vec<Vec<Attachment>> = Vec::new();
        for Read { id, what, attachments } in read(items, "input")? {
            spoken.newest = id.clone().or(spoken.newest);
            match what {
                What::Operator(text) => spoken.instructions.push(text),
                What::Listed(what) => {
                    said.push((id, what));
                    sent.push(attachments);
                }
                What::Reference => {}
            }
        }
        if !matches!(said.last(), Some((_, ListedWhat::Query(_) | ListedWhat::Result(_)))) {
            let message = "`input` does not end with a message of the user or the result of a call";
            return Err(bad("input", message, "end with a message from the user, or the result of a tool"));
        }
        let is_query = |what: &ListedWhat| matches!(what, ListedWhat::Query(_));
        let since = match said.iter().rposition(|(_, what)| is_query(what)) {
            Some(last) => {
                // Several at once are one question; one that has a name of ours was asked before.
                let is_new = |(id, what): &(Option<ItemId>, ListedWhat)| id.is_none() && is_query(what);
                let before = said[..last].iter().rev().take_while(|item| is_new(item)).count();
                spoken.attachments = sent.drain(last - before..=last).flatten().collect();
                let since = said.split_off(last + 1);
                let asked = said.split_off(last - before);
                let texts = asked.into_iter().filter_map(|(_, what)| match what {
                    ListedWhat::Query(text) => Some(text),
                    _ => None,
                });
                spoken.query = texts.collect::<Vec<_>>().join("\n\n");
                since
            }
            None => std::mem::take(&mut said),
        };
        spoken.listed = said;
        spoken.steps = steps(since.into_iter().map(|(_, what)| what))?;
        Ok(spoken)
    }
}

/// Calls with their results, step by step.
fn steps(since: impl Iterator<Item = ListedWhat>) -> Result<Vec<ClientStep>, ApiError> {
    let hint = "send one `function_call_output` for each call, behind the calls";
    let (mut steps, mut said): (Vec<ClientStep>, Vec<String>) = (Vec::new(), Vec::new());
    for what in since {
        match what {
            ListedWhat::Query(text) | ListedWhat::Said(text) => said.push(text),
            ListedWhat::Call(call) => {
                let text = std::mem::take(&mut said).join("\n\n");
                let is_open = |step: &&mut ClientStep| step.results.is_empty() && !step.calls.is_empty();
                match steps.last_mut().filter(is_open) {
                    Some(step) if text.is_empty() => step.calls.push(call),
                    _ => steps.push(ClientStep { text, calls: vec![call], results: Vec::new() }),
                }
            }
            ListedWhat::Result(result) => {
                let is_its = |step: &ClientStep| step.calls.iter().any(|call| call.id == result.id);
                let at = steps.iter().rposition(is_its).or_else(|| {
                    // The call is known here.
                    if steps.is_empty() {
                        steps.push(ClientStep::default());
                    }
                    steps.iter().rposition(|step| step.calls.is_empty())
                });
                let step = at.and_then(|at| steps.get_mut(at));
                match step.filter(|step| step.results.iter().all(|known| known.id != result.id)) {
                    Some(step) => step.results.push(result),
                    None => {
                        let message = "a result in `input` names none of the calls before it";
                        return Err(bad("input", message, hint));
                    }
                }
            }
        }
    }
    let is_whole = |step: &ClientStep| step.calls.is_empty() || step.results.len() == step.calls.len();
    if !steps.iter().all(is_whole) {
        return Err(bad("input", "a call in `input` has no result", hint));
    }
    Ok(steps)
}

/// Reads items; names the first that cannot be.
pub(in crate::openai) fn read(items: Vec<InputItem>, param: &'static str) -> Result<Vec<Read>, ApiError> {
    let read = items.into_iter().enumerate().filter_map(|(at, item)| {
        let id = item.id.as_deref().and_then(ItemId::parse);
        let mut attachments = Vec::new();
        let what = item.what(&Position { param, at }, &mut attachments).transpose()?;
        Some(what.map(|what| Read { id, what, attachments }))
    });
    read.collect()
}

/// Where an item stands, for errors.
struct Position {
    param: &'static str,
    at: usize,
}

impl Position {
    fn refused(&self, what: &str, hint: &'static str) -> ApiError {
        let Self { param, at } = self;
        bad(param, format!("`{param}[{at}]` {what}"), hint)
    }
}

impl InputItem {
    /// Nothing where it says nothing here.
    fn what(self, place: &Position, attachments: &mut Vec<Attachment>) -> Result<Option<What>, ApiError> {
        match self.kind.as_deref().unwrap_or("message") {
            "message" => self.message(place, attachments).map(Some),
            "function_call" => self.call(place).map(Some),
            "function_call_output" => self.result(place).map(Some),
            "item_reference" => Ok(Some(What::Reference)),
            "reasoning" => Ok(None),
            _ => {
                let hint = "send messages, and calls of functions with their results";
                Err(place.refused("is of a type that is not supported here", hint))
            }
        }
    }

    fn message(self, place: &Position, attachments: &mut Vec<Attachment>) -> Result<What, ApiError> {
        let Some(content) = self.content else {
            return Err(place.refused("has no `content`", "give it text"));
        };
        Ok(match self.role.as_deref() {
            Some("system" | "developer") => What::Operator(content.text(place)?),
            Some("user") => {
                let (text, sent) = content.read(place)?;
                *attachments = sent;
                What::Listed(ListedWhat::Query(text))
            }
            Some("assistant") => What::Listed(ListedWhat::Said(content.text(place)?)),
            _ => {
                let hint = "use user, assistant, system or developer";
                return Err(place.refused("has no `role`, or one that is not supported here", hint));
            }
        })
    }

    fn call(self, place: &Position) -> Result<What, ApiError> {
        let name = self.name.filter(|name| may_be_the_clients(name));
        match (fit(self.call_id), name, self.arguments) {
            (Some(id), Some(name), Some(arguments)) => {
                let arguments = arguments_read(arguments);
                Ok(What::Listed(ListedWhat::Call(ClientCall { id, name, arguments })))
            }
            _ => Err(place.refused("is not the call of a function", "send calls as they were received")),
        }
    }

    fn result(self, place: &Position) -> Result<What, ApiError> {
        match (fit(self.call_id), self.output) {
            (Some(id), Some(output)) => {
                let text = output.text(place)?;
                Ok(What::Listed(ListedWhat::Result(ClientResult { id, text })))
            }
            _ => Err(place.refused(
                "has no `call_id` or no `output`",
                "say which call this is the result of, and what it gave",
            )),
        }
    }
}

fn fit(id: Option<String>) -> Option<String> {
    id.filter(|id| (1..=LONGEST_ID).contains(&id.len()))
}

impl InputContent {
    fn text(self, place: &Position) -> Result<String, ApiError> {
        let (text, attachments) = self.read(place)?;
        if attachments.is_empty() {
            return Ok(text);
        }
        let hint = "send it in a message of role user";
        Err(place.refused("has an image or a file, but is not a message of the user", hint))
    }

    /// The text, with a line for each image and file, and these.
    fn read(self, place: &Position) -> Result<(String, Vec<Attachment>), ApiError> {
        let parts = match self {
            Self::Text(text) => return Ok((text, Vec::new())),
            Self::Parts(parts) => parts,
        };
        let (mut texts, mut attachments) = (Vec::with_capacity(parts.len()), Vec::new());
        for part in parts {
            let InputPart { kind, text, image_url, file_data, filename, file_url } = part;
            let sent = match (kind.as_str(), text) {
                ("input_text" | "output_text" | "text", Some(text)) => {
                    texts.push(text);
                    continue;
                }
                ("input_image", _) => image_url.as_deref().map_or(Err(NOT_HERE), image),
                ("input_file", _) => match (file_data, file_url) {
                    (Some(data), _) => file(&data, filename.as_deref()),
                    (None, Some(url)) => file_at(&url),
                    (None, None) => Err(NOT_HERE),
                },
                _ => Err(NO_PART),
            };
            let Attached { attachment, line } = sent.map_err(|(what, hint)| place.refused(what, hint))?;
            texts.push(line);
            attachments.push(attachment);
        }
        Ok((texts.join("\n"), attachments))
    }
}

const NOT_HERE: Refusal =
    ("has an image or a file by an id, or none", "send it as a data URL: none are stored here");
const NO_PART: Refusal = (
    "has a part that is not supported here",
    "send parts of type input_text with a `text`, input_image or input_file",
);

debug_without_content!(Input, InputItem);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spoken(input: Value) -> Result<Spoken, ApiError> {
        Spoken::of(serde_json::from_value(input).unwrap())
    }

    fn user(text: &str) -> Value {
        json!({ "role": "user", "content": text })
    }

    fn call(id: &str) -> Value {
        json!({ "type": "function_call", "call_id": id, "name": "get", "arguments": "{}" })
    }

    fn result(id: &str) -> Value {
        json!({ "type": "function_call_output", "call_id": id, "output": "rain" })
    }

    #[test]
    fn items_are_told_apart_by_what_they_are_for() {
        let assistant = json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] });
        let developer = json!({ "role": "developer", "content": "be kind" });
        let reasoning = json!({ "type": "reasoning", "summary": [] });
        let input = json!([user("one"), assistant, reasoning, user("two"), developer, user("three")]);
        let spoken = spoken(input).unwrap();
        assert_eq!((spoken.query.as_str(), spoken.listed.len()), ("two\n\nthree", 2));
        assert_eq!((spoken.instructions, spoken.steps.len()), (vec!["be kind".to_owned()], 0));
        assert!(spoken.newest.is_none());
    }

    #[test]
    fn calls_and_results_behind_the_query_are_steps() {
        let whole = spoken(json!([
            user("q"),
            call("a"),
            call("b"),
            result("b"),
            result("a"),
            call("c"),
            result("c")
        ]));
        let shape = |spoken: &Spoken| {
            spoken.steps.iter().map(|step| (step.calls.len(), step.results.len())).collect::<Vec<_>>()
        };
        assert_eq!(shape(&whole.unwrap()), [(2, 2), (1, 1)]);
        let alone = spoken(json!([result("a"), result("b")])).unwrap();
        assert_eq!((shape(&alone), alone.query.as_str()), (vec![(0, 2)], ""));
        for input in [
            json!([]),
            json!([user("q"), call("a")]),
            json!([user("q"), call("a"), call("b"), result("a")]),
            json!([user("q"), call("a"), result("x")]),
            json!([result("a"), result("a")]),
            json!([user("q"), { "role": "assistant", "content": "a" }]),
            json!([{ "role": "wizard", "content": "canary" }]),
            json!([{ "type": "computer_call" }]),
            json!([{ "role": "user", "content": [{ "type": "input_image" }] }]),
            json!([{ "role": "user", "content": [{ "type": "input_file", "file_id": "canary" }] }]),
            json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": "canary" }] }]),
            json!([{ "role": "assistant", "content": [{ "type": "input_image", "image_url": PIXEL }] }, user("q")]),
        ] {
            let error = spoken(input.clone()).err().unwrap_or_else(|| panic!("{input}"));
            assert_eq!(error.param.as_deref(), Some("input"), "{input}");
            assert!(!format!("{error:?}").contains("canary"));
        }
    }

    const PIXEL: &str = "data:image/png;base64,aGVsbG8=";

    #[test]
    fn only_what_came_with_the_query_is_for_the_model() {
        let with = |text: &str| {
            let image = json!({ "type": "input_image", "image_url": PIXEL, "detail": "low" });
            json!({ "role": "user", "content": [{ "type": "input_text", "text": text }, image] })
        };
        let answer = json!({ "role": "assistant", "content": "a" });
        let spoken = spoken(json!([with("one"), answer, with("two"), with("three")])).unwrap();
        let line = "[image: image/png, 5 bytes]";
        assert_eq!(spoken.query, format!("two\n{line}\n\nthree\n{line}"));
        assert_eq!(spoken.attachments.len(), 2);
        let ListedWhat::Query(before) = &spoken.listed[0].1 else { panic!("no query") };
        assert_eq!(*before, format!("one\n{line}"));
    }

    #[test]
    fn what_was_asked_before_under_a_name_of_ours_is_not_asked_again() {
        let id = format!("msg_{}0000", "0".repeat(56));
        let known = json!({ "id": id, "type": "message", "role": "user", "content": "one" });
        let spoken = spoken(json!([known, user("two")])).unwrap();
        assert_eq!((spoken.query.as_str(), spoken.listed.len()), ("two", 1));
        assert_eq!(spoken.newest.unwrap().to_string(), id);
    }
}
