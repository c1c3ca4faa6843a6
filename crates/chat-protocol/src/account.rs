//! The account: floors and manifest on the socket; credentials, export, erasure and restore as signed requests.
//!
//! ```text
//! POST /account/restore/begin  account, login, the operator's code ──▶ salt, challenge, what is left of the account
//! POST /account/restore        Signed(Restore) ──▶ session
//! POST /account/restore/rings  Signed(RestoreRings) ──▶ which chats can be opened again
//! ```
//!
//! Easy to get wrong: removing a credential by a plain change. A removed credential knows the account key, so removal
//! is a rotation; a change only adds, or replaces what the person still holds.

use confidant_chat_format::{AccountId, ChatId, CredentialId, DeviceId, Login};

use crate::chats::FloorPut;
use crate::keys::{HeadPut, KeyEntry, MailboxPut, RingRows};
use crate::limits::{
    MAX_CREDENTIALS, MAX_FRAME, MAX_INVITE, MAX_KEY, MAX_RECEIPT, MAX_RING, MAX_RINGS, MAX_SIGNED, SHELVES,
};
use crate::lists::List;
use crate::shapes::{objects, words};
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

    /// Asks for the ways to log in that the account has.
    pub struct RequestCredentials {}

    /// The ways to log in that the account has. What each is called is account data of the kind `credential`, with its id as name.
    pub struct CredentialList {
        /// Each of them.
        pub credentials: List<CredentialLine, MAX_CREDENTIALS>,
        /// Whether the password is asked for with a code of an authenticator.
        pub totp: bool,
    }

    /// A way to log in.
    pub struct CredentialLine {
        /// What kind.
        pub kind: CredentialKind,
        /// Its id; left out for a password.
        pub id: Option<CredentialId>,
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
        /// The new recovery code. The used one no longer works.
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

    /// Asks to put an account back that the server has lost, or cannot open any more.
    pub struct RestoreBegin {
        /// The account.
        pub account: AccountId,
        /// The login that it shall have.
        pub login: Login,
        /// The code that the operator made for this account.
        pub code: Text<MAX_INVITE>,
    }

    /// What the server has of the account, and what to make its credentials with.
    pub struct RestoreOffer {
        /// The profile, 1.
        pub profile: u32,
        /// The server's half of the salt.
        pub server_salt: Bytes<16>,
        /// The challenge to sign, with the purpose `restore`.
        pub challenge: Secret,
        /// The newest revision of the account that the server has, or remembers; 0 if there is none.
        pub account_rev: u32,
        /// The generation of the account key that the server has; 0 if it has nothing.
        pub generation: u32,
    }

    /// Puts an account back, signed by one of the new credentials. Nothing of it is taken from an account that can be
    /// opened, or that was erased.
    pub struct Restore (limit MAX_SIGNED) {
        /// The account.
        pub account: AccountId,
        /// Its login.
        pub login: Login,
        /// The revision of the account from now on: more than what the server has.
        pub account_rev: u32,
        /// The generation of the account key.
        pub generation: u32,
        /// The credentials, each with the account key sealed for the new revision; all others are gone.
        pub credentials: List<NewCredential, MAX_CREDENTIALS>,
        /// The account's ring: every entry that the server has, or all of them.
        pub ring: List<KeyEntry, MAX_RING>,
        /// The mailbox's ring, likewise.
        pub mailbox: List<MailboxPut, MAX_RING>,
        /// Floors and manifest, at revision 1, to begin anew: what the server still has of the account goes. Left out, the
        /// server keeps chats, floors and manifest as they are; then it has to have them, else `conflict`.
        pub first: Option<FirstManifest>,
        /// The device that writes this.
        pub device: DeviceId,
    }

    /// Puts rings of chats back whose keys the server has lost.
    pub struct RestoreRings (limit MAX_SIGNED) {
        /// The rings of chats: of each, every entry that the server has.
        pub rings: List<RingRows, MAX_RINGS>,
    }

    /// Rings that were put back.
    pub struct RingsRestored {
        /// How many the server had lost and has again.
        pub restored: u32,
        /// Chats whose ring is another one here, or that are not here.
        pub refused: List<ChatId, MAX_RINGS>,
    }

    /// The first floors of a new account, which are empty, and its manifest.
    pub struct FirstManifest {
        /// All sixteen floors, shelf 0 first.
        pub floors: List<Envelope<MAX_KEY>, SHELVES, SHELVES>,
        /// The manifest.
        pub manifest: HeadPut,
    }
}
