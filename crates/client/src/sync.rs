//! Sync in phases: the account first, then chats; only what changed since, and all of it checked.
//!
//! ```text
//! account state ─▶ rings, manifest, floors ─▶ chats that are gone go
//! phases        ─▶ each chat: ring, head, list, items ─▶ Room
//! left over     ─▶ chats that this device has and that changed outside the phases
//! ```
//!
//! Easy to get wrong: an honest race. A chat that another device creates or deletes between two frames is in one of them
//! and not in the other; so such a chat is refused only if a second look at the account says the same.

use std::collections::BTreeMap;

use confidant_chat_format::{
    Account, AccountKey, ChatId, EmbedId, Entry, Item, ItemId, Mark, Place, Refused, Ring, RingOf,
    SentAccount, Trail, open_record,
};
use confidant_chat_protocol::limits::MAX_BATCH;
use confidant_chat_protocol::{
    AccountState, ChatSent, ClientEvent, List, LoadMoreChats, Map, PhasedSyncComplete, PhasedSyncRequest,
    RequestChatContentBatch, RequestData, RequestEmbed, ServerEvent, ServerFrame, SetActiveChat, Versions,
};

pub use confidant_chat_protocol::Phase;

use crate::device::Device;
use crate::error::Error;
use crate::room::{Delta, Room, Want};
use crate::state::{Bin, Book, Keys, Piece, open_data};
use crate::turns::is_told;

/// What a sync did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// Chats that are new or changed.
    pub changed: Vec<ChatId>,
    /// Chats that are gone.
    pub gone: Vec<ChatId>,
    /// Whether there are older chats, for [`Device::load_older`].
    pub older: bool,
}

/// Chats in their parts, and those that are not there.
type Fetched = (BTreeMap<ChatId, Vec<ChatSent>>, Vec<ChatId>);

/// The parts of one answer to a sync.
struct Phases {
    state: AccountState,
    trail: Option<Trail>,
    chats: BTreeMap<ChatId, Vec<ChatSent>>,
    complete: PhasedSyncComplete,
}

impl Device {
    /// Connects if needed, and takes in what changed, up to this phase. A chat that is refused stays as it was; the others
    /// are taken in, and the first refusal is the error. Asks for the answers that the chats wait for.
    pub async fn sync(&mut self, phase: Phase) -> Result<Synced, Error> {
        self.connect().await?;
        // What other devices did comes with the sync; what turns say does not.
        self.inbox.retain(|frame| is_told(&frame.event));
        self.tell_opened().await?;
        let mut synced = Synced::default();
        let (mut refusal, mut doubt) = (None, None);
        for _ in 0..ROUNDS {
            let Phases { state, trail, mut chats, complete } = self.phases(phase).await?;
            let listed = state.chats.clone().into_map();
            synced.gone.extend(self.take_account(state, trail)?);
            self.complete(&mut chats).await?;
            doubt = None;
            for (chat, parts) in chats {
                if self.is_listed(&chat) {
                    note(&mut refusal, self.take_chat(&chat, parts, &mut synced))?;
                } else {
                    doubt = Some(Refused::ListRefused);
                }
            }
            let whole = phase == Phase::All && !complete.older;
            for missing in self.left_over(&listed, whole, &mut synced, &mut refusal).await? {
                doubt = self.is_listed(&missing).then_some(Refused::Withheld).or(doubt);
            }
            self.state.seq = self.state.seq.max(complete.seq);
            self.state.older = complete.older;
            synced.older = complete.older;
            if doubt.is_none() {
                break;
            }
        }
        note(&mut refusal, self.take_data().await)?;
        note(&mut refusal, self.check_floors())?;
        self.save()?;
        synced.changed.sort_unstable();
        synced.changed.dedup();
        self.save_rooms(synced.changed.iter().chain(&synced.gone))?;
        if let Some(refused) = refusal.or(doubt) {
            return Err(refused.into());
        }
        Box::pin(self.resume_turns()).await?;
        Ok(synced)
    }

