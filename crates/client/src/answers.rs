//! Answers: heard word by word, found in the mailbox, or asked for again; then written by this device.
//!
//! ```text
//! words ─▶ their place ─▶ ended: length and hash are those of the words ─▶ queue: reply, head without the pending item ─▶ acknowledged
//! letter ─▶ opened with the account's box keys, against head and list ────▶ the same
//! sync ─▶ every pending reply: resume_ai_task ─▶ words, a letter, or `not-found`: it is unanswered
//! ```
//!
//! A reply counts for the turn and the id that the chat's sealed head waits for. Several devices may hear one: the first write
//! wins, and the others drop theirs. Easy to get wrong: acknowledging first. The server forgets the answer then, so it is told only
//! after the write was stored.

use confidant_chat_format::{
    ChatId, Digest, FieldName, ItemId, Letter, List, Message, MessageId, Pending, Refused, TurnId,
};
use confidant_chat_protocol::limits::{MAX_BESIDE, MAX_MESSAGE, MAX_QUERY};
use confidant_chat_protocol::{
    About, AiMessageUpdate, AiResponseCompleted, AiTypingEnded, Beside, Blob, Body as _, ClientEvent,
    ErrorName, Failure, Finish, List as Sent, PendingAiResponse, PostProcessingCompleted, ResumeAiTask,
    ServerEvent, ServerFrame, Text,
};

use crate::asks::claim;
use crate::beside::BesideNote;
use crate::device::Device;
use crate::error::Error;
use crate::plan::TITLE;
use crate::queue::{Act, Answer};
use crate::room::Room;
use crate::turns::{Approval, Heard, Stage, Turn, TurnEvent, TurnUpdate};

impl Device {
    /// Takes in what came of a turn. One that this device does not hear on this socket: `unasked`.
    pub(crate) async fn take_turn(&mut self, event: ServerEvent) -> Result<Option<TurnEvent>, Error> {
        match event {
            ServerEvent::RequestChatHistory(asked) => self.give_history(&asked).await,
            ServerEvent::RequestClientData(asked) => self.take_data_request(&asked).await,
            ServerEvent::AiMessageUpdate(update) => self.take_words(&update).await,
            ServerEvent::AiTypingEnded(ended) => self.take_end(&ended).await,
            ServerEvent::PendingAiResponse(letter) => self.take_letter(&letter),
            ServerEvent::PostProcessingCompleted(made) => self.take_made(&made),
            ServerEvent::AiTypingStarted(started) => {
                let turn = self.heard(&started.chat, &started.turn)?;
                if turn.stage == Stage::Asked {
                    turn.stage = Stage::Answering;
                }
                Ok(None)
            }
            ServerEvent::PreprocessingStep(step) => {
                let turn = self.heard(&step.chat, &step.turn)?;
                Ok(Some(turn.tell(TurnUpdate::Progress(step.text.as_str().to_owned()))))
            }
            ServerEvent::AiApprovalRequested(asked) => {
                self.heard(&asked.chat, &asked.turn)?;
                self.note_heard(&asked.turn)?;
                let turn = self.heard(&asked.chat, &asked.turn)?;
                let owned = |text: &str| text.to_owned();
                Ok(Some(turn.tell(TurnUpdate::Approval(Box::new(Approval {
                    id: owned(asked.approval.as_str()),
                    tool: owned(asked.tool.as_str()),
                    input: owned(asked.input.as_str()),
                    why: owned(asked.why.as_str()),
                    expires_ms: asked.expires_ms,
                })))))
            }
            ServerEvent::AiTaskFailed(failed) => {
                let turn = self.heard(&failed.chat, &failed.turn)?;
                if matches!(turn.stage, Stage::Ended | Stage::Over(_)) {
                    return Ok(None);
                }
                turn.stage = Stage::Over(failed.error);
                let told = turn.tell(TurnUpdate::Failed(failed.error));
                self.note_heard(&failed.turn)?;
                Ok(Some(told))
            }
            _ => Ok(None),
        }
    }

    fn heard(&mut self, chat: &ChatId, turn: &TurnId) -> Result<&mut Turn, Refused> {
        let socket = self.socket_number;
        self.turns.heard(chat, turn, socket).ok_or(Refused::Unasked)
    }

