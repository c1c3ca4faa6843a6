//! Imports: incremental, through the gate, and what was forgotten stays forgotten.

use std::path::Path;

use confidant_memory::OwnMemory;
use confidant_memory::api::{Forget, ImportReport, ImportRequest};
use confidant_memory::import::Root;
use confidant_memory::source::Sources;

use crate::support::{Place, of, query, request};

fn write(folder: &Path, name: &str, request: &str) {
    let line = |role: &str, text: &str| {
        serde_json::json!({"session_id": name, "role": role, "content": text}).to_string()
    };
    let text = [line("user", request), line("assistant", "Done.")].join("\n");
    std::fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
}

async fn import(own: &OwnMemory, folder: &Path, dry_run: bool) -> ImportReport {
    let request = ImportRequest { roots: vec![Root::path(folder)], dry_run, ..ImportRequest::default() };
    own.import(&request, |_| {}).await.unwrap()
}

#[tokio::test]
async fn an_import_stores_what_is_new_once_and_leaves_the_forgotten_alone() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    write(files.path(), "one", "Please rename the quartz module, reply to nora@mail.example");
    write(files.path(), "two", "Why does the basalt build fail?");
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----";
    write(files.path(), "three", &format!("Use this: {pem}"));

    let before = place.bytes();
    let dry = import(&own, files.path(), true).await;
    assert_eq!((dry.sessions, dry.stored, dry.blocked), (3, 2, 1), "{dry:?}");
    assert!(place.bytes() == before, "a dry run wrote something");

    let first = import(&own, files.path(), false).await;
    assert_eq!((first.sessions, first.stored, first.blocked), (3, 2, 1), "{first:?}");
    assert!(!place.holds("quartz") && !place.holds("nora@mail.example"));
    let hits = own.query(&query("basalt")).await.unwrap().hits;
    assert_eq!(hits.len(), 1);

    // What was stored is passed over, what was blocked is not: the rules may have changed.
    let again = import(&own, files.path(), false).await;
    assert_eq!((again.files, again.stored, again.blocked), (1, 0, 1), "{again:?}");

    own.forget(&Forget::Session("two".to_owned()), false).await.unwrap();
    write(files.path(), "two", "Why does the basalt build fail, still?");
    write(files.path(), "one", "Please rename the quartz module to feldspar");
    let later = import(&own, files.path(), false).await;
    assert_eq!((later.stored, later.forgotten, later.unchanged), (1, 1, 0), "{later:?}");
    assert!(own.query(&query("basalt")).await.unwrap().hits.is_empty());
    assert_eq!(own.query(&query("feldspar")).await.unwrap().hits.len(), 1);

    // Stored on purpose, it is no longer left alone.
    let session = serde_json::json!({"summary": "The basalt build is back."});
    own.store(&request("two", &session)).await.unwrap();
    write(files.path(), "two", "Why does the basalt build fail, again?");
    let back = import(&own, files.path(), false).await;
    assert_eq!((back.stored, back.forgotten), (1, 0), "{back:?}");
}

#[tokio::test]
async fn forgetting_what_a_session_was_before_leaves_it_importable() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    write(files.path(), "one", "Please rename the quartz module");
    import(&own, files.path(), false).await;
    let before = own.query(&query("quartz")).await.unwrap().hits.remove(0).cascade_uri;
    write(files.path(), "one", "Please rename the quartz module to feldspar");
    assert_eq!(import(&own, files.path(), false).await.stored, 1);
    own.forget(&Forget::Uri(before), false).await.unwrap();
    write(files.path(), "one", "Please rename the quartz module to granite");
    let later = import(&own, files.path(), false).await;
    assert_eq!((later.stored, later.forgotten), (1, 0), "{later:?}");
    assert_eq!(own.query(&query("granite")).await.unwrap().hits.len(), 1);
}

#[tokio::test]
async fn an_import_again_takes_what_has_not_changed_with_other_tags() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    write(files.path(), "one", "Please rename the quartz module");
    assert_eq!(import(&own, files.path(), false).await.stored, 1);
    let tagged = ImportRequest {
        roots: vec![Root::path(files.path())],
        tags: vec!["stones".to_owned()],
        ..ImportRequest::default()
    };
    assert_eq!(own.import(&tagged, |_| {}).await.unwrap().files, 0);
    let again = ImportRequest { again: true, ..tagged };
    assert_eq!(own.import(&again, |_| {}).await.unwrap().stored, 1);
    assert_eq!(own.query(&query("quartz")).await.unwrap().hits[0].tags, ["stones"]);
    assert_eq!(own.import(&again, |_| {}).await.unwrap().unchanged, 1);
}

#[tokio::test]
async fn files_of_one_name_in_two_folders_are_two_sessions() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    let say = |folder: &str, text: &str| {
        let folder = files.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let lines =
            ["user", "assistant"].map(|role| serde_json::json!({"role": role, "content": text}).to_string());
        std::fs::write(folder.join("notes.jsonl"), lines.join("\n")).unwrap();
    };
    say("a", "Please rename the quartz module");
    say("b", "Why does the basalt build fail?");
    let ids = |report: &ImportReport| {
        let mut ids: Vec<String> = report.items.iter().map(|item| item.session_id.clone()).collect();
        ids.sort();
        ids
    };
    let dry = import(&own, files.path(), true).await;
    let first = import(&own, files.path(), false).await;
    assert_eq!((dry.stored, ids(&dry)), (2, ids(&first)), "a dry run says what would be");
    let [plain, apart] = &ids(&first)[..] else { panic!("{first:?}") };
    assert!(plain == "notes" && apart.starts_with("notes~"), "{plain} {apart}");
    for word in ["quartz", "basalt"] {
        assert_eq!(own.query(&query(word)).await.unwrap().hits.len(), 1, "{word}");
    }
    assert_eq!(import(&own, files.path(), false).await.files, 0);
    // Each goes on by itself; what is copied is nothing new, and what is moved stays what it was.
    say("a", "Please rename the quartz module to feldspar");
    say("b", "Why does the basalt build fail, still?");
    let later = import(&own, files.path(), false).await;
    assert_eq!((later.stored, ids(&later)), (2, ids(&first)));
    say("d", "Please rename the quartz module to feldspar");
    std::fs::remove_dir_all(files.path().join("a")).unwrap();
    let moved = import(&own, files.path(), false).await;
    assert_eq!((moved.stored, moved.unchanged), (0, 1), "{moved:?}");
    assert_eq!(own.query(&query("feldspar")).await.unwrap().hits.len(), 1);
    say("e", "Please rename the quartz module to feldspar");
    let copied = import(&own, files.path(), false).await;
    assert_eq!((copied.stored, copied.unchanged), (0, 1), "{copied:?}");

    // By its id each is found again.
    let sources = Sources { roots: vec![Root::path(files.path())], ..Sources::default() };
    let found = sources.find(apart).await.unwrap();
    assert_eq!(found.id(), apart);
    assert!(serde_json::to_string(found.members()).unwrap().contains("basalt"));
    assert!(sources.find("notes~00000000").await.is_err());
}
