//! Who may call what: rules of the operator, read from the top, the first that fits decides.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wildmatch::WildMatch;

use super::{Effect, Tool};
use crate::approval::Approver;

/// The operator's rules for tools.
#[derive(Clone, Debug, Default)]
pub struct ToolPolicy {
    rules: Vec<ToolRule>,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct ToolRule {
    /// Which tools, by full name; `*` and `?` stand for any text and any character.
    pub tool: String,
    /// For this tenant only.
    pub tenant: Option<String>,
    /// For these people only.
    pub users: Option<Vec<String>>,
    /// For these arguments only: a dotted path, and what the text there must look like. A rule that allows fits when
    /// everything at the path does; one that denies or asks, when anything does.
    pub when: BTreeMap<String, String>,
    /// What then.
    pub then: Verdict,
}

/// What the rules say about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be made.
    Allow,
    /// It may not.
    Deny,
    /// Somebody must approve it.
    Approve {
        /// Who may.
        approvers: Vec<Approver>,
        /// How long they have.
        expires: Duration,
    },
}

impl Verdict {
    /// What holds for tools that say they destroy things, when no rule speaks of them.
    fn cautious() -> Self {
        Self::Approve { approvers: vec![Approver::Asker], expires: Duration::from_secs(86_400) }
    }
}

/// On whose behalf a tool is called, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caller<'a> {
    pub(crate) tenant: Option<&'a str>,
    pub(crate) user: Option<&'a str>,
}

impl ToolPolicy {
    /// Rules in their order.
    #[must_use]
    pub fn new(rules: Vec<ToolRule>) -> Self {
        Self { rules }
    }

    /// What the rules say about this call.
    pub(crate) fn check(&self, caller: Caller<'_>, tool: &Tool, arguments: &Value) -> Verdict {
        self.ruled(caller, tool, arguments).unwrap_or_else(|| by_effect(tool))
    }

    /// The same for what needs somebody's consent when no rule speaks of it.
    pub(crate) fn check_consent(&self, caller: Caller<'_>, tool: &Tool, arguments: &Value) -> Verdict {
        self.ruled(caller, tool, arguments).unwrap_or_else(Verdict::cautious)
    }

    fn ruled(&self, caller: Caller<'_>, tool: &Tool, arguments: &Value) -> Option<Verdict> {
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(caller, &tool.spec.name));
        rules.find(|rule| rule.fits(arguments)).map(|rule| rule.then.clone())
    }

    /// Whether there are arguments with which the tool might be called.
    pub(crate) fn offers(&self, caller: Caller<'_>, tool: &Tool) -> bool {
        for rule in self.rules.iter().filter(|rule| rule.concerns(caller, &tool.spec.name)) {
            match (&rule.then, rule.when.is_empty()) {
                (Verdict::Deny, true) => return false,
                (Verdict::Deny, false) => {}
                _ => return true,
            }
        }
        true
    }
}

fn by_effect(tool: &Tool) -> Verdict {
    match tool.effect {
        Effect::Destroys => Verdict::cautious(),
        Effect::Reads | Effect::WritesOnce | Effect::Writes => Verdict::Allow,
    }
}

impl ToolRule {
    fn concerns(&self, caller: Caller<'_>, tool: &str) -> bool {
        let tenant = || self.tenant.as_deref().is_none_or(|tenant| self.is(caller.tenant, |it| it == tenant));
        let among = |users: &Vec<String>| self.is(caller.user, |it| users.iter().any(|user| user == it));
        WildMatch::new(&self.tool).matches(tool) && tenant() && self.users.as_ref().is_none_or(among)
    }

    /// Whoever is not known may be anybody: what denies or asks concerns them, what allows does not.
    fn is(&self, known: Option<&str>, wanted: impl FnOnce(&str) -> bool) -> bool {
        known.map_or(self.then != Verdict::Allow, wanted)
    }

