// Asking for answers: the question as a write that waits for its reply, then its words, for this turn only.
//
//   ask ─▶ queue: message, head with the pending reply ─▶ stored ─▶ chat_message_added: words and claim, over the verified branch
//                                                                        │ request_chat_history: this turn, this branch, twice at most
//                                                                        ▼
//   retry, giveUp ─▶ queue                                          [answers]: what comes of it
//
// A question of which nothing was heard is asked again on the next socket: it is the same turn, and only who asks on a socket may give
// its history there.
//
// Words leave the device in clear in these two events and in what [wishes] gives by consent, and only for a turn that this device began on
// this socket and that has no answer yet. Everything else that a server asks for is `unasked`, and nothing leaves. Easy to get wrong: the branch. It is the one that was
// verified and stored, from the question up its parents, whatever is shown or waits meanwhile.

import { type ChatId, Claim, FieldName, MessageId, type Pending, Refused, type Shared, TurnId } from "../format/index";
import {
  type Catalogue,
  type ChatMessageAdded,
  Given,
  type Heard,
  MAX_CLIENT_DATA,
  MAX_HISTORY,
  MAX_OFF,
  MAX_PIECES,
  MAX_QUERY,
  MAX_SHORT,
  type RequestChatHistory,
  utf8Length,
} from "../protocol/index";
import { askRest } from "./answers";
import { heardOf } from "./beside";
import { chat as chatView, path, putNote, setData, there } from "./chats";
import { type Device, requestOne, save, tell } from "./device";
import { ClientError, deniedName, isDenied, isNotFound, isRefused } from "./error";
import { TITLE, decide as decideAct } from "./plan";
import { type Act, TO_END, type To, type Wanted, noteOf } from "./queue";
import { type Room, revOf, roomField, roomMessage } from "./room";
import type { Question } from "./state";
import { isFocusOff } from "./switches";
import { type Asked, type Awaited, type Awaiting, type BranchItem, type SentWith, type Told, Turn } from "./turns";
import { type GivenText, SWITCH, isCached, isOff, mayAsk, noteOfGiven, switchedOff } from "./wishes";

/** What goes with a question. */
export interface AskOptions {
  /** How long the server may keep the words of this chat; not beyond the answer where `setCached` says so. */
  keep: "cache" | "turn";
  /** A focus mode, by name. */
  focus: string | null;
  /** What is switched off for this question, besides `switchedOff`. */
  off: string[];
  /** Settings and memories that could be given, by name. */
  available: string[];
  /** What the person lets the server have for this turn. At most three, 4 KiB together; noted inside the message. */
  given: GivenText[];
  /** Whether the person is there to be asked for more while the answer is made; else only what is switched on for the chat may be asked for. */
  isPerson: boolean;
}

export const NO_OPTIONS: AskOptions = { keep: "cache", focus: null, off: [], available: [], given: [], isPerson: false };

/** Writes a message of the person behind the last one, and asks for an answer. Offline, both wait in the queue. */
export function ask(device: Device, chat: ChatId, body: string, options: AskOptions = NO_OPTIONS): Promise<Asked> {
  return askAt(device, chat, body, options, TO_END);
}

/** Asks something else in place of a message: another branch, behind what that message answers. */
export async function askInstead(
  device: Device,
  chat: ChatId,
  message: MessageId,
  body: string,
  options: AskOptions = NO_OPTIONS,
): Promise<Asked> {
  const view = chatView(device, chat);
  const replaced = view.messages.get(message);
  if (replaced === undefined) throw new ClientError("no-such-message");
  return askAt(device, chat, body, options, { to: "after", path: path(view, replaced.parent) });
}

async function askAt(device: Device, chat: ChatId, body: string, all: AskOptions, to: To): Promise<Asked> {
  there(device, chat);
  const options = withoutOff(device, all);
  checkOptions(device, chat, options);
  if (utf8Length(body) > MAX_QUERY) throw new ClientError("too-large");
  const wanted: Wanted = { turn: TurnId.random(), reply: MessageId.random() };
  const note = { ...noteOf("user", body, device.now()), ask: wanted, shared: noted(options) };
  const message = putNote(device, chat, note, to);
  return remember(device, chat, message, wanted, options);
}

/**
 * Asks for another answer to a message of the person, and gives nothing besides. Answers to it that will not come are not waited for any
 * more.
 */
