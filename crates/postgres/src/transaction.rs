//! Transactions of a few batches. The statements of a batch are sent together and answered together, so a batch is one round
//! trip, however many statements it has; the first batch brings `BEGIN` along, and the last one `COMMIT`.
//!
//! ```text
//!  Tries::begin ─▶ Transaction::run(asks) ─▶ … ─▶ Transaction::finish(asks)        rows: it is committed
//!       ▲                   │                              │
//!       └── Tries::again ◀──┴─────────── Failed ◀──────────┘                       or begun again, while it is worth it
//! ```
//!
//! A transaction that is dropped anywhere closes its connection, and the server undoes it. What failed before `COMMIT` was sent
//! has changed nothing and is begun again: after a deadlock, a serialization failure, a connection that broke.
//!
//! What is easy to get wrong: statements of one batch do not wait for each other's checks. A statement that must not happen
//! if an earlier one found nothing belongs into a later batch.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use confidant_display::debug_without_content;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Row};

use super::error::PostgresError;
use super::pool::{ANSWER, Args, Cause, Connected, For, Lent, Patience, Pool, Result, is_read_only};

/// A statement and its arguments.
#[derive(Clone, Copy)]
pub struct Ask<'a>(pub &'static str, pub Args<'a>);

debug_without_content!(Ask<'_>);

/// Tries of one transaction.
pub struct Tries<'p> {
    pool: &'p Pool,
    what: For,
    patience: Patience,
}

debug_without_content!(Tries<'_> { what });

impl Pool {
    /// Tries of a transaction. One that reads sees one state in all its batches; one that writes sees in each statement what
    /// others have committed before it.
    #[must_use]
    pub fn tries(&self, what: For) -> Tries<'_> {
        Tries { pool: self, what, patience: Patience::new(what) }
    }
}

impl<'p> Tries<'p> {
    /// A connection for the transaction, which begins with its first batch.
    pub async fn begin(&mut self) -> Result<Transaction<'p>> {
        loop {
            match self.pool.lend(self.patience.deadline).await? {
                Ok(lent) => {
                    let (pool, what) = (self.pool, self.what);
                    return Ok(Transaction { pool, what, lent: Some(lent), is_begun: false });
                }
                Err(cause) if self.patience.again(&cause).await => {}
                Err(cause) => return Err(cause.error()),
            }
        }
    }

    /// After a failure: waits, if it is worth another try, and else says what went wrong.
    pub async fn again(&mut self, transaction: Transaction<'p>, failed: Failed) -> Result<()> {
        transaction.roll_back().await;
        if failed.is_uncertain() && self.what == For::Writing {
            return Err(PostgresError::Uncertain);
        }
        if self.patience.again(&failed.cause).await { Ok(()) } else { Err(failed.cause.error()) }
    }
}

/// A transaction, undone unless it is finished.
pub struct Transaction<'p> {
    pool: &'p Pool,
    what: For,
    /// Nothing once it is over, or its connection broke.
    lent: Option<Lent<'p>>,
    is_begun: bool,
}

