//! What is found, and in what order.

use proptest::prelude::*;

use super::super::*;
use super::support::*;

fn found(documents: Vec<Document>, text: &str) -> Vec<u64> {
    let truth = Truth::of(documents);
    let rig = Rig::new();
    let tail = ids(&rig.index.search(&query(text), &truth).unwrap());
    rig.index.catch_up(&truth, true).unwrap();
    assert_eq!(ids(&rig.index.search(&query(text), &truth).unwrap()), tail, "in files and in memory: {text}");
    tail
}

#[test]
fn people_find_what_they_mean() {
    let titles = [
        "",
        "Migrated the billing database to Postgres 16",
        "auth-service rejects expired tokens",
        "Segfault in the C++ parser",
        "Deployed v2.3.1 to staging",
        "getUserName returns null for user@x.com",
        "Überprüfung der Größe im Café",
        "修复数据库迁移错误",
        "データベースの移行を修正",
        "Kubernetes rollout stuck on liveness probe",
    ];
    let documents: Vec<Document> =
        titles.iter().enumerate().skip(1).map(|(id, title)| titled(id as u64, title)).collect();
    for (text, first) in [
        ("database migration", 1),
        ("migrating databases", 1),
        ("auth-service", 2),
        ("auth service", 2),
        ("token expiry in auth", 2),
        ("C++", 3),
        ("v2.3.1", 4),
        ("user@x.com", 5),
        ("user name", 5),
        ("getusername", 5),
        ("uberprufung grosse cafe", 6),
        ("数据库", 7),
        ("データベース", 8),
        ("kuberentes", 9),
        ("kubernets roll", 9),
        ("livenes", 9),
        ("kube", 9),
    ] {
        assert_eq!(found(documents.clone(), text).first(), Some(&first), "{text}");
    }
}

#[test]
fn text_is_never_syntax() {
    let truth = Truth::of([titled(1, "plain words"), titled(2, "title x AND y")]);
    let rig = Rig::new();
    let long = "words ".repeat(20_000);
    for indexed in [false, true] {
        for text in [
            "\"",
            "*",
            "it's",
            "(",
            "plain AND",
            "title:x",
            "a:b:c",
            "~2",
            "^3",
            "[a TO b]",
            "\\",
            "--",
            "NOT",
            "\0",
            "\u{202e}x",
            "%",
            "';drop",
            "/.*/",
            "plain*",
            long.as_str(),
            "🙂",
            "\u{fffe}",
            "{}",
        ] {
            rig.index.search(&query(text), &truth).unwrap();
        }
        assert_eq!(ids(&rig.index.search(&query("plain\" (words*"), &truth).unwrap()), [1]);
        assert_eq!(ids(&rig.index.search(&query(&long), &truth).unwrap()), [1]);
        if !indexed {
            rig.index.catch_up(&truth, true).unwrap();
        }
    }
}

#[test]
fn an_empty_query_lists_the_newest_first() {
    let mut documents: Vec<Document> = (1..=300).map(generated).collect();
    documents[10].created_at = 99_000_000;
    let truth = Truth::of(documents);
    let rig = Rig::new();
    rig.index.catch_up(&truth, true).unwrap();
    for id in 301..=305 {
        truth.add(generated(id));
    }
    let page = |offset| {
        let query = Query { limit: 4, offset, ..query(" ") };
        ids(&rig.index.search(&query, &truth).unwrap())
    };
    assert_eq!(page(0), [11, 305, 304, 303]);
    assert_eq!(page(4), [302, 301, 300, 299]);
    assert_eq!(page(303), [2, 1]);
    assert_eq!(page(305), [0; 0]);
    assert_eq!(page(usize::MAX), [0; 0]);
}

#[test]
fn tags_and_times_are_exact() {
    let all: Vec<Document> = (1..=1500).map(generated).collect();
    let has_words = |document: &Document| {
        let mut has = false;
        segment::terms(document, &mut |term| has |= ["w1", "w2", "w3"].contains(&term));
        has
    };
    let with_words: Vec<bool> = all.iter().map(has_words).collect();
    let truth = Truth::of(all.clone());
    let rig = Rig::new();
    for indexed in [false, true] {
        for (tags, from, until) in [
            (vec!["tag3"], None, None),
            (vec!["tag3", "rare7"], None, None),
            (vec!["Tag3"], None, None),
            (vec!["tag"], None, None),
            (vec![], Some(60_000 * 500), Some(60_000 * 510)),
            (vec!["tag1"], Some(60_000 * 500), None),
            (vec![], None, Some(60_000 * 3)),
            (vec![], Some(i64::MAX), None),
            (vec![], None, Some(i64::MIN)),
        ] {
            for text in ["", "w1 w2 w3"] {
                let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
                let query = Query { tags: tags.clone(), from, until, limit: 5000, ..query(text) };
                let mut hits = ids(&rig.index.search(&query, &truth).unwrap());
                hits.sort_unstable();
                let matches = |&(document, words): &(&Document, &bool)| {
                    let time = from.is_none_or(|from| document.created_at >= from)
                        && until.is_none_or(|until| document.created_at < until);
                    (*words || text.is_empty()) && time && tags.iter().all(|tag| document.tags.contains(tag))
                };
                let matching = all.iter().zip(&with_words).filter(matches);
                let expected: Vec<u64> = matching.map(|(document, _)| document.id).collect();
                assert_eq!(hits, expected, "{tags:?} {from:?} {until:?} {text} {indexed}");
            }
        }
        rig.index.catch_up(&truth, true).unwrap();
    }
}

