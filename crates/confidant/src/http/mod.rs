//! HTTP: the engine's surface for agents and OpenAI clients.

use std::time::Duration;

use confidant_engine::Engine;

/// What the operator chose for HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpSettings {
    /// The largest body that is read.
    pub max_body_bytes: usize,
    /// The longest that an answer may take, unless it is streamed.
    pub request_timeout: Duration,
    /// Requests that a token may make in a minute; 0 for no limit.
    pub requests_per_minute: u32,
}

/// Serves until `shutdown` resolves; then stops accepting and drains.
pub(crate) async fn serve(
    listener: tokio::net::TcpListener,
    engine: Engine,
    settings: HttpSettings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router(engine, settings)).with_graceful_shutdown(shutdown).await
}

/// Every route.
pub(crate) fn router(_engine: Engine, _settings: HttpSettings) -> axum::Router {
    axum::Router::new()
}
