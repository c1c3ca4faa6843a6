//! Accounts as rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Refused, Shelf};
use confidant_postgres::{Ask, Failed, Transaction};
use confidant_seal::Tag;
use tokio_postgres::types::ToSql;

use super::super::accounts::{
    AccountRow, AccountState, Accounts, ChangeAccount, Erased, NewAccount, OtherSessions, Pass,
    RestoreAccount,
};
use super::super::checks::{Link, sized};
use super::super::lists::{FloorPut, ListPut};
use super::super::plan::{SeenList, Standing, kids, own_and_box, plan_list};
use super::super::{Changed, CodeKind, Result, StoreError, limits};
use super::codes::{CONSUME, code_at};
use super::lists::{ListColumns, PUT_FLOORS, PUT_MANIFEST};
use super::rings::{APPEND, Columns};
use super::rows::{
    Account, LOCK, NOTE, Notes, SHOWN, account, all, count, get, millis_at, parsed_at, parts, sealed_at,
    u32_at, u64_at, whose,
};
use super::{Halt, PostgresChats, Work, restore, transact};

pub(super) const CREDENTIALS: &str = "INSERT INTO credentials (tag, account) SELECT unnest($2::bytea[]), $1";

#[async_trait]
impl Accounts for PostgresChats {
    async fn register(&self, new: NewAccount) -> Result<()> {
        transact!(self, Writing, |tx| register(tx, &new))
    }

    async fn by_login(&self, login: Tag) -> Result<Option<AccountId>> {
        let sql = "SELECT account FROM accounts WHERE login = $1";
        transact!(self, Reading, |tx| by_tag(tx, sql, login))
    }

    async fn by_credential(&self, credential: Tag) -> Result<Option<AccountId>> {
        let sql = "SELECT account FROM credentials WHERE tag = $1";
        transact!(self, Reading, |tx| by_tag(tx, sql, credential))
    }

    async fn account(&self, id: &AccountId) -> Result<AccountRow> {
        transact!(self, Reading, |tx| read(tx, id))
    }

    async fn change_account(&self, change: ChangeAccount) -> Result<u32> {
        transact!(self, Writing, |tx| change_account(tx, &change))
    }

    async fn restore(&self, restore: RestoreAccount) -> Result<()> {
        transact!(self, Writing, |tx| restore::restore(tx, &restore))
    }

    async fn mark_erasing(&self, id: &AccountId) -> Result<()> {
        transact!(self, Writing, |tx| mark(tx, id))
    }

    async fn erasing(&self) -> Result<Vec<AccountId>> {
        transact!(self, Reading, |tx| erasing(tx))
    }

    async fn erase(&self, id: &AccountId) -> Result<Erased> {
        transact!(self, Writing, |tx| erase(tx, id))
    }

    async fn accounts(&self, after: Option<&AccountId>, limit: usize) -> Result<Vec<AccountId>> {
        transact!(self, Reading, |tx| page(tx, after, limit))
    }

    async fn count_accounts(&self) -> Result<u64> {
        transact!(self, Reading, |tx| count_all(tx))
    }
}

async fn by_tag(tx: &mut Transaction<'_>, sql: &'static str, tag: Tag) -> Work<Option<AccountId>> {
    let (shown, tag) = (hex::encode(tag.as_bytes()), tag.as_bytes().as_slice());
    let [_, found] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(sql, &[&tag])]).await?)?;
    found.first().map(|row| parsed_at(row, 0, AccountId::parse)).transpose()
}

async fn read(tx: &mut Transaction<'_>, id: &AccountId) -> Work<AccountRow> {
    let id = id.as_str();
    let sql = "SELECT rev, generation, epoch, record, seq, frozen_until FROM accounts WHERE account = $1";
    let [_, found] = parts(tx.finish(&[whose(&[&id]), Ask(sql, &[&id])]).await?)?;
    let row = found.first().ok_or(StoreError::NotFound)?;
    let state = match get::<Option<i64>>(row, 5)? {
        Some(_) => AccountState::Rotating { until: millis_at(row, 5)? },
        None => AccountState::Active,
    };
    Ok(AccountRow {
        rev: u32_at(row, 0)?,
        generation: u32_at(row, 1)?,
        epoch: u32_at(row, 2)?,
        record: sealed_at(row, 3)?,
        seq: u64_at(row, 4)?,
        state,
    })
}

