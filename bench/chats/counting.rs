//! What goes over the wire: bytes, counted between the client and the server, and how much of them is ciphertext.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use async_trait::async_trait;
use confidant_chat_format::Origin;
use confidant_chat_protocol::{Body as _, ChatSent, ServerEvent, ServerFrame};
use confidant_client::{Connection, Http, Posted, SessionKeys, Transport, TransportError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Carries connections to a server and counts what the server says.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    sent: Arc<AtomicU64>,
    listener: TcpListener,
}

impl Wire {
    pub(crate) async fn new() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { address: listener.local_addr()?, sent: Arc::default(), listener })
    }

    /// From now on, to this server. What was counted is in the number that this gives.
    pub(crate) fn carry_to(self, server: SocketAddr) -> Arc<AtomicU64> {
        let sent = Arc::clone(&self.sent);
        tokio::spawn(async move {
            while let Ok((client, _)) = self.listener.accept().await {
                let Ok(server) = TcpStream::connect(server).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(copy(from_client, to_server, Arc::default()));
                tokio::spawn(copy(from_server, to_client, Arc::clone(&self.sent)));
            }
        });
        sent
    }
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, count: Arc<AtomicU64>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        count.fetch_add(length as u64, Ordering::Relaxed);
        if to.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}

/// A way to a server that looks into what it says.
#[derive(Debug)]
pub(crate) struct Looking {
    pub(crate) http: Http,
    pub(crate) seen: Arc<Seen>,
}

/// The envelopes that were sent.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    frames: AtomicU64,
    json: AtomicU64,
    envelopes: Mutex<Vec<usize>>,
}

impl Seen {
    /// Frames, their bytes as JSON, and the size of every envelope in them.
    pub(crate) fn totals(&self) -> (u64, u64, Vec<usize>) {
        let sizes = self.envelopes.lock().map(|sizes| sizes.clone()).unwrap_or_default();
        (self.frames.load(Ordering::Relaxed), self.json.load(Ordering::Relaxed), sizes)
    }

    fn look(&self, frame: &[u8]) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.json.fetch_add(frame.len() as u64, Ordering::Relaxed);
        let Ok(ServerFrame { event, .. }) = ServerFrame::read(frame) else { return };
        let mut sizes = Vec::new();
        match event {
            ServerEvent::AccountState(state) => {
                sizes.push(state.manifest.sealed().as_bytes().len());
                sizes.extend(state.floors.iter().map(|floor| floor.envelope.sealed().as_bytes().len()));
            }
            ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
                sent.chats.iter().for_each(|chat| sizes_of(chat, &mut sizes));
            }
            ServerEvent::ChatContentBatchResponse(sent) => {
                sent.chats.iter().for_each(|chat| sizes_of(chat, &mut sizes));
            }
            _ => {}
        }
        if let Ok(mut all) = self.envelopes.lock() {
            all.extend(sizes);
        }
    }
}

fn sizes_of(chat: &ChatSent, sizes: &mut Vec<usize>) {
    sizes.push(chat.head.sealed().as_bytes().len());
    let items = chat.items.iter().filter_map(|item| item.envelope.as_ref());
    sizes.extend(items.map(|envelope| envelope.sealed().as_bytes().len()));
    sizes.extend(chat.draft.iter().map(|draft| draft.sealed().as_bytes().len()));
}

#[async_trait]
impl Transport for Looking {
    fn origin(&self) -> &Origin {
        self.http.origin()
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        self.http.post(path, session, body).await
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        let inner = self.http.connect().await?;
        Ok(Box::new(Watched { inner, seen: Arc::clone(&self.seen) }))
    }
}

#[derive(Debug)]
struct Watched {
    inner: Box<dyn Connection>,
    seen: Arc<Seen>,
}

#[async_trait]
impl Connection for Watched {
    async fn send(&mut self, frame: Vec<u8>) -> Result<(), TransportError> {
        self.inner.send(frame).await
    }

    async fn next(&mut self) -> Result<Vec<u8>, TransportError> {
        let frame = self.inner.next().await?;
        self.seen.look(&frame);
        Ok(frame)
    }
}
