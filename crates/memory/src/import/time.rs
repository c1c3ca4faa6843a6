//! Points in time as agents write them, in milliseconds since 1970 UTC.
//!
//! Owns reading (RFC 3339, with a space for the `T`, with or without zone, and numbers of seconds, milliseconds or
//! microseconds) and the one form that goes out. Easy to get wrong: a time without zone is the agent's local time, which
//! nobody wrote down; it is taken as UTC, so that the same file gives the same session everywhere.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub(crate) type Millis = i64;

/// The time in a JSON leaf, if it is one.
pub(crate) fn of(value: &Value) -> Option<Millis> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => from_number(number.as_f64()?),
        _ => None,
    }
}

/// The time that a text says.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    let text = text.trim();
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 16 || !matches!(bytes[10], b'T' | b't' | b' ') {
        return None;
    }
    if bytes[4] != b'-' || bytes[7] != b'-' || bytes[13] != b':' {
        return None;
    }
    let (year, month, day) = (digits(&text[0..4])?, digits(&text[5..7])?, digits(&text[8..10])?);
    let (hour, minute) = (digits(&text[11..13])?, digits(&text[14..16])?);
    let (second, millis, zone) = seconds(&text[16..])?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    Some(days_before(year, month, day) * DAY + of_day - offset(zone)?)
}

/// The form that goes out: RFC 3339 in UTC, milliseconds only where there are some.
pub(crate) fn format(at: Millis) -> Option<String> {
    let (days, of_day) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// The time of a file.
pub(crate) fn of_file(modified: SystemTime) -> Option<Millis> {
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    Millis::try_from(since.as_millis()).ok()
}

/// Seconds until the year 5138, milliseconds from 1973 on, microseconds beyond.
fn from_number(number: f64) -> Option<Millis> {
    let millis = match number {
        n if !n.is_finite() || n <= 0.0 => return None,
        n if n < 1e11 => n * 1e3,
        n if n < 1e14 => n,
        n => n / 1e3,
    };
    #[expect(clippy::cast_possible_truncation, reason = "in range as compared")]
    (millis < LATEST).then_some(millis as Millis)
}

/// `:SS[.fraction]` and what follows; nothing of it is needed.
fn seconds(rest: &str) -> Option<(i64, i64, &str)> {
    let Some(rest) = rest.strip_prefix(':') else { return Some((0, 0, rest)) };
    let (second, rest) = (digits(rest.get(0..2)?)?, &rest[2..]);
    let Some(fraction) = rest.strip_prefix('.') else { return Some((second, 0, rest)) };
    let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let millis = match length {
        0 => return None,
        1 => digits(&fraction[..1])? * 100,
        2 => digits(&fraction[..2])? * 10,
        _ => digits(&fraction[..3])?,
    };
    Some((second, millis, &fraction[length..]))
}

fn offset(zone: &str) -> Option<Millis> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(zone.get(1..3)?)?;
    let minutes = match zone.get(3..)? {
        "" => 0,
        rest => digits(rest.strip_prefix(':').unwrap_or(rest))?,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

fn digits(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 9 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days_before`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * of_era + of_era / 4 - of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + of_era + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

const DAY: Millis = 86_400_000;
/// The end of the year 9999.
const LATEST: f64 = 253_402_300_800_000.0;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn again(text: &str) -> Option<String> {
        format(parse(text)?)
    }

    #[test]
    fn every_spelling_becomes_one() {
        for (input, expected) in [
            ("2025-12-21T12:00:00Z", "2025-12-21T12:00:00Z"),
            ("2025-12-21T12:00:00.5Z", "2025-12-21T12:00:00.500Z"),
            ("2025-12-21T12:00:00.123456789Z", "2025-12-21T12:00:00.123Z"),
            ("2025-12-21 12:00", "2025-12-21T12:00:00Z"),
            ("2025-12-21T01:30:00+02:00", "2025-12-20T23:30:00Z"),
            ("2025-12-31T23:30:00-0130", "2026-01-01T01:00:00Z"),
            ("2024-02-29T00:00:00+00", "2024-02-29T00:00:00Z"),
            ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(again(input).as_deref(), Some(expected), "{input}");
        }
    }

    #[test]
    fn nonsense_is_no_time() {
        for input in [
            "",
            "2025",
            "2025-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-12-21T24:00:00Z",
            "2025-12-21T12:00:00.Z",
            "2025-12-21T12:00:00+",
            "2025-12-21T12:00:00 PST",
            "2025-12-2éT12:00:00Z",
            "+025-12-21T12:00:00Z",
            "2025-12-21T12:00:0",
        ] {
            assert_eq!(parse(input), None, "{input}");
        }
    }

    #[test]
    fn numbers_are_told_apart_by_size() {
        let expected = parse("2025-06-15T15:06:40Z");
        for number in [json!(1_750_000_000), json!(1_750_000_000_000_u64), json!(1_750_000_000_000_000_u64)] {
            assert_eq!(of(&number), expected, "{number}");
        }
        for number in [json!(0), json!(-5), json!(1e300), json!(null), json!([])] {
            assert_eq!(of(&number), None, "{number}");
        }
    }

    #[test]
    fn days_count_both_ways() {
        for days in (-800_000..3_000_000).step_by(997) {
            let (year, month, day) = civil(days);
            assert_eq!(days_before(year, month, day), days);
        }
    }
}
