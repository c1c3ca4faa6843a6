//! HTTP: the engine's surface for agents, OpenAI clients and whoever keeps the server running.
//!
//! ```text
//! observe ─▶ dress ─▶ same_host ─▶ route ─▶ guard ─▶ handler
//! (counts,   (errors,  (browsers)           (token,   (gets only what has
//!  log)       headers)                       limits)   been decided for it)
//! ```
//!
//! One file per resource. [`auth`] decides who may have what, [`error`] how a refusal reads, [`body`] how a body is read.
//! [`build`] is a plain function, so that tests need no socket. Nothing here logs content, tokens or ids: a log line has
//! the route's template, and the token by its id.

mod answers;
mod auth;
mod body;
mod chat;
mod context;
mod decisions;
mod error;
pub(crate) mod fuzzing;
mod health;
mod known;
mod limits;
mod listen;
mod mcp;
mod metrics;
mod openai;
mod openapi;
mod person;
mod sessions;
mod turns;

#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use confidant_channel::Health;
use confidant_engine::{Clock, Engine, SystemClock};
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use auth::TokenId;
use error::{ApiError, Form};
use known::Known;
use limits::Limits;
use metrics::Metrics;

use crate::mcp::Mount;

/// What the operator chose for HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpSettings {
    /// The largest body that is read.
    pub max_body_bytes: usize,
    /// The longest that a body or an answer may take, unless the answer is streamed.
    pub request_timeout: Duration,
    /// Requests that a token may make in a minute; 0 for no limit.
    pub requests_per_minute: u32,
}

/// Serves until `shutdown` resolves; then accepts nothing more and finishes what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    engine: Engine,
    settings: HttpSettings,
    mcp: Mount,
    channels: Health,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (router, app) = build(engine, settings, Some(mcp), channels);
    let shutdown = async move {
        shutdown.await;
        app.stopping.store(true, Ordering::Relaxed);
        // Its streams would go on for as long as somebody listens.
        app.mcp.iter().for_each(Mount::stop);
    };
    listen::listen(listener, router, shutdown).await;
    Ok(())
}

/// Serves health and metrics only, for a process that takes no requests.
pub(crate) async fn serve_health(
    listener: TcpListener,
    engine: Engine,
    settings: HttpSettings,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let app = shared(engine, settings, None, Health::default(), Bytes::new());
    let open = Router::new().route("/healthz", get(health::healthz)).route("/readyz", get(health::readyz));
    let guarded = Router::new().route("/metrics", get(metrics::metrics));
    let router = around(guarded, open, &app);
    listen::listen(listener, router, shutdown).await;
    Ok(())
}

/// Every route, ready to be called without a socket.
#[cfg(test)]
pub(crate) fn router(engine: Engine, settings: HttpSettings) -> Router {
    build(engine, settings, None, Health::default()).0
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    engine: Engine,
    settings: HttpSettings,
    /// What is below `/mcp`; nothing where there is no memory, as in tests of other things.
    mcp: Option<Mount>,
    limits: Limits,
    /// Tokens that were looked up, for when the store is away.
    known: Known,
    /// How the channels are.
    channels: Health,
    metrics: Metrics,
    clock: SystemClock,
    /// `/openapi.json`, written once.
    description: Bytes,
    /// Set when the server was asked to stop; turns that end without a word were parked then.
    stopping: AtomicBool,
}

type App = Arc<Shared>;

impl Shared {
    /// Seconds since 1970.
    fn now(&self) -> i64 {
        self.clock.now().0 / 1000
    }

    /// Does something to its end, even if the client goes away: a half-done erasure would have no receipt.
    async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, confidant_engine::Error>> + Send + 'static,
    ) -> Result<T, ApiError> {
        match tokio::time::timeout(self.settings.request_timeout, tokio::spawn(work)).await {
            Ok(Ok(outcome)) => Ok(outcome?),
            Ok(Err(_)) => Err(ApiError::internal()),
            Err(_) => {
                let hint = "ask again in a while; the audit log says when it is done";
                let message = "this takes longer than a request may; it goes on";
                Err(ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message, hint))
            }
        }
    }
}

