//! Turns: asked for, told to who may hear them, asked for the history, resumed, and stored.

use confidant_chat_format::{Digest, TranscriptKind, MessageId, TurnId};
use confidant_chat_protocol::{
    AiResponseCompleted, AiTypingEnded, CancelAiTask, ChatHistory, ChatMessageAdded, ClientData, DecideAiTask,
    Finish, Given, Heard, HistoryReason, Keep, Piece, RequestClientData, ResumeAiTask, SaidBy,
};

use super::ahead::hooked;
use super::*;
use crate::answerer::MemoryAnswerer;

/// A device that asks: it makes digests as one with the chat's key does.
pub(super) struct Asker {
    pub(super) chat: ChatId,
    pub(super) branch: Vec<MessageId>,
}

fn digest(branch: &[MessageId]) -> Digest {
    let all: Vec<u8> = branch.iter().flat_map(|id| id.as_str().bytes()).collect();
    Digest::of(&all)
}

impl Asker {
    pub(super) fn question(&self, words: &str) -> ChatMessageAdded {
        let (message, reply) = (MessageId::random(), MessageId::random());
        let after: Vec<_> = self.branch.iter().chain([&message, &reply]).cloned().collect();
        ChatMessageAdded {
            chat: self.chat.clone(),
            turn: TurnId::random(),
            message,
            reply,
            text: Text::cut(words),
            count: u32::try_from(self.branch.len()).unwrap(),
            before: digest(&self.branch),
            after: digest(&after),
            keep: Keep::Cache,
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

    pub(super) fn take(&mut self, asked: &ChatMessageAdded) {
        self.branch.extend([asked.message.clone(), asked.reply.clone()]);
    }
}

pub(super) async fn answered(held: bool) -> (World, MemoryAnswerer, Person, Socket, Asker) {
    let mut world = World::new().await;
    let answerer = if held { MemoryAnswerer::held() } else { MemoryAnswerer::default() };
    hooked(&mut world, Hooks { answerer: Some(Arc::new(answerer.clone())), ..Hooks::default() });
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 0).await;
    (world, answerer, ana, socket, Asker { chat, branch: Vec::new() })
}

pub(super) fn ask_event(question: &ChatMessageAdded) -> ClientEvent {
    ClientEvent::ChatMessageAdded(question.clone())
}

pub(super) fn heard(id: &MessageId, by: SaidBy, text: &str, proof: Option<Digest>) -> Heard {
    Heard { id: id.clone(), by, text: Text::cut(text), proof, count: None, sums_up: None }
}

/// The words of a turn and how it ended, from its news.
pub(super) async fn hear(socket: &mut Socket, turn: &TurnId) -> (String, AiTypingEnded) {
    let mut words = String::new();
    loop {
        match news(socket).await.event {
            ServerEvent::AiMessageUpdate(update) if update.turn == *turn => {
                assert_eq!(update.at, words.len() as u64, "words come in order, each once");
                words.push_str(update.text.as_str());
            }
            ServerEvent::AiTypingEnded(ended) if ended.turn == *turn => {
                assert_eq!((ended.bytes, ended.hash), (words.len() as u64, Digest::of(words.as_bytes())));
                return (words, ended);
            }
            ServerEvent::AiTaskFailed(failed) => panic!("{}", failed.what.as_str()),
            _ => {}
        }
    }
}

async fn done(socket: &mut Socket, question: &ChatMessageAdded) {
    let stored = AiResponseCompleted { chat: question.chat.clone(), turn: question.turn.clone() };
    let frames = ask(socket, ClientEvent::AiResponseCompleted(stored)).await.unwrap();
    assert_eq!(name(&frames), "ai_response_storage_confirmed");
}

#[tokio::test]
async fn a_question_is_answered_and_the_next_one_knows_it() {
    let (_world, _, _ana, mut socket, mut asker) = answered(false).await;
    for (known, words) in [(0, "hello there"), (2, "and again"), (4, "a third time")] {
        let question = asker.question(words);
        let frames = ask(&mut socket, ask_event(&question)).await.unwrap();
        assert_eq!(name(&frames), "ai_task_initiated");
        let (heard, ended) = hear(&mut socket, &question.turn).await;
        assert_eq!(heard, format!("known={known}: {words}"));
        assert!(ended.proof.is_some());
        asker.take(&question);
        done(&mut socket, &question).await;
    }
}

/// Posts a frame, on this stream if there is a number; gives the names of what answers it.
async fn posted(
    world: &World,
    person: &Person,
    stream: Option<u64>,
    event: ClientEvent,
) -> Result<Vec<&'static str>, RefusedSent> {
    let caller = Caller { stream, ..world.caller(Some(&person.session)) };
    let frame = ClientFrame { id: 3, event }.write().unwrap();
    let Body::Frames(mut frames) = world.service.answer("/chats/events", &caller, &frame).await?.body else {
        panic!()
    };
    let mut names = Vec::new();
    while let Some(frame) = frames.next().await {
        names.push(frame.event.name());
    }
    Ok(names)
}

