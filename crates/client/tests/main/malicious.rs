//! A server that lies: each lie ends in its own error, and nothing false is shown.
//!
//! The liar stands between a device and the real service and changes what passes. A device "without memory" logged in
//! just now; one "with memory" synced before the lie.

mod entering;
mod key_holder;
mod oracle;

use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_chat_format::{ChatId, Digest, ItemId, MessageId, PublicKey};
use confidant_chat_protocol::{
    AccountState, ChatSent, Envelope, ItemSent, KeyEntry, List, Map, ServerEvent, ServerFrame, limits,
};
use confidant_client::{Device, Error, Phase, Posted, Transport, TransportError};
use parking_lot::Mutex;

use crate::devices::bodies;
use crate::world::{Between, DRAFTS_MS, MemoryFiles, Person, Through, World};

type Lie = Box<dyn FnMut(&mut ServerFrame) + Send>;
type PostLie = Box<dyn FnMut(&str, &mut Posted) + Send>;

#[derive(Default)]
struct Liar {
    lie: Mutex<Option<Lie>>,
    post: Mutex<Option<PostLie>>,
    /// What passed, for a replay.
    heard: Mutex<Vec<ServerFrame>>,
}

impl Liar {
    fn tells(&self, lie: impl FnMut(&mut ServerFrame) + Send + 'static) {
        *self.lie.lock() = Some(Box::new(lie));
    }

    fn posts(&self, lie: impl FnMut(&str, &mut Posted) + Send + 'static) {
        *self.post.lock() = Some(Box::new(lie));
    }
}

impl Between for Liar {
    fn receives(&self, mut frame: ServerFrame) -> Vec<ServerFrame> {
        self.heard.lock().push(frame.clone());
        if let Some(lie) = &mut *self.lie.lock() {
            lie(&mut frame);
        }
        vec![frame]
    }

    fn posted(&self, path: &str, mut posted: Posted) -> Result<Posted, TransportError> {
        if let Some(lie) = &mut *self.post.lock() {
            lie(path, &mut posted);
        }
        Ok(posted)
    }
}

/// An honest device, and what it wrote.
struct Scene {
    world: World,
    ana: Person,
    one: Device,
    chat: ChatId,
    other: ChatId,
    ids: Vec<MessageId>,
}

impl Scene {
    async fn new() -> Self {
        let world = World::new().await;
        let (mut one, ana) = world.ana().await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        let other = one.new_chat(Some("Other")).unwrap();
        let ids = ["first", "second", "third"].map(|body| one.say(&chat, body).unwrap()).to_vec();
        one.say(&other, "elsewhere").unwrap();
        one.set_draft(&chat, Some("a draft")).unwrap();
        one.set_data("settings", "theme", Some("dark")).unwrap();
        one.flush().await.unwrap();
        Self { world, ana, one, chat, other, ids }
    }

    fn way(&self) -> (Arc<Liar>, Arc<dyn Transport>) {
        let liar = Arc::new(Liar::default());
        let way = Arc::new(Through { inner: self.world.transport(), between: Arc::clone(&liar) });
        (liar, way)
    }

    /// A device that remembers nothing, over a liar.
    async fn stranger(&self) -> (Arc<Liar>, Device) {
        let (liar, way) = self.way();
        let device = self.world.second_over(way, &self.ana).await;
        (liar, device)
    }

    /// A device that has everything, over a liar.
    async fn friend(&self) -> (Arc<Liar>, Device) {
        let (liar, mut device) = self.stranger().await;
        device.sync(Phase::All).await.unwrap();
        (liar, device)
    }
}

fn edit_list<T, const N: usize>(list: &mut List<T, N>, edit: impl FnOnce(&mut Vec<T>)) {
    let mut items = std::mem::take(list).into_vec();
    edit(&mut items);
    *list = List::new(items).unwrap();
}

/// Changes every chat that a frame brings.
fn on_chats(frame: &mut ServerFrame, edit: impl FnMut(&mut ChatSent)) {
    match &mut frame.event {
        ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
            edit_list(&mut sent.chats, |chats| chats.iter_mut().for_each(edit));
        }
        ServerEvent::ChatContentBatchResponse(sent) => {
            edit_list(&mut sent.chats, |chats| chats.iter_mut().for_each(edit));
        }
        _ => {}
    }
}

