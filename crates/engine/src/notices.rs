//! What ended while nobody waited for it: answers to turns that were taken up again, and approvals that ran out.
//!
//! A channel listens and tells its people. What nobody hears is not lost: it is in the log.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_seal::{Scope, Tag};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::clock::Millis;
use crate::error::Error;
use crate::ledger::checkpoint::Exchange;
use crate::store::Owner;
use crate::turn::Ending;

/// How a turn ended while nobody waited for it.
#[derive(Debug)]
pub struct Notice {
    /// Whose turn.
    pub scope: Scope,
    /// Which turn.
    pub request_id: String,
    /// Its name in the request on a plain bus, where the asker is told.
    pub asked_as: Option<String>,
    /// How it ended.
    pub outcome: Result<Ending, Error>,
}

/// Where listeners are told.
#[derive(Debug)]
pub(crate) struct Notices(broadcast::Sender<Arc<Notice>>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::channel(KEPT).0)
    }
}

/// A listener this far behind misses some.
const KEPT: usize = 256;

impl Notices {
    /// Tells how a turn ended, given as it was before.
    pub(crate) fn tell(&self, scope: &Scope, turn: &Exchange, outcome: Result<Ending, Error>) {
        let (request_id, asked_as) = (turn.request_id.clone(), turn.asked_as().map(str::to_owned));
        let _ = self.0.send(Arc::new(Notice { scope: scope.clone(), request_id, asked_as, outcome }));
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.0.subscribe()
    }
}

/// When sessions in which a turn waits have to be looked at again; what is not known is looked at.
#[derive(Debug, Default)]
pub(crate) struct Agenda(Mutex<HashMap<Tag, Millis>>);

impl Agenda {
    pub(crate) fn is_early(&self, scope: Tag, now: Millis) -> bool {
        let agenda = self.0.lock();
        agenda.get(&scope).is_some_and(|at| now < *at)
    }

    /// Forgets all but these.
    pub(crate) fn keep(&self, scopes: &[(Tag, Owner)]) {
        let known: std::collections::HashSet<Tag> = scopes.iter().map(|(scope, _)| *scope).collect();
        let mut agenda = self.0.lock();
        agenda.retain(|scope, _| known.contains(scope));
    }

    /// Brings a look forward, if a later one is planned.
    pub(crate) fn bring_forward(&self, scope: Tag, at: Millis) {
        let mut agenda = self.0.lock();
        if let Some(planned) = agenda.get_mut(&scope) {
            *planned = (*planned).min(at);
        }
    }

    pub(crate) fn note(&self, scope: Tag, at: Option<Millis>) {
        let mut agenda = self.0.lock();
        match at {
            Some(at) => drop(agenda.insert(scope, at)),
            None => drop(agenda.remove(&scope)),
        }
    }
}
