//! The memory of everyone: what owners share, what is left undone, and the end of an owner.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use confidant_seal::{Key, Kid, Tag};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::api::IndexOf;
use crate::blobs::{Blobs, Locator, Removed};
use crate::cost::Prices;
use crate::documents::TruthSource;
use crate::index::{Index, Mix};
use crate::instances::Instances;
use crate::keys::{ArtifactId, Held, KeyState, Keys, OwnerFiles, OwnerKey, RootSource};
use crate::locator::LocatorSeal;
use crate::own::{Beginning, OwnMemory};
use crate::source::Sources;
use crate::truth::{Doomed, Erasure, Finished, StoredRow, Task, TaskKind, Texts, Truth, Upload, Why, Writer};
use crate::witness::Witness;
use crate::written;
use crate::{Card, Error, Gate, Owner, Redacted, Result};

/// What a memory is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where `memory.db` and the index are.
    pub folder: PathBuf,
    /// Where `memory-keys.db` is; best elsewhere.
    pub keys_folder: PathBuf,
    /// Where roots come from.
    pub roots: Box<dyn RootSource>,
    /// What is redacted.
    pub gate: Gate,
    /// Who writes the cards; rules if nobody is named.
    pub card_writer: Option<Arc<dyn CardWriter>>,
    /// Where artifacts may go, by the `mode` that names it. What is not here is not allowed.
    pub stores: BTreeMap<String, Arc<dyn Blobs>>,
    /// Which of them it is if a request names none.
    pub default_mode: String,
    /// Where sessions are looked for that are not handed over.
    pub sources: Sources,
    /// The present, in milliseconds since 1970.
    pub clock: fn() -> i64,
    /// What storage costs.
    pub prices: Prices,
    /// What a search knows of a session.
    pub index: IndexOf,
    /// Who is told what was done; nobody in tests of other things.
    pub witness: Option<Arc<dyn Witness>>,
}

/// Writes a card by other means than rules, from redacted text only.
#[async_trait]
pub trait CardWriter: Send + Sync + std::fmt::Debug {
    /// The card, or nothing if none could be made: then the rules make one.
    async fn write(&self, session: &Redacted) -> Option<Card>;
}

/// The memories of an installation. Clones are the same.
#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<Inner>,
}

/// What all handles of a memory share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) folder: PathBuf,
    pub(crate) keys: Arc<Keys>,
    pub(crate) truth: Arc<Truth>,
    pub(crate) instances: Instances,
    pub(crate) gate: Gate,
    pub(crate) card_writer: Option<written::Writer>,
    pub(crate) stores: BTreeMap<String, Arc<dyn Blobs>>,
    pub(crate) default_mode: String,
    pub(crate) sources: Sources,
    pub(crate) clock: fn() -> i64,
    pub(crate) index_of: IndexOf,
    mix: Mutex<Mix>,
    prices: Prices,
    pub(crate) witness: Option<Arc<dyn Witness>>,
    /// Open indexes. A key that was destroyed and made again is another owner to them.
    pub(crate) indexes: Mutex<HashMap<(Tag, Kid), Arc<Index>>>,
}

/// An upload that was cut off.
struct Unfinished {
    blob: Vec<u8>,
    seal: LocatorSeal,
    resume: Option<Locator>,
}

/// What became of a task.
enum TakenUp {
    Finished,
    Dropped,
    Removed,
    /// Somebody is at it, or was faster.
    ByAnother,
}

/// Whether a store is worth asking.
#[derive(Clone, Copy)]
enum Store {
    Asked,
    /// It did not answer a moment ago.
    Silent,
}

impl Store {
    fn is_asked(self) -> Result<()> {
        match self {
            Self::Asked => Ok(()),
            Self::Silent => Err(Error::unavailable("the store does not answer", "Confidant keeps trying")),
        }
    }
}

