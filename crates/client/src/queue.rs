//! What was written on this device and is not known to be stored, in order; and what lost against another device.
//!
//! ```text
//! write, edit, delete ─▶ Queue::add ─▶ folded into what waits unsent, or put behind it
//!                                       │ sent: the mark of each attempt's head, kept before it is sent
//!                                       ▼
//!                        done ──▶ gone      lost ──▶ a copy that the person sees
//! ```
//!
//! Easy to get wrong: an edit of something that itself waits. What waits unsent is changed in place; of what was sent and
//! not answered nobody knows the outcome, so the edit is based on that very operation ([`Base::Op`]) and shares its fate.
//! Bases are the words that the person saw, not revisions: another device may have made the same revision of other words.

use confidant_chat_format::{ChatId, Digest, EmbedId, FieldName, Mark, MessageId, Role, Shared, TurnId};
use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};

use crate::beside::BesideNote;

/// What a change was made against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Base {
    /// There was nothing.
    Nothing,
    /// These words.
    Words(Digest),
    /// What this operation of the queue leaves.
    Op(u64),
}

impl Base {
    pub(crate) fn of(text: Option<&str>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Words(words(text)))
    }
}

/// The digest of a text.
pub(crate) fn words(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum To {
    /// Behind the last message, whichever that is when it is stored.
    End,
    /// Behind this message; if it is gone, behind the next of these that is there.
    After(Vec<MessageId>),
}

/// A message that is not sealed yet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) role: Role,
    pub(crate) body: String,
    pub(crate) model: Option<String>,
    pub(crate) refs: Vec<EmbedId>,
    pub(crate) created_at: u64,
    /// The answer that is asked for with it: the head waits for it from the same write on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<Wanted>,
    /// What else leaves the device for this turn, by consent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shared: Vec<Shared>,
}

debug_without_content!(Note { role });

impl Note {
    /// These words, and nothing else.
    pub(crate) fn of(role: Role, body: &str, created_at: u64) -> Self {
        Self {
            role,
            body: body.to_owned(),
            model: None,
            refs: Vec::new(),
            created_at,
            ask: None,
            shared: Vec::new(),
        }
    }
}

/// An answer that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) turn: TurnId,
    pub(crate) reply: MessageId,
}

/// An answer that was heard.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) turn: TurnId,
    /// What it answers, as the head had it when it was heard.
    pub(crate) parent: MessageId,
    pub(crate) body: String,
    pub(crate) model: Option<String>,
    /// Why that model was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) proof: Option<Digest>,
    pub(crate) created_at: u64,
    /// Fields of the chat that are set if it has no title: the title among them.
    pub(crate) fields: Vec<(FieldName, String)>,
    /// What left the device while it was made, by consent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) shared: Vec<Shared>,
    /// What is stored beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<BesideNote>,
}

debug_without_content!(Answer);

/// What is done.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Creates the chat.
    Create,
    /// Adds a message.
    Append { id: MessageId, note: Note, to: To },
    /// Changes a message.
    Edit { id: MessageId, body: String, base: Base },
    /// Deletes a message.
    Delete { id: MessageId, base: Base },
    /// Sets a field of the chat.
    Field { name: FieldName, body: String, base: Base },
    /// Adds something that a message shows.
    Embed { id: EmbedId, body: String },
    /// Shows the branch that ends in this message.
    Leaf { id: MessageId },
    /// Deletes the chat.
    DeleteChat,
    /// Stores or removes what was typed.
    Draft { body: Option<String>, base: Base },
    /// Stores or removes a piece of account data.
    Data { kind: FieldName, name: FieldName, body: Option<String>, base: Base },
    /// Waits for another answer to a message, in place of those that will not come.
    Retry { message: MessageId, wanted: Wanted, instead: Vec<MessageId> },
    /// Stores the answer that the head waits for, as this message.
    Reply { id: MessageId, answer: Answer },
    /// Notes inside an answer that another device stored what this one gave for it.
    Gave { id: MessageId, shared: Vec<Shared> },
    /// Waits no longer for this reply.
    GiveUp { reply: MessageId },
    /// Sets fields that the server's model made. Nobody wrote what they replace.
    Made { fields: Vec<(FieldName, String)> },
    /// Adds to the account's suggestions for new chats.
    Suggest { texts: Vec<String> },
}

