//! Turns that this device hears: what came of each, and what may still be asked about it.
//!
//! ```text
//! Asked ──▶ Answering ──▶ Ended            the words are whole, and wait to be stored
//!   │            └──────▶ Over(error)      there is no answer to hear here
//!   └ only here the history is given, twice at most, on the socket that the question went over
//! ```
//!
//! Nothing here is kept: what outlives the program is the reply that a chat's sealed head waits for. Easy to get wrong: words
//! of a turn that this device does not listen to on this socket. They are `unasked`, whatever they say.

use std::collections::VecDeque;

use confidant_chat_format::{ChatId, Digest, MessageId, TurnId};
use confidant_chat_protocol::{ErrorName, Finish, Given, ServerEvent};
use confidant_display::debug_without_content;

use crate::asks::GivenText;
use crate::data_requests::DataRequest;

/// A question that was asked: where its answer will be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The turn.
    pub turn: TurnId,
    /// The message.
    pub message: MessageId,
    /// The id that the reply will have.
    pub reply: MessageId,
}

/// Something that happened in a turn.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnEvent {
    /// The chat.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
    /// What happened.
    pub what: TurnUpdate,
}

debug_without_content!(TurnEvent);

/// What happened in a turn.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnUpdate {
    /// It runs, or waits for so many before it.
    Begun(u32),
    /// The server had not the words before the question, and got so many messages.
    History(usize),
    /// What is being done, in a few words.
    Progress(String),
    /// Words of the answer. Those that were told from `at` on are replaced.
    Words {
        /// How many bytes of the answer stay.
        at: usize,
        /// What comes behind them.
        text: String,
    },
    /// The server asks for something that only this device has, and nothing was given yet: [`Device::give`](crate::Device::give) does,
    /// within some seconds.
    DataRequest(Box<DataRequest>),
    /// The server asked for something that is switched on for this chat, and got this.
    Gave(Vec<GivenText>),
    /// A tool may only work if the person allows it: [`Device::decide`](crate::Device::decide).
    Approval(Box<Approval>),
    /// The answer is there. [`Device::flush`](crate::Device::flush) stores it.
    Ended(Finish),
    /// There is no answer. The person may ask again, or give up.
    Failed(ErrorName),
    /// A summary, tags and suggestions were made. [`Device::flush`](crate::Device::flush) stores them.
    Made,
}

debug_without_content!(TurnUpdate);

/// A tool that waits for the person's word.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// Which question.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it would be called with, in JSON.
    pub input: String,
    /// Why it is asked.
    pub why: String,
    /// How long it could still be decided when the server said so, in milliseconds.
    pub expires_ms: u64,
}

debug_without_content!(Approval);

/// A reply that a chat waits for.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Awaited {
    /// The chat.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
    /// The message that it answers.
    pub message: MessageId,
    /// The id that it will have.
    pub reply: MessageId,
    /// What is known about it here.
    pub state: Awaiting,
}

debug_without_content!(Awaited { state });

/// What is known about a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaiting {
    /// Nothing: the server was not asked since the last connection. A sync asks.
    Unknown,
    /// The question is stored, and was not asked yet.
    Unsent,
    /// It is being answered, and this device listens.
    Running,
    /// It is here, and waits to be stored.
    Heard,
    /// No answer will come: the name says why, `not-found` if the server knows nothing of it.
    Unanswered(ErrorName),
}

/// How far a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Asked,
    Answering,
    Ended,
    Over(ErrorName),
}

/// A turn that this device hears, or heard.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) chat: ChatId,
    pub(crate) turn: TurnId,
    pub(crate) message: MessageId,
    pub(crate) reply: MessageId,
    /// The digest of the branch with message and reply.
    pub(crate) after: Digest,
    /// The branch before the message, as the question names it: ids and revisions.
    pub(crate) branch: Vec<(MessageId, u32)>,
    /// The socket over which this device asked the question; none if it only listens.
    pub(crate) begun_on: Option<u64>,
    /// The socket over which it hears.
    pub(crate) heard_on: u64,
    /// Whether its chat is a temporary one, of which nothing is kept.
    pub(crate) is_temporary: bool,
    pub(crate) stage: Stage,
    pub(crate) words: String,
    /// How often the history was given.
    pub(crate) histories: u8,
    /// How many parts of it were given, while that is under way.
    pub(crate) given: usize,
    /// What the server may ask for, as the question said.
    pub(crate) asks: Vec<Given>,
    /// What it has asked for, and of that what is not answered.
    pub(crate) asked: Vec<Given>,
    pub(crate) open: Vec<Given>,
    /// How often words were missing.
    pub(crate) gaps: u8,
    /// Whether words that were missing are on their way.
    pub(crate) is_catching_up: bool,
    /// Whether all words were asked for once more, because their hash was another.
    pub(crate) is_repeated: bool,
}

debug_without_content!(Turn { stage });

