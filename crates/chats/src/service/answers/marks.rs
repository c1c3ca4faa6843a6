//! Answers that outlive the process that was asked for them.
//!
//! ```text
//! begin ─▶ mark: ids, digests, where the transcript stands ─▶ in hand, as long as this process runs the turn
//!            │ the answer is stored, or a letter left: gone                │ it fails, or the process stops or dies
//!            ▼                                                            ▼
//!          nothing                                          due: any process looks what became of the turn ─▶ a letter
//! ```
//!
//! - seal(chat's key, (mark, acct, chat, turn, ""), 1, JSON): no words, and nothing of it outlives the chat's key.
//! - What was answered is in the engine's log. Of a chat whose words are kept in memory only, it went with the process: then there is
//!   nothing to be left, and the device asks anew.
//!
//! Easy to get wrong: forgetting a turn because it failed here. Whoever has the turn's log may answer it yet, so a failure only takes
//! the mark out of our hands.

use std::sync::Arc;
use std::time::Duration;

use confidant_chat_format::{AccountId, ChatId, Digest, MessageId, Refused, Transcript, TurnId};
use confidant_chat_protocol::{ErrorName, Failure, Keep, RefusedSent, ServerEvent};
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, open, seal};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::drive;
use super::proved::AskedAt;
use super::running::{Running, Stage};
use crate::answerer::{Left, Place};
use crate::service::letters::waits;
use crate::service::record::SUITE;
use crate::service::refusals::{Answer, not_found};
use crate::service::{Inner, Service};
use crate::store::{ClaimedMark, Hold, Millis, Pause, PutMark, StoreError};

/// What a letter needs besides the answer.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) message: MessageId,
    pub(super) reply: MessageId,
    /// The digest of the branch with its reply.
    pub(super) after: Digest,
    /// Where the question stands.
    pub(super) asked_at: AskedAt,
    pub(super) keep: Keep,
    /// Whether somebody has the turn in hand now.
    pub(super) is_held: bool,
}

debug_without_content!(Mark { keep, is_held });

/// A mark as it is sealed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    v: u8,
    message: MessageId,
    reply: MessageId,
    after: Digest,
    asked_at: Digest,
    once: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unproved: bool,
}

impl Mark {
    fn seal(&self, key: &Key, account: &AccountId, chat: &ChatId, turn: &TurnId) -> Sealed {
        let stored = Stored {
            v: 1,
            message: self.message.clone(),
            reply: self.reply.clone(),
            after: self.after,
            asked_at: *self.asked_at.transcript.digest(),
            once: self.keep == Keep::Turn,
            unproved: !self.asked_at.is_proved,
        };
        let json = serde_json::to_vec(&stored).expect("a mark is plain data with text as keys");
        seal(key, SUITE, &context(account, chat, turn), 1, &json)
    }

    fn open(
        key: &Key,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
        sealed: &Sealed,
    ) -> Result<Self, Refused> {
        let refused = || Refused::RecordRefused;
        let opened = open(key, &context(account, chat, turn), sealed).map_err(|_| refused())?;
        let stored: Stored = serde_json::from_slice(&opened.data).map_err(|_| refused())?;
        if stored.v != 1 {
            return Err(refused());
        }
        Ok(Self {
            after: stored.after,
            asked_at: AskedAt {
                transcript: Transcript::resume(stored.asked_at),
                is_proved: !stored.unproved,
            },
            message: stored.message,
            reply: stored.reply,
            keep: if stored.once { Keep::Turn } else { Keep::Cache },
            is_held: false,
        })
    }
}

fn context<'a>(account: &'a AccountId, chat: &'a ChatId, turn: &'a TurnId) -> Context<'a> {
    let (owner, container, object) = (account.as_str(), chat.as_str(), turn.as_str());
    Context { purpose: "mark", owner, container, object, field: "" }
}

