// Messages that somebody began to edit and did not send: kept sealed on this device, and only there, like what was typed for a new chat.
//
// Easy to get wrong: words of a message that is gone. Whenever something is kept or a chat goes, edits of what is not there any more go, too.

import type { ChatId, MessageId } from "../format/index";
import { MAX_DRAFT } from "../protocol/limits";
import { chat as chatView, fitting } from "./chats";
import { type Device, save } from "./device";
import { isThin } from "./room";
import { type Edit, keepEdits } from "./state";

/** The edits of a chat that were begun. */
export function editsOf(device: Device, id: ChatId): { message: MessageId; body: string }[] {
  return (device.state.edits ?? []).flatMap(([chat, message, body]) => (chat === id && isThere(device, id, message) ? [{ message, body }] : []));
}

/** Keeps what was typed in the place of a message; null when it was sent or thrown away. The newest few are kept. */
export async function setEdit(device: Device, id: ChatId, message: MessageId, body: string | null): Promise<void> {
  const { state } = device;
  const others = (state.edits ?? []).filter(([chat, one]) => one !== message && isThere(device, chat, one));
  const edits: Edit[] = body === null ? others : [...others, [id, message, fitting(body, 1024 + 128, MAX_DRAFT)]];
  if (edits.length === 0 && state.edits === undefined) return;
  keepEdits(state, edits.slice(-MOST));
  await save(device);
}

function isThere(device: Device, id: ChatId, message: MessageId): boolean {
  const room = device.rooms.get(id);
  // Words that went to make room come back.
  if (room !== undefined && isThin(room)) return true;
  try {
    return chatView(device, id).messages.has(message);
  } catch {
    return false;
  }
}

/** Edits that are kept. */
const MOST = 8;
