//! What was said while nobody listened: a room is read back to its last stored event, or to where the account came in.

use std::time::Duration;

use confidant_channel::Trouble;
use matrix_sdk::Room;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::room::MessagesOptions;
use matrix_sdk::ruma::uint;

use crate::heard::{Heard, What};
use crate::trouble;

/// Where reading back begins and ends.
pub(crate) struct Gap<'a> {
    pub(crate) me: &'a str,
    /// The last stored event; none in a room that is new.
    pub(crate) stand: Option<&'a str>,
    /// Where to read on from; from the newest if missing.
    pub(crate) from: Option<String>,
    /// The oldest that anybody still expects an answer to, in milliseconds.
    pub(crate) oldest: i64,
}

impl Gap<'_> {
    /// The events after the end, oldest first, of which `newest` are known already; `more` says whether there is more
    /// between these and the end.
    pub(crate) async fn read(
        &self,
        room: &Room,
        newest: Vec<TimelineEvent>,
        more: bool,
    ) -> Result<Vec<TimelineEvent>, Trouble> {
        let mut found = Vec::new();
        let mut ended = self.take(newest.into_iter().rev(), &mut found) || !more;
        let mut from = self.from.clone();
        for page in 0..MOST_PAGES {
            if ended {
                break;
            }
            let mut options = MessagesOptions::backward().from(from.as_deref());
            // Mostly there is little.
            options.limit = if page == 0 { uint!(20) } else { uint!(100) };
            let page = room.messages(options).await.map_err(|error| trouble::of_message(&error))?;
            // Where nothing is stored, nothing can have been changed.
            let all_old = self.stand.is_none()
                && !page.chunk.is_empty()
                && page.chunk.iter().all(|event| read(event).is_none_or(|heard| heard.at < self.oldest));
            ended = self.take(page.chunk.into_iter(), &mut found) || all_old || page.end.is_none();
            from = page.end;
        }
        if !ended {
            tracing::warn!(
                events = found.len(),
                "a room has more missed messages than are read; older ones are not answered, and older edits \
                 are ignored"
            );
        }
        found.retain(|event| read(event).is_some_and(|heard| self.is_wanted(&heard)));
        found.reverse();
        Ok(found)
    }

    /// Whether an event still matters: nobody expects an answer to what is old, but what was changed or taken back long ago
    /// is changed or taken back.
    fn is_wanted(&self, heard: &Heard) -> bool {
        heard.at >= self.oldest || matches!(heard.what, What::Edit { .. } | What::Redaction { .. })
    }

    /// Takes events, newest first, up to the end; says whether it was met.
    fn take(&self, events: impl Iterator<Item = TimelineEvent>, found: &mut Vec<TimelineEvent>) -> bool {
        for event in events {
            if self.is_end(&event) {
                return true;
            }
            found.push(event);
        }
        false
    }

    fn is_end(&self, event: &TimelineEvent) -> bool {
        let Some(heard) = read(event) else { return false };
        // What was said before the account came in was not said to it.
        let came_in = matches!(&heard.what, What::Member { user, membership, before }
            if user == self.me && membership == "join" && before.as_deref() != Some("join"));
        came_in || self.stand == Some(heard.id.as_str())
    }
}

fn read(event: &TimelineEvent) -> Option<Heard> {
    Heard::read(event.raw().json().get())
}

/// What is older than this nobody expects an answer to any more.
pub(crate) const OLDEST: Duration = Duration::from_secs(86_400);
const MOST_PAGES: usize = 30;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_what_wants_an_answer_grows_too_old() {
        let gap = Gap { me: "@bot:x", stand: Some("$0"), from: None, oldest: 1000 };
        let wanted = |kind: &str, at: i64, content: Value| {
            let event = json!({ "event_id": "$1", "sender": "@a:x", "type": kind, "origin_server_ts": at, "content": content });
            gap.is_wanted(&Heard::read(&event.to_string()).unwrap())
        };
        let said = json!({ "msgtype": "m.text", "body": "hello" });
        let mut edit = said.clone();
        edit["m.new_content"] = said.clone();
        edit["m.relates_to"] = json!({ "rel_type": "m.replace", "event_id": "$0" });
        let sign = json!({ "m.relates_to": { "rel_type": "m.annotation", "event_id": "$0", "key": "👍" } });
        assert!(wanted("m.room.message", 1000, said.clone()) && !wanted("m.room.message", 999, said));
        assert!(!wanted("m.reaction", 999, sign), "it would decide something");
        assert!(!wanted("m.room.encrypted", 999, json!({})), "it may want an answer");
        assert!(wanted("m.room.message", 1, edit));
        assert!(wanted("m.room.redaction", 1, json!({ "redacts": "$0" })));
    }
}
