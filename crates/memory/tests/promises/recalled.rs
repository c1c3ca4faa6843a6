//! What a session is told of its folder, and what nobody is ever told.

use confidant_memory::api::{Raw, StoreRequest};
use confidant_memory::project_tag;
use serde_json::json;

use crate::support::{Place, Weather, of, request};

#[tokio::test]
async fn a_folder_is_told_of_its_own_sessions_also_without_the_store() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let quartz = json!({"summary": "Renamed the quartz module to feldspar. TODO: rename its tests."});
    let tags = vec![project_tag("My-App").unwrap()];
    own.store(&StoreRequest { tags, ..request("one", &quartz) }).await.unwrap();
    own.store(&request("two", &json!({"summary": "The basalt build of otherapp lacks a header."})))
        .await
        .unwrap();
    place.shelf.set(Weather::Down);
    let told = own.recall("my-app", 5).await.unwrap();
    assert_eq!(told.len(), 1);
    assert!(serde_json::to_string(&told[0].card).unwrap().contains("quartz"));
    // Without a tag, by what it speaks of; and nothing that is only similar.
    assert_eq!(own.recall("otherapp", 5).await.unwrap().len(), 1);
    assert!(own.recall("granite", 5).await.unwrap().is_empty());
    assert!(own.recall("/", 5).await.unwrap().is_empty());
    assert!(of(&place.open(), "bob").recall("my-app", 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_private_is_in_no_file() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let session = json!({
        "summary": "Renamed the quartz module <private>zqone <private>zqtwo</private> zqthree</private> to feldspar.",
        "messages": [
            {"role": "user", "content": "Rename it, please. <private>zqfour"},
            {"role": "tool", "content": [{"text": "<private>zqfive"}, {"text": "zqsix"}]},
            {"role": "assistant", "content": "The module is renamed."},
        ],
        "output": {"log": "<PRIVATE>zqseven</PRIVATE> done"},
    });
    let metadata = json!({"note": "<private>zqeight</private>"}).as_object().cloned().unwrap();
    let tags = vec!["<private>zqnine</private>ops".to_owned()];
    let wish = StoreRequest { raw: Raw::Acknowledged, metadata, tags, ..request("s", &session) };
    let shown = own.preview(&wish).await.unwrap().preview;
    assert!(!shown.payload_json.contains("zq"), "{}", shown.payload_json);
    assert!(shown.payload_json.contains("feldspar") && shown.payload_json.contains("is renamed"));
    let stored = own.store(&StoreRequest { expect_sha256: Some(shown.sha256), ..wish }).await.unwrap();
    let opened = own.retrieve(&stored.cascade_uri, None).await.unwrap();
    assert!(!opened.artifact.to_string().contains("zq"));
    // A secret that is private does not block: it was never read.
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----";
    let secret = json!({"summary": format!("Changed the basalt key <private>{pem}</private> today.")});
    own.store(&request("t", &secret)).await.unwrap();
}
