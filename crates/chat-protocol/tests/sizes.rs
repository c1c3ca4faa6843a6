//! What an account may have fits in what may be sent.

use std::collections::BTreeMap;

use confidant_chat_format::{ChatId, Digest, FieldName, ItemId, PublicKey, Shelf};
use confidant_chat_protocol::describe::Dice;
use confidant_chat_protocol::limits::{
    MAX_CHATS, MAX_CREDENTIALS, MAX_DEVICES, MAX_EMBED, MAX_FLOOR, MAX_KEY, MAX_MESSAGE, MAX_RECEIPT,
    MAX_RECORD, MAX_RING, MAX_SNAPSHOT, MAX_SNAPSHOT_ITEMS, MAX_SNAPSHOTS, MAX_STEPS,
};
use confidant_chat_protocol::{
    AccountState, Body, ChangeCredentials, ClientEvent, ClientFrame, Device, Devices, EncryptedChatMetadata,
    Envelope, Erased, FirstManifest, FloorSent, HeadPut, KeyEntry, List, MakeSnapshot, Map, NewCredential,
    Put, Register, ServerEvent, ServerFrame, Session, SnapshotItem, SnapshotKept, SnapshotLine, SnapshotSent,
    Snapshots, StepSent, Text, TrailSent, Versions, Wire as _, item_limit,
};
use confidant_seal::Sealed;

fn envelope<const MAX: usize>() -> Envelope<MAX> {
    let mut bytes = vec![0xff; MAX];
    bytes[..2].copy_from_slice(&[1, 1]);
    Envelope::new(Sealed::from_bytes(bytes)).expect("exactly at the limit")
}

fn chat(number: usize) -> ChatId {
    let mut bits = [0xff; 16];
    bits[..8].copy_from_slice(&number.to_be_bytes());
    ChatId::from_bits(&bits)
}

fn ring() -> Vec<KeyEntry> {
    let entry = || KeyEntry { sealed: envelope::<MAX_KEY>(), ..KeyEntry::make(&mut Dice::sample()) };
    (0..MAX_RING).map(|_| entry()).collect()
}

fn fits<T: Body + PartialEq + std::fmt::Debug>(value: &T) {
    let json = value.write().expect("it fits");
    assert!(T::read(&json).as_ref() == Ok(value));
}

#[test]
fn a_full_account_fits_in_one_frame() {
    let versions = || Versions { messages_v: u32::MAX, title_v: u32::MAX, draft_v: u32::MAX };
    let chats: BTreeMap<_, _> = (0..MAX_CHATS).map(|at| (chat(at), versions())).collect();
    let step = || StepSent { live: Digest::ZERO, envelope: Digest::ZERO };
    let steps = List::new((0..MAX_STEPS).map(|_| step()).collect()).unwrap();
    let floors = Shelf::all().map(|shelf| FloorSent { shelf, envelope: envelope::<MAX_FLOOR>() }).collect();
    let state = AccountState {
        account_rev: u32::MAX,
        generation: u32::MAX,
        ring: List::new(ring()).unwrap(),
        mailbox: List::new(ring()).unwrap(),
        box_pub: PublicKey::from_bytes([0xff; 32]),
        manifest: envelope::<MAX_RECORD>(),
        trail: Some(TrailSent { chain: Digest::ZERO, steps }),
        floors: List::new(floors).unwrap(),
        chats: Map::new(chats).unwrap(),
        more: false,
    };
    fits(&ServerFrame { re: Some(u32::MAX), seq: None, event: ServerEvent::AccountState(state) });
}

