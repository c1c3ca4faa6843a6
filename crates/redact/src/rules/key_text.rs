//! Private keys in other writings than PEM: as text of OpenSSL and GnuTLS, XML, zone keys of DNSSEC, expressions of gpg,
//! WireGuard's settings, dumps in hexadecimal, and PEM whose dashes are gone or were made prettier.

use std::ops::Range;

use memchr::memmem;

use super::critical::critical;
use super::private_key::{LEAST_LINE, LONGEST_KEY, find, has_key, inside, is_base64, is_prose, stands_in};
use super::value::is_filler;
use super::{Found, Rule, Trigger};
use crate::opaque::Make;
use crate::{encoded, keys, opaque};

pub(super) static RULES: &[Rule] = &[
    critical(
        "private_key_words",
        "PRIVATE_KEY",
        Trigger::Keyword(&["BEGIN"]),
        r"(?i)BEGIN[ _+][ A-Z0-9_+-]{0,40}(?:PRIVATE|SECRET)[ _+]KEY(?:[ _+]BLOCK)?[^A-Za-z0-9\n]{0,16}\s",
        words,
        &[
            "BEGIN PGP PRIVATE KEY BLOCK\nVersion: 1\n\nlQOYBFkx0d0BCADVQ5bnJ8cX2vT9\nEND PGP PRIVATE KEY BLOCK",
            "\u{2014}BEGIN RSA PRIVATE KEY\u{2014}\nk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\n\u{2014}END RSA PRIVATE KEY\u{2014}",
            "***** BEGIN PRIVATE KEY *****\nk3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm",
        ],
        &[
            "BEGIN PRIVATE KEY handling here",
            "Begin private key rotation in the afternoon and internationalisation",
            "BEGIN RSA PRIVATE KEY\n...\nEND RSA PRIVATE KEY",
            "BEGIN PRIVATE KEY\nis the line that springSecurityOauth2AutoconfigureVersion reads",
        ],
    ),
    critical(
        "private_key_text",
        "PRIVATE_KEY",
        Trigger::Keyword(&[
            "privateexponent",
            "private exponent",
            "private-exponent",
            "priv:",
            "prime1",
            "inverseq",
            "private-key:",
            "private key:",
        ]),
        concat!(
            r#"(?i)(?:(?:private[ -]?exponent|prime1|inverseq)["'\\]{0,3}(?:\s?\([^)\n]{0,40}\))?\s{0,2}[:=>][\s>#*|]{0,24}["'\\]{0,3}(?:(?:0x)?[0-9a-f]{40,}|[0-9]{60,}|[a-z0-9+/]{40,}|(?:[0-9a-f]{2}[:\s][\s>#*|]{0,24}){15,})"#,
            r#"|(?:priv|private[- ]key):[\s>#*|]{1,24}(?:[0-9a-f]{2}[:\s][\s>#*|]{0,24}){15,})"#
        ),
        numbers,
        &[
            "privateExponent:\n    00:9f:3a:5c:7b:1d:2e:4f:6a:8b:0c:9d:1e:2f:3a:\n    4c:5d:6e",
            "priv:\n    9f:3a:5c:7b:1d:2e:4f:6a:8b:0c:9d:1e:2f:3a:4c:\n    5d:6e:7f\npub:\n    04:11",
            "PrivateExponent: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTy",
        ],
        &[
            "privateExponent: the number d of RSA",
            "pub:\n    04:9f:3a:5c:7b:1d:2e:4f:6a:8b:0c:9d:1e:2f:3a:4c:5d:6e",
            "privateExponent:\n    00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00",
        ],
    ),
    critical(
        "private_key_xml",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["RSAKeyValue", "RSAParameters", "DSAKeyValue"]),
        r"(?i)(?:RSAKeyValue|RSAParameters|DSAKeyValue)[^<>\n]{0,200}>",
        xml,
        &[
            "<RSAKeyValue><Modulus>k3Jd9fQw7eRt5yUi</Modulus><D>k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz</D></RSAKeyValue>",
        ],
        &[
            "<RSAKeyValue><Modulus>k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz</Modulus><Exponent>AQAB</Exponent></RSAKeyValue>",
        ],
    ),
    critical(
        "private_key_zone",
        "PRIVATE_KEY",
        Trigger::Keyword(&["Private-key-format"]),
        r"(?i)Private-key-format:\s{0,4}v[0-9]",
        zone,
        &[
            "Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\nPrivateKey: k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3Q=\n",
        ],
        &["Private-key-format: v1.3 is the first line of the file"],
    ),
    critical(
        "private_key_expression",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["(private-key", "(protected-private-key", ":private-key("]),
        r"(?i)[(:](?:protected-)?private-key\s{0,8}\(\s{0,8}(?:[0-9]{1,2}:)?[a-z][a-z0-9-]{1,11}",
        expression,
        &[
            "Key: (private-key (ecc (curve Ed25519)(flags eddsa)(q #40AB#)(d\n  #9F3A5C7B1D2E4F6A8B0C9D1E2F3A4C5D6E7F8091#)\n ))",
            "(protected-private-key (rsa (n #00AB#)(e #010001#)(protected openpgp-s2k3-sha1-aes-cbc ((sha1 #F7#) \"4\")#9F3A5C7B1D2E4F6A#)))",
        ],
        &["(private-key (rsa (n #00AB12#)(e #010001#)))", "(private-key (see below))"],
    ),
    critical(
        "private_key_value",
        "PRIVATE_KEY",
        Trigger::Anywhere(&["privatekey", "private_key", "private-key", "private key"]),
        concat!(
            r#"(?i)private[-_ ]?key["'\\\]]{0,4}\s{0,8}(?:(?:,\s{0,8}["']?value["']?\s{0,4})?[:=]|=>|:=|\s|\sis)\s{0,8}(?:<\(echo\s{1,2})?"#,
            r#"["'`\\]{0,4}((?:0x)?[0-9a-f]{64,132}|[a-z0-9+/_-]{42,88}={0,2})"#
        ),
        value,
        &[
            "[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\nAddress = 10.0.0.1/24",
            "WG_PRIVATE_KEY=yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=",
            "wg set wg0 private-key <(echo yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=)",
            "private_key: \"0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318\"",
        ],
        &[
            "PrivateKey = <your private key>",
            "PrivateKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "private_key = identity_providers_oidc_issuer_private_key",
            "PrivateKey = path/to/where/the/operator/put/the/wireguard/file",
        ],
    ),
    critical(
        "private_key_dump",
        "PRIVATE_KEY",
        // In full where DER is long, and else by the lengths that keys of known curves have.
        Trigger::Anywhere(&[
            "30:82:",
            "30:81:",
            "30:80:",
            "30 82 ",
            "30 81 ",
            "30 80 ",
            "30:2e:02:01",
            "30:47:02:01",
            "30:46:02:01",
            "30:77:02:01",
            "30:74:02:01",
            "30:68:02:01",
            "30:5f:02:01",
            "30:31:02:01",
            "30:25:02:01",
            "30:51:02:01",
            "30:53:02:01",
            "30 2e 02 01",
            "30 47 02 01",
            "30 46 02 01",
            "30 77 02 01",
            "30 74 02 01",
            "30 68 02 01",
            "30 5f 02 01",
            "30 31 02 01",
            "30 25 02 01",
            "30 51 02 01",
            "30 53 02 01",
            "0x30,",
            "\\x30\\x",
            "00000000: 30",
            "00000000  30 ",
            "0000000 30",
        ]),
        r"(?i)(?:0{7,8}:?\s{1,2})?(?:0x|\\x)?30(?:[\s:,>#*|-]{0,6}(?:\\\r?\n)?\s{0,12}(?:0x|\\x)?[0-9a-f]{2}){13,}",
        dump,
        &[
            "30:2e:02:01:00:30:05:06:03:2b:65:70:04:22:04:20:9f:3a:5c:7b:1d:2e:4f:6a",
            "0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,\n  0x04, 0x22, 0x04, 0x20, 0x9f, 0x3a, 0x5c",
            r"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20\x9f\x3a\x5c\x7b",
            "00000000: 302e 0201 0030 0506 032b 6570 0422 0420  0....0...+ep.\". ",
        ],
        &[
            "30:2a:30:05:06:03:2b:65:70:03:21:00:9f:3a:5c:7b:1d:2e:4f:6a",
            "00000000: 3080 0201 0203 0405 0607 0809 0a0b 0c0d",
        ],
    ),
    critical(
        "private_key_numbers",
        "PRIVATE_KEY",
        Trigger::Keyword(&["48,"]),
        r"48(?:,\s{0,12}-?[0-9]{1,3}\b){13,}",
        counted,
        &[
            "[48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32, 159, 58, 92, 123]",
            "{48,-126,4,-67,2,1,0,48,13,6,9,42,-122,72,-122,-9,13,1,1,1,5,0,4,-126,4,-89}",
        ],
        &[
            "[48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0, 159, 58, 92]",
            "48, 46, 2, 1, 0, 480, 5, 6, 3, 43, 101, 112, 4, 34",
        ],
    ),
];

