//! The words of running turns on a Redis, for every process of an installation.
//!
//! ```text
//! Outlet ─▶ RelayTap ─▶ a task: pieces of some 40 ms ─▶ sealed ─▶ Buffers::add        one round trip for each
//!                                                                     │
//! Session::follow ◀── opened ◀── Buffers::read ◀──────────────────────┘
//!
//! buffer = turn's key, sealed under the session's · entry 1 · entry 2 · …            entries: sealed under the turn's key
//! ```
//!
//! Whoever erases the session destroys the key that opens the first entry, and with it all others, wherever copies of them are. Who
//! begins a turn anew after a crash begins the buffer anew, under another key.
//!
//! Easy to get wrong: trusting it. It may be away, late or lost at any time; what a turn came to is in the log, and whoever follows
//! looks there as well.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, Suite, Tag, open, seal};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use zeroize::Zeroizing;

use super::wire;
use crate::engine::Engine;
use crate::error::OpenError;
use crate::ledger::session::{self, Session};
use crate::ledger::storage::RedisSettings;
use crate::ledger::web_scope::{Keep, keep};
use crate::store::redis::{Added, Buffers, Ear};
use crate::turn::{Outbound, Relay, RelayedTurn, Tap};

impl Engine {
    /// Lets the other processes on this Redis hear the turns of chats that run here, word by word, and hears theirs. Does not connect
    /// yet; what cannot be told is not.
    pub fn relay_turns(&self, redis: &RedisSettings) -> Result<(), OpenError> {
        let relay = Arc::new(BusRelay { buffers: Buffers::open(redis)? });
        let _first = self.inner().relay.set(relay);
        Ok(())
    }
}

/// Tells turns over a Redis.
#[derive(Debug)]
struct BusRelay {
    buffers: Arc<Buffers>,
}

impl Relay for BusRelay {
    fn tell(&self, turn: RelayedTurn) -> Box<dyn Tap> {
        let (pieces, receiver) = mpsc::unbounded_channel();
        let request_id = turn.request_id.clone();
        tokio::spawn(write(Arc::clone(&self.buffers), turn, receiver));
        Box::new(RelayTap { request_id, pieces })
    }

    fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }

    fn silence(&self, scope: Tag) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let removed = timeout(PATIENCE, self.buffers.remove(scope)).await;
            if !matches!(removed, Ok(Ok(()))) {
                tracing::debug!("sealed words of a turn could not be removed from Redis; they expire");
            }
        })
    }
}

/// Hears a turn, and passes it on to the task that writes its buffer.
struct RelayTap {
    request_id: String,
    pieces: mpsc::UnboundedSender<Piece>,
}

debug_without_content!(RelayTap);

/// A part of what a turn says.
enum Piece {
    Words(String),
    Event(Zeroizing<Vec<u8>>),
}

impl Tap for RelayTap {
    fn say(&self, event: &Outbound) {
        let piece = match event {
            Outbound::Delta { text, .. } => Some(Piece::Words(text.clone())),
            event => wire::event(&self.request_id, event).map(Piece::Event),
        };
        // Nobody is told any more: then nobody is.
        let _over = piece.map(|piece| self.pieces.send(piece));
    }
}

/// Adds what is told to the turn's buffer, until all of it is there or the buffer is somebody else's.
async fn write(buffers: Arc<Buffers>, turn: RelayedTurn, mut pieces: mpsc::UnboundedReceiver<Piece>) {
    let RelayedTurn { scope, key, request_id, silenced } = turn;
    let turn = Key::random();
    let first = seal(
        &key.derive(LABEL),
        SUITE,
        &context(&request_id, "key"),
        REVISION,
        turn.dangerously_expose_bytes(),
    );
    drop(key);
    let (first, mut behind) = (first.into_bytes(), 0_u64);
    let mut batch: Option<Entries> = Some(Vec::new());
    while let Some(entries) = batch {
        let sealed: Vec<Vec<u8>> = entries
            .iter()
            .zip(behind + 1..)
            .filter_map(|(entry, at)| sealed(&turn, &request_id, at, entry))
            .collect();
        // The same ones until they are there: what comes meanwhile waits, and goes together.
        loop {
            match buffers.add(scope, &first, behind, &sealed).await {
                Ok(Added::Done) => break,
                Ok(Added::NotOurs) => return silenced().await,
                // The turn is over, and its answer is in the log.
                Err(_) if pieces.is_closed() => return,
                Err(_) => sleep(AFTER_FAILURE).await,
            }
        }
        behind += sealed.len() as u64;
        batch = next(&request_id, &mut pieces).await;
    }
}

