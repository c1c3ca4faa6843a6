//! Private keys: every PEM, OpenSSH, PGP and PuTTY kind, age, JSON web keys, and bodies without their lines.
//!
//! A shape is enough here. Where a key's end is missing, everything that still looks like key goes with it, and so it
//! does where its beginning is.

use std::ops::Range;

use super::critical::critical;
use super::value::is_filler;
use super::{Found, Rule, Trigger};
use crate::{encoded, opaque};

/// The places of `private_jwk` and `private_key_body` among the rules.
pub(super) const JWK: usize = 0;
pub(super) const BODY: usize = 5;

pub(super) static RULES: &[Rule] = &[
    critical(
        "private_jwk",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["kty"]),
        r#"kty["'\\]{0,3}\s{0,4}[:=]\s{0,4}["'\\\[]{0,4}(?:EC|RSA|OKP|oct|AKP)\b"#,
        jwk,
        &[
            r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAY"}"#,
            r#"{"k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75", "kty":"oct"}"#,
        ],
        &[
            r#"{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8"}"#,
        ],
    ),
    critical(
        "private_key",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["-----BEGIN", "---- BEGIN"]),
        r"(?i)-----BEGIN[ A-Z0-9_+-]{0,40}(?:PRIVATE|SECRET)[ _+]KEY(?:[ +]BLOCK)?-----|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----",
        private_key,
        &[
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIG1\n-----END PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIFHDBOBgkqhkiG9w0BBQ0wQTApBgkqhkiG9w0",
            "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\\n",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOYBFkx0d0BCADVQ5bnJ8cX2vT9\n-----END PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN PGP SECRET KEY BLOCK-----\n\nlQOYBFkx0d0BCADVQ5bnJ8cX2vT9\n-----END PGP SECRET KEY BLOCK-----",
            "-----begin rsa private key-----\nMC4CAQAwBQYDK2VwBCIEIG1\n-----end rsa private key-----",
            "key=-----BEGIN+PRIVATE+KEY-----%0AMC4CAQAwBQYDK2VwBCIEIG1%0A-----END+PRIVATE+KEY-----",
            "-----BEGIN PRIVATE KEY-----\nnobody would guess\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----<br>MC4CAQAwBQYDK2VwBCIEIG1<br>-----END PRIVATE KEY-----",
        ],
        &[
            "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----",
            "-----BEGIN CERTIFICATE-----",
            "look for -----BEGIN RSA PRIVATE KEY----- in files",
            "The file starts with -----BEGIN RSA PRIVATE KEY----- and the implementation then reads it.",
            "BEGIN = \"-----BEGIN RSA PRIVATE KEY-----\"\nEND = \"-----END RSA PRIVATE KEY-----\"",
            "s.replace(\"-----BEGIN PRIVATE KEY-----\", \"\")\n .replace(\"-----END PRIVATE KEY-----\", \"\")",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nxxxxxxxxxxxxxxxxxxxxxxxx\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nYOUR PRIVATE KEY HERE\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nMIIE...\n-----END PRIVATE KEY-----",
            "> -----BEGIN PRIVATE KEY-----\n> ...\n> -----END PRIVATE KEY-----",
        ],
    ),
    critical(
        "putty_private_key",
        "PRIVATE_KEY",
        Trigger::Keyword(&["PuTTY-User-Key-File-"]),
        "(?i)PuTTY-User-Key-File-[0-9]: ?",
        putty,
        &[
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAIHk3Jd9fQw7eRt5yUi1oPa8s\n",
            "putty-user-key-file-2: ssh-rsa\nprivate-lines: 1\nAAAAIHk3Jd9fQw7eRt5yUi1oPa8s\n",
        ],
        &["PuTTY-User-Key-File-3 is the first line"],
    ),
    critical(
        "putty_private_lines",
        "PRIVATE_KEY",
        Trigger::Keyword(&["Private-Lines"]),
        "(?i)Private-Lines: ?[0-9]{1,3}\\s{1,4}",
        putty_lines,
        &["Private-Lines: 1\nAAAAIHk3Jd9fQw7eRt5yUi1oPa8s\nPrivate-MAC: 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c\n"],
        &["Private-Lines: 8 is how many there are", "Private-Lines: 1\n<REDACTED:PRIVATE_KEY>\n"],
    ),
    critical(
        "private_key_end",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["-----END"]),
        "(?i)-----END[ A-Z0-9_-]{0,40}(?:PRIVATE|SECRET)[ _]KEY(?: BLOCK)?-----",
        key_end,
        &["k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\n2xCv0bNm3Q==\n-----END RSA PRIVATE KEY-----"],
        &[
            "it ends with\n-----END RSA PRIVATE KEY-----",
            "<REDACTED:PRIVATE_KEY>\n-----END RSA PRIVATE KEY-----",
            "internationalisation\n-----END RSA PRIVATE KEY-----",
        ],
    ),
    critical(
        "private_key_body",
        "PRIVATE_KEY",
        // What is found by decoding goes by this name, too; here are those that hang on a sign of base64.
        Trigger::Keyword(&["MII", "MIG", "MIH", "MC4CAQ", "MHcCAQ", "b3BlbnNzaC1rZXktdjE"]),
        r"(?:MI[GHI]|MC4CAQ|MHcCAQ|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/=\r\n\\ ]{16,}",
        key_body,
        &[
            concat!("key: MIIEpAIBAAKCAQEA", "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLz"),
            "MIIE pAIB AAKC AQEA k3Jd 9fQw 7eRt 5yUi 1oPa 8sDf 4gHj 6kLz",
            concat!("+MIIEpAIBAAKCAQEA", "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLz"),
        ],
        &["MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ"],
    ),
    critical(
        "age_secret_key",
        "PRIVATE_KEY",
        Trigger::Keyword(&["AGE-SECRET-KEY-"]),
        "(?i)AGE-SECRET-KEY-(?:PQ-)?1([A-Z0-9]{58,})",
        age,
        &[concat!("AGE-SECRET-KEY-1", "QZ3X7PL9K2M4N6R8S0T5V7W9Y1ACDEFGHJKLMNPQRSTUVWXYZ234567QZQ")],
        &[
            "AGE-SECRET-KEY-1XYZ",
            "AGE-SECRET-KEY-1XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
        ],
    ),
];

