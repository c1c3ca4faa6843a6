//! One unit of import: a file, with those that belong to it.

use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use confidant_display::debug_without_content;

use super::lines::unreadable;
use super::{Agent, opencode, sqlite};
use crate::Result;

/// A session file that was found. A path is personal data: show it to its owner, log it nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionFile {
    agent: Agent,
    path: PathBuf,
    parts: Vec<PathBuf>,
    size: u64,
    modified: SystemTime,
}

/// One of the files behind a session.
pub(crate) struct Piece {
    /// What tells it from the others; no more of its path than that, so that a moved folder stays the same.
    pub(crate) name: OsString,
    pub(crate) path: PathBuf,
}

/// Whether a file can have a session, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    /// The name has the id.
    Named,
    /// The name says nothing.
    Open,
    /// The name has another id.
    Other,
}

impl SessionFile {
    /// The file at this path, with those that belong to it.
    pub(crate) fn open(agent: Agent, path: PathBuf, parts: Vec<PathBuf>) -> Result<Self> {
        let mut file = Self { agent, path, parts, size: 0, modified: UNIX_EPOCH };
        for piece in file.pieces() {
            let metadata: Metadata = std::fs::symlink_metadata(&piece.path).map_err(|_| unreadable())?;
            if !metadata.is_file() {
                return Err(unreadable());
            }
            file.size = file.size.saturating_add(metadata.len());
            file.modified = file.modified.max(metadata.modified().unwrap_or(UNIX_EPOCH));
        }
        Ok(file)
    }

    /// Whose it is.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sub-agents' files that belong to the same session.
    #[must_use]
    pub fn parts(&self) -> &[PathBuf] {
        &self.parts
    }

    /// The bytes of it and of all that belong to it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When it, or any that belong to it, was last written.
    #[must_use]
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Its name without extensions.
    pub(crate) fn stem(&self) -> &str {
        stem(&self.path)
    }

    /// A name that only this file gives, where another file gives the same: a few digits stand for the file's place.
    pub(crate) fn apart(&self, name: &str) -> String {
        format!("{name}{APART}{}", self.digits())
    }

    /// The name that this is [apart](Self::apart) of.
    pub(crate) fn without_place<'i>(&self, id: &'i str) -> Option<&'i str> {
        let (name, digits) = id.rsplit_once(APART)?;
        (digits.len() == 8 && digits == self.digits()).then_some(name)
    }

    fn digits(&self) -> String {
        let place = self.place();
        let hash = ring::digest::digest(&ring::digest::SHA256, place.as_os_str().as_encoded_bytes());
        hex::encode(&hash.as_ref()[..4])
    }

    /// Where it really is, whatever way leads there.
    pub(crate) fn place(&self) -> PathBuf {
        std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Every file behind it, in the same order each time.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let of = |path: &Path| Piece {
            name: path.file_name().unwrap_or_default().to_owned(),
            path: path.to_owned(),
        };
        let mut pieces = vec![of(&self.path)];
        pieces.extend(self.parts.iter().map(|part| of(part)));
        if matches!(self.agent, Agent::OpenCode | Agent::Cursor) {
            pieces.extend(sqlite::log_of(&self.path).filter(|log| is_regular(log)).map(|log| of(&log)));
            let files = opencode::tree_pieces(self);
            pieces.extend(files.iter().map(|path| of(path)));
        }
        pieces[1..].sort_by(|a, b| a.path.cmp(&b.path));
        pieces
    }

    /// Whether its name does not speak against it that this session is in it.
    pub(crate) fn can_have(&self, id: &str) -> bool {
        self.chance(id) != Chance::Other
    }

    /// Whether its name has the id of this session.
    pub(crate) fn is_named(&self, id: &str) -> bool {
        self.chance(id) == Chance::Named
    }

    fn chance(&self, id: &str) -> Chance {
        let stem = self.stem();
        let by = |named: bool, is_id: bool| match (named, is_id) {
            (true, _) => Chance::Named,
            (false, true) => Chance::Other,
            (false, false) => Chance::Open,
        };
        match self.agent {
            Agent::ClaudeCode => by(stem == id, is_uuid(stem)),
            Agent::Codex => {
                by(stem.ends_with(id), stem.get(stem.len().saturating_sub(36)..).is_some_and(is_uuid))
            }
            // The name has the first eight characters of the id.
            Agent::Gemini => {
                let short = stem.rsplit('-').next().filter(|short| short.len() == 8);
                by(short.is_some_and(|short| id.starts_with(short)), false)
            }
            Agent::OpenCode => by(stem == id, stem.starts_with("ses_")),
            Agent::Aider => by(false, !id.starts_with("aider-")),
            // What has no name is called by the file's, with its number or the file's place.
            Agent::Generic => {
                let rest = id.strip_prefix(stem);
                by(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([NUMBER, APART])), false)
            }
            Agent::Cursor | Agent::Fixture => by(stem == id, false),
        }
    }
}

// A path is personal data.
debug_without_content!(SessionFile { agent, parts: parts.len(), size });

/// Whether there is a regular file; a link to one is not.
fn is_regular(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// A file's name without `.jsonl`, `.json`, `.zst` and the like.
pub(crate) fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".zst").or_else(|| name.strip_suffix(".zstd")).unwrap_or(name);
    match name.rfind('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Between a file's name and the number of a session in it.
pub(crate) const NUMBER: char = '#';
/// Between a name and the digits of the place of the file that gives it.
const APART: char = '~';

/// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
