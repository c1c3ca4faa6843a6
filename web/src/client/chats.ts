// Chats as a person sees them, and what a person does to them. Nothing here asks the server.
//
//   newChat, say, edit, … ─▶ queue (kept) ─▶ flush
//   chat(id) ◀─ what was verified, with what waits laid over it
//
// Easy to get wrong: the order of messages. It comes from inside the seals: a branch runs from its leaf up the parents.

import { ChatId, EmbedId, FieldName, ItemId, MessageId, wellFormed } from "../format/index";
import type { Message, Role, Shared } from "../format/index";
import { MAX_DRAFT, MAX_EMBED, MAX_MESSAGE, MAX_RECORD } from "../protocol/limits";
import { isBeside } from "./beside";
import { save, type Device } from "./device";
import { endingFields } from "./endings";
import { ClientError } from "./error";
import { TITLE, textJson } from "./plan";
import { baseOf, noteOf, NOTHING_THERE, TO_END, type Act, type Answer, type Base, type Copy, type Note, type To, type Waiting } from "./queue";
import { isThin, roomField, roomMessage, roomMessages, type Room } from "./room";
import { forgetEdits, pieceOf } from "./state";

/** A message as a person sees it. */
export interface MessageView {
  id: MessageId;
  role: Role;
  /** The message that it answers. */
  parent: MessageId | null;
  body: string;
  /** What it shows. */
  refs: readonly EmbedId[];
  /** Which model spoke. */
  model: string | null;
  /** Why that model was chosen, in a sentence of the server's. */
  reason: string | null;
  /** When, in milliseconds since 1970. */
  createdAt: number;
  /** What else left the device in clear for this turn, by consent. */
  shared: readonly Shared[];
  /** Its revision; 0 if it was never stored. */
  rev: number;
  /** Whether a change of it waits in the queue. */
  isWaiting: boolean;
  /** Whether the server proved that a tool or a summary of its own said it: then it stands beside the branch. */
  isBeside: boolean;
}

/** A chat as a person sees it. */
export interface ChatView {
  id: ChatId;
  /** Its fields, `title` among them. */
  fields: Map<string, string>;
  /** The branch that is shown, its first message first. */
  branch: MessageView[];
  /** Every message, by id. */
  messages: Map<MessageId, MessageView>;
  /** What was typed and not sent. */
  draft: string | null;
  /** When it was last written to, in milliseconds since 1970. */
  updatedAt: number;
  /** The revision of its head; 0 if it was never stored. */
  rev: number;
  /** Whether its words went to make room: they are loaded when the chat is opened. */
  isThin: boolean;
}

/** Every chat on this device, the one written to last first. */
export function chats(device: Device): ChatId[] {
  const all: [number, ChatId][] = [...device.rooms.values()].map((room) => [room.updatedAt, room.id]);
  const gone = new Set<ChatId | null>();
  for (const { chat, act } of device.state.queue.ops) {
    if (act.do === "delete-chat") gone.add(chat);
    if (act.do === "create" && chat !== null && !device.rooms.has(chat)) all.push([Infinity, chat]);
  }
  const newestFirst = ([at, one]: [number, ChatId], [when, two]: [number, ChatId]) =>
    at === when ? (one < two ? 1 : -1) : at < when ? 1 : -1;
  return all.filter(([, chat]) => !gone.has(chat)).sort(newestFirst).map(([, chat]) => chat);
}

/** Every chat of the account as its sealed list has it, on this device or not. */
export function listed(device: Device): ChatId[] {
  return device.account === null ? [] : [...device.account.floors.keys()].sort();
}

/** A chat, with what waits laid over what was verified. */
export function chat(device: Device, id: ChatId): ChatView {
  const room = device.rooms.get(id);
  const ops = device.state.queue.ofChat(id);
  if (room === undefined && !ops.some(({ act }) => act.do === "create")) throw new ClientError("no-such-chat");
  const view = room === undefined ? empty(id) : verified(room);
  let leaf = room?.head.leaf ?? null;
  for (const { act } of ops) leaf = layOver(view, leaf, act);
  view.branch = branch(view.messages, leaf);
  return view;
}

/** A new chat. It is stored by the next flush. */
export async function newChat(device: Device, title: string | null): Promise<ChatId> {
  const text = title === null ? null : fitting(title, 0, MAX_RECORD);
  const id = ChatId.random();
  device.state.queue.append(id, { do: "create" });
  if (text !== null) device.state.queue.setField(id, FieldName.parse(TITLE), text, NOTHING_THERE);
  await save(device);
  return id;
}

