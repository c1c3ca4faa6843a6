//! What only this back end can get wrong.

use confidant_seal::TenantId;

use super::{RedisAddress, RedisSettings};
use crate::random_id;

/// Settings for the server that a variable names, with a namespace of their own. Without such a server nothing is tested,
/// which is an error where all must be.
pub(crate) fn settings(variable: &str) -> Option<RedisSettings> {
    let settings = optional_settings(variable);
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment what must run")]
    let required = std::env::var_os("REQUIRE_ALL_STORES").is_some_and(|value| value == "1");
    assert!(
        settings.is_some() || !required,
        "{variable} is not set; hint: run it through tests/redis_servers.py"
    );
    settings
}

/// The same for a server that need not be there.
pub(crate) fn optional_settings(variable: &str) -> Option<RedisSettings> {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, ca) = (std::env::var(variable), std::env::var("CONFIDANT_TEST_REDIS_CA"));
    let Ok(url) = url else {
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!("skipped: {variable} is not set; hint: run it through tests/redis_servers.py");
        }
        return None;
    };
    let address = RedisAddress::parse(&url).unwrap();
    let ca = ca.ok().filter(|_| url.starts_with("rediss")).map(|path| std::fs::read(path).unwrap());
    let prefix = format!("test{}:", confidant_seal::Tag::from_bytes(random_id()));
    Some(RedisSettings { ca, prefix, ..RedisSettings::new(address, TenantId::new("default").unwrap()) })
}
