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

const LONGEST: usize = 64;
