//! Cancelling a turn, at any point, from any surface.
//!
//! A turn that is cancelled drops what it waits for (the model, a tool, its place in the session's order) and is then
//! closed in the log like any other that has no answer. Writing to the log itself is never cut short.
//!
//! Easy to get wrong: a way around the score of harm. Whoever cancels each turn before the small model has spoken would never be
//! scored, so a turn of a conversation goes on until then, without a word to anybody; its harm is closed with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use confidant_seal::Tag;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::Error;

/// The turns of a process that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Cancels(Arc<Mutex<HashMap<Key, Vec<Sender>>>>);

/// A turn: its session, and its own name.
type Key = (Option<Tag>, String);

/// Tells a turn that it is to end, and why.
type Sender = watch::Sender<Option<Off>>;

/// Why a turn is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    /// Somebody cancelled it.
    Cancelled,
    /// Its conversation ends, or nobody can ever hear of it: nothing of it counts.
    Dropped,
}

/// A turn's own end of it.
#[derive(Clone, Debug)]
pub(super) struct Cancel {
    signal: watch::Receiver<Option<Off>>,
    entered: Arc<Entered>,
}

impl Cancel {
    /// Cancels the turn when it is dropped.
    pub(super) fn on_drop(&self) -> OnDrop {
        OnDrop(self.entered.sender.clone())
    }
}

/// Cancels a turn when it is dropped.
#[derive(Debug)]
pub(super) struct OnDrop(Sender);

impl Drop for OnDrop {
    fn drop(&mut self) {
        end(&self.0, Off::Dropped);
    }
}

/// Tells a turn; says whether it had not been told before. One that was dropped stays so.
fn end(turn: &Sender, off: Off) -> bool {
    let mut was_told = false;
    turn.send_if_modified(|now| {
        was_told = now.is_some();
        let is_new = *now != Some(off) && *now != Some(Off::Dropped);
        if is_new {
            *now = Some(off);
        }
        is_new
    });
    !was_told
}

/// Takes a turn off the list when it is over.
#[derive(Debug)]
pub(super) struct Entered {
    list: Arc<Mutex<HashMap<Key, Vec<Sender>>>>,
    key: Key,
    sender: Sender,
}

