//! A server in this process, ways to it that fail or lie, and files in memory that can be cut off.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use confidant_chat_format::{AccountId, CredentialId, Login, Origin, RecoveryCode};
use confidant_chat_protocol::{Body as _, ClientFrame, ServerFrame};
use confidant_chats::answerer::MemoryAnswerer;
use confidant_chats::service::{
    Body, Caller, Closing, Cookie, Hooks, Network, Parts, Registration as Open, Service, SessionSecrets,
    Settings, Socket,
};
use confidant_chats::store::{ChatStore, Millis};
use confidant_chats::vault::MemoryVault;
use confidant_client::{
    Connection, Credential, Device, Error, Files, Posted, Registration, SessionKeys, Setup, Transport,
    TransportError,
};
use parking_lot::Mutex;

use crate::gateways::Gateways;
use crate::place::Place;
use crate::rows::Kept;

pub(crate) const NOW: u64 = 1_800_000_000_000;
/// How long a draft waits after another one of its chat.
pub(crate) const DRAFTS_MS: u64 = 5_000;

/// A server with open registration; the first account is somebody else's.
pub(crate) struct World {
    pub(crate) service: Service,
    now: Arc<AtomicU64>,
    first: String,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) kept: Kept,
    place: Place,
    gateways: Option<Gateways>,
}

/// Which servers a test uses.
#[derive(Clone, Copy)]
pub(crate) enum At {
    /// One, over `SQLite`.
    OneServer,
    /// Two gateways over one `PostgreSQL`: each device comes to the other one than the device before it.
    TwoGateways,
}

impl At {
    /// Whether there is what they need; skips are told, and are errors where all must be there.
    pub(crate) fn is_there(self) -> bool {
        matches!(self, Self::OneServer) || Place::postgres_at("CONFIDANT_TEST_POSTGRES").is_some()
    }

    pub(crate) async fn world(self) -> World {
        match self {
            Self::OneServer => World::new().await,
            Self::TwoGateways => {
                let place = Place::postgres_at("CONFIDANT_TEST_POSTGRES");
                World::of_two_gateways(place.expect("a PostgreSQL, which `is_there` has looked for")).await
            }
        }
    }
}

impl World {
    async fn of_two_gateways(place: Place) -> Self {
        let mut world = Self::at(place).await;
        let gateways = Gateways::over(&world, Hooks::default, std::time::Duration::from_secs(60)).await;
        world.service = gateways.first().clone();
        world.gateways = Some(gateways);
        world
    }

    pub(crate) async fn new() -> Self {
        Self::at(Place::sqlite()).await
    }

    /// One that answers.
    pub(crate) async fn answering(answerer: &MemoryAnswerer) -> Self {
        Self::answering_at(Place::sqlite(), answerer).await
    }

    /// One that answers, and keeps chats there.
    pub(crate) async fn answering_at(place: Place, answerer: &MemoryAnswerer) -> Self {
        Self::with(place, answers(answerer)).await
    }

    /// A server that keeps chats there.
    pub(crate) async fn at(place: Place) -> Self {
        Self::with(place, Hooks::default()).await
    }

    async fn with(place: Place, hooks: Hooks) -> Self {
        let (kept, vault) = (place.open().await, Arc::new(MemoryVault::new()));
        let now = Arc::new(AtomicU64::new(NOW));
        let service = serve(&kept, &vault, &now, hooks);
        let first = service.first_code().await.unwrap().to_string();
        Self { service, now, first, vault, kept, place, gateways: None }
    }

    /// The same server once more, as it is now: from here on the two go different ways.
    pub(crate) async fn fork(&self) -> Self {
        self.fork_with(Hooks::default()).await
    }

    /// The same, with somebody else who answers: turns that ran before are not known there.
    pub(crate) async fn fork_answering(&self, answerer: &MemoryAnswerer) -> Self {
        self.fork_with(answers(answerer)).await
    }

