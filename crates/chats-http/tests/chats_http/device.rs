//! A person with a device: seals what a client seals, so that the server takes it.

use std::collections::BTreeMap;

use confidant_chat_format::{
    AccountId, AccountKey, BoxKey, ChatId, CredentialId, DeviceId, Digest, Entry, Floor, Head, ItemId, Login,
    Manifest, Mark, Message, MessageId, Origin, Place, PublicKey, Ring, RingOf, Role, Root, Shelf, Wrap,
    chain, live, seal_record,
};
use confidant_chat_protocol::{
    Bytes, CredentialKind, EncryptedChatMetadata, Envelope, FirstManifest, FloorPut, HeadPut, KeyEntry, List,
    ManifestPut, NewCredential, Put, Register, RegisterOffer, Signed, SignerName,
};
use confidant_seal::{Key, Sealed};

/// A person with a password, on one device.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) id: AccountId,
    pub(crate) login: Login,
    pub(crate) root: Root,
    pub(crate) here: DeviceId,
    ak: AccountKey,
    ring: Vec<Entry>,
    boxes: Vec<Entry>,
    box_pub: PublicKey,
    floors: Vec<(u32, Sealed)>,
    manifest: (Mark, Digest),
    chats: BTreeMap<ChatId, Room>,
}

#[derive(Clone)]
struct Room {
    ring: Vec<Entry>,
    head: (Mark, Digest),
    items: BTreeMap<ItemId, Digest>,
}

const NOTHING: (Mark, Digest) = (Mark { rev: 0, envelope: Digest::ZERO }, Digest::ZERO);

