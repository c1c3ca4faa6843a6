//! An honest server and its writers, and a device that checks what it is sent. Tests spoil what is sent.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses another part")]

use std::collections::BTreeMap;

use confidant_chat_format::*;
use confidant_seal::{Key, Sealed};

/// What a server has, and the keys that its honest writers have.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) account: AccountId,
    pub(crate) ak: AccountKey,
    pub(crate) ring: Vec<Entry>,
    pub(crate) box_ring: Vec<Entry>,
    pub(crate) box_pub: PublicKey,
    pub(crate) manifests: Log,
    pub(crate) floors: Vec<Sealed>,
    pub(crate) chats: BTreeMap<ChatId, Room>,
    /// The heads that the floors name.
    pub(crate) published: BTreeMap<ChatId, Mark>,
    ids: u8,
}

/// Every write of a head or manifest.
#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) newest: Option<Sealed>,
    pub(crate) steps: Vec<Step>,
    pub(crate) chains: Vec<Digest>,
}

#[derive(Clone, Default)]
pub(crate) struct Room {
    pub(crate) ring: Vec<Entry>,
    pub(crate) heads: Log,
    pub(crate) items: BTreeMap<ItemId, Sealed>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) leaf: Option<MessageId>,
}

/// All that one answer of the server carries.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) ak: AccountKey,
    pub(crate) account: SentAccount,
    pub(crate) chats: BTreeMap<ChatId, (SentChat, BTreeMap<ItemId, Sealed>)>,
}

#[derive(Clone, Default)]
pub(crate) struct Device {
    pub(crate) seen: SeenAccount,
    pub(crate) chats: BTreeMap<ChatId, SeenChat>,
}

impl Log {
    fn chain(&self, live: &Digest) -> Digest {
        let before = self.chains.last().copied().unwrap_or(Digest::ZERO);
        let envelope = self.steps.last().map_or(Digest::ZERO, |step| step.envelope);
        chain(&before, &envelope, live)
    }

    pub(crate) fn rev(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap()
    }

    fn push(&mut self, live: Digest, sealed: Sealed) {
        self.chains.push(self.chain(&live));
        self.steps.push(Step { live, envelope: Digest::of(sealed.as_bytes()) });
        self.newest = Some(sealed);
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { rev: self.rev(), envelope: self.steps.last().unwrap().envelope }
    }

    /// Takes the newest away, as a server can.
    pub(crate) fn pop(&mut self) {
        self.steps.pop();
        self.chains.pop();
    }

