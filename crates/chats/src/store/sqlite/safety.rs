//! Safety rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use confidant_seal::Sealed;
use rusqlite::params;

use super::super::Result;
use super::super::safety::{PutSafety, Safety, check_safety, replaces};
use super::SqliteChats;
use super::rows::{account, chat, one, run, sealed_at};

#[async_trait]
impl Safety for SqliteChats {
    async fn put_safety(&self, put: PutSafety) -> Result<()> {
        let rev = check_safety(&put)?;
        self.write_with(move |c| {
            let n = account(c, &put.account)?.n;
            chat(c, n, &put.chat)?;
            let id = put.chat.as_str();
            let sql = "SELECT rev FROM safety WHERE account = ?1 AND chat = ?2";
            let there = one(c, sql, params![n, id], |row| row.get(0))?;
            replaces(put.expected, there.unwrap_or(0))?;
            let sql = "INSERT OR REPLACE INTO safety (account, chat, rev, sealed) VALUES (?1, ?2, ?3, ?4)";
            run(c, sql, params![n, id, rev, put.sealed.as_bytes()])?;
            Ok(())
        })
        .await
    }

    async fn safety(&self, whose: &AccountId, id: &ChatId) -> Result<Option<Sealed>> {
        let (whose, id) = (whose.clone(), id.clone());
        self.read_with(move |c| {
            let sql = "SELECT sealed FROM safety WHERE account = ?1 AND chat = ?2";
            Ok(one(c, sql, params![account(c, &whose)?.n, id.as_str()], |row| sealed_at(row, 0))?)
        })
        .await
    }
}
