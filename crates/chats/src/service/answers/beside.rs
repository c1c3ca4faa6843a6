//! What a chat keeps beside an answer: what tools said on the way, and the beginning of the chat in few words. Each with the server's proof.
//!
//! ```text
//! T of the question ─▶ then each tool ─▶ then the answer          the transcript
//! T behind the words summed up ─▶ then the summary                beside it: nothing continues a summary
//! ```
//!
//! Easy to get wrong: a text that is cut after it was proved. A proof is over all of it, so what does not fit is not told.

use confidant_chat_format::{Transcript, TranscriptKind, beside};
use confidant_chat_protocol::limits::MAX_BESIDE;
use confidant_chat_protocol::{Beside, BesideBy, List, Text};

use super::running::Running;
use crate::answerer::Answer;
use crate::vault::Key;

/// Proves what is beside an answer, with the key that the answer is proved with; says where the transcript stands before the answer.
pub(super) fn prove(
    key: &Key,
    running: &Running,
    asked: Transcript,
    answer: &Answer,
) -> (Transcript, Option<List<Beside, MAX_BESIDE>>) {
    let (mut at, mut all) = (asked, Vec::new());
    let proof = |n: usize, at: &Transcript, kind| {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        at.prove(key, &running.place.chat, &beside(&running.turn, n), kind)
    };
    for text in answer.said.iter().take(MAX_BESIDE - 1) {
        // The log has it like this, so it stands in the transcript; without a proof of its own, where it does not fit.
        at = at.then(TranscriptKind::Tool, text);
        let Ok(text) = Text::new(text.clone()) else { continue };
        let proof = proof(all.len(), &at, TranscriptKind::Tool);
        all.push(Beside { by: BesideBy::Tool, text, proof, count: None, sums_up: None });
    }
    if let Some(sums) = &answer.summed_up
        && let Ok(text) = Text::new(sums.text.clone())
    {
        let behind = sums.transcript.then(TranscriptKind::Summary, &sums.text);
        let proof = proof(all.len(), &behind, TranscriptKind::Summary);
        let (count, sums_up) = (Some(sums.messages), Some(*sums.transcript.digest()));
        all.push(Beside { by: BesideBy::Summary, text, proof, count, sums_up });
    }
    let beside = if all.is_empty() { None } else { List::new(all).ok() };
    (at, beside)
}
