//! Accounts as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Refused, Shelf};
use confidant_seal::Tag;
use rusqlite::{Connection, ErrorCode, params};

use super::super::accounts::{
    AccountRow, AccountState, Accounts, ChangeAccount, Erased, NewAccount, OtherSessions, Pass,
    RestoreAccount,
};
use super::super::checks::sized;
use super::super::lists::{FloorPut, ListPut};
use super::super::plan::{Standing, own_and_box};
use super::super::rings::RingEntry;
use super::super::{Changed, CodeKind, Millis, Result, StoreError, limits};
use super::rows::{
    Account, account, all, millis_at, note, one, parsed_at, run, sealed_at, tag_at, u64_at, value,
};
use super::{SqliteChats, Work, codes, lists, restore, rings};

#[async_trait]
impl Accounts for SqliteChats {
    async fn register(&self, new: NewAccount) -> Result<()> {
        self.write_with(move |c| register(c, &new)).await
    }

    async fn by_login(&self, login: Tag) -> Result<Option<AccountId>> {
        let sql = "SELECT account FROM accounts WHERE login = ?1";
        self.read_with(move |c| Ok(one(c, sql, params![login.as_bytes()], id_at)?)).await
    }

    async fn by_credential(&self, credential: Tag) -> Result<Option<AccountId>> {
        let sql =
            "SELECT a.account FROM credentials AS c JOIN accounts AS a ON a.n = c.account WHERE c.tag = ?1";
        self.read_with(move |c| Ok(one(c, sql, params![credential.as_bytes()], id_at)?)).await
    }

    async fn account(&self, whose: &AccountId) -> Result<AccountRow> {
        let whose = whose.clone();
        let sql = "SELECT rev, generation, epoch, record, seq, frozen_until FROM accounts WHERE account = ?1";
        self.read_with(move |c| {
            let row = one(c, sql, params![whose.as_str()], |row| {
                let state = match row.get::<_, Option<i64>>(5)? {
                    Some(_) => AccountState::Rotating { until: millis_at(row, 5)? },
                    None => AccountState::Active,
                };
                Ok(AccountRow {
                    rev: row.get(0)?,
                    generation: row.get(1)?,
                    epoch: row.get(2)?,
                    record: sealed_at(row, 3)?,
                    seq: u64_at(row, 4)?,
                    state,
                })
            })?;
            row.ok_or(StoreError::NotFound.into())
        })
        .await
    }

