//! Chats as a person sees them, and what a person does to them. Nothing here asks the server.
//!
//! ```text
//! new_chat, say, edit, … ─▶ queue (kept) ─▶ Device::flush
//! chat(id) ◀─ what was verified, with what waits laid over it
//! ```
//!
//! Easy to get wrong: the order of messages. It comes from inside the seals: a branch runs from its leaf up the parents.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{ChatId, EmbedId, FieldName, ItemId, Message, MessageId, Refused, Role};
use confidant_chat_protocol::limits::{MAX_DRAFT, MAX_EMBED, MAX_MESSAGE, MAX_RECORD};
use confidant_display::debug_without_content;
use confidant_seal::sealed_len;

use crate::beside::is_beside;
use crate::device::Device;
use crate::error::Error;
use crate::plan::{TITLE, text};
use crate::queue::{Act, Answer, Base, ConflictedCopy, Note, OperationKind, To, WaitingOperation};
use crate::room::Room;

/// A message as a person sees it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageView {
    /// Its id.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The message that it answers.
    pub parent: Option<MessageId>,
    /// The words.
    pub body: String,
    /// What it shows.
    pub refs: Vec<EmbedId>,
    /// Which model spoke.
    pub model: Option<String>,
    /// Why that model was chosen, in a sentence of the server's.
    pub reason: Option<String>,
    /// When, in milliseconds since 1970.
    pub created_at: u64,
    /// Its revision; 0 if it was never stored.
    pub rev: u32,
    /// Whether a change of it waits in the queue.
    pub is_waiting: bool,
    /// Whether the server proved that a tool or a summary of its own said it: then it stands beside the branch.
    pub is_beside: bool,
}

debug_without_content!(MessageView { role, rev, is_waiting });

/// A chat as a person sees it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatView {
    /// Its id.
    pub id: ChatId,
    /// Its fields, `title` among them.
    pub fields: BTreeMap<String, String>,
    /// The branch that is shown, its first message first.
    pub branch: Vec<MessageView>,
    /// Every message, by id.
    pub messages: BTreeMap<MessageId, MessageView>,
    /// What was typed and not sent.
    pub draft: Option<String>,
    /// When it was last written to, in milliseconds since 1970.
    pub updated_at: u64,
    /// The revision of its head; 0 if it was never stored.
    pub rev: u32,
}

debug_without_content!(ChatView { messages: messages.len(), rev });

impl ChatView {
    /// Its title.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.fields.get(TITLE).map(String::as_str)
    }

    /// What tools said for an answer, in order.
    #[must_use]
    pub fn tools(&self, answer: &MessageId) -> Vec<&MessageView> {
        let (mut tools, mut at) = (Vec::new(), Some(answer));
        while let Some(id) = at {
            let mut beside = self.beside(id, Role::Tool);
            let tool = beside.next();
            tools.extend(tool);
            at = tool.map(|tool| &tool.id);
        }
        tools
    }

    /// The newest summary of the branch that is shown, and how many of its messages it stands for.
    #[must_use]
    pub fn summed_up(&self) -> Option<(usize, &MessageView)> {
        let summaries: Vec<&MessageView> =
            self.messages.values().filter(|one| one.role == Role::Summary && one.is_beside).collect();
        let of = |last: &MessageView| {
            let all = summaries.iter().filter(|one| one.parent.as_ref() == Some(&last.id));
            all.max_by_key(|one| (one.created_at, &one.id)).copied()
        };
        if summaries.is_empty() {
            return None;
        }
        (0..self.branch.len()).rev().find_map(|at| of(&self.branch[at]).map(|summary| (at + 1, summary)))
    }

    fn beside(&self, of: &MessageId, role: Role) -> impl Iterator<Item = &MessageView> {
        let of = of.clone();
        let is_it =
            move |one: &&MessageView| one.role == role && one.is_beside && one.parent.as_ref() == Some(&of);
        self.messages.values().filter(is_it)
    }
}

impl Device {
    /// Every chat on this device, the one written to last first.
    #[must_use]
    pub fn chats(&self) -> Vec<ChatId> {
        let mut chats: Vec<(u64, ChatId)> =
            self.rooms.values().map(|room| (room.updated_at, room.id.clone())).collect();
        for op in self.state.queue.ops.iter().filter(|op| op.act == Act::Create) {
            chats.extend(
                op.chat.clone().filter(|chat| !self.rooms.contains_key(chat)).map(|chat| (u64::MAX, chat)),
            );
        }
        let deleted: BTreeSet<&ChatId> = self
            .state
            .queue
            .ops
            .iter()
            .filter(|op| op.act == Act::DeleteChat)
            .filter_map(|op| op.chat.as_ref())
            .collect();
        chats.retain(|(_, chat)| !deleted.contains(chat));
        chats.sort_unstable_by(|one, two| two.cmp(one));
        chats.into_iter().map(|(_, chat)| chat).collect()
    }

