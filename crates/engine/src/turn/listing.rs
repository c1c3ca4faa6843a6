//! A conversation as applications list it: item by item, each with a place that a name can be made of.
//!
//! Nothing here is kept: a place follows from the log, and is the same for as long as the log has the item. A turn that hands out
//! calls is several answers to its client. Each begins with a step of the turn, and all that the agent says in one of them is one
//! message. What is easy to get wrong: a call of a tool of ours is no item, since a client could not send it back.

use std::collections::BTreeMap;

use confidant_display::debug_without_content;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::calls::NOT_CALLED;
use super::client_tools::{ClientCall, ClientResult, may_be_the_clients};
use super::commit;
use super::handed::{call_id, turn_of};
use super::request::Inbound;
use super::usage::TokenUsage;
use crate::approval::Work;
use crate::clock::Millis;
use crate::error::Error;
use crate::fence::unfenced;
use crate::head::Lacks;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::{Checkpoint, Exchange, Outcome};
use crate::ledger::entry::{Entry, Label, Reply, ReplyFrom};
use crate::ledger::session::{self, Session, Wrote};

/// A conversation, turn by turn.
#[derive(Clone)]
pub struct Listing {
    /// When it began, as far as that is known.
    pub created_at: Millis,
    /// What an application attached to it.
    pub labels: BTreeMap<String, String>,
    /// Oldest first; those that wait for something last.
    pub turns: Vec<ListedTurn>,
    /// Messages that decided something, by their marks, with the turn that they decided.
    decided: Vec<(String, String)>,
}

/// A turn of a conversation.
#[derive(Clone)]
pub struct ListedTurn {
    /// Its name in the engine.
    pub request_id: String,
    /// Its name in the names of its items.
    pub mark: String,
    /// How it stands.
    pub state: TurnState,
    /// When it was asked.
    pub asked_at: Millis,
    /// When it was answered, if it was.
    pub answered_at: Option<Millis>,
    /// The model that answered.
    pub model: Option<String>,
    /// What an application attached to its answers, by the steps that these begin with.
    pub labels: BTreeMap<usize, ListedLabel>,
    /// What was said and done, in its order.
    pub items: Vec<ListedItem>,
}

/// What belongs to one of the answers of a turn, for the application alone.
#[derive(Clone)]
pub struct ListedLabel {
    /// When the answer was asked for.
    pub asked_at: Millis,
    /// The names, each with its value.
    pub values: BTreeMap<String, String>,
    /// How it was asked for, as the request said. Only the newest answers have it.
    pub asked_for: Option<Value>,
    /// When it was there, if it is.
    pub done_at: Option<Millis>,
    /// What was spent on it, as far as that is known.
    pub usage: Option<TokenUsage>,
}

/// How a turn stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// Somebody works on it.
    Running,
    /// It waits for the results of the client's calls.
    Handed,
    /// It waits for somebody's decision.
    Asked,
    /// It has an answer.
    Answered,
    /// It was called off.
    Cancelled,
    /// It ended without an answer; a word says why.
    Failed(String),
}

/// One of the answers of a turn.
#[derive(Clone, Copy, Debug)]
pub struct ListedAnswer<'t> {
    /// What it was given.
    pub given: &'t [ListedItem],
    /// What it is.
    pub told: &'t [ListedItem],
    /// Whether it is the one that the turn is at.
    pub is_last: bool,
}

/// One item.
#[derive(Clone)]
pub struct ListedItem {
    /// Where it stands in its turn. No other item of its kind has this place.
    pub place: Place,
    /// What it is.
    pub what: ListedWhat,
}

/// What an item is.
#[derive(Clone)]
pub enum ListedWhat {
    /// What the person said.
    Query(String),
    /// What the agent said.
    Said(String),
    /// A call that the client was handed.
    Call(ClientCall),
    /// What it gave.
    Result(ClientResult),
}

/// A place in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u16);

impl Place {
    /// That of what the person said.
    pub const QUERY: Self = Self(0);

    /// That of the agent's message in the answer that begins with this step.
    #[must_use]
    pub fn message(step: usize) -> Self {
        Self::of(step, 1)
    }

    /// That of a call, and of its result.
    #[must_use]
    pub fn call(step: usize, at: usize) -> Self {
        Self::of(step, at)
    }

