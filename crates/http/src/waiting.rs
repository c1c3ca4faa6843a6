//! What a server says while it waits for the servers that it needs itself: that it lives, and that it is not ready.

use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::routing::get;
use confidant_listener::{PlaceLimits, listen};
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;

use super::error::{ApiError, Form};
use super::{crowded, health};

/// Answers for as long as `until` does not resolve; whoever listens on the same socket goes on from there.
pub fn serve_waiting(listener: TcpListener, until: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    let router =
        Router::new().route("/healthz", get(health::healthz)).fallback(async |uri: Uri| {
            let message = "the server has not started yet: its store or bus cannot be reached";
            let hint = "it keeps trying; check that the servers of store.url, keyring.url and bus.url run; the log says which one fails";
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "starting", message, hint);
            error.retry_after(2).render(Form::of(uri.path()))
        });
    // Little is asked of a server that has not started.
    let limits = PlaceLimits { most: 256, per_peer: 0, first_head: Duration::from_secs(10) };
    Box::pin(listen(listener, router, limits, crowded::refusal, until))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    async fn got(path: &str, port: u16) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("the request is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.expect("the reply is whole");
        reply
    }

    #[tokio::test]
    async fn a_server_that_waits_lives_and_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let until = async move { drop(stopped.await) };
        let serving = tokio::spawn(serve_waiting(listener, Box::pin(until)));
        assert!(got("/healthz", port).await.starts_with("HTTP/1.1 200"));
        for path in ["/readyz", "/v1/models", "/api/v1/session/x/turns"] {
            let reply = got(path, port).await;
            assert!(reply.starts_with("HTTP/1.1 503") && reply.contains("starting"), "{reply}");
        }
        drop(stop);
        serving.await.expect("it ends when it is told to");
    }
}
