//! Tools that the client has and runs itself: a turn whose model calls some ends with these calls, for now, and goes on with
//! the results, which come with the client's next request.
//!
//! Each call has a name of ours that leads back to its turn. A client that sends results again, be it with the whole list of its
//! messages, finds the turn that they belong to, and nothing is remembered twice. What no turn here knows belongs to a new one
//! and is remembered with it. What is easy to get wrong: results are as little believed as those of other tools.

use std::time::Duration;

use confidant_model::{Step, ToolCall, fresh_fence};
use ring::digest::{SHA256, digest};

use super::cancel::Entered;
use super::client_tools::{ClientCall, ClientResult, ClientStep, may_be_the_clients};
use super::outbound::{Final, MemoryState, Metadata};
use super::request::{Inbound, TurnRequest};
use crate::approval::Work;
use crate::clock::Millis;
use crate::error::Error;
use crate::fence::tool_said;
use crate::ledger::checkpoint::Exchange;
use crate::ledger::session::{Held, Session};
use crate::tools::ToolOutput;

/// Refuses what nobody could tell from our own tools.
pub(super) fn check(request: &TurnRequest) -> Result<(), Error> {
    let calls = request.steps.iter().flat_map(|step| &step.calls).map(|call| &call.name);
    let mut names = request.tools.iter().map(|tool| &tool.name).chain(calls);
    if !names.all(|name| may_be_the_clients(name)) {
        return Err(invalid(
            "a tool of the client has a name that it may not have",
            "use up to 64 letters, digits, dashes and underscores, and not `capture_concepts`",
        ));
    }
    if request.tools.len() > MOST_TOOLS || request.steps.len() > MOST_STEPS {
        return Err(invalid("there are too many tools or calls", "send up to 128 of each"));
    }
    Ok(())
}

/// Until when handed calls are waited for.
pub(super) fn until(now: Millis) -> Millis {
    now.plus(WAITS)
}