impl Person {
    /// Somebody who has been offered an account, and what she sends to take it.
    pub(crate) fn new(login: &Login, offer: RegisterOffer, origin: &Origin) -> (Self, Signed) {
        let (ak, id) = (AccountKey::first(), offer.account);
        let (uk, letters) = (Key::random(), Key::random());
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).unwrap();
        let mut person = Self {
            login: login.clone(),
            root: Root::from_prf(secret),
            here: DeviceId::random(),
            ring: vec![Entry::seal(&ak, &id, RingOf::Account, 1, &uk, 1)],
            boxes: vec![Entry::seal(&ak, &id, RingOf::Box, 1, &letters, 1)],
            box_pub: BoxKey::from_key(&letters).public_key(),
            floors: vec![(0, Sealed::from_bytes(Vec::new())); 16],
            manifest: NOTHING,
            chats: BTreeMap::new(),
            id,
            ak,
        };
        let (floors, manifest) = person.list(Shelf::all().collect());
        let wrap = person.ak.wrap(&person.root.kek(), &person.id, Wrap::Password, 1);
        let credential = NewCredential {
            kind: CredentialKind::Password,
            id: None::<CredentialId>,
            public_key: Bytes(person.root.public_key()),
            wrap: Envelope::new(wrap).unwrap(),
        };
        let first = |floor: FloorPut| Envelope::new(floor.envelope.into_sealed()).unwrap();
        let request = Register {
            account: person.id.clone(),
            login: login.clone(),
            credentials: List::new(vec![credential]).unwrap(),
            ring: KeyEntry::try_from(person.ring[0].clone()).unwrap(),
            mailbox: KeyEntry::try_from(person.boxes[0].clone()).unwrap(),
            box_pub: person.box_pub,
            first: FirstManifest {
                floors: List::new(floors.into_iter().map(first).collect()).unwrap(),
                manifest: manifest.head,
            },
            device: person.here.clone(),
        };
        let signed = Signed::sign(&request, &person.root, origin, person.signer(), offer.challenge).unwrap();
        (person, signed)
    }

    pub(crate) fn signer(&self) -> SignerName {
        SignerName::Login(self.login.clone())
    }

    /// A write of one message of this length; a chat that is not there yet is created.
    pub(crate) fn write(&mut self, chat: &ChatId, length: usize) -> EncryptedChatMetadata {
        let is_new = !self.chats.contains_key(chat);
        let first = || Entry::seal(&self.ak, &self.id, RingOf::Chat(chat), 1, &Key::random(), 1);
        let room = self.chats.entry(chat.clone()).or_insert_with(|| Room {
            ring: vec![first()],
            head: NOTHING,
            items: BTreeMap::new(),
        });
        let ring = Ring::open(&self.ak, &self.id, RingOf::Chat(chat), &room.ring).unwrap();
        let held = ring.newest();
        let item = ItemId::Message(MessageId::random());
        let message = Message {
            v: 1,
            role: Role::User,
            parent: None,
            created_at: 7,
            body: "o".repeat(length),
            model: None,
            reason: None,
            refs: vec![],
            proof: None,
            shared: vec![],
        };
        let sealed = seal_record(held, &self.id, &Place::Item(chat, &item), 1, &message.to_json());
        room.items.insert(item.clone(), Digest::of(sealed.as_bytes()));
        let list = room.items.iter().map(|(id, hash)| (id.clone(), *hash)).collect();
        let (live, (before, chain_before)) = (live(&list), room.head);
        let head = Head {
            v: 1,
            key: held.n(),
            kid: held.key().kid(),
            count: u32::try_from(room.items.len()).unwrap(),
            live,
            chain: chain(&chain_before, &before.envelope, &live),
            leaf: None,
            pending: vec![],
            at: 7,
            device: self.here.clone(),
        };
        let rev = before.rev + 1;
        let envelope = seal_record(held, &self.id, &Place::Head(chat), rev, &head.to_json());
        room.head = (Mark { rev, envelope: Digest::of(envelope.as_bytes()) }, head.chain);
        let ring = is_new.then(|| KeyEntry::try_from(room.ring[0].clone()).unwrap());
        let list = is_new.then(|| self.list(vec![Shelf::of(chat)]));
        let (floor, manifest) =
            list.map_or((None, None), |(mut floors, manifest)| (floors.pop(), Some(manifest)));
        EncryptedChatMetadata {
            chat: chat.clone(),
            expected: before.rev,
            ring,
            head: HeadPut { envelope: Envelope::new(envelope).unwrap(), live, chain: head.chain },
            puts: List::new(vec![Put::new(item, 0, Envelope::new(sealed).unwrap()).unwrap()]).unwrap(),
            removes: List::default(),
            floor,
            manifest,
        }
    }

    /// Floors of these shelves and the manifest, as of what this device knows.
    fn list(&mut self, shelves: Vec<Shelf>) -> (Vec<FloorPut>, ManifestPut) {
        let uk = Ring::open(&self.ak, &self.id, RingOf::Account, &self.ring).unwrap();
        let mut floors = Vec::new();
        for shelf in shelves {
            let here = self.chats.iter().filter(|(chat, _)| Shelf::of(chat) == shelf);
            let json = Floor { v: 1, chats: here.map(|(chat, room)| (chat.clone(), room.head.0)).collect() };
            let expected = self.floors[shelf.index()].0;
            let place = Place::Floor(shelf);
            let sealed = seal_record(uk.newest(), &self.id, &place, expected + 1, &json.to_json());
            self.floors[shelf.index()] = (expected + 1, sealed.clone());
            floors.push(FloorPut { shelf, expected, envelope: Envelope::new(sealed).unwrap() });
        }
        let hashes: [Digest; 16] = std::array::from_fn(|at| Digest::of(self.floors[at].1.as_bytes()));
        let (live, (before, chain_before)) = (Manifest::live(&hashes), self.manifest);
        let chain = chain(&chain_before, &before.envelope, &live);
        let manifest = Manifest {
            v: 1,
            g: 1,
            uk: uk.newest().n(),
            box_n: 1,
            box_pub: self.box_pub,
            floors: hashes,
            chain,
            at: 7,
            device: self.here.clone(),
        };
        let rev = before.rev + 1;
        let sealed = seal_record(uk.newest(), &self.id, &Place::Manifest, rev, &manifest.to_json());
        self.manifest = (Mark { rev, envelope: Digest::of(sealed.as_bytes()) }, chain);
        let head = HeadPut { envelope: Envelope::new(sealed).unwrap(), live, chain };
        (floors, ManifestPut { head, ring: None, mailbox: None })
    }
}
