// A new account key: every ring sealed again, in one commit.
//
//   load every chat's keys ─▶ begin (frozen) ─▶ look again ─▶ keep the new key ─▶ stage rings and floors ─▶ commit
//
// Killed before the commit, nothing has changed, and the next `rotate` begins anew. Killed after it, the next sync finds the new generation
// and opens it with the key that was kept. Easy to get wrong: a credential that was not presented. It is gone with the old key.

import {
  type AccountKey,
  BoxKey,
  type ChatId,
  Entry,
  Floor,
  type Held,
  Key,
  type Manifest,
  type Mark,
  Place,
  Refused,
  RingOf,
  Sealed,
  Shelf,
  ringsDigest,
  sealRecord,
} from "../format/index";
import { type FloorSent, MAX_BATCH, MAX_FLOOR, type RingRows, type RotationCommit, type RotationStage } from "../protocol/index";
import { accountRev, inTurn } from "./account";
import { listed } from "./chats";
import type { Credential, Signing } from "./credential";
import { type Device, connect, save, saveRoom } from "./device";
import { ClientError } from "./error";
import { rowsOf } from "./room";
import { flush } from "./send";
import { type Book, keysRing, keysRows, openBook } from "./state";
import { NONE, adopt, chunks, fetchChats, nothingSynced, sync, takeChat } from "./sync";
import { next, sealManifest, within } from "./write";

/** What is staged, and what the commit says. */
interface Prepared {
  stages: RotationStage[];
  commit: RotationCommit;
  book: Book;
}

/**
 * Replaces the account key. `by` signs; `keep` are the credentials that remain, `by` among them or replaced by them: all others are removed,
 * and other devices are logged out. `conflict`: something changed meanwhile; do it again.
 */
export async function rotate(device: Device, by: Credential, keep: readonly Credential[]): Promise<void> {
  const signing = await device.link.ready(by);
  const kept = await inTurn(keep, (credential) => device.link.ready(credential));
  await connect(device);
  await flush(device);
  await loadAll(device);
  const { generation } = device.state;
  const rev = await accountRev(device);
  const begun = await device.link.prove("/account/rotation/begin", { accountRev: rev }, signing);
  // A rotation of this device that was committed before it was killed was found by the sync above.
  if (device.state.generation !== generation || begun.generation !== next(generation)) throw new Refused("key-refused");
  // Frozen: what is loaded now is what is committed.
  await loadAll(device);
  const ak = await device.ak.next();
  if (ak === null) throw new Refused("key-refused");
  const { stages, commit, book } = await prepare(device, ak, kept);
  device.state.rotating = { generation: ak.generation, ak: ak.key };
  await save(device);
  for (const stage of stages) await device.link.post("/account/rotation/stage", stage);
  const changed = await device.link.prove("/account/rotation/commit", commit, signing);
  if (changed.generation !== ak.generation) throw new ClientError("unexpected");
  device.state.accountRev = changed.accountRev;
  device.state.wraps.clear();
  await adopt(device, ak);
  device.account = await openBook(book, device.state.account, ak);
  device.state.book = book;
  await save(device);
}

/** Loads every chat of the account: the keys of all of them are sealed again. */
async function loadAll(device: Device): Promise<void> {
  await sync(device, "all");
  const missing = listed(device).filter((chat) => !device.rooms.has(chat));
  for (const batch of chunks(missing, MAX_BATCH)) {
    const found = await fetchChats(device, new Map(batch.map((chat) => [chat, NONE])));
    if (found.missing.length > 0) throw new Refused("withheld");
    const synced = nothingSynced();
    for (const [chat, parts] of found.chats) {
      await takeChat(device, chat, parts, synced);
      await saveRoom(device, chat);
    }
  }
}

