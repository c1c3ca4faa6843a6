//! What is said when all connections are in use: health to whoever asks for it, and a refusal to everybody else.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::error::{ApiError, Form};

/// What a path is answered on a place that is kept for health.
pub(super) fn refusal(path: &str) -> Option<Response> {
    if matches!(path, "/healthz" | "/readyz") {
        return None;
    }
    let hint = "try again in a moment, or raise server.max_connections";
    let message = "all connections are in use";
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", message, hint);
    let mut response = error.render(Form::of(path));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_but_health_hears_that_there_are_too_many_connections() {
        assert!(refusal("/healthz").is_none() && refusal("/readyz").is_none());
        for path in ["/", "/v1/models", "/mcp"] {
            let response = refusal(path).expect("it is refused");
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()[header::CONNECTION], "close");
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(
                body.contains("all connections are in use") && body.contains("max_connections"),
                "{body}"
            );
        }
    }
}