fn age(found: &Found<'_>) -> Option<Range<usize>> {
    let masked = found.value().iter().all(|byte| byte.eq_ignore_ascii_case(&b'x'));
    (found.ends_well() && !masked).then(|| found.whole.clone())
}

/// From the header to the end line, or as far as it looks like a key. A header alone, in a sentence, is none.
fn private_key(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.text[found.whole.end..found.text.len().min(found.whole.end + LONGEST_KEY)];
    let stop = find(rest, b"-----BEGIN").unwrap_or(rest.len());
    let rest = &rest[..stop];
    let end = match find(rest, b"-----END").or_else(|| find(rest, b"---- END")) {
        Some(at) => {
            let line =
                rest[at + 5..].iter().position(|byte| matches!(byte, b'\n' | b'"' | b'\'' | b'`' | b'\\'));
            let tail = &rest[at..line.map_or(rest.len(), |line| at + 5 + line)];
            let dashes = find(&tail[5..], b"----").map_or(tail.len(), |dashes| 5 + dashes);
            let close = tail[dashes..].iter().take_while(|byte| **byte == b'-').count();
            at + dashes + close
        }
        None => {
            let key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \t\r\n\"',-:*#().;`".contains(byte);
            rest.iter().take_while(|byte| key(byte)).count()
        }
    };
    let body = &rest[..end];
    let told = body.ends_with(b"--") && body.contains(&b'\n') && !is_empty(body);
    let real = told || (has_key(body) && !is_prose(body) && !stands_in(inside(body)));
    real.then(|| found.whole.start..found.whole.end + end)
}

/// Between the two lines stands nothing, code, or something in a key's place.
fn is_empty(body: &[u8]) -> bool {
    let inside = inside(body);
    // The quotes that the first line stands in are closed behind it, and no key follows.
    let quoted = matches!(inside.first(), Some(b'"' | b'\'' | b'`')) && !has_key(inside);
    find(body, PLACEHOLDER).is_some() || stands_in(inside) || quoted
}

pub(super) fn inside(body: &[u8]) -> &[u8] {
    body[..find(body, b"-----END").unwrap_or(body.len())].trim_ascii()
}

/// What people write where a key goes.
pub(super) fn stands_in(inside: &[u8]) -> bool {
    let signs = |byte: &u8| b".xX*#>| \t\r\n".contains(byte) || !byte.is_ascii();
    inside.iter().all(signs)
        || (matches!(inside, [b'<', .., b'>'] | [b'[', .., b']'] | [b'{', .., b'}']) && !has_key(inside))
        || (inside.starts_with(b"YOUR") && inside.ends_with(b"HERE"))
        || (inside.len() < LEAST_LINE && inside.ends_with(b"..."))
}

/// Words with blanks between them, as no key has.
pub(super) fn is_prose(body: &[u8]) -> bool {
    let gaps = body
        .windows(3)
        .filter(|part| part[1] == b' ' && part[0].is_ascii_alphanumeric() && part[2].is_ascii_alphanumeric());
    gaps.count() * 9 > body.len()
}