export async function retry(device: Device, chat: ChatId, message: MessageId, all: AskOptions = NO_OPTIONS): Promise<Asked> {
  there(device, chat);
  const options = withoutOff(device, all);
  checkOptions(device, chat, options);
  const asked = chatView(device, chat).messages.get(message);
  if (asked === undefined || asked.role !== "user") throw new ClientError("no-such-message");
  if (utf8Length(asked.body) > MAX_QUERY) throw new ClientError("too-large");
  const wanted: Wanted = { turn: TurnId.random(), reply: MessageId.random() };
  const over = unanswered(device).filter((one) => one.chat === chat && one.message === message);
  device.state.queue.append(chat, { do: "retry", message, wanted, instead: over.map((one) => one.reply) });
  // What is given is noted inside the message, and this one is written.
  return remember(device, chat, message, wanted, { ...options, given: [] });
}

/** What is switched off does not go along, whoever names it. */
export function withoutOff(device: Device, options: AskOptions): AskOptions {
  const isOn = (name: string) => !isOff(device, name, options.off);
  return {
    ...options,
    focus: options.focus !== null && !isFocusOff([...switchedOff(device), ...options.off], options.focus) ? options.focus : null,
    available: isOn(SWITCH.settings) ? options.available : [],
    given: options.given.filter(({ what }) => isOn(SWITCH[what])),
  };
}

/** What goes with a question is within the limits: `too-large`, if not. */
export function checkOptions(device: Device, chat: ChatId, options: AskOptions): void {
  const given = options.given.reduce((sum, { text }) => sum + utf8Length(text), 0);
  const names = [...options.off, ...options.available, ...options.given.map(({ name }) => name), options.focus ?? ""];
  const isShort = names.every((name) => utf8Length(name) <= MAX_SHORT);
  const off = options.off.length + switchedOff(device).length;
  const isFew = Math.max(off, options.available.length) <= MAX_OFF && options.given.length <= MAX_PIECES;
  const waits = device.rooms.get(chat)?.head.pending.length ?? 0;
  if (!isShort || !isFew || given > MAX_CLIENT_DATA || waits >= MOST_AWAITED) throw new ClientError("too-large");
}

async function remember(device: Device, chat: ChatId, message: MessageId, wanted: Wanted, options: AskOptions): Promise<Asked> {
  const { turn, reply } = wanted;
  device.state.asks.push({
    chat,
    turn,
    message,
    reply,
    isKept: options.keep === "cache",
    focus: options.focus,
    off: options.off,
    available: options.available,
    given: options.given.map(({ what, name, text }) => [what, name, text]),
    isSent: false,
    begun: null,
    isHeard: false,
    again: 0,
    isPerson: options.isPerson,
    gave: [],
  });
  await save(device);
  return { turn, message, reply };
}

/** Waits no longer for this reply. It does not stop the turn: `cancel` does. */
export async function giveUp(device: Device, chat: ChatId, turn: TurnId): Promise<void> {
  const room = device.rooms.get(chat);
  if (room === undefined) throw new ClientError("no-such-chat");
  const awaited = room.head.pending.find((pending) => pending.turn === turn);
  if (awaited === undefined) throw new ClientError("no-such-message");
  device.state.queue.append(chat, { do: "give-up", reply: awaited.reply });
  await save(device);
}

/** Every reply that a stored chat, or a temporary one, waits for. */
export function awaited(device: Device): Awaited[] {
  return [...device.rooms.values(), ...device.temporary.values()].flatMap((room) =>
    room.head.pending.map(({ turn, parent, reply }) => ({
      chat: room.id,
      turn,
      message: parent,
      reply,
      state: awaiting(device, turn),
    })),
  );
}

/** Replies that will not come: the person may `retry`, or `giveUp`. */
export function unanswered(device: Device): Awaited[] {
  return awaited(device).filter(({ state }) => state.is === "unanswered");
}

function awaiting(device: Device, turn: TurnId): Awaiting {
  if (device.state.queue.answers(turn)) return { is: "heard" };
  const one = device.turns.find(turn);
  if (one === undefined) {
    const isUnsent = device.state.asks.some((ask) => ask.turn === turn && ask.begun === null);
    return { is: isUnsent ? "unsent" : "unknown" };
  }
  if (one.stage.at === "over") return { is: "unanswered", error: one.stage.error };
  if (one.stage.at === "ended") return { is: "heard" };
  return { is: device.isConnected && one.heardOn === device.socketNumber ? "running" : "unknown" };
}

