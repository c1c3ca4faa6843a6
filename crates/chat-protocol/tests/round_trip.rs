//! What is written is read as the same value, for every event and every body.

use confidant_chat_protocol::describe::{Dice, bodies};
use confidant_chat_protocol::{Body, ClientEvent, ClientFrame, RESERVED, ServerEvent, ServerFrame, Wire};
use proptest::collection::vec;
use proptest::prelude::*;

fn same<T: Body + PartialEq + std::fmt::Debug>(value: &T) {
    let json = value.write().expect("below the limit");
    let again = T::read(&json).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&json)));
    assert_eq!(&again, value);
    assert_eq!(again.write().expect("below the limit"), json, "one JSON form");
}

fn all_of_it(dice: &mut Dice<'_>) {
    for event in ClientEvent::one_of_each(dice) {
        same(&ClientFrame { id: Wire::make(dice), event });
    }
    for event in ServerEvent::one_of_each(dice) {
        same(&ServerFrame { re: Wire::make(dice), seq: Wire::make(dice), event });
    }
    for (path, request, answer) in bodies(dice) {
        for made in [request, answer] {
            assert_eq!(made.json, made.again, "{path}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn everything_comes_back_as_it_was_sent(bytes in vec(any::<u8>(), 0..60_000)) {
        all_of_it(&mut Dice::from_bytes(&bytes));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = ClientFrame::read(&bytes);
        let _ = ServerFrame::read(&bytes);
    }
}

#[test]
fn samples_come_back_too() {
    all_of_it(&mut Dice::sample());
}

#[test]
fn the_order_of_fields_and_the_space_between_them_are_free() {
    let json = br#" { "event" : { "chat":"chat_aaaaaaaaaaaaaaaaaaaaaaaaaa" , "expected":2, "\u0074ype":"delete_draft" }, "id":1 } "#;
    assert_eq!(
        ClientFrame::read(json).unwrap().write().unwrap(),
        br#"{"id":1,"event":{"type":"delete_draft","chat":"chat_aaaaaaaaaaaaaaaaaaaaaaaaaa","expected":2}}"#
    );
}

#[test]
fn names_are_used_once_and_those_of_turns_are_kept_free() {
    let mut names = [ClientEvent::NAMES, ServerEvent::NAMES, RESERVED].concat();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1]);
    }
    for (name, event) in ClientEvent::NAMES.iter().zip(ClientEvent::one_of_each(&mut Dice::sample())) {
        assert_eq!(*name, event.name());
    }
    for (name, event) in ServerEvent::NAMES.iter().zip(ServerEvent::one_of_each(&mut Dice::sample())) {
        assert_eq!(*name, event.name());
    }
}
