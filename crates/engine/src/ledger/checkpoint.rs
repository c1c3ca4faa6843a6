//! The state that a log folds to.
//!
//! Stored like the entries: its JSON is pinned. An [`Exchange`] keeps a request and all that it caused together, whatever
//! came in between, so that no window over the history can part a question from its answer or a tool call from its
//! result.

mod adopted;
mod found;
mod labels;
#[cfg(test)]
mod tests;

pub(crate) use adopted::UNANSWERED;

use std::collections::{HashMap, VecDeque};

use confidant_prepare::RunningHarm;
use serde::{Deserialize, Serialize};

use crate::about::{About, Made, Summary};
use crate::approval::{Approval, Decided, Decision, Handed, Work};
use crate::audience::{Audience, Sharing};
use crate::clock::Millis;
use crate::error::Error;
use crate::head::{Head, Stand};
use crate::ledger::entry::{Capture, Entry, Given, Reply, ReplyFrom};
use crate::turn::Restore;
use found::Found;
use labels::Labels;

/// A request and all that it caused.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Exchange {
    pub(crate) request_id: String,
    pub(crate) at: Millis,
    pub(crate) audience: Audience,
    pub(crate) content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u32>,
    /// What it was given besides, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<Box<Given>>,
    /// Where the client's branch stood before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stand: Option<Stand>,
    /// Whether its harm is in the running scores, though it is not answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) scored: bool,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Accepted and not yet answered; `attempts` counts the runs, the first included.
    Open {
        attempts: u32,
        /// What was done of it, as far as doing it again would matter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<Work>>,
    },
    /// Stopped until somebody decides, or the client has made the calls that it was handed.
    Waiting {
        work: Box<Work>,
    },
    Answered {
        at: Millis,
        replies: Vec<Reply>,
    },
    Failed {
        at: Millis,
        reason: String,
        attempts: u32,
        /// What was done of it before: whoever tries again goes on from there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<Work>>,
    },
}

impl Exchange {
    pub(crate) fn new(
        request_id: String,
        at: Millis,
        audience: Audience,
        content: String,
        outcome: Outcome,
    ) -> Self {
        let (tokens, given, stand, scored) = (None, None, None, false);
        Self { request_id, at, audience, content, tokens, given, stand, scored, outcome }
    }

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

    /// The calls that it waits for the client to make.
    pub(crate) fn handed(&self) -> Option<&Handed> {
        match &self.outcome {
            Outcome::Waiting { work } => work.handed.as_ref(),
            _ => None,
        }
    }

    /// Until when what it waits for can come.
    pub(crate) fn waits_until(&self) -> Option<Millis> {
        self.approval().map(|approval| approval.expires_at).or(self.handed().map(|handed| handed.until))
    }

    /// Whether somebody can still decide what it waits for.
    pub(crate) fn is_pending(&self, now: Millis) -> bool {
        self.approval().is_some_and(|approval| approval.decided.is_none() && approval.expires_at > now)
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.outcome, Outcome::Open { .. })
    }

    /// Whether somebody called it off.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(&self.outcome, Outcome::Failed { reason, .. } if reason == Error::Cancelled.code())
    }

    /// The work that is not done, if some was begun.
    pub(crate) fn work(&self) -> Option<&Work> {
        match &self.outcome {
            Outcome::Open { work, .. } => work.as_deref(),
            Outcome::Waiting { work } => Some(work),
            _ => None,
        }
    }

    /// What it was called by whoever asked for it on a plain bus.
    pub(crate) fn asked_as(&self) -> Option<&str> {
        self.given.as_ref()?.asked_as.as_deref()
    }

    /// The approval that it waits for.
    pub(crate) fn approval(&self) -> Option<&Approval> {
        match &self.outcome {
            Outcome::Waiting { work } => work.approval.as_ref(),
            _ => None,
        }
    }
}

