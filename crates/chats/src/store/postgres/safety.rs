//! Safety rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;

use super::super::Result;
use super::super::safety::{PutSafety, Safety, check_safety, replaces};
use super::rows::{ACCOUNT, LOCK, account, parts, sealed_at, u32_at, whose};
use super::write::{CHAT, there};
use super::{PostgresChats, Work, transact};

#[async_trait]
impl Safety for PostgresChats {
    async fn put_safety(&self, put: PutSafety) -> Result<()> {
        let rev = check_safety(&put)?;
        transact!(self, Writing, |tx| replace(tx, &put, rev))
    }

    async fn safety(&self, id: &AccountId, chat: &ChatId) -> Result<Option<Sealed>> {
        transact!(self, Reading, |tx| read(tx, id, chat))
    }
}

async fn replace(tx: &mut Transaction<'_>, put: &PutSafety, rev: u32) -> Work<()> {
    let (id, chat) = (put.account.as_str(), put.chat.as_str());
    let sql = "SELECT rev FROM safety WHERE account = $1 AND chat = $2";
    let found = tx
        .run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(CHAT, &[&id, &chat]), Ask(sql, &[&id, &chat])])
        .await?;
    let [_, locked, chats, rows] = parts(found)?;
    account(&locked)?;
    there(&chats)?;
    replaces(put.expected, rows.first().map_or(Ok(0), |row| u32_at(row, 0))?)?;
    let (rev, sealed) = (i64::from(rev), put.sealed.as_bytes());
    let sql = "INSERT INTO safety (account, chat, rev, sealed) VALUES ($1, $2, $3, $4)
               ON CONFLICT (account, chat) DO UPDATE SET rev = excluded.rev, sealed = excluded.sealed";
    tx.finish(&[Ask(sql, &[&id, &chat, &rev, &sealed])]).await?;
    Ok(())
}

async fn read(tx: &mut Transaction<'_>, id: &AccountId, chat: &ChatId) -> Work<Option<Sealed>> {
    let (id, chat) = (id.as_str(), chat.as_str());
    let sql = "SELECT sealed FROM safety WHERE account = $1 AND chat = $2";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &chat])]).await?;
    let [_, whose, rows] = parts(found)?;
    account(&whose)?;
    rows.first().map(|row| sealed_at(row, 0)).transpose()
}
