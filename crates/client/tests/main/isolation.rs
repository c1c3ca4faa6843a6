//! Promise 1 among accounts: whatever somebody asks for by the ids of another account, nothing of it comes back, nothing of it
//! changes, and the answer is the same as for ids that nobody has.
//!
//! ```text
//! every route and every frame, made at random ┐
//! what Ben's devices sent, word for word      ├─▶ asked by Ana, with ids of Ben's ─▶ answer ─┬─ has nothing of Ben's
//! what Ana's own device sent, for Ben's chats ┘                                              └─ as for nobody's ids
//! ```
//!
//! Easy to get wrong: requests that are refused before anybody looks whose the id is. So two of the three kinds are ones that
//! the server takes from their owner.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use confidant_chat_format::{ChatId, Purpose, RecoveryCode, Root, Shelf, Signer, Statement};
use confidant_chat_protocol::describe::{Dice, bodies};
use confidant_chat_protocol::{
    Body as _, Bytes, Challenge, ChallengeRequest, ClientEvent, ClientFrame, CredentialKind, LoginRequest,
    ROUTES, ServerEvent, ServerFrame, SessionOpened, Signed, SignerName, Text, Who,
};
use confidant_chats::answerer::MemoryAnswerer;
use confidant_chats::service::{Body, Caller, Cookie, SessionSecrets};
use confidant_client::{Device, Phase, Transport, TurnUpdate};
use parking_lot::Mutex;
use serde_json::Value;

use crate::asks::{answered, hear, is_end, is_made, plain};
use crate::on_both_stores;
use crate::place::Place;
use crate::rows::{Kept, Row, is_id, markers};
use crate::world::{Between, MemoryFiles, Passes, Person, Through, World, network, origin};

on_both_stores! {
    promise_1_nobody_reaches_another_account,
    a_stolen_session_hears_no_word,
}

/// So often everything is tried with other values.
const ROUNDS: u64 = 6;

async fn promise_1_nobody_reaches_another_account(place: Place) {
    let world = World::at(place).await;
    let ben = Inhabited::make(&world, "ben@example.org").await;
    let ana = Inhabited::make(&world, "ana@example.org").await;
    let mut listening = ben.devices.into_iter().next().unwrap();
    listening.sync(Phase::All).await.unwrap();
    // What others of Ben's did may still be on its way.
    while tokio::time::timeout(Duration::from_millis(500), listening.listen()).await.is_ok() {}
    let before = world.kept.rows_of(&ben.account).await;
    let target = Target::of(&before);
    let mut asking = Session::open(&world, &ana.person.code).await;
    for seed in 0..ROUNDS {
        let mut asks = made_up(seed);
        asks.extend(ben.said.iter().cloned());
        asks.extend(ana.said.iter().cloned());
        for ask in asks {
            let theirs = target.aim(&ask, seed);
            let nobodys = Ask { json: target.miss(&theirs.json), ..theirs.clone() };
            let found = asking.ask(&theirs).await;
            target.is_not_in(&found.text, &theirs);
            if theirs.json != nobodys.json {
                let missed = asking.ask(&nobodys).await;
                assert_eq!(found.kinds, missed.kinds, "{}: ids of Ben's tell: {}", ask.path, theirs.json);
            }
        }
        unchanged(&world.kept, &ben.account, &before).await;
    }
    // Nobody told Ben anything, since nothing happened; and all of it is there.
    let heard = tokio::time::timeout(Duration::ZERO, listening.listen()).await;
    assert!(heard.is_err(), "Ben heard of what Ana did");
    listening.sync(Phase::All).await.unwrap();
    assert_eq!(words(&listening), ben.words);
}