impl Act {
    fn base_mut(&mut self) -> Option<&mut Base> {
        match self {
            Self::Edit { base, .. }
            | Self::Delete { base, .. }
            | Self::Field { base, .. }
            | Self::Draft { base, .. }
            | Self::Data { base, .. } => Some(base),
            _ => None,
        }
    }

    fn base(&self) -> Option<Base> {
        match self {
            Self::Edit { base, .. }
            | Self::Delete { base, .. }
            | Self::Field { base, .. }
            | Self::Draft { base, .. }
            | Self::Data { base, .. } => Some(*base),
            _ => None,
        }
    }

    /// What it leaves, for whatever is based on it.
    fn leaves(&self) -> Base {
        match self {
            Self::Append { note, .. } => Base::of(Some(&note.body)),
            Self::Edit { body, .. } | Self::Field { body, .. } => Base::of(Some(body)),
            Self::Draft { body, .. } | Self::Data { body, .. } => Base::of(body.as_deref()),
            _ => Base::Nothing,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Append { note, .. } => Some(&note.body),
            Self::Edit { body, .. } | Self::Field { body, .. } | Self::Embed { body, .. } => Some(body),
            Self::Draft { body, .. } | Self::Data { body, .. } => body.as_deref(),
            Self::Reply { answer, .. } => Some(&answer.body),
            Self::Create
            | Self::Delete { .. }
            | Self::Leaf { .. }
            | Self::DeleteChat
            | Self::Retry { .. }
            | Self::Gave { .. }
            | Self::GiveUp { .. }
            | Self::Made { .. }
            | Self::Suggest { .. } => None,
        }
    }

    fn what(&self) -> OperationKind {
        match self {
            Self::Create => OperationKind::Create,
            Self::Append { id, .. } => OperationKind::Message(id.clone()),
            Self::Edit { id, .. } => OperationKind::Edit(id.clone()),
            Self::Delete { id, .. } => OperationKind::Delete(id.clone()),
            Self::Field { name, .. } => OperationKind::Field(name.clone()),
            Self::Embed { id, .. } => OperationKind::Embed(id.clone()),
            Self::Leaf { id } => OperationKind::Branch(id.clone()),
            Self::DeleteChat => OperationKind::DeleteChat,
            Self::Draft { .. } => OperationKind::Draft,
            Self::Data { kind, name, .. } => OperationKind::Data(kind.clone(), name.clone()),
            Self::Retry { message, .. } => OperationKind::Retry(message.clone()),
            Self::Reply { id, .. } | Self::Gave { id, .. } => OperationKind::Reply(id.clone()),
            Self::GiveUp { reply } => OperationKind::GiveUp(reply.clone()),
            Self::Made { .. } | Self::Suggest { .. } => OperationKind::Made,
        }
    }
}

/// An operation that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) n: u64,
    pub(crate) chat: Option<ChatId>,
    pub(crate) act: Act,
    /// The head of each attempt, kept before it was sent. Of a draft or a piece of data, a mark of its envelope.
    pub(crate) sent: Vec<Mark>,
}

debug_without_content!(Act);

impl Pending {
    pub(crate) fn is_unsent(&self) -> bool {
        self.sent.is_empty()
    }
}

