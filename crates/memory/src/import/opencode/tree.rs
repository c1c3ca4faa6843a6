//! The tree: `session/<project>/<session>.json`, `message/<session>/<message>.json`, `part/<message>/<part>.json`.
//!
//! Easy to get wrong: the names of folders come out of files, so an id that is not a plain name leads nowhere.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::pieces::{EntryKind, list, storage_of, todo_of};
use super::{Family, Teller, is_reverted, tell_info, tell_message, tell_part};
use crate::Result;
use crate::import::draft::Draft;
use crate::import::file::stem;
use crate::import::lines::{unreadable, whole_json};
use crate::import::sink::Sink;
use crate::import::text::member;
use crate::import::{Agent, SessionFile};

/// Whether a folder is the root of such a tree.
pub(crate) fn is_tree(folder: &Path) -> bool {
    folder.join("session").is_dir() && folder.join("message").is_dir()
}

/// Whether the sessions of a tree have been taken over into a database.
pub(crate) fn has_database(tree: &Path) -> bool {
    tree.parent().is_some_and(|folder| folder.join("opencode.db").is_file())
}

/// The session files of a tree, each with those of its sub-agents.
pub(crate) fn tree_sessions(tree: &Path) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let mut paths = HashMap::new();
    let mut sessions = Vec::new();
    for project in list(&tree.join("session"), EntryKind::Folder) {
        for path in list(&project, EntryKind::Json) {
            let id = stem(&path).to_owned();
            let info = whole_json(&path).ok().flatten();
            sessions.push((id.clone(), info.and_then(|info| member(&info, "parentID").map(str::to_owned))));
            paths.insert(id, path);
        }
    }
    let family = Family::of(sessions);
    let path = |id: &String| paths.get(id).cloned();
    let unit = |root: &String| Some((path(root)?, family.below(root).iter().filter_map(path).collect()));
    family.roots.iter().filter_map(unit).collect()
}

/// Reads a session with its sub-agents.
pub(super) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let storage = storage_of(file.path()).ok_or_else(unreadable)?;
    let mut draft = Draft::new(Agent::OpenCode);
    // The name of the file is the id, and what messages are found by.
    draft.name(file.stem());
    tell(&storage, file.path(), Teller::Main, &mut draft, sink);
    if let Ok(Some(todos)) = whole_json(&todo_of(&storage, file.path())) {
        draft.todos.replace(Some(&todos));
    }
    for part in file.parts() {
        tell(&storage, part, Teller::SubAgent, &mut draft, sink);
    }
    sink.finish(draft)
}

fn tell(storage: &Path, path: &Path, teller: Teller, draft: &mut Draft, sink: &mut Sink<'_>) {
    let Ok(Some(info)) = whole_json(path) else { return sink.skip() };
    if teller == Teller::Main {
        tell_info(&info, draft);
    }
    for message in list(&storage.join("message").join(stem(path)), EntryKind::Json) {
        let id = stem(&message);
        if is_reverted(&info, id) {
            continue;
        }
        let Some(data) = json_in(&message, sink) else { continue };
        let said = tell_message(&data, None, draft);
        for part in list(&storage.join("part").join(id), EntryKind::Json) {
            if let Some(part) = json_in(&part, sink) {
                tell_part(&part, &said, teller, draft);
            }
        }
    }
}

fn json_in(path: &Path, sink: &mut Sink<'_>) -> Option<Value> {
    let value = whole_json(path).ok().flatten();
    if value.is_none() {
        sink.skip();
    }
    value
}
