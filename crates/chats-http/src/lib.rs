//! Client-sealed chats over HTTP and WebSocket.
//!
//! ```text
//! POST /account/…, /chats/…  ─▶ caller ─▶ body ─▶ Service::answer ─▶ JSON, or frames one per line      [caller, body, answer]
//! GET /ws                    ─▶ caller ─▶ upgrade ─▶ Socket: frames in, answers and news out           [ws, socket, packed]
//! GET /chats/events          ─▶ caller ─▶ news only, as server-sent events                            [stream]
//!                                 │
//!                    Host, Origin, Sec-Fetch-Site, cookie, headers, network
//! ```
//!
//! The service decides who somebody is; this crate decides what a browser may be made to say, and how much of it is read.
//!
//! - A page is believed only at the server's own origins: `Host` is one of theirs (a name that was pointed at this machine is
//!   not), `Origin` is the one of that host, and nothing that the browser says about itself is foreign.
//! - A cookie alone is nothing: it counts with the header `Confidant-Session`, from a page, and never beside other credentials.
//! - A body stops at its route's limit, a frame at the protocol's; before `hello`, at 4 KiB.
//! - A socket keeps its place among the listener's connections and is closed at a stop with 1001.
//!
//! Easy to get wrong: a program has no `Origin`. It may leave it out only if it shows nothing of a browser, that is, no cookie
//! and no `Sec-Fetch-Site`; then its origin is the one that its `Host` names, and it gets the session's id in a header that
//! pages never see.
//!
//! [`router`] is served by [`confidant_listener::listen`], which `/ws` needs for its place.

mod answer;
mod body;
mod caller;
mod cookie;
mod counted;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod network;
mod packed;
mod settings;
mod socket;
mod stream;
mod ws;

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use confidant_chat_protocol::{ROUTES, RefusedSent, Route, Who};
use confidant_chats::service::{Answered, Service};

use caller::Known;

pub use network::{NotANetwork, Proxy};
pub use settings::{Patience, Settings};

/// What all requests share.
#[derive(Debug)]
struct App {
    service: Service,
    settings: Settings,
}

/// Every route of the protocol, and the socket. It has no fallback, so it can be merged with others.
pub fn router(service: Service, settings: Settings) -> Router {
    let app = Arc::new(App { service, settings });
    let mut router = Router::new();
    for route in ROUTES {
        let app = Arc::clone(&app);
        let answer = move |request| answer_post(Arc::clone(&app), route, request);
        router = router.route(route.path, post(answer));
    }
    let streaming = Arc::clone(&app);
    router
        .route("/chats/events", get(move |request| stream::open(Arc::clone(&streaming), request)))
        .route("/ws", get(move |request| ready(ws::open(&app, request))))
        .method_not_allowed_fallback(async || answer::wrong_method())
        .layer(map_response(answer::with_headers))
}

async fn answer_post(app: Arc<App>, route: &'static Route, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match posted(&app, route, &parts, body).await {
        Ok((answered, known)) => answer::answered(answered, &known),
        Err(refused) => answer::refused(&refused),
    }
}

async fn posted(
    app: &App,
    route: &'static Route,
    parts: &Parts,
    body: Body,
) -> Result<(Answered, Known), RefusedSent> {
    let known = caller::of(parts, &app.settings).and_then(|known| {
        body::check_kind(&parts.headers)?;
        match (route.who, &known.caller.session) {
            // Nothing large is read of whoever shows no session.
            (Who::Session, None) => Err(caller::no_session()),
            _ => Ok(known),
        }
    });
    let known = match known {
        Ok(known) => known,
        Err(refused) => {
            body::discard(body);
            return Err(refused);
        }
    };
    let body = body::read(&parts.headers, body, route.limit, app.settings.patience.body).await?;
    // To its end, even if the client goes away: a write that is given up half-way is told to nobody.
    let (service, caller) = (app.service.clone(), known.caller.clone());
    let work = tokio::spawn(async move { service.answer(route.path, &caller, &body).await });
    let answered = work.await.map_err(|_| answer::failed())??;
    Ok((answered, known))
}
