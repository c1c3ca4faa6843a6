//! Somebody who answers without a model, for tests: repeats the words, and how many lines it knew before. Words that begin with `want` say what it
//! asks the device for; what was given stands behind the answer. `use tool` has a tool say something first, and `sum up` sums up all but the newest
//! question and its answer; the next answer tells of it. `approve me` waits for a word on a tool. A turn that is cancelled is said to its
//! end at once, but `stop me` stops.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{
    AccountId, ChatId, Claim, Digest, MessageId, Refused, Transcript, TranscriptKind, TurnId,
};
use confidant_chat_protocol::{Care, Finish, Given, RefusedSent, Remembered};
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::{
    Answer, AnswerEvent, AnswerStream, Answerer, Approval, Ask, Have, Kept, Left, Line, Made, Offer, Offers,
    Place, SummedUp, Wants,
};

/// Answers every question with `known=N: words`, in pieces. Clones are one and the same, as several gateways have it.
#[derive(Clone)]
pub struct MemoryAnswerer {
    chats: Arc<Mutex<HashMap<ChatId, Lines>>>,
    sums: Arc<Mutex<Sums>>,
    begun: Arc<Mutex<BTreeMap<TurnId, (Digest, Begun)>>>,
    /// What turns that run have said: clones are other gateways, which can follow them.
    running: Arc<Mutex<BTreeMap<TurnId, Spoken>>>,
    /// Tools that wait for a word.
    undecided: Arc<Mutex<BTreeMap<TurnId, Digest>>>,
    /// One turn of a chat at a time, at whichever gateway.
    lines_up: Arc<Mutex<HashMap<ChatId, Arc<tokio::sync::Mutex<()>>>>>,
    /// Turns that were cancelled.
    stopped: Arc<Mutex<BTreeSet<TurnId>>>,
    /// What is kept of chats beyond their words: the last words of each question that allowed it.
    remembered: Arc<Mutex<HashMap<ChatId, Vec<String>>>>,
    /// What is known of the safety of chats.
    safety: Arc<Mutex<HashMap<ChatId, Vec<u8>>>>,
    /// What may be said: a piece takes a permit.
    pace: Arc<Semaphore>,
}

debug_without_content!(MemoryAnswerer);

/// The lines of a chat, and what is kept of them.
type Lines = (Vec<Line>, Kept);
/// Summaries that no answer has told of yet.
type Sums = HashMap<ChatId, SummedUp>;
/// A turn that was begun: its answer, once it is there.
type Begun = watch::Receiver<Option<Answer>>;
/// The digest of a turn that runs, and its words so far.
type Spoken = (Digest, watch::Sender<String>);

impl Default for MemoryAnswerer {
    fn default() -> Self {
        Self {
            chats: Arc::default(),
            sums: Arc::default(),
            begun: Arc::default(),
            running: Arc::default(),
            undecided: Arc::default(),
            lines_up: Arc::default(),
            stopped: Arc::default(),
            remembered: Arc::default(),
            safety: Arc::default(),
            pace: Arc::new(Semaphore::new(usize::MAX >> 4)),
        }
    }
}

impl MemoryAnswerer {
    /// One that says nothing until it is let ([`MemoryAnswerer::let_say`]).
    #[must_use]
    pub fn held() -> Self {
        Self { pace: Arc::new(Semaphore::new(0)), ..Self::default() }
    }

    /// Lets it say this many pieces.
    pub fn let_say(&self, pieces: usize) {
        self.pace.add_permits(pieces);
    }

    /// Says nothing more until it is let.
    pub fn hold(&self) {
        self.pace.forget_permits(usize::MAX);
    }

    /// Loses all that it keeps of chats; answers stay.
    pub fn forget(&self) {
        self.chats.lock().clear();
    }

    /// Everything that it keeps of a chat.
    #[must_use]
    pub fn lines(&self, chat: &ChatId) -> Vec<Line> {
        self.chats.lock().get(chat).map(|(lines, _)| lines.clone()).unwrap_or_default()
    }

