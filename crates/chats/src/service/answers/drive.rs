//! A turn at work: waits for the one before it, sees to its history, tells what comes, and leaves a letter if nobody takes the answer.

use std::sync::Arc;
use std::time::Duration;

use confidant_chat_format::{Claim, Digest, ItemId, Message, Refused, Role, Transcript, TranscriptKind};
use confidant_chat_protocol::limits::MAX_NUMBER;
use confidant_chat_protocol::{
    About, AiApprovalRequested, AiTaskFailed, AiTypingEnded, AiTypingStarted, Body as _, ChatMessageAdded,
    ErrorName, Failure, Finish, Given, Heard, HistoryReason, Keep, List, PostProcessingCompleted,
    PreprocessingStep, RefusedSent, RequestChatHistory, RequestClientData, ServerEvent, ServerFrame, Step,
    Text,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::beside;
use super::history::{self, Before};
use super::proved::{self, AskedAt};
use super::running::{CalledOff, Part, Running, Stage};
use crate::answerer::{AnswerEvent, AnswerStream, Approval, Ask, Branch, Have, Made, Place, Wants};
use crate::service::Inner;
use crate::service::refusals::{Answer, unavailable};
use crate::service::safety::SafetyRow;

/// Runs a turn to its end.
pub(super) async fn drive(
    service: Arc<Inner>,
    running: Arc<Running>,
    ask: ChatMessageAdded,
    before: Vec<Arc<Running>>,
    mut history: mpsc::Receiver<Part>,
) {
    let those_before = async {
        for one in before {
            one.reaches(Stage::Waits).await;
        }
    };
    tokio::select! {
        () = those_before => {}
        () = running.is_called_off() => {}
    }
    let mut overtaken = Overtaken::AskAgain;
    loop {
        match begin(&service, &running, ask.clone(), &mut history).await {
            Ok(telling) => match hear_out(&service, &running, telling, overtaken).await {
                Ended::Overtaken => overtaken = Overtaken::Fails,
                Ended::Here => return forget_dropped(&service, &running).await,
            },
            Err(refused) => return fail(&service, &running, &refused).await,
        }
    }
}

/// What is to be done if another turn of the chat was faster, at another gateway: what was there when this one was looked at is not
/// there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overtaken {
    /// It is looked at again, and the device asked for the history; once.
    AskAgain,
    /// There is no answer.
    Fails,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// There is nothing more to do.
    Here,
    /// It did not begin, since another one was faster.
    Overtaken,
}

async fn begin(
    service: &Arc<Inner>,
    running: &Running,
    ask: ChatMessageAdded,
    parts: &mut mpsc::Receiver<Part>,
) -> Answer<AnswerStream> {
    on_time(running)?;
    let answerer = Arc::clone(service.answers.answerer()?);
    let have = answerer.have(&running.place).await?;
    let (have, is_proved) = service.known_branch(&running.place, have, &ask).await?;
    let wanted = match history::compare(&have, &ask) {
        Before::Kept(kept) if !ask.history => Err((None, kept.transcript, is_proved)),
        Before::Nothing => {
            let transcript = Transcript::start();
            let is_proved = service.is_first(&running.place, &ask.message).await?;
            Err((Some(Branch { lines: Vec::new(), transcript }), transcript, is_proved))
        }
        Before::Kept(kept) => Ok((HistoryReason::Other, kept.messages)),
        Before::Wanted(reason, have) => Ok((reason, have)),
    };
    let (history, before, is_proved) = match wanted {
        Err(known) => known,
        Ok((reason, have)) => {
            if !ask.history {
                // What was given for a request before is no answer to this one.
                while parts.try_recv().is_ok() {}
                let (chat, turn, message) = (ask.chat.clone(), ask.turn.clone(), ask.message.clone());
                let request = RequestChatHistory { chat, turn, message, reason, have };
                let asker = running.wants(Some(request.clone()));
                let event = ServerEvent::RequestChatHistory(request);
                let frame = Arc::new(ServerFrame { re: None, seq: None, event });
                // A device that only listens gives none, so it is not asked.
                asker.map(|seat| service.hub.send(&running.place.account, seat, &frame));
            }
            let heard = wait_for_history(service, running, ask.count, parts).await;
            running.wants(None);
            let heard = heard?;
            let key = service.vault.key(&running.place.account, None).await?;
            let key = key.ok_or_else(|| unavailable("the server has lost the account's key"))?;
            let (branch, is_proved) = history::prove(&key, &running.place.chat, heard);
            let transcript = branch.transcript;
            (Some(branch), transcript, is_proved)
        }
    };
    let transcript = before.then(TranscriptKind::User, ask.text.as_str());
    let asked_at = AskedAt { transcript, is_proved };
    running.asked_at(asked_at);
    let mut question = question(running, ask, (before, transcript), history);
    if !is_proved {
        service.distrust(&mut question).await?;
    }
    service.mark(running, asked_at).await;
    question.safety = service.known_safety(running).await?.map(|row| row.bytes.to_vec());
    on_time(running)?;
    Ok(answerer.answer(question))
}

