//! Messages as they are on the bus: sealed under a key that only this installation's processes have, or plain.
//!
//! A sealed message is bound to the way it goes, so that a request is never taken for a response and no gateway is given
//! another's. That one is not taken twice is the claim's business, and the time's: see `worker`.

use confidant_seal::{Context, Key, Scope, Sealed, Suite, open, seal};
use zeroize::Zeroizing;

use super::Speech;

/// Seals and opens what goes over one bus.
#[derive(Clone, Debug)]
pub(super) struct Seals {
    key: Key,
    speech: Speech,
}

/// Bytes on their way. Made here only, and taken by the link only, which keeps nothing.
#[derive(Debug)]
pub(super) struct Payload(Zeroizing<Vec<u8>>);

impl Payload {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Seals {
    pub(super) fn new(key: Key, speech: Speech) -> Self {
        Self { key, speech }
    }

    /// A message for this way.
    pub(super) fn close(&self, way: &str, json: Zeroizing<Vec<u8>>) -> Payload {
        Payload(match self.speech {
            Speech::Plain => json,
            Speech::Sealed => {
                Zeroizing::new(seal(&self.key, SUITE, &context(way), REVISION, &json).into_bytes())
            }
        })
    }

    /// The JSON of a message that came this way, if it is one that we listen to.
    pub(super) fn open(&self, way: &str, bytes: Vec<u8>) -> Option<Zeroizing<Vec<u8>>> {
        match self.speech {
            Speech::Plain => Some(Zeroizing::new(bytes)),
            Speech::Sealed => {
                let opened = open(&self.key, &context(way), &Sealed::from_bytes(bytes)).ok()?;
                (opened.rev == REVISION).then_some(opened.data)
            }
        }
    }

    /// What a turn is called on a plain bus, where everybody hears every answer: the name that it has in its session is
    /// any word, and others may have the same. Made again, it is called the same.
    pub(super) fn plain_name(&self, scope: &Scope, request_id: &str) -> String {
        // The scope's bytes say themselves where they end.
        let mut turn = scope.canonical();
        turn.extend_from_slice(request_id.as_bytes());
        self.key.tag("plain", &turn).to_string()
    }

    /// The name of something under which claims know it.
    pub(super) fn name(&self, of: &str) -> String {
        self.key.tag("claim", of.as_bytes()).to_string()
    }
}

fn context(way: &str) -> Context<'_> {
    Context { purpose: "bus", owner: "", container: way, object: "", field: "" }
}

const SUITE: Suite = Suite::ChaCha20Poly1305;
const REVISION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_goes_its_way_and_no_other() {
        let seals = Seals::new(Key::from_bytes([7; 32]), Speech::Sealed);
        let json = || Zeroizing::new(br#"{"request_id":"r","query":"zq7canary"}"#.to_vec());
        let payload = seals.close("requests", json());
        let bytes = payload.as_bytes().to_vec();
        assert!(!bytes.windows(9).any(|window| window == b"zq7canary"));
        assert_eq!(seals.open("requests", bytes.clone()), Some(json()));
        assert_eq!(seals.open("responses:1", bytes.clone()), None);
        let stranger = Seals::new(Key::from_bytes([8; 32]), Speech::Sealed);
        assert_eq!(stranger.open("requests", bytes.clone()), None);
        for at in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert_eq!(seals.open("requests", altered), None, "byte {at}");
        }
        // What is plain is not listened to among sealed messages.
        assert_eq!(seals.open("requests", json().to_vec()), None);
    }

    #[test]
    fn turns_of_two_sessions_are_never_called_the_same() {
        let seals = Seals::new(Key::from_bytes([7; 32]), Speech::Plain);
        let scope = |id| Scope::parse(confidant_seal::TenantId::new("default").unwrap(), id).unwrap();
        let names = [
            seals.plain_name(&scope("http:r:main:ann"), "1"),
            seals.plain_name(&scope("http:r:main:ann"), "2"),
            seals.plain_name(&scope("http:r:main:ann1"), ""),
            seals.plain_name(&scope("http:r:main:bob"), "1"),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{at}");
        }
        assert_eq!(names[0], seals.plain_name(&scope("http:r:main:ann"), "1"));
        let stranger = Seals::new(Key::from_bytes([8; 32]), Speech::Plain);
        assert_ne!(names[0], stranger.plain_name(&scope("http:r:main:ann"), "1"));
    }
}