    async fn take_words(&mut self, update: &AiMessageUpdate) -> Result<Option<TurnEvent>, Error> {
        let turn = self.heard(&update.chat, &update.turn)?;
        if matches!(turn.stage, Stage::Ended | Stage::Over(_)) {
            return Ok(None);
        }
        turn.stage = Stage::Answering;
        let heard = turn.hear(update.at, update.text.as_str());
        if turn.words.len() > MAX_QUERY {
            return Err(self.refuse(&update.turn));
        }
        match heard {
            Heard::Words(at) => {
                let text = turn.words[at..].to_owned();
                let told = turn.tell(TurnUpdate::Words { at, text });
                if at == 0 {
                    self.note_heard(&update.turn)?;
                }
                Ok(Some(told))
            }
            Heard::Known => Ok(None),
            // They are on their way.
            Heard::Gap if turn.is_catching_up => Ok(None),
            Heard::Gap if turn.gaps >= GAPS => Err(self.refuse(&update.turn)),
            Heard::Gap => {
                turn.gaps += 1;
                turn.is_catching_up = true;
                self.ask_rest(&update.turn).await
            }
        }
    }

    /// The answer is there, if its length and hash are those of the words that were heard. If not, all of it is asked for once
    /// more; then it is `record-refused`.
    async fn take_end(&mut self, ended: &AiTypingEnded) -> Result<Option<TurnEvent>, Error> {
        let turn = self.heard(&ended.chat, &ended.turn)?;
        if matches!(turn.stage, Stage::Ended | Stage::Over(_)) {
            return Ok(None);
        }
        let is_whole = u64::try_from(turn.words.len()) == Ok(ended.bytes)
            && Digest::of(turn.words.as_bytes()) == ended.hash;
        if !is_whole {
            if turn.is_repeated {
                return Err(self.refuse(&ended.turn));
            }
            turn.is_repeated = true;
            turn.words.clear();
            return self.ask_rest(&ended.turn).await;
        }
        turn.stage = Stage::Ended;
        let turn = turn.clone();
        let (body, is_cut) = fitted(&turn.words);
        let answer = Answer {
            turn: turn.turn.clone(),
            parent: turn.message.clone(),
            body: body.to_owned(),
            model: ended.model.as_ref().map(owned),
            reason: ended.about.reason.as_ref().map(owned),
            // A proof is for all of the words.
            proof: ended.proof.filter(|_| !is_cut),
            created_at: self.now(),
            fields: about(&ended.about)?,
            shared: Vec::new(),
            beside: notes(ended.beside.as_ref()),
        };
        if turn.is_temporary {
            return Ok(self.take_temporary(&turn, answer, ended.finish).await);
        }
        match self.keep_answer(&turn.chat, &turn.reply, answer)? {
            AskerState::Waits => Ok(Some(turn.tell(TurnUpdate::Ended(ended.finish)))),
            AskerState::GaveUp => {
                self.turns.fail(&turn.turn, ErrorName::Content(Refused::Unasked));
                Ok(self.turns.told.pop_back())
            }
        }
    }

    /// An answer that was left in the mailbox. In the list already: dropped. One that nobody waits for, that does not open, or that
    /// answers something else is refused by name.
    fn take_letter(&mut self, sent: &PendingAiResponse) -> Result<Option<TurnEvent>, Error> {
        let told = |what| TurnEvent { chat: sent.chat.clone(), turn: sent.turn.clone(), what };
        match self.open_letter(sent) {
            Ok((message, more)) => {
                let (body, is_cut) = fitted(&message.body);
                let answer = Answer {
                    turn: sent.turn.clone(),
                    parent: message.parent.clone().ok_or(Refused::Unasked)?,
                    body: body.to_owned(),
                    model: message.model.clone(),
                    reason: message.reason.clone(),
                    proof: message.proof.filter(|_| !is_cut),
                    created_at: message.created_at,
                    fields: more.about.as_ref().map(about).transpose()?.unwrap_or_default(),
                    shared: Vec::new(),
                    beside: more.beside,
                };
                self.keep_answer(&sent.chat, &sent.reply, answer)?;
                if let Some(made) = &more.made {
                    self.put_made(made)?;
                }
                if let Some(turn) = self.turns.find_mut(&sent.turn) {
                    turn.stage = Stage::Ended;
                }
                Ok(Some(told(TurnUpdate::Ended(more.finish))))
            }
            Err(Refused::Duplicate) => {
                // Another device stored it; the letter may go.
                self.thank(&sent.chat, &sent.turn)?;
                Ok(None)
            }
            Err(refused) => Err(refused.into()),
        }
    }

