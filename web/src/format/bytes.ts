// Bytes, hashes, lengths and texts: what every other file of the format writes with.
//
// Public values (digests, public keys, key ids) are branded strings in the spelling of the wire, so `===` compares them and
// JSON carries them. Secret values are Bytes or a Key, never strings.
//
// Easy to get wrong: a text before another without its length. `lp` is the only way a text gets into a hash. And two
// spellings of one value: every reader here takes exactly the spelling that its writer writes.

/** Bytes that WebCrypto takes: backed by a plain buffer, not a shared one. */
export type Bytes = Uint8Array<ArrayBuffer>;

declare const brand: unique symbol;
/** A string that was checked: `Brand<"chat">` is not `Brand<"msg">`. */
export type Brand<Name extends string> = string & { readonly [brand]: Name };

/** SHA-256 or a MAC, 32 bytes in base64url without padding. */
export type Digest = Brand<"digest">;
/** An X25519 public key, 32 bytes in base64url without padding. */
export type PublicKey = Brand<"public-key">;

export const Digest = {
  /** What stands before the first of a chain. */
  ZERO: "A".repeat(43) as Digest,

  /** SHA-256 of these bytes: how a list names an envelope. */
  async of(bytes: Bytes): Promise<Digest> {
    return Digest.fromBytes(await sha256(bytes));
  },

  /** @throws RangeError unless there are 32 bytes */
  fromBytes(bytes: Bytes): Digest {
    return base64url(exactly(bytes, 32)) as Digest;
  },

  /** Reads its text; `null` for any other spelling. */
  parse(text: unknown): Digest | null {
    return is32(text) ? (text as Digest) : null;
  },

  toBytes(digest: Digest): Bytes {
    return known(digest);
  },
};

export const PublicKey = {
  /** @throws RangeError unless there are 32 bytes */
  fromBytes(bytes: Bytes): PublicKey {
    return base64url(exactly(bytes, 32)) as PublicKey;
  },

  /** Reads its text; `null` for any other spelling. */
  parse(text: unknown): PublicKey | null {
    return is32(text) ? (text as PublicKey) : null;
  },

  toBytes(key: PublicKey): Bytes {
    return known(key);
  },
};

/** SHA-256 over the parts, one after another. */
export async function hash(...parts: Bytes[]): Promise<Digest> {
  return Digest.fromBytes(await sha256(parts.length === 1 && parts[0] ? parts[0] : concat(...parts)));
}

export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** A `u16` length, then the text. Ids and names are at most 512 bytes. */
export function lp(text: string): Bytes {
  const bytes = utf8(text);
  if (bytes.length > 0xffff) throw new RangeError("a text has more than 65535 bytes");
  return concat(Uint8Array.of(bytes.length >> 8, bytes.length & 0xff), bytes);
}

/** A number of four bytes, big-endian. */
export function u32(value: number): Bytes {
  if (!isU32(value)) throw new RangeError("not a u32");
  const out = new Uint8Array(4);
  new DataView(out.buffer).setUint32(0, value);
  return out;
}

/** Reads four bytes at `at`, big-endian. */
export function readU32(bytes: Bytes, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
}

export function isU32(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

/** HKDF-SHA-256 (RFC 5869), extract and expand. The caller wipes what comes out if it is secret. */
export async function hkdf(ikm: Bytes, salt: Bytes, info: Bytes, length: number): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  return new Uint8Array(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info }, key, length * 8));
}

