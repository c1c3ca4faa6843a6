//! What happens to questions when somebody goes at the worst moment: between the question and its history, in the middle of an answer, after
//! a cancel, before an erasure; and when two devices want the same thing.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use confidant_chat_format::{ChatId, Role, TurnId};
use confidant_chat_protocol::{Body as _, ClientEvent, ClientFrame, Finish};
use confidant_chats::answerer::MemoryAnswerer;
use confidant_client::{AskOptions, Awaiting, Device, News, Phase, Transport, TurnUpdate};
use parking_lot::Mutex;

use crate::asks::{answered, hear, is_end, is_made, plain, reopened, shown, weathered};
use crate::devices::bodies;
use crate::gateways::{Roaming, Two};
use crate::on_both_stores;
use crate::place::Place;
use crate::world::{Between, MemoryFiles, Person, Through, World};

on_both_stores!(
    an_answer_goes_on_at_the_other_gateway,
    a_question_goes_to_the_other_gateway_before_its_history,
    an_answer_stored_at_one_gateway_is_no_letter_of_the_other,
);

async fn until(mut is: impl FnMut() -> bool) {
    let wait = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("it does not happen");
}

fn is_words(telling: &TurnUpdate) -> bool {
    matches!(telling, TurnUpdate::Words { .. })
}

/// The answer, whole.
async fn heard(device: &mut Device, turn: &TurnId) -> Vec<TurnUpdate> {
    let told = hear(device, turn, is_end).await;
    assert!(matches!(told.last(), Some(TurnUpdate::Ended(_))), "there is no answer");
    device.flush().await.unwrap();
    told
}

/// A chat with one answer, which the server has forgotten: the next question needs its history.
async fn forgotten(answerer: &MemoryAnswerer, one: &mut Device) -> ChatId {
    let chat = one.new_chat(Some("Trip")).unwrap();
    answered(one, &chat, "my name is Ana").await;
    answerer.forget();
    chat
}

#[tokio::test]
async fn a_socket_lost_before_the_history_is_no_lost_question() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let (weather, files, mut one, _) = weathered(&world).await;
    let chat = forgotten(&answerer, &mut one).await;
    // Gone before the history was asked for, or given.
    let asked = one.ask(&chat, "who am I?", &plain()).unwrap();
    one.flush().await.unwrap();
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    let told = heard(&mut one, &asked.turn).await;
    assert!(told.contains(&TurnUpdate::History(2)) && shown(&told) == "known=2: who am I?");
    // The same, and the program ends with it.
    answerer.forget();
    let asked = one.ask(&chat, "and now?", &plain()).unwrap();
    one.flush().await.unwrap();
    let mut one = reopened(&world, &weather, &files);
    one.sync(Phase::All).await.unwrap();
    let told = heard(&mut one, &asked.turn).await;
    assert!(told.contains(&TurnUpdate::History(4)));
    assert_eq!(bodies(&one, &chat).len(), 6);
    assert_eq!(answerer.counts(), (3, 3), "each was answered once");
}

/// Turns whose history was given, whole.
#[derive(Default)]
struct Histories(Mutex<Vec<TurnId>>);

impl Between for Histories {
    fn rewrites(&self, frame: Vec<u8>) -> Vec<u8> {
        if let Ok(ClientFrame { event: ClientEvent::ChatHistory(part), .. }) = ClientFrame::read(&frame)
            && !part.more
        {
            self.0.lock().push(part.turn);
        }
        frame
    }
}

#[tokio::test]
async fn each_of_two_questions_that_wait_gives_its_history_once() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let given = Arc::<Histories>::default();
    let way = Arc::new(Through { inner: world.transport(), between: Arc::clone(&given) });
    let (mut one, _) = world.ana_over(way, &MemoryFiles::new()).await;
    let chat = forgotten(&answerer, &mut one).await;
    let asked = ["who am I?", "and where?"].map(|words| one.ask(&chat, words, &plain()).unwrap());
    one.flush().await.unwrap();
    // The connection is lost before anything was given.
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    one.flush().await.unwrap();
    for asked in &asked {
        heard(&mut one, &asked.turn).await;
        one.sync(Phase::All).await.unwrap();
    }
    assert_eq!(*given.0.lock(), asked.map(|asked| asked.turn));
}

