// Answers: heard word by word, found in the mailbox, or asked for again; then written by this device.
//
//   words ─▶ their place ─▶ ended: length and hash are those of the words ─▶ queue: reply, head without the pending item ─▶ acknowledged
//   letter ─▶ opened with the account's box keys, against head and list ────▶ the same
//   sync ─▶ every pending reply: resume_ai_task ─▶ words, a letter, or `not-found`: it is unanswered
//
// A reply counts for the turn and the id that the chat's sealed head waits for. Several devices may hear one: the first write wins, and the
// others drop theirs. Easy to get wrong: acknowledging first. The server forgets the answer then, so it is told only after the write was
// stored.

import {
  type ChatId,
  Digest,
  FieldName,
  type ItemId,
  Letter,
  type Message,
  type MessageId,
  type Pending,
  Refused,
  type TurnId,
  utf8,
} from "../format/index";
import {
  type About,
  type AiMessageUpdate,
  type AiTypingEnded,
  MAX_MESSAGE,
  MAX_QUERY,
  type PendingAiResponse,
  type PostProcessingCompleted,
  type ServerEvent,
  ServerFrame,
  readBody,
} from "../protocol/index";
import { beginTurns, claimOf, giveHistory, listener, noteHeard, takeUp } from "./asks";
import { notesOf } from "./beside";
import { there } from "./chats";
import { connect, type Device, requestOne, save } from "./device";
import { ClientError, deniedName, isDenied, isRefused } from "./error";
import { TITLE } from "./plan";
import type { Answer } from "./queue";
import { keepTemporary } from "./temporary";
import type { Told, Turn } from "./turns";
import { gaveFor, takeWish } from "./wishes";

/** Takes in what came of a turn. One that this device does not hear on this socket: `unasked`. */
export async function takeTurn(device: Device, event: ServerEvent): Promise<Told | null> {
  switch (event.type) {
    case "request_chat_history":
      return giveHistory(device, event);
    case "request_client_data":
      return takeWish(device, event);
    case "ai_message_update":
      return takeWords(device, event);
    case "ai_typing_ended":
      return takeEnd(device, event);
    case "pending_ai_response":
      return takeLetter(device, event);
    case "post_processing_completed":
      return takeMade(device, event);
    case "ai_typing_started": {
      const turn = heard(device, event.chat, event.turn);
      if (turn.stage.at === "asked") turn.stage = { at: "answering" };
      return null;
    }
    case "preprocessing_step":
      return heard(device, event.chat, event.turn).tell({ told: "progress", progress: { step: event.step, text: event.text } });
    case "ai_approval_requested": {
      const { approval: id, tool, input, why, expiresMs } = event;
      const turn = heard(device, event.chat, event.turn);
      await noteHeard(device, event.turn);
      return turn.tell({ told: "approval", approval: { id, tool, input, why, expiresAt: device.now() + expiresMs } });
    }
    case "ai_task_failed": {
      const turn = heard(device, event.chat, event.turn);
      if (turn.isDone) return null;
      if (turn.isCancelled && turn.words !== "") return keepSaid(device, turn);
      turn.stage = { at: "over", error: event.error };
      await noteHeard(device, event.turn);
      return turn.tell({ told: "failed", error: event.error });
    }
    default:
      return null;
  }
}

function heard(device: Device, chat: ChatId, turn: TurnId): Turn {
  const one = device.turns.heard(chat, turn, device.socketNumber);
  if (one === undefined) throw new Refused("unasked");
  return one;
}

async function takeWords(device: Device, update: AiMessageUpdate): Promise<Told | null> {
  const turn = heard(device, update.chat, update.turn);
  if (turn.isDone) return null;
  turn.stage = { at: "answering" };
  const words = turn.hear(update.at, update.text);
  if (turn.bytes > MAX_QUERY) throw refuse(turn);
  if (words.heard === "words") {
    if (words.at === 0) await noteHeard(device, turn.turn);
    return turn.tell({ told: "words", at: words.at, text: turn.words.slice(words.at) });
  }
  // Known, or on their way.
  if (words.heard === "known" || turn.isCatchingUp) return null;
  if (turn.gaps >= GAPS) throw refuse(turn);
  turn.gaps += 1;
  turn.isCatchingUp = true;
  return askRest(device, turn.turn);
}

/**
 * The answer is there, if its length and hash are those of the words that were heard. If not, all of it is asked for once more; then it is
 * `record-refused`.
 */