/// What was left undone and is done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Uploads that were finished.
    pub finished: u64,
    /// Stores that had to be given up; nothing of them is left.
    pub dropped: u64,
    /// Removals that were made up for.
    pub removed: u64,
    /// Tasks that wait for a store that does not answer.
    pub waiting: u64,
}

/// What is to be done outside the memory's own files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Blobs that are to be uploaded.
    pub uploads: u64,
    /// Blobs that are to be removed; their keys are destroyed.
    pub removals: u64,
}

/// Whose erasure it is.
enum Whose {
    /// Somebody's, who asks for it now.
    Person(Owner),
    /// One that was begun and cut off.
    Begun(Tag, Erasure),
}

/// What an owner's erasure ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Memories that went.
    pub memories: u64,
    /// Keys that were destroyed.
    pub keys: u64,
}

impl Memory {
    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Opens a memory. Does no slow work: keys are stretched and indexes opened when they are needed.
    pub fn open(parts: Parts) -> Result<Self> {
        let truth = Arc::new(Truth::open(&parts.folder.join("memory.db"))?);
        let keys_file = parts.keys_folder.join("memory-keys.db");
        let keys = Keys::open(&keys_file, parts.roots, Arc::clone(&truth))?;
        // Without its keys a memory is not an empty one: starting anew here would orphan all that is there.
        if !keys.is_begun()? && !truth.is_empty()? {
            return Err(Error::unavailable(
                "memory-keys.db is empty, so none of the stored memories can be opened",
                "put memory-keys.db back beside keyring.db, or start with an empty memory folder",
            ));
        }
        let instances = Instances::enlist(&parts.folder.join("running"))?;
        let inner = Inner {
            keys: Arc::new(keys),
            truth,
            instances,
            gate: parts.gate,
            card_writer: parts.card_writer.map(written::Writer::new),
            stores: parts.stores,
            default_mode: parts.default_mode,
            sources: parts.sources,
            clock: parts.clock,
            index_of: parts.index,
            mix: Mutex::default(),
            prices: parts.prices,
            witness: parts.witness,
            indexes: Mutex::default(),
            folder: parts.folder,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Changes what is mixed into the order of what is found, for measurements. Indexes that are open stay as they are.
    #[doc(hidden)]
    pub fn mixing(&self, mix: Mix) {
        *self.inner.mix.lock() = mix;
    }

    /// One owner's memories, on behalf of `actor`, as the audit log names whoever asks.
    #[must_use]
    pub fn of(&self, owner: Owner, actor: &str) -> OwnMemory {
        OwnMemory::new(Arc::clone(&self.inner), owner, actor)
    }

    /// Does what a process that is gone left undone.
    pub fn recover(&self) -> BoxFuture<'_, Result<Recovered>> {
        Box::pin(async move {
            let inner = Arc::clone(&self.inner);
            detached(async move { inner.recover().await }).await
        })
    }

    /// How much is under way, or waits for a store that does not answer.
    pub fn undone(&self) -> BoxFuture<'_, Result<Undone>> {
        Box::pin(async move {
            let tasks = self.inner.tasks().await?;
            let uploads = tasks.iter().filter(|task| task.kind == TaskKind::Put).count() as u64;
            Ok(Undone { uploads, removals: tasks.len() as u64 - uploads })
        })
    }

    /// Ends everything of an owner: keys first, so that from that moment nothing opens.
    pub fn erase<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<Erased>> {
        Box::pin(async move {
            let (inner, owner) = (Arc::clone(&self.inner), owner.clone());
            detached(async move { inner.erase(Whose::Person(owner)).await }).await
        })
    }

    /// Re-seals all keys under the current root; says how many.
    pub fn rotate(&self, progress: impl Fn(u64, u64) + Send + 'static) -> BoxFuture<'static, Result<u64>> {
        let (keys, progress): (_, Box<dyn Fn(u64, u64) + Send>) =
            (Arc::clone(&self.inner.keys), Box::new(progress));
        Box::pin(blocking(move || keys.rotate(&progress)))
    }

    /// How many keys there are, and how many a rotation still has to re-seal.
    pub fn key_state(&self) -> BoxFuture<'_, Result<KeyState>> {
        Box::pin(async move {
            let keys = Arc::clone(&self.inner.keys);
            blocking(move || keys.state()).await
        })
    }

