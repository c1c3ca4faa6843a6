//! Random secrets, and what the store has in their place.

use confidant_chat_format::Digest;
use zeroize::Zeroizing;

/// Random bytes, or no process.
pub(crate) fn random<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes)
        .expect("the operating system provides random bytes; without them nothing is safe");
    bytes
}

/// What the store has in place of a secret.
pub(crate) fn hashed(secret: &[u8; 32]) -> Digest {
    Digest::of(secret)
}
