//! What stands behind `Bearer` and is nobody's token.
//!
//! Behind a header's own word everything is believed that is no plain stand-in: a variable, a template, dots, one
//! character over and over, or nothing but words that speak of tokens (`YOUR_API_KEY`, `access_token`, `<token>`). A real
//! token may have `example`, two dots or a bracket inside; that alone saves nothing.

use super::value::{is_ladder, secretness};
use crate::opaque::Make;

/// Whether a value plainly stands for another.
pub(super) fn is_plain(value: &[u8]) -> bool {
    let value = trimmed(value);
    let make = Make::of(value);
    if value.is_empty() || make.distinct <= 2 || is_parameter(value) {
        return true;
    }
    match value {
        [b'<' | b'[' | b'(' | b'{', inside @ ..] => !is_opaque(inside),
        [b'$' | b'%' | b'@' | b'&' | b'*' | b':' | b'#', name @ ..] => is_name(name),
        _ => is_template(value) || is_elided(value) || is_variable(value, make) || is_spoken(value),
    }
}

/// Whether a single word goes on in a sentence about headers: `Bearer support is new`.
pub(super) fn is_prose(value: &[u8], after: &[u8]) -> bool {
    let Some(after) = after.strip_prefix(b" ") else { return false };
    let length = after.iter().take(LONGEST_LINK + 1).take_while(|byte| byte.is_ascii_lowercase()).count();
    let ends = !after.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    value.iter().all(u8::is_ascii_alphabetic)
        && value.iter().skip(1).all(u8::is_ascii_lowercase)
        && ends
        && LINKS.iter().any(|link| link.as_bytes() == &after[..length])
}

/// Without what a sentence or Markdown puts behind it.
fn trimmed(value: &[u8]) -> &[u8] {
    let value = match value {
        [rest @ .., b'.'] if !rest.ends_with(b".") => rest,
        _ => value,
    };
    let length = value.iter().rev().take_while(|byte| matches!(byte, b'*' | b'!' | b'?' | b':')).count();
    if length < value.len() { &value[..value.len() - length] } else { value }
}

/// `realm="…"`: what an answer says to whoever has no token.
fn is_parameter(value: &[u8]) -> bool {
    ["realm=", "scope=", "error=", "error_description=", "resource_metadata=", "authorization_uri="]
        .iter()
        .any(|name| value.starts_with(name.as_bytes()))
}

/// In brackets, or behind a sign of variables.
fn is_opaque(inside: &[u8]) -> bool {
    inside.len() >= LEAST_OPAQUE
        && (secretness(inside) > OPAQUE || inside.starts_with(b"eyJ"))
        && !is_spoken(inside)
}

/// The name of a variable or the inside of a template behind its sign.
fn is_name(name: &[u8]) -> bool {
    let first = name.first().is_none_or(|byte| byte.is_ascii_alphabetic() || b"_{(@*<%#".contains(byte));
    first && !is_opaque(name)
}

/// `${TOKEN}`, `{{token}}`, `$(command)`: alone, or behind words that are none of a token.
fn is_template(value: &[u8]) -> bool {
    let open = value
        .windows(2)
        .position(|pair| matches!(pair, b"${" | b"{{" | b"$(" | b"#{" | b"%(" | b"<%" | b"@@"));
    open.is_some_and(|at| is_spoken(&value[..at]) && !is_opaque(&value[at + 2..]))
}

/// `eyJhbGciOi...`, `abc...xyz`: what is shown is not enough of it.
fn is_elided(value: &[u8]) -> bool {
    let Some(at) = value.windows(3).position(|dots| dots == b"...") else { return false };
    let (before, rest) = (&value[..at], &value[at..]);
    let behind = rest.iter().skip_while(|byte| **byte == b'.').count();
    let head = before.starts_with(b"eyJ") && !before.contains(&b'.');
    behind <= MOST_SHOWN && (before.len() <= MOST_BEGUN || head)
}

/// `GITHUB_TOKEN`: the name of a variable.
fn is_variable(value: &[u8], make: Make) -> bool {
    let upper = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    value.iter().all(upper) && value.contains(&b'_') && make.digits <= 2 && make.upper >= 4
}

/// Made of nothing but words that speak of tokens. Numbers and counted letters may stand beside a word that says that
/// the whole is a stand-in.
fn is_spoken(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| !byte.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let worn = |part: &[u8]| Make::of(part).distinct == 1 && part.len() >= 3;
    let head = |part: &[u8]| part.starts_with(b"eyJ") && part.len() <= MOST_HEAD;
    let sure = value
        .split(|byte| !byte.is_ascii_alphanumeric())
        .any(|part| worn(part) || SURE.iter().any(|word| part.eq_ignore_ascii_case(word.as_bytes())));
    let beside = |part: &[u8]| sure && (part.len() <= 4 || is_ladder(part) || head(part));
    parts.all(|part| part.len() <= LONGEST_SPOKEN && (worn(part) || is_words(part) || beside(part)))
}

