//! How errors and values are shown. Pure, and below every other crate.
//!
//! - An error says what happened and what to do next, in one line: `the store is busy; hint: try again`. [`Hinted`]
//!   gives every error its two parts as methods; [`parted`] does the same for text.
//! - Contents, keys and ids do not reach a log by accident: [`debug_without_content!`] writes `Debug` of the types that
//!   hold them, from the fields that may be shown.
//! - Errors of the TLS library are said in our words: [`certificate_problem`].

mod certificates;
mod debug;
mod hint;

pub use certificates::certificate_problem;
pub use hint::{Hinted, parted};
