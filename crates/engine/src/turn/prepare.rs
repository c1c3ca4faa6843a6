//! From what was found out about a turn to how it is answered: which model, which tools, and whether at all.
//!
//! The local rules give a plan at once. Where a small model is configured it is asked as well, and the answer is begun
//! beside it on the rules' plan and without tools, behind a gate: if the small model comes to the same plan, the gate opens; if not, what
//! was begun is thrown away. So an answer is never later than one small call, and nothing is heard or done on a plan that
//! does not hold.

use std::sync::Arc;

use confidant_model::{Model, ModelError, PromptMessage, fresh_fence};
use confidant_prepare::{self as prepare, Decision, Offer, Prepared, PreparedBy, RunningHarm, View};
use confidant_seal::TenantId;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::compose::Gathered;
use super::enrich::Enrichment;
use super::focus;
use super::safety::{self, SafetyRecord};
use crate::aspects::FocusMode;
use crate::audience::{Audience, Sharing};
use crate::inner::Inner;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::session::Session;
use crate::store::random_id;
use crate::tools::{Caller, Effect, Tool};

/// How a turn is answered.
#[derive(Debug)]
pub(super) struct Plan {
    /// Nothing where turns are not prepared.
    pub(super) prepared: Option<Prepared>,
    pub(super) decision: Decision,
    pub(super) offered: Vec<Tool>,
    /// Whether what the model is told depends on the category.
    by_category: bool,
}

impl Plan {
    /// Whether an answer that was begun on `other` holds on this plan.
    pub(super) fn allows(&self, other: &Self, warned_at: f32) -> bool {
        let names = |plan: &Self| plan.offered.iter().map(|tool| tool.spec.name.clone()).collect::<Vec<_>>();
        let (Some(new), Some(old)) = (&self.prepared, &other.prepared) else { return false };
        !safety::refuses(&self.decision)
            && new.selected_model == old.selected_model
            && (!self.by_category || new.category == old.category)
            && new.language_code == old.language_code
            && (new.prompt_injection_chance >= warned_at) == (old.prompt_injection_chance >= warned_at)
            && names(self) == names(other)
            && new.relevant_app_focus_modes == old.relevant_app_focus_modes
    }

    /// The model that was chosen, by its name in the settings.
    pub(super) fn model(&self) -> String {
        self.prepared.as_ref().map(|prepared| prepared.selected_model.clone()).unwrap_or_default()
    }

    pub(super) fn prepared_language(&self) -> String {
        self.prepared.as_ref().map_or_else(|| "en".to_owned(), |prepared| prepared.language_code.clone())
    }

    /// Settings and memories that may help and are not here.
    pub(super) fn wanted_settings(&self, known: &[String]) -> Vec<String> {
        let wanted = self.prepared.iter().flat_map(|prepared| &prepared.relevant_app_settings_and_memories);
        wanted.filter(|name| !known.contains(name)).cloned().collect()
    }
}

/// What is known of the conversation before the turn.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) titled: bool,
    /// Whether title, icon and category are the client's.
    pub(super) titled_elsewhere: bool,
    pub(super) category: Option<String>,
    pub(super) flagged: bool,
    pub(super) terminated: bool,
    pub(super) summary: Option<String>,
    pub(super) tags: Vec<String>,
    /// The focus mode that is on.
    pub(super) focus: Option<String>,
    pub(super) harm: RunningHarm,
    /// Whether the harm of this turn is in it already.
    pub(super) scored: bool,
}

impl Known {
    /// What the log has, as far as the answer's readers may know it. However much a person lets rooms recall, what was made
    /// of their private turns is not carried on in what is made of public ones.
    pub(super) fn of(log: &Checkpoint, reader: Audience) -> Self {
        let about = log.about();
        let made = log.made().iter().filter(|made| made.audience.may_reach(reader, Sharing::KeepPrivate));
        let made: Vec<&Enrichment> = made.map(|made| &made.enrichment).collect();
        let summaries: Vec<&str> = made.iter().filter_map(|made| made.chat_summary.as_deref()).collect();
        let mut tags: Vec<String> = Vec::new();
        for tag in made.iter().rev().flat_map(|made| &made.chat_tags) {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        Self {
            titled: about.title.is_some(),
            titled_elsewhere: false,
            category: about.category.clone(),
            flagged: about.flagged_for_review,
            terminated: about.terminated,
            summary: Some(summaries.join(" ")).filter(|summary| !summary.is_empty()),
            tags,
            focus: about.focus.clone(),
            harm: *log.harm(),
            scored: false,
        }
    }
}

impl Known {
    /// What is known of harm.
    pub(super) fn safety(&self) -> SafetyRecord {
        SafetyRecord { harm: self.harm, flagged_for_review: self.flagged, terminated: self.terminated }
    }
}

/// What there is to plan with.
pub(super) struct Planner<'p> {
    inner: &'p Inner,
    pub(super) known: Known,
    /// What is allowed, before anything is selected.
    pub(super) allowed: Vec<Tool>,
    modes: Vec<FocusMode>,
    /// Whether instruction files name categories.
    by_category: bool,
    offer: Offer,
}

