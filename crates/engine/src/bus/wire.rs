//! The JSON of the bus: the first system's, with what our own roles add inside `metadata`.
//!
//! ```text
//! request   {request_id, query, session_id, room_context[], metadata{room_id, user_id, timestamp, request_id, audience, given | ours}}
//! response  {request_id, message_type, content, metadata}
//! ```
//!
//! Read as a stranger's: what is missing has a default, what is unknown is left out, and nothing that a plain request says
//! of itself gives it a right: its tenant, its actor and the way of its answers are the reader's own. What it brings along for
//! its own turn (`given`: instructions, earlier messages, how to answer, …) is believed as its words are. Responses are read and
//! written in `responses`.

mod responses;

use std::collections::{BTreeMap, HashMap};

use confidant_model::{Attachment, PromptMessage, Role, Sampling, ToolSpec};
use confidant_seal::{Scope, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeroize::Zeroizing;

pub(crate) use responses::error;
pub(super) use responses::{Heard, event, late, read_event, read_response, response};

use super::Speech;
use crate::aspects::Profile;
use crate::audience::Audience;
use crate::clock::Millis;
use crate::error::Error;
use crate::head::{Claim, Digest};
use crate::ledger::audit::Actor;
use crate::ledger::epoch::Epoch;
use crate::room::RoomContext;
use crate::turn::{
    ClientStep, Errand, History, MayAsk, PastChat, Piece, Restore, SafetyRecord, Spoken, SwitchedOff,
    ToolSaid, TurnRequest,
};

/// One attempt to ask for something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Call {
    /// The name of this attempt alone.
    pub(super) attempt: String,
    /// The gateway that waits.
    pub(super) reply_to: String,
    pub(super) sent_at: Millis,
}

/// What a worker is asked for.
#[derive(Debug)]
pub(super) enum Asked {
    Turn(Box<Errand>),
    /// To cancel a turn.
    Cancel {
        scope: Scope,
        request_id: String,
    },
    /// To cancel what the same call asked for: a turn without memory, whose name may not be unique.
    CallOff,
    /// To hand a turn what it wanted of a device: which request, and what was given.
    Give {
        number: u64,
        pieces: Vec<Piece>,
    },
    /// To end what is in memory of a chat, or of all chats of its account.
    End {
        scope: Scope,
        whole_account: bool,
    },
    /// To look for unfinished turns, since there are some.
    Look,
}

/// A request as it was read. A plain one has no call.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) request_id: String,
    pub(super) call: Option<Call>,
    /// What a plain one says that it is called in its session. Anybody may say anything here.
    pub(super) own_name: Option<String>,
    pub(super) asked: Asked,
}

#[derive(Default, Deserialize)]
struct RequestForm {
    request_id: String,
    #[serde(default)]
    query: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    room_context: Option<RoomContext>,
    #[serde(default)]
    metadata: Value,
}

/// The part of an unreadable request that can still be read.
#[derive(Deserialize)]
struct NameForm {
    request_id: String,
}

/// A stranger may mean anything by these words.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataForm {
    room_id: Value,
    thread_id: Value,
    user_id: Value,
    /// What a request of our own gateways is called in its session.
    request_id: Value,
    /// Who reads the answer, in our word for it.
    audience: Value,
    /// How many erasures there had been when it was asked, by our own gateways.
    epoch: Value,
    given: Value,
    ours: Value,
}

/// What our own roles say besides. Believed in sealed messages only.
#[derive(Serialize, Deserialize)]
struct Ours {
    call: Call,
    kind: CallKind,
    tenant: Option<String>,
    actor: Actor,
    audience: Option<Audience>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<Epoch>,
    /// What a device gives for a turn that this call asked for, by the number of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gives: Option<(u64, Vec<Piece>)>,
    #[serde(flatten)]
    given: Given,
}