/// One that was called off meanwhile does not begin.
fn on_time(running: &Running) -> Answer<()> {
    match running.called_off() {
        None => Ok(()),
        Some(_) => Err(unavailable("the turn was cancelled before it began")),
    }
}

/// Waits for the history. If the turn is called off, or the device that asked is gone and does not come back, nobody waits any longer:
/// other questions of the chat are behind this one.
async fn wait_for_history(
    service: &Inner,
    running: &Running,
    count: u32,
    parts: &mut mpsc::Receiver<Part>,
) -> Answer<Vec<Heard>> {
    let mut absent = 0;
    let deserted = async {
        while absent < ABSENT {
            tokio::time::sleep(LOOK).await;
            let asker = running.asker();
            let is_there = asker.is_some_and(|seat| service.hub.is_seated(&running.place.account, seat));
            absent = if is_there { 0 } else { absent + 1 };
        }
    };
    tokio::select! {
        heard = history::collect(parts, count, Instant::now() + HISTORY) => heard,
        () = running.is_called_off() => Err(unavailable("the turn was cancelled before it began")),
        () = deserted => Err(unavailable("the device went before it sent the history")),
    }
}

fn question(
    running: &Running,
    ask: ChatMessageAdded,
    (before, transcript): (Transcript, Transcript),
    history: Option<Branch>,
) -> Ask {
    let texts = |list: Vec<Text<{ confidant_chat_protocol::limits::MAX_SHORT }>>| {
        list.into_iter().map(|text| text.as_str().to_owned()).collect()
    };
    let given = |wanted: &[Given]| {
        let pieces = ask.given.iter().filter(|piece| wanted.contains(&piece.what));
        pieces.map(|piece| (piece.name.as_str().to_owned(), piece.text.as_str().to_owned())).collect()
    };
    let (settings, past) = (given(&[Given::Settings]), given(&[Given::Summary, Given::Search]));
    Ask {
        place: running.place.clone(),
        turn: ask.turn,
        text: ask.text.as_str().to_owned(),
        claim: Claim { count: ask.count, before: ask.before, after: ask.after },
        before,
        transcript,
        history,
        titled: ask.titled,
        focus: ask.focus.map(|focus| focus.as_str().to_owned()),
        off: texts(ask.off.into_vec()),
        available: texts(ask.available.into_vec()),
        settings,
        past,
        asks: ask.asks.into_vec(),
        safety: None,
        remembers: ask.remembers.map(confidant_chat_protocol::List::into_vec),
    }
}

/// Tells what comes, until the end; then waits until a device has stored the answer. Of a chat that went meanwhile nothing stays, also
/// if the turn has kept something since.
pub(super) async fn hear(service: Arc<Inner>, running: Arc<Running>, telling: AnswerStream) {
    hear_out(&service, &running, telling, Overtaken::Fails).await;
    forget_dropped(&service, &running).await;
}

async fn forget_dropped(service: &Inner, running: &Running) {
    if running.called_off() != Some(CalledOff::Dropped) {
        return;
    }
    let Some(answerer) = &service.answers.answerer else { return };
    let Place { account, chat, .. } = &running.place;
    let forgotten = match answerer.end(&running.place).await {
        Ok(()) => service.forget_all(account, chat).await,
        Err(refused) => Err(refused),
    };
    if let Err(refused) = forgotten {
        tracing::warn!(reason = refused.error.name(), "chats: words of a deleted chat may still be kept");
    }
}

