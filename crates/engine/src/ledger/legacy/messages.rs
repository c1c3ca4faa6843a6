//! What a checkpoint says, in the ways that it was written: as objects, as the library's own objects, and as the text that
//! Python prints of a message, which is what the first system's own saver left (`json.dumps(checkpoint, default=str)`).

use serde::Deserialize;

use super::printed;
use crate::ledger::entry::{Reply, ReplyFrom};

/// A question and what was said to it.
pub(crate) type Exchange = (String, Vec<Reply>);

/// What of a checkpoint becomes a session.
pub(crate) struct Conversation {
    pub(crate) exchanges: Vec<Exchange>,
    /// Messages that are in none of them, as a whole or in part: a question without an answer, words before the first
    /// question, a speaker whom we do not know, a picture, what a tool was called with. The system's own words aside: they
    /// are the agent's instructions and come anew with every turn.
    pub(crate) left_out: u64,
}

/// What a checkpoint holds: at the top, or where the first system's library puts it.
#[derive(Deserialize)]
struct Checkpoint {
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    channel_values: Channels,
}

#[derive(Default, Deserialize)]
struct Channels {
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Printed(String),
    Written(Written),
}

#[derive(Deserialize)]
struct Written {
    #[serde(alias = "role", rename = "type", default)]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default, alias = "kwargs")]
    data: Option<Inner>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

/// A call of a tool, in the library's form or in that of OpenAI.
#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    args: serde_json::Value,
    #[serde(default)]
    function: serde_json::Value,
}

impl ToolCall {
    /// Whether it says more than the name of a tool.
    fn has_arguments(&self) -> bool {
        let arguments = [&self.args, &self.function["arguments"]];
        arguments.iter().any(|value| !value.is_null() && **value != serde_json::json!({}) && **value != "{}")
    }
}

/// The same one level further in.
#[derive(Deserialize)]
struct Inner {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    name: Option<String>,
    content: Content,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Part {
    Text(String),
    Piece {
        #[serde(default)]
        text: Option<String>,
    },
}

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Human,
    Ai,
    /// A tool, by its name.
    Tool(String),
    /// The agent's instructions.
    System,
    /// Somebody whom we do not know.
    Other,
    /// It is not said; the order tells.
    Unsaid,
}

impl Speaker {
    pub(super) fn named(word: &str, name: Option<String>) -> Self {
        match word {
            "human" | "user" | "HumanMessage" | "HumanMessageChunk" => Self::Human,
            "ai" | "assistant" | "AIMessage" | "AIMessageChunk" => Self::Ai,
            "tool" | "function" | "ToolMessage" | "FunctionMessage" => {
                Self::Tool(name.unwrap_or_else(|| "tool".to_owned()))
            }
            "system" | "developer" | "SystemMessage" | "SystemMessageChunk" => Self::System,
            _ => Self::Other,
        }
    }
}

/// One thing that was said.
pub(super) struct Said {
    pub(super) by: Speaker,
    pub(super) text: String,
    /// Whether the text is all of it.
    pub(super) whole: bool,
}

impl Message {
    /// `None` for what says nothing that we understand.
    fn said(self) -> Option<Said> {
        match self {
            Self::Printed(text) => printed::message(&text),
            Self::Written(Written { kind, name, content, data, mut tool_calls }) => {
                let (inner_kind, inner_name, inner) = match data {
                    Some(Inner { kind, name, content, tool_calls: calls }) => {
                        tool_calls.extend(calls);
                        (kind, name, Some(content))
                    }
                    None => (None, None, None),
                };
                let by = Speaker::named(&inner_kind.unwrap_or(kind), name.or(inner_name));
                let called = tool_calls.iter().any(ToolCall::has_arguments);
                Some(match content.or(inner).map(Content::text) {
                    Some((text, whole)) => Said { by, text, whole: whole && !called },
                    None => Said { by: Speaker::Other, text: String::new(), whole: !called },
                })
            }
        }
    }
}

impl Content {
    /// The text, and whether that is all there is.
    fn text(self) -> (String, bool) {
        match self {
            Self::Text(text) => (text, true),
            Self::Parts(parts) => {
                let count = parts.len();
                let texts = parts.into_iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text),
                    Part::Piece { text } => text,
                });
                let texts: Vec<String> = texts.collect();
                (texts.join("\n"), texts.len() == count)
            }
        }
    }
}

