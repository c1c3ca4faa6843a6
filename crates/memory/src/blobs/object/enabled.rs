//! The store behind [`super::open`], on the crate `object_store`.
//!
//! Its own retries are off: it does not repeat a create whose answer got lost, and we may, since an object's name is the
//! hash of its bytes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
    StaticCredentialProvider,
};
use secrecy::ExposeSecret;

use super::failure::{Failure, Watched};
use super::{Addressing, Cloud, Credentials, Limits, MAX_PAUSE, ObjectSettings, Place};
use crate::blobs::http::{Trouble, base, client};
use crate::blobs::{Blobs, Locator, MAX_BYTES, Pointer, Removed, fits};
use crate::{Error, Result};

pub(super) fn open(settings: &ObjectSettings, place: &Place) -> Result<Arc<dyn Blobs>> {
    let endpoint = settings
        .endpoint
        .as_deref()
        .map(|text| base(text, "the object store's endpoint", settings.transport))
        .transpose()?;
    let any = reqwest::Url::parse("https://cloud.invalid").map_err(|_| unusable())?;
    let watched = Watched(client(endpoint.as_ref().unwrap_or(&any), settings.limits.request)?);
    let retry =
        RetryConfig { max_retries: 0, retry_timeout: settings.limits.total, ..RetryConfig::default() };
    let store: Arc<dyn ObjectStore> = match place.cloud {
        Cloud::S3 => Arc::new(s3(settings, place, endpoint, watched, retry)?),
        Cloud::Azure => Arc::new(azure(settings, place, endpoint, watched, retry)?),
        Cloud::Google => Arc::new(google(settings, place, endpoint, watched, retry)?),
    };
    Ok(Arc::new(Objects { store, prefix: place.prefix.clone(), limits: settings.limits }))
}

fn s3(
    settings: &ObjectSettings,
    place: &Place,
    endpoint: Option<reqwest::Url>,
    watched: Watched,
    retry: RetryConfig,
) -> Result<impl ObjectStore> {
    let virtual_hosted = settings.addressing == Addressing::VirtualHosted;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&place.bucket)
        .with_region(settings.region.as_deref().unwrap_or("us-east-1"))
        .with_virtual_hosted_style_request(virtual_hosted)
        .with_disable_bulk_delete(true)
        .with_allow_http(true)
        .with_http_connector(watched)
        .with_retry(retry);
    if let Some(mut url) = endpoint {
        let host = url.host_str().unwrap_or_default().to_owned();
        let within = format!("{}.", place.bucket);
        if virtual_hosted && !host.starts_with(&within) {
            url.set_host(Some(&format!("{within}{host}"))).map_err(|_| {
                Error::invalid(
                    "the bucket cannot be part of the endpoint's host name",
                    "use path addressing, or an endpoint with a host name instead of an address",
                )
            })?;
        }
        builder = builder.with_endpoint(url.as_str().trim_end_matches('/'));
    }
    builder = match &settings.credentials {
        Credentials::S3 { access_key_id, secret_access_key, session_token } => {
            let builder = builder
                .with_access_key_id(access_key_id)
                .with_secret_access_key(secret_access_key.expose_secret());
            match session_token {
                Some(token) => builder.with_token(token.expose_secret()),
                None => builder,
            }
        }
        _ => builder.with_skip_signature(true),
    };
    builder.build().map_err(|_| unusable())
}

fn azure(
    settings: &ObjectSettings,
    place: &Place,
    endpoint: Option<reqwest::Url>,
    watched: Watched,
    retry: RetryConfig,
) -> Result<impl ObjectStore> {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(&place.bucket)
        .with_allow_http(true)
        .with_http_connector(watched)
        .with_retry(retry);
    if let Some(url) = endpoint {
        builder = builder.with_endpoint(url.as_str().trim_end_matches('/').to_owned());
    }
    builder = match &settings.credentials {
        Credentials::AzureKey { account, access_key } => {
            builder.with_account(account).with_access_key(access_key.expose_secret())
        }
        Credentials::AzureSas { account, signature } => builder
            .with_account(account)
            .with_config(object_store::azure::AzureConfigKey::SasKey, signature.expose_secret()),
        _ => builder.with_skip_signature(true),
    };
    builder.build().map_err(|_| unusable())
}

fn google(
    settings: &ObjectSettings,
    place: &Place,
    endpoint: Option<reqwest::Url>,
    watched: Watched,
    retry: RetryConfig,
) -> Result<impl ObjectStore> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&place.bucket)
        .with_http_connector(watched)
        .with_retry(retry);
    if let Some(url) = endpoint {
        builder = builder.with_base_url(url.as_str().trim_end_matches('/'));
    }
    // Given any credentials, the builder does not go looking for some in the home folder.
    let bearer =
        |token: &str| Arc::new(StaticCredentialProvider::new(GcpCredential { bearer: token.to_owned() }));
    builder = match &settings.credentials {
        Credentials::GoogleServiceAccount { key_json } => {
            builder.with_service_account_key(key_json.expose_secret())
        }
        Credentials::GoogleToken { token } => builder.with_credentials(bearer(token.expose_secret())),
        _ => builder.with_credentials(bearer("")).with_skip_signature(true),
    };
    builder.build().map_err(|_| unusable())
}

