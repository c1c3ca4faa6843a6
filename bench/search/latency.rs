//! How long a search takes, ours and FTS5's, on the same cards and the same questions.
//!
//! Wall time, and CPU time of the thread beside it: where other programs share the cores, the second is the steadier one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use confidant_memory::index::{Index, Query};
use rustix::time::{ClockId, clock_gettime};

use crate::cards::{self, Random};
use crate::fts::{self, Fts};
use crate::truth::{Generated, Keys};
use crate::{Result, print};

/// Measures every size and prints tables.
pub(crate) fn run(sizes: &[u64]) -> Result<()> {
    for &size in sizes {
        let folder = tempfile::tempdir()?;
        let rows = ours(folder.path(), size)?;
        let peer = peer(folder.path(), size)?;
        print("");
        print("| query | ours p50 | p95 | CPU p95 | FTS5 p50 | p95 | times faster (p50) |");
        print("|---|---:|---:|---:|---:|---:|---:|");
        for ((kind, mine), theirs) in rows.iter().zip(peer) {
            let theirs = theirs.map_or_else(
                || "– | – | –".to_owned(),
                |theirs| {
                    format!("{} | {} | {:.0}", theirs.wall(50), theirs.wall(95), theirs.p50() / mine.p50())
                },
            );
            print(&format!(
                "| {kind} | {} | {} | {} | {theirs} |",
                mine.wall(50),
                mine.wall(95),
                mine.cpu(95)
            ));
        }
    }
    Ok(())
}

/// Kinds of queries, in the order of the table.
const KINDS: [&str; 9] = [
    "one common word",
    "four words, any",
    "four words, with a tag",
    "four words, last tenth of time",
    "one rare word",
    "a misspelled word",
    "no words: newest",
    "100 kB of text",
    "four words, just after storing a card",
];

fn question(kind: usize, random: &mut Random, size: u64) -> Query {
    let mut word = |from: usize, to: usize| cards::ranked(from + random.next() as usize % (to - from));
    let four = |word: &mut dyn FnMut(usize, usize) -> String| {
        [word(5, 60), word(60, 600), word(600, 6000), word(6000, 40_000)].join(" ")
    };
    let text = match kind {
        0 => word(5, 40),
        4 => word(5000, 40_000),
        5 => {
            let mut letters: Vec<char> = word(600, 6000).chars().collect();
            letters.insert(2, 'x');
            letters.into_iter().collect()
        }
        6 => String::new(),
        7 => (0..14_000).map(|_| word(5, 50_000) + " ").collect(),
        _ => four(&mut word),
    };
    let mut query = Query { text, limit: 10, now: cards::at(size), ..Query::default() };
    match kind {
        2 => query.tags = vec![format!("project-{}", random.next() % 20)],
        3 => query.from = Some(cards::at(size - size / 10)),
        _ => {}
    }
    query
}

fn ours(folder: &Path, size: u64) -> Result<Vec<(&'static str, Times)>> {
    let path = folder.join("index");
    let keys = Arc::new(Keys::default());
    let truth = Generated { count: AtomicU64::new(size) };
    let open = || Index::open(&path, keys.clone());
    let making = Instant::now();
    (1..=size).step_by(97).for_each(|id| drop(cards::card(id)));
    let making = making.elapsed().as_secs_f64() * 97.0;
    let (began, cpu) = (Instant::now(), cpu());
    open()?.catch_up(&truth, true)?;
    let (built, cpu) = (began.elapsed().as_secs_f64(), cpu_since(cpu).as_secs_f64());
    let index = open()?;
    let began = Instant::now();
    index.search(&question(1, &mut Random::new(7), size), &truth)?;
    let first = began.elapsed();
    print(&format!("\n### {size} cards\n"));
    let disk = bytes(&path)?;
    print(&format!(
        "Ours: taken in at {:.0} cards/s ({:.0}/s of CPU time without making them), {} bytes a card on disk, first search \
         of a new process {:.1} ms.",
        size as f64 / built,
        size as f64 / (cpu - making).max(0.001),
        disk / size,
        first.as_secs_f64() * 1e3,
    ));
    let mut rows = Vec::new();
    for (kind, name) in KINDS.into_iter().enumerate() {
        let mut random = Random::new(kind as u64 + 100);
        let mut times = Times::default();
        for round in 0..ROUNDS + WARM {
            let query = question(kind, &mut random, size);
            if kind == KINDS.len() - 1 {
                truth.count.fetch_add(1, Ordering::Relaxed);
            }
            let time = Time::of(|| index.search(&query, &truth))?;
            if round >= WARM {
                times.0.push(time);
            }
        }
        rows.push((name, times));
    }
    let caught = Time::of(|| index.catch_up(&truth, true))?;
    let forgot = Time::of(|| index.forget(&[size / 2]))?;
    print(&format!(
        "Taking in the {} waiting cards {:.0} ms (CPU {:.0}); forgetting one card {:.0} ms (CPU {:.0}); most memory {} MiB.",
        ROUNDS + WARM,
        caught.wall.as_secs_f64() * 1e3,
        caught.cpu.as_secs_f64() * 1e3,
        forgot.wall.as_secs_f64() * 1e3,
        forgot.cpu.as_secs_f64() * 1e3,
        most_memory()?,
    ));
    Ok(rows)
}

