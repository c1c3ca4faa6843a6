//! What tools are given, read as the tools read it but without a memory behind.

use std::path::PathBuf;

use confidant_memory::api::{Forget, QueryRequest, Raw};
use confidant_memory::import::Root;
use serde_json::{Map, Value, json};

use super::catalogue::{self, ToolName};
use super::failure::Failure;
use super::requests::{self, Store};
use super::{estimate, prompts, unread};

/// A line as it is read, or the answer to one that cannot be.
pub fn message(line: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
    let line = confidant_redact::with_whole_pairs(line).unwrap_or_else(|| line.to_vec());
    match unread::refusal(&line).or_else(|| unread::too_long(&line[..line.len() / 2], &line)) {
        Some(refusal) if serde_json::from_slice::<Value>(&line).is_err() => Err(refusal),
        _ => Ok(line),
    }
}

/// The names of the tools, and of the arguments that each says it takes.
pub fn tools() -> Vec<(String, Vec<String>)> {
    let names = |schema: &Map<String, Value>| match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    catalogue::all().iter().map(|tool| (tool.name.to_string(), names(&tool.input_schema))).collect()
}

/// What a tool would do with these arguments, or every word of the refusal.
pub fn tool(name: &str, arguments: &Map<String, Value>) -> Result<Value, String> {
    let tool = ToolName::parse(name).ok_or("no such tool")?;
    wish(tool, arguments).map_err(|failure| {
        let result = serde_json::to_string(&failure.result()).unwrap_or_default();
        format!("{failure} {result}")
    })
}

/// The prompt that is made of these arguments, or the words of the refusal.
pub fn prompt(name: &str, arguments: &Map<String, Value>) -> Result<String, String> {
    let prompt = prompts::get(name, Some(arguments)).map_err(|error| error.to_string())?;
    serde_json::to_string(&prompt).map_err(|error| error.to_string())
}

fn wish(tool: ToolName, arguments: &Map<String, Value>) -> Result<Value, Failure> {
    Ok(match tool {
        ToolName::Store => {
            let Store { request, dry_run, notes } = Store::read(arguments)?;
            json!({
                "session_id": request.session_id, "session": request.session, "tags": request.tags,
                "metadata": request.metadata, "mode": request.mode, "raw": request.raw == Raw::Acknowledged,
                "expect_sha256": request.expect_sha256, "dry_run": dry_run, "notes": notes,
            })
        }
        ToolName::Remember => {
            let request = requests::remember(arguments)?;
            json!({ "session": request.session, "tags": request.tags })
        }
        ToolName::Recall => page(&requests::recall(arguments)?),
        ToolName::Query => page(&requests::query(arguments)?),
        ToolName::List => page(&requests::list(arguments)?),
        ToolName::Retrieve => {
            let (uri, mode) = requests::retrieve(arguments)?;
            json!({ "cascade_uri": uri, "mode": mode })
        }
        ToolName::Forget => {
            let (what, dry_run) = requests::forget(arguments)?;
            let (name, value) = match what {
                Forget::Uri(uri) => ("cascade_uri", uri),
                Forget::Session(id) => ("session_id", id),
            };
            json!({ name: value, "dry_run": dry_run })
        }
        ToolName::Import => {
            let wish = requests::import(arguments, Some(PathBuf::from("home")))?;
            let roots = wish.roots.iter().map(|root| match root {
                Root::Home(_) => json!("home"),
                Root::Path { path, agent } => {
                    json!({ "path": path, "agent": agent.map(confidant_memory::import::Agent::name) })
                }
            });
            let roots: Vec<Value> = roots.collect();
            json!({ "roots": roots, "tags": wish.tags, "mode": wish.mode, "dry_run": wish.dry_run })
        }
        ToolName::Estimate => {
            let question = estimate::read(arguments)?;
            let (bytes, redundancy) = (question.bytes, question.redundancy);
            json!({ "bytes": bytes, "redundancy": redundancy, "provider": question.provider })
        }
    })
}

fn page(wish: &QueryRequest) -> Value {
    let QueryRequest { query, tags, limit, offset, from, until } = wish;
    json!({ "query": query, "tags": tags, "limit": limit, "offset": offset, "from": from, "until": until })
}
