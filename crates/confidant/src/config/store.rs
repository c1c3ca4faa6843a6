//! `[store]`: where conversations are kept.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use confidant_engine::TenantId;
use confidant_engine::storage::{
    Durability, PostgresAddress, PostgresSettings, RedisAddress, RedisNames, RedisSettings,
};
use confidant_memory::regular;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::config::DEFAULT_TENANT;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub(crate) url: StoreKind,
    durability: Commit,
    opaque_names: bool,
    prefix: String,
    ca_file: Option<PathBuf>,
    audit_days: Option<u32>,
    schema: String,
    connections: usize,
}

impl Default for StoreSection {
    fn default() -> Self {
        Self {
            url: StoreKind::default(),
            durability: Commit::default(),
            opaque_names: false,
            prefix: String::new(),
            ca_file: None,
            audit_days: None,
            schema: "confidant".to_owned(),
            connections: 16,
        }
    }
}

impl StoreSection {
    /// How a Redis at this address is used. `password` counts if the address has none.
    pub(crate) fn redis(
        &self,
        address: &RedisAddress,
        password: Option<&SecretString>,
    ) -> anyhow::Result<RedisSettings> {
        let address = address.clone();
        Ok(RedisSettings {
            address: match password {
                Some(password) => address.with_password(password.expose_secret()),
                None => address,
            },
            ca: self.certificates()?,
            names: match self.opaque_names {
                true => RedisNames::Opaque,
                false => RedisNames::Readable { bare_tenant: TenantId::new(DEFAULT_TENANT)? },
            },
            prefix: self.prefix.clone(),
            keep_audit: self.keep_audit().unwrap_or(REDIS_KEEPS),
        })
    }

    /// How a PostgreSQL at this address is used. `password` counts if the address has none.
    pub(crate) fn postgres(
        &self,
        address: &PostgresAddress,
        password: Option<&SecretString>,
    ) -> anyhow::Result<PostgresSettings> {
        let address = address.clone();
        Ok(PostgresSettings {
            address: match password {
                Some(password) => address.with_password(password.expose_secret()),
                None => address,
            },
            ca: self.certificates()?,
            schema: self.schema.clone(),
            connections: self.connections,
            keep_audit: self.keep_audit(),
        })
    }

    fn keep_audit(&self) -> Option<Duration> {
        self.audit_days.map(|days| Duration::from_secs(u64::from(days.max(1)) * 86_400))
    }

    fn certificates(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let read = |path: &PathBuf| {
            let mut bytes = Vec::new();
            let read = regular::open_linked(path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map(|_| bytes).map_err(|error| {
                anyhow!(
                    "store.ca_file {} cannot be read ({}); hint: check the path",
                    path.display(),
                    regular::why(&error)
                )
            })
        };
        self.ca_file.as_ref().map(read).transpose()
    }

    pub(crate) fn durability(&self) -> Durability {
        match self.durability {
            Commit::Power => Durability::Power,
            Commit::Process => Durability::Process,
        }
    }
}

/// How long a Redis, where everything ends, keeps audit records unless told otherwise.
const REDIS_KEEPS: Duration = Duration::from_secs(30 * 86_400);

/// What `store.url` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum StoreKind {
    /// SQLite files in a folder; without one, in the data folder.
    Sqlite(Option<PathBuf>),
    /// Nothing is kept.
    Memory,
    /// A Redis or Valkey.
    Redis(RedisAddress),
    /// A PostgreSQL database.
    Postgres(PostgresAddress),
}

impl StoreKind {
    /// What it is called, without its address.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Memory => "memory",
            Self::Redis(_) => "redis",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl Default for StoreKind {
    fn default() -> Self {
        Self::Sqlite(None)
    }
}

impl TryFrom<String> for StoreKind {
    type Error = String;

    // What is not understood is not quoted: an address may hold a password.
    fn try_from(url: String) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", "")) => Ok(Self::Sqlite(None)),
            Some(("sqlite", folder)) if !folder.starts_with("//") => {
                Ok(Self::Sqlite(Some(PathBuf::from(folder))))
            }
            Some(("memory", "")) => Ok(Self::Memory),
            Some((scheme, _)) if scheme.starts_with("redis") => RedisAddress::parse(&url).map(Self::Redis),
            Some(("postgres" | "postgresql", _)) => PostgresAddress::parse(&url).map(Self::Postgres),
            _ => Err(
                "this is not the address of a store; hint: use sqlite:, sqlite:/path/folder, redis://host, \
                      postgres://host/database or memory:"
                    .to_owned(),
            ),
        }
    }
}

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Commit {
    /// When the disk has it.
    #[default]
    Power,
    /// When the operating system has it.
    Process,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_without_being_quoted() {
        let read = |url: &str| StoreKind::try_from(url.to_owned());
        assert_eq!(read("sqlite:"), Ok(StoreKind::Sqlite(None)));
        assert_eq!(read("sqlite:/var/lib/c"), Ok(StoreKind::Sqlite(Some("/var/lib/c".into()))));
        assert_eq!(read("memory:"), Ok(StoreKind::Memory));
        for url in ["redis://:pw@h", "rediss://h", "redis+cluster://a,b", "redis+sentinel://a/main"] {
            assert!(matches!(read(url), Ok(StoreKind::Redis(_))), "{url}");
        }
        for url in ["postgres://a:pw@h/d", "postgresql://h:5433/d?sslmode=disable"] {
            assert!(matches!(read(url), Ok(StoreKind::Postgres(_))), "{url}");
        }
        for url in [
            "redis:hush",
            "redis://hush:port",
            "postgres://a@h:hush/d",
            "mysql://hush",
            "hush",
            "sqlite://hush",
        ] {
            let error = read(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
    }
}