/// What goes into a buffer at once.
type Entries = Vec<Zeroizing<Vec<u8>>>;

/// What is told within a moment, with words that follow each other made one: nothing, if nothing was said for a while. `None` after the last.
async fn next(request_id: &str, pieces: &mut mpsc::UnboundedReceiver<Piece>) -> Option<Entries> {
    let mut piece = match timeout(BEAT, pieces.recv()).await {
        Ok(piece) => Some(piece?),
        Err(_) => return Some(Vec::new()),
    };
    let (until, mut entries, mut words) =
        (Instant::now() + TOGETHER, Vec::new(), Zeroizing::new(String::new()));
    let mut is_urgent = false;
    while let Some(now) = piece {
        match now {
            Piece::Words(more) => words.push_str(&more),
            Piece::Event(event) => {
                entries.extend(delta(request_id, &mut words));
                entries.push(event);
                // A step, or the end: nobody waits for what follows.
                is_urgent = true;
            }
        }
        piece = if is_urgent {
            pieces.try_recv().ok()
        } else {
            timeout_at(until, pieces.recv()).await.ok().flatten()
        };
    }
    entries.extend(delta(request_id, &mut words));
    Some(entries)
}

fn delta(request_id: &str, words: &mut Zeroizing<String>) -> Option<Zeroizing<Vec<u8>>> {
    let text = std::mem::take(&mut **words);
    let event = (!text.is_empty()).then_some(Outbound::Delta { seq: 0, text });
    event.and_then(|event| wire::event(request_id, &event))
}

/// An entry in its place.
fn sealed(turn: &Key, request_id: &str, at: u64, entry: &[u8]) -> Option<Vec<u8>> {
    let at = u32::try_from(at).ok()?;
    Some(seal(turn, SUITE, &context(request_id, "entry"), at, entry).into_bytes())
}

fn context<'a>(request_id: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "relay", owner: "", container: "", object: request_id, field }
}

impl Session {
    /// Follows a turn of this session that runs in any process, word by word from its beginning. `None` where this process cannot: it is
    /// not on a Redis with others, or the session is in one process's memory.
    #[must_use]
    pub fn follow(&self, request_id: &str) -> Option<Following> {
        let relay = self.inner.relay.get().filter(|_| keep(self.scope()) == Some(Keep::Stored))?;
        let buffers = relay.buffers();
        Some(Following {
            ear: buffers.ear(self.names.scope),
            buffers: Arc::clone(buffers),
            session: self.clone(),
            request_id: request_id.to_owned(),
            first: Vec::new(),
            turn: None,
            read: 0,
            heard: VecDeque::new(),
        })
    }

    /// Whether turns that are asked for here run in another process.
    #[must_use]
    pub fn runs_elsewhere(&self) -> bool {
        self.inner.gateway.get().is_some()
    }
}

/// What is heard of a turn that is followed.
#[derive(Debug)]
pub enum Followed {
    /// It begins, here or once more: what was heard before does not count.
    Begun,
    /// This came of it. Pieces of the answer are not numbered.
    Event(Outbound),
}

/// A turn that is followed.
pub struct Following {
    session: Session,
    request_id: String,
    buffers: Arc<Buffers>,
    ear: Ear,
    /// The first entry of the buffer, as it was last read.
    first: Vec<u8>,
    /// The turn's key, if that entry is of this turn and opens.
    turn: Option<Key>,
    /// How many entries behind it were read.
    read: u64,
    heard: VecDeque<Followed>,
}

debug_without_content!(Following { read });

