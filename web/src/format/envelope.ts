// The sealed record, seal/v1: one form for everything stored.
//
//   0 version · 1 suite · 2 kid (8) · 10 rev (4) · 14 salt (24) · 38 commit (32) · 70 ciphertext ‖ tag (16)
//
// HKDF-SHA-256 of the key and a random salt gives an encryption key and a commitment; AES-256-GCM runs once under that key
// with a zero nonce. The commitment makes a record open under one key only, which AES-GCM does not promise. Suite 2
// (ChaCha20-Poly1305) is the server's own: a client writes and opens suite 1 only.
//
// Easy to get wrong: the context is not in the record. A record read from another place than it was written for does not
// open, and that is the point.

import { base64url, concat, fromBase64url, lp, random, readU32, same, u32, utf8, wipe } from "./bytes";
import type { Bytes } from "./bytes";
import { Kid } from "./key";
import type { Key } from "./key";

/** Where a record belongs. Authenticated, never stored; docs/FORMAT.md lists every context in use. */
export interface Context {
  readonly purpose: string;
  readonly owner: string;
  readonly container: string;
  readonly object: string;
  readonly field: string;
}

/** The injective byte form: five times a `u16` length and the UTF-8 text. Throws when a text has more than 65535 bytes. */
export function encodeContext(context: Context): Bytes {
  const { purpose, owner, container, object, field } = context;
  return concat(...[purpose, owner, container, object, field].map(lp));
}

/** Bytes that claim to be a sealed record. Nothing is known about them until they are opened. */
export type Sealed = Bytes;

export const Sealed = {
  /** Reads unpadded base64url, the text form in JSON; else `null`. */
  fromBase64url,
  /** The text form. */
  toBase64url: (sealed: Sealed): string => base64url(sealed),
  /** Which key the record claims, if it has the shape of one. Not authenticated before it opened. */
  kid(sealed: Sealed): Kid | null {
    return shape(sealed) === null ? Kid.fromBytes(sealed.subarray(2, 10)) : null;
  },
  /** Which revision the record claims. Not authenticated before it opened. */
  rev(sealed: Sealed): number | null {
    return shape(sealed) === null ? readU32(sealed, 10) : null;
  },
  /** Which suite the record claims: 1 or 2. */
  suite(sealed: Sealed): number | null {
    return shape(sealed) === null ? (sealed[1] ?? null) : null;
  },
};

/** What was sealed, now authenticated. Whoever has seen a greater revision refuses this. */
export interface Unsealed {
  readonly rev: number;
  readonly data: Bytes;
}

/** The record did not open. One error for every cause, so that nobody learns which check failed. */
export class OpenFailed extends Error {
  override readonly name = "open-failed";
  constructor() {
    super("the sealed record did not open: wrong key, wrong place or tampered");
  }
}

/** Seals `data` for one place and one revision, in suite 1. */
export function seal(key: Key, context: Context, rev: number, data: Bytes): Promise<Sealed> {
  return sealWithSalt(AES_256_GCM, key, context, rev, data, random(SALT));
}

/** Opens a record of suite 1 with the key and the context it was sealed with. Fails in one way, `OpenFailed`. */
export async function open(key: Key, context: Context, sealed: Sealed): Promise<Unsealed> {
  const opened = await openOrNull(key, context, sealed);
  if (opened === null) throw new OpenFailed();
  return opened;
}

/** As `open`, with `null` for what does not open, another suite included. */
export async function openOrNull(key: Key, context: Context, sealed: Sealed): Promise<Unsealed | null> {
  const opened = await openWithReason(AES_256_GCM, key, context, sealed);
  return typeof opened === "string" ? null : opened;
}

/** Why a record did not open; for the vectors, never for a caller. */
export type Reason = "format" | "version" | "key" | "tamper" | "padding";

/** What encrypts. A nonce of zeros, because `onceKey` gives every record its own key. */
export interface Aead {
  readonly suite: number;
  encrypt(key: Bytes, aad: Bytes, plain: Bytes): Promise<Bytes>;
  /** `null` if the tag does not match. */
  decrypt(key: Bytes, aad: Bytes, body: Bytes): Promise<Bytes | null>;
}

export const AES_256_GCM: Aead = {
  suite: 1,
  async encrypt(key, additionalData, plain) {
    const aes = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    return new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv: NONCE, additionalData }, aes, plain));
  },
  async decrypt(key, additionalData, body) {
    const aes = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["decrypt"]);
    try {
      return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv: NONCE, additionalData }, aes, body));
    } catch (error) {
      if (error instanceof DOMException && error.name === "OperationError") return null;
      throw error;
    }
  },
};

