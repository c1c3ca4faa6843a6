//! What the tools take and return, as JSON Schema.
//!
//! Written by hand, since a schema is read by models: short, with examples, without the integer `format`s that some
//! clients refuse. A reply's schema allows for a failure too, because some clients check failures against it.

use confidant_memory::cost;
use serde_json::{Map, Value, json};

use super::estimate::PROVIDERS;
use super::requests::{FARTHEST, LIST_LIMIT, MODES, MOST_HITS, QUERY_LIMIT, agents};

/// A schema.
pub(super) type Schema = Map<String, Value>;

pub(super) fn store_input() -> Schema {
    input(
        json!({
            "session_id": text("The id of the session to store."),
            "session": {
                "type": "object",
                "description": "The session itself, unless the server should look it up by its id: {\"summary\": \"…\", \"messages\": [{\"role\": \"user\", \"content\": \"…\"}], \"tool_name\", \"output\", \"error_message\", \"success\", \"timestamp\", \"tags\"}; other members are kept too.",
                "additionalProperties": true
            },
            "tags": tags("Tags to find it by."),
            "metadata": {
                "type": "object",
                "description": "Extra data to keep with the memory, redacted like the rest, and this tool's own options.",
                "properties": {
                    "dry_run": flag("Show the exact payload and its hash; store nothing."),
                    "allow_raw_export": flag("Store the redacted transcript too; needs raw_export_ack as well."),
                    "raw_export_ack": {
                        "type": ["string", "null"],
                        "description": "\"I understand the risk\", to store the redacted transcript too. Only if the person said so."
                    },
                    "expect_sha256": sha256("The same as expect_sha256 beside metadata.")
                },
                "additionalProperties": true
            },
            "mode": mode(),
            "dry_run": flag("Show the exact payload and its hash; store nothing."),
            "expect_sha256": sha256("Store only if the payload has this hash: preview.sha256 of a dry run.")
        }),
        &["session_id"],
    )
}

pub(super) fn store_output() -> Schema {
    output(
        json!({
            "ok": ok(),
            "session_id": text("The session, redacted."),
            "cascade_uri": text("Where the artifact is: cascade://<64 hexadecimal digits>."),
            "artifact_type": artifact_type(),
            "indexed": flag("Whether query_memories finds it from now on."),
            "memory_card": card(),
            "redaction": redaction(),
            "crypto": {
                "type": "object",
                "properties": {
                    "enc": text("The cipher."),
                    "bytes": whole("How many bytes are stored."),
                    "key_id": text("The public id of the artifact's own key."),
                    "plaintext_sha256": text("The hash of the payload."),
                    "ciphertext_sha256": text("The hash of what is stored.")
                },
                "required": ["enc", "bytes"]
            },
            "already_stored": flag("Whether exactly this was already stored, so nothing was done now."),
            "supersedes": text("The memory of the same session that this one replaces in searches."),
            "dry_run": flag("Whether nothing was stored."),
            "preview": {
                "type": "object",
                "description": "What would be stored.",
                "properties": {
                    "artifact_type": artifact_type(),
                    "fields": { "type": "array", "items": { "type": "string" } },
                    "bytes": whole("How many bytes the payload has."),
                    "would_upload": flag("Always false."),
                    "sha256": text("The hash of payload_json, for expect_sha256."),
                    "payload_json": text("The payload, byte for byte."),
                    "payload": { "type": "object", "description": "The payload." }
                },
                "required": ["artifact_type", "fields", "bytes", "would_upload"]
            },
            "session_index": {
                "type": "object",
                "description": "What a search would know of the session beside the card.",
                "properties": {
                    "words": { "type": "array", "items": { "type": "string" } },
                    "passages": whole("Passages that have a place in meaning."),
                    "replaced_values": whole("Replaced values that are found by keyed hashes.")
                }
            },
            "notes": { "type": "array", "items": { "type": "string" }, "description": "Further notes." }
        }),
        json!([
            { "required": ["session_id", "cascade_uri", "artifact_type", "indexed", "memory_card", "redaction", "crypto"] },
            { "required": ["dry_run", "preview", "memory_card", "redaction"] }
        ]),
    )
}

