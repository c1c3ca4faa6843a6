//! How a PostgreSQL is used.

use std::time::Duration;

use confidant_postgres::Link;

use super::PostgresAddress;

/// Where a database is and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// Where it is.
    pub address: PostgresAddress,
    /// Certificates, in PEM form, that sign the server's; without them, those of the system.
    pub ca: Option<Vec<u8>>,
    /// The schema that has our tables.
    pub schema: String,
    /// The most connections at a time.
    pub connections: usize,
    /// How long audit records are kept; nothing for ever.
    pub keep_audit: Option<Duration>,
}

impl PostgresSettings {
    /// Settings for this address: our own schema, and as many connections as a few cores keep busy.
    #[must_use]
    pub fn new(address: PostgresAddress) -> Self {
        Self { address, ca: None, schema: "confidant".to_owned(), connections: 16, keep_audit: None }
    }

    /// The database and the schema, for whoever else keeps something there.
    #[must_use]
    pub fn link(&self) -> Link {
        let Self { address, ca, schema, connections, .. } = self.clone();
        Link { address, ca, schema, connections }
    }
}
