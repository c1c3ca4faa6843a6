//! What people can do with what is in scope, and administrators with what waits to be approved.

use std::collections::BTreeMap;

use confidant_concepts::Concept;
use confidant_display::Hinted as _;
use confidant_seal::TenantId;
use futures_util::future::BoxFuture;
use serde::Serialize;

use super::context::{Active, Captured, ConversationContext, Event, What};
use super::conversation::SHARED_CHANNEL;
use super::keep::{self, Forgotten, Merge};
use super::members::Seat;
use super::{ContextStatus, InScope, Shared};
use crate::audience::{Audience, Sharing};
use crate::clock::Millis;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::rights::Administrator;
use crate::ledger::session::Session;
use crate::store::contexts::CapturesOf;

/// What is in scope of a conversation, as one of those who speak in it may see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScopeView {
    /// The conversation.
    pub conversation_id: String,
    /// Ids, the most important first.
    #[serde(rename = "activeNodeIds")]
    pub active_node_ids: Vec<String>,
    /// The same with what is known of them.
    pub concepts: Vec<ConceptInScope>,
    /// Whether they could be described.
    pub context_status: ContextStatus,
}

/// A concept in scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConceptInScope {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub label: String,
    /// Whose law it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it stays in scope whatever else comes.
    pub pinned: bool,
    /// In how many turns it was used.
    pub uses: u64,
    /// When it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Millis>,
    /// Whether it waits to be approved into the shared graph.
    pub candidate: bool,
}

/// Why a concept is in scope: one thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// When.
    pub at: Millis,
    /// `used`, `pinned` or `unpinned`.
    pub what: &'static str,
    /// The turn; nothing if it was somebody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether it was this person.
    pub yours: bool,
    /// Who could read that turn.
    pub audience: Audience,
}

/// What a person chooses for a concept in scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConceptChoice {
    /// It stays in scope.
    Pin,
    /// It goes by its rank again.
    Unpin,
}

/// A captured concept that waits to be approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What was captured last.
    #[serde(flatten)]
    pub concept: Concept,
    /// Whether its label is what a person said, word for word: approving it needs another.
    pub said: bool,
    /// In how many turns it was captured.
    pub captures: u64,
    /// By which sessions, as tags.
    pub sessions: Vec<String>,
    /// When first.
    pub first: Millis,
    /// When last.
    pub last: Millis,
}

/// What an approval put into the shared graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApprovedConcept {
    /// Its id.
    pub id: String,
    /// What it is called there.
    #[serde(rename = "prefLabel")]
    pub pref_label: String,
}

impl Session {
    /// The conversation's id: the one that an application gave it, or the session's.
    #[must_use]
    pub fn conversation_id(&self) -> String {
        match self.scope.place_id() {
            Some(place) if self.scope.channel().as_str() == SHARED_CHANNEL => place.as_str().to_owned(),
            _ => self.id(),
        }
    }

