// Snapshots: one branch of a chat as it is now, sealed once more, for whoever has the link.
//
//   S       = 32 random bytes, in the link after `#` and nowhere else in clear      snap = a new id
//   list    = seal(sub(S, "meta"),  (snapshot, "", snap, list, ""), 1, {v, at, until, title?, count, live, leaf})
//   message = seal(sub(S, "msg"),   (snapshot, "", snap, message id, content), 1, JSON of a message)
//   embed   = seal(sub(S, "embed"), (snapshot, "", snap, embed id, content), 1, JSON {v, body})
//   kept    = seal(CK → meta, (snapshot, account, chat, snap, key), 1, S)            for the owner's own devices
//
// Nothing in it leads back to the chat: the key and all ids are new, and there is no account in it. It never changes, so every revision is
// 1. Easy to get wrong: that it ends. A copy that somebody put back would open, so the end is inside the seal and whoever opens it looks.

import { base64url, Digest, fromBase64url, wipe } from "./bytes";
import type { Bytes } from "./bytes";
import { openOrNull, seal, Sealed } from "./envelope";
import type { Context } from "./envelope";
import { Refused } from "./error";
import { live } from "./head";
import { EmbedId, ItemId, MessageId, Origin, SnapshotId } from "./ids";
import type { AccountId, ChatId } from "./ids";
import { read, write } from "./json";
import type { Codec } from "./json";
import { Key } from "./key";
import { Message, openRecord, Place, sealRecord, Text } from "./record";
import type { Role } from "./record";
import type { Held, Ring } from "./ring";

/** The key of one snapshot: whoever has it, and the id, can read it. */
export const SnapshotKey = {
  /** Seals it for the other devices of the owner, under the chat's key. */
  keep(key: Key, held: Held, account: AccountId, chat: ChatId, id: SnapshotId): Promise<Sealed> {
    return sealRecord(held, account, Place.snapshotKey(chat, id), REV, key.dangerouslyExposeBytes());
  },

  /** Opens what `keep` sealed. What does not open, or is not a key: `key-refused`. */
  async kept(ring: Ring, account: AccountId, chat: ChatId, id: SnapshotId, sealed: Sealed): Promise<Key> {
    const opened = await openRecord(ring, account, Place.snapshotKey(chat, id), sealed).catch(() => null);
    try {
      if (opened?.rev !== REV || opened.json.length !== 32) throw new Refused("key-refused");
      return await Key.fromBytes(opened.json);
    } finally {
      wipe(opened?.json);
    }
  },
};

/** What is given to whoever may read a snapshot. A browser sends nothing of what stands after `#` to a server. */
export interface SnapshotLink {
  /** The server that has it. */
  readonly origin: Origin;
  /** Which one. */
  readonly id: SnapshotId;
  /** What opens it. */
  readonly key: Key;
}

export const SnapshotLink = {
  /** Reads a link; any other text is `bad-id`. */
  async parse(text: string): Promise<SnapshotLink> {
    const [origin, rest, ...more] = text.split(HASH);
    const [id, encoded, ...other] = (rest ?? "").split("/");
    const bytes = fromBase64url(encoded ?? "");
    try {
      if (more.length > 0 || other.length > 0 || bytes?.length !== 32) throw new Refused("bad-id");
      return { origin: originOf(origin ?? ""), id: SnapshotId.parse(id ?? ""), key: await Key.fromBytes(bytes) };
    } finally {
      wipe(bytes);
    }
  },

  /** `https://chat.example/#/snapshot/snap_…/KEY`, the key in unpadded base64url. Whoever has it can read the snapshot. */
  dangerouslyToText: ({ origin, id, key }: SnapshotLink): string => `${origin}${HASH}${id}/${base64url(key.dangerouslyExposeBytes())}`,
};

function originOf(text: string): Origin {
  try {
    return Origin.parse(text);
  } catch {
    throw new Refused("bad-id");
  }
}

/** What is sealed as a snapshot's list: how much there has to be, and until when it may be read. */
export interface SnapshotList {
  /** When it was made, in milliseconds since 1970. */
  readonly at: number;
  /** Until when it may be read. */
  readonly until: number;
  /** The chat's title. */
  readonly title: string | null;
  /** How many messages and embeds there are. */
  readonly count: number;
  /** The digest of their list. */
  readonly live: Digest;
  /** The last message. */
  readonly leaf: MessageId;
}

