//! Answers: what a device says in clear so that a model can answer, and what comes back.
//!
//! ```text
//! device                                            server
//! write: message, head with the pending reply ──▶               sealed; the server reads none of it
//! chat_message_added {words, claim}           ──▶
//!                              ◀── request_chat_history         only if its cache is not what the claim says
//! chat_history {branch, proofs}               ──▶
//!                              ◀── request_client_data          only what `asks` lists, each once; nobody waits for long
//! client_data {pieces}, by the person's consent ──▶
//!        ◀── ai_typing_started, ai_message_update 1, 2, …, ai_typing_ended, post_processing_completed
//! write: the reply, head without the pending  ──▶
//! ai_response_completed                       ──▶               the server forgets the answer
//! ```
//!
//! Words go to the server only for a turn that this device began itself and that has no answer yet. A device that was away asks with
//! `resume_ai_task` for every reply that the chat's head waits for; the answer is the rest of the stream, or a letter that was sealed to the
//! account. Easy to get wrong: believing a reply. It counts for the turn and the reply id that the sealed head names, and for nothing else.

use confidant_chat_format::{ChatId, Digest, MessageId, TurnId};

use crate::errors::ErrorName;
use crate::limits::{
    MAX_ASKS, MAX_BESIDE, MAX_BESIDE_TEXT, MAX_CLIENT_DATA, MAX_DELTA, MAX_HISTORY, MAX_MESSAGE, MAX_OFF,
    MAX_PADDING, MAX_PIECES, MAX_QUERY, MAX_RECORD, MAX_REMEMBERS, MAX_SHORT, MAX_SUGGESTIONS, MAX_TAGS,
    MAX_TOOL_INPUT, MAX_WORDS,
};
use crate::lists::List;
use crate::malformed::Why;
use crate::remembered::Remembered;
use crate::shapes::{objects, words};
use crate::values::{Blob, Text};

words! {
    /// How long the server may keep the words of a chat to answer the next message.
    pub enum Keep {
        /// As the server's settings say: sealed, for a day, for the chats that were used last.
        Cache = "cache",
        /// Only in memory, until the answer is stored.
        Turn = "turn",
    }

    /// Who said a message of the history.
    pub enum SaidBy {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool.
        Tool = "tool",
        /// The model, about what came before.
        Summary = "summary",
    }

    /// Who said something beside an answer.
    pub enum BesideBy {
        /// The model, about what came before.
        Summary = "summary",
        /// A tool.
        Tool = "tool",
    }

    /// Why the history is asked for.
    pub enum HistoryReason {
        /// There is none here.
        Missing = "cache_miss",
        /// There is one that cannot be opened.
        Unreadable = "decryption_failed",
        /// There is one of another branch, or of another time.
        Other = "other_branch",
    }

    /// What a turn is doing.
    pub enum Step {
        /// Its kind, its model and its tools are chosen.
        Preparing = "preparing",
        /// The model answers.
        Answering = "answering",
        /// A tool works.
        Working = "working",
    }

    /// What a person may need beside the answer.
    pub enum Care {
        /// Somebody to talk to: the answer, or what stands in its place, says where to find help.
        Help = "help",
    }

    /// How an answer ended.
    pub enum Finish {
        /// It is whole.
        Whole = "whole",
        /// It was too long, and ends where a message does.
        Cut = "cut",
        /// It was cancelled; what was said so far counts.
        Cancelled = "cancelled",
        /// The request was refused, and the words say why.
        Declined = "declined",
        /// The chat was ended for safety. Further turns are refused.
        Ended = "ended",
        /// The person asked to be forgotten: a chat is forgotten by deleting it, which only a device can do.
        AskedToForget = "asked_to_forget",
    }

    /// What a device gives with a message, by the person's consent.
    pub enum Given {
        /// A setting or a memory.
        Settings = "settings",
        /// The summary of a past chat.
        Summary = "summary",
        /// What a search on the device found.
        Search = "search",
    }
}

