//! Imports: incremental, through the gate, and what was forgotten stays forgotten.

use std::ops::ControlFlow;
use std::path::Path;

use confidant_memory::OwnMemory;
use confidant_memory::api::{Forget, ImportReport, ImportRequest, QueryRequest};
use confidant_memory::import::Root;
use confidant_memory::source::Sources;

use crate::support::{Place, Weather, of, query, request};

fn write(folder: &Path, name: &str, request: &str) {
    let line = |role: &str, text: &str| {
        serde_json::json!({"session_id": name, "role": role, "content": text}).to_string()
    };
    let text = [line("user", request), line("assistant", "Done.")].join("\n");
    std::fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
}

async fn import(own: &OwnMemory, folder: &Path, dry_run: bool) -> ImportReport {
    let request = ImportRequest { roots: vec![Root::path(folder)], dry_run, ..ImportRequest::default() };
    own.import(&request, |_| ControlFlow::Continue(())).await.unwrap()
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
    assert_eq!(own.import(&tagged, |_| ControlFlow::Continue(())).await.unwrap().files, 0);
    let again = ImportRequest { again: true, ..tagged };
    assert_eq!(own.import(&again, |_| ControlFlow::Continue(())).await.unwrap().stored, 1);
    assert_eq!(own.query(&query("quartz")).await.unwrap().hits[0].tags, ["stones"]);
    assert_eq!(own.import(&again, |_| ControlFlow::Continue(())).await.unwrap().unchanged, 1);
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

fn talk(text: &str) -> serde_json::Value {
    serde_json::json!({"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}]})
}

/// How many memories have this word; others may be found for what they mean.
async fn found(own: &OwnMemory, word: &str) -> usize {
    let hits = own.query(&query(word)).await.unwrap().hits;
    hits.iter().filter(|hit| format!("{} {}", hit.title, hit.snippet).contains(word)).count()
}

fn write_lines(path: &Path, records: &[serde_json::Value]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<String> = records.iter().map(serde_json::Value::to_string).collect();
    std::fs::write(path, lines.join("\n")).unwrap();
}

fn ids(report: &ImportReport) -> Vec<&str> {
    let mut ids: Vec<&str> = report.items.iter().map(|item| item.session_id.as_str()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn whole_sessions_without_names_in_one_file_are_each_their_own_and_keep_their_names() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    let path = files.path().join("train.jsonl");
    let mut records = vec![talk("Please rename the quartz module")];
    write_lines(&path, &records);
    assert_eq!(ids(&import(&own, files.path(), false).await), ["train"]);
    records.push(talk("Why does the basalt build fail?"));
    records.push(talk("Move the feldspar tests"));
    write_lines(&path, &records);
    let grown = import(&own, files.path(), false).await;
    assert_eq!((grown.stored, grown.unchanged, ids(&grown)), (2, 1, vec!["train#2", "train#3"]));
    records.push(talk("Delete the granite branch"));
    write_lines(&path, &records);
    let again = import(&own, files.path(), false).await;
    assert_eq!((again.stored, again.unchanged, ids(&again)), (1, 3, vec!["train#4"]));
    for word in ["quartz", "basalt", "feldspar", "granite"] {
        assert_eq!(found(&own, word).await, 1, "{word}");
    }

    // In another folder another file of that name has its own; all are found by their ids.
    let other = files.path().join("b/train.jsonl");
    write_lines(&other, &[talk("Where is the obsidian key?"), talk("Sort the pumice list")]);
    let beside = import(&own, files.path(), false).await;
    let apart = ids(&beside);
    assert_eq!((beside.stored, apart.len()), (2, 2), "{beside:?}");
    assert!(apart[0].starts_with("train#2~") && apart[1].starts_with("train~"), "{apart:?}");
    let sources = Sources { roots: vec![Root::path(files.path())], ..Sources::default() };
    for (id, word) in [("train#3", "feldspar"), (apart[0], "pumice"), (apart[1], "obsidian")] {
        let found = sources.find(id).await.unwrap();
        assert_eq!(found.id(), id);
        assert!(serde_json::to_string(found.members()).unwrap().contains(word), "{id}");
    }
    assert!(sources.find("train#5").await.is_err());
}

#[tokio::test]
async fn whole_sessions_are_called_by_their_own_ids_and_those_of_two_files_are_told_apart() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    let named = |id: serde_json::Value, text: &str| {
        let mut record = talk(text);
        record["id"] = id;
        record
    };
    let first = [
        named("conv-0".into(), "Please rename the quartz module"),
        named(1.into(), "Why does the basalt build fail?"),
        talk("Move the feldspar tests"),
    ];
    write_lines(&files.path().join("a.jsonl"), &first);
    let second = [named(1.into(), "Where is the obsidian key?"), first[0].clone()];
    write_lines(&files.path().join("b.jsonl"), &second);
    let report = import(&own, files.path(), false).await;
    let ids = ids(&report);
    assert_eq!((report.stored, report.unchanged), (4, 1), "a copy is nothing new: {report:?}");
    assert_eq!((ids[0], ids[2], ids[3]), ("1", "a", "conv-0"));
    assert!(ids[1].starts_with("1~"), "{ids:?}");
    for word in ["quartz", "basalt", "feldspar", "obsidian"] {
        assert_eq!(found(&own, word).await, 1, "{word}");
    }
    let sources = Sources { roots: vec![Root::path(files.path())], ..Sources::default() };
    for (id, word) in [("conv-0", "quartz"), (ids[1], "obsidian")] {
        let found = sources.find(id).await.unwrap();
        assert!(serde_json::to_string(found.members()).unwrap().contains(word), "{id}");
    }
}

#[tokio::test]
async fn messages_of_sessions_that_are_numbered_are_not_mixed() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    let say = |session: u32, text: &str| serde_json::json!({"conversation_id": session, "id": text, "role": "user", "content": text});
    let lines = [say(7, "Please rename the quartz module"), say(8, "Why does the basalt build fail?")];
    write_lines(&files.path().join("log.jsonl"), &lines);
    assert_eq!(ids(&import(&own, files.path(), false).await), ["7", "8"]);
}

#[tokio::test]
async fn a_path_with_nothing_there_is_an_error_and_files_of_nobody_are_counted() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    for dry_run in [true, false] {
        let roots = vec![Root::path(files.path().join("nowhere"))];
        let error = own
            .import(&ImportRequest { roots, dry_run, ..ImportRequest::default() }, |_| {
                ControlFlow::Continue(())
            })
            .await;
        let error = error.unwrap_err();
        assert_eq!(error.code(), "not_found");
        assert!(!error.parted().1.is_empty() && !error.to_string().contains("nowhere"), "{error}");
    }
    write(files.path(), "one", "Please rename the quartz module");
    std::fs::write(files.path().join("odd.jsonl"), "{\"nobody\": \"knows\"}\n").unwrap();
    std::fs::write(files.path().join("notes.txt"), "nobody asks").unwrap();
    let report = import(&own, files.path(), false).await;
    assert_eq!((report.stored, report.unknown_files, report.unreadable_files), (1, 1, 0), "{report:?}");
}

#[tokio::test]
async fn what_was_not_stored_says_why_and_what_is_not_told_is_counted() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    for at in 0..60 {
        write(files.path(), &format!("a{at:02}"), &format!("Please rename the quartz module number {at}"));
    }
    write(files.path(), "z", "curl -H 'Authorization: Bearer k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz' http://x");
    let dry = import(&own, files.path(), true).await;
    assert_eq!((dry.stored, dry.blocked, dry.items.len(), dry.more_items), (60, 1, 51, 10));
    let blocked = dry.items.last().unwrap();
    assert_eq!(blocked.session_id, "z");
    let told: Vec<_> =
        blocked.places.iter().map(|place| (place.rule.as_str(), place.path.as_str())).collect();
    assert!(told.contains(&("authorization_header", "/session/messages/0/content")), "{told:?}");
    let all = ImportRequest {
        roots: vec![Root::path(files.path())],
        dry_run: true,
        tell_all: true,
        ..ImportRequest::default()
    };
    let all = own.import(&all, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!((all.items.len(), all.more_items), (61, 0));
}

#[tokio::test]
async fn an_import_that_is_called_off_ends_and_can_go_on() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    for name in ["one", "two", "three", "four"] {
        write(files.path(), name, &format!("Please rename the quartz module {name}"));
    }
    let request = ImportRequest { roots: vec![Root::path(files.path())], ..ImportRequest::default() };
    let until = |progress: confidant_memory::import::Progress| match progress.files_done {
        0 | 1 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let error = own.import(&request, until).await.unwrap_err().to_string();
    assert!(error.contains("was cancelled") && error.contains("hint"), "{error}");
    let rest = import(&own, files.path(), false).await;
    assert!((1..4).contains(&rest.stored), "{rest:?}");
    assert_eq!(rest.stored + rest.unchanged + rest.unchanged_files, 4, "{rest:?}");
}

#[tokio::test]
async fn of_sessions_that_are_stored_at_once_none_is_lost_when_the_store_goes_away() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    for at in 0..20 {
        write(files.path(), &format!("s{at:02}"), &format!("Please rename the quartz module number {at}"));
    }
    let request = ImportRequest { roots: vec![Root::path(files.path())], ..ImportRequest::default() };
    let shelf = place.shelf.clone();
    let falls = move |progress: confidant_memory::import::Progress| {
        if progress.files_done == 5 {
            shelf.set(Weather::Down);
        }
        ControlFlow::Continue(())
    };
    assert_eq!(own.import(&request, falls).await.unwrap_err().code(), "unavailable");
    let before = own.count().await.unwrap();
    assert!(before < 20, "{before}");

    place.shelf.set(Weather::Fine);
    let rest = import(&own, files.path(), false).await;
    assert_eq!(rest.stored + rest.unchanged + rest.unchanged_files, 20, "{rest:?}");
    assert_eq!(rest.stored, 20 - before, "what was stored is not stored again, and all else is");
    assert_eq!(own.count().await.unwrap(), 20);
    assert_eq!(import(&own, files.path(), false).await.unchanged_files, 20);
}

