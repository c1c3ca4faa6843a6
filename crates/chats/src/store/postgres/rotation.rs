//! The rotation of the account key: staged aside, put in force by one commit.
//!
//! What is staged lies in tables of its own, which nothing else reads. So a rotation that is cut off anywhere before its
//! commit has changed nothing but the epoch.

use std::collections::BTreeMap;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Entry, Shelf, check_commit};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::{Kid, Sealed};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::checks::{check_entry, sized};
use super::super::names::ring_key;
use super::super::plan::{own_and_box, plan_list};
use super::super::rings::{BeginRotation, CommitRotation, Frozen, RingEntry, RingName, Rings, Stage, Staged};
use super::super::{Changed, Result, StoreError, limits};
use super::accounts::{Credentials, END_SESSIONS, taken};
use super::lists::{FLOORS, ListColumns, MANIFEST, PUT_FLOORS, PUT_MANIFEST, number_of, seen_list, shelf_at};
use super::rings::{ALL_KIDS, APPEND, Columns, ENTRIES, digest, entry_at, kids_of, ring_entry_at};
use super::rows::{
    ACCOUNT, LOCK, NOTE, Notes, account, all, count, kid_at, many, number, parts, sealed_at, small, whose,
};
use super::{PostgresChats, Work, restore, transact};

const WRAP: &str = "SELECT wrap FROM rotations WHERE account = $1";
const THAW: &str = "SELECT thaw()";
/// Entries that have no successor with the same keys, or were not there when it was staged.
const LACKING: &str = "SELECT count(*) FROM (SELECT * FROM rings WHERE account = $1) AS r
    FULL JOIN (SELECT * FROM staged WHERE account = $1) AS s USING (account, container, kind, n)
    WHERE s.kid IS DISTINCT FROM r.kid OR s.subs IS DISTINCT FROM r.subs";

#[async_trait]
impl Rings for PostgresChats {
    async fn ring(&self, id: &AccountId, of: &RingName) -> Result<Vec<Entry>> {
        transact!(self, Reading, |tx| ring(tx, id, of))
    }

    async fn rings(&self, id: &AccountId, after: Option<(RingName, u32)>) -> Result<Vec<RingEntry>> {
        transact!(self, Reading, |tx| rings(tx, id, after.as_ref()))
    }

    async fn begin_rotation(&self, begin: BeginRotation) -> Result<Frozen> {
        transact!(self, Writing, |tx| freeze(tx, &begin))
    }

    async fn stage(&self, stage: Stage) -> Result<Staged> {
        transact!(self, Writing, |tx| set_aside(tx, &stage))
    }

    async fn staged_floors(&self, id: &AccountId) -> Result<Vec<(Shelf, Sealed)>> {
        transact!(self, Reading, |tx| staged_floors(tx, id))
    }

    async fn commit_rotation(&self, commit: CommitRotation) -> Result<u32> {
        transact!(self, Writing, |tx| put_in_force(tx, &commit))
    }

    async fn reseal(&self, id: &AccountId, of: &RingName, entries: Vec<Entry>) -> Result<()> {
        transact!(self, Writing, |tx| restore::reseal(tx, id, of, &entries))
    }

    async fn abandon_rotation(&self, id: &AccountId) -> Result<()> {
        transact!(self, Writing, |tx| abandon(tx, id))
    }
}

async fn ring(tx: &mut Transaction<'_>, id: &AccountId, of: &RingName) -> Work<Vec<Entry>> {
    let (id, (container, kind)) = (id.as_str(), ring_key(of));
    let found =
        tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(ENTRIES, &[&id, &container, &kind])]).await?;
    let [_, there, entries] = parts(found)?;
    account(&there)?;
    all(&entries, |row| entry_at(row, 0))
}

async fn rings(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    after: Option<&(RingName, u32)>,
) -> Work<Vec<RingEntry>> {
    let (id, limit) = (id.as_str(), many(limits::PAGE));
    let ((container, kind), last) = match after {
        Some((of, last)) => (ring_key(of), i64::from(*last)),
        None => (("", 0), 0),
    };
    let sql = "SELECT container, kind, n, kid, subs, sealed FROM rings
               WHERE account = $1 AND (container, kind, n) > ($2, $3, $4) ORDER BY container, kind, n LIMIT $5";
    let found = tx
        .finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &container, &kind, &last, &limit])])
        .await?;
    let [_, there, entries] = parts(found)?;
    account(&there)?;
    all(&entries, ring_entry_at)
}

