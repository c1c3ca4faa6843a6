//! A server that wants words, and one that puts words into a chat: nothing leaves that was not asked for by a person, and nothing is
//! stored that the chat's sealed head does not wait for.

use std::collections::VecDeque;
use std::sync::Arc;

use confidant_chat_format::{
    BoxKey, ChatId, Digest, Letter, Message, MessageId, PublicKey, Role, Text as Words, TurnId,
};
use confidant_chat_protocol::{
    About, AiApprovalRequested, AiMessageUpdate, AiResponseStorageConfirmed, AiTaskFailed, AiTaskInitiated,
    AiTypingEnded, AiTypingStarted, Blob, Body as _, ChatHistory, ChatMessageAdded, ClientEvent, ClientFrame,
    ErrorName, Failure, Finish, Given, HistoryReason, List, PendingAiResponse, PostProcessingCompleted,
    RefusedSent, RequestChatHistory, RequestClientData, Text,
};
use confidant_client::{AskOptions, Asked, Awaiting, Consent, TurnUpdate};
use confidant_seal::Key;

use super::*;
use crate::asks::{hear, is_end, shown};

/// It answers what is about turns itself, as it likes.
#[derive(Default)]
struct Oracle {
    says: Mutex<VecDeque<ServerEvent>>,
    sent: Mutex<Vec<ClientEvent>>,
    /// What comes of a question about a turn that is waited for; nothing: there is no such turn.
    resumed: Mutex<Option<ServerEvent>>,
    box_pub: Mutex<Option<PublicKey>>,
}

impl Oracle {
    fn say(&self, event: ServerEvent) {
        self.says.lock().push_back(event);
    }

    /// The histories that left the device.
    fn histories(&self) -> Vec<ChatHistory> {
        let history = |event: &ClientEvent| match event {
            ClientEvent::ChatHistory(history) => Some(history.clone()),
            _ => None,
        };
        self.sent.lock().iter().filter_map(history).collect()
    }

    fn sent(&self, name: &str) -> usize {
        self.sent.lock().iter().filter(|event| event.name() == name).count()
    }
}

impl Between for Oracle {
    fn answers(&self, frame: &ClientFrame) -> Option<Vec<ServerFrame>> {
        let begun = |chat: &ChatId, turn: &TurnId| {
            let (chat, turn) = (chat.clone(), turn.clone());
            vec![ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn })]
        };
        let events = match &frame.event {
            ClientEvent::ChatMessageAdded(asked) => begun(&asked.chat, &asked.turn),
            ClientEvent::DecideAiTask(decide) => begun(&decide.chat, &decide.turn),
            ClientEvent::ResumeAiTask(_) => match self.resumed.lock().clone() {
                Some(event) => vec![event],
                None => {
                    let error = ErrorName::Request(Failure::NotFound);
                    vec![ServerEvent::Refused(RefusedSent::new(error, "gone", "ask again"))]
                }
            },
            ClientEvent::AiResponseCompleted(done) => {
                let (chat, turn) = (done.chat.clone(), done.turn.clone());
                vec![ServerEvent::AiResponseStorageConfirmed(AiResponseStorageConfirmed { chat, turn })]
            }
            ClientEvent::ChatHistory(_) | ClientEvent::ClientData(_) | ClientEvent::CancelAiTask(_) => {
                Vec::new()
            }
            _ => return None,
        };
        self.sent.lock().push(frame.event.clone());
        let answer = |event| ServerFrame { re: Some(frame.id), seq: None, event };
        Some(events.into_iter().map(answer).collect())
    }

    fn says(&self) -> Vec<ServerFrame> {
        let said = std::mem::take(&mut *self.says.lock());
        said.into_iter().map(|event| ServerFrame { re: None, seq: None, event }).collect()
    }

    fn receives(&self, frame: ServerFrame) -> Vec<ServerFrame> {
        if let ServerEvent::AccountState(state) = &frame.event {
            *self.box_pub.lock() = Some(state.box_pub);
        }
        vec![frame]
    }
}

/// A device with chats, over an oracle.
async fn device(scene: &Scene) -> (Arc<Oracle>, Device) {
    let oracle = Arc::new(Oracle::default());
    let way = Arc::new(Through { inner: scene.world.transport(), between: Arc::clone(&oracle) });
    let mut device = scene.world.second_over(way, &scene.ana).await;
    device.sync(Phase::All).await.unwrap();
    (oracle, device)
}

