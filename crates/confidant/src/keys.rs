//! Where the master key comes from, and the file that is made when nobody gives one.
//!
//! In this order: `CHECKPOINT_ENCRYPTION_KEY` or its `_FILE`, `keys.file`, `keys.command`, and `master.key` in the
//! data folder. What is given in the environment stays as it was at the start; files and commands are asked again on
//! every load, which is how a running server learns of a rotation. Easy to get wrong: a new `master.key` must never
//! be made for data that another key sealed.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use confidant_display::Hinted as _;
use confidant_engine::MasterKey;
use confidant_engine::keys::{KeySource, KeySourceError, Kid, MasterKeys};
use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use crate::config::{Loaded, Secret, StoreKind};
use crate::files::{self, Made};
use crate::output::note;

/// The master keys of this installation.
#[derive(Debug)]
pub(crate) struct Keys {
    origin: Origin,
    /// Retired keys of the environment, whatever the origin.
    retired: Option<Secret>,
}

#[derive(Debug)]
enum Origin {
    Secret(Secret),
    File(PathBuf),
    Command(Vec<String>),
    /// `master.key` in the data folder, which is ours to write.
    Managed(PathBuf),
    /// For data that is kept in memory.
    Passing(MasterKey),
}

/// Whether a key had to be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Found,
    Made(PathBuf),
}

impl Prepared {
    /// Says, once, that a master key was made.
    pub(crate) fn tell(&self) {
        if let Self::Made(path) = self {
            note(&format!(
                "made a master key: {}\nback it up separately from the data: without it, nothing can be \
                 opened again",
                path.display()
            ));
        }
    }
}

/// The rotation of a managed file under way. Only one runs at a time: two could each drop a key that the other needs.
#[derive(Debug)]
pub(crate) struct Rotation<'a> {
    path: &'a Path,
    pub(crate) start: RotationStart,
    /// The data folder, locked until this is dropped or the process ends.
    _lock: FolderLock,
}

/// Where the rotation of a managed file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RotationStart {
    /// A new key was put in front of the old one.
    Begun,
    /// An earlier rotation was interrupted and goes on.
    Continued,
}

impl Keys {
    /// Decides where keys come from. Reads nothing yet.
    pub(crate) fn choose(loaded: &Loaded) -> Result<Self, KeySourceError> {
        let section = &loaded.config.keys;
        let origin = match (&loaded.secrets.master, &section.file, section.command.as_slice()) {
            (Some(secret), _, _) => Origin::Secret(secret.clone()),
            (None, Some(_), [_, ..]) => {
                return Err(failed("keys.file and keys.command are both set", "choose one of them"));
            }
            (None, Some(file), []) => Origin::File(file.clone()),
            (None, None, command @ [_, ..]) => Origin::Command(command.to_vec()),
            (None, None, []) => match loaded.config.store.url {
                StoreKind::Memory => Origin::Passing(MasterKey::random()),
                StoreKind::Sqlite(_) => Origin::Managed(loaded.config.server.data_dir.join(MANAGED)),
                // Made here, it would be another one on every machine that shares the store.
                StoreKind::Redis(_) | StoreKind::Postgres(_) => return Err(not_given(loaded)),
            },
        };
        Ok(Self { origin, retired: loaded.secrets.retired.clone() })
    }

    /// The same for the data in a folder, whose own `master.key` goes before that of the settings' folder.
    pub(crate) fn of_folder(loaded: &Loaded, folder: &Path) -> Result<Self, KeySourceError> {
        if !is_there(&folder.join(MANAGED))? {
            return Self::choose(loaded);
        }
        let mut loaded = loaded.clone();
        loaded.config.server.data_dir = folder.to_path_buf();
        loaded.config.store.url = StoreKind::Sqlite(None);
        Self::choose(&loaded)
    }

