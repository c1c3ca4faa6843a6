//! Payment cards: a known issuer, a right length, and Luhn's check.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

pub(super) static RULES: &[Rule] = &[Rule {
    id: "credit_card",
    label: "CREDIT_CARD",
    tier: Tier::Noncritical,
    family: Family::Personal,
    trigger: Trigger::Number(12, 30),
    pattern: r"[0-9](?:[ .-]?[0-9]){11,18}",
    check: card,
    matches: &[
        "4111 1111 1111 1111",
        "card 5555-5555-5555-4444.",
        "378282246310005",
        "contact=4111 1111 1111 1111",
        "card:4111111111111111",
        "paid with 6011111111111117",
        "4111.1111.1111.1111",
    ],
    misses: &["4111 1111 1111 1112", "1234567890123452", "1700000000000", "order 4111111111111111123456"],
}];

fn card(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let spaced = found.value().iter().any(|byte| !byte.is_ascii_digit());
    let told =
        found.follows(&["card", "visa", "mastercard", "amex", "maestro", "credit", "debit", " cc "], 48);
    let right = luhn(&digits)
        && found.stands_alone()
        && (issuer(&digits)
            || (told
                && (matches!(digits[0], 2..=6)
                    || digits.starts_with(&[1, 8, 0, 0])
                    || digits.starts_with(&[2, 1, 3, 1]))));
    let grouped = !spaced || groups(found.value());
    (right && grouped && digits.iter().any(|digit| *digit != digits[0])).then(|| found.secret.clone())
}

/// Groups of two or more digits that one sign separates throughout.
fn groups(value: &[u8]) -> bool {
    let signs: Vec<u8> = value.iter().copied().filter(|byte| !byte.is_ascii_digit()).collect();
    let even = signs.windows(2).all(|pair| pair[0] == pair[1]);
    even && value.split(|byte| !byte.is_ascii_digit()).all(|group| group.len() >= 2)
}

fn issuer(digits: &[u8]) -> bool {
    let lead = |count: usize| digits.iter().take(count).fold(0u32, |sum, digit| sum * 10 + u32::from(*digit));
    let length = digits.len();
    match digits[0] {
        4 => matches!(length, 13 | 16 | 19),
        5 => matches!(lead(2), 50..=58) && length == 16,
        2 => matches!(lead(4), 2221..=2720 | 2200..=2204) && length == 16,
        3 => {
            (matches!(lead(2), 34 | 37) && length == 15)
                || ((matches!(lead(2), 36 | 38 | 39) || matches!(lead(3), 300..=305)) && length == 14)
                || (matches!(lead(4), 3528..=3589) && length >= 16)
        }
        6 => matches!(length, 16..=18) || (lead(2) == 62 && length == 19),
        // Troy.
        9 => lead(4) == 9792 && length == 16,
        _ => false,
    }
}

pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let doubled = u32::from(*digit) << (at % 2);
            if doubled > 9 { doubled - 9 } else { doubled }
        })
        .sum();
    sum.is_multiple_of(10)
}
