//! What running turns say, kept for a while so that other processes can follow them. Sealed by the engine, under a key for each turn.
//!
//! ```text
//! vagent:relay:{NAME}          a list: the turn's sealed key, then its sealed words    goes some minutes after the last of them
//! vagent:relay:{NAME}:ears     who follows it: processes, by the name of their channel
//! vagent:relay:PROCESS         a channel: something was added to the buffer of this name
//! ```
//!
//! A session has one buffer, since its turns run one after the other: whoever begins a turn begins it anew, and whoever began it before finds at
//! the next addition that it is not theirs any more. Adding is one round trip, which wakes followers as well. A process follows over
//! one connection, however many turns it follows, and looks by itself from time to time: what is published may be lost.
//!
//! Easy to get wrong: adding twice. A call whose reply was lost is made again, so it says how many entries there are before it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use confidant_display::debug_without_content;
use confidant_seal::Tag;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::link::{For, Link};
use super::scripts::{BUFFER_ADD, BUFFER_READ};
use super::settings::RedisSettings;
use crate::{Result, random_id};

/// The buffers of running turns, on a Redis.
pub struct Buffers {
    link: Link,
    prefix: String,
    /// This process, among those that follow.
    id: String,
    ears: Mutex<Ears>,
}

debug_without_content!(Buffers);

#[derive(Default)]
struct Ears {
    /// Who waits for additions, by the buffer's name.
    waiting: HashMap<String, Weak<Notify>>,
    is_listening: bool,
}

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there.
    Done,
    /// The buffer was removed, or somebody else has begun it anew.
    NotOurs,
}

/// Hears when something is added to a buffer.
#[derive(Clone, Debug)]
pub struct Ear(Arc<Notify>);

impl Ear {
    /// Waits until something may have been added, or for a while.
    pub async fn heard(&self) {
        // In vain, or too late: the buffer is looked at all the same.
        let _late = timeout(LOOK, self.0.notified()).await;
    }
}

impl Buffers {
    /// Does not connect yet.
    pub fn open(settings: &RedisSettings) -> Result<Arc<Self>> {
        let link = Link::new(&settings.address, settings.ca.as_deref())?;
        let id = Tag::from_bytes(random_id()).to_string();
        Ok(Arc::new(Self { link, prefix: settings.prefix.clone(), id, ears: Mutex::default() }))
    }

    /// Adds entries to a buffer that begins with this one and has so many behind it; with none behind it, the buffer is begun.
    pub async fn add(&self, name: Tag, first: &[u8], behind: u64, entries: &[Vec<u8>]) -> Result<Added> {
        let mut call = BUFFER_ADD
            .call()
            .key(self.list(name))
            .key(self.followers(name))
            .arg(first)
            .number(behind)
            .number(LIVES.as_millis())
            .arg(self.channel(""))
            .arg(name.to_string());
        for entry in entries {
            call = call.arg(entry);
        }
        let added: u64 = self.link.call(call).await?;
        Ok(if added == 1 { Added::Done } else { Added::NotOurs })
    }

    /// The first entry of a buffer, and those from `from` on, where the first is 0; nothing if there is none. From now on this process
    /// is told of additions for a while.
    pub async fn read(&self, name: Tag, from: u64) -> Result<Option<(Vec<u8>, Vec<Vec<u8>>)>> {
        let call = BUFFER_READ
            .call()
            .key(self.list(name))
            .key(self.followers(name))
            .arg(&self.id)
            .number(FOLLOWS.as_millis())
            .number(from);
        let mut entries: Vec<Vec<u8>> = self.link.call(call).await?;
        Ok((!entries.is_empty()).then(|| (entries.remove(0), entries)))
    }

    /// Removes a buffer. Whoever adds to it finds out.
    pub async fn remove(&self, name: Tag) -> Result<()> {
        let mut cmd = redis::cmd("DEL");
        cmd.arg(self.list(name));
        self.link.run::<u64>(For::Writing, cmd).await.map(drop)
    }

    /// Hears of additions to a buffer, as long as it is read from time to time.
    pub fn ear(self: &Arc<Self>, name: Tag) -> Ear {
        let mut ears = self.ears.lock();
        if !std::mem::replace(&mut ears.is_listening, true) {
            tokio::spawn(listen(Arc::downgrade(self), self.channel(&self.id)));
        }
        ears.waiting.retain(|_, waiting| waiting.strong_count() > 0);
        let waiting = ears.waiting.entry(name.to_string()).or_default();
        let notify = waiting.upgrade().unwrap_or_default();
        *waiting = Arc::downgrade(&notify);
        Ear(notify)
    }

    fn wake(&self, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let waiting = self.ears.lock().waiting.get(&*name).and_then(Weak::upgrade);
        if let Some(waiting) = waiting {
            waiting.notify_waiters();
            // Whoever is just looking, and does not wait yet, looks once more.
            waiting.notify_one();
        }
    }

    // In braces, so that both are on one server of a Cluster.
    fn list(&self, name: Tag) -> String {
        format!("{}vagent:relay:{{{name}}}", self.prefix)
    }

    fn followers(&self, name: Tag) -> String {
        format!("{}vagent:relay:{{{name}}}:ears", self.prefix)
    }

    fn channel(&self, process: &str) -> String {
        format!("{}vagent:relay:{process}", self.prefix)
    }
}

