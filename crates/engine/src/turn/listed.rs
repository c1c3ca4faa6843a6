//! What a client lists of a conversation, and what of that the log has already.
//!
//! A client of this kind sends the whole list each time, or puts an answer of ours into a conversation that has it. The log takes what
//! is new and nothing twice: what the log has of a list, and all before it, is known. What is easy to get wrong: people say the same
//! thing often, so a question is known by its answer, or as the one that was asked last.

use std::collections::HashMap;

use confidant_display::debug_without_content;
use futures_util::future::BoxFuture;

use super::client_tools::{ClientCall, ClientResult};
use super::handed::{read, turn_of, turn_of_call};
use super::listing::{ListedItem, ListedWhat, is_newest, items, newest};
use crate::audience::Audience;
use crate::error::Error;
use crate::head::Lacks;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::{Checkpoint, Exchange, Outcome, UNANSWERED};
use crate::ledger::entry::{Entry, Reply, ReplyFrom};
use crate::ledger::erasures::Asked;
use crate::ledger::log::Log;
use crate::ledger::session::{self, Session, Wrote};

/// What a client lists.
pub struct Listed<'l> {
    /// What it says was said, oldest first, without what it asks now.
    pub items: &'l [ListedWhat],
    /// What it asks now, if it asks something.
    pub query: Option<&'l str>,
    /// The turn that all this follows, by its mark. If the conversation has gone on since, that is
    /// [`Error::History`].
    pub after: Option<&'l str>,
    /// Who could read it.
    pub audience: Audience,
}

/// Where a conversation stands with what its client listed.
#[derive(Debug, Default)]
pub struct CaughtUp {
    /// Its newest turn, by its mark.
    pub after: Option<String>,
    /// The name of the turn that asks the same and was never answered: this is the one to be answered.
    pub request_id: Option<String>,
    /// What was new, with the marks of the turns that it was put into.
    pub recorded: Vec<(String, ListedItem)>,
}

impl Session {
    /// Puts what a client lists and the log does not have behind what it has.
    pub fn catch_up<'a>(&'a self, listed: Listed<'a>) -> BoxFuture<'a, Result<CaughtUp, Error>> {
        Box::pin(async move {
            let (mut held, tag) = (self.lock().await?, self.tag());
            loop {
                let log = held.fresh().await?.map(Log::checkpoint);
                let is_newest = |after: &str| log.is_some_and(|log| is_newest(&tag, log, after));
                if listed.after.is_some_and(|after| !is_newest(after)) {
                    return Err(Error::History(Lacks::Differs));
                }
                if log.is_some_and(|log| log.open_exchange().is_some()) {
                    return Err(Error::Busy);
                }
                let known = log.map_or(0, |log| known(&tag, log, &listed));
                let most = self.inner.ledger.settings.max_query_bytes;
                let new = exchanges(&listed.items[known..], most)?;
                if new.is_empty() {
                    return Ok(log.map_or_else(CaughtUp::default, |log| standing(&tag, log, listed.query)));
                }
                // What the agent is said to have said first answers what was put there without an answer.
                let begins = new.first().is_some_and(|(content, _)| content.is_empty());
                let last =
                    log.and_then(|log| log.exchanges().back()).filter(|last| begins && is_unanswered(last));
                let asked = last.map(|last| last.request_id.clone());
                let at = self.inner.ledger.now();
                let named = |index: usize| asked.clone().filter(|_| index == 0);
                let names = (0..new.len()).map(|index| named(index).unwrap_or_else(name));
                let names: Vec<String> = names.collect();
                let entries = names.iter().zip(new).flat_map(|(request_id, (content, replies))| {
                    let request_id = request_id.clone();
                    let (id, audience, tokens) = (request_id.clone(), listed.audience, None);
                    let end = match replies.is_empty() {
                        true => Entry::Failed { request_id: id, at, reason: UNANSWERED.to_owned() },
                        false => Entry::Answered { request_id: id, at, replies },
                    };
                    let begin = match asked.as_ref() == Some(&request_id) {
                        true => Entry::Resumed { request_id, at },
                        false => Entry::Accepted { request_id, at, audience, content, tokens },
                    };
                    [begin, end]
                });
                let note = self.record(Action::SessionRecorded).counting(names.len() as u64);
                let entries: Vec<Entry> = entries.collect();
                if held.write(entries, None, note).await? == Wrote::Conflict {
                    continue;
                }
                let Some(log) = held.checkpoint() else { return Err(Error::Internal) };
                let written = names.iter().filter_map(|name| log.exchange(name));
                let recorded = written.flat_map(|exchange| {
                    let mark = turn_of(&tag, &exchange.request_id);
                    let is_old = asked.as_ref() == Some(&exchange.request_id);
                    let is_new =
                        move |item: &ListedItem| !(is_old && matches!(item.what, ListedWhat::Query(_)));
                    let new = items(&tag, exchange).into_iter().filter(is_new);
                    new.map(move |item| (mark.clone(), item))
                });
                let recorded = recorded.collect();
                return Ok(CaughtUp { recorded, ..standing(&tag, log, listed.query) });
            }
        })
    }