/// From the words of a first line without its dashes, as far as lines of a key follow.
fn words(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.after()[..found.after().len().min(LONGEST_KEY)];
    let rest = &rest[..find(rest, b"BEGIN ").unwrap_or(rest.len())];
    let end = find(rest, b"END ").map_or(rest.len(), |at| {
        at + rest[at..].iter().take_while(|byte| !matches!(byte, b'\n' | b'"' | b'\'' | b'`' | b'\\')).count()
    });
    let lines = || {
        rest[..end].split(|byte| byte.is_ascii_whitespace() || *byte == b'\\').filter(|line| !line.is_empty())
    };
    // Behind the lines that name a version or a comment, the first is of a key from end to end.
    let line = |line: &&[u8]| line.len() >= LEAST_LINE && line.iter().all(|byte| is_base64(*byte));
    let first = lines().take(MOST_BEFORE).find(line)?;
    let opaque = opaque::cost(first) > 5.5 && Make::of(first).digits > 0;
    let real = (opaque || encoded::begins_key(first)) && has_key(first) && !is_filler(first);
    let body = &rest[..end];
    let key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\ \t\r\n\"',-:*#().;`".contains(byte);
    let end = if end < rest.len() { end } else { body.iter().take_while(|byte| key(byte)).count() };
    (real && !is_prose(&body[..end.min(body.len())]) && !stands_in(inside(body)))
        .then(|| found.whole.start..found.whole.end + end)
}

