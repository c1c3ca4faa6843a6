//! Sessions that are to be stored by a process behind a hook: what one that was killed did not store, the next one does.
//!
//! An entry says which file of which agent. A path tells who somebody is, so entries are sealed, under a key of their own
//! below the master key. A file's name is two tags, of whose it is and of what it is: so that whoever is erased takes along what
//! waits for them, also what does not open. Easy to get wrong: a session may be asked for again while it is being stored, so an
//! entry that is taken gets another name first, and only that is removed at the end. And what is copied, or put just then, may
//! still be there after an erasure: so an entry says how many erasures there had been, as far as its folder was told.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, MasterKey, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{Error, Owner, Result, db, regular};

/// A session that waits to be stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Whose file it is, by the agent's name.
    pub agent: String,
    /// The session file, or where the agent keeps all of them.
    pub path: String,
    /// Which session of it; all of a file that has one.
    #[serde(default)]
    pub session: Option<String>,
    /// The name of the folder that was worked in.
    #[serde(default)]
    pub project: Option<String>,
    /// Whether it may go on: then it is stored when nothing was written for a while.
    #[serde(default)]
    pub goes_on: bool,
    /// Whose memory it becomes.
    pub user: String,
    /// In which tenant.
    pub tenant: String,
    /// How many erasures there had been when it was put here, at least. One of its person since then ends it.
    #[serde(default)]
    pub born: u64,
}

/// An entry of the queue.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    name: String,
    /// What waits.
    pub waiting: Waiting,
}

debug_without_content!(Waiting(***), Entry(***), Queue(***));

impl Entry {
    /// What tells it from the others.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The queue in a folder.
pub struct Queue {
    folder: PathBuf,
    /// What seals, and what may have sealed before.
    keys: Vec<Key>,
}

/// That this process does the work; over when it is dropped or ends.
#[derive(Debug)]
pub struct AtWork(File);

impl Drop for AtWork {
    fn drop(&mut self) {
        // A child that is just being started has a copy of it.
        let _ = self.0.unlock();
    }
}

impl Queue {
    /// The queue in this folder, below the current master key; those before it still open what they sealed.
    #[must_use]
    pub fn new(folder: &Path, current: &MasterKey, retired: &[MasterKey]) -> Self {
        let key = |master: &MasterKey| master.root().derive("memory-hooks");
        let keys = std::iter::once(current).chain(retired).map(key).collect();
        Self { folder: folder.to_owned(), keys }
    }

    /// Puts a session into the queue. One that waits already waits once.
    pub fn put(&self, waiting: &Waiting) -> Result<()> {
        let Some(key) = self.keys.first() else { return Err(unwritable()) };
        let plain = serde_json::to_vec(waiting).map_err(|_| unwritable())?;
        let Waiting { agent, path, session, user, tenant, .. } = waiting;
        let same = serde_json::to_vec(&(agent, path, session, user, tenant)).map_err(|_| unwritable())?;
        let name = format!("{}-{}", whose(key, tenant, user)?, key.tag("hook-entry", &same));
        let sealed = seal(key, Suite::ChaCha20Poly1305, &context(&name), 1, &plain);
        self.write(&name, &format!("{name}{NEW}"), &sealed)
    }

    /// Makes what waits outlast a loss of power. Not part of [`put`](Self::put): a disk may be slow, and an agent waits for that.
    pub fn settle(&self) -> Result<()> {
        for (_, path) in self.files()? {
            // One that another process has finished meanwhile is not there any more.
            if let Ok(file) = regular::open(&path) {
                file.sync_all().map_err(|_| unwritable())?;
            }
        }
        self.sync()
    }

    /// How many sessions of somebody wait.
    pub fn count(&self, owner: &Owner) -> Result<u64> {
        let names: HashSet<String> = self.of(owner)?.into_iter().map(|(name, _)| name).collect();
        Ok(names.len() as u64)
    }

