//! The service with a real store, a vault in memory, and devices that seal and check as clients do. Every test runs on every
//! store: the files of tests are mounted once for each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use confidant_chat_format::{
    Account, AccountKey, Chat, ChatId, CredentialId, DeviceId, Digest, Floor, ItemId, Login, Mark, Origin,
    Place, Purpose, RecoveryCode, Ring, RingOf, Root, SeenAccount, SeenChat, SeenWrap, SentAccount, SentChat,
    Shelf, Trail, Wrap, open_record,
};
use confidant_chat_protocol::{
    AccountState, Body as WireBody, Bytes, Challenge, ChallengeRequest, ChatSent, ClientEvent, ClientFrame,
    CredentialKind, EncryptedChatMetadata, Envelope, FirstManifest, HeadPut, Hello, KeyEntry, List,
    LoginRequest, Map, NewCredential, Phase, PhasedSyncRequest, Provable, Put, RefusedSent, Register,
    RegisterBegin, RegisterOffer, RequestChatContentBatch, ServerEvent, ServerFrame, SessionOpened, Signed,
    SignerName, Text, Ticket, TicketRequest, Versions,
};
use zeroize::Zeroizing;

use super::*;
use crate::store::conformance::device::{Device, Edit, NOW};
use crate::store::conformance::fresh_folder;
use crate::store::sqlite::SqliteChats;
use crate::store::{self, ChatStore, CodeKind, Write};
use crate::vault::MemoryVault;

macro_rules! mounted {
    ($($(#[$when:meta])? $name:ident = $store:ident)+) => {$(
        $(#[$when])?
        #[path = "tests"]
        #[cfg_attr(feature = "postgres", expect(clippy::duplicate_mod, reason = "the same tests, on every store"))]
        mod $name {
            mod accounts;
            mod ahead;
            mod answers;
            mod attacks;
            mod checks;
            mod deleting;
            mod histories;
            mod keys;
            mod letters;
            mod marks;
            mod safety;
            mod snapshots;
            mod sockets;
            mod syncing;
            mod thieves;
            mod tools;
            mod witness;

            use super::*;

            type World = super::World<super::$store>;
        }
    )+};
}

#[cfg(feature = "postgres")]
mod gateways;

mounted! {
    sqlite = OnSqlite
    #[cfg(feature = "postgres")] postgres = OnPostgres
}

pub(super) struct World<H: Home> {
    service: Service,
    store: Arc<dyn ChatStore>,
    vault: Arc<MemoryVault>,
    now: Arc<AtomicU64>,
    home: H,
    first: Zeroizing<String>,
}

/// Where the store of a world is.
#[async_trait::async_trait]
pub(super) trait Home: Sized + Send + Sync {
    async fn open() -> (Self, Arc<dyn ChatStore>);
    /// Every byte that is kept.
    async fn bytes(&self) -> Vec<u8>;
    async fn sql(&self, sql: &str);
}

pub(super) struct OnSqlite(tempfile::TempDir);

#[async_trait::async_trait]
impl Home for OnSqlite {
    async fn open() -> (Self, Arc<dyn ChatStore>) {
        let folder = fresh_folder();
        let store = Arc::new(SqliteChats::open(folder.path()).unwrap());
        (Self(folder), store)
    }

    async fn bytes(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.0.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }

    async fn sql(&self, sql: &str) {
        let file = rusqlite::Connection::open(self.0.path().join("chats.db")).unwrap();
        file.execute_batch(sql).unwrap();
    }
}

/// Without a server, which is said and an error where all stores must be there, the test runs on SQLite once more.
#[cfg(feature = "postgres")]
pub(super) enum OnPostgres {
    Server(Box<store::postgres::tests::Database>),
    Without(OnSqlite),
}

#[cfg(feature = "postgres")]
#[async_trait::async_trait]
impl Home for OnPostgres {
    async fn open() -> (Self, Arc<dyn ChatStore>) {
        match store::postgres::tests::place().await {
            Some(place) => {
                let store = Arc::new(place.store.clone());
                (Self::Server(Box::new(place)), store)
            }
            None => {
                let (folder, store) = OnSqlite::open().await;
                (Self::Without(folder), store)
            }
        }
    }

    /// Of the rows: what a server has in its journal is out of our reach.
    async fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Server(place) => place.bytes().await,
            Self::Without(folder) => folder.bytes().await,
        }
    }

    async fn sql(&self, sql: &str) {
        match self {
            Self::Server(place) => place.batch(sql).await,
            Self::Without(folder) => folder.sql(sql).await,
        }
    }
}

