//! Large frames, made smaller: raw DEFLATE (RFC 1951) in a binary message, for whoever asked for it in the handshake.
//!
//! ```text
//! Sec-WebSocket-Protocol: confidant.deflate ─▶ frames of 1 KiB and more: binary, packed      others: text, as they are
//! ```
//!
//! Envelopes travel as base64url, four thirds of their size; packed they have their own size again. Nothing is packed that
//! comes in: a server that unpacks what strangers send can be made to unpack forever. Easy to get wrong: packing secrets
//! beside what an attacker chose, whose length then tells. A frame has ciphertext, ids and hashes, and no secret of a session.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use tokio_websockets::Message;

/// The subprotocol of whoever takes packed frames.
pub(crate) const PACKED: &str = "confidant.deflate";

/// How frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text.
    Plain,
    /// Large ones packed.
    Packed,
}

impl Form {
    /// The message that carries a frame. A large one is packed on a thread that may take its time.
    pub(crate) async fn message(self, json: Vec<u8>) -> Message {
        match self {
            Self::Packed if json.len() >= LARGE => {
                let packed = tokio::task::spawn_blocking(move || match pack(&json) {
                    Some(packed) => Message::binary(packed),
                    None => Message::text(json),
                });
                // Only a runtime that ends gives none.
                packed.await.unwrap_or_else(|_| Message::binary(&b""[..]))
            }
            _ => match pack_small(self, &json) {
                Some(packed) => Message::binary(packed),
                None => Message::text(json),
            },
        }
    }
}

fn pack_small(form: Form, json: &[u8]) -> Option<Vec<u8>> {
    if form == Form::Packed && json.len() >= SMALL { pack(json) } else { None }
}

fn pack(json: &[u8]) -> Option<Vec<u8>> {
    let mut packing = DeflateEncoder::new(Vec::with_capacity(json.len() / 5 * 4), LEVEL);
    packing.write_all(json).ok()?;
    packing.finish().ok()
}

/// The fastest level with codes made for what is packed: those of level 1 are fixed, and base64url stays as long as it is.
const LEVEL: Compression = Compression::new(2);
/// A frame of so many bytes is packed.
const SMALL: usize = 1024;
/// One of so many elsewhere: others wait for this thread.
const LARGE: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[tokio::test]
    async fn large_frames_are_packed_for_whoever_takes_them() {
        for (form, length, is_text) in [
            (Form::Plain, 100_000, true),
            (Form::Packed, SMALL - 1, true),
            (Form::Packed, SMALL, false),
            (Form::Packed, LARGE - 1, false),
            (Form::Packed, LARGE, false),
        ] {
            let json = vec![b'1'; length];
            let message = form.message(json.clone()).await;
            assert_eq!(message.is_text(), is_text, "{form:?} {length}");
            let mut whole = message.as_payload().to_vec();
            if !is_text {
                assert!(message.is_binary());
                let packed = std::mem::take(&mut whole);
                DeflateDecoder::new(packed.as_slice()).read_to_end(&mut whole).unwrap();
            }
            assert_eq!(whole, json);
        }
    }
}
