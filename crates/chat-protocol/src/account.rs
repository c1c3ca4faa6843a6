//! The account: floors and manifest on the socket; credentials, export, erasure and restore as signed requests.
//!
//! Easy to get wrong: removing a credential by a plain change. A removed credential knows the account key, so removal
//! is a rotation; a change only adds, or replaces what the person still holds.

use confidant_chat_format::{AccountId, CredentialId, PublicKey};

use crate::chats::FloorPut;
use crate::keys::{HeadPut, KeyEntry, MailboxPut, RingRows};
use crate::limits::{
    MAX_BATCH, MAX_CREDENTIALS, MAX_FRAME, MAX_KEY, MAX_RECEIPT, MAX_RINGS, MAX_SIGNED, SHELVES,
};
use crate::lists::List;
use crate::shapes::{objects, words};
use crate::sync::{ChatSent, FloorSent};
use crate::values::{Bytes, Envelope, Secret, Text, Totp};

words! {
    /// What kind of credential.
    pub enum CredentialKind {
        /// A password. An account has at most one.
        Password = "password",
        /// A passkey with PRF.
        Passkey = "passkey",
        /// A recovery code. An account has at most one; using it replaces it.
        Recovery = "recovery",
    }

    /// Why a device was logged out.
    pub enum LogoutReason {
        /// The session or its device was revoked.
        Revoked = "revoked",
        /// Credentials changed.
        Changed = "changed",
        /// The account key changed.
        Rotated = "rotated",
        /// The session expired.
        Expired = "expired",
        /// The account was erased. Erase this device's copy too.
        Erased = "erased",
    }
}

objects! {
    /// A manifest that is written. Its revision is one more than that of the one before, else `write_conflict`.
    pub struct ManifestPut {
        /// The manifest after this write.
        pub head: HeadPut,
        /// The next entry of the account's ring.
        pub ring: Option<KeyEntry>,
        /// The next entry of the mailbox's ring.
        pub mailbox: Option<MailboxPut>,
    }

    /// Writes floors and the manifest, within 60 seconds of a write to a chat that left them out. Answer:
    /// `manifest_stored`; the account's other devices get `account_updated`.
    pub struct UpdateManifest {
        /// The floors that changed.
        pub floors: List<FloorPut, SHELVES>,
        /// The manifest.
        pub manifest: ManifestPut,
    }

    /// The manifest was stored.
    pub struct ManifestStored {
        /// Its revision.
        pub rev: u32,
    }

    /// The session is over. The server closes the socket after it.
    pub struct ForceLogout {
        /// Why.
        pub reason: LogoutReason,
    }

    /// A credential, as the server keeps it.
    pub struct NewCredential {
        /// What kind.
        pub kind: CredentialKind,
        /// Its id; left out for a password, which is found by the login.
        pub id: Option<CredentialId>,
        /// The public key that its proofs are checked with.
        pub public_key: Bytes<32>,
        /// The account key, sealed for it.
        pub wrap: Envelope<MAX_KEY>,
    }

    /// Codes of an authenticator, asked for with the password from now on.
    pub struct TotpSetup {
        /// What the authenticator was given.
        pub secret: Secret,
        /// A code, to show that it has it.
        pub code: Totp,
    }

    /// Adds credentials, or replaces those of the same kind and id. Removing one is a rotation.
    pub struct ChangeCredentials {
        /// The revision of the account before; else `conflict`.
        pub account_rev: u32,
        /// The credentials, each with the account key sealed for the next revision.
        pub credentials: List<NewCredential, MAX_CREDENTIALS>,
        /// Sets up codes of an authenticator.
        pub totp: Option<TotpSetup>,
        /// Asks for no more codes.
        pub totp_off: bool,
    }

    /// Replaces the password and the recovery code that signs this, in one step. Log in with the code first, for the
    /// wrap.
    pub struct Recover {
        /// The revision of the account before; else `conflict`.
        pub account_rev: u32,
        /// The new password.
        pub password: NewCredential,
        /// The new recovery code. The used one is good for nothing afterwards.
        pub recovery: NewCredential,
    }

    /// The account changed. Other sessions are closed where the change says so.
    pub struct AccountChanged {
        /// The revision of the account now.
        pub account_rev: u32,
        /// The generation of the account key now.
        pub generation: u32,
    }

    /// Asks for everything that the server has of the account. The answer is frames of server events, one per line:
    /// `account_state`, `data_records`, `devices`, chats as `chat_content_batch_response`, embeds included, then
    /// `phased_sync_complete`.
    pub struct Export {
        /// The account.
        pub account: AccountId,
    }

    /// Erases the account: every row, key, device, session and cache.
    pub struct Erase {
        /// The account.
        pub account: AccountId,
    }

    /// The account is erased.
    pub struct Erased (limit MAX_FRAME) {
        /// The receipt, as `confidant audit verify --receipt` reads it.
        pub receipt: Text<MAX_RECEIPT>,
    }

    /// Puts back what the server lost, from what a device last verified. Several of these may be needed for all chats.
    pub struct Restore (limit MAX_SIGNED) {
        /// The account.
        pub account: AccountId,
        /// The revision of the account that the device last saw.
        pub account_rev: u32,
        /// The generation of the account key.
        pub generation: u32,
        /// The credentials that the device has; at least the one that signs.
        pub credentials: List<NewCredential, MAX_CREDENTIALS>,
        /// The mailbox's public key.
        pub box_pub: PublicKey,
        /// The rings.
        pub rings: List<RingRows, MAX_RINGS>,
        /// The floors.
        pub floors: List<FloorSent, SHELVES>,
        /// The manifest.
        pub manifest: HeadPut,
        /// Chats, as they were synced.
        pub chats: List<ChatSent, MAX_BATCH>,
    }

    /// What was put back.
    pub struct Restored {
        /// The revision of the account now.
        pub account_rev: u32,
        /// How many chats were taken.
        pub chats: u32,
    }

    /// The first floors of a new account, which are empty, and its manifest.
    pub struct FirstManifest {
        /// All sixteen floors, shelf 0 first.
        pub floors: List<Envelope<MAX_KEY>, SHELVES, SHELVES>,
        /// The manifest.
        pub manifest: HeadPut,
    }
}
