// What a server keeps of a chat beyond its words, because the person switched that on for it.
//
// The switch is in the sealed chat, which a server cannot read; so each question says what is on, and the device asks the server to forget
// what is switched off. Easy to get wrong: leaving the list out. A question without it uses and keeps nothing of the kind, and leaves what
// there is; an empty list has it forgotten.

import { MAX_RECEIPT, MAX_RECORDS, MAX_REMEMBERED } from "./limits";
import { type Value, list, object, optional, words } from "./shapes";
import { chatId, text } from "./values";

/** What a server may keep of a chat. */
export const Remembered = words("Remembered", [
  /** Public concepts (rules, taxes, terms) that answers of the chat named, for its later answers. */
  "concepts",
]);
export type Remembered = Value<typeof Remembered>;

/** Asks to forget what is kept of a chat: the person switched it off. Answer: `remembered_forgotten`. */
export const ForgetRemembered = object("ForgetRemembered", () => ({
  /** The chat. */
  chat: chatId,
  /** What. */
  what: Remembered,
}), { link: "forget_remembered" });
export type ForgetRemembered = Value<typeof ForgetRemembered>;

/** It is forgotten: the keys that it was sealed under are destroyed. */
export const RememberedForgotten = object("RememberedForgotten", () => ({
  /** The chat. */
  chat: chatId,
  /** What. */
  what: Remembered,
  /** The receipt, as `confidant audit verify --receipt` reads it; left out if nothing was kept. */
  receipt: optional(text(MAX_RECEIPT)),
}), { link: "remembered_forgotten" });
export type RememberedForgotten = Value<typeof RememberedForgotten>;

/** What the server keeps of some chats beyond their words; in as many frames as it takes. */
export const RememberedRecords = object("RememberedRecords", () => ({
  /** The records, those of a chat in the order in which they were made. */
  records: list(() => RememberedSent, MAX_RECORDS),
}), { link: "remembered_records" });
export type RememberedRecords = Value<typeof RememberedRecords>;

/** One thing that the server keeps of a chat. */
export const RememberedSent = object("RememberedSent", () => ({
  /** The chat. */
  chat: chatId,
  /** What kind. */
  what: Remembered,
  /** The record in JSON. */
  record: text(MAX_REMEMBERED),
}));
export type RememberedSent = Value<typeof RememberedSent>;
