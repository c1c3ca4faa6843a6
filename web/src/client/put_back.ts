// "Send mine again": what this device has, written as new revisions over what the server shows now.
//
//   mine: rooms, data ────────────┐
//   server, as a device without   ├─▶ what differs ─▶ ordinary writes ─▶ this device has what the server has
//   memory is shown it, checked ──┘        │
//                                          └─▶ another device was newer: mine becomes a copy
//
// The person does this after the server's operator restored a backup, or after the server lost everything. A rollback by an attacker
// looks the same from here, so nothing happens by itself. What the person can lose by it is little:
//
// - The server's state has to open under the account key of now. A state of before a rotation is `key-refused`: whoever lost that key to
//   a thief would otherwise seal for the thief.
// - What is newer here is written again, with revisions above all that were seen. What went here goes again. What is newer there stays,
//   and mine is kept as a copy. What only the server has stays.
//
// Easy to get wrong: forgetting before it is done. The files keep what was here until all of it is stored, so cut off anywhere it begins
// anew and finds less to do.

import { ItemId, Key, Message, Refused, Text } from "../format/index";
import type { Bytes, ChatId, Item, MessageId } from "../format/index";
import { logIn } from "./account";
import { listed as listedChats } from "./chats";
import type { Credential } from "./credential";
import { Device, disconnect, requestOne, save, saveRooms } from "./device";
import { ClientError } from "./error";
import { Cabinet, type Files } from "./files";
import { LARGEST, changeTo, remove, type Change } from "./plan";
import type { What } from "./queue";
import { revOf, roomMessage, textOf, type Room, type Slot } from "./room";
import { dataEvent, settle, takeOwnList, wasDeleted } from "./send";
import { newState, pieceOf, putPiece, type Piece } from "./state";
import { FirstRefusal, NONE, fetchChats, nothingSynced, refreshAccount, refreshChat, sync, takeChat } from "./sync";
import { deletionOf, next, sealDraft, writeChat } from "./write";

/** What was written again. */
export interface PutBack {
  /** Chats that the server did not have. */
  chats: number;
  /** Messages, fields, attachments, drafts and settings that were written. */
  written: number;
  /** Messages and chats that were there again and are gone again. */
  removed: number;
  /** What another device was newer with: mine is among the copies. */
  copies: number;
  /** Attachments that neither the server nor this device has. */
  missing: number;
  /** Chats that the server does not show as they should be; what this device has of them is kept. */
  refused: ChatId[];
}

/** Words of mine that came too late. */
interface Late {
  chat: ChatId | null;
  what: What;
  text: string | null;
}

/**
 * Takes what the server shows now for what there is, and writes what this device has over it, as new revisions. The person's act, after
 * `rolled-back`, `forked` or a restore; never done by itself.
 */
export async function putBack(device: Device): Promise<PutBack> {
  disconnect(device);
  const there = await stranger(device);
  try {
    const done: PutBack = { chats: 0, written: 0, removed: 0, copies: 0, missing: 0, refused: [] };
    const late: Late[] = [];
    const shown = await look(there, done);
    for (const [chat, mine] of device.rooms) {
      if (!done.refused.includes(chat)) await putChat(there, mine, done, late);
    }
    for (const chat of device.state.gone) {
      if (!device.rooms.has(chat)) await deleteAgain(there, chat, shown.get(chat), done);
    }
    for (const piece of device.state.data) await putPieceBack(there, piece, done, late);
    await settle(there);
    done.copies = late.length;
    await takeOver(device, there, late);
    return done;
  } finally {
    disconnect(there);
  }
}

/**
 * The same, after logging in again: the server may have credentials of before a change, whose wraps are older than those that this device
 * has seen. The account key is never an older one. The device that is given takes the place of the one before.
 */
export async function putBackBy(device: Device, by: Credential): Promise<[Device, PutBack]> {
  device.state.wraps.clear();
  await save(device);
  disconnect(device);
  const again = await logIn(device.setup, by);
  return [again, await putBack(again)];
}

/** This device without its memory and without files. */
async function stranger(device: Device): Promise<Device> {
  const [files, key] = [NOWHERE, await Key.random()];
  const state = newState(device.state.account, device.state.device, device.ak);
  [state.session, state.accountRev] = [device.state.session, device.state.accountRev];
  return new Device({ ...device.setup, files, key }, await Cabinet.open(files, key), state);
}