/** Sets the title. */
export function rename(device: Device, id: ChatId, title: string): Promise<void> {
  return setField(device, id, TITLE, title);
}

/** Sets a field of a chat, such as `title`, `icon` or `suggestions`. */
export async function setField(device: Device, id: ChatId, name: string, body: string): Promise<void> {
  there(device, id);
  const text = fitting(body, 0, MAX_RECORD);
  const field = FieldName.parse(name);
  const room = device.rooms.get(id);
  device.state.queue.setField(id, field, text, baseOf(room === undefined ? null : roomField(room, field)));
  await save(device);
}

/** Writes a message of the person behind the last one. */
export function say(device: Device, id: ChatId, body: string): Promise<MessageId> {
  return write(device, id, "user", body, [], null);
}

/** Writes several messages of the person, one behind the other, and keeps them at once: for imports. */
export async function sayAll(device: Device, id: ChatId, bodies: readonly string[]): Promise<MessageId[]> {
  there(device, id);
  const texts = bodies.map((body) => fitting(body, 512, MAX_MESSAGE));
  const ids = texts.map((body) => {
    const message = MessageId.random();
    const note = noteOf("user", body, device.now());
    device.state.queue.append(id, { do: "append", id: message, note, to: TO_END });
    return message;
  });
  await save(device);
  return ids;
}

/** Writes a message behind the last one: who speaks, the words, what it shows, and which model spoke. */
export function write(device: Device, id: ChatId, role: Role, body: string, refs: readonly EmbedId[], model: string | null): Promise<MessageId> {
  return putMessage(device, id, { ...noteOf(role, body, device.now()), refs, model }, TO_END);
}

/** Begins another branch: a message of the person behind `parent`, or a new first one. */
export async function branchOff(device: Device, id: ChatId, parent: MessageId | null, body: string): Promise<MessageId> {
  const view = chat(device, id);
  if (parent !== null && !view.messages.has(parent)) throw new ClientError("no-such-message");
  const to: To = { to: "after", path: path(view, parent) };
  return putMessage(device, id, noteOf("user", body, device.now()), to);
}

async function putMessage(device: Device, id: ChatId, note: Note, to: To): Promise<MessageId> {
  there(device, id);
  const message = putNote(device, id, note, to);
  await save(device);
  return message;
}

/** A message for the queue, which is not kept yet. */
export function putNote(device: Device, id: ChatId, note: Note, to: To): MessageId {
  // The model's name may come from a file that was imported, as the words may.
  const model = note.model === null ? null : wellFormed(note.model);
  const body = fitting(note.body, note.refs.length * 40 + 512 + textJson(model ?? "").length, MAX_MESSAGE);
  const message = MessageId.random();
  device.state.queue.append(id, { do: "append", id: message, note: { ...note, body, model }, to });
  return message;
}

/** Shows the branch that ends in this message, on every device. */
export async function showBranch(device: Device, id: ChatId, leaf: MessageId): Promise<void> {
  needs(chat(device, id), leaf);
  device.state.queue.showBranch(id, leaf);
  await save(device);
}

/** Changes the words of a message. If another device changes it first, these words become a copy. */
export async function edit(device: Device, id: ChatId, message: MessageId, body: string): Promise<void> {
  needs(chat(device, id), message);
  const text = fitting(body, 4096, MAX_MESSAGE);
  device.state.queue.edit(id, message, text, seenWords(device, id, message));
  await save(device);
}

/** Deletes a message; its answers move up. */
export async function deleteMessage(device: Device, id: ChatId, message: MessageId): Promise<void> {
  needs(chat(device, id), message);
  device.state.queue.delete(id, message, seenWords(device, id, message));
  forgetEdits(device.state, [id], message);
  await save(device);
}

function needs(view: ChatView, message: MessageId): void {
  if (!view.messages.has(message)) throw new ClientError("no-such-message");
}

function seenWords(device: Device, id: ChatId, message: MessageId): Base {
  const room = device.rooms.get(id);
  return baseOf(room === undefined ? null : (roomMessage(room, message)?.body ?? null));
}

/** Adds something that messages can show: give its id to `write`. */
export async function addEmbed(device: Device, id: ChatId, body: string): Promise<EmbedId> {
  there(device, id);
  const text = fitting(body, 128, MAX_EMBED);
  const embed = EmbedId.random();
  device.state.queue.append(id, { do: "embed", id: embed, body: text });
  await save(device);
  return embed;
}

