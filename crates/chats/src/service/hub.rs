//! The sockets of an account in this process, and what they are told.
//!
//! ```text
//! a change ─▶ publish ─┬─▶ room of the account ─▶ a bounded queue per socket ─▶ Socket::news
//!                      └─▶ News: other gateways, which hand it to Service::hear
//! ```
//!
//! - Whoever changes an account holds the room's turn from the write to the publishing, so that news come in the order of `seq`.
//! - A socket that does not keep up is dropped from the room: its queue ends, it is closed, and its device syncs anew.
//! - A socket whose session ends is told why, once, and hears nothing afterwards.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_chat_protocol::{LogoutReason, ServerFrame};
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Hears of every change that this process made.
pub trait News: Send + Sync + std::fmt::Debug {
    /// Something happened to an account. Does not wait: it is called while others wait for their turn.
    fn happened(&self, account: &AccountId, happened: &Happened);
}

/// What happened, for an account's sockets.
#[derive(Clone, Debug)]
pub enum Happened {
    /// These frames are news.
    Frames(Vec<ServerFrame>),
    /// Sessions ended.
    Ended {
        /// Which.
        which: Which,
        /// Why.
        reason: LogoutReason,
    },
}

/// Which sessions of an account.
#[derive(Clone, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// All but the one with this hash of its id.
    AllBut(Digest),
    /// The one with this hash of its id.
    Session(Digest),
    /// Those of a device.
    Device(DeviceId),
}

debug_without_content!(Which(..));

impl Which {
    fn is(&self, member: &Member) -> bool {
        match self {
            Self::All => true,
            Self::AllBut(session) => member.session != *session,
            Self::Session(session) => member.session == *session,
            Self::Device(device) => member.device == *device,
        }
    }
}

/// Every room.
#[derive(Debug)]
pub(crate) struct Hub {
    rooms: Mutex<HashMap<AccountId, Arc<Room>>>,
    next: AtomicU64,
    others: Option<Arc<dyn News>>,
}

/// An account's sockets.
#[derive(Debug, Default)]
pub(crate) struct Room {
    turn: tokio::sync::Mutex<()>,
    members: Mutex<Vec<Member>>,
}

#[derive(Debug)]
struct Member {
    number: u64,
    session: Digest,
    device: DeviceId,
    queue: mpsc::Sender<Arc<ServerFrame>>,
    ended: Arc<OnceLock<LogoutReason>>,
}

/// A socket's place in its room; left when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) number: u64,
    /// Ends when the socket does not keep up, or its session is over.
    pub(crate) queue: mpsc::Receiver<Arc<ServerFrame>>,
    ended: Arc<OnceLock<LogoutReason>>,
    room: Arc<Room>,
}

impl Seat {
    /// Why the session ended, if it has.
    pub(crate) fn ended(&self) -> Option<LogoutReason> {
        self.ended.get().copied()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.members.lock().retain(|member| member.number != self.number);
    }
}

impl Room {
    /// Waits until nobody else of this process changes the account.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl Hub {
    pub(crate) fn new(others: Option<Arc<dyn News>>) -> Self {
        Self { rooms: Mutex::default(), next: AtomicU64::new(1), others }
    }

    pub(crate) fn room(&self, account: &AccountId) -> Arc<Room> {
        Arc::clone(self.rooms.lock().entry(account.clone()).or_default())
    }

    /// A place for a socket; `None` if the account has too many of them.
    pub(crate) fn join(&self, account: &AccountId, session: Digest, device: &DeviceId) -> Option<Seat> {
        let room = self.room(account);
        let mut members = room.members.lock();
        if members.len() >= SOCKETS {
            return None;
        }
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (number, ended) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(OnceLock::new()));
        let member = Member { number, session, device: device.clone(), queue, ended: Arc::clone(&ended) };
        members.push(member);
        drop(members);
        Some(Seat { number, queue: receiver, ended, room })
    }

    /// Tells every socket but one.
    pub(crate) fn publish(&self, account: &AccountId, except: Option<u64>, frames: Vec<ServerFrame>) {
        let happened = Happened::Frames(frames);
        if let Some(others) = &self.others {
            others.happened(account, &happened);
        }
        self.tell(account, except, &happened);
    }

    /// Ends sockets.
    pub(crate) fn end(&self, account: &AccountId, which: &Which, reason: LogoutReason) {
        let happened = Happened::Ended { which: which.clone(), reason };
        if let Some(others) = &self.others {
            others.happened(account, &happened);
        }
        self.tell(account, None, &happened);
    }

    /// Tells one socket of this process. `false`: it is gone, or does not keep up and goes.
    pub(crate) fn send(&self, account: &AccountId, number: u64, frame: &Arc<ServerFrame>) -> bool {
        let Some(room) = self.rooms.lock().get(account).cloned() else { return false };
        let mut members = room.members.lock();
        let Some(at) = members.iter().position(|member| member.number == number) else { return false };
        let sent = members[at].queue.try_send(Arc::clone(frame)).is_ok();
        if !sent {
            members.swap_remove(at);
        }
        sent
    }

    /// Tells the sockets of this process what another one did.
    pub(crate) fn hear(&self, account: &AccountId, happened: &Happened) {
        self.tell(account, None, happened);
    }

    fn tell(&self, account: &AccountId, except: Option<u64>, happened: &Happened) {
        let Some(room) = self.rooms.lock().get(account).cloned() else { return };
        let mut members = room.members.lock();
        match happened {
            Happened::Frames(frames) => {
                for frame in frames {
                    let frame = Arc::new(frame.clone());
                    members.retain(|member| {
                        Some(member.number) == except || member.queue.try_send(Arc::clone(&frame)).is_ok()
                    });
                }
            }
            Happened::Ended { which, reason } => members.retain(|member| {
                let ends = which.is(member);
                if ends {
                    // Set once: the first reason is the one.
                    let _set = member.ended.set(*reason);
                }
                !ends
            }),
        }
    }

    /// Whether anybody but this socket would hear of a change.
    pub(crate) fn has_others(&self, account: &AccountId, number: Option<u64>) -> bool {
        let room = self.rooms.lock().get(account).cloned();
        let here = room.is_some_and(|room| room.members.lock().iter().any(|one| Some(one.number) != number));
        here || self.others.is_some()
    }

    /// How many sockets there are.
    pub(crate) fn count(&self) -> u64 {
        self.rooms.lock().values().map(|room| room.members.lock().len() as u64).sum()
    }

    /// The sessions that have sockets here. Empty rooms go.
    pub(crate) fn sessions(&self) -> Vec<(AccountId, Digest)> {
        let mut rooms = self.rooms.lock();
        // Whoever has a seat or waits for a turn holds the room as well.
        rooms.retain(|_, room| Arc::strong_count(room) > 1);
        let mut sessions: Vec<(AccountId, Digest)> = Vec::new();
        for (account, room) in rooms.iter() {
            sessions.extend(room.members.lock().iter().map(|member| (account.clone(), member.session)));
        }
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }
}

/// Sockets of one account.
const SOCKETS: usize = 64;
/// News that wait for one socket.
const QUEUE: usize = 256;