const LIST_CODEC: Codec<SnapshotList> = {
  write: (list) => ({
    at: list.at,
    until: list.until,
    ...(list.title === null ? {} : { title: list.title }),
    count: list.count,
    live: list.live,
    leaf: list.leaf,
  }),
  read: (fields) => ({
    at: fields.time("at"),
    until: fields.time("until"),
    title: fields.has("title") ? fields.text("title") : null,
    count: fields.u32("count"),
    live: fields.parsed("live", Digest.parse),
    leaf: fields.like("leaf", MessageId.is),
  }),
};

export const SnapshotList = {
  /** Its JSON. Text with half of a surrogate pair is `record-refused`. */
  toJson: (list: SnapshotList): Bytes => write(LIST_CODEC, list),
  /** Reads its JSON, or `record-refused`. */
  fromJson: (json: Bytes): SnapshotList => read(LIST_CODEC, json),
};

/** A message of a snapshot. */
export interface SnapshotMessage {
  readonly id: MessageId;
  /** Who speaks: the person or the model. */
  readonly role: Role;
  /** When, in milliseconds since 1970. */
  readonly createdAt: number;
  /** The words. */
  readonly body: string;
  /** Which model spoke. */
  readonly model: string | null;
  /** What it shows. */
  readonly refs: readonly EmbedId[];
}

/** A snapshot, in clear. */
export interface Snapshot {
  /** When it was made, in milliseconds since 1970. */
  readonly at: number;
  /** Until when it may be read. */
  readonly until: number;
  /** The chat's title, if it was shared. */
  readonly title: string | null;
  /** The messages, the first one first. */
  readonly messages: readonly SnapshotMessage[];
  /** What they show. */
  readonly embeds: ReadonlyMap<EmbedId, Text>;
}

/** A snapshot as the server keeps it: its list, and messages and embeds. */
export interface SealedSnapshot {
  readonly list: Sealed;
  readonly items: readonly (readonly [ItemId, Sealed])[];
}

