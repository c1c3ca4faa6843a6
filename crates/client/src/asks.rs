//! Asking for answers: the question as a write that waits for its reply, then its words, for this turn only.
//!
//! ```text
//! ask ─▶ queue: message, head with the pending reply ─▶ stored ─▶ chat_message_added: words and claim, over the verified branch
//!                                                                      │ request_chat_history: this turn, this branch, twice at most
//!                                                                      ▼
//! retry, give_up ─▶ queue                                         [answers]: what comes of it
//! ```
//!
//! A question of which nothing was heard is asked again on the next socket: it is the same turn, and only who asks on a socket may give
//! its history there.
//!
//! Words leave the device in clear in these two events and in what [`data_requests`](crate::data_requests) gives by consent, and only for a turn that this device began on this socket and that has
//! no answer yet. Everything else that a server asks for is `unasked`, and nothing leaves. Easy to get wrong: the branch. It is the
//! one that was verified and stored, from the question up its parents, whatever is shown or waits meanwhile.

use confidant_chat_format::{ChatId, Claim, ItemId, MessageId, Pending, Refused, Role, Shared, TurnId};
use confidant_chat_protocol::limits::{
    MAX_CLIENT_DATA, MAX_HISTORY, MAX_OFF, MAX_PIECES, MAX_QUERY, MAX_SHORT,
};
use confidant_chat_protocol::{
    CancelAiTask, Catalogue, ChatHistory, ChatMessageAdded, ClientEvent, DecideAiTask, ErrorName, FOCUS_MODE,
    Failure, Given, Heard, Keep, List, Piece, RequestCatalogue, RequestChatHistory, ServerEvent, Text,
};
use confidant_display::debug_without_content;

use crate::beside;
use crate::chats::path;
use crate::data_requests::{Consent, note, switch_of};
use crate::device::Device;
use crate::error::Error;
use crate::kept::CACHE;
use crate::plan::{Decision, decide};
use crate::queue::{Act, Note, To, Wanted};
use crate::room::Room;
use crate::state::Question;
use crate::turns::{Asked, Awaited, Awaiting, Stage, Turn, TurnEvent, TurnUpdate};

/// What goes with a question.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskOptions {
    /// How long the server may keep the words of this chat; not beyond the answer where [`Device::set_cached`] says so.
    pub keep: Keep,
    /// A focus mode, by name.
    pub focus: Option<String>,
    /// What is switched off for this question, besides [`Device::switched_off`].
    pub off: Vec<String>,
    /// Settings and memories that could be given, by name.
    pub available: Vec<String>,
    /// What the person lets the server have for this turn. At most three, 4 KiB together; noted inside the message.
    pub given: Vec<GivenText>,
    /// Who says yes to what the server asks for besides, while it answers.
    pub consent: Consent,
}

debug_without_content!(AskOptions { keep });

impl Default for AskOptions {
    fn default() -> Self {
        Self {
            keep: Keep::Cache,
            focus: None,
            off: Vec::new(),
            available: Vec::new(),
            given: Vec::new(),
            consent: Consent::default(),
        }
    }
}

/// Something that only devices can read, given for one turn.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenText {
    /// What it is.
    pub what: Given,
    /// Its name or title.
    pub name: String,
    /// What it says.
    pub text: String,
}

debug_without_content!(GivenText { what });

impl Device {
    /// Writes a message of the person behind the last one, and asks for an answer. Offline, both wait in the queue.
    pub fn ask(&mut self, chat: &ChatId, body: &str, options: &AskOptions) -> Result<Asked, Error> {
        self.ask_at(chat, body, options, To::End)
    }

    /// Asks something else in place of a message: another branch, behind what that message answers.
    pub fn ask_instead(
        &mut self,
        chat: &ChatId,
        message: &MessageId,
        body: &str,
        options: &AskOptions,
    ) -> Result<Asked, Error> {
        let view = self.chat(chat)?;
        let replaced = view.messages.get(message).ok_or(Error::NoSuchMessage)?;
        let to = To::After(path(&view, replaced.parent.as_ref()));
        self.ask_at(chat, body, options, to)
    }

