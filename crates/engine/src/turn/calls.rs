//! What calls of tools have in common.

use serde_json::Value;

/// The text of an argument.
pub(super) fn text_of<'v>(arguments: &'v Value, key: &str) -> Option<&'v str> {
    arguments.get(key).and_then(Value::as_str)
}

/// How the result of every call begins that was not made. What a tool says never begins like this: it is fenced.
pub(super) const NOT_CALLED: &str = "Not called: ";