export function random(length: number): Bytes {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** Overwrites secret bytes. The engine may have copied them; this ends the copy that we know of. */
export function wipe(...secrets: (Bytes | null | undefined)[]): void {
  for (const secret of secrets) secret?.fill(0);
}

/** Compares without stopping at the first difference. */
export function same(a: Bytes, b: Bytes): boolean {
  if (a.length !== b.length) return false;
  let different = 0;
  // Both have this index: the loop ends at their common length.
  for (let at = 0; at < a.length; at++) different |= (a[at] ?? 0) ^ (b[at] ?? 0);
  return different === 0;
}

export function concat(...parts: Bytes[]): Bytes {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function utf8(text: string): Bytes {
  return encoder.encode(text);
}

/** The text of these bytes; `null` if they are not UTF-8. A byte order mark stays. */
export function fromUtf8(bytes: Bytes): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** Whether every surrogate has its other half. A text that has not can be neither sealed nor sent. */
export function isWellFormed(text: string): boolean {
  return !LONE.test(text);
}

/** The text with U+FFFD for half surrogates: for what a person typed or pasted, before anything else is done with it. */
export function wellFormed(text: string): string {
  return text.replace(LONES, "\ufffd");
}

// In unicode mode these match only halves that stand alone.
const LONE = /[\ud800-\udfff]/u;
const LONES = /[\ud800-\udfff]/gu;

/** Lower-case hexadecimal digits. */
export function hex(bytes: Bytes): string {
  let out = "";
  for (const byte of bytes) out += HEX[byte];
  return out;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Reads exactly this many bytes, in either case; else `null`. */
export function fromHex(text: string, length = text.length / 2): Bytes | null {
  if (!Number.isInteger(length) || text.length !== length * 2 || !/^[0-9a-fA-F]*$/.test(text)) return null;
  return Uint8Array.from({ length }, (_, at) => Number.parseInt(text.slice(at * 2, at * 2 + 2), 16));
}

/** Base64url without padding. */
export function base64url(bytes: Bytes): string {
  const whole = bytes.length - (bytes.length % 3);
  let out = "";
  // Every index below is inside the bytes, or stands for the zeros after them.
  for (let at = 0; at < bytes.length; at += 3) {
    const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    out += (PAIRS[three >> 12] ?? "") + (at < whole ? PAIRS[three & 0xfff] : (PAIRS[three & 0xfff] ?? "").slice(0, bytes.length - whole - 1));
  }
  return out;
}

/** Reads base64url without padding, spare bits zero; else `null`. */
export function fromBase64url(text: string): Bytes | null {
  if (text.length % 4 === 1) return null;
  const out = new Uint8Array(Math.floor((text.length * 3) / 4));
  let [bits, kept, at] = [0, 0, 0];
  for (let i = 0; i < text.length; i++) {
    const value = VALUES[text.charCodeAt(i)];
    if (value === undefined || value === NOT_A_DIGIT) return null;
    bits = ((bits << 6) | value) & 0xfff;
    kept += 6;
    if (kept >= 8) {
      kept -= 8;
      out[at++] = bits >> kept;
    }
  }
  return (bits & ((1 << kept) - 1)) === 0 ? out : null;
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** Two digits for twelve bits. */
const PAIRS = Array.from({ length: 4096 }, (_, bits) => BASE64.charAt(bits >> 6) + BASE64.charAt(bits & 63));
const NOT_A_DIGIT = 255;
const VALUES = new Uint8Array(128).fill(NOT_A_DIGIT);
for (let value = 0; value < 64; value++) VALUES[BASE64.charCodeAt(value)] = value;

/** Lower-case base32 of RFC 4648, without padding. */
export function base32(bytes: Bytes): string {
  let out = "";
  let [bits, kept] = [0, 0];
  for (const byte of bytes) {
    [bits, kept] = [((bits << 8) | byte) & 0xfff, kept + 8];
    for (; kept >= 5; kept -= 5) out += DIGITS.charAt((bits >> (kept - 5)) & 31);
  }
  return kept > 0 ? out + DIGITS.charAt((bits << (5 - kept)) & 31) : out;
}

/** Reads exactly this many bytes in the one spelling that `base32` writes; else `null`. */
export function fromBase32(text: string, length: number): Bytes | null {
  if (text.length !== Math.ceil((length * 8) / 5)) return null;
  const out = new Uint8Array(length);
  let [bits, kept, at] = [0, 0, 0];
  for (const digit of text) {
    const value = DIGITS.indexOf(digit);
    if (value < 0) return null;
    [bits, kept] = [((bits << 5) | value) & 0xfff, kept + 5];
    if (kept >= 8) {
      kept -= 8;
      out[at++] = bits >> kept;
    }
  }
  return (bits & ((1 << kept) - 1)) === 0 ? out : null;
}

const DIGITS = "abcdefghijklmnopqrstuvwxyz234567";

function is32(text: unknown): boolean {
  return typeof text === "string" && text.length === 43 && fromBase64url(text)?.length === 32;
}

function known(text: string): Bytes {
  const bytes = fromBase64url(text);
  if (bytes === null) throw new TypeError("not base64url, though checked when made");
  return bytes;
}

function exactly(bytes: Bytes, length: number): Bytes {
  if (bytes.length !== length) throw new RangeError(`not ${length} bytes`);
  return bytes;
}
