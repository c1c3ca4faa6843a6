// Writes to chats: one event that changes a chat, its answers, and what other devices hear of it.
//
// Storing a message, an answer, a title or a summary is the same act: items, and the head that lists them, in one write. Revisions and key
// ids are not sent beside an envelope: its header has them. Easy to get wrong: a write in two halves. All of it is stored, or nothing.

import type { Sealed } from "../format/envelope";
import type { ItemId } from "../format/ids";
import { ManifestPut } from "./account";
import { HeadPut, KeyEntry } from "./keys";
import { MAX_EMBED, MAX_FLOOR, MAX_MESSAGE, MAX_PUTS, MAX_RECORD } from "./limits";
import { type At, type Value, list, object, optional } from "./shapes";
import { chatId, digest, embedId, envelope, itemId, messageId, shelf, u32, u64 } from "./values";

/**
 * Writes to a chat: items, removals, and the head after them. All of it is stored, or nothing.
 *
 * Creates the chat if `expected` is 0; then the first entry of its ring, its floor and the manifest have to be
 * there. A title is the field `meta:title`. The answer is `encrypted_metadata_stored`, `write_conflict` or
 * `refused`; the account's other devices get `chat_updated`.
 */
export const EncryptedChatMetadata = object("EncryptedChatMetadata", () => ({
  /** The chat. */
  chat: chatId,
  /** The revision of the head before this write; 0 creates the chat. */
  expected: u32,
  /** The next entry of the chat's ring. */
  ring: optional(KeyEntry),
  /** The head after this write. */
  head: HeadPut,
  /** Items that are new or changed. */
  puts: list(() => Put, MAX_PUTS),
  /** Items that are removed. A removed id cannot be used again. */
  removes: list(() => itemId, MAX_PUTS),
  /** The floor of the chat's shelf. */
  floor: optional(FloorPut),
  /** The manifest; it has to be there with a floor, and only then. */
  manifest: optional(ManifestPut),
}), { link: "encrypted_chat_metadata", check: checkWrite });
export type EncryptedChatMetadata = Value<typeof EncryptedChatMetadata>;

/** An item that is new or changed. */
export const Put = object("Put", () => ({
  /** Which. */
  item: itemId,
  /** Its revision before; 0 for a new one. */
  expected: u32,
  /** The sealed item: at most 262,144 bytes for a message, 65,536 for a field. */
  envelope: envelope(MAX_EMBED),
}), { check: checkPut });
export type Put = Value<typeof Put>;

/** A floor that is written. */
export const FloorPut = object("FloorPut", () => ({
  /** Which of the sixteen. */
  shelf: shelf,
  /** Its revision before; 0 for the first. */
  expected: u32,
  /** The sealed floor. */
  envelope: envelope(MAX_FLOOR),
}));
export type FloorPut = Value<typeof FloorPut>;

/** The write was stored. */
export const EncryptedMetadataStored = object("EncryptedMetadataStored", () => ({
  /** The chat. */
  chat: chatId,
  /** The revision of its head now. */
  messagesV: u32,
  /** How often its title changed. */
  titleV: u32,
  /** Where the server put new items. */
  placed: list(() => Placed, MAX_PUTS),
  /** When it was stored, in milliseconds since 1970. */
  updatedAt: u64,
}), { link: "encrypted_metadata_stored" });
export type EncryptedMetadataStored = Value<typeof EncryptedMetadataStored>;

/** Where the server put an item: a hint for the order of sending, never the order of showing. */
export const Placed = object("Placed", () => ({
  /** The item. */
  item: itemId,
  /** Its number in the chat. */
  seq: u64,
}));
export type Placed = Value<typeof Placed>;

/**
 * Another device wrote first; nothing was stored. Load what is newer and write again.
 *
 * Fields that say nothing about the request are left out. If `head` is the hash of the head that was sent, the
 * write was stored before and only its answer was lost.
 */
export const WriteConflict = object("WriteConflict", () => ({
  /** The chat. */
  chat: optional(chatId),
  /** The revision of the chat's head now; 0 if there is no such chat. */
  messagesV: optional(u32),
  /** The hash of the head's envelope now. */
  head: optional(digest),
  /** How many entries the ring has now. */
  ring: optional(u32),
  /** The revision of the chat's draft now. */
  draftV: optional(u32),
  /** The revision of the manifest now. */
  manifest: optional(u32),
  /** The revision of the piece of account data now. */
  data: optional(u32),
}), { link: "write_conflict" });
export type WriteConflict = Value<typeof WriteConflict>;

/** Another device of this account wrote to a chat. Ciphertext only. */
export const ChatUpdated = object("ChatUpdated", () => ({
  /** The chat. */
  chat: chatId,
  /** The revision of its head before. */
  before: u32,
  /** How often its title changed. */
  titleV: u32,
  /** The new entry of its ring. */
  ring: optional(KeyEntry),
  /** The new head. */
  head: HeadPut,
  /** Items that are new or changed. */
  items: list(() => ItemSent, MAX_PUTS),
  /** Items that were removed. */
  removed: list(() => itemId, MAX_PUTS),
  /** When, in milliseconds since 1970. */
  updatedAt: u64,
}), { link: "chat_updated", check: checkUpdated });
export type ChatUpdated = Value<typeof ChatUpdated>;

