// A liar between a device and a real server: changes what passes, and remembers it for a replay.

import type { Device } from "../../src/client/device";
import type { Posted } from "../../src/client/transport";
import { Sealed } from "../../src/format/index";
import type { Bytes, ChatId, ItemId, MessageId } from "../../src/format/index";
import type { AccountState, ChatSent, ItemSent, ServerFrame } from "../../src/protocol/index";
import type { Between } from "./ways";

export type Lie = (frame: ServerFrame) => ServerFrame;

export class Liar implements Between {
  lie: Lie | null = null;
  postLie: ((path: string, posted: Posted) => Posted) | null = null;
  /** What passed. */
  heard: ServerFrame[] = [];

  receives(frame: ServerFrame): ServerFrame[] {
    this.heard.push(frame);
    return [this.lie?.(frame) ?? frame];
  }

  posted(path: string, posted: Posted): Posted {
    return this.postLie?.(path, posted) ?? posted;
  }

  /** Every chat that passed, as it was sent. */
  chats(): ChatSent[] {
    const all: ChatSent[] = [];
    for (const frame of this.heard) onChats(frame, (sent) => (all.push(sent), sent));
    return all;
  }
}

/** An honest device, and what it wrote. */
export interface Scene {
  one: Device;
  chat: ChatId;
  other: ChatId;
  ids: MessageId[];
}

/** Changes every chat that a frame brings; null drops it. */
export function onChats(frame: ServerFrame, edit: (sent: ChatSent) => ChatSent | null): ServerFrame {
  const { event } = frame;
  switch (event.type) {
    case "phase_1_last_chat_ready":
    case "phase_2_last_20_chats_ready":
    case "phase_3_last_100_chats_ready":
    case "load_more_chats_response":
    case "chat_content_batch_response":
      return { ...frame, event: { ...event, chats: event.chats.flatMap((sent) => edit(sent) ?? []) } };
    default:
      return frame;
  }
}

/** Changes one chat. */
export function onChat(chat: ChatId, edit: (sent: ChatSent) => ChatSent | null): Lie {
  return (frame) => onChats(frame, (sent) => (sent.chat === chat ? edit(sent) : sent));
}

/** Keeps a chat back, and says that it is missing. */
export function dropped(chat: ChatId): Lie {
  return (frame) => {
    const without = onChat(chat, () => null)(frame);
    const { event } = without;
    if (event.type !== "chat_content_batch_response") return without;
    return { ...without, event: { ...event, missing: [...event.missing, chat] } };
  };
}

export function onAccount(edit: (state: AccountState) => AccountState): Lie {
  return (frame) => {
    const { event } = frame;
    return event.type === "account_state" ? { ...frame, event: { ...event, ...edit(event) } } : frame;
  };
}

/** Changes one item of a list. */
export function onItem(items: readonly ItemSent[], id: ItemId, edit: (sent: ItemSent) => ItemSent): ItemSent[] {
  if (!items.some((sent) => sent.item === id)) throw new Error("the lie found nothing to change");
  return items.map((sent) => (sent.item === id ? edit(sent) : sent));
}

/** The same bytes but for one bit of the last. */
export function flipped(sealed: Sealed): Sealed {
  const bytes: Bytes = sealed.slice();
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  return bytes;
}

/** An item with another envelope, or none. */
export function withEnvelope(sent: ItemSent, envelope: Sealed | undefined): ItemSent {
  const { envelope: _, ...rest } = sent;
  return envelope === undefined ? rest : { ...rest, envelope };
}
