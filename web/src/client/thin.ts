// Room when the browser has none left: words go, those that are missed least first, and come back when they are opened.
//
//   1  previews of chats whose words went before
//   2  words of other chats, the one opened longest ago first:   whole ─▶ outline and previews (outline.ts)
//   3  outlines, in the same order:                              outline ─▶ its cid only ─▶ its hash only, as the list has it
//   4  which words are in which chat, for search (word_index.ts); in memory they stay
//   5  the file of the chat that is shown, as 2 and 3; in memory it stays whole
//   6  what was noted about answers: nobody else has it
//
//   never: keys, heads, titles and other fields, drafts, the queue
//
// What was seen stays remembered, so a server cannot use the gap to show something older. Nothing goes that only this device has: a chat
// with something in the queue stays whole, and so does one that waits for an answer. Easy to get wrong: deciding about an edit in a thin
// chat. Its message looks deleted; so a chat is loaded before anything is sent to it.

import { ItemId } from "../format/index";
import type { Bytes, ChatId } from "../format/index";
import { ANSWERS } from "./answer_notes";
import { type Device, fileOf, keepRooms, keepState } from "./device";
import { isOwn } from "./error";
import { PREVIEWED, PREVIEWS, cidKey, outlineOf, outlinedBranch, previewsFile, previewsToJson } from "./outline";
import { type Room, type Slot, isThin, revOf, roomToJson } from "./room";

/**
 * After `quota`: words go, so many bytes of them at a time, until everything else is kept, with what could not be kept before. False if
 * nothing is left that could go.
 */
export async function makeRoom(device: Device, keep: ReadonlySet<ChatId>, bytes: number): Promise<boolean> {
  // What went before may not have found room as an outline, either.
  for (const room of device.rooms.values()) if (isThin(room)) await shrunk(device, room);
  if ((await drop(device, PREVIEWS)) > 0 && (await fits(device))) return true;
  while ((await thin(device, keep, bytes)) > 0) if (await fits(device)) return true;
  if ((await drop(device, PREVIEWS)) > 0 && (await fits(device))) return true;
  for (const less of [bared, hashed]) while ((await shrink(device, less, bytes)) > 0) if (await fits(device)) return true;
  if ((await device.words.dropFiles(device)) > 0 && (await fits(device))) return true;
  if ((await fits(device)) || (await fitsShort(device, keep))) return true;
  return (await drop(device, ANSWERS)) > 0 && ((await fits(device)) || fitsShort(device, keep));
}

/**
 * Lets words go until so many bytes are free, those of the chats that were opened longest ago first, and of none of `keep`. How many
 * bytes went.
 */
export async function thin(device: Device, keep: ReadonlySet<ChatId>, bytes: number): Promise<number> {
  let free = 0;
  for (const room of leastOpened(device)) {
    if (free >= bytes) break;
    if (isThin(room) || keep.has(room.id) || isUsed(device, room)) continue;
    // Its words are found all the same.
    await device.words.takeNow(device, room);
    const { rest, previews } = await thinned(device, room);
    free += Math.max(0, roomToJson(room).length - roomToJson(rest).length);
    device.rooms.set(room.id, rest);
    await shrunk(device, rest);
    await unlessFull(device.cabinet.write(previewsFile(room.id), previews));
  }
  return free;
}

/** What stays of a chat; null if there is no more of it already. */
type Less = (room: Room) => Room | null;

/** Lets outlines go in the same way. How many bytes went. */
async function shrink(device: Device, less: Less, bytes: number): Promise<number> {
  let free = 0;
  for (const room of leastOpened(device)) {
    if (free >= bytes) break;
    const rest = less(room);
    if (rest === null) continue;
    free += Math.max(1, roomToJson(room).length - roomToJson(rest).length);
    device.rooms.set(room.id, rest);
    await shrunk(device, rest);
  }
  return free;
}

/** Files whose names begin with this, such as the first words of chats whose words went; how many files went. */
async function drop(device: Device, prefix: string): Promise<number> {
  const names = await device.cabinet.names(prefix);
  for (const name of names) await device.cabinet.remove(name);
  return names.length;
}

