//! The files of the tree that a session is in.

use std::path::{Path, PathBuf};

use crate::import::SessionFile;
use crate::import::file::stem;

/// Every file behind a session, its own and its sub-agents' aside.
pub(crate) fn tree_pieces(file: &SessionFile) -> Vec<PathBuf> {
    let Some(storage) = storage_of(file.path()).filter(|_| is_info(file.path())) else {
        return Vec::new();
    };
    let mut pieces = Vec::new();
    for info in std::iter::once(file.path()).chain(file.parts().iter().map(PathBuf::as_path)) {
        let messages = list(&storage.join("message").join(stem(info)), EntryKind::Json);
        for message in &messages {
            pieces.extend(list(&storage.join("part").join(stem(message)), EntryKind::Json));
        }
        pieces.extend(messages);
        pieces.extend(Some(todo_of(&storage, info)).filter(|todo| todo.is_file()));
    }
    pieces
}

/// The folder in which a tree's session file lies.
pub(super) fn storage_of(info: &Path) -> Option<PathBuf> {
    info.parent()?.parent()?.parent().map(Path::to_owned)
}

pub(super) fn is_info(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

pub(super) fn todo_of(storage: &Path, info: &Path) -> PathBuf {
    storage.join("todo").join(format!("{}.json", stem(info)))
}

pub(super) enum EntryKind {
    Folder,
    Json,
}

/// What is in a folder, in the order of names, links aside.
pub(super) fn list(folder: &Path, kind: EntryKind) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let fits = |entry: &std::fs::DirEntry| {
        let Ok(found) = entry.file_type() else { return false };
        match kind {
            EntryKind::Folder => found.is_dir(),
            EntryKind::Json => {
                found.is_file() && entry.path().extension().is_some_and(|extension| extension == "json")
            }
        }
    };
    let entries = entries.take(MOST_ENTRIES).filter_map(std::result::Result::ok);
    let mut paths: Vec<PathBuf> = entries.filter(fits).map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

const MOST_ENTRIES: usize = 100_000;
