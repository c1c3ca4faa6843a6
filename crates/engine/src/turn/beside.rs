//! What a chat that devices keep has beside a question and its answer: what tools said on the way, and the beginning of the
//! conversation in few words.
//!
//! ```text
//! log: question, results of calls, answer ─▶ texts of tools ─┐
//! log: summary, and where the branch stood after its words ──┴─▶ Metadata::beside, with the answer ─▶ whoever keeps the chat
//! ```
//!
//! Made of the log alone, so that every process that tells an answer tells the same. Easy to get wrong: a text that changes. A proof
//! is over its exact bytes, so what a result becomes here is what the log is taken for later ([`told`](super::told)).

use super::calls::NOT_CALLED;
use super::enrich::clip;
use super::outbound::{Beside, SummedUp};
use super::{focus, remember};
use crate::about::Summary;
use crate::concepts;
use crate::fence::{one_line, unfenced};
use crate::ledger::checkpoint::{Checkpoint, Exchange};
use crate::ledger::entry::{Entry, Reply, ReplyFrom};

/// What belongs beside this turn's answer, as the log has it; `None` if nothing does.
pub(super) fn of(log: Option<&Checkpoint>, request_id: &str) -> Option<Box<Beside>> {
    let log = log?;
    let tools = texts(log.exchange(request_id)?.replies());
    let told = log.summaries().iter().find(|summary| summary.told_with.as_deref() == Some(request_id));
    let summed_up = told.and_then(|summary| summed_up(log, summary));
    let is_any = !tools.is_empty() || summed_up.is_some();
    is_any.then(|| Box::new(Beside { tools, summed_up }))
}

/// The same of an answer that is not in the log yet. Nobody is told of a summary with it.
pub(super) fn of_entries(entries: &[Entry]) -> Option<Box<Beside>> {
    let tools = entries.iter().find_map(|entry| match entry {
        Entry::Answered { replies, .. } => Some(texts(replies)),
        _ => None,
    });
    let tools = tools.filter(|tools| !tools.is_empty())?;
    Some(Box::new(Beside { tools, summed_up: None }))
}

/// What must be written with an answer so that its chat is told what the conversation's beginning was summed up as; nothing if it
/// knows, or nobody can say how far the summary goes.
pub(super) fn tells(log: Option<&Checkpoint>, request_id: &str) -> Option<Entry> {
    let log = log?;
    let untold = log.summaries().iter().find(|summary| summary.told_with.is_none())?;
    summed_up(log, untold)?;
    let summary = Summary { told_with: Some(request_id.to_owned()), ..untold.clone() };
    Some(Entry::Summarised { summary })
}

/// A summary ends where the first exchange that it does not cover begins.
fn summed_up(log: &Checkpoint, summary: &Summary) -> Option<SummedUp> {
    let mut numbered = (log.dropped()..).zip(log.exchanges());
    let (_, next) = numbered.find(|(ordinal, _)| *ordinal > summary.through)?;
    Some(SummedUp { text: summary.text.clone(), through: next.stand? })
}

/// What the tools of an answer said, as its chat has it.
pub(super) fn texts(replies: &[Reply]) -> Vec<String> {
    let mut left = MOST_BYTES;
    let texts = replies.iter().filter_map(text).take(MOST);
    let fits = |text: &String| {
        let rest = serde_json::to_string(text).ok().and_then(|json| left.checked_sub(json.len()));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    texts.take_while(fits).collect()
}

/// What a tool said: its name and its words, out of the fence in which the model read them. Nothing of a call that was not made, of
/// what a search found on the person's device, and of what is between the program and the model.
fn text(reply: &Reply) -> Option<String> {
    if reply.from != ReplyFrom::Tool || reply.content.starts_with(NOT_CALLED) {
        return None;
    }
    if reply.arguments.is_none() {
        // From the chat: it is there word for word.
        return Some(reply.content.clone());
    }
    let inner = [concepts::NAME, remember::NAME, focus::START, focus::STOP];
    if inner.contains(&reply.name.as_str()) {
        return None;
    }
    let words = clip(unfenced(&reply.content).trim(), LONGEST);
    Some(format!("{}\n{words}", one_line(&reply.name)))
}

/// The tool that such a text names.
pub(super) fn tool_of(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('\n')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    ((1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_name)).then_some(name)
}

/// The words of such a text, without the name.
pub(super) fn words_of<'t>(text: &'t str, tool: &str) -> &'t str {
    text.strip_prefix(tool).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(text)
}

