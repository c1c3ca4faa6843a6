//! What is sent is what the engine says and what the description describes, with everything set and with nothing set.

use std::collections::BTreeSet;

use confidant_engine as engine;
use confidant_engine::audit::{Action, AuditLine, AuditRecord, Lane};
use confidant_engine::clock::Millis;
use confidant_engine::concepts::{Concept, ConceptInScope, ContextStatus};
use confidant_engine::turn::{Ending, Final};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::surface::conforms;
use super::*;
use crate::answers::TurnReply;
use crate::audit;
use crate::wire;

/// Reads a type of the engine, as a worker sends it.
fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What is sent for a value of the engine: the same JSON, byte for byte.
fn sent<T: Serialize, U: From<T> + Serialize>(theirs: T) -> Value {
    let expected = serde_json::to_string(&theirs).unwrap();
    let sent = serde_json::to_string(&U::from(theirs)).unwrap();
    assert_eq!(sent, expected);
    serde_json::from_str(&sent).unwrap()
}

/// The description has every field of the values, and no field that none of them has.
fn described(document: &Value, name: &str, values: &[&Value]) {
    let keys = |value: &Value| -> BTreeSet<String> { value.as_object().unwrap().keys().cloned().collect() };
    let mut all = BTreeSet::new();
    for value in values {
        conforms(document, name, value);
        all.extend(keys(value));
    }
    assert_eq!(all, keys(&document["components"]["schemas"][name]["properties"]), "{name}");
}

async fn document() -> Value {
    Server::builtin().await.ask(Method::GET, "/openapi.json", None).await.ok()
}

fn preparation() -> Value {
    json!({
        "language_code": "en", "category": "general", "selected_model": "big", "selection_reason": "it is hard",
        "harm": {
            "direct_self_harm": 0.1, "indirect_self_harm": 0.2, "gradual_escalation_patterns": 0.3,
            "emotional_distress_indicators": 0.4, "illegal": 0.5,
        },
        "prompt_injection_chance": 0.6, "tags": ["tag"], "relevant_app_skills": ["skill"],
        "relevant_app_focus_modes": ["focus"], "relevant_app_settings_and_memories": ["setting"],
        "title": "A title", "icon_names": ["sun"], "by": "model",
    })
}

fn receipt() -> Value {
    json!({
        "erased": "session", "subject": "abc", "at": 1, "epoch": 2, "sessions": 3, "records": 4, "tokens": 5,
        "derived": { "memories": 6 }, "keys": ["k"], "audit_lane": 7, "audit_seq": 8, "audit_tag": "t",
        "signature": "s",
    })
}

fn metadata() -> Value {
    json!({
        "memory": "unavailable", "memory_error": "storage_failed", "audience": "room", "model": "big",
        "recalled": 1, "withheld": 2, "left_out": 3, "room_lines": 4, "replayed": true, "resumed": true,
        "failed_aspects": ["mate"], "tools": ["files.read"], "compressed": true, "dropped": 5,
        "preparation": preparation(), "mate": "Ada", "focus": "learn",
        "safety": [
            "provide_crisis_resources", "flag_for_human_review", "refuse_and_redirect", "terminate_conversation",
        ],
        "unjudged": true, "requested_settings": ["city"], "context_status": "graph_failed",
        "concepts": { "referenced_nodes": ["n"], "jurisdictions": ["IE"], "uncertainty_level": "medium" },
        "pending_approvals": 6, "usage": { "prompt_tokens": 7, "completion_tokens": 8 },
        "receipt": receipt(),
        "asks": { "question": "Which?", "options": ["a", "b"], "timeout_seconds": 9 },
        "calls": [{ "id": "call_1", "name": "get_weather", "arguments": { "city": "Cork" } }],
    })
}

fn approval() -> Value {
    json!({
        "approval_id": "a", "code": "7QX", "question": "Delete it?", "options": ["approve", "deny"],
        "tool": "files.delete", "arguments": { "path": "/a" }, "hash": "h", "expires_at": 1, "request_id": "r",
        "audience": "private",
    })
}

