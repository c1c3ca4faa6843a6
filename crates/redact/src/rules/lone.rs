//! Secrets with no credential word beside them.
//!
//! A user and a password in base64 behind the scheme that they are sent in; a token behind the name of a service; and a
//! token that looks like nothing anyone would write. Most of what scanners take by mistake is of the last kind, so it
//! asks for much. Exempt are git ids, hashes of lock files, UUIDs, and what begins like a vendor's token and is none.

use std::ops::Range;

use super::generic::hash_near;
use super::services::{self, Service};
use super::value::{is_ladder, is_stand_in};
use super::{Family, Found, Rule, Trigger, vendor, vendor_others, vendor_services};
use crate::encoded;
use crate::finding::Tier;
use crate::opaque::{self, Make};

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "basic_credentials",
        label: "CREDENTIALS",
        tier: Tier::Noncritical,
        family: Family::Secret,
        trigger: Trigger::Keyword(&["basic "]),
        pattern: r"(?i)basic {1,3}([A-Za-z0-9+/]{10,}={0,2})",
        check: basic,
        matches: &["header: \"Basic amFuZTpodW50ZXIy\",", "- Basic amFuZTpodW50ZXIy"],
        misses: &["basic authentication", "basic understanding", "Basic YWJjZGVmZ2hpams="],
    },
    Rule {
        id: "opaque_token",
        label: "SECRET",
        tier: Tier::Noncritical,
        family: Family::Opaque,
        trigger: Trigger::Token(16),
        pattern: "",
        check: lone,
        matches: &[
            "see k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz for it",
            "deepgram = 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
            "blazemeter 0f3a9c5b-7d1e-4f4a-8b8c-0d9e1f2a3b4c",
        ],
        misses: &[
            "0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
            "sha512-k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLz==",
            "29f63271-dc2f-4734-8221-5b31b5169bac",
            "springSecurityOauth2AutoconfigureVersion",
            "github 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
            "twilio-node-5.3.2-linux-x86_64.tar.gz",
            "\"id\":\"k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz\"",
            "see toolu_01Tzk3Jd9fQw7eRt5yUi1oPa8sDf for it",
        ],
    },
];

/// A user and a password in base64, with the scheme that they are sent in before them.
fn basic(found: &Found<'_>) -> Option<Range<usize>> {
    let text = encoded::decode(found.value())?;
    let (user, password) = text.split_once(':')?;
    let good =
        !user.is_empty() && password.len() >= 3 && text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    good.then(|| found.secret.clone())
}

/// A token with no credential word beside it.
fn lone(found: &Found<'_>) -> Option<Range<usize>> {
    let mut value = found.value();
    while let [rest @ .., b'.' | b'-' | b'/' | b'_'] = value {
        value = rest;
    }
    let make = Make::of(value);
    if make.digits < 3 {
        return None;
    }
    if let Some(range) = beside_service(found, value) {
        return Some(range);
    }
    let path = value.iter().filter(|byte| matches!(byte, b'/' | b'.')).count();
    let mixed = make.lower > 2 && make.upper > 2 && make.digits > 2 && (24..=120).contains(&value.len());
    // Name and value run together are for the rules of names.
    let assigned = value.iter().position(|byte| *byte == b'=').is_some_and(|at| at + 3 < value.len());
    if !mixed || path > 1 || opaque::cost(value) < 7.4 || assigned || is_ladder(value) {
        return None;
    }
    if is_object_id(found, value) || is_wallet_like(value) {
        return None;
    }
    // Keys that may be shown, and addresses of wallets, whose own check has judged them.
    let shown = found.follows(&["public", "encrypted", "authenticity", "csrf", "wallet", "bitcoin"], 32);
    // A line of base64 among others is a document, not a key.
    let line = value.len() >= 60 && matches!(found.after().first(), Some(b'\n' | b'\r'));
    if shown
        || line
        || is_alone(found, value.len())
        || is_stand_in(value)
        || hash_near(found.text, &found.secret)
        || is_known_form(value)
    {
        return None;
    }
    let begins = !found
        .before(1)
        .iter()
        .any(|byte| matches!(byte, b'/' | b'#' | b'@' | b'%' | b'\\' | b'-' | b'.' | b'_' | b'$'))
        && !value.starts_with(b"eyJ");
    // Every other character of another kind: what chance makes, and names do not.
    let kind = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let switches = value.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let busy = switches * 5 >= value.len() * 2;
    (begins && busy).then(|| found.secret.start..found.secret.start + value.len())
}