export const Snapshot = {
  /** A snapshot of a branch, whose first message comes first, with the embeds that are given. Every id is made anew; what is neither the
   *  person's nor the model's words is left out. `null`: nothing is left. */
  ofBranch(
    [at, until]: readonly [number, number],
    title: string | null,
    branch: readonly SnapshotMessage[],
    given: ReadonlyMap<EmbedId, Text>,
  ): Snapshot | null {
    const renamed = new Map<EmbedId, EmbedId>();
    const embeds = new Map<EmbedId, Text>();
    const anew = (old: EmbedId): EmbedId[] => {
      const text = given.get(old);
      if (text === undefined) return [];
      const id = renamed.get(old) ?? EmbedId.random();
      renamed.set(old, id);
      embeds.set(id, text);
      return [id];
    };
    const said = branch.filter(({ role }) => isSaid(role));
    const messages = said.map((message) => ({ ...message, id: MessageId.random(), refs: message.refs.flatMap(anew) }));
    return messages.length === 0 ? null : { at, until, title, messages, embeds };
  },

  /** Seals it. Throws when it has no message. */
  async seal(snapshot: Snapshot, key: Key, id: SnapshotId): Promise<SealedSnapshot> {
    const items = new Map<ItemId, Sealed>();
    const put = async (item: ItemId, json: Bytes) => {
      items.set(item, await seal(await keyOf(key, item), contextOf(id, item), REV, json));
    };
    let leaf: MessageId | null = null;
    for (const { id: message, role, createdAt, body, model, refs } of snapshot.messages) {
      await put(message, Message.toJson({ role, parent: leaf, createdAt, body, model, reason: null, refs, proof: null, shared: [] }));
      leaf = message;
    }
    for (const [embed, text] of snapshot.embeds) await put(embed, Text.toJson(text));
    if (leaf === null) throw new TypeError("a snapshot has a message");
    const sorted = [...items].sort(([one], [other]) => (one < other ? -1 : 1));
    const listed = new Map(await Promise.all(sorted.map(async ([item, sealed]) => [item, await Digest.of(sealed)] as const)));
    const { at, until, title } = snapshot;
    const list = SnapshotList.toJson({ at, until, title, count: listed.size, live: await live(listed), leaf });
    return { list: await seal(await key.derive("meta"), contextOf(id, null), REV, list), items: sorted };
  },

  /** Opens a snapshot, at this time. In this order: the list does not open under this key and id, or is none: `record-refused`; it may not
   *  be read any more: `rolled-back`; something is missing, was added, exchanged or comes twice: `list-refused`; something does not open,
   *  or is not what a snapshot has: `record-refused`; a message's parent is missing: `parent-missing`; a message that is on no way to the
   *  last one, an embed that nothing shows, or one that is shown and not there: `list-refused`. */
  async open(key: Key, id: SnapshotId, now: number, sealed: SealedSnapshot): Promise<Snapshot> {
    const list = SnapshotList.fromJson(await openOnce(await key.derive("meta"), contextOf(id, null), sealed.list));
    if (now >= list.until) throw new Refused("rolled-back");
    const hashed = sealed.items.map(async ([item, envelope]) => [item, await Digest.of(envelope)] as const);
    const listed = new Map(await Promise.all(hashed));
    const isWhole = listed.size === sealed.items.length && listed.size === list.count;
    if (!isWhole || (await live(listed)) !== list.live) throw new Refused("list-refused");
    const messages = new Map<MessageId, Message>();
    const embeds = new Map<EmbedId, Text>();
    for (const [item, envelope] of sealed.items) {
      const json = await openOnce(await keyOf(key, item), contextOf(id, item), envelope);
      if (ItemId.isMessage(item)) messages.set(item, said(json));
      else if (ItemId.isEmbed(item)) embeds.set(item, Text.fromJson(json));
      else throw new Refused("list-refused");
    }
    const branch = inOrder(messages, list.leaf);
    const shown = new Set(branch.flatMap(({ refs }) => refs));
    if (shown.size !== embeds.size || [...shown].some((embed) => !embeds.has(embed))) throw new Refused("list-refused");
    return { at: list.at, until: list.until, title: list.title, messages: branch, embeds };
  },
};

function keyOf(key: Key, item: ItemId): Promise<Key> {
  return key.derive(ItemId.isMessage(item) ? "msg" : ItemId.isEmbed(item) ? "embed" : "meta");
}

/** The place of an item, or of the list. */
function contextOf(id: SnapshotId, item: ItemId | null): Context {
  return { purpose: "snapshot", owner: "", container: id, object: item ?? "list", field: item === null ? "" : "content" };
}

async function openOnce(key: Key, context: Context, sealed: Sealed): Promise<Bytes> {
  const opened = Sealed.kid(sealed) === key.kid ? await openOrNull(key, context, sealed) : null;
  if (opened?.rev !== REV) throw new Refused("record-refused");
  return opened.data;
}

/** Whether such a message is part of snapshots. */
const isSaid = (role: Role) => role === "user" || role === "assistant";

/** A message as snapshots have it: what was said, and nothing that only its owner and the server have to know. */
function said(json: Bytes): Message {
  const message = Message.fromJson(json);
  if (message.proof !== null || message.reason !== null || message.shared.length > 0 || !isSaid(message.role)) throw new Refused("record-refused");
  return message;
}

/** The one branch that there is, from its first message to the last. */
function inOrder(messages: Map<MessageId, Message>, leaf: MessageId): SnapshotMessage[] {
  const branch: SnapshotMessage[] = [];
  for (let at: MessageId | null = leaf; at !== null; ) {
    const id: MessageId = at;
    const message: Message | undefined = messages.get(id);
    // One that was met before is not there any more: a ring has no first message.
    if (message === undefined || !messages.delete(id)) throw new Refused("parent-missing");
    const { role, createdAt, body, model, refs } = message;
    branch.push({ id, role, createdAt, body, model, refs });
    at = message.parent;
  }
  if (messages.size > 0) throw new Refused("list-refused");
  return branch.reverse();
}

/** A snapshot is written once. */
const REV = 1;
/** What stands in a link between the server and the id. */
const HASH = "/#/snapshot/";
