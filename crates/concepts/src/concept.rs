//! Concepts, their ids, and how labels are compared.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

/// A public concept, as it enters a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Concept {
    /// Its id, computed here and never chosen by a model: see [`concept_id`].
    pub id: String,
    /// The subject area, such as `TAX`.
    pub domain: String,
    /// The code of the concept itself, such as `VAT`, or its type, such as `Benefit`.
    pub kind: String,
    /// Whose law it is, by code, such as `IE`.
    pub jurisdiction: String,
    /// What it is called.
    pub pref_label: String,
    /// What else it is called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alt_labels: Vec<String>,
    /// What it is, in a sentence or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Where that is written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_urls: Vec<String>,
}

impl Concept {
    /// A concept with the id that its parts give.
    #[must_use]
    pub fn new(domain: &str, jurisdiction: &str, kind: &str, pref_label: &str) -> Self {
        Self {
            id: concept_id(domain, jurisdiction, kind, pref_label),
            domain: part(domain, "GENERIC"),
            kind: kind.trim().to_owned(),
            jurisdiction: part(jurisdiction, "GLOBAL"),
            pref_label: pref_label.trim().to_owned(),
            ..Self::default()
        }
    }
}

/// A concept as a graph has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its id. Differs from the one that was asked for if that one was superseded.
    pub id: String,
    /// What it is called, in the language asked for or another.
    pub pref_label: String,
    /// What else it is called, in any language.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alt_labels: Vec<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The subject area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The code or type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whose law it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<String>,
    /// Where it is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_urls: Vec<String>,
    /// The ids of wider concepts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broader: Vec<String>,
    /// The ids of narrower ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrower: Vec<String>,
    /// The ids of those that have to do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<String>,
}

/// A label with its language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label.
    pub text: String,
    /// Its language tag; empty if none was given.
    pub language: String,
}

/// `<DOMAIN>:<JURISDICTION>:<KIND>`, such as `TAX:IE:VAT`.
///
/// A kind that only says what type of thing it is, such as `Benefit`, would give many concepts one id; then the label
/// takes its place.
#[must_use]
pub fn concept_id(domain: &str, jurisdiction: &str, kind: &str, pref_label: &str) -> String {
    let kind = part(kind, "");
    let own =
        if kind.is_empty() || TYPES.contains(&kind.as_str()) { part(pref_label, "CONCEPT") } else { kind };
    format!("{}:{}:{own}", part(domain, "GENERIC"), part(jurisdiction, "GLOBAL"))
}

/// Letters and digits in upper case, everything else as one `_`; `otherwise` if nothing is left.
fn part(text: &str, otherwise: &str) -> String {
    let mut out = String::new();
    for c in text.nfkc().take(LONGEST_PART * 2) {
        if c.is_alphanumeric() {
            out.extend(c.to_uppercase());
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
    }
    let short: String = out.chars().take(LONGEST_PART).collect();
    let short = short.trim_end_matches('_');
    if short.is_empty() { otherwise.to_owned() } else { short.to_owned() }
}

const LONGEST_PART: usize = 48;

/// Types of nodes: as a kind they say nothing of which concept it is.
const TYPES: [&str; 38] = [
    "CONCEPT",
    "JURISDICTION",
    "REGION",
    "AGREEMENT",
    "TREATY",
    "REGIME",
    "COMMUNITY",
    "STATUTE",
    "SECTION",
    "BENEFIT",
    "RELIEF",
    "CONDITION",
    "TIMELINE",
    "TIMELINECONSTRAINT",
    "CASE",
    "GUIDANCE",
    "EUREGULATION",
    "EUDIRECTIVE",
    "PROFILETAG",
    "UPDATE",
    "CHANGEEVENT",
    "OBLIGATION",
    "THRESHOLD",
    "RATE",
    "FORM",
    "PENALTY",
    "LEGALENTITY",
    "TAXCREDIT",
    "TAX",
    "RULE",
    "LAW",
    "ACT",
    "REGULATION",
    "DIRECTIVE",
    "SCHEME",
    "ALLOWANCE",
    "CREDIT",
    "OTHER",
];

/// A label as labels are compared: letters and digits in lower case, without accents, one space between words.
#[must_use]
pub fn normalised(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.nfkd().filter(|c| !unicode_normalization::char::is_combining_mark(*c)) {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Whether a node goes by this label.
#[must_use]
pub fn agree(node: &Node, label: &str) -> bool {
    let wanted = normalised(label);
    std::iter::once(&node.pref_label).chain(&node.alt_labels).any(|known| normalised(known) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_their_parts() {
        for (domain, jurisdiction, kind, label, id) in [
            ("tax", "ie", "vat", "Value-Added Tax", "TAX:IE:VAT"),
            ("", "", "", "Habeas corpus", "GENERIC:GLOBAL:HABEAS_CORPUS"),
            ("social welfare", "IE", "Benefit", "Illness Benefit", "SOCIAL_WELFARE:IE:ILLNESS_BENEFIT"),
            ("Steuer", "DE", "Kfz-Steuer", "Kraftfahrzeugsteuer", "STEUER:DE:KFZ_STEUER"),
            ("tax:evil", "IE\n", "a::b", "x", "TAX_EVIL:IE:A_B"),
        ] {
            assert_eq!(concept_id(domain, jurisdiction, kind, label), id);
        }
        assert!(concept_id(&"x".repeat(9_999), "", "", "").len() < 200);
    }

    #[test]
    fn labels_are_compared_by_their_letters() {
        assert_eq!(normalised("  Value-Added  Tax (VAT)"), "value added tax vat");
        assert_eq!(normalised("Zölle & ÉTÉ"), "zolle ete");
        assert_eq!(normalised("付加価値税"), "付加価値税");
    }
}
