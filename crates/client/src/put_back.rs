//! "Send mine again": what this device has, written as new revisions over what the server shows now.
//!
//! ```text
//! mine: rooms, data ────────────┐
//! server, as a device without   ├─▶ what differs ─▶ ordinary writes ─▶ this device has what the server has
//! memory is shown it, checked ──┘        │
//!                                        └─▶ another device was newer: mine becomes a copy
//! ```
//!
//! The person does this after the server's operator restored a backup, or after the server lost everything. A rollback by an
//! attacker looks the same from here, so nothing happens by itself. What the person can lose by it is little:
//!
//! - The server's state has to open under the account key of now. A state of before a rotation is `key-refused`: whoever lost
//!   that key to a thief would otherwise seal for the thief.
//! - What is newer here is written again, with revisions above all that were seen. What went here goes again. What is newer
//!   there stays, and mine is kept as a copy. What only the server has stays.
//!
//! Easy to get wrong: forgetting before it is done. The files keep what was here until all of it is stored, so cut off
//! anywhere it begins anew and finds less to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use confidant_chat_format::{ChatId, Item, ItemId, Message, MessageId, Refused};
use confidant_chat_protocol::{ClientEvent, Envelope, ServerEvent, UpdateDraft};
use confidant_seal::Key;
use zeroize::Zeroizing;

use crate::credential::Credential;
use crate::device::Device;
use crate::error::Error;
use crate::files::{Cabinet, Files};
use crate::plan::{Change, LARGEST, remove, text};
use crate::queue::{LossReason, OperationKind};
use crate::room::{Draft, Room, Slot};
use crate::state::{Piece, State};
use crate::sync::{NONE, Phase, note};
use crate::write::{Built, padded, text_of};

/// What was written again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PutBack {
    /// Chats that the server did not have.
    pub chats: usize,
    /// Messages, fields, attachments, drafts and settings that were written.
    pub written: usize,
    /// Messages and chats that were there again and are gone again.
    pub removed: usize,
    /// What another device was newer with: mine is among [`Device::copies`].
    pub copies: usize,
    /// Attachments that neither the server nor this device has.
    pub missing: usize,
    /// Chats that the server does not show as they should be; what this device has of them is kept.
    pub refused: Vec<ChatId>,
}

/// Words of mine that came too late.
struct Late {
    chat: Option<ChatId>,
    what: OperationKind,
    text: Option<String>,
}

impl Device {
    /// Takes what the server shows now for what there is, and writes what this device has over it, as new revisions. The
    /// person's act, after `rolled-back`, `forked` or [`Device::restore`]; never done by itself.
    pub async fn put_back(&mut self) -> Result<PutBack, Error> {
        self.disconnect();
        let (mut there, mut done, mut late) = (self.stranger()?, PutBack::default(), Vec::new());
        let shown = there.look(&mut done).await?;
        for (chat, mine) in &self.rooms {
            if !done.refused.contains(chat) {
                there.put_chat(mine, &mut done, &mut late).await?;
            }
        }
        for chat in &self.state.gone {
            if !self.rooms.contains_key(chat) {
                there.delete_again(chat, shown.get(chat).copied(), &mut done).await?;
            }
        }
        for piece in &self.state.data {
            there.put_piece_back(piece, &mut done, &mut late).await?;
        }
        there.settle().await?;
        done.copies = late.len();
        self.take_over(there, late)?;
        Ok(done)
    }

    /// The same, after logging in again: the server may have credentials of before a change, whose wraps are older than those
    /// that this device has seen. The account key is never an older one.
    pub async fn put_back_by(&mut self, by: &Credential) -> Result<PutBack, Error> {
        self.state.wraps.clear();
        self.save()?;
        self.log_in_again(by).await?;
        self.put_back().await
    }

    /// This device without its memory and without files.
    fn stranger(&self) -> Result<Self, Error> {
        let files: Arc<dyn Files> = Arc::new(Nowhere);
        let key = Some(Key::random());
        let setup =
            crate::device::Setup { files: Arc::clone(&files), key: key.clone(), ..self.setup.clone() };
        let mut state = State::new(self.state.account.clone(), self.state.device.clone(), &self.ak());
        state.session.clone_from(&self.state.session);
        state.account_rev = self.state.account_rev;
        Ok(Self::with(setup, Cabinet::open(files, key)?, state))
    }

