//! Secrets: from a variable, or from the file that the variable with `_FILE` at its end names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use confidant_display::Hinted as _;
use confidant_memory::blobs::object::Credentials;
use secrecy::{ExposeSecret as _, SecretString};

use super::model::ModelSection;
use super::tools::ToolSecrets;
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
    /// `REDIS_PASSWORD`, for an address without one.
    pub(crate) redis_password: Option<SecretString>,
    /// `PGPASSWORD`, for an address without one.
    pub(crate) postgres_password: Option<SecretString>,
    /// `CHAT_PASSWORD`: of an account at another server.
    pub(crate) chat_password: Option<SecretString>,
    /// `CHAT_RECOVERY_CODE`: of the same.
    pub(crate) chat_recovery_code: Option<SecretString>,
    /// The key that the model's server wants to see.
    pub(crate) model: Option<SecretString>,
    /// The same for other models, by their names.
    pub(crate) models: BTreeMap<String, SecretString>,
    /// Who we are to stores of artifacts.
    pub(crate) blobs: BlobSecrets,
    /// What servers of tools get from the environment.
    pub(crate) tools: ToolSecrets,
    /// `CONCEPTS_GRAPH_PASSWORD`.
    pub(crate) graph: Option<SecretString>,
    /// What the account on Matrix signs in with.
    #[cfg(feature = "matrix")]
    pub(crate) matrix: MatrixSecrets,
}

/// Secrets of the account on Matrix.
#[cfg(feature = "matrix")]
#[derive(Clone, Debug, Default)]
pub(crate) struct MatrixSecrets {
    /// `MATRIX_PASSWORD`.
    pub(crate) password: Option<SecretString>,
    /// `MATRIX_ACCESS_TOKEN`.
    pub(crate) access_token: Option<SecretString>,
    /// `MATRIX_RECOVERY_KEY`.
    pub(crate) recovery_key: Option<SecretString>,
}

#[cfg(feature = "matrix")]
impl MatrixSecrets {
    fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let secret = |name: &str| {
            plain(environment, name).map(|found| found.map(|(_, value)| SecretString::from(value)))
        };
        Ok(Self {
            password: secret(MATRIX_PASSWORD)?,
            access_token: secret(MATRIX_ACCESS_TOKEN)?,
            recovery_key: secret(MATRIX_RECOVERY_KEY)?,
        })
    }
}

/// Credentials for stores of artifacts, under the names that their own tools use.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlobSecrets {
    s3: Option<(String, SecretString, Option<SecretString>)>,
    azure_account: Option<String>,
    azure_key: Option<SecretString>,
    azure_signature: Option<SecretString>,
    google_key: Option<SecretString>,
}

impl BlobSecrets {
    fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let text = |name: &str| plain(environment, name).map(|found| found.map(|(_, value)| value));
        let secret = |name: &str| text(name).map(|found| found.map(SecretString::from));
        let s3 = match (text("AWS_ACCESS_KEY_ID")?, secret("AWS_SECRET_ACCESS_KEY")?) {
            (Some(id), Some(key)) => Some((id, key, secret("AWS_SESSION_TOKEN")?)),
            _ => None,
        };
        // Google's variable is the name of a file already.
        let google_key = match environment.value("GOOGLE_APPLICATION_CREDENTIALS") {
            Some(path) => {
                files::read_secret(Path::new(path)).ok().map(|key| SecretString::from(key.as_str()))
            }
            None => None,
        };
        Ok(Self {
            s3,
            azure_account: text("AZURE_STORAGE_ACCOUNT_NAME")?,
            azure_key: secret("AZURE_STORAGE_ACCOUNT_KEY")?,
            azure_signature: secret("AZURE_STORAGE_SAS_TOKEN")?,
            google_key,
        })
    }

    /// What was given for this kind of store; nobody in particular if nothing was.
    pub(crate) fn for_url(&self, url: &str) -> Credentials {
        let given = match url.split(':').next() {
            Some("s3") => self.s3.clone().map(|(access_key_id, secret_access_key, session_token)| {
                Credentials::S3 { access_key_id, secret_access_key, session_token }
            }),
            Some("az") => self.azure_account.clone().and_then(|account| {
                let key = self.azure_key.clone();
                let by_key =
                    key.map(|access_key| Credentials::AzureKey { account: account.clone(), access_key });
                let signature = self.azure_signature.clone();
                by_key.or_else(|| signature.map(|signature| Credentials::AzureSas { account, signature }))
            }),
            Some("gs") => {
                self.google_key.clone().map(|key_json| Credentials::GoogleServiceAccount { key_json })
            }
            _ => None,
        };
        given.unwrap_or(Credentials::Anonymous)
    }
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
        let key = |model: &ModelSection| {
            let found = model.key_variable().map(|name| plain(environment, name)).transpose()?.flatten();
            Ok(found.map(|(_, value)| SecretString::from(value)))
        };
        let mut models = BTreeMap::new();
        for (name, model) in config.models.iter() {
            models.extend(key(model)?.map(|key| (name.clone(), key)));
        }
        Ok(Self {
            master: Secret::find(environment, MASTER)?,
            retired: Secret::find(environment, RETIRED)?,
            memory: Secret::find(environment, MEMORY)?,
            retired_memory: Secret::find(environment, RETIRED_MEMORY)?,
            redis_password: plain(environment, REDIS_PASSWORD)?.map(|(_, value)| SecretString::from(value)),
            postgres_password: plain(environment, POSTGRES_PASSWORD)?
                .map(|(_, value)| SecretString::from(value)),
            chat_password: plain(environment, CHAT_PASSWORD)?.map(|(_, value)| SecretString::from(value)),
            chat_recovery_code: plain(environment, CHAT_RECOVERY_CODE)?
                .map(|(_, value)| SecretString::from(value)),
            model: key(&config.model)?,
            models,
            blobs: BlobSecrets::find(environment)?,
            tools: ToolSecrets::find(environment, &config.tools)?,
            graph: plain(environment, GRAPH)?.map(|(_, value)| SecretString::from(value)),
            #[cfg(feature = "matrix")]
            matrix: MatrixSecrets::find(environment)?,
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
                let (what, hint) = error.what_and_hint("check the path");
                Err(ConfigError { source_name: in_file, what, hint })
            }
        },
        (None, None) => Ok(None),
    }
}

