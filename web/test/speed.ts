// How long the format takes: node test/speed.mjs, and in a browser by browser/format.browser.ts. Gives numbers and judges nothing. Not
// under node's test runner, whose hooks on promises take as long as the work.

import {
  Account, AccountId, AccountKey, Chat, ChatId, Digest, Entry, ItemId, Key, Message, MessageId, open, Place, Ring, RingOf, Root, seal,
  sealRecord, SeenAccount, SeenChat, Trail, utf8, wellFormed, DeviceId, Head, live, chain, Shelf, Floor, Manifest, BoxKey,
} from "../src/format/index";
import type { Bytes, Mark } from "../src/format/index";

const CHATS = 100;
const MESSAGES = 100;

/** Each part by itself. */
export async function sealAndOpen(say: (line: string) => void): Promise<void> {
  const key = await (await Key.random()).derive("msg");
  const context = { purpose: "message", owner: AccountId.random(), container: ChatId.random(), object: MessageId.random(), field: "content" };
  const data = utf8("word ".repeat(80));
  const sealed: Bytes[] = [];
  say(await per("seal, one after another", 1000, async () => void sealed.push(await seal(key, context, 1, data))));
  let at = 0;
  say(await per("open, one after another", 1000, async () => void (await open(key, context, sealed[at++] ?? data))));
  const start = performance.now();
  await Promise.all(sealed.map((one) => open(key, context, one)));
  say(`open, 1000 at once: ${(performance.now() - start).toFixed(0)} µs each`);
  const json = Message.toJson(message("word ".repeat(80), null));
  say(await per("read JSON", 10000, async () => void Message.fromJson(json)));
  say(await per("hash 500 bytes", 1000, async () => void (await Digest.of(sealed[0] ?? data))));
  say(await per("well-formed", 10000, async () => void wellFormed("word ".repeat(80))));
  say(await per("password", 3, async () => void (await Root.fromPassword("correct horse", new Uint8Array(16), 1))));
}

/** A new device loads everything. */
export async function sync(say: (line: string) => void): Promise<void> {
  const [id, ak] = [AccountId.random(), await AccountKey.first()];
  const rooms = new Map<ChatId, Awaited<ReturnType<typeof room>>>();
  let start = performance.now();
  for (let at = 0; at < CHATS; at++) {
    const chat = ChatId.random();
    rooms.set(chat, await room(id, ak, chat));
  }
  say(`sealed in ${(performance.now() - start).toFixed(0)} ms`);
  const sent = await accountOf(id, ak, new Map([...rooms].map(([chat, one]) => [chat, one.mark])));
  start = performance.now();
  const account = await Account.open(id, ak, sent, SeenAccount.NOTHING);
  say(`account opened in ${(performance.now() - start).toFixed(0)} ms`);
  start = performance.now();
  const opened = await Promise.all([...rooms].map(([chat, one]) => Chat.open(account, chat, one, SeenChat.NOTHING)));
  say(`${CHATS} heads and lists in ${(performance.now() - start).toFixed(0)} ms`);
  start = performance.now();
  let count = 0;
  for (const chat of opened) count += (await chat.items(rooms.get(chat.id)?.items ?? new Map())).size;
  say(`${count} messages opened in ${(performance.now() - start).toFixed(0)} ms`);
}

async function room(id: AccountId, ak: AccountKey, chat: ChatId) {
  const ring = [await Entry.seal(ak, id, RingOf.chat(chat), 1, await Key.random(), 1)];
  const held = (await Ring.open(ak, id, RingOf.chat(chat), ring)).newest;
  const [items, list] = [new Map<ItemId, Bytes>(), new Map<ItemId, Digest>()];
  let parent: MessageId | null = null;
  for (let at = 0; at < MESSAGES; at++) {
    const message: MessageId = MessageId.random();
    const sealed = await sealRecord(held, id, Place.item(chat, message), 1, Message.toJson(makeMessage(at, parent)));
    items.set(message, sealed);
    list.set(message, await Digest.of(sealed));
    parent = message;
  }
  const now = await live(list);
  const first = await chain(Digest.ZERO, Digest.ZERO, now);
  const head: Head = { key: 1, kid: held.key.kid, count: list.size, live: now, chain: first, leaf: parent, pending: [], at: 7, device: DeviceId.random() };
  const sealed = await sealRecord(held, id, Place.head(chat), 1, Head.toJson(head));
  const mark: Mark = { rev: 1, envelope: await Digest.of(sealed) };
  return { ring, head: sealed, trail: Trail.NONE, list: [...list], items, mark };
}

async function accountOf(id: AccountId, ak: AccountKey, marks: Map<ChatId, Mark>) {
  const [uk, letters] = [await Key.random(), await Key.random()];
  const ring = [await Entry.seal(ak, id, RingOf.ACCOUNT, 1, uk, 1)];
  const boxRing = [await Entry.seal(ak, id, RingOf.BOX, 1, letters, 1)];
  const boxPub = (await BoxKey.fromKey(letters)).publicKey;
  const held = (await Ring.open(ak, id, RingOf.ACCOUNT, ring)).newest;
  const shelves = new Map<Shelf, Map<ChatId, Mark>>(Shelf.ALL.map((shelf) => [shelf, new Map()]));
  for (const [chat, mark] of marks) shelves.get(await Shelf.of(chat))?.set(chat, mark);
  const floors = await Promise.all(
    [...shelves].map(([shelf, chats]) => sealRecord(held, id, Place.floor(shelf), 1, Floor.toJson({ chats }))),
  );
  const hashes = await Promise.all(floors.map(Digest.of));
  const first = await chain(Digest.ZERO, Digest.ZERO, await Manifest.live(hashes));
  const manifest: Manifest = { g: 1, uk: 1, boxN: 1, boxPub, floors: hashes, chain: first, at: 7, device: DeviceId.random() };
  const sealed = await sealRecord(held, id, Place.MANIFEST, 1, Manifest.toJson(manifest));
  return { ring, boxRing, boxPub, manifest: sealed, trail: Trail.NONE, floors };
}

function makeMessage(at: number, parent: MessageId | null): Message {
  return message(`${at} ${"word ".repeat(80)}`, parent);
}

function message(body: string, parent: MessageId | null): Message {
  return { role: "user", parent, createdAt: 1_700_000_000_000, body, model: null, reason: null, refs: [], proof: null, shared: [] };
}

async function per(name: string, times: number, run: () => Promise<void>): Promise<string> {
  const start = performance.now();
  for (let at = 0; at < times; at++) await run();
  return `${name}: ${(((performance.now() - start) * 1000) / times).toFixed(0)} µs`;
}
