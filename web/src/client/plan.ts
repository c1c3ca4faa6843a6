// What is sent next, and what becomes of it against the chat as it is now.
//
//   first of the queue ─▶ decide ─┬─ done: it is there already           (an answer was lost)
//                                 ├─ lose: another device was first      (a copy that the person sees)
//                                 └─ do:   one write, with what follows for the same chat
//
// Whoever is stored first wins; nothing is merged and nothing is lost without a copy. Easy to get wrong: deleting a message that
// others answer. Every device refuses a message whose parent is not there, so the answers move up in the same write.

import { FieldName, ItemId, Message, utf8 } from "../format/index";
import type { Bytes, MessageId, Pending as Awaited, Shared } from "../format/index";
import { besideMessage, isBeside, ownerOf, summariesOf, toolsOf } from "./beside";
import { endingFieldsOf } from "./endings";
import type { Act, Answer, Base, Pending, To, Why } from "./queue";
import { roomField, roomMessage, roomMessages, textJson, type Room } from "./room";
import type { Piece } from "./state";

export { textJson } from "./room";

/** What becomes of an operation. */
export type Decision = { then: "do" } | { then: "done" } | { then: "lose"; why: Why };

const DO: Decision = { then: "do" };
const DONE: Decision = { then: "done" };

/** What a write changes in a chat. */
export interface Change {
  puts: [ItemId, Bytes][];
  removes: ItemId[];
  leaf: MessageId | null;
  /** Replies that the head waits for from now on. */
  awaits: Awaited[];
  /** Replies that it waits for no longer. */
  settles: MessageId[];
  /** Revisions that this device has seen, where what is there now may be older: the new ones are greater. */
  seen: Map<ItemId, number>;
}

/** A change of nothing but the branch that is shown. */
export function changeTo(leaf: MessageId | null): Change {
  return { puts: [], removes: [], leaf, awaits: [], settles: [], seen: new Map() };
}

/** What becomes of an operation on a chat; undefined: there is no such chat any more, or not yet. */
export function decide(act: Act, room: Room | undefined): Decision {
  if (room === undefined) return decideWithout(act);
  switch (act.do) {
    case "create":
    case "data":
    case "suggest":
      return DONE;
    case "append":
    case "embed":
      return room.items.has(act.id) ? DONE : DO;
    case "delete-chat":
      return DO;
    case "edit": {
      const message = roomMessage(room, act.id);
      return message === undefined ? { then: "lose", why: { why: "deleted" } } : against(message.body, act.body, act.base);
    }
    case "delete": {
      const message = roomMessage(room, act.id);
      return message === undefined ? DONE : against(message.body, null, act.base);
    }
    case "field":
      return against(roomField(room, act.name), act.body, act.base);
    case "leaf":
      return roomMessage(room, act.id) === undefined || room.head.leaf === act.id ? DONE : DO;
    case "draft":
      return against(room.draft?.body ?? null, act.body, act.base);
    case "retry": {
      const isThere = roomMessage(room, act.message) !== undefined && awaited(room, act.wanted.reply) === undefined;
      return isThere ? DO : DONE;
    }
    case "reply": {
      // Stored by another device, or given up, or what it answers was deleted: it goes without a word.
      const waits = awaited(room, act.id);
      const isWanted = waits !== undefined && roomMessage(room, waits.parent) !== undefined;
      return isWanted && !room.items.has(act.id) ? DO : DONE;
    }
    case "gave": {
      // Noted already, or the answer went, and what it notes with it.
      const answer = roomMessage(room, act.id);
      return answer === undefined || notNoted(answer, act.shared).length === 0 ? DONE : DO;
    }
    case "give-up":
      return awaited(room, act.reply) === undefined ? DONE : DO;
    case "ending":
      return endingFieldsOf(room, act.reply, act.finish, act.isHelp === true).length === 0 ? DONE : DO;
    case "made":
      return act.fields.every(([name, body]) => roomField(room, name) === body) ? DONE : DO;
  }
}

function decideWithout(act: Act): Decision {
  switch (act.do) {
    case "create":
      return DO;
    case "delete":
    case "leaf":
    case "delete-chat":
    case "retry":
    case "reply":
    case "gave":
    case "give-up":
    case "made":
    case "ending":
      return DONE;
    case "draft":
      return act.body === null ? DONE : CHAT_DELETED;
    default:
      return CHAT_DELETED;
  }
}

const CHAT_DELETED: Decision = { then: "lose", why: { why: "chat-deleted" } };

/** What of this is not noted inside an answer. */
function notNoted({ shared }: Message, gave: readonly Shared[]): Shared[] {
  return gave.filter((one) => !shared.some(({ what, bytes }) => what === one.what && bytes === one.bytes));
}

