//! Registering, logging in, changing, recovering, pairing, erasing.

use confidant_chat_format::{NewDevice, Pairing, PairingSecret};
use confidant_chat_protocol::{
    AccountChanged, Blob, ChangeCredentials, CredentialLine, CredentialList, Devices, Erase, Erased, Export,
    Logout, PairFetch, PairFetched, PairOffer, PairOffered, PairSend, PairTake, PairTaken, PairingId,
    Recover, RequestCredentials, RequestDevices, RevokeSession, Secret, Totp, TotpSetup,
};

use super::*;

#[tokio::test]
async fn a_person_registers_and_logs_in_with_each_credential() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    for kind in CredentialKind::ALL {
        let (opened, cookie) = world.login(&ana, *kind, Some(ana.here.clone())).await.unwrap();
        assert!(ana.opens(*kind, &opened));
        assert_eq!((opened.account_rev, opened.generation, &opened.device), (1, 1, &ana.here));
        let mut again = ana.clone();
        again.take_session(&opened, cookie);
        world.connect(&again).await;
        // Another kind than the one that signs is a lie.
        let (root, signer) = ana.credential(*kind);
        let other = CredentialKind::ALL.iter().copied().find(|other| other != kind).unwrap();
        let signed = world.sign(&LoginRequest { kind: other, device: None }, &root, signer).await;
        let refused = world.post::<SessionOpened>("/account/login", &signed).await.unwrap_err();
        assert_eq!(refused, RefusedSent::from(confidant_chat_format::Refused::LoginRefused));
    }
    // A device that nobody knows, or of somebody else, becomes a new one.
    let ben = world.register("ben").await;
    let (opened, _) = world.login(&ana, CredentialKind::Password, Some(ben.here.clone())).await.unwrap();
    assert!(opened.device != ben.here && opened.device != ana.here);
}

#[tokio::test]
async fn registering_needs_what_the_settings_ask_for() {
    let world = World::with(Registration::Invited).await;
    let refused = "login-refused";
    let error = |answer: Result<RegisterOffer, RefusedSent>| answer.unwrap_err().error.name();
    assert_eq!(error(world.begin("ana", None).await), refused, "the first account needs its code");
    let wrong = world.begin("ana", Some("0000")).await.unwrap();
    assert_eq!(register(&world, "ana", &wrong, |_| {}).await, Err(refused));
    world.register("ana").await;
    assert_eq!(error(world.begin("ben", None).await), refused);
    let stale = world.begin("ben", Some(&world.first)).await.unwrap();
    assert_eq!(register(&world, "ben", &stale, |_| {}).await, Err(refused), "the first code is used up");
    let invite = world.service.invite(Duration::from_secs(60)).await.unwrap();
    let (one, two) =
        (world.begin("ben", Some(&invite.to_uppercase())).await, world.begin("cat", Some(&invite)).await);
    let (one, two) = (one.unwrap(), two.unwrap());
    // A login that somebody has is refused like any other, and the invite is still good.
    let taken = world.begin("ana", Some(&invite)).await.unwrap();
    let keys = world.vault.count();
    assert_eq!(register(&world, "ana", &taken, |_| {}).await, Err(refused));
    assert_eq!(world.vault.count(), keys, "no key is left of what was refused");
    assert_eq!(register(&world, "ben", &one, |_| {}).await, Ok(()));
    assert_eq!(register(&world, "cat", &two, |_| {}).await, Err(refused), "an invite counts once");
    let late = world.service.invite(Duration::from_secs(60)).await.unwrap();
    let offer = world.begin("cat", Some(&late)).await.unwrap();
    world.pass(Duration::from_secs(61));
    assert_eq!(register(&world, "cat", &offer, |_| {}).await, Err(refused));
    let closed = World::with(Registration::Closed).await;
    closed.register("ana").await;
    assert_eq!(error(closed.begin("ben", Some("x")).await), refused);
}

