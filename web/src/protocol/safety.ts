// What a server remembers of a chat's safety, as an export has it: scores and flags, without a word of the chat.
//
// It is the server's own record, sealed for it alone, so it comes opened. Easy to get wrong: taking it for the chat's. A device neither needs
// nor checks it.

import { MAX_BATCH, MAX_SAFETY } from "./limits";
import { type Value, list, object, optional } from "./shapes";
import { chatId, text } from "./values";

/** What the server remembers of the safety of some chats; those that it remembers nothing of are left out. */
export const SafetyRecords = object("SafetyRecords", () => ({
  /** The records. */
  records: list(() => SafetySent, MAX_BATCH),
}), { link: "safety_records" });
export type SafetyRecords = Value<typeof SafetyRecords>;

/** What the server remembers of a chat's safety. */
export const SafetySent = object("SafetySent", () => ({
  /** The chat. */
  chat: chatId,
  /** The record in JSON: running scores, and whether it was flagged or ended. Left out if it cannot be opened. */
  record: optional(text(MAX_SAFETY)),
}));
export type SafetySent = Value<typeof SafetySent>;
