//! Answers that wait in the mailbox.

use confidant_chat_format::{BoxKey, Head, Letter, Message, MessageId, Pending, Refused, Role, Text, TurnId};
use confidant_chat_protocol::{Erase, Erased, Export, LetterSent};

use super::*;
use crate::store::Kept;

/// A question that nobody has answered yet.
struct Asked {
    chat: ChatId,
    turn: TurnId,
    reply: MessageId,
    parent: MessageId,
}

impl Asked {
    fn new(chat: &ChatId) -> Self {
        let (turn, reply, parent) = (TurnId::random(), MessageId::random(), MessageId::random());
        Self { chat: chat.clone(), turn, reply, parent }
    }

    fn answer(&self, words: &str) -> Message {
        Message {
            v: 1,
            role: Role::Assistant,
            parent: Some(self.parent.clone()),
            created_at: 7,
            body: words.to_owned(),
            model: None,
            reason: None,
            refs: vec![],
            proof: None,
            shared: vec![],
        }
    }

    async fn leave(&self, world: &World, ana: &Person, words: &str) -> Result<Kept, RefusedSent> {
        let (service, message) = (&world.service.inner, self.answer(words));
        service.leave_letter(&ana.device.id, &self.chat, &self.turn, &self.reply, &message).await
    }

    async fn found(&self, world: &World, ana: &Person) -> Option<LetterSent> {
        world.service.inner.letter_for(&ana.device.id, &self.chat, &self.turn).await.unwrap()
    }

    /// What a device whose head waits for it reads.
    fn open(&self, ana: &Person, sent: &LetterSent) -> Result<(Message, Option<Text>), Refused> {
        let device = &ana.device;
        let ring = Ring::open(&device.ak, &device.id, RingOf::Box, &device.boxes).unwrap();
        let boxes: Vec<BoxKey> = ring.iter().map(BoxKey::of).collect();
        let (turn, parent, reply) = (self.turn.clone(), self.parent.clone(), self.reply.clone());
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
            device: ana.here.clone(),
        };
        assert_eq!((&sent.chat, &sent.turn, &sent.reply), (&self.chat, &self.turn, &self.reply));
        let letter = Letter { account: &device.id, chat: &sent.chat, reply: &sent.reply, turn: &sent.turn };
        let message = letter.open(&boxes, &head, &Default::default(), sent.letter.as_bytes())?;
        let more = sent.more.as_ref().map(|more| letter.open_more(&boxes, &head, more.as_bytes()));
        Ok((message, more.transpose()?))
    }
}

fn error<T>(answer: Result<T, RefusedSent>) -> &'static str {
    answer.map(drop).unwrap_err().error.name()
}

#[tokio::test]
async fn an_answer_waits_sealed_until_a_device_takes_it() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let asked = Asked::new(&chat);
    let service = &world.service.inner;
    let (id, more) = (ana.device.id.clone(), Text { v: 1, body: "MARKER-OF-SUGGESTIONS".to_owned() });
    assert_eq!(error(service.leave_more(&id, &chat, &asked.turn, &more).await), "not-found");
    assert_eq!(asked.leave(&world, &ana, "MARKER-OF-AN-ANSWER").await, Ok(Kept::Now));
    assert_eq!(asked.leave(&world, &ana, "another one").await, Ok(Kept::Before), "after a kill, say");
    assert_eq!(service.leave_more(&id, &chat, &asked.turn, &more).await, Ok(Kept::Now));
    assert_eq!(service.leave_more(&id, &chat, &asked.turn, &more).await, Ok(Kept::Before));
    let sent = asked.found(&world, &ana).await.unwrap();
    let opened = asked.open(&ana, &sent).unwrap();
    assert_eq!(opened, (asked.answer("MARKER-OF-AN-ANSWER"), Some(more.clone())));
    let bytes = world.home.bytes().await;
    for marker in ["MARKER-OF-AN-ANSWER", "MARKER-OF-SUGGESTIONS"] {
        assert!(!bytes.windows(marker.len()).any(|window| window == marker.as_bytes()));
    }
    // Somebody else's key opens nothing, nor does it elsewhere.
    let ben = world.register("ben").await;
    assert!(asked.open(&Person { device: ben.device.clone(), ..ana.clone() }, &sent).is_err());
    let service = &world.service.inner;
    assert_eq!(service.letter_for(&ben.device.id, &chat, &asked.turn).await, Ok(None));
    assert_eq!(service.acknowledge(&ben.device.id, &chat, &asked.turn).await, Ok(false));
    assert_eq!(service.acknowledge(&id, &chat, &asked.turn).await, Ok(true));
    assert_eq!(service.acknowledge(&id, &chat, &asked.turn).await, Ok(false));
    assert_eq!(asked.found(&world, &ana).await, None);
    assert_eq!(error(service.leave_more(&id, &chat, &asked.turn, &more).await), "not-found");
}

