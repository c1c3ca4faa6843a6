//! Which events are believed. Apart from reading them, which knows nothing of the SDK.

use matrix_sdk::deserialized_responses::{TimelineEventKind, VerificationLevel, VerificationState};

use crate::heard::Heard;

impl Heard {
    /// Whether it comes from whom it names, as far as the room can tell: in an encrypted one, a server could have written what
    /// is not encrypted, and put words that somebody encrypted under another's name.
    pub(crate) fn is_believable(&self, kind: &TimelineEventKind, in_encrypted_room: bool) -> bool {
        match kind {
            TimelineEventKind::Decrypted(decrypted) => !matches!(
                decrypted.encryption_info.verification_state,
                VerificationState::Unverified(VerificationLevel::MismatchedSender)
            ),
            TimelineEventKind::PlainText { .. } => !(in_encrypted_room && self.is_said()),
            // Nothing was understood, so there is nothing to believe.
            TimelineEventKind::UnableToDecrypt { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::heard::tests::{event, read};

    #[test]
    fn words_are_believed_where_nobody_could_have_put_them() {
        let said = event("m.room.message", json!({ "msgtype": "m.text", "body": "hi" }));
        let gone = event("m.room.redaction", json!({ "redacts": "$0" }));
        let plain = |event: &Value| TimelineEventKind::PlainText {
            event: serde_json::from_value(event.clone()).unwrap(),
        };
        let decrypted = |state: Value| {
            let info = json!({ "sender": "@a:x", "sender_device": null, "forwarder": null, "verification_state": state,
                "algorithm_info": { "OlmV1Curve25519AesSha2": { "curve25519_public_key_base64": "k" } } });
            TimelineEventKind::Decrypted(matrix_sdk::deserialized_responses::DecryptedRoomEvent {
                event: serde_json::from_value(said.clone()).unwrap(),
                encryption_info: std::sync::Arc::new(serde_json::from_value(info).unwrap()),
                unsigned_encryption_info: None,
            })
        };
        for in_encrypted_room in [false, true] {
            let believed =
                |event: &Value, kind: &TimelineEventKind| read(event).is_believable(kind, in_encrypted_room);
            assert_eq!(believed(&said, &plain(&said)), !in_encrypted_room);
            assert!(believed(&gone, &plain(&gone)), "nobody can encrypt this");
            assert!(believed(&said, &decrypted(json!("Verified"))));
            assert!(believed(&said, &decrypted(json!({ "Unverified": "UnsignedDevice" }))));
            assert!(!believed(&said, &decrypted(json!({ "Unverified": "MismatchedSender" }))));
        }
    }
}