    fn ask_at(&mut self, chat: &ChatId, body: &str, options: &AskOptions, to: To) -> Result<Asked, Error> {
        self.there(chat)?;
        let options = &self.without_off(options);
        self.check_options(chat, options)?;
        if body.len() > MAX_QUERY {
            return Err(Error::TooLarge);
        }
        let wanted = Wanted { turn: TurnId::random(), reply: MessageId::random() };
        let mut note = Note::of(Role::User, body, self.now());
        note.ask = Some(wanted.clone());
        note.shared = noted(options)?;
        let message = self.put_note(chat, note, to)?;
        self.note_question(chat, message, wanted, options)
    }

    /// Asks for another answer to a message of the person, and gives nothing besides. Answers to it that will not come are not
    /// waited for any more.
    pub fn retry(
        &mut self,
        chat: &ChatId,
        message: &MessageId,
        options: &AskOptions,
    ) -> Result<Asked, Error> {
        self.there(chat)?;
        let options = &self.without_off(options);
        self.check_options(chat, options)?;
        let view = self.chat(chat)?;
        let asked = view.messages.get(message).ok_or(Error::NoSuchMessage)?;
        if asked.role != Role::User {
            return Err(Error::NoSuchMessage);
        }
        if asked.body.len() > MAX_QUERY {
            return Err(Error::TooLarge);
        }
        // What is given is noted inside the message, and this one is written.
        let options = &AskOptions { given: Vec::new(), ..options.clone() };
        let wanted = Wanted { turn: TurnId::random(), reply: MessageId::random() };
        let is_over = |one: &Awaited| one.chat == *chat && one.message == *message;
        let instead = self.unanswered().into_iter().filter(is_over).map(|one| one.reply).collect();
        let act = Act::Retry { message: message.clone(), wanted: wanted.clone(), instead };
        self.state.queue.append(chat, act);
        self.note_question(chat, message.clone(), wanted, options)
    }

    /// What is switched off does not go along, whoever names it.
    pub(crate) fn without_off(&self, options: &AskOptions) -> AskOptions {
        let mut options = options.clone();
        let off = std::mem::take(&mut options.off);
        options.given.retain(|given| !self.is_off(switch_of(given.what), &off));
        if self.is_off(switch_of(Given::Settings), &off) {
            options.available.clear();
        }
        options.focus.take_if(|focus| is_focus_off(off.iter().chain(&self.switched_off()), focus));
        AskOptions { off, ..options }
    }

    pub(crate) fn check_options(&self, chat: &ChatId, options: &AskOptions) -> Result<(), Error> {
        let given: usize = options.given.iter().map(|given| given.text.len()).sum();
        let names = options.off.iter().chain(&options.available);
        let names = names.chain(options.given.iter().map(|given| &given.name)).chain(&options.focus);
        let is_short = names.into_iter().all(|name| name.len() <= MAX_SHORT);
        let off = options.off.len() + self.switched_off().len();
        let few = off.max(options.available.len()) <= MAX_OFF && options.given.len() <= MAX_PIECES;
        let waits = self.room(chat).map_or(0, |room| room.head.pending.len());
        if is_short && few && given <= MAX_CLIENT_DATA && waits < MOST_AWAITED {
            Ok(())
        } else {
            Err(Error::TooLarge)
        }
    }

    fn note_question(
        &mut self,
        chat: &ChatId,
        message: MessageId,
        wanted: Wanted,
        options: &AskOptions,
    ) -> Result<Asked, Error> {
        let Wanted { turn, reply } = wanted;
        let given =
            |given: &GivenText| (given.what.name().to_owned(), given.name.clone(), given.text.clone());
        self.state.asks.push(Question {
            chat: chat.clone(),
            turn: turn.clone(),
            message: message.clone(),
            reply: reply.clone(),
            is_kept: options.keep == Keep::Cache,
            focus: options.focus.clone(),
            off: options.off.clone(),
            available: options.available.clone(),
            given: options.given.iter().map(given).collect(),
            is_sent: false,
            begun: None,
            is_heard: false,
            again: 0,
            is_person: options.consent == Consent::Person,
            gave: Vec::new(),
        });
        self.save()?;
        Ok(Asked { turn, message, reply })
    }

    /// Waits no longer for this reply. It does not stop the turn: [`Device::cancel`] does.
    pub fn give_up(&mut self, chat: &ChatId, turn: &TurnId) -> Result<(), Error> {
        if let Some(room) = self.temporary.get_mut(chat) {
            room.head.pending.retain(|awaited| awaited.turn != *turn);
            return Ok(());
        }
        let room = self.rooms.get(chat).ok_or(Error::NoSuchChat)?;
        let awaited = room.head.pending.iter().find(|awaited| awaited.turn == *turn);
        let reply = awaited.ok_or(Error::NoSuchMessage)?.reply.clone();
        self.state.queue.append(chat, Act::GiveUp { reply });
        self.save()
    }

