// News: what other devices do, as it happens.
//
//   event ─▶ known already? ─▶ nothing
//         ─▶ the next revision of what this device has? ─▶ checked as a delta ─▶ Room
//         ─▶ anything else ─▶ the chat, or the account, is asked for
//
// Each event is a claim of the server's, checked like any sync. Easy to get wrong: an event that does not follow what this device
// has. It is not applied; the chat is asked for instead.

import { Digest, Refused, Sealed } from "../format/index";
import type { ChatId, Entry, FieldName } from "../format/index";
import type { ChatUpdated, DataUpdated, HeadPut, MessageDeleted, ServerEvent } from "../protocol/index";
import { takeTurn } from "./answers";
import { receiveUnless, save, saveRoom, type Device } from "./device";
import { deleted, rowsOf, takeDraftIn, updated, type Delta } from "./room";
import { openData, pieceOf, putPiece } from "./state";
import { isListed, receiveChat, refreshAccount, refreshChat } from "./sync";
import { isTold, type Told } from "./turns";

/** What happened. */
export type News =
  /** This chat is new or changed. */
  | { news: "chat"; chat: ChatId }
  /** These chats are gone. */
  | { news: "gone"; chats: ChatId[] }
  /** The draft of this chat changed. */
  | { news: "draft"; chat: ChatId }
  /** This piece of account data changed. */
  | { news: "data"; kind: FieldName; name: FieldName }
  /** Credentials, keys or the list of chats changed. */
  | { news: "account" }
  /** Devices or sessions changed. */
  | { news: "devices" }
  /** Something came of a turn. After `ended` and `made`, a flush stores it. */
  | { news: "turn"; told: Told }
  /** Nothing that this device did not know. */
  | { news: "nothing" };

const NOTHING: News = { news: "nothing" };

/**
 * Waits for the next news, takes it in, and says what it was. `stop` ends the waiting, with null: what is being taken in is taken in,
 * and nothing is lost.
 */
export async function listen(device: Device, stop?: AbortSignal): Promise<News | null> {
  const known = told(device);
  if (known !== null) return { news: "turn", told: known };
  const frame = device.inbox.shift() ?? (await receiveUnless(device, stop));
  if (frame === null) return null;
  if (isTold(frame.event)) {
    const said = await takeTurn(device, frame.event);
    return said === null ? NOTHING : { news: "turn", told: said };
  }
  if (frame.re !== undefined) return NOTHING;
  const news = await takeNews(device, frame.event);
  if (frame.seq !== undefined && frame.seq > device.state.seq) {
    device.state.seq = frame.seq;
    await save(device);
  }
  return news;
}

/** What came of turns since the last `listen`, without waiting: found out by a sync or a flush. */
export function told(device: Device): Told | null {
  return device.turns.told.shift() ?? null;
}

async function takeNews(device: Device, event: ServerEvent): Promise<News> {
  switch (event.type) {
    case "chat_updated":
      return takeUpdate(device, event);
    case "message_deleted":
      return takeDeletion(device, event);
    case "chat_deleted": {
      // Only the account's own list says that a chat is gone.
      const gone = await refreshAccount(device);
      return gone.includes(event.chat) ? { news: "gone", chats: gone } : NOTHING;
    }
    case "chat_draft_updated":
      return takeDraft(device, event.chat, event.draftV, event.draft ?? null);
    case "draft_deleted":
      return takeDraft(device, event.chat, event.draftV, null);
    case "data_updated":
      return takeDataNews(device, event);
    case "account_updated": {
      const known = device.account?.mark.rev ?? 0;
      device.state.accountRev = Math.max(device.state.accountRev, event.accountRev);
      if (event.manifest > known || event.generation !== device.state.generation) {
        const gone = await refreshAccount(device);
        if (gone.length > 0) return { news: "gone", chats: gone };
      }
      return { news: "account" };
    }
    case "devices_changed":
      return { news: "devices" };
    default:
      return NOTHING;
  }
}

async function takeDataNews(device: Device, { kind, name, rev: claimed, data }: DataUpdated): Promise<News> {
  if (device.account === null) throw new Refused("account-missing");
  const [rev, body] = data === undefined ? [claimed, null] : await openData(device.account, kind, name, data);
  if (rev <= (pieceOf(device.state, kind, name)?.rev ?? 0)) return NOTHING;
  putPiece(device.state, { kind, name, rev, body });
  await save(device);
  return { news: "data", kind, name };
}

async function takeUpdate(device: Device, update: ChatUpdated): Promise<News> {
  const { chat } = update;
  const room = device.rooms.get(chat);
  const rows = await follows(device, chat, update.before, update.head);
  if (rows === "known") return NOTHING;
  if (rows === "ask" || room === undefined) return askFor(device, chat);
  return takeDelta(device, chat, await updated(room, rows, update));
}

async function takeDeletion(device: Device, event: MessageDeleted): Promise<News> {
  const { chat } = event;
  const room = device.rooms.get(chat);
  const before = Math.max(0, (Sealed.rev(event.head.envelope) ?? 0) - 1);
  const rows = await follows(device, chat, before, event.head);
  if (rows === "known") return NOTHING;
  if (rows === "ask" || room === undefined) return askFor(device, chat);
  return takeDelta(device, chat, await deleted(room, rows, event));
}

async function takeDelta(device: Device, chat: ChatId, delta: Delta): Promise<News> {
  const received = await receiveChat(device, chat, delta);
  if (received.got !== "room") return askFor(device, chat);
  device.state.queue.confirm(chat, received.stored);
  device.rooms.set(chat, received.room);
  await save(device);
  await saveRoom(device, chat);
  return { news: "chat", chat };
}

async function askFor(device: Device, chat: ChatId): Promise<News> {
  if (!isListed(device, chat)) await refreshAccount(device);
  const before = device.rooms.get(chat)?.mark;
  await refreshChat(device, chat);
  const after = device.rooms.get(chat)?.mark;
  const isSame = before?.rev === after?.rev && before?.envelope === after?.envelope;
  return isSame ? NOTHING : { news: "chat", chat };
}

async function takeDraft(device: Device, chat: ChatId, draftV: number, draft: Sealed | null): Promise<News> {
  const room = device.rooms.get(chat);
  if (room === undefined) return askFor(device, chat);
  if (draftV <= room.draftV) return NOTHING;
  await takeDraftIn(room, device.state.account, draftV, draft);
  await saveRoom(device, chat);
  return { news: "draft", chat };
}

/**
 * Whether news about a chat follow what this device has. Known, or older: "known"; something lies between: "ask"; the next
 * revision: the rows of the chat's ring before it. The same revision with other bytes: `forked`.
 */
async function follows(device: Device, chat: ChatId, before: number, head: HeadPut): Promise<"known" | "ask" | Entry[]> {
  const room = device.rooms.get(chat);
  if (room === undefined) return "ask";
  const rev = Sealed.rev(head.envelope) ?? 0;
  if (rev < room.mark.rev) return "known";
  if (rev === room.mark.rev) {
    if ((await Digest.of(head.envelope)) === room.mark.envelope) return "known";
    throw new Refused("forked");
  }
  // News that waited while the account was loaded are behind its floors: the chat is asked for.
  const floor = device.account?.floors.get(chat)?.rev ?? 0;
  const isNext = before === room.mark.rev && floor >= 1 && floor <= rev;
  return isNext ? rowsOf(room, device.ak, device.state.account) : "ask";
}
