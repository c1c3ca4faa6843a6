//! Which lines of a room someone is told: walks back from the newest event, and keeps what was said, by whom, in this
//! thread, as it is said now, and only as far as the asker could read it. Pure.
//!
//! What is easy to get wrong: an edit comes after what it changes, so going back it is met first; and who could read a
//! line is decided by how the room was when it was said, not by how it is now.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::content;
use crate::heard::{Heard, Message, What};

/// A walk back through a room.
pub(crate) struct Walk {
    me: String,
    asker: String,
    /// What was asked: the walk keeps what came before it.
    question: String,
    thread: Option<String>,
    most: usize,
    max_age: Option<Duration>,
    /// Whether the question was met, and when it was asked.
    asked_at: Option<i64>,
    /// Who may read, and what the asker was to the room, at the place that the walk has come to.
    visibility: String,
    membership: String,
    edits: HashMap<(String, String), Message>,
    gone: HashSet<String>,
    lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) sender: String,
    pub(crate) text: String,
    pub(crate) at: i64,
}

impl Walk {
    /// A walk that begins at the newest event, in a room that is now like this.
    pub(crate) fn new(me: &str, asker: &str, question: &str, thread: Option<&str>) -> Self {
        Self {
            me: me.to_owned(),
            asker: asker.to_owned(),
            question: question.to_owned(),
            thread: thread.map(str::to_owned),
            most: 0,
            max_age: None,
            asked_at: None,
            visibility: "shared".to_owned(),
            membership: "join".to_owned(),
            edits: HashMap::new(),
            gone: HashSet::new(),
            lines: Vec::new(),
        }
    }

    /// How much is wanted.
    pub(crate) fn limits(mut self, most: usize, max_age: Option<Duration>) -> Self {
        (self.most, self.max_age) = (most, max_age);
        self
    }

    /// Who may read the room now, and what the asker is to it.
    pub(crate) fn readers(mut self, visibility: &str, membership: &str) -> Self {
        (self.visibility, self.membership) = (visibility.to_owned(), membership.to_owned());
        self
    }

    /// Whether nothing further back is wanted.
    pub(crate) fn is_done(&self) -> bool {
        self.lines.len() >= self.most
    }

    /// Passes the next older event.
    pub(crate) fn pass(&mut self, heard: Heard) {
        let Heard { id, sender, at, what } = heard;
        if id == self.question {
            self.asked_at = Some(at);
            return;
        }
        match what {
            What::Message(message) => self.message(id, sender, at, message),
            // The newest is met first.
            What::Edit { target, message } => {
                self.edits.entry((target, sender)).or_insert(message);
            }
            What::Redaction { target } => {
                self.gone.insert(target);
            }
            What::Member { user, before, .. } if user == self.asker => {
                self.membership = before.unwrap_or_else(|| "leave".to_owned());
            }
            // Without a word of how it was before, it was as narrow as can be.
            What::Visibility { before, .. } => {
                self.visibility = before.unwrap_or_else(|| "joined".to_owned());
            }
            What::Reaction { .. } | What::Member { .. } | What::Other => {}
        }
    }

    fn message(&mut self, id: String, sender: String, at: i64, said: Message) {
        let Some(asked_at) = self.asked_at else { return };
        let in_thread = match &self.thread {
            Some(root) => said.thread.as_ref() == Some(root) || id == *root,
            None => said.thread.is_none(),
        };
        let too_old = self.max_age.is_some_and(|age| {
            at < asked_at.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
        });
        if !in_thread || too_old || self.is_done() || !self.may_read() || self.gone.contains(&id) {
            return;
        }
        let said = self.edits.remove(&(id, sender.clone())).unwrap_or(said);
        let is_ours = sender == self.me;
        let is_line = if is_ours {
            said.ours.as_deref().is_none_or(|kind| kind == content::ANSWER)
        } else {
            matches!(said.kind.as_str(), "m.text" | "m.emote")
        };
        if is_line && said.is_words() && !said.text.trim().is_empty() {
            self.lines.push(Line { sender, text: said.text, at });
        }
    }

    fn may_read(&self) -> bool {
        match self.visibility.as_str() {
            "world_readable" | "shared" => true,
            "invited" => matches!(self.membership.as_str(), "invite" | "join"),
            _ => self.membership == "join",
        }
    }

