// What a device checks before it shows anything: the server is not believed.
//
//   account key ─▶ ring of the account ─▶ manifest ─▶ mailbox key ─▶ 16 floors ─▶ each chat: ring, head, list, records
//
// Functions over what the server sent and what the device remembers. Each refusal has the name of the first check that
// fails, in this order. Leaves to callers where memory is kept, and whether the person says "send mine again". Easy to get
// wrong: showing a part of what was refused. Nothing comes out of here unless all of it holds.
//
// A device that remembers nothing can be shown an earlier whole state of the account; only memory helps against that.

import { Digest } from "./bytes";
import type { PublicKey } from "./bytes";
import { Sealed } from "./envelope";
import { Refused } from "./error";
import { Head, Trail } from "./head";
import type { List, Mark } from "./head";
import { ItemId } from "./ids";
import type { AccountId, ChatId, MessageId } from "./ids";
import type { Kid } from "./key";
import { BoxKey } from "./mailbox";
import { Floor, Manifest } from "./manifest";
import { Message, openRecord, Place, Shelf, Text } from "./record";
import { Ring, RingOf } from "./ring";
import type { AccountKey, Entry } from "./ring";

/** What the server sent about an account. */
export interface SentAccount {
  /** Rows of the account's own ring. */
  readonly ring: readonly Entry[];
  /** Rows of the mailbox's ring. */
  readonly boxRing: readonly Entry[];
  /** The public key under which the server seals replies. */
  readonly boxPub: PublicKey;
  readonly manifest: Sealed;
  /** How it follows from what the device remembers. */
  readonly trail: Trail;
  /** The floors, shelf 0 first. */
  readonly floors: readonly Sealed[];
}

/** What a device remembers of an account: the newest generation of the account key, and the newest manifest. A new device
 *  remembers nothing; a paired one, what the old device told it. */
export interface SeenAccount {
  readonly generation: number;
  readonly manifest: Mark | null;
}

export const SeenAccount: { NOTHING: SeenAccount } = { NOTHING: { generation: 0, manifest: null } };

/** An account that passed every check. */
export class Account {
  /** Whose it is. */
  readonly id: AccountId;
  /** The account key. */
  readonly key: AccountKey;
  /** The account's own ring, which seals its data. */
  readonly ring: Ring;
  /** The mailbox's keys, the newest last. */
  readonly boxes: readonly BoxKey[];
  readonly manifest: Manifest;
  /** The manifest's revision and envelope. */
  readonly mark: Mark;
  /** Every chat, and a head that it has reached. */
  readonly floors: ReadonlyMap<ChatId, Mark>;

  private constructor(of: Pick<Account, "id" | "key" | "ring" | "boxes" | "manifest" | "mark" | "floors">) {
    this.id = of.id;
    this.key = of.key;
    this.ring = of.ring;
    this.boxes = of.boxes;
    this.manifest = of.manifest;
    this.mark = of.mark;
    this.floors = of.floors;
  }

  /** Checks what the server sent, in the order of the format, and stops at the first refusal. */
  static async open(id: AccountId, key: AccountKey, sent: SentAccount, seen: SeenAccount): Promise<Account> {
    if (key.generation < seen.generation) throw new Refused("key-refused");
    const ring = await Ring.open(key, id, RingOf.ACCOUNT, sent.ring);
    const { manifest, mark } = await openManifest(id, key, ring, sent, seen);
    const boxes = await openBoxes(id, key, manifest, sent);
    const floors = await openFloors(id, ring, manifest, sent.floors);
    return new Account({ id, key, ring, boxes, manifest, mark, floors });
  }

  /** Whether this device's chats are all there: every chat with a floor was sent, else `withheld`; every chat that was sent
   *  has a floor, else `list-refused`: it was deleted, and somebody put it back. */
  checkChats(sent: Iterable<ChatId>): void {
    const all = new Set(sent);
    if ([...this.floors.keys()].some((chat) => !all.has(chat))) throw new Refused("withheld");
    if ([...all].some((chat) => !this.floors.has(chat))) throw new Refused("list-refused");
  }

  /** What to remember from now on. */
  seen(): SeenAccount {
    return { generation: this.key.generation, manifest: this.mark };
  }
}

/** What the server sent about a chat. */
export interface SentChat {
  /** Rows of the chat's ring. */
  readonly ring: readonly Entry[];
  readonly head: Sealed;
  /** How it follows from the head that the device remembers, or else from the one in the floor. */
  readonly trail: Trail;
  /** Every item and the hash of its envelope. */
  readonly list: readonly (readonly [ItemId, Digest])[];
}

/** What a device remembers of a chat: the newest head, number and id of the newest key, the newest revision of each item. */
export interface SeenChat {
  readonly head: Mark | null;
  readonly key: readonly [n: number, kid: Kid] | null;
  readonly revs: ReadonlyMap<ItemId, number>;
}