fn peer(folder: &Path, size: u64) -> Result<Vec<Option<Times>>> {
    let file = folder.join("fts.db");
    let mut fts = Fts::create(&file)?;
    let began = Instant::now();
    for start in (1..=size).step_by(10_000) {
        let batch: Vec<_> = (start..=(start + 9_999).min(size)).map(cards::card).collect();
        fts.add(&batch)?;
    }
    let built = began.elapsed().as_secs_f64();
    print(&format!(
        "FTS5: {:.0} cards/s, {} bytes a card on disk.",
        size as f64 / built,
        (std::fs::metadata(&file)?.len()) / size
    ));
    let rounds = if size >= 1_000_000 { 20 } else { 60 };
    let mut all = Vec::new();
    for kind in 0..KINDS.len() {
        if matches!(kind, 5..=8) {
            all.push(None);
            continue;
        }
        let mut random = Random::new(kind as u64 + 100);
        let mut times = Times::default();
        for round in 0..rounds + 2 {
            let query = question(kind, &mut random, size);
            let matching = fts::query(&query.text, " OR ");
            let tag = query.tags.first().map(String::as_str);
            let time = Time::of(|| fts.search(&matching, tag, query.from, 10))?;
            if round >= 2 {
                times.0.push(time);
            }
        }
        all.push(Some(times));
    }
    Ok(all)
}

#[derive(Clone, Copy, Debug)]
struct Time {
    wall: Duration,
    cpu: Duration,
}

impl Time {
    fn of<T, E: Into<Box<dyn std::error::Error>>>(
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> Result<Self> {
        let (began, before) = (Instant::now(), cpu());
        work().map_err(Into::into)?;
        Ok(Self { wall: began.elapsed(), cpu: cpu_since(before) })
    }
}

#[derive(Debug, Default)]
struct Times(Vec<Time>);

impl Times {
    fn at(&self, percent: usize, of: impl Fn(&Time) -> Duration) -> f64 {
        let mut times: Vec<Duration> = self.0.iter().map(of).collect();
        times.sort_unstable();
        times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3
    }

    fn p50(&self) -> f64 {
        self.at(50, |time| time.wall)
    }

    fn wall(&self, percent: usize) -> String {
        format!("{:.2} ms", self.at(percent, |time| time.wall))
    }

    fn cpu(&self, percent: usize) -> String {
        format!("{:.2} ms", self.at(percent, |time| time.cpu))
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn cpu_since(before: Duration) -> Duration {
    cpu().saturating_sub(before)
}

fn bytes(folder: &Path) -> Result<u64> {
    let mut all = 0;
    for entry in std::fs::read_dir(folder)? {
        all += entry?.metadata()?.len();
    }
    Ok(all)
}

fn most_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib =
        line.and_then(|line| line.split_ascii_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok());
    Ok(kib.unwrap_or_default() / 1024)
}

const ROUNDS: usize = 200;
const WARM: usize = 20;
