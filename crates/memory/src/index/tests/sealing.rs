//! What is on disk says nothing, and what was changed is noticed.

use super::super::*;
use super::support::*;

const MARKERS: [&str; 12] = [
    "mktitle", "mkbullet", "mkdecide", "mktodoxx", "mkentity", "mkkeywrd", "mkquotes", "mktagxxx",
    "mksessio", "mktoolxx", "mkwordxx", "words",
];

fn marked(id: u64) -> Document {
    let [title, bullet, decision, todo, entity, keyword, quote, tag, session, tool, said, _] =
        MARKERS.map(|marker| format!("{marker} {marker}{id}"));
    Document {
        id,
        card: Card {
            title,
            summary_bullets: vec![bullet],
            decisions: vec![decision],
            todos: vec![todo],
            entities: vec![entity],
            keywords: vec![keyword],
            notable_quotes: vec![quote],
        },
        tags: vec![tag],
        session_id: session,
        tool,
        created_at: 1,
        bag: Some(Bag::of(&serde_json::json!({ "content": said }))),
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[test]
fn nothing_readable_is_on_disk() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(marked));
    rig.index.catch_up(&truth, true).unwrap();
    (301..=600).for_each(|id| truth.add(marked(id)));
    rig.index.catch_up(&truth, false).unwrap();
    for marker in &MARKERS[..11] {
        assert_eq!(rig.index.search(&query(marker), &truth).unwrap().len(), 10, "{marker}");
    }
    truth.delete(5);
    rig.index.forget(&[5]).unwrap();
    let place = meaning::of_card(&marked(7).card).map(i8::cast_unsigned);
    assert!(place.iter().any(|&c| c != 0));
    let mut looked = 0;
    for entry in std::fs::read_dir(rig.path()).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        looked += bytes.len();
        for marker in MARKERS.iter().copied().chain(["segments", "covered"]) {
            assert!(!contains(&bytes, marker.as_bytes()), "{marker} in {:?}", entry.path());
            assert!(!entry.file_name().to_str().unwrap().contains(marker));
        }
        assert!(!contains(&bytes, &place[..16]), "a place in meaning is in {:?}", entry.path());
    }
    assert!(looked > 100_000, "there was something to look at: {looked}");
}

/// Every search answers as if nothing had happened, because the index is made again.
fn survives(name: &str, change: impl Fn(&Rig)) {
    let rig = Rig::new();
    let truth = Truth::of((1..=500).map(generated));
    rig.index.catch_up(&truth, true).unwrap();
    let asked = query("w1 w7 w30");
    let expected = ids(&rig.again().search(&asked, &truth).unwrap());
    assert_eq!(expected.len(), 10);
    change(&rig);
    assert_eq!(ids(&rig.again().search(&asked, &truth).unwrap()), expected, "{name}: a new process");
    assert_eq!(ids(&rig.index.search(&asked, &truth).unwrap()), expected, "{name}: an old one");
    rig.index.catch_up(&truth, true).unwrap();
    assert_eq!(ids(&rig.again().search(&asked, &truth).unwrap()), expected, "{name}: afterwards");
    assert_eq!(rig.segments().len(), 1, "{name}: it is whole again");
}

fn edit(rig: &Rig, change: impl Fn(&mut Vec<u8>)) {
    let path = &rig.segments()[0];
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_mended() {
    survives("nothing", |_| {});
    survives("folder gone", |rig| std::fs::remove_dir_all(rig.path()).unwrap());
    survives("list gone", |rig| std::fs::remove_file(rig.path().join("list")).unwrap());
    survives("list cut", |rig| std::fs::write(rig.path().join("list"), b"x").unwrap());
    survives("segment gone", |rig| std::fs::remove_file(&rig.segments()[0]).unwrap());
    survives("segment empty", |rig| edit(rig, Vec::clear));
    survives("segment cut", |rig| edit(rig, |bytes| bytes.truncate(bytes.len() - 1)));
    survives("segment longer", |rig| edit(rig, |bytes| bytes.push(0)));
    survives("header", |rig| edit(rig, |bytes| bytes[9] ^= 0x80));
    survives("length", |rig| edit(rig, |bytes| bytes[15] ^= 1));
    survives("keys gone", |rig| rig.keys.keys.lock().unwrap().clear());
    survives("other keys", |rig| {
        for key in rig.keys.keys.lock().unwrap().values_mut() {
            *key = Key::random();
        }
    });
}

#[test]
fn every_page_is_guarded() {
    let pages = {
        let rig = Rig::new();
        rig.index.catch_up(&Truth::of((1..=500).map(generated)), true).unwrap();
        (std::fs::metadata(&rig.segments()[0]).unwrap().len() - 16) / (16 * 1024 + 16)
    };
    assert!(pages >= 3, "{pages}");
    for page in 0..pages {
        let at = usize::try_from(16 + page * (16 * 1024 + 16) + 77).unwrap();
        survives(&format!("bit in page {page}"), |rig| edit(rig, |bytes| bytes[at] ^= 1));
    }
    survives("pages swapped", |rig| {
        edit(rig, |bytes| {
            let (a, b) = bytes[16..].split_at_mut(16 * 1024 + 16);
            a.swap_with_slice(&mut b[..16 * 1024 + 16]);
        });
    });
}

#[test]
fn files_do_not_stand_in_for_each_other() {
    let rig = Rig::new();
    // The first is more than twice the second, so they stay two.
    let first: Vec<Document> = (1..=700).map(generated).collect();
    let truth = Truth::of(first);
    rig.index.catch_up(&truth, true).unwrap();
    (701..=1000).for_each(|id| truth.add(generated(id)));
    rig.index.catch_up(&truth, true).unwrap();
    let expected = ids(&rig.again().search(&query("w3 w5"), &truth).unwrap());
    let files = rig.segments();
    assert_eq!(files.len(), 2);
    let (a, b) = (std::fs::read(&files[0]).unwrap(), std::fs::read(&files[1]).unwrap());
    std::fs::write(&files[0], b).unwrap();
    std::fs::write(&files[1], a).unwrap();
    assert_eq!(ids(&rig.again().search(&query("w3 w5"), &truth).unwrap()), expected);
}

#[test]
fn an_old_list_brings_nothing_back() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(marked));
    rig.index.catch_up(&truth, true).unwrap();
    let backup: Vec<(std::path::PathBuf, Vec<u8>)> = std::fs::read_dir(rig.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    truth.delete(7);
    rig.index.forget(&[7]).unwrap();
    for (path, bytes) in backup {
        std::fs::write(path, bytes).unwrap();
    }
    let index = rig.again();
    assert!(!ids(&index.search(&query("mktitle7"), &truth).unwrap()).contains(&7));
    assert_eq!(index.search(&Query { limit: 400, ..query("mktitle") }, &truth).unwrap().len(), 299);
}

#[test]
fn a_truth_that_was_set_back_is_noticed() {
    let rig = Rig::new();
    let truth = Truth::of((1..=400).map(generated));
    rig.index.catch_up(&truth, true).unwrap();
    let older = Truth::of((1..=300).map(generated));
    let expected = ids(&Rig::new().index.search(&query("w1 w2"), &older).unwrap());
    assert_eq!(ids(&rig.index.search(&query("w1 w2"), &older).unwrap()), expected);
}