    /// Every reply that a stored chat waits for, or a temporary one.
    #[must_use]
    pub fn awaited(&self) -> Vec<Awaited> {
        let rooms = self.rooms.values().chain(self.temporary.values());
        let all = rooms.flat_map(|room| room.head.pending.iter().map(|pending| (&room.id, pending)));
        all.map(|(chat, pending)| Awaited {
            chat: chat.clone(),
            turn: pending.turn.clone(),
            message: pending.parent.clone(),
            reply: pending.reply.clone(),
            state: self.awaiting(&pending.turn),
        })
        .collect()
    }

    /// Replies that will not come: the person may [`retry`](Self::retry), or [`give_up`](Self::give_up).
    #[must_use]
    pub fn unanswered(&self) -> Vec<Awaited> {
        let mut all = self.awaited();
        all.retain(|awaited| matches!(awaited.state, Awaiting::Unanswered(_)));
        all
    }

    fn awaiting(&self, turn: &TurnId) -> Awaiting {
        if self.state.queue.answers(turn) {
            return Awaiting::Heard;
        }
        match self.turns.find(turn) {
            Some(one) => match one.stage {
                Stage::Over(error) => Awaiting::Unanswered(error),
                Stage::Ended => Awaiting::Heard,
                _ if self.is_connected() && one.heard_on == self.socket_number => Awaiting::Running,
                _ => Awaiting::Unknown,
            },
            None if self.state.asks.iter().any(|ask| ask.turn == *turn && ask.begun.is_none()) => {
                Awaiting::Unsent
            }
            None => Awaiting::Unknown,
        }
    }

    /// The words of an answer so far.
    #[must_use]
    pub fn words(&self, turn: &TurnId) -> Option<&str> {
        self.turns.find(turn).map(|turn| turn.words.as_str())
    }

    /// Stops a turn. What was said so far comes as its answer.
    pub async fn cancel(&mut self, chat: &ChatId, turn: &TurnId) -> Result<(), Error> {
        let cancel = CancelAiTask { chat: chat.clone(), turn: turn.clone() };
        self.tell(ClientEvent::CancelAiTask(cancel)).await
    }

    /// The person's word on a tool ([`TurnUpdate::Approval`]).
    pub async fn decide(
        &mut self,
        chat: &ChatId,
        turn: &TurnId,
        approval: &str,
        allow: bool,
    ) -> Result<(), Error> {
        let approval = Text::new(approval.to_owned())?;
        let decide = DecideAiTask { chat: chat.clone(), turn: turn.clone(), approval, allow };
        let said = match self.request_one(ClientEvent::DecideAiTask(decide.clone())).await {
            // A gateway listens for a while only: asked what came of the turn, it listens again.
            Err(Error::Denied { error: ErrorName::Request(Failure::NotFound), .. }) if self.waits(turn) => {
                self.take_up(turn).await?;
                self.request_one(ClientEvent::DecideAiTask(decide)).await?
            }
            said => said?,
        };
        match said.1 {
            ServerEvent::AiTaskInitiated(_) | ServerEvent::MessageQueued(_) => Ok(()),
            _ => Err(Error::Unexpected),
        }
    }

    /// Whether a turn has no end yet, as far as this device heard.
    fn waits(&self, turn: &TurnId) -> bool {
        self.turns.find(turn).is_some_and(|one| !matches!(one.stage, Stage::Ended | Stage::Over(_)))
    }

    /// What the server's answers may use now: tools and focus modes by name. Nothing of it is stored.
    pub async fn catalogue(&mut self) -> Result<Catalogue, Error> {
        self.link.post("/chats/catalogue", &RequestCatalogue {}).await
    }

    /// What the person switched off, for every question on every device: `tools`, `focus`, `settings`, `similar`, `search`,
    /// `suggestions`, `cache`, `concepts`, a tool by its name, or a focus mode ([`focus_switch`]).
    #[must_use]
    pub fn switched_off(&self) -> Vec<String> {
        let body = self.data(SETTINGS, OFF).ok().flatten();
        body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default()
    }

