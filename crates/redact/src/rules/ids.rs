//! Numbers that states give to people, by country, with their checks.
//!
//! Where a form has no check of its own, or one that chance passes often, a word beside it must say what it is.

use std::ops::Range;

use super::cards::luhn;
use super::phone::PHONES;
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

pub(super) const fn id(
    id: &'static str,
    label: &'static str,
    trigger: Trigger,
    pattern: &'static str,
    check: super::Check,
    matches: &'static [&'static str],
    misses: &'static [&'static str],
) -> Rule {
    let (tier, family) = (Tier::Noncritical, Family::Personal);
    Rule { id, label, tier, family, trigger, pattern, check, matches, misses }
}

const N: &str = "NATIONAL_ID";

pub(super) static RULES: &[Rule] = &[
    id(
        "us_ssn",
        "SSN",
        Trigger::Number(9, 9),
        "[0-9]{3}(?:-[0-9]{2}-|  ?[0-9]{2}  ?|[0-9]{2})[0-9]{4}",
        ssn,
        &["219-09-9999", "SSN 219 09 9999", "social security number: 219099999"],
        &["000-12-3456", "666-12-3456", "219-00-9999", "219-09-0000", "219099999", "219-09.9999"],
    ),
    id(
        "us_itin",
        N,
        Trigger::Number(9, 9),
        "9[0-9]{2}-(?:5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])-[0-9]{4}",
        alone,
        &["911-70-1234"],
        &["911-89-1234", "811-70-1234"],
    ),
    id(
        "uk_nino",
        N,
        Trigger::Word(2, 9),
        "(?i)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]",
        word,
        &["AB123456C", "NINO JG103759A"],
        &["QQ123456C", "AB123456E", "AB12345C"],
    ),
    id(
        "uk_nhs",
        N,
        Trigger::Number(10, 10),
        "[0-9]{3}[ -][0-9]{3}[ -][0-9]{4}",
        nhs,
        &[
            "NHS number: 943 476 5919",
            "nhs no 943-476-5919",
            "patient 123 456 7881",
            "health number is 943 476 5919",
        ],
        &["NHS number: 943 476 5918", "943 476 5919", "943-476-5919", "NHS helpline, call 943 476 5919"],
    ),
    id(
        "no_fodselsnummer",
        N,
        Trigger::Number(11, 11),
        "[0-9]{6} ?[0-9]{5}",
        fodselsnummer,
        &["01010750160", "fnr 010107 50160"],
        &["01010750161", "41310750160", "99999999999"],
    ),
    id(
        "dk_cpr",
        N,
        Trigger::Number(10, 10),
        "[0-3][0-9][01][0-9]{3}-?[0-9]{4}",
        cpr,
        &["010190-1234", "CPR 0101901234"],
        &["320190-1234", "0101901234", "011390-1234"],
    ),
    id(
        "se_personnummer",
        N,
        Trigger::Number(10, 12),
        "(?:19|20|18)?[0-9]{6}[-+]?[0-9]{4}",
        personnummer,
        &["811228-9874", "19811228-9874"],
        &["811228-9873", "813228-9874"],
    ),
    id(
        "fi_henkilotunnus",
        N,
        Trigger::Word(4, 11),
        "[0-3][0-9][01][0-9]{3}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]",
        henkilotunnus,
        &["131052A308T"],
        &["131052A308U"],
    ),
    id(
        "fi_henkilotunnus_19",
        N,
        Trigger::Number(9, 12),
        "[0-3][0-9][01][0-9]{3}[-+][0-9]{3}[0-9A-FHJ-NPR-Y]",
        henkilotunnus,
        &["131052-308T"],
        &["131052-308U"],
    ),
    id(
        "de_steuer_id",
        N,
        Trigger::Number(11, 11),
        "[1-9][0-9](?: ?[0-9]{3}){3}",
        steuer_id,
        &["Steuer-ID 86095742719"],
        &["Steuer-ID 86095742718", "86095742719"],
    ),
    id(
        "fr_nir",
        N,
        Trigger::Number(15, 15),
        "[12] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        nir,
        &["2 69 05 49 588 157 80", "269054958815780"],
        &["269054958815781"],
    ),
    id(
        "es_dni",
        N,
        Trigger::Word(9, 9),
        "[0-9]{8}[A-Z]",
        dni,
        &["12345678Z", "DNI 12345678Z."],
        &["12345678A"],
    ),
    id("es_dni_spaced", N, Trigger::Number(8, 8), "[0-9]{8}[ -][A-Z]", dni, &["12345678-Z"], &["12345678-A"]),
    id(
        "es_nie",
        N,
        Trigger::Word(8, 9),
        "[XYZ][0-9]{7}-?[A-Z]",
        dni,
        &["X1234567L", "X1234567-L"],
        &["X1234567A"],
    ),
    id(
        "it_codice_fiscale",
        N,
        Trigger::Word(16, 16),
        "(?i)[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPR-T][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]",
        codice,
        &["RSSMRA85T10A562S"],
        &["RSSMRA85T10A562T"],
    ),
    id(
        "nl_bsn",
        N,
        Trigger::Number(9, 9),
        "[0-9]{9}",
        bsn,
        &["BSN 111222333"],
        &["111222333", "BSN 111222334"],
    ),
    id(
        "be_rijksregister",
        N,
        Trigger::Number(11, 11),
        r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}",
        rijksregister,
        &["85.07.30-033.28"],
        &["85.07.30-033.29"],
    ),
    id(
        "pl_pesel",
        N,
        Trigger::Number(11, 11),
        "[0-9]{11}",
        pesel,
        &["PESEL 44051401359"],
        &["44051401358", "PESEL 44051401358"],
    ),
    id(
        "br_cpf",
        N,
        Trigger::Number(11, 11),
        r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|[0-9]{11}",
        cpf,
        &["529.982.247-25", "CPF 52998224725"],
        &["529.982.247-26", "52998224725", "111.111.111-11"],
    ),
    id(
        "in_aadhaar",
        N,
        Trigger::Number(12, 12),
        "[2-9][0-9]{3}([ -]?)[0-9]{4}[ -]?[0-9]{4}",
        aadhaar,
        &["2341 2341 2346", "aadhaar 234123412346"],
        &["2341 2341 2347", "234123412346", "A200 2341 2341 2346", "2341 2341 2346 1234"],
    ),
    id(
        "in_pan",
        N,
        Trigger::Word(10, 10),
        "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]",
        told_pan,
        &["PAN: ABCPK1234L"],
        &["ABCPK1234L", "PAN ABCDK123L"],
    ),
    id("sg_nric", N, Trigger::Word(9, 9), "[STFGM][0-9]{7}[A-Z]", nric, &["S1234567D"], &["S1234567A"]),
    id(
        "kr_rrn",
        N,
        Trigger::Number(13, 13),
        "[0-9]{2}[01][0-9][0-3][0-9]-[1-8][0-9]{6}",
        alone,
        &["960121-1021413"],
        &["961321-1021413-1"],
    ),
    id(
        "za_id",
        N,
        Trigger::Number(13, 13),
        "[0-9]{2}[01][0-9][0-3][0-9][0-9]{4}[01][0-9]{2}",
        za_id,
        &["ID number 8001015009087"],
        &["8001015009087", "ID number 8001015009088"],
    ),
    id(
        "ca_sin",
        N,
        Trigger::Number(9, 9),
        "[1-79][0-9]{2}(?:-[0-9]{3}-| [0-9]{3} )[0-9]{3}",
        sin,
        &["130 692 544", "130-692-544"],
        &["130 692 545", "046 454-286"],
    ),
    id(
        "tr_kimlik",
        N,
        Trigger::Number(11, 11),
        "[1-9][0-9]{10}",
        kimlik,
        &["TC kimlik no 10000000146"],
        &["kimlik 10000000147", "10000000146"],
    ),
    id(
        "us_mbi",
        N,
        Trigger::Word(4, 11),
        "[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y]{2}[0-9]{2}",
        word,
        &["1EG4-TE5-MK73"],
        &["1EG4-LE5-MK73"],
    ),
    id(
        "passport",
        "PASSPORT",
        Trigger::Keyword(&["passport", "reisepass", "passeport", "pasaporte"]),
        r"(?i)(?:passport|reisepass|passeport|pasaporte)(?: ?(?:no|number|num|nr|#)\.?)?(?: is)?[ :#.]{1,4}([A-Z]{0,3}[0-9]{6,9}[A-Z]?|[CFGHJ-NPRTV-Z][CFGHJ-NPRTV-Z0-9]{8})",
        passport,
        &["Passport number: X1234567", "passport no. 912803456", "my passport is C01X00T47"],
        &["passport holders", "passport js 2"],
    ),
];