/// What words were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// They go here.
    Words(usize),
    /// They are known.
    Known,
    /// Some before them are missing.
    Gap,
}

impl Turn {
    /// Takes in words that stand at this place of the answer. Other words than those that were heard there replace them, and what
    /// follows: whether they are right is seen at the end, by their hash.
    pub(crate) fn hear(&mut self, at: u64, text: &str) -> Heard {
        let Ok(at) = usize::try_from(at) else { return Heard::Gap };
        if at > self.words.len() || !self.words.is_char_boundary(at) {
            return Heard::Gap;
        }
        self.is_catching_up = false;
        let heard = &self.words.as_bytes()[at..];
        if heard.starts_with(text.as_bytes()) {
            return Heard::Known;
        }
        if text.as_bytes().starts_with(heard) {
            // Both end where a character does.
            let from = self.words.len();
            self.words.push_str(&text[from - at..]);
            return Heard::Words(from);
        }
        self.words.truncate(at);
        self.words.push_str(text);
        Heard::Words(at)
    }

    /// Whether this device may give the history of this turn on this socket.
    pub(crate) fn may_give(&self, chat: &ChatId, message: &MessageId, socket: u64) -> bool {
        self.chat == *chat
            && self.message == *message
            && self.begun_on == Some(socket)
            && self.stage == Stage::Asked
            && self.histories < HISTORIES
    }

    /// Whether the server may ask for something of this kind, for this turn on this socket.
    pub(crate) fn may_be_asked(&self, chat: &ChatId, what: Given, socket: u64) -> bool {
        self.is_open(chat, socket) && self.asks.contains(&what) && !self.asked.contains(&what)
    }

    /// Whether it asked, and waits for it.
    pub(crate) fn may_answer(&self, chat: &ChatId, what: Given, socket: u64) -> bool {
        self.is_open(chat, socket) && self.open.contains(&what)
    }

    /// Whether this device asked the question on this socket, and it has no answer.
    fn is_open(&self, chat: &ChatId, socket: u64) -> bool {
        self.chat == *chat
            && self.begun_on == Some(socket)
            && matches!(self.stage, Stage::Asked | Stage::Answering)
    }

    pub(crate) fn tell(&self, what: TurnUpdate) -> TurnEvent {
        TurnEvent { chat: self.chat.clone(), turn: self.turn.clone(), what }
    }
}

/// The turns, and what is to be told of them.
#[derive(Default)]
pub(crate) struct Turns {
    all: Vec<Turn>,
    /// What happened outside [`Device::listen`](crate::Device::listen).
    pub(crate) told: VecDeque<TurnEvent>,
}

debug_without_content!(Turns);

impl Turns {
    /// A turn that is heard from now on, in place of what was known of it. Words that were heard before stay.
    pub(crate) fn add(&mut self, mut turn: Turn) {
        if let Some(old) = self.find(&turn.turn) {
            turn.words.clone_from(&old.words);
            // Asked anew on another socket: what was asked for is not asked for again.
            turn.asked.clone_from(&old.asked);
        }
        self.all.retain(|old| old.turn != turn.turn);
        self.all.push(turn);
        if self.all.len() > REMEMBERED {
            let done = self.all.iter().position(|turn| matches!(turn.stage, Stage::Ended | Stage::Over(_)));
            self.all.remove(done.unwrap_or(0));
        }
    }

    pub(crate) fn find(&self, turn: &TurnId) -> Option<&Turn> {
        self.all.iter().find(|one| one.turn == *turn)
    }

    pub(crate) fn find_mut(&mut self, turn: &TurnId) -> Option<&mut Turn> {
        self.all.iter_mut().find(|one| one.turn == *turn)
    }

    /// The turn, if this device hears it in this chat on this socket.
    pub(crate) fn heard(&mut self, chat: &ChatId, turn: &TurnId, socket: u64) -> Option<&mut Turn> {
        self.find_mut(turn).filter(|one| one.chat == *chat && one.heard_on == socket)
    }

    /// It was not begun after all.
    pub(crate) fn forget(&mut self, turn: &TurnId) {
        self.all.retain(|one| one.turn != *turn);
    }

    /// It ends without an answer, and that is told.
    pub(crate) fn fail(&mut self, turn: &TurnId, error: ErrorName) {
        if let Some(one) = self.find_mut(turn) {
            one.stage = Stage::Over(error);
            let told = one.tell(TurnUpdate::Failed(error));
            self.told.push_back(told);
        }
    }
}

/// Whether an event says what came of a turn. Such events may follow the first answer to a request, with its number.
pub(crate) fn is_told(event: &ServerEvent) -> bool {
    matches!(
        event,
        ServerEvent::RequestChatHistory(_)
            | ServerEvent::RequestClientData(_)
            | ServerEvent::PreprocessingStep(_)
            | ServerEvent::AiTypingStarted(_)
            | ServerEvent::AiMessageUpdate(_)
            | ServerEvent::AiTypingEnded(_)
            | ServerEvent::AiTaskFailed(_)
            | ServerEvent::PostProcessingCompleted(_)
            | ServerEvent::PendingAiResponse(_)
            | ServerEvent::AiApprovalRequested(_)
    )
}