async fn freeze(tx: &mut Transaction<'_>, begin: &BeginRotation) -> Work<Frozen> {
    let id = begin.account.as_str();
    let [_, there] = parts(tx.run(&[whose(&[&id]), Ask(LOCK, &[&id])]).await?)?;
    let standing = account(&there)?.standing;
    if standing.rev != begin.expected {
        return Err(StoreError::Conflict { now: standing.rev }.into());
    }
    let until = begin.now.plus(limits::FREEZE);
    let (session, frozen) = (begin.session.as_bytes().as_slice(), number(until.0));
    tx.finish(&[
        Ask(THAW, &[]),
        Ask(END_SESSIONS[0], &[&id, &session]),
        Ask(END_SESSIONS[1], &[&id]),
        Ask(END_SESSIONS[2], &[&id]),
        Ask("UPDATE accounts SET frozen_until = $2 WHERE account = $1", &[&id, &frozen]),
    ])
    .await?;
    Ok(Frozen { epoch: standing.epoch.saturating_add(1), until })
}

async fn set_aside(tx: &mut Transaction<'_>, stage: &Stage) -> Work<Staged> {
    if stage.entries.len() > limits::STAGED_A_CALL {
        return Err(StoreError::TooMany("keys in one call").into());
    }
    let id = stage.account.as_str();
    // One that is there twice counts as it was last.
    let entries: BTreeMap<_, _> = stage.entries.iter().map(|row| ((&row.of, row.entry.n), row)).collect();
    let floors: BTreeMap<_, _> = stage.floors.iter().map(|(shelf, floor)| (*shelf, floor)).collect();
    let columns = Columns::new(entries.values().map(|row| (&row.of, &row.entry)));
    let first: [&(dyn ToSql + Sync); 1] = [&id];
    let names = [&first[..], &columns.names()].concat();
    // Only an entry that takes the place of one that is there: nobody fills the table with others.
    let known = "SELECT count(*) FROM rings JOIN unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[])
                     AS u (container, kind, n, kid) USING (container, kind, n, kid) WHERE account = $1";
    let found = tx.run(&[whose(&first), Ask(LOCK, &first), Ask(WRAP, &first), Ask(known, &names)]).await?;
    let [_, there, wrap, known] = parts(found)?;
    let standing = account(&there)?.standing;
    standing.in_rotation(stage.epoch, stage.now)?;
    match stage.wrap {
        Some(kid) if wrap.is_empty() || is_under(&wrap, kid)? => {}
        Some(_) => return Err(StoreError::Conflict { now: standing.rev }.into()),
        None if !stage.entries.is_empty() => {
            return Err(StoreError::Malformed("entries are sealed under a key").into());
        }
        None => {}
    }
    for RingEntry { of, entry } in &stage.entries {
        check_entry(of, entry)?;
    }
    if count(&known)? != u64::try_from(entries.len()).unwrap_or(u64::MAX) {
        return Err(StoreError::Conflict { now: standing.rev }.into());
    }
    for floor in floors.values() {
        sized(floor.as_bytes(), limits::FLOOR_BYTES, "floor")?;
    }
    let kid = stage.wrap.map(|kid| *kid.as_bytes());
    let kid = kid.as_ref().map(<[u8; 8]>::as_slice);
    let staged = [&first[..], &columns.args()].concat();
    let shelves: Vec<i64> = floors.keys().map(|shelf| number_of(*shelf)).collect();
    let envelopes: Vec<&[u8]> = floors.values().map(|floor| floor.as_bytes()).collect();
    let found = tx
        .finish(&[
            Ask(
                "INSERT INTO rotations (account, wrap) SELECT $1, $2 WHERE $2::bytea IS NOT NULL ON CONFLICT DO NOTHING",
                &[&id, &kid],
            ),
            Ask(STAGE, &staged),
            Ask(STAGE_FLOORS, &[&id, &shelves, &envelopes]),
            Ask("SELECT count(*) FROM (SELECT DISTINCT container, kind FROM staged WHERE account = $1) AS r", &first),
            Ask("SELECT count(*) FROM staged_floors WHERE account = $1", &first),
        ])
        .await?;
    let [_, _, _, rings, floors] = parts(found)?;
    Ok(Staged { rings: small(&rings)?, floors: small(&floors)? })
}

const STAGE: &str = "INSERT INTO staged (account, container, kind, n, kid, subs, sealed)
    SELECT $1, container, kind, n, kid, subs, sealed
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[])
        AS u (container, kind, n, kid, subs, sealed)
    ON CONFLICT (account, container, kind, n) DO UPDATE
        SET kid = excluded.kid, subs = excluded.subs, sealed = excluded.sealed";
const STAGE_FLOORS: &str = "INSERT INTO staged_floors (account, shelf, envelope)
    SELECT $1, shelf, envelope FROM unnest($2::bigint[], $3::bytea[]) AS u (shelf, envelope)
    ON CONFLICT (account, shelf) DO UPDATE SET envelope = excluded.envelope";

