//! What a platform must be able to do, and what it tells us. Platform types end behind this trait.

use async_trait::async_trait;
use confidant_display::debug_without_content;
use confidant_engine::Scope;
use confidant_engine::room::{Audience, RoomContext};
use serde::{Deserialize, Serialize};

use crate::inbox::Vault;
use crate::intake::Intake;
use crate::pace::Pace;
use crate::split::Measure;
use crate::stop::Stop;

/// One account on one platform.
///
/// Every call may be made again after it failed, and calls for different rows run side by side. What must not wait for
/// anybody (a platform's rate limits aside) is up to the caller.
#[async_trait]
pub trait Channel: Send + Sync + std::fmt::Debug + 'static {
    /// The platform, as scopes name it: `matrix`, `discord`.
    fn platform(&self) -> &'static str;

    /// Which one of several on the platform, for people who read logs and `/readyz`: a word of the operator's, no id.
    fn label(&self) -> &str;

    /// How replies are told here.
    fn manners(&self) -> Manners;

    /// Signs in and says which account this is, by the platform's own id. Called before anything else, and again after
    /// the connection was lost.
    async fn sign_in(&self, vault: &Vault) -> Result<String, Trouble>;

    /// Hands in what happens until `stop` says so, or the connection is lost. Reads back first what was said since the
    /// last stored event of each room ([`Intake::cursors`]).
    async fn listen(&self, intake: &Intake, stop: Stop) -> Result<(), Trouble>;

    /// What was said around this place just now, without the event itself. Fetched anew for each turn; a failure costs
    /// the turn its room, not its answer.
    async fn room(&self, route: &Route, scope: &Scope) -> Result<RoomContext, Trouble>;

    /// Who reads what is sent there, as it is now.
    async fn audience(&self, route: &Route) -> Result<Audience, Trouble>;

    /// Sends a new message. Under a nonce that the platform has seen already nothing new appears, and the id is the
    /// earlier message's.
    async fn send(&self, route: &Route, outgoing: Outgoing<'_>) -> Result<MessageId, Trouble>;

    /// Replaces the text of a message of ours.
    async fn edit(&self, route: &Route, message: &MessageId, outgoing: Outgoing<'_>) -> Result<(), Trouble>;

    /// Shows that an answer is coming; wears off by itself.
    async fn typing(&self, route: &Route) -> Result<(), Trouble>;

    /// Sends a file where only the person can read it. Says whether that was the place that it was asked for in.
    async fn send_privately(
        &self,
        route: &Route,
        scope: &Scope,
        nonce: Nonce,
        document: Document,
    ) -> Result<Private, Trouble>;

    /// Looks whether everything is there that is needed (token, rights, settings), for `confidant doctor`; the vault is there if
    /// the account ever ran here.
    async fn check(&self, vault: Option<&Vault>) -> Vec<Finding>;
}

/// Where a private file went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Private {
    /// To where it was asked for: only the person reads there.
    Here,
    /// To another place, which only the person reads.
    Elsewhere,
}

/// How replies are told on a platform.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// The most that one message holds.
    pub limit: usize,
    /// How the platform counts that.
    pub measure: Measure,
    /// When an answer is first shown, and how often it then grows.
    pub pace: Pace,
    /// How often the typing notice has to be repeated.
    pub typing_every: std::time::Duration,
    /// How many of a person's messages from before the start of this process are recalled; all that fit if missing.
    pub restore: Option<usize>,
    /// Whether conversations are kept.
    pub keeping: Keeping,
    /// How many events are worked on side by side.
    pub concurrency: usize,
}

/// What stays of a conversation on a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeping {
    /// All of it, for its lifetime.
    #[default]
    Conversations,
    /// Nothing: each message is answered by itself, with what the room says, and neither it nor its answer is stored.
    Nothing,
}

/// Where replies to an event go, in the channel's own words. Sealed while it is kept; opaque to everybody else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Route(pub String);

/// The platform's id of a message of ours.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(pub String);

/// Names one outgoing message of one event, the same whenever it is sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub(crate) [u8; 16]);

impl Nonce {
    /// The nonce with these bytes; which they are is the runtime's to say, and a test's.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// 24 hexadecimal digits: as much as every platform takes.
    #[must_use]
    pub fn short(self) -> String {
        hex::encode(&self.0[..12])
    }
}

