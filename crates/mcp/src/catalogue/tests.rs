//! What is said of the tools agrees with what they do, and with seed 001.

use confidant_memory::Card;
use confidant_memory::api::{
    ArtifactType, Crypto, DryRun, Hits, Indexed, MemoryHit, Preview, Redaction, Retrieved, Stored, Verified,
};
use confidant_memory::gate::Fired;
use serde_json::{Map, Value, json};

use super::*;

#[test]
fn every_tool_has_a_name_a_description_with_its_result_schemas_and_annotations() {
    for tool in all() {
        assert!(ToolName::parse(&tool.name).is_some_and(|name| name.as_str() == tool.name));
        let description = tool.description.as_deref().unwrap();
        assert!(description.contains("Returns {ok"), "{}", tool.name);
        let annotations = tool.annotations.as_ref().unwrap();
        let hints = (annotations.read_only_hint, annotations.destructive_hint);
        assert!(hints.0.is_some() && hints.1.is_some() && hints != (Some(true), Some(true)), "{}", tool.name);
        assert!(annotations.idempotent_hint.is_some() && annotations.open_world_hint.is_some());
        let output = tool.output_schema.as_ref().unwrap();
        for (schema, what) in [(&tool.input_schema, "input"), (output, "output")] {
            assert_eq!(schema.get("type"), Some(&json!("object")), "{} {what}", tool.name);
            no_formats(&Value::Object((**schema).clone()));
        }
        // What a description promises is in the schema, so that the two cannot drift apart.
        for name in output["properties"].as_object().unwrap().keys() {
            let told = description.contains(name.as_str()) || UNTOLD.contains(&name.as_str());
            assert!(told, "{}: {name} is not told of", tool.name);
        }
    }
    assert_eq!(named("forget_memory").unwrap().annotations.as_ref().unwrap().destructive_hint, Some(true));
}

/// Each of these is in the context of an agent for all of its session.
#[test]
fn all_tools_together_take_at_most_3000_tokens() {
    let listed = serde_json::to_string(all()).unwrap();
    let tokens = confidant_engine::model::tokens::count(&listed);
    assert!(tokens <= 3000, "{tokens}");
}

/// Members that matter to programs only.
const UNTOLD: &[&str] = &["supersedes", "error"];

fn no_formats(schema: &Value) {
    match schema {
        Value::Object(members) => {
            assert!(!members.contains_key("format"), "{schema}");
            members.values().for_each(no_formats);
        }
        Value::Array(list) => list.iter().for_each(no_formats),
        _ => {}
    }
}

#[test]
fn every_member_of_the_outputs_of_seed_001_is_there_and_in_the_schema() {
    let stored = json!({
        "ok": true, "session_id": "demo-001", "cascade_uri": "cascade://abc123...", "artifact_type": "artifact_only",
        "indexed": true, "memory_card": card(), "redaction": {"rules_fired": [{"rule": "email", "count": 1}]},
        "crypto": {"enc": "AES-256-GCM", "bytes": 1024}
    });
    agrees("store_session_to_cascade", &our_stored(), &stored);
    let dry_run = json!({
        "ok": true, "dry_run": true,
        "preview": {
            "artifact_type": "artifact_only", "fields": ["session_id", "memory_card", "redaction_report", "tags"],
            "bytes": 1024, "would_upload": false
        },
        "memory_card": card(), "redaction": {"rules_fired": [{"rule": "email", "count": 1}]}
    });
    agrees("store_session_to_cascade", &our_dry_run(), &dry_run);
    let hits = json!({
        "ok": true,
        "hits": [{
            "cass_session_id": "demo-001", "cascade_uri": "cascade://abc123...", "artifact_type": "artifact_only",
            "title": "Bug fix: JWT validation", "snippet": "Fixed auth service bug | Rolled back to v2.3.1",
            "tags": ["production", "bug-fix"], "created_at": "2025-12-21T12:00:00Z", "score": 0.83
        }]
    });
    agrees("query_memories", &our_hits(), &hits);
    agrees("list_memories", &our_hits(), &hits);
    let artifact = json!({
        "session_id": "demo-001", "memory_card": card(), "redaction_report": [{"rule": "email", "count": 1}],
        "raw_session": {"tool_name": "bug-tracker"}, "tags": ["production"]
    });
    let retrieved = json!({
        "ok": true, "cascade_uri": "cascade://abc123...", "artifact_type": "raw_plus_artifact", "artifact": artifact,
        "crypto": {"verified": true}
    });
    let ours = Retrieved {
        ok: true,
        cascade_uri: "cascade://abc123...".into(),
        artifact_type: ArtifactType::RawPlusArtifact,
        artifact,
        crypto: Verified { verified: true },
    };
    agrees("retrieve_session_from_cascade", &ours, &retrieved);
}

