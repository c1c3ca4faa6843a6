//! Answers whose process went before a device had them.

use confidant_chat_format::{BoxKey, Head, Letter, Message, MessageId, Pending, TranscriptKind, TurnId};
use confidant_chat_protocol::{
    AiResponseCompleted, ChatMessageAdded, Keep, LetterSent, PendingAiResponse, ResumeAiTask,
};

use super::*;
use crate::answerer::MemoryAnswerer;

/// An installation, and who answers in it.
struct Lab {
    world: World,
    answerer: MemoryAnswerer,
    ana: Person,
    chat: ChatId,
}

impl Lab {
    async fn new() -> Self {
        let (mut world, answerer) = (World::new().await, MemoryAnswerer::held());
        world.service = gateway(&world, &answerer, Duration::from_secs(60));
        let mut ana = world.register("ana").await;
        let mut socket = world.connect(&ana).await;
        let chat = ana.create(&mut socket, 0).await;
        Self { world, answerer, ana, chat }
    }

    /// Another process of it.
    fn gateway(&self) -> Service {
        gateway(&self.world, &self.answerer, Duration::from_secs(60))
    }

    fn question(&self, keep: Keep) -> ChatMessageAdded {
        ChatMessageAdded {
            chat: self.chat.clone(),
            turn: TurnId::random(),
            message: MessageId::random(),
            reply: MessageId::random(),
            text: Text::cut("a question"),
            count: 0,
            before: Digest::of(b""),
            after: Digest::of(b"with its reply"),
            keep,
            history: false,
            titled: false,
            focus: None,
            off: List::default(),
            available: List::default(),
            given: List::default(),
            asks: List::default(),
            remembers: None,
        }
    }

    /// Asks, and goes; waits until it is marked.
    async fn asked(&self, keep: Keep) -> ChatMessageAdded {
        let (question, mut socket) = (self.question(keep), self.world.connect(&self.ana).await);
        let (before, _) = self.answerer.counts();
        let frames = ask(&mut socket, ClientEvent::ChatMessageAdded(question.clone())).await.unwrap();
        assert_eq!(name(&frames), "ai_task_initiated");
        until(async || self.is_marked(&question).await && self.answerer.counts().0 > before).await;
        question
    }

    async fn answered(&self) {
        self.answerer.let_say(100);
        until(async || self.answerer.counts().1 > 0).await;
    }

    async fn is_marked(&self, of: &ChatMessageAdded) -> bool {
        self.world.store.mark(&self.ana.device.id, &self.chat, &of.turn).await.unwrap().is_some()
    }

    async fn letters(&self) -> usize {
        self.world.store.letters(&self.ana.device.id, None, usize::MAX).await.unwrap().len()
    }

    /// Nobody has anything in hand any more that was asked for by now.
    fn wait(&self) {
        self.world.pass(Duration::from_secs(91));
    }

    fn resume(&self, of: &ChatMessageAdded) -> ResumeAiTask {
        let (chat, turn, after) = (self.chat.clone(), of.turn.clone(), of.after);
        ResumeAiTask { chat, turn, after, from: 0, message: None, reply: None }
    }

    /// What a device whose head waits for it reads: the answer, and how it ended.
    fn open(&self, of: &ChatMessageAdded, sent: &PendingAiResponse) -> (Message, String) {
        let device = &self.ana.device;
        let ring = Ring::open(&device.ak, &device.id, RingOf::Box, &device.boxes).unwrap();
        let boxes: Vec<BoxKey> = ring.iter().map(BoxKey::of).collect();
        let (turn, parent, reply) = (of.turn.clone(), of.message.clone(), of.reply.clone());
        let head = Head {
            v: 1,
            key: 1,
            kid: device.ak.key().kid(),
            count: 0,
            live: Digest::ZERO,
            chain: Digest::ZERO,
            leaf: None,
            pending: vec![Pending { turn, parent, reply }],
            at: 7,
            device: self.ana.here.clone(),
        };
        let letter = Letter { account: &device.id, chat: &self.chat, reply: &of.reply, turn: &of.turn };
        let message = letter.open(&boxes, &head, &Default::default(), sent.letter.as_bytes()).unwrap();
        let more = letter.open_more(&boxes, &head, sent.more.as_ref().unwrap().as_bytes()).unwrap();
        (message, more.body)
    }
}

