//! An account that is put back, in one transaction.
//!
//! ```text
//! code used up ─▶ as it was read? ─┬─ rest stays: rings sealed anew, credentials and record replaced, devices gone
//!                                  └─ anew: everything goes, the account is made as a new one is
//! ```
//!
//! Easy to get wrong: devices. Their labels are sealed under a key that is lost, so none of them can stay.

use confidant_chat_format::{Digest, Entry, Refused, Shelf};
use rusqlite::{Connection, params};

use super::super::accounts::{Rest, RestoreAccount};
use super::super::checks::sized;
use super::super::lists::{FloorPut, ListPut, ManifestPut};
use super::super::names::ring_key;
use super::super::plan::{Standing, successors, whole_rings};
use super::super::rings::RingName;
use super::super::{Changed, CodeKind, StoreError, limits};
use super::accounts::{end_other_sessions, forget_login, put_credentials, taken};
use super::rows::{Account, account, note, one, run};
use super::{Work, codes, lists, rings, rotation};

pub(super) fn restore(c: &Connection, restore: &RestoreAccount) -> Work<()> {
    let code = codes::consume(c, CodeKind::Restore, restore.code, restore.now)?;
    if code.is_none_or(|code| code.carries != restore.carries) {
        return Err(Refused::LoginRefused.into());
    }
    sized(restore.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    whole_rings(&restore.rings, restore.generation)?;
    let sql = "SELECT record, erasing FROM accounts WHERE account = ?1";
    let there = one(c, sql, params![restore.account.as_str()], |row| {
        Ok((Digest::of(row.get_ref(0)?.as_blob()?), row.get::<_, bool>(1)?))
    })?;
    let is_erasing = there.is_some_and(|(_, erasing)| erasing);
    if is_erasing || there.map(|(record, _)| record) != restore.replaces {
        return Err(StoreError::Conflict { now: 0 }.into());
    }
    match (&restore.rest, there) {
        (Rest::Stays, None) => Err(StoreError::Conflict { now: 0 }.into()),
        (Rest::Stays, Some(_)) => keep(c, restore),
        (Rest::Anew(floors, manifest), there) => {
            if there.is_some() {
                forget_login(c, account(c, &restore.account)?.n)?;
                run(c, "DELETE FROM accounts WHERE account = ?1", params![restore.account.as_str()])?;
                run(c, "INSERT INTO unscrubbed (id) VALUES (randomblob(16))", [])?;
            }
            anew(c, restore, floors, manifest)
        }
    }
}

fn keep(c: &Connection, restore: &RestoreAccount) -> Work<()> {
    let found = account(c, &restore.account)?;
    if restore.rev <= found.standing.rev || restore.generation != found.standing.generation {
        return Err(StoreError::Conflict { now: found.standing.rev }.into());
    }
    for of in [RingName::Account, RingName::Box] {
        let sent: Vec<&Entry> =
            restore.rings.iter().filter(|row| row.of == of).map(|row| &row.entry).collect();
        reseal(c, found.n, &of, &sent)?;
    }
    rotation::thaw(c, found.n)?;
    end_other_sessions(c, &found, Digest::ZERO)?;
    run(c, "DELETE FROM devices WHERE account = ?1", params![found.n])?;
    put_credentials(c, found.n, Some(restore.login), &restore.credentials)?;
    let row = params![found.n, restore.rev, restore.record.as_bytes()];
    run(c, "UPDATE accounts SET rev = ?2, record = ?3 WHERE n = ?1", row)?;
    note(c, found.n, &Changed::Account)?;
    Ok(())
}

/// Puts entries in the place of those that are there.
pub(super) fn reseal(c: &Connection, account: i64, of: &RingName, sent: &[&Entry]) -> Work<()> {
    let there = rings::entries(c, account, of)?;
    if there.is_empty() {
        return Err(StoreError::NotFound.into());
    }
    let (container, kind) = ring_key(of);
    let sql = "UPDATE rings SET sealed = ?5 WHERE account = ?1 AND container = ?2 AND kind = ?3 AND n = ?4";
    for entry in successors(&there, sent)? {
        sized(entry.sealed.as_bytes(), limits::ENTRY_BYTES, "key")?;
        run(c, sql, params![account, container, kind, entry.n, entry.sealed.as_bytes()])?;
    }
    Ok(())
}

fn anew(
    c: &Connection,
    restore: &RestoreAccount,
    floors: &[confidant_seal::Sealed],
    manifest: &ManifestPut,
) -> Work<()> {
    let sql = "INSERT INTO accounts (account, login, rev, generation, epoch, record) VALUES (?1, ?2, ?3, ?4, 1, ?5)";
    let RestoreAccount { rev, generation, .. } = *restore;
    let (id, login) = (restore.account.as_str(), restore.login.as_bytes());
    taken(run(c, sql, params![id, login, rev, generation, restore.record.as_bytes()]))?;
    let n = c.last_insert_rowid();
    let made = Account { n, standing: Standing { rev, generation, ..Standing::NEW } };
    put_credentials(c, n, None, &restore.credentials)?;
    for row in &restore.rings {
        rings::put(c, &made, &row.of, &row.entry)?;
    }
    if floors.len() != 16 {
        return Err(StoreError::Malformed("there are sixteen floors").into());
    }
    let floors = Shelf::all().zip(floors);
    let floors = floors.map(|(shelf, envelope)| FloorPut { shelf, expected: 0, envelope: envelope.clone() });
    lists::put_list(c, &made, &ListPut { floors: floors.collect(), manifest: manifest.clone() })?;
    note(c, n, &Changed::Account)?;
    Ok(())
}
