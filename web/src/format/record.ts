// Records: what is sealed where, and what is inside.
//
// Owns the places of the format and the JSON of messages, embeds, fields and drafts. Leaves heads and lists to head.ts and
// manifest.ts. Easy to get wrong: believing a column of the server. Role, parent and time are inside the seal, and nowhere
// else.

import { Digest, sha256, utf8 } from "./bytes";
import type { Bytes } from "./bytes";
import { openOrNull, Sealed, seal } from "./envelope";
import type { Context } from "./envelope";
import { Refused } from "./error";
import { EmbedId, FieldName, ItemId, MessageId } from "./ids";
import type { AccountId, ChatId, SnapshotId } from "./ids";
import { read, Reader, write } from "./json";
import type { Codec } from "./json";
import type { Held, Ring, Sub } from "./ring";

/** Where a record belongs. */
export type Place =
  | { readonly kind: "item"; readonly chat: ChatId; readonly item: ItemId }
  | { readonly kind: "head" | "draft"; readonly chat: ChatId }
  | { readonly kind: "data"; readonly of: FieldName; readonly name: FieldName }
  | { readonly kind: "floor"; readonly shelf: Shelf }
  | { readonly kind: "manifest" }
  | { readonly kind: "snapshot"; readonly chat: ChatId; readonly id: SnapshotId };

export const Place = {
  /** An item of a chat's list. */
  item: (chat: ChatId, item: ItemId): Place => ({ kind: "item", chat, item }),
  /** A chat's head. */
  head: (chat: ChatId): Place => ({ kind: "head", chat }),
  /** What was typed into a chat and not sent. */
  draft: (chat: ChatId): Place => ({ kind: "draft", chat }),
  /** A piece of the account's data: its kind and its name. */
  data: (of: FieldName, name: FieldName): Place => ({ kind: "data", of, name }),
  /** One of the sixteen lists of chats. */
  floor: (shelf: Shelf): Place => ({ kind: "floor", shelf }),
  /** The account's manifest. */
  MANIFEST: { kind: "manifest" } satisfies Place,
  /** The key of a snapshot of a chat, which is no JSON. */
  snapshotKey: (chat: ChatId, id: SnapshotId): Place => ({ kind: "snapshot", chat, id }),

  /** The context of the envelope. */
  context(place: Place, owner: AccountId): Context {
    const [purpose, container, object, field] = contextOf(place);
    return { purpose, owner, container, object, field };
  },

  /** The sub-key that seals it. */
  sub(place: Place): Sub {
    if (place.kind !== "item" || ItemId.fieldOf(place.item) !== null) return "meta";
    return ItemId.isMessage(place.item) ? "msg" : "embed";
  },
};

function contextOf(place: Place): [purpose: string, container: string, object: string, field: string] {
  switch (place.kind) {
    case "item": {
      const name = ItemId.fieldOf(place.item);
      if (name !== null) return ["chat", place.chat, "meta", name];
      return [ItemId.isMessage(place.item) ? "message" : "embed", place.chat, place.item, "content"];
    }
    case "head":
    case "draft":
      return [place.kind, place.chat, place.kind, ""];
    case "data":
      return ["data", "", place.of, place.name];
    case "floor":
      return ["floor", "", Shelf.digit(place.shelf), ""];
    case "manifest":
      return ["manifest", "", "manifest", ""];
    case "snapshot":
      return ["snapshot", place.chat, place.id, "key"];
  }
}

/** One of sixteen, 0 to 15: the first hexadecimal digit of `H(chat id)`. */
export type Shelf = number;

export const Shelf = {
  /** All sixteen, in order. */
  ALL: Array.from({ length: 16 }, (_, at) => at) as readonly Shelf[],
  /** Where a chat stands. */
  async of(chat: ChatId): Promise<Shelf> {
    const known = shelves.get(chat);
    if (known !== undefined) return known;
    const shelf = ((await sha256(utf8(chat)))[0] ?? 0) >> 4;
    if (shelves.size >= MOST_SHELVES) shelves.clear();
    shelves.set(chat, shelf);
    return shelf;
  },
  /** Its digit. */
  digit: (shelf: Shelf): string => shelf.toString(16),
};

/** Every write of a floor asks for the shelf of every chat: remembered, since it never changes. */
const shelves = new Map<ChatId, Shelf>();
const MOST_SHELVES = 20_000;

/** Seals a record. `rev` must be greater than that of the record which it replaces. Throws when the key is of another ring
 *  than the place: a chat's key for a chat's records, the account's for the others. */