    /// The account only: keys, manifest, floors, and which chats are gone.
    pub(crate) async fn refresh_account(&mut self) -> Result<Vec<ChatId>, Error> {
        let Phases { state, trail, .. } = self.phases(Phase::LastChat).await?;
        let gone = self.take_account(state, trail)?;
        self.save()?;
        for chat in &gone {
            self.save_room(chat)?;
        }
        Ok(gone)
    }

    /// Takes in one chat as the server has it now. One that is gone, and was by the account's own list, is gone here.
    pub(crate) async fn refresh_chat(&mut self, chat: &ChatId) -> Result<(), Error> {
        if !self.is_listed(chat) {
            return Ok(());
        }
        let mut synced = Synced::default();
        let have = self.rooms.get(chat).map_or(NONE, Room::versions);
        let (mut found, missing) = self.fetch([(chat.clone(), have)].into()).await?;
        match found.remove(chat) {
            Some(parts) => self.take_chat(chat, parts, &mut synced)?,
            None if !missing.contains(chat) => return Err(Refused::Withheld.into()),
            None => {
                self.refresh_account().await?;
                return if self.is_listed(chat) { Err(Refused::Withheld.into()) } else { Ok(()) };
            }
        }
        self.save()?;
        self.save_room(chat)
    }

    /// Chats older than those on this device; whether there are still older ones.
    ///
    /// The oldest one here may have been loaded by itself, because somebody opened it: what lies between is asked for by the
    /// account's own list, once nothing older is left.
    pub async fn load_older(&mut self, limit: u32) -> Result<Synced, Error> {
        self.connect().await?;
        let oldest = self.rooms.values().min_by_key(|room| (room.updated_at, &room.id));
        let request = LoadMoreChats { before: oldest.map(|room| room.id.clone()), limit };
        let frames = self.request(ClientEvent::LoadMoreChats(request)).await?;
        let (mut chats, mut synced): (BTreeMap<ChatId, Vec<ChatSent>>, Synced) = Default::default();
        for frame in frames {
            let ServerEvent::LoadMoreChatsResponse(part) = frame.event else { return Err(Error::Unexpected) };
            synced.older = part.older;
            collect(&mut chats, part.chats.into_vec());
        }
        // The server sends these chats whole; what this device has of them is newer or the same.
        chats.retain(|chat, _| !self.rooms.contains_key(chat));
        if !chats.keys().all(|chat| self.is_listed(chat)) {
            self.refresh_account().await?;
        }
        let mut missing = Vec::new();
        if !synced.older {
            (missing, synced.older) = self.between(limit, &mut chats).await?;
        }
        self.complete(&mut chats).await?;
        for (chat, parts) in chats {
            self.take_chat(&chat, parts, &mut synced)?;
            self.save_room(&chat)?;
        }
        self.state.older = synced.older;
        self.save()?;
        // One that is not there went meanwhile, or is kept back: the account's own list says which.
        if !missing.is_empty() {
            self.refresh_account().await?;
        }
        if missing.iter().any(|chat| self.is_listed(chat)) {
            Err(Refused::Withheld.into())
        } else {
            Ok(synced)
        }
    }

    /// Adds chats that are listed and neither here nor among these. Gives those that the server does not have, and whether
    /// there are more than `limit`.
    async fn between(
        &mut self,
        limit: u32,
        chats: &mut BTreeMap<ChatId, Vec<ChatSent>>,
    ) -> Result<(Vec<ChatId>, bool), Error> {
        let mut between = self.listed();
        between.retain(|chat| !self.rooms.contains_key(chat) && !chats.contains_key(chat));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = between.len() > limit;
        between.truncate(limit);
        for batch in between.chunks(MAX_BATCH) {
            let have = batch.iter().map(|chat| (chat.clone(), NONE)).collect();
            let (found, _) = self.fetch_as_sent(have).await?;
            chats.extend(found);
        }
        between.retain(|chat| !chats.contains_key(chat));
        Ok((between, has_more))
    }

