//! Postal addresses: a house number with a street's name and kind, as English, German, French, Spanish and Nordic
//! people write them. Best effort.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "street_address",
        label: "ADDRESS",
        tier: Tier::Noncritical,
        family: Family::Personal,
        trigger: Trigger::Keyword(&[
            "street",
            "avenue",
            "road",
            "boulevard",
            "lane",
            "drive",
            "ave",
            "blvd",
            "court",
            "terrace",
            "parkway",
            "highway",
        ]),
        pattern: r"(?:[Ss]treet|[Aa]venue|[Rr]oad|[Bb]oulevard|Lane|Drive|Ave|Blvd|Court|Terrace|Parkway|Highway)\b\.?",
        check: numbered,
        matches: &["at 226 Thomas Avenue today", "12 Baker Street, London"],
        misses: &["the road ahead", "on Main Street", "5 roads", "took 3 Drive tests off road", "   road"],
    },
    Rule {
        id: "street_address_short",
        label: "ADDRESS",
        tier: Tier::Noncritical,
        family: Family::Personal,
        // With what stands behind them, since words that begin so are everywhere.
        trigger: Trigger::Anywhere(&[
            " st ", " st.", " st,", " st\n", " st\"", " rd ", " rd.", " rd,", " rd\n", " rd\"", " way,",
            " dr,", " ln,", " pl,", " ct,", " way apt", " dr apt", " ln apt", " close,", " square,",
        ]),
        pattern: concat!(
            r" (?:(?:St|Rd|Dr|Ln|Pl|Ct)\b\.?|Way\b|Close\b|Square\b)",
            r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Floor|#)\.? ?[A-Z0-9-]{1,5}\b)?",
            r"(?:, [A-Z][a-z]{2,20}(?: [A-Z][a-z]{2,20})?,? [A-Z]{2,3} [0-9]{4,5}\b)?",
        ),
        check: numbered_short,
        matches: &[
            "42 Wallaby Way, Sydney NSW 2000",
            "lives at 123 Main St Apt 4B",
            "123 Main St, Springfield",
        ],
        misses: &["3 The Right Way to do it", "5 Dr Who", "version 2 St", "12 Angry Men Close the door"],
    },
    Rule {
        id: "street_number",
        label: "ADDRESS",
        tier: Tier::Noncritical,
        family: Family::Personal,
        trigger: Trigger::Anywhere(&[
            "straße", "strasse", "gasse", "allee", "platz", "gatan", "vägen", "vej", "straat", "laan",
            "katu", "gracht", "plein", "kade", "weg",
        ]),
        pattern: r"(?i)(?:stra(?:ß|ss)e|gasse|allee|platz|gatan|vägen|vej|straat|laan|katu|gracht|plein|kade|weg) {1,2}[0-9]{1,4}[a-z]?\b(?:, (?:[0-9]{4} ?[A-Z]{2}|[0-9]{4,5}) [A-Z\x80-\xff][a-z\x80-\xff-]{2,24})?",
        check: run_on,
        matches: &[
            "Musterstraße 12, 10115 Berlin",
            "Lange Gasse 5a",
            "at Drottninggatan 7",
            "Hulsterlaan 100",
            "Keizersgracht 123, 1015 CJ Amsterdam",
        ],
        misses: &["platz 5", "eine strasse 12", "Strasse ohne Nummer", "katu 3"],
    },
    Rule {
        id: "street_named_first",
        label: "ADDRESS",
        tier: Tier::Noncritical,
        family: Family::Personal,
        trigger: Trigger::Keyword(&[
            "rue ",
            "avenue ",
            "boulevard ",
            "impasse ",
            "chemin ",
            "quai ",
            "via ",
            "calle ",
            "rua ",
            "avenida ",
            "piazza ",
            "plaza ",
            "paseo ",
            "viale ",
            "corso ",
        ]),
        pattern: concat!(
            r"(?:rue|Avenue|Boulevard|Impasse|Chemin|Quai|[RVCAP](?:ue|ia|alle|ua|venida|iazza|laza|aseo|iale|orso))",
            r"(?: (?:de|du|des|la|le|les|della|del|dei|da|do|dos|di|las|los)){0,3}",
            r"(?: [A-Z\x80-\xff][a-z\x80-\xff'-]{2,20}){1,4}(?:,? ([0-9]{1,4})\b)?",
            r"(?:, [0-9]{5} [A-Z\x80-\xff][a-z\x80-\xff-]{2,24})?",
        ),
        check: named_first,
        matches: &[
            "12 rue de Rivoli, Paris",
            "Via Garibaldi 12",
            "Calle de Alcalá 45",
            "3, rue Victor Hugo",
            "5 Avenue Anatole France, 75007 Paris",
        ],
        misses: &["rue the day", "Via Http and more", "Plaza Hotel", "via Port 8080"],
    },
    Rule {
        id: "post_box",
        label: "ADDRESS",
        tier: Tier::Noncritical,
        family: Family::Personal,
        trigger: Trigger::Keyword(&["p.o. box", "po box", "postboks", "postfach", "unit "]),
        pattern: r"(?i)(?:p\.?o\.? box|postboks|postfach) [0-9]{1,6}|unit [0-9]{1,6} box [0-9]{1,6}",
        check: super::whole_word,
        matches: &["P.O. Box 1234", "Postboks 12"],
        misses: &["po box office", "unit 12"],
    },
];