/** Files that nobody keeps. */
const NOWHERE: Files = {
  read: async () => null,
  write: async () => {},
  writeAll: async () => {},
  remove: async () => {},
  names: async () => [],
};

/**
 * Loads all that the server has. A chat that is refused is named, and the others are taken in; the revisions that the server claims for
 * those that were refused.
 */
async function look(there: Device, done: PutBack): Promise<Map<ChatId, number>> {
  const whole = new FirstRefusal();
  await whole.note(sync(there, "all"));
  if (there.account === null) throw whole.first ?? new Refused("account-missing");
  const shown = new Map<ChatId, number>();
  for (const chat of listedChats(there)) {
    if (there.rooms.has(chat)) continue;
    const parts = (await fetchChats(there, new Map([[chat, NONE]]))).chats.get(chat);
    const last = parts?.at(-1);
    if (last !== undefined) shown.set(chat, last.versions.messagesV);
    const refusal = new FirstRefusal();
    if (parts !== undefined) await refusal.note(takeChat(there, chat, parts, nothingSynced()));
    if (parts === undefined || refusal.first !== null) done.refused.push(chat);
  }
  return shown;
}

/** Writes one chat of mine, as far as the server has not got it. */
async function putChat(there: Device, mine: Room, done: PutBack, late: Late[]): Promise<void> {
  const first = there.rooms.get(mine.id);
  const hasLeaf = first === undefined || isFurther(mine, first);
  const skip = new Set<ItemId>();
  for (let most = BATCH; ; ) {
    const room = there.rooms.get(mine.id);
    const wanted = differences(mine, room, skip);
    if (wanted.length === 0 && room !== undefined) break;
    const change = changeOf(mine, room, wanted, most, hasLeaf);
    if (await writeChange(there, mine.id, change)) {
      done.chats += room === undefined ? 1 : 0;
      done.written += change.puts.length;
      most = BATCH;
      continue;
    }
    await refreshAccount(there);
    await refreshChat(there, mine.id);
    const born = there.rooms.get(mine.id)?.ring.newest.born;
    // Deleted by another device, since the server was restored.
    if (born === undefined && (await wasDeleted(there, mine.id))) return;
    if (born !== there.generation) throw new ClientError("frozen");
    const item = change.puts[0]?.[0];
    if (most > 1) {
      most = 1;
    } else if (item !== undefined) {
      late.push(...lateItem(mine, item));
      skip.add(item);
    } else {
      break;
    }
  }
  await showAgain(there, mine, hasLeaf);
  const now = there.rooms.get(mine.id);
  done.missing += [...mine.items].filter(([item, slot]) => slot.item === null && now?.items.has(item) !== true).length;
  if (now !== undefined) late.push(...newerThere(mine, now));
  await removeAgain(there, mine, done);
  await putDraftBack(there, mine, done, late);
}

/** Shows the branch that was shown here, if nothing else was written that could say so. */
async function showAgain(there: Device, mine: Room, hasLeaf: boolean): Promise<void> {
  const room = there.rooms.get(mine.id);
  const { leaf } = mine.head;
  if (room === undefined || !hasLeaf || leaf === null || leaf === room.head.leaf) return;
  if (roomMessage(room, leaf) !== undefined) await writeChange(there, mine.id, changeTo(leaf));
}

/** What another device wrote other words for, later than mine. */
function newerThere(mine: Room, there: Room): Late[] {
  const isOther = ([id, slot]: [ItemId, Slot]) => {
    const now = there.items.get(id)?.item ?? null;
    return now !== null && slot.item !== null && !isSame(now, slot.item);
  };
  return [...mine.items].filter(isOther).flatMap(([id]) => lateItem(mine, id));
}

/** Stores a change; false if somebody was first. */
async function writeChange(there: Device, chat: ChatId, change: Change): Promise<boolean> {
  const { write, after, book } = await writeChat(there.scribe(), chat, there.rooms.get(chat), change);
  const [seq, event] = await requestOne(there, { type: "encrypted_chat_metadata", ...write });
  if (event.type === "write_conflict") return false;
  const isStored = event.type === "encrypted_metadata_stored" && event.messagesV === after.mark.rev && event.chat === chat;
  if (!isStored) throw new ClientError("unexpected");
  await takeOwnList(there, book, seq);
  there.rooms.set(chat, { ...after, titleV: event.titleV, updatedAt: event.updatedAt });
  return true;
}

