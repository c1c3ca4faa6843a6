//! Doors that only the vectors and the fuzzer may use.

use crate::envelope::{self, SALT};
use crate::{Context, Key, Opened, Sealed, Suite};

pub use crate::envelope::Reason;

/// [`crate::seal`] with a salt of the caller's. A salt used twice under one key gives both plaintexts away.
pub fn seal_with_salt_insecure_for_testing(
    key: &Key,
    suite: Suite,
    context: &Context<'_>,
    rev: u32,
    data: &[u8],
    salt: &[u8; SALT],
) -> Sealed {
    envelope::seal_with_salt(key, suite, context, rev, data, salt)
}

/// Seals bytes that should have been length, data and padding, to make records that are authentic and wrong.
pub fn seal_plain_with_salt_insecure_for_testing(
    key: &Key,
    suite: Suite,
    context: &Context<'_>,
    rev: u32,
    plain: &[u8],
    salt: &[u8; SALT],
) -> Sealed {
    let write = |out: &mut [u8]| out.copy_from_slice(plain);
    envelope::seal_plain_with_salt(key, suite, context, rev, plain.len(), write, salt)
}

/// [`crate::open`] that says which check failed. A caller who shows that to others has made an oracle.
pub fn open_with_reason(key: &Key, context: &Context<'_>, sealed: &Sealed) -> Result<Opened, Reason> {
    envelope::open_with_reason(key, context, sealed)
}

/// How long length field, data and padding are together.
pub fn padded_len(data: usize) -> usize {
    envelope::padded_len(data)
}