/// The state that a log folds to.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    exchanges: VecDeque<Exchange>,
    /// Exchanges that wait for a decision. Apart from the others, so that however much is said meanwhile, these are not
    /// dropped and do not keep others from being.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<Exchange>,
    /// Requests whose exchanges are no longer kept, newest last: they were answered, and must not be again.
    settled: VecDeque<String>,
    sharing: Sharing,
    #[serde(default, skip_serializing_if = "About::is_empty")]
    about: About,
    /// How harmful the conversation has been, running on from turn to turn.
    #[serde(default, skip_serializing_if = "RunningHarm::is_calm")]
    harm: RunningHarm,
    /// At most one for each audience.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    summaries: Vec<Summary>,
    /// What was made of turns, the last last; at most one for each audience.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    made: Vec<Made>,
    /// What turns named and is yet to come into scope, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    captured: Vec<Capture>,
    /// Messages that decided something, with the turn that they decided, newest last: said again, they decide nothing else.
    /// Among them who decided what, as [`decision_note`] writes it: who repeats themself hears that it counted.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    decided: VecDeque<(String, String)>,
    /// When the log ends if nothing more is written; nothing if nobody has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lives: Option<Lives>,
    /// How many messages came with the conversation when it was taken over from another system: as many are kept.
    #[serde(default, skip_serializing_if = "crate::ledger::entry::is_default")]
    taken_over: u64,
    /// Where the conversation stands for its client, where that has said so with the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<Head>,
    /// What the newest turns found out, oldest first, where devices keep the conversation.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    found: VecDeque<Found>,
    /// Requests that were called off before they were accepted, newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    called_off: VecDeque<String>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    labels: Labels,
    /// How many exchanges were dropped before the first that is kept; turns an ordinal into a position.
    dropped: u64,
    /// Request id to ordinal; derived, so not stored.
    #[serde(skip)]
    by_request: HashMap<String, u64>,
    /// The ordinal of the exchange that waits for its answer; derived, too.
    #[serde(skip)]
    open: Option<u64>,
}

/// A log's lifetime: until a moment, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lives {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Millis>,
}

/// How many settled request ids are remembered after their exchanges are gone.
const SETTLED_KEPT: usize = 256;

/// How many messages that decided something are remembered.
const DECIDED_KEPT: usize = 128;

/// Who decided what. It has spaces, which no message's name has.
fn decision_note(approval: &Approval, decided: &Decided) -> String {
    let word = match decided.decision {
        Decision::Approve => "approve",
        Decision::Deny => "deny",
    };
    format!("{} {} {word} {}", approval.id, approval.code, decided.by)
}

/// Of how many turns is kept what could not come into scope yet.
const CAPTURED_KEPT: usize = 16;

/// An entry that does not follow from what came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfPlace;

impl Checkpoint {
    /// Makes ready what was read from a snapshot.
    pub(crate) fn revived(mut self) -> Self {
        // Older logs had one for both audiences: nobody knows what it was made of, so it is private.
        if let Some(enrichment) = self.about.enrichment.take() {
            self.made.insert(0, Made { audience: Audience::Private, enrichment });
        }
        self.index();
        self
    }

