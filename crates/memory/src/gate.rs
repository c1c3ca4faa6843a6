//! The gate: the only way from a session to something that may be written.
//!
//! [`Redacted`] has no public constructor, so whatever takes one (the card, the raw part of an artifact) cannot be
//! handed unredacted text by mistake. [`Gate::again`] scans what was derived and refuses it if anything is found.

use confidant_redact::{Count, Finding, Options, Redactor, Tier};
use serde::Serialize;
use serde_json::Value;

use crate::{Error, Place, Result};

/// Finds and replaces what must not be kept.
#[derive(Debug)]
pub struct Gate {
    redactor: Redactor,
}

/// JSON whose every leaf and key went through the gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Redacted(Value);

impl Redacted {
    /// The redacted value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
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
        let redacted = self.redactor.redact_json(value);
        let critical = redacted.findings.iter().filter(|finding| finding.tier == Tier::Critical);
        Passed {
            critical: critical.map(place).collect(),
            report: redacted.report.iter().map(fired).collect(),
            redacted: Redacted(redacted.value),
        }
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

fn fired(count: &Count) -> Fired {
    Fired { rule: count.rule.to_owned(), count: count.count }
}
