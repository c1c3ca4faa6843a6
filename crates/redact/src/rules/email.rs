//! Addresses of electronic mail.

use std::ops::Range;

use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;

pub(super) static RULES: &[Rule] = &[Rule {
    id: "email",
    label: "EMAIL",
    tier: Tier::Noncritical,
    family: Family::Personal,
    trigger: Trigger::Anywhere(&["@"]),
    pattern: r"@(?:[A-Za-z0-9\x80-\xff](?:[A-Za-z0-9\x80-\xff-]{0,61}[A-Za-z0-9\x80-\xff])?\.)+(?:[A-Za-z]{2,24}|xn--[a-z0-9-]{2,59}|[\x80-\xff]{4,40})",
    check: email,
    matches: &[
        "jane.doe+news@mail.example.org",
        "to: <o'brien@example.ie>.",
        "j\u{f6}rg@m\u{fc}ller.de",
        "a@b.co",
    ],
    misses: &["foo@1.2.3", "logo@2x.png", "git@github.com:a/b.git", "@foo.bar", "a@b", "x @example.com"],
}];

fn email(found: &Found<'_>) -> Option<Range<usize>> {
    let at = found.whole.start;
    let local =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"._%+-'!#$&*/=?^`~".contains(byte);
    let mut length = found.before(LONGEST).iter().rev().take_while(|byte| local(byte)).count();
    // What quotes, assigns or separates stands before the address, not in it.
    let name = &found.text[at - length..at];
    if let Some(cut) = name.iter().rposition(|byte| b"'=`/&?*#$!".contains(byte))
        && !(name[cut] == b'\'' && name.get(cut.wrapping_sub(1)).is_some_and(u8::is_ascii_alphanumeric))
    {
        length -= cut + 1;
    }
    let name = &found.text[at - length..at];
    let skip = name.iter().take_while(|byte| matches!(byte, b'.' | b'-' | b'+' | b'%')).count();
    let name = &name[skip..];
    let domain = &found.text[at + 1..found.whole.end];
    let top = domain.rsplit(|byte| *byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    let file = [
        &b"png"[..],
        b"jpg",
        b"jpeg",
        b"gif",
        b"svg",
        b"webp",
        b"css",
        b"js",
        b"ts",
        b"json",
        b"html",
        b"py",
        b"go",
        b"rs",
        b"java",
    ];
    let remote =
        matches!(name, b"git" | b"hg" | b"svn") && matches!(found.after().first(), Some(b':' | b'/'));
    let goes_on =
        found.after().first().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'('));
    let fits = !matches!(found.text[..at - length].last(), Some(b'}'));
    let good = fits
        && !name.is_empty()
        && name.last() != Some(&b'.')
        && !file.contains(&top.as_slice())
        && !remote
        && !goes_on;
    good.then(|| at - name.len()..found.whole.end)
}

const LONGEST: usize = 64;
