//! Whether arguments fit a tool's schema.

use serde_json::Value;

/// What is wrong with the arguments, for the model to read; nothing if they fit. A schema that is none lets nothing
/// through.
pub(crate) fn misfit(schema: &Value, arguments: &Value) -> Option<String> {
    if !arguments.is_object() {
        return Some("the arguments are not a JSON object".to_owned());
    }
    let Ok(validator) = jsonschema::options().build(schema) else {
        return Some("the tool's own schema cannot be used, so it cannot be called".to_owned());
    };
    let errors = validator.iter_errors(arguments).take(MOST_ERRORS).map(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() { "the arguments".to_owned() } else { place };
        let text: String = error.to_string().chars().take(LONGEST_ERROR).collect();
        format!("{place}: {text}")
    });
    let errors: Vec<String> = errors.collect();
    (!errors.is_empty()).then(|| errors.join("; "))
}

const MOST_ERRORS: usize = 5;
const LONGEST_ERROR: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_held_against_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "lines": { "type": "integer", "minimum": 1 } },
            "required": ["path"],
            "additionalProperties": false,
        });
        assert_eq!(misfit(&schema, &json!({ "path": "/a", "lines": 3 })), None);
        for bad in [
            json!({}),
            json!({ "path": 3 }),
            json!({ "path": "/a", "lines": 0 }),
            json!({ "path": "/a", "more": 1 }),
            json!("path"),
            json!(null),
        ] {
            assert!(misfit(&schema, &bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn schemas_that_are_none_let_nothing_through_and_fetch_nothing() {
        for schema in [
            json!({ "type": "no such type" }),
            json!({ "$ref": "https://example.org/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "properties": { "a": { "pattern": "(" } } }),
        ] {
            assert!(misfit(&schema, &json!({ "a": "b" })).is_some(), "{schema}");
        }
    }
}
