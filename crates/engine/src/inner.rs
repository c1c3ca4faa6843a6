//! What all handles of an engine share: what keeps, what works, and what goes on now.

use std::sync::{Arc, OnceLock};

use crate::ledger::Ledger;
use crate::notices::Notices;
use crate::running::Running;
use crate::staff::Staff;
use crate::turn::{Cancels, Gateway, Relay};

/// What all handles of an engine share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) ledger: Ledger,
    pub(crate) staff: Staff,
    pub(crate) cancels: Cancels,
    pub(crate) notices: Notices,
    pub(crate) running: Running,
    /// Who has turns run elsewhere, if this process does not run them itself.
    pub(crate) gateway: OnceLock<Arc<dyn Gateway>>,
    /// Who lets other processes hear turns that run here, if anybody does.
    pub(crate) relay: OnceLock<Arc<dyn Relay>>,
    /// Whether this process listens on the bus, if it uses one.
    pub(crate) bus_is_up: OnceLock<tokio::sync::watch::Receiver<bool>>,
}

impl Inner {
    /// How many tokens of a conversation are looked at before the answer; none where nobody would.
    pub(crate) fn looked_at(&self) -> u32 {
        let processing = &self.ledger.settings.processing;
        if processing.prepare && self.staff.models.small().is_some() { processing.history_tokens } else { 0 }
    }
}