    /// That of a message which an application recorded beside the answer.
    fn beside(index: usize) -> Self {
        Self::of(index, 2)
    }

    fn of(step: usize, at: usize) -> Self {
        let step = u16::try_from(step.min(LAST_STEP)).unwrap_or_default();
        Self((step << 4) | u16::try_from(at & 0xf).unwrap_or_default())
    }

    /// The step, where it is one of a call or a result.
    #[must_use]
    pub fn step(self) -> usize {
        usize::from(self.0 >> 4)
    }
}

/// More than any turn has.
const LAST_STEP: usize = 0xfff;

impl Session {
    /// The name of a turn in the names of its items. It leads nowhere without the session.
    #[must_use]
    pub fn mark(&self, request_id: &str) -> String {
        turn_of(&self.tag(), request_id)
    }

    /// The conversation, item by item; `None` if there is no such session. The access goes into the audit log.
    pub fn listing(&self) -> BoxFuture<'_, Result<Option<Listing>, Error>> {
        Box::pin(async move {
            let Some((log, _)) = session::open(self).await? else { return Ok(None) };
            // Recorded before anything is handed out.
            self.inner.ledger.record(self.record(Action::SessionViewed).counting(log.version())).await?;
            Ok(Some(listing(&self.tag(), log.checkpoint(), self.inner.ledger.now())))
        })
    }

    /// Whether the log knows a turn of this mark, so that results of its calls go on with it.
    pub fn has_turn<'a>(&'a self, mark: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let (mut held, tag) = (self.lock().await?, self.tag());
            let log = held.fresh().await?;
            Ok(log.is_some_and(|log| log.checkpoint().named(|id| turn_of(&tag, id) == mark).is_some()))
        })
    }

    /// Attaches names and values to the conversation, in the place of those before, and says when. Makes the session if there is none.
    pub fn label(&self, values: BTreeMap<String, String>) -> BoxFuture<'_, Result<Millis, Error>> {
        Box::pin(async move {
            let mut held = self.lock().await?;
            let label = Label { values, ..Label::default() };
            loop {
                held.log().await?;
                let (owner, at) = (held.owner(), self.inner.ledger.now());
                let entry = Entry::Labelled { at, label: label.clone() };
                if held.write(vec![entry], owner, self.record(Action::SessionChoice)).await? == Wrote::Done {
                    return Ok(at);
                }
            }
        })
    }
}

impl Listing {
    /// The turn of this mark, or the one that the message of this mark decided.
    #[must_use]
    pub fn turn(&self, mark: &str) -> Option<&ListedTurn> {
        let named = |mark: &str| self.turns.iter().find(|turn| turn.mark == mark);
        let decided = || self.decided.iter().rev().find(|(said_as, _)| said_as == mark);
        named(mark).or_else(|| named(&decided()?.1))
    }
}

impl ListedTurn {
    /// The answer that begins with this step; nothing if none does.
    #[must_use]
    pub fn answer(&self, step: usize) -> Option<ListedAnswer<'_>> {
        let is_given = |item: &ListedItem| matches!(item.what, ListedWhat::Query(_) | ListedWhat::Result(_));
        let is_result_before =
            |item: &ListedItem| matches!(item.what, ListedWhat::Result(_)) && item.place.step() + 1 == step;
        let (from, until) = if step == 0 {
            (0, self.items.iter().take_while(|item| matches!(item.what, ListedWhat::Query(_))).count())
        } else {
            let from = self.items.iter().position(is_result_before)?;
            (from, from + self.items[from..].iter().take_while(|item| is_result_before(item)).count())
        };
        let rest = &self.items[until..];
        let end = rest.iter().position(is_given).unwrap_or(rest.len());
        Some(ListedAnswer { given: &self.items[from..until], told: &rest[..end], is_last: end == rest.len() })
    }
}

/// Whether the log stands where a turn says that it does; no look at what is not warm.
pub(super) fn follows(session: &Session, log: Option<&Checkpoint>, inbound: &Inbound) -> Result<(), Error> {
    let Some(after) = &inbound.request.after else { return Ok(()) };
    if log.is_some_and(|log| is_newest(&session.tag(), log, after)) {
        return Ok(());
    }
    Err(Error::History(Lacks::Differs))
}