/// The number behind its name, to its end.
fn numbers(found: &Found<'_>) -> Option<Range<usize>> {
    let number = |byte: &&u8| {
        byte.is_ascii_hexdigit() || is_base64(**byte) || matches!(byte, b':' | b' ' | b'\t' | b'\r' | b'\n')
    };
    let value = found.value();
    let pairs = value.ends_with(b":") || value.ends_with(b" ") || value.ends_with(b"\n");
    let digits =
        |byte: &&u8| number(byte) && (!pairs || byte.is_ascii_hexdigit() || !byte.is_ascii_alphanumeric());
    let rest = found.after().iter().take(LONGEST_KEY).take_while(digits).count();
    let start = value.iter().position(|byte| matches!(byte, b':' | b'=' | b'>'))?;
    let given = &value[start..];
    let real = Make::of(given).distinct >= LEAST_DISTINCT && !is_filler(given);
    real.then(|| found.whole.start..found.whole.end + rest)
}

/// A key in XML whose private part is there. What comes before the next name is one key.
fn xml(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.after()[..found.after().len().min(LONGEST_KEY)];
    let stop =
        [&b"KeyValue"[..], b"RSAParameters"].into_iter().filter_map(|name| memmem::find(rest, name)).min();
    let rest = &rest[..stop.unwrap_or(rest.len())];
    let parts = [&b"<D>"[..], b":D>", b"<InverseQ>", b":InverseQ>", b"<DP>", b"<X>", b":X>"];
    parts.into_iter().find_map(|part| {
        let at = memmem::find(rest, part)? + part.len();
        let length =
            rest[at..].iter().take_while(|byte| is_base64(**byte) || byte.is_ascii_whitespace()).count();
        let value = &rest[at..at + length];
        let real = length >= LEAST_PART && !is_filler(value) && Make::of(value).distinct >= LEAST_DISTINCT;
        real.then(|| found.whole.start..found.whole.end + rest.len())
    })
}

/// The lines of a zone's key, of which one is private.
fn zone(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.after()[..found.after().len().min(LONGEST_KEY)];
    let rest = &rest[..find(rest, b"Private-key-format").unwrap_or(rest.len())];
    let names = [&b"PrivateKey:"[..], b"PrivateExponent:", b"Private_value(x):", b"\nKey:"];
    let ends = names.into_iter().filter_map(|name| {
        let at = find(rest, name)? + name.len();
        let gap = rest[at..].iter().take(8).take_while(|byte| byte.is_ascii_whitespace()).count();
        let length = rest[at + gap..].iter().take_while(|byte| is_base64(**byte)).count();
        let value = &rest[at + gap..at + gap + length];
        (length >= LEAST_PART && !is_filler(value)).then_some(at + gap + length)
    });
    ends.max().map(|end| found.whole.start..found.whole.end + end)
}

