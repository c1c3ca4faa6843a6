//! Answers: JSON, frames as they are made, refusals, and the headers that each of them has.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use confidant_chat_protocol::{Body as _, ErrorName, Failure, RefusedSent};
use confidant_chats::service::{Answered, Body as Answer, Cookie, Frames};
use futures_util::{Stream, stream};

use crate::caller::{Client, Known, SESSION_ID};
use crate::cookie;

/// An answer, with the session's id for whoever keeps it.
pub(crate) fn answered(answered: Answered, known: &Known) -> Response {
    let (kind, body) = match answered.body {
        Answer::Json(json) => (JSON, Body::from(json)),
        Answer::Frames(frames) => (LINES, Body::from_stream(lines(frames))),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    match (known.client, answered.session) {
        (_, None) => {}
        (Client::Page, Some(cookie)) => {
            if cookie == Cookie::Clear {
                headers.insert(CLEAR_SITE_DATA, HeaderValue::from_static("\"cache\", \"storage\""));
            }
            headers.extend(
                cookie::header(&cookie, &known.caller.origin).map(|value| (header::SET_COOKIE, value)),
            );
        }
        (Client::Program, Some(Cookie::Set { id, .. })) => {
            if let Ok(mut value) = HeaderValue::try_from(cookie::encode(&id)) {
                value.set_sensitive(true);
                headers.insert(SESSION_ID, value);
            }
        }
        (Client::Program, Some(Cookie::Clear)) => {}
    }
    response
}

/// A refusal, with the status of its kind.
pub(crate) fn refused(refused: &RefusedSent) -> Response {
    let mut response = Response::new(Body::from(refused.write().unwrap_or_default()));
    *response.status_mut() =
        StatusCode::from_u16(refused.error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    if let Some(wait) = refused.retry_ms {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.div_ceil(1000)));
    }
    response
}

/// Something went wrong that is not the caller's fault.
pub(crate) fn failed() -> RefusedSent {
    tracing::error!("chats: a request panicked");
    let hint = "try again later, or ask the operator of this server";
    RefusedSent::new(ErrorName::Request(Failure::Unavailable), "the server failed at this request", hint)
}

/// What is said of another method than a route has.
pub(crate) fn wrong_method() -> Response {
    let hint = "send a POST; GET is for news, at /ws and /chats/events";
    let error = ErrorName::Request(Failure::Malformed);
    let mut response = refused(&RefusedSent::new(error, "this route does not have this method", hint));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

/// Sets what every answer has.
pub(crate) async fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::REFERRER_POLICY, "no-referrer"),
];
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// One frame per line. The next is made when there is room for it on its way.
fn lines(frames: Box<Frames>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold(frames, async |mut frames| {
        let line = match frames.next().await?.write() {
            Ok(mut line) => {
                line.push(b'\n');
                Ok(Bytes::from(line))
            }
            Err(malformed) => {
                tracing::error!(error = %malformed, "chats: an answer cannot be written");
                Err(io::Error::other("an answer cannot be written"))
            }
        };
        Some((line, frames))
    })
}
