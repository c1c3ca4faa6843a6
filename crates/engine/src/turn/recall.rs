//! Stage 2: what this person and the agent said before, as far as the answer's readers may know it.

use super::{Inbound, compress};
use crate::checkpoint::Exchange;
use crate::engine::HistoryLimits;
use crate::entry::ReplyFrom;
use crate::model::{PromptMessage, Role};
use crate::session::Held;
use crate::tokens;

/// What is recalled for a turn.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// Whole exchanges, oldest first, each with its tokens.
    pub(super) exchanges: Vec<RecalledExchange>,
    /// Messages left out because of the audience.
    pub(super) withheld: usize,
    /// Messages left out because they are too many.
    pub(super) older: usize,
    /// The place in the log of the turn itself: what was said before it ends there.
    pub(super) end: u64,
    /// The beginning of the conversation in few words, as far as the answer's readers may know it.
    pub(super) summaries: Vec<String>,
    /// Exchanges before the first that is kept; none where the turn is not to look back as far.
    pub(super) dropped: u64,
    /// Whether the log is nearly as long as it may be.
    pub(super) crowded: bool,
}

/// One exchange as a prompt has it; never parted.
#[derive(Debug)]
pub(super) struct RecalledExchange {
    pub(super) messages: Vec<PromptMessage>,
    pub(super) tokens: u32,
    /// Its place in the log.
    pub(super) ordinal: u64,
}

/// The newest exchanges within the limits, oldest first, without the turn's own and without what the audience rule
/// withholds. Only ever reads: what is not recalled is still there.
pub(super) fn recall(held: &mut Held<'_>, inbound: &Inbound, limits: &HistoryLimits) -> Recalled {
    let Some(log) = held.warm() else { return Recalled::default() };
    log.count_tokens(limits.max_messages, tokens::count);
    let checkpoint = log.checkpoint();
    let sharing = checkpoint.sharing();
    let mut recalled = Recalled {
        end: checkpoint.ordinal(&inbound.request_id),
        dropped: checkpoint.dropped(),
        crowded: compress::is_crowded(checkpoint, limits.max_messages),
        ..Recalled::default()
    };
    let (mut messages, mut spent) = (0, 0);
    let known = checkpoint.summaries().iter();
    let known = known.filter(|summary| summary.audience.may_reach(inbound.audience, sharing));
    recalled.summaries = known.map(|summary| summary.text.clone()).collect();
    let from = inbound.restore.map_or(0, |restore| checkpoint.restored_from(restore));
    // What a summary covers cannot be told apart, so it is left out with the first exchange that is.
    if inbound.restore.is_some_and(|restore| restore.messages == 0) || from > checkpoint.dropped() {
        recalled.summaries.clear();
        recalled.dropped = 0;
    }
    let numbered = checkpoint.exchanges().iter().enumerate().rev();
    let numbered = numbered.map(|(at, exchange)| (checkpoint.dropped() + at as u64, exchange));
    let numbered = numbered.take_while(|(ordinal, _)| *ordinal >= from);
    for (ordinal, exchange) in numbered.filter(|(_, e)| e.request_id != inbound.request_id) {
        if !exchange.audience.may_reach(inbound.audience, sharing) {
            recalled.withheld += exchange.messages();
            continue;
        }
        if recalled.older > 0 {
            recalled.older += exchange.messages();
            continue;
        }
        let one = prompt_messages(ordinal, exchange);
        messages += one.messages.len();
        spent += one.tokens;
        // The exact share of the budget is settled in compose; beyond the whole of it nothing can fit.
        if messages > limits.max_messages || spent > limits.token_budget {
            recalled.older += one.messages.len();
            continue;
        }
        recalled.exchanges.push(one);
    }
    recalled.exchanges.reverse();
    recalled
}

fn prompt_messages(ordinal: u64, exchange: &Exchange) -> RecalledExchange {
    let mut messages = vec![PromptMessage { role: Role::Human, text: exchange.content.clone() }];
    let mut tokens = exchange.tokens.unwrap_or(0) + MESSAGE_OVERHEAD;
    for reply in exchange.replies().iter().filter(|reply| reply.from == ReplyFrom::Ai) {
        messages.push(PromptMessage { role: Role::Ai, text: reply.content.clone() });
        tokens += reply.tokens.unwrap_or(0) + MESSAGE_OVERHEAD;
    }
    RecalledExchange { messages, tokens, ordinal }
}

/// Tokens that a message costs beside its text: role and separators.
pub(super) const MESSAGE_OVERHEAD: u32 = 4;
