//! Ends that come when nobody waits for them any more, told on a plain bus: an approval is decided by others or runs out, or
//! a turn is taken up after its worker died. Our own gateways look into the log; a foreign bot has only what it hears.
//!
//! Told under the name that the turn was asked for, and once: whoever ends a turn in the log is one.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::link::{BusLink, Way};
use super::seals::Seals;
use super::wire;
use crate::notices::Notice;

/// Sends late results for as long as the engine lives.
pub(super) async fn tell(link: Arc<BusLink>, seals: Seals, mut notices: Receiver<Arc<Notice>>) {
    loop {
        let notice = match notices.recv().await {
            Ok(notice) => notice,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(
                    missed,
                    "too many turns ended late at once; some results were not sent on the bus"
                );
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        // What was never asked for on the bus is never told there.
        let Some(name) = &notice.asked_as else { continue };
        let payload = seals.close(&Way::Responses.name(), wire::late(name, &notice.outcome));
        if let Err(error) = link.publish(&Way::Responses, &payload).await {
            tracing::warn!(error = %error, "a late result could not be sent on the bus; sending the request again returns it");
        }
    }
}
