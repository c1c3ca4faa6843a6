//! `[keyring]`: where sessions' keys are kept, apart from what they open.

use std::path::PathBuf;

use confidant_engine::storage::{PostgresAddress, RedisAddress};
use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyringSection {
    /// Without one, keys are beside the data.
    pub(crate) url: Option<KeyringUrl>,
}

/// What `keyring.url` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum KeyringUrl {
    /// `keyring.db` in a folder.
    Sqlite(PathBuf),
    /// A Redis or Valkey, with the prefix and certificates of the store's section.
    Redis(RedisAddress),
    /// A PostgreSQL database, with the schema and certificates of the store's section.
    Postgres(PostgresAddress),
}

impl KeyringUrl {
    /// What it is called, without its address.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Redis(_) => "redis",
            Self::Postgres(_) => "postgres",
        }
    }
}

impl TryFrom<String> for KeyringUrl {
    type Error = String;

    // What is not understood is not quoted: an address may hold a password.
    fn try_from(url: String) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", folder)) if !folder.is_empty() && !folder.starts_with("//") => {
                Ok(Self::Sqlite(PathBuf::from(folder)))
            }
            Some((scheme, _)) if scheme.starts_with("redis") => RedisAddress::parse(&url).map(Self::Redis),
            Some(("postgres" | "postgresql", _)) => PostgresAddress::parse(&url).map(Self::Postgres),
            _ => Err("this is not the address of a keyring; hint: use sqlite:/path/folder, redis://… or postgres://…, or leave it out to \
                      keep the keyring beside the data"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_without_being_quoted() {
        let read = |url: &str| KeyringUrl::try_from(url.to_owned());
        assert_eq!(read("sqlite:/var/lib/k"), Ok(KeyringUrl::Sqlite("/var/lib/k".into())));
        assert!(matches!(read("rediss://:pw@h:7/1"), Ok(KeyringUrl::Redis(_))));
        assert!(matches!(read("postgres://me:pw@h/d"), Ok(KeyringUrl::Postgres(_))));
        for url in ["sqlite:", "sqlite://hush", "hush", "memory:", "redis:hush"] {
            let error = read(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
    }
}