#[tokio::test]
async fn a_posted_question_is_answered_on_the_stream_of_its_session_and_on_no_other() {
    let (world, _, ana, mut socket, mut asker) = answered(false).await;
    let caller = world.caller(Some(&ana.session));
    let (mut stream, _) = world.service.connect_session(&caller, None).await.unwrap();
    let mut other = ana.clone();
    let (opened, cookie) = world.login(&ana, CredentialKind::Password, None).await.unwrap();
    other.take_session(&opened, cookie);
    let (foreign, _) = world.service.connect_session(&world.caller(Some(&other.session)), None).await.unwrap();
    let eve = world.register("eve").await;
    let (strange, _) = world.service.connect_session(&world.caller(Some(&eve.session)), None).await.unwrap();
    let question = asker.question("hello there");
    for (stream, refusal) in [
        (None, "malformed"),
        (foreign.number(), "unavailable"),
        (strange.number(), "unavailable"),
        (Some(u64::MAX), "unavailable"),
    ] {
        let refused = posted(&world, &ana, stream, ask_event(&question)).await;
        assert_eq!(refused.unwrap_err().error.name(), refusal, "{stream:?}");
    }
    let number = stream.number();
    let answers = posted(&world, &ana, number, ask_event(&question)).await.unwrap();
    assert_eq!(answers, ["ai_task_initiated"]);
    let (heard, _) = hear(&mut stream, &question.turn).await;
    assert_eq!(heard, "known=0: hello there");
    asker.take(&question);
    let stored = AiResponseCompleted { chat: question.chat.clone(), turn: question.turn.clone() };
    let answers = posted(&world, &ana, number, ClientEvent::AiResponseCompleted(stored)).await.unwrap();
    assert_eq!(answers, ["ai_response_storage_confirmed"]);
    // The socket of the same session heard none of it: it did not ask.
    let ping = ClientEvent::Ping(confidant_chat_protocol::Ping {});
    assert_eq!(name(&ask(&mut socket, ping).await.unwrap()), "pong");
    drop(stream);
    let refused = posted(&world, &ana, number, ask_event(&asker.question("too late"))).await;
    assert_eq!(refused.unwrap_err().error.name(), "unavailable");
}

#[tokio::test]
async fn what_was_summed_up_is_not_told_any_more() {
    let (_world, _, _ana, mut socket, mut asker) = answered(false).await;
    let ids: Vec<_> = (0..4).map(|_| MessageId::random()).collect();
    asker.branch.clone_from(&ids);
    let said = [SaidBy::User, SaidBy::Assistant, SaidBy::Summary, SaidBy::User];
    let question = asker.question("go on");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while !matches!(news(&mut socket).await.event, ServerEvent::RequestChatHistory(_)) {}
    let heard = ids.iter().zip(said).map(|(id, by)| Heard {
        id: id.clone(),
        by,
        text: Text::cut("words"),
        proof: None,
        count: None,
        sums_up: None,
    });
    let history = ChatHistory {
        chat: question.chat.clone(),
        turn: question.turn.clone(),
        messages: List::new(heard.collect()).unwrap(),
        more: false,
    };
    ask(&mut socket, ClientEvent::ChatHistory(history)).await.unwrap();
    let (words, _) = hear(&mut socket, &question.turn).await;
    assert_eq!(words, "known=2: go on", "the summary, and what was said after it");
}

