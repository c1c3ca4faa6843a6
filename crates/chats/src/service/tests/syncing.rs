//! A second device loads what there is, with every check of a client.

use confidant_chat_protocol::{
    DataRecords, LoadMoreChats, RequestData, RequestEmbed, SyncOfflineChanges, SyncStatusRequest, UpdateData,
    UpdateManifest,
};

use super::*;
use crate::store::conformance::device::title;

#[tokio::test]
async fn a_second_device_syncs_in_phases_and_then_what_changed() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut second = world.second(&ana).await;
    let (mut one, mut two) = (world.connect(&ana).await, world.connect(&second).await);
    assert_eq!(second.sync(&mut two).await, 5, "state, three empty phases, complete");
    let mut chats = Vec::new();
    for at in 0..22 {
        world.pass(Duration::from_secs(1));
        chats.push(ana.create(&mut one, 1 + at % 3).await);
    }
    // Ahead of its floor, as a chat may be for a minute.
    ana.write(&mut one, &chats[3], &Edit { puts: vec![title()], ..Edit::default() }).await;
    let mut third = world.second(&ana).await;
    for person in [&mut second, &mut third] {
        let mut socket = world.connect(person).await;
        person.sync(&mut socket).await;
        assert_eq!(person.device.chats.len(), 22);
        for (chat, room) in &ana.device.chats {
            assert_eq!(person.device.chats[chat].items, room.items);
        }
    }
    // Nothing new: nothing is sent again but the account.
    let gone = ana.device.chats[&chats[2]].items.keys().next().unwrap().clone();
    let edit = Edit { removes: vec![gone], new_key: true, floor: true, ..Edit::default() };
    ana.write(&mut one, &chats[2], &edit).await;
    let mut socket = world.connect(&second).await;
    second.sync(&mut socket).await;
    assert_eq!(second.device.chats[&chats[2]].items, ana.device.chats[&chats[2]].items);
    assert_eq!(second.device.chats[&chats[2]].ring.len(), 2);
    // And what the second device writes, the first one takes.
    second
        .write(&mut socket, &chats[0], &Edit { puts: messages_of(2), floor: true, ..Edit::default() })
        .await;
    ana.sync(&mut one).await;
    assert_eq!(second.device.chats[&chats[0]].items, ana.device.chats[&chats[0]].items);
}

#[tokio::test]
async fn what_does_not_fit_in_a_frame_comes_in_parts() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ana.create(&mut one, 1).await;
    for _ in 0..3 {
        let edit = Edit { puts: messages_of(15), length: 200_000, ..Edit::default() };
        ana.write(&mut one, &chat, &edit).await;
    }
    let other = ana.create(&mut one, 2).await;
    let mut second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let frames = second.sync(&mut two).await;
    assert_eq!(frames, 6, "one more than for a chat that fits");
    for chat in [chat, other] {
        assert_eq!(second.device.chats[&chat].items, ana.device.chats[&chat].items);
    }
}

#[tokio::test]
async fn a_chat_that_changes_between_its_parts_is_asked_for_again() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ana.create(&mut one, 0).await;
    for _ in 0..3 {
        let edit = Edit { puts: messages_of(15), length: 200_000, ..Edit::default() };
        ana.write(&mut one, &chat, &edit).await;
    }
    let mut second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let have = Versions { messages_v: 0, title_v: 0, draft_v: 0 };
    let chats = Map::new([(chat.clone(), have)].into()).unwrap();
    let request = ClientEvent::RequestChatContentBatch(RequestChatContentBatch { chats });
    assert_eq!(ask(&mut two, request.clone()).await, Ok(vec![]));
    let first = news(&mut two).await;
    let ServerEvent::ChatContentBatchResponse(part) = &first.event else { panic!("{first:?}") };
    assert!(part.more && part.chats[0].more);
    ana.write(&mut one, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    assert_eq!(name(&[news(&mut two).await]), "conflict");
    assert_eq!(news(&mut two).await.event.name(), "chat_updated");
    second.sync(&mut two).await;
    assert_eq!(second.device.chats[&chat].items, ana.device.chats[&chat].items);
}

