//! Inner doors for the fuzz targets. No stable interface.

use crate::Session;
#[cfg(feature = "cascade")]
pub use crate::blobs::cascade::fuzzing as cascade;
use crate::import::{self, SessionFile, find_in};

/// The longest text of one message.
pub const LONGEST_LEAF: usize = import::LONGEST_LEAF;

/// The session with this id, if it is in the file and the file can be read.
#[must_use]
pub fn find(file: &SessionFile, id: &str) -> Option<Session> {
    find_in(file, id).ok().flatten()
}
