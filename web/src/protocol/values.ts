// Single values: envelopes, bytes, secrets, texts, numbers, ids, each with its limit.
//
// Ids, digests, public keys and key ids are the branded texts of the format; envelopes, blobs and secrets are bytes. Easy to get wrong: two
// spellings of the same bytes. Base64url here has no padding and no spare bits.

import {
  AccountId,
  ChatId,
  CredentialId,
  DeviceId,
  Digest,
  EmbedId,
  FieldName,
  ItemId,
  Login,
  MessageId,
  PublicKey,
  SnapshotId,
  TurnId,
  PURPOSES,
  type Purpose,
  Shelf,
} from "../format/index";
import { type Bytes, base64url, fromBase64url, isWellFormed } from "../format/bytes";
import { Sealed } from "../format/envelope";
import { Kid } from "../format/key";
import { type At, type Shape, thousands } from "./shapes";

/** A text that a test of the format knows to be one of these. */
function checked<T extends string>(what: string, is: (text: unknown) => text is T): Shape<T> {
  return { what, read: (json, at) => (is(json) ? json : at.fail(`expected a valid ${what}`)), write: (value) => value };
}

/** The same, where the format reads it. */
function parsed<T extends string>(what: string, parse: (text: string) => T | null): Shape<T> {
  return checked(what, (text): text is T => {
    if (typeof text !== "string") return false;
    try {
      // The one spelling: what the format would write.
      return parse(text) === text;
    } catch {
      return false;
    }
  });
}

export const accountId = checked<AccountId>("account id", AccountId.is);
export const chatId = checked<ChatId>("chat id", ChatId.is);
export const credentialId = checked<CredentialId>("credential id", CredentialId.is);
export const deviceId = checked<DeviceId>("device id", DeviceId.is);
export const embedId = checked<EmbedId>("embed id", EmbedId.is);
export const messageId = checked<MessageId>("message id", MessageId.is);
export const snapshotId = checked<SnapshotId>("snapshot id", SnapshotId.is);
export const turnId = checked<TurnId>("turn id", TurnId.is);
export const fieldName = checked<FieldName>("name", FieldName.is);
export const itemId = parsed<ItemId>("item: message id, embed id, or meta:name", (text) => ItemId.parse(text));
export const login = parsed<Login>("login", (text) => Login.parse(text));
export const kid = parsed<Kid>("key id", (text) => Kid.parse(text));
export const digest = parsed<Digest>("digest", (text) => Digest.parse(text));
export const publicKey = parsed<PublicKey>("public key", (text) => PublicKey.parse(text));

/** A number below sixteen, as its hexadecimal digit. */
export const shelf: Shape<Shelf> = {
  what: "shelf: a hexadecimal digit",
  read: (json, at) => {
    const isDigit = typeof json === "string" && /^[0-9a-f]$/.test(json);
    return isDigit ? Number.parseInt(json, 16) : at.fail("expected a valid shelf: a hexadecimal digit");
  },
  write: (value) => Shelf.digit(value),
};

export const purpose = checked<Purpose>(
  "purpose: `login`, `change`, `export`, `erase`, `pair` or `restore`",
  (text): text is Purpose => PURPOSES.some((one) => one === text),
);

export const u32 = number(2 ** 32 - 1, "number below 2^32");
export const u64 = number(2 ** 53 - 1, "number below 2^53");

function number(max: number, what: string): Shape<number> {
  const fits = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= max;
  return {
    what,
    read: (json, at) => (fits(json) ? json : at.fail(`expected a whole number of at most ${max}`)),
    write: (value, at) => (fits(value) ? value : at.fail(`expected a whole number of at most ${max}`)),
  };
}

export const flag: Shape<boolean> = {
  what: "true or false",
  read: (json, at) => (typeof json === "boolean" ? json : at.fail("expected true or false")),
  write: (value) => value,
};

/** A client's envelope of at most so many bytes. It has the shape of one; whether it opens is known later. */
export function envelope(max: number): Shape<Sealed> {
  const fine = (bytes: Bytes, at: At): Sealed => {
    if (bytes.length > max) return at.fail(`has more than ${max} bytes`);
    return Sealed.kid(bytes) === null ? at.fail("expected an envelope in unpadded base64url") : bytes;
  };
  return {
    what: `envelope, at most ${thousands(max)} bytes`,
    read: (json, at) => fine(readBase64(json, max, at), at),
    write: (value, at) => base64url(fine(value, at)),
  };
}

/** At most so many bytes of any shape. */
export function blob(max: number): Shape<Bytes> {
  return {
    what: `at most ${thousands(max)} bytes`,
    read: (json, at) => readBase64(json, max, at),
    write: (value, at) => (value.length > max ? at.fail(`has more than ${max} bytes`) : base64url(value)),
  };
}

/** Exactly so many bytes. */
export function bytes(count: number, what = `${count} bytes`): Shape<Bytes> {
  const exact = (value: Bytes, at: At): Bytes => (value.length === count ? value : at.fail(`expected ${count} bytes in base64url`));
  return {
    what,
    read: (json, at) => exact(readBase64(json, count, at), at),
    write: (value, at) => base64url(exact(value, at)),
  };
}

/** 32 bytes that nobody else may see. */
export const secret = bytes(32, "32 secret bytes");

/** A text of at most so many bytes, with both halves of every surrogate pair. */
export function text(max: number): Shape<string> {
  const fine = (value: unknown, at: At): string => {
    if (typeof value !== "string") return at.fail("expected a text");
    if (utf8Length(value) > max) return at.fail(`has more than ${max} bytes`);
    return isWellFormed(value) ? value : at.fail("has half of a surrogate pair");
  };
  return { what: `text, at most ${thousands(max)} bytes`, read: fine, write: fine };
}

/** The code of an authenticator. */
export const totp = parsed<string>("text of six digits", (code) => (/^[0-9]{6}$/.test(code) ? code : null));

/** The name of a pairing. */
export const pairingId = parsed<string>("text of 32 hexadecimal digits", (id) => (/^[0-9a-f]{32}$/.test(id) ? id : null));

/** How many bytes a text has in UTF-8. */
export function utf8Length(value: string): number {
  let length = value.length;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    if (unit < 0x80) continue;
    if (unit < 0x800) length += 1;
    else if (unit < 0xd800 || unit > 0xdfff) length += 2;
    // Both halves of a pair together have four bytes; a half alone is written as three.
    else if (unit < 0xdc00 && (value.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      length += 2;
      at += 1;
    } else length += 2;
  }
  return length;
}

/** At most so many bytes, cut where a character ends. */
export function cutText(value: string, max: number): string {
  if (utf8Length(value) <= max) return value;
  let [size, end] = [0, 0];
  for (const character of value) {
    size += utf8Length(character);
    if (size > max) break;
    end += character.length;
  }
  return value.slice(0, end);
}

function readBase64(json: unknown, max: number, at: At): Bytes {
  if (typeof json !== "string") return at.fail("expected bytes in unpadded base64url");
  // Refused before it is decoded.
  if (json.length > Math.ceil((max * 4) / 3)) return at.fail(`has more than ${max} bytes`);
  return fromBase64url(json) ?? at.fail("expected bytes in unpadded base64url");
}
