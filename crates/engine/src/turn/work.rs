//! The calls of one step: which are made, which are refused, which wait for somebody.
//!
//! Calls that only look, or that do no harm twice, run side by side. One that changes something goes out after an entry
//! of the log that says so, so that a process that ends in between leaves a trace, and nobody makes the call again
//! without knowing. What is easy to get wrong: the rules are asked here, at the call, whatever was offered before.

use confidant_model::{ToolCall, ToolUse};
use confidant_prepare::Prepared;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;

use super::asking::{self, Asking};
use super::calls::text_of;
use super::client_tools::may_be_the_clients;
use super::compose::Gathered;
use super::outlet::Outlet;
use super::prepare::{Whose, needs_log};
use super::request::Restore;
use super::{focus, handed, remember};
use crate::approval::{Approval, Current, Decision, Handed, Work, canonical};
use crate::aspects::{Situation, Slot};
use crate::audience::Audience;
use crate::concepts;
use crate::error::Error;
use crate::fence::tool_said;
use crate::inner::Inner;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::Exchange;
use crate::ledger::entry::Entry;
use crate::ledger::session::{Held, Session, Wrote};
use crate::tools::{Effect, Invocation, Tool, ToolError, ToolOutput, Verdict, misfit};

/// Where a turn's calls are made: on whose behalf, with what.
pub(super) struct Desk<'d, 'h> {
    pub(super) inner: &'d Inner,
    pub(super) whose: &'d Whose<'d>,
    pub(super) session: Option<&'d Session>,
    /// The session's log; a turn without memory has none, and makes no call that needs one.
    pub(super) held: Option<&'d mut Held<'h>>,
    pub(super) request_id: &'d str,
    pub(super) audience: Audience,
    /// How far back the turn may look.
    pub(super) restore: Option<Restore>,
    /// What the model was offered: nothing else exists.
    pub(super) offered: &'d [Tool],
    pub(super) outlet: &'d Outlet,
    /// What the turn is made of, for what a focus mode has to say in it.
    pub(super) gathered: &'d Gathered,
    pub(super) prepared: Option<&'d Prepared>,
    /// What the person's device may be asked for.
    pub(super) asking: &'d Asking,
}

/// How far a step got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Every call has its result.
    Done,
    /// One waits for a decision, or some for the client, as the work says.
    Waits,
}

/// What is to become of a call.
enum Fate {
    /// It gets this result and is not made.
    Refused(String),
    /// It is made. Whether once matters is its effect.
    Made(Effect),
    /// Somebody must decide first.
    Asked(Approval),
    /// The client makes it.
    Handed,
}

impl Desk<'_, '_> {
    /// Brings the current step to its end, or to the next thing that somebody must decide.
    pub(super) async fn finish_step(&mut self, work: &mut Work) -> Result<Step, Error> {
        if work.current.is_some() {
            // Nothing is done on a guess.
            self.outlet.opened().await;
        }
        self.take_up(work).await?;
        let Some(current) = &mut work.current else { return Ok(Step::Done) };
        if current.calls.len() > MOST_CALLS {
            for result in &mut current.results[MOST_CALLS..] {
                *result = Some(TOO_MANY.to_owned());
            }
        }
        self.look(work.done.len(), current).await;
        while let Some(at) = work.current.as_ref().and_then(Current::next) {
            let Some(call) = work.current.as_ref().map(|current| current.calls[at].clone()) else { break };
            let result = match self.fate(&call) {
                Fate::Refused(why) => why,
                Fate::Made(_) => self.make_once(work, at, &call).await?,
                Fate::Asked(_) if self.held.as_deref().map_or(0, |held| held.pending()) >= MOST_PENDING => {
                    TOO_MANY_WAIT.to_owned()
                }
                Fate::Asked(approval) => {
                    work.approval = Some(approval);
                    return Ok(Step::Waits);
                }
                Fate::Handed => {
                    let until = handed::until(self.inner.ledger.now());
                    work.handed = Some(Handed { until, from: work.told });
                    work.told = work.done.len() + 1;
                    return Ok(Step::Waits);
                }
            };
            set(work, at, result);
        }
        if let Some(current) = work.current.take() {
            work.done.push(current.into_step());
        }
        work.knows_settings |= self.asking.has_given();
        Ok(Step::Done)
    }

