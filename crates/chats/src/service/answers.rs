//! Answers: turns that devices ask for, until the answer is stored.
//!
//! ```text
//! chat_message_added ─▶ Running ─▶ drive: the turn before it ─▶ have | request_chat_history ─▶ Answerer::answer
//!                          ▲          │ words, in frames of some 40 ms; request_client_data to the socket that asked
//! resume_ai_task ──────────┘          ▼                     a turn of another gateway is followed ─▶ Answerer::again
//!                               heard by the sockets that can name the branch's digest
//!                          nobody stored it within a minute ─▶ a letter in the mailbox
//!                          this process goes before that ────▶ the same, by whoever finds its mark ─▶ [marks]
//! ```
//!
//! - Words are in memory here, for as long as a turn runs and until its answer is stored; never in the store.
//! - Only a socket that names the digest of the branch with its reply hears words: a stolen session cannot make it.
//! - A turn goes on when its socket is gone. Its answer waits: here for a minute, then in the mailbox, sealed to the account's key.
//!
//! Easy to get wrong: answering without memory. A cache that is not what the device expects is never used: the device is asked for the history
//! ([`history`]).

mod beside;
mod drive;
mod history;
mod marks;
mod proved;
pub(super) mod running;

use std::sync::Arc;

use confidant_chat_format::{AccountId, ChatId, Digest};
use confidant_chat_protocol::{
    AiResponseCompleted, AiResponseStorageConfirmed, AiTaskInitiated, CancelAiTask, ChatHistory,
    ChatMessageAdded, ClientData, DecideAiTask, Keep, MessageQueued, Piece, ResumeAiTask, ServerEvent,
};

use super::Inner;
use super::frames::Step;
use super::letters::waits;
use super::refusals::{Answer, malformed, not_found, too_fast};
use super::socket::Peer;
use crate::answerer::Place;
use crate::store::Have;
use running::Running;

