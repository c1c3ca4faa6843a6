//! The memory of everyone, and the door to one owner's.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use confidant_seal::{Kid, Tag};
use serde_json::Value;

use crate::api::{
    Crypto, DryRun, Forget, Forgotten, Hits, MemoryHit, Preview, QueryRequest, Retrieved, StoreRequest,
    Stored, Verified,
};
use crate::artifact::{self, ArtifactPlace, Prepared};
use crate::blobs::{Blobs, Locator, Pointer, Removed};
use crate::documents::TruthSource;
use crate::index::{Index, Query};
use crate::instances::Instances;
use crate::keys::{ArtifactId, KeyState, Keys, OwnerFiles, OwnerKey, RootSource};
use crate::source::Sources;
use crate::truth::{Inserted, Kind, NewRow, StoredRow, Task, Texts, Truth};
use crate::witness::{Act, Witness};
use crate::{Card, Error, Gate, Owner, Redacted, Result, Session, when};

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

/// One owner's memories: nothing here reaches another's.
#[derive(Clone, Debug)]
pub struct OwnMemory {
    inner: Arc<Inner>,
    owner: Owner,
    actor: String,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    keys: Arc<Keys>,
    truth: Arc<Truth>,
    instances: Instances,
    gate: Gate,
    card_writer: Option<Arc<dyn CardWriter>>,
    stores: BTreeMap<String, Arc<dyn Blobs>>,
    default_mode: String,
    sources: Sources,
    clock: fn() -> i64,
    witness: Option<Arc<dyn Witness>>,
    /// Open indexes. A key that was destroyed and made again is another owner to them.
    indexes: Mutex<HashMap<(Tag, Kid), Arc<Index>>>,
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

/// What an owner's erasure ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Memories that went.
    pub memories: u64,
    /// Keys that were destroyed.
    pub keys: u64,
}

