//! A turn, from the question until its answer is stored: what it has said, and who hears it.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_chat_format::{AccountId, ChatId, Digest, MessageId, TurnId};
use confidant_chat_protocol::limits::{MAX_DELTA, MAX_QUERY};
use confidant_chat_protocol::{
    AiApprovalRequested, AiMessageUpdate, AiTypingEnded, ChatHistory, ChatMessageAdded, Given,
    PostProcessingCompleted, RequestChatHistory, ServerEvent, Text,
};
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use zeroize::{Zeroize as _, Zeroizing};

use super::proved::AskedAt;
use crate::answerer::{Answerer, Place};
use crate::service::refusals::{Answer, malformed, not_found, unavailable};
use crate::service::secret::random;
use crate::store::Millis;

/// Who answers, and which turns run in this process.
pub(crate) struct Answers {
    pub(crate) answerer: Option<Arc<dyn Answerer>>,
    pub(super) running: Mutex<HashMap<AccountId, Turns>>,
    /// What runs for them.
    tasks: Mutex<JoinSet<()>>,
}

debug_without_content!(Answers);

impl Answers {
    pub(crate) fn new(answerer: Option<Arc<dyn Answerer>>) -> Self {
        Self { answerer, running: Mutex::default(), tasks: Mutex::default() }
    }

    /// Runs what a turn needs, for as long as the process lives.
    pub(super) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Everything stops where it is, as in a process that is killed.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill(&self) {
        self.tasks.lock().abort_all();
        self.running.lock().clear();
    }

    pub(crate) fn answerer(&self) -> Answer<&Arc<dyn Answerer>> {
        self.answerer.as_ref().ok_or_else(|| unavailable("this server stores chats and gives no answers"))
    }

    pub(super) fn find(&self, account: &AccountId, turn: &TurnId) -> Option<Arc<Running>> {
        self.running.lock().get(account)?.find(turn)
    }

    /// Every turn that runs in this process.
    pub(super) fn all(&self) -> Vec<Arc<Running>> {
        self.running.lock().values().flat_map(|turns| turns.0.iter().cloned()).collect()
    }

    /// The turn goes: it is stored, or in the mailbox.
    pub(super) fn forget(&self, running: &Running) {
        let mut all = self.running.lock();
        if let Some(turns) = all.get_mut(&running.place.account)
            && turns.remove(&running.turn)
        {
            all.remove(&running.place.account);
        }
    }

    /// Forgets all turns of a chat, or of an account: they are heard by nobody from now on, and leave no letter.
    pub(crate) fn drop_turns(&self, account: &AccountId, chat: Option<&ChatId>) {
        let mut all = self.running.lock();
        let Some(turns) = all.get_mut(account) else { return };
        if turns.drop_of(chat) {
            all.remove(account);
        }
    }
}

/// The turns of one account, in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Turns(Vec<Arc<Running>>);

debug_without_content!(Turns);

impl Turns {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn find(&self, turn: &TurnId) -> Option<Arc<Running>> {
        self.0.iter().find(|running| running.turn == *turn).cloned()
    }

    /// Adds a turn; returns those of its chat that it waits for.
    pub(super) fn push(&mut self, running: Arc<Running>) -> Vec<Arc<Running>> {
        let before = self.0.iter().filter(|one| one.place.chat == running.place.chat && one.is_at_work());
        let before = before.cloned().collect();
        self.0.push(running);
        before
    }

    /// Removes a turn; whether none is left.
    pub(super) fn remove(&mut self, turn: &TurnId) -> bool {
        self.0.retain(|running| running.turn != *turn);
        self.0.is_empty()
    }

    /// Drops those of a chat, or all; whether none is left.
    pub(super) fn drop_of(&mut self, chat: Option<&ChatId>) -> bool {
        self.0.retain(|running| {
            let goes = chat.is_none_or(|chat| running.place.chat == *chat);
            if goes {
                running.drop_words();
            }
            !goes
        });
        self.0.is_empty()
    }
}