fn alone(found: &Found<'_>) -> Option<Range<usize>> {
    found.stands_alone().then(|| found.secret.clone())
}

fn word(found: &Found<'_>) -> Option<Range<usize>> {
    found.ends_well().then(|| found.secret.clone())
}

/// A word of letters alone is none.
fn passport(found: &Found<'_>) -> Option<Range<usize>> {
    (found.digits().len() >= 3 && found.ends_well()).then(|| found.secret.clone())
}

fn when(found: &Found<'_>, right: bool) -> Option<Range<usize>> {
    (right && found.stands_alone()).then(|| found.secret.clone())
}

fn ssn(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let part = |from: usize, to: usize| {
        digits[from..to].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(*digit))
    };
    let (area, group, serial) = (part(0, 3), part(3, 5), part(5, 9));
    let dashed = found.value().contains(&b'-');
    let told =
        found.follows(&["ssn", "social security", "soc sec", "social-security", "social_security"], 48);
    when(found, area > 0 && area != 666 && area < 900 && group > 0 && serial > 0 && (dashed || told))
}

/// One telephone number of North America in eleven passes the check, too, and has the same groups: then a word must say
/// which of the two it is.
fn nhs(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let sum = weighted(&digits[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]);
    let check = (11 - sum % 11) % 11;
    let health = found.last_of(HEALTH, NEAR);
    let told = health.is_some() && health > found.last_of(PHONES, NEAR);
    when(found, check == u32::from(digits[9]) && (told || !is_north_american(&digits)))
}