/// What waits behind a write is decided by what the write left: a kill between the chat's file and the queue's loses nothing.
#[tokio::test(start_paused = true)]
async fn a_kill_at_any_write_loses_no_chat_question_or_second_answer() {
    let world = World::answering(&MemoryAnswerer::default()).await;
    let (weather, files, mut one, _) = weathered(&world).await;
    let mut kills = 0;
    loop {
        // Answers of before go to the mailbox: the server makes a few at a time.
        tokio::time::sleep(Duration::from_secs(90)).await;
        let chat = one.new_chat(Some("Trip")).unwrap();
        let asked = one.ask(&chat, "which way?", &plain()).unwrap();
        let again = one.retry(&chat, &asked.message, &plain()).unwrap();
        files.kill_after(kills);
        let whole = one.flush().await.is_ok();
        files.revive();
        one = reopened(&world, &weather, &files);
        one.flush().await.unwrap();
        let mut awaited: Vec<_> = one.awaited().into_iter().filter(|one| one.chat == chat).collect();
        awaited.sort_by_key(|one| one.reply != asked.reply);
        let replies: Vec<_> = awaited.into_iter().map(|one| one.reply).collect();
        assert_eq!(replies, [asked.reply, again.reply], "killed after {kills} writes");
        assert!(one.waiting().is_empty() && one.copies().is_empty());
        if whole {
            break;
        }
        kills += 1;
    }
    assert!(kills > 3, "the writes of a flush were met");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_never_began_is_asked_again_after_a_day() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let (weather, files, mut one, _) = weathered(&world).await;
    let chat = forgotten(&answerer, &mut one).await;
    let asked = one.ask(&chat, "who am I?", &plain()).unwrap();
    one.flush().await.unwrap();
    drop(one);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    let mut one = reopened(&world, &weather, &files);
    one.sync(Phase::All).await.unwrap();
    assert!(
        one.told().is_none_or(|told| told.what == TurnUpdate::Begun(0)),
        "nothing that would worry anybody"
    );
    let told = heard(&mut one, &asked.turn).await;
    assert_eq!(shown(&told), "known=2: who am I?");
}

/// As long as the device that asked is there, its history is waited for; others do not wait for one that is gone.
#[tokio::test(start_paused = true)]
async fn a_question_whose_device_is_gone_holds_up_nobody() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = forgotten(&answerer, &mut one).await;
    let mut two = world.second(&ana).await;
    one.ask(&chat, "who am I?", &plain()).unwrap();
    one.flush().await.unwrap();
    drop(one);
    let began = tokio::time::Instant::now();
    two.sync(Phase::All).await.unwrap();
    let asked = two.ask(&chat, "and who am I?", &plain()).unwrap();
    two.flush().await.unwrap();
    heard(&mut two, &asked.turn).await;
    assert!(began.elapsed() < Duration::from_secs(30), "by a clock that stands still while anybody works");
    assert_eq!(two.unanswered().len(), 1, "and the question of the other device is not forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_a_history_and_for_others() {
    let answerer = MemoryAnswerer::default();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = forgotten(&answerer, &mut one).await;
    let mut two = world.second(&ana).await;
    let first = one.ask(&chat, "first", &plain()).unwrap();
    one.flush().await.unwrap();
    let second = one.ask(&chat, "second", &plain()).unwrap();
    one.flush().await.unwrap();
    two.sync(Phase::All).await.unwrap();
    let began = tokio::time::Instant::now();
    for turn in [&second.turn, &first.turn] {
        two.cancel(&chat, turn).await.unwrap();
        let told = hear(&mut two, turn, is_end).await;
        assert!(matches!(told.last(), Some(TurnUpdate::Failed(error)) if error.name() == "unavailable"));
    }
    assert!(began.elapsed() < Duration::from_secs(1), "by a clock that stands still while anybody works");
    assert_eq!(answerer.counts().0, 1, "neither began");
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_while_nobody_listens_is_in_the_mailbox() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "one two three", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &asked.turn, is_words).await;
    one.cancel(&chat, &asked.turn).await.unwrap();
    one.disconnect();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let letters = || async { world.store().letters(one.account_id(), None, usize::MAX).await.unwrap() };
    assert_eq!(letters().await.len(), 1);
    let mut two = world.second(&ana).await;
    two.flush().await.unwrap();
    assert_eq!(bodies(&two, &chat).len(), 2);
    assert!(letters().await.is_empty(), "it was taken");
    assert_eq!(two.chat(&chat).unwrap().fields["summary"], "in short", "with what was made of it");
}

/// As a device that was there would have heard it.
#[tokio::test(start_paused = true)]
async fn a_letter_says_how_its_answer_ended() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "stop me in time", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &asked.turn, is_words).await;
    let mut two = world.second(&ana).await;
    two.disconnect();
    one.cancel(&chat, &asked.turn).await.unwrap();
    one.disconnect();
    tokio::time::sleep(Duration::from_secs(120)).await;
    two.sync(Phase::All).await.unwrap();
    let told = heard(&mut two, &asked.turn).await;
    assert_eq!(told.last(), Some(&TurnUpdate::Ended(Finish::Cancelled)));
    assert_eq!(bodies(&two, &chat), ["stop me in time", "known=0: "]);
}

