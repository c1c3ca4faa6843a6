// Sends the queue, in order, until it is empty or the server is gone.
//
//   decide ─▶ seal ─▶ keep the mark ─▶ send ─┬─ stored    ─▶ done, kept before the chat is
//                                            ├─ conflict  ─▶ load what is newer, decide again
//                                            └─ no answer ─▶ offline; the next flush decides again
//
// Easy to get wrong: a conflict that loading does not resolve. It is an id that was deleted elsewhere, or an account whose keys
// are frozen; trying once more would never end.

import { Digest, FieldName, Place, Refused, sealRecord } from "../format/index";
import type { ChatId, Mark, Sealed } from "../format/index";
import type { ClientEvent } from "../protocol/index";
import { MAX_RECORD } from "../protocol/limits";
import { acknowledge } from "./answers";
import { beginTurns } from "./asks";
import { connect, requestOne, save, saveRoom, type Device } from "./device";
import { ClientError, isDenied, isNotFound, isOwn } from "./error";
import { batch, change, decide, decideData, suggestions, textJson } from "./plan";
import type { Pending, Why } from "./queue";
import { isThin } from "./room";
import { noteGone, openBook, pieceOf, putPiece, type Book } from "./state";
import { isListed, refreshAccount, refreshChat, sync } from "./sync";
import { NOTHING, deletionOf, next, sealDraft, updateFloors, within, writeChat } from "./write";

/** What a request of the queue came to: something was resolved, or the server has something newer. */
type Outcome = "next" | "conflict";

/**
 * Connects if needed, sends what waits, asks what is to be answered, and brings the floors up to date. `offline`: what waits is
 * kept.
 */
export async function flush(device: Device): Promise<void> {
  if (device.account === null || !device.isConnected) await connect(device);
  // A new account key that this device was about to commit may be the account's by now.
  if (device.account === null || device.state.rotating !== null) await refreshAccount(device);
  let most = BATCH;
  for (let first = device.state.queue.ops[0]; first !== undefined; first = device.state.queue.ops[0]) {
    const before = standing(device, first);
    if ((await sendNext(device, first, most)) === "next") {
      most = BATCH;
      continue;
    }
    await refreshFor(device, first);
    const isStill = device.state.queue.ops[0]?.n === first.n;
    if (!isStill || standing(device, first) !== before) continue;
    // Of several, one is in the way: each by itself.
    if (most > 1 && first.act.do !== "delete-chat") most = 1;
    else await stuck(device, first);
  }
  // Asked first, since somebody waits for the answer. What fails there does not hold up the floors.
  const [begun] = await Promise.allSettled([beginTurns(device)]);
  await settle(device);
  if (begun.status === "rejected") throw begun.reason;
  await acknowledge(device);
}

/** What a conflict has to change, or trying again is useless: one text for all of it. */
function standing(device: Device, { chat, act }: Pending): string {
  const room = chat === null ? undefined : device.rooms.get(chat);
  const data = act.do === "data" ? (pieceOf(device.state, act.kind, act.name)?.rev ?? 0) : 0;
  return JSON.stringify([room?.mark ?? null, room?.draftV ?? 0, data, device.account?.mark ?? null]);
}

async function refreshFor(device: Device, { chat }: Pending): Promise<void> {
  if (chat === null) return;
  await refreshAccount(device);
  await refreshChat(device, chat);
}

async function sendNext(device: Device, first: Pending, most: number): Promise<Outcome> {
  const { chat, act } = first;
  if (chat === null) return sendData(device, first);
  const room = device.rooms.get(chat);
  if (isListed(device, chat) && (room === undefined || isThin(room))) await refreshChat(device, chat);
  const decision = decide(act, device.rooms.get(chat));
  if (decision.then === "done") return resolved(device, first.n, null);
  if (decision.then === "lose") return resolved(device, first.n, decision.why);
  try {
    if (act.do === "delete-chat") return await sendDeletion(device, first, chat);
    if (act.do === "draft") return await sendDraft(device, first, chat, act.body);
    return await sendWrite(device, chat, most);
  } catch (error) {
    if (isNotFound(error)) {
      // The chat went meanwhile.
      await refreshAccount(device);
      if (isListed(device, chat)) throw error;
      return "next";
    }
    const name = refusedForGood(error);
    if (name === null) throw error;
    return resolved(device, first.n, { why: "refused", name });
  }
}

async function resolved(device: Device, n: number, lost: Why | null): Promise<"next"> {
  if (lost === null) device.state.queue.done([n]);
  else device.state.queue.lost(n, lost);
  await save(device);
  return "next";
}

