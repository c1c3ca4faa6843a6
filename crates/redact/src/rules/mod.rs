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
mod key_text;
mod lone;
mod name;
mod network;
mod phone;
mod private_key;
mod rule;
mod services;
mod stand_in;
mod tokens;
mod urls;
mod value;
mod vendor;
mod vendor_marked;
mod vendor_others;
mod vendor_services;
mod wallet;

use crate::finding::Tier;

pub(crate) use private_key::is_private_part;
pub(crate) use rule::{
    Check, Family, Found, Rule, Trigger, always, is_read_joined, survives_joining, whole_word,
};
pub(crate) use tokens::is_given as is_bearer_token;

/// All rules, in the order of their files.
pub(crate) fn all() -> Vec<&'static Rule> {
    [
        private_key::RULES,
        key_text::RULES,
        critical::RULES,
        tokens::RULES,
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
/// A private key that was encoded, found by `encoded`.
pub(crate) static PRIVATE_KEY_BODY: &Rule = &private_key::RULES[private_key::BODY];
/// A bearer token in the settings of a client, found by `json`.
pub(crate) static CLIENT_BEARER: &Rule = &tokens::RULES[tokens::CLIENT];
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
        assert_eq!((PRIVATE_KEY_BODY.id, CLIENT_BEARER.id), ("private_key_body", "client_bearer"));
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
