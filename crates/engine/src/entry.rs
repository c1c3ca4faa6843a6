//! The sealed items of a session's log, and the state that they fold to.
//!
//! These are stored types: their JSON is pinned by a snapshot test, and a change needs a reader for the old form. An
//! [`Exchange`] keeps a request and all that it caused together, whatever came in between, so that no window over the
//! history can part a question from its answer or a tool call from its result.

use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::audience::{Audience, Sharing};
use crate::clock::Millis;

/// One item of the log.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A turn was accepted: what the person said, before any model saw it.
    Accepted {
        request_id: String,
        at: Millis,
        audience: Audience,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
    },
    /// A turn that was cut off or failed is being tried again.
    Resumed { request_id: String, at: Millis },
    /// A turn was answered.
    Answered { request_id: String, at: Millis, replies: Vec<Reply> },
    /// A turn ended without an answer, and this was reported.
    Failed { request_id: String, at: Millis, reason: String },
    /// The person chose how far their private words may reach.
    Sharing { at: Millis, sharing: Sharing },
}

/// One message of an answer.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// Who speaks: the agent or a tool.
    pub(crate) from: ReplyFrom,
    pub(crate) content: String,
    /// Tokens of the content, once somebody needed to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u32>,
    /// The model or the tool, by name.
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplyFrom {
    Ai,
    Tool,
}

/// A request and all that it caused.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) request_id: String,
    pub(crate) at: Millis,
    pub(crate) audience: Audience,
    pub(crate) content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u32>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Accepted and not yet answered; `attempts` counts the runs, the first included.
    Open {
        attempts: u32,
    },
    Answered {
        at: Millis,
        replies: Vec<Reply>,
    },
    Failed {
        at: Millis,
        reason: String,
        attempts: u32,
    },
}

impl Exchange {
    /// Messages in it: the question, and the answer's if there is one.
    pub(crate) fn messages(&self) -> usize {
        1 + self.replies().len()
    }

    pub(crate) fn replies(&self) -> &[Reply] {
        match &self.outcome {
            Outcome::Answered { replies, .. } => replies,
            _ => &[],
        }
    }

    /// The answer as the person got it.
    pub(crate) fn answer(&self) -> Option<&Reply> {
        self.replies().iter().rev().find(|reply| reply.from == ReplyFrom::Ai)
    }

    /// Tokens of the question and of the answer's messages; counted now where nobody did before.
    fn count_tokens(&mut self, count: impl Fn(&str) -> u32) {
        self.tokens.get_or_insert_with(|| count(&self.content));
        if let Outcome::Answered { replies, .. } = &mut self.outcome {
            for reply in replies {
                reply.tokens.get_or_insert_with(|| count(&reply.content));
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Open { .. })
    }
}

/// The state that a log folds to.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    exchanges: VecDeque<Exchange>,
    /// Requests whose exchanges are no longer kept, newest last: they were answered, and must not be again.
    settled: VecDeque<String>,
    sharing: Sharing,
    /// How many exchanges were dropped before the first that is kept; turns an ordinal into a position.
    dropped: u64,
    /// Request id to ordinal; derived, so not stored.
    #[serde(skip)]
    by_request: HashMap<String, u64>,
    /// The ordinal of the exchange that waits for its answer; derived, too.
    #[serde(skip)]
    open: Option<u64>,
}

/// How many settled request ids are remembered after their exchanges are gone.
const SETTLED_KEPT: usize = 256;

/// An entry that does not follow from what came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfPlace;

impl Checkpoint {
    /// Makes ready what was read from a snapshot.
    pub(crate) fn revived(mut self) -> Self {
        let ids = self.exchanges.iter().map(|exchange| exchange.request_id.clone());
        self.by_request = ids.zip(self.dropped..).collect();
        self.open =
            (self.dropped..).zip(&self.exchanges).find(|(_, exchange)| exchange.is_open()).map(|(n, _)| n);
        self
    }

