//! What only this back end can get wrong.

use confidant_postgres::Link;

use super::PostgresSettings;
use crate::random_id;

/// Settings for the server that a variable names, with a schema of their own.
pub(crate) fn settings(variable: &str) -> Option<PostgresSettings> {
    let schema = format!("test_{}", confidant_seal::Tag::from_bytes(random_id()));
    let Link { address, ca, schema, connections } = confidant_postgres::testing::link(variable, schema)?;
    Some(PostgresSettings { ca, schema, connections, ..PostgresSettings::new(address) })
}
