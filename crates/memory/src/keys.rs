//! The keys of memories, in a file of their own: `memory-keys.db`.
//!
//! ```text
//! root ──seals──▶ "names" (random; makes tags)
//!      └─seals──▶ an owner's key (random) ──seals──▶ each artifact's key, each index file's key (random)
//! ```
//!
//! Destroying a key is erasure: of an artifact, an index file, or everything of an owner. Rotating the root re-seals the
//! owners' keys and touches nothing else. Every owner's and every artifact's key has a number sealed in with it, and a
//! [`register`] says which numbers live: a key that was destroyed and is put back is refused. Easy to get wrong: nothing
//! is remembered between calls but the names key and, as long as nobody else writes, the registers, so that a key that another
//! process destroyed is gone here too.

mod owned;
mod register;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_seal::{Context, Key, Kid, Roots, Sealed, Suite, Tag, open, seal};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use zeroize::Zeroizing;

use crate::blobs::Pointer;
use crate::index::FileKeys;
use crate::truth::Truth;
use crate::{Error, Owner, Result, db};

use register::Opened;

/// Where roots come from. Asked when they are first needed, and again when one is missing.
pub trait RootSource: Send + Sync + std::fmt::Debug {
    /// The current root and retired ones.
    fn roots(&self) -> Result<Roots>;
}

/// The keyring of the memory.
#[derive(Debug)]
pub(crate) struct Keys {
    db: Mutex<Connection>,
    source: Box<dyn RootSource>,
    roots: Mutex<Option<Roots>>,
    names: OnceLock<Key>,
    registers: Mutex<Opened>,
    /// Has the anchors of the registers.
    truth: Arc<Truth>,
}

/// An owner with their key.
#[derive(Clone, Debug)]
pub(crate) struct OwnerKey {
    pub(crate) tag: Tag,
    key: Key,
    /// The owner in contexts.
    name: String,
    /// Their number; none if the key is of before there were any.
    number: Option<u64>,
}

/// The name of an artifact in the keyring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ArtifactId(pub(crate) [u8; 16]);

impl ArtifactId {
    pub(crate) fn random() -> Self {
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .expect("the operating system provides random bytes; without them nothing is safe");
        Self(id)
    }

    pub(crate) fn hex(self) -> String {
        Tag::from_bytes(self.0).to_string()
    }
}

/// How far a rotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Keys that the root seals.
    pub keys: u64,
    /// Those that a retired root still seals.
    pub under_others: u64,
}

impl Keys {
    pub(crate) fn open(path: &Path, source: Box<dyn RootSource>, truth: Arc<Truth>) -> Result<Self> {
        let db = Mutex::new(db::open(path, &[SCHEMA, REGISTERS])?);
        let (roots, names, registers) = (Mutex::new(None), OnceLock::new(), Mutex::default());
        Ok(Self { db, source, roots, names, registers, truth })
    }

    /// The owner's key, made if there is none.
    pub(crate) fn owner(&self, owner: &Owner) -> Result<OwnerKey> {
        self.names()?;
        if let Some(found) = self.known_owner(owner)? {
            return Ok(found);
        }
        // One that only lies under another tag is not made again beside it.
        if !self.estate(owner)?.is_empty() {
            // Unless somebody has just made it.
            return self.known_owner(owner)?.ok_or_else(refused);
        }
        let tag = self.owner_tag(owner)?;
        let names = self.names()?.clone();
        let roots = self.roots(None)?;
        let root = roots.current();
        let (name, key) = (named(owner), Key::random());
        let tag_name = tag.to_string();
        let mut db = self.lock();
        let tx = begin(&mut db)?;
        let book = owned::everyone(&names);
        let mut register = register::Register::clone(&*self.register(&tx, &book)?);
        let number = register.roll.add();
        let sealed_key = wrap_numbered(root, &name, OWNER, &root.kid().to_string(), &key, number);
        let sealed_owner = seal(root, SUITE, &key_context(&tag_name, OWNER_NAME, ""), 0, &owner.canonical());
        let made = tx
            .execute(
                "INSERT OR IGNORE INTO owners (owner, root, sealed_key, sealed_owner) VALUES (?1, ?2, ?3, ?4)",
                params![tag.as_bytes(), root.kid().as_bytes(), sealed_key.as_bytes(), sealed_owner.as_bytes()],
            )
            .map_err(db::failed)?;
        if made == 1 {
            let made = OwnerKey { tag, key, name, number: Some(number) };
            self.begin_anchor(&made.book())?;
            self.save(&tx, &book, &register)?;
            self.save(&tx, &made.book(), &register::Register::default())?;
            tx.commit().map_err(db::failed)?;
            drop(db);
            self.keep_anchor(&book, &register)?;
        } else {
            drop(tx);
            drop(db);
        }
        self.known_owner(owner)?.ok_or_else(key_gone)
    }