/// The builder's own message may quote what it was given.
fn unusable() -> Error {
    Error::invalid(
        "the object store's settings cannot be used",
        "check its URL, its endpoint and the form of its credentials",
    )
}

/// What one request came to.
type Attempt<T> = std::result::Result<T, Failure>;

#[derive(Debug)]
struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    limits: Limits,
}

impl Objects {
    fn path(&self, name: &str) -> Path {
        if self.prefix.is_empty() { Path::from(name) } else { Path::from(format!("{}/{name}", self.prefix)) }
    }

    /// Tries until it works, fails for good, was tried often enough, or took too long.
    async fn persist<T, F>(&self, mut attempt: impl FnMut() -> F) -> Attempt<T>
    where
        F: Future<Output = Attempt<T>>,
    {
        let persisting = async {
            let mut pause = self.limits.pause;
            let mut left = self.limits.retries;
            loop {
                match attempt().await {
                    Err(failure) if failure.may_pass() && left > 0 => {
                        tracing::debug!(store.kind = "object", store.failure = ?failure, "trying again");
                    }
                    other => return other,
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
                left -= 1;
            }
        };
        let total: Duration = self.limits.total;
        tokio::time::timeout(total, persisting).await.unwrap_or(Err(Failure::Trouble(Trouble::Slow)))
    }

    async fn write(&self, path: &Path, bytes: &PutPayload, mode: PutMode) -> Attempt<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(path, bytes.clone(), options).await.map_err(|error| Failure::of(&error))?;
        Ok(())
    }

    async fn read(&self, path: &Path) -> Attempt<Vec<u8>> {
        let got =
            self.store.get_opts(path, GetOptions::default()).await.map_err(|error| Failure::of(&error))?;
        if got.meta.size > MAX_BYTES {
            return Err(Failure::TooBig);
        }
        let mut bytes = Vec::new();
        let mut chunks = got.into_stream();
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| Failure::of(&error))?);
            if bytes.len() as u64 > MAX_BYTES {
                return Err(Failure::TooBig);
            }
        }
        Ok(bytes)
    }

    /// Creates the object. One that is there counts only if its bytes are right; else it is replaced, since its name
    /// says what it must be.
    async fn keep(&self, path: &Path, ciphertext: &[u8]) -> Attempt<()> {
        let payload = PutPayload::from(ciphertext.to_vec());
        match self.write(path, &payload, PutMode::Create).await {
            Err(Failure::Exists) => match self.read(path).await {
                Ok(bytes) if bytes == ciphertext => Ok(()),
                Ok(_) | Err(Failure::TooBig) => {
                    tracing::warn!(store.kind = "object", "a damaged object is being replaced");
                    self.write(path, &payload, PutMode::Overwrite).await
                }
                // It was there a moment ago.
                Err(Failure::Missing) => Err(Failure::Conflict),
                Err(other) => Err(other),
            },
            other => other,
        }
    }
}

#[async_trait]
impl Blobs for Objects {
    async fn put(
        &self,
        pointer: &Pointer,
        ciphertext: &[u8],
        _resume: Option<&Locator>,
        _noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<Locator> {
        fits(ciphertext, MAX_BYTES)?;
        let path = self.path(&pointer.hex());
        match self.persist(|| self.keep(&path, ciphertext)).await {
            // To a writer, only the bucket can be missing.
            Err(Failure::Missing) => Err(Failure::Refused(super::failure::Refused::NoBucket).error()),
            done => done.map(|()| Locator::default()).map_err(Failure::error),
        }
    }

    async fn get(&self, pointer: &Pointer, _locator: &Locator) -> Result<Vec<u8>> {
        let path = self.path(&pointer.hex());
        self.persist(|| self.read(&path)).await.map_err(Failure::error)
    }

    async fn remove(&self, pointer: &Pointer, _locator: &Locator) -> Result<Removed> {
        let path = self.path(&pointer.hex());
        let attempt = || async { self.store.delete(&path).await.map_err(|error| Failure::of(&error)) };
        match self.persist(attempt).await {
            Ok(()) | Err(Failure::Missing) => Ok(Removed::Gone),
            Err(failure) => Err(failure.error()),
        }
    }

    async fn check(&self) -> Result<()> {
        // Reading what is not there tells address, credentials and bucket apart, and changes nothing.
        let path = self.path("check");
        match self.persist(|| self.read(&path)).await {
            Ok(_) | Err(Failure::Missing | Failure::TooBig) => Ok(()),
            Err(failure) => Err(failure.error()),
        }
    }
}
