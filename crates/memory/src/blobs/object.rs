//! Object stores: S3-compatible ones, Azure Blob Storage, Google Cloud Storage.
//!
//! A blob is one object, `prefix/` and the hex of its pointer, created only if it is not there. The environment and the
//! cloud's metadata service are never asked for credentials: what is not in [`ObjectSettings`] is not used.
//!
//! Needs the feature `cloud`; without it [`open`] says so.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::Blobs;
use crate::{Error, Result};

/// Which store, and how to talk to it.
#[derive(Clone, Debug)]
pub struct ObjectSettings {
    /// `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`; the prefix may be left out.
    pub url: String,
    /// The server's address, if it is not the cloud's own: `https://host:port`.
    pub endpoint: Option<String>,
    /// S3's region; `us-east-1` if it is not given.
    pub region: Option<String>,
    /// How S3's bucket is named in requests.
    pub addressing: Addressing,
    /// Whether TLS may be left out.
    pub transport: Transport,
    /// Who is asking.
    pub credentials: Credentials,
    /// How long to try.
    pub limits: Limits,
}

impl ObjectSettings {
    /// The cloud's own server, TLS, and the usual limits.
    #[must_use]
    pub fn new(url: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            url: url.into(),
            endpoint: None,
            region: None,
            addressing: Addressing::Path,
            transport: Transport::TlsOnly,
            credentials,
            limits: Limits::default(),
        }
    }
}

/// How S3's bucket is named in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/object`: every S3-compatible server understands it.
    #[default]
    Path,
    /// `https://bucket.host/object`.
    VirtualHosted,
}

/// Whether TLS may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TLS, except to this machine itself.
    #[default]
    TlsOnly,
    /// Plain HTTP, where the address says so.
    PlainHttpAllowed,
}

/// Who is asking. Secrets are not printed.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Nobody in particular: requests are not signed.
    Anonymous,
    /// For `s3://`.
    S3 {
        /// The access key's id.
        access_key_id: String,
        /// The secret that belongs to it.
        secret_access_key: SecretString,
        /// For temporary keys.
        session_token: Option<SecretString>,
    },
    /// For `az://`.
    AzureKey {
        /// The storage account.
        account: String,
        /// One of its access keys, in base64.
        access_key: SecretString,
    },
    /// For `az://`.
    AzureSas {
        /// The storage account.
        account: String,
        /// A shared access signature: `sv=…&sig=…`.
        signature: SecretString,
    },
    /// For `gs://`.
    GoogleServiceAccount {
        /// The key file's content, as JSON.
        key_json: SecretString,
    },
    /// For `gs://`.
    GoogleToken {
        /// An OAuth access token.
        token: SecretString,
    },
}

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For one request, from connecting to the last byte.
    pub request: Duration,
    /// For one call, with all its requests and pauses.
    pub total: Duration,
    /// How often a request is made again after a failure that may pass.
    pub retries: u32,
    /// The pause before the first of them; each is twice as long as the one before, up to [`MAX_PAUSE`].
    pub pause: Duration,
}

/// The longest pause between two requests.
pub const MAX_PAUSE: Duration = Duration::from_secs(5);

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(20),
            total: Duration::from_secs(60),
            retries: 3,
            pause: Duration::from_millis(200),
        }
    }
}

/// Opens a store. No request is made: use [`Blobs::check`] for that.
pub fn open(settings: &ObjectSettings) -> Result<Arc<dyn Blobs>> {
    let place = Place::parse(&settings.url)?;
    place.admits(&settings.credentials)?;
    implementation::open(settings, &place)
}

#[cfg(feature = "cloud")]
mod failure;
#[cfg(feature = "cloud")]
#[path = "object/enabled.rs"]
mod implementation;
#[cfg(not(feature = "cloud"))]
mod implementation {
    use std::sync::Arc;

    use super::{Blobs, Error, ObjectSettings, Place, Result};

    pub(super) fn open(_settings: &ObjectSettings, _place: &Place) -> Result<Arc<dyn Blobs>> {
        Err(Error::invalid(
            "this program was built without object stores",
            "`scripts/run --all` or `cargo build --release -p confidant` builds them; or keep artifacts in a local folder",
        ))
    }
}

/// What a URL says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    cloud: Cloud,
    bucket: String,
    /// Without slashes at its ends; may be empty.
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cloud {
    S3,
    Azure,
    Google,
}

impl Place {
    fn parse(url: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(
                format!("the object store's URL {what}"),
                "write s3://bucket/prefix, az://container/prefix or gs://bucket/prefix; names have letters, digits, \
                 '.', '_' and '-'",
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
        let cloud = match scheme {
            "s3" => Cloud::S3,
            "az" => Cloud::Azure,
            "gs" => Cloud::Google,
            _ => return Err(wrong("has an unknown scheme")),
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_matches('/');
        let plain = |name: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            !name.is_empty() && name.bytes().all(known) && !name.bytes().all(|byte| byte == b'.')
        };
        if !plain(bucket) || !(3..=222).contains(&bucket.len()) {
            return Err(wrong("has no valid bucket name"));
        }
        if prefix.len() > 512 || !(prefix.is_empty() || prefix.split('/').all(plain)) {
            return Err(wrong("has a prefix that cannot be used"));
        }
        Ok(Self { cloud, bucket: bucket.into(), prefix: prefix.into() })
    }

    fn admits(&self, credentials: &Credentials) -> Result<()> {
        let fit = match credentials {
            Credentials::Anonymous => true,
            Credentials::S3 { .. } => self.cloud == Cloud::S3,
            Credentials::AzureKey { .. } | Credentials::AzureSas { .. } => self.cloud == Cloud::Azure,
            Credentials::GoogleServiceAccount { .. } | Credentials::GoogleToken { .. } => {
                self.cloud == Cloud::Google
            }
        };
        if fit {
            return Ok(());
        }
        Err(Error::invalid(
            "the credentials are not for the kind of object store in its URL",
            "s3:// takes an access key, az:// an account key or a signature, gs:// a service account or a token",
        ))
    }
}

#[cfg(test)]
mod tests;
