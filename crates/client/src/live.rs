//! News: what other devices do, as it happens.
//!
//! ```text
//! event ─▶ known already? ─▶ nothing
//!       ─▶ the next revision of what this device has? ─▶ checked as a delta ─▶ Room
//!       ─▶ anything else ─▶ the chat, or the account, is asked for
//! ```
//!
//! Each event is a claim of the server's, checked like any sync. Easy to get wrong: an event that does not follow what
//! this device has. It is not applied; the chat is asked for instead.

use confidant_chat_format::{ChatId, Digest, FieldName, Refused};
use confidant_chat_protocol::{ChatUpdated, HeadPut, MessageDeleted, ServerEvent, ServerFrame};

use crate::device::Device;
use crate::error::Error;
use crate::room::{Delta, Room, Want};
use crate::state::{Piece, open_data};
use crate::turns::{TurnEvent, is_told};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// This chat is new or changed.
    Chat(ChatId),
    /// These chats are gone.
    Gone(Vec<ChatId>),
    /// The draft of this chat changed.
    Draft(ChatId),
    /// This piece of account data changed: its kind and name.
    Data(FieldName, FieldName),
    /// Credentials, keys or the list of chats changed.
    Account,
    /// Devices or sessions changed.
    Devices,
    /// Something came of a turn. After [`TurnUpdate::Ended`](crate::TurnUpdate::Ended) and
    /// [`TurnUpdate::Made`](crate::TurnUpdate::Made), [`Device::flush`] stores it.
    Turn(TurnEvent),
    /// Nothing that this device did not know.
    Nothing,
}

impl Device {
    /// Waits for the next news, takes it in, and says what it was. May be dropped at any time: what was not taken in whole is taken in
    /// by the next call.
    pub async fn listen(&mut self) -> Result<News, Error> {
        if let Some(told) = self.turns.told.pop_front() {
            return Ok(News::Turn(told));
        }
        if self.inbox.is_empty() {
            let frame = self.receive().await?;
            self.inbox.push_back(frame);
        }
        // It stays in front until it is taken in. What comes meanwhile waits behind it, and a connection that ends takes all of them.
        let Some(frame) = self.inbox.front().cloned() else { return Ok(News::Nothing) };
        let news = self.take_in(frame).await;
        self.inbox.pop_front();
        news
    }

    async fn take_in(&mut self, frame: ServerFrame) -> Result<News, Error> {
        if is_told(&frame.event) {
            let told = Box::pin(self.take_turn(frame.event)).await?;
            return Ok(told.map_or(News::Nothing, News::Turn));
        }
        if frame.re.is_some() {
            return Ok(News::Nothing);
        }
        let news = self.take_news(frame.event).await?;
        if let Some(seq) = frame.seq.filter(|seq| *seq > self.state.seq) {
            self.state.seq = seq;
            self.save()?;
        }
        Ok(news)
    }

    /// What came of turns since the last [`Device::listen`], without waiting: found out by a sync or a flush.
    pub fn told(&mut self) -> Option<TurnEvent> {
        self.turns.told.pop_front()
    }

    async fn take_news(&mut self, event: ServerEvent) -> Result<News, Error> {
        match event {
            ServerEvent::ChatUpdated(update) => self.take_update(update).await,
            ServerEvent::MessageDeleted(event) => self.take_deletion(event).await,
            ServerEvent::ChatDeleted(event) => {
                // Only the account's own list says that a chat is gone.
                let gone = self.refresh_account().await?;
                Ok(if gone.is_empty() || !gone.contains(&event.chat) {
                    News::Nothing
                } else {
                    News::Gone(gone)
                })
            }
            ServerEvent::ChatDraftUpdated(news) => {
                self.take_draft(&news.chat, news.draft_v, news.draft.map(|draft| draft.into_sealed())).await
            }
            ServerEvent::DraftDeleted(news) => self.take_draft(&news.chat, news.draft_v, None).await,
            ServerEvent::DataUpdated(news) => {
                let account = self.account.as_ref().ok_or(Refused::AccountMissing)?;
                let known = self.state.piece(&news.kind, &news.name).map_or(0, |piece| piece.rev);
                let (rev, body) = match &news.data {
                    Some(data) => {
                        let (rev, body) = open_data(account, &news.kind, &news.name, data.sealed())?;
                        (rev, Some(body))
                    }
                    None => (news.rev, None),
                };
                if rev <= known {
                    return Ok(News::Nothing);
                }
                let (kind, name) = (news.kind, news.name);
                self.state.put_piece(Piece { kind: kind.clone(), name: name.clone(), rev, body });
                self.save()?;
                Ok(News::Data(kind, name))
            }
            ServerEvent::AccountUpdated(update) => {
                let known = self.account.as_ref().map_or(0, |account| account.mark().rev);
                self.state.account_rev = self.state.account_rev.max(update.account_rev);
                if update.manifest > known || update.generation != self.generation() {
                    let gone = self.refresh_account().await?;
                    if !gone.is_empty() {
                        return Ok(News::Gone(gone));
                    }
                }
                Ok(News::Account)
            }
            ServerEvent::DevicesChanged(_) => Ok(News::Devices),
            _ => Ok(News::Nothing),
        }
    }

