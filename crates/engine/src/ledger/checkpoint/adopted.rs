//! A conversation as its client has it, in the place of what a log had.
//!
//! What was found out about it stays, harm above all: sending a history again is no way to begin anew. What was made of its
//! words goes with them.

use super::{Checkpoint, Exchange, OutOfPlace, Outcome, SETTLED_KEPT};
use crate::audience::Audience;
use crate::head::Head;
use crate::ledger::entry::Taken;

impl Checkpoint {
    /// Takes these exchanges in the place of all others. Those that wait for a decision go on waiting.
    pub(super) fn adopt(&mut self, said: Vec<Taken>, head: Option<Head>) -> Result<(), OutOfPlace> {
        if self.open.is_some() {
            return Err(OutOfPlace);
        }
        for gone in std::mem::take(&mut self.exchanges) {
            if gone.is_cancelled() {
                self.called_off.push_back(gone.request_id);
            } else if matches!(gone.outcome, Outcome::Answered { .. }) {
                self.settled.push_back(gone.request_id);
            }
        }
        for kept in [&mut self.settled, &mut self.called_off] {
            let many = kept.len().saturating_sub(SETTLED_KEPT);
            kept.drain(..many);
        }
        self.summaries.clear();
        self.made.clear();
        self.found.clear();
        self.by_request.clear();
        self.dropped = 0;
        self.taken_over = said.iter().map(|taken| 1 + taken.replies.len() as u64).sum();
        for taken in said {
            if self.by_request.contains_key(&taken.request_id) {
                return Err(OutOfPlace);
            }
            // One that waits comes when it is decided.
            if self.exchange(&taken.request_id).is_none() {
                self.push(exchange(taken));
            }
        }
        self.head = head;
        Ok(())
    }
}

fn exchange(taken: Taken) -> Exchange {
    let Taken { request_id, at, content, replies, stand } = taken;
    let outcome = if replies.is_empty() {
        Outcome::Failed { at, reason: UNANSWERED.to_owned(), attempts: 1, work: None }
    } else {
        Outcome::Answered { at, replies }
    };
    Exchange { stand, ..Exchange::new(request_id, at, Audience::Private, content, outcome) }
}

/// Why there is no answer to what the client has no answer to.
pub(crate) const UNANSWERED: &str = "unanswered";

#[cfg(test)]
mod tests {
    use crate::clock::Millis;
    use crate::head::Digest;
    use crate::ledger::entry::{Entry, Reply, ReplyFrom};

    use super::*;

    fn head(count: u64) -> Head {
        Head { count, digest: Digest::from_bytes([7; 32]) }
    }

    fn taken(id: &str, replies: Vec<Reply>) -> Taken {
        let request_id = id.to_owned();
        Taken { request_id, at: Millis(1), content: format!("said {id}"), replies, stand: None }
    }

    fn reply(text: &str) -> Reply {
        Reply::ai(text.to_owned(), None, "m".to_owned())
    }

    fn accepted(id: &str) -> Entry {
        let (request_id, content) = (id.to_owned(), "q".to_owned());
        Entry::Accepted { request_id, at: Millis(1), audience: Audience::Private, content, tokens: None }
    }

    fn answered(id: &str) -> Entry {
        Entry::Answered { request_id: id.to_owned(), at: Millis(2), replies: vec![reply("a")] }
    }

    fn adopted(said: Vec<Taken>, count: u64) -> Entry {
        Entry::Adopted { at: Millis(3), said, head: Some(head(count)) }
    }

    #[test]
    fn stored_forms_are_pinned() {
        let quoted = Reply { from: ReplyFrom::Quoted, ..reply("b") };
        let digest = "07".repeat(32);
        let entries = [
            adopted(vec![taken("m1", vec![reply("a"), quoted]), taken("m2", Vec::new())], 4),
            Entry::Head { head: head(6) },
        ];
        let json: Vec<String> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        assert_eq!(
            json,
            [
                format!(
                    "{}{}{}{digest}{}",
                    r#"{"kind":"adopted","at":3,"said":[{"request_id":"m1","at":1,"content":"said m1","replies":["#,
                    r#"{"from":"ai","content":"a","name":"m"},{"from":"quoted","content":"b","name":"m"}]},"#,
                    r#"{"request_id":"m2","at":1,"content":"said m2"}],"head":{"count":4,"digest":""#,
                    r#""}}"#
                ),
                format!(r#"{{"kind":"head","head":{{"count":6,"digest":"{digest}"}}}}"#),
            ]
        );
    }

    #[test]
    fn what_was_there_is_replaced_and_is_not_answered_again() {
        let mut log = Checkpoint::default();
        for id in ["r1", "r2"] {
            log.apply(accepted(id)).unwrap();
            log.apply(answered(id)).unwrap();
        }
        log.apply(accepted("r3")).unwrap();
        let said = vec![taken("m1", vec![reply("a")]), taken("m2", Vec::new())];
        assert_eq!(log.apply(adopted(said.clone(), 3)), Err(OutOfPlace), "a turn is open");
        log.apply(Entry::Failed { request_id: "r3".into(), at: Millis(2), reason: "model_failed".into() })
            .unwrap();
        log.apply(adopted(said, 3)).unwrap();
        let ids: Vec<&str> = log.exchanges().iter().map(|one| one.request_id.as_str()).collect();
        assert_eq!((ids, log.head(), log.dropped()), (vec!["m1", "m2"], Some(head(3)), 0));
        assert!(log.is_settled("r1") && log.is_settled("r2"));
        assert!(!log.knows("r3"), "what had no answer may be tried again");
        assert!(log.exchange("m1").is_some_and(|one| one.answer().is_some()));
        // All of it is kept, and in a snapshot, too.
        log.trim(1);
        let json = serde_json::to_string(&log).unwrap();
        let revived = serde_json::from_str::<Checkpoint>(&json).unwrap().revived();
        assert_eq!((revived.exchanges().len(), revived.head()), (2, Some(head(3))));
    }

    #[test]
    fn an_answer_that_says_nothing_of_the_head_leaves_none() {
        let mut log = Checkpoint::default();
        log.apply(adopted(Vec::new(), 0)).unwrap();
        log.apply(accepted("r1")).unwrap();
        assert_eq!(log.head(), Some(head(0)), "it stands until the answer");
        log.apply(answered("r1")).unwrap();
        log.apply(Entry::Head { head: head(2) }).unwrap();
        assert_eq!(log.head(), Some(head(2)));
        log.apply(accepted("r2")).unwrap();
        log.apply(answered("r2")).unwrap();
        assert_eq!(log.head(), None);
        assert_eq!(
            log.apply(adopted(vec![taken("m", Vec::new()), taken("m", Vec::new())], 2)),
            Err(OutOfPlace)
        );
    }
}
