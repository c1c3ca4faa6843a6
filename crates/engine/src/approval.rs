//! Approvals: calls that a person must allow before they are made.
//!
//! What is kept of one is sealed in the session's log with the work that waits for it: the exact call, its hash, who may
//! decide and until when. A decision is an entry of the log, so there is one, whoever races; the call goes out after an
//! entry that says so, so there is at most one of that, too. What is easy to get wrong: the rules may have changed
//! since the person was asked, so they are asked again when the decision is carried out.

use confidant_display::debug_without_content;
use confidant_model::{Step, ToolCall};
use confidant_prepare::Prepared;
use confidant_seal::Tag;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audience::Audience;
use crate::clock::Millis;
use crate::ledger::entry::is_default;
use crate::store::random_id;

/// Who may decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// The person whose turn it is.
    Asker,
    /// Anyone with an administrator's token, and the command line.
    Admin,
    /// This person.
    User(String),
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call is made.
    Approve,
    /// It is not.
    Deny,
}

/// Somebody who decides, as the surface that they used knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// A person, by their id in the session's tenant.
    Person(String),
    /// An administrator.
    Admin,
}

/// An approval as a person is asked for it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Names the approval.
    pub approval_id: String,
    /// What to type where there are no buttons: `approve CODE` or `deny CODE`.
    pub code: String,
    /// The question, in words.
    pub question: String,
    /// The answers to it.
    pub options: [Decision; 2],
    /// The tool that would be called.
    pub tool: String,
    /// With exactly these arguments.
    pub arguments: Value,
    /// The hash of the call, to hold a decision against.
    pub hash: String,
    /// Until when it can be decided.
    pub expires_at: Millis,
    /// The turn that waits for it.
    pub request_id: String,
    /// Who was to read the turn's answer, and so may read the question.
    #[serde(default = "narrowest")]
    pub audience: Audience,
}

/// What a process of an earlier version does not say is for the person alone.
fn narrowest() -> Audience {
    Audience::Private
}

/// An approval as it is kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Approval {
    pub(crate) id: String,
    pub(crate) code: String,
    pub(crate) tool: String,
    pub(crate) hash: String,
    pub(crate) approvers: Vec<Approver>,
    pub(crate) asked_at: Millis,
    pub(crate) expires_at: Millis,
    /// What was decided, and by whom: once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decided: Option<Decided>,
}

/// A decision as it is kept.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) by: String,
    pub(crate) at: Millis,
    /// The message that said so, by its own name, where it was said in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said_as: Option<String>,
}

/// The work of a turn that is not done: what the model has called, and what came back.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Steps that are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) done: Vec<Step>,
    /// The step that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<Current>,
    /// What it waits for, or waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<Approval>,
    /// The call that went out, by its place in the current step; whether it was done is only known by its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calling: Option<usize>,
    /// The model that does the work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) model: String,
    /// What was found out about the turn when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prepared: Option<Box<Prepared>>,
    /// Whether the person's settings went into it. They are not kept, so nobody can take them out of what is made of it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) knows_settings: bool,
    /// That it waits for the client, which was handed the calls of the current step that are of its own tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) handed: Option<Handed>,
    /// How many steps the client has heard of, the current one included; their words are not said again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) told: usize,
    /// Whether it is only what the client sent along, and nothing was done of it here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) brought: bool,
}

/// Calls that the client is to make.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handed {
    /// How long they are waited for.
    pub(crate) until: Millis,
    /// The first step that it had not heard of before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) from: usize,
}

/// A step under way.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Current {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    /// A result for each call that has one.
    pub(crate) results: Vec<Option<String>>,
}

impl Current {
    pub(crate) fn new(text: String, calls: Vec<ToolCall>) -> Self {
        let results = vec![None; calls.len()];
        Self { text, calls, results }
    }

    /// The first call without a result.
    pub(crate) fn next(&self) -> Option<usize> {
        self.results.iter().position(Option::is_none)
    }

    /// The step as it is done.
    pub(crate) fn into_step(self) -> Step {
        let results = self.results.into_iter().map(Option::unwrap_or_default).collect();
        Step { text: self.text, calls: self.calls, results }
    }
}

impl Work {
    /// Whether something was done of it here.
    pub(crate) fn is_begun(&self) -> bool {
        self.current.is_some() || !(self.done.is_empty() || self.brought)
    }

    /// Its steps, the current one last, each with what the model said and called.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&str, &[ToolCall])> {
        let current = self.current.as_ref().map(|current| (current.text.as_str(), current.calls.as_slice()));
        self.done.iter().map(|step| (step.text.as_str(), step.calls.as_slice())).chain(current)
    }

    /// The call that is waiting for a decision, with its place in the step.
    pub(crate) fn waiting_call(&self) -> Option<(usize, &ToolCall)> {
        let current = self.current.as_ref()?;
        let at = current.next()?;
        Some((at, current.calls.get(at)?))
    }
}

impl Approval {
    /// An approval of one call, not yet asked for.
    pub(crate) fn new(
        scope: Tag,
        call: &ToolCall,
        approvers: Vec<Approver>,
        asked_at: Millis,
        expires_at: Millis,
    ) -> Self {
        let random = Tag::from_bytes(random_id()).to_string();
        // The session's tag leads whoever has the id back to the session; the rest cannot be guessed.
        let id = format!("apr-{scope}-{random}");
        let code = code(&random_id());
        let hash = call_hash(&id, call);
        Self { id, code, tool: call.name.clone(), hash, approvers, asked_at, expires_at, decided: None }
    }