/// The same, with a question that was asked.
async fn asking(scene: &Scene) -> (Arc<Oracle>, Device, Asked) {
    let (oracle, mut device) = device(scene).await;
    let asked = device.ask(&scene.chat, "fourth?", &AskOptions::default()).unwrap();
    device.flush().await.unwrap();
    hear(&mut device, &asked.turn, |telling| matches!(telling, TurnUpdate::Begun(0))).await;
    (oracle, device, asked)
}

fn wants(chat: &ChatId, turn: &TurnId, message: &MessageId) -> ServerEvent {
    ServerEvent::RequestChatHistory(RequestChatHistory {
        chat: chat.clone(),
        turn: turn.clone(),
        message: message.clone(),
        reason: HistoryReason::Missing,
        have: 0,
    })
}

fn words(chat: &ChatId, turn: &TurnId, at: u64, text: &str) -> ServerEvent {
    let (chat, turn) = (chat.clone(), turn.clone());
    ServerEvent::AiMessageUpdate(AiMessageUpdate {
        chat,
        turn,
        at,
        text: Text::cut(text),
        pad: Text::cut(""),
    })
}

fn ended(chat: &ChatId, turn: &TurnId, text: &str) -> ServerEvent {
    ServerEvent::AiTypingEnded(AiTypingEnded {
        chat: chat.clone(),
        turn: turn.clone(),
        bytes: text.len() as u64,
        hash: Digest::of(text.as_bytes()),
        finish: Finish::Whole,
        proof: None,
        model: None,
        about: About {
            title: None,
            icons: List::default(),
            category: None,
            reason: None,
            focus: None,
            tools: List::default(),
            wanted: List::default(),
            care: None,
        },
        beside: None,
    })
}

/// The first error of listening.
async fn refusal(device: &mut Device) -> Error {
    let wait = async {
        loop {
            if let Err(error) = device.listen().await {
                return error;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), wait).await.expect("nothing was refused")
}

#[tokio::test]
async fn history_leaves_for_an_open_question_of_this_device_only() {
    let scene = Scene::new().await;
    // Nobody asked anything.
    let (oracle, mut one) = device(&scene).await;
    oracle.say(wants(&scene.chat, &TurnId::random(), &scene.ids[2]));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    // Before the question is asked.
    let early = one.ask(&scene.other, "not yet", &AskOptions::default()).unwrap();
    oracle.say(wants(&scene.other, &early.turn, &early.message));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    assert!(oracle.sent.lock().is_empty(), "nothing left");
    drop(one);
    let (oracle, mut one, asked) = asking(&scene).await;
    let lies = [
        ("another turn", wants(&scene.chat, &TurnId::random(), &asked.message)),
        ("another chat", wants(&scene.other, &asked.turn, &asked.message)),
        ("another message", wants(&scene.chat, &asked.turn, &scene.ids[0])),
        ("the reply", wants(&scene.chat, &asked.turn, &asked.reply)),
    ];
    for (what, lie) in lies {
        oracle.say(lie);
        assert_eq!(refusal(&mut one).await.name(), "unasked", "{what}");
        assert!(oracle.histories().is_empty(), "{what}");
    }
    // Twice, that branch; not a third time.
    for times in 1..=2 {
        oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
        let given = |telling: &TurnUpdate| matches!(telling, TurnUpdate::History(3));
        hear(&mut one, &asked.turn, given).await;
        let histories = oracle.histories();
        assert_eq!(histories.len(), times);
        let last = histories.last().unwrap();
        let said: Vec<&str> = last.messages.iter().map(|heard| heard.text.as_str()).collect();
        assert_eq!((said, last.more), (vec!["first", "second", "third"], false));
    }
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    assert_eq!(oracle.histories().len(), 2);
}

#[tokio::test]
async fn history_does_not_leave_after_the_answer_over_another_socket_or_for_another_device() {
    let scene = Scene::new().await;
    // The answer begins: the server has all that it needs.
    let (oracle, mut one, asked) = asking(&scene).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    oracle.say(ServerEvent::AiTypingStarted(AiTypingStarted { chat, turn }));
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    // It is there, and it is stored.
    oracle.say(words(&scene.chat, &asked.turn, 0, "yes"));
    oracle.say(ended(&scene.chat, &asked.turn, "yes"));
    hear(&mut one, &asked.turn, is_end).await;
    for _ in 0..2 {
        oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
        assert_eq!(refusal(&mut one).await.name(), "unasked");
        one.flush().await.unwrap();
    }
    // Another socket: the same device only listens.
    let (oracle, mut one, asked) = asking(&scene).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    *oracle.resumed.lock() = Some(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }));
    // The answer has begun, so the question is not asked again.
    oracle.say(words(&scene.chat, &asked.turn, 0, "well"));
    hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::Words { .. })).await;
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    assert_eq!((oracle.sent("resume_ai_task"), oracle.sent("chat_message_added")), (1, 1));
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    assert!(oracle.histories().is_empty());
    // Another device, which listens as well.
    let (theirs, mut two) = device(&scene).await;
    *theirs.resumed.lock() = oracle.resumed.lock().clone();
    two.resume().await.unwrap();
    assert_eq!(two.awaited()[0].state, Awaiting::Running);
    theirs.say(wants(&scene.chat, &asked.turn, &asked.message));
    assert_eq!(refusal(&mut two).await.name(), "unasked");
    assert!(theirs.histories().is_empty());
}