impl Memory {
    /// Opens a memory. Does no slow work: keys are stretched and indexes opened when they are needed.
    pub fn open(parts: Parts) -> Result<Self> {
        let keys = Keys::open(&parts.keys_folder.join("memory-keys.db"), parts.roots)?;
        let truth = Truth::open(&parts.folder.join("memory.db"))?;
        let instances = Instances::enlist(&parts.folder.join("running"))?;
        let inner = Inner {
            keys: Arc::new(keys),
            truth: Arc::new(truth),
            instances,
            gate: parts.gate,
            card_writer: parts.card_writer,
            stores: parts.stores,
            default_mode: parts.default_mode,
            sources: parts.sources,
            clock: parts.clock,
            witness: parts.witness,
            indexes: Mutex::default(),
            folder: parts.folder,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// One owner's memories, on behalf of `actor`, as the audit log names whoever asks.
    #[must_use]
    pub fn of(&self, owner: Owner, actor: &str) -> OwnMemory {
        OwnMemory { inner: Arc::clone(&self.inner), owner, actor: actor.to_owned() }
    }

    /// Does what a process that is gone left undone.
    pub async fn recover(&self) -> Result<Recovered> {
        let inner = Arc::clone(&self.inner);
        detached(async move { inner.recover().await }).await
    }

    /// Ends everything of an owner: keys first, so that from that moment nothing opens.
    pub async fn erase(&self, owner: &Owner) -> Result<Erased> {
        let (inner, owner) = (Arc::clone(&self.inner), owner.clone());
        detached(async move { inner.erase(inner.keys.owner_tag(&owner)?).await }).await
    }

    /// Re-seals all keys under the current root; says how many.
    pub async fn rotate(&self, progress: impl Fn(u64, u64) + Send + 'static) -> Result<u64> {
        let keys = Arc::clone(&self.inner.keys);
        blocking(move || keys.rotate(&progress)).await
    }

    /// How many keys there are, and how many a rotation still has to re-seal.
    pub async fn key_state(&self) -> Result<KeyState> {
        let keys = Arc::clone(&self.inner.keys);
        blocking(move || keys.state()).await
    }

    /// Checks the files and the stores.
    pub async fn check(&self) -> Result<()> {
        let truth = Arc::clone(&self.inner.truth);
        blocking(move || truth.check()).await?;
        for store in self.inner.stores.values() {
            store.check().await?;
        }
        Ok(())
    }
}

impl OwnMemory {
    /// What storing would store. Writes nothing.
    pub async fn preview(&self, request: &StoreRequest) -> Result<DryRun> {
        self.inner.store_of(request.mode.as_deref())?;
        let prepared = self.prepare(request).await?;
        let payload: Value = serde_json::from_slice(&prepared.payload).unwrap_or_default();
        let preview = Preview {
            artifact_type: prepared.artifact_type,
            fields: payload.as_object().map(artifact::fields).unwrap_or_default(),
            bytes: prepared.payload.len(),
            would_upload: false,
            sha256: prepared.sha256(),
            payload_json: String::from_utf8_lossy(&prepared.payload).into_owned(),
            payload,
        };
        Ok(DryRun {
            ok: true,
            dry_run: true,
            preview,
            redaction: prepared.redaction(),
            session_id: prepared.session_id,
            memory_card: prepared.card,
        })
    }

    /// Redacts, derives, scans again, seals, stores and indexes. Goes on to its end even if the caller goes away.
    pub async fn store(&self, request: &StoreRequest) -> Result<Stored> {
        let (own, request) = (self.clone(), request.clone());
        detached(async move { own.store_to_the_end(&request).await }).await
    }

    /// Searches; local, without any network.
    pub async fn query(&self, request: &QueryRequest) -> Result<Hits> {
        let own = self.clone();
        let query = Query {
            text: request.query.clone(),
            tags: request.tags.clone(),
            from: request.from,
            until: request.until,
            limit: request.limit.clamp(1, MOST_HITS),
            offset: request.offset.min(MOST_OFFSET),
            now: (self.inner.clock)(),
        };
        let hits = blocking(move || own.search(&query)).await?;
        self.note(Act::Queried, hits.hits.len() as u64).await?;
        Ok(hits)
    }

    /// The newest first.
    pub async fn list(&self, request: &QueryRequest) -> Result<Hits> {
        self.query(&QueryRequest { query: String::new(), ..request.clone() }).await
    }

    /// Fetches an artifact, checks and opens it.
    pub async fn retrieve(&self, uri: &str, mode: Option<&str>) -> Result<Retrieved> {
        let pointer = Pointer::parse(uri)?;
        if let Some(mode) = mode {
            self.inner.store_of(Some(mode))?;
        }
        let (own, wanted) = (self.clone(), pointer.clone());
        let found = blocking(move || {
            let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(None) };
            let Some(row) = own.inner.truth.by_pointer(owner.tag, &wanted)? else { return Ok(None) };
            let Some(key) = own.inner.keys.artifact(&owner, row.artifact)? else { return Ok(None) };
            let texts = row.texts(&owner, &key)?;
            Ok(Some((owner, row, key, texts)))
        })
        .await?;
        let Some((owner, row, key, texts)) = found else { return Err(no_such_memory()) };
        if mode.is_some_and(|mode| mode != row.mode) {
            return Err(Error::not_found(
                "this memory is not in the store that `mode` names",
                "leave `mode` out: the memory knows where it is",
            ));
        }
        let (_, store) = self.inner.store_of(Some(&row.mode))?;
        let ciphertext = store.get(&pointer, &row.locator).await?;
        let place = ArtifactPlace {
            owner: &owner,
            session_id: &texts.source_session_id,
            id: row.artifact,
            artifact_type: row.artifact_type,
        };
        let artifact = place.open(&key, &pointer, ciphertext)?;
        self.note(Act::Retrieved, 1).await?;
        let crypto = Verified { verified: true };
        Ok(Retrieved {
            ok: true,
            cascade_uri: pointer.to_string(),
            artifact_type: row.artifact_type,
            artifact,
            crypto,
        })
    }

    /// Destroys keys, rows, index entries and blobs. A dry run says what would go.
    pub async fn forget(&self, what: &Forget, dry_run: bool) -> Result<Forgotten> {
        let (own, what) = (self.clone(), what.clone());
        detached(async move { own.forget_to_the_end(&what, dry_run).await }).await
    }

    /// How many memories there are.
    pub async fn count(&self) -> Result<u64> {
        let own = self.clone();
        blocking(move || match own.inner.keys.known_owner(&own.owner)? {
            Some(owner) => own.inner.truth.count(owner.tag),
            None => Ok(0),
        })
        .await
    }

    /// Everything that is kept, opened: the export that a person has a right to.
    pub async fn export(&self) -> Result<Vec<Value>> {
        let own = self.clone();
        blocking(move || {
            let Some(owner) = own.inner.keys.known_owner(&own.owner)? else { return Ok(Vec::new()) };
            let rows = own.inner.truth.after(owner.tag, 0, false, usize::MAX)?;
            let mut exported = Vec::with_capacity(rows.len());
            for row in &rows {
                let Some(key) = own.inner.keys.artifact(&owner, row.artifact)? else { continue };
                exported.push(exported_row(row, &row.texts(&owner, &key)?));
            }
            Ok(exported)
        })
        .await
    }

    async fn prepare(&self, request: &StoreRequest) -> Result<Prepared> {
        let session = match &request.session {
            Some(members) => Session::new(&request.session_id, members.clone())?,
            None => self.inner.sources.find(&request.session_id).await?,
        };
        let (inner, again) = (Arc::clone(&self.inner), request.clone());
        let cleared = blocking(move || artifact::clear(&inner.gate, &session, &again)).await?;
        let written = match &self.inner.card_writer {
            Some(writer) => writer.write(&cleared.session()).await,
            None => None,
        };
        let (inner, raw) = (Arc::clone(&self.inner), request.raw);
        blocking(move || {
            let card = match written {
                Some(card) => card,
                None => {
                    let card = Card::derive(&cleared.session());
                    let value = serde_json::to_value(&card).unwrap_or_default();
                    serde_json::from_value(inner.gate.without_names(&value)).unwrap_or(card)
                }
            };
            artifact::prepare(&inner.gate, &cleared, card, raw)
        })
        .await
    }

    async fn store_to_the_end(&self, request: &StoreRequest) -> Result<Stored> {
        let (mode, store) = self.inner.store_of(request.mode.as_deref())?;
        let prepared = self.prepare(request).await?;
        if let Some(expected) = &request.expect_sha256
            && !expected.eq_ignore_ascii_case(&prepared.sha256())
        {
            return Err(Error::Changed);
        }
        let (own, asked, mode_name) = (self.clone(), request.session_id.clone(), mode.to_owned());
        let (prepared, begun) = blocking(move || {
            let begun = own.begin(&prepared, &asked, &mode_name)?;
            Ok((prepared, begun))
        })
        .await?;
        let mut stored = begun.describe(&prepared);
        match begun.state {
            Begun::Already => stored.already_stored = true,
            Begun::Pending(memory) => {
                let before = self.inner.upload(store, &begun, memory).await?;
                stored.supersedes = before.map(|pointer| pointer.to_string());
            }
        }
        self.catch_up();
        self.note(Act::Stored, 1).await?;
        Ok(stored)
    }

    /// Seals the payload and writes it down, pending, with its upload.
    fn begin(&self, prepared: &Prepared, session_id: &str, mode: &str) -> Result<Beginning> {
        let inner = &self.inner;
        let owner = inner.keys.owner(&self.owner)?;
        let id = ArtifactId::random();
        let key = confidant_seal::Key::random();
        let place = ArtifactPlace {
            owner: &owner,
            session_id: &prepared.session_id,
            id,
            artifact_type: prepared.artifact_type,
        };
        let ciphertext = place.seal(&key, &prepared.payload).as_bytes().to_vec();
        let pointer = Pointer::of(&ciphertext);
        let now = (inner.clock)();
        let row = NewRow {
            owner: &owner,
            artifact: id,
            pointer: &pointer,
            artifact_type: prepared.artifact_type,
            mode,
            session_tag: inner.keys.tag(&owner, "session", &[session_id.trim().as_bytes()]),
            payload_tag: inner.keys.tag(&owner, "payload", &[&prepared.payload, mode.as_bytes()]),
            created_at: when::format(prepared.at.unwrap_or(now)),
            now: when::format(now),
            texts: texts(prepared),
            vector: None,
        };
        match inner.truth.insert(&row, &key, &ciphertext, inner.instances.own())? {
            Inserted::New(memory) => {
                let begun = Beginning { pointer, ciphertext, kid: key.kid(), state: Begun::Pending(memory) };
                match inner.keys.create_artifact(&owner, id, &key) {
                    Ok(()) => Ok(begun),
                    Err(error) => {
                        // Nothing was uploaded and nothing opens the row: as if it had never been.
                        inner.truth.undo(memory)?;
                        Err(error)
                    }
                }
            }
            Inserted::Same(row) => {
                let known = inner.keys.artifact(&owner, row.artifact)?.map_or(key.kid(), |key| key.kid());
                if !row.live {
                    return Err(Error::unavailable(
                        "exactly this session is being stored right now",
                        "wait a moment and ask again",
                    ));
                }
                let (pointer, ciphertext) = (row.pointer.clone(), ciphertext);
                Ok(Beginning { pointer, ciphertext, kid: known, state: Begun::Already })
            }
        }
    }

    fn search(&self, query: &Query) -> Result<Hits> {
        let nothing = Hits { ok: true, hits: Vec::new() };
        let Some(owner) = self.inner.keys.known_owner(&self.owner)? else { return Ok(nothing) };
        let index = self.inner.index(&owner)?;
        let source = self.inner.source(&owner);
        let found = index.search(query, &source)?;
        let ids: Vec<u64> = found.iter().map(|hit| hit.id).collect();
        let rows = self.inner.truth.by_ids(owner.tag, &ids)?;
        let mut hits = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(key) = self.inner.keys.artifact(&owner, row.artifact)? else { continue };
            let score = found.iter().find(|hit| hit.id == row.id).map_or(0.0, |hit| hit.score);
            hits.push(hit(row, row.texts(&owner, &key)?, score));
        }
        Ok(Hits { ok: true, hits })
    }

