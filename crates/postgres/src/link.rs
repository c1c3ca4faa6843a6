//! How a database is used.

use super::PostgresAddress;

/// Where a database is and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it is.
    pub address: PostgresAddress,
    /// Certificates, in PEM form, that sign the server's; without them, those of the system.
    pub ca: Option<Vec<u8>>,
    /// The schema that has the tables. A plain word: it becomes part of statements.
    pub schema: String,
    /// The most connections at a time.
    pub connections: usize,
}

impl Link {
    /// The same database and server, with tables in the schema of this name beside the one there: `confidant` and `chats`
    /// make `confidant_chats`.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        Self { schema: format!("{}_{name}", self.schema), ..self.clone() }
    }
}
