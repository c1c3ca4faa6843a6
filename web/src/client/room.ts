// A chat on this device: what was verified last, and how the next state is taken in.
//
//   ChatSent parts, or one live event ─▶ Delta ─┐
//   Room, as it was verified last ──────────────┼─▶ ring, head, trail, list, items ─▶ Room, or a refusal and the old one stays
//   Account: floors ────────────────────────────┘   (the checks of format/opening, in its order)
//
// A Room and its Slots are never changed in place, except for its draft: `receive` and the writes make new ones, so a refusal
// in the middle leaves what was there. What was opened is kept opened, here and in the chat's file, which is sealed as a whole under
// the device's key and has the chat's keys in it anyway: a chat of 2,000 messages is one envelope to open, not 2,000. (The Rust client
// keeps the envelopes.) Easy to get wrong: a device without memory of a chat whose head is ahead of its floor. The
// server has to show how the head follows from the floor, so it is asked again from there (Received "trail").

import { Chat, Digest, Head, ItemId, Message, Place, Refused, Ring, RingOf, Sealed, SeenChat, Text, Trail, checkRoots, fromUtf8, inOrder, openRecord, utf8 } from "../format/index";
import type { Account, AccountId, AccountKey, Bytes, ChatId, Entry, FieldName, Item, Mark, MessageId, Opened } from "../format/index";
import type { ChatSent, ChatUpdated, HeadPut, ItemSent, MessageDeleted, Versions } from "../protocol/index";
import type { Outline } from "./outline";
import { keysFromJson, keysOf, keysRows, keysToJson, type KeptKeyJson, type Keys } from "./state";

/** An item of a chat. */
export interface Slot {
  readonly hash: Digest;
  /** Null for an embed that nobody asked for yet, and for everything with words in a chat that was made thin. */
  readonly item: Item | null;
  /** The revision that was seen, of something whose words went: an older one is refused when they come back. */
  readonly seen?: number;
  /** What is shown of a message whose words went. */
  readonly outline?: Outline;
}

/** The revision of an item; 0 if there is none, or it was never opened. */
export function revOf(slot: Slot | undefined): number {
  return slot?.item?.rev ?? slot?.seen ?? 0;
}

/** What was typed and not sent. */
export interface Draft {
  readonly body: string;
}

/** A chat that passed every check. */
export interface Room {
  readonly id: ChatId;
  keys: Keys;
  ring: Ring;
  readonly head: Head;
  readonly mark: Mark;
  readonly items: Map<ItemId, Slot>;
  /** Items that this device saw go: they go again, if the person sends what was here to a server that has an older state. */
  readonly gone: Set<ItemId>;
  titleV: number;
  draftV: number;
  draft: Draft | null;
  readonly createdAt: number;
  updatedAt: number;
}

/** What is new about a chat. */
export interface Delta {
  whole: boolean;
  ring: readonly Entry[];
  head: Sealed;
  trail: Trail | null;
  items: readonly ItemSent[];
  removed: readonly ItemId[];
  titleV: number | null;
  draft: { v: number; sealed: Sealed | null } | null;
  createdAt: number | null;
  updatedAt: number | null;
}

/** What came of a delta that was not refused. */
export type Received =
  /** The chat, and the heads between the one that was remembered and this one. */
  | { got: "room"; room: Room; stored: Mark[] }
  /** Ask again, from this revision on. */
  | { got: "trail"; from: number }
  /** Ask again, for items that were left out of a live event. */
  | { got: "items" };

/** From the parts of one chat, in order. A chat whose last part did not come is `withheld`. */
export function join(parts: readonly ChatSent[]): Delta {
  const [first, last] = [parts[0], parts.at(-1)];
  if (first === undefined || last === undefined || last.more) throw new Refused("withheld");
  const [items, removed]: [ItemSent[], ItemId[]] = [[], []];
  const delta: Delta = {
    whole: first.whole,
    ring: last.ring,
    head: last.head,
    trail: null,
    items,
    removed,
    titleV: first.versions.titleV,
    draft: null,
    createdAt: first.createdAt,
    updatedAt: first.updatedAt,
  };
  for (const part of parts) {
    items.push(...part.items);
    removed.push(...part.removed.map((gone) => gone.item));
    const [v, sealed] = [part.versions.draftV, part.draft ?? null];
    // A part that was asked for from this draft on does not repeat it.
    const isRepeated = delta.draft !== null && delta.draft.sealed !== null && delta.draft.v === v && sealed === null;
    if (!isRepeated) delta.draft = { v, sealed };
    if (part.trail !== undefined) {
      delta.trail ??= { chain: part.trail.chain, steps: [] };
      delta.trail = { chain: delta.trail.chain, steps: [...delta.trail.steps, ...part.trail.steps] };
    }
  }
  return delta;
}

/** From a live event about a chat that this device has at the revision before. */
export async function updated(room: Room, rows: readonly Entry[], update: ChatUpdated): Promise<Delta> {
  const delta = await step(room, rows, update.ring, update.head, update.removed);
  return { ...delta, items: update.items, titleV: update.titleV, updatedAt: update.updatedAt };
}

