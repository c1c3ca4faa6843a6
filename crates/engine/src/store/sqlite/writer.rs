//! One thread that writes, so that turns of many sessions share a commit.
//!
//! While a commit waits for the disk, further writes queue up; the next commit takes them all. A write is answered
//! only after its commit. Each runs in its own savepoint: one that fails takes nothing with it but itself, unless the
//! commit itself fails, which all of them then report.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{File, Result};
use crate::error::StoreError;

/// The most writes that share a commit.
const MOST_IN_A_COMMIT: usize = 128;

/// Tells the caller how its write ended, once the commit has.
type Reply = Box<dyn FnOnce(Result<()>) + Send>;
/// Runs a write in the transaction it is given, or takes the reason why there is none; `Err` undoes the write.
type Job = Box<dyn FnOnce(Result<&Connection>) -> (Result<()>, Reply) + Send>;

/// The door to the writing thread. Dropping it ends the thread after what is queued.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    file: File,
}

impl Writer {
    pub(super) fn start(file: File, connection: Connection) -> Result<Self> {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("{}-writer", file.name))
            .spawn(move || run(file, &connection, &queue))
            .map_err(|_| StoreError::Failed("no thread for writing".to_owned()))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), file })
    }

    /// Runs `write` in a transaction and returns what it returned, once that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let file = self.file;
        let job: Job = Box::new(move |transaction| {
            let outcome = transaction.and_then(|connection| write(connection).map_err(|e| file.error(&e)));
            let verdict = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
            // A caller that went away is no reason to undo what it asked for.
            let reply: Reply = Box::new(move |commit| drop(tell.send(commit.and(outcome))));
            (verdict, reply)
        });
        let gone = || StoreError::Failed("the writing thread ended".to_owned());
        self.jobs.as_ref().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // Only fails if the thread panicked, which it reported itself.
            let _ = thread.join();
        }
    }
}

fn run(file: File, connection: &Connection, queue: &Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut jobs = vec![first];
        while jobs.len() < MOST_IN_A_COMMIT
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
        }
        let mut replies = Vec::with_capacity(jobs.len());
        let outcome = match execute(connection, "BEGIN IMMEDIATE").map_err(|e| file.error(&e)) {
            Ok(()) => run_all(connection, jobs, &mut replies).map_err(|e| file.error(&e)),
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