    /// Loads all that the server has. A chat that is refused is named, and the others are taken in; the revisions that the
    /// server claims for those that were refused.
    async fn look(&mut self, done: &mut PutBack) -> Result<BTreeMap<ChatId, u32>, Error> {
        let mut refusal = None;
        note(&mut refusal, self.sync(Phase::All).await.map(drop))?;
        if self.account.is_none() {
            return Err(refusal.unwrap_or(Refused::AccountMissing).into());
        }
        let mut shown = BTreeMap::new();
        for chat in self.listed() {
            if self.rooms.contains_key(&chat) {
                continue;
            }
            let (mut found, _) = self.fetch([(chat.clone(), NONE)].into()).await?;
            let taken = match found.remove(&chat) {
                Some(parts) => {
                    shown.extend(parts.last().map(|part| (chat.clone(), part.versions.messages_v)));
                    self.take_chat(&chat, parts, &mut crate::sync::Synced::default())
                }
                None => Err(Refused::Withheld.into()),
            };
            let mut refusal = None;
            note(&mut refusal, taken)?;
            if refusal.is_some() {
                done.refused.push(chat);
            }
        }
        Ok(shown)
    }

    /// Writes one chat of mine, as far as the server has not got it.
    async fn put_chat(&mut self, mine: &Room, done: &mut PutBack, late: &mut Vec<Late>) -> Result<(), Error> {
        let has_leaf = self.rooms.get(&mine.id).is_none_or(|there| is_further(mine, there));
        let (mut skip, mut most) = (BTreeSet::new(), BATCH);
        loop {
            let there = self.rooms.get(&mine.id);
            let wanted = differences(mine, there, &skip);
            if wanted.is_empty() && there.is_some() {
                break;
            }
            let is_new = there.is_none();
            let change = change_of(mine, there, &wanted, most, has_leaf);
            let count = change.puts.len();
            if self.write_change(&mine.id, &change).await? {
                done.chats += usize::from(is_new);
                done.written += count;
                most = BATCH;
                continue;
            }
            self.refresh_account().await?;
            self.refresh_chat(&mine.id).await?;
            let newest = self.rooms.get(&mine.id).map(|room| room.ring.newest().born());
            match (newest, change.puts.first()) {
                // Deleted by another device, since the server was restored.
                (None, _) if self.was_deleted(&mine.id).await? => return Ok(()),
                (None, _) => return Err(Error::Frozen),
                (Some(born), _) if born != self.generation() => return Err(Error::Frozen),
                _ if most > 1 => most = 1,
                (_, Some((item, _))) => {
                    late.extend(late_item(mine, item));
                    skip.insert(item.clone());
                }
                (_, None) => break,
            }
        }
        self.show_again(mine, has_leaf).await?;
        done.missing += mine.items.iter().filter(|(item, slot)| self.lacks_item(mine, item, slot)).count();
        late.extend(self.newer_there(mine));
        self.remove_again(mine, done).await?;
        self.put_draft_back(mine, done, late).await
    }

    /// Shows the branch that was shown here, if nothing else was written that could say so.
    async fn show_again(&mut self, mine: &Room, has_leaf: bool) -> Result<(), Error> {
        let Some(there) = self.rooms.get(&mine.id) else { return Ok(()) };
        let leaf = mine.head.leaf.clone().filter(|leaf| there.message(leaf).is_some());
        if !has_leaf || leaf.is_none() || leaf == there.head.leaf {
            return Ok(());
        }
        self.write_change(&mine.id, &Change { leaf, ..Change::default() }).await.map(drop)
    }

    /// Whether nobody has this any more.
    fn lacks_item(&self, mine: &Room, item: &ItemId, slot: &Slot) -> bool {
        let there = self.rooms.get(&mine.id).is_some_and(|room| room.items.contains_key(item));
        slot.item.is_none() && !there
    }