/// Whether the newest turn has this mark, or was decided by a message that has it.
pub(super) fn is_newest(tag: &str, log: &Checkpoint, mark: &str) -> bool {
    let is_it = |id: &str| turn_of(tag, id) == mark;
    newest(log).is_some_and(|newest| {
        let decided =
            || log.decided_messages().any(|(said_as, turn)| turn == newest.request_id && is_it(said_as));
        is_it(&newest.request_id) || decided()
    })
}

/// The turn that was last asked of those that have not failed: nobody goes on with one that has.
pub(super) fn newest(log: &Checkpoint) -> Option<&Exchange> {
    let has_failed = |exchange: &&Exchange| matches!(exchange.outcome, Outcome::Failed { .. });
    let last = log.exchanges().iter().rev().find(|exchange| !has_failed(exchange));
    let waits = log.waiting().iter().max_by_key(|exchange| exchange.at);
    match (last, waits) {
        (Some(last), Some(waits)) if last.at > waits.at => Some(last),
        (last, waits) => waits.or(last),
    }
}

fn listing(tag: &str, log: &Checkpoint, now: Millis) -> Listing {
    let labelled = log.labels().of_conversation();
    let first = log.all().map(|exchange| exchange.at).min();
    let created_at = labelled.map(|(at, _)| at).into_iter().chain(first).min().unwrap_or(now);
    let decided = log.decided_messages();
    Listing {
        created_at,
        labels: labelled.map(|(_, values)| values.clone()).unwrap_or_default(),
        turns: log.all().map(|exchange| listed(tag, log, exchange)).collect(),
        decided: decided.map(|(said_as, turn)| (turn_of(tag, said_as), turn_of(tag, turn))).collect(),
    }
}

fn listed(tag: &str, log: &Checkpoint, exchange: &Exchange) -> ListedTurn {
    let (answered_at, model) = match &exchange.outcome {
        Outcome::Answered { at, .. } => (Some(*at), exchange.answer().map(|reply| reply.name.clone())),
        _ => (None, exchange.work().map(|work| work.model.clone())),
    };
    let labels = log.labels().of_turn(&exchange.request_id);
    ListedTurn {
        request_id: exchange.request_id.clone(),
        mark: turn_of(tag, &exchange.request_id),
        state: state(exchange),
        asked_at: exchange.at,
        answered_at,
        model: model.filter(|model| !model.is_empty()),
        labels: labels.map(|(asked_at, label)| (label.step, listed_label(asked_at, label))).collect(),
        items: items(tag, exchange),
    }
}

fn listed_label(asked_at: Millis, label: &Label) -> ListedLabel {
    ListedLabel {
        asked_at,
        values: label.values.clone(),
        asked_for: label.asked_for.clone(),
        done_at: label.done.map(|done| done.at),
        usage: label.done.and_then(|done| done.usage),
    }
}

fn state(exchange: &Exchange) -> TurnState {
    match &exchange.outcome {
        Outcome::Open { .. } => TurnState::Running,
        Outcome::Waiting { .. } if exchange.handed().is_some() => TurnState::Handed,
        Outcome::Waiting { .. } => TurnState::Asked,
        Outcome::Answered { .. } => TurnState::Answered,
        Outcome::Failed { .. } if exchange.is_cancelled() => TurnState::Cancelled,
        Outcome::Failed { reason, .. } => TurnState::Failed(reason.clone()),
    }
}

/// What an exchange has for its client.
pub(super) fn items(tag: &str, exchange: &Exchange) -> Vec<ListedItem> {
    let mut list = List { tag, request_id: &exchange.request_id, ..List::default() };
    if !exchange.content.is_empty() {
        list.items
            .push(ListedItem { place: Place::QUERY, what: ListedWhat::Query(exchange.content.clone()) });
    }
    match &exchange.outcome {
        Outcome::Answered { replies, .. } => list.replies(replies),
        _ => exchange.work().into_iter().for_each(|work| list.work(work)),
    }
    if let Some(asked) = exchange.approval().and_then(|_| commit::asked(exchange)) {
        list.words.push(asked.question);
    }
    list.end();
    list.items
}

