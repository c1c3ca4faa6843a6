//! Vendors' tokens whose mark stands in their middle or at their end.

use std::ops::Range;

use super::value::is_filler;
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

/// Takes in so many letters and digits before the mark.
fn led_by<const LEAST: usize, const MOST: usize>(found: &Found<'_>) -> Option<Range<usize>> {
    let lead = found.before(MOST + 1).iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let start = found.whole.start - lead.min(MOST + 1);
    let value = &found.text[start..found.whole.end];
    ((LEAST..=MOST).contains(&lead) && found.ends_well() && !is_filler(value))
        .then_some(start..found.whole.end)
}

/// Takes in so many digits before the mark, and nothing but digits.
fn numbered<const LEAST: usize, const MOST: usize>(found: &Found<'_>) -> Option<Range<usize>> {
    let range = led_by::<LEAST, MOST>(found)?;
    let digits = found.text[range.start..found.whole.start].iter().all(u8::is_ascii_digit);
    (digits && found.after().first() != Some(&b'-')).then_some(range)
}

/// Takes in three characters and a digit before the mark.
fn azure_led(found: &Found<'_>) -> Option<Range<usize>> {
    let lead = found.before(4);
    let good = matches!(lead, [.., b'0'..=b'9'])
        && lead.len() == 4
        && lead.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'~' | b'-'));
    let range = found.whole.start - lead.len()..found.whole.end;
    (good && found.ends_well() && !is_filler(&found.text[range.clone()])).then_some(range)
}

const fn marked(
    id: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Vendor);
    Rule {
        id,
        label: "API_KEY",
        tier,
        family,
        trigger: Trigger::Anywhere(keywords),
        pattern,
        check,
        matches,
        misses,
    }
}

pub(super) static RULES: &[Rule] = &[
    marked(
        "mailchimp_key",
        &["-us"],
        "-us[0-9]{1,2}",
        led_by::<32, 32>,
        &[concat!("k 0f3a9c5b7d1e2f4a", "6b8c0d9e1f2a3b4c-us12")],
        &["plan-us1", "the-us12"],
    ),
    marked(
        "newrelic_license_key",
        &["NRAL"],
        "NRAL",
        led_by::<36, 36>,
        &[concat!("k 0f3a9c5b7d1e2f4a6b8c", "0d9e1f2a3b4c5d6eNRAL")],
        &["NRAL", "xNRAL"],
    ),
    marked(
        "terraform_token",
        &[".atlasv1."],
        r"\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
        led_by::<14, 14>,
        &[concat!(
            "Gx7pQ2nVb4LsTz.atlasv1.",
            "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLzX"
        )],
        &["x.atlasv1.abc"],
    ),
    marked(
        "azure_devops_token",
        &["AZDO"],
        "AZDO[A-Za-z0-9]{4}",
        led_by::<76, 76>,
        &[concat!(
            "4kJd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm",
            "3QwErTyUiOpAsDfGhJkLzXcVbNm1Q2w3E4r5AZDO1a2B"
        )],
        &["AZDO1234"],
    ),
    marked(
        "azure_ad_secret",
        &["Q~"],
        r"Q~[A-Za-z0-9_.~-]{31,34}",
        azure_led,
        &[concat!("k7f8Q~", "Wz3nVb4LsTzGx7pQ2n_b4LsTzGx7pQ2nVb")],
        &["Q~abc"],
    ),
    marked(
        "telegram_bot_token",
        &[":A"],
        ":A[A-Za-z0-9_-]{34}",
        numbered::<7, 12>,
        &[concat!("t 918273645:", "AAGk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz")],
        &["12:AAGk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz", "a:AAA"],
    ),
    marked(
        "maxmind_key",
        &["_mmk"],
        "_mmk",
        led_by::<29, 29>,
        &[concat!("k Gx7pQ2_", "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6_mmk")],
        &["x_mmk"],
    ),
];
