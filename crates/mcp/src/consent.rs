//! Asking the person before a transcript is stored.
//!
//! The two flags can be typed by any agent. So where the client can ask its human, they are asked as well, with the exact
//! payload's size and hash, and what is stored afterwards is that payload or nothing. Older clients are asked in the middle
//! of the call; newer ones (2026-07-28) get the question as the result, and call again with the answer and a state that
//! only we can have made: for this owner, these arguments and this hash, for ten minutes, once.

use std::collections::VecDeque;
use std::time::Duration;

use confidant_memory::Owner;
use confidant_memory::api::DryRun;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, ProtocolVersion, RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::failure::Failure;

/// Asks, and remembers which questions were answered.
#[derive(Debug)]
pub(super) struct Consent {
    codec: RequestStateCodec,
    used: Mutex<VecDeque<[u8; 16]>>,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Asked {
    /// The person agreed to exactly this payload.
    Agreed,
    /// The client has nobody to ask; the flags have to do.
    NobodyToAsk,
    /// The question is the result, and the call comes again with its answer.
    Later(Box<InputRequiredResult>),
}

/// What a question remembers while its answer is awaited. Readable by the client, but not to be made by it.
#[derive(Serialize, Deserialize)]
struct State {
    sha256: String,
    nonce: [u8; 16],
}

impl Consent {
    /// With a key of this process: a question does not outlive it.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut key = zeroize::Zeroizing::new([0; RequestStateCodec::MIN_KEY_LENGTH]);
        getrandom::fill(key.as_mut())?;
        Ok(Self { codec: RequestStateCodec::try_new(key.to_vec())?, used: Mutex::default() })
    }

    /// Asks whether this payload may be stored. Anything but a clear yes is a failure.
    pub(super) async fn ask(
        &self,
        owner: &Owner,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        shown: &DryRun,
    ) -> Result<Asked, Failure> {
        if !can_ask(context) {
            return Ok(Asked::NobodyToAsk);
        }
        let inline =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if inline {
            return self.ask_by_result(owner, request, shown);
        }
        let asked = context.peer.create_elicitation_with_timeout(question(shown)?, Some(PATIENCE)).await;
        let answer = asked.map_err(|_| no_answer())?;
        judge(&json!({ "action": answer.action, "content": answer.content })).map(|()| Asked::Agreed)
    }

    fn ask_by_result(
        &self,
        owner: &Owner,
        request: &CallToolRequestParams,
        shown: &DryRun,
    ) -> Result<Asked, Failure> {
        let bound = binding(owner, request);
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
        if let (Some(answer), Some(state)) = (answer, &request.request_state) {
            let state: State = self.codec.open_json_with(state, &bound).map_err(|_| stale())?;
            self.spend(state.nonce)?;
            judge(answer)?;
            // The session may have changed between question and answer.
            return if state.sha256 == shown.preview.sha256 { Ok(Asked::Agreed) } else { Err(stale()) };
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|_| Failure::internal())?;
        let state = State { sha256: shown.preview.sha256.clone(), nonce };
        let options = SealOptions::new().associated_data(&bound).ttl(PATIENCE);
        let state = self.codec.seal_json_with(&state, &options).map_err(|_| Failure::internal())?;
        let ask = InputRequest::Elicitation(ElicitRequest::new(question(shown)?));
        let result =
            InputRequiredResult::new(Some(InputRequests::from([(QUESTION.into(), ask)])), Some(state));
        Ok(Asked::Later(Box::new(result)))
    }

    /// An answer counts once.
    fn spend(&self, nonce: [u8; 16]) -> Result<(), Failure> {
        let mut used = self.used.lock();
        if used.contains(&nonce) {
            return Err(stale());
        }
        used.push_back(nonce);
        if used.len() > REMEMBERED {
            used.pop_front();
        }
        Ok(())
    }
}

/// Whether the client said that it can show its person a form.
fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // Before there were others, saying nothing of forms meant forms.
    capability.is_some_and(|can| can.form.is_some() || can.url.is_none())
}