/// What a turn is given besides the words, the room and who reads the answer.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Given {
    instructions: Option<String>,
    brought: Vec<(bool, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    sampling: Sampling,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolSpec>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<ClientStep>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<ToolSaid>,
    profile: Profile,
    focus: Option<String>,
    past_chats: Vec<(String, String)>,
    available_settings: Vec<String>,
    settings: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_nothing")]
    asks: MayAsk,
    restore: Option<Restore>,
    capture: bool,
    title: Option<String>,
    shared: bool,
    called: HashMap<String, String>,
    agent: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<History>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    titled: bool,
    off: SwitchedOff,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety: Option<SafetyRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_for: Option<Value>,
}

fn is_nothing(asks: &MayAsk) -> bool {
    *asks == MayAsk::default()
}

impl Given {
    fn of(request: &TurnRequest) -> Self {
        let said = request.brought.iter().map(|said| (said.role == Role::Human, said.text.clone()));
        Self {
            instructions: request.instructions.clone(),
            brought: said.collect(),
            attachments: request.attachments.clone(),
            sampling: request.sampling.clone(),
            tools: request.tools.clone(),
            steps: request.steps.clone(),
            results: request.results.clone(),
            profile: request.profile.clone(),
            focus: request.focus.clone(),
            past_chats: request.past_chats.iter().map(|it| (it.title.clone(), it.summary.clone())).collect(),
            available_settings: request.available_settings.clone(),
            settings: request.settings.clone(),
            asks: request.asks,
            restore: request.restore,
            capture: request.capture,
            title: request.title.clone(),
            shared: request.shared,
            called: request.room.names_on_the_way().clone(),
            agent: request.room.agent_on_the_way().to_vec(),
            claim: request.claim,
            transcript: request.transcript,
            history: request.history.clone(),
            titled: request.titled,
            off: request.off.clone(),
            safety: request.safety,
            after: request.after.clone(),
            labels: request.labels.clone(),
            asked_for: request.asked_for.clone(),
        }
    }