    /// The owner's key; nothing if they have no memories.
    pub(crate) fn known_owner(&self, owner: &Owner) -> Result<Option<OwnerKey>> {
        // Looking must not write, so without a names key there is no owner either.
        if self.names.get().is_none() && self.named_row()?.is_none() {
            return Ok(None);
        }
        let tag = self.owner_tag(owner)?;
        let Some(row) = self.owner_row(tag)? else { return Ok(None) };
        let name = named(owner);
        let kid = row.kid.ok_or_else(refused)?;
        let roots = self.roots(Some(kid))?;
        let root = roots.get(kid).ok_or_else(wrong_root)?;
        let Numbered { key, number } =
            unwrap_numbered(root, &name, OWNER, &kid.to_string(), &row.sealed_key)?;
        self.living(OwnerKey { tag, key, name, number }).map(Some)
    }

    /// An owner whose number lives; one that was erased and is put back has none.
    fn living(&self, owner: OwnerKey) -> Result<OwnerKey> {
        let everyone = self.everyone(&self.lock())?;
        match owner.number {
            Some(number) if everyone.roll.has(number) => Ok(owner),
            _ => Err(put_back()),
        }
    }

    /// Whether anything was ever sealed here.
    pub(crate) fn is_begun(&self) -> Result<bool> {
        Ok(self.named_row()?.is_some())
    }

    /// Every owner there is, with their key, or why it does not open; and how many there should be.
    pub(crate) fn owners(&self) -> Result<(Vec<Result<OwnerKey>>, u64)> {
        if self.named_row()?.is_none() {
            return Ok((Vec::new(), 0));
        }
        self.names()?;
        let rows = owner_rows(&self.lock())?;
        let expected = self.everyone(&self.lock())?.roll.len();
        Ok((
            rows.iter().map(|row| self.open_row(row).and_then(|owner| self.living(owner))).collect(),
            expected,
        ))
    }

    /// An owner by tag alone; nothing if they have no key.
    pub(crate) fn owner_of_tag(&self, tag: Tag) -> Result<Option<OwnerKey>> {
        self.names()?;
        let Some(row) = self.owner_row(tag)? else { return Ok(None) };
        self.open_row(&row).and_then(|owner| self.living(owner)).map(Some)
    }

    fn owner_row(&self, tag: Tag) -> Result<Option<OwnerRow>> {
        let sql = "SELECT owner, root, sealed_key, sealed_owner FROM owners WHERE owner = ?1";
        self.lock().query_row(sql, [tag.as_bytes()], owner_row).optional().map_err(db::failed)
    }

    /// An owner's row, opened by the name that it has itself. Whether it lives is asked elsewhere.
    fn open_row(&self, row: &OwnerRow) -> Result<OwnerKey> {
        let tag = Tag::from_bytes(row.tag.as_slice().try_into().map_err(|_| refused())?);
        let kid = row.kid.ok_or_else(refused)?;
        let roots = self.roots(Some(kid))?;
        let root = roots.get(kid).ok_or_else(wrong_root)?;
        let tag_name = tag.to_string();
        let context = key_context(&tag_name, OWNER_NAME, "");
        let canonical = open(root, &context, &row.sealed_owner).map_err(|_| refused())?.data;
        let name = URL_SAFE_NO_PAD.encode(&*canonical);
        let Numbered { key, number } =
            unwrap_numbered(root, &name, OWNER, &kid.to_string(), &row.sealed_key)?;
        Ok(OwnerKey { tag, key, name, number })
    }

