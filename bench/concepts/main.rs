//! How long the embedded graph takes: an import of a vocabulary of tens of thousands of concepts in several languages, then
//! the two looks that a turn makes. Prints a report in Markdown; `bench/concepts.sh` runs it.

#![expect(clippy::print_stdout, reason = "the report is the output")]

mod vocabulary;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::time::{Duration, Instant};

use confidant_concepts::skos::{Defaults, Form, import};
use confidant_concepts::{Graph, Look, SqliteGraph};
use vocabulary::{LANGUAGES, Random, Vocabulary};

const CONCEPTS: usize = 60_000;
const ROUNDS: usize = 2_000;
const IDS_AT_ONCE: usize = 50;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    tokio::runtime::Builder::new_current_thread().build()?.block_on(run())
}

async fn run() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let vocabulary = Vocabulary::new(CONCEPTS);
    let path = folder.path().join("vocabulary.ttl");
    let mut file = BufWriter::new(File::create(&path)?);
    vocabulary.write(&mut file)?;
    file.flush()?;
    let bytes = std::fs::metadata(&path)?.len();
    let graph = SqliteGraph::open(&folder.path().join("concepts.db"))?;
    let began = Instant::now();
    let steps = std::cell::Cell::new(0_u32);
    let progress = |_: u64, _: u64| steps.set(steps.get() + 1);
    let input = BufReader::new(File::open(&path)?);
    let done = import(&graph, Form::Turtle, input, b"bench", &Defaults::default(), &progress)?;
    let took = began.elapsed();
    assert_eq!(done.concepts, CONCEPTS as u64, "every concept of the vocabulary is in the graph");
    let kept = std::fs::metadata(folder.path().join("concepts.db"))?.len();
    println!("# The graph of concepts\n");
    println!(
        "{CONCEPTS} generated concepts in {} languages, {} statements, {} MB of Turtle.\n",
        LANGUAGES.len(),
        done.statements,
        bytes / 1_000_000
    );
    println!(
        "Import, every text through the guard: {:.1} s, {:.0} statements a second, {} steps of progress, {} MB on disk.\n",
        took.as_secs_f64(),
        done.statements as f64 / took.as_secs_f64(),
        steps.get(),
        kept / 1_000_000
    );
    println!("| look | p50 | p95 | p99 |\n|---|---|---|---|");
    let mut random = Random::new(7);
    let by_ids = measured(&mut random, async |random| {
        let ids: Vec<String> = (0..IDS_AT_ONCE).map(|_| vocabulary.id(random.below(CONCEPTS))).collect();
        let found = graph.nodes(&ids, "en").await?;
        Ok(found.iter().flatten().count() == IDS_AT_ONCE)
    })
    .await?;
    row(&format!("`get_nodes_by_ids` of {IDS_AT_ONCE}"), by_ids);
    let exact = measured(&mut random, async |random| {
        let label = vocabulary.label(random.below(CONCEPTS), random.below(LANGUAGES.len()));
        let found = graph.find(Look::Label { label: &label, jurisdiction: None }, "en", 5).await?;
        Ok(!found.is_empty())
    })
    .await?;
    row("label, exactly", exact);
    let words = measured(&mut random, async |random| {
        let label = vocabulary.label(random.below(CONCEPTS), random.below(LANGUAGES.len()));
        let words: Vec<&str> = label.split(' ').take(2).collect();
        let found = graph.find(Look::Words(&words.join(" ")), "en", 10).await?;
        Ok(!found.is_empty())
    })
    .await?;
    row("two words of a label", words);
    let common = measured(&mut random, async |random| {
        let label = vocabulary.label(random.below(CONCEPTS), 0);
        let word = label.split(' ').next().unwrap_or_default().to_owned();
        let found = graph.find(Look::Words(&word), "en", 10).await?;
        Ok(!found.is_empty())
    })
    .await?;
    row("one word that thousands of labels have", common);
    Ok(())
}

/// How long each of many looks took, shortest first.
async fn measured(
    random: &mut Random,
    mut look: impl AsyncFnMut(&mut Random) -> Outcome<bool>,
) -> Outcome<Vec<Duration>> {
    let mut took = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS + ROUNDS / 10 {
        let began = Instant::now();
        assert!(look(random).await?, "what is looked for is there");
        // The first tenth warms the cache.
        if round >= ROUNDS / 10 {
            took.push(began.elapsed());
        }
    }
    took.sort_unstable();
    Ok(took)
}

fn row(name: &str, took: Vec<Duration>) {
    let at = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1_000.0;
    println!("| {name} | {:.3} ms | {:.3} ms | {:.3} ms |", at(50), at(95), at(99));
}