async fn register(
    world: &World,
    login: &str,
    offer: &RegisterOffer,
    spoil: impl Fn(&mut Register),
) -> Result<(), &'static str> {
    let (person, mut request) = registration(login, offer);
    spoil(&mut request);
    let challenge = offer.challenge.clone();
    let signed = Signed::sign(&request, &person.password, &origin(), person.by_login(), challenge).unwrap();
    let answer = world.post::<SessionOpened>("/account/register", &signed).await;
    answer.map(drop).map_err(|refused| refused.error.name())
}

type Spoil<'a> = &'a dyn Fn(&mut Register);

#[tokio::test]
async fn what_is_offered_is_what_is_registered() {
    let world = World::new().await;
    world.register("ana").await;
    let refused = Err("login-refused");
    let other = world.begin("cat", None).await.unwrap();
    let spoil: [(Spoil<'_>, Result<(), &str>); 9] = [
        (&|request| request.account = AccountId::random(), refused),
        (&|request| request.account = other.account.clone(), refused),
        (&|request| request.login = Login::parse("cat").unwrap(), refused),
        (&|request| request.credentials = List::default(), Err("malformed")),
        (&|request| keep(request, &[0, 1]), Err("malformed")),
        (&|request| keep(request, &[0, 2, 2]), Err("malformed")),
        (&|request| keep(request, &[1, 2]), refused),
        (&|request| request.mailbox.n = 2, refused),
        (&|request| wrap_for(request, 2), Err("key-refused")),
    ];
    for (at, (spoil, expected)) in spoil.into_iter().enumerate() {
        let offer = world.begin("ben", None).await.unwrap();
        let answer = register(&world, "ben", &offer, spoil).await;
        assert_eq!(answer, expected, "{at}");
        assert_eq!(register(&world, "ben", &offer, |_| {}).await, refused, "the challenge is used up");
    }
    // An offer for one login is none for another.
    let offer = world.begin("ben", None).await.unwrap();
    assert_eq!(register(&world, "cat", &offer, |_| {}).await, refused);
    assert_eq!(world.store.count_accounts().await, Ok(1));
    assert_eq!(world.vault.count(), 1);
}

/// Says that the account keys are sealed for another revision of the account.
fn wrap_for(request: &mut Register, rev: u32) {
    let mut all = request.credentials.to_vec();
    let mut bytes = all[0].wrap.sealed().as_bytes().to_vec();
    bytes[10..14].copy_from_slice(&rev.to_be_bytes());
    all[0].wrap = Envelope::new(confidant_seal::Sealed::from_bytes(bytes)).unwrap();
    assert_eq!(all[0].wrap.rev(), rev);
    request.credentials = List::new(all).unwrap();
}

/// Leaves these credentials: 0 the password, 1 the passkey, 2 the recovery code.
fn keep(request: &mut Register, kept: &[usize]) {
    let all = request.credentials.to_vec();
    request.credentials = List::new(kept.iter().map(|at| all[*at].clone()).collect()).unwrap();
}

#[tokio::test]
async fn a_code_of_an_authenticator_counts_once_and_only_with_the_password() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let secret = [9; 32];
    let code = |back: u64| {
        let step = world.now.load(Ordering::SeqCst) / 30_000 - back;
        Totp::parse(&crate::service::totp::digits(&secret, step)).unwrap()
    };
    let setup = |code| ChangeCredentials {
        account_rev: 1,
        credentials: List::default(),
        totp: Some(TotpSetup { secret: Secret::from_bytes(secret), code }),
        totp_off: false,
    };
    let path = "/account/credentials";
    let wrong = setup(code(5));
    assert_eq!(
        world.prove::<_, AccountChanged>(path, &ana, &wrong).await.unwrap_err().error.name(),
        "login-refused"
    );
    let changed: AccountChanged = world.prove(path, &ana, &setup(code(0))).await.unwrap();
    assert_eq!((changed.account_rev, changed.generation), (2, 1));
    let login = async |totp: Option<Totp>| {
        let request = LoginRequest { kind: CredentialKind::Password, device: None };
        let signed = Signed { totp, ..world.sign(&request, &ana.password, ana.by_login()).await };
        world.post::<SessionOpened>("/account/login", &signed).await.map_err(|refused| refused.error.name())
    };
    assert_eq!(login(None).await.unwrap_err(), "login-refused");
    assert_eq!(login(Some(code(0))).await.unwrap_err(), "login-refused", "the set-up used this step");
    world.pass(Duration::from_secs(60));
    assert!(login(Some(code(0))).await.is_ok());
    assert_eq!(login(Some(code(0))).await.unwrap_err(), "login-refused");
    world.pass(Duration::from_secs(600));
    // A passkey and the code on paper are two factors by themselves.
    for kind in [CredentialKind::Passkey, CredentialKind::Recovery] {
        assert!(world.login(&ana, kind, None).await.is_ok());
    }
    let off = ChangeCredentials { account_rev: 2, totp: None, totp_off: true, ..setup(code(0)) };
    let signed = Signed { totp: Some(code(0)), ..world.sign(&off, &ana.password, ana.by_login()).await };
    let _: AccountChanged = world.post(path, &signed).await.unwrap();
    assert!(login(None).await.is_ok());
}