    async fn fork_with(&self, hooks: Hooks) -> Self {
        let place = Place::sqlite();
        let (from, to) = (self.place.folder().unwrap(), place.folder().unwrap());
        for file in std::fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        self.over_with(place, hooks).await
    }

    /// The same server with another store in the place of its own: its keys, its time, the rows that are there.
    pub(crate) async fn over(&self, place: Place) -> Self {
        self.over_with(place, Hooks::default()).await
    }

    async fn over_with(&self, place: Place, hooks: Hooks) -> Self {
        let (vault, now) = (Arc::clone(&self.vault), Arc::clone(&self.now));
        let kept = place.open().await;
        let service = serve(&kept, &vault, &now, hooks);
        Self { service, now, first: self.first.clone(), vault, kept, place, gateways: None }
    }

    /// From here on devices come to another gateway of the same server.
    pub(crate) fn change_gateway(&mut self, answerer: &MemoryAnswerer) {
        self.service = serve(&self.kept, &self.vault, &self.now, answers(answerer));
    }

    /// What the server keeps, for whoever can write to it.
    pub(crate) fn store(&self) -> &dyn ChatStore {
        &*self.kept.chats
    }

    /// The database and the keyring as they are now, as a backup has them.
    pub(crate) async fn backup(&self) -> Self {
        let mut old = self.fork().await;
        old.vault = Arc::new(self.vault.backup());
        old.service = serve(&old.kept, &old.vault, &old.now, Hooks::default());
        old
    }

    /// The same database with another keyring.
    pub(crate) async fn without_keyring(&self) -> Self {
        let mut lost = self.fork().await;
        lost.vault = Arc::new(MemoryVault::new());
        lost.service = serve(&lost.kept, &lost.vault, &lost.now, Hooks::default());
        lost
    }

    /// The same keyring with an empty database.
    pub(crate) async fn without_database(&self) -> Self {
        self.over(Place::sqlite()).await
    }

    /// A device of before, at this server.
    pub(crate) fn open(&self, files: &Arc<MemoryFiles>) -> Device {
        Device::open(self.setup(files)).unwrap().unwrap()
    }

    /// An operator's code for an account.
    pub(crate) async fn code(&self, account: &AccountId) -> String {
        let code = self.service.restore_code(account, std::time::Duration::from_secs(3600)).await;
        code.unwrap().to_string()
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.now.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn transport(&self) -> Arc<Local> {
        Local::to(self.gateways.as_ref().map_or(&self.service, Gateways::next))
    }

    /// A gateway of the same installation: a service of its own, over the same rows, keys and time.
    pub(crate) fn gateway(&self, hooks: Hooks, unstored: std::time::Duration) -> Service {
        let settings = Settings { unstored, ..settings(origin()) };
        serve_with(settings, &self.kept, &self.vault, &self.now, hooks)
    }

    /// Where chats are kept.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn setup(&self, files: &Arc<MemoryFiles>) -> Setup {
        self.setup_over(self.transport(), files)
    }

    pub(crate) fn setup_over(&self, transport: Arc<dyn Transport>, files: &Arc<MemoryFiles>) -> Setup {
        let now = Arc::clone(&self.now);
        let clock = Arc::new(move || now.load(Ordering::SeqCst));
        let files: Arc<dyn Files> = Arc::<MemoryFiles>::clone(files);
        Setup { transport, files, key: None, clock }
    }

    /// Ana, with a recovery code only: nothing has to be stretched.
    pub(crate) async fn ana(&self) -> (Device, Person) {
        self.ana_over(self.transport(), &MemoryFiles::new()).await
    }

    pub(crate) async fn ana_over(
        &self,
        transport: Arc<dyn Transport>,
        files: &Arc<MemoryFiles>,
    ) -> (Device, Person) {
        let person = Person::new();
        let device =
            self.register(transport, files, "ana@example.org", vec![person.recovery()]).await.unwrap();
        (device, person)
    }

