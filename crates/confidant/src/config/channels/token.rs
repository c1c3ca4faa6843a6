//! A secret that may stand in the settings, or in a file beside them.

use confidant_display::debug_without_content;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

/// A secret; empty if it is not given. Prints as stars.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Token(SecretString);

impl Token {
    /// The secret, or what is in its file, whichever is given; `name` is the setting's.
    #[cfg(any(feature = "discord", feature = "matrix"))]
    pub(crate) fn or_file(
        &self,
        file: Option<&std::path::Path>,
        name: &str,
    ) -> anyhow::Result<Option<SecretString>> {
        let given = !self.0.expose_secret().is_empty();
        match file {
            Some(_) if given => {
                Err(anyhow::anyhow!("{name} and {name}_file are both set; hint: keep one of them"))
            }
            Some(path) => {
                let token = crate::files::read_secret(path).map_err(|error| match error {
                    crate::files::ReadError::Io(..) => {
                        anyhow::anyhow!("{name}_file: {error}; hint: check the path and its owner")
                    }
                    crate::files::ReadError::Open(..) => anyhow::anyhow!("{name}_file: {error}"),
                })?;
                Ok(Some(SecretString::from(token.trim())))
            }
            None => Ok(given.then(|| self.0.clone())),
        }
    }
}

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(SecretString::from(token))
    }
}

impl Default for Token {
    fn default() -> Self {
        Self(SecretString::from(""))
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

debug_without_content!(Token(***));