    /// Begins another conversation with what was said in this one up to a turn, which has this mark. False if there is no such turn.
    pub fn fork<'a>(&'a self, mark: &'a str, into: &'a Self) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            // Before anything is read: an erasure since then ends the copy as well.
            let mut asked = Asked::now(&self.inner.ledger, None);
            asked.look(&self.inner.ledger).await?;
            let mut held = into.lock_at(into.line_up(), asked).await?;
            let Some((log, _)) = session::open(self).await? else { return Ok(false) };
            let (log, tag) = (log.checkpoint(), self.tag());
            let is_it = |id: &str| turn_of(&tag, id) == mark;
            let decided = log.decided_messages().rev().find(|(said_as, _)| is_it(said_as));
            let is_meant = |exchange: &Exchange| {
                is_it(&exchange.request_id) || decided.is_some_and(|(_, turn)| turn == exchange.request_id)
            };
            if log.waiting().iter().any(is_meant) {
                return Err(Error::Invalid {
                    what: "the turn that this is to follow is not done, and the conversation has gone on"
                        .to_owned(),
                    hint: "first send what it waits for: the results of its calls, or the decision"
                        .to_owned(),
                });
            }
            let Some(last) = log.exchanges().iter().position(is_meant) else { return Ok(false) };
            let entries: Vec<Entry> = log.exchanges().iter().take(last + 1).flat_map(copied).collect();
            // Whoever asks twice under one name has begun it before.
            while held.fresh().await?.is_none() && !entries.is_empty() {
                let note = into.record(Action::SessionRecorded).counting(entries.len() as u64 / 2);
                if held.write(entries.clone(), None, note).await? == Wrote::Done {
                    break;
                }
            }
            Ok(true)
        })
    }
}

fn name() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// An exchange as another log begins with it; nothing of one without an answer.
fn copied(exchange: &Exchange) -> Vec<Entry> {
    let Outcome::Answered { at: answered_at, replies } = &exchange.outcome else { return Vec::new() };
    let Exchange { request_id, at, audience, content, tokens, .. } = exchange.clone();
    vec![
        Entry::Accepted { request_id: request_id.clone(), at, audience, content, tokens },
        Entry::Answered { request_id, at: *answered_at, replies: replies.clone() },
    ]
}

/// Where a log stands, with nothing new.
fn standing(tag: &str, log: &Checkpoint, query: Option<&str>) -> CaughtUp {
    let asked = log.exchanges().back().filter(|last| is_unanswered(last));
    let asked = asked.filter(|last| query.is_some_and(|query| query == last.content));
    CaughtUp {
        after: newest(log).map(|newest| turn_of(tag, &newest.request_id)),
        request_id: asked.map(|last| last.request_id.clone()),
        recorded: Vec::new(),
    }
}

fn is_unanswered(exchange: &Exchange) -> bool {
    matches!(&exchange.outcome, Outcome::Failed { reason, .. } if reason == UNANSWERED)
}

/// What somebody said, and what the agent said to it.
struct Said<'s> {
    question: Option<&'s str>,
    /// Nothing if there is none.
    answer: String,
    /// Where it begins in the list.
    from: usize,
}

impl<'s> Said<'s> {
    /// What a list says, one by one.
    fn all(items: impl Iterator<Item = &'s ListedWhat>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (from, what) in items.enumerate() {
            let question = match what {
                ListedWhat::Query(text) => Some(text.trim()),
                _ => None,
            };
            if question.is_some() || all.is_empty() {
                all.push(Self { question, answer: String::new(), from });
            }
            if let (ListedWhat::Said(text), Some(last)) = (what, all.last_mut()) {
                let between = if last.answer.is_empty() { "" } else { BETWEEN };
                last.answer.push_str(between);
                last.answer.push_str(text.trim());
            }
        }
        all
    }

    /// Whether this was said there. Of several messages in a row, a client may send the last ones only.
    fn is_in(&self, kept: &Said<'_>) -> bool {
        let ends = |whole: &str, end: &str| {
            whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(BETWEEN))
        };
        let same_question =
            self.question.is_none_or(|question| kept.question.is_some_and(|kept| ends(kept, question)));
        same_question && !self.answer.is_empty() && ends(&kept.answer, &self.answer)
    }
}

