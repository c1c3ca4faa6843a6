//! Errors as replies, in one place.
//!
//! Everything that goes wrong becomes an [`ApiError`]: what happened, what to do next, a word for scripts and a status.
//! It travels in the response's extensions until [`render_errors`](super::render_errors) writes it down, in OpenAI's form below `/v1`
//! and in ours elsewhere, so that a handler never thinks about the form. What is easy to get wrong: quoting what the
//! client sent. Nothing here does; a field is named only if its name is a plain short word.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use confidant_display::parted;
use confidant_engine::{Error, StoreError};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request has no other answer. Boxed, since most results have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApiError(Box<Reason>);

/// What an [`ApiError`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    pub(super) message: Cow<'static, str>,
    pub(super) hint: Cow<'static, str>,
    /// The field or parameter that is at fault, where there is one.
    pub(super) param: Option<Cow<'static, str>>,
    /// Seconds after which to try again, where that helps.
    pub(super) retry_after: Option<u64>,
    /// The turn's name, where its answer can still be had.
    pub(super) request_id: Option<String>,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (message, hint) = (message.into(), hint.into());
        let reason = Reason { status, code, message, hint, param: None, retry_after: None, request_id: None };
        Self(Box::new(reason))
    }

    /// The same under another status.
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// The request is not acceptable as it is.
    pub(super) fn invalid(message: impl Into<Cow<'static, str>>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message, hint)
    }

    /// No token, or one that nobody bears.
    pub(super) fn unauthenticated(message: &'static str) -> Self {
        let hint = "send `Authorization: Bearer <token>`; the first run wrote an administrator's token to \
                    confidant-data/admin.token, and `confidant token new` makes others";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message, hint)
    }

    /// The bearer may not do this. Says the same whether or not there is anything to be had.
    pub(super) fn forbidden() -> Self {
        let hint = "a user token reaches only that user's own sessions, and an agent token runs turns but \
                    cannot export or erase; use a token with the right role";
        Self::new(StatusCode::FORBIDDEN, "forbidden", "this token may not do that", hint)
    }

    pub(super) fn too_many(message: &'static str, retry_after: u64, remedy: &str) -> Self {
        let hint = format!("wait {retry_after} s, or {remedy}");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message, hint).retry_after(retry_after)
    }

    pub(super) fn too_large(most: usize) -> Self {
        let message = format!("the body has more than {most} bytes");
        let hint = "send less, or raise server.max_body_bytes";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message, hint)
    }

    pub(super) fn internal() -> Self {
        Error::Internal.into()
    }

    pub(super) fn at(mut self, param: impl Into<Cow<'static, str>>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    pub(super) fn about(mut self, request_id: String) -> Self {
        self.0.request_id = Some(request_id);
        self
    }

    /// The error in our own form.
    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorDetail {
                code: self.code,
                message: self.message.clone().into_owned(),
                hint: self.hint.clone().into_owned(),
                request_id: self.request_id.clone(),
            },
        }
    }

    /// The error in OpenAI's form, which has no place for a hint but the message.
    pub(super) fn openai_body(&self) -> OpenAiErrorBody {
        let kind = match self.status {
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        OpenAiErrorBody {
            error: OpenAiErrorDetail {
                message: format!("{}; hint: {}", self.message, self.hint),
                kind,
                param: self.param.clone().map(Cow::into_owned),
                code: self.code,
            },
        }
    }

    /// An error of the transport, which belongs to no request that could be named.
    fn json_rpc_body(&self) -> serde_json::Value {
        serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": SERVER_ERROR,
                "message": format!("{}; hint: {}", self.message, self.hint),
                "data": { "code": self.code, "hint": self.hint },
            },
        })
    }

    /// The whole reply, in the form that `form` says.
    pub(super) fn render(&self, form: Form) -> Response {
        let json = match form {
            Form::Ours => serde_json::to_vec(&self.body()),
            Form::OpenAi => serde_json::to_vec(&self.openai_body()),
            Form::JsonRpc => serde_json::to_vec(&self.json_rpc_body()),
        };
        let mut response = Response::new(Body::from(json.unwrap_or_default()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"confidant\""));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The first of the codes that JSON-RPC leaves to servers.
const SERVER_ERROR: i32 = -32_000;

impl std::ops::Deref for ApiError {
    type Target = Reason;

    fn deref(&self) -> &Reason {
        &self.0
    }
}

/// How an error is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{"error": {code, message, hint}}`.
    Ours,
    /// `{"error": {message, type, param, code}}`.
    OpenAi,
    /// `{"jsonrpc", "id": null, "error": {code, message, data}}`.
    JsonRpc,
}

impl Form {
    /// The form that clients of this path understand.
    pub(super) fn of(path: &str) -> Self {
        match path {
            "/mcp" => Self::JsonRpc,
            "/v1" => Self::OpenAi,
            path if path.starts_with("/v1/") => Self::OpenAi,
            _ => Self::Ours,
        }
    }
}