impl Following {
    /// What comes next. Waits as long as nothing does; whoever stops waiting loses nothing.
    pub fn hear(&mut self) -> BoxFuture<'_, Followed> {
        Box::pin(async move {
            loop {
                if let Some(heard) = self.heard.pop_front() {
                    return heard;
                }
                // One that cannot be read now is looked at again.
                if !self.look().await.unwrap_or(false) {
                    self.ear.heard().await;
                }
            }
        })
    }

    /// Reads what was added; whether something was.
    async fn look(&mut self) -> Option<bool> {
        let (first, entries) = self.buffers.read(self.session.names.scope, self.read + 1).await.ok()??;
        if first != self.first {
            let turn = self.open_key(&first).await?;
            let is_ours = turn.is_some();
            (self.first, self.turn, self.read) = (first, turn, 0);
            if is_ours {
                self.heard.push_back(Followed::Begun);
            }
            return Some(is_ours);
        }
        let turn = self.turn.as_ref()?;
        let mut any = false;
        for entry in entries {
            let opened = open(turn, &context(&self.request_id, "entry"), &Sealed::from_bytes(entry)).ok();
            let opened = opened.filter(|opened| u64::from(opened.rev) == self.read + 1);
            let Some(opened) = opened else {
                // Nobody who has the key wrote this: nothing behind it counts either.
                self.turn = None;
                break;
            };
            self.read += 1;
            any = true;
            self.heard.extend(wire::read_event(&opened.data).map(Followed::Event));
        }
        Some(any)
    }

    /// The turn's key, if this is one of this turn; `None` if that cannot be told now.
    async fn open_key(&self, first: &[u8]) -> Option<Option<Key>> {
        let log = session::open(&self.session).await.ok()?;
        let Some((log, _)) = log else { return Some(None) };
        let (key, context) = (log.key().derive(LABEL), context(&self.request_id, "key"));
        let opened = open(&key, &context, &Sealed::from_bytes(first.to_vec())).ok();
        let bytes =
            opened.and_then(|opened| <[u8; 32]>::try_from(opened.data.as_slice()).ok().map(Zeroizing::new));
        Some(bytes.map(|bytes| Key::from_bytes(*bytes)))
    }
}

const LABEL: &str = "relay";
const SUITE: Suite = Suite::ChaCha20Poly1305;
const REVISION: u32 = 1;
/// Words that come within this go together.
const TOGETHER: Duration = Duration::from_millis(40);
/// How often it is looked whether a turn that says nothing is still to be told.
const BEAT: Duration = Duration::from_secs(2);
/// How long a removal may take: an erasure waits for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long after a failure it is tried again.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(said: Vec<Piece>) -> Vec<String> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        said.into_iter().for_each(|piece| sender.send(piece).unwrap());
        drop(sender);
        let mut heard = Vec::new();
        while let Some(entries) = next("t", &mut receiver).await {
            heard.extend(entries.iter().map(|entry| match wire::read_event(entry).unwrap() {
                Outbound::Delta { text, .. } => text,
                Outbound::Progress { text } => format!("[{text}]"),
                other => panic!("{other:?}"),
            }));
        }
        heard
    }

    #[tokio::test]
    async fn words_go_together_and_steps_stay_between_them() {
        let words = |text: &str| Piece::Words(text.to_owned());
        let step = || Piece::Event(wire::event("t", &Outbound::Progress { text: "step".into() }).unwrap());
        let said =
            vec![words("a "), words("b "), step(), words("c "), words("d "), step(), step(), words("e")];
        assert_eq!(all(said).await, ["a b ", "[step]", "c d ", "[step]", "[step]", "e"]);
        assert_eq!(all(Vec::new()).await, [""; 0]);
    }

    #[test]
    fn an_entry_opens_in_its_place_of_its_turn_only() {
        let turn = Key::random();
        let entry = sealed(&turn, "t1", 2, b"words").unwrap();
        let opens = |key: &Key, name: &str, field: &str| {
            open(key, &context(name, field), &Sealed::from_bytes(entry.clone())).map(|opened| opened.rev).ok()
        };
        assert_eq!(opens(&turn, "t1", "entry"), Some(2));
        assert_eq!(opens(&turn, "t2", "entry"), None);
        assert_eq!(opens(&turn, "t1", "key"), None);
        assert_eq!(opens(&Key::random(), "t1", "entry"), None);
        assert!(!entry.windows(5).any(|window| window == b"words"));
    }
}