/// Whether it has the digits of a telephone number of North America, with or without its 1: neither the area nor the
/// exchange begins with 0 or 1.
fn is_north_american(digits: &[u8]) -> bool {
    let local = match digits {
        [1, local @ ..] if local.len() == 10 => local,
        _ => digits,
    };
    local.len() == 10 && local[0] > 1 && local[3] > 1
}

/// Whether it is a telephone number rather than an id: by its digits, and by a `+` or the nearest word before it. An id
/// that is called by one of these words is none.
fn is_phone(found: &Found<'_>, own: &[&str]) -> bool {
    let phone = found.last_of(PHONES, NEAR);
    let told = phone.is_some() && phone > found.last_of(own, NEAR);
    is_north_american(&found.digits()) && (told || found.before(1) == b"+")
}

fn fodselsnummer(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let day = two(&d, 0) % 40;
    let month = two(&d, 2) % 40;
    let first = weighted(&d[..10], &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]).is_multiple_of(11);
    let second = weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11);
    let date = (1..=31).contains(&day) && (1..=12).contains(&month);
    when(found, date && first && second && !is_phone(found, &["fnr", "dselsnummer", "personnummer"]))
}

fn cpr(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let told = found.value().contains(&b'-') || found.follows(&["cpr", "personnummer", "personal"], 24);
    let date = (1..=31).contains(&two(&d, 0)) && (1..=12).contains(&two(&d, 2));
    when(found, date && told && !is_phone(found, PERSONAL))
}

fn personnummer(found: &Found<'_>) -> Option<Range<usize>> {
    let all = found.digits();
    let d = &all[all.len() - 10..];
    let day = two(d, 4) % 60;
    let told = found.value().iter().any(|byte| !byte.is_ascii_digit())
        || all.len() == 12
        || found.follows(&["personnummer", "personal"], 32);
    let date = (1..=12).contains(&two(d, 2)) && (1..=31).contains(&day);
    when(found, all.len() != 11 && luhn(d) && date && told && !is_phone(found, PERSONAL))
}

fn henkilotunnus(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let number =
        value[..6].iter().chain(&value[7..10]).fold(0u32, |sum, byte| sum * 10 + u32::from(byte - b'0'));
    let check = b"0123456789ABCDEFHJKLMNPRSTUVWXY"[(number % 31) as usize];
    let d = found.digits();
    let date = (1..=31).contains(&two(&d, 0)) && (1..=12).contains(&two(&d, 2));
    (date && check == value[10] && found.ends_well()).then(|| found.secret.clone())
}