async fn register(tx: &mut Transaction<'_>, new: &NewAccount) -> Work<()> {
    use_pass(tx, new).await?;
    sized(new.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    few(&new.credentials)?;
    own_and_box(&new.rings, "a new account has a key of its own and one of its mailbox")?;
    let [mut ring, mut letters] = [kids(Vec::new(), 1)?, kids(Vec::new(), 1)?];
    ring.append(&new.rings[0].of, &new.rings[0].entry, 0)?;
    letters.append(&new.rings[1].of, &new.rings[1].entry, 0)?;
    if new.floors.len() != 16 {
        return Err(StoreError::Malformed("there are sixteen floors").into());
    }
    let floors = Shelf::all().zip(&new.floors);
    let floors = floors.map(|(shelf, envelope)| FloorPut { shelf, expected: 0, envelope: envelope.clone() });
    let list = ListPut { floors: floors.collect(), manifest: new.manifest.clone() };
    let seen = SeenList { ring, manifest: (0, Link::NONE), floors: BTreeMap::new() };
    let plan = plan_list(&list, &seen)?;
    let (id, login, record) = (new.account.as_str(), new.login.as_bytes().as_slice(), new.record.as_bytes());
    let columns = ListColumns::new(id, &list, &plan);
    let entries = Columns::new(new.rings.iter().map(|row| (&row.of, &row.entry)));
    let begin: [&(dyn ToSql + Sync); 2] = [&id, &1_i64];
    let append = [&begin[..], &entries.args()].concat();
    let made = Account { standing: Standing::NEW, seq: 0, login: new.login };
    let notes = Notes::new(&new.account, &made, &[Changed::Account]);
    let tags = tags(&new.credentials);
    let sql =
        "INSERT INTO accounts (account, login, rev, generation, epoch, record) VALUES ($1, $2, 1, 1, 1, $3)";
    tx.finish(&[
        whose(&[&id]),
        Ask(sql, &[&id, &login, &record]),
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

async fn use_pass(tx: &mut Transaction<'_>, new: &NewAccount) -> Work<()> {
    let (kind, key) = match new.pass {
        Pass::Open => return Ok(()),
        Pass::Invite(key) => (CodeKind::Invite, key),
        Pass::First(key) => (CodeKind::First, key),
    };
    let (shown, number, bytes) = (hex::encode(key.as_bytes()), kind as i64, key.as_bytes().as_slice());
    let found = tx
        .run(&[
            Ask(SHOWN, &[&shown]),
            Ask(CONSUME, &[&number, &bytes]),
            // After the code, for which others wait: whoever comes second sees the account of the first.
            Ask("SELECT count_accounts()", &[]),
        ])
        .await?;
    let [_, codes, accounts] = parts(found)?;
    let code = codes.first().map(|row| code_at(row, kind)).transpose()?;
    let is_first = kind == CodeKind::Invite || count(&accounts)? == 0;
    if is_first && code.is_some_and(|code| new.now < code.expires_at) {
        Ok(())
    } else {
        Err(Refused::LoginRefused.into())
    }
}

/// A tag or id that somebody else has is a conflict.
pub(super) fn taken(failed: Failed) -> Halt {
    if failed.is_taken() { StoreError::Conflict { now: 0 }.into() } else { failed.into() }
}

pub(super) fn few(credentials: &[Tag]) -> Work<()> {
    if credentials.len() > limits::CREDENTIALS {
        Err(StoreError::TooMany("credentials").into())
    } else {
        Ok(())
    }
}

pub(super) fn tags(credentials: &[Tag]) -> Vec<&[u8]> {
    credentials.iter().map(|tag| tag.as_bytes().as_slice()).collect()
}

/// What replaces the account's credentials, and its login if there is a new one.
pub(super) struct Credentials<'a> {
    account: &'a str,
    tags: Vec<&'a [u8]>,
    old: (String, &'a [u8]),
    new: Option<&'a [u8]>,
}

impl<'a> Credentials<'a> {
    pub(super) fn new(
        id: &'a AccountId,
        account: &'a Account,
        login: Option<&'a Tag>,
        all: &'a [Tag],
    ) -> Work<Self> {
        few(all)?;
        let old = account.login.as_bytes();
        Ok(Self {
            account: id.as_str(),
            tags: tags(all),
            old: (hex::encode(old), old),
            new: login.map(|login| login.as_bytes().as_slice()),
        })
    }

    /// What the statements are told.
    pub(super) fn args(&self) -> CredentialArgs<'_> {
        CredentialArgs {
            shown: [&self.old.0],
            old: [&self.old.1, &self.new],
            login: [&self.account, &self.new],
            account: [&self.account],
            all: [&self.account, &self.tags],
        }
    }
}

/// Arguments of the statements that replace credentials.
pub(super) struct CredentialArgs<'a> {
    shown: [&'a (dyn ToSql + Sync); 1],
    old: [&'a (dyn ToSql + Sync); 2],
    login: [&'a (dyn ToSql + Sync); 2],
    account: [&'a (dyn ToSql + Sync); 1],
    all: [&'a (dyn ToSql + Sync); 2],
}

impl CredentialArgs<'_> {
    /// With a new login, what is about the old one is forgotten.
    pub(super) fn asks(&self) -> [Ask<'_>; 6] {
        [
            Ask(SHOWN, &self.shown),
            Ask("DELETE FROM attempts WHERE login = $1 AND $2::bytea IS NOT NULL", &self.old),
            Ask("DELETE FROM codes WHERE login = $1 AND $2::bytea IS NOT NULL", &self.old),
            Ask("UPDATE accounts SET login = $2 WHERE account = $1 AND $2::bytea IS NOT NULL", &self.login),
            Ask("DELETE FROM credentials WHERE account = $1", &self.account),
            Ask(CREDENTIALS, &self.all),
        ]
    }
}

/// Ends all sessions but one, and the epoch with them. One of an older epoch was not valid before, and does not become so.
pub(super) const END_SESSIONS: [&str; 3] = [
    "DELETE FROM sessions WHERE account = $1 AND id <> $2",
    "UPDATE sessions SET epoch = epoch + 1
     WHERE account = $1 AND epoch = (SELECT epoch FROM accounts WHERE account = $1)",
    "UPDATE accounts SET epoch = epoch + 1 WHERE account = $1",
];

async fn change_account(tx: &mut Transaction<'_>, change: &ChangeAccount) -> Work<u32> {
    let id = change.account.as_str();
    let [_, there] = parts(tx.run(&[whose(&[&id]), Ask(LOCK, &[&id])]).await?)?;
    let account = account(&there)?;
    let standing = account.standing;
    standing.not_frozen(change.now, standing.rev)?;
    if standing.rev != change.expected {
        return Err(StoreError::Conflict { now: standing.rev }.into());
    }
    sized(change.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    let credentials =
        Credentials::new(&change.account, &account, change.login.as_ref(), &change.credentials)?;
    let args = credentials.args();
    let mut asks = args.asks().to_vec();
    let kept = match change.sessions {
        OtherSessions::End(kept) => Some(kept),
        OtherSessions::Stay => None,
    };
    let kept_bytes = kept.as_ref().map(Digest::as_bytes).map(<[u8; 32]>::as_slice);
    let sessions: [&(dyn ToSql + Sync); 2] = [&id, &kept_bytes];
    if kept.is_some() {
        asks.extend([
            Ask(END_SESSIONS[0], &sessions),
            Ask(END_SESSIONS[1], &sessions[..1]),
            Ask(END_SESSIONS[2], &sessions[..1]),
        ]);
    }
    let record = change.record.as_bytes();
    let row: [&(dyn ToSql + Sync); 2] = [&id, &record];
    asks.push(Ask("UPDATE accounts SET rev = rev + 1, record = $2 WHERE account = $1", &row));
    let notes = Notes::new(&change.account, &account, &[Changed::Account]);
    let noted = notes.args();
    asks.push(Ask(NOTE, &noted));
    tx.finish(&asks).await.map_err(taken)?;
    Ok(standing.rev.saturating_add(1))
}

async fn mark(tx: &mut Transaction<'_>, id: &AccountId) -> Work<()> {
    let id = id.as_str();
    let sql = "UPDATE accounts SET erasing = true WHERE account = $1 RETURNING 1";
    let [_, marked] = parts(tx.finish(&[whose(&[&id]), Ask(sql, &[&id])]).await?)?;
    if marked.is_empty() { Err(StoreError::NotFound.into()) } else { Ok(()) }
}

async fn erasing(tx: &mut Transaction<'_>) -> Work<Vec<AccountId>> {
    let [found] = parts(tx.finish(&[Ask("SELECT unnest(accounts_being_erased())", &[])]).await?)?;
    all(&found, |row| parsed_at(row, 0, AccountId::parse))
}

async fn page(tx: &mut Transaction<'_>, after: Option<&AccountId>, limit: usize) -> Work<Vec<AccountId>> {
    let (after, limit) = (after.map_or("", AccountId::as_str), i64::try_from(limit).unwrap_or(i64::MAX));
    let [found] =
        parts(tx.finish(&[Ask("SELECT unnest(accounts_after($1, $2))", &[&after, &limit])]).await?)?;
    all(&found, |row| parsed_at(row, 0, AccountId::parse))
}

async fn count_all(tx: &mut Transaction<'_>) -> Work<u64> {
    let [found] = parts(tx.finish(&[Ask("SELECT count_accounts()", &[])]).await?)?;
    count(&found)
}

async fn erase(tx: &mut Transaction<'_>, id: &AccountId) -> Work<Erased> {
    let id = id.as_str();
    let [_, there] = parts(tx.run(&[whose(&[&id]), Ask(LOCK, &[&id])]).await?)?;
    let account = account(&there)?;
    let (shown, login) = (hex::encode(account.login.as_bytes()), account.login.as_bytes().as_slice());
    let counts = "SELECT (SELECT count(*) FROM chats WHERE account = $1),
        (SELECT coalesce(sum(count), 0)::bigint FROM chats WHERE account = $1),
        (SELECT count(*) FROM devices WHERE account = $1), (SELECT count(*) FROM sessions WHERE account = $1),
        (SELECT count(*) FROM letters WHERE account = $1), (SELECT count(*) FROM snapshots WHERE account = $1)";
    let found = tx
        .finish(&[
            Ask(counts, &[&id]),
            Ask(SHOWN, &[&shown]),
            Ask("DELETE FROM attempts WHERE login = $1", &[&login]),
            Ask("DELETE FROM codes WHERE login = $1", &[&login]),
            Ask("DELETE FROM accounts WHERE account = $1", &[&id]),
            Ask("INSERT INTO unscrubbed (id) VALUES (uuid_send(gen_random_uuid()))", &[]),
        ])
        .await?;
    let row = found.first().and_then(|rows| rows.first()).ok_or_else(super::rows::damaged)?;
    Ok(Erased {
        chats: u64_at(row, 0)?,
        items: u64_at(row, 1)?,
        devices: u64_at(row, 2)?,
        sessions: u64_at(row, 3)?,
        letters: u64_at(row, 4)?,
        snapshots: u64_at(row, 5)?,
    })
}
