//! What is asked of a turn, and the same once it was found acceptable.

use std::collections::{BTreeMap, BTreeSet};

use confidant_display::debug_without_content;
use confidant_model::{Attachment, PromptMessage, Sampling, ToolSpec};
use serde::{Deserialize, Serialize};

use super::client_tools::{ClientStep, ToolSaid};
use super::data_request::MayAsk;
use super::safety::SafetyRecord;
use super::spoken::Spoken;
use crate::aspects::Profile;
use crate::audience::Audience;
use crate::clock::Millis;
use crate::head::{Claim, Digest, Head, Stand};
use crate::ledger::epoch::Epoch;
use crate::room::RoomContext;

/// What a channel asks for.
#[derive(Debug, Default)]
pub struct TurnRequest {
    /// Names the turn; a second request with the same id gets the recorded answer. Made if missing.
    pub request_id: Option<String>,
    /// What the person says.
    pub query: String,
    /// Images and files that came with it. Never stored: the query says that they were there.
    pub attachments: Vec<Attachment>,
    /// What the query tells the memory instead of the model, where whoever took it in has read it.
    pub spoken: Spoken,
    /// Who will read the answer. If missing: the room, unless the session is keyed by person alone and no room is given.
    pub audience: Option<Audience>,
    /// What was said in the room just now. Never stored.
    pub room: RoomContext,
    /// An application's own instructions for this turn. Never stored.
    pub instructions: Option<String>,
    /// Messages that the application sent along and the log does not have. Never stored.
    pub brought: Vec<PromptMessage>,
    /// How to answer.
    pub sampling: Sampling,
    /// Tools that the client has and runs itself. Never stored longer than the turn goes on.
    pub tools: Vec<ToolSpec>,
    /// Calls of these in this turn, with what they gave.
    pub steps: Vec<ClientStep>,
    /// What such tools said in earlier turns that the log does not have. Never stored.
    pub results: Vec<ToolSaid>,
    /// What the person chose to have known. Never stored.
    pub profile: Profile,
    /// The focus mode that is on in this turn, if its name is known; else the conversation's own.
    pub focus: Option<String>,
    /// Conversations of the past that the client thinks are like this one. Never stored.
    pub past_chats: Vec<PastChat>,
    /// Settings and memories that the client has, by name only, so that the turn can ask for some.
    pub available_settings: Vec<String>,
    /// Settings and memories that were asked for, with what they say. Never stored.
    pub settings: BTreeMap<String, String>,
    /// What the turn may ask the person's device for, in the middle of it.
    pub asks: MayAsk,
    /// How far back to look; if missing, as far as the limits go.
    pub restore: Option<Restore>,
    /// Whether the model is asked for the concepts of its answer, where the settings leave that open.
    pub capture: bool,
    /// When it was asked, for what waited somewhere since: an erasure after that ends it. If missing: now.
    pub epoch: Option<Epoch>,
    /// The title that the conversation has already where the client keeps it; then no other is made. Never stored.
    pub title: Option<String>,
    /// What it is called by whoever asks for it on a plain bus, where an end that comes later is told under this name.
    pub asked_as: Option<String>,
    /// Whether the application says that the conversation is shared: what this turn names is in scope for everybody in it,
    /// whoever reads the answer.
    pub shared: bool,
    /// Where the conversation stands for its client. If the log stands elsewhere, the turn ends as
    /// [`Error::History`](crate::Error::History) unless the history comes with it; it is never answered without.
    pub claim: Option<Claim>,
    /// What the client's transcript is before the question, for whoever proves what was said. Not looked into here.
    pub transcript: Option<Digest>,
    /// The conversation as its client has it. It takes the place of a log that stands elsewhere, in the write that accepts the turn.
    pub history: Option<History>,
    /// Whether the conversation has a title, icon and category where the client keeps it; then no others are made.
    pub titled: bool,
    /// What the person switched off.
    pub off: SwitchedOff,
    /// How harmful the conversation has been, where that is kept longer than its log.
    pub safety: Option<SafetyRecord>,
    /// The turn that this one follows, by its [`mark`](crate::Session::mark). If the conversation has gone on since, the turn ends as
    /// [`Error::History`](crate::Error::History).
    pub after: Option<String>,
    /// Names and values that mean something to the application alone. Kept with the turn, and shown to no model.
    pub labels: BTreeMap<String, String>,
    /// How the application asked, for it to read back: kept with the turn and sealed like it, shown to no model, and not looked into.
    pub asked_for: Option<serde_json::Value>,
}

/// A conversation as its client has it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// What was said, oldest first.
    pub said: Vec<Said>,
    /// Where it stands.
    pub head: Head,
}

