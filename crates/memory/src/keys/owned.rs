//! All that is somebody's and only that, whatever the tags say; and its end.
//!
//! A tag finds a key quickly. Whose it is says its seal: a key of another's that was given this owner's tag is neither read
//! nor destroyed for them, and one of theirs under another tag is found by trying.

use std::collections::{HashMap, HashSet};

use confidant_seal::{Key, Sealed, Tag};
use rusqlite::{Connection, params};

use super::register::{Book, EVERYONE, Register};
use super::{
    ARTIFACT, ArtifactId, Held, Keys, Numbered, OWNER, OwnerKey, OwnerRow, begin, named, open_artifact,
    owner_rows, refused, unwrap_numbered, wrap_artifact, wrap_numbered,
};
use crate::blobs::Pointer;
use crate::{Error, Owner, Result, db};

/// Artifacts' keys, with what was missed.
#[derive(Debug, Default)]
pub(crate) struct Artifacts {
    /// In the order in which they were made.
    pub(crate) keys: Vec<Held>,
    /// Numbers that live and have no key.
    pub(crate) missing: Vec<u64>,
    /// Keys of this owner's under another's tag.
    pub(crate) misplaced: u64,
}

impl Keys {
    /// The keys of all artifacts of an owner that live, and no other.
    pub(crate) fn artifacts_of(&self, owner: &OwnerKey) -> Result<Artifacts> {
        let db = self.lock();
        let register = self.register(&db, &owner.book())?;
        artifacts_of(&db, owner, &register)
    }

    /// Destroys keys of an owner's artifacts beyond recovery, with a mark for sessions that are to stay forgotten. One that is
    /// not theirs is left alone.
    pub(crate) fn destroy_artifacts(
        &self,
        owner: &OwnerKey,
        ids: &[ArtifactId],
        marks: &[Tag],
    ) -> Result<()> {
        let mut db = self.lock();
        let tx = begin(&mut db)?;
        let mut register = Register::clone(&*self.register(&tx, &owner.book())?);
        let mut unopened = 0;
        for id in ids {
            let row = artifact_row(&tx, *id)?;
            let Some((tag, sealed)) = row else { continue };
            match open_artifact(owner, *id, &sealed) {
                Ok(held) => {
                    register.roll.remove(held.number);
                }
                // It was damaged; whose it is, only its tag says, and which one, only what is missing.
                Err(_) if tag == owner.tag.as_bytes() => unopened += 1,
                Err(_) => continue,
            }
            tx.execute("DELETE FROM artifacts WHERE id = ?1", [id.0]).map_err(db::failed)?;
        }
        if unopened > 0 {
            let missing = artifacts_of(&tx, owner, &register)?.missing;
            if missing.len() == unopened {
                for number in missing {
                    register.roll.remove(number);
                }
            }
        }
        Self::mark(&tx, &owner.book(), &mut register, marks)?;
        self.save(&tx, &owner.book(), &register)?;
        tx.commit().map_err(db::failed)?;
        db::rewrite(&db)?;
        drop(db);
        self.keep_anchor(&owner.book(), &register)
    }

    /// The keys that were made for somebody, under whatever tag; an error if one that may be theirs does not open.
    pub(crate) fn estate(&self, owner: &Owner) -> Result<Vec<OwnerKey>> {
        let tag = self.owner_tag(owner)?;
        let name = named(owner);
        let rows = owner_rows(&self.lock())?;
        let tags: Vec<Vec<u8>> = rows.iter().map(|row| row.tag.clone()).collect();
        let mut theirs = Vec::new();
        let mut opening = 0;
        let mut unopened = false;
        for row in &rows {
            if let Ok(numbered) = self.open_for(row, &name) {
                let at = <[u8; 16]>::try_from(row.tag.as_slice()).map_or(tag, Tag::from_bytes);
                theirs.push(OwnerKey {
                    tag: at,
                    key: numbered.key,
                    name: name.clone(),
                    number: numbered.number,
                });
                opening += 1;
            } else if self.open_anywhere(row, &tags).is_ok() {
                opening += 1;
            } else if row.tag == tag.as_bytes() {
                unopened = true;
            }
        }
        let everyone = self.everyone(&self.lock())?;
        if unopened && everyone.roll.len() > opening {
            return Err(Error::tampered(
                "the key of this person's memories does not open, so it is not certain that nothing of them \
                 is left",
                "restore memory-keys.db from a backup, or run `confidant doctor --accept-restore`, and erase again",
            ));
        }
        Ok(theirs)
    }

