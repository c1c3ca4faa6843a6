//! Answers in chats that only their owner can open: the engine's sessions, as chats ask for them.
//!
//! ```text
//! chats ──Ask──▶ EngineAnswerer ──▶ WebSessions ──▶ Session::turn ─▶ Outbound
//!       ◀─AnswerEvent── (one task a turn) ◀───────────────────────────┘
//!                                  ◀── follow: turns of other processes, word by word where there is a Redis, and their end from the log
//! ```
//!
//! The engine keeps the digest of a branch with its words. Where its transcript stands is remembered here, and made again from the words
//! where nobody remembers it. Easy to get wrong: a digest that nobody checked. Whoever asks for an answer again names it, and gets nothing without it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest, Transcript, TranscriptKind, TurnId};
use confidant_chat_protocol::{
    Care, ErrorName, FOCUS_MODE, Failure, Finish, Given, Keep, RefusedSent, Remembered,
};
use confidant_chats::answerer::{
    Answer, AnswerEvent, AnswerStream, Answerer, Approval, Ask, Branch, Have, Kept, Left, Made, Offer,
    Offers, Place, SummedUp, Wants,
};
use confidant_display::{Hinted as _, debug_without_content};
use confidant_engine::approval::{ApprovalRequest, Decider, Decision};
use confidant_engine::aspects::{FocusMode, Profile};
use confidant_engine::bus::{Followed, Following};
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_engine::head::{self, HeadState};
use confidant_engine::prepare::SafetyAction;
use confidant_engine::tools::Tool;
use confidant_engine::turn::{
    Beside, CarryOut, DataRequest, Ending, Enrichment, Final, History, MadeOfIt, MayAsk, Offered, Outbound,
    PastChat, Piece, Recorded, SafetyRecord, SaidBy, Standing, SwitchedOff, Told, Turn, Wanted,
};
use confidant_engine::{Error, Session, TurnRequest, WebSessions};
use confidant_redact::visible_line;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};

/// The engine, as it answers in chats.
pub(crate) struct EngineAnswerer {
    sessions: WebSessions,
    /// Where words are kept that may be kept.
    keep: confidant_engine::Keep,
    shared: Arc<Mutex<Warm>>,
}

debug_without_content!(EngineAnswerer);

/// What is remembered from turn to turn.
#[derive(Default)]
struct Warm {
    /// Where transcripts stand, by the digest that they belong to.
    stands: HashMap<Whose, (Digest, Transcript)>,
    /// Sessions that live as long as somebody holds them.
    held: HashMap<Whose, Session>,
}

/// A chat, with the account that it is of: chats are named by devices.
type Whose = (AccountId, ChatId);

fn whose(place: &Place) -> Whose {
    (place.account.clone(), place.chat.clone())
}

impl Warm {
    fn stand(&mut self, whose: Whose, digest: Digest, transcript: Transcript) {
        if self.stands.len() >= STANDS {
            // Any of them: it is made again from the words.
            self.stands.clear();
        }
        self.stands.insert(whose, (digest, transcript));
    }

    fn forget(&mut self, whose: &Whose) {
        self.stands.remove(whose);
        self.held.remove(whose);
    }
}

impl EngineAnswerer {
    pub(crate) fn new(sessions: WebSessions, keep: confidant_engine::Keep) -> Self {
        Self { sessions, keep, shared: Arc::default() }
    }

    fn kept_where(&self, keep: Keep) -> confidant_engine::Keep {
        match keep {
            Keep::Cache => self.keep,
            Keep::Turn => confidant_engine::Keep::Once,
        }
    }

    fn session(&self, place: &Place) -> Result<Session, RefusedSent> {
        let keep = self.kept_where(place.keep);
        self.sessions.session(place.account.as_str(), place.chat.as_str(), keep).map_err(refused)
    }