/// Nothing else stands on its line, which then says nothing of what the token is for: most such are ids and samples.
fn is_alone(found: &Found<'_>, length: usize) -> bool {
    let end = found.secret.start + length;
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
    let before =
        found.text[..found.secret.start].iter().rev().take(LONGEST_SERVICE).find(|byte| !blank(byte));
    let after = found.text[end..].iter().take(LONGEST_SERVICE).find(|byte| !blank(byte));
    before.is_none_or(|byte| *byte == b'\n') && after.is_none_or(|byte| *byte == b'\n')
}

/// A token right behind the name of a service, with nothing but signs between them: `acme: …`, `acme=…`, `acme-…`.
fn beside_service(found: &Found<'_>, value: &[u8]) -> Option<Range<usize>> {
    let start = found.secret.start;
    let joint = value.iter().take(LONGEST_SERVICE).position(|byte| matches!(byte, b'=' | b'-'));
    if let Some(joint) = joint.filter(|joint| value.len() - joint >= LEAST_KEY)
        && services::named(&value[..joint]) == Some(Service::Sure)
        && is_key(&value[joint + 1..])
    {
        return Some(start + joint + 1..start + value.len());
    }
    if value.len() < LEAST_KEY {
        return None;
    }
    let before = found.lead();
    let gap = before.iter().rev().take_while(|byte| b" \t=:\"'`".contains(byte)).count();
    let name = &before[..before.len() - gap];
    let length =
        name.iter().rev().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let named =
        (1..=6).contains(&gap) && services::named(&name[name.len() - length..]) == Some(Service::Sure);
    let good = named && is_key(value) && !hash_near(found.text, &found.secret);
    good.then(|| start..start + value.len())
}

/// What only a key looks like: a UUID, many hexadecimal digits, or a long run of letters and digits like no word.
fn is_key(value: &[u8]) -> bool {
    let make = Make::of(value);
    if make.digits < 3 || make.letters() < 3 || make.distinct < 6 || value.len() < LEAST_KEY {
        return false;
    }
    let such =
        opaque::is_uuid(value) || opaque::is_hex(value) || (make.signs <= 2 && opaque::cost(value) > 6.0);
    such && !is_stand_in(value)
}

/// What a service calls an answer, a message, a payment: under a name that says so, or with a prefix that does.
fn is_object_id(found: &Found<'_>, value: &[u8]) -> bool {
    let lead = found.lead();
    let signs = lead.iter().rev().take_while(|byte| b" \t=:\"'`\\".contains(byte)).count();
    let name = &lead[..lead.len() - signs];
    let named = signs > 0
        && (name.ends_with(b"_id") || name.ends_with(b"Id") || name.ends_with(b"ID") || {
            name.ends_with(b"id") && !matches!(name, [.., byte, _, _] if byte.is_ascii_alphanumeric())
        });
    named || OBJECTS.iter().any(|prefix| value.starts_with(prefix.as_bytes()))
}

/// An address of Bitcoin by its shape, whose own rule has judged it.
fn is_wallet_like(value: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() && !matches!(byte, b'0' | b'O' | b'I' | b'l');
    (26..=35).contains(&value.len()) && matches!(value[0], b'1' | b'3') && value.iter().all(letter)
}

/// Begins like a vendor's token, which the vendor's own rule would have known.
fn is_known_form(value: &[u8]) -> bool {
    [vendor::RULES, vendor_services::RULES, vendor_others::RULES].into_iter().flatten().any(|rule| {
        matches!(rule.trigger, Trigger::Keyword(words)
            if words.iter().any(|word| word.len() >= 3 && value.starts_with(word.as_bytes())))
    })
}

/// How the ids of answers, messages, calls, runs and payments begin.
const OBJECTS: &[&str] = &[
    "asst_",
    "call_",
    "chatcmpl-",
    "cmpl-",
    "evt_",
    "file-",
    "fp_",
    "gen-",
    "item_",
    "msg_",
    "msgbatch_",
    "req_",
    "resp_",
    "run_",
    "step_",
    "thread_",
    "toolu_",
    "vs_",
    "cus_",
    "pi_",
    "prod_",
    "sub_",
    "txn_",
];
/// Shorter tokens are no keys by the name of a service alone.
const LEAST_KEY: usize = 24;
const LONGEST_SERVICE: usize = 48;
