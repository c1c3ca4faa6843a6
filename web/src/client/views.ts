// What the page is shown: plain lines, made from what was verified and what waits.
//
//   Device, Notes ─▶ ChatLine, ChatPage, TurnLine, WaitingLine, CopyLine
//
// Nothing here changes anything or waits for anything, so a view may be made while something else is being done. Easy to get wrong: the
// cost. The list is made again after every change, so a line looks at a chat's fields and never at its messages.

import { type ChatId, FieldName, type MessageId, type TurnId } from "../format/index";
import { Given } from "../protocol/index";
import { awaited, words } from "./asks";
import { type ChatView, type MessageView, chat as chatView, chats, copies, data, listed } from "./chats";
import type * as core from "./core";
import type { Device } from "./device";
import { editsOf } from "./edits";
import { ENDED, ENDINGS, endingFields, endingsOf, helpOf } from "./endings";
import { outlinedBranch } from "./outline";
import { TITLE } from "./plan";
import type { Copy, Pending, Waiting, What, Why } from "./queue";
import { temporaryView } from "./temporary";
import { textsOf } from "./texts";
import { type Room, roomField } from "./room";
import { CACHE, SHARES, type Wish } from "./wishes";

/** What is known about turns besides their words, since the worker began. */
export interface TurnNote {
  ahead: number;
  progress: core.Progress | null;
  approvals: core.Approval[];
  historySent: number;
  /** What it asks this device for, and since when. */
  wishes: NotedWish[];
}

/** Something that the server asks for; `at` in milliseconds since 1970. */
export interface NotedWish extends Wish {
  at: number;
}

/** What only this worker knows. Of it all, what is known about answers is kept: see answer_notes.ts. */
export class Notes {
  /** Chats with an answer that was not looked at. */
  unread = new Set<ChatId>();
  turns = new Map<TurnId, TurnNote>();
  answers = new Map<MessageId, core.AnswerNote>();
  /** Chats whose notes of answers were read from their files. */
  areRead = new Set<ChatId>();
  /** Chats that go when their time to undo is over. */
  going = new Set<ChatId>();
  /** Why the last sync refused something. */
  refused: string | null = null;

  turn(turn: TurnId): TurnNote {
    const known = this.turns.get(turn);
    if (known !== undefined) return known;
    const note: TurnNote = { ahead: 0, progress: null, approvals: [], historySent: 0, wishes: [] };
    this.turns.set(turn, note);
    return note;
  }
}

const PINNED = "pinned";

/** Every line of the list, pinned ones first, then the one written to last. */
export function chatLines(device: Device, notes: Notes): core.ChatLine[] {
  const waiting = opsByChat(device);
  const lines = [...device.temporary.keys(), ...chats(device)]
    .filter((id) => !notes.going.has(id))
    .map((id) => chatLine(device, notes, id, waiting.get(id) ?? []));
  return [...lines, ...refusedLines(device, notes)].sort((one, two) => Number(two.pinned) - Number(one.pinned));
}

export function opsByChat(device: Device): Map<ChatId, Pending[]> {
  const found = new Map<ChatId, Pending[]>();
  for (const op of device.state.queue.ops) {
    if (op.chat === null) continue;
    const before = found.get(op.chat);
    if (before === undefined) found.set(op.chat, [op]);
    else before.push(op);
  }
  return found;
}

export function chatLine(device: Device, notes: Notes, id: ChatId, ops: readonly Pending[]): core.ChatLine {
  const room = device.rooms.get(id) ?? device.temporary.get(id);
  const fields = fieldsWith(room, ops);
  const field = (name: string) => fields.get(name) ?? null;
  const draft = ops.findLast(({ act }) => act.do === "draft")?.act;
  const created = ops.find(({ act }) => act.do === "append")?.act;
  return {
    id,
    title: field(TITLE),
    icon: field("icon"),
    category: field("category"),
    summary: field("summary"),
    tags: textsOf(field("tags")),
    pinned: field(PINNED) === "1",
    unread: notes.unread.has(id),
    updatedAt: room?.updatedAt ?? (created?.do === "append" ? created.note.createdAt : device.now()),
    isWaiting: ops.length > 0,
    isAwaited: (room?.head.pending.length ?? 0) > 0 || device.state.asks.some((ask) => ask.chat === id),
    hasDraft: (draft?.do === "draft" ? draft.body : (room?.draft?.body ?? null)) !== null,
    isTemporary: device.temporary.has(id),
    isEnded: field(ENDED) === "1",
    isCached: field(CACHE) !== "off",
    shares: Given.words.filter((given) => textsOf(field(SHARES)).includes(given)),
  };
}