    /// What was decided, or went out before a process ended, comes first.
    async fn take_up(&mut self, work: &mut Work) -> Result<(), Error> {
        if let Some(at) = work.calling.take() {
            work.approval = None;
            set(work, at, OUTCOME_UNKNOWN.to_owned());
        }
        let Some(approval) = work.approval.take() else { return Ok(()) };
        let Some((at, call)) = work.waiting_call().map(|(at, call)| (at, call.clone())) else {
            return Ok(());
        };
        let decision = approval.decided.as_ref().map(|decided| decided.decision);
        let result = match decision {
            // Nobody decided: the call is looked at again like any other.
            None => return Ok(()),
            Some(Decision::Deny) => DENIED.to_owned(),
            Some(Decision::Approve) if !approval.is_of(&call) => NOT_AS_SHOWN.to_owned(),
            Some(Decision::Approve) => match self.fate(&call) {
                Fate::Refused(why) => why,
                Fate::Made(_) | Fate::Asked(_) => self.make_once(work, at, &call).await?,
                // It was a tool of ours when it was approved, and the client has one of that name now.
                Fate::Handed => NOT_AS_SHOWN.to_owned(),
            },
        };
        set(work, at, result);
        Ok(())
    }

    /// Makes the calls of a step that may be made side by side.
    async fn look(&self, step: usize, current: &mut Current) {
        // Boxed one by one: the compiler cannot see that a stream of these borrows may be sent.
        let mut ready: Vec<BoxFuture<'_, (usize, String)>> = Vec::new();
        for (at, call) in current.calls.iter().enumerate() {
            if current.results[at].is_none()
                && let Fate::Made(Effect::Reads | Effect::WritesOnce) = self.fate(call)
            {
                ready.push(Box::pin(async move { (at, self.call((step, at), call).await) }));
            }
        }
        let parallel = self.inner.ledger.settings.tools.max_parallel.max(1);
        let results: Vec<(usize, String)> = stream::iter(ready).buffer_unordered(parallel).collect().await;
        for (at, result) in results {
            current.results[at] = Some(result);
        }
    }

    fn fate(&self, call: &ToolCall) -> Fate {
        if self.gathered.tools.iter().any(|tool| tool.name == call.name) {
            return match self.gathered.tool_use() {
                Some(ToolUse::Nothing) => Fate::Refused(NOT_NOW.to_owned()),
                _ => Fate::Handed,
            };
        }
        let Some(tool) = self.offered.iter().find(|tool| tool.spec.name == call.name) else {
            return Fate::Refused(format!("Not called: there is no tool {} here.", shown(&call.name)));
        };
        if call.name == concepts::NAME {
            // It only takes note; what fits and what does not is looked at once, at the end, and goes into the audit log.
            return Fate::Made(tool.effect);
        }
        if let Some(misfit) = misfit(&tool.spec.schema, &call.arguments) {
            return Fate::Refused(format!("Not called: {}.", crate::fence::one_line(&misfit)));
        }
        let policy = &self.inner.staff.policy;
        let verdict = match call.name.as_str() {
            focus::START => policy.check_consent(self.whose.caller, tool, &call.arguments),
            _ => policy.check(self.whose.caller, tool, &call.arguments),
        };
        match verdict {
            Verdict::Allow if self.held.is_none() && needs_log(tool.effect) => {
                Fate::Refused(NOTHING_WRITTEN.to_owned())
            }
            Verdict::Allow => Fate::Made(tool.effect),
            Verdict::Deny => Fate::Refused(FORBIDDEN.to_owned()),
            Verdict::Approve { approvers, expires } => match self.session {
                None => Fate::Refused(NO_MEMORY.to_owned()),
                Some(session) => {
                    let now = self.inner.ledger.now();
                    let scope = session.names.scope;
                    Fate::Asked(Approval::new(scope, call, approvers, now, now.plus(expires)))
                }
            },
        }
    }

    /// Whether the log has work of this turn: a call that went out, or a decision that was asked for. What the client did is
    /// known to the client, which asks again.
    pub(super) fn has_begun(&self) -> bool {
        let log = self.held.as_deref().and_then(Held::checkpoint);
        let work = log.and_then(|log| log.exchange(self.request_id)).and_then(Exchange::work);
        let is_ours = |call: &ToolCall| !may_be_the_clients(&call.name);
        work.is_some_and(|work| work.steps().any(|(_, calls)| calls.iter().any(is_ours)))
    }

    /// Whether these calls only name concepts, as the model was asked to.
    pub(super) fn only_notes(&self, calls: &[ToolCall]) -> bool {
        let offered = || self.offered.iter().any(|tool| tool.spec.name == concepts::NAME);
        (1..=MOST_CALLS).contains(&calls.len())
            && calls.iter().all(|call| call.name == concepts::NAME)
            && offered()
    }

