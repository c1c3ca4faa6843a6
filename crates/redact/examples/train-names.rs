//! Makes `data/names.bin` from a lexicon and marked texts: `train-names LEXICON TEXTS OUT [--all]`.
//!
//! `bench/names/` says how the two are made. With `--all` it learns from the held-out tenth too, as the shipped
//! model did. A linear-chain CRF over hashed features, AdaGrad, fixed seed: the same input gives the same bytes.

#[path = "../src/names/features.rs"]
mod features;
#[path = "../src/names/text.rs"]
mod text;

use std::fs;

use features::{BITS, COLUMNS};
use text::{Lexicon, NOTE, Token};

const TAGS: usize = COLUMNS + 1;
const EPOCHS: usize = 14;
const RATE: f32 = 0.15;
const DECAY: f32 = 2e-6;
const SCALE: f32 = 24.0;
/// Part of the features forgotten at each visit.
const DROP: f32 = 0.45;

struct Sample {
    rows: Vec<Vec<u32>>,
    tags: Vec<usize>,
    weight: f32,
}

struct Crf {
    weights: Vec<f32>,
    squares: Vec<f32>,
    moves: [[f32; TAGS]; TAGS],
    move_squares: [[f32; TAGS]; TAGS],
    seed: u64,
}

#[expect(clippy::print_stderr, reason = "a program for a terminal; the loss shows that it learns")]
fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(lexicon), Some(texts), Some(out)) = (args.next(), args.next(), args.next()) else {
        panic!("usage: train-names LEXICON TEXTS OUT");
    };
    let all = args.next().is_some_and(|flag| flag == "--all");
    let (hashes, notes) = read_lexicon(&fs::read_to_string(lexicon).expect("lexicon"));
    let lexicon = Lexicon::new(&hashes, &notes);
    let texts = fs::read_to_string(texts).expect("texts");
    let mut train: Vec<Sample> = Vec::new();
    for line in texts.lines() {
        let Some((kind, marked)) = line.split_once('\t') else { continue };
        let kind = if all { kind.trim_start_matches("dev-") } else { kind };
        let weight = match kind {
            "cross" => 2.0,
            "wnut" => 1.0,
            "tmpl" => 0.35,
            "clean" => 1.0,
            _ => continue,
        };
        train.push(sample(marked, lexicon, weight));
    }
    let mut crf = Crf {
        weights: vec![0.0; COLUMNS << BITS],
        squares: vec![1e-4; COLUMNS << BITS],
        moves: [[0.0; TAGS]; TAGS],
        move_squares: [[1e-4; TAGS]; TAGS],
        seed: 0x9E37_79B9_7F4A_7C15,
    };
    let (mut mean, mut mean_moves, mut taken) =
        (vec![0.0_f32; COLUMNS << BITS], [[0.0_f32; TAGS]; TAGS], 0.0);
    let mut order: Vec<usize> = (0..train.len()).collect();
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    for epoch in 0..EPOCHS {
        for at in (1..order.len()).rev() {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            order.swap(at, (seed % (at as u64 + 1)) as usize);
        }
        let loss: f64 = order.iter().map(|&at| f64::from(crf.learn(&train[at]))).sum();
        if epoch >= EPOCHS / 2 {
            mean.iter_mut().zip(&crf.weights).for_each(|(sum, weight)| *sum += weight);
            mean_moves
                .iter_mut()
                .flatten()
                .zip(crf.moves.iter().flatten())
                .for_each(|(sum, weight)| *sum += weight);
            taken += 1.0;
        }
        eprintln!("epoch {epoch}: loss {:.4}", loss / train.len() as f64);
    }
    crf.weights = mean.iter().map(|sum| sum / taken).collect();
    crf.moves = mean_moves.map(|row| row.map(|sum| sum / taken));
    fs::write(out, pack(&crf, &hashes, &notes)).expect("write");
}