/// What an operation is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OperationKind {
    /// A new chat.
    Create,
    /// A new message.
    Message(MessageId),
    /// An edit of this message.
    Edit(MessageId),
    /// The deletion of this message.
    Delete(MessageId),
    /// A field of the chat, such as its title.
    Field(FieldName),
    /// Something that a message shows.
    Embed(EmbedId),
    /// Which branch is shown.
    Branch(MessageId),
    /// The deletion of the chat.
    DeleteChat,
    /// What was typed.
    Draft,
    /// A piece of account data: its kind and name.
    Data(FieldName, FieldName),
    /// Another answer to this message is asked for.
    Retry(MessageId),
    /// An answer that was heard.
    Reply(MessageId),
    /// This reply is not waited for any more.
    GiveUp(MessageId),
    /// What was made of an answer: a summary, tags, suggestions.
    Made,
}

/// Why something lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LossReason {
    /// Another device changed the same thing first.
    Changed,
    /// Another device deleted it.
    Deleted,
    /// Another device deleted the chat.
    ChatDeleted,
    /// The server does not take it; the name of the refusal.
    Refused(String),
}

/// An operation that waits to be stored, as a person sees it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingOperation {
    /// Its number in the queue.
    pub number: u64,
    /// The chat; none for account data.
    pub chat: Option<ChatId>,
    /// What it is about.
    pub what: OperationKind,
    /// What was written, if anything was.
    pub text: Option<String>,
    /// Whether it was sent and not answered: it may be stored already.
    pub is_sent: bool,
}

debug_without_content!(WaitingOperation { number, is_sent });

/// A conflicted copy: what this device wrote, and another device was first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConflictedCopy {
    /// Its number.
    pub number: u64,
    /// The chat; none for account data.
    pub chat: Option<ChatId>,
    /// What it is about.
    pub what: OperationKind,
    /// What was written here.
    pub text: Option<String>,
    /// Why it lost.
    pub why: LossReason,
}

debug_without_content!(ConflictedCopy { number, why });

/// The queue and the copies.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Queue {
    next: u64,
    pub(crate) ops: Vec<Pending>,
    pub(crate) copies: Vec<ConflictedCopy>,
}

impl Queue {
    /// What the person wrote, where it changes nothing that waits unsent.
    fn push(&mut self, chat: Option<&ChatId>, act: Act) {
        self.next += 1;
        self.ops.push(Pending { n: self.next, chat: chat.cloned(), act, sent: Vec::new() });
    }

    pub(crate) fn append(&mut self, chat: &ChatId, act: Act) {
        self.push(Some(chat), act);
    }

    /// Suggestions for new chats, which belong to no chat.
    pub(crate) fn suggest(&mut self, texts: Vec<String>) {
        self.push(None, Act::Suggest { texts });
    }

    /// Whether this turn is asked for by something that waits.
    pub(crate) fn asks(&self, turn: &TurnId) -> bool {
        self.ops.iter().any(|op| match &op.act {
            Act::Append { note, .. } => note.ask.as_ref().is_some_and(|wanted| wanted.turn == *turn),
            Act::Retry { wanted, .. } => wanted.turn == *turn,
            _ => false,
        })
    }

    /// Whether the answer of this turn waits to be stored.
    pub(crate) fn answers(&self, turn: &TurnId) -> bool {
        self.ops.iter().any(|op| matches!(&op.act, Act::Reply { answer, .. } if answer.turn == *turn))
    }

    /// An edit: of what waits unsent, in place; else behind it. `seen` is what the chat has now.
    pub(crate) fn edit(&mut self, chat: &ChatId, id: &MessageId, body: String, seen: Base) {
        let there = self.last(chat, |act| is_text_of(act, id));
        if let Some(op) = there {
            if op.is_unsent() {
                match &mut op.act {
                    Act::Append { note, .. } => note.body = body,
                    Act::Edit { body: old, .. } => *old = body,
                    _ => {}
                }
                return;
            }
            let base = Base::Op(op.n);
            return self.push(Some(chat), Act::Edit { id: id.clone(), body, base });
        }
        self.push(Some(chat), Act::Edit { id: id.clone(), body, base: seen });
    }