/** An item as the server has it. */
export const ItemSent = object("ItemSent", () => ({
  /** Which. */
  item: itemId,
  /** Its number in the chat. */
  seq: u64,
  /** The hash of its envelope. */
  hash: digest,
  /**
   * The sealed item. Left out for embeds, which `request_embed` fetches, and where the frame would be too large:
   * then ask with `request_chat_content_batch`.
   */
  envelope: optional(envelope(MAX_EMBED)),
}), { check: checkItem });
export type ItemSent = Value<typeof ItemSent>;

/** Deletes a chat, with the floor and manifest that no longer list it. Answer: `chat_deleted`, to every device. */
export const DeleteChat = object("DeleteChat", () => ({
  /** The chat. */
  chat: chatId,
  /** The revision of its head. */
  expected: u32,
  /** The floor of its shelf, without it. */
  floor: FloorPut,
  /** The manifest. */
  manifest: ManifestPut,
}), { link: "delete_chat" });
export type DeleteChat = Value<typeof DeleteChat>;

/** A chat was deleted. */
export const ChatDeleted = object("ChatDeleted", () => ({
  /** The chat. */
  chat: chatId,
}), { link: "chat_deleted" });
export type ChatDeleted = Value<typeof ChatDeleted>;

/** Deletes a message and what it shows: a write with nothing but removals, answered like one. */
export const DeleteMessage = object("DeleteMessage", () => ({
  /** The chat. */
  chat: chatId,
  /** The revision of the head before. */
  expected: u32,
  /** The message. */
  message: messageId,
  /** Embeds that no other message shows. */
  embeds: list(() => embedId, 900),
  /** The head after it. */
  head: HeadPut,
  /** The next entry of the chat's ring. */
  ring: optional(KeyEntry),
}), { link: "delete_message" });
export type DeleteMessage = Value<typeof DeleteMessage>;

/** A message was deleted on another device. */
export const MessageDeleted = object("MessageDeleted", () => ({
  /** The chat. */
  chat: chatId,
  /** The message. */
  message: messageId,
  /** Embeds that went with it. */
  embeds: list(() => embedId, 900),
  /** The new head. */
  head: HeadPut,
  /** The new entry of the chat's ring. */
  ring: optional(KeyEntry),
}), { link: "message_deleted" });
export type MessageDeleted = Value<typeof MessageDeleted>;

/** Which chat this device shows: what the next device gets first. Not answered. */
export const SetActiveChat = object("SetActiveChat", () => ({
  /** The chat; left out when none is open. */
  chat: optional(chatId),
}), { link: "set_active_chat" });
export type SetActiveChat = Value<typeof SetActiveChat>;

/** Whether a write changes the chat's title, so that `titleV` grows. */
export function changesTitle(write: EncryptedChatMetadata): boolean {
  return write.puts.some((put) => put.item === TITLE_ITEM) || write.removes.some((item) => item === TITLE_ITEM);
}

const TITLE_ITEM = "meta:title";

/** How many bytes the envelope of such an item may have. */
export function itemLimit(item: ItemId): number {
  if (item.startsWith("msg_")) return MAX_MESSAGE;
  return item.startsWith("emb_") ? MAX_EMBED : MAX_RECORD;
}

function checkPut(put: { item: ItemId; envelope: Sealed }, at: At): void {
  checkSize(put.item, put.envelope, at);
}

function checkItem(sent: { item: ItemId; envelope?: Sealed | undefined }, at: At): void {
  if (sent.envelope !== undefined) checkSize(sent.item, sent.envelope, at);
}

function checkSize(item: ItemId, sealed: Sealed, at: At): void {
  const limit = itemLimit(item);
  if (sealed.length > limit) at.field("envelope").fail(`has more than ${limit} bytes`);
}

interface WriteShape {
  expected: number;
  ring?: unknown;
  puts: readonly { item: ItemId }[];
  removes: readonly ItemId[];
  floor?: unknown;
  manifest?: unknown;
}

function checkWrite(write: WriteShape, at: At): void {
  const [hasFloor, hasManifest] = [write.floor !== undefined, write.manifest !== undefined];
  if (hasFloor !== hasManifest) at.field("manifest").fail("expected there exactly if the floor is");
  if (write.expected === 0 && !hasFloor) at.field("floor").fail("is missing");
  if (write.expected === 0 && write.ring === undefined) at.field("ring").fail("is missing");
  checkOnce("removes", [...write.puts.map((put) => put.item), ...write.removes], at);
}

function checkUpdated(update: { items: readonly { item: ItemId }[]; removed: readonly ItemId[] }, at: At): void {
  checkOnce("removed", [...update.items.map((sent) => sent.item), ...update.removed], at);
}

/** Each item once: it is put or removed, not both. */
function checkOnce(field: string, items: ItemId[], at: At): void {
  if (new Set(items).size !== items.length) at.field(field).fail("names an item twice");
}
