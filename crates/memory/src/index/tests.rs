//! The promises of the index, on real folders.

mod finding;
mod forgetting;
mod living;
mod meaning;
mod sealing;
mod support;
