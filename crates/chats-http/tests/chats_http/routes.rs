//! Every route, by a real client.

use confidant_chat_format::{BoxKey, ChatId, Login, PublicKey};
use confidant_chat_protocol::describe::{Dice, bodies, read_body};
use confidant_chat_protocol::{
    Blob, Body as _, Bytes, ClientEvent, ClientFrame, CredentialKind, Devices, Done, Erase, Erased, Export,
    LoginRequest, Logout, PairFetch, PairFetched, PairOffer, PairOffered, PairTake, PairTaken, PairingId,
    Phase, PhasedSyncRequest, Prelogin, PreloginAnswer, ROUTES, RequestDevices, RevokeDevice, RevokeSession,
    ServerEvent, SessionOpened, Signed, Text, TicketRequest, Who,
};
use hyper::Method;

use crate::world::{FAR, Reply, Session, World, text_of};

fn has_the_headers(reply: &Reply) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(reply.headers[name], value);
    }
    assert!(!reply.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn every_route_answers_in_the_words_of_the_protocol() {
    let world = World::new().await;
    let (person, _) = world.register("ana").await;
    let samples = bodies(&mut Dice::sample());
    assert_eq!(samples.len(), ROUTES.len());
    for (route, (path, request, _)) in ROUTES.iter().zip(samples) {
        assert_eq!(route.path, path);
        let (body, session) = match route.who {
            Who::Proof(purpose) => {
                // Signed by nobody.
                let signed = Signed {
                    body: Text::new(String::from_utf8(request.json).unwrap()).unwrap(),
                    challenge: world.challenge(purpose).await,
                    signer: confidant_chat_protocol::SignerName::Login(Login::parse("nobody").unwrap()),
                    proof: Bytes([0; 64]),
                    totp: None,
                };
                (signed.write().unwrap(), None)
            }
            Who::Session => {
                let reply = world.send(Method::POST, path, &world.program(None), request.json.clone()).await;
                assert_eq!(reply.refusal(), (401, "unauthorised"), "{path}");
                (request.json, Some(world.login(&person).await))
            }
            Who::Anybody => (request.json, None),
        };
        let reply = world.send(Method::POST, path, &world.program(session.as_ref()), body).await;
        has_the_headers(&reply);
        match (reply.status.as_u16(), route.who) {
            (200, Who::Proof(_)) => panic!("{path} was done without a proof"),
            (200, _) if path == "/chats/events" => assert!(!reply.frames().is_empty()),
            (200, _) => read_body(path, true, &reply.body).unwrap().unwrap(),
            // This server gives no answers, and says so.
            (503, _) if path == "/chats/catalogue" => assert_eq!(reply.refusal().1, "unavailable"),
            (status, _) => {
                let (status_of_kind, name) = reply.refusal();
                assert!(status == status_of_kind && status < 500, "{path}: {status} {name}");
            }
        }
        // Only as JSON, and only by POST.
        let mut headers = world.program(session.as_ref());
        headers[1].1 = "text/plain".to_owned();
        assert_eq!(
            world.send(Method::POST, path, &headers, "{}").await.refusal(),
            (400, "malformed"),
            "{path}"
        );
        let reply = world.send(Method::GET, path, &world.program(None), "").await;
        has_the_headers(&reply);
        if path == "/chats/events" {
            assert_eq!(reply.refusal(), (401, "unauthorised"), "news need a session");
            continue;
        }
        assert_eq!(
            (reply.status.as_u16(), &reply.headers["allow"]),
            (405, &"POST".parse().unwrap()),
            "{path}"
        );
    }
    world.is_unharmed(&world.login(&person).await).await;
}

#[tokio::test]
async fn a_life_over_http() {
    let world = World::new().await;
    let (mut ana, session) = world.register("ana").await;
    let prelogin = Prelogin { login: ana.login.clone() };
    assert_eq!(world.post("/account/prelogin", None, &prelogin).await.read::<PreloginAnswer>().profile, 1);
    // A frame without a socket: a write, then a sync.
    let chat = ChatId::random();
    let frame = ClientFrame { id: 3, event: ClientEvent::EncryptedChatMetadata(ana.write(&chat, 10)) };
    let frames = world.post("/chats/events", Some(&session), &frame).await.frames();
    assert!(matches!(frames[0].event, ServerEvent::EncryptedMetadataStored(_)), "{frames:?}");
    assert_eq!((frames.len(), frames[0].re), (1, Some(3)));
    let everything =
        PhasedSyncRequest { phase: Phase::All, manifest: 0, client_chat_versions: Default::default() };
    let frame = ClientFrame { id: 4, event: ClientEvent::PhasedSyncRequest(everything) };
    let frames = world.post("/chats/events", Some(&session), &frame).await.frames();
    assert!(matches!(frames.last().unwrap().event, ServerEvent::PhasedSyncComplete(_)), "{frames:?}");
    let sent = |event: &ServerEvent| match event {
        ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
            sent.chats.iter().any(|part| part.chat == chat)
        }
        _ => false,
    };
    assert!(frames.iter().any(|frame| sent(&frame.event)), "{frames:?}");
    // Everything, as frames.
    let export = Export { account: ana.id.clone() };
    let frames = world.prove("/account/export", &ana, Some(&session), &export).await.frames();
    assert!(frames.len() > 3 && matches!(frames.last().unwrap().event, ServerEvent::PhasedSyncComplete(_)));
    // Another device comes and goes.
    let second = world.login(&ana).await;
    let devices: Devices = world.post("/account/devices", Some(&second), &RequestDevices {}).await.read();
    assert_eq!(devices.devices.len(), 2);
    let other = devices.devices.iter().find(|device| device.device != ana.here).unwrap().device.clone();
    world
        .prove("/account/devices/revoke", &ana, Some(&session), &RevokeDevice { device: other })
        .await
        .read::<Done>();
    let gone = world.post("/account/devices", Some(&second), &RequestDevices {}).await;
    assert_eq!(gone.refusal(), (401, "unauthorised"));
    let third = world.login(&ana).await;
    let devices: Devices = world.post("/account/devices", Some(&session), &RequestDevices {}).await.read();
    let theirs = devices.sessions.iter().find(|session| !session.this).unwrap().session;
    world
        .prove("/account/sessions/revoke", &ana, Some(&session), &RevokeSession { session: theirs })
        .await
        .read::<Done>();
    assert_eq!(world.post("/chats/ticket", Some(&third), &TicketRequest {}).await.status, 401);
    // Logged out, and then erased with a proof.
    let last = world.login(&ana).await;
    world.post("/account/logout", Some(&session), &Logout { everywhere: false }).await.read::<Done>();
    assert_eq!(world.post("/chats/ticket", Some(&session), &TicketRequest {}).await.status, 401);
    let erase = Erase { account: ana.id.clone() };
    world.prove("/account/erase", &ana, Some(&last), &erase).await.read::<Erased>();
    assert_eq!(world.post("/chats/ticket", Some(&last), &TicketRequest {}).await.status, 401);
}