/** Deletes a chat with everything in it. */
export async function deleteChat(device: Device, id: ChatId): Promise<void> {
  there(device, id);
  device.state.queue.deleteChat(id);
  forgetEdits(device.state, [id]);
  await save(device);
}

/**
 * Keeps what was typed into a chat; null when it was sent or thrown away. Servers ask for at most one every five seconds: flush
 * no more often while somebody types.
 */
export async function setDraft(device: Device, id: ChatId, body: string | null): Promise<void> {
  there(device, id);
  const text = body === null ? null : fitting(body, 1024 + 128, MAX_DRAFT);
  device.state.queue.setDraft(id, text, baseOf(device.rooms.get(id)?.draft?.body ?? null));
  await save(device);
}

/** Keeps what was typed for a chat that does not exist yet, on this device only; null when it was sent or thrown away. */
export async function setFirstDraft(device: Device, body: string | null): Promise<void> {
  const { state } = device;
  if ((state.firstDraft ?? null) === body) return;
  if (body === null) delete state.firstDraft;
  else state.firstDraft = fitting(body, 1024 + 128, MAX_DRAFT);
  await save(device);
}

/** A piece of account data: settings, suggestions for new chats. */
export function data(device: Device, kind: string, name: string): string | null {
  const [k, n] = [FieldName.parse(kind), FieldName.parse(name)];
  const waits = device.state.queue.ops.findLast(({ act }) => act.do === "data" && act.kind === k && act.name === n);
  if (waits?.act.do === "data") return waits.act.body;
  return pieceOf(device.state, k, n)?.body ?? null;
}

/** Stores a piece of account data; null removes it. */
export async function setData(device: Device, kind: string, name: string, body: string | null): Promise<void> {
  const [k, n] = [FieldName.parse(kind), FieldName.parse(name)];
  const text = body === null ? null : fitting(body, 128, MAX_RECORD);
  device.state.queue.setData(k, n, text, baseOf(pieceOf(device.state, k, n)?.body ?? null));
  await save(device);
}

/** What waits to be stored, in the order in which it is sent. */
export function waiting(device: Device): Waiting[] {
  return device.state.queue.waiting();
}

/** What lost against another device, for a person to look at. */
export function copies(device: Device): readonly Copy[] {
  return device.state.queue.copies;
}

/** Writes a copy again, over what is there now; a message that is gone becomes a new one. The copy goes. */
export async function useCopy(device: Device, number: number): Promise<void> {
  const copy = device.state.queue.copies.find((copy) => copy.number === number);
  if (copy === undefined) throw new ClientError("no-such-message");
  const { chat: id, what } = copy;
  const text = copy.text ?? "";
  if (id === null) {
    if (what.what === "data") await setData(device, what.kind, what.name, text);
  } else {
    await useCopyIn(device, id, copy, text);
  }
  await discardCopy(device, number);
}

async function useCopyIn(device: Device, id: ChatId, { what }: Copy, text: string): Promise<void> {
  switch (what.what) {
    case "edit":
      if (chat(device, id).messages.has(what.id)) await edit(device, id, what.id, text);
      else await say(device, id, text);
      break;
    case "message":
      await say(device, id, text);
      break;
    case "delete":
      if (chat(device, id).messages.has(what.id)) await deleteMessage(device, id, what.id);
      break;
    case "field":
      await setField(device, id, what.name, text);
      break;
    case "draft":
      await setDraft(device, id, text);
      break;
    case "embed":
      await addEmbed(device, id, text);
      break;
    default:
      break;
  }
}

/** Throws a copy away. */
export async function discardCopy(device: Device, number: number): Promise<void> {
  device.state.queue.copies = device.state.queue.copies.filter((copy) => copy.number !== number);
  await save(device);
}

/** `no-such-chat`, unless the chat is here or waits to be created. */
export function there(device: Device, id: ChatId): void {
  const ops = device.state.queue.ofChat(id);
  const isHere = device.rooms.has(id) || ops.some(({ act }) => act.do === "create");
  if (!isHere || ops.some(({ act }) => act.do === "delete-chat")) throw new ClientError("no-such-chat");
}

function empty(id: ChatId): ChatView {
  return { id, fields: new Map(), branch: [], messages: new Map(), draft: null, updatedAt: 0, rev: 0, isThin: false };
}

