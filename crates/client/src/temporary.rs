//! Temporary chats: only in the memory of this process. Nothing of them is sealed, stored or kept, here or on the server.
//!
//! ```text
//! ask ─▶ the words, to be kept for this turn only ─▶ request_chat_history: each time, since the server keeps nothing ─▶ words ─▶ memory
//! ```
//!
//! A temporary chat is a [`Room`] like any other, with a key that nobody else has, so that the rules for giving words hold for it unchanged: for
//! an open question of this device, on the socket that it went over, twice at most. Nothing of other chats is given in it. Easy to get wrong:
//! something of it in the queue, among the questions or the acknowledgements, which are kept in files. Nothing here goes through them.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{
    ChatId, Digest, Head, Item, ItemId, Mark, Message, MessageId, Pending, RingOf, Role, TurnId,
};
use confidant_chat_protocol::limits::MAX_QUERY;
use confidant_chat_protocol::{
    AiResponseCompleted, ChatMessageAdded, ClientEvent, Finish, Keep, List, Piece, ServerEvent, Text,
};
use confidant_seal::{Key, Sealed};

use crate::asks::{AskOptions, GivenText, claim, noted, texts};
use crate::beside;
use crate::device::Device;
use crate::error::Error;
use crate::queue::Answer;
use crate::room::{Room, Slot};
use crate::state::Keys;
use crate::turns::{Asked, Turn, TurnEvent, TurnUpdate};

impl Device {
    /// Begins a temporary chat. It is not among [`Device::chats`], and ends with this process or by [`Device::end_temporary`].
    pub fn new_temporary(&mut self) -> Result<ChatId, Error> {
        let (chat, at) = (ChatId::random(), self.now());
        let mut keys = Keys::none();
        keys.push(Key::random(), self.generation());
        let ring = keys.ring(&self.ak(), &self.state.account, RingOf::Chat(&chat))?;
        let head = Head {
            v: 1,
            key: 1,
            kid: ring.newest().key().kid(),
            count: 0,
            live: Digest::ZERO,
            chain: Digest::ZERO,
            leaf: None,
            pending: Vec::new(),
            at,
            device: self.state.device.clone(),
        };
        let room = Room {
            id: chat.clone(),
            keys,
            ring,
            head,
            mark: Mark { rev: 0, envelope: Digest::ZERO },
            sealed_head: Sealed::from_bytes(Vec::new()),
            items: BTreeMap::new(),
            gone: BTreeSet::new(),
            title_v: 0,
            draft_v: 0,
            draft: None,
            created_at: at,
            updated_at: at,
        };
        self.temporary.insert(chat.clone(), room);
        Ok(chat)
    }

    /// Whether a chat is a temporary one of this process.
    #[must_use]
    pub fn is_temporary(&self, chat: &ChatId) -> bool {
        self.temporary.contains_key(chat)
    }

    /// Ends a temporary chat, and what is being answered in it. It does not come back.
    pub async fn end_temporary(&mut self, chat: &ChatId) {
        let Some(room) = self.temporary.remove(chat) else { return };
        for pending in room.head.pending {
            // Where the server cannot be told, the answer ends there by itself: nobody takes it.
            let _untold = self.cancel(chat, &pending.turn).await;
        }
    }

    /// Asks in a temporary chat: behind the last message, or in the place of another one. The server is needed now: nothing waits in a queue.
    pub async fn ask_temporary(
        &mut self,
        chat: &ChatId,
        body: &str,
        instead: Option<&MessageId>,
        options: &AskOptions,
    ) -> Result<Asked, Error> {
        let options = self.temporary_options(chat, options)?;
        if body.len() > MAX_QUERY {
            return Err(Error::TooLarge);
        }
        let mut room = self.temporary.get(chat).ok_or(Error::NoSuchChat)?.clone();
        let parent = match instead {
            None => room.head.leaf.clone(),
            Some(message) => room.message(message).ok_or(Error::NoSuchMessage)?.parent.clone(),
        };
        let said = Message {
            v: 1,
            role: Role::User,
            parent,
            created_at: self.now(),
            body: body.to_owned(),
            model: None,
            reason: None,
            refs: Vec::new(),
            proof: None,
            shared: noted(&options)?,
        };
        put(&mut room, MessageId::random(), said);
        self.begin_temporary(room, &options).await
    }

    /// Asks for another answer to a message of the person in a temporary chat, and gives nothing besides.
    pub async fn retry_temporary(
        &mut self,
        chat: &ChatId,
        message: &MessageId,
        options: &AskOptions,
    ) -> Result<Asked, Error> {
        // What is given is noted inside the message, and this one is written.
        let options = AskOptions { given: Vec::new(), ..self.temporary_options(chat, options)? };
        let mut room = self.temporary.get(chat).ok_or(Error::NoSuchChat)?.clone();
        if room.message(message).is_none_or(|asked| asked.role != Role::User) {
            return Err(Error::NoSuchMessage);
        }
        room.head.pending.retain(|one| one.parent != *message);
        room.head.leaf = Some(message.clone());
        self.begin_temporary(room, &options).await
    }

    /// What goes with a question in a temporary chat: no names of what is saved for the others.
    fn temporary_options(&self, chat: &ChatId, options: &AskOptions) -> Result<AskOptions, Error> {
        let options = AskOptions { available: Vec::new(), ..self.without_off(options) };
        self.check_options(chat, &options)?;
        Ok(options)
    }

