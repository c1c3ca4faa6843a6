//! HTTP: the engine's surface for agents, OpenAI clients and whoever keeps the server running.
//!
//! ```text
//! observe ─▶ render_errors ─▶ same_host ─▶ route ─▶ guard ─▶ handler
//! (counts,   (errors,         (browsers)           (token,   (gets only what has
//!  log)       headers)                              limits)   been decided for it)
//! ```
//!
//! One file per resource. `auth.rs` decides who may have what, `error.rs` how a refusal reads, `body.rs` how a body is read,
//! `wire/` which JSON stands for the engine's types. `build` is a plain function, so that tests need no socket. Nothing here
//! logs content, tokens or ids: a log line has the route's template, and the token by its id.

mod answers;
mod app;
mod audit;
mod auth;
mod body;
mod chat;
mod console;
mod context;
mod crowded;
mod decisions;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod known;
mod limits;
mod mcp;
mod metrics;
mod openai;
mod openapi;
mod person;
mod sessions;
mod settings;
mod standing;
mod turns;
mod waiting;
mod wire;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use confidant_engine::Engine;
use confidant_listener::listen;
use confidant_mcp::Mount;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use app::{App, shared};
use auth::TokenId;
use error::{ApiError, Form};

pub use axum::Router;
pub use confidant_listener::PlaceLimits;
pub use settings::HttpSettings;
pub use standing::{Component, Damage, Gauge, Part, Standing, Stores};
pub use waiting::serve_waiting;

/// Serves until `shutdown` resolves; then accepts nothing more and finishes what is under way.
///
/// `other_routes` belong to others: they are counted and logged like ours, on connections of the same count, but nothing here
/// decides who may ask them. They have no fallback of their own, and no path of ours.
///
/// Boxed, both: what answers requests is compiled here, where it is built for speed.
pub fn serve(
    listener: TcpListener,
    engine: Engine,
    settings: HttpSettings,
    mcp: Mount,
    standing: Standing,
    other_routes: Router,
    shutdown: BoxFuture<'static, ()>,
) -> BoxFuture<'static, ()> {
    let (router, app) = build(engine, settings, Some(mcp), standing, other_routes);
    let shutdown = async move {
        shutdown.await;
        app.stopping.store(true, Ordering::Relaxed);
        // Its streams would go on for as long as somebody listens.
        app.mcp.iter().for_each(Mount::stop);
    };
    Box::pin(listen(listener, router, settings.places, crowded::refusal, Box::pin(shutdown)))
}

/// Serves health and metrics only, for a process that takes no requests.
pub fn serve_health(
    listener: TcpListener,
    engine: Engine,
    settings: HttpSettings,
    shutdown: BoxFuture<'static, ()>,
) -> BoxFuture<'static, ()> {
    let app = shared(engine, settings, None, Standing::default(), Bytes::new());
    let open = Router::new().route("/healthz", get(health::healthz)).route("/readyz", get(health::readyz));
    let guarded = Router::new().route("/metrics", get(metrics::metrics));
    let router = around(guarded, open, Router::new(), &app);
    Box::pin(listen(listener, router, settings.places, crowded::refusal, shutdown))
}

/// Every route, ready to be called without a socket.
#[cfg(test)]
pub(crate) fn router(engine: Engine, settings: HttpSettings) -> Router {
    build(engine, settings, None, Standing::default(), Router::new()).0
}

/// Every route with everything around it, and what its requests share.
fn build(
    engine: Engine,
    settings: HttpSettings,
    mcp: Option<Mount>,
    standing: Standing,
    other_routes: Router,
) -> (Router, App) {
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
        .routes(routes!(openai::create_response))
        .routes(routes!(openai::retrieve_response, openai::delete_response))
        .routes(routes!(openai::cancel_response))
        .routes(routes!(openai::input_items))
        .routes(routes!(openai::create_conversation))
        .routes(routes!(
            openai::retrieve_conversation,
            openai::update_conversation,
            openai::delete_conversation
        ))
        .routes(routes!(openai::list_items, openai::create_items))
        .routes(routes!(openai::retrieve_item, openai::delete_item))
        .routes(routes!(openai::embed))
        .routes(routes!(openai::models))
        .routes(routes!(openai::model))
        .routes(routes!(chat::chat))
        .routes(routes!(context::show, context::forget))
        .routes(routes!(context::pin, context::unpin))
        .routes(routes!(context::why))
        .routes(routes!(context::invite, context::remove))
        .routes(routes!(context::candidates))
        .routes(routes!(context::approve))
        .routes(routes!(audit::list))
        .routes(routes!(console::show))
        .routes(routes!(metrics::metrics));
    let (open, open_paths) = open.split_for_parts();
    let (guarded, guarded_paths) = guarded.split_for_parts();
    let mut description = openapi::Description::openapi();
    description.merge(open_paths);
    description.merge(guarded_paths);
    let description = serde_json::to_vec(&description).unwrap_or_default().into();
    let app = shared(engine, settings, mcp, standing, description);
    let router = around(guarded.route("/mcp", any(mcp::answer)), open, other_routes, &app);
    (router, app)
}

/// Routes that want a token, routes that do not, and routes of others, with everything around them.
fn around(guarded: Router<App>, open: Router<App>, other_routes: Router, app: &App) -> Router {
    guarded
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), auth::guard))
        .merge(open)
        .method_not_allowed_fallback(async || wrong_method())
        .fallback(async || no_route())
        .layer(middleware::from_fn(same_host))
        .layer(middleware::map_response(kept_nowhere))
        .with_state(Arc::clone(app))
        .merge(other_routes)
        .layer(middleware::from_fn(render_errors))
        .layer(middleware::from_fn_with_state(Arc::clone(app), observe))
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

/// No cache keeps an answer of ours.
async fn kept_nowhere(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Writes errors down in the form that the path's clients understand, turns a panic into one, and sets the headers that
/// every answer has.
async fn render_errors(request: Request, next: Next) -> Response {
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
    // Others say themselves how long their answers are good for.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
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
    let hint = "call this server from a program, or from a page on the same host";
    let message = "the request comes from another site's web page";
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
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        "this route does not support this method",
        hint,
    )
}
