//! Access tokens: their hashes, and what is sealed about them.

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};

use super::{PendingAudit, Result};

/// Access tokens.
#[async_trait]
pub trait Tokens: Send + Sync + std::fmt::Debug {
    /// Adds a token.
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()>;
    /// All tokens.
    async fn tokens(&self) -> Result<Vec<TokenRow>>;
    /// The token with this hash.
    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>>;
    /// Removes the token with this hash; says whether there was one, as a count.
    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64>;
}

/// A bearer token as stored: its hash and its sealed claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub id: String,
    pub hash: [u8; 32],
    /// Set when the token stands for one person. Nothing goes by it: the claims say whose it is.
    pub person: Option<Tag>,
    pub sealed: Sealed,
}
