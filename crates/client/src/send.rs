//! Sends the queue, in order, until it is empty or the server is gone.
//!
//! ```text
//! decide ─▶ seal ─▶ keep the mark ─▶ send ─┬─ stored    ─▶ done, kept before the chat is
//!                                          ├─ conflict  ─▶ load what is newer, decide again
//!                                          └─ no answer ─▶ Offline; the next flush decides again
//! ```
//!
//! A draft goes at most every five seconds for each chat, so that a server learns little of how somebody types; one that is thrown away goes at
//! once. Until then it waits in the queue, and holds up nothing.
//!
//! Easy to get wrong: a conflict that loading does not resolve. It is an id that was deleted elsewhere, or an account whose
//! keys are frozen; trying once more would never end.

use std::time::Duration;

use confidant_chat_format::{ChatId, Digest, FieldName, Mark, Place, Refused, seal_record};
use confidant_chat_protocol::{
    Changed, ClientEvent, DeleteData, DeleteDraft, Envelope, ErrorName, Failure, ServerEvent,
    SyncStatusRequest, UpdateData, UpdateDraft,
};

use crate::device::Device;
use crate::error::Error;
use crate::plan::{Decision, batch, change, decide, decide_data, suggestions, text};
use crate::queue::{Act, LossReason, Pending};
use crate::room::Draft;
use crate::state::Piece;
use crate::write::{Built, NOTHING, padded};

/// What a request of the queue came to.
enum Outcome {
    /// Something was resolved: go on.
    Next,
    /// The server has something newer.
    Conflict,
}

impl Device {
    /// Connects if needed, sends what waits, asks what is to be answered, and brings the floors up to date. `Offline`: what
    /// waits is kept.
    pub async fn flush(&mut self) -> Result<(), Error> {
        if self.account.is_none() || !self.is_connected() {
            self.connect().await?;
        }
        // A new account key that this device was about to commit may be the account's by now.
        if self.account.is_none() || self.state.rotating.is_some() {
            self.refresh_account().await?;
        }
        let mut most = BATCH;
        while let Some(first) = self.next_due().cloned() {
            let before = self.standing(&first);
            match self.send_next(&first, most).await? {
                Outcome::Next => most = BATCH,
                Outcome::Conflict => {
                    self.refresh_for(&first).await?;
                    let still = self.next_due().is_some_and(|op| op.n == first.n);
                    if still && self.standing(&first) == before {
                        if most > 1 && !matches!(first.act, Act::DeleteChat) {
                            // Of several, one is in the way: each by itself.
                            most = 1;
                        } else {
                            self.stuck(&first).await?;
                        }
                    }
                }
            }
        }
        // Asked first, since somebody waits for the answer.
        let begun = Box::pin(self.begin_turns()).await;
        self.settle().await?;
        begun?;
        self.acknowledge().await
    }

    /// What is sent next: the first that waits, but for drafts whose time has not come.
    fn next_due(&self) -> Option<&Pending> {
        self.state.queue.ops.iter().find(|op| self.waits_for(op).is_none())
    }