/// One message of such a conversation.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Its name, which no other message of the conversation has.
    pub id: String,
    /// When.
    pub at: Millis,
    /// Whose it is, as far as that can be proved.
    pub kind: SaidBy,
    /// The words.
    pub text: String,
    /// Where the branch stood before it, as far as its client says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand: Option<Stand>,
}

/// Whose words they are. Whoever sends a history proves what is not the person's own, or it is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaidBy {
    /// The person's.
    User,
    /// The agent's.
    Assistant,
    /// A tool's.
    Tool,
    /// Earlier words in fewer, by the agent.
    Summary,
    /// Nobody knows: data.
    Quoted,
}

/// What a person switched off: it is in no model's request. Names may end in `*`, as in `web.*`, for all that begin so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchedOff {
    /// Tools, those of this program (`memory.search`, `focus.start`) included.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<String>,
    /// Focus modes.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub focus_modes: BTreeSet<String>,
    /// Similar conversations of the past.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub past_chats: bool,
    /// Settings and memories of the client.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settings: bool,
    /// What the person chose to have known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// Suggestions, tags and summary after the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enrichment: bool,
}

impl SwitchedOff {
    /// Whether this tool is off.
    #[must_use]
    pub fn has_tool(&self, name: &str) -> bool {
        covers(&self.tools, name)
    }

    /// Whether this focus mode is off.
    #[must_use]
    pub fn has_focus_mode(&self, id: &str) -> bool {
        covers(&self.focus_modes, id)
    }

    /// Takes out of a request what is off and was sent along all the same.
    pub(super) fn strip(request: &mut TurnRequest) {
        let off = &request.off;
        if off.past_chats {
            request.past_chats.clear();
            request.asks.past_chats = false;
        }
        if off.settings {
            request.available_settings.clear();
            request.settings.clear();
            request.asks.settings = false;
        }
        request.asks.search &= !covers(&off.tools, super::remember::NAME);
        if off.profile {
            request.profile = Profile::default();
        }
        request.focus.take_if(|focus| covers(&off.focus_modes, focus));
    }
}

fn covers(off: &BTreeSet<String>, name: &str) -> bool {
    off.contains(name)
        || off.iter().any(|one| one.strip_suffix('*').is_some_and(|begins| name.starts_with(begins)))
}

/// How far back a turn may look, where a restart is a new beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// When the new beginning was; everything since can be recalled.
    pub since: Millis,
    /// How many of the person's messages from before can be, the newest, each with its answer. Nothing is deleted.
    pub messages: usize,
}

/// A request that was found acceptable: it has a name and readers.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) request_id: String,
    /// Who will read the answer.
    pub(super) audience: Audience,
    /// Counted when it has its place.
    pub(super) tokens: u32,
    /// The request itself. Name and audience stand above.
    pub(super) request: TurnRequest,
}

impl Inbound {
    /// The request as somebody else is to have it: with its name, its readers, and when it was asked.
    pub(super) fn into_request(self, epoch: Option<Epoch>) -> TurnRequest {
        let Self { request_id, audience, request, .. } = self;
        TurnRequest { request_id: Some(request_id), audience: Some(audience), epoch, ..request }
    }
}

/// A conversation of the past that the person's client thinks is like this one.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastChat {
    /// Its title.
    #[serde(default)]
    pub title: String,
    /// It in few words.
    pub summary: String,
}

debug_without_content!(PastChat, History, Said);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_named_whole_or_by_its_beginning() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let off = SwitchedOff { tools: names(&["web.*", "files.read"]), ..SwitchedOff::default() };
        let is_off =
            ["web.search", "files.read", "files.readme", "webcam.look"].map(|name| off.has_tool(name));
        assert_eq!(is_off, [true, true, false, false]);
        assert!(SwitchedOff { tools: names(&["*"]), ..SwitchedOff::default() }.has_tool("memory.search"));
        assert!(!SwitchedOff::default().has_tool("x") && !off.has_focus_mode("web.research"));
    }

    #[test]
    fn what_is_off_and_sent_along_is_taken_out() {
        let off = SwitchedOff {
            focus_modes: BTreeSet::from(["web.research".to_owned()]),
            past_chats: true,
            settings: true,
            profile: true,
            ..SwitchedOff::default()
        };
        let mut request = TurnRequest {
            focus: Some("web.research".to_owned()),
            past_chats: vec![PastChat::default()],
            available_settings: vec!["city".to_owned()],
            settings: BTreeMap::from([("city".to_owned(), "Cork".to_owned())]),
            asks: MayAsk { settings: true, past_chats: true, search: true },
            off,
            ..TurnRequest::default()
        };
        SwitchedOff::strip(&mut request);
        assert_eq!(request.asks, MayAsk { search: true, ..MayAsk::default() });
        assert!(request.focus.is_none() && request.past_chats.is_empty());
        assert!(request.available_settings.is_empty() && request.settings.is_empty());
    }
}
