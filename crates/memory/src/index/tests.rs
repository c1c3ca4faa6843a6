//! The promises of the index, on real folders.

mod finding;
mod forgetting;
mod living;
mod sealing;
mod support;
