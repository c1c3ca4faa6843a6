//! The tables, made and brought up to date at the start. Migrations are only ever added.

/// In the order they came.
pub(super) const MIGRATIONS: [&str; 9] = [
    include_str!("migrations/001_data.sql"),
    include_str!("migrations/002_keys.sql"),
    include_str!("migrations/003_contexts.sql"),
    include_str!("migrations/004_captures.sql"),
    include_str!("migrations/005_open_turns.sql"),
    include_str!("migrations/006_taken_back.sql"),
    include_str!("migrations/007_lists.sql"),
    include_str!("migrations/008_seed_types.sql"),
    include_str!("migrations/009_audit_retention.sql"),
];
