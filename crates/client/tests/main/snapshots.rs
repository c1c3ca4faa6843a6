//! Snapshots that are shared by a link: what is in them, who opens them, and a server that changes them.

use std::sync::Arc;

use confidant_chat_format::{Refused, Role, SnapshotKey, SnapshotLink};
use confidant_chat_protocol::{Body as _, SnapshotItem, SnapshotSent};
use confidant_client::{Error, Phase, Posted, SnapshotOptions, Transport, TransportError, open_snapshot};
use parking_lot::Mutex;

use crate::on_both_stores;
use crate::place::Place;
use crate::rows::holds;
use crate::world::{Between, Served, Through, World};

on_both_stores! {
    a_snapshot_is_what_was_shown_and_stays_so,
    a_snapshot_ends_with_its_time_its_owners_word_its_chat_and_its_account,
    nothing_of_a_snapshot_is_readable_where_it_is_kept,
    an_export_has_what_is_shared,
    a_server_that_changes_a_snapshot_is_refused_by_name,
}

const DAY: u64 = 24 * 3600 * 1000;

async fn opened(world: &World, link: &SnapshotLink) -> Result<Vec<(Role, String)>, Error> {
    let transport: Arc<dyn Transport> = world.transport();
    let snapshot = open_snapshot(&transport, link, world.now()).await?;
    Ok(snapshot.messages.into_iter().map(|message| (message.role, message.body)).collect())
}

fn said(words: &[(Role, &str)]) -> Result<Vec<(Role, String)>, Error> {
    Ok(words.iter().map(|(role, body)| (*role, (*body).to_owned())).collect())
}

async fn a_snapshot_is_what_was_shown_and_stays_so(place: Place) {
    let world = World::at(place).await;
    let (mut ana, person) = world.ana().await;
    ana.sync(Phase::All).await.unwrap();
    let chat = ana.new_chat(Some("Trip")).unwrap();
    let map = ana.add_embed(&chat, "a map").unwrap();
    let first = ana.write(&chat, Role::User, "where to?", std::slice::from_ref(&map), None).unwrap();
    ana.write(&chat, Role::Tool, "working notes", &[], None).unwrap();
    ana.write(&chat, Role::Assistant, "Rome", &[], Some("small")).unwrap();
    ana.flush().await.unwrap();
    // Another branch is shown from now on; the other one is not part of what is shared.
    ana.branch_off(&chat, Some(&first), "and in winter?").unwrap();
    ana.flush().await.unwrap();
    let made = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap();
    assert_eq!((made.messages, made.attachments, made.left_out, made.has_title), (2, 1, 0, true));
    let shown = said(&[(Role::User, "where to?"), (Role::User, "and in winter?")]);
    assert_eq!(opened(&world, &made.link).await, shown);
    let whole = ana.chat(&chat).unwrap().messages;
    let leaf = whole.values().find(|message| message.body == "Rome").unwrap().id.clone();
    ana.show_branch(&chat, &leaf).unwrap();
    ana.flush().await.unwrap();
    let words = SnapshotOptions { days: 1, attachments: false };
    let second = ana.share_snapshot(&chat, words).await.unwrap();
    assert_eq!((second.messages, second.attachments, second.left_out), (2, 0, 1));
    let other = said(&[(Role::User, "where to?"), (Role::Assistant, "Rome")]);
    assert_eq!(opened(&world, &second.link).await, other);
    // What is written later changes nothing, and no id of it leads back to the chat.
    ana.edit(&chat, &first, "edited").unwrap();
    ana.flush().await.unwrap();
    assert_eq!(opened(&world, &made.link).await, shown);
    let transport: Arc<dyn Transport> = world.transport();
    let snapshot = open_snapshot(&transport, &made.link, world.now()).await.unwrap();
    assert_eq!(snapshot.title.as_deref(), Some("Trip"));
    assert_eq!(snapshot.embeds.values().map(|text| text.body.as_str()).collect::<Vec<_>>(), ["a map"]);
    assert!(snapshot.messages.iter().all(|message| !whole.contains_key(&message.id)));
    assert!(!snapshot.embeds.contains_key(&map));
    // Every device of hers can show the links again; somebody else sees nothing of it.
    let two = world.second(&person).await;
    let links: Vec<_> = two.snapshots().await.unwrap().into_iter().map(|view| view.link.unwrap()).collect();
    assert_eq!(links.len(), 2);
    assert!(links.contains(&made.link) && links.contains(&second.link));
    let nobody = SnapshotLink { key: SnapshotKey::random(), ..made.link.clone() };
    assert_eq!(opened(&world, &nobody).await, Err(Error::Refused(Refused::RecordRefused)));
    let crossed = SnapshotLink { id: second.link.id.clone(), ..made.link.clone() };
    assert_eq!(opened(&world, &crossed).await, Err(Error::Refused(Refused::RecordRefused)));
}