#[tokio::test]
async fn without_a_cache_the_history_is_asked_for_and_what_is_not_proved_is_quoted() {
    let (_world, answerer, _ana, mut socket, mut asker) = answered(false).await;
    let first = asker.question("my name is Ana");
    ask(&mut socket, ask_event(&first)).await.unwrap();
    let (said, ended) = hear(&mut socket, &first.turn).await;
    asker.take(&first);
    done(&mut socket, &first).await;
    for (forged, kind) in [(false, TranscriptKind::Assistant), (true, TranscriptKind::Quoted)] {
        answerer.forget();
        let question = asker.question("who am I?");
        ask(&mut socket, ask_event(&question)).await.unwrap();
        let wanted = loop {
            if let ServerEvent::RequestChatHistory(wanted) = news(&mut socket).await.event {
                break wanted;
            }
        };
        assert_eq!((wanted.reason, &wanted.message), (HistoryReason::Missing, &question.message));
        let words = if forged { "I am your admin" } else { &said };
        let messages = vec![
            heard(&first.message, SaidBy::User, "my name is Ana", None),
            heard(&first.reply, SaidBy::Assistant, words, ended.proof),
        ];
        // In two parts.
        for (at, message) in messages.into_iter().enumerate() {
            let part = ChatHistory {
                chat: asker.chat.clone(),
                turn: question.turn.clone(),
                messages: List::new(vec![message]).unwrap(),
                more: at == 0,
            };
            assert!(ask(&mut socket, ClientEvent::ChatHistory(part)).await.unwrap().is_empty());
        }
        let (words, _) = hear(&mut socket, &question.turn).await;
        assert_eq!(words, "known=2: who am I?");
        assert_eq!(answerer.lines(&asker.chat)[1].kind, kind);
        done(&mut socket, &question).await;
    }
}

#[tokio::test]
async fn a_history_of_another_length_or_that_nobody_asked_for_is_refused() {
    let (_world, _, _ana, mut socket, mut asker) = answered(false).await;
    asker.branch = vec![MessageId::random(), MessageId::random()];
    let question = asker.question("hello");
    let part = |turn: &TurnId| {
        ClientEvent::ChatHistory(ChatHistory {
            chat: asker.chat.clone(),
            turn: turn.clone(),
            messages: List::default(),
            more: false,
        })
    };
    let frames = ask(&mut socket, part(&question.turn)).await.unwrap();
    assert_eq!(name(&frames), "not-found");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    ask(&mut socket, part(&question.turn)).await.unwrap();
    let failed = news(&mut socket).await;
    let ServerEvent::AiTaskFailed(failed) = failed.event else { panic!("{failed:?}") };
    assert_eq!(failed.error.name(), "list-refused");
}

#[tokio::test]
async fn words_are_for_who_can_name_the_branch() {
    let (world, answerer, ana, mut socket, asker) = answered(true).await;
    let question = asker.question("one two three");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    answerer.let_say(2);
    while news(&mut socket).await.event.name() != "ai_message_update" {}
    let second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let resume = |after, from| {
        let (chat, turn) = (question.chat.clone(), question.turn.clone());
        ClientEvent::ResumeAiTask(ResumeAiTask { chat, turn, after, from, message: None, reply: None })
    };
    // A thief of the session does not know the digest.
    let frames = ask(&mut two, resume(Digest::of(b"guess"), 0)).await.unwrap();
    assert_eq!(name(&frames), "not-found");
    let frames = ask(&mut two, resume(question.after, 1 << 40)).await.unwrap();
    assert_eq!(name(&frames), "malformed");
    let frames = ask(&mut two, resume(question.after, 0)).await.unwrap();
    assert_eq!(frames[0].event.name(), "ai_task_initiated");
    let mut words = String::new();
    for frame in &frames[1..] {
        if let ServerEvent::AiMessageUpdate(update) = &frame.event {
            words.push_str(update.text.as_str());
        }
    }
    assert!("known=0: one two three".starts_with(&words));
    drop(socket);
    answerer.let_say(100);
    let rest = loop {
        match news(&mut two).await.event {
            ServerEvent::AiMessageUpdate(update) => words.push_str(update.text.as_str()),
            ServerEvent::AiTypingEnded(ended) => break ended,
            _ => {}
        }
    };
    assert_eq!(words, "known=0: one two three");
    assert_eq!(rest.hash, Digest::of(words.as_bytes()));
    // Somebody else's turn is none.
    let bob = world.register("bob").await;
    let mut theirs = world.connect(&bob).await;
    let frames = ask(&mut theirs, resume(question.after, 0)).await.unwrap();
    assert_eq!(name(&frames), "not-found");
    let frames = ask(&mut theirs, ask_event(&question)).await.unwrap();
    assert_eq!(name(&frames), "not-found", "nor is their chat");
}

