//! `GET /ws`: from a request to a socket.
//!
//! The handshake is RFC 6455, section 4.2, without extensions; the only subprotocol is that of packed frames. What a browser can be made to send is refused
//! here by its origin; whose socket it is says the ticket, in the first frame.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use confidant_chat_protocol::{ErrorName, Failure, RefusedSent};
use confidant_listener::{Connection, Kept};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use crate::caller::{self, Known, malformed, single};
use crate::packed::{Form, PACKED};
use crate::{App, answer, socket};

/// Answers the handshake; the socket goes on by itself.
pub(crate) fn open(app: &Arc<App>, mut request: Request) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    match handshake(app, &parts) {
        Ok((response, known, kept)) => {
            let form = match response.headers().contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
                true => Form::Packed,
                false => Form::Plain,
            };
            tokio::spawn(take_over(Arc::clone(app), known, kept, form, upgrade));
            response
        }
        Err(refused) => {
            let mut response = answer::refused(&refused);
            response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            response
        }
    }
}

fn handshake(app: &App, parts: &Parts) -> Result<(Response, Known, Kept), RefusedSent> {
    let known = caller::of_socket(parts, &app.settings)?;
    let has = |name: &HeaderName, token: &str| {
        let lines = parts.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
    };
    let is_handshake = parts.method == Method::GET
        && has(&header::CONNECTION, "upgrade")
        && has(&header::UPGRADE, "websocket")
        && single(&parts.headers, &header::SEC_WEBSOCKET_VERSION)? == Some("13");
    let key = single(&parts.headers, &header::SEC_WEBSOCKET_KEY)?
        .filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
    let (Some(key), true) = (key, is_handshake) else {
        let hint = "open it with a WebSocket client, version 13; or send frames to POST /chats/events";
        return Err(malformed("this is not the handshake of a WebSocket", hint));
    };
    let Some(connection) = parts.extensions.get::<Connection>() else {
        let hint = "send frames to POST /chats/events";
        let error = ErrorName::Request(Failure::Unavailable);
        return Err(RefusedSent::new(error, "this server has no sockets", hint));
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = HeaderValue::try_from(accept(key)).map_err(|_| answer::failed())?;
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if has(&header::SEC_WEBSOCKET_PROTOCOL, PACKED) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PACKED));
    }
    Ok((response, known, connection.keep()))
}

async fn take_over(app: Arc<App>, known: Known, kept: Kept, form: Form, upgrade: OnUpgrade) {
    let Ok(Ok(upgraded)) = tokio::time::timeout(UPGRADE, upgrade).await else {
        tracing::debug!("chats: a handshake was not finished");
        return;
    };
    let socket = app.service.connect(known.caller.origin, known.caller.network);
    // In a task of its own: this one would be larger by what it no longer needs, for as long as the socket is open.
    tokio::spawn(socket::run(TokioIo::new(upgraded), socket, kept, (app.settings.patience, form)));
}

/// The answer to a handshake's key.
fn accept(key: &str) -> String {
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(hash.finish())
}

/// The longest that the answer to a handshake may be on its way.
const UPGRADE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
