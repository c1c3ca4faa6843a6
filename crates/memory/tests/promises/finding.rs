//! Sessions are found by their own words and by what was taken out of them, and neither can be read anywhere.

use confidant_memory::IndexOf;
use confidant_memory::api::Forget;
use serde_json::{Value, json};

use crate::support::{Place, of, query, request};

/// A talk about much, in which each of these is said once, in passing: more than a card has room for.
const ASIDE: [&str; 24] = [
    "quincunx",
    "xylographer",
    "vellichor",
    "gallimaufry",
    "widdershins",
    "borborygmus",
    "kerfuffle",
    "zephyr",
    "ombudsman",
    "pettifogger",
    "sarsaparilla",
    "tintinnabulum",
    "ultracrepidarian",
    "snollygoster",
    "rigmarole",
    "nincompoop",
    "lollygag",
    "jackanapes",
    "hobbledehoy",
    "flibbertigibbet",
    "donnybrook",
    "collywobbles",
    "bumbershoot",
    "absquatulate",
];
const EMAIL: &str = "roswitha.quandt@example.org";

fn talk() -> Value {
    let mut messages = Vec::new();
    for round in 0..40 {
        messages.push(json!({ "role": "user", "content": format!("Please look at step {round} of the release and tell me whether the build of the web shop is green.") }));
        messages.push(json!({ "role": "assistant", "content": format!("Step {round} is green. The build of the web shop took four minutes, and the checkout tests passed.") }));
    }
    for (at, word) in ASIDE.iter().enumerate() {
        messages[1 + at * 3]["content"] =
            json!(format!("Step {at} is green as well, beside the {word} that somebody left in the notes."));
    }
    messages[77]["content"] =
        json!(format!("It was my colleague Roswitha Quandt who asked; write to {EMAIL}."));
    json!({ "messages": messages })
}

async fn finds(place: &Place, index: IndexOf, user: &str, text: &str) -> usize {
    let memory = place.open_with(|parts| parts.index = index);
    of(&memory, user).query(&query(text)).await.unwrap().hits.len()
}

#[tokio::test]
async fn a_session_is_found_by_words_that_its_card_does_not_have() {
    for (index, expected) in [(IndexOf::Session, 1), (IndexOf::Card, 0)] {
        let place = Place::new();
        let memory = place.open_with(|parts| parts.index = index);
        let own = of(&memory, "ana");
        own.store(&request("talk", &talk())).await.unwrap();
        let other = json!({ "summary": "Baked a cake with plums and cinnamon for the birthday on Sunday." });
        own.store(&request("cake", &other)).await.unwrap();
        let mut asides = 0;
        for text in ASIDE {
            let found = own.query(&query(text)).await.unwrap();
            asides += usize::from(found.hits.iter().any(|hit| hit.cass_session_id == "talk"));
        }
        assert!(if expected == 1 { asides == ASIDE.len() } else { asides < 10 }, "{index:?} {asides}");
        for text in ["Quandt's wish", "who is Roswitha?", EMAIL] {
            let found = own.query(&query(text)).await.unwrap();
            assert_eq!(found.hits.len(), expected, "{index:?} {text}");
            assert!(found.hits.iter().all(|hit| hit.cass_session_id == "talk"), "{text}");
            let told = serde_json::to_string(&found).unwrap();
            assert!(!told.to_lowercase().contains("quandt"), "what was taken out is not told: {told}");
        }
        // The same from the files, in another process.
        assert_eq!(finds(&place, index, "ana", EMAIL).await, expected);
    }
}

#[tokio::test]
async fn no_word_of_a_session_can_be_read_in_any_file() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "ana");
    own.store(&request("talk", &talk())).await.unwrap();
    for number in 0..300 {
        let session = json!({ "messages": [{ "role": "user", "content": format!("vellichor and quincunx {number}, says Roswitha Quandt") }] });
        own.store(&request(&format!("s{number}"), &session)).await.unwrap();
    }
    assert_eq!(own.query(&query("quincunx")).await.unwrap().hits.len(), 5);
    let bytes = place.bytes();
    assert!(bytes.len() > 200_000, "there is something to look at");
    let stems = ["quincunx", "xylograph", "vellichor", "checkout", "roswitha", "quandt", "step"];
    for marker in stems.iter().flat_map(|stem| [(*stem).to_owned(), stem.chars().rev().collect()]) {
        assert!(!place.holds(&marker), "{marker}");
        assert!(!place.holds(&hex::encode(&marker)), "{marker} in hexadecimal");
    }
}