#[tokio::test]
async fn the_last_form_of_a_session_counts_however_many_are_stored_at_once() {
    let (place, files) = (Place::new(), tempfile::tempdir().unwrap());
    let own = of(&place.open(), "alice");
    let mut roots = Vec::new();
    for at in 0..6 {
        let folder = files.path().join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        let words = ["quartz", "basalt", "granite", "marble", "slate", "feldspar"][at];
        // The first takes longest.
        write(&folder, "one", &format!("Please rename the {words} module. ").repeat(60 - 10 * at));
        write(&folder, &format!("other{at}"), &format!("Why does build {at} fail?"));
        roots.push(Root::path(folder));
    }
    let request = ImportRequest { roots, tell_all: true, ..ImportRequest::default() };
    let report = own.import(&request, |_| ControlFlow::Continue(())).await.unwrap();
    assert_eq!((report.sessions, report.stored), (12, 12), "{report:?}");
    let forms: Vec<_> = report.items.iter().filter(|item| item.session_id == "one").collect();
    assert_eq!(forms.len(), 6);
    let listed = own.list(&QueryRequest { limit: 20, ..query("") }).await.unwrap().hits;
    let shown: Vec<_> = listed.iter().filter(|hit| hit.cass_session_id == "one").collect();
    assert_eq!(shown.len(), 1, "{listed:?}");
    assert_eq!(Some(&shown[0].cascade_uri), forms[5].cascade_uri.as_ref());
}
