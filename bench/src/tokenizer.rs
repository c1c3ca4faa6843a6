//! What counting tokens takes of a turn: the engine counts every message that it records, the peers do not.

use anyhow::{Context as _, Result};
use serde::Serialize;
use tiktoken_rs::cl100k_base_singleton;

use crate::meter::{Reading, rounded};
use crate::words::{MESSAGE_BYTES, Words};

#[derive(Debug, Serialize)]
pub(crate) struct Tokenizer {
    /// Two messages of the benchmark, whose random letters make more and rarer tokens than any language.
    cpu_ms_per_turn: f64,
    /// Two messages of the same length in English.
    english_cpu_ms_per_turn: f64,
    /// Loading the vocabulary, once a process.
    load_ms: f64,
    /// What the loaded vocabulary keeps in memory.
    resident_mb: f64,
}

pub(crate) fn measure(turns: usize) -> Result<Tokenizer> {
    let (memory, before) = (resident_megabytes()?, Reading::now());
    let vocabulary = cl100k_base_singleton();
    vocabulary.count_ordinary("load");
    let load = Reading::now().since(before);
    let resident_mb = rounded(resident_megabytes()? - memory);

    let mut words = Words::new();
    let random: Vec<String> = (0..2 * turns).map(|_| words.message()).collect();
    let english: Vec<String> = (0..2 * turns).map(|i| english(i * 7)).collect();
    let each = |messages: &[String]| {
        let before = Reading::now();
        let tokens: usize = messages.iter().map(|message| vocabulary.count_ordinary(message)).sum();
        std::hint::black_box(tokens);
        rounded(Reading::now().since(before).cpu_ms() / turns as f64)
    };
    Ok(Tokenizer {
        cpu_ms_per_turn: each(&random),
        english_cpu_ms_per_turn: each(&english),
        load_ms: rounded(load.wall_ms()),
        resident_mb,
    })
}

/// Some of a text, from another place each time.
fn english(from: usize) -> String {
    TEXT.chars().cycle().skip(from % TEXT.len()).take(MESSAGE_BYTES).collect()
}

fn resident_megabytes() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0 / 1e6)
}

const TEXT: &str = "We talked about the database last Tuesday and decided to stay with what we know, because nobody \
    wanted to learn another way of backing things up. Alice will write the migration, and I shall look at it before \
    the weekend; if it takes longer than ten minutes on a copy of the real data, we do it at night. Could you remind \
    me which tables have no index on the column that we filter by, and whether the old report still needs them? ";