    /// The price tables that are configured.
    #[must_use]
    pub fn prices(&self) -> &Prices {
        &self.inner.prices
    }

    /// Checks the files and the stores.
    pub fn check(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let truth = Arc::clone(&self.inner.truth);
            blocking(move || truth.check()).await?;
            for store in self.inner.stores.values() {
                store.check().await?;
            }
            Ok(())
        })
    }
}

impl Inner {
    pub(crate) fn store_of(&self, mode: Option<&str>) -> Result<(&str, &Arc<dyn Blobs>)> {
        let mode = mode.unwrap_or(&self.default_mode);
        self.stores.get_key_value(mode).map(|(mode, store)| (mode.as_str(), store)).ok_or_else(|| {
            let allowed: Vec<&str> = self.stores.keys().map(String::as_str).collect();
            Error::NotAllowed {
                what: "this server does not allow this `mode`".to_owned(),
                hint: format!("use one of: {}; memory.modes says what is allowed", allowed.join(", ")),
            }
        })
    }

    /// A row's key and texts; nothing if it was forgotten a moment ago.
    pub(crate) fn open_row(&self, owner: &OwnerKey, row: &StoredRow) -> Result<Option<(Key, Texts)>> {
        row.sound()?;
        let Some(key) = self.keys.artifact(owner, row.artifact)? else { return Ok(None) };
        let texts = row.texts(owner, &key)?;
        Ok(Some((key, texts)))
    }

    /// Uploads what is pending and makes it live. What fails leaves nothing, unless it can be gone on with.
    pub(crate) async fn upload(
        self: &Arc<Self>,
        store: &Arc<dyn Blobs>,
        begun: &Beginning,
        upload: Upload,
    ) -> Result<Finished> {
        let memory = upload.memory;
        let noted = AtomicBool::new(false);
        let note = |locator: &Locator| {
            // Nothing to go on with is nothing that has begun.
            if !locator.0.is_empty() {
                let kept = self.truth.note_locator(memory, &begun.seal(locator)).is_ok();
                noted.store(kept, Ordering::Relaxed);
            }
        };
        let put = store.put(&begun.pointer, &begun.ciphertext, None, &note).await;
        let inner = Arc::clone(self);
        match put {
            Ok(locator) => self.arrived(upload, begun.seal(&locator), begun.locator_seal()).await,
            Err(error) if noted.load(Ordering::Relaxed) => Err(begun_and_kept(&error)),
            Err(error) => {
                let artifact = begun.artifact();
                blocking(move || inner.give_up(memory, artifact)).await?;
                Err(error)
            }
        }
    }

    /// Shows what was uploaded. What was forgotten during the upload goes again, with a key that was made meanwhile.
    async fn arrived(
        self: &Arc<Self>,
        upload: Upload,
        locator: Vec<u8>,
        seal: LocatorSeal,
    ) -> Result<Finished> {
        let (inner, artifact) = (Arc::clone(self), upload.artifact);
        let finished = blocking(move || {
            let vouch = inner.keys.tasks_key()?;
            let session = inner.truth.pending(upload.memory)?.map(|(_, row)| row.session_tag);
            // Where somebody ended the owner meanwhile there is no register any more, and no row.
            let anchor = inner.keys.anchor_of(&seal.owner).ok();
            let finished =
                inner.truth.finish(&upload, &locator, &seal, anchor.as_deref(), inner.writer(&vouch))?;
            match (&finished, session) {
                (Finished::Gone, _) => {
                    if let Some(owner) = inner.keys.owner_of_tag(upload.owner)? {
                        inner.keys.destroy_artifacts(&owner, &[artifact], &[])?;
                    }
                }
                (_, Some(session)) => inner.keys.unmark(&seal.owner, session)?,
                (_, None) => {}
            }
            Ok(finished)
        })
        .await?;
        if finished == Finished::Gone {
            for task in self.tasks().await? {
                let ours = task.kind == TaskKind::Remove && task.artifact == artifact;
                if ours && self.remove_blob(&task).await.is_err() {
                    tracing::warn!("a blob that was forgotten during its upload is not removed yet");
                }
            }
        }
        Ok(finished)
    }

