//! A chat on this device: what was verified last, and how the next state is taken in.
//!
//! ```text
//! ChatSent parts, or one live event ─▶ Delta ─┐
//! Room, as it was verified last ──────────────┼─▶ ring, head, trail, list, items ─▶ Room, or a refusal and the old one stays
//! Account: floors ────────────────────────────┘   (chats-crypto 7, by chat-format)
//! ```
//!
//! Easy to get wrong: a device without memory of a chat whose head is ahead of its floor. The server has to show how the
//! head follows from the floor, so it is asked again from there ([`Want::Trail`]).

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{
    Account, AccountId, AccountKey, Chat, ChatId, Digest, Entry, FieldName, Head, Item, ItemId, Mark,
    Message, MessageId, Place, Refused, Ring, RingOf, SeenChat, SentChat, Text, Trail, check_roots,
    open_record,
};
use confidant_chat_protocol::{ChatSent, ChatUpdated, ItemSent, MessageDeleted, Versions};
use confidant_display::debug_without_content;
use confidant_seal::Sealed;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::state::{Bin, Keys};

/// An item of a chat.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) hash: Digest,
    pub(crate) rev: u32,
    /// Left out for an embed that nobody asked for yet.
    pub(crate) sealed: Option<Sealed>,
    pub(crate) item: Option<Item>,
}

debug_without_content!(Slot { rev });

/// What was typed and not sent.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) sealed: Sealed,
    pub(crate) body: String,
}

debug_without_content!(Draft);

/// A chat that passed every check.
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) id: ChatId,
    pub(crate) keys: Keys,
    pub(crate) ring: Ring,
    pub(crate) head: Head,
    pub(crate) mark: Mark,
    pub(crate) sealed_head: Sealed,
    pub(crate) items: BTreeMap<ItemId, Slot>,
    /// Items that this device saw go: they go again, if the person sends what was here to a server that has an older state.
    pub(crate) gone: BTreeSet<ItemId>,
    pub(crate) title_v: u32,
    pub(crate) draft_v: u32,
    pub(crate) draft: Option<Draft>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
}

debug_without_content!(Room { mark, items: items.len() });

/// What is new about a chat.
pub(crate) struct Delta {
    whole: bool,
    ring: Vec<Entry>,
    head: Sealed,
    trail: Option<Trail>,
    items: Vec<ItemSent>,
    removed: Vec<ItemId>,
    title_v: Option<u32>,
    draft: Option<(u32, Option<Sealed>)>,
    created_at: Option<u64>,
    updated_at: Option<u64>,
}

/// Why a delta was not taken in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// It is refused.
    Refused(Refused),
    /// Ask again, from this revision on.
    Trail(u32),
    /// Ask again, for items that were left out of a live event.
    Items,
}

impl From<Refused> for Want {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Delta {
    /// From the parts of one chat, in order. A chat whose last part did not come is `withheld`.
    pub(crate) fn join(parts: Vec<ChatSent>) -> Result<Self, Refused> {
        let mut joined: Option<Self> = None;
        let mut more = true;
        for part in parts {
            more = part.more;
            let trail = part.trail.map(Trail::from);
            let versions = part.versions;
            let this = joined.get_or_insert_with(|| Self {
                whole: part.whole,
                ring: Vec::new(),
                head: part.head.sealed().clone(),
                trail: None,
                items: Vec::new(),
                removed: Vec::new(),
                title_v: Some(versions.title_v),
                draft: None,
                created_at: Some(part.created_at),
                updated_at: Some(part.updated_at),
            });
            this.ring = part.ring.into_vec().into_iter().map(Entry::from).collect();
            this.head = part.head.into_sealed();
            this.items.extend(part.items.into_vec());
            this.removed.extend(part.removed.into_vec().into_iter().map(|gone| gone.item));
            let draft = part.draft.map(|draft| draft.into_sealed());
            // A part that was asked for from this draft on does not repeat it.
            match &this.draft {
                Some((draft_v, Some(_))) if *draft_v == versions.draft_v && draft.is_none() => {}
                _ => this.draft = Some((versions.draft_v, draft)),
            }
            if let Some(sent) = trail {
                let trail = this.trail.get_or_insert(Trail { chain: sent.chain, steps: Vec::new() });
                trail.steps.extend(sent.steps);
            }
        }
        joined.filter(|_| !more).ok_or(Refused::Withheld)
    }

