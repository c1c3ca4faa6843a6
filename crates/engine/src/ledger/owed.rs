//! Answers that were given while the store was away, which the log has yet to hear.
//!
//! Promise 8 answers a turn whose place in the log could not be written, or whose answer could not. If this process had the
//! session's key in hand, it remembers the exchange and writes it once the store is back: at the session's next turn, or when
//! what was left is looked for. What is easy to get wrong: the session may have been erased meanwhile, here or elsewhere. An
//! exchange is only ever written to a log that still has the very key it was made for; an erasure destroys that, so nothing
//! that was said before a receipt is stored after it. It is plaintext, so it is bounded, and it ends with the process.

use std::collections::{HashMap, VecDeque};

use confidant_display::debug_without_content;
use confidant_seal::{Kid, Tag};
use parking_lot::{Mutex, MutexGuard};

use crate::ledger::audit::AuditRecord;
use crate::ledger::entry::Entry;

/// What is still to be written to the logs of sessions.
#[derive(Default)]
pub(crate) struct Owed(Mutex<Debts>);

#[derive(Default)]
struct Debts {
    of: HashMap<Tag, VecDeque<Debt>>,
    bytes: usize,
}

/// One exchange that is missing from the log, or whose end is.
#[derive(Clone)]
pub(crate) struct Debt {
    pub(crate) request_id: String,
    /// The key of the log that it belongs to.
    pub(crate) kid: Kid,
    /// The request, for a log that does not have it.
    pub(crate) request: Vec<Entry>,
    /// What became of it.
    pub(crate) outcome: Vec<Entry>,
    /// The audit records that go with it.
    pub(crate) notes: Vec<AuditRecord>,
    bytes: usize,
}

impl Debt {
    /// The exchange that a request begins, for the log that has this key.
    pub(crate) fn of(kid: Kid, request: Vec<Entry>, request_id: &str) -> Self {
        let request_id = request_id.to_owned();
        Self { request_id, kid, request, outcome: Vec::new(), notes: Vec::new(), bytes: 0 }
    }

    /// The same with its end.
    pub(crate) fn ending(mut self, outcome: Vec<Entry>, notes: Vec<AuditRecord>) -> Self {
        let size = |entry: &Entry| serde_json::to_vec(entry).map_or(0, |json| json.len());
        self.bytes = self.request.iter().chain(&outcome).map(size).sum();
        (self.outcome, self.notes) = (outcome, notes);
        self
    }
}

impl Owed {
    /// Remembers an exchange. One that does not fit is dropped and never written to the log.
    pub(crate) fn note(&self, scope: Tag, debt: Debt) {
        let mut debts = self.lock();
        if debts.bytes + debt.bytes > MOST_BYTES {
            tracing::warn!(scope.tag = %scope, "too many turns are waiting for the store; a turn will not be saved");
            return;
        }
        debts.bytes += debt.bytes;
        let of = debts.of.entry(scope).or_default();
        // Asked again while the store was away: the last answer is the one that was read last.
        let before = of.iter().position(|known| known.request_id == debt.request_id);
        let gone = before.and_then(|at| of.remove(at)).map_or(0, |gone| gone.bytes);
        of.push_back(debt);
        debts.bytes -= gone;
    }

    /// Lets go of everything of a session, as when it was erased.
    pub(crate) fn forget(&self, scope: Tag) {
        let mut debts = self.lock();
        let gone: usize = debts.of.remove(&scope).iter().flatten().map(|debt| debt.bytes).sum();
        debts.bytes -= gone;
    }

    /// Lets go of one turn, as when its message was changed or taken back.
    pub(crate) fn forget_turn(&self, scope: Tag, request_id: &str) {
        let mut debts = self.lock();
        let Some(of) = debts.of.get_mut(&scope) else { return };
        let gone: usize = of.iter().filter(|debt| debt.request_id == request_id).map(|debt| debt.bytes).sum();
        of.retain(|debt| debt.request_id != request_id);
        if of.is_empty() {
            debts.of.remove(&scope);
        }
        debts.bytes -= gone;
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        *self.lock() = Debts::default();
    }

    pub(crate) fn first(&self, scope: Tag) -> Option<Debt> {
        self.lock().of.get(&scope)?.front().cloned()
    }

    pub(crate) fn scopes(&self) -> Vec<Tag> {
        self.lock().of.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Debts> {
        self.0.lock()
    }
}

debug_without_content!(Owed { sessions: lock().of.len() });

/// The most that is remembered, of all sessions together.
const MOST_BYTES: usize = 16 << 20;