fn gateway(world: &World, answerer: &MemoryAnswerer, unstored: Duration) -> Service {
    let inner = &world.service.inner;
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: Settings { unstored, ..inner.settings.clone() },
    };
    Service::with_hooks(parts, Hooks { answerer: Some(Arc::new(answerer.clone())), ..Hooks::default() })
}

async fn until(mut is: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it does not happen");
}

#[tokio::test]
async fn an_answer_outlives_the_process_that_was_asked_for_it() {
    let mut lab = Lab::new().await;
    let question = lab.asked(Keep::Cache).await;
    lab.answered().await;
    lab.world.service.kill_turns();
    let bytes = lab.world.home.bytes().await;
    for secret in ["a question", "known=0", question.message.as_str(), question.reply.as_str()] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
    // Whoever had it in hand might live.
    let others = [lab.gateway(), lab.gateway()];
    others[0].look_after_answers().await.unwrap();
    assert_eq!(lab.letters().await, 0);
    lab.wait();
    let [one, two] = others.each_ref().map(Service::look_after_answers);
    let (one, two) = tokio::join!(one, two);
    one.and(two).unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (1, false));
    lab.world.service = others[1].clone();
    let mut socket = lab.world.connect(&lab.ana).await;
    let frames = ask(&mut socket, ClientEvent::ResumeAiTask(lab.resume(&question))).await.unwrap();
    let ServerEvent::PendingAiResponse(sent) = &frames[0].event else { panic!("{frames:?}") };
    let (message, more) = lab.open(&question, sent);
    assert_eq!(
        (message.body.as_str(), message.parent.as_ref()),
        ("known=0: a question", Some(&question.message))
    );
    assert!(more.contains(r#""finish":"whole""#), "{more}");
    // With the title that it gave, and what was made of it.
    assert!(more.contains(r#""title":"A chat""#) && more.contains("in short"), "{more}");
    assert_eq!(more.matches("and then?").count(), 1, "{more}");
    // The proof is that of any answer.
    let asked = confidant_chat_format::Transcript::start().then(TranscriptKind::User, "a question");
    let end = asked.then(TranscriptKind::Assistant, &message.body);
    let key = lab.world.service.inner.vault.key(&lab.ana.device.id, None).await.unwrap().unwrap();
    let proof = end.prove(&key, &lab.chat, &question.reply, TranscriptKind::Assistant);
    assert_eq!(message.proof, Some(proof));
    let stored = AiResponseCompleted { chat: lab.chat.clone(), turn: question.turn.clone() };
    ask(&mut socket, ClientEvent::AiResponseCompleted(stored)).await.unwrap();
    lab.wait();
    lab.world.service.look_after_answers().await.unwrap();
    assert_eq!(lab.letters().await, 0, "it is taken once");
}

#[tokio::test]
async fn a_turn_that_runs_is_left_to_whoever_has_it_in_hand() {
    let lab = Lab::new().await;
    let (question, other) = (lab.asked(Keep::Cache).await, lab.gateway());
    // It says so again and again.
    for _ in 0..5 {
        lab.world.pass(Duration::from_secs(40));
        lab.world.service.look_after_answers().await.unwrap();
        other.look_after_answers().await.unwrap();
    }
    lab.answered().await;
    lab.world.pass(Duration::from_secs(20));
    other.look_after_answers().await.unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (0, true));
    // It is killed while the turn runs, and whoever answers goes on.
    let second = lab.question(Keep::Cache);
    lab.answerer.hold();
    let mut socket = lab.world.connect(&lab.ana).await;
    ask(&mut socket, ClientEvent::ChatMessageAdded(second.clone())).await.unwrap();
    until(async || lab.is_marked(&second).await && lab.answerer.counts().0 == 2).await;
    lab.world.service.kill_turns();
    lab.wait();
    other.look_after_answers().await.unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&second).await), (1, true), "it has no answer yet");
    lab.answerer.let_say(100);
    until(async || lab.answerer.counts().1 == 2).await;
    lab.world.pass(Duration::from_secs(60));
    other.look_after_answers().await.unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&second).await), (2, false));
}

