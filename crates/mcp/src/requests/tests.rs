//! Seed 001's inputs are read, and no error ever repeats what was given.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::catalogue::ToolName;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => panic!("not an object"),
    }
}

fn store(value: Value) -> Result<Store, Failure> {
    Store::read(&object(value))
}

/// Reads arguments as the tool of this name would.
fn read(tool: ToolName, arguments: &Map<String, Value>) -> Result<(), Failure> {
    match tool {
        ToolName::Remember => remember(arguments).map(drop),
        ToolName::Recall => recall(arguments).map(drop),
        ToolName::Store => Store::read(arguments).map(drop),
        ToolName::Query => query(arguments).map(drop),
        ToolName::List => list(arguments).map(drop),
        ToolName::Retrieve => retrieve(arguments).map(drop),
        ToolName::Forget => forget(arguments).map(drop),
        ToolName::Import => import(arguments, None).map(drop),
        ToolName::Estimate => crate::estimate::read(arguments).map(drop),
    }
}

#[test]
fn the_inputs_of_seed_001_are_read() {
    let read = store(json!({
        "session_id": "demo-001",
        "tags": ["production"],
        "metadata": { "dry_run": false, "allow_raw_export": false, "raw_export_ack": null },
        "mode": "mock"
    }))
    .unwrap();
    let expected = StoreRequest {
        session_id: "demo-001".into(),
        tags: vec!["production".into()],
        mode: Some("mock".into()),
        ..StoreRequest::default()
    };
    assert!(read == Store { request: expected, dry_run: false, notes: vec![] });

    let asked = query(&object(json!({"query": "JWT auth bug", "tags": ["production"], "limit": 5}))).unwrap();
    let expected = QueryRequest {
        query: "JWT auth bug".into(),
        tags: vec!["production".into()],
        limit: 5,
        ..QueryRequest::default()
    };
    assert_eq!(asked, expected);

    let (uri, mode) =
        retrieve(&object(json!({"cascade_uri": "cascade://abc123...", "mode": "mock"}))).unwrap();
    assert_eq!((uri.as_str(), mode), ("cascade://abc123...", Some("mock")));
}

#[test]
fn a_note_needs_nothing_but_its_text() {
    let first = remember(&object(json!({"text": "We deploy on Fridays."}))).unwrap();
    let second = remember(&object(json!({"text": "We deploy on Fridays.", "tags": ["ops"]}))).unwrap();
    assert_eq!(first.session.unwrap()["summary"], json!("We deploy on Fridays."));
    assert!(first.session_id != second.session_id && second.tags == ["ops"]);
    for wrong in [json!({}), json!({"text": " \n"}), json!({"text": 7}), json!({"note": "x"})] {
        assert_eq!(remember(&object(wrong)).err().unwrap().code, "invalid");
    }
    assert_eq!(recall(&object(json!({"query": "deploys"}))).unwrap().limit, 5);
    assert!(recall(&object(json!({"query": "x", "tags": []}))).is_err());
}

#[test]
fn local_is_the_mode_that_the_seeds_call_mock() {
    for name in ["local", "mock"] {
        assert_eq!(
            store(json!({"session_id": "s", "mode": name})).unwrap().request.mode.as_deref(),
            Some("mock")
        );
        let opened = retrieve(&object(json!({"cascade_uri": "cascade://x", "mode": name}))).unwrap();
        assert_eq!(opened.1, Some("mock"));
        assert_eq!(
            import(&object(json!({"path": "x", "mode": name})), None).unwrap().mode.as_deref(),
            Some("mock")
        );
    }
    assert!(store(json!({"session_id": "s", "mode": "elsewhere"})).is_err());
}

#[test]
fn the_transcript_needs_both_flags_exactly() {
    let with = |metadata: Value| store(json!({"session_id": "s", "metadata": metadata}));
    let both = with(json!({"allow_raw_export": true, "raw_export_ack": RAW_EXPORT_ACK})).unwrap();
    assert_eq!((both.request.raw, both.notes.len()), (Raw::Acknowledged, 0));
    for metadata in [
        json!({"allow_raw_export": true}),
        json!({"allow_raw_export": true, "raw_export_ack": null}),
        json!({"allow_raw_export": true, "raw_export_ack": "i understand the risk"}),
        json!({"allow_raw_export": true, "raw_export_ack": "I understand the risk "}),
        json!({"allow_raw_export": false, "raw_export_ack": RAW_EXPORT_ACK}),
        json!({"raw_export_ack": RAW_EXPORT_ACK}),
    ] {
        let read = with(metadata.clone()).unwrap();
        assert_eq!((read.request.raw, read.notes.len()), (Raw::No, 1), "{metadata}");
    }
    for metadata in [json!({"allow_raw_export": "true"}), json!({"allow_raw_export": 1})] {
        assert_eq!(with(metadata).err().unwrap().code, "invalid");
    }
}

