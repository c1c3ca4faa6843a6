//! Whether registering and logging in holds others up: small requests beside nothing, beside as many other requests, and
//! beside people who register and log in as fast as the server takes it.
//!
//! Stretching a password is the client's work; these clients have a root that needs none, so that the CPU which the two
//! processes share goes to the server. The middle one tells a busy machine from a server that blocks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use confidant_chat_format::{ChatId, Origin};
use serde::Serialize;

use crate::device::Person;
use crate::line::{Line, Session};
use crate::people;
use crate::server::{Server, Start};
use crate::times::{Times, rounded};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    count: usize,
    each: Duration,
}

impl Rounds {
    pub(crate) const SHORT: Self = Self { count: 1, each: Duration::from_millis(300) };
    pub(crate) const LONG: Self = Self { count: 5, each: Duration::from_secs(4) };
}

#[derive(Debug, Serialize)]
pub(crate) struct Logins {
    alone: Beside,
    /// Beside as many connections that ask for `/healthz`.
    beside_requests: Beside,
    beside_logins: Beside,
    beside_registrations: Beside,
}

#[derive(Debug, Serialize)]
struct Beside {
    healthz: Times,
    write: Times,
    /// What the others did.
    others_a_second: f64,
}

/// What others do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    Nothing,
    Ask,
    LogIn,
    Register,
}

/// Connections of the others.
const MANY: u8 = 4;

pub(crate) async fn measure(binary: &Path, folder: &Path, rounds: Rounds) -> Result<Logins> {
    let server = Server::start(&Start { binary, folder, postgres: None, also_at: None, model: None })?;
    let (origin, mut line) = (server.origin()?, Line::open(server.address, 1).await?);
    let (mut writer, session) = people::register(&mut line, &origin, "writer", Some(&server.code)).await?;
    let chat = ChatId::random();
    people::write(&mut line, &session, &mut writer, &chat).await?;
    let mut someone = Vec::new();
    for at in 0..MANY {
        someone.push(people::register(&mut line, &origin, &format!("person-{at}"), None).await?.0);
    }
    let mut probe = Probe { line, session, writer, chat };
    let mut found = [Others::Nothing, Others::Ask, Others::LogIn, Others::Register]
        .map(|others| (others, Found::default()));
    // By turns, so that a machine that becomes slower does so for all.
    for round in 0..rounds.count {
        for (others, found) in &mut found {
            let crowd = Crowd::start(&server, &origin, &someone, *others, round).await?;
            let began = Instant::now();
            probe.run(rounds.each, found).await?;
            found.others += crowd.stop().await?;
            found.took += began.elapsed();
        }
    }
    server.stop()?;
    let [alone, beside_requests, beside_logins, beside_registrations] = found.map(|(_, found)| found.into());
    Ok(Logins { alone, beside_requests, beside_logins, beside_registrations })
}

#[derive(Default)]
struct Found {
    healthz: Vec<Duration>,
    writes: Vec<Duration>,
    others: u64,
    took: Duration,
}

impl From<Found> for Beside {
    fn from(found: Found) -> Self {
        let others = found.others as f64 / found.took.as_secs_f64();
        Self {
            healthz: Times::of(found.healthz),
            write: Times::of(found.writes),
            others_a_second: rounded(others),
        }
    }
}

/// Who is held up, or not: somebody who asks and writes now and then.
struct Probe {
    line: Line,
    session: Session,
    writer: Person,
    chat: ChatId,
}

impl Probe {
    async fn run(&mut self, time: Duration, found: &mut Found) -> Result<()> {
        let (end, mut asked) = (Instant::now() + time, 0);
        while Instant::now() < end {
            let began = Instant::now();
            self.line.get("/healthz").await?;
            found.healthz.push(began.elapsed());
            if asked % 4 == 0 {
                // A head lists every message: chats stay as small as at the beginning.
                if asked % 100 == 0 {
                    self.chat = ChatId::random();
                }
                let began = Instant::now();
                people::write(&mut self.line, &self.session, &mut self.writer, &self.chat).await?;
                found.writes.push(began.elapsed());
            }
            asked += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}

/// The others.
struct Crowd {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<Result<()>>>,
}

impl Crowd {
    async fn start(
        server: &Server,
        origin: &Origin,
        someone: &[Person],
        others: Others,
        round: usize,
    ) -> Result<Self> {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = Vec::new();
        for (number, person) in (0..MANY).zip(someone) {
            if others == Others::Nothing {
                break;
            }
            // Networks of its own in each round.
            let tag = 16 + u8::try_from(round % 32)? * 4 + number;
            let mut line = Line::open(server.address, tag).await?;
            let (origin, person) = (origin.clone(), person.clone());
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match others {
                        Others::Nothing => break,
                        Others::Ask => drop(line.get("/healthz").await?),
                        Others::LogIn => drop(people::log_in(&mut line, &origin, &person).await?),
                        Others::Register => {
                            let login = ChatId::random().as_str().to_owned();
                            people::register(&mut line, &origin, &login, None).await?;
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        Ok(Self { stop, done, tasks })
    }

    async fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await??;
        }
        Ok(self.done.load(Ordering::Relaxed))
    }
}
