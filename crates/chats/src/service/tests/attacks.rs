//! What strangers, thieves and whoever has the database try.

use confidant_chat_format::{EmbedId, Refused};
use confidant_chat_protocol::{
    AccountChanged, ChangeCredentials, Export, Prelogin, PreloginAnswer, RequestEmbed, UpdateDraft,
};

use super::*;

fn login_request() -> LoginRequest {
    LoginRequest { kind: CredentialKind::Password, device: None }
}

/// The bytes of the answer to a login that must fail, each from a network of its own: none is too early.
async fn refusal(world: &World, signed: &Signed) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let at = format!("2001:db8:{:x}::1", NEXT.fetch_add(1, Ordering::Relaxed));
    let caller = Caller { network: network(&at), ..world.caller(None) };
    let refused = world.post_as::<SessionOpened>("/account/login", &caller, signed).await.unwrap_err();
    refused.write().unwrap()
}

#[tokio::test]
async fn nobody_learns_who_has_an_account() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let expected = RefusedSent::from(Refused::LoginRefused).write().unwrap();
    let nobody = SignerName::Login(Login::parse("nobody").unwrap());
    let unknown = SignerName::Credential(CredentialId::random());
    let known = SignerName::Credential(ana.passkey.0.clone());
    for signer in [nobody.clone(), ana.by_login(), unknown, known] {
        let signed = world.sign(&login_request(), &root(), signer).await;
        assert_eq!(refusal(&world, &signed).await, expected);
    }
    // A request that cannot be read is found out only behind a good proof.
    let challenge = world.challenge(Purpose::Login).await;
    let broken = Signed {
        body: Text::new("{".to_owned()).unwrap(),
        ..world.sign(&login_request(), &root(), nobody).await
    };
    assert_eq!(refusal(&world, &Signed { challenge, ..broken }).await, expected);
    let salts = async |login: &str| {
        let request = Prelogin { login: Login::parse(login).unwrap() };
        world.post::<PreloginAnswer>("/account/prelogin", &request).await.unwrap()
    };
    let (there, not) = (salts("ana").await, salts("nobody").await);
    assert_eq!((there.profile, not.profile), (1, 1));
    assert_ne!(there.server_salt, not.server_salt);
    assert_eq!(not, salts("nobody").await, "it never changes");
}

#[tokio::test]
async fn a_proof_is_good_once_here_and_for_what_it_says() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let ben = world.register("ben").await;
    let expected = RefusedSent::from(Refused::LoginRefused).write().unwrap();
    let good = async || world.sign(&login_request(), &ana.password, ana.by_login()).await;
    let signed = good().await;
    assert!(world.post::<SessionOpened>("/account/login", &signed).await.is_ok());
    assert_eq!(refusal(&world, &signed).await, expected, "a challenge counts once");
    let late = good().await;
    world.pass(Duration::from_secs(60));
    assert_eq!(refusal(&world, &late).await, expected, "a challenge is good for a minute");
    // A challenge of another purpose, of nobody, and of a registration.
    let offer = world.begin("cat", None).await.unwrap();
    let unknown = confidant_chat_protocol::Secret::from_bytes([5; 32]);
    for challenge in [world.challenge(Purpose::Export).await, unknown, offer.challenge] {
        let signed =
            Signed::sign(&login_request(), &ana.password, &origin(), ana.by_login(), challenge).unwrap();
        assert_eq!(refusal(&world, &signed).await, expected);
    }
    // Made for another origin, also if that is one of ours.
    let far = Origin::parse("https://other.example").unwrap();
    let challenge = world.challenge(Purpose::Login).await;
    let signed = Signed::sign(&login_request(), &ana.password, &far, ana.by_login(), challenge).unwrap();
    assert_eq!(refusal(&world, &signed).await, expected);
    let strange = Caller { origin: Origin::parse("https://evil.example").unwrap(), ..world.caller(None) };
    let answer = world.post_as::<SessionOpened>("/account/login", &strange, &good().await).await;
    assert_eq!(answer.unwrap_err().write().unwrap(), expected);
    // Moved to another body, signer or request.
    let signed = good().await;
    let body = Text::new(signed.body.as_str().replace("password", "recovery")).unwrap();
    assert_eq!(refusal(&world, &Signed { body, ..signed }).await, expected);
    let signed = Signed { signer: ben.by_login(), ..good().await };
    assert_eq!(refusal(&world, &signed).await, expected);
    let export = world.sign(&Export { account: ana.device.id.clone() }, &ana.password, ana.by_login()).await;
    assert_eq!(refusal(&world, &export).await, expected);
}