fn about() -> Value {
    json!({
        "title": "A title", "icon_names": ["sun"], "category": "general",
        "enrichment": {
            "follow_up_suggestions": ["more"], "new_chat_suggestions": ["other"], "chat_summary": "It was said.",
            "chat_tags": ["tag"], "next_step_suggestions": ["test it"], "harmful_response": 0.7,
        },
        "flagged_for_review": true, "focus": "learn", "terminated": true,
    })
}

fn export() -> Value {
    let message = |kind: &str| {
        json!({
            "type": kind, "content": "hello", "timestamp": 1, "audience": "room", "request_id": "r",
            "name": "files.read", "arguments": { "path": "/a" }, "unanswered": "cancelled",
        })
    };
    json!({
        "format": "confidant/export/v1", "session_id": "app_conv:x", "exported_at": 2, "version": 3,
        "messages": [message("human"), message("ai"), message("tool")], "about": about(),
        "summaries": [{ "audience": "private", "timestamp": 4, "content": "In short." }],
        "concepts": [{ "at": 5 }], "labels": [{ "request_id": "r", "values": { "k": "v" }, "asked_for": { "temperature": 0.5 } }],
    })
}

#[tokio::test]
async fn how_an_answer_was_made() {
    let document = document().await;
    let whole = sent::<engine::turn::Metadata, wire::Metadata>(read(metadata()));
    assert_eq!(whole.as_object().unwrap().len(), metadata().as_object().unwrap().len());
    described(&document, "Metadata", &[&whole]);
    described(&document, "Preparation", &[&whole["preparation"]]);
    described(&document, "Harm", &[&whole["preparation"]["harm"]]);
    described(&document, "ConceptsOfTurn", &[&whole["concepts"]]);
    described(&document, "TokenUsage", &[&whole["usage"]]);
    described(&document, "Question", &[&whole["asks"]]);
    described(&document, "ClientCall", &[&whole["calls"][0]]);
    for memory in ["kept", "off", "unavailable", "forgotten"] {
        let least = json!({ "memory": memory, "audience": "private", "recalled": 0, "room_lines": 0 });
        let least = sent::<engine::turn::Metadata, wire::Metadata>(read(least));
        conforms(&document, "Metadata", &least);
        assert_eq!(least.as_object().unwrap().len(), 4);
    }
    for status in ["empty", "loaded", "load_failed", "graph_failed", "save_failed"] {
        let mut one = metadata();
        one["context_status"] = json!(status);
        one["preparation"]["by"] = json!("rules");
        one["concepts"] = json!({ "uncertainty_level": if status == "empty" { "low" } else { "high" } });
        conforms(&document, "Metadata", &sent::<engine::turn::Metadata, wire::Metadata>(read(one)));
    }
}

#[tokio::test]
async fn how_a_turn_ends() {
    let document = document().await;
    let mut answered = metadata();
    answered.as_object_mut().unwrap().remove("asks");
    let answer = |metadata: Value| {
        let (request_id, content) = ("r".to_owned(), "hello".to_owned());
        Ending::Answer(Final { request_id, content, metadata: Box::new(read(metadata)) })
    };
    let cases = [
        ("FinalResponse", answer(answered)),
        ("HitlRequest", Ending::Approval(Box::new(read(approval())))),
        ("ForeignHitlRequest", answer(metadata())),
    ];
    for (name, ending) in cases {
        let reply = serde_json::to_value(TurnReply::from(ending)).unwrap();
        conforms(&document, "TurnReply", &reply);
        described(&document, name, &[&reply]);
    }
    let asked = sent::<engine::approval::ApprovalRequest, wire::Approval>(read(approval()));
    described(&document, "Approval", &[&asked]);
}