/// Somebody has both secrets of a session of Ana's, and nothing else: no account key, no credential. Her words are in the
/// server's memory for the next answer, and an answer is being made.
async fn a_stolen_session_hears_no_word(place: Place) {
    let answerer = MemoryAnswerer::default();
    let world = World::answering_at(place, &answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(Some("marzipan title")).unwrap();
    answered(&mut one, &chat, "marzipan kept").await;
    answerer.hold();
    let asked = one.ask(&chat, "marzipan running words", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &asked.turn, |what| matches!(what, TurnUpdate::Words { .. })).await;
    assert!(
        answerer.lines(&chat).iter().any(|line| line.text.contains("marzipan")),
        "the server has the words"
    );
    let rows = world.kept.rows_of(one.account_id().as_str()).await;
    let target = Target { turns: vec![asked.turn.as_str().to_owned()], ..Target::of_some(&rows) };

    // The thief listens, from before the words on.
    let mut thief = Session::open(&world, &ana.code).await;
    thief.signs = RecoveryCode::random();
    let caller = thief.caller(thief.secrets.clone());
    let (mut ear, _) = world.service.connect_session(&caller, None).await.unwrap();
    let mut heard = String::new();
    for seed in 0..ROUNDS {
        for ask in made_up(seed) {
            // What changes something may end the answer, or the session: it is tried when the answer is there. A proof by
            // somebody else changes nothing.
            if is_question(&ask) || matches!(ask.who, Who::Proof(_)) {
                heard += &thief.ask(&target.aim(&ask, seed)).await.text;
            }
        }
    }
    assert_eq!(one.awaited().len(), 1, "the answer is still being made");
    answerer.let_say(100);
    hear(&mut one, &asked.turn, is_end).await;
    one.flush().await.unwrap();
    hear(&mut one, &asked.turn, is_made).await;
    while let Ok(frame) = tokio::time::timeout(Duration::from_millis(500), ear.news()).await {
        match frame {
            Ok(frame) => heard += &String::from_utf8(frame.write().unwrap()).unwrap(),
            Err(_) => break,
        }
    }
    for seed in 0..ROUNDS {
        for ask in made_up(seed) {
            heard += &thief.ask(&target.aim(&ask, seed)).await.text;
        }
    }
    assert!(heard.contains(chat.as_str()), "the thief hears what happens");
    for word in ["marzipan", "known="] {
        assert!(!heard.contains(word), "the thief heard {word}");
    }
}

/// Whether a request changes nothing of the account.
fn is_question(ask: &Ask) -> bool {
    const ASKS: [&str; 9] = [
        "ping",
        "request_data",
        "request_chat_content_batch",
        "request_embed",
        "request_devices",
        "phased_sync_request",
        "load_more_chats",
        "sync_status_request",
        "resume_ai_task",
    ];
    match ask.path {
        EVENTS => ASKS.iter().any(|event| ask.json.contains(&format!("\"{event}\""))),
        path => path != "/account/logout" && !matches!(ask.who, Who::Proof(_)),
    }
}

async fn unchanged(kept: &Kept, account: &str, before: &[Row]) {
    let now = kept.rows_of(account).await;
    let changed: Vec<String> = before
        .iter()
        .filter(|row| !now.contains(row))
        .chain(now.iter().filter(|row| !before.contains(row)))
        .map(|row| format!("{} {:?}", row.table, row.texts().collect::<Vec<_>>()))
        .collect();
    assert!(changed.is_empty(), "rows of another account changed: {changed:?}");
}

/// Every word that a device shows.
fn words(device: &Device) -> Vec<String> {
    let mut words = Vec::new();
    for chat in device.chats() {
        let view = device.chat(&chat).unwrap();
        words.extend(view.title().map(ToOwned::to_owned));
        words.extend(view.draft);
        words.extend(view.messages.into_values().map(|message| message.body));
    }
    words.sort_unstable();
    words
}

/// An account that has something of everything, on two devices.
struct Inhabited {
    account: String,
    person: Person,
    devices: Vec<Device>,
    /// What its devices sent.
    said: Vec<Ask>,
    words: Vec<String>,
}

impl Inhabited {
    async fn make(world: &World, login: &str) -> Self {
        let person = Person::new();
        let tap = Arc::new(Tap::default());
        let way = || -> Arc<dyn Transport> {
            Arc::new(Through { inner: world.transport(), between: Arc::clone(&tap) })
        };
        let credentials = vec![person.recovery(), person.passkey()];
        let mut one = world.register(way(), &MemoryFiles::new(), login, credentials).await.unwrap();
        one.sync(Phase::All).await.unwrap();
        for name in ["first", "second"] {
            let chat = one.new_chat(Some(&format!("{login} {name}"))).unwrap();
            let said = one.say(&chat, &format!("{login} says {name}")).unwrap();
            let doomed = one.say(&chat, "deleted").unwrap();
            one.flush().await.unwrap();
            let embed = one.add_embed(&chat, &format!("{login} map {name}")).unwrap();
            one.edit(&chat, &said, &format!("{login} corrects {name}")).unwrap();
            one.delete(&chat, &doomed).unwrap();
            one.set_draft(&chat, Some(&format!("{login} drafts {name}"))).unwrap();
            one.flush().await.unwrap();
            one.embed(&chat, &embed).await.unwrap();
            one.open_chat(&chat).await.unwrap();
        }
        one.set_data("settings", "theme", Some(&format!("{login} likes dark"))).unwrap();
        one.flush().await.unwrap();
        one.label(&format!("{login} telephone")).await.unwrap();
        let doomed = one.new_chat(None).unwrap();
        one.flush().await.unwrap();
        one.delete_chat(&doomed).unwrap();
        one.flush().await.unwrap();
        let mut two =
            Device::log_in(world.setup_over(way(), &MemoryFiles::new()), &person.recovery()).await.unwrap();
        two.sync(Phase::All).await.unwrap();
        two.load_older(10).await.unwrap();
        two.devices().await.unwrap();
        let said = tap.0.lock().clone();
        assert!(said.len() > 20, "the devices said {} things", said.len());
        let words = words(&two);
        Self { account: one.account_id().as_str().to_owned(), person, devices: vec![one, two], said, words }
    }
}

/// Notes what a device sends on its socket.
#[derive(Default)]
struct Tap(Mutex<Vec<Ask>>);

impl Between for Tap {
    fn sends(&self, frame: &[u8]) -> Passes {
        let json = String::from_utf8(frame.to_vec()).unwrap();
        // A ticket is good once; whose it is is asked elsewhere.
        if !json.contains("\"hello\"") {
            self.0.lock().push(Ask { path: EVENTS, who: Who::Session, json });
        }
        Passes::On
    }
}

/// A request: where to, how it is shown who asks, and its JSON.
#[derive(Clone)]
struct Ask {
    path: &'static str,
    who: Who,
    json: String,
}

const EVENTS: &str = "/chats/events";

/// Every route and every frame, with values that the seed makes.
fn made_up(seed: u64) -> Vec<Ask> {
    let roll =
        |at: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at.wrapping_mul(0xbf58_476d_1ce4_e5b9)) >> 24;
    let bytes: Vec<u8> = (1..4000).map(|at| u8::try_from(roll(at) & 0xff).unwrap()).collect();
    let mut dice = if seed == 0 { Dice::sample() } else { Dice::from_bytes(&bytes) };
    let mut asks = Vec::new();
    for (route, (path, request, _)) in ROUTES.iter().zip(bodies(&mut dice)) {
        let json = String::from_utf8(request.json).unwrap();
        asks.push(Ask { path, who: route.who, json });
    }
    for event in ClientEvent::one_of_each(&mut dice) {
        let json = String::from_utf8(ClientFrame { id: 7, event }.write().unwrap()).unwrap();
        asks.push(Ask { path: EVENTS, who: Who::Session, json });
    }
    asks
}