/// Whether what is staged is sealed under this key.
fn is_under(wrap: &[Row], kid: Kid) -> Work<bool> {
    wrap.first().map_or(Ok(false), |row| Ok(kid_at(row, 0)? == kid))
}

async fn staged_floors(tx: &mut Transaction<'_>, id: &AccountId) -> Work<Vec<(Shelf, Sealed)>> {
    let id = id.as_str();
    let sql = "SELECT shelf, envelope FROM staged_floors WHERE account = $1 ORDER BY shelf";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id])]).await?;
    let [_, there, floors] = parts(found)?;
    account(&there)?;
    all(&floors, |row| Ok((shelf_at(row, 0)?, sealed_at(row, 1)?)))
}

async fn put_in_force(tx: &mut Transaction<'_>, commit: &CommitRotation) -> Work<u32> {
    let id = commit.account.as_str();
    let first: [&(dyn ToSql + Sync); 1] = [&id];
    let found = tx
        .run(&[
            whose(&first),
            Ask(LOCK, &first),
            Ask(WRAP, &first),
            Ask(ALL_KIDS, &first),
            Ask(LACKING, &first),
            Ask(MANIFEST, &first),
            Ask(FLOORS, &first),
        ])
        .await?;
    let [_, there, wrap, rings, lacking, manifest, floors] = parts(found)?;
    let account = account(&there)?;
    let standing = account.standing;
    standing.in_rotation(commit.epoch, commit.now)?;
    let conflict = StoreError::Conflict { now: standing.rev };
    if !is_under(&wrap, commit.wrap)? {
        return Err(conflict.into());
    }
    let own = digest(&rings)?;
    check_commit((commit.expected, &commit.digest), (standing.rev, &own)).map_err(|_| conflict.clone())?;
    // Every entry has its successor, with the same keys; nothing else was staged.
    if count(&lacking)? > 0 {
        return Err(conflict.into());
    }
    own_and_box(&commit.append, "a rotation adds a key to the account's ring and to the mailbox's")?;
    let generation = standing.generation.saturating_add(1);
    let mut ring = kids_of(&rings, &RingName::Account, generation)?;
    let mut letters = kids_of(&rings, &RingName::Box, generation)?;
    ring.append(&commit.append[0].of, &commit.append[0].entry, standing.rev)?;
    letters.append(&commit.append[1].of, &commit.append[1].entry, standing.rev)?;
    if commit.list.floors.len() != 16 {
        return Err(StoreError::Malformed("a rotation writes all sixteen floors").into());
    }
    let plan = plan_list(&commit.list, &seen_list(ring, &manifest, &floors)?)?;
    sized(commit.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    let credentials =
        Credentials::new(&commit.account, &account, commit.login.as_ref(), &commit.credentials)?;
    let columns = ListColumns::new(id, &commit.list, &plan);
    let entries = Columns::new(commit.append.iter().map(|row| (&row.of, &row.entry)));
    let (born, session) = (i64::from(generation), commit.session.as_bytes().as_slice());
    let begin: [&(dyn ToSql + Sync); 2] = [&id, &born];
    let append = [&begin[..], &entries.args()].concat();
    let (list_floors, list_manifest, credentials) =
        (columns.floors(), columns.manifest(), credentials.args());
    let record = commit.record.as_bytes();
    let notes = Notes::new(&commit.account, &account, &[Changed::Account, Changed::List]);
    let (sessions, row, noted): ([&(dyn ToSql + Sync); 2], [&(dyn ToSql + Sync); 2], _) =
        ([&id, &session], [&id, &record], notes.args());
    let mut asks = vec![
        Ask(REPLACE, &first),
        Ask(THAW, &[]),
        Ask(APPEND, &append),
        Ask(PUT_FLOORS, &list_floors),
        Ask(PUT_MANIFEST, &list_manifest),
    ];
    asks.extend(credentials.asks());
    asks.extend([Ask(END_SESSIONS[0], &sessions), Ask(IN_FORCE, &row), Ask(NOTE, &noted)]);
    tx.finish(&asks).await.map_err(taken)?;
    Ok(standing.rev.saturating_add(1))
}

const REPLACE: &str = "UPDATE rings SET sealed = s.sealed FROM staged AS s
    WHERE rings.account = $1 AND s.account = rings.account AND s.container = rings.container AND s.kind = rings.kind
        AND s.n = rings.n";
const IN_FORCE: &str =
    "UPDATE accounts SET rev = rev + 1, generation = generation + 1, record = $2 WHERE account = $1";

async fn abandon(tx: &mut Transaction<'_>, id: &AccountId) -> Work<()> {
    let id = id.as_str();
    let found = tx.finish(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(THAW, &[])]).await?;
    let [_, there, _] = parts(found)?;
    account(&there).map(drop)
}
