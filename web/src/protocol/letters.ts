// Letters: answers that came when no device was there, sealed to the account's mailbox.
//
// A device opens a letter with a key of its mailbox's ring, and believes it only if the chat's sealed head waits for that reply.

import { MAX_LETTERS, MAX_MESSAGE, MAX_RECORD } from "./limits";
import { type Value, list, object, optional } from "./shapes";
import { blob, chatId, flag, messageId, turnId, u64 } from "./values";

/** Letters that wait for a device. */
export const LettersWaiting = object("LettersWaiting", () => ({
  /** The letters, in the order of chat and turn. */
  letters: list(() => LetterSent, MAX_LETTERS),
  /** Whether more follow in another message. */
  more: flag,
}), { link: "letters_waiting" });
export type LettersWaiting = Value<typeof LettersWaiting>;

/** An answer that waits for a device. */
export const LetterSent = object("LetterSent", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn that it answers. */
  turn: turnId,
  /** The id that the client picked for the reply. */
  reply: messageId,
  /** The reply, sealed to the mailbox's public key. */
  letter: blob(MAX_MESSAGE),
  /** What came after the answer, sealed likewise. */
  more: optional(blob(MAX_RECORD)),
  /** When it was left, in milliseconds since 1970. */
  leftAt: u64,
}));
export type LetterSent = Value<typeof LetterSent>;