#[tokio::test]
async fn ways_to_log_in_are_listed_for_a_session_of_the_account() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let ben = world.register("ben").await;
    let path = "/account/credentials/list";
    let list = async |person: &Person| {
        let caller = world.caller(Some(&person.session));
        let (list, _): (CredentialList, _) =
            world.post_as(path, &caller, &RequestCredentials {}).await.unwrap();
        list
    };
    let lines = |person: &Person| -> Vec<CredentialLine> {
        let line = |kind| match person.credential(kind).1 {
            SignerName::Login(_) => CredentialLine { kind, id: None },
            SignerName::Credential(id) => CredentialLine { kind, id: Some(id) },
        };
        CredentialKind::ALL.iter().map(|kind| line(*kind)).collect()
    };
    for person in [&ana, &ben] {
        let found = list(person).await;
        assert_eq!(found.credentials.to_vec(), lines(person));
        assert!(!found.totp);
    }
    let refused = world.post::<CredentialList>(path, &RequestCredentials {}).await.unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised", "without a session nobody learns what there is");
}

#[tokio::test]
async fn recovering_replaces_password_and_code_and_ends_other_sessions() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut other = world.connect(&ana).await;
    let (opened, cookie) = world.login(&ana, CredentialKind::Recovery, None).await.unwrap();
    assert!(ana.opens(CredentialKind::Recovery, &opened));
    let old = ana.clone();
    ana.take_session(&opened, cookie);
    (ana.password, ana.code) = (root(), RecoveryCode::random());
    let request = Recover {
        account_rev: 1,
        password: ana.new_credential(CredentialKind::Password, &ana.device.ak, 2),
        recovery: ana.new_credential(CredentialKind::Recovery, &ana.device.ak, 2),
    };
    let path = "/account/recover";
    let caller = world.caller(Some(&ana.session));
    // Nothing but the code signs, and it is not kept.
    let by_password = world.sign(&request, &old.password, old.by_login()).await;
    let refused = world.post_as::<AccountChanged>(path, &caller, &by_password).await.unwrap_err();
    assert_eq!(refused.error.name(), "login-refused");
    let (code, signer) = old.credential(CredentialKind::Recovery);
    let same = Recover {
        recovery: old.new_credential(CredentialKind::Recovery, &ana.device.ak, 2),
        ..request.clone()
    };
    let same = world.sign(&same, &code, signer.clone()).await;
    let refused = world.post_as::<AccountChanged>(path, &caller, &same).await.unwrap_err();
    assert_eq!(refused.error.name(), "malformed");
    let signed = world.sign(&request, &code, signer).await;
    let (changed, _): (AccountChanged, _) = world.post_as(path, &caller, &signed).await.unwrap();
    assert_eq!(changed.account_rev, 2);
    assert_eq!(world.vault.anchor(&ana.device.id).await, Ok(2));
    assert_eq!(other.news().await.unwrap_err().code, confidant_chat_protocol::CloseCode::LoggedOut);
    for kind in [CredentialKind::Password, CredentialKind::Recovery] {
        assert!(world.login(&old, kind, None).await.is_err());
        let (opened, _) = world.login(&ana, kind, None).await.unwrap();
        assert!(ana.opens(kind, &opened));
    }
    world.connect(&ana).await;
    let caller = world.caller(Some(&old.session));
    let refused = world.post_as::<Ticket>("/chats/ticket", &caller, &TicketRequest {}).await.unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised");
}

