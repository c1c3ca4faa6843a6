// Catching up: what a device has, what changed, and the rest as it happens.
//
//   phased_sync_request ──▶ account_state, phase 1, 2, 3, phased_sync_complete
//   sync_status_request ──▶ which things changed since a `seq`
//
// Easy to get wrong: a part for the whole. What comes in several messages is checked after the last one.

import { EncryptedChatMetadata, EncryptedMetadataStored, ItemSent, WriteConflict } from "./chats";
import { ChatDraftUpdated, UpdateDraft } from "./drafts";
import { RefusedSent } from "./errors";
import { KeyEntry, TrailSent } from "./keys";
import {
  MAX_BATCH,
  MAX_CHANGES,
  MAX_CHATS,
  MAX_DRAFT,
  MAX_FLOOR,
  MAX_ITEMS,
  MAX_OFFLINE,
  MAX_RECORD,
  MAX_RESULTS,
  MAX_RING,
  SHELVES,
} from "./limits";
import { type Value, choice, list, map, object, optional, words } from "./shapes";
import {
  accountId,
  chatId,
  deviceId,
  digest,
  embedId,
  envelope,
  fieldName,
  flag,
  itemId,
  publicKey,
  secret,
  shelf,
  u32,
  u64,
} from "./values";

/** How far to sync. */
export const Phase = words("Phase", [
  /** The account and the last opened chat. */
  "last_chat",
  /** The 20 most recent chats. */
  "recent",
  /** The rest of the last 100 chats. */
  "rest",
  /** All three, in this order. */
  "all",
]);
export type Phase = Value<typeof Phase>;

/** What changed. */
export const Changed = choice("Changed", () => ({
  /** This chat was written or created. */
  chat: chatId,
  /** This chat was deleted. */
  chatDeleted: chatId,
  /** The draft of this chat. */
  draft: chatId,
  /** A piece of account data. */
  data: DataName,
  /** Credentials, rings, floors or manifest; the manifest's revision now. */
  account: u32,
  /** This device, or its sessions. */
  device: deviceId,
}));
export type Changed = Value<typeof Changed>;

/** What became of a write that was made offline. */
export const OfflineResult = choice("OfflineResult", () => ({
  /** It was stored. */
  stored: EncryptedMetadataStored,
  /** The draft was stored. */
  draft: ChatDraftUpdated,
  /** Another device wrote first. Keep this one as a conflicted copy, where a person sees it. */
  conflict: WriteConflict,
  /** It was refused. */
  refused: RefusedSent,
}));
export type OfflineResult = Value<typeof OfflineResult>;

/** The first message on a socket, within five seconds. Answer: `ready`. */
export const Hello = object("Hello", () => ({
  /** The version of this protocol, 1. */
  v: u32,
  /** The ticket from `POST /chats/ticket`: good once, for 30 seconds, for this session and origin. */
  ticket: secret,
  /** The last `seq` that this device has handled, which the server notes; left out by a new device. */
  seq: optional(u64),
}), { link: "hello" });
export type Hello = Value<typeof Hello>;

/** The socket is open for requests. */
export const Ready = object("Ready", () => ({
  /** The version of this protocol, 1. */
  v: u32,
  /** Whose socket it is. */
  account: accountId,
  /** Which device, as the server knows it. */
  device: deviceId,
  /** The newest `seq` of the account. */
  seq: u64,
}), { link: "ready" });
export type Ready = Value<typeof Ready>;

/** Asks whether the other side is there. Answer: `pong`. */
export const Ping = object("Ping", () => ({
}), { link: "ping" });
export type Ping = Value<typeof Ping>;

/** The other side is there. */
export const Pong = object("Pong", () => ({
}), { link: "pong" });
export type Pong = Value<typeof Pong>;

/** What a device has of a chat, or what the server has. */
export const Versions = object("Versions", () => ({
  /** The revision of its head. */
  messagesV: u32,
  /** How often its title changed. */
  titleV: u32,
  /** The revision of its draft; 0 if there is none. */
  draftV: u32,
}));
export type Versions = Value<typeof Versions>;

/** Asks for what changed. Answers: `account_state`, then the events of the phases, then `phased_sync_complete`. */
export const PhasedSyncRequest = object("PhasedSyncRequest", () => ({
  /** How far. */
  phase: Phase,
  /** The revision of the manifest that the device has; 0 if none. */
  manifest: u32,
  /** What the device has of each chat. */
  clientChatVersions: map(chatId, () => Versions, MAX_CHATS),
}), { link: "phased_sync_request" });
export type PhasedSyncRequest = Value<typeof PhasedSyncRequest>;