async function takeEnd(device: Device, ended: AiTypingEnded): Promise<Told | null> {
  const turn = heard(device, ended.chat, ended.turn);
  if (turn.isDone) return null;
  if (turn.bytes !== ended.bytes || (await Digest.of(utf8(turn.words))) !== ended.hash) {
    if (turn.isRepeated) throw refuse(turn);
    turn.isRepeated = true;
    turn.forgetWords();
    return askRest(device, turn.turn);
  }
  turn.stage = { at: "ended" };
  const [body, isCut] = fitted(turn.words);
  const answer: Answer = {
    turn: turn.turn,
    parent: turn.message,
    body,
    model: ended.model ?? null,
    reason: ended.about.reason ?? null,
    // A proof is for all of the words.
    proof: isCut ? null : (ended.proof ?? null),
    createdAt: device.now(),
    fields: fieldsOf(ended.about),
    beside: await notesOf(device.rooms.get(turn.chat) ?? device.temporary.get(turn.chat), turn.turn, turn.message, turn.reply, ended.beside),
  };
  const isWaited = await keepAnswer(device, turn.chat, turn.reply, answer);
  if (isWaited) await keepEnding(device, turn.chat, turn.reply, ended.finish, isHelp(ended.about));
  if (isWaited) return turn.tell(endedOf(ended.finish, turn, ended.about));
  device.turns.fail(turn.turn, "unasked");
  return device.turns.told.pop() ?? null;
}

/**
 * The person stopped the turn, and the server has no answer of it: what was heard so far counts, as docs/CHATS.md says. It has no proof, so
 * the model is shown it as a quotation later.
 */
async function keepSaid(device: Device, turn: Turn): Promise<Told | null> {
  turn.stage = { at: "ended" };
  const { turn: id, message: parent, chat, reply } = turn;
  const [body] = fitted(turn.words);
  const answer: Answer = { turn: id, parent, body, model: null, proof: null, createdAt: device.now(), fields: [] };
  if (await keepAnswer(device, chat, reply, answer)) {
    await keepEnding(device, chat, reply, "cancelled", false);
    return turn.tell(endedOf("cancelled", turn, null));
  }
  device.turns.fail(id, "unasked");
  return device.turns.told.pop() ?? null;
}

/**
 * How an answer ended is known on every device, also after the page was loaded again: a chat that was ended for safety is closed, and one that
 * was declined names who helps.
 */
async function keepEnding(device: Device, chat: ChatId, reply: MessageId, finish: AiTypingEnded["finish"], isHelp: boolean): Promise<void> {
  if ((finish === "whole" && !isHelp) || device.temporary.has(chat) || !isThere(device, chat)) return;
  device.state.queue.append(chat, { do: "ending", reply, finish, isHelp });
  await save(device);
}

/** Whether the server says that the person may need help. */
function isHelp(about: About | null): boolean {
  return about?.care === "help";
}

function endedOf(finish: AiTypingEnded["finish"], { reply, sent }: Pick<Turn, "reply" | "sent">, about: About | null) {
  const [tools, wanted] = [[...(about?.tools ?? [])], [...(about?.wanted ?? [])]];
  return { told: "ended" as const, finish, reply, tools, wanted, focus: about?.focus ?? null, category: about?.category ?? null, isHelp: isHelp(about), sent };
}

/**
 * An answer that was left in the mailbox. In the list already: dropped. One that nobody waits for, that does not open, or that answers
 * something else is refused by name.
 */
async function takeLetter(device: Device, sent: PendingAiResponse): Promise<Told | null> {
  let opened: { message: Message; more: More };
  try {
    opened = await openLetter(device, sent);
  } catch (error) {
    if (!isRefused(error, "duplicate")) throw error;
    // Another device stored it; the letter may go.
    await thank(device, sent.chat, sent.turn);
    return null;
  }
  const { message, more } = opened;
  if (message.parent === null) throw new Refused("unasked");
  const [body, isCut] = fitted(message.body);
  const answer: Answer = {
    turn: sent.turn,
    parent: message.parent,
    body,
    model: message.model,
    reason: message.reason,
    proof: isCut ? null : message.proof,
    createdAt: message.createdAt,
    fields: more.about === null ? [] : fieldsOf(more.about),
    beside: await notesOf(device.rooms.get(sent.chat), sent.turn, message.parent, sent.reply, more.beside),
  };
  if (await keepAnswer(device, sent.chat, sent.reply, answer)) await keepEnding(device, sent.chat, sent.reply, more.finish, isHelp(more.about));
  if (more.made !== null) await putMade(device, more.made);
  const turn = device.turns.find(sent.turn);
  if (turn !== undefined) turn.stage = { at: "ended" };
  return { chat: sent.chat, turn: sent.turn, what: endedOf(more.finish, { reply: sent.reply, sent: turn?.sent ?? null }, more.about) };
}

