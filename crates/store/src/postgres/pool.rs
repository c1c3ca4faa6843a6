//! The connections of this store, whose sessions work for the system unless a statement narrows its transaction to a tenant.
//! What fails is this store's error.

use tokio_postgres::{Error, Row};

use confidant_postgres::PostgresError;
pub(super) use confidant_postgres::{Args, For};

use super::{PostgresSettings, migrations};
use crate::Result;
use crate::error::StoreError;

/// The connections of a process.
#[derive(Debug)]
pub(super) struct Pool(confidant_postgres::Pool);

impl Pool {
    /// Prepares connections. Does not connect yet.
    pub(super) fn new(settings: &PostgresSettings) -> Result<Self> {
        let works_for_the_system = [("confidant.tenant", "*"), ("confidant.tenant_id", "*")];
        Ok(Self(confidant_postgres::Pool::new(&settings.link(), &works_for_the_system)?))
    }

    /// Runs a statement and gives its rows.
    pub(super) async fn query(&self, what: For, sql: &'static str, args: Args<'_>) -> Result<Vec<Row>> {
        Ok(self.0.query(what, sql, args).await?)
    }

    /// The same; what the server refuses for a reason that the caller may know is given as it is.
    pub(super) async fn try_query(
        &self,
        what: For,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<std::result::Result<Vec<Row>, Error>> {
        Ok(self.0.try_query(what, sql, args).await?)
    }

    /// Makes the tables, or brings them up to date.
    pub(super) async fn migrate(&self) -> Result<()> {
        Ok(confidant_postgres::migrate(&self.0, &migrations::MIGRATIONS).await?)
    }

    /// Whether somebody has made the tables.
    pub(super) async fn is_there(&self) -> Result<bool> {
        Ok(confidant_postgres::is_there(&self.0).await?)
    }

    /// Whether the database answers, and whether row-level security holds for us; says what it is.
    pub(super) async fn check(&self) -> Result<String> {
        Ok(confidant_postgres::check(&self.0).await?)
    }
}

/// The error in our words.
pub(super) fn failure(error: &Error) -> StoreError {
    confidant_postgres::failure(error).into()
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Full => Self::Full,
            PostgresError::ReadOnly => Self::ReadOnly,
            PostgresError::Unreachable(why) => Self::Unreachable(why),
            PostgresError::Uncertain => Self::Uncertain,
            PostgresError::Refused(code) => Self::Refused(code),
            PostgresError::Mismatch(text) => Self::Mismatch(text),
            PostgresError::Newer => Self::Newer,
            PostgresError::Busy => Self::Busy,
            PostgresError::Failed(what) => Self::Failed(what),
            other => Self::Failed(other.to_string()),
        }
    }
}