/** The reply that the head waits for under this id. */
function awaited(room: Room, reply: MessageId): Awaited | undefined {
  return room.head.pending.find((one) => one.reply === reply);
}

/** The suggestions for new chats with these in front, as many as are kept; null if they are all there. */
export function suggestions(there: Piece | undefined, texts: readonly string[]): string[] | null {
  const known = textsIn(there?.body ?? null);
  if (texts.every((text) => known.includes(text))) return null;
  return [...new Set([...texts, ...known])].slice(0, POOL);
}

/** A list of texts in JSON; anything else is an empty one. */
function textsIn(json: string | null): string[] {
  try {
    const list: unknown = JSON.parse(json ?? "[]");
    return Array.isArray(list) && list.every((text) => typeof text === "string") ? list : [];
  } catch {
    return [];
  }
}

/** What becomes of a piece of account data. */
export function decideData(there: Piece | undefined, body: string | null, base: Base): Decision {
  return against(there?.body ?? null, body, base);
}

function against(now: string | null, mine: string | null, base: Base): Decision {
  if (now === mine) return DONE;
  // What was based on an operation that is gone from the queue without a trace loses: nobody knows what the person saw.
  const isBase = base.on === "nothing" ? now === null : base.on === "words" && now === base.words;
  return isBase ? DO : { then: "lose", why: { why: "changed" } };
}

/** The first operation, with what follows it for the same chat and can go in the same write. */
export function batch(ops: readonly Pending[], room: Room | undefined, most: number): Pending[] {
  const first = ops[0];
  if (first === undefined) return [];
  const batch = [first];
  if (!isAddition(first.act)) return batch;
  const items = new Set<ItemId>();
  const firstItem = itemOfAct(first.act);
  if (firstItem !== null) items.add(firstItem);
  let size = sizeOf(first.act);
  for (const op of ops.slice(1)) {
    const { act } = op;
    // A field of a chat that is being created is set against nothing.
    const isNew = room === undefined && (act.do === "append" || act.do === "embed" || act.do === "field");
    const can = op.chat === first.chat && isAddition(act) && act.do !== "create";
    size += sizeOf(act);
    if (batch.length >= most || !can || size > LARGEST || !(isNew || decide(act, room).then === "do")) break;
    const item = itemOfAct(act);
    if (item !== null && items.has(item)) break;
    if (item !== null) items.add(item);
    batch.push(op);
  }
  return batch;
}

function isAddition(act: Act): boolean {
  return act.do === "create" || act.do === "append" || act.do === "embed" || act.do === "field";
}

function itemOfAct(act: Act): ItemId | null {
  if (act.do === "append" || act.do === "embed") return act.id;
  return act.do === "field" ? ItemId.field(act.name) : null;
}

function sizeOf(act: Act): number {
  if (act.do === "append") return utf8(act.note.body).length;
  return act.do === "embed" || act.do === "field" ? utf8(act.body).length : 0;
}

/** What these operations change, one after the other. */
export function change(ops: readonly Pending[], room: Room | undefined): Change {
  const change = changeTo(room?.head.leaf ?? null);
  for (const { act } of ops) apply(change, room, act);
  return change;
}

function apply(change: Change, room: Room | undefined, act: Act): void {
  switch (act.do) {
    case "append": {
      const { ask, role, createdAt, body, model, refs, shared } = act.note;
      const parent = parentOf(change, room, act.to);
      const message: Message = { role, parent, createdAt, body, model, reason: null, refs, proof: null, shared };
      change.puts.push([act.id, Message.toJson(message)]);
      change.leaf = act.id;
      if (ask !== null) change.awaits.push({ turn: ask.turn, parent: act.id, reply: ask.reply });
      break;
    }
    case "retry":
      change.awaits.push({ turn: act.wanted.turn, parent: act.message, reply: act.wanted.reply });
      change.settles.push(...act.instead);
      // Shown without its older answers, until the new one is there.
      change.leaf = act.message;
      break;
    case "reply":
      if (room !== undefined) reply(change, room, act.id, act.answer);
      break;
    case "gave": {
      const answer = room === undefined ? undefined : roomMessage(room, act.id);
      if (answer !== undefined) change.puts.push([act.id, Message.toJson({ ...answer, shared: [...answer.shared, ...notNoted(answer, act.shared)] })]);
      break;
    }
    case "give-up":
      change.settles.push(act.reply);
      break;
    case "made":
      putFields(change, act.fields);
      break;
    case "ending":
      if (room !== undefined) putFields(change, endingFieldsOf(room, act.reply, act.finish, act.isHelp === true));
      break;
    case "edit": {
      const message = room === undefined ? undefined : roomMessage(room, act.id);
      if (message !== undefined) change.puts.push([act.id, Message.toJson({ ...message, body: act.body })]);
      if (room !== undefined) changesBeside(change, room, act.id);
      break;
    }
    case "delete":
      if (room !== undefined) remove(change, room, act.id);
      break;
    case "field":
      putFields(change, [[act.name, act.body]]);
      break;
    case "embed":
      change.puts.push([act.id, textJson(act.body)]);
      break;
    case "leaf":
      change.leaf = act.id;
      break;
    default:
      break;
  }
}