    async fn forget_to_the_end(&self, what: &Forget, dry_run: bool) -> Result<Forgotten> {
        let (own, what) = (self.clone(), what.clone());
        let found = blocking(move || own.find_to_forget(&what)).await?;
        let Some((owner, rows)) = found.filter(|(_, rows)| !rows.is_empty()) else {
            return Err(no_such_memory());
        };
        let cascade_uris = rows.iter().map(|row| row.pointer.to_string()).collect();
        let forgotten = rows.len() as u64;
        let mut told = Forgotten { ok: true, dry_run, forgotten, permanent: 0, pending: 0, cascade_uris };
        if dry_run {
            return Ok(told);
        }
        let inner = Arc::clone(&self.inner);
        let (tag, doomed) = (owner.tag, rows.clone());
        blocking(move || {
            inner.truth.remove(&doomed, tag, inner.instances.own())?;
            inner.truth.forget_imports(tag)?;
            inner.keys.destroy_artifacts(&doomed.iter().map(|row| row.artifact).collect::<Vec<_>>())?;
            let ids: Vec<u64> = doomed.iter().map(|row| row.id).collect();
            inner.index(&owner)?.forget(&ids)
        })
        .await?;
        let ours: Vec<u64> = rows.iter().map(|row| row.id).collect();
        for task in self.inner.tasks().await? {
            if task.kind == Kind::Remove && ours.contains(&task.memory) {
                match self.inner.remove_blob(&task).await {
                    Ok(Removed::Gone) => {}
                    Ok(Removed::Permanent) => told.permanent += 1,
                    Err(_) => told.pending += 1,
                }
            }
        }
        self.note(Act::Forgotten, forgotten).await?;
        Ok(told)
    }