#[tokio::test]
async fn what_is_kept_of_a_session_and_of_a_person() {
    let document = document().await;
    let known = sent::<engine::About, wire::About>(read(about()));
    described(&document, "About", &[&known]);
    described(&document, "Enrichment", &[&known["enrichment"]]);
    conforms(&document, "About", &sent::<engine::About, wire::About>(engine::About::default()));
    sent::<engine::turn::Enrichment, wire::Enrichment>(engine::turn::Enrichment::default());

    let theirs: engine::rights::Export = read(export());
    let expected = serde_json::to_string(&theirs).unwrap();
    let ours = serde_json::to_string(&wire::Export::of_session(theirs)).unwrap();
    let said = |kind: &str| format!("{{\"type\":\"{kind}\",\"content\":\"hello\"}}");
    let said = [said("human"), said("ai"), said("tool")].join(",");
    assert_eq!(ours, format!("{},\"data\":{{\"messages\":[{said}]}}}}", expected.strip_suffix('}').unwrap()));
    let ours: Value = serde_json::from_str(&ours).unwrap();
    described(&document, "Export", &[&ours]);
    described(&document, "ExportedMessage", &[&ours["messages"][0]]);
    described(&document, "ExportedSummary", &[&ours["summaries"][0]]);
    described(&document, "ExportedLabels", &[&ours["labels"][0]]);
    described(&document, "Checkpoint", &[&ours["data"]]);
    described(&document, "CheckpointMessage", &[&ours["data"]["messages"][0]]);

    let mut person = json!({
        "format": "confidant/export/v1", "user_id": "alice", "exported_at": 1, "sessions": [export()],
        "unreadable": ["key-gone"], "channel_events": [{ "text": "hello" }], "concepts": [{ "at": 2 }],
        "memories": [{ "card": "c" }],
    });
    let whole = sent::<engine::rights::PersonExport, wire::PersonExport>(read(person.clone()));
    described(&document, "PersonExport", &[&whole]);
    person["others"] = json!([{ "any": 1 }]);
    let more = sent::<engine::rights::PersonExport, wire::PersonExport>(read(person));
    conforms(&document, "PersonExport", &more);
    let least =
        json!({ "format": "f", "user_id": "alice", "exported_at": 1, "sessions": [], "memories": [] });
    let least = sent::<engine::rights::PersonExport, wire::PersonExport>(read(least));
    assert_eq!(least.as_object().unwrap().len(), 5);
}

#[tokio::test]
async fn what_an_erasure_leaves() {
    let document = document().await;
    sent::<engine::rights::Receipt, wire::Receipt>(read(receipt()));
    let mut uncounted = receipt();
    for name in ["epoch", "derived", "audit_lane"] {
        uncounted.as_object_mut().unwrap().remove(name);
    }
    let least = sent::<engine::rights::Receipt, wire::Receipt>(read(uncounted));
    assert_eq!(least.as_object().unwrap().len(), 10);

    let text = serde_json::to_string(&read::<engine::rights::Receipt>(receipt())).unwrap();
    let start = text.strip_suffix('}').unwrap();
    let session = wire::Receipt::of_session(read(receipt()), "app_conv:x".to_owned());
    let session = serde_json::to_string(&session).unwrap();
    assert_eq!(session, format!("{start},\"deleted\":true,\"session_id\":\"app_conv:x\"}}"));
    let person = wire::Receipt::of_person(read(receipt()), "alice".to_owned());
    let person = serde_json::to_string(&person).unwrap();
    assert_eq!(person, format!("{start},\"deleted\":true,\"user_id\":\"alice\"}}"));
    let [session, person]: [Value; 2] = [session, person].map(|text| serde_json::from_str(&text).unwrap());
    described(&document, "Receipt", &[&session, &person]);
    conforms(&document, "Erased", &person);
}

