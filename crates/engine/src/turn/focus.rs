//! The tools `focus.start` and `focus.stop`: a conversation is put into a focus mode, and taken out of it.
//!
//! A mode changes how every later answer is made, so a model only proposes it: the person is asked, as for any call that
//! must be approved, unless a rule of the operator says otherwise. Stopping needs nobody. What is on is part of what is
//! known about the conversation, so it holds until it is stopped, whoever asks next.

use confidant_model::{Step, ToolSpec};
use serde_json::{Value, json};

use super::calls::text_of;
use crate::about::FocusChange;
use crate::aspects::FocusMode;
use crate::tools::{Effect, Tool};

pub(super) const START: &str = "focus.start";
pub(super) const STOP: &str = "focus.stop";

/// The tools for a conversation in which these modes can be started, and one may be on.
pub(super) fn tools<'f>(modes: impl Iterator<Item = &'f FocusMode>, on: Option<&str>) -> Vec<Tool> {
    let modes: Vec<&FocusMode> = modes.filter(|mode| on != Some(mode.id.as_str())).collect();
    let mut tools = Vec::new();
    if !modes.is_empty() {
        let line = |mode: &&FocusMode| match &mode.description {
            Some(description) => format!("{}: {} ({description})", mode.id, mode.name),
            None => format!("{}: {}", mode.id, mode.name),
        };
        let lines: Vec<String> = modes.iter().map(line).collect();
        let ids: Vec<&str> = modes.iter().map(|mode| mode.id.as_str()).collect();
        let description = format!(
            "Starts a focus mode for this conversation, if it would clearly help; the person is asked first. {}",
            lines.join("; ")
        );
        let properties = json!({ "focus": { "type": "string", "enum": ids } });
        tools.push(tool(START, description, properties, &["focus"]));
    }
    if let Some(on) = on {
        let description = format!(
            "Ends the focus mode {on} of this conversation, if the person wants that or is done with it."
        );
        tools.push(tool(STOP, description, json!({}), &[]));
    }
    tools
}

/// Doing it twice is doing it once.
fn tool(name: &str, description: String, properties: Value, required: &[&str]) -> Tool {
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    Tool {
        spec: ToolSpec { name: name.to_owned(), description, schema, strict: None },
        effect: Effect::WritesOnce,
    }
}

/// The mode that a call would start.
pub(super) fn wanted(arguments: &Value) -> &str {
    text_of(arguments, "focus").unwrap_or_default()
}

/// What a model is told when a mode is on: what the operator says of it, since the prompt was made without.
pub(super) fn started(id: &str, instructions: Option<&str>) -> String {
    let how = instructions.unwrap_or("Nothing more is said about it.");
    format!("{STARTED}{id}. It holds for this answer and for the rest of the conversation:\n{how}")
}

pub(super) fn stopped() -> String {
    STOPPED.to_owned()
}

/// What the calls of a turn did to the mode.
pub(super) fn change(steps: &[Step]) -> Option<FocusChange> {
    let made = steps.iter().flat_map(|step| step.calls.iter().zip(&step.results));
    let mut changes = made.filter_map(|(call, result)| match call.name.as_str() {
        START if result.starts_with(STARTED) => Some(FocusChange::On(wanted(&call.arguments).to_owned())),
        STOP if result == STOPPED => Some(FocusChange::Off),
        _ => None,
    });
    changes.next_back()
}

const STARTED: &str = "Focus mode on: ";
const STOPPED: &str = "Focus mode off.";

#[cfg(test)]
mod tests {
    use super::*;
    use confidant_model::ToolCall;

    fn mode(id: &str) -> FocusMode {
        FocusMode { id: id.to_owned(), name: "Name".to_owned(), description: Some("Cites.".to_owned()) }
    }

    #[test]
    fn only_what_is_not_on_can_be_started_and_only_what_is_on_stopped() {
        let names = |tools: Vec<Tool>| tools.into_iter().map(|tool| tool.spec.name).collect::<Vec<_>>();
        let modes = [mode("web.research"), mode("code.plan")];
        assert_eq!(names(tools(modes.iter(), None)), [START]);
        assert_eq!(names(tools(modes.iter(), Some("code.plan"))), [START, STOP]);
        assert_eq!(names(tools(modes[1..].iter(), Some("code.plan"))), [STOP]);
        assert_eq!(names(tools([].iter(), None)), [""; 0]);
        let start = tools(modes.iter(), None).remove(0);
        assert!(start.spec.description.ends_with("web.research: Name (Cites.); code.plan: Name (Cites.)"));
        assert_eq!(start.spec.schema["properties"]["focus"]["enum"], json!(["web.research", "code.plan"]));
    }

    #[test]
    fn only_what_was_done_changes_anything() {
        let step = |name: &str, result: String| Step {
            text: String::new(),
            calls: vec![ToolCall {
                id: "1".to_owned(),
                name: name.to_owned(),
                arguments: json!({ "focus": "web.research" }),
                signatures: Vec::new(),
            }],
            results: vec![result],
        };
        let on = step(START, started("web.research", None));
        assert_eq!(change(std::slice::from_ref(&on)), Some(FocusChange::On("web.research".to_owned())));
        assert_eq!(change(&[on.clone(), step(STOP, stopped())]), Some(FocusChange::Off));
        assert_eq!(change(&[step(START, "Not called: it was denied.".to_owned())]), None);
        // A server's tool cannot say that it was.
        assert_eq!(change(&[step("evil.tool", started("web.research", None))]), None);
    }
}
