//! Access tokens.

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::lanes::{get, odd};
use super::pool::For;
use crate::{PendingAudit, Result, TokenRow, Tokens};

#[async_trait]
impl Tokens for PostgresStore {
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        self.lanes.record(&audit).await?;
        let sql = "INSERT INTO tokens (id, hash, person_tag, sealed) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (id) DO UPDATE SET hash = excluded.hash RETURNING 1";
        let (hash, person) = (row.hash.to_vec(), row.person.map(|tag| tag.as_bytes().to_vec()));
        let args: [&(dyn ToSql + Sync); 4] = [&row.id, &hash, &person, &row.sealed.as_bytes()];
        self.pool.query(For::Writing, sql, &args).await.map(drop)
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let sql = "SELECT id, hash, person_tag, sealed FROM tokens ORDER BY id";
        self.pool.query(For::Reading, sql, &[]).await?.iter().map(token).collect()
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let sql = "SELECT id, hash, person_tag, sealed FROM tokens WHERE hash = $1";
        let rows = self.pool.query(For::Reading, sql, &[&hash.to_vec()]).await?;
        rows.first().map(token).transpose()
    }

    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64> {
        self.lanes.record(&audit).await?;
        let sql = "DELETE FROM tokens WHERE hash = $1 RETURNING 1";
        Ok(self.pool.query(For::Writing, sql, &[&hash.to_vec()]).await?.len() as u64)
    }
}

fn token(row: &Row) -> Result<TokenRow> {
    let (hash, person): (Vec<u8>, Option<Vec<u8>>) = (get(row, 1)?, get(row, 2)?);
    Ok(TokenRow {
        id: get(row, 0)?,
        hash: hash.try_into().map_err(|_| odd())?,
        person: person.and_then(|tag| tag.try_into().ok()).map(Tag::from_bytes),
        sealed: Sealed::from_bytes(get(row, 3)?),
    })
}
