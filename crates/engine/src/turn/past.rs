//! Conversations of the past that are like the one that begins: what was made of the person's other sessions.
//!
//! Promise 1 lets a prompt hold its own scope's history only, so this is for a person alone: off unless the operator switched it
//! on, in turns that nobody else reads, from sessions of the same person in the same tenant. What it costs does not grow with
//! what they have said: it is done once, at the beginning of a conversation, and looks at a handful of sessions.

use super::remember;
use super::request::{Inbound, PastChat};
use crate::audience::Audience;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::session::{self, Session};
use crate::store::Find;

/// Those that fit the query best, best first. Whatever fails, the turn goes on without.
pub(super) async fn similar(session: &Session, log: Option<&Checkpoint>, inbound: &Inbound) -> Vec<PastChat> {
    let processing = &session.inner.ledger.settings.processing;
    let wanted = processing.past_chats && begins(log, inbound) && inbound.request.past_chats.is_empty();
    // A device picks those that a chat of its own is told of.
    let wanted = wanted && !inbound.request.off.past_chats && !session.is_web();
    if !wanted || inbound.audience != Audience::Private {
        return Vec::new();
    }
    match tokio::time::timeout(processing.timeout, found(session, &inbound.request.query)).await {
        Ok(Ok(found)) => found,
        failed => {
            let error = failed.map_or("timed-out", |failed| failed.map_or_else(|error| error.code(), |_| ""));
            tracing::warn!(scope.tag = %session.tag(), error, "past conversations could not be searched");
            Vec::new()
        }
    }
}

/// Whether nothing was said before this turn.
pub(super) fn begins(log: Option<&Checkpoint>, inbound: &Inbound) -> bool {
    log.is_none_or(|log| {
        log.dropped() == 0 && log.all().all(|exchange| exchange.request_id == inbound.request_id)
    })
}

/// A conversation that may be alike.
struct Candidate {
    session: Session,
    chat: PastChat,
    words: Vec<String>,
}

async fn found(session: &Session, query: &str) -> Result<Vec<PastChat>, Error> {
    let candidates = candidates(session).await?;
    let query: Vec<String> = words(query);
    // A word that few of them have says more than one that many have.
    let weight = |word: &String| {
        let having = candidates.iter().filter(|one| one.words.contains(word)).count();
        ((1.0 + candidates.len() as f64) / (0.5 + having as f64)).ln()
    };
    let weights: Vec<(&String, f64)> = query.iter().map(|word| (word, weight(word))).collect();
    let score = |one: &Candidate| -> f64 {
        weights.iter().filter(|(word, _)| one.words.contains(word)).map(|(_, weight)| weight).sum()
    };
    let mut scored: Vec<(f64, &Candidate)> = candidates.iter().map(|one| (score(one), one)).collect();
    scored.retain(|(score, _)| *score > 0.0);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut found = Vec::new();
    for (_, one) in scored.into_iter().take(MOST_TOLD) {
        // Another session's content is told, so somebody looked at it.
        session.inner.ledger.record(one.session.record(Action::SessionViewed)).await?;
        found.push(one.chat.clone());
    }
    Ok(found)
}

async fn candidates(session: &Session) -> Result<Vec<Candidate>, Error> {
    let inner = &session.inner;
    let find = Find::Person { tenant: session.names.tenant, person: session.names.person };
    let mut listed = inner.ledger.store.list(find, None, MOST_LISTED).await?;
    listed.retain(|one| one.names.scope != session.names.scope && one.names.tenant == session.names.tenant);
    // Those that are kept for good first, then those that were spoken in last.
    listed.sort_by_key(|one| (one.expires_at.is_some(), std::cmp::Reverse(one.expires_at)));
    let mut candidates = Vec::new();
    for one in listed.into_iter().take(MOST_OPENED) {
        let Some(row) = inner.ledger.keyring.store().get(one.names.scope).await? else { continue };
        let Ok(scope) = inner.ledger.keyring.scope_of(&row) else { continue };
        let other = Session::new(std::sync::Arc::clone(inner), scope, session.actor.clone());
        // The tags only found it; whose it is stands in its key.
        if (other.names.tenant, other.names.person) != (session.names.tenant, session.names.person) {
            continue;
        }
        let log = match session::open(&other).await {
            Ok(Some((log, _))) => log,
            // One that does not open is reported where it is meant.
            Ok(None) | Err(Error::Tampered(_)) => continue,
            Err(error) => return Err(error),
        };
        candidates.extend(candidate(other, log.checkpoint()));
    }
    Ok(candidates)
}

fn candidate(session: Session, log: &Checkpoint) -> Option<Candidate> {
    let made = || log.made().iter().map(|made| &made.enrichment);
    let summary = made().filter_map(|made| made.chat_summary.as_deref()).collect::<Vec<_>>().join(" ");
    let title = log.about().title.clone().unwrap_or_default();
    let tags = made().flat_map(|made| &made.chat_tags).map(String::as_str).collect::<Vec<_>>().join(" ");
    let words = words(&format!("{title} {summary} {tags}"));
    (!summary.is_empty()).then(|| Candidate { session, chat: PastChat { title, summary }, words })
}

/// Words that are long enough to be about something.
fn words(text: &str) -> Vec<String> {
    let mut words = remember::words(text);
    words.retain(|word| word.chars().count() >= SHORTEST_WORD);
    words
}

/// Sessions that are listed, opened, and told of.
const MOST_LISTED: usize = 100;
const MOST_OPENED: usize = 8;
const MOST_TOLD: usize = 3;
const SHORTEST_WORD: usize = 4;