#[tokio::test]
async fn failures_cost_time_for_this_login_from_this_network() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let there = |at: &str| Caller { network: network(at), ..world.caller(None) };
    let attempt = async |at: &str, root: &Root, signer: SignerName| {
        let signed = world.sign(&login_request(), root, signer).await;
        let answer = world.post_as::<SessionOpened>("/account/login", &there(at), &signed).await;
        answer.map(drop).map_err(|refused| (refused.error.name(), refused.retry_ms))
    };
    let nobody = || SignerName::Login(Login::parse("nobody").unwrap());
    for at in 0..4 {
        // The same for a login that nobody has.
        for signer in [ana.by_login(), nobody()] {
            let answer = attempt("192.0.2.9", &root(), signer).await;
            assert_eq!(answer, Err(("login-refused", None)), "{at}");
        }
    }
    for signer in [ana.by_login(), nobody()] {
        assert_eq!(attempt("192.0.2.9", &ana.password, signer).await, Err(("rate", Some(2000))));
    }
    assert_eq!(attempt("192.0.2.8", &ana.password, ana.by_login()).await, Ok(()), "not elsewhere");
    world.pass(Duration::from_secs(2));
    assert_eq!(attempt("192.0.2.9", &ana.password, ana.by_login()).await, Ok(()));
    assert_eq!(
        attempt("192.0.2.9", &root(), ana.by_login()).await,
        Err(("login-refused", None)),
        "forgotten"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_at_once_count_like_attempts_in_a_row() {
    let world = Arc::new(World::new().await);
    let ana = world.register("ana").await;
    let mut signed = Vec::new();
    for _ in 0..24 {
        signed.push(world.sign(&login_request(), &root(), ana.by_login()).await);
    }
    let tasks = signed.into_iter().map(|signed| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.post::<SessionOpened>("/account/login", &signed).await.unwrap_err() })
    });
    let mut tried = 0;
    for task in tasks.collect::<Vec<_>>() {
        tried += usize::from(task.await.unwrap().error.name() == "login-refused");
    }
    assert!(tried <= 4, "{tried} of 24 were tried");
}

#[tokio::test]
async fn an_old_record_that_is_put_back_is_found_out() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let old = ana.clone();
    world.home.sql("CREATE TABLE kept AS SELECT * FROM accounts").await;
    ana.password = root();
    let request = ChangeCredentials {
        account_rev: 1,
        credentials: List::new(vec![ana.new_credential(CredentialKind::Password, &ana.device.ak, 2)])
            .unwrap(),
        totp: None,
        totp_off: false,
    };
    let changed: AccountChanged = world.prove("/account/credentials", &old, &request).await.unwrap();
    assert_eq!(changed.account_rev, 2);
    assert_eq!(
        world
            .prove::<_, AccountChanged>("/account/credentials", &ana, &request)
            .await
            .unwrap_err()
            .error
            .name(),
        "conflict"
    );
    let name = async |person: &Person, kind| world.login(person, kind, None).await.unwrap_err().error.name();
    assert_eq!(name(&old, CredentialKind::Password).await, "login-refused");
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_ok());
    let mut socket = world.connect(&ana).await;
    world.home.sql("UPDATE accounts SET record = (SELECT record FROM kept), rev = 1").await;
    // The password of then is worth nothing, and whoever only guesses learns nothing.
    assert_eq!(name(&old, CredentialKind::Password).await, "rolled-back");
    assert_eq!(name(&ana, CredentialKind::Password).await, "login-refused");
    let request =
        PhasedSyncRequest { phase: Phase::LastChat, manifest: 0, client_chat_versions: Map::default() };
    assert_eq!(
        super::name(&ask(&mut socket, ClientEvent::PhasedSyncRequest(request)).await.unwrap()),
        "rolled-back"
    );
    // An old record with a new number, and one of somebody else.
    world.home.sql("UPDATE accounts SET rev = 2").await;
    assert_eq!(name(&old, CredentialKind::Password).await, "login-refused");
    assert_eq!(world.vault.anchor(&ana.device.id).await, Ok(2));
}

