//! Whoever guesses logins, passwords and orders of requests: every answer is the same for a login that nobody has, to the byte,
//! and what comes without a session or out of order is refused.

use confidant_chat_format::{BoxKey, CredentialId, Login, PublicKey, Purpose, Root};
use confidant_chat_protocol::describe::{Dice, bodies};
use confidant_chat_protocol::{
    Blob, Body as _, ClientEvent, ClientFrame, CredentialKind, LoginRequest, Logout, PairFetch, PairSend,
    PairTake, PairingId, Prelogin, ROUTES, RegisterBegin, RegisterOffer, RotationBegin, RotationStage,
    Secret, Signed, SignerName, Who,
};
use futures_util::SinkExt as _;
use hyper::Method;
use tokio_websockets::Message;

use crate::device::Person;
use crate::world::{Reply, World, closed};

/// Status, headers and body; the time of day is not the server's to hide.
fn whole(reply: &Reply) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let headers = reply.headers.iter().filter(|(name, _)| *name != "date");
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    (reply.status.as_u16(), headers.collect(), reply.body.to_vec())
}

fn root() -> Root {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).unwrap();
    Root::from_prf(secret)
}

/// A login that must fail: signed by a key that nobody has.
async fn attempt(world: &World, signer: SignerName) -> Reply {
    let request = LoginRequest { kind: CredentialKind::Password, device: None };
    let challenge = world.challenge(Purpose::Login).await;
    let signed = Signed::sign(&request, &root(), &world.origin, signer, challenge).unwrap();
    world.post("/account/login", None, &signed).await
}

fn login(name: &str) -> SignerName {
    SignerName::Login(Login::parse(name).unwrap())
}

#[tokio::test]
async fn what_is_asked_before_a_login_does_not_tell_who_has_an_account() {
    let world = World::new().await;
    // As long as each other: a login is in no answer, and its length in none either.
    world.register("somebody").await;
    let ask = async |path: &str, name: &str| {
        let login = Login::parse(name).unwrap();
        let reply = match path {
            "/account/prelogin" => world.post(path, None, &Prelogin { login }).await,
            _ => world.post(path, None, &RegisterBegin { login, invite: None }).await,
        };
        whole(&reply)
    };
    for path in ["/account/prelogin", "/account/register/begin"] {
        let shape = |(status, headers, body): (u16, Vec<(String, String)>, Vec<u8>)| {
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            // What differs is random, or looks so; it is as long.
            let fields = value.as_object().unwrap().iter().map(|(name, value)| {
                let text = value.as_str().map(str::len);
                (name.clone(), text, value.as_u64())
            });
            (status, headers, body.len(), fields.collect::<Vec<_>>())
        };
        let there = ask(path, "somebody").await;
        let not = ask(path, "nobodies").await;
        assert_eq!(shape(there), shape(not), "{path}");
    }
    // A salt never changes, also not when its login gets an account; and it is nobody else's.
    let before = ask("/account/prelogin", "nobodies").await;
    world.register("nobodies").await;
    assert_eq!(ask("/account/prelogin", "nobodies").await, before);
    assert_ne!(ask("/account/prelogin", "somebody").await, before);
}