    /// What another device wrote other words for, later than mine.
    fn newer_there(&self, mine: &Room) -> Vec<Late> {
        let Some(there) = self.rooms.get(&mine.id) else { return Vec::new() };
        let is_other = |(item, slot): &(&ItemId, &Slot)| {
            let now = there.items.get(*item).and_then(|slot| slot.item.as_ref());
            now.is_some() && slot.item.is_some() && now != slot.item.as_ref()
        };
        mine.items.iter().filter(is_other).filter_map(|(item, _)| late_item(mine, item)).collect()
    }

    /// Stores a change; false if somebody was first.
    async fn write_change(&mut self, chat: &ChatId, change: &Change) -> Result<bool, Error> {
        let Built { write, after, book } = self.scribe()?.write(chat, self.rooms.get(chat), change)?;
        let (seq, event) = self.request_one(ClientEvent::EncryptedChatMetadata(write)).await?;
        let stored = match event {
            ServerEvent::EncryptedMetadataStored(stored) => stored,
            ServerEvent::WriteConflict(_) => return Ok(false),
            _ => return Err(Error::Unexpected),
        };
        if stored.messages_v != after.mark.rev || stored.chat != *chat {
            return Err(Error::Unexpected);
        }
        let mut after = after;
        (after.title_v, after.updated_at) = (stored.title_v, stored.updated_at);
        self.rooms.insert(chat.clone(), after);
        self.take_own_list(book, seq)?;
        Ok(true)
    }

    /// What went here and is there again goes again, one by one: the answers to a message move up.
    async fn remove_again(&mut self, mine: &Room, done: &mut PutBack) -> Result<(), Error> {
        for item in &mine.gone {
            let Some(there) = self.rooms.get(&mine.id) else { return Ok(()) };
            if !there.items.contains_key(item) {
                continue;
            }
            let mut change = Change { leaf: there.head.leaf.clone(), ..Change::default() };
            match item {
                ItemId::Message(id) => remove(&mut change, there, id),
                ItemId::Embed(_) | ItemId::Field(_) => change.removes.push(item.clone()),
            }
            if !change.removes.is_empty() && self.write_change(&mine.id, &change).await? {
                done.removed += 1;
            }
        }
        Ok(())
    }

    /// A chat that went here goes again. Its key may be destroyed already, so that it does not open: it goes all the same.
    async fn delete_again(
        &mut self,
        chat: &ChatId,
        shown: Option<u32>,
        done: &mut PutBack,
    ) -> Result<(), Error> {
        let Some(rev) = self.rooms.get(chat).map(|room| room.mark.rev).or(shown) else { return Ok(()) };
        let (delete, book) = self.scribe()?.delete_chat(chat, rev)?;
        if let (seq, ServerEvent::ChatDeleted(_)) = self.request_one(ClientEvent::DeleteChat(delete)).await? {
            self.rooms.remove(chat);
            self.take_own_list(Some(book), seq)?;
            done.refused.retain(|refused| refused != chat);
            done.removed += 1;
        }
        Ok(())
    }

    async fn put_draft_back(
        &mut self,
        mine: &Room,
        done: &mut PutBack,
        late: &mut Vec<Late>,
    ) -> Result<(), Error> {
        let (Some(room), Some(draft)) = (self.rooms.get(&mine.id), &mine.draft) else { return Ok(()) };
        let copy = || Late {
            chat: Some(mine.id.clone()),
            what: OperationKind::Draft,
            text: Some(draft.body.clone()),
        };
        match &room.draft {
            Some(there) if there.body == draft.body => return Ok(()),
            // Another device typed something, or threw it away, since.
            there if room.draft_v >= mine.draft_v => {
                late.extend(there.is_some().then(copy));
                return Ok(());
            }
            _ => {}
        }
        let expected = room.draft_v;
        let rev = expected.max(mine.draft_v).checked_add(1).ok_or(Error::TooLarge)?;
        let place = confidant_chat_format::Place::Draft(&mine.id);
        let json = padded(text(&draft.body));
        let sealed =
            confidant_chat_format::seal_record(room.ring.newest(), &self.state.account, &place, rev, &json);
        let envelope = Envelope::new(sealed.clone())?;
        let update = UpdateDraft { chat: mine.id.clone(), expected, draft: envelope };
        let (seq, event) = self.request_one(ClientEvent::UpdateDraft(update)).await?;
        if let ServerEvent::ChatDraftUpdated(_) = event {
            if let Some(room) = self.rooms.get_mut(&mine.id) {
                (room.draft_v, room.draft) = (rev, Some(Draft { sealed, body: draft.body.clone() }));
            }
            done.written += 1;
            return self.take_own_list(None, seq);
        }
        late.push(copy());
        Ok(())
    }

