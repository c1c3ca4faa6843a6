//! A small HTTP server for tests: one request a connection, answered by a function.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, kind: "application/xml", body: body.into() }
    }

    #[cfg(feature = "cascade")]
    pub(super) fn json(value: &serde_json::Value) -> Self {
        Self { status: 200, kind: "application/json", body: value.to_string().into_bytes() }
    }
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(super) struct Stub {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Stub {
    pub(super) async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                tokio::spawn(async move {
                    let _ = serve(stream, &*answer, &log).await;
                });
            }
        });
        Self { url, seen, task }
    }

    pub(super) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(dyn Fn(&Request) -> Reply + Send + Sync),
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
        .unwrap_or(0_usize);
    while read.len() < end + length {
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    let mut words = head.split(' ');
    let request = Request {
        method: words.next().unwrap_or_default().to_owned(),
        path: words.next().unwrap_or_default().to_owned(),
        body: read[end..].to_vec(),
        head,
    };
    log.lock().unwrap().push(request.clone());
    let Reply { status, kind, body } = answer(&request);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\netag: \"e\"\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