/// A part of a history, and the socket that it came from.
pub(super) type Part = (u64, ChatHistory);

/// A turn.
pub(super) struct Running {
    pub(super) place: Place,
    pub(super) turn: TurnId,
    /// The digest of the branch with its reply: who cannot name it hears nothing.
    pub(super) after: Digest,
    /// The message and its reply; of a turn that was asked for elsewhere nobody here may know them.
    pub(super) ids: Option<(MessageId, MessageId)>,
    buffer: Mutex<Buffer>,
    stage: watch::Sender<Stage>,
    /// Whether and why it is to end before it has an answer.
    called_off: watch::Sender<Option<CalledOff>>,
    /// Parts of the history, with the socket that they came from.
    history: Option<mpsc::Sender<Part>>,
    /// What the device that asks may be asked for.
    asks: Vec<Given>,
}

debug_without_content!(Running { place });

/// Takes what a device gives: names and words.
pub(super) type DataSender = oneshot::Sender<Vec<(String, String)>>;

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It has no answer yet.
    Runs,
    /// It waits for the person's word on a tool.
    Waits,
    /// The answer is there, or there is none.
    Over,
    /// A device has stored the answer, or nobody may have it any more.
    Done,
}

/// Why a turn is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CalledOff {
    /// Somebody cancelled it.
    Cancelled,
    /// Its chat or account went: nothing of it may stay.
    Dropped,
}

#[derive(Default)]
struct Buffer {
    /// The answer so far.
    words: Zeroizing<String>,
    /// How much of it was told.
    told: usize,
    /// What else was told, in its order.
    events: Vec<ServerEvent>,
    /// The tool that a word was asked for last, and since when.
    waits_for: Option<(Instant, AiApprovalRequested)>,
    /// Sockets that listen.
    seats: Vec<u64>,
    /// The socket that asked the question last: only it may be asked for the history.
    asker: Option<u64>,
    /// The history that is waited for.
    wanted: Option<RequestChatHistory>,
    /// What was asked for, and where it goes until it is given.
    data_requests: Vec<(Given, Option<DataSender>)>,
    /// Where the question stands.
    asked_at: Option<AskedAt>,
    /// Until when its mark says that it is in hand here, if it has one.
    in_hand: Option<Millis>,
}

impl Running {
    /// A turn, and where its history comes in.
    pub(super) fn new(place: Place, ask: &ChatMessageAdded) -> (Arc<Self>, mpsc::Receiver<Part>) {
        let (history, receiver) = mpsc::channel(HISTORY);
        let ids = Some((ask.message.clone(), ask.reply.clone()));
        let mut running = Self::with(place, &ask.turn, ask.after, ids, Some(history));
        running.asks = ask.asks.iter().copied().collect();
        (Arc::new(running), receiver)
    }

    /// A turn that was asked for before, and is only listened to. The message and its reply are those that the device names.
    pub(super) fn again(
        place: Place,
        turn: &TurnId,
        after: Digest,
        ids: Option<(MessageId, MessageId)>,
    ) -> Arc<Self> {
        Arc::new(Self::with(place, turn, after, ids, None))
    }

    fn with(
        place: Place,
        turn: &TurnId,
        after: Digest,
        ids: Option<(MessageId, MessageId)>,
        history: Option<mpsc::Sender<Part>>,
    ) -> Self {
        let ((stage, _), (called_off, _)) = (watch::channel(Stage::Runs), watch::channel(None));
        let (turn, buffer, asks) = (turn.clone(), Mutex::default(), Vec::new());
        Self { place, turn, after, ids, buffer, stage, called_off, history, asks }
    }

    /// Whether this is the same question.
    pub(super) fn is(&self, ask: &ChatMessageAdded) -> bool {
        let ids =
            self.ids.as_ref().is_none_or(|(message, reply)| *message == ask.message && *reply == ask.reply);
        self.place.chat == ask.chat && self.after == ask.after && ids
    }