    /// Runs a turn and tells what comes of it. One that was begun before may run in another process and tell here only how it ends, so its words
    /// are followed.
    fn tell(
        &self,
        place: &Place,
        (turn, remembers): (TurnId, Option<Vec<Remembered>>),
        begin: impl FnOnce(&Session, bool) -> Turn + Send + 'static,
        asked: Option<(Digest, Transcript)>,
    ) -> AnswerStream {
        let (sender, receiver) = mpsc::channel(64);
        let (sessions, shared, place) = (self.sessions.clone(), Arc::clone(&self.shared), place.clone());
        let keep = self.kept_where(place.keep);
        tokio::spawn(async move {
            let session = match sessions.open(place.account.as_str(), place.chat.as_str(), keep).await {
                Ok(session) => session,
                Err(error) => return drop(sender.send(AnswerEvent::Failed(refused(error))).await),
            };
            if place.keep == Keep::Turn {
                shared.lock().held.insert(whose(&place), session.clone());
            }
            let mut words = words_of(&session, &turn, asked.is_some()).await;
            let concepts = see_to_concepts(&sessions, &place, keep, remembers.as_deref()).await;
            let mut turn = begin(&session, concepts);
            while let Some(event) = next(&mut turn, &mut words, &sender).await {
                if let (Outbound::Final(answer), Some((digest, transcript))) = (&event, asked) {
                    let tools = answer.metadata.beside.as_ref().map(|beside| beside.tools.as_slice());
                    let tools = tools.unwrap_or_default().iter();
                    let said = tools.fold(transcript, |at, text| at.then(TranscriptKind::Tool, text));
                    let transcript = said.then(TranscriptKind::Assistant, &answer.content);
                    shared.lock().stand(whose(&place), digest, transcript);
                }
                if let Some(said) = said(event) {
                    // Nobody listens: the turn goes on all the same.
                    let _gone = sender.send(said).await;
                }
            }
        });
        receiver
    }
}

#[async_trait]
impl Answerer for EngineAnswerer {
    async fn have(&self, place: &Place) -> Result<Have, RefusedSent> {
        let session = self.session(place)?;
        let head = match session.head().await.map_err(refused)? {
            HeadState::Missing => return Ok(Have::Missing),
            HeadState::Unreadable(_) => return Ok(Have::Unreadable),
            HeadState::Known(head) => head,
        };
        let digest = Digest::from_bytes(*head.digest.as_bytes());
        let remembered =
            self.shared.lock().stands.get(&whose(place)).filter(|(of, _)| *of == digest).copied();
        let transcript = match remembered {
            Some((_, transcript)) => transcript,
            None => match session.told().await.map_err(refused)? {
                Some(Told { after, lines }) => {
                    let after = after.map(|after| Transcript::resume(Digest::from_bytes(*after.as_bytes())));
                    let after = after.unwrap_or_else(Transcript::start);
                    let transcript = lines.iter().fold(after, |at, (by, text)| at.then(kind(*by), text));
                    self.shared.lock().stand(whose(place), digest, transcript);
                    transcript
                }
                None => return Ok(Have::Missing),
            },
        };
        let messages = u32::try_from(head.count).unwrap_or(u32::MAX);
        Ok(Have::There(Kept { messages, digest, transcript }))
    }

    fn answer(&self, ask: Ask) -> AnswerStream {
        let (place, asked) = (ask.place.clone(), (ask.claim.after, ask.transcript));
        let (turn, remembers) = (ask.turn.clone(), ask.remembers.clone());
        let begin = move |session: &Session, concepts| session.turn(request(ask, concepts));
        self.tell(&place, (turn, remembers), begin, Some(asked))
    }

    async fn again(
        &self,
        place: &Place,
        turn: &TurnId,
        digest: &Digest,
    ) -> Result<Option<AnswerStream>, RefusedSent> {
        let session = self.session(place)?;
        let claimed = session.claimed(turn.as_str()).await.map_err(refused)?.map(|claim| claim.after);
        let named = match claimed {
            Some(after) => Some(after),
            None => match session.head().await.map_err(refused)? {
                HeadState::Known(head) => Some(head.digest),
                _ => None,
            },
        };
        if named != Some(head::Digest::from_bytes(*digest.as_bytes())) {
            return Ok(None);
        }
        let (sender, receiver) = mpsc::channel(64);
        tokio::spawn(follow(session, turn.clone(), sender));
        Ok(Some(receiver))
    }