objects! {
    /// Asks for an answer. The words are for this turn; the message itself is stored by a write, sealed.
    ///
    /// Answers: `ai_task_initiated` or `message_queued`, or `request_chat_history`, or `refused`. The same turn sent again is the same turn.
    pub struct ChatMessageAdded (check check_ask) {
        /// The chat.
        pub chat: ChatId,
        /// The turn, an id that the device made. The chat's head waits for it.
        pub turn: TurnId,
        /// The message.
        pub message: MessageId,
        /// The id that the reply will have.
        pub reply: MessageId,
        /// Its words.
        pub text: Text<MAX_QUERY>,
        /// How many messages the branch has before this one.
        pub count: u32,
        /// The digest of the branch before this message.
        pub before: Digest,
        /// The digest with this message and its reply.
        pub after: Digest,
        /// How long words may be kept.
        pub keep: Keep,
        /// Whether the history follows in `chat_history` without being asked for.
        pub history: bool,
        /// Whether the chat has a title already. Then no title, icon and category are made.
        pub titled: bool,
        /// The focus mode that the person chose, by name.
        pub focus: Option<Text<MAX_SHORT>>,
        /// What the person switched off: `tools`, `focus`, `settings`, `similar`, `search`, `suggestions`, a tool by its name, or a focus mode
        /// as `focus:` and its name.
        pub off: List<Text<MAX_SHORT>, MAX_OFF>,
        /// Settings and memories that the device could give, by name. Those that would have helped are named with the answer.
        pub available: List<Text<MAX_SHORT>, MAX_OFF>,
        /// What the person lets the server have for this turn: at most 4 KiB together.
        pub given: List<Piece, MAX_PIECES>,
        /// What the server may ask this device for while it answers, with `request_client_data`: each once. Anything else gets nothing.
        pub asks: List<Given, MAX_ASKS>,
        /// What the server may keep of this chat beyond its words, and use for its answers: what the person switched on for it. What is not in the
        /// list is forgotten. Left out: nothing is kept or used in this turn, and nothing forgotten.
        pub remembers: Option<List<Remembered, MAX_REMEMBERS>>,
    }

    /// The history of a turn that was begun: the branch before its message, the oldest message first.
    ///
    /// In as many frames as it takes. Answer to the last: as to `chat_message_added`.
    pub struct ChatHistory {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// Messages.
        pub messages: List<Heard, MAX_HISTORY>,
        /// Whether more follow.
        pub more: bool,
    }

    /// A message of the history.
    pub struct Heard {
        /// Its id.
        pub id: MessageId,
        /// Who said it. Without a good proof the model is shown it as a quotation.
        pub by: SaidBy,
        /// The words.
        pub text: Text<MAX_QUERY>,
        /// The server's proof, from when it was said.
        pub proof: Option<Digest>,
        /// How many messages of the branch it stands for, if not one: none for what a tool said beside an answer, all that it sums up for a summary.
        pub count: Option<u32>,
        /// Of a summary: where the transcript stood behind the words that it sums up. They are not sent.
        pub sums_up: Option<Digest>,
    }

    /// Something that the chat has beside an answer: it is stored with the answer, sealed, and goes along when the history is asked for.
    ///
    /// Its id follows from the turn and from its place in the list ([FORMAT.md](FORMAT.md)). What a tool said belongs to the answer that it came with; a summary
    /// to the last message that it sums up.
    pub struct Beside (check check_beside) {
        /// Who said it.
        pub by: BesideBy,
        /// The words. Of a tool its name, a line break, and what it said.
        pub text: Text<MAX_BESIDE_TEXT>,
        /// The server's proof that it was said here; kept in the sealed message.
        pub proof: Digest,
        /// Of a summary: how many messages of the branch it stands for, counted from the first.
        pub count: Option<u32>,
        /// Of a summary: where the transcript stood behind them. A device that finds another does not keep the summary.
        pub sums_up: Option<Digest>,
    }

    /// Asks for the history of a turn. A device answers for a turn that it began on this socket, twice at most.
    pub struct RequestChatHistory {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// Its message.
        pub message: MessageId,
        /// Why.
        pub reason: HistoryReason,
        /// How many messages the server has of the chat; none of them may be of this branch.
        pub have: u32,
    }

    /// Asks the device that began a turn for something that only devices can read. The turn goes on without it after a few seconds.
    ///
    /// A device answers for a turn that it began on this socket, that has no answer yet, and whose question allowed it (`asks`), once for each
    /// kind; and only if the person says yes, or has switched it on for this chat.
    pub struct RequestClientData {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// What.
        pub what: Given,
        /// For `settings` their names, of those that the question listed as available; for `summary` what the question is about, as tags.
        pub names: List<Text<MAX_SHORT>, MAX_OFF>,
        /// For `search`: the words to look for.
        pub query: Option<Text<MAX_WORDS>>,
    }

    /// What a device gives, because the person said yes, now or by a switch of this chat; without pieces: nothing. With what was given before, at
    /// most three pieces and 4 KiB a turn.
    ///
    /// It has no answer. Data that nobody waits for is `refused` with `not-found`.
    pub struct ClientData (check check_data) {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// What was asked for.
        pub what: Given,
        /// The pieces.
        pub pieces: List<Piece, MAX_PIECES>,
    }

    /// The turn runs.
    pub struct AiTaskInitiated {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
    }

    /// The turn waits for the one before it in its chat.
    pub struct MessageQueued {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// How many are before it.
        pub ahead: u32,
    }

    /// Asks for the answer of a turn: what of it there is, and the rest as it comes. For every reply that a chat's head waits for.
    ///
    /// Answers: `ai_task_initiated`, then what the turn sent from `from` on; `pending_ai_response`; or `refused` with `not-found`: then there is no
    /// answer, and the message may be sent again as another turn.
    pub struct ResumeAiTask {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// The digest with the message and its reply. A device that cannot make it gets no words.
        pub after: Digest,
        /// How many bytes of the answer the device has.
        pub from: u64,
        /// The message and its reply: where another gateway was asked, this one learns them here, proves the answer and leaves a letter.
        pub message: Option<MessageId>,
        /// The id that the reply will have.
        pub reply: Option<MessageId>,
    }

    /// Stops a turn. What was said so far is its answer.
    pub struct CancelAiTask {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
    }

    /// The answer is stored: the server may forget it. Answer: `ai_response_storage_confirmed`.
    pub struct AiResponseCompleted {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
    }

    /// The answer is forgotten.
    pub struct AiResponseStorageConfirmed {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
    }

    /// What a turn is doing.
    pub struct PreprocessingStep {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// What.
        pub step: Step,
        /// In a few words.
        pub text: Text<MAX_SHORT>,
    }

    /// The answer begins.
    pub struct AiTypingStarted {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
    }

    /// The next words of the answer. A device that lacks words before them asks with `resume_ai_task`.
    pub struct AiMessageUpdate {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// How many bytes the answer has before these words.
        pub at: u64,
        /// The words.
        pub text: Text<MAX_DELTA>,
        /// As many characters as it takes that lengths tell little.
        pub pad: Text<MAX_PADDING>,
    }

    /// The answer is there.
    pub struct AiTypingEnded {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// How many bytes it has. A device that has others asks for the whole with `resume_ai_task`.
        pub bytes: u64,
        /// The hash of its words.
        pub hash: Digest,
        /// How it ended.
        pub finish: Finish,
        /// The server's proof that its model said this here; kept in the sealed message.
        pub proof: Option<Digest>,
        /// Which model answered.
        pub model: Option<Text<MAX_SHORT>>,
        /// What was found out before the answer.
        pub about: About,
        /// What the chat keeps beside the answer, if there is anything.
        pub beside: Option<List<Beside, MAX_BESIDE>>,
    }

    /// What was found out about a message.
    pub struct About {
        /// A title for the chat, if it had none.
        pub title: Option<Text<MAX_SHORT>>,
        /// Icons that fit, if it had no title.
        pub icons: List<Text<MAX_SHORT>, MAX_TAGS>,
        /// What kind of request it is.
        pub category: Option<Text<MAX_SHORT>>,
        /// Why the model that answers was chosen, in a sentence; kept in the sealed message, beside the model's name.
        pub reason: Option<Text<MAX_WORDS>>,
        /// The focus mode that is on now.
        pub focus: Option<Text<MAX_SHORT>>,
        /// Tools that were used.
        pub tools: List<Text<MAX_SHORT>, MAX_OFF>,
        /// Settings and memories that would have helped, by name.
        pub wanted: List<Text<MAX_SHORT>, MAX_OFF>,
        /// What the person may need besides, if anything.
        pub care: Option<Care>,
    }

    /// There is no answer.
    pub struct AiTaskFailed {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// Why.
        pub error: ErrorName,
        /// What happened.
        pub what: Text<MAX_WORDS>,
        /// What to do.
        pub hint: Text<MAX_WORDS>,
    }

    /// What was made of the message and its answer. Without fields if nothing was made: do not wait for more.
    pub struct PostProcessingCompleted {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// What could be asked next.
        pub follow_ups: List<Text<MAX_WORDS>, MAX_SUGGESTIONS>,
        /// What another chat could begin with.
        pub new_chats: List<Text<MAX_WORDS>, MAX_SUGGESTIONS>,
        /// The chat in few words.
        pub summary: Option<Text<MAX_WORDS>>,
        /// What the chat is about.
        pub tags: List<Text<MAX_SHORT>, MAX_TAGS>,
    }

    /// The answer came while no device took it: a letter, sealed to the account's mailbox. Stored, it is acknowledged with
    /// `ai_response_completed`; after 30 days it is gone.
    pub struct PendingAiResponse {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// The id that the reply was given.
        pub reply: MessageId,
        /// The letter.
        pub letter: Blob<MAX_MESSAGE>,
        /// What was made of it, sealed likewise.
        pub more: Option<Blob<MAX_RECORD>>,
    }

    /// A tool may only work if the person allows it. The turn goes on with `decide_ai_task`, also later.
    pub struct AiApprovalRequested {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// Which question.
        pub approval: Text<MAX_SHORT>,
        /// The tool.
        pub tool: Text<MAX_SHORT>,
        /// What it would be called with, in JSON.
        pub input: Text<MAX_TOOL_INPUT>,
        /// Why it is asked.
        pub why: Text<MAX_WORDS>,
        /// How long it can still be decided, in milliseconds. Then the call is not made.
        pub expires_ms: u64,
    }

    /// The person's word on a tool. Answer: as to `chat_message_added`.
    pub struct DecideAiTask {
        /// The chat.
        pub chat: ChatId,
        /// The turn.
        pub turn: TurnId,
        /// Which question.
        pub approval: Text<MAX_SHORT>,
        /// Whether it may.
        pub allow: bool,
    }

    /// Something that only devices can read, given for this turn because the person said yes, now or by a switch of this chat. A note of it is kept in
    /// the sealed message.
    pub struct Piece {
        /// What it is.
        pub what: Given,
        /// Its name or title.
        pub name: Text<MAX_SHORT>,
        /// What it says.
        pub text: Text<MAX_CLIENT_DATA>,
    }
}

