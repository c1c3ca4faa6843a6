//! Prepare, compose and respond: from what there is to say to what the turn reaches. The same with and without a log.

use std::sync::Arc;

use super::compose::{self, Gathered};
use super::enrich::{self, Material};
use super::outlet::Outlet;
use super::plan::{Known, Plan, Planner};
use super::prepare::{SafetyAction, SafetyText};
use super::work::Desk;
use super::{
    Answered, Draft, Inbound, Outbound, Reached, Unanswered, decide, focus, past, recall, remember, respond,
};
use crate::about::{FocusChange, Note};
use crate::approval::Work;
use crate::audience::Sharing;
use crate::concepts;
use crate::engine::Inner;
use crate::model::Model;
use crate::session::{Held, Session};
use crate::tokens;

/// A turn on its way to an answer.
struct Making<'m> {
    inner: &'m Inner,
    session: Option<&'m Session>,
    gathered: &'m Gathered,
    planner: &'m Planner<'m>,
    /// What was done of it before.
    work: Option<Work>,
    draft: Draft,
}

pub(super) async fn produce(
    inner: &Inner,
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
        tracing::warn!(scope.tag = %session.tag(), error = error.code(), "earlier concepts are not in scope yet");
    }
    let checkpoint = held.as_deref().and_then(Held::checkpoint);
    let known = checkpoint.map(|log| Known::of(log, inbound.audience)).unwrap_or_default();
    let exchange = checkpoint.and_then(|log| log.exchange(&inbound.request_id));
    let work = exchange.and_then(crate::checkpoint::Exchange::work).cloned();
    draft.metadata.pending_approvals = held.as_deref().map_or(0, decide::pending);
    inbound.focus = inbound.focus.or_else(|| known.focus.clone());
    let available = std::mem::take(&mut inbound.available_settings);
    draft.settings = inbound.settings.values().cloned().collect();
    draft.known_settings = inbound.settings.keys().cloned().collect();
    if let Some(session) = session {
        let sharing = checkpoint.map_or(Sharing::default(), crate::checkpoint::Checkpoint::sharing);
        let in_scope = concepts::recall(session, inbound.audience, sharing, inbound.capture).await;
        draft.metadata.context_status = in_scope.status;
        draft.concepts = Arc::new(in_scope);
        draft.query.clone_from(&inbound.query);
        let similar = past::similar(session, checkpoint, &inbound).await;
        inbound.past_chats.extend(similar);
    }
    let gathered = compose::gather(inner, session, inbound, recalled, Arc::clone(&draft.concepts));
    let planner = Planner::new(inner, session, known, &gathered, available).await;
    if planner.known.terminated {
        let words = inner.safety.texts.text(SafetyText::Termination, &planner.language()).to_owned();
        return Ok(Reached::Answer(said_by_us(draft, words)));
    }
    let making = Making { inner, session, gathered: &gathered, planner: &planner, work, draft };
    making.run(&mut held, outlet).await
}