/** The account: rings, manifest, floors, and which chats there are. */
export const AccountState = object("AccountState", () => ({
  /** The revision of the account. */
  accountRev: u32,
  /** The generation of the account key. */
  generation: u32,
  /** The account's ring. */
  ring: list(() => KeyEntry, MAX_RING),
  /** The mailbox's ring. */
  mailbox: list(() => KeyEntry, MAX_RING),
  /** The public key that the server seals replies to. */
  boxPub: publicKey,
  /** The sealed manifest. */
  manifest: envelope(MAX_RECORD),
  /** How it follows from the one that the device has; left out if the device has none or the same. */
  trail: optional(TrailSent),
  /** Floors that the device does not have; those with an unchanged hash may be left out. */
  floors: list(() => FloorSent, SHELVES),
  /** Every chat of the account. */
  chats: map(chatId, () => Versions, MAX_CHATS),
  /**
   * Whether more of it follows, in another one of these: floors, chats and the steps of the trail are joined.
   * Check it after the last part.
   */
  more: flag,
}), { link: "account_state" });
export type AccountState = Value<typeof AccountState>;

/** A floor as the server has it. */
export const FloorSent = object("FloorSent", () => ({
  /** Which of the sixteen. */
  shelf: shelf,
  /** The sealed floor. */
  envelope: envelope(MAX_FLOOR),
}));
export type FloorSent = Value<typeof FloorSent>;

/** Chats, whole or since what the device has. */
export const ChatsSent = object("ChatsSent", () => ({
  /** The chats. */
  chats: list(() => ChatSent, MAX_BATCH),
  /** Whether more of this phase follow in another message. */
  more: flag,
}));
export type ChatsSent = Value<typeof ChatsSent>;

/** A chat, whole or since what the device has. */
export const ChatSent = object("ChatSent", () => ({
  /** The chat. */
  chat: chatId,
  /** What the server has of it. */
  versions: Versions,
  /** Whether this is everything: the device forgets what is not listed. Else it is what changed. */
  whole: flag,
  /**
   * Whether more of this chat follows, in the next one of these: items, removals and the steps of the trail are
   * joined. Check it after the last part.
   */
  more: flag,
  /** The chat's ring. */
  ring: list(() => KeyEntry, MAX_RING),
  /** The sealed head. */
  head: envelope(MAX_RECORD),
  /**
   * How the head follows from the one that the device has; left out if it has none or the same. A device that has
   * none, and a head that is ahead of the chat's floor, asks again from the floor's revision on.
   */
  trail: optional(TrailSent),
  /** Items. */
  items: list(() => ItemSent, MAX_ITEMS),
  /** Items that were removed since. */
  removed: list(() => Removed, MAX_ITEMS),
  /** The sealed draft, if there is one that the device does not have. */
  draft: optional(envelope(MAX_DRAFT)),
  /** When it was created, in milliseconds since 1970. */
  createdAt: u64,
  /** When it was last written, in milliseconds since 1970. */
  updatedAt: u64,
  /** When a device last opened it, in milliseconds since 1970. */
  openedAt: optional(u64),
}));
export type ChatSent = Value<typeof ChatSent>;

/** An item that was removed. */
export const Removed = object("Removed", () => ({
  /** Which. */
  item: itemId,
  /** The revision of the head that removed it. */
  rev: u32,
}));
export type Removed = Value<typeof Removed>;

/** The phases that were asked for are done. */
export const PhasedSyncComplete = object("PhasedSyncComplete", () => ({
  /** How far. */
  phase: Phase,
  /** Everything up to this `seq` was sent; what comes later comes as an event. */
  seq: u64,
  /** Whether there are older chats, for `load_more_chats`. */
  older: flag,
}), { link: "phased_sync_complete" });
export type PhasedSyncComplete = Value<typeof PhasedSyncComplete>;

/** Asks for chats by id, since what the device has. Answer: `chat_content_batch_response`, perhaps several. */
export const RequestChatContentBatch = object("RequestChatContentBatch", () => ({
  /** The chats, with what the device has of each; zeros for nothing. */
  chats: map(chatId, () => Versions, MAX_BATCH),
}), { link: "request_chat_content_batch" });
export type RequestChatContentBatch = Value<typeof RequestChatContentBatch>;

/** Chats that were asked for. */
export const ChatContentBatchResponse = object("ChatContentBatchResponse", () => ({
  /** The chats. */
  chats: list(() => ChatSent, MAX_BATCH),
  /** Those that are not there. */
  missing: list(() => chatId, MAX_BATCH),
  /** Whether more follow in another message. */
  more: flag,
}), { link: "chat_content_batch_response" });
export type ChatContentBatchResponse = Value<typeof ChatContentBatchResponse>;