    /// An owner's key by their name, whatever tag and root its row is said to have.
    fn open_for(&self, row: &OwnerRow, name: &str) -> Result<Numbered> {
        let roots = self.roots(None)?;
        let kids = row.kid.into_iter().chain([roots.current().kid()]);
        let mut opened = kids.filter_map(|kid| {
            unwrap_numbered(roots.get(kid)?, name, OWNER, &kid.to_string(), &row.sealed_key).ok()
        });
        opened.next().ok_or_else(refused)
    }

    /// A new key for an artifact.
    pub(crate) fn create_artifact(
        &self,
        owner: &OwnerKey,
        id: ArtifactId,
        key: &Key,
        pointer: &Pointer,
    ) -> Result<()> {
        let mut db = self.lock();
        let tx = begin(&mut db)?;
        let mut register = register::Register::clone(&*self.register(&tx, &owner.book())?);
        let number = register.roll.add();
        let sealed = wrap_artifact(owner, id, key, number, Some(pointer));
        let made = tx
            .execute(
                "INSERT INTO artifacts (id, owner, sealed_key) SELECT ?1, owner, ?3 FROM owners WHERE owner = ?2",
                params![id.0, owner.tag.as_bytes(), sealed.as_bytes()],
            )
            .map_err(db::failed)?;
        if made != 1 {
            return Err(key_gone());
        }
        self.save(&tx, &owner.book(), &register)?;
        tx.commit().map_err(db::failed)
    }

    /// An artifact's key; nothing if it was destroyed.
    pub(crate) fn artifact(&self, owner: &OwnerKey, id: ArtifactId) -> Result<Option<Key>> {
        Ok(self.held(owner, id)?.map(|held| held.key))
    }

    /// The same, with what is sealed in with it.
    pub(crate) fn held(&self, owner: &OwnerKey, id: ArtifactId) -> Result<Option<Held>> {
        let sql = "SELECT sealed_key FROM artifacts WHERE id = ?1 AND owner = ?2";
        let db = self.lock();
        let sealed = db
            .prepare_cached(sql)
            .and_then(|mut s| {
                s.query_row(params![id.0, owner.tag.as_bytes()], |row| bytes_at(row, 0)).optional()
            })
            .map_err(db::failed)?;
        let Some(sealed) = sealed.map(Sealed::from_bytes) else { return Ok(None) };
        let held = open_artifact(owner, id, &sealed)?;
        let register = self.register(&db, &owner.book())?;
        if register.roll.has(held.number) { Ok(Some(held)) } else { Err(put_back()) }
    }

    /// What vouches for tasks and for erasures that were begun.
    pub(crate) fn tasks_key(&self) -> Result<Key> {
        Ok(self.names()?.derive(TASKS))
    }

    /// The tag under which files and rows know an owner.
    pub(crate) fn owner_tag(&self, owner: &Owner) -> Result<Tag> {
        Ok(self.names()?.tag("memory-owner", &owner.canonical()))
    }

    /// A tag for something of an owner's: equal things get equal tags, and nobody without the key can tell which.
    pub(crate) fn tag(&self, owner: &OwnerKey, domain: &str, parts: &[&[u8]]) -> Tag {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        owner.key.derive("tags").tag(domain, &bytes)
    }

    /// What makes the terms under which an owner finds what was taken out of their sessions.
    pub(crate) fn replaced_key(owner: &OwnerKey) -> Key {
        owner.key.derive("replaced")
    }

    /// Re-seals what a retired root seals under the current one; says how many keys.
    pub(crate) fn rotate(&self, progress: &dyn Fn(u64, u64)) -> Result<u64> {
        self.names()?;
        let roots = self.source.roots()?;
        *self.roots.lock() = Some(roots.clone());
        let current = roots.current().kid();
        let total = self.state()?.under_others;
        let mut done = 0;
        loop {
            let mut db = self.lock();
            let tx =
                db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(db::failed)?;
            let some = rewrap_names(&tx, &roots, current)? + rewrap_owners(&tx, &roots, current)?;
            tx.commit().map_err(db::failed)?;
            if some == 0 {
                db::rewrite(&db)?;
                return Ok(done);
            }
            done += some;
            progress(done, total);
        }
    }