/// How often the history of one turn is given.
const HISTORIES: u8 = 2;
/// Turns that are remembered, those that are over included: what is still on its way about them is no attack.
const REMEMBERED: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn turn() -> Turn {
        Turn {
            chat: ChatId::random(),
            turn: TurnId::random(),
            message: MessageId::random(),
            reply: MessageId::random(),
            after: Digest::ZERO,
            branch: Vec::new(),
            begun_on: Some(1),
            heard_on: 1,
            is_temporary: false,
            stage: Stage::Asked,
            words: String::new(),
            histories: 0,
            given: 0,
            asks: vec![Given::Settings, Given::Search],
            asked: Vec::new(),
            open: Vec::new(),
            gaps: 0,
            is_catching_up: false,
            is_repeated: false,
        }
    }

    #[test]
    fn words_go_where_they_say() {
        let mut turn = turn();
        assert_eq!(turn.hear(0, "Grü"), Heard::Words(0));
        assert_eq!(turn.hear(0, "Gr"), Heard::Known);
        assert_eq!(turn.hear(2, "üße"), Heard::Words(4), "what overlaps is not said twice");
        assert_eq!(turn.words, "Grüße");
        assert_eq!(turn.hear(9, "!"), Heard::Gap);
        assert_eq!(turn.hear(3, "x"), Heard::Gap, "inside a character");
        assert_eq!(turn.hear(u64::MAX, "x"), Heard::Gap);
        assert_eq!(turn.words, "Grüße");
        assert_eq!(turn.hear(2, "ay"), Heard::Words(2), "other words replace them");
        assert_eq!(turn.words, "Gray");
        assert_eq!(turn.hear(4, ""), Heard::Known);
    }

    #[test]
    fn history_is_given_for_an_open_question_of_this_socket_twice() {
        let mut one = turn();
        let (chat, message) = (one.chat.clone(), one.message.clone());
        assert!(one.may_give(&chat, &message, 1));
        assert!(!one.may_give(&ChatId::random(), &message, 1), "another chat");
        assert!(!one.may_give(&chat, &MessageId::random(), 1), "another message");
        assert!(!one.may_give(&chat, &message, 2), "another socket");
        one.histories = 2;
        assert!(!one.may_give(&chat, &message, 1), "a third time");
        for stage in [Stage::Answering, Stage::Ended, Stage::Over(ErrorName::Request(NOT_FOUND))] {
            let over = Turn { stage, ..turn() };
            assert!(!over.may_give(&over.chat, &over.message, 1));
        }
        let listens = Turn { begun_on: None, ..turn() };
        assert!(!listens.may_give(&listens.chat, &listens.message, 1), "another device's question");
    }

    #[test]
    fn what_the_question_allowed_is_given_once_on_its_socket_until_the_answer() {
        let mut one = turn();
        let chat = one.chat.clone();
        assert!(one.may_be_asked(&chat, Given::Settings, 1) && !one.may_answer(&chat, Given::Settings, 1));
        assert!(!one.may_be_asked(&chat, Given::Summary, 1), "not allowed");
        assert!(!one.may_be_asked(&ChatId::random(), Given::Settings, 1), "another chat");
        assert!(!one.may_be_asked(&chat, Given::Settings, 2), "another socket");
        one.asked.push(Given::Settings);
        one.open.push(Given::Settings);
        assert!(!one.may_be_asked(&chat, Given::Settings, 1), "a second time");
        assert!(one.may_answer(&chat, Given::Settings, 1) && !one.may_answer(&chat, Given::Settings, 2));
        one.stage = Stage::Answering;
        assert!(one.may_be_asked(&chat, Given::Search, 1), "a search may come between words");
        for stage in [Stage::Ended, Stage::Over(ErrorName::Request(NOT_FOUND))] {
            one.stage = stage;
            assert!(!one.may_be_asked(&chat, Given::Search, 1) && !one.may_answer(&chat, Given::Settings, 1));
        }
        // Asked anew, on another socket.
        let mut turns = Turns::default();
        let again = Turn { begun_on: Some(2), heard_on: 2, asked: Vec::new(), ..one.clone() };
        turns.add(one);
        turns.add(again);
        let again = turns.find_mut(&turns.all[0].turn.clone()).unwrap();
        again.stage = Stage::Asked;
        assert!(
            !again.may_be_asked(&chat, Given::Settings, 2) && again.may_be_asked(&chat, Given::Search, 2)
        );
    }

    const NOT_FOUND: confidant_chat_protocol::Failure = confidant_chat_protocol::Failure::NotFound;
}
