//! An event of a room's timeline, as much of it as matters here. Reads any JSON without failing: what is not as it should be
//! is nothing that was said.

use serde_json::Value;

/// An event.
#[derive(Clone, PartialEq)]
pub(crate) struct Heard {
    pub(crate) id: String,
    pub(crate) sender: String,
    /// When, in milliseconds, as its server says.
    pub(crate) at: i64,
    pub(crate) what: What,
}

/// What kind of event it is.
#[derive(Clone, PartialEq)]
pub(crate) enum What {
    /// Something was said.
    Message(Message),
    /// Something that was said is now said otherwise.
    Edit { target: String, message: Message },
    /// Something that was said is gone.
    Redaction { target: String },
    /// Somebody put a sign on something that was said.
    Reaction { target: String, sign: String },
    /// Somebody came, went, or was invited.
    Member { user: String, membership: String, before: Option<String> },
    /// Who may read what is said from here on.
    Visibility { now: String, before: Option<String> },
    /// Anything else, and what was taken back.
    Other,
}

/// Something that was said.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Message {
    pub(crate) kind: String,
    pub(crate) text: String,
    pub(crate) html: Option<String>,
    /// Who is meant, if the sender's client says so.
    pub(crate) mentions: Vec<String>,
    /// What it answers.
    pub(crate) reply_to: Option<String>,
    /// The first event of the thread that it is in.
    pub(crate) thread: Option<String>,
    /// What kind of message of ours it is, if it is one.
    pub(crate) ours: Option<String>,
}

impl Heard {
    /// Reads an event; none if it has no id or no sender.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(json).ok()?;
        let text = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        let (id, sender, kind) = (text("event_id")?, text("sender")?, text("type")?);
        let at = event.get("origin_server_ts").and_then(Value::as_i64).unwrap_or(0);
        let content = event.get("content").unwrap_or(&Value::Null);
        let before = event.pointer("/unsigned/prev_content").unwrap_or(&Value::Null);
        let string = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let state_key = text("state_key");
        let what = match (kind.as_str(), state_key) {
            ("m.room.message", None) => message_or_edit(content),
            ("m.reaction", None) => reaction(content),
            ("m.room.redaction", None) => {
                let target = text("redacts").or_else(|| string(content, "redacts"));
                target.map_or(What::Other, |target| What::Redaction { target })
            }
            ("m.room.member", Some(user)) => match string(content, "membership") {
                Some(membership) => What::Member { user, membership, before: string(before, "membership") },
                None => What::Other,
            },
            ("m.room.history_visibility", Some(_)) => match string(content, "history_visibility") {
                Some(now) => What::Visibility { now, before: string(before, "history_visibility") },
                None => What::Other,
            },
            _ => What::Other,
        };
        Some(Self { id, sender, at, what })
    }

    /// Whether somebody's words are in it.
    pub(crate) fn is_said(&self) -> bool {
        matches!(self.what, What::Message(_) | What::Edit { .. })
    }
}

/// Whether an event is what is left of one that somebody has removed.
pub(crate) fn is_taken_back(json: &str) -> bool {
    let Ok(event) = serde_json::from_str::<Value>(json) else { return false };
    let is_empty = event.get("content").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    is_empty || event.pointer("/unsigned/redacted_because").is_some()
}

fn message_or_edit(content: &Value) -> What {
    let relation = content.get("m.relates_to").unwrap_or(&Value::Null);
    let rel_type = relation.get("rel_type").and_then(Value::as_str);
    let target = relation.get("event_id").and_then(Value::as_str).map(str::to_owned);
    match (rel_type, target) {
        (Some("m.replace"), Some(target)) => match content.get("m.new_content").and_then(message) {
            Some(message) => What::Edit { target, message },
            None => What::Other,
        },
        (rel_type, target) => match message(content) {
            Some(mut said) => {
                said.thread = target.filter(|_| rel_type == Some("m.thread"));
                // In a thread, clients without threads see a reply to the last message before; nobody answered that.
                let fallback = said.thread.is_some()
                    && relation.get("is_falling_back").and_then(Value::as_bool).unwrap_or(false);
                let reply = relation.pointer("/m.in_reply_to/event_id").and_then(Value::as_str);
                said.reply_to = reply.filter(|_| !fallback).map(str::to_owned);
                if reply.is_some() {
                    without_quote(&mut said.text);
                }
                What::Message(said)
            }
            None => What::Other,
        },
    }
}

fn reaction(content: &Value) -> What {
    let relation = content.get("m.relates_to").unwrap_or(&Value::Null);
    let text = |name: &str| relation.get(name).and_then(Value::as_str);
    match (text("rel_type"), text("event_id"), text("key")) {
        (Some("m.annotation"), Some(target), Some(sign)) => {
            What::Reaction { target: target.to_owned(), sign: sign.to_owned() }
        }
        _ => What::Other,
    }
}

