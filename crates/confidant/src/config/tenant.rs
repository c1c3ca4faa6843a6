//! Whose data it is, where nobody says so.

/// The tenant of an installation that has only one.
pub(crate) const DEFAULT_TENANT: &str = "default";