/// An expression with the private number, or with what a passphrase protects, to where it closes.
fn expression(found: &Found<'_>) -> Option<Range<usize>> {
    let rest = &found.after()[..found.after().len().min(LONGEST_KEY)];
    let rest = &rest[..find(rest, b"private-key").unwrap_or(rest.len())];
    let parts = [&b"(d"[..], b"(x", b"(protected", b"(1:d", b"(1:x", b"(9:protected"];
    let real = parts.into_iter().any(|part| {
        find(rest, part).is_some_and(|at| {
            let digits = rest[at + part.len()..].split(|byte| *byte == b'#').skip(1).step_by(2);
            let written = digits.map(|run| run.iter().filter(|byte| byte.is_ascii_hexdigit()).count());
            written.take(MOST_BEFORE).any(|count| count >= LEAST_PART) || part[1].is_ascii_digit()
        })
    });
    let mut open = 2usize;
    let close = rest.iter().position(|byte| {
        open = match byte {
            b'(' => open + 1,
            b')' => open - 1,
            _ => open,
        };
        open == 0
    });
    real.then(|| found.whole.start..found.whole.end + close.map_or(rest.len(), |close| close + 1))
}

/// A value of as many bytes as the private keys of curves have, under that name.
fn value(found: &Found<'_>) -> Option<Range<usize>> {
    let value = found.value();
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    let hex = digits.iter().all(u8::is_ascii_hexdigit);
    let signs = digits.len() - digits.iter().rev().take_while(|byte| **byte == b'=').count();
    let bytes = if hex { signs / 2 } else { signs * 3 / 4 };
    let make = Make::of(digits);
    let ends =
        !found.after().first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/_-=.".contains(byte));
    let unlike = hex || opaque::cost(digits) > 6.3;
    let real = ends
        && matches!(bytes, 32 | 48 | 56 | 57 | 64 | 66)
        && make.digits > 0
        && make.distinct >= if hex { 8 } else { 16 }
        && make.longest_ladder < 8
        && unlike
        && !is_filler(digits);
    real.then(|| found.secret.clone())
}

/// Bytes in hexadecimal with something between them, to their end.
fn dump(found: &Found<'_>) -> Option<Range<usize>> {
    let text = &found.text[found.whole.start..found.text.len().min(found.whole.start + MOST_DUMPED)];
    let is_listing = text.starts_with(b"000000");
    let digits = if is_listing { listed(text) } else { spaced(text) };
    let rest = |byte: &&u8| byte.is_ascii_hexdigit() || b":, \\x\n\r\t->#*|".contains(byte);
    let length =
        if is_listing { 0 } else { found.after().iter().take(3 * LONGEST_KEY).take_while(rest).count() };
    encoded::begins_key_in_hex(&digits).then(|| found.whole.start..found.whole.end + length)
}

/// The digits of groups with signs between them.
fn spaced(text: &[u8]) -> Vec<u8> {
    let group = |group: &[u8]| {
        let digits = group.strip_prefix(b"0x").or_else(|| group.strip_prefix(b"x")).unwrap_or(group);
        digits.to_vec()
    };
    text.split(|byte| !byte.is_ascii_alphanumeric())
        .map(group)
        .take_while(|group| group.iter().all(u8::is_ascii_hexdigit))
        .flatten()
        .collect()
}

/// The digits of a listing, whose lines have a place before sixteen bytes and the same bytes as letters behind them.
fn listed(text: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let groups = line.split(|byte| !byte.is_ascii_alphanumeric()).filter(|group| !group.is_empty());
        let hex = |group: &&[u8]| group.len().is_multiple_of(2) && group.iter().all(u8::is_ascii_hexdigit);
        groups.skip(1).take_while(hex).flatten().copied().take(LISTED).collect::<Vec<u8>>()
    };
    text.split(|byte| *byte == b'\n').flat_map(line).collect()
}

/// Bytes as numbers, with or without signs, to their end.
fn counted(found: &Found<'_>) -> Option<Range<usize>> {
    let bytes: Option<Vec<u8>> = found
        .value()
        .split(|byte| *byte == b',')
        .map(|number| {
            let number: i16 = std::str::from_utf8(number.trim_ascii()).ok()?.parse().ok()?;
            u8::try_from(number.rem_euclid(256)).ok().filter(|_| (-128..256).contains(&number))
        })
        .collect();
    let rest = |byte: &&u8| byte.is_ascii_digit() || b", -\r\n\t".contains(byte);
    let length = found.after().iter().take(4 * LONGEST_KEY).take_while(rest).count();
    bytes
        .is_some_and(|bytes| keys::is_private_key(&bytes))
        .then(|| found.whole.start..found.whole.end + length)
}

/// How many words of comments may stand before a key, and how many numbers before a private one.
const MOST_BEFORE: usize = 16;
const LEAST_PART: usize = 16;
/// As much of a dump as tells what it is of, and the digits of a line of a listing.
const MOST_DUMPED: usize = 512;
const LISTED: usize = 32;
/// A number of fewer different signs is nobody's key.
const LEAST_DISTINCT: usize = 8;