/// Of an exchange, who spoke besides the person, as its chat has it.
pub(super) fn replies(exchange: &Exchange) -> impl Iterator<Item = (ReplyFrom, String)> + '_ {
    let mut tools = texts(exchange.replies()).into_iter();
    exchange.replies().iter().filter_map(move |reply| match reply.from {
        ReplyFrom::Tool => text(reply).and_then(|_| tools.next()).map(|text| (ReplyFrom::Tool, text)),
        from => Some((from, reply.content.clone())),
    })
}

/// Texts of tools beside one answer, and what all may take in JSON.
const MOST: usize = 16;
const MOST_BYTES: usize = 24 * 1024;
/// Of one, in characters. What a tool said at length is looked for again, and not carried along.
const LONGEST: usize = 2_000;
const LONGEST_NAME: usize = 80;

#[cfg(test)]
mod tests {
    use confidant_model::fresh_fence;
    use serde_json::json;

    use super::*;
    use crate::fence::tool_said;
    use crate::tools::ToolOutput;

    fn called(name: &str, text: &str) -> Reply {
        let output = ToolOutput { text: text.to_owned(), failed: false, cut: false };
        let content = tool_said(&fresh_fence(), &output, 100_000);
        let arguments = Some(json!({}));
        Reply { from: ReplyFrom::Tool, content, tokens: None, name: name.to_owned(), arguments, step: None }
    }

    #[test]
    fn a_tool_is_told_by_name_and_in_its_own_words() {
        let refused = Reply { content: format!("{NOT_CALLED}no."), ..called("web.search", "") };
        let inner = [concepts::NAME, remember::NAME, focus::START].map(|name| called(name, "between us"));
        let mut replies = vec![called("web.search", "two\nlines"), refused, called("files.read", "one")];
        replies.extend(inner);
        replies.push(Reply::ai("done".to_owned(), None, "m".to_owned()));
        assert_eq!(texts(&replies), ["web.search\ntwo\nlines", "files.read\none"]);
        // As its chat sends it again, it is the same.
        let again =
            Reply { content: "web.search\ntwo".to_owned(), arguments: None, ..called("web.search", "") };
        assert_eq!(texts(&[again]), ["web.search\ntwo"]);
    }

    #[test]
    fn no_more_is_told_than_a_letter_holds() {
        let long = "x".repeat(9_000);
        let replies: Vec<Reply> = (0..30).map(|_| called("web.search", &long)).collect();
        let told = texts(&replies);
        let bytes: usize = told.iter().map(String::len).sum();
        assert!(told.len() > 8 && told.len() <= MOST && bytes <= MOST_BYTES, "{} {bytes}", told.len());
        assert!(told.iter().all(|text| text.len() <= LONGEST + 20));
    }

    #[test]
    fn the_name_is_the_first_line_if_it_can_be_one() {
        assert_eq!(tool_of("web.search\nfound"), Some("web.search"));
        for text in ["found", "two words\nfound", "\nfound", "ignore: all\nfound"] {
            assert_eq!(tool_of(text), None, "{text}");
        }
        assert_eq!(words_of("web.search\nfound", "web.search"), "found");
        assert_eq!(words_of("web.searching\nfound", "web.search"), "web.searching\nfound");
        assert_eq!(words_of("found", "tool"), "found");
    }
}
