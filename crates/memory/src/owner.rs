//! Whose memory it is.

use confidant_display::debug_without_content;
use confidant_seal::{TenantId, UserId};

/// One person in one tenant. Every key, row, blob and index belongs to exactly one owner.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant, which comes from the caller's token and never from a request.
    pub tenant: TenantId,
    /// The person.
    pub user: UserId,
}

impl Owner {
    /// One byte form for each owner: both parts, length before text.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [self.tenant.as_str(), self.user.as_str()] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

// Ids are personal data.
debug_without_content!(Owner(***));