#[tokio::test]
async fn a_refused_login_is_the_same_for_everybody_and_costs_everybody_the_same_time() {
    let world = World::new().await;
    let (ana, session) = world.register("ana").await;
    let unknown = || SignerName::Credential(CredentialId::random());
    let expected = whole(&attempt(&world, unknown()).await);
    assert_eq!(expected.0, 401);
    // Four each; the fifth has to wait, whoever it is, however right it would be.
    for _ in 0..4 {
        assert_eq!(whole(&attempt(&world, login("ana")).await), expected);
        assert_eq!(whole(&attempt(&world, login("nobody")).await), expected);
    }
    let late = whole(&attempt(&world, login("ana")).await);
    assert_eq!(late, whole(&attempt(&world, login("nobody")).await));
    let request = LoginRequest { kind: CredentialKind::Password, device: None };
    let right = world.prove("/account/login", &ana, None, &request).await;
    assert_eq!(right.refusal(), (429, "rate"));
    assert_eq!(whole(&right), late, "that it was right is not told");
    assert_eq!(right.headers["retry-after"], "2");
    // A credential that nobody has has not failed so often.
    assert_eq!(whole(&attempt(&world, unknown()).await), expected);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn a_login_that_is_taken_is_refused_like_any_other() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let register = async |name: &str, spoil: bool| {
        let login = Login::parse(name).unwrap();
        let begin = RegisterBegin { login: login.clone(), invite: None };
        let offer = world.post("/account/register/begin", None, &begin).await.read::<RegisterOffer>();
        let (_, mut signed) = Person::new(&login, offer, &world.origin);
        if spoil {
            signed.challenge = Secret::from_bytes([7; 32]);
        }
        world.post("/account/register", None, &signed).await
    };
    let taken = register("ana", false).await;
    assert_eq!(taken.refusal(), (401, "login-refused"));
    assert_eq!(whole(&taken), whole(&register("ben", true).await), "as without an offer");
    assert_eq!(register("ben", false).await.status, 200);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn without_a_session_there_is_no_frame_and_no_request() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let (_, other) = world.register("ben").await;
    world.post("/account/logout", Some(&other), &Logout { everywhere: false }).await;
    let events = ClientEvent::one_of_each(&mut Dice::sample());
    for who in [None, Some(&other)] {
        for event in &events {
            let frame = ClientFrame { id: 7, event: event.clone() };
            let reply = world.post("/chats/events", who, &frame).await;
            assert_eq!(reply.refusal(), (401, "unauthorised"), "{}", event.name());
        }
        for (route, (path, request, _)) in ROUTES.iter().zip(bodies(&mut Dice::sample())) {
            if matches!(route.who, Who::Session) {
                let reply = world.send(Method::POST, path, &world.program(who), request.json).await;
                assert_eq!(reply.refusal(), (401, "unauthorised"), "{path}");
            }
        }
    }
    // On a socket, nothing is done before `hello`.
    for event in events.into_iter().filter(|event| !matches!(event, ClientEvent::Hello(_))) {
        let (name, frame) = (event.name(), ClientFrame { id: 7, event }.write().unwrap());
        let mut socket = world.socket().await;
        socket.send(Message::text(frame)).await.unwrap();
        // What is too long for a stranger is not read at all.
        assert!([4401, 1009].contains(&closed(&mut socket).await), "{name}");
    }
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn steps_out_of_order_are_refused() {
    let world = World::new().await;
    let (ana, session) = world.register("ana").await;
    // Staged and committed without a beginning.
    let stage = RotationStage { generation: 2, rings: Default::default(), floors: Default::default() };
    let reply = world.post("/account/rotation/stage", Some(&session), &stage).await;
    assert_eq!(reply.refusal().1, "conflict");
    let begin = RotationBegin { account_rev: 9 };
    let reply = world.prove("/account/rotation/begin", &ana, Some(&session), &begin).await;
    assert_eq!(reply.refusal().1, "conflict");
    // A pairing that nobody offered; one that nobody answered.
    let id = PairingId::parse(&"5a".repeat(16)).unwrap();
    let take = PairTake { id: id.clone() };
    assert_ne!(world.post("/account/pair/take", Some(&session), &take).await.status, 200);
    let send = PairSend { id: id.clone(), sealed: Blob::new(vec![1; 100]).unwrap() };
    assert_eq!(
        world.prove("/account/pair/send", &ana, Some(&session), &send).await.refusal().1,
        "pair-refused"
    );
    let fetch = PairFetch { id: id.clone(), claim: Secret::from_bytes([7; 32]) };
    assert_eq!(world.post("/account/pair/fetch", None, &fetch).await.refusal().1, "not-found");
    let public_key: PublicKey = BoxKey::from_key(&confidant_seal::Key::random()).public_key();
    let offer = confidant_chat_protocol::PairOffer { id, public_key };
    assert_eq!(world.post("/account/pair/offer", None, &offer).await.status, 200);
    assert_eq!(world.post("/account/pair/fetch", None, &fetch).await.refusal().1, "not-found");
    // A write before the one it follows.
    let mut ahead = ana.clone();
    let chat = confidant_chat_format::ChatId::random();
    let (first, second) = (ahead.write(&chat, 10), ahead.write(&chat, 10));
    for (write, expected) in [(second, "not-found"), (first, "encrypted_metadata_stored")] {
        let frame = ClientFrame { id: 7, event: ClientEvent::EncryptedChatMetadata(write) };
        let reply = world.post("/chats/events", Some(&session), &frame).await;
        let name = match reply.status.as_u16() {
            200 => reply.frames()[0].event.name(),
            _ => reply.refusal().1,
        };
        assert_eq!(name, expected);
    }
    world.is_unharmed(&session).await;
}