    /// Switches something off, or on again.
    pub fn switch(&mut self, name: &str, is_on: bool) -> Result<(), Error> {
        let mut off = self.switched_off();
        off.retain(|one| one != name);
        if !is_on {
            off.push(name.to_owned());
        }
        if off.len() > MAX_OFF || name.len() > MAX_SHORT {
            return Err(Error::TooLarge);
        }
        let body = serde_json::to_string(&off).ok().filter(|_| !off.is_empty());
        self.set_data(SETTINGS, OFF, body.as_deref())
    }

    /// Asks the questions that are stored and were not asked yet. Of one that was sent before, and whose answer was lost, it is first
    /// looked what came of it: it may be answered by now.
    pub(crate) async fn begin_turns(&mut self) -> Result<(), Error> {
        self.tidy_asks()?;
        let unsent: Vec<Question> =
            self.state.asks.iter().filter(|ask| ask.begun.is_none()).cloned().collect();
        for question in unsent {
            let room = self.rooms.get(&question.chat);
            let is_pending = |room: &&Room| room.head.pending.iter().any(|one| one.turn == question.turn);
            let Some(room) = room.filter(is_pending) else { continue };
            let (added, turn) = self.question(room, &question)?;
            let after = turn.after;
            if question.is_sent {
                self.turns.add(Turn { begun_on: None, ..turn });
                self.take_up(&question.turn).await?;
            } else {
                self.turns.add(turn);
                // Kept before it is sent: if the answer is lost, the turn may run, or be over, when it is sent again.
                self.question_mut(&question.turn, |ask| ask.is_sent = true)?;
                self.begin(added).await?;
            }
            self.question_mut(&question.turn, |ask| ask.begun = ask.begun.or(Some(after)))?;
        }
        Ok(())
    }

