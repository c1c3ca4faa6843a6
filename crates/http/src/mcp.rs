//! `/mcp`: the memory for agents that speak MCP. Who asks is decided here, what they get in [`confidant_mcp`].

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use confidant_engine::UserId;

use super::app::App;
use super::auth::Caller;
use super::body;
use super::error::ApiError;

/// The header in which an agent or an administrator says for whom they ask.
const USER: &str = "x-confidant-user";

/// Every method: which of them there are is the protocol's business.
pub(super) async fn answer(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let Some(mount) = &app.mcp else { return Err(super::no_route()) };
    let user = person(&caller, request.headers())?;
    let access = caller.memory(mount.memory(), user).await?;
    let request = whole(&app, request).await?;
    mount
        .answer(caller.token_id(), access, request)
        .await
        .map_err(|refused| ApiError::new(refused.status, refused.code, refused.message, refused.hint))
}

/// Whose memory is asked for.
fn person(caller: &Caller, headers: &HeaderMap) -> Result<UserId, ApiError> {
    let Some(named) = headers.get(USER) else {
        return caller.own_user().cloned().ok_or_else(|| {
            let hint = "send `X-Confidant-User: <id>`, or use a token that was made for one person";
            ApiError::invalid(
                "this token is not for one person, and the request does not say whose memory to use",
                hint,
            )
        });
    };
    let named = named.to_str().ok().and_then(|named| UserId::new(named.trim()).ok());
    named.ok_or_else(|| {
        ApiError::invalid(
            "X-Confidant-User is not a valid person id",
            "send the id in ASCII, without line breaks",
        )
    })
}

/// The request with its body read, within the limits that every body has.
async fn whole(app: &App, request: Request) -> Result<axum::http::Request<Bytes>, ApiError> {
    if request.method() != Method::POST {
        return Ok(request.map(|_| Bytes::new()));
    }
    let (parts, body) = request.into_parts();
    let again = Request::from_parts(parts.clone(), body);
    Ok(axum::http::Request::from_parts(parts, body::bytes(again, app).await?))
}
