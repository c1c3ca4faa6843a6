//! `[store]`: where conversations are kept.

use std::path::PathBuf;

use confidant_engine::Durability;
use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub(crate) url: StoreKind,
    durability: Commit,
}

impl StoreSection {
    pub(crate) fn durability(&self) -> Durability {
        match self.durability {
            Commit::Power => Durability::Power,
            Commit::Process => Durability::Process,
        }
    }
}

/// What `store.url` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum StoreKind {
    /// SQLite files in a folder; without one, in the data folder.
    Sqlite(Option<PathBuf>),
    /// Nothing is kept.
    Memory,
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
            Some((scheme @ ("redis" | "rediss" | "postgres" | "postgresql"), _)) => Err(format!(
                "{scheme}: this build has no such store yet; hint: use sqlite: or sqlite:/path/folder"
            )),
            _ => Err("this is not the address of a store; hint: use sqlite:, sqlite:/path/folder or memory:"
                .to_owned()),
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
        for url in [
            "redis://:hush@h",
            "rediss://hush",
            "postgres://a:hush@h/d",
            "mysql://hush",
            "hush",
            "sqlite://hush",
        ] {
            let error = read(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
    }
}
