//! Who answers, as the service asks for it: the only part that sees words.
//!
//! ```text
//! have ─▶ the digest is the one that the device expects?  no ─▶ the history comes with the question
//!                                                          ▼
//! answer ─▶ Progress, Delta, Wants, … ─▶ Final ─▶ Made       or Approval, which decide resumes       or Failed
//! again ──▶ the same, of a turn that was begun before, in any process
//! left ───▶ only its answer, if there is one now
//! ```
//!
//! What it keeps of a chat is its own affair, as long as it forgets by itself, and at once where it is told so. A turn has the name that the
//! device gave it: asked again under that name, it is answered with what was answered before. Easy to get wrong: a history that is taken over in
//! halves. It replaces everything, or nothing, and is there if the turn is taken up after a crash.

#[cfg(any(test, feature = "testing"))]
mod memory;

use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{
    AccountId, ChatId, Claim, Digest, MessageId, Transcript, TranscriptKind, TurnId,
};
use confidant_chat_protocol::{Care, Finish, Given, Keep, RefusedSent, Remembered};
use confidant_display::debug_without_content;
use tokio::sync::oneshot;

#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryAnswerer;

/// Where words are kept for answers: a chat, and how long.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose.
    pub account: AccountId,
    /// Which chat.
    pub chat: ChatId,
    /// How long.
    pub keep: Keep,
}

debug_without_content!(Place { keep });

/// What there is of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Have {
    /// Nothing.
    Missing,
    /// Something that cannot be opened.
    Unreadable,
    /// A branch.
    There(Kept),
}

/// A branch that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How many messages it has.
    pub messages: u32,
    /// Its digest, as the device made it.
    pub digest: Digest,
    /// Where its transcript stands.
    pub transcript: Transcript,
}

/// A branch that is taken over, in place of what there is.
#[derive(Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its messages, the oldest first.
    pub lines: Vec<Line>,
    /// Where its transcript stands.
    pub transcript: Transcript,
}

debug_without_content!(Branch);

/// A message of such a branch.
#[derive(Clone, PartialEq, Eq)]
pub struct Line {
    /// Its id.
    pub id: MessageId,
    /// Who speaks, as far as it is proved.
    pub kind: TranscriptKind,
    /// The words.
    pub text: String,
    /// How many messages of the branch are before it.
    pub before: u32,
    /// Where the transcript stood before it.
    pub after: Transcript,
}

debug_without_content!(Line { kind });

/// A question.
#[derive(Clone)]
pub struct Ask {
    /// Where.
    pub place: Place,
    /// Its name.
    pub turn: TurnId,
    /// The words.
    pub text: String,
    /// What the device says of the branch: how many messages it has before this one, its digest then, and with message and reply.
    pub claim: Claim,
    /// The transcript before this message.
    pub before: Transcript,
    /// The transcript with this message.
    pub transcript: Transcript,
    /// The branch, where the server has another.
    pub history: Option<Branch>,
    /// Whether the chat has a title.
    pub titled: bool,
    /// The focus mode that the person chose.
    pub focus: Option<String>,
    /// What is switched off.
    pub off: Vec<String>,
    /// Settings that the device could give.
    pub available: Vec<String>,
    /// Settings and memories that it gives: name and words.
    pub settings: Vec<(String, String)>,
    /// Past chats, or what was found in them: title and words.
    pub past: Vec<(String, String)>,
    /// What the device may be asked for on the way.
    pub asks: Vec<Given>,
    /// What is known of the chat's safety from turns before, as the answer to one of them had it.
    pub safety: Option<Vec<u8>>,
    /// What the person lets be kept of the chat beyond its words: what is not among it is forgotten. `None`: nothing is kept or used in
    /// this turn, and nothing forgotten.
    pub remembers: Option<Vec<Remembered>>,
}

debug_without_content!(Ask { place });

/// What comes of a question.
pub enum AnswerEvent {
    /// The answer begins, here or once more: words that were said before do not count.
    Anew,
    /// What is being done.
    Progress(String),
    /// The next words.
    Delta(String),
    /// Something that only the device which asked can give.
    Wants(Box<Wants>),
    /// The whole answer.
    Final(Box<Answer>),
    /// A tool waits for the person.
    Approval(Box<Approval>),
    /// There is no answer.
    Failed(RefusedSent),
    /// Somebody stopped it: what was said so far counts.
    Stopped,
    /// What was made of it, after the answer.
    Made(Box<Made>),
}

debug_without_content!(AnswerEvent);

/// Something that only a device can give.
pub struct Wants {
    /// What.
    pub what: Given,
    /// Settings by name, or the tags of similar chats.
    pub names: Vec<String>,
    /// What is searched for.
    pub query: Option<String>,
    /// Where it goes: names and words. Dropped, nothing is given, and nobody waits for it.
    pub reply: oneshot::Sender<Vec<(String, String)>>,
}

debug_without_content!(Wants { what });

