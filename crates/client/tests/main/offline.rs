//! Requests and answers that are lost, one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use confidant_chat_format::{ChatId, MessageId};
use confidant_chat_protocol::{ServerEvent, ServerFrame};
use confidant_client::{Device, Error, LossReason, Phase, Transport};

use crate::convergence::Weather;
use crate::devices::bodies;
use crate::world::{At, Between, MemoryFiles, Passes, Person, Through, World};

crate::at_both! {
    what_was_done_is_not_done_twice_when_its_answer_is_lost,
    what_another_device_did_to_it_meanwhile_stays,
    what_waits_while_keys_are_frozen_is_sent_afterwards,
    a_chat_larger_than_a_frame_and_ahead_of_its_floor_comes_whole,
}

struct Scene {
    world: World,
    ana: Person,
    weather: Arc<Weather>,
    files: Arc<MemoryFiles>,
    one: Device,
    two: Device,
    chat: ChatId,
    ids: Vec<MessageId>,
}

impl Scene {
    async fn new(at: At) -> Self {
        let world = at.world().await;
        let (weather, files) = (Arc::new(Weather::default()), MemoryFiles::new());
        let way = Arc::new(Through { inner: world.transport(), between: Arc::clone(&weather) });
        let (mut one, ana) = world.ana_over(way, &files).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        let ids = (0..3).map(|n| one.say(&chat, &format!("message {n}")).unwrap()).collect();
        one.flush().await.unwrap();
        let two = world.second(&ana).await;
        Self { world, ana, weather, files, one, two, chat, ids }
    }

    /// The next request of the first device is carried out, and its answer is lost.
    async fn lose_answer(&mut self) {
        self.weather.next.lock().push(Passes::Unanswered);
        assert_eq!(self.one.flush().await.unwrap_err(), Error::Offline);
        assert!(!self.one.waiting().is_empty(), "nobody knows: it waits");
        assert!(self.one.waiting()[0].is_sent);
    }

    /// The first device is started anew.
    fn restart(&mut self) {
        let way: Arc<dyn Transport> =
            Arc::new(Through { inner: self.world.transport(), between: Arc::clone(&self.weather) });
        self.one = Device::open(self.world.setup_over(way, &self.files)).unwrap().unwrap();
    }

    async fn settle(&mut self) {
        self.one.flush().await.unwrap();
        assert!(self.one.waiting().is_empty());
        self.one.sync(Phase::All).await.unwrap();
        self.two.sync(Phase::All).await.unwrap();
    }
}

async fn what_was_done_is_not_done_twice_when_its_answer_is_lost(at: At) {
    type Act = fn(&mut Scene);
    let acts: Vec<(&str, Act)> = vec![
        ("a message", |scene| drop(scene.one.say(&scene.chat, "new").unwrap())),
        ("an edit", |scene| scene.one.edit(&scene.chat, &scene.ids[0], "new").unwrap()),
        ("a deletion", |scene| scene.one.delete(&scene.chat, &scene.ids[1]).unwrap()),
        ("a title", |scene| scene.one.rename(&scene.chat, "new").unwrap()),
        ("a draft", |scene| scene.one.set_draft(&scene.chat, Some("new")).unwrap()),
        ("a new chat", |scene| drop(scene.one.new_chat(Some("new")).unwrap())),
        ("a chat's deletion", |scene| scene.one.delete_chat(&scene.chat).unwrap()),
        ("a piece of data", |scene| scene.one.set_data("settings", "theme", Some("new")).unwrap()),
        ("a branch", |scene| scene.one.show_branch(&scene.chat, &scene.ids[1]).unwrap()),
        ("something to show", |scene| drop(scene.one.add_embed(&scene.chat, "new").unwrap())),
    ];
    for (what, act) in acts {
        for restarts in [false, true] {
            let mut scene = Scene::new(at).await;
            act(&mut scene);
            scene.lose_answer().await;
            let count = |device: &Device| {
                let views: Vec<_> = device.chats().iter().map(|chat| device.chat(chat).unwrap()).collect();
                let told =
                    |view: &confidant_client::ChatView| (view.rev, view.fields.clone(), view.draft.clone());
                let words: Vec<Vec<String>> =
                    device.chats().iter().map(|chat| bodies(device, chat)).collect();
                (views.iter().map(told).collect::<Vec<_>>(), words, device.data("settings", "theme").unwrap())
            };
            scene.two.sync(Phase::All).await.unwrap();
            let stored = count(&scene.two);
            if restarts {
                scene.restart();
            }
            scene.settle().await;
            assert_eq!(count(&scene.two), stored, "{what}: it was done again");
            assert_eq!(count(&scene.one), stored, "{what}");
            assert!(scene.one.copies().is_empty(), "{what}: {:?}", scene.one.copies());
        }
    }
}