    /// Every chat of the account as its sealed list has it, on this device or not.
    #[must_use]
    pub fn listed(&self) -> Vec<ChatId> {
        self.account.as_ref().map(|account| account.floors().keys().cloned().collect()).unwrap_or_default()
    }

    /// A chat, with what waits laid over what was verified; or a temporary one.
    pub fn chat(&self, chat: &ChatId) -> Result<ChatView, Error> {
        if let Some(room) = self.temporary.get(chat) {
            return Ok(verified(room));
        }
        let room = self.rooms.get(chat);
        let is_new = self.state.queue.of_chat(chat).any(|op| op.act == Act::Create);
        if room.is_none() && !is_new {
            return Err(Error::NoSuchChat);
        }
        let mut view = room.map_or_else(|| empty(chat), verified);
        let mut leaf = room.and_then(|room| room.head.leaf.clone());
        for op in self.state.queue.of_chat(chat) {
            lay_over(&mut view, &mut leaf, &op.act);
        }
        view.branch = branch(&view.messages, leaf);
        Ok(view)
    }

    /// A new chat. It is stored by the next [`Device::flush`].
    pub fn new_chat(&mut self, title: Option<&str>) -> Result<ChatId, Error> {
        sized(title.map_or(0, |title| text(title).len()), MAX_RECORD)?;
        let chat = ChatId::random();
        self.state.queue.append(&chat, Act::Create);
        if let Some(title) = title {
            self.state.queue.set_field(&chat, &field(TITLE)?, title.to_owned(), Base::Nothing);
        }
        self.save()?;
        Ok(chat)
    }

    /// Sets the title.
    pub fn rename(&mut self, chat: &ChatId, title: &str) -> Result<(), Error> {
        self.set_field(chat, TITLE, title)
    }

    /// Sets a field of a chat, such as `title`, `icon` or `suggestions`.
    pub fn set_field(&mut self, chat: &ChatId, name: &str, body: &str) -> Result<(), Error> {
        self.there(chat)?;
        sized(text(body).len(), MAX_RECORD)?;
        let name = field(name)?;
        let seen = Base::of(self.rooms.get(chat).and_then(|room| room.field(&name)));
        self.state.queue.set_field(chat, &name, body.to_owned(), seen);
        self.save()
    }

    /// Writes a message of the person behind the last one.
    pub fn say(&mut self, chat: &ChatId, body: &str) -> Result<MessageId, Error> {
        self.write(chat, Role::User, body, &[], None)
    }

    /// Writes several messages of the person, one behind the other, and keeps them at once: for imports.
    pub fn say_all(&mut self, chat: &ChatId, bodies: &[&str]) -> Result<Vec<MessageId>, Error> {
        self.there(chat)?;
        for body in bodies {
            sized(text(body).len() + 512, MAX_MESSAGE)?;
        }
        let mut ids = Vec::new();
        for body in bodies {
            let (id, created_at) = (MessageId::random(), self.now());
            let note = Note::of(Role::User, body, created_at);
            self.state.queue.append(chat, Act::Append { id: id.clone(), note, to: To::End });
            ids.push(id);
        }
        self.save()?;
        Ok(ids)
    }

    /// Writes a message behind the last one: who speaks, the words, what it shows, and which model spoke.
    pub fn write(
        &mut self,
        chat: &ChatId,
        role: Role,
        body: &str,
        refs: &[EmbedId],
        model: Option<&str>,
    ) -> Result<MessageId, Error> {
        self.put_message(chat, role, body, refs, model, To::End)
    }

    /// Begins another branch: a message of the person behind `parent`, or a new first one.
    pub fn branch_off(
        &mut self,
        chat: &ChatId,
        parent: Option<&MessageId>,
        body: &str,
    ) -> Result<MessageId, Error> {
        let view = self.chat(chat)?;
        if parent.is_some_and(|parent| !view.messages.contains_key(parent)) {
            return Err(Error::NoSuchMessage);
        }
        let to = To::After(path(&view, parent));
        self.put_message(chat, Role::User, body, &[], None, to)
    }