    /// How many turns it was asked to answer, and how many of them it has answered.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let begun = self.begun.lock();
        (begun.len(), begun.values().filter(|(_, begun)| begun.borrow().is_some()).count())
    }

    fn say(&self, ask: Ask) -> AnswerStream {
        let (done, begun) = watch::channel(None);
        let before = match self.begun.lock().entry(ask.turn.clone()) {
            Entry::Occupied(there) => Some(there.get().1.clone()),
            Entry::Vacant(new) => {
                new.insert((ask.claim.after, begun));
                None
            }
        };
        if let Some(before) = before {
            return awaited(before);
        }
        let (sender, receiver) = mpsc::channel(16);
        let this = self.clone();
        let spoken = watch::Sender::new(String::new());
        self.running.lock().insert(ask.turn.clone(), (ask.claim.after, spoken.clone()));
        tokio::spawn(async move {
            let line = Arc::clone(this.lines_up.lock().entry(ask.place.chat.clone()).or_default());
            let _turn = line.lock().await;
            let Some(lines) = this.take_up(&ask) else {
                this.begun.lock().remove(&ask.turn);
                this.running.lock().remove(&ask.turn);
                return drop(sender.send(AnswerEvent::Failed(Refused::Conflict.into())).await);
            };
            let _gone = sender.send(AnswerEvent::Progress("thinking".to_owned())).await;
            let given = want(&ask, &sender).await;
            let text = format!("known={}: {}{given}", lines.len(), ask.text);
            for piece in text.split_inclusive(' ') {
                let Ok(permit) = this.pace.acquire().await else { return };
                permit.forget();
                if ask.text.contains("stop me") && this.stopped.lock().contains(&ask.turn) {
                    this.begun.lock().remove(&ask.turn);
                    this.running.lock().remove(&ask.turn);
                    this.score(&ask);
                    return drop(sender.send(AnswerEvent::Stopped).await);
                }
                spoken.send_modify(|spoken| spoken.push_str(piece));
                let _gone = sender.send(AnswerEvent::Delta(piece.to_owned())).await;
            }
            let answer = this.commit(&ask, lines, text);
            done.send_replace(Some(answer.clone()));
            this.running.lock().remove(&ask.turn);
            drop(spoken);
            let _gone = sender.send(AnswerEvent::Final(Box::new(answer))).await;
            let _gone = sender.send(AnswerEvent::Made(Box::new(made()))).await;
        });
        receiver
    }

    /// The turn counts, whether or not it is answered.
    fn score(&self, ask: &Ask) -> Vec<u8> {
        let safety = format!("turns={}", ask.claim.count / 2 + 1).into_bytes();
        self.safety.lock().insert(ask.place.chat.clone(), safety.clone());
        safety
    }

    /// The branch that a question goes on with; nothing if another turn was faster. However soon it is forgotten, the turn has all of it.
    fn take_up(&self, ask: &Ask) -> Option<Vec<Line>> {
        let Claim { count: messages, before: digest, .. } = ask.claim;
        let mut chats = self.chats.lock();
        if let Some(branch) = &ask.history {
            let kept = Kept { messages, digest, transcript: branch.transcript };
            chats.insert(ask.place.chat.clone(), (branch.lines.clone(), kept));
            return Some(branch.lines.clone());
        }
        let there = chats.get(&ask.place.chat);
        let is_it = there.is_some_and(|(_, kept)| (kept.messages, kept.digest) == (messages, digest));
        (messages == 0 || is_it).then(|| there.map(|(lines, _)| lines.clone()).unwrap_or_default())
    }

    /// Tells a turn that was begun elsewhere.
    fn follow(&self, turn: &TurnId, begun: Begun) -> AnswerStream {
        let running = self.running.lock().get(turn).cloned();
        let Some((_, spoken)) = running else { return awaited(begun) };
        let (sender, receiver) = mpsc::channel(16);
        let mut spoken = spoken.subscribe();
        tokio::spawn(async move {
            let (mut told, mut runs) = (0, sender.send(AnswerEvent::Anew).await.is_ok());
            while runs {
                let words = spoken.borrow_and_update().clone();
                let _gone = sender.send(AnswerEvent::Delta(words[told..].to_owned())).await;
                told = words.len();
                runs = spoken.changed().await.is_ok();
            }
            let said = begun
                .borrow()
                .clone()
                .map_or(AnswerEvent::Stopped, |answer| AnswerEvent::Final(Box::new(answer)));
            let _gone = sender.send(said).await;
        });
        receiver
    }

    fn commit(&self, ask: &Ask, mut lines: Vec<Line>, text: String) -> Answer {
        let is_using = ask.text.contains("use tool");
        let said = if is_using { vec![format!("web.search\nfound by {}", ask.text)] } else { Vec::new() };
        let spoken = [(TranscriptKind::User, ask.text.clone())].into_iter();
        let spoken = spoken.chain(said.iter().map(|text| (TranscriptKind::Tool, text.clone())));
        let (mut before, mut after, mut new) = (ask.claim.count, ask.before, Vec::new());
        for (kind, text) in spoken.chain([(TranscriptKind::Assistant, text.clone())]) {
            new.push(Line { id: MessageId::random(), kind, text, before, after });
            after = after.then(kind, &new[new.len() - 1].text);
            before += u32::from(kind != TranscriptKind::Tool);
        }
        let kept = Kept { messages: before, digest: ask.claim.after, transcript: after };
        lines.extend(new);
        self.chats.lock().insert(ask.place.chat.clone(), (lines, kept));
        let summed_up = self.sums.lock().remove(&ask.place.chat);
        if ask.text.contains("sum up") && ask.claim.count > 0 {
            let (messages, transcript) = (ask.claim.count, ask.before);
            let sums = SummedUp { text: format!("{messages} messages in short"), messages, transcript };
            self.sums.lock().insert(ask.place.chat.clone(), sums);
        }
        Answer {
            text,
            finish: Finish::Whole,
            model: Some("echo".to_owned()),
            title: (!ask.titled).then(|| "A chat".to_owned()),
            icons: Vec::new(),
            category: None,
            reason: ask.text.contains("why this model").then(|| "It is the only one.".to_owned()),
            focus: None,
            tools: Vec::new(),
            said,
            summed_up,
            wanted: Vec::new(),
            care: ask.text.contains("a dark thought").then_some(Care::Help),
            safety: Some(self.score(ask)),
        }
    }
}

