//! Whether something that was said is for the agent, and how it is to be understood. Pure.

use confidant_channel::Said;
use confidant_engine::room::Audience;
use confidant_engine::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
use matrix_sdk::ruma::{EventId, OwnedUserId, RoomId};

use crate::heard::{Heard, Message, What};
use crate::people::People;
use crate::route::Place;

/// What decides it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) me: String,
    pub(crate) allowed: People,
    pub(crate) listen_to_bots: bool,
    pub(crate) prefix: Option<String>,
    pub(crate) reply_in_thread: bool,
    pub(crate) allow_reactions: bool,
    pub(crate) tenant: TenantId,
}

/// Where it was said.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    pub(crate) room: String,
    /// Whether everything that is said there is for us.
    pub(crate) direct: bool,
    /// Whether nobody but the two of us reads there.
    pub(crate) private: bool,
    /// What we are called there.
    pub(crate) called: Option<String>,
}

/// Whether something wants an answer.
pub(crate) enum Verdict {
    No,
    Yes(Box<Said>),
    /// If this event is ours: it answers it.
    IfOurs(String, Box<Said>),
}

impl Rules {
    /// What a message wants. `order` is where it stands in its room.
    pub(crate) fn judge(&self, heard: &Heard, message: &Message, here: &Here, order: Option<i64>) -> Verdict {
        if heard.sender == self.me || !self.allowed.has(&heard.sender) {
            return Verdict::No;
        }
        if message.kind == "m.notice" && !self.listen_to_bots {
            return Verdict::No;
        }
        if !message.is_words() && !message.is_file() {
            return Verdict::No;
        }
        let (text, by_prefix) = self.text(message, here);
        let addressed = here.direct || by_prefix || self.is_meant(message, here);
        let Some(said) = self.said(heard, message, here, order, text) else { return Verdict::No };
        match (&message.reply_to, addressed) {
            (_, true) => Verdict::Yes(Box::new(said)),
            (Some(to), false) => Verdict::IfOurs(to.clone(), Box::new(said)),
            (None, false) => Verdict::No,
        }
    }

    /// What a reaction to this message of ours says, if that is a question: `approve`, `deny`.
    pub(crate) fn decided(
        &self,
        heard: &Heard,
        sign: &str,
        question: &Heard,
        here: &Here,
        order: Option<i64>,
    ) -> Option<Said> {
        let What::Message(asked) = &question.what else { return None };
        if question.sender != self.me {
            return None;
        }
        let text = decision(sign)?.to_owned();
        let message = Message { thread: asked.thread.clone(), ..Message::default() };
        let said = self.said(heard, &message, here, order, text)?;
        // Clients show no answers to reactions.
        let place = Place { event: EventId::parse(&question.id).ok()?, ..Place::of(&said.route).ok()? };
        Some(Said { route: place.route(), ..said })
    }

    /// Whether a reaction of this person's may decide something.
    pub(crate) fn may_react(&self, heard: &Heard, sign: &str) -> bool {
        self.allow_reactions
            && heard.sender != self.me
            && self.allowed.has(&heard.sender)
            && decision(sign).is_some()
    }

    fn said(
        &self,
        heard: &Heard,
        message: &Message,
        here: &Here,
        order: Option<i64>,
        text: String,
    ) -> Option<Said> {
        let thread = self.thread(&heard.id, message.thread.as_deref(), here);
        let place = Place {
            room: RoomId::parse(&here.room).ok()?,
            event: EventId::parse(&heard.id).ok()?,
            thread: thread.map(EventId::parse).transpose().ok()?,
            asker: OwnedUserId::try_from(heard.sender.as_str()).ok()?,
            private: here.private,
        };
        Some(Said {
            event: heard.id.clone(),
            room: here.room.clone(),
            order,
            scope: self.scope(&here.room, thread, &heard.sender).ok()?,
            audience: if here.private { Audience::Private } else { Audience::Room },
            route: place.route(),
            text,
            note: message.is_file().then(|| ATTACHMENTS.to_owned()),
        })
    }

    /// The thread that something belongs to: its own, or the one that its answer opens.
    pub(crate) fn thread<'a>(&self, id: &'a str, thread: Option<&'a str>, here: &Here) -> Option<&'a str> {
        thread.or((self.reply_in_thread && !here.direct).then_some(id))
    }

