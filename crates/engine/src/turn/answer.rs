//! Stages 3 to 5 in a row, prepare, compose and respond: from what was recalled to what the turn reaches. The same with and
//! without a log.

use std::sync::Arc;
use std::time::Duration;

use confidant_model::tokens;
use confidant_model::{Calling, Model, Step, ToolUse};
use confidant_prepare::{Prepared, SafetyAction, SafetyText};

use super::after::unfinished;
use super::asking::Asking;
use super::compose::{self, Gathered};
use super::data_request::Piece;
use super::draft::{Answered, Draft, Judged, Reached, Scored, Unanswered};
use super::enrich::{self, Material};
use super::outbound::{ChatOutcome, Offered, Outbound};
use super::outlet::Outlet;
use super::prepare::{Known, Plan, Planner, Whose};
use super::remember::Reach;
use super::request::Inbound;
use super::spoken::SpokenCommand;
use super::work::Desk;
use super::{cancel, focus, handed, past, recall, remember, respond, share};
use crate::about::{FocusChange, Note};
use crate::approval::Work;
use crate::aspects::Slot;
use crate::audience::Sharing;
use crate::concepts;
use crate::inner::Inner;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::entry::ReplyFrom;
use crate::ledger::session::{Held, Session};

/// Makes the answer of a turn. Ends early when the turn is cancelled.
pub(super) async fn answer(
    inner: &Inner,
    whose: &Whose<'_>,
    mut log: Option<(&Session, &mut Held<'_>)>,
    inbound: Inbound,
    recalled: recall::Recalled,
    draft: Draft,
    outlet: &Outlet,
) -> Result<Reached, Unanswered> {
    let (request_id, judged, has_log) = (draft.request_id.clone(), Arc::clone(&draft.judged), log.is_some());
    let log_again = log.as_mut().map(|(session, held)| (*session, &mut **held));
    // On the heap: with everything that a turn can come to, it is too large for a stack.
    let producing = Box::pin(produce(inner, whose, log_again, inbound, recalled, draft, outlet));
    // Nothing of it is heard or done before it is judged, so one that is cancelled before can be: it counts like any other.
    let is_due = || has_log && !judged.lock().is_done;
    let outcome = match cancel::or_due(producing, is_due, JUDGING).await {
        Ok(outcome) => outcome,
        Err(error) => {
            // A write may have been under way; the next one looks again.
            if let Some((_, held)) = log {
                held.cool();
            }
            inner.ledger.counters.cancelled.add();
            Err(Unanswered::new(request_id, error))
        }
    };
    let scored = judged.lock().scored.take();
    match outcome {
        Ok(Reached::Pause(mut paused)) => {
            paused.scored = scored;
            Ok(Reached::Pause(paused))
        }
        Ok(answered) => Ok(answered),
        Err(unanswered) => Err(Unanswered { scored: scored.map(Box::new), ..unanswered }),
    }
}

/// A turn on its way to an answer.
struct Making<'m> {
    inner: &'m Inner,
    whose: &'m Whose<'m>,
    session: Option<&'m Session>,
    gathered: &'m Gathered,
    planner: &'m Planner<'m>,
    /// What the person's device may be asked for.
    asking: &'m Asking,
    /// What was done of it before.
    work: Option<Work>,
    draft: Draft,
}