impl Inner {
    pub(crate) async fn ask(self: &Arc<Self>, peer: &Peer, ask: ChatMessageAdded) -> Answer<Vec<Step>> {
        let seat = peer.seat.ok_or_else(|| malformed("answers come on a socket"))?;
        self.answers.answerer()?;
        // Somebody else's chat is none. A chat that is never stored is not there.
        if ask.keep == Keep::Cache {
            self.store.chat(&peer.account, &ask.chat, Have::ALL).await?;
        }
        let place = Place { account: peer.account.clone(), chat: ask.chat.clone(), keep: ask.keep };
        let (running, begun) = {
            let mut all = self.answers.running.lock();
            let turns = all.entry(peer.account.clone()).or_default();
            match turns.find(&ask.turn) {
                Some(running) if running.is(&ask) => (running, None),
                Some(_) => return Err(confidant_chat_format::Refused::Duplicate.into()),
                None if turns.len() >= TURNS => return Err(too_fast(5000)),
                None => {
                    let (running, history) = Running::new(place, &ask);
                    let before = turns.push(Arc::clone(&running));
                    (running, Some((before, history)))
                }
            }
        };
        let wanted = running.listen_as_asker(seat);
        let ahead = begun.as_ref().map_or(0, |(before, _)| before.len());
        if let Some((before, history)) = begun {
            self.answers.run(drive::drive(Arc::clone(self), running, ask.clone(), before, history));
        }
        let (chat, turn) = (ask.chat, ask.turn);
        let begun = match u32::try_from(ahead) {
            Ok(0) | Err(_) => ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }),
            Ok(ahead) => ServerEvent::MessageQueued(MessageQueued { chat, turn, ahead }),
        };
        // Asked again on another socket, before the history came: it is asked for there.
        let wanted = wanted.map(ServerEvent::RequestChatHistory);
        Ok([begun].into_iter().chain(wanted).map(Step::event).collect())
    }

    /// History that was asked for. Nobody waits for it: it is refused, so that a device that sends it unasked learns so.
    pub(crate) fn hear_history(&self, peer: &Peer, history: ChatHistory) -> Answer<Vec<Step>> {
        let running = self.answers.find(&peer.account, &history.turn).ok_or_else(not_found)?;
        if running.place.chat != history.chat {
            return Err(not_found());
        }
        running.take_history(peer.seat, history)?;
        Ok(Vec::new())
    }

    /// What the device gives that was asked for it. From another socket, of another kind, or when nobody waits any more: `not-found`.
    pub(crate) fn hear_data(&self, peer: &Peer, data: ClientData) -> Answer<Vec<Step>> {
        let ClientData { chat, turn, what, pieces } = data;
        let running = self.answers.find(&peer.account, &turn).filter(|one| one.place.chat == chat);
        let reply = running.ok_or_else(not_found)?.take_data_sender(peer.seat, what)?;
        let piece = |piece: Piece| (piece.name.as_str().to_owned(), piece.text.as_str().to_owned());
        // The turn may have gone on without it.
        let _late = reply.send(pieces.into_vec().into_iter().map(piece).collect());
        Ok(Vec::new())
    }

    pub(crate) async fn resume(self: &Arc<Self>, peer: &Peer, resume: ResumeAiTask) -> Answer<Vec<Step>> {
        let seat = peer.seat.ok_or_else(|| malformed("answers come on a socket"))?;
        let ResumeAiTask { chat, turn, after, from, message, reply } = resume;
        let from = usize::try_from(from).map_err(|_| malformed("nobody has so much of an answer"))?;
        let initiated =
            ServerEvent::AiTaskInitiated(AiTaskInitiated { chat: chat.clone(), turn: turn.clone() });
        if let Some(running) = self.answers.find(&peer.account, &turn) {
            // By their hashes: how long that takes tells nothing of how close a guess is.
            let named = Digest::of(running.after.as_bytes()) == Digest::of(after.as_bytes());
            if running.place.chat != chat || !named {
                return Err(not_found());
            }
            let steps = running.listen_from(seat, from)?;
            return Ok([initiated].into_iter().chain(steps).map(Step::event).collect());
        }
        // Somebody else's chat is none.
        self.store.chat(&peer.account, &chat, Have::ALL).await?;
        // The mark first: it goes with the letter.
        let mark = self.find_mark(&peer.account, &chat, &turn).await?;
        let mark = mark.filter(|mark| Digest::of(mark.after.as_bytes()) == Digest::of(after.as_bytes()));
        if let Some(letter) = self.letter_for(&peer.account, &chat, &turn).await? {
            return Ok(vec![Step::event(waits(letter))]);
        }
        let answerer = self.answers.answerer()?;
        let keep = mark.as_ref().map_or(Keep::Cache, |mark| mark.keep);
        let place = Place { account: peer.account.clone(), chat, keep };
        let telling = self.heard_again(&**answerer, &place, &turn, after).await?;
        // Its words are in the memory of another process: then its letter is waited for.
        if telling.is_none() && mark.as_ref().is_none_or(|mark| !mark.is_held) {
            return Err(not_found());
        }
        let (asked_at, ids) = match mark {
            Some(mark) => (Some(mark.asked_at), Some((mark.message, mark.reply))),
            None => (None, message.zip(reply)),
        };
        let running = Running::again(place, &turn, after, ids);
        if let Some(asked_at) = asked_at {
            running.asked_at(asked_at);
        }
        running.listen(seat);
        let taken = {
            let mut all = self.answers.running.lock();
            let turns = all.entry(peer.account.clone()).or_default();
            let taken = turns.find(&turn);
            if taken.is_none() {
                if turns.len() >= TURNS {
                    return Err(too_fast(1000));
                }
                turns.push(Arc::clone(&running));
            }
            taken
        };
        let Some(taken) = taken else {
            match telling {
                Some(telling) => {
                    if asked_at.is_some() {
                        self.take_in_hand(&running).await;
                    }
                    self.answers.run(drive::hear(Arc::clone(self), running, telling));
                }
                None => self.answers.run(marks::wait_for_letter(Arc::clone(self), running)),
            }
            return Ok(vec![Step::event(initiated)]);
        };
        // Another device has taken it up meanwhile.
        let steps = taken.listen_from(seat, from)?;
        Ok([initiated].into_iter().chain(steps).map(Step::event).collect())
    }

    pub(crate) async fn cancel(&self, peer: &Peer, cancel: &CancelAiTask) -> Answer<Vec<Step>> {
        let answerer = self.answers.answerer()?;
        let running = self.answers.find(&peer.account, &cancel.turn);
        if let Some(running) = running.filter(|one| one.place.chat == cancel.chat) {
            if running.cancel() {
                answerer.cancel(&running.place, &running.turn).await?;
            }
            return Ok(Vec::new());
        }
        // Another gateway may have it. Somebody else's chat is none.
        self.store.chat(&peer.account, &cancel.chat, Have::ALL).await?;
        let place = Place { account: peer.account.clone(), chat: cancel.chat.clone(), keep: Keep::Cache };
        if answerer.cancel(&place, &cancel.turn).await? { Ok(Vec::new()) } else { Err(not_found()) }
    }

    pub(crate) fn decide(self: &Arc<Self>, peer: &Peer, decide: DecideAiTask) -> Answer<Vec<Step>> {
        let DecideAiTask { chat, turn, approval, allow } = decide;
        let running = self.answers.find(&peer.account, &turn).filter(|one| one.place.chat == chat);
        let running = running.ok_or_else(not_found)?;
        if !running.asked_last(approval.as_str()) || !running.goes_on() {
            return Err(not_found());
        }
        let telling = self.answers.answerer()?.decide(&running.place, &turn, approval.as_str(), allow);
        self.answers.run(drive::hear(Arc::clone(self), running, telling));
        Ok(vec![Step::event(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }))])
    }

    pub(crate) async fn stored(&self, peer: &Peer, stored: AiResponseCompleted) -> Answer<Vec<Step>> {
        let AiResponseCompleted { chat, turn } = stored;
        if let Some(running) = self.answers.find(&peer.account, &turn).filter(|one| one.place.chat == chat) {
            running.stored();
            if running.place.keep == Keep::Turn {
                self.answers.answerer()?.end(&running.place).await?;
            }
        }
        self.acknowledge(&peer.account, &chat, &turn).await?;
        let confirmed = AiResponseStorageConfirmed { chat, turn };
        Ok(vec![Step::event(ServerEvent::AiResponseStorageConfirmed(confirmed))])
    }

    /// Forgets the words of a chat: turns that run are heard by nobody from now on.
    pub(crate) async fn forget_words(&self, account: &AccountId, chat: &ChatId) -> Answer<()> {
        self.answers.drop_turns(account, Some(chat));
        let Some(answerer) = &self.answers.answerer else { return Ok(()) };
        for keep in [Keep::Cache, Keep::Turn] {
            answerer.end(&Place { account: account.clone(), chat: chat.clone(), keep }).await?;
        }
        Ok(())
    }
}

/// Turns of one account at once, waiting ones and unstored answers included.
const TURNS: usize = 16;
