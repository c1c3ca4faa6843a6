//! A folder of instruction files, read again where it changed.
//!
//! A file that cannot be read or understood keeps its last good version; one that is gone is gone. Nothing is read
//! through a link that leads out of the folder, and nothing but plain files, so that no file of the machine gets into
//! a prompt that way and no pipe stops the reading.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::Fault;
use super::file::Instruction;
use crate::fence::one_line;

/// What the folder had when it was last looked at.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    known: BTreeMap<String, Known>,
}

/// A file as it was last seen.
#[derive(Debug, Default)]
struct Known {
    stamp: Option<Stamp>,
    /// Whether it was read again after it stopped changing: two writes within one tick of the clock of the file
    /// system look like one.
    settled: bool,
    good: Option<Arc<Instruction>>,
    fault: Option<String>,
}

/// What tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// The file behind the name and when anything about it changed: an editor may put an older file in the place.
    identity: (u64, i64, i64),
}

/// The instructions in force, in the order of their slots, and the files that something is wrong with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    pub(super) files: Vec<Arc<Instruction>>,
    pub(super) faults: Vec<Fault>,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, known: BTreeMap::new() }
    }

    /// Looks at the folder, reads what changed, and says what there is now.
    pub(super) fn look(&mut self) -> Snapshot {
        let mut faults = Vec::new();
        match self.names() {
            Ok(names) => {
                if names.len() > MOST_FILES {
                    let what = format!(
                        "there are more than {MOST_FILES} files, so the last ones by name are ignored; hint: remove some"
                    );
                    faults.push(Fault { file: FOLDER.to_owned(), what });
                }
                let mut known = std::mem::take(&mut self.known);
                for name in names.into_iter().take(MOST_FILES) {
                    let file = self.look_at(&name, known.remove(&name).unwrap_or_default());
                    self.known.insert(name, file);
                }
            }
            Err(error) => {
                let what =
                    format!("it cannot be read ({}); hint: check its owner and permissions", error.kind());
                faults.push(Fault { file: FOLDER.to_owned(), what });
            }
        }
        let files = self.known.iter();
        faults.extend(
            files.filter_map(|(name, file)| Some(Fault { file: shown(name), what: file.fault.clone()? })),
        );
        let mut files: Vec<_> = self.known.values().filter_map(|file| file.good.clone()).collect();
        files.sort_by(|a, b| (a.slot, a.order, &a.file).cmp(&(b.slot, b.order, &b.file)));
        Snapshot { files, faults }
    }

    /// The names of the files, sorted; none if there is no folder.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let ours = name.ends_with(".md") && !name.starts_with('.');
            if ours && !name.eq_ignore_ascii_case("README.md") {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn look_at(&self, name: &str, before: Known) -> Known {
        let path = self.path.join(name);
        let stamp = fs::metadata(&path).ok().map(|found| Stamp::of(&found));
        let same = stamp.is_some() && stamp == before.stamp;
        if same && before.settled {
            return before;
        }
        let read = self.read(&path).and_then(|content| Instruction::parse(name, &content));
        let (good, fault) = match read {
            // The same as before stays the same, so that comparing is cheap.
            Ok(read) => match before.good {
                Some(good) if *good == read => (Some(good), None),
                _ => (Some(Arc::new(read)), None),
            },
            Err(what) => (before.good, Some(what)),
        };
        Known { stamp, settled: same, good, fault }
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        let unreadable = |error: io::Error| {
            format!("it cannot be read ({}); hint: check its owner and permissions", error.kind())
        };
        let folder = self.path.canonicalize().map_err(unreadable)?;
        let path = path.canonicalize().map_err(unreadable)?;
        if !path.starts_with(&folder) {
            return Err(
                "it links to a file outside the folder; hint: copy the file instead of linking to it"
                    .to_owned(),
            );
        }
        if !fs::metadata(&path).map_err(unreadable)?.is_file() {
            return Err("it is not a file; hint: remove .md from its name".to_owned());
        }
        let mut content = Vec::new();
        let file = File::open(&path).map_err(unreadable)?;
        file.take(MOST_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 > MOST_BYTES {
            return Err(format!("it is larger than {} KiB; hint: shorten it", MOST_BYTES / 1024));
        }
        String::from_utf8(content).map_err(|_| "it is not UTF-8; hint: save it as UTF-8".to_owned())
    }
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self { bytes: found.len(), modified: found.modified().ok(), identity: identity(found) }
    }
}

#[cfg(unix)]
fn identity(found: &Metadata) -> (u64, i64, i64) {
    use std::os::unix::fs::MetadataExt as _;
    (found.ino(), found.ctime(), found.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, i64, i64) {
    (0, 0, 0)
}

/// A file's name in messages.
fn shown(name: &str) -> String {
    one_line(name).chars().take(100).collect()
}

/// What messages call the folder itself.
const FOLDER: &str = "the folder";
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 32 * 1024;