/** What went here and is there again goes again, one by one: the answers to a message move up. */
async function removeAgain(there: Device, mine: Room, done: PutBack): Promise<void> {
  for (const item of mine.gone) {
    const room = there.rooms.get(mine.id);
    if (room === undefined) return;
    if (!room.items.has(item)) continue;
    const change = changeTo(room.head.leaf);
    if (ItemId.isMessage(item)) remove(change, room, item);
    else change.removes.push(item);
    if (change.removes.length > 0 && (await writeChange(there, mine.id, change))) done.removed += 1;
  }
}

/** A chat that went here goes again. Its key may be destroyed already, so that it does not open: it goes all the same. */
async function deleteAgain(there: Device, chat: ChatId, shown: number | undefined, done: PutBack): Promise<void> {
  const rev = there.rooms.get(chat)?.mark.rev ?? shown;
  if (rev === undefined) return;
  const { request, book } = await deletionOf(there.scribe(), chat, rev);
  const [seq, event] = await requestOne(there, { type: "delete_chat", ...request });
  if (event.type !== "chat_deleted") return;
  await takeOwnList(there, book, seq);
  there.rooms.delete(chat);
  done.refused = done.refused.filter((refused) => refused !== chat);
  done.removed += 1;
}

async function putDraftBack(there: Device, mine: Room, done: PutBack, late: Late[]): Promise<void> {
  const room = there.rooms.get(mine.id);
  const { draft } = mine;
  if (room === undefined || draft === null || room.draft?.body === draft.body) return;
  const copy: Late = { chat: mine.id, what: { what: "draft" }, text: draft.body };
  // Another device typed something, or threw it away, since.
  if (room.draftV >= mine.draftV) {
    if (room.draft !== null) late.push(copy);
    return;
  }
  const expected = room.draftV;
  const rev = next(Math.max(expected, mine.draftV));
  const sealed = await sealDraft(room, there.state.account, rev, draft.body);
  const [seq, event] = await requestOne(there, { type: "update_draft", chat: mine.id, expected, draft: sealed });
  if (event.type !== "chat_draft_updated") {
    late.push(copy);
    return;
  }
  [room.draftV, room.draft] = [rev, { body: draft.body }];
  done.written += 1;
  await takeOwnList(there, null, seq);
}

async function putPieceBack(there: Device, mine: Piece, done: PutBack, late: Late[]): Promise<void> {
  const { kind, name } = mine;
  const now = pieceOf(there.state, kind, name);
  const expected = now?.rev ?? 0;
  if ((now?.body ?? null) === mine.body) return;
  const copies: Late[] = mine.body === null ? [] : [{ chat: null, what: { what: "data", kind, name }, text: mine.body }];
  if (expected >= mine.rev) {
    late.push(...copies);
    return;
  }
  const [seq, event] = await requestOne(there, await dataEvent(there, kind, name, mine.body, expected, next(mine.rev)));
  if (event.type !== "data_updated") {
    late.push(...copies);
    return;
  }
  putPiece(there.state, { ...mine, rev: event.rev });
  await takeOwnList(there, null, seq);
  done.written += 1;
}

/** What the server has is what this device has from now on. Chats first: `state` says that it is done. */
async function takeOver(device: Device, there: Device, late: readonly Late[]): Promise<void> {
  const before = device.rooms;
  const rooms = new Map<ChatId, Room>();
  for (const [chat, room] of there.rooms) {
    const mine = before.get(chat);
    for (const item of mine?.gone ?? []) if (!room.items.has(item)) room.gone.add(item);
    rooms.set(chat, room);
  }
  for (const [chat, room] of before) {
    if (!rooms.has(chat) && there.account?.floors.has(chat) === true) rooms.set(chat, room);
  }
  device.rooms = rooms;
  await saveRooms(device, [...rooms.keys(), ...before.keys()]);
  for (const { chat, what, text } of late) device.state.queue.keepCopy(chat, what, text, { why: "changed" });
  const { book, data, accountRev, seq, older } = there.state;
  Object.assign(device.state, { book, data, accountRev, seq, older, pinned: null });
  device.account = there.account;
  await save(device);
}

