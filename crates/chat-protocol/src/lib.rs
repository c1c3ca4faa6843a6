//! What a client of client-sealed chats and its server say to each other.
//!
//! Typed values with one JSON form each, for the server and for the client, on any transport. The crate promises that
//! what is read is within every limit, has every field once and nothing else, and that a refusal says where without
//! repeating what was sent. It is pure: no I/O, no async, no clock. It does not open envelopes: `confidant-chat-format`
//! does.
//!
//! ```text
//!                        ClientFrame {id, event} ──▶
//! client                                                server       sockets, server-sent events, posts   [frames, events]
//!                        ◀── ServerFrame {re, seq, event}
//!
//!                        Signed {body, proof, …} ──▶                 accounts, over HTTP                  [http, login]
//! ```
//!
//! 1. [`Body::read`] is the only door, for [`ClientFrame`], [`ServerFrame`] and every other body.
//! 2. A chat changes by one event, [`EncryptedChatMetadata`]; the answer is [`EncryptedMetadataStored`],
//!    [`WriteConflict`] or [`RefusedSent`].
//! 3. A device catches up with [`PhasedSyncRequest`], and hears of the rest as it happens, ciphertext only.
//! 4. A device asks for an answer with [`ChatMessageAdded`]. Words leave a device in clear in it, in [`ChatHistory`] and in [`ClientData`] only.
//! 5. What changes the account is a [`Signed`] request: the proof is over the very bytes that are sent.
//! 6. What a person shares is a [`MakeSnapshot`]; whoever has the link asks with [`OpenSnapshot`].
//!
//! `docs/PROTOCOL.md` is made from these types. Sizes are in [`limits`].
//!
//! ```
//! use confidant_chat_protocol::{Body as _, ClientEvent, ClientFrame, Ping};
//!
//! let frame = ClientFrame { id: 7, event: ClientEvent::Ping(Ping {}) };
//! let json = frame.write()?;
//! assert_eq!(json, br#"{"id":7,"event":{"type":"ping"}}"#);
//! assert_eq!(ClientFrame::read(&json)?, frame);
//!
//! let refused = ClientFrame::read(br#"{"id":7,"event":{"type":"ping","x":1}}"#).unwrap_err();
//! assert_eq!(refused.path(), "event");
//! # Ok::<(), confidant_chat_protocol::Malformed>(())
//! ```

mod account;
mod answers;
mod catalogue;
mod chats;
#[cfg(feature = "describe")]
pub mod describe;
mod devices;
mod drafts;
mod errors;
mod events;
mod format;
mod frames;
mod http;
mod keys;
mod letters;
pub mod limits;
mod lists;
mod login;
mod malformed;
mod pairing;
mod remembered;
mod rotation;
mod safety;
mod shapes;
mod snapshots;
mod sync;
mod values;
mod wire;

pub use account::{
    AccountChanged, ChangeCredentials, CredentialKind, CredentialLine, CredentialList, Erase, Erased, Export,
    FirstManifest, ForceLogout, LogoutReason, ManifestPut, ManifestStored, NewCredential, Recover,
    RequestCredentials, Restore, RestoreBegin, RestoreOffer, RestoreRings, RingsRestored, TotpSetup,
    UpdateManifest,
};
pub use answers::{
    About, AiApprovalRequested, AiMessageUpdate, AiResponseCompleted, AiResponseStorageConfirmed,
    AiTaskFailed, AiTaskInitiated, AiTypingEnded, AiTypingStarted, Beside, BesideBy, CancelAiTask, Care,
    ChatHistory, ChatMessageAdded, ClientData, DecideAiTask, Finish, Given, Heard, HistoryReason, Keep,
    MessageQueued, PendingAiResponse, Piece, PostProcessingCompleted, PreprocessingStep, RequestChatHistory,
    RequestClientData, ResumeAiTask, SaidBy, Step,
};
pub use catalogue::{Catalogue, CatalogueEntry, FOCUS_MODE, RequestCatalogue};
pub use chats::{
    ChatDeleted, ChatUpdated, DeleteChat, DeleteMessage, EncryptedChatMetadata, EncryptedMetadataStored,
    FloorPut, ItemSent, MessageDeleted, Placed, Put, SetActiveChat, WriteConflict, item_limit,
};
pub use devices::{
    Device, Devices, DevicesChanged, LabelDevice, RequestDevices, RevokeDevice, RevokeSession, Session,
    Ticket, TicketRequest,
};
pub use drafts::{
    ChatDraftUpdated, DataRecords, DataSent, DataUpdated, DeleteData, DeleteDraft, DraftDeleted, RequestData,
    UpdateData, UpdateDraft,
};
pub use errors::{ErrorName, Failure, RefusedSent};
pub use events::{ClientEvent, RESERVED, ServerEvent};
pub use frames::{ClientFrame, CloseCode, ServerFrame};
pub use http::{ROUTES, Route, Who};
pub use keys::{HeadPut, KeyEntry, MailboxPut, RingKind, RingRows, StepSent, TrailSent};
pub use letters::{LetterSent, LettersWaiting};
pub use lists::{List, Map, MapKey};
pub use login::{
    Challenge, ChallengeRequest, Done, LoginRequest, Logout, Prelogin, PreloginAnswer, Provable, Register,
    RegisterBegin, RegisterOffer, SessionOpened, Signed, SignerName,
};
pub use malformed::{Malformed, Why};
pub use pairing::{PairFetch, PairFetched, PairOffer, PairOffered, PairSend, PairTake, PairTaken};
pub use remembered::{ForgetRemembered, Remembered, RememberedForgotten, RememberedRecords, RememberedSent};
pub use rotation::{RotationBegin, RotationBegun, RotationCommit, RotationStage, RotationStaged};
pub use safety::{SafetyRecords, SafetySent};
pub use snapshots::{
    MakeSnapshot, OpenSnapshot, RequestSnapshots, RevokeSnapshot, SnapshotItem, SnapshotKept, SnapshotLine,
    SnapshotMade, SnapshotSent, Snapshots,
};
pub use sync::{
    AccountState, AccountUpdated, Change, Changed, ChatContentBatchResponse, ChatSent, ChatsSent, DataName,
    FloorSent, Hello, LoadMoreChats, LoadMoreChatsResponse, OfflineResult, OfflineSyncComplete, Phase,
    PhasedSyncComplete, PhasedSyncRequest, Ping, Pong, Ready, Removed, RequestChatContentBatch, RequestEmbed,
    SendEmbedData, SyncOfflineChanges, SyncStatus, SyncStatusRequest, Versions,
};
pub use values::{Blob, Bytes, Envelope, PairingId, Secret, Text, Totp};
pub use wire::{At, Body, Fields, Wire};