/// What the client hears of work that waits for it: the words since it last heard, and the calls.
pub(super) fn told(tag: &str, request_id: &str, work: &Work) -> (String, Vec<ClientCall>) {
    let from = work.handed.as_ref().map_or(0, |handed| handed.from);
    let texts = work.steps().skip(from).map(|(text, _)| text).filter(|text| !text.trim().is_empty());
    let text = texts.collect::<Vec<_>>().join("\n\n");
    let named = |(at, call): (usize, &ToolCall)| ClientCall {
        id: call_id(tag, request_id, (work.done.len(), at)),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    (text, handed_calls(work).map(named).collect())
}

/// The calls that the client was handed, with their places.
fn handed_calls(work: &Work) -> impl Iterator<Item = (usize, &ToolCall)> {
    let current = work.current.as_ref().filter(|_| work.handed.is_some());
    let calls = current.into_iter().flat_map(|current| current.calls.iter().zip(&current.results));
    let open =
        calls.enumerate().filter(|(_, (call, result))| result.is_none() && may_be_the_clients(&call.name));
    open.map(|(at, (call, _))| (at, call))
}

/// The tools of the client that work waits for.
pub(super) fn names(work: &Work) -> String {
    handed_calls(work).map(|(_, call)| call.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What a turn that waits for its client comes to, for now, from the log.
pub(super) fn recorded(session: &Session, exchange: &Exchange) -> Option<Final> {
    exchange.handed()?;
    let work = exchange.work()?;
    let (content, calls) = told(&session.tag(), &exchange.request_id, work);
    let mut metadata = Box::new(Metadata::new(MemoryState::Kept, exchange.audience));
    metadata.replayed = true;
    metadata.model = Some(work.model.clone()).filter(|model| !model.is_empty());
    metadata.calls = calls;
    Some(Final { request_id: exchange.request_id.clone(), content, metadata })
}

/// Finds the turn that the client goes on with, and makes the request one of that turn; the name under which it can be cancelled
/// comes back.
pub(super) async fn find(
    session: &Session,
    held: &mut Held<'_>,
    inbound: &mut Inbound,
) -> Result<Option<Entered>, Error> {
    if inbound.request.steps.is_empty() {
        return Ok(None);
    }
    let (tag, ids) = (session.tag(), result_ids(&inbound.request.steps));
    let meant = |id: &str| ids.contains(&turn_of(&tag, id).as_str());
    let log = held.fresh().await?.map(crate::ledger::log::Log::checkpoint);
    let Some((log, request_id)) = log.and_then(|log| Some((log, log.named(meant)?.to_owned()))) else {
        begun(inbound, 0)?;
        return Ok(None);
    };
    if let Some(exchange) = log.exchange(&request_id) {
        inbound.audience = exchange.audience;
        inbound.request.query.clone_from(&exchange.content);
        inbound.tokens = exchange.tokens.unwrap_or(inbound.tokens);
    }
    let named = session.inner.cancels.add_name(session.names.scope, &request_id);
    inbound.request_id = request_id;
    Ok(named)
}

/// The work of a turn that waits for its client, with what the client gave. `None`: it does not wait for that.
pub(super) fn with_results(
    session: &Session,
    exchange: &Exchange,
    steps: &[ClientStep],
) -> Result<Option<Work>, Error> {
    let Some(work) = exchange.work().filter(|work| work.handed.is_some()) else { return Ok(None) };
    let (tag, mut work) = (session.tag(), work.clone());
    let given = |at: usize| {
        let id = call_id(&tag, &exchange.request_id, (work.done.len(), at));
        steps.iter().flat_map(|step| &step.results).find(|result| result.id == id)
    };
    let found: Vec<(usize, Option<&ClientResult>)> =
        handed_calls(&work).map(|(at, _)| (at, given(at))).collect();
    if found.iter().all(|(_, result)| result.is_none()) {
        return Ok(None);
    }
    if found.iter().any(|(_, result)| result.is_none()) {
        let hint = "send a result for each of the calls, at once";
        return Err(invalid("some of the calls that were handed to the client have no result", hint));
    }
    let most = session.inner.ledger.settings.tools.max_result_bytes;
    let results: Vec<(usize, String)> =
        found.into_iter().filter_map(|(at, result)| Some((at, read(&result?.text, most)))).collect();
    let Some(current) = &mut work.current else { return Ok(None) };
    for (at, result) in results {
        current.results[at] = Some(result);
    }
    work.handed = None;
    Ok(Some(work))
}

/// The work that a new turn begins with: what the client sent along of it. Of a result, no more than so many bytes are read.
pub(super) fn begun(inbound: &Inbound, most: usize) -> Result<Option<Work>, Error> {
    let steps = &inbound.request.steps;
    if steps.is_empty() {
        return Ok(None);
    }
    let whole = |step: &ClientStep| {
        let has_result = |call: &ClientCall| step.results.iter().any(|result| result.id == call.id);
        !step.calls.is_empty() && step.calls.iter().all(has_result)
    };
    if inbound.request.query.trim().is_empty() || !steps.iter().all(whole) {
        let hint = "send the message of the user and the calls along with their results";
        return Err(invalid("no turn here waits for these results", hint));
    }
    let done: Vec<Step> = steps.iter().map(|step| step_of(step, most)).collect();
    Ok(Some(Work { told: done.len(), brought: true, done, ..Work::default() }))
}

fn step_of(step: &ClientStep, most: usize) -> Step {
    let result = |call: &ClientCall| step.results.iter().find(|result| result.id == call.id);
    let results = step.calls.iter().map(|call| result(call).map_or("", |result| result.text.as_str()));
    let call = |call: &ClientCall| ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        signatures: Vec::new(),
    };
    Step {
        text: step.text.clone(),
        calls: step.calls.iter().map(call).collect(),
        results: results.map(|text| read(text, most)).collect(),
    }
}

/// A result as a model reads it.
pub(super) fn read(text: &str, most: usize) -> String {
    let output = ToolOutput { text: text.to_owned(), failed: false, cut: false };
    tool_said(&fresh_fence(), &output, most)
}

/// What the names of the newest results say about their turn.
fn result_ids(steps: &[ClientStep]) -> Vec<&str> {
    let results = steps.last().map_or(&[][..], |step| &step.results);
    results.iter().filter_map(|result| turn_of_call(&result.id)).collect()
}

/// What the name of a call says about its turn.
pub(super) fn turn_of_call(id: &str) -> Option<&str> {
    id.strip_prefix(ID)?.get(..TURN)
}

/// The name of a call: its turn, then its place. `OpenAI` allows 40 characters.
pub(super) fn call_id(tag: &str, request_id: &str, (step, at): (usize, usize)) -> String {
    format!("{ID}{}{step:04x}{at:02x}", turn_of(tag, request_id))
}

pub(super) fn turn_of(tag: &str, request_id: &str) -> String {
    let whole = serde_json::json!([tag, request_id]).to_string();
    hex::encode(&digest(&SHA256, whole.as_bytes()).as_ref()[..TURN / 2])
}

fn invalid(what: &str, hint: &str) -> Error {
    Error::Invalid { what: what.to_owned(), hint: hint.to_owned() }
}

const ID: &str = "call_";
/// Digits of a turn in the name of a call.
const TURN: usize = 24;
/// As long as an approval waits by default: somebody may have to look at what the client does.
const WAITS: Duration = Duration::from_secs(86_400);
const MOST_TOOLS: usize = 128;
/// Of one turn: whoever calls more often is not coming to an end.
pub(super) const MOST_STEPS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::{Current, Handed};

    fn call(name: &str) -> ToolCall {
        ToolCall { id: "c".into(), name: name.into(), arguments: serde_json::json!({}), signatures: vec![] }
    }

    #[test]
    fn the_names_of_our_tools_are_not_the_clients() {
        let names = ["get_weather", "a-b", "files.read", "", crate::concepts::NAME, "größe"];
        assert_eq!(names.map(may_be_the_clients), [true, true, false, false, false, false]);
        assert!(!may_be_the_clients(&"x".repeat(65)));
    }

    #[test]
    fn the_client_hears_what_it_has_not_heard_and_its_own_calls() {
        let step = |text: &str| Step { text: text.into(), calls: vec![call("a")], results: vec!["r".into()] };
        let mut current = Current::new("third".into(), vec![call("files.read"), call("a"), call("b")]);
        current.results[0] = Some("read".into());
        current.results[1] = Some("known".into());
        let handed = Some(Handed { until: Millis(1), from: 1 });
        let work = Work {
            done: vec![step("first"), step("second")],
            current: Some(current),
            handed,
            told: 3,
            ..Work::default()
        };
        let (text, calls) = told("tag", "r1", &work);
        assert_eq!(text, "second\n\nthird");
        assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["b"]);
        let id = &calls[0].id;
        assert!(id.len() <= 40 && id[ID.len()..].starts_with(&turn_of("tag", "r1")), "{id}");
        assert_ne!(turn_of("tag", "r1"), turn_of("other", "r1"));
        assert!(handed_calls(&Work { handed: None, ..work }).next().is_none());
    }
}