    /// What is in scope of the session's conversation, as its person may see it.
    pub fn concepts_in_scope(&self) -> BoxFuture<'_, Result<ScopeView, Error>> {
        Box::pin(async move {
            let shared = on(self)?;
            self.inner.ledger.record(self.record(Action::ContextViewed)).await?;
            let context = keep::load(self).await?;
            let scope =
                super::recall::visible(self, shared, &context, Audience::Private, Sharing::default()).await;
            Ok(self.viewed(shared, &context, &scope))
        })
    }

    fn viewed(&self, shared: &Shared, context: &ConversationContext, scope: &InScope) -> ScopeView {
        let by = self.tag();
        let ranked = context.ranked(self.inner.ledger.now(), &shared.settings);
        let mine = ranked.iter().filter(|one| one.reaches(&by, Audience::Private, Sharing::default()));
        let moved: BTreeMap<&str, Option<&str>> =
            scope.moved.iter().map(|(from, to)| (from.as_str(), to.as_deref())).collect();
        let mut concepts = Vec::new();
        for active in mine {
            let id = match moved.get(active.id.as_str()) {
                Some(None) => continue,
                Some(Some(to)) => *to,
                None => active.id.as_str(),
            };
            let captured = active.captured(&by, Audience::Private, Sharing::default());
            concepts.push(described(id, active, captured, scope));
        }
        ScopeView {
            conversation_id: self.conversation_id(),
            active_node_ids: concepts.iter().map(|one| one.id.clone()).collect(),
            concepts,
            context_status: scope.status,
        }
    }

    /// Pins a concept in scope, or lets go of it; false if it is not in scope.
    pub fn choose_concept<'a>(
        &'a self,
        id: &'a str,
        choice: ConceptChoice,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            let shared = on(self)?;
            let context = keep::load(self).await?;
            let by = self.tag();
            let ranked = context.ranked(self.inner.ledger.now(), &shared.settings);
            let found = ranked.iter().find(|one| one.id == id);
            if !found.is_some_and(|one| one.reaches(&by, Audience::Private, Sharing::default())) {
                return Ok(false);
            }
            let (what, action) = match choice {
                ConceptChoice::Pin => (What::Pinned(id.to_owned()), Action::ContextPinned),
                ConceptChoice::Unpin => (What::Unpinned(id.to_owned()), Action::ContextUnpinned),
            };
            let at = self.inner.ledger.now();
            let request_id = format!("choice-{}", uuid::Uuid::now_v7());
            let event = Event { at, request_id, by, audience: Audience::Private, what };
            let audit = vec![self.record(action)];
            let merge = Merge { event: &event, moved: &[], audit, under: None };
            keep::merge(self, shared, merge).await?;
            Ok(true)
        })
    }

    /// Why a concept is in scope, oldest first; empty if it is not.
    pub fn why_in_scope<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Reason>, Error>> {
        Box::pin(async move {
            on(self)?;
            self.inner.ledger.record(self.record(Action::ContextViewed)).await?;
            let seat = Seat::of(self).await?;
            let events = keep::events(&self.inner, CapturesOf::Conversation(seat.conversation.name)).await?;
            let by = self.tag();
            let reasons = events.into_iter().filter_map(|(_, event)| {
                let yours = event.by == by;
                let what = match &event.what {
                    What::Used(used) if used.iter().any(|one| one.id == id) => "used",
                    What::Pinned(pinned) if pinned == id => "pinned",
                    What::Unpinned(unpinned) if unpinned == id => "unpinned",
                    _ => return None,
                };
                // What somebody else did in private is not this person's to know.
                (yours || event.audience == Audience::Room).then(|| Reason {
                    at: event.at,
                    what,
                    request_id: Some(event.request_id).filter(|_| yours),
                    yours,
                    audience: event.audience,
                })
            });
            Ok(reasons.collect())
        })
    }

    /// Ends what this session put in scope, and the log of it; says how many records went.
    pub fn forget_concepts(&self) -> BoxFuture<'_, Result<u64, Error>> {
        Box::pin(async move {
            let was_in = self.is_in_conversation().await?;
            let forgotten = keep::forget(&self.inner, self.names.scope, Some(&self.scope)).await?;
            if was_in {
                // Forgetting is not leaving: they have a new part, with nothing in it.
                self.join_conversation().await?;
            }
            let note = self.record(Action::ContextErased).counting(forgotten.captures);
            self.inner.ledger.record(note).await?;
            self.inner.ledger.store.scrub().await?;
            Ok(forgotten.captures)
        })
    }

    /// Makes the context anew from the capture log.
    pub fn rebuild_concepts(&self) -> BoxFuture<'_, Result<ConversationContext, Error>> {
        Box::pin(async move { keep::rebuild(self, on(self)?).await })
    }

    /// Ends what a chat that only its owner can open has in scope, and the log of it: the keys first. Says what went, if anything
    /// was kept at all.
    pub(crate) async fn end_concepts(&self) -> Result<Option<Forgotten>, Error> {
        let Seat { conversation, part: Some((part, _)) } = Seat::of(self).await? else { return Ok(None) };
        Ok(Some(keep::forget_part(&self.inner, &conversation, &part).await?))
    }

    /// What is kept of such a chat, for its owner: what was captured, oldest first; nothing where that is not switched on.
    pub(crate) async fn kept_concepts(&self) -> Result<Option<Vec<serde_json::Value>>, Error> {
        let Seat { conversation, part: Some(_) } = Seat::of(self).await? else { return Ok(None) };
        let events = keep::events(&self.inner, CapturesOf::Conversation(conversation.name)).await?;
        Ok(Some(events.into_iter().filter_map(|(_, event)| serde_json::to_value(event).ok()).collect()))
    }

    /// Its records in the capture log.
    pub(super) fn captures(&self) -> CapturesOf {
        CapturesOf::SessionOf { tenant: self.names.tenant, scope: self.names.scope }
    }

    /// What an export has of the session's concepts: what it captured, oldest first.
    pub(crate) async fn exported_concepts(&self) -> Result<Vec<serde_json::Value>, Error> {
        let events = keep::events(&self.inner, self.captures()).await?;
        Ok(events.into_iter().filter_map(|(_, event)| serde_json::to_value(event).ok()).collect())
    }
}

fn on(session: &Session) -> Result<&Shared, Error> {
    session.inner.ledger.concepts.shared().map(std::convert::AsRef::as_ref).ok_or_else(off)
}

fn off() -> Error {
    Error::Invalid {
        what: "concepts are switched off".to_owned(),
        hint: "set concepts.enabled = true in confidant.toml".to_owned(),
    }
}