async fn hear_out(
    service: &Arc<Inner>,
    running: &Arc<Running>,
    telling: AnswerStream,
    overtaken: Overtaken,
) -> Ended {
    let Err(refused) = tell(service, running, telling).await else { return Ended::Here };
    let is_overtaken = refused.error == ErrorName::Content(Refused::Conflict) && running.words().is_empty();
    if is_overtaken && overtaken == Overtaken::AskAgain {
        return Ended::Overtaken;
    }
    fail(service, running, &refused).await;
    Ended::Here
}

/// Tells what comes. An error is why there is no answer.
async fn tell(service: &Arc<Inner>, running: &Arc<Running>, mut telling: AnswerStream) -> Answer<()> {
    let mut began = false;
    let mut flush = None;
    loop {
        let said = match flush {
            None => telling.recv().await,
            Some(at) => match tokio::time::timeout_at(at, telling.recv()).await {
                Ok(said) => said,
                Err(_) => {
                    flush = None;
                    tell_words(service, running);
                    continue;
                }
            },
        };
        match said {
            Some(AnswerEvent::Progress(text)) => {
                let event = PreprocessingStep {
                    chat: running.place.chat.clone(),
                    turn: running.turn.clone(),
                    step: if began { Step::Working } else { Step::Preparing },
                    text: Text::cut(&text),
                };
                publish(service, running, ServerEvent::PreprocessingStep(event));
            }
            Some(AnswerEvent::Anew) => running.begin_anew(),
            Some(AnswerEvent::Delta(words)) => {
                if !std::mem::replace(&mut began, true) {
                    let (chat, turn) = (running.place.chat.clone(), running.turn.clone());
                    publish(service, running, ServerEvent::AiTypingStarted(AiTypingStarted { chat, turn }));
                }
                running.hear(&words);
                flush = flush.or_else(|| Some(Instant::now() + TOGETHER));
            }
            Some(AnswerEvent::Wants(wants)) => ask_device(service, running, *wants),
            Some(AnswerEvent::Final(answer)) => {
                running.set(&answer.text);
                flush = None;
                end(service, running, *answer).await;
            }
            Some(AnswerEvent::Approval(approval)) => match wait_for_word(service, running, *approval).await {
                Some(elsewhere) => telling = elsewhere,
                None => return Ok(()),
            },
            Some(AnswerEvent::Failed(refused)) => return Err(refused),
            Some(AnswerEvent::Stopped) => {
                flush = None;
                let text = running.words().to_string();
                if text.is_empty() {
                    return Err(unavailable("the turn was cancelled before anything was said"));
                }
                service.note_unanswered(running).await;
                end(service, running, crate::answerer::Answer::stopped(text)).await;
            }
            Some(AnswerEvent::Made(made)) => {
                keep(service, running, ServerEvent::PostProcessingCompleted(made_event(running, *made)));
            }
            None => break,
        }
    }
    if !running.is_over() {
        return Err(unavailable("the answer was cut off"));
    }
    if !running.is_made() {
        // Whoever waits for it learns that nothing comes.
        let nothing = made_event(running, Made::default());
        keep(service, running, ServerEvent::PostProcessingCompleted(nothing));
    }
    settle(service, running).await;
    Ok(())
}

/// Asks the device that began the turn, if it allowed that and is there; each kind once.
fn ask_device(service: &Inner, running: &Running, wants: Wants) {
    let Wants { what, names, query, reply } = wants;
    let Some(seat) = running.request_data(what, reply) else { return };
    let event = ServerEvent::RequestClientData(RequestClientData {
        chat: running.place.chat.clone(),
        turn: running.turn.clone(),
        what,
        names: cut_list(&names),
        query: query.map(|query| Text::cut(&query)),
    });
    let frame = Arc::new(ServerFrame { re: None, seq: None, event });
    if !service.hub.send(&running.place.account, seat, &frame) {
        // It is gone: nobody waits for it.
        running.drop_data_request(what);
    }
}

/// The answer is there: tells what was not told of it, and how it ended.
async fn end(service: &Inner, running: &Running, answer: crate::answerer::Answer) {
    tell_words(service, running);
    service.note_safety(running, answer.safety.as_deref()).await;
    let ended = ended(service, running, answer).await;
    keep(service, running, ServerEvent::AiTypingEnded(ended));
    running.advance(Stage::Over);
}

