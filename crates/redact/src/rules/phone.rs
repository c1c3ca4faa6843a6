//! Telephone numbers of the world.
//!
//! With `+` and a country that exists; in the forms of North America; with a trunk zero; or any number of the right
//! length after a word such as "phone". Ten digits without any of that are an id or a time, and stay.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

const fn phone(
    id: &'static str,
    digits: (usize, usize),
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Loose);
    let trigger = Trigger::Number(digits.0, digits.1);
    Rule { id, label: "PHONE", tier, family, trigger, pattern, check, matches, misses }
}

pub(super) static RULES: &[Rule] = &[
    phone(
        "phone_international",
        (7, 30),
        r"(?:\+|00)\(?[1-9][0-9]{0,3}\)?(?:[ .\-/]{0,2}\(?[0-9]{1,14}\)?){1,7}",
        international,
        &[
            "+47 22 34 56 78",
            "+14155550132",
            "+49 (0)30 901820",
            "call 0044 207 946 0958",
            "+63 917 123 4567",
            "0044 20 7946 0958",
            "001-781-342-7142x734",
        ],
        &["+1", "+999 123 456 789", "a+12345678901", "1+4155550132", "To=%2B123456789", "+987654321"],
    ),
    phone(
        "phone_north_american",
        (10, 25),
        r"(?:1[ .-]?)?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}(?: ?(?:x|ext\.?) ?[0-9]{1,6})?",
        north_american,
        &["(415)555-0132", "415-555-0132", "415.555.0132", "1-800-555-0199", "Call 415 555 0132 now"],
        &["917-123-4567", "115-555-0132", "415-555-01321", "1415-555-0132-77"],
    ),
    phone(
        "phone_national",
        (8, 25),
        r"\(?0[ -]?[1-9](?:[ .\-/)]{0,2}[0-9]){7,10}",
        national,
        &["09171234567", "0532 123 45 67", "0-532-123-45-67", "tel. 030/901820", "020 7946 0958"],
        &["01-02-2024", "012345678901234", "0.123456789", "09:12:34", "Boston, MA 02110-1301 USA"],
    ),
    phone(
        "phone_grouped",
        (10, 10),
        r"[2-5][0-9]{2}([ .-])[0-9]{3}[ .-][0-9]{2}[ .-][0-9]{2}",
        grouped,
        &["532.123.45.67", "at 212 123 45 67 today"],
        &["532.123.45.678", "1532.123.45.67", "532.123-45.67", "532-123-4567"],
    ),
    phone(
        "phone_told",
        (7, 20),
        r"\(?[0-9](?:[ .\-/()]{0,2}[0-9]){6,14}",
        told,
        &["my number is 13812345678", "Phone: 22 34 56 78", "tel: 555 0132 77", "mobile 97865432"],
        &["account number is 13812345678", "phone 123", "build number 20240101", "phone launched 2007-01-09"],
    ),
];

fn international(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let digits = if found.value().starts_with(b"00") { &digits[2..] } else { &digits[..] };
    let lead = |count: usize| digits.iter().take(count).fold(0u16, |sum, digit| sum * 10 + u16::from(*digit));
    let known = CODES.contains(&lead(1)) || CODES.contains(&lead(2)) || CODES.contains(&lead(3));
    let open = !found
        .before(1)
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.'));
    // 00 begins many a number that is none: only at the start, and not in groups of four.
    let lead = matches!(found.before(2), [c, b' '] if c.is_ascii_digit() || c.is_ascii_uppercase());
    let groups = || found.value().split(|byte| *byte == b' ').skip(1);
    let fours = groups().count() > 1 && groups().all(|group| group.len() == 4);
    let american = found.value().starts_with(b"001-") && digits.len() == 11;
    let plus =
        found.value().starts_with(b"+") || american || (found.value().contains(&b' ') && !lead && !fours);
    let extension = matches!(found.after(), [b'x', next, ..] if next.is_ascii_digit());
    let shut = (found.ends_well() || extension) && !goes_on(found);
    let good = known && plus && (8..=15).contains(&digits.len()) && open && shut;
    (good && !is_dull(digits)).then(|| trimmed(found))
}

fn north_american(found: &Found<'_>) -> Option<Range<usize>> {
    (found.stands_alone() && !goes_on(found)).then(|| found.secret.clone())
}

/// Three, three, two and two, one sign between them: as in Turkey.
fn grouped(found: &Found<'_>) -> Option<Range<usize>> {
    let value = &found.text[found.whole.clone()];
    let alike = value[3] == value[7] && value[7] == value[10];
    (alike && found.stands_alone() && !goes_on(found)).then(|| found.whole.clone())
}

