//! Two gateways of one installation, and devices that go from one to the other.
//!
//! ```text
//! device ─▶ Roaming ─┬─▶ gateway 0 ─┐ news ─┬─▶ one store, one vault, one time
//!                    └─▶ gateway 1 ─┘       └─▶ one who answers at both
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Origin};
use confidant_chats::answerer::MemoryAnswerer;
use confidant_chats::news::PostgresNews;
use confidant_chats::service::{AccountEvent, Hooks, News, Service, WeakService};
use confidant_chats::vault::{MemoryVault, Vault};
use confidant_client::{Connection, Posted, SessionKeys, Transport, TransportError};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::place::Place;
use crate::world::{Local, World, answers};

/// Two services over the rows, keys and time of a world. Each hears what happens at the other.
pub(crate) struct Gateways {
    services: [Service; 2],
    listening: Vec<JoinHandle<()>>,
    turn: AtomicUsize,
}

impl Gateways {
    /// `hooks` makes what a service has besides news; an answer that nobody stores goes to the mailbox after so long.
    pub(crate) async fn over(world: &World, hooks: impl Fn() -> Hooks, unstored: Duration) -> Self {
        let hooks = |news| Hooks { news: Some(news), ..hooks() };
        let Some(link) = world.place().link() else {
            let wires = [Arc::new(Wire::default()), Arc::new(Wire::default())];
            let services = wires.each_ref().map(|wire| {
                let news: Arc<dyn News> = Arc::<Wire>::clone(wire);
                world.gateway(hooks(news), unstored)
            });
            for (wire, other) in wires.iter().zip(services.iter().rev()) {
                *wire.0.lock() = Some(other.downgrade());
            }
            return Self { services, listening: Vec::new(), turn: AtomicUsize::new(0) };
        };
        let mut listening = Vec::new();
        let services = [(); 2].map(|()| {
            let vault: Arc<dyn Vault> = Arc::<MemoryVault>::clone(&world.vault);
            let service = world.gateway(hooks(Arc::new(PostgresNews::new(link, vault).unwrap())), unstored);
            let listens = service.clone();
            listening.push(tokio::spawn(async move { listens.listen().await }));
            service
        });
        let is_heard = |one: &Service| one.news_counts().is_some_and(|counts| counts.is_connected);
        let connected = async {
            while !services.iter().all(is_heard) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), connected).await.expect("the gateways do not hear");
        Self { services, listening, turn: AtomicUsize::new(0) }
    }

    /// The first one.
    pub(crate) fn first(&self) -> &Service {
        &self.services[0]
    }

    /// The one whose turn it is: the other one than last time.
    pub(crate) fn next(&self) -> &Service {
        &self.services[self.turn.fetch_xor(1, Ordering::SeqCst)]
    }
}

impl Drop for Gateways {
    fn drop(&mut self) {
        for task in &self.listening {
            task.abort();
        }
    }
}

/// Two gateways that answer.
pub(crate) struct Two {
    pub(crate) world: World,
    pub(crate) answerer: MemoryAnswerer,
    gateways: Gateways,
}

impl Two {
    /// Over this store; an answer that nobody stores goes to the mailbox after so long.
    pub(crate) async fn at(place: Place, answerer: MemoryAnswerer, unstored: Duration) -> Self {
        let world = World::at(place).await;
        let gateways = Gateways::over(&world, || answers(&answerer), unstored).await;
        Self { world, answerer, gateways }
    }

    /// A gateway is killed, with all that runs for turns there, and is there again. After that nobody has them in hand for long.
    pub(crate) fn kill(&self, at: usize) {
        self.gateways.services[at].kill_turns();
        self.world.pass(LEASE);
    }

    /// What gateways do all the time: they look after answers that are on their way.
    pub(crate) async fn look_after_answers(&self) {
        for gateway in &self.gateways.services {
            gateway.look_after_answers().await.unwrap();
        }
    }

    /// A way to whichever gateway it is turned to.
    pub(crate) fn way(&self) -> Arc<Roaming> {
        Arc::new(Roaming { ways: self.gateways.services.each_ref().map(Local::to), at: AtomicUsize::new(0) })
    }
}

/// After so long, in milliseconds, nobody believes that a gateway still has a turn in hand.
pub(crate) const LEASE: u64 = 100_000;

/// What one gateway does, the other hears.
#[derive(Debug, Default)]
struct Wire(Mutex<Option<WeakService>>);

#[async_trait]
impl News for Wire {
    fn happened(&self, account: &AccountId, happened: &AccountEvent) {
        let other = self.0.lock().as_ref().and_then(WeakService::upgrade);
        if let Some(other) = other {
            other.hear(account, happened);
        }
    }
}

/// A way to one of two gateways.
#[derive(Debug)]
pub(crate) struct Roaming {
    ways: [Arc<Local>; 2],
    at: AtomicUsize,
}

impl Roaming {
    /// What is asked from now on goes to the other one. A connection stays where it is.
    pub(crate) fn turn(&self) {
        self.at.fetch_xor(1, Ordering::SeqCst);
    }

    /// Which one it is turned to.
    pub(crate) fn at(&self) -> usize {
        self.at.load(Ordering::SeqCst)
    }

    fn way(&self) -> &Local {
        &self.ways[self.at()]
    }
}

#[async_trait]
impl Transport for Roaming {
    fn origin(&self) -> &Origin {
        self.way().origin()
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        self.way().post(path, session, body).await
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        self.way().connect().await
    }
}
