//! Why a tool did not do what it was asked to, as a result.
//!
//! Clients show results to the model and hide protocol errors from it, so whatever a caller can do something about is a
//! result: a word for scripts, what happened, what to do next, and for a blocked session rule and place of each find.
//! None of it quotes what was given: a secret in the wrong field must not come back in an error.

use confidant_display::parted;
use confidant_memory::{Error, Place};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::json;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// A word for scripts.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Rule and place of what stood in the way; never what was found there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

impl Failure {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into(), places: Vec::new() }
    }

    /// The arguments are not what the tool takes.
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("invalid", message, hint)
    }

    /// A fault of ours. What is known of it is in the log.
    pub(crate) fn internal() -> Self {
        Self::new(
            "internal",
            "an internal server error; no data is known to be lost",
            "try again, then see its log and report this",
        )
    }

    /// There is no memory at all.
    #[must_use]
    pub fn no_memory() -> Self {
        let message = "there are no memories: store.url is memory:, whose data ends with its process";
        Self::new("unavailable", message, "use sqlite: to keep data")
    }

    /// The memory could not be opened.
    #[must_use]
    pub fn unopened(error: &anyhow::Error) -> Self {
        let said = format!("{error:#}");
        let (message, hint) = parted(&said).unwrap_or((&said, "see the server's log"));
        Self::new("unavailable", message, hint)
    }

    /// As a result of a tool.
    pub(crate) fn result(&self) -> CallToolResult {
        let mut text = format!("{}\nhint: {}", self.message, self.hint);
        for Place { rule, path } in &self.places {
            text.push_str(&format!("\n{rule} at {}", if path.is_empty() { "/" } else { path }));
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "ok": false, "error": self }));
        result
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (message, hint) = error.parted();
        let code = error.code();
        let places = match error {
            Error::Blocked { places } | Error::Unclean { places } => places,
            _ => Vec::new(),
        };
        Self { places, ..Self::new(code, message, hint) }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; hint: {}", self.message, self.hint)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_session_is_told_by_rule_and_place() {
        let place = Place { rule: "private_key".into(), path: "/messages/3/content".into() };
        let failure = Failure::from(Error::Blocked { places: vec![place] });
        let result = failure.result();
        assert_eq!(result.is_error, Some(true));
        let structured = result.structured_content.unwrap();
        assert_eq!(structured["ok"], json!(false));
        assert_eq!(structured["error"]["code"], json!("blocked"));
        assert_eq!(
            structured["error"]["places"],
            json!([{"rule": "private_key", "path": "/messages/3/content"}])
        );
        assert!(!structured["error"]["hint"].as_str().unwrap().is_empty());
        assert!(!structured["error"]["message"].as_str().unwrap().contains("hint"));
    }
}
