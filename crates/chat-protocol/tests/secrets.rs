//! `Debug` shows no ciphertext and no secret; a proof is over the very bytes that are sent.

use confidant_chat_format::{Login, Origin, RecoveryCode, Root};
use confidant_chat_protocol::describe::{Dice, bodies};
use confidant_chat_protocol::{
    Body as _, ChangeCredentials, ClientEvent, ClientFrame, Export, List, Secret, ServerEvent, ServerFrame,
    Signed, SignerName, Text,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

/// Fields whose short texts are secret or personal; every long text is an envelope or a body.
const HIDDEN: &[&str] = &[
    "ticket",
    "session",
    "challenge",
    "claim",
    "secret",
    "totp",
    "code",
    "body",
    "login",
    "proof",
    "server_salt",
    "invite",
    "id",
    "chat",
    "account",
    "device",
    "item",
    "message",
    "what",
    "hint",
    "receipt",
    "sealed",
];

fn hides(json: &[u8], debug: &str) {
    let value: Value = serde_json::from_slice(json).expect("JSON");
    let mut texts = Vec::new();
    collect("", &value, &mut texts);
    for text in texts {
        assert!(!debug.contains(&text), "{text} in {debug}");
    }
}

fn collect(name: &str, value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if text.len() > 43 || (text.len() > 5 && HIDDEN.contains(&name)) => {
            out.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(name, item, out)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            if name.starts_with("chat_") && name.len() > 20 {
                out.push(name.clone());
            }
            collect(name, value, out);
        }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn debug_shows_no_content(bytes in vec(any::<u8>(), 20_000..60_000)) {
        let dice = &mut Dice::from_bytes(&bytes);
        for event in ClientEvent::one_of_each(dice) {
            let frame = ClientFrame { id: 1, event };
            hides(&frame.write().unwrap(), &format!("{frame:?}"));
        }
        for event in ServerEvent::one_of_each(dice) {
            let frame = ServerFrame { re: None, seq: None, event };
            hides(&frame.write().unwrap(), &format!("{frame:?}"));
        }
        for (_, request, answer) in bodies(dice) {
            hides(&request.json, &request.debug);
            hides(&answer.json, &answer.debug);
        }
    }
}

#[test]
fn a_proof_is_over_the_bytes_that_are_sent() {
    let (root, origin) =
        (Root::from_recovery(&RecoveryCode::random()), Origin::parse("https://a.example").unwrap());
    let login = SignerName::Login(Login::parse("ana").unwrap());
    let change =
        ChangeCredentials { account_rev: 3, credentials: List::default(), totp: None, totp_off: false };
    let signed = Signed::sign(&change, &root, &origin, login, Secret::from_bytes([1; 32])).unwrap();
    let sent = Signed::read(&signed.write().unwrap()).unwrap();
    let key = root.public_key();
    let verify = |signed: &Signed| {
        signed.statement::<ChangeCredentials>(&origin).verify(Some(&key), &signed.proof.0).is_ok()
    };
    assert!(verify(&sent));
    assert_eq!(sent.request::<ChangeCredentials>().unwrap(), change);

    // The same request in another spelling: it reads the same, and is not what was signed.
    let spaced = Signed { body: Text::new(sent.body.as_str().replace(':', ": ")).unwrap(), ..sent.clone() };
    assert_eq!(spaced.request::<ChangeCredentials>().unwrap(), change);
    assert!(!verify(&spaced));
    // Another purpose, another challenge.
    assert!(sent.statement::<Export>(&origin).verify(Some(&key), &sent.proof.0).is_err());
    assert!(!verify(&Signed { challenge: Secret::from_bytes([2; 32]), ..sent }));
}
