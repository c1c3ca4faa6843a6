//! Every event of the socket, by who sends it.
//!
//! Names are those of the seed where the meaning is the same; the seed's other names are kept free ([`RESERVED`]). Easy to
//! get wrong: an event that a reader does not know. It is `malformed` with the event's name; an older client says so and
//! asks to be updated.

use serde::ser::SerializeMap as _;
use serde::{Deserializer, Serialize, Serializer};

use crate::account::{ForceLogout, ManifestStored, UpdateManifest};
use crate::answers::{
    AiApprovalRequested, AiMessageUpdate, AiResponseCompleted, AiResponseStorageConfirmed, AiTaskFailed,
    AiTaskInitiated, AiTypingEnded, AiTypingStarted, CancelAiTask, ChatHistory, ChatMessageAdded, ClientData,
    DecideAiTask, MessageQueued, PendingAiResponse, PostProcessingCompleted, PreprocessingStep,
    RequestChatHistory, RequestClientData, ResumeAiTask,
};
use crate::chats::{
    ChatDeleted, ChatUpdated, DeleteChat, DeleteMessage, EncryptedChatMetadata, EncryptedMetadataStored,
    MessageDeleted, SetActiveChat, WriteConflict,
};
#[cfg(feature = "describe")]
use crate::describe::{Book, Described, Dice};
use crate::devices::{Devices, DevicesChanged, LabelDevice, RequestDevices};
use crate::drafts::{
    ChatDraftUpdated, DataRecords, DataUpdated, DeleteData, DeleteDraft, DraftDeleted, RequestData,
    UpdateData, UpdateDraft,
};
use crate::errors::RefusedSent;
use crate::letters::LettersWaiting;
use crate::malformed::Why;
use crate::remembered::{ForgetRemembered, RememberedForgotten, RememberedRecords};
use crate::safety::SafetyRecords;
use crate::snapshots::SnapshotKept;
use crate::sync::{
    AccountState, AccountUpdated, ChatContentBatchResponse, ChatsSent, Hello, LoadMoreChats,
    LoadMoreChatsResponse, OfflineSyncComplete, PhasedSyncComplete, PhasedSyncRequest, Ping, Pong, Ready,
    RequestChatContentBatch, RequestEmbed, SendEmbedData, SyncOfflineChanges, SyncStatus, SyncStatusRequest,
};
use crate::wire::{At, Fields as _, TYPE, Wire};

macro_rules! events {
    ($(
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $($(#[doc = $event_doc:literal])+ $variant:ident($type:ty) = $word:literal),+ $(,)?
        }
    )+) => {$(
        $(#[doc = $doc])+
        // Not `non_exhaustive`: whoever handles events does not compile until a new one is handled too.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $event_doc])+ $variant($type),)+
        }

        impl $name {
            /// The names of all events.
            pub const NAMES: &[&str] = &[$($word),+];

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)+
                }
            }

            /// For the page: each event by name, why it is sent, what it has, and a sample.
            #[cfg(feature = "describe")]
            pub(crate) fn table() -> Vec<Described<Self>> {
                vec![$(Described {
                    name: $word,
                    why: &[$($event_doc),+],
                    describe: <$type as Wire>::describe,
                    sample: Self::$variant(<$type as Wire>::make(&mut Dice::sample())),
                }),+]
            }

            /// For tests: some event of each name.
            #[cfg(feature = "describe")]
            pub fn one_of_each(dice: &mut Dice<'_>) -> Vec<Self> {
                vec![$(Self::$variant(<$type as Wire>::make(dice))),+]
            }
        }

        impl Wire for $name {
            fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
                let here = at.tagged();
                match at.event() {
                    $(Some($word) => <$type as Wire>::read_from(from, &here).map(Self::$variant),)+
                    Some(other) => Err(at.field(TYPE).fail(Why::UnknownEvent(other.to_owned()))),
                    None => Err(at.field(TYPE).fail(Why::Missing)),
                }
            }

            fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry(TYPE, self.name())?;
                match self {
                    $(Self::$variant(event) => event.write_fields(&mut map)?,)+
                }
                map.end()
            }

            #[cfg(feature = "describe")]
            fn describe(_: &mut Book) -> String {
                "event".to_owned()
            }

            #[cfg(feature = "describe")]
            fn make(dice: &mut Dice<'_>) -> Self {
                let at = dice.choice(Self::NAMES.len());
                Self::one_of_each(dice).swap_remove(at)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.write_to(to)
            }
        }
    )+};
}