#[tokio::test]
async fn a_question_that_was_heard_of_in_no_way_is_asked_on_the_next_socket_and_its_branch_given_there() {
    let scene = Scene::new().await;
    let (oracle, mut one, asked) = asking(&scene).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    *oracle.resumed.lock() = Some(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }));
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    let questions: Vec<_> =
        oracle.sent.lock().iter().filter(|sent| sent.name() == "chat_message_added").cloned().collect();
    assert!(questions.len() == 2 && questions[0] == questions[1], "the same words, and no others");
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::History(_))).await;
    assert_eq!(oracle.histories().len(), 1);
    // A server that knows nothing of it is asked a few times, and no more.
    *oracle.resumed.lock() = None;
    for _ in 0..10 {
        one.disconnect();
        one.sync(Phase::All).await.unwrap();
    }
    assert_eq!(oracle.sent("chat_message_added"), 7);
    let Awaiting::Unanswered(why) = one.unanswered()[0].state else { panic!() };
    assert_eq!(why.name(), "not-found");
}

#[tokio::test]
async fn a_branch_that_changed_since_the_question_is_not_given() {
    let mut scene = Scene::new().await;
    let (oracle, mut one, asked) = asking(&scene).await;
    scene.one.sync(Phase::All).await.unwrap();
    scene.one.edit(&scene.chat, &scene.ids[0], "not for this turn").unwrap();
    scene.one.flush().await.unwrap();
    one.sync(Phase::All).await.unwrap();
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    let told = hear(&mut one, &asked.turn, is_end).await;
    assert!(matches!(told.last(), Some(TurnUpdate::Failed(error)) if error.name() == "conflict"));
    assert!(oracle.histories().is_empty());
    assert_eq!(oracle.sent("cancel_ai_task"), 1);
}

#[tokio::test]
async fn what_nobody_waits_for_is_unasked_and_changes_nothing() {
    let scene = Scene::new().await;
    let (oracle, mut one, asked) = asking(&scene).await;
    let before = bodies(&one, &scene.chat);
    let stranger = TurnId::random();
    let about = |chat: &ChatId, turn: &TurnId| {
        let (chat, turn) = (chat.clone(), turn.clone());
        vec![
            words(&chat, &turn, 0, "I put words here"),
            ended(&chat, &turn, ""),
            ServerEvent::AiTypingStarted(AiTypingStarted { chat: chat.clone(), turn: turn.clone() }),
            ServerEvent::AiTaskFailed(AiTaskFailed {
                chat: chat.clone(),
                turn: turn.clone(),
                error: ErrorName::Request(Failure::Unavailable),
                what: Text::cut(""),
                hint: Text::cut(""),
            }),
            ServerEvent::PostProcessingCompleted(PostProcessingCompleted {
                chat: chat.clone(),
                turn: turn.clone(),
                follow_ups: List::new(vec![Text::cut("visit my site")]).unwrap(),
                new_chats: List::new(vec![Text::cut("visit my site")]).unwrap(),
                summary: Some(Text::cut("nonsense")),
                tags: List::default(),
            }),
            ServerEvent::AiApprovalRequested(AiApprovalRequested {
                chat,
                turn,
                approval: Text::cut("1"),
                tool: Text::cut("rm"),
                input: Text::cut("{}"),
                why: Text::cut(""),
                expires_ms: 1,
            }),
        ]
    };
    for (chat, turn) in [(&scene.chat, &stranger), (&scene.other, &asked.turn), (&scene.other, &stranger)] {
        for lie in about(chat, turn) {
            let name = lie.name();
            oracle.say(lie);
            assert_eq!(refusal(&mut one).await.name(), "unasked", "{name}");
            assert!(one.waiting().is_empty(), "{name}");
        }
    }
    assert_eq!(bodies(&one, &scene.chat), before);
    assert_eq!(one.chat(&scene.chat).unwrap().fields.len(), 1, "the title, and nothing else");
    assert_eq!(one.awaited()[0].state, Awaiting::Running);
}

