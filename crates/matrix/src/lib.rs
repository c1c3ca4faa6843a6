//! The Matrix channel: `matrix-sdk` on one side, the shared channel runtime on the other.
#![recursion_limit = "256"]
