//! `capture_concepts`: what is taken of a model's word, and what is not.
//!
//! A model names concepts; ids are computed here, everything it says is checked, and what the shared graph has is taken
//! from there. Nothing it says ever changes the graph. What is refused is counted in the audit log, by reason. The calls
//! are looked at once, when the turn is in the log: until then they are words.

use std::collections::BTreeMap;

use confidant_concepts::{Concept, GraphError, Look, Node, Refusal, agree, normalised};
use serde_json::{Map, Value, json};

use super::context::{Captured, Event, Used, What};
use super::keep::{self, Merge};
use super::{ConceptsOfTurn, ContextStatus, InScope, Shared, Uncertainty};
use crate::audience::Audience;
use crate::audit::{Action, AuditRecord};
use crate::model::{Step, ToolSpec};
use crate::session::Session;
use crate::tools::{Effect, Tool};
use crate::turn::prepare::injection_chance;

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
    let spec = ToolSpec { name: NAME.to_owned(), description: description.to_owned(), schema };
    Tool { spec, effect: Effect::WritesOnce }
}

/// What a call is answered with; the model needs to know no more.
pub(crate) const NOTED: &str = "Noted. Do not mention it. If you have not answered yet, answer now.";

/// What was taken of a turn's calls.
#[derive(Debug, Default, PartialEq)]
struct Taken {
    concepts: Vec<Captured>,
    /// How often each reason held.
    refused: BTreeMap<String, u64>,
}

/// A turn that is in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done<'d> {
    pub(crate) request_id: &'d str,
    pub(crate) audience: Audience,
    /// What the person said.
    pub(crate) query: &'d str,
    pub(crate) steps: &'d [Step],
}

/// Takes what a turn captured into the context. Never fails the turn.
pub(crate) async fn note(
    session: &Session,
    scope: &InScope,
    done: Done<'_>,
) -> (ContextStatus, Option<ConceptsOfTurn>) {
    let Some(shared) = session.inner.concepts.shared() else { return (ContextStatus::Off, None) };
    let taken = take(session, shared, done);
    let mut status = scope.status;
    let mut of_turn = ConceptsOfTurn::default();
    let audit = refusals(session, &taken);
    if taken.concepts.is_empty() {
        of_turn.uncertainty_level = ungrounded(scope);
        if !audit.is_empty()
            && session
                .inner
                .store
                .record(audit.into_iter().map(|n| n.pending(&session.inner.keyring)).collect())
                .await
                .is_err()
        {
            tracing::warn!("refused concepts could not be recorded");
        }
        return (status, Some(of_turn));
    }
    let (used, resolved) = match resolve(shared, taken.concepts.clone()).await {
        Ok(resolved) => resolved,
        Err(error) => {
            tracing::warn!(error = %error, "captured concepts could not be looked up; they are kept as candidates");
            status = if status == ContextStatus::LoadFailed { status } else { ContextStatus::GraphFailed };
            (as_candidates(taken.concepts), 0)
        }
    };
    of_turn.referenced_nodes = used.iter().map(|one| one.0.id.clone()).collect();
    of_turn.jurisdictions = used.iter().filter_map(|one| one.1.clone()).collect();
    dedup(&mut of_turn.referenced_nodes);
    dedup(&mut of_turn.jurisdictions);
    of_turn.uncertainty_level = grounded(resolved, used.len());
    let event = Event {
        at: session.inner.now(),
        request_id: done.request_id.to_owned(),
        by: session.tag(),
        audience: done.audience,
        what: What::Used(used.into_iter().map(|(used, _)| used).collect()),
    };
    let merge = Merge { event: &event, moved: &scope.moved, audit };
    match keep::merge(session, shared, merge).await {
        Ok(_) => session.inner.counters.concepts_captured.add(),
        Err(error) => {
            session.inner.counters.contexts_failed.add();
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts in scope could not be saved");
            // A load that failed says more than a save that failed for the same reason.
            if status != ContextStatus::LoadFailed {
                status = ContextStatus::SaveFailed;
            }
        }
    }
    (status, Some(of_turn))
}

/// What a turn that was answered before had to say of concepts.
pub(crate) async fn recorded(session: &Session, request_id: &str) -> Option<ConceptsOfTurn> {
    let shared = session.inner.concepts.shared()?;
    let event = keep::event_of(session, request_id).await.ok()??;
    let What::Used(used) = event.what else { return None };
    let ids: Vec<String> = used.iter().map(|one| one.id.clone()).collect();
    let nodes = shared.nodes(&ids).await.unwrap_or_else(|_| vec![None; ids.len()]);
    let found = nodes.iter().flatten().count();
    let law = |(one, node): (&Used, &Option<Node>)| {
        let captured = || one.concept.as_ref().map(|captured| captured.concept.jurisdiction.clone());
        node.as_ref().map_or_else(captured, |node| node.jurisdiction.clone()).filter(|code| code != "GLOBAL")
    };
    let mut jurisdictions: Vec<String> = used.iter().zip(&nodes).filter_map(law).collect();
    dedup(&mut jurisdictions);
    let uncertainty_level = grounded(found, ids.len());
    Some(ConceptsOfTurn { referenced_nodes: ids, jurisdictions, uncertainty_level })
}

