//! The rules: data, one file per family.
//!
//! A rule says what makes a place worth a look (its trigger), what must stand there (its pattern, anchored at that
//! place), and what must be true of it (its check). Its examples are its tests: `cargo test` runs every one of them.
//! Patterns are compiled when they are first needed, without Unicode, which makes starting free and compiling cheap.

mod abroad;
mod address;
mod assignment;
mod cards;
mod critical;
mod email;
mod generic;
mod iban;
mod ids;
mod ids_others;
mod jwt;
mod lone;
mod name;
mod network;
mod phone;
mod private_key;
mod services;
mod urls;
mod value;
mod vendor;
mod vendor_marked;
mod vendor_others;
mod vendor_services;
mod wallet;

use std::ops::Range;

use crate::finding::Tier;

pub(crate) use private_key::is_private_part;

/// One kind of thing to find.
#[derive(Debug)]
pub(crate) struct Rule {
    /// What reports and findings call it.
    pub(crate) id: &'static str,
    /// What its placeholder says.
    pub(crate) label: &'static str,
    pub(crate) tier: Tier,
    pub(crate) family: Family,
    pub(crate) trigger: Trigger,
    /// What must stand at the trigger; the trigger itself if empty. Its first group, if it has one, is what is replaced.
    pub(crate) pattern: &'static str,
    pub(crate) check: Check,
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for tests"))]
    pub(crate) matches: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for tests"))]
    pub(crate) misses: &'static [&'static str],
}

/// What makes a place worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trigger {
    /// One of these words, in any case, where no letter or digit stands before it.
    Keyword(&'static [&'static str]),
    /// One of these words wherever it stands.
    Anywhere(&'static [&'static str]),
    /// The first digit of a number with so many digits, signs between them not counted.
    Number(usize, usize),
    /// A colon with another one near and only hexadecimal digits between them.
    Colon,
    /// The start of so many letters and digits in a row, some of each.
    Word(usize, usize),
    /// The start of two or four hexadecimal digits before `:`, `-` or `.` and more of them.
    Hex,
    /// The start of a token at least this long.
    Token(usize),
    /// Nothing in the text: hits come from elsewhere.
    Never,
}

/// Looks closer at a match: what to replace, or None if it is not what it seemed.
pub(crate) type Check = fn(&Found<'_>) -> Option<Range<usize>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Critical,
    Vendor,
    Jwt,
    Url,
    Secret,
    Opaque,
    Personal,
    /// What has no check of its own: another rule for the same place names it.
    Loose,
    Dictionary,
}

impl Family {
    /// Which rule names a place that several claim.
    pub(crate) fn sureness(self) -> u8 {
        match self {
            Self::Critical => 7,
            Self::Dictionary => 6,
            Self::Vendor => 5,
            Self::Jwt => 4,
            Self::Url => 3,
            Self::Personal => 2,
            Self::Loose | Self::Secret => 1,
            Self::Opaque => 0,
        }
    }

    /// Whether its tokens are sure enough to be believed across a line's end.
    pub(crate) fn survives_wrapping(self) -> bool {
        matches!(self, Self::Critical | Self::Vendor | Self::Jwt)
    }
}

/// Whether a rule is looked for where lines were joined: tokens, what has a check, and what has a form that nothing else has.
pub(crate) fn is_read_joined(rule: &Rule) -> bool {
    rule.family.survives_wrapping()
        || matches!(rule.id, "credit_card" | "phone_international" | "iban" | "email" | "url_password")
}

/// Whether a find of such a rule is believed there: in the groups that it is written in.
pub(crate) fn survives_joining(rule: &Rule, value: &[u8]) -> bool {
    match rule.id {
        "credit_card" => {
            let groups: Vec<usize> = value.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).collect();
            matches!(groups[..], [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4])
        }
        "phone_international" => value.starts_with(b"+"),
        _ => true,
    }
}

/// A match of a pattern, in the text around it.
#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub(crate) text: &'t [u8],
    /// The whole match.
    pub(crate) whole: Range<usize>,
    /// Its first group, or the whole.
    pub(crate) secret: Range<usize>,
}