#[tokio::test]
async fn what_a_device_has_stored_or_deleted_leaves_no_letter() {
    let mut lab = Lab::new().await;
    let other = lab.gateway();
    let question = lab.asked(Keep::Cache).await;
    lab.answered().await;
    let mut socket = lab.world.connect(&lab.ana).await;
    let stored = AiResponseCompleted { chat: lab.chat.clone(), turn: question.turn.clone() };
    ask(&mut socket, ClientEvent::AiResponseCompleted(stored)).await.unwrap();
    assert!(!lab.is_marked(&question).await);
    // Killed, and its chat deleted before anybody looks.
    let question = lab.asked(Keep::Cache).await;
    lab.world.service.kill_turns();
    let (delete, after) = lab.ana.device.deletion(&lab.chat);
    lab.world.store.delete_chat(delete).await.unwrap();
    lab.ana.device = after;
    lab.wait();
    other.look_after_answers().await.unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (0, false));
}

/// One whose key was destroyed is not there, also if an old copy of the database brings its rows back.
#[tokio::test]
async fn a_mark_without_a_key_or_of_another_chat_leaves_nothing() {
    let mut lab = Lab::new().await;
    let one = lab.asked(Keep::Cache).await;
    lab.answered().await;
    let two = lab.asked(Keep::Cache).await;
    until(async || lab.answerer.counts().1 == 2).await;
    lab.world.service.kill_turns();
    let other = lab.gateway();
    let mut socket = lab.world.connect(&lab.ana).await;
    let elsewhere = lab.ana.create(&mut socket, 0).await;
    lab.world.home.sql(&format!("UPDATE marks SET chat = '{elsewhere}' WHERE turn = '{}'", one.turn)).await;
    lab.world.vault.destroy_chats(&lab.ana.device.id, std::slice::from_ref(&lab.chat)).await.unwrap();
    lab.wait();
    other.look_after_answers().await.unwrap();
    assert_eq!(lab.letters().await, 0);
    let is_there = lab.world.store.mark(&lab.ana.device.id, &elsewhere, &one.turn).await.unwrap().is_some();
    assert!(!is_there && !lab.is_marked(&two).await);
}

#[tokio::test]
async fn a_process_that_ends_leaves_what_was_answered_and_lets_the_rest_go() {
    for keep in [Keep::Cache, Keep::Turn] {
        let lab = Lab::new().await;
        let question = lab.asked(keep).await;
        lab.answered().await;
        lab.world.service.let_go(Duration::from_secs(60)).await;
        assert_eq!((lab.letters().await, lab.is_marked(&question).await), (1, false));
    }
    let lab = Lab::new().await;
    let question = lab.asked(Keep::Cache).await;
    lab.world.service.let_go(Duration::from_millis(10)).await;
    lab.world.service.kill_turns();
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (0, true));
    lab.answered().await;
    // At once.
    lab.gateway().look_after_answers().await.unwrap();
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (1, false));
}