    /// Takes the next entry of the log.
    pub(crate) fn apply(&mut self, entry: Entry) -> Result<(), OutOfPlace> {
        match entry {
            Entry::Accepted { request_id, at, audience, content, tokens } => {
                let ordinal = self.dropped + self.exchanges.len() as u64;
                if self.by_request.insert(request_id.clone(), ordinal).is_some() {
                    return Err(OutOfPlace);
                }
                let outcome = Outcome::Open { attempts: 1 };
                self.open = Some(ordinal);
                self.exchanges.push_back(Exchange { request_id, at, audience, content, tokens, outcome });
            }
            Entry::Resumed { request_id, .. } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                exchange.outcome = match exchange.outcome {
                    Outcome::Open { attempts } | Outcome::Failed { attempts, .. } => {
                        Outcome::Open { attempts: attempts + 1 }
                    }
                    Outcome::Answered { .. } => return Err(OutOfPlace),
                };
                self.open = self.by_request.get(&request_id).copied();
            }
            Entry::Answered { request_id, at, replies } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                if !exchange.is_open() {
                    return Err(OutOfPlace);
                }
                exchange.outcome = Outcome::Answered { at, replies };
                self.open = None;
            }
            Entry::Failed { request_id, at, reason } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                let Outcome::Open { attempts } = exchange.outcome else { return Err(OutOfPlace) };
                exchange.outcome = Outcome::Failed { at, reason, attempts };
                self.open = None;
            }
            Entry::Sharing { sharing, .. } => self.sharing = sharing,
        }
        Ok(())
    }

    /// Drops the oldest exchanges until at most `max_messages` messages are left; an open one is never dropped.
    pub(crate) fn trim(&mut self, max_messages: usize) {
        let mut messages: usize = self.exchanges.iter().map(Exchange::messages).sum();
        while messages > max_messages
            && let Some(oldest) = self.exchanges.pop_front_if(|exchange| !exchange.is_open())
        {
            messages -= oldest.messages();
            self.dropped += 1;
            self.by_request.remove(&oldest.request_id);
            self.settled.push_back(oldest.request_id);
        }
        while self.settled.len() > SETTLED_KEPT {
            self.settled.pop_front();
        }
    }

    /// Counts the tokens of the newest `exchanges` where that was not done before.
    pub(crate) fn count_tokens(&mut self, exchanges: usize, count: impl Fn(&str) -> u32) {
        for exchange in self.exchanges.iter_mut().rev().take(exchanges) {
            exchange.count_tokens(&count);
        }
    }

    pub(crate) fn exchanges(&self) -> &VecDeque<Exchange> {
        &self.exchanges
    }

    pub(crate) fn exchange(&self, request_id: &str) -> Option<&Exchange> {
        self.at(*self.by_request.get(request_id)?)
    }

    fn at(&self, ordinal: u64) -> Option<&Exchange> {
        self.exchanges.get(usize::try_from(ordinal - self.dropped).ok()?)
    }

    fn exchange_mut(&mut self, request_id: &str) -> Option<&mut Exchange> {
        let ordinal = *self.by_request.get(request_id)?;
        self.exchanges.get_mut(usize::try_from(ordinal - self.dropped).ok()?)
    }

    /// Whether the request was answered in an exchange that is no longer kept.
    pub(crate) fn is_settled(&self, request_id: &str) -> bool {
        self.settled.iter().any(|settled| settled == request_id)
    }

    /// The exchange that waits for its answer; a session has at most one.
    pub(crate) fn open_exchange(&self) -> Option<&Exchange> {
        self.at(self.open?)
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.sharing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(id: &str) -> Entry {
        Entry::Accepted {
            request_id: id.to_owned(),
            at: Millis(1),
            audience: Audience::Room,
            content: "q".to_owned(),
            tokens: Some(1),
        }
    }

    fn answered(id: &str) -> Entry {
        let reply =
            Reply { from: ReplyFrom::Ai, content: "a".to_owned(), tokens: Some(1), name: "m".to_owned() };
        Entry::Answered { request_id: id.to_owned(), at: Millis(2), replies: vec![reply] }
    }

    #[test]
    fn stored_forms_are_pinned() {
        let entries = [
            accepted("r1"),
            Entry::Resumed { request_id: "r1".into(), at: Millis(2) },
            answered("r1"),
            Entry::Failed { request_id: "r1".into(), at: Millis(3), reason: "interrupted".into() },
            Entry::Sharing { at: Millis(4), sharing: Sharing::PrivateInRooms },
        ];
        let json: Vec<String> = entries.iter().map(|e| serde_json::to_string(e).unwrap()).collect();
        assert_eq!(
            json,
            [
                r#"{"kind":"accepted","request_id":"r1","at":1,"audience":"room","content":"q","tokens":1}"#,
                r#"{"kind":"resumed","request_id":"r1","at":2}"#,
                r#"{"kind":"answered","request_id":"r1","at":2,"replies":[{"from":"ai","content":"a","tokens":1,"name":"m"}]}"#,
                r#"{"kind":"failed","request_id":"r1","at":3,"reason":"interrupted"}"#,
                r#"{"kind":"sharing","at":4,"sharing":"private_in_rooms"}"#,
            ]
        );
        let mut checkpoint = Checkpoint::default();
        checkpoint.apply(accepted("r1")).unwrap();
        checkpoint.apply(answered("r1")).unwrap();
        checkpoint.apply(accepted("r2")).unwrap();
        assert_eq!(
            serde_json::to_string(&checkpoint).unwrap(),
            concat!(
                r#"{"exchanges":[{"request_id":"r1","at":1,"audience":"room","content":"q","tokens":1,"#,
                r#""outcome":{"is":"answered","at":2,"replies":[{"from":"ai","content":"a","tokens":1,"name":"m"}]}},"#,
                r#"{"request_id":"r2","at":1,"audience":"room","content":"q","tokens":1,"#,
                r#""outcome":{"is":"open","attempts":1}}],"settled":[],"sharing":"keep_private","dropped":0}"#,
            )
        );
    }

    #[test]
    fn an_answer_is_never_doubled() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.apply(accepted("r1")).unwrap();
        checkpoint.apply(answered("r1")).unwrap();
        assert_eq!(checkpoint.apply(answered("r1")), Err(OutOfPlace));
        assert_eq!(checkpoint.apply(accepted("r1")), Err(OutOfPlace));
        assert_eq!(
            checkpoint.apply(Entry::Resumed { request_id: "r1".into(), at: Millis(3) }),
            Err(OutOfPlace)
        );
    }

    #[test]
    fn trimming_keeps_the_newest_and_remembers_what_was_settled() {
        let mut checkpoint = Checkpoint::default();
        for i in 0..10 {
            checkpoint.apply(accepted(&format!("r{i}"))).unwrap();
            checkpoint.apply(answered(&format!("r{i}"))).unwrap();
        }
        checkpoint.trim(6);
        let kept: Vec<_> = checkpoint.exchanges().iter().map(|e| e.request_id.as_str()).collect();
        assert_eq!(kept, ["r7", "r8", "r9"]);
        assert!(checkpoint.is_settled("r0") && !checkpoint.is_settled("r7"));
        assert!(checkpoint.exchange("r8").is_some_and(|e| e.request_id == "r8"));
        let json = serde_json::to_string(&checkpoint).unwrap();
        let revived = serde_json::from_str::<Checkpoint>(&json).unwrap().revived();
        assert!(revived.exchange("r9").is_some_and(|e| e.request_id == "r9"));
        assert!(revived.exchange("r0").is_none() && revived.is_settled("r0"));
    }

    #[test]
    fn an_open_exchange_is_never_dropped() {
        let mut checkpoint = Checkpoint::default();
        checkpoint.apply(accepted("r1")).unwrap();
        checkpoint.trim(0);
        assert!(checkpoint.open_exchange().is_some());
    }
}