    async fn left(&self, place: &Place, turn: &TurnId) -> Result<Left, RefusedSent> {
        let session = self.session(place)?;
        match session.standing(turn.as_str()).await {
            Ok(Standing::Ended(Ending::Answer(answer))) => {
                let (answer, made) = from_log(&session, turn, answer).await.map_err(refused)?;
                // Its title is with it, and what is made of it soon is.
                let made = match made {
                    MadeOfIt::Soon => return Ok(Left::Runs),
                    made => made_of_it(&session, turn, made).await,
                };
                Ok(Left::Answer(Box::new(answer), made.map(Box::new)))
            }
            Ok(Standing::Running | Standing::Decided | Standing::Ended(Ending::Approval(_))) => {
                Ok(Left::Runs)
            }
            Ok(Standing::Failed(_)) | Err(Error::Erased | Error::AnswerGone) => Ok(Left::Nothing),
            Err(error) => Err(refused(error)),
        }
    }

    async fn decided_elsewhere(&self, place: &Place, turn: &TurnId, approval: &str) -> AnswerStream {
        // What is kept for one turn is in this process's memory, and decided here.
        let session = match self.session(place) {
            Ok(session) if place.keep == Keep::Cache => session,
            _ => return std::future::pending().await,
        };
        loop {
            tokio::time::sleep(LOOK_FOR_WORD).await;
            // What cannot be read now is looked at again.
            match session.standing(turn.as_str()).await {
                Ok(Standing::Ended(Ending::Approval(still))) if still.approval_id == approval => {}
                Ok(_) | Err(Error::Erased | Error::AnswerGone) => break,
                Err(_) => {}
            }
        }
        let (sender, receiver) = mpsc::channel(64);
        tokio::spawn(follow(session, turn.clone(), sender));
        receiver
    }

    fn decide(&self, place: &Place, turn: &TurnId, approval: &str, allow: bool) -> AnswerStream {
        let decision = if allow { Decision::Approve } else { Decision::Deny };
        let (approval, by) = (approval.to_owned(), Decider::Person(place.account.as_str().to_owned()));
        let decide = move |session: &Session, _| session.decide(&approval, decision, by, CarryOut::Here);
        self.tell(place, (turn.clone(), None), decide, None)
    }

    async fn cancel(&self, place: &Place, turn: &TurnId) -> Result<bool, RefusedSent> {
        let cancelled = self.session(place)?.cancel(Some(turn.as_str())).await;
        Ok(cancelled.map_err(refused)? > 0)
    }

    async fn offers(&self, account: &AccountId) -> Result<Offers, RefusedSent> {
        let offers = self.sessions.offers(account.as_str()).await.map_err(refused)?;
        let tool = |tool: Tool| Offer {
            name: tool.spec.name,
            title: None,
            about: first_line(&tool.spec.description),
        };
        let focus_mode = |mode: FocusMode| Offer {
            title: (mode.name != mode.id).then(|| visible_line(&mode.name)),
            about: mode.description.as_deref().map(first_line).unwrap_or_default(),
            name: mode.id,
        };
        Ok(Offers {
            tools: offers.tools.into_iter().map(tool).collect(),
            focus_modes: offers.focus_modes.into_iter().map(focus_mode).collect(),
            whole: offers.whole,
        })
    }

    async fn safety(&self, place: &Place, known: Option<&[u8]>) -> Result<Option<Vec<u8>>, RefusedSent> {
        let Some(found) = self.session(place)?.safety().await.map_err(refused)? else { return Ok(None) };
        let known = known.and_then(|bytes| serde_json::from_slice::<SafetyRecord>(bytes).ok());
        let merged = known.unwrap_or_default().merged(found);
        // Nothing was added: what is known stays as it is.
        Ok(Some(merged).filter(|merged| known != Some(*merged)).and_then(|all| serde_json::to_vec(&all).ok()))
    }

    async fn end(&self, place: &Place) -> Result<(), RefusedSent> {
        let (account, chat) = (place.account.as_str(), place.chat.as_str());
        self.shared.lock().forget(&whose(place));
        self.sessions.end(account, chat).await.map(drop).map_err(refused)
    }