/// What we send has every member of the seed's example with its value, and the schema knows each of ours.
fn agrees(tool: &str, ours: &impl serde::Serialize, seed: &Value) {
    let ours = serde_json::to_value(ours).unwrap();
    contains(&ours, seed, tool);
    let schema = named(tool).unwrap().output_schema.clone().unwrap();
    fits(&ours, &Value::Object((*schema).clone()), tool);
    fits(seed, &Value::Object((*schema).clone()), tool);
}

fn contains(ours: &Value, seed: &Value, place: &str) {
    match (ours, seed) {
        (Value::Object(ours), Value::Object(seed)) => {
            for (name, value) in seed {
                let place = format!("{place}.{name}");
                contains(ours.get(name).unwrap_or_else(|| panic!("{place} is missing")), value, &place);
            }
        }
        (ours, seed) => assert_eq!(ours, seed, "{place}"),
    }
}

/// The part of JSON Schema that our schemas use.
fn fits(value: &Value, schema: &Value, place: &str) {
    let kind = match value {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Null => "null",
    };
    assert_eq!(schema["type"], json!(kind), "{place}");
    let missing = |value: &Map<String, Value>, required: &Value| {
        required.as_array().into_iter().flatten().any(|name| !value.contains_key(name.as_str().unwrap()))
    };
    if let Value::Object(members) = value {
        assert!(!missing(members, &schema["required"]), "{place} lacks a member");
        if let Some(forms) = schema["anyOf"].as_array() {
            assert!(forms.iter().any(|form| !missing(members, &form["required"])), "{place} has no form");
        }
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => fits(member, schema, &format!("{place}.{name}")),
                None => assert!(schema.get("properties").is_none(), "{place}.{name} is not in the schema"),
            }
        }
    }
    if let Value::Array(list) = value {
        list.iter().for_each(|item| fits(item, &schema["items"], place));
    }
    if let Some(allowed) = schema["enum"].as_array() {
        assert!(allowed.contains(value), "{place}");
    }
}

fn card() -> Value {
    json!({
        "title": "Bug fix: JWT validation",
        "summary_bullets": ["Fixed auth service bug", "Rolled back to v2.3.1"],
        "decisions": ["Roll back to stable version"],
        "todos": ["Fix JWT validation before next deploy"],
        "entities": ["JWT", "auth-service"],
        "keywords": ["bug", "auth", "jwt", "rollback"],
        "notable_quotes": ["Invalid token format"]
    })
}

fn our_card() -> Card {
    serde_json::from_value(card()).unwrap()
}

fn redaction() -> Redaction {
    Redaction { rules_fired: vec![Fired { rule: "email".into(), count: 1 }] }
}

fn our_stored() -> Stored {
    Stored {
        ok: true,
        session_id: "demo-001".into(),
        cascade_uri: "cascade://abc123...".into(),
        artifact_type: ArtifactType::ArtifactOnly,
        indexed: true,
        memory_card: our_card(),
        redaction: redaction(),
        crypto: Crypto {
            enc: "AES-256-GCM",
            bytes: 1024,
            key_id: "k".into(),
            plaintext_sha256: "p".into(),
            ciphertext_sha256: "c".into(),
        },
        already_stored: false,
        supersedes: Some("cascade://other".into()),
    }
}

fn our_dry_run() -> DryRun {
    DryRun {
        session_index: Indexed::default(),
        ok: true,
        dry_run: true,
        session_id: "demo-001".into(),
        preview: Preview {
            artifact_type: ArtifactType::ArtifactOnly,
            fields: ["session_id", "memory_card", "redaction_report", "tags"].map(str::to_owned).to_vec(),
            bytes: 1024,
            would_upload: false,
            sha256: "s".into(),
            payload_json: "{}".into(),
            payload: json!({}),
        },
        memory_card: our_card(),
        redaction: redaction(),
    }
}

fn our_hits() -> Hits {
    let hit = MemoryHit {
        superseded: Vec::new(),
        matched: None,
        cass_session_id: "demo-001".into(),
        cascade_uri: "cascade://abc123...".into(),
        artifact_type: ArtifactType::ArtifactOnly,
        title: "Bug fix: JWT validation".into(),
        snippet: "Fixed auth service bug | Rolled back to v2.3.1".into(),
        tags: vec!["production".into(), "bug-fix".into()],
        created_at: "2025-12-21T12:00:00Z".into(),
        score: 0.83,
    };
    Hits { ok: true, hits: vec![hit], unreadable: 0 }
}