    /// From a live event about a chat that this device has at the revision before.
    pub(crate) fn updated(room: &Room, rows: Vec<Entry>, update: ChatUpdated) -> Self {
        let removed = update.removed.into_vec();
        Self {
            items: update.items.into_vec(),
            title_v: Some(update.title_v),
            updated_at: Some(update.updated_at),
            ..Self::step(room, rows, update.ring.map(Entry::from), update.head, removed)
        }
    }

    /// From a live event about a message that was deleted.
    pub(crate) fn deleted(room: &Room, rows: Vec<Entry>, event: MessageDeleted) -> Self {
        let mut removed: Vec<ItemId> = event.embeds.into_vec().into_iter().map(ItemId::Embed).collect();
        removed.push(ItemId::Message(event.message));
        Self::step(room, rows, event.ring.map(Entry::from), event.head, removed)
    }

    fn step(
        room: &Room,
        mut ring: Vec<Entry>,
        append: Option<Entry>,
        head: confidant_chat_protocol::HeadPut,
        removed: Vec<ItemId>,
    ) -> Self {
        ring.extend(append);
        let envelope = Digest::of(head.envelope.sealed().as_bytes());
        let step = confidant_chat_format::Step { live: head.live, envelope };
        Self {
            whole: false,
            ring,
            head: head.envelope.into_sealed(),
            trail: Some(Trail { chain: room.head.chain, steps: vec![step] }),
            items: Vec::new(),
            removed,
            title_v: None,
            draft: None,
            created_at: None,
            updated_at: None,
        }
    }
}

impl Room {
    /// Takes in what the server sent about a chat, with every check. Also says which heads lie between the one that was
    /// remembered and this one.
    pub(crate) fn receive(
        before: Option<&Self>,
        account: &Account,
        id: &ChatId,
        mut delta: Delta,
    ) -> Result<(Self, Vec<Mark>), Want> {
        let floor = *account.floors().get(id).ok_or(Refused::ListRefused)?;
        let rev = delta.head.rev().ok_or(Refused::RecordRefused)?;
        if before.is_none() && delta.trail.is_none() && rev > floor.rev {
            return Err(Want::Trail(floor.rev));
        }
        let from = before.map_or(floor.rev, |room| room.mark.rev);
        let slots = merged(before.filter(|_| !delta.whole), &mut delta);
        let gone = gone(before, &delta, &slots);
        let trail = delta.trail.unwrap_or(Trail::NONE);
        let steps = (from.saturating_add(1)..)
            .zip(&trail.steps)
            .map(|(rev, step)| Mark { rev, envelope: step.envelope })
            .collect();
        let sent = SentChat {
            ring: delta.ring,
            head: delta.head.clone(),
            trail,
            list: slots.iter().map(|(item, slot)| (item.clone(), slot.hash)).collect(),
        };
        let seen = before.map(Self::seen).unwrap_or_default();
        let chat = Chat::open(account, id, Some(&sent), &seen)?;
        let items = open_items(&chat, slots, before)?;
        let mut room = Self {
            id: id.clone(),
            keys: Keys::of(chat.ring()),
            ring: chat.ring().clone(),
            head: chat.head().clone(),
            mark: chat.mark(),
            sealed_head: delta.head,
            items,
            gone,
            title_v: delta.title_v.or(before.map(|room| room.title_v)).unwrap_or(0),
            draft_v: before.map_or(0, |room| room.draft_v),
            draft: before.and_then(|room| room.draft.clone()),
            created_at: delta.created_at.or(before.map(|room| room.created_at)).unwrap_or(0),
            updated_at: delta.updated_at.or(before.map(|room| room.updated_at)).unwrap_or(0),
        };
        if let Some((draft_v, draft)) = delta.draft {
            room.take_draft(account.id(), draft_v, draft)?;
        }
        Ok((room, steps))
    }

    /// Takes in a draft. Older than one that was seen: `rolled-back`; does not open, or has another revision:
    /// `record-refused`.
    pub(crate) fn take_draft(
        &mut self,
        account: &AccountId,
        draft_v: u32,
        draft: Option<Sealed>,
    ) -> Result<(), Refused> {
        if draft_v < self.draft_v {
            return Err(Refused::RolledBack);
        }
        if draft_v == self.draft_v {
            return Ok(());
        }
        self.draft = match draft {
            Some(sealed) => {
                let opened = open_record(&self.ring, account, &Place::Draft(&self.id), &sealed)?;
                if opened.rev != draft_v {
                    return Err(Refused::RecordRefused);
                }
                let body = Text::from_json(&opened.json)?.body;
                Some(Draft { sealed, body })
            }
            None => None,
        };
        self.draft_v = draft_v;
        Ok(())
    }