    /// Makes a call that must not be made twice: the log has it first.
    async fn make_once(&mut self, work: &mut Work, at: usize, call: &ToolCall) -> Result<String, Error> {
        let place = (work.done.len(), at);
        if let (Some(session), Some(held)) = (self.session, self.held.as_deref_mut()) {
            work.calling = Some(at);
            work.knows_settings |= self.asking.has_given();
            let (request_id, at) = (self.request_id.to_owned(), self.inner.ledger.now());
            let kept = asking::unkept(session.is_web(), work).into_owned();
            let entry = Entry::Working { request_id, at, work: Box::new(kept) };
            let note = session.record(Action::ToolCalled);
            if held.write(vec![entry], Some(self.inner.ledger.instance.into()), note).await?
                == Wrote::Conflict
            {
                // Somebody else has the turn now, or it is erased; they do what there is to do.
                return Err(Error::Busy);
            }
            work.calling = None;
        }
        Ok(self.call(place, call).await)
    }

    /// Makes a call and says what came of it, for the model.
    async fn call(&self, place: (usize, usize), call: &ToolCall) -> String {
        let limits = &self.inner.ledger.settings.tools;
        if call.name == concepts::NAME {
            return concepts::NOTED.to_owned();
        }
        self.outlet.tool(&call.name);
        self.inner.ledger.counters.tool_calls.add();
        if call.name == remember::NAME {
            let log = self.held.as_deref().and_then(Held::checkpoint);
            let found = remember::search(log, self.audience, self.restore, &call.arguments);
            let words = text_of(&call.arguments, "query").unwrap_or_default();
            let elsewhere = self.asking.search(words, self.outlet).await;
            let found = remember::with_device(found, elsewhere);
            return tool_said(&self.gathered.fence, &found, limits.max_result_bytes);
        }
        if call.name == concepts::FIND {
            let found = concepts::look_up(self.inner, &call.arguments).await;
            return tool_said(&self.gathered.fence, &found, limits.max_result_bytes);
        }
        match call.name.as_str() {
            focus::START => return self.start_focus(focus::wanted(&call.arguments)).await,
            focus::STOP => return focus::stopped(),
            _ => {}
        }
        let key = self.key(place, call);
        let invocation = Invocation {
            tool: &call.name,
            arguments: &call.arguments,
            key: &key,
            max_bytes: limits.max_result_bytes,
        };
        let calling = self.inner.staff.toolbox.call(invocation);
        match tokio::time::timeout(limits.call_timeout, calling).await.unwrap_or(Err(ToolError::TimedOut)) {
            Ok(output) => tool_said(&self.gathered.fence, &output, limits.max_result_bytes),
            Err(error) => {
                tracing::warn!(tool = %shown(&call.name), error = %error, "a tool call failed");
                let text = format!("{error}");
                tool_said(
                    &self.gathered.fence,
                    &ToolOutput { text, failed: true, cut: false },
                    limits.max_result_bytes,
                )
            }
        }
    }

    /// A mode begins: the model hears what the operator says of it.
    async fn start_focus(&self, id: &str) -> String {
        let situation = self.gathered.situation(self.inner, self.session, self.prepared);
        let situation = Situation { focus: Some(id), ..situation };
        let said = self.inner.staff.instructions.aspect(Slot::Focus, None).text(situation).await;
        focus::started(id, said.ok().flatten().as_deref())
    }

    /// The same for every try of this call in this turn, and for no other.
    fn key(&self, place: (usize, usize), call: &ToolCall) -> String {
        let arguments = canonical(&call.arguments);
        let whole = serde_json::json!([self.whose.tag, self.request_id, place, call.name, arguments]);
        let digest = ring::digest::digest(&ring::digest::SHA256, whole.to_string().as_bytes());
        hex::encode(&digest.as_ref()[..16])
    }
}

fn set(work: &mut Work, at: usize, result: String) {
    if let Some(slot) = work.current.as_mut().and_then(|current| current.results.get_mut(at)) {
        *slot = Some(result);
    }
}

/// A name as a model wrote it, fit to be shown.
fn shown(name: &str) -> String {
    crate::fence::one_line(name).chars().take(80).collect()
}

/// More calls than this at once are a model gone wrong.
const MOST_CALLS: usize = 16;
/// More questions than this at once are not answered by anybody.
const MOST_PENDING: usize = 20;
const TOO_MANY_WAIT: &str = "Not called: too many approvals wait in this conversation already. Say so.";
const TOO_MANY: &str = "Not called: too many calls at once. Make fewer.";
const NOT_NOW: &str =
    "Not called: the application wants none of its tools called now. Answer with what you have.";
const FORBIDDEN: &str = "Not called: this person may not use the tool in this way.";
const NO_MEMORY: &str = "Not called: somebody must approve it, which needs a conversation that is kept.";
const NOTHING_WRITTEN: &str =
    "Not called: it changes something, which needs a conversation that is kept. Say so.";
const DENIED: &str = "Not called: it was denied. Do not try it again; say so and go on without it.";
const NOT_AS_SHOWN: &str = "Not called: it is not the call that was approved.";
const OUTCOME_UNKNOWN: &str = "The call was made and the program ended before its result came, so whether it was done \
is not known. Do not make it again; tell the person what was called and that they should check.";