#[tokio::test]
async fn the_same_question_on_two_devices_is_two_questions_with_one_answer_each() {
    let world = World::answering(&MemoryAnswerer::default()).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    one.flush().await.unwrap();
    let mut two = world.second(&ana).await;
    let asked = [&mut one, &mut two].map(|device| device.ask(&chat, "the same", &plain()).unwrap());
    let (first, second) = tokio::join!(one.flush(), two.flush());
    first.unwrap();
    second.unwrap();
    for (device, asked) in [(&mut one, &asked[0]), (&mut two, &asked[1])] {
        heard(device, &asked.turn).await;
    }
    for device in [&mut one, &mut two] {
        device.sync(Phase::All).await.unwrap();
        device.flush().await.unwrap();
        device.sync(Phase::All).await.unwrap();
        let view = device.chat(&chat).unwrap();
        assert_eq!(view.messages.len(), 4);
        for asked in &asked {
            assert_eq!(view.messages[&asked.reply].parent.as_ref(), Some(&asked.message));
        }
    }
}

#[tokio::test]
async fn asking_again_while_the_answer_comes_gives_both_also_from_two_devices() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let first = one.ask(&chat, "one two", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &first.turn, is_words).await;
    let mut two = world.second(&ana).await;
    let again = one.retry(&chat, &first.message, &plain()).unwrap();
    let other = two.retry(&chat, &first.message, &plain()).unwrap();
    one.flush().await.unwrap();
    two.flush().await.unwrap();
    assert_eq!(two.awaited().len(), 3, "what is still coming is not given up");
    answerer.let_say(100);
    for turn in [&first.turn, &again.turn] {
        hear(&mut one, turn, is_end).await;
    }
    hear(&mut two, &other.turn, is_end).await;
    for device in [&mut one, &mut two] {
        device.sync(Phase::All).await.unwrap();
        device.flush().await.unwrap();
    }
    one.sync(Phase::All).await.unwrap();
    let view = one.chat(&chat).unwrap();
    assert!(view == two.chat(&chat).unwrap());
    let answers = view.messages.values().filter(|message| message.role == Role::Assistant);
    let answers: Vec<_> = answers.map(|message| (message.parent.clone(), message.body.clone())).collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|(parent, _)| parent.as_ref() == Some(&first.message)));
    assert_eq!(answerer.counts(), (3, 3));
}

#[tokio::test]
async fn a_chat_deleted_in_mid_answer_leaves_no_words() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, _) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "secret words", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &asked.turn, is_words).await;
    // This one waits for the first.
    one.ask(&chat, "more secret words", &plain()).unwrap();
    one.flush().await.unwrap();
    one.delete_chat(&chat).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(100);
    until(|| answerer.counts().1 == 1).await;
    // The turn kept its words when it ended; they go, too.
    until(|| answerer.lines(&chat).is_empty()).await;
    one.sync(Phase::All).await.unwrap();
    assert_eq!(answerer.counts(), (1, 1), "what waited never began");
    assert!(one.chats().is_empty() && one.awaited().is_empty());
}

#[tokio::test]
async fn an_account_erased_in_mid_answer_leaves_no_words() {
    let answerer = MemoryAnswerer::held();
    let world = World::answering(&answerer).await;
    let (mut one, ana) = world.ana().await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "secret words", &plain()).unwrap();
    one.flush().await.unwrap();
    answerer.let_say(1);
    hear(&mut one, &asked.turn, is_words).await;
    let account = one.account_id().clone();
    one.erase(&ana.recovery()).await.unwrap();
    answerer.let_say(100);
    until(|| answerer.counts().1 == 1).await;
    until(|| answerer.lines(&chat).is_empty()).await;
    assert!(world.kept.rows_of(account.as_str()).await.is_empty(), "no letter, and nothing else");
}

