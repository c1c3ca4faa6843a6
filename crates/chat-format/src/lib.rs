//! Chats that only their owner can read: what is sealed, and what a device checks before it shows anything.
//!
//! The crate has the constructions that a server and a client share, in bytes: section 10 of `docs/FORMAT.md`. It promises
//! that a server which drops, replays, swaps or edits something is refused by name ([`Refused`]), as far as the device's
//! memory reaches. It is pure: no I/O, no async, no clock.
//!
//! ```text
//! password, passkey, code ─▶ Root ─▶ sign ──▶ proofs to the server                     [credentials]
//!                                 └▶ kek ───▶ AccountKey, generation g                 [ring]
//!                                                 │ opens
//!                    ┌────────────────────────────┼──────────────────────────┐
//!                    ▼                            ▼                          ▼
//!              Ring of a chat              Ring of the account         Ring of the mailbox
//!                    │ seals                      │ seals                    │ opens
//!     messages, embeds, fields, head       floors, manifest, data      replies that waited   [record, head, manifest, mailbox]
//!                    └──────── checked, in order, by Account and Chat ───────┘               [opening]
//! ```
//!
//! 1. [`Root`] comes from a credential; [`Statement`] is what its holder signs.
//! 2. [`AccountKey::open`] opens the account key, [`Ring::open`] the keys under it. Rings only grow.
//! 3. [`Account::open`] and [`Chat::open`] check a whole state against what the device remembers.
//! 4. [`Claim`] and [`adopt`] let a server answer without keeping words; [`Letter`] carries a reply that waited.
//! 5. [`Pairing`] gives the account key to another device; [`restage`] moves every ring to a new one.
//! 6. [`Snapshot`] is a branch, sealed once more for whoever has the [`SnapshotLink`].
//!
//! ```
//! use confidant_chat_format::*;
//! use confidant_seal::Key;
//!
//! let (account, chat) = (AccountId::random(), ChatId::random());
//! let code = RecoveryCode::random();
//! let ak = AccountKey::first();
//! let wrap = ak.wrap(&Root::from_recovery(&code).kek(), &account, Wrap::Recovery, 1);
//!
//! let kek = Root::from_recovery(&code).kek();
//! let (same, _) = AccountKey::open(&kek, &account, 1, Wrap::Recovery, Some(&wrap), SeenWrap::default())?;
//! let rows = [Entry::seal(&same, &account, RingOf::Chat(&chat), 1, &Key::random(), 1)];
//! let ring = Ring::open(&same, &account, RingOf::Chat(&chat), &rows)?;
//! assert_eq!(ring.newest().n(), 1);
//! let none = AccountKey::open(&kek, &account, 1, Wrap::Recovery, None, SeenWrap::default());
//! assert_eq!(none, Err(Refused::AccountMissing));
//! # Ok::<(), Refused>(())
//! ```

mod bytes;
mod credentials;
mod error;
mod head;
mod history;
mod ids;
mod json;
mod mailbox;
mod manifest;
mod opening;
mod pairing;
mod record;
mod ring;
mod rotation;
mod snapshot;
mod transcript;
#[cfg(feature = "vectors")]
#[doc(hidden)]
pub mod vectors;

pub use bytes::{Digest, PublicKey};
pub use credentials::{
    PROFILE, Purpose, RecoveryCode, Root, Signer, Statement, password_salt, prf_input, server_salt,
};
pub use error::Refused;
pub use head::{Head, List, Mark, Pending, Step, Trail, chain, live};
pub use history::{Claim, history};
pub use ids::{
    AccountId, ChatId, CredentialId, DeviceId, EmbedId, FieldName, ItemId, Login, MessageId, Origin,
    SnapshotId, TurnId,
};
pub use mailbox::{BoxKey, Letter};
pub use manifest::{Floor, Manifest};
pub use opening::{Account, Chat, Item, SeenAccount, SeenChat, SentAccount, SentChat, check_roots};
pub use pairing::{NewDevice, Pairing, PairingSecret};
pub use record::{Message, Opened, Place, Role, Shared, Shelf, Text, open_record, seal_record};
pub use ring::{AccountKey, Entry, Held, Ring, RingOf, SeenWrap, Wrap, check_append};
pub use rotation::{check_commit, restage, rings_digest};
pub use snapshot::{SealedSnapshot, Snapshot, SnapshotKey, SnapshotLink, SnapshotList, SnapshotMessage};
pub use transcript::{Said, Transcript, TranscriptKind, adopt, beside};
