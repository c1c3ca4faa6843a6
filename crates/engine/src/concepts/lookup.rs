//! `memory.concepts`: the model looks things up in the shared graph, by name or by id, with what is near them.
//!
//! It only reads, and only what is public. What it finds was written by others, so it is fenced like any tool's result; each
//! line of it is clean and of bounded length before that.

use std::collections::BTreeMap;

use confidant_concepts::{GraphError, Look, Node};
use confidant_model::ToolSpec;
use serde_json::{Value, json};

use super::aspect::{LONGEST_LABEL, line, short};
use super::{ScopeNode, Shared};
use crate::inner::Inner;
use crate::tools::{Effect, Tool, ToolOutput};

pub(crate) const FIND: &str = "memory.concepts";
/// The most concepts of one answer.
const MOST_FOUND: u64 = 10;
/// The most neighbours of a kind that are named.
const MOST_NEIGHBOURS: usize = 8;

/// The tool as a model is told of it.
pub(crate) fn find_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "A name of the concept, or words of it.", "maxLength": 200 },
            "id": { "type": "string", "description": "Its id, such as TAX:IE:VAT.", "maxLength": 400 },
            "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND },
        },
        "additionalProperties": false,
    });
    let description = "Looks up public concepts (rules, taxes, benefits, terms) by name or id. Gives their definitions and \
        the ids of broader, narrower and related concepts. Give query or id.";
    let spec = ToolSpec { name: FIND.to_owned(), description: description.to_owned(), schema, strict: None };
    Tool { spec, effect: Effect::Reads }
}

/// What a call finds. A graph that fails is a tool that failed, and no more.
pub(crate) async fn look_up(inner: &Inner, arguments: &Value) -> ToolOutput {
    let said = |text: &str, failed: bool| ToolOutput { text: text.to_owned(), failed, cut: false };
    let Some(shared) = inner.ledger.concepts.shared() else {
        return said("Concepts are switched off.", true);
    };
    let text =
        |name: &str| arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let limit = arguments.get("limit").and_then(Value::as_u64).map_or(5, |limit| limit.clamp(1, MOST_FOUND));
    let found = match (text("id"), text("query")) {
        (Some(id), _) => {
            shared.nodes(&[id.to_owned()]).await.map(|found| found.into_iter().flatten().collect())
        }
        (None, Some(query)) => by_name(shared, query, usize::try_from(limit).unwrap_or(1)).await,
        (None, None) => return said("Nothing was looked for: give query or id.", true),
    };
    match found {
        Ok(found) if found.is_empty() => said("Nothing was found.", false),
        Ok(found) => said(&described(shared, &found).await, false),
        Err(error) => {
            tracing::warn!(error = %error, "the model's look-up in the concept graph failed");
            said("The concept graph cannot be asked now.", true)
        }
    }
}

/// Those that are called exactly so, then those that have the words.
async fn by_name(shared: &Shared, query: &str, limit: usize) -> Result<Vec<Node>, GraphError> {
    let mut found = shared.find(Look::Label { label: query, jurisdiction: None }, limit).await?;
    if found.len() < limit {
        for node in shared.find(Look::Words(query), limit).await? {
            if found.len() < limit && found.iter().all(|known| known.id != node.id) {
                found.push(node);
            }
        }
    }
    Ok(found)
}

/// One line for each concept, and one for each kind of neighbours that it has.
async fn described(shared: &Shared, found: &[Node]) -> String {
    let near = |node: &Node| {
        let kinds = [("broader", &node.broader), ("narrower", &node.narrower), ("related", &node.related)];
        kinds.map(|(kind, ids)| (kind, ids.iter().take(MOST_NEIGHBOURS).cloned().collect::<Vec<String>>()))
    };
    let mut ids: Vec<String> =
        found.iter().flat_map(|node| near(node).map(|(_, ids)| ids).concat()).collect();
    ids.sort_unstable();
    ids.dedup();
    // What they are called is a courtesy: their ids alone can be looked up, too.
    let labels: BTreeMap<String, String> = match shared.nodes(&ids).await {
        Ok(nodes) => {
            ids.into_iter().zip(nodes).filter_map(|(id, node)| Some((id, node?.pref_label))).collect()
        }
        Err(_) => BTreeMap::new(),
    };
    let mut lines = Vec::new();
    for node in found {
        lines.push(format!("{} [{}]", line(&ScopeNode::from(node.clone())), short(&node.id, LONGEST_LABEL)));
        for (kind, ids) in near(node).into_iter().filter(|(_, ids)| !ids.is_empty()) {
            let named = ids.iter().map(|id| {
                let label = labels.get(id).map(|label| short(label, LONGEST_LABEL)).unwrap_or_default();
                format!("{label} [{}]", short(id, LONGEST_LABEL)).trim_start().to_owned()
            });
            lines.push(format!("  {kind}: {}", named.collect::<Vec<_>>().join("; ")));
        }
    }
    lines.join("\n")
}
