// An honest server and its writers, in the page's own code: a port of crates/chat-format/tests/world. What it makes is given to
// the Rust side. `spoilHead` and the like let a writer who has the keys write something authentic and wrong.

import {
  AccountId, AccountKey, base64url, BoxKey, chain, ChatId, DeviceId, Digest, Entry, FieldName, Floor, Head, ItemId, Key, live, Manifest,
  Message, MessageId, Place, restage, Ring, RingOf, Sealed, sealRecord, Shelf, Text, TurnId,
} from "../../src/format/index";
import type { Bytes, Mark, Pending, PublicKey, Step } from "../../src/format/index";
import type { ChatState, Row, State, Way } from "./state";

/** Every write of a head or manifest. */
class Log {
  newest: Bytes = new Uint8Array(0);
  readonly steps: Step[] = [];
  readonly chains: Digest[] = [];

  next(live: Digest): Promise<Digest> {
    return chain(this.chains.at(-1) ?? Digest.ZERO, this.steps.at(-1)?.envelope ?? Digest.ZERO, live);
  }

  async push(live: Digest, sealed: Bytes): Promise<void> {
    this.chains.push(await this.next(live));
    this.steps.push({ live, envelope: await Digest.of(sealed) });
    this.newest = sealed;
  }

  get rev(): number {
    return this.steps.length;
  }

  mark(): Mark {
    return { rev: this.rev, envelope: this.steps.at(-1)?.envelope ?? Digest.ZERO };
  }

  copy(): Log {
    const other = new Log();
    other.newest = this.newest;
    other.steps.push(...this.steps);
    other.chains.push(...this.chains);
    return other;
  }

  trail(seen: Mark | null): Way {
    if (seen === null || seen.rev > this.rev || seen.rev === 0) return { chain: Digest.ZERO, steps: [] };
    const steps = this.steps.slice(seen.rev).map((step): [string, string] => [step.live, step.envelope]);
    return { chain: this.chains[seen.rev - 1] ?? Digest.ZERO, steps };
  }
}

interface Room {
  ring: Entry[];
  heads: Log;
  items: Map<ItemId, Bytes>;
  pending: Pending[];
  leaf: MessageId | null;
}

/** What a device remembers. */
export interface Memory {
  seen: [generation: number, manifest: Mark | null];
  chats: Map<ChatId, { head: Mark; key: [number, string]; revs: [string, number][] }>;
}

export const nothing = (): Memory => ({ seen: [0, null], chats: new Map() });

export class World {
  readonly account: AccountId;
  readonly chats = new Map<ChatId, Room>();
  manifests = new Log();
  ak: AccountKey;
  floors: Bytes[] = [];
  /** What a writer with the keys does to what it writes next. */
  spoilHead = (head: Head): Head => head;
  spoilManifest = (manifest: Manifest): Manifest => manifest;
  spoilMessage = (message: Message): Message => message;
  #ring: Entry[] = [];
  #boxRing: Entry[] = [];
  #boxPub: PublicKey;
  #published = new Map<ChatId, Mark>();

  private constructor(account: AccountId, ak: AccountKey, boxPub: PublicKey) {
    this.account = account;
    this.ak = ak;
    this.#boxPub = boxPub;
  }

  static async make(): Promise<World> {
    const letters = await Key.random();
    const world = new World(AccountId.random(), await AccountKey.first(), (await BoxKey.fromKey(letters)).publicKey);
    world.#ring = [await Entry.seal(world.ak, world.account, RingOf.ACCOUNT, 1, await Key.random(), 1)];
    world.#boxRing = [await Entry.seal(world.ak, world.account, RingOf.BOX, 1, letters, 1)];
    await world.publish();
    return world;
  }