fn both(name: &str, in_file: &str) -> ConfigError {
    ConfigError {
        source_name: name.to_owned(),
        what: format!("{in_file} is set as well"),
        hint: format!("set only one of {name} and {in_file}"),
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

/// Whether a variable of this name holds a secret, as far as names tell.
pub(super) fn is_secret(name: &str) -> bool {
    // The name of a file is none.
    !name.ends_with("_FILE")
        && (SECRETS.contains(&name)
            || ["_API_KEY", "_PASSWORD", "_TOKEN"].iter().any(|end| name.ends_with(end)))
}

/// Which secrets were given, by their variables, and where those stand.
pub(super) fn given(environment: &Environment, config: &Config) -> Vec<(String, String)> {
    let models = std::iter::once(&config.model).chain(config.models.iter().map(|(_, model)| model));
    let mut names: Vec<&str> =
        SECRETS.into_iter().chain(models.filter_map(ModelSection::key_variable)).collect();
    names.sort_unstable();
    names.dedup();
    let both = names.into_iter().flat_map(|name| [name.to_owned(), format!("{name}_FILE")]);
    let set = both.filter(|name| environment.value(name).is_some());
    set.map(|name| {
        let described = environment.described(&name);
        let source = if described == name { "environment".to_owned() } else { described };
        (name, source)
    })
    .collect()
}

/// Variables that programs we start must not inherit.
pub(super) const SECRETS: [&str; 23] = [
    GRAPH,
    MASTER,
    RETIRED,
    MEMORY,
    RETIRED_MEMORY,
    REDIS_PASSWORD,
    POSTGRES_PASSWORD,
    // Addresses may hold passwords.
    "REDIS_URL",
    "CONFIDANT_STORE__URL",
    "CONFIDANT_KEYRING__URL",
    "CONFIDANT_WEB__URL",
    CHAT_PASSWORD,
    CHAT_RECOVERY_CODE,
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    MATRIX_PASSWORD,
    MATRIX_ACCESS_TOKEN,
    MATRIX_RECOVERY_KEY,
    "CONFIDANT_CHANNELS__MATRIX__PASSWORD",
    "CONFIDANT_CHANNELS__MATRIX__ACCESS_TOKEN",
    "CONFIDANT_CHANNELS__MATRIX__RECOVERY_KEY",
];
const MATRIX_PASSWORD: &str = "MATRIX_PASSWORD";
const MATRIX_ACCESS_TOKEN: &str = "MATRIX_ACCESS_TOKEN";
const MATRIX_RECOVERY_KEY: &str = "MATRIX_RECOVERY_KEY";
const GRAPH: &str = "CONCEPTS_GRAPH_PASSWORD";
const MASTER: &str = "CHECKPOINT_ENCRYPTION_KEY";
const CHAT_PASSWORD: &str = "CHAT_PASSWORD";
const CHAT_RECOVERY_CODE: &str = "CHAT_RECOVERY_CODE";
const REDIS_PASSWORD: &str = "REDIS_PASSWORD";
const POSTGRES_PASSWORD: &str = "PGPASSWORD";
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
        assert!(error.to_string().contains("set only one of"), "{error}");
    }
}