    fn put_message(
        &mut self,
        chat: &ChatId,
        role: Role,
        body: &str,
        refs: &[EmbedId],
        model: Option<&str>,
        to: To,
    ) -> Result<MessageId, Error> {
        self.there(chat)?;
        let note = Note {
            model: model.map(ToOwned::to_owned),
            refs: refs.to_vec(),
            ..Note::of(role, body, self.now())
        };
        let id = self.put_note(chat, note, to)?;
        self.save()?;
        Ok(id)
    }

    /// A message for the queue, which is not kept yet.
    pub(crate) fn put_note(&mut self, chat: &ChatId, note: Note, to: To) -> Result<MessageId, Error> {
        sized(text(&note.body).len() + note.refs.len() * 40 + 512, MAX_MESSAGE)?;
        let id = MessageId::random();
        self.state.queue.append(chat, Act::Append { id: id.clone(), note, to });
        Ok(id)
    }

    /// Shows the branch that ends in this message, on every device.
    pub fn show_branch(&mut self, chat: &ChatId, leaf: &MessageId) -> Result<(), Error> {
        self.is_kept(chat)?;
        // What stands beside a branch ends none.
        if self.chat(chat)?.messages.get(leaf).is_none_or(|message| message.is_beside) {
            return Err(Error::NoSuchMessage);
        }
        self.state.queue.show_branch(chat, leaf);
        self.save()
    }

    /// Changes the words of a message. If another device changes it first, these words become a copy.
    pub fn edit(&mut self, chat: &ChatId, message: &MessageId, body: &str) -> Result<(), Error> {
        self.is_kept(chat)?;
        if !self.chat(chat)?.messages.contains_key(message) {
            return Err(Error::NoSuchMessage);
        }
        sized(text(body).len() + 4096, MAX_MESSAGE)?;
        let seen = self.seen_words(chat, message);
        self.state.queue.edit(chat, message, body.to_owned(), seen);
        self.save()
    }

    /// Deletes a message; its answers move up.
    pub fn delete(&mut self, chat: &ChatId, message: &MessageId) -> Result<(), Error> {
        self.is_kept(chat)?;
        if !self.chat(chat)?.messages.contains_key(message) {
            return Err(Error::NoSuchMessage);
        }
        let seen = self.seen_words(chat, message);
        self.state.queue.delete(chat, message, seen);
        self.save()
    }

    fn seen_words(&self, chat: &ChatId, message: &MessageId) -> Base {
        let there = self.rooms.get(chat).and_then(|room| room.message(message));
        Base::of(there.map(|message| message.body.as_str()))
    }

    /// Adds something that messages can show: give its id to [`Device::write`].
    pub fn add_embed(&mut self, chat: &ChatId, body: &str) -> Result<EmbedId, Error> {
        self.there(chat)?;
        sized(text(body).len() + 128, MAX_EMBED)?;
        let id = EmbedId::random();
        self.state.queue.append(chat, Act::Embed { id: id.clone(), body: body.to_owned() });
        self.save()?;
        Ok(id)
    }

    /// Deletes a chat with everything in it.
    pub fn delete_chat(&mut self, chat: &ChatId) -> Result<(), Error> {
        self.there(chat)?;
        self.state.queue.delete_chat(chat);
        self.save()
    }

    /// Keeps what was typed into a chat; `None` when it was sent or thrown away. A flush sends at most one every five seconds; one that comes
    /// sooner waits ([`Device::draft_wait`]).
    pub fn set_draft(&mut self, chat: &ChatId, body: Option<&str>) -> Result<(), Error> {
        self.there(chat)?;
        sized(body.map_or(0, |body| text(body).len() + 1024 + 128), MAX_DRAFT)?;
        let there = self.rooms.get(chat).and_then(|room| room.draft.as_ref());
        let seen = Base::of(there.map(|draft| draft.body.as_str()));
        self.state.queue.set_draft(chat, body.map(ToOwned::to_owned), seen);
        self.save()
    }

    /// A piece of account data: settings, suggestions for new chats.
    pub fn data(&self, kind: &str, name: &str) -> Result<Option<String>, Error> {
        let (kind, name) = (field(kind)?, field(name)?);
        let waits = self.state.queue.ops.iter().rev().find_map(|op| match &op.act {
            Act::Data { kind: k, name: n, body, .. } if *k == kind && *n == name => Some(body.clone()),
            _ => None,
        });
        let there = || self.state.piece(&kind, &name).and_then(|piece| piece.body.clone());
        Ok(waits.unwrap_or_else(there))
    }

