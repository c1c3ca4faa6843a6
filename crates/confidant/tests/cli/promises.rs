//! The promises about chats that only their owner can open, of the whole program: the server as a process, with the keys and
//! conversations of each store, and devices of the real client.
//!
//! ```text
//! device ── HTTP, socket ──▶ confidant serve ──▶ chats.db or PostgreSQL · keyring.db, Redis or PostgreSQL
//!                                                          └── read here as a thief, with and without the master key
//! ```
//!
//! Easy to get wrong: the folder that is searched. Devices have folders of their own elsewhere, since theirs may be opened.

mod erasure;
mod rest;
mod roles;

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Login, Origin};
use confidant_chats::store::sqlite::SqliteChats;
use confidant_client::{
    Connection, Credential, Device, Folder, Http, Phase, Posted, Registration, SessionKeys, Setup, Transport,
    TransportError,
};
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_engine::keys::AccountKeys;
use confidant_engine::model::Extractive;
use confidant_engine::storage::{Durability, PostgresAddress, PostgresSettings, RedisAddress, RedisSettings};
use confidant_engine::{Engine, Parts, StaticKeys, Storage, TenantId};
use confidant_postgres::Link;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::home::{Home, KEY};
use crate::moving::postgres;
use crate::redis::on_redis;
use crate::rows::Kept;

/// Where a server keeps conversations and keys.
pub(crate) struct Place {
    pub(crate) home: Home,
    /// The tests' PostgreSQL and a schema there.
    pub(crate) schema: Option<(String, String)>,
    /// Devices and backups.
    elsewhere: tempfile::TempDir,
}

impl Place {
    fn new(home: Home, schema: Option<(String, String)>) -> Self {
        let home = home
            .set("CONFIDANT_LOG__LEVEL", "trace")
            .set("CONFIDANT_WEB__REGISTRATION", "open")
            .set("CONFIDANT_SERVER__REQUESTS_PER_MINUTE", "0");
        Self { home, schema, elsewhere: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn sqlite() -> Self {
        Self::new(Home::new(), None)
    }

    pub(crate) fn redis_of_tests() -> Option<Self> {
        Some(Self::new(on_redis()?.set("CHECKPOINT_ENCRYPTION_KEY", KEY), None))
    }

    pub(crate) fn postgres_of_tests() -> Option<Self> {
        let url = postgres()?;
        let home = Home::new();
        let name = home.folder.path().file_name().unwrap().to_str().unwrap().to_lowercase();
        let schema = format!("cli{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
        let home = home
            .set("CHECKPOINT_ENCRYPTION_KEY", KEY)
            .set("CONFIDANT_STORE__URL", &url)
            .set("CONFIDANT_STORE__SCHEMA", &schema);
        Some(Self::new(home, Some((url, schema))))
    }

    /// A folder for a device or a backup.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.elsewhere.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn postgres(&self) -> Option<PostgresSettings> {
        let (url, schema) = self.schema.clone()?;
        let address = PostgresAddress::parse(&url).unwrap();
        Some(PostgresSettings { schema, connections: 4, ..PostgresSettings::new(address) })
    }

    /// The rows of chats.
    async fn kept(&self) -> Kept {
        match self.postgres() {
            Some(PostgresSettings { address, ca, schema, connections, .. }) => {
                let link = Link { address, ca, schema, connections }.beside("chats");
                Kept::of(confidant_chats::store::postgres::open(&link).await.unwrap())
            }
            None => Kept::of(SqliteChats::open(&self.home.data("")).unwrap()),
        }
    }

    /// The keys of accounts, opened with the master key, by somebody who has both. The server has stopped.
    async fn keys(&self) -> (Engine, AccountKeys) {
        let variable = |name: &str| self.home.variables.get(name).cloned();
        let folder = self.home.data("");
        let (storage, key) = match (self.postgres(), variable("REDIS_URL")) {
            (Some(settings), _) => (Storage::postgres(&settings).await, KEY.to_owned()),
            (None, Some(url)) => {
                let tenant = TenantId::new("default").unwrap();
                let mut settings = RedisSettings::new(RedisAddress::parse(&url).unwrap(), tenant);
                settings.prefix = variable("CONFIDANT_STORE__PREFIX").unwrap();
                (Storage::redis(&settings).await, KEY.to_owned())
            }
            (None, None) => (Storage::sqlite(&folder, &folder, Durability::Process), self.home.master_key()),
        };
        let keys = Arc::new(StaticKeys::from_base64(key.trim()).unwrap());
        let parts = Parts::new(storage.unwrap(), keys, Arc::new(Extractive::new()));
        let engine = Engine::open(parts).await.unwrap();
        let keys = engine.account_keys(TenantId::new("default").unwrap());
        (engine, keys)
    }
}

/// A server as a process; what it says goes to a file in its folder.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Starts it on a port that is free, and waits until it listens.
    pub(crate) fn start(place: &Place) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        Self::start_at(place, address)
    }

