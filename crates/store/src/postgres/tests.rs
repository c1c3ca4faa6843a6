//! What only this back end can get wrong.

use super::{PostgresAddress, PostgresSettings};
use crate::random_id;

/// Settings for the server that a variable names, with a schema of their own. Without such a server nothing is tested, which
/// is an error where all must be.
pub(crate) fn settings(variable: &str) -> Option<PostgresSettings> {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, ca, required) = (
        std::env::var(variable),
        std::env::var("CONFIDANT_TEST_POSTGRES_CA"),
        std::env::var_os("REQUIRE_ALL_STORES"),
    );
    let Ok(url) = url else {
        assert!(required.is_none_or(|value| value != "1"), "{variable} is not set");
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!("skipped: {variable} is not set; hint: run it through tests/postgres_servers.py");
        }
        return None;
    };
    let schema = format!("test_{}", confidant_seal::Tag::from_bytes(random_id()));
    let ca = ca.ok().map(|path| std::fs::read(path).unwrap());
    let address = PostgresAddress::parse(&url).unwrap();
    Some(PostgresSettings { ca, schema, connections: 4, ..PostgresSettings::new(address) })
}