/// A person with every kind of credential, on one device.
#[derive(Clone)]
pub(super) struct Person {
    device: Device,
    login: Login,
    password: Root,
    passkey: (CredentialId, Root),
    code: RecoveryCode,
    session: SessionSecrets,
    here: DeviceId,
    rev: u32,
}

pub(super) fn origin() -> Origin {
    Origin::parse("https://chat.example").unwrap()
}

pub(super) fn network(text: &str) -> Network {
    Network::of(text.parse::<IpAddr>().unwrap())
}

fn root() -> Root {
    Root::from_prf(*random())
}

impl<H: Home> World<H> {
    pub(super) async fn new() -> Self {
        Self::with(Registration::Open).await
    }

    pub(super) async fn with(registration: Registration) -> Self {
        let ((home, store), vault) = (H::open().await, Arc::new(MemoryVault::new()));
        let now = Arc::new(AtomicU64::new(NOW.0));
        let clock = Arc::clone(&now);
        let other = Origin::parse("https://other.example").unwrap();
        let settings = Settings {
            registration,
            origins: vec![origin(), other],
            burst: 100_000,
            ..Settings::new(origin())
        };
        let service = Service::new(Parts {
            store: Arc::clone(&store),
            vault: Arc::<MemoryVault>::clone(&vault),
            clock: Arc::new(move || Millis(clock.load(Ordering::SeqCst))),
            settings,
        });
        let first = service.first_code().await.unwrap();
        Self { service, store, vault, now, home, first }
    }

