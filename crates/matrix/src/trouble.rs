//! Matrix's errors in our words. Nothing of a body is passed on: it may quote what was sent.

use std::time::Duration;

use confidant_channel::{InboxError, Trouble};
use confidant_display::Hinted as _;
use matrix_sdk::ruma::api::error::{ErrorKind, FromHttpResponseError, RetryAfter};
use matrix_sdk::{Error, HttpError};

/// What a failed call means.
pub(crate) fn of(error: &Error) -> Trouble {
    match error {
        Error::Http(error) => of_http(error),
        Error::WrongRoomState(_) => Trouble::Gone,
        Error::AuthenticationRequired => Trouble::passing("the account has not signed in", LATER),
        Error::Timeout | Error::ConcurrentRequestFailed => {
            Trouble::passing("the Matrix server did not answer in time", LATER)
        }
        Error::CryptoStoreError(_)
        | Error::StateStore(_)
        | Error::EventCacheStore(_)
        | Error::MediaStore(_) => Trouble::passing(
            "the Matrix databases in the data folder failed",
            "check the folder's space and permissions",
        ),
        Error::OlmError(_) | Error::MegolmError(_) | Error::NoOlmMachine | Error::BadCryptoStoreState => {
            Trouble::passing("a message could not be encrypted", LATER)
        }
        _ => Trouble::passing("the Matrix client failed", LATER),
    }
}

/// What a failed call means for the one message that it is about. What is wrong with the account, or with what stands before
/// its server, says nothing of the message: that waits until it is over, and signing in says what to do.
pub(crate) fn of_message(error: &Error) -> Trouble {
    match of(error) {
        Trouble::Refused { what, hint } if !is_about_message(error) => Trouble::passing(what, hint),
        other => other,
    }
}

/// Whether a refusal is the server's word on what was asked, and not on who asks.
fn is_about_message(error: &Error) -> bool {
    let Some(answer) = error.as_client_api_error() else { return true };
    let status = answer.status_code.as_u16();
    match answer.error_kind() {
        Some(
            ErrorKind::UnknownToken(_)
            | ErrorKind::MissingToken
            | ErrorKind::UserDeactivated
            | ErrorKind::UserLocked
            | ErrorKind::UserSuspended,
        ) => false,
        Some(_) => status != 401,
        // No Matrix server has said this. Some that stand before one bound what they let through.
        None => status == 413,
    }
}

/// What a failed request means.
pub(crate) fn of_http(error: &HttpError) -> Trouble {
    if let HttpError::Cached(error) = error {
        return of_http(error);
    }
    if let HttpError::Reqwest(error) = error {
        return if error.is_timeout() {
            Trouble::passing("the Matrix server did not answer in time", LATER)
        } else {
            Trouble::passing(
                "the Matrix server cannot be reached",
                "check channels.matrix.homeserver and the network; Confidant keeps trying",
            )
        };
    }
    if let HttpError::Api(error) = error
        && matches!(**error, FromHttpResponseError::Deserialization(_))
    {
        return unread();
    }
    let Some(answer) = error.as_client_api_error() else {
        return Trouble::refused(
            "the Matrix server asks this account for another step",
            "report this with the log",
        );
    };
    let status = answer.status_code.as_u16();
    match answer.error_kind() {
        Some(ErrorKind::LimitExceeded(limit)) => Trouble::Passing {
            what: "the Matrix server limits the account's requests (rate limit)".to_owned(),
            hint: LATER.to_owned(),
            after: limit.retry_after.as_ref().and_then(wait),
        },
        Some(ErrorKind::UnknownToken(_) | ErrorKind::MissingToken) => expired(),
        Some(ErrorKind::UserDeactivated | ErrorKind::UserLocked | ErrorKind::UserSuspended) => {
            Trouble::refused(
                "the Matrix account is closed, locked or suspended",
                "ask the server's administrator, or use another account",
            )
        }
        Some(ErrorKind::NotFound) => Trouble::Gone,
        Some(ErrorKind::TooLarge) => Trouble::refused(
            "the Matrix server does not accept something that large",
            "ask the server's administrator",
        ),
        Some(ErrorKind::Forbidden) => Trouble::refused(
            "the Matrix server does not let the account do this",
            "let it send messages in that room, or invite it again",
        ),
        Some(ErrorKind::Unrecognized) | None if status == 404 || status == 405 => not_matrix(),
        _ if status >= 500 => {
            Trouble::passing(format!("the Matrix server has a problem of its own ({status})"), LATER)
        }
        _ if status == 429 => {
            Trouble::passing("the Matrix server limits the account's requests (rate limit)", LATER)
        }
        _ => Trouble::refused(
            format!("the Matrix server refused a request ({status})"),
            "report this with the log",
        ),
    }
}