events! {
    /// What a client sends.
    pub enum ClientEvent {
        /// Opens the socket.
        Hello(Hello) = "hello",
        /// Keeps the socket open.
        Ping(Ping) = "ping",
        /// Writes to a chat.
        EncryptedChatMetadata(EncryptedChatMetadata) = "encrypted_chat_metadata",
        /// Deletes a chat.
        DeleteChat(DeleteChat) = "delete_chat",
        /// Deletes a message.
        DeleteMessage(DeleteMessage) = "delete_message",
        /// Says which chat is shown.
        SetActiveChat(SetActiveChat) = "set_active_chat",
        /// Stores a draft.
        UpdateDraft(UpdateDraft) = "update_draft",
        /// Removes a draft.
        DeleteDraft(DeleteDraft) = "delete_draft",
        /// Stores a piece of account data.
        UpdateData(UpdateData) = "update_data",
        /// Removes a piece of account data.
        DeleteData(DeleteData) = "delete_data",
        /// Asks for account data.
        RequestData(RequestData) = "request_data",
        /// Writes floors and manifest.
        UpdateManifest(UpdateManifest) = "update_manifest",
        /// Asks for what changed, in phases.
        PhasedSyncRequest(PhasedSyncRequest) = "phased_sync_request",
        /// Asks for chats by id.
        RequestChatContentBatch(RequestChatContentBatch) = "request_chat_content_batch",
        /// Asks for older chats.
        LoadMoreChats(LoadMoreChats) = "load_more_chats",
        /// Asks for embeds.
        RequestEmbed(RequestEmbed) = "request_embed",
        /// Asks which things changed.
        SyncStatusRequest(SyncStatusRequest) = "sync_status_request",
        /// Sends what was written offline.
        SyncOfflineChanges(SyncOfflineChanges) = "sync_offline_changes",
        /// Asks for devices and sessions.
        RequestDevices(RequestDevices) = "request_devices",
        /// Gives a device a label.
        LabelDevice(LabelDevice) = "label_device",
        /// Asks for an answer.
        ChatMessageAdded(ChatMessageAdded) = "chat_message_added",
        /// Gives the history of a turn.
        ChatHistory(ChatHistory) = "chat_history",
        /// Gives what the server asked for, by consent.
        ClientData(ClientData) = "client_data",
        /// Asks for the answer of a turn.
        ResumeAiTask(ResumeAiTask) = "resume_ai_task",
        /// Stops a turn.
        CancelAiTask(CancelAiTask) = "cancel_ai_task",
        /// Says that an answer is stored.
        AiResponseCompleted(AiResponseCompleted) = "ai_response_completed",
        /// Says whether a tool may work.
        DecideAiTask(DecideAiTask) = "decide_ai_task",
        /// Asks to forget what is kept of a chat beyond its words.
        ForgetRemembered(ForgetRemembered) = "forget_remembered",
    }

    /// What a server sends.
    pub enum ServerEvent {
        /// Answers `hello`.
        Ready(Ready) = "ready",
        /// Answers `ping`.
        Pong(Pong) = "pong",
        /// Answers any request that was not done.
        Refused(RefusedSent) = "refused",
        /// Answers a write that came too late.
        WriteConflict(WriteConflict) = "write_conflict",
        /// Answers a write to a chat.
        EncryptedMetadataStored(EncryptedMetadataStored) = "encrypted_metadata_stored",
        /// To other devices: a chat was written.
        ChatUpdated(ChatUpdated) = "chat_updated",
        /// To every device: a chat was deleted.
        ChatDeleted(ChatDeleted) = "chat_deleted",
        /// To other devices: a message was deleted.
        MessageDeleted(MessageDeleted) = "message_deleted",
        /// To every device: a draft was stored.
        ChatDraftUpdated(ChatDraftUpdated) = "chat_draft_updated",
        /// To every device: a draft was removed.
        DraftDeleted(DraftDeleted) = "draft_deleted",
        /// To every device: a piece of account data was stored or removed.
        DataUpdated(DataUpdated) = "data_updated",
        /// Answers `request_data`.
        DataRecords(DataRecords) = "data_records",
        /// In an export: answers that wait for a device.
        LettersWaiting(LettersWaiting) = "letters_waiting",
        /// In an export: what the server remembers of the safety of chats.
        SafetyRecords(SafetyRecords) = "safety_records",
        /// In an export: a snapshot that the account shares.
        SnapshotKept(SnapshotKept) = "snapshot_kept",
        /// In an export: what the server keeps of chats beyond their words.
        RememberedRecords(RememberedRecords) = "remembered_records",
        /// Answers `update_manifest`.
        ManifestStored(ManifestStored) = "manifest_stored",
        /// To other devices: credentials, rings, floors or manifest changed.
        AccountUpdated(AccountUpdated) = "account_updated",
        /// Begins the answers to `phased_sync_request`.
        AccountState(AccountState) = "account_state",
        /// Phase 1: the last opened chat.
        PhaseOne(ChatsSent) = "phase_1_last_chat_ready",
        /// Phase 2: the 20 most recent chats.
        PhaseTwo(ChatsSent) = "phase_2_last_20_chats_ready",
        /// Phase 3: the rest of the last 100 chats.
        PhaseThree(ChatsSent) = "phase_3_last_100_chats_ready",
        /// Ends the answers to `phased_sync_request`.
        PhasedSyncComplete(PhasedSyncComplete) = "phased_sync_complete",
        /// Answers `request_chat_content_batch`.
        ChatContentBatchResponse(ChatContentBatchResponse) = "chat_content_batch_response",
        /// Answers `load_more_chats`.
        LoadMoreChatsResponse(LoadMoreChatsResponse) = "load_more_chats_response",
        /// Answers `request_embed`.
        SendEmbedData(SendEmbedData) = "send_embed_data",
        /// Answers `sync_status_request`.
        SyncStatus(SyncStatus) = "sync_status",
        /// Answers `sync_offline_changes`.
        OfflineSyncComplete(OfflineSyncComplete) = "offline_sync_complete",
        /// Answers `request_devices`.
        Devices(Devices) = "devices",
        /// To every device: devices or sessions changed.
        DevicesChanged(DevicesChanged) = "devices_changed",
        /// The session is over.
        ForceLogout(ForceLogout) = "force_logout",
        /// A turn runs.
        AiTaskInitiated(AiTaskInitiated) = "ai_task_initiated",
        /// A turn waits.
        MessageQueued(MessageQueued) = "message_queued",
        /// Asks for the history of a turn.
        RequestChatHistory(RequestChatHistory) = "request_chat_history",
        /// Asks for something that only devices can read.
        RequestClientData(RequestClientData) = "request_client_data",
        /// What a turn is doing.
        PreprocessingStep(PreprocessingStep) = "preprocessing_step",
        /// An answer begins.
        AiTypingStarted(AiTypingStarted) = "ai_typing_started",
        /// The next words of an answer.
        AiMessageUpdate(AiMessageUpdate) = "ai_message_update",
        /// An answer is there.
        AiTypingEnded(AiTypingEnded) = "ai_typing_ended",
        /// A turn has no answer.
        AiTaskFailed(AiTaskFailed) = "ai_task_failed",
        /// What was made of a message and its answer.
        PostProcessingCompleted(PostProcessingCompleted) = "post_processing_completed",
        /// Answers `ai_response_completed`.
        AiResponseStorageConfirmed(AiResponseStorageConfirmed) = "ai_response_storage_confirmed",
        /// An answer that waited.
        PendingAiResponse(PendingAiResponse) = "pending_ai_response",
        /// A tool waits for the person's word.
        AiApprovalRequested(AiApprovalRequested) = "ai_approval_requested",
        /// Answers `forget_remembered`.
        RememberedForgotten(RememberedForgotten) = "remembered_forgotten",
    }
}

/// Names of the seed's events that have no meaning here. Nothing else may have them.
pub const RESERVED: &[&str] = &[
    "ai_background_response_completed",
    "app_settings_memories_confirmed",
    "cancel_skill",
    "chat_message_confirmed",
    "embed_update",
    "new_chat_message",
    "post_processing_metadata_stored",
    "skill_execution_status",
    "thinking_chunk",
    "thinking_complete",
    "update_post_processing_metadata",
];