#[tokio::test]
async fn embeds_and_older_chats_come_when_they_are_asked_for() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ana.create(&mut one, 0).await;
    let embeds: Vec<_> = (0..3).map(|_| confidant_chat_format::EmbedId::random()).collect();
    for embed in &embeds {
        let edit = Edit { puts: vec![ItemId::Embed(embed.clone())], length: 3 << 20, ..Edit::default() };
        ana.write(&mut one, &chat, &edit).await;
    }
    let unknown = confidant_chat_format::EmbedId::random();
    let wanted = vec![embeds[0].clone(), unknown.clone(), embeds[1].clone(), embeds[2].clone()];
    let request = RequestEmbed { chat: chat.clone(), embeds: List::new(wanted).unwrap() };
    let frames = long(&mut one, ClientEvent::RequestEmbed(request)).await;
    assert_eq!(frames.len(), 3, "one embed fits in a frame");
    let (mut items, mut missing) = (BTreeMap::new(), Vec::new());
    for frame in frames {
        let ServerEvent::SendEmbedData(part) = frame.event else { panic!() };
        items.extend(
            part.items.into_vec().into_iter().map(|sent| (sent.item, sent.envelope.unwrap().into_sealed())),
        );
        missing.extend(part.missing.into_vec());
    }
    assert_eq!(missing, [unknown]);
    assert_eq!(items, ana.device.chats[&chat].items);
    let mut chats = vec![chat];
    for _ in 0..4 {
        world.pass(Duration::from_secs(1));
        chats.push(ana.create(&mut one, 1).await);
    }
    let older = async |one: &mut Socket, before: Option<ChatId>, limit| {
        let frames = long(one, ClientEvent::LoadMoreChats(LoadMoreChats { before, limit })).await;
        let ServerEvent::LoadMoreChatsResponse(more) = &frames[0].event else { panic!("{frames:?}") };
        (more.chats.iter().map(|chat| chat.chat.clone()).collect::<Vec<_>>(), more.older)
    };
    let newest: Vec<_> = chats.iter().rev().cloned().collect();
    assert_eq!(older(&mut one, None, 2).await, (newest[..2].to_vec(), true));
    assert_eq!(older(&mut one, Some(newest[1].clone()), 3).await, (newest[2..].to_vec(), false));
    assert_eq!(older(&mut one, Some(newest[4].clone()), 100).await, (vec![], false));
}

#[tokio::test]
async fn data_manifest_and_offline_writes_are_stored_and_told() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut second = world.second(&ana).await;
    let (mut one, mut two) = (world.connect(&ana).await, world.connect(&second).await);
    let kind = confidant_chat_format::FieldName::parse("settings").unwrap();
    for at in 0..3 {
        let name_of = confidant_chat_format::FieldName::parse(&format!("n{at}")).unwrap();
        let data = Envelope::new(ana.device.seal_data(&kind, &name_of, 1)).unwrap();
        let update = UpdateData { kind: kind.clone(), name: name_of, expected: 0, data };
        let frames = ask(&mut one, ClientEvent::UpdateData(update.clone())).await.unwrap();
        assert_eq!(name(&frames), "data_updated");
        assert_eq!(news(&mut two).await.seq, frames[0].seq);
        assert_eq!(name(&ask(&mut one, ClientEvent::UpdateData(update)).await.unwrap()), "write_conflict");
    }
    let request = ClientEvent::RequestData(RequestData { kind: Some(kind) });
    let frames = ask(&mut one, request).await.unwrap();
    let ServerEvent::DataRecords(DataRecords { records, more: false }) = &frames[0].event else { panic!() };
    assert_eq!(records.len(), 3);
    // A manifest on its own, then the same again.
    let chat = ana.create(&mut one, 1).await;
    ana.write(&mut one, &chat, &Edit { puts: messages_of(1), ..Edit::default() }).await;
    let list = ana.device.list(vec![Shelf::of(&chat)]);
    let (floors, manifest) = sent_list(list);
    let update = UpdateManifest { floors: List::new(floors).unwrap(), manifest };
    assert_eq!(
        name(&ask(&mut one, ClientEvent::UpdateManifest(update.clone())).await.unwrap()),
        "manifest_stored"
    );
    let frames = ask(&mut one, ClientEvent::UpdateManifest(update)).await.unwrap();
    let ServerEvent::WriteConflict(conflict) = &frames[0].event else { panic!("{frames:?}") };
    assert_eq!(conflict.manifest, ana.device.manifest.map(|(mark, _)| mark.rev));
    sync_after_news(&mut second, &mut two).await;
    // Both wrote offline: one write of two to the same head is stored.
    let (first, after) = ana.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    let (late, _) = second.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    let (fresh, _) = after.write(&ChatId::random(), &Edit::default());
    let head = first.head.clone();
    let changes = SyncOfflineChanges {
        writes: List::new(vec![sent(first), sent(late), sent(fresh)]).unwrap(),
        drafts: List::default(),
    };
    let frames = ask(&mut one, ClientEvent::SyncOfflineChanges(changes)).await.unwrap();
    let ServerEvent::OfflineSyncComplete(complete) = &frames[0].event else { panic!("{frames:?}") };
    use confidant_chat_protocol::OfflineResult::{Conflict, Stored};
    let [Stored(_), Conflict(conflict), Stored(_)] = &complete.results[..] else { panic!("{complete:?}") };
    assert_eq!(conflict.head, Some(Digest::of(head.as_bytes())), "so a lost answer is told from a lost race");
    assert_eq!((conflict.messages_v, conflict.ring), (Some(3), Some(1)));
    let frames = ask(&mut one, ClientEvent::SyncStatusRequest(SyncStatusRequest { since: 1 })).await.unwrap();
    let ServerEvent::SyncStatus(status) = &frames[0].event else { panic!("{frames:?}") };
    assert!(!status.gap && !status.more);
    let numbers: Vec<u64> = status.changes.iter().map(|change| change.seq).collect();
    assert_eq!(numbers, (2..=status.seq).collect::<Vec<_>>());
    let frames =
        ask(&mut one, ClientEvent::SyncStatusRequest(SyncStatusRequest { since: 999 })).await.unwrap();
    let ServerEvent::SyncStatus(status) = &frames[0].event else { panic!("{frames:?}") };
    assert!(status.gap);
}