    fn fits(&self, arguments: &Value) -> bool {
        self.when.iter().all(|(path, pattern)| {
            let pattern = WildMatch::new(pattern);
            let mut leaves = Vec::new();
            reach(arguments, path, &mut leaves);
            match self.then {
                Verdict::Allow => !leaves.is_empty() && leaves.iter().all(|text| pattern.matches(text)),
                Verdict::Deny | Verdict::Approve { .. } => leaves.iter().any(|text| pattern.matches(text)),
            }
        })
    }
}

/// The texts at a path. A list stands for each of its items, wherever it comes; a name may itself have dots.
fn reach(value: &Value, path: &str, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| reach(item, path, leaves)),
        Value::Object(object) => {
            for (name, inner) in object {
                match path.strip_prefix(name.as_str()) {
                    Some("") => texts(inner, leaves),
                    Some(rest) => {
                        rest.strip_prefix('.').into_iter().for_each(|rest| reach(inner, rest, leaves))
                    }
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Every value in it that is not made of others, as text.
fn texts(value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, leaves)),
        Value::Object(object) => object.values().for_each(|item| texts(item, leaves)),
        Value::String(text) => leaves.push(text.clone()),
        other => leaves.push(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use confidant_model::ToolSpec;

    fn tool(name: &str, effect: Effect) -> Tool {
        let spec =
            ToolSpec { name: name.into(), description: String::new(), schema: json!({}), strict: None };
        Tool { spec, effect }
    }

    fn rule(tool: &str, then: Verdict) -> ToolRule {
        ToolRule { tool: tool.into(), tenant: None, users: None, when: BTreeMap::new(), then }
    }

    fn when(path: &str, pattern: &str, rule: ToolRule) -> ToolRule {
        ToolRule { when: BTreeMap::from([(path.to_owned(), pattern.to_owned())]), ..rule }
    }

    const ALICE: Caller<'_> = Caller { tenant: Some("acme"), user: Some("alice") };

    #[test]
    fn without_rules_only_what_destroys_is_asked_for() {
        let policy = ToolPolicy::default();
        for effect in [Effect::Reads, Effect::WritesOnce, Effect::Writes] {
            assert_eq!(policy.check(ALICE, &tool("a.b", effect), &json!({})), Verdict::Allow);
        }
        assert_eq!(policy.check(ALICE, &tool("a.b", Effect::Destroys), &json!({})), Verdict::cautious());
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = ToolPolicy::new(vec![
            when("path", "/srv/*", rule("files.*", Verdict::Allow)),
            ToolRule { users: Some(vec!["bob".into()]), ..rule("files.*", Verdict::Allow) },
            ToolRule { tenant: Some("acme".into()), ..rule("files.*", Verdict::Deny) },
        ]);
        let read = tool("files.read", Effect::Reads);
        assert_eq!(policy.check(ALICE, &read, &json!({ "path": "/srv/a" })), Verdict::Allow);
        assert_eq!(policy.check(ALICE, &read, &json!({ "path": "/etc/a" })), Verdict::Deny);
        assert_eq!(policy.check(ALICE, &read, &json!({})), Verdict::Deny);
        let bob = Caller { user: Some("bob"), ..ALICE };
        assert_eq!(policy.check(bob, &read, &json!({ "path": "/etc/a" })), Verdict::Allow);
        let elsewhere = Caller { tenant: Some("other"), ..ALICE };
        assert_eq!(policy.check(elsewhere, &read, &json!({})), Verdict::Allow);
    }

    #[test]
    fn one_bad_value_among_many_is_enough_to_deny_and_too_much_to_allow() {
        let read = tool("files.read", Effect::Reads);
        let mixed = json!({ "deep": { "paths": ["/srv/a", "/etc/b"] } });
        let allow = when("deep.paths", "/srv/*", rule("*", Verdict::Allow));
        let deny = when("deep.paths", "/etc/*", rule("*", Verdict::Deny));
        let policy = ToolPolicy::new(vec![allow, rule("*", Verdict::Deny)]);
        assert_eq!(policy.check(ALICE, &read, &mixed), Verdict::Deny);
        assert_eq!(ToolPolicy::new(vec![deny]).check(ALICE, &read, &mixed), Verdict::Deny);
    }

    #[test]
    fn a_path_goes_through_lists() {
        let read = tool("files.read", Effect::Reads);
        let deny = ToolPolicy::new(vec![when("files.options.path", "/etc/*", rule("*", Verdict::Deny))]);
        let allow = ToolPolicy::new(vec![
            when("files.options.path", "/srv/*", rule("*", Verdict::Allow)),
            rule("*", Verdict::Deny),
        ]);
        for (arguments, allowed, denied) in [
            (json!({ "files": [{ "options": { "path": "/srv/a" } }] }), true, false),
            (json!({ "files": [{ "options": { "path": "/etc/a" } }] }), false, true),
            (json!({ "files": [{ "options": [{ "path": "/srv/a" }, { "path": "/etc/b" }] }] }), false, true),
            (json!({ "files": [[{ "options": [[{ "path": ["/srv/a", "/etc/b"] }]] }]] }), false, true),
            (json!({ "files": [{ "options": {} }, "/etc/a"] }), false, false),
            (json!({ "files.options": [{ "path": "/etc/a" }] }), false, true),
            (json!({ "files": { "options": [] } }), false, false),
        ] {
            assert_eq!(allow.check(ALICE, &read, &arguments) == Verdict::Allow, allowed, "{arguments}");
            assert_eq!(deny.check(ALICE, &read, &arguments) == Verdict::Deny, denied, "{arguments}");
        }
        let list = json!([{ "files": { "options": { "path": "/etc/a" } } }]);
        assert_eq!(deny.check(ALICE, &read, &list), Verdict::Deny);
    }

    #[test]
    fn whoever_is_not_known_may_be_anybody() {
        let read = tool("files.read", Effect::Reads);
        let of_bob = |then| ToolRule { users: Some(vec!["bob".into()]), ..rule("files.*", then) };
        let of_acme = |then| ToolRule { tenant: Some("acme".into()), ..rule("files.*", then) };
        let (nobody, of_other) = (Caller::default(), Caller { tenant: Some("other"), user: None });
        for denied in [of_bob(Verdict::Deny), of_acme(Verdict::Deny)] {
            let policy = ToolPolicy::new(vec![denied, rule("*", Verdict::Allow)]);
            assert_eq!(policy.check(nobody, &read, &json!({})), Verdict::Deny);
            assert!(!policy.offers(nobody, &read));
        }
        for allowed in [of_bob(Verdict::Allow), of_acme(Verdict::Allow)] {
            let policy = ToolPolicy::new(vec![allowed, rule("*", Verdict::Deny)]);
            assert_eq!(policy.check(nobody, &read, &json!({})), Verdict::Deny);
        }
        let asks = ToolPolicy::new(vec![of_bob(Verdict::cautious())]);
        assert_eq!(asks.check(nobody, &read, &json!({})), Verdict::cautious());
        assert_eq!(
            ToolPolicy::new(vec![of_acme(Verdict::Deny)]).check(of_other, &read, &json!({})),
            Verdict::Allow
        );
    }

    #[test]
    fn what_can_never_be_called_is_not_offered() {
        let read = tool("files.read", Effect::Reads);
        let never = ToolPolicy::new(vec![rule("files.*", Verdict::Deny), rule("*", Verdict::Allow)]);
        assert!(!never.offers(ALICE, &read));
        let sometimes = ToolPolicy::new(vec![
            when("path", "/srv/*", rule("*", Verdict::Allow)),
            rule("*", Verdict::Deny),
        ]);
        assert!(sometimes.offers(ALICE, &read));
        assert!(ToolPolicy::default().offers(ALICE, &read));
    }
}
