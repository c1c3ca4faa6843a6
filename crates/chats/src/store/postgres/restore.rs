//! An account that is put back, in one transaction.
//!
//! ```text
//! code used up ─▶ as it was read? ─┬─ rest stays: rings sealed anew, credentials and record replaced, devices gone
//!                                  └─ anew: everything goes, the account is made as a new one is
//! ```
//!
//! Easy to get wrong: devices. Their labels are sealed under a key that is lost, so none of them can stay.

use std::collections::BTreeMap;

use confidant_chat_format::{AccountId, Digest, Entry, Refused, Shelf};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::accounts::{Rest, RestoreAccount};
use super::super::checks::{Link, sized};
use super::super::lists::{FloorPut, ListPut, ManifestPut};
use super::super::names::ring_key;
use super::super::plan::{SeenList, Standing, plan_list, successors, whole_rings};
use super::super::rings::RingName;
use super::super::{Changed, CodeKind, StoreError, limits};
use super::Work;
use super::accounts::{CREDENTIALS, Credentials, few, tags, taken};
use super::codes::{CONSUME, code_at};
use super::lists::{ListColumns, PUT_FLOORS, PUT_MANIFEST};
use super::rings::{APPEND, Columns, ENTRIES, entry_at};
use super::rows::{Account, LOCK, NOTE, Notes, SHOWN, account, all, get, parts, sealed_at, whose};

/// An account with its record; nobody else writes to it until this transaction ends.
const LOST: &str = "SELECT rev, epoch, generation, frozen_until, seq, login, record, erasing FROM accounts
    WHERE account = $1 FOR NO KEY UPDATE";
/// Entries in the place of those that are there.
const RESEAL: &str = "UPDATE rings SET sealed = u.sealed
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[])
        AS u (container, kind, n, kid, subs, sealed)
    WHERE rings.account = $1 AND u.container = rings.container AND u.kind = rings.kind AND u.n = rings.n";

pub(super) async fn restore(tx: &mut Transaction<'_>, restore: &RestoreAccount) -> Work<()> {
    let id = restore.account.as_str();
    let (shown, kind) = (hex::encode(restore.code.as_bytes()), CodeKind::Restore as i64);
    let key = restore.code.as_bytes().as_slice();
    let found = tx
        .run(&[
            Ask(SHOWN, &[&shown]),
            Ask(CONSUME, &[&kind, &key]),
            // After the code, for which others wait: whoever comes second sees what the first made.
            whose(&[&id]),
            Ask(LOST, &[&id]),
        ])
        .await?;
    let [_, codes, _, there] = parts(found)?;
    let code = codes.first().map(|row| code_at(row, CodeKind::Restore)).transpose()?;
    let code = code.filter(|code| restore.now < code.expires_at);
    if code.is_none_or(|code| code.carries != restore.carries) {
        return Err(Refused::LoginRefused.into());
    }
    sized(restore.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    few(&restore.credentials)?;
    whole_rings(&restore.rings, restore.generation)?;
    let lost = there.first().map(lost_at).transpose()?;
    let is_erasing = lost.is_some_and(|(_, erasing)| erasing);
    if is_erasing || lost.map(|(record, _)| record) != restore.replaces {
        return Err(StoreError::Conflict { now: 0 }.into());
    }
    let before = match lost {
        Some(_) => Some(account(&there)?),
        None => None,
    };
    match (&restore.rest, before) {
        (Rest::Stays, None) => Err(StoreError::Conflict { now: 0 }.into()),
        (Rest::Stays, Some(before)) => keep(tx, restore, before).await,
        (Rest::Anew(floors, manifest), before) => {
            if let Some(before) = before {
                forget(tx, restore, &before).await?;
            }
            anew(tx, restore, floors, manifest).await
        }
    }
}

/// The hash of the record, and whether the account is being erased.
fn lost_at(row: &Row) -> Work<(Digest, bool)> {
    Ok((Digest::of(sealed_at(row, 6)?.as_bytes()), get(row, 7)?))
}

async fn keep(tx: &mut Transaction<'_>, restore: &RestoreAccount, before: Account) -> Work<()> {
    let standing = before.standing;
    if restore.rev <= standing.rev || restore.generation != standing.generation {
        return Err(StoreError::Conflict { now: standing.rev }.into());
    }
    let id = restore.account.as_str();
    let (own, letters) = (ring_key(&RingName::Account), ring_key(&RingName::Box));
    let found =
        tx.run(&[Ask(ENTRIES, &[&id, &own.0, &own.1]), Ask(ENTRIES, &[&id, &letters.0, &letters.1])]).await?;
    let [own, letters] = parts(found)?;
    let mut rows: Vec<(&RingName, &Entry)> = Vec::new();
    for (of, there) in [(&RingName::Account, &own), (&RingName::Box, &letters)] {
        let sent: Vec<&Entry> =
            restore.rings.iter().filter(|row| row.of == *of).map(|row| &row.entry).collect();
        rows.extend(resealed(there, &sent)?.into_iter().map(|entry| (of, entry)));
    }
    let columns = Columns::new(rows);
    let first: [&(dyn ToSql + Sync); 1] = [&id];
    let reseal = [&first[..], &columns.args()].concat();
    let credentials =
        Credentials::new(&restore.account, &before, Some(&restore.login), &restore.credentials)?;
    let (args, rev, record) = (credentials.args(), i64::from(restore.rev), restore.record.as_bytes());
    let row: [&(dyn ToSql + Sync); 3] = [&id, &rev, &record];
    let notes = Notes::new(&restore.account, &before, &[Changed::Account]);
    let noted = notes.args();
    let mut asks = vec![
        Ask(RESEAL, &reseal),
        Ask("SELECT thaw()", &[]),
        Ask("DELETE FROM devices WHERE account = $1", &first),
    ];
    asks.extend(args.asks());
    asks.extend([
        Ask("UPDATE accounts SET rev = $2, epoch = epoch + 1, record = $3 WHERE account = $1", &row),
        Ask(NOTE, &noted),
    ]);
    tx.finish(&asks).await.map(drop).map_err(taken)
}

fn resealed<'a>(there: &[Row], sent: &[&'a Entry]) -> Work<Vec<&'a Entry>> {
    let there = all(there, |row| entry_at(row, 0))?;
    if there.is_empty() {
        return Err(StoreError::NotFound.into());
    }
    let entries = successors(&there, sent)?;
    for entry in &entries {
        sized(entry.sealed.as_bytes(), limits::ENTRY_BYTES, "key")?;
    }
    Ok(entries)
}

