//! The ingress guard: nothing of a person enters the shared graph.
//!
//! Looks at what a write is called (its label and relation), at the names of its properties, and at every leaf value,
//! those in arrays included, each as a whole and in parts: an address in the middle of a sentence is one. What is easy to
//! get wrong: a check of some fields only is a check of none, so the concept is checked as the JSON that it is.

use confidant_redact::{Options, Redactor};
use serde_json::{Map, Value, json};

use crate::concept::Concept;

/// A concept that the guard let through. A graph takes nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleared(Concept);

impl Cleared {
    /// The concept.
    #[must_use]
    pub fn concept(&self) -> &Concept {
        &self.0
    }
}

/// Why something was not let through: a word for the audit log, and which property it was about. Never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} in {property}")]
pub struct Refusal {
    /// Such as `personal-data:email`.
    pub reason: String,
    /// Such as `altLabels`.
    pub property: String,
}

impl Refusal {
    /// A refusal for this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>, property: impl Into<String>) -> Self {
        Self { reason: reason.into(), property: property.into() }
    }
}

/// Decides what may enter a shared graph.
#[derive(Debug)]
pub struct Guard {
    redactor: Redactor,
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Guard {
    /// A guard that knows the redaction rules.
    #[must_use]
    pub fn new() -> Self {
        let redactor = Redactor::new(Options::default()).expect("the default lists of words are empty");
        Self { redactor }
    }

    /// Lets a concept through, or says all that speaks against it.
    pub fn clear(&self, concept: Concept) -> Result<Cleared, Vec<Refusal>> {
        let properties = json!({
            "id": concept.id, "domain": concept.domain, "kind": concept.kind, "jurisdiction": concept.jurisdiction,
            "prefLabel": concept.pref_label, "altLabels": concept.alt_labels, "definition": concept.definition,
            "sourceUrls": concept.source_urls,
        });
        let refusals = match &properties {
            Value::Object(properties) => self.check("Concept", None, properties),
            _ => Vec::new(),
        };
        if refusals.is_empty() { Ok(Cleared(concept)) } else { Err(refusals) }
    }

    /// What speaks against writing a node or a relation with these properties.
    #[must_use]
    pub fn check(
        &self,
        label: &str,
        relation: Option<&str>,
        properties: &Map<String, Value>,
    ) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        if !LABELS.contains(&label) {
            refusals.push(Refusal::new("label-not-allowed", "label"));
        }
        if relation.is_some_and(|relation| !RELATIONS.contains(&relation)) {
            refusals.push(Refusal::new("relation-not-allowed", "relation"));
        }
        for (name, value) in properties {
            match PROPERTIES.iter().find(|(known, _)| known == name) {
                Some((known, _)) => self.leaves(value, known, &mut refusals),
                None => refusals.push(Refusal::new("property-not-allowed", "(unknown)")),
            }
        }
        refusals
    }

    /// What speaks against one text of a property.
    #[must_use]
    pub fn leaf(&self, text: &str, property: &str) -> Option<Refusal> {
        let longest =
            PROPERTIES.iter().find(|(known, _)| *known == property).map_or(0, |(_, longest)| *longest);
        if text.chars().count() > longest {
            return Some(Refusal::new("too-long", property));
        }
        if property == "sourceUrls" && !is_public_url(text) {
            return Some(Refusal::new("not-a-public-url", property));
        }
        let found = self.redactor.redact_text(text);
        if let Some(finding) =
            found.findings.iter().find(|found| property != "sourceUrls" || found.rule != "url")
        {
            return Some(Refusal::new(format!("personal-data:{}", finding.rule), property));
        }
        is_someones(text).then(|| Refusal::new("personal-data:id", property))
    }

    fn leaves(&self, value: &Value, property: &str, refusals: &mut Vec<Refusal>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => refusals.extend(self.leaf(&number.to_string(), property)),
            Value::String(text) => refusals.extend(self.leaf(text, property)),
            Value::Array(items) if items.len() > MOST_ITEMS => {
                refusals.push(Refusal::new("too-many", property))
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.leaves(item, property, refusals));
            }
            Value::Object(_) => refusals.push(Refusal::new("property-not-allowed", property)),
        }
    }
}

/// An address that anybody can open, with nobody's name or password in it.
fn is_public_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let plain =
        |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '\\' | '|' | '^');
    !host.contains('@') && host.contains('.') && text.chars().all(plain)
}