    /// What to compare the next state with.
    fn seen(&self) -> SeenChat {
        let newest = self.ring.newest();
        let opened = self.items.iter().filter(|(_, slot)| slot.rev > 0);
        SeenChat {
            head: Some(self.mark),
            key: Some((newest.n(), newest.key().kid())),
            revs: opened.map(|(item, slot)| (item.clone(), slot.rev)).collect(),
        }
    }

    pub(crate) fn versions(&self) -> Versions {
        Versions { messages_v: self.mark.rev, title_v: self.title_v, draft_v: self.draft_v }
    }

    pub(crate) fn message(&self, id: &MessageId) -> Option<&Message> {
        match self.items.get(&ItemId::Message(id.clone()))?.item.as_ref()? {
            Item::Message(message) => Some(message),
            Item::Text(_) => None,
        }
    }

    /// The revision of a message.
    pub(crate) fn rev(&self, id: &MessageId) -> Option<u32> {
        self.items.get(&ItemId::Message(id.clone())).map(|slot| slot.rev)
    }

    /// Whether a message is not there, and was not there before.
    pub(crate) fn is_new(&self, id: &MessageId) -> bool {
        let item = ItemId::Message(id.clone());
        !self.items.contains_key(&item) && !self.gone.contains(&item)
    }

    pub(crate) fn field(&self, name: &FieldName) -> Option<&str> {
        match self.items.get(&ItemId::Field(name.clone()))?.item.as_ref()? {
            Item::Text(text) => Some(&text.body),
            Item::Message(_) => None,
        }
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = (&MessageId, u32, &Message)> {
        self.items.iter().filter_map(|(id, slot)| match (id, &slot.item) {
            (ItemId::Message(id), Some(Item::Message(message))) => Some((id, slot.rev, message)),
            _ => None,
        })
    }

    /// The rows of its ring, as the server has them.
    pub(crate) fn rows(&self, ak: &AccountKey, account: &AccountId) -> Vec<Entry> {
        self.keys.rows(ak, account, RingOf::Chat(&self.id))
    }
}

/// The list after a delta.
fn merged(before: Option<&Room>, delta: &mut Delta) -> BTreeMap<ItemId, Slot> {
    let mut slots = before.map(|room| room.items.clone()).unwrap_or_default();
    for ItemSent { item, hash, envelope, .. } in std::mem::take(&mut delta.items) {
        let sealed = envelope.map(|envelope| envelope.into_sealed());
        let same = slots.get(&item).is_some_and(|slot| slot.hash == hash && slot.sealed.is_some());
        if !same || sealed.is_some() {
            slots.insert(item, Slot { hash, rev: 0, sealed, item: None });
        }
    }
    // Last, since an id is never used again: what was removed is not there, whichever part said so.
    for gone in &delta.removed {
        slots.remove(gone);
    }
    slots
}

/// What was here and is not any more, of late.
fn gone(before: Option<&Room>, delta: &Delta, slots: &BTreeMap<ItemId, Slot>) -> BTreeSet<ItemId> {
    let known = before.map(|room| room.gone.iter().chain(room.items.keys())).into_iter().flatten();
    let all = known.chain(&delta.removed).filter(|item| !slots.contains_key(item));
    let mut gone: BTreeSet<ItemId> = all.cloned().collect();
    while gone.len() > MAX_GONE {
        gone.pop_first();
    }
    gone
}

/// Items that went, remembered per chat.
const MAX_GONE: usize = 5_000;

/// Opens what is new, and checks what stays.
fn open_items(
    chat: &Chat,
    mut slots: BTreeMap<ItemId, Slot>,
    before: Option<&Room>,
) -> Result<BTreeMap<ItemId, Slot>, Want> {
    for (id, slot) in &mut slots {
        if slot.item.is_some() {
            check_parent(chat, slot)?;
            continue;
        }
        let known = before.and_then(|room| room.items.get(id)).filter(|known| known.hash == slot.hash);
        match (&slot.sealed, id) {
            (Some(sealed), _) => {
                let (rev, item) = chat.item(id, sealed)?;
                (slot.rev, slot.item) = (rev, Some(item));
            }
            (None, ItemId::Embed(_)) => *slot = known.cloned().unwrap_or_else(|| slot.clone()),
            (None, _) => match known {
                Some(known) => {
                    *slot = known.clone();
                    check_parent(chat, slot)?;
                }
                None => return Err(Want::Items),
            },
        }
    }
    check_roots(slots.keys(), |id| {
        match slots.get(&ItemId::Message(id.clone())).and_then(|slot| slot.item.as_ref()) {
            Some(Item::Message(message)) => message.parent.clone(),
            _ => None,
        }
    })?;
    Ok(slots)
}

fn check_parent(chat: &Chat, slot: &Slot) -> Result<(), Refused> {
    match &slot.item {
        Some(Item::Message(Message { parent: Some(parent), .. }))
            if !chat.list().contains_key(&ItemId::Message(parent.clone())) =>
        {
            Err(Refused::ParentMissing)
        }
        _ => Ok(()),
    }
}

/// A chat, as its file has it.
#[derive(Serialize, Deserialize)]
struct RoomFile {
    v: u32,
    keys: Keys,
    head: Bin,
    items: Vec<(String, Digest, Option<Bin>)>,
    title_v: u32,
    draft_v: u32,
    draft: Option<Bin>,
    created_at: u64,
    updated_at: u64,
    #[serde(default)]
    gone: Vec<String>,
}

impl Room {
    pub(crate) fn to_json(&self) -> Zeroizing<Vec<u8>> {
        let item =
            |(id, slot): (&ItemId, &Slot)| (id.to_string(), slot.hash, slot.sealed.as_ref().map(Bin::of));
        let file = RoomFile {
            v: 1,
            keys: self.keys.clone(),
            head: Bin::of(&self.sealed_head),
            items: self.items.iter().map(item).collect(),
            title_v: self.title_v,
            draft_v: self.draft_v,
            draft: self.draft.as_ref().map(|draft| Bin::of(&draft.sealed)),
            created_at: self.created_at,
            updated_at: self.updated_at,
            gone: self.gone.iter().map(ToString::to_string).collect(),
        };
        Zeroizing::new(serde_json::to_vec(&file).unwrap_or_default())
    }