impl IntoResponse for ApiError {
    /// Only carries the error; [`render_errors`](super::render_errors) knows the path and writes it down.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// An error, in our own form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

/// What happened, and what to do next.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
pub(super) struct ErrorDetail {
    /// A word for scripts.
    code: &'static str,
    /// What happened.
    message: String,
    /// What to do next.
    hint: String,
    /// The turn to ask for again, if its answer can still be fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// An error, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub(super) struct OpenAiErrorBody {
    error: OpenAiErrorDetail,
}

/// What happened, as OpenAI's clients expect it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiErrorDetail)]
pub(super) struct OpenAiErrorDetail {
    /// What happened, and what to do next.
    message: String,
    /// The kind of error.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The parameter at fault.
    param: Option<String>,
    /// A word for scripts.
    code: &'static str,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let (status, retry_after) = status(&error);
        if status == StatusCode::INTERNAL_SERVER_ERROR || status == StatusCode::INSUFFICIENT_STORAGE {
            tracing::error!(code = error.code(), error = %error, "a request failed");
        }
        let text = error.to_string();
        // The engine's messages have both parts in one line; those of ids and models leave the word "hint" out.
        let parts = parted(&text).or_else(|| text.split_once("; "));
        let (message, hint) = parts.unwrap_or((&text, "see the server's log"));
        let mut api = Self::new(status, error.code(), message.to_owned(), hint.to_owned());
        api.0.retry_after = retry_after;
        api
    }
}

fn status(error: &Error) -> (StatusCode, Option<u64>) {
    match error {
        Error::Scope(_) | Error::Invalid { .. } => (StatusCode::BAD_REQUEST, None),
        Error::NotYourApproval => (StatusCode::FORBIDDEN, None),
        Error::NoSuchApproval => (StatusCode::NOT_FOUND, None),
        Error::RequestReused
        | Error::AnswerGone
        | Error::Erased
        | Error::AwaitsApproval
        | Error::AlreadyDecided(_)
        | Error::DecidedByYou(_)
        | Error::ApprovalExpired
        | Error::Cancelled
        | Error::Interrupted
        | Error::History(_) => (StatusCode::CONFLICT, None),
        Error::Busy => (StatusCode::CONFLICT, Some(1)),
        Error::Model(_) => (StatusCode::BAD_GATEWAY, None),
        Error::Store(StoreError::Full) => (StatusCode::INSUFFICIENT_STORAGE, None),
        Error::Stands(_, why) => status(why),
        Error::NoWorker | Error::Bus(_) | Error::Stopping | Error::Store(_) | Error::Unloaded(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(2))
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, None),
    }
}

#[cfg(test)]
mod tests {
    use confidant_engine::model::ModelError;
    use confidant_engine::{ScopeError, Tampering};

    use super::*;

    #[test]
    fn every_engine_error_has_a_status_a_message_and_a_hint() {
        let cases = [
            (Error::Scope(ScopeError::UnknownForm), 400, "invalid_session_id"),
            (Error::Invalid { what: "bad".into(), hint: "better".into() }, 400, "invalid_request"),
            (Error::RequestReused, 409, "request_id_reused"),
            (Error::AnswerGone, 409, "answer_gone"),
            (Error::Erased, 409, "erased"),
            (Error::Busy, 409, "busy"),
            (Error::AwaitsApproval, 409, "awaits_approval"),
            (Error::AlreadyDecided("approved"), 409, "already_decided"),
            (Error::ApprovalExpired, 409, "approval_expired"),
            (Error::Cancelled, 409, "cancelled"),
            (Error::Interrupted, 409, "interrupted"),
            (Error::NotYourApproval, 403, "not_your_approval"),
            (Error::NoSuchApproval, 404, "no_such_approval"),
            (Error::Stopping, 503, "stopping"),
            (Error::NoWorker, 503, "no_worker"),
            (Error::Bus(StoreError::Busy), 503, "bus_unreachable"),
            (Error::DecidedByYou("approved"), 409, "already_decided"),
            (Error::Stands("approved", Box::new(Error::NoWorker)), 503, "no_worker"),
            (Error::Stands("denied", Box::new(Error::Store(StoreError::Uncertain))), 503, "storage_failed"),
            (Error::Model(ModelError::Unreachable), 502, "model_failed"),
            (Error::Store(StoreError::Busy), 503, "storage_failed"),
            (Error::Store(StoreError::Full), 507, "storage_full"),
            (Error::Tampered(Tampering::RolledBack), 500, "rolled-back"),
            (Error::Internal, 500, "internal"),
        ];
        for (error, status, code) in cases {
            let api = ApiError::from(error);
            assert_eq!((api.status.as_u16(), api.code), (status, code));
            assert!(
                !api.message.is_empty() && !api.hint.is_empty() && !api.message.contains("hint"),
                "{api:?}"
            );
            assert_ne!(api.hint, "see the server's log", "{api:?}");
        }
    }
}
