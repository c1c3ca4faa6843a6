//! What is asked of a turn, and the same once it was found acceptable.

use std::collections::BTreeMap;

use confidant_display::debug_without_content;
use confidant_model::{PromptMessage, Sampling};
use serde::{Deserialize, Serialize};

use super::spoken::Spoken;
use crate::aspects::Profile;
use crate::audience::Audience;
use crate::clock::Millis;
use crate::ledger::epoch::Epoch;
use crate::room::RoomContext;

/// What a channel asks for.
#[derive(Debug, Default)]
pub struct TurnRequest {
    /// Names the turn; a second request with the same id gets the recorded answer. Made if missing.
    pub request_id: Option<String>,
    /// What the person says.
    pub query: String,
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

debug_without_content!(PastChat);
