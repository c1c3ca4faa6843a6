//! What is in scope for an answer.

use super::context::ConversationContext;
use super::keep::load;
use super::members::Seat;
use super::shared::{CaptureWhen, ContextStatus, InScope, ScopeNode, Shared};
use crate::audience::{Audience, Sharing};
use crate::ledger::session::Session;

/// Loads what is in scope for an answer that `audience` will read. Never fails: what cannot be had is left out, and said.
pub(crate) async fn recall(session: &Session, audience: Audience, sharing: Sharing, asked: bool) -> InScope {
    let inner = &session.inner;
    let Some(shared) = inner.ledger.concepts.shared() else { return InScope::default() };
    if session.is_web() && !matches!(Seat::of(session).await, Ok(seat) if seat.keeps(session)) {
        return InScope::default();
    }
    let mut scope = match load(session).await {
        Ok(context) => visible(session, shared, &context, audience, sharing).await,
        Err(error) => {
            inner.ledger.counters.contexts_failed.add();
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts in scope could not be loaded");
            InScope { status: ContextStatus::LoadFailed, ..InScope::default() }
        }
    };
    scope.capture = match shared.settings.capture {
        CaptureWhen::Always => true,
        CaptureWhen::Never => false,
        CaptureWhen::Auto => {
            asked || !scope.nodes.is_empty() || shared.is_populated(inner.ledger.now()).await
        }
    };
    // Where nobody speaks of concepts, a tool for them would only be in the way.
    let may_ask = scope.capture && scope.status != ContextStatus::GraphFailed;
    scope.look_up = may_ask && shared.is_populated(inner.ledger.now()).await;
    scope
}

pub(super) async fn visible(
    session: &Session,
    shared: &Shared,
    context: &ConversationContext,
    audience: Audience,
    sharing: Sharing,
) -> InScope {
    let now = session.inner.ledger.now();
    let ranked = context.ranked(now, &shared.settings);
    let by = session.tag();
    let mut shown: Vec<_> = ranked.into_iter().filter(|one| one.reaches(&by, audience, sharing)).collect();
    shown.truncate(shared.settings.max_shown);
    if shown.is_empty() {
        return InScope { status: ContextStatus::Empty, ..InScope::default() };
    }
    let ids: Vec<String> = shown.iter().map(|one| one.id.clone()).collect();
    let found = match shared.nodes(&ids).await {
        Ok(found) => found,
        Err(error) => {
            session.inner.ledger.counters.contexts_failed.add();
            tracing::warn!(error = %error, "concepts in scope could not be described");
            return InScope { status: ContextStatus::GraphFailed, ..InScope::default() };
        }
    };
    let mut scope = InScope { status: ContextStatus::Loaded, ..InScope::default() };
    for (active, node) in shown.into_iter().zip(found) {
        match (node, active.captured(&by, audience, sharing)) {
            (Some(node), _) => {
                if node.id != active.id {
                    scope.moved.push((active.id.clone(), Some(node.id.clone())));
                }
                scope.nodes.push(ScopeNode::from(node));
            }
            (None, Some(candidate)) => scope.nodes.push(ScopeNode::from(candidate.concept.clone())),
            (None, None) => scope.moved.push((active.id.clone(), None)),
        }
    }
    // Two that became one are shown once.
    let mut seen = std::collections::HashSet::new();
    scope.nodes.retain(|node| seen.insert(node.id.clone()));
    if scope.nodes.is_empty() {
        scope.status = ContextStatus::Empty;
    }
    scope
}
