//! Scopes, keys and sealed records: the part of Confidant that an auditor reads.
//!
//! The crate promises that what is sealed opens only with the right key, in the right place, unchanged. It is
//! pure: no I/O, no async, no clock.
//!
//! ```text
//! MasterKey ──PBKDF2──▶ root Key ──HKDF──▶ "sessions", "memory", …          [key]
//!                          │                   │
//!                          │ seals             │ seals
//!                          ▼                   ▼
//!                  "names", "audit"     a session's data key ◀── Scope      [keyring, scope]
//!                  (random keys)        (random, one per Scope)
//!                          │ tags              │ seals, with a Context
//!                          ▼                   ▼
//!                  blinded names        every entry: Sealed                 [envelope]
//! ```
//!
//! 1. An operator holds a [`MasterKey`]. [`MasterKey::root`] stretches it, once per process, into the root.
//! 2. A [`Scope`] says whose memory this is. It has one byte form and one readable session id.
//! 3. Each scope gets a random [`Key`], sealed for exactly that scope ([`wrap_session_key`]). Destroying it is
//!    erasure; rotating the root re-seals it and touches no data.
//! 4. [`seal`] binds data to a [`Context`] and a revision; [`open`] undoes it or fails in one way, [`OpenFailed`].
//! 5. A store never sees an id, only a [`Tag`] made with a key ([`Key::tag`]).
//! 6. [`PageSeal`] seals a large file in pages, for a reader who wants a little of it.
//! 7. [`open_checkpoint`] reads what the system before this one wrote.
//!
//! ```
//! use confidant_seal::*;
//!
//! let roots = Roots::new(MasterKey::random().root(), vec![]);
//! let scope = Scope::parse(TenantId::new("acme")?, "!abc123:matrix.org:main:@alice:matrix.org")?;
//! let data_key = Key::random();
//! let wrapped = wrap_session_key(roots.current(), &scope, 1, &data_key);
//!
//! let context = Context { purpose: "session", owner: "…", container: "…", object: "1", field: "" };
//! let record = seal(&data_key, Suite::ChaCha20Poly1305, &context, 1, b"hello");
//!
//! let same_key = unwrap_session_key(&roots, &scope, 1, &wrapped)?;
//! assert_eq!(*open(&same_key, &context, &record)?.data, b"hello");
//! assert!(open(&same_key, &Context { object: "2", ..context }, &record).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/FORMAT.md` is the normative description of every byte; `vectors/seal-v1.json` proves it.

mod envelope;
mod hex;
mod key;
mod keyring;
mod legacy;
mod pages;
mod roll;
mod scope;
#[cfg(feature = "vectors")]
#[doc(hidden)]
pub mod vectors;

pub use envelope::{Context, OpenFailed, Opened, Sealed, Suite, open, seal, sealed_len};
pub use key::{Key, KeyError, Kid, MasterKey, Tag};
pub use keyring::{
    Roots, root_of, unwrap_named_key, unwrap_scope, unwrap_session_key, wrap_named_key, wrap_scope,
    wrap_session_key,
};
pub use legacy::{LegacyError, open_checkpoint};
pub use pages::PageSeal;
pub use roll::Roll;
pub use scope::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
