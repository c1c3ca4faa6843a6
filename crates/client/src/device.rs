//! A device: its files, its keys in memory, and its socket.
//!
//! ```text
//! Device ─┬─ Cabinet: files          state first, then chats
//!         ├─ State, Account, Rooms   what was verified
//!         └─ Connection              requests by number; news wait in the inbox
//! ```
//!
//! One owner drives it: nothing happens between two calls. Easy to get wrong: a request that is given up half-way. Its
//! answer comes later and is dropped, since its number is known to nobody.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use confidant_chat_format::{Account, AccountId, AccountKey, ChatId, DeviceId};
use confidant_chat_protocol::{
    Body as _, ClientEvent, ClientFrame, ErrorName, Failure, Hello, LogoutReason, ServerEvent, ServerFrame,
    Ticket, TicketRequest,
};
use confidant_display::debug_without_content;
use confidant_seal::Key;

use crate::credential::Link;
use crate::error::Error;
use crate::files::{Cabinet, Files};
use crate::room::Room;
use crate::state::State;
use crate::transport::{Connection, Transport};
use crate::turns::{Turns, is_told};
use crate::write::Scribe;

/// Milliseconds since 1970. Passed in, so that tests have a time of their own.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// What a device is made of.
#[derive(Clone)]
pub struct Setup {
    /// The way to the server.
    pub transport: Arc<dyn Transport>,
    /// Where its files are.
    pub files: Arc<dyn Files>,
    /// The key that seals the files; without it, one is kept beside them.
    pub key: Option<Key>,
    /// What time it is.
    pub clock: Clock,
}

debug_without_content!(Setup { transport, files });

/// A device of one account.
pub struct Device {
    pub(crate) setup: Setup,
    pub(crate) link: Link,
    pub(crate) cabinet: Cabinet,
    pub(crate) state: State,
    /// The account as last verified; `None` until the first sync under this account key.
    pub(crate) account: Option<Account>,
    pub(crate) rooms: BTreeMap<ChatId, Room>,
    /// Chats that are in memory only, and in no file.
    pub(crate) temporary: BTreeMap<ChatId, Room>,
    socket: Option<Box<dyn Connection>>,
    /// Whether `hello` was answered on this socket.
    is_ready: bool,
    next_id: u32,
    pub(crate) inbox: VecDeque<ServerFrame>,
    /// Which socket this is: what was begun on one is not begun on the next.
    pub(crate) socket_number: u64,
    /// Turns that this device hears, or heard.
    pub(crate) turns: Turns,
    /// When a draft was sent last, by chat.
    pub(crate) drafted: BTreeMap<ChatId, u64>,
}

debug_without_content!(Device { state, rooms: rooms.len() });

impl Device {
    /// Opens a device that was here before, without asking the server; `None` if nobody registered or logged in here.
    pub fn open(setup: Setup) -> Result<Option<Self>, Error> {
        let cabinet = Cabinet::open(Arc::clone(&setup.files), setup.key.clone())?;
        let Some(json) = cabinet.read(STATE)? else { return Ok(None) };
        let state = State::from_json(&json).ok_or(Error::Damaged)?;
        let mut device = Self::with(setup, cabinet, state);
        device.load()?;
        Ok(Some(device))
    }

    pub(crate) fn with(setup: Setup, cabinet: Cabinet, state: State) -> Self {
        let session = state.session.as_ref().map(crate::state::Session::keys);
        Self {
            link: Link { transport: Arc::clone(&setup.transport), session },
            setup,
            cabinet,
            state,
            account: None,
            rooms: BTreeMap::new(),
            temporary: BTreeMap::new(),
            socket: None,
            is_ready: false,
            next_id: 1,
            inbox: VecDeque::new(),
            socket_number: 0,
            turns: Turns::default(),
            drafted: BTreeMap::new(),
        }
    }

