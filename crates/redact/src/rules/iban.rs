//! International bank account numbers: a country, its length, its shape, and the remainder of 97.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

pub(super) static RULES: &[Rule] = &[Rule {
    id: "iban",
    label: "IBAN",
    tier: Tier::Noncritical,
    family: Family::Personal,
    trigger: Trigger::Word(4, 34),
    pattern: r"[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,30}",
    check: iban,
    matches: &["DE89 3704 0044 0532 0130 00", "to GB82WEST12345698765432 today", "NO93-8601-1117-947"],
    misses: &["DE89 3704 0044 0532 0130 01", "XX89370400440532013000", "DE8937040044053201300"],
}];

fn iban(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let country = [value[0].to_ascii_uppercase(), value[1].to_ascii_uppercase()];
    let length = LENGTHS.iter().find(|(code, _)| code.as_bytes() == country)?.1;
    // The pattern may have run on into the next word: the country says where the number ends.
    let mut taken = Vec::with_capacity(length);
    let (mut end, mut lower, mut upper) = (0, 0, 0);
    for (at, byte) in value.iter().enumerate() {
        if byte.is_ascii_alphanumeric() {
            taken.push(byte.to_ascii_uppercase());
            lower += usize::from(byte.is_ascii_lowercase());
            upper += usize::from(byte.is_ascii_uppercase());
            end = at + 1;
            if taken.len() == length {
                break;
            }
        }
    }
    let next = found.text.get(found.secret.start + end);
    let shut = !next.is_some_and(u8::is_ascii_alphanumeric);
    let right = taken.len() == length && shut && (lower == 0 || upper == 0) && remainder(&taken) == 1;
    right.then(|| found.secret.start..found.secret.start + end)
}

fn remainder(iban: &[u8]) -> u32 {
    iban.iter().cycle().skip(4).take(iban.len()).fold(0, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte - b'A') + 10) % 97,
    })
}

/// Lengths by country, those that use the form without being registered too; not yet compared with SWIFT's registry.
const LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AO", 25),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BF", 28),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BJ", 28),
    ("BR", 29),
    ("BY", 28),
    ("CF", 27),
    ("CG", 27),
    ("CH", 21),
    ("CI", 28),
    ("CM", 27),
    ("CR", 22),
    ("CV", 25),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("DZ", 26),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GA", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GQ", 27),
    ("GR", 27),
    ("GT", 28),
    ("GW", 25),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IR", 26),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KM", 27),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MA", 28),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MG", 27),
    ("MK", 19),
    ("ML", 28),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("MZ", 25),
    ("NE", 28),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SN", 28),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TD", 27),
    ("TG", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];