/** The words of an answer so far. */
export function words(device: Device, turn: TurnId): string | null {
  return device.turns.find(turn)?.words ?? null;
}

/** Stops a turn. What was said so far comes as its answer; nothing that it asked for is given any more. */
export async function cancel(device: Device, chat: ChatId, turn: TurnId): Promise<void> {
  const one = device.turns.find(turn);
  if (one !== undefined) [one.isCancelled, one.open] = [true, []];
  await tell(device, { type: "cancel_ai_task", chat, turn });
}

/** The person's word on a tool. */
export async function decide(device: Device, chat: ChatId, turn: TurnId, approval: string, allow: boolean): Promise<void> {
  const say = () => requestOne(device, { type: "decide_ai_task", chat, turn, approval, allow });
  const [, answer] = await say().catch(async (error: unknown) => {
    // A gateway listens for a while only: asked what came of the turn, it listens again.
    if (!isNotFound(error) || !(await hearAgain(device, turn))) throw error;
    return say();
  });
  if (answer.type !== "ai_task_initiated" && answer.type !== "message_queued") throw new ClientError("unexpected");
}

/** Asks the server what came of a turn that has no end yet, as far as this device heard. Whether there is such a turn. */
export async function hearAgain(device: Device, turn: TurnId): Promise<boolean> {
  const one = device.turns.find(turn);
  if (one === undefined || one.stage.at === "ended" || one.stage.at === "over") return false;
  await takeUp(device, turn);
  return true;
}

/** What the server's answers may use now: tools and focus modes. Nothing of it is kept. */
export function catalogue(device: Device): Promise<Catalogue> {
  return device.link.post("/chats/catalogue", {});
}

/**
 * Switches something off for every question on every device, or on again: `tools`, `focus`, `settings`, `similar`, `search`, `suggestions`,
 * a tool by its name, or a focus mode as `focus:` and its name.
 */
export async function setSwitch(device: Device, name: string, isOn: boolean): Promise<void> {
  const off = switchedOff(device).filter((one) => one !== name);
  if (!isOn) off.push(name);
  if (off.length > MAX_OFF || utf8Length(name) > MAX_SHORT) throw new ClientError("too-large");
  await setData(device, SETTINGS, OFF, off.length > 0 ? JSON.stringify(off) : null);
}

/**
 * Asks the questions that are stored and were not asked yet. Of one that was sent before, and whose answer was lost, it is first looked
 * what came of it: it may be answered by now.
 */
export async function beginTurns(device: Device): Promise<void> {
  await tidyAsks(device);
  for (const question of device.state.asks.filter((ask) => ask.begun === null)) {
    const room = device.rooms.get(question.chat);
    if (room === undefined || !room.head.pending.some((pending) => pending.turn === question.turn)) continue;
    const [added, turn] = await askedOf(device, room, question, question.isSent ? null : device.socketNumber);
    device.turns.add(turn);
    if (question.isSent) {
      await takeUp(device, question.turn);
    } else {
      // Kept before it is sent: if the answer is lost, the turn may run, or be over, when it is sent again.
      question.isSent = true;
      await save(device);
      await begin(device, question, added);
    }
    question.begun ??= turn.after;
    await save(device);
  }
}

/** Sends a question. One that the server cannot take now is an error; one that it does not take has no answer. */
async function begin(device: Device, question: Question, added: ChatMessageAdded): Promise<void> {
  try {
    const [, answer] = await requestOne(device, { type: "chat_message_added", ...added });
    const turn = device.turns.find(question.turn);
    if (turn === undefined) return;
    if (answer.type === "ai_task_initiated") begun(device, turn, 0);
    else if (answer.type === "message_queued") begun(device, turn, answer.ahead);
    else throw new ClientError("unexpected");
  } catch (error) {
    if (!isDenied(error)) throw error;
    if (error.retryMs !== null || error.name === "stopping") {
      // Later, then.
      device.turns.forget(question.turn);
      [question.isSent, question.again] = [question.begun !== null, Math.max(0, question.again - 1)];
      await save(device);
      throw error;
    }
    device.turns.fail(question.turn, deniedName(error));
    await noteHeard(device, question.turn);
  }
}