fn message(content: &Value) -> Option<Message> {
    let string = |name: &str| content.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = string("msgtype")?;
    let body = string("body").unwrap_or_default();
    let is_text = matches!(kind.as_str(), "m.text" | "m.notice" | "m.emote");
    // The body of a file is its name, unless it has a name beside it: then it is what was said with it.
    let named = string("filename").is_some_and(|name| name != body);
    let text = if is_text || named { body } else { String::new() };
    let html = string("formatted_body").filter(|_| is_text || named);
    let mentions = content.pointer("/m.mentions/user_ids").and_then(Value::as_array);
    let mentions = mentions.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Some(Message { kind, text, html, mentions, reply_to: None, thread: None, ours: string(OURS) })
}

impl Message {
    /// Whether it is words, not a file.
    pub(crate) fn is_words(&self) -> bool {
        matches!(self.kind.as_str(), "m.text" | "m.notice" | "m.emote")
    }

    /// Whether it is a picture or a file of some kind.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind.as_str(), "m.image" | "m.file" | "m.audio" | "m.video")
    }
}

/// Takes away the quote that older clients put above a reply.
fn without_quote(text: &mut String) {
    if !text.starts_with("> ") {
        return;
    }
    let quoted: usize =
        text.split_inclusive('\n').take_while(|line| line.starts_with('>')).map(str::len).sum();
    *text = text[quoted..].trim_start_matches('\n').to_owned();
}

/// The field that tells our own drafts and notices from answers. In encrypted rooms it is encrypted with the rest.
pub(crate) const OURS: &str = "confidant.kind";

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    pub(crate) fn event(kind: &str, content: Value) -> Value {
        json!({ "event_id": "$1", "sender": "@a:x", "type": kind, "origin_server_ts": 1000, "content": content })
    }

    pub(crate) fn read(event: &Value) -> Heard {
        Heard::read(&event.to_string()).unwrap()
    }

    #[test]
    fn events_are_told_apart() {
        let message = |content: Value| read(&event("m.room.message", content)).what;
        let What::Message(said) = message(json!({ "msgtype": "m.text", "body": "hi",
            "m.mentions": { "user_ids": ["@b:x", 7] }, "m.relates_to": { "rel_type": "m.thread", "event_id": "$0",
            "is_falling_back": true, "m.in_reply_to": { "event_id": "$9" } } }))
        else {
            panic!("a message")
        };
        assert_eq!(
            (said.thread.as_deref(), said.reply_to, said.mentions),
            (Some("$0"), None, vec!["@b:x".to_owned()])
        );
        let What::Message(said) = message(json!({ "msgtype": "m.text", "body": "> <@b:x> q\n> r\n\nanswer",
            "m.relates_to": { "m.in_reply_to": { "event_id": "$9" } } }))
        else {
            panic!("a reply")
        };
        assert_eq!((said.reply_to.as_deref(), said.text.as_str()), (Some("$9"), "answer"));
        let edit = message(
            json!({ "msgtype": "m.text", "body": "* x", "m.new_content": { "msgtype": "m.text", "body": "x" },
            "m.relates_to": { "rel_type": "m.replace", "event_id": "$0" } }),
        );
        assert!(matches!(edit, What::Edit { target, message } if target == "$0" && message.text == "x"));
        let file = message(json!({ "msgtype": "m.image", "body": "a.png" }));
        assert!(matches!(file, What::Message(file) if file.text.is_empty() && file.is_file()));
        let file = message(json!({ "msgtype": "m.image", "body": "look", "filename": "a.png" }));
        assert!(matches!(file, What::Message(file) if file.text == "look"));
        assert!(matches!(message(json!({})), What::Other), "taken back");
        for gone in [json!({ "redacts": "$0" }), json!({})] {
            let mut gone = event("m.room.redaction", gone);
            if gone["content"]["redacts"].is_null() {
                gone["redacts"] = "$0".into();
            }
            assert!(matches!(read(&gone).what, What::Redaction { target } if target == "$0"));
        }
        let mut member = event("m.room.member", json!({ "membership": "join" }));
        member["state_key"] = "@b:x".into();
        member["unsigned"] = json!({ "prev_content": { "membership": "invite" } });
        assert!(matches!(read(&member).what, What::Member { user, before, .. } if user == "@b:x"
            && before.as_deref() == Some("invite")));
        assert!(is_taken_back(&event("m.room.encrypted", json!({})).to_string()) && !is_taken_back("{}"));
        assert!(Heard::read("{}").is_none() && Heard::read("[").is_none() && Heard::read("").is_none());
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in "\\PC*", kind in "m\\.room\\.(message|member|redaction)", at in any::<f64>()) {
            let _ = Heard::read(&text);
            let odd = json!({ "event_id": text, "sender": "", "type": kind, "origin_server_ts": at,
                "state_key": text, "content": { "msgtype": text, "body": 1, "m.relates_to": [text],
                "m.mentions": { "user_ids": text } } });
            let _ = Heard::read(&odd.to_string());
        }
    }
}