async fn produce(
    inner: &Inner,
    whose: &Whose<'_>,
    log: Option<(&Session, &mut Held<'_>)>,
    mut inbound: Inbound,
    recalled: recall::Recalled,
    mut draft: Draft,
    outlet: &Outlet,
) -> Result<Reached, Unanswered> {
    let (session, mut held) = match log {
        Some((session, held)) => (Some(session), Some(held)),
        None => (None, None),
    };
    if let (Some(session), Some(held)) = (session, held.as_deref_mut())
        && let Err(error) = concepts::catch_up(session, held).await
    {
        tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts of earlier turns could not be put in scope yet");
    }
    if let (Some(session), Some(held)) = (session, held.as_deref()) {
        share::tell(session, held, &inbound.request_id, outlet);
    }
    let checkpoint = held.as_deref().and_then(Held::checkpoint);
    let mut known = checkpoint.map(|log| Known::of(log, inbound.audience)).unwrap_or_default();
    let is_web = session.is_some_and(Session::is_web);
    // Where devices keep the chat, only they know whether it has a title: one that was made may never have come to them.
    known.titled =
        if is_web { inbound.request.titled } else { known.titled || goes_on(checkpoint, &inbound) };
    known.titled_elsewhere = inbound.request.titled;
    let exchange = checkpoint.and_then(|log| log.exchange(&inbound.request_id));
    known.scored = exchange.is_some_and(|exchange| exchange.scored);
    let mut work = exchange.and_then(crate::ledger::checkpoint::Exchange::work).cloned();
    if work.is_none() {
        let brought = handed::begun(&inbound, inner.ledger.settings.tools.max_result_bytes);
        let request_id = &draft.request_id;
        work = brought.map_err(|error| Unanswered::new(request_id.clone(), error))?;
    }
    draft.metadata.pending_approvals = held.as_deref().map_or(0, |held| held.pending());
    inbound.request.focus = inbound.request.focus.or_else(|| known.focus.clone());
    inbound.request.focus.take_if(|focus| inbound.request.off.has_focus_mode(focus));
    let available = std::mem::take(&mut inbound.request.available_settings);
    draft.settings = inbound.request.settings.values().cloned().collect();
    draft.known_settings = inbound.request.settings.keys().cloned().collect();
    if let Some(session) = session {
        if !session.is_web() || inbound.request.capture {
            let sharing = checkpoint.map_or(Sharing::default(), Checkpoint::sharing);
            let capture = inbound.request.capture;
            let in_scope = concepts::recall(session, inbound.audience, sharing, capture).await;
            draft.metadata.context_status = in_scope.status;
            draft.concepts = Arc::new(in_scope);
        }
        draft.query.clone_from(&inbound.request.query);
        let similar = past::similar(session, checkpoint, &inbound).await;
        inbound.request.past_chats.extend(similar);
    }
    let asking = match is_web {
        true => {
            Asking::new(&inbound.request, past::begins(checkpoint, &inbound), inner.ledger.settings.web.asks)
        }
        false => Asking::default(),
    };
    let gathered = compose::gather(inner, session, inbound, recalled, Arc::clone(&draft.concepts));
    let planner = Planner::new(inner, (whose, session), known, &gathered, available).await;
    let chat = |offers| is_web.then(|| Box::new(ChatOutcome { safety: planner.known.safety(), offers }));
    if is_web && SpokenCommand::read(&gathered.query) == Some(SpokenCommand::Forget) {
        // Only a device can do it, so nothing is claimed.
        draft.metadata.chat = chat(Some(Offered::DeleteChat));
        return Ok(Reached::Answer(said_by_us(draft, DELETE_CHAT.to_owned())));
    }
    if planner.known.terminated {
        let language = planner.rules(&gathered.messages(), &gathered.query).language_code;
        let mut words = inner.staff.safety.texts.text(SafetyText::Termination, &language).to_owned();
        // Work that waited ends with the conversation, and what was done of it is told.
        if let Some(work) = &work {
            words = format!("{words}\n\n{}", unfinished::told(work));
        }
        draft.metadata.safety = vec![SafetyAction::TerminateConversation];
        draft.metadata.chat = chat(None);
        return Ok(Reached::Answer(said_by_us(draft, words)));
    }
    let (gathered, planner, asking) = (&gathered, &planner, &asking);
    let making = Making { inner, whose, session, gathered, planner, asking, work, draft };
    making.run(&mut held, outlet).await
}

impl Making<'_> {
    async fn run(self, held: &mut Option<&mut Held<'_>>, outlet: &Outlet) -> Result<Reached, Unanswered> {
        let processing = &self.inner.ledger.settings.processing;
        if let Some(before) = self.work.as_ref().and_then(|work| work.prepared.as_deref()) {
            // A turn that was begun goes on as it was; nobody asks anew what kind of turn it is.
            let plan = self.planner.plan(before.clone());
            return self.go_on(&plan, held, outlet).await;
        }
        if !processing.prepare {
            let plan = self.planner.unprepared();
            return self.settled(&plan, held, outlet).await;
        }
        let messages = self.gathered.messages();
        let query = &self.gathered.query;
        let rules = self.planner.rules(&messages, query);
        if self.work.as_ref().is_some_and(Work::is_begun) {
            let plan = self.planner.plan(rules);
            return self.go_on(&plan, held, outlet).await;
        }
        let Some(small) = self.inner.staff.models.small() else {
            let plan = self.planner.plan(rules);
            return self.settled(&plan, held, outlet).await;
        };
        // Until the small model has spoken.
        self.count(&self.planner.plan(rules.clone()), false);
        let conversation = self.gathered.conversation();
        let asking = self.planner.ask(small, &conversation, query, &rules);
        let alone = !processing.beside || self.asking.may_come_first(self.planner.knows_settings());
        let Some(guess) = self.planner.guess(&rules).filter(|_| !alone) else {
            let plan = self.planner.plan(asking.await);
            return self.settled(&plan, held, outlet).await;
        };
        self.beside(asking, &guess, held, outlet).await
    }

    /// Begins an answer on a guess while the small model is being asked.
    async fn beside(
        self,
        asking: impl Future<Output = Prepared> + Send,
        guess: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        let gated = outlet.gated();
        let mut asking = Box::pin(asking);
        let (plan, begun) = {
            let mut answering = Box::pin(self.again().answer(guess, held, &gated));
            let (plan, early) = tokio::select! {
                biased;
                prepared = &mut asking => (self.planner.plan(prepared), None),
                reached = &mut answering => (self.planner.plan(asking.await), Some(reached)),
            };
            if plan.allows(guess, self.inner.ledger.settings.processing.injection_warning) {
                self.score(&plan)?;
                self.tell(&plan, outlet);
                gated.open();
                let reached = match early {
                    Some(reached) => reached,
                    None => answering.await,
                };
                (plan, Some(reached))
            } else {
                (plan, None)
            }
        };
        match begun {
            Some(reached) => self.finished(&plan, reached, outlet).await,
            None => self.settled(&plan, held, outlet).await,
        }
    }

    /// Answers on a plan that is final.
    async fn settled(
        mut self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        self.score(plan)?;
        self.tell(plan, outlet);
        let texts = &self.inner.staff.safety.texts;
        if let Some(words) = texts.instead_of_answer(&plan.decision, &plan.prepared_language()) {
            let answered = said_by_us(self.again().draft, words);
            return self.finished(plan, Ok(Reached::Answer(answered)), outlet).await;
        }
        self.ask_device(plan, outlet).await;
        self.go_on(plan, held, outlet).await
    }

    /// Asks the person's device for what would help, where it may be asked.
    async fn ask_device(&mut self, plan: &Plan, outlet: &Outlet) {
        let Some(prepared) = &plan.prepared else { return };
        let wanted = plan.wanted_settings(&self.draft.known_settings);
        let (settings, past) = tokio::join!(
            self.asking.settings(&wanted, outlet),
            self.asking.past_chats(&prepared.tags, outlet)
        );
        let names = settings.iter().map(|piece: &Piece| piece.name.clone());
        self.draft.known_settings.extend(names);
        self.draft.pieces = [settings, past];
    }

    /// Answers, whatever the plan says of whether to: it did not say so before, or work was begun, and somebody may have
    /// approved it.
    async fn go_on(
        self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        self.score(plan)?;
        let reached = Box::pin(self.again().answer(plan, held, outlet)).await;
        self.finished(plan, reached, outlet).await
    }

    /// From here on the turn's harm counts, also if it is cancelled, fails or waits. One that was cancelled before ends here.
    fn score(&self, plan: &Plan) -> Result<(), Unanswered> {
        self.count(plan, true);
        cancel::check().map_err(|error| Unanswered::new(self.draft.request_id.clone(), error))
    }

    fn count(&self, plan: &Plan, is_done: bool) {
        let scored = self.planner.harm_without_answer(plan).map(|harm| {
            let Note { flagged_for_review, terminated, .. } = self.note(plan);
            let note = Note { flagged_for_review, terminated, scored: true, ..Note::default() };
            Scored { note, harm }
        });
        *self.draft.judged.lock() = Judged { scored, is_done };
    }

    /// Asks the client for what may help; the turn does not wait for it.
    fn tell(&self, plan: &Plan, outlet: &Outlet) {
        let wanted = plan.wanted_settings(&self.draft.known_settings);
        if !wanted.is_empty() {
            outlet.send(Outbound::SettingsWanted { names: wanted });
        }
    }

    /// Composes and responds; where answers are judged before they are heard, judges.
    async fn answer(
        self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        let judge =
            self.inner.staff.models.small().cloned().zip(self.inner.ledger.settings.processing.reprocess_at);
        let (Some((judge, limit)), Some(session)) = (judge, self.session) else {
            return self.respond(plan, held, outlet, None).await;
        };
        let mut rejected: Option<Vec<Step>> = None;
        loop {
            let (muted, second) = (outlet.muted(), rejected.is_some());
            let reached = self.again().respond(plan, held, &muted, rejected.take()).await?;
            let mut answered = match reached {
                Reached::Answer(answered) => answered,
                Reached::Pause(mut paused) => {
                    // Nobody has judged what was said with it.
                    paused.unsay();
                    return Ok(Reached::Pause(paused));
                }
            };
            let material = self.material(plan, &answered.text).await;
            let made = enrich::ask(session, judge.as_ref(), &material).await;
            if let Err(error) = &made {
                tracing::warn!(model = judge.name(), error = %error, "an answer was sent without being judged first");
                answered.draft.metadata.unjudged = true;
            }
            let harm = made.as_ref().map_or(0.0, |made| made.harmful_response);
            if harm < limit {
                self.drop_harmful_others(session, judge.as_ref(), plan, limit, &mut answered).await;
                muted.open();
                let wanted = !self.hides_settings() && !self.gathered.off.enrichment;
                answered.enrichment = made.ok().filter(|_| wanted);
                return Ok(Reached::Answer(answered));
            }
            let Answered { draft, steps, told, .. } = *answered;
            let steps = only_calls(steps, told);
            if second {
                let texts = &self.inner.staff.safety.texts;
                let words = texts.text(SafetyText::Refusal, &plan.prepared_language()).to_owned();
                let mut refused = said_by_us(draft, words);
                (refused.steps, refused.told) = (steps, told);
                return Ok(Reached::Answer(refused));
            }
            rejected = Some(steps);
        }
    }

    /// Other answers are judged like the first: one that is harmful, or cannot be judged, is not given.
    async fn drop_harmful_others(
        &self,
        session: &Session,
        judge: &dyn Model,
        plan: &Plan,
        limit: f32,
        answered: &mut Answered,
    ) {
        for other in std::mem::take(&mut answered.draft.metadata.others) {
            let material = self.material(plan, &other.text).await;
            let made = enrich::ask(session, judge, &material).await;
            if made.is_ok_and(|made| made.harmful_response < limit) {
                answered.draft.metadata.others.push(other);
            }
        }
    }

    async fn respond(
        self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
        rejected: Option<Vec<Step>>,
    ) -> Result<Reached, Unanswered> {
        let Self { inner, whose, session, gathered, planner, asking, work, mut draft } = self;
        let mut work = work.unwrap_or_default();
        let is_second = rejected.is_some();
        if let Some(done) = rejected {
            // What was called for the first draft was called: only the words are made again.
            let Work { model, knows_settings, told, .. } = work;
            work = Work { done, model, knows_settings, told, ..Work::default() };
        }
        // Work that was begun with a tool goes on with it, whatever would be selected now.
        let begun = work.is_begun();
        work.brought = false;
        let mut offered = if begun { planner.allowed.clone() } else { plan.offered.clone() };
        // Whoever wants its own tools called hears of no others.
        let only_theirs = matches!(gathered.tool_use(), Some(ToolUse::Any | ToolUse::Named(_)));
        if only_theirs {
            offered.clear();
        }
        let mut prompt =
            compose::compose(inner, session, gathered, plan.prepared.as_ref(), &offered, &mut draft).await;
        let mut ours = Vec::new();
        let reach = if asking.may_search() { Reach::Device } else { Reach::Here };
        let is_more = draft.left_out > 0 || draft.metadata.dropped > 0 || reach == Reach::Device;
        if is_more && session.is_some() {
            ours.push(remember::tool(reach));
        }
        if gathered.concepts.capture && session.is_some() {
            ours.push(concepts::tool());
        }
        if gathered.concepts.look_up {
            ours.push(concepts::find_tool());
        }
        if let Some(session) = session {
            ours.extend(planner.focus_tools(plan, session, begun));
        }
        ours.retain(|tool| !only_theirs && !gathered.off.has_tool(&tool.spec.name));
        prompt.tools.extend(ours.iter().map(|tool| tool.spec.clone()));
        offered.extend(ours);
        if is_second {
            prompt.system.push_str(HARMFUL_BEFORE);
            prompt.calling = if begun { Calling::Over } else { Calling::Free };
        }
        outlet.progress("🧠 Thinking...");
        if work.model.is_empty() {
            work.model = plan.model();
        }
        work.prepared = plan.prepared.clone().map(Box::new);
        work.knows_settings |= !draft.settings.is_empty() || asking.has_given();
        let model: Arc<dyn Model> = Arc::clone(inner.staff.models.choose(&work.model));
        let request_id = draft.request_id.clone();
        let mut desk = Desk {
            inner,
            whose,
            session,
            held: held.as_deref_mut(),
            request_id: &request_id,
            audience: gathered.audience,
            restore: gathered.restore,
            offered: &offered,
            outlet,
            gathered,
            prepared: plan.prepared.as_ref(),
            asking,
        };
        Box::pin(respond::respond(model.as_ref(), prompt, work, draft, &mut desk)).await
    }

    /// What a turn that reached its end leaves behind: notes for the log and for the person.
    async fn finished(
        self,
        plan: &Plan,
        reached: Result<Reached, Unanswered>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        let mut answered = match reached? {
            Reached::Answer(answered) => answered,
            pause @ Reached::Pause(_) => return Ok(pause),
        };
        let language = plan.prepared_language();
        let help = self.inner.staff.safety.texts.after_answer(&plan.decision, &language);
        for other in &mut answered.draft.metadata.others {
            if let Some(help) = help.filter(|help| !other.text.contains(*help)) {
                other.text.push_str("\n\n");
                other.text.push_str(help);
            }
        }
        if let Some(help) = help.filter(|help| !answered.text.contains(*help)) {
            let added = format!("\n\n{help}");
            outlet.delta(&added);
            answered.text.push_str(&added);
            answered.tokens = tokens::count(&answered.text);
        }
        let material = self.material(plan, &answered.text).await;
        let draft = &mut answered.draft;
        draft.note = Note { focus: focus::change(&answered.steps), ..self.note(plan) };
        draft.harm =
            self.planner.running(plan).filter(|running| !running.is_calm() || self.planner.was_harmed());
        let enriched = !self.hides_settings() && !self.gathered.off.enrichment;
        draft.material = Some(material).filter(|_| enriched);
        let metadata = &mut draft.metadata;
        metadata.chat = self.session.filter(|session| session.is_web()).map(|_| {
            let mut safety = self.planner.known.safety();
            safety.harm = self.planner.running(plan).unwrap_or(safety.harm);
            safety.flagged_for_review |= draft.note.flagged_for_review;
            safety.terminated |= draft.note.terminated;
            Box::new(ChatOutcome { safety, offers: None })
        });
        metadata.focus = match &draft.note.focus {
            Some(FocusChange::On(focus)) => Some(focus.clone()),
            Some(FocusChange::Off) => None,
            None => self.gathered.focus().map(str::to_owned),
        };
        metadata.requested_settings = plan.wanted_settings(&draft.known_settings);
        metadata.safety.clone_from(&plan.decision.actions);
        metadata.mate = self.planner.mate(plan, self.gathered, self.session);
        metadata.preparation.clone_from(&plan.prepared.as_ref().map(|prepared| Box::new(prepared.clone())));
        Ok(Reached::Answer(answered))
    }

    fn note(&self, plan: &Plan) -> Note {
        let Some(prepared) = &plan.prepared else { return Note::default() };
        let does = |action| plan.decision.has(action);
        let known = &self.planner.known;
        let category = Some(prepared.category.clone());
        Note {
            title: prepared.title.clone().filter(|_| !self.planner.known.titled),
            icon_names: if self.planner.known.titled { Vec::new() } else { prepared.icon_names.clone() },
            category: category.filter(|_| self.planner.known.category.is_none() && !known.titled_elsewhere),
            flagged_for_review: does(SafetyAction::FlagForHumanReview) && !self.planner.known.flagged,
            terminated: does(SafetyAction::TerminateConversation),
            focus: None,
            due: None,
            scored: false,
        }
    }

    async fn material(&self, plan: &Plan, answer: &str) -> Material {
        let situation = self.gathered.situation(self.inner, self.session, plan.prepared.as_ref());
        Material {
            ethics: self.inner.staff.aspects.text_of(Slot::Ethics, situation).await,
            profile: situation.profile.clone(),
            query: self.gathered.query.clone(),
            answer: answer.to_owned(),
            summary_before: self.planner.known.summary.clone(),
            tags_before: self.planner.known.tags.clone(),
            category: plan.prepared.as_ref().map(|prepared| prepared.category.clone()).unwrap_or_default(),
            settings: self.draft.settings.iter().cloned().chain(self.asking.given()).collect(),
        }
    }

    /// Whether settings went into the work that are not known any more, so that nothing may be made of it.
    fn hides_settings(&self) -> bool {
        self.draft.settings.is_empty() && self.work.as_ref().is_some_and(|work| work.knows_settings)
    }

    fn again(&self) -> Self {
        Self { work: self.work.clone(), draft: self.draft.clone(), ..*self }
    }
}

