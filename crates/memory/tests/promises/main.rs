//! The promises that concern memories, each as named tests against real files.

mod crashes;
mod erasure;
mod gate;
mod importing;
mod isolation;
mod storing;
mod support;
mod tampering;
