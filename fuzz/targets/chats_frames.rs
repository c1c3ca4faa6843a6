//! Frames and bodies of client-sealed chats: no reader panics, and what is read and written again is read the same.

#![no_main]

use std::fmt::Debug;

use confidant_chat_protocol::{
    Body, ChangeCredentials, ClientFrame, Devices, Export, LoginRequest, MakeSnapshot, OpenSnapshot,
    PairFetched, PairSend, Prelogin, Recover, RefusedSent, Register, RegisterBegin, Restore, RotationCommit,
    RotationStage, ServerFrame, SessionOpened, Signed, SnapshotSent, Snapshots, Why,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, json)) = input.split_first() else { return };
    match choice % 16 {
        0..=3 => body::<ClientFrame>(json),
        4..=7 => body::<ServerFrame>(json),
        8 => signed(json),
        9 => body::<Register>(json),
        10 => body::<RotationStage>(json),
        11 => body::<RotationCommit>(json),
        12 => body::<Restore>(json),
        13 => body::<SessionOpened>(json),
        14 => body::<PairFetched>(json),
        _ => {
            body::<Prelogin>(json);
            body::<RegisterBegin>(json);
            body::<ChangeCredentials>(json);
            body::<Recover>(json);
            body::<PairSend>(json);
            body::<Devices>(json);
            body::<MakeSnapshot>(json);
            body::<OpenSnapshot>(json);
            body::<Snapshots>(json);
            body::<SnapshotSent>(json);
        }
    }
});

/// A value has one JSON form; a refusal has a place, words for people, and fits in an event.
fn body<T: Body + PartialEq + Debug>(json: &[u8]) {
    match T::read(json) {
        Ok(value) => {
            assert!(json.trim_ascii().starts_with(b"{"));
            let written =
                value.write().expect("what was read is within the limit, and is not longer when written");
            let again = T::read(&written).expect("what is written is read");
            assert_eq!(again, value);
            assert_eq!(again.write().expect("as before"), written);
        }
        Err(refused) => {
            let sent = RefusedSent::from(&refused);
            assert!(!sent.what.as_str().is_empty() && !sent.hint.as_str().is_empty());
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.[]-".contains(c);
            assert!(refused.path().chars().all(plain), "a path has names and numbers only");
            if let Why::UnknownEvent(name) = refused.why() {
                assert!(name.chars().count() <= 40);
            }
        }
    }
}

/// The request inside is read as any kind of request: no proof was checked yet.
fn signed(json: &[u8]) {
    body::<Signed>(json);
    let Ok(signed) = Signed::read(json) else { return };
    let _ = signed.request::<LoginRequest>();
    let _ = signed.request::<ChangeCredentials>();
    let _ = signed.request::<Export>();
}