async function sendWrite(device: Device, chat: ChatId, most: number): Promise<Outcome> {
  const room = device.rooms.get(chat);
  const ops = batch(device.state.queue.ops, room, most);
  const { write, after, book } = await writeChat(device.scribe(), chat, room, change(ops, room));
  const numbers = ops.map((op) => op.n);
  // Kept before it is sent: if the answer is lost, the server's history shows this mark.
  device.state.queue.noteSent(numbers, after.mark);
  await save(device);
  const [seq, event] = await requestOne(device, { type: "encrypted_chat_metadata", ...write });
  if (event.type === "write_conflict") return "conflict";
  if (event.type !== "encrypted_metadata_stored") throw new ClientError("unexpected");
  if (event.messagesV !== after.mark.rev || event.chat !== chat) throw new ClientError("unexpected");
  await takeOwnList(device, book, seq);
  device.state.queue.done(numbers);
  device.rooms.set(chat, { ...after, titleV: event.titleV, updatedAt: event.updatedAt });
  // The chat first: what waits behind this in the queue is decided by what the chat has, after a kill between the two, too.
  await saveRoom(device, chat);
  await save(device);
  return "next";
}

/** Floors and manifest that this device wrote are the account's from now on. */
export async function takeOwnList(device: Device, book: Book | null, seq: number | null): Promise<void> {
  if (book !== null) {
    device.account = await openBook(book, device.state.account, device.ak);
    device.state.book = book;
  }
  device.state.seq = Math.max(device.state.seq, seq ?? 0);
}

async function sendDeletion(device: Device, first: Pending, chat: ChatId): Promise<Outcome> {
  const room = device.rooms.get(chat);
  if (room === undefined) throw new ClientError("no-such-chat");
  const { request, book } = await deletionOf(device.scribe(), chat, room.mark.rev);
  device.state.queue.noteSent([first.n], NOTHING);
  await save(device);
  const [seq, event] = await requestOne(device, { type: "delete_chat", ...request });
  if (event.type === "write_conflict") return "conflict";
  if (event.type !== "chat_deleted") throw new ClientError("unexpected");
  await takeOwnList(device, book, seq);
  device.rooms.delete(chat);
  noteGone(device.state, [chat]);
  await resolved(device, first.n, null);
  await saveRoom(device, chat);
  return "next";
}

async function sendDraft(device: Device, first: Pending, chat: ChatId, body: string | null): Promise<Outcome> {
  const room = device.rooms.get(chat);
  if (room === undefined) throw new ClientError("no-such-chat");
  const expected = room.draftV;
  const rev = next(expected);
  const draft = body === null ? null : await sealDraft(room, device.state.account, rev, body);
  const request: ClientEvent =
    draft === null ? { type: "delete_draft", chat, expected } : { type: "update_draft", chat, expected, draft };
  device.state.queue.noteSent([first.n], await markOf(rev, draft));
  await save(device);
  const [seq, event] = await requestOne(device, request);
  if (event.type === "write_conflict") return "conflict";
  if (event.type !== "chat_draft_updated" && event.type !== "draft_deleted") throw new ClientError("unexpected");
  [room.draftV, room.draft] = [rev, body === null ? null : { body }];
  await takeOwnList(device, null, seq);
  await saveRoom(device, chat);
  await resolved(device, first.n, null);
  return "next";
}

async function sendData(device: Device, first: Pending): Promise<Outcome> {
  const { act } = first;
  let [kind, name, body]: [FieldName, FieldName, string | null] = [SUGGESTIONS, NEW_CHATS, null];
  if (act.do === "data") {
    const decision = decideData(pieceOf(device.state, act.kind, act.name), act.body, act.base);
    if (decision.then === "done") return resolved(device, first.n, null);
    if (decision.then === "lose") return resolved(device, first.n, decision.why);
    [kind, name, body] = [act.kind, act.name, act.body];
  } else if (act.do === "suggest") {
    const pool = suggestions(pieceOf(device.state, kind, name), act.texts);
    if (pool === null) return resolved(device, first.n, null);
    body = JSON.stringify(pool);
  } else {
    throw new ClientError("damaged");
  }
  const expected = pieceOf(device.state, kind, name)?.rev ?? 0;
  const rev = next(expected);
  try {
    const request = await dataEvent(device, kind, name, body, expected, rev);
    device.state.queue.noteSent([first.n], await markOf(rev, null));
    await save(device);
    const [seq, event] = await requestOne(device, request);
    if (event.type === "write_conflict") return await takeNewerData(device, kind, name, expected, event.data ?? 0);
    if (event.type !== "data_updated") throw new ClientError("unexpected");
    putPiece(device.state, { kind, name, rev, body });
    await takeOwnList(device, null, seq);
  } catch (error) {
    const name = refusedForGood(error);
    if (name === null) throw error;
    return resolved(device, first.n, { why: "refused", name });
  }
  return resolved(device, first.n, null);
}

