//! A bad network: what stands between an engine and its server can be slow, cut, and lose replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A way to a server that can be made bad.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    delay: AtomicU64,
    /// Replies that are thrown away, each with its connection.
    lose: AtomicU64,
    refuse: AtomicBool,
    /// Whether whoever comes is let in and never answered.
    silent: AtomicBool,
    /// Replies that arrived.
    carried: watch::Sender<u64>,
    /// Changes whenever all connections are cut.
    cut: watch::Sender<()>,
}

impl Proxy {
    pub(crate) async fn to(target: u16) -> Self {
        Self::to_on("127.0.0.1", target).await
    }

    /// The same at another address of this machine.
    pub(crate) async fn to_on(address: &str, target: u16) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            target: target.into(),
            delay: 0.into(),
            lose: 0.into(),
            refuse: false.into(),
            silent: false.into(),
            carried: watch::Sender::new(0),
            cut: watch::Sender::new(()),
        });
        tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    if !state.refuse.load(Ordering::SeqCst) {
                        tokio::spawn(carry(Arc::clone(&state), client));
                    }
                }
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Leads whoever comes from now on to another server; those who are through stay where they are.
    pub(crate) fn lead_to(&self, target: u16) {
        self.state.target.store(target, Ordering::SeqCst);
    }

    /// Holds every packet back for as long, both ways.
    pub(crate) fn slow(&self, by: Duration) {
        self.state.delay.store(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Throws the next reply away and cuts its connection: what was asked for is done, and nobody is told.
    pub(crate) fn lose_a_reply(&self) {
        self.state.lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until so many more replies have arrived: a time would be too short for a machine that is busy.
    pub(crate) async fn carries(&self, more: u64) {
        let mut carried = self.state.carried.subscribe();
        let enough = *carried.borrow() + more;
        let _ = carried.wait_for(|carried| *carried >= enough).await;
    }

    /// Cuts all connections there are.
    pub(crate) fn cut(&self) {
        self.state.cut.send_replace(());
    }

    /// Lets everybody in and answers nobody, or all again.
    pub(crate) fn silent(&self, silent: bool) {
        self.state.silent.store(silent, Ordering::SeqCst);
        self.cut();
    }

    /// Lets nobody through, or everybody again.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.state.refuse.store(refuse, Ordering::SeqCst);
        self.cut();
    }
}

async fn carry(state: Arc<State>, mut client: TcpStream) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", state.target.load(Ordering::SeqCst))).await else {
        return;
    };
    let mut cut = state.cut.subscribe();
    if state.silent.load(Ordering::SeqCst) {
        let _ = cut.changed().await;
        return;
    }
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            state.pause().await;
            if to_server.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    let back = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            let lost =
                state.lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if lost.is_ok() {
                return;
            }
            state.pause().await;
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
            state.carried.send_modify(|carried| *carried += 1);
        }
    };
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = cut.changed() => {}
    }
}

impl State {
    async fn pause(&self) {
        let delay = self.delay.load(Ordering::SeqCst);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
    }
}