/// Whether the conversation has been going on, here or where the client keeps it: then it is not named any more. One that
/// expired here is a new one, unless the client knows its title or brings along what was said.
fn goes_on(log: Option<&Checkpoint>, inbound: &Inbound) -> bool {
    let was_answered = |log: &Checkpoint| {
        let mut before = log.all().filter(|exchange| exchange.request_id != inbound.request_id);
        log.dropped() > 0
            || before.any(|exchange| exchange.replies().iter().any(|reply| reply.from == ReplyFrom::Ai))
    };
    let has_title = inbound.request.title.as_ref().is_some_and(|title| !title.trim().is_empty());
    has_title
        || inbound.request.titled
        || !inbound.request.brought.is_empty()
        || log.is_some_and(was_answered)
}

/// An answer of the program itself, in place of a model's.
fn said_by_us(mut draft: Draft, text: String) -> Box<Answered> {
    draft.metadata.model = Some("confidant".to_owned());
    draft.metadata.others.clear();
    let tokens = tokens::count(&text);
    Box::new(Answered { draft, text, tokens, steps: Vec::new(), told: 0, enrichment: None })
}

/// The calls of a draft that is not given, without its words and without the concepts that it named. What the client has heard
/// of was no part of it.
fn only_calls(mut steps: Vec<Step>, told: usize) -> Vec<Step> {
    let mut draft = steps.split_off(told.min(steps.len()));
    draft.retain(|step| !step.calls.iter().all(|call| call.name == concepts::NAME));
    draft.iter_mut().for_each(|step| step.text.clear());
    steps.extend(draft);
    steps
}

/// How long a turn that was cancelled may take to be judged: longer than a small model has, as a rule.
const JUDGING: Duration = Duration::from_secs(10);
const DELETE_CHAT: &str = "I cannot erase this chat from here: your devices keep it. You can delete it there; that ends what \
the server has of it, too. Until you do, nothing has been erased.";
const HARMFUL_BEFORE: &str = "\n\nAn earlier draft of your answer was judged harmful and was not given. Answer in a way \
that helps the person and harms nobody, or say that you cannot.";