async function prepare(device: Device, ak: AccountKey, kept: readonly Signing[]): Promise<Prepared> {
  const { account: id, book: before, accountRev: rev } = device.state;
  const { account, ak: old } = device;
  if (account === null || before === null) throw new ClientError("offline");
  const rings = await ringsDigest(await oldRows(device, before, old));
  const rows: RingRows[] = [
    { kind: "account", entries: await keysRows(before.keys, ak, id, RingOf.ACCOUNT) },
    { kind: "box", entries: await keysRows(before.boxes, ak, id, RingOf.BOX) },
  ];
  for (const [chat, room] of device.rooms) rows.push({ kind: "chat", chat, entries: await rowsOf(room, ak, id) });

  const [uk, mail, born] = [await Key.random(), await Key.random(), ak.generation];
  const ring = await Entry.seal(ak, id, RingOf.ACCOUNT, before.keys.length + 1, uk, born);
  const mailbox = await Entry.seal(ak, id, RingOf.BOX, before.boxes.length + 1, mail, born);
  const keys = [...before.keys, { key: uk, born }];
  const boxes = [...before.boxes, { key: mail, born }];
  const boxPub = (await BoxKey.fromKey(mail)).publicKey;
  const held = (await keysRing(keys, ak, id, RingOf.ACCOUNT)).newest;
  const floors = await restagedFloors(device, before, account.floors, held);
  const envelopes = floors.map(({ envelope }) => envelope);
  const manifest: Manifest = {
    ...account.manifest,
    g: born,
    uk: keys.length,
    boxN: boxes.length,
    boxPub,
    at: device.now(),
    device: device.state.device,
  };
  const head = await sealManifest({ floors: envelopes }, account.mark, account.manifest.chain, manifest, (at, json) =>
    sealRecord(held, id, Place.MANIFEST, at, json),
  );
  const commit: RotationCommit = {
    generation: born,
    accountRev: rev,
    rings,
    credentials: await inTurn(kept, (one) => one.newCredential(ak, id, next(rev))),
    ring,
    mailbox: { entry: mailbox, boxPub },
    manifest: head,
  };
  const stages: RotationStage[] = chunks(rows, RINGS).map((part) => ({ generation: born, rings: part, floors: [] }));
  stages.push({ generation: born, rings: [], floors });
  return { stages, commit, book: { keys, boxes, boxPub, manifest: head.envelope, floors: envelopes } };
}

/** Every row of every ring, as the server has it now. */
async function oldRows(device: Device, book: Book, old: AccountKey): Promise<[RingOf, Entry][]> {
  const id = device.state.account;
  const rows: [RingOf, Entry][] = [];
  for (const row of await keysRows(book.keys, old, id, RingOf.ACCOUNT)) rows.push([RingOf.ACCOUNT, row]);
  for (const row of await keysRows(book.boxes, old, id, RingOf.BOX)) rows.push([RingOf.BOX, row]);
  for (const [chat, room] of device.rooms) {
    for (const row of await rowsOf(room, old, id)) rows.push([RingOf.chat(chat), row]);
  }
  return rows;
}

/** Every floor under the new key of the account, with the heads that this device has verified. */
async function restagedFloors(
  device: Device,
  book: Book,
  marks: ReadonlyMap<ChatId, Mark>,
  held: Held,
): Promise<(FloorSent & { envelope: Sealed })[]> {
  const shelves: Map<ChatId, Mark>[] = book.floors.map(() => new Map());
  for (const [chat, mark] of marks) {
    // No head may be ahead of its floor here: it would be of a generation that is over.
    shelves[await Shelf.of(chat)]?.set(chat, device.rooms.get(chat)?.mark ?? mark);
  }
  return Promise.all(
    shelves.map(async (chats, shelf) => {
      const before = book.floors[shelf];
      const rev = next(before === undefined ? 0 : (Sealed.rev(before) ?? 0));
      const sealed = await sealRecord(held, device.state.account, Place.floor(shelf), rev, Floor.toJson({ chats }));
      return { shelf, envelope: within(sealed, MAX_FLOOR) };
    }),
  );
}

/** Rings in one request. */
const RINGS = 500;