fn read_lexicon(tsv: &str) -> (Vec<u8>, Vec<u8>) {
    let mut words: Vec<(u32, [u8; NOTE])> = tsv.lines().filter_map(read_word).collect();
    words.sort_unstable();
    words.dedup_by_key(|word| word.0);
    let hashes = words.iter().flat_map(|word| word.0.to_le_bytes()).collect();
    let notes = words.iter().flat_map(|word| word.1).collect();
    (hashes, notes)
}

/// Word, flags, cluster, the two Brown clusters, usage.
fn read_word(line: &str) -> Option<(u32, [u8; NOTE])> {
    let (word, numbers) = line.split_once('\t')?;
    let numbers: Vec<u16> = numbers.split('\t').map_while(|number| number.parse().ok()).collect();
    let [flags, cluster, capital, small, usage] = numbers[..] else { return None };
    let ([capital, capital_high], [small, small_high]) = (capital.to_le_bytes(), small.to_le_bytes());
    let note = [flags as u8, cluster as u8, capital, capital_high, small, small_high, usage as u8];
    Some((text::hash(word), note))
}

/// Takes the marks out of a text and turns them into tags.
fn sample(marked: &str, lexicon: Lexicon<'_>, weight: f32) -> Sample {
    let (mut plain, mut spans, mut open) = (String::new(), Vec::new(), None);
    for letter in marked.chars() {
        match letter {
            '\u{1}' | '\u{2}' => open = Some((plain.len(), letter == '\u{1}')),
            '\u{3}' => spans.extend(open.take().map(|(start, person)| (start..plain.len(), person))),
            '\u{4}' => plain.push('\n'),
            other => plain.push(other),
        }
    }
    let tokens = text::tokens(&plain, lexicon);
    let tags = tokens.iter().map(|token| tag(token, &spans)).collect();
    let rows = (0..tokens.len())
        .map(|at| {
            let mut rows = Vec::with_capacity(56);
            features::features(&tokens, at, |row| rows.push(row as u32));
            rows
        })
        .collect();
    let mut sample = Sample { rows, tags, weight };
    for at in 0..sample.tags.len() {
        let from = if at == 0 { 0 } else { sample.tags[at - 1] };
        if sample.tags[at] == 2 && from != 1 && from != 2 {
            sample.tags[at] = 1;
        }
    }
    sample
}

fn tag(token: &Token, spans: &[(std::ops::Range<usize>, bool)]) -> usize {
    match spans.iter().find(|(span, _)| token.start < span.end && token.end > span.start) {
        None => 0,
        Some((_, false)) => 3,
        Some((span, true)) if token.start <= span.start => 1,
        Some(_) => 2,
    }
}

