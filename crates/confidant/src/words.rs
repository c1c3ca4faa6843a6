//! Plain words for what libraries say: a person who reads an error should not have to know Rust.
//!
//! Used where errors are shown, so that every message that passes there is covered, whoever made it.

use std::borrow::Cow;

/// The text with the words of the standard library and of serde replaced by plain ones.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    for (theirs, ours) in SAID {
        if plain.contains(theirs) {
            plain = Cow::Owned(plain.replace(theirs, ours));
        }
    }
    for (types, ours) in EXPECTED {
        for name in *types {
            let theirs = format!("expected {name}");
            if let Some(at) = plain.find(&theirs)
                && plain[at + theirs.len()..].chars().next().is_none_or(|next| !next.is_alphanumeric())
            {
                plain = Cow::Owned(plain.replacen(&theirs, &format!("expected {ours}"), 1));
            }
        }
    }
    plain
}

/// What kinds of I/O errors are called, and how serde calls what it found.
const SAID: &[(&str, &str)] = &[
    ("entity not found", "no such file or folder"),
    ("entity already exists", "it already exists"),
    ("invalid input parameter", "the system does not accept that"),
    ("stream did not contain valid UTF-8", "it is not UTF-8 text"),
    ("(uncategorized error)", "(the system reports a fault)"),
    ("(other error)", "(the system reports a fault)"),
    ("(invalid data)", "(its content cannot be read)"),
    ("invalid type: string", "this is text"),
    ("invalid type: integer", "this is a number"),
    ("invalid type: floating point", "this is a number with a fraction"),
    ("invalid type: boolean", "this is true or false"),
    ("invalid type: sequence", "this is a list"),
    ("invalid type: map", "this is a table"),
    ("invalid type: datetime", "this is a date"),
    ("invalid type: unit value", "this is nothing"),
    ("invalid type: null", "this is null"),
    ("invalid value: string", "this text is not accepted"),
    ("invalid value: integer", "this number is not accepted"),
    ("invalid value: floating point", "this number is not accepted"),
    ("unknown variant, expected one of", "this is not known; choose one of"),
    ("unknown variant, expected", "this is not known; choose"),
    ("missing field", "missing key"),
];

/// What serde expected, by the names of types.
const EXPECTED: &[(&[&str], &str)] = &[
    (&["a nonzero usize", "a nonzero u16", "a nonzero u32", "a nonzero u64"], "a whole number from 1"),
    (&["usize", "u8", "u16", "u32", "u64", "u128"], "a whole number from 0"),
    (&["isize", "i8", "i16", "i32", "i64", "i128"], "a whole number"),
    (&["f32", "f64"], "a number"),
    (&["bool", "a boolean"], "true or false"),
    (&["a string", "path string"], "text"),
    (&["a sequence"], "a list"),
    (&["a map"], "a table"),
    (&["socket address", "IPv4 socket address"], "an address and a port, such as 127.0.0.1:7367"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_kind_of_io_error_is_said_in_the_words_of_rust() {
        use std::io::ErrorKind;
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::AlreadyExists,
            ErrorKind::PermissionDenied,
            ErrorKind::InvalidInput,
            ErrorKind::NotADirectory,
            ErrorKind::Other,
        ] {
            let said = format!("x cannot be read ({kind})");
            let said = plain(&said);
            for theirs in ["entity", "parameter", "other error", "uncategorized"] {
                assert!(!said.contains(theirs), "{kind:?}: {said}");
            }
        }
    }

    #[test]
    fn types_are_called_by_what_they_hold() {
        for (theirs, ours) in [
            ("invalid type: string, expected usize", "this is text, expected a whole number from 0"),
            ("invalid type: integer, expected a boolean", "this is a number, expected true or false"),
            (
                "invalid value: integer, expected a nonzero usize",
                "this number is not accepted, expected a whole number from 1",
            ),
            ("unknown variant, expected one of `a`, `b`", "this is not known; choose one of `a`, `b`"),
            ("nothing to say here", "nothing to say here"),
            ("expected u16x", "expected u16x"),
        ] {
            assert_eq!(plain(theirs), ours);
        }
    }
}