    /// Makes `master.key` if that is where the key comes from and there is no data yet.
    pub(crate) fn prepare(&self, loaded: &Loaded) -> Result<Prepared, KeySourceError> {
        let Origin::Managed(path) = &self.origin else { return Ok(Prepared::Found) };
        if is_there(path)? {
            return Ok(Prepared::Found);
        }
        let there =
            |folder: Option<PathBuf>, name| folder.map_or(Ok(false), |folder| is_there(&folder.join(name)));
        let config = &loaded.config;
        if there(config.keyring_folder(), "keyring.db")? || there(config.data_folder(), "confidant.db")? {
            // Asked again: another process may have made all of it since.
            return if is_there(path)? { Ok(Prepared::Found) } else { Err(missing(path)) };
        }
        let made = files::create(path, &written(&MasterKey::random(), &[])).map_err(|error| {
            let what = format!("{} cannot be written ({})", path.display(), error.kind());
            failed(&what, "check the owner, permissions and space of the data folder")
        })?;
        Ok(if made == Made::New { Prepared::Made(path.clone()) } else { Prepared::Found })
    }

    /// Where the key comes from, in a few words.
    pub(crate) fn source(&self) -> String {
        match &self.origin {
            Origin::Secret(secret) => secret.source(),
            Origin::File(path) => format!("keys.file ({})", path.display()),
            Origin::Command(_) => "keys.command".to_owned(),
            Origin::Managed(path) => path.display().to_string(),
            Origin::Passing(_) => "memory".to_owned(),
        }
    }

    /// Whether a program has to be run for the key, which may take its time.
    pub(crate) fn asks_a_program(&self) -> bool {
        matches!(self.origin, Origin::Command(_))
    }

    /// The file, if it is ours to write.
    pub(crate) fn managed(&self) -> Option<&Path> {
        if let Origin::Managed(path) = &self.origin { Some(path) } else { None }
    }

    /// Puts a new key into the managed file, with the one before it as an old one; nothing if the file is not ours.
    pub(crate) fn begin_rotation(&self) -> Result<Option<Rotation<'_>>, KeySourceError> {
        let Origin::Managed(path) = &self.origin else { return Ok(None) };
        let lock = lock_folder(path)?;
        let keys = read_file(path)?;
        let start = if keys.retired.is_empty() {
            write_managed(path, &written(&MasterKey::random(), &[keys.current]))?;
            RotationStart::Begun
        } else {
            RotationStart::Continued
        };
        Ok(Some(Rotation { path, start, _lock: lock }))
    }
}

impl Rotation<'_> {
    /// Takes the old key out of the file, once everything is sealed under `root`.
    pub(crate) fn end(self, root: Kid) -> Result<(), KeySourceError> {
        let keys = read_file(self.path)?;
        if keys.current.root().kid() != root {
            let what = format!("{} was changed by another process during the rotation", self.path.display());
            return Err(failed(&what, "run `confidant keys rotate` again; both keys are still in it"));
        }
        write_managed(self.path, &written(&keys.current, &[]))
    }
}

impl KeySource for Keys {
    fn load(&self) -> Result<MasterKeys, KeySourceError> {
        let mut keys = match &self.origin {
            Origin::Secret(secret) => {
                parse(&secret.source(), secret.read().map_err(unread)?.expose_secret())?
            }
            Origin::File(path) | Origin::Managed(path) => read_file(path)?,
            Origin::Command(command) => parse("keys.command", &output_of(command)?)?,
            Origin::Passing(key) => MasterKeys { current: key.clone(), retired: Vec::new() },
        };
        if let Some(retired) = &self.retired {
            let text = retired.read().map_err(unread)?;
            for one in text.expose_secret().split([',', '\n']).filter(|one| !one.trim().is_empty()) {
                keys.retired.push(key(&retired.source(), one)?);
            }
        }
        Ok(keys)
    }
}

/// A lock that ends with us. A program that another thread is just starting has a copy of every file we hold open, and
/// closing ours would leave its copy locked until it is under way.
#[derive(Debug)]
struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

fn lock_folder(path: &Path) -> Result<FolderLock, KeySourceError> {
    let folder = File::open(path.parent().unwrap_or(Path::new(".")));
    let locked =
        folder.map_err(TryLockError::Error).and_then(|folder| folder.try_lock().map(|()| FolderLock(folder)));
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => failed("another rotation is running", "wait until it is done"),
        TryLockError::Error(error) => {
            failed(&format!("the data folder cannot be locked ({})", error.kind()), "check its permissions")
        }
    })
}

fn read_file(path: &Path) -> Result<MasterKeys, KeySourceError> {
    parse(&path.display().to_string(), &files::read_secret(path).map_err(unread)?)
}