    pub(super) fn listen(&self, seat: u64) {
        let mut buffer = self.buffer.lock();
        if !buffer.seats.contains(&seat) {
            buffer.seats.push(seat);
        }
    }

    /// Listens as the one who asks; the request for the history, if it is still waited for, and was not sent to this socket before.
    pub(super) fn listen_as_asker(&self, seat: u64) -> Option<RequestChatHistory> {
        self.listen(seat);
        let mut buffer = self.buffer.lock();
        let was_asker = buffer.asker.replace(seat) == Some(seat);
        buffer.wanted.clone().filter(|_| !was_asker)
    }

    /// The history is waited for, or no longer; who is asked for it.
    pub(super) fn wants(&self, wanted: Option<RequestChatHistory>) -> Option<u64> {
        let mut buffer = self.buffer.lock();
        buffer.wanted = wanted;
        buffer.asker
    }

    /// Listens, and gets what was told of it beyond what the device has.
    pub(super) fn listen_from(&self, seat: u64, from: usize) -> Answer<Vec<ServerEvent>> {
        self.listen(seat);
        let buffer = self.buffer.lock();
        let told = &buffer.words[..buffer.told];
        // Of a turn that runs elsewhere, the device may have heard more there than was heard here so far.
        let is_behind = self.history.is_none() && !self.is_over() && from <= MAX_QUERY;
        let from = if is_behind { from.min(told.len()) } else { from };
        let rest = told.get(from..).ok_or_else(|| malformed("the answer has no such place"))?;
        let mut events = self.updates(from, rest);
        events.extend(buffer.events.iter().cloned());
        if *self.stage.borrow() == Stage::Waits
            && let Some((since, asked)) = &buffer.waits_for
        {
            let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let expires_ms = asked.expires_ms.saturating_sub(passed);
            events
                .push(ServerEvent::AiApprovalRequested(AiApprovalRequested { expires_ms, ..asked.clone() }));
        }
        Ok(events)
    }

    /// Who listens now.
    pub(super) fn seats(&self) -> Vec<u64> {
        self.buffer.lock().seats.clone()
    }

    /// These do not listen any more.
    pub(super) fn leave(&self, gone: &[u64]) {
        self.buffer.lock().seats.retain(|seat| !gone.contains(seat));
    }

    /// More words of the answer, as far as a message may be long. Of one that was dropped nothing is kept.
    pub(super) fn hear(&self, words: &str) {
        let mut buffer = self.buffer.lock();
        if self.called_off() == Some(CalledOff::Dropped) {
            return;
        }
        let room = MAX_QUERY - buffer.words.len();
        buffer.words.push_str(&words[..words.floor_char_boundary(room.min(words.len()))]);
    }

    /// The answer begins, and what was heard of it before does not count.
    pub(super) fn begin_anew(&self) {
        let mut buffer = self.buffer.lock();
        buffer.words.zeroize();
        buffer.told = 0;
    }

    /// The whole answer, where it is another than what was heard. Then what was told is told anew.
    pub(super) fn set(&self, words: &str) {
        let mut buffer = self.buffer.lock();
        if self.called_off() != Some(CalledOff::Dropped) && *words != **buffer.words {
            let same = buffer.words.bytes().zip(words.bytes()).take_while(|(a, b)| a == b).count();
            let same = words.floor_char_boundary(same);
            buffer.told = buffer.told.min(same);
            *buffer.words = words[..words.floor_char_boundary(MAX_QUERY)].to_owned();
        }
    }

    /// The answer so far.
    pub(super) fn words(&self) -> Zeroizing<String> {
        self.buffer.lock().words.clone()
    }