    /// Destroys everything that opens anything of an owner; says how many keys went, and of which artifacts.
    pub(crate) fn destroy_owner(&self, tag: Tag, estate: &[OwnerKey]) -> Result<(u64, Vec<ArtifactId>)> {
        let names = self.names()?.clone();
        let mut db = self.lock();
        let tx = begin(&mut db)?;
        let book = everyone(&names);
        let mut register = Register::clone(&*self.register(&tx, &book)?);
        let (mut gone, mut ids) = (0, Vec::new());
        for owner in estate {
            // Whatever the register says: without the owner's key nothing of theirs opens again.
            let all = opening(&tx, owner)?;
            for held in &all.keys {
                gone += tx.execute("DELETE FROM artifacts WHERE id = ?1", [held.id.0]).map_err(db::failed)?;
                ids.push(held.id);
            }
            if let Some(number) = owner.number {
                register.roll.remove(number);
            }
            // Only the key itself: where somebody moved it to, the rest is another's.
            gone += delete_of(&tx, "owners", owner.tag)?;
        }
        // What is left under the tag opens for nobody: it is another's only if another's key says so.
        gone += self.delete_unopenable(&tx, tag, estate)?;
        for table in ["registers", "forgotten"] {
            delete_of(&tx, table, tag)?;
        }
        self.drop_opened(tag);
        self.save(&tx, &book, &register)?;
        tx.commit().map_err(db::failed)?;
        db::rewrite(&db)?;
        drop(db);
        self.truth.drop_anchor(tag)?;
        self.keep_anchor(&book, &register)?;
        Ok((gone as u64, ids))
    }

    /// Deletes rows under a tag that no owner's key opens.
    fn delete_unopenable(&self, tx: &Connection, tag: Tag, estate: &[OwnerKey]) -> Result<usize> {
        let rows = owner_rows(tx)?;
        // The places that were theirs until now may be those of others.
        let theirs = estate.iter().map(|owner| owner.tag.as_bytes().to_vec());
        let tags: Vec<Vec<u8>> = rows.iter().map(|row| row.tag.clone()).chain(theirs).collect();
        let others: Vec<OwnerKey> =
            rows.iter().filter_map(|row| self.open_anywhere(row, &tags).ok()).collect();
        let mut gone = 0;
        if !rows.iter().any(|row| row.tag == tag.as_bytes() && self.open_anywhere(row, &tags).is_ok()) {
            gone += delete_of(tx, "owners", tag)?;
            gone += delete_of(tx, "files", tag)?;
        }
        for (id, sealed) in artifact_rows(tx, Some(tag))? {
            let Ok(bytes) = <[u8; 16]>::try_from(id.as_slice()) else { continue };
            let id_of = ArtifactId(bytes);
            let anothers = others.iter().any(|other| open_artifact(other, id_of, &sealed).is_ok());
            if !anothers {
                gone += tx.execute("DELETE FROM artifacts WHERE id = ?1", [id]).map_err(db::failed)?;
            }
        }
        Ok(gone)
    }