#[tokio::test]
async fn a_turn_of_which_nothing_is_known_is_forgotten_after_a_while() {
    let lab = Lab::new().await;
    let question = lab.asked(Keep::Cache).await;
    lab.world.service.kill_turns();
    // It remembers nothing of it.
    let other = gateway(&lab.world, &MemoryAnswerer::default(), Duration::from_secs(60));
    lab.wait();
    other.look_after_answers().await.unwrap();
    assert!(lab.is_marked(&question).await, "it may be on its way");
    for _ in 0..20 {
        lab.world.pass(Duration::from_secs(60));
        other.look_after_answers().await.unwrap();
    }
    assert_eq!((lab.letters().await, lab.is_marked(&question).await), (0, false));
}

/// Its words are in the memory of the first gateway; the second waits for the letter.
#[tokio::test]
async fn an_answer_in_the_memory_of_another_gateway_comes_with_its_letter() {
    let mut lab = Lab::new().await;
    lab.world.service = gateway(&lab.world, &lab.answerer, Duration::from_millis(300));
    let question = lab.asked(Keep::Turn).await;
    let here = lab.world.service.clone();
    lab.world.service = gateway(&lab.world, &MemoryAnswerer::default(), Duration::from_secs(60));
    let mut socket = lab.world.connect(&lab.ana).await;
    let resume = lab.resume(&question);
    let guess = ResumeAiTask { after: Digest::of(b"a guess"), ..resume.clone() };
    let frames = ask(&mut socket, ClientEvent::ResumeAiTask(guess)).await.unwrap();
    assert_eq!(name(&frames), "not-found");
    let frames = ask(&mut socket, ClientEvent::ResumeAiTask(resume.clone())).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    // Asked again there, it is the same turn, and not answered a second time.
    let frames = ask(&mut socket, ClientEvent::ChatMessageAdded(question.clone())).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    lab.answered().await;
    let ServerEvent::PendingAiResponse(sent) = news(&mut socket).await.event else { panic!() };
    assert_eq!(lab.open(&question, &sent).0.body, "known=0: a question");
    drop(here);
}

#[tokio::test]
async fn a_turn_that_went_with_its_process_is_not_waited_for() {
    let mut lab = Lab::new().await;
    let question = lab.asked(Keep::Turn).await;
    lab.world.service.kill_turns();
    lab.world.service = gateway(&lab.world, &MemoryAnswerer::default(), Duration::from_secs(60));
    let mut socket = lab.world.connect(&lab.ana).await;
    let resume = ClientEvent::ResumeAiTask(lab.resume(&question));
    let frames = ask(&mut socket, resume.clone()).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    lab.wait();
    let ServerEvent::AiTaskFailed(failed) = news(&mut socket).await.event else { panic!() };
    assert_eq!(failed.error.name(), "not-found", "so the device asks anew");
    assert_eq!(name(&ask(&mut socket, resume).await.unwrap()), "not-found");
}

#[tokio::test]
async fn how_an_answer_ended_is_in_its_letter() {
    let lab = Lab::new().await;
    let mut question = lab.question(Keep::Cache);
    question.text = Text::cut("stop me please");
    let mut socket = lab.world.connect(&lab.ana).await;
    ask(&mut socket, ClientEvent::ChatMessageAdded(question.clone())).await.unwrap();
    lab.answerer.let_say(1);
    while news(&mut socket).await.event.name() != "ai_message_update" {}
    let cancel =
        confidant_chat_protocol::CancelAiTask { chat: lab.chat.clone(), turn: question.turn.clone() };
    ask(&mut socket, ClientEvent::CancelAiTask(cancel)).await.unwrap();
    while news(&mut socket).await.event.name() != "ai_typing_ended" {}
    lab.world.service.let_go(Duration::from_secs(60)).await;
    let letter = lab.world.service.inner.letter_for(&lab.ana.device.id, &lab.chat, &question.turn).await;
    let LetterSent { chat, turn, reply, letter, more, .. } = letter.unwrap().unwrap();
    let (message, more) = lab.open(&question, &PendingAiResponse { chat, turn, reply, letter, more });
    assert!(more.contains(r#""finish":"cancelled""#), "{more}");
    assert!(message.body.starts_with("known=0:"));
}
