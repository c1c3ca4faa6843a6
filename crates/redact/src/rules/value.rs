//! What a value is: a stand-in, a piece of code, or something that someone wants to keep.

use std::ops::Range;

use super::Found;
use crate::opaque::{self, Make};

/// A vendor's token that ends where a word ends and is no stand-in.
pub(crate) fn token_like(found: &Found<'_>) -> Option<Range<usize>> {
    // `xoxp-1234-####`: the rest is masked already. Fewer are Markdown around a value that is there.
    let masked = found.after().starts_with(b"####") || found.after().starts_with(b"****");
    let good = found.ends_well() && !masked && !is_filler(found.value()) && !is_in_hash(found);
    good.then(|| found.secret.clone())
}

/// In the middle of a hash that says that it is one: `sha256=…`.
fn is_in_hash(found: &Found<'_>) -> bool {
    let before = found.before(LONGEST_HASH);
    let run = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+/_-=".contains(byte));
    let run = &before[before.len() - run.count()..];
    [&b"sha1"[..], b"sha256", b"sha384", b"sha512", b"md5"].iter().any(|name| run.starts_with(name))
}

/// Made of one character over and over, or of the word `example`: nobody's secret.
pub(crate) fn is_filler(value: &[u8]) -> bool {
    is_worn(value, Make::of(value)) || FILLERS.any_in(value)
}

/// What people write where a secret goes: `your-key-here`, `${TOKEN}`, `<password>`, `xxx`, `...`.
pub(crate) fn is_stand_in(value: &[u8]) -> bool {
    let make = Make::of(value);
    is_worn(value, make)
        || (value.len() >= 4 && (make.distinct <= 2 || make.longest_run >= 8))
        || is_marked(value, make)
}

/// Long, and of few characters.
fn is_worn(value: &[u8], make: Make) -> bool {
    value.len() >= 12 && (make.longest_run >= 10 || make.longest_run * 2 >= value.len() || make.distinct <= 4)
}

/// Says itself that it stands for something else: by its signs, or by its words.
pub(crate) fn is_marked(value: &[u8], make: Make) -> bool {
    if value.is_empty() || FILLERS.any_in(value) {
        return true;
    }
    // DB_PASSWORD: the name of a variable.
    let named = make.lower == 0
        && make.digits == 0
        && value.contains(&b'_')
        && has_any(value, &["pass", "secret", "token", "key"]);
    let marked = named
        || matches!(value[0], b'<' | b'{' | b'[' | b'(' | b'%' | b'&' | b'*')
        || (value[0] == b'$'
            && value.get(1).is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'{' | b'(' | b'_')))
        || (value[0] == b'@' && value.get(1).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'@'));
    marked
        || value
            .windows(2)
            .any(|pair| matches!(pair, b"${" | b"{{" | b"$(" | b"#{" | b"%(" | b"}}" | b"<%" | b".."))
        || (STAND_INS.any_in(value) && (!is_random(value) || has_own(value, STAND_INS.words)))
}

/// So long and so unlike words that short words come up in it by chance: a JSON web token, or a long key.
fn is_random(value: &[u8]) -> bool {
    value.starts_with(b"eyJ") || (value.len() >= LEAST_RANDOM && opaque::cost(value) > 6.8)
}

/// A call, a path, a chain of names: code, not a value.
pub(crate) fn is_code(value: &[u8]) -> bool {
    if value.is_empty() {
        return false;
    }
    let has = |byte: u8| value.contains(&byte);
    if has(b'(')
        || has(b'[')
        || has(b'{')
        || has(b';')
        || value.windows(2).any(|pair| matches!(pair, b"->" | b"::" | b"=>"))
    {
        return true;
    }
    if matches!(value[0], b'/' | b'.' | b'~' | b'#') && opaque::cost(value) < 6.0 {
        return true;
    }
    // a.b.c with names for parts
    let parts: Vec<&[u8]> = value.split(|byte| *byte == b'.').collect();
    parts.len() > 1
        && parts.iter().all(|part| {
            part.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_')
                && part.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
                && (part.len() < 8 || opaque::cost(part) < 6.3)
        })
}

/// Counted up, as examples are: `abcdefgh`, `12345678`, `a1b2c3d4`, in any case.
pub(crate) fn is_ladder(value: &[u8]) -> bool {
    let follows = |step: usize| {
        let mut run = 0;
        value.iter().zip(value.iter().skip(step)).any(|(one, next)| {
            let (one, next) = (one.to_ascii_lowercase(), next.to_ascii_lowercase());
            let counts = one.is_ascii_alphanumeric() && (next == one + 1 || (one, next) == (b'9', b'0'));
            run = if counts { run + 1 } else { 0 };
            run >= LADDER
        })
    };
    follows(1) || follows(2)
}

/// A package and its version: `io.acme:acme-client-1.2.3`, `acme-client-1.2.3`, `httpd:2.4`.
pub(crate) fn is_coordinate(value: &[u8]) -> bool {
    let version =
        value.windows(3).any(|part| matches!(part, [a, b'.', b] if a.is_ascii_digit() && b.is_ascii_digit()));
    let tail = value.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let (name, number) = value.split_at(value.len() - tail);
    let words = name.ends_with(b"-") && name.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
    version && (value.contains(&b':') || (words && number.len() >= 3))
}

