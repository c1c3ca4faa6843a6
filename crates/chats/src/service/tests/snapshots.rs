//! What is shared by a link, and who can open it.

use confidant_chat_format::{
    MessageId, Role, SealedSnapshot, Snapshot, SnapshotId, SnapshotKey, SnapshotMessage,
};
use confidant_chat_protocol::{
    DeleteChat, Done, Erase, Erased, MakeSnapshot, OpenSnapshot, RequestSnapshots, RevokeSnapshot,
    SnapshotItem, SnapshotMade, SnapshotSent, Snapshots,
};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// A snapshot as a device makes it, for an hour, with the key that opens it.
pub(super) fn shared(ana: &Person, chat: &ChatId, words: &str) -> (MakeSnapshot, SnapshotKey) {
    let (key, id) = (SnapshotKey::random(), SnapshotId::random());
    let until = NOW.plus(HOUR).0;
    let message = SnapshotMessage {
        id: MessageId::random(),
        role: Role::User,
        created_at: 1,
        body: words.to_owned(),
        model: None,
        refs: Vec::new(),
    };
    let snapshot = Snapshot::of_branch((NOW.0, until), None, vec![message], &BTreeMap::new()).unwrap();
    let SealedSnapshot { list, items } = snapshot.seal(&key, &id);
    let ring = &ana.device.chats[chat].ring;
    let ring = Ring::open(&ana.device.ak, &ana.device.id, RingOf::Chat(chat), ring).unwrap();
    let kept = key.keep(ring.newest(), &ana.device.id, chat, &id);
    let items = items
        .into_iter()
        .map(|(item, envelope)| SnapshotItem { item, envelope: Envelope::new(envelope).unwrap() });
    let make = MakeSnapshot {
        id,
        chat: chat.clone(),
        expires_at: until,
        key: Envelope::new(kept).unwrap(),
        list: Envelope::new(list).unwrap(),
        items: List::new(items.collect()).unwrap(),
    };
    (make, key)
}

pub(super) async fn make(world: &World, ana: &Person, make: &MakeSnapshot) -> Result<u64, RefusedSent> {
    let caller = world.caller(Some(&ana.session));
    let made: (SnapshotMade, _) = world.post_as("/chats/snapshots/make", &caller, make).await?;
    Ok(made.0.expires_at)
}

pub(super) async fn revoke(world: &World, ana: &Person, id: &SnapshotId) -> Result<(), RefusedSent> {
    let caller = world.caller(Some(&ana.session));
    let request = RevokeSnapshot { id: id.clone() };
    let _: (Done, _) = world.post_as("/chats/snapshots/revoke", &caller, &request).await?;
    Ok(())
}

async fn list(world: &World, ana: &Person) -> Vec<SnapshotId> {
    let caller = world.caller(Some(&ana.session));
    let listed: Result<(Snapshots, _), _> =
        world.post_as("/chats/snapshots", &caller, &RequestSnapshots {}).await;
    listed.unwrap().0.snapshots.iter().map(|line| line.id.clone()).collect()
}

/// What somebody without an account gets.
async fn open(world: &World, id: &SnapshotId) -> Result<SealedSnapshot, RefusedSent> {
    let sent: SnapshotSent = world.post("/chats/snapshots/open", &OpenSnapshot { id: id.clone() }).await?;
    let items = sent.items.into_vec().into_iter().map(|one| (one.item, one.envelope.into_sealed()));
    Ok(SealedSnapshot { list: sent.list.into_sealed(), items: items.collect() })
}

async fn is_gone(world: &World, id: &SnapshotId) -> bool {
    let nobody = open(world, &SnapshotId::random()).await.unwrap_err();
    assert_eq!(nobody.error.name(), "not-found");
    // Byte for byte what is said of an id that never was.
    open(world, id).await.is_err_and(|refused| refused == nobody)
}