#[tokio::test]
async fn what_somebody_knows_finds_nothing_of_others() {
    let place = Place::new();
    let memory = place.open();
    for user in ["ana", "ben"] {
        let session = json!({ "messages": [{ "role": "user", "content": format!("{user} said: my colleague Roswitha Quandt, {EMAIL}, called") }] });
        of(&memory, user).store(&request(&format!("of-{user}"), &session)).await.unwrap();
    }
    for (user, expected) in [("ana", 1), ("ben", 1), ("eve", 0)] {
        for text in ["Roswitha Quandt", EMAIL] {
            let found = of(&memory, user).query(&query(text)).await.unwrap();
            assert_eq!(found.hits.len(), expected, "{user} {text}");
            assert!(found.hits.iter().all(|hit| hit.cass_session_id == format!("of-{user}")));
        }
    }
}

#[tokio::test]
async fn what_is_forgotten_is_found_by_nothing() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "ana");
    own.store(&request("talk", &talk())).await.unwrap();
    own.forget(&Forget::Session("talk".to_owned()), false).await.unwrap();
    for text in ASIDE.iter().copied().chain(["Quandt", EMAIL]) {
        assert!(own.query(&query(text)).await.unwrap().hits.is_empty(), "{text}");
        assert_eq!(finds(&place, IndexOf::Session, "ana", text).await, 0, "{text}");
    }
}

#[tokio::test]
async fn a_dry_run_says_what_a_search_would_know() {
    for (index, known) in [(IndexOf::Session, true), (IndexOf::Card, false)] {
        let place = Place::new();
        let memory = place.open_with(|parts| parts.index = index);
        let dry = of(&memory, "ana").preview(&request("talk", &talk())).await.unwrap();
        let indexed = dry.session_index;
        let asides =
            ASIDE.iter().filter(|word| indexed.words.iter().any(|stem| word.starts_with(stem.as_str())));
        assert_eq!(asides.count() >= ASIDE.len() - 2, known, "{indexed:?}");
        assert!(indexed.words.is_sorted());
        assert_eq!((indexed.passages > 3, indexed.replaced_values >= 2), (known, known), "{indexed:?}");
        assert!(!indexed.words.iter().any(|word| word.contains("quandt") || word.starts_with('=')));
        let told = ASIDE.iter().filter(|word| dry.preview.payload_json.contains(**word));
        assert!(told.count() < 10, "the artifact stays what it is");
    }
}

#[tokio::test]
async fn an_export_has_what_a_search_knows() {
    for (index, known) in [(IndexOf::Session, true), (IndexOf::Card, false)] {
        let place = Place::new();
        let memory = place.open_with(|parts| parts.index = index);
        let own = of(&memory, "ana");
        let indexed = own.preview(&request("talk", &talk())).await.unwrap().session_index;
        own.store(&request("talk", &talk())).await.unwrap();
        let exported = own.export().await.unwrap().remove(0);
        let Some(theirs) = exported.get("session_index") else {
            assert!(!known, "{index:?}");
            continue;
        };
        let words = theirs["words"].as_object().unwrap();
        assert!(known && words.keys().eq(indexed.words.iter()), "{index:?}");
        assert!(words.values().all(|count| count.as_u64().is_some_and(|count| count > 0)));
        assert_eq!(theirs["passages"].as_array().unwrap().len(), indexed.passages);
        let hashes = theirs["replaced_hashes"].as_object().unwrap();
        assert!(hashes.len() >= indexed.replaced_values && indexed.replaced_values > 0);
        assert!(hashes.keys().all(|hash| hash.len() == 32 && hash.bytes().all(|b| b.is_ascii_hexdigit())));
        assert!(!exported.to_string().to_lowercase().contains("quandt"), "a hash is not what was hashed");
    }
}

#[tokio::test]
async fn a_hit_says_what_of_it_fits_and_what_is_no_longer_so() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "ana");
    for (id, day, at) in [("old", "Friday", "2026-03-02"), ("new", "Monday", "2026-03-09")] {
        let text = format!("We planned the launch. We decided that the deadline of the launch is {day}.");
        let session = json!({ "timestamp": format!("{at}T10:00:00Z"), "messages": [{ "role": "user", "content": text }] });
        own.store(&request(id, &session)).await.unwrap();
    }
    let found = own.query(&query("deadline of the launch")).await.unwrap().hits;
    assert_eq!(found.iter().map(|hit| hit.cass_session_id.as_str()).collect::<Vec<_>>(), ["new", "old"]);
    for hit in &found {
        let line = hit.matched.as_ref().and_then(|matched| matched.bullet.clone()).unwrap_or_default();
        assert!(line.contains("deadline"), "{hit:?}");
    }
    assert!(found[0].superseded.is_empty());
    let overturned = &found[1].superseded[0];
    assert!(overturned.line.contains("Friday") && overturned.now.contains("Monday"), "{overturned:?}");
    assert_eq!(overturned.by, found[0].cascade_uri);
}
