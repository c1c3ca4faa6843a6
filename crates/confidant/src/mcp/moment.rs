//! Moments as RFC 3339 writes them.

/// Milliseconds since 1970 of `2025-12-21T12:00:00Z`, `…12:00:00.5+02:00`, or a day, which begins at midnight in UTC.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let day = days(number(text, 0, 4)?, number(text, 5, 2)?, number(text, 8, 2)?)?;
    if text.get(4..5) != Some("-") || text.get(7..8) != Some("-") {
        return None;
    }
    let Some(rest) = text.get(10..).filter(|rest| !rest.is_empty()) else { return Some(day * DAY) };
    let clock = rest.strip_prefix(['T', 't', ' '])?;
    let (hour, minute, second) = (number(clock, 0, 2)?, number(clock, 3, 2)?, number(clock, 6, 2)?);
    let good = clock.get(2..3) == Some(":") && clock.get(5..6) == Some(":");
    // A leap second is the second before it, as in POSIX.
    if !good || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(clock.get(8..)?)?;
    let seconds = hour * 3600 + minute * 60 + second.min(59);
    Some(day * DAY + seconds * 1000 + millis - offset(zone)?)
}

const DAY: i64 = 86_400_000;

fn number(text: &str, at: usize, digits: usize) -> Option<i64> {
    let digits = text.get(at..at + digits)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// The milliseconds of a fraction, and what comes after it.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let mut digits: String = rest.get(..length.min(3))?.to_owned();
    if digits.is_empty() {
        return None;
    }
    digits.extend(std::iter::repeat_n('0', 3 - digits.len()));
    Some((digits.parse().ok()?, rest.get(length..)?))
}

/// The milliseconds that a zone is before UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = (number(zone, 1, 2)?, number(zone, 4, 2)?);
    let good = zone.len() == 6 && zone.get(3..4) == Some(":") && hours < 24 && minutes < 60;
    good.then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March so that the leap day is the
/// last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-01", Some(0)),
            ("2025-12-21T12:00:00Z", Some(1_766_318_400_000)),
            ("2025-12-21t12:00:00.5z", Some(1_766_318_400_500)),
            ("2025-12-21 14:00:00.123456+02:00", Some(1_766_318_400_123)),
            ("2025-12-21T06:30:00-05:30", Some(1_766_318_400_000)),
            ("2024-02-29", Some(1_709_164_800_000)),
            ("2023-02-29", None),
            ("2025-13-01", None),
            ("2025-12-21T24:00:00Z", None),
            ("2025-12-21T12:00:00", None),
            ("2025-12-21T12:00:00+2", None),
            ("2025-12-21T12:00:00.Z", None),
            ("yesterday", None),
            ("", None),
            ("２０２５-12-21", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn it_agrees_with_how_moments_are_written() {
        for seconds in (0..4_000_000_000).step_by(12_345_679) {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            let text = humantime::format_rfc3339_seconds(time).to_string();
            assert_eq!(parse(&text), Some(i64::try_from(seconds).unwrap() * 1000), "{text}");
        }
    }
}