/// How well an answer stands of whose concepts so many are in the shared graph.
fn grounded(resolved: usize, all: usize) -> Uncertainty {
    match resolved {
        0 => Uncertainty::High,
        resolved if resolved == all => Uncertainty::Low,
        _ => Uncertainty::Medium,
    }
}

/// How well an answer stands that named no concept.
fn ungrounded(scope: &InScope) -> Uncertainty {
    if scope.status == ContextStatus::Loaded { Uncertainty::Medium } else { Uncertainty::High }
}

fn dedup(items: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
}

fn refusals(session: &Session, taken: &Taken) -> Vec<AuditRecord> {
    let one = |(reason, count): (&String, &u64)| {
        session.record(Action::ConceptRefused).because(reason).counting(*count)
    };
    taken.refused.iter().map(one).collect()
}

/// Every concept that a turn's calls name, checked.
fn take(session: &Session, shared: &Shared, done: Done<'_>) -> Taken {
    let mut taken = Taken::default();
    let said = Said::of(done.query);
    let someones = [session.scope.user().as_str(), session.scope.tenant().as_str()];
    let place = session.scope.place_id().map(|place| place.as_str().to_owned());
    let ids: Vec<String> =
        someones.into_iter().map(str::to_owned).chain(place).map(|id| id.to_lowercase()).collect();
    let calls = done.steps.iter().flat_map(|step| &step.calls).filter(|call| call.name == NAME);
    for call in calls {
        let concepts = call.arguments.get("concepts").and_then(Value::as_array);
        let Some(concepts) = concepts else {
            *taken.refused.entry("not-the-schema".to_owned()).or_default() += 1;
            continue;
        };
        if concepts.len() > SENSELESS {
            *taken.refused.entry("too-many".to_owned()).or_default() += concepts.len() as u64;
            continue;
        }
        for concept in concepts {
            if taken.concepts.len() >= MOST_CONCEPTS {
                *taken.refused.entry("too-many".to_owned()).or_default() += 1;
                continue;
            }
            match checked(shared, concept, &said, &ids) {
                Ok(captured) => taken.concepts.push(captured),
                Err(refusal) => *taken.refused.entry(refusal.to_string()).or_default() += 1,
            }
        }
    }
    taken
}

/// One concept of a call, or the first thing that speaks against it.
fn checked(shared: &Shared, value: &Value, said: &Said, ids: &[String]) -> Result<Captured, Refusal> {
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
    let concept = match shared.guard.clear(concept) {
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
        Some(Value::String(text)) => Ok(Some(crate::room::one_line(text))),
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
                item.as_str().map(crate::room::one_line).ok_or_else(|| Refusal::new("not-the-schema", name))
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

type Resolved = (Vec<(Used, Option<String>)>, usize);

/// The nodes of the shared graph that these are, and candidates for the rest; with how many are in the graph.
async fn resolve(shared: &Shared, concepts: Vec<Captured>) -> Result<Resolved, GraphError> {
    let ids: Vec<String> = concepts.iter().map(|captured| captured.concept.id.clone()).collect();
    let by_id = shared.nodes(&ids).await?;
    let (mut used, mut resolved) = (Vec::new(), 0);
    for (captured, found) in concepts.into_iter().zip(by_id) {
        match one(shared, &captured.concept, found).await? {
            Some(node) => {
                resolved += 1;
                let jurisdiction = node.jurisdiction.filter(|code| code != "GLOBAL");
                used.push((Used { id: node.id, concept: None }, jurisdiction));
            }
            None => used.push(candidate(captured)),
        }
    }
    Ok((used, resolved))
}

/// By id, then by parts, then by label. An id that many concepts might share counts less than a label that agrees.
async fn one(shared: &Shared, concept: &Concept, by_id: Option<Node>) -> Result<Option<Node>, GraphError> {
    if by_id.as_ref().is_some_and(|node| agree(node, &concept.pref_label)) {
        return Ok(by_id);
    }
    let Concept { domain, jurisdiction, kind, pref_label, .. } = concept;
    if by_id.is_none() {
        let mut by_parts = shared.find(Look::Parts { domain, jurisdiction, kind }, 2).await?;
        // Two that have the same parts are told apart by their labels only.
        if by_parts.len() == 1 {
            return Ok(by_parts.pop());
        }
    }
    let local = Some(jurisdiction.as_str()).filter(|code| *code != "GLOBAL");
    let by_label = shared.find(Look::Label { label: pref_label, jurisdiction: local }, 1).await?.pop();
    Ok(by_label.or(by_id))
}

fn candidate(captured: Captured) -> (Used, Option<String>) {
    let jurisdiction = Some(captured.concept.jurisdiction.clone()).filter(|code| code != "GLOBAL");
    (Used { id: captured.concept.id.clone(), concept: Some(captured) }, jurisdiction)
}

fn as_candidates(concepts: Vec<Captured>) -> Vec<(Used, Option<String>)> {
    concepts.into_iter().map(candidate).collect()
}