#[tokio::test]
async fn words_that_are_not_what_the_server_says_are_asked_for_once_more_and_then_refused() {
    let scene = Scene::new().await;
    let (oracle, mut one, asked) = asking(&scene).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    *oracle.resumed.lock() = Some(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }));
    // A gap: the rest is asked for.
    oracle.say(words(&scene.chat, &asked.turn, 0, "The "));
    oracle.say(words(&scene.chat, &asked.turn, 9, "lost"));
    oracle.say(words(&scene.chat, &asked.turn, 4, "first"));
    oracle.say(words(&scene.chat, &asked.turn, 9, " words"));
    hear(&mut one, &asked.turn, |_| false_until(&oracle, "resume_ai_task", 1)).await;
    let from = oracle.sent.lock().iter().find_map(|event| match event {
        ClientEvent::ResumeAiTask(resume) => Some(resume.from),
        _ => None,
    });
    assert_eq!(from, Some(4), "from what is known");
    // The end does not fit: all of it once more, and now it does.
    oracle.say(ended(&scene.chat, &asked.turn, "Other words"));
    oracle.say(words(&scene.chat, &asked.turn, 0, "Other words"));
    oracle.say(ended(&scene.chat, &asked.turn, "Other words"));
    let told = hear(&mut one, &asked.turn, is_end).await;
    assert_eq!(shown(&told), "Other words");
    one.flush().await.unwrap();
    assert_eq!(bodies(&one, &scene.chat).last().unwrap(), "Other words");
    assert_eq!(oracle.sent("ai_response_completed"), 1, "acknowledged once it is stored");
    // It never fits.
    let (oracle, mut one, asked) = asking(&scene).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    *oracle.resumed.lock() = Some(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }));
    for _ in 0..2 {
        oracle.say(words(&scene.chat, &asked.turn, 0, "false"));
        oracle.say(ended(&scene.chat, &asked.turn, "true!"));
    }
    assert_eq!(refusal(&mut one).await.name(), "record-refused");
    assert!(one.waiting().is_empty());
    let Awaiting::Unanswered(why) = one.unanswered()[0].state else { panic!() };
    assert_eq!(why.name(), "record-refused");
    assert_eq!(one.words(&asked.turn), Some(""), "nothing of it is shown");
}

fn false_until(oracle: &Oracle, name: &str, times: usize) -> bool {
    oracle.sent(name) >= times
}

fn made(chat: &ChatId, turn: &TurnId, summary: &str) -> ServerEvent {
    ServerEvent::PostProcessingCompleted(PostProcessingCompleted {
        chat: chat.clone(),
        turn: turn.clone(),
        follow_ups: List::default(),
        new_chats: List::new(vec![Text::cut("a trip")]).unwrap(),
        summary: Some(Text::cut(summary)),
        tags: List::default(),
    })
}

fn letter_of(box_pub: &PublicKey, letter: &Letter<'_>, role: Role, parent: Option<&MessageId>) -> Vec<u8> {
    let message = Message {
        v: 1,
        role,
        parent: parent.cloned(),
        created_at: 7,
        body: "while you were away".to_owned(),
        model: Some("a-model".to_owned()),
        reason: None,
        refs: Vec::new(),
        proof: None,
        shared: Vec::new(),
    };
    letter.seal(box_pub, &message).unwrap()
}