    /// The names of all pieces of account data of a kind, of those that wait or were removed as well.
    pub(crate) fn names_of(&self, kind: &str) -> Vec<String> {
        let there = self.state.data.iter().map(|piece| (&piece.kind, &piece.name));
        let waits = self.state.queue.ops.iter().filter_map(|op| match &op.act {
            Act::Data { kind, name, .. } => Some((kind, name)),
            _ => None,
        });
        let named = there.chain(waits).filter(|(of, _)| of.as_str() == kind);
        let names: BTreeSet<&str> = named.map(|(_, name)| name.as_str()).collect();
        names.into_iter().map(ToOwned::to_owned).collect()
    }

    /// Stores a piece of account data; `None` removes it.
    pub fn set_data(&mut self, kind: &str, name: &str, body: Option<&str>) -> Result<(), Error> {
        let (kind, name) = (field(kind)?, field(name)?);
        sized(body.map_or(0, |body| text(body).len() + 128), MAX_RECORD)?;
        let there = self.state.piece(&kind, &name).and_then(|piece| piece.body.as_deref());
        let seen = Base::of(there);
        self.state.queue.set_data(&kind, &name, body.map(ToOwned::to_owned), seen);
        self.save()
    }

    /// What waits to be stored, in the order in which it is sent.
    #[must_use]
    pub fn waiting(&self) -> Vec<WaitingOperation> {
        self.state.queue.waiting()
    }

    /// What lost against another device, for a person to look at.
    #[must_use]
    pub fn copies(&self) -> &[ConflictedCopy] {
        &self.state.queue.copies
    }

    /// Writes a copy again, over what is there now; a message that is gone becomes a new one. The copy goes.
    pub fn use_copy(&mut self, number: u64) -> Result<(), Error> {
        let copy = self.state.queue.copies.iter().find(|copy| copy.number == number).cloned();
        let ConflictedCopy { chat, what, text, .. } = copy.ok_or(Error::NoSuchMessage)?;
        let text = text.unwrap_or_default();
        match (chat, what) {
            (Some(chat), OperationKind::Edit(id)) if self.chat(&chat)?.messages.contains_key(&id) => {
                self.edit(&chat, &id, &text)?;
            }
            (Some(chat), OperationKind::Edit(_) | OperationKind::Message(_)) => drop(self.say(&chat, &text)?),
            (Some(chat), OperationKind::Delete(id)) if self.chat(&chat)?.messages.contains_key(&id) => {
                self.delete(&chat, &id)?;
            }
            (Some(chat), OperationKind::Field(name)) => self.set_field(&chat, name.as_str(), &text)?,
            (Some(chat), OperationKind::Draft) => self.set_draft(&chat, Some(&text))?,
            (Some(chat), OperationKind::Embed(_)) => drop(self.add_embed(&chat, &text)?),
            (None, OperationKind::Data(kind, name)) => {
                self.set_data(kind.as_str(), name.as_str(), Some(&text))?
            }
            _ => {}
        }
        self.discard_copy(number)
    }

    /// Throws a copy away.
    pub fn discard_copy(&mut self, number: u64) -> Result<(), Error> {
        self.state.queue.copies.retain(|copy| copy.number != number);
        self.save()
    }

    pub(crate) fn there(&self, chat: &ChatId) -> Result<(), Error> {
        self.is_kept(chat)?;
        let mut ops = self.state.queue.of_chat(chat);
        let is_new = ops.any(|op| op.act == Act::Create);
        let is_deleted = self.state.queue.of_chat(chat).any(|op| op.act == Act::DeleteChat);
        if (self.rooms.contains_key(chat) || is_new) && !is_deleted { Ok(()) } else { Err(Error::NoSuchChat) }
    }
}

fn empty(chat: &ChatId) -> ChatView {
    ChatView {
        id: chat.clone(),
        fields: BTreeMap::new(),
        branch: Vec::new(),
        messages: BTreeMap::new(),
        draft: None,
        updated_at: 0,
        rev: 0,
    }
}

/// A chat as it was verified.
pub(crate) fn verified(room: &Room) -> ChatView {
    let mut view = empty(&room.id);
    for (id, rev, message) in room.messages() {
        view.messages.insert(id.clone(), shown(id, rev, message));
    }
    for item in room.items.keys() {
        if let ItemId::Field(name) = item {
            let body = room.field(name).unwrap_or_default().to_owned();
            view.fields.insert(name.as_str().to_owned(), body);
        }
    }
    view.draft = room.draft.as_ref().map(|draft| draft.body.clone());
    (view.updated_at, view.rev) = (room.updated_at, room.mark.rev);
    view.branch = branch(&view.messages, room.head.leaf.clone());
    view
}