/** Asks for the rest of an answer; then, if nothing was heard of it and the question is this device's, the question itself. */
export async function takeUp(device: Device, turn: TurnId): Promise<void> {
  try {
    const told = await askRest(device, turn);
    if (!(await askAgain(device, turn)) && told !== null) device.turns.told.push(told);
  } catch (error) {
    if (!isRefused(error)) throw error;
    device.turns.fail(turn, error.name);
  }
}

/**
 * Asks a question of this device once more on this socket, if nothing was heard of its answer; whether it did. The socket that it went over
 * may have been lost before the history was given, and only the one that asks may give it. A turn that is asked for twice is one turn,
 * and answered once.
 */
async function askAgain(device: Device, turn: TurnId): Promise<boolean> {
  const ask = device.state.asks.find((one) => one.turn === turn && !one.isHeard && one.isSent);
  const one = device.turns.find(turn);
  if (ask === undefined || one === undefined || one.words !== "") return false;
  const isLost = one.stage.at === "over" && one.stage.error === "not-found";
  if (one.stage.at !== "asked" && !(isLost && ask.again < AGAIN)) return false;
  const room = device.rooms.get(ask.chat);
  if (room === undefined) return false;
  const made = await askedOf(device, room, ask, device.socketNumber).catch(() => null);
  if (made === null) return false;
  const [added, question] = made;
  // The branch changed since: to a server that has the question, this would be another one.
  if (!isLost && ask.begun !== null && ask.begun !== question.after) return false;
  device.turns.add(question);
  if (isLost) {
    ask.again = ask.again + 1;
    await save(device);
    await begin(device, ask, added);
  } else {
    try {
      const [, answer] = await requestOne(device, { type: "chat_message_added", ...added });
      if (answer.type !== "ai_task_initiated" && answer.type !== "message_queued") throw new ClientError("unexpected");
    } catch (error) {
      // Denied, it listens all the same.
      if (!isDenied(error)) throw error;
    }
  }
  ask.begun = question.after;
  await save(device);
  return true;
}

/** Something was heard of an answer that this device asked for: from now on it asks no more by itself. */
export async function noteHeard(device: Device, turn: TurnId): Promise<void> {
  const ask = device.state.asks.find((one) => one.turn === turn && !one.isHeard);
  if (ask === undefined) return;
  ask.isHeard = true;
  await save(device);
}

function begun(device: Device, turn: Turn, ahead: number): void {
  device.turns.told.push(turn.tell({ told: "begun", ahead }));
}

/**
 * Questions that nothing waits for any more are forgotten. What was given for one is noted in its answer before, if another device has stored
 * that: only this one knows.
 */
async function tidyAsks(device: Device): Promise<void> {
  const { asks, queue } = device.state;
  const isOpen = (ask: Question) => {
    const pending = device.rooms.get(ask.chat)?.head.pending ?? [];
    return queue.asks(ask.turn) || pending.some((one) => one.turn === ask.turn);
  };
  const open = asks.filter(isOpen);
  if (open.length === asks.length) return;
  for (const { chat, reply: id, gave } of asks.filter((ask) => !open.includes(ask))) {
    const room = device.rooms.get(chat);
    if (room === undefined || gave === undefined || gave.length === 0) continue;
    const act: Act = { do: "gave", id, shared: gave };
    if (decideAct(act, room).then === "do") queue.append(chat, act);
  }
  device.state.asks = open;
  await save(device);
}

/** A question, over the branch as it is stored. */
async function askedOf(device: Device, room: Room, question: Question, begunOn: number | null): Promise<[ChatMessageAdded, Turn]> {
  const { chat, turn, message, reply } = question;
  const [claim, branch] = await claimOf(room, message, reply);
  const text = roomMessage(room, message)?.body;
  if (text === undefined) throw new Refused("parent-missing");
  const off = [...new Set([...switchedOff(device), ...question.off])];
  const asks = mayAsk(device, question);
  // What was switched off since it was written stays here.
  const given = question.given.filter(([what]) => !off.includes(SWITCH[givenOf(what)]));
  const available = off.includes(SWITCH.settings) ? [] : question.available;
  const focus = question.focus === null || isFocusOff(off, question.focus) ? null : question.focus;
  const keep = question.isKept && !off.includes("cache") && isCached(device, chat) ? "cache" : "turn";
  const added: ChatMessageAdded = {
    chat,
    turn,
    message,
    reply,
    text,
    count: claim.count,
    before: claim.before,
    after: claim.after,
    keep,
    history: false,
    titled: roomField(room, FieldName.parse(TITLE)) !== null,
    focus: focus ?? undefined,
    off,
    available,
    given: given.map(([what, name, words]) => ({ what: givenOf(what), name, text: words })),
    asks,
  };
  const heard = listener(device, chat, { turn, parent: message, reply }, claim, branch, begunOn);
  [heard.asks, heard.asked, heard.sent] = [asks, gaveKinds(question), sentWith(added)];
  return [added, heard];
}