/// Reads the current key on the first line and old ones on lines that begin with `old:`.
fn parse(source: &str, text: &str) -> Result<MasterKeys, KeySourceError> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines
        .next()
        .ok_or_else(|| failed(&format!("{source} is empty"), "make a key: confidant keys generate"))?;
    let retired = lines.map(|line| match line.strip_prefix(OLD) {
        Some(old) => key(source, old),
        None => Err(failed(
            &format!("{source} has a line that is not a key"),
            "the first line is the current key, others begin with `old:`",
        )),
    });
    Ok(MasterKeys { current: key(source, first)?, retired: retired.collect::<Result<_, _>>()? })
}

fn key(source: &str, text: &str) -> Result<MasterKey, KeySourceError> {
    MasterKey::from_base64(text).map_err(|error| {
        let message = error.to_string();
        let (what, hint) =
            message.split_once("; ").unwrap_or((&message, "make one with `confidant keys generate`"));
        failed(&format!("{source}: {what}"), hint)
    })
}

fn written(current: &MasterKey, old: &[MasterKey]) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(Vec::with_capacity(64 * (1 + old.len())));
    text.extend_from_slice(current.dangerously_to_base64().as_bytes());
    text.push(b'\n');
    for key in old {
        text.extend_from_slice(OLD.as_bytes());
        text.push(b' ');
        text.extend_from_slice(key.dangerously_to_base64().as_bytes());
        text.push(b'\n');
    }
    text
}

fn write_managed(path: &Path, content: &[u8]) -> Result<(), KeySourceError> {
    files::replace(path, content).map_err(|error| {
        failed(
            &format!("{} cannot be written ({})", path.display(), error.kind()),
            "check its folder's permissions",
        )
    })
}

/// Runs the command and takes what it prints. What it says on stderr may be anything, so nobody hears it.
fn output_of(command: &[String]) -> Result<Zeroizing<String>, KeySourceError> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| failed("keys.command is empty", "name a program"))?;
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = spawned.map_err(|error| {
        failed(&format!("keys.command cannot be run ({})", error.kind()), "check the program's path")
    })?;
    let pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Zeroizing::new(String::new());
        let read = pipe.map(|pipe| pipe.take(MOST_OUTPUT).read_to_string(&mut text));
        read.is_some_and(|read| read.is_ok()).then_some(text)
    });
    wait(&mut child)?;
    let text = reader.join().ok().flatten();
    text.ok_or_else(|| failed("keys.command printed no text", "it has to print the key in base64"))
}

fn wait(child: &mut Child) -> Result<(), KeySourceError> {
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(_)) => return Err(failed("keys.command failed", "run it by hand to see why")),
            Ok(None) if started.elapsed() < COMMAND_TIMEOUT => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed("keys.command did not finish in 10 seconds", "run it by hand to see why"));
            }
        }
    }
}

fn not_given(loaded: &Loaded) -> KeySourceError {
    let what = "store.url is a server, so you must provide the master key";
    let before = loaded.config.server.data_dir.join(MANAGED);
    if is_there(&before).unwrap_or(false) {
        let hint = format!(
            "set CHECKPOINT_ENCRYPTION_KEY_FILE={} if the store was copied from that folder, or a key of its own as \
             CHECKPOINT_ENCRYPTION_KEY, for every process on this store",
            before.display()
        );
        return failed(what, &hint);
    }
    failed(
        what,
        "`confidant keys generate` makes one; set it as CHECKPOINT_ENCRYPTION_KEY (or …_FILE, keys.file, keys.command) for \
         every process on this store",
    )
}

fn missing(path: &Path) -> KeySourceError {
    failed(
        &format!("{} is missing, but there is data sealed with it", path.display()),
        "put your backup of master.key back, or give the key as CHECKPOINT_ENCRYPTION_KEY",
    )
}

fn unread(error: files::ReadError) -> KeySourceError {
    let (what, hint) = error.what_and_hint("check the path and its permissions");
    KeySourceError { what, hint }
}

/// Whether there is such a file; if that cannot be told, it is not taken for missing.
fn is_there(path: &Path) -> Result<bool, KeySourceError> {
    files::is_there(path).map_err(|error| {
        let (what, hint) = error.what_and_hint("check its permissions");
        KeySourceError { what, hint }
    })
}