    /// Opens what the files have. A chat whose file does not open any more is loaded anew.
    pub(crate) fn load(&mut self) -> Result<(), Error> {
        let ak = self.ak();
        self.account = self.state.book.as_ref().and_then(|book| book.open(&self.state.account, &ak).ok());
        for name in self.cabinet.names(ROOM)? {
            let Ok(id) = ChatId::parse(&name[ROOM.len()..]) else { continue };
            let room = match self.cabinet.read(&name) {
                Ok(Some(json)) => Room::from_json(&id, &self.state.account, &ak, &json).ok(),
                Ok(None) | Err(Error::Damaged) => None,
                Err(error) => return Err(error),
            };
            let is_listed = self.account.as_ref().is_none_or(|account| account.floors().contains_key(&id));
            if let Some(room) = room.filter(|_| is_listed) {
                self.rooms.insert(id, room);
            }
        }
        Ok(())
    }

    /// Whose it is.
    #[must_use]
    pub fn account_id(&self) -> &AccountId {
        &self.state.account
    }

    /// Which device.
    #[must_use]
    pub fn device_id(&self) -> &DeviceId {
        &self.state.device
    }

    /// Whether there is a session. It may have ended on the server.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        self.state.session.is_some()
    }

    /// When the session ends, in milliseconds since 1970.
    #[must_use]
    pub fn session_ends_at(&self) -> Option<u64> {
        self.state.session.as_ref().map(|session| session.expires_at)
    }

    /// Whether there is an open socket.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.socket.is_some() && self.is_ready
    }

    /// The generation of the account key: how often it was replaced, and one.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.state.generation
    }

    pub(crate) fn ak(&self) -> AccountKey {
        self.state.account_key()
    }

    pub(crate) fn now(&self) -> u64 {
        (self.setup.clock)()
    }

    /// What seals writes; needs a sync under this account key.
    pub(crate) fn scribe(&self) -> Result<Scribe<'_>, Error> {
        match (&self.account, &self.state.book) {
            (Some(account), Some(book)) => {
                Ok(Scribe { account, book, device: &self.state.device, now: self.now() })
            }
            _ => Err(Error::Offline),
        }
    }

    pub(crate) fn save(&self) -> Result<(), Error> {
        self.cabinet.write(STATE, &self.state.to_json())
    }

    pub(crate) fn save_room(&self, chat: &ChatId) -> Result<(), Error> {
        match self.rooms.get(chat) {
            Some(room) => self.cabinet.write(&file_of(chat), &room.to_json()),
            None => self.cabinet.remove(&file_of(chat)),
        }
    }

    /// Several chats; those that are gone lose their files.
    pub(crate) fn save_rooms<'a>(&self, chats: impl Iterator<Item = &'a ChatId>) -> Result<(), Error> {
        let mut here = Vec::new();
        for chat in chats {
            match self.rooms.get(chat) {
                Some(room) => here.push(room),
                None => self.cabinet.remove(&file_of(chat))?,
            }
        }
        self.cabinet.write_all(here.into_iter().map(|room| (file_of(&room.id), room.to_json())))
    }

    /// Opens a socket. Does nothing if there is one.
    pub async fn connect(&mut self) -> Result<(), Error> {
        if self.is_connected() {
            return Ok(());
        }
        // One whose `hello` was given up half-way is good for nothing.
        self.disconnect();
        if self.link.session.is_none() {
            return Err(Error::NotLoggedIn);
        }
        let ticket: Ticket = match self.link.post("/chats/ticket", &TicketRequest {}).await {
            Err(Error::Denied { error: ErrorName::Request(Failure::Unauthorised), .. }) => {
                return Err(Error::LoggedOut(LogoutReason::Expired));
            }
            ticket => ticket?,
        };
        self.socket = Some(self.link.transport.connect().await?);
        self.socket_number += 1;
        let seq = (self.state.seq > 0).then_some(self.state.seq);
        let hello = Hello { v: 1, ticket: ticket.ticket, seq };
        let answer = self.request_one(ClientEvent::Hello(hello)).await;
        self.is_ready = match &answer {
            Ok((_, ServerEvent::Ready(ready))) => ready.account == self.state.account,
            _ => false,
        };
        if self.is_ready {
            return Ok(());
        }
        self.disconnect();
        Err(answer.err().unwrap_or(Error::Unexpected))
    }

    /// Closes the socket. What was written is kept.
    pub fn disconnect(&mut self) {
        (self.socket, self.is_ready) = (None, false);
        self.inbox.clear();
    }

    /// Sends a request that is not answered.
    pub(crate) async fn tell(&mut self, event: ClientEvent) -> Result<(), Error> {
        self.send(event).await.map(drop)
    }

    /// Sends a request and waits for all of its answer. News that come meanwhile wait in the inbox.
    pub(crate) async fn request(&mut self, event: ClientEvent) -> Result<Vec<ServerFrame>, Error> {
        let id = self.send(event).await?;
        let mut answer = Vec::new();
        loop {
            let frame = self.receive().await?;
            match frame.re {
                Some(re) if re == id => {
                    if let ServerEvent::Refused(refused) = frame.event {
                        return Err(refused.into());
                    }
                    let ended = ends(&frame.event);
                    answer.push(frame);
                    if ended {
                        return Ok(answer);
                    }
                }
                // The answer to a request that was given up; but what a turn says follows its first answer.
                Some(_) if !is_told(&frame.event) => {}
                _ => self.inbox.push_back(frame),
            }
            // No honest server sends so much: what this device has to keep stays small.
            if answer.len().max(self.inbox.len()) > MAX_FRAMES {
                self.disconnect();
                return Err(Error::Unexpected);
            }
        }
    }

    /// The single event that answers.
    pub(crate) async fn request_one(
        &mut self,
        event: ClientEvent,
    ) -> Result<(Option<u64>, ServerEvent), Error> {
        let mut frames = self.request(event).await?;
        match (frames.pop(), frames.is_empty()) {
            (Some(frame), true) => Ok((frame.seq, frame.event)),
            _ => Err(Error::Unexpected),
        }
    }

    async fn send(&mut self, event: ClientEvent) -> Result<u32, Error> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let frame = ClientFrame { id, event }.write()?;
        let socket = self.socket.as_mut().ok_or(Error::Offline)?;
        match socket.send(frame).await {
            Ok(()) => Ok(id),
            Err(error) => self.close(error),
        }
    }

    /// The next frame, whatever it is. The end of the session ends the socket.
    pub(crate) async fn receive(&mut self) -> Result<ServerFrame, Error> {
        let socket = self.socket.as_mut().ok_or(Error::Offline)?;
        let bytes = match socket.next().await {
            Ok(bytes) => bytes,
            Err(error) => return self.close(error),
        };
        let Ok(frame) = ServerFrame::read(&bytes) else {
            self.socket = None;
            return Err(Error::Unexpected);
        };
        if let ServerEvent::ForceLogout(logout) = &frame.event {
            self.socket = None;
            return Err(Error::LoggedOut(logout.reason));
        }
        Ok(frame)
    }

    fn close<T>(&mut self, error: crate::transport::TransportError) -> Result<T, Error> {
        self.socket = None;
        Err(error.into())
    }
}

impl Cabinet {
    /// The files of a device that is being made: nobody's until now.
    pub(crate) fn vacant(setup: &Setup) -> Result<Self, Error> {
        let cabinet = Self::open(Arc::clone(&setup.files), setup.key.clone())?;
        if cabinet.read(STATE)?.is_some() { Err(Error::Occupied) } else { Ok(cabinet) }
    }
}

/// Whether an answer ends with this event.
fn ends(event: &ServerEvent) -> bool {
    match event {
        ServerEvent::AccountState(_)
        | ServerEvent::PhaseOne(_)
        | ServerEvent::PhaseTwo(_)
        | ServerEvent::PhaseThree(_) => false,
        ServerEvent::ChatContentBatchResponse(part) => !part.more,
        ServerEvent::LoadMoreChatsResponse(part) => !part.more,
        ServerEvent::SendEmbedData(part) => !part.more,
        ServerEvent::DataRecords(part) => !part.more,
        _ => true,
    }
}

pub(crate) fn file_of(chat: &ChatId) -> String {
    format!("{ROOM}{chat}")
}

/// Frames of one answer, and news that wait meanwhile.
const MAX_FRAMES: usize = 20_000;
pub(crate) const STATE: &str = "state";
const ROOM: &str = "room-";