    pub(super) fn pass(&self, time: Duration) {
        self.now.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(super) fn caller(&self, session: Option<&SessionSecrets>) -> Caller {
        Caller { origin: origin(), network: network("192.0.2.1"), session: session.cloned(), stream: None }
    }

    pub(super) async fn post_as<A: WireBody>(
        &self,
        path: &str,
        caller: &Caller,
        body: &impl WireBody,
    ) -> Result<(A, Option<Cookie>), RefusedSent> {
        let answered = self.service.answer(path, caller, &body.write().unwrap()).await?;
        let Body::Json(json) = answered.body else { panic!("frames") };
        Ok((A::read(&json).unwrap(), answered.session))
    }

    pub(super) async fn post<A: WireBody>(&self, path: &str, body: &impl WireBody) -> Result<A, RefusedSent> {
        Ok(self.post_as(path, &self.caller(None), body).await?.0)
    }

    pub(super) async fn challenge(&self, purpose: Purpose) -> confidant_chat_protocol::Secret {
        let answer: Challenge = self.post("/account/challenge", &ChallengeRequest { purpose }).await.unwrap();
        answer.challenge
    }

    pub(super) async fn sign<T: Provable>(&self, request: &T, root: &Root, signer: SignerName) -> Signed {
        let challenge = self.challenge(T::PURPOSE).await;
        Signed::sign(request, root, &origin(), signer, challenge).unwrap()
    }

    /// Signed with the password, within the session.
    pub(super) async fn prove<T: Provable, A: WireBody>(
        &self,
        path: &str,
        person: &Person,
        request: &T,
    ) -> Result<A, RefusedSent> {
        let signed = self.sign(request, &person.password, person.by_login()).await;
        Ok(self.post_as(path, &self.caller(Some(&person.session)), &signed).await?.0)
    }

    pub(super) async fn begin(
        &self,
        login: &str,
        invite: Option<&str>,
    ) -> Result<RegisterOffer, RefusedSent> {
        let invite = invite.map(|code| Text::new(code.to_owned()).unwrap());
        self.post("/account/register/begin", &RegisterBegin { login: Login::parse(login).unwrap(), invite })
            .await
    }

    pub(super) async fn register(&self, login: &str) -> Person {
        let is_first = self.store.count_accounts().await.unwrap() == 0;
        let offer = self.begin(login, is_first.then_some(&*self.first)).await.unwrap();
        let (mut person, request) = registration(login, &offer);
        let signed =
            Signed::sign(&request, &person.password, &origin(), person.by_login(), offer.challenge).unwrap();
        let answer = self.post_as("/account/register", &self.caller(None), &signed).await;
        let (opened, cookie): (SessionOpened, _) = answer.unwrap();
        person.take_session(&opened, cookie);
        person
    }

    pub(super) async fn login(
        &self,
        person: &Person,
        kind: CredentialKind,
        device: Option<DeviceId>,
    ) -> Result<(SessionOpened, Option<Cookie>), RefusedSent> {
        let (root, signer) = person.credential(kind);
        let signed = self.sign(&LoginRequest { kind, device }, &root, signer).await;
        self.post_as("/account/login", &self.caller(None), &signed).await
    }

    /// The same person on another device, who remembers nothing.
    pub(super) async fn second(&self, person: &Person) -> Person {
        let (opened, cookie) = self.login(person, CredentialKind::Password, None).await.unwrap();
        let mut other = person.clone();
        other.take_session(&opened, cookie);
        other.device.chats.clear();
        other.device.manifest = None;
        other.device.floors.iter_mut().for_each(|floor| floor.0 = 0);
        other
    }

    pub(super) async fn ticket(&self, person: &Person) -> confidant_chat_protocol::Secret {
        let caller = self.caller(Some(&person.session));
        let answer: Result<(Ticket, _), _> = self.post_as("/chats/ticket", &caller, &TicketRequest {}).await;
        answer.unwrap().0.ticket
    }

    pub(super) async fn connect(&self, person: &Person) -> Socket {
        let mut socket = self.service.connect(origin(), network("192.0.2.1"));
        let hello = Hello { v: 1, ticket: self.ticket(person).await, seq: None };
        let ready = ask(&mut socket, ClientEvent::Hello(hello)).await.unwrap();
        let ServerEvent::Ready(ready) = &ready[0].event else { panic!("{ready:?}") };
        assert_eq!((&ready.account, &ready.device), (&person.device.id, &person.here));
        socket
    }
}

/// What a new person sends, before it was taken.
pub(super) fn registration(login: &str, offer: &RegisterOffer) -> (Person, Register) {
    let device = Device::with_id(login, offer.account.clone());
    let (new, after) = device.registration();
    let person = Person {
        device: after,
        login: Login::parse(login).unwrap(),
        password: root(),
        passkey: (CredentialId::random(), root()),
        code: RecoveryCode::random(),
        session: SessionSecrets { id: [0; 32], secret: [0; 32] },
        here: DeviceId::random(),
        rev: 1,
    };
    let [ring, mailbox] = new.rings.map(|row| KeyEntry::try_from(row.entry).unwrap());
    let floors = new.floors.into_iter().map(|floor| Envelope::new(floor).unwrap()).collect();
    let request = Register {
        account: offer.account.clone(),
        login: person.login.clone(),
        credentials: List::new(person.credentials(&person.device.ak, 1)).unwrap(),
        ring,
        mailbox,
        box_pub: person.device.box_pub,
        first: FirstManifest {
            floors: List::new(floors).unwrap(),
            manifest: HeadPut {
                envelope: Envelope::new(new.manifest.envelope).unwrap(),
                live: new.manifest.live,
                chain: new.manifest.chain,
            },
        },
        device: person.here.clone(),
    };
    (person, request)
}

impl Person {
    pub(super) fn by_login(&self) -> SignerName {
        SignerName::Login(self.login.clone())
    }

    pub(super) fn credential(&self, kind: CredentialKind) -> (Root, SignerName) {
        match kind {
            CredentialKind::Password => (self.password.clone(), self.by_login()),
            CredentialKind::Passkey => {
                (self.passkey.1.clone(), SignerName::Credential(self.passkey.0.clone()))
            }
            CredentialKind::Recovery => {
                (Root::from_recovery(&self.code), SignerName::Credential(self.code.credential_id()))
            }
        }
    }

    pub(super) fn wrap_of(&self, kind: CredentialKind) -> Wrap<'_> {
        match kind {
            CredentialKind::Password => Wrap::Password,
            CredentialKind::Passkey => Wrap::Passkey(&self.passkey.0),
            CredentialKind::Recovery => Wrap::Recovery,
        }
    }