    async fn put_piece_back(
        &mut self,
        mine: &Piece,
        done: &mut PutBack,
        late: &mut Vec<Late>,
    ) -> Result<(), Error> {
        let there = self.state.piece(&mine.kind, &mine.name);
        let (expected, body) = there.map_or((0, None), |there| (there.rev, there.body.clone()));
        if body == mine.body {
            return Ok(());
        }
        let copy = || Late {
            chat: None,
            what: OperationKind::Data(mine.kind.clone(), mine.name.clone()),
            text: mine.body.clone(),
        };
        if expected >= mine.rev {
            late.extend(mine.body.is_some().then(copy));
            return Ok(());
        }
        let rev = mine.rev.checked_add(1).ok_or(Error::TooLarge)?;
        let event = self.data_event((&mine.kind, &mine.name), mine.body.as_deref(), expected, rev)?;
        let (seq, event) = self.request_one(event).await?;
        let ServerEvent::DataUpdated(updated) = event else {
            late.extend(mine.body.is_some().then(copy));
            return Ok(());
        };
        self.state.put_piece(Piece { rev: updated.rev, ..mine.clone() });
        self.take_own_list(None, seq)?;
        done.written += 1;
        Ok(())
    }

    /// What the server has is what this device has from now on. Chats first: `state` says that it is done.
    fn take_over(&mut self, there: Self, late: Vec<Late>) -> Result<(), Error> {
        let mut rooms = std::mem::take(&mut self.rooms);
        for (chat, mut room) in there.rooms {
            if let Some(mine) = rooms.remove(&chat) {
                room.gone.extend(mine.gone.into_iter().filter(|item| !room.items.contains_key(item)));
            }
            self.rooms.insert(chat, room);
        }
        let listed = there.account.as_ref().map(|account| account.floors().clone()).unwrap_or_default();
        let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            rooms.into_iter().partition(|(chat, _)| listed.contains_key(chat));
        self.rooms.extend(kept);
        for chat in self.rooms.keys().chain(gone.keys()) {
            self.save_room(chat)?;
        }
        for Late { chat, what, text } in late {
            self.state.queue.keep_copy(chat, what, text, LossReason::Changed);
        }
        let state = there.state;
        (self.state.book, self.state.data, self.account) = (state.book, state.data, there.account);
        (self.state.account_rev, self.state.seq, self.state.older) =
            (state.account_rev, state.seq, state.older);
        self.state.pinned = None;
        self.save()
    }
}

/// Files that nobody keeps.
#[derive(Debug)]
struct Nowhere;

