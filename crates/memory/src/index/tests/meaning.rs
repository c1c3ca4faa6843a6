//! Found by meaning: in files and in memory, within the same filters, beside words.

use super::super::*;
use super::support::*;

fn cards() -> Vec<Document> {
    let mut cards = vec![
        titled(1, "Switch the login page to passkeys"),
        titled(2, "Move customer records to another database"),
        titled(3, "Book flights and hotels for the conference"),
        titled(4, "数据库迁移"),
    ];
    cards[0].tags = vec!["web".to_owned()];
    cards
}

#[test]
fn a_card_is_found_by_what_it_means() {
    let truth = Truth::of(cards());
    let rig = Rig::new();
    for _ in 0..2 {
        let found = |query: &Query| ids(&rig.index.search(query, &truth).unwrap());
        assert_eq!(found(&query("authentication for users")), [1], "no word in common");
        assert_eq!(found(&query("airline trip")), [3]);
        assert_eq!(found(&query("weather in Lisbon")), [0; 0], "nothing is near");
        assert_eq!(found(&query("数据库")), [4], "words of other scripts are found as words");
        let both = found(&query("airline trip page"));
        assert!(both.contains(&1) && both.contains(&3), "by a word, and near in meaning: {both:?}");
        let tagged = Query { tags: vec!["web".to_owned()], ..query("airline trip") };
        assert!(!found(&tagged).contains(&3), "tags hold for meaning, too");
        let later = Query { from: Some(3500), ..query("airline trip") };
        assert!(!found(&later).contains(&3), "and so does time");
        rig.index.catch_up(&truth, true).unwrap();
    }
}

#[test]
fn what_means_nothing_near_is_not_found() {
    let rig = Rig::new();
    let truth = Truth::of(cards());
    for text in ["xqzvw", "the of and", "???", "42"] {
        assert_eq!(ids(&rig.index.search(&query(text), &truth).unwrap()), [0; 0], "{text}");
    }
}

#[test]
fn without_weight_words_decide_alone() {
    let rig = Rig::new();
    let index = rig.again().with_mix(Mix { meaning: 0.0, ..Mix::default() });
    assert_eq!(ids(&index.search(&query("authentication for users"), &Truth::of(cards())).unwrap()), [0; 0]);
}

#[test]
fn meaning_survives_merging() {
    let rig = Rig::new();
    let truth = Truth::of((1..=40).map(|id| titled(id, "database")));
    rig.index.catch_up(&truth, true).unwrap();
    truth.add(titled(41, "holiday"));
    (42..=80).for_each(|id| truth.add(titled(id, "数据库")));
    rig.index.catch_up(&truth, true).unwrap();
    assert_eq!(rig.segments().len(), 1, "merged");
    assert_eq!(ids(&rig.index.search(&query("vacation"), &truth).unwrap()).first(), Some(&41));
}

#[test]
fn cards_alike_that_are_gone_do_not_hide_the_living() {
    let rig = Rig::new();
    let again = |id| Document {
        session_id: "went on and on".to_owned(),
        ..titled(id, "Book flights and hotels for the conference")
    };
    let truth = Truth::of((1..=400).map(again));
    truth.add(titled(401, "Reserve seats on the plane"));
    rig.index.catch_up(&truth, true).unwrap();
    (1..400).for_each(|id| truth.delete(id));
    for _ in 0..2 {
        let mut found = ids(&rig.index.search(&query("airline trip"), &truth).unwrap());
        found.sort_unstable();
        assert_eq!(found, [400, 401]);
        (402..=402 + 400).for_each(|id| truth.add(titled(id, "数据库")));
        rig.index.catch_up(&truth, true).unwrap();
    }
    let documents: u32 =
        rig.index.snapshot(&truth).unwrap().segments.iter().map(|segment| segment.info.documents).sum();
    assert!(documents < 803, "a merge leaves behind what is gone: {documents}");
}
