//! Where a turn goes that this process does not run itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::{Scope, TenantId};

use super::outbound::Ending;
use super::outlet::Outlet;
use super::request::TurnRequest;
use super::safety::SafetyRecord;
use crate::error::Error;
use crate::ledger::audit::Actor;

/// A turn that is asked for.
#[derive(Debug)]
pub(crate) struct Errand {
    /// Whose memory; none for a turn without.
    pub(crate) scope: Option<Scope>,
    /// Whose turn it is where there is no memory to say so.
    pub(crate) tenant: Option<TenantId>,
    pub(crate) actor: Actor,
    /// With its name and its audience.
    pub(crate) request: TurnRequest,
}

/// Has turns run by others.
#[async_trait]
pub(crate) trait Gateway: Send + Sync + std::fmt::Debug {
    /// Has a turn run by a worker.
    async fn run(self: Arc<Self>, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error>;
    /// Cancels a turn, wherever it runs.
    async fn cancel(&self, errand: &Errand);
    /// What a worker said of the harm of a chat that is in its memory only; once.
    fn take_score(&self, scope: &Scope) -> Option<SafetyRecord>;
    /// Has every worker end what it has of a chat in its memory, or of all chats of the account.
    async fn end(&self, scope: &Scope, whole_account: bool);
    /// Tells workers to look for unfinished turns now, not only at their next round.
    async fn nudge(&self);
    /// How long the gateway looks for a worker.
    fn patience(&self) -> Duration;
    /// Whether a worker listens; one that nobody can count is taken to be there.
    async fn has_worker(&self) -> bool;
    /// Whether turns of this session may be run by workers that are not ours, and have a memory of their own.
    fn may_be_foreign(&self, scope: &Scope) -> bool;
}