    /// Whose memory it is.
    pub(crate) fn scope(&self, room: &str, thread: Option<&str>, user: &str) -> Result<Scope, ScopeError> {
        let (name, place) = (ChannelName::new(PLATFORM)?, PlaceId::new(room)?);
        let thread = ThreadId::new(thread.unwrap_or("main"))?;
        Ok(Scope::place(self.tenant.clone(), name, place, thread, UserId::new(user)?))
    }

    /// Whether the message names us.
    fn is_meant(&self, message: &Message, here: &Here) -> bool {
        message.mentions.contains(&self.me)
            || message.html.as_deref().is_some_and(|html| self.has_pill(html))
            || self.names(here).iter().any(|name| has_word(&message.text, name))
    }

    /// Whether a link to us is in it, as clients show names.
    fn has_pill(&self, html: &str) -> bool {
        let id = self.me.trim_start_matches('@');
        [
            format!("https://matrix.to/#/@{id}\""),
            format!("https://matrix.to/#/%40{}\"", id.replace(':', "%3A")),
            format!("matrix:u/{id}\""),
        ]
        .iter()
        .any(|pill| html.contains(pill.as_str()))
    }

    /// What we may be called, longest first.
    fn names(&self, here: &Here) -> Vec<String> {
        let localpart = self.me.trim_start_matches('@').split(':').next().unwrap_or_default();
        let mut names = vec![self.me.clone(), format!("@{localpart}"), localpart.to_owned()];
        if let Some(called) = here.called.as_deref().map(str::trim).filter(|called| !called.is_empty()) {
            names.extend([format!("@{called}"), called.to_owned()]);
        }
        names.retain(|name| !name.trim_start_matches('@').is_empty());
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names
    }

    /// What was said, without our name at its ends and without the prefix; and whether it had the prefix.
    pub(crate) fn text(&self, message: &Message, here: &Here) -> (String, bool) {
        let mut text = message.text.trim();
        let names = self.names(here);
        let mut by_prefix = false;
        loop {
            let before = text;
            if let Some(rest) = self.prefix.as_deref().and_then(|prefix| after_word(text, prefix)) {
                (text, by_prefix) = (rest, true);
            }
            for name in &names {
                if let Some(rest) = after_word(text, name) {
                    text = rest.trim_start().trim_start_matches([':', ',']);
                }
                // At the end, a bare name may be what is talked about.
                let rest = before_word(text, name);
                text = rest.filter(|rest| name.starts_with('@') || rest.ends_with(',')).unwrap_or(text);
                text = text.trim_end_matches(',');
            }
            text = text.trim();
            if text == before {
                return (text.to_owned(), by_prefix);
            }
        }
    }
}

/// What a sign says to a question, whatever its colour.
fn decision(sign: &str) -> Option<&'static str> {
    let plain = sign.trim_end_matches(|c: char| c == '\u{fe0f}' || ('\u{1f3fb}'..='\u{1f3ff}').contains(&c));
    match plain {
        "\u{2705}" | "\u{2714}" | "\u{1f44d}" => Some("approve"),
        "\u{274c}" | "\u{2716}" | "\u{1f44e}" => Some("deny"),
        _ => None,
    }
}

/// What comes after a word that a text begins with.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let end = find_word(text, word).filter(|(start, _)| *start == 0)?.1;
    Some(&text[end..])
}

/// What comes before a word that a text ends with.
fn before_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some((start, end)) = find_word(&text[from..], word) {
        if from + end == text.len() && from + start > 0 {
            return Some(text[..from + start].trim_end());
        }
        from += end;
    }
    None
}

/// Whether a text has this word, in whatever case.
fn has_word(text: &str, word: &str) -> bool {
    find_word(text, word).is_some()
}

/// Where a word stands in a text, in whatever case, with no letter or digit next to it.
fn find_word(text: &str, word: &str) -> Option<(usize, usize)> {
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let in_a_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut before = None;
    for (start, first) in text.char_indices() {
        // A name after `@` is a part of something else, such as an address; our own with an `@` is a word of its own. A
        // word of signs, such as a prefix, has no border before it.
        let begins_in_word = word.first().is_some_and(|w| in_a_word(*w) || *w == '@');
        let free = !begins_in_word || before.is_none_or(|c| !in_a_word(c) && c != '@');
        if free && let Some(length) = matches(&text[start..], &word) {
            let after = text[start + length..].chars().next();
            let ends_in_word = word.last().is_some_and(|w| in_a_word(*w));
            if !after.is_some_and(in_a_word) || !ends_in_word {
                return Some((start, start + length));
            }
        }
        before = Some(first);
    }
    None
}

