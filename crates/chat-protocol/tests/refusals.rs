//! What is not a message of the protocol is refused, with its place and without its content.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_protocol::describe::Dice;
use confidant_chat_protocol::limits::{
    MAX_CHATS, MAX_EMBED, MAX_FRAME, MAX_MESSAGE, MAX_NUMBER, MAX_PUTS, MAX_RECORD, MAX_WORDS,
};
use confidant_chat_protocol::{
    Body as _, ClientEvent, ClientFrame, List, Malformed, Map, Prelogin, RefusedSent, ServerEvent,
    ServerFrame, SetActiveChat, Text, Why,
};
use serde_json::Value;

fn refused(json: &str) -> (String, Why) {
    let error = ClientFrame::read(json.as_bytes()).expect_err("malformed");
    assert!(error.to_string().contains("; hint: "), "{error}");
    (error.path().to_owned(), error.why().clone())
}

fn frame(event: &str) -> String {
    format!(r#"{{"id":1,"event":{event}}}"#)
}

const CHAT: &str = "chat_aaaaaaaaaaaaaaaaaaaaaaaaaa";

fn envelope(len: usize) -> String {
    let mut bytes = vec![7; len];
    bytes[..2].copy_from_slice(&[1, 1]);
    URL_SAFE_NO_PAD.encode(bytes)
}

fn write(puts: &str, removes: &str) -> String {
    let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
    let head = format!(r#"{{"envelope":"{}","live":"{zeros}","chain":"{zeros}"}}"#, envelope(150));
    frame(&format!(
        r#"{{"type":"encrypted_chat_metadata","chat":"{CHAT}","expected":1,"head":{head},"puts":[{puts}],"removes":[{removes}]}}"#
    ))
}

fn put(item: &str, len: usize) -> String {
    format!(r#"{{"item":"{item}","expected":0,"envelope":"{}"}}"#, envelope(len))
}

fn message(number: usize) -> String {
    let digit = |at: u32| char::from(b"abcdefghijklmnopqrstuvwxyz234567"[number / 32_usize.pow(at) % 32]);
    format!("msg_{}{}{}aaaaaaaaaaaaaaaaaaaaaaa", digit(2), digit(1), digit(0))
}

#[test]
fn an_unknown_event_is_named_but_not_at_length() {
    assert_eq!(
        refused(&frame(r#"{"type":"dance"}"#)),
        ("event.type".into(), Why::UnknownEvent("dance".into()))
    );
    let long = "x".repeat(1000);
    let (path, why) = refused(&frame(&format!(r#"{{"type":"{long}"}}"#)));
    assert_eq!((path.as_str(), why), ("event.type", Why::UnknownEvent("x".repeat(40))));
    assert_eq!(refused(&frame("{}")), ("event.type".into(), Why::Missing));
    assert_eq!(refused(&frame(r#"{"type":7}"#)), ("event.type".into(), Why::UnknownEvent("7".into())));
    assert_eq!(refused(&frame(r#"{"type":["ping"]}"#)), ("event.type".into(), Why::Missing));
    assert_eq!(refused(r#"{"id":1}"#), ("event".into(), Why::Missing));
    // A server's event is none of a client's.
    assert_eq!(refused(&frame(r#"{"type":"pong"}"#)).1, Why::UnknownEvent("pong".into()));
}

type Read = fn(&[u8]) -> Option<Malformed>;

/// A frame with each event, and how it is read.
fn samples() -> Vec<(Value, Read)> {
    let client = ClientEvent::one_of_each(&mut Dice::sample()).into_iter().map(|event| {
        let frame = ClientFrame { id: 1, event };
        (serde_json::to_value(&frame).expect("plain data"), (|json| ClientFrame::read(json).err()) as Read)
    });
    let server = ServerEvent::one_of_each(&mut Dice::sample()).into_iter().map(|event| {
        let frame = ServerFrame { re: Some(1), seq: Some(1), event };
        (serde_json::to_value(&frame).expect("plain data"), (|json| ServerFrame::read(json).err()) as Read)
    });
    client.chain(server).collect()
}

#[test]
fn every_field_is_there_once_and_no_other() {
    for (good, read) in samples() {
        let mut places = Vec::new();
        objects(&good, String::new(), &mut places);
        let read_value = |value: &Value| -> Option<Malformed> { read(&serde_json::to_vec(value).unwrap()) };
        assert_eq!(read_value(&good), None);
        for place in places {
            let mut unknown = good.clone();
            at(&mut unknown, &place).insert("zz_marker".into(), Value::Null);
            let error = read_value(&unknown).unwrap();
            assert!(!error.to_string().contains("marker"), "{error}");
            let names: Vec<String> = at(&mut good.clone(), &place).keys().cloned().collect();
            for name in names {
                let mut null = good.clone();
                at(&mut null, &place).insert(name.clone(), Value::Null);
                assert!(read_value(&null).is_some(), "{place}/{name} null");
                let mut wrong = good.clone();
                at(&mut wrong, &place).insert(name.clone(), serde_json::json!([[[]]]));
                assert!(read_value(&wrong).is_some(), "{place}/{name} list in a list");
                twice(&good, &place, &name, read);
            }
        }
    }
}

/// The text of `good` with one field written twice.
fn twice(good: &Value, place: &str, name: &str, read: Read) {
    let mut marked = good.clone();
    let object = at(&mut marked, place);
    let value = object[name].to_string();
    object.insert(name.to_owned(), Value::from("\u{1}"));
    let doubled = format!("{value},\"{name}\":{value}");
    let text = marked.to_string().replacen("\"\\u0001\"", &doubled, 1);
    let error = read(text.as_bytes()).unwrap_or_else(|| panic!("{place}/{name} twice"));
    assert_eq!(error.why(), &Why::Twice, "{place}/{name}: {error}");
}

#[test]
fn no_list_and_no_text_is_without_a_limit() {
    let (mut lists, mut texts) = (0, 0);
    for (good, read) in samples() {
        let mut places = Vec::new();
        leaves(&good, String::new(), &mut places);
        for place in places {
            let mut grown = good.clone();
            let value = grown.pointer_mut(&place).unwrap();
            let count = match value {
                Value::Array(items) => {
                    let count = (500_000 / items[0].to_string().len()).min(10_001);
                    *items = vec![items[0].clone(); count];
                    lists += 1;
                    count
                }
                text => {
                    // More than the largest of them, a receipt.
                    *text = Value::from("x".repeat(600_000));
                    texts += 1;
                    0
                }
            };
            match read(grown.to_string().as_bytes()).map(|error| error.why().clone()) {
                Some(Why::TooMany(_)) => assert_ne!(count, 0, "{place}"),
                // Too few of them fit here to reach the limit.
                None | Some(Why::Twice) => assert!((1..10_001).contains(&count), "{place} has no limit"),
                Some(why) => assert_eq!(count, 0, "{place}: {why:?}"),
            }
        }
    }
    assert!(lists > 40 && texts > 200, "{lists} lists and {texts} texts");
}

/// The places of all lists and texts.
fn leaves(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves(value, format!("{path}/{name}"), out));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| leaves(item, format!("{path}/{at}"), out));
            out.push(path);
        }
        Value::String(_) => out.push(path),
        _ => {}
    }
}

fn objects(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                objects(value, format!("{path}/{name}"), out);
            }
            out.push(path);
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                objects(item, format!("{path}/{number}"), out);
            }
        }
        _ => {}
    }
}

fn at<'a>(value: &'a mut Value, place: &str) -> &'a mut serde_json::Map<String, Value> {
    value.pointer_mut(place).and_then(Value::as_object_mut).expect("an object is there")
}

#[test]
fn lists_are_taken_up_to_their_limit() {
    let puts = |count: usize| (0..count).map(|at| put(&message(at), 150)).collect::<Vec<_>>().join(",");
    let read = ClientFrame::read(write(&puts(MAX_PUTS), "").as_bytes()).unwrap();
    let ClientEvent::EncryptedChatMetadata(taken) = read.event else { panic!("a write") };
    assert_eq!(taken.puts.len(), MAX_PUTS);
    assert_eq!(refused(&write(&puts(MAX_PUTS + 1), "")), ("event.puts".into(), Why::TooMany(MAX_PUTS)));
    // What is over the limit is not even looked at.
    let tail = format!("{},{{\"broken", puts(MAX_PUTS));
    assert_eq!(refused(&write(&tail, "")).1, Why::TooMany(MAX_PUTS));

    assert!(List::<u32, 2>::new(vec![1, 2]).is_ok());
    assert_eq!(List::<u32, 2>::new(vec![1, 2, 3]).unwrap_err().why(), &Why::TooMany(2));
    assert_eq!(List::<u32, 2, 2>::new(vec![1]).unwrap_err().why(), &Why::TooFew(2));
    assert!(Map::<u32, u32, 1>::new(BTreeMap::from([(1, 1)])).is_ok());
    assert_eq!(
        Map::<u32, u32, 1>::new(BTreeMap::from([(1, 1), (2, 2)])).unwrap_err().why(),
        &Why::TooMany(1)
    );
}

#[test]
fn maps_are_taken_up_to_their_limit_and_have_each_key_once() {
    let entry = |at: usize| {
        let id = message(at).replace("msg_", "chat_");
        format!(r#""{id}":{{"messages_v":1,"title_v":0,"draft_v":0}}"#)
    };
    let request = |entries: Vec<String>| {
        let entries = entries.join(",");
        frame(&format!(
            r#"{{"type":"phased_sync_request","phase":"all","manifest":0,"client_chat_versions":{{{entries}}}}}"#
        ))
    };
    assert!(ClientFrame::read(request((0..MAX_CHATS).map(entry).collect()).as_bytes()).is_ok());
    let over = refused(&request((0..=MAX_CHATS).map(entry).collect()));
    assert_eq!(over, ("event.client_chat_versions".into(), Why::TooMany(MAX_CHATS)));
    let doubled = refused(&request(vec![entry(1), entry(1)]));
    assert_eq!(doubled, ("event.client_chat_versions[1]".into(), Why::Twice));
    let bad = refused(&request(vec![r#""marker":{}"#.to_owned()]));
    assert_eq!(bad, ("event.client_chat_versions[0]".into(), Why::Expected("a valid chat id")));
}

#[test]
fn envelopes_are_taken_up_to_the_limit_of_their_kind() {
    let embed = "emb_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    for (item, limit) in [(message(0).as_str(), MAX_MESSAGE), (embed, MAX_EMBED), ("meta:title", MAX_RECORD)]
    {
        assert!(ClientFrame::read(write(&put(item, limit), "").as_bytes()).is_ok(), "{item}");
        let (path, why) = refused(&write(&put(item, limit + 1), ""));
        assert_eq!(path, "event.puts[0].envelope");
        assert!(matches!(why, Why::TooLong(_)), "{why:?}");
    }
    for (bad, what) in [
        (envelope(149), "too short"),
        (envelope(150).replacen("AQ", "Ag", 1), "another version"),
        (format!("{}=", envelope(151)), "padding"),
        (envelope(151).replace('_', "/").replace("Bw", "B+"), "another alphabet"),
        (String::new(), "nothing"),
    ] {
        let json = write(&put(&message(0), 150), "").replacen(&envelope(150), &bad, 1);
        assert!(matches!(refused(&json).1, Why::Expected(_)), "{what}");
    }
    assert!(Text::<3>::new("abc".into()).is_ok());
    assert_eq!(Text::<3>::new("abcd".into()).unwrap_err().why(), &Why::TooLong(3));
    assert_eq!(Text::<3>::cut("ab\u{e4}").as_str(), "ab");
    let words = |len: usize| {
        let what = "w".repeat(len);
        let json = format!(r#"{{"event":{{"type":"refused","error":"rate","what":"{what}","hint":""}}}}"#);
        ServerFrame::read(json.as_bytes()).map(drop)
    };
    assert_eq!(words(MAX_WORDS), Ok(()));
    assert_eq!(words(MAX_WORDS + 1).unwrap_err().why(), &Why::TooLong(MAX_WORDS));
}

#[test]
fn a_write_is_one_whole() {
    let item = message(0);
    let quoted = format!("\"{item}\"");
    assert_eq!(refused(&write(&put(&item, 150), &quoted)), ("event.removes".into(), Why::Twice));
    let double = format!("{},{}", put(&item, 150), put(&item, 150));
    assert_eq!(refused(&write(&double, "")).1, Why::Twice);
    let create = write("", "").replace(r#""expected":1"#, r#""expected":0"#);
    assert_eq!(refused(&create), ("event.floor".into(), Why::Missing));
}

#[test]
fn numbers_have_no_fraction_exponent_or_sign_and_fit() {
    let hello = |seq: &str| {
        let ticket = URL_SAFE_NO_PAD.encode([1; 32]);
        frame(&format!(r#"{{"type":"hello","v":1,"ticket":"{ticket}","seq":{seq}}}"#))
    };
    assert!(ClientFrame::read(hello(&MAX_NUMBER.to_string()).as_bytes()).is_ok());
    for bad in [
        "9007199254740992",
        "18446744073709551616",
        "-1",
        "-0",
        "1.0",
        "1e3",
        "123456789012345678901234567890",
        "0.1",
    ] {
        assert_eq!(refused(&hello(bad)), ("event.seq".into(), Why::OutOfRange(MAX_NUMBER)), "{bad}");
    }
    for bad in ["01", "+1", "1e999", "NaN", "0x1"] {
        assert!(matches!(refused(&hello(bad)).1, Why::NotJson | Why::OutOfRange(_)), "{bad}");
    }
    assert_eq!(refused(&hello("\"1\"")).1, Why::Expected("a whole number"));
    let id = frame(r#"{"type":"ping"}"#).replace(r#""id":1"#, r#""id":4294967296"#);
    assert_eq!(refused(&id), ("id".into(), Why::OutOfRange(u32::MAX.into())));
}

#[test]
fn what_is_not_json_in_utf_8_is_refused() {
    for bad in ["", " ", "null", "[]", "7", "{", "{\"id\":1", "\u{feff}{}", "{'id':1}"] {
        assert!(ClientFrame::read(bad.as_bytes()).is_err(), "{bad}");
    }
    let good = frame(r#"{"type":"ping"}"#);
    for bad in [format!("{good}{good}"), format!("{good} x"), good.replace('}', ",}")] {
        assert_eq!(refused(&bad).1, Why::NotJson, "{bad}");
    }
    let login = |text: &str| Prelogin::read(format!(r#"{{"login":"{text}"}}"#).as_bytes()).map(drop);
    assert_eq!(login(r"\ud83d\udc4b"), Ok(()));
    for bad in [r"\ud83d", r"\udc4b", r"\udc4b\ud83d", r"\ud83dx", "\n", r"\x"] {
        assert_eq!(login(bad).unwrap_err().why(), &Why::NotJson, "{bad}");
    }
    assert_eq!(Prelogin::read(b"{\"login\":\"\xff\"}").unwrap_err().why(), &Why::NotJson);
    // An array in place of an object.
    assert_eq!(Prelogin::read(br#"["ana"]"#).unwrap_err().why(), &Why::Expected("an object"));
}

#[test]
fn deep_nesting_is_refused_without_following_it() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for json in
            [deep.clone(), frame(&deep), write(&deep, ""), frame(&format!(r#"{{"x":{deep},"type":"ping"}}"#))]
        {
            assert!(ClientFrame::read(json.as_bytes()).is_err());
        }
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_size_alone() {
    let mut json = frame(r#"{"type":"ping"}"#).into_bytes();
    json.resize(MAX_FRAME, b' ');
    assert!(ClientFrame::read(&json).is_ok(), "exactly at the limit");
    json.push(b' ');
    assert_eq!(ClientFrame::read(&json).unwrap_err().why(), &Why::TooLarge(MAX_FRAME));
    // Ten megabytes that are no message at all.
    assert_eq!(ClientFrame::read(&vec![b'['; 10_000_000]).unwrap_err().why(), &Why::TooLarge(MAX_FRAME));
    // A small body has a small limit.
    assert!(matches!(Prelogin::read(&vec![b' '; 100_000]).unwrap_err().why(), Why::TooLarge(_)));
}

#[test]
fn a_refusal_says_where_and_what_to_do_but_not_what_was_sent() {
    let error = ClientFrame::read(write(&put("marker", 150), "").as_bytes()).unwrap_err();
    let expected = "the message is malformed at event.puts[0].item: not a valid item: message id, embed id, or \
                    meta:name; hint: see docs/PROTOCOL.md for this field";
    assert_eq!(error.to_string(), expected);
    let sent = RefusedSent::from(&error);
    assert_eq!(sent.error.name(), "malformed");
    assert_eq!(sent.hint.as_str(), "see docs/PROTOCOL.md for this field");
    let json = frame(r#"{"type":"set_active_chat","chat":"chat_marker"}"#);
    let error = ClientFrame::read(json.as_bytes()).unwrap_err();
    assert_eq!((error.path(), error.to_string().contains("marker")), ("event.chat", false));
    let none = ClientFrame::read(frame(r#"{"type":"set_active_chat"}"#).as_bytes()).unwrap();
    assert_eq!(none.event, ClientEvent::SetActiveChat(SetActiveChat { chat: None }));
}

#[test]
fn a_refusal_can_say_which_request_it_answers() {
    for (json, id) in [
        (r#"{"id":7,"event":{"type":"dance"}}"#, Some(7)),
        (r#"{"event":{"id":8,"x":[{"id":9}]},"id":7}"#, Some(7)),
        (r#"{"id":7,"broken"#, Some(7)),
        (r#"{"id":4294967296}"#, None),
        (r#"{"id":"x"}"#, None),
        (r#"{"id":-1}"#, None),
        (r#"{"id":{}}"#, None),
        (r#"{"event":{"id":8}}"#, None),
        ("[7]", None),
        ("", None),
    ] {
        assert_eq!(ClientFrame::id_of(json.as_bytes()), id, "{json}");
    }
}

#[test]
fn a_device_asks_for_at_most_a_hundred_chats() {
    let ask = |limit: u32| frame(&format!(r#"{{"type":"load_more_chats","limit":{limit}}}"#));
    assert!(ClientFrame::read(ask(100).as_bytes()).is_ok());
    assert_eq!(refused(&ask(101)), ("event.limit".into(), Why::OutOfRange(100)));
}
