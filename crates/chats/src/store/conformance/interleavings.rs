//! Two devices of one person write at random, know more or less of each other, and lose some races. Whatever happens, a
//! third device that knows nothing and one that was there at the beginning accept what the store has.

use std::cell::Cell;
use std::collections::BTreeSet;

use confidant_chat_format::{ChatId, ItemId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::super::*;
use super::Fresh;
use super::device::{Device, Edit, message, title};

#[derive(Clone, Debug)]
enum Act {
    Create(usize),
    Say(usize, bool),
    Retitle(usize),
    Edit(usize, usize),
    Remove(usize, usize),
    NewKey(usize),
    Delete(usize),
    Pull,
}

fn acts() -> impl Strategy<Value = Vec<(bool, Act)>> {
    let act = prop_oneof![
        1 => (0..3usize).prop_map(Act::Create),
        5 => (any::<usize>(), any::<bool>()).prop_map(|(chat, floor)| Act::Say(chat, floor)),
        1 => any::<usize>().prop_map(Act::Retitle),
        2 => any::<(usize, usize)>().prop_map(|(chat, item)| Act::Edit(chat, item)),
        2 => any::<(usize, usize)>().prop_map(|(chat, item)| Act::Remove(chat, item)),
        1 => any::<usize>().prop_map(Act::NewKey),
        1 => any::<usize>().prop_map(Act::Delete),
        3 => Just(Act::Pull),
    ];
    prop::collection::vec((any::<bool>(), act), 1..40)
}

pub(super) async fn two_devices_never_break_an_invariant(fresh: &Fresh) {
    let config =
        Config { cases: CASES, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let person = Cell::new(0);
    let played = TestRunner::new(config).run(&acts(), |acts| {
        person.set(person.get() + 1);
        let name = format!("person {}", person.get());
        block_in_place(|| Handle::current().block_on(play(fresh, &name, &acts)));
        Ok(())
    });
    played.unwrap();
    fresh.store.check().await.unwrap();
}

/// Both at the same moment, again and again, each through a process of its own.
pub(super) async fn two_devices_at_once_lose_nothing(fresh: &Fresh) {
    let mut first = Device::register(&*fresh.store, "ana").await;
    let chat = first.create(&*fresh.store, 0).await;
    let say = async |store: &dyn ChatStore| {
        let mut device = first.clone();
        for round in 0..25 {
            let edit = Edit {
                puts: vec![message()],
                floor: round % 3 == 0,
                new_key: round % 10 == 9,
                ..Edit::default()
            };
            while let Err(error) = device.put(store, &chat, &edit).await {
                assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
                device.pull(store).await;
            }
        }
        device
    };
    let (mut one, mut two) = tokio::join!(say(&*fresh.store), say(&*fresh.other));
    one.pull(&*fresh.store).await;
    two.pull(&*fresh.store).await;
    assert_eq!(one.chats[&chat].items.len(), 50);
    assert_eq!(one.chats[&chat].items, two.chats[&chat].items);
    assert_eq!(one.chats[&chat].head.unwrap().0.rev, 51);
    let feed = fresh.other.changes(&one.id, 0, 1000).await.unwrap();
    assert!(feed.changes.iter().map(|change| change.seq).eq(1..=feed.newest));
}

async fn play(fresh: &Fresh, name: &str, acts: &[(bool, Act)]) {
    let stores = [&*fresh.store, &*fresh.other];
    let first = Device::register(stores[0], name).await;
    let mut devices = [first.clone(), first.clone()];
    let (mut seq, mut deleted) = (1, BTreeSet::new());
    for (second, act) in acts {
        let which = usize::from(*second);
        let outcome = step(stores[which], &mut devices[which], act, &mut deleted).await;
        match outcome {
            Ok(changes) => seq += changes,
            Err(StoreError::Conflict { .. } | StoreError::NotFound) => {
                devices[which].pull(stores[which]).await
            }
            Err(error) => panic!("{act:?} of {acts:?}: {error}"),
        }
        assert_eq!(stores[0].account(&first.id).await.unwrap().seq, seq, "{act:?} of {acts:?}");
    }
    let feed = stores[0].changes(&first.id, 0, 1000).await.unwrap().changes;
    assert_eq!(feed.iter().map(|change| change.seq).collect::<Vec<_>>(), (1..=seq).collect::<Vec<_>>());
    let [mut one, mut two] = devices;
    let mut late = first;
    for device in [&mut one, &mut two, &mut late] {
        device.pull(stores[0]).await;
    }
    for (chat, room) in &late.chats {
        assert!(!deleted.contains(chat));
        assert_eq!(room.items, one.chats[chat].items, "{acts:?}");
        assert_eq!(room.items, two.chats[chat].items, "{acts:?}");
        let have = Have { trail_from: 1, ..Have::default() };
        let delta = stores[1].chat(&late.id, chat, have).await.unwrap();
        let steps = u32::try_from(delta.trail.steps.len()).unwrap();
        assert_eq!(steps + 1, delta.chat.messages_v, "every revision has its step");
        let places: BTreeSet<u32> = delta.changed.iter().map(|line| line.seq).collect();
        assert_eq!(places.len(), delta.changed.len(), "no place in the order is given twice");
    }
    assert_eq!((late.chats.len(), late.chats.len()), (one.chats.len(), two.chats.len()));
}

/// Does it with what the device knows; says how many changes the feed has more.
async fn step(
    store: &dyn ChatStore,
    device: &mut Device,
    act: &Act,
    deleted: &mut BTreeSet<ChatId>,
) -> Result<u64> {
    let pick = |at: usize| device.chats.keys().nth(at % device.chats.len().max(1)).cloned();
    let item = |chat: &ChatId, at: usize| {
        let items = &device.chats[chat].items;
        items.keys().nth(at % items.len().max(1)).cloned()
    };
    let (chat, edit) = match act {
        Act::Pull => {
            device.pull(store).await;
            return Ok(0);
        }
        Act::Create(messages) => {
            let puts: Vec<ItemId> = (0..*messages).map(|_| message()).collect();
            let edit = Edit { puts, ..Edit::default() };
            device.put(store, &ChatId::random(), &edit).await?;
            return Ok(2);
        }
        Act::Delete(at) => {
            let Some(chat) = pick(*at) else { return Ok(0) };
            let (delete, after) = device.deletion(&chat);
            store.delete_chat(delete).await?;
            *device = after;
            deleted.insert(chat);
            return Ok(2);
        }
        Act::Say(at, floor) => (pick(*at), Edit { puts: vec![message()], floor: *floor, ..Edit::default() }),
        Act::Retitle(at) => (pick(*at), Edit { puts: vec![title()], ..Edit::default() }),
        Act::NewKey(at) => (pick(*at), Edit { new_key: true, ..Edit::default() }),
        Act::Edit(at, which) => {
            let chat = pick(*at);
            let puts = chat.as_ref().and_then(|chat| item(chat, *which)).into_iter().collect();
            (chat, Edit { puts, ..Edit::default() })
        }
        Act::Remove(at, which) => {
            let chat = pick(*at);
            let removes = chat.as_ref().and_then(|chat| item(chat, *which)).into_iter().collect();
            (chat, Edit { removes, ..Edit::default() })
        }
    };
    let Some(chat) = chat else { return Ok(0) };
    device.put(store, &chat, &edit).await?;
    Ok(if edit.floor { 2 } else { 1 })
}

const CASES: u32 = 24;
