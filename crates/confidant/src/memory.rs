//! From settings to a memory.

use anyhow::anyhow;
use confidant_memory::Memory;

use crate::config::Loaded;

/// Opens the memory that the settings describe.
#[expect(clippy::unused_async, reason = "a stand-in until the memory can be opened")]
pub(crate) async fn open(loaded: &Loaded) -> anyhow::Result<Memory> {
    let _ = loaded;
    Err(anyhow!("there is no memory yet; hint: wait for it"))
}
