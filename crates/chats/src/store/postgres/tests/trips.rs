//! What goes over the wire: how often somebody waits for the server, and what is said when its last answer is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Something between a store and its server.
#[derive(Default)]
struct Between {
    /// How often the client said something after the server had.
    trips: AtomicUsize,
    server_spoke: AtomicBool,
    /// Cuts the connection once the server has said that it has committed, before the client hears of it.
    loses_commits: AtomicBool,
    /// A commit is on its way.
    commits: AtomicBool,
}

impl Between {
    /// A store whose connections go through it.
    async fn store(link: &Link) -> (Arc<Self>, PostgresChats) {
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
        let url = std::env::var("CONFIDANT_TEST_POSTGRES").unwrap();
        let (front, rest) = url.rsplit_once(':').unwrap();
        let (port, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = format!("{front}:{}/{database}", listener.local_addr().unwrap().port());
        let (between, port) = (Arc::new(Self::default()), port.parse::<u16>().unwrap());
        tokio::spawn(Arc::clone(&between).listen(listener, port));
        let link = Link { address: PostgresAddress::parse(&here).unwrap(), connections: 1, ..link.clone() };
        (between, open(&link).await.unwrap())
    }

    async fn listen(self: Arc<Self>, listener: TcpListener, port: u16) {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            tokio::spawn(Arc::clone(&self).carry(client, server));
        }
    }

    /// Carries what both say until one of them ends, or until a commit is to be lost.
    async fn carry(self: Arc<Self>, mut client: TcpStream, mut server: TcpStream) {
        let (mut said, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            tokio::select! {
                read = client.read(&mut said) => {
                    let Ok(length @ 1..) = read else { return };
                    if self.server_spoke.swap(false, Ordering::SeqCst) {
                        self.trips.fetch_add(1, Ordering::SeqCst);
                    }
                    let is_commit = said[..length].windows(6).any(|window| window == b"COMMIT");
                    self.commits.fetch_or(is_commit, Ordering::SeqCst);
                    server.write_all(&said[..length]).await.unwrap();
                }
                read = server.read(&mut answered) => {
                    let Ok(length @ 1..) = read else { return };
                    self.server_spoke.store(true, Ordering::SeqCst);
                    let is_done = answered[..length].windows(7).any(|window| window == b"COMMIT\0");
                    if is_done && self.commits.swap(false, Ordering::SeqCst) && self.loses_commits.load(Ordering::SeqCst) {
                        return;
                    }
                    if client.write_all(&answered[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// However many items there are.
#[tokio::test]
async fn a_write_is_two_round_trips_and_a_read_is_one() {
    let Some(place) = place().await else { return };
    let (between, store) = Between::store(&place.link).await;
    let mut ana = Device::register(&store, "ana").await;
    let chat = ana.create(&store, 2).await;
    let trips = || between.trips.swap(0, Ordering::SeqCst);
    let edit = |messages: usize| Edit {
        puts: (0..messages).map(|_| message()).collect(),
        floor: true,
        ..Edit::default()
    };
    // The first time on a connection, its statements are prepared.
    ana.put(&store, &chat, &edit(1)).await.unwrap();
    let ids: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let read = async || {
        store.chat(&ana.id, &chat, Have::default()).await.unwrap();
        store.items(&ana.id, &chat, ids.clone(), usize::MAX).await.unwrap();
    };
    read().await;
    trips();
    read().await;
    assert_eq!(trips(), 2, "two reads");
    for messages in [1, 30] {
        ana.put(&store, &chat, &edit(messages)).await.unwrap();
        assert_eq!(trips(), 2, "a write of {messages}");
    }
    store.session(Digest::ZERO, NOW).await.unwrap();
    trips();
    store.session(Digest::ZERO, NOW).await.unwrap();
    assert_eq!(trips(), 1, "a look at a session");
}

/// It may have happened, so it is neither reported as not written nor written again.
#[tokio::test]
async fn a_write_whose_commit_is_not_answered_is_reported_as_uncertain() {
    let Some(place) = place().await else { return };
    let (between, store) = Between::store(&place.link).await;
    let (mut ana, chat, write) = person(&store, "ana").await;
    between.loses_commits.store(true, Ordering::SeqCst);
    assert_eq!(store.write(write.clone()).await, Err(StoreError::Uncertain));
    between.loses_commits.store(false, Ordering::SeqCst);
    // It did, and only once.
    assert_eq!(store.write(write).await, Err(StoreError::Conflict { now: 2 }));
    ana.pull(&store).await;
    assert_eq!(ana.chats[&chat].head.unwrap().0.rev, 2);
    place.audit().await;
}
