//! A new account key: begun, staged, committed, cut off.

use confidant_chat_format::{Entry, restage, rings_digest};
use confidant_chat_protocol::{
    AccountChanged, ChangeCredentials, CloseCode, FloorSent, LogoutReason, MailboxPut, RingKind, RingRows,
    RotationBegin, RotationBegun, RotationCommit, RotationStage, RotationStaged, Secret, Totp, TotpSetup,
};
use confidant_seal::Key;

use super::*;
use crate::store::RingName;

/// What a client prepares for a rotation.
struct Prepared {
    stage: RotationStage,
    commit: RotationCommit,
    after: Person,
}

fn prepare(person: &Person) -> Prepared {
    let mut after = person.clone();
    (after.password, after.code) = (root(), RecoveryCode::random());
    let (old, new) = (person.device.ak.clone(), person.device.ak.next().unwrap());
    let device = &mut after.device;
    let mut names = vec![(RingName::Account, device.ring.clone()), (RingName::Box, device.boxes.clone())];
    names.extend(device.chats.iter().map(|(chat, room)| (RingName::Chat(chat.clone()), room.ring.clone())));
    let rows = names.iter().flat_map(|(of, rows)| rows.iter().map(move |row| (of.of(), row)));
    let digest = rings_digest(rows);
    let mut rings = Vec::new();
    for (of, rows) in names {
        let again = restage(&old, &new, &device.id, of.of(), &rows).unwrap();
        let entries = again.iter().cloned().map(|entry| KeyEntry::try_from(entry).unwrap()).collect();
        let (kind, chat) = match of {
            RingName::Account => (RingKind::Account, None),
            RingName::Box => (RingKind::Mailbox, None),
            RingName::Chat(chat) => (RingKind::Chat, Some(chat)),
        };
        match &chat {
            Some(chat) => device.chats.get_mut(chat).unwrap().ring = again,
            None if kind == RingKind::Account => device.ring = again,
            None => device.boxes = again,
        }
        rings.push(RingRows { kind, chat, entries: List::new(entries).unwrap() });
    }
    let (uk, letters) = (Key::random(), Key::random());
    let seal = |of, rows: &[Entry], key: &Key| {
        let n = u32::try_from(rows.len()).unwrap() + 1;
        Entry::seal(&new, &person.device.id, of, n, key, new.generation())
    };
    let ring = seal(RingOf::Account, &device.ring, &uk);
    let mailbox = seal(RingOf::Box, &device.boxes, &letters);
    device.ring.push(ring.clone());
    device.boxes.push(mailbox.clone());
    device.ak = new.clone();
    device.set_box(&letters);
    let list = device.list(Shelf::all().collect());
    let box_pub = device.box_pub;
    let (floors, manifest) = sent_list(list);
    let floors = floors.into_iter().map(|floor| FloorSent { shelf: floor.shelf, envelope: floor.envelope });
    let rev = person.rev + 1;
    after.rev = rev;
    let credentials = [CredentialKind::Password, CredentialKind::Recovery];
    let credentials = credentials.map(|kind| after.new_credential(kind, &new, rev));
    let commit = RotationCommit {
        generation: new.generation(),
        account_rev: person.rev,
        rings: digest,
        credentials: List::new(credentials.into()).unwrap(),
        ring: ring.try_into().unwrap(),
        mailbox: MailboxPut { entry: mailbox.try_into().unwrap(), box_pub },
        manifest: manifest.head,
    };
    let stage = RotationStage {
        generation: new.generation(),
        rings: List::new(rings).unwrap(),
        floors: List::new(floors.collect()).unwrap(),
    };
    Prepared { stage, commit, after }
}

async fn stage(
    world: &World,
    person: &Person,
    stage: &RotationStage,
) -> Result<RotationStaged, &'static str> {
    let caller = world.caller(Some(&person.session));
    let answer = world.post_as("/account/rotation/stage", &caller, stage).await;
    answer.map(|(staged, _)| staged).map_err(|refused| refused.error.name())
}

async fn commit(
    world: &World,
    person: &Person,
    commit: &RotationCommit,
) -> Result<AccountChanged, &'static str> {
    let answer = world.prove("/account/rotation/commit", person, commit).await;
    answer.map_err(|refused: RefusedSent| refused.error.name())
}

