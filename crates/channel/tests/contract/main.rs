//! What every channel can rely on, against a platform that lives in memory and outlives its bot.
#![expect(clippy::unwrap_used, reason = "tests say what went wrong by panicking")]

mod approvals;
mod columns;
mod memory;
mod once;
mod outages;
mod rig;
mod telling;
