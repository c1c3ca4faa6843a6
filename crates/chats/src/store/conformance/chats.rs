//! Laws about chats, lists and the feed.

use confidant_chat_format::{
    ChatId, Digest, EmbedId, Entry, ItemId, Place, Refused, RingOf, Shelf, Text, seal_record,
};
use confidant_seal::{Context, Key, Sealed, Suite, seal};

use super::super::*;
use super::Fresh;
use super::device::{Device, Edit, NOW, message, title};

pub(super) async fn a_chat_is_written_read_and_checked_by_another_device(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let mut phone = ana.clone();
    let chat = ana.create(store, 2).await;
    phone.pull(&*fresh.other).await;
    let (first, embed) = (message(), ItemId::Embed(EmbedId::random()));
    let puts = vec![first.clone(), title(), embed.clone()];
    ana.put(store, &chat, &Edit { puts, ..Edit::default() }).await.unwrap();
    let edit =
        Edit { puts: vec![title(), first], removes: vec![embed], new_key: true, floor: true, length: 0 };
    let written = ana.put(store, &chat, &edit).await.unwrap();
    assert_eq!(written.rev, 3);
    // One device knows the beginning, the other one nothing.
    let mut tablet = phone.clone();
    tablet.chats.clear();
    for device in [&mut phone, &mut tablet] {
        device.pull(&*fresh.other).await;
        assert_eq!(device.chats[&chat].items, ana.chats[&chat].items);
        assert_eq!(device.chats[&chat].ring.len(), 2);
    }
    let delta = store.chat(&ana.id, &chat, Have { messages_v: 2, ..Have::default() }).await.unwrap();
    assert_eq!((delta.chat.title_v, delta.changed.len(), delta.gone.len()), (2, 2, 1));
    let seqs: Vec<u32> = delta.changed.iter().map(|line| line.seq).collect();
    assert_eq!(seqs.iter().max(), Some(&4), "an edit keeps its place: {seqs:?}");
    // Pages have at least one item, and end where they are full.
    let ids: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let page = store.items(&ana.id, &chat, ids.clone(), 1).await.unwrap();
    assert_eq!((page.len(), &page[0].item), (1, &ids[0]));
    phone.put(&*fresh.other, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await.unwrap();
    ana.pull(store).await;
}

pub(super) async fn a_write_that_is_wrong_anywhere_changes_nothing(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let mut bea = Device::register(store, "bea").await;
    let chat = ana.create(store, 2).await;
    let theirs = bea.create(store, 1).await;
    let old = ana.chats[&chat].items.keys().next().unwrap().clone();
    let edit =
        Edit { puts: vec![message(), old.clone(), title()], floor: true, new_key: true, ..Edit::default() };
    let (good, after) = ana.write(&chat, &edit);
    let foreign = |item: &ItemId, rev| bea.seal(&theirs, &Place::Item(&chat, item), rev, b"{}");
    let conflict = StoreError::Conflict { now: 1 };
    let suite_2 = {
        let context = Context { purpose: "head", owner: "", container: "", object: "", field: "" };
        seal(&Key::random(), Suite::ChaCha20Poly1305, &context, 2, b"{}")
    };
    let mut spoiled: Vec<(Write, StoreError)> = Vec::new();
    let mut spoil = |change: &dyn Fn(&mut Write), error: StoreError| {
        let mut bad = good.clone();
        change(&mut bad);
        spoiled.push((bad, error));
    };
    spoil(&|write| write.expected = 2, StoreError::Malformed("the head's revision is not the next one"));
    spoil(&|write| write.live = Digest::ZERO, Refused::ListRefused.into());
    spoil(&|write| write.chain = Digest::ZERO, Refused::Forked.into());
    spoil(&|write| write.puts.truncate(1), Refused::ListRefused.into());
    spoil(&|write| write.puts[0].item = message(), Refused::ListRefused.into());
    spoil(&|write| write.puts[1].expected = 0, conflict.clone());
    spoil(&|write| write.puts[0].expected = 1, conflict.clone());
    spoil(&|write| write.puts[1].expected = 2, conflict.clone());
    spoil(&|write| write.puts[0].envelope = foreign(&write.puts[0].item, 1), Refused::KeyRefused.into());
    // A key of the right ring, for another kind of item.
    spoil(&|write| write.puts[0].envelope = write.puts[2].envelope.clone(), Refused::KeyRefused.into());
    spoil(&|write| write.puts[0].envelope = Sealed::from_bytes(vec![1; 20]), Refused::RecordRefused.into());
    spoil(&|write| write.head = suite_2.clone(), Refused::RecordRefused.into());
    spoil(&|write| write.append = None, Refused::KeyRefused.into());
    // A key that the ring lists, and not the newest.
    let old_key = ana.seal(&chat, &Place::Head(&chat), 2, b"{}");
    spoil(&|write| write.head = old_key.clone(), Refused::KeyRefused.into());
    spoil(&|write| write.append.as_mut().unwrap().n = 3, conflict.clone());
    spoil(&|write| write.append.as_mut().unwrap().n = 1, conflict.clone());
    spoil(&|write| write.removes = vec![old.clone()], StoreError::Malformed("an item is there twice"));
    spoil(&|write| write.removes = vec![message()], conflict.clone());
    spoil(&|write| write.list.as_mut().unwrap().manifest.chain = Digest::ZERO, Refused::Forked.into());
    spoil(&|write| write.list.as_mut().unwrap().manifest.live = Digest::ZERO, Refused::ListRefused.into());
    spoil(&|write| write.list.as_mut().unwrap().floors[0].expected = 0, StoreError::Conflict { now: 2 });
    spoil(&|write| write.list.as_mut().unwrap().floors.clear(), Refused::ListRefused.into());
    spoil(&|write| write.account = bea.id.clone(), StoreError::NotFound);
    spoil(&|write| write.chat = theirs.clone(), StoreError::NotFound);
    let before = ana.clone();
    for (at, (bad, error)) in spoiled.into_iter().enumerate() {
        assert_eq!(store.write(bad).await, Err(error), "spoiled {at}");
    }
    // A key that the ring has already, under a new number.
    let mut bad = good.clone();
    bad.append = Some(Entry { n: 2, ..ana.chats[&chat].ring[0].clone() });
    assert_eq!(store.write(bad).await, Err(Refused::RingForked.into()));
    ana.pull(store).await;
    assert_eq!(ana.chats[&chat].items, before.chats[&chat].items);
    assert_eq!(store.account(&ana.id).await.unwrap().seq, 3);
    store.write(good).await.unwrap();
    ana = after;
    ana.pull(store).await;
}

pub(super) async fn deleted_ids_are_not_used_again(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let mut phone = ana.clone();
    let chat = ana.create(store, 2).await;
    phone.pull(store).await;
    let gone = ana.chats[&chat].items.keys().next().unwrap().clone();
    ana.put(store, &chat, &Edit { removes: vec![gone.clone()], ..Edit::default() }).await.unwrap();
    let again = ana.put(store, &chat, &Edit { puts: vec![gone.clone()], ..Edit::default() }).await;
    assert_eq!(again, Err(StoreError::Conflict { now: 2 }));
    phone.pull(store).await;
    assert!(!phone.chats[&chat].items.contains_key(&gone));
    // Without its floor a chat is neither created nor deleted.
    let (mut delete, after) = ana.deletion(&chat);
    let floors = std::mem::take(&mut delete.list.floors);
    assert_eq!(store.delete_chat(delete.clone()).await, Err(Refused::ListRefused.into()));
    delete.list.floors = floors;
    let stale = DeleteChat { expected: 1, ..delete.clone() };
    assert_eq!(store.delete_chat(stale).await, Err(StoreError::Conflict { now: 2 }));
    store.delete_chat(delete.clone()).await.unwrap();
    assert_eq!(store.delete_chat(delete).await, Err(StoreError::NotFound));
    ana = after;
    let (mut write, _) = ana.write(&chat, &Edit::default());
    assert_eq!(store.write(write.clone()).await, Err(StoreError::Conflict { now: 0 }));
    write.list = None;
    assert_eq!(store.write(write).await, Err(Refused::ListRefused.into()));
    assert_eq!(store.ring(&ana.id, &RingName::Chat(chat.clone())).await.unwrap(), []);
    phone.pull(store).await;
    assert!(phone.chats.is_empty());
    let last = store.changes(&ana.id, 4, 10).await.unwrap().changes;
    assert_eq!(
        last.iter().map(|change| &change.what).collect::<Vec<_>>(),
        [&Changed::Deleted(chat), &Changed::List]
    );
}

pub(super) async fn of_two_writers_of_one_head_one_wins(fresh: &Fresh) {
    let mut ana = Device::register(&*fresh.store, "ana").await;
    let chat = ana.create(&*fresh.store, 1).await;
    for round in 2..12 {
        let edit = || Edit { puts: vec![message()], new_key: round % 3 == 0, ..Edit::default() };
        let (mut one, mut two) = (ana.clone(), ana.clone());
        let (edits, (store, other)) = ((edit(), edit()), (&*fresh.store, &*fresh.other));
        let raced = tokio::join!(one.put(store, &chat, &edits.0), two.put(other, &chat, &edits.1));
        let (winner, loser) = match raced {
            (Ok(written), lost) => (written, lost),
            (lost, won) => (won.unwrap(), lost),
        };
        assert_eq!(winner.rev, round);
        assert_eq!(loser, Err(StoreError::Conflict { now: round }));
        ana.pull(store).await;
        assert_eq!(ana.chats[&chat].items.len(), round as usize);
    }
}

pub(super) async fn another_accounts_ids_are_not_found(fresh: &Fresh) {
    let store = &*fresh.store;
    let (mut ana, bea) = (Device::register(store, "ana").await, Device::register(store, "bea").await);
    let chat = ana.create(store, 1).await;
    let items: Vec<ItemId> = ana.chats[&chat].items.keys().cloned().collect();
    let not_found = StoreError::NotFound;
    assert_eq!(store.chat(&bea.id, &chat, Have::default()).await, Err(not_found.clone()));
    assert_eq!(store.items(&bea.id, &chat, items.clone(), 1000).await, Err(not_found.clone()));
    assert_eq!(store.opened(&bea.id, &chat, NOW).await, Err(not_found.clone()));
    assert_eq!(store.ring(&bea.id, &RingName::Chat(chat.clone())).await, Ok(vec![]));
    assert_eq!(store.lines(&bea.id, Phase::Recent).await, Ok(vec![]));
    let envelope = Some(ana.seal(&chat, &Place::Draft(&chat), 1, b"{}"));
    let draft = PutDraft { account: bea.id.clone(), chat: chat.clone(), expected: 0, envelope, now: NOW };
    assert_eq!(store.put_draft(draft).await, Err(not_found.clone()));
    let (mut delete, _) = ana.deletion(&chat);
    delete.account = bea.id.clone();
    assert_eq!(store.delete_chat(delete).await, Err(not_found));
    // The same id in another account is another chat, and nobody learns that it was taken.
    let mut bea = bea;
    bea.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await.unwrap();
    ana.pull(store).await;
    bea.pull(store).await;
    assert_ne!(ana.chats[&chat].items, bea.chats[&chat].items);
    // An item of one chat is none of another.
    let other = ana.create(store, 1).await;
    assert_eq!(store.items(&ana.id, &other, items, 1000).await, Ok(vec![]));
}

pub(super) async fn sizes_and_counts_are_limited(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 0).await;
    let (write, _) = ana.write(&chat, &Edit { puts: vec![message()], ..Edit::default() });
    let mut large = write.clone();
    let long = vec![b'x'; limits::MESSAGE_BYTES];
    large.puts[0].envelope = ana.seal(&chat, &Place::Item(&chat, &large.puts[0].item), 1, &long);
    assert_eq!(store.write(large).await, Err(StoreError::TooLarge("message")));
    let mut large = write.clone();
    large.head = ana.seal(&chat, &Place::Head(&chat), 2, &vec![b'x'; limits::HEAD_BYTES]);
    assert_eq!(store.write(large).await, Err(StoreError::TooLarge("head")));
    let mut many = write.clone();
    many.removes = (0..limits::ITEMS_A_WRITE).map(|_| message()).collect();
    assert_eq!(store.write(many).await, Err(StoreError::TooMany("items in one write")));
    for _ in 0..5 {
        let puts = (0..limits::ITEMS_A_WRITE).map(|_| message()).collect();
        ana.put(store, &chat, &Edit { puts, ..Edit::default() }).await.unwrap();
    }
    let one_more = ana.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await;
    assert_eq!(one_more, Err(StoreError::TooMany("items in this chat")));
    let gone = ana.chats[&chat].items.keys().next().unwrap().clone();
    let swap = Edit { puts: vec![message()], removes: vec![gone], ..Edit::default() };
    assert_eq!(ana.put(store, &chat, &swap).await.unwrap().rev, 7);
    let delta = store.chat(&ana.id, &chat, Have { messages_v: 6, ..Have::default() }).await.unwrap();
    assert_eq!((delta.changed.len(), delta.gone.len(), delta.chat.count), (1, 1, limits::ITEMS));
}

