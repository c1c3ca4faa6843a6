//! Writing: turns of many sessions share a commit, and a lone one pays for no thread.
//!
//! Whoever has something to write queues it; whoever finds the connection free commits everything that is queued, its
//! own and others', in one transaction. While a commit waits for the disk, further writes queue up and share the next.
//! A write is answered only after its commit. Each runs in its own savepoint: one that fails takes nothing with it but
//! itself, unless the commit itself fails, which all of them then report.
//!
//! What is easy to get wrong: a caller is usually a task of the async runtime, so it must not wait for another
//! *process* that holds the database's lock. It tries once, and leaves waiting to a thread that may block.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{File, Result};
use crate::error::StoreError;

/// The most writes that share a commit.
const MOST_IN_A_COMMIT: usize = 128;
/// The most commits that a task makes for others before it leaves the rest to a thread.
const MOST_COMMITS_FOR_OTHERS: usize = 4;
/// How long a thread waits for another process.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells the caller how its write ended, once the commit has.
type Reply = Box<dyn FnOnce(Result<()>) + Send>;
/// Runs a write in the transaction it is given, or takes the reason why there is none; `Err` undoes the write.
type Job<K> = Box<dyn FnOnce(Result<&mut Open<K>>) -> (Result<()>, Reply) + Send>;

/// The one connection that writes, and what waits for it.
///
/// `K` is what writes know from those before them without looking. It is theirs to keep true; it is forgotten whenever
/// another connection has written to the file, and whenever a write is undone.
#[derive(Debug)]
pub(super) struct Writer<K = ()> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    file: File,
    open: Mutex<Open<K>>,
    queue: Mutex<VecDeque<Job<K>>>,
}

struct Open<K> {
    connection: Connection,
    known: K,
    /// SQLite's `data_version` as of when `known` was: it changes when another connection writes.
    seen: i64,
}

impl Writer {
    /// Runs `write` in a transaction and returns what it returned, once that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.write_with(|connection, ()| write(connection)).await
    }
}

impl<K: Default + Send + 'static> Writer<K> {
    pub(super) fn new(file: File, connection: Connection) -> Self {
        let open = Mutex::new(Open { connection, known: K::default(), seen: 0 });
        Self { inner: Arc::new(Inner { file, open, queue: Mutex::default() }) }
    }

    /// Runs `write` in a transaction with what is known, and returns what it returned, once that is committed.
    pub(super) async fn write_with<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection, &mut K) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let file = self.inner.file;
        let job: Job<K> = Box::new(move |transaction| {
            let outcome = transaction
                .and_then(|open| write(&open.connection, &mut open.known).map_err(|e| file.error(&e)));
            let verdict = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
            // A caller that went away is no reason to undo what it asked for.
            let reply: Reply = Box::new(move |commit| drop(tell.send(commit.and(outcome))));
            (verdict, reply)
        });
        self.inner.queue.lock().push_back(job);
        if self.inner.commit_queued(Duration::ZERO) == Left::Some {
            let inner = Arc::clone(&self.inner);
            tokio::task::spawn_blocking(move || while inner.commit_queued(PATIENCE) == Left::Some {});
        }
        told.await.map_err(|_| StoreError::Failed("a write was interrupted".to_owned()))?
    }
}

/// Whether anything is left that nobody is committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Some,
}

impl<K: Default> Inner<K> {
    /// Commits what is queued, unless somebody else is at it.
    fn commit_queued(&self, patience: Duration) -> Left {
        for _ in 0..MOST_COMMITS_FOR_OTHERS {
            // Whoever has it looks at the queue again after letting go of it, so nothing is left lying.
            let Some(mut open) = self.open.try_lock() else { return Left::Nothing };
            let jobs: Vec<Job<K>> = {
                let mut queue = self.queue();
                let many = queue.len().min(MOST_IN_A_COMMIT);
                queue.drain(..many).collect()
            };
            if let Err(jobs) = self.commit(&mut open, jobs, patience) {
                let mut queue = self.queue();
                jobs.into_iter().rev().for_each(|job| queue.push_front(job));
                return Left::Some;
            }
            drop(open);
            if self.queue().is_empty() {
                return Left::Nothing;
            }
        }
        Left::Some
    }

    /// Commits `jobs` together and answers them; gives them back untouched if another process has the lock and there
    /// is no patience.
    fn commit(
        &self,
        open: &mut Open<K>,
        jobs: Vec<Job<K>>,
        patience: Duration,
    ) -> std::result::Result<(), Vec<Job<K>>> {
        if jobs.is_empty() {
            return Ok(());
        }
        let begun = open.begin(patience).map_err(|e| self.file.error(&e));
        if begun == Err(StoreError::Busy) && patience.is_zero() {
            return Err(jobs);
        }
        let mut replies = Vec::with_capacity(jobs.len());
        let outcome = match begun {
            Ok(()) => run_all(open, jobs, &mut replies).map_err(|e| self.file.error(&e)),
            Err(error) => {
                replies.extend(jobs.into_iter().map(|job| job(Err(error.clone())).1));
                Err(error)
            }
        };
        if outcome.is_err() {
            open.known = K::default();
            if !open.connection.is_autocommit() {
                let _ = open.connection.execute_batch("ROLLBACK");
            }
        }
        for reply in replies {
            reply(outcome.clone());
        }
        Ok(())
    }

    fn queue(&self) -> parking_lot::MutexGuard<'_, VecDeque<Job<K>>> {
        self.queue.lock()
    }
}

impl<K: Default> Open<K> {
    fn begin(&mut self, patience: Duration) -> rusqlite::Result<()> {
        self.connection.busy_timeout(patience)?;
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        if size_of::<K>() > 0 {
            let seen = self.connection.prepare_cached("PRAGMA data_version")?;
            let seen = { seen }.query_row([], |row| row.get(0))?;
            if seen != self.seen {
                self.known = K::default();
                self.seen = seen;
            }
        }
        Ok(())
    }
}

fn run_all<K: Default>(
    open: &mut Open<K>,
    jobs: Vec<Job<K>>,
    replies: &mut Vec<Reply>,
) -> rusqlite::Result<()> {
    let alone = jobs.len() == 1;
    for job in jobs {
        if !alone {
            execute(&open.connection, "SAVEPOINT job")?;
        }
        let (verdict, reply) = job(Ok(open));
        replies.push(reply);
        if verdict.is_err() {
            open.known = K::default();
        }
        let connection = &open.connection;
        match verdict {
            Ok(()) if alone => {}
            Ok(()) => execute(connection, "RELEASE job")?,
            // The failure (a full disk) ended the whole transaction: this COMMIT fails, and so everyone is told.
            Err(_) if connection.is_autocommit() => return execute(connection, "COMMIT"),
            Err(_) if alone => return execute(connection, "ROLLBACK"),
            Err(_) => {
                execute(connection, "ROLLBACK TO job")?;
                execute(connection, "RELEASE job")?;
            }
        }
    }
    execute(&open.connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

impl<K> std::fmt::Debug for Inner<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("file", &self.file.name).finish_non_exhaustive()
    }
}
