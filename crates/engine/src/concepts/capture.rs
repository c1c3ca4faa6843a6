//! `capture_concepts`: what is taken of a model's word, and what is not.
//!
//! A model names concepts; ids are computed here, everything it says is checked, and what the shared graph has is taken
//! from there. Nothing it says ever changes the graph. What is refused is counted in the audit log, by reason. The calls
//! are looked at once, when the turn ends, and what is taken goes into the log with the answer.

use std::collections::BTreeMap;

use confidant_concepts::{Concept, Guard, Refusal, normalised};
use confidant_model::{Step, ToolSpec};
use confidant_prepare::injection_chance;
use serde_json::{Map, Value, json};

use super::context::Captured;
use crate::ledger::audit::{Action, AuditRecord};
use crate::ledger::session::Session;
use crate::tools::{Effect, Tool};

pub(crate) const NAME: &str = "capture_concepts";
/// The most that is taken of one turn.
const MOST_CONCEPTS: usize = 5;
/// A call with more than this is a model gone wrong, and nothing of it is taken.
const SENSELESS: usize = 50;
/// From this chance on, a text is taken for instructions. Definitions are no conversation: they have no reason to.
const INSTRUCTIONS: f32 = 4.0;
/// So many words of a person's in a row are their words, not a term.
const CHAT_WORDS: usize = 6;

/// The tool as a model is told of it.
pub(crate) fn tool() -> Tool {
    let text = |description: &str, longest: usize| json!({ "type": "string", "description": description, "maxLength": longest });
    let schema = json!({
        "type": "object",
        "properties": { "concepts": {
            "type": "array", "minItems": 1, "maxItems": MOST_CONCEPTS,
            "items": {
                "type": "object",
                "properties": {
                    "domain": text("Subject area, such as TAX.", 64),
                    "kind": text("Short code of the concept itself, such as VAT.", 64),
                    "jurisdiction": text("Code of the country or region, such as IE; GLOBAL if none.", 64),
                    "prefLabel": text("Official name.", 160),
                    "altLabels": { "type": "array", "items": text("Another official name or acronym.", 160), "maxItems": 8 },
                    "definition": text("One public, general sentence. Nothing about the person.", 600),
                    "sourceUrls": { "type": "array", "items": { "type": "string", "format": "uri", "maxLength": 400 }, "maxItems": 8 },
                },
                "required": ["domain", "kind", "jurisdiction", "prefLabel"],
                "additionalProperties": false,
            },
        } },
        "required": ["concepts"],
        "additionalProperties": false,
    });
    let description = "Call this once per turn, together with your answer, with the 1 to 5 public concepts (rules, taxes, \
        benefits, terms) that the answer is about. General knowledge only, never anything about the person. The person does \
        not see it.";
    let spec = ToolSpec { name: NAME.to_owned(), description: description.to_owned(), schema, strict: None };
    Tool { spec, effect: Effect::WritesOnce }
}

/// What a call is answered with; the model needs to know no more.
pub(crate) const NOTED: &str = "Noted. Do not mention it. If you have not answered yet, answer now.";

/// What was taken of a turn's calls.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) concepts: Vec<Captured>,
    /// What the audit log is told of the rest.
    pub(crate) refused: Vec<AuditRecord>,
}

/// What is taken of a turn's calls, held against what the person said in it.
pub(crate) fn take(session: &Session, query: &str, steps: &[Step]) -> Taken {
    let calls = || steps.iter().flat_map(|step| &step.calls).filter(|call| call.name == NAME);
    let Some(shared) = session.inner.ledger.concepts.shared().filter(|_| calls().next().is_some()) else {
        return Taken::default();
    };
    let place = session.scope.place_id().map(|place| place.as_str());
    let someones = [session.scope.user().as_str(), session.scope.tenant().as_str()];
    let someones: Vec<&str> = someones.into_iter().chain(place).collect();
    let (concepts, refused) = checked(&shared.guard, query, &someones, calls().map(|call| &call.arguments));
    let one = |(reason, count): (&String, &u64)| {
        session.record(Action::ConceptRefused).because(reason).counting(*count)
    };
    Taken { concepts, refused: refused.iter().map(one).collect() }
}

/// Every concept that calls with these arguments name, checked; and how often each reason spoke against one.
pub(crate) fn checked<'c>(
    guard: &Guard,
    query: &str,
    someones: &[&str],
    calls: impl Iterator<Item = &'c Value>,
) -> (Vec<Captured>, BTreeMap<String, u64>) {
    let (mut taken, mut refused) = (Vec::new(), BTreeMap::new());
    let mut refuse = |reason: String, times: usize| *refused.entry(reason).or_default() += times as u64;
    let said = Said::of(query);
    let ids: Vec<String> = someones.iter().map(|id| id.to_lowercase()).collect();
    for arguments in calls {
        let Some(concepts) = arguments.get("concepts").and_then(Value::as_array) else {
            refuse("not-the-schema".to_owned(), 1);
            continue;
        };
        if concepts.len() > SENSELESS {
            refuse("too-many".to_owned(), concepts.len());
            continue;
        }
        for concept in concepts {
            if taken.len() >= MOST_CONCEPTS {
                refuse("too-many".to_owned(), 1);
                continue;
            }
            match one(guard, concept, &said, &ids) {
                Ok(captured) => taken.push(captured),
                Err(refusal) => refuse(refusal.to_string(), 1),
            }
        }
    }
    (taken, refused)
}

