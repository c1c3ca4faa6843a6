//! What the failures of an object store mean.
//!
//! `object_store` reports a failed status with the server's answer in its message, and keeps the status itself
//! private. So answers are looked at one layer below, where they come in: [`Watched`] turns those that are not for
//! `object_store` to understand (refused, full, no such bucket…) into [`Refused`], which is found again among the
//! sources of its error. Bodies are read for their error code only, and never quoted.

use std::error::Error as StdError;

use async_trait::async_trait;
use futures_util::StreamExt;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};

use crate::Error;
use crate::blobs::http::Trouble;

/// Why a request came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No answer.
    Trouble(Trouble),
    /// An answer, and it is no.
    Refused(Refused),
    /// There is no such object.
    Missing,
    /// There is one already.
    Exists,
    /// Somebody else is at the same object at this moment.
    Conflict,
    /// The object is larger than any of ours.
    TooBig,
}

/// An answer that says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object store refused the request")]
pub(super) enum Refused {
    Credentials,
    Permission,
    Clock,
    NoBucket,
    Full,
    Redirected,
    Busy,
    Conflict,
    Other(u16),
}

impl Failure {
    pub(super) fn of(error: &object_store::Error) -> Self {
        let mut next: Option<&(dyn StdError + 'static)> = Some(error);
        let mut trouble = Trouble::Broken;
        while let Some(error) = next {
            if let Some(refused) = error.downcast_ref::<Refused>() {
                return match refused {
                    Refused::Conflict => Self::Conflict,
                    other => Self::Refused(*other),
                };
            }
            if let Some(error) = error.downcast_ref::<HttpError>() {
                trouble = Trouble::with_tls(error).unwrap_or(match error.kind() {
                    HttpErrorKind::Timeout => Trouble::Slow,
                    HttpErrorKind::Connect => Trouble::Down,
                    _ => Trouble::Broken,
                });
            }
            next = error.source();
        }
        match error {
            object_store::Error::NotFound { .. } => Self::Missing,
            object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
                Self::Exists
            }
            _ => Self::Trouble(trouble),
        }
    }

    /// Whether the same request may succeed a moment later.
    pub(super) fn may_pass(self) -> bool {
        match self {
            Self::Trouble(trouble) => trouble.may_pass(),
            Self::Conflict | Self::Refused(Refused::Busy) => true,
            Self::Refused(_) | Self::Missing | Self::Exists | Self::TooBig => false,
        }
    }

    pub(super) fn error(self) -> Error {
        let refused = match self {
            Self::Trouble(trouble) => return trouble.error("the object store"),
            Self::Missing => {
                return Error::not_found(
                    "the artifact is not in the object store",
                    "if the bucket was emptied or its prefix changed, put the object back; or forget the \
                     memory",
                );
            }
            Self::TooBig => {
                return Error::tampered(
                    "what is in place of the artifact was not written by this program",
                    "restore the object from a backup, or forget the memory",
                );
            }
            Self::Exists | Self::Conflict => Refused::Conflict,
            Self::Refused(refused) => refused,
        };
        let (what, hint) = refused.words();
        let what = match refused {
            Refused::Other(status) => format!("{what} (HTTP status {status})"),
            _ => what.to_owned(),
        };
        Error::unavailable(what, hint)
    }
}

impl Refused {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Credentials => (
                "the object store does not accept the credentials",
                "check the access key and its secret, and that they are for this server and region",
            ),
            Self::Permission => (
                "the credentials do not have permission for this in the object store",
                "allow them to read, write, list and delete objects in the bucket",
            ),
            Self::Clock => ("the object store rejects this machine's time", "set this machine's clock"),
            Self::NoBucket => (
                "the object store has no such bucket or container",
                "create it, or correct its name in the URL; it is not created for you",
            ),
            Self::Full => (
                "the object store is full, or over its quota",
                "free some space or raise the quota, then try again",
            ),
            Self::Redirected => (
                "the object store says that the bucket is at another region or endpoint",
                "set the bucket's own region and endpoint",
            ),
            Self::Busy => ("the object store has an error or is overloaded", "try again later"),
            Self::Conflict => ("the object store is changing the same object right now", "try again"),
            Self::Other(_) => (
                "the object store refused the request",
                "check the endpoint, and that it is the right kind of store",
            ),
        }
    }

    /// What an answer means, if it is not for `object_store` to understand.
    fn of(status: u16, code: &str) -> Option<Self> {
        match (status, code) {
            (200..=299 | 304 | 412, _) => None,
            (_, "NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted") => Some(Self::NoBucket),
            (404, _) => None,
            (_, "RequestTimeTooSkewed" | "RequestExpired") => Some(Self::Clock),
            (507, _)
            | (_, "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage" | "AccountQuotaExceeded")
            | (_, "EntityTooLarge" | "QuotaExceededException" | "XMinioAdminBucketQuotaExceeded") => {
                Some(Self::Full)
            }
            (409, "ConditionalRequestConflict" | "OperationAborted") => Some(Self::Conflict),
            (409, _) => None,
            (300..=399, _) => Some(Self::Redirected),
            (_, "AuthorizationHeaderMalformed" | "PermanentRedirect") => Some(Self::Redirected),
            (403, "AccessDenied" | "AllAccessDisabled" | "AuthorizationPermissionMismatch") => {
                Some(Self::Permission)
            }
            (401 | 403, _) => Some(Self::Credentials),
            (400, "InvalidAccessKeyId" | "InvalidToken" | "ExpiredToken") => Some(Self::Credentials),
            (408 | 429 | 500..=599, _) => Some(Self::Busy),
            (status, _) => Some(Self::Other(status)),
        }
    }
}

/// A client that looks at answers before `object_store` does.
#[derive(Clone, Debug)]
pub(super) struct Watched(pub(super) reqwest::Client);

impl HttpConnector for Watched {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.call(request).await?;
        let status = response.status().as_u16();
        if matches!(status, 200..=299 | 304 | 412) {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let mut said = Vec::new();
        let mut chunks = body.bytes_stream();
        while let Some(Ok(chunk)) = chunks.next().await {
            said.extend_from_slice(&chunk);
            if said.len() > ANSWER_LIMIT {
                break;
            }
        }
        match Refused::of(status, error_code(&said)) {
            Some(refused) => Err(HttpError::new(HttpErrorKind::Unknown, refused)),
            // Without its body: nobody needs it, and it cannot get into a message.
            None => Ok(HttpResponse::from_parts(parts, Vec::new().into())),
        }
    }
}

/// The error code in an answer's XML, or nothing.
fn error_code(body: &[u8]) -> &str {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let code =
        text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code);
    code.unwrap_or_default()
}

/// More of an answer that says no is not read.
const ANSWER_LIMIT: usize = 64 << 10;
