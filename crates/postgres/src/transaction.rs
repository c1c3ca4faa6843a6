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
        Tries { pool: self, what, patience: self.patience(what) }
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

type Answer<'a, R = Vec<Row>, E = Error> =
    Pin<Box<dyn Future<Output = std::result::Result<R, E>> + Send + 'a>>;

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

/// Begins all of them in this order, then waits for each. One that fails at once is the last one: those after it, a commit among
/// them, are not sent.
///
/// Its error is not always what went wrong: where others run meanwhile, a statement may have failed and been answered before the next
/// one is looked at for the first time, and that one then fails for coming after it. So the first error in this order counts.
async fn in_order<R, E>(mut answers: Vec<Answer<'_, R, E>>) -> std::result::Result<Vec<R>, E> {
    let mut done = Vec::with_capacity(answers.len());
    let mut failed = None;
    for answer in &mut answers {
        match poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await {
            Poll::Ready(Ok(rows)) => done.push(Some(rows)),
            Poll::Ready(Err(error)) => {
                failed = Some(error);
                break;
            }
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
    failed.map_or(Ok(all), Err)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An answer that is there when it is asked for so often.
    fn answer(
        looks: usize,
        answer: std::result::Result<u8, &'static str>,
        begun: &Arc<AtomicUsize>,
    ) -> Answer<'static, u8, &'static str> {
        let begun = Arc::clone(begun);
        let mut looked = 0;
        Box::pin(poll_fn(move |context| {
            begun.fetch_add(usize::from(looked == 0), Ordering::SeqCst);
            looked += 1;
            if looked > looks {
                return Poll::Ready(answer);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    #[tokio::test]
    async fn of_several_errors_the_first_statements_counts() {
        let begun = Arc::new(AtomicUsize::new(0));
        let answers = vec![
            answer(2, Ok(1), &begun),
            answer(2, Err("taken"), &begun),
            // Answered before it is looked at for the first time.
            answer(0, Err("in a failed transaction"), &begun),
            answer(0, Ok(4), &begun),
        ];
        assert_eq!(in_order(answers).await, Err("taken"));
        assert_eq!(begun.load(Ordering::SeqCst), 3, "what comes after a failure is not sent");
        let answers = vec![answer(3, Ok(1), &begun), answer(0, Err("not sent"), &begun)];
        assert_eq!(in_order(answers).await, Err("not sent"));
        let answers = vec![answer(3, Ok(1), &begun), answer(0, Ok(2), &begun), answer(1, Ok(3), &begun)];
        assert_eq!(in_order(answers).await, Ok(vec![1, 2, 3]));
    }
}