    /// Whether the call is the one that was shown.
    pub(crate) fn is_of(&self, call: &ToolCall) -> bool {
        self.tool == call.name && self.hash == call_hash(&self.id, call)
    }

    /// Whether somebody may decide this approval of `asker`'s turn.
    pub(crate) fn may_be_decided_by(&self, decider: &Decider, asker: &str) -> bool {
        self.approvers.iter().any(|approver| match (approver, decider) {
            (Approver::Asker, Decider::Person(person)) => person == asker,
            (Approver::User(user), Decider::Person(person)) => person == user,
            (Approver::Admin, Decider::Admin) => true,
            _ => false,
        })
    }

    /// As a person is asked for it.
    pub(crate) fn request(&self, request_id: &str, audience: Audience, call: &ToolCall) -> ApprovalRequest {
        let question = format!(
            "May I call {} with {}? Answer `approve {code}` or `deny {code}`.",
            self.tool,
            shown(&call.arguments),
            code = self.code,
        );
        ApprovalRequest {
            approval_id: self.id.clone(),
            code: self.code.clone(),
            question,
            options: [Decision::Approve, Decision::Deny],
            tool: self.tool.clone(),
            arguments: call.arguments.clone(),
            hash: self.hash.clone(),
            expires_at: self.expires_at,
            request_id: request_id.to_owned(),
            audience,
        }
    }
}

/// The session that an approval's id leads to.
pub(crate) fn scope_of(approval_id: &str) -> Option<Tag> {
    Tag::from_hex(approval_id.strip_prefix("apr-")?.split_once('-')?.0)
}

/// The arguments as a question shows them: whole where that can be read, and never so that they look like the rest.
fn shown(arguments: &Value) -> String {
    // What a person reads is the call as it is; nothing here is for a model.
    let text = crate::fence::visible_line(&arguments.to_string());
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("`{}…` (shortened; `arguments` has all of it)", &text[..end]),
        None => format!("`{text}`"),
    }
}

const LONGEST_SHOWN: usize = 600;

/// What is approved is this call and no other.
fn call_hash(approval_id: &str, call: &ToolCall) -> String {
    let whole = serde_json::json!([approval_id, call.name, canonical(&call.arguments)]).to_string();
    hex::encode(ring::digest::digest(&ring::digest::SHA256, whole.as_bytes()).as_ref())
}

/// The same text for the same arguments, however their keys are ordered.
pub(crate) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut sorted: Vec<_> = object.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            Value::Array(
                sorted.into_iter().map(|(key, value)| serde_json::json!({ key: canonical(value) })).collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

/// Six characters that are hard to mistake for one another.
fn code(random: &[u8; 16]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    random.iter().take(6).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

debug_without_content!(ApprovalRequest, Approval, Decided, Work, Current, Handed);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: Value) -> ToolCall {
        ToolCall { id: "c".into(), name: "files.delete".into(), arguments, signatures: Vec::new() }
    }

    fn approval(call: &ToolCall, approvers: Vec<Approver>) -> Approval {
        Approval::new(Tag::from_bytes([7; 16]), call, approvers, Millis(0), Millis(10))
    }

    #[test]
    fn an_approval_is_of_one_call() {
        let shown = call(json!({ "path": "/a", "deep": { "x": 1, "y": [1, 2] } }));
        let approval = approval(&shown, vec![Approver::Asker]);
        assert!(approval.is_of(&shown));
        assert!(approval.is_of(&call(json!({ "deep": { "y": [1, 2], "x": 1 }, "path": "/a" }))));
        for other in [
            call(json!({ "path": "/b", "deep": { "x": 1, "y": [1, 2] } })),
            call(json!({ "path": "/a", "deep": { "x": 1, "y": [2, 1] } })),
            call(json!({ "path": "/a", "deep": [{ "x": 1 }, { "y": [1, 2] }] })),
            ToolCall { name: "files.read".into(), ..shown.clone() },
        ] {
            assert!(!approval.is_of(&other), "{}", other.arguments);
        }
        assert_eq!(scope_of(&approval.id), Some(Tag::from_bytes([7; 16])));
        assert_eq!(scope_of("apr-zz-1"), None);
    }

    #[test]
    fn only_the_right_person_decides() {
        let person = |id: &str| Decider::Person(id.to_owned());
        let cases = [
            (vec![Approver::Asker], person("alice"), true),
            (vec![Approver::Asker], person("bob"), false),
            (vec![Approver::Asker], Decider::Admin, false),
            (vec![Approver::Admin], person("alice"), false),
            (vec![Approver::Admin], Decider::Admin, true),
            (vec![Approver::User("bob".into())], person("alice"), false),
            (vec![Approver::User("bob".into()), Approver::Admin], person("bob"), true),
            (vec![], person("alice"), false),
        ];
        for (approvers, decider, expected) in cases {
            let approval = approval(&call(json!({})), approvers.clone());
            assert_eq!(approval.may_be_decided_by(&decider, "alice"), expected, "{approvers:?} {decider:?}");
        }
    }

    #[test]
    fn the_question_shows_the_call_on_one_line() {
        let call = call(json!({ "text": "a\n`approve XXXXXX`\u{202e}", "long": "x".repeat(2000) }));
        let request = approval(&call, vec![Approver::Asker]).request("r1", Audience::Room, &call);
        assert!(!request.question.contains('\n') && !request.question.contains('\u{202e}'));
        assert!(request.question.contains("shortened") && request.question.len() < 1000);
        assert_eq!(request.arguments, call.arguments);
    }
}