    /// Takes the next entry of the log.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of entry")]
    pub(crate) fn apply(&mut self, entry: Entry) -> Result<(), OutOfPlace> {
        match entry {
            Entry::Accepted { request_id, at, audience, content, tokens } => {
                if self.exchange(&request_id).is_some() {
                    return Err(OutOfPlace);
                }
                let outcome = Outcome::Open { attempts: 1, work: None };
                let new = Exchange::new(request_id, at, audience, content, outcome);
                self.push(Exchange { tokens, ..new });
            }
            Entry::Given { request_id, given } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                exchange.stand = given.stand();
                exchange.given = Some(given);
            }
            Entry::Resumed { request_id, .. } => self.resume(&request_id)?,
            Entry::Answered { request_id, at, replies } => {
                self.revive_waiting(&request_id);
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                if !matches!(exchange.outcome, Outcome::Open { .. } | Outcome::Waiting { .. }) {
                    return Err(OutOfPlace);
                }
                exchange.outcome = Outcome::Answered { at, replies };
                exchange.given = None;
                self.open = None;
                // What was said of the conversation before does not count it.
                self.head = None;
            }
            Entry::Failed { request_id, at, reason } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                let Outcome::Open { attempts, work } = &mut exchange.outcome else { return Err(OutOfPlace) };
                let (attempts, mut work) = (*attempts, work.take());
                // What was decided was decided for this try.
                work.iter_mut().for_each(|work| work.approval = None);
                exchange.outcome = Outcome::Failed { at, reason, attempts, work };
                self.open = None;
            }
            Entry::CalledOff { request_id, .. } => {
                if !self.knows(&request_id) {
                    self.called_off.push_back(request_id);
                    let many = self.called_off.len().saturating_sub(SETTLED_KEPT);
                    self.called_off.drain(..many);
                }
            }
            Entry::Working { request_id, work, .. } => {
                let exchange = self.exchange_mut(&request_id).ok_or(OutOfPlace)?;
                let Outcome::Open { work: known, .. } = &mut exchange.outcome else { return Err(OutOfPlace) };
                *known = Some(work);
            }
            Entry::Waiting { request_id, work, .. } => self.wait(&request_id, work)?,
            Entry::Decided { request_id, decided, .. } => {
                let mut waiting = self.waiting.iter_mut();
                let exchange = waiting.find(|waiting| waiting.request_id == request_id).ok_or(OutOfPlace)?;
                let Outcome::Waiting { work } = &mut exchange.outcome else { return Err(OutOfPlace) };
                let approval = work.approval.as_mut().ok_or(OutOfPlace)?;
                if approval.decided.is_some() {
                    return Err(OutOfPlace);
                }
                self.decided.push_back((decision_note(approval, &decided), request_id.clone()));
                if let Some(said_as) = decided.said_as.clone() {
                    self.decided.push_back((said_as, request_id));
                }
                let many = self.decided.len().saturating_sub(DECIDED_KEPT);
                self.decided.drain(..many);
                approval.decided = Some(decided);
            }
            Entry::Noted { request_id, note, harm, .. } => {
                self.find_out(&request_id, |found| found.note = (*note).clone());
                if let Some(exchange) = self.exchange_mut(&request_id) {
                    exchange.scored |= note.scored;
                }
                self.about.take(*note);
                self.harm = harm.unwrap_or(std::mem::take(&mut self.harm));
            }
            Entry::Captured { capture } => {
                self.captured.push(capture);
                let many = self.captured.len().saturating_sub(CAPTURED_KEPT);
                self.captured.drain(..many);
            }
            Entry::Merged { request_ids } => {
                self.captured.retain(|capture| !request_ids.contains(&capture.request_id));
            }
            Entry::Enriched { request_id, enrichment, .. } => {
                let known = self.exchange(&request_id).map(|exchange| exchange.audience);
                let audience = known.unwrap_or(Audience::Private);
                self.made.retain(|made| made.audience != audience);
                self.find_out(&request_id, |found| found.made = Some(enrichment.clone()));
                self.made.push(Made { audience, enrichment: *enrichment });
            }
            Entry::Summarised { summary } => {
                self.summaries.retain(|known| known.audience != summary.audience);
                self.summaries.push(summary);
            }
            Entry::TakenOver { messages } => self.taken_over = messages,
            Entry::Adopted { said, head, .. } => self.adopt(said, head)?,
            Entry::Head { head } => self.head = Some(head),
            Entry::Amended { request_id, at, content, tokens } => {
                self.amend(&request_id, at, content, tokens);
            }
            Entry::Removed { request_id, .. } => self.remove(&request_id),
            Entry::Sharing { sharing, .. } => self.sharing = sharing,
            Entry::Labelled { at, label } => self.labels.put(at, label),
            Entry::Lives { until } => self.lives = Some(Lives { until }),
        }
        Ok(())
    }

    fn push(&mut self, exchange: Exchange) {
        let ordinal = self.dropped + self.exchanges.len() as u64;
        self.by_request.insert(exchange.request_id.clone(), ordinal);
        if exchange.is_open() {
            self.open = Some(ordinal);
        }
        self.exchanges.push_back(exchange);
    }

    fn resume(&mut self, request_id: &str) -> Result<(), OutOfPlace> {
        if self.revive_waiting(request_id) {
            let exchange = self.exchange_mut(request_id).ok_or(OutOfPlace)?;
            if let Outcome::Waiting { work } = &exchange.outcome {
                exchange.outcome = Outcome::Open { attempts: 1, work: Some(work.clone()) };
            }
        } else {
            let exchange = self.exchange_mut(request_id).ok_or(OutOfPlace)?;
            exchange.outcome = match &mut exchange.outcome {
                Outcome::Open { attempts, work } => {
                    Outcome::Open { attempts: *attempts + 1, work: work.take() }
                }
                Outcome::Failed { attempts, work, .. } => {
                    Outcome::Open { attempts: *attempts + 1, work: work.take() }
                }
                Outcome::Answered { .. } | Outcome::Waiting { .. } => return Err(OutOfPlace),
            };
        }
        self.open = self.by_request.get(request_id).copied();
        Ok(())
    }

    /// Puts an open exchange aside until somebody decides.
    fn wait(&mut self, request_id: &str, work: Box<Work>) -> Result<(), OutOfPlace> {
        let ordinal = self.open.take().ok_or(OutOfPlace)?;
        let at = usize::try_from(ordinal - self.dropped).map_err(|_| OutOfPlace)?;
        let mut exchange = self.exchanges.remove(at).ok_or(OutOfPlace)?;
        if exchange.request_id != request_id {
            return Err(OutOfPlace);
        }
        exchange.outcome = Outcome::Waiting { work };
        self.waiting.push(exchange);
        self.index();
        Ok(())
    }

    /// Puts an exchange that waited behind the others, where its end belongs; says whether it did wait.
    fn revive_waiting(&mut self, request_id: &str) -> bool {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.request_id == request_id) else {
            return false;
        };
        let exchange = self.waiting.remove(at);
        self.push(exchange);
        true
    }

    /// Replaces what was said; what it led to goes with it.
    fn amend(&mut self, request_id: &str, at: Millis, content: String, tokens: Option<u32>) {
        self.forget_derived(request_id);
        if let Some(exchange) = self.exchange_mut(request_id) {
            exchange.content = content;
            exchange.tokens = tokens;
            exchange.outcome = Outcome::Answered { at, replies: Vec::new() };
            self.settled.push_back(request_id.to_owned());
        }
    }

    fn remove(&mut self, request_id: &str) {
        self.forget_derived(request_id);
        let place = self.by_request.get(request_id).map(|ordinal| ordinal - self.dropped);
        if let Some(at) = place.and_then(|at| usize::try_from(at).ok()) {
            self.exchanges.remove(at);
            self.settled.push_back(request_id.to_owned());
            self.index();
        }
    }

    /// Drops what was made of an exchange: the summaries that cover it, and what is known of the conversation by its
    /// words. Of one that is kept no longer, nobody knows where it was.
    fn forget_derived(&mut self, request_id: &str) {
        self.head = None;
        let known = self.by_request.get(request_id).copied();
        let audience = self.exchange(request_id).map(|exchange| exchange.audience);
        self.summaries.retain(|summary| match (known, audience) {
            (Some(ordinal), Some(audience)) => summary.audience != audience || summary.through < ordinal,
            _ => false,
        });
        self.captured.retain(|capture| capture.request_id != request_id);
        self.labels.forget(request_id);
        self.found.retain(|found| found.request_id() != request_id);
        self.about.title = None;
        self.about.icon_names = Vec::new();
        self.about.category = None;
        self.made.clear();
    }

    /// The ordinal of the oldest exchange that a turn with this reach may look at.
    pub(crate) fn restored_from(&self, restore: Restore) -> u64 {
        let next = self.dropped + self.exchanges.len() as u64;
        let mut from = next;
        let mut left = restore.messages;
        for (at, exchange) in self.exchanges.iter().enumerate().rev() {
            if exchange.at < restore.since {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
            from = self.dropped + at as u64;
        }
        from
    }

    fn index(&mut self) {
        let ids = self.exchanges.iter().map(|exchange| exchange.request_id.clone());
        self.by_request = ids.zip(self.dropped..).collect();
        self.open =
            (self.dropped..).zip(&self.exchanges).find(|(_, exchange)| exchange.is_open()).map(|(n, _)| n);
    }

    /// Drops the oldest exchanges until at most `max_messages` messages are left, or as many as were taken over if those
    /// are more. An open exchange is never dropped.
    pub(crate) fn trim(&mut self, max_messages: usize) {
        let max_messages = match max_messages {
            0 => 0,
            some => some.max(usize::try_from(self.taken_over).unwrap_or(usize::MAX)),
        };
        let ended = self.exchanges.iter().filter(|exchange| !exchange.is_open());
        let mut messages: usize = ended.map(Exchange::messages).sum();
        while messages > max_messages
            && let Some(oldest) = self.exchanges.pop_front_if(|exchange| !exchange.is_open())
        {
            messages -= oldest.messages();
            self.dropped += 1;
            self.by_request.remove(&oldest.request_id);
            self.labels.forget(&oldest.request_id);
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
        match self.by_request.get(request_id) {
            Some(ordinal) => self.at(*ordinal),
            None => self.waiting.iter().find(|waiting| waiting.request_id == request_id),
        }
    }

    /// All exchanges, those that wait for a decision last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().chain(&self.waiting)
    }

    /// The turn that this message decided.
    pub(crate) fn decided_by(&self, said_as: &str) -> Option<&str> {
        self.decided.iter().rev().find(|(known, _)| known == said_as).map(|(_, turn)| turn.as_str())
    }

    /// Messages that decided something, oldest first, each with the turn that it decided.
    pub(crate) fn decided_messages(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.decided.iter().map(|(said_as, turn)| (said_as.as_str(), turn.as_str()))
    }

    /// What somebody decided of the approval with this id or code, if they did.
    pub(crate) fn decision_of(&self, name: &str, by: &str) -> Option<Decision> {
        self.decided.iter().rev().find_map(|(note, _)| {
            let mut parts = note.splitn(4, ' ');
            let (id, code, word, known) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            let decision = if word == "approve" { Decision::Approve } else { Decision::Deny };
            ((name == id || name == code) && known == by).then_some(decision)
        })
    }

    /// Exchanges that wait for a decision or for the client, oldest first.
    pub(crate) fn waiting(&self) -> &[Exchange] {
        &self.waiting
    }

    /// Whether one of them waits for a decision.
    pub(crate) fn waits_for_decision(&self) -> bool {
        self.waiting.iter().any(|waiting| waiting.approval().is_some())
    }

    /// Until when what the latest of them waits for can come.
    pub(crate) fn waits_until(&self) -> Option<Millis> {
        self.waiting.iter().filter_map(Exchange::waits_until).max()
    }

    /// The newest request whose name is like this, be it that its exchange is kept no longer.
    pub(crate) fn named(&self, is: impl Fn(&str) -> bool) -> Option<&str> {
        let kept = self.waiting.iter().rev().chain(self.exchanges.iter().rev());
        let kept = kept.map(|exchange| exchange.request_id.as_str());
        kept.chain(self.settled.iter().map(String::as_str)).find(|name| is(name))
    }

    fn at(&self, ordinal: u64) -> Option<&Exchange> {
        self.exchanges.get(usize::try_from(ordinal - self.dropped).ok()?)
    }

    fn exchange_mut(&mut self, request_id: &str) -> Option<&mut Exchange> {
        let ordinal = *self.by_request.get(request_id)?;
        self.exchanges.get_mut(usize::try_from(ordinal - self.dropped).ok()?)
    }

    /// Whether there is or was such a request.
    pub(crate) fn knows(&self, request_id: &str) -> bool {
        self.exchange(request_id).is_some() || self.is_settled(request_id) || self.is_called_off(request_id)
    }

    /// Whether the request was called off before it was accepted.
    pub(crate) fn is_called_off(&self, request_id: &str) -> bool {
        self.called_off.iter().any(|called_off| called_off == request_id)
    }

    /// Whether the request was answered in an exchange that is no longer kept.
    pub(crate) fn is_settled(&self, request_id: &str) -> bool {
        self.settled.iter().any(|settled| settled == request_id)
    }

    /// The exchange that waits for its answer; a session has at most one.
    pub(crate) fn open_exchange(&self) -> Option<&Exchange> {
        self.at(self.open?)
    }

    /// When the log ends if nothing more is written, which may be never. `None` in logs from before this was said.
    pub(crate) fn lives(&self) -> Option<Option<Millis>> {
        self.lives.map(|lives| lives.until)
    }

    /// What applications attached to it.
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where the conversation stands for its client, if that has said so.
    pub(crate) fn head(&self) -> Option<Head> {
        self.head
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.sharing
    }

    pub(crate) fn about(&self) -> &About {
        &self.about
    }

    /// The same, for the person themself: with what was made of the last turn, whoever read it.
    pub(crate) fn about_with_made(&self) -> About {
        let enrichment = self.made.last().map(|made| made.enrichment.clone());
        About { enrichment, ..self.about.clone() }
    }

    /// What was made of turns, the last last.
    pub(crate) fn made(&self) -> &[Made] {
        &self.made
    }

    pub(crate) fn harm(&self) -> &RunningHarm {
        &self.harm
    }

    pub(crate) fn summaries(&self) -> &[Summary] {
        &self.summaries
    }

    /// What turns named and is yet to come into scope, oldest first.
    pub(crate) fn captured(&self) -> &[Capture] {
        &self.captured
    }

    /// The ordinal of a request's exchange; of the next one if there is none.
    pub(crate) fn ordinal(&self, request_id: &str) -> u64 {
        let next = self.dropped + self.exchanges.len() as u64;
        self.by_request.get(request_id).copied().unwrap_or(next)
    }

    /// The ordinal of the first exchange that is kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