/// What stands between messages of one speaker in a row.
const BETWEEN: &str = "\n\n";

/// How many items of a list the log has, from its beginning: all before one that it has are older.
fn known(tag: &str, log: &Checkpoint, listed: &Listed<'_>) -> usize {
    let (items, by_call) = (listed.items, known_by_call(tag, log, listed.items));
    let sent = Said::all(items.iter());
    let newest = log.exchanges().back().filter(|last| !has_failed(last));
    let mut until = items.len();
    for said in sent.iter().rev() {
        // A question alone says little: it is known as the one that was asked last.
        let is_last_asked = said.answer.is_empty()
            && said.question.is_some_and(|said| newest.is_some_and(|last| last.content.trim() == said));
        if is_last_asked || log.all().any(|exchange| is_kept(tag, exchange, said)) {
            return until.max(by_call);
        }
        until = said.from;
    }
    by_call
}

/// Whether an exchange is what was said.
fn is_kept(tag: &str, exchange: &Exchange, said: &Said<'_>) -> bool {
    // Most differ in what is at hand.
    let question = exchange.content.trim();
    if has_failed(exchange) || said.question.is_some_and(|said| !question.ends_with(said)) {
        return false;
    }
    let items = items(tag, exchange);
    Said::all(items.iter().map(|item| &item.what)).iter().any(|kept| said.is_in(kept))
}

/// How many items there are up to the last that names a call of a turn here.
fn known_by_call(tag: &str, log: &Checkpoint, items: &[ListedWhat]) -> usize {
    let turn = |what: &ListedWhat| match what {
        ListedWhat::Call(ClientCall { id, .. }) | ListedWhat::Result(ClientResult { id, .. }) => {
            turn_of_call(id).map(str::to_owned)
        }
        ListedWhat::Query(_) | ListedWhat::Said(_) => None,
    };
    let last = items.iter().enumerate().rev().find_map(|(index, what)| Some((index + 1, turn(what)?)));
    let here = last.filter(|(_, turn)| log.named(|id| turn_of(tag, id) == *turn).is_some());
    here.map_or(0, |(until, _)| until)
}

fn has_failed(exchange: &Exchange) -> bool {
    matches!(exchange.outcome, Outcome::Failed { .. }) && !is_unanswered(exchange)
}

/// What is listed, as the log keeps it: each message of the person with what came after it. Texts of the person may have so many bytes.
fn exchanges(listed: &[ListedWhat], most: usize) -> Result<Vec<(String, Vec<Reply>)>, Error> {
    let mut made: Vec<(String, Vec<Reply>)> = Vec::new();
    let mut calls: HashMap<&str, &ClientCall> = HashMap::new();
    let put = |made: &mut Vec<(String, Vec<Reply>)>, reply: Reply| {
        if made.is_empty() {
            made.push((String::new(), Vec::new()));
        }
        made.last_mut().into_iter().for_each(|(_, replies)| replies.push(reply.clone()));
    };
    for what in listed {
        match what {
            ListedWhat::Query(text) | ListedWhat::Said(text) if text.trim().is_empty() => {}
            ListedWhat::Query(text) if text.len() > most => {
                return Err(Error::Invalid {
                    what: format!("a message is longer than {most} bytes"),
                    hint: "shorten it or send it in parts".to_owned(),
                });
            }
            ListedWhat::Query(text) => made.push((text.clone(), Vec::new())),
            ListedWhat::Said(text) => {
                put(&mut made, Reply::ai(text.clone(), None, APPLICATION.to_owned()));
            }
            ListedWhat::Call(call) => drop(calls.insert(&call.id, call)),
            ListedWhat::Result(result) => {
                // What nobody called says nothing.
                let Some(call) = calls.remove(result.id.as_str()) else { continue };
                let tools = |(_, replies): &(String, Vec<Reply>)| {
                    replies.iter().filter(|reply| reply.from == ReplyFrom::Tool).count()
                };
                let step = Some(made.last().map_or(0, tools));
                let (from, arguments) = (ReplyFrom::Tool, Some(call.arguments.clone()));
                let said = Reply::ai(read(&result.text, most), None, call.name.clone());
                put(&mut made, Reply { from, arguments, step, ..said });
            }
        }
    }
    Ok(made)
}

/// Who speaks where an application says what the agent said.
const APPLICATION: &str = "application";