pub(super) async fn drafts_are_not_part_of_the_head(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    let json = Text { v: 1, body: "typing".to_owned() }.to_json();
    let put = async |device: &Device, expected, rev: Option<u32>| {
        let envelope = rev.map(|rev| device.seal(&chat, &Place::Draft(&chat), rev, &json));
        store
            .put_draft(PutDraft {
                account: device.id.clone(),
                chat: chat.clone(),
                expected,
                envelope,
                now: NOW,
            })
            .await
    };
    assert!(put(&ana, 0, Some(1)).await.is_ok());
    assert_eq!(put(&ana, 0, Some(2)).await, Err(StoreError::Conflict { now: 1 }));
    assert_eq!(put(&ana, 1, Some(1)).await, Err(Refused::RolledBack.into()));
    let delta = store.chat(&ana.id, &chat, Have { messages_v: 1, ..Have::default() }).await.unwrap();
    assert_eq!((delta.chat.messages_v, delta.chat.draft_v, delta.changed.len()), (1, 1, 0));
    assert!(delta.draft.unwrap().envelope.is_some());
    assert!(put(&ana, 1, None).await.is_ok());
    let have = Have { messages_v: 1, draft_v: 1, trail_from: 1 };
    let delta = store.chat(&ana.id, &chat, have).await.unwrap();
    assert_eq!(delta.draft, Some(DraftRow { rev: 2, envelope: None }));
    ana.pull(store).await;
    let have = Have { draft_v: 2, ..have };
    assert_eq!(store.chat(&ana.id, &chat, have).await.unwrap().draft, None);
}

