//! What is to be told to other gateways, until it is.
//!
//! ```text
//! push ─▶ queue ─▶ batch ─▶ said ─▶ settle        too many ─▶ only whose news are lost, or that some are
//! ```
//!
//! Nobody waits to push. What is said stays until the server has confirmed it, so that it can be said again on another
//! connection.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use confidant_chat_format::AccountId;
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::wire::Message;
use crate::service::AccountEvent;

/// What waits.
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

debug_without_content!(Outbox);

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Post>,
    bytes: usize,
    /// The number of the last message.
    number: u64,
    /// Whose news found no room.
    missed: HashSet<AccountId>,
    /// Whether there were too many of those.
    is_check_due: bool,
}

/// A message with its number.
#[derive(Clone)]
pub(super) struct Post {
    pub(super) number: u64,
    pub(super) text: Arc<str>,
}

debug_without_content!(Post { number });

impl Waiting {
    fn add(&mut self, text: String) -> u64 {
        self.number += 1;
        self.bytes += text.len();
        self.queue.push_back(Post { number: self.number, text: text.into() });
        self.number
    }

    fn miss(&mut self, account: &AccountId) {
        if self.missed.len() < ACCOUNTS {
            self.missed.insert(account.clone());
        } else {
            self.is_check_due = true;
        }
    }
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { waiting: Mutex::default(), wake: Notify::new() }
    }

    /// Something happened. Never waits.
    pub(super) fn push(&self, account: &AccountId, happened: &AccountEvent) {
        let text = Message::Happened(account.clone(), happened.clone()).write();
        let mut waiting = self.waiting.lock();
        let has_room = |text: &String| waiting.bytes + text.len() <= BYTES && waiting.queue.len() < MESSAGES;
        match text.filter(has_room) {
            Some(text) => drop(waiting.add(text)),
            None => waiting.miss(account),
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Says that this gateway is there; the message's number.
    pub(super) fn ping(&self) -> Option<u64> {
        let text = Message::Ping.write()?;
        Some(self.waiting.lock().add(text))
    }

    /// Waits until there is something to say.
    pub(super) async fn wait(&self) {
        while self.is_empty() {
            self.wake.notified().await;
        }
    }

    fn is_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.queue.is_empty() && waiting.missed.is_empty() && !waiting.is_check_due
    }

    /// The next messages, which stay here until they are settled.
    pub(super) fn batch(&self) -> Vec<Post> {
        let mut waiting = self.waiting.lock();
        for account in std::mem::take(&mut waiting.missed) {
            if let Some(text) = Message::Happened(account, AccountEvent::Missed).write() {
                waiting.add(text);
            }
        }
        if std::mem::take(&mut waiting.is_check_due)
            && let Some(text) = Message::Check.write()
        {
            waiting.add(text);
        }
        let mut bytes = 0;
        let fits = |post: &&Post| {
            bytes += post.text.len();
            bytes <= BATCH || bytes == post.text.len()
        };
        waiting.queue.iter().take_while(fits).take(BATCHED).cloned().collect()
    }

    /// Messages up to this number were said.
    pub(super) fn settle(&self, number: u64) {
        let mut waiting = self.waiting.lock();
        while waiting.queue.front().is_some_and(|post| post.number <= number)
            && let Some(post) = waiting.queue.pop_front()
        {
            waiting.bytes -= post.text.len();
        }
    }
}

/// What waits at most.
const BYTES: usize = 8 << 20;
const MESSAGES: usize = 8192;
/// Accounts whose lost news are remembered one by one.
const ACCOUNTS: usize = 4096;
/// What is said at once.
const BATCH: usize = 512 << 10;
const BATCHED: usize = 256;

#[cfg(test)]
mod tests {
    use confidant_chat_protocol::{DevicesChanged, LogoutReason, ServerEvent, ServerFrame};

    use super::*;
    use crate::service::SessionFilter;

    fn news(seq: u64) -> AccountEvent {
        let event = ServerEvent::DevicesChanged(DevicesChanged {});
        AccountEvent::Frames(vec![ServerFrame { re: None, seq: Some(seq), event }])
    }

    #[test]
    fn what_was_said_stays_until_it_is_settled() {
        let outbox = Outbox::new();
        let account = AccountId::random();
        assert!(outbox.is_empty());
        for seq in 1..=3 {
            outbox.push(&account, &news(seq));
        }
        let numbers = |posts: Vec<Post>| posts.iter().map(|post| post.number).collect::<Vec<_>>();
        assert_eq!(numbers(outbox.batch()), [1, 2, 3]);
        assert_eq!(numbers(outbox.batch()), [1, 2, 3]);
        outbox.settle(2);
        assert_eq!(outbox.ping(), Some(4));
        assert_eq!(numbers(outbox.batch()), [3, 4]);
        outbox.settle(4);
        assert!(outbox.is_empty() && outbox.waiting.lock().bytes == 0);
    }

    /// A burst, or a server that does not answer: what finds no room is not lost without a word.
    #[test]
    fn what_finds_no_room_becomes_a_word_about_it() {
        let outbox = Outbox::new();
        let (many, few) = (AccountId::random(), AccountId::random());
        for seq in 0..MESSAGES as u64 + 10 {
            outbox.push(&many, &news(seq));
        }
        let ended = AccountEvent::Ended { which: SessionFilter::All, reason: LogoutReason::Erased };
        outbox.push(&few, &ended);
        let mut texts = Vec::new();
        while !outbox.is_empty() {
            let batch = outbox.batch();
            outbox.settle(batch.last().unwrap().number);
            texts.extend(batch.into_iter().map(|post| post.text));
        }
        assert_eq!(texts.len(), MESSAGES + 2, "as many as fit, and one word for each account");
        for account in [&many, &few] {
            let missed = format!("missed {account}");
            assert_eq!(texts.iter().filter(|text| ***text == *missed).count(), 1);
        }
        for _ in 0..=MESSAGES {
            outbox.push(&few, &news(1));
        }
        for _ in 0..=ACCOUNTS {
            outbox.push(&AccountId::random(), &news(1));
        }
        let mut last = Vec::new();
        while !outbox.is_empty() {
            last = outbox.batch();
            outbox.settle(last.last().unwrap().number);
        }
        assert_eq!(&*last.last().unwrap().text, "check");
    }
}
