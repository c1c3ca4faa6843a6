//! Who has a connection, and who gives it up when there are too many.
//!
//! A connection costs a place before anybody knows whose it is, so whoever opens many and says nothing could have them all.
//! So a place is held firmly only while a request is being answered or a socket is open. When places run out, the connection that has waited
//! longest without saying anything makes room; one address has its share and no more; and a few places beyond the last are
//! kept for health, which then is all that they answer. What is easy to get wrong: behind a proxy on this machine everybody
//! has the same address, so that one has no share of its own.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub struct PlaceLimits {
    /// In all.
    pub most: usize,
    /// From one address; 0 for no limit.
    pub per_peer: usize,
    /// The longest that the head of a connection's first request is waited for.
    pub first_head: Duration,
}

/// Places beyond the last, for health.
const SPARE: usize = 32;

/// The places of a listener.
#[derive(Debug)]
pub(crate) struct Places {
    limits: PlaceLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    all: HashMap<u64, One>,
    by_peer: HashMap<IpAddr, usize>,
    /// Those that answer nothing now, in the order in which they make room: the silent ones first, the longest first.
    waiting: BTreeMap<(Spoke, u64), u64>,
}

/// Whether a connection has ever made a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spoke {
    Never,
    Before,
}

#[derive(Debug)]
struct One {
    peer: IpAddr,
    /// How many answers and sockets hold it firmly.
    at_work: usize,
    waits: Option<(Spoke, u64)>,
    evicted: Arc<Notify>,
}

/// A connection's place; let go of when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
    evicted: Arc<Notify>,
    spoke: AtomicBool,
    /// Whether it is one of those beyond the last.
    pub(crate) spare: bool,
}

/// A place while a request is being answered, or a socket is open.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Place>);

impl Places {
    pub(crate) fn new(limits: PlaceLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// A place for a new connection; `None` if there is none to be had.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Place>> {
        let peer = share_of(address);
        let mut taken = self.lock();
        let of_peer = taken.by_peer.get(&peer).copied().unwrap_or(0);
        let limited = self.limits.per_peer > 0 && !peer.is_loopback();
        if limited && of_peer >= self.limits.per_peer && !taken.evict(|one| one.peer == peer) {
            return None;
        }
        let mut spare = false;
        if taken.all.len() >= self.limits.most && !taken.evict(|_| true) {
            if taken.all.len() >= self.limits.most + SPARE {
                return None;
            }
            spare = true;
        }
        let (id, evicted) = (taken.ticket(), Arc::new(Notify::new()));
        taken.all.insert(id, One { peer, at_work: 0, waits: None, evicted: Arc::clone(&evicted) });
        *taken.by_peer.entry(peer).or_default() += 1;
        taken.wait(id, Spoke::Never);
        drop(taken);
        let places = Arc::clone(self);
        Some(Arc::new(Place { places, id, evicted, spoke: AtomicBool::new(false), spare }))
    }

    /// Has the connection end that has waited longest, as when the system has no more files to give; says whether one did.
    pub(crate) fn make_room(&self) -> bool {
        self.lock().evict(|_| true)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock()
    }
}

impl Place {
    /// A request has come.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.spoke.store(true, Ordering::Relaxed);
        self.places.lock().work(self.id);
        Busy(Arc::clone(self))
    }

    /// Resolves when the connection has to end: its place is another's, or it never said anything.
    pub(crate) async fn given_up(&self) {
        let silent = async {
            tokio::time::sleep(self.places.limits.first_head).await;
            if self.spoke.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.evicted.notified() => {}
            () = silent => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.id);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.places.lock().rest(self.0.id);
    }
}

impl Taken {
    fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn wait(&mut self, id: u64, spoke: Spoke) {
        let ticket = (spoke, self.ticket());
        if let Some(one) = self.all.get_mut(&id) {
            one.waits = Some(ticket);
            self.waiting.insert(ticket, id);
        }
    }

