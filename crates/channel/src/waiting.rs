//! What waits, looked at now and then: how much there is, and whether what waits for an approval still does.
//!
//! A turn that waits is decided, closed or carried on by whichever process comes first, on a gateway always by another one; the
//! session's log is what all of them share. So whoever keeps the channel looks there every few seconds, at a few events at a
//! time, and wakes those that do not wait for what they asked for any more. Notices of this process are only faster.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::Error;
use confidant_engine::turn::{Ending, Standing};
use tokio::sync::Notify;

use crate::inbox::{Envelope, InboxError, Row, Waits, rows};
use crate::stop::Stop;
use crate::worker::{Bench, request_id};

/// Looks for as long as the channel is kept up.
pub(crate) async fn look_around(bench: Bench, bell: Arc<Notify>, mut stop: Stop) {
    let mut after = 0;
    loop {
        tokio::select! {
            () = stop.said() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        match look(&bench, &mut after).await {
            Ok(true) => bell.notify_one(),
            Ok(false) => {}
            Err(error) => tracing::debug!(error = %error, "waiting events could not be read"),
        }
    }
}

/// Looks at the next few; says whether one was woken.
async fn look(bench: &Bench, after: &mut i64) -> Result<bool, InboxError> {
    let (account, from) = (bench.account.tag, *after);
    let both = bench
        .inbox
        .with(move |c| Ok((rows::backlog_of(c, account)?, rows::waiting_after(c, account, from, AT_ONCE)?)));
    let (backlog, some) = both.await?;
    bench.pulse.change(|status| status.backlog = backlog);
    *after = if some.len() < AT_ONCE { 0 } else { some.last().map_or(0, |row| row.seq) };
    let mut woken = false;
    for row in some {
        if !still_waits(bench, &row).await? {
            woken |= bench.inbox.with(move |c| rows::wake(c, row.event)).await?;
        }
    }
    Ok(woken)
}

/// Whether an event waits for the decision that it asked for, or for what comes of it.
async fn still_waits(bench: &Bench, row: &Row) -> Result<bool, Error> {
    // What does not open is given up by whoever works on it.
    let (Some(envelope), Some(waits)) =
        (Envelope::open(&bench.engine, row), Waits::open(&bench.account, row))
    else {
        return Ok(false);
    };
    let session = bench.engine.session(envelope.scope()?, bench.actor());
    match session.standing(&request_id(row.event)).await {
        Ok(Standing::Decided | Standing::Running) => Ok(true),
        Ok(Standing::Ended(Ending::Approval(asked))) => Ok(asked.approval_id == waits.approval_id),
        Ok(Standing::Ended(Ending::Answer(_)) | Standing::Failed(_)) => Ok(false),
        Err(Error::Erased | Error::AnswerGone) => Ok(false),
        // The others would meet the same.
        Err(error @ (Error::Store(_) | Error::Unloaded(_))) => Err(error),
        Err(_) => Ok(true),
    }
}

const LOOK: Duration = Duration::from_secs(3);
const AT_ONCE: usize = 16;
