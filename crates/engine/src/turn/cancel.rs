//! Cancelling a turn, at any point, from any surface.
//!
//! A turn that is cancelled drops what it waits for (the model, a tool, its place in the session's order) and is then
//! closed in the log like any other that has no answer. Writing to the log itself is never cut short.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_seal::Tag;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::error::Error;

/// The turns of a process that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Cancels(Arc<Mutex<HashMap<Key, Vec<watch::Sender<bool>>>>>);

/// A turn: its session, and its own name.
type Key = (Option<Tag>, String);

/// A turn's own end of it.
#[derive(Clone, Debug)]
pub(super) struct Cancel {
    signal: watch::Receiver<bool>,
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
pub(super) struct OnDrop(watch::Sender<bool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// Takes a turn off the list when it is over.
#[derive(Debug)]
pub(super) struct Entered {
    list: Arc<Mutex<HashMap<Key, Vec<watch::Sender<bool>>>>>,
    key: Key,
    sender: watch::Sender<bool>,
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
        let (sender, signal) = watch::channel(false);
        Cancel { signal, entered: Arc::new(self.list((scope, request_id.to_owned()), sender)) }
    }

    /// Lets the turn of this task be cancelled by another name too, for as long as the guard lives: whoever decides goes
    /// on with a turn that people know by its own name.
    pub(super) fn add_name(&self, scope: Tag, request_id: &str) -> Option<Entered> {
        let sender = CANCEL.try_with(|cancel| cancel.entered.sender.clone()).ok()?;
        Some(self.list((Some(scope), request_id.to_owned()), sender))
    }

    fn list(&self, key: Key, sender: watch::Sender<bool>) -> Entered {
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
        let list = self.0.lock();
        let own = CANCEL.try_with(|cancel| cancel.entered.key.clone()).ok();
        let meant = |key: &Key| {
            key.0 == Some(scope) && own.as_ref() != Some(key) && request_id.is_none_or(|id| key.1 == id)
        };
        let senders = list.iter().filter(|(key, _)| meant(key)).flat_map(|(_, senders)| senders);
        senders.map(|sender| sender.send_replace(true)).filter(|before| !before).count()
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
        Ok(_) = cancel.signal.wait_for(|cancelled| *cancelled) => Err(Error::Cancelled),
        done = work => Ok(done),
    }
}

/// Goes on unless the turn is cancelled: for places where what is under way must not be dropped.
pub(super) fn check() -> Result<(), Error> {
    let cancelled = CANCEL.try_with(|cancel| *cancel.signal.borrow()).unwrap_or(false);
    if cancelled { Err(Error::Cancelled) } else { Ok(()) }
}