#[tokio::test]
async fn concepts_in_scope_and_those_that_wait() {
    let document = document().await;
    let in_scope = |known: bool| ConceptInScope {
        id: "n".to_owned(),
        label: "VAT".to_owned(),
        jurisdiction: known.then(|| "IE".to_owned()),
        description: known.then(|| "A tax.".to_owned()),
        pinned: true,
        uses: 2,
        last_used: known.then_some(Millis(3)),
        candidate: true,
    };
    let view = sent::<engine::concepts::ScopeView, wire::ScopeView>(engine::concepts::ScopeView {
        conversation_id: "c".to_owned(),
        active_node_ids: vec!["n".to_owned()],
        concepts: vec![in_scope(true), in_scope(false)],
        context_status: ContextStatus::Off,
    });
    described(&document, "ScopeView", &[&view]);
    described(&document, "ConceptInScope", &[&view["concepts"][0]]);

    let reason = |request_id: Option<&str>| {
        let request_id = request_id.map(str::to_owned);
        let audience = engine::room::Audience::Private;
        engine::concepts::Reason { at: Millis(1), what: "pinned", request_id, yours: true, audience }
    };
    let [whole, least] =
        [Some("r"), None].map(|id| sent::<engine::concepts::Reason, wire::ScopeReason>(reason(id)));
    described(&document, "ScopeReason", &[&whole, &least]);

    let candidate = |concept: Concept| {
        let sessions = vec!["s".to_owned()];
        engine::concepts::Candidate {
            concept,
            said: true,
            captures: 1,
            sessions,
            first: Millis(2),
            last: Millis(3),
        }
    };
    let plain = Concept::new("TAX", "IE", "VAT", "Value added tax");
    let whole = Concept {
        alt_labels: vec!["VAT".to_owned()],
        definition: Some("A tax.".to_owned()),
        source_urls: vec!["https://example.org".to_owned()],
        ..plain.clone()
    };
    let [whole, least] = [whole, plain]
        .map(|concept| sent::<engine::concepts::Candidate, wire::Candidate>(candidate(concept)));
    described(&document, "Candidate", &[&whole, &least]);

    let approved = engine::concepts::ApprovedConcept { id: "n".to_owned(), pref_label: "VAT".to_owned() };
    let approved = sent::<engine::concepts::ApprovedConcept, wire::ApprovedConcept>(approved);
    described(&document, "ApprovedConcept", &[&approved]);
}

#[tokio::test]
async fn records_of_the_audit_log() {
    let document = document().await;
    let line = |lane: u32, word: Option<&str>| AuditLine {
        lane: Lane::new(lane),
        seq: 1,
        record: AuditRecord {
            at: Millis(2),
            actor: Actor::cli(),
            action: Action::SessionExported,
            subject: word.map(str::to_owned),
            tenant: word.map(str::to_owned),
            count: word.map(|_| 3),
            reason: word.map(str::to_owned),
        },
        tag: "t".to_owned(),
    };
    let whole = sent::<AuditLine, audit::AuditRecord>(line(4, Some("x")));
    let least = sent::<AuditLine, audit::AuditRecord>(line(0, None));
    assert_eq!(least.as_object().unwrap().len(), 5);
    described(&document, "AuditRecord", &[&whole, &least]);
}

/// The bodies that stand for types of the engine are read as the engine reads them.
#[test]
fn what_a_client_sends_along_reaches_the_engine() {
    let profile = json!({
        "learning_style": "visual", "interests": ["maps"], "jurisdictions": ["IE"], "persona": "self-employed",
        "more": { "pace": "slow" },
    });
    let ours: wire::Profile = read(profile.clone());
    assert!(engine::aspects::Profile::from(ours) == read::<engine::aspects::Profile>(profile));
    let chat: engine::turn::PastChat = read::<wire::PastChat>(json!({ "title": "a", "summary": "b" })).into();
    assert_eq!((chat.title.as_str(), chat.summary.as_str()), ("a", "b"));
    let line = json!({
        "sender": "@a", "content": "hello", "timestamp": "1970-01-01T00:01:00Z", "is_bot": null, "event_id": "e",
        "replaces": "d", "redacted": true,
    });
    let line: engine::room::RoomLine = read::<wire::RoomLine>(line).into();
    assert_eq!((line.sender.as_str(), line.content.as_str(), line.timestamp), ("@a", "hello", 60));
    assert_eq!((line.event_id.as_deref(), line.replaces.as_deref()), (Some("e"), Some("d")));
    assert_eq!((line.is_bot, line.redacted), (false, true));
    let least: engine::room::RoomLine =
        read::<wire::RoomLine>(json!({ "sender": "@a", "content": "b" })).into();
    assert_eq!((least.timestamp, least.event_id, least.redacted), (0, None, false));
}
