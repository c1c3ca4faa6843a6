//! What there is of an owner, sealed: which keys live, and which sessions are to stay forgotten.
//!
//! Tags and rows can be changed by whoever writes to the files; a register cannot. A key that was destroyed and is put back
//! has a number that no longer lives; one that was hidden leaves a number without a key. Registers lie with the keys, and
//! `memory.db` has of each how far it was ([`Anchor`]): an older register beside a newer anchor is refused. The register of
//! [`EVERYONE`] has a number for each owner.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use confidant_seal::{Context, Key, Roll, Sealed, Tag, open, seal};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Keys, OwnerKey, SUITE, refused};
use crate::{Error, Result, db};

/// The owner under whom the owners themselves are kept.
pub(super) const EVERYONE: [u8; 16] = [0; 16];

/// A register, opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) roll: Roll,
    /// How many sessions are marked as forgotten, and all of them mixed into one.
    marks: u64,
    mix: [u8; 16],
}

/// How far a register was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Anchor {
    version: u64,
    next: u64,
}

/// Whose register it is, and what seals it.
#[derive(Clone, Copy)]
pub(super) struct Book<'b> {
    pub(super) tag: Tag,
    pub(super) key: &'b Key,
    pub(super) name: &'b str,
}

/// Registers that were opened, for as long as nobody else has written to the file.
#[derive(Debug, Default)]
pub(super) struct Opened {
    data_version: i64,
    registers: HashMap<Tag, Arc<Register>>,
}

impl Register {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.marks.to_be_bytes()[..], &self.mix, &self.roll.to_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (marks, rest) = bytes.split_first_chunk()?;
        let (mix, roll) = rest.split_first_chunk()?;
        Some(Self { marks: u64::from_be_bytes(*marks), mix: *mix, roll: Roll::from_bytes(roll)? })
    }

    /// One without marks.
    pub(super) fn of(roll: Roll) -> Self {
        Self { roll, ..Self::default() }
    }

    pub(super) fn same_marks(&self, other: &Self) -> bool {
        (self.marks, self.mix) == (other.marks, other.mix)
    }

    fn anchor(&self) -> Anchor {
        Anchor { version: self.roll.version(), next: self.roll.next() }
    }

    fn mix_in(&mut self, book: &Book<'_>, session: Tag) {
        let tag = book.key.derive("tags").tag("forgotten", session.as_bytes());
        self.mix.iter_mut().zip(tag.as_bytes()).for_each(|(mixed, byte)| *mixed ^= byte);
    }
}

impl Book<'_> {
    fn context<'c>(&'c self, object: &'c str) -> Context<'c> {
        Context { purpose: "memory-register", owner: self.name, container: "", object, field: "" }
    }

    fn seal(&self, object: &str, data: &[u8]) -> Sealed {
        seal(self.key, SUITE, &self.context(object), 0, data)
    }

    fn open(&self, object: &str, sealed: Vec<u8>) -> Result<Vec<u8>> {
        let opened = open(self.key, &self.context(object), &Sealed::from_bytes(sealed));
        opened.map(|opened| opened.data.to_vec()).map_err(|_| refused())
    }

    fn seal_anchor(&self, anchor: Anchor) -> Vec<u8> {
        let bytes = [anchor.version.to_be_bytes(), anchor.next.to_be_bytes()].concat();
        self.seal("anchor", &bytes).as_bytes().to_vec()
    }

    fn open_anchor(&self, sealed: Vec<u8>) -> Result<Anchor> {
        let bytes: [u8; 16] = self.open("anchor", sealed)?.try_into().map_err(|_| refused())?;
        let (version, next) = bytes.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| refused());
        Ok(Anchor { version: number(version)?, next: number(next)? })
    }
}

impl OwnerKey {
    pub(super) fn book(&self) -> Book<'_> {
        Book { tag: self.tag, key: &self.key, name: &self.name }
    }
}

impl Keys {
    /// The register as it is. One that is behind its anchor, or missing, is not.
    pub(super) fn register(&self, db: &Connection, book: &Book<'_>) -> Result<Arc<Register>> {
        let data_version: i64 =
            db.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(db::failed)?;
        let mut known = self.registers.lock();
        if known.data_version != data_version {
            *known = Opened { data_version, registers: HashMap::new() };
        }
        if let Some(register) = known.registers.get(&book.tag) {
            return Ok(Arc::clone(register));
        }
        let register = Arc::new(self.read_register(db, book)?);
        known.registers.insert(book.tag, Arc::clone(&register));
        Ok(register)
    }

    fn read_register(&self, db: &Connection, book: &Book<'_>) -> Result<Register> {
        // First: another process writes the register, then the anchor, and must not be caught in between.
        let anchor = self.truth.anchor(book.tag)?.map(|sealed| book.open_anchor(sealed)).transpose()?;
        let sql = "SELECT sealed FROM registers WHERE owner = ?1";
        let sealed: Option<Vec<u8>> =
            db.query_row(sql, [book.tag.as_bytes()], |row| row.get(0)).optional().map_err(db::failed)?;
        match (sealed, anchor) {
            (Some(sealed), Some(anchor)) => {
                let register = Register::from_bytes(&book.open("register", sealed)?).ok_or_else(refused)?;
                if register.roll.version() < anchor.version { Err(rolled_back()) } else { Ok(register) }
            }
            // Nothing was ever numbered: the first one writes it.
            (None, Some(anchor)) if anchor.version == 0 => {
                Ok(Register { roll: Roll::after(0, anchor.next), ..Register::default() })
            }
            _ => Err(rolled_back()),
        }
    }

