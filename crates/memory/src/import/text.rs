//! Text out of JSON, and what a person typed out of text.
//!
//! Agents wrap what a person typed into blocks of their own: environment, reminders, slash commands, instructions from
//! files. Owns telling these apart. Easy to get wrong: nothing may be cut in the middle, for a secret that is split over
//! a cut escapes the redaction rules; blocks come off whole, or stay.

use serde_json::Value;

use super::draft::LONGEST_LEAF;

/// What a person's message is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed<'a> {
    /// A request in the person's own words.
    Request(&'a str),
    /// A command to the agent's program, such as `/clear`.
    Command(String),
    /// Nothing of it was typed.
    Nothing,
}

/// Tells what a person typed from what was wrapped around it.
pub(crate) fn typed(text: &str) -> Typed<'_> {
    let (mut rest, mut command) = (text.trim(), String::new());
    while let Some((block, after)) = leading_block(rest) {
        match block.tag {
            "command-name" => command = block.inner.trim().to_owned(),
            "command-args" if !block.inner.trim().is_empty() => {
                command.push(' ');
                command.push_str(block.inner.trim());
            }
            _ => {}
        }
        rest = after.trim_start();
    }
    // What comes off here closes no block before it, so there is no need to look for one again and again.
    while let Some(before) = without_trailing_reminder(rest) {
        rest = before;
    }
    if let Some(after) = rest.strip_prefix("# Context from my IDE setup:") {
        rest = after.split_once("## My request for Codex:").map_or("", |(_, request)| request.trim());
    }
    if rest.is_empty() || NOT_TYPED.iter().any(|start| rest.starts_with(start)) || unclosed_block(rest) {
        return if command.is_empty() { Typed::Nothing } else { Typed::Command(command) };
    }
    if is_command(rest) { Typed::Command(rest.to_owned()) } else { Typed::Request(rest) }
}

/// Content as agents write it: a string, or a list of blocks. Pictures and files leave a word; tool calls nothing.
pub(crate) fn of_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(of_block).filter(|text| !text.is_empty());
            texts.collect::<Vec<_>>().join("\n\n")
        }
        Value::Object(_) => of_block(content).unwrap_or_default(),
        _ => String::new(),
    }
}

/// A result or an argument as lines of `name: value`: no quotes and no escapes, so that what is in it looks to the
/// redaction rules (and to a reader) as it looked to the tool. Names stand before every leaf, so a few bytes of JSON can be
/// gigabytes of lines: it ends with the leaf that makes it too long for a message, and is then left out whole.
pub(crate) fn of_value(value: &Value) -> String {
    let mut out = String::new();
    write_leaves(value, &mut String::new(), &mut out);
    out
}

/// A result that is text, blocks of text, or anything.
pub(crate) fn of_result(value: &Value) -> String {
    match value {
        Value::Array(blocks) if blocks.iter().all(|block| of_block(block).is_some()) => of_content(value),
        _ => of_value(value),
    }
}

/// The text in a member.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn of_block(block: &Value) -> Option<String> {
    if let Value::String(text) = block {
        return Some(text.clone());
    }
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.contains("image") || block.get("inlineData").is_some() {
        return Some("[image]".to_owned());
    }
    if matches!(kind, "thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_result") {
        return None;
    }
    if block.get("thought").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    block.get("text").and_then(Value::as_str).map(str::to_owned)
}

fn write_leaves(value: &Value, path: &mut String, out: &mut String) {
    let inside = |path: &mut String, out: &mut String, name: &str, value: &Value| {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        write_leaves(value, path, out);
        path.truncate(length);
    };
    match value {
        Value::Null => {}
        Value::Object(members) => members.iter().for_each(|(name, value)| inside(path, out, name, value)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let line: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            write_leaf(path, &line.join(" "), out);
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| inside(path, out, &at.to_string(), value));
        }
        Value::String(text) => write_leaf(path, text, out),
        other => write_leaf(path, &other.to_string(), out),
    }
}

fn write_leaf(path: &str, text: &str, out: &mut String) {
    if text.is_empty() || out.len() > LONGEST_LEAF {
        return;
    }
    if !out.is_empty() {
        out.push('\n');
    }
    if !path.is_empty() {
        out.push_str(path);
        out.push_str(": ");
    }
    out.push_str(text);
}

struct Block<'a> {
    tag: &'static str,
    inner: &'a str,
}

/// `<tag …>…</tag>` of a known tag at the beginning, and what follows.
fn leading_block(text: &str) -> Option<(Block<'_>, &str)> {
    let (tag, body) = opening(text)?;
    let (inner, after) = body.split_once(&format!("</{tag}>"))?;
    Some((Block { tag, inner }, after))
}

