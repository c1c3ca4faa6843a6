//! No row of the first system's format panics the reader, and none but the real one opens.

#![no_main]

use std::sync::LazyLock;

use confidant_seal::{MasterKey, open_checkpoint};
use libfuzzer_sys::fuzz_target;

static MASTER: LazyLock<MasterKey> = LazyLock::new(MasterKey::random);

fuzz_target!(|row: &[u8]| {
    assert!(open_checkpoint(&MASTER, "!room:main:@alice", row).is_err());
});