/** The fields that a line shows, with what waits laid over them. */
function fieldsWith(room: Room | undefined, ops: readonly Pending[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (const name of SHOWN) {
    const body = room === undefined ? null : roomField(room, name);
    if (body !== null) fields.set(name, body);
  }
  for (const { act } of ops) {
    if (act.do === "field") fields.set(act.name, act.body);
    if (act.do === "made") for (const [name, body] of act.fields) fields.set(name, body);
    if (act.do === "ending") for (const [name, body] of endingFields((field) => fields.get(field) ?? null, act.reply, act.finish, act.isHelp === true)) fields.set(name, body);
    if (act.do === "reply" && !fields.has(TITLE)) for (const [name, body] of act.answer.fields) fields.set(name, body);
  }
  return fields;
}

const SHOWN = [TITLE, "icon", "category", "summary", "tags", PINNED, CACHE, SHARES, ENDED].map((name) => FieldName.parse(name));

/** Chats of the account's own list that the server does not show as they should be. */
function refusedLines(device: Device, notes: Notes): core.ChatLine[] {
  const { refused } = notes;
  if (refused === null || device.state.older) return [];
  const gone = new Set(device.state.queue.ops.filter(({ act }) => act.do === "delete-chat").map(({ chat }) => chat));
  const missing = listed(device).filter((id) => !device.rooms.has(id) && !gone.has(id));
  return missing.map((id) => ({ ...chatLine(device, notes, id, []), updatedAt: 0, refused }));
}

/** A chat, stored or temporary. */
export function viewOf(device: Device, id: ChatId): ChatView {
  return device.temporary.has(id) ? temporaryView(device, id) : chatView(device, id);
}

/** A chat that is open. */
export function chatPage(device: Device, notes: Notes, id: ChatId): core.ChatPage {
  const view = viewOf(device, id);
  const room = device.rooms.get(id);
  const siblings = bySiblings(view);
  const lost = copies(device).filter((copy) => copy.chat === id);
  const endings = endingsOf(view.fields.get(ENDINGS) ?? null);
  const help = helpOf(view.fields.get(ENDINGS) ?? null);
  return {
    chat: chatLine(device, notes, id, opsByChat(device).get(id) ?? []),
    messages: [
      ...(room !== undefined && view.isThin ? outlinedBranch(room).map(missingLine) : []),
      ...withBeside(view).map((message) => messageLine(message, (message.isBeside ? undefined : siblings.get(message.parent)) ?? [message], lost, notes, endings, help)),
    ],
    turns: turnLines(device, notes, id),
    draft: view.draft,
    edits: editsOf(device, id),
    followUps: textsOf(view.fields.get("follow-ups") ?? null),
    asOf: room === undefined ? null : { at: room.head.at, device: room.head.device },
  };
}

function messageLine(message: MessageView, siblings: readonly MessageView[], lost: readonly Copy[], notes: Notes, endings: ReadonlyMap<string, core.Finish>, help: ReadonlySet<string>): core.MessageLine {
  const mine = lost.filter(({ what }) => what.what === "edit" && what.id === message.id).map(({ number }) => number);
  const heard = notes.answers.get(message.id);
  const finish = heard?.finish ?? endings.get(message.id);
  return {
    id: message.id,
    role: message.role,
    parent: message.parent,
    ...firstWords(message),
    embeds: [...message.refs],
    model: message.model,
    reason: message.reason,
    createdAt: message.createdAt,
    rev: message.rev,
    status: message.isWaiting ? "unsent" : mine.length > 0 ? "conflicted" : "sealed",
    alternatives: { at: siblings.indexOf(message), ids: siblings.map(({ id }) => id) },
    // Only these three are ever noted.
    shared: message.shared.map(({ what, bytes }) => ({ what: what as string as core.GivenKind, bytes })),
    ...(heard === undefined ? {} : { heard }),
    ...(finish === undefined ? {} : { finish }),
    ...(heard?.isHelp === true || help.has(message.id) ? { isHelp: true } : {}),
    copies: mine,
  };
}

/** What a person wrote may be long, and is shortened on the page: what is beyond its first words is asked for. */
function firstWords({ role, body }: MessageView): Pick<core.MessageLine, "body" | "length"> {
  if (role !== "user" || body.length <= FIRST_WORDS) return { body };
  return { body: body.slice(0, FIRST_WORDS).replace(/[\ud800-\udbff]$/, ""), length: body.length };
}

/** A message whose words went. */
function missingLine({ id, outline, rev }: ReturnType<typeof outlinedBranch>[number]): core.MessageLine {
  const { role, parent, createdAt, model, cid, nodes } = outline;
  const missing = nodes ?? [{ type: "text" as const, lines: 1, words: 0, cid }];
  const about = { embeds: [], shared: [], copies: [], alternatives: { at: 0, ids: [id] }, status: "sealed" as const };
  return { id, role, parent, body: "", model, reason: null, createdAt, rev, missing, ...about };
}

/** The branch with what stands beside it: what tools said before the answer, and the newest summary behind what it sums up. */
function withBeside(view: ChatView): MessageView[] {
  const beside = [...view.messages.values()].filter((one) => one.isBeside && !view.branch.some(({ id }) => id === one.id));
  if (beside.length === 0) return view.branch;
  const of = (parent: MessageId, role: "tool" | "summary") => beside.filter((one) => one.parent === parent && one.role === role);
  const last = view.branch.findLast(({ id }) => of(id, "summary").length > 0);
  return view.branch.flatMap((message) => {
    const tools: MessageView[] = [];
    for (let tool = of(message.id, "tool")[0]; tool !== undefined; tool = of(tool.id, "tool")[0]) tools.push(tool);
    const summary = message === last ? of(message.id, "summary").sort((one, two) => one.createdAt - two.createdAt).slice(-1) : [];
    return [...tools, message, ...summary];
  });
}

/** Messages by what they answer, in order of time. */
function bySiblings(view: ChatView): Map<MessageId | null, MessageView[]> {
  const found = new Map<MessageId | null, MessageView[]>();
  // The branch has objects of its own: those count, where there are two of one message.
  const shown = new Map(view.branch.map((message) => [message.id, message]));
  for (const [id, message] of view.messages) {
    const one = shown.get(id) ?? message;
    // Nobody answers with it, so it is no other answer.
    if (one.isBeside && !shown.has(id)) continue;
    const before = found.get(one.parent);
    if (before === undefined) found.set(one.parent, [one]);
    else before.push(one);
  }
  for (const all of found.values()) all.sort((one, two) => one.createdAt - two.createdAt || (one.id < two.id ? -1 : 1));
  return found;
}

/** The last message of the branch through this one: of several answers, always the newest. */
export function leafUnder(device: Device, chat: ChatId, message: MessageId): MessageId {
  const view = viewOf(device, chat);
  const siblings = bySiblings(view);
  let leaf = message;
  // What stands beside a branch is shown with what it belongs to.
  for (let one = view.messages.get(leaf); one?.isBeside === true && one.parent !== null; one = view.messages.get(leaf)) leaf = one.parent;
  // A chat that was verified has no circles.
  for (let below = siblings.get(leaf)?.at(-1); below !== undefined; below = siblings.get(leaf)?.at(-1)) leaf = below.id;
  return leaf;
}

/** Replies that are waited for: those that a stored head names, and questions that are not stored yet. */
export function turnLines(device: Device, notes: Notes, chat: ChatId | null): core.TurnLine[] {
  const stored = awaited(device).filter((one) => chat === null || one.chat === chat);
  const known = new Set(stored.map(({ turn }) => turn));
  const lines = stored.map((one) => {
    const state: Pick<core.TurnLine, "state" | "error"> =
      one.state.is === "unanswered" ? { state: "unanswered", error: one.state.error } : { state: one.state.is };
    return { chat: one.chat, turn: one.turn, message: one.message, reply: one.reply, ...state, ...more(device, notes, one.turn) };
  });
  const unsent = device.state.asks.filter(
    (ask) => (chat === null || ask.chat === chat) && !known.has(ask.turn) && device.state.queue.asks(ask.turn),
  );
  return [
    ...lines,
    ...unsent.map(({ chat: of, turn, message, reply }) => ({
      chat: of,
      turn,
      message,
      reply,
      state: "unsent" as const,
      ...more(device, notes, turn),
    })),
  ];
}

function more(device: Device, notes: Notes, turn: TurnId) {
  const { ahead, progress, approvals, historySent, wishes } = notes.turn(turn);
  const one = device.turns.find(turn);
  const isOpen = (wish: NotedWish) => one !== undefined && device.isConnected && one.mayAnswer(one.chat, wish.what, device.socketNumber);
  return { words: words(device, turn) ?? "", ahead, progress, approvals, historySent, wishes: wishes.filter(isOpen).map(wishLine) };
}

export function wishLine({ what, names, query, pieces, at }: NotedWish): core.WishLine {
  return { what, names: [...names], query, pieces: pieces.map(({ name, text }) => ({ name, text })), at };
}

export function waitingLine(one: Waiting): core.WaitingLine {
  const { number, chat, what, text, isSent } = one;
  return { number, chat, what: what.what, about: aboutOf(what), text, isSent };
}

export function copyLine(one: Copy): core.CopyLine {
  const { number, chat, what, text, why } = one;
  return { number, chat, what: what.what, about: aboutOf(what), text, why: whyOf(why) };
}

function aboutOf(what: What): string | null {
  if ("id" in what) return what.id;
  if (what.what === "data") return `${what.kind}/${what.name}`;
  return "name" in what ? what.name : null;
}

function whyOf(why: Why): string {
  return why.why === "refused" ? why.name : why.why;
}

/** What new chats could begin with. */
export function suggestionsOf(device: Device): string[] {
  return textsOf(data(device, "suggestions", "new-chats"));
}

/** Characters of a message of the person that the page gets unasked. */
const FIRST_WORDS = 6_000;
