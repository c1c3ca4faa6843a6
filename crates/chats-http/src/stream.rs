//! `GET /chats/events`: news as server-sent events, where sockets do not pass.
//!
//! ```text
//! session ─▶ Service::listen ─▶ data: ready ─▶ id: seq, data: frame ─▶ …   quiet: a comment     ended: the last word, and the end
//! ```
//!
//! The frames are those of the socket; what a device asks, it sends with POST to the same path, with the number of its stream
//! (`Confidant-Stream`): then it may also ask for an answer, whose words come here. Easy to get wrong: what was
//! missed between two of these streams. It is not sent again: `ready` has the number of the newest change, and a device that
//! has another one asks with `sync_status_request`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use confidant_chat_protocol::{Body as _, ErrorName, Failure, RefusedSent, ServerFrame};
use confidant_chats::service::Socket;
use confidant_listener::{Connection, Kept};
use futures_util::{Stream, stream};

use crate::caller::{self, STREAM, malformed, single};
use crate::{App, answer};

/// Answers with news, until one side ends it.
pub(crate) async fn open(app: Arc<App>, request: Request) -> Response {
    match opened(&app, request).await {
        Ok(response) => response,
        Err(refused) => answer::refused(&refused),
    }
}

async fn opened(app: &App, request: Request) -> Result<Response, RefusedSent> {
    let (parts, _) = request.into_parts();
    let known = caller::of_reading(&parts, &app.settings)?;
    if known.caller.session.is_none() {
        return Err(caller::no_session());
    }
    let seen = single(&parts.headers, &LAST_EVENT_ID)?.map(str::parse::<u64>).transpose();
    let seen = seen.map_err(|_| malformed("Last-Event-ID is not a number", "leave it out"))?;
    let Some(connection) = parts.extensions.get::<Connection>() else {
        let hint = "ask with POST /chats/events";
        let error = ErrorName::Request(Failure::Unavailable);
        return Err(RefusedSent::new(error, "this server has no streams", hint));
    };
    let (socket, ready) = app.service.connect_session(&known.caller, seen).await?;
    let number = socket.number();
    let news = News {
        socket: Some(Box::new(socket)),
        first: Some(Box::new(ready)),
        kept: connection.keep(),
        quiet: app.settings.patience.ping,
    };
    let mut response = Response::new(Body::from_stream(news.stream()));
    response.headers_mut().insert(header::CONTENT_TYPE, EVENTS);
    // A proxy that collects an answer before it passes it on would pass on nothing.
    response.headers_mut().insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response.headers_mut().extend(number.map(|number| (STREAM, HeaderValue::from(number))));
    Ok(response)
}

/// A stream of news.
struct News {
    /// `None` once the last word was said.
    socket: Option<Box<Socket>>,
    first: Option<Box<ServerFrame>>,
    kept: Kept,
    /// After how long without news there is a comment.
    quiet: Duration,
}

impl News {
    fn stream(self) -> impl Stream<Item = io::Result<Bytes>> {
        stream::unfold(self, async |mut news| {
            let event = news.next().await?;
            Some((event, news))
        })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(first) = self.first.take() {
            return Some(event(&first));
        }
        let socket = self.socket.as_mut()?;
        let heard = tokio::select! {
            () = self.kept.stopping() => return None,
            heard = socket.news() => heard,
            () = tokio::time::sleep(self.quiet) => return Some(Ok(Bytes::from_static(b":\n\n"))),
        };
        match heard {
            Ok(frame) => Some(event(&frame)),
            Err(closing) => {
                self.socket = None;
                closing.last.map(|last| event(&last))
            }
        }
    }
}

/// A frame as an event. Its JSON is one line.
fn event(frame: &ServerFrame) -> io::Result<Bytes> {
    let json = frame.write().map_err(|malformed| {
        tracing::error!(error = %malformed, "chats: news cannot be written");
        io::Error::other("news cannot be written")
    })?;
    let id = frame.seq.map_or_else(String::new, |seq| format!("id: {seq}\n"));
    Ok(Bytes::from([id.as_bytes(), b"data: ", &json, b"\n\n"].concat()))
}

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
