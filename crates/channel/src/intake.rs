//! Where a channel hands in what happened.

use std::sync::Arc;
use std::time::Duration;

use confidant_engine::clock::{Clock, Millis};
use confidant_engine::room::Audience;
use confidant_engine::turn::SpokenCommand;
use confidant_engine::{Actor, Engine, TenantId};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::channel::{Edited, Event, MessageId, Removed, Said, Trouble};
use crate::commands::{self, Command};
use crate::health::{Condition, Pulse};
use crate::inbox::{
    Account, Body, Cursor, Envelope, Inbox, InboxError, NewRow, RowKind, Taken, Vault, Waits, rows,
};

/// Takes events in. Clones are the same intake.
#[derive(Clone, Debug)]
pub struct Intake {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) account: Account,
    pub(crate) vault: Vault,
    pub(crate) tenant: TenantId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pulse: Pulse,
    /// Rung when there is something new to work on.
    pub(crate) bell: Arc<Notify>,
}

impl Intake {
    /// Whose installation the scopes of this channel belong to.
    #[must_use]
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Where the channel keeps what it must not lose.
    #[must_use]
    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The connection is made.
    pub fn up(&self) {
        self.pulse.up(self.clock.now());
    }

    /// Something is wrong that the channel itself keeps trying to mend.
    pub fn trouble(&self, trouble: &Trouble) {
        self.pulse.trouble(trouble, self.clock.now());
    }

    /// The connection works, but something beside it does not; nothing if it does again.
    pub fn remark(&self, trouble: Option<&Trouble>) {
        self.pulse.change(|status| {
            if status.condition == Condition::Up {
                status.trouble = trouble.map(ToString::to_string);
            }
        });
    }

    /// Stores an event. After this it is worked on, whatever happens to the process; before, it never happened.
    pub async fn take(&self, event: Event) -> Result<Taken, InboxError> {
        let taken = match event {
            Event::Said(said) => self.said(said).await?,
            Event::Pointed(said, at) => self.pointed(said, &at).await?,
            Event::Edited(edited) => self.edited(edited).await?,
            Event::Removed(removed) => self.removed(removed).await?,
        };
        match taken {
            Taken::New => {
                self.pulse.change(|status| status.received += 1);
                self.bell.notify_one();
            }
            Taken::Known => self.pulse.change(|status| status.duplicates += 1),
            Taken::Nothing => {}
        }
        Ok(taken)
    }

    /// Moves a room's cursor past an event that wants no answer, so that it is not read again at the next start.
    pub async fn passed(&self, room: &str, event: &str, order: i64) -> Result<(), InboxError> {
        let cursor = Cursor { room: room.to_owned(), event: event.to_owned() };
        let (account, room) = (self.account.tag, self.account.room(room));
        self.inbox.with(move |c| rows::move_cursor(c, account, room, order, &cursor)).await
    }

    /// The last stored event of every room.
    pub async fn cursors(&self) -> Result<Vec<Cursor>, InboxError> {
        let account = self.account.tag;
        self.inbox.with(move |c| rows::cursors(c, account)).await
    }

    /// Forgets where a room stood, as when the account was removed from it.
    pub async fn left(&self, room: &str) -> Result<(), InboxError> {
        let (account, room) = (self.account.tag, self.account.room(room));
        self.inbox.with(move |c| rows::drop_cursor(c, account, room)).await
    }

    async fn said(&self, said: Said) -> Result<Taken, InboxError> {
        let event = self.account.event(&said.event);
        if self.inbox.with(move |c| rows::is_known(c, event)).await? {
            return Ok(Taken::Known);
        }
        let _storing = self.inbox.storing().await;
        let epoch = self.engine.epoch().await;
        let session = self.engine.session(said.scope.clone(), Actor::system());
        let beside = self.engine.channel_keys();
        let person = beside.person_tag(said.scope.tenant(), said.scope.user());
        let kind = match commands::parse(&said.text) {
            Some(Command::Spoken(SpokenCommand::Forget)) => RowKind::Forget,
            Some(command) if command.is_urgent() => RowKind::Urgent,
            _ => RowKind::Said,
        };
        let cursor = Cursor { room: said.room.clone(), event: said.event.clone() };
        let private = (said.audience == Audience::Private).then_some(person);
        let body = Body { text: said.text, note: said.note, carried: false };
        let body = body.seal(&session, &self.account, event).await;
        let room = self.account.room(&said.room);
        let envelope = Envelope::new(&said.scope, said.audience, said.route, said.event, said.room, epoch);
        let row = NewRow {
            account: self.account.tag,
            event,
            room: Some(room),
            scope: session.raw_tag(),
            person,
            kind,
            target: None,
            route: Some(envelope.seal(&self.account, event)),
            body: Some(body),
            at: self.clock.now(),
            cursor: said.order.map(|order| (order, cursor, private)),
        };
        self.insert(row).await
    }

