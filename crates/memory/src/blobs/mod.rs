//! Where sealed artifacts are kept: a local folder, an object store, or Cascade.
//!
//! A back end sees ciphertext under a name that says nothing. It may be slow, lie, or be gone: whoever reads checks the
//! hash in the [`Pointer`] and opens the seal, and whoever writes has it in an outbox first.
//!
//! | Back end | Feature | Forgets | Locator |
//! |---|---|---|---|
//! | [`local`] | none | yes | empty |
//! | [`object`]: S3-compatible, Azure, Google Cloud | `cloud` | yes | empty |
//! | [`cascade`] | `cascade` | never | action id and its signatures |
//!
//! Errors have one meaning on all of them: [`Error::NotFound`] is "the store answers and has no such blob",
//! [`Error::Unavailable`] is anything that may be put right outside (down, slow, refused, full, no such bucket), and
//! [`Error::Tampered`] is bytes that cannot be ours.

pub mod cascade;
#[cfg(test)]
mod conformance;
#[cfg(any(feature = "cascade", feature = "cloud"))]
mod http;
pub mod local;
pub mod object;
#[cfg(test)]
#[cfg(any(feature = "cascade", feature = "cloud"))]
mod stub;

use async_trait::async_trait;

use crate::{Error, Result};

/// `cascade://` and the SHA-256 of the ciphertext, in hex: the name of an artifact.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pointer([u8; 32]);

impl Pointer {
    /// The pointer to these sealed bytes.
    #[must_use]
    pub fn of(ciphertext: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, ciphertext);
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }

    /// Reads `cascade://` and 64 hex digits; nothing else.
    pub fn parse(text: &str) -> Result<Self> {
        let hex = text.strip_prefix("cascade://").filter(|hex| hex.len() == 64 && hex.is_ascii());
        let mut hash = [0; 32];
        let read = hex.is_some_and(|hex| {
            hash.iter_mut().enumerate().all(|(at, byte)| {
                let digits = &hex[at * 2..at * 2 + 2];
                let sound = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
                sound && u8::from_str_radix(digits, 16).map(|value| *byte = value).is_ok()
            })
        });
        if read {
            return Ok(Self(hash));
        }
        Err(Error::invalid(
            "cascade_uri is not cascade:// followed by 64 lower-case hex digits",
            "use a cascade_uri that store_session_to_cascade or query_memories returned",
        ))
    }

    /// The 64 hex digits.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Whether these bytes are the ones that the pointer names.
    #[must_use]
    pub fn names(&self, ciphertext: &[u8]) -> bool {
        Self::of(ciphertext) == *self
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cascade://{}", self.hex())
    }
}

impl std::fmt::Debug for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// The most bytes a blob may have. A reader gives up beyond it, whatever a store claims to have.
pub const MAX_BYTES: u64 = 64 << 20;

/// Where a back end put a blob, in its own words; empty when the pointer is enough.
///
/// Cascade's has signatures with which the (public, sealed) bytes can be fetched: seal it like any other column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locator(pub String);

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone, or was not there.
    Gone,
    /// This back end cannot forget; only destroying the key makes it unreadable.
    Permanent,
}

/// A store of sealed artifacts.
#[async_trait]
pub trait Blobs: Send + Sync + std::fmt::Debug {
    /// Keeps the bytes; keeping the same ones twice is keeping them once.
    ///
    /// `noted` is called with the locator as soon as the back end has something to go on with that would be lost
    /// otherwise, even if the upload then fails: a caller that notes it durably can go on after a crash instead of paying
    /// twice. It may be called again with a fuller locator, which replaces the one before. `resume` is the latest such
    /// note. A back end that can simply be tried again notes nothing.
    async fn put(
        &self,
        pointer: &Pointer,
        ciphertext: &[u8],
        resume: Option<&Locator>,
        noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<Locator>;
    /// The bytes as the back end has them; not yet checked.
    async fn get(&self, pointer: &Pointer, locator: &Locator) -> Result<Vec<u8>>;
    /// Whether it still has the bytes, and has them right. They are few, so getting them is how most find out.
    async fn has(&self, pointer: &Pointer, locator: &Locator) -> Result<bool> {
        match self.get(pointer, locator).await {
            Ok(bytes) => Ok(pointer.names(&bytes)),
            Err(Error::NotFound { .. } | Error::Tampered { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
    /// Removes the bytes, if the back end can.
    async fn remove(&self, pointer: &Pointer, locator: &Locator) -> Result<Removed>;
    /// Whether the back end can be used, in one small request.
    async fn check(&self) -> Result<()>;
}

/// Refuses what no reader would accept.
fn fits(ciphertext: &[u8], limit: u64) -> Result<()> {
    if ciphertext.len() as u64 <= limit {
        return Ok(());
    }
    Err(Error::invalid(
        format!("the sealed artifact has {} bytes; at most {limit} can be kept", ciphertext.len()),
        "store the card without the raw session, or split the session",
    ))
}

/// A name of 32 hex digits that says nothing.
fn random_hex() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| {
        Error::unavailable("the system provides no random numbers", "check the system's log, then try again")
    })?;
    Ok(hex::encode(bytes))
}
