// Every event of the socket, by who sends it.
//
// Easy to get wrong: an event that a reader does not know. It is malformed, and the page asks to be loaded anew.

import { ForceLogout, ManifestStored, UpdateManifest } from "./account";
import {
  AiApprovalRequested,
  AiMessageUpdate,
  AiResponseCompleted,
  AiResponseStorageConfirmed,
  AiTaskFailed,
  AiTaskInitiated,
  AiTypingEnded,
  AiTypingStarted,
  CancelAiTask,
  ChatHistory,
  ChatMessageAdded,
  ClientData,
  DecideAiTask,
  MessageQueued,
  PendingAiResponse,
  PostProcessingCompleted,
  PreprocessingStep,
  RequestChatHistory,
  RequestClientData,
  ResumeAiTask,
} from "./answers";
import {
  ChatDeleted,
  ChatUpdated,
  DeleteChat,
  DeleteMessage,
  EncryptedChatMetadata,
  EncryptedMetadataStored,
  MessageDeleted,
  SetActiveChat,
  WriteConflict,
} from "./chats";
import { Devices, DevicesChanged, LabelDevice, RequestDevices } from "./devices";
import {
  ChatDraftUpdated,
  DataRecords,
  DataUpdated,
  DeleteData,
  DeleteDraft,
  DraftDeleted,
  RequestData,
  UpdateData,
  UpdateDraft,
} from "./drafts";
import { RefusedSent } from "./errors";
import { LettersWaiting } from "./letters";
import { ForgetRemembered, RememberedForgotten, RememberedRecords } from "./remembered";
import { SafetyRecords } from "./safety";
import { type Value, events } from "./shapes";
import { SnapshotKept } from "./snapshots";
import {
  AccountState,
  AccountUpdated,
  ChatContentBatchResponse,
  ChatsSent,
  Hello,
  LoadMoreChats,
  LoadMoreChatsResponse,
  OfflineSyncComplete,
  PhasedSyncComplete,
  PhasedSyncRequest,
  Ping,
  Pong,
  Ready,
  RequestChatContentBatch,
  RequestEmbed,
  SendEmbedData,
  SyncOfflineChanges,
  SyncStatus,
  SyncStatusRequest,
} from "./sync";

/** What a client sends. */
export const ClientEvent = events(() => ({
  /** Opens the socket. */
  hello: Hello,
  /** Keeps the socket open. */
  ping: Ping,
  /** Writes to a chat. */
  encrypted_chat_metadata: EncryptedChatMetadata,
  /** Deletes a chat. */
  delete_chat: DeleteChat,
  /** Deletes a message. */
  delete_message: DeleteMessage,
  /** Says which chat is shown. */
  set_active_chat: SetActiveChat,
  /** Stores a draft. */
  update_draft: UpdateDraft,
  /** Removes a draft. */
  delete_draft: DeleteDraft,
  /** Stores a piece of account data. */
  update_data: UpdateData,
  /** Removes a piece of account data. */
  delete_data: DeleteData,
  /** Asks for account data. */
  request_data: RequestData,
  /** Writes floors and manifest. */
  update_manifest: UpdateManifest,
  /** Asks for what changed, in phases. */
  phased_sync_request: PhasedSyncRequest,
  /** Asks for chats by id. */
  request_chat_content_batch: RequestChatContentBatch,
  /** Asks for older chats. */
  load_more_chats: LoadMoreChats,
  /** Asks for embeds. */
  request_embed: RequestEmbed,
  /** Asks which things changed. */
  sync_status_request: SyncStatusRequest,
  /** Sends what was written offline. */
  sync_offline_changes: SyncOfflineChanges,
  /** Asks for devices and sessions. */
  request_devices: RequestDevices,
  /** Gives a device a label. */
  label_device: LabelDevice,
  /** Asks for an answer. */
  chat_message_added: ChatMessageAdded,
  /** Gives the history of a turn. */
  chat_history: ChatHistory,
  /** Gives what the server asked for, by consent. */
  client_data: ClientData,
  /** Asks for the answer of a turn. */
  resume_ai_task: ResumeAiTask,
  /** Stops a turn. */
  cancel_ai_task: CancelAiTask,
  /** Says that an answer is stored. */
  ai_response_completed: AiResponseCompleted,
  /** Says whether a tool may work. */
  decide_ai_task: DecideAiTask,
  /** Asks to forget what is kept of a chat beyond its words. */
  forget_remembered: ForgetRemembered,
}));
export type ClientEvent = Value<typeof ClientEvent>;