impl<'t> Found<'t> {
    pub(crate) fn value(&self) -> &'t [u8] {
        &self.text[self.secret.clone()]
    }

    /// Up to so many bytes before the match.
    pub(crate) fn before(&self, length: usize) -> &'t [u8] {
        &self.text[self.whole.start.saturating_sub(length)..self.whole.start]
    }

    /// Everything behind the match.
    pub(crate) fn after(&self) -> &'t [u8] {
        &self.text[self.whole.end..]
    }

    /// What stands before the match on its line, and a little of the line before.
    pub(crate) fn lead(&self) -> &'t [u8] {
        self.before(LEAD)
    }

    /// Whether the match ends where a word ends.
    pub(crate) fn ends_well(&self) -> bool {
        !self.after().first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }

    /// Whether the match is no part of a longer number or token: nothing goes on at either side over a sign that joins.
    /// `contact=` and `card:` join nothing; a digit before the sign does.
    pub(crate) fn stands_alone(&self) -> bool {
        let joins = |byte: u8| matches!(byte, b'-' | b'.' | b',' | b'/' | b':' | b'_' | b'+' | b'=');
        let names = |byte: u8| matches!(byte, b':' | b'=' | b',');
        let before = self.before(2);
        let open = match before {
            [byte, sign] if names(*sign) => !byte.is_ascii_digit(),
            [byte, sign] => !(joins(*sign) && byte.is_ascii_alphanumeric()),
            _ => true,
        };
        let begins =
            !before.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
        let shut = match self.after() {
            [sign, next, ..] => !(joins(*sign) && next.is_ascii_digit()),
            _ => true,
        };
        open && begins && shut && self.ends_well()
    }

    /// Whether one of these words stands in the bytes before the match, in any case.
    pub(crate) fn follows(&self, words: &[&str], within: usize) -> bool {
        value::has_any(self.before(within), words)
    }

    pub(crate) fn digits(&self) -> Vec<u8> {
        self.value().iter().filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0').collect()
    }
}

/// How far before a value its service may be named.
const LEAD: usize = 40;

/// Every match is one.
pub(crate) fn always(found: &Found<'_>) -> Option<Range<usize>> {
    Some(found.secret.clone())
}

/// Every match that ends where a word ends is one.
pub(crate) fn whole_word(found: &Found<'_>) -> Option<Range<usize>> {
    found.ends_well().then(|| found.secret.clone())
}

/// All rules, in the order of their files.
pub(crate) fn all() -> Vec<&'static Rule> {
    [
        private_key::RULES,
        critical::RULES,
        vendor::RULES,
        vendor_marked::RULES,
        vendor_services::RULES,
        vendor_others::RULES,
        jwt::RULES,
        urls::RULES,
        generic::RULES,
        abroad::RULES,
        lone::RULES,
        email::RULES,
        phone::RULES,
        cards::RULES,
        iban::RULES,
        ids::RULES,
        ids_others::RULES,
        network::RULES,
        wallet::RULES,
        address::RULES,
        OTHERS,
    ]
    .concat_refs()
}

/// A private key that is a JSON object, found by `json`.
pub(crate) static PRIVATE_JWK: &Rule = &private_key::RULES[private_key::JWK];
/// People's names, found by `names`.
pub(crate) static NAME: &Rule = &OTHERS[0];
/// What the user's own list says.
pub(crate) static TERM: &Rule = &OTHERS[1];

static OTHERS: &[Rule] = &[
    Rule {
        id: "person_name",
        label: "NAME",
        tier: Tier::Noncritical,
        family: Family::Personal,
        trigger: Trigger::Never,
        pattern: "",
        check: always,
        matches: &[],
        misses: &[],
    },
    Rule {
        id: "dictionary",
        label: "TERM",
        tier: Tier::Noncritical,
        family: Family::Dictionary,
        trigger: Trigger::Never,
        pattern: "",
        check: always,
        matches: &[],
        misses: &[],
    },
];

trait ConcatRefs {
    fn concat_refs(self) -> Vec<&'static Rule>;
}

impl<const N: usize> ConcatRefs for [&'static [Rule]; N] {
    fn concat_refs(self) -> Vec<&'static Rule> {
        self.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{Options, Redactor};

    /// The examples of every rule: each match is found by that rule, each miss is left alone by it.
    #[test]
    fn examples_hold() {
        let redactor = Redactor::new(Options::default()).unwrap();
        let mut wrong = Vec::new();
        for rule in all() {
            for (examples, expected) in [(rule.matches, true), (rule.misses, false)] {
                for example in examples {
                    let findings = redactor.redact_text(example).findings;
                    if findings.iter().any(|finding| finding.rule == rule.id) != expected {
                        wrong.push(format!("{}: {example:?} gives {findings:?}", rule.id));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn rules_that_are_named_are_where_they_are_said_to_be() {
        assert_eq!((PRIVATE_JWK.id, NAME.id, TERM.id), ("private_jwk", "person_name", "dictionary"));
    }

    #[test]
    fn every_pattern_compiles_and_every_id_is_its_own() {
        let mut ids = HashSet::new();
        for rule in all() {
            assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            assert!(crate::scan::compile(rule.pattern).is_some(), "{}: {}", rule.id, rule.pattern);
            let label = rule.label.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            assert!(label, "{}", rule.label);
            assert!(
                matches!(rule.trigger, Trigger::Never) || !rule.matches.is_empty(),
                "{} has no example",
                rule.id
            );
        }
    }
}