    /// Gives every key of the time before there were registers its number. Once, when a file of that time is first opened with
    /// its root: whatever has no number afterwards was put there by somebody else.
    pub(super) fn enrol(&self, names: &Key) -> Result<()> {
        let mut db = self.lock();
        let book = everyone(names);
        let begun = |db: &Connection| {
            let sql = "SELECT 1 FROM registers WHERE owner = ?1";
            db.prepare(sql).and_then(|mut s| s.exists([EVERYONE])).map_err(db::failed)
        };
        if begun(&db)? {
            return Ok(());
        }
        let tx = begin(&mut db)?;
        if begun(&tx)? {
            return Ok(());
        }
        match self.truth.anchor(book.tag)? {
            // It was there, and is gone.
            Some(_) if self.register(&tx, &book).is_err() => return Err(refused()),
            Some(_) => {}
            None => self.begin_anchor(&book)?,
        }
        let mut register = Register::clone(&*self.register(&tx, &book)?);
        let mut sealed_anew = false;
        for row in owner_rows(&tx)? {
            // One that does not open stays as it is, and is refused by name when it is asked for.
            let Ok(owner) = self.open_row(&row) else { continue };
            let number = register.roll.add();
            let kid = row.kid.map(|kid| kid.to_string()).unwrap_or_default();
            let roots = self.roots(row.kid)?;
            let root = row.kid.and_then(|kid| roots.get(kid)).ok_or_else(refused)?;
            let sealed = wrap_numbered(root, &owner.name, OWNER, &kid, &owner.key, number);
            let sql = "UPDATE owners SET sealed_key = ?2 WHERE owner = ?1";
            tx.execute(sql, params![row.tag, sealed.as_bytes()]).map_err(db::failed)?;
            self.enrol_owner(&tx, &owner)?;
            sealed_anew = true;
        }
        self.truth.vouch(&names.derive(super::TASKS))?;
        self.save(&tx, &book, &register)?;
        tx.commit().map_err(db::failed)?;
        // The keys live on, so copies of them that somebody who is reading keeps here are no reason to fail; whatever
        // destroys one of them clears the file again.
        if sealed_anew && db::rewrite(&db).is_err() {
            tracing::warn!("memory-keys.db could not be written anew; it is when the next key is destroyed");
        }
        drop(db);
        self.truth.drop_marks()?;
        self.keep_anchor(&book, &register)
    }

    /// Every key that an owner's key opens, whatever the register says: what ends with them.
    pub(crate) fn opening(&self, owner: &OwnerKey) -> Result<Vec<Held>> {
        Ok(opening(&self.lock(), owner)?.keys)
    }

    /// Where the blobs of everyone's keys are. Nothing if a key does not open, and may so be of any blob.
    pub(crate) fn claimed(&self) -> Result<Option<HashSet<Pointer>>> {
        let (owners, _) = self.owners()?;
        let Ok(owners) = owners.into_iter().collect::<Result<Vec<OwnerKey>>>() else { return Ok(None) };
        let by_tag: HashMap<&[u8], &OwnerKey> =
            owners.iter().map(|owner| (&owner.tag.as_bytes()[..], owner)).collect();
        let db = self.lock();
        let mut statement = db.prepare("SELECT id, owner, sealed_key FROM artifacts").map_err(db::failed)?;
        let mut rows = statement.query([]).map_err(db::failed)?;
        let mut claimed = HashSet::new();
        while let Some(row) = rows.next().map_err(db::failed)? {
            let bytes = |at| super::bytes_at(row, at).map_err(db::failed);
            let (id, tag, sealed) = (bytes(0)?, bytes(1)?, Sealed::from_bytes(bytes(2)?));
            let Ok(id) = <[u8; 16]>::try_from(id.as_slice()).map(ArtifactId) else { return Ok(None) };
            // Its tag may be another's; what opens it tells.
            let mut maybe = by_tag.get(tag.as_slice()).copied().into_iter().chain(&owners);
            match maybe.find_map(|owner| open_artifact(owner, id, &sealed).ok()) {
                Some(held) => claimed.extend(held.pointer),
                None => return Ok(None),
            }
        }
        Ok(Some(claimed))
    }

    /// Whether there is a key of this artifact, whosever it is.
    pub(crate) fn has_artifact(&self, id: ArtifactId) -> Result<bool> {
        Ok(artifact_row(&self.lock(), id)?.is_some())
    }

    /// How many keys of an owner's index files do not open.
    pub(crate) fn damaged_files(&self, owner: &OwnerKey) -> Result<u64> {
        let db = self.lock();
        let sql = "SELECT name, sealed_key FROM files WHERE owner = ?1";
        let mut statement = db.prepare(sql).map_err(db::failed)?;
        let rows = statement.query_map([owner.tag.as_bytes()], |row| {
            let name = String::from_utf8(super::bytes_at(row, 0)?).unwrap_or_default();
            Ok((name, Sealed::from_bytes(super::bytes_at(row, 1)?)))
        });
        let mut damaged = 0;
        for row in rows.map_err(db::failed)? {
            let (name, sealed) = row.map_err(db::failed)?;
            damaged += u64::from(super::unwrap(&owner.key, &owner.name, "index", &name, &sealed).is_err());
        }
        Ok(damaged)
    }