debug_without_content!(Listed<'_>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Millis;

    fn said(turns: &[(&str, &str)]) -> Checkpoint {
        let mut log = Checkpoint::default();
        for (at, (question, answer)) in turns.iter().enumerate() {
            let (request_id, at) = (format!("r{at}"), Millis(i64::try_from(at).unwrap()));
            let (audience, content, tokens) = (Audience::Private, (*question).to_owned(), None);
            log.apply(Entry::Accepted { request_id: request_id.clone(), at, audience, content, tokens })
                .unwrap();
            let end = match *answer {
                "" => Entry::Failed { request_id, at, reason: UNANSWERED.to_owned() },
                answer => {
                    let replies = vec![Reply::ai(answer.to_owned(), None, "m".to_owned())];
                    Entry::Answered { request_id, at, replies }
                }
            };
            log.apply(end).unwrap();
        }
        log
    }

    /// Texts of the person and the agent in turn; the agent's begin with `a`.
    fn list(texts: &[&str]) -> Vec<ListedWhat> {
        let one = |text: &&str| match text.starts_with('a') {
            true => ListedWhat::Said((*text).to_owned()),
            false => ListedWhat::Query((*text).to_owned()),
        };
        texts.iter().map(one).collect()
    }

    fn known_of(log: &Checkpoint, texts: &[&str], query: Option<&str>) -> usize {
        let items = list(texts);
        known("tag", log, &Listed { items: &items, query, after: None, audience: Audience::Private })
    }

    #[test]
    fn what_is_sent_again_is_known_and_what_is_new_is_not() {
        let log = said(&[("q1", "a1"), ("q2", "a2")]);
        for (texts, known) in [
            (&["q1", "a1", "q2", "a2"][..], 4),
            (&["q1", "a1", "q2", "a2", "q3", "a3"], 4),
            (&["q0", "a0", "q1", "a1", "q2", "a2"], 6),
            (&["q2", "a2", "q3"], 2),
            (&["q1", "a1"], 2),
            (&["a2", "q3"], 1),
            (&["q2"], 1),
            (&["q1"], 0),
            (&["q3", "a3"], 0),
            (&["q9", "a2", "q3"], 0),
            (&[], 0),
        ] {
            assert_eq!(known_of(&log, texts, None), known, "{texts:?}");
        }
        assert_eq!(known_of(&Checkpoint::default(), &["q1"], None), 0);
    }

    #[test]
    fn what_others_said_meanwhile_does_not_make_it_new() {
        let log = said(&[("q1", "a1"), ("x1", "ay1"), ("q2", "a2"), ("x2", "ay2")]);
        assert_eq!(known_of(&log, &["q1", "a1", "q2", "a2", "q3"], None), 4);
        assert_eq!(known_of(&log, &["x1", "ay1", "x2", "ay2"], None), 4);
    }

    #[test]
    fn messages_that_were_asked_as_one_are_known_one_by_one() {
        let log = said(&[("q1\n\nq2", "a2\n\na3")]);
        for texts in [&["q1", "q2", "a2", "a3"][..], &["q2", "a2", "a3"], &["a3"]] {
            assert_eq!(known_of(&log, texts, None), texts.len(), "{texts:?}");
        }
        assert_eq!(known_of(&log, &["2", "a3"], None), 0);
    }

    #[test]
    fn a_question_that_was_put_there_before_it_is_asked_is_answered_where_it_stands() {
        let log = said(&[("q1", "a1"), ("q2", "")]);
        assert_eq!(known_of(&log, &["q1", "a1"], Some("q2")), 2);
        assert_eq!(standing("tag", &log, Some("q2")).request_id.as_deref(), Some("r1"));
        assert!(standing("tag", &log, Some("q3")).request_id.is_none());
        assert_eq!(standing("tag", &log, None).after, Some(turn_of("tag", "r0")));
    }

    #[test]
    fn calls_are_kept_with_what_they_gave() {
        let call = |id: &str| ClientCall {
            id: id.to_owned(),
            name: "get".to_owned(),
            arguments: serde_json::json!({}),
        };
        let gave = |id: &str| ClientResult { id: id.to_owned(), text: "rain".to_owned() };
        let listed = [
            ListedWhat::Query("q".to_owned()),
            ListedWhat::Call(call("c1")),
            ListedWhat::Result(gave("c1")),
            ListedWhat::Result(gave("c2")),
            ListedWhat::Said("a".to_owned()),
        ];
        let made = exchanges(&listed, 100).unwrap();
        assert_eq!(made.len(), 1);
        let replies: Vec<(ReplyFrom, Option<usize>)> =
            made[0].1.iter().map(|it| (it.from, it.step)).collect();
        assert_eq!(replies, [(ReplyFrom::Tool, Some(0)), (ReplyFrom::Ai, None)]);
        assert!(exchanges(&[ListedWhat::Query("long".to_owned())], 3).is_err());
    }
}
