//! A look at everything: that each row, key, task and artifact is what was written, and that none is missing or too many.
//!
//! Tags and states in the open only find things quickly; here each is held against what is sealed. Artifacts are fetched one
//! after the other, so however many there are, one is in memory. All of them take long, so a sample may do.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use confidant_seal::{Key, Tag};
use futures_util::future::BoxFuture;

use crate::artifact::ArtifactPlace;
use crate::blobs::Pointer;
use crate::keys::{ArtifactId, Held, OwnerKey};
use crate::memory::{Inner, Memory, blocking};
use crate::truth::{Doomed, StoredRow, TaskKind, Texts, row_refused};
use crate::{Error, Result};

/// How many artifacts a check opens. Keys and rows are all opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All.
    All,
    /// At most so many: the newest, and others at random, whoever owns them.
    Sample(usize),
}

/// What is wrong with an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Its store does not have it.
    Missing,
    /// What its store has is not what the row says.
    Mismatched,
    /// It cannot be read, or its seal does not open.
    Unopenable,
}

/// An artifact that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which memory's.
    pub cascade_uri: String,
    /// Why.
    pub damage: Damage,
}

/// What a check of everything found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Memories whose rows open.
    pub memories: u64,
    /// The `cascade_uri` of those that do not.
    pub refused: Vec<String>,
    /// Artifacts that were fetched and opened.
    pub artifacts: u64,
    /// Artifacts that are missing or damaged.
    pub lost: Vec<Lost>,
    /// Artifacts that were left out, because a sample was asked for.
    pub left_out: u64,
    /// Artifacts that could not be looked at, because their store does not answer.
    pub unasked: u64,
    /// What else is not as it was written, in words, and how often.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Checked {
    /// Whether everything that could be looked at is as it was written.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.refused.is_empty() && self.lost.is_empty() && self.faults.is_empty()
    }

    fn fault(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.faults.entry(what).or_default() += times;
        }
    }
}

/// A row that opens, to be followed to its artifact.
struct Opened {
    owner: Arc<OwnerKey>,
    key: Key,
    row: u64,
}

impl Memory {
    /// Opens every key, every row and every artifact.
    pub fn verify(&self) -> BoxFuture<'_, Result<Checked>> {
        self.verify_telling(Depth::All, &|_, _| {})
    }

    /// The same, perhaps of a sample of the artifacts; says how many artifacts are done, and of how many.
    pub fn verify_telling<'a>(
        &'a self,
        depth: Depth,
        progress: &'a (dyn Fn(u64, u64) + Send + Sync),
    ) -> BoxFuture<'a, Result<Checked>> {
        Box::pin(async move {
            let inner = Arc::clone(self.inner());
            let (mut checked, mut opened) = blocking(move || inner.verify_files()).await?;
            if let Depth::Sample(most) = depth {
                let all = opened.len();
                draw(&mut opened, most)?;
                checked.left_out = (all - opened.len()) as u64;
            }
            let mut silent: HashSet<String> = HashSet::new();
            let total = opened.len() as u64;
            for (done, one) in opened.into_iter().enumerate() {
                self.inner().verify_artifact(&one, &mut silent, &mut checked).await?;
                progress(done as u64 + 1, total);
            }
            Ok(checked)
        })
    }

    /// Takes keys and registers as they are for the truth, as after restoring a backup; says how many had been otherwise.
    pub fn accept_restore(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let inner = Arc::clone(self.inner());
            blocking(move || if inner.keys.is_begun()? { inner.keys.accept_restore() } else { Ok(0) }).await
        })
    }
}

impl Inner {
    fn verify_files(&self) -> Result<(Checked, Vec<Opened>)> {
        let mut checked = Checked::default();
        let mut opened = Vec::new();
        let (owners, expected) = self.keys.owners()?;
        let (tasks, strange_tasks) = self.tasks_now()?;
        let (erasing, strange_erasures) = self.erasing_now()?;
        let mut met = Met {
            pending: tasks
                .iter()
                .filter(|task| task.kind == TaskKind::Put)
                .map(|task| task.artifact)
                .collect(),
            going: tasks
                .iter()
                .filter(|task| task.kind == TaskKind::Remove)
                .map(|task| task.artifact)
                .collect(),
            rows: HashSet::new(),
            keys: 0,
            notes: 0,
        };
        let mut known = 0;
        for owner in owners {
            match owner {
                Ok(owner) => {
                    known += 1;
                    self.verify_owner(&Arc::new(owner), &mut met, &mut checked, &mut opened)?;
                }
                Err(Error::Tampered { .. }) => {
                    checked.fault("a person's key does not open or was put back", 1)
                }
                Err(error) => return Err(error),
            }
        }
        checked
            .fault("a person's key is missing or under another person's tag", expected.saturating_sub(known));
        checked.fault("a task that Confidant did not write", strange_tasks);
        checked.fault("an order to erase that Confidant did not write", strange_erasures);
        // What an erasure that was cut off left is gone on with.
        if erasing.is_empty() {
            let rows = self.truth.all()?;
            for (id, _) in rows.iter().filter(|(id, _)| !met.rows.contains(id)) {
                if let Some(row) = self.truth.by_number(*id)?.filter(|row| !met.going.contains(&row.artifact))
                {
                    checked.refused.push(row.pointer.to_string());
                }
            }
            let keys = self.keys.count_artifacts()?.saturating_sub(met.keys);
            checked.fault("a key that belongs to nobody, or was put back", keys);
            let (notes, marks) = self.truth.count_notes()?;
            checked.fault("a note about an import that does not open", notes.saturating_sub(met.notes));
            checked.fault("a mark of a forgotten session in the wrong place", marks);
        }
        checked.refused.sort_unstable();
        checked.refused.dedup();
        Ok((checked, opened))
    }