    fn find_to_forget(&self, what: &Forget) -> Result<Option<(OwnerKey, Vec<StoredRow>)>> {
        let Some(owner) = self.inner.keys.known_owner(&self.owner)? else { return Ok(None) };
        let rows = match what {
            Forget::Uri(uri) => {
                self.inner.truth.by_pointer(owner.tag, &Pointer::parse(uri)?)?.into_iter().collect()
            }
            Forget::Session(id) => {
                let session = self.inner.keys.tag(&owner, "session", &[id.trim().as_bytes()]);
                self.inner.truth.by_session(owner.tag, session)?
            }
        };
        Ok(Some((owner, rows)))
    }

    async fn note(&self, act: Act, count: u64) -> Result<()> {
        match &self.inner.witness {
            Some(witness) => witness.note(&self.actor, &self.owner, act, count).await,
            None => Ok(()),
        }
    }

    /// Takes what is new into the index files when there is enough of it, beside everything else.
    fn catch_up(&self) {
        let own = self.clone();
        tokio::task::spawn_blocking(move || {
            let done = own.inner.keys.known_owner(&own.owner).and_then(|owner| match owner {
                Some(owner) => own.inner.index(&owner)?.catch_up(&own.inner.source(&owner), false).map(drop),
                None => Ok(()),
            });
            if let Err(error) = done {
                tracing::warn!(error = error.code(), "the search index could not take in new memories");
            }
        });
    }
}