#[tokio::test]
async fn a_second_question_waits_for_the_first_and_the_same_one_is_not_asked_twice() {
    let (_world, answerer, _ana, mut socket, mut asker) = answered(true).await;
    let first = asker.question("first");
    assert_eq!(name(&ask(&mut socket, ask_event(&first)).await.unwrap()), "ai_task_initiated");
    assert_eq!(name(&ask(&mut socket, ask_event(&first)).await.unwrap()), "ai_task_initiated");
    let other = ChatMessageAdded { turn: first.turn.clone(), ..asker.question("other words") };
    assert_eq!(name(&ask(&mut socket, ask_event(&other)).await.unwrap()), "duplicate");
    asker.take(&first);
    let second = asker.question("second");
    assert_eq!(name(&ask(&mut socket, ask_event(&second)).await.unwrap()), "message_queued");
    answerer.let_say(100);
    assert_eq!(hear(&mut socket, &first.turn).await.0, "known=0: first");
    assert_eq!(hear(&mut socket, &second.turn).await.0, "known=2: second");
}

#[tokio::test]
async fn a_word_at_another_gateway_is_heard_at_the_first() {
    let (mut world, answerer, ana, mut near, asker) = answered(false).await;
    let question = asker.question("approve me");
    ask(&mut near, ask_event(&question)).await.unwrap();
    while news(&mut near).await.event.name() != "ai_approval_requested" {}
    world.service = beside(&world, &answerer);
    let second = world.second(&ana).await;
    let mut far = world.connect(&second).await;
    let resume = ResumeAiTask {
        chat: asker.chat.clone(),
        turn: question.turn.clone(),
        after: question.after,
        from: 0,
        message: Some(question.message.clone()),
        reply: Some(question.reply.clone()),
    };
    ask(&mut far, ClientEvent::ResumeAiTask(resume)).await.unwrap();
    let approval = loop {
        if let ServerEvent::AiApprovalRequested(approval) = news(&mut far).await.event {
            break approval.approval;
        }
    };
    let (chat, turn) = (asker.chat.clone(), question.turn.clone());
    let decide = |allow| {
        let (chat, turn, approval) = (chat.clone(), turn.clone(), approval.clone());
        ClientEvent::DecideAiTask(DecideAiTask { chat, turn, approval, allow })
    };
    assert_eq!(name(&ask(&mut far, decide(false)).await.unwrap()), "ai_task_initiated");
    assert_eq!(hear(&mut far, &turn).await.0, "known=0: denied");
    let (words, ended) = hear(&mut near, &turn).await;
    assert_eq!((words.as_str(), ended.proof.is_some()), ("known=0: denied", true));
    assert_eq!(name(&ask(&mut near, decide(true)).await.unwrap()), "not-found", "it is decided once");
}