/** From a live event about a message that was deleted. */
export function deleted(room: Room, rows: readonly Entry[], event: MessageDeleted): Promise<Delta> {
  return step(room, rows, event.ring, event.head, [...event.embeds, event.message]);
}

async function step(room: Room, rows: readonly Entry[], append: Entry | undefined, head: HeadPut, removed: readonly ItemId[]): Promise<Delta> {
  const envelope = await Digest.of(head.envelope);
  return {
    whole: false,
    ring: append === undefined ? [...rows] : [...rows, append],
    head: head.envelope,
    trail: { chain: room.head.chain, steps: [{ live: head.live, envelope }] },
    items: [],
    removed,
    titleV: null,
    draft: null,
    createdAt: null,
    updatedAt: null,
  };
}

/** Takes in what the server sent about a chat, with every check. */
export async function receive(before: Room | undefined, account: Account, id: ChatId, delta: Delta): Promise<Received> {
  const floor = account.floors.get(id);
  if (floor === undefined) throw new Refused("list-refused");
  const rev = Sealed.rev(delta.head);
  if (rev === null) throw new Refused("record-refused");
  if (before === undefined && delta.trail === null && rev > floor.rev) return { got: "trail", from: floor.rev };
  const from = before?.mark.rev ?? floor.rev;
  const [slots, fresh] = merged(delta.whole ? undefined : before, delta);
  const trail = delta.trail ?? Trail.NONE;
  const stored = trail.steps.map(({ envelope }, at) => ({ rev: from + 1 + at, envelope }));
  const list: [ItemId, Digest][] = [...slots].map(([item, slot]) => [item, slot.hash]);
  const sent = { ring: delta.ring, head: delta.head, trail, list };
  const chat = await Chat.open(account, id, sent, before === undefined ? SeenChat.NOTHING : seenOf(before));
  const items = await openItems(chat, slots, fresh, before);
  if (items === null) return { got: "items" };
  const room: Room = {
    id,
    keys: keysOf(chat.ring),
    ring: chat.ring,
    head: chat.head,
    mark: chat.mark,
    items,
    gone: goneAfter(before, delta, slots),
    titleV: delta.titleV ?? before?.titleV ?? 0,
    draftV: before?.draftV ?? 0,
    draft: before?.draft ?? null,
    createdAt: delta.createdAt ?? before?.createdAt ?? 0,
    updatedAt: delta.updatedAt ?? before?.updatedAt ?? 0,
  };
  if (delta.draft !== null) await takeDraftIn(room, account.id, delta.draft.v, delta.draft.sealed);
  return { got: "room", room, stored };
}

/**
 * Takes in a draft. Older than one that was seen: `rolled-back`; does not open, or has another revision: `record-refused`.
 */
export async function takeDraftIn(room: Room, account: AccountId, draftV: number, sealed: Sealed | null): Promise<void> {
  if (draftV < room.draftV) throw new Refused("rolled-back");
  if (draftV === room.draftV) return;
  const draft = sealed === null ? null : await openDraft(room, account, draftV, sealed);
  [room.draft, room.draftV] = [draft, draftV];
}

async function openDraft(room: Room, account: AccountId, draftV: number, sealed: Sealed): Promise<Draft> {
  const opened = await openRecord(room.ring, account, Place.draft(room.id), sealed);
  if (opened.rev !== draftV) throw new Refused("record-refused");
  return { body: Text.fromJson(opened.json).body };
}

/** What to compare the next state with. */
function seenOf(room: Room): SeenChat {
  const { n, key } = room.ring.newest;
  const revs = [...room.items].map(([id, slot]): [ItemId, number] => [id, revOf(slot)]);
  return { head: room.mark, key: [n, key.kid], revs: new Map(revs) };
}

/** Whether words of it went, to make room (thin.ts). */
export function isThin(room: Room): boolean {
  for (const [id, slot] of room.items) if (slot.item === null && ItemId.isMessage(id)) return true;
  return false;
}

export function versionsOf(room: Room): Versions {
  return { messagesV: room.mark.rev, titleV: room.titleV, draftV: room.draftV };
}

export function roomMessage(room: Room, id: MessageId): Message | undefined {
  const item = room.items.get(id)?.item;
  return item?.kind === "message" ? item.message : undefined;
}

/** What a field says; null if there is none. */
export function roomField(room: Room, name: FieldName): string | null {
  return textOf(room.items.get(ItemId.field(name))?.item ?? null);
}

/** Every message: its id, its revision, itself. */
export function roomMessages(room: Room): [MessageId, number, Message][] {
  const all: [MessageId, number, Message][] = [];
  for (const [id, slot] of room.items) {
    if (ItemId.isMessage(id) && slot.item?.kind === "message") all.push([id, slot.item.rev, slot.item.message]);
  }
  return all;
}