fn drop_chat(frame: &mut ServerFrame, chat: &ChatId) {
    match &mut frame.event {
        ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
            edit_list(&mut sent.chats, |chats| chats.retain(|sent| sent.chat != *chat));
        }
        ServerEvent::ChatContentBatchResponse(sent) => {
            edit_list(&mut sent.chats, |chats| chats.retain(|sent| sent.chat != *chat));
            edit_list(&mut sent.missing, |missing| missing.push(chat.clone()));
        }
        _ => {}
    }
}

fn on_account(frame: &mut ServerFrame, edit: impl FnOnce(&mut AccountState)) {
    if let ServerEvent::AccountState(state) = &mut frame.event {
        edit(state);
    }
}

fn at(items: &[ItemSent], item: &ItemId) -> usize {
    items.iter().position(|sent| sent.item == *item).unwrap()
}

fn title() -> ItemId {
    ItemId::parse("meta:title").unwrap()
}

type ChatLie = Box<dyn Fn(&mut ChatSent, &BTreeMap<&'static str, ItemId>, &ItemSent) + Send + Sync>;

/// Lies about what a chat consists of.
fn chat_lies() -> Vec<(&'static str, &'static str, ChatLie)> {
    fn lie(
        what: &'static str,
        name: &'static str,
        lie: impl Fn(&mut Vec<ItemSent>, &BTreeMap<&'static str, ItemId>, &ItemSent) + Send + Sync + 'static,
    ) -> (&'static str, &'static str, ChatLie) {
        let wrapped: ChatLie =
            Box::new(move |chat, ids, foreign| edit_list(&mut chat.items, |items| lie(items, ids, foreign)));
        (what, name, wrapped)
    }
    let swap = |one: &'static str, two: &'static str, with_hash: bool| {
        move |items: &mut Vec<ItemSent>, ids: &BTreeMap<&'static str, ItemId>, _: &ItemSent| {
            let (a, b) = (at(items, &ids[one]), at(items, &ids[two]));
            let (left, right) = (items[a].envelope.clone(), items[b].envelope.clone());
            (items[a].envelope, items[b].envelope) = (right, left);
            if with_hash {
                let (left, right) = (items[a].hash, items[b].hash);
                (items[a].hash, items[b].hash) = (right, left);
            }
        }
    };
    vec![
        lie("the tail is missing", "list-refused", |items, ids, _| {
            drop(items.remove(at(items, &ids["third"])))
        }),
        lie("one in the middle is missing", "list-refused", |items, ids, _| {
            drop(items.remove(at(items, &ids["second"])));
        }),
        lie("a field is missing", "list-refused", |items, ids, _| {
            drop(items.remove(at(items, &ids["title"])))
        }),
        lie("two messages change places", "record-refused", swap("first", "second", false)),
        lie("two messages change places with their hashes", "list-refused", swap("first", "second", true)),
        lie("a message is a title", "record-refused", swap("title", "second", false)),
        lie("a message of another chat", "record-refused", |items, ids, foreign| {
            let at = at(items, &ids["first"]);
            items[at].envelope.clone_from(&foreign.envelope);
        }),
        lie("a message of another chat is put in", "list-refused", |items, _, foreign| {
            items.push(foreign.clone());
        }),
        lie("a message gets another id", "list-refused", |items, ids, _| {
            let at = at(items, &ids["first"]);
            items[at].item = ItemId::Message(MessageId::random());
        }),
        lie("a message is there twice", "list-refused", |items, ids, _| {
            let mut again = items[at(items, &ids["first"])].clone();
            again.item = ItemId::Message(MessageId::random());
            items.push(again);
        }),
        lie("a byte is changed", "record-refused", |items, ids, _| {
            let at = at(items, &ids["third"]);
            items[at].envelope = items[at].envelope.as_ref().map(flipped);
        }),
        lie("a message without its words", "withheld", |items, ids, _| {
            let at = at(items, &ids["third"]);
            items[at].envelope = None;
        }),
        lie("everything is said to be removed", "list-refused", |items, _, _| items.clear()),
    ]
}

fn flipped<const N: usize>(envelope: &Envelope<N>) -> Envelope<N> {
    let mut bytes = envelope.sealed().as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    Envelope::new(confidant_seal::Sealed::from_bytes(bytes)).unwrap()
}

#[tokio::test]
async fn lies_about_what_a_chat_consists_of_are_refused_by_name() {
    let scene = Scene::new().await;
    // A message of another person, to be put into Ana's chat.
    let mut ben = scene
        .world
        .register(
            scene.world.transport(),
            &MemoryFiles::new(),
            "ben@example.org",
            vec![Person::new().recovery()],
        )
        .await
        .unwrap();
    let theirs = ben.new_chat(None).unwrap();
    ben.say(&theirs, "ben's").unwrap();
    ben.flush().await.unwrap();
    let ids: BTreeMap<&'static str, ItemId> = ["first", "second", "third"]
        .into_iter()
        .zip(scene.ids.iter().cloned().map(ItemId::Message))
        .chain([("title", title())])
        .collect();
    let foreign = foreign(&scene).await;
    for (what, expected, lie) in chat_lies() {
        let (liar, mut device) = scene.stranger().await;
        let (chat, ids, foreign) = (scene.chat.clone(), ids.clone(), foreign.clone());
        liar.tells(move |frame| {
            on_chats(frame, |sent| {
                if sent.chat == chat && sent.whole {
                    lie(sent, &ids, &foreign);
                }
            });
        });
        let refused = device.sync(Phase::All).await.unwrap_err();
        assert_eq!(refused.name(), expected, "{what}");
        assert_eq!(device.chat(&scene.chat).unwrap_err(), Error::NoSuchChat, "{what}: something is shown");
        assert_eq!(bodies(&device, &scene.other), ["elsewhere"], "{what}: the other chat is fine");
        // The lie ends: everything is there.
        liar.tells(|_| {});
        device.sync(Phase::All).await.unwrap();
        assert_eq!(bodies(&device, &scene.chat), ["first", "second", "third"], "{what}");
    }
}

/// The message of the other chat, as the server sends it.
async fn foreign(scene: &Scene) -> ItemSent {
    let (liar, _device) = scene.friend().await;
    let mut found = None;
    for mut frame in liar.heard.lock().clone() {
        on_chats(&mut frame, |sent| {
            if sent.chat == scene.other {
                found = sent.items.iter().find(|item| matches!(item.item, ItemId::Message(_))).cloned();
            }
        });
    }
    found.unwrap()
}

#[tokio::test]
async fn chats_that_are_kept_back_or_put_back_are_refused() {
    let mut scene = Scene::new().await;
    // Kept back in the list and in the phases.
    let (liar, mut device) = scene.stranger().await;
    let chat = scene.chat.clone();
    liar.tells(move |frame| {
        drop_chat(frame, &chat);
        on_account(frame, |state| {
            let mut chats = std::mem::take(&mut state.chats).into_map();
            chats.remove(&chat);
            state.chats = Map::new(chats).unwrap();
        });
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "withheld");
    assert!(device.chats().is_empty(), "nothing of a refused account is shown");
    // Kept back in the phases, and said to be missing when it is asked for.
    let (liar, mut device) = scene.stranger().await;
    let chat = scene.chat.clone();
    liar.tells(move |frame| drop_chat(frame, &chat));
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "withheld");
    assert_eq!(device.chat(&scene.chat).unwrap_err(), Error::NoSuchChat);
    assert_eq!(device.open_chat(&scene.chat).await.unwrap_err().name(), "withheld");
    // Neither sent nor said to be missing: the floor is ahead of what this device has.
    let (liar, mut device) = scene.friend().await;
    scene.one.say(&scene.chat, "fourth").unwrap();
    scene.one.flush().await.unwrap();
    let chat = scene.chat.clone();
    liar.tells(move |frame| {
        drop_chat(frame, &chat);
        if let ServerEvent::ChatContentBatchResponse(sent) = &mut frame.event {
            sent.missing = List::default();
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "withheld");
    // Deleted, and put back.
    let (liar, mut device) = scene.friend().await;
    let old = liar.heard.lock().clone();
    scene.one.delete_chat(&scene.chat).unwrap();
    scene.one.flush().await.unwrap();
    let chat = scene.chat.clone();
    liar.tells(move |frame| {
        on_account(frame, |state| {
            let mut chats = std::mem::take(&mut state.chats).into_map();
            chats.insert(
                chat.clone(),
                confidant_chat_protocol::Versions { messages_v: 1, title_v: 1, draft_v: 0 },
            );
            state.chats = Map::new(chats).unwrap();
        });
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "list-refused");
    // Put back in the phases only.
    let (liar, mut device) = scene.stranger().await;
    liar.tells(move |frame| {
        if let ServerEvent::PhaseTwo(sent) = &mut frame.event {
            let mut replay = Vec::new();
            for mut old in old.clone() {
                on_chats(&mut old, |sent| replay.push(sent.clone()));
            }
            edit_list(&mut sent.chats, |chats| chats.extend(replay));
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "list-refused");
    assert_eq!(device.chat(&scene.chat).unwrap_err(), Error::NoSuchChat);
}

#[tokio::test]
async fn an_older_state_is_rolled_back() {
    let mut scene = Scene::new().await;
    let (liar, mut device) = scene.friend().await;
    let old = liar.heard.lock().clone();
    scene.one.edit(&scene.chat, &scene.ids[0], "first, changed").unwrap();
    scene.one.delete(&scene.chat, &scene.ids[2]).unwrap();
    scene.one.say(&scene.chat, "fourth").unwrap();
    scene.one.flush().await.unwrap();
    device.sync(Phase::All).await.unwrap();
    let now = ["first, changed", "second", "fourth"];
    assert_eq!(bodies(&device, &scene.chat), now);
    let old_state =
        old.iter().find(|frame| matches!(frame.event, ServerEvent::AccountState(_))).cloned().unwrap();
    let old_chats: Vec<ChatSent> = {
        let mut chats = Vec::new();
        for mut frame in old.clone() {
            on_chats(&mut frame, |sent| chats.push(sent.clone()));
        }
        chats
    };
    // The whole account of before, to a device with memory.
    let state = old_state.event.clone();
    liar.tells(move |frame| {
        if matches!(frame.event, ServerEvent::AccountState(_)) {
            frame.event = state.clone();
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
    assert_eq!(bodies(&device, &scene.chat), now);
    // One chat of before, to a device with memory and to one without: the floor knows better.
    for (mut device, liar) in [swap(scene.friend().await), swap(scene.stranger().await)] {
        let (chats, chat) = (old_chats.clone(), scene.chat.clone());
        liar.tells(move |frame| {
            let replay = |sent: &mut List<ChatSent, { limits::MAX_BATCH }>| {
                let old = chats.iter().find(|sent| sent.chat == chat).cloned().unwrap();
                edit_list(sent, |sent| {
                    sent.retain(|sent| sent.chat != chat);
                    sent.push(old);
                });
            };
            match &mut frame.event {
                ServerEvent::PhaseTwo(sent) => replay(&mut sent.chats),
                ServerEvent::ChatContentBatchResponse(sent) => replay(&mut sent.chats),
                _ => {}
            }
        });
        assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
        let shown = device.chat(&scene.chat).map(|view| view.branch.len());
        assert!(matches!(shown, Ok(3) | Err(Error::NoSuchChat)));
    }
    // An old draft, and old account data.
    scene.world.pass(DRAFTS_MS);
    scene.one.set_draft(&scene.chat, Some("another draft")).unwrap();
    scene.one.set_data("settings", "theme", Some("light")).unwrap();
    scene.one.flush().await.unwrap();
    let (liar, mut device) = scene.friend().await;
    let draft_v = old_chats.iter().find(|sent| sent.chat == scene.chat).unwrap().versions.draft_v;
    let data = old.iter().find(|frame| matches!(frame.event, ServerEvent::DataRecords(_))).cloned().unwrap();
    let (chat, old_data) = (scene.chat.clone(), data.event.clone());
    liar.tells(move |frame| {
        if matches!(frame.event, ServerEvent::DataRecords(_)) {
            frame.event = old_data.clone();
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
    assert_eq!(device.data("settings", "theme").unwrap().as_deref(), Some("light"));
    scene.one.say(&scene.chat, "fifth").unwrap();
    scene.one.flush().await.unwrap();
    liar.tells(move |frame| {
        on_chats(frame, |sent| {
            if sent.chat == chat {
                sent.versions.draft_v = draft_v;
            }
        });
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "rolled-back");
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

#[tokio::test]
async fn two_devices_that_were_shown_different_worlds_find_out_when_they_meet() {
    let mut scene = Scene::new().await;
    let mut two = scene.world.second(&scene.ana).await;
    scene.one.disconnect();
    two.disconnect();
    // The server goes two ways: what one device writes, the other is not shown.
    let fork = scene.world.fork().await;
    let files = MemoryFiles::new();
    let mut there = Device::log_in(fork.setup(&files), &scene.ana.recovery()).await.unwrap();
    there.sync(Phase::All).await.unwrap();
    there.say(&scene.chat, "in the other world").unwrap();
    there.flush().await.unwrap();
    drop(there);
    scene.one.say(&scene.chat, "in this world").unwrap();
    scene.one.new_chat(Some("Only here")).unwrap();
    scene.one.flush().await.unwrap();
    // The device of the other world meets this one.
    let mut there = Device::open(scene.world.setup(&files)).unwrap().unwrap();
    let again = there.log_in_again(&scene.ana.recovery()).await;
    again.unwrap();
    assert_eq!(there.sync(Phase::All).await.unwrap_err().name(), "forked");
    assert_eq!(
        bodies(&there, &scene.chat).last().unwrap(),
        "in the other world",
        "nothing of this world is shown"
    );
    two.sync(Phase::All).await.unwrap();
    assert_eq!(bodies(&two, &scene.chat).last().unwrap(), "in this world");
}

type AccountLie = Box<dyn Fn(&mut AccountState) + Send>;

fn account_lies() -> Vec<(&'static str, &'static str, AccountLie)> {
    vec![
        (
            "another mailbox key",
            "box-refused",
            Box::new(|state| state.box_pub = PublicKey::from_bytes([9; 32])),
        ),
        (
            "a floor is exchanged",
            "list-refused",
            Box::new(|state| {
                edit_list(&mut state.floors, |floors| {
                    let other = floors[1].envelope.clone();
                    floors[0].envelope = other;
                });
            }),
        ),
        (
            "a floor is left out",
            "list-refused",
            Box::new(|state| {
                edit_list(&mut state.floors, |floors| drop(floors.pop()));
            }),
        ),
        ("the account's ring is empty", "ring-gap", Box::new(|state| state.ring = List::default())),
        ("the mailbox's ring is empty", "ring-gap", Box::new(|state| state.mailbox = List::default())),
        (
            "a key has another name",
            "key-refused",
            Box::new(|state| {
                edit_list(&mut state.ring, |ring| ring[0].kid = confidant_seal::Kid::from_bytes([1; 8]));
            }),
        ),
        (
            "two entries with one number",
            "ring-forked",
            Box::new(|state| {
                edit_list(&mut state.ring, |ring| ring.push(ring[0].clone()));
            }),
        ),
        (
            "a key is damaged",
            "key-refused",
            Box::new(|state| {
                edit_list(&mut state.ring, |ring| ring[0].sealed = flipped(&ring[0].sealed));
            }),
        ),
        (
            "the manifest is damaged",
            "record-refused",
            Box::new(|state| {
                state.manifest = flipped(&state.manifest);
            }),
        ),
        (
            "the manifest is a floor",
            "record-refused",
            Box::new(|state| {
                state.manifest = Envelope::new(state.floors[0].envelope.sealed().clone()).unwrap();
            }),
        ),
        (
            "chats are behind their floors",
            "rolled-back",
            Box::new(|state| {
                let mut chats = std::mem::take(&mut state.chats).into_map();
                chats.values_mut().for_each(|versions| versions.messages_v = 0);
                state.chats = Map::new(chats).unwrap();
            }),
        ),
    ]
}

#[tokio::test]
async fn lies_about_the_account_are_refused_by_name() {
    let mut scene = Scene::new().await;
    for (what, expected, lie) in account_lies() {
        let (liar, mut device) = scene.stranger().await;
        liar.tells(move |frame| on_account(frame, &lie));
        assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), expected, "{what}");
        assert!(device.chats().is_empty(), "{what}");
    }
    // A way that does not lead from what was seen.
    let (liar, mut device) = scene.friend().await;
    scene.one.new_chat(None).unwrap();
    scene.one.flush().await.unwrap();
    liar.tells(|frame| {
        on_account(frame, |state| {
            if let Some(trail) = &mut state.trail {
                edit_list(&mut trail.steps, |steps| steps[0].live = Digest::ZERO);
            }
        });
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "forked");
    liar.tells(|frame| on_account(frame, |state| state.trail = None));
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "forked");
    // "The account key was replaced": nobody committed that.
    liar.tells(|frame| on_account(frame, |state| state.generation = 2));
    device.sync(Phase::All).await.unwrap();
    assert_eq!(device.generation(), 1, "what a server says about generations changes nothing");
}

#[tokio::test]
async fn lies_about_a_chats_keys_are_refused_by_name() {
    let mut scene = Scene::new().await;
    let (liar, _device) = scene.friend().await;
    let mut retired: Option<KeyEntry> = None;
    for mut frame in liar.heard.lock().clone() {
        on_chats(&mut frame, |sent| {
            if sent.chat == scene.chat {
                retired = Some(sent.ring[0].clone());
            }
        });
    }
    let retired = retired.unwrap();
    // Two keys in the ring, the second of another generation.
    scene.one.rotate(&scene.ana.recovery(), &[scene.ana.recovery()]).await.unwrap();
    scene.one.say(&scene.chat, "under the new key").unwrap();
    scene.one.flush().await.unwrap();
    type RingLie = Box<dyn Fn(&mut Vec<KeyEntry>) + Send>;
    let lies: Vec<(&str, &str, RingLie)> = vec![
        ("the newest key is kept back", "ring-forked", Box::new(|ring| drop(ring.pop()))),
        ("the first key is kept back", "ring-gap", Box::new(|ring| drop(ring.remove(0)))),
        ("two keys with one number", "ring-forked", Box::new(|ring| ring.push(ring[1].clone()))),
        ("a key of a retired account key", "key-refused", Box::new(move |ring| ring[0] = retired.clone())),
        ("a key under another name", "key-refused", Box::new(|ring| ring[0].kid = ring[1].kid)),
    ];
    for (what, expected, lie) in lies {
        let (liar, mut device) = scene.stranger().await;
        let chat = scene.chat.clone();
        liar.tells(move |frame| {
            on_chats(frame, |sent| {
                if sent.chat == chat {
                    edit_list(&mut sent.ring, &lie);
                }
            });
        });
        assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), expected, "{what}");
        assert_eq!(device.chat(&scene.chat).unwrap_err(), Error::NoSuchChat, "{what}");
    }
}

#[tokio::test]
async fn false_news_are_refused_by_name() {
    let mut scene = Scene::new().await;
    let before = ["first", "second", "third"];
    type NewsLie = Box<dyn Fn(&mut confidant_chat_protocol::ChatUpdated) + Send>;
    let lies: Vec<(&str, &str, NewsLie)> = vec![
        ("the words are left out", "list-refused", Box::new(|news| news.items = List::default())),
        (
            "something is removed with it",
            "list-refused",
            Box::new(|news| {
                edit_list(&mut news.removed, |removed| removed.push(title()));
            }),
        ),
        (
            "other words",
            "record-refused",
            Box::new(|news| {
                edit_list(&mut news.items, |items| {
                    items[0].envelope = items[0].envelope.as_ref().map(flipped)
                });
            }),
        ),
        (
            "another head",
            "record-refused",
            Box::new(|news| news.head.envelope = flipped(&news.head.envelope)),
        ),
        ("another list", "forked", Box::new(|news| news.head.live = Digest::ZERO)),
    ];
    for (what, expected, lie) in lies {
        let (liar, mut device) = scene.friend().await;
        let count = bodies(&device, &scene.chat).len();
        liar.tells(move |frame| {
            if let ServerEvent::ChatUpdated(news) = &mut frame.event {
                lie(news);
            }
        });
        scene.one.say(&scene.chat, what).unwrap();
        scene.one.flush().await.unwrap();
        let refused = loop {
            match device.listen().await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(refused.name(), expected, "{what}");
        assert_eq!(bodies(&device, &scene.chat).len(), count, "{what}: it is as it was");
        assert_eq!(bodies(&device, &scene.chat)[..3], before);
    }
    // The same revision twice, with other bytes.
    let (liar, mut device) = scene.friend().await;
    scene.one.say(&scene.chat, "once").unwrap();
    scene.one.flush().await.unwrap();
    let seen: Arc<Mutex<Option<ServerFrame>>> = Arc::default();
    let kept = Arc::clone(&seen);
    liar.tells(move |frame| {
        if matches!(frame.event, ServerEvent::ChatUpdated(_)) {
            *kept.lock() = Some(frame.clone());
        }
        if let (ServerEvent::AccountUpdated(_), Some(old)) = (&frame.event, &*kept.lock()) {
            let mut old = old.clone();
            if let ServerEvent::ChatUpdated(news) = &mut old.event {
                news.head.envelope = flipped(&news.head.envelope);
            }
            *frame = old;
        }
    });
    let refused = loop {
        match device.listen().await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(refused.name(), "forked");
}

#[tokio::test]
async fn lies_about_drafts_data_and_embeds_are_refused_by_name() {
    let mut scene = Scene::new().await;
    let embed = scene.one.add_embed(&scene.chat, "a map").unwrap();
    let wrong = scene.one.add_embed(&scene.chat, "another map").unwrap();
    scene.one.set_data("settings", "font", Some("serif")).unwrap();
    scene.one.set_draft(&scene.other, Some("the other's")).unwrap();
    scene.one.flush().await.unwrap();
    let (liar, mut device) = scene.stranger().await;
    liar.tells(|frame| {
        if let ServerEvent::PhaseOne(_) | ServerEvent::PhaseTwo(_) = &frame.event {
            let mut drafts = Vec::new();
            on_chats(frame, |sent| drafts.push(sent.draft.clone()));
            drafts.reverse();
            on_chats(frame, |sent| sent.draft = drafts.pop().flatten().map(|draft| flipped(&draft)));
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "record-refused");
    let (liar, mut device) = scene.stranger().await;
    liar.tells(|frame| {
        if let ServerEvent::DataRecords(part) = &mut frame.event {
            edit_list(&mut part.records, |records| {
                let (one, two) = (records[0].data.clone(), records[1].data.clone());
                (records[0].data, records[1].data) = (two, one);
            });
        }
    });
    assert_eq!(device.sync(Phase::All).await.unwrap_err().name(), "record-refused");
    assert_eq!(device.data("settings", "font").unwrap(), None);
    let (liar, mut device) = scene.friend().await;
    liar.tells(|frame| {
        if let ServerEvent::SendEmbedData(part) = &mut frame.event {
            edit_list(&mut part.items, |items| items[0].envelope = items[0].envelope.as_ref().map(flipped));
        }
    });
    assert_eq!(device.embed(&scene.chat, &embed).await.unwrap_err().name(), "record-refused");
    liar.tells(|frame| {
        if let ServerEvent::SendEmbedData(part) = &mut frame.event {
            part.items = List::default();
        }
    });
    assert_eq!(device.embed(&scene.chat, &embed).await.unwrap_err().name(), "withheld");
    liar.tells(|_| {});
    assert_eq!(device.embed(&scene.chat, &wrong).await.unwrap(), "another map");
}