fn failed(what: &str, hint: &str) -> KeySourceError {
    KeySourceError { what: what.to_owned(), hint: hint.to_owned() }
}

const MANAGED: &str = "master.key";
const OLD: &str = "old:";
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
const MOST_OUTPUT: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Secrets};

    const ONE: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const TWO: &str = "ICECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn loaded(toml: &str) -> Loaded {
        let config: Config = toml::from_str(toml).unwrap();
        Loaded {
            config,
            secrets: Secrets::default(),
            file: None,
            login: None,
            home: None,
            data_home: None,
            sources: Default::default(),
        }
    }

    fn in_folder(folder: &Path) -> Loaded {
        loaded(&format!("[server]\ndata_dir = '{}'", folder.display()))
    }

    fn base64(keys: &MasterKeys) -> (String, Vec<String>) {
        let text = |key: &MasterKey| key.dangerously_to_base64().to_string();
        (text(&keys.current), keys.retired.iter().map(text).collect())
    }

    #[test]
    fn a_key_is_made_once_and_never_beside_data() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = in_folder(folder.path());
        let keys = Keys::choose(&loaded).unwrap();
        let path = folder.path().join("master.key");
        assert_eq!(keys.prepare(&loaded).unwrap(), Prepared::Made(path.clone()));
        assert_eq!(keys.prepare(&loaded).unwrap(), Prepared::Found);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(folder.path().join("keyring.db"), "").unwrap();
        let error = keys.prepare(&loaded).unwrap_err().to_string();
        assert!(
            error.contains("master.key is missing") && error.contains("hint: put your backup"),
            "{error}"
        );
        assert!(!path.exists());
    }

    #[test]
    fn processes_that_start_at_once_agree_on_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = in_folder(folder.path());
        let start = || {
            let keys = Keys::choose(&loaded).unwrap();
            // One process id for all threads, so each writes its own temporary file in turn.
            keys.prepare(&loaded).map(|_| base64(&keys.load().unwrap()).0)
        };
        let first = start().unwrap();
        let all: Vec<String> = std::thread::scope(|scope| {
            (0..8)
                .map(|_| scope.spawn(start))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|t| t.join().unwrap().unwrap())
                .collect()
        });
        assert!(all.iter().all(|key| *key == first));
    }

    #[test]
    fn a_rotation_keeps_the_old_key_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = in_folder(folder.path());
        let keys = Keys::choose(&loaded).unwrap();
        keys.prepare(&loaded).unwrap();
        let (first, _) = base64(&keys.load().unwrap());
        let rotation = keys.begin_rotation().unwrap().unwrap();
        assert_eq!(rotation.start, RotationStart::Begun);
        let error = keys.begin_rotation().unwrap_err().to_string();
        assert!(error.contains("another rotation is running"), "{error}");
        drop(rotation);
        let held = keys.load().unwrap();
        let (second, old) = base64(&held);
        assert_eq!(old, [first]);
        let rotation = keys.begin_rotation().unwrap().unwrap();
        assert_eq!(rotation.start, RotationStart::Continued);
        rotation.end(held.current.root().kid()).unwrap();
        assert_eq!(base64(&keys.load().unwrap()), (second, vec![]));
        let rotation = keys.begin_rotation().unwrap().unwrap();
        assert!(rotation.end(held.current.root().kid()).is_err());
        assert_eq!(keys.load().unwrap().retired.len(), 1);
    }

    #[test]
    fn a_command_is_asked_and_its_failures_have_names() {
        let with =
            |command: &str| Keys::choose(&loaded(&format!("[keys]\ncommand = {command}"))).unwrap().load();
        let keys = with(&format!(r#"["printf", "{ONE}\nold: {TWO}\n"]"#)).unwrap();
        assert_eq!(base64(&keys), (ONE.to_owned(), vec![TWO.to_owned()]));
        for (command, what) in [
            (r#"["/nonexistent"]"#, "cannot be run"),
            (r#"["false"]"#, "keys.command failed"),
            (r#"["true"]"#, "keys.command is empty"),
            (r#"["echo", "hush"]"#, "must have 32 bytes"),
        ] {
            let error = with(command).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("; hint: ") && !error.contains("hush"), "{error}");
        }
    }
}
