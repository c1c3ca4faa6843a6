//! A question, its turn, and the reply as it grows.

use confidant_display::Hinted as _;
use confidant_engine::approval::ApprovalRequest;
use confidant_engine::room::{Audience, RoomContext, Sharing};
use confidant_engine::turn::{
    Ending, Final, MemoryState, Metadata, Outbound, Restore, Spoken, SpokenCommand,
};
use confidant_engine::{Error, Turn, TurnRequest};
use confidant_seal::Sealed;
use rusqlite::Connection;
use tokio::time::Instant;

use super::{Job, Left, event_of, pause, request_id};
use crate::channel::{Keeping, OutgoingKind, Trouble};
use crate::commands::{self, Command};
use crate::inbox::{Body, InboxError, Waits, rows};
use crate::pace::Pacer;
use crate::reply::patiently;

/// How a turn that was listened to ended.
pub(super) enum Heard {
    Ended(Result<Ending, Error>),
    /// The engine went away in the middle.
    Silence,
}

/// Whether an answer may be seen before it is whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Growing {
    Shown,
    Hidden,
}

impl Job<'_> {
    pub(super) async fn run(mut self) -> Result<Left, InboxError> {
        let growing = match self.look_who_reads().await {
            Ok(growing) => growing,
            Err(trouble) => return Ok(self.left(&trouble)),
        };
        if self.body.text.trim().is_empty() {
            let note = self.body.note.take();
            return self
                .notice(note.as_deref().unwrap_or("Write something, and I answer. `!help` says how."))
                .await;
        }
        match self.command.clone() {
            Some(Command::Help) => self.notice(commands::HELP).await,
            Some(Command::Privacy) => self.notice(commands::PRIVACY).await,
            Some(Command::Export) => self.export().await,
            Some(Command::Spoken(SpokenCommand::Decide(decision, Some(code)))) => {
                self.decide(decision, &code).await
            }
            // Whose answer it leads to is known at the end only.
            Some(Command::Spoken(SpokenCommand::Decide(_, None))) => self.ask(Growing::Hidden).await,
            Some(Command::Spoken(SpokenCommand::Forget)) => self.forget().await,
            Some(Command::Spoken(SpokenCommand::Cancel)) => {
                let turn = self.turn(RoomContext::default());
                let heard = self.listen(turn, Growing::Hidden).await;
                self.tell(heard).await
            }
            Some(Command::Spoken(SpokenCommand::Share(_) | SpokenCommand::Focus(_))) | None => {
                self.ask(growing).await
            }
        }
    }

    /// Looks again who reads here: since something was said in private, others may have come. They may read what is asked
    /// from now on, but neither what was asked before nor what is recalled for it.
    async fn look_who_reads(&mut self) -> Result<Growing, Trouble> {
        if self.envelope.audience == Audience::Private
            && patiently(self.bench.channel.audience(self.reply.route())).await? == Audience::Room
        {
            self.envelope.audience = Audience::Room;
            return Ok(Growing::Hidden);
        }
        Ok(Growing::Shown)
    }

    /// What was said around here. Not having it is no reason not to answer.
    async fn room(&self) -> RoomContext {
        let room = self.bench.channel.room(self.reply.route(), self.session.scope());
        patiently(room).await.unwrap_or_else(|trouble| {
            let channel = self.bench.channel.platform();
            tracing::warn!(channel, trouble = %trouble, "the room could not be read: answering without it");
            RoomContext::default()
        })
    }

    async fn ask(&mut self, growing: Growing) -> Result<Left, InboxError> {
        let ((), room) = tokio::join!(self.reply.typing(), self.room());
        let turn = match self.reply.manners().keeping {
            Keeping::Conversations => self.turn(room),
            Keeping::Nothing => self.turn_without_memory(room),
        };
        let heard = self.listen(turn, growing).await;
        self.tell(heard).await
    }

    /// Erases the session. What was said after that is not part of it.
    async fn forget(&mut self) -> Result<Left, InboxError> {
        let bench = self.bench;
        let heard = {
            let _erasing = bench.inbox.erasing().await;
            let (scope, seq) = (self.session.raw_tag(), self.row.seq);
            for row in bench.inbox.with(move |c| rows::later(c, scope, seq)).await? {
                let Some(body) = Body::open(&bench.engine, &self.session, &row).await? else { continue };
                let (seq, carried) = (row.seq, body.seal_carried(&bench.account, row.event));
                bench.inbox.with(move |c| rows::carry(c, seq, &carried)).await?;
            }
            let turn = self.turn(RoomContext::default());
            self.listen(turn, Growing::Hidden).await
        };
        self.tell(heard).await
    }

    /// The turn that the event leads to.
    pub(super) fn turn(&self, room: RoomContext) -> Turn {
        let restore = self.reply.manners().restore;
        let request = TurnRequest {
            request_id: Some(request_id(self.row.event)),
            query: self.body.text.clone(),
            spoken: Spoken::Read(self.command.as_ref().and_then(Command::spoken).cloned()),
            audience: Some(self.envelope.audience),
            room,
            restore: restore.map(|messages| Restore { since: self.bench.started, messages }),
            // What was said after an erasure was asked for is not part of it, though it waited behind it.
            epoch: (!self.body.carried).then_some(self.envelope.epoch),
            ..TurnRequest::default()
        };
        self.session.turn(request)
    }

    /// The same where nothing is kept. What only the session knows, such as what waits for approval in it, is out of its reach.
    fn turn_without_memory(&self, room: RoomContext) -> Turn {
        let request = TurnRequest {
            query: self.body.text.clone(),
            audience: Some(self.envelope.audience),
            room,
            ..TurnRequest::default()
        };
        let tenant = self.session.scope().tenant().clone();
        self.bench.engine.turn_without_memory(Some(tenant), request)
    }

    /// Says in the log, at a person's first message since the start, how much of what was said before was taken up again.
    fn note_loaded(&self, metadata: &Metadata) {
        let Some(most) = self.reply.manners().restore else { return };
        if metadata.memory != MemoryState::Kept || !self.bench.is_first(self.session.raw_tag()) {
            return;
        }
        tracing::info!(
            channel = self.bench.channel.platform(),
            scope.tag = %self.session.tag(),
            messages.loaded = metadata.recalled,
            load_past_conversations = most,
            "loaded an earlier conversation"
        );
    }

    /// Tells how a turn ended, where that may be read. The turn may be another event's that this one decided.
    pub(super) async fn tell(&mut self, heard: Heard) -> Result<Left, InboxError> {
        match heard {
            Heard::Ended(Ok(Ending::Answer(answer))) if !self.may_be_read_here(answer.metadata.audience) => {
                self.not_here(&answer.request_id, "Done.").await
            }
            Heard::Ended(Ok(Ending::Answer(answer))) if self.leave_to_asker(&answer.request_id).await? => {
                Ok(Left::Finished)
            }
            Heard::Ended(Ok(Ending::Answer(answer))) => self.answer(answer).await,
            Heard::Ended(Ok(Ending::Approval(request))) => self.asks(&request).await,
            Heard::Ended(Err(error)) => self.failed(&error).await,
            Heard::Silence => Ok(Left::Stopping),
        }
    }

    /// Leaves a turn's answer to the event that asked for it, if that is another one, and wakes it; says whether it did. Only
    /// one of the two tells: this one may be cut off between telling and noting it, and whoever looks after what waits may have
    /// been faster.
    async fn leave_to_asker(&self, request_id: &str) -> Result<bool, InboxError> {
        let other = event_of(request_id).filter(|event| *event != self.row.event);
        let Some(event) = other else { return Ok(false) };
        self.bench.inbox.with(move |c| rows::leave_to(c, event)).await
    }

    fn may_be_read_here(&self, audience: Audience) -> bool {
        audience.may_reach(self.envelope.audience, Sharing::KeepPrivate)
    }

    /// Says no more than that something was done: what comes of it is told where it was asked for.
    async fn not_here(&mut self, request_id: &str, done: &str) -> Result<Left, InboxError> {
        let said = match event_of(request_id) {
            Some(event) if event == self.row.event => {
                "You asked me this in private, but now others can read here. Ask me again where only you and \
                 I are."
                    .to_owned()
            }
            _ if self.leave_to_asker(request_id).await? => {
                format!("{done} You will find the rest where you asked.")
            }
            _ => done.to_owned(),
        };
        self.notice(&said).await
    }

    /// A turn asks for an approval: this event's own, or another's that goes on after a decision and is asked where that one
    /// was.
    async fn asks(&mut self, request: &ApprovalRequest) -> Result<Left, InboxError> {
        let other = event_of(&request.request_id).filter(|event| *event != self.row.event);
        if let Some(event) = other
            && self.bench.inbox.with(move |c| rows::wake(c, event)).await?
        {
            return if self.may_be_read_here(request.audience) {
                Ok(Left::Finished)
            } else {
                self.notice("Done. I have another question for you where you asked.").await
            };
        }
        if !self.may_be_read_here(request.audience) {
            return self.not_here(&request.request_id, "Done. Something else needs your approval.").await;
        }
        let (approval_id, code) = (request.approval_id.clone(), request.code.clone());
        self.question(&request.question, Waits { approval_id, code, messages: Vec::new() }).await
    }

    /// Listens to a turn until its end, and shows the answer as it grows.
    pub(super) async fn listen(&mut self, mut turn: Turn, growing: Growing) -> Heard {
        let manners = self.reply.manners();
        let clock = std::sync::Arc::clone(&self.bench.clock);
        let mut pacer = Pacer::new(manners.pace, clock.now());
        let (mut text, mut progress) = (String::new(), String::new());
        let mut typed = Instant::now();
        loop {
            let wait = pacer.wait(clock.now());
            tokio::select! {
                biased;
                event = turn.next() => match event {
                    Some(Outbound::Progress { text }) => progress = text.into_owned(),
                    Some(Outbound::Delta { text: piece, .. }) => text.push_str(&piece),
                    Some(Outbound::Final(answer)) => return Heard::Ended(Ok(Ending::Answer(answer))),
                    Some(Outbound::Approval(request)) => return Heard::Ended(Ok(Ending::Approval(request))),
                    Some(Outbound::Error(error)) => return Heard::Ended(Err(error)),
                    Some(Outbound::SettingsWanted { .. } | Outbound::Wanted(_) | Outbound::Enriched(_)) => {}
                    None => return Heard::Silence,
                },
                () = tokio::time::sleep(wait), if growing == Growing::Shown => {
                    self.reply.draft(&text, &progress).await;
                    pacer.shown(clock.now());
                }
                () = tokio::time::sleep_until(typed + manners.typing_every), if growing == Growing::Shown => {
                    self.reply.typing().await;
                    typed = Instant::now();
                }
            }
        }
    }

    pub(super) async fn answer(&mut self, answer: Final) -> Result<Left, InboxError> {
        self.note_loaded(&answer.metadata);
        let mut text = answer.content;
        if answer.metadata.memory == MemoryState::Unavailable {
            text.push_str("\n\n_I could not open my memory of us, so I answered without it._");
        }
        if let Some(note) = &self.body.note {
            text.push_str("\n\n");
            text.push_str(note);
        }
        if let Err(trouble) = self.reply.tell(OutgoingKind::Answer, &text).await {
            return Ok(self.left(&trouble));
        }
        Ok(Left::Finished)
    }

    /// Asks for an approval; the row then stands aside until there is a decision. What it waits for is noted first: whoever
    /// sees the question may decide at once.
    async fn question(&mut self, question: &str, mut waits: Waits) -> Result<Left, InboxError> {
        let before = Waits::open(&self.bench.account, self.row);
        let before = before.filter(|before| before.approval_id == waits.approval_id && before.is_asked());
        match before {
            Some(before) => waits = before,
            None => {
                self.note(&waits, rows::note_waits).await?;
                if let Err(trouble) =
                    self.reply.tell_as(&waits.approval_id, OutgoingKind::Question, question).await
                {
                    return Ok(self.left(&trouble));
                }
                waits.messages = self.reply.messages().to_vec();
            }
        }
        self.note(&waits, rows::park).await?;
        Ok(Left::Parked)
    }

    async fn note(&self, waits: &Waits, how: Noting) -> Result<(), InboxError> {
        let (seq, sealed) = (self.row.seq, waits.seal(&self.bench.account, self.row.event));
        self.bench.inbox.with(move |c| how(c, seq, &sealed)).await
    }

    pub(super) async fn failed(&mut self, error: &Error) -> Result<Left, InboxError> {
        match error {
            Error::Stopping => return Ok(Left::Stopping),
            Error::Busy | Error::Store(_) | Error::Bus(_) if self.row.attempts < PATIENT => {
                return Ok(Left::Again(pause(self.row.attempts)));
            }
            // Nothing is owed any more; only a draft must not stay as if something were.
            Error::Erased | Error::AnswerGone | Error::RequestReused | Error::Cancelled => {
                if self.reply.is_begun() {
                    return self.notice("(This was cancelled.)").await;
                }
                return Ok(Left::Finished);
            }
            // It was done, and the answer comes where it was asked for.
            Error::Stands(word, _) => {
                let said = format!(
                    "Your decision stands ({word}). I could not carry it out yet, but will as soon as I can."
                );
                return self.notice(&said).await;
            }
            Error::DecidedByYou(word) => {
                return self
                    .notice(&format!("You already decided this ({word}), and your decision counted."))
                    .await;
            }
            _ => {}
        }
        let channel = self.bench.channel.platform();
        tracing::warn!(channel, error = error.code(), "a turn had no answer");
        let what = error.what();
        let said = match error.hint() {
            Some(hint) => format!("I could not do that: {what}. ({hint}.)"),
            None => format!("I could not do that: {what}."),
        };
        self.notice(&said).await
    }

    /// Says something about the conversation.
    pub(super) async fn notice(&mut self, text: &str) -> Result<Left, InboxError> {
        match self.reply.tell(OutgoingKind::Notice, text).await {
            Ok(()) => Ok(Left::Finished),
            Err(trouble) => Ok(self.left(&trouble)),
        }
    }
}

type Noting = fn(&Connection, i64, &Sealed) -> rusqlite::Result<()>;

/// So often something that may pass is tried again before the person is told.
const PATIENT: u32 = 6;