/** What mine has that the server has not, or has older; a message after the one that it answers. */
function differences(mine: Room, there: Room | undefined, skip: ReadonlySet<ItemId>): ItemId[] {
  const isDue = ([id, slot]: [ItemId, Slot]) => {
    if (slot.item === null || skip.has(id)) return false;
    const now = there?.items.get(id);
    if (now === undefined) return true;
    // Attachments are never changed, and a sync leaves them out.
    if (ItemId.isEmbed(id)) return false;
    const isOther = now.item === null || !isSame(now.item, slot.item);
    return now.hash !== slot.hash && isOther && revOf(now) < revOf(slot);
  };
  const due = [...mine.items].filter(isDue).map(([id]) => id);
  // By how many messages a message answers, one through the other: what is answered comes first.
  const messages = due.filter(ItemId.isMessage).map((id): [number, MessageId] => [depth(mine, id), id]);
  messages.sort(([near, one], [far, two]) => near - far || (one < two ? -1 : 1));
  return [...due.filter((id) => !ItemId.isMessage(id)), ...messages.map(([, id]) => id)];
}

/** Whether both say the same, whichever revision they are. */
function isSame(one: Item, two: Item): boolean {
  const text = (item: Item) => JSON.stringify(item.kind === "message" ? item.message : item.text);
  return text(one) === text(two);
}

/** Whether mine is shown: it was written later, or its branch goes on where the other ends. */
function isFurther(mine: Room, there: Room): boolean {
  if (mine.head.at > there.head.at) return true;
  let at = mine.head.leaf;
  for (let left = mine.items.size; at !== null && left > 0; left--) {
    if (at === there.head.leaf) return true;
    at = roomMessage(mine, at)?.parent ?? null;
  }
  return false;
}

/** How many messages lie before this one. A chat that was verified has no circles. */
function depth(room: Room, id: MessageId): number {
  let count = 0;
  for (let at = roomMessage(room, id)?.parent ?? null; at !== null && count < room.items.size; count++) {
    at = roomMessage(room, at)?.parent ?? null;
  }
  return count;
}

/** The next write: so many of what differs, and the branch that was shown here once all of it is there. */
function changeOf(mine: Room, there: Room | undefined, wanted: readonly ItemId[], most: number, hasLeaf: boolean): Change {
  const change = changeTo(there?.head.leaf ?? null);
  const isThere = (id: MessageId) => there?.items.has(id) === true || change.puts.some(([put]) => put === id);
  let size = 0;
  for (const id of wanted) {
    const slot = mine.items.get(id);
    if (slot === undefined || slot.item === null) continue;
    const json = jsonOf(slot.item, isThere);
    size += json.length;
    if (change.puts.length >= most || (size > LARGEST && change.puts.length > 0)) break;
    change.seen.set(id, revOf(slot));
    change.puts.push([id, json]);
  }
  const { leaf } = mine.head;
  if (hasLeaf && change.puts.length === wanted.length && leaf !== null && isThere(leaf)) change.leaf = leaf;
  return change;
}

/** What is sealed again. A message that answers one which is not there becomes a first one. */
function jsonOf(item: Item, isThere: (id: MessageId) => boolean): Bytes {
  if (item.kind === "text") return Text.toJson(item.text);
  const { message } = item;
  const parent = message.parent !== null && isThere(message.parent) ? message.parent : null;
  return Message.toJson({ ...message, parent });
}

/** Words of mine, as a copy: at most one. */
function lateItem(mine: Room, id: ItemId): Late[] {
  const item = mine.items.get(id)?.item ?? null;
  if (item === null) return [];
  const field = ItemId.fieldOf(id);
  if (field !== null) return [{ chat: mine.id, what: { what: "field", name: field }, text: textOf(item) }];
  if (ItemId.isEmbed(id)) return [{ chat: mine.id, what: { what: "embed", id }, text: textOf(item) }];
  if (!ItemId.isMessage(id) || item.kind !== "message") return [];
  return [{ chat: mine.id, what: { what: "edit", id }, text: item.message.body }];
}

/** Items in one write. */
const BATCH = 100;
