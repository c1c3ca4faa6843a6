//! The promises, each a named test on every store that it concerns; `docs/PROMISES.md` lists the most telling ones.
//!
//! Every test here has the number of its promise in its name; what else the engine does is tested in `tests/behaviour`.
//! Promise 7 (secrets do not leave) has most of its tests in the memory crate, which has its own for 1, 2, 4, 5 and 6 as
//! well.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod approvals;
mod asked_before;
mod calls;
mod concepts;
mod erasure;
mod interruption;
mod isolation;
mod outages;
mod place;
mod revision;
#[path = "../rig/mod.rs"]
mod rig;
mod secrecy;
mod secrets;
mod strangers;
mod tampering;