/// Whether letters are words of the list, one after the other.
fn is_words(part: &[u8]) -> bool {
    let part = part.to_ascii_lowercase();
    // Where a word may begin.
    let mut begins = [false; LONGEST_SPOKEN + 1];
    begins[0] = true;
    for at in 0..part.len() {
        if !begins[at] {
            continue;
        }
        for word in SPOKEN.iter().chain(SURE).filter(|word| part[at..].starts_with(word.as_bytes())) {
            begins[at + word.len()] = true;
        }
    }
    begins[part.len()]
}

const LEAST_OPAQUE: usize = 16;
const OPAQUE: f32 = 5.9;
/// How much of a token may be shown before and behind the dots.
const MOST_BEGUN: usize = 20;
const MOST_SHOWN: usize = 8;
/// The head of a JSON web token, which says nothing.
const MOST_HEAD: usize = 48;
const LONGEST_SPOKEN: usize = 48;
const LONGEST_LINK: usize = 8;
/// What a sentence goes on with.
const LINKS: &[&str] = &[
    "is", "are", "was", "were", "and", "or", "in", "for", "to", "with", "of", "as", "on", "at", "by", "from",
    "that", "which", "must", "can", "may", "will", "should", "has", "have", "header", "headers", "scheme",
    "token", "tokens", "only", "not", "when", "if", "via", "but",
];
/// Words that say that the whole is a stand-in.
const SURE: &[&str] = &[
    "your",
    "example",
    "examples",
    "placeholder",
    "insert",
    "replace",
    "changeme",
    "dummy",
    "fake",
    "sample",
    "here",
    "redacted",
    "masked",
    "hidden",
    "todo",
    "foobar",
    "xxx",
    "goes",
];
/// Words of which stand-ins and sentences about headers are made.
const SPOKEN: &[&str] = &[
    "a",
    "abc",
    "abcdef",
    "access",
    "admin",
    "an",
    "any",
    "api",
    "app",
    "auth",
    "authentication",
    "authorization",
    "bar",
    "baz",
    "basic",
    "bearer",
    "bot",
    "client",
    "code",
    "config",
    "credential",
    "credentials",
    "data",
    "env",
    "eyj",
    "field",
    "foo",
    "from",
    "generated",
    "get",
    "ghp",
    "github",
    "grant",
    "header",
    "headers",
    "id",
    "identity",
    "invalid",
    "is",
    "jwt",
    "jwts",
    "key",
    "keys",
    "login",
    "me",
    "my",
    "new",
    "oauth",
    "oauth2",
    "of",
    "old",
    "openai",
    "options",
    "or",
    "pass",
    "password",
    "pat",
    "personal",
    "pk",
    "process",
    "proj",
    "real",
    "realm",
    "refresh",
    "req",
    "request",
    "required",
    "requires",
    "res",
    "response",
    "result",
    "s",
    "scheme",
    "schemes",
    "secret",
    "secrets",
    "self",
    "service",
    "session",
    "settings",
    "sha256",
    "sk",
    "some",
    "state",
    "str",
    "string",
    "test",
    "testing",
    "that",
    "the",
    "this",
    "to",
    "token",
    "tokens",
    "type",
    "user",
    "valid",
    "value",
    "values",
    "var",
    "vars",
    "wrong",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_stand_ins_are_told_from_tokens() {
        for value in [
            "$TOKEN",
            "${TOKEN}",
            "$(cat token)",
            "<token>",
            "<your",
            "{{token}}",
            "{token}",
            "[TOKEN]",
            "%s",
            "%TOKEN%",
            "@@TOKEN@@",
            "***",
            "xxxx",
            "xxxxxxxxxxxxxxxx",
            "....",
            "...",
            "YOUR_TOKEN",
            "access_token",
            "accessToken",
            "your-token-here",
            "YOUR_API_KEY_123",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9...",
            "abc...xyz",
            "sk-proj-YOUR_API_KEY_HERE",
            "process.env.TOKEN",
            "getToken(",
            "tokens",
            "authentication.",
            "GITHUB_TOKEN",
            "sk-${KEY",
            "realm=",
            "eyJhbGciOiJSUzI1NiJ9.your-token-here.fake",
            "example_token_1",
        ] {
            assert!(is_plain(value.as_bytes()), "{value}");
        }
        for value in [
            "opensesame",
            "correct-horse-battery-staple",
            "correcthorse",
            "hunter2",
            "mysecretwordisopen",
            "k3Jd9example7eRt5",
            "example-k3Jd9fQw7eRt5yUi1oPa8s",
            "k3Jd9..fQw7eRt5",
            "k3Jd(fQw7",
            "p4ss(w0rd",
            "123456789012",
            "a1b2a1b2a1b2a1b2",
            "<k3Jd9fQw7eRt5yUi1oPa8s",
            "$k3Jd9fQw7eRt5yUi1oPa8s",
            "your-k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3Qw",
            "k3Jd9fQw7eRt${x",
            "token-of-jane",
            "k3Jd9fQw7eRt5yUi1oPa8sDf4...",
            "letmein.example.org",
        ] {
            assert!(!is_plain(value.as_bytes()), "{value}");
        }
        assert!(is_prose(b"support", b" is new") && !is_prose(b"opensesame", b" https://example.org"));
        assert!(!is_prose(b"correct-horse", b" is") && !is_prose(b"support", b""));
    }
}
