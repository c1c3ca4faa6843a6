//! The program under test: `confidant serve` in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use confidant_chat_format::Origin;
use rustix::process::{Pid, Signal, kill_process};

/// A running server; killed if it is dropped before it was stopped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What the first account needs.
    pub(crate) code: String,
}

/// How it is started.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) folder: &'a Path,
    /// Where chats are; without it, in the folder.
    pub(crate) postgres: Option<&'a str>,
    /// An address beside its own that it is asked at.
    pub(crate) also_at: Option<SocketAddr>,
    /// The model that answers; without it, the built-in one.
    pub(crate) model: Option<SocketAddr>,
}

impl Server {
    pub(crate) fn start(how: &Start<'_>) -> Result<Self> {
        let Start { binary, folder, .. } = how;
        std::fs::create_dir_all(folder)?;
        let address = free_address()?;
        let settings = write_settings(how, address)?;
        let mut command = Command::new(binary);
        // Nothing of the caller's environment: neither its configuration nor its keys.
        command.arg("serve").arg("--config").arg(settings).env_clear().env("HOME", folder);
        command.env("OPENAI_API_KEY", "none");
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("the program does not start")?;
        let lines = BufReader::new(child.stderr.take().context("it has no stderr")?).lines();
        let (told, hears) = mpsc::channel();
        // To its end: a server whose log nobody reads would stop.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = told.send(line);
            }
        });
        let mut server = Self { child, address, code: String::new() };
        server.wait_until_ready(&hears)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, hears: &mpsc::Receiver<String>) -> Result<()> {
        let (deadline, mut said) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = hears.recv_timeout(left) else {
                anyhow::bail!("the program was not ready within {PATIENCE:?}; it said:\n{}", said.join("\n"));
            };
            if let Some((_, code)) = line.split_once("needs this code, today: ") {
                code.trim().clone_into(&mut self.code);
            }
            if line.starts_with("listening on http://") {
                return Ok(());
            }
            said.push(line);
        }
    }

    /// The name that it is asked by.
    pub(crate) fn origin(&self) -> Result<Origin> {
        Origin::parse(&format!("http://{}", self.address)).map_err(|_| anyhow::anyhow!("no origin"))
    }

    /// What it has in memory, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        let pages = std::fs::read_to_string(self.proc("statm"))?;
        let pages: u64 = pages.split(' ').nth(1).context("statm")?.parse()?;
        Ok(pages * PAGE)
    }

    /// How much CPU it has had.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(self.proc("stat"))?;
        let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).context("stat");
        let ticks = ticks(11)? + ticks(12)?;
        Ok(Duration::from_secs_f64(ticks as f64 / TICKS_A_SECOND))
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(file)
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            anyhow::ensure!(Instant::now() < deadline, "the program did not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As an operator writes them. Whoever asks says which network it comes from, as behind a proxy.
fn write_settings(how: &Start<'_>, address: SocketAddr) -> Result<PathBuf> {
    let Start { folder, postgres, also_at, model, .. } = *how;
    let origins: Vec<String> =
        [Some(address), also_at].into_iter().flatten().map(|at| format!("\"http://{at}\"")).collect();
    let url = postgres.map_or_else(String::new, |url| format!("url = \"{url}\"\n"));
    let model = model.map_or_else(String::new, |at| {
        format!("\n[model]\nprovider = \"openai\"\nbase_url = \"http://{at}/v1\"\nmodel = \"bench\"\n")
    });
    let text = format!(
        "[server]\nlisten = \"{address}\"\ndata_dir = \"{}\"\n\n\
         [web]\n{url}origins = [{}]\nregistration = \"open\"\nproxies = [\"127.0.0.1\"]\n{model}",
        folder.join("data").display(),
        origins.join(", "),
    );
    let path = folder.join("confidant.toml");
    std::fs::write(&path, text)?;
    Ok(path)
}

pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// As Linux has them.
const PAGE: u64 = 4096;
const TICKS_A_SECOND: f64 = 100.0;
/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(60);