#[tokio::test]
async fn a_new_device_is_paired_once() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let ben = world.register("ben").await;
    let (secret, new) = (PairingSecret::random(), NewDevice::random());
    let id = PairingId::parse(&secret.id()).unwrap();
    let offer = PairOffer { id: id.clone(), public_key: new.public_key() };
    let offered: PairOffered = world.post("/account/pair/offer", &offer).await.unwrap();
    let again = world.post::<PairOffered>("/account/pair/offer", &offer).await.unwrap_err();
    assert_eq!(again.error.name(), "pair-refused", "nobody else gets the claim");
    let fetch = PairFetch { id: id.clone(), claim: offered.claim };
    let path = "/account/pair/fetch";
    assert_eq!(world.post::<PairFetched>(path, &fetch).await.unwrap_err().error.name(), "not-found");
    let caller = world.caller(Some(&ana.session));
    let (taken, _): (PairTaken, _) =
        world.post_as("/account/pair/take", &caller, &PairTake { id: id.clone() }).await.unwrap();
    let pairing = Pairing { secret: &secret, origin: &origin(), account: &ana.device.id };
    let mark = ana.device.manifest.unwrap().0;
    let wire = pairing.send(&taken.public_key, &ana.device.ak, &mark).unwrap();
    let send = PairSend { id: id.clone(), sealed: Blob::new(wire).unwrap() };
    world.prove::<_, Done>("/account/pair/send", &ana, &send).await.unwrap();
    let twice = world.prove::<_, Done>("/account/pair/send", &ben, &send).await.unwrap_err();
    assert_eq!(twice.error.name(), "pair-refused");
    let thief = PairFetch { claim: Secret::from_bytes([1; 32]), ..fetch.clone() };
    assert_eq!(world.post::<PairFetched>(path, &thief).await.unwrap_err().error.name(), "not-found");
    let (fetched, cookie): (PairFetched, _) = world.post_as(path, &world.caller(None), &fetch).await.unwrap();
    let (ak, seen) = pairing.receive(&new, fetched.session.generation, fetched.sealed.as_bytes()).unwrap();
    assert_eq!((&ak, seen.generation, seen.manifest), (&ana.device.ak, 1, Some(mark)));
    assert_eq!(fetched.session.wrap, None);
    let mut paired = ana.clone();
    paired.take_session(&fetched.session, cookie);
    assert_ne!(paired.here, ana.here);
    let mut socket = world.connect(&paired).await;
    paired.sync(&mut socket).await;
    assert_eq!(world.post::<PairFetched>(path, &fetch).await.unwrap_err().error.name(), "not-found");
    // Two minutes, no more.
    let offered: PairOffered = world.post("/account/pair/offer", &offer).await.unwrap();
    world.pass(Duration::from_secs(120));
    let late = world.prove::<_, Done>("/account/pair/send", &ana, &send).await.unwrap_err();
    assert_eq!(late.error.name(), "pair-refused");
    assert!(world.post::<PairFetched>(path, &PairFetch { id, claim: offered.claim }).await.is_err());
}