/// Puts entries in the place of those that are there.
pub(super) async fn reseal(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    of: &RingName,
    sent: &[Entry],
) -> Work<()> {
    let (id, (container, kind)) = (id.as_str(), ring_key(of));
    let found = tx.run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(ENTRIES, &[&id, &container, &kind])]).await?;
    let [_, whole, there] = parts(found)?;
    account(&whole)?;
    let sent: Vec<&Entry> = sent.iter().collect();
    let columns = Columns::new(resealed(&there, &sent)?.into_iter().map(|entry| (of, entry)));
    let first: [&(dyn ToSql + Sync); 1] = [&id];
    let args = [&first[..], &columns.args()].concat();
    tx.finish(&[Ask(RESEAL, &args)]).await?;
    Ok(())
}

/// Everything that there is of the account goes.
async fn forget(tx: &mut Transaction<'_>, restore: &RestoreAccount, before: &Account) -> Work<()> {
    let (id, login) = (restore.account.as_str(), before.login.as_bytes().as_slice());
    let shown = hex::encode(login);
    tx.run(&[
        Ask(SHOWN, &[&shown]),
        Ask("DELETE FROM attempts WHERE login = $1", &[&login]),
        Ask("DELETE FROM codes WHERE login = $1", &[&login]),
        Ask("DELETE FROM accounts WHERE account = $1", &[&id]),
        Ask("INSERT INTO unscrubbed (id) VALUES (uuid_send(gen_random_uuid()))", &[]),
    ])
    .await?;
    Ok(())
}

async fn anew(
    tx: &mut Transaction<'_>,
    restore: &RestoreAccount,
    floors: &[Sealed],
    manifest: &ManifestPut,
) -> Work<()> {
    if floors.len() != 16 {
        return Err(StoreError::Malformed("there are sixteen floors").into());
    }
    let floors = Shelf::all().zip(floors);
    let floors = floors.map(|(shelf, envelope)| FloorPut { shelf, expected: 0, envelope: envelope.clone() });
    let list = ListPut { floors: floors.collect(), manifest: manifest.clone() };
    let ring = whole_rings(&restore.rings, restore.generation)?;
    let seen = SeenList { ring, manifest: (0, Link::NONE), floors: BTreeMap::new() };
    let plan = plan_list(&list, &seen)?;
    let (id, login) = (restore.account.as_str(), restore.login.as_bytes().as_slice());
    let (rev, generation) = (i64::from(restore.rev), i64::from(restore.generation));
    let record = restore.record.as_bytes();
    let columns = ListColumns::new(id, &list, &plan);
    let entries = Columns::new(restore.rings.iter().map(|row| (&row.of, &row.entry)));
    let begin: [&(dyn ToSql + Sync); 2] = [&id, &generation];
    let append = [&begin[..], &entries.args()].concat();
    let made = Account { standing: Standing::NEW, seq: 0, login: restore.login };
    let notes = Notes::new(&restore.account, &made, &[Changed::Account]);
    let tags = tags(&restore.credentials);
    let sql = "INSERT INTO accounts (account, login, rev, generation, epoch, record) VALUES ($1, $2, $3, $4, 1, $5)";
    tx.finish(&[
        Ask(sql, &[&id, &login, &rev, &generation, &record]),
        Ask(CREDENTIALS, &[&id, &tags]),
        Ask(APPEND, &append),
        Ask(PUT_FLOORS, &columns.floors()),
        Ask(PUT_MANIFEST, &columns.manifest()),
        Ask(NOTE, &notes.args()),
    ])
    .await
    .map(drop)
    .map_err(taken)
}