/** The answer, and what was made of it. Suggestions that do not open are no reason to lose the answer. */
async function openLetter(device: Device, sent: PendingAiResponse): Promise<{ message: Message; more: More }> {
  const room = device.rooms.get(sent.chat);
  if (room === undefined) throw new Refused("unasked");
  const { account } = device;
  if (account === null) throw new Refused("account-missing");
  const list = new Map([...room.items].map(([item, slot]): [ItemId, Digest] => [item, slot.hash]));
  const letter = new Letter({ account: account.id, chat: sent.chat, reply: sent.reply, turn: sent.turn });
  const message = await letter.open(account.boxes, room.head, list, sent.letter);
  const text = sent.more === undefined ? null : await letter.openMore(account.boxes, room.head, sent.more).catch(() => null);
  return { message, more: moreOf(text?.body ?? "", sent.chat, sent.turn) };
}

/** The reply waits to be stored, where the chat still waits for it; `duplicate` and `unasked` ones are dropped. Gives whether somebody waits. */
async function keepAnswer(device: Device, chat: ChatId, reply: MessageId, answer: Answer): Promise<boolean> {
  if (device.temporary.has(chat)) return keepTemporary(device, chat, reply, answer);
  const { turn, parent } = answer;
  const room = device.rooms.get(chat);
  const isPending = room?.head.pending.some((one) => one.reply === reply && one.turn === turn && one.parent === parent) ?? false;
  const isThere = room?.items.has(reply) ?? false;
  if (isPending && !isThere && !device.state.queue.answers(turn)) {
    device.state.queue.append(chat, { do: "reply", id: reply, answer: { ...answer, shared: gaveFor(device, turn) } });
  }
  // Stored here or by another device, or given up: the server may forget it.
  await thank(device, chat, turn);
  return isPending || isThere;
}

async function thank(device: Device, chat: ChatId, turn: TurnId): Promise<void> {
  const { acks } = device.state;
  if (!acks.some(([, one]) => one === turn)) acks.push([chat, turn]);
  await save(device);
}

/** Summary, tags and suggestions, of a turn that this device heard. */
async function takeMade(device: Device, made: PostProcessingCompleted): Promise<Told | null> {
  const turn = heard(device, made.chat, made.turn);
  if (turn.stage.at !== "ended") return null;
  await putMade(device, made);
  return turn.tell({ told: "made" });
}

async function putMade(device: Device, made: PostProcessingCompleted): Promise<void> {
  const { chat, followUps, newChats, summary, tags } = made;
  // Nothing is kept of a temporary chat.
  if (device.temporary.has(chat)) return;
  const fields: [FieldName, string][] = [];
  if (followUps.length > 0) fields.push([FOLLOW_UPS, JSON.stringify(followUps)]);
  if (summary !== undefined) fields.push([SUMMARY, summary]);
  if (tags.length > 0) fields.push([TAGS, JSON.stringify(tags)]);
  if (fields.length > 0 && isThere(device, chat)) device.state.queue.append(chat, { do: "made", fields });
  if (newChats.length > 0) device.state.queue.suggest([...newChats]);
  await save(device);
}

function isThere(device: Device, chat: ChatId): boolean {
  try {
    there(device, chat);
    return true;
  } catch {
    return false;
  }
}

/**
 * Asks for every answer that the chats on this device wait for and that is not being heard: also those that another device asked for. Every
 * sync does it.
 */
export async function resume(device: Device): Promise<void> {
  await connect(device);
  await resumeTurns(device);
}

export async function resumeTurns(device: Device): Promise<void> {
  await beginTurns(device);
  const waiting = [...device.rooms.values(), ...device.temporary.values()].flatMap((room) =>
    room.head.pending.filter((pending) => !isHeard(device, pending)).map((pending) => [room.id, pending] as const),
  );
  for (const [chat, pending] of waiting) {
    const room = device.rooms.get(chat) ?? device.temporary.get(chat);
    if (room === undefined) continue;
    const found = await claimOf(room, pending.parent, pending.reply).catch(() => null);
    if (found === null) continue;
    const [claim, branch] = found;
    // What this device said when it asked holds, also if the branch or its key changed since.
    const asked = device.state.asks.find((ask) => ask.turn === pending.turn);
    const after = asked?.begun ?? claim.after;
    device.turns.add(listener(device, chat, pending, { ...claim, after }, branch, null));
    await takeUp(device, pending.turn);
  }
}

function isHeard(device: Device, pending: Pending): boolean {
  if (device.state.queue.answers(pending.turn)) return true;
  const turn = device.turns.find(pending.turn);
  if (turn === undefined) return false;
  // Another device may have asked only just now; or the server had too much to do.
  if (turn.stage.at === "over" && ["not-found", "rate", "stopping"].includes(turn.stage.error)) return false;
  return turn.stage.at === "ended" || turn.heardOn === device.socketNumber;
}