    /// Takes back a store that failed. The blob may be there for all we know, so its removal is a task.
    fn give_up(&self, memory: u64, artifact: ArtifactId) -> Result<()> {
        let Some((tag, row)) = self.truth.pending(memory)?.filter(|(_, row)| row.artifact == artifact) else {
            return Ok(());
        };
        let owner = self.keys.owner_of_tag(tag)?;
        let held = match &owner {
            Some(owner) => self.keys.held(owner, artifact)?,
            None => None,
        };
        let mut doomed = row.doomed(held.as_ref(), None);
        // Nothing opens a blob whose key was never written, and its name is its own.
        doomed.pointer.get_or_insert_with(|| row.pointer.clone());
        let vouch = self.keys.tasks_key()?;
        self.truth.remove(&[doomed], tag, Why::Ended, self.writer(&vouch))?;
        match owner {
            Some(owner) => self.keys.destroy_artifacts(&owner, &[artifact], &[]),
            None => Ok(()),
        }
    }

    /// This process, as one who writes.
    pub(crate) fn writer<'w>(&self, vouch: &'w Key) -> Writer<'w> {
        Writer { instance: self.instances.own(), vouch }
    }

    pub(crate) async fn tasks(self: &Arc<Self>) -> Result<Vec<Task>> {
        let inner = Arc::clone(self);
        blocking(move || Ok(inner.tasks_now()?.0)).await
    }

    /// What is to be done; and how many tasks nothing vouches for. Without any, no key is asked for.
    pub(crate) fn tasks_now(&self) -> Result<(Vec<Task>, u64)> {
        if self.truth.is_idle()? {
            return Ok((Vec::new(), 0));
        }
        self.truth.tasks(&self.keys.tasks_key()?)
    }

    /// Erasures that were begun; and how many nothing vouches for.
    pub(crate) fn erasing_now(&self) -> Result<(Vec<(Tag, Erasure)>, u64)> {
        if self.truth.is_idle()? {
            return Ok((Vec::new(), 0));
        }
        self.truth.erasing(&self.keys.tasks_key()?)
    }

    pub(crate) async fn remove_blob(self: &Arc<Self>, task: &Task) -> Result<Removed> {
        let (_, store) = self.store_of(Some(&task.mode))?;
        // What could be found by a locator alone cannot be removed: such stores are permanent.
        let removed = store.remove(&task.pointer, &Locator::default()).await?;
        let (inner, task) = (Arc::clone(self), task.clone());
        blocking(move || {
            inner.truth.scrub()?;
            inner.truth.done(&task)
        })
        .await?;
        Ok(removed)
    }

    pub(crate) async fn recover(self: &Arc<Self>) -> Result<Recovered> {
        let mut recovered = Recovered::default();
        let inner = Arc::clone(self);
        for (owner, begun) in blocking(move || Ok(inner.erasing_now()?.0)).await? {
            if let Err(error) = self.erase(Whose::Begun(owner, begun)).await {
                tracing::warn!(error = error.code(), "an interrupted erasure cannot be resumed yet");
                recovered.waiting += 1;
            }
        }
        let tasks = self.tasks().await?;
        let mut silent: HashSet<String> = HashSet::new();
        for task in self.left_undone(tasks) {
            // A store that does not answer is asked once, not once for each of a thousand tasks.
            let store = if silent.contains(&task.mode) { Store::Silent } else { Store::Asked };
            match self.take_up(&task, store).await {
                Ok(TakenUp::Finished) => recovered.finished += 1,
                Ok(TakenUp::Dropped) => recovered.dropped += 1,
                Ok(TakenUp::Removed) => recovered.removed += 1,
                Ok(TakenUp::ByAnother) => {}
                Err(error) => {
                    recovered.waiting += 1;
                    if matches!(error, Error::Unavailable { .. }) {
                        silent.insert(task.mode);
                    } else {
                        tracing::warn!(error = error.code(), "a task of the memory failed");
                    }
                }
            }
        }
        Ok(recovered)
    }

    /// Goes on with the upload of an artifact that somebody began, unless they are at it.
    pub(crate) async fn go_on(self: &Arc<Self>, artifact: ArtifactId) -> Result<()> {
        let mut tasks = self.tasks().await?;
        tasks.retain(|task| task.kind == TaskKind::Put && task.artifact == artifact);
        for task in self.left_undone(tasks) {
            self.take_up(&task, Store::Asked).await.map_err(|error| begun_and_kept(&error))?;
        }
        Ok(())
    }

    /// Those of processes that are gone, and of this one.
    fn left_undone(&self, mut tasks: Vec<Task>) -> Vec<Task> {
        let (own, mut alive) = (self.instances.own(), self.instances.alive());
        tasks.retain(|task| task.instance == own || !alive(task.instance));
        tasks
    }

    /// Does a task, unless somebody is at it.
    async fn take_up(self: &Arc<Self>, task: &Task, store: Store) -> Result<TakenUp> {
        let Some(_at_work) = self.instances.start(task.artifact) else { return Ok(TakenUp::ByAnother) };
        let (inner, claimed) = (Arc::clone(self), task.clone());
        if !blocking(move || inner.truth.claim(&claimed, inner.instances.own())).await? {
            return Ok(TakenUp::ByAnother);
        }
        match task.kind {
            TaskKind::Remove => {
                let (inner, of) = (Arc::clone(self), task.clone());
                blocking(move || match inner.keys.owner_of_tag(of.owner)? {
                    Some(owner) => {
                        let marks = Vec::from_iter(of.mark);
                        inner.keys.destroy_artifacts(&owner, &[of.artifact], &marks)?;
                        inner.index(&owner)?.forget(&[of.memory])
                    }
                    None => Ok(()),
                })
                .await?;
                store.is_asked()?;
                self.remove_blob(task).await.map(|_| TakenUp::Removed)
            }
            TaskKind::Put => {
                store.is_asked()?;
                self.resume_put(task).await
            }
        }
    }

    /// Goes on with an upload that was cut off. One whose key was never written has nothing to open it and is dropped.
    async fn resume_put(self: &Arc<Self>, task: &Task) -> Result<TakenUp> {
        let (inner, of) = (Arc::clone(self), task.clone());
        let found = blocking(move || inner.unfinished(&of)).await?;
        let inner = Arc::clone(self);
        let memory = task.memory;
        let Some(Unfinished { blob, seal, resume }) = found else {
            let task = task.clone();
            blocking(move || {
                inner.give_up(memory, task.artifact)?;
                inner.truth.done(&task)
            })
            .await?;
            return Ok(TakenUp::Dropped);
        };
        let (_, store) = self.store_of(Some(&task.mode))?;
        let truth = Arc::clone(&self.truth);
        let note = |locator: &Locator| drop(truth.note_locator(memory, &seal.seal(locator)));
        let locator = store.put(&task.pointer, &blob, resume.as_ref(), &note).await?;
        Ok(match self.arrived(task.upload(), seal.seal(&locator), seal.clone()).await? {
            Finished::Gone => TakenUp::Dropped,
            Finished::Shown { .. } | Finished::Superseded => TakenUp::Finished,
        })
    }

    /// What it takes to go on with an upload; nothing if it cannot be gone on with.
    fn unfinished(&self, task: &Task) -> Result<Option<Unfinished>> {
        let Some(owner) = self.keys.owner_of_tag(task.owner)? else { return Ok(None) };
        let Some(key) = self.keys.artifact(&owner, task.artifact)? else { return Ok(None) };
        let Some(blob) = self.truth.blob(task)?.filter(|blob| task.pointer.names(blob)) else {
            return Ok(None);
        };
        let seal = LocatorSeal { owner, id: task.artifact, key };
        let resume = task.locator.as_ref().map(|sealed| seal.open(sealed)).transpose()?;
        Ok(Some(Unfinished { blob, seal, resume }))
    }

    async fn erase(self: &Arc<Self>, whose: Whose) -> Result<Erased> {
        let inner = Arc::clone(self);
        let (owner, erased) = blocking(move || inner.end(whose)).await?;
        for task in self.tasks().await? {
            if task.owner == owner && task.kind == TaskKind::Remove && self.remove_blob(&task).await.is_err()
            {
                tracing::warn!("a blob of an erased person is not removed yet; its key is destroyed");
            }
        }
        Ok(erased)
    }

    /// Ends everything of somebody in our own files.
    fn end(&self, whose: Whose) -> Result<(Tag, Erased)> {
        let (tag, estate, before) = match whose {
            Whose::Person(person) => (self.keys.owner_tag(&person)?, self.keys.estate(&person)?, Vec::new()),
            Whose::Begun(tag, begun) => {
                // Somebody who came back since has another key: that is not what was to end.
                let theirs = self.keys.owner_of_tag(tag).ok().flatten();
                let estate: Vec<OwnerKey> =
                    theirs.into_iter().filter(|owner| begun.concerns(owner.number())).collect();
                (tag, estate, begun.artifacts)
            }
        };
        let mut held = Vec::new();
        for owner in &estate {
            held.extend(self.keys.opening(owner)?.into_iter().map(|held| (owner, held)));
        }
        let mut artifacts: Vec<ArtifactId> = held.iter().map(|(_, held)| held.id).collect();
        let mut doomed = self.doomed(tag, &held, &before)?;
        artifacts.extend(before);
        // Said first, so that an erasure that is cut off is gone on with. That an owner has no key says nothing: the keys
        // may only be elsewhere.
        let vouch = self.keys.tasks_key()?;
        let numbers = match estate.as_slice() {
            [] => vec![u64::MAX],
            estate => estate.iter().filter_map(OwnerKey::number).collect(),
        };
        self.truth.begin_erasing(&vouch, tag, &Erasure { numbers, artifacts })?;
        let (keys, ids) = self.keys.destroy_owner(tag, &estate)?;
        self.certify(&mut doomed)?;
        self.truth.remove(&doomed, tag, Why::Ended, self.writer(&vouch))?;
        self.truth.forget_notes(tag)?;
        self.remove_index(tag)?;
        self.truth.end_erasing(tag)?;
        Ok((tag, Erased { memories: doomed.len().max(ids.len()) as u64, keys }))
    }

    /// The rows of somebody whose keys these are: those of their artifacts, whatever tag they have; those under their tag that
    /// are nobody else's; and those that name no artifact that there is, but open with a key of theirs.
    fn doomed(&self, tag: Tag, held: &[(&OwnerKey, Held)], before: &[ArtifactId]) -> Result<Vec<Doomed>> {
        let mut doomed: Vec<Doomed> = Vec::new();
        let mut without = Vec::new();
        for (owner, held) in held {
            match self.truth.by_artifact(held.id)? {
                Some(row) => doomed.push(row.doomed(Some(held), None)),
                None => without.push((owner, held)),
            }
        }
        for artifact in before {
            let row =
                self.truth.by_artifact(*artifact)?.filter(|row| doomed.iter().all(|one| one.id != row.id));
            doomed.extend(row.map(|row| row.doomed(None, None)));
        }
        let mut known: HashSet<u64> = doomed.iter().map(|one| one.id).collect();
        for row in self.truth.after(tag, 0, false, usize::MAX)? {
            if !known.contains(&row.id) && !self.keys.has_artifact(row.artifact)? {
                let held = without.iter().find(|(owner, held)| row.is_of(owner, held.id, &held.key));
                doomed.push(row.doomed(held.map(|(_, held)| *held), None));
                known.insert(row.id);
            }
        }
        if !without.is_empty() {
            for (id, artifact) in self.truth.all()? {
                let named = match artifact {
                    Some(artifact) => self.keys.has_artifact(artifact)?,
                    None => false,
                };
                if named || known.contains(&id) {
                    continue;
                }
                let Some(row) = self.truth.by_number(id)? else { continue };
                let theirs = without.iter().find(|(owner, held)| row.is_of(owner, held.id, &held.key));
                doomed.extend(theirs.map(|(_, held)| row.doomed(Some(*held), None)));
            }
        }
        Ok(doomed)
    }

    /// Lets rows whose keys are gone, as after a restore or an erasure that was cut off, say where their blobs are: but
    /// never where that is the blob of somebody's key.
    fn certify(&self, doomed: &mut [Doomed]) -> Result<()> {
        if doomed.iter().all(|one| one.pointer.is_some()) {
            return Ok(());
        }
        let Some(claimed) = self.keys.claimed()? else { return Ok(()) };
        for one in doomed.iter_mut().filter(|one| one.pointer.is_none()) {
            let row = self.truth.by_number(one.id)?.filter(|row| row.sound().is_ok());
            one.pointer = row.map(|row| row.pointer).filter(|pointer| !claimed.contains(pointer));
        }
        Ok(())
    }

    fn remove_index(&self, owner: Tag) -> Result<()> {
        let mut indexes = self.indexes.lock();
        indexes.retain(|(tag, _), _| *tag != owner);
        let folder = self.index_folder(owner);
        if folder.exists() && std::fs::remove_dir_all(&folder).is_err() {
            return Err(Error::unavailable(
                "the keys of the search index are destroyed, but its files could not be removed",
                "check the permissions of the data folder and erase again",
            ));
        }
        Ok(())
    }

    pub(crate) fn index(&self, owner: &OwnerKey) -> Result<Arc<Index>> {
        let mut indexes = self.indexes.lock();
        let name = (owner.tag, owner.kid());
        if let Some(index) = indexes.get(&name) {
            return Ok(Arc::clone(index));
        }
        if indexes.len() >= MOST_OPEN_INDEXES {
            indexes.clear();
        }
        let keys = OwnerFiles { keys: Arc::clone(&self.keys), owner: owner.clone() };
        let index = Index::open(&self.index_folder(owner.tag), Arc::new(keys))?.with_mix(*self.mix.lock());
        let index = Arc::new(index);
        indexes.insert(name, Arc::clone(&index));
        Ok(index)
    }

    fn index_folder(&self, owner: Tag) -> PathBuf {
        self.folder.join("index").join(owner.to_string())
    }

    pub(crate) fn source(&self, owner: &OwnerKey) -> TruthSource {
        TruthSource { truth: Arc::clone(&self.truth), keys: Arc::clone(&self.keys), owner: owner.clone() }
    }
}

/// Runs work that may block where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(cut_off()))
}

/// Runs work to its end, whatever becomes of the caller.
pub(crate) async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(cut_off()))
}

fn begun_and_kept(error: &Error) -> Error {
    let (what, hint) = error.parted();
    Error::unavailable(
        format!("the upload is not finished: {what}"),
        format!("{hint}; the upload is kept and resumes by itself, or when the session is stored again"),
    )
}

fn cut_off() -> Error {
    Error::unavailable("the work was interrupted", "try again; the next start finishes or undoes it")
}

const MOST_OPEN_INDEXES: usize = 256;
