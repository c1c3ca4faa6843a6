//! Connections: taken, bounded in number and patience, and let go of in good order.
//!
//! This is `axum::serve` with what that leaves out: a client that opens a connection and says nothing, or says it a byte
//! at a time, is not waited for forever and cannot take all the places.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// Serves until `shutdown` resolves, then accepts nothing more and waits for the connections that are left.
pub(super) async fn listen(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(PLACES));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, accept(&listener).await)
        };
        let (place, (stream, peer)) = tokio::select! {
            next = next => next,
            () = &mut shutdown => break,
        };
        let router = router.clone();
        let service = service_fn(move |request| answer(router.clone(), peer, request));
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                // Mostly clients that went away; the error has no content.
                tracing::debug!(error = %error, "a connection ended early");
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}

/// The longest that a request's head, or the next request on a connection, is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most connections at a time; more wait in the system's queue.
const PLACES: usize = 4096;

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small pieces of an answer go out at once.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(error = %error, "a connection keeps its delay");
                }
                return (stream, peer);
            }
            Err(error) => {
                // Out of files, or a client that was gone before it was taken: others may do better in a moment.
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn answer(
    router: Router,
    peer: SocketAddr,
    mut request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    request.extensions_mut().insert(ConnectInfo(peer));
    router.oneshot(request.map(Body::new)).await
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    use super::*;

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
        let server = tokio::spawn(listen(listener, router, async { drop(stopped.await) }));

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