/// A list in the making.
#[derive(Default)]
struct List<'e> {
    tag: &'e str,
    request_id: &'e str,
    items: Vec<ListedItem>,
    /// What the agent said that is not in the list yet.
    words: Vec<String>,
    /// What the calls of the current step gave.
    results: Vec<ListedItem>,
    /// The step of the last calls in the list.
    called: Option<usize>,
}

impl List<'_> {
    fn replies(&mut self, replies: &[Reply]) {
        let last = replies.iter().rposition(|reply| reply.from == ReplyFrom::Ai && reply.step.is_none());
        let (mut step, mut at) = (None, 0);
        for (index, reply) in replies.iter().enumerate() {
            match (reply.from, reply.step) {
                (ReplyFrom::Ai, Some(_)) => self.words.push(reply.content.clone()),
                (ReplyFrom::Ai, None) if Some(index) == last => {
                    self.words.push(reply.content.clone());
                    self.say();
                }
                (ReplyFrom::Ai, None) => {
                    self.close();
                    let what = ListedWhat::Said(reply.content.clone());
                    self.items.push(ListedItem { place: Place::beside(index), what });
                }
                // Of those that were kept before steps were, nobody knows the names.
                (ReplyFrom::Tool, Some(this)) => {
                    at = if step == Some(this) { at + 1 } else { 0 };
                    step = Some(this);
                    let arguments = reply.arguments.as_ref().unwrap_or(&Value::Null);
                    self.call((this, at), &reply.name, arguments, Some(&reply.content));
                }
                (ReplyFrom::Tool, None) | (ReplyFrom::Summary | ReplyFrom::Quoted, _) => {}
            }
        }
    }

    fn work(&mut self, work: &Work) {
        for (step, done) in work.done.iter().enumerate() {
            self.hear(step < work.told, &done.text);
            for (at, (call, result)) in done.calls.iter().zip(&done.results).enumerate() {
                self.call((step, at), &call.name, &call.arguments, Some(result));
            }
        }
        let step = work.done.len();
        // Before it is handed to the client, it may yet be another.
        let Some(current) = work.current.as_ref().filter(|_| step < work.told) else { return };
        self.hear(true, &current.text);
        for (at, (call, result)) in current.calls.iter().zip(&current.results).enumerate() {
            self.call((step, at), &call.name, &call.arguments, result.as_deref());
        }
    }

    fn hear(&mut self, is_told: bool, text: &str) {
        if is_told && !text.trim().is_empty() {
            self.words.push(text.to_owned());
        }
    }

    fn call(&mut self, (step, at): (usize, usize), name: &str, arguments: &Value, result: Option<&str>) {
        let is_made = result.is_none_or(|result| !result.starts_with(NOT_CALLED));
        if !may_be_the_clients(name) || !is_made {
            return;
        }
        if self.called != Some(step) {
            self.close();
            self.say();
            self.called = Some(step);
        }
        let (id, place) = (call_id(self.tag, self.request_id, (step, at)), Place::call(step, at));
        if let Some(result) = result {
            let result = ClientResult { id: id.clone(), text: unfenced(result).to_owned() };
            self.results.push(ListedItem { place, what: ListedWhat::Result(result) });
        }
        let call = ClientCall { id, name: name.to_owned(), arguments: arguments.clone() };
        self.items.push(ListedItem { place, what: ListedWhat::Call(call) });
    }

    /// Puts what the calls gave behind them.
    fn close(&mut self) {
        self.items.append(&mut self.results);
    }

    /// Puts what the agent said into the list, as the message of the answer that it belongs to.
    fn say(&mut self) {
        if self.words.is_empty() {
            return;
        }
        self.close();
        let text = std::mem::take(&mut self.words).join("\n\n");
        let place = Place::message(self.called.map_or(0, |step| step + 1));
        self.items.push(ListedItem { place, what: ListedWhat::Said(text) });
    }

    fn end(&mut self) {
        self.close();
        self.say();
    }
}

debug_without_content!(Listing, ListedTurn, ListedLabel, ListedItem, ListedWhat);

#[cfg(test)]
mod tests {
    use confidant_model::fresh_fence;
    use serde_json::json;

    use super::*;
    use crate::audience::Audience;
    use crate::fence::tool_said;
    use crate::tools::ToolOutput;

