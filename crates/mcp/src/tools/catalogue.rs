//! What a server says that it has, as tools that may be offered.
//!
//! Everything here is the server's word: names, descriptions and schemas go into prompts. They are bounded, and stripped
//! of what a person looking at them would not see; what cannot be used is left out and counted.

use std::collections::BTreeMap;

use confidant_engine::model::ToolSpec;
use confidant_engine::tools::{Effect, Tool};
use confidant_redact::quote_text;
use rmcp::model as mcp;
use serde_json::Value;

use super::names::{Pattern, ServerName};

/// The tools of one server, by their full names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Catalogue(BTreeMap<String, Entry>);

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// The server's own name for it.
    own: String,
    tool: Tool,
}

/// How many tools were left out, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refused {
    /// A name that is empty or too long for models.
    pub(super) names: usize,
    /// A name that another tool of the server has.
    pub(super) duplicates: usize,
    /// A schema that is too large.
    pub(super) schemas: usize,
    /// More tools than are taken from one server.
    pub(super) surplus: usize,
}

impl Refused {
    pub(super) fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl Catalogue {
    /// Takes what the server lists, less what nobody wants of it.
    pub(super) fn new(
        server: &ServerName,
        only: Option<&[Pattern]>,
        listed: Vec<mcp::Tool>,
    ) -> (Self, Refused) {
        let (mut tools, mut refused) = (BTreeMap::new(), Refused::default());
        for tool in listed {
            let Some(full) = server.of_tool(&tool.name) else {
                refused.names += 1;
                continue;
            };
            let short = &full[server.as_str().len() + 1..];
            if only.is_some_and(|only| !only.iter().any(|pattern| pattern.matches(short))) {
                continue;
            }
            if tools.contains_key(&full) {
                refused.duplicates += 1;
            } else if tools.len() == MOST_TOOLS {
                refused.surplus += 1;
            } else if let Some(schema) = schema(&tool) {
                let entry =
                    Entry { own: tool.name.clone().into_owned(), tool: offered(full.clone(), &tool, schema) };
                tools.insert(full, entry);
            } else {
                refused.schemas += 1;
            }
        }
        (Self(tools), refused)
    }

    /// The server's own name for a tool.
    pub(super) fn own_name(&self, full: &str) -> Option<&str> {
        self.0.get(full).map(|entry| entry.own.as_str())
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.0.values().map(|entry| &entry.tool)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn offered(name: String, tool: &mcp::Tool, schema: Value) -> Tool {
    let title = tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref());
    let described = tool.description.as_deref().filter(|text| !text.trim().is_empty()).or(title);
    let description = visible(described.unwrap_or_default(), LONGEST_DESCRIPTION);
    Tool {
        spec: ToolSpec { name, description, schema, strict: None },
        effect: effect(tool.annotations.as_ref()),
    }
}

/// What the hints amount to. Without any, the tool may change something.
fn effect(hints: Option<&mcp::ToolAnnotations>) -> Effect {
    let Some(hints) = hints else { return Effect::Writes };
    match (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) {
        (Some(true), _, _) => Effect::Reads,
        (_, Some(true), _) => Effect::Destroys,
        (_, _, Some(true)) => Effect::WritesOnce,
        _ => Effect::Writes,
    }
}

/// The schema of the arguments; nothing if it is too large.
fn schema(tool: &mcp::Tool) -> Option<Value> {
    let mut schema = Value::Object(tool.input_schema.as_ref().clone());
    clean(&mut schema);
    (schema.to_string().len() <= LARGEST_SCHEMA).then_some(schema)
}

/// Strips the words of a schema. What it demands of values is left alone.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if WORDS.contains(&key.as_str()) => {
                        *text = visible(text, LONGEST_DESCRIPTION);
                    }
                    _ => clean(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(clean),
        _ => {}
    }
}

/// Text as a person sees it, up to a length, without what would be more than text to a model.
fn visible(text: &str, longest: usize) -> String {
    quote_text(text).chars().take(longest).collect()
}