    /// A deletion: what waits unsent for this message goes; if the message itself does, nothing is sent at all.
    pub(crate) fn delete(&mut self, chat: &ChatId, id: &MessageId, seen: Base) {
        let is_new = |op: &Pending| matches!(&op.act, Act::Append { id: new, .. } if new == id);
        let here = |op: &Pending| op.chat.as_ref() == Some(chat);
        let unsent_new = self.ops.iter().any(|op| here(op) && op.is_unsent() && is_new(op));
        // The words that the first edit was made against are those that the chat has.
        let first = self.ops.iter().find(|op| here(op) && op.is_unsent() && is_text_of(&op.act, id));
        let base = first.and_then(|op| op.act.base());
        self.ops.retain(|op| {
            let about = is_text_of(&op.act, id) || matches!(&op.act, Act::Leaf { id: leaf } if leaf == id);
            !(here(op) && op.is_unsent() && about)
        });
        if unsent_new {
            return;
        }
        let sent = self.last(chat, |act| is_text_of(act, id)).map(|op| Base::Op(op.n));
        let base = sent.or(base).unwrap_or(seen);
        self.push(Some(chat), Act::Delete { id: id.clone(), base });
    }

    pub(crate) fn set_field(&mut self, chat: &ChatId, name: &FieldName, body: String, seen: Base) {
        let there = self.last(chat, |act| matches!(act, Act::Field { name: old, .. } if old == name));
        let base = match there {
            Some(op) if op.is_unsent() => {
                if let Act::Field { body: old, .. } = &mut op.act {
                    *old = body;
                }
                return;
            }
            Some(op) => Base::Op(op.n),
            None => seen,
        };
        self.push(Some(chat), Act::Field { name: name.clone(), body, base });
    }

    pub(crate) fn set_draft(&mut self, chat: &ChatId, body: Option<String>, seen: Base) {
        let there = self.last(chat, |act| matches!(act, Act::Draft { .. }));
        let base = match there {
            Some(op) if op.is_unsent() => {
                if let Act::Draft { body: old, .. } = &mut op.act {
                    *old = body;
                }
                return;
            }
            Some(op) => Base::Op(op.n),
            None => seen,
        };
        self.push(Some(chat), Act::Draft { body, base });
    }

    pub(crate) fn set_data(&mut self, kind: &FieldName, name: &FieldName, body: Option<String>, seen: Base) {
        let same = |act: &Act| matches!(act, Act::Data { kind: k, name: n, .. } if k == kind && n == name);
        let there = self.ops.iter_mut().rev().find(|op| same(&op.act));
        let base = match there {
            Some(op) if op.is_unsent() => {
                if let Act::Data { body: old, .. } = &mut op.act {
                    *old = body;
                }
                return;
            }
            Some(op) => Base::Op(op.n),
            None => seen,
        };
        self.push(None, Act::Data { kind: kind.clone(), name: name.clone(), body, base });
    }

    pub(crate) fn show_branch(&mut self, chat: &ChatId, id: &MessageId) {
        let old = |op: &Pending| {
            op.chat.as_ref() == Some(chat) && op.is_unsent() && matches!(op.act, Act::Leaf { .. })
        };
        self.ops.retain(|op| !old(op));
        self.push(Some(chat), Act::Leaf { id: id.clone() });
    }

    /// Deletes a chat: what waits unsent for it goes. One that was never sent needs no more than that.
    pub(crate) fn delete_chat(&mut self, chat: &ChatId) {
        let here = |op: &Pending| op.chat.as_ref() == Some(chat);
        let never_sent = self.ops.iter().any(|op| here(op) && op.is_unsent() && op.act == Act::Create);
        self.ops.retain(|op| !(here(op) && op.is_unsent()));
        if !never_sent {
            self.push(Some(chat), Act::DeleteChat);
        }
    }

    fn last(&mut self, chat: &ChatId, about: impl Fn(&Act) -> bool) -> Option<&mut Pending> {
        self.ops.iter_mut().rev().find(|op| op.chat.as_ref() == Some(chat) && about(&op.act))
    }

    pub(crate) fn of_chat<'a>(&'a self, chat: &'a ChatId) -> impl Iterator<Item = &'a Pending> {
        self.ops.iter().filter(move |op| op.chat.as_ref() == Some(chat))
    }