    pub(crate) fn start_at(place: &Place, address: SocketAddr) -> Self {
        let log = File::options().create(true).append(true).open(log_of(place)).unwrap();
        let before = said(place).len();
        let mut command = place.home.command(&["serve", "--listen", &address.to_string()]);
        let mut child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let begun = Instant::now();
        while !said(place)[before..].contains("listening on http://") {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < LONG,
                "it did not start: {}",
                &said(place)[before..]
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address }
    }

    fn origin(&self) -> Origin {
        Origin::parse(&format!("http://127.0.0.1:{}", self.address.port())).unwrap()
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Ends it as a power cut does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A device's way to it, which notes the session.
    pub(crate) fn setup(&self, folder: &Path) -> (Setup, Arc<Tapped>) {
        let way = Arc::new(Tapped { inner: Http::new(self.origin()).unwrap(), session: Mutex::default() });
        let setup = Setup {
            transport: Arc::<Tapped>::clone(&way),
            files: Arc::new(Folder::open(folder).unwrap()),
            key: None,
            clock: Arc::new(|| SystemClock.now().0.try_into().unwrap()),
        };
        (setup, way)
    }

    pub(crate) async fn register(
        &self,
        place: &Place,
        login: &str,
        credentials: Vec<Credential>,
    ) -> (Device, Arc<Tapped>) {
        let (setup, way) = self.setup(&place.folder(login));
        let code = said(place).split("needs this code, today: ").nth(1).map(|rest| rest[..32].to_owned());
        let who = Registration { login: Login::parse(login).unwrap(), credentials, code };
        let mut device = Device::register(setup, who).await.unwrap();
        device.sync(Phase::All).await.unwrap();
        (device, way)
    }

    /// Sends a request from an address of its own, so that nobody's failures are in the way; status and the whole answer.
    async fn ask(&self, request: &str, headers: &[(&str, String)], body: &str) -> (u16, String) {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0x7f01_0001);
        let from = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(Ipv4Addr::from(from).into(), 0)).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
        let mut head = format!("{request} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(LONG, stream.read_to_end(&mut answer)).await.expect("no answer").unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{request}: {answer}")), answer)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log_of(place: &Place) -> PathBuf {
    place.home.path("server.log")
}

/// Everything that servers said so far.
fn said(place: &Place) -> String {
    String::from_utf8_lossy(&fs::read(log_of(place)).unwrap_or_default()).into_owned()
}

/// A way to the server that notes which session it shows.
#[derive(Debug)]
pub(crate) struct Tapped {
    inner: Http,
    session: Mutex<Option<SessionKeys>>,
}

impl Tapped {
    fn session(&self) -> SessionKeys {
        self.session.lock().clone().expect("a request with a session")
    }
}

#[async_trait]
impl Transport for Tapped {
    fn origin(&self) -> &Origin {
        self.inner.origin()
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        if let Some(session) = session {
            *self.session.lock() = Some(session.clone());
        }
        self.inner.post(path, session, body).await
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        self.inner.connect().await
    }
}

/// The keys that the keyring has of an account and these chats.
async fn keys_of(
    keys: &AccountKeys,
    account: &AccountId,
    chats: &[confidant_chat_format::ChatId],
) -> Vec<confidant_seal::Key> {
    let mut found = Vec::new();
    found.extend(keys.key(account.as_str(), None).await.unwrap());
    for chat in chats {
        found.extend(keys.key(account.as_str(), Some(chat.as_str())).await.unwrap());
    }
    found
}

/// How long anything is waited for. It is never waited for in vain, unless something is broken.
const LONG: Duration = Duration::from_secs(120);

/// One named test per function and back end, so that a failure reads `sqlite::promise_6_…`. Chats of the program that keeps
/// conversations and keys in Redis are in a file.
macro_rules! on_each_store {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::promises::Place::sqlite()).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::promises::Place::redis_of_tests() {
                    super::$test(place).await;
                }
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::promises::Place::postgres_of_tests() {
                    super::$test(place).await;
                }
            })*
        }
    };
}
pub(crate) use on_each_store;