    /// Sends a question. One that the server cannot take now is an error; one that it does not take has no answer.
    async fn begin(&mut self, added: ChatMessageAdded) -> Result<(), Error> {
        let turn = added.turn.clone();
        match self.request_one(ClientEvent::ChatMessageAdded(added)).await {
            Ok((_, ServerEvent::AiTaskInitiated(_))) => self.begun(&turn, 0),
            Ok((_, ServerEvent::MessageQueued(queued))) => self.begun(&turn, queued.ahead),
            Ok(_) => return Err(Error::Unexpected),
            // Later, then.
            Err(
                error @ (Error::Denied { retry_ms: Some(_), .. }
                | Error::Denied { error: ErrorName::Request(Failure::Stopping), .. }),
            ) => {
                self.turns.forget(&turn);
                self.question_mut(&turn, |ask| {
                    (ask.is_sent, ask.again) = (ask.begun.is_some(), ask.again.saturating_sub(1));
                })?;
                return Err(error);
            }
            Err(Error::Denied { error, .. }) => {
                self.turns.fail(&turn, error);
                self.note_heard(&turn)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Asks for the rest of an answer; then, if nothing was heard of it and the question is this device's, the question itself.
    pub(crate) async fn take_up(&mut self, turn: &TurnId) -> Result<(), Error> {
        match self.ask_rest(turn).await {
            Ok(told) => {
                if !self.ask_again(turn).await? {
                    self.turns.told.extend(told);
                }
                Ok(())
            }
            Err(Error::Refused(refused)) => {
                self.turns.fail(turn, ErrorName::Content(refused));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Asks a question of this device once more on this socket, if nothing was heard of its answer; whether it did. The socket that it went
    /// over may have been lost before the history was given, and only the one that asks may give it. A turn that is asked for twice
    /// is one turn, and answered once.
    async fn ask_again(&mut self, turn: &TurnId) -> Result<bool, Error> {
        let ask = self.state.asks.iter().find(|ask| ask.turn == *turn && !ask.is_heard && ask.is_sent);
        let (Some(ask), Some(one)) = (ask.cloned(), self.turns.find(turn)) else { return Ok(false) };
        let is_lost = one.stage == Stage::Over(ErrorName::Request(Failure::NotFound));
        let is_silent = one.words.is_empty() && (one.stage == Stage::Asked || is_lost && ask.again < AGAIN);
        let Some(room) = self.rooms.get(&ask.chat).filter(|_| is_silent) else { return Ok(false) };
        let Ok((added, question)) = self.question(room, &ask) else { return Ok(false) };
        // The branch changed since: to a server that has the question, this would be another one.
        if !is_lost && ask.begun.is_some_and(|begun| begun != question.after) {
            return Ok(false);
        }
        let after = question.after;
        self.turns.add(question);
        if is_lost {
            self.question_mut(turn, |ask| ask.again += 1)?;
            self.begin(added).await?;
        } else {
            match self.request_one(ClientEvent::ChatMessageAdded(added)).await {
                Ok((_, ServerEvent::AiTaskInitiated(_) | ServerEvent::MessageQueued(_))) => {}
                Ok(_) => return Err(Error::Unexpected),
                // It listens all the same.
                Err(Error::Denied { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.question_mut(turn, |ask| ask.begun = Some(after))?;
        Ok(true)
    }

    /// Something was heard of an answer that this device asked for: from now on it asks no more by itself.
    pub(crate) fn note_heard(&mut self, turn: &TurnId) -> Result<(), Error> {
        let is_new = |ask: &&Question| ask.turn == *turn && !ask.is_heard;
        if self.state.asks.iter().any(|ask| is_new(&ask)) {
            self.question_mut(turn, |ask| ask.is_heard = true)?;
        }
        Ok(())
    }

    fn question_mut(&mut self, turn: &TurnId, change: impl FnOnce(&mut Question)) -> Result<(), Error> {
        if let Some(ask) = self.state.asks.iter_mut().find(|ask| ask.turn == *turn) {
            change(ask);
        }
        self.save()
    }

    pub(crate) fn begun(&mut self, turn: &TurnId, ahead: u32) {
        if let Some(told) = self.turns.find(turn).map(|one| one.tell(TurnUpdate::Begun(ahead))) {
            self.turns.told.push_back(told);
        }
    }

    /// Questions that nothing waits for any more are forgotten. What was given for one is noted in its answer before, if another device has
    /// stored that: only this one knows.
    fn tidy_asks(&mut self) -> Result<(), Error> {
        let (queue, rooms) = (&self.state.queue, &self.rooms);
        let is_open = |ask: &Question| {
            let pending = rooms.get(&ask.chat).map(|room| room.head.pending.as_slice());
            queue.asks(&ask.turn) || pending.unwrap_or_default().iter().any(|one| one.turn == ask.turn)
        };
        let keep: Vec<bool> = self.state.asks.iter().map(is_open).collect();
        if keep.iter().all(|keep| *keep) {
            return Ok(());
        }
        let over = self.state.asks.iter().zip(&keep).filter(|(_, keep)| !**keep);
        for (ask, _) in over.filter(|(ask, _)| !ask.gave.is_empty()) {
            let act = Act::Gave { id: ask.reply.clone(), shared: ask.gave.clone() };
            if decide(&act, self.rooms.get(&ask.chat)) == Decision::Do {
                self.state.queue.append(&ask.chat, act);
            }
        }
        let mut keep = keep.into_iter();
        self.state.asks.retain(|_| keep.next().unwrap_or(false));
        self.save()
    }

    /// A question, over the branch as it is stored.
    fn question(&self, room: &Room, question: &Question) -> Result<(ChatMessageAdded, Turn), Error> {
        let Question { chat, turn, message, reply, .. } = question;
        let (claim, branch) = claim(room, message, reply)?;
        let words = room.message(message).ok_or(Refused::ParentMissing)?.body.clone();
        let mut off = self.switched_off();
        off.extend(question.off.iter().filter(|name| !self.switched_off().contains(name)).cloned());
        let title = crate::chats::field(crate::plan::TITLE)?;
        let asks = self.may_ask(question);
        // Switched off since it was written: it stays here.
        let is_off = |name: &str| off.iter().any(|one| one == name);
        let available = if is_off(switch_of(Given::Settings)) { &[] } else { question.available.as_slice() };
        let given = question.given.iter().filter(|(what, ..)| {
            !Given::ALL.iter().any(|given| given.name() == what && is_off(switch_of(*given)))
        });
        let piece = |(what, name, text): &(String, String, String)| {
            let what = Given::ALL.iter().find(|given| given.name() == what).copied();
            let what = what.ok_or(Error::Damaged)?;
            Ok(Piece { what, name: Text::new(name.clone())?, text: Text::new(text.clone())? })
        };
        let added = ChatMessageAdded {
            chat: chat.clone(),
            turn: turn.clone(),
            message: message.clone(),
            reply: reply.clone(),
            text: Text::new(words)?,
            count: claim.count,
            before: claim.before,
            after: claim.after,
            keep: if question.is_kept && self.is_cached(chat) && !is_off(CACHE) {
                Keep::Cache
            } else {
                Keep::Turn
            },
            history: false,
            titled: room.field(&title).is_some(),
            focus: (question.focus.as_ref())
                .filter(|focus| !is_focus_off(&off, focus))
                .map(|focus| Text::new(focus.clone()))
                .transpose()?,
            off: texts(&off)?,
            available: texts(available)?,
            given: List::new(given.map(piece).collect::<Result<_, Error>>()?)?,
            asks: List::new(asks.clone())?,
            remembers: self.remembered_with(chat, &off)?,
        };
        let pending = Pending { turn: turn.clone(), parent: message.clone(), reply: reply.clone() };
        let begun_on = Some(self.socket_number);
        let gave = question.gave.iter().map(|one| one.what.as_str().to_owned()).collect::<Vec<_>>();
        let asked = Given::ALL.iter().copied().filter(|given| gave.iter().any(|name| name == given.name()));
        let turn = self.listener(chat, &pending, claim, branch, begun_on);
        Ok((added, Turn { asks, asked: asked.collect(), ..turn }))
    }

    /// What the server may ask for while it answers: nothing that is off, and what is not switched on for this chat only if somebody is there.
    fn may_ask(&self, question: &Question) -> Vec<Given> {
        let shares = self.shares(&question.chat);
        let may = |given: &Given| {
            let has_any = *given != Given::Settings || !question.available.is_empty();
            let is_allowed = question.is_person || shares.contains(given);
            has_any && is_allowed && !self.is_off(switch_of(*given), &question.off)
        };
        Given::ALL.iter().copied().filter(may).collect()
    }

    pub(crate) fn listener(
        &self,
        chat: &ChatId,
        pending: &Pending,
        claim: Claim,
        branch: Vec<(MessageId, u32)>,
        begun_on: Option<u64>,
    ) -> Turn {
        Turn {
            chat: chat.clone(),
            turn: pending.turn.clone(),
            message: pending.parent.clone(),
            reply: pending.reply.clone(),
            after: claim.after,
            branch,
            begun_on,
            heard_on: self.socket_number,
            is_temporary: self.is_temporary(chat),
            stage: Stage::Asked,
            words: String::new(),
            histories: 0,
            given: 0,
            asks: Vec::new(),
            asked: Vec::new(),
            open: Vec::new(),
            gaps: 0,
            is_catching_up: false,
            is_repeated: false,
        }
    }

    /// The server asks for the words before a question. Anything but an open question of this device, on this socket, for the
    /// branch that it named, at most twice: `unasked`, and nothing leaves.
    pub(crate) async fn give_history(
        &mut self,
        asked: &RequestChatHistory,
    ) -> Result<Option<TurnEvent>, Error> {
        let socket = self.socket_number;
        let turn = self.turns.find(&asked.turn);
        let turn = turn.filter(|turn| turn.may_give(&asked.chat, &asked.message, socket));
        let turn = turn.ok_or(Refused::Unasked)?;
        let (branch, turn) = (turn.branch.clone(), turn.clone());
        let heard = self.room(&asked.chat).and_then(|room| beside::heard(room, &branch));
        let Some(heard) = heard else {
            // Changed on another device since: it is not the branch that was named, so nothing is given.
            self.turns.fail(&asked.turn, ErrorName::Content(Refused::Conflict));
            self.note_heard(&asked.turn)?;
            self.cancel(&asked.chat, &asked.turn).await?;
            return Ok(self.turns.told.pop_back());
        };
        let told = turn.tell(TurnUpdate::History(heard.len()));
        // Whoever stops waiting in between goes on behind the parts that were given.
        let given = self.turns.find(&asked.turn).map_or(0, |turn| turn.given);
        for (messages, more) in parts(heard).into_iter().skip(given) {
            let (chat, turn) = (asked.chat.clone(), asked.turn.clone());
            let part = ChatHistory { chat, turn, messages: List::new(messages)?, more };
            self.tell(ClientEvent::ChatHistory(part)).await?;
            if let Some(turn) = self.turns.find_mut(&asked.turn) {
                turn.given += 1;
            }
        }
        if let Some(turn) = self.turns.find_mut(&asked.turn) {
            (turn.histories, turn.given) = (turn.histories + 1, 0);
        }
        Ok(Some(told))
    }
}

/// What a question says about the branch that it continues, and that branch: from the first message to the one before it. As it is
/// stored: a branch that is not whole has no claim.
pub(crate) fn claim(
    room: &Room,
    message: &MessageId,
    reply: &MessageId,
) -> Result<(Claim, Vec<(MessageId, u32)>), Refused> {
    let rev = |id: &MessageId| {
        room.items.get(&ItemId::Message(id.clone())).map(|slot| slot.rev).ok_or(Refused::ParentMissing)
    };
    let mut branch = Vec::new();
    let mut at = room.message(message).ok_or(Refused::ParentMissing)?.parent.clone();
    while let Some(id) = at {
        // Every branch that was verified ends in a first message.
        at = room.message(&id).ok_or(Refused::ParentMissing)?.parent.clone();
        branch.push((id.clone(), rev(&id)?));
    }
    branch.reverse();
    let claim = Claim::new(room.ring.newest(), &branch, (message, rev(message)?), reply);
    Ok((claim, branch))
}

/// In as many parts as fit a frame each, with whether more follow; one part at least.
fn parts(heard: Vec<Heard>) -> Vec<(Vec<Heard>, bool)> {
    let (mut parts, mut size) = (vec![Vec::new()], 0);
    for one in heard {
        let bytes = serde_json::to_string(one.text.as_str()).map_or(0, |json| json.len()) + 256;
        let last = parts.last().map_or(0, Vec::len);
        if last > 0 && (size + bytes > PART || last >= MAX_HISTORY) {
            parts.push(Vec::new());
            size = 0;
        }
        size += bytes;
        if let Some(part) = parts.last_mut() {
            part.push(one);
        }
    }
    let count = parts.len();
    parts.into_iter().enumerate().map(|(at, part)| (part, at + 1 < count)).collect()
}

/// What the message notes of what is given with it.
pub(crate) fn noted(options: &AskOptions) -> Result<Vec<Shared>, Error> {
    options.given.iter().map(note).collect()
}

pub(crate) fn texts<const EACH: usize, const MANY: usize>(
    names: &[String],
) -> Result<List<Text<EACH>, MANY>, Error> {
    let texts = names.iter().map(|name| Text::new(name.clone())).collect::<Result<_, _>>()?;
    Ok(List::new(texts)?)
}

/// What switches one focus mode off.
#[must_use]
pub fn focus_switch(mode: &str) -> String {
    format!("{FOCUS_MODE}{mode}")
}

/// Whether a focus mode is off: all are, or it is, by its name or by one with a star at its end.
fn is_focus_off<'a>(off: impl IntoIterator<Item = &'a String>, mode: &str) -> bool {
    off.into_iter().any(|off| match off.strip_prefix(FOCUS_MODE) {
        None => off == FOCUS,
        Some(one) => one == mode || one.strip_suffix('*').is_some_and(|begins| mode.starts_with(begins)),
    })
}

/// The account data that has what the person switched off: its kind and name.
const SETTINGS: &str = "settings";
const OFF: &str = "off";
/// What switches focus modes off.
const FOCUS: &str = "focus";
/// How often a question that the server lost is asked again without the person.
const AGAIN: u8 = 5;
/// Replies that one chat may wait for.
const MOST_AWAITED: usize = 64;
/// What one part of a history may take, in bytes of JSON. One message always fits a frame.
const PART: usize = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use confidant_chat_protocol::SaidBy;

    use super::*;

    #[test]
    fn a_history_goes_in_parts_that_fit() {
        let heard = |bytes: usize| Heard {
            id: MessageId::random(),
            by: SaidBy::User,
            text: Text::cut(&"\u{1}".repeat(bytes)),
            proof: None,
            count: None,
            sums_up: None,
        };
        assert_eq!(parts(Vec::new()), [(Vec::new(), false)], "an empty branch is one part");
        let all: Vec<Heard> = (0..12).map(|_| heard(150_000)).collect();
        let split = parts(all.clone());
        assert!(split.len() > 1);
        let more: Vec<bool> = split.iter().map(|(_, more)| *more).collect();
        assert_eq!(more.iter().filter(|more| !**more).count(), 1);
        assert_eq!(more.last(), Some(&false));
        let joined: Vec<Heard> = split.into_iter().flat_map(|(part, _)| part).collect();
        assert_eq!(joined, all, "in order, and whole");
        let many: Vec<Heard> = (0..2 * MAX_HISTORY + 1).map(|_| heard(1)).collect();
        assert_eq!(parts(many).len(), 3);
    }
}
