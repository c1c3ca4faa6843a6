//! Placeholder until the sources of sessions arrive.

use crate::{Error, Result, Session};

/// Where sessions are looked for.
#[derive(Debug, Default)]
pub struct Sources {}

impl Sources {
    /// Finds a session.
    pub async fn find(&self, _: &str) -> Result<Session> {
        Err(Error::not_found("no session has this id", "hand the session over as `session`"))
    }
}