    /// Writes a register; the caller commits.
    pub(super) fn save(&self, tx: &Connection, book: &Book<'_>, register: &Register) -> Result<()> {
        let sealed = book.seal("register", &register.to_bytes());
        let sql = "INSERT OR REPLACE INTO registers (owner, sealed) VALUES (?1, ?2)";
        tx.execute(sql, params![book.tag.as_bytes(), sealed.as_bytes()]).map_err(db::failed)?;
        self.drop_opened(book.tag);
        Ok(())
    }

    pub(super) fn drop_opened(&self, tag: Tag) {
        self.registers.lock().registers.remove(&tag);
    }

    /// Notes in the other file how far a register is.
    pub(super) fn keep_anchor(&self, book: &Book<'_>, register: &Register) -> Result<()> {
        self.truth.set_anchor(book.tag, &book.seal_anchor(register.anchor()))
    }

    /// Notes that a register begins, before it does: from then on one that is missing is missed.
    pub(super) fn begin_anchor(&self, book: &Book<'_>) -> Result<()> {
        self.truth.set_anchor(book.tag, &book.seal_anchor(Anchor::default()))
    }

    /// How far an owner's register is, sealed, for whoever writes to the other file next.
    pub(crate) fn anchor_of(&self, owner: &OwnerKey) -> Result<Vec<u8>> {
        let register = self.register(&self.lock(), &owner.book())?;
        Ok(owner.book().seal_anchor(register.anchor()))
    }

    /// The sessions that are to stay forgotten; an error if they are not those that were written.
    pub(crate) fn forgotten(&self, owner: &OwnerKey) -> Result<HashSet<Tag>> {
        let db = self.lock();
        let register = self.register(&db, &owner.book())?;
        let mut statement =
            db.prepare("SELECT session FROM forgotten WHERE owner = ?1").map_err(db::failed)?;
        let rows = statement.query_map([owner.tag.as_bytes()], |row| row.get(0).map(Tag::from_bytes));
        // One that is no tag was not written here, and is missed in the mix.
        let marks: HashSet<Tag> = rows.map_err(db::failed)?.filter_map(std::result::Result::ok).collect();
        let mut found = Register::default();
        marks.iter().for_each(|session| found.mix_in(&owner.book(), *session));
        if (marks.len() as u64, found.mix) == (register.marks, register.mix) {
            return Ok(marks);
        }
        Err(Error::tampered(
            "the list of forgotten sessions is damaged or was changed, so nothing is imported",
            "restore memory-keys.db from a backup; `confidant doctor --accept-restore` accepts it as it is",
        ))
    }

    /// Marks sessions as forgotten, or no longer; the caller saves and commits.
    pub(super) fn mark(
        tx: &Connection,
        book: &Book<'_>,
        register: &mut Register,
        sessions: &[Tag],
    ) -> Result<()> {
        for session in sessions {
            let sql = "INSERT OR IGNORE INTO forgotten (owner, session) VALUES (?1, ?2)";
            let marked = [&book.tag.as_bytes()[..], session.as_bytes()];
            if tx.execute(sql, marked).map_err(db::failed)? == 1 {
                register.mix_in(book, *session);
                register.marks += 1;
            }
        }
        Ok(())
    }

    /// Whoever stores a session that was forgotten wants it back.
    pub(crate) fn unmark(&self, owner: &OwnerKey, session: Tag) -> Result<()> {
        let mut db = self.lock();
        let marked = [&owner.tag.as_bytes()[..], session.as_bytes()];
        let there = "SELECT 1 FROM forgotten WHERE owner = ?1 AND session = ?2";
        if !db.prepare_cached(there).and_then(|mut s| s.exists(marked)).map_err(db::failed)? {
            return Ok(());
        }
        let tx = super::begin(&mut db)?;
        let mut register = Register::clone(&*self.register(&tx, &owner.book())?);
        let sql = "DELETE FROM forgotten WHERE owner = ?1 AND session = ?2";
        if tx.execute(sql, marked).map_err(db::failed)? == 1 {
            register.mix_in(&owner.book(), session);
            register.marks = register.marks.saturating_sub(1);
        }
        self.save(&tx, &owner.book(), &register)?;
        tx.commit().map_err(db::failed)
    }

    /// Takes the marks as they are, as after a restore.
    pub(super) fn accept_marks(tx: &Connection, book: &Book<'_>, register: &mut Register) -> Result<()> {
        let sql = "SELECT session FROM forgotten WHERE owner = ?1";
        let mut statement = tx.prepare(sql).map_err(db::failed)?;
        let rows = statement.query_map([book.tag.as_bytes()], |row| row.get(0).map(Tag::from_bytes));
        (register.marks, register.mix) = (0, [0; 16]);
        for session in rows.map_err(db::failed)?.filter_map(std::result::Result::ok) {
            register.mix_in(book, session);
            register.marks += 1;
        }
        Ok(())
    }
}

fn rolled_back() -> Error {
    Error::tampered(
        "the register of this person's memories is missing or was rolled back",
        "restore memory-keys.db and memory.db from the same backup; after a restore on purpose, run \
         `confidant doctor --accept-restore`",
    )
}
