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
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

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
type Job = Box<dyn FnOnce(Result<&Connection>) -> (Result<()>, Reply) + Send>;

/// The one connection that writes, and what waits for it.
#[derive(Debug)]
pub(super) struct Writer {
    inner: Arc<Inner>,
}

struct Inner {
    file: File,
    connection: Mutex<Connection>,
    queue: Mutex<VecDeque<Job>>,
}

impl Writer {
    pub(super) fn new(file: File, connection: Connection) -> Self {
        Self { inner: Arc::new(Inner { file, connection: Mutex::new(connection), queue: Mutex::default() }) }
    }

    /// Runs `write` in a transaction and returns what it returned, once that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let file = self.inner.file;
        let job: Job = Box::new(move |transaction| {
            let outcome = transaction.and_then(|connection| write(connection).map_err(|e| file.error(&e)));
            let verdict = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
            // A caller that went away is no reason to undo what it asked for.
            let reply: Reply = Box::new(move |commit| drop(tell.send(commit.and(outcome))));
            (verdict, reply)
        });
        self.inner.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_back(job);
        if self.inner.commit_queued(Duration::ZERO) == Left::Some {
            let inner = Arc::clone(&self.inner);
            tokio::task::spawn_blocking(move || while inner.commit_queued(PATIENCE) == Left::Some {});
        }
        told.await.map_err(|_| StoreError::Failed("a write was cut off".to_owned()))?
    }
}

/// Whether anything is left that nobody is committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Some,
}

impl Inner {
    /// Commits what is queued, unless somebody else is at it.
    fn commit_queued(&self, patience: Duration) -> Left {
        for _ in 0..MOST_COMMITS_FOR_OTHERS {
            let connection = match self.connection.try_lock() {
                Ok(connection) => connection,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // Whoever has it looks at the queue again after letting go of it, so nothing is left lying.
                Err(TryLockError::WouldBlock) => return Left::Nothing,
            };
            let jobs: Vec<Job> = {
                let mut queue = self.queue();
                let many = queue.len().min(MOST_IN_A_COMMIT);
                queue.drain(..many).collect()
            };
            if let Err(jobs) = self.commit(&connection, jobs, patience) {
                let mut queue = self.queue();
                jobs.into_iter().rev().for_each(|job| queue.push_front(job));
                return Left::Some;
            }
            drop(connection);
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
        connection: &Connection,
        jobs: Vec<Job>,
        patience: Duration,
    ) -> std::result::Result<(), Vec<Job>> {
        if jobs.is_empty() {
            return Ok(());
        }
        let begun = connection.busy_timeout(patience).and_then(|()| execute(connection, "BEGIN IMMEDIATE"));
        let begun = begun.map_err(|e| self.file.error(&e));
        if begun == Err(StoreError::Busy) && patience.is_zero() {
            return Err(jobs);
        }
        let mut replies = Vec::with_capacity(jobs.len());
        let outcome = match begun {
            Ok(()) => run_all(connection, jobs, &mut replies).map_err(|e| self.file.error(&e)),
            Err(error) => {
                replies.extend(jobs.into_iter().map(|job| job(Err(error.clone())).1));
                Err(error)
            }
        };
        if outcome.is_err() && !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        for reply in replies {
            reply(outcome.clone());
        }
        Ok(())
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Job>> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn run_all(connection: &Connection, jobs: Vec<Job>, replies: &mut Vec<Reply>) -> rusqlite::Result<()> {
    let alone = jobs.len() == 1;
    for job in jobs {
        if !alone {
            execute(connection, "SAVEPOINT job")?;
        }
        let (verdict, reply) = job(Ok(connection));
        replies.push(reply);
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
    execute(connection, "COMMIT")
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("file", &self.file.name).finish_non_exhaustive()
    }
}
