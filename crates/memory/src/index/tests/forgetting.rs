//! Forgotten is gone: from the answers, from the files, and from every copy of them.

use super::super::*;
use super::support::*;

#[test]
fn what_is_forgotten_is_in_no_file_and_has_no_key() {
    let rig = Rig::new();
    let truth = Truth::of((1..=700).map(generated));
    truth.add(titled(701, "unforgettable marker"));
    rig.index.catch_up(&truth, true).unwrap();
    (702..=900).for_each(|id| truth.add(generated(id)));
    rig.index.catch_up(&truth, true).unwrap();
    let before = rig.segments();
    assert_eq!(before.len(), 2);
    assert_eq!(ids(&rig.index.search(&query("unforgettable"), &truth).unwrap()), [701]);

    truth.delete(701);
    rig.index.forget(&[701, 5000]).unwrap();

    let after = rig.segments();
    assert_eq!(after.len(), 2);
    let kept: Vec<_> = before.iter().filter(|path| after.contains(path)).collect();
    assert_eq!(kept.len(), 1, "only the file that had it was written anew");
    let names = rig.keys.names().unwrap();
    for path in &before {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(names.contains(&name), after.contains(path), "a key lives as long as its file");
    }
    // Even a truth that still had it would find nothing: the files do not say it.
    truth.add(Document { id: 701, ..titled(701, "other words") });
    for index in [&rig.index, &rig.again()] {
        assert_eq!(ids(&index.search(&query("unforgettable"), &truth).unwrap()), [0; 0]);
        let all = index.search(&Query { limit: 1000, ..query("") }, &truth).unwrap();
        assert_eq!(all.len(), 899);
    }
}

#[test]
fn forgetting_the_newest_does_not_throw_the_others_away() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(generated));
    rig.index.catch_up(&truth, true).unwrap();
    for newest in [300, 299] {
        truth.delete(newest);
        rig.index.forget(&[newest]).unwrap();
        let kept = rig.segments();
        assert_eq!(kept.len(), 1);
        for index in [&rig.index, &rig.again()] {
            let all = index.search(&Query { limit: 500, ..query("") }, &truth).unwrap();
            assert_eq!(all.len() as u64, newest - 1);
        }
        assert_eq!(rig.segments(), kept);
    }
}

#[test]
fn all_can_be_forgotten_and_cards_still_come() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(generated));
    rig.index.catch_up(&truth, true).unwrap();
    let all: Vec<u64> = (1..=300).collect();
    all.iter().for_each(|&id| truth.delete(id));
    truth.add(titled(301, "still here"));
    rig.index.forget(&all).unwrap();
    assert!(rig.segments().is_empty());
    assert_eq!(ids(&rig.index.search(&query("here still"), &truth).unwrap()), [301]);
}

#[test]
fn what_the_truth_does_not_know_is_never_returned() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(|id| titled(id, "same words")));
    rig.index.catch_up(&truth, true).unwrap();
    (301..=320).for_each(|id| truth.add(titled(id, "same words")));
    let all =
        |index: &Index| index.search(&Query { limit: 500, ..query("same words") }, &truth).unwrap().len();
    assert_eq!(all(&rig.index), 320);
    (1..=319).filter(|id| id % 2 == 1).for_each(|id| truth.delete(id));
    assert_eq!(all(&rig.index), 160);
    let page = rig.index.search(&Query { limit: 10, offset: 150, ..query("same words") }, &truth).unwrap();
    assert_eq!(page.len(), 10);
}

#[test]
fn what_a_crash_left_behind_is_forgotten_too() {
    let rig = Rig::new();
    let truth = Truth::of((1..=10).map(generated));
    rig.keys.left.store(1, std::sync::atomic::Ordering::SeqCst);
    rig.index.catch_up(&truth, true).unwrap_err();
    rig.keys.left.store(-1, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(rig.segments().len(), 1, "a segment that no list names");
    truth.delete(1);
    rig.index.forget(&[1]).unwrap();
    assert!(rig.segments().is_empty());
    assert!(!rig.keys.names().unwrap().iter().any(|name| name.len() == 32));
}

#[test]
fn another_process_sees_it_gone() {
    let rig = Rig::new();
    let truth = Truth::of((1..=300).map(generated));
    truth.add(titled(301, "unforgettable"));
    rig.index.catch_up(&truth, true).unwrap();
    let other = rig.again();
    assert_eq!(ids(&other.search(&query("unforgettable"), &truth).unwrap()), [301]);
    truth.delete(301);
    truth.add(generated(302));
    rig.index.forget(&[301]).unwrap();
    assert_eq!(ids(&other.search(&query("unforgettable"), &truth).unwrap()), [0; 0]);
    assert_eq!(other.search(&Query { limit: 500, ..query("") }, &truth).unwrap().len(), 301);
}

#[test]
fn vectors_are_forgotten_with_their_cards() {
    let rig = Rig::new();
    let truth = Truth::of((1..=20).map(generated));
    rig.index.catch_up(&truth, true).unwrap();
    truth.delete(3);
    rig.index.forget(&[3]).unwrap();
    let snapshot = rig.index.snapshot(&truth).unwrap();
    let segment = &snapshot.segments[0];
    for row in 0..19 {
        let card = generated(segment.ids.get_val(row)).card;
        let place = meaning::of_card(&card).map(i8::cast_unsigned);
        assert_eq!(segment.vectors.get(row).unwrap().as_slice(), place);
    }
    assert_eq!(segment.vectors.sketches().unwrap().len(), 19);
}