/** Whether everything that is in memory is kept now. */
async function fits(device: Device): Promise<boolean> {
  try {
    await keepState(device);
    await keepRooms(device, device.rooms.values());
    return true;
  } catch (error) {
    if (!isOwn(error, "quota")) throw error;
    return false;
  }
}

/** The same, with chats in use kept as outlines, or as less. In memory they stay whole; after a reload their words are loaded. */
async function fitsShort(device: Device, keep: ReadonlySet<ChatId>): Promise<boolean> {
  const rooms = [...device.rooms.values()];
  const short = new Map<ChatId, Room>();
  for (const room of rooms) {
    if (keep.has(room.id) && !isThin(room) && !isUsed(device, room)) short.set(room.id, (await thinned(device, room)).rest);
  }
  if (short.size === 0) return false;
  const as = (less: Less) => new Map([...short].map(([id, room]) => [id, less(room) ?? room]));
  for (const shorter of [short, as(bared), as(hashed)]) {
    try {
      for (const room of shorter.values()) await shrunk(device, room);
      await keepState(device);
      await keepRooms(device, rooms.filter(({ id }) => !shorter.has(id)));
      return true;
    } catch (error) {
      if (!isOwn(error, "quota")) throw error;
    }
  }
  return false;
}

/** Chats by when they were opened here, the longest ago first; those that never were, by when they were written to. */
function leastOpened(device: Device): Room[] {
  const place = new Map(device.state.recent.map((chat, at) => [chat, at]));
  const order = (room: Room) => place.get(room.id) ?? -1;
  return [...device.rooms.values()].sort((one, two) => order(one) - order(two) || one.updatedAt - two.updatedAt || (one.id < two.id ? -1 : 1));
}

function isUsed(device: Device, room: Room): boolean {
  return room.head.pending.length > 0 || device.state.queue.ofChat(room.id).length > 0;
}

/**
 * Keeps less of a chat than its file has. Browsers that are over their limit may refuse a smaller file, too: then the larger one goes
 * first. If the tab is closed in between, the chat is loaded anew.
 */
async function shrunk(device: Device, room: Room): Promise<void> {
  try {
    await keepRooms(device, [room]);
  } catch (error) {
    if (!isOwn(error, "quota")) throw error;
    await device.cabinet.remove(fileOf(room.id));
    await unlessFull(keepRooms(device, [room]));
  }
}

/** One that was never kept takes room even when it is thin. Others go first, then it is tried again. */
async function unlessFull(writing: Promise<void>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (!isOwn(error, "quota")) throw error;
  }
}

/** A chat without its words: messages by their outlines, attachments by their hashes. */
async function thinned(device: Device, room: Room): Promise<{ rest: Room; previews: Bytes }> {
  const key = cidKey(device);
  const items = new Map<ItemId, Slot>();
  const firsts = new Map<ItemId, [string, string][]>();
  for (const [id, slot] of room.items) {
    const { hash, item } = slot;
    if (ItemId.fieldOf(id) !== null || item === null) items.set(id, slot);
    else if (item.kind !== "message" || key === null) items.set(id, { hash, item: null, seen: revOf(slot) });
    else {
      const { outline, previews } = await outlineOf(key, item.message);
      items.set(id, { hash, item: null, seen: revOf(slot), outline });
      firsts.set(id, previews);
    }
  }
  const rest = { ...room, items };
  const shown = outlinedBranch(rest).slice(-PREVIEWED).flatMap(({ id }) => firsts.get(id) ?? []);
  return { rest, previews: previewsToJson(shown) };
}

/** A chat whose messages are content ids only. */
const bared: Less = (room) =>
  changed(room, (slot) => {
    if (slot.outline?.nodes === undefined) return null;
    const { nodes: _, ...outline } = slot.outline;
    return { ...slot, outline };
  });

/** A chat whose messages are hashes only. */
const hashed: Less = (room) =>
  changed(room, (slot) => {
    if (slot.outline === undefined) return null;
    const { outline: _, ...rest } = slot;
    return rest;
  });

function changed(room: Room, change: (slot: Slot) => Slot | null): Room | null {
  const items = new Map<ItemId, Slot>();
  let isChanged = false;
  for (const [id, slot] of room.items) {
    const now = change(slot);
    items.set(id, now ?? slot);
    isChanged ||= now !== null;
  }
  return isChanged ? { ...room, items } : null;
}