    async fn change_account(&self, change: ChangeAccount) -> Result<u32> {
        self.write_with(move |c| {
            let found = account(c, &change.account)?;
            found.standing.not_frozen(change.now, found.standing.rev)?;
            if found.standing.rev != change.expected {
                return Err(StoreError::Conflict { now: found.standing.rev }.into());
            }
            sized(change.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
            put_credentials(c, found.n, change.login, &change.credentials)?;
            if let OtherSessions::End(kept) = change.sessions {
                end_other_sessions(c, &found, kept)?;
            }
            let sql = "UPDATE accounts SET rev = rev + 1, record = ?2 WHERE n = ?1 RETURNING rev";
            let rev = value(c, sql, params![found.n, change.record.as_bytes()])?;
            note(c, found.n, &Changed::Account)?;
            Ok(rev)
        })
        .await
    }

    async fn restore(&self, restore: RestoreAccount) -> Result<()> {
        self.write_with(move |c| restore::restore(c, &restore)).await
    }

    async fn mark_erasing(&self, whose: &AccountId) -> Result<()> {
        let whose = whose.clone();
        self.write_with(move |c| {
            run(c, "UPDATE accounts SET erasing = 1 WHERE n = ?1", params![account(c, &whose)?.n])?;
            Ok(())
        })
        .await
    }

    async fn erasing(&self) -> Result<Vec<AccountId>> {
        self.read_with(|c| {
            Ok(all(c, "SELECT account FROM accounts WHERE erasing = 1 ORDER BY n", [], id_at)?)
        })
        .await
    }

    async fn erase(&self, whose: &AccountId) -> Result<Erased> {
        let whose = whose.clone();
        self.write_with(move |c| erase(c, &whose)).await
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: usize) -> Result<Vec<AccountId>> {
        let after = after.map_or(String::new(), |account| account.as_str().to_owned());
        self.read_with(move |c| {
            let sql = "SELECT account FROM accounts WHERE account > ?1 ORDER BY account LIMIT ?2";
            Ok(all(c, sql, params![after, i64::try_from(limit).unwrap_or(i64::MAX)], id_at)?)
        })
        .await
    }

    async fn count_accounts(&self) -> Result<u64> {
        self.read_with(
            |c| Ok(one(c, "SELECT count(*) FROM accounts", [], |row| u64_at(row, 0))?.unwrap_or(0)),
        )
        .await
    }
}

fn id_at(row: &rusqlite::Row<'_>) -> rusqlite::Result<AccountId> {
    parsed_at(row, 0, AccountId::parse)
}

fn register(c: &Connection, new: &NewAccount) -> Work<()> {
    use_pass(c, new.pass, new.now)?;
    sized(new.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    let sql =
        "INSERT INTO accounts (account, login, rev, generation, epoch, record) VALUES (?1, ?2, 1, 1, 1, ?3)";
    let row = params![new.account.as_str(), new.login.as_bytes(), new.record.as_bytes()];
    taken(run(c, sql, row))?;
    let n = c.last_insert_rowid();
    let made = Account { n, standing: Standing::NEW };
    put_credentials(c, n, None, &new.credentials)?;
    own_and_box(&new.rings, "a new account has a key of its own and one of its mailbox")?;
    for RingEntry { of, entry } in &new.rings {
        let mut ring = rings::kids(c, &made, of)?;
        rings::append(c, &made, &mut ring, (of, entry), 0)?;
    }
    if new.floors.len() != 16 {
        return Err(StoreError::Malformed("there are sixteen floors").into());
    }
    let floors = Shelf::all().zip(&new.floors);
    let floors = floors.map(|(shelf, envelope)| FloorPut { shelf, expected: 0, envelope: envelope.clone() });
    lists::put_list(c, &made, &ListPut { floors: floors.collect(), manifest: new.manifest.clone() })?;
    note(c, n, &Changed::Account)?;
    Ok(())
}

fn use_pass(c: &Connection, pass: Pass, now: Millis) -> Work<()> {
    let used = match pass {
        Pass::Open => true,
        Pass::Invite(key) => codes::consume(c, CodeKind::Invite, key, now)?.is_some(),
        Pass::First(key) => {
            let others: bool = value(c, "SELECT EXISTS (SELECT 1 FROM accounts)", [])?;
            !others && codes::consume(c, CodeKind::First, key, now)?.is_some()
        }
    };
    if used { Ok(()) } else { Err(Refused::LoginRefused.into()) }
}

/// Replaces the account's credentials, and its login if there is a new one.
pub(super) fn put_credentials(c: &Connection, n: i64, login: Option<Tag>, credentials: &[Tag]) -> Work<()> {
    if credentials.len() > limits::CREDENTIALS {
        return Err(StoreError::TooMany("credentials").into());
    }
    if let Some(login) = login {
        forget_login(c, n)?;
        taken(run(c, "UPDATE accounts SET login = ?2 WHERE n = ?1", params![n, login.as_bytes()]))?;
    }
    run(c, "DELETE FROM credentials WHERE account = ?1", params![n])?;
    for tag in credentials {
        taken(run(c, "INSERT INTO credentials (tag, account) VALUES (?1, ?2)", params![tag.as_bytes(), n]))?;
    }
    Ok(())
}

/// A tag or id that somebody else has is a conflict.
pub(super) fn taken(done: rusqlite::Result<usize>) -> Work<()> {
    match done {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(StoreError::Conflict { now: 0 }.into())
        }
        done => Ok(done.map(drop)?),
    }
}

/// Begins a new epoch; only this session goes over into it.
pub(super) fn end_other_sessions(c: &Connection, account: &Account, kept: Digest) -> Work<u32> {
    run(c, "DELETE FROM sessions WHERE account = ?1 AND id <> ?2", params![account.n, kept.as_bytes()])?;
    let epoch =
        value(c, "UPDATE accounts SET epoch = epoch + 1 WHERE n = ?1 RETURNING epoch", params![account.n])?;
    // One of an older epoch was not valid before, and does not become so.
    let sql = "UPDATE sessions SET epoch = ?2 WHERE account = ?1 AND epoch = ?3";
    run(c, sql, params![account.n, epoch, account.standing.epoch])?;
    Ok(epoch)
}

/// Removes rows that have the account's login and not its number.
pub(super) fn forget_login(c: &Connection, n: i64) -> Work<()> {
    let sql = "SELECT login FROM accounts WHERE n = ?1";
    let login = one(c, sql, params![n], |row| tag_at(row, 0))?.ok_or(StoreError::NotFound)?;
    run(c, "DELETE FROM attempts WHERE login = ?1", params![login.as_bytes()])?;
    run(c, "DELETE FROM codes WHERE login = ?1", params![login.as_bytes()])?;
    Ok(())
}

fn erase(c: &Connection, whose: &AccountId) -> Work<Erased> {
    let n = account(c, whose)?.n;
    let count = |sql: &str| one(c, sql, params![n], |row| u64_at(row, 0)).map(Option::unwrap_or_default);
    let erased = Erased {
        chats: count("SELECT count(*) FROM chats WHERE account = ?1")?,
        items: count("SELECT coalesce(sum(count), 0) FROM chats WHERE account = ?1")?,
        devices: count("SELECT count(*) FROM devices WHERE account = ?1")?,
        sessions: count("SELECT count(*) FROM sessions WHERE account = ?1")?,
        letters: count("SELECT count(*) FROM letters WHERE account = ?1")?,
        snapshots: count("SELECT count(*) FROM snapshots WHERE account = ?1")?,
    };
    forget_login(c, n)?;
    run(c, "DELETE FROM accounts WHERE n = ?1", params![n])?;
    run(c, "INSERT INTO unscrubbed (id) VALUES (randomblob(16))", [])?;
    Ok(erased)
}