    /// Loads one chat that is listed and not on this device yet, or what changed in one that is. Says that it is shown.
    ///
    /// Without a server the chat is what this device has of it; the server is told with the next sync, so that a new device
    /// loads this chat first.
    pub async fn open_chat(&mut self, chat: &ChatId) -> Result<(), Error> {
        if self.is_temporary(chat) {
            return Ok(());
        }
        if self.rooms.contains_key(chat) {
            self.state.opened = Some(chat.clone());
            self.save()?;
        }
        self.connect().await?;
        if !self.is_listed(chat) {
            self.refresh_account().await?;
        }
        if !self.is_listed(chat) {
            return Err(Error::NoSuchChat);
        }
        self.refresh_chat(chat).await?;
        self.state.opened = Some(chat.clone());
        self.tell_opened().await
    }

    /// Tells the server which chat was opened last, if it does not know.
    async fn tell_opened(&mut self) -> Result<(), Error> {
        let Some(chat) = self.state.opened.clone() else { return Ok(()) };
        if self.is_listed(&chat) {
            self.tell(ClientEvent::SetActiveChat(SetActiveChat { chat: Some(chat) })).await?;
        }
        self.state.opened = None;
        self.save()
    }

    /// The text of an embed, loaded if it is not on this device.
    pub async fn embed(&mut self, chat: &ChatId, embed: &EmbedId) -> Result<String, Error> {
        let item = ItemId::Embed(embed.clone());
        let room = self.rooms.get(chat).ok_or(Error::NoSuchChat)?;
        let slot = room.items.get(&item).ok_or(Error::NoSuchMessage)?;
        if let Some(Item::Text(text)) = &slot.item {
            return Ok(text.body.clone());
        }
        let hash = slot.hash;
        self.connect().await?;
        let request = RequestEmbed { chat: chat.clone(), embeds: List::new(vec![embed.clone()])? };
        let frames = self.request(ClientEvent::RequestEmbed(request)).await?;
        let sent = frames.into_iter().find_map(|frame| match frame.event {
            ServerEvent::SendEmbedData(sent) => sent.items.into_vec().pop(),
            _ => None,
        });
        let sealed = sent.and_then(|sent| sent.envelope).ok_or(Refused::Withheld)?.into_sealed();
        if confidant_chat_format::Digest::of(sealed.as_bytes()) != hash {
            return Err(Refused::RecordRefused.into());
        }
        let account = self.state.account.clone();
        let room = self.rooms.get_mut(chat).ok_or(Error::NoSuchChat)?;
        let opened = open_record(&room.ring, &account, &Place::Item(chat, &item), &sealed)?;
        let (rev, opened) = (opened.rev, crate::room::item_of(&item, &opened.json)?);
        let body = crate::write::text_of(Some(&opened)).unwrap_or_default().to_owned();
        if let Some(slot) = room.items.get_mut(&item) {
            (slot.rev, slot.sealed, slot.item) = (rev, Some(sealed), Some(opened));
        }
        self.save_room(chat)?;
        Ok(body)
    }

    pub(crate) fn is_listed(&self, chat: &ChatId) -> bool {
        self.account.as_ref().is_some_and(|account| account.floors().contains_key(chat))
    }

    /// Asks for the phases. A device that knows a manifest and has no floors gets them by asking as if it knew none.
    async fn phases(&mut self, phase: Phase) -> Result<Phases, Error> {
        let known = self.state.seen().manifest.map_or(0, |mark| mark.rev);
        let mut tries = ROUNDS;
        let phases = loop {
            tries -= 1;
            match self.phases_since(phase, known).await {
                // A chat changed between two of its parts.
                Err(error) if error.is_conflict() && tries > 0 => {}
                phases => break phases?,
            }
        };
        let has_floors = self.state.book.is_some() || !phases.state.floors.is_empty();
        if has_floors { Ok(phases) } else { self.phases_since(phase, 0).await }
    }