/// What it makes of every answer.
fn made() -> Made {
    Made { follow_ups: vec!["and then?".to_owned()], summary: Some("in short".to_owned()), ..Made::default() }
}

/// The answer of a turn that was begun elsewhere, once it is there.
fn awaited(mut begun: Begun) -> AnswerStream {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let answer = begun.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        if let Some(answer) = answer {
            let _gone = sender.send(AnswerEvent::Final(Box::new(answer))).await;
        }
    });
    receiver
}

/// A tool that waits for a word.
fn undecided() -> AnswerStream {
    let (sender, receiver) = mpsc::channel(1);
    let approval = Approval {
        id: "1".to_owned(),
        tool: "rm".to_owned(),
        input: "{}".to_owned(),
        why: "it deletes".to_owned(),
        left: Duration::from_secs(86_400),
    };
    let _gone = sender.try_send(AnswerEvent::Approval(Box::new(approval)));
    receiver
}

/// Asks the device for what the words say, `want settings`, `want summary` or `want search`, whatever it allowed; what it gave, in brackets.
async fn want(ask: &Ask, sender: &mpsc::Sender<AnswerEvent>) -> String {
    let mut given = String::new();
    let mut words = ask.text.split_whitespace();
    while words.any(|word| word == "want") {
        let Some(what) = words.next().and_then(|name| Given::ALL.iter().find(|one| one.name() == name))
        else {
            continue;
        };
        let (reply, receiver) = oneshot::channel();
        let (names, query) = match what {
            Given::Settings => (ask.available.clone(), None),
            Given::Summary => (vec!["tides".to_owned()], None),
            Given::Search => (Vec::new(), Some("tides".to_owned())),
        };
        let _gone =
            sender.send(AnswerEvent::Wants(Box::new(Wants { what: *what, names, query, reply }))).await;
        let pieces = receiver.await.unwrap_or_default();
        let pieces: Vec<String> = pieces.iter().map(|(name, text)| format!("{name}={text}")).collect();
        given.push_str(&format!(" [{}]", pieces.join("; ")));
    }
    given
}

#[async_trait]
impl Answerer for MemoryAnswerer {
    async fn have(&self, place: &Place) -> Result<Have, RefusedSent> {
        Ok(self.chats.lock().get(&place.chat).map_or(Have::Missing, |(_, kept)| Have::There(*kept)))
    }

