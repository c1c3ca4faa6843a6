//! Aider: one Markdown file per project, to which every chat is appended.
//!
//! `# aider chat started at …` begins a chat, `#### ` lines are the person's, `> ` lines are Aider's own output, the rest
//! is the model's. Easy to get wrong: chats have no id, so one is made of the time and the project's folder name (no more
//! of the path, so that a moved project keeps its chats); times are local without zone and are taken as UTC.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};

use super::draft::{Draft, Role};
use super::lines::{Line, Lines, or_end, unreadable};
use super::sink::Sink;
use super::time::{self, Millis};
use super::{Agent, SessionFile, zstd};
use crate::Result;

/// Reads the chats of a project.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let folder = file.path().parent();
    let folder_name = folder.and_then(|folder| folder.file_name()).unwrap_or_default();
    let mut project = hex::encode(&digest(&SHA256, folder_name.as_encoded_bytes()).as_ref()[..4]);
    project.insert(0, '-');
    let mut reading = Reading {
        project,
        directory: folder.and_then(|folder| folder.to_str()).map(str::to_owned),
        started: HashMap::new(),
        chat: None,
    };
    let mut lines = Lines::new(zstd::open(file.path()).map_err(|_| unreadable())?);
    while let Some(line) = or_end(lines.next(), sink)? {
        match line {
            Line::Text(bytes) => reading.line(&String::from_utf8_lossy(bytes), sink)?,
            Line::TooLong => sink.skip(),
        }
        if sink.found() {
            return Ok(());
        }
    }
    reading.end(sink)
}

struct Reading {
    project: String,
    directory: Option<String>,
    /// How many chats began at a second.
    started: HashMap<Millis, usize>,
    chat: Option<Chat>,
}

struct Chat {
    draft: Draft,
    at: Option<Millis>,
    /// What is being said, and by whom.
    role: Role,
    said: String,
}

impl Reading {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) -> Result<()> {
        if let Some(started) = line.strip_prefix("# aider chat started at ") {
            self.end(sink)?;
            return self.begin(started, sink);
        }
        let Some(chat) = &mut self.chat else {
            if !line.trim().is_empty() {
                sink.skip();
            }
            return Ok(());
        };
        let (role, text) = match line {
            "####" => (Role::User, ""),
            ">" => (Role::Tool, ""),
            _ => match (line.strip_prefix("#### "), line.strip_prefix("> ")) {
                (Some(text), _) => (Role::User, text),
                (_, Some(text)) => (Role::Tool, text),
                _ => (Role::Assistant, line),
            },
        };
        // Blank lines stand between what is said by different ones.
        if role != chat.role && !(text.trim().is_empty() && role == Role::Assistant) {
            chat.flush();
            chat.role = role;
        }
        chat.said.push_str(text.trim_end());
        chat.said.push('\n');
        Ok(())
    }

    fn begin(&mut self, started: &str, sink: &mut Sink<'_>) -> Result<()> {
        let Some(at) = time::parse(started) else {
            sink.skip();
            return Ok(());
        };
        let count = self.started.entry(at).or_default();
        *count += 1;
        let again = if *count > 1 { format!("-{count}") } else { String::new() };
        let compact: String = time::format(at).chars().filter(|c| !matches!(c, '-' | ':' | 'Z')).collect();
        let mut draft = Draft::new(Agent::Aider);
        draft.name(&format!("aider-{compact}{}{again}", self.project));
        draft.project(self.directory.as_deref());
        draft.touch(Some(at));
        self.chat = Some(Chat { draft, at: Some(at), role: Role::Assistant, said: String::new() });
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let Some(mut chat) = self.chat.take() else { return Ok(()) };
        chat.flush();
        sink.finish(chat.draft)
    }
}

impl Chat {
    fn flush(&mut self) {
        let said = std::mem::take(&mut self.said);
        let said = said.trim();
        if said.is_empty() {
            return;
        }
        match self.role {
            Role::User => self.draft.user(said, None),
            Role::Tool => self.tool(said),
            _ => self.draft.say(Role::Assistant, said, None),
        }
        self.draft.touch(self.at);
    }

    fn tool(&mut self, said: &str) {
        for line in said.lines() {
            if let Some(version) = line.strip_prefix("Aider v") {
                self.draft.note("agent_version", Some(version));
            } else if let Some(model) =
                line.strip_prefix("Main model: ").or_else(|| line.strip_prefix("Model: "))
            {
                self.draft.note("model", model.split_whitespace().next());
            }
        }
        self.draft.tool(Some("aider"), said, None);
    }
}
