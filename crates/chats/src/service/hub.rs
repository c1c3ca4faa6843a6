//! The sockets of an account in this process, and what they are told.
//!
//! ```text
//! a change ─▶ publish ─┬─▶ room of the account ─▶ order ─▶ a bounded queue per socket ─▶ Socket::news
//!                      │         ▲
//!                      └─▶ News: other gateways, which hand it to Service::hear
//! ```
//!
//! - Whoever changes an account holds the room's turn from the write to the publishing, so that news come in the order of `seq`.
//!   Where there are other gateways, news that come early wait for those before them, and what does not come is looked for.
//! - A socket that does not keep up is dropped from the room: its queue ends, it is closed, and its device syncs anew. So are
//!   all sockets of an account whose news were lost.
//! - A socket whose session ends is told why, once, and hears nothing afterwards.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_chat_protocol::{LogoutReason, ServerFrame};
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::order::Order;

/// Hears of every change that this process made.
pub(crate) type TellOthers = Arc<dyn Fn(&AccountId, &AccountEvent) + Send + Sync>;

/// Looks for changes of other gateways that have not arrived.
pub(crate) trait GapFiller: Send + Sync {
    /// Looks after what is missing in a room until nothing is.
    fn fill_gaps(self: Arc<Self>, account: AccountId, room: Arc<Room>);
}

/// Something that an account's sockets hear of.
#[derive(Clone, Debug)]
pub enum AccountEvent {
    /// These frames are news.
    Frames(Vec<ServerFrame>),
    /// Sessions ended.
    Ended {
        /// Which.
        which: SessionFilter,
        /// Why.
        reason: LogoutReason,
    },
    /// News were lost: the account's sockets are closed, and their devices come again and sync.
    Missed,
}

/// Which sessions of an account.
#[derive(Clone, PartialEq, Eq)]
pub enum SessionFilter {
    /// All.
    All,
    /// All but the one with this hash of its id.
    AllBut(Digest),
    /// The one with this hash of its id.
    Session(Digest),
    /// Those of a device.
    Device(DeviceId),
}

debug_without_content!(SessionFilter(..));

impl SessionFilter {
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
pub(crate) struct Hub {
    rooms: Mutex<HashMap<AccountId, Arc<Room>>>,
    next: AtomicU64,
    others: Option<TellOthers>,
    service: Weak<dyn GapFiller>,
}

debug_without_content!(Hub);

/// An account's sockets.
#[derive(Debug, Default)]
pub(crate) struct Room {
    turn: tokio::sync::Mutex<()>,
    seated: Mutex<Seated>,
}

#[derive(Debug, Default)]
struct Seated {
    members: Vec<Member>,
    /// Used where there are other gateways: alone, the turn is order enough.
    order: Order<OutgoingFrame>,
}

/// A frame, and the socket that does not get it.
#[derive(Debug)]
struct OutgoingFrame {
    frame: Arc<ServerFrame>,
    except: Option<u64>,
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
        self.room.seated.lock().members.retain(|member| member.number != self.number);
    }
}

impl Seated {
    fn deliver(&mut self, told: Vec<OutgoingFrame>) {
        for OutgoingFrame { frame, except } in told {
            self.members.retain(|member| {
                Some(member.number) == except || member.queue.try_send(Arc::clone(&frame)).is_ok()
            });
        }
    }

    /// Everybody comes again and syncs.
    fn dismiss(&mut self) {
        self.members.clear();
        self.order = Order::default();
    }
}

impl Room {
    /// Waits until nobody else of this process changes the account.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Tells a change in its place, among those of other gateways.
    pub(crate) fn tell_in_order(&self, seq: u64, frame: Arc<ServerFrame>, except: Option<u64>) {
        let mut seated = self.seated.lock();
        if seated.members.is_empty() {
            return seated.dismiss();
        }
        let told = seated.order.take(seq, OutgoingFrame { frame, except });
        seated.deliver(told);
        if seated.order.count() > HELD {
            seated.dismiss();
        }
    }

    /// What is missing; if nothing is, nobody looks after it any more.
    pub(crate) fn missing(&self) -> Option<(u64, u64)> {
        let mut seated = self.seated.lock();
        let missing = if seated.members.is_empty() { None } else { seated.order.missing() };
        seated.order.is_tended = missing.is_some();
        missing
    }

    /// Closes every socket: their devices come again and sync.
    pub(crate) fn dismiss(&self) {
        self.seated.lock().dismiss();
    }

    /// Whether something is missing that nobody looks after. The caller does from now on.
    fn must_fill_gaps(&self) -> bool {
        let order = &mut self.seated.lock().order;
        let must = order.missing().is_some() && !order.is_tended;
        order.is_tended |= must;
        must
    }
}

impl Hub {
    pub(crate) fn new(others: Option<TellOthers>, service: Weak<dyn GapFiller>) -> Self {
        Self { rooms: Mutex::default(), next: AtomicU64::new(1), others, service }
    }

    pub(crate) fn room(&self, account: &AccountId) -> Arc<Room> {
        Arc::clone(self.rooms.lock().entry(account.clone()).or_default())
    }

    /// A place for a socket; `None` if the account has too many of them.
    pub(crate) fn join(&self, account: &AccountId, session: Digest, device: &DeviceId) -> Option<Seat> {
        let room = self.room(account);
        let mut seated = room.seated.lock();
        if seated.members.len() >= SOCKETS {
            return None;
        }
        if seated.members.is_empty() {
            // While nobody was there, nobody kept count.
            seated.dismiss();
        }
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (number, ended) = (self.next.fetch_add(1, Ordering::Relaxed), Arc::new(OnceLock::new()));
        let member = Member { number, session, device: device.clone(), queue, ended: Arc::clone(&ended) };
        seated.members.push(member);
        drop(seated);
        Some(Seat { number, queue: receiver, ended, room })
    }