fn check_ask(ask: &ChatMessageAdded) -> Result<(), (&'static str, Why)> {
    if ask.message == ask.reply {
        return Err(("reply", Why::Expected("another id than the message's")));
    }
    check_size("given", &ask.given)
}

fn check_beside(beside: &Beside) -> Result<(), (&'static str, Why)> {
    let is_summary = beside.by == BesideBy::Summary;
    if beside.count.is_some() != is_summary {
        return Err(("count", Why::Expected("a number of a summary, and of nothing else")));
    }
    if beside.sums_up.is_some() != is_summary {
        return Err(("sums_up", Why::Expected("a digest of a summary, and of nothing else")));
    }
    Ok(())
}

fn check_data(data: &ClientData) -> Result<(), (&'static str, Why)> {
    if data.pieces.iter().any(|piece| piece.what != data.what) {
        return Err(("pieces", Why::Expected("pieces of what was asked for")));
    }
    check_size("pieces", &data.pieces)
}

fn check_size(field: &'static str, pieces: &List<Piece, MAX_PIECES>) -> Result<(), (&'static str, Why)> {
    let bytes: usize = pieces.iter().map(|piece| piece.text.as_str().len()).sum();
    if bytes > MAX_CLIENT_DATA { Err((field, Why::TooLong(MAX_CLIENT_DATA))) } else { Ok(()) }
}
