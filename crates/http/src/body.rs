//! What a client sends: JSON bodies and query strings, read with care.
//!
//! A body is refused by its announced length before a byte of it is read, and by its real length as soon as that is
//! past the limit. Errors say where the fault is and never quote the body, which serde's own messages would.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::error::ApiError;

/// A JSON body, which has a schema of its own: what is read is what is described.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned + ToSchema> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let hint = "send JSON with `Content-Type: application/json`";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(ApiError::new(
                status,
                "unsupported_media_type",
                "the body is not declared as JSON",
                hint,
            ));
        }
        parse(&bytes(request, app).await?).map(Self)
    }
}

/// A whole body, if it is not too large and not too slow.
pub(super) async fn bytes(request: Request, app: &App) -> Result<Bytes, ApiError> {
    let reading = read(request, app.settings.max_body_bytes);
    tokio::time::timeout(app.settings.request_timeout, reading).await.map_err(|_| {
        let hint = "send it faster, or raise server.request_timeout_seconds";
        ApiError::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body did not arrive in time", hint)
    })?
}

/// The parameters after the `?`. Unknown ones are refused: a misspelled `dry_run` must not erase anything.
#[derive(Debug)]
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned + IntoParams, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(params)| Self(params)).map_err(|_| {
            let hint = "see /openapi.json for the parameters of this route; booleans are `true` or `false`";
            ApiError::invalid("the query string has an unknown or invalid parameter", hint)
        })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

async fn read(request: Request, most: usize) -> Result<Bytes, ApiError> {
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut body = request.into_body().into_data_stream();
    if announced.is_some_and(|announced| announced > most as u64) {
        linger(body);
        return Err(ApiError::too_large(most));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let broken = |_| ApiError::invalid("the body ended before it was complete", "send it again");
        let piece = piece.map_err(broken)?;
        if bytes.len() + piece.len() > most {
            linger(body);
            return Err(ApiError::too_large(most));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.into())
}

/// Throws away some of what is still coming, beside the answer. Many clients write the whole body before they read, and
/// would see a reset connection instead of the reason.
fn linger(mut body: BodyDataStream) {
    let drain = async move {
        let mut left = LINGER_BYTES;
        while let Some(Ok(piece)) = body.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    };
    tokio::spawn(tokio::time::timeout(LINGER, drain));
}

/// The most that is thrown away after a body was refused, and the longest that this may take.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
const LINGER: Duration = Duration::from_secs(5);

/// Reads JSON; says where it fails, in words of ours.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let fault = match serde_path_to_error::deserialize(&mut reader) {
        Ok(value) => match reader.end() {
            // Serde would take the fields of a struct from a list as well, by their order.
            Ok(()) if bytes.trim_ascii_start().starts_with(b"{") => return Ok(value),
            Ok(()) => return Err(ApiError::invalid("the body is not a JSON object", SEE_DESCRIPTION)),
            Err(error) => Fault::of(String::new(), &error),
        },
        Err(error) => Fault::of(error.path().to_string(), error.inner()),
    };
    Err(fault.into())
}

const SEE_DESCRIPTION: &str = "see /openapi.json for what this route takes";

/// Where JSON is not what it should be.
struct Fault {
    category: Category,
    path: String,
    /// Serde's message, which may quote the body: only its first word or two are looked at.
    message: String,
    line: usize,
    column: usize,
}

impl Fault {
    fn of(path: String, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        Self { category: error.classify(), path, message, line: error.line(), column: error.column() }
    }

    /// The name in backquotes after `prefix`, if it is fit to be repeated.
    fn name_after(&self, prefix: &str) -> Option<&str> {
        let name = self.message.strip_prefix(prefix)?.split('`').nth(1)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (!name.is_empty() && name.len() <= 40 && name.chars().all(plain)).then_some(name)
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        let place = format!("line {}, column {}", fault.line, fault.column);
        if fault.category != Category::Data {
            let hint = "check quotes, commas and brackets, and send UTF-8";
            return Self::invalid(format!("the body is not valid JSON ({place})"), hint);
        }
        let hint = SEE_DESCRIPTION;
        if let Some(name) = fault.name_after("missing field ") {
            return Self::invalid(format!("the field `{name}` is missing"), hint).at(name.to_owned());
        }
        if fault.message.starts_with("unknown field ") {
            let Some(name) = fault.name_after("unknown field ") else {
                return Self::invalid(format!("the body has an unknown field ({place})"), hint);
            };
            return Self::invalid(format!("unknown field `{name}` ({place})"), hint).at(name.to_owned());
        }
        if let Some(name) = fault.name_after("duplicate field ") {
            return Self::invalid(format!("duplicate field `{name}` ({place})"), hint).at(name.to_owned());
        }
        // The path has only names that this program knows: where a type is wrong, the field was recognised.
        if fault.path.is_empty() || fault.path == "." {
            return Self::invalid(format!("the body has the wrong type ({place})"), hint);
        }
        Self::invalid(format!("the field `{}` has the wrong type ({place})", fault.path), hint).at(fault.path)
    }
}

/// A JSON reply, which has a schema of its own: what is sent is what is described.
pub(super) fn reply<T: Serialize + ToSchema>(value: &T) -> Result<axum::response::Response, ApiError> {
    let json = serde_json::to_vec(value).map_err(|_| ApiError::internal())?;
    let mut response = axum::response::Response::new(Body::from(json));
    response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("application/json"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors matter here")]
    struct Shape {
        query: String,
        #[serde(default)]
        lines: Vec<Line>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the errors matter here")]
    struct Line {
        at: u64,
    }

    #[test]
    fn faults_are_located_and_nothing_is_quoted() {
        let cases = [
            ("{\"query\": \"canary", "the body is not valid JSON (line 1, column 17)"),
            ("", "the body is not valid JSON (line 1, column 0)"),
            ("canary", "the body is not valid JSON (line 1, column 1)"),
            ("{\"query\": \"x\"} canary", "the body is not valid JSON (line 1, column 16)"),
            ("\"canary\"", "the body has the wrong type (line 1, column 8)"),
            ("[\"canary\"]", "the body is not a JSON object"),
            ("{}", "the field `query` is missing"),
            ("{\"query\": 7}", "the field `query` has the wrong type (line 1, column 11)"),
            ("{\"query\": \"x\", \"wat\": \"canary\"}", "unknown field `wat` (line 1, column 20)"),
            (
                "{\"query\": \"x\", \"canary with words\": 1}",
                "the body has an unknown field (line 1, column 34)",
            ),
            ("{\"query\": \"x\", \"query\": \"canary\"}", "duplicate field `query` (line 1, column 22)"),
            (
                "{\"query\": \"x\", \"lines\": [{\"at\": \"canary\"}]}",
                "the field `lines[0].at` has the wrong type (line 1, column 40)",
            ),
        ];
        for (body, message) in cases {
            let error = parse::<Shape>(body.as_bytes()).unwrap_err();
            assert_eq!((error.status.as_u16(), error.message.as_ref()), (400, message), "{body}");
            assert!(!format!("{error:?}").contains("canary"), "{error:?}");
        }
    }
}