fn national(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let value = found.value();
    let bare = value.iter().all(u8::is_ascii_digit);
    let dotted = value.iter().filter(|byte| **byte == b'.').count();
    let size = if bare { (10..=11).contains(&digits.len()) } else { (9..=11).contains(&digits.len()) };
    // 01.02.2024, 01/02/2024 10:00
    let date = value.len() >= 8 && matches!((value[2], value[5]), (b'.', b'.') | (b'/', b'/') | (b'-', b'-'));
    // 078-05-0000 is another thing, right or wrong.
    let social = value.len() == 11 && value[3] == b'-' && value[6] == b'-';
    // The state and the place of a letter: `MA 02110-1301`.
    let zip = matches!(found.before(3), [one, two, b' '] if one.is_ascii_uppercase() && two.is_ascii_uppercase())
        && value.len() == 10
        && value[5] == b'-';
    let good = size && !date && !social && !zip && dotted < 4 && found.stands_alone() && !goes_on(found);
    (good && !is_dull(&digits)).then(|| found.secret.clone())
}

fn told(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let date =
        found.value().len() >= 8 && matches!((found.value()[4], digits[0]), (b'-' | b'/' | b'.', 1 | 2));
    let good = !date && (7..=13).contains(&digits.len()) && found.stands_alone() && !goes_on(found);
    let good = good && found.follows(WORDS, 32) && !found.follows(OTHER_NUMBERS, 32);
    (good && !is_dull(&digits)).then(|| found.secret.clone())
}

/// More digits follow behind a space or a bracket.
fn goes_on(found: &Found<'_>) -> bool {
    matches!(found.after(), [b' ' | b')' | b'-', next, ..] if next.is_ascii_digit())
}

/// One digit over and over, or counted up or down.
fn is_dull(digits: &[u8]) -> bool {
    digits.iter().skip(1).all(|digit| *digit == digits[1])
        || digits.windows(2).all(|pair| pair[1] == pair[0] + 1)
        || digits.windows(2).all(|pair| pair[0] == pair[1] + 1)
}

fn trimmed(found: &Found<'_>) -> Range<usize> {
    let extra = found.value().iter().rev().take_while(|byte| !byte.is_ascii_digit()).count();
    found.secret.start..found.secret.end - extra
}

/// Words that are said of telephones and of nothing else.
pub(super) const PHONES: &[&str] = &[
    "phone", "tel:", "tel.", "tel ", "telef", "mobil", "cell", "whatsapp", "call ", "call me", "fax", "sms",
    "dial", "text me", "ring me", "hotline", "helpline",
];
const WORDS: &[&str] = &[
    "phone",
    "tel:",
    "tel.",
    "tel ",
    "telef",
    "telep",
    "mobile",
    "mobil",
    "cell",
    "whatsapp",
    "call ",
    "call me",
    "fax",
    "sms",
    "dial",
    "gsm",
    "cep no",
    "handy",
    "ring me",
    "text me",
    "contact no",
    "contact number",
    "hotline",
    "number is",
    "reach me",
    "contact me",
    "office number",
];
const OTHER_NUMBERS: &[&str] = &[
    "account",
    "order",
    "invoice",
    "card",
    "serial",
    "build",
    "ticket",
    "reference",
    "model",
    "version",
    "case",
    "security",
];
/// Country calling codes, one to three digits; not yet compared with the list of the ITU.
const CODES: &[u16] = &[
    1, 7, 20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57,
    58, 60, 61, 62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98, 211, 212, 213, 216, 218, 220,
    221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241,
    242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257, 258, 260, 261, 262, 263,
    264, 265, 266, 267, 268, 269, 290, 291, 297, 298, 299, 350, 351, 352, 353, 354, 355, 356, 357, 358, 359,
    370, 371, 372, 373, 374, 375, 376, 377, 378, 380, 381, 382, 383, 385, 386, 387, 389, 420, 421, 423, 500,
    501, 502, 503, 504, 505, 506, 507, 508, 509, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599, 670, 672,
    673, 674, 675, 676, 677, 678, 679, 680, 681, 682, 683, 685, 686, 687, 688, 689, 690, 691, 692, 800, 808,
    850, 852, 853, 855, 856, 870, 878, 880, 881, 882, 883, 886, 888, 960, 961, 962, 963, 964, 965, 966, 967,
    968, 970, 971, 972, 973, 974, 975, 976, 977, 979, 992, 993, 994, 995, 996, 998,
];
