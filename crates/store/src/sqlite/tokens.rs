//! The table `tokens`.

use async_trait::async_trait;
use confidant_seal::Tag;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::data::SqliteStore;
use super::records::{self, Known};
use super::sealed_at;
use crate::{PendingAudit, Result, TokenRow, Tokens};

#[async_trait]
impl Tokens for SqliteStore {
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        let add = move |c: &Connection, known: &mut Known| {
            let sql = "INSERT INTO tokens (id, hash, person_tag, sealed) VALUES (?1, ?2, ?3, ?4)";
            let person = row.person.map(|tag| *tag.as_bytes());
            c.prepare_cached(sql)?.execute(params![row.id, row.hash, person, row.sealed.as_bytes()])?;
            records::record(c, known, &audit).map(drop)
        };
        self.writer.write_with(add).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let all = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT id, hash, person_tag, sealed FROM tokens ORDER BY id")?;
            statement.query_map([], token)?.collect()
        };
        self.readers.read(all).await
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let one = move |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT id, hash, person_tag, sealed FROM tokens WHERE hash = ?1")?;
            statement.query_row([hash], token).optional()
        };
        self.readers.read(one).await
    }

    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64> {
        let remove = move |c: &Connection, known: &mut Known| {
            let gone = c.prepare_cached("DELETE FROM tokens WHERE hash = ?1")?.execute([hash])?;
            records::record(c, known, &audit)?;
            Ok(gone as u64)
        };
        self.writer.write_with(remove).await
    }
}

fn token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    Ok(TokenRow {
        id: row.get(0)?,
        hash: row.get(1)?,
        person: row.get::<_, Option<[u8; 16]>>(2)?.map(Tag::from_bytes),
        sealed: sealed_at(row, 3)?,
    })
}
