//! Rows into types, and the account and chat that a row belongs to.
//!
//! A row that does not parse is damage, never a panic. [`account`] and [`chat`] are the only ways to a number that other
//! statements use: whoever has the number has named its owner.

use confidant_chat_format::{AccountId, ChatId, Digest, Refused};
use confidant_seal::{Kid, Sealed, Tag};
use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::super::checks::Link;
use super::super::feed::Changed;
use super::super::names::{change_key, change_of};
use super::super::plan::{ChatState, Standing};
use super::super::{Millis, StoreError};
use super::Work;

/// SQLite's integers are signed. Ours come near the sign only if somebody asks for the end of time.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn many(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn u64_at(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(i64::cast_unsigned)
}

pub(super) fn millis_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Millis> {
    u64_at(row, at).map(Millis)
}

pub(super) fn digest_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Digest> {
    row.get(at).map(Digest::from_bytes)
}

pub(super) fn tag_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Tag> {
    row.get(at).map(Tag::from_bytes)
}

pub(super) fn kid_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Kid> {
    row.get(at).map(Kid::from_bytes)
}

pub(super) fn sealed_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Sealed> {
    row.get(at).map(Sealed::from_bytes)
}

/// An id or a name.
pub(super) fn parsed_at<T>(
    row: &Row<'_>,
    at: usize,
    parse: fn(&str) -> Result<T, Refused>,
) -> rusqlite::Result<T> {
    let text = row.get_ref(at)?.as_str()?;
    // The cause has no content, but neither does it help: that the row is damaged is all there is to say.
    parse(text).map_err(|refused| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(refused)))
}

/// Everything that a statement finds.
pub(super) fn all<T, P: rusqlite::Params>(
    c: &Connection,
    sql: &str,
    params: P,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    c.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// The one row that a statement finds.
pub(super) fn one<T, P: rusqlite::Params>(
    c: &Connection,
    sql: &str,
    params: P,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    c.prepare_cached(sql)?.query_row(params, read).optional()
}

/// A single value.
pub(super) fn value<T: FromSql, P: rusqlite::Params>(
    c: &Connection,
    sql: &str,
    params: P,
) -> rusqlite::Result<T> {
    c.prepare_cached(sql)?.query_row(params, |row| row.get(0))
}

/// Runs a statement; how many rows it changed.
pub(super) fn run<P: rusqlite::Params>(c: &Connection, sql: &str, params: P) -> rusqlite::Result<usize> {
    c.prepare_cached(sql)?.execute(params)
}

/// An account's number, and what every write looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) n: i64,
    pub(super) standing: Standing,
}

/// Finds an account; else `not-found`.
pub(super) fn account(c: &Connection, account: &AccountId) -> Work<Account> {
    let sql = "SELECT n, rev, epoch, generation, frozen_until FROM accounts WHERE account = ?1";
    let found = one(c, sql, params![account.as_str()], |row| {
        let standing = Standing {
            rev: row.get(1)?,
            epoch: row.get(2)?,
            generation: row.get(3)?,
            frozen_until: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        };
        Ok(Account { n: row.get(0)?, standing })
    })?;
    found.ok_or(StoreError::NotFound.into())
}

/// A chat's number, and what every write looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chat {
    pub(super) n: i64,
    pub(super) state: ChatState,
}

/// A chat of this account, if there is one.
pub(super) fn find_chat(c: &Connection, account: i64, chat: &ChatId) -> rusqlite::Result<Option<Chat>> {
    let sql = "SELECT n, rev, draft_v, count, gone, last_seq, chain, hash FROM chats WHERE account = ?1 AND chat = ?2";
    one(c, sql, params![account, chat.as_str()], |row| {
        let state = ChatState {
            rev: row.get(1)?,
            draft_v: row.get(2)?,
            count: row.get(3)?,
            gone: row.get(4)?,
            last_seq: row.get(5)?,
            link: Link { chain: digest_at(row, 6)?, envelope: digest_at(row, 7)? },
        };
        Ok(Chat { n: row.get(0)?, state })
    })
}

/// A chat of this account; else `not-found`.
pub(super) fn chat(c: &Connection, account: i64, chat: &ChatId) -> Work<Chat> {
    find_chat(c, account, chat)?.ok_or(StoreError::NotFound.into())
}

/// Notes a change under the account's next number.
pub(super) fn note(c: &Connection, account: i64, what: &Changed) -> rusqlite::Result<u64> {
    let sql = "UPDATE accounts SET seq = seq + 1 WHERE n = ?1 RETURNING seq";
    let seq: i64 = value(c, sql, params![account])?;
    let (kind, name) = change_key(what);
    run(
        c,
        "INSERT INTO feed (account, seq, what, name) VALUES (?1, ?2, ?3, ?4)",
        params![account, seq, kind, name],
    )?;
    Ok(seq.cast_unsigned())
}

/// What [`note`] has written.
pub(super) fn changed_at(row: &Row<'_>, kind: usize, name: usize) -> rusqlite::Result<Changed> {
    change_of(row.get(kind)?, row.get_ref(name)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)
}
