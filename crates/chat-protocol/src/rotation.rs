//! A new account key, in steps that end in one commit.
//!
//! ```text
//! begin (proof)   rings are frozen, other sessions closed
//! stage, stage …  every entry sealed again; nothing counts yet
//! commit (proof)  all of it at once, if nothing is missing and nobody changed the account; else `conflict`
//! ```

use confidant_chat_format::Digest;

use crate::account::NewCredential;
use crate::keys::{HeadPut, KeyEntry, MailboxPut, RingRows};
use crate::limits::{MAX_CREDENTIALS, MAX_FRAME, MAX_RINGS, MAX_SIGNED, SHELVES};
use crate::lists::List;
use crate::shapes::objects;
use crate::sync::FloorSent;

objects! {
    /// Begins a rotation: the signed body of `rotation/begin`.
    pub struct RotationBegin {
        /// The revision of the account before; else `conflict`.
        pub account_rev: u32,
    }

    /// The rings are frozen.
    pub struct RotationBegun {
        /// The generation that the new account key has. It names this rotation.
        pub generation: u32,
        /// How many rings there are to stage.
        pub rings: u32,
        /// Until when to commit, in milliseconds since 1970; then the rings are open again, unchanged.
        pub expires_at: u64,
    }

    /// Stages rings and floors. Needs the session that began the rotation, and no proof: nothing counts before the
    /// commit.
    pub struct RotationStage (limit MAX_FRAME) {
        /// The rotation.
        pub generation: u32,
        /// Rings, each whole, every entry sealed under the new account key.
        pub rings: List<RingRows, MAX_RINGS>,
        /// Floors, sealed under the new key of the account.
        pub floors: List<FloorSent, SHELVES>,
    }

    /// What is staged so far.
    pub struct RotationStaged {
        /// How many rings.
        pub rings: u32,
        /// How many floors.
        pub floors: u32,
    }

    /// Commits a rotation: the signed body of `rotation/commit`. Answer: `AccountChanged`.
    pub struct RotationCommit (limit MAX_SIGNED) {
        /// The rotation.
        pub generation: u32,
        /// The revision of the account before; else `conflict`.
        pub account_rev: u32,
        /// The digest of every entry of every ring before; other than the server's own: `conflict`.
        pub rings: Digest,
        /// The credentials that remain, each with the new account key. All others are removed.
        pub credentials: List<NewCredential, MAX_CREDENTIALS>,
        /// The new entry of the account's ring.
        pub ring: KeyEntry,
        /// The new entry of the mailbox's ring.
        pub mailbox: MailboxPut,
        /// The manifest, over the floors that were staged.
        pub manifest: HeadPut,
    }
}