fn shown(id: &MessageId, rev: u32, message: &Message) -> MessageView {
    MessageView {
        id: id.clone(),
        role: message.role,
        parent: message.parent.clone(),
        body: message.body.clone(),
        refs: message.refs.clone(),
        model: message.model.clone(),
        reason: message.reason.clone(),
        created_at: message.created_at,
        rev,
        is_waiting: false,
        is_beside: is_beside(message),
    }
}

fn lay_over(view: &mut ChatView, leaf: &mut Option<MessageId>, act: &Act) {
    match act {
        Act::Append { id, note, to } => {
            if view.messages.contains_key(id) {
                return;
            }
            let parent = match to {
                To::End => leaf.clone(),
                To::After(path) if path.is_empty() => None,
                To::After(path) => {
                    path.iter().find(|id| view.messages.contains_key(id)).cloned().or_else(|| leaf.clone())
                }
            };
            let message = MessageView {
                id: id.clone(),
                role: note.role,
                parent,
                body: note.body.clone(),
                refs: note.refs.clone(),
                model: note.model.clone(),
                reason: None,
                created_at: note.created_at,
                rev: 0,
                is_waiting: true,
                is_beside: false,
            };
            view.messages.insert(id.clone(), message);
            *leaf = Some(id.clone());
        }
        Act::Edit { id, body, .. } => {
            if let Some(message) = view.messages.get_mut(id) {
                (message.body, message.is_waiting) = (body.clone(), true);
            }
        }
        Act::Delete { id, .. } => {
            let Some(gone) = view.messages.remove(id) else { return };
            for message in view.messages.values_mut().filter(|message| message.parent.as_ref() == Some(id)) {
                message.parent.clone_from(&gone.parent);
            }
            if leaf.as_ref() == Some(id) {
                *leaf = gone.parent;
            }
        }
        Act::Field { name, body, .. } => drop(view.fields.insert(name.as_str().to_owned(), body.clone())),
        Act::Reply { id, answer } => lay_answer(view, leaf, id, answer),
        Act::Made { fields } => {
            view.fields.extend(fields.iter().map(|(name, body)| (name.as_str().to_owned(), body.clone())));
        }
        Act::Leaf { id } if view.messages.contains_key(id) => *leaf = Some(id.clone()),
        Act::Retry { message, .. } if view.messages.contains_key(message) => *leaf = Some(message.clone()),
        Act::Draft { body, .. } => view.draft.clone_from(body),
        _ => {}
    }
}

/// An answer that is not stored yet.
fn lay_answer(view: &mut ChatView, leaf: &mut Option<MessageId>, id: &MessageId, answer: &Answer) {
    if view.messages.contains_key(id) || !view.messages.contains_key(&answer.parent) {
        return;
    }
    let message = MessageView {
        id: id.clone(),
        role: Role::Assistant,
        parent: Some(answer.parent.clone()),
        body: answer.body.clone(),
        refs: Vec::new(),
        model: answer.model.clone(),
        reason: answer.reason.clone(),
        created_at: answer.created_at,
        rev: 0,
        is_waiting: true,
        is_beside: false,
    };
    view.messages.insert(id.clone(), message);
    if leaf.as_ref() == Some(&answer.parent) {
        *leaf = Some(id.clone());
    }
    if view.title().is_none() {
        view.fields.extend(answer.fields.iter().map(|(name, body)| (name.as_str().to_owned(), body.clone())));
    }
}

/// A message and those before it, the last first: where a branch begins, in case the message goes meanwhile.
pub(crate) fn path(view: &ChatView, from: Option<&MessageId>) -> Vec<MessageId> {
    let messages = branch(&view.messages, from.cloned()).into_iter();
    messages.rev().map(|message| message.id).take(PATH).collect()
}

/// The messages from the first to `leaf`.
fn branch(messages: &BTreeMap<MessageId, MessageView>, leaf: Option<MessageId>) -> Vec<MessageView> {
    let (mut path, mut met, mut at) = (Vec::new(), BTreeSet::new(), leaf);
    while let Some(message) = at.and_then(|id| messages.get(&id)) {
        if !met.insert(message.id.clone()) {
            break;
        }
        at = message.parent.clone();
        path.push(message.clone());
    }
    path.reverse();
    path
}

pub(crate) fn field(name: &str) -> Result<FieldName, Refused> {
    FieldName::parse(name)
}

pub(crate) fn sized(bytes: usize, most: usize) -> Result<(), Error> {
    if sealed_len(bytes) <= most { Ok(()) } else { Err(Error::TooLarge) }
}

/// Ancestors that a message on another branch remembers, in case its parent goes.
const PATH: usize = 32;