pub(super) async fn floors_and_manifest_follow_from_those_before(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let mut phone = ana.clone();
    let chat = ana.create(store, 1).await;
    // A floor alone, as it is written within a minute of a chat.
    ana.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await.unwrap();
    let list = ana.list(vec![Shelf::of(&chat)]);
    let write = ListWrite { account: ana.id.clone(), append: vec![], list, now: NOW };
    store.write_list(write.clone()).await.unwrap();
    assert_eq!(fresh.other.write_list(write).await, Err(StoreError::Conflict { now: 3 }));
    // A new key of the account and the manifest that names it are one write.
    let (uk, g) = (Key::random(), ana.ak.generation());
    let entry = Entry::seal(&ana.ak, &ana.id, RingOf::Account, 2, &uk, g);
    ana.ring.push(entry.clone());
    let list = ana.list(vec![Shelf::of(&chat)]);
    let of = RingName::Account;
    let write = ListWrite { account: ana.id.clone(), append: vec![RingEntry { of, entry }], list, now: NOW };
    let without = ListWrite { append: vec![], ..write.clone() };
    assert_eq!(store.write_list(without).await, Err(Refused::KeyRefused.into()));
    let mut under_old = write.clone();
    let old = confidant_chat_format::Ring::open(&ana.ak, &ana.id, RingOf::Account, &ana.ring[..1]).unwrap();
    under_old.list.manifest.envelope = seal_record(old.newest(), &ana.id, &Place::Manifest, 4, b"{}");
    assert_eq!(store.write_list(under_old).await, Err(Refused::KeyRefused.into()));
    let mut of_chat = write.clone();
    of_chat.append[0].of = RingName::Chat(chat);
    assert_eq!(
        store.write_list(of_chat).await,
        Err(StoreError::Malformed("a chat's key comes with the chat"))
    );
    store.write_list(write).await.unwrap();
    phone.pull(store).await;
    assert_eq!(phone.ring.len(), 2);
}