/** What was given already is not asked for again. */
function gaveKinds(question: Question): Given[] {
  return Given.words.filter((given) => (question.gave ?? []).some(({ what }) => what === given));
}

/** What a question says besides its words, for "what the server saw". */
export function sentWith({ keep, off, available, focus, asks }: ChatMessageAdded): SentWith {
  return { isKept: keep === "cache", off: [...off], names: available.length, focus: focus ?? null, asks: [...asks] };
}

function givenOf(what: string): Given {
  const given = Given.words.find((word) => word === what);
  if (given === undefined) throw new ClientError("damaged");
  return given;
}

export function listener(
  device: Device,
  chat: ChatId,
  pending: Pending,
  claim: Claim,
  branch: readonly BranchItem[],
  begunOn: number | null,
): Turn {
  return new Turn(chat, pending.turn, pending.parent, pending.reply, claim.after, branch, begunOn, device.socketNumber);
}

/**
 * The server asks for the words before a question. Anything but an open question of this device, on this socket, for the branch that it
 * named, at most twice: `unasked`, and nothing leaves.
 */
export async function giveHistory(device: Device, asked: RequestChatHistory): Promise<Told | null> {
  const { chat } = asked;
  const turn = device.turns.find(asked.turn);
  if (turn === undefined || !turn.mayGive(chat, asked.message, device.socketNumber)) throw new Refused("unasked");
  const room = device.rooms.get(chat) ?? device.temporary.get(chat);
  const messages = room === undefined ? null : await heardOf(room, turn.branch);
  if (messages === null) {
    // Changed on another device since: it is not the branch that was named, so nothing is given.
    device.turns.fail(turn.turn, "conflict");
    await noteHeard(device, turn.turn);
    await cancel(device, chat, turn.turn);
    return device.turns.told.pop() ?? null;
  }
  for (const [part, more] of parts(messages)) {
    await tell(device, { type: "chat_history", chat, turn: turn.turn, messages: part, more });
  }
  turn.histories += 1;
  return turn.tell({ told: "history", messages: messages.length });
}

/**
 * What a question says about the branch that it continues, and that branch: from the first message to the one before it. As it is stored:
 * a branch that is not whole has no claim.
 */
export async function claimOf(room: Room, message: MessageId, reply: MessageId): Promise<[Claim, BranchItem[]]> {
  const found = (id: MessageId) => {
    const one = roomMessage(room, id);
    if (one === undefined) throw new Refused("parent-missing");
    return one;
  };
  const item = (id: MessageId): BranchItem => [id, revOf(room.items.get(id))];
  const branch: BranchItem[] = [];
  // Every branch that was verified ends in a first message.
  for (let at = found(message).parent; at !== null; at = found(at).parent) branch.push(item(at));
  branch.reverse();
  return [await Claim.make(room.ring.newest, branch, item(message), reply), branch];
}

/** In as many parts as fit a frame each, with whether more follow; one part at least. */
export function parts(heard: readonly Heard[]): [messages: Heard[], more: boolean][] {
  const all: Heard[][] = [[]];
  let size = 0;
  for (const one of heard) {
    const bytes = utf8Length(JSON.stringify(one.text)) + 256;
    const last = all.at(-1)?.length ?? 0;
    if (last > 0 && (size + bytes > PART || last >= MAX_HISTORY)) {
      all.push([]);
      size = 0;
    }
    size += bytes;
    all.at(-1)?.push(one);
  }
  return all.map((part, at) => [part, at + 1 < all.length]);
}

/** What the message notes of what is given with it. */
export function noted(options: AskOptions): Shared[] {
  return options.given.map(noteOfGiven);
}

/** The account data that has what the person switched off: its kind and name. */
const SETTINGS = "settings";
const OFF = "off";
/** How often a question that the server lost is asked again without the person. */
const AGAIN = 5;
/** Replies that one chat may wait for. */
const MOST_AWAITED = 64;
/** What one part of a history may take, in bytes of JSON. One message always fits a frame. */
const PART = 4 * 1024 * 1024;