    /// A sign says nothing unless it is on a question.
    async fn pointed(&self, mut said: Said, at: &MessageId) -> Result<Taken, InboxError> {
        let (account, room) = (self.account.tag, self.account.room(&said.room));
        let until = Instant::now() + TOLD_WITHIN;
        let asked = loop {
            let asking = self.inbox.with(move |c| rows::asking_in(c, account, room)).await?;
            let asking: Vec<_> = asking.iter().filter_map(|row| Waits::open(&self.account, row)).collect();
            // A question can be seen before it is known here which message it became.
            let is_telling = asking.iter().any(|waits| !waits.is_asked());
            match asking.into_iter().find(|waits| waits.messages.contains(at)) {
                Some(asked) => break asked,
                None if is_telling && Instant::now() < until => tokio::time::sleep(LOOK_AGAIN).await,
                None => return Ok(Taken::Nothing),
            }
        };
        said.text = format!("{} {}", said.text, asked.code);
        self.said(said).await
    }

    async fn edited(&self, edited: Edited) -> Result<Taken, InboxError> {
        let _storing = self.inbox.storing().await;
        let target = self.account.event(&edited.target);
        let session = self.engine.session(edited.scope, Actor::system());
        let Some((scope, person)) = self.inbox.with(move |c| rows::session_of(c, target)).await? else {
            return Ok(Taken::Nothing);
        };
        // Only the one who said it may change it.
        if scope != session.raw_tag() {
            return Ok(Taken::Nothing);
        }
        let event = self.account.event(&edited.event);
        let body = Body { text: edited.text, note: None, carried: false };
        let body = body.seal(&session, &self.account, event).await;
        self.insert(self.about(event, target, scope, person, RowKind::Edited, Some(body))).await
    }

    async fn removed(&self, removed: Removed) -> Result<Taken, InboxError> {
        let (target, account, now) =
            (self.account.event(&removed.target), self.account.tag, self.clock.now());
        let Some((scope, person)) = self.inbox.with(move |c| rows::session_of(c, target)).await? else {
            // What could not be read yet is not answered when it can.
            self.inbox.with(move |c| rows::bury(c, account, target, now)).await?;
            return Ok(Taken::Nothing);
        };
        // What nobody has read yet is not answered any more.
        if self.inbox.with(move |c| rows::finish_unread(c, target, now)).await? {
            return Ok(Taken::Nothing);
        }
        let event = self.account.event(&removed.event);
        self.insert(self.about(event, target, scope, person, RowKind::Removed, None)).await
    }

    /// A row about an earlier event of the same session.
    fn about(
        &self,
        event: confidant_seal::Tag,
        target: confidant_seal::Tag,
        scope: confidant_seal::Tag,
        person: confidant_seal::Tag,
        kind: RowKind,
        body: Option<confidant_seal::Sealed>,
    ) -> NewRow {
        let (account, at) = (self.account.tag, self.clock.now());
        let target = Some(target);
        NewRow {
            account,
            event,
            room: None,
            scope,
            person,
            kind,
            target,
            route: None,
            body,
            at,
            cursor: None,
        }
    }

    async fn insert(&self, row: NewRow) -> Result<Taken, InboxError> {
        let added = self.inbox.with(move |c| rows::insert(c, &row)).await?;
        Ok(if added { Taken::New } else { Taken::Known })
    }
}

/// How long a sign waits for a question that is being told in its room.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