    fn verify_owner(
        &self,
        owner: &Arc<OwnerKey>,
        met: &mut Met,
        checked: &mut Checked,
        opened: &mut Vec<Opened>,
    ) -> Result<()> {
        let all = match self.keys.artifacts_of(owner) {
            Ok(all) => all,
            Err(Error::Tampered { .. }) => {
                checked.fault("a person's register is missing, damaged or was rolled back", 1);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        checked.fault("a key of a memory is missing", all.missing.len() as u64);
        checked.fault("a key of a memory is under another person's tag", all.misplaced);
        match self.keys.forgotten(owner) {
            Err(Error::Tampered { .. }) => {
                checked.fault("a person's list of forgotten sessions was changed", 1)
            }
            other => drop(other?),
        }
        checked.fault("a key of the search index does not open", self.keys.damaged_files(owner)?);
        for (about, note) in self.truth.notes(owner.tag)? {
            met.notes += u64::from(about.is_some_and(|about| owner.open_note(about, &note).is_some()));
        }
        let mut sessions: HashMap<Tag, Vec<StoredRow>> = HashMap::new();
        for held in &all.keys {
            met.keys += 1;
            let Some(row) = self.truth.by_artifact(held.id)? else {
                let explained = met.going.contains(&held.id);
                checked.fault("a memory has a key, but no row", u64::from(!explained));
                continue;
            };
            met.rows.insert(row.id);
            if !self.is_sound(owner, held, &row, met) {
                checked.refused.push(row.pointer.to_string());
                continue;
            }
            checked.memories += 1;
            if !met.pending.contains(&held.id) {
                opened.push(Opened { owner: Arc::clone(owner), key: held.key.clone(), row: row.id });
                sessions.entry(row.session_tag).or_default().push(row);
            }
        }
        // Of each session the one that was begun last is shown, and no other.
        for rows in sessions.values() {
            let last = rows.iter().map(|row| row.begun).max();
            let wrong = rows.iter().filter(|row| row.live != (Some(row.begun) == last)).count();
            checked.fault(
                "a memory is hidden that should be shown, or shown that should be hidden",
                wrong as u64,
            );
        }
        Ok(())
    }

    fn is_sound(&self, owner: &OwnerKey, held: &Held, row: &StoredRow, met: &Met) -> bool {
        row.texts(owner, &held.key).is_ok()
            && row.owner == Some(owner.tag)
            && held.pointer.as_ref().is_none_or(|pointer| *pointer == row.pointer)
            && matches!(row.state, 0..=2)
            && (row.state == 0) == met.pending.contains(&held.id)
    }

    async fn verify_artifact(
        self: &Arc<Self>,
        one: &Opened,
        silent: &mut HashSet<String>,
        checked: &mut Checked,
    ) -> Result<()> {
        let (inner, id) = (Arc::clone(self), one.row);
        let Some(row) = blocking(move || inner.truth.by_number(id)).await? else { return Ok(()) };
        let Ok(texts) = row.texts(&one.owner, &one.key) else { return Ok(()) };
        if silent.contains(&row.mode) {
            checked.unasked += 1;
            return Ok(());
        }
        let place = artifact_place(&one.owner, &row, &texts);
        let damage = match self.fetch_sealed(&place, &row, &one.key).await {
            Ok(ciphertext) if !row.pointer.names(&ciphertext) => Damage::Mismatched,
            Ok(ciphertext) => match place.open(&one.key, &row.pointer, ciphertext) {
                Ok(_) => {
                    checked.artifacts += 1;
                    return Ok(());
                }
                Err(_) => Damage::Unopenable,
            },
            Err(Error::Unavailable { .. } | Error::NotAllowed { .. }) => {
                silent.insert(row.mode);
                checked.unasked += 1;
                return Ok(());
            }
            Err(Error::NotFound { .. }) => Damage::Missing,
            Err(_) => Damage::Unopenable,
        };
        checked.lost.push(Lost { cascade_uri: row.pointer.to_string(), damage });
        Ok(())
    }

    /// The artifact of a row, fetched, checked and opened.
    pub(crate) async fn fetch(
        &self,
        owner: &OwnerKey,
        row: &StoredRow,
        key: &Key,
        texts: &Texts,
    ) -> Result<serde_json::Value> {
        let place = artifact_place(owner, row, texts);
        let ciphertext = self.fetch_sealed(&place, row, key).await?;
        place.open(key, &row.pointer, ciphertext)
    }

    /// What the store of a row has for it; neither checked nor opened.
    async fn fetch_sealed(&self, place: &ArtifactPlace<'_>, row: &StoredRow, key: &Key) -> Result<Vec<u8>> {
        let (_, store) = self.store_of(Some(&row.mode))?;
        // Only what is not uploaded yet has no place.
        if row.locator.is_empty() && row.state != 0 {
            return Err(row_refused());
        }
        let locator = place.open_locator(key, &row.locator)?;
        store.get(&row.pointer, &locator).await
    }

    /// The artifacts that something is still to be done for: their uploads, or their removal.
    pub(crate) fn under_way(&self) -> Result<HashSet<ArtifactId>> {
        Ok(self.tasks_now()?.0.iter().map(|task| task.artifact).collect())
    }

    /// What goes with a pointer: the memory whose key says that its blob is there, and the earlier forms of its session.
    pub(crate) fn doomed_at(&self, owner: &OwnerKey, pointer: &Pointer) -> Result<Vec<Doomed>> {
        let row = self.truth.by_pointer(owner.tag, pointer)?;
        let is_it = |held: &Held| held.pointer.as_ref() == Some(pointer);
        let quick = match &row {
            Some(row) => self.keys.held(owner, row.artifact).ok().flatten().filter(is_it),
            None => None,
        };
        let held = match quick {
            Some(held) => Some(held),
            None => self.keys.artifacts_of(owner)?.keys.into_iter().find(is_it),
        };
        let Some(held) = held else {
            // Nothing opens it, and nobody else has its key: all that there is of it is the row.
            return Ok(match row {
                Some(row) if !self.keys.has_artifact(row.artifact)? => vec![row.doomed(None, None)],
                Some(row) if self.is_damaged(owner, &row)? => vec![row.doomed(None, None)],
                _ => Vec::new(),
            });
        };
        let row = match row {
            Some(row) => Some(row),
            None => self.truth.by_artifact(held.id)?,
        };
        let Some(row) = row else {
            let (artifact, pointer, mode) = (held.id, held.pointer, self.default_mode.clone());
            return Ok(vec![Doomed { id: 0, artifact, pointer, mode, session: None }]);
        };
        let session = row.sealed_session(owner, &held.key);
        let mut doomed = vec![row.doomed(Some(&held), session)];
        // Earlier forms of the same are in no list, so nobody would know to forget them.
        for earlier in self.truth.superseded_by(owner.tag, &row)? {
            let Some(held) = self.keys.held(owner, earlier.artifact)? else { continue };
            if session.is_some() && earlier.sealed_session(owner, &held.key) == session {
                doomed.push(earlier.doomed(Some(&held), session));
            }
        }
        Ok(doomed)
    }

    /// Whether the key of this row's artifact is under the owner's tag and does not open.
    fn is_damaged(&self, owner: &OwnerKey, row: &StoredRow) -> Result<bool> {
        match self.keys.held(owner, row.artifact) {
            Err(Error::Tampered { .. }) => Ok(true),
            other => other.map(|_| false),
        }
    }
}

/// What the seal of a row's artifact is bound to.
fn artifact_place<'p>(owner: &'p OwnerKey, row: &StoredRow, texts: &'p Texts) -> ArtifactPlace<'p> {
    ArtifactPlace {
        owner,
        session_id: &texts.source_session_id,
        id: row.artifact,
        artifact_type: row.artifact_type,
    }
}

/// Keeps the newest and others at random, `most` in all.
fn draw(opened: &mut Vec<Opened>, most: usize) -> Result<()> {
    if opened.len() <= most {
        return Ok(());
    }
    let newest = opened.iter().enumerate().max_by_key(|(_, one)| one.row);
    if let Some((newest, _)) = newest {
        opened.swap(0, newest);
    }
    for at in 1..most {
        let other = at + below(opened.len() - at)?;
        opened.swap(at, other);
    }
    opened.truncate(most);
    Ok(())
}

/// A random number below `end`, which is not zero.
fn below(end: usize) -> Result<usize> {
    let mut bytes = [0; size_of::<usize>()];
    getrandom::fill(&mut bytes).map_err(|_| {
        Error::unavailable("the system provides no random numbers", "check the system's log, then try again")
    })?;
    Ok(usize::from_le_bytes(bytes) % end)
}

/// What was met on the way, so that what is left over is seen.
struct Met {
    pending: HashSet<ArtifactId>,
    going: HashSet<ArtifactId>,
    rows: HashSet<u64>,
    keys: u64,
    notes: u64,
}