/// Questions with what was said to them; `None` if the checkpoint is not understood. What was never answered, and what the
/// system itself said, is left out.
pub(crate) fn conversation(json: &[u8], by: &str) -> Option<Conversation> {
    if json.is_empty() {
        return Some(Conversation { exchanges: Vec::new(), left_out: 0 });
    }
    let checkpoint: Checkpoint = serde_json::from_slice(json).ok()?;
    let messages = checkpoint.messages.into_iter().chain(checkpoint.channel_values.messages);
    let mut said = messages.map(Message::said).collect::<Option<Vec<Said>>>()?;
    in_order(&mut said);
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut current: Option<Exchange> = None;
    let mut left_out = 0;
    let mut keep = |done: Option<Exchange>, left_out: &mut u64| match done {
        Some(done) if is_answered(&done) => exchanges.push(done),
        Some((_, replies)) => *left_out += 1 + replies.len() as u64,
        None => {}
    };
    for Said { by: speaker, text, whole } in said {
        left_out += u64::from(!whole && speaker != Speaker::System);
        match (speaker, &mut current) {
            (Speaker::Human, Some((question, replies))) if replies.is_empty() => {
                *question = format!("{question}\n{text}");
            }
            (Speaker::Human, _) => keep(current.replace((text, Vec::new())), &mut left_out),
            // Calls of tools without a word.
            (Speaker::Ai | Speaker::Other, _) if text.is_empty() => {}
            (Speaker::Ai, Some((_, replies))) => match replies.last_mut() {
                Some(last) if last.from == ReplyFrom::Ai => {
                    last.content = format!("{}\n{text}", last.content)
                }
                _ => replies.push(Reply::ai(text, None, by.to_owned())),
            },
            (Speaker::Tool(name), Some((_, replies))) => {
                replies.push(Reply { from: ReplyFrom::Tool, name, ..Reply::ai(text, None, String::new()) });
            }
            // Something that is here in part was counted above.
            (Speaker::Ai | Speaker::Tool(_), None) | (Speaker::Other, _) => left_out += u64::from(whole),
            (Speaker::System | Speaker::Unsaid, _) => {}
        }
    }
    keep(current, &mut left_out);
    Some(Conversation { exchanges, left_out })
}

fn is_answered((_, replies): &Exchange) -> bool {
    replies.iter().any(|reply| reply.from == ReplyFrom::Ai)
}