pub(super) fn query_input() -> Schema {
    let mut properties = page(QUERY_LIMIT);
    properties.insert("query".into(), text("What to look for, in plain words. Never query syntax."));
    input(properties.into(), &["query"])
}

pub(super) fn list_input() -> Schema {
    input(page(LIST_LIMIT).into(), &[])
}

pub(super) fn hits_output() -> Schema {
    let hit = json!({
        "type": "object",
        "properties": {
            "cass_session_id": text("The session it was made from."),
            "cascade_uri": text("For retrieve_session_from_cascade."),
            "artifact_type": artifact_type(),
            "title": text("The card's title."),
            "snippet": text("The card's first bullets, separated by \" | \"."),
            "tags": { "type": "array", "items": { "type": "string" } },
            "created_at": text("When the session took place, in RFC 3339."),
            "score": { "type": "number", "description": "How well it fits; lower is better." },
            "superseded": {
                "type": "array",
                "description": "Lines that a later memory states otherwise.",
                "items": {
                    "type": "object",
                    "properties": {
                        "line": text("What was so."),
                        "now": text("What is so now."),
                        "by": text("cascade_uri of the later memory.")
                    }
                }
            },
            "matched": {
                "type": "object",
                "description": "What of it fits best.",
                "properties": {
                    "bullet": text("A line of the card."),
                    "passage": whole("The nearest passage of the session, from 1."),
                    "passages": whole("How many passages it has.")
                }
            }
        },
        "required": ["cass_session_id", "cascade_uri", "artifact_type", "title", "snippet", "tags", "created_at", "score"]
    });
    let hits = json!({ "type": "array", "items": hit, "description": "The best first." });
    let unreadable =
        whole("How many more there are that cannot be opened; the server's operator can see which.");
    output(json!({ "ok": ok(), "hits": hits, "unreadable": unreadable }), json!([{ "required": ["hits"] }]))
}

pub(super) fn retrieve_input() -> Schema {
    let uri = text("Which memory: cascade_uri of a hit, cascade://<64 hexadecimal digits>.");
    input(json!({ "cascade_uri": uri, "mode": mode() }), &["cascade_uri"])
}

pub(super) fn retrieve_output() -> Schema {
    let artifact = json!({
        "type": "object",
        "description": "The artifact: session_id, timestamp, memory_card, redaction_report, tags, and raw_session if the transcript was stored.",
        "properties": {
            "session_id": { "type": "string" },
            "timestamp": { "type": ["string", "null"], "description": "When the session took place, if known." },
            "memory_card": card(),
            "redaction_report": rules(),
            "raw_session": { "type": "object" },
            "tags": { "type": "array", "items": { "type": "string" } }
        },
        "required": ["session_id", "memory_card", "redaction_report", "tags"]
    });
    let crypto = json!({
        "type": "object",
        "properties": { "verified": flag("Always true: an artifact that fails verification is not returned.") },
        "required": ["verified"]
    });
    output(
        json!({
            "ok": ok(),
            "cascade_uri": { "type": "string" },
            "artifact_type": artifact_type(),
            "artifact": artifact,
            "crypto": crypto
        }),
        json!([{ "required": ["cascade_uri", "artifact_type", "artifact", "crypto"] }]),
    )
}

pub(super) fn forget_input() -> Schema {
    input(
        json!({
            "cascade_uri": text("Forget this memory and the earlier ones of its session that it replaced. Give this or session_id, not both."),
            "session_id": text("Forget everything that was stored of this session."),
            "dry_run": flag("Only show what would be forgotten.")
        }),
        &[],
    )
}