/** Checks in this order: length, version and suite, kid, commitment, context, tag, padding. */
export async function openWithReason(aead: Aead, key: Key, context: Context, sealed: Sealed): Promise<Unsealed | Reason> {
  const bad = shape(sealed) ?? (sealed[1] === aead.suite ? null : "version");
  if (bad) return bad;
  if (Sealed.kid(sealed) !== key.kid) return "key";
  const [ek, commit] = await onceKey(key, aead.suite, sealed.subarray(HEAD, HEAD + SALT));
  try {
    if (!same(commit, sealed.subarray(HEAD + SALT, BODY))) return "tamper";
    const aad = additional(sealed.subarray(0, HEAD), context);
    if (aad === null) return "format";
    const plain = await aead.decrypt(ek, aad, sealed.subarray(BODY));
    if (plain === null) return "tamper";
    const length = unpaddedLength(plain);
    return length === null ? "padding" : { rev: readU32(sealed, 10), data: plain.subarray(LENGTH, LENGTH + length) };
  } finally {
    wipe(ek);
  }
}

export async function sealWithSalt(
  aead: Aead,
  key: Key,
  context: Context,
  rev: number,
  data: Bytes,
  salt: Bytes,
): Promise<Sealed> {
  const plain = new Uint8Array(paddedLength(data.length));
  plain.set(u32(data.length));
  plain.set(data, LENGTH);
  try {
    return await sealPlainWithSalt(aead, key, context, rev, plain, salt);
  } finally {
    wipe(plain);
  }
}

/** Seals bytes that are length, data and padding already. */
export async function sealPlainWithSalt(
  aead: Aead,
  key: Key,
  context: Context,
  rev: number,
  plain: Bytes,
  salt: Bytes,
): Promise<Sealed> {
  const head = concat(Uint8Array.of(VERSION, aead.suite), Kid.toBytes(key.kid), u32(rev));
  const aad = additional(head, context);
  if (aad === null) throw new RangeError("a context text has more than 65535 bytes");
  const [ek, commit] = await onceKey(key, aead.suite, salt);
  try {
    return concat(head, salt, commit, await aead.encrypt(ek, aad, plain));
  } finally {
    wipe(ek);
  }
}

/** Padmé of length field and data: at most 12 % more, and the length that shows keeps few of its low bits. At least 64. */
export function paddedLength(data: number): number {
  const length = LENGTH + data;
  if (length <= MIN_PLAIN) return MIN_PLAIN;
  const exponent = ilog2(length);
  const step = 2 ** (exponent - (ilog2(exponent) + 1));
  return Math.ceil(length / step) * step;
}

/** How long the data in `plain` is, if it is padded as we pad; else `null`. */
function unpaddedLength(plain: Bytes): number | null {
  if (plain.length < LENGTH) return null;
  const length = readU32(plain, 0);
  const fits = length <= plain.length - LENGTH && paddedLength(length) === plain.length;
  return fits && plain.subarray(LENGTH + length).every((byte) => byte === 0) ? length : null;
}

/** The key that is used once, and the commitment to where it came from. */
async function onceKey(key: Key, suite: number, salt: Bytes): Promise<[Bytes, Bytes]> {
  const okm = await key.expand(salt, utf8(`seal/v1/aead/${suite}`), 64);
  return [okm.subarray(0, 32), okm.subarray(32)];
}

/** The associated data; `null` when a text of the context is too long to exist. */
function additional(head: Bytes, context: Context): Bytes | null {
  try {
    return concat(head, encodeContext(context));
  } catch {
    return null;
  }
}

/** What is wrong with the shape: length, then version and suite. */
function shape(sealed: Sealed): Reason | null {
  if (sealed.length < BODY + MIN_PLAIN + TAG) return "format";
  return sealed[0] === VERSION && (sealed[1] === 1 || sealed[1] === 2) ? null : "version";
}

function ilog2(value: number): number {
  return 31 - Math.clz32(value);
}

const VERSION = 1;
/** Version, suite, kid and revision: the part of the header that is associated data. */
const HEAD = 14;
const SALT = 24;
const COMMIT = 32;
const BODY = HEAD + SALT + COMMIT;
/** The length field before the data. */
const LENGTH = 4;
const MIN_PLAIN = 64;
const TAG = 16;
const NONCE = new Uint8Array(12);
