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
        let mut ended = self.take(newest.into_iter().rev(), &mut found);
        let mut from = self.from.clone();
        for page in 0..MOST_PAGES {
            if ended || !more {
                break;
            }
            let mut options = MessagesOptions::backward().from(from.as_deref());
            // Mostly there is little.
            options.limit = if page == 0 { uint!(20) } else { uint!(100) };
            let page = room.messages(options).await.map_err(|error| trouble::of(&error))?;
            let is_old = |event: &TimelineEvent| at(event) < self.oldest;
            let all_old = !page.chunk.is_empty() && page.chunk.iter().all(is_old);
            ended = self.take(page.chunk.into_iter(), &mut found) || all_old || page.end.is_none();
            from = page.end;
        }
        found.retain(|event| at(event) >= self.oldest);
        found.reverse();
        Ok(found)
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
        let Some(heard) = Heard::read(event.raw().json().get()) else { return false };
        // What was said before the account came in was not said to it.
        let came_in = matches!(&heard.what, What::Member { user, membership, before }
            if user == self.me && membership == "join" && before.as_deref() != Some("join"));
        came_in || self.stand == Some(heard.id.as_str())
    }
}

fn at(event: &TimelineEvent) -> i64 {
    Heard::read(event.raw().json().get()).map_or(0, |heard| heard.at)
}

/// What is older than this nobody expects an answer to any more.
pub(crate) const OLDEST: Duration = Duration::from_secs(86_400);
const MOST_PAGES: usize = 30;