    async fn phases_since(&mut self, phase: Phase, manifest: u32) -> Result<Phases, Error> {
        let have = self.rooms.iter().map(|(chat, room)| (chat.clone(), room.versions())).collect();
        let request = PhasedSyncRequest { phase, manifest, client_chat_versions: Map::new(have)? };
        let frames = self.request(ClientEvent::PhasedSyncRequest(request)).await?;
        let (mut state, mut complete): (Option<AccountState>, _) = (None, None);
        let (mut chats, mut trail) = (BTreeMap::new(), None);
        for ServerFrame { event, .. } in frames {
            match event {
                ServerEvent::AccountState(part) => state = Some(join(state, &mut trail, part)?),
                ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
                    collect(&mut chats, sent.chats.into_vec());
                }
                ServerEvent::PhasedSyncComplete(done) => complete = Some(done),
                _ => return Err(Error::Unexpected),
            }
        }
        match (state, complete) {
            (Some(state), Some(complete)) if !state.more => Ok(Phases { state, trail, chats, complete }),
            _ => Err(Error::Unexpected),
        }
    }

    /// Checks the account as the server has it, and takes it over; says which chats are gone.
    fn take_account(&mut self, state: AccountState, trail: Option<Trail>) -> Result<Vec<ChatId>, Error> {
        let chats: Vec<ChatId> = state.chats.keys().cloned().collect();
        let messages_v: BTreeMap<ChatId, u32> =
            state.chats.iter().map(|(chat, have)| (chat.clone(), have.messages_v)).collect();
        let (account_rev, generation) = (state.account_rev, state.generation);
        let entries = |rows: Vec<_>| rows.into_iter().map(Entry::from).collect::<Vec<_>>();
        let mut floors: Vec<Bin> =
            self.state.book.as_ref().map_or_else(|| vec![Bin(Vec::new()); 16], |book| book.floors.clone());
        for floor in state.floors.into_vec() {
            if let Some(slot) = floors.get_mut(floor.shelf.index()) {
                *slot = Bin::of(floor.envelope.sealed());
            }
        }
        let sent = SentAccount {
            ring: entries(state.ring.into_vec()),
            box_ring: entries(state.mailbox.into_vec()),
            box_pub: state.box_pub,
            manifest: state.manifest.into_sealed(),
            trail: trail.unwrap_or(Trail::NONE),
            floors: floors.iter().map(Bin::sealed).collect(),
        };
        let ak = self.key_of(generation);
        let account = Account::open(&self.state.account, &ak, &sent, &self.state.seen())?;
        account.check_chats(&chats)?;
        let is_behind =
            |(chat, floor): (&ChatId, &Mark)| messages_v.get(chat).is_some_and(|v| *v < floor.rev);
        if account.floors().iter().any(is_behind) {
            return Err(Refused::RolledBack.into());
        }
        let boxes = Ring::open(&ak, &self.state.account, RingOf::Box, &sent.box_ring)?;
        self.state.book = Some(Book {
            keys: Keys::of(account.ring()),
            boxes: Keys::of(&boxes),
            box_pub: sent.box_pub,
            manifest: Bin::of(&sent.manifest),
            floors,
        });
        if ak.generation() > self.state.generation {
            self.adopt(&ak)?;
        }
        self.state.account_rev = account_rev;
        self.state.pinned = None;
        let gone: Vec<ChatId> =
            self.rooms.keys().filter(|chat| !account.floors().contains_key(*chat)).cloned().collect();
        for chat in &gone {
            self.rooms.remove(chat);
        }
        // Also those that were listed and never loaded here.
        let listed = self.account.iter().flat_map(|before| before.floors().keys());
        let unlisted: Vec<ChatId> =
            listed.filter(|chat| !account.floors().contains_key(*chat)).chain(&gone).cloned().collect();
        self.state.note_gone(&unlisted);
        self.account = Some(account);
        Ok(gone)
    }

    /// The account key of this generation: the one there is, or the one that this device was about to commit.
    fn key_of(&self, generation: u32) -> AccountKey {
        match &self.state.rotating {
            Some(rotating) if rotating.generation == generation && generation > self.state.generation => {
                AccountKey::new(rotating.ak.0.clone(), generation)
            }
            _ => self.ak(),
        }
    }

    /// A rotation of this device was committed: its rooms are opened under the new key.
    pub(crate) fn adopt(&mut self, ak: &AccountKey) -> Result<(), Error> {
        for room in self.rooms.values_mut() {
            room.ring = room.keys.ring(ak, &self.state.account, RingOf::Chat(&room.id))?;
        }
        self.state.set_account_key(ak);
        self.state.rotating = None;
        Ok(())
    }

    /// Takes in one chat from its parts, with everything that it needs.
    pub(crate) fn take_chat(
        &mut self,
        chat: &ChatId,
        parts: Vec<ChatSent>,
        synced: &mut Synced,
    ) -> Result<(), Error> {
        let (room, stored) = match self.receive_chat(chat, Delta::join(parts)?) {
            Ok(received) => received,
            Err(Want::Refused(refused)) => return Err(refused.into()),
            Err(Want::Items | Want::Trail(_)) => return Err(Refused::Withheld.into()),
        };
        self.state.queue.confirm(chat, &stored);
        self.rooms.insert(chat.clone(), room);
        synced.changed.push(chat.clone());
        Ok(())
    }

    /// Asks once more, for all of them at once, where a device without memory needs to be shown how a head follows from its
    /// floor.
    async fn complete(&mut self, chats: &mut BTreeMap<ChatId, Vec<ChatSent>>) -> Result<(), Error> {
        let lacking = chats.iter().filter_map(|(chat, parts)| Some((chat.clone(), self.lacks(chat, parts)?)));
        let lacking: Vec<(ChatId, Versions)> = lacking.collect();
        for batch in lacking.chunks(MAX_BATCH) {
            let (again, _) = self.fetch_as_sent(batch.iter().cloned().collect()).await?;
            for (chat, since) in again {
                if let Some(parts) = chats.get_mut(&chat) {
                    *parts = overlaid(std::mem::take(parts), since);
                }
            }
        }
        Ok(())
    }

    /// What to ask from, if a chat came without a trail that it needs.
    fn lacks(&self, chat: &ChatId, parts: &[ChatSent]) -> Option<Versions> {
        let floor = self.account.as_ref()?.floors().get(chat)?.rev;
        let last = parts.last()?;
        let has_trail = parts.iter().any(|part| part.trail.is_some());
        if self.rooms.contains_key(chat) || has_trail || last.head.rev() <= floor {
            return None;
        }
        Some(Versions { messages_v: floor, title_v: 0, draft_v: last.versions.draft_v })
    }

    pub(crate) fn receive_chat(&self, chat: &ChatId, delta: Delta) -> Result<(Room, Vec<Mark>), Want> {
        let account = self.account.as_ref().ok_or(Want::Refused(Refused::AccountMissing))?;
        Room::receive(self.rooms.get(chat), account, chat, delta)
    }

    /// Chats that changed outside the phases, and, where the phases were everything, chats that did not come.
    async fn left_over(
        &mut self,
        listed: &BTreeMap<ChatId, Versions>,
        whole: bool,
        synced: &mut Synced,
        refusal: &mut Option<Refused>,
    ) -> Result<Vec<ChatId>, Error> {
        let mut wanted = BTreeMap::new();
        for (chat, versions) in listed {
            match self.rooms.get(chat) {
                // One that is ahead was written meanwhile; one that was refused is refused once.
                Some(room) if is_older(&room.versions(), versions) && refusal.is_none() => {
                    wanted.insert(chat.clone(), room.versions());
                }
                None if whole && refusal.is_none() => drop(wanted.insert(chat.clone(), NONE)),
                _ => {}
            }
        }
        let mut gone = Vec::new();
        let wanted: Vec<(ChatId, Versions)> = wanted.into_iter().collect();
        for batch in wanted.chunks(MAX_BATCH) {
            let (found, missing) = self.fetch(batch.iter().cloned().collect()).await?;
            for (chat, parts) in found {
                note(refusal, self.take_chat(&chat, parts, synced))?;
            }
            gone.extend(missing);
        }
        Ok(gone)
    }

    /// Chats by id, with the trails that they need; and those that the server says are not there.
    pub(crate) async fn fetch(&mut self, have: BTreeMap<ChatId, Versions>) -> Result<Fetched, Error> {
        let (mut chats, missing) = self.fetch_as_sent(have).await?;
        self.complete(&mut chats).await?;
        Ok((chats, missing))
    }

    async fn fetch_as_sent(&mut self, have: BTreeMap<ChatId, Versions>) -> Result<Fetched, Error> {
        let request = RequestChatContentBatch { chats: Map::new(have)? };
        let (mut chats, mut missing) = (BTreeMap::new(), Vec::new());
        for frame in self.request(ClientEvent::RequestChatContentBatch(request)).await? {
            let ServerEvent::ChatContentBatchResponse(part) = frame.event else {
                return Err(Error::Unexpected);
            };
            collect(&mut chats, part.chats.into_vec());
            missing.extend(part.missing.into_vec());
        }
        Ok((chats, missing))
    }

    /// Every chat on this device has reached its floor; else the server keeps something back.
    fn check_floors(&self) -> Result<(), Error> {
        let Some(account) = &self.account else { return Ok(()) };
        let is_short = |(chat, room): (&ChatId, &Room)| {
            account.floors().get(chat).is_some_and(|floor| floor.rev > room.mark.rev)
        };
        if self.rooms.iter().any(is_short) { Err(Refused::Withheld.into()) } else { Ok(()) }
    }

    async fn take_data(&mut self) -> Result<(), Error> {
        let frames = self.request(ClientEvent::RequestData(RequestData { kind: None })).await?;
        let account = self.account.as_ref().ok_or(Error::Offline)?;
        let mut pieces = Vec::new();
        for frame in frames {
            let ServerEvent::DataRecords(part) = frame.event else { return Err(Error::Unexpected) };
            for sent in part.records.into_vec() {
                let (rev, body) = open_data(account, &sent.kind, &sent.name, sent.data.sealed())?;
                let piece = Piece { kind: sent.kind, name: sent.name, rev, body: Some(body) };
                if self.state.piece(&piece.kind, &piece.name).is_some_and(|known| rev < known.rev) {
                    return Err(Refused::RolledBack.into());
                }
                pieces.push(piece);
            }
        }
        // What did not come was removed; its revision is remembered.
        for known in &mut self.state.data {
            if !pieces.iter().any(|new| (&new.kind, &new.name) == (&known.kind, &known.name)) {
                known.body = None;
            }
        }
        for piece in pieces {
            self.state.put_piece(piece);
        }
        Ok(())
    }
}

