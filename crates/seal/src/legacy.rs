//! The format of the system before Confidant, to migrate from. Read only: nothing here can write it.
//!
//! A row is `{"_encrypted": true, "data": base64(nonce ‖ ciphertext ‖ tag)}`: ChaCha20-Poly1305 without
//! associated data, under `PBKDF2-HMAC-SHA-256(master, salt = thread id, 100 000 rounds)`. Easy to get wrong: the
//! old reader took a row without the flag for plaintext. Here it is refused.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::key::MasterKey;

/// Opens one stored checkpoint; gives the JSON that was in it. Slow (some 20 ms) once the row has the right shape.
pub fn open_checkpoint(
    master: &MasterKey,
    thread_id: &str,
    row: &[u8],
) -> Result<Zeroizing<Vec<u8>>, LegacyError> {
    let (nonce, mut data) = read_row(row)?;
    let key = UnboundKey::new(&CHACHA20_POLY1305, &*master.stretch(thread_id.as_bytes()))
        .expect("ChaCha20-Poly1305 takes 32-byte keys");
    let len = LessSafeKey::new(key)
        .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut data)
        .map_err(|_| LegacyError::OpenFailed)?
        .len();
    data.truncate(len);
    Ok(data)
}

/// Why a legacy row was refused. Never quotes the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LegacyError {
    /// Not the JSON object that was written.
    #[error("the row is not a legacy checkpoint; check that it was exported whole")]
    Format,
    /// The flag is missing or false.
    #[error("the row is not marked as encrypted and is not trusted; leave it out of the migration")]
    NotEncrypted,
    /// Wrong master key, wrong thread id or changed bytes.
    #[error("the row did not open; check the master key and that the thread id is the row's own")]
    OpenFailed,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(rename = "_encrypted", default)]
    encrypted: bool,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
}

/// Nonce, and ciphertext with tag.
fn read_row(row: &[u8]) -> Result<([u8; NONCE], Zeroizing<Vec<u8>>), LegacyError> {
    let row: Row<'_> = serde_json::from_slice(row).map_err(|_| LegacyError::Format)?;
    if !row.encrypted {
        return Err(LegacyError::NotEncrypted);
    }
    let bytes = STANDARD.decode(row.data.as_ref()).map_err(|_| LegacyError::Format)?;
    let (nonce, body) = bytes.split_first_chunk::<NONCE>().ok_or(LegacyError::Format)?;
    if body.len() < TAG {
        return Err(LegacyError::Format);
    }
    Ok((*nonce, Zeroizing::new(body.to_vec())))
}

const NONCE: usize = 12;
const TAG: usize = 16;
