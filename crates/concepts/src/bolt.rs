//! A graph server, Memgraph or Neo4j, over Bolt. Behind the feature `bolt`, since its driver brings some thirty crates.

#[cfg(not(feature = "bolt"))]
mod disabled;
#[cfg(feature = "bolt")]
mod enabled;
#[cfg(all(test, feature = "bolt"))]
mod recorded;

use confidant_display::debug_without_content;

#[cfg(not(feature = "bolt"))]
pub use disabled::BoltGraph;
#[cfg(feature = "bolt")]
pub use enabled::BoltGraph;

/// Where a graph server is, and who we are to it.
#[derive(Clone, Default)]
pub struct BoltSettings {
    /// `bolt://host:port`, or `bolt+s://` with TLS.
    pub url: String,
    /// Who we are; empty for servers that ask nobody.
    pub user: String,
    /// Our password.
    pub password: String,
    /// The database on the server; its own default without one.
    pub database: Option<String>,
}

debug_without_content!(BoltSettings);