/// What is aimed at: ids and envelopes of an account.
struct Target {
    /// Ids by what stands before their `_`.
    ids: BTreeMap<String, Vec<String>>,
    /// For each of them one that nobody has.
    twins: BTreeMap<String, String>,
    /// What must not come back: ids, and whatever is sealed.
    markers: Vec<String>,
    /// Turns that run; no row has their ids.
    turns: Vec<String>,
}

impl Target {
    fn of(rows: &[Row]) -> Self {
        let target = Self::of_some(rows);
        assert_eq!(target.ids.keys().collect::<Vec<_>>(), ["acct", "chat", "dev", "emb", "msg"]);
        target
    }

    fn of_some(rows: &[Row]) -> Self {
        let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let texts = rows.iter().flat_map(|row| row.texts().chain([row.account.as_str()]));
        for text in texts.filter(|text| is_id(text)) {
            let of_kind = ids.entry(kind(text).to_owned()).or_default();
            if !of_kind.contains(&text.to_owned()) {
                of_kind.push(text.to_owned());
            }
        }
        // A chat's shelf follows from its id, and is told in requests: the twin is on the same one.
        let shelf = |id: &str| ChatId::parse(id).ok().map(|chat| Shelf::of(&chat));
        let fresh = |id: &String| loop {
            let twin = ChatId::random().as_str().replacen("chat", kind(id), 1);
            if shelf(&twin) == shelf(id) {
                break (id.clone(), twin);
            }
        };
        let twins = ids.values().flatten().map(fresh).collect();
        Self { ids, twins, markers: markers(rows), turns: Vec::new() }
    }