    /// One credential, with the account key sealed for this revision.
    pub(super) fn new_credential(&self, kind: CredentialKind, ak: &AccountKey, rev: u32) -> NewCredential {
        let (root, signer) = self.credential(kind);
        let id = match signer {
            SignerName::Login(_) => None,
            SignerName::Credential(id) => Some(id),
        };
        let wrap = ak.wrap(&root.kek(), &self.device.id, self.wrap_of(kind), rev);
        NewCredential { kind, id, public_key: Bytes(root.public_key()), wrap: Envelope::new(wrap).unwrap() }
    }

    pub(super) fn credentials(&self, ak: &AccountKey, rev: u32) -> Vec<NewCredential> {
        CredentialKind::ALL.iter().map(|kind| self.new_credential(*kind, ak, rev)).collect()
    }

    pub(super) fn take_session(&mut self, opened: &SessionOpened, cookie: Option<Cookie>) {
        let Some(Cookie::Set { id, .. }) = cookie else { panic!("no cookie") };
        self.session = SessionSecrets { id, secret: *opened.session.dangerously_expose_bytes() };
        self.here = opened.device.clone();
        self.rev = opened.account_rev;
        assert_eq!(opened.account, self.device.id);
    }

    /// Whether the wrap of a login opens to the account key.
    pub(super) fn opens(&self, kind: CredentialKind, opened: &SessionOpened) -> bool {
        let (root, _) = self.credential(kind);
        let wrap = opened.wrap.as_ref().map(|wrap| wrap.sealed().clone());
        let (id, seen) = (&self.device.id, SeenWrap::default());
        let key =
            AccountKey::open(&root.kek(), id, opened.generation, self.wrap_of(kind), wrap.as_ref(), seen);
        key.is_ok_and(|(key, _)| key == self.device.ak)
    }

    /// Writes to a chat over the socket.
    pub(super) async fn write(&mut self, socket: &mut Socket, chat: &ChatId, edit: &Edit) -> ServerFrame {
        let (write, after) = self.device.write(chat, edit);
        let mut frames = ask(socket, ClientEvent::EncryptedChatMetadata(sent(write))).await.unwrap();
        assert_eq!(frames.len(), 1);
        let frame = frames.remove(0);
        assert!(matches!(frame.event, ServerEvent::EncryptedMetadataStored(_)), "{frame:?}");
        self.device = after;
        frame
    }

    /// A new chat with this many messages.
    pub(super) async fn create(&mut self, socket: &mut Socket, messages: usize) -> ChatId {
        let (chat, puts) = (ChatId::random(), messages_of(messages));
        self.write(socket, &chat, &Edit { puts, ..Edit::default() }).await;
        chat
    }