export const SeenChat: { NOTHING: SeenChat } = { NOTHING: { head: null, key: null, revs: new Map() } };

/** An item of a chat, opened and checked: a message, or the text of an embed or a field. */
export type Item =
  | { readonly kind: "message"; readonly rev: number; readonly message: Message }
  | { readonly kind: "text"; readonly rev: number; readonly text: Text };

/** A chat whose head and list passed every check; its items are checked as they come. */
export class Chat {
  readonly id: ChatId;
  /** Its keys. */
  readonly ring: Ring;
  readonly head: Head;
  /** The head's revision and envelope. */
  readonly mark: Mark;
  readonly list: List;
  readonly #account: AccountId;
  readonly #seen: SeenChat;

  private constructor(account: AccountId, seen: SeenChat, of: Pick<Chat, "id" | "ring" | "head" | "mark" | "list">) {
    this.#account = account;
    this.#seen = seen;
    this.id = of.id;
    this.ring = of.ring;
    this.head = of.head;
    this.mark = of.mark;
    this.list = of.list;
  }

  /** Checks what the server sent, in the order of the format. `null` is `withheld`; a chat without a floor is
   *  `list-refused`. */
  static async open(account: Account, id: ChatId, sent: SentChat | null, seen: SeenChat): Promise<Chat> {
    if (sent === null) throw new Refused("withheld");
    const floor = account.floors.get(id);
    // Deleted, and put back.
    if (floor === undefined) throw new Refused("list-refused");
    const ring = await Ring.open(account.key, account.id, RingOf.chat(id), sent.ring);
    const { head, mark } = await openHead(account, id, ring, sent, floor, seen);
    const list = new Map(sent.list);
    if (list.size !== sent.list.length) throw new Refused("list-refused");
    await Head.checkList(head, list);
    return new Chat(account.id, seen, { id, ring, head, mark, list });
  }