pub(super) fn forget_output() -> Schema {
    let uris = json!({ "type": "array", "items": { "type": "string" } });
    output(
        json!({
            "ok": ok(),
            "dry_run": flag("Whether nothing was done."),
            "forgotten": whole("How many memories were forgotten, or would be."),
            "permanent": whole("How many of their blobs are in a store that cannot delete; without their keys, nobody can open them."),
            "pending": whole("How many blobs are not deleted yet because their store did not answer; their keys are destroyed."),
            "cascade_uris": uris
        }),
        json!([{ "required": ["dry_run", "forgotten", "cascade_uris"] }]),
    )
}

pub(super) fn import_input() -> Schema {
    input(
        json!({
            "path": text("A session file, or a folder of them, on this machine; if left out, the usual folders of coding agents in the home folder. Only for a server that runs on this machine over stdio."),
            "agent": { "type": "string", "enum": agents(), "description": "The agent that wrote the files; detected from their content if left out." },
            "tags": tags("Tags for all of them."),
            "mode": mode(),
            "dry_run": { "type": "boolean", "default": true, "description": "Only show what would be stored. Give false to store." }
        }),
        &[],
    )
}

pub(super) fn import_output() -> Schema {
    let item = json!({
        "type": "object",
        "properties": {
            "session_id": text("The session, redacted."),
            "agent": text("The agent whose file it was in."),
            "outcome": { "type": "string", "enum": ["stored", "would_store", "unchanged", "blocked", "refused", "forgotten"] },
            "title": text("The card's title."),
            "cascade_uri": text("Where the artifact is."),
            "places": { "type": "array", "items": { "type": "object" }, "description": "Why it was not stored: rule and path of what was found, never the value." }
        },
        "required": ["session_id", "agent", "outcome"]
    });
    output(
        json!({
            "ok": ok(),
            "dry_run": flag("Whether nothing was written."),
            "files": whole("Files that were read."),
            "unchanged_files": whole("Files that had not changed since the last import."),
            "unreadable_files": whole("Files and folders that could not be read."),
            "unknown_files": whole("Files in no known agent's format."),
            "sessions": whole("Sessions that were found in the files that were read."),
            "stored": whole("Those that were stored, or would be."),
            "unchanged": whole("Those that were stored before and have not changed."),
            "blocked": whole("Those with a critical secret; nothing of them was stored."),
            "refused": whole("Those that could not be made into a clean card."),
            "forgotten": whole("Those that were forgotten before, and stay so."),
            "skipped_lines": whole("Lines that could not be parsed."),
            "left_out_texts": whole("Texts that were too long and were left out completely."),
            "items": { "type": "array", "items": item, "description": "The outcome of the first sessions." },
            "more_items": whole("How many more there are.")
        }),
        json!([{ "required": ["dry_run", "files", "sessions", "stored", "items"] }]),
    )
}

pub(super) fn estimate_input() -> Schema {
    input(
        json!({
            "bytes": { "type": "integer", "minimum": 0, "maximum": cost::MAX_BYTES, "description": "The size of the artifact: crypto.bytes of a stored one." },
            "redundancy": { "type": "integer", "minimum": 1, "maximum": cost::MAX_REDUNDANCY, "default": 1, "description": "How many copies you keep." },
            "provider": { "type": "string", "enum": PROVIDERS, "default": "s3", "description": "Whose prices." }
        }),
        &["bytes"],
    )
}

pub(super) fn estimate_output() -> Schema {
    let usd = |what: &str| json!({ "type": "number", "description": what });
    // Cascade is paid in its own money, and without an exchange rate nobody knows.
    let maybe = |what: &str| json!({ "type": ["number", "null"], "description": what });
    output(
        json!({
            "ok": ok(),
            "bytes": whole("As asked."),
            "gb": { "type": "number", "description": "bytes / 2^30, one copy." },
            "monthly_storage_usd": usd("Storage for a month, all copies."),
            "estimated_request_usd": maybe("Requests in the first month, or a one-time fee; null if no exchange rate is set."),
            "total_estimated_usd": maybe("The sum for the first month; null if no exchange rate is set."),
            "assumptions": { "type": "object", "description": "Provider, price table and its date, formula, and what is not included." }
        }),
        json!([{
            "required": ["bytes", "gb", "monthly_storage_usd", "estimated_request_usd", "total_estimated_usd"]
        }]),
    )
}