    fn work(&mut self, id: u64) {
        let Some(one) = self.all.get_mut(&id) else { return };
        one.at_work += 1;
        if let Some(ticket) = one.waits.take() {
            self.waiting.remove(&ticket);
        }
    }

    fn rest(&mut self, id: u64) {
        let Some(one) = self.all.get_mut(&id) else { return };
        one.at_work -= 1;
        if one.at_work == 0 {
            self.wait(id, Spoke::Before);
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(one) = self.all.remove(&id) else { return };
        if let Some(ticket) = one.waits {
            self.waiting.remove(&ticket);
        }
        if let Some(count) = self.by_peer.get_mut(&one.peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&one.peer);
            }
        }
    }

    /// Takes its place from the connection that has waited longest of those that are meant.
    fn evict(&mut self, is_meant: impl Fn(&One) -> bool) -> bool {
        let found = self.waiting.values().copied().find(|id| self.all.get(id).is_some_and(&is_meant));
        let Some(id) = found else { return false };
        if let Some(one) = self.all.get(&id) {
            one.evicted.notify_one();
        }
        self.remove(id);
        true
    }
}

/// Whose share an address is of: where one customer has a whole network, that.
fn share_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(most: usize, per_peer: usize) -> Arc<Places> {
        Places::new(PlaceLimits { most, per_peer, first_head: Duration::from_secs(10) })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("the tests write addresses")
    }

    fn has(places: &Places, place: &Place) -> bool {
        places.lock().all.contains_key(&place.id)
    }

    #[test]
    fn the_longest_silent_one_makes_room_and_nobody_who_is_answered_does() {
        let places = places(3, 0);
        let [a, b, c] = [1, 2, 3].map(|n| places.enter(ip(&format!("10.0.0.{n}"))).expect("there is room"));
        let busy = a.busy();
        drop(c.busy());
        // The second has never said anything; the third has, before.
        let d = places.enter(ip("10.0.0.4")).expect("the second makes room");
        assert_eq!([&a, &b, &c, &d].map(|one| has(&places, one)), [true, false, true, true]);
        let held = [d.busy(), c.busy()];
        let e = places.enter(ip("10.0.0.5")).expect("for health");
        assert!(e.spare && !d.spare);
        drop((busy, held));
        assert!(!places.enter(ip("10.0.0.6")).expect("the fifth makes room").spare);
        assert!(!has(&places, &e) && has(&places, &a));
    }

    #[test]
    fn a_place_that_is_held_twice_is_firm_until_both_are_done() {
        let places = places(1, 0);
        let socket = places.enter(ip("10.0.0.1")).expect("there is room");
        let (answer, kept) = (socket.busy(), socket.busy());
        drop(answer);
        assert!(places.enter(ip("10.0.0.2")).expect("for health").spare);
        assert!(has(&places, &socket));
        drop(kept);
        assert!(!places.enter(ip("10.0.0.3")).expect("the socket makes room").spare);
        assert!(!has(&places, &socket));
    }

    #[test]
    fn an_address_has_its_share_and_this_machine_has_no_limit() {
        let places = places(100, 2);
        let near: Vec<_> = (0..5).filter_map(|_| places.enter(ip("127.0.0.1"))).collect();
        assert_eq!(near.len(), 5);
        // A whole network counts as one.
        let far = ["2001:db8::1", "2001:db8::2"].map(|one| places.enter(ip(one)).expect("its share"));
        let busy = far[0].busy();
        let third = places.enter(ip("2001:db8::3")).expect("the second makes room");
        assert!(!has(&places, &far[1]));
        let firm = third.busy();
        assert!(places.enter(ip("2001:db8::4")).is_none());
        assert!(places.enter(ip("2001:db8:0:1::4")).is_some(), "another network");
        drop((busy, firm));
        drop((far, third, near));
        assert!(places.lock().all.is_empty() && places.lock().by_peer.is_empty());
        assert!(places.lock().waiting.is_empty());
    }
}
