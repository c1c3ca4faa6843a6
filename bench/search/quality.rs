//! How often the right card is among the first: ours in its variants, beside plain FTS5.
//!
//! The questions are our own (`bench/search/questions.jsonl`: 40 cards written by hand, three questions each, the first near
//! to the card's words, the other two paraphrases), among some thousands of cards about the same kinds of things. With
//! `--locomo FILE` the turns and questions of that public set, which is not in this repository.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use confidant_memory::Card;
use confidant_memory::index::{Document, Index, Mix, Query};
use serde_json::Value;

use crate::cards::Random;
use crate::fts::{self, Fts};
use crate::truth::{Keys, Listed};
use crate::{Result, print};

/// Cards, and questions with the ids that answer them.
struct Set {
    cards: Vec<Document>,
    questions: Vec<(String, Vec<u64>)>,
}

/// Measures and prints a table.
pub(crate) fn run(questions: Option<&Path>, locomo: Option<&Path>, among: usize) -> Result<()> {
    let sets = match locomo {
        Some(file) => locomo_sets(&serde_json::from_slice(&std::fs::read(file)?)?)?,
        None => vec![own_set(questions.unwrap_or(Path::new("bench/search/questions.jsonl")), among)?],
    };
    let (cards, asked) =
        sets.iter().fold((0, 0), |sum, set| (sum.0 + set.cards.len(), sum.1 + set.questions.len()));
    print(&format!(
        "\n{cards} cards, {asked} questions.\n\n| how | recall@5 | recall@10 | nDCG@10 |\n|---|---:|---:|---:|"
    ));
    let mut table: Vec<(String, Score)> = Vec::new();
    for set in &sets {
        for (how, score) in measure(set)? {
            match table.iter_mut().find(|(known, _)| *known == how) {
                Some((_, all)) => all.add(&score),
                None => table.push((how, score)),
            }
        }
    }
    for (how, score) in &table {
        print(&score.row(how));
    }
    Ok(())
}

fn measure(set: &Set) -> Result<Vec<(String, Score)>> {
    let folder = tempfile::tempdir()?;
    let mut fts = Fts::create(&folder.path().join("fts.db"))?;
    fts.add(&set.cards)?;
    let mut table = Vec::new();
    for (how, joined) in [("FTS5, all words as given", " "), ("FTS5, any word", " OR ")] {
        table.push((
            how.to_owned(),
            Score::of(set, |text| fts.search(&fts::query(text, joined), None, None, 10))?,
        ));
    }
    let truth = Listed(set.cards.clone());
    let now = set.cards.iter().map(|card| card.created_at).max().unwrap_or_default();
    let path = folder.path().join("index");
    let keys = Arc::new(Keys::default());
    Index::open(&path, keys.clone())?.catch_up(&truth, true)?;
    let mut ours = |how: String, mix: Mix| -> Result<()> {
        let index = Index::open(&path, keys.clone())?.with_mix(mix);
        let score = Score::of(set, |text| {
            let query = Query { text: text.to_owned(), limit: 10, now, ..Query::default() };
            Ok(index.search(&query, &truth)?.into_iter().map(|hit| hit.id).collect())
        })?;
        table.push((how, score));
        Ok(())
    };
    let words = Mix { neighbour: 0.0, meaning: 0.0, ..Mix::default() };
    ours("ours, words only, no recency".to_owned(), Mix { recency: 0.0, ..words })?;
    ours("ours, words only".to_owned(), words)?;
    for neighbour in [0.05, 0.1, 0.2, 0.4] {
        ours(format!("ours, neighbours lend {neighbour}"), Mix { neighbour, ..words })?;
    }
    for meaning in [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 100.0] {
        ours(format!("ours, meaning weighs {meaning}"), Mix { meaning, ..words })?;
    }
    ours("**ours, as it is**".to_owned(), Mix::default())?;
    Ok(table)
}