    /// Opens a chat from its file: it was verified before it was written, and the file is sealed.
    pub(crate) fn from_json(
        id: &ChatId,
        account: &AccountId,
        ak: &AccountKey,
        json: &[u8],
    ) -> Result<Self, Refused> {
        let file: RoomFile = serde_json::from_slice(json).map_err(|_| Refused::RecordRefused)?;
        let ring = file.keys.ring(ak, account, RingOf::Chat(id))?;
        let sealed_head = file.head.sealed();
        let opened = open_record(&ring, account, &Place::Head(id), &sealed_head)?;
        let mark = Mark { rev: opened.rev, envelope: Digest::of(&file.head.0) };
        let head = Head::from_json(&opened.json)?;
        let mut items = BTreeMap::new();
        for (text, hash, sealed) in file.items {
            let item = ItemId::parse(&text)?;
            let mut slot = Slot { hash, rev: 0, sealed: sealed.map(|sealed| sealed.sealed()), item: None };
            if let Some(sealed) = &slot.sealed {
                let opened = open_record(&ring, account, &Place::Item(id, &item), sealed)?;
                (slot.rev, slot.item) = (opened.rev, Some(item_of(&item, &opened.json)?));
            }
            items.insert(item, slot);
        }
        let draft = match file.draft.map(|draft| draft.sealed()) {
            Some(sealed) => {
                let opened = open_record(&ring, account, &Place::Draft(id), &sealed)?;
                let body = Text::from_json(&opened.json)?.body;
                Some(Draft { sealed, body })
            }
            None => None,
        };
        Ok(Self {
            id: id.clone(),
            keys: file.keys,
            ring,
            head,
            mark,
            sealed_head,
            items,
            gone: file.gone.iter().map(|text| ItemId::parse(text)).collect::<Result<_, _>>()?,
            title_v: file.title_v,
            draft_v: file.draft_v,
            draft,
            created_at: file.created_at,
            updated_at: file.updated_at,
        })
    }
}

pub(crate) fn item_of(id: &ItemId, json: &[u8]) -> Result<Item, Refused> {
    Ok(match id {
        ItemId::Message(_) => Item::Message(Message::from_json(json)?),
        ItemId::Embed(_) | ItemId::Field(_) => Item::Text(Text::from_json(json)?),
    })
}
