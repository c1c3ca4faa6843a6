// What this device knows about answers that it received: how they ended, which tools they used, what the server saw.
//
//   ended ─▶ Notes.answers ─▶ answers-chat_… (sealed, a file per chat) ─▶ read again when the chat is opened
//   ended, other than whole ─▶ the chat's field `endings` (sealed, on every device) [endings]
//
// The file is this device's own: other devices did not receive the answer, and say so. It goes with its chat, and before anything else that
// cannot be loaded again when the browser has no room. Easy to get wrong: claiming more than was heard. A note of an answer that was asked
// for before the page was loaded has no `sent`, and says nothing about the question.

import { type Bytes, fromUtf8, utf8 } from "../format/bytes";
import type { ChatId, MessageId } from "../format/index";
import type * as core from "./core";
import type { Device } from "./device";
import type { Notes } from "./views";

/** Reads what was noted about answers of a chat, once. What was heard since is newer. */
export async function readAnswerNotes(device: Device, notes: Notes, chat: ChatId): Promise<void> {
  if (notes.areRead.has(chat) || device.temporary.has(chat)) return;
  const bytes = await device.cabinet.read(answersFile(chat)).catch(() => null);
  if (notes.areRead.has(chat)) return;
  notes.areRead.add(chat);
  if (bytes !== null) notes.answers = new Map([...fromJson(bytes), ...notes.answers]);
}

/** Keeps what is known about answers of a chat. Those of messages that are gone go. Without room for it, it is in memory only. */
export async function keepAnswerNotes(device: Device, notes: Notes, chat: ChatId): Promise<void> {
  const room = device.rooms.get(chat);
  if (room === undefined) return;
  await readAnswerNotes(device, notes, chat);
  const there = new Set<string>(room.items.keys());
  for (const { act } of device.state.queue.ofChat(chat)) {
    if (act.do === "reply") there.add(act.id);
    if (act.do === "delete") there.delete(act.id);
  }
  const kept = [...notes.answers].filter(([reply]) => there.has(reply)).slice(-MOST);
  await device.cabinet.write(answersFile(chat), utf8(JSON.stringify(kept))).catch(() => undefined);
}

/** Where the notes of a chat are kept. */
export function answersFile(chat: ChatId): string {
  return `${ANSWERS}${chat}`;
}

/** Sealed by this device, so its shape is known. */
function fromJson(bytes: Bytes): [MessageId, core.AnswerNote][] {
  return JSON.parse(fromUtf8(bytes) ?? "[]") as [MessageId, core.AnswerNote][];
}

export const ANSWERS = "answers-";
/** Answers of one chat that are noted. */
const MOST = 1_000;