    pub(crate) async fn register(
        &self,
        transport: Arc<dyn Transport>,
        files: &Arc<MemoryFiles>,
        login: &str,
        credentials: Vec<Credential>,
    ) -> Result<Device, Error> {
        let who = |code| Registration { login: Login::parse(login).unwrap(), credentials, code };
        Device::register(self.setup_over(transport, files), who(Some(self.first.clone()))).await
    }

    /// The same person on a device that remembers nothing.
    pub(crate) async fn second(&self, person: &Person) -> Device {
        let mut device = self.second_over(self.transport(), person).await;
        device.sync(confidant_client::Phase::All).await.unwrap();
        device
    }

    pub(crate) async fn second_over(&self, transport: Arc<dyn Transport>, person: &Person) -> Device {
        let setup = self.setup_over(transport, &MemoryFiles::new());
        Device::log_in(setup, &person.recovery()).await.unwrap()
    }
}

pub(crate) fn answers(answerer: &MemoryAnswerer) -> Hooks {
    Hooks { answerer: Some(Arc::new(answerer.clone())), ..Hooks::default() }
}

fn serve(kept: &Kept, vault: &Arc<MemoryVault>, now: &Arc<AtomicU64>, hooks: Hooks) -> Service {
    serve_at(origin(), kept, vault, now, hooks)
}

fn serve_at(
    origin: Origin,
    kept: &Kept,
    vault: &Arc<MemoryVault>,
    now: &Arc<AtomicU64>,
    hooks: Hooks,
) -> Service {
    serve_with(settings(origin), kept, vault, now, hooks)
}

fn settings(origin: Origin) -> Settings {
    Settings { registration: Open::Open, burst: 1_000_000, ..Settings::new(origin) }
}

fn serve_with(
    settings: Settings,
    kept: &Kept,
    vault: &Arc<MemoryVault>,
    now: &Arc<AtomicU64>,
    hooks: Hooks,
) -> Service {
    let clock = Arc::clone(now);
    let parts = Parts {
        store: Arc::clone(&kept.chats),
        vault: Arc::<MemoryVault>::clone(vault),
        // A little time passes with each look, so that sockets are not too fast.
        clock: Arc::new(move || Millis(clock.fetch_add(25, Ordering::SeqCst))),
        settings,
    };
    Service::with_hooks(parts, hooks)
}

/// What a person holds.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) code: RecoveryCode,
    pub(crate) passkey: (CredentialId, [u8; 32]),
}

impl Person {
    pub(crate) fn new() -> Self {
        Self { code: RecoveryCode::random(), passkey: (CredentialId::random(), [7; 32]) }
    }

    pub(crate) fn recovery(&self) -> Credential {
        Credential::Recovery(self.code.clone())
    }

    pub(crate) fn passkey(&self) -> Credential {
        Credential::passkey(self.passkey.0.clone(), self.passkey.1)
    }
}

/// The same service behind a listener on this machine, until it is dropped.
pub(crate) struct Served {
    pub(crate) origin: Origin,
    pub(crate) first: String,
    pub(crate) service: Service,
    task: tokio::task::JoinHandle<()>,
    _place: Place,
}