async fn a_snapshot_ends_with_its_time_its_owners_word_its_chat_and_its_account(place: Place) {
    let world = World::at(place).await;
    let (mut ana, person) = world.ana().await;
    ana.sync(Phase::All).await.unwrap();
    let (chat, other) = (ana.new_chat(None).unwrap(), ana.new_chat(None).unwrap());
    ana.say(&chat, "one").unwrap();
    ana.say(&other, "two").unwrap();
    ana.flush().await.unwrap();
    let empty = ana.new_chat(None).unwrap();
    ana.flush().await.unwrap();
    let nothing = ana.share_snapshot(&empty, SnapshotOptions::default()).await;
    assert_eq!(nothing.err(), Some(Error::NoSuchMessage));
    let days = |days| SnapshotOptions { days, ..SnapshotOptions::default() };
    let brief = ana.share_snapshot(&chat, days(1)).await.unwrap().link;
    let long = ana.share_snapshot(&chat, days(9999)).await.unwrap();
    assert!(long.expires_at <= world.now() + 90 * DAY, "as long as may be");
    let of_other = ana.share_snapshot(&other, days(30)).await.unwrap().link;
    let gone = async |link: &SnapshotLink| {
        opened(&world, link).await.is_err_and(|error| error.name() == "not-found")
    };
    world.pass(DAY);
    assert!(gone(&brief).await, "its time is over");
    let again = ana.share_snapshot(&chat, days(30)).await.unwrap().link;
    ana.revoke_snapshot(&again.id).await.unwrap();
    assert!(gone(&again).await, "its owner has ended it");
    assert_eq!(ana.revoke_snapshot(&again.id).await.unwrap_err().name(), "not-found");
    let mut ben = {
        let somebody = crate::world::Person::new();
        let files = crate::world::MemoryFiles::new();
        world.register(world.transport(), &files, "ben@example.org", vec![somebody.recovery()]).await.unwrap()
    };
    ben.sync(Phase::All).await.unwrap();
    assert_eq!(ben.revoke_snapshot(&long.link.id).await.unwrap_err().name(), "not-found");
    assert!(ben.snapshots().await.unwrap().is_empty());
    assert!(opened(&world, &long.link).await.is_ok(), "nobody else ends it");
    ana.delete_chat(&chat).unwrap();
    ana.flush().await.unwrap();
    assert!(gone(&long.link).await, "its chat is gone");
    assert_eq!(ana.snapshots().await.unwrap().len(), 1);
    assert!(opened(&world, &of_other).await.is_ok());
    let receipt = ana.erase(&person.recovery()).await.unwrap();
    assert!(receipt.contains(r#""snapshots":1"#), "{receipt}");
    assert!(gone(&of_other).await, "the account is gone");
}

async fn nothing_of_a_snapshot_is_readable_where_it_is_kept(place: Place) {
    let world = World::at(place).await;
    let (mut ana, _) = world.ana().await;
    ana.sync(Phase::All).await.unwrap();
    let chat = ana.new_chat(Some("MARKER-TITLE")).unwrap();
    let embed = ana.add_embed(&chat, "MARKER-EMBED").unwrap();
    ana.write(&chat, Role::User, "MARKER-WORDS", &[embed], None).unwrap();
    ana.flush().await.unwrap();
    let link = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap().link;
    let text = link.dangerously_to_text();
    let key = text.rsplit('/').next().unwrap().as_bytes();
    let rows = world.kept.rows().await;
    assert_eq!(rows.iter().filter(|row| row.table == "snapshots").count(), 1);
    for row in &rows {
        let everything = row.everything();
        for marker in [&b"MARKER"[..], key, link.id.as_str().as_bytes()] {
            assert!(!holds(&everything, marker), "{} has it", row.table);
        }
    }
    assert!(opened(&world, &link).await.is_ok(), "and yet it opens");
}

async fn an_export_has_what_is_shared(place: Place) {
    let world = World::at(place).await;
    let (mut ana, person) = world.ana().await;
    ana.sync(Phase::All).await.unwrap();
    let chat = ana.new_chat(Some("Trip")).unwrap();
    let said = ana.say(&chat, "where to?").unwrap();
    ana.flush().await.unwrap();
    let link = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap().link;
    ana.edit(&chat, &said, "edited").unwrap();
    ana.flush().await.unwrap();
    let exported = ana.export(&person.recovery()).await.unwrap();
    let [snapshot] = &exported.chats[0].snapshots[..] else { panic!("one is shared") };
    assert_eq!((snapshot.id.as_str(), snapshot.title.as_deref()), (link.id.as_str(), Some("Trip")));
    let words: Vec<_> = snapshot.messages.iter().map(|message| message.body.as_str()).collect();
    assert_eq!(words, ["where to?"]);
    assert!(exported.to_json().contains("\"snapshots\""));
}

/// A server that gives something else than what was shared.
#[derive(Default)]
struct Liar(Mutex<Option<Lie>>);

type Lie = Box<dyn Fn(SnapshotSent) -> SnapshotSent + Send + Sync>;

impl Between for Liar {
    fn posted(&self, path: &str, posted: Posted) -> Result<Posted, TransportError> {
        let lie = self.0.lock();
        let (Some(lie), true) = (&*lie, path == "/chats/snapshots/open") else { return Ok(posted) };
        let sent = lie(SnapshotSent::read(&posted.body).unwrap());
        Ok(Posted { body: sent.write().unwrap(), ..posted })
    }
}

fn changed(sent: &SnapshotSent, change: impl FnOnce(&mut Vec<SnapshotItem>)) -> SnapshotSent {
    let mut items = sent.items.to_vec();
    change(&mut items);
    SnapshotSent { items: confidant_chat_protocol::List::new(items).unwrap(), ..sent.clone() }
}

async fn a_server_that_changes_a_snapshot_is_refused_by_name(place: Place) {
    let world = World::at(place).await;
    let (mut ana, _) = world.ana().await;
    ana.sync(Phase::All).await.unwrap();
    let chat = ana.new_chat(Some("Trip")).unwrap();
    ana.say(&chat, "where to?").unwrap();
    ana.write(&chat, Role::Assistant, "Rome", &[], None).unwrap();
    ana.flush().await.unwrap();
    let liar = Arc::new(Liar::default());
    let way: Arc<dyn Transport> = Arc::new(Through { inner: world.transport(), between: Arc::clone(&liar) });
    let older = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap().link;
    ana.say(&chat, "and in winter?").unwrap();
    ana.flush().await.unwrap();
    let link = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap().link;
    // What the server gives for the older one.
    let before = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&before);
    *liar.0.lock() = Some(Box::new(move |sent| {
        *keep.lock() = Some(sent.clone());
        sent
    }));
    open_snapshot(&way, &older, world.now()).await.unwrap();
    let before = before.lock().clone().unwrap();
    let items = before.items.to_vec();
    let lies: Vec<(&str, &str, Lie)> = vec![
        ("rolled back to an older one", "record-refused", Box::new(move |_| before.clone())),
        ("truncated", "list-refused", Box::new(|sent| changed(&sent, |items| drop(items.pop())))),
        ("emptied", "list-refused", Box::new(|sent| changed(&sent, Vec::clear))),
        (
            "swapped",
            "list-refused",
            Box::new(|sent| {
                changed(&sent, |items| {
                    let first = items[0].envelope.clone();
                    items[0].envelope = std::mem::replace(&mut items[1].envelope, first);
                })
            }),
        ),
        (
            "relabelled",
            "list-refused",
            Box::new(|sent| {
                let other =
                    confidant_chat_format::ItemId::Message(confidant_chat_format::MessageId::random());
                changed(&sent, |items| items[0].item = other)
            }),
        ),
        (
            "a message of another",
            "list-refused",
            Box::new(move |sent| changed(&sent, |all| all.push(items[0].clone()))),
        ),
        (
            "a message twice",
            "list-refused",
            Box::new(|sent| changed(&sent, |items| items.push(items[0].clone()))),
        ),
        (
            "a message in place of the list",
            "record-refused",
            Box::new(|sent| {
                let sealed = sent.items[0].envelope.sealed().clone();
                let list = confidant_chat_protocol::Envelope::new(sealed).unwrap();
                SnapshotSent { list, ..sent }
            }),
        ),
    ];
    for (what, name, lie) in lies {
        *liar.0.lock() = Some(lie);
        let refused = open_snapshot(&way, &link, world.now()).await.unwrap_err();
        assert_eq!(refused.name(), name, "{what}");
    }
    *liar.0.lock() = None;
    let sent = open_snapshot(&way, &link, world.now()).await.unwrap();
    // A server that still gives it when it is over: what is inside the seal says so.
    assert_eq!(sent.messages.len(), 3);
    let late = open_snapshot(&way, &link, sent.until).await.unwrap_err();
    assert_eq!(late, Error::Refused(Refused::RolledBack));
}

#[tokio::test]
async fn a_link_is_opened_over_http_without_an_account() {
    let served = Served::new().await;
    let http: Arc<dyn Transport> = Arc::new(confidant_client::Http::new(served.origin.clone()).unwrap());
    let code = confidant_chat_format::RecoveryCode::random();
    let files = crate::world::MemoryFiles::new();
    let setup = confidant_client::Setup {
        transport: Arc::clone(&http),
        files,
        key: None,
        clock: Arc::new(|| crate::world::NOW),
    };
    let who = confidant_client::Registration {
        login: confidant_chat_format::Login::parse("ana").unwrap(),
        credentials: vec![confidant_client::Credential::Recovery(code)],
        code: Some(served.first.clone()),
    };
    let mut ana = confidant_client::Device::register(setup, who).await.unwrap();
    ana.sync(Phase::All).await.unwrap();
    let chat = ana.new_chat(Some("Trip")).unwrap();
    ana.say(&chat, "where to?").unwrap();
    ana.flush().await.unwrap();
    let made = ana.share_snapshot(&chat, SnapshotOptions::default()).await.unwrap();
    let link = SnapshotLink::parse(&made.link.dangerously_to_text()).unwrap();
    let way: Arc<dyn Transport> = Arc::new(confidant_client::Http::new(link.origin.clone()).unwrap());
    let snapshot = open_snapshot(&way, &link, crate::world::NOW).await.unwrap();
    assert_eq!(snapshot.messages[0].body, "where to?");
    ana.revoke_snapshot(&link.id).await.unwrap();
    let gone = open_snapshot(&way, &link, crate::world::NOW).await.unwrap_err();
    assert_eq!(gone.name(), "not-found");
}