    /// How many keys there are, and how many a retired root still seals.
    pub(crate) fn state(&self) -> Result<KeyState> {
        let current = self.roots(None)?.current().kid();
        let count = |sql: &str| {
            self.lock().query_row(sql, [current.as_bytes()], |row| row.get::<_, i64>(0)).map_err(db::failed)
        };
        let keys =
            count("SELECT (SELECT count(*) FROM owners) + (SELECT count(*) FROM named) + 0 * length(?1)")?;
        let others = count(
            "SELECT (SELECT count(*) FROM owners WHERE root <> ?1) + (SELECT count(*) FROM named WHERE root <> ?1)",
        )?;
        Ok(KeyState { keys: keys.unsigned_abs(), under_others: others.unsigned_abs() })
    }

    /// The key that makes owners' tags, made once for the installation.
    pub(crate) fn names(&self) -> Result<&Key> {
        if let Some(key) = self.names.get() {
            return Ok(key);
        }
        let key = self.names_as_they_are()?;
        self.enrol(&key)?;
        Ok(self.names.get_or_init(|| key))
    }

    /// The same where it is known to be known.
    fn names_known(&self) -> Result<&Key> {
        self.names.get().ok_or_else(refused)
    }

    /// The same, whatever the registers say.
    fn names_as_they_are(&self) -> Result<Key> {
        let row = self.named_row()?;
        let (kid, sealed) = match row {
            Some(row) => row,
            // Where there are keys there was one, and another would hide them all; unless somebody has just made both.
            None if !owner_rows(&self.lock())?.is_empty() => self.named_row()?.ok_or_else(refused)?,
            None => {
                let roots = self.roots(None)?;
                let root = roots.current();
                let sealed = wrap(root, "", NAMES, &root.kid().to_string(), &Key::random());
                self.lock()
                    .execute(
                        "INSERT OR IGNORE INTO named (name, root, sealed) VALUES ('names', ?1, ?2)",
                        params![root.kid().as_bytes(), sealed.as_bytes()],
                    )
                    .map_err(db::failed)?;
                self.named_row()?.ok_or_else(key_gone)?
            }
        };
        let roots = self.roots(Some(kid))?;
        let root = roots.get(kid).ok_or_else(wrong_root)?;
        unwrap(root, "", NAMES, &kid.to_string(), &sealed)
    }

    fn named_row(&self) -> Result<Option<(Kid, Sealed)>> {
        let sql = "SELECT root, sealed FROM named WHERE name = 'names'";
        let row =
            |row: &rusqlite::Row<'_>| Ok((Kid::from_bytes(row.get(0)?), Sealed::from_bytes(row.get(1)?)));
        self.lock().query_row(sql, [], row).optional().map_err(db::failed)
    }

    /// The roots; asked for again if they lack `wanted`, as after a rotation by another process.
    fn roots(&self, wanted: Option<Kid>) -> Result<Roots> {
        let mut held = self.roots.lock();
        if let Some(roots) = held.as_ref()
            && wanted.is_none_or(|kid| roots.get(kid).is_some())
        {
            return Ok(roots.clone());
        }
        let roots = self.source.roots()?;
        *held = Some(roots.clone());
        Ok(roots)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.db.lock()
    }
}

impl OwnerKey {
    /// The owner as contexts name them.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Seals a small note about something that only its tag names.
    pub(crate) fn seal_note(&self, about: Tag, note: &[u8]) -> Vec<u8> {
        let object = about.to_string();
        let context = Context { purpose: "memory-note", ..key_context(&self.name, &object, "") };
        seal(&self.key, SUITE, &context, 0, note).as_bytes().to_vec()
    }

    /// Opens a note; nothing if it is not one of ours.
    pub(crate) fn open_note(&self, about: Tag, sealed: &[u8]) -> Option<Vec<u8>> {
        let object = about.to_string();
        let context = Context { purpose: "memory-note", ..key_context(&self.name, &object, "") };
        open(&self.key, &context, &Sealed::from_bytes(sealed.to_vec()))
            .ok()
            .map(|opened| opened.data.to_vec())
    }

