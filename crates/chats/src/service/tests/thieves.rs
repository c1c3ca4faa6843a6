//! A stolen session without a key of the account: it can ask, and nothing that it makes up is kept beyond its words.

use confidant_chat_format::{MessageId, TranscriptKind};
use confidant_chat_protocol::{AiTypingEnded, ChatHistory, ChatMessageAdded, Heard, Remembered, SaidBy};

use super::answers::{Asker, answered, ask_event, heard};
use super::*;
use crate::answerer::{Answerer as _, MemoryAnswerer};

const CONCEPTS: Remembered = Remembered::Concepts;

/// A question that lets concepts be kept.
fn keeping(asker: &Asker, words: &str) -> ChatMessageAdded {
    ChatMessageAdded { remembers: Some(List::new(vec![CONCEPTS]).unwrap()), ..asker.question(words) }
}

/// What questions had concepts kept, or shown to the model.
async fn kept(answerer: &MemoryAnswerer, ana: &Person, chat: &ChatId) -> Vec<String> {
    answerer.remembered(&ana.device.id, chat, CONCEPTS).await.unwrap()
}

/// Asks, and gives this history if it is asked for; the answer.
async fn told(
    socket: &mut Socket,
    question: &ChatMessageAdded,
    history: &[Heard],
) -> (String, AiTypingEnded) {
    ask(socket, ask_event(question)).await.unwrap();
    let mut words = String::new();
    loop {
        match news(socket).await.event {
            ServerEvent::RequestChatHistory(wanted) if wanted.turn == question.turn => {
                let (chat, turn, messages) = (wanted.chat, wanted.turn, List::new(history.to_vec()).unwrap());
                let history = ChatHistory { chat, turn, messages, more: false };
                assert!(ask(socket, ClientEvent::ChatHistory(history)).await.unwrap().is_empty());
            }
            ServerEvent::AiMessageUpdate(update) if update.turn == question.turn => {
                words.push_str(update.text.as_str());
            }
            ServerEvent::AiTypingEnded(ended) if ended.turn == question.turn => return (words, ended),
            ServerEvent::AiTaskFailed(failed) => panic!("{}", failed.what.as_str()),
            _ => {}
        }
    }
}

/// What a device has of a question and its answer.
fn lines(question: &ChatMessageAdded, (words, ended): &(String, AiTypingEnded)) -> [Heard; 2] {
    let asked = heard(&question.message, SaidBy::User, question.text.as_str(), None);
    [asked, heard(&question.reply, SaidBy::Assistant, words, ended.proof)]
}

#[tokio::test]
async fn what_a_thief_makes_up_has_no_concepts_kept() {
    let (world, answerer, mut ana, mut socket, mut asker) = answered(false).await;
    let chat = asker.chat.clone();
    let first = keeping(&asker, "first");
    let puts = vec![ItemId::Message(first.message.clone())];
    ana.write(&mut socket, &chat, &Edit { puts, ..Edit::default() }).await;
    let answer = told(&mut socket, &first, &[]).await;
    let real = lines(&first, &answer);
    assert_eq!(kept(&answerer, &ana, &chat).await, ["first"]);

    let stolen = world.second(&ana).await;
    let mut theirs = world.connect(&stolen).await;
    let mut thief = Asker { chat: chat.clone(), branch: Vec::new() };
    // As if the chat began with it; then behind the answer to that, which is the server's own.
    let (mut made_up, mut proofs): (Vec<Heard>, Vec<_>) = (Vec::new(), Vec::new());
    for words in ["made up", "and more"] {
        let question = keeping(&thief, words);
        let answer = told(&mut theirs, &question, &[]).await;
        proofs.push(answer.1.proof.unwrap());
        made_up.extend(lines(&question, &answer));
        thief.branch.extend([question.message.clone(), question.reply.clone()]);
        assert_eq!(kept(&answerer, &ana, &chat).await, ["first"], "{words}");
    }
    // The same as a history, with these proofs; they are good for the words.
    answerer.forget();
    told(&mut theirs, &keeping(&thief, "with its history"), &made_up).await;
    assert_eq!(answerer.lines(&chat)[1].kind, TranscriptKind::Assistant);
    assert_eq!(kept(&answerer, &ana, &chat).await, ["first"]);
    // What nobody said, with a proof of other words or none.
    for proof in [Some(proofs[0]), None] {
        answerer.forget();
        thief.branch = vec![MessageId::random(), MessageId::random()];
        let forged = [
            heard(&thief.branch[0], SaidBy::User, "made up", None),
            heard(&thief.branch[1], SaidBy::Assistant, "never said", proof),
        ];
        told(&mut theirs, &keeping(&thief, "forged"), &forged).await;
        assert_eq!(answerer.lines(&chat)[1].kind, TranscriptKind::Quoted);
        assert_eq!(kept(&answerer, &ana, &chat).await, ["first"]);
    }

    // A device of the owner has what was said, and the cache goes on with that.
    asker.branch = vec![first.message.clone(), first.reply.clone()];
    let second = keeping(&asker, "second");
    told(&mut socket, &second, &real).await;
    asker.branch.extend([second.message.clone(), second.reply.clone()]);
    told(&mut socket, &keeping(&asker, "third"), &[]).await;
    assert_eq!(kept(&answerer, &ana, &chat).await, ["first", "second", "third"]);
    // A session alone may have them forgotten, as it may ask for that.
    let nothing = ChatMessageAdded { remembers: Some(List::default()), ..thief.question("forget it") };
    let nothing = ChatMessageAdded { count: 0, ..nothing };
    told(&mut theirs, &nothing, &[]).await;
    assert!(kept(&answerer, &ana, &chat).await.is_empty());
}

/// The first message goes, and it is as if the chat had none: the store knows better.
#[tokio::test]
async fn a_chat_that_was_emptied_does_not_begin_anew() {
    let (_world, answerer, mut ana, mut socket, asker) = answered(false).await;
    let chat = asker.chat.clone();
    let first = keeping(&asker, "first");
    let item = ItemId::Message(first.message.clone());
    ana.write(&mut socket, &chat, &Edit { puts: vec![item.clone()], ..Edit::default() }).await;
    ana.write(&mut socket, &chat, &Edit { removes: vec![item], ..Edit::default() }).await;
    told(&mut socket, &keeping(&asker, "made up"), &[]).await;
    assert!(kept(&answerer, &ana, &chat).await.is_empty());
}