    /// The answer, how it ended, and what was made of it, if it is there.
    pub(super) fn answer(
        &self,
    ) -> Option<(Zeroizing<String>, AiTypingEnded, Option<PostProcessingCompleted>)> {
        let buffer = self.buffer.lock();
        let ended = buffer.events.iter().find_map(|event| match event {
            ServerEvent::AiTypingEnded(ended) => Some(ended.clone()),
            _ => None,
        })?;
        let made = buffer.events.iter().find_map(|event| match event {
            ServerEvent::PostProcessingCompleted(made) => Some(made.clone()),
            _ => None,
        });
        Some((buffer.words.clone(), ended, made))
    }

    /// What was not told yet, which is told from now on.
    pub(super) fn untold(&self) -> Vec<ServerEvent> {
        let mut buffer = self.buffer.lock();
        let (from, to) = (buffer.told, buffer.words.len());
        buffer.told = to;
        self.updates(from, &buffer.words[from..])
    }

    /// Something else that was told, kept for who comes later.
    pub(super) fn keep(&self, event: &ServerEvent) {
        let mut buffer = self.buffer.lock();
        if self.called_off() != Some(CalledOff::Dropped) {
            buffer.events.push(event.clone());
        }
    }

    /// A tool that waits for the person's word: asked again of who comes later, until the word is there.
    pub(super) fn waits_for(&self, asked: AiApprovalRequested) {
        let mut buffer = self.buffer.lock();
        if self.called_off() != Some(CalledOff::Dropped) {
            buffer.waits_for = Some((Instant::now(), asked));
        }
    }

    fn updates(&self, from: usize, mut words: &str) -> Vec<ServerEvent> {
        let (mut at, mut updates) = (from, Vec::new());
        while !words.is_empty() {
            let (now, rest) = words.split_at(words.floor_char_boundary(MAX_DELTA));
            updates.push(ServerEvent::AiMessageUpdate(AiMessageUpdate {
                chat: self.place.chat.clone(),
                turn: self.turn.clone(),
                at: at as u64,
                text: Text::cut(now),
                pad: padding(),
            }));
            at += now.len();
            words = rest;
        }
        updates
    }

    /// Takes a part of the history from the socket that asked the question, and from no other.
    pub(super) fn take_history(&self, seat: Option<u64>, history: ChatHistory) -> Answer<()> {
        let seat = seat.filter(|seat| Some(*seat) == self.asker()).ok_or_else(not_found)?;
        let sender = self.history.as_ref().ok_or_else(not_found)?;
        sender.try_send((seat, history)).map_err(|_| not_found())
    }

    /// Something is wanted of the device that asked; which socket is asked for it. Nobody where it did not allow it, or was asked before.
    pub(super) fn request_data(&self, what: Given, reply: DataSender) -> Option<u64> {
        let mut buffer = self.buffer.lock();
        let was_asked = buffer.data_requests.iter().any(|(one, _)| *one == what);
        let asker = buffer.asker.filter(|_| self.asks.contains(&what) && !was_asked && !self.is_over())?;
        buffer.data_requests.push((what, Some(reply)));
        Some(asker)
    }

    /// Where something goes that the socket which asked the question gives, once.
    pub(super) fn take_data_sender(&self, seat: Option<u64>, what: Given) -> Answer<DataSender> {
        let mut buffer = self.buffer.lock();
        if seat.is_none() || seat != buffer.asker || self.is_over() {
            return Err(not_found());
        }
        let sender = buffer.data_requests.iter_mut().find(|(one, _)| *one == what);
        let sender = sender.and_then(|(_, sender)| sender.take()).filter(|sender| !sender.is_closed());
        sender.ok_or_else(not_found)
    }

    /// Nobody can be asked for this.
    pub(super) fn drop_data_request(&self, what: Given) {
        let sender = self
            .buffer
            .lock()
            .data_requests
            .iter_mut()
            .find(|(one, _)| *one == what)
            .map(|(_, sender)| sender.take());
        drop(sender);
    }

    /// Cancels; whether it runs.
    pub(super) fn cancel(&self) -> bool {
        self.call_off(CalledOff::Cancelled);
        !self.is_over()
    }