#[tokio::test]
async fn what_is_no_answer_of_a_chat_is_not_left() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let asked = Asked::new(&chat);
    let service = &world.service.inner;
    let forged = Message { role: Role::User, ..asked.answer("x") };
    let left = service.leave_letter(&ana.device.id, &chat, &asked.turn, &asked.reply, &forged).await;
    assert_eq!(error(left), "malformed");
    let nowhere = Asked::new(&ChatId::random());
    assert_eq!(error(nowhere.leave(&world, &ana, "x").await), "not-found");
    let long = "x".repeat(crate::store::limits::LETTER_BYTES);
    assert_eq!(error(asked.leave(&world, &ana, &long).await), "too-large");
    let nobody = confidant_chat_format::AccountId::random();
    assert_eq!(error(service.box_pub(&nobody).await), "not-found");
    // It goes by time.
    asked.leave(&world, &ana, "x").await.unwrap();
    world.pass(crate::store::limits::LETTER_LIFE);
    world.service.upkeep().await.unwrap();
    assert_eq!(asked.found(&world, &ana).await, None);
}

#[tokio::test]
async fn letters_are_sealed_to_the_newest_key_and_older_ones_still_open() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let (before, after) = (Asked::new(&chat), Asked::new(&chat));
    let service = &world.service.inner;
    assert_eq!(service.box_pub(&ana.device.id).await, Ok(ana.device.box_pub));
    before.leave(&world, &ana, "before").await.unwrap();
    let lost = ana.clone();
    ana = super::keys::rotated(&world, &ana).await;
    assert_ne!(ana.device.box_pub, lost.device.box_pub);
    assert_eq!(service.box_pub(&ana.device.id).await, Ok(ana.device.box_pub));
    after.leave(&world, &ana, "after").await.unwrap();
    for (asked, words) in [(&before, "before"), (&after, "after")] {
        let sent = asked.found(&world, &ana).await.unwrap();
        assert_eq!(asked.open(&ana, &sent), Ok((asked.answer(words), None)));
        assert_eq!(asked.open(&lost, &sent).is_ok(), words == "before", "a lost device has the old key only");
    }
    // Whoever takes the newest entry away makes the server seal to nobody.
    world.home.sql("DELETE FROM rings WHERE kind = 2 AND n = 2").await;
    assert_eq!(error(service.box_pub(&ana.device.id).await), "rolled-back");
    assert_eq!(error(Asked::new(&chat).leave(&world, &ana, "x").await), "rolled-back");
    world.home.sql("DELETE FROM rings WHERE kind = 2").await;
    assert_eq!(error(service.box_pub(&ana.device.id).await), "ring-gap");
}

#[tokio::test]
async fn letters_are_exported_and_erased_with_the_account() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 1).await;
    let all: Vec<Asked> = (0..30).map(|_| Asked::new(&chat)).collect();
    for asked in &all {
        // Together more than one frame takes.
        asked.leave(&world, &ana, &"words ".repeat(30_000)).await.unwrap();
    }
    let export = Export { account: ana.device.id.clone() };
    let signed = world.sign(&export, &ana.password, ana.by_login()).await;
    let caller = world.caller(Some(&ana.session));
    let answered = world.service.answer("/account/export", &caller, &signed.write().unwrap()).await.unwrap();
    let Body::Frames(mut frames) = answered.body else { panic!("one body") };
    let (mut letters, mut parts) = (Vec::new(), Vec::new());
    while let Some(frame) = frames.next().await {
        frame.write().unwrap();
        if let ServerEvent::LettersWaiting(part) = &frame.event {
            parts.push(part.more);
            letters.extend(part.letters.to_vec());
        }
    }
    assert_eq!((letters.len(), parts), (30, vec![true, true, false]));
    for asked in &all {
        let sent = letters.iter().find(|sent| sent.turn == asked.turn).unwrap();
        assert!(asked.open(&ana, sent).is_ok());
    }
    let erase = Erase { account: ana.device.id.clone() };
    let erased: Erased = world.prove("/account/erase", &ana, &erase).await.unwrap();
    assert!(erased.receipt.as_str().contains(r#""letters":30"#));
}