/// An artifact that is sealed and written down.
#[derive(Debug)]
struct Beginning {
    pointer: Pointer,
    ciphertext: Vec<u8>,
    kid: Kid,
    state: Begun,
}

#[derive(Clone, Copy, Debug)]
enum Begun {
    Pending(u64),
    Already,
}

impl Beginning {
    fn describe(&self, prepared: &Prepared) -> Stored {
        Stored {
            ok: true,
            session_id: prepared.session_id.clone(),
            cascade_uri: self.pointer.to_string(),
            artifact_type: prepared.artifact_type,
            indexed: true,
            memory_card: prepared.card.clone(),
            redaction: prepared.redaction(),
            crypto: Crypto {
                enc: "AES-256-GCM",
                bytes: self.ciphertext.len(),
                key_id: self.kid.to_string(),
                plaintext_sha256: prepared.sha256(),
                ciphertext_sha256: self.pointer.hex(),
            },
            already_stored: false,
            supersedes: None,
        }
    }
}

impl Inner {
    fn store_of(&self, mode: Option<&str>) -> Result<(&str, &Arc<dyn Blobs>)> {
        let mode = mode.unwrap_or(&self.default_mode);
        self.stores.get_key_value(mode).map(|(mode, store)| (mode.as_str(), store)).ok_or_else(|| {
            let allowed: Vec<&str> = self.stores.keys().map(String::as_str).collect();
            Error::NotAllowed {
                what: "this server does not allow that `mode`".to_owned(),
                hint: format!("use one of: {}; memory.modes says what is allowed", allowed.join(", ")),
            }
        })
    }

    /// Uploads what is pending and makes it live. What fails leaves nothing, unless it can be gone on with.
    async fn upload(
        self: &Arc<Self>,
        store: &Arc<dyn Blobs>,
        begun: &Beginning,
        memory: u64,
    ) -> Result<Option<Pointer>> {
        let noted = Arc::new(Mutex::new(false));
        let put = {
            let (truth, noted) = (Arc::clone(&self.truth), Arc::clone(&noted));
            let note = move |locator: &Locator| {
                let kept = truth.note_locator(memory, locator).is_ok();
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = kept;
            };
            store.put(&begun.pointer, &begun.ciphertext, None, &note).await
        };
        let inner = Arc::clone(self);
        match put {
            Ok(locator) => blocking(move || inner.truth.finish(memory, &locator)).await,
            Err(error) if *noted.lock().unwrap_or_else(PoisonError::into_inner) => Err(Error::unavailable(
                format!("the upload has begun but did not end: {error}"),
                "it is kept and goes on at the next start; nothing has to be stored again",
            )),
            Err(error) => {
                blocking(move || inner.give_up(memory)).await?;
                Err(error)
            }
        }
    }