    fn tool(step: usize, name: &str, said: &str) -> Reply {
        let output = ToolOutput { text: said.to_owned(), failed: false, cut: false };
        let content = tool_said(&fresh_fence(), &output, 1000);
        let (from, arguments, step) = (ReplyFrom::Tool, Some(json!({})), Some(step));
        Reply { from, arguments, step, ..Reply::ai(content, None, name.to_owned()) }
    }

    fn words(step: Option<usize>, text: &str) -> Reply {
        Reply { step, ..Reply::ai(text.to_owned(), None, "m".to_owned()) }
    }

    fn exchange(id: &str, replies: Vec<Reply>) -> Exchange {
        let outcome = Outcome::Answered { at: Millis(2), replies };
        let (given, stand) = (None, None);
        let (request_id, content) = (id.to_owned(), "q".to_owned());
        Exchange {
            request_id,
            at: Millis(1),
            audience: Audience::Private,
            content,
            tokens: None,
            given,
            stand,
            scored: false,
            outcome,
        }
    }

    fn shape(items: &[ListedItem]) -> Vec<(u16, String)> {
        let of = |item: &ListedItem| match &item.what {
            ListedWhat::Query(text) => format!("query {text}"),
            ListedWhat::Said(text) => format!("said {text}"),
            ListedWhat::Call(call) => format!("call {}", call.name),
            ListedWhat::Result(result) => format!("result {}", result.text),
        };
        items.iter().map(|item| (item.place.0, of(item))).collect()
    }

    #[test]
    fn what_the_client_did_is_listed_and_our_own_tools_are_not() {
        let replies = vec![
            words(Some(0), "looking"),
            tool(0, "files.read", "ours"),
            words(Some(1), "asking"),
            tool(1, "get_weather", "rain"),
            tool(1, "get_time", "noon"),
            words(None, "done"),
        ];
        let turn = exchange("r1", replies);
        let items = items("tag", &turn);
        let expected = [
            (0, "query q"),
            (1, "said looking\n\nasking"),
            (0x10, "call get_weather"),
            (0x11, "call get_time"),
            (0x10, "result rain"),
            (0x11, "result noon"),
            (0x21, "said done"),
        ];
        assert_eq!(shape(&items), expected.map(|(place, text)| (place, text.to_owned())));
        // The names are those that the calls were handed out under.
        let ListedWhat::Call(call) = &items[2].what else { panic!("not a call") };
        assert_eq!(call.id, call_id("tag", "r1", (1, 0)));
        let mut log = Checkpoint::default();
        log.apply(Entry::Labelled { at: Millis(1), label: Label::default() }).unwrap();
        let listed = listed("tag", &log, &turn);
        let first = listed.answer(0).unwrap();
        assert_eq!((first.given.len(), first.told.len(), first.is_last), (1, 3, false));
        let second = listed.answer(2).unwrap();
        assert_eq!((second.given.len(), second.is_last), (2, true));
        assert_eq!(shape(second.told), [(0x21, "said done".to_owned())]);
        assert!(listed.answer(1).is_none() && listed.answer(3).is_none());
    }

    #[test]
    fn what_an_application_recorded_has_places_of_its_own() {
        let items = items("tag", &exchange("r1", vec![words(None, "one"), words(None, "two")]));
        let places: Vec<u16> = items.iter().map(|item| item.place.0).collect();
        assert_eq!(places, [0, 2, 1]);
    }

    #[test]
    fn the_newest_turn_is_the_last_one_that_has_not_failed() {
        let mut log = Checkpoint::default();
        let ask = |id: &str| Entry::Accepted {
            request_id: id.to_owned(),
            at: Millis(1),
            audience: Audience::Private,
            content: "q".to_owned(),
            tokens: None,
        };
        assert!(newest(&log).is_none());
        log.apply(ask("r1")).unwrap();
        let replies = vec![words(None, "a")];
        log.apply(Entry::Answered { request_id: "r1".into(), at: Millis(2), replies }).unwrap();
        log.apply(ask("r2")).unwrap();
        log.apply(Entry::Failed { request_id: "r2".into(), at: Millis(3), reason: "model".into() }).unwrap();
        let mark = |id: &str| turn_of("tag", id);
        assert!(is_newest("tag", &log, &mark("r1")) && !is_newest("tag", &log, &mark("r2")));
        assert!(!is_newest("other", &log, &mark("r1")), "a mark is one of its session");
    }
}
