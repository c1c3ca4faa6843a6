//! Two devices, whatever happens between them.