    /// Ends everything of somebody that waits, in whatever state it is; says how many sessions.
    pub fn clear(&self, owner: &Owner) -> Result<u64> {
        let mut gone = HashSet::new();
        // A file gets another name when its work begins, and may be missed then.
        for _ in 0..MOST_LOOKS {
            let theirs = self.of(owner)?;
            if theirs.is_empty() {
                break;
            }
            for (name, path) in theirs {
                match fs::remove_file(&path) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(_) => return Err(unwritable()),
                }
                gone.insert(name);
            }
        }
        if !gone.is_empty() {
            self.sync()?;
        }
        Ok(gone.len() as u64)
    }

    /// How many erasures there had been, as far as this folder was told; none if it was not.
    #[must_use]
    pub fn erasures(&self) -> u64 {
        let opened = self.open(ERASURES, &self.folder.join(ERASURES));
        let bytes: Option<[u8; 8]> = opened.and_then(|plain| plain.as_slice().try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    }

    /// Tells this folder how many erasures there have been: what is put here from now on is newer than those.
    pub fn note_erasures(&self, count: u64) -> Result<()> {
        if self.erasures() == count {
            return Ok(());
        }
        let Some(key) = self.keys.first() else { return Err(unwritable()) };
        let sealed = seal(key, Suite::ChaCha20Poly1305, &context(ERASURES), 1, &count.to_be_bytes());
        self.write(ERASURES, ERASURES, &sealed)
    }

    /// What waits. What does not open is left where it is: its key may come back.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        for (name, path) in self.files()? {
            let Some(waiting) = self.read(&name, &path) else { continue };
            if entries.iter().all(|entry| entry.name != name) {
                entries.push(Entry { name, waiting });
            }
        }
        Ok(entries)
    }

    /// Whether anything waits, without opening it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files().map_or(true, |files| files.is_empty())
    }

    /// Whether nothing waits in the queue of this folder. Needs no key.
    #[must_use]
    pub fn is_idle(folder: &Path) -> bool {
        Self { folder: folder.to_owned(), keys: Vec::new() }.is_empty()
    }

    /// Says that an entry is being worked on, so that the same session can be asked for again meanwhile.
    pub fn take(&self, entry: &Entry) -> Result<()> {
        let (new, taken) = (self.at(&entry.name, NEW), self.at(&entry.name, TAKEN));
        match fs::rename(new, taken) {
            Ok(()) => Ok(()),
            // It was taken by one that was killed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(_) => Err(unwritable()),
        }
    }

    /// Removes an entry that was taken.
    pub fn done(&self, entry: &Entry) -> Result<()> {
        match fs::remove_file(self.at(&entry.name, TAKEN)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(_) => Err(unwritable()),
        }
    }

    /// Takes the work; nothing if another process is at it.
    pub fn work(&self) -> Result<Option<AtWork>> {
        db::make_folder(&self.folder)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(self.folder.join("lock"));
        let file = file.map_err(|_| unwritable())?;
        match file.try_lock() {
            Ok(()) => Ok(Some(AtWork(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(_)) => Err(unwritable()),
        }
    }

    fn at(&self, name: &str, state: &str) -> PathBuf {
        self.folder.join(format!("{name}{state}"))
    }

    /// Entries with their files: new ones before those that were taken, since they say the same or more.
    fn files(&self) -> Result<Vec<(String, PathBuf)>> {
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(_) => return Err(unwritable()),
        };
        let mut files = Vec::new();
        for path in listed.take(MOST).flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let entry = name.strip_suffix(NEW).or_else(|| name.strip_suffix(TAKEN));
            if let Some(entry) = entry.map(str::to_owned) {
                files.push((entry, path));
            }
        }
        // By name, and of one name `.new` before `.taken`.
        files.sort_unstable();
        Ok(files)
    }

    /// The files of somebody, each with its entry's name. Whose one is says its name; only those of older versions have to be
    /// opened for that.
    fn of(&self, owner: &Owner) -> Result<Vec<(String, PathBuf)>> {
        let (tenant, user) = (owner.tenant.as_str(), owner.user.as_str());
        let tags: Vec<String> =
            self.keys.iter().map(|key| whose(key, tenant, user)).collect::<Result<_>>()?;
        let listed = match fs::read_dir(&self.folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(_) => return Err(unwritable()),
        };
        let mut theirs = Vec::new();
        for path in listed.flatten().map(|entry| entry.path()) {
            let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((name, _)) = file.split_once('.') else { continue };
            let is_theirs = match name.split_once('-') {
                Some((tag, _)) => tags.iter().any(|one| one == tag),
                None => self.read(name, &path).is_some_and(|one| one.tenant == tenant && one.user == user),
            };
            if is_theirs {
                theirs.push((name.to_owned(), path));
            }
        }
        Ok(theirs)
    }

    fn read(&self, name: &str, path: &Path) -> Option<Waiting> {
        serde_json::from_slice(&self.open(name, path)?).ok()
    }

    fn open(&self, name: &str, path: &Path) -> Option<Zeroizing<Vec<u8>>> {
        let mut bytes = Vec::new();
        regular::open(path).ok()?.take(LONGEST).read_to_end(&mut bytes).ok()?;
        let sealed = Sealed::from_bytes(bytes);
        let opened = self.keys.iter().find_map(|key| open(key, &context(name), &sealed).ok())?;
        Some(opened.data)
    }

    /// Writes a file whole or not at all.
    fn write(&self, name: &str, file: &str, sealed: &Sealed) -> Result<()> {
        db::make_folder(&self.folder)?;
        let temporary = self.folder.join(format!("{name}.{}.tmp", std::process::id()));
        let written = create(&temporary).and_then(|mut file| file.write_all(sealed.as_bytes()));
        written.and_then(|()| fs::rename(&temporary, self.folder.join(file))).map_err(|_| {
            let _ = fs::remove_file(&temporary);
            unwritable()
        })
    }

    /// Makes names outlast a loss of power.
    fn sync(&self) -> Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(&self.folder).and_then(|folder| folder.sync_all()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(_) => Err(unwritable()),
        }
    }
}

