//! From the log into the context: what turns named is looked up in the graph and merged.
//!
//! What a turn named is in the log with its answer, so a process that ends before it is merged loses nothing: whoever has
//! the session next does it, and so does whoever looks after what was left open. What is easy to get wrong: two may do it at
//! once, so the store takes each turn once, and the log hears of it afterwards.

use std::sync::Arc;

use confidant_concepts::{Concept, GraphError, Look, Node, agree};
use confidant_seal::Kid;

use super::context::{Captured, Event, Used, What};
use super::keep::{self, Merge};
use super::{ConceptsOfTurn, ContextStatus, InScope, Shared, Uncertainty};
use crate::error::Error;
use crate::ledger::entry::Capture;
use crate::ledger::session::{Held, Session, Wrote};
use crate::running::Running;

/// Brings what a turn named into scope, now that it is in the log, and says what became of it. Never fails the turn.
pub(crate) async fn note(
    session: &Session,
    held: &mut Held<'_>,
    scope: &InScope,
    request_id: &str,
) -> (ContextStatus, Option<ConceptsOfTurn>) {
    let Some(shared) = session.inner.ledger.concepts.shared() else { return (ContextStatus::Off, None) };
    let Some(capture) = held.captured().into_iter().find(|capture| capture.request_id == request_id) else {
        let uncertainty_level = ungrounded(scope);
        later(session, held);
        return (scope.status, Some(ConceptsOfTurn { uncertainty_level, ..ConceptsOfTurn::default() }));
    };
    let brought = bring(session, shared, (capture, held.kid()), &scope.moved, Ask::Graph).await;
    let mut status = scope.status;
    if brought.unasked && status != ContextStatus::LoadFailed {
        status = ContextStatus::GraphFailed;
    }
    match &brought.merged {
        Ok(()) => session.inner.ledger.counters.concepts_captured.add(),
        // A load that failed says more than a save that failed for the same reason.
        Err(_) if status == ContextStatus::LoadFailed => {}
        Err(_) => status = ContextStatus::SaveFailed,
    }
    if brought.is_over() {
        held.merged(request_id);
    }
    later(session, held);
    (status, Some(brought.of_turn))
}

/// Brings into scope what earlier turns named and nobody did; says whether nothing is left. A write is to follow.
pub(crate) async fn catch_up(session: &Session, held: &mut Held<'_>) -> Result<(), Error> {
    let captured = held.captured();
    let Some(shared) = session.inner.ledger.concepts.shared() else {
        // Switched off: nothing will ever come of it.
        captured.iter().for_each(|capture| held.merged(&capture.request_id));
        return Ok(());
    };
    let mut ask = Ask::Graph;
    for capture in captured {
        let request_id = capture.request_id.clone();
        let brought = bring(session, shared, (capture, held.kid()), &[], ask).await;
        if brought.unasked {
            // Nobody waits for a graph that is away more than once.
            ask = Ask::Nobody;
        }
        if brought.is_over() {
            held.merged(&request_id);
        }
        brought.merged?;
    }
    Ok(())
}

/// Tells the log, beside everything else, what is in scope by now.
fn later(session: &Session, held: &Held<'_>) {
    if !held.has_merged() {
        return;
    }
    let session = session.clone();
    Running::aside(&Arc::clone(&session.inner), async move {
        if let Err(error) = tell(&session).await {
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts in scope could not be logged yet; will retry");
        }
    });
}

async fn tell(session: &Session) -> Result<(), Error> {
    let mut held = session.lock().await?;
    match held.write_merged().await? {
        Wrote::Done => Ok(()),
        // Somebody else wrote; whoever looks after what was left open finds that it is done.
        Wrote::Conflict => Err(Error::Busy),
    }
}

/// Whether the graph is asked for what was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Graph,
    Nobody,
}

/// What came of what a turn named.
struct Brought {
    of_turn: ConceptsOfTurn,
    /// Whether the graph could not be asked, so that all are candidates.
    unasked: bool,
    merged: Result<(), Error>,
}

impl Brought {
    /// Whether trying again would change nothing.
    fn is_over(&self) -> bool {
        matches!(&self.merged, Ok(()) | Err(Error::Tampered(_) | Error::Erased))
    }
}

async fn bring(
    session: &Session,
    shared: &Shared,
    (capture, under): (Capture, Option<Kid>),
    moved: &[(String, Option<String>)],
    ask: Ask,
) -> Brought {
    let asked = match ask {
        Ask::Graph => resolve(shared, capture.concepts.clone()).await,
        Ask::Nobody => Err(GraphError::TimedOut),
    };
    let unasked = asked.is_err();
    let (used, resolved) = asked.unwrap_or_else(|error| {
        tracing::warn!(error = %error, "captured concepts could not be looked up; they are kept as candidates");
        (capture.concepts.into_iter().map(candidate).collect(), 0)
    });
    let of_turn = of_turn(&used, resolved);
    let event = Event {
        at: capture.at,
        request_id: capture.request_id,
        by: session.tag(),
        audience: capture.audience,
        what: What::Used(used.into_iter().map(|(used, _)| used).collect()),
    };
    let merge = Merge { event: &event, moved, audit: Vec::new(), under };
    let merged = keep::merge(session, shared, merge).await.map(drop);
    if let Err(error) = &merged {
        session.inner.ledger.counters.contexts_failed.add();
        tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts in scope could not be saved");
    }
    Brought { of_turn, unasked, merged }
}

