//! What Confidant itself takes of a turn, with every stage on and models that take no time; and what the local rules take
//! of that. `cargo run --profile dist -p confidant-bench --bin turn-overhead > bench/results/TURN.md`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use confidant_engine::model::{
    Answer, Deltas, Form, Model, ModelError, OfferedModel, Prompt, PromptMessage, Role as MessageRole,
};
use confidant_engine::prepare::{Offer, View};
use confidant_engine::storage::Durability;
use confidant_engine::{Actor, Engine, Parts, Scope, StaticKeys, Storage, TenantId, TurnRequest};
use confidant_redact::{Options, Redactor};
use serde_json::{Value, json};

/// As the program's, so that what is measured is what runs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TURNS: usize = 400;
const LENGTHS: [usize; 3] = [2, 20, 100];

/// Answers and fills in forms at once.
#[derive(Debug)]
struct Instant0;

#[async_trait]
impl Model for Instant0 {
    fn name(&self) -> &'static str {
        "bench"
    }

    async fn respond(&self, _: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        deltas(ANSWER);
        Ok(Answer { text: ANSWER.to_owned(), calls: Vec::new(), model: "bench".to_owned(), usage: None })
    }

    async fn fill(&self, form: &Form) -> Result<Value, ModelError> {
        Ok(match form.name {
            "prepare_turn" => json!({
                "language_code": "en", "category": "general", "selected_model": "default",
                "selection_reason": "plain", "prompt_injection_chance": 0, "tags": ["databases"],
            }),
            _ => json!({
                "follow_up_suggestions": ["Tell me more"], "chat_summary": "They spoke of databases.",
                "chat_tags": ["databases"], "harmful_response": 0,
            }),
        })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// One fixed key: every engine of a run must open what the one before wrote.
fn keys() -> Arc<StaticKeys> {
    Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("32 bytes"))
}

#[derive(Clone, Copy, PartialEq)]
enum Stages {
    /// Neither prepared nor enriched.
    Bare,
    /// Prepared by local rules.
    Rules,
    /// Prepared by a small model beside the answer, and enriched.
    All,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let mut page = String::from(INTRO);
    page.push_str("\n| stages | messages before | durability | p50 | p99 |\n|---|---|---|---|---|\n");
    for durability in [Durability::Process, Durability::Power] {
        for (stages, name) in
            [(Stages::Bare, "none"), (Stages::Rules, "local rules"), (Stages::All, "all, small model beside")]
        {
            for length in LENGTHS {
                let times = turns(stages, length, durability).await?;
                let word = if durability == Durability::Power { "power" } else { "process" };
                page.push_str(&format!(
                    "| {name} | {length} | {word} | {} | {} |\n",
                    ms(times[TURNS / 2]),
                    ms(times[TURNS * 99 / 100])
                ));
            }
        }
    }
    page.push_str("\n## The local rules alone\n\n| messages before | p50 | p99 |\n|---|---|---|\n");
    for length in LENGTHS {
        let times = rules(length);
        page.push_str(&format!(
            "| {length} | {} | {} |\n",
            ms(times[TURNS / 2]),
            ms(times[TURNS * 99 / 100])
        ));
    }
    use std::io::Write as _;
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}

async fn turns(stages: Stages, length: usize, durability: Durability) -> Result<Vec<Duration>> {
    let folder = tempfile::tempdir()?;
    let storage = Storage::sqlite(folder.path(), folder.path(), durability)?;
    let model: Arc<dyn Model> = Arc::new(Instant0);
    let mut parts = Parts::new(storage, keys(), Arc::clone(&model));
    parts.settings.processing.prepare = stages != Stages::Bare;
    if stages == Stages::All {
        parts.models = parts.models.with_small(model);
    }
    let engine = Engine::open(parts).await?;
    let scope = Scope::parse(TenantId::new("bench")?, "http:lab:main:alice")?;
    let session = engine.session(scope, Actor::cli());
    let mut times = Vec::with_capacity(TURNS);
    let say = |n: usize| TurnRequest { query: format!("{QUERY} ({n})"), ..TurnRequest::default() };
    for n in 0..length / 2 {
        session.turn(say(n)).finish().await?;
    }
    engine.settle().await;
    for n in 0..TURNS {
        let before = Instant::now();
        session.turn(say(length + n)).finish().await?;
        times.push(before.elapsed());
        // What is done after a turn is nobody's wait; it must not be the next turn's either.
        engine.settle().await;
    }
    engine.stop(Duration::from_secs(5)).await;
    times.sort_unstable();
    Ok(times)
}

fn rules(length: usize) -> Vec<Duration> {
    let message = |n: usize| PromptMessage {
        role: if n.is_multiple_of(2) { MessageRole::Human } else { MessageRole::Ai },
        text: if n.is_multiple_of(2) { format!("{QUERY} ({n})") } else { ANSWER.to_owned() },
    };
    let history: Vec<PromptMessage> = (0..length).map(message).collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let offer = Offer {
        categories: names(&["general", "software", "law", "medicine", "cooking"]),
        models: vec![OfferedModel { name: "default".to_owned(), strengths: names(&["coding"]), cost: 1.0 }],
        skills: (0..50)
            .map(|n| (format!("app{n}.search"), format!("Searches collection {n} for words.")))
            .collect(),
        focus_modes: names(&["web.research", "code.plan_project"]),
        settings_and_memories: names(&["web.preferred_search_provider"]),
    };
    let view = View { history: &history, query: QUERY, wants_title: true };
    let gate = Redactor::new(Options::default()).expect("no words of anybody's, so they are not too many");
    let mut times: Vec<Duration> = (0..TURNS)
        .map(|_| {
            let before = Instant::now();
            std::hint::black_box(confidant_prepare::rules(&view, &offer, &gate));
            before.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

const QUERY: &str = "We want to move our orders from the old database to PostgreSQL next month, with as little downtime as \
possible. Which steps would you plan, what could go wrong with the sequences and the time zones, and how would you \
test it before the weekend? Please answer in a list, and mind that Bob is away until Thursday.";
const ANSWER: &str = "Plan the move in four steps: copy the schema, replicate the rows, compare counts and checksums, then \
switch the writers. Sequences must be set past the highest id, and times stored without a zone must be read as UTC. \
Rehearse all of it on a copy, with the same load, and keep the way back open for a day.";
const INTRO: &str = "# What Confidant takes of a turn\n\nFrom the call to the answer, with models that take no time, warm \
sessions on the embedded store, one turn at a time; requests and answers of about 300 bytes. Made by `cargo run --profile dist -p \
confidant-bench --bin turn-overhead`. Milliseconds are of the machine it ran on.\n";