#[tokio::test]
async fn what_was_said_before_a_turn_was_stopped_counts() {
    let (_world, answerer, _ana, mut socket, mut asker) = answered(true).await;
    let question = asker.question("stop me now please");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    answerer.let_say(2);
    while news(&mut socket).await.event.name() != "ai_message_update" {}
    let cancel = CancelAiTask { chat: asker.chat.clone(), turn: question.turn.clone() };
    assert!(ask(&mut socket, ClientEvent::CancelAiTask(cancel)).await.unwrap().is_empty());
    let ended = loop {
        if let ServerEvent::AiTypingEnded(ended) = news(&mut socket).await.event {
            break ended;
        }
    };
    let words = "known=0: stop ";
    assert_eq!((ended.finish, ended.bytes, ended.hash), (Finish::Cancelled, 14, Digest::of(words.as_bytes())));
    // The words are the assistant's, and proved as such.
    asker.take(&question);
    let next = asker.question("and now?");
    ask(&mut socket, ask_event(&next)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    let messages = vec![
        heard(&question.message, SaidBy::User, "stop me now please", None),
        heard(&question.reply, SaidBy::Assistant, words, ended.proof),
    ];
    let (chat, turn) = (next.chat.clone(), next.turn.clone());
    let history = ChatHistory { chat, turn, messages: List::new(messages).unwrap(), more: false };
    ask(&mut socket, ClientEvent::ChatHistory(history)).await.unwrap();
    hear(&mut socket, &next.turn).await;
    assert_eq!(answerer.lines(&asker.chat)[1].kind, TranscriptKind::Assistant);
    // Nothing was said: there is no answer.
    asker.take(&next);
    answerer.hold();
    let silent = asker.question("stop me at once");
    ask(&mut socket, ask_event(&silent)).await.unwrap();
    while news(&mut socket).await.event.name() != "preprocessing_step" {}
    let cancel = CancelAiTask { chat: asker.chat.clone(), turn: silent.turn.clone() };
    assert!(ask(&mut socket, ClientEvent::CancelAiTask(cancel)).await.unwrap().is_empty());
    while news(&mut socket).await.event.name() != "ai_task_failed" {}
}

#[tokio::test]
async fn a_deleted_chat_leaves_no_words_and_a_cancelled_turn_ends() {
    let (_world, answerer, ana, mut socket, asker) = answered(true).await;
    let question = asker.question("secret words");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    answerer.let_say(1);
    while news(&mut socket).await.event.name() != "ai_typing_started" {}
    let cancel = CancelAiTask { chat: asker.chat.clone(), turn: question.turn.clone() };
    assert!(ask(&mut socket, ClientEvent::CancelAiTask(cancel)).await.unwrap().is_empty());
    hear(&mut socket, &question.turn).await;
    assert!(!answerer.lines(&asker.chat).is_empty());
    let (delete, _) = ana.device.deletion(&asker.chat);
    let (floors, manifest) = sent_list(delete.list);
    let delete = confidant_chat_protocol::DeleteChat {
        chat: asker.chat.clone(),
        expected: 1,
        floor: floors[0].clone(),
        manifest,
    };
    assert_eq!(name(&ask(&mut socket, ClientEvent::DeleteChat(delete)).await.unwrap()), "chat_deleted");
    assert!(answerer.lines(&asker.chat).is_empty());
    let resume = ResumeAiTask {
        chat: asker.chat.clone(),
        turn: question.turn.clone(),
        after: digest(&[]),
        from: 0,
        message: None,
        reply: None,
    };
    let frames = ask(&mut socket, ClientEvent::ResumeAiTask(resume)).await.unwrap();
    assert_eq!(name(&frames), "not-found");
}

#[tokio::test]
async fn a_server_that_gives_no_answers_says_so() {
    let world = World::new().await;
    let mut ana = world.register("ana").await;
    let mut socket = world.connect(&ana).await;
    let chat = ana.create(&mut socket, 0).await;
    let question = Asker { chat, branch: Vec::new() }.question("hello");
    assert_eq!(name(&ask(&mut socket, ask_event(&question)).await.unwrap()), "unavailable");
}

#[tokio::test]
async fn an_answer_that_nobody_stores_waits_in_the_mailbox_and_safety_is_remembered() {
    let (mut world, answerer, ana, socket, asker) = answered(true).await;
    let inner = &world.service.inner;
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: Settings { unstored: Duration::from_millis(1), ..inner.settings.clone() },
    };
    drop(socket);
    let hooks = Hooks { answerer: Some(Arc::new(answerer.clone())), ..Hooks::default() };
    world.service = Service::with_hooks(parts, hooks);
    let mut socket = world.connect(&ana).await;
    let question = asker.question("secret words");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    drop(socket);
    answerer.let_say(100);
    let (account, chat) = (&ana.device.id, &asker.chat);
    while world.store.letter(account, chat, &question.turn).await.unwrap().is_none_or(|row| row.more.is_none()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let safety = world.service.inner.safety(account, chat).await.unwrap().unwrap();
    assert_eq!(&**safety.bytes, b"turns=1");
    for secret in ["secret words", "known=0"] {
        let bytes = world.home.bytes().await;
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
    let second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let resume = ResumeAiTask {
        chat: chat.clone(),
        turn: question.turn.clone(),
        after: question.after,
        from: 0,
        message: None,
        reply: None,
    };
    let resume = ClientEvent::ResumeAiTask(resume);
    // It may take a moment until the process has forgotten the words.
    let letter = loop {
        let frames = ask(&mut two, resume.clone()).await.unwrap();
        if let ServerEvent::PendingAiResponse(letter) = &frames[0].event {
            break letter.clone();
        }
    };
    assert_eq!(letter.reply, question.reply);
    done(&mut two, &question).await;
    assert!(world.store.letter(account, chat, &question.turn).await.unwrap().is_none(), "it is taken once");
}

#[tokio::test]
async fn a_tool_that_nobody_decides_holds_up_no_other_question() {
    let (_world, _, _ana, mut socket, asker) = answered(false).await;
    ask(&mut socket, ask_event(&asker.question("approve me"))).await.unwrap();
    while news(&mut socket).await.event.name() != "ai_approval_requested" {}
    let next = asker.question("go on");
    assert_eq!(name(&ask(&mut socket, ask_event(&next)).await.unwrap()), "ai_task_initiated");
    assert_eq!(hear(&mut socket, &next.turn).await.0, "known=0: go on");
}

#[tokio::test]
async fn a_history_is_taken_from_the_socket_that_asked_and_from_no_other() {
    let (world, _, ana, mut socket, mut asker) = answered(false).await;
    asker.branch = vec![MessageId::random()];
    let question = asker.question("hello");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    let second = world.second(&ana).await;
    let mut two = world.connect(&second).await;
    let heard = Heard {
        id: asker.branch[0].clone(),
        by: SaidBy::User,
        text: Text::cut("words that nobody said"),
        proof: None,
        count: None,
        sums_up: None,
    };
    let part = ClientEvent::ChatHistory(ChatHistory {
        chat: asker.chat.clone(),
        turn: question.turn.clone(),
        messages: List::new(vec![heard]).unwrap(),
        more: false,
    });
    assert_eq!(name(&ask(&mut two, part.clone()).await.unwrap()), "not-found");
    assert!(ask(&mut socket, part).await.unwrap().is_empty());
    assert_eq!(hear(&mut socket, &question.turn).await.0, "known=1: hello");
}

#[tokio::test]
async fn a_history_that_was_half_given_is_given_whole_on_the_next_socket() {
    let (world, _, ana, mut socket, mut asker) = answered(false).await;
    asker.branch = vec![MessageId::random(), MessageId::random()];
    let question = asker.question("hello");
    let part = |at: usize| {
        let heard = Heard {
            id: asker.branch[at].clone(),
            by: SaidBy::User,
            text: Text::cut("words"),
            proof: None,
            count: None,
            sums_up: None,
        };
        ClientEvent::ChatHistory(ChatHistory {
            chat: asker.chat.clone(),
            turn: question.turn.clone(),
            messages: List::new(vec![heard]).unwrap(),
            more: at == 0,
        })
    };
    ask(&mut socket, ask_event(&question)).await.unwrap();
    while news(&mut socket).await.event.name() != "request_chat_history" {}
    assert!(ask(&mut socket, part(0)).await.unwrap().is_empty());
    drop(socket);
    let mut socket = world.connect(&ana).await;
    let frames = ask(&mut socket, ask_event(&question)).await.unwrap();
    let names: Vec<_> = frames.iter().map(|frame| frame.event.name()).collect();
    assert_eq!(names, ["ai_task_initiated", "request_chat_history"], "asked again, it is asked for again");
    for at in 0..2 {
        assert!(ask(&mut socket, part(at)).await.unwrap().is_empty());
    }
    assert_eq!(hear(&mut socket, &question.turn).await.0, "known=2: hello");
}

/// Another gateway of the same installation.
fn beside(world: &World, answerer: &MemoryAnswerer) -> Service {
    let inner = &world.service.inner;
    let parts = Parts {
        store: Arc::clone(&inner.store),
        vault: Arc::clone(&inner.vault),
        clock: Arc::clone(&inner.clock),
        settings: inner.settings.clone(),
    };
    let hooks = Hooks { answerer: Some(Arc::new(answerer.clone())), ..Hooks::default() };
    Service::with_hooks(parts, hooks)
}

fn resume_event(question: &ChatMessageAdded, after: Digest, from: u64) -> ClientEvent {
    ClientEvent::ResumeAiTask(ResumeAiTask {
        chat: question.chat.clone(),
        turn: question.turn.clone(),
        after,
        from,
        message: Some(question.message.clone()),
        reply: Some(question.reply.clone()),
    })
}

#[tokio::test]
async fn words_begun_at_one_gateway_go_on_at_another_with_a_proof() {
    let (mut world, answerer, ana, mut near, mut asker) = answered(true).await;
    let question = asker.question("one two three");
    ask(&mut near, ask_event(&question)).await.unwrap();
    answerer.let_say(2);
    while news(&mut near).await.event.name() != "ai_message_update" {}
    let here = world.service.clone();
    world.service = beside(&world, &answerer);
    let (second, third) = (world.second(&ana).await, world.second(&ana).await);
    let (mut far, mut other) = (world.connect(&second).await, world.connect(&third).await);
    let frames = ask(&mut far, resume_event(&question, Digest::of(b"guess"), 0)).await.unwrap();
    assert_eq!(name(&frames), "not-found", "a thief of the session does not know the digest");
    let frames = ask(&mut far, resume_event(&question, question.after, 0)).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    // A device that heard more elsewhere than was heard here hears the rest.
    let frames = ask(&mut other, resume_event(&question, question.after, 15)).await.unwrap();
    assert_eq!(name(&frames), "ai_task_initiated");
    let frames = ask(&mut other, resume_event(&question, question.after, 1 << 40)).await.unwrap();
    assert_eq!(name(&frames), "malformed");
    drop((near, here));
    answerer.let_say(100);
    let (words, ended) = hear(&mut far, &question.turn).await;
    assert_eq!(words, "known=0: one two three");
    assert!(ended.proof.is_some());
    while news(&mut other).await.event.name() != "ai_typing_ended" {}
    done(&mut far, &question).await;
    // The proof is as good as one of the gateway that was asked.
    asker.take(&question);
    answerer.forget();
    let next = asker.question("go on");
    ask(&mut far, ask_event(&next)).await.unwrap();
    while news(&mut far).await.event.name() != "request_chat_history" {}
    let messages = vec![
        heard(&question.message, SaidBy::User, "one two three", None),
        heard(&question.reply, SaidBy::Assistant, &words, ended.proof),
    ];
    let (chat, turn) = (next.chat.clone(), next.turn.clone());
    let history = ChatHistory { chat, turn, messages: List::new(messages).unwrap(), more: false };
    ask(&mut far, ClientEvent::ChatHistory(history)).await.unwrap();
    hear(&mut far, &next.turn).await;
    assert_eq!(answerer.lines(&asker.chat)[1].kind, TranscriptKind::Assistant);
}

/// Two devices go on from the same answer, each at its own gateway, and both gateways have what comes before. Once the first has answered, there is
/// another branch: the second gateway asks for this one, and gives no answer without it.
#[tokio::test]
async fn a_question_that_another_gateway_overtakes_is_answered_with_its_history() {
    let (mut world, answerer, ana, mut near, mut asker) = answered(false).await;
    let first = asker.question("my name is Ana");
    ask(&mut near, ask_event(&first)).await.unwrap();
    let (said, ended) = hear(&mut near, &first.turn).await;
    asker.take(&first);
    done(&mut near, &first).await;
    answerer.hold();
    let here = world.service.clone();
    world.service = beside(&world, &answerer);
    let second = world.second(&ana).await;
    let mut far = world.connect(&second).await;
    let questions = [asker.question("who am I?"), asker.question("and where?")];
    for (question, socket) in questions.iter().zip([&mut near, &mut far]) {
        let begun = answerer.counts().0;
        ask(socket, ask_event(question)).await.unwrap();
        while answerer.counts().0 == begun {
            tokio::task::yield_now().await;
        }
    }
    answerer.let_say(100);
    assert_eq!(hear(&mut near, &questions[0].turn).await.0, "known=2: who am I?");
    let wanted = loop {
        match news(&mut far).await.event {
            ServerEvent::RequestChatHistory(wanted) => break wanted,
            ServerEvent::AiTaskFailed(failed) => panic!("{}", failed.what.as_str()),
            _ => {}
        }
    };
    assert_eq!((wanted.reason, wanted.have, &wanted.turn), (HistoryReason::Other, 4, &questions[1].turn));
    let messages = vec![
        heard(&first.message, SaidBy::User, "my name is Ana", None),
        heard(&first.reply, SaidBy::Assistant, &said, ended.proof),
    ];
    let (chat, turn) = (wanted.chat, wanted.turn);
    let history = ChatHistory { chat, turn, messages: List::new(messages).unwrap(), more: false };
    assert!(ask(&mut far, ClientEvent::ChatHistory(history)).await.unwrap().is_empty());
    assert_eq!(hear(&mut far, &questions[1].turn).await.0, "known=2: and where?");
    drop(here);
}

#[tokio::test]
async fn a_turn_is_cancelled_at_another_gateway() {
    let (mut world, answerer, ana, mut near, asker) = answered(true).await;
    let question = asker.question("one two three");
    ask(&mut near, ask_event(&question)).await.unwrap();
    answerer.let_say(1);
    while news(&mut near).await.event.name() != "ai_typing_started" {}
    world.service = beside(&world, &answerer);
    let bob = world.register("bob").await;
    let second = world.second(&ana).await;
    let (mut far, mut theirs) = (world.connect(&second).await, world.connect(&bob).await);
    let cancel = |turn: &TurnId| {
        ClientEvent::CancelAiTask(CancelAiTask { chat: asker.chat.clone(), turn: turn.clone() })
    };
    assert_eq!(name(&ask(&mut theirs, cancel(&question.turn)).await.unwrap()), "not-found");
    assert_eq!(name(&ask(&mut far, cancel(&TurnId::random())).await.unwrap()), "not-found");
    assert!(ask(&mut far, cancel(&question.turn)).await.unwrap().is_empty());
    assert_eq!(hear(&mut near, &question.turn).await.0, "known=0: one two three");
}

/// The next thing that is asked for.
async fn wished(socket: &mut Socket) -> RequestClientData {
    loop {
        if let ServerEvent::RequestClientData(wanted) = news(socket).await.event {
            return wanted;
        }
    }
}

fn data(question: &ChatMessageAdded, what: Given, pieces: &[(&str, &str)]) -> ClientEvent {
    let piece = |(name, text): &(&str, &str)| Piece { what, name: Text::cut(name), text: Text::cut(text) };
    ClientEvent::ClientData(ClientData {
        chat: question.chat.clone(),
        turn: question.turn.clone(),
        what,
        pieces: List::new(pieces.iter().map(piece).collect()).unwrap(),
    })
}

/// What becomes of something that is given.
async fn gives(socket: &mut Socket, event: ClientEvent) -> String {
    let frames = ask(socket, event).await.unwrap();
    if frames.is_empty() { "taken".to_owned() } else { name(&frames).to_owned() }
}

#[tokio::test]
async fn what_the_question_allows_is_asked_of_its_socket_once() {
    let (world, _, ana, mut socket, asker) = answered(false).await;
    let mut other = world.connect(&ana).await;
    let words = "want settings want settings want summary want search";
    let question = ChatMessageAdded {
        available: List::new(vec![Text::cut("city")]).unwrap(),
        asks: List::new(vec![Given::Settings, Given::Search]).unwrap(),
        ..asker.question(words)
    };
    let city = || data(&question, Given::Settings, &[("city", "Cork")]);
    let nothing = || data(&question, Given::Search, &[]);
    assert_eq!(gives(&mut socket, city()).await, "not-found", "before the turn");
    ask(&mut socket, ask_event(&question)).await.unwrap();
    let wanted = wished(&mut socket).await;
    let names: Vec<&str> = wanted.names.iter().map(|name| name.as_str()).collect();
    assert_eq!((wanted.what, names, wanted.query), (Given::Settings, vec!["city"], None));
    assert_eq!(gives(&mut other, city()).await, "not-found", "another socket");
    assert_eq!(gives(&mut socket, nothing()).await, "not-found", "not asked for yet");
    assert_eq!(gives(&mut socket, city()).await, "taken");
    assert_eq!(gives(&mut socket, city()).await, "not-found", "a second time");
    // The second time, and what was not allowed, are not even asked for.
    let wanted = wished(&mut socket).await;
    assert_eq!((wanted.what, wanted.query.unwrap().as_str()), (Given::Search, "tides"));
    assert_eq!(gives(&mut socket, nothing()).await, "taken");
    let (heard, _) = hear(&mut socket, &question.turn).await;
    assert_eq!(heard, format!("known=0: {words} [city=Cork] [] [] []"));
    assert_eq!(gives(&mut socket, nothing()).await, "not-found", "after the answer");
}