fn described(id: &str, active: &Active, captured: Option<&Captured>, scope: &InScope) -> ConceptInScope {
    let node = scope.nodes.iter().find(|node| node.id == id);
    let captured = captured.map(|captured| &captured.concept);
    let label =
        node.map(|node| node.label.clone()).or_else(|| captured.map(|concept| concept.pref_label.clone()));
    ConceptInScope {
        id: id.to_owned(),
        label: label.unwrap_or_else(|| id.to_owned()),
        jurisdiction: node.and_then(|node| node.jurisdiction.clone()),
        description: node.and_then(|node| node.description.clone()),
        pinned: active.is_pinned(),
        uses: active.uses.iter().map(|one| u64::from(one.count)).sum(),
        last_used: active.uses.iter().map(|one| one.last).max(),
        candidate: captured.is_some(),
    }
}

impl Administrator {
    /// What was captured in a tenant and waits to be approved, by id. What the shared graph has by now is left out.
    pub fn candidates<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<Candidate>, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let shared = inner.ledger.concepts.shared().ok_or_else(off)?;
            let tag = inner.ledger.keyring.tenant(tenant);
            let mut found: BTreeMap<String, Candidate> = BTreeMap::new();
            for (row, event) in keep::events(inner, CapturesOf::Tenant(tag)).await? {
                let What::Used(used) = event.what else { continue };
                for captured in used.into_iter().filter_map(|one| one.concept) {
                    let fresh = || Candidate {
                        concept: captured.concept.clone(),
                        said: captured.said,
                        captures: 0,
                        sessions: Vec::new(),
                        first: event.at,
                        last: event.at,
                    };
                    let one = found.entry(captured.concept.id.clone()).or_insert_with(fresh);
                    one.captures += 1;
                    one.said |= captured.said;
                    one.last = one.last.max(event.at);
                    one.concept = captured.concept.clone();
                    let session = row.scope.to_string();
                    if !one.sessions.contains(&session) {
                        one.sessions.push(session);
                    }
                }
            }
            self.inner()
                .ledger
                .record(
                    self.note(Action::ConceptListed)
                        .within(self.inner().ledger.keyring.tenant(tenant))
                        .counting(found.len() as u64),
                )
                .await?;
            let ids: Vec<String> = found.keys().cloned().collect();
            for page in ids.chunks(PAGE) {
                if let Ok(nodes) = shared.nodes(page).await {
                    page.iter().zip(nodes).filter(|(_, node)| node.is_some()).for_each(|(id, _)| {
                        found.remove(id);
                    });
                }
            }
            Ok(found.into_values().collect())
        })
    }

    /// Ends what is in scope of a conversation that an application named, everybody's; says how many records went.
    pub fn erase_conversation_context<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
    ) -> BoxFuture<'a, Result<u64, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let gone = keep::erase_shared(inner, tenant, id).await?;
            inner
                .ledger
                .record(
                    self.note(Action::ContextErased)
                        .within(self.inner().ledger.keyring.tenant(tenant))
                        .counting(gone),
                )
                .await?;
            inner.ledger.store.scrub().await?;
            Ok(gone)
        })
    }

    /// Puts a candidate into the shared graph. Its other names stay behind, unless the approver gives them; so does a
    /// label that a person said word for word.
    pub fn approve_concept<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a str,
        label: Option<&'a str>,
        alt_labels: &'a [String],
    ) -> BoxFuture<'a, Result<Option<ApprovedConcept>, Error>> {
        Box::pin(async move {
            let candidate =
                self.candidates(tenant).await?.into_iter().find(|candidate| candidate.concept.id == id);
            let Some(candidate) = candidate else { return Ok(None) };
            if candidate.said && label.is_none() {
                return Err(Error::Invalid {
                    what: "the label quotes a person's own words, so it cannot be made public".to_owned(),
                    hint: "give the official label with --label".to_owned(),
                });
            }
            let mut concept = Concept { alt_labels: alt_labels.to_vec(), ..candidate.concept };
            if let Some(label) = label {
                crate::fence::one_line(label).clone_into(&mut concept.pref_label);
            }
            let shared = self.inner().ledger.concepts.shared().ok_or_else(off)?;
            let pref_label = concept.pref_label.clone();
            let cleared = match shared.guard.clear(concept) {
                Ok(cleared) => cleared,
                Err(refusals) => {
                    let reasons: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                    for reason in &reasons {
                        self.inner()
                            .ledger
                            .record(
                                self.note(Action::ConceptRefused)
                                    .within(self.inner().ledger.keyring.tenant(tenant))
                                    .because(reason),
                            )
                            .await?;
                    }
                    return Err(Error::Invalid {
                        what: format!("the concept was refused: {}", reasons.join(", ")),
                        hint: "give a label and other labels without personal data".to_owned(),
                    });
                }
            };
            let approved = shared.graph.approve(cleared).await.map_err(|error| {
                let (what, hint) = error.what_and_hint("try again");
                Error::Derived { what, hint }
            })?;
            self.inner()
                .ledger
                .record(self.note(Action::ConceptApproved).within(self.inner().ledger.keyring.tenant(tenant)))
                .await?;
            Ok(Some(ApprovedConcept { id: approved, pref_label }))
        })
    }
}

const PAGE: usize = 200;