/// Says who spoke where that is not said: the person, if the agent's own messages tell what they are; else they took turns.
fn in_order(said: &mut [Said]) {
    let told = said.iter().any(|one| one.by == Speaker::Ai);
    let mut persons_turn = true;
    for one in said {
        if one.by == Speaker::Unsaid {
            one.by = if told || persons_turn { Speaker::Human } else { Speaker::Ai };
        }
        persons_turn = one.by != Speaker::Human;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &serde_json::Value) -> Option<Vec<(String, Vec<String>)>> {
        let Conversation { exchanges, .. } = conversation(json.to_string().as_bytes(), "import")?;
        let told = |reply: &Reply| match reply.from {
            ReplyFrom::Ai => reply.content.clone(),
            _ => format!("[{}] {}", reply.name, reply.content),
        };
        Some(exchanges.into_iter().map(|(asked, said)| (asked, said.iter().map(told).collect())).collect())
    }

    fn pair(question: &str, answers: &[&str]) -> (String, Vec<String>) {
        (question.to_owned(), answers.iter().map(|&answer| answer.to_owned()).collect())
    }

    #[test]
    fn messages_are_paired_however_they_were_written() {
        let seed = serde_json::json!({"messages": [
            {"type": "system", "content": "room"},
            {"type": "human", "content": "Hello"},
            {"type": "ai", "content": "Hi"},
            {"type": "ai", "content": "there"},
            {"type": "human", "content": "One"},
            {"type": "human", "content": "two"},
            {"type": "ai", "content": "Three"},
            {"type": "human", "content": "never answered"},
        ]});
        assert_eq!(read(&seed), Some(vec![pair("Hello", &["Hi\nthere"]), pair("One\ntwo", &["Three"])]));
        let library = serde_json::json!({"v": 1, "channel_values": {"messages": [
            {"type": "human", "data": {"content": "a"}}, {"role": "assistant", "content": "b"},
            {"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {"type": "human", "content": "c"}},
            {"role": "assistant", "content": null}, {"role": "assistant", "content": ""},
            {"type": "tool", "name": "clock", "content": "noon"},
            {"role": "assistant", "content": [{"type": "text", "text": "It is"}, {"type": "image"}, "noon."]},
        ]}});
        assert_eq!(
            read(&library),
            Some(vec![pair("a", &["b"]), pair("c", &["[clock] noon", "It is\nnoon."])])
        );
        assert_eq!(read(&serde_json::json!({"v": 1})), Some(vec![]));
        assert!(
            conversation(b"", "import").is_some_and(|none| none.exchanges.is_empty() && none.left_out == 0)
        );
        for odd in ["[1]", r#"{"messages":[7]}"#, r#"{"messages":["who knows"]}"#] {
            assert!(conversation(odd.as_bytes(), "import").is_none(), "{odd}");
        }
    }

    #[test]
    fn what_was_never_answered_is_known_to_be_left_out() {
        let (human, ai, system) = (["human", "q"], ["ai", "a"], ["system", "s"]);
        for (said, left_out) in [
            (vec![human, ai], 0),
            (vec![system, human, ai], 0),
            (vec![human, ai, human], 1),
            (vec![ai, human, ai], 1),
            (vec![human, ["tool", "t"], human, ai], 2),
            (vec![human, ["moderator", "m"], ai], 1),
            (vec![human], 1),
            (vec![], 0),
        ] {
            let messages: Vec<_> =
                said.iter().map(|[by, text]| serde_json::json!({"type": by, "content": text})).collect();
            let json = serde_json::json!({ "messages": messages }).to_string();
            assert_eq!(conversation(json.as_bytes(), "import").unwrap().left_out, left_out, "{said:?}");
        }
    }

    #[test]
    fn what_is_here_in_part_only_is_known_to_be_left_out() {
        let left_out = |messages: serde_json::Value| {
            let json = serde_json::json!({ "messages": messages }).to_string();
            conversation(json.as_bytes(), "import").expect("it is understood").left_out
        };
        let picture =
            serde_json::json!([{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {}}]);
        let call = |args: serde_json::Value| serde_json::json!([{"name": "t", "args": args, "id": "c"}]);
        let answered = |first: serde_json::Value| {
            left_out(
                serde_json::json!([{"role": "user", "content": "q"}, first, {"role": "assistant", "content": "a"}]),
            )
        };
        assert_eq!(
            answered(
                serde_json::json!({"role": "assistant", "content": "", "tool_calls": call(serde_json::json!({"a": 1}))})
            ),
            1
        );
        assert_eq!(
            answered(
                serde_json::json!({"role": "assistant", "content": "", "tool_calls": call(serde_json::json!({}))})
            ),
            0
        );
        let openai = serde_json::json!([{"id": "c", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}}]);
        assert_eq!(
            answered(serde_json::json!({"role": "assistant", "content": null, "tool_calls": openai})),
            1
        );
        assert_eq!(
            left_out(
                serde_json::json!([{"role": "user", "content": picture}, {"role": "assistant", "content": "a"}])
            ),
            1
        );
        let printed = "content='' additional_kwargs={} tool_calls=[{'name': 't', 'args': {'a': 1}, 'id': 'c1', 'type': 'tool_call'}]";
        assert_eq!(
            left_out(
                serde_json::json!([{"role": "user", "content": "q"}, printed, {"role": "assistant", "content": "a"}])
            ),
            1
        );
        let pictured = "content=[{'type': 'text', 'text': 'q'}, {'type': 'image_url', 'image_url': {'url': 'x'}}] additional_kwargs={}";
        assert_eq!(left_out(serde_json::json!([pictured, {"role": "assistant", "content": "a"}])), 1);
    }

    /// As `str()` gives them: of now, and of the library's first versions, which tell nobody's name.
    #[test]
    fn messages_that_python_printed_are_read() {
        let now = serde_json::json!({"channel_values": {"messages": [
            r#"content='Hello \'q\' "d"\nnew é \x07 \\n' additional_kwargs={} response_metadata={}"#,
            "content='' additional_kwargs={} response_metadata={} tool_calls=[{'name': 't', 'args': {'a': 1}, 'id': 'c1', 'type': 'tool_call'}] invalid_tool_calls=[]",
            "content='42' name='t' tool_call_id='c1'",
            "content=\"It's 42\" additional_kwargs={} response_metadata={} tool_calls=[] invalid_tool_calls=[]",
            "content=[{'type': 'text', 'text': 'one'}, {'type': 'image_url', 'image_url': {'url': 'x'}}, 'two'] additional_kwargs={} response_metadata={} id='x'",
            "AIMessage(content='done', additional_kwargs={}, response_metadata={}, tool_calls=[], invalid_tool_calls=[])",
        ]}});
        let expected = vec![
            pair("Hello 'q' \"d\"\nnew é \u{7} \\n", &["[t] 42", "It's 42"]),
            pair("one\ntwo", &["done"]),
        ];
        assert_eq!(read(&now), Some(expected));
        let before = serde_json::json!({"messages": [
            "content='a' additional_kwargs={} example=False",
            "content='b' additional_kwargs={} example=False",
            "content='c tool_call_id=1' additional_kwargs={} example=False",
            "content='d' additional_kwargs={} example=False",
        ]});
        assert_eq!(read(&before), Some(vec![pair("a", &["b"]), pair("c tool_call_id=1", &["d"])]));
    }
}