#[test]
fn the_largest_item_and_the_largest_floor_fit_in_a_write() {
    let sample = EncryptedChatMetadata::make(&mut Dice::sample());
    let embed = ItemId::parse("emb_aaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    assert_eq!(item_limit(&embed), MAX_EMBED);
    let puts = vec![Put::new(embed, 0, envelope::<MAX_EMBED>()).unwrap()];
    let mut write = EncryptedChatMetadata { puts: List::new(puts).unwrap(), ..sample };
    write.head.envelope = envelope::<MAX_RECORD>();
    if let Some(floor) = &mut write.floor {
        floor.envelope = envelope::<MAX_FLOOR>();
    }
    fits(&ClientFrame { id: u32::MAX, event: ClientEvent::EncryptedChatMetadata(write) });
    let message = ItemId::parse("msg_aaaaaaaaaaaaaaaaaaaaaaaaaa").unwrap();
    assert!(Put::new(message.clone(), 0, envelope::<MAX_EMBED>()).is_err());
    assert_eq!(item_limit(&message), MAX_MESSAGE);
    assert_eq!(item_limit(&ItemId::Field(FieldName::parse("title").unwrap())), MAX_RECORD);
}

#[test]
fn the_largest_registration_and_list_of_devices_fit() {
    let floors = (0..16).map(|_| envelope::<MAX_KEY>()).collect();
    let manifest = HeadPut { envelope: envelope(), ..HeadPut::make(&mut Dice::sample()) };
    let first = FirstManifest { floors: List::new(floors).unwrap(), manifest };
    let credential = || NewCredential { wrap: envelope(), ..NewCredential::make(&mut Dice::sample()) };
    let credentials = List::new((0..MAX_CREDENTIALS).map(|_| credential()).collect()).unwrap();
    fits(&Register { first, credentials: credentials.clone(), ..Register::make(&mut Dice::sample()) });
    fits(&ChangeCredentials { credentials, ..ChangeCredentials::make(&mut Dice::sample()) });

    let device = || Device { label: Some(envelope()), ..Device::make(&mut Dice::sample()) };
    let session = || Session::make(&mut Dice::sample());
    fits(&Devices {
        devices: List::new((0..MAX_DEVICES).map(|_| device()).collect()).unwrap(),
        sessions: List::new((0..MAX_DEVICES).map(|_| session()).collect()).unwrap(),
    });
    let receipt = Text::new("\u{1}".repeat(MAX_RECEIPT)).unwrap();
    fits(&Erased { receipt });
}

#[test]
fn a_floor_has_room_for_its_share_of_the_chats() {
    // A line of a floor: the id, a revision and a hash.
    let line = r#""chat_aaaaaaaaaaaaaaaaaaaaaaaaaa":{"rev":4294967295,"envelope":""},"#.len() + 43;
    // A third more than the mean; lengths are padded by at most an eighth.
    let chats = MAX_CHATS / 16 * 4 / 3;
    assert!(chats * line * 9 / 8 + 200 < MAX_FLOOR);
    assert!(MAX_CHATS / 16 * line > MAX_RECORD, "so a floor's limit is greater than a record's");
}

#[test]
fn a_full_snapshot_and_a_full_list_of_them_fit() {
    // As many messages as there may be, all small but one embed, which has the rest.
    let (small, list) = (150, envelope::<MAX_RECORD>());
    let rest = MAX_SNAPSHOT - MAX_RECORD - (MAX_SNAPSHOT_ITEMS - 1) * small;
    let sealed = |bytes: usize| {
        let mut sealed = vec![0xff; bytes];
        sealed[..2].copy_from_slice(&[1, 1]);
        Envelope::new(Sealed::from_bytes(sealed)).unwrap()
    };
    let item = |at: usize| {
        let bits: [u8; 16] = std::array::from_fn(|byte| if byte < 8 { at.to_be_bytes()[byte] } else { 0xff });
        let item = match at {
            0 => ItemId::Embed(confidant_chat_format::EmbedId::from_bits(&bits)),
            _ => ItemId::Message(confidant_chat_format::MessageId::from_bits(&bits)),
        };
        SnapshotItem { item, envelope: sealed(if at == 0 { rest } else { small }) }
    };
    let items: Vec<SnapshotItem> = (0..MAX_SNAPSHOT_ITEMS).map(item).collect();
    let make = MakeSnapshot {
        list: list.clone(),
        items: List::new(items.clone()).unwrap(),
        ..MakeSnapshot::make(&mut Dice::sample())
    };
    fits(&make);
    let mut more = items.clone();
    more[0].envelope = sealed(rest + 1);
    let too_large = MakeSnapshot { items: List::new(more).unwrap(), ..make };
    assert!(MakeSnapshot::read(&too_large.write().unwrap()).is_err());
    let sent = SnapshotSent { expires_at: 1 << 52, list, items: List::new(items).unwrap() };
    fits(&sent);
    let line = || SnapshotLine { key: envelope::<MAX_KEY>(), ..SnapshotLine::make(&mut Dice::sample()) };
    let kept = SnapshotKept { line: line(), content: Some(sent) };
    fits(&ServerFrame { re: Some(u32::MAX), seq: None, event: ServerEvent::SnapshotKept(kept) });
    fits(&Snapshots { snapshots: List::new((0..MAX_SNAPSHOTS).map(|_| line()).collect()).unwrap() });
}