/// What an answer holds for: this owner's call with these arguments.
fn binding(owner: &Owner, request: &CallToolRequestParams) -> Vec<u8> {
    let mut bound = owner.canonical();
    bound.extend(serde_json::to_vec(&request.arguments).unwrap_or_default());
    bound
}

fn question(shown: &DryRun) -> Result<ElicitRequestParams, Failure> {
    let preview = &shown.preview;
    let removed: Vec<String> =
        shown.redaction.rules_fired.iter().map(|fired| format!("{} × {}", fired.count, fired.rule)).collect();
    let removed = if removed.is_empty() { "nothing".to_owned() } else { removed.join(", ") };
    let message = format!(
        "Store the whole redacted transcript of this session, not only its memory card?\n\nSession: \
         {}\nTitle: {}\nSize: {} bytes\nSHA-256: {}\nRedacted: {removed}\n\nRedaction is careful, but not \
         perfect. Without this, only the card is stored.",
        shown.session_id, shown.memory_card.title, preview.bytes, preview.sha256,
    );
    let schema = json!({
        "type": "object",
        "properties": {
            "store_transcript": {
                "type": "boolean",
                "title": "Store the redacted transcript",
                "description": "Exactly the bytes with the hash above",
                "default": false
            }
        },
        "required": ["store_transcript"]
    });
    let requested_schema: ElicitationSchema =
        serde_json::from_value(schema).map_err(|_| Failure::internal())?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Takes a clear yes for a yes.
fn judge(answer: &Value) -> Result<(), Failure> {
    let action = answer
        .get("action")
        .and_then(|action| serde_json::from_value::<ElicitationAction>(action.clone()).ok());
    let ticked = answer.pointer("/content/store_transcript") == Some(&Value::Bool(true));
    match action {
        Some(ElicitationAction::Accept) if ticked => Ok(()),
        Some(ElicitationAction::Accept | ElicitationAction::Decline) => {
            let message = "the person said no to storing the transcript, so nothing was stored";
            Err(Failure::new("declined", message, CARD_ONLY))
        }
        Some(ElicitationAction::Cancel) => {
            let message = "the question whether to store the transcript was dismissed, so nothing was stored";
            Err(Failure::new("cancelled", message, CARD_ONLY))
        }
        _ => Err(no_answer()),
    }
}

fn no_answer() -> Failure {
    let message =
        "the person was asked whether to store the transcript and gave no answer, so nothing was stored";
    Failure::new("no_answer", message, CARD_ONLY)
}

fn stale() -> Failure {
    let message = "the answer does not belong to an open question of this call, so nothing was stored";
    Failure::new("changed", message, "call again without inputResponses and requestState to be asked again")
}

const CARD_ONLY: &str = "to store the card only, call again without metadata.allow_raw_export";
const QUESTION: &str = "store_transcript";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(600);
/// How many answers are remembered as given; each is of no use after ten minutes anyway.
const REMEMBERED: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let yes = json!({"action": "accept", "content": {"store_transcript": true}});
        assert!(judge(&yes).is_ok());
        for (answer, code) in [
            (json!({"action": "accept", "content": {"store_transcript": false}}), "declined"),
            (json!({"action": "accept"}), "declined"),
            (json!({"action": "accept", "content": {"store_transcript": "true"}}), "declined"),
            (json!({"action": "decline", "content": {"store_transcript": true}}), "declined"),
            (json!({"action": "cancel"}), "cancelled"),
            (json!({"action": "yes", "content": {"store_transcript": true}}), "no_answer"),
            (json!("accept"), "no_answer"),
            (json!(null), "no_answer"),
        ] {
            assert_eq!(judge(&answer).unwrap_err().code, code, "{answer}");
        }
    }

    #[test]
    fn an_answer_counts_once() {
        let consent = Consent::new().unwrap();
        assert!(consent.spend([1; 16]).is_ok() && consent.spend([2; 16]).is_ok());
        assert_eq!(consent.spend([1; 16]).unwrap_err().code, "changed");
    }
}
