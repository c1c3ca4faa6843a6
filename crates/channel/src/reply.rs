//! One event's replies: a draft that grows, then the answer in its parts, each under a name that does not change.
//!
//! What was sent is noted in the row after each message. A process that dies in between sends the same under the same
//! nonce again, and since the platform may then show what the dead one had sent, the text is set once more.

use std::sync::Arc;
use std::time::Duration;

use confidant_seal::Tag;

use crate::channel::{Channel, Manners, MessageId, Outgoing, OutgoingKind, Route, Trouble};
use crate::inbox::{Account, Inbox, Row, Sent, Waits, rows};
use crate::split::split;

/// Where and under which names an event's replies are told.
#[derive(Debug)]
pub(crate) struct Reply {
    channel: Arc<dyn Channel>,
    inbox: Inbox,
    account: Account,
    route: Route,
    event: Tag,
    seq: i64,
    again: bool,
    sent: SentSoFar,
    /// What the answer's names are made of.
    purpose: String,
    /// A question of it stands above, which somebody may not have decided yet.
    asked: bool,
    /// The text that the draft shows.
    shown: String,
}

#[derive(Default)]
struct SentSoFar(Sent);

impl std::fmt::Debug for SentSoFar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SentSoFar({})", self.0.messages.len())
    }
}

/// The longest that a platform may take for one call.
const PATIENCE: Duration = Duration::from_secs(120);

impl Reply {
    pub(crate) fn new(
        channel: &Arc<dyn Channel>,
        inbox: &Inbox,
        account: &Account,
        row: &Row,
        route: Route,
    ) -> Self {
        let waits = Waits::open(account, row);
        Self {
            channel: Arc::clone(channel),
            inbox: inbox.clone(),
            account: account.clone(),
            route,
            event: row.event,
            seq: row.seq,
            // Having asked a question is no try to answer.
            again: row.attempts > 1 + u32::from(waits.is_some()),
            sent: SentSoFar(Sent::open(account, row)),
            asked: waits.as_ref().is_some_and(Waits::is_asked),
            // An answer after a question is another message than the question.
            purpose: waits.map_or(ANSWER.to_owned(), |waits| format!("{ANSWER}/{}", waits.approval_id)),
            shown: String::new(),
        }
    }

    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    pub(crate) fn manners(&self) -> Manners {
        self.channel.manners()
    }

    /// Whether anything can be seen of the reply.
    pub(crate) fn is_begun(&self) -> bool {
        !self.sent.0.messages.is_empty()
    }

    /// The messages that it consists of.
    pub(crate) fn messages(&self) -> &[MessageId] {
        &self.sent.0.messages
    }

    pub(crate) async fn typing(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.channel.typing(&self.route)).await;
    }

    /// Shows what there is so far: the answer's text, or what is being done for it. Says whether that changed anything. Trouble is
    /// not worth a word: the end comes anyway.
    ///
    /// Below a question only text is shown. Whether anything is done there is known once it is decided; until then the row stands
    /// aside again without an answer, and what was shown would stay.
    pub(crate) async fn draft(&mut self, text: &str, progress: &str) -> bool {
        let text = if text.is_empty() && !self.asked { progress } else { text };
        let manners = self.channel.manners();
        let Some(first) = split(text, manners.limit, manners.measure).into_iter().next() else {
            return false;
        };
        // Its first message has the answer already: a process that was killed had begun to tell it.
        let is_told = self.sent.0.settled > 0;
        if is_told || first == self.shown || first.trim().is_empty() {
            return false;
        }
        let done = self.place(&self.purpose.clone(), 0, OutgoingKind::Draft, &first).await.is_ok();
        self.shown = first;
        done
    }

    /// Tells the whole of it. Can be called again after it failed, and goes on where it was.
    pub(crate) async fn tell(&mut self, kind: OutgoingKind, text: &str) -> Result<(), Trouble> {
        self.tell_as(&self.purpose.clone(), kind, text).await
    }

    /// The same under a name of its own.
    pub(crate) async fn tell_as(
        &mut self,
        purpose: &str,
        kind: OutgoingKind,
        text: &str,
    ) -> Result<(), Trouble> {
        let manners = self.channel.manners();
        for (index, part) in split(text, manners.limit, manners.measure).iter().enumerate() {
            if index < self.sent.0.settled {
                continue;
            }
            self.place(purpose, index, kind, part).await?;
            self.sent.0.settled = index + 1;
            self.note().await;
        }
        Ok(())
    }

    /// Sends one message, or changes it if it was sent.
    async fn place(
        &mut self,
        purpose: &str,
        part: usize,
        kind: OutgoingKind,
        text: &str,
    ) -> Result<(), Trouble> {
        let nonce = self.account.nonce(self.event, purpose, part);
        let first = part == 0 && purpose == ANSWER;
        let outgoing = Outgoing { text, kind, nonce, part, first, again: self.again };
        if let Some(message) = self.sent.0.messages.get(part) {
            return match patiently(self.channel.edit(&self.route, message, outgoing)).await {
                // Somebody removed the draft; the answer is then told anew, under another name.
                Err(Trouble::Gone) if kind != OutgoingKind::Draft => {
                    let nonce = self.account.nonce(self.event, &format!("{purpose}/anew"), part);
                    let outgoing = Outgoing { nonce, ..outgoing };
                    self.sent.0.messages[part] = patiently(self.channel.send(&self.route, outgoing)).await?;
                    self.note().await;
                    Ok(())
                }
                other => other,
            };
        }
        let message = patiently(self.channel.send(&self.route, outgoing)).await?;
        self.sent.0.messages.push(message.clone());
        self.note().await;
        if self.again {
            patiently(self.channel.edit(&self.route, &message, outgoing)).await?;
        }
        Ok(())
    }

    /// Notes in the row what was sent. If that fails, nonces still keep it from being doubled.
    async fn note(&self) {
        let (sealed, seq) = (self.sent.0.seal(&self.account, self.event), self.seq);
        if let Err(error) = self.inbox.with(move |c| rows::note_sent(c, seq, &sealed)).await {
            tracing::warn!(error = %error, "a sent message could not be recorded");
        }
    }
}

pub(crate) async fn patiently<T>(call: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(done) => done,
        Err(_) => Err(Trouble::passing(
            "the platform did not answer in time",
            "nothing to do: Confidant keeps trying",
        )),
    }
}

/// What the names of an answer's messages are made of.
const ANSWER: &str = "answer";