pub(super) async fn changes_are_numbered_without_gaps(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    for _ in 0..5 {
        ana.put(store, &chat, &Edit { puts: vec![message()], ..Edit::default() }).await.unwrap();
        assert!(
            ana.clone()
                .put(store, &ChatId::random(), &Edit { removes: vec![message()], ..Edit::default() })
                .await
                .is_err()
        );
    }
    let all = store.changes(&ana.id, 0, 100).await.unwrap();
    assert_eq!(all.changes.iter().map(|change| change.seq).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    assert_eq!((all.newest, all.is_behind), (8, false));
    assert_eq!(store.changes(&ana.id, 6, 1).await.unwrap().changes, all.changes[6..7]);
    assert_eq!(store.changes(&ana.id, 8, 9).await.unwrap().changes, []);
    assert_eq!(store.trim_feed(&ana.id, 5).await, Ok(5));
    assert_eq!(store.trim_feed(&ana.id, 3).await, Ok(0));
    assert!(!store.changes(&ana.id, 5, 9).await.unwrap().is_behind);
    for lost in [0, 4, 9] {
        let behind = Changes { newest: 8, is_behind: true, changes: vec![] };
        assert_eq!(store.changes(&ana.id, lost, 9).await.unwrap(), behind);
    }
}

pub(super) async fn chats_come_in_phases(fresh: &Fresh) {
    let store = &*fresh.store;
    let mut ana = Device::register(store, "ana").await;
    let mut chats = Vec::new();
    for at in 0..125 {
        let chat = ChatId::random();
        let (write, after) = ana.write(&chat, &Edit::default());
        store.write(Write { now: Millis(NOW.0 + at / 2), ..write }).await.unwrap();
        ana = after;
        chats.push((at / 2, chat));
    }
    chats.sort_by(|one, other| other.0.cmp(&one.0).then(other.1.cmp(&one.1)));
    let names = |lines: Vec<ChatLine>| lines.into_iter().map(|line| line.chat).collect::<Vec<_>>();
    let expected: Vec<ChatId> = chats.iter().map(|(_, chat)| chat.clone()).collect();
    assert_eq!(names(store.lines(&ana.id, Phase::LastOpened).await.unwrap()), expected[..1]);
    store.opened(&ana.id, &expected[70], Millis(NOW.0 + 1000)).await.unwrap();
    assert_eq!(names(store.lines(&ana.id, Phase::LastOpened).await.unwrap()), expected[70..71]);
    assert_eq!(names(store.lines(&ana.id, Phase::Recent).await.unwrap()), expected[..20]);
    let rest = store.lines(&ana.id, Phase::Rest).await.unwrap();
    let last = rest.last().unwrap().clone();
    assert_eq!(names(rest), expected[20..100]);
    let older = store.lines(&ana.id, Phase::Older(last.updated_at, last.chat, 10)).await.unwrap();
    assert_eq!(names(older), expected[100..110]);
}
