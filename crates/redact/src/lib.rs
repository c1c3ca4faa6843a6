//! Finds secrets and personal data in text and JSON, and replaces them.
//!
//! The crate promises that what its rules know does not come out again, that redacting twice changes nothing, and
//! that time is linear in the input, whatever the input. It is pure: no I/O, no async, no clock. It cannot promise
//! to know everything: names and addresses of people are best effort, and a password in a sentence may look like a
//! word.
//!
//! ```text
//! text ──▶ windows ──▶ readable copies ──▶ keywords, numbers, words, tokens ──▶ rules ──▶ hits     [scan, rules]
//!         [stream]    [normalise, encoded, keys]                                            │
//! JSON ──▶ leaves and keys [json]              names, user's words ─────────────────────────┤ [names, dictionary]
//!                                                                                           ▼
//!                       text with <REDACTED:…>, findings, report, blocked ◀── joined, until none is left
//! ```
//!
//! Two tiers: what is [`Tier::Critical`] (private keys, Authorization headers, bearer tokens) sets `blocked`, and
//! nothing of that document may be stored durably; everything else is replaced by a typed placeholder. Findings name
//! rule and place, never the value.
//!
//! ```
//! use confidant_redact::{Options, Redactor};
//!
//! let redactor = Redactor::new(Options::default())?;
//! let redacted = redactor.redact_text("Mail jane@example.org, password: \"hunter2!x\"");
//! assert_eq!(redacted.text, "Mail <REDACTED:EMAIL>, password: \"<REDACTED:PASSWORD>\"");
//! assert!(!redacted.blocked);
//!
//! let session = serde_json::json!({ "headers": { "Authorization": "Basic amFuZTpodW50ZXIy" } });
//! assert!(redactor.redact_json(&session).blocked);
//! # Ok::<(), confidant_redact::OpenError>(())
//! ```

mod dictionary;
mod encoded;
mod finding;
mod heads;
mod json;
mod keys;
mod lenient;
mod names;
mod normalise;
mod opaque;
mod placeholders;
mod quote;
mod redactor;
mod rules;
mod scan;
mod stream;

pub use finding::{Count, Finding, Tier};
pub use json::{RedactedJson, Taken, TakenKind};
pub use lenient::{read_json, with_whole_pairs};
pub use normalise::is_invisible;
pub use placeholders::Numbering;
pub use quote::{Fence, folded, quote_line, quote_text, visible_line};
pub use redactor::{OpenError, Options, Redacted, Redactor};
pub use stream::Stream;
