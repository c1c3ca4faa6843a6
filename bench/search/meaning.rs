//! The built-in encoder, where the program was built with it.

use std::sync::Arc;

use confidant_memory::index::Encoder;

/// The encoder; nothing without the feature.
#[cfg(feature = "embeddings")]
pub(crate) fn encoder() -> Option<Arc<dyn Encoder>> {
    Some(Arc::new(confidant_memory::index::BuiltInEncoder))
}

/// The encoder; nothing without the feature.
#[cfg(not(feature = "embeddings"))]
pub(crate) fn encoder() -> Option<Arc<dyn Encoder>> {
    None
}