fn page(limit: u64) -> Map<String, Value> {
    let moment = |what: &str| text(&format!("{what}, in RFC 3339, such as 2025-12-21T12:00:00Z."));
    let mut properties = Map::new();
    properties.insert("tags".into(), tags("Only memories that have all of these tags."));
    properties.insert(
        "limit".into(),
        json!({ "type": "integer", "minimum": 1, "maximum": MOST_HITS, "default": limit, "description": "At most this many." }),
    );
    properties.insert(
        "offset".into(),
        json!({ "type": "integer", "minimum": 0, "maximum": FARTHEST, "default": 0, "description": "Skip this many; for the next page." }),
    );
    properties.insert(
        "time_range".into(),
        json!({
            "type": "object",
            "description": "Only sessions within this time.",
            "properties": { "start": moment("Not before"), "end": moment("Before") },
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

/// A reply that has one of these forms, or is a failure.
fn output(mut properties: Value, forms: Value) -> Schema {
    properties["error"] = json!({
        "type": "object",
        "description": "Only if ok is false: why nothing was done.",
        "properties": {
            "code": text("A word for scripts."),
            "message": text("What happened."),
            "hint": text("What to do next."),
            "places": {
                "type": "array",
                "description": "Rule and place of each secret that was found; never the secret.",
                "items": {
                    "type": "object",
                    "properties": { "rule": { "type": "string" }, "path": { "type": "string" } },
                    "required": ["rule", "path"]
                }
            }
        },
        "required": ["code", "message", "hint"]
    });
    let mut forms = forms;
    if let Value::Array(forms) = &mut forms {
        forms.push(json!({ "required": ["error"] }));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties);
    schema.insert("required".into(), json!(["ok"]));
    schema.insert("anyOf".into(), forms);
    schema
}

fn card() -> Value {
    let list = |what: &str| json!({ "type": "array", "items": { "type": "string" }, "description": what });
    json!({
        "type": "object",
        "description": "The sanitised essence of the session.",
        "properties": {
            "title": text("One line."),
            "summary_bullets": list("What happened."),
            "decisions": list("What was decided."),
            "todos": list("What is left to do."),
            "entities": list("Files, symbols, packages, services."),
            "keywords": list("What it is about."),
            "notable_quotes": list("Words worth quoting.")
        },
        "required": ["title", "summary_bullets", "decisions", "todos", "entities", "keywords", "notable_quotes"]
    })
}

fn redaction() -> Value {
    json!({
        "type": "object",
        "description": "What was replaced by placeholders such as <REDACTED:EMAIL>.",
        "properties": { "rules_fired": rules() },
        "required": ["rules_fired"]
    })
}

fn rules() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": { "rule": { "type": "string" }, "count": { "type": "integer" } },
            "required": ["rule", "count"]
        }
    })
}

fn artifact_type() -> Value {
    json!({
        "type": "string",
        "enum": ["artifact_only", "raw_plus_artifact"],
        "description": "artifact_only: the card. raw_plus_artifact: the redacted transcript too."
    })
}

fn mode() -> Value {
    json!({ "type": "string", "enum": MODES, "description": "Where artifacts are kept, if the server allows a choice; leave it out for its default." })
}

fn tags(what: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": what })
}

fn sha256(what: &str) -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$", "description": what })
}

fn text(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

fn flag(what: &str) -> Value {
    json!({ "type": "boolean", "description": what })
}

fn whole(what: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": what })
}

fn ok() -> Value {
    flag("Whether it was done; if not, error says why.")
}