    /// The number that the owner's key was made with.
    pub(crate) fn number(&self) -> Option<u64> {
        self.number
    }

    /// The public id of the owner's key.
    pub(crate) fn kid(&self) -> Kid {
        self.key.kid()
    }
}

/// The keys of one owner's index files.
#[derive(Debug)]
pub(crate) struct OwnerFiles {
    pub(crate) keys: Arc<Keys>,
    pub(crate) owner: OwnerKey,
}

impl FileKeys for OwnerFiles {
    fn create(&self, name: &str) -> Result<Key> {
        let key = Key::random();
        let sealed = wrap(&self.owner.key, &self.owner.name, "index", name, &key);
        let made = self
            .keys
            .lock()
            .execute(
                "INSERT OR REPLACE INTO files (owner, name, sealed_key)
                 SELECT owner, ?2, ?3 FROM owners WHERE owner = ?1",
                params![self.owner.tag.as_bytes(), name, sealed.as_bytes()],
            )
            .map_err(db::failed)?;
        if made == 1 { Ok(key) } else { Err(key_gone()) }
    }

    fn get(&self, name: &str) -> Result<Option<Key>> {
        let sql = "SELECT sealed_key FROM files WHERE owner = ?1 AND name = ?2";
        let sealed: Option<Vec<u8>> = self
            .keys
            .lock()
            .query_row(sql, params![self.owner.tag.as_bytes(), name], |row| row.get(0))
            .optional()
            .map_err(db::failed)?;
        let sealed = sealed.map(Sealed::from_bytes);
        sealed.map(|s| unwrap(&self.owner.key, &self.owner.name, "index", name, &s)).transpose()
    }

    fn destroy(&self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut db = self.keys.lock();
        let tx = db.transaction().map_err(db::failed)?;
        for name in names {
            let sql = "DELETE FROM files WHERE owner = ?1 AND name = ?2";
            tx.execute(sql, params![self.owner.tag.as_bytes(), name]).map_err(db::failed)?;
        }
        tx.commit().map_err(db::failed)?;
        db::scrub(&db)
    }

    fn names(&self) -> Result<Vec<String>> {
        let db = self.keys.lock();
        let mut all = db.prepare("SELECT name FROM files WHERE owner = ?1").map_err(db::failed)?;
        let names = all.query_map([self.owner.tag.as_bytes()], |row| row.get(0)).map_err(db::failed)?;
        names.collect::<rusqlite::Result<_>>().map_err(db::failed)
    }
}

/// Tag, root, key and name of an owner, as stored. Whatever somebody put there is a row that does not open.
#[derive(Clone)]
struct OwnerRow {
    tag: Vec<u8>,
    kid: Option<Kid>,
    sealed_key: Sealed,
    sealed_owner: Sealed,
}

fn owner_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<OwnerRow> {
    let sealed = |at| bytes_at(row, at).map(Sealed::from_bytes);
    Ok(OwnerRow {
        tag: bytes_at(row, 0)?,
        kid: bytes_at(row, 1)?.try_into().ok().map(Kid::from_bytes),
        sealed_key: sealed(2)?,
        sealed_owner: sealed(3)?,
    })
}

fn owner_rows(db: &Connection) -> Result<Vec<OwnerRow>> {
    let sql = "SELECT owner, root, sealed_key, sealed_owner FROM owners";
    let mut statement = db.prepare(sql).map_err(db::failed)?;
    let rows = statement.query_map([], owner_row).map_err(db::failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(db::failed)
}

/// The bytes of a column, whatever type somebody gave it.
fn bytes_at(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    })
}

/// Begins to write: nobody else does until it is committed.
fn begin(db: &mut Connection) -> Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(db::failed)
}