/// Whether a text has a person's or a conversation's id in it: a UUID, a Matrix id, a number like a Discord id.
fn is_someones(text: &str) -> bool {
    let mut words = text
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | '"' | '\'' | '/' | '='));
    words.any(|word| {
        let hex =
            |part: &str, length: usize| part.len() == length && part.chars().all(|c| c.is_ascii_hexdigit());
        let parts: Vec<&str> = word.split('-').collect();
        let uuid =
            parts.len() == 5 && parts.iter().zip([8, 4, 4, 4, 12]).all(|(part, length)| hex(part, length));
        let matrix = word.starts_with(['@', '!', '#']) && word.contains(':') && word.len() > 3;
        let snowflake = (17..=20).contains(&word.len()) && word.chars().all(|c| c.is_ascii_digit());
        let session = word.contains("_conv:");
        uuid || matrix || snowflake || session
    })
}

/// What nodes are called.
const LABELS: [&str; 2] = ["Concept", "Label"];
/// How they hang together.
const RELATIONS: [&str; 5] = ["HAS_ALT_LABEL", "BROADER", "NARROWER", "RELATED", "SUPERSEDED_BY"];
/// What is kept of them, with the most characters of each.
const PROPERTIES: [(&str, usize); 14] = [
    ("id", 200),
    ("domain", 64),
    ("kind", 64),
    ("jurisdiction", 64),
    ("prefLabel", 160),
    ("altLabels", 160),
    ("definition", 2_000),
    ("sourceUrls", 400),
    ("value", 160),
    ("language", 35),
    ("ingestionStatus", 16),
    ("createdAt", 32),
    ("updatedAt", 32),
    ("lastVerifiedAt", 32),
];
const MOST_ITEMS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn vat() -> Concept {
        let mut vat = Concept::new("tax", "IE", "VAT", "Value-Added Tax (VAT)");
        vat.definition = Some("general indirect tax on goods and services in Ireland.".to_owned());
        vat.source_urls = vec!["https://www.revenue.ie/en/vat/index.aspx".to_owned()];
        vat.alt_labels = vec!["VAT".to_owned(), "Cáin Bhreisluacha".to_owned()];
        vat
    }

    fn reasons(concept: Concept) -> Vec<String> {
        Guard::new().clear(concept).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn public_concepts_pass() {
        assert!(Guard::new().clear(vat()).is_ok());
        let mut act = Concept::new("social", "IE", "Act", "Social Welfare Consolidation Act 2005, s. 2(3)");
        act.definition =
            Some("Act No. 26 of 2005; see S.I. No. 142/2007 and Regulation (EC) No 883/2004.".to_owned());
        assert!(Guard::new().clear(act).is_ok());
    }

    #[test]
    fn every_leaf_is_looked_at_and_arrays_too() {
        let mail = "write to jane.doe@example.org about it";
        type Set = fn(&mut Concept, &str);
        let cases: [(&str, Set); 5] = [
            ("prefLabel", |c, t| t.clone_into(&mut c.pref_label)),
            ("altLabels", |c, t| c.alt_labels.push(t.to_owned())),
            ("definition", |c, t| c.definition = Some(t.to_owned())),
            ("domain", |c, t| t.clone_into(&mut c.domain)),
            ("kind", |c, t| t.clone_into(&mut c.kind)),
        ];
        for (property, set) in cases {
            let mut concept = vat();
            set(&mut concept, mail);
            let found = reasons(concept);
            assert!(found[0].starts_with("personal-data:") && found[0].ends_with(property), "{found:?}");
        }
        for hidden in [
            "call +353 87 123 4567 now",
            "@alice:matrix.org asked",
            "see 0190f6c2-7a31-7c1e-9b52-1f2e3d4c5b6a",
            "discord_conv:111 said so",
            "user 123456789012345678",
        ] {
            let mut concept = vat();
            concept.alt_labels.push(hidden.to_owned());
            assert!(!reasons(concept).is_empty(), "{hidden}");
        }
    }

    #[test]
    fn names_of_things_are_checked_as_well() {
        let guard = Guard::new();
        let properties = |json: Value| json.as_object().cloned().unwrap_or_default();
        let plain = properties(json!({ "prefLabel": "VAT" }));
        assert!(guard.check("Concept", Some("BROADER"), &plain).is_empty());
        for (label, relation, properties) in [
            ("User", None, plain.clone()),
            ("Concept", Some("ASKED_BY"), plain),
            ("Concept", None, properties(json!({ "userId": "x" }))),
            ("Concept", None, properties(json!({ "altLabels": [["deep", { "mail": "a@b.org" }]] }))),
            ("Concept", None, properties(json!({ "sourceUrls": ["https://user:pw@x.org/"] }))),
            ("Concept", None, properties(json!({ "sourceUrls": ["file:///etc/passwd"] }))),
            ("Concept", None, properties(json!({ "altLabels": vec!["x"; 65] }))),
        ] {
            assert_eq!(
                guard.check(label, relation, &properties).len(),
                1,
                "{label} {relation:?} {properties:?}"
            );
        }
    }
}
