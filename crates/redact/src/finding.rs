//! What is found, and how it is told: by rule and place, never by value.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::rules::Rule;

/// How bad a find is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tier {
    /// Replaced; the rest may be stored.
    Noncritical,
    /// Replaced too, but nothing of the document may be stored durably.
    Critical,
}

/// One place at which a rule held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The id of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub tier: Tier,
    /// Where it begins, in code points of the string it is in.
    pub start: usize,
    /// Where it ends, in code points, exclusive.
    pub end: usize,
    /// Where the string is: a JSON pointer whose keys are redacted themselves. None for plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// How often a rule held. All that a report ever says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Count {
    /// The id of the rule.
    pub rule: &'static str,
    /// In how many places.
    pub count: usize,
}

/// Counts findings by rule, in order of rule.
pub(crate) fn report(findings: &[Finding]) -> Vec<Count> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.rule).or_insert(0) += 1;
    }
    counts.into_iter().map(|(rule, count)| Count { rule, count }).collect()
}

pub(crate) fn blocks(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.tier == Tier::Critical)
}

/// A find in bytes of the text that was scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) rule: &'static Rule,
}

/// Sorts hits and joins those that overlap. The joint one covers both, so nothing of either is left over, and goes by
/// the worse tier, then the surer rule, then the longer match.
pub(crate) fn join(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.retain(|hit| hit.start < hit.end);
    hits.sort_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end)));
    let mut joined: Vec<Hit> = Vec::with_capacity(hits.len());
    let mut longest = 0;
    for hit in hits {
        let length = hit.end - hit.start;
        match joined.last_mut() {
            Some(last) if hit.start < last.end => {
                if (hit.rule.tier, hit.rule.family.sureness(), length)
                    > (last.rule.tier, last.rule.family.sureness(), longest)
                {
                    last.rule = hit.rule;
                    longest = length;
                }
                last.end = last.end.max(hit.end);
            }
            _ => {
                longest = length;
                joined.push(hit);
            }
        }
    }
    joined
}