/// Asks for the person's word on a tool, and waits for it. What comes after it, if it was said at another gateway; if it was said here, somebody
/// else tells that. After a while the turn is forgotten here: a device that comes back takes it up again.
async fn wait_for_word(service: &Inner, running: &Running, approval: Approval) -> Option<AnswerStream> {
    service.note_unanswered(running).await;
    let asked = AiApprovalRequested {
        chat: running.place.chat.clone(),
        turn: running.turn.clone(),
        approval: Text::cut(&approval.id),
        tool: Text::cut(&approval.tool),
        input: Text::cut(&approval.input),
        why: Text::cut(&approval.why),
        expires_ms: u64::try_from(approval.left.as_millis()).unwrap_or(u64::MAX).min(MAX_NUMBER),
    };
    // It waits before anybody hears so: the word may come at once.
    running.waits_for(asked.clone());
    running.advance(Stage::Waits);
    publish(service, running, ServerEvent::AiApprovalRequested(asked));
    let answerer = service.answers.answerer.as_ref()?;
    tokio::select! {
        biased;
        () = running.is_decided() => None,
        telling = answerer.decided_elsewhere(&running.place, &running.turn, &approval.id) => {
            running.goes_on().then_some(telling)
        }
        () = tokio::time::sleep(UNDECIDED) => {
            service.answers.forget(running);
            None
        }
    }
}

/// Waits until the answer is stored, or leaves it in the mailbox.
async fn settle(service: &Arc<Inner>, running: &Running) {
    if timeout(service.settings.unstored, running.reaches(Stage::Done)).await.is_err() {
        leave(service, running).await;
    }
    service.answers.forget(running);
}

/// Leaves the answer in the mailbox, and keeps nothing of it here that is not to be kept.
pub(super) async fn leave(service: &Inner, running: &Running) {
    let is_gone = service.leave(running).await;
    let Place { account, chat, keep } = &running.place;
    let Some(answerer) = service.answers.answerer.as_ref().filter(|_| is_gone || *keep == Keep::Turn) else {
        return;
    };
    let forgotten = match answerer.end(&running.place).await {
        Ok(()) if is_gone => service.forget_all(account, chat).await,
        ended => ended,
    };
    if let Err(refused) = forgotten {
        tracing::warn!(
            reason = refused.error.name(),
            "chats: words that were for one turn, or of a deleted chat, are still kept"
        );
    }
}

pub(super) async fn ended(
    service: &Inner,
    running: &Running,
    answer: crate::answerer::Answer,
) -> AiTypingEnded {
    let words = running.words();
    let cut = words.len() < answer.text.len();
    let key = match &running.ids {
        Some(_) => service.vault.key(&running.place.account, None).await.ok().flatten(),
        None => None,
    };
    let (end, beside) = match (running.was_asked_at(), &key) {
        (Some(AskedAt { transcript, is_proved }), Some(key)) => {
            let key = proved::key(key, is_proved);
            let (before, beside) = beside::prove(&key, running, transcript, &answer);
            let transcript = before.then(TranscriptKind::Assistant, &words);
            (Some(AskedAt { transcript, is_proved }), beside)
        }
        // What tools said cannot be proved without the place that it continues; nor can an answer to it, then.
        _ if cut || !answer.said.is_empty() => (None, None),
        _ => (service.stands_at(running).await, None),
    };
    let proof = match (&running.ids, end, &key) {
        (Some((_, reply)), Some(AskedAt { transcript, is_proved }), Some(key)) => {
            let key = proved::key(key, is_proved);
            Some(transcript.prove(&key, &running.place.chat, reply, TranscriptKind::Assistant))
        }
        _ => None,
    };
    AiTypingEnded {
        chat: running.place.chat.clone(),
        turn: running.turn.clone(),
        bytes: words.len() as u64,
        hash: Digest::of(words.as_bytes()),
        finish: if cut { Finish::Cut } else { answer.finish },
        proof,
        model: answer.model.map(|model| Text::cut(&model)),
        about: About {
            title: answer.title.map(|title| Text::cut(&title)),
            icons: cut_list(&answer.icons),
            category: answer.category.map(|category| Text::cut(&category)),
            reason: answer.reason.map(|reason| Text::cut(&reason)),
            focus: answer.focus.map(|focus| Text::cut(&focus)),
            tools: cut_list(&answer.tools),
            wanted: cut_list(&answer.wanted),
            care: answer.care,
        },
        beside,
    }
}