debug_without_content!(Transaction<'_> { what, is_begun });

impl<'p> Transaction<'p> {
    /// Runs a batch; gives the rows of each statement.
    pub async fn run(&mut self, asks: &[Ask<'_>]) -> std::result::Result<Vec<Vec<Row>>, Failed> {
        self.send(asks, false).await
    }

    /// Runs the last batch and commits. If a statement of it fails, nothing is committed.
    pub async fn finish(&mut self, asks: &[Ask<'_>]) -> std::result::Result<Vec<Vec<Row>>, Failed> {
        self.send(asks, true).await
    }

    /// Undoes it, unless it is over, and keeps the connection for others.
    pub async fn roll_back(mut self) {
        let Some(lent) = self.lent.take() else { return };
        // Without an answer the connection is closed, which undoes it as well.
        let undone = if self.is_begun {
            timeout(ANSWER, lent.connected.client.batch_execute("ROLLBACK"))
                .await
                .is_ok_and(|done| done.is_ok())
        } else {
            true
        };
        if undone {
            self.pool.give_back(lent);
        }
    }

    async fn send(&mut self, asks: &[Ask<'_>], commits: bool) -> std::result::Result<Vec<Vec<Row>>, Failed> {
        let Some(mut lent) = self.lent.take() else {
            return Err(Failed { cause: Cause::Unanswered, commits: false });
        };
        let unsent = match timeout(ANSWER, lent.connected.prepare(asks)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Cause::Sent(error)),
            Err(_) => Some(Cause::Silent),
        };
        if let Some(cause) = unsent {
            return Err(self.failed(lent, cause, false));
        }
        let begin = match (self.is_begun, self.what) {
            (true, _) => None,
            (false, For::Reading) => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            (false, For::Writing) => Some("BEGIN ISOLATION LEVEL READ COMMITTED"),
        };
        self.is_begun = true;
        match timeout(ANSWER, lent.connected.pipeline(begin, asks, commits)).await {
            Ok(Ok(rows)) => {
                if commits {
                    self.pool.give_back(lent);
                } else {
                    self.lent = Some(lent);
                }
                Ok(rows)
            }
            Ok(Err(error)) => Err(self.failed(lent, Cause::Sent(error), commits)),
            Err(_) => Err(self.failed(lent, Cause::Silent, commits)),
        }
    }

    /// Keeps the connection for rolling back if it can be: one that was not answered may be answered later, in the place of
    /// something else.
    fn failed(&mut self, lent: Lent<'p>, cause: Cause, commits: bool) -> Failed {
        if matches!(&cause, Cause::Sent(error) if is_read_only(error)) {
            self.pool.forget();
        } else if !cause.is_lost() {
            self.lent = Some(lent);
        }
        Failed { cause, commits }
    }
}

/// Why a batch did not work.
pub struct Failed {
    cause: Cause,
    /// Whether it was to commit.
    commits: bool,
}

debug_without_content!(Failed { commits });

impl Failed {
    /// Whether somebody else has a value that may be there once only.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.has(&SqlState::UNIQUE_VIOLATION)
    }

    /// Whether something that it refers to is not there.
    #[must_use]
    pub fn is_orphan(&self) -> bool {
        self.has(&SqlState::FOREIGN_KEY_VIOLATION)
    }

    /// Whether it may have been committed.
    fn is_uncertain(&self) -> bool {
        self.commits && self.cause.is_lost()
    }

    fn has(&self, code: &SqlState) -> bool {
        matches!(&self.cause, Cause::Sent(error) if error.code() == Some(code))
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = std::result::Result<Vec<Row>, Error>> + Send + 'a>>;

impl Connected {
    /// Prepares what this connection does not know yet.
    async fn prepare(&mut self, asks: &[Ask<'_>]) -> std::result::Result<(), Error> {
        for Ask(sql, _) in asks {
            self.prepared(sql).await?;
        }
        Ok(())
    }

    /// Sends everything at once, in this order. Gives the rows of the statements.
    async fn pipeline(
        &self,
        begin: Option<&'static str>,
        asks: &[Ask<'_>],
        commits: bool,
    ) -> std::result::Result<Vec<Vec<Row>>, Error> {
        let plain = |sql: &'static str| -> Answer<'_> {
            Box::pin(async move { self.client.batch_execute(sql).await.map(|()| Vec::new()) })
        };
        let mut answers: Vec<Answer<'_>> = begin.into_iter().map(plain).collect();
        let first = answers.len();
        for Ask(sql, args) in asks {
            // All are prepared.
            let Some(statement) = self.statements.get(sql) else { continue };
            answers.push(Box::pin(self.client.query(statement, args)));
        }
        answers.extend(commits.then(|| plain("COMMIT")));
        let mut rows = in_order(answers).await?;
        rows.truncate(first + asks.len());
        Ok(rows.split_off(first))
    }
}

/// Begins all of them in this order, then waits for each. One that fails at once was not sent: those after it, a commit among
/// them, are not sent either.
async fn in_order(mut answers: Vec<Answer<'_>>) -> std::result::Result<Vec<Vec<Row>>, Error> {
    let mut done = Vec::with_capacity(answers.len());
    for answer in &mut answers {
        match poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await {
            Poll::Ready(Ok(rows)) => done.push(Some(rows)),
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => done.push(None),
        }
    }
    let mut all = Vec::with_capacity(done.len());
    for (answer, done) in answers.into_iter().zip(done) {
        all.push(match done {
            Some(rows) => rows,
            None => answer.await?,
        });
    }
    Ok(all)
}
