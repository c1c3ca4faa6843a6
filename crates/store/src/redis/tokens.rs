//! Access tokens: one hash, by the hash of the token.

use std::collections::HashMap;

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};

use super::data::RedisStore;
use super::link::For;
use crate::{PendingAudit, Result, TokenRow, Tokens};

#[async_trait]
impl Tokens for RedisStore {
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        self.lanes.record(&audit).await?;
        let mut cmd = redis::cmd("HSET");
        cmd.arg(self.space.tokens()).arg(&row.hash[..]).arg(write_token(&row));
        self.link.run(For::Writing, cmd).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(self.space.tokens());
        let rows: HashMap<Vec<u8>, Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        let mut tokens: Vec<TokenRow> = rows.iter().filter_map(|(hash, row)| read_token(hash, row)).collect();
        tokens.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(tokens)
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(self.space.tokens()).arg(&hash[..]);
        let row: Option<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        Ok(row.and_then(|row| read_token(&hash, &row)))
    }

    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64> {
        self.lanes.record(&audit).await?;
        let (mut there, mut cmd) = (redis::cmd("HEXISTS"), redis::cmd("HDEL"));
        there.arg(self.space.tokens()).arg(&hash[..]);
        cmd.arg(self.space.tokens()).arg(&hash[..]);
        let there: bool = self.link.run(For::Reading, there).await?;
        // Not what the server says it removed: if its first reply was lost, that is none.
        self.link.run::<()>(For::Writing, cmd).await?;
        Ok(u64::from(there))
    }
}

/// A token's row: whether it is a person's, the person, the length of the id, the id, the sealed claims.
fn write_token(row: &TokenRow) -> Vec<u8> {
    let mut bytes = vec![u8::from(row.person.is_some())];
    bytes.extend_from_slice(row.person.map_or([0; 16], |person| *person.as_bytes()).as_slice());
    bytes.push(u8::try_from(row.id.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(row.id.as_bytes());
    bytes.extend_from_slice(row.sealed.as_bytes());
    bytes
}

fn read_token(hash: &[u8], bytes: &[u8]) -> Option<TokenRow> {
    let (of_person, rest) = bytes.split_first()?;
    let (person, rest) = rest.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first()?;
    let (id, sealed) = rest.split_at_checked(usize::from(*length))?;
    Some(TokenRow {
        id: String::from_utf8(id.to_vec()).ok()?,
        hash: hash.try_into().ok()?,
        person: (*of_person == 1).then(|| Tag::from_bytes(*person)),
        sealed: Sealed::from_bytes(sealed.to_vec()),
    })
}
