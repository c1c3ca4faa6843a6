// Rings of keys, as they are sent.

import { MAX_KEY, MAX_RECORD, MAX_RING, MAX_STEPS } from "./limits";
import { type At, type Value, list, object, optional, words } from "./shapes";
import { chatId, digest, envelope, kid, publicKey, u32 } from "./values";

/** Whose ring. */
export const RingKind = words("RingKind", [
  /** A chat's. */
  "chat",
  /** The account's own. */
  "account",
  /** The mailbox's. */
  "box",
]);
export type RingKind = Value<typeof RingKind>;

/** An entry of a ring. It is taken only as the next one: `n` is the ring's length plus one, else `conflict`. */
export const KeyEntry = object("KeyEntry", () => ({
  /** Its number, from 1. */
  n: u32,
  /** The id of the key inside. */
  kid: kid,
  /** The ids of the sub-keys that seal: `msg`, `meta`, `embed` of a chat, `meta` of an account. */
  subs: list(() => kid, 3),
  /** The key, sealed under the account key. */
  sealed: envelope(MAX_KEY),
}));
export type KeyEntry = Value<typeof KeyEntry>;

/** Entries of one ring. */
export const RingRows = object("RingRows", () => ({
  /** Whose ring. */
  kind: RingKind,
  /** The chat; left out for the account's rings. */
  chat: optional(chatId),
  /** The entries. */
  entries: list(() => KeyEntry, MAX_RING),
}), { check: checkRows });
export type RingRows = Value<typeof RingRows>;

/** A new head or manifest, with what the server needs to check that it follows. */
export const HeadPut = object("HeadPut", () => ({
  /** The sealed head or manifest; its revision is one more than that of the one before. */
  envelope: envelope(MAX_RECORD),
  /** The digest of the list after this write; for a manifest, of the floors. */
  live: digest,
  /** The chain up to this one. */
  chain: digest,
}));
export type HeadPut = Value<typeof HeadPut>;

/** The newest entry of the mailbox's ring, with its public half. */
export const MailboxPut = object("MailboxPut", () => ({
  /** The next entry of the mailbox's ring. */
  entry: KeyEntry,
  /** The public key that the server seals replies to. */
  boxPub: publicKey,
}));
export type MailboxPut = Value<typeof MailboxPut>;

/** One write, as the server keeps it for good. */
export const StepSent = object("StepSent", () => ({
  /** The digest of the list after it. */
  live: digest,
  /** The hash of the envelope that was written. */
  envelope: digest,
}));
export type StepSent = Value<typeof StepSent>;

/** How what the server has follows from what the device has seen. */
export const TrailSent = object("TrailSent", () => ({
  /** The chain in the head or manifest that the device has seen. */
  chain: digest,
  /** Every write since, the newest last. */
  steps: list(() => StepSent, MAX_STEPS),
}));
export type TrailSent = Value<typeof TrailSent>;

function checkRows(rows: { kind: RingKind; chat?: unknown }, at: At): void {
  const isChat = rows.kind === "chat";
  if (isChat && rows.chat === undefined) at.field("chat").fail("is missing");
  if (!isChat && rows.chat !== undefined) at.field("chat").fail("expected a chat's ring, if there is a chat");
}