impl<'p> Planner<'p> {
    pub(super) async fn new(
        inner: &'p Inner,
        (whose, session): (&Whose<'_>, Option<&Session>),
        mut known: Known,
        gathered: &Gathered,
        settings: Vec<String>,
    ) -> Self {
        let mut allowed = allowed(inner, whose, session).await;
        allowed.retain(|tool| !gathered.off.has_tool(&tool.spec.name));
        let mut catalogue = inner.staff.instructions.catalogue(gathered.situation(inner, session, None));
        catalogue.focus_modes.retain(|mode| !gathered.off.has_focus_mode(&mode.id));
        // Nor is one that was on before named by the tool that stops it.
        known.focus.take_if(|focus| gathered.off.has_focus_mode(focus));
        let first_words = |text: &str| text.chars().take(LONGEST_HINT).collect::<String>();
        let skills = allowed.iter().map(|tool| (tool.spec.name.clone(), first_words(&tool.spec.description)));
        // The first is for everything else; more than that somebody has named, and then only those count.
        let by_category = catalogue.categories.len() > 1;
        let offer = Offer {
            categories: if by_category { catalogue.categories } else { prepare::known_categories() },
            models: inner.staff.models.offered(),
            skills: skills.collect(),
            focus_modes: catalogue.focus_modes.iter().map(|focus| focus.id.clone()).collect(),
            settings_and_memories: settings,
        };
        Self { inner, known, allowed, modes: catalogue.focus_modes, by_category, offer }
    }

    fn view<'v>(&self, messages: &'v [PromptMessage], query: &'v str) -> View<'v> {
        View { history: messages, query, wants_title: !self.known.titled }
    }

    /// Whether the client has settings or memories that could be asked for.
    pub(super) fn knows_settings(&self) -> bool {
        !self.offer.settings_and_memories.is_empty()
    }

    /// What the local rules find out.
    pub(super) fn rules(&self, messages: &[PromptMessage], query: &str) -> Prepared {
        prepare::rules(&self.view(messages, query), &self.offer, &self.inner.staff.gate)
    }

    /// What the small model finds out; what it leaves open is the rules'.
    pub(super) async fn ask(
        &self,
        small: &Arc<dyn Model>,
        messages: &[PromptMessage],
        query: &str,
        rules: &Prepared,
    ) -> Prepared {
        let view = self.view(messages, query);
        let forms = prepare::forms(&view, &self.offer, &fresh_fence());
        let limit = self.inner.ledger.settings.processing.timeout;
        let mut asking: Vec<BoxFuture<'_, Result<Value, ModelError>>> = Vec::new();
        for form in &forms {
            asking.push(Box::pin(async move {
                tokio::time::timeout(limit, small.fill(form)).await.unwrap_or(Err(ModelError::TimedOut))
            }));
        }
        let filled = futures_util::future::join_all(asking).await;
        let found = filled.into_iter().map(|filled| match filled {
            Ok(value) => prepare::read(&value, &view, &self.offer, &self.inner.staff.gate),
            Err(error) => {
                tracing::warn!(model = small.name(), error = %error, "the small model failed; the turn was prepared by local rules");
                None
            }
        });
        prepare::merge(found.collect(), rules.clone())
    }

    /// What a turn that was prepared like this comes to.
    pub(super) fn plan(&self, prepared: Prepared) -> Plan {
        let selected = &prepared.relevant_app_skills;
        // So few tools need no selection; the rules are not to be trusted with one that loses something.
        let all = prepared.by == PreparedBy::Rules && self.allowed.len() <= FEW_TOOLS;
        let offered = self.allowed.iter().filter(|tool| all || selected.contains(&tool.spec.name));
        let offered = offered.cloned().collect();
        let running = self.harm_with(&prepared);
        let decision = self.inner.staff.safety.rules.decide(&prepared.harm, &running);
        Plan { prepared: Some(prepared), decision, offered, by_category: self.by_category }
    }

    /// The plan on which an answer may be begun before the small model has spoken: the rules', unless they would refuse, or
    /// would offer tools or focus modes that the small model may not select.
    pub(super) fn guess(&self, rules: &Prepared) -> Option<Plan> {
        let selects = !rules.relevant_app_skills.is_empty() || !rules.relevant_app_focus_modes.is_empty();
        let guess = Plan { offered: Vec::new(), ..self.plan(rules.clone()) };
        (!selects && !safety::refuses(&guess.decision)).then_some(guess)
    }

    /// The plan where turns are not prepared: everything that is allowed.
    pub(super) fn unprepared(&self) -> Plan {
        let (decision, offered) = (Decision::default(), self.allowed.clone());
        Plan { prepared: None, decision, offered, by_category: self.by_category }
    }

    /// The tools that start and stop focus modes: those that were selected, or all for work that was begun.
    pub(super) fn focus_tools(&self, plan: &Plan, session: &Session, begun: bool) -> Vec<Tool> {
        let selected = |mode: &&FocusMode| {
            let prepared = plan.prepared.as_ref();
            begun || prepared.is_none_or(|prepared| prepared.relevant_app_focus_modes.contains(&mode.id))
        };
        let mut tools = focus::tools(self.modes.iter().filter(selected), self.known.focus.as_deref());
        tools.retain(|tool| self.inner.staff.policy.offers(Whose::of(session).caller, tool));
        tools
    }

    /// The harm of the conversation after a turn on this plan.
    pub(super) fn running(&self, plan: &Plan) -> Option<RunningHarm> {
        plan.prepared.as_ref().map(|prepared| self.harm_with(prepared))
    }

    /// The harm of the conversation with this turn, which counts once.
    fn harm_with(&self, prepared: &Prepared) -> RunningHarm {
        let mut running = self.known.harm;
        if !self.known.scored {
            running.update(&prepared.harm, self.inner.ledger.now().0, &self.inner.staff.safety.rules.decay);
        }
        running
    }

    /// The same for a turn that gets no answer, if it adds to it: a harmless one that is cancelled makes nothing calmer.
    pub(super) fn harm_without_answer(&self, plan: &Plan) -> Option<RunningHarm> {
        let prepared = plan.prepared.as_ref().filter(|_| !self.known.scored)?;
        let mut alone = RunningHarm::default();
        alone.update(&prepared.harm, self.inner.ledger.now().0, &self.inner.staff.safety.rules.decay);
        (!alone.is_calm()).then(|| self.harm_with(prepared))
    }

    /// Whether the log has a score that is not calm, and so must hear of a calmer one.
    pub(super) fn was_harmed(&self) -> bool {
        !self.known.harm.is_calm()
    }

    /// The mate that answers, by name.
    pub(super) fn mate(&self, plan: &Plan, gathered: &Gathered, session: Option<&Session>) -> Option<String> {
        let situation = gathered.situation(self.inner, session, plan.prepared.as_ref());
        self.inner.staff.instructions.mate(situation).map(|mate| mate.name)
    }
}

/// The tools that this person may have called. Without a log nothing could say that a call went out, so what must not be
/// done twice is not done at all.
pub(super) async fn allowed(inner: &Inner, whose: &Whose<'_>, session: Option<&Session>) -> Vec<Tool> {
    let mut tools = inner.staff.toolbox.tools().await;
    tools.retain(|tool| {
        inner.staff.policy.offers(whose.caller, tool) && (session.is_some() || !needs_log(tool.effect))
    });
    tools
}

/// Whether a call with this effect goes out only after an entry of the log that says so.
pub(super) fn needs_log(effect: Effect) -> bool {
    match effect {
        Effect::Reads | Effect::WritesOnce => false,
        Effect::Writes | Effect::Destroys => true,
    }
}

/// Whose turn it is, with a log or without.
pub(super) struct Whose<'w> {
    pub(super) caller: Caller<'w>,
    /// Sets its calls apart from those of others whose turns have the same name.
    pub(super) tag: String,
}

impl<'w> Whose<'w> {
    pub(super) fn of(session: &'w Session) -> Self {
        let (tenant, user) = (session.scope().tenant().as_str(), session.scope().user().as_str());
        Self { caller: Caller { tenant: Some(tenant), user: Some(user) }, tag: session.tag() }
    }

    /// Somebody who is not known, of a tenant if that is.
    pub(super) fn unnamed(tenant: Option<&'w TenantId>) -> Self {
        let tenant = tenant.map(TenantId::as_str);
        let tag = tenant.map_or_else(|| hex::encode(random_id()), |tenant| format!("tenant:{tenant}"));
        Self { caller: Caller { tenant, user: None }, tag }
    }
}

const LONGEST_HINT: usize = 120;
const FEW_TOOLS: usize = 8;
