//! Rows into types, and the account that a transaction works for.
//!
//! A row that does not parse is damage, never a panic. Numbers are `bigint` everywhere: the driver knows no unsigned ones.

use confidant_chat_format::{AccountId, Digest, Refused};
use confidant_postgres::{Args, Ask};
use confidant_seal::{Kid, Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::super::feed::Changed;
use super::super::names::change_key;
use super::super::plan::Standing;
use super::super::{Millis, StoreError};
use super::{Halt, NAME, Work};

/// For whom this transaction works.
pub(super) const WHOSE: &str = "SELECT set_config('confidant.account', $1, true)";
/// What the caller shows, in hex, before the account is known.
pub(super) const SHOWN: &str = "SELECT set_config('confidant.shown', $1, true)";
/// An account, for reading.
pub(super) const ACCOUNT: &str =
    "SELECT rev, epoch, generation, frozen_until, seq, login FROM accounts WHERE account = $1";
/// An account, and nobody else writes to it until this transaction ends.
pub(super) const LOCK: &str = "SELECT rev, epoch, generation, frozen_until, seq, login FROM accounts WHERE account = $1 FOR NO KEY UPDATE";
/// Notes changes under the account's next numbers.
pub(super) const NOTE: &str = "WITH noted AS (
    INSERT INTO feed (account, seq, what, name)
    SELECT $1, $2 + place, what, name FROM unnest($3::bigint[], $4::text[]) WITH ORDINALITY AS u (what, name, place)
) UPDATE accounts SET seq = $2::bigint + cardinality($3) WHERE account = $1";

pub(super) fn whose<'a>(args: Args<'a>) -> Ask<'a> {
    Ask(WHOSE, args)
}

/// Postgres's integers are signed. Ours come near the sign only if somebody asks for the end of time.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn many(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn damaged() -> Halt {
    StoreError::Corrupt(NAME).into()
}

/// The rows of each statement of a batch.
pub(super) fn parts<const N: usize>(rows: Vec<Vec<Row>>) -> Work<[Vec<Row>; N]> {
    rows.try_into().map_err(|_| damaged())
}

/// A column.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Work<T> {
    row.try_get(at).map_err(|_| damaged())
}

pub(super) fn u32_at(row: &Row, at: usize) -> Work<u32> {
    u32::try_from(get::<i64>(row, at)?).map_err(|_| damaged())
}

pub(super) fn u64_at(row: &Row, at: usize) -> Work<u64> {
    get::<i64>(row, at).map(i64::cast_unsigned)
}

pub(super) fn millis_at(row: &Row, at: usize) -> Work<Millis> {
    u64_at(row, at).map(Millis)
}

fn array_at<const N: usize>(row: &Row, at: usize) -> Work<[u8; N]> {
    get::<&[u8]>(row, at)?.try_into().map_err(|_| damaged())
}

pub(super) fn digest_at(row: &Row, at: usize) -> Work<Digest> {
    array_at(row, at).map(Digest::from_bytes)
}

pub(super) fn tag_at(row: &Row, at: usize) -> Work<Tag> {
    array_at(row, at).map(Tag::from_bytes)
}

pub(super) fn kid_at(row: &Row, at: usize) -> Work<Kid> {
    array_at(row, at).map(Kid::from_bytes)
}

pub(super) fn sealed_at(row: &Row, at: usize) -> Work<Sealed> {
    get::<Vec<u8>>(row, at).map(Sealed::from_bytes)
}

/// An id or a name.
pub(super) fn parsed_at<T>(row: &Row, at: usize, parse: fn(&str) -> Result<T, Refused>) -> Work<T> {
    // That the row is damaged is all there is to say.
    parse(get(row, at)?).map_err(|_| damaged())
}

/// Everything that a statement found.
pub(super) fn all<T>(rows: &[Row], read: impl FnMut(&Row) -> Work<T>) -> Work<Vec<T>> {
    rows.iter().map(read).collect()
}

/// A single number, such as a count.
pub(super) fn count(rows: &[Row]) -> Work<u64> {
    rows.first().map_or(Ok(0), |row| u64_at(row, 0))
}

/// The same, of what is never many.
pub(super) fn small(rows: &[Row]) -> Work<u32> {
    u32::try_from(count(rows)?).map_err(|_| damaged())
}

/// An account as a write finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) standing: Standing,
    pub(super) seq: i64,
    pub(super) login: Tag,
}

/// What [`ACCOUNT`] or [`LOCK`] found; else `not-found`.
pub(super) fn account(rows: &[Row]) -> Work<Account> {
    let row = rows.first().ok_or(StoreError::NotFound)?;
    let standing = Standing {
        rev: u32_at(row, 0)?,
        epoch: u32_at(row, 1)?,
        generation: u32_at(row, 2)?,
        frozen_until: get::<Option<i64>>(row, 3)?.map(i64::cast_unsigned),
    };
    Ok(Account { standing, seq: get(row, 4)?, login: tag_at(row, 5)? })
}

/// Changes of an account that is locked, for [`NOTE`].
#[derive(Debug)]
pub(super) struct Notes {
    account: String,
    before: i64,
    kinds: Vec<i64>,
    names: Vec<String>,
}

impl Notes {
    pub(super) fn new(whose: &AccountId, account: &Account, changes: &[Changed]) -> Self {
        let (kinds, names) = changes.iter().map(change_key).unzip();
        Self { account: whose.to_string(), before: account.seq, kinds, names }
    }

    pub(super) fn args(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 4] {
        [&self.account, &self.before, &self.kinds, &self.names]
    }

    /// The number of the last one.
    pub(super) fn newest(&self) -> u64 {
        self.before.saturating_add(many(self.kinds.len())).cast_unsigned()
    }
}
