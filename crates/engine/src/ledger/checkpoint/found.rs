//! What single turns of a chat found out and what was made of them, for as long as a device may still ask for their answers.
//!
//! A log knows its conversation's title and what was made of its last turn. Where devices keep the conversation, each answer takes its own
//! with it: whoever finds an answer in the log only, after the process that made it went, finds it here.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};

use super::Checkpoint;
use crate::about::Note;
use crate::turn::Enrichment;

/// What a turn found out, and what was made of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    request_id: String,
    #[serde(default)]
    pub(crate) note: Note,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Box<Enrichment>>,
}

debug_without_content!(Found);

impl Found {
    pub(super) fn request_id(&self) -> &str {
        &self.request_id
    }
}

impl Checkpoint {
    /// What a turn found out, if it is one of the newest of a chat that devices keep.
    pub(crate) fn found(&self, request_id: &str) -> Option<&Found> {
        self.found.iter().find(|found| found.request_id == request_id)
    }

    /// Remembers something of a turn. What stands where its client said is a chat that devices keep.
    pub(super) fn find_out(&mut self, request_id: &str, what: impl FnOnce(&mut Found)) {
        if self.head.is_none() {
            return;
        }
        if self.found(request_id).is_none() {
            let (note, made) = (Note::default(), None);
            self.found.push_back(Found { request_id: request_id.to_owned(), note, made });
            let many = self.found.len().saturating_sub(FOUND_KEPT);
            self.found.drain(..many);
        }
        if let Some(found) = self.found.iter_mut().find(|found| found.request_id == request_id) {
            what(found);
        }
    }
}

/// Of how many turns: as many as an account may have on their way.
const FOUND_KEPT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Millis;
    use crate::head::{Digest, Head};
    use crate::ledger::entry::Entry;

    fn noted(id: &str, title: &str) -> Entry {
        let note = Box::new(Note { title: Some(title.to_owned()), ..Note::default() });
        Entry::Noted { request_id: id.to_owned(), at: Millis(1), note, harm: None }
    }

    #[test]
    fn each_turn_of_a_chat_that_devices_keep_has_its_own() {
        let mut log = Checkpoint::default();
        log.apply(noted("r1", "First")).unwrap();
        assert!(log.found("r1").is_none(), "whoever keeps no chat asks the log for its title");
        log.apply(Entry::Head { head: Head { count: 2, digest: Digest::from_bytes([7; 32]) } }).unwrap();
        log.apply(noted("r2", "Second")).unwrap();
        let made = Enrichment { chat_summary: Some("in short".into()), ..Enrichment::default() };
        let enrichment = Box::new(made.clone());
        log.apply(Entry::Enriched { request_id: "r2".into(), at: Millis(2), enrichment }).unwrap();
        let stored = serde_json::to_string(&log).unwrap();
        let log: Checkpoint = serde_json::from_str(&stored).unwrap();
        let found = log.found("r2").unwrap();
        assert_eq!(found.note.title.as_deref(), Some("Second"));
        assert!(found.made.as_deref() == Some(&made));
        assert_eq!(log.about().title.as_deref(), Some("First"), "the log's own is given once");
        let mut log = log;
        for n in 0..FOUND_KEPT {
            log.apply(noted(&format!("n{n}"), "More")).unwrap();
        }
        assert!(log.found("r2").is_none() && log.found("n0").is_some());
    }
}
