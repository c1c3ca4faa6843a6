//! Addresses of machines: IPv4, IPv6, MAC.
//!
//! Loopback, unspecified and mask addresses are nobody's and stay. A version number has four parts too, so what
//! follows the word "version" is none.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::value::has_any;
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

const fn network(
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

pub(super) static RULES: &[Rule] = &[
    network(
        "ipv4_address",
        "IP_ADDRESS",
        Trigger::Number(4, 40),
        r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}",
        ipv4,
        &[
            "from 203.0.113.7.",
            "203.0.113.7:8080",
            "http://198.51.100.23/x",
            "10.1.2.3/8",
            "192.168.1.1.1",
            "server 203.0.113.7;",
            "root@203.0.113.7",
        ],
        &[
            "127.0.0.1",
            "0.0.0.0",
            "255.255.255.0",
            "version 1.2.3.4",
            "1.2.3",
            "300.1.1.1",
            "1.2.3.4.5",
            "x1.2.3.4",
            "RFC 5280, section 5.1.2.1",
            "brotlicffi>=1.2.0.2",
            "§ 10.2.1.2",
            "ver. 1.2.3.4",
        ],
    ),
    network(
        "ipv6_address",
        "IP_ADDRESS",
        Trigger::Colon,
        r":(?:[0-9A-Fa-f]{0,4}:){0,8}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})",
        ipv6,
        &[
            "2001:db8::1",
            "[fe80::1ff:fe23:4567:890a]:80",
            "at 2001:db8:0:1:1:1:1:1.",
            "::ffff:192.0.2.1",
            "::1/128",
        ],
        &["::1", "std::cout", "12:34:56", "::", "a::b::c", "text2001:db8::1", "fe80::1text", "Foo::dead"],
    ),
    network(
        "mac_address",
        "MAC_ADDRESS",
        Trigger::Hex,
        r"[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}",
        mac,
        &["00:1b:44:11:3a:b7", "00-1B-44-11-3A-B7.", "001b.4411.3ab7"],
        &[
            "00:00:00:00:00:00",
            "ff:ff:ff:ff:ff:ff",
            "00:1b:44:11:3a",
            "00:1b:44:11:3a:b7:c8",
            "00:1b:44-11-3a-b7",
            "4443.8270.5970.9207",
        ],
    ),
];

fn ipv4(found: &Found<'_>) -> Option<Range<usize>> {
    let address: Ipv4Addr = std::str::from_utf8(found.value()).ok()?.parse().ok()?;
    let first = address.octets()[0];
    let nobodys = address.is_loopback() || address.is_unspecified() || first == 255 || first == 0;
    // Object identifiers of X.509 and its like.
    let object =
        [&b"2.5.29."[..], b"2.5.4.", b"1.3.6.1", b"1.2.840"].iter().any(|arc| found.value().starts_with(arc));
    let version = is_numbered(found.before(14));
    let after = found.after();
    // Five parts are a version, unless they begin as only an address does.
    let local = address.is_link_local() || (first != 10 && address.is_private());
    let shut = match after {
        [b'.', next, ..] => local || !next.is_ascii_digit(),
        [next, ..] => !(next.is_ascii_alphanumeric() || *next == b'_'),
        [] => true,
    };
    let joined = match found.before(2) {
        [.., last] if last.is_ascii_alphanumeric() || matches!(last, b'.' | b'_') => true,
        [letter, b'-'] => letter.is_ascii_alphabetic(),
        _ => false,
    };
    (!nobodys && !object && !version && shut && !joined).then(|| found.secret.clone())
}

/// What stands before the number of a version or of a section.
fn is_numbered(before: &[u8]) -> bool {
    let word = before.trim_ascii_end();
    let word = word.strip_suffix(b".").or_else(|| word.strip_suffix(b"=")).unwrap_or(word);
    let letters = word.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = &word[word.len() - letters..];
    let pinned = [&b">="[..], b"<=", b"==", b"~=", "§ ".as_bytes(), "§".as_bytes()];
    has_any(before, &["version", "release"])
        || NUMBERED.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()))
        || pinned.iter().any(|sign| before.ends_with(sign))
}

fn ipv6(found: &Found<'_>) -> Option<Range<usize>> {
    let lead = found.before(5).iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let start = found.whole.start - lead;
    let mut before = found.text[..start].iter().rev();
    if lead > 4
        || before.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_'))
    {
        return None;
    }
    let mut end = found.whole.end;
    let goes_on = |end: usize| found.text.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    // A colon behind it ends a clause.
    if !goes_on(end) && found.text[start..end].ends_with(b":") && !found.text[start..end].ends_with(b"::") {
        end -= 1;
    }
    let text = std::str::from_utf8(&found.text[start..end]).ok()?;
    let address: Ipv6Addr = text.parse().ok()?;
    // With a length it is a network, and loopback is then a fact about a machine's set-up.
    let network = matches!(found.text[end..], [b'/', next, ..] if next.is_ascii_digit());
    let told = network
        || text.bytes().filter(u8::is_ascii_hexdigit).count() >= 3
            && text.bytes().any(|b| b.is_ascii_digit());
    let nobodys = address.is_unspecified() || (address.is_loopback() && !network);
    // ::ffff:256.0.0.1 and 2001:db8::1.2 are no addresses, nor are their beginnings.
    let dotted = matches!(found.text[end..], [b'.', next, ..] if next.is_ascii_digit());
    let length = found.text[end..].iter().skip(1).take(3).take_while(|byte| byte.is_ascii_digit()).count();
    let end = if network && address.is_loopback() { end + 1 + length } else { end };
    (!dotted && told && !nobodys && !goes_on(end)).then_some(start..end)
}

fn mac(found: &Found<'_>) -> Option<Range<usize>> {
    let digits: Vec<u8> =
        found.value().iter().filter(|byte| byte.is_ascii_hexdigit()).map(u8::to_ascii_lowercase).collect();
    let varied = digits.iter().any(|digit| *digit != digits[0]);
    let joined = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b':' | b'-' | b'.'));
    let open = !joined(found.before(1).first());
    let shut = !(joined(found.after().first()) && found.after().get(1).is_some_and(u8::is_ascii_hexdigit));
    (varied && open && shut && found.ends_well()).then(|| found.secret.clone())
}

const NUMBERED: &[&str] = &["ver", "v", "section", "sec", "sect", "chapter", "clause", "step", "appendix"];
