// Room when the browser has none left: the words of chats that were not written to for longest go, and come back when they are opened.
//
//   whole chat ─ thin ─▶ keys, head, title and other fields, draft, and the hash of each message     (checked as before)
//              ◀ openChat, or a write that waits ─ asked for as if it were not here, shown from what this device remembers on
//
// What was seen stays remembered, so a server cannot use the gap to show something older. Nothing goes that only this device has: a chat
// with something in the queue stays whole, and so does one that waits for an answer. Easy to get wrong: deciding about an edit in a thin
// chat. Its message looks deleted; so a chat is loaded before anything is sent to it.

import { ItemId } from "../format/index";
import type { ChatId } from "../format/index";
import { type Device, save, saveRoom, saveRooms } from "./device";
import { isOwn } from "./error";
import { type Room, type Slot, isThin, revOf, roomToJson } from "./room";

/**
 * After `quota`: words go, so many bytes of them at a time, until everything else is kept, with what could not be kept before. False if
 * nothing is left that could go.
 */
export async function makeRoom(device: Device, keep: ReadonlySet<ChatId>, bytes: number): Promise<boolean> {
  while ((await thin(device, keep, bytes)) > 0) {
    try {
      await save(device);
      await saveRooms(device, device.rooms.keys());
      return true;
    } catch (error) {
      if (!isOwn(error, "quota")) throw error;
    }
  }
  return false;
}

/**
 * Lets words go until so many bytes are free, those of the chats that were written to longest ago first, and of none of `keep`. How many
 * bytes went.
 */
export async function thin(device: Device, keep: ReadonlySet<ChatId>, bytes: number): Promise<number> {
  const isUsed = (room: Room) => keep.has(room.id) || room.head.pending.length > 0 || device.state.queue.ofChat(room.id).length > 0;
  const whole = [...device.rooms.values()].filter((room) => !isThin(room) && !isUsed(room));
  whole.sort((one, two) => one.updatedAt - two.updatedAt || (one.id < two.id ? -1 : 1));
  let free = 0;
  for (const room of whole) {
    if (free >= bytes) break;
    const rest = thinned(room);
    free += Math.max(0, roomToJson(room).length - roomToJson(rest).length);
    device.rooms.set(room.id, rest);
    await saveRoom(device, room.id).catch((error: unknown) => {
      // One that was never kept takes room even when it is thin. Others go first, then it is tried again.
      if (!isOwn(error, "quota")) throw error;
    });
  }
  return free;
}

/** A chat without its words: messages and attachments are known by their hashes only. */
function thinned(room: Room): Room {
  const without = ([id, slot]: [ItemId, Slot]): [ItemId, Slot] => {
    if (ItemId.fieldOf(id) !== null || slot.item === null) return [id, slot];
    return [id, { hash: slot.hash, item: null, seen: revOf(slot) }];
  };
  return { ...room, items: new Map([...room.items].map(without)) };
}