/// Whether something long enough for a line of a key is in it.
pub(super) fn has_key(body: &[u8]) -> bool {
    body.split(|byte| !is_base64(*byte))
        .any(|run| run.len() >= SURE_LINE || (run.len() >= LEAST_LINE && opaque::cost(run) > 5.5))
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn putty(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.text[found.whole.end..found.text.len().min(found.whole.end + LONGEST_KEY)];
    let key = find(rest, b"Private-Lines")?;
    let mac = find(rest, b"Private-MAC");
    let lines = &rest[key..mac.filter(|mac| *mac > key).unwrap_or(rest.len())];
    // Somebody has taken the key out already.
    if find(lines, PLACEHOLDER).is_some() && !has_key(lines) {
        return None;
    }
    let end = mac.map_or(rest.len(), |at| {
        at + rest[at..].iter().position(|byte| *byte == b'\n').unwrap_or(rest.len() - at)
    });
    Some(found.whole.start..found.whole.end + end)
}

/// The private lines of a file whose first line is not there, as far as they look like a key.
fn putty_lines(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.after()[..found.after().len().min(LONGEST_KEY)];
    let key = |byte: &&u8| is_base64(**byte) || byte.is_ascii_whitespace();
    let mut end = rest.iter().take_while(key).count();
    let mac = find(&rest[..rest.len().min(end + 1)], b"Private-").unwrap_or(end);
    let lines = &rest[..mac];
    if rest[mac..].get(..11).is_some_and(|word| word.eq_ignore_ascii_case(b"Private-MAC")) {
        end = mac + rest[mac..].iter().position(|byte| *byte == b'\n').unwrap_or(rest.len() - mac);
    }
    let first = lines.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    (first.len() >= LEAST_LINE && has_key(lines)).then(|| found.whole.start..found.whole.end + end)
}

/// A key whose first lines are missing: before the end line stand lines of base64, of which one at least is no word.
fn key_end(found: &Found<'_>) -> Option<Range<usize>> {
    let before = found.before(LONGEST_KEY);
    let (mut start, mut real, mut at) = (before.len(), false, before.len());
    loop {
        let gap = before[..at].iter().rev().take_while(|byte| b" \t\r\n\"',\\".contains(byte)).count();
        let end = at - gap;
        let length = before[..end].iter().rev().take_while(|byte| is_base64(**byte)).count();
        let line = &before[end - length..end];
        let last = start == before.len();
        let cut = end > length && !b" \t\r\n\"',\\".contains(&before[end - length - 1]);
        if cut || length == 0 || (!last && length < LEAST_LINE) {
            break;
        }
        real |= length >= LEAST_LINE && opaque::cost(line) > 5.5;
        start = end - length;
        at = start;
    }
    real.then(|| found.whole.start - (before.len() - start)..found.whole.end)
}

/// The rest of the base64 goes with its start.
fn key_body(found: &Found<'_>) -> Option<Range<usize>> {
    let key = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=\\\r\n".contains(byte);
    let rest = found.after().iter().take(LONGEST_KEY).take_while(key).count();
    let real = encoded::begins_key(found.value()) && !is_filler(found.value());
    real.then(|| found.whole.start..found.whole.end + rest)
}

/// Whether a member of a JSON web key is what makes it a private one.
pub(crate) fn is_private_part(kind: &str, name: &str, value: &str) -> bool {
    let private = match kind {
        "oct" => name == "k",
        "EC" | "RSA" | "OKP" | "AKP" => matches!(name, "d" | "priv" | "p" | "q" | "dp" | "dq" | "qi"),
        _ => false,
    };
    let value = value.as_bytes();
    let key = |byte: &u8| is_base64(*byte) || matches!(byte, b'_' | b'-');
    private && value.len() >= LEAST_LINE && value.iter().all(key) && !is_filler(value)
}

/// A key set has a private part beside its type: `d`, or `k` of a symmetric one.
fn jwk(found: &Found<'_>) -> Option<Range<usize>> {
    let from = found.whole.start.saturating_sub(NEAR_JWK);
    let near = &found.text[from..found.text.len().min(found.whole.end + NEAR_JWK)];
    for (at, byte) in near.iter().enumerate() {
        if !matches!(byte, b'd' | b'k') {
            continue;
        }
        if at > 0 && (near[at - 1].is_ascii_alphanumeric() || matches!(near[at - 1], b'_' | b'-')) {
            continue;
        }
        let gap = near[at + 1..].iter().take(12).take_while(|byte| b"\"'\\ \t\n\r:=".contains(byte)).count();
        let start = at + 1 + gap;
        let sign = near[at + 1..start].iter().any(|byte| matches!(byte, b':' | b'='));
        let key = near[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'='))
            .count();
        if sign && key >= 20 && opaque::cost(&near[start..start + key]) > 5.5 {
            return Some(from + start..from + start + key);
        }
    }
    None
}

/// The first place of some words, in any case.
pub(super) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window.eq_ignore_ascii_case(what))
}

/// What a key that was taken out has left.
const PLACEHOLDER: &[u8] = b"<REDACTED:";
pub(super) const LEAST_LINE: usize = 14;
/// No word is so long.
const SURE_LINE: usize = 40;
/// An RSA key of 16,384 bits, with room.
pub(super) const LONGEST_KEY: usize = 16 * 1024;
const NEAR_JWK: usize = 4096;