/** The text of an embed or field that was opened. */
export function textOf(item: Item | null): string | null {
  return item?.kind === "text" ? item.text.body : null;
}

/** The JSON of a text. */
export function textJson(body: string): Bytes {
  return Text.toJson({ body });
}

/** The rows of its ring, as the server has them. */
export function rowsOf(room: Room, ak: AccountKey, account: AccountId): Promise<Entry[]> {
  return keysRows(room.keys, ak, account, RingOf.chat(room.id));
}

/** The list after a delta, in the order of the ids, and the envelopes that came with it. */
function merged(before: Room | undefined, delta: Delta): [slots: Map<ItemId, Slot>, fresh: Map<ItemId, Sealed>] {
  const [slots, fresh] = [new Map(before?.items), new Map<ItemId, Sealed>()];
  for (const { item, hash, envelope } of delta.items) {
    const known = slots.get(item);
    if (envelope === undefined && known?.hash === hash) continue;
    slots.set(item, { hash, item: null });
    if (envelope === undefined) fresh.delete(item);
    else fresh.set(item, envelope);
  }
  // Last, since an id is never used again: what was removed is not there, whichever part said so.
  for (const gone of delta.removed) slots.delete(gone);
  return [sorted(slots), fresh];
}

function sorted<V>(map: Map<ItemId, V>): Map<ItemId, V> {
  return new Map([...map].sort(([one], [two]) => (one < two ? -1 : 1)));
}

/** What was here and is not any more, of late. */
function goneAfter(before: Room | undefined, delta: Delta, slots: Map<ItemId, Slot>): Set<ItemId> {
  const known = before === undefined ? [] : [...before.gone, ...before.items.keys()];
  const all = [...known, ...delta.removed].filter((item) => !slots.has(item));
  return new Set(all.sort().slice(-MAX_GONE));
}

/** Items that went, remembered per chat. */
const MAX_GONE = 5_000;

/** Opens what is new, and checks what stays; null if something that was left out is not known. */
async function openItems(
  chat: Chat,
  slots: Map<ItemId, Slot>,
  fresh: ReadonlyMap<ItemId, Sealed>,
  before: Room | undefined,
): Promise<Map<ItemId, Slot> | null> {
  const all = await inOrder([...slots], async ([id, slot]): Promise<Slot | null> => {
    const { hash } = slot;
    const sealed = fresh.get(id);
    if (sealed !== undefined) return { hash, item: await chat.item(id, sealed) };
    const known = before?.items.get(id);
    const stays = slot.item !== null ? slot : known?.hash === hash ? known : null;
    if (stays !== null) checkParent(chat, stays);
    return ItemId.isEmbed(id) ? (stays ?? slot) : stays;
  });
  const opened = new Map<ItemId, Slot>();
  for (const [[id], slot] of all) {
    if (slot === null) return null;
    opened.set(id, slot);
  }
  checkRoots(opened.keys(), (id) => {
    const item = opened.get(id)?.item;
    return item?.kind === "message" ? item.message.parent : null;
  });
  return opened;
}

function checkParent(chat: Chat, { item }: Slot): void {
  const parent = item?.kind === "message" ? item.message.parent : null;
  if (parent !== null && !chat.list.has(parent)) throw new Refused("parent-missing");
}

/** A chat, as its file has it. */
interface RoomFile extends Pick<Room, "head" | "mark" | "titleV" | "draftV" | "draft" | "createdAt" | "updatedAt"> {
  v: 1;
  keys: KeptKeyJson[];
  items: [ItemId, Slot][];
  gone: ItemId[];
}

export function roomToJson(room: Room): Bytes {
  const { head, mark, titleV, draftV, draft, createdAt, updatedAt } = room;
  const [items, gone] = [[...room.items], [...room.gone]];
  const file: RoomFile = { v: 1, keys: keysToJson(room.keys), head, mark, items, gone, titleV, draftV, draft, createdAt, updatedAt };
  return utf8(JSON.stringify(file));
}

/** Opens a chat from its file: it was verified before it was written, and the file is sealed. */
export async function roomFromJson(id: ChatId, ak: AccountKey, json: Bytes): Promise<Room> {
  const { v: _, keys: kept, items, gone, ...rest } = fileOf(json);
  const keys = await keysFromJson(kept);
  const ring = await Ring.fromKept(ak, RingOf.chat(id), keys);
  return { ...rest, id, keys, ring, items: new Map(items), gone: new Set(gone) };
}

/** What is inside an item's record. */
export function itemOf(id: ItemId, { rev, json }: Pick<Opened, "rev" | "json">): Item {
  if (ItemId.isMessage(id)) return { kind: "message", rev, message: Message.fromJson(json) };
  return { kind: "text", rev, text: Text.fromJson(json) };
}

/** The file was written by this device, so its shape is known. */
function fileOf(json: Bytes): RoomFile {
  try {
    const file = JSON.parse(fromUtf8(json) ?? "") as RoomFile;
    if (file.v === 1) return file;
  } catch {
    // As below.
  }
  throw new Refused("record-refused");
}