    fn answer(&self, ask: Ask) -> AnswerStream {
        match &ask.remembers {
            Some(what) if what.is_empty() => drop(self.remembered.lock().remove(&ask.place.chat)),
            Some(_) => {
                self.remembered.lock().entry(ask.place.chat.clone()).or_default().push(ask.text.clone())
            }
            None => {}
        }
        if ask.text.contains("approve me") {
            self.score(&ask);
            self.undecided.lock().insert(ask.turn, ask.claim.after);
            return undecided();
        }
        self.say(ask)
    }

    async fn again(
        &self,
        _: &Place,
        turn: &TurnId,
        digest: &Digest,
    ) -> Result<Option<AnswerStream>, RefusedSent> {
        if self.undecided.lock().get(turn).is_some_and(|after| after == digest) {
            return Ok(Some(undecided()));
        }
        let begun = self.begun.lock().get(turn).filter(|(after, _)| after == digest).cloned();
        Ok(begun.map(|(_, begun)| self.follow(turn, begun)))
    }

    async fn left(&self, _: &Place, turn: &TurnId) -> Result<Left, RefusedSent> {
        if self.undecided.lock().contains_key(turn) {
            return Ok(Left::Runs);
        }
        let begun = self.begun.lock().get(turn).cloned();
        Ok(match begun.map(|(_, begun)| begun.borrow().clone()) {
            Some(Some(answer)) => Left::Answer(Box::new(answer), Some(Box::new(made()))),
            Some(None) => Left::Runs,
            None => Left::Nothing,
        })
    }

    async fn decided_elsewhere(&self, _: &Place, turn: &TurnId, _: &str) -> AnswerStream {
        loop {
            let begun = self.begun.lock().get(turn).cloned();
            if let Some((_, begun)) = begun {
                return self.follow(turn, begun);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn decide(&self, place: &Place, turn: &TurnId, _: &str, allow: bool) -> AnswerStream {
        self.undecided.lock().remove(turn);
        let text = if allow { "allowed" } else { "denied" };
        let nothing = Digest::of(b"");
        self.say(Ask {
            place: place.clone(),
            turn: turn.clone(),
            text: text.to_owned(),
            claim: Claim { count: 0, before: nothing, after: nothing },
            before: Transcript::start(),
            transcript: Transcript::start(),
            history: None,
            titled: true,
            focus: None,
            off: Vec::new(),
            available: Vec::new(),
            settings: Vec::new(),
            past: Vec::new(),
            asks: Vec::new(),
            safety: None,
            remembers: None,
        })
    }

    async fn cancel(&self, _: &Place, turn: &TurnId) -> Result<bool, RefusedSent> {
        let runs = self.running.lock().contains_key(turn);
        if runs {
            self.stopped.lock().insert(turn.clone());
            self.pace.add_permits(1_000);
        }
        Ok(runs)
    }

    async fn offers(&self, _: &AccountId) -> Result<Offers, RefusedSent> {
        let offer = |name: &str, title: Option<&str>, about: &str| Offer {
            name: name.to_owned(),
            title: title.map(str::to_owned),
            about: about.to_owned(),
        };
        Ok(Offers {
            tools: vec![offer("rm", None, "Deletes everything")],
            focus_modes: vec![offer("web.research", Some("Research"), "")],
            whole: true,
        })
    }

    async fn safety(&self, place: &Place, _: Option<&[u8]>) -> Result<Option<Vec<u8>>, RefusedSent> {
        Ok(self.safety.lock().get(&place.chat).cloned())
    }

    async fn end(&self, place: &Place) -> Result<(), RefusedSent> {
        self.chats.lock().remove(&place.chat);
        Ok(())
    }

    async fn forget(
        &self,
        _: &AccountId,
        chat: &ChatId,
        _: Remembered,
    ) -> Result<Option<String>, RefusedSent> {
        let gone = self.remembered.lock().remove(chat);
        Ok(gone.map(|gone| format!("{} forgotten", gone.len())))
    }

    async fn remembered(
        &self,
        _: &AccountId,
        chat: &ChatId,
        _: Remembered,
    ) -> Result<Vec<String>, RefusedSent> {
        Ok(self.remembered.lock().get(chat).cloned().unwrap_or_default())
    }
}
