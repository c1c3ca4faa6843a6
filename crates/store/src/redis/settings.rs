//! How a Redis is used.

use std::time::Duration;

use confidant_seal::TenantId;

use super::RedisAddress;
use crate::Naming;

/// Where a Redis is and how its keys are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Where it is.
    pub address: RedisAddress,
    /// Certificates, in PEM form, that sign the server's; without them, those of the system.
    pub ca: Option<Vec<u8>>,
    /// What sessions are called.
    pub names: RedisNames,
    /// What every key begins with, so that installations can share a server.
    pub prefix: String,
    /// How long audit records are kept.
    pub keep_audit: Duration,
}

impl RedisSettings {
    /// Settings for this address: readable names, no prefix, a month of audit records.
    #[must_use]
    pub fn new(address: RedisAddress, bare_tenant: TenantId) -> Self {
        Self {
            address,
            ca: None,
            names: RedisNames::Readable { bare_tenant },
            prefix: String::new(),
            keep_audit: Duration::from_secs(30 * 86_400),
        }
    }
}

/// What sessions are called in Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisNames {
    /// By their session ids; those of other tenants than this one say the tenant, too.
    Readable {
        /// The tenant whose sessions have the bare names.
        bare_tenant: TenantId,
    },
    /// By keyed hashes.
    Opaque,
}

impl From<&RedisNames> for Naming {
    fn from(names: &RedisNames) -> Self {
        match names {
            RedisNames::Readable { bare_tenant } => Self::Readable(bare_tenant.clone()),
            RedisNames::Opaque => Self::Opaque,
        }
    }
}