fn rewrap_names(tx: &Connection, roots: &Roots, current: Kid) -> Result<u64> {
    let sql = "SELECT name, root, sealed FROM named WHERE root <> ?1";
    let rows = read_rows::<String>(tx, sql, current)?;
    for (name, kid, sealed) in &rows {
        let old = roots.get(*kid).ok_or_else(wrong_root)?;
        let key = unwrap(old, "", NAMES, &kid.to_string(), sealed)?;
        let sealed = wrap(roots.current(), "", NAMES, &current.to_string(), &key);
        let sql = "UPDATE named SET root = ?2, sealed = ?3 WHERE name = ?1";
        tx.execute(sql, params![name, current.as_bytes(), sealed.as_bytes()]).map_err(db::failed)?;
    }
    Ok(rows.len() as u64)
}

fn rewrap_owners(tx: &Connection, roots: &Roots, current: Kid) -> Result<u64> {
    let sql = "SELECT owner, root, sealed_owner FROM owners WHERE root <> ?1 LIMIT 200";
    let rows = read_rows::<[u8; 16]>(tx, sql, current)?;
    for (tag, kid, sealed_owner) in &rows {
        let old = roots.get(*kid).ok_or_else(wrong_root)?;
        let tag_name = Tag::from_bytes(*tag).to_string();
        let context = key_context(&tag_name, OWNER_NAME, "");
        let canonical = open(old, &context, sealed_owner).map_err(|_| refused())?.data;
        let name = URL_SAFE_NO_PAD.encode(&*canonical);
        let sealed_key: Vec<u8> = tx
            .query_row("SELECT sealed_key FROM owners WHERE owner = ?1", [tag], |row| row.get(0))
            .map_err(db::failed)?;
        let (kid, current_name) = (kid.to_string(), current.to_string());
        // With its number, whatever that is.
        let key = open(old, &key_context(&name, OWNER, &kid), &Sealed::from_bytes(sealed_key))
            .map_err(|_| refused())?
            .data;
        let root = roots.current();
        let sealed_key = seal(root, SUITE, &key_context(&name, OWNER, &current_name), 0, &key);
        let sealed_owner = seal(root, SUITE, &context, 0, &canonical);
        tx.execute(
            "UPDATE owners SET root = ?2, sealed_key = ?3, sealed_owner = ?4 WHERE owner = ?1",
            params![tag, current.as_bytes(), sealed_key.as_bytes(), sealed_owner.as_bytes()],
        )
        .map_err(db::failed)?;
    }
    Ok(rows.len() as u64)
}

fn read_rows<T: rusqlite::types::FromSql>(
    tx: &Connection,
    sql: &str,
    current: Kid,
) -> Result<Vec<(T, Kid, Sealed)>> {
    let mut statement = tx.prepare(sql).map_err(db::failed)?;
    let rows = statement
        .query_map([current.as_bytes()], |row| {
            Ok((row.get(0)?, Kid::from_bytes(row.get(1)?), Sealed::from_bytes(row.get(2)?)))
        })
        .map_err(db::failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(db::failed)
}

fn named(owner: &Owner) -> String {
    URL_SAFE_NO_PAD.encode(owner.canonical())
}

fn key_context<'a>(owner: &'a str, object: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "memory-key", owner, container: "", object, field }
}

fn wrap(with: &Key, owner: &str, object: &str, field: &str, key: &Key) -> Sealed {
    seal(with, SUITE, &key_context(owner, object, field), 0, key.dangerously_expose_bytes())
}

fn unwrap(with: &Key, owner: &str, object: &str, field: &str, sealed: &Sealed) -> Result<Key> {
    let opened = open(with, &key_context(owner, object, field), sealed).map_err(|_| refused())?;
    let bytes: [u8; 32] = opened.data.as_slice().try_into().map_err(|_| refused())?;
    Ok(Key::from_bytes(bytes))
}

/// A key, and the number that it was made with; none if it is of before there were any.
struct Numbered {
    key: Key,
    number: Option<u64>,
}

fn wrap_numbered(with: &Key, owner: &str, object: &str, field: &str, key: &Key, number: u64) -> Sealed {
    let bytes = Zeroizing::new([&key.dangerously_expose_bytes()[..], &number.to_be_bytes()].concat());
    seal(with, SUITE, &key_context(owner, object, field), 0, &bytes)
}

