// A new device, let in by an old one: the server carries an offer and a sealed answer, and has no key for either.

import { MAX_PAIRING } from "./limits";
import { SessionOpened } from "./login";
import { type Value, object } from "./shapes";
import { blob, pairingId, publicKey, secret, u64 } from "./values";

/** The new device offers its public key. No session is needed. */
export const PairOffer = object("PairOffer", () => ({
  /** The name of the pairing, made from the secret that the new device shows. */
  id: pairingId,
  /** The new device's public key. */
  publicKey: publicKey,
}));
export type PairOffer = Value<typeof PairOffer>;

/** The offer waits. */
export const PairOffered = object("PairOffered", () => ({
  /** What fetches the answer: only the device that made the offer has it. */
  claim: secret,
  /** How long the offer waits, in milliseconds. */
  expiresMs: u64,
}));
export type PairOffered = Value<typeof PairOffered>;

/** The old device asks for the offer. */
export const PairTake = object("PairTake", () => ({
  /** The name of the pairing, made from the secret that the person showed it. */
  id: pairingId,
}));
export type PairTake = Value<typeof PairTake>;

/** The offer. */
export const PairTaken = object("PairTaken", () => ({
  /** The new device's public key. */
  publicKey: publicKey,
}));
export type PairTaken = Value<typeof PairTaken>;

/** The old device's answer: the signed body of `pair/send`. */
export const PairSend = object("PairSend", () => ({
  /** The name of the pairing. */
  id: pairingId,
  /** The old device's public key, then the sealed account key. */
  sealed: blob(MAX_PAIRING),
}));
export type PairSend = Value<typeof PairSend>;

/** The new device asks for the answer. `not-found` until there is one. */
export const PairFetch = object("PairFetch", () => ({
  /** The name of the pairing. */
  id: pairingId,
  /** What came with the offer. */
  claim: secret,
}));
export type PairFetch = Value<typeof PairFetch>;

/** The answer, with a session for the new device. It is gone from the server afterwards. */
export const PairFetched = object("PairFetched", () => ({
  /** The old device's public key, then the sealed account key. */
  sealed: blob(MAX_PAIRING),
  /** The new device's session. */
  session: SessionOpened,
}));
export type PairFetched = Value<typeof PairFetched>;
