//! The PostgreSQL that tests are given: `tests/postgres_servers.py` starts it and names it in the environment.

#![expect(clippy::unwrap_used, reason = "for tests only")]

use std::time::Duration;

use crate::{Link, PostgresAddress};

/// The server that a variable names, for tables in this schema. Without such a server nothing is tested, which is said, and is
/// an error where all must be (`REQUIRE_ALL_STORES=1`).
#[must_use]
pub fn link(variable: &str, schema: String) -> Option<Link> {
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
    let ca = ca.ok().map(|path| std::fs::read(path).unwrap());
    // What a turn would rather do without is what is tested here, and many tests share few cores.
    let address = PostgresAddress::parse(&url).unwrap().waited_for(Duration::from_secs(60));
    Some(Link { address, ca, schema, connections: 4 })
}