/// One concept of a call, or the first thing that speaks against it.
fn one(guard: &Guard, value: &Value, said: &Said, ids: &[String]) -> Result<Captured, Refusal> {
    let Value::Object(object) = value else { return Err(Refusal::new("not-the-schema", "concepts")) };
    for name in object.keys() {
        if IDS.contains(&name.as_str()) {
            return Err(Refusal::new("brings-an-id", "id"));
        }
        if !PROPERTIES.contains(&name.as_str()) {
            return Err(Refusal::new("property-not-allowed", "(unknown)"));
        }
    }
    let mut concept = Concept::new(
        &required(object, "domain")?,
        &required(object, "jurisdiction")?,
        &required(object, "kind")?,
        &required(object, "prefLabel")?,
    );
    concept.alt_labels = list(object, "altLabels")?;
    concept.definition = text(object, "definition")?.filter(|text| !text.is_empty());
    concept.source_urls = list(object, "sourceUrls")?;
    let concept = match guard.clear(concept) {
        Ok(cleared) => cleared.concept().clone(),
        Err(mut refusals) => return Err(refusals.swap_remove(0)),
    };
    let leaves = [("prefLabel", &concept.pref_label), ("kind", &concept.kind), ("domain", &concept.domain)];
    let alt = concept.alt_labels.iter().map(|label| ("altLabels", label));
    let urls = concept.source_urls.iter().map(|url| ("sourceUrls", url));
    let definition = concept.definition.iter().map(|text| ("definition", text));
    for (property, leaf) in leaves.into_iter().chain(alt).chain(urls).chain(definition) {
        let lower = leaf.to_lowercase();
        if ids.iter().any(|id| id.chars().count() >= SHORTEST_ID && has_word(&lower, id)) {
            return Err(Refusal::new("personal-data:id", property));
        }
        if injection_chance(leaf) >= INSTRUCTIONS {
            return Err(Refusal::new("instructions", property));
        }
        if said.quotes(leaf) {
            return Err(Refusal::new("chat-text", property));
        }
    }
    // What the person said word for word is theirs, not another name of the concept.
    let alt_labels = concept.alt_labels.iter().filter(|label| !said.has(label)).cloned().collect();
    let was_said = said.has(&concept.pref_label);
    Ok(Captured { concept: Concept { alt_labels, ..concept }, said: was_said })
}

/// Whether a text has an id in it as a word of its own: a tenant called `acme` is not in `acmeology`.
fn has_word(text: &str, id: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(id).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + id.len()..].chars().next())
    })
}

/// An id of fewer characters is a word like any other.
const SHORTEST_ID: usize = 4;
/// What models call ids that they make up.
const IDS: [&str; 5] = ["id", "nodeId", "canonicalId", "conceptId", "node_id"];
const PROPERTIES: [&str; 7] =
    ["domain", "kind", "jurisdiction", "prefLabel", "altLabels", "definition", "sourceUrls"];

fn text(object: &Map<String, Value>, name: &'static str) -> Result<Option<String>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(crate::fence::one_line(text))),
        Some(_) => Err(Refusal::new("not-the-schema", name)),
    }
}

fn required(object: &Map<String, Value>, name: &'static str) -> Result<String, Refusal> {
    let found = text(object, name)?.filter(|text| !text.is_empty());
    found.ok_or_else(|| Refusal::new("not-the-schema", name))
}

fn list(object: &Map<String, Value>, name: &'static str) -> Result<Vec<String>, Refusal> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                item.as_str().map(crate::fence::one_line).ok_or_else(|| Refusal::new("not-the-schema", name))
            })
            .collect(),
        Some(_) => Err(Refusal::new("not-the-schema", name)),
    }
}

/// What the person said in this turn, as labels are compared.
struct Said(String);

impl Said {
    fn of(query: &str) -> Self {
        Self(format!(" {} ", normalised(query)))
    }

    /// Whether the person said exactly this.
    fn has(&self, label: &str) -> bool {
        let label = normalised(label);
        !label.is_empty() && self.0.contains(&format!(" {label} "))
    }

    /// Whether a text repeats a stretch of what the person said.
    fn quotes(&self, text: &str) -> bool {
        let plain = normalised(text);
        let words: Vec<&str> = plain.split(' ').collect();
        words.windows(CHAT_WORDS).any(|words| self.0.contains(&format!(" {} ", words.join(" "))))
    }
}
