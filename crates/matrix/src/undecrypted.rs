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
    /// How many there were before it: what was said first is heard first.
    number: u64,
}

/// All of them, oldest first.
#[derive(Default)]
pub(crate) struct Undecrypted {
    waiting: VecDeque<Waiting>,
    seen: u64,
}

impl Undecrypted {
    /// Puts one aside.
    pub(crate) fn add(&mut self, room: OwnedRoomId, id: String, event: Raw<AnySyncTimelineEvent>) {
        if self.waiting.iter().any(|waiting| waiting.id == id) {
            return;
        }
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
            tracing::warn!("too many messages cannot be decrypted: the oldest was given up; hint: {HINT}");
        }
        let now = Instant::now();
        self.seen += 1;
        let (next, number) = (now + FIRST, self.seen);
        self.waiting.push_back(Waiting { room, id, event, since: now, next, wait: FIRST, number });
    }

    /// Whether a room has one.
    pub(crate) fn holds(&self, room: &str) -> bool {
        self.waiting.iter().any(|waiting| waiting.room == room)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those to be tried now: all of them if keys have come, else those whose time has.
    pub(crate) fn due(&mut self, keys_came: bool) -> Vec<Waiting> {
        let now = Instant::now();
        let (due, later) = self.waiting.drain(..).partition(|waiting| keys_came || waiting.next <= now);
        self.waiting = later;
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
        let at = self.waiting.partition_point(|other| other.number < waiting.number);
        self.waiting.insert(at, waiting);
        false
    }

    /// Everything that belongs to a room is of no use any more.
    pub(crate) fn left(&mut self, room: &str) {
        self.waiting.retain(|waiting| waiting.room != room);
    }
}

const HINT: &str = "its sender's client has not shared the key; they can send it again, and a recovery key (`confidant matrix recovery-key`) helps a new device";
const MOST: usize = 500;
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(1800);