impl Served {
    pub(crate) async fn new() -> Self {
        let place = Place::sqlite();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let origin = Origin::parse(&format!("http://localhost:{port}")).unwrap();
        let (vault, now) = (Arc::new(MemoryVault::new()), Arc::new(AtomicU64::new(NOW)));
        let service = serve_at(origin.clone(), &place.open().await, &vault, &now, Hooks::default());
        let first = service.first_code().await.unwrap().to_string();
        let settings = confidant_chats_http::Settings::new(vec![origin.clone()]);
        let router = confidant_chats_http::router(service.clone(), settings);
        let limits = confidant_listener::PlaceLimits {
            most: 100,
            per_peer: 0,
            first_head: std::time::Duration::from_secs(60),
        };
        let crowded = |_: &str| Some(axum::response::Response::default());
        let shutdown = Box::pin(std::future::pending());
        let task = tokio::spawn(confidant_listener::listen(listener, router, limits, crowded, shutdown));
        Self { origin, first, service, task, _place: place }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn origin() -> Origin {
    Origin::parse("https://chat.example").unwrap()
}

/// The service, called directly.
pub(crate) struct Local {
    service: Service,
    origin: Origin,
}

impl Local {
    pub(crate) fn to(service: &Service) -> Arc<Self> {
        Arc::new(Self { service: service.clone(), origin: origin() })
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Local")
    }
}

pub(crate) fn network() -> Network {
    Network::of("192.0.2.1".parse().unwrap())
}

#[async_trait]
impl Transport for Local {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        let session = session.map(|keys| SessionSecrets { id: keys.id, secret: keys.secret });
        let caller = Caller { origin: self.origin.clone(), network: network(), session, stream: None };
        let answered = self.service.answer(path, &caller, &body).await;
        let answered = answered.map_err(|refused| TransportError::Refused(Box::new(refused)))?;
        let body = match answered.body {
            Body::Json(json) => json,
            Body::Frames(mut frames) => {
                let mut lines = Vec::new();
                while let Some(frame) = frames.next().await {
                    lines.extend(frame.write().unwrap());
                    lines.push(b'\n');
                }
                lines
            }
        };
        let session = match answered.session {
            Some(Cookie::Set { id, .. }) => Some(id),
            _ => None,
        };
        Ok(Posted { body, session })
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        let socket = self.service.connect(self.origin.clone(), network());
        Ok(Box::new(LocalConnection { socket, ready: VecDeque::new(), closed: None }))
    }
}

#[derive(Debug)]
struct LocalConnection {
    socket: Socket,
    ready: VecDeque<Vec<u8>>,
    closed: Option<u16>,
}

impl LocalConnection {
    fn close(&mut self, closing: Closing) {
        self.ready.extend(closing.last.map(|frame| frame.write().unwrap()));
        self.closed = Some(closing.code.code());
    }
}

#[async_trait]
impl Connection for LocalConnection {
    async fn send(&mut self, frame: Vec<u8>) -> Result<(), TransportError> {
        match self.socket.receive(&frame).await {
            Ok(frames) => self.ready.extend(frames.into_iter().map(|frame| frame.write().unwrap())),
            Err(closing) => self.close(closing),
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Vec<u8>, TransportError> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(frame);
            }
            if let Some(code) = self.closed {
                return Err(TransportError::Closed(code));
            }
            match self.socket.news().await {
                Ok(frame) => return Ok(frame.write().unwrap()),
                Err(closing) => self.close(closing),
            }
        }
    }
}

/// What comes between a device and the server.
pub(crate) trait Between: Send + Sync {
    /// A frame of the client: whether it arrives.
    fn sends(&self, _frame: &[u8]) -> Passes {
        Passes::On
    }
    /// A frame of the client: what arrives in its place.
    fn rewrites(&self, frame: Vec<u8>) -> Vec<u8> {
        frame
    }
    /// A frame of the client that is answered in between, and does not arrive.
    fn answers(&self, _frame: &ClientFrame) -> Option<Vec<ServerFrame>> {
        None
    }
    /// Frames that the server never sent.
    fn says(&self) -> Vec<ServerFrame> {
        Vec::new()
    }
    /// A frame of the server: what arrives in its place.
    fn receives(&self, frame: ServerFrame) -> Vec<ServerFrame> {
        vec![frame]
    }
    /// The answer to a POST.
    fn posted(&self, _path: &str, posted: Posted) -> Result<Posted, TransportError> {
        Ok(posted)
    }
    /// Whether a POST, or a socket, arrives.
    fn reaches(&self, _path: &str) -> bool {
        true
    }
    /// Whether the next frame of the server arrives; if not, the connection is gone.
    fn hears(&self) -> bool {
        true
    }
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passes {
    /// It arrives, and its answer as well.
    On,
    /// It does not arrive, and the connection is gone.
    Lost,
    /// It arrives, and the connection is gone before the answer.
    Unanswered,
}

/// A way to the server with something in between.
pub(crate) struct Through<B> {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) between: Arc<B>,
}