#[tokio::test]
async fn sessions_are_listed_revoked_and_ended() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let second = world.second(&ana).await;
    let mut socket = world.connect(&second).await;
    let caller = world.caller(Some(&ana.session));
    let path = "/account/devices";
    let (devices, _): (Devices, _) = world.post_as(path, &caller, &RequestDevices {}).await.unwrap();
    assert_eq!((devices.devices.len(), devices.sessions.len()), (2, 2));
    let theirs = devices.sessions.iter().find(|session| !session.this).unwrap();
    assert_eq!(theirs.device, second.here);
    let stranger = world.register("ben").await;
    let revoke = RevokeSession { session: theirs.session };
    let path = "/account/sessions/revoke";
    assert_eq!(world.prove::<_, Done>(path, &stranger, &revoke).await.unwrap_err().error.name(), "not-found");
    world.prove::<_, Done>(path, &ana, &revoke).await.unwrap();
    let closing = socket.news().await.unwrap_err();
    let ServerEvent::ForceLogout(logout) = &closing.last.unwrap().event else { panic!("no reason") };
    assert_eq!(logout.reason, confidant_chat_protocol::LogoutReason::Revoked);
    assert!(ask(&mut socket, ClientEvent::Ping(confidant_chat_protocol::Ping {})).await.is_err());
    let mut mine = world.connect(&ana).await;
    let (_, cookie) =
        world.post_as::<Done>("/account/logout", &caller, &Logout { everywhere: false }).await.unwrap();
    assert_eq!(cookie, Some(Cookie::Clear));
    assert!(mine.news().await.is_err());
    let refused = world.post_as::<Ticket>("/chats/ticket", &caller, &TicketRequest {}).await.unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised");
    // The cookie alone, or the header alone, is nothing.
    let (one, two) = (world.second(&ana).await, world.second(&ana).await);
    let mixed = SessionSecrets { id: one.session.id, secret: two.session.secret };
    let refused =
        world.post_as::<Ticket>("/chats/ticket", &world.caller(Some(&mixed)), &TicketRequest {}).await;
    assert_eq!(refused.unwrap_err().error.name(), "unauthorised");
    let caller = world.caller(Some(&one.session));
    world.post_as::<Done>("/account/logout", &caller, &Logout { everywhere: true }).await.unwrap();
    let caller = world.caller(Some(&two.session));
    assert!(world.post_as::<Ticket>("/chats/ticket", &caller, &TicketRequest {}).await.is_err());
}

#[tokio::test]
async fn the_oldest_session_makes_room_and_nobody_is_locked_out() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    for _ in 0..store::limits::SESSIONS {
        world.pass(Duration::from_secs(1));
        assert!(world.login(&ana, CredentialKind::Passkey, None).await.is_ok());
    }
    let caller = world.caller(Some(&ana.session));
    let refused = world.post_as::<Ticket>("/chats/ticket", &caller, &TicketRequest {}).await.unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised", "the first one went");
}

#[tokio::test]
async fn an_erased_account_leaves_nothing() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let ben = world.register("ben").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 3).await;
    let keys = world.vault.count();
    assert_eq!(keys, 3);
    let stranger = Erase { account: ana.device.id.clone() };
    let refused = world.prove::<_, Erased>("/account/erase", &ben, &stranger).await.unwrap_err();
    assert_eq!(refused.error.name(), "not-found");
    let erase = Erase { account: ana.device.id.clone() };
    let erased: Erased = world.prove("/account/erase", &ana, &erase).await.unwrap();
    assert_eq!(
        erased.receipt.as_str(),
        r#"{"v":1,"chats":1,"items":3,"devices":1,"sessions":1,"letters":0,"snapshots":0}"#
    );
    assert_eq!(world.vault.count(), 1);
    let closing = socket.news().await.unwrap_err();
    let ServerEvent::ForceLogout(logout) = &closing.last.unwrap().event else { panic!("no reason") };
    assert_eq!(logout.reason, confidant_chat_protocol::LogoutReason::Erased);
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_err());
    let bytes = world.home.bytes().await;
    for trace in [ana.device.id.as_str(), chat.as_str(), ana.here.as_str()] {
        assert!(!bytes.windows(trace.len()).any(|window| window == trace.as_bytes()));
    }
    world.connect(&ben).await;
}