impl Entered {
    fn leave(&self) {
        let mut list = self.list.lock();
        if let Some(senders) = list.get_mut(&self.key) {
            senders.retain(|sender| !sender.same_channel(&self.sender));
            if senders.is_empty() {
                list.remove(&self.key);
            }
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Cancels {
    pub(super) fn enter(&self, scope: Option<Tag>, request_id: &str) -> Cancel {
        let (sender, signal) = watch::channel(None);
        Cancel { signal, entered: Arc::new(self.list((scope, request_id.to_owned()), sender)) }
    }

    /// Lets the turn of this task be cancelled by another name too, for as long as the guard lives: whoever decides goes
    /// on with a turn that people know by its own name.
    pub(super) fn add_name(&self, scope: Tag, request_id: &str) -> Option<Entered> {
        let sender = CANCEL.try_with(|cancel| cancel.entered.sender.clone()).ok()?;
        Some(self.list((Some(scope), request_id.to_owned()), sender))
    }

    fn list(&self, key: Key, sender: Sender) -> Entered {
        let mut list = self.0.lock();
        list.entry(key.clone()).or_default().push(sender.clone());
        Entered { list: Arc::clone(&self.0), key, sender }
    }

    /// Whether a task of this process has the turn, or waits for it.
    pub(super) fn has(&self, scope: Tag, request_id: &str) -> bool {
        let list = self.0.lock();
        list.contains_key(&(Some(scope), request_id.to_owned()))
    }

    /// Cancels one turn of a session, or all of them but the one that asks for it; says how many there were.
    pub(crate) fn cancel(&self, scope: Tag, request_id: Option<&str>) -> usize {
        self.end(scope, request_id, Off::Cancelled)
    }

    /// Ends all turns of a session that ends itself.
    pub(crate) fn drop_all(&self, scope: Tag) {
        self.end(scope, None, Off::Dropped);
    }

    fn end(&self, scope: Tag, request_id: Option<&str>, off: Off) -> usize {
        let list = self.0.lock();
        let own = CANCEL.try_with(|cancel| cancel.entered.key.clone()).ok();
        let meant = |key: &Key| {
            key.0 == Some(scope) && own.as_ref() != Some(key) && request_id.is_none_or(|id| key.1 == id)
        };
        let senders = list.iter().filter(|(key, _)| meant(key)).flat_map(|(_, senders)| senders);
        senders.filter(|sender| end(sender, off)).count()
    }
}

tokio::task_local! {
    static CANCEL: Cancel;
}

/// Runs a turn so that it hears when it is cancelled.
pub(super) async fn scope<T>(cancel: Cancel, turn: impl Future<Output = T>) -> T {
    CANCEL.scope(cancel, turn).await
}

/// Says that the turn of this task cannot be cancelled any more. Before its end is told: whoever hears of that may ask
/// for something of the same name to be cancelled.
pub(super) fn leave() {
    let _ = CANCEL.try_with(|cancel| cancel.entered.leave());
}

/// Waits for `work` unless the turn is cancelled.
pub(super) async fn or<T>(work: impl Future<Output = T>) -> Result<T, Error> {
    let Ok(mut cancel) = CANCEL.try_with(Cancel::clone) else { return Ok(work.await) };
    tokio::select! {
        biased;
        Ok(_) = cancel.signal.wait_for(Option::is_some) => Err(Error::Cancelled),
        done = work => Ok(done),
    }
}

/// The same for work that has still to see to something when the turn is cancelled: as long as that `is_due`, it goes on to its own
/// end, which does not count. Not longer than `patience`, and not if the turn is dropped.
pub(super) async fn or_due<T>(
    work: impl Future<Output = T>,
    is_due: impl Fn() -> bool,
    patience: Duration,
) -> Result<T, Error> {
    let mut work = std::pin::pin!(work);
    let cancelled = match or(work.as_mut()).await {
        Ok(done) => return Ok(done),
        Err(cancelled) => cancelled,
    };
    if is_due() {
        finish(work, patience).await;
    }
    Err(cancelled)
}

/// Goes on with the work of a turn that was cancelled, of which nothing counts but what it sees to on the way.
pub(super) async fn finish(work: impl Future, patience: Duration) {
    tokio::select! {
        biased;
        () = is_dropped() => {}
        _ended = timeout(patience, work) => {}
    }
}

/// Waits until nothing of the turn counts any more.
async fn is_dropped() {
    let Ok(mut cancel) = CANCEL.try_with(Cancel::clone) else { return std::future::pending().await };
    let _gone = cancel.signal.wait_for(|off| *off == Some(Off::Dropped)).await.map(drop);
}

/// Goes on unless the turn is cancelled: for places where what is under way must not be dropped.
pub(super) fn check() -> Result<(), Error> {
    if is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Whether the turn of this task was cancelled.
pub(crate) fn is_cancelled() -> bool {
    CANCEL.try_with(|cancel| cancel.signal.borrow().is_some()).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_turn_sees_to_what_is_due_for_a_while_unless_it_is_dropped() {
        let took = async |off: Off, due: bool, seconds: u64| {
            let turn = Cancels::default().enter(None, "r");
            assert!(end(&turn.entered.sender, off) && !end(&turn.entered.sender, Off::Cancelled));
            let began = Instant::now();
            let work = or_due(sleep(Duration::from_secs(seconds)), || due, Duration::from_secs(10));
            assert!(matches!(scope(turn, work).await, Err(Error::Cancelled)));
            began.elapsed().as_secs()
        };
        assert_eq!(took(Off::Cancelled, false, 3).await, 0);
        assert_eq!(took(Off::Cancelled, true, 3).await, 3);
        assert_eq!(took(Off::Cancelled, true, 30).await, 10);
        assert_eq!(took(Off::Dropped, true, 3).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_dropped_while_it_sees_to_something_ends_at_once() {
        let turn = Cancels::default().enter(None, "r");
        let sender = turn.entered.sender.clone();
        end(&sender, Off::Cancelled);
        tokio::spawn(async move {
            sleep(Duration::from_secs(2)).await;
            end(&sender, Off::Dropped)
        });
        let began = Instant::now();
        let work = or_due(std::future::pending::<()>(), || true, Duration::from_secs(10));
        assert!(scope(turn, work).await.is_err());
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}