impl Making<'_> {
    async fn run(self, held: &mut Option<&mut Held<'_>>, outlet: &Outlet) -> Result<Reached, Unanswered> {
        let processing = &self.inner.settings.processing;
        if !processing.prepare {
            let plan = self.planner.unprepared();
            return self.settled(&plan, held, outlet).await;
        }
        let messages = self.gathered.messages();
        let query = &self.gathered.query;
        let rules = self.planner.rules(&messages, query);
        // A turn that was begun before goes on as it was; nobody asks anew what kind of turn it is.
        let small = self.inner.models.small().filter(|_| self.work.is_none());
        let Some(small) = small else {
            let plan = self.planner.plan(rules);
            return self.settled(&plan, held, outlet).await;
        };
        let asking = self.planner.ask(small, &messages, query, &rules);
        let Some(guess) = self.planner.guess(&rules).filter(|_| processing.beside) else {
            let plan = self.planner.plan(asking.await);
            return self.settled(&plan, held, outlet).await;
        };
        self.beside(asking, &guess, held, outlet).await
    }

    /// Begins an answer on a guess while the small model is being asked.
    async fn beside(
        self,
        asking: impl Future<Output = super::Prepared> + Send,
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
            if plan.allows(guess, self.inner.settings.processing.injection_warning) {
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
            Some(reached) => self.finished(&plan, reached, outlet),
            None => self.settled(&plan, held, outlet).await,
        }
    }

    /// Answers on a plan that is final.
    async fn settled(
        self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
    ) -> Result<Reached, Unanswered> {
        self.tell(plan, outlet);
        let texts = &self.inner.safety.texts;
        if let Some(words) = texts.instead_of_answer(&plan.decision, &plan.prepared_language()) {
            let answered = said_by_us(self.again().draft, words);
            return self.finished(plan, Ok(Reached::Answer(answered)), outlet);
        }
        let reached = Box::pin(self.again().answer(plan, held, outlet)).await;
        self.finished(plan, reached, outlet)
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
        let judge = self.inner.models.small().cloned().zip(self.inner.settings.processing.reprocess_at);
        let (Some((judge, limit)), Some(session)) = (judge, self.session) else {
            return self.respond(plan, held, outlet, "").await;
        };
        let mut note = "";
        loop {
            let muted = outlet.muted();
            let reached = self.again().respond(plan, held, &muted, note).await?;
            let Reached::Answer(mut answered) = reached else { return Ok(reached) };
            let material = self.material(plan, &answered.text);
            let made = enrich::ask(session, judge.as_ref(), &material).await;
            let harm = made.as_ref().map_or(0.0, |made| made.harmful_response);
            if harm < limit {
                muted.open();
                answered.enrichment = made.ok();
                return Ok(Reached::Answer(answered));
            }
            if !note.is_empty() {
                let texts = &self.inner.safety.texts;
                let words = texts.text(SafetyText::Refusal, &plan.prepared_language()).to_owned();
                return Ok(Reached::Answer(said_by_us(answered.draft, words)));
            }
            note = HARMFUL_BEFORE;
        }
    }

    async fn respond(
        self,
        plan: &Plan,
        held: &mut Option<&mut Held<'_>>,
        outlet: &Outlet,
        note: &str,
    ) -> Result<Reached, Unanswered> {
        let Self { inner, session, gathered, planner, work, mut draft } = self;
        let work = work.unwrap_or_default();
        // Work that was begun with a tool goes on with it, whatever would be selected now.
        let mut offered = if work.current.is_some() { planner.allowed.clone() } else { plan.offered.clone() };
        let mut prompt =
            compose::compose(inner, session, gathered, plan.prepared.as_ref(), &offered, &mut draft).await;
        if (draft.left_out > 0 || draft.metadata.dropped > 0) && session.is_some() {
            let tool = remember::tool();
            prompt.tools.push(tool.spec.clone());
            offered.push(tool);
        }
        if gathered.concepts.capture && session.is_some() {
            let tool = concepts::tool();
            prompt.tools.push(tool.spec.clone());
            offered.push(tool);
        }
        if let Some(session) = session {
            let tools = planner.focus_tools(plan, session, work.current.is_some());
            prompt.tools.extend(tools.iter().map(|tool| tool.spec.clone()));
            offered.extend(tools);
        }
        prompt.system.push_str(note);
        outlet.progress("🧠 Thinking...");
        let name = if work.model.is_empty() { plan.model() } else { work.model.clone() };
        let model: Arc<dyn Model> = Arc::clone(inner.models.choose(&name));
        let request_id = draft.request_id.clone();
        let mut desk = Desk {
            inner,
            session,
            held: held.as_deref_mut(),
            request_id: &request_id,
            audience: gathered.audience,
            restore: gathered.restore,
            offered: &offered,
            outlet,
            gathered,
            prepared: plan.prepared.as_ref(),
        };
        let chosen = respond::Chosen { model: model.as_ref(), name: &name };
        Box::pin(respond::respond(chosen, prompt, work, draft, &mut desk)).await
    }

    /// What a turn that reached its end leaves behind: notes for the log and for the person.
    fn finished(
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
        let help = self.inner.safety.texts.after_answer(&plan.decision, &language);
        if let Some(help) = help.filter(|help| !answered.text.contains(*help)) {
            let added = format!("\n\n{help}");
            outlet.delta(&added);
            answered.text.push_str(&added);
            answered.tokens = tokens::count(&answered.text);
        }
        let material = self.material(plan, &answered.text);
        let draft = &mut answered.draft;
        draft.note = Note { focus: focus::change(&answered.steps), ..self.note(plan) };
        draft.harm =
            self.planner.running(plan).filter(|running| !running.is_calm() || self.planner.was_harmed());
        draft.material = Some(material);
        let metadata = &mut draft.metadata;
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
        let category = Some(prepared.category.clone());
        Note {
            title: prepared.title.clone().filter(|_| !self.planner.known.titled),
            icon_names: if self.planner.known.titled { Vec::new() } else { prepared.icon_names.clone() },
            category: category.filter(|_| self.planner.known.category.is_none()),
            flagged_for_review: does(SafetyAction::FlagForHumanReview) && !self.planner.known.flagged,
            terminated: does(SafetyAction::TerminateConversation),
            focus: None,
        }
    }

    fn material(&self, plan: &Plan, answer: &str) -> Material {
        Material {
            query: self.gathered.query.clone(),
            answer: answer.to_owned(),
            summary_before: self.planner.known.summary.clone(),
            tags_before: self.planner.known.tags.clone(),
            category: plan.prepared.as_ref().map(|prepared| prepared.category.clone()).unwrap_or_default(),
            settings: self.draft.settings.clone(),
        }
    }

    fn again(&self) -> Self {
        Self { work: self.work.clone(), draft: self.draft.clone(), ..*self }
    }
}

/// An answer of the program itself, in place of a model's.
fn said_by_us(mut draft: Draft, text: String) -> Box<Answered> {
    draft.metadata.model = Some("confidant".to_owned());
    let tokens = tokens::count(&text);
    Box::new(Answered { draft, text, tokens, steps: Vec::new(), enrichment: None })
}

const HARMFUL_BEFORE: &str = "\n\nAn earlier draft of your answer was judged harmful and was not given. Answer in a way \
that helps the person and harms nobody, or say that you cannot.";