/// An answer.
#[derive(Clone)]
pub struct Answer {
    /// The words.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// Which model.
    pub model: Option<String>,
    /// A title, if the chat had none.
    pub title: Option<String>,
    /// Icons, if the chat had no title.
    pub icons: Vec<String>,
    /// What kind of request it was.
    pub category: Option<String>,
    /// Why its model was chosen, in a sentence.
    pub reason: Option<String>,
    /// The focus mode that is on now.
    pub focus: Option<String>,
    /// Tools that were used.
    pub tools: Vec<String>,
    /// What they said, as it is part of the transcript before the answer.
    pub said: Vec<String>,
    /// What the beginning of the chat was summed up as, if no answer has told that before.
    pub summed_up: Option<SummedUp>,
    /// Settings that would have helped.
    pub wanted: Vec<String>,
    /// What the person may need besides.
    pub care: Option<Care>,
    /// What is known of the chat's safety now: scores and flags, without words. It is kept longer than they are.
    pub safety: Option<Vec<u8>>,
}

debug_without_content!(Answer { finish });

impl Answer {
    /// One that somebody stopped.
    pub(crate) fn stopped(text: String) -> Self {
        Self {
            text,
            finish: Finish::Cancelled,
            model: None,
            title: None,
            icons: Vec::new(),
            category: None,
            reason: None,
            focus: None,
            tools: Vec::new(),
            said: Vec::new(),
            summed_up: None,
            wanted: Vec::new(),
            care: None,
            safety: None,
        }
    }
}

/// The beginning of a chat in few words.
#[derive(Clone)]
pub struct SummedUp {
    /// The words.
    pub text: String,
    /// How many messages of the branch they stand for.
    pub messages: u32,
    /// Where the transcript stood behind those.
    pub transcript: Transcript,
}

debug_without_content!(SummedUp { messages });

/// A tool that waits.
#[derive(Clone)]
pub struct Approval {
    /// Which question.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What it would be called with.
    pub input: String,
    /// Why it is asked.
    pub why: String,
    /// How long it can still be decided.
    pub left: Duration,
}

debug_without_content!(Approval);

/// What was made of a message and its answer.
#[derive(Clone, Default)]
pub struct Made {
    /// What could be asked next.
    pub follow_ups: Vec<String>,
    /// What another chat could begin with.
    pub new_chats: Vec<String>,
    /// The chat in few words.
    pub summary: Option<String>,
    /// What it is about.
    pub tags: Vec<String>,
}

debug_without_content!(Made);

/// What answers may use, as far as this process knows.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Tools.
    pub tools: Vec<Offer>,
    /// Focus modes.
    pub focus_modes: Vec<Offer>,
    /// Whether these are all.
    pub whole: bool,
}

/// A tool or a focus mode.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// What people call it, if that is something else.
    pub title: Option<String>,
    /// What it is for, in a line.
    pub about: String,
}

/// What became of a turn that nobody listens to.
pub enum Left {
    /// It has no answer yet.
    Runs,
    /// It was answered; with what was made of it, if anything was.
    Answer(Box<Answer>, Option<Box<Made>>),
    /// There is none, and none will come.
    Nothing,
}

debug_without_content!(Left);

/// What comes of a question, as it comes. Dropping it does not stop the turn.
pub type AnswerStream = tokio::sync::mpsc::Receiver<AnswerEvent>;

/// Who answers.
#[async_trait]
pub trait Answerer: Send + Sync + std::fmt::Debug {
    /// What there is of a chat.
    async fn have(&self, place: &Place) -> Result<Have, RefusedSent>;
    /// Answers; takes over the branch that comes with the question in the step that accepts it. Under the name of a turn that was answered
    /// already: that answer again.
    fn answer(&self, ask: Ask) -> AnswerStream;
    /// The answer of a turn that was begun before, here or elsewhere, if the branch that ends with it has this digest: from its first word, as far as
    /// words can be heard here, and its end in any case. `None`: there is no such turn.
    async fn again(
        &self,
        place: &Place,
        turn: &TurnId,
        digest: &Digest,
    ) -> Result<Option<AnswerStream>, RefusedSent>;
    /// What became of a turn that was begun before, here or elsewhere, as far as this process can know: looks, and waits for nothing.
    async fn left(&self, place: &Place, turn: &TurnId) -> Result<Left, RefusedSent>;
    /// Waits until the person has said a word on a tool at another gateway, and tells what comes then. Where there is no other: never.
    async fn decided_elsewhere(&self, place: &Place, turn: &TurnId, approval: &str) -> AnswerStream;
    /// Goes on with a turn that waits for the person's word.
    fn decide(&self, place: &Place, turn: &TurnId, approval: &str, allow: bool) -> AnswerStream;
    /// Stops a turn, in whichever process it runs; what was said counts. Whether there was one.
    async fn cancel(&self, place: &Place, turn: &TurnId) -> Result<bool, RefusedSent>;
    /// What answers in the chats of an account may use.
    async fn offers(&self, account: &AccountId) -> Result<Offers, RefusedSent>;
    /// What is known of a chat's safety now, where turns without an answer added to it; with what was known before, of which nothing goes.
    async fn safety(&self, place: &Place, known: Option<&[u8]>) -> Result<Option<Vec<u8>>, RefusedSent>;
    /// Forgets the words of a chat.
    async fn end(&self, place: &Place) -> Result<(), RefusedSent>;
    /// Forgets what is kept of a chat beyond its words; the receipt, if there was anything.
    async fn forget(
        &self,
        account: &AccountId,
        chat: &ChatId,
        what: Remembered,
    ) -> Result<Option<String>, RefusedSent>;
    /// What is kept of a chat beyond its words, for its owner: each in JSON, in the order in which it came.
    async fn remembered(
        &self,
        account: &AccountId,
        chat: &ChatId,
        what: Remembered,
    ) -> Result<Vec<String>, RefusedSent>;
}