#[tokio::test]
async fn whoever_stops_listening_in_between_misses_nothing() {
    let world = World::answering(&MemoryAnswerer::default()).await;
    let (mut one, ana) = world.ana().await;
    let mut two = world.second(&ana).await;
    one.sync(Phase::All).await.unwrap();
    let mut left_half_done = 0;
    // A server that is quick tells all of it at the first look, which proves nothing: then the next chat has to.
    for _ in 0..100 {
        let chat = two.new_chat(Some("Trip")).unwrap();
        two.flush().await.unwrap();
        // The news are here, and the chat has to be asked for: whoever looks once and goes leaves that half done.
        let told = loop {
            let mut listening = pin!(one.listen());
            match listening.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(news) if news.as_ref().unwrap() == &News::Chat(chat.clone()) => break true,
                Poll::Ready(_) => {}
                Poll::Pending => break false,
            }
        };
        if !told {
            let heard = async { while one.listen().await.unwrap() != News::Chat(chat.clone()) {} };
            tokio::time::timeout(Duration::from_secs(60), heard).await.expect("the news are lost");
            left_half_done += 1;
        }
        assert!(one.chat(&chat).is_ok());
        if left_half_done == 3 {
            return;
        }
    }
    panic!("of 100 chats the first look found {} finished", 100 - left_half_done);
}

/// Two devices of a person, each at a gateway of its own.
async fn apart(two: &Two) -> (Device, Device, Person) {
    let (person, files) = (Person::new(), [MemoryFiles::new(), MemoryFiles::new()]);
    let (near, far) = (two.way(), two.way());
    far.turn();
    let one = two.world.register(near, &files[0], "ana@example.org", vec![person.recovery()]).await.unwrap();
    let other = Device::log_in(two.world.setup_over(far, &files[1]), &person.recovery()).await.unwrap();
    (one, other, person)
}

/// Killed in the middle of the answer; a device at the other gateway hears the end.
async fn an_answer_goes_on_at_the_other_gateway(place: Place) {
    let two = Two::at(place, MemoryAnswerer::held(), Duration::from_secs(60)).await;
    let (mut one, mut other, _) = apart(&two).await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "one two three", &AskOptions::default()).unwrap();
    one.flush().await.unwrap();
    two.answerer.let_say(2);
    hear(&mut one, &asked.turn, is_words).await;
    drop(one);
    other.sync(Phase::All).await.unwrap();
    assert_eq!(other.awaited()[0].state, Awaiting::Running);
    two.answerer.let_say(100);
    let told = heard(&mut other, &asked.turn).await;
    assert_eq!(shown(&told), "known=0: one two three");
    assert_eq!(bodies(&other, &chat), ["one two three", "known=0: one two three"]);
    assert_eq!(two.answerer.counts(), (1, 1));
}

async fn a_question_goes_to_the_other_gateway_before_its_history(place: Place) {
    let two = Two::at(place, MemoryAnswerer::default(), Duration::from_secs(60)).await;
    let (person, files, way) = (Person::new(), MemoryFiles::new(), two.way());
    let there: Arc<dyn Transport> = Arc::<Roaming>::clone(&way);
    let one = two.world.register(there, &files, "ana@example.org", vec![person.recovery()]).await;
    let mut one = one.unwrap();
    let chat = forgotten(&two.answerer, &mut one).await;
    let asked = one.ask(&chat, "who am I?", &plain()).unwrap();
    one.flush().await.unwrap();
    one.disconnect();
    way.turn();
    one.sync(Phase::All).await.unwrap();
    let told = heard(&mut one, &asked.turn).await;
    assert!(told.contains(&TurnUpdate::History(2)) && shown(&told) == "known=2: who am I?");
    assert_eq!(one.chat(&chat).unwrap().messages.len(), 4);
}

/// The gateway where the question was asked does not hear that the answer was stored; it finds it.
async fn an_answer_stored_at_one_gateway_is_no_letter_of_the_other(place: Place) {
    let two = Two::at(place, MemoryAnswerer::held(), Duration::from_secs(3)).await;
    let (mut one, mut other, _) = apart(&two).await;
    let chat = one.new_chat(None).unwrap();
    let asked = one.ask(&chat, "one", &plain()).unwrap();
    one.flush().await.unwrap();
    two.answerer.let_say(1);
    hear(&mut one, &asked.turn, is_words).await;
    other.sync(Phase::All).await.unwrap();
    one.disconnect();
    two.answerer.let_say(100);
    heard(&mut other, &asked.turn).await;
    hear(&mut other, &asked.turn, is_made).await;
    other.flush().await.unwrap();
    // A second turn that nobody takes is left by the same gateway, and later: then the first was, too.
    let second = one.ask(&chat, "two", &plain()).unwrap();
    one.sync(Phase::All).await.unwrap();
    one.flush().await.unwrap();
    one.disconnect();
    let store = two.world.store();
    let account = other.account_id().clone();
    let wait = async {
        loop {
            let letters = store.letters(&account, None, usize::MAX).await.unwrap();
            if letters.iter().any(|letter| letter.turn == second.turn) {
                return letters;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let letters = tokio::time::timeout(Duration::from_secs(60), wait).await.expect("there is no letter");
    assert_eq!(letters.len(), 1, "there is one for an answer that is stored");
}