#[tokio::test]
async fn an_erasure_that_was_cut_off_is_finished() {
    for step in 0..3 {
        let world = World::new().await;
        let mut ana = world.register("ana").await;
        let mut socket = world.connect(&ana).await;
        ana.create(&mut socket, 1).await;
        // Killed after each step.
        world.store.mark_erasing(&ana.device.id).await.unwrap();
        if step > 0 {
            world.vault.destroy_account(&ana.device.id).await.unwrap();
        }
        if step > 1 {
            world.store.erase(&ana.device.id).await.unwrap();
        }
        if step > 0 {
            let refused = world.login(&ana, CredentialKind::Password, None).await.unwrap_err();
            assert_eq!(refused, login_refused());
        }
        world.service.upkeep().await.unwrap();
        assert_eq!(world.store.count_accounts().await, Ok(0));
        assert_eq!(world.vault.count(), 0);
        let id = ana.device.id.as_str();
        assert!(!world.home.bytes().await.windows(id.len()).any(|window| window == id.as_bytes()));
    }
    // A lost key is no erasure.
    let world = World::new().await;
    let ana = world.register("ana").await;
    world.vault.destroy_account(&ana.device.id).await.unwrap();
    world.service.upkeep().await.unwrap();
    assert_eq!(world.store.count_accounts().await, Ok(1));
}

#[tokio::test]
async fn an_export_has_everything() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let embed = ItemId::Embed(confidant_chat_format::EmbedId::random());
    let mut chats = Vec::new();
    for _ in 0..3 {
        chats.push(ana.create(&mut socket, 2).await);
    }
    ana.write(&mut socket, &chats[0], &Edit { puts: vec![embed.clone()], ..Edit::default() }).await;
    let signed = world.sign(&Export { account: ana.device.id.clone() }, &ana.password, ana.by_login()).await;
    let caller = world.caller(None);
    let answer = world.service.answer("/account/export", &caller, &signed.write().unwrap()).await.unwrap();
    let Body::Frames(mut frames) = answer.body else { panic!("one value") };
    let mut names = Vec::new();
    let mut items = BTreeMap::new();
    while let Some(frame) = frames.next().await {
        frame.write().unwrap();
        names.push(frame.event.name());
        if let ServerEvent::ChatContentBatchResponse(batch) = frame.event {
            for chat in batch.chats.into_vec() {
                items.extend(
                    chat.items.into_vec().into_iter().map(|item| (item.item, item.envelope.unwrap())),
                );
            }
        }
    }
    let expected = [
        "account_state",
        "data_records",
        "devices",
        "chat_content_batch_response",
        "safety_records",
        "remembered_records",
        "letters_waiting",
        "phased_sync_complete",
    ];
    assert_eq!(names, expected);
    assert_eq!(items.len(), 7);
    assert_eq!(items[&embed].sealed(), &ana.device.chats[&chats[0]].items[&embed]);
}

#[tokio::test]
async fn what_has_expired_goes_with_the_upkeep() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let challenge = world.challenge(Purpose::Login).await;
    let mut socket = world.connect(&ana).await;
    world.service.upkeep().await.unwrap();
    ask(&mut socket, ClientEvent::Ping(confidant_chat_protocol::Ping {})).await.unwrap();
    world.pass(world.service.inner.settings.session);
    world.service.upkeep().await.unwrap();
    let closing = socket.news().await.unwrap_err();
    let ServerEvent::ForceLogout(logout) = &closing.last.unwrap().event else { panic!("no reason") };
    assert_eq!(logout.reason, confidant_chat_protocol::LogoutReason::Expired);
    let key = hashed(challenge.dangerously_expose_bytes());
    assert_eq!(world.store.consume(CodeKind::Challenge, key, NOW).await, Ok(None));
}