    /// The answer, and what was made of it. Suggestions that do not open are no reason to lose the answer.
    fn open_letter(&self, sent: &PendingAiResponse) -> Result<(Message, More), Refused> {
        let room = self.rooms.get(&sent.chat).ok_or(Refused::Unasked)?;
        let account = self.account.as_ref().ok_or(Refused::AccountMissing)?;
        let list: List = room.items.iter().map(|(item, slot)| (item.clone(), slot.hash)).collect();
        let letter = Letter { account: account.id(), chat: &sent.chat, reply: &sent.reply, turn: &sent.turn };
        let message = letter.open(account.boxes(), &room.head, &list, sent.letter.as_bytes())?;
        let more = sent.more.as_ref().map(Blob::as_bytes);
        let more = more.and_then(|wire| letter.open_more(account.boxes(), &room.head, wire).ok());
        let lines = more.map(|text| text.body).unwrap_or_default();
        Ok((message, More::read(&lines, &sent.chat, &sent.turn)))
    }

    /// The reply waits to be stored, where the chat still waits for it; `duplicate` and `unasked` ones are dropped.
    fn keep_answer(
        &mut self,
        chat: &ChatId,
        reply: &MessageId,
        mut answer: Answer,
    ) -> Result<AskerState, Error> {
        let room = self.rooms.get(chat);
        let is_pending = |room: &&Room| {
            let mut pending = room.head.pending.iter();
            pending.any(|one| one.reply == *reply && one.turn == answer.turn && one.parent == answer.parent)
        };
        let is_there = |room: &&Room| room.items.contains_key(&ItemId::Message(reply.clone()));
        let (is_pending, is_there) = (room.filter(is_pending).is_some(), room.filter(is_there).is_some());
        let turn = answer.turn.clone();
        if is_pending && !is_there && !self.state.queue.answers(&turn) {
            let asked = self.state.asks.iter().find(|ask| ask.turn == turn);
            answer.shared = asked.map(|ask| ask.gave.clone()).unwrap_or_default();
            self.state.queue.append(chat, Act::Reply { id: reply.clone(), answer });
        }
        // Stored here or by another device, or given up: the server may forget it.
        self.thank(chat, &turn)?;
        Ok(if is_pending || is_there { AskerState::Waits } else { AskerState::GaveUp })
    }

    fn thank(&mut self, chat: &ChatId, turn: &TurnId) -> Result<(), Error> {
        if !self.state.acks.iter().any(|(_, one)| one == turn) {
            self.state.acks.push((chat.clone(), turn.clone()));
        }
        self.save()
    }

    /// Summary, tags and suggestions, of a turn that this device heard.
    fn take_made(&mut self, made: &PostProcessingCompleted) -> Result<Option<TurnEvent>, Error> {
        let turn = self.heard(&made.chat, &made.turn)?;
        if turn.stage != Stage::Ended {
            return Ok(None);
        }
        let (told, is_kept) = (turn.tell(TurnUpdate::Made), !turn.is_temporary);
        if is_kept {
            self.put_made(made)?;
        }
        Ok(Some(told))
    }

    fn put_made(&mut self, made: &PostProcessingCompleted) -> Result<(), Error> {
        let chat = &made.chat;
        let new_chats: Vec<String> = made.new_chats.iter().map(owned).collect();
        let made = [
            (FOLLOW_UPS, json_of(made.follow_ups.iter().map(owned))),
            (SUMMARY, made.summary.as_ref().map(owned)),
            (TAGS, json_of(made.tags.iter().map(owned))),
        ];
        let made = made.into_iter().filter_map(|(name, body)| Some((name, body?)));
        let fields = made.map(|(name, body)| Ok((FieldName::parse(name)?, body)));
        let fields = fields.collect::<Result<Vec<_>, Refused>>()?;
        if !fields.is_empty() && self.there(chat).is_ok() {
            self.state.queue.append(chat, Act::Made { fields });
        }
        if !new_chats.is_empty() {
            self.state.queue.suggest(new_chats);
        }
        self.save()
    }