/** Another device was first. A piece that was removed does not come with a sync: only the conflict tells how far it is. */
async function takeNewerData(device: Device, kind: FieldName, name: FieldName, expected: number, there: number): Promise<Outcome> {
  await sync(device, "last_chat");
  const known = pieceOf(device.state, kind, name)?.rev ?? 0;
  if (known < there) {
    putPiece(device.state, { kind, name, rev: there, body: null });
    await save(device);
  }
  if (Math.max(known, there) <= expected) throw new ClientError("unexpected");
  return "next";
}

/** A piece of data that replaces revision `expected`; one that is not removed gets this revision. */
export async function dataEvent(
  device: Device,
  kind: FieldName,
  name: FieldName,
  body: string | null,
  expected: number,
  rev: number,
): Promise<ClientEvent> {
  if (body === null) return { type: "delete_data", kind, name, expected };
  const held = device.scribe().account.ring.writer;
  if (held === null) throw new Refused("key-refused");
  const data = within(await sealRecord(held, device.state.account, Place.data(kind, name), rev, textJson(body)), MAX_RECORD);
  return { type: "update_data", kind, name, expected, data };
}

/**
 * A conflict although nothing is newer. An id that was sent before was stored, and deleted elsewhere; keys that cannot be added
 * are frozen.
 */
async function stuck(device: Device, first: Pending): Promise<void> {
  const { n, chat, act } = first;
  if (chat === null) throw new ClientError("unexpected");
  const attempts = device.state.queue.ops.find((op) => op.n === n)?.sent.length ?? 0;
  const room = device.rooms.get(chat);
  const needsKey = room === undefined || room.ring.newest.born !== device.state.generation;
  let lost: Why | null = null;
  if (act.do === "create" || act.do === "delete-chat") {
    const isGone = act.do === "create" && (await wasDeleted(device, chat));
    if (!isGone) throw new ClientError("frozen");
  } else if (needsKey) {
    throw new ClientError("frozen");
  } else if (act.do === "append" || act.do === "embed") {
    // Sent before this flush: it was stored then.
    if (attempts <= 1) lost = { why: "deleted" };
  } else if (act.do !== "retry" && act.do !== "reply" && act.do !== "gave" && act.do !== "give-up" && act.do !== "made" && act.do !== "ending") {
    lost = { why: "changed" };
  }
  await resolved(device, n, lost);
}

/**
 * Whether the server's list of changes says that this chat was deleted. One that no longer goes back far enough says nothing; a
 * chat that this device made, and that is not there, was deleted then.
 */
export async function wasDeleted(device: Device, chat: ChatId): Promise<boolean> {
  for (let since = 0; ; ) {
    const [, status] = await requestOne(device, { type: "sync_status_request", since });
    if (status.type !== "sync_status") throw new ClientError("unexpected");
    const isIt = status.changes.some(({ what }) => "chatDeleted" in what && what.chatDeleted === chat);
    if (status.gap || isIt) return true;
    const last = status.changes.at(-1);
    if (!status.more || last === undefined || last.seq <= since) return false;
    since = last.seq;
  }
}

/** Writes the floors of chats that this device wrote to, or that nobody noted for a minute. */
export async function settle(device: Device): Promise<void> {
  for (;;) {
    const { account } = device;
    if (account === null) return;
    const due = [...device.rooms.values()].filter((room) => {
      const floor = account.floors.get(room.id)?.rev ?? 0;
      const isOurs = room.head.device === device.state.device;
      const isLate = room.head.at + FLOOR_MS < device.now();
      return floor > 0 && room.mark.rev > floor && (isOurs || isLate);
    });
    if (due.length === 0) return;
    const { update, book } = await updateFloors(device.scribe(), due.map((room): [ChatId, Mark] => [room.id, room.mark]));
    const [seq, event] = await requestOne(device, { type: "update_manifest", ...update });
    if (event.type === "manifest_stored") {
      await takeOwnList(device, book, seq);
      await save(device);
    } else if (event.type === "write_conflict") {
      await refreshAccount(device);
      if (device.account?.mark.envelope === account.mark.envelope) throw new ClientError("frozen");
    } else {
      throw new ClientError("unexpected");
    }
  }
}

async function markOf(rev: number, sealed: Sealed | null): Promise<Mark> {
  return { rev, envelope: sealed === null ? Digest.ZERO : await Digest.of(sealed) };
}

/** The name of a refusal that the same request will always get. */
function refusedForGood(error: unknown): string | null {
  if (isOwn(error, "too-large")) return "too-large";
  if (!isDenied(error)) return null;
  return FOR_GOOD.includes(error.name) ? error.name : null;
}

const FOR_GOOD: readonly string[] = ["too-large", "too-many", "malformed", "bad-id", "record-refused"];

/** The account data that has suggestions for new chats: its kind and name. */
export const SUGGESTIONS = FieldName.parse("suggestions");
export const NEW_CHATS = FieldName.parse("new-chats");
/** Operations in one write. */
const BATCH = 100;
/** When the floor of a chat is due that another device wrote to. */
const FLOOR_MS = 60_000;
