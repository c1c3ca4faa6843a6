//! The promises that concern memories, each as named tests against real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod columns;
mod crashes;
mod erasure;
mod finding;
mod gate;
mod importing;
mod isolation;
mod recalled;
mod storing;
mod strangers;
mod support;
mod tampering;
