//! Times as sessions write them and as memories keep them: UTC, to the millisecond.

use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Reads RFC 3339, or a number of seconds, milliseconds or microseconds since 1970.
pub fn parse(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => parse_text(text),
        Value::Number(number) => {
            let millis = match number.as_f64()? {
                n if !n.is_finite() || n <= 0.0 => return None,
                n if n < SECONDS_UNTIL_5138 => n * 1e3,
                n if n < MILLIS_UNTIL_5138 => n,
                n => n / 1e3,
            };
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            (millis < LAST_MILLIS as f64).then_some(millis as i64)
        }
        _ => None,
    }
}

/// Reads RFC 3339, also with a blank for the `T`, without seconds, or without a zone: then it is taken for UTC, so that
/// the same text gives the same time everywhere. A date is its midnight.
#[must_use]
pub fn parse_text(text: &str) -> Option<i64> {
    let text = text.trim();
    if !text.is_ascii() || !(10..=40).contains(&text.len()) {
        return None;
    }
    let (date, rest) = text.split_at(10);
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest);
    // A zone's sign cannot be in the first five characters, which are hours and minutes.
    let zone_at = rest.char_indices().find(|(at, c)| *at >= 5 && matches!(c, 'Z' | 'z' | '+' | '-'));
    let (clock, zone) = rest.split_at(zone_at.map_or(rest.len(), |(at, _)| at));
    let clock = match clock.len() {
        0 if zone.is_empty() => "00:00:00".to_owned(),
        5 => format!("{clock}:00"),
        _ => clock.to_owned(),
    };
    let zone = match zone.as_bytes() {
        [] => "Z".to_owned(),
        [_, _, _] => format!("{zone}:00"),
        [_, b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] => format!("{}:{}", &zone[..3], &zone[3..]),
        _ => zone.to_owned(),
    };
    let at = OffsetDateTime::parse(&format!("{date}T{clock}{zone}"), &Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos() / 1_000_000).ok()
}

/// A day as people say and write it, for those who look for it: `8 May 2023 2023-05-08`.
pub(crate) fn spoken(millis: i64) -> String {
    let written = format(millis);
    let day = written.split('T').next().unwrap_or_default();
    let mut parts = day.split('-');
    let (year, month) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let date = parts.next().unwrap_or_default().trim_start_matches('0');
    let month = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    format!("{date} {} {year} {day}", month.unwrap_or(&""))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

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
const MILLIS_UNTIL_5138: f64 = 1e14;

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
            (json!("2025-12-21 12:00"), "2025-12-21T12:00:00Z"),
            (json!("2025-12-21 14:00:00+0200"), "2025-12-21T12:00:00Z"),
            (json!("2025-12-21T10:00:00-02"), "2025-12-21T12:00:00Z"),
            (json!(1_766_318_400_000_000_i64), "2025-12-21T12:00:00Z"),
            (json!(1_766_318_400), "2025-12-21T12:00:00Z"),
            (json!(1_766_318_400_000_i64), "2025-12-21T12:00:00Z"),
        ] {
            assert_eq!(parse(&value).map(format).as_deref(), Some(expected), "{value}");
        }
        for value in
            [json!("yesterday"), json!("2025-13-01"), json!(null), json!(1e300), json!(-5), json!({})]
        {
            assert_eq!(parse(&value), None, "{value}");
        }
    }
}
