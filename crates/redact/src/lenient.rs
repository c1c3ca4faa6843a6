//! JSON as other programs write it: with a mark of UTF-8 before it, and with halves of surrogate pairs in its strings, where
//! text was cut in the middle of a sign.

use serde::de::DeserializeOwned;

/// Reads a JSON value. A half of a pair that stands alone is read as U+FFFD; every other fault is an error, as ever.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes)
        .or_else(|error| serde_json::from_slice(&with_whole_pairs(bytes).ok_or(error)?))
}

/// The same JSON with U+FFFD in place of each half of a surrogate pair that stands alone; `None` if there is none.
pub fn with_whole_pairs(json: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = Vec::new();
    let (mut at, mut kept) = (0, 0);
    while let Some(slash) = memchr::memchr(b'\\', json.get(at..)?).map(|offset| at + offset) {
        at = match (unit(slash), unit(slash + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => slash + 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(&json[kept..slash]);
                out.extend_from_slice(b"\\ufffd");
                kept = slash + 6;
                kept
            }
            // What stands behind a backslash is none of its own.
            _ => (slash + 2).min(json.len()),
        };
    }
    out.extend_from_slice(&json[kept..]);
    (kept > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_of_pairs_are_read_as_what_they_are_not() {
        for (line, expected) in [
            (r#""ok \ud83d lone""#, "ok \u{fffd} lone"),
            (r#""\ude00\ud83d\ude00\ud83d""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            ("\u{feff}\"marked\"", "marked"),
        ] {
            assert_eq!(read_json::<String>(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in [&b"\"open"[..], b"word", b"\"\xff\"", b"\"\\", b"{\"a\": \"\\u12\"", b"\"\\ud83d"] {
            assert!(read_json::<serde_json::Value>(line).is_err());
        }
    }

    proptest! {
        /// Escapes, whole and cut anywhere, in a line of any other signs.
        #[test]
        fn any_line_is_read_or_refused(line in r#"(\\u[dD][89abcdf][0-9a-f]{0,2}|\\|"|[a-f0-9]|\PC){0,24}"#) {
            let whole = serde_json::to_string(&line).unwrap();
            prop_assert_eq!(with_whole_pairs(whole.as_bytes()), None);
            prop_assert_eq!(read_json::<String>(whole.as_bytes()).unwrap(), line.clone());
            if let Ok(read) = read_json::<String>(format!("\"{line}\"").as_bytes()) {
                prop_assert!(read.len() <= line.len());
            }
        }
    }
}
