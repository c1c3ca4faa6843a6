//! Devices and web sessions: listed and revoked.
//!
//! A session is found by the hash of its id and shows the hash of a second secret; the store has neither itself. It is
//! valid until it expires, and only in the account's epoch: [`Sessions::session`] gives no other.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_display::debug_without_content;
use confidant_seal::Sealed;

use super::{Millis, Result};

/// Devices and web sessions.
#[async_trait]
pub trait Sessions: Send + Sync + std::fmt::Debug {
    /// Adds a device.
    async fn add_device(&self, account: &AccountId, device: NewDevice) -> Result<()>;
    /// The account's devices, by id.
    async fn devices(&self, account: &AccountId) -> Result<Vec<Device>>;
    /// Gives a device another label. Returns the number of the change.
    async fn label_device(&self, account: &AccountId, device: &DeviceId, label: Sealed) -> Result<u64>;
    /// Removes a device and ends its sessions.
    async fn revoke_device(&self, account: &AccountId, device: &DeviceId) -> Result<()>;
    /// Notes how far a device has read the feed. It never goes back.
    async fn set_cursor(&self, account: &AccountId, device: &DeviceId, seq: u64) -> Result<()>;
    /// Begins a session of a device, in the account's current epoch, which must be the one given: else `conflict`.
    async fn add_session(&self, session: Session) -> Result<()>;
    /// The session with this hash of its id, if it is valid now. Notes the day on which it and its device were seen.
    async fn session(&self, id: Digest, now: Millis) -> Result<Option<Session>>;
    /// The account's sessions that are valid now, the newest first.
    async fn sessions(&self, account: &AccountId, now: Millis) -> Result<Vec<Session>>;
    /// Ends a session.
    async fn end_session(&self, account: &AccountId, id: Digest) -> Result<()>;
}

/// A new device.
#[derive(Clone, Debug)]
pub struct NewDevice {
    /// Its id.
    pub device: DeviceId,
    /// Its label, sealed by the server.
    pub label: Sealed,
    /// When.
    pub now: Millis,
}

/// A device as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its id.
    pub device: DeviceId,
    /// Its label, sealed by the server.
    pub label: Sealed,
    /// When it was added.
    pub created_at: Millis,
    /// The day on which it was last seen ([`Millis::day`]).
    pub seen_day: u32,
    /// How far it has read the feed.
    pub cursor: u64,
}

/// A web session.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// The hash of its id.
    pub id: Digest,
    /// The hash of the secret that a request shows beside it.
    pub secret: Digest,
    /// Whose.
    pub account: AccountId,
    /// On which device.
    pub device: DeviceId,
    /// The account's epoch when it began.
    pub epoch: u32,
    /// When it began.
    pub created_at: Millis,
    /// When it ends.
    pub expires_at: Millis,
    /// The day on which it was last seen.
    pub seen_day: u32,
}

debug_without_content!(Session { epoch, created_at, expires_at, seen_day });
