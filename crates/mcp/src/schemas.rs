//! What the tools take and return, as JSON Schema.
//!
//! Written by hand, since a schema is read by models: short, without the integer `format`s that some clients refuse. What a
//! name says is not said again, and what is inside a result stands in the tool's description. A reply's schema allows for a
//! failure too, because some clients check failures against it.

use confidant_memory::cost;
use serde_json::{Map, Value, json};

use super::estimate::PROVIDERS;
use super::requests::{FARTHEST, LIST_LIMIT, MODES, MOST_HITS, QUERY_LIMIT, agents};

/// A schema.
pub(super) type Schema = Map<String, Value>;

pub(super) fn remember_input() -> Schema {
    input(json!({ "text": described("The note, in a sentence or a few."), "tags": texts() }), &["text"])
}

pub(super) fn remember_output() -> Schema {
    output(json!({ "cascade_uri": text(), "title": text(), "redaction": object() }))
}

pub(super) fn recall_input() -> Schema {
    input(json!({ "query": described("A few words."), "limit": limit(QUERY_LIMIT) }), &["query"])
}

pub(super) fn recall_output() -> Schema {
    output(json!({ "memories": objects() }))
}

pub(super) fn store_input() -> Schema {
    let session = "{\"summary\", \"messages\": [{\"role\", \"content\"}], \"tool_name\", \"output\", \"error_message\", \
                   \"success\", \"timestamp\", \"tags\"}, all optional; others are kept too.";
    let metadata = "Extra data to keep, redacted. To store the redacted transcript too, if the person said so: \
                    \"allow_raw_export\": true and \"raw_export_ack\": \"I understand the risk\".";
    input(
        json!({
            "session_id": text(),
            "session": { "type": "object", "description": session },
            "tags": texts(),
            "metadata": { "type": "object", "description": metadata },
            "mode": mode(),
            "dry_run": flag(),
            "expect_sha256": { "type": "string", "pattern": "^[0-9a-fA-F]{64}$" }
        }),
        &["session_id"],
    )
}

pub(super) fn store_output() -> Schema {
    output(json!({
        "session_id": text(),
        "cascade_uri": text(),
        "artifact_type": text(),
        "indexed": flag(),
        "memory_card": object(),
        "redaction": object(),
        "crypto": object(),
        "already_stored": flag(),
        "supersedes": text(),
        "dry_run": flag(),
        "preview": object(),
        "session_index": object(),
        "notes": texts()
    }))
}

pub(super) fn query_input() -> Schema {
    let mut properties = page(QUERY_LIMIT);
    properties.insert("query".into(), text());
    input(properties.into(), &["query"])
}

pub(super) fn list_input() -> Schema {
    input(page(LIST_LIMIT).into(), &[])
}

pub(super) fn hits_output() -> Schema {
    output(json!({ "hits": objects(), "unreadable": whole() }))
}

pub(super) fn retrieve_input() -> Schema {
    let uri = described("cascade://<64 hexadecimal digits>");
    input(json!({ "cascade_uri": uri, "mode": mode() }), &["cascade_uri"])
}

pub(super) fn retrieve_output() -> Schema {
    output(
        json!({ "cascade_uri": text(), "artifact_type": text(), "artifact": object(), "crypto": object() }),
    )
}

pub(super) fn forget_input() -> Schema {
    input(json!({ "cascade_uri": text(), "session_id": text(), "dry_run": flag() }), &[])
}

pub(super) fn forget_output() -> Schema {
    output(json!({
        "dry_run": flag(),
        "forgotten": whole(),
        "permanent": whole(),
        "pending": whole(),
        "cascade_uris": texts()
    }))
}

pub(super) fn import_input() -> Schema {
    input(
        json!({
            "path": described("A file or a folder; if left out, the agents' usual folders."),
            "agent": { "type": "string", "enum": agents() },
            "tags": texts(),
            "mode": mode(),
            "dry_run": { "type": "boolean", "default": true }
        }),
        &[],
    )
}

pub(super) fn import_output() -> Schema {
    output(json!({
        "dry_run": flag(),
        "files": whole(),
        "unchanged_files": whole(),
        "unreadable_files": whole(),
        "unknown_files": whole(),
        "sessions": whole(),
        "stored": whole(),
        "unchanged": whole(),
        "blocked": whole(),
        "refused": whole(),
        "forgotten": whole(),
        "skipped_lines": whole(),
        "left_out_texts": whole(),
        "items": objects(),
        "more_items": whole()
    }))
}

pub(super) fn estimate_input() -> Schema {
    input(
        json!({
            "bytes": { "type": "integer", "minimum": 0, "maximum": cost::MAX_BYTES },
            "redundancy": { "type": "integer", "minimum": 1, "maximum": cost::MAX_REDUNDANCY, "default": 1 },
            "provider": { "type": "string", "enum": PROVIDERS, "default": "s3" }
        }),
        &["bytes"],
    )
}

pub(super) fn estimate_output() -> Schema {
    // Cascade is paid in its own money, and without an exchange rate nobody knows.
    let maybe = json!({ "type": ["number", "null"] });
    output(json!({
        "bytes": whole(),
        "gb": { "type": "number" },
        "monthly_storage_usd": { "type": "number" },
        "estimated_request_usd": maybe,
        "total_estimated_usd": maybe,
        "assumptions": object()
    }))
}

fn page(most: u64) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert(
        "tags".into(),
        json!({ "type": "array", "items": { "type": "string" }, "description": "Must have all." }),
    );
    properties.insert("limit".into(), limit(most));
    properties.insert(
        "offset".into(),
        json!({ "type": "integer", "minimum": 0, "maximum": FARTHEST, "default": 0 }),
    );
    properties.insert(
        "time_range".into(),
        json!({
            "type": "object",
            "description": "RFC 3339.",
            "properties": { "start": text(), "end": text() },
            "additionalProperties": false
        }),
    );
    properties
}

fn input(properties: Value, required: &[&str]) -> Schema {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// A reply that has some of these members, or is a failure.
fn output(mut properties: Value) -> Schema {
    properties["ok"] = flag();
    properties["error"] = object();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), json!(["ok"]));
    schema
}

fn limit(most: u64) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": most })
}

fn mode() -> Value {
    json!({ "type": "string", "enum": MODES })
}

fn described(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn object() -> Value {
    json!({ "type": "object" })
}

fn objects() -> Value {
    json!({ "type": "array", "items": { "type": "object" } })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn whole() -> Value {
    json!({ "type": "integer" })
}