    /// The lines, oldest first.
    pub(crate) fn lines(self) -> Vec<Line> {
        self.lines.into_iter().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::heard::OURS;

    fn event(id: &str, sender: &str, at: i64, kind: &str, content: Value) -> Value {
        json!({ "event_id": id, "sender": sender, "type": kind, "origin_server_ts": at, "content": content })
    }

    fn text(id: &str, sender: &str, at: i64, body: &str) -> Value {
        event(id, sender, at, "m.room.message", json!({ "msgtype": "m.text", "body": body }))
    }

    fn edit(id: &str, of: &str, sender: &str, body: &str) -> Value {
        let new = json!({ "msgtype": "m.text", "body": body });
        let relation = json!({ "rel_type": "m.replace", "event_id": of });
        let content =
            json!({ "msgtype": "m.text", "body": "*", "m.new_content": new, "m.relates_to": relation });
        event(id, sender, 0, "m.room.message", content)
    }

    fn member(user: &str, now: &str, before: Option<&str>) -> Value {
        let mut event = event("$m", user, 0, "m.room.member", json!({ "membership": now }));
        event["state_key"] = user.into();
        if let Some(before) = before {
            event["unsigned"] = json!({ "prev_content": { "membership": before } });
        }
        event
    }

    fn visibility(now: &str, before: &str) -> Value {
        let mut event =
            event("$v", "@o:x", 0, "m.room.history_visibility", json!({ "history_visibility": now }));
        event["state_key"] = "".into();
        event["unsigned"] = json!({ "prev_content": { "history_visibility": before } });
        event
    }

    /// Walks through events that are given oldest first; the question is `$q`.
    fn walk(walk: Walk, events: &[Value]) -> Vec<String> {
        let mut walk = walk;
        for event in events.iter().rev() {
            walk.pass(Heard::read(&event.to_string()).unwrap());
        }
        walk.lines().into_iter().map(|line| line.text).collect()
    }

    fn usual() -> Walk {
        Walk::new("@bot:x", "@a:x", "$q", None).limits(20, None)
    }

    #[test]
    fn lines_are_as_they_are_now_and_before_the_question() {
        let mut draft = text("$d", "@bot:x", 5, "thinking");
        draft["content"][OURS] = "draft".into();
        let mut answered = text("$e", "@bot:x", 6, "thinking");
        answered["content"][OURS] = "draft".into();
        let mut whole = edit("$f", "$e", "@bot:x", "Postgres it is");
        whole["content"]["m.new_content"][OURS] = "answer".into();
        let events = [
            text("$1", "@b:x", 1, "we chose MySQL"),
            text("$2", "@b:x", 2, "secret"),
            text("$3", "@c:x", 3, "fine"),
            edit("$4", "$1", "@b:x", "we chose Redis"),
            edit("$5", "$1", "@c:x", "forged"),
            edit("$6", "$1", "@b:x", "we chose Postgres"),
            event("$7", "@b:x", 4, "m.room.redaction", json!({ "redacts": "$2" })),
            draft,
            answered,
            whole,
            event("$8", "@b:x", 7, "m.room.message", json!({ "msgtype": "m.notice", "body": "a bot" })),
            event("$9", "@b:x", 8, "m.room.message", json!({ "msgtype": "m.image", "body": "a.png" })),
            text("$q", "@a:x", 9, "what did we choose?"),
            text("$z", "@b:x", 10, "too late"),
        ];
        assert_eq!(walk(usual(), &events), ["we chose Postgres", "fine", "Postgres it is"]);
        assert_eq!(walk(usual().limits(2, None), &events), ["fine", "Postgres it is"]);
        let young = usual().limits(20, Some(Duration::from_millis(5)));
        assert_eq!(walk(young, &events), ["Postgres it is"]);
        assert!(walk(usual().limits(0, None), &events).is_empty());
    }

    #[test]
    fn a_thread_is_read_by_itself() {
        let mut inside = text("$3", "@b:x", 3, "in the thread");
        inside["content"]["m.relates_to"] = json!({ "rel_type": "m.thread", "event_id": "$1" });
        let events = [
            text("$1", "@b:x", 1, "root"),
            text("$2", "@b:x", 2, "main"),
            inside,
            text("$q", "@a:x", 4, "?"),
        ];
        let thread = Walk::new("@bot:x", "@a:x", "$q", Some("$1")).limits(20, None);
        assert_eq!(walk(thread, &events), ["root", "in the thread"]);
        assert_eq!(walk(usual(), &events), ["root", "main"]);
    }

    #[test]
    fn nobody_is_told_what_they_could_not_read() {
        let events = [
            text("$1", "@b:x", 1, "long before"),
            member("@a:x", "invite", None),
            text("$2", "@b:x", 2, "since the invitation"),
            member("@a:x", "join", Some("invite")),
            member("@a:x", "join", Some("join")),
            text("$3", "@b:x", 3, "since they came"),
            text("$q", "@a:x", 4, "?"),
        ];
        let all = ["long before", "since the invitation", "since they came"];
        for (visibility, seen) in [
            ("shared", &all[..]),
            ("world_readable", &all[..]),
            ("invited", &all[1..]),
            ("joined", &all[2..]),
            ("?", &all[2..]),
        ] {
            assert_eq!(walk(usual().readers(visibility, "join"), &events), seen, "{visibility}");
        }
        let mut opened = events.to_vec();
        opened.insert(6, visibility("shared", "joined"));
        assert_eq!(
            walk(usual().readers("shared", "join"), &opened),
            all[2..],
            "opened later: not for what was before"
        );
        let mut left = events.to_vec();
        left.push(member("@a:x", "leave", Some("join")));
        assert_eq!(walk(usual().readers("joined", "leave"), &left), all[2..]);
    }
}
