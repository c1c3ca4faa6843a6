//! Stage 3: what kind of turn this is, before the answer is composed.
//!
//! One structured call on a small model, or local rules when there is none or it is slow or broken: the same
//! [`Prepared`] either way. Nothing in it is trusted for being there: names are checked against the [`Offer`].

mod prepared;
mod shim;

pub use prepared::{Harm, HarmScores, Offer, OfferedModel, Prepared, PreparedBy, View};
pub use shim::{Action as SafetyAction, SafetyRules, SafetyTexts};
pub(crate) use shim::{Decision, Running, forms, merge, read, rules};
