// A new account key, in steps that end in one commit.
//
//   begin (proof)   rings are frozen, other sessions closed
//   stage, stage …  every entry sealed again; nothing counts yet
//   commit (proof)  all of it at once, if nothing is missing and nobody changed the account; else `conflict`

import { NewCredential } from "./account";
import { HeadPut, KeyEntry, MailboxPut, RingRows } from "./keys";
import { MAX_CREDENTIALS, MAX_FRAME, MAX_RINGS, MAX_SIGNED, SHELVES } from "./limits";
import { type Value, list, object } from "./shapes";
import { FloorSent } from "./sync";
import { digest, u32, u64 } from "./values";

/** Begins a rotation: the signed body of `rotation/begin`. */
export const RotationBegin = object("RotationBegin", () => ({
  /** The revision of the account before; else `conflict`. */
  accountRev: u32,
}));
export type RotationBegin = Value<typeof RotationBegin>;

/** The rings are frozen. */
export const RotationBegun = object("RotationBegun", () => ({
  /** The generation that the new account key has. It names this rotation. */
  generation: u32,
  /** How many rings there are to stage. */
  rings: u32,
  /** Until when to commit, in milliseconds since 1970; then the rings are open again, unchanged. */
  expiresAt: u64,
}));
export type RotationBegun = Value<typeof RotationBegun>;

/**
 * Stages rings and floors. Needs the session that began the rotation, and no proof: nothing counts before the
 * commit.
 */
export const RotationStage = object("RotationStage", () => ({
  /** The rotation. */
  generation: u32,
  /** Rings, each whole, every entry sealed under the new account key. */
  rings: list(() => RingRows, MAX_RINGS),
  /** Floors, sealed under the new key of the account. */
  floors: list(() => FloorSent, SHELVES),
}), { limit: MAX_FRAME });
export type RotationStage = Value<typeof RotationStage>;

/** What is staged so far. */
export const RotationStaged = object("RotationStaged", () => ({
  /** How many rings. */
  rings: u32,
  /** How many floors. */
  floors: u32,
}));
export type RotationStaged = Value<typeof RotationStaged>;

/** Commits a rotation: the signed body of `rotation/commit`. Answer: `AccountChanged`. */
export const RotationCommit = object("RotationCommit", () => ({
  /** The rotation. */
  generation: u32,
  /** The revision of the account before; else `conflict`. */
  accountRev: u32,
  /** The digest of every entry of every ring before; other than the server's own: `conflict`. */
  rings: digest,
  /** The credentials that remain, each with the new account key. All others are removed. */
  credentials: list(() => NewCredential, MAX_CREDENTIALS),
  /** The new entry of the account's ring. */
  ring: KeyEntry,
  /** The new entry of the mailbox's ring. */
  mailbox: MailboxPut,
  /** The manifest, over the floors that were staged. */
  manifest: HeadPut,
}), { limit: MAX_SIGNED });
export type RotationCommit = Value<typeof RotationCommit>;
