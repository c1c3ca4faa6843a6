//! Doors that only the vectors and tests may use: ephemeral keys of the caller's.

use confidant_seal::Key;

use crate::bytes::PublicKey;
use crate::error::Refused;
use crate::mailbox::{BoxKey, letter_key};
use crate::pairing::{NewDevice, Pairing};

/// The key of a letter from the holder of `ephemeral`. A key pair used twice gives nothing away but joins two letters.
pub fn letter_key_insecure_for_testing(ephemeral: &Key, box_pub: &PublicKey) -> Result<Key, Refused> {
    let ephemeral = BoxKey::from_key(ephemeral);
    letter_key(&ephemeral, box_pub, &ephemeral.public_key(), box_pub)
}

/// The key under which an old device with this key pair seals.
pub fn pairing_key_insecure_for_testing(
    pairing: &Pairing<'_>,
    old: &Key,
    new: &PublicKey,
) -> Result<Key, Refused> {
    let old = BoxKey::from_key(old);
    pairing.key(&old, new, new, &old.public_key())
}

/// A new device with this key pair.
pub fn new_device_insecure_for_testing(key: &Key) -> NewDevice {
    NewDevice::from_key(key)
}
