//! Rows made by the Python code of the first system (`legacy_python.py` writes the fixture).

use confidant_seal::{LegacyError, MasterKey, open_checkpoint};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    master: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    thread_id: String,
    row: String,
    plaintext: Option<String>,
    error: Option<String>,
}

#[test]
fn rows_of_the_first_system_open_or_are_refused() {
    let fixture: Fixture = serde_json::from_str(include_str!("fixtures/legacy.json")).unwrap();
    let master = MasterKey::from_base64(&fixture.master).unwrap();
    assert_eq!(fixture.cases.len(), 14);
    for case in fixture.cases {
        let expected = match (case.plaintext, case.error.as_deref()) {
            (Some(plaintext), None) => Ok(plaintext.into_bytes()),
            (None, Some("open")) => Err(LegacyError::OpenFailed),
            (None, Some("not encrypted")) => Err(LegacyError::NotEncrypted),
            (None, Some("format")) => Err(LegacyError::Format),
            other => panic!("{}: {other:?}", case.name),
        };
        let opened = open_checkpoint(&master, &case.thread_id, case.row.as_bytes());
        assert_eq!(opened.map(|data| data.to_vec()), expected, "{}", case.name);
    }
}

#[test]
fn another_master_key_opens_nothing() {
    let fixture: Fixture = serde_json::from_str(include_str!("fixtures/legacy.json")).unwrap();
    let case = &fixture.cases[0];
    let opened = open_checkpoint(&MasterKey::random(), &case.thread_id, case.row.as_bytes());
    assert_eq!(opened.unwrap_err(), LegacyError::OpenFailed);
}