    async fn forget(
        &self,
        account: &AccountId,
        chat: &ChatId,
        what: Remembered,
    ) -> Result<Option<String>, RefusedSent> {
        let Remembered::Concepts = what;
        let receipt =
            self.sessions.forget_concepts(account.as_str(), chat.as_str()).await.map_err(refused)?;
        let json = |receipt| serde_json::to_string(&receipt).map_err(|_| refused(Error::Internal));
        receipt.map(json).transpose()
    }

    async fn remembered(
        &self,
        account: &AccountId,
        chat: &ChatId,
        what: Remembered,
    ) -> Result<Vec<String>, RefusedSent> {
        let Remembered::Concepts = what;
        let kept = self.sessions.export_concepts(account.as_str(), chat.as_str()).await.map_err(refused)?;
        Ok(kept.unwrap_or_default().iter().map(ToString::to_string).collect())
    }
}

/// Keeps the concepts of a chat, or forgets them, as its owner has switched that; says whether this turn has them. What cannot be done now
/// is done with the next question. Where words are in memory only, nothing else is kept.
async fn see_to_concepts(
    sessions: &WebSessions,
    place: &Place,
    keep: confidant_engine::Keep,
    remembers: Option<&[Remembered]>,
) -> bool {
    let (account, chat) = (place.account.as_str(), place.chat.as_str());
    let done = match remembers {
        None => return false,
        Some(what) if !what.contains(&Remembered::Concepts) => {
            sessions.forget_concepts(account, chat).await.map(|_| false)
        }
        Some(_) if keep != confidant_engine::Keep::Stored => return false,
        Some(_) => sessions.keep_concepts(account, chat).await,
    };
    done.unwrap_or_else(|error| {
        tracing::warn!(
            error = error.code(),
            "the concepts of a chat could not be switched; the next question tries again"
        );
        false
    })
}

/// Where the words of a turn are heard that another process may run: one that was decided at a gateway, or that was asked for before.
async fn words_of(session: &Session, turn: &TurnId, is_asked: bool) -> Option<Following> {
    let words = session.follow(turn.as_str())?;
    let is_elsewhere = if is_asked {
        matches!(session.claimed(turn.as_str()).await, Ok(Some(_)))
    } else {
        session.runs_elsewhere()
    };
    is_elsewhere.then_some(words)
}

/// The next event of a turn. Meanwhile words of it that come from elsewhere are told.
async fn next(
    turn: &mut Turn,
    words: &mut Option<Following>,
    sender: &mpsc::Sender<AnswerEvent>,
) -> Option<Outbound> {
    loop {
        let Some(following) = words else { return turn.next().await };
        let said = tokio::select! {
            biased;
            event = turn.next() => {
                match &event {
                    Some(Outbound::Progress { .. } | Outbound::SettingsWanted { .. }) => {}
                    Some(Outbound::Delta { .. }) => {
                        // It runs for whoever asked here, from its first word on.
                        *words = None;
                        let _gone = sender.send(AnswerEvent::Anew).await;
                    }
                    _ => *words = None,
                }
                return event;
            }
            followed = following.hear() => match followed {
                Followed::Begun => Some(AnswerEvent::Anew),
                Followed::Event(event @ (Outbound::Delta { .. } | Outbound::Progress { .. })) => said(event),
                // How it ends is told by the turn itself.
                Followed::Event(_) => None,
            },
        };
        if let Some(said) = said {
            let _gone = sender.send(said).await;
        }
    }
}