    /// Asks for an answer to the last message. If the server does not take the question, the chat is as it was.
    async fn begin_temporary(&mut self, mut room: Room, options: &AskOptions) -> Result<Asked, Error> {
        let chat = room.id.clone();
        let message = room.head.leaf.clone().ok_or(Error::NoSuchMessage)?;
        self.connect().await?;
        let (turn, reply) = (TurnId::random(), MessageId::random());
        let (claim, branch) = claim(&room, &message, &reply)?;
        let words = room.message(&message).ok_or(Error::NoSuchMessage)?.body.clone();
        let mut off: BTreeSet<String> = self.switched_off().into_iter().collect();
        off.extend(options.off.iter().cloned());
        // Nobody would keep them.
        off.insert(SUGGESTIONS.to_owned());
        let piece = |given: &GivenText| {
            let (name, text) = (Text::new(given.name.clone())?, Text::new(given.text.clone())?);
            Ok::<_, Error>(Piece { what: given.what, name, text })
        };
        let given = options.given.iter().map(piece).collect::<Result<Vec<_>, _>>()?;
        let focus = options.focus.as_ref().map(|focus| Text::new(focus.clone())).transpose()?;
        let added = ChatMessageAdded {
            chat: chat.clone(),
            turn: turn.clone(),
            message: message.clone(),
            reply: reply.clone(),
            text: Text::new(words)?,
            count: claim.count,
            before: claim.before,
            after: claim.after,
            keep: Keep::Turn,
            history: false,
            titled: true,
            focus,
            off: texts(&off.into_iter().collect::<Vec<_>>())?,
            available: List::new(Vec::new())?,
            given: List::new(given)?,
            asks: List::new(Vec::new())?,
            remembers: None,
        };
        let pending = Pending { turn: turn.clone(), parent: message.clone(), reply: reply.clone() };
        room.head.pending.push(pending.clone());
        let before = self.temporary.insert(chat.clone(), room);
        let heard = self.listener(&chat, &pending, claim, branch, Some(self.socket_number));
        self.turns.add(heard);
        match self.request_one(ClientEvent::ChatMessageAdded(added)).await {
            Ok((_, ServerEvent::AiTaskInitiated(_))) => self.begun(&turn, 0),
            Ok((_, ServerEvent::MessageQueued(queued))) => self.begun(&turn, queued.ahead),
            other => {
                self.temporary.extend(before.map(|room| (chat, room)));
                // It is no open question: whoever asks for its history gets nothing.
                self.turns.forget(&turn);
                return Err(other.err().unwrap_or(Error::Unexpected));
            }
        }
        Ok(Asked { turn, message, reply })
    }

    /// Takes in an answer, and tells the server so, which may forget it. Of a chat that has ended nothing is kept.
    pub(crate) async fn take_temporary(
        &mut self,
        turn: &Turn,
        answer: Answer,
        finish: Finish,
    ) -> Option<TurnEvent> {
        let room = self.temporary.get_mut(&turn.chat);
        let is_awaited = room.is_some_and(|room| keep(room, &turn.reply, answer));
        if is_awaited {
            // It is told all the same if whoever listens gives up half-way.
            self.turns.told.push_back(turn.tell(TurnUpdate::Ended(finish)));
        }
        let stored = AiResponseCompleted { chat: turn.chat.clone(), turn: turn.turn.clone() };
        // Whether it heard that is the server's own affair: it keeps the words of such a turn in memory only.
        let _unheard = self.request_one(ClientEvent::AiResponseCompleted(stored)).await;
        if is_awaited { self.turns.told.pop_back() } else { None }
    }

    /// A chat of this device, stored or temporary.
    pub(crate) fn room(&self, chat: &ChatId) -> Option<&Room> {
        self.rooms.get(chat).or_else(|| self.temporary.get(chat))
    }

    /// Nothing of a temporary chat goes into files.
    pub(crate) fn is_kept(&self, chat: &ChatId) -> Result<(), Error> {
        if self.is_temporary(chat) { Err(Error::Temporary) } else { Ok(()) }
    }
}

/// Keeps an answer in memory, with what stands beside it, if the chat waits for it; whether it does.
fn keep(room: &mut Room, reply: &MessageId, answer: Answer) -> bool {
    let is_it = |one: &Pending| one.reply == *reply && one.turn == answer.turn && one.parent == answer.parent;
    let Some(at) = room.head.pending.iter().position(is_it) else { return false };
    room.head.pending.remove(at);
    for (id, message) in beside::messages(room, &answer.parent, reply, &answer) {
        insert(room, id, message);
    }
    let Answer { parent, body, model, reason, proof, created_at, .. } = answer;
    let (refs, shared, parent) = (Vec::new(), Vec::new(), Some(parent));
    let (v, role) = (1, Role::Assistant);
    let said = Message { v, role, parent, created_at, body, model, reason, refs, proof, shared };
    put(room, reply.clone(), said);
    true
}

/// Adds a message, which is shown from now on.
fn put(room: &mut Room, id: MessageId, message: Message) {
    room.updated_at = message.created_at;
    room.head.leaf = Some(id.clone());
    insert(room, id, message);
}

fn insert(room: &mut Room, id: MessageId, message: Message) {
    let slot = Slot { hash: Digest::ZERO, rev: 1, sealed: None, item: Some(Item::Message(message)) };
    room.items.insert(ItemId::Message(id), slot);
}

/// What switches suggestions, tags and summaries off.
const SUGGESTIONS: &str = "suggestions";
