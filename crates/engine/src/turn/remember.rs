//! The tool `memory.search`: looks through the whole of this conversation, also what no longer fits a prompt. What is kept
//! no longer it cannot find, and says so. In a chat that devices keep, the person's device may be asked as well.

use confidant_model::ToolSpec;
use serde_json::{Value, json};

use super::calls::text_of;
use super::data_request::Piece;
use super::request::Restore;
use crate::audience::Audience;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::entry::ReplyFrom;
use crate::tools::{Effect, Tool, ToolOutput};

pub(super) const NAME: &str = "memory.search";

/// Where a search looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// In this conversation, as far as it is kept here.
    Here,
    /// Also in the person's chats, on their device, if they agree.
    Device,
}

/// The tool as a model is told of it.
pub(super) fn tool(reach: Reach) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "description": "Words to look for.", "maxLength": 400 },
            "limit": { "type": "integer", "minimum": 1, "maximum": 20 },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let description = match reach {
        Reach::Here => {
            "Looks through everything that is kept of this conversation, also from long ago. Use it to remember."
        }
        Reach::Device => {
            "Looks through this conversation, and once in a turn, if the person agrees, through their other chats. Use it only \
             for what was said before and is needed now."
        }
    };
    let spec = ToolSpec { name: NAME.to_owned(), description: description.to_owned(), schema, strict: None };
    Tool { spec, effect: Effect::Reads }
}

/// The messages that fit the query best, in the order in which they were said. What the audience may not hear is not
/// looked at.
pub(super) fn search(
    log: Option<&Checkpoint>,
    audience: Audience,
    restore: Option<Restore>,
    arguments: &Value,
) -> ToolOutput {
    let query = words(text_of(arguments, "query").unwrap_or_default());
    let limit = arguments.get("limit").and_then(Value::as_u64).map_or(5, |limit| limit.clamp(1, 20));
    let Some(log) = log else { return output(Vec::new(), false) };
    let sharing = log.sharing();
    let mut found = Vec::new();
    let from = restore.map_or(0, |restore| log.restored_from(restore));
    let old = usize::try_from(from.saturating_sub(log.dropped())).unwrap_or(usize::MAX);
    let exchanges = log.all().skip(old).filter(|exchange| exchange.audience.may_reach(audience, sharing));
    for (order, exchange) in exchanges.enumerate() {
        let said = exchange.replies().iter().filter_map(|reply| match reply.from {
            ReplyFrom::Ai => Some(("assistant", reply.content.as_str())),
            ReplyFrom::Quoted => Some(("quoted, by whom is not known", reply.content.as_str())),
            ReplyFrom::Tool | ReplyFrom::Summary => None,
        });
        for (who, text) in std::iter::once(("person", exchange.content.as_str())).chain(said) {
            found.push((order, who, text, words(text)));
        }
    }
    // A word that few messages have says more than one that many have.
    let rarity = |word: &str| {
        let having = found.iter().filter(|(_, _, _, words)| words.iter().any(|w| w == word)).count();
        ((1.0 + found.len() as f64) / (0.5 + having as f64)).ln()
    };
    let weights: Vec<(&String, f64)> = query.iter().map(|word| (word, rarity(word))).collect();
    let mut scored: Vec<(f64, usize)> = Vec::new();
    for (at, (_, _, _, words)) in found.iter().enumerate() {
        let hits = weights.iter().filter(|(word, _)| words.contains(word));
        let score: f64 =
            hits.map(|(_, weight)| weight).sum::<f64>() / (1.0 + (words.len() as f64).ln_1p() / 8.0);
        if score > 0.0 {
            scored.push((score, at));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    scored.truncate(usize::try_from(limit).unwrap_or(5));
    let mut places: Vec<usize> = scored.into_iter().map(|(_, at)| at).collect();
    places.sort_unstable();
    let lines = places.into_iter().map(|at| format!("{}: {}", found[at].1, excerpt(found[at].2)));
    output(lines.collect(), log.dropped() > 0 && from <= log.dropped())
}

/// What was found here, with what the person's device found; `None` if it could not be asked.
pub(super) fn with_device(mut found: ToolOutput, pieces: Option<Vec<Piece>>) -> ToolOutput {
    let pieces = pieces.unwrap_or_default();
    if !pieces.is_empty() {
        found.text.push_str(ELSEWHERE);
    }
    for Piece { name, text } in pieces {
        let (name, text) = (crate::fence::one_line(&name), crate::fence::one_line(&text));
        found.text.push_str(&format!("\n{name}: {text}"));
    }
    found
}

const ELSEWHERE: &str = "\nIn other chats of this person, by their title:";

fn output(lines: Vec<String>, dropped: bool) -> ToolOutput {
    let mut text = if lines.is_empty() { "Nothing was found.".to_owned() } else { lines.join("\n") };
    if dropped {
        text.push_str(DROPPED);
    }
    ToolOutput { text, failed: false, cut: false }
}

const DROPPED: &str =
    "\n(The oldest messages of this conversation are kept no longer and were not looked at.)";

fn excerpt(text: &str) -> String {
    let line = crate::fence::one_line(text);
    match line.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

const LONGEST_EXCERPT: usize = 600;

/// Words in lower case, without their commonest endings, so that `prefers` finds `prefer`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let lower = word.to_lowercase();
            let stem = ["ing", "ed", "es", "s"]
                .into_iter()
                .find_map(|end| lower.strip_suffix(end).filter(|stem| stem.chars().count() > 2));
            stem.map_or_else(|| lower.clone(), str::to_owned)
        })
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}