export async function sealRecord(held: Held, account: AccountId, place: Place, rev: number, json: Bytes): Promise<Sealed> {
  const key = held.sub(Place.sub(place));
  if (key === null) throw new TypeError("a chat's records are sealed under a chat's key");
  return seal(key, Place.context(place, account), rev, json);
}

/** A record that opened: its revision, the key it is sealed under, and what is inside. */
export interface Opened {
  readonly rev: number;
  readonly held: Held;
  readonly json: Bytes;
}

/** Opens a record with whichever key of the ring sealed it. Another suite, another key or changed bytes: `record-refused`. */
export async function openRecord(ring: Ring, account: AccountId, place: Place, sealed: Sealed): Promise<Opened> {
  const sub = Place.sub(place);
  const held = ring.find(sub, Sealed.kid(sealed));
  const key = held?.sub(sub);
  if (!held || !key) throw new Refused("record-refused");
  const opened = await openOrNull(key, Place.context(place, account), sealed);
  if (opened === null) throw new Refused("record-refused");
  return { rev: opened.rev, held, json: opened.data };
}

/** Who speaks: the person, the model, a tool that it used, or the model about what came before. */
export type Role = "user" | "assistant" | "tool" | "summary";

const isRole = (value: unknown): value is Role =>
  value === "user" || value === "assistant" || value === "tool" || value === "summary";

/** A message. */
export interface Message {
  /** Who speaks. */
  readonly role: Role;
  /** Which message it answers; `null` for the first of a branch. */
  readonly parent: MessageId | null;
  /** When, in milliseconds since 1970. */
  readonly createdAt: number;
  /** The words. */
  readonly body: string;
  /** Which model spoke. */
  readonly model: string | null;
  /** Why that model was chosen, in a sentence of the server's. */
  readonly reason: string | null;
  /** What it shows. */
  readonly refs: readonly EmbedId[];
  /** The server's proof that its model or tool said this. */
  readonly proof: Digest | null;
  /** What else the client sent in clear for this turn, by consent. */
  readonly shared: readonly Shared[];
}

/** A note inside a message: this much left the device in clear. */
export interface Shared {
  /** What kind: `search`, `settings`, `summary`. */
  readonly what: FieldName;
  /** How many bytes. */
  readonly bytes: number;
}

/** Text on its own: an embed, a chat's field, a draft, a piece of account data. */
export interface Text {
  readonly body: string;
}

const MESSAGE: Codec<Message> = {
  write: (message) => ({
    role: message.role,
    parent: message.parent,
    created_at: message.createdAt,
    body: message.body,
    ...(message.model === null ? {} : { model: message.model }),
    // A device's files of before have none.
    ...((message.reason ?? null) === null ? {} : { reason: message.reason }),
    refs: message.refs,
    ...(message.proof === null ? {} : { proof: message.proof }),
    ...(message.shared.length === 0 ? {} : { shared: message.shared.map(({ what, bytes }) => ({ what, bytes })) }),
  }),
  read: (fields) => ({
    role: fields.like("role", isRole),
    parent: fields.isNull("parent") ? null : fields.like("parent", MessageId.is),
    createdAt: fields.time("created_at"),
    body: fields.text("body"),
    model: fields.has("model") ? fields.text("model") : null,
    reason: fields.has("reason") ? fields.text("reason") : null,
    refs: fields.list("refs").map((ref) => {
      if (!EmbedId.is(ref)) throw new Refused("record-refused");
      return ref;
    }),
    proof: fields.has("proof") ? fields.parsed("proof", Digest.parse) : null,
    shared: fields.has("shared") ? fields.list("shared").map(readShared) : [],
  }),
};

function readShared(value: unknown): Shared {
  const fields = new Reader(value);
  return { what: fields.like("what", FieldName.is), bytes: fields.u32("bytes") };
}

const TEXT: Codec<Text> = {
  write: ({ body }) => ({ body }),
  read: (fields) => ({ body: fields.text("body") }),
};

export const Message = {
  /** Its JSON. Text with half of a surrogate pair is `record-refused`. */
  toJson: (message: Message): Bytes => write(MESSAGE, message),
  /** Reads its JSON, or `record-refused`. */
  fromJson: (json: Bytes): Message => read(MESSAGE, json),
};

export const Text = {
  /** Its JSON. Text with half of a surrogate pair is `record-refused`. */
  toJson: (text: Text): Bytes => write(TEXT, text),
  /** Reads its JSON, or `record-refused`. */
  fromJson: (json: Bytes): Text => read(TEXT, json),
};