async fn begin(world: &World, person: &Person) -> Result<RotationBegun, &'static str> {
    let request = RotationBegin { account_rev: person.rev };
    let answer = world.prove("/account/rotation/begin", person, &request).await;
    answer.map_err(|refused: RefusedSent| refused.error.name())
}

/// The same person after a rotation, with other credentials.
pub(super) async fn rotated(world: &World, person: &Person) -> Person {
    begin(world, person).await.unwrap();
    let prepared = prepare(person);
    stage(world, person, &prepared.stage).await.unwrap();
    commit(world, person, &prepared.commit).await.unwrap();
    prepared.after
}

#[tokio::test]
async fn a_rotation_replaces_everything_and_leaves_one_session() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ana.create(&mut one, 2).await;
    ana.create(&mut one, 1).await;
    ana.write(&mut one, &chat, &Edit { new_key: true, floor: true, ..Edit::default() }).await;
    let second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let begun = begin(&world, &ana).await.unwrap();
    assert_eq!((begun.generation, begun.rings), (2, 4));
    let closing = two.news().await.unwrap_err();
    assert_eq!(closing.code, CloseCode::LoggedOut);
    let ServerEvent::ForceLogout(logout) = closing.last.unwrap().event else { panic!() };
    assert_eq!(logout.reason, LogoutReason::Rotated);
    // A thief logs in with the old password while the rings are frozen.
    let thief = world.second(&ana).await;
    let mut theirs = world.connect(&thief).await;
    let Prepared { stage: all, commit: last, after } = prepare(&ana);
    let part = RotationStage { floors: List::default(), ..all.clone() };
    assert_eq!(stage(&world, &ana, &part).await, Ok(RotationStaged { rings: 4, floors: 0 }));
    assert_eq!(commit(&world, &ana, &last).await, Err("conflict"), "floors are not staged");
    let part = RotationStage { rings: List::default(), ..all };
    assert_eq!(stage(&world, &ana, &part).await, Ok(RotationStaged { rings: 4, floors: 16 }));
    let changed = commit(&world, &ana, &last).await.unwrap();
    assert_eq!((changed.account_rev, changed.generation), (2, 2));
    assert_eq!(theirs.news().await.unwrap_err().code, CloseCode::LoggedOut);
    let refused = world
        .post_as::<Ticket>("/chats/ticket", &world.caller(Some(&thief.session)), &TicketRequest {})
        .await
        .unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised");
    // Old credentials, and the one that was not presented, are gone.
    for kind in CredentialKind::ALL {
        assert!(world.login(&ana, *kind, None).await.is_err());
    }
    let mut ana = after;
    for kind in [CredentialKind::Password, CredentialKind::Recovery] {
        let (opened, _) = world.login(&ana, kind, None).await.unwrap();
        assert!(ana.opens(kind, &opened));
    }
    // Its own socket goes on; the next write has a key of the new generation.
    while news(&mut one).await.event.name() != "account_updated" {}
    ana.sync(&mut one).await;
    ana.write(&mut one, &chat, &Edit { puts: messages_of(1), floor: true, ..Edit::default() }).await;
    let mut new = world.second(&ana).await;
    let mut socket = world.connect(&new).await;
    new.sync(&mut socket).await;
    assert_eq!(new.device.chats[&chat].items, ana.device.chats[&chat].items);
}

#[tokio::test]
async fn a_rotation_that_was_given_up_is_not_mixed_with_the_next() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    ana.create(&mut one, 1).await;
    let first = prepare(&ana);
    assert_eq!(stage(&world, &ana, &first.stage).await, Err("conflict"), "it was not begun");
    assert_eq!(commit(&world, &ana, &first.commit).await, Err("conflict"));
    begin(&world, &ana).await.unwrap();
    stage(&world, &ana, &first.stage).await.unwrap();
    // The device starts again, with another key; a part of the first attempt arrives late.
    begin(&world, &ana).await.unwrap();
    let second = prepare(&ana);
    stage(&world, &ana, &second.stage).await.unwrap();
    let late = RotationStage { floors: List::default(), ..first.stage.clone() };
    assert_eq!(stage(&world, &ana, &late).await, Err("conflict"));
    assert_eq!(commit(&world, &ana, &first.commit).await, Err("conflict"));
    // Entries under two keys, or of another generation, are refused at once.
    let mut rings = second.stage.rings.to_vec();
    rings[0] = first.stage.rings[0].clone();
    let mixed = RotationStage { rings: List::new(rings).unwrap(), ..second.stage.clone() };
    assert_eq!(stage(&world, &ana, &mixed).await, Err("key-refused"));
    let mut wrong = second.commit.clone();
    wrong.mailbox = first.commit.mailbox.clone();
    assert_eq!(commit(&world, &ana, &wrong).await, Err("key-refused"));
    let wrong = RotationCommit { account_rev: 2, ..second.commit.clone() };
    assert_eq!(commit(&world, &ana, &wrong).await, Err("conflict"));
    let wrong = RotationCommit { generation: 3, ..second.commit.clone() };
    assert_eq!(commit(&world, &ana, &wrong).await, Err("conflict"));
    commit(&world, &ana, &second.commit).await.unwrap();
    let mut ana = second.after;
    ana.sync(&mut one).await;
}