    /// How many keys of artifacts there are.
    pub(crate) fn count_artifacts(&self) -> Result<u64> {
        let count = self.lock().query_row("SELECT count(*) FROM artifacts", [], |row| row.get::<_, i64>(0));
        Ok(count.map_err(db::failed)?.unsigned_abs())
    }

    fn enrol_owner(&self, tx: &Connection, owner: &OwnerKey) -> Result<()> {
        let mut register = Register::default();
        let mut keys = Vec::new();
        for (id, sealed) in artifact_rows(tx, Some(owner.tag))? {
            let Ok(id) = <[u8; 16]>::try_from(id.as_slice()).map(ArtifactId) else { continue };
            let Ok(Numbered { key, .. }) =
                unwrap_numbered(&owner.key, &owner.name, ARTIFACT, &id.hex(), &sealed)
            else {
                continue;
            };
            let number = register.roll.add();
            let row = self.truth.by_artifact(id)?.filter(|row| row.is_of(owner, id, &key));
            let sealed = wrap_artifact(owner, id, &key, number, row.as_ref().map(|row| &row.pointer));
            let sql = "UPDATE artifacts SET sealed_key = ?2 WHERE id = ?1";
            tx.execute(sql, params![id.0, sealed.as_bytes()]).map_err(db::failed)?;
            keys.push((id, key));
        }
        let marks = self.truth.steer_all(owner, &keys)?;
        Self::mark(tx, &owner.book(), &mut register, &marks)?;
        self.begin_anchor(&owner.book())?;
        self.save(tx, &owner.book(), &register)
    }

    /// Takes the keys as they are for the truth, as after restoring a backup; says for how many owners that changed something.
    pub(crate) fn accept_restore(&self) -> Result<u64> {
        // A file of the version before is numbered first; what is missing afterwards is what was lost.
        let names = match self.names() {
            Ok(names) => names.clone(),
            Err(_) => self.names_as_they_are()?,
        };
        let mut db = self.lock();
        let tx = begin(&mut db)?;
        *self.registers.lock() = super::Opened::default();
        let (mut changed, mut anchors) = (0, Vec::new());
        let book = everyone(&names);
        let before = self.register(&tx, &book).ok();
        let mut all = Vec::new();
        for row in owner_rows(&tx)? {
            let Ok(owner) = self.open_row(&row) else { continue };
            all.extend(owner.number);
            let before = self.register(&tx, &owner.book()).ok();
            let found: Vec<u64> = opening(&tx, &owner)?.keys.iter().map(|held| held.number).collect();
            let mut after = accepted(before.as_deref(), &found);
            Self::accept_marks(&tx, &owner.book(), &mut after)?;
            let same = before.is_some_and(|before| {
                before.roll.numbers().eq(after.roll.numbers()) && before.same_marks(&after)
            });
            changed += u64::from(!same);
            self.save(&tx, &owner.book(), &after)?;
            anchors.push((owner, after));
        }
        let after = accepted(before.as_deref(), &all);
        let same = before.is_some_and(|before| before.roll.numbers().eq(after.roll.numbers()));
        changed += u64::from(!same);
        self.save(&tx, &book, &after)?;
        // The anchors first: one that is ahead for a moment is refused, one that stays behind says nothing.
        for (owner, after) in &anchors {
            self.keep_anchor(&owner.book(), after)?;
        }
        self.keep_anchor(&book, &after)?;
        tx.commit().map_err(db::failed)?;
        Ok(changed)
    }

    pub(super) fn everyone(&self, db: &Connection) -> Result<std::sync::Arc<Register>> {
        self.register(db, &everyone(self.names_known()?))
    }
}

/// The register of all owners.
pub(super) fn everyone(names: &Key) -> Book<'_> {
    Book { tag: Tag::from_bytes(EVERYONE), key: names, name: "" }
}