pub(super) fn made_event(running: &Running, made: Made) -> PostProcessingCompleted {
    PostProcessingCompleted {
        chat: running.place.chat.clone(),
        turn: running.turn.clone(),
        follow_ups: cut_list(&made.follow_ups),
        new_chats: cut_list(&made.new_chats),
        summary: made.summary.map(|summary| Text::cut(&summary)),
        tags: cut_list(&made.tags),
    }
}

/// As many texts as fit, each as far as it fits.
fn cut_list<const EACH: usize, const MANY: usize>(texts: &[String]) -> List<Text<EACH>, MANY> {
    let texts = texts.iter().take(MANY).map(|text| Text::cut(text)).collect();
    List::new(texts).unwrap_or_default()
}

/// There is no answer here. There may be one elsewhere, or later.
pub(super) async fn fail(service: &Inner, running: &Running, refused: &RefusedSent) {
    let event = AiTaskFailed {
        chat: running.place.chat.clone(),
        turn: running.turn.clone(),
        error: refused.error,
        what: refused.what.clone(),
        hint: refused.hint.clone(),
    };
    service.note_unanswered(running).await;
    // Kept: a device that begins to listen just now hears it as well.
    keep(service, running, ServerEvent::AiTaskFailed(event));
    running.advance(Stage::Over);
    service.let_go_of(running).await;
    service.answers.forget(running);
}

fn tell_words(service: &Inner, running: &Running) {
    for event in running.untold() {
        publish(service, running, event);
    }
}

/// Tells it, and keeps it for devices that come later.
fn keep(service: &Inner, running: &Running, event: ServerEvent) {
    running.keep(&event);
    publish(service, running, event);
}

/// Tells who listens.
pub(super) fn publish(service: &Inner, running: &Running, event: ServerEvent) {
    let frame = Arc::new(ServerFrame { re: None, seq: None, event });
    let gone: Vec<u64> = running
        .seats()
        .into_iter()
        .filter(|seat| !service.hub.send(&running.place.account, *seat, &frame))
        .collect();
    if !gone.is_empty() {
        running.leave(&gone);
    }
}

impl Inner {
    /// Where the transcript stands with the answer of a turn that was asked for elsewhere: what is kept of the branch says so, if it ends with that.
    async fn stands_at(&self, running: &Running) -> Option<AskedAt> {
        let answerer = self.answers.answerer.as_ref().filter(|_| running.ids.is_some())?;
        let Ok(Have::There(kept)) = answerer.have(&running.place).await else { return None };
        for is_proved in [true, false] {
            let after = self.kept_as(&running.place, running.after, is_proved).await;
            if after.is_ok_and(|after| after == kept.digest) {
                return Some(AskedAt { transcript: kept.transcript, is_proved });
            }
        }
        None
    }

    /// Whether a device has stored the answer.
    pub(super) async fn is_stored(&self, running: &Running) -> bool {
        let (Some((_, reply)), Place { account, chat, .. }) = (&running.ids, &running.place) else {
            return false;
        };
        let stored = self.store.items(account, chat, vec![ItemId::Message(reply.clone())], 0).await;
        stored.is_ok_and(|rows| !rows.is_empty())
    }

