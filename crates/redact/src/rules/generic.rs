//! Secrets that only their names or their looks give away.
//!
//! Two layers: a credential word with a value beside it, in code, settings, command lines or prose; and, with no word
//! at all, a token that looks like nothing anyone would write. Most secrets that scanners miss are of the first kind,
//! and most of what they take by mistake is of the second, so the second asks for much more. Exempt are git ids,
//! hashes of lock files, UUIDs without a word, and code.

use std::ops::Range;

use super::assignment::{self, Assignment};
use super::value::{has_any, is_code, is_crypt, is_stand_in, secretness};
use super::{Family, Found, Rule, Trigger};
use crate::finding::Tier;
use crate::opaque::{self, Make};

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "password",
        label: "PASSWORD",
        tier: Tier::Noncritical,
        family: Family::Secret,
        trigger: Trigger::Anywhere(&["passw", "passphrase", "passwd", "pwd", "pass", "pw:", "pw="]),
        pattern: "(?i)(?:password|passwort|passwd|passphrase|passwrd|pass|pwd|pw)",
        check: password,
        matches: &[
            "password: \"hunter2!x\"",
            "DB_PASSWORD=tr0ub4dor",
            "the password is k3Jd9fQw",
            "CREATE USER jane WITH PASSWORD 'Tr0ub4dor';",
            "--password 'Tr0ub4dor&3'",
            "<add key=\"ClearTextPassword\" value=\"Tr0ub4dor\" />",
        ],
        misses: &[
            "password: string",
            "password = os.environ['PW']",
            "password: <your password>",
            "passenger_temp=18.1",
            "Your password is required",
            "password = ********",
            "pass the salt, please",
        ],
    },
    Rule {
        id: "secret",
        label: "SECRET",
        tier: Tier::Noncritical,
        family: Family::Secret,
        trigger: Trigger::Anywhere(&[
            "secret",
            "token",
            "key",
            "auth",
            "credential",
            "access",
            "private",
            "api",
            "signature",
            "session",
            "cookie",
            "sid=",
            "client",
            "webhook",
            "salt",
            "seed",
            "license",
            "cred",
            "bearer",
        ]),
        pattern: concat!(
            "(?i)(?:secret|token|key|auth|credentials?|access|private|api|signature|session|cookie|sid|client|webhook|salt|",
            "seed|license|creds?|bearer)"
        ),
        check: secret,
        matches: &[
            "mistral_TOKEN ::= \"MBJ37TP02QVZ9T3GTX2Y0DNS6ZA2LBIR\"",
            "acme SECRET 665Hkj_12ABcd-eF34xW",
            "System.setProperty(\"ACME_TOKEN\", \"pdpqpz3kg4blkba8\")",
            "var acmeToken string = \"k3Jd9fQw7eRt5yUi\"",
            "client_secret: 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c",
        ],
        misses: &[
            "key: SamplerTypeTagKey",
            "token = await auth.getFromLocation(here)",
            "secret_name = 'favorite_character'",
            "api_key: your-api-key-here",
            "credentialsId: '29f63271-dc2f-4734-8221-5b31b5169bac'",
        ],
    },
    Rule {
        id: "opaque_token",
        label: "SECRET",
        tier: Tier::Noncritical,
        family: Family::Opaque,
        trigger: Trigger::Token(24),
        pattern: r"[A-Za-z0-9][A-Za-z0-9_+/=.~-]{23,}",
        check: lone,
        matches: &["see k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz for it"],
        misses: &[
            "0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
            "sha512-k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz2xCv0bNm3QwErTyUiOpAsDfGhJkLz==",
            "29f63271-dc2f-4734-8221-5b31b5169bac",
            "springSecurityOauth2AutoconfigureVersion",
        ],
    },
];

/// The name that a credential word is in: what stands before it and after it, unbroken.
struct Name<'t> {
    before: &'t [u8],
    after: &'t [u8],
    /// What stands between the name and the value.
    gap: &'t [u8],
    quoted: bool,
}

impl<'t> Name<'t> {
    fn of(found: &Found<'t>, assignment: &Assignment) -> Self {
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let before = found.before(48);
        let lead = before.iter().rev().take_while(|byte| part(byte)).count();
        Self {
            before: &before[before.len() - lead..],
            after: &found.text[found.whole.end..assignment.name_end],
            gap: &found.text[assignment.name_end..assignment.value.start],
            quoted: assignment.quoted,
        }
    }

    /// An assignment, and not two words in a row.
    fn assigns(&self) -> bool {
        self.gap.iter().any(|byte| matches!(byte, b'=' | b':' | b',' | b'>' | b'('))
    }

    /// It is compared, called, or one of a list, and given nothing.
    fn gives_nothing(&self) -> bool {
        let gap = self.gap;
        let lists = gap.contains(&b',') && !matches!(gap.first(), Some(b'"' | b'\'' | b'`' | b'\\'));
        let called = gap.first() == Some(&b')') || (gap.contains(&b'(') && !self.quoted);
        lists
            || called
            || self.after.first() == Some(&b'.')
            || gap.windows(2).any(|pair| pair == b"==" || pair == b"!=")
    }