/// Every route with everything around it, and what its requests share.
fn build(engine: Engine, settings: HttpSettings, mcp: Option<Mount>, channels: Health) -> (Router, App) {
    let open = OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(openapi::document));
    let guarded = OpenApiRouter::new()
        .routes(routes!(turns::create))
        .routes(routes!(turns::cancel))
        .routes(routes!(decisions::list))
        .routes(routes!(decisions::decide))
        .routes(routes!(decisions::show))
        .routes(routes!(decisions::decide_anywhere))
        .routes(routes!(sessions::export))
        .routes(routes!(sessions::about))
        .routes(routes!(sessions::erase))
        .routes(routes!(person::export))
        .routes(routes!(person::erase))
        .routes(routes!(openai::complete))
        .routes(routes!(openai::models))
        .routes(routes!(openai::model))
        .routes(routes!(chat::chat))
        .routes(routes!(context::show, context::forget))
        .routes(routes!(context::pin, context::unpin))
        .routes(routes!(context::why))
        .routes(routes!(context::candidates))
        .routes(routes!(context::approve))
        .routes(routes!(metrics::metrics));
    let (open, open_paths) = open.split_for_parts();
    let (guarded, guarded_paths) = guarded.split_for_parts();
    let mut description = openapi::Description::openapi();
    description.merge(open_paths);
    description.merge(guarded_paths);
    let description = serde_json::to_vec(&description).unwrap_or_default().into();
    let app = shared(engine, settings, mcp, channels, description);
    let router = around(guarded.route("/mcp", any(mcp::answer)), open, &app);
    (router, app)
}

fn shared(
    engine: Engine,
    settings: HttpSettings,
    mcp: Option<Mount>,
    channels: Health,
    description: Bytes,
) -> App {
    Arc::new(Shared {
        limits: Limits::new(settings.requests_per_minute),
        known: Known::new(),
        metrics: Metrics::new(engine.clone(), channels.clone()),
        channels,
        clock: SystemClock,
        description,
        stopping: AtomicBool::new(false),
        engine,
        settings,
        mcp,
    })
}

/// Routes that want a token and routes that do not, with everything around them.
fn around(guarded: Router<App>, open: Router<App>, app: &App) -> Router {
    guarded
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), auth::guard))
        .merge(open)
        .method_not_allowed_fallback(async || wrong_method())
        .fallback(async || no_route())
        .layer(middleware::from_fn(same_host))
        .layer(middleware::from_fn(dress))
        .layer(middleware::from_fn_with_state(Arc::clone(app), observe))
        .with_state(Arc::clone(app))
}

/// Counts a request and writes its line in the log.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    if method == Method::POST {
        // Somebody is about to speak.
        app.engine.warm_up();
    }
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let (status, took) = (response.status().as_u16(), began.elapsed());
    app.metrics.request(route, &method, status, took);
    let token = response.extensions().get::<TokenId>().map_or("-", |TokenId(id)| id.as_str());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if matches!(route, "/healthz" | "/readyz" | "/metrics") {
        tracing::debug!(
            http.method = metrics::method_name(&method),
            http.route = route,
            http.status = status,
            duration_ms,
            token.id = token
        );
    } else {
        tracing::info!(
            http.method = metrics::method_name(&method),
            http.route = route,
            http.status = status,
            duration_ms,
            token.id = token
        );
    }
    response
}

/// Writes errors down in the form that the path's clients understand, turns a panic into one, and sets the headers that
/// every answer has.
async fn dress(request: Request, next: Next) -> Response {
    let form = Form::of(request.uri().path());
    let outcome = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = outcome.unwrap_or_else(|_| {
        tracing::error!("a request panicked");
        ApiError::internal().into_response()
    });
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        let mut rendered = error.render(form);
        *rendered.extensions_mut() = std::mem::take(response.extensions_mut());
        rendered
            .headers_mut()
            .extend(response.headers_mut().remove(header::ALLOW).map(|v| (header::ALLOW, v)));
        response = rendered;
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Refuses a page of another site that has a browser ask for it.
///
/// A browser says in `Origin` where a script comes from; that must be the host that is asked. A name that an attacker
/// points at this machine passes this check, but a browser has no token to send along, and everything here wants one.
async fn same_host(request: Request, next: Next) -> Response {
    if is_same_host(request.headers()) {
        return next.run(request).await;
    }
    let hint = "call this server from a program, or from a page that it serves itself";
    let message = "the request comes from a page of another site";
    ApiError::new(StatusCode::FORBIDDEN, "foreign_origin", message, hint).into_response()
}

fn is_same_host(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some((scheme, origin)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return false,
    };
    let place = |text: &str| {
        let authority = text.parse::<Authority>().ok()?;
        Some((authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(default)))
    };
    place(origin).is_some_and(|origin| place(text(header::HOST)) == Some(origin))
}

fn no_route() -> ApiError {
    let hint = "see /openapi.json for the routes; a session id in a path is percent-encoded";
    ApiError::new(StatusCode::NOT_FOUND, "no_route", "there is no such route", hint)
}

fn wrong_method() -> ApiError {
    let hint = "see the Allow header and /openapi.json";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this route has no such method", hint)
}