/** Asks for chats that are older than one. Answer: `load_more_chats_response`. */
export const LoadMoreChats = object("LoadMoreChats", () => ({
  /** The oldest chat that the device has; left out to begin with the newest. */
  before: optional(chatId),
  /** How many, at most 100. */
  limit: u32,
}), { link: "load_more_chats", check: (request, at) => {
      if (request.limit > MAX_BATCH) at.field("limit").fail(`is more than ${MAX_BATCH}`);
    } });
export type LoadMoreChats = Value<typeof LoadMoreChats>;

/** Older chats, the newest first. */
export const LoadMoreChatsResponse = object("LoadMoreChatsResponse", () => ({
  /** The chats. */
  chats: list(() => ChatSent, MAX_BATCH),
  /** Whether more of these follow in another message. */
  more: flag,
  /** Whether there are chats older than these. */
  older: flag,
}), { link: "load_more_chats_response" });
export type LoadMoreChatsResponse = Value<typeof LoadMoreChatsResponse>;

/** Asks for embeds, which sync leaves out. Answer: `send_embed_data`, perhaps several. */
export const RequestEmbed = object("RequestEmbed", () => ({
  /** The chat. */
  chat: chatId,
  /** The embeds. */
  embeds: list(() => embedId, MAX_BATCH),
}), { link: "request_embed" });
export type RequestEmbed = Value<typeof RequestEmbed>;

/** Embeds that were asked for. */
export const SendEmbedData = object("SendEmbedData", () => ({
  /** The chat. */
  chat: chatId,
  /** The embeds. */
  items: list(() => ItemSent, MAX_BATCH),
  /** Those that are not there. */
  missing: list(() => embedId, MAX_BATCH),
  /** Whether more follow in another message. */
  more: flag,
}), { link: "send_embed_data" });
export type SendEmbedData = Value<typeof SendEmbedData>;

/** Asks what changed since a `seq`. Answer: `sync_status`. */
export const SyncStatusRequest = object("SyncStatusRequest", () => ({
  /** The last `seq` that this device has handled. */
  since: u64,
}), { link: "sync_status_request" });
export type SyncStatusRequest = Value<typeof SyncStatusRequest>;

/** What changed, in order. */
export const SyncStatus = object("SyncStatus", () => ({
  /** The newest `seq` of the account. */
  seq: u64,
  /** The changes. */
  changes: list(() => Change, MAX_CHANGES),
  /** Whether there are more, after the last of these. */
  more: flag,
  /** Whether the server no longer knows all changes since: sync in phases instead. */
  gap: flag,
}), { link: "sync_status" });
export type SyncStatus = Value<typeof SyncStatus>;

/** A change of the account. */
export const Change = object("Change", () => ({
  /** Its number. */
  seq: u64,
  /** What changed. */
  what: Changed,
}));
export type Change = Value<typeof Change>;

/** A piece of account data, by its name. */
export const DataName = object("DataName", () => ({
  /** What kind. */
  kind: fieldName,
  /** Its name. */
  name: fieldName,
}));
export type DataName = Value<typeof DataName>;

/** Sends what was written offline, in order. Each is stored or not by itself. Answer: `offline_sync_complete`. */
export const SyncOfflineChanges = object("SyncOfflineChanges", () => ({
  /** Writes to chats. */
  writes: list(() => EncryptedChatMetadata, MAX_OFFLINE),
  /** Drafts. */
  drafts: list(() => UpdateDraft, MAX_OFFLINE),
}), { link: "sync_offline_changes" });
export type SyncOfflineChanges = Value<typeof SyncOfflineChanges>;

/** What became of each, writes first, in the order in which they were sent. */
export const OfflineSyncComplete = object("OfflineSyncComplete", () => ({
  /** The results. */
  results: list(() => OfflineResult, MAX_RESULTS),
}), { link: "offline_sync_complete" });
export type OfflineSyncComplete = Value<typeof OfflineSyncComplete>;

/** Another device changed credentials, rings, floors or manifest. Sync to get them. */
export const AccountUpdated = object("AccountUpdated", () => ({
  /** The revision of the account now. */
  accountRev: u32,
  /** The generation of the account key now. */
  generation: u32,
  /** The revision of the manifest now. */
  manifest: u32,
  /** The hash of the manifest's envelope. */
  envelope: digest,
}), { link: "account_updated" });
export type AccountUpdated = Value<typeof AccountUpdated>;
