//! Cards of about 1 KB whose words are as unevenly frequent as in real text (Zipf), the same in every run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use confidant_memory::Card;
use confidant_memory::index::{Bag, Document};

/// Whether cards come with the words of their sessions: twelve passages of forty words.
pub(crate) static SESSIONS: AtomicBool = AtomicBool::new(false);

/// The card of this id.
pub(crate) fn card(id: u64) -> Document {
    let mut random = Random::new(id);
    let card = Card {
        title: text(&mut random, 7),
        summary_bullets: (0..5).map(|_| text(&mut random, 14)).collect(),
        decisions: (0..2).map(|_| text(&mut random, 10)).collect(),
        todos: (0..2).map(|_| text(&mut random, 8)).collect(),
        entities: (0..5).map(|_| format!("{}-{}.rs", word(&mut random), word(&mut random))).collect(),
        keywords: (0..6).map(|_| word(&mut random)).collect(),
        notable_quotes: vec![text(&mut random, 12)],
    };
    let project = (random.unit().powi(3) * 20.0) as u64;
    Document {
        id,
        card,
        tags: vec![format!("project-{project}"), format!("team-{}", id % 5)],
        session_id: format!("{:016x}", random.next()),
        tool: ["claude-code", "codex", "gemini-cli"][(id % 3) as usize].to_owned(),
        created_at: at(id),
        bag: SESSIONS.load(Ordering::Relaxed).then(|| {
            let messages: Vec<String> = (0..12).map(|_| text(&mut random, 40)).collect();
            Bag::of(&serde_json::json!({ "messages": messages }))
        }),
    }
}

/// When the card of this id was made: one every 95 seconds.
pub(crate) fn at(id: u64) -> i64 {
    1_600_000_000_000 + id.cast_signed() * 95_000
}

/// The word of this rank: 0 is the most frequent.
pub(crate) fn ranked(rank: usize) -> String {
    let mut spelling = String::new();
    let mut rest = rank + 40;
    while rest > 0 {
        spelling.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
    }
    spelling
}

fn text(random: &mut Random, words: usize) -> String {
    (0..words).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn word(random: &mut Random) -> String {
    static SUMS: OnceLock<Vec<f64>> = OnceLock::new();
    let sums = SUMS.get_or_init(|| {
        let weights = (0..VOCABULARY).map(|rank| 1.0 / (rank as f64 + 2.7).powf(1.05));
        let sums: Vec<f64> = weights
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let all = sums[VOCABULARY - 1];
        sums.into_iter().map(|sum| sum / all).collect()
    });
    let unit = random.unit();
    ranked(sums.partition_point(|&sum| sum < unit))
}

/// xorshift64*.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const VOCABULARY: usize = 60_000;
const SYLLABLES: [&str; 24] = [
    "ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "bra", "cle",
    "dri", "flo", "gru", "sta", "tre", "spi", "plo",
];
