//! The life of one claimed row: from what was said to the last part of the reply.
//!
//! Everything here can be cut off and done again. The turn's request id derives from the event, so a second run gets the
//! recorded answer; the reply's names derive from it, too.

mod commands;
mod turn;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use confidant_engine::clock::{Clock, Millis};
use confidant_engine::{Actor, Engine, Error, Session};
use confidant_seal::Tag;
use parking_lot::Mutex;

use crate::channel::{Channel, Trouble};
use crate::commands::{Command, parse};
use crate::health::Pulse;
use crate::inbox::{Account, Body, Envelope, Inbox, InboxError, Row, RowKind, rows};
use crate::reply::Reply;

/// What workers of one account share.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) account: Account,
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pulse: Pulse,
    /// When this process began: what was said before is the past.
    pub(crate) started: Millis,
    /// Sessions that were answered since then; once there are many, it is not noted of others that they are back.
    pub(crate) seen: Arc<Mutex<HashSet<Tag>>>,
}

/// Of how many sessions is known that they were answered since the start.
const MOST_SEEN: usize = 100_000;

/// How a row was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Done.
    Finished,
    /// Done, but nobody could be told.
    Undelivered,
    /// To be tried again after this long.
    Again(Duration),
    /// It waits for somebody's approval.
    Parked,
    /// The process is stopping: the next one does it.
    Stopping,
}

/// The name of the turn that an event leads to.
pub(crate) fn request_id(event: Tag) -> String {
    format!("ev-{event}")
}

/// The event that a turn's name leads back to.
pub(crate) fn event_of(request_id: &str) -> Option<Tag> {
    Tag::from_hex(request_id.strip_prefix("ev-")?)
}

impl Bench {
    /// Whether a session is answered for the first time since the start.
    fn is_first(&self, session: Tag) -> bool {
        let mut seen = self.seen.lock();
        seen.len() < MOST_SEEN && seen.insert(session)
    }

    /// Works on a row and notes how it was left.
    pub(crate) async fn work(&self, row: Row) {
        let (seq, event) = (row.seq, row.event);
        let age = self.clock.now().0.saturating_sub(row.received_at.0);
        let attempts = row.attempts;
        let left = match self.attempt(row).await {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(channel = self.channel.platform(), error = %error, "an event could not be processed");
                Left::Again(pause(attempts))
            }
        };
        let too_often =
            attempts >= MOST_ATTEMPTS || age > i64::try_from(OLDEST.as_millis()).unwrap_or(i64::MAX);
        let left = if matches!(left, Left::Again(_)) && too_often { Left::Undelivered } else { left };
        let now = self.clock.now();
        match left {
            Left::Finished => self.pulse.change(|status| status.answered += 1),
            Left::Undelivered => {
                self.pulse.change(|status| status.undelivered += 1);
                let channel = self.channel.platform();
                tracing::warn!(channel, "a reply could not be delivered and was given up");
            }
            _ => {}
        }
        let noted = match left {
            Left::Finished | Left::Undelivered => self.inbox.with(move |c| rows::finish(c, event, now)).await,
            Left::Again(after) => self.inbox.with(move |c| rows::put_back(c, seq, now.plus(after))).await,
            Left::Parked | Left::Stopping => Ok(()),
        };
        if let Err(error) = noted {
            tracing::error!(error = %error, "the end of an event could not be recorded; it is processed again at the next start");
        }
    }

    async fn attempt(&self, row: Row) -> Result<Left, InboxError> {
        match row.kind {
            RowKind::Edited | RowKind::Removed => return self.revise(&row).await,
            RowKind::Said | RowKind::Forget | RowKind::Urgent => {}
        }
        let Some(envelope) = Envelope::open(&self.engine, &row) else {
            tracing::warn!(
                channel = self.channel.platform(),
                "a stored event does not open and was given up"
            );
            return Ok(Left::Undelivered);
        };
        let session = self.engine.session(envelope.scope()?, self.actor());
        let body = match Body::open(&self.engine, &session, &row).await? {
            Some(body) => body,
            // Its own erasure took the key; what it asked for is known.
            None if row.kind == RowKind::Forget => {
                Body { text: "!forget".to_owned(), note: None, carried: false }
            }
            // The session was erased since.
            None => return Ok(Left::Finished),
        };
        let reply = Reply::new(&self.channel, &self.inbox, &self.account, &row, envelope.route.clone());
        // Read again from what is stored: it may be another process that took it in.
        let command = parse(&body.text);
        let job = Job { bench: self, row: &row, envelope, session, body, command, reply };
        job.run().await
    }

    /// Changes or removes what somebody had said.
    async fn revise(&self, row: &Row) -> Result<Left, InboxError> {
        let (Some(scope), Some(target)) = (row.scope, row.target) else { return Ok(Left::Finished) };
        let Some(session) = self.engine.session_by_tag(scope, self.actor()).await? else {
            return Ok(Left::Finished);
        };
        let name = request_id(target);
        let revised = match Body::open(&self.engine, &session, row).await? {
            Some(body) if row.kind == RowKind::Edited => match session.amend(&name, &body.text).await {
                Err(Error::Invalid { .. }) => session.remove(&name).await,
                other => other,
            },
            None if row.kind == RowKind::Edited => return Ok(Left::Finished),
            _ => session.remove(&name).await,
        };
        match revised {
            Ok(_) => {
                // If it waited for an approval, it does not any more.
                let now = self.clock.now();
                self.inbox.with(move |c| rows::finish(c, target, now)).await?;
                Ok(Left::Finished)
            }
            Err(Error::Busy | Error::Store(_) | Error::Stopping) => Ok(Left::Again(pause(row.attempts))),
            Err(error) => {
                tracing::warn!(
                    error = error.code(),
                    "an edited or deleted message was not updated in memory"
                );
                Ok(Left::Finished)
            }
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::named(self.channel.platform())
    }
}

/// One row that somebody is answering.
pub(crate) struct Job<'b> {
    bench: &'b Bench,
    row: &'b Row,
    envelope: Envelope,
    session: Session,
    body: Body,
    /// What the body is, if that is a command.
    command: Option<Command>,
    reply: Reply,
}

impl Job<'_> {
    /// How a row is left whose reply met this trouble.
    fn left(&self, trouble: &Trouble) -> Left {
        tracing::warn!(channel = self.bench.channel.platform(), trouble = %trouble, "a reply was not delivered");
        match trouble {
            Trouble::Passing { after, .. } => Left::Again(after.unwrap_or_else(|| pause(self.row.attempts))),
            Trouble::Refused { .. } | Trouble::Gone => Left::Undelivered,
        }
    }
}

/// How long to leave a row alone after it failed this often.
fn pause(attempts: u32) -> Duration {
    Duration::from_secs(1 << attempts.saturating_sub(1).min(6))
}

/// A row is given up after so long; the count is for clocks that stand still.
const MOST_ATTEMPTS: u32 = 2000;
const OLDEST: Duration = Duration::from_secs(86_400);