#[derive(Clone, Debug, Default)]
struct Score {
    asked: f64,
    recall_5: f64,
    recall_10: f64,
    gain: f64,
}

impl Score {
    fn of(set: &Set, mut search: impl FnMut(&str) -> Result<Vec<u64>>) -> Result<Self> {
        let mut score = Self::default();
        for (text, right) in &set.questions {
            let found = search(text)?;
            let within = |most: usize| found.iter().take(most).filter(|id| right.contains(id)).count() as f64;
            let ideal: f64 = (0..right.len().min(10)).map(|place| 1.0 / (place as f64 + 2.0).log2()).sum();
            let places = found.iter().take(10).enumerate().filter(|(_, id)| right.contains(id));
            score.asked += 1.0;
            score.recall_5 += within(5) / right.len() as f64;
            score.recall_10 += within(10) / right.len() as f64;
            score.gain += places.map(|(place, _)| 1.0 / (place as f64 + 2.0).log2()).sum::<f64>() / ideal;
        }
        Ok(score)
    }

    fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.recall_5 += other.recall_5;
        self.recall_10 += other.recall_10;
        self.gain += other.gain;
    }

    fn row(&self, how: &str) -> String {
        let mean = |sum: f64| sum / self.asked;
        format!(
            "| {how} | {:.3} | {:.3} | {:.3} |",
            mean(self.recall_5),
            mean(self.recall_10),
            mean(self.gain)
        )
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Our own questions, their cards spread among so many others of the same trade.
fn own_set(file: &Path, among: usize) -> Result<Set> {
    let mut set = Set { cards: Vec::new(), questions: Vec::new() };
    let mut random = Random::new(1);
    let mut id = 0;
    let mut place = |card: Card| {
        id += 1;
        Document {
            id,
            card,
            session_id: format!("s{id}"),
            tool: "tool".to_owned(),
            created_at: id as i64 * 3_600_000,
            ..Document::default()
        }
    };
    let lines = std::fs::read_to_string(file)?;
    for line in lines.lines() {
        let value: Value = serde_json::from_str(line)?;
        for _ in 0..among / lines.lines().count() {
            set.cards.push(place(other(&mut random)));
        }
        let card = Card {
            title: value["title"].as_str().unwrap_or_default().to_owned(),
            summary_bullets: strings(&value["bullets"]),
            decisions: strings(&value["decisions"]),
            entities: strings(&value["entities"]),
            keywords: strings(&value["keywords"]),
            ..Card::default()
        };
        let card = place(card);
        set.questions
            .extend(strings(&value["questions"]).into_iter().map(|question| (question, vec![card.id])));
        set.cards.push(card);
    }
    Ok(set)
}

/// A card about something else in the same words.
fn other(random: &mut Random) -> Card {
    let mut one = |list: &str| {
        let all: Vec<&str> = list.split(',').map(str::trim).collect();
        all[random.next() as usize % all.len()].to_owned()
    };
    let (part, act) = (one(PARTS), one(ACTS));
    Card {
        title: format!("{act} {part}"),
        summary_bullets: vec![
            format!("The {part} {} when {} {}", one(FAULTS), one(WHO), one(DOES)),
            format!("{} {} because {} {}", one(ACTS), one(PARTS), one(WHO), one(DOES)),
            format!("Measured {} {} with {}", one(NUMBERS), one(UNITS), one(TOOLS)),
        ],
        decisions: vec![format!("{} {} before {}", one(ACTS), one(PARTS), one(WHEN))],
        entities: vec![one(TOOLS), one(TOOLS)],
        keywords: vec![one(PARTS), one(FAULTS)],
        ..Card::default()
    }
}

/// The public set's conversations: a turn is a card, an hour between sessions, half a minute between turns.
fn locomo_sets(value: &Value) -> Result<Vec<Set>> {
    let mut sets = Vec::new();
    for sample in value.as_array().ok_or("not the set's form")? {
        let mut set = Set { cards: Vec::new(), questions: Vec::new() };
        let mut ids: HashMap<String, u64> = HashMap::new();
        let conversation = sample["conversation"].as_object().ok_or("no conversation")?;
        let number = |name: &str| name.strip_prefix("session_").and_then(|rest| rest.parse::<u64>().ok());
        let sessions: BTreeMap<u64, &Value> =
            conversation.iter().filter_map(|(name, turns)| Some((number(name)?, turns))).collect();
        for (session, turns) in sessions {
            for (turn, said) in turns.as_array().into_iter().flatten().enumerate() {
                let id = set.cards.len() as u64 + 1;
                ids.insert(said["dia_id"].as_str().unwrap_or_default().to_owned(), id);
                let text = [&said["speaker"], &said["text"], &said["blip_caption"]];
                let text = text.iter().filter_map(|part| part.as_str()).collect::<Vec<_>>().join(": ");
                set.cards.push(Document {
                    id,
                    card: Card { summary_bullets: vec![text], ..Card::default() },
                    session_id: format!("session {session}"),
                    created_at: (session * 3_600_000 + turn as u64 * 30_000).cast_signed(),
                    ..Document::default()
                });
            }
        }
        for question in sample["qa"].as_array().into_iter().flatten() {
            let right: Vec<u64> =
                strings(&question["evidence"]).iter().filter_map(|id| ids.get(id).copied()).collect();
            let answerable = question["category"].as_u64() != Some(5);
            if let Some(text) = question["question"].as_str().filter(|_| answerable && !right.is_empty()) {
                set.questions.push((text.to_owned(), right));
            }
        }
        sets.push(set);
    }
    Ok(sets)
}

// Other things than the questions are about, so that no card made of them answers one; with the same tools, times and
// everyday words, so that they are in the way.
const PARTS: &str = "calendar widget, avatar upload, coupon codes, shipping label, tax report, chat window, map tiles, \
    video player, comment thread, wish list, loyalty points, cookie banner, print layout, barcode scanner, address book, \
    newsletter archive, gift card, stock level, delivery slot, seating plan, recipe editor, playlist, quiz engine, course \
    catalogue, parking permit, meter reading, ticket gate, lunch menu, badge printer, meeting room, phone book, fax bridge, \
    spell checker, font loader, sitemap, toast message, drag handle, survey form, photo album, bus timetable";
const ACTS: &str = "Fix, Rewrite, Speed up, Document, Remove, Split, Test, Monitor, Roll back, Review, Move, Rename, Cache, \
    Limit, Replace, Measure, Simplify, Secure, Upgrade, Migrate";
const FAULTS: &str = "fails on the second try, is slow in the morning, ignores the limit, loses a row, shows an empty page, \
    returns an error, hangs on start, repeats itself, is hard to read, is too wide, cannot be closed, is out of date, times \
    out, crashes at night, forgets the last choice";
const WHO: &str = "a customer, two people, the new provider, an admin, the scheduler, a mobile client, the team, a visitor, \
    the engineer, a candidate, everyone, nobody, the browser, a device";
const DOES: &str = "opens it, types too fast, prints, deploys, changes the order, asks for help, sorts the list, goes offline, \
    uploads a picture, presses escape, shares the link, scrolls down, imports a file, comes back later";
const NUMBERS: &str = "3, 11, 40, 90, 120, 250, 900, 1200, 5000";
const UNITS: &str = "ms, seconds, minutes, MB, requests, users, percent, euros, rows";
const TOOLS: &str = "postgres, redis, kafka, stripe, grafana, terraform, jenkins, numpy, android, elasticsearch, snowflake, \
    webauthn, zstd, opencv, haproxy, sqs, gradle, whisper, d3, dbt";
const WHEN: &str =
    "the release, June, the weekend, the next deploy, March, the audit, Wednesday, the contract ends, winter";