    /// The request with ids of the account wherever there is one, and with revisions that may be the right ones.
    fn aim(&self, ask: &Ask, seed: u64) -> Ask {
        let mut value: Value = serde_json::from_str(&ask.json).unwrap();
        let mut count = usize::try_from(seed).unwrap();
        self.put(&mut value, &mut count);
        Ask { json: value.to_string(), ..ask.clone() }
    }

    fn put(&self, value: &mut Value, count: &mut usize) {
        match value {
            Value::String(text) => {
                if let Some(id) = self.pick(text, count) {
                    *text = id;
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|one| self.put(one, count)),
            Value::Object(map) => {
                for (name, mut one) in std::mem::take(map) {
                    if matches!(name.as_str(), "expected" | "messages_v") && one.is_number() {
                        *count += 1;
                        one = Value::from(*count % 8);
                    }
                    self.put(&mut one, count);
                    map.insert(self.pick(&name, count).unwrap_or(name), one);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// An id of the account in the place of this one.
    fn pick(&self, text: &str, count: &mut usize) -> Option<String> {
        if let Some(turn) = self.turns.first().filter(|_| kind(text) == "turn") {
            return Some(turn.clone());
        }
        let ids = is_id(text).then(|| self.ids.get(kind(text)))??;
        *count += 1;
        Some(ids[*count % ids.len()].clone())
    }

    /// The same request with ids that nobody has.
    fn miss(&self, json: &str) -> String {
        self.twins.iter().fold(json.to_owned(), |json, (id, twin)| json.replace(id, twin))
    }

    /// Nothing of the account is in an answer, but for what was in the request.
    fn is_not_in(&self, answer: &str, ask: &Ask) {
        for marker in &self.markers {
            let told = answer.contains(marker) && !ask.json.contains(marker);
            assert!(!told, "{}: {marker} came back for {}", ask.path, ask.json);
        }
    }
}

fn kind(id: &str) -> &str {
    id.split('_').next().unwrap_or_default()
}

/// What came back: which kinds of answers, and all of its text.
struct Found {
    kinds: Vec<String>,
    text: String,
}

/// Somebody with a session and a credential, who asks for anything.
struct Session<'a> {
    world: &'a World,
    code: RecoveryCode,
    /// What it signs with: the same, but for a thief's.
    signs: RecoveryCode,
    secrets: Option<SessionSecrets>,
}

impl<'a> Session<'a> {
    async fn open(world: &'a World, code: &RecoveryCode) -> Self {
        let mut session = Self { world, code: code.clone(), signs: code.clone(), secrets: None };
        session.log_in().await;
        session
    }

    async fn log_in(&mut self) {
        let request = LoginRequest { kind: CredentialKind::Recovery, device: None };
        let json = String::from_utf8(request.write().unwrap()).unwrap();
        let body = self.sign(&self.code, Purpose::Login, json).await;
        let caller = self.caller(None);
        let answered = self.world.service.answer("/account/login", &caller, &body).await.unwrap();
        let (Body::Json(json), Some(Cookie::Set { id, .. })) = (answered.body, answered.session) else {
            panic!("no session")
        };
        let opened = SessionOpened::read(&json).unwrap();
        self.secrets = Some(SessionSecrets { id, secret: *opened.session.dangerously_expose_bytes() });
    }

    /// Whether it is the person; a thief's proofs end nothing.
    fn signs_for_itself(&self) -> bool {
        self.signs.credential_id() == self.code.credential_id()
    }

    fn caller(&self, session: Option<SessionSecrets>) -> Caller {
        Caller { origin: origin(), network: network(), session, stream: None }
    }

    /// Signs any JSON at all with a credential.
    async fn sign(&self, code: &RecoveryCode, purpose: Purpose, json: String) -> Vec<u8> {
        let ask = ChallengeRequest { purpose }.write().unwrap();
        let answered =
            self.world.service.answer("/account/challenge", &self.caller(None), &ask).await.unwrap();
        let Body::Json(challenge) = answered.body else { panic!("frames") };
        let challenge = Challenge::read(&challenge).unwrap().challenge;
        let id = code.credential_id();
        let statement = Statement {
            origin: &origin(),
            purpose,
            signer: Signer::Credential(&id),
            challenge: challenge.dangerously_expose_bytes(),
            body: json.as_bytes(),
        };
        let proof = Bytes(Root::from_recovery(code).prove(&statement));
        let body = Text::new(json).unwrap();
        let signer = SignerName::Credential(id.clone());
        Signed { body, challenge, signer, proof, totp: None }.write().unwrap()
    }

    async fn ask(&mut self, ask: &Ask) -> Found {
        let body = match ask.who {
            Who::Proof(purpose) => self.sign(&self.signs, purpose, ask.json.clone()).await,
            Who::Session | Who::Anybody => ask.json.clone().into_bytes(),
        };
        let caller = self.caller(self.secrets.clone());
        let answer = self.world.service.answer(ask.path, &caller, &body).await;
        let found = match answer {
            Ok(answered) => Found::read(answered.body).await,
            Err(refused) => {
                let text = String::from_utf8(refused.write().unwrap()).unwrap();
                Found { kinds: vec![refused.error.name().to_owned()], text }
            }
        };
        // Some of what she asks for ends her own session, or has to wait.
        self.world.pass(60_000);
        if ask.path != EVENTS && !is_question(ask) && self.signs_for_itself() {
            self.log_in().await;
        }
        found
    }
}

impl Found {
    async fn read(body: Body) -> Self {
        let mut found = Self { kinds: Vec::new(), text: String::new() };
        match body {
            Body::Json(json) => {
                found.kinds.push("done".to_owned());
                found.text = String::from_utf8(json).unwrap();
            }
            Body::Frames(mut frames) => {
                while let Some(frame) = frames.next().await {
                    found.kinds.push(name(&frame));
                    found.text += &String::from_utf8(frame.write().unwrap()).unwrap();
                }
            }
        }
        found
    }
}

fn name(frame: &ServerFrame) -> String {
    match &frame.event {
        ServerEvent::Refused(refused) => refused.error.name().to_owned(),
        event => event.name().to_owned(),
    }
}