function putFields(change: Change, fields: readonly [FieldName, string][]): void {
  for (const [name, body] of fields) change.puts.push([ItemId.field(name), textJson(body)]);
}

/** The message that a new one answers: one that is there, or is put in the same write. */
function parentOf(change: Change, room: Room | undefined, to: To): MessageId | null {
  if (to.to === "end") return change.leaf;
  const isThere = (id: MessageId) => room?.items.has(id) === true || change.puts.some(([item]) => item === id);
  const parent = to.path.find(isThere);
  if (parent !== undefined) return parent;
  // The first message of a branch of its own.
  return to.path.length === 0 ? null : change.leaf;
}

/** Puts an answer in the place that waits for it. It is shown, if the person still looks at what it answers. */
function reply(change: Change, room: Room, id: MessageId, answer: Answer): void {
  const waits = awaited(room, id);
  if (waits === undefined) return;
  const { createdAt, body, model, proof } = answer;
  const message: Message = {
    role: "assistant",
    parent: waits.parent,
    createdAt,
    body,
    model,
    reason: answer.reason ?? null,
    refs: [],
    proof,
    shared: answer.shared ?? [],
  };
  change.puts.push([id, Message.toJson(message)]);
  for (const note of answer.beside ?? []) {
    const isParent = note.parent === id || room.items.has(note.parent) || change.puts.some(([item]) => item === note.parent);
    // What was there before and went does not come back.
    if (!isParent || room.items.has(note.id) || room.gone.has(note.id)) continue;
    change.puts.push([note.id, Message.toJson(besideMessage(note, answer))]);
  }
  change.settles.push(id);
  if (change.leaf === waits.parent) change.leaf = id;
  if (!room.items.has(ItemId.field(FieldName.parse(TITLE)))) putFields(change, answer.fields);
}

/** A message that changes: no summary tells of it any more, and the answer that a tool said it for is another branch to the server. */
function changesBeside(change: Change, room: Room, id: MessageId): void {
  change.removes.push(...summariesOf(room, id).filter((one) => one !== id));
  const owner = ownerOf(room, id);
  const answer = owner === null ? undefined : roomMessage(room, owner);
  if (owner !== null && answer !== undefined) change.puts.push([owner, Message.toJson(answer)]);
}

/** Removes a message, what only it shows and what stands beside it; its answers move up, and those that are waited for are not any more. */
export function remove(change: Change, room: Room, id: MessageId): void {
  const gone = roomMessage(room, id);
  if (gone === undefined) return;
  change.removes.push(id);
  changesBeside(change, room, id);
  if (gone.role === "assistant") change.removes.push(...toolsOf(room, id));
  const unwanted = room.head.pending.filter((one) => one.parent === id);
  change.settles.push(...unwanted.map((one) => one.reply));
  const others = roomMessages(room).filter(([other]) => other !== id);
  for (const embed of gone.refs) {
    const isShown = others.some(([, , message]) => message.refs.includes(embed));
    if (!isShown && room.items.has(embed) && !change.removes.includes(embed)) change.removes.push(embed);
  }
  const removed = new Set<ItemId>(change.removes);
  const stays = (from: MessageId | null) => {
    let at = from;
    while (at !== null && removed.has(at)) at = roomMessage(room, at)?.parent ?? null;
    return at;
  };
  for (const [child, , message] of others) {
    if (message.parent === null || removed.has(child) || !removed.has(message.parent)) continue;
    change.puts = change.puts.filter(([item]) => item !== child);
    change.puts.push([child, Message.toJson({ ...message, parent: stays(message.parent) })]);
  }
  const left = others.filter(([other, , message]) => !removed.has(other) && !isBeside(message));
  if (change.leaf !== null && removed.has(change.leaf)) change.leaf = stays(change.leaf) ?? newest(left);
}

/** The message that was written last. */
function newest(messages: readonly [MessageId, number, Message][]): MessageId | null {
  let last: [MessageId, Message] | null = null;
  for (const [id, , message] of messages) {
    const at = message.createdAt;
    if (last === null || at > last[1].createdAt || (at === last[1].createdAt && id > last[0])) last = [id, message];
  }
  return last?.[0] ?? null;
}

/** The field that has a chat's title. */
export const TITLE = "title";
/** Suggestions for new chats that are kept. */
const POOL = 30;
/** What the texts of one write may take, in bytes. */
export const LARGEST = 512 * 1024;
