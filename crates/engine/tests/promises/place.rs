//! What only the promises ask a place.

use confidant_engine::storage::RedisSettings;

use crate::rig::{At, Place};

impl Place {
    /// Whether it is in this process alone.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.store, At::Memory(_))
    }

    /// Where it is, if that is a Redis.
    pub(crate) fn as_redis(&self) -> Option<&RedisSettings> {
        if let At::Redis(settings) = &self.store { Some(settings) } else { None }
    }

    /// Whether it is on a server.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.store, At::Redis(_) | At::Postgres(_))
    }
}