    /// These operations are stored: what was based on them is based on what they left.
    pub(crate) fn done(&mut self, numbers: &[u64]) {
        for n in numbers {
            let Some(at) = self.ops.iter().position(|op| op.n == *n) else { continue };
            let left = self.ops.remove(at).act.leaves();
            for op in &mut self.ops {
                if let Some(base) = op.act.base_mut().filter(|base| **base == Base::Op(*n)) {
                    *base = left;
                }
            }
        }
    }

    /// This operation lost: it becomes a copy, with the last words of whatever was based on it.
    pub(crate) fn lost(&mut self, n: u64, why: LossReason) {
        let Some(at) = self.ops.iter().position(|op| op.n == n) else { return };
        let op = self.ops.remove(at);
        let (mut text, mut is_kept) = (op.act.text().map(ToOwned::to_owned), is_worth_a_copy(&op.act));
        let mut lost = vec![n];
        while let Some(n) = lost.pop() {
            let is_based = |op: &Pending| op.act.base() == Some(Base::Op(n));
            let (based, rest): (Vec<_>, Vec<_>) = self.ops.drain(..).partition(is_based);
            self.ops = rest;
            for op in based {
                match &op.act {
                    // Whoever deleted it wants no copy either.
                    Act::Delete { .. } => is_kept = false,
                    act => text = act.text().map(ToOwned::to_owned),
                }
                lost.push(op.n);
            }
        }
        if is_kept {
            self.copies.push(ConflictedCopy { number: op.n, chat: op.chat, what: op.act.what(), text, why });
        }
    }

    /// Keeps words that came too late, and never waited here.
    pub(crate) fn keep_copy(
        &mut self,
        chat: Option<ChatId>,
        what: OperationKind,
        text: Option<String>,
        why: LossReason,
    ) {
        self.next += 1;
        self.copies.push(ConflictedCopy { number: self.next, chat, what, text, why });
    }

    /// Notes which head an attempt would make. Kept before it is sent.
    pub(crate) fn note_sent(&mut self, numbers: &[u64], mark: Mark) {
        for op in self.ops.iter_mut().filter(|op| numbers.contains(&op.n)) {
            op.sent.push(mark);
        }
    }

    /// Heads of a chat that the server shows to be stored: whatever was sent with one of them is done.
    pub(crate) fn confirm(&mut self, chat: &ChatId, stored: &[Mark]) {
        let is_stored = |op: &&Pending| op.sent.iter().any(|mark| stored.contains(mark));
        let done: Vec<u64> = self.of_chat(chat).filter(is_stored).map(|op| op.n).collect();
        self.done(&done);
    }

    pub(crate) fn waiting(&self) -> Vec<WaitingOperation> {
        let waiting = |op: &Pending| WaitingOperation {
            number: op.n,
            chat: op.chat.clone(),
            what: op.act.what(),
            text: op.act.text().map(ToOwned::to_owned),
            is_sent: !op.is_unsent(),
        };
        self.ops.iter().map(waiting).collect()
    }
}

/// Whether an operation says what a message is: it adds or edits it.
fn is_text_of(act: &Act, id: &MessageId) -> bool {
    matches!(act, Act::Append { id: one, .. } | Act::Edit { id: one, .. } if one == id)
}