    /// Syncs over the socket, with every check of a client; says how many frames it took.
    pub(super) async fn sync(&mut self, socket: &mut Socket) -> usize {
        let versions = self.device.chats.iter().map(|(chat, room)| {
            let messages_v = room.head.map_or(0, |(mark, _)| mark.rev);
            (chat.clone(), Versions { messages_v, title_v: u32::MAX, draft_v: room.draft_v })
        });
        let request = PhasedSyncRequest {
            phase: Phase::All,
            manifest: self.device.manifest.map_or(0, |(mark, _)| mark.rev),
            client_chat_versions: Map::new(versions.collect()).unwrap(),
        };
        let frames = long(socket, ClientEvent::PhasedSyncRequest(request)).await;
        let count = frames.len();
        let (mut state, mut parts): (Option<AccountState>, Vec<ChatSent>) = (None, Vec::new());
        for frame in frames {
            match frame.event {
                ServerEvent::AccountState(part) => state = Some(part),
                ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
                    parts.extend(sent.chats.into_vec());
                }
                ServerEvent::PhasedSyncComplete(complete) => assert!(complete.seq > 0),
                event => panic!("{event:?}"),
            }
        }
        let account = self.take_account(state.unwrap());
        let mut chats: BTreeMap<ChatId, Vec<ChatSent>> = BTreeMap::new();
        parts.into_iter().for_each(|part| chats.entry(part.chat.clone()).or_default().push(part));
        for (chat, parts) in chats {
            self.take_chat(socket, &account, &chat, parts).await;
        }
        count
    }

    fn take_account(&mut self, state: AccountState) -> Account {
        let device = &mut self.device;
        let entries = |rows: List<KeyEntry, 256>| rows.into_vec().into_iter().map(Into::into).collect();
        device.ring = entries(state.ring);
        device.boxes = entries(state.mailbox);
        device.box_pub = state.box_pub;
        for floor in state.floors.into_vec() {
            let rev = floor.envelope.rev();
            device.floors[floor.shelf.index()] = (rev, floor.envelope.into_sealed(), BTreeMap::new());
        }
        let sent = SentAccount {
            ring: device.ring.clone(),
            box_ring: device.boxes.clone(),
            box_pub: device.box_pub,
            manifest: state.manifest.sealed().clone(),
            trail: state.trail.map_or(Trail::NONE, Into::into),
            floors: device.floors.iter().map(|floor| floor.1.clone()).collect(),
        };
        let seen = SeenAccount {
            generation: device.ak.generation(),
            manifest: device.manifest.map(|(mark, _)| mark),
        };
        let account = Account::open(&device.id, &device.ak, &sent, &seen).expect("what was sent is refused");
        account.check_chats(state.chats.keys()).unwrap();
        let uk = Ring::open(&device.ak, &device.id, RingOf::Account, &device.ring).unwrap();
        for (shelf, floor) in Shelf::all().zip(&mut device.floors) {
            let opened = open_record(&uk, &device.id, &Place::Floor(shelf), &floor.1).unwrap();
            floor.2 = Floor::from_json(shelf, &opened.json).unwrap().chats;
        }
        let opened = open_record(&uk, &device.id, &Place::Manifest, &sent.manifest).unwrap();
        let chain = confidant_chat_format::Manifest::from_json(&opened.json).unwrap().chain;
        let mark = Mark { rev: opened.rev, envelope: Digest::of(sent.manifest.as_bytes()) };
        device.manifest = Some((mark, chain));
        device.chats.retain(|chat, _| state.chats.contains_key(chat));
        account
    }

    async fn take_chat(
        &mut self,
        socket: &mut Socket,
        account: &Account,
        id: &ChatId,
        mut parts: Vec<ChatSent>,
    ) {
        let floor = account.floors()[id];
        let known = self.device.chats.get(id).and_then(|room| room.head).map(|(mark, _)| mark);
        // Without memory, a head ahead of its floor is shown to follow by asking from the floor on.
        let ahead = known.is_none() && parts[0].versions.messages_v > floor.rev;
        if ahead {
            let have = Versions { messages_v: floor.rev, title_v: 0, draft_v: parts[0].versions.draft_v };
            let chats = Map::new([(id.clone(), have)].into()).unwrap();
            let request = ClientEvent::RequestChatContentBatch(RequestChatContentBatch { chats });
            for frame in long(socket, request).await {
                let ServerEvent::ChatContentBatchResponse(batch) = frame.event else { panic!("{frame:?}") };
                parts.extend(batch.chats.into_vec());
            }
        }
        let mut room = self.device.chats.remove(id).unwrap_or_default();
        let mut trail: Option<Trail> = None;
        for part in &parts {
            for item in part.items.iter() {
                if let Some(envelope) = &item.envelope {
                    assert_eq!(Digest::of(envelope.sealed().as_bytes()), item.hash);
                    room.items.insert(item.item.clone(), envelope.sealed().clone());
                }
            }
            for gone in part.removed.iter() {
                room.items.remove(&gone.item);
                room.revs.remove(&gone.item);
            }
            if let Some(sent) = part.trail.clone().map(Trail::from) {
                trail.get_or_insert(Trail { chain: sent.chain, steps: vec![] }).steps.extend(sent.steps);
            }
        }
        let last = parts.last().unwrap();
        assert!(!last.more);
        room.ring = last.ring.iter().cloned().map(Into::into).collect();
        let sent = SentChat {
            ring: room.ring.clone(),
            head: last.head.sealed().clone(),
            trail: trail.unwrap_or(Trail::NONE),
            list: room.items.iter().map(|(id, sealed)| (id.clone(), Digest::of(sealed.as_bytes()))).collect(),
        };
        let seen = SeenChat { head: known, key: None, revs: room.revs.clone() };
        let chat = Chat::open(account, id, Some(&sent), &seen).expect("a chat that was sent is refused");
        let items = chat.items(&room.items).expect("an item that was sent is refused");
        room.revs = chat.seen(&items).revs;
        room.head = Some((chat.mark(), chat.head().chain));
        room.draft_v = last.versions.draft_v;
        self.device.chats.insert(id.clone(), room);
    }
}