/// A roll of exactly these, newer than what was there.
fn accepted(before: Option<&Register>, found: &[u64]) -> Register {
    let mut found = found.to_vec();
    found.sort_unstable();
    let before = before.map_or((0, 0), |before| (before.roll.version(), before.roll.next()));
    let next = found.last().map_or(0, |last| last + 1).max(before.1);
    let mut roll = confidant_seal::Roll::after(before.0, 0);
    for number in &found {
        roll.put(*number);
    }
    // No number that was ever given is given again, and every earlier anchor is behind.
    if next > roll.next() && roll.put(next - 1) && !found.contains(&(next - 1)) {
        roll.remove(next - 1);
    }
    Register::of(roll)
}

/// The keys that live, by tag, and by trying all if some are missing.
fn artifacts_of(db: &Connection, owner: &OwnerKey, register: &Register) -> Result<Artifacts> {
    let mut all = Artifacts::default();
    let mut found: HashMap<u64, Held> = HashMap::new();
    let mut take = |rows: Vec<(Vec<u8>, Sealed)>, by_tag: bool, all: &mut Artifacts| {
        for (id, sealed) in rows {
            let id = <[u8; 16]>::try_from(id.as_slice()).map(ArtifactId).ok();
            let held = id.and_then(|id| open_artifact(owner, id, &sealed).ok());
            if let Some(held) = held.filter(|held| register.roll.has(held.number))
                && found.insert(held.number, held).is_none()
                && !by_tag
            {
                all.misplaced += 1;
            }
        }
        found.len() as u64
    };
    if take(artifact_rows(db, Some(owner.tag))?, true, &mut all) < register.roll.len() {
        take(artifact_rows(db, None)?, false, &mut all);
    }
    all.missing = register.roll.numbers().filter(|number| !found.contains_key(number)).collect();
    all.keys = found.into_values().collect();
    all.keys.sort_unstable_by_key(|held| held.number);
    Ok(all)
}

/// Every key that an owner's key opens, whatever the register says.
fn opening(db: &Connection, owner: &OwnerKey) -> Result<Artifacts> {
    let mut all = Artifacts::default();
    for (id, sealed) in artifact_rows(db, None)? {
        let Ok(id) = <[u8; 16]>::try_from(id.as_slice()).map(ArtifactId) else { continue };
        all.keys.extend(open_artifact(owner, id, &sealed));
    }
    Ok(all)
}

fn artifact_row(db: &Connection, id: ArtifactId) -> Result<Option<(Vec<u8>, Sealed)>> {
    use rusqlite::OptionalExtension as _;
    let sql = "SELECT owner, sealed_key FROM artifacts WHERE id = ?1";
    let row = |row: &rusqlite::Row<'_>| {
        Ok((super::bytes_at(row, 0)?, Sealed::from_bytes(super::bytes_at(row, 1)?)))
    };
    db.prepare_cached(sql).and_then(|mut s| s.query_row([id.0], row).optional()).map_err(db::failed)
}

/// The artifacts' keys of a tag, or of all.
fn artifact_rows(db: &Connection, owner: Option<Tag>) -> Result<Vec<(Vec<u8>, Sealed)>> {
    let which = if owner.is_some() { "WHERE owner = ?1" } else { "WHERE ?1 IS NULL" };
    let sql = format!("SELECT id, sealed_key FROM artifacts {which}");
    let mut statement = db.prepare(&sql).map_err(db::failed)?;
    let rows = statement
        .query_map([owner.as_ref().map(Tag::as_bytes)], |row| {
            Ok((super::bytes_at(row, 0)?, Sealed::from_bytes(super::bytes_at(row, 1)?)))
        })
        .map_err(db::failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(db::failed)
}

fn delete_of(tx: &Connection, table: &str, owner: Tag) -> Result<usize> {
    tx.execute(&format!("DELETE FROM {table} WHERE owner = ?1"), [owner.as_bytes()]).map_err(db::failed)
}

impl Keys {
    /// An owner's row, opened by the name that it has itself, under one of these tags.
    pub(super) fn open_anywhere(&self, row: &OwnerRow, tags: &[Vec<u8>]) -> Result<OwnerKey> {
        // Its own first: all but those that somebody moved are there.
        std::iter::once(&row.tag)
            .chain(tags)
            .find_map(|tag| self.open_row(&OwnerRow { tag: tag.clone(), ..row.clone() }).ok())
            .ok_or_else(refused)
    }
}