#[tokio::test]
async fn pairing_over_http() {
    let world = World::new().await;
    let (ana, session) = world.register("ana").await;
    let public: PublicKey = BoxKey::from_key(&confidant_seal::Key::random()).public_key();
    let id = PairingId::parse(&"5a".repeat(16)).unwrap();
    let offer = PairOffer { id: id.clone(), public_key: public };
    let claim = world.post("/account/pair/offer", None, &offer).await.read::<PairOffered>().claim;
    let taken: PairTaken =
        world.post("/account/pair/take", Some(&session), &PairTake { id: id.clone() }).await.read();
    assert_eq!(taken.public_key, public);
    let sealed = Blob::new(vec![1; 100]).unwrap();
    let send = confidant_chat_protocol::PairSend { id: id.clone(), sealed };
    world.prove("/account/pair/send", &ana, Some(&session), &send).await.read::<Done>();
    let fetch = PairFetch { id, claim };
    let fetched = world.post("/account/pair/fetch", None, &fetch).await;
    let session = Session {
        id: fetched.headers["confidant-session-id"].to_str().unwrap().to_owned(),
        secret: text_of(fetched.read::<PairFetched>().session.session),
    };
    world.is_unharmed(&session).await;
    assert_ne!(world.post("/account/pair/fetch", None, &fetch).await.status, 200, "once");
}

#[tokio::test]
async fn a_page_has_its_session_in_a_cookie_that_scripts_do_not_see() {
    let world = World::new().await;
    let (ana, _) = world.register("ana").await;
    let request = LoginRequest { kind: CredentialKind::Password, device: None };
    let signed = world.sign(&ana, &request).await.write().unwrap();
    let reply = world.send(Method::POST, "/account/login", &world.page(None), signed).await;
    let opened: SessionOpened = reply.read();
    assert!(!reply.headers.contains_key("confidant-session-id"));
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    let name = format!("confidant-{}=", world.address.port());
    assert!(cookie.starts_with(&name) && cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(cookie.contains("; Path=/; Expires=") && !cookie.contains("Domain"), "{cookie}");
    let id = cookie[name.len()..].split(';').next().unwrap().to_owned();
    assert!(!String::from_utf8_lossy(&reply.body).contains(&id));
    let session = Session { id, secret: text_of(opened.session) };
    let devices = world.send(Method::POST, "/account/devices", &world.page(Some(&session)), "{}").await;
    devices.read::<Devices>();
    // It goes with the session.
    let logout = Logout { everywhere: false }.write().unwrap();
    let reply = world.send(Method::POST, "/account/logout", &world.page(Some(&session)), logout).await;
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.starts_with(&format!("{name}; ")) && cookie.contains("Expires=Thu, 01 Jan 1970"),
        "{cookie}"
    );
    assert_eq!(reply.headers["clear-site-data"], "\"cache\", \"storage\"");
    let reply = world.send(Method::POST, "/account/devices", &world.page(Some(&session)), "{}").await;
    assert_eq!(reply.refusal(), (401, "unauthorised"));
}

#[tokio::test]
async fn over_tls_the_cookie_is_bound_to_the_host() {
    let world = World::new().await;
    let (ana, _) = world.register("ana").await;
    let request = LoginRequest { kind: CredentialKind::Password, device: None };
    let challenge = world.challenge(confidant_chat_format::Purpose::Login).await;
    let far = confidant_chat_format::Origin::parse(FAR).unwrap();
    let signed = Signed::sign(&request, &ana.root, &far, ana.signer(), challenge).unwrap();
    let mut headers = world.page(None);
    headers[0].1 = "chat.example".to_owned();
    headers[2].1 = FAR.to_owned();
    let reply = world.send(Method::POST, "/account/login", &headers, signed.write().unwrap()).await;
    reply.read::<SessionOpened>();
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.starts_with("__Host-confidant=") && cookie.ends_with("; SameSite=Strict; Secure"),
        "{cookie}"
    );
    // A proof for one origin is none for another.
    let near = world.sign(&ana, &request).await.write().unwrap();
    let reply = world.send(Method::POST, "/account/login", &headers, near).await;
    assert_eq!(reply.refusal(), (401, "login-refused"));
}