    /// A socket that has joined will load everything up to this change.
    pub(crate) fn begin(&self, account: &AccountId, seat: &Seat, seq: u64) {
        if self.others.is_some() {
            let mut seated = seat.room.seated.lock();
            let told = seated.order.begin(seq);
            seated.deliver(told);
            drop(seated);
            self.fill_gaps(account, &seat.room);
        }
    }

    /// Tells every socket but one.
    pub(crate) fn publish(&self, account: &AccountId, except: Option<u64>, frames: Vec<ServerFrame>) {
        let happened = AccountEvent::Frames(frames);
        if let Some(others) = &self.others {
            others(account, &happened);
        }
        self.tell(account, except, &happened);
    }

    /// Ends sockets.
    pub(crate) fn end(&self, account: &AccountId, which: &SessionFilter, reason: LogoutReason) {
        let happened = AccountEvent::Ended { which: which.clone(), reason };
        if let Some(others) = &self.others {
            others(account, &happened);
        }
        self.tell(account, None, &happened);
    }

    /// Tells one socket of this process. `false`: it is gone, or does not keep up and goes.
    pub(crate) fn send(&self, account: &AccountId, number: u64, frame: &Arc<ServerFrame>) -> bool {
        let Some(room) = self.rooms.lock().get(account).cloned() else { return false };
        let members = &mut room.seated.lock().members;
        let Some(at) = members.iter().position(|member| member.number == number) else { return false };
        let sent = members[at].queue.try_send(Arc::clone(frame)).is_ok();
        if !sent {
            members.swap_remove(at);
        }
        sent
    }

    /// Whether this socket of this process is still there.
    pub(crate) fn is_seated(&self, account: &AccountId, number: u64) -> bool {
        let room = self.rooms.lock().get(account).cloned();
        room.is_some_and(|room| room.seated.lock().members.iter().any(|member| member.number == number))
    }

    /// Whether this socket of this process is still there, and of this session.
    pub(crate) fn is_of(&self, account: &AccountId, session: Digest, number: u64) -> bool {
        let room = self.rooms.lock().get(account).cloned();
        let is_it = |member: &Member| member.number == number && member.session == session;
        room.is_some_and(|room| room.seated.lock().members.iter().any(is_it))
    }

    /// Tells the sockets of this process what another one did.
    pub(crate) fn hear(&self, account: &AccountId, happened: &AccountEvent) {
        self.tell(account, None, happened);
    }

    fn tell(&self, account: &AccountId, except: Option<u64>, happened: &AccountEvent) {
        let Some(room) = self.rooms.lock().get(account).cloned() else { return };
        match happened {
            AccountEvent::Frames(frames) => {
                for frame in frames {
                    let (seq, frame) = (frame.seq, Arc::new(frame.clone()));
                    match seq.filter(|_| self.others.is_some()) {
                        Some(seq) => room.tell_in_order(seq, frame, except),
                        None => room.seated.lock().deliver(vec![OutgoingFrame { frame, except }]),
                    }
                }
                self.fill_gaps(account, &room);
            }
            AccountEvent::Ended { which, reason } => room.seated.lock().members.retain(|member| {
                let ends = which.is(member);
                if ends {
                    // Set once: the first reason is the one.
                    let _set = member.ended.set(*reason);
                }
                !ends
            }),
            AccountEvent::Missed => room.dismiss(),
        }
    }

    /// There are changes up to this one. What the account's sockets have not heard by now is looked for.
    pub(crate) fn expect(&self, account: &AccountId, seq: u64) {
        let Some(room) = self.rooms.lock().get(account).cloned() else { return };
        room.seated.lock().order.expect(seq);
        self.fill_gaps(account, &room);
    }

    /// Has somebody look after what is missing, if anything is.
    fn fill_gaps(&self, account: &AccountId, room: &Arc<Room>) {
        if self.others.is_some()
            && room.must_fill_gaps()
            && let Some(service) = self.service.upgrade()
        {
            service.fill_gaps(account.clone(), Arc::clone(room));
        }
    }

    /// Whether anybody but this socket would hear of a change.
    pub(crate) fn has_others(&self, account: &AccountId, number: Option<u64>) -> bool {
        let room = self.rooms.lock().get(account).cloned();
        let here =
            room.is_some_and(|room| room.seated.lock().members.iter().any(|one| Some(one.number) != number));
        here || self.others.is_some()
    }

    /// How many sockets there are.
    pub(crate) fn count(&self) -> u64 {
        self.rooms.lock().values().map(|room| room.seated.lock().members.len() as u64).sum()
    }

    /// The sessions that have sockets here. Empty rooms go.
    pub(crate) fn sessions(&self) -> Vec<(AccountId, Digest)> {
        let mut rooms = self.rooms.lock();
        // Whoever has a seat or waits for a turn holds the room as well.
        rooms.retain(|_, room| Arc::strong_count(room) > 1);
        let mut sessions: Vec<(AccountId, Digest)> = Vec::new();
        for (account, room) in rooms.iter() {
            let seated = room.seated.lock();
            sessions.extend(seated.members.iter().map(|member| (account.clone(), member.session)));
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
/// News of one account that wait for those before them.
const HELD: usize = 1024;