    async fn take_update(&mut self, update: ChatUpdated) -> Result<News, Error> {
        let chat = update.chat.clone();
        let rows = match self.follows(&chat, update.before, &update.head)? {
            Follows::Known => return Ok(News::Nothing),
            Follows::Next(rows) => rows,
            Follows::Ask => return self.ask_for(&chat).await,
        };
        let Some(room) = self.rooms.get(&chat) else { return self.ask_for(&chat).await };
        let delta = Delta::updated(room, rows, update);
        self.take_delta(&chat, delta).await
    }

    async fn take_deletion(&mut self, event: MessageDeleted) -> Result<News, Error> {
        let chat = event.chat.clone();
        let before = event.head.envelope.rev().saturating_sub(1);
        let rows = match self.follows(&chat, before, &event.head)? {
            Follows::Known => return Ok(News::Nothing),
            Follows::Next(rows) => rows,
            Follows::Ask => return self.ask_for(&chat).await,
        };
        let Some(room) = self.rooms.get(&chat) else { return self.ask_for(&chat).await };
        let delta = Delta::deleted(room, rows, event);
        self.take_delta(&chat, delta).await
    }

    async fn take_delta(&mut self, chat: &ChatId, delta: Delta) -> Result<News, Error> {
        match self.receive_chat(chat, delta) {
            Ok((room, stored)) => {
                self.state.queue.confirm(chat, &stored);
                self.rooms.insert(chat.clone(), room);
                self.save()?;
                self.save_room(chat)?;
                Ok(News::Chat(chat.clone()))
            }
            Err(Want::Refused(refused)) => Err(refused.into()),
            Err(_) => self.ask_for(chat).await,
        }
    }

    async fn ask_for(&mut self, chat: &ChatId) -> Result<News, Error> {
        if !self.is_listed(chat) {
            self.refresh_account().await?;
        }
        let before = self.rooms.get(chat).map(|room| room.mark);
        self.refresh_chat(chat).await?;
        let after = self.rooms.get(chat).map(|room| room.mark);
        Ok(if before == after { News::Nothing } else { News::Chat(chat.clone()) })
    }

    async fn take_draft(
        &mut self,
        chat: &ChatId,
        draft_v: u32,
        draft: Option<confidant_seal::Sealed>,
    ) -> Result<News, Error> {
        let account = self.state.account.clone();
        let Some(room) = self.rooms.get_mut(chat) else { return self.ask_for(chat).await };
        if draft_v <= room.draft_v {
            return Ok(News::Nothing);
        }
        room.take_draft(&account, draft_v, draft)?;
        self.save_room(chat)?;
        Ok(News::Draft(chat.clone()))
    }

    /// Whether news about a chat follow what this device has. The same revision with other bytes: `forked`.
    fn follows(&self, chat: &ChatId, before: u32, head: &HeadPut) -> Result<Follows, Error> {
        let Some(room) = self.rooms.get(chat) else { return Ok(Follows::Ask) };
        let rev = head.envelope.rev();
        let floor =
            self.account.as_ref().and_then(|account| account.floors().get(chat)).map_or(0, |mark| mark.rev);
        let is_same = Digest::of(head.envelope.sealed().as_bytes()) == room.mark.envelope;
        match rev.cmp(&room.mark.rev) {
            std::cmp::Ordering::Less => Ok(Follows::Known),
            std::cmp::Ordering::Equal if is_same => Ok(Follows::Known),
            std::cmp::Ordering::Equal => Err(Refused::Forked.into()),
            // News that waited while the account was loaded are behind its floors: the chat is asked for.
            std::cmp::Ordering::Greater if before == room.mark.rev && (1..=rev).contains(&floor) => {
                Ok(Follows::Next(self.rows_of(room)))
            }
            std::cmp::Ordering::Greater => Ok(Follows::Ask),
        }
    }

    fn rows_of(&self, room: &Room) -> Vec<confidant_chat_format::Entry> {
        room.rows(&self.ak(), &self.state.account)
    }
}

/// How news relate to what this device has.
enum Follows {
    /// It is known, or older.
    Known,
    /// It is the next revision; the rows of the chat's ring before it.
    Next(Vec<confidant_chat_format::Entry>),
    /// Something lies between.
    Ask,
}