fn is_worth_a_copy(act: &Act) -> bool {
    match act {
        Act::Create | Act::Leaf { .. } | Act::DeleteChat => false,
        // Nobody typed it.
        Act::Retry { .. } | Act::Gave { .. } | Act::GiveUp { .. } | Act::Made { .. } => false,
        Act::Suggest { .. } => false,
        Act::Draft { body, .. } | Act::Data { body, .. } => body.is_some(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat() -> ChatId {
        ChatId::from_bits(&[1; 16])
    }

    fn message(n: u8) -> MessageId {
        MessageId::from_bits(&[n; 16])
    }

    fn new(n: u8, body: &str) -> Act {
        let note = Note::of(Role::User, body, 0);
        Act::Append { id: message(n), note, to: To::End }
    }

    fn mark(rev: u32) -> Mark {
        Mark { rev, envelope: Digest::of(&rev.to_be_bytes()) }
    }

    #[test]
    fn an_edit_of_what_waits_unsent_is_made_in_place() {
        let mut queue = Queue::default();
        queue.append(&chat(), new(1, "one"));
        queue.edit(&chat(), &message(1), "two".to_owned(), Base::Nothing);
        assert_eq!(queue.ops.len(), 1);
        assert_eq!(queue.waiting()[0].text.as_deref(), Some("two"));
        queue.delete(&chat(), &message(1), Base::Nothing);
        assert!(queue.ops.is_empty(), "a message that nobody else saw needs no deletion");
    }

    #[test]
    fn an_edit_of_what_was_sent_shares_its_fate() {
        let mut queue = Queue::default();
        queue.append(&chat(), new(1, "one"));
        queue.note_sent(&[1], mark(1));
        queue.edit(&chat(), &message(1), "two".to_owned(), Base::Nothing);
        assert_eq!(queue.ops[1].act.base(), Some(Base::Op(1)));
        // Stored: the edit is made against what was stored.
        let mut stored = queue.clone();
        stored.confirm(&chat(), &[mark(1)]);
        assert_eq!(stored.ops[0].act.base(), Some(Base::Words(words("one"))));
        // Lost: one copy, with the last words.
        queue.lost(1, LossReason::ChatDeleted);
        assert!(queue.ops.is_empty());
        assert_eq!(queue.copies.len(), 1);
        assert_eq!(queue.copies[0].text.as_deref(), Some("two"));
    }

    #[test]
    fn a_second_edit_does_not_win_by_a_revision_that_another_device_made() {
        let mut queue = Queue::default();
        queue.edit(&chat(), &message(1), "mine 1".to_owned(), Base::of(Some("old")));
        queue.note_sent(&[1], mark(7));
        queue.edit(&chat(), &message(1), "mine 2".to_owned(), Base::of(Some("old")));
        queue.lost(1, LossReason::Changed);
        assert!(queue.ops.is_empty());
        assert_eq!(queue.copies[0].text.as_deref(), Some("mine 2"));
    }

    #[test]
    fn a_deletion_of_an_edited_message_is_made_against_what_the_chat_has() {
        let mut queue = Queue::default();
        queue.edit(&chat(), &message(1), "new".to_owned(), Base::of(Some("old")));
        queue.delete(&chat(), &message(1), Base::of(Some("old")));
        assert_eq!(queue.ops.len(), 1);
        assert_eq!(queue.ops[0].act.base(), Some(Base::of(Some("old"))));
        let mut queue = Queue::default();
        queue.edit(&chat(), &message(1), "new".to_owned(), Base::of(Some("old")));
        queue.note_sent(&[1], mark(3));
        queue.delete(&chat(), &message(1), Base::of(Some("old")));
        assert_eq!(queue.ops[1].act.base(), Some(Base::Op(1)));
        queue.lost(1, LossReason::Changed);
        assert!(queue.ops.is_empty() && queue.copies.is_empty(), "what was to be deleted leaves no copy");
    }

    #[test]
    fn a_chat_that_was_never_sent_is_deleted_without_a_word() {
        let mut queue = Queue::default();
        queue.append(&chat(), Act::Create);
        queue.append(&chat(), new(1, "one"));
        queue.delete_chat(&chat());
        assert!(queue.ops.is_empty());
        queue.append(&chat(), Act::Create);
        queue.note_sent(&[3], mark(1));
        queue.append(&chat(), new(1, "one"));
        queue.delete_chat(&chat());
        let what: Vec<OperationKind> = queue.waiting().into_iter().map(|op| op.what).collect();
        assert_eq!(what, [OperationKind::Create, OperationKind::DeleteChat]);
    }
}