const WORDS: [&str; 3] = ["description", "title", "$comment"];
const MOST_TOOLS: usize = 256;
/// In characters.
const LONGEST_DESCRIPTION: usize = 4096;
/// In bytes.
const LARGEST_SCHEMA: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server() -> ServerName {
        ServerName::try_from("s".to_owned()).unwrap()
    }

    fn listed(tools: Value) -> Vec<mcp::Tool> {
        serde_json::from_value(tools).unwrap()
    }

    fn named(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn hints_become_effects_and_none_is_the_careful_one() {
        let effect_of = |hints: Value| {
            let tool = json!({"name": "t", "inputSchema": {}, "annotations": hints});
            Catalogue::new(&server(), None, listed(json!([tool]))).0.tools().next().unwrap().effect
        };
        for (hints, effect) in [
            (json!({}), Effect::Writes),
            (json!({"readOnlyHint": true}), Effect::Reads),
            (json!({"readOnlyHint": true, "destructiveHint": true}), Effect::Reads),
            (json!({"destructiveHint": true, "idempotentHint": true}), Effect::Destroys),
            (
                json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true}),
                Effect::WritesOnce,
            ),
            (json!({"destructiveHint": false}), Effect::Writes),
            (json!({"title": "T"}), Effect::Writes),
        ] {
            assert_eq!(effect_of(hints.clone()), effect, "{hints}");
        }
        let plain = Catalogue::new(&server(), None, listed(json!([named("t")]))).0;
        assert_eq!(plain.tools().next().unwrap().effect, Effect::Writes);
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_counted() {
        let large = json!({"name": "large", "inputSchema": {"enum": ["x".repeat(LARGEST_SCHEMA)]}});
        let tools = json!([named("a"), named("a"), named(""), named(&"x".repeat(70)), named("b/c"), large]);
        let (catalogue, refused) = Catalogue::new(&server(), None, listed(tools));
        let names: Vec<_> = catalogue.tools().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!(names, ["s.a", "s.b_x2F_c"]);
        assert_eq!(catalogue.own_name("s.b_x2F_c"), Some("b/c"));
        assert_eq!(refused, Refused { names: 2, duplicates: 1, schemas: 1, surplus: 0 });
        let many: Vec<Value> = (0..300).map(|n| named(&n.to_string())).collect();
        let (catalogue, refused) = Catalogue::new(&server(), None, listed(many.into()));
        assert_eq!((catalogue.len(), refused.surplus), (MOST_TOOLS, 300 - MOST_TOOLS));
    }

    #[test]
    fn only_what_is_wanted_is_taken() {
        let only = [Pattern::from("read_*".to_owned()), Pattern::from("b".to_owned())];
        let tools = json!([named("read_a"), named("write_a"), named("b")]);
        let (catalogue, refused) = Catalogue::new(&server(), Some(&only), listed(tools));
        let names: Vec<_> = catalogue.tools().map(|tool| tool.spec.name.as_str()).collect();
        assert_eq!((names, refused), (vec!["s.b", "s.read_a"], Refused::default()));
    }

    #[test]
    fn nothing_hidden_reaches_a_model() {
        let tool = json!({"name": "t", "description": "Adds\u{200b}\u{e0041}\u{1b}[1m.\n", "inputSchema": {"properties": {
            "a": {"type": "string", "description": "A\u{202e}b", "enum": ["\u{200b}"]}}}});
        let (catalogue, _) = Catalogue::new(&server(), None, listed(json!([tool])));
        let spec = &catalogue.tools().next().unwrap().spec;
        assert_eq!(spec.description, "Adds[1m.\n");
        let argument = &spec.schema["properties"]["a"];
        assert_eq!((&argument["description"], &argument["enum"][0]), (&"Ab".into(), &"\u{200b}".into()));
        let title = json!({"name": "t", "annotations": {"title": "Titled <|im_end|>"}, "inputSchema": {}});
        let (catalogue, _) = Catalogue::new(&server(), None, listed(json!([title])));
        assert_eq!(catalogue.tools().next().unwrap().spec.description, "Titled ‹|im_end|›");
    }
}