/// Tells a turn that was begun before, in any process: its words as they come, where they can be heard, and its end in any case.
async fn follow(session: Session, turn: TurnId, sender: mpsc::Sender<AnswerEvent>) {
    let mut words = session.follow(turn.as_str());
    // The end is heard with all that the turn knows of it; the log knows less.
    let first = if words.is_some() { FIRST } else { Duration::ZERO };
    let (mut look_at, mut failure) = (Instant::now() + first, None);
    loop {
        let followed = match &mut words {
            Some(following) => timeout_at(look_at, following.hear()).await.ok(),
            None => {
                sleep_until(look_at).await;
                None
            }
        };
        let said = match followed {
            Some(Followed::Begun) => Some(AnswerEvent::Anew),
            Some(Followed::Event(Outbound::Final(answer))) => {
                let _gone = sender.send(AnswerEvent::Final(Box::new(answered(answer)))).await;
                return hear_out(words, &sender).await;
            }
            // The process that said so may be gone, and the turn may be taken up: the log knows.
            Some(Followed::Event(Outbound::Error(error))) => {
                (failure, look_at) = (Some(error), Instant::now());
                None
            }
            Some(Followed::Event(Outbound::Approval(_))) => {
                look_at = Instant::now();
                None
            }
            Some(Followed::Event(event)) => said(event),
            None => match session.standing(turn.as_str()).await {
                Ok(Standing::Running | Standing::Decided) => {
                    look_at = Instant::now() + if words.is_some() { LOOK_BESIDE } else { LOOK };
                    None
                }
                Ok(Standing::Ended(Ending::Answer(answer))) => {
                    return tell_from_log(&session, &turn, answer, &sender).await;
                }
                ended => return drop(sender.send(end(ended, failure)).await),
            },
        };
        if let Some(said) = said {
            let _gone = sender.send(said).await;
        }
    }
}

/// Tells an answer that is found in the log, and what was made of it: soon, if whoever answered is at it.
async fn tell_from_log(session: &Session, turn: &TurnId, found: Final, sender: &mpsc::Sender<AnswerEvent>) {
    let (answer, mut made) = match from_log(session, turn, found).await {
        Ok(found) => found,
        Err(error) => return drop(sender.send(AnswerEvent::Failed(refused(error))).await),
    };
    let _gone = sender.send(AnswerEvent::Final(Box::new(answer))).await;
    let until = Instant::now() + AFTERWARDS;
    while matches!(made, MadeOfIt::Soon) && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
        // What cannot be read now is looked at again.
        if let Ok(recorded) = session.recorded(turn.as_str()).await {
            made = recorded.map(|recorded| recorded.made).unwrap_or_default();
        }
    }
    if let Some(made) = made_of_it(session, turn, made).await {
        let _gone = sender.send(AnswerEvent::Made(Box::new(made))).await;
    }
}

/// An answer that is found in the log, with what the log has of its turn besides.
async fn from_log(session: &Session, turn: &TurnId, found: Final) -> Result<(Answer, MadeOfIt), Error> {
    let answer = answered(found);
    let Some(recorded) = session.recorded(turn.as_str()).await? else {
        return Ok((answer, MadeOfIt::Nothing));
    };
    let Recorded { title, icon_names: icons, category, safety, made } = recorded;
    let safety = serde_json::to_vec(&safety).ok();
    Ok((Answer { title, icons, category, safety, ..answer }, made))
}

/// What was made of it; made now, if nobody else is at it any more.
async fn made_of_it(session: &Session, turn: &TurnId, made: MadeOfIt) -> Option<Made> {
    match made {
        MadeOfIt::There(made) => Some(made_of(*made)),
        MadeOfIt::Left => match session.enrich_left(turn.as_str()).await {
            Ok(made) => made.map(made_of),
            Err(error) => {
                tracing::warn!(
                    error = error.code(),
                    "suggestions of an answer that was found in the log could not be made"
                );
                None
            }
        },
        MadeOfIt::Nothing | MadeOfIt::Soon => None,
    }
}

/// What was made of an answer comes after it.
async fn hear_out(words: Option<Following>, sender: &mpsc::Sender<AnswerEvent>) {
    let (Some(mut words), until) = (words, Instant::now() + AFTERWARDS) else { return };
    while let Ok(followed) = timeout_at(until, words.hear()).await {
        match followed {
            Followed::Event(event @ Outbound::Enriched(_)) => {
                if let Some(said) = said(event) {
                    let _gone = sender.send(said).await;
                }
                return;
            }
            // Another turn of the chat.
            Followed::Begun => return,
            Followed::Event(_) => {}
        }
    }
}