#[tokio::test]
async fn an_anchor_that_was_not_raised_is_raised_later() {
    let world = World::new().await;
    let ana = world.register("ana").await;
    let request = ChangeCredentials {
        account_rev: 1,
        credentials: List::new(vec![ana.new_credential(CredentialKind::Password, &ana.device.ak, 2)])
            .unwrap(),
        totp: None,
        totp_off: false,
    };
    let _: AccountChanged = world.prove("/account/credentials", &ana, &request).await.unwrap();
    // As after a kill between the store and the vault.
    let key = world.vault.key(&ana.device.id, None).await.unwrap();
    world.vault.destroy_account(&ana.device.id).await.unwrap();
    world.vault.put(&ana.device.id, key.unwrap());
    assert_eq!(world.vault.anchor(&ana.device.id).await, Ok(0));
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_ok());
    assert_eq!(world.vault.anchor(&ana.device.id).await, Ok(2));
}

#[tokio::test]
async fn what_belongs_to_others_is_not_found() {
    let world = World::new().await;
    let (mut ana, mut ben) = (world.register("ana").await, world.register("ben").await);
    let (mut one, mut two) = (world.connect(&ana).await, world.connect(&ben).await);
    let chat = ana.create(&mut one, 1).await;
    let theirs = ben.create(&mut two, 1).await;
    // Ben's write, moved to Ana's chat.
    let (mut write, _) = ben.device.write(&theirs, &Edit { puts: messages_of(1), ..Edit::default() });
    write.chat = chat.clone();
    assert_eq!(
        name(&ask(&mut two, ClientEvent::EncryptedChatMetadata(sent(write))).await.unwrap()),
        "not-found"
    );
    let (delete, _) = ben.device.deletion(&theirs);
    let (floors, manifest) = sent_list(delete.list);
    let delete = confidant_chat_protocol::DeleteChat {
        chat: chat.clone(),
        expected: 1,
        floor: floors[0].clone(),
        manifest,
    };
    let keys = world.vault.count();
    let answer = name(&ask(&mut two, ClientEvent::DeleteChat(delete)).await.unwrap());
    assert!(answer == "not-found" || answer == "list-refused", "{answer}");
    assert_eq!(world.vault.count(), keys, "nobody destroys keys of others");
    let draft = ben.device.seal(&theirs, &Place::Draft(&theirs), 1, b"{}");
    let draft = UpdateDraft { chat: chat.clone(), expected: 0, draft: Envelope::new(draft).unwrap() };
    assert_eq!(name(&ask(&mut two, ClientEvent::UpdateDraft(draft)).await.unwrap()), "not-found");
    let embeds = List::new(vec![EmbedId::random()]).unwrap();
    let embeds = RequestEmbed { chat: chat.clone(), embeds };
    assert_eq!(name(&long(&mut two, ClientEvent::RequestEmbed(embeds)).await), "not-found");
    let have = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
    let chats = Map::new([(chat.clone(), have.clone()), (theirs.clone(), have)].into()).unwrap();
    let request = ClientEvent::RequestChatContentBatch(RequestChatContentBatch { chats });
    let ServerEvent::ChatContentBatchResponse(batch) = &long(&mut two, request).await[0].event else {
        panic!()
    };
    assert_eq!((&batch.missing[..], batch.chats.len()), (&[chat][..], 1));
    assert_eq!(batch.chats[0].chat, theirs);
}

