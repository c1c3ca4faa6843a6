//! `[keyring]`: where sessions' keys are kept, apart from what they open.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyringSection {
    url: Option<KeyringUrl>,
}

impl KeyringSection {
    /// The folder of its own, if it has one.
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        self.url.as_ref().map(|url| &url.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct KeyringUrl(PathBuf);

impl TryFrom<String> for KeyringUrl {
    type Error = String;

    fn try_from(url: String) -> Result<Self, String> {
        match url.strip_prefix("sqlite:") {
            Some(folder) if !folder.is_empty() && !folder.starts_with("//") => Ok(Self(PathBuf::from(folder))),
            _ => Err("this is not the address of a keyring; hint: use sqlite:/path/folder, or leave it out to keep the \
                      keyring beside the data"
                .to_owned()),
        }
    }
}