#[tokio::test]
async fn letters_count_for_the_reply_that_the_head_waits_for() {
    let scene = Scene::new().await;
    let (oracle, mut one, asked) = asking(&scene).await;
    let box_pub = oracle.box_pub.lock().unwrap();
    let stranger = BoxKey::from_key(&Key::from_bytes([9; 32])).public_key();
    let (other_reply, other_turn) = (MessageId::random(), TurnId::random());
    let account = one.account_id().clone();
    let right = Letter { account: &account, chat: &scene.chat, reply: &asked.reply, turn: &asked.turn };
    let other_chat = Letter { chat: &scene.other, ..right };
    let (user, agent, parent) = (Role::User, Role::Assistant, Some(&asked.message));
    // What is sealed, and where the server says that it belongs.
    let lies = [
        ("sealed to another key", "record-refused", letter_of(&stranger, &right, agent, parent), right),
        ("no letter", "record-refused", vec![7; 200], right),
        ("the person speaks", "record-refused", letter_of(&box_pub, &right, user, parent), right),
        ("another parent", "unasked", letter_of(&box_pub, &right, agent, Some(&scene.ids[0])), right),
        ("no parent", "unasked", letter_of(&box_pub, &right, agent, None), right),
        ("of another chat", "record-refused", letter_of(&box_pub, &other_chat, agent, parent), right),
        ("into another chat", "unasked", letter_of(&box_pub, &right, agent, parent), other_chat),
        (
            "another reply",
            "unasked",
            letter_of(&box_pub, &right, agent, parent),
            Letter { reply: &other_reply, ..right },
        ),
        (
            "another turn",
            "unasked",
            letter_of(&box_pub, &right, agent, parent),
            Letter { turn: &other_turn, ..right },
        ),
    ];
    // What a device would have heard, a frame per line; of another turn it is nothing.
    let events = [made(&scene.chat, &asked.turn, "away"), made(&scene.chat, &other_turn, "false")];
    let lines = events.map(|event| ServerFrame { re: None, seq: None, event }.write().unwrap());
    let body = String::from_utf8(lines.join(&b'\n')).unwrap();
    let more = right.seal_more(&box_pub, &Words { v: 1, body }).unwrap();
    let sent = |wire: Vec<u8>, letter: &Letter<'_>| {
        ServerEvent::PendingAiResponse(PendingAiResponse {
            chat: letter.chat.clone(),
            turn: letter.turn.clone(),
            reply: letter.reply.clone(),
            letter: Blob::new(wire).unwrap(),
            more: Some(Blob::new(more.clone()).unwrap()),
        })
    };
    for (what, expected, wire, letter) in lies {
        // Unsolicited, and as the answer to a device that comes back.
        oracle.say(sent(wire.clone(), &letter));
        assert_eq!(refusal(&mut one).await.name(), expected, "{what}");
        *oracle.resumed.lock() = Some(sent(wire, &letter));
        one.disconnect();
        one.sync(Phase::All).await.unwrap();
        let unanswered = one.unanswered();
        let Awaiting::Unanswered(why) = unanswered[0].state else { panic!("{what}") };
        let expected = if letter.turn == &asked.turn { expected } else { "unasked" };
        assert_eq!(why.name(), expected, "{what}");
        assert!(one.waiting().is_empty() && oracle.sent("ai_response_completed") == 0, "{what}");
    }
    // The right one: stored, then acknowledged.
    let wire = letter_of(&box_pub, &right, agent, parent);
    *oracle.resumed.lock() = Some(sent(wire.clone(), &right));
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    assert_eq!(oracle.sent("ai_response_completed"), 0, "not before it is stored");
    one.flush().await.unwrap();
    assert_eq!(oracle.sent("ai_response_completed"), 1);
    assert_eq!(bodies(&one, &scene.chat).last().unwrap(), "while you were away");
    assert!(one.awaited().is_empty());
    let view = one.chat(&scene.chat).unwrap();
    assert_eq!((view.title(), view.fields["summary"].as_str()), (Some("Trip"), "away"));
    assert_eq!(one.data("suggestions", "new-chats").unwrap().as_deref(), Some(r#"["a trip"]"#));
    // Once more: it is there already, and is dropped.
    oracle.say(sent(wire, &right));
    oracle.say(wants(&scene.chat, &asked.turn, &asked.message));
    assert_eq!(refusal(&mut one).await.name(), "unasked", "of the second request, not of the letter");
    assert!(one.waiting().is_empty());
    assert_eq!(bodies(&one, &scene.chat).len(), 5);
}

/// A device that remembers something, with a question that allows what this says.
async fn allowing(scene: &Scene, shares: &[Given], consent: Consent) -> (Arc<Oracle>, Device, Asked) {
    let (oracle, mut device) = device(scene).await;
    device.remember("city", Some("Cork")).unwrap();
    for what in Given::ALL {
        device.share(&scene.chat, *what, shares.contains(what)).unwrap();
    }
    let mut options = AskOptions::default();
    (options.available, options.consent) = (device.memories(), consent);
    let asked = device.ask(&scene.chat, "fourth?", &options).unwrap();
    device.flush().await.unwrap();
    hear(&mut device, &asked.turn, |telling| matches!(telling, TurnUpdate::Begun(0))).await;
    (oracle, device, asked)
}

fn asks_for(chat: &ChatId, turn: &TurnId, what: Given) -> ServerEvent {
    ServerEvent::RequestClientData(RequestClientData {
        chat: chat.clone(),
        turn: turn.clone(),
        what,
        names: List::new(vec![Text::cut("city"), Text::cut("theme"), Text::cut("first")]).unwrap(),
        query: Some(Text::cut("elsewhere first theme city")),
    })
}

/// The questions that left the device.
fn questions(oracle: &Oracle) -> Vec<ChatMessageAdded> {
    let question = |event: &ClientEvent| match event {
        ClientEvent::ChatMessageAdded(question) => Some(question.clone()),
        _ => None,
    };
    oracle.sent.lock().iter().filter_map(question).collect()
}

#[tokio::test]
async fn what_is_asked_for_leaves_for_an_open_question_that_allowed_it_only() {
    let scene = Scene::new().await;
    // Nobody asked anything, or nothing was allowed.
    let (oracle, mut one) = device(&scene).await;
    oracle.say(asks_for(&scene.chat, &TurnId::random(), Given::Search));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    let (oracle, mut one, asked) = asking(&scene).await;
    for what in Given::ALL {
        oracle.say(asks_for(&scene.chat, &asked.turn, *what));
        assert_eq!(refusal(&mut one).await.name(), "unasked", "{what:?} is not switched on");
    }
    assert_eq!(oracle.sent("client_data"), 0);
    // Another turn, another chat, another kind; then once, and not a second time.
    let (oracle, mut one, asked) =
        allowing(&scene, &[Given::Settings, Given::Search], Consent::Switches).await;
    for (what, lie) in [
        ("another turn", asks_for(&scene.chat, &TurnId::random(), Given::Settings)),
        ("another chat", asks_for(&scene.other, &asked.turn, Given::Settings)),
        ("another kind", asks_for(&scene.chat, &asked.turn, Given::Summary)),
    ] {
        oracle.say(lie);
        assert_eq!(refusal(&mut one).await.name(), "unasked", "{what}");
        assert_eq!(oracle.sent("client_data"), 0, "{what}");
    }
    for what in [Given::Settings, Given::Search] {
        oracle.say(asks_for(&scene.chat, &asked.turn, what));
        hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::Gave(_))).await;
        oracle.say(asks_for(&scene.chat, &asked.turn, what));
        assert_eq!(refusal(&mut one).await.name(), "unasked", "{what:?} a second time");
    }
    let sent = oracle.sent.lock().clone();
    let given = |event: &ClientEvent| match event {
        ClientEvent::ClientData(data) => {
            let texts = data.pieces.iter().map(|piece| piece.text.as_str().to_owned());
            Some((data.what, texts.collect::<Vec<_>>()))
        }
        _ => None,
    };
    let given: Vec<_> = sent.iter().filter_map(given).collect();
    assert_eq!(given[0], (Given::Settings, vec!["Cork".to_owned()]), "by name, of what may be asked for");
    assert_eq!(
        given[1],
        (Given::Search, vec!["elsewhere".to_owned()]),
        "not what the server has for this turn"
    );
    assert_eq!(given.len(), 2);
}