    /// Takes back a store that failed. The blob may be there for all we know, so its removal is a task.
    fn give_up(&self, memory: u64) -> Result<()> {
        let Some((owner, row)) = self.truth.pending(memory)? else { return Ok(()) };
        self.truth.remove(std::slice::from_ref(&row), owner, self.instances.own())?;
        self.keys.destroy_artifacts(&[row.artifact])
    }

    async fn tasks(self: &Arc<Self>) -> Result<Vec<Task>> {
        let inner = Arc::clone(self);
        blocking(move || inner.truth.tasks()).await
    }

    async fn remove_blob(self: &Arc<Self>, task: &Task) -> Result<Removed> {
        let (_, store) = self.store_of(Some(&task.mode))?;
        let locator = task.locator.clone().unwrap_or_default();
        let removed = store.remove(&task.pointer, &locator).await?;
        let (inner, task) = (Arc::clone(self), task.clone());
        blocking(move || inner.truth.done(&task)).await?;
        Ok(removed)
    }

    async fn recover(self: &Arc<Self>) -> Result<Recovered> {
        let mut recovered = Recovered::default();
        let inner = Arc::clone(self);
        let keyless = blocking(move || {
            let owners = inner.truth.owners()?.into_iter();
            owners
                .filter_map(|owner| match inner.keys.has_owner(owner) {
                    Ok(true) => None,
                    Ok(false) => Some(Ok(owner)),
                    Err(error) => Some(Err(error)),
                })
                .collect::<Result<Vec<Tag>>>()
        })
        .await?;
        for owner in keyless {
            self.erase(owner).await?;
        }
        let mut alive = self.instances.alive();
        let tasks = self.tasks().await?;
        let orphans: Vec<Task> = tasks
            .into_iter()
            .filter(|task| {
                task.instance == self.instances.own() && task.kind == Kind::Remove || !alive(task.instance)
            })
            .collect();
        for task in orphans {
            let (inner, claimed) = (Arc::clone(self), task.clone());
            if !blocking(move || inner.truth.claim(&claimed, inner.instances.own())).await? {
                continue;
            }
            match task.kind {
                Kind::Remove => {
                    let (inner, artifact) = (Arc::clone(self), task.artifact);
                    blocking(move || inner.keys.destroy_artifacts(&[artifact])).await?;
                    match self.remove_blob(&task).await {
                        Ok(_) => recovered.removed += 1,
                        Err(_) => recovered.waiting += 1,
                    }
                }
                Kind::Put => self.resume_put(&task, &mut recovered).await?,
            }
        }
        Ok(recovered)
    }

    /// Goes on with an upload that was cut off. One whose key was never written has nothing to open it and is dropped.
    async fn resume_put(self: &Arc<Self>, task: &Task, recovered: &mut Recovered) -> Result<()> {
        let (inner, of) = (Arc::clone(self), task.clone());
        let blob = blocking(move || {
            if !inner.keys.has_artifact(of.artifact)? {
                return Ok(None);
            }
            inner.truth.blob(&of)
        })
        .await?;
        let inner = Arc::clone(self);
        let memory = task.memory;
        let Some(blob) = blob.filter(|blob| task.pointer.names(blob)) else {
            blocking(move || inner.give_up(memory)).await?;
            recovered.dropped += 1;
            return Ok(());
        };
        let Ok((_, store)) = self.store_of(Some(&task.mode)) else {
            recovered.waiting += 1;
            return Ok(());
        };
        let truth = Arc::clone(&self.truth);
        let note = move |locator: &Locator| drop(truth.note_locator(memory, locator));
        match store.put(&task.pointer, &blob, task.locator.as_ref(), &note).await {
            Ok(locator) => {
                blocking(move || inner.truth.finish(memory, &locator)).await?;
                recovered.finished += 1;
            }
            Err(_) => recovered.waiting += 1,
        }
        Ok(())
    }

