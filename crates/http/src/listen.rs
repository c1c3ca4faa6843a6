//! Connections: taken, bounded in number and patience, and let go of in good order.
//!
//! This is `axum::serve` with what that leaves out: a client that opens a connection and says nothing, or says it a byte
//! at a time, is not waited for forever and cannot take all the places ([`places`](super::places)). Whether the server lives
//! can be asked even when they are all taken.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::future::BoxFuture;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tower::ServiceExt as _;

use super::error::{ApiError, Form};
use super::places::{Busy, Place, PlaceLimits, Places};

/// Serves until `shutdown` resolves, then accepts nothing more and waits for the connections that are left.
pub(super) async fn listen(
    listener: TcpListener,
    router: Router,
    limits: PlaceLimits,
    mut shutdown: BoxFuture<'static, ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connections = GracefulShutdown::new();
    let places = Places::new(limits);
    loop {
        let (stream, peer) = tokio::select! {
            next = accept(&listener, &places) => next,
            () = &mut shutdown => break,
        };
        let Some(place) = places.enter(peer.ip()) else {
            tracing::debug!("a connection was refused: too many are open");
            continue;
        };
        let (router, held) = (router.clone(), Arc::clone(&place));
        let service = service_fn(move |request| answer(router.clone(), Arc::clone(&held), peer, request));
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => if let Err(error) = ended {
                    // Mostly clients that went away; the error has no content.
                    tracing::debug!(error = %error, "a connection ended early");
                },
                () = place.given_up() => tracing::debug!("an idle connection was closed"),
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// The longest that the next request on a connection is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

async fn accept(listener: &TcpListener, places: &Places) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small pieces of an answer go out at once.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(error = %error, "a connection's TCP_NODELAY could not be set");
                }
                return (stream, peer);
            }
            Err(error) => {
                // Out of files, or a client that was gone before it was taken: others may do better in a moment.
                tracing::warn!(error = %error, "a connection could not be accepted");
                places.make_room();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(
    router: Router,
    place: Arc<Place>,
    peer: SocketAddr,
    mut request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Watched>, Infallible> {
    let busy = place.busy();
    let path = request.uri().path();
    let response = if place.spare && !matches!(path, "/healthz" | "/readyz") {
        crowded(Form::of(path))
    } else {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.oneshot(request.map(Body::new)).await?
    };
    Ok(response.map(|body| Watched { body, _busy: busy }))
}

/// What those hear who get no more than a place for health.
fn crowded(form: Form) -> Response {
    let hint = "try again in a moment, or raise server.max_connections";
    let message = "all connections are in use";
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", message, hint);
    let mut response = error.render(form);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The body of an answer, whose connection is busy until it is out.
struct Watched {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::routing::{MethodRouter, get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    fn limits(most: usize) -> PlaceLimits {
        PlaceLimits { most, per_peer: 0, first_head: Duration::from_secs(60) }
    }

    /// A server whose `/` is answered never, and its address.
    async fn serve(limits: PlaceLimits) -> SocketAddr {
        serve_with(limits, get(async || std::future::pending::<()>().await)).await
    }

    async fn serve_with(limits: PlaceLimits, root: MethodRouter) -> SocketAddr {
        let router = Router::new().route("/", root).route("/healthz", get(async || "ok"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(listen(listener, router, limits, Box::pin(std::future::pending())));
        address
    }

    async fn says(address: SocketAddr, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(text.as_bytes()).await.unwrap();
        client
    }

    async fn asks(address: SocketAddr, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let mut client = says(address, &request).await;
        let mut reply = String::new();
        let read = client.read_to_string(&mut reply);
        tokio::time::timeout(Duration::from_secs(20), read).await.expect("an answer in time").unwrap();
        reply
    }

    #[tokio::test]
    async fn half_sent_requests_take_nobodys_place() {
        let address = serve(limits(8)).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(says(address, "GET /healthz HTTP/1.1\r\nhost: x\r\n").await);
        }
        assert!(asks(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        // The first ones had to make room.
        let mut rest = Vec::new();
        let ended = silent[0].read_to_end(&mut rest);
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await.expect("it was ended");
        assert!(rest.is_empty(), "{ended:?}");
    }

    #[tokio::test]
    async fn health_is_told_when_every_place_is_busy_and_nothing_else_is() {
        let at_work = Arc::new(Semaphore::new(0));
        let begins = Arc::clone(&at_work);
        let never = async move || {
            begins.add_permits(1);
            std::future::pending::<()>().await;
        };
        let address = serve_with(limits(3), get(never)).await;
        let mut busy = Vec::new();
        for _ in 0..3 {
            busy.push(says(address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await);
        }
        // One that is not at work yet would have to make room.
        let all = at_work.acquire_many(3);
        drop(tokio::time::timeout(Duration::from_secs(20), all).await.expect("all are at work").unwrap());
        assert!(asks(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        let refused = asks(address, "/other").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_connections"), "{refused}");
        assert!(refused.contains("hint"), "{refused}");
    }

    #[tokio::test]
    async fn whoever_never_sends_a_whole_head_is_not_waited_for() {
        let limits = PlaceLimits { first_head: Duration::from_millis(100), ..limits(8) };
        let address = serve(limits).await;
        for begun in ["", "GET /healthz HT"] {
            let mut client = says(address, begun).await;
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut rest)).await;
            assert!(ended.is_ok() && rest.is_empty(), "{begun:?}");
        }
    }

    #[tokio::test]
    async fn a_stop_accepts_nothing_more_and_finishes_what_is_under_way() {
        let (began, begun) = oneshot::channel::<()>();
        let (go, gone) = oneshot::channel::<()>();
        let once = Arc::new(Mutex::new(Some((began, gone))));
        let slow = move |ConnectInfo(peer): ConnectInfo<SocketAddr>| {
            let once = Arc::clone(&once);
            async move {
                let (began, gone) = once.lock().unwrap().take().unwrap();
                began.send(()).unwrap();
                gone.await.unwrap();
                format!("{}, at last", peer.ip())
            }
        };
        let router = Router::new().route("/", get(slow));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let server =
            tokio::spawn(listen(listener, router, limits(100), Box::pin(async { drop(stopped.await) })));

        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        begun.await.unwrap();
        stop.send(()).unwrap();
        // The listener is gone once a new connection is refused.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("127.0.0.1, at last"), "{reply}");
        server.await.unwrap();
    }
}