#[tokio::test]
async fn whoever_has_the_link_opens_a_snapshot_until_it_ends() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let (first, key) = shared(&ana, &chat, "MARKER-OF-WORDS");
    let (second, _) = shared(&ana, &chat, "others");
    assert_eq!(make(&world, &ana, &first).await, Ok(first.expires_at));
    world.pass(Duration::from_secs(1));
    make(&world, &ana, &second).await.unwrap();
    let sealed = open(&world, &first.id).await.unwrap();
    let opened = Snapshot::open(&key, &first.id, NOW.0, &sealed).unwrap();
    assert_eq!(opened.messages[0].body, "MARKER-OF-WORDS");
    assert!(Snapshot::open(&SnapshotKey::random(), &first.id, NOW.0, &sealed).is_err());
    // Neither the words, nor the id, nor what would open without the server's key is in the database.
    let bytes = world.home.bytes().await;
    let has = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    assert!(!has(b"MARKER-OF-WORDS") && !has(first.id.as_str().as_bytes()));
    assert!(!has(first.list.sealed().as_bytes()) && !has(first.key.sealed().as_bytes()));
    assert_eq!(list(&world, &ana).await, [second.id.clone(), first.id.clone()], "the newest first");
    revoke(&world, &ana, &first.id).await.unwrap();
    assert!(is_gone(&world, &first.id).await);
    assert_eq!(revoke(&world, &ana, &first.id).await.unwrap_err().error.name(), "not-found");
    world.pass(HOUR);
    assert!(is_gone(&world, &second.id).await, "it is over, before anybody has cleaned up");
    assert_eq!(list(&world, &ana).await, []);
    // Nor if somebody writes to the database that it is not.
    world.home.sql("UPDATE snapshots SET expires_at = expires_at + 10000000").await;
    assert!(is_gone(&world, &second.id).await);
}

#[tokio::test]
async fn a_snapshot_that_is_not_right_is_refused() {
    let world = World::new().await;
    let (mut ana, mut ben) = (world.register("ana").await, world.register("ben").await);
    let (mut one, mut two) = (world.connect(&ana).await, world.connect(&ben).await);
    let (chat, other) = (ana.create(&mut one, 1).await, ana.create(&mut one, 1).await);
    let theirs = ben.create(&mut two, 1).await;
    let (good, _) = shared(&ana, &chat, "words");
    let name = async |who: &Person, request: &MakeSnapshot| {
        make(&world, who, request).await.err().map(|refused| refused.error.name())
    };
    for expires_at in [0, NOW.0, NOW.plus(Duration::from_secs(90 * 24 * 3600 + 1)).0] {
        assert_eq!(name(&ana, &MakeSnapshot { expires_at, ..good.clone() }).await, Some("malformed"));
    }
    let (of_other, _) = shared(&ana, &other, "words");
    let foreign = MakeSnapshot { key: of_other.key.clone(), ..good.clone() };
    assert_eq!(name(&ana, &foreign).await, Some("key-refused"), "a key of another chat");
    let moved = MakeSnapshot { chat: theirs.clone(), ..good.clone() };
    assert_eq!(name(&ana, &moved).await, Some("not-found"), "somebody else's chat");
    assert_eq!(name(&ben, &good).await, Some("not-found"), "in somebody else's name");
    let mut later = good.list.sealed().as_bytes().to_vec();
    later[13] = 2;
    let later = MakeSnapshot { list: Envelope::new(Sealed::from_bytes(later)).unwrap(), ..good.clone() };
    assert_eq!(name(&ana, &later).await, Some("record-refused"), "a snapshot has no revisions");
    let caller = world.caller(None);
    let nobody = world.post_as::<SnapshotMade>("/chats/snapshots/make", &caller, &good).await.unwrap_err();
    assert_eq!(nobody.error.name(), "unauthorised");
    assert_eq!(name(&ana, &good).await, None);
    assert_eq!(name(&ana, &good).await, Some("duplicate"));
    assert_eq!(revoke(&world, &ben, &good.id).await.unwrap_err().error.name(), "not-found");
    assert_eq!(list(&world, &ben).await, []);
    assert!(open(&world, &good.id).await.is_ok(), "nobody else ends it");
    // A row that somebody moved opens neither here nor there.
    let sound = Checked { accounts: 2, refused: Vec::new() };
    assert_eq!(world.service.check().await, Ok(sound));
    let (next, _) = shared(&ana, &chat, "others");
    make(&world, &ana, &next).await.unwrap();
    world.home.sql("CREATE TABLE old AS SELECT * FROM snapshots").await;
    world.home.sql("UPDATE snapshots SET line = (SELECT line FROM old WHERE old.id <> snapshots.id), content = (SELECT content FROM old WHERE old.id <> snapshots.id)").await;
    assert!(is_gone(&world, &good.id).await && is_gone(&world, &next.id).await);
    let refused = world.service.check().await.unwrap().refused;
    assert_eq!(refused.iter().map(|(_, reason)| *reason).collect::<Vec<_>>(), ["record-refused"]);
}