async fn what_another_device_did_to_it_meanwhile_stays(at: At) {
    // Edited on top of an edit whose answer was lost: no copy, since whoever wrote it saw the first.
    let mut scene = Scene::new(at).await;
    for n in [0, 1] {
        scene.one.edit(&scene.chat, &scene.ids[n], "one").unwrap();
        scene.lose_answer().await;
        scene.two.sync(Phase::All).await.unwrap();
        scene.two.edit(&scene.chat, &scene.ids[n], "two, after one").unwrap();
        scene.two.flush().await.unwrap();
        if n == 1 {
            scene.restart();
        }
        scene.settle().await;
        assert_eq!(bodies(&scene.one, &scene.chat)[n], "two, after one");
        assert!(scene.one.copies().is_empty());
    }
    // Edited again here: the second edit is made against the first, stored or not.
    for n in [1, 2] {
        scene.one.edit(&scene.chat, &scene.ids[n], "first").unwrap();
        scene.lose_answer().await;
        scene.one.edit(&scene.chat, &scene.ids[n], "second").unwrap();
        assert_eq!(scene.one.waiting().len(), 2);
        if n == 2 {
            scene.restart();
        }
        scene.settle().await;
        assert_eq!(bodies(&scene.two, &scene.chat)[n], "second");
        assert!(scene.one.copies().is_empty());
    }
    // A message whose answer was lost, edited here and deleted there.
    let id = scene.one.say(&scene.chat, "short-lived").unwrap();
    scene.lose_answer().await;
    scene.one.edit(&scene.chat, &id, "edited too late").unwrap();
    scene.two.sync(Phase::All).await.unwrap();
    scene.two.delete(&scene.chat, &id).unwrap();
    scene.two.flush().await.unwrap();
    scene.settle().await;
    assert_eq!(bodies(&scene.one, &scene.chat).len(), 3);
    let copy = &scene.one.copies()[0];
    assert_eq!((copy.text.as_deref(), &copy.why), (Some("edited too late"), &LossReason::Deleted));
    // A chat whose answer was lost, with a message that was deleted there: it is not put back.
    let chat = scene.one.new_chat(None).unwrap();
    let id = scene.one.say(&chat, "gone").unwrap();
    scene.lose_answer().await;
    scene.two.sync(Phase::All).await.unwrap();
    scene.two.delete(&chat, &id).unwrap();
    scene.two.flush().await.unwrap();
    scene.restart();
    scene.settle().await;
    assert_eq!(bodies(&scene.one, &chat), Vec::<String>::new());
    assert_eq!(scene.one.copies().len(), 1, "nothing new");
    // A chat whose answer was lost, deleted there.
    let chat = scene.one.new_chat(Some("short-lived")).unwrap();
    scene.lose_answer().await;
    scene.two.sync(Phase::All).await.unwrap();
    scene.two.delete_chat(&chat).unwrap();
    scene.two.flush().await.unwrap();
    scene.settle().await;
    assert_eq!(scene.one.chat(&chat).unwrap_err(), Error::NoSuchChat);
    assert_eq!(scene.one.chats(), scene.two.chats());
}

async fn what_waits_while_keys_are_frozen_is_sent_afterwards(at: At) {
    struct NoStaging;
    impl Between for NoStaging {
        fn reaches(&self, path: &str) -> bool {
            path != "/account/rotation/stage"
        }
    }
    let mut scene = Scene::new(at).await;
    let way = Arc::new(Through { inner: scene.world.transport(), between: Arc::new(NoStaging) });
    let mut third = scene.world.second_over(way, &scene.ana).await;
    assert_eq!(
        third.rotate(&scene.ana.recovery(), &[scene.ana.recovery()]).await.unwrap_err(),
        Error::Offline
    );
    let chat = scene.one.new_chat(Some("Later")).unwrap();
    assert!(matches!(scene.one.flush().await.unwrap_err(), Error::LoggedOut(_)));
    scene.one.log_in_again(&scene.ana.recovery()).await.unwrap();
    assert_eq!(scene.one.flush().await.unwrap_err(), Error::Frozen);
    assert_eq!(scene.one.waiting().len(), 2, "it is kept");
    scene.world.pass(600_000);
    scene.one.flush().await.unwrap();
    assert_eq!(scene.one.chat(&chat).unwrap().title(), Some("Later"));
}

async fn a_chat_larger_than_a_frame_and_ahead_of_its_floor_comes_whole(at: At) {
    /// Counts parts of chats that are not the last.
    #[derive(Default)]
    struct Counts(AtomicUsize);
    impl Between for Counts {
        fn receives(&self, frame: ServerFrame) -> Vec<ServerFrame> {
            if let ServerEvent::PhaseOne(sent) = &frame.event {
                self.0.fetch_add(sent.chats.iter().filter(|chat| chat.more).count(), Ordering::SeqCst);
            }
            vec![frame]
        }
    }
    let mut scene = Scene::new(at).await;
    let large = "x".repeat(240_000);
    let words: Vec<String> = (0..24).map(|n| format!("{n} {large}")).collect();
    for part in words.chunks(2) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        scene.one.say_all(&scene.chat, &part).unwrap();
        scene.one.flush().await.unwrap();
    }
    // The message is stored, the floor is not.
    scene.one.say(&scene.chat, "ahead").unwrap();
    scene.weather.next.lock().extend([Passes::Lost, Passes::On]);
    assert_eq!(scene.one.flush().await.unwrap_err(), Error::Offline);
    assert!(scene.one.waiting().is_empty());
    // With memory and without.
    scene.two.sync(Phase::All).await.unwrap();
    let counts = Arc::new(Counts::default());
    let way = Arc::new(Through { inner: scene.world.transport(), between: Arc::clone(&counts) });
    let mut third = scene.world.second_over(way, &scene.ana).await;
    third.sync(Phase::All).await.unwrap();
    assert!(counts.0.load(Ordering::SeqCst) > 0, "it came in parts");
    for device in [&scene.two, &third] {
        let there = bodies(device, &scene.chat);
        assert_eq!((there.len(), there.last().map(String::as_str)), (28, Some("ahead")));
        assert_eq!(there[3..27], words);
    }
}