    /// What leads from the remembered revision to the newest.
    pub(crate) fn trail(&self, seen: Option<&Mark>) -> Trail {
        match seen {
            Some(mark) if mark.rev <= self.rev() && mark.rev > 0 => {
                let at = mark.rev as usize;
                Trail { chain: self.chains[at - 1], steps: self.steps[at..].to_vec() }
            }
            _ => Trail::NONE,
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let (account, ak) = (AccountId::from_bits(&[1; 16]), AccountKey::first());
        let (uk, letters) = (Key::random(), Key::random());
        let ring = vec![Entry::seal(&ak, &account, RingOf::Account, 1, &uk, 1)];
        let box_ring = vec![Entry::seal(&ak, &account, RingOf::Box, 1, &letters, 1)];
        let box_pub = BoxKey::from_key(&letters).public_key();
        let mut world = Self {
            account,
            ak,
            ring,
            box_ring,
            box_pub,
            manifests: Log::default(),
            floors: vec![],
            chats: BTreeMap::new(),
            published: BTreeMap::new(),
            ids: 0,
        };
        world.publish();
        world
    }

    fn bits(&mut self) -> [u8; 16] {
        self.ids += 1;
        let mut bits = [0x5a; 16];
        bits[0] = self.ids.wrapping_mul(151);
        bits[15] = self.ids;
        bits
    }

    pub(crate) fn uk(&self) -> Ring {
        Ring::open(&self.ak, &self.account, RingOf::Account, &self.ring).unwrap()
    }

    pub(crate) fn ck(&self, chat: &ChatId) -> Ring {
        Ring::open(&self.ak, &self.account, RingOf::Chat(chat), &self.chats[chat].ring).unwrap()
    }

    /// Writes every floor and the manifest.
    pub(crate) fn publish(&mut self) {
        self.publish_under(u32::try_from(self.ring.len()).unwrap());
    }

    /// The same under any key of the ring.
    pub(crate) fn publish_under(&mut self, n: u32) {
        let (uk, rev) = (self.uk(), self.manifests.rev() + 1);
        let held = uk.get(n).unwrap();
        let floor = |shelf| {
            let here = self.chats.iter().filter(|(chat, _)| Shelf::of(chat) == shelf);
            let chats = here.map(|(chat, room)| (chat.clone(), room.heads.mark())).collect();
            let json = Floor { v: 1, chats }.to_json();
            seal_record(held, &self.account, &Place::Floor(shelf), rev, &json)
        };
        self.floors = Shelf::all().map(floor).collect();
        self.published = self.chats.iter().map(|(chat, room)| (chat.clone(), room.heads.mark())).collect();
        let floors: [Digest; 16] = std::array::from_fn(|at| Digest::of(self.floors[at].as_bytes()));
        let live = Manifest::live(&floors);
        let manifest = Manifest {
            v: 1,
            g: self.ak.generation(),
            uk: uk.newest().n(),
            box_n: u32::try_from(self.box_ring.len()).unwrap(),
            box_pub: self.box_pub,
            floors,
            chain: self.manifests.chain(&live),
            at: 7,
            device: DeviceId::from_bits(&[2; 16]),
        };
        let sealed = seal_record(held, &self.account, &Place::Manifest, rev, &manifest.to_json());
        self.manifests.push(live, sealed);
    }

    pub(crate) fn create(&mut self) -> ChatId {
        let chat = ChatId::from_bits(&self.bits());
        let ring = vec![Entry::seal(
            &self.ak,
            &self.account,
            RingOf::Chat(&chat),
            1,
            &Key::random(),
            self.ak.generation(),
        )];
        self.chats.insert(chat.clone(), Room { ring, ..Room::default() });
        self.write(&chat);
        self.publish();
        chat
    }

    pub(crate) fn delete(&mut self, chat: &ChatId) {
        self.chats.remove(chat);
        self.publish();
    }

    /// Appends a key if the newest is of an older generation.
    fn ready(&mut self, chat: &ChatId) {
        if self.ck(chat).writer().is_none() {
            self.append(chat);
        }
    }

    fn append(&mut self, chat: &ChatId) {
        let entry = self.ck(chat).append(&self.ak, &self.account, RingOf::Chat(chat), &Key::random());
        let room = self.chats.get_mut(chat).unwrap();
        check_append(u32::try_from(room.ring.len()).unwrap(), &entry).unwrap();
        room.ring.push(entry);
    }

    pub(crate) fn rotate_chat(&mut self, chat: &ChatId) {
        self.append(chat);
        self.write(chat);
    }

    /// Writes the head of what is there.
    pub(crate) fn write(&mut self, chat: &ChatId) {
        self.ready(chat);
        self.write_under(chat, u32::try_from(self.chats[chat].ring.len()).unwrap());
    }

    /// The same under any key of the ring, whatever generation made it: what a thief can do.
    pub(crate) fn write_under(&mut self, chat: &ChatId, n: u32) {
        let (ring, account) = (self.ck(chat), self.account.clone());
        let (held, newest) = (ring.get(n).unwrap(), ring.newest());
        let room = self.chats.get_mut(chat).unwrap();
        let list: List =
            room.items.iter().map(|(id, sealed)| (id.clone(), Digest::of(sealed.as_bytes()))).collect();
        let live = live(&list);
        let head = Head {
            v: 1,
            key: newest.n(),
            kid: newest.key().kid(),
            count: u32::try_from(list.len()).unwrap(),
            live,
            chain: room.heads.chain(&live),
            leaf: room.leaf.clone(),
            pending: room.pending.clone(),
            at: 7,
            device: DeviceId::from_bits(&[2; 16]),
        };
        let rev = room.heads.rev() + 1;
        let sealed = seal_record(held, &account, &Place::Head(chat), rev, &head.to_json());
        room.heads.push(live, sealed);
    }

    /// Seals an item, one revision above what was there.
    pub(crate) fn put(&mut self, chat: &ChatId, id: &ItemId, json: &[u8]) {
        self.ready(chat);
        let ring = self.ck(chat);
        let room = self.chats.get_mut(chat).unwrap();
        let rev = room.items.get(id).and_then(Sealed::rev).unwrap_or(0) + 1;
        let sealed = seal_record(ring.newest(), &self.account, &Place::Item(chat, id), rev, json);
        room.items.insert(id.clone(), sealed);
    }

    pub(crate) fn say(&mut self, chat: &ChatId, body: &str) -> MessageId {
        let id = MessageId::from_bits(&self.bits());
        let parent = self.chats[chat].leaf.clone();
        self.put(chat, &ItemId::Message(id.clone()), &message(Role::User, parent, body).to_json());
        self.chats.get_mut(chat).unwrap().leaf = Some(id.clone());
        self.write(chat);
        id
    }

    pub(crate) fn edit(&mut self, chat: &ChatId, id: &MessageId, body: &str) {
        self.put(chat, &ItemId::Message(id.clone()), &message(Role::User, None, body).to_json());
        self.write(chat);
    }

    pub(crate) fn title(&mut self, chat: &ChatId, body: &str) {
        let id = ItemId::Field(FieldName::parse("title").unwrap());
        self.put(chat, &id, &Text { v: 1, body: body.to_owned() }.to_json());
        self.write(chat);
    }

    /// Waits for a reply to the newest message.
    pub(crate) fn ask(&mut self, chat: &ChatId) -> Pending {
        let (turn, reply) = (TurnId::from_bits(&self.bits()), MessageId::from_bits(&self.bits()));
        let room = self.chats.get_mut(chat).unwrap();
        let pending = Pending { turn, parent: room.leaf.clone().unwrap(), reply };
        room.pending.push(pending.clone());
        self.write(chat);
        pending
    }

    /// Takes the newest message away.
    pub(crate) fn unsay(&mut self, chat: &ChatId, parent: Option<MessageId>) {
        let room = self.chats.get_mut(chat).unwrap();
        let leaf = std::mem::replace(&mut room.leaf, parent).unwrap();
        room.items.remove(&ItemId::Message(leaf));
        self.write(chat);
    }

    /// A new account key, account ring entry and mailbox key, in one commit.
    pub(crate) fn rotate(&mut self) {
        let (old, new) = (self.ak.clone(), self.ak.next().unwrap());
        let stage = |of: RingOf<'_>, rows: &[Entry]| restage(&old, &new, &self.account, of, rows).unwrap();
        let before = self.digest();
        let (mut ring, mut box_ring) =
            (stage(RingOf::Account, &self.ring), stage(RingOf::Box, &self.box_ring));
        let rooms: Vec<_> = self
            .chats
            .iter()
            .map(|(chat, room)| (chat.clone(), stage(RingOf::Chat(chat), &room.ring)))
            .collect();
        for (chat, rows) in rooms {
            self.chats.get_mut(&chat).unwrap().ring = rows;
        }
        (self.ring, self.box_ring) = (ring.clone(), box_ring.clone());
        check_commit((3, &self.digest()), (3, &before)).unwrap();
        let (uk, letters) = (Key::random(), Key::random());
        let n = |rows: &[Entry]| u32::try_from(rows.len()).unwrap() + 1;
        ring.push(Entry::seal(&new, &self.account, RingOf::Account, n(&ring), &uk, new.generation()));
        box_ring.push(Entry::seal(
            &new,
            &self.account,
            RingOf::Box,
            n(&box_ring),
            &letters,
            new.generation(),
        ));
        (self.ring, self.box_ring, self.ak) = (ring, box_ring, new);
        self.box_pub = BoxKey::from_key(&letters).public_key();
        self.publish();
    }

    pub(crate) fn digest(&self) -> Digest {
        let chats = self
            .chats
            .iter()
            .flat_map(|(chat, room)| room.ring.iter().map(move |row| (RingOf::Chat(chat), row)));
        let account = self.ring.iter().map(|row| (RingOf::Account, row));
        rings_digest(account.chain(self.box_ring.iter().map(|row| (RingOf::Box, row))).chain(chats))
    }

    /// What an honest server sends to a device that remembers this.
    pub(crate) fn send(&self, device: &Device) -> Sent {
        let account = SentAccount {
            ring: self.ring.clone(),
            box_ring: self.box_ring.clone(),
            box_pub: self.box_pub,
            manifest: self.manifests.newest.clone().unwrap(),
            trail: self.manifests.trail(device.seen.manifest.as_ref()),
            floors: self.floors.clone(),
        };
        let chat = |(id, room): (&ChatId, &Room)| {
            let seen = device.chats.get(id).and_then(|seen| seen.head.as_ref()).or(self.published.get(id));
            let sent = SentChat {
                ring: room.ring.clone(),
                head: room.heads.newest.clone().unwrap(),
                trail: room.heads.trail(seen),
                list: room
                    .items
                    .iter()
                    .map(|(id, sealed)| (id.clone(), Digest::of(sealed.as_bytes())))
                    .collect(),
            };
            (id.clone(), (sent, room.items.clone()))
        };
        Sent { ak: self.ak.clone(), account, chats: self.chats.iter().map(chat).collect() }
    }
}

impl Device {
    /// Checks everything; remembers it only if all of it holds.
    pub(crate) fn take(&mut self, sent: &Sent) -> Result<(), Refused> {
        let account = Account::open(&AccountId::from_bits(&[1; 16]), &sent.ak, &sent.account, &self.seen)?;
        account.check_chats(sent.chats.keys())?;
        let mut chats = BTreeMap::new();
        for (id, (sent, items)) in &sent.chats {
            let seen = self.chats.get(id).cloned().unwrap_or_default();
            let chat = Chat::open(&account, id, Some(sent), &seen)?;
            chats.insert(id.clone(), chat.seen(&chat.items(items)?));
        }
        *self = Self { seen: account.seen(), chats };
        Ok(())
    }

    pub(crate) fn sync(&mut self, world: &World) -> Result<(), Refused> {
        self.take(&world.send(self))
    }
}

pub(crate) fn message(role: Role, parent: Option<MessageId>, body: &str) -> Message {
    Message {
        v: 1,
        role,
        parent,
        created_at: 7,
        body: body.to_owned(),
        model: None,
        reason: None,
        refs: vec![],
        proof: None,
        shared: vec![],
    }
}