/// How a turn ended without an answer, as the log has it.
fn end(ended: Result<Standing, Error>, failure: Option<Error>) -> AnswerEvent {
    match (ended, failure) {
        (Ok(Standing::Ended(Ending::Approval(approval))), _) => {
            AnswerEvent::Approval(Box::new(asks(*approval)))
        }
        (Ok(Standing::Failed(reason)), _) if reason == Error::Cancelled.code() => AnswerEvent::Stopped,
        (Ok(_), Some(error)) | (Err(error), _) => AnswerEvent::Failed(refused(error)),
        (Ok(_), None) => AnswerEvent::Failed(failed("the turn ended without an answer", "ask again")),
    }
}

/// A question, as the engine takes it.
fn request(ask: Ask, concepts: bool) -> TurnRequest {
    let digest = |digest: Digest| head::Digest::from_bytes(*digest.as_bytes());
    let claim = head::Claim {
        count: ask.claim.count.into(),
        before: digest(ask.claim.before),
        after: digest(ask.claim.after),
    };
    let history = ask.history.map(|branch| History { said: lines(branch), head: claim.head() }.newest());
    let transcript = digest(*ask.before.digest());
    let (profile, settings) = profile(ask.settings);
    TurnRequest {
        request_id: Some(ask.turn.as_str().to_owned()),
        query: ask.text,
        claim: Some(claim),
        transcript: Some(transcript),
        history,
        titled: ask.titled,
        focus: ask.focus,
        off: off(ask.off),
        capture: concepts,
        asks: may_ask(&ask.asks),
        available_settings: ask.available,
        settings,
        profile,
        safety: ask.safety.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
        past_chats: ask.past.into_iter().map(|(title, summary)| PastChat { title, summary }).collect(),
        ..TurnRequest::default()
    }
}

fn lines(branch: Branch) -> Vec<confidant_engine::turn::Said> {
    let at = SystemClock.now();
    let line = |line: confidant_chats::answerer::Line| confidant_engine::turn::Said {
        id: line.id.as_str().to_owned(),
        at,
        kind: by(line.kind),
        text: line.text,
        stand: Some(head::Stand {
            count: line.before.into(),
            transcript: head::Digest::from_bytes(*line.after.digest().as_bytes()),
        }),
    };
    branch.lines.into_iter().map(line).collect()
}

/// What the person chose to have known of them, apart from their other settings: what has a name that begins with `profile-`.
fn profile(settings: Vec<(String, String)>) -> (Profile, BTreeMap<String, String>) {
    let (mut profile, mut others) = (Profile::default(), BTreeMap::new());
    let list = |text: &str| text.split(',').map(|one| one.trim().to_owned()).collect();
    for (name, text) in settings {
        match name.strip_prefix("profile-") {
            Some("learning-style") => profile.learning_style = Some(text),
            Some("persona") => profile.persona = Some(text),
            Some("interests") => profile.interests = list(&text),
            Some("jurisdictions") => profile.jurisdictions = list(&text),
            Some(other) => drop(profile.more.insert(other.to_owned(), text)),
            None => drop(others.insert(name, text)),
        }
    }
    (profile, others)
}

/// A line that people see as it is.
fn first_line(text: &str) -> String {
    visible_line(text.trim().lines().next().unwrap_or_default())
}

/// What a person switched off: words that are known, a focus mode, else the name of a tool.
fn off(names: Vec<String>) -> SwitchedOff {
    let mut off = SwitchedOff::default();
    let all = || BTreeSet::from(["*".to_owned()]);
    for name in names {
        match name.as_str() {
            "tools" => off.tools.extend(all()),
            "focus" => off.focus_modes.extend(all()),
            "settings" => (off.settings, off.profile) = (true, true),
            "similar" => off.past_chats = true,
            "search" => drop(off.tools.insert("memory.search".to_owned())),
            "suggestions" => off.enrichment = true,
            // What the question says of these counts.
            "cache" | "concepts" => {}
            _ => drop(match name.strip_prefix(FOCUS_MODE) {
                Some(mode) => off.focus_modes.insert(mode.to_owned()),
                None => off.tools.insert(name),
            }),
        }
    }
    off
}