    /// Leaves an answer in the mailbox. One that was not to be kept longer than its turn is left there too: only the owner can open it.
    /// Says whether its chat is gone, as another gateway may have deleted it.
    async fn leave(&self, running: &Running) -> bool {
        let Some((message, reply)) = &running.ids else { return false };
        let Some((words, ended, made)) = running.answer() else { return false };
        let Place { account, chat, .. } = &running.place;
        // A device may have stored it at another gateway.
        if self.is_stored(running).await {
            // Where that fails, others find out the same.
            let _mark = self.store.drop_mark(account, chat, &running.turn).await;
            return false;
        }
        let letter = Message {
            v: 1,
            role: Role::Assistant,
            parent: Some(message.clone()),
            created_at: self.now().0,
            body: words.to_string(),
            model: ended.model.as_ref().map(|model| model.as_str().to_owned()),
            reason: ended.about.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            refs: Vec::new(),
            proof: ended.proof,
            shared: Vec::new(),
        };
        let left = self.leave_letter(account, chat, &running.turn, reply, &letter).await;
        let is_missing = |refused: &RefusedSent| refused.error == ErrorName::Request(Failure::NotFound);
        let is_gone = left.as_ref().is_err_and(is_missing);
        let left = match left {
            Ok(_) => self.leave_events(running, ended, made).await,
            Err(refused) => Err(refused),
        };
        if left.as_ref().is_err_and(|refused| refused.error == ErrorName::Request(Failure::TooLarge)) {
            // No chat could ever store it.
            let _mark = self.store.drop_mark(account, chat, &running.turn).await;
        }
        // `not-found`: its chat went, or a device at another gateway has stored the answer.
        if let Err(refused) = left.as_ref()
            && !is_missing(refused)
        {
            tracing::warn!(
                reason = refused.error.name(),
                "chats: an answer that nobody took could not be left in the mailbox"
            );
        }
        is_gone
    }

    /// How the answer ended and what was made of it, as they would have been sent: a frame in each line.
    async fn leave_events(
        &self,
        running: &Running,
        ended: AiTypingEnded,
        made: Option<PostProcessingCompleted>,
    ) -> Answer<()> {
        let mut body = String::new();
        let made = made.map(ServerEvent::PostProcessingCompleted);
        for event in [ServerEvent::AiTypingEnded(ended)].into_iter().chain(made) {
            let frame = ServerFrame { re: None, seq: None, event }.write()?;
            body.push_str(&String::from_utf8_lossy(&frame));
            body.push('\n');
        }
        let Place { account, chat, .. } = &running.place;
        let more = confidant_chat_format::Text { v: 1, body };
        self.leave_more(account, chat, &running.turn, &more).await.map(drop)
    }

    /// What is known of the chat's safety; nothing of a chat that is not stored.
    async fn known_safety(&self, running: &Running) -> Answer<Option<SafetyRow>> {
        match self.safety(&running.place.account, &running.place.chat).await {
            Err(refused) if refused.error == ErrorName::Request(Failure::NotFound) => Ok(None),
            known => known,
        }
    }

    /// Remembers what a turn without an answer, or without one yet, has added. Where that cannot be asked now, the next turn of the chat finds
    /// it in what is kept of the chat.
    async fn note_unanswered(&self, running: &Running) {
        let (Some(answerer), Ok(known)) = (&self.answers.answerer, self.known_safety(running).await) else {
            return;
        };
        let known = known.as_ref().map(|row| row.bytes.as_slice());
        let now = answerer.safety(&running.place, known).await;
        self.note_safety(running, now.ok().flatten().as_deref()).await;
    }

    /// Remembers what is known now, if it is something else. Somebody else may do so at the same time: then theirs is looked at again.
    pub(super) async fn note_safety(&self, running: &Running, now: Option<&[u8]>) {
        let Some(now) = now else { return };
        for _ in 0..NOTES {
            let before = match self.known_safety(running).await {
                Ok(row) if row.as_ref().is_some_and(|row| *row.bytes == now) => return,
                Ok(row) => row.map_or(0, |row| row.rev),
                Err(_) => break,
            };
            let noted = self.remember_safety(&running.place.account, &running.place.chat, before, now).await;
            match noted {
                Err(refused) if refused.error == ErrorName::Content(Refused::Conflict) => {}
                Err(refused) if refused.error == ErrorName::Request(Failure::NotFound) => return,
                Err(_) => break,
                Ok(_) => return,
            }
        }
        tracing::warn!("chats: what is known of a chat's safety could not be stored");
    }
}

/// How long a device may take to send its history.
const HISTORY: Duration = Duration::from_secs(120);
/// How often it is looked whether that device is still there, and how often in a row it may not be.
const LOOK: Duration = Duration::from_secs(2);
const ABSENT: u8 = 3;
/// Words that come within this go in one frame, so that their rhythm tells less.
const TOGETHER: Duration = Duration::from_millis(40);
/// How often a note of a chat's safety is tried.
const NOTES: usize = 4;
/// How long a turn that waits for a person is remembered.
const UNDECIDED: Duration = Duration::from_secs(600);