/// The public half of a key of NATS, by its checksum: an account, a user, an operator, a server, a cluster or a curve.
/// Its secret half begins with `S`.
pub(crate) fn is_public_nkey(value: &[u8]) -> bool {
    const LENGTH: usize = 56;
    if value.len() != LENGTH || !matches!(value[0], b'A' | b'U' | b'O' | b'N' | b'C' | b'X') {
        return false;
    }
    let mut bytes = Vec::with_capacity(LENGTH * 5 / 8);
    for group in value.chunks(8) {
        let mut bits = 0u64;
        for byte in group {
            let five = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'2'..=b'7' => byte - b'2' + 26,
                _ => return false,
            };
            bits = bits << 5 | u64::from(five);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[3..]);
    }
    let (key, told) = bytes.split_at(bytes.len() - 2);
    let sum = key.iter().fold(0u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| sum << 1 ^ if sum >> 15 == 1 { 0x1021 } else { 0 })
    });
    told == sum.to_le_bytes()
}

/// How much a value looks like a key: bits per character, with what cost cannot judge put right.
pub(crate) fn secretness(value: &[u8]) -> f32 {
    let make = Make::of(value);
    let core: &[u8] = value;
    if make.letters() == 0 {
        // Digits only: an id, a time, a size.
        return if make.digits >= 16 && make.distinct >= 6 && make.signs == 0 { 5.0 } else { 0.0 };
    }
    if opaque::is_uuid(core) {
        return 6.9;
    }
    if opaque::is_hex(core) && make.digits > 0 && core.len() >= 16 {
        return if make.distinct >= 6 { 8.0 } else { 3.0 };
    }
    let mut bits = opaque::cost(core);
    // A number among words: `sha256`, `2024-01-02`, `v2.6.8` say nothing.
    if make.digits == 0 {
        bits -= 0.4;
    }
    if core.len() < 12 {
        bits -= 0.5;
    }
    // Text of another script is no key.
    if value.iter().any(|byte| *byte >= 0x80) {
        bits -= 4.0;
    }
    if value.contains(&b' ') {
        bits -= 2.5;
    }
    bits
}

/// Whether one of these lower-case words, of two letters or more, is in it, in any case.
pub(crate) fn has_any(value: &[u8], words: &[&str]) -> bool {
    begins_any(value, words, Words::pairs(words))
}

/// Lower-case words of two letters or more that are looked for often.
pub(crate) struct Words {
    words: &'static [&'static str],
    pairs: u64,
}

impl Words {
    pub(crate) const fn new(words: &'static [&'static str]) -> Self {
        Self { words, pairs: Self::pairs(words) }
    }

    /// Whether one of them is in it, in any case.
    pub(crate) fn any_in(&self, value: &[u8]) -> bool {
        begins_any(value, self.words, self.pairs)
    }

    /// With which two letters they begin: most places of a text begin none.
    const fn pairs(words: &[&str]) -> u64 {
        let (mut pairs, mut at) = (0, 0);
        while at < words.len() {
            let word = words[at].as_bytes();
            pairs |= Self::pair(word[0], word[1]);
            at += 1;
        }
        pairs
    }

    /// One bit of 64 for two letters. Their cases do not count: it is the sixth bit of a letter.
    const fn pair(first: u8, second: u8) -> u64 {
        1 << (((first & 0x1f) ^ (second << 1)) & 0x3f)
    }
}

fn begins_any(value: &[u8], words: &[&str], pairs: u64) -> bool {
    let begins = |at: usize| {
        let first = value[at].to_ascii_lowercase();
        words.iter().map(|word| word.as_bytes()).any(|word| {
            word[0] == first
                && value.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
        })
    };
    value.windows(2).enumerate().any(|(at, two)| pairs & Words::pair(two[0], two[1]) != 0 && begins(at))
}

/// Whether one of these lower-case words is in it, in any case, and no letter or digit goes on where it begins or ends.
fn has_own(value: &[u8], words: &[&str]) -> bool {
    let letter = |at: Option<usize>| at.and_then(|at| value.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    (0..value.len()).any(|at| {
        words.iter().any(|word| {
            let end = at + word.len();
            let goes_on = |inside: usize, beside: Option<usize>| letter(Some(inside)) && letter(beside);
            value.get(at..end).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
                && !goes_on(at, at.checked_sub(1))
                && !goes_on(end - 1, Some(end))
        })
    })
}

/// The stored form of a password, from which it does not come back.
pub(crate) fn is_crypt(value: &[u8]) -> bool {
    value.starts_with(b"$") && value.iter().filter(|byte| **byte == b'$').count() >= 3
}

static FILLERS: Words = Words::new(&["example", "xxxxxx", "redacted", "placeholder"]);
const LADDER: usize = 7;
/// A name and SHA-512 in base64.
const LONGEST_HASH: usize = 96;
const LEAST_RANDOM: usize = 40;
static STAND_INS: Words = Words::new(&[
    "your",
    "insert",
    "replace",
    "changeme",
    "change_me",
    "change-me",
    "dummy",
    "sample",
    "my_",
    "my-",
    "todo",
    "undefined",
    "not_a",
    "not-a",
    "not_real",
    "some_",
    "some-",
    "_here",
    "-here",
    "xxxx",
    "****",
    "fake",
    "foobar",
    "redacted",
    "masked",
    "hidden",
    "env.",
    "process.",
    "config.",
    "secrets.",
    "getenv",
    "environ",
]);