  /** The same server, from here on apart: what a server does that forks two devices. */
  fork(): World {
    const other = new World(this.account, this.ak, this.#boxPub);
    [other.#ring, other.#boxRing, other.floors] = [[...this.#ring], [...this.#boxRing], [...this.floors]];
    [other.manifests, other.#published] = [this.manifests.copy(), new Map(this.#published)];
    for (const [chat, room] of this.chats) {
      const { ring, heads, items, pending, leaf } = room;
      other.chats.set(chat, { ring: [...ring], heads: heads.copy(), items: new Map(items), pending: [...pending], leaf });
    }
    return other;
  }

  /** Writes every floor and the manifest, under the newest key or, as a thief can, under any. */
  async publish(under = 0): Promise<void> {
    const ring = await Ring.open(this.ak, this.account, RingOf.ACCOUNT, this.#ring);
    const [held, rev] = [ring.get(under) ?? ring.newest, this.manifests.rev + 1];
    const shelves = new Map<ChatId, Shelf>();
    for (const chat of this.chats.keys()) shelves.set(chat, await Shelf.of(chat));
    this.#published = new Map([...this.chats].map(([chat, room]) => [chat, room.heads.mark()]));
    this.floors = await Promise.all(
      Shelf.ALL.map((shelf) => {
        const here = [...this.#published].filter(([chat]) => shelves.get(chat) === shelf);
        return sealRecord(held, this.account, Place.floor(shelf), rev, Floor.toJson({ chats: new Map(here) }));
      }),
    );
    const floors = await Promise.all(this.floors.map(Digest.of));
    const now = await Manifest.live(floors);
    const manifest = this.spoilManifest({
      g: this.ak.generation,
      uk: ring.newest.n,
      boxN: this.#boxRing.length,
      boxPub: this.#boxPub,
      floors,
      chain: await this.manifests.next(now),
      at: 7,
      device: DeviceId.random(),
    });
    await this.manifests.push(now, await sealRecord(held, this.account, Place.MANIFEST, rev, Manifest.toJson(manifest)));
  }

  async create(): Promise<ChatId> {
    const chat = ChatId.random();
    const ring = [await Entry.seal(this.ak, this.account, RingOf.chat(chat), 1, await Key.random(), this.ak.generation)];
    this.chats.set(chat, { ring, heads: new Log(), items: new Map(), pending: [], leaf: null });
    await this.write(chat);
    await this.publish();
    return chat;
  }

  async delete(chat: ChatId): Promise<void> {
    this.chats.delete(chat);
    await this.publish();
  }

  async rotateChat(chat: ChatId): Promise<void> {
    const [room, ring] = [this.#room(chat), await this.#keys(chat)];
    room.ring.push(await ring.append(this.ak, this.account, RingOf.chat(chat), await Key.random()));
    await this.write(chat);
  }

  /** Writes the head of what is there, under the newest key or, as a thief can, under any. */
  async write(chat: ChatId, under = 0): Promise<void> {
    const room = this.#room(chat);
    let ring = await this.#keys(chat);
    if (ring.writer === null && under === 0) {
      room.ring.push(await ring.append(this.ak, this.account, RingOf.chat(chat), await Key.random()));
      ring = await this.#keys(chat);
    }
    const list = new Map<ItemId, Digest>();
    for (const [id, sealed] of room.items) list.set(id, await Digest.of(sealed));
    const now = await live(list);
    const head = this.spoilHead({
      key: ring.newest.n,
      kid: ring.newest.key.kid,
      count: list.size,
      live: now,
      chain: await room.heads.next(now),
      leaf: room.leaf,
      pending: room.pending,
      at: 7,
      device: DeviceId.random(),
    });
    const held = ring.get(under) ?? ring.newest;
    await room.heads.push(now, await sealRecord(held, this.account, Place.head(chat), room.heads.rev + 1, Head.toJson(head)));
  }

  async say(chat: ChatId, body: string): Promise<void> {
    const [room, id] = [this.#room(chat), MessageId.random()];
    const message = this.spoilMessage({
      role: "user", parent: room.leaf, createdAt: 7, body, model: null, reason: null, refs: [], proof: null, shared: [],
    });
    await this.#put(chat, id, Message.toJson(message));
    room.leaf = id;
    await this.write(chat);
  }

  /** Writes a message once more, with another parent. */
  async move(chat: ChatId, id: MessageId, parent: MessageId): Promise<void> {
    const message: Message = { role: "user", parent, createdAt: 7, body: "", model: null, reason: null, refs: [], proof: null, shared: [] };
    await this.#put(chat, id, Message.toJson(message));
    await this.write(chat);
  }

  async title(chat: ChatId, body: string): Promise<void> {
    await this.#put(chat, ItemId.field(FieldName.parse("title")), Text.toJson({ body }));
    await this.write(chat);
  }

  async ask(chat: ChatId): Promise<void> {
    const room = this.#room(chat);
    if (room.leaf === null) return;
    room.pending.push({ turn: TurnId.random(), parent: room.leaf, reply: MessageId.random() });
    await this.write(chat);
  }

  /** A new account key, account ring entry and mailbox key, in one commit. */
  async rotate(): Promise<void> {
    const [old, next] = [this.ak, await this.ak.next()];
    if (next === null) return;
    const stage = (of: RingOf, rows: Entry[]): Promise<Entry[]> => restage(old, next, this.account, of, rows);
    for (const [chat, room] of this.chats) room.ring = await stage(RingOf.chat(chat), room.ring);
    const [ring, boxRing, letters] = [await stage(RingOf.ACCOUNT, this.#ring), await stage(RingOf.BOX, this.#boxRing), await Key.random()];
    const seal = (of: RingOf, rows: Entry[], key: Key): Promise<Entry> =>
      Entry.seal(next, this.account, of, rows.length + 1, key, next.generation);
    this.#ring = [...ring, await seal(RingOf.ACCOUNT, ring, await Key.random())];
    this.#boxRing = [...boxRing, await seal(RingOf.BOX, boxRing, letters)];
    this.#boxPub = (await BoxKey.fromKey(letters)).publicKey;
    this.ak = next;
    await this.publish();
  }

  /** What an honest server sends to a device that remembers this. */
  async state(memory: Memory): Promise<State> {
    const chats: Record<string, ChatState> = {};
    for (const [chat, room] of this.chats) {
      const seen = memory.chats.get(chat);
      const list: [string, string][] = [];
      for (const [id, sealed] of room.items) list.push([id, await Digest.of(sealed)]);
      chats[chat] = {
        ring: room.ring.map(row),
        head: base64url(room.heads.newest),
        trail: room.heads.trail(seen?.head ?? this.#published.get(chat) ?? null),
        list,
        items: [...room.items].map(([id, sealed]) => [id, base64url(sealed)]),
        seen_head: seen?.head ?? null,
        seen_key: seen?.key ?? null,
        seen_revs: seen?.revs ?? [],
      };
    }
    return {
      account: this.account,
      ak: base64url(this.ak.key.dangerouslyExposeBytes()),
      generation: this.ak.generation,
      seen: memory.seen,
      ring: this.#ring.map(row),
      box_ring: this.#boxRing.map(row),
      box_pub: this.#boxPub,
      manifest: base64url(this.manifests.newest),
      trail: this.manifests.trail(memory.seen[1]),
      floors: this.floors.map(base64url),
      chats,
    };
  }

  /** What a device remembers that has seen all of this. */
  memory(): Memory {
    const chats: Memory["chats"] = new Map();
    for (const [chat, room] of this.chats) {
      const newest = room.ring.at(-1);
      if (!newest) continue;
      const revs = [...room.items].map(([id, sealed]): [string, number] => [id, Sealed.rev(sealed) ?? 0]);
      chats.set(chat, { head: room.heads.mark(), key: [newest.n, newest.kid], revs });
    }
    return { seen: [this.ak.generation, this.manifests.mark()], chats };
  }

  async #put(chat: ChatId, id: ItemId, json: Bytes): Promise<void> {
    const room = this.#room(chat);
    let ring = await this.#keys(chat);
    if (ring.writer === null) {
      room.ring.push(await ring.append(this.ak, this.account, RingOf.chat(chat), await Key.random()));
      ring = await this.#keys(chat);
    }
    const before = room.items.get(id);
    const rev = (before === undefined ? 0 : (Sealed.rev(before) ?? 0)) + 1;
    room.items.set(id, await sealRecord(ring.newest, this.account, Place.item(chat, id), rev, json));
  }

  #keys(chat: ChatId): Promise<Ring> {
    return Ring.open(this.ak, this.account, RingOf.chat(chat), this.#room(chat).ring);
  }

  #room(chat: ChatId): Room {
    const room = this.chats.get(chat);
    if (room === undefined) throw new Error("no such chat");
    return room;
  }
}

function row(entry: Entry): Row {
  return { n: entry.n, kid: entry.kid, subs: [...entry.subs], sealed: base64url(entry.sealed) };
}
