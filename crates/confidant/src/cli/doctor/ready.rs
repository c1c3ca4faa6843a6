//! `confidant doctor --ready`: one question to a running server, for health checks of containers that have no other program.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::anyhow;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cli::shared::Outcome;
use crate::output;

/// Asks the server that listens there. One that is not ready says why.
pub(super) async fn ask(listen: SocketAddr) -> anyhow::Result<Outcome> {
    let server = reachable(listen);
    let answer = tokio::time::timeout(PATIENCE, get(server))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let answer = answer.map_err(|error| {
        anyhow!(
            "no server answers on {server} ({}); hint: start it with `confidant serve`, or name its address",
            error.kind()
        )
    })?;
    if answer.is_ok() {
        output::line(&format!("the server on {server} is ready"))?;
        return Ok(Outcome::Done);
    }
    Err(match answer.error() {
        Some(error) => {
            anyhow!("the server on {server} is not ready: {}; hint: {}", error.message, error.hint)
        }
        None => anyhow!(
            "what answers on {server} is not Confidant; hint: check the address, or set server.listen"
        ),
    })
}

/// Where a server is reached that listens there: on every address means on this machine's own, too.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn get(server: SocketAddr) -> io::Result<Answer> {
    let stream = TcpStream::connect(server).await?;
    let (answer, mut question) = stream.into_split();
    let head = format!("GET /readyz HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    question.write_all(head.as_bytes()).await?;
    let mut all = Vec::new();
    answer.take(MOST_BYTES).read_to_end(&mut all).await?;
    Ok(Answer(String::from_utf8_lossy(&all).into_owned()))
}

/// What came back, head and body.
struct Answer(String);

impl Answer {
    fn is_ok(&self) -> bool {
        self.0.starts_with("HTTP/1.1 200 ") && self.body().is_some_and(|body| body.contains("\"status\""))
    }

    fn error(&self) -> Option<Refusal> {
        serde_json::from_str::<Refused>(self.body()?).ok().map(|refused| refused.error)
    }

    fn body(&self) -> Option<&str> {
        self.0.split_once("\r\n\r\n").map(|(_, body)| body)
    }
}

#[derive(Deserialize)]
struct Refused {
    error: Refusal,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
    hint: String,
}

/// Container runtimes give up after thirty seconds.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_BYTES: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_address_is_asked_on_this_machine() {
        for (listen, asked) in
            [("0.0.0.0:7367", "127.0.0.1:7367"), ("[::]:7367", "[::1]:7367"), ("10.1.2.3:80", "10.1.2.3:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()), asked.parse().unwrap());
        }
    }
}