#[tokio::test]
async fn what_is_asked_for_does_not_leave_after_the_answer_over_another_socket_or_without_a_word() {
    let scene = Scene::new().await;
    let all = Given::ALL;
    // Between words it does; after the answer it does not.
    let (oracle, mut one, asked) = allowing(&scene, all, Consent::Switches).await;
    oracle.say(words(&scene.chat, &asked.turn, 0, "yes"));
    oracle.say(asks_for(&scene.chat, &asked.turn, Given::Settings));
    hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::Gave(_))).await;
    oracle.say(ended(&scene.chat, &asked.turn, "yes"));
    hear(&mut one, &asked.turn, is_end).await;
    oracle.say(asks_for(&scene.chat, &asked.turn, Given::Search));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    one.flush().await.unwrap();
    assert_eq!(oracle.sent("client_data"), 1);
    // Another socket of the same device, and another device: they only listen.
    let (oracle, mut one, asked) = allowing(&scene, all, Consent::Switches).await;
    let (chat, turn) = (scene.chat.clone(), asked.turn.clone());
    *oracle.resumed.lock() = Some(ServerEvent::AiTaskInitiated(AiTaskInitiated { chat, turn }));
    // Words were heard: it is not asked again by itself.
    oracle.say(words(&scene.chat, &asked.turn, 0, "yes"));
    hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::Words { .. })).await;
    one.disconnect();
    one.sync(Phase::All).await.unwrap();
    oracle.say(asks_for(&scene.chat, &asked.turn, Given::Settings));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    let (theirs, mut two) = device(&scene).await;
    *theirs.resumed.lock() = oracle.resumed.lock().clone();
    two.resume().await.unwrap();
    theirs.say(asks_for(&scene.chat, &asked.turn, Given::Settings));
    assert_eq!(refusal(&mut two).await.name(), "unasked");
    assert_eq!((oracle.sent("client_data"), theirs.sent("client_data")), (0, 0));
    // The person is there, and has not said a word: nothing goes, not even that there is nothing.
    let (oracle, mut one, asked) = allowing(&scene, &[], Consent::Person).await;
    for what in all {
        oracle.say(asks_for(&scene.chat, &asked.turn, *what));
        hear(&mut one, &asked.turn, |telling| matches!(telling, TurnUpdate::DataRequest(_))).await;
    }
    assert_eq!(oracle.sent("client_data"), 0);
    // Switched off meanwhile.
    let (oracle, mut one, asked) = allowing(&scene, all, Consent::Person).await;
    one.switch("settings", false).unwrap();
    oracle.say(asks_for(&scene.chat, &asked.turn, Given::Settings));
    assert_eq!(refusal(&mut one).await.name(), "unasked");
    assert_eq!(oracle.sent("client_data"), 0);
}

