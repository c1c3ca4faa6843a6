//! A device of a person: it seals what it writes, and checks what the store gives with every check of a real client.
//!
//! What it believes changes only by a write that succeeded or by [`Device::pull`].

use std::collections::BTreeMap;

use confidant_chat_format::*;
use confidant_seal::{Key, Sealed, Tag};

use super::super::*;

/// What a device knows, and the keys of its person.
#[derive(Clone)]
pub(crate) struct Device {
    pub(crate) id: AccountId,
    pub(crate) login: Tag,
    pub(crate) ak: AccountKey,
    pub(crate) ring: Vec<Entry>,
    pub(crate) boxes: Vec<Entry>,
    pub(crate) box_pub: PublicKey,
    /// Revision, envelope and chats of each shelf.
    pub(crate) floors: Vec<(u32, Sealed, BTreeMap<ChatId, Mark>)>,
    /// The manifest's mark and chain.
    pub(crate) manifest: Option<(Mark, Digest)>,
    pub(crate) chats: BTreeMap<ChatId, Room>,
    pub(crate) seen: u64,
}

/// A chat as a device knows it.
#[derive(Clone, Default)]
pub(crate) struct Room {
    pub(crate) ring: Vec<Entry>,
    pub(crate) head: Option<(Mark, Digest)>,
    pub(crate) items: BTreeMap<ItemId, Sealed>,
    pub(crate) revs: BTreeMap<ItemId, u32>,
    pub(crate) draft_v: u32,
}

/// What a write does besides its head.
#[derive(Clone, Default)]
pub(crate) struct Edit {
    pub(crate) puts: Vec<ItemId>,
    pub(crate) removes: Vec<ItemId>,
    pub(crate) new_key: bool,
    pub(crate) floor: bool,
    /// How long messages are.
    pub(crate) length: usize,
}

pub(crate) fn tag(name: &str) -> Tag {
    Key::from_bytes([7; 32]).tag("test", name.as_bytes())
}

pub(crate) fn sealed(text: &str) -> Sealed {
    Sealed::from_bytes(text.as_bytes().to_vec())
}

pub(crate) fn message() -> ItemId {
    ItemId::Message(MessageId::random())
}

pub(crate) fn title() -> ItemId {
    ItemId::Field(FieldName::parse("title").unwrap())
}

pub(crate) const NOW: Millis = Millis(1_800_000_000_000);

