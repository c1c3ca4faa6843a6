//! What a server keeps of a chat beyond its words: off at first, a switch in the sealed chat, forgotten on request and with the chat.

use std::sync::Arc;

use confidant_chat_format::ChatId;
use confidant_chat_protocol::{Body as _, ClientEvent, ClientFrame, Remembered, ServerEvent};
use confidant_chats::answerer::{Answerer as _, MemoryAnswerer};
use confidant_client::{Device, Phase};
use parking_lot::Mutex;

use crate::asks::answered;
use crate::world::{Between, MemoryFiles, Passes, Person, Through, World};

const CONCEPTS: Remembered = Remembered::Concepts;

/// What questions said of it.
#[derive(Default)]
struct Said(Mutex<Vec<Option<Vec<Remembered>>>>);

impl Between for Said {
    fn sends(&self, frame: &[u8]) -> Passes {
        if let Ok(ClientFrame { event: ClientEvent::ChatMessageAdded(added), .. }) = ClientFrame::read(frame)
        {
            self.0.lock().push(added.remembers.map(|all| all.iter().copied().collect()));
        }
        Passes::On
    }
}

impl Said {
    fn last(&self) -> Option<Vec<Remembered>> {
        self.0.lock().last().unwrap().clone()
    }
}

struct Scene {
    world: World,
    answerer: MemoryAnswerer,
    ana: Person,
    said: Arc<Said>,
    one: Device,
    chat: ChatId,
}

impl Scene {
    async fn new() -> Self {
        let answerer = MemoryAnswerer::default();
        let (world, said) = (World::answering(&answerer).await, Arc::<Said>::default());
        let way = Arc::new(Through { inner: world.transport(), between: Arc::clone(&said) });
        let (mut one, ana) = world.ana_over(way, &MemoryFiles::new()).await;
        let chat = one.new_chat(None).unwrap();
        one.flush().await.unwrap();
        Self { world, answerer, ana, said, one, chat }
    }

    /// What is kept of a chat.
    async fn kept(&self, chat: &ChatId) -> usize {
        self.answerer.remembered(self.one.account_id(), chat, CONCEPTS).await.unwrap().len()
    }

    async fn exported(&mut self) -> Vec<String> {
        let exported = self.one.export(&self.ana.recovery()).await.unwrap();
        exported.chats.into_iter().flat_map(|chat| chat.remembered).collect()
    }
}

#[tokio::test]
async fn only_what_is_switched_on_for_a_chat_is_kept_of_it() {
    let mut scene = Scene::new().await;
    let chat = scene.chat.clone();
    assert!(scene.one.remembers(&chat).is_empty());
    answered(&mut scene.one, &chat, "first").await;
    assert_eq!((scene.said.last(), scene.kept(&chat).await), (Some(Vec::new()), 0));
    scene.one.set_remembered(&chat, CONCEPTS, true).unwrap();
    answered(&mut scene.one, &chat, "second").await;
    assert_eq!((scene.said.last(), scene.kept(&chat).await), (Some(vec![CONCEPTS]), 1));
    assert_eq!(scene.exported().await, ["second"]);
    // It is the chat's, on every device, and no other chat's.
    let mut two = scene.world.second(&scene.ana).await;
    assert_eq!(two.remembers(&chat), [CONCEPTS]);
    answered(&mut two, &chat, "third").await;
    let other = scene.one.new_chat(None).unwrap();
    answered(&mut scene.one, &other, "elsewhere").await;
    assert_eq!((scene.said.last(), scene.kept(&other).await), (Some(Vec::new()), 0));
    assert_eq!(scene.exported().await, ["second", "third"]);
    // Off for all questions: nothing is kept or used, and what there is stays.
    scene.one.switch("concepts", false).unwrap();
    scene.one.sync(Phase::All).await.unwrap();
    answered(&mut scene.one, &chat, "fourth").await;
    assert_eq!((scene.said.last(), scene.kept(&chat).await), (None, 2));
    scene.one.switch("concepts", true).unwrap();
    // Off for this chat, at a device without the server: the next question has it forgotten.
    scene.one.set_remembered(&chat, CONCEPTS, false).unwrap();
    answered(&mut scene.one, &chat, "fifth").await;
    assert_eq!((scene.said.last(), scene.kept(&chat).await), (Some(Vec::new()), 0));
    assert!(scene.exported().await.is_empty());
}

#[tokio::test]
async fn what_is_kept_is_forgotten_at_once_and_with_its_chat() {
    let mut scene = Scene::new().await;
    let chat = scene.chat.clone();
    scene.one.set_remembered(&chat, CONCEPTS, true).unwrap();
    answered(&mut scene.one, &chat, "first").await;
    let receipt = scene.one.forget_remembered(&chat, CONCEPTS).await.unwrap();
    assert_eq!((receipt.as_deref(), scene.kept(&chat).await), (Some("1 forgotten"), 0));
    assert_eq!(scene.one.forget_remembered(&chat, CONCEPTS).await.unwrap(), None, "there is nothing left");
    // Somebody else's chat is none.
    answered(&mut scene.one, &chat, "second").await;
    let ben = vec![Person::new().recovery()];
    let ben =
        scene.world.register(scene.world.transport(), &MemoryFiles::new(), "ben@example.org", ben).await;
    let mut ben = ben.unwrap();
    ben.sync(Phase::All).await.unwrap();
    let refused = ben.forget_remembered(&chat, CONCEPTS).await.unwrap_err();
    assert_eq!((refused.name(), scene.kept(&chat).await), ("not-found", 1));
    // An operator who exports the account gets what only its owner can open, and not this.
    let mut frames = scene.world.service.export_account(scene.one.account_id()).await.unwrap();
    let mut count = 0;
    while let Some(frame) = frames.next().await {
        assert!(!matches!(frame.event, ServerEvent::RememberedRecords(_) | ServerEvent::Refused(_)));
        count += 1;
    }
    assert!(count > 3);
    scene.one.delete_chat(&chat).unwrap();
    scene.one.flush().await.unwrap();
    assert_eq!(scene.kept(&chat).await, 0);
}

/// More than one frame has room for, of several chats.
#[tokio::test]
async fn an_export_has_all_of_it() {
    let mut scene = Scene::new().await;
    let other = scene.one.new_chat(None).unwrap();
    let chat = scene.chat.clone();
    for (chat, count) in [(&chat, 40), (&other, 3)] {
        scene.one.set_remembered(chat, CONCEPTS, true).unwrap();
        for n in 0..count {
            answered(&mut scene.one, chat, &format!("question {n}")).await;
        }
    }
    let exported = scene.one.export(&scene.ana.recovery()).await.unwrap();
    let all: Vec<Vec<String>> = [&chat, &other]
        .map(|id| exported.chats.iter().find(|one| one.id == id.as_str()).unwrap().remembered.clone())
        .to_vec();
    let questions = |count: usize| (0..count).map(|n| format!("question {n}")).collect::<Vec<_>>();
    assert_eq!(all, [questions(40), questions(3)]);
}
