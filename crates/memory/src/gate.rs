//! The gate: the only way from a session to something that may be written.
//!
//! [`Redacted`] has no public constructor, so whatever takes one (the card, the raw part of an artifact) cannot be
//! handed unredacted text by mistake. [`Gate::again`] scans what was derived and refuses it if anything is found.

use confidant_redact::{Count, Finding, Options, Redactor, Taken, Tier};
use serde::Serialize;
use serde_json::Value;

use crate::{Error, Place, Result};

/// Finds and replaces what must not be kept.
#[derive(Debug)]
pub struct Gate {
    redactor: Redactor,
}

/// JSON whose every leaf and key went through the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redacted(Value);

impl Redacted {
    /// The redacted value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// One of its members, which went through the gate as well.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        self.0.get(name).cloned().map(Self)
    }
}

/// What came through.
#[derive(Clone, Debug, PartialEq)]
pub struct Passed {
    /// The value with placeholders.
    pub redacted: Redacted,
    /// How often each rule held.
    pub report: Vec<Fired>,
    /// Rule and place of what is critical. If there is any, nothing may be stored.
    pub critical: Vec<Place>,
}

/// How often a rule held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fired {
    /// The rule's id.
    pub rule: String,
    /// In how many places.
    pub count: usize,
}

impl Passed {
    /// Adds what was found elsewhere.
    pub(crate) fn add(&mut self, findings: Vec<(Place, Tier)>) {
        for (place, tier) in findings {
            match self.report.binary_search_by(|fired| fired.rule.cmp(&place.rule)) {
                Ok(at) => self.report[at].count += 1,
                Err(at) => self.report.insert(at, Fired { rule: place.rule.clone(), count: 1 }),
            }
            if tier == Tier::Critical {
                self.critical.push(place);
            }
        }
    }
}

impl Gate {
    /// A gate with these options.
    pub fn new(options: Options) -> Result<Self> {
        let redactor = Redactor::new(options)
            .map_err(|_| Error::invalid("the list of words to redact is too long", "shorten it"))?;
        Ok(Self { redactor })
    }

    /// Redacts a value.
    #[must_use]
    pub fn pass(&self, value: &Value) -> Passed {
        self.pass_telling(value, &mut |_| {})
    }

    /// The same, and shows `taken` each value that is replaced.
    pub(crate) fn pass_telling(&self, value: &Value, taken: &mut dyn FnMut(Taken<'_>)) -> Passed {
        let redacted = self.redactor.redact_json_telling(value, taken);
        let critical = redacted.findings.iter().filter(|finding| finding.tier == Tier::Critical);
        Passed {
            critical: critical.map(place).collect(),
            report: redacted.report.iter().map(fired).collect(),
            redacted: Redacted(redacted.value),
        }
    }

    /// Redacts the name of a session. An id is made of what elsewhere looks like a secret, so where the name is one, what
    /// goes by looks alone does not count.
    pub(crate) fn name(&self, name: &str) -> (String, Vec<(Place, Tier)>) {
        let redacted = self.redactor.redact_text(name);
        let counts = |finding: &&Finding| !(is_id(name) && goes_by_looks(name, finding));
        let told: Vec<_> = redacted.findings.iter().filter(counts).map(|f| (named(f), f.tier)).collect();
        if told.is_empty() { (name.to_owned(), told) } else { (redacted.text, told) }
    }

    /// Whether a tag is a label that says nothing of anybody: one word in which only a person's name could be found. In a
    /// sentence `maria` would be one; as a tag it is what somebody files things under, and looks for.
    pub(crate) fn is_label(&self, tag: &str) -> bool {
        is_word(tag) && self.redactor.redact_text(tag).findings.iter().all(|finding| finding.rule == NAMES)
    }

    /// Scans what was derived from redacted text; anything found is an error.
    pub fn again(&self, derived: &Value) -> Result<()> {
        let found = self.redactor.redact_json(derived).findings;
        if found.is_empty() {
            Ok(())
        } else {
            Err(Error::Unclean { places: found.iter().map(place).collect() })
        }
    }
}

fn place(finding: &Finding) -> Place {
    Place { rule: finding.rule.to_owned(), path: finding.path.clone().unwrap_or_default() }
}

fn named(finding: &Finding) -> Place {
    Place { rule: finding.rule.to_owned(), path: "/session_id".to_owned() }
}

/// Whether a session's name is an id and no sentence: one token, without blanks, quotes, commas or brackets.
fn is_id(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "-_.:/@+=~#".contains(c))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(char::is_alphanumeric)
}

/// Whether what was found in a session's name would be an id there: it looks random, and nothing assigns it to the name
/// of a secret. That of a session is none.
fn goes_by_looks(name: &str, finding: &Finding) -> bool {
    match finding.rule {
        "opaque_token" => true,
        NAMES => is_word(name),
        "secret" => {
            let before: String = name.chars().take(finding.start).collect();
            let word = before.trim_end_matches([' ', '"', '\'']).strip_suffix(['=', ':']);
            let word = word.map(|word| word.trim_end_matches([' ', '"', '\'']).to_lowercase());
            word.is_none_or(|word| ["session", "id"].iter().any(|of_sessions| word.ends_with(of_sessions)))
        }
        _ => false,
    }
}

/// The rule for the names of people.
pub(crate) const NAMES: &str = "person_name";

fn fired(count: &Count) -> Fired {
    Fired { rule: count.rule.to_owned(), count: count.count }
}
