//! Stage 4: the prompt. Aspects, then quoted blocks, then history, then the query, within one token budget.

use super::recall::{MESSAGE_OVERHEAD, Recalled};
use super::{Draft, Inbound};
use crate::aspects::Situation;
use crate::engine::Inner;
use crate::model::{Prompt, PromptMessage};
use crate::room::Asker;
use crate::session::Session;
use crate::tokens;

/// The share of the budget that a room may have; history gets what it leaves.
const ROOM_SHARE: u32 = 3;

/// Builds the prompt, and notes in the draft what went into it.
pub(super) async fn compose(
    inner: &Inner,
    session: Option<&Session>,
    inbound: Inbound,
    recalled: Recalled,
    mut draft: Draft,
) -> (Prompt, Draft) {
    let now = inner.now();
    let situation = Situation {
        scope: session.map(Session::scope),
        audience: inbound.audience,
        now,
        prepared: None,
        profile: &inbound.profile,
        focus: inbound.focus.as_deref(),
        tools: 0,
    };
    let composed = inner.aspects.compose(situation).await;
    let mut system = composed.text;
    if let Some(instructions) = inbound.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        if !system.is_empty() {
            system.push_str("\n\n");
        }
        system.push_str(instructions.trim());
    }
    let mut spent = inner.count_system(&system) + inbound.tokens + 2 * MESSAGE_OVERHEAD;
    let budget = inner.settings.history.token_budget;
    spent += composed.blocks.iter().map(|block| tokens::count(&block.render())).sum::<u32>();
    let user = session.map_or("", |session| session.scope().user().as_str());
    let asker = Asker { user, query: &inbound.query, now };
    let room_share = budget.saturating_sub(spent) / ROOM_SHARE;
    let block = inbound.room.into_block(&asker, inner.settings.room, room_share).map(|(block, tokens)| {
        spent += tokens;
        block
    });
    let brought: Vec<PromptMessage> = unknown_to(&recalled, inbound.brought);
    spent += brought.iter().map(|message| tokens::count(&message.text) + MESSAGE_OVERHEAD).sum::<u32>();
    draft.metadata.withheld = recalled.withheld;
    let mut history = newest_within(recalled, budget, &mut spent);
    draft.metadata.recalled = history.len();
    draft.metadata.room_lines = block.as_ref().map_or(0, |block| block.lines.len());
    draft.metadata.failed_aspects = composed.failed;
    draft.prompt_tokens = spent;
    history.extend(brought);
    let prompt = Prompt {
        system,
        blocks: composed.blocks.into_iter().chain(block).collect(),
        history,
        query: inbound.query,
        tools: Vec::new(),
        steps: Vec::new(),
        sampling: inbound.sampling,
    };
    (prompt, draft)
}

/// Whole exchanges from the newest back, as long as they fit.
fn newest_within(recalled: Recalled, budget: u32, spent: &mut u32) -> Vec<PromptMessage> {
    let mut kept = Vec::new();
    for exchange in recalled.exchanges.into_iter().rev() {
        if *spent + exchange.tokens > budget {
            break;
        }
        *spent += exchange.tokens;
        kept.push(exchange.messages);
    }
    kept.into_iter().rev().flatten().collect()
}

/// What an application brought along and memory does not have: an OpenAI client sends its own copy of the
/// conversation, which must not appear twice.
fn unknown_to(recalled: &Recalled, brought: Vec<PromptMessage>) -> Vec<PromptMessage> {
    let mut known: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for message in recalled.exchanges.iter().flat_map(|exchange| &exchange.messages) {
        *known.entry(message.text.trim()).or_default() += 1;
    }
    let is_known = |message: &PromptMessage| match known.get_mut(message.text.trim()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let mut is_known = is_known;
    brought.into_iter().filter(|message| !is_known(message)).collect()
}