fn steuer_id(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let product = digits[..10].iter().fold(10, |product, digit| {
        let sum = (u32::from(*digit) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    let told = found.follows(&["steuer", "tax", "idnr", "tin"], 32)
        && !is_phone(found, &["steuer", "tax", "idnr", "tin:", "tin "]);
    when(found, told && (11 - product) % 10 == u32::from(digits[10]))
}

fn nir(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let number = digits[..13].iter().fold(0u64, |sum, digit| sum * 10 + u64::from(*digit));
    let month = two(&digits, 3);
    when(found, 97 - number % 97 == u64::from(two(&digits, 13)) && (1..=12).contains(&month))
}

fn dni(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let lead = match value[0] {
        b'Y' => 1,
        b'Z' => 2,
        _ => 0,
    };
    let number = found.digits().iter().fold(lead, |sum, digit| sum * 10 + u32::from(*digit));
    let letter = b"TRWAGMYFPDXBNJZSQVHLCKE"[(number % 23) as usize];
    (value.last() == Some(&letter) && found.ends_well()).then(|| found.secret.clone())
}

fn codice(found: &Found<'_>) -> Option<Range<usize>> {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let value = found.value().to_ascii_uppercase();
    let place = |byte: u8| usize::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' });
    let sum = value[..15].iter().enumerate().fold(0u32, |sum, (at, byte)| {
        let place = place(*byte);
        sum + if at % 2 == 0 { ODD[place] } else { u32::try_from(place).unwrap_or(0) }
    });
    let right = u32::from(value[15] - b'A') == sum % 26;
    (right && found.ends_well()).then(|| found.secret.clone())
}

fn bsn(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let sum = weighted(&d[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) + 11 - u32::from(d[8]) % 11;
    when(found, sum.is_multiple_of(11) && found.follows(&["bsn", "burgerservice", "sofi"], 32))
}

fn rijksregister(found: &Found<'_>) -> Option<Range<usize>> {
    let digits = found.digits();
    let number = digits[..9].iter().fold(0u64, |sum, digit| sum * 10 + u64::from(*digit));
    let check = u64::from(two(&digits, 9));
    when(found, 97 - number % 97 == check || 97 - (2_000_000_000 + number) % 97 == check)
}

fn pesel(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let sum = weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]);
    when(found, sum.is_multiple_of(10) && found.follows(&["pesel"], 32))
}

fn cpf(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let check = |count: usize| {
        let weights: Vec<u32> = (2..=u32::try_from(count).unwrap_or(10) + 1).rev().collect();
        let rest = weighted(&d[..count], &weights) * 10 % 11;
        rest % 10 == u32::from(d[count])
    };
    let told = found.value().contains(&b'.') || found.follows(&["cpf"], 24);
    when(found, told && check(9) && check(10) && d.iter().any(|digit| *digit != d[0]))
}

fn aadhaar(found: &Found<'_>) -> Option<Range<usize>> {
    let whole = &found.text[found.whole.clone()];
    let digits: Vec<u8> = whole.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect();
    let told = whole.len() > 12 || found.follows(&["aadhaar", "aadhar", "uidai"], 32);
    // Groups of four go on at either side in longer numbers, such as bank accounts.
    let grouped = matches!(found.before(2), [byte, b' '] if byte.is_ascii_digit())
        || matches!(found.after(), [b' ', next, ..] if next.is_ascii_digit());
    (told && !grouped && verhoeff(&digits) && found.stands_alone()).then(|| found.whole.clone())
}

fn told_pan(found: &Found<'_>) -> Option<Range<usize>> {
    (found.ends_well() && found.follows(&["pan", "permanent account", "tax"], 32))
        .then(|| found.secret.clone())
}

fn nric(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let digits = found.digits();
    let lead = match value[0] {
        b'T' | b'G' => 4,
        b'M' => 3,
        _ => 0,
    };
    let sum = (weighted(&digits, &[2, 7, 6, 5, 4, 3, 2]) + lead) % 11;
    let letters: &[u8; 11] = match value[0] {
        b'S' | b'T' => b"JZIHGFEDCBA",
        b'F' | b'G' => b"XWUTRQPNMLK",
        _ => b"KLJNPQRTUWX",
    };
    (value[8] == letters[sum as usize] && found.ends_well()).then(|| found.secret.clone())
}

fn za_id(found: &Found<'_>) -> Option<Range<usize>> {
    when(found, luhn(&found.digits()) && found.follows(&["id ", "id:", "identity", "number"], 32))
}

fn sin(found: &Found<'_>) -> Option<Range<usize>> {
    when(found, luhn(&found.digits()))
}

fn kimlik(found: &Found<'_>) -> Option<Range<usize>> {
    let d = found.digits();
    let odd: u32 = [0, 2, 4, 6, 8].iter().map(|at| u32::from(d[*at])).sum();
    let even: u32 = [1, 3, 5, 7].iter().map(|at| u32::from(d[*at])).sum();
    let sum: u32 = d[..10].iter().map(|digit| u32::from(*digit)).sum();
    let right = (odd * 7 + 100 - even) % 10 == u32::from(d[9]) && sum % 10 == u32::from(d[10]);
    when(found, right && found.follows(&["kimlik", "tckn", "tc no", "t.c."], 32))
}

/// What an NHS number is called; as far before it as [`NEAR`].
const HEALTH: &[&str] =
    &["nhs", "health no", "health num", "health id", "health service", "healthcare", "patient", "chi number"];
/// What the numbers of Denmark and Sweden are called.
const PERSONAL: &[&str] = &["cpr", "personnummer", "personal n", "personal id"];
/// How far before a number a word says what it is.
const NEAR: usize = 32;

/// Verhoeff's check, the tables of the dihedral group written out.
fn verhoeff(digits: &[u8]) -> bool {
    const MULTIPLY: [[u8; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const PERMUTE: [[u8; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    let check = digits.iter().rev().enumerate().fold(0u8, |check, (at, digit)| {
        MULTIPLY[usize::from(check)][usize::from(PERMUTE[at % 8][usize::from(*digit)])]
    });
    check == 0
}

pub(super) fn two(digits: &[u8], at: usize) -> u32 {
    u32::from(digits[at]) * 10 + u32::from(digits[at + 1])
}

pub(super) fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| u32::from(*digit) * weight).sum()
}