fn of_turn(used: &[(Used, Option<String>)], resolved: usize) -> ConceptsOfTurn {
    let mut of_turn = ConceptsOfTurn {
        referenced_nodes: used.iter().map(|one| one.0.id.clone()).collect(),
        jurisdictions: used.iter().filter_map(|one| one.1.clone()).collect(),
        uncertainty_level: grounded(resolved, used.len()),
    };
    dedup(&mut of_turn.referenced_nodes);
    dedup(&mut of_turn.jurisdictions);
    of_turn
}

/// What a turn that was answered before had to say of concepts.
pub(crate) async fn recorded(session: &Session, request_id: &str) -> Option<ConceptsOfTurn> {
    let shared = session.inner.ledger.concepts.shared()?;
    let event = keep::event_of(session, request_id).await.ok()??;
    let What::Used(used) = event.what else { return None };
    let ids: Vec<String> = used.iter().map(|one| one.id.clone()).collect();
    let nodes = shared.nodes(&ids).await.unwrap_or_else(|_| vec![None; ids.len()]);
    let found = nodes.iter().flatten().count();
    let law = |(one, node): (&Used, &Option<Node>)| {
        let captured = || one.concept.as_ref().map(|captured| captured.concept.jurisdiction.clone());
        node.as_ref().map_or_else(captured, |node| node.jurisdiction.clone()).filter(|code| code != "GLOBAL")
    };
    let mut jurisdictions: Vec<String> = used.iter().zip(&nodes).filter_map(law).collect();
    dedup(&mut jurisdictions);
    let uncertainty_level = grounded(found, ids.len());
    Some(ConceptsOfTurn { referenced_nodes: ids, jurisdictions, uncertainty_level })
}

/// How well an answer stands of whose concepts so many are in the shared graph.
fn grounded(resolved: usize, all: usize) -> Uncertainty {
    match resolved {
        0 => Uncertainty::High,
        resolved if resolved == all => Uncertainty::Low,
        _ => Uncertainty::Medium,
    }
}

/// How well an answer stands that named no concept.
fn ungrounded(scope: &InScope) -> Uncertainty {
    if scope.status == ContextStatus::Loaded { Uncertainty::Medium } else { Uncertainty::High }
}

fn dedup(items: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
}

type Resolved = (Vec<(Used, Option<String>)>, usize);

/// The nodes of the shared graph that these are, and candidates for the rest; with how many are in the graph.
async fn resolve(shared: &Shared, concepts: Vec<Captured>) -> Result<Resolved, GraphError> {
    let ids: Vec<String> = concepts.iter().map(|captured| captured.concept.id.clone()).collect();
    let by_id = shared.nodes(&ids).await?;
    let (mut used, mut resolved) = (Vec::new(), 0);
    for (captured, found) in concepts.into_iter().zip(by_id) {
        match look_up(shared, &captured.concept, found).await? {
            Some(node) => {
                resolved += 1;
                let jurisdiction = node.jurisdiction.filter(|code| code != "GLOBAL");
                used.push((Used { id: node.id, concept: None }, jurisdiction));
            }
            None => used.push(candidate(captured)),
        }
    }
    Ok((used, resolved))
}

/// By id, then by parts, then by label. An id that many concepts might share counts less than a label that agrees.
async fn look_up(
    shared: &Shared,
    concept: &Concept,
    by_id: Option<Node>,
) -> Result<Option<Node>, GraphError> {
    if by_id.as_ref().is_some_and(|node| agree(node, &concept.pref_label)) {
        return Ok(by_id);
    }
    let Concept { domain, jurisdiction, kind, pref_label, .. } = concept;
    if by_id.is_none() {
        let mut by_parts = shared.find(Look::Parts { domain, jurisdiction, kind }, 2).await?;
        // Two that have the same parts are told apart by their labels only.
        if by_parts.len() == 1 {
            return Ok(by_parts.pop());
        }
    }
    let local = Some(jurisdiction.as_str()).filter(|code| *code != "GLOBAL");
    let by_label = shared.find(Look::Label { label: pref_label, jurisdiction: local }, 1).await?.pop();
    Ok(by_label.or(by_id))
}

fn candidate(captured: Captured) -> (Used, Option<String>) {
    let jurisdiction = Some(captured.concept.jurisdiction.clone()).filter(|code| code != "GLOBAL");
    (Used { id: captured.concept.id.clone(), concept: Some(captured) }, jurisdiction)
}
