//! A new device takes in everything: 100 chats of 100 messages, checked, opened and kept on its disk.
//!
//! The device is the real client over HTTP and WebSocket, with its files in a folder. Bytes are counted in a run of their own,
//! through something between the two; times are of runs without it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use confidant_chat_format::{Login, Origin, RecoveryCode};
use confidant_client::{
    Credential, Device, Error, Files, Folder, Http, Phase, Registration, Setup, Transport,
};
use serde::Serialize;

use crate::counting::{Looking, Seen, Wire};
use crate::floor;
use crate::server::{Server, Start};
use crate::times::{Times, millis, own_cpu, rounded};

/// Where it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) postgres: Option<&'a str>,
}

/// How much there is to take in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    chats: usize,
    messages: usize,
    rounds: usize,
}

impl Size {
    pub(crate) const SMALL: Self = Self { chats: 3, messages: 4, rounds: 1 };
    pub(crate) const WHOLE: Self = Self { chats: 100, messages: 100, rounds: 7 };
}

#[derive(Debug, Serialize)]
pub(crate) struct Found {
    chats: usize,
    messages: usize,
    body_bytes: usize,
    /// From nothing to everything.
    whole: Times,
    /// Of that, until the last opened chat is there, on another new device.
    first_chat: Times,
    /// Once more, when nothing has changed.
    again: Times,
    /// CPU of one whole sync.
    client_cpu_ms: f64,
    server_cpu_ms: f64,
    /// What the server sent for it, with every header.
    wire_bytes: u64,
    /// What was in its frames.
    json_bytes: u64,
    frames: u64,
    envelopes: usize,
    ciphertext_bytes: u64,
    wire_per_ciphertext: f64,
    /// Reading and opening the same, and nothing else.
    floor_ms: f64,
    whole_per_floor: f64,
}

pub(crate) async fn measure(place: Place<'_>, size: Size) -> Result<Found> {
    let wire = Wire::new().await?;
    let server = Server::start(&Start {
        binary: place.binary,
        folder: place.folder,
        postgres: place.postgres,
        also_at: Some(wire.address),
        model: None,
    })?;
    let origin = server.origin()?;
    let code = RecoveryCode::random();
    write_all(&server, &origin, &code, size).await?;
    let recovery = Credential::Recovery(code);
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut cpu = [Duration::ZERO; 2];
    for round in 0..size.rounds {
        let http = || Ok::<_, Error>(Arc::new(Http::new(origin.clone())?));
        let folder = place.folder.join(format!("device-{round}"));
        let mut device = Device::log_in(setup(http()?, Arc::new(Folder::open(&folder)?)), &recovery).await?;
        let (own, theirs, began) = (own_cpu(), server.cpu()?, Instant::now());
        let synced = device.sync(Phase::All).await?;
        times[0].push(began.elapsed());
        cpu[0] += own_cpu() - own;
        cpu[1] += server.cpu()? - theirs;
        anyhow::ensure!(synced.changed.len() == size.chats, "chats are missing");
        let began = Instant::now();
        anyhow::ensure!(device.sync(Phase::All).await?.changed.is_empty(), "something changed");
        times[2].push(began.elapsed());
        let folder = place.folder.join(format!("quick-{round}"));
        let mut device = Device::log_in(setup(http()?, Arc::new(Folder::open(&folder)?)), &recovery).await?;
        let began = Instant::now();
        device.sync(Phase::LastChat).await?;
        times[1].push(began.elapsed());
    }
    let (wire_bytes, seen) = counted(wire, &server, &recovery, size).await?;
    server.stop()?;
    let (frames, json_bytes, envelopes) = seen.totals();
    let floor = match place.postgres {
        None => floor::sqlite(place.folder, &envelopes, size.rounds)?,
        Some(url) => floor::postgres(url, &envelopes, size.rounds).await?,
    };
    let ciphertext_bytes = envelopes.iter().sum::<usize>() as u64;
    let [whole, first_chat, again] = times.map(Times::of);
    let each = |cpu: Duration| rounded(millis(cpu) / size.rounds as f64);
    Ok(Found {
        chats: size.chats,
        messages: size.messages,
        body_bytes: BODY.len(),
        client_cpu_ms: each(cpu[0]),
        server_cpu_ms: each(cpu[1]),
        wire_bytes,
        json_bytes,
        frames,
        envelopes: envelopes.len(),
        ciphertext_bytes,
        wire_per_ciphertext: rounded(wire_bytes as f64 / ciphertext_bytes.max(1) as f64),
        floor_ms: millis(floor),
        whole_per_floor: rounded(whole.p50_ms / millis(floor)),
        whole,
        first_chat,
        again,
    })
}

/// Somebody writes everything, on a device that keeps nothing.
async fn write_all(server: &Server, origin: &Origin, code: &RecoveryCode, size: Size) -> Result<()> {
    let who = Registration {
        login: Login::parse("ana").ok().context("no login")?,
        credentials: vec![
            Credential::password("ana", "a long enough password")?,
            Credential::Recovery(code.clone()),
        ],
        code: Some(server.code.clone()),
    };
    let setup = setup(Arc::new(Http::new(origin.clone())?), Arc::new(Memory::default()));
    let mut device = Device::register(setup, who).await?;
    let bodies = vec![BODY; size.messages];
    for at in 0..size.chats {
        let chat = device.new_chat(Some(&format!("Chat {at}")))?;
        device.say_all(&chat, &bodies)?;
        // As fast as a socket may be.
        while let Err(error) = device.flush().await {
            anyhow::ensure!(matches!(error, Error::Offline), "it cannot be written: {error}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    Ok(())
}

/// One more new device, with something between it and the server.
async fn counted(
    wire: Wire,
    server: &Server,
    credential: &Credential,
    size: Size,
) -> Result<(u64, Arc<Seen>)> {
    let origin = Origin::parse(&format!("http://{}", wire.address)).ok().context("no origin")?;
    let sent = wire.carry_to(server.address);
    let seen = Arc::new(Seen::default());
    let looking = Looking { http: Http::new(origin)?, seen: Arc::clone(&seen) };
    let setup = setup(Arc::new(looking), Arc::new(Memory::default()));
    let mut device = Device::log_in(setup, credential).await?;
    let before = sent.load(Ordering::Relaxed);
    let synced = device.sync(Phase::All).await?;
    anyhow::ensure!(synced.changed.len() == size.chats, "chats are missing");
    Ok((sent.load(Ordering::Relaxed) - before, seen))
}

#[expect(clippy::disallowed_methods, reason = "a program of its own, which has the time from nobody")]
pub(crate) fn setup(transport: Arc<dyn Transport>, files: Arc<dyn Files>) -> Setup {
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let clock = Arc::new(move || u64::try_from(now()).unwrap_or_default());
    Setup { transport, files, key: None, clock }
}

/// Files that are nowhere.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, Error> {
        let mut files = self.0.lock().map_err(|_| Error::Files("poisoned".to_owned()))?;
        Ok(work(&mut files))
    }
}

impl Files for Memory {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.with(|files| files.get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.with(|files| drop(files.insert(name.to_owned(), bytes.to_vec())))
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.with(|files| drop(files.remove(name)))
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        self.with(|files| files.keys().cloned().collect())
    }
}

/// 300 bytes, as the other benchmarks have them.
pub(crate) const BODY: &str = "We looked at how the night train is booked from here, whether the sleeper has a window that opens, and what \
the ferry costs when it is taken on the way back instead. Nobody had asked about the bicycles yet, so that is what is left \
for tomorrow, together with the tickets for the museum at noon.......";