    /// One that was dropped stays so.
    fn call_off(&self, why: CalledOff) {
        self.called_off.send_if_modified(|now| {
            let is_new = *now != Some(CalledOff::Dropped) && *now != Some(why);
            if is_new {
                *now = Some(why);
            }
            is_new
        });
    }

    /// Whether it is to end, and why.
    pub(super) fn called_off(&self) -> Option<CalledOff> {
        *self.called_off.borrow()
    }

    /// Waits until it is to end.
    pub(super) async fn is_called_off(&self) {
        let mut called_off = self.called_off.subscribe();
        let _gone = called_off.wait_for(Option::is_some).await.map(drop);
    }

    /// Who may be asked for the history.
    pub(super) fn asker(&self) -> Option<u64> {
        self.buffer.lock().asker
    }

    /// Whether what was made of the answer was told.
    pub(super) fn is_made(&self) -> bool {
        let is_made = |event: &ServerEvent| matches!(event, ServerEvent::PostProcessingCompleted(_));
        self.buffer.lock().events.iter().any(is_made)
    }

    /// Waits until it is this far.
    pub(super) async fn reaches(&self, at: Stage) {
        let mut stage = self.stage.subscribe();
        // It does not go while somebody waits here.
        let _gone = stage.wait_for(|stage| *stage >= at).await.map(drop);
    }

    pub(super) fn is_over(&self) -> bool {
        *self.stage.borrow() >= Stage::Over
    }

    /// Whether the next turn of its chat has to wait for it. One that waits for a person holds up nobody.
    fn is_at_work(&self) -> bool {
        *self.stage.borrow() == Stage::Runs
    }

    /// Waits until the person has said a word on a tool, or it is over.
    pub(super) async fn is_decided(&self) {
        let mut stage = self.stage.subscribe();
        let _gone = stage.wait_for(|stage| *stage != Stage::Waits).await.map(drop);
    }

    /// Where the question stands, for the proof of its answer.
    pub(super) fn asked_at(&self, asked_at: AskedAt) {
        self.buffer.lock().asked_at = Some(asked_at);
    }

    pub(super) fn was_asked_at(&self) -> Option<AskedAt> {
        self.buffer.lock().asked_at
    }

    /// Its mark says that it is in hand here until then, or no longer.
    pub(super) fn in_hand(&self, until: Option<Millis>) {
        self.buffer.lock().in_hand = until;
    }

    pub(super) fn is_in_hand(&self) -> Option<Millis> {
        self.buffer.lock().in_hand
    }

    /// It is further now. A stage never comes again, but that a tool is waited for.
    pub(super) fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let further = to > *stage;
            if further {
                *stage = to;
            }
            further
        });
    }

    /// Whether this is what the person was asked last. Another word would end the turn without an answer, so it is refused before.
    pub(super) fn asked_last(&self, approval: &str) -> bool {
        let buffer = self.buffer.lock();
        buffer.waits_for.as_ref().is_some_and(|(_, asked)| asked.approval.as_str() == approval)
    }

    /// The person has said a word on a tool; whether it was waited for.
    pub(super) fn goes_on(&self) -> bool {
        self.stage.send_if_modified(|stage| {
            let waits = *stage == Stage::Waits;
            if waits {
                *stage = Stage::Runs;
            }
            waits
        })
    }

    pub(super) fn stored(&self) {
        self.advance(Stage::Done);
    }

    fn drop_words(&self) {
        self.call_off(CalledOff::Dropped);
        *self.buffer.lock() = Buffer::default();
        self.stored();
    }
}

/// Of a random length, so that the length of a frame tells less about its words.
fn padding() -> Text<{ confidant_chat_protocol::limits::MAX_PADDING }> {
    let bytes = random::<1>();
    let length = usize::from(bytes[0]) % (confidant_chat_protocol::limits::MAX_PADDING + 1);
    Text::cut(&" ".repeat(length))
}

/// Parts of a history that wait to be read.
const HISTORY: usize = 64;