impl Crf {
    /// Forgets a part of the features at each visit, so that no one feature carries a name alone.
    fn keeps(&mut self) -> bool {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 40) as f32 / (1 << 24) as f32 >= DROP
    }

    fn allowed(from: usize, to: usize) -> bool {
        to != 2 || from == 1 || from == 2
    }

    /// One step of AdaGrad on one sample; returns its loss.
    fn learn(&mut self, sample: &Sample) -> f32 {
        let length = sample.rows.len();
        if length == 0 {
            return 0.0;
        }
        let kept: Vec<Vec<u32>> =
            sample.rows.iter().map(|rows| rows.iter().copied().filter(|_| self.keeps()).collect()).collect();
        let own: Vec<[f32; TAGS]> = kept.iter().map(|rows| self.score(rows)).collect();
        let mut alpha = vec![[f32::NEG_INFINITY; TAGS]; length];
        let mut beta = vec![[0.0_f32; TAGS]; length];
        for to in 0..TAGS {
            if Self::allowed(0, to) {
                alpha[0][to] = own[0][to] + self.moves[0][to];
            }
        }
        for at in 1..length {
            for to in 0..TAGS {
                let from = std::array::from_fn(|from| match Self::allowed(from, to) {
                    true => alpha[at - 1][from] + self.moves[from][to],
                    false => f32::NEG_INFINITY,
                });
                alpha[at][to] = own[at][to] + sum_exp(from);
            }
        }
        for at in (0..length - 1).rev() {
            for from in 0..TAGS {
                let next = std::array::from_fn(|to| match Self::allowed(from, to) {
                    true => beta[at + 1][to] + own[at + 1][to] + self.moves[from][to],
                    false => f32::NEG_INFINITY,
                });
                beta[at][from] = sum_exp(next);
            }
        }
        let total = sum_exp(alpha[length - 1]);
        let mut gold = 0.0;
        let mut move_steps = [[0.0_f32; TAGS]; TAGS];
        for at in 0..length {
            let before = if at == 0 { 0 } else { sample.tags[at - 1] };
            gold += own[at][sample.tags[at]] + self.moves[before][sample.tags[at]];
            move_steps[before][sample.tags[at]] += 1.0;
            for from in 0..TAGS {
                for to in 0..TAGS {
                    if !Self::allowed(from, to) || (at == 0 && from != 0) {
                        continue;
                    }
                    let left = if at == 0 { 0.0 } else { alpha[at - 1][from] };
                    move_steps[from][to] -=
                        (left + self.moves[from][to] + own[at][to] + beta[at][to] - total).exp();
                }
            }
            let mut step = [0.0; TAGS];
            for tag in 0..TAGS {
                step[tag] = f32::from(u8::from(tag == sample.tags[at]))
                    - (alpha[at][tag] + beta[at][tag] - total).exp();
            }
            if step.iter().any(|part| part.abs() > 1e-4) {
                self.step(&kept[at], step, sample.weight);
            }
        }
        let rows = self.moves.iter_mut().zip(&mut self.move_squares).zip(&move_steps);
        for ((weight, square), step) in
            rows.flat_map(|((moves, squares), steps)| moves.iter_mut().zip(squares).zip(steps))
        {
            let step = step * sample.weight;
            *square += step * step;
            *weight += RATE * step / square.sqrt();
        }
        total - gold
    }

    fn step(&mut self, rows: &[u32], step: [f32; TAGS], weight: f32) {
        for &row in rows {
            for column in 0..COLUMNS {
                let slot = row as usize * COLUMNS + column;
                let step = step[column + 1] * weight - DECAY * 1000.0 * self.weights[slot];
                self.squares[slot] += step * step;
                self.weights[slot] += RATE * step / self.squares[slot].sqrt();
            }
        }
    }

    fn score(&self, rows: &[u32]) -> [f32; TAGS] {
        let mut own = [0.0; TAGS];
        for &row in rows {
            for column in 0..COLUMNS {
                own[column + 1] += self.weights[row as usize * COLUMNS + column];
            }
        }
        own
    }
}

fn sum_exp(parts: [f32; TAGS]) -> f32 {
    let top = parts.into_iter().fold(f32::NEG_INFINITY, f32::max);
    if top == f32::NEG_INFINITY {
        top
    } else {
        top + parts.into_iter().map(|part| (part - top).exp()).sum::<f32>().ln()
    }
}

fn pack(crf: &Crf, hashes: &[u8], notes: &[u8]) -> Vec<u8> {
    let mut out = b"CFN2".to_vec();
    out.extend(u32::try_from(notes.len() / NOTE).expect("words").to_le_bytes());
    let starts = crf.moves[0];
    for number in crf.moves.iter().flatten().chain(&starts) {
        out.extend(((number * SCALE).round() as i16).to_le_bytes());
    }
    out.extend(hashes);
    out.extend(notes);
    out.extend(
        crf.weights
            .iter()
            .map(|weight| (weight * (1.0 - DROP) * SCALE).round().clamp(-127.0, 127.0) as i8 as u8),
    );
    out
}