/// Keeps the first refusal and goes on; everything else ends what is being done.
pub(crate) fn note(refusal: &mut Option<Refused>, done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Refused(refused)) => {
            refusal.get_or_insert(refused);
            Ok(())
        }
        done => done,
    }
}

fn is_older(have: &Versions, there: &Versions) -> bool {
    have.messages_v < there.messages_v || have.draft_v < there.draft_v || have.title_v < there.title_v
}

/// Groups parts by chat, in their order.
pub(crate) fn collect(chats: &mut BTreeMap<ChatId, Vec<ChatSent>>, parts: Vec<ChatSent>) {
    for part in parts {
        chats.entry(part.chat.clone()).or_default().push(part);
    }
}

/// A chat as it was sent whole, brought up to date by what was sent since its floor.
fn overlaid(whole: Vec<ChatSent>, mut since: Vec<ChatSent>) -> Vec<ChatSent> {
    let mut parts = whole;
    for part in &mut parts {
        part.more = true;
    }
    // What was removed since was removed before the whole was sent, or after: it is not there now.
    parts.append(&mut since);
    parts
}

/// Joins the parts of an account's state; its trail may be longer than one message.
pub(crate) fn join(
    state: Option<AccountState>,
    trail: &mut Option<Trail>,
    mut part: AccountState,
) -> Result<AccountState, Error> {
    if let Some(sent) = part.trail.take().map(Trail::from) {
        trail.get_or_insert(Trail { chain: sent.chain, steps: Vec::new() }).steps.extend(sent.steps);
    }
    let Some(mut state) = state else { return Ok(part) };
    state.more = part.more;
    let floors = state.floors.into_vec().into_iter().chain(part.floors.into_vec()).collect();
    state.floors = List::new(floors).map_err(|_| Error::Unexpected)?;
    let chats = state.chats.into_map().into_iter().chain(part.chats.into_map()).collect();
    state.chats = Map::new(chats).map_err(|_| Error::Unexpected)?;
    Ok(state)
}

pub(crate) const NONE: Versions = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
/// How often the account is looked at again when it changes meanwhile.
const ROUNDS: usize = 4;