/** A chat as it was verified. */
export function verified(room: Room): ChatView {
  const view = empty(room.id);
  for (const [id, rev, message] of roomMessages(room)) view.messages.set(id, shown(id, rev, message));
  for (const item of room.items.keys()) {
    const name = ItemId.fieldOf(item);
    if (name !== null) view.fields.set(name, roomField(room, name) ?? "");
  }
  view.draft = room.draft?.body ?? null;
  view.updatedAt = room.updatedAt;
  view.rev = room.mark.rev;
  view.isThin = isThin(room);
  view.branch = branch(view.messages, room.head.leaf);
  return view;
}

function shown(id: MessageId, rev: number, message: Message): MessageView {
  const { role, parent, body, refs, model, reason, createdAt, shared } = message;
  return { id, role, parent, body, refs, model: model ?? null, reason: reason ?? null, createdAt, shared, rev, isWaiting: false, isBeside: isBeside(message) };
}

/** Lays what waits over a view; gives the leaf of the branch that is shown then. */
function layOver(view: ChatView, leaf: MessageId | null, act: Act): MessageId | null {
  const { messages } = view;
  switch (act.do) {
    case "append": {
      if (messages.has(act.id)) return leaf;
      const { ask: _, ...note } = act.note;
      messages.set(act.id, { id: act.id, ...note, reason: null, parent: parentOf(messages, leaf, act.to), rev: 0, isWaiting: true, isBeside: false });
      return act.id;
    }
    case "edit": {
      const message = messages.get(act.id);
      if (message !== undefined) [message.body, message.isWaiting] = [act.body, true];
      return leaf;
    }
    case "delete": {
      const gone = messages.get(act.id);
      if (gone === undefined) return leaf;
      messages.delete(act.id);
      for (const message of messages.values()) if (message.parent === act.id) message.parent = gone.parent;
      return leaf === act.id ? gone.parent : leaf;
    }
    case "field":
      view.fields.set(act.name, act.body);
      return leaf;
    case "made":
      for (const [name, body] of act.fields) view.fields.set(name, body);
      return leaf;
    case "ending":
      for (const [name, body] of endingFields((field) => view.fields.get(field) ?? null, act.reply, act.finish, act.isHelp === true)) view.fields.set(name, body);
      return leaf;
    case "reply":
      return layAnswer(view, leaf, act.id, act.answer);
    case "leaf":
      return messages.has(act.id) ? act.id : leaf;
    case "retry":
      return messages.has(act.message) ? act.message : leaf;
    case "draft":
      view.draft = act.body;
      return leaf;
    default:
      return leaf;
  }
}

function parentOf(messages: Map<MessageId, MessageView>, leaf: MessageId | null, to: To): MessageId | null {
  if (to.to === "end") return leaf;
  if (to.path.length === 0) return null;
  return to.path.find((id) => messages.has(id)) ?? leaf;
}

/** An answer that is not stored yet. */
function layAnswer(view: ChatView, leaf: MessageId | null, id: MessageId, answer: Answer): MessageId | null {
  const { parent, body, model, createdAt } = answer;
  if (view.messages.has(id) || !view.messages.has(parent)) return leaf;
  view.messages.set(id, { id, role: "assistant", parent, body, refs: [], model, reason: answer.reason ?? null, createdAt, shared: [], rev: 0, isWaiting: true, isBeside: false });
  if (!view.fields.has(TITLE)) for (const [name, body] of answer.fields) view.fields.set(name, body);
  return leaf === parent ? id : leaf;
}

/** A message and those before it, the last first: where a branch begins, in case the message goes meanwhile. */
export function path(view: ChatView, from: MessageId | null): MessageId[] {
  return branch(view.messages, from).reverse().slice(0, PATH).map((message) => message.id);
}

/** The messages from the first to `leaf`. */
function branch(messages: Map<MessageId, MessageView>, leaf: MessageId | null): MessageView[] {
  const [path, met] = [[] as MessageView[], new Set<MessageId>()];
  let at = leaf === null ? undefined : messages.get(leaf);
  while (at !== undefined && !met.has(at.id)) {
    met.add(at.id);
    path.push(at);
    at = at.parent === null ? undefined : messages.get(at.parent);
  }
  return path.reverse();
}

/**
 * What a person typed or pasted, as it can be sealed: halves of surrogate pairs are replaced. `too-large`, if its envelope, which adds a
 * header and a tag, would be with so many bytes beside the text.
 */
export function fitting(body: string, more: number, most: number): string {
  const text = wellFormed(body);
  if (textJson(text).length + more + 64 > most) throw new ClientError("too-large");
  return text;
}

/** Ancestors that a message on another branch remembers, in case its parent goes. */
const PATH = 32;
