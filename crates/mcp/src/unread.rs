//! Messages that are no JSON, or more deeply nested than is read: answered all the same if they say whose answer it is.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};
use serde_json::Value;

/// The answer to a message that cannot be read, if it is none and has an id. Who cannot be answered is not: two sides that
/// answer each other's noise never end.
pub(super) fn refusal(message: &[u8]) -> Option<Vec<u8>> {
    // Not as something to be ignored: then nobody would look whether its numbers are too large.
    let error = serde_json::from_slice::<Value>(message).err()?;
    let id = id(message)?;
    let (what, hint) = match std::str::from_utf8(message) {
        Err(_) => ("the message is not UTF-8 text".to_owned(), "send UTF-8"),
        Ok(_) => (
            format!("the message is not readable JSON: there is an error at column {}", error.column()),
            "send one JSON-RPC message, with numbers of usual size and values nested less than a hundred deep",
        ),
    };
    said(id, format!("{what}; hint: {hint}"))
}

/// The answer to a message of which only the first and the last is there. Some write the id last.
pub(super) fn too_long(start: &[u8], end: &[u8]) -> Option<Vec<u8>> {
    let id = id(start).or_else(|| {
        let at = end.windows(5).rposition(|part| part == b"\"id\":")?;
        serde_json::from_slice(end[at + 5..].trim_ascii_end().strip_suffix(b"}")?).ok()
    })?;
    said(id, "the message is longer than 16 MiB; hint: leave out large tool outputs".to_owned())
}

fn said(id: RequestId, message: String) -> Option<Vec<u8>> {
    let error = ErrorData::new(ErrorCode::PARSE_ERROR, message, None);
    serde_json::to_vec(&JsonRpcError::new(Some(id), error)).ok()
}

/// The id of a message, read without understanding the rest.
fn id(message: &[u8]) -> Option<RequestId> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = message.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = at + 1 + string(&message[at + 1..])?;
                let rest = message[end..].trim_ascii_start();
                if depth == 1
                    && &message[at..end] == b"\"id\""
                    && let Some(value) = rest.strip_prefix(b":")
                {
                    return serde_json::Deserializer::from_slice(value).into_iter().next()?.ok();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The length of a string behind its first quote, with its last.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_an_id_is_answered() {
        let deep = format!(r#"{{"params":{}1{},"id":7}}"#, "[".repeat(200), "]".repeat(200));
        for (message, id) in [
            (deep.as_str(), "7"),
            (r#"{"id": "a\"b", "params": {"number": 1e999}}"#, r#""a\"b""#),
            (r#"{"params":{"id":1,"text":"\"id\":2"},"id":3,"method":oops}"#, "3"),
        ] {
            let answer = String::from_utf8(refusal(message.as_bytes()).unwrap()).unwrap();
            assert!(answer.contains(&format!(r#""id":{id}"#)) && answer.contains("hint: "), "{answer}");
        }
        for message in [&br#"{"id":1,"method":"ping"}"#[..], b"noise", br#"{"method":oops}"#, b"{\"id\":"] {
            assert_eq!(refusal(message), None);
        }
    }

    proptest! {
        #[test]
        fn any_message_is_answered_or_not(message in prop::collection::vec(prop::sample::select(b"{}[]\":,\\id1x\xff ".to_vec()), 0..48)) {
            let _ = refusal(&message);
        }
    }
}
