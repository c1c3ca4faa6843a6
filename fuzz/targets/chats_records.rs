//! What a chat's server sends is refused or has one meaning: no parser panics, and what is read is what was written.

#![no_main]

use std::fmt::Debug;
use std::sync::LazyLock;

use confidant_chat_format::{
    AccountId, AccountKey, BoxKey, ChatId, DeviceId, Digest, Entry, FieldName, Floor, Head, ItemId, Letter,
    List, Login, Manifest, Message, MessageId, NewDevice, Origin, Pairing, PairingSecret, Pending, Place,
    RecoveryCode, Refused, Ring, RingOf, SealedSnapshot, Shelf, Snapshot, SnapshotId, SnapshotKey,
    SnapshotLink, SnapshotList, Text, TurnId, open_record, seal_record,
};
use confidant_seal::{Key, Kid, Sealed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    match choice % 11 {
        0 => record(rest, Message::from_json, |message| message.to_json().to_vec()),
        1 => record(rest, Head::from_json, |head| head.to_json().to_vec()),
        2 => record(rest, Manifest::from_json, |manifest| manifest.to_json().to_vec()),
        3 => record(rest, Text::from_json, |text| text.to_json().to_vec()),
        4 => floor(rest),
        5 => names(rest),
        6 => letter(rest),
        7 => pairing(rest),
        8 => ring(rest),
        9 => record(rest, SnapshotList::from_json, |list| list.to_json().to_vec()),
        _ => snapshot(rest),
    }
});

/// A record that is read is the same when it is written and read again, and has no field twice.
fn record<T: PartialEq + Debug>(
    json: &[u8],
    read: impl Fn(&[u8]) -> Result<T, Refused>,
    write: impl Fn(&T) -> Vec<u8>,
) {
    match read(json) {
        Ok(record) => {
            assert!(json.trim_ascii().starts_with(b"{"));
            assert_eq!(read(&write(&record)).as_ref(), Ok(&record));
        }
        Err(refused) => assert_eq!(refused, Refused::RecordRefused),
    }
}

fn floor(json: &[u8]) {
    let read = |json: &[u8]| Shelf::all().find_map(|shelf| Floor::from_json(shelf, json).ok());
    record(json, |json| read(json).ok_or(Refused::RecordRefused), |floor| floor.to_json().to_vec());
}

/// Ids and names have one spelling; what people type has several, with one meaning.
fn names(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for found in [
        AccountId::parse(text).map(|id| id.to_string()),
        ChatId::parse(text).map(|id| id.to_string()),
        ItemId::parse(text).map(|id| id.to_string()),
        FieldName::parse(text).map(|name| name.to_string()),
        Login::parse(text).map(|login| login.as_str().to_owned()),
        Origin::parse(text).map(|origin| origin.as_str().to_owned()),
    ] {
        assert!(found.is_err() || found.as_deref() == Ok(text));
    }
    if let Ok(code) = RecoveryCode::parse(text) {
        let shown = code.dangerously_to_text();
        assert_eq!(RecoveryCode::parse(&shown).map(|code| code.dangerously_to_text()), Ok(shown));
    }
    if let Ok(secret) = PairingSecret::parse(text) {
        let shown = secret.dangerously_to_text();
        assert_eq!(PairingSecret::parse(&shown).map(|secret| secret.id()), Ok(secret.id()));
    }
}

/// Any bytes for a reply that is waited for, and any message inside a good one.
fn letter(input: &[u8]) {
    let known = &*KNOWN;
    let letter =
        Letter { account: &known.account, chat: &known.chat, reply: &known.reply, turn: &known.turn };
    let (own, list) = ([BoxKey::from_key(&Key::from_bytes([3; 32]))], List::new());
    let refused = letter.open(&own, &known.head, &list, input).err();
    assert_eq!(refused, Some(Refused::RecordRefused));
    assert_eq!(letter.open_more(&own, &known.head, input).err(), Some(Refused::RecordRefused));
    if let Ok(message) = Message::from_json(input) {
        let wire = letter.seal(&own[0].public_key(), &message).expect("a good key");
        match letter.open(&own, &known.head, &list, &wire) {
            Ok(opened) => assert_eq!((&opened.parent, &opened), (&Some(known.reply.clone()), &message)),
            Err(refused) => assert!(matches!(refused, Refused::Unasked | Refused::RecordRefused)),
        }
    }
}