/// Up to four capitalised words, and before them a house number.
fn numbered(found: &Found<'_>) -> Option<Range<usize>> {
    let before = found.before(LONGEST);
    let offset = found.whole.start - before.len();
    let mut words = 0;
    let mut end = before.len();
    loop {
        let rest = &before[..end];
        let trimmed = rest.trim_ascii_end();
        if trimmed.len() == rest.len() || rest[trimmed.len()..].contains(&b'\n') {
            return None;
        }
        let start = trimmed.iter().rposition(|byte| byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
        let word = &trimmed[start..];
        if word.is_empty() {
            return None;
        }
        let number =
            word[0].is_ascii_digit() && word.len() <= 6 && word.iter().all(u8::is_ascii_alphanumeric);
        if number && words > 0 {
            return Some(offset + start..found.whole.end);
        }
        let name =
            word[0].is_ascii_uppercase() || word[0] >= 0x80 || matches!(word, b"de" | b"la" | b"of" | b"the");
        words += 1;
        if !name || words > 4 || start == 0 {
            return None;
        }
        end = start;
    }
}

/// A short word for a kind of street is believed with what follows one: a flat, a town and its code, or a line's end.
fn numbered_short(found: &Found<'_>) -> Option<Range<usize>> {
    let whole = found.whole.start + 1..found.whole.end;
    let found = &Found { text: found.text, secret: whole.clone(), whole };
    let value = found.value();
    let placed = value.contains(&b',') || value.contains(&b' ');
    let street = matches!(value, [b'S', b't', ..] | [b'R', b'd', ..]);
    let shut = matches!(
        found.after(),
        [] | [b'\n' | b'\r' | b'.' | b';' | b')' | b'"', ..] | [b',', b' ', b'A'..=b'Z', ..]
    );
    if placed || (street && shut) { numbered(found) } else { None }
}

/// The kind of street is the end of its name, or a word behind a capitalised one.
fn run_on(found: &Found<'_>) -> Option<Range<usize>> {
    let letter = |byte: &&u8| byte.is_ascii_alphabetic() || **byte >= 0x80 || **byte == b'-';
    let before = found.before(LONGEST);
    let mut lead = before.iter().rev().take_while(letter).count();
    if lead == 0 && before.last() == Some(&b' ') {
        lead = 1 + before.iter().rev().skip(1).take_while(letter).count();
    }
    let name = &before[before.len() - lead..];
    let named = lead >= 3 && name.first().is_some_and(|byte| byte.is_ascii_uppercase() || *byte >= 0x80);
    named.then(|| found.whole.start - lead..found.whole.end)
}

/// The number stands behind the street, or before it.
fn named_first(found: &Found<'_>) -> Option<Range<usize>> {
    if found.secret != found.whole {
        return Some(found.whole.clone());
    }
    let before = found.before(LONGEST);
    let trimmed = before.trim_ascii_end();
    let gap = before.len() - trimmed.len();
    let trimmed = trimmed.strip_suffix(b",").unwrap_or(trimmed);
    let digits = trimmed.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let alone = trimmed.len().checked_sub(digits + 1).is_none_or(|at| !trimmed[at].is_ascii_alphanumeric());
    let start = found.whole.start - (before.len() - trimmed.len()) - digits;
    ((1..=4).contains(&digits) && gap == 1 && alone).then_some(start..found.whole.end)
}

const LONGEST: usize = 64;
