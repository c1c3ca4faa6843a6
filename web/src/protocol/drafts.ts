// Drafts and account data: records outside every list, whose own revision protects them.
//
// A draft is what was typed into a chat and not sent. Account data is settings, suggestions for new chats and the like, by kind and name.
// Both are written against the revision before; a device that is behind gets `write_conflict`.

import { MAX_DATA, MAX_DRAFT, MAX_RECORD } from "./limits";
import { type Value, list, object, optional } from "./shapes";
import { chatId, envelope, fieldName, flag, u32 } from "./values";

/** Stores a draft. At most every five seconds. Answer: `chat_draft_updated`. */
export const UpdateDraft = object("UpdateDraft", () => ({
  /** The chat. */
  chat: chatId,
  /** The draft's revision before; 0 if there is none. */
  expected: u32,
  /** The sealed draft. */
  draft: envelope(MAX_DRAFT),
}), { link: "update_draft" });
export type UpdateDraft = Value<typeof UpdateDraft>;

/** Removes a draft. Answer: `draft_deleted`. */
export const DeleteDraft = object("DeleteDraft", () => ({
  /** The chat. */
  chat: chatId,
  /** The draft's revision. */
  expected: u32,
}), { link: "delete_draft" });
export type DeleteDraft = Value<typeof DeleteDraft>;

/** A draft was stored: the answer to the device that wrote it, and the news for the others. */
export const ChatDraftUpdated = object("ChatDraftUpdated", () => ({
  /** The chat. */
  chat: chatId,
  /** The draft's revision now. */
  draftV: u32,
  /** The sealed draft; left out for the device that wrote it. */
  draft: optional(envelope(MAX_DRAFT)),
}), { link: "chat_draft_updated" });
export type ChatDraftUpdated = Value<typeof ChatDraftUpdated>;

/** A draft was removed. */
export const DraftDeleted = object("DraftDeleted", () => ({
  /** The chat. */
  chat: chatId,
  /** Its last revision; the next draft has a greater one. */
  draftV: u32,
}), { link: "draft_deleted" });
export type DraftDeleted = Value<typeof DraftDeleted>;

/** Stores a piece of account data. Answer: `data_updated`. */
export const UpdateData = object("UpdateData", () => ({
  /** What kind: `settings`, `suggestion`. */
  kind: fieldName,
  /** Its name. */
  name: fieldName,
  /** Its revision before; 0 for a new one. */
  expected: u32,
  /** The sealed data. */
  data: envelope(MAX_RECORD),
}), { link: "update_data" });
export type UpdateData = Value<typeof UpdateData>;

/** Removes a piece of account data. Answer: `data_updated` without data. */
export const DeleteData = object("DeleteData", () => ({
  /** What kind. */
  kind: fieldName,
  /** Its name. */
  name: fieldName,
  /** Its revision. */
  expected: u32,
}), { link: "delete_data" });
export type DeleteData = Value<typeof DeleteData>;

/** Asks for account data. Answer: `data_records`, perhaps several. */
export const RequestData = object("RequestData", () => ({
  /** Only this kind. */
  kind: optional(fieldName),
}), { link: "request_data" });
export type RequestData = Value<typeof RequestData>;

/** Pieces of account data. */
export const DataRecords = object("DataRecords", () => ({
  /** The pieces. */
  records: list(() => DataSent, MAX_DATA),
  /** Whether more follow in another message. */
  more: flag,
}), { link: "data_records" });
export type DataRecords = Value<typeof DataRecords>;

/** A piece of account data as the server has it. */
export const DataSent = object("DataSent", () => ({
  /** What kind. */
  kind: fieldName,
  /** Its name. */
  name: fieldName,
  /** The sealed data. */
  data: envelope(MAX_RECORD),
}));
export type DataSent = Value<typeof DataSent>;

/**
 * A piece of account data was stored or removed: the answer to the device that did it, and the news for the
 * others.
 */
export const DataUpdated = object("DataUpdated", () => ({
  /** What kind. */
  kind: fieldName,
  /** Its name. */
  name: fieldName,
  /** Its revision now; of a removed one, the last. */
  rev: u32,
  /** Whether it was removed. */
  removed: flag,
  /** The sealed data; left out when it was removed, and for the device that wrote it. */
  data: optional(envelope(MAX_RECORD)),
}), { link: "data_updated" });
export type DataUpdated = Value<typeof DataUpdated>;
