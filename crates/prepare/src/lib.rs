//! Stage 3: what kind of turn this is, before the answer is composed.
//!
//! One structured call on a small model, or local rules when there is none or it is slow or broken: the same
//! [`Prepared`] either way. Nothing in it is trusted for being there: names are checked against the [`Offer`]. All of it
//! is pure; whoever calls the model does so between [`forms()`] and [`read()`]:
//!
//! ```text
//! rules ───────────────────────────────────────────────▶ merge ─▶ Prepared ─▶ RunningHarm::update ─▶ SafetyRules::decide
//! forms ─▶ (model, all blocks at once) ─▶ read, each ──────┘
//! ```
//!
//! A history of more than 70 000 tokens is sent in blocks, split between messages, and what is found in them is merged:
//!
//! - harm, of each kind, and the chance of injection: the highest of all blocks, and never more than 4 below what the
//!   local rules say, so that a text cannot talk the model out of a clear sign;
//! - language, category and model (with its reason): those of the newest block that has one;
//! - tools, focus modes, settings, tags and icons: all that any block names, the newest first, up to the limits;
//! - title: that of the oldest block that has one;
//! - whatever no block has: what the local rules say.

mod form;
mod harm;
mod merge;
mod prepared;
mod read;
mod rules;
mod tidy;

pub use form::forms;
pub use merge::merge;
pub use read::{Found, read};
pub use rules::category::{is_software, known as known_categories};
pub use rules::{injection_chance, rules, warm_up};

pub use harm::{
    Decay, Decision, Measure, RunningHarm, SafetyAction, SafetyRule, SafetyRules, SafetyText, SafetyTexts,
};
pub use prepared::{Harm, HarmScores, Offer, Prepared, PreparedBy, View};