fn pairing(input: &[u8]) {
    let (secret, origin) =
        (PairingSecret::from_bytes([5; 16]), Origin::parse("https://a.example").expect("valid"));
    let pairing = Pairing { secret: &secret, origin: &origin, account: &KNOWN.account };
    assert_eq!(pairing.receive(&NewDevice::random(), 1, input).err(), Some(Refused::PairRefused));
}

/// Rows of a ring with any numbers and envelopes, and any envelope under a good ring.
fn ring(input: &[u8]) {
    let known = &*KNOWN;
    let row = |part: &[u8]| Entry {
        n: part.first().map_or(0, |n| u32::from(*n)),
        kid: Kid::from_bytes([1; 8]),
        subs: vec![],
        sealed: Sealed::from_bytes(part.to_vec()),
    };
    let rows: Vec<Entry> = input.chunks(160).map(row).collect();
    let opened = Ring::open(&known.ak, &known.account, RingOf::Chat(&known.chat), &rows);
    assert!(matches!(opened, Err(Refused::RingGap | Refused::RingForked | Refused::KeyRefused)));
    let place = Place::Head(&known.chat);
    let opened = open_record(&known.ring, &known.account, &place, &Sealed::from_bytes(input.to_vec()));
    assert_eq!(opened.err(), Some(Refused::RecordRefused));
    let sealed = seal_record(known.ring.newest(), &known.account, &place, 1, input);
    let opened = open_record(&known.ring, &known.account, &place, &sealed).expect("just sealed");
    assert_eq!(opened.json.as_slice(), input);
}

/// Any bytes in the place of a snapshot's list, or of one of its messages; and any text for a link.
fn snapshot(input: &[u8]) {
    let (key, id) = (SnapshotKey::from_key(Key::from_bytes([9; 32])), SnapshotId::from_bits(&[9; 16]));
    let any = Sealed::from_bytes(input.to_vec());
    let item = ItemId::Message(KNOWN.reply.clone());
    let sealed = SealedSnapshot { list: any.clone(), items: vec![(item, any)] };
    assert_eq!(Snapshot::open(&key, &id, 0, &sealed).err(), Some(Refused::RecordRefused));
    if let Ok(text) = std::str::from_utf8(input) {
        match SnapshotLink::parse(text) {
            Ok(link) => assert_eq!(*link.dangerously_to_text(), text),
            Err(refused) => assert_eq!(refused, Refused::BadId),
        }
    }
}

struct Known {
    account: AccountId,
    chat: ChatId,
    reply: MessageId,
    turn: TurnId,
    ak: AccountKey,
    ring: Ring,
    head: Head,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let (account, chat) = (AccountId::from_bits(&[1; 16]), ChatId::from_bits(&[1; 16]));
    let (reply, turn) = (MessageId::from_bits(&[2; 16]), TurnId::from_bits(&[4; 16]));
    let (ak, key) = (AccountKey::new(Key::from_bytes([6; 32]), 1), Key::from_bytes([7; 32]));
    let row = Entry::seal(&ak, &account, RingOf::Chat(&chat), 1, &key, 1);
    let ring = Ring::open(&ak, &account, RingOf::Chat(&chat), &[row]).expect("just sealed");
    let head = Head {
        v: 1,
        key: 1,
        kid: key.kid(),
        count: 0,
        live: Digest::ZERO,
        chain: Digest::ZERO,
        leaf: None,
        pending: vec![Pending { turn: turn.clone(), parent: reply.clone(), reply: reply.clone() }],
        at: 0,
        device: DeviceId::from_bits(&[8; 16]),
    };
    Known { account, chat, reply, turn, ak, ring, head }
});
