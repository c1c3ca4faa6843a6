//! What is derived from people's conversations and kept outside the log, such as memory cards.
//!
//! The engine does not know what it is. It knows that a person's rights cover it: whoever keeps such things hands the
//! engine a [`Derived`], and an export or an erasure of the person then cannot leave it out.

use async_trait::async_trait;
use confidant_seal::{Scope, TenantId, UserId};
use serde_json::Value;

use crate::error::Error;

/// Things of people that live outside the log.
#[async_trait]
pub trait Derived: Send + Sync + std::fmt::Debug {
    /// What they are called in exports and receipts, in the plural.
    fn name(&self) -> &'static str;
    /// How many there are of a person.
    async fn count(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error>;
    /// All of a person's, opened.
    async fn export(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<Value>, Error>;
    /// Ends all of a person's, keys included; says how many there were.
    async fn erase(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error>;
    /// How much is of one session only, and would end with it.
    async fn count_session(&self, _scope: &Scope) -> Result<u64, Error> {
        Ok(0)
    }
    /// Ends what is of one session only; says how much there was. Most is of people and stays.
    async fn erase_session(&self, _scope: &Scope) -> Result<u64, Error> {
        Ok(0)
    }
}
