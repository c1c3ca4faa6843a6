//! Values have one spelling, and become those of the format and back.

use confidant_chat_format::{Digest, Entry, FieldName, ItemId, Purpose, Refused, Step, Trail};
use confidant_chat_protocol::describe::Dice;
use confidant_chat_protocol::{
    Blob, Body as _, ChatUpdated, CloseCode, DeleteMessage, EncryptedChatMetadata, ErrorName, KeyEntry, List,
    PairingId, ROUTES, RefusedSent, RingRows, Signed, SignerName, Totp, TrailSent, Who, Why, Wire as _,
};

#[test]
fn codes_and_pairings_have_one_spelling() {
    assert_eq!(Totp::parse("012345").unwrap().digits(), "012345");
    for bad in ["", "12345", "1234567", "12345a", "１２３４５６", "12 345"] {
        assert_eq!(Totp::parse(bad), None, "{bad}");
    }
    let id = "00112233445566778899aabbccddeeff";
    assert_eq!(PairingId::parse(id).unwrap().as_str(), id);
    for bad in ["", &id[1..], &id.to_uppercase(), &format!("{id}0"), &id.replace('a', "g")] {
        assert_eq!(PairingId::parse(bad), None, "{bad}");
    }
    assert!(Blob::<2>::new(vec![1, 2]).is_ok());
    assert_eq!(Blob::<2>::new(vec![1, 2, 3]).unwrap_err().why(), &Why::TooLong(2));
}

#[test]
fn entries_and_trails_are_those_of_the_format() {
    let entry = KeyEntry::make(&mut Dice::sample());
    let theirs = Entry::from(entry.clone());
    assert_eq!((theirs.n, theirs.kid, theirs.subs.len()), (entry.n, entry.kid, 1));
    assert_eq!(KeyEntry::try_from(theirs).unwrap(), entry);
    let step = |text: &[u8]| Step { live: Digest::of(text), envelope: Digest::ZERO };
    let trail = Trail { chain: Digest::of(b"chain"), steps: vec![step(b"a"), step(b"b")] };
    assert_eq!(Trail::from(TrailSent::try_from(trail.clone()).unwrap()), trail);
    let long = Trail { chain: Digest::ZERO, steps: vec![step(b"a"); 10_001] };
    assert!(TrailSent::try_from(long).is_err());
}

#[test]
fn a_ring_is_a_chats_exactly_if_it_names_one() {
    let good = r#"{"kind":"account","entries":[]}"#;
    assert!(RingRows::read(good.as_bytes()).is_ok());
    let chat = r#""chat":"chat_aaaaaaaaaaaaaaaaaaaaaaaaaa","#;
    assert!(RingRows::read(good.replace("account", "chat").as_bytes()).is_err());
    assert!(RingRows::read(good.replacen('{', &format!("{{{chat}"), 1).as_bytes()).is_err());
    let chats = good.replace("account", "chat").replacen('{', &format!("{{{chat}"), 1);
    assert!(RingRows::read(chats.as_bytes()).is_ok());
    assert!(RingRows::read(good.replace("account", "mailbox").as_bytes()).is_err(), "its word is box");
}

#[test]
fn deleting_a_message_is_a_write_of_nothing_but_removals() {
    let delete = DeleteMessage::make(&mut Dice::sample());
    let write = EncryptedChatMetadata::from(delete.clone());
    assert_eq!((&write.chat, write.expected, &write.head), (&delete.chat, delete.expected, &delete.head));
    let removes = [ItemId::Message(delete.message), ItemId::Embed(delete.embeds[0].clone())];
    assert_eq!((write.puts.len(), &*write.removes), (0, &removes[..]));
    assert!(!write.changes_title());
    let title = ItemId::Field(FieldName::parse("title").unwrap());
    let untitled = EncryptedChatMetadata { removes: List::new(vec![title.clone()]).unwrap(), ..write };
    assert!(untitled.changes_title());
    let mut titled = EncryptedChatMetadata::make(&mut Dice::sample());
    assert!(!titled.changes_title());
    let mut puts = titled.puts.into_vec();
    puts[0].item = title;
    titled.puts = List::new(puts).unwrap();
    assert!(titled.changes_title());
}

#[test]
fn news_name_each_item_once() {
    let mut news = ChatUpdated::make(&mut Dice::sample());
    let item = news.items[0].item.clone();
    news.removed = List::new(vec![item]).unwrap();
    assert_eq!(ChatUpdated::read(&news.write().unwrap()).unwrap_err().why(), &Why::Twice);
}

#[test]
fn whoever_signs_is_one() {
    let signed = String::from_utf8(Signed::make(&mut Dice::sample()).write().unwrap()).unwrap();
    assert!(Signed::read(signed.as_bytes()).is_ok());
    let signer = r#""signer":{"login":"ana@example.org"}"#;
    assert!(signed.contains(signer));
    for bad in [
        r#""signer":{}"#,
        r#""signer":"ana""#,
        r#""signer":{"login":"cred_aaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        r#""signer":{"login":"ana","credential":"cred_aaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        r#""signer":{"login":"ana","login":"ana"}"#,
        r#""signer":{"key":"ana"}"#,
    ] {
        assert!(Signed::read(signed.replace(signer, bad).as_bytes()).is_err(), "{bad}");
    }
    let credential = r#""signer":{"credential":"cred_aaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;
    let read = Signed::read(signed.replace(signer, credential).as_bytes()).unwrap();
    assert!(matches!(read.signer, SignerName::Credential(_)));
}

#[test]
fn errors_have_names_words_and_a_status() {
    for error in ErrorName::all() {
        assert!((400..600).contains(&error.status()), "{}", error.name());
    }
    let names: Vec<_> = ErrorName::all().map(ErrorName::name).collect();
    assert_eq!(names.len(), Refused::ALL.len() + 9);
    let sent = RefusedSent::from(Refused::Conflict);
    assert_eq!((sent.error.name(), sent.error.status()), ("conflict", 409));
    assert_eq!(sent.what.as_str(), "another device wrote first");
    assert_eq!(sent.hint.as_str(), "load again and repeat");
    let codes: Vec<u16> = CloseCode::ALL.iter().map(|(close, _)| close.code()).collect();
    assert_eq!(codes, [1001, 1009, 4401, 4403, 4408, 4429]);
}

#[test]
fn nobody_without_a_session_sends_much() {
    for route in ROUTES {
        let open = matches!(route.who, Who::Anybody | Who::Proof(Purpose::Login));
        assert!(!open || route.limit <= 520 * 1024, "{}", route.path);
    }
}