/// Somebody's tag, under this key.
fn whose(key: &Key, tenant: &str, user: &str) -> Result<String> {
    let both = serde_json::to_vec(&(tenant, user)).map_err(|_| unwritable())?;
    Ok(key.tag("hook-owner", &both).to_string())
}

fn context(name: &str) -> Context<'_> {
    Context { purpose: "hook", owner: "", container: "", object: name, field: "" }
}

/// A new file that only its owner can read.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn unwritable() -> Error {
    Error::unavailable(
        "the queue of sessions to store cannot be used",
        "check the owner, permissions and space of the data folder",
    )
}

const NEW: &str = ".new";
const TAKEN: &str = ".taken";
/// Where the number of erasures is. No entry is called so.
const ERASURES: &str = "erasures";
const MOST_LOOKS: usize = 8;
const MOST: usize = 10_000;
const LONGEST: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use confidant_seal::{TenantId, UserId};

    use super::*;

    fn waiting(path: &str) -> Waiting {
        Waiting {
            agent: "claude-code".into(),
            path: path.into(),
            session: None,
            project: Some("confidant".into()),
            goes_on: false,
            user: "alice".into(),
            tenant: "default".into(),
            born: 0,
        }
    }

    fn owner(user: &str) -> Owner {
        Owner { tenant: TenantId::new("default").unwrap(), user: UserId::new(user).unwrap() }
    }

    #[test]
    fn what_waits_is_sealed_waits_once_and_is_there_until_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let (master, other) = (MasterKey::random(), MasterKey::random());
        let queue = Queue::new(&folder.path().join("hooks"), &master, &[]);
        assert!(queue.is_empty());
        queue.put(&waiting("/home/alice/one.jsonl")).unwrap();
        queue.put(&waiting("/home/alice/one.jsonl")).unwrap();
        queue.put(&waiting("/home/alice/two.jsonl")).unwrap();
        let entries = queue.entries().unwrap();
        assert_eq!(entries.len(), 2);
        for entry in fs::read_dir(folder.path().join("hooks")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = [path.file_name().unwrap().as_encoded_bytes(), &fs::read(&path).unwrap()].concat();
            assert!(!bytes.windows(5).any(|part| part == b"alice"), "a path can be read");
        }
        // Under another key nothing opens; under a newer one it does.
        let strange = Queue::new(&folder.path().join("hooks"), &other, &[]);
        assert!(strange.entries().unwrap().is_empty() && !strange.is_empty());
        let rotated = Queue::new(&folder.path().join("hooks"), &other, &[master]);
        assert_eq!(rotated.entries().unwrap(), entries);
    }

    #[test]
    fn one_that_is_asked_for_again_while_it_is_stored_waits_again() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::new(folder.path(), &MasterKey::random(), &[]);
        queue.put(&waiting("/a")).unwrap();
        let entry = queue.entries().unwrap().remove(0);
        queue.take(&entry).unwrap();
        // As if the one that took it had been killed: it still waits.
        assert_eq!(queue.entries().unwrap(), std::slice::from_ref(&entry));
        queue.put(&waiting("/a")).unwrap();
        assert_eq!(queue.entries().unwrap().len(), 1);
        queue.done(&entry).unwrap();
        assert_eq!(queue.entries().unwrap(), std::slice::from_ref(&entry), "what came meanwhile is not done");
        queue.take(&entry).unwrap();
        queue.done(&entry).unwrap();
        assert!(queue.is_empty());
    }

    #[test]
    fn what_waits_goes_with_its_person_also_what_does_not_open() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (MasterKey::random(), MasterKey::random());
        let queue = Queue::new(folder.path(), &old, &[]);
        for path in ["/new", "/taken", "/broken"] {
            queue.put(&waiting(path)).unwrap();
        }
        queue.put(&Waiting { user: "bob".into(), ..waiting("/new") }).unwrap();
        let entries = queue.entries().unwrap();
        let named = |path: &str| entries.iter().find(|entry| entry.waiting.path == path).unwrap();
        queue.take(named("/taken")).unwrap();
        let broken = folder.path().join(format!("{}.new", named("/broken").name()));
        fs::write(&broken, "damaged").unwrap();
        // As one leaves it that is killed while it writes.
        fs::copy(&broken, broken.with_extension("1.tmp")).unwrap();
        // As an older version has put it: the name does not say whose it is.
        let key = old.root().derive("memory-hooks");
        let plain = serde_json::to_vec(&waiting("/older")).unwrap();
        let sealed = seal(&key, Suite::ChaCha20Poly1305, &context("0a1b"), 1, &plain);
        fs::write(folder.path().join("0a1b.new"), sealed.as_bytes()).unwrap();

        // Also after a rotation of the master key.
        let queue = Queue::new(folder.path(), &new, &[old]);
        queue.note_erasures(3).unwrap();
        assert_eq!((queue.count(&owner("alice")).unwrap(), queue.count(&owner("carol")).unwrap()), (4, 0));
        assert_eq!(queue.clear(&owner("alice")).unwrap(), 4);
        assert_eq!(queue.count(&owner("alice")).unwrap(), 0);
        let left = queue.entries().unwrap();
        assert!(left.len() == 1 && left[0].waiting.user == "bob", "what is somebody else's stays");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "one entry, and the number of erasures");
    }

    #[test]
    fn a_folder_knows_of_erasures_what_it_was_told_last() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (MasterKey::random(), MasterKey::random());
        let queue = Queue::new(&folder.path().join("hooks"), &old, &[]);
        queue.settle().unwrap();
        assert_eq!(queue.erasures(), 0);
        queue.note_erasures(0).unwrap();
        assert!(!folder.path().join("hooks").exists(), "nothing has to be said of none");
        for count in [7, 8, 2] {
            queue.note_erasures(count).unwrap();
            assert_eq!(queue.erasures(), count);
        }
        assert!(queue.is_empty() && queue.entries().unwrap().is_empty());
        queue.put(&waiting("/a")).unwrap();
        queue.settle().unwrap();
        assert_eq!(Queue::new(&folder.path().join("hooks"), &new, &[old]).erasures(), 2);
        // A number that somebody wrote there is none.
        fs::write(folder.path().join("hooks").join(ERASURES), u64::MAX.to_be_bytes()).unwrap();
        assert_eq!(queue.erasures(), 0);
    }

    #[test]
    fn one_process_works_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::new(folder.path(), &MasterKey::random(), &[]);
        let first = queue.work().unwrap();
        assert!(first.is_some() && queue.work().unwrap().is_none());
        drop(first);
        assert!(queue.work().unwrap().is_some());
    }
}
