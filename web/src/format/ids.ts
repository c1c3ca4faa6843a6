// Ids and names, checked when made.
//
// An id is its prefix and 26 lower-case base32 digits of 128 random bits, in one spelling: the two spare bits of the last
// digit are zero. A server learns nothing from an id but what kind of thing it names. Each kind is a branded string, so the
// compiler keeps a chat's id out of a message's place; `parse` is how text from outside gets the brand.
//
// Easy to get wrong: comparing the bytes of two ids. Lists are sorted by text, whose order is another one.

import { base32, fromBase32, isWellFormed, random, utf8 } from "./bytes";
import type { Brand, Bytes } from "./bytes";
import { Refused } from "./error";

/** A person's account. */
export type AccountId = Brand<"acct">;
/** A chat. */
export type ChatId = Brand<"chat">;
/** A credential that is not a password: a passkey or a recovery code. */
export type CredentialId = Brand<"cred">;
/** A device that writes. */
export type DeviceId = Brand<"dev">;
/** Something that a message shows: a picture, a file, a table. */
export type EmbedId = Brand<"emb">;
/** A message; a reply has its id before it has its words. */
export type MessageId = Brand<"msg">;
/** A snapshot of a chat, which was shared. */
export type SnapshotId = Brand<"snap">;
/** A question to the server, until it is answered. */
export type TurnId = Brand<"turn">;

function ids<Prefix extends string>(prefix: Prefix) {
  const start = `${prefix}_`;
  return {
    /** A new one from the system's random generator. */
    random: (): Brand<Prefix> => (start + base32(random(16))) as Brand<Prefix>,
    /** The one with these 128 bits. */
    fromBits(bits: Bytes): Brand<Prefix> {
      if (bits.length !== 16) throw new RangeError("an id has 128 bits");
      return (start + base32(bits)) as Brand<Prefix>;
    },
    /** Reads its text; any other spelling is `bad-id`. */
    parse(text: string): Brand<Prefix> {
      if (!this.is(text)) throw new Refused("bad-id");
      return text;
    },
    /** Whether this is the text of one. */
    is: (text: unknown): text is Brand<Prefix> =>
      typeof text === "string" && text.startsWith(start) && fromBase32(text.slice(start.length), 16) !== null,
  };
}

export const AccountId = ids("acct");
export const ChatId = ids("chat");
export const CredentialId = ids("cred");
export const DeviceId = ids("dev");
export const EmbedId = ids("emb");
export const MessageId = ids("msg");
export const SnapshotId = ids("snap");
export const TurnId = ids("turn");

/** The name of a chat's field (`title`), or of a piece of account data. */
export type FieldName = Brand<"field">;

export const FieldName = {
  /** `[a-z][a-z0-9_-]*`, at most 64 bytes; else `bad-id`. */
  parse(text: string): FieldName {
    if (!FieldName.is(text)) throw new Refused("bad-id");
    return text;
  },
  is: (text: unknown): text is FieldName => typeof text === "string" && /^[a-z][a-z0-9_-]{0,63}$/.test(text),
};

/** What a person logs in as. One spelling: NFC, 1 to 256 bytes, no control characters, and not like a credential's id,
 *  which stands in the same place of a proof. */
export type Login = Brand<"login">;

export const Login = {
  /** Checks it; else `login-refused`. */
  parse(text: string): Login {
    const length = utf8(text).length;
    const fine =
      length >= 1 &&
      length <= 256 &&
      isWellFormed(text) &&
      text.normalize("NFC") === text &&
      !/\p{Cc}/u.test(text) &&
      !text.startsWith("cred_");
    if (!fine) throw new Refused("login-refused");
    return text as Login;
  },
};

/** Where a page comes from, as a browser spells it: `https://chat.example`. Proofs and pairings are bound to it. */
export type Origin = Brand<"origin">;

export const Origin = {
  /** `http://` or `https://`, then a host and perhaps a port, in lower-case ASCII; else `login-refused`. */
  parse(text: string): Origin {
    if (!/^https?:\/\/[a-z0-9\-.:[\]]{1,300}$/.test(text)) throw new Refused("login-refused");
    return text as Origin;
  },
};

/** A field of a chat in its list: `meta:` and its name. */
export type FieldItem = Brand<"meta">;

/** What a chat's list names: an embed, a field or a message. Ordered as texts. */
export type ItemId = EmbedId | FieldItem | MessageId;

export const ItemId = {
  /** Reads its text; any other is `bad-id`. */
  parse(text: string): ItemId {
    if (!ItemId.is(text)) throw new Refused("bad-id");
    return text;
  },
  is: (text: unknown): text is ItemId => MessageId.is(text) || EmbedId.is(text) || ItemId.fieldOf(text) !== null,
  /** The item that is this field of a chat. */
  field: (name: FieldName): FieldItem => `${META}${name}` as FieldItem,
  /** The field's name; `null` if it is not a field. */
  fieldOf(item: unknown): FieldName | null {
    const name = typeof item === "string" && item.startsWith(META) ? item.slice(META.length) : null;
    return FieldName.is(name) ? name : null;
  },
  // The prefixes tell the three apart, since an ItemId was checked when made.
  isMessage: (item: ItemId): item is MessageId => item.startsWith("msg_"),
  isEmbed: (item: ItemId): item is EmbedId => item.startsWith("emb_"),
};

const META = "meta:";