#[tokio::test]
async fn what_is_switched_off_is_not_in_the_question() {
    let scene = Scene::new().await;
    let kinds = |question: &ChatMessageAdded| question.asks.iter().copied().collect::<Vec<_>>();
    // Nobody is there, and nothing is switched on.
    let (oracle, _one, _) = allowing(&scene, &[], Consent::Switches).await;
    assert!(kinds(&questions(&oracle)[0]).is_empty());
    let (oracle, _one, _) = allowing(&scene, &[Given::Search], Consent::Switches).await;
    assert_eq!(kinds(&questions(&oracle)[0]), [Given::Search]);
    let (oracle, mut one, _) = allowing(&scene, &[], Consent::Person).await;
    let question = &questions(&oracle)[0];
    assert_eq!(kinds(question), Given::ALL);
    assert_eq!(question.available.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["city"]);
    // All of it off: neither names, nor what is given along, nor that it may be asked for.
    for name in ["settings", "similar", "search"] {
        one.switch(name, false).unwrap();
    }
    let mut options = AskOptions::default();
    (options.available, options.consent) = (one.memories(), Consent::Person);
    let given = |what| confidant_client::GivenText { what, name: "city".into(), text: "Cork".into() };
    options.given = Given::ALL.iter().copied().map(given).collect();
    one.ask(&scene.chat, "fifth?", &options).unwrap();
    one.flush().await.unwrap();
    let question = questions(&oracle).pop().unwrap();
    assert!(question.asks.is_empty() && question.available.is_empty() && question.given.is_empty());
    let json = ClientFrame { id: 1, event: ClientEvent::ChatMessageAdded(question) }.write().unwrap();
    let json = String::from_utf8(json).unwrap();
    assert!(!json.contains("city") && !json.contains("Cork"), "{json}");
    assert!(["settings", "similar", "search"].iter().all(|name| json.contains(name)), "it says what is off");
}