/// One message on its way out.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Markdown.
    pub text: &'a str,
    /// What kind of message it is.
    pub kind: OutgoingKind,
    /// Its name.
    pub nonce: Nonce,
    /// Which message of the reply this is: 0 is the first.
    pub part: usize,
    /// Whether it begins the first reply to the event: no other message of ours answers it yet.
    pub first: bool,
    /// Whether it may have been sent before, by a process that did not live to note it.
    pub again: bool,
}

/// What an outgoing message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingKind {
    /// An answer that is still growing.
    Draft,
    /// An answer, or a part of one.
    Answer,
    /// Somebody must approve something.
    Question,
    /// Something about the conversation: a command's result, an error.
    Notice,
}

/// A file for a person.
pub struct Document {
    /// Its name.
    pub name: String,
    /// What to say with it.
    pub words: String,
    /// Its content.
    pub bytes: zeroize::Zeroizing<Vec<u8>>,
}

/// Something that happened on the platform.
pub enum Event {
    /// Somebody said something that wants an answer.
    Said(Said),
    /// Somebody decided by a sign on a message of ours: `approve` or `deny`, and the message, which tells what is meant.
    Pointed(Said, MessageId),
    /// Somebody changed what they had said.
    Edited(Edited),
    /// Something that was said is gone.
    Removed(Removed),
}

/// Something that was said to the agent.
pub struct Said {
    /// The platform's id of it.
    pub event: String,
    /// The room's id on the platform.
    pub room: String,
    /// Where it stands among the events of its room; a higher one moves the room's cursor, and none leaves it.
    pub order: Option<i64>,
    /// Whose session it belongs to.
    pub scope: Scope,
    /// Who will read the answer.
    pub audience: Audience,
    /// Where replies go.
    pub route: Route,
    /// What was said, without the mention of the agent. If that leaves nothing, `note` is all that is answered.
    pub text: String,
    /// What to add to the answer, such as that an attachment was not looked at.
    pub note: Option<String>,
}

/// Something that was said and is now said otherwise.
pub struct Edited {
    /// The platform's id of the change, or one made of the message's id and the time of the change.
    pub event: String,
    /// The id of what was said before.
    pub target: String,
    /// Whose session it belongs to: only the one who said it may change it.
    pub scope: Scope,
    /// What is said now, without the mention of the agent.
    pub text: String,
}

/// Something that was said and is gone.
pub struct Removed {
    /// The platform's id of the removal, or one made of the message's id.
    pub event: String,
    /// The id of what was said.
    pub target: String,
}

/// Why a call to the platform failed, in words that may be logged: no content, no token, no raw id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It may work later: the network, the server, a rate limit.
    #[error("{what}; hint: {hint}")]
    Passing {
        /// What happened.
        what: String,
        /// What to do next.
        hint: String,
        /// How long the platform wants to be left alone.
        after: Option<std::time::Duration>,
    },
    /// It will not work until somebody changes something: a bad token, a missing right.
    #[error("{what}; hint: {hint}")]
    Refused {
        /// What happened.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// The place or the message is not there (any more).
    #[error("the place is gone, or this account may not see it; hint: invite the account again")]
    Gone,
}

impl Trouble {
    /// Something that may work later.
    #[must_use]
    pub fn passing(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Passing { what: what.into(), hint: hint.into(), after: None }
    }

    /// Something that somebody has to change.
    #[must_use]
    pub fn refused(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), hint: hint.into() }
    }
}

/// One thing that `doctor` looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is as it should be.
    pub good: bool,
    /// What was looked at, and what was found.
    pub what: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// It is as it should be.
    #[must_use]
    pub fn good(what: impl Into<String>) -> Self {
        Self { good: true, what: what.into(), hint: None }
    }

    /// It is not.
    #[must_use]
    pub fn bad(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { good: false, what: what.into(), hint: Some(hint.into()) }
    }
}

debug_without_content!(
    Route(..),
    MessageId(..),
    Nonce(..),
    Document(..),
    Event(..),
    Said(..),
    Edited(..),
    Removed(..)
);
debug_without_content!(Outgoing<'_> { kind });
