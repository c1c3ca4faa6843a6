//! Commands that are not the engine's: taking one's data away, and deciding an approval that was asked for in a room.

use confidant_engine::approval::{Decider, Decision};
use confidant_engine::room::RoomContext;
use confidant_engine::turn::{CarryOut, Ending};
use confidant_engine::{Error, Scope};

use super::turn::{Growing, Heard};
use super::{Job, Left};
use crate::channel::{Document, Private};
use crate::inbox::{Envelope, InboxError, Row, Waits, rows};
use crate::reply::patiently;

impl Job<'_> {
    /// Sends the person what is kept of them on this channel, where only they can read it.
    pub(super) async fn export(&mut self) -> Result<Left, InboxError> {
        let scope = self.session.scope().clone();
        let administrator = self.bench.engine.dangerously_administer(self.bench.actor());
        let mut export = administrator.export_person(scope.tenant(), scope.user()).await?;
        // A name may be somebody else's on another channel; what is exported here was said here.
        export.sessions.retain(|session| {
            Scope::parse(scope.tenant().clone(), &session.session_id)
                .is_ok_and(|other| other.channel() == scope.channel())
        });
        export.derived.clear();
        if export.sessions.is_empty() {
            return self.notice("I remember nothing about you here.").await;
        }
        let bytes = serde_json::to_vec_pretty(&export).unwrap_or_default();
        let document = Document {
            name: "confidant-export.json".to_owned(),
            words: "This is what I remember about you here.".to_owned(),
            bytes: bytes.into(),
        };
        let nonce = self.bench.account.nonce(self.row.event, "export", 0);
        let sent = self.bench.channel.send_privately(self.reply.route(), &scope, nonce, document);
        match patiently(sent).await {
            Ok(Private::Here) => Ok(Left::Finished),
            Ok(Private::Elsewhere) => self.notice("I have sent it to you in private.").await,
            Err(trouble @ crate::Trouble::Passing { .. }) => Ok(self.left(&trouble)),
            Err(_) => {
                self.notice(
                    "I could not send it to you in private. (Allow direct messages from me, and ask again.)",
                )
                .await
            }
        }
    }

    /// Decides an approval. One that was asked for in this room may be anybody's; whether this person may decide it is
    /// the engine's to say.
    pub(super) async fn decide(&mut self, decision: Decision, code: &str) -> Result<Left, InboxError> {
        let Some((asked, envelope, waits)) = self.asked_here(code).await? else {
            return self.decide_own().await;
        };
        let session = self.bench.engine.session(envelope.scope()?, self.bench.actor());
        let by = Decider::Person(self.session.scope().user().as_str().to_owned());
        let turn = session.decide(&waits.approval_id, decision, by, CarryOut::Here);
        match self.listen(turn, Growing::Hidden).await {
            // The turn asks for another, where it asked for the first one.
            Heard::Ended(Ok(Ending::Approval(_))) => {
                self.wake(&asked).await?;
                Ok(Left::Finished)
            }
            Heard::Ended(Err(error)) => self.not_decided(&error, &asked).await,
            heard => self.tell(heard).await,
        }
    }

    async fn not_decided(&mut self, error: &Error, asked: &Row) -> Result<Left, InboxError> {
        // Cut off after the decision: it counts, and its answer is told where it was asked for.
        if matches!(error, Error::AlreadyDecided(_) | Error::DecidedByYou(_) | Error::NoSuchApproval)
            && self.row.attempts > 1
        {
            self.wake(asked).await?;
            return Ok(Left::Finished);
        }
        if matches!(error, Error::ApprovalExpired) {
            let (event, now) = (asked.event, self.bench.clock.now());
            self.bench.inbox.with(move |c| rows::finish(c, event, now)).await?;
        }
        self.failed(error).await
    }

    /// Decides one of this session's own, wherever it was asked for.
    async fn decide_own(&mut self) -> Result<Left, InboxError> {
        let turn = self.turn(RoomContext::default());
        let heard = self.listen(turn, Growing::Hidden).await;
        self.tell(heard).await
    }

    /// The row that asked for an approval in this room, with this code.
    async fn asked_here(&self, code: &str) -> Result<Option<(Row, Envelope, Waits)>, InboxError> {
        let account = &self.bench.account;
        let (tag, room) = (account.tag, account.room(&self.envelope.room));
        let asking = self.bench.inbox.with(move |c| rows::asking_in(c, tag, room)).await?;
        Ok(asking.into_iter().find_map(|row| {
            let waits = Waits::open(account, &row).filter(|waits| waits.code == code)?;
            let envelope = Envelope::open(&self.bench.engine, &row)?;
            Some((row, envelope, waits))
        }))
    }

    async fn wake(&self, asked: &Row) -> Result<(), InboxError> {
        let event = asked.event;
        self.bench.inbox.with(move |c| rows::wake(c, event)).await.map(drop)
    }
}