  /** Opens one item. Not in the list: `list-refused`. Another envelope than the list's, or one that does not open or is not
   *  the JSON of its kind: `record-refused`. Older than what this device has seen: `rolled-back`. A message whose parent is
   *  not in the list: `parent-missing`. */
  async item(id: ItemId, sealed: Sealed): Promise<Item> {
    const listed = this.list.get(id);
    if (listed === undefined) throw new Refused("list-refused");
    if ((await Digest.of(sealed)) !== listed) throw new Refused("record-refused");
    const { rev, json } = await openRecord(this.ring, this.#account, Place.item(this.id, id), sealed);
    const item: Item = ItemId.isMessage(id)
      ? { kind: "message", rev, message: Message.fromJson(json) }
      : { kind: "text", rev, text: Text.fromJson(json) };
    if (rev < (this.#seen.revs.get(id) ?? 0)) throw new Refused("rolled-back");
    if (item.kind === "message" && item.message.parent !== null && !this.list.has(item.message.parent)) {
      throw new Refused("parent-missing");
    }
    return item;
  }

  /** Opens every item, and checks that every message leads to a first one. An item that was not sent: `withheld`. */
  async items(sent: ReadonlyMap<ItemId, Sealed>): Promise<Map<ItemId, Item>> {
    const ids = [...this.list.keys()].sort();
    const opened = await inOrder(ids, async (id) => {
      const sealed = sent.get(id);
      if (sealed === undefined) throw new Refused("withheld");
      return this.item(id, sealed);
    });
    const items = new Map(opened.map(([id, item]) => [id, item]));
    checkRoots(items.keys(), (id) => {
      const item = items.get(id);
      return item?.kind === "message" ? item.message.parent : null;
    });
    return items;
  }

  /** What to remember from now on, with the items that were opened. */
  seen(items: ReadonlyMap<ItemId, Item>): SeenChat {
    const { n, key } = this.ring.newest;
    return { head: this.mark, key: [n, key.kid], revs: new Map([...items].map(([id, { rev }]) => [id, rev])) };
  }
}

/** Does something with each, several at once, and fails as the first in the list that fails: the name of a refusal must not
 *  depend on which finished first. */
export async function inOrder<K, V>(keys: readonly K[], make: (key: K) => Promise<V>): Promise<[K, V][]> {
  const done: [K, V][] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    const some = keys.slice(at, at + AT_ONCE);
    const settled = await Promise.allSettled(some.map(make));
    some.forEach((key, i) => {
      const one = settled[i];
      if (one?.status !== "fulfilled") throw one?.reason;
      done.push([key, one.value]);
    });
  }
  return done;
}

/** WebCrypto works on threads; more than this many at once gains nothing and holds plaintext of all of them. */
const AT_ONCE = 64;

async function openManifest(
  id: AccountId,
  ak: AccountKey,
  ring: Ring,
  sent: SentAccount,
  seen: SeenAccount,
): Promise<{ manifest: Manifest; mark: Mark }> {
  const kid = Sealed.kid(sent.manifest);
  if (kid === null) throw new Refused("record-refused");
  // A key that is not in the ring: the server keeps back the entry that the manifest is sealed under.
  if (ring.find("meta", kid) === null) throw new Refused("ring-forked");
  const opened = await openRecord(ring, id, Place.MANIFEST, sent.manifest);
  const manifest = Manifest.fromJson(opened.json);
  const mark = { rev: opened.rev, envelope: await Digest.of(sent.manifest) };
  await Trail.check(sent.trail, seen.manifest, mark, manifest.chain, await Manifest.live(manifest.floors));
  if (manifest.g !== ak.generation) throw new Refused("key-refused");
  // Sealed under the newest key, which this generation made: a lost device has older ones, and a server could keep the
  // newest entry back.
  const newest = ring.writer?.n;
  if (newest !== manifest.uk || newest !== opened.held.n) throw new Refused("ring-forked");
  return { manifest, mark };
}

async function openBoxes(id: AccountId, ak: AccountKey, manifest: Manifest, sent: SentAccount): Promise<BoxKey[]> {
  const ring = await Ring.open(ak, id, RingOf.BOX, sent.boxRing);
  if (ring.writer?.n !== manifest.boxN) throw new Refused("ring-forked");
  const boxes = await Promise.all(ring.held.map(BoxKey.of));
  const ours = boxes.at(-1)?.publicKey;
  if (ours !== manifest.boxPub || sent.boxPub !== manifest.boxPub) throw new Refused("box-refused");
  return boxes;
}

async function openFloors(
  id: AccountId,
  ring: Ring,
  manifest: Manifest,
  sent: readonly Sealed[],
): Promise<Map<ChatId, Mark>> {
  if (sent.length !== manifest.floors.length) throw new Refused("list-refused");
  const floors = new Map<ChatId, Mark>();
  for (const shelf of Shelf.ALL) {
    const sealed = sent[shelf];
    if (sealed === undefined || (await Digest.of(sealed)) !== manifest.floors[shelf]) throw new Refused("list-refused");
    for (const [chat, mark] of (await openFloor(id, ring, shelf, sealed)).chats) floors.set(chat, mark);
  }
  return floors;
}

async function openFloor(id: AccountId, ring: Ring, shelf: Shelf, sealed: Sealed): Promise<Floor> {
  try {
    return await Floor.fromJson(shelf, (await openRecord(ring, id, Place.floor(shelf), sealed)).json);
  } catch (error) {
    throw error instanceof Refused ? new Refused("list-refused") : error;
  }
}

async function openHead(
  account: Account,
  id: ChatId,
  ring: Ring,
  sent: SentChat,
  floor: Mark,
  seen: SeenChat,
): Promise<{ head: Head; mark: Mark }> {
  const kid = Sealed.kid(sent.head);
  if (kid === null) throw new Refused("record-refused");
  if (ring.find("meta", kid) === null) throw new Refused("ring-forked");
  const opened = await openRecord(ring, account.id, Place.head(id), sent.head);
  const head = Head.fromJson(opened.json);
  const mark = { rev: opened.rev, envelope: await Digest.of(sent.head) };
  if (mark.rev < floor.rev) throw new Refused("rolled-back");
  const from = seen.head ?? floor;
  await Trail.check(sent.trail, from, mark, head.chain, head.live);
  Trail.passes(sent.trail, from, floor);
  // Written since the floor, so in this generation: no honest writer used an older key, a lost device has no other.
  if (mark.rev > floor.rev && opened.held.born !== account.key.generation) throw new Refused("key-refused");
  const { n, key } = ring.newest;
  const named = head.key === n && head.kid === key.kid && opened.held.n === head.key;
  const kept = seen.key === null || ring.get(seen.key[0])?.key.kid === seen.key[1];
  if (!named || !kept) throw new Refused("ring-forked");
  return { head, mark };
}

/** A message that answers itself, however long the circle, has no first one: `parent-missing`. `parent` says what a message
 *  answers. */
export function checkRoots(items: Iterable<ItemId>, parent: (id: MessageId) => MessageId | null): void {
  const rooted = new Set<MessageId>();
  for (const id of items) {
    if (!ItemId.isMessage(id)) continue;
    const path = new Set<MessageId>();
    for (let at: MessageId | null = id; at !== null && !rooted.has(at); at = parent(at)) {
      if (path.has(at)) throw new Refused("parent-missing");
      path.add(at);
    }
    for (const one of path) rooted.add(one);
  }
}