/// What a failed login means.
pub(crate) fn of_login(error: &Error) -> Trouble {
    let kind = error.as_client_api_error().and_then(|answer| answer.error_kind());
    match kind {
        Some(ErrorKind::Forbidden | ErrorKind::InvalidUsername) => Trouble::refused(
            "the Matrix server does not accept this name and password",
            "check channels.matrix.user and password (or password_file), and start again",
        ),
        Some(ErrorKind::Unknown | ErrorKind::Unrecognized) => Trouble::refused(
            "the Matrix server does not accept passwords",
            "log in another way: `confidant matrix login --sso-token`, or an access_token",
        ),
        Some(ErrorKind::NotFound) => not_matrix(),
        _ => of(error),
    }
}

/// Whether a token is not known any more, and if so, whether the device still is.
pub(crate) fn lost_token(error: &HttpError) -> Option<Lost> {
    match error.client_api_error_kind()? {
        ErrorKind::UnknownToken(data) if data.soft_logout => Some(Lost::Token),
        ErrorKind::UnknownToken(_) | ErrorKind::MissingToken => Some(Lost::Device),
        _ => None,
    }
}

/// What an account has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The token: the same device may log in again.
    Token,
    /// The device.
    Device,
}

/// How long a server wants to be left alone.
fn wait(after: &RetryAfter) -> Option<Duration> {
    match after {
        RetryAfter::Delay(delay) => Some(*delay),
        RetryAfter::DateTime(_) => None,
    }
}

pub(crate) fn unread() -> Trouble {
    Trouble::passing(
        "the Matrix server answered something unexpected",
        "check that channels.matrix.homeserver is a Matrix server; Confidant keeps trying",
    )
}

pub(crate) fn not_matrix() -> Trouble {
    Trouble::refused(
        "what answers at channels.matrix.homeserver is not a Matrix server",
        "give the address that its clients use, such as https://matrix.example.org",
    )
}

pub(crate) fn expired() -> Trouble {
    Trouble::refused(
        "the Matrix server no longer knows the stored session",
        "set channels.matrix.password, or run `confidant matrix login`",
    )
}

pub(crate) fn inbox(error: InboxError) -> Trouble {
    let (what, hint) = error.what_and_hint("run `confidant doctor`");
    Trouble::passing(what, hint)
}

pub(crate) const LATER: &str = "nothing to do: Confidant keeps trying";

#[cfg(test)]
mod tests {
    use matrix_sdk::RumaApiError;
    use matrix_sdk::ruma::api::EndpointError as _;
    use matrix_sdk::ruma::exports::http::Response;

    use super::*;

    fn answered(status: u16, body: &str) -> Error {
        let response = Response::builder().status(status).body(body.as_bytes()).unwrap();
        let answer = matrix_sdk::ruma::api::error::Error::from_http_response(response);
        let answer = FromHttpResponseError::Server(RumaApiError::MatrixError(answer));
        Error::Http(Box::new(HttpError::Api(Box::new(answer))))
    }

    #[test]
    fn what_is_wrong_with_the_account_is_no_word_on_a_message() {
        for (status, body) in [
            (401, r#"{"errcode":"M_UNKNOWN_TOKEN","error":"x"}"#),
            (401, r#"{"errcode":"M_UNKNOWN_TOKEN","error":"x","soft_logout":true}"#),
            (401, r#"{"errcode":"M_MISSING_TOKEN","error":"x"}"#),
            (403, r#"{"errcode":"M_USER_SUSPENDED","error":"x"}"#),
            (401, r#"{"errcode":"ORG.EXAMPLE.ODD","error":"x"}"#),
            (404, "<html>nginx: secret.example</html>"),
            (403, r#"{"detail":"not allowed"}"#),
            (401, ""),
        ] {
            let error = answered(status, body);
            let (usual, waiting) = (of(&error), of_message(&error));
            assert!(matches!(usual, Trouble::Refused { .. }), "{status} {body}: {usual:?}");
            assert!(matches!(waiting, Trouble::Passing { .. }), "{status} {body}: {waiting:?}");
            assert_eq!(usual.to_string(), waiting.to_string(), "the same report");
            assert!(!usual.to_string().contains("secret"));
        }
    }

    #[test]
    fn what_a_server_says_of_a_message_is_its_word_on_it() {
        for (status, body) in [
            (403, r#"{"errcode":"M_FORBIDDEN","error":"x"}"#),
            (413, r#"{"errcode":"M_TOO_LARGE","error":"x"}"#),
            (413, "<html>nginx</html>"),
            (404, r#"{"errcode":"M_UNRECOGNIZED","error":"x"}"#),
        ] {
            let trouble = of_message(&answered(status, body));
            assert!(matches!(trouble, Trouble::Refused { .. }), "{status} {body}: {trouble:?}");
        }
        let gone = answered(404, r#"{"errcode":"M_NOT_FOUND","error":"x"}"#);
        assert_eq!((of(&gone), of_message(&gone)), (Trouble::Gone, Trouble::Gone));
        for (status, body) in
            [(502, "<html>nginx</html>"), (429, r#"{"errcode":"M_LIMIT_EXCEEDED","error":"x"}"#)]
        {
            assert!(matches!(of_message(&answered(status, body)), Trouble::Passing { .. }));
        }
    }
}