#[tokio::test]
async fn the_database_alone_has_no_keys_and_no_names() {
    let world = World::new().await;
    let mut ana = world.register("ana-and-nobody-else").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let label = ana.device.seal_data(
        &confidant_chat_format::FieldName::parse("device").unwrap(),
        &confidant_chat_format::FieldName::parse(ana.here.as_str()).unwrap(),
        1,
    );
    let event = confidant_chat_protocol::LabelDevice {
        device: ana.here.clone(),
        label: Envelope::new(label.clone()).unwrap(),
    };
    assert_eq!(name(&ask(&mut socket, ClientEvent::LabelDevice(event)).await.unwrap()), "devices_changed");
    let frames =
        ask(&mut socket, ClientEvent::RequestDevices(confidant_chat_protocol::RequestDevices {})).await;
    let frames = frames.unwrap();
    let ServerEvent::Devices(devices) = &frames[0].event else { panic!("{frames:?}") };
    assert_eq!(devices.devices[0].label.as_ref().unwrap().sealed(), &label);
    let mut markers: Vec<Vec<u8>> = vec![
        b"ana-and-nobody-else".to_vec(),
        label.into_bytes(),
        ana.session.id.to_vec(),
        ana.session.secret.to_vec(),
        ana.device.box_pub.as_bytes().to_vec(),
        ana.passkey.0.as_str().as_bytes().to_vec(),
        ana.code.credential_id().as_str().as_bytes().to_vec(),
        b"192.0.2.1".to_vec(),
    ];
    for kind in CredentialKind::ALL {
        markers.push(ana.credential(*kind).0.public_key().to_vec());
    }
    let rings = ana.device.ring.iter().chain(&ana.device.boxes).chain(&ana.device.chats[&chat].ring);
    markers.extend(rings.map(|entry| entry.sealed.as_bytes()[14..].to_vec()));
    let bytes = world.home.bytes().await;
    let there = |marker: &[u8]| bytes.windows(marker.len()).any(|window| window == marker);
    for (at, marker) in markers.iter().enumerate() {
        assert!(!there(marker), "marker {at} is in the file");
    }
    // The scan finds what is there: the client's own envelope of a message.
    let item = ana.device.chats[&chat].items.values().next().unwrap();
    assert!(there(item.as_bytes()));
}

#[tokio::test]
async fn without_the_vault_nothing_is_half_done() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    world.vault.set_down(true);
    let (write, _) = ana.device.write(&ChatId::random(), &Edit::default());
    assert_eq!(
        name(&ask(&mut socket, ClientEvent::EncryptedChatMetadata(sent(write))).await.unwrap()),
        "unavailable"
    );
    let offer = world.begin("ben", None).await.unwrap();
    let (ben, request) = registration("ben", &offer);
    let signed = Signed::sign(&request, &ben.password, &origin(), ben.by_login(), offer.challenge).unwrap();
    let refused = world.post::<SessionOpened>("/account/register", &signed).await.unwrap_err();
    assert_eq!(refused.error.name(), "unavailable");
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_err());
    // What needs no key goes on.
    ana.write(&mut socket, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    world.vault.set_down(false);
    assert_eq!(world.store.count_accounts().await, Ok(1));
    world.pass(Duration::from_secs(60));
    let mut other = world.second(&ana).await;
    let mut socket = world.connect(&other).await;
    other.sync(&mut socket).await;
    assert_eq!(other.device.chats[&chat].items.len(), 2);
}

#[tokio::test]
async fn a_chat_whose_key_was_lost_is_said_to_be_lost() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    world.vault.destroy_chats(&ana.device.id, std::slice::from_ref(&chat)).await.unwrap();
    let have = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
    let chats = Map::new([(chat.clone(), have)].into()).unwrap();
    let request = ClientEvent::RequestChatContentBatch(RequestChatContentBatch { chats });
    let frames = long(&mut socket, request).await;
    let ServerEvent::ChatContentBatchResponse(part) = &frames[0].event else { panic!("{frames:?}") };
    assert!(part.chats[0].ring.is_empty(), "a device says ring-gap, and goes on with other chats");
    // Nobody makes another key for what is sealed under the lost one.
    let (write, _) = ana.device.write(&chat, &Edit { new_key: true, ..Edit::default() });
    let frames = ask(&mut socket, ClientEvent::EncryptedChatMetadata(sent(write))).await.unwrap();
    assert_eq!(name(&frames), "not-found");
}