/// How many bytes of a text are this word.
fn matches(text: &str, word: &[char]) -> Option<usize> {
    let mut left = word;
    for (at, c) in text.char_indices() {
        if left.is_empty() {
            return Some(at);
        }
        for lower in c.to_lowercase() {
            let (first, rest) = left.split_first()?;
            if *first != lower {
                return None;
            }
            left = rest;
        }
    }
    left.is_empty().then_some(text.len())
}

pub(crate) const PLATFORM: &str = "matrix";
const ATTACHMENTS: &str = "_(I cannot look at attachments, so I ignored them.)_";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::heard::tests::{event, read};

    fn rules(change: impl FnOnce(&mut Rules)) -> Rules {
        let mut rules = Rules {
            me: "@bot:x".to_owned(),
            allowed: People::new(&["*".to_owned()]),
            listen_to_bots: false,
            prefix: None,
            reply_in_thread: false,
            allow_reactions: false,
            tenant: TenantId::new("acme").unwrap(),
        };
        change(&mut rules);
        rules
    }

    fn room() -> Here {
        Here { room: "!r:x".to_owned(), direct: false, private: false, called: Some("Ada Bot".to_owned()) }
    }

    fn direct() -> Here {
        Here { direct: true, private: true, ..room() }
    }

    fn judge(rules: &Rules, content: Value, here: &Here) -> Verdict {
        let heard = read(&event("m.room.message", content));
        let What::Message(message) = &heard.what else { panic!("a message") };
        rules.judge(&heard, message, here, Some(5))
    }

    fn said(rules: &Rules, content: Value, here: &Here) -> Option<Said> {
        match judge(rules, content, here) {
            Verdict::Yes(said) => Some(*said),
            _ => None,
        }
    }

    fn text(body: &str) -> Value {
        json!({ "msgtype": "m.text", "body": body })
    }

    #[test]
    fn who_is_answered_where() {
        let usual = rules(|_| ());
        for (body, meant) in [
            ("hello", false),
            ("Ada Bot: hello", true),
            ("hello ada bot!", true),
            ("bot, hello", true),
            ("@bot hello", true),
            ("hello @bot:x", true),
            ("robot hello", false),
            ("bots hello", false),
            ("bot_2 hello", false),
            ("a@bot.org", false),
        ] {
            assert_eq!(said(&usual, text(body), &room()).is_some(), meant, "{body}");
        }
        assert!(said(&usual, text("hello"), &direct()).is_some(), "a direct room needs no mention");
        let mention = json!({ "msgtype": "m.text", "body": "hi", "m.mentions": { "user_ids": ["@bot:x"] } });
        assert!(said(&usual, mention, &room()).is_some());
        let pill = "<a href=\"https://matrix.to/#/@bot:x\">A</a> hi";
        let pill = json!({ "msgtype": "m.text", "body": "A hi", "formatted_body": pill });
        assert!(said(&usual, pill, &room()).is_some());
        let pill = "<a href=\"https://matrix.to/#/@bot:xyz\">A</a> hi";
        let pill = json!({ "msgtype": "m.text", "body": "A hi", "formatted_body": pill });
        assert!(said(&usual, pill, &room()).is_none(), "somebody of another server");
        let reply = json!({ "msgtype": "m.text", "body": "hi", "m.relates_to": { "m.in_reply_to": { "event_id": "$7" } } });
        assert!(matches!(judge(&usual, reply, &room()), Verdict::IfOurs(to, _) if to == "$7"));
        let notice = json!({ "msgtype": "m.notice", "body": "bot hi" });
        assert!(said(&usual, notice.clone(), &direct()).is_none());
        assert!(said(&rules(|r| r.listen_to_bots = true), notice, &room()).is_some());
        assert!(said(&rules(|r| r.me = "@a:x".to_owned()), text("hi"), &direct()).is_none(), "never itself");
        assert!(said(&rules(|r| r.allowed = People::default()), text("hi"), &direct()).is_none());
        assert!(
            said(&rules(|r| r.allowed = People::new(&["*:y".to_owned()])), text("hi"), &direct()).is_none()
        );
        let verification = json!({ "msgtype": "m.key.verification.request", "body": "hi" });
        assert!(said(&usual, verification, &direct()).is_none());
    }

    #[test]
    fn a_reaction_to_a_question_of_ours_is_an_answer_where_it_may_be() {
        let allowing = rules(|r| r.allow_reactions = true);
        let mut asked = event(
            "m.room.message",
            json!({ "msgtype": "m.text", "confidant.kind": "draft", "body": "\u{1f9e0} Thinking...",
            "m.relates_to": { "rel_type": "m.thread", "event_id": "$0" } }),
        );
        (asked["sender"], asked["event_id"]) = ("@bot:x".into(), "$q".into());
        let reaction = |sign: &str| {
            let relation = json!({ "rel_type": "m.annotation", "event_id": "$q", "key": sign });
            let heard = read(&event("m.reaction", json!({ "m.relates_to": relation })));
            assert!(matches!(&heard.what, What::Reaction { target, sign: s } if target == "$q" && s == sign));
            heard
        };
        let decided = |rules: &Rules, asked: &Value, sign: &str| {
            let heard = reaction(sign);
            let may = rules.may_react(&heard, sign);
            rules.decided(&heard, sign, &read(asked), &room(), Some(5)).filter(|_| may)
        };
        for (sign, text) in [
            ("\u{2705}", "approve"),
            ("\u{1f44d}\u{1f3fd}", "approve"),
            ("\u{274c}", "deny"),
            ("\u{2716}\u{fe0f}", "deny"),
        ] {
            let said = decided(&allowing, &asked, sign).unwrap();
            assert_eq!((said.text.as_str(), said.event.as_str()), (text, "$1"));
            assert_eq!(said.scope.session_id(), "!r:x:$0:@a:x", "where it was asked");
            assert_eq!(Place::of(&said.route).unwrap().event, "$q");
        }
        assert!(decided(&allowing, &asked, "\u{2764}").is_none());
        assert!(decided(&rules(|_| ()), &asked, "\u{2705}").is_none(), "only where the operator allows it");
        let nobody = rules(|r| (r.allow_reactions, r.allowed) = (true, People::default()));
        assert!(decided(&nobody, &asked, "\u{2705}").is_none());
        let mut others = asked.clone();
        others["sender"] = "@c:x".into();
        assert!(decided(&allowing, &others, "\u{2705}").is_none(), "somebody else's message");
    }

    #[test]
    fn how_it_is_understood() {
        let usual = rules(|_| ());
        for (body, understood) in [
            ("Ada Bot: what is it?", "what is it?"),
            ("@bot, what is it, bot", "what is it"),
            ("@bot:x: what is it", "what is it"),
            ("@bot what is a bot", "what is a bot"),
            ("what is a bot for", "what is a bot for"),
            ("bot", ""),
            ("  bot   !help ", "!help"),
        ] {
            assert_eq!(said(&usual, text(body), &room()).unwrap().text, understood, "{body}");
        }
        let prefixed = rules(|r| r.prefix = Some("!ai".to_owned()));
        assert_eq!(said(&prefixed, text("!ai what"), &room()).unwrap().text, "what");
        assert!(said(&prefixed, text("!aim what"), &room()).is_none());
        assert!(said(&prefixed, text("say !ai what"), &room()).is_none());
        let in_thread = json!({ "msgtype": "m.text", "body": "bot hi",
            "m.relates_to": { "rel_type": "m.thread", "event_id": "$0" } });
        let one = said(&usual, in_thread.clone(), &room()).unwrap();
        assert_eq!((one.scope.session_id().as_str(), one.audience), ("!r:x:$0:@a:x", Audience::Room));
        assert_eq!(Place::of(&one.route).unwrap().thread.unwrap(), "$0");
        let one = said(&usual, text("hi"), &direct()).unwrap();
        assert_eq!(
            (one.scope.session_id().as_str(), one.audience, one.order),
            ("!r:x:main:@a:x", Audience::Private, Some(5))
        );
        let threads = rules(|r| r.reply_in_thread = true);
        let one = said(&threads, text("bot hi"), &room()).unwrap();
        assert_eq!(one.scope.session_id(), "!r:x:$1:@a:x", "what the thread goes on with");
        assert_eq!(said(&threads, text("hi"), &direct()).unwrap().scope.session_id(), "!r:x:main:@a:x");
        let crowd = Here { private: false, ..direct() };
        assert_eq!(said(&usual, text("hi"), &crowd).unwrap().audience, Audience::Room);
        let file = said(&usual, json!({ "msgtype": "m.file", "body": "a.pdf" }), &direct()).unwrap();
        assert!(file.text.is_empty() && file.note.unwrap().contains("attachments"));
    }
}