fn said(event: Outbound) -> Option<AnswerEvent> {
    Some(match event {
        Outbound::Progress { text } => AnswerEvent::Progress(text.into_owned()),
        Outbound::Delta { text, .. } => AnswerEvent::Delta(text),
        Outbound::Final(answer) => AnswerEvent::Final(Box::new(answered(answer))),
        Outbound::Approval(approval) => AnswerEvent::Approval(Box::new(asks(*approval))),
        Outbound::Error(Error::Cancelled) => AnswerEvent::Stopped,
        Outbound::Error(error) => AnswerEvent::Failed(refused(error)),
        // Named with the answer.
        Outbound::SettingsWanted { .. } => return None,
        Outbound::Wanted(wanted) => AnswerEvent::Wants(Box::new(wants(*wanted))),
        Outbound::Enriched(made) => AnswerEvent::Made(Box::new(made_of(*made))),
    })
}

/// What a turn wants of the device that asked, and the way back for it.
fn wants(mut wanted: Wanted) -> Wants {
    let (what, names, query) = match &wanted.data_request {
        DataRequest::Settings(names) => (Given::Settings, names.clone(), None),
        DataRequest::PastChats(tags) => (Given::Summary, tags.clone(), None),
        DataRequest::Search(words) => (Given::Search, Vec::new(), Some(words.clone())),
    };
    let (reply, given) = oneshot::channel::<Vec<(String, String)>>();
    tokio::spawn(async move {
        let pieces = tokio::select! {
            pieces = given => pieces.ok(),
            () = wanted.closed() => None,
        };
        // Nothing given: the request is dropped here, and the turn goes on.
        if let Some(pieces) = pieces {
            wanted.give(pieces.into_iter().map(|(name, text)| Piece { name, text }).collect());
        }
    });
    Wants { what, names, query, reply }
}

/// What a turn may ask for, of what the device allows.
fn may_ask(asks: &[Given]) -> MayAsk {
    MayAsk {
        settings: asks.contains(&Given::Settings),
        past_chats: asks.contains(&Given::Summary),
        search: asks.contains(&Given::Search),
    }
}

fn answered(answer: Final) -> Answer {
    let Final { content, metadata, .. } = answer;
    let is = |action| metadata.safety.contains(&action);
    let safety = metadata.chat.as_ref().and_then(|chat| serde_json::to_vec(&chat.safety).ok());
    let forget = metadata.chat.as_ref().is_some_and(|chat| chat.offers == Some(Offered::DeleteChat));
    let finish = if forget {
        Finish::AskedToForget
    } else if is(SafetyAction::TerminateConversation) {
        Finish::Ended
    } else if is(SafetyAction::RefuseAndRedirect) {
        Finish::Declined
    } else {
        Finish::Whole
    };
    let Beside { tools: said, summed_up } = metadata.beside.map(|beside| *beside).unwrap_or_default();
    let (title, icons, category, reason) = match metadata.preparation.map(|prepared| *prepared) {
        Some(made) => (made.title, made.icon_names, Some(made.category), Some(made.selection_reason)),
        None => (None, Vec::new(), None, None),
    };
    // Nobody chose the model where the program itself speaks.
    let reason = reason.filter(|why| metadata.model.as_deref() != Some("confidant") && !why.is_empty());
    Answer {
        text: content,
        finish,
        model: metadata.model,
        title,
        icons,
        category,
        reason,
        focus: metadata.focus,
        tools: metadata.tools,
        said,
        summed_up: summed_up.map(sums),
        wanted: metadata.requested_settings,
        care: is(SafetyAction::ProvideCrisisResources).then_some(Care::Help),
        safety,
    }
}

fn sums(summed_up: confidant_engine::turn::SummedUp) -> SummedUp {
    let through = summed_up.through;
    SummedUp {
        text: summed_up.text,
        messages: u32::try_from(through.count).unwrap_or(u32::MAX),
        transcript: Transcript::resume(Digest::from_bytes(*through.transcript.as_bytes())),
    }
}

fn asks(approval: ApprovalRequest) -> Approval {
    let left = approval.expires_at.0.saturating_sub(SystemClock.now().0);
    Approval {
        id: approval.approval_id,
        tool: approval.tool,
        input: approval.arguments.to_string(),
        why: approval.question,
        left: Duration::from_millis(left.max(0).unsigned_abs()),
    }
}