#[tokio::test]
async fn a_rotation_needs_a_session_of_the_same_person_and_ends_by_itself() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let ben = world.register("ben").await;
    let request = RotationBegin { account_rev: 1 };
    let signed = world.sign(&request, &ana.password, ana.by_login()).await;
    let caller = world.caller(Some(&ben.session));
    let refused =
        world.post_as::<RotationBegun>("/account/rotation/begin", &caller, &signed).await.unwrap_err();
    assert_eq!(refused.error.name(), "unauthorised");
    let mut one = world.connect(&ana).await;
    ana.create(&mut one, 1).await;
    begin(&world, &ana).await.unwrap();
    let prepared = prepare(&ana);
    stage(&world, &ana, &prepared.stage).await.unwrap();
    // No new chat while the rings are frozen; afterwards as if nothing had been.
    let (write, _) = ana.device.write(&ChatId::random(), &Edit::default());
    let frames = ask(&mut one, ClientEvent::EncryptedChatMetadata(sent(write))).await.unwrap();
    assert_eq!(name(&frames), "write_conflict");
    world.pass(store::limits::FREEZE);
    assert_eq!(commit(&world, &ana, &prepared.commit).await, Err("conflict"));
    world.service.upkeep().await.unwrap();
    ana.create(&mut one, 1).await;
    ana.sync(&mut one).await;
    assert!(world.login(&ana, CredentialKind::Passkey, None).await.is_ok());
}

#[tokio::test]
async fn a_rotation_needs_one_code_of_the_authenticator_and_then_a_session() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let secret = [9; 32];
    let code = || {
        let step = world.now.load(Ordering::SeqCst) / 30_000;
        Totp::parse(&crate::service::totp::digits(&secret, step)).unwrap()
    };
    let setup = ChangeCredentials {
        account_rev: 1,
        credentials: List::default(),
        totp: Some(TotpSetup { secret: Secret::from_bytes(secret), code: code() }),
        totp_off: false,
    };
    let _: AccountChanged = world.prove("/account/credentials", &ana, &setup).await.unwrap();
    ana.rev = 2;
    assert_eq!(begin(&world, &ana).await, Err("login-refused"), "a code is missing");
    world.pass(Duration::from_secs(60));
    let request = RotationBegin { account_rev: 2 };
    let signed = Signed { totp: Some(code()), ..world.sign(&request, &ana.password, ana.by_login()).await };
    let caller = world.caller(Some(&ana.session));
    let (begun, _): (RotationBegun, _) =
        world.post_as("/account/rotation/begin", &caller, &signed).await.unwrap();
    assert_eq!(begun.generation, 2);
    let prepared = prepare(&ana);
    stage(&world, &ana, &prepared.stage).await.unwrap();
    // Without a session of the account, the password alone is as little as before.
    let signed = world.sign(&prepared.commit, &ana.password, ana.by_login()).await;
    let refused = world.post::<AccountChanged>("/account/rotation/commit", &signed).await.unwrap_err();
    assert_eq!(refused.error.name(), "login-refused");
    assert!(world.login(&ana, CredentialKind::Password, None).await.is_err());
    let changed = commit(&world, &ana, &prepared.commit).await.unwrap();
    assert_eq!((changed.account_rev, changed.generation), (3, 2));
    // It is over: the next change is asked for a code again.
    assert_eq!(begin(&world, &prepared.after).await, Err("login-refused"));
}
