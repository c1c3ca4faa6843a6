//! Chats in PostgreSQL, for several gateways: a schema of its own, holding tags and sealed bytes.
//!
//! ```text
//! write ──▶ BEGIN · whose · lock the account · look ──▶ checks ──▶ every row · COMMIT       two round trips
//! read ───▶ BEGIN · whose · every statement · COMMIT                                        one
//! ```
//!
//! Everything that writes locks its account's row first, so what a plan was made from is what it is written to, and changes
//! are numbered without gaps. Accounts do not wait for each other. A read sees one state.
//!
//! Row-level security, forced on the owner of the tables too, shows a transaction the rows of its account only, or the one row
//! that a caller has shown the tag of (`migrations/`). So a statement without its `WHERE` is a wrong answer for one person,
//! and never somebody else's rows.
//!
//! Easy to get wrong: a statement before `whose` was told, which finds nothing; and a check between statements of one batch,
//! which have all been sent by then.

mod accounts;
mod chats;
mod codes;
mod copy;
mod feed;
mod letters;
mod lists;
mod marks;
mod restore;
mod rings;
mod rotation;
mod rows;
mod safety;
mod sessions;
mod snapshots;
mod upkeep;
mod write;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use confidant_chat_format::Refused;
use confidant_postgres::{Failed, Link, Pool, PostgresError, migrate};

use super::{Result, StoreError};

/// Chats in a PostgreSQL database. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PostgresChats {
    pool: Arc<Pool>,
}

/// Opens the chats of a database, in the schema that the link names, made or brought up to date.
pub async fn open(link: &Link) -> Result<PostgresChats> {
    let pool = Arc::new(Pool::new(link, &[])?);
    migrate(&pool, &MIGRATIONS).await?;
    Ok(PostgresChats { pool })
}

/// Runs work in a transaction, and again while that is worth it: after a deadlock, or when a connection broke before its
/// commit. The work ends with [`confidant_postgres::Transaction::finish`]; what it refuses is undone.
macro_rules! transact {
    ($store:expr, $what:ident, |$tx:ident| $work:expr) => {{
        let mut tries = $store.pool.tries(confidant_postgres::For::$what);
        loop {
            let mut transaction = tries.begin().await?;
            let $tx = &mut transaction;
            match $work.await {
                Ok(done) => break Ok(done),
                Err($crate::store::postgres::Halt::Refused(error)) => {
                    transaction.roll_back().await;
                    break Err(error);
                }
                Err($crate::store::postgres::Halt::Failed(failed)) => {
                    tries.again(transaction, failed).await?;
                }
            }
        }
    }};
}
use transact;

/// What runs inside a transaction: it fails by a refusal, or by the database.
type Work<T> = std::result::Result<T, Halt>;

/// Why a transaction was undone.
#[derive(Debug)]
enum Halt {
    Refused(StoreError),
    Failed(Failed),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Refused> for Halt {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.into())
    }
}

impl From<Failed> for Halt {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Full => Self::Full,
            PostgresError::Newer => Self::Newer,
            PostgresError::Busy => Self::Busy,
            PostgresError::Unreachable(why) => Self::Unreachable(why),
            PostgresError::Uncertain => Self::Uncertain,
            PostgresError::Failed(what) => Self::Failed(what),
            // They say what to do about the server.
            other => Self::Server(other.to_string()),
        }
    }
}

const NAME: &str = "of chats in PostgreSQL";
const MIGRATIONS: [&str; 5] = [
    include_str!("migrations/001_chats.sql"),
    include_str!("migrations/002_copy.sql"),
    include_str!("migrations/003_answers.sql"),
    include_str!("migrations/004_marks.sql"),
    include_str!("migrations/005_snapshots.sql"),
];