fn unwrap_numbered(with: &Key, owner: &str, object: &str, field: &str, sealed: &Sealed) -> Result<Numbered> {
    let opened = open(with, &key_context(owner, object, field), sealed).map_err(|_| refused())?;
    let (key, number) = opened.data.split_first_chunk::<32>().ok_or_else(refused)?;
    let number = match number {
        [] => None,
        number => Some(u64::from_be_bytes(number.try_into().map_err(|_| refused())?)),
    };
    Ok(Numbered { key: Key::from_bytes(*key), number })
}

/// An artifact's key, with what is sealed in with it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) number: u64,
    pub(crate) id: ArtifactId,
    pub(crate) key: Key,
    /// Where its blob is; not known of one that had no row when the file was of the version before.
    pub(crate) pointer: Option<Pointer>,
}

fn wrap_artifact(
    owner: &OwnerKey,
    id: ArtifactId,
    key: &Key,
    number: u64,
    pointer: Option<&Pointer>,
) -> Sealed {
    let pointer = pointer.map(Pointer::hex).unwrap_or_default();
    let bytes = [&key.dangerously_expose_bytes()[..], &number.to_be_bytes(), pointer.as_bytes()];
    let bytes = Zeroizing::new(bytes.concat());
    seal(&owner.key, SUITE, &key_context(&owner.name, ARTIFACT, &id.hex()), 0, &bytes)
}

fn open_artifact(owner: &OwnerKey, id: ArtifactId, sealed: &Sealed) -> Result<Held> {
    let hex = id.hex();
    let opened =
        open(&owner.key, &key_context(&owner.name, ARTIFACT, &hex), sealed).map_err(|_| refused())?;
    let (key, rest) = opened.data.split_first_chunk::<32>().ok_or_else(refused)?;
    // One without a number was put there after all others got theirs.
    let (number, pointer) = rest.split_first_chunk::<8>().ok_or_else(put_back)?;
    let pointer =
        std::str::from_utf8(pointer).ok().and_then(|hex| Pointer::parse(&format!("cascade://{hex}")).ok());
    Ok(Held { number: u64::from_be_bytes(*number), id, key: Key::from_bytes(*key), pointer })
}

/// What is said of a key that was destroyed and is there again.
fn put_back() -> Error {
    Error::tampered(
        "a key of the memory was destroyed before and has been put back",
        "forget or erase it again; after a restore on purpose, run `confidant doctor --accept-restore`",
    )
}

fn refused() -> Error {
    Error::tampered(
        "a key of the memory does not open",
        "restore memory-keys.db from a backup, and check that the master key is the one that made it",
    )
}

fn wrong_root() -> Error {
    Error::unavailable(
        "the memory's keys are sealed under a master key that is not configured",
        "restore the key that made them: LUMERA_MEMORY_KEY or CHECKPOINT_ENCRYPTION_KEY, or the OLD_ variable of either",
    )
}

fn key_gone() -> Error {
    Error::not_found("this person's memories have just been erased", "nothing is left to do")
}

const ARTIFACT: &str = "artifact";
const OWNER: &str = "owner";
/// What vouches for tasks, below the names key.
const TASKS: &str = "tasks";
const OWNER_NAME: &str = "owner-name";
const NAMES: &str = "names";
const SUITE: Suite = Suite::ChaCha20Poly1305;

const SCHEMA: &str = "
    CREATE TABLE named (name TEXT PRIMARY KEY, root BLOB NOT NULL, sealed BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE owners (
        owner        BLOB PRIMARY KEY,
        root         BLOB NOT NULL,
        sealed_key   BLOB NOT NULL,
        sealed_owner BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE artifacts (id BLOB PRIMARY KEY, owner BLOB NOT NULL, sealed_key BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX artifacts_by_owner ON artifacts (owner);
    CREATE TABLE files (
        owner      BLOB NOT NULL,
        name       TEXT NOT NULL,
        sealed_key BLOB NOT NULL,
        PRIMARY KEY (owner, name)
    ) WITHOUT ROWID;
";

/// Which keys live, and which sessions are to stay forgotten.
const REGISTERS: &str = "
    CREATE TABLE registers (owner BLOB PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE forgotten (
        owner   BLOB NOT NULL,
        session BLOB NOT NULL,
        PRIMARY KEY (owner, session)
    ) WITHOUT ROWID;
";