/** Asks for the rest of an answer. */
export async function askRest(device: Device, turn: TurnId): Promise<Told | null> {
  let from = device.turns.find(turn)?.bytes ?? 0;
  for (;;) {
    const one = device.turns.find(turn);
    if (one === undefined) return null;
    try {
      const [, answer] = await requestOne(device, { type: "resume_ai_task", chat: one.chat, turn, after: one.after, from, message: one.message, reply: one.reply });
      // The words follow, as events of their own.
      if (answer.type === "ai_task_initiated" || answer.type === "message_queued") return null;
      if (answer.type !== "pending_ai_response") throw new ClientError("unexpected");
      if (answer.turn !== turn) throw new Refused("unasked");
      return await takeLetter(device, answer);
    } catch (error) {
      if (!isDenied(error)) throw error;
      if (error.name === "malformed" && from > 0) {
        // It has fewer words than were heard: from the beginning.
        from = 0;
        one.forgetWords();
        continue;
      }
      device.turns.fail(turn, deniedName(error));
      return device.turns.told.pop() ?? null;
    }
  }
}

/** Tells the server which answers are stored, so that it forgets them. */
export async function acknowledge(device: Device): Promise<void> {
  for (const [chat, turn] of [...device.state.acks]) {
    if (device.state.queue.answers(turn)) continue;
    try {
      const [, answer] = await requestOne(device, { type: "ai_response_completed", chat, turn });
      if (answer.type !== "ai_response_storage_confirmed") throw new ClientError("unexpected");
    } catch (error) {
      if (!isDenied(error)) throw error;
      // It cannot now; the answer is stored all the same.
      if (error.retryMs !== null || error.name === "stopping" || error.name === "unavailable") continue;
    }
    device.state.acks = device.state.acks.filter(([, one]) => one !== turn);
    await save(device);
  }
}

/** The words are not what the server says they are: nothing of them is kept. */
function refuse(turn: Turn): Refused {
  turn.stage = { at: "over", error: "record-refused" };
  turn.forgetWords();
  return new Refused("record-refused");
}

/** What was found out and made around an answer, as the second part of a letter has it: the frames that a device would have heard. */
interface More {
  about: About | null;
  /** What is stored beside it. */
  beside: AiTypingEnded["beside"];
  finish: AiTypingEnded["finish"];
  made: PostProcessingCompleted | null;
}

/** One frame per line; what is not of this turn, or cannot be read, is left out. */
function moreOf(lines: string, chat: ChatId, turn: TurnId): More {
  const more: More = { about: null, beside: undefined, finish: "whole", made: null };
  for (const line of lines.split("\n")) {
    const event = eventOf(line);
    if (event === null || !("turn" in event) || event.turn !== turn || event.chat !== chat) continue;
    if (event.type === "ai_typing_ended") [more.about, more.beside, more.finish] = [event.about, event.beside, event.finish];
    if (event.type === "post_processing_completed") more.made = event;
  }
  return more;
}

function eventOf(line: string): ServerEvent | null {
  try {
    return readBody(ServerFrame, line).event;
  } catch {
    return null;
  }
}

/** Fields of a chat that has no title: title, icon and category. */
function fieldsOf(about: About): [FieldName, string][] {
  const { title, icons, category } = about;
  if (title === undefined || title.trim() === "") return [];
  const fields: [FieldName, string][] = [[FieldName.parse(TITLE), title]];
  if (icons[0] !== undefined) fields.push([ICON, icons[0]]);
  if (category !== undefined) fields.push([CATEGORY, category]);
  return fields;
}

/** As much of an answer as a message holds, and whether it is less than all of it. */
export function fitted(words: string): [body: string, isCut: boolean] {
  // No character takes more than six bytes: most answers need no look.
  if (words.length * 6 <= LARGEST) return [words, false];
  let [size, at] = [0, 0];
  for (const character of words) {
    const code = character.codePointAt(0) ?? 0;
    if (character === '"' || character === "\\") size += 2;
    else if (code < 0x20) size += 6;
    else size += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (size > LARGEST) return [words.slice(0, at), true];
    at += character.length;
  }
  return [words, false];
}

/** Fields of a chat, besides its title. */
export const ICON = FieldName.parse("icon");
export const CATEGORY = FieldName.parse("category");
export const FOLLOW_UPS = FieldName.parse("follow-ups");
export const SUMMARY = FieldName.parse("summary");
export const TAGS = FieldName.parse("tags");
/** What the words of a message may take in JSON, beside everything else in it. */
const LARGEST = MAX_MESSAGE - 4096;
/** How often words of one turn may be missing. */
const GAPS = 8;