/** What a server sends. */
export const ServerEvent = events(() => ({
  /** Answers `hello`. */
  ready: Ready,
  /** Answers `ping`. */
  pong: Pong,
  /** Answers any request that was not done. */
  refused: RefusedSent,
  /** Answers a write that came too late. */
  write_conflict: WriteConflict,
  /** Answers a write to a chat. */
  encrypted_metadata_stored: EncryptedMetadataStored,
  /** To other devices: a chat was written. */
  chat_updated: ChatUpdated,
  /** To every device: a chat was deleted. */
  chat_deleted: ChatDeleted,
  /** To other devices: a message was deleted. */
  message_deleted: MessageDeleted,
  /** To every device: a draft was stored. */
  chat_draft_updated: ChatDraftUpdated,
  /** To every device: a draft was removed. */
  draft_deleted: DraftDeleted,
  /** To every device: a piece of account data was stored or removed. */
  data_updated: DataUpdated,
  /** Answers `request_data`. */
  data_records: DataRecords,
  /** In an export: answers that wait for a device. */
  letters_waiting: LettersWaiting,
  /** In an export: what the server remembers of the safety of chats. */
  safety_records: SafetyRecords,
  /** In an export: a snapshot that the account shares. */
  snapshot_kept: SnapshotKept,
  /** In an export: what the server keeps of chats beyond their words. */
  remembered_records: RememberedRecords,
  /** Answers `update_manifest`. */
  manifest_stored: ManifestStored,
  /** To other devices: credentials, rings, floors or manifest changed. */
  account_updated: AccountUpdated,
  /** Begins the answers to `phased_sync_request`. */
  account_state: AccountState,
  /** Phase 1: the last opened chat. */
  phase_1_last_chat_ready: ChatsSent,
  /** Phase 2: the 20 most recent chats. */
  phase_2_last_20_chats_ready: ChatsSent,
  /** Phase 3: the rest of the last 100 chats. */
  phase_3_last_100_chats_ready: ChatsSent,
  /** Ends the answers to `phased_sync_request`. */
  phased_sync_complete: PhasedSyncComplete,
  /** Answers `request_chat_content_batch`. */
  chat_content_batch_response: ChatContentBatchResponse,
  /** Answers `load_more_chats`. */
  load_more_chats_response: LoadMoreChatsResponse,
  /** Answers `request_embed`. */
  send_embed_data: SendEmbedData,
  /** Answers `sync_status_request`. */
  sync_status: SyncStatus,
  /** Answers `sync_offline_changes`. */
  offline_sync_complete: OfflineSyncComplete,
  /** Answers `request_devices`. */
  devices: Devices,
  /** To every device: devices or sessions changed. */
  devices_changed: DevicesChanged,
  /** The session is over. */
  force_logout: ForceLogout,
  /** A turn runs. */
  ai_task_initiated: AiTaskInitiated,
  /** A turn waits. */
  message_queued: MessageQueued,
  /** Asks for the history of a turn. */
  request_chat_history: RequestChatHistory,
  /** Asks for something that only devices can read. */
  request_client_data: RequestClientData,
  /** What a turn is doing. */
  preprocessing_step: PreprocessingStep,
  /** An answer begins. */
  ai_typing_started: AiTypingStarted,
  /** The next words of an answer. */
  ai_message_update: AiMessageUpdate,
  /** An answer is there. */
  ai_typing_ended: AiTypingEnded,
  /** A turn has no answer. */
  ai_task_failed: AiTaskFailed,
  /** What was made of a message and its answer. */
  post_processing_completed: PostProcessingCompleted,
  /** Answers `ai_response_completed`. */
  ai_response_storage_confirmed: AiResponseStorageConfirmed,
  /** An answer that waited. */
  pending_ai_response: PendingAiResponse,
  /** A tool waits for the person's word. */
  ai_approval_requested: AiApprovalRequested,
  /** Answers `forget_remembered`. */
  remembered_forgotten: RememberedForgotten,
}));
export type ServerEvent = Value<typeof ServerEvent>;

/** Names that have no meaning here. Nothing else may have them. */
export const RESERVED: readonly string[] = [
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