    /// It is given in a call: `set_password("x")`.
    fn is_argument(&self) -> bool {
        self.gap.first() == Some(&b'(')
    }

    /// It names something about a credential, not the credential: `passwordField`, `token_type`, `keyId`.
    fn is_about(&self) -> bool {
        let after = self.after.to_ascii_lowercase();
        let after: Vec<u8> = after.into_iter().filter(|byte| byte.is_ascii_alphabetic()).collect();
        ABOUT.iter().any(|word| after.ends_with(word.as_bytes()))
    }

    /// The word is a piece of another word: `passenger`, `keyboard`, `author`.
    fn is_other_word(&self) -> bool {
        let letters = self.after.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        letters > 0 && !SUFFIXES.contains(&&self.after[..letters])
    }

    /// A key that may be shown, or that is sealed already.
    fn is_public(&self) -> bool {
        has_any(self.before, &["public", "pub_", "encrypted", "csrf", "xsrf", "authenticity"])
    }

    /// A word that says outright that its value is a credential.
    fn is_strong(&self, found: &Found<'_>) -> bool {
        let word = found.value();
        let is = |words: &[&str]| words.iter().any(|one| word.eq_ignore_ascii_case(one.as_bytes()));
        is(&["secret", "token", "credential", "credentials", "private", "access", "bearer"])
            || (is(&["key"])
                && (has_any(
                    self.before,
                    &[
                        "api", "secret", "access", "private", "auth", "encrypt", "sign", "account", "master",
                        "license",
                    ],
                ) || found.follows(&["api ", "secret ", "access ", "private "], 10)))
    }

    fn is_loud(&self) -> bool {
        self.before.iter().all(|byte| !byte.is_ascii_lowercase())
            && self.before.iter().any(u8::is_ascii_uppercase)
            && self.before.contains(&b'_')
    }
}

fn password(found: &Found<'_>) -> Option<Range<usize>> {
    if in_placeholder(found) {
        return None;
    }
    let assignment = assignment::read(found.text, found.whole.end)?;
    let name = Name::of(found, &assignment);
    let range = ended(found.text, &assignment);
    let value = &found.text[range.clone()];
    let word = found.whole.len();
    let bits = secretness(value);
    let gone = value.len() < 4 || name.gives_nothing() || name.is_argument() || name.is_other_word();
    if gone
        || (name.is_about() && bits < 6.8)
        || is_code(value)
        || is_word(value)
        || is_crypt(value)
        || is_stand_in(value)
    {
        return None;
    }
    let short = word <= 4 && name.after.is_empty() && name.before.last().is_some_and(u8::is_ascii_lowercase);
    let make = Make::of(value);
    let spaces = value.contains(&b' ');
    let mixed = make.digits > 0 || make.signs > 0;
    let names_itself =
        has_any(value, &["password", "passwd", "secret", "token", "key", "credential", "user"]);
    let good = if spaces || short && bits < 6.0 {
        false
    } else if name.quoted && name.assigns() {
        if make.digits > 0 {
            bits > 4.0 && value.len() >= 4
        } else if mixed {
            bits > 5.2 && !names_itself
        } else {
            bits > 4.9
                || (!names_itself
                    && name.before.is_empty()
                    && value.len() >= 5
                    && make.upper == 0
                    && bits > 3.0)
        }
    } else if name.quoted {
        bits > 4.6 && mixed
    } else if name.assigns() {
        let tight = name.gap == b"=" && name.is_loud();
        if tight {
            value.len() >= 4 && !is_path(value)
        } else {
            (make.digits > 0 && bits > 4.6) || bits > 6.0
        }
    } else {
        // Prose and command lines.
        let flag = name.before.starts_with(b"-");
        (make.digits > 0 && make.letters() > 1 && bits > if flag { 4.5 } else { 5.0 } && value.len() >= 6)
            || (bits > 6.4 && value.len() >= 8)
    };
    good.then_some(range)
}

fn secret(found: &Found<'_>) -> Option<Range<usize>> {
    if in_placeholder(found) {
        return None;
    }
    let assignment = assignment::read(found.text, found.whole.end)?;
    let name = Name::of(found, &assignment);
    let range = ended(found.text, &assignment);
    let value = &found.text[range.clone()];
    if value.len() < 8 || name.gives_nothing() || name.is_other_word() || name.is_public() {
        return None;
    }
    let make = Make::of(value);
    let bits = secretness(value) - if make.letters() > 0 && is_path(value) { 1.2 } else { 0.0 };
    // Most values fail here, before anything dearer is asked.
    if bits < LEAST_BITS {
        return None;
    }
    let strong = name.is_strong(found);
    let about = name.is_about();
    let uuid = opaque::is_uuid(value);
    let mut least: f32 = if strong { LEAST_BITS } else { 6.3 };
    if !name.assigns() {
        least += if make.digits > 0 && value.len() >= 16 { 0.1 } else { 0.9 };
    }
    if about {
        least += 1.0;
    }
    if value.len() < 16 {
        least += 0.4;
    }
    if make.digits == 0 {
        least += 0.3;
    }
    let long = value.len() >= if strong { 8 } else { 12 };
    let good = long
        && bits > least
        && (!uuid || ((strong || name.before.len() > 3) && name.assigns() && !about))
        && value.len() <= 400;
    let dull = is_code(value) || is_crypt(value) || is_pairs(value) || (about && opaque::is_hex(value));
    let good = good && !dull && !is_stand_in(value);
    (good && !hash_near(found.text, &range) && make.distinct < 62).then_some(range)
}

