//! Secrets: from a variable, or from the file that the variable with `_FILE` at its end names.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::{Config, ConfigError, Environment};
use crate::files;

/// The secrets that were given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    /// `CHECKPOINT_ENCRYPTION_KEY`.
    pub(crate) master: Option<Secret>,
    /// `OLD_CHECKPOINT_ENCRYPTION_KEY`, separated by commas.
    pub(crate) retired: Option<Secret>,
    /// `LUMERA_MEMORY_KEY`.
    pub(crate) memory: Option<Secret>,
    /// `OLD_LUMERA_MEMORY_KEY`, separated by commas.
    pub(crate) retired_memory: Option<Secret>,
    /// The key that the model's server wants to see.
    pub(crate) model: Option<SecretString>,
}

/// A secret, or where it is. Prints as stars.
#[derive(Clone, Debug)]
pub(crate) enum Secret {
    /// The secret itself, as it was at the start.
    Value { variable: &'static str, value: SecretString },
    /// The file that holds it, to be read whenever it is needed.
    File { variable: String, path: PathBuf },
}

impl Secrets {
    pub(super) fn find(environment: &Environment, config: &Config) -> Result<Self, ConfigError> {
        let model = config.model.key_variable().map(|name| plain(environment, name)).transpose()?.flatten();
        Ok(Self {
            master: Secret::find(environment, MASTER)?,
            retired: Secret::find(environment, RETIRED)?,
            memory: Secret::find(environment, MEMORY)?,
            retired_memory: Secret::find(environment, RETIRED_MEMORY)?,
            model: model.map(|(_, value)| SecretString::from(value)),
        })
    }
}

impl Secret {
    fn find(environment: &Environment, variable: &'static str) -> Result<Option<Self>, ConfigError> {
        let in_file = format!("{variable}_FILE");
        match (environment.value(variable), environment.value(&in_file)) {
            (Some(_), Some(_)) => Err(both(variable, &in_file)),
            (Some(value), None) => {
                Ok(Some(Self::Value { variable, value: SecretString::from(value.to_owned()) }))
            }
            (None, Some(path)) => Ok(Some(Self::File { variable: in_file, path: PathBuf::from(path) })),
            (None, None) => Ok(None),
        }
    }

    /// The secret as it is now.
    pub(crate) fn read(&self) -> Result<SecretString, files::ReadError> {
        match self {
            Self::Value { value, .. } => Ok(value.clone()),
            Self::File { path, .. } => Ok(SecretString::from(files::read_secret(path)?.as_str())),
        }
    }

    /// Where it comes from, for messages.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Value { variable, .. } => (*variable).to_owned(),
            Self::File { variable, path } => format!("{variable} ({})", path.display()),
        }
    }
}

/// The value of a variable or of the file that it names, with the name it was found under.
pub(super) fn plain(environment: &Environment, name: &str) -> Result<Option<(String, String)>, ConfigError> {
    let in_file = format!("{name}_FILE");
    match (environment.value(name), environment.value(&in_file)) {
        (Some(_), Some(_)) => Err(both(name, &in_file)),
        (Some(value), None) => Ok(Some((name.to_owned(), value.to_owned()))),
        (None, Some(path)) => match files::read_secret(Path::new(path)) {
            Ok(value) => Ok(Some((in_file, value.trim().to_owned()))),
            Err(error) => {
                let message = error.to_string();
                let (what, hint) = message.split_once("; hint: ").unwrap_or((&message, "check the path"));
                Err(ConfigError { source_name: in_file, what: what.to_owned(), hint: hint.to_owned() })
            }
        },
        (None, None) => Ok(None),
    }
}

fn both(name: &str, in_file: &str) -> ConfigError {
    ConfigError {
        source_name: name.to_owned(),
        what: format!("{in_file} is set, too"),
        hint: format!("set one of {name} and {in_file}"),
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value { value: a, .. }, Self::Value { value: b, .. }) => {
                a.expose_secret() == b.expose_secret()
            }
            (Self::File { path: a, .. }, Self::File { path: b, .. }) => a == b,
            _ => false,
        }
    }
}

const MASTER: &str = "CHECKPOINT_ENCRYPTION_KEY";
const RETIRED: &str = "OLD_CHECKPOINT_ENCRYPTION_KEY";
const MEMORY: &str = "LUMERA_MEMORY_KEY";
const RETIRED_MEMORY: &str = "OLD_LUMERA_MEMORY_KEY";

#[cfg(test)]
mod tests {
    use super::*;

    fn find<const N: usize>(vars: [(&str, &str); N]) -> Result<Secrets, ConfigError> {
        Secrets::find(&Environment::from(vars), &Config::default())
    }

    #[test]
    fn secrets_come_from_a_variable_or_a_private_file_and_never_print() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        files::create(&path, b"hush\n").unwrap();
        let secrets = find([("CHECKPOINT_ENCRYPTION_KEY_FILE", path.to_str().unwrap())]).unwrap();
        assert_eq!(secrets.master.as_ref().unwrap().read().unwrap().expose_secret(), "hush\n");
        let secrets =
            find([("CHECKPOINT_ENCRYPTION_KEY", "hush"), ("OLD_CHECKPOINT_ENCRYPTION_KEY", "")]).unwrap();
        assert!(!format!("{secrets:?}").contains("hush"));
        assert_eq!(secrets.retired, None);
    }

    #[test]
    fn both_at_once_is_an_error() {
        let error =
            find([("CHECKPOINT_ENCRYPTION_KEY", "a"), ("CHECKPOINT_ENCRYPTION_KEY_FILE", "b")]).unwrap_err();
        assert!(error.to_string().contains("set one of"), "{error}");
    }
}