#[tokio::test]
async fn a_posted_frame_is_answered_like_one_on_a_socket() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ana.create(&mut one, 1).await;
    let (write, after) = ana.device.write(&chat, &Edit { puts: messages_of(1), ..Edit::default() });
    let frame = ClientFrame { id: 3, event: ClientEvent::EncryptedChatMetadata(sent(write)) };
    let caller = world.caller(Some(&ana.session));
    let answer = world.service.answer("/chats/events", &caller, &frame.write().unwrap()).await.unwrap();
    let Body::Frames(mut frames) = answer.body else { panic!() };
    let stored = frames.next().await.unwrap();
    assert_eq!((stored.re, stored.event.name()), (Some(3), "encrypted_metadata_stored"));
    assert_eq!(frames.next().await, None);
    ana.device = after;
    assert_eq!(news(&mut one).await.event.name(), "chat_updated");
    let nobody = world.service.answer("/chats/events", &world.caller(None), &frame.write().unwrap()).await;
    assert_eq!(nobody.unwrap_err().error.name(), "unauthorised");
    assert_eq!(world.service.answer("/nowhere", &caller, b"{}").await.unwrap_err().error.name(), "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_while_somebody_writes_fits_together() {
    let world = Arc::new(World::new().await);
    let mut ana = world.register("ana").await;
    let mut one = world.connect(&ana).await;
    let chat = ChatId::random();
    let puts = messages_of(20);
    ana.write(&mut one, &chat, &Edit { puts: puts.clone(), ..Edit::default() }).await;
    let reader = ana.clone();
    let (stop, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let writer = {
        let (world, stop, stopped) = (Arc::clone(&world), Arc::clone(&stop), Arc::clone(&stopped));
        tokio::spawn(async move {
            while stop.load(Ordering::SeqCst) == 0 {
                world.pass(Duration::from_secs(1));
                // Every message is replaced, so that lists and envelopes of two moments never agree.
                ana.write(&mut one, &chat, &Edit { puts: puts.clone(), floor: true, ..Edit::default() })
                    .await;
                stopped.fetch_add(1, Ordering::SeqCst);
            }
            (ana, chat)
        })
    };
    for _ in 0..20 {
        let mut other = world.second(&reader).await;
        let mut socket = world.connect(&other).await;
        other.sync(&mut socket).await;
        assert_eq!(other.device.chats.len(), 1);
    }
    stop.store(1, Ordering::SeqCst);
    let (ana, chat) = writer.await.unwrap();
    assert!(stopped.load(Ordering::SeqCst) > 0);
    let mut other = world.second(&reader).await;
    let mut socket = world.connect(&other).await;
    other.sync(&mut socket).await;
    assert_eq!(other.device.chats[&chat].items, ana.device.chats[&chat].items);
}

/// Syncs on a socket that has news waiting, which the sync makes old.
async fn sync_after_news(person: &mut Person, socket: &mut Socket) {
    let idle = Duration::from_millis(1);
    while tokio::time::timeout(idle, socket.news()).await.is_ok() {}
    person.sync(socket).await;
}