fn opening(text: &str) -> Option<(&'static str, &str)> {
    let rest = text.strip_prefix('<')?;
    let tag = WRAPPERS.into_iter().find(|tag| {
        let next = rest.strip_prefix(tag).and_then(|rest| rest.chars().next());
        matches!(next, Some('>' | ' '))
    })?;
    rest.split_once('>').map(|(_, body)| (tag, body))
}

fn unclosed_block(text: &str) -> bool {
    opening(text).is_some()
}

fn without_trailing_reminder(text: &str) -> Option<&str> {
    let before = text.strip_suffix("</system-reminder>")?;
    Some(before[..before.rfind("<system-reminder>")?].trim_end())
}

/// `/word` or `/word arguments`; `/home/x` is a path.
fn is_command(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('/') else { return false };
    let word = rest.split_whitespace().next().unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

/// What agents write in the person's name, as seen in 2026.
const WRAPPERS: [&str; 28] = [
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "collaboration_mode",
    "command-args",
    "command-contents",
    "command-message",
    "command-name",
    "environment_context",
    "ide_diagnostics",
    "ide_opened_file",
    "ide_selection",
    "INSTRUCTIONS",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "permissions",
    "session_context",
    "skill",
    "skills_instructions",
    "subagent_notification",
    "system-reminder",
    "task-notification",
    "teammate-message",
    "turn_aborted",
    "user_instructions",
    "user-prompt-submit-hook",
    "user_shell_command",
];
const NOT_TYPED: [&str; 6] = [
    "# AGENTS.md instructions for ",
    "Caveat: The messages below were generated by the user while running local commands",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "This session is being continued from a previous conversation",
    "[Request interrupted by user",
    "Another language model started to solve this problem",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_told_from_wrapping() {
        for (text, expected) in [
            ("fix the login", Typed::Request("fix the login")),
            ("/home/me/x.rs does not compile", Typed::Request("/home/me/x.rs does not compile")),
            ("<p>why is this bold?</p>", Typed::Request("<p>why is this bold?</p>")),
            ("<system-reminder>be kind</system-reminder>\nfix it", Typed::Request("fix it")),
            ("fix it\n<system-reminder>be kind</system-reminder>", Typed::Request("fix it")),
            ("/clear", Typed::Command("/clear".into())),
            (
                "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                 <command-args>the parser</command-args>",
                Typed::Command("/review the parser".into()),
            ),
            ("<environment_context>\n<cwd>/x</cwd>\n</environment_context>", Typed::Nothing),
            ("<permissions instructions>a</permissions instructions>", Typed::Nothing),
            ("<environment_context>never closed", Typed::Nothing),
            ("# AGENTS.md instructions for /x\n\nbe brief", Typed::Nothing),
            (
                "# Context from my IDE setup:\n## Open tabs\n## My request for Codex:\nfix it",
                Typed::Request("fix it"),
            ),
            ("  ", Typed::Nothing),
        ] {
            assert_eq!(typed(text), expected, "{text}");
        }
    }

    #[test]
    fn arguments_become_lines_without_escapes() {
        let value = json!({"command": ["git", "commit"], "edits": [{"new": 1, "old": "a\nb"}], "gone": null});
        assert_eq!(of_value(&value), "command: git commit\nedits.0.new: 1\nedits.0.old: a\nb");
        assert_eq!(of_value(&json!("plain")), "plain");
    }

    #[test]
    fn long_names_before_many_leaves_do_not_fill_the_memory() {
        let name = "n".repeat(1 << 14);
        let leaves: Vec<u32> = (0..1 << 14).collect();
        let length = of_value(&json!({ name: leaves })).len();
        assert!((LONGEST_LEAF..LONGEST_LEAF + (1 << 15)).contains(&length), "{length}");
    }

    #[test]
    fn what_is_wrapped_comes_off_in_linear_time() {
        let reminders = "<system-reminder>x</system-reminder>".repeat(200_000);
        assert_eq!(typed(&format!("{reminders}fix it{reminders}")), Typed::Request("fix it"));
        // Never closed. Looked for again after every reminder, its end would take hours to miss.
        assert_eq!(typed(&format!("<skill>fix it{reminders}")), Typed::Nothing);
    }

    #[test]
    fn content_is_text_and_blocks() {
        let blocks = json!([{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"},
            {"type": "input_image", "image_url": "data:"}, {"type": "new", "other": 1}, "c"]);
        assert_eq!(of_content(&blocks), "a\n\n[image]\n\nc");
        assert_eq!(of_content(&json!(7)), "");
        assert_eq!(of_result(&json!([{"a": 1}])), "0.a: 1");
    }
}
