//! The body of a request: JSON only, no more than its route's limit, and not forever.
//!
//! A page of another site can send a form without asking; it cannot send `application/json`. That is why the kind is checked
//! although nobody needs it for reading. Easy to get wrong: refusing without reading. Many clients write the whole body before
//! they read, so some of it is thrown away beside the answer; else they would see a reset connection instead of the reason.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use confidant_chat_protocol::{ErrorName, Failure, RefusedSent};
use futures_util::StreamExt as _;

use crate::caller::{malformed, single};

/// Whether the body is declared as plain JSON.
pub(crate) fn check_kind(headers: &HeaderMap) -> Result<(), RefusedSent> {
    let media = single(headers, &header::CONTENT_TYPE)?.unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(malformed("the body is not declared as JSON", "send `Content-Type: application/json`"));
    }
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(malformed("the body is compressed", "send it as it is"));
    }
    Ok(())
}

/// A whole body of at most `limit` bytes, within this time.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
) -> Result<Vec<u8>, RefusedSent> {
    let late = || malformed("the body did not arrive in time", "send it again, over a faster connection");
    tokio::time::timeout(patience, pieces(headers, body, limit)).await.unwrap_or_else(|_| Err(late()))
}

async fn pieces(headers: &HeaderMap, body: Body, limit: usize) -> Result<Vec<u8>, RefusedSent> {
    let announced = single(headers, &header::CONTENT_LENGTH)?.and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > limit as u64) {
        discard(body);
        return Err(too_large(limit));
    }
    let mut pieces = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| malformed("the body ended before it was complete", "send it again"))?;
        if bytes.len() + piece.len() > limit {
            throw_away(pieces);
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Throws away some of a body that was refused, beside the answer.
pub(crate) fn discard(body: Body) {
    throw_away(body.into_data_stream());
}

fn throw_away(mut pieces: BodyDataStream) {
    let drain = async move {
        let mut left = LINGER_BYTES;
        while let Some(Ok(piece)) = pieces.next().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    };
    tokio::spawn(tokio::time::timeout(LINGER, drain));
}

fn too_large(limit: usize) -> RefusedSent {
    let what = format!("the body has more than {limit} bytes");
    RefusedSent::new(ErrorName::Request(Failure::TooLarge), &what, "send less at once")
}

/// The most that is thrown away after a body was refused, and the longest that this may take.
const LINGER_BYTES: usize = 16 * 1024 * 1024;
const LINGER: Duration = Duration::from_secs(5);