    /// Asks for every answer that the chats on this device wait for and that is not being heard: also those that another device
    /// asked for. Every [`sync`](Self::sync) does it.
    pub async fn resume(&mut self) -> Result<(), Error> {
        self.connect().await?;
        Box::pin(self.resume_turns()).await
    }

    pub(crate) async fn resume_turns(&mut self) -> Result<(), Error> {
        self.begin_turns().await?;
        let socket = self.socket_number;
        let mut waiting: Vec<(ChatId, Pending)> = Vec::new();
        for room in self.rooms.values().chain(self.temporary.values()) {
            for pending in &room.head.pending {
                let is_heard = self.turns.find(&pending.turn).is_some_and(|turn| match turn.stage {
                    // Another device may have asked only just now; or the server had too much to do.
                    Stage::Over(ErrorName::Request(
                        Failure::NotFound | Failure::Rate | Failure::Stopping,
                    )) => false,
                    Stage::Ended => true,
                    _ => turn.heard_on == socket,
                });
                if !is_heard && !self.state.queue.answers(&pending.turn) {
                    waiting.push((room.id.clone(), pending.clone()));
                }
            }
        }
        for (chat, pending) in waiting {
            let Some(room) = self.room(&chat) else { continue };
            let Ok((mut claim, branch)) = claim(room, &pending.parent, &pending.reply) else { continue };
            // What this device said when it asked holds, also if the branch or its key changed since.
            let asked = self.state.asks.iter().find(|ask| ask.turn == pending.turn);
            claim.after = asked.and_then(|ask| ask.begun).unwrap_or(claim.after);
            let listener = self.listener(&chat, &pending, claim, branch, None);
            self.turns.add(listener);
            self.take_up(&pending.turn).await?;
        }
        Ok(())
    }