#[test]
fn switches_are_taken_in_both_places_and_are_no_metadata() {
    let hash = "ab".repeat(32);
    let inside = json!({"dry_run": true, "expect_sha256": hash, "team": "core"});
    let read = store(json!({"session_id": "s", "metadata": inside})).unwrap();
    assert!(read.dry_run);
    assert_eq!(read.request.expect_sha256.as_deref(), Some(hash.as_str()));
    assert_eq!(read.request.metadata, object(json!({"team": "core"})));

    let read =
        store(json!({"session_id": "s", "dry_run": true, "expect_sha256": hash.to_uppercase()})).unwrap();
    assert!(read.dry_run && read.request.expect_sha256.as_deref() == Some(hash.as_str()));

    // A dry run asked for anywhere is one.
    assert!(
        store(json!({"session_id": "s", "dry_run": false, "metadata": {"dry_run": true}})).unwrap().dry_run
    );
    let other = "cd".repeat(32);
    let both = json!({"session_id": "s", "expect_sha256": hash, "metadata": {"expect_sha256": other}});
    assert_eq!(store(both).err().unwrap().code, "invalid");
}

#[test]
fn a_session_may_bring_its_own_id_and_come_as_text() {
    let read = store(json!({"session": {"session_id": "inner", "summary": "x"}})).unwrap();
    assert_eq!(read.request.session_id, "inner");
    let read = store(json!({"session_id": "s", "session": "{\"summary\": \"x\"}"})).unwrap();
    assert_eq!(read.request.session, Some(object(json!({"summary": "x"}))));
}

#[test]
fn a_page_and_a_time_range_are_read() {
    let asked = query(&object(json!({
        "query": "", "limit": 7.0, "offset": 14,
        "time_range": {"start": "2025-12-21T12:00:00Z", "end": "2025-12-21T15:00:00+02:00"}
    })))
    .unwrap();
    assert_eq!((asked.limit, asked.offset), (7, 14));
    assert_eq!((asked.from, asked.until), (Some(1_766_318_400_000), Some(1_766_322_000_000)));
    assert_eq!(list(&Map::new()).unwrap().limit, 20);
}

#[test]
fn one_thing_is_forgotten_by_one_name() {
    let (what, dry_run) = forget(&object(json!({"cascade_uri": "memory://ab", "dry_run": true}))).unwrap();
    assert!(what == Forget::Uri("cascade://ab".into()) && dry_run);
    assert!(forget(&object(json!({"session_id": "s"}))).unwrap() == (Forget::Session("s".into()), false));
    assert!(forget(&Map::new()).is_err());
    assert!(forget(&object(json!({"session_id": "s", "cascade_uri": "cascade://ab"}))).is_err());
}

#[test]
fn errors_name_the_field_and_say_what_to_do() {
    let cases = [
        (ToolName::Store, json!({}), "\"session_id\""),
        (ToolName::Store, json!({"session_id": 5}), "\"session_id\""),
        (ToolName::Store, json!({"session_id": "s", "session": []}), "\"session\""),
        (ToolName::Store, json!({"session_id": "s", "tags": "production"}), "\"tags\""),
        (ToolName::Store, json!({"session_id": "s", "tags": [1]}), "\"tags\""),
        (ToolName::Store, json!({"session_id": "s", "mode": "moon"}), "\"mode\""),
        (ToolName::Store, json!({"session_id": "s", "metadata": {"dry_run": 1}}), "\"metadata.dry_run\""),
        (ToolName::Store, json!({"session_id": "s", "expect_sha256": "abc"}), "\"expect_sha256\""),
        (ToolName::Query, json!({}), "\"query\""),
        (ToolName::Query, json!({"query": "x", "limit": 0}), "\"limit\""),
        (ToolName::Query, json!({"query": "x", "limit": 2.5}), "\"limit\""),
        (ToolName::Query, json!({"query": "x", "offset": -1}), "\"offset\""),
        (
            ToolName::Query,
            json!({"query": "x", "time_range": {"start": "yesterday"}}),
            "\"time_range.start\"",
        ),
        (ToolName::Query, json!({"query": "x", "time_range": {"from": "x"}}), "\"time_range\""),
        (ToolName::Retrieve, json!({}), "\"cascade_uri\""),
        (ToolName::Forget, json!({"cascade_uri": true}), "\"cascade_uri\""),
    ];
    for (tool, arguments, field) in cases {
        let failure = read(tool, &object(arguments.clone())).unwrap_err();
        assert!(failure.message.contains(field), "{arguments}: {}", failure.message);
        assert!(failure.code == "invalid" && !failure.hint.is_empty(), "{arguments}");
    }
}

/// A word that is in no message of ours.
const SECRET: &str = "zqxjkv-4711";

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(|text| Value::from(format!("{SECRET}{text}"))),
        Just(Value::from(SECRET)),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn keys() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "session_id",
        "session",
        "tags",
        "metadata",
        "mode",
        "dry_run",
        "expect_sha256",
        "query",
        "limit",
        "offset",
        "time_range",
        "start",
        "end",
        "path",
        "agent",
        "cascade_uri",
        "allow_raw_export",
        "raw_export_ack",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,6}".prop_map(|text| format!("{SECRET}{text}"))]
}

proptest! {
    #[test]
    fn no_error_repeats_what_was_given(
        arguments in prop::collection::btree_map(keys(), anything(), 0..6),
        tool in prop::sample::select(ToolName::ALL.to_vec()),
    ) {
        let arguments: Map<String, Value> = arguments.into_iter().collect();
        if let Err(failure) = read(tool, &arguments) {
            let said = serde_json::to_string(&failure.result()).unwrap();
            prop_assert!(!said.contains(SECRET), "{said}");
            prop_assert!(!failure.message.is_empty() && !failure.hint.is_empty());
        }
    }
}