impl Files for Nowhere {
    fn read(&self, _: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    fn write(&self, _: &str, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn remove(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }
}

/// What mine has that the server has not, or has older; a message after the one that it answers.
fn differences(mine: &Room, there: Option<&Room>, skip: &BTreeSet<ItemId>) -> Vec<ItemId> {
    let is_due = |(item, slot): &(&ItemId, &Slot)| {
        let now = there.and_then(|there| there.items.get(*item));
        let is_behind = match now {
            None => true,
            // Attachments are never changed, and a sync leaves them out.
            Some(_) if matches!(item, ItemId::Embed(_)) => false,
            Some(now) => now.hash != slot.hash && now.item != slot.item && now.rev < slot.rev,
        };
        slot.item.is_some() && is_behind && !skip.contains(*item)
    };
    let due: BTreeSet<&ItemId> = mine.items.iter().filter(is_due).map(|(item, _)| item).collect();
    let mut ordered: Vec<ItemId> =
        due.iter().filter(|item| !matches!(item, ItemId::Message(_))).map(|item| (*item).clone()).collect();
    // By how many messages a message answers, one through the other: what is answered comes first.
    let mut messages: Vec<(usize, &ItemId)> = due
        .iter()
        .filter_map(|item| match item {
            ItemId::Message(id) => Some((depth(mine, id), *item)),
            ItemId::Embed(_) | ItemId::Field(_) => None,
        })
        .collect();
    messages.sort_unstable();
    ordered.extend(messages.into_iter().map(|(_, item)| item.clone()));
    ordered
}

/// Whether mine is shown: it was written later, or its branch goes on where the other ends.
fn is_further(mine: &Room, there: &Room) -> bool {
    let next = |id: &MessageId| mine.message(id).and_then(|message| message.parent.clone());
    let mut path = std::iter::successors(mine.head.leaf.clone(), next).take(mine.items.len());
    mine.head.at > there.head.at || path.any(|id| Some(&id) == there.head.leaf.as_ref())
}

/// How many messages lie before this one. A chat that was verified has no circles.
fn depth(room: &Room, id: &MessageId) -> usize {
    let next = |id: &MessageId| room.message(id).and_then(|message| message.parent.clone());
    std::iter::successors(next(id), next).take(room.items.len()).count()
}

/// The next write: so many of what differs, and the branch that was shown here once all of it is there.
fn change_of(mine: &Room, there: Option<&Room>, wanted: &[ItemId], most: usize, has_leaf: bool) -> Change {
    let mut change = Change { leaf: there.and_then(|room| room.head.leaf.clone()), ..Change::default() };
    let mut size = 0;
    for item in wanted {
        let Some(slot) = mine.items.get(item) else { continue };
        let is_there = |parent: &MessageId| {
            let parent = ItemId::Message(parent.clone());
            there.is_some_and(|room| room.items.contains_key(&parent))
                || change.puts.iter().any(|(put, _)| *put == parent)
        };
        let Some(json) = json_of(slot, is_there) else { continue };
        size += json.len();
        if change.puts.len() >= most || (size > LARGEST && !change.puts.is_empty()) {
            break;
        }
        change.seen.insert(item.clone(), slot.rev);
        change.puts.push((item.clone(), json));
    }
    if has_leaf && change.puts.len() == wanted.len() {
        let leaf = mine.head.leaf.as_ref().map(|id| ItemId::Message(id.clone()));
        let is_listed = |leaf: &ItemId| {
            there.is_some_and(|room| room.items.contains_key(leaf))
                || change.puts.iter().any(|(put, _)| put == leaf)
        };
        if leaf.as_ref().is_some_and(is_listed) {
            change.leaf.clone_from(&mine.head.leaf);
        }
    }
    change
}

/// What is sealed again. A message that answers one which is not there becomes a first one.
fn json_of(slot: &Slot, is_there: impl Fn(&MessageId) -> bool) -> Option<Zeroizing<Vec<u8>>> {
    Some(match slot.item.as_ref()? {
        Item::Text(text) => text.to_json(),
        Item::Message(message) => {
            let parent = message.parent.clone().filter(is_there);
            Message { parent, ..message.clone() }.to_json()
        }
    })
}

/// Words of mine, as a copy.
fn late_item(mine: &Room, item: &ItemId) -> Option<Late> {
    let slot = mine.items.get(item)?.item.as_ref()?;
    let (what, words) = match (item, slot) {
        (ItemId::Message(id), Item::Message(message)) => {
            (OperationKind::Edit(id.clone()), Some(message.body.clone()))
        }
        (ItemId::Field(name), slot) => {
            (OperationKind::Field(name.clone()), text_of(Some(slot)).map(ToOwned::to_owned))
        }
        (ItemId::Embed(id), slot) => {
            (OperationKind::Embed(id.clone()), text_of(Some(slot)).map(ToOwned::to_owned))
        }
        (ItemId::Message(_), Item::Text(_)) => return None,
    };
    Some(Late { chat: Some(mine.id.clone()), what, text: words })
}

/// Items in one write.
const BATCH: usize = 100;