    fn into_request(
        self,
        request_id: &str,
        query: String,
        audience: Option<Audience>,
        epoch: Option<Epoch>,
        room: RoomContext,
    ) -> TurnRequest {
        let brought = self.brought.into_iter().map(|(human, text)| {
            let role = if human { Role::Human } else { Role::Ai };
            PromptMessage { role, text }
        });
        let past_chats = self.past_chats.into_iter();
        TurnRequest {
            request_id: Some(request_id.to_owned()),
            query,
            attachments: self.attachments,
            spoken: Spoken::Unread,
            audience,
            room: room.called(self.called).agent(self.agent),
            instructions: self.instructions,
            brought: brought.collect(),
            sampling: self.sampling,
            tools: self.tools,
            steps: self.steps,
            results: self.results,
            profile: self.profile,
            focus: self.focus,
            past_chats: past_chats.map(|(title, summary)| PastChat { title, summary }).collect(),
            available_settings: self.available_settings,
            settings: self.settings,
            asks: self.asks,
            restore: self.restore,
            capture: self.capture,
            epoch,
            title: self.title,
            asked_as: None,
            shared: self.shared,
            claim: self.claim,
            transcript: self.transcript,
            history: self.history,
            titled: self.titled,
            off: self.off,
            safety: self.safety,
            after: self.after,
            labels: self.labels,
            asked_for: self.asked_for,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallKind {
    Turn,
    Cancel,
    Give,
    Look,
    End,
    EndAll,
}

/// A turn, asked for by this call.
pub(super) fn turn(errand: &Errand, call: &Call) -> Zeroizing<Vec<u8>> {
    let Errand { scope, tenant, actor, request } = errand;
    let tenant = scope.as_ref().map(Scope::tenant).or(tenant.as_ref());
    let ours = Ours {
        call: call.clone(),
        kind: CallKind::Turn,
        tenant: tenant.map(|tenant| tenant.as_str().to_owned()),
        actor: actor.clone(),
        audience: request.audience,
        epoch: request.epoch,
        gives: None,
        given: Given::of(request),
    };
    let metadata = json!({ "timestamp": call.sent_at.0 / 1000, "ours": ours });
    asked_for(errand, request.request_id.as_deref(), metadata)
}

/// A turn, asked for in the first system's words under this name. The one that it has in its session goes along.
pub(super) fn plain_turn(errand: &Errand, name: &str, sent_at: Millis) -> Zeroizing<Vec<u8>> {
    let Errand { request, .. } = errand;
    let mut metadata = json!({
        "timestamp": sent_at.0 / 1000,
        "request_id": request.request_id,
        "audience": request.audience,
    });
    if let Some(epoch) = request.epoch {
        metadata["epoch"] = json!(epoch);
    }
    let given = json!(Given::of(request));
    if given != json!(Given::default()) {
        metadata["given"] = given;
    }
    asked_for(errand, Some(name), metadata)
}

fn asked_for(errand: &Errand, request_id: Option<&str>, mut metadata: Value) -> Zeroizing<Vec<u8>> {
    let Errand { scope, request, .. } = errand;
    let place = scope.as_ref().map(|scope| scope.place_id().map(|place| place.as_str().to_owned()));
    metadata["room_id"] = json!(place);
    metadata["user_id"] = json!(scope.as_ref().map(|scope| scope.user().as_str()));
    bytes(&json!({
        "request_id": request_id,
        "query": request.query,
        "session_id": scope.as_ref().map(Scope::session_id),
        "room_context": request.room.on_the_way(),
        "metadata": metadata,
    }))
}

/// A request to cancel a turn.
pub(super) fn cancel(scope: &Scope, actor: &Actor, request_id: &str, call: Call) -> Zeroizing<Vec<u8>> {
    let tenant = Some(scope.tenant().as_str().to_owned());
    short(CallKind::Cancel, request_id, Some(scope), tenant, actor, call, None)
}

/// A request to cancel what this call asked for.
pub(super) fn call_off(request_id: &str, call: Call) -> Zeroizing<Vec<u8>> {
    short(CallKind::Cancel, request_id, None, None, &Actor::system(), call, None)
}

/// What a device gives for the turn that this call asked for.
pub(super) fn give(number: u64, pieces: Vec<Piece>, call: Call) -> Zeroizing<Vec<u8>> {
    short(CallKind::Give, "", None, None, &Actor::system(), call, Some((number, pieces)))
}

/// A request to end what is in memory of a chat, or of all chats of its account.
pub(super) fn end(scope: &Scope, whole_account: bool, call: Call) -> Zeroizing<Vec<u8>> {
    let tenant = Some(scope.tenant().as_str().to_owned());
    let kind = if whole_account { CallKind::EndAll } else { CallKind::End };
    short(kind, "", Some(scope), tenant, &Actor::system(), call, None)
}

/// A request to look for unfinished turns.
pub(super) fn look(call: Call) -> Zeroizing<Vec<u8>> {
    short(CallKind::Look, "", None, None, &Actor::system(), call, None)
}

fn short(
    kind: CallKind,
    request_id: &str,
    scope: Option<&Scope>,
    tenant: Option<String>,
    actor: &Actor,
    call: Call,
    gives: Option<(u64, Vec<Piece>)>,
) -> Zeroizing<Vec<u8>> {
    let (actor, given) = (actor.clone(), Given::default());
    let ours = Ours { call, kind, tenant, actor, audience: None, epoch: None, gives, given };
    bytes(&json!({
        "request_id": request_id,
        "session_id": scope.map(Scope::session_id),
        "metadata": { "ours": ours },
    }))
}

/// Reads a request; if it is not usable, returns its name and what is wrong.
pub(super) fn read_request(
    json: &[u8],
    speech: Speech,
    plain_tenant: &TenantId,
) -> Result<Request, Unreadable> {
    let form: RequestForm = serde_json::from_slice(json).map_err(|_| Unreadable::named(json))?;
    let RequestForm { request_id, query, session_id, room_context, metadata } = form;
    let metadata: MetadataForm = serde_json::from_value(metadata).unwrap_or_default();
    let room = room_context.unwrap_or_default();
    let sealed = speech == Speech::Sealed;
    let ours: Option<Ours> = sealed.then(|| serde_json::from_value(metadata.ours).ok()).flatten();
    let unreadable = |why| Unreadable { request_id: Some(request_id.clone()), why };
    let tenant = match (&ours, speech) {
        (None, Speech::Sealed) => return Err(unreadable(Error::Internal)),
        (Some(ours), _) => ours.tenant.as_deref().map(TenantId::new).transpose(),
        (None, Speech::Plain) => Ok(Some(plain_tenant.clone())),
    };
    let tenant = tenant.map_err(|error| unreadable(error.into()))?;
    let scope = match (session_id, &tenant, id(&metadata.room_id), id(&metadata.user_id)) {
        // What was sealed is from another of our processes, which knows what is its own.
        (Some(id), Some(tenant), ..) if sealed => Some(Scope::parse_any(tenant.clone(), &id)),
        (Some(id), Some(tenant), ..) => Some(Scope::parse(tenant.clone(), &id)),
        // Requests of the first system's first version name room and person only.
        (None, Some(tenant), Some(room), Some(user)) => {
            let thread = id(&metadata.thread_id).unwrap_or_else(|| "main".to_owned());
            Some(Scope::parse(tenant.clone(), &format!("{room}:{thread}:{user}")))
        }
        _ => None,
    };
    let scope = scope.transpose().map_err(|error| unreadable(error.into()))?;
    let Some(ours) = ours else {
        let Some(scope) = scope else {
            return Err(unreadable(Error::Invalid {
                what: "the request does not name a session".to_owned(),
                hint: "give a session_id, or room_id and user_id in metadata".to_owned(),
            }));
        };
        // Who says nothing of it may be asking from a room, where nothing private is recalled. What is said of it is believed
        // as the session is: a message that was meant for one must not be kept as one that a room heard.
        let audience = serde_json::from_value(metadata.audience).unwrap_or(Audience::Room);
        // A stranger may mean anything by the word.
        let given: Given = serde_json::from_value(metadata.given).unwrap_or_default();
        let epoch = serde_json::from_value(metadata.epoch).ok();
        let mut request = given.into_request(&request_id, query, Some(audience), epoch, room);
        request.asked_as = Some(request_id.clone());
        let errand = Errand { scope: Some(scope), tenant: None, actor: Actor::named("bus"), request };
        let own_name = metadata.request_id.as_str().map(str::to_owned);
        return Ok(Request { request_id, call: None, own_name, asked: Asked::Turn(Box::new(errand)) });
    };
    let asked = match (ours.kind, scope) {
        (CallKind::Look, _) => Asked::Look,
        (kind @ (CallKind::End | CallKind::EndAll), Some(scope)) => {
            Asked::End { scope, whole_account: kind == CallKind::EndAll }
        }
        (CallKind::End | CallKind::EndAll, None) => return Err(unreadable(Error::Internal)),
        (CallKind::Give, _) => {
            let (number, pieces) = ours.gives.unwrap_or_default();
            Asked::Give { number, pieces }
        }
        (CallKind::Cancel, None) => Asked::CallOff,
        (CallKind::Cancel, Some(scope)) => Asked::Cancel { scope, request_id: request_id.clone() },
        (CallKind::Turn, scope) => {
            let request = ours.given.into_request(&request_id, query, ours.audience, ours.epoch, room);
            Asked::Turn(Box::new(Errand { scope, tenant, actor: ours.actor, request }))
        }
    };
    Ok(Request { request_id, call: Some(ours.call), own_name: None, asked })
}

/// An id as a platform has it: a word, or a number.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// A request that is not usable: its name, if it has one, and the error for its sender.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) request_id: Option<String>,
    pub(super) why: Error,
}

impl Unreadable {
    /// The error for bytes that are not a request, with the request's name if that can be read.
    fn named(json: &[u8]) -> Self {
        let (what, hint) =
            ("the request is not in the expected format".to_owned(), "send the documented JSON".to_owned());
        let request_id = serde_json::from_slice(json).ok().map(|NameForm { request_id }| request_id);
        Self { request_id, why: Error::Invalid { what, hint } }
    }
}

fn bytes(value: &Value) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(serde_json::to_vec(value).unwrap_or_default())
}

#[cfg(test)]
#[path = "wire/tests.rs"]
mod tests;