impl<B> std::fmt::Debug for Through<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Through")
    }
}

#[async_trait]
impl<B: Between + 'static> Transport for Through<B> {
    fn origin(&self) -> &Origin {
        self.inner.origin()
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        if !self.between.reaches(path) {
            return Err(TransportError::Offline);
        }
        self.between.posted(path, self.inner.post(path, session, body).await?)
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        if !self.between.reaches("socket") {
            return Err(TransportError::Offline);
        }
        let inner = self.inner.connect().await?;
        Ok(Box::new(ThroughConnection {
            inner,
            between: Arc::clone(&self.between),
            ready: VecDeque::new(),
            cut: false,
        }))
    }
}

struct ThroughConnection<B> {
    inner: Box<dyn Connection>,
    between: Arc<B>,
    ready: VecDeque<Vec<u8>>,
    cut: bool,
}

impl<B> std::fmt::Debug for ThroughConnection<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ThroughConnection")
    }
}

#[async_trait]
impl<B: Between + 'static> Connection for ThroughConnection<B> {
    async fn send(&mut self, frame: Vec<u8>) -> Result<(), TransportError> {
        if self.cut {
            return Err(TransportError::Offline);
        }
        let frame = self.between.rewrites(frame);
        let answers = ClientFrame::read(&frame).ok().and_then(|frame| self.between.answers(&frame));
        if let Some(answers) = answers {
            self.ready.extend(answers.into_iter().map(|frame| frame.write().unwrap()));
            return Ok(());
        }
        match self.between.sends(&frame) {
            Passes::On => self.inner.send(frame).await,
            Passes::Lost => {
                self.cut = true;
                Err(TransportError::Offline)
            }
            Passes::Unanswered => {
                self.inner.send(frame).await?;
                self.cut = true;
                Ok(())
            }
        }
    }

    async fn next(&mut self) -> Result<Vec<u8>, TransportError> {
        loop {
            if self.cut {
                return Err(TransportError::Offline);
            }
            self.ready.extend(self.between.says().into_iter().map(|frame| frame.write().unwrap()));
            if let Some(frame) = self.ready.pop_front() {
                return Ok(frame);
            }
            let frame = ServerFrame::read(&self.inner.next().await?).unwrap();
            if !self.between.hears() {
                self.cut = true;
                continue;
            }
            let instead = self.between.receives(frame);
            self.ready.extend(instead.into_iter().map(|frame| frame.write().unwrap()));
        }
    }
}

/// Files in memory. A device that was killed cannot write any more.
#[derive(Debug, Default)]
pub(crate) struct MemoryFiles {
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    /// How many more writes succeed.
    left: Mutex<Option<usize>>,
}

impl MemoryFiles {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A copy, as an attacker or a backup makes one.
    pub(crate) fn snapshot(&self) -> Arc<Self> {
        Arc::new(Self { kept: Mutex::new(self.kept.lock().clone()), left: Mutex::new(None) })
    }

    /// The device is killed after so many writes.
    pub(crate) fn kill_after(&self, writes: usize) {
        *self.left.lock() = Some(writes);
    }

    /// Whether nobody was killed since.
    pub(crate) fn is_alive(&self) -> bool {
        self.left.lock().is_some()
    }

    /// The device is started again.
    pub(crate) fn revive(&self) {
        *self.left.lock() = None;
    }

    /// Everything, to look for what must not be there.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.kept.lock().values().flatten().copied().collect()
    }

    fn counted(&self) -> Result<(), Error> {
        match &mut *self.left.lock() {
            Some(0) => Err(Error::Files("killed".to_owned())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Files for MemoryFiles {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.kept.lock().get(name).cloned())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.counted()?;
        self.kept.lock().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.counted()?;
        self.kept.lock().remove(name);
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.kept.lock().keys().cloned().collect())
    }
}
