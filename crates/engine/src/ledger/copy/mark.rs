//! How far a copy is, as its keyring says.

use confidant_seal::Sealed;

use crate::error::StoreError;
use crate::store::SystemKeys;

/// Whether this keyring is that of a copy which is not finished.
pub(crate) async fn is_unfinished(keys: &dyn SystemKeys) -> Result<bool, StoreError> {
    Ok(keys.named(MARK).await?.is_some_and(|(_, found)| found == mark(BEGUN)))
}

/// Where the keyring notes how far a copy is. Not a key: it opens nothing.
pub(super) const MARK: &str = "copy";
pub(super) const BEGUN: &[u8] = b"begun";
pub(super) const DONE: &[u8] = b"done";

pub(super) fn mark(state: &[u8]) -> Sealed {
    Sealed::from_bytes(state.to_vec())
}
