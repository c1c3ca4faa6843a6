//! Numbers that states give to people, in Asia, South America and Switzerland: a check, or a word that says what it is.

use std::ops::Range;

use super::ids::{id, two, weighted};
use super::{Found, Rule, Trigger};

const N: &str = "NATIONAL_ID";

pub(super) static RULES: &[Rule] = &[
    id(
        "cn_resident_id",
        N,
        Trigger::Number(18, 18),
        "[1-8][0-9]{5}(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]{5}",
        resident,
        &["110101199003077571"],
        &["110101199003077572", "110101199013077571"],
    ),
    id(
        "cn_resident_id_x",
        N,
        Trigger::Word(18, 18),
        "[1-8][0-9]{5}(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]{4}[Xx]",
        resident,
        &["11010519491231002X", "\u{8eab}\u{4efd}\u{8bc1}\u{ff1a}11010519491231002X"],
        &["11010519491231003X"],
    ),
    id(
        "hk_identity_card",
        N,
        Trigger::Word(7, 9),
        r"[A-Z]{1,2}[0-9]{6}(?:\([0-9A]\)|[0-9A])",
        hong_kong,
        &["A123456(3)", "HKID A1234563"],
        &["A123456(4)", "A1234563"],
    ),
    id(
        "mx_curp",
        N,
        Trigger::Word(18, 18),
        "[A-Z][AEIOUX][A-Z]{2}[0-9]{2}[01][0-9][0-3][0-9][HMX][A-Z]{5}[A-Z0-9][0-9]",
        curp,
        &["HEGG560427MVZRRL04", "CURP: GODE561231HDFRRN04"],
        &["HEGG560427MVZRRL05"],
    ),
    id(
        "cl_rut",
        N,
        Trigger::Number(7, 9),
        r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]|[0-9]{7,8}-[0-9Kk]",
        rut,
        &["12.345.678-5", "RUT: 12345678-5"],
        &["12.345.678-6", "12345678-5", "RUT 12345678-4"],
    ),
    id(
        "ch_ahv",
        N,
        Trigger::Number(13, 13),
        r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}",
        ahv,
        &["756.9217.0769.85", "AHV-Nr. 7569217076985"],
        &["756.9217.0769.84", "7569217076985"],
    ),
    id(
        "br_cnpj",
        N,
        Trigger::Number(14, 14),
        r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}|[0-9]{14}",
        cnpj,
        &["11.222.333/0001-81", "CNPJ 11222333000181"],
        &["11.222.333/0001-82", "11222333000181"],
    ),
];

fn when(found: &Found<'_>, right: bool) -> Option<Range<usize>> {
    (right && found.stands_alone()).then(|| found.secret.clone())
}

/// A place, a date, a serial number, and ISO 7064's remainder of 11.
fn resident(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let sum = weighted(&d[..17], &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]);
    let check = b"10X98765432"[(sum % 11) as usize];
    let date = (1..=12).contains(&two(&d, 10)) && (1..=31).contains(&two(&d, 12));
    let last = found.value().last().map(u8::to_ascii_uppercase);
    when(found, date && last == Some(check))
}

fn hong_kong(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let letters = value.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let place = |byte: u8| u32::from(byte - b'A') + 10;
    let lead = match value[..letters] {
        [one] => 36 * 9 + place(one) * 8,
        [one, two] => place(one) * 9 + place(two) * 8,
        _ => return None,
    };
    let digits: Vec<u8> = value[letters..letters + 6].iter().map(|byte| byte - b'0').collect();
    let bracketed = value.ends_with(b")");
    let check = match value[letters + 6 + usize::from(bracketed)] {
        b'A' => 10,
        digit => u32::from(digit - b'0'),
    };
    let right = (lead + weighted(&digits, &[7, 6, 5, 4, 3, 2]) + check).is_multiple_of(11);
    let told = bracketed || found.follows(&["hkid", "hong kong", "identity card"], 32);
    when(found, right && told)
}

fn curp(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let place = |byte: u8| match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        // A letter of Spanish stands between N and O.
        b'A'..=b'N' => u32::from(byte - b'A') + 10,
        _ => u32::from(byte - b'A') + 11,
    };
    let sum: u32 = value[..17].iter().zip((2..=18).rev()).map(|(byte, weight)| place(*byte) * weight).sum();
    let right = (10 - sum % 10) % 10 == u32::from(value[17].wrapping_sub(b'0'));
    let date = matches!(&value[6..8], [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2']);
    when(found, date && (right || found.follows(&["curp"], 24)))
}

fn rut(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let number: Vec<u8> =
        value[..value.len() - 2].iter().filter(|byte| byte.is_ascii_digit()).copied().collect();
    let sum: u32 = number
        .iter()
        .rev()
        .zip([2, 3, 4, 5, 6, 7].into_iter().cycle())
        .map(|(byte, weight)| u32::from(byte - b'0') * weight)
        .sum();
    let check = b"0K987654321"[(sum % 11) as usize];
    let told = value.contains(&b'.') || found.follows(&["rut", "run:", "run "], 16);
    when(found, told && value.last().map(u8::to_ascii_uppercase) == Some(check))
}

fn ahv(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let sum = weighted(&d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]);
    let told = found.value().contains(&b'.') || found.follows(&["ahv", "avs", "sozialversicherung"], 32);
    when(found, told && sum.is_multiple_of(10))
}

fn cnpj(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let weights = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
    let check = |count: usize| {
        let rest = weighted(&d[..count], &weights[13 - count..]) % 11;
        u32::from(d[count]) == if rest < 2 { 0 } else { 11 - rest }
    };
    let told = found.value().contains(&b'/') || found.follows(&["cnpj"], 24);
    when(found, told && check(12) && check(13))
}
