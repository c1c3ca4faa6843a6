//! The loop that accepts connections, and the stop at its end.
//!
//! ```text
//! accept ─▶ place ─▶ task per connection: requests until it ends, is evicted, or becomes a socket
//! stop   ─▶ the listener closes ─▶ HTTP connections finish, sockets are told ─▶ all are gone
//! ```
//!
//! Easy to get wrong: what a stop waits for. It waits for every answer and every socket, so whoever stops sets the limit.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::response::Response;
use futures_util::future::BoxFuture;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::kept::{Connection, stopped};
use crate::places::{Busy, Place, PlaceLimits, Places};

/// What a path is answered on a connection beyond the last; `None` for the paths that are answered even there, which are
/// those that ask for health.
pub type Crowded = fn(path: &str) -> Option<Response>;

/// Serves until `shutdown` resolves. Then it accepts nothing more, tells sockets to close, and waits for the connections
/// that are left. Requests have [`ConnectInfo`] and [`Connection`] among their extensions.
pub async fn listen(
    listener: TcpListener,
    router: Router,
    limits: PlaceLimits,
    crowded: Crowded,
    mut shutdown: BoxFuture<'static, ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let places = Places::new(limits);
    // Every connection, and every socket that one has become, has a receiver of this as long as it lives.
    let stop = watch::Sender::new(false);
    loop {
        let (stream, peer) = tokio::select! {
            next = accept(&listener, &places) => next,
            () = &mut shutdown => break,
        };
        let Some(place) = places.enter(peer.ip()) else {
            tracing::debug!("a connection was refused: too many are open");
            continue;
        };
        let (router, stopping) = (router.clone(), stop.subscribe());
        let here = Connection::new(Arc::clone(&place), stopping.clone());
        let service = service_fn(move |request| answer(router.clone(), here.clone(), crowded, peer, request));
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::spawn(serve(connection, place, stopping));
    }
    drop(listener);
    stop.send_replace(true);
    stop.closed().await;
}

/// Carries a connection until it ends, becomes a socket, or has to make room.
async fn serve<S>(
    connection: UpgradeableConnection<TokioIo<TcpStream>, S>,
    place: Arc<Place>,
    mut stopping: watch::Receiver<bool>,
) where
    S: HttpService<Incoming, ResBody = Watched, Error = Infallible>,
    S::Future: Send,
{
    let (mut connection, mut given_up) = (pin!(connection), pin!(place.given_up()));
    let mut is_told = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    // Mostly clients that went away; the error has no content.
                    tracing::debug!(error = %error, "a connection ended early");
                }
                return;
            }
            () = &mut given_up => return tracing::debug!("an idle connection was closed"),
            () = stopped(&mut stopping), if !is_told => {
                connection.as_mut().graceful_shutdown();
                is_told = true;
            }
        }
    }
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
    connection: Connection,
    crowded: Crowded,
    peer: SocketAddr,
    mut request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Watched>, Infallible> {
    let place = connection.place();
    let busy = place.busy();
    let refusal = if place.spare { crowded(request.uri().path()) } else { None };
    let response = match refusal {
        Some(response) => response,
        None => {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(connection);
            router.oneshot(request.map(Body::new)).await?
        }
    };
    Ok(response.map(|body| Watched { body, _busy: busy }))
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

    use axum::Extension;
    use axum::extract::Request;
    use axum::http::{StatusCode, header};
    use axum::response::IntoResponse as _;
    use axum::routing::{MethodRouter, get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    fn crowded(path: &str) -> Option<Response> {
        let refusal = || (StatusCode::SERVICE_UNAVAILABLE, "too many").into_response();
        (path != "/healthz").then(refusal)
    }

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
        tokio::spawn(listen(listener, router, limits, crowded, Box::pin(std::future::pending())));
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
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("an answer in time").unwrap();
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
        let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it was ended");
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
        drop(tokio::time::timeout(Duration::from_secs(60), all).await.expect("all are at work").unwrap());
        assert!(asks(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        let refused = asks(address, "/other").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too many"), "{refused}");
    }

    #[tokio::test]
    async fn whoever_never_sends_a_whole_head_is_not_waited_for() {
        let limits = PlaceLimits { first_head: Duration::from_millis(100), ..limits(8) };
        let address = serve(limits).await;
        for begun in ["", "GET /healthz HT"] {
            let mut client = says(address, begun).await;
            let mut rest = Vec::new();
            let ended = tokio::time::timeout(Duration::from_secs(60), client.read_to_end(&mut rest)).await;
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
        let shutdown = Box::pin(async { drop(stopped.await) });
        let server = tokio::spawn(listen(listener, router, limits(100), crowded, shutdown));

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

    /// Becomes a socket that echoes one line at a time and says goodbye at a stop.
    async fn upgrade(Extension(connection): Extension<Connection>, mut request: Request) -> Response {
        let (upgrade, mut kept) = (hyper::upgrade::on(&mut request), connection.keep());
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            let mut byte = [0];
            loop {
                tokio::select! {
                    read = io.read(&mut byte) => match read {
                        Ok(1) => io.write_all(&byte).await.unwrap(),
                        _ => return,
                    },
                    () = kept.stopping() => return io.write_all(b"bye").await.unwrap(),
                }
            }
        });
        let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }

    async fn socket(address: SocketAddr) -> TcpStream {
        let mut client =
            says(address, "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n").await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"));
        client
    }

    #[tokio::test]
    async fn a_socket_keeps_its_place_until_it_ends() {
        let address = serve_with(limits(2), get(upgrade)).await;
        let mut sockets = [socket(address).await, socket(address).await];
        for client in &mut sockets {
            client.write_all(b"a").await.unwrap();
            assert_eq!(client.read_u8().await.unwrap(), b'a');
        }
        // Every place is a socket's, and none is evicted for a newcomer.
        assert!(asks(address, "/other").await.starts_with("HTTP/1.1 503"));
        assert!(asks(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        sockets[0].write_all(b"b").await.unwrap();
        assert_eq!(sockets[0].read_u8().await.unwrap(), b'b');
        drop(sockets);
        let ended = async { while !asks(address, "/other").await.starts_with("HTTP/1.1 404") {} };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the places are free again");
    }

    #[tokio::test]
    async fn a_stop_tells_sockets_and_waits_for_them() {
        let router = Router::new().route("/", get(upgrade));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = Box::pin(async { drop(stopped.await) });
        let server = tokio::spawn(listen(listener, router, limits(100), crowded, shutdown));
        let mut client = socket(address).await;
        stop.send(()).unwrap();
        let mut last = String::new();
        let read = client.read_to_string(&mut last);
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("it was told").unwrap();
        assert_eq!(last, "bye");
        server.await.unwrap();
    }
}
