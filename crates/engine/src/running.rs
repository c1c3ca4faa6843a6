//! The turns that run now: counted, waited for at a stop, and parked when that takes too long.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::Error;
use crate::inner::Inner;

/// The turns that run now.
#[derive(Debug, Default)]
pub(crate) struct Running {
    tasks: Mutex<HashMap<u64, tokio::task::AbortHandle>>,
    /// What is done beside turns and after them: nobody waits for it.
    asides: Mutex<HashMap<u64, tokio::task::AbortHandle>>,
    next: AtomicU64,
    stopping: AtomicBool,
    fewer: Notify,
}

impl Running {
    /// Runs a turn's task; refuses when the engine is stopping.
    pub(crate) fn spawn(
        inner: &Arc<Inner>,
        turn: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let running = &inner.running;
        if running.stopping.load(Ordering::SeqCst) {
            return Err(Error::Stopping);
        }
        let id = running.next.fetch_add(1, Ordering::Relaxed);
        let done = Done { inner: Arc::clone(inner), id, began: Instant::now() };
        let mut tasks = running.tasks.lock();
        let task = tokio::spawn(async move {
            let _done = done;
            turn.await;
        });
        tasks.insert(id, task.abort_handle());
        Ok(())
    }

    /// Does something that no turn waits for, unless the engine is stopping.
    pub(crate) fn aside(inner: &Arc<Inner>, work: impl Future<Output = ()> + Send + 'static) {
        let running = &inner.running;
        if running.stopping.load(Ordering::SeqCst) {
            return;
        }
        let id = running.next.fetch_add(1, Ordering::Relaxed);
        let done = AsideDone { inner: Arc::clone(inner), id };
        let mut asides = running.asides.lock();
        let task = tokio::spawn(async move {
            let _done = done;
            work.await;
        });
        asides.insert(id, task.abort_handle());
    }

    /// Waits for what is done beside turns; for tests and for stopping in good order.
    pub(crate) async fn asides_done(&self) {
        let count = || self.asides.lock().len();
        while count() > 0 {
            let _ = tokio::time::timeout(Duration::from_millis(50), self.fewer.notified()).await;
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.tasks.lock().len() as u64
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) async fn idle(&self) {
        while self.count() > 0 {
            // The timeout covers a turn that ended between the look and the wait.
            let _ = tokio::time::timeout(Duration::from_millis(50), self.fewer.notified()).await;
        }
    }

    pub(crate) fn abort_all(&self) -> u64 {
        let asides = self.asides.lock();
        asides.values().for_each(tokio::task::AbortHandle::abort);
        let tasks = self.tasks.lock();
        tasks.values().for_each(tokio::task::AbortHandle::abort);
        tasks.len() as u64
    }
}

/// Takes a turn off the list when its task ends, however it ends.
struct Done {
    inner: Arc<Inner>,
    id: u64,
    began: Instant,
}

impl Drop for Done {
    fn drop(&mut self) {
        let running = &self.inner.running;
        // Before it is off the list: whoever sees none running sees how long each took.
        self.inner.ledger.counters.took.add(self.began.elapsed());
        running.tasks.lock().remove(&self.id);
        running.fewer.notify_waiters();
    }
}

/// The same for what is done beside turns.
struct AsideDone {
    inner: Arc<Inner>,
    id: u64,
}

impl Drop for AsideDone {
    fn drop(&mut self) {
        let running = &self.inner.running;
        running.asides.lock().remove(&self.id);
        running.fewer.notify_waiters();
    }
}