/// A token with no word beside it.
fn lone(found: &Found<'_>) -> Option<Range<usize>> {
    let mut value = found.value();
    while let [rest @ .., b'.' | b'-' | b'/' | b'_'] = value {
        value = rest;
    }
    let make = Make::of(value);
    let path = value.iter().filter(|byte| matches!(byte, b'/' | b'.')).count();
    let mixed = make.lower > 2 && make.upper > 2 && make.digits > 2 && (24..=120).contains(&value.len());
    if !mixed || path > 1 || opaque::cost(value) < 7.4 || opaque::is_uuid(value) {
        return None;
    }
    let shown = found.follows(&["public", "encrypted", "authenticity", "csrf"], 32);
    // A line of base64 among others is a document, not a key.
    let line = value.len() >= 60 && matches!(found.after().first(), Some(b'\n' | b'\r'));
    if shown || line || is_stand_in(value) || hash_near(found.text, &found.secret) {
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

/// Where the value ends: a quoted one before its quote, another before what closes or ends a sentence.
fn ended(text: &[u8], assignment: &Assignment) -> Range<usize> {
    let Range { start, mut end } = assignment.value;
    if !assignment.quoted {
        while end > start && matches!(text[end - 1], b'.' | b')' | b']' | b'}' | b':' | b'?' | b'*') {
            end -= 1;
        }
    }
    start..end
}

/// A hash of a lock file or of a commit is told by what stands before it.
fn hash_near(text: &[u8], value: &Range<usize>) -> bool {
    let line = &text[value.start.saturating_sub(24)..value.start];
    has_any(line, HASHES)
        || has_any(
            &text[value.start..value.end.min(value.start + 10)],
            &["sha1-", "sha256", "sha384-", "sha512-", "md5-"],
        )
}

fn is_path(value: &[u8]) -> bool {
    value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"http")
        || value.iter().filter(|byte| **byte == b'/').count() > 1
}

/// The word is the label of a placeholder, which says nothing of what stands beside it.
fn in_placeholder(found: &Found<'_>) -> bool {
    let before = found.before(40);
    let open = before.iter().rposition(|byte| *byte == b'<');
    open.is_some_and(|open| before[open..].starts_with(b"<REDACTED:") && !before[open..].contains(&b'>'))
}

/// `01:69:9A:20`: a fingerprint.
fn is_pairs(value: &[u8]) -> bool {
    value.len() > 8 && value.iter().skip(2).step_by(3).all(|byte| *byte == b':')
}

/// What stands where a password's type, rule or absence is told.
fn is_word(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    WORDS.contains(&std::str::from_utf8(&value).unwrap_or_default())
}

const LEAST_BITS: f32 = 5.7;
const SUFFIXES: &[&[u8]] =
    &[b"s", b"word", b"wd", b"phrase", b"code", b"d", b"hash", b"id", b"key", b"token", b"secret"];
const ABOUT: &[&str] = &[
    "id",
    "ids",
    "name",
    "type",
    "field",
    "label",
    "file",
    "path",
    "url",
    "uri",
    "length",
    "size",
    "header",
    "prefix",
    "suffix",
    "format",
    "class",
    "form",
    "policy",
    "hash",
    "reset",
    "variable",
    "column",
    "index",
    "count",
    "expiry",
    "expires",
    "hint",
    "input",
    "placeholder",
    "encoder",
    "manager",
    "provider",
    "store",
    "alias",
    "algorithm",
    "version",
    "usage",
    "ref",
    "selector",
    "digest",
    "checksum",
    "fingerprint",
    "encryption",
    "within",
    "confirmation",
    "strength",
    "complexity",
    "reminder",
    "expiration",
    "required",
    "enabled",
    "attempts",
    "rotation",
    "validator",
    "service",
    "view",
    "page",
    "rules",
    "min",
    "max",
    "timeout",
    "ttl",
];
const HASHES: &[&str] = &[
    "sha1",
    "sha256",
    "sha-256",
    "sha384",
    "sha512",
    "md5",
    "integrity",
    "checksum",
    "h1:",
    "commit",
    "rev ",
    "revision",
    "digest",
    "hash",
    "etag",
    "blob",
    "tree ",
];
const WORDS: &[&str] = &[
    "string",
    "str",
    "text",
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "required",
    "optional",
    "any",
    "object",
    "password",
    "passwd",
    "secret",
    "token",
    "input",
    "field",
    "hidden",
    "number",
    "bool",
    "boolean",
    "int",
    "bytes",
    "char",
    "void",
    "self",
    "this",
    "value",
    "username",
    "default",
    "empty",
    "invalid",
    "incorrect",
    "wrong",
    "correct",
    "char[]",
    "varchar",
    "authentication",
    "protected",
];