fn made_of(made: Enrichment) -> Made {
    Made {
        follow_ups: made.follow_up_suggestions,
        new_chats: made.new_chat_suggestions,
        summary: made.chat_summary,
        tags: made.chat_tags,
    }
}

const fn kind(by: SaidBy) -> TranscriptKind {
    match by {
        SaidBy::User => TranscriptKind::User,
        SaidBy::Assistant => TranscriptKind::Assistant,
        SaidBy::Tool => TranscriptKind::Tool,
        SaidBy::Summary => TranscriptKind::Summary,
        SaidBy::Quoted => TranscriptKind::Quoted,
    }
}

const fn by(kind: TranscriptKind) -> SaidBy {
    match kind {
        TranscriptKind::User => SaidBy::User,
        TranscriptKind::Assistant => SaidBy::Assistant,
        TranscriptKind::Tool => SaidBy::Tool,
        TranscriptKind::Summary => SaidBy::Summary,
        TranscriptKind::Quoted => SaidBy::Quoted,
    }
}

/// An error of the engine, as a device is told it.
fn refused(error: Error) -> RefusedSent {
    let name = match &error {
        Error::Busy => Failure::Rate,
        Error::History(_) => return confidant_chat_format::Refused::Conflict.into(),
        // Of what a device asks, only its size depends on the server's settings.
        Error::Invalid { .. } => Failure::TooLarge,
        _ => Failure::Unavailable,
    };
    let (what, hint) = error.what_and_hint("try again");
    RefusedSent::new(ErrorName::Request(name), &what, &hint)
}

fn failed(what: &str, hint: &str) -> RefusedSent {
    RefusedSent::new(ErrorName::Request(Failure::Unavailable), what, hint)
}

/// Chats whose transcript is remembered.
const STANDS: usize = 10_000;
/// How often it is looked whether a tool was decided at another gateway.
const LOOK_FOR_WORD: Duration = Duration::from_secs(2);
/// How often a turn that runs elsewhere is looked at in the log,
const LOOK: Duration = Duration::from_millis(500);
/// and where its words are heard as well.
const LOOK_BESIDE: Duration = Duration::from_secs(1);
/// How long its words are listened for before that.
const FIRST: Duration = Duration::from_millis(300);
/// How long what is made of an answer is waited for.
const AFTERWARDS: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_told_apart_from_settings_and_goes_with_them() {
        let given = [
            ("profile-persona", "self-employed"),
            ("profile-interests", "tides, boats"),
            ("profile-pronouns", "she"),
            ("city", "Cork"),
        ];
        let given = given.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
        let (profile, settings) = profile(given);
        assert_eq!(profile.persona.as_deref(), Some("self-employed"));
        assert_eq!(profile.interests, ["tides", "boats"]);
        assert_eq!(profile.more["pronouns"], "she");
        assert_eq!(settings.into_keys().collect::<Vec<_>>(), ["city"]);
        let off = off(vec!["settings".to_owned(), "similar".to_owned(), "search".to_owned()]);
        assert!(off.settings && off.profile && off.past_chats && off.has_tool("memory.search"));
        assert!(!off.has_focus_mode("web.research"));
        let off = super::off(vec!["focus:web.research".to_owned(), "files.read".to_owned()]);
        assert!(
            off.has_focus_mode("web.research") && !off.has_tool("web.research") && off.has_tool("files.read")
        );
        assert_eq!(may_ask(&[Given::Search]), MayAsk { search: true, ..MayAsk::default() });
    }

    #[test]
    fn a_question_that_is_too_long_for_the_server_is_said_to_be_so() {
        let error =
            Error::Invalid { what: "the query is longer than 9 bytes".into(), hint: "shorten it".into() };
        let told = refused(error);
        assert_eq!(told.error, ErrorName::Request(Failure::TooLarge));
        assert_eq!(refused(Error::Busy).error, ErrorName::Request(Failure::Rate));
        assert_eq!(refused(Error::RequestReused).error, ErrorName::Request(Failure::Unavailable));
    }
}
