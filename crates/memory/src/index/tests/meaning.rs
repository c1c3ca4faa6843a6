//! Vectors: found by meaning, in files and in memory, within the same filters.

use super::super::*;
use super::support::*;

/// Three ideas, each with its own direction.
#[derive(Debug)]
struct Ideas;

impl Encoder for Ideas {
    fn encode(&self, text: &str) -> Result<Option<Vec<i8>>> {
        let idea = ["login signin", "storage database", "holiday travel"]
            .iter()
            .position(|words| words.split(' ').any(|word| text.contains(word)));
        let direction =
            |idea: usize| (0..128).map(|i| if i % 3 == idea { 1.0 } else { -0.2 }).collect::<Vec<f32>>();
        Ok(idea.map(|idea| quantise(&direction(idea))))
    }
}

fn card(id: u64, title: &str) -> Document {
    Document { vector: Ideas.encode(title).unwrap(), ..titled(id, title) }
}

#[test]
fn a_card_is_found_by_what_it_means() {
    let mut documents: Vec<Document> = vec![
        card(1, "signin page"),
        card(2, "database move"),
        card(3, "travel plan"),
        card(4, "nothing of the sort"),
    ];
    documents[0].tags = vec!["web".to_owned()];
    let truth = Truth::of(documents);
    let rig = Rig::new();
    let index = rig.again().with_encoder(Arc::new(Ideas));
    for _ in 0..2 {
        let found = |query: &Query| ids(&index.search(query, &truth).unwrap());
        assert_eq!(found(&query("login")), [1], "no word in common");
        assert_eq!(found(&query("holiday")), [3]);
        assert_eq!(found(&query("unknown idea")), [0; 0]);
        let mut both = found(&query("storage plan"));
        both.sort_unstable();
        assert_eq!(both, [2, 3], "near in meaning, and by a word");
        let tagged = Query { tags: vec!["web".to_owned()], ..query("storage") };
        assert_eq!(found(&tagged), [0; 0], "tags hold for meaning, too");
        assert_eq!(
            ids(&rig.index.search(&query("login"), &truth).unwrap()),
            [0; 0],
            "without an encoder: words only"
        );
        index.catch_up(&truth, true).unwrap();
    }
}

#[test]
fn vectors_survive_merging_and_other_widths_are_ignored() {
    let rig = Rig::new();
    let truth = Truth::of((1..=40).map(|id| card(id, "database")));
    let index = rig.again().with_encoder(Arc::new(Ideas));
    index.catch_up(&truth, true).unwrap();
    truth.add(Document { vector: Some(vec![1; 7]), ..titled(41, "seven wide") });
    truth.add(card(42, "holiday"));
    (43..=80).for_each(|id| truth.add(titled(id, "no vector")));
    index.catch_up(&truth, true).unwrap();
    assert_eq!(rig.segments().len(), 1, "merged");
    assert_eq!(ids(&index.search(&query("travel"), &truth).unwrap()), [42]);
}

#[test]
fn a_failing_encoder_does_not_fail_the_search() {
    #[derive(Debug)]
    struct Broken;
    impl Encoder for Broken {
        fn encode(&self, _: &str) -> Result<Option<Vec<i8>>> {
            Err(Error::unavailable("broken", "mend it"))
        }
    }
    let truth = Truth::of([card(1, "signin page")]);
    let index = Rig::new().again().with_encoder(Arc::new(Broken));
    assert_eq!(ids(&index.search(&query("page"), &truth).unwrap()), [1]);
}