    /// How long a draft has to wait, if it has to: one whose answer was lost is sent again at once.
    fn waits_for(&self, op: &Pending) -> Option<Duration> {
        let Act::Draft { body: Some(_), .. } = &op.act else { return None };
        let last = self.drafted.get(op.chat.as_ref().filter(|_| op.is_unsent())?)?;
        // A clock that went back keeps nothing from being sent.
        let since = self.now().checked_sub(*last).map(Duration::from_millis)?;
        DRAFTS.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// How long until a draft that waits may be sent: then [`Device::flush`] sends it. `None`: none waits.
    #[must_use]
    pub fn draft_wait(&self) -> Option<Duration> {
        self.state.queue.ops.iter().filter_map(|op| self.waits_for(op)).min()
    }

    /// What a conflict has to change, or trying again is useless.
    fn standing(&self, op: &Pending) -> (Option<Mark>, u32, u32, Option<Mark>) {
        let room = op.chat.as_ref().and_then(|chat| self.rooms.get(chat));
        let data = match &op.act {
            Act::Data { kind, name, .. } => self.state.piece(kind, name).map_or(0, |piece| piece.rev),
            _ => 0,
        };
        let manifest = self.account.as_ref().map(confidant_chat_format::Account::mark);
        (room.map(|room| room.mark), room.map_or(0, |room| room.draft_v), data, manifest)
    }

    async fn refresh_for(&mut self, op: &Pending) -> Result<(), Error> {
        match &op.chat {
            Some(chat) => {
                self.refresh_account().await?;
                self.refresh_chat(chat).await
            }
            None => Ok(()),
        }
    }

    async fn send_next(&mut self, first: &Pending, most: usize) -> Result<Outcome, Error> {
        let Some(chat) = first.chat.clone() else {
            let sent = self.send_data(first).await;
            return sent.or_else(|error| self.lost_for_good(first, error));
        };
        if self.is_listed(&chat) && !self.rooms.contains_key(&chat) {
            self.refresh_chat(&chat).await?;
        }
        match decide(&first.act, self.rooms.get(&chat)) {
            Decision::Done => return self.resolved(first.n, None),
            Decision::Lose(why) => return self.resolved(first.n, Some(why)),
            Decision::Do => {}
        }
        let is_write = !matches!(first.act, Act::DeleteChat | Act::Draft { .. });
        let sent = match &first.act {
            Act::DeleteChat => self.send_deletion(first, &chat).await,
            Act::Draft { body, .. } => self.send_draft(first, &chat, body.as_deref()).await,
            _ => self.send_write(first.n, &chat, most).await,
        };
        match sent {
            // The chat went meanwhile.
            Err(error) if error.is_not_found() => {
                self.refresh_account().await?;
                if self.is_listed(&chat) { Err(error) } else { Ok(Outcome::Next) }
            }
            // One of several is refused, perhaps not the first: each by itself.
            Err(error) if is_write && most > 1 && refused_for_good(&error).is_some() => Ok(Outcome::Conflict),
            Err(error) => self.lost_for_good(first, error),
            sent => sent,
        }
    }

    /// What is refused however often it is sent becomes a copy, so that it holds up nothing; any other error stays one.
    fn lost_for_good(&mut self, first: &Pending, error: Error) -> Result<Outcome, Error> {
        match refused_for_good(&error) {
            Some(name) => self.resolved(first.n, Some(LossReason::Refused(name.to_owned()))),
            None => Err(error),
        }
    }

    fn resolved(&mut self, n: u64, lost: Option<LossReason>) -> Result<Outcome, Error> {
        match lost {
            Some(why) => self.state.queue.lost(n, why),
            None => self.state.queue.done(&[n]),
        }
        self.save()?;
        Ok(Outcome::Next)
    }

    async fn send_write(&mut self, first: u64, chat: &ChatId, most: usize) -> Result<Outcome, Error> {
        let room = self.rooms.get(chat);
        let all = &self.state.queue.ops;
        let from = all.iter().position(|op| op.n == first).unwrap_or(all.len());
        let ops = batch(&all[from..], room, most);
        let Built { write, after, book } = self.scribe()?.write(chat, room, &change(&ops, room))?;
        let numbers: Vec<u64> = ops.iter().map(|op| op.n).collect();
        // Kept before it is sent: if the answer is lost, the server's history shows this mark.
        self.state.queue.note_sent(&numbers, after.mark);
        self.save()?;
        let (seq, event) = self.request_one(ClientEvent::EncryptedChatMetadata(write)).await?;
        let stored = match event {
            ServerEvent::EncryptedMetadataStored(stored) => stored,
            ServerEvent::WriteConflict(_) => return Ok(Outcome::Conflict),
            _ => return Err(Error::Unexpected),
        };
        if stored.messages_v != after.mark.rev || stored.chat != *chat {
            return Err(Error::Unexpected);
        }
        let mut after = after;
        (after.title_v, after.updated_at) = (stored.title_v, stored.updated_at);
        self.state.queue.done(&numbers);
        self.rooms.insert(chat.clone(), after);
        self.take_own_list(book, seq)?;
        // The chat first: what waits behind this in the queue is decided by what the chat has, after a kill between the two, too.
        self.save_room(chat)?;
        self.save()?;
        Ok(Outcome::Next)
    }

    /// Floors and manifest that this device wrote are the account's from now on.
    pub(crate) fn take_own_list(
        &mut self,
        book: Option<crate::state::Book>,
        seq: Option<u64>,
    ) -> Result<(), Error> {
        self.state.seq = self.state.seq.max(seq.unwrap_or(0));
        if let Some(book) = book {
            self.account = Some(book.open(&self.state.account, &self.ak())?);
            self.state.book = Some(book);
        }
        Ok(())
    }

    async fn send_deletion(&mut self, first: &Pending, chat: &ChatId) -> Result<Outcome, Error> {
        let room = self.rooms.get(chat).ok_or(Error::NoSuchChat)?;
        let (delete, book) = self.scribe()?.delete_chat(chat, room.mark.rev)?;
        self.state.queue.note_sent(&[first.n], NOTHING);
        self.save()?;
        let (seq, event) = self.request_one(ClientEvent::DeleteChat(delete)).await?;
        match event {
            ServerEvent::ChatDeleted(_) => {}
            ServerEvent::WriteConflict(_) => return Ok(Outcome::Conflict),
            _ => return Err(Error::Unexpected),
        }
        self.rooms.remove(chat);
        self.state.note_gone(std::slice::from_ref(chat));
        self.take_own_list(Some(book), seq)?;
        self.resolved(first.n, None)?;
        self.save_room(chat)?;
        Ok(Outcome::Next)
    }

    async fn send_draft(
        &mut self,
        first: &Pending,
        chat: &ChatId,
        body: Option<&str>,
    ) -> Result<Outcome, Error> {
        let room = self.rooms.get(chat).ok_or(Error::NoSuchChat)?;
        let expected = room.draft_v;
        let rev = expected.checked_add(1).ok_or(Error::TooLarge)?;
        let (event, draft) = match body {
            Some(body) => {
                let json = padded(text(body));
                let held = room.ring.newest();
                let sealed = seal_record(held, &self.state.account, &Place::Draft(chat), rev, &json);
                let draft = Draft { sealed: sealed.clone(), body: body.to_owned() };
                let update = UpdateDraft { chat: chat.clone(), expected, draft: Envelope::new(sealed)? };
                (ClientEvent::UpdateDraft(update), Some(draft))
            }
            None => (ClientEvent::DeleteDraft(DeleteDraft { chat: chat.clone(), expected }), None),
        };
        self.state.queue.note_sent(&[first.n], mark_of(rev, draft.as_ref().map(|draft| &draft.sealed)));
        self.save()?;
        if draft.is_some() {
            self.drafted.insert(chat.clone(), self.now());
        }
        let (seq, event) = self.request_one(event).await?;
        match event {
            ServerEvent::ChatDraftUpdated(_) | ServerEvent::DraftDeleted(_) => {}
            ServerEvent::WriteConflict(_) => return Ok(Outcome::Conflict),
            _ => return Err(Error::Unexpected),
        }
        if let Some(room) = self.rooms.get_mut(chat) {
            (room.draft_v, room.draft) = (rev, draft);
        }
        self.take_own_list(None, seq)?;
        self.save_room(chat)?;
        self.resolved(first.n, None)?;
        Ok(Outcome::Next)
    }

    async fn send_data(&mut self, first: &Pending) -> Result<Outcome, Error> {
        let (kind, name, body) = match &first.act {
            Act::Data { kind, name, body, base } => {
                match decide_data(self.state.piece(kind, name), body.as_deref(), *base) {
                    Decision::Done => return self.resolved(first.n, None),
                    Decision::Lose(why) => return self.resolved(first.n, Some(why)),
                    Decision::Do => (kind.clone(), name.clone(), body.clone()),
                }
            }
            Act::Suggest { texts } => {
                let (kind, name) = (FieldName::parse(SUGGESTIONS)?, FieldName::parse(NEW_CHATS)?);
                match suggestions(self.state.piece(&kind, &name), texts) {
                    Some(pool) => (kind, name, serde_json::to_string(&pool).ok()),
                    None => return self.resolved(first.n, None),
                }
            }
            _ => return Err(Error::Damaged),
        };
        let expected = self.state.piece(&kind, &name).map_or(0, |piece| piece.rev);
        let rev = expected.checked_add(1).ok_or(Error::TooLarge)?;
        let event = self.data_event((&kind, &name), body.as_deref(), expected, rev)?;
        self.state.queue.note_sent(&[first.n], mark_of(rev, None));
        self.save()?;
        let (seq, event) = self.request_one(event).await?;
        match event {
            ServerEvent::DataUpdated(_) => {}
            ServerEvent::WriteConflict(there) => {
                return self.take_newer_data(&kind, &name, expected, there.data.unwrap_or(0)).await;
            }
            _ => return Err(Error::Unexpected),
        }
        self.state.put_piece(Piece { kind, name, rev, body });
        self.take_own_list(None, seq)?;
        self.resolved(first.n, None)
    }

    /// Another device was first. A piece that was removed does not come with a sync: only the conflict tells how far it is.
    async fn take_newer_data(
        &mut self,
        kind: &FieldName,
        name: &FieldName,
        expected: u32,
        there: u32,
    ) -> Result<Outcome, Error> {
        self.sync(crate::sync::Phase::LastChat).await?;
        let known = self.state.piece(kind, name).map_or(0, |piece| piece.rev);
        if known < there {
            self.state.put_piece(Piece { kind: kind.clone(), name: name.clone(), rev: there, body: None });
            self.save()?;
        }
        if known.max(there) > expected { Ok(Outcome::Next) } else { Err(Error::Unexpected) }
    }

    /// A piece of data that replaces revision `expected`; one that is not removed gets this revision.
    pub(crate) fn data_event(
        &self,
        (kind, name): (&FieldName, &FieldName),
        body: Option<&str>,
        expected: u32,
        rev: u32,
    ) -> Result<ClientEvent, Error> {
        let (kind, name) = (kind.clone(), name.clone());
        let Some(body) = body else {
            return Ok(ClientEvent::DeleteData(DeleteData { kind, name, expected }));
        };
        let scribe = self.scribe()?;
        let held = scribe.account.ring().writer().ok_or(Refused::KeyRefused)?;
        let sealed = seal_record(held, &self.state.account, &Place::Data(&kind, &name), rev, &text(body));
        Ok(ClientEvent::UpdateData(UpdateData { kind, name, expected, data: Envelope::new(sealed)? }))
    }

    /// A conflict although nothing is newer. An id that was sent before was stored, and deleted elsewhere; keys that
    /// cannot be added are frozen.
    async fn stuck(&mut self, first: &Pending) -> Result<(), Error> {
        let op = self.state.queue.ops.iter().find(|op| op.n == first.n);
        let attempts = op.map_or(0, |op| op.sent.len());
        let chat = first.chat.clone().ok_or(Error::Unexpected)?;
        let needs_key =
            self.rooms.get(&chat).is_none_or(|room| room.ring.newest().born() != self.generation());
        let lost = match &first.act {
            Act::Create if self.was_deleted(&chat).await? => None,
            Act::Create | Act::DeleteChat => return Err(Error::Frozen),
            _ if needs_key => return Err(Error::Frozen),
            // Sent before this flush: it was stored then.
            Act::Append { .. } | Act::Embed { .. } if attempts > 1 => None,
            Act::Append { .. } | Act::Embed { .. } => Some(LossReason::Deleted),
            Act::Retry { .. } | Act::Reply { .. } | Act::Gave { .. } => None,
            Act::GiveUp { .. } | Act::Made { .. } => None,
            _ => Some(LossReason::Changed),
        };
        self.resolved(first.n, lost).map(drop)
    }

    /// Whether the server's list of changes says that this chat was deleted. One that no longer goes back far enough says
    /// nothing; a chat that this device made, and that is not there, was deleted then.
    pub(crate) async fn was_deleted(&mut self, chat: &ChatId) -> Result<bool, Error> {
        let mut since = 0;
        loop {
            let ask = ClientEvent::SyncStatusRequest(SyncStatusRequest { since });
            let ServerEvent::SyncStatus(status) = self.request_one(ask).await?.1 else {
                return Err(Error::Unexpected);
            };
            let is_it = |what: &Changed| matches!(what, Changed::ChatDeleted(gone) if gone == chat);
            if status.gap || status.changes.iter().any(|change| is_it(&change.what)) {
                return Ok(true);
            }
            match status.changes.last() {
                Some(last) if status.more && last.seq > since => since = last.seq,
                _ => return Ok(false),
            }
        }
    }

    /// Writes the floors of chats that this device wrote to, or that nobody noted for a minute.
    pub(crate) async fn settle(&mut self) -> Result<(), Error> {
        loop {
            let Some(account) = &self.account else { return Ok(()) };
            let due = |room: &&crate::room::Room| {
                let floor = account.floors().get(&room.id).map_or(0, |floor| floor.rev);
                let is_ours = room.head.device == self.state.device;
                let is_late = room.head.at.saturating_add(FLOOR_MS) < self.now();
                floor > 0 && room.mark.rev > floor && (is_ours || is_late)
            };
            let heads: Vec<_> =
                self.rooms.values().filter(due).map(|room| (&room.id, Some(room.mark))).collect();
            if heads.is_empty() {
                return Ok(());
            }
            let (update, book) = self.scribe()?.update_floors(&heads)?;
            let before = account.mark();
            match self.request_one(ClientEvent::UpdateManifest(update)).await? {
                (seq, ServerEvent::ManifestStored(_)) => {
                    self.take_own_list(Some(book), seq)?;
                    self.save()?;
                }
                (_, ServerEvent::WriteConflict(_)) => {
                    self.refresh_account().await?;
                    if self.account.as_ref().is_some_and(|account| account.mark() == before) {
                        return Err(Error::Frozen);
                    }
                }
                _ => return Err(Error::Unexpected),
            }
        }
    }
}

fn mark_of(rev: u32, sealed: Option<&confidant_seal::Sealed>) -> Mark {
    Mark { rev, envelope: sealed.map_or(Digest::ZERO, |sealed| Digest::of(sealed.as_bytes())) }
}

/// The name of a refusal that the same request will always get.
fn refused_for_good(error: &Error) -> Option<&'static str> {
    match error {
        Error::Denied { error, .. } => match error {
            ErrorName::Request(Failure::TooLarge | Failure::TooMany | Failure::Malformed)
            | ErrorName::Content(Refused::BadId | Refused::RecordRefused) => Some(error.name()),
            _ => None,
        },
        Error::TooLarge => Some("too-large"),
        _ => None,
    }
}

/// The account data that has suggestions for new chats: its kind and name.
pub(crate) const SUGGESTIONS: &str = "suggestions";
pub(crate) const NEW_CHATS: &str = "new-chats";
/// How often a draft of one chat is sent, at most.
const DRAFTS: Duration = Duration::from_secs(5);
/// Operations in one write.
const BATCH: usize = 100;
/// When the floor of a chat is due that another device wrote to.
const FLOOR_MS: u64 = 60_000;