    /// Asks for the rest of an answer.
    pub(crate) async fn ask_rest(&mut self, turn: &TurnId) -> Result<Option<TurnEvent>, Error> {
        let mut from = self.turns.find(turn).map_or(0, |one| one.words.len());
        loop {
            let Some(one) = self.turns.find(turn) else { return Ok(None) };
            let ask = ResumeAiTask {
                chat: one.chat.clone(),
                turn: one.turn.clone(),
                after: one.after,
                from: u64::try_from(from).unwrap_or(0),
                message: Some(one.message.clone()),
                reply: Some(one.reply.clone()),
            };
            match self.request_one(ClientEvent::ResumeAiTask(ask)).await {
                // The words follow, as events of their own.
                Ok((_, ServerEvent::AiTaskInitiated(_) | ServerEvent::MessageQueued(_))) => return Ok(None),
                Ok((_, ServerEvent::PendingAiResponse(letter))) => {
                    return if letter.turn == *turn {
                        self.take_letter(&letter)
                    } else {
                        Err(Refused::Unasked.into())
                    };
                }
                Ok(_) => return Err(Error::Unexpected),
                // It has fewer words than were heard: from the beginning.
                Err(Error::Denied { error: ErrorName::Request(Failure::Malformed), .. }) if from > 0 => {
                    from = 0;
                    if let Some(one) = self.turns.find_mut(turn) {
                        one.words.clear();
                    }
                }
                Err(Error::Denied { error, .. }) => {
                    self.turns.fail(turn, error);
                    return Ok(self.turns.told.pop_back());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells the server which answers are stored, so that it forgets them.
    pub(crate) async fn acknowledge(&mut self) -> Result<(), Error> {
        for (chat, turn) in self.state.acks.clone() {
            if self.state.queue.answers(&turn) {
                continue;
            }
            let stored = AiResponseCompleted { chat, turn: turn.clone() };
            match self.request_one(ClientEvent::AiResponseCompleted(stored)).await {
                Ok((_, ServerEvent::AiResponseStorageConfirmed(_))) => {}
                Ok(_) => return Err(Error::Unexpected),
                // It cannot now; the answer is stored all the same.
                Err(Error::Denied { retry_ms: Some(_), .. }) => continue,
                Err(Error::Denied {
                    error: ErrorName::Request(Failure::Stopping | Failure::Unavailable),
                    ..
                }) => continue,
                Err(Error::Denied { .. }) => {}
                Err(error) => return Err(error),
            }
            self.state.acks.retain(|(_, one)| *one != turn);
            self.save()?;
        }
        Ok(())
    }

    /// The words are not what the server says they are: nothing of them is kept.
    fn refuse(&mut self, turn: &TurnId) -> Error {
        if let Some(one) = self.turns.find_mut(turn) {
            one.stage = Stage::Over(ErrorName::Content(Refused::RecordRefused));
            one.words.clear();
        }
        Refused::RecordRefused.into()
    }
}

/// What was found out and made around an answer, as the second part of a letter has it: the frames that a device would have heard,
/// one per line.
struct More {
    about: Option<About>,
    /// What is stored beside it.
    beside: Vec<BesideNote>,
    /// Whole, where nothing else was said.
    finish: Finish,
    made: Option<PostProcessingCompleted>,
}

impl More {
    fn read(lines: &str, chat: &ChatId, turn: &TurnId) -> Self {
        let mut more = Self { about: None, beside: Vec::new(), finish: Finish::Whole, made: None };
        for line in lines.lines() {
            match ServerFrame::read(line.as_bytes()).map(|frame| frame.event) {
                Ok(ServerEvent::AiTypingEnded(ended)) if (&ended.chat, &ended.turn) == (chat, turn) => {
                    more.beside = notes(ended.beside.as_ref());
                    (more.about, more.finish) = (Some(ended.about), ended.finish);
                }
                Ok(ServerEvent::PostProcessingCompleted(made))
                    if (&made.chat, &made.turn) == (chat, turn) =>
                {
                    more.made = Some(made);
                }
                _ => {}
            }
        }
        more
    }
}

/// Whether somebody still waits for an answer.
enum AskerState {
    Waits,
    GaveUp,
}

fn notes(sent: Option<&Sent<Beside, MAX_BESIDE>>) -> Vec<BesideNote> {
    sent.into_iter().flat_map(|sent| sent.iter()).map(BesideNote::from).collect()
}

/// Fields of a chat that has no title: title, icon and category.
fn about(about: &About) -> Result<Vec<(FieldName, String)>, Error> {
    let title = about.title.as_ref().filter(|title| !title.as_str().trim().is_empty());
    let Some(title) = title else { return Ok(Vec::new()) };
    let fields = [(TITLE, Some(title)), (ICON, about.icons.first()), (CATEGORY, about.category.as_ref())];
    let set = fields.into_iter().filter_map(|(name, body)| Some((name, body?)));
    set.map(|(name, body)| Ok((FieldName::parse(name)?, owned(body)))).collect()
}

/// As much of an answer as a message holds, and whether it is less than all of it.
fn fitted(words: &str) -> (&str, bool) {
    let mut size = 0;
    for (at, c) in words.char_indices() {
        size += match c {
            '"' | '\\' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if size > LARGEST {
            return (&words[..at], true);
        }
    }
    (words, false)
}

/// A list of texts as JSON; none if there are none.
fn json_of(texts: impl Iterator<Item = String>) -> Option<String> {
    let texts: Vec<String> = texts.collect();
    serde_json::to_string(&texts).ok().filter(|_| !texts.is_empty())
}

fn owned<const MAX: usize>(text: &Text<MAX>) -> String {
    text.as_str().to_owned()
}

/// Fields of a chat, besides its title.
const ICON: &str = "icon";
const CATEGORY: &str = "category";
const FOLLOW_UPS: &str = "follow-ups";
const SUMMARY: &str = "summary";
const TAGS: &str = "tags";
/// What the words of a message may take in JSON, beside everything else in it.
const LARGEST: usize = MAX_MESSAGE - 4096;
/// How often words of one turn may be missing.
const GAPS: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_where_a_message_ends() {
        assert_eq!(fitted("short"), ("short", false));
        let long = "\u{1}ü".repeat(40_000);
        let (cut, is_cut) = fitted(&long);
        assert!(is_cut && long.starts_with(cut));
        assert!(serde_json::to_string(cut).unwrap().len() <= LARGEST + 2);
    }
}