    async fn erase(self: &Arc<Self>, owner: Tag) -> Result<Erased> {
        let inner = Arc::clone(self);
        let erased = blocking(move || {
            let keys = inner.keys.destroy_owner(owner)?;
            let rows = inner.truth.after(owner, 0, false, usize::MAX)?;
            inner.truth.remove(&rows, owner, inner.instances.own())?;
            inner.truth.forget_imports(owner)?;
            let mut indexes = inner.indexes.lock().unwrap_or_else(PoisonError::into_inner);
            indexes.retain(|(tag, _), _| *tag != owner);
            let folder = inner.index_folder(owner);
            if folder.exists() && std::fs::remove_dir_all(&folder).is_err() {
                return Err(Error::unavailable(
                    "the keys of the search index are destroyed, but its files could not be removed",
                    "check the permissions of the data folder and erase again",
                ));
            }
            Ok(Erased { memories: rows.len() as u64, keys })
        })
        .await?;
        for task in self.tasks().await? {
            if task.owner == owner && task.kind == Kind::Remove && self.remove_blob(&task).await.is_err() {
                tracing::warn!("a blob of an erased person is still to be removed; its key is destroyed");
            }
        }
        Ok(erased)
    }

    fn index(&self, owner: &OwnerKey) -> Result<Arc<Index>> {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (owner.tag, owner.kid());
        if let Some(index) = indexes.get(&name) {
            return Ok(Arc::clone(index));
        }
        if indexes.len() >= MOST_OPEN_INDEXES {
            indexes.clear();
        }
        let keys = OwnerFiles { keys: Arc::clone(&self.keys), owner: owner.clone() };
        let index = Arc::new(Index::open(&self.index_folder(owner.tag), Arc::new(keys))?);
        indexes.insert(name, Arc::clone(&index));
        Ok(index)
    }

    fn index_folder(&self, owner: Tag) -> PathBuf {
        self.folder.join("index").join(owner.to_string())
    }

    fn source(&self, owner: &OwnerKey) -> TruthSource {
        TruthSource { truth: Arc::clone(&self.truth), keys: Arc::clone(&self.keys), owner: owner.clone() }
    }
}

fn texts(prepared: &Prepared) -> Texts {
    let metadata = serde_json::json!({
        "memory_card": prepared.card,
        "redaction_report": prepared.report,
    });
    Texts {
        tags_json: serde_json::to_string(&prepared.tags).unwrap_or_default(),
        source_session_id: prepared.session_id.clone(),
        source_tool: prepared.tool.clone(),
        title: prepared.card.title.clone(),
        snippet: prepared.snippet(),
        metadata_json: metadata.to_string(),
    }
}

fn hit(row: &StoredRow, texts: Texts, score: f32) -> MemoryHit {
    MemoryHit {
        cass_session_id: texts.source_session_id,
        cascade_uri: row.pointer.to_string(),
        artifact_type: row.artifact_type,
        title: texts.title,
        snippet: texts.snippet,
        tags: serde_json::from_str(&texts.tags_json).unwrap_or_default(),
        created_at: row.created_at.clone(),
        score: -f64::from(score),
    }
}

fn exported_row(row: &StoredRow, texts: &Texts) -> Value {
    let metadata: Value = serde_json::from_str(&texts.metadata_json).unwrap_or_default();
    let tags: Value = serde_json::from_str(&texts.tags_json).unwrap_or_default();
    serde_json::json!({
        "cascade_uri": row.pointer.to_string(),
        "artifact_type": row.artifact_type,
        "session_id": texts.source_session_id,
        "tool": texts.source_tool,
        "created_at": row.created_at,
        "tags": tags,
        "memory_card": metadata.get("memory_card"),
        "redaction_report": metadata.get("redaction_report"),
    })
}

fn no_such_memory() -> Error {
    Error::not_found(
        "there is no such memory of yours",
        "query_memories and list_memories show what there is; what was forgotten is gone",
    )
}

/// Runs work that may block where it may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(cut_off()))
}

/// Runs work to its end, whatever becomes of the caller.
async fn detached<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(cut_off()))
}

fn cut_off() -> Error {
    Error::unavailable(
        "the work was cut off",
        "try again; what was begun is finished or undone at the next start",
    )
}

const MOST_HITS: usize = 100;
const MOST_OFFSET: usize = 10_000;
const MOST_OPEN_INDEXES: usize = 256;
