//! Somebody who answers without a model, for tests: repeats the words, and how many lines it knew before. Words that begin with `want` say what it
//! asks the device for; what was given stands behind the answer.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use confidant_chat_format::{ChatId, Claim, Digest, Kind, MessageId, Transcript, TurnId};
use confidant_chat_protocol::{Finish, Given, RefusedSent};
use confidant_display::debug_without_content;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::{Answer, Answerer, Approval, Ask, Have, Kept, Line, Made, Place, Said, Telling, Wants};

/// Answers every question with `known=N: words`, in pieces. Clones are one and the same, as several gateways have it.
#[derive(Clone)]
pub struct MemoryAnswerer {
    chats: Arc<Mutex<HashMap<ChatId, Lines>>>,
    begun: Arc<Mutex<BTreeMap<TurnId, (Digest, Begun)>>>,
    /// What turns that run have said: clones are other gateways, which can follow them.
    running: Arc<Mutex<BTreeMap<TurnId, Spoken>>>,
    /// What may be said: a piece takes a permit.
    pace: Arc<Semaphore>,
}

debug_without_content!(MemoryAnswerer);

/// The lines of a chat, and what is kept of them.
type Lines = (Vec<Line>, Kept);
/// A turn that was begun: its answer, once it is there.
type Begun = watch::Receiver<Option<Answer>>;
/// The digest of a turn that runs, and its words so far.
type Spoken = (Digest, watch::Sender<String>);

impl Default for MemoryAnswerer {
    fn default() -> Self {
        Self {
            chats: Arc::default(),
            begun: Arc::default(),
            running: Arc::default(),
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

    fn say(&self, ask: Ask) -> Telling {
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
            let _gone = sender.send(Said::Progress("thinking".to_owned())).await;
            if let Some(branch) = &ask.history {
                let Claim { count: messages, before: digest, .. } = ask.claim;
                let kept = Kept { messages, digest, transcript: branch.transcript };
                this.chats.lock().insert(ask.place.chat.clone(), (branch.lines.clone(), kept));
            }
            let given = want(&ask, &sender).await;
            let known = this.lines(&ask.place.chat).len();
            let text = format!("known={known}: {}{given}", ask.text);
            for piece in text.split_inclusive(' ') {
                let Ok(permit) = this.pace.acquire().await else { return };
                permit.forget();
                spoken.send_modify(|spoken| spoken.push_str(piece));
                let _gone = sender.send(Said::Delta(piece.to_owned())).await;
            }
            let answer = this.commit(&ask, text);
            done.send_replace(Some(answer.clone()));
            this.running.lock().remove(&ask.turn);
            drop(spoken);
            let _gone = sender.send(Said::Final(Box::new(answer))).await;
            let made = Made {
                follow_ups: vec!["and then?".to_owned()],
                summary: Some("in short".to_owned()),
                ..Made::default()
            };
            let _gone = sender.send(Said::Made(Box::new(made))).await;
        });
        receiver
    }

    fn commit(&self, ask: &Ask, text: String) -> Answer {
        let transcript = ask.transcript.then(Kind::Assistant, &text);
        let kept = Kept { messages: ask.claim.count + 2, digest: ask.claim.after, transcript };
        let line = |kind, text: &str| Line { id: MessageId::random(), kind, text: text.to_owned() };
        let mut chats = self.chats.lock();
        let (lines, stands) = chats.entry(ask.place.chat.clone()).or_insert_with(|| (Vec::new(), kept));
        lines.extend([line(Kind::User, &ask.text), line(Kind::Assistant, &text)]);
        *stands = kept;
        drop(chats);
        Answer {
            text,
            finish: Finish::Whole,
            model: Some("echo".to_owned()),
            title: (!ask.titled).then(|| "A chat".to_owned()),
            icons: Vec::new(),
            category: None,
            focus: None,
            tools: Vec::new(),
            wanted: Vec::new(),
            safety: Some(format!("turns={}", ask.claim.count / 2 + 1).into_bytes()),
        }
    }
}

/// The answer of a turn that was begun elsewhere, once it is there.
fn awaited(mut begun: Begun) -> Telling {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let answer = begun.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        if let Some(answer) = answer {
            let _gone = sender.send(Said::Final(Box::new(answer))).await;
        }
    });
    receiver
}

/// Asks the device for what the words say, `want settings`, `want summary` or `want search`, whatever it allowed; what it gave, in brackets.
async fn want(ask: &Ask, sender: &mpsc::Sender<Said>) -> String {
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
        let _gone = sender.send(Said::Wants(Box::new(Wants { what: *what, names, query, reply }))).await;
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

    fn answer(&self, ask: Ask) -> Telling {
        if ask.text.contains("approve me") {
            let (sender, receiver) = mpsc::channel(1);
            let approval = Approval {
                id: "1".to_owned(),
                tool: "rm".to_owned(),
                input: "{}".to_owned(),
                why: "it deletes".to_owned(),
            };
            let _gone = sender.try_send(Said::Approval(Box::new(approval)));
            return receiver;
        }
        self.say(ask)
    }

    async fn again(&self, _: &Place, turn: &TurnId, digest: &Digest) -> Result<Option<Telling>, RefusedSent> {
        let running = self.running.lock().get(turn).cloned();
        let begun = self.begun.lock().get(turn).filter(|(after, _)| after == digest).cloned();
        let Some((_, begun)) = begun else { return Ok(None) };
        let Some((_, spoken)) = running else { return Ok(Some(awaited(begun))) };
        let (sender, receiver) = mpsc::channel(16);
        let mut spoken = spoken.subscribe();
        tokio::spawn(async move {
            let (mut told, mut runs) = (0, sender.send(Said::Anew).await.is_ok());
            while runs {
                let words = spoken.borrow_and_update().clone();
                let _gone = sender.send(Said::Delta(words[told..].to_owned())).await;
                told = words.len();
                runs = spoken.changed().await.is_ok();
            }
            let answer = begun.borrow().clone();
            let Some(answer) = answer else { return };
            let _gone = sender.send(Said::Final(Box::new(answer))).await;
        });
        Ok(Some(receiver))
    }

    fn decide(&self, place: &Place, turn: &TurnId, _: &str, allow: bool) -> Telling {
        let text = if allow { "allowed" } else { "denied" };
        let nothing = Digest::of(b"");
        self.say(Ask {
            place: place.clone(),
            turn: turn.clone(),
            text: text.to_owned(),
            claim: Claim { count: 0, before: nothing, after: nothing },
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
        })
    }

    async fn cancel(&self, _: &Place, turn: &TurnId) -> Result<bool, RefusedSent> {
        let runs = self.running.lock().contains_key(turn);
        if runs {
            self.pace.add_permits(1_000);
        }
        Ok(runs)
    }

    async fn end(&self, place: &Place) -> Result<(), RefusedSent> {
        self.chats.lock().remove(&place.chat);
        Ok(())
    }
}