#[test]
fn new_cards_gain_a_little() {
    let day = 24 * 3600 * 1000;
    let mut documents =
        vec![titled(1, "redis timeout"), titled(2, "redis timeout"), titled(3, "something else")];
    documents[0].created_at = 400 * day;
    documents[1].created_at = 10 * day;
    let truth = Truth::of(documents);
    let rig = Rig::new();
    let query = Query { now: 401 * day, ..query("redis timeout") };
    assert_eq!(ids(&rig.index.search(&query, &truth).unwrap()), [1, 2]);
}

#[test]
fn a_title_weighs_more_than_a_quote() {
    let mut quoted = titled(1, "other things entirely");
    quoted.card.notable_quotes = vec!["zookeeper".to_owned()];
    assert_eq!(found(vec![quoted, titled(2, "zookeeper things entirely")], "zookeeper"), [2, 1]);
}

/// Statistics, lengths and weights are the same in memory as in files; only the order of additions differs.
#[test]
fn where_a_card_is_does_not_change_its_score() {
    let all: Vec<Document> = (1..=600).map(generated).collect();
    let scores = |indexed: usize| {
        let rig = Rig::new();
        let truth = Truth::of(all[..indexed].to_vec());
        rig.index.catch_up(&truth, true).unwrap();
        for document in &all[indexed..] {
            truth.add(document.clone());
        }
        let texts = ["w1", "w1 w2 w3 w4", "w900", "w12 w300 tag3", "session-7"];
        texts.map(|text| rig.index.search(&Query { limit: 50, ..query(text) }, &truth).unwrap())
    };
    let files = scores(600);
    for indexed in [0, 300, 560, 599] {
        for (a, b) in files.iter().flatten().zip(scores(indexed).iter().flatten()) {
            assert!((a.score - b.score).abs() <= a.score * 1e-5, "{a:?} {b:?} {indexed}");
        }
        for (a, b) in files.iter().zip(&scores(indexed)) {
            assert_eq!(a.len(), b.len());
            // Where scores are equal but for rounding, either may come first.
            let strict = |hits: &[Hit]| {
                let mut order: Vec<(i64, u64)> =
                    hits.iter().map(|hit| (-(hit.score * 1e3).round() as i64, hit.id)).collect();
                order.sort_unstable();
                order
            };
            let (a, b) = (strict(a), strict(b));
            let same = a.iter().filter(|hit| b.contains(hit)).count();
            assert!(same + 1 >= a.len(), "{same} of {}", a.len());
        }
    }
}

/// Skipping what cannot get in must not change what gets in.
#[test]
fn the_best_are_the_best_of_all() {
    // Each in a session of its own: what a neighbour lends does depend on how deep one looks.
    let alone = |id| Document { session_id: format!("s{id}"), ..generated(id) };
    let truth = Truth::of((1..=3000).map(alone));
    let rig = Rig::new();
    for step in [1000, 2000, 3000] {
        let part = Truth::of((1..=step).map(alone));
        rig.index.catch_up(&part, true).unwrap();
    }
    for text in ["w1", "w1 w2", "w3 w50 w400", "w2 w5 w7 w11 w13"] {
        let all = rig.index.search(&Query { limit: 3000, ..query(text) }, &truth).unwrap();
        let few = rig.index.search(&Query { limit: 10, ..query(text) }, &truth).unwrap();
        assert_eq!(few, all[..10], "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_is_an_error(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}|(w[0-9]{1,3} ?){1,8}", limit in 0_usize..20, offset in 0_usize..20) {
        use std::sync::OnceLock;
        static RIG: OnceLock<(Truth, Rig)> = OnceLock::new();
        let (truth, rig) = RIG.get_or_init(|| {
            let (truth, rig) = (Truth::of((1..=400).map(generated)), Rig::new());
            rig.index.catch_up(&truth, true).unwrap();
            (401..=450).for_each(|id| truth.add(generated(id)));
            (truth, rig)
        });
        let query = Query { limit, offset, ..query(&text) };
        let hits = rig.index.search(&query, truth).unwrap();
        prop_assert!(hits.len() <= limit);
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
    }
}

#[test]
fn a_card_gains_nothing_from_what_it_was_before() {
    let scored = |sessions: [&str; 2]| {
        let rig = Rig::new();
        let truth = Truth::default();
        for (id, session) in (1..).zip(sessions) {
            truth.add(Document { session_id: session.to_owned(), ..titled(id, "same words") });
        }
        rig.index.catch_up(&truth, true).unwrap();
        let both = rig.index.search(&query("same words"), &truth).unwrap();
        truth.delete(1);
        (both, rig.index.search(&query("same words"), &truth).unwrap())
    };
    let ((near, left), (_, alone)) = (scored(["s", "s"]), scored(["t", "s"]));
    assert!(near[0].score > left[0].score, "a live neighbour lends");
    assert!((left[0].score - alone[0].score).abs() < 0.01, "{left:?} {alone:?}");
}
