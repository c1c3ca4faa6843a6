//! The names under which clients may reach the server.

/// By which names this server may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// Those of this machine, and these.
    Known(Vec<String>),
    /// It listens to the world under names that it does not know.
    Any,
}