#[tokio::test]
async fn a_row_that_is_put_back_after_the_chat_or_the_account_opens_nothing() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let (chat, other) = (ana.create(&mut socket, 1).await, ana.create(&mut socket, 1).await);
    let ((doomed, _), (kept, _)) = (shared(&ana, &chat, "one"), shared(&ana, &other, "two"));
    make(&world, &ana, &doomed).await.unwrap();
    make(&world, &ana, &kept).await.unwrap();
    let copies = ["accounts", "chats", "snapshots"].map(|table| format!("CREATE TABLE old_{table} AS SELECT * FROM {table};"));
    world.home.sql(&copies.concat()).await;
    let (delete, after) = ana.device.deletion(&chat);
    let (floors, manifest) = sent_list(delete.list);
    let delete = DeleteChat { chat: chat.clone(), expected: delete.expected, floor: floors[0].clone(), manifest };
    let frames = ask(&mut socket, ClientEvent::DeleteChat(delete)).await.unwrap();
    assert_eq!(name(&frames), "chat_deleted");
    ana.device = after;
    assert!(is_gone(&world, &doomed.id).await);
    assert_eq!(list(&world, &ana).await, std::slice::from_ref(&kept.id));
    let back = |table: &str| {
        format!("INSERT INTO {table} SELECT * FROM old_{table} AS old WHERE NOT EXISTS (SELECT 1 FROM {table} AS t WHERE t.{} = old.{0});",
            if table == "snapshots" { "id" } else if table == "chats" { "chat" } else { "account" })
    };
    world.home.sql(&[back("chats"), back("snapshots")].concat()).await;
    assert!(is_gone(&world, &doomed.id).await, "its key is destroyed");
    assert_eq!(list(&world, &ana).await, std::slice::from_ref(&kept.id));
    assert!(open(&world, &kept.id).await.is_ok());
    let erase = Erase { account: ana.device.id.clone() };
    let erased: Erased = world.prove("/account/erase", &ana, &erase).await.unwrap();
    assert!(erased.receipt.as_str().contains(r#""snapshots":2"#), "{}", erased.receipt.as_str());
    assert!(is_gone(&world, &kept.id).await);
    world.home.sql(&[back("accounts"), back("chats"), back("snapshots")].concat()).await;
    assert!(is_gone(&world, &kept.id).await, "its key is destroyed");
}

#[tokio::test]
async fn snapshots_cannot_be_asked_for_without_end() {
    let world = World::new().await;
    let service = Service::new(Parts {
        store: Arc::clone(&world.store),
        vault: Arc::<MemoryVault>::clone(&world.vault),
        clock: Arc::new(|| NOW),
        settings: Settings { burst: 40, ..Settings::new(origin()) },
    });
    let ask = OpenSnapshot { id: SnapshotId::random() }.write().unwrap();
    let mut names = Vec::new();
    for _ in 0..11 {
        let refused = service.answer("/chats/snapshots/open", &world.caller(None), &ask).await.unwrap_err();
        assert_eq!(refused.retry_ms.is_some(), refused.error.name() == "rate");
        names.push(refused.error.name());
    }
    assert_eq!(names, [&["not-found"; 10][..], &["rate"]].concat());
    let elsewhere = Caller { network: network("192.0.2.2"), ..world.caller(None) };
    let refused = service.answer("/chats/snapshots/open", &elsewhere, &ask).await.unwrap_err();
    assert_eq!(refused.error.name(), "not-found", "another network has its own");
}
