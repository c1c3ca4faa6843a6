//! The name that a value is given to, and what the name says of it.

use super::Found;
use super::assignment::Assignment;
use super::services::{self, Service};
use super::value::has_any;
use crate::opaque;

/// The name that a credential word is in: what stands before it and after it, unbroken.
pub(super) struct Name<'t> {
    pub(super) before: &'t [u8],
    pub(super) after: &'t [u8],
    /// What stands between the name and the value.
    pub(super) gap: &'t [u8],
    pub(super) quoted: bool,
    /// It is the last part of `A::B`.
    typed: bool,
}

impl<'t> Name<'t> {
    pub(super) fn of(found: &Found<'t>, assignment: &Assignment) -> Self {
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let before = found.before(48);
        let lead = before.iter().rev().take_while(|byte| part(byte)).count();
        Self {
            before: &before[before.len() - lead..],
            after: &found.text[found.whole.end..assignment.name_end],
            gap: &found.text[assignment.name_end..assignment.value.start],
            quoted: assignment.quoted,
            typed: before[..before.len() - lead].ends_with(b"::"),
        }
    }

    /// An assignment, and not two words in a row.
    pub(super) fn assigns(&self) -> bool {
        self.gap.iter().any(|byte| matches!(byte, b'=' | b':' | b',' | b'>' | b'('))
    }

    /// It is compared, called, or one of a list, and given nothing.
    pub(super) fn gives_nothing(&self) -> bool {
        let gap = self.gap;
        let lists = gap.contains(&b',') && !matches!(gap.first(), Some(b'"' | b'\'' | b'`' | b'\\'));
        let called = gap.first() == Some(&b')') || (gap.contains(&b'(') && !self.quoted);
        lists
            || called
            || self.after.first() == Some(&b'.')
            || gap.windows(2).any(|pair| pair == b"==" || pair == b"!=")
    }

    /// It is given in a call: `set_password("x")`.
    pub(super) fn is_argument(&self) -> bool {
        self.gap.first() == Some(&b'(')
    }

    /// It names something about a credential, not the credential: `passwordField`, `token_type`, `keyId`.
    pub(super) fn is_about(&self) -> bool {
        let after = self.after.to_ascii_lowercase();
        let after: Vec<u8> = after.into_iter().filter(|byte| byte.is_ascii_alphabetic()).collect();
        ABOUT.iter().any(|word| after.ends_with(word.as_bytes()))
    }

    /// The word is a piece of another word: `passenger`, `keyboard`, `author`.
    pub(super) fn is_other_word(&self) -> bool {
        let letters = self.after.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        letters > 0 && !SUFFIXES.contains(&&self.after[..letters])
    }

    /// A key that may be shown, or that is sealed already.
    pub(super) fn is_public(&self) -> bool {
        has_any(self.before, &["public", "pub_", "encrypted", "csrf", "xsrf", "authenticity"])
            || has_any(self.after, &["public"])
    }

    /// The word is by chance in a token, or the last part of a type's name in quotes.
    pub(super) fn is_inside(&self) -> bool {
        let token = self.before.len() >= LEAST_INSIDE && opaque::cost(self.before) > 6.8;
        token || (self.typed && matches!(self.gap.first(), Some(b'"' | b'\'')))
    }

    /// What is stored in place of a password.
    pub(super) fn is_hash(&self) -> bool {
        has_any(self.after, &["hash", "digest"])
    }

    /// The name says itself that its value opens nothing.
    pub(super) fn is_denied(&self) -> bool {
        has_any(self.before, DENIED)
    }

    /// It begins with a word that says whose the credential is: `acme_token`, not `api_token` or `otherAppSecret`.
    pub(super) fn is_someones(&self) -> bool {
        let humps = self.before.chunk_by(|one, next| {
            one.is_ascii_alphabetic()
                && next.is_ascii_alphabetic()
                && !(one.is_ascii_lowercase() && next.is_ascii_uppercase())
        });
        let own = |hump: &[u8]| {
            hump.len() >= 4 && !ANYONES.iter().any(|word| hump.eq_ignore_ascii_case(word.as_bytes()))
        };
        humps.into_iter().any(own)
    }

    /// The service that the name, or what stands before it, speaks of.
    pub(super) fn service(&self, found: &Found<'_>) -> Option<Service> {
        services::named(found.lead())
    }

    /// A word that says outright that its value is a credential.
    pub(super) fn is_strong(&self, found: &Found<'_>) -> bool {
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

    pub(super) fn is_loud(&self) -> bool {
        self.before.iter().all(|byte| !byte.is_ascii_lowercase())
            && self.before.iter().any(u8::is_ascii_uppercase)
            && self.before.contains(&b'_')
    }
}

/// Longer than most names before the word that they are about.
const LEAST_INSIDE: usize = 16;
/// Words that go with any credential.
const ANYONES: &[&str] = &[
    "access", "account", "admin", "auth", "client", "config", "consumer", "default", "example", "export",
    "http", "https", "master", "oauth", "other", "private", "prod", "public", "refresh", "resource", "root",
    "secret", "security", "server", "service", "session", "shared", "some", "stream", "system", "test",
    "token", "user", "webhook",
];
const DENIED: &[&str] = &[
    "nonmatching",
    "invalid",
    "wrong",
    "dummy",
    "placeholder",
    "foreign",
    "primary",
    "partition",
    "idempotency",
];
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
    "event",
    "code",
    "ttl",
];
