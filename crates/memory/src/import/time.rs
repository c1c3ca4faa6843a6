//! Points in time as agents write them; [`crate::when`] reads and writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::when;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub(crate) type Millis = i64;

/// The time in a JSON leaf, if it is one.
pub(crate) fn of(value: &Value) -> Option<Millis> {
    when::parse(value)
}

/// The time that a text says.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    when::parse_text(text)
}

/// The form that goes out.
pub(crate) fn format(at: Millis) -> String {
    when::format(at)
}

/// The time of a file.
pub(crate) fn of_file(modified: SystemTime) -> Option<Millis> {
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}