/// Wakes whoever waits, for as long as there are buffers.
async fn listen(buffers: Weak<Buffers>, channel: String) {
    let mut pause = SHORTEST_PAUSE;
    while let Some(held) = buffers.upgrade() {
        let subscription = held.link.subscribe(&channel).await;
        drop(held);
        if let Ok(subscription) = subscription {
            pause = SHORTEST_PAUSE;
            hand_on(&buffers, subscription).await;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Wakes until the connection breaks.
async fn hand_on(buffers: &Weak<Buffers>, (mut sink, mut stream): (PubSubSink, PubSubStream)) {
    let mut pings = tokio::time::interval(PING);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = stream.next() => {
                let (Some(message), Some(buffers)) = (message, buffers.upgrade()) else { return };
                buffers.wake(message.get_payload_bytes());
            }
            // A connection that was cut without a word looks like one on which nobody speaks.
            _ = pings.tick() => {
                let pong = timeout(ANSWER, sink.ping::<redis::Value>()).await;
                if !matches!(pong, Ok(Ok(_))) || buffers.strong_count() == 0 {
                    return;
                }
            }
        }
    }
}

/// How long a buffer stays after the last addition.
const LIVES: Duration = Duration::from_secs(600);
/// How long a process is told of additions after it last looked.
const FOLLOWS: Duration = Duration::from_secs(60);
/// How long a follower waits before it looks by itself.
const LOOK: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(3);
const PING: Duration = Duration::from_secs(4);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::super::tests::settings;
    use super::*;

    const NAME: Tag = Tag::from_bytes([7; 16]);

    fn buffers() -> Option<[Arc<Buffers>; 2]> {
        let settings = settings("CONFIDANT_TEST_REDIS")?;
        let open = || Buffers::open(&settings).unwrap();
        Some([open(), open()])
    }

    fn entries(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[tokio::test]
    async fn what_one_process_adds_another_reads_once_and_in_order() {
        let Some([here, there]) = buffers() else { return };
        assert_eq!(there.read(NAME, 1).await.unwrap(), None);
        assert_eq!(here.add(NAME, b"first", 0, &[]).await.unwrap(), Added::Done);
        assert_eq!(here.add(NAME, b"first", 0, &entries(&["a", "b"])).await.unwrap(), Added::Done);
        // Made again, since its reply was lost.
        assert_eq!(here.add(NAME, b"first", 0, &entries(&["a", "b"])).await.unwrap(), Added::Done);
        assert_eq!(here.add(NAME, b"first", 2, &entries(&["c"])).await.unwrap(), Added::Done);
        let read = there.read(NAME, 1).await.unwrap();
        assert_eq!(read, Some((b"first".to_vec(), entries(&["a", "b", "c"]))));
        assert_eq!(there.read(NAME, 3).await.unwrap(), Some((b"first".to_vec(), entries(&["c"]))));
        assert_eq!(there.read(NAME, 4).await.unwrap(), Some((b"first".to_vec(), Vec::new())));
        for key in [here.list(NAME), here.followers(NAME)] {
            let mut cmd = redis::cmd("PTTL");
            cmd.arg(&key);
            let left: i64 = here.link.run(For::Reading, cmd).await.unwrap();
            assert!((1..=600_000).contains(&left), "{key}: {left}");
        }
    }

    #[tokio::test]
    async fn whoever_begins_anew_has_it_and_what_was_removed_stays_so() {
        let Some([here, there]) = buffers() else { return };
        here.add(NAME, b"one", 0, &entries(&["a"])).await.unwrap();
        assert_eq!(there.add(NAME, b"two", 0, &entries(&["x"])).await.unwrap(), Added::Done);
        assert_eq!(here.add(NAME, b"one", 1, &entries(&["b"])).await.unwrap(), Added::NotOurs);
        assert_eq!(here.read(NAME, 1).await.unwrap(), Some((b"two".to_vec(), entries(&["x"]))));
        here.remove(NAME).await.unwrap();
        assert_eq!(there.add(NAME, b"two", 1, &entries(&["y"])).await.unwrap(), Added::NotOurs);
        assert_eq!(here.read(NAME, 1).await.unwrap(), None);
    }

    #[tokio::test]
    async fn followers_are_woken_over_one_connection() {
        let Some([here, there]) = buffers() else { return };
        let other = Tag::from_bytes([8; 16]);
        let (ear, far) = (there.ear(NAME), there.ear(other));
        let counts = async |channel: &str| -> u64 {
            let mut cmd = redis::cmd("PUBSUB");
            cmd.arg("NUMSUB").arg(channel);
            here.link.run::<(String, u64)>(For::Reading, cmd).await.unwrap().1
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while counts(&there.channel(&there.id)).await != 1 {
            assert!(Instant::now() < deadline, "nobody listens");
            sleep(Duration::from_millis(10)).await;
        }
        there.read(NAME, 1).await.unwrap();
        there.read(other, 1).await.unwrap();
        here.add(NAME, b"one", 0, &entries(&["a"])).await.unwrap();
        timeout(Duration::from_secs(60), ear.0.notified()).await.expect("it was woken");
        here.add(other, b"one", 0, &entries(&["a"])).await.unwrap();
        timeout(Duration::from_secs(60), far.0.notified()).await.expect("it was woken");
        assert_eq!(counts(&there.channel(&there.id)).await, 1);
    }
}
