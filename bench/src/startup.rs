//! How soon `confidant serve` is ready, and what it takes while nobody asks it anything.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::meter::{median, millis, rounded};

#[derive(Debug, Serialize)]
pub(crate) struct Startup {
    starts: usize,
    /// On an empty folder: makes the databases and a key.
    first_start_ms: f64,
    /// From exec to the first 200 of `/readyz`, median on an existing folder.
    start_ms: f64,
    start_min_ms: f64,
    /// Resident memory after a second without a request.
    idle_rss_mb: f64,
}

/// Starts the program again and again in `folder`.
pub(crate) fn measure(binary: &Path, folder: &Path, starts: usize) -> Result<Startup> {
    let binary = binary.canonicalize().context("the program to start")?;
    let (first, server) = start(&binary, folder)?;
    server.stop()?;
    let mut times = Vec::with_capacity(starts);
    for _ in 0..starts {
        let (time, server) = start(&binary, folder)?;
        times.push(time);
        server.stop()?;
    }
    let (_, server) = start(&binary, folder)?;
    std::thread::sleep(Duration::from_secs(1));
    let idle_rss_mb = server.resident_megabytes()?;
    server.stop()?;
    Ok(Startup {
        starts,
        first_start_ms: rounded(millis(first)),
        start_ms: median(times.iter().copied()),
        start_min_ms: times.iter().min().map_or(0.0, |least| rounded(millis(*least))),
        idle_rss_mb,
    })
}

fn start(binary: &Path, folder: &Path) -> Result<(Duration, Server)> {
    let address = free_address()?;
    let mut command = Command::new(binary);
    // Nothing of the caller's environment: neither its configuration nor its keys.
    command.arg("serve").env_clear().env("HOME", folder).current_dir(folder);
    command.env("CONFIDANT_SERVER__DATA_DIR", folder.join("data"));
    command.env("CONFIDANT_SERVER__LISTEN", address.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut server = Server(command.spawn().context("the program does not start")?);
    while !is_ready(address) {
        if let Some(status) = server.0.try_wait()? {
            anyhow::bail!("the program ended before it was ready: {status}");
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "the program was not ready within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((began.elapsed(), server))
}

const PATIENCE: Duration = Duration::from_secs(20);

/// A running program; killed if it is dropped before it was stopped.
struct Server(Child);

impl Server {
    /// Asks it to stop and waits, so that the next start finds files as a clean stop leaves them.
    fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        let asked = Instant::now();
        while self.0.try_wait()?.is_none() {
            anyhow::ensure!(asked.elapsed() < PATIENCE, "the program did not stop within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn resident_megabytes(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(rounded(kibibytes * 1024.0 / 1e6))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails when it has ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_ready(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<[u8; 12]> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(
            format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status)
    };
    ask().is_ok_and(|status| &status == b"HTTP/1.1 200")
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
