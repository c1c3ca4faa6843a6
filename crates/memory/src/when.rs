//! Times as sessions write them and as memories keep them: UTC, to the millisecond.

use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Reads RFC 3339, or seconds or milliseconds since 1970.
pub fn parse(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => parse_text(text),
        Value::Number(number) => {
            let number = number.as_f64()?;
            let millis = if number.abs() < SECONDS_UNTIL_5138 { number * 1000.0 } else { number };
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (millis.abs() < LAST_MILLIS as f64).then_some(millis as i64)
        }
        _ => None,
    }
}

/// Reads RFC 3339.
#[must_use]
pub fn parse_text(text: &str) -> Option<i64> {
    let text = text.trim();
    // What has no offset is taken for UTC, and a date for its midnight.
    let candidates = [text.to_owned(), format!("{text}Z"), format!("{text}T00:00:00Z")];
    let at = candidates.iter().find_map(|text| OffsetDateTime::parse(text, &Rfc3339).ok())?;
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

/// Writes RFC 3339 in UTC; seconds only, unless there is a fraction.
#[must_use]
pub fn format(millis: i64) -> String {
    let millis = millis.clamp(-LAST_MILLIS, LAST_MILLIS);
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .to_offset(UtcOffset::UTC);
    at.format(&Rfc3339).unwrap_or_default()
}

/// When a session was: what it says itself, else its last message's time.
#[must_use]
pub fn of_session(session: &Value) -> Option<i64> {
    let own = session.get("timestamp").and_then(parse);
    own.or_else(|| {
        let messages = session.get("messages")?.as_array()?;
        messages.iter().rev().find_map(|message| message.get("timestamp").and_then(parse))
    })
}

/// The end of the year 9999, which RFC 3339 can still write.
const LAST_MILLIS: i64 = 253_402_300_799_000;
const SECONDS_UNTIL_5138: f64 = 1e11;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_come_in_several_spellings_and_go_out_in_one() {
        for (value, expected) in [
            (json!("2025-12-21T12:00:00Z"), "2025-12-21T12:00:00Z"),
            (json!("2025-12-21T14:00:00+02:00"), "2025-12-21T12:00:00Z"),
            (json!("2025-12-21T12:00:00.25Z"), "2025-12-21T12:00:00.25Z"),
            (json!("2025-12-21T12:00:00"), "2025-12-21T12:00:00Z"),
            (json!("2025-12-21"), "2025-12-21T00:00:00Z"),
            (json!(1_766_318_400), "2025-12-21T12:00:00Z"),
            (json!(1_766_318_400_000_i64), "2025-12-21T12:00:00Z"),
        ] {
            assert_eq!(parse(&value).map(format).as_deref(), Some(expected), "{value}");
        }
        for value in [json!("yesterday"), json!(null), json!(1e300), json!({})] {
            assert_eq!(parse(&value), None, "{value}");
        }
    }
}