pub(super) fn messages_of(count: usize) -> Vec<ItemId> {
    (0..count).map(|_| crate::store::conformance::device::message()).collect()
}

/// A write of the store, as it is sent.
pub(super) fn sent(write: Write) -> EncryptedChatMetadata {
    let (floor, manifest) = match write.list {
        Some(list) => {
            let (floors, manifest) = sent_list(list);
            (floors.into_iter().next(), Some(manifest))
        }
        None => (None, None),
    };
    let put =
        |put: store::Put| Put::new(put.item, put.expected, Envelope::new(put.envelope).unwrap()).unwrap();
    EncryptedChatMetadata {
        chat: write.chat,
        expected: write.expected,
        ring: write.append.map(|entry| entry.try_into().unwrap()),
        head: HeadPut { envelope: Envelope::new(write.head).unwrap(), live: write.live, chain: write.chain },
        puts: List::new(write.puts.into_iter().map(put).collect()).unwrap(),
        removes: List::new(write.removes).unwrap(),
        floor,
        manifest,
    }
}

pub(super) fn sent_list(
    list: store::ListPut,
) -> (Vec<confidant_chat_protocol::FloorPut>, confidant_chat_protocol::ManifestPut) {
    let floors = list.floors.into_iter().map(|floor| confidant_chat_protocol::FloorPut {
        shelf: floor.shelf,
        expected: floor.expected,
        envelope: Envelope::new(floor.envelope).unwrap(),
    });
    let head = HeadPut {
        envelope: Envelope::new(list.manifest.envelope).unwrap(),
        live: list.manifest.live,
        chain: list.manifest.chain,
    };
    (floors.collect(), confidant_chat_protocol::ManifestPut { head, ring: None, mailbox: None })
}

/// Sends an event; what comes back at once.
pub(super) async fn ask(socket: &mut Socket, event: ClientEvent) -> Result<Vec<ServerFrame>, Closing> {
    let frames = socket.receive(&ClientFrame { id: 7, event }.write().unwrap()).await?;
    for frame in &frames {
        assert_eq!(frame.re, Some(7));
        assert_eq!(ServerFrame::read(&frame.write().unwrap()).unwrap(), *frame);
    }
    Ok(frames)
}

/// Sends an event whose answer comes in parts; all of them.
pub(super) async fn long(socket: &mut Socket, event: ClientEvent) -> Vec<ServerFrame> {
    let mut frames = ask(socket, event).await.unwrap();
    loop {
        let ended = frames.last().is_some_and(|frame: &ServerFrame| match &frame.event {
            ServerEvent::ChatContentBatchResponse(part) => !part.more,
            ServerEvent::LoadMoreChatsResponse(part) => !part.more,
            ServerEvent::SendEmbedData(part) => !part.more,
            ServerEvent::PhasedSyncComplete(_) | ServerEvent::Refused(_) => true,
            _ => false,
        });
        if ended {
            return frames;
        }
        // Given up once while it is made: nothing is lost, and nothing comes twice.
        let frame = match tokio::time::timeout(Duration::ZERO, socket.news()).await {
            Ok(frame) => frame,
            Err(_) => socket.news().await,
        };
        let frame = frame.unwrap();
        assert_eq!(frame.re, Some(7));
        frame.write().unwrap();
        frames.push(frame);
    }
}

/// The one event that answers, by name of its refusal or of itself.
pub(super) fn name(frames: &[ServerFrame]) -> String {
    match &frames[0].event {
        ServerEvent::Refused(refused) => refused.error.name().to_owned(),
        event => event.name().to_owned(),
    }
}

/// The next news, which is there.
pub(super) async fn news(socket: &mut Socket) -> ServerFrame {
    tokio::time::timeout(Duration::from_secs(60), socket.news()).await.expect("no news").unwrap()
}