impl Device {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_id(name, AccountId::random())
    }

    /// A person whose account will have this id.
    pub(crate) fn with_id(name: &str, id: AccountId) -> Self {
        let ak = AccountKey::first();
        let (uk, letters) = (Key::random(), Key::random());
        Self {
            login: tag(name),
            ring: vec![Entry::seal(&ak, &id, RingOf::Account, 1, &uk, 1)],
            boxes: vec![Entry::seal(&ak, &id, RingOf::Box, 1, &letters, 1)],
            box_pub: BoxKey::from_key(&letters).public_key(),
            floors: vec![(0, sealed(""), BTreeMap::new()); 16],
            manifest: None,
            chats: BTreeMap::new(),
            seen: 0,
            id,
            ak,
        }
    }

    /// A new person with an account.
    pub(crate) async fn register(store: &dyn ChatStore, name: &str) -> Self {
        let mut device = Self::new(name);
        let (new, after) = device.registration();
        store.register(new).await.unwrap();
        device = after;
        device.seen = 1;
        device
    }

    pub(crate) fn registration(&self) -> (NewAccount, Self) {
        let mut after = self.clone();
        let list = after.list(Shelf::all().collect());
        let new = NewAccount {
            account: self.id.clone(),
            login: self.login,
            credentials: vec![],
            record: sealed("record"),
            rings: [
                RingEntry { of: RingName::Account, entry: self.ring[0].clone() },
                RingEntry { of: RingName::Box, entry: self.boxes[0].clone() },
            ],
            floors: list.floors.into_iter().map(|floor| floor.envelope).collect(),
            manifest: list.manifest,
            pass: Pass::Open,
            now: NOW,
        };
        (new, after)
    }

    /// Floors of these shelves and the manifest, as of the heads that this device knows.
    pub(crate) fn list(&mut self, shelves: Vec<Shelf>) -> ListPut {
        let uk = Ring::open(&self.ak, &self.id, RingOf::Account, &self.ring).unwrap();
        let mut floors = Vec::new();
        for shelf in shelves {
            let here =
                self.chats.iter().filter(|(chat, room)| Shelf::of(chat) == shelf && room.head.is_some());
            let chats: BTreeMap<_, _> =
                here.map(|(chat, room)| (chat.clone(), room.head.unwrap().0)).collect();
            let expected = self.floors[shelf.index()].0;
            let json = Floor { v: 1, chats: chats.clone() }.to_json();
            let envelope = seal_record(uk.newest(), &self.id, &Place::Floor(shelf), expected + 1, &json);
            self.floors[shelf.index()] = (expected + 1, envelope.clone(), chats);
            floors.push(FloorPut { shelf, expected, envelope });
        }
        let hashes: [Digest; 16] = std::array::from_fn(|at| Digest::of(self.floors[at].1.as_bytes()));
        let live = Manifest::live(&hashes);
        let (before, chain_before) =
            self.manifest.unwrap_or((Mark { rev: 0, envelope: Digest::ZERO }, Digest::ZERO));
        let chain = chain(&chain_before, &before.envelope, &live);
        let manifest = Manifest {
            v: 1,
            g: self.ak.generation(),
            uk: uk.newest().n(),
            box_n: u32::try_from(self.boxes.len()).unwrap(),
            box_pub: self.box_pub,
            floors: hashes,
            chain,
            at: 7,
            device: DeviceId::from_bits(&[2; 16]),
        };
        let rev = before.rev + 1;
        let envelope = seal_record(uk.newest(), &self.id, &Place::Manifest, rev, &manifest.to_json());
        self.manifest = Some((Mark { rev, envelope: Digest::of(envelope.as_bytes()) }, chain));
        ListPut { floors, manifest: ManifestPut { expected: before.rev, envelope, live, chain } }
    }

    /// The mailbox has a new key.
    pub(crate) fn set_box(&mut self, letters: &Key) {
        self.box_pub = BoxKey::from_key(letters).public_key();
    }

    /// A write, and what the device knows once it has succeeded. An unknown chat is created.
    pub(crate) fn write(&self, chat: &ChatId, edit: &Edit) -> (Write, Self) {
        let mut after = self.clone();
        let room = after.chats.entry(chat.clone()).or_default();
        let mut append = None;
        let of = RingOf::Chat(chat);
        if room.ring.is_empty() {
            append = Some(Entry::seal(&self.ak, &self.id, of, 1, &Key::random(), self.ak.generation()));
        } else {
            let ring = Ring::open(&self.ak, &self.id, of, &room.ring).unwrap();
            if edit.new_key || ring.writer().is_none() {
                append = Some(ring.append(&self.ak, &self.id, of, &Key::random()));
            }
        }
        room.ring.extend(append.clone());
        let ring = Ring::open(&self.ak, &self.id, of, &room.ring).unwrap();
        let held = ring.newest();
        let mut puts = Vec::new();
        for item in &edit.puts {
            let expected = room.revs.get(item).copied().unwrap_or(0);
            let json = body(item, edit.length);
            let envelope = seal_record(held, &self.id, &Place::Item(chat, item), expected + 1, &json);
            room.items.insert(item.clone(), envelope.clone());
            room.revs.insert(item.clone(), expected + 1);
            puts.push(Put { item: item.clone(), expected, envelope });
        }
        for item in &edit.removes {
            room.items.remove(item);
            room.revs.remove(item);
        }
        let list: List =
            room.items.iter().map(|(id, sealed)| (id.clone(), Digest::of(sealed.as_bytes()))).collect();
        let live = live(&list);
        let (before, chain_before) =
            room.head.unwrap_or((Mark { rev: 0, envelope: Digest::ZERO }, Digest::ZERO));
        let head = Head {
            v: 1,
            key: held.n(),
            kid: held.key().kid(),
            count: u32::try_from(list.len()).unwrap(),
            live,
            chain: chain(&chain_before, &before.envelope, &live),
            leaf: None,
            pending: vec![],
            at: 7,
            device: DeviceId::from_bits(&[2; 16]),
        };
        let rev = before.rev + 1;
        let envelope = seal_record(held, &self.id, &Place::Head(chat), rev, &head.to_json());
        room.head = Some((Mark { rev, envelope: Digest::of(envelope.as_bytes()) }, head.chain));
        let list = (before.rev == 0 || edit.floor).then(|| after.list(vec![Shelf::of(chat)]));
        let write = Write {
            account: self.id.clone(),
            chat: chat.clone(),
            expected: before.rev,
            append,
            head: envelope,
            live,
            chain: head.chain,
            puts,
            removes: edit.removes.clone(),
            list,
            now: NOW,
        };
        (write, after)
    }

    /// Writes and takes over what was written.
    pub(crate) async fn put(&mut self, store: &dyn ChatStore, chat: &ChatId, edit: &Edit) -> Result<Written> {
        let (write, after) = self.write(chat, edit);
        let written = store.write(write).await?;
        *self = after;
        Ok(written)
    }

    /// A new chat with this many messages.
    pub(crate) async fn create(&mut self, store: &dyn ChatStore, messages: usize) -> ChatId {
        let chat = ChatId::random();
        let puts = (0..messages).map(|_| message()).collect();
        self.put(store, &chat, &Edit { puts, ..Edit::default() }).await.unwrap();
        chat
    }

    /// The deletion of a chat, and what the device knows afterwards.
    pub(crate) fn deletion(&self, chat: &ChatId) -> (DeleteChat, Self) {
        let mut after = self.clone();
        let expected = after.chats.remove(chat).unwrap().head.unwrap().0.rev;
        let list = after.list(vec![Shelf::of(chat)]);
        (DeleteChat { account: self.id.clone(), chat: chat.clone(), expected, list, now: NOW }, after)
    }

    /// An envelope that the chat's newest key seals, for anything but its list.
    pub(crate) fn seal(&self, chat: &ChatId, place: &Place<'_>, rev: u32, json: &[u8]) -> Sealed {
        let ring = Ring::open(&self.ak, &self.id, RingOf::Chat(chat), &self.chats[chat].ring).unwrap();
        seal_record(ring.newest(), &self.id, place, rev, json)
    }

    /// An envelope of account data.
    pub(crate) fn seal_data(&self, kind: &FieldName, name: &FieldName, rev: u32) -> Sealed {
        let ring = Ring::open(&self.ak, &self.id, RingOf::Account, &self.ring).unwrap();
        let json = Text { v: 1, body: "data".to_owned() }.to_json();
        seal_record(ring.newest(), &self.id, &Place::Data(kind, name), rev, &json)
    }

    /// Loads what changed, as a device does, with every check of the format. Panics if anything is refused.
    pub(crate) async fn pull(&mut self, store: &dyn ChatStore) {
        let row = store.account(&self.id).await.unwrap();
        assert_eq!(row.generation, self.ak.generation());
        let seen = self.manifest.map(|(mark, _)| mark);
        let floors = std::array::from_fn(|at| self.floors[at].0);
        let have = HaveList { floors, trail_from: seen.map_or(0, |mark| mark.rev) };
        let list = store.list(&self.id, have).await.unwrap();
        for floor in list.floors {
            self.floors[floor.shelf.index()] = (floor.rev, floor.envelope, BTreeMap::new());
        }
        (self.ring, self.boxes) = (list.ring, list.box_ring);
        let sent = SentAccount {
            ring: self.ring.clone(),
            box_ring: self.boxes.clone(),
            box_pub: self.box_pub,
            manifest: list.manifest.envelope.clone(),
            trail: list.trail,
            floors: self.floors.iter().map(|(_, floor, _)| floor.clone()).collect(),
        };
        let seen = SeenAccount { generation: self.ak.generation(), manifest: seen };
        let account = Account::open(&self.id, &self.ak, &sent, &seen).expect("what the store has is refused");
        let uk = Ring::open(&self.ak, &self.id, RingOf::Account, &self.ring).unwrap();
        for (shelf, floor) in Shelf::all().zip(&mut self.floors) {
            let opened = open_record(&uk, &self.id, &Place::Floor(shelf), &floor.1).unwrap();
            floor.2 = Floor::from_json(shelf, &opened.json).unwrap().chats;
        }
        let hash = Digest::of(list.manifest.envelope.as_bytes());
        self.manifest = Some((Mark { rev: list.manifest.rev, envelope: hash }, list.manifest.chain));
        let floors: BTreeMap<ChatId, Mark> = self.floors.iter().flat_map(|floor| floor.2.clone()).collect();
        self.chats.retain(|chat, _| floors.contains_key(chat));
        for (chat, floor) in &floors {
            self.pull_chat(store, &account, chat, floor).await;
        }
        account.check_chats(self.chats.keys()).unwrap();
    }

    async fn pull_chat(&mut self, store: &dyn ChatStore, account: &Account, id: &ChatId, floor: &Mark) {
        let mut room = self.chats.remove(id).unwrap_or_default();
        let have = Have {
            messages_v: room.head.map_or(0, |(mark, _)| mark.rev),
            draft_v: room.draft_v,
            trail_from: room.head.map_or(floor.rev, |(mark, _)| mark.rev),
        };
        let delta = store.chat(&self.id, id, have).await.unwrap();
        for gone in &delta.gone {
            room.items.remove(&gone.item);
            room.revs.remove(&gone.item);
        }
        let ids: Vec<ItemId> = delta.changed.iter().map(|line| line.item.clone()).collect();
        let rows = store.items(&self.id, id, ids, usize::MAX).await.unwrap();
        assert_eq!(rows.len(), delta.changed.len());
        for (row, line) in rows.into_iter().zip(&delta.changed) {
            assert_eq!(
                (&row.item, row.rev, Digest::of(row.envelope.as_bytes())),
                (&line.item, line.rev, line.hash)
            );
            assert_eq!(row.envelope.as_bytes().len(), line.bytes as usize);
            room.items.insert(row.item, row.envelope);
        }
        let sent = SentChat {
            ring: delta.ring.clone(),
            head: delta.chat.head.clone(),
            trail: delta.trail,
            list: room.items.iter().map(|(id, sealed)| (id.clone(), Digest::of(sealed.as_bytes()))).collect(),
        };
        let head = room.head.map(|(mark, _)| mark);
        let seen = SeenChat { head, key: None, revs: room.revs.clone() };
        let chat = Chat::open(account, id, Some(&sent), &seen).expect("a chat of the store is refused");
        let items = chat.items(&room.items).expect("an item of the store is refused");
        assert_eq!(delta.chat.count as usize, items.len());
        assert_eq!(delta.chat.messages_v, chat.mark().rev);
        room.revs = chat.seen(&items).revs;
        room.ring = delta.ring;
        room.head = Some((chat.mark(), chat.head().chain));
        room.draft_v = delta.chat.draft_v;
        self.chats.insert(id.clone(), room);
    }
}

fn body(item: &ItemId, length: usize) -> Vec<u8> {
    match item {
        ItemId::Message(_) => Message {
            v: 1,
            role: Role::User,
            parent: None,
            created_at: 7,
            body: format!("hello{}", "o".repeat(length)),
            model: None,
            reason: None,
            refs: vec![],
            proof: None,
            shared: vec![],
        }
        .to_json()
        .to_vec(),
        _ => Text { v: 1, body: format!("text{}", "t".repeat(length)) }.to_json().to_vec(),
    }
}
