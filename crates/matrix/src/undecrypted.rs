//! Messages that cannot be decrypted yet. Their keys may come later, from their sender or from the backup, so they are tried
//! again for a while. Until then their room's cursor stays before them: a new start reads them once more.

use std::collections::VecDeque;
use std::time::Duration;

use matrix_sdk::ruma::OwnedRoomId;
use matrix_sdk::ruma::events::AnySyncTimelineEvent;
use matrix_sdk::ruma::serde::Raw;
use tokio::time::Instant;

/// One of them.
pub(crate) struct Waiting {
    pub(crate) room: OwnedRoomId,
    pub(crate) id: String,
    pub(crate) event: Raw<AnySyncTimelineEvent>,
    since: Instant,
    next: Instant,
    wait: Duration,
}

/// All of them, oldest first.
#[derive(Default)]
pub(crate) struct Undecrypted(VecDeque<Waiting>);

impl Undecrypted {
    /// Puts one aside.
    pub(crate) fn add(&mut self, room: OwnedRoomId, id: String, event: Raw<AnySyncTimelineEvent>) {
        if self.0.iter().any(|waiting| waiting.id == id) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.pop_front();
            tracing::warn!("too many messages cannot be decrypted: the oldest was given up; hint: {HINT}");
        }
        let now = Instant::now();
        self.0.push_back(Waiting { room, id, event, since: now, next: now + FIRST, wait: FIRST });
    }

    /// Whether a room has one.
    pub(crate) fn holds(&self, room: &str) -> bool {
        self.0.iter().any(|waiting| waiting.room == room)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those to be tried now: all of them if keys have come, else those whose time has.
    pub(crate) fn due(&mut self, keys_came: bool) -> Vec<Waiting> {
        let now = Instant::now();
        let (due, later) = self.0.drain(..).partition(|waiting| keys_came || waiting.next <= now);
        self.0 = later;
        Vec::from_iter::<VecDeque<Waiting>>(due)
    }

    /// Puts one back that still does not decrypt; says whether it was given up instead.
    pub(crate) fn again(&mut self, mut waiting: Waiting) -> bool {
        let now = Instant::now();
        if now.duration_since(waiting.since) > PATIENCE {
            tracing::warn!("a message could not be decrypted and was given up; hint: {HINT}");
            return true;
        }
        waiting.wait = (waiting.wait * 2).min(LONGEST);
        waiting.next = now + waiting.wait;
        self.0.push_back(waiting);
        false
    }

    /// Everything that belongs to a room is of no use any more.
    pub(crate) fn left(&mut self, room: &str) {
        self.0.retain(|waiting| waiting.room != room);
    }
}

const HINT: &str = "its sender's client has not shared the key; they can send it again, and a recovery key (`confidant matrix recovery-key`) helps a new device";
const MOST: usize = 500;
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(1800);