impl Service {
    /// What is due every [`Service::answers_due`]: turns that run here stay in hand, and of answers that nobody has in hand any more,
    /// since their process went, a letter is left.
    pub async fn look_after_answers(&self) -> Result<(), RefusedSent> {
        let this = &*self.inner;
        if this.answers.answerer.is_none() {
            return Ok(());
        }
        for running in this.answers.all() {
            this.keep_hold(&running).await;
        }
        let pause = Pause { shortest: self.answers_due().max(SHORTEST), longest: LONGEST };
        loop {
            let due = this.store.claim_marks(this.now(), pause, AT_ONCE).await?;
            let is_last = due.len() < AT_ONCE;
            for mark in due {
                if let Err(refused) = this.finish(mark).await {
                    tracing::warn!(
                        reason = refused.error.name(),
                        "chats: what became of a turn could not be found out; it is tried again"
                    );
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// How often answers that are on their way are to be looked after.
    #[must_use]
    pub fn answers_due(&self) -> Duration {
        self.inner.settings.unstored / 3
    }

    /// For a process that ends: an answer that no device has stored yet goes to the mailbox, and any other turn may be taken in hand by others
    /// at once. Whoever answers has stopped before; what he said last may take so long to arrive.
    pub async fn let_go(&self, patience: Duration) {
        let (this, until) = (&self.inner, Instant::now() + patience);
        for running in this.answers.all() {
            let _late = timeout_at(until, running.reaches(Stage::Waits)).await;
        }
        for running in this.answers.all() {
            if running.answer().is_some() {
                drive::leave(this, &running).await;
            } else {
                this.let_go_of(&running).await;
            }
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Service {
    /// Ends all that runs for turns, as if this process was killed: nothing is written any more, and nobody is told.
    pub fn kill_turns(&self) {
        self.inner.answers.kill();
    }
}

impl Inner {
    /// Marks a turn that is about to be given to whoever answers. What cannot be marked is answered all the same. A chat that is not
    /// stored has no mailbox.
    pub(super) async fn mark(&self, running: &Running, asked_at: AskedAt) {
        let Some((message, reply)) = running.ids.clone() else { return };
        let Place { account, chat, keep } = &running.place;
        let mark = Mark { message, reply, after: running.after, asked_at, keep: *keep, is_held: true };
        let marked = async {
            let Some(key) = self.vault.key(account, Some(chat)).await? else { return Ok(None) };
            let (now, look_at) = self.in_hand_until();
            let put = PutMark {
                account: account.clone(),
                chat: chat.clone(),
                turn: running.turn.clone(),
                sealed: mark.seal(&key, account, chat, &running.turn),
                now,
                look_at,
            };
            match self.store.put_mark(put).await {
                Err(StoreError::NotFound) => Ok(None),
                put => Answer::Ok(put.map(|()| Some(look_at))?),
            }
        };
        match marked.await {
            Ok(look_at) => running.in_hand(look_at),
            Err(refused) => tracing::warn!(
                reason = refused.error.name(),
                "chats: a turn could not be marked; its answer is lost if this process ends before it is stored"
            ),
        }
    }

    /// The mark of a turn, if it has one that opens.
    pub(super) async fn find_mark(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
    ) -> Answer<Option<Mark>> {
        let Some(row) = self.store.mark(account, chat, turn).await? else { return Ok(None) };
        let Some(key) = self.vault.key(account, Some(chat)).await? else { return Ok(None) };
        let mark = Mark::open(&key, account, chat, turn, &row.sealed).ok();
        Ok(mark.map(|mark| Mark { is_held: row.hold.held && row.hold.look_at > self.now(), ..mark }))
    }

    /// This process has a marked turn in hand from now on.
    pub(super) async fn take_in_hand(&self, running: &Running) {
        self.hold(running, true).await;
    }

    /// Others may look what became of it, at once.
    pub(super) async fn let_go_of(&self, running: &Running) {
        if running.is_in_hand().is_some() {
            self.hold(running, false).await;
        }
    }

    /// Before others would look at it.
    async fn keep_hold(&self, running: &Running) {
        let soon = self.now().plus(self.settings.unstored);
        if running.is_in_hand().is_some_and(|until| until <= soon) {
            self.hold(running, true).await;
        }
    }

    async fn hold(&self, running: &Running, held: bool) {
        let Place { account, chat, .. } = &running.place;
        let (now, until) = self.in_hand_until();
        let hold = Hold { held, look_at: if held { until } else { now } };
        match self.store.hold_mark(account, chat, &running.turn, hold).await {
            Ok(is_there) => running.in_hand((is_there && held).then_some(until)),
            Err(StoreError::NotFound) => running.in_hand(None),
            // Others look at it sooner or later, and find the same answer.
            Err(_) => {}
        }
    }

    fn in_hand_until(&self) -> (Millis, Millis) {
        let now = self.now();
        (now, now.plus(self.settings.unstored).plus(self.settings.unstored / 2))
    }

    /// Leaves a letter of a turn that nobody has in hand, if it is answered.
    async fn finish(&self, claimed: ClaimedMark) -> Answer<()> {
        let ClaimedMark { account, chat, turn, asked_at, sealed } = claimed;
        if let Some(running) = self.answers.find(&account, &turn) {
            self.take_in_hand(&running).await;
            return Ok(());
        }
        let key = self.vault.key(&account, Some(&chat)).await?;
        let mark = key.and_then(|key| Mark::open(&key, &account, &chat, &turn, &sealed).ok());
        let found = match (&mark, self.answers.answerer()) {
            (Some(mark), Ok(answerer)) => {
                let place = Place { account: account.clone(), chat: chat.clone(), keep: mark.keep };
                answerer.left(&place, &turn).await?
            }
            _ => Left::Nothing,
        };
        match (mark, found) {
            (_, Left::Runs) => Ok(()),
            (Some(mark), Left::Answer(answer, made)) => {
                let place = Place { account, chat, keep: mark.keep };
                let ids = Some((mark.message, mark.reply));
                let running = Running::again(place, &turn, mark.after, ids);
                running.asked_at(mark.asked_at);
                running.set(&answer.text);
                self.note_safety(&running, answer.safety.as_deref()).await;
                let ended = drive::ended(self, &running, *answer).await;
                running.keep(&ServerEvent::AiTypingEnded(ended));
                if let Some(made) = made {
                    let made = drive::made_event(&running, *made);
                    running.keep(&ServerEvent::PostProcessingCompleted(made));
                }
                drive::leave(self, &running).await;
                Ok(())
            }
            // It may be on its way to whoever answers.
            (Some(_), Left::Nothing) if self.now() < asked_at.plus(ON_ITS_WAY) => Ok(()),
            (..) => {
                let dropped = self.store.drop_mark(&account, &chat, &turn).await;
                match dropped.map_err(RefusedSent::from) {
                    Err(refused) if refused.error != ErrorName::Request(Failure::NotFound) => Err(refused),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Tells devices of a turn that another process has in hand, and whose words cannot be heard here, how it ended: with its letter.
pub(super) async fn wait_for_letter(service: Arc<Inner>, running: Arc<Running>) {
    let Place { account, chat, .. } = &running.place;
    let is_listened_to = || running.seats().iter().any(|seat| service.hub.is_seated(account, *seat));
    while is_listened_to() && running.called_off().is_none() {
        tokio::time::sleep(LOOK).await;
        // The mark first: it goes with the letter.
        let mark = service.find_mark(account, chat, &running.turn).await;
        match service.letter_for(account, chat, &running.turn).await {
            Ok(Some(letter)) => {
                drive::publish(&service, &running, waits(letter));
                break;
            }
            Err(refused) if refused.error == ErrorName::Request(Failure::NotFound) => break,
            Ok(None) | Err(_) => {}
        }
        if matches!(&mark, Ok(mark) if mark.as_ref().is_none_or(|mark| !mark.is_held)) {
            if !service.is_stored(&running).await {
                return drive::fail(&service, &running, &not_found()).await;
            }
            break;
        }
    }
    service.answers.forget(&running);
}

/// How often it is looked whether a turn that another process has in hand has left its letter.
const LOOK: Duration = Duration::from_secs(2);
/// How many marks are looked at in one go.
const AT_ONCE: usize = 64;
/// How long a turn may be on its way to whoever answers, before it is believed that there is none.
const ON_ITS_WAY: Duration = Duration::from_secs(600);
/// How often a mark is looked at that nobody has in hand: at most,
const SHORTEST: Duration = Duration::from_secs(1);
/// and at least.
const LONGEST: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_opens_for_its_turn_only_and_shows_nothing() {
        for is_proved in [true, false] {
            opens_for_its_turn_only(is_proved);
        }
    }

    fn opens_for_its_turn_only(is_proved: bool) {
        let (key, ana, chat, turn) = (Key::random(), AccountId::random(), ChatId::random(), TurnId::random());
        let mark = Mark {
            message: MessageId::random(),
            reply: MessageId::random(),
            after: Digest::of(b"after"),
            asked_at: AskedAt { transcript: Transcript::start(), is_proved },
            keep: Keep::Turn,
            is_held: false,
        };
        let sealed = mark.seal(&key, &ana, &chat, &turn);
        assert!(sealed.as_bytes().len() <= crate::store::limits::MARK_BYTES);
        assert!(Mark::open(&key, &ana, &chat, &turn, &sealed) == Ok(mark.clone()));
        let other = ChatId::random();
        for moved in [
            Mark::open(&Key::random(), &ana, &chat, &turn, &sealed),
            Mark::open(&key, &AccountId::random(), &chat, &turn, &sealed),
            Mark::open(&key, &ana, &other, &turn, &sealed),
            Mark::open(&key, &ana, &chat, &TurnId::random(), &sealed),
        ] {
            assert!(moved == Err(Refused::RecordRefused));
        }
        assert!(!format!("{mark:?}").contains(mark.message.as_str()));
    }
}
