// What the server asks this device for while it answers: settings and memories, summaries of similar chats, a search.
//
//   request_client_data ─▶ this turn, this socket, allowed by the question, the first of its kind, unanswered?   no ─▶ unasked
//                                                  │ pieces from what is on this device: three, 4 KiB a turn
//           switched on for this chat ◀────────────┴────────────▶ the person is shown them: `wish` ─▶ give, or nothing
//                     └──────────▶ noted, kept, then sent: client_data ◀─────────┘
//
// Nothing goes without the person's word, not even that there is nothing to give: whoever asks would learn what the chats say from how fast
// the answer comes. Easy to get wrong: the note of what was given. It is kept before anything is sent, and sealed into the reply; where another device stores
// the reply first, it is added to it.

import { type ChatId, FieldName, type MessageId, Refused, type Shared, type TurnId } from "../format/index";
import {
  Given,
  MAX_CLIENT_DATA,
  MAX_PIECES,
  MAX_SHORT,
  type RequestClientData,
  cutText,
  utf8Length,
} from "../protocol/index";
import { chat as chatView, chats, data, setField } from "./chats";
import { type Device, save, tell } from "./device";
import { ClientError } from "./error";
import { type Room, roomField, roomMessages } from "./room";
import type { Question } from "./state";
import { textsOf } from "./texts";
import { TITLE } from "./plan";
import type { Told } from "./turns";

/** Something that only devices can read, given for one turn. */
export interface GivenText {
  what: Given;
  /** Its name or title. */
  name: string;
  /** What it says. */
  text: string;
}

/** Something that the server asks for, and what this device would give. */
export interface Wish {
  what: Given;
  /** Settings and memories by name, or what the question is about. */
  names: string[];
  /** What is searched for. */
  query: string | null;
  /** What would be given: exactly this. Some of it may be left out. */
  pieces: GivenText[];
}

/** What is given in this chat without asking the person each time. Nothing at first. */
export function sharesOf(device: Device, chat: ChatId): Given[] {
  const names = textsOf(fieldOf(device, chat, SHARES));
  return Given.words.filter((given) => names.includes(given));
}

/** Switches on for this chat, on all devices, that something is given whenever the server asks for it; or off again. */
export async function share(device: Device, chat: ChatId, what: Given, isOn: boolean): Promise<void> {
  const shares = sharesOf(device, chat).filter((one) => one !== what);
  if (isOn) shares.push(what);
  await setField(device, chat, SHARES, JSON.stringify(shares));
}

/** Whether the server may keep the words of this chat between questions. It may, unless somebody switched that off. */
export function isCached(device: Device, chat: ChatId): boolean {
  return fieldOf(device, chat, CACHE) !== "off";
}

/** Switches that on or off, on all devices, for questions from now on. What the server has kept ends with the next question. */
export function setCached(device: Device, chat: ChatId, isOn: boolean): Promise<void> {
  return setField(device, chat, CACHE, isOn ? "on" : "off");
}

/** What the person switched off, for every question on every device: what `off` of a question may say. */
export function switchedOff(device: Device): string[] {
  return textsOf(data(device, "settings", "off"));
}

/** Whether the person switched this off, for all questions or for one. */
export function isOff(device: Device, name: string, off: readonly string[]): boolean {
  return off.includes(name) || switchedOff(device).includes(name);
}

/** What the server may ask for while it answers: nothing that is off, and what is not switched on for this chat only if somebody is there. */
export function mayAsk(device: Device, question: Question): Given[] {
  const shares = sharesOf(device, question.chat);
  return Given.words.filter((given) => {
    const hasAny = given !== "settings" || question.available.length > 0;
    const isAllowed = isPerson(question) || shares.includes(given);
    return hasAny && isAllowed && !isOff(device, SWITCH[given], question.off);
  });
}

/**
 * The server asks for something. Anything but what the question allowed, for this turn, on this socket, once: `unasked`, and nothing leaves.
 */
export async function takeWish(device: Device, asked: RequestClientData): Promise<Told | null> {
  const { chat, what } = asked;
  const question = device.state.asks.find((one) => one.turn === asked.turn);
  const turn = device.turns.find(asked.turn);
  if (question === undefined || turn === undefined) throw new Refused("unasked");
  const isShared = sharesOf(device, chat).includes(what);
  const may = (isShared || isPerson(question)) && !isOff(device, SWITCH[what], question.off);
  if (!may || !turn.mayBeAsked(chat, what, device.socketNumber)) throw new Refused("unasked");
  turn.asked.push(what);
  turn.open.push(what);
  const pieces = fitting(device, asked, question, turn.branch.map(([id]) => id));
  if (isShared) {
    await give(device, chat, turn.turn, what, pieces);
    return turn.tell({ told: "gave", pieces });
  }
  return turn.tell({ told: "wish", wish: { what, names: [...asked.names], query: asked.query ?? null, pieces } });
}

/**
 * Gives the server what it asked for: these pieces, or nothing. Once for each wish, and only while its turn has no answer, was not stopped,
 * and on the socket that it was asked on; else `unasked`. What is given is noted inside the reply.
 */
export async function give(device: Device, chat: ChatId, turn: TurnId, what: Given, pieces: readonly GivenText[]): Promise<void> {
  const one = device.turns.find(turn);
  const question = device.state.asks.find((ask) => ask.turn === turn);
  if (one === undefined || question === undefined || !device.isConnected) throw new Refused("unasked");
  if (!one.mayAnswer(chat, what, device.socketNumber)) throw new Refused("unasked");
  const left = leftOf(question);
  const bytes = pieces.reduce((sum, { text }) => sum + utf8Length(text), 0);
  const isKind = pieces.every((piece) => piece.what === what && utf8Length(piece.name) <= MAX_SHORT);
  if (!isKind || pieces.length > left.pieces || bytes > left.bytes) throw new ClientError("too-large");
  one.open = one.open.filter((open) => open !== what);
  if (pieces.length > 0) {
    // Kept before it is sent: whatever happens, the reply says so.
    question.gave = [...(question.gave ?? []), ...pieces.map(noteOfGiven)];
    await save(device);
  }
  await tell(device, { type: "client_data", chat, turn, what, pieces: pieces.map(({ name, text }) => ({ what, name, text })) });
}

/** What a message notes of something that is given. */
export function noteOfGiven({ what, text }: GivenText): Shared {
  return { what: FieldName.parse(what), bytes: utf8Length(text) };
}

/** What was given while this turn's answer was made. */
export function gaveFor(device: Device, turn: TurnId): Shared[] {
  return device.state.asks.find((ask) => ask.turn === turn)?.gave ?? [];
}

function isPerson(question: Question): boolean {
  return question.isPerson === true;
}

/** What of this device fits a wish, as much as the turn may still have. */
function fitting(device: Device, asked: RequestClientData, question: Question, branch: readonly MessageId[]): GivenText[] {
  const left = leftOf(question);
  const pieces: GivenText[] = [];
  for (const [name, text] of foundFor(device, asked, question, branch)) {
    const bytes = utf8Length(text);
    if (left.pieces === 0) break;
    if (bytes > left.bytes) continue;
    [left.pieces, left.bytes] = [left.pieces - 1, left.bytes - bytes];
    pieces.push({ what: asked.what, name, text });
  }
  return pieces;
}

function foundFor(device: Device, asked: RequestClientData, question: Question, branch: readonly MessageId[]): [name: string, text: string][] {
  switch (asked.what) {
    case "settings": {
      const known = asked.names.filter((name) => question.available.includes(name));
      return known.flatMap((name): [string, string][] => {
        const text = memoryOf(device, name);
        return text === null ? [] : [[name, text]];
      });
    }
    case "summary":
      return similarTo(device, asked.chat, asked.names);
    case "search":
      return foundIn(device, asked.query ?? "", [...branch, question.message]);
  }
}

function memoryOf(device: Device, name: string): string | null {
  try {
    return data(device, MEMORY, name);
  } catch {
    // No name that anything could have.
    return null;
  }
}

/** The other chats that have most to do with these words, best first: title and summary. */
export function similarTo(device: Device, chat: ChatId | null, about: readonly string[]): [title: string, summary: string][] {
  const wanted = wordsOf(about.join(" "));
  const found: { score: number; at: number; piece: [string, string] }[] = [];
  for (const room of roomsHere(device)) {
    const summary = room.id === chat ? null : roomField(room, SUMMARY);
    if (summary === null) continue;
    const has = wordsOf(`${titleOf(room)} ${summary} ${roomField(room, TAGS) ?? ""}`);
    const score = [...wanted.keys()].filter((word) => has.has(word)).length;
    if (score > 0) found.push({ score, at: room.updatedAt, piece: [short(titleOf(room)), excerpt(summary, 0)] });
  }
  found.sort((one, two) => two.score - one.score || two.at - one.at);
  return found.slice(0, MAX_PIECES).map(({ piece }) => piece);
}

/** The messages of all chats on this device that say most about these words, best first. Not those that the server has for this turn. */
function foundIn(device: Device, query: string, known: readonly MessageId[]): [title: string, place: string][] {
  const not = new Set(known);
  const messages: { room: Room; body: string; at: number; has: Map<string, number> }[] = [];
  for (const room of roomsHere(device)) {
    for (const [id, , { role, body, createdAt }] of roomMessages(room)) {
      const isSaid = role === "user" || role === "assistant";
      if (isSaid && !not.has(id)) messages.push({ room, body, at: createdAt, has: wordsOf(body) });
    }
  }
  // A word that few messages have says more than one that many have.
  const weights = [...wordsOf(query).keys()].map((word): [string, number] => {
    const having = messages.filter(({ has }) => has.has(word)).length;
    return [word, Math.log((1 + messages.length) / (0.5 + having))];
  });
  const found: { score: number; at: number; piece: [string, string] }[] = [];
  for (const { room, body, at, has } of messages) {
    const hits = weights.filter(([word]) => has.has(word));
    if (hits.length === 0) continue;
    const first = Math.min(...hits.map(([word]) => has.get(word) ?? 0));
    const score = hits.reduce((sum, [, weight]) => sum + weight, 0);
    found.push({ score, at, piece: [short(titleOf(room)), excerpt(body, first)] });
  }
  found.sort((one, two) => two.score - one.score || two.at - one.at);
  return found.slice(0, MAX_PIECES).map(({ piece }) => piece);
}

/** Chats that the person has: not those that are to be deleted. */
function roomsHere(device: Device): Room[] {
  return chats(device).flatMap((id) => device.rooms.get(id) ?? []);
}

/** What a turn may still have. */
function leftOf(question: Question): { pieces: number; bytes: number } {
  const sizes = [...question.given.map(([, , text]) => utf8Length(text)), ...(question.gave ?? []).map(({ bytes }) => bytes)];
  return { pieces: Math.max(0, MAX_PIECES - sizes.length), bytes: sizes.reduce((left, size) => Math.max(0, left - size), MAX_CLIENT_DATA) };
}

function fieldOf(device: Device, chat: ChatId, name: string): string | null {
  try {
    return chatView(device, chat).fields.get(name) ?? null;
  } catch {
    // There is no such chat here: nothing is switched on for it.
    return null;
  }
}

function titleOf(room: Room): string {
  return roomField(room, FieldName.parse(TITLE)) ?? "";
}

/** A title, as far as one may be long. */
function short(title: string): string {
  return cutText(title.trim() === "" ? "(no title)" : title, MAX_SHORT);
}

/** As much of a text as one piece has, from a little before this place on. */
export function excerpt(text: string, at: number): string {
  let from = Math.max(0, at - EXCERPT / 4);
  // Not from inside a character.
  if (/[\udc00-\udfff]/.test(text.charAt(from))) from -= 1;
  return cutText(text.slice(from), EXCERPT).trim();
}

/** Words in lower case that are long enough to say something, without their commonest endings; each with where it stands first. */
export function wordsOf(text: string): Map<string, number> {
  const words = new Map<string, number>();
  for (const match of text.matchAll(/[\p{Alphabetic}\p{N}]+/gu)) {
    const lower = match[0].toLowerCase();
    const ending = ["ing", "ed", "s"].find((end) => lower.endsWith(end) && [...lower].length - end.length > 2);
    const stem = ending === undefined ? lower : lower.slice(0, -ending.length);
    if ([...stem].length > 2 && !words.has(stem)) words.set(stem, match.index);
  }
  return words;
}

/** The switch that is for something. */
export const SWITCH: Readonly<Record<Given, string>> = { settings: "settings", summary: "similar", search: "search" };
/** The fields of a chat that have what is switched on for it, and whether its words may be kept. */
export const SHARES = "shares";
export const CACHE = "cache";
/** Fields of a chat that were made of its answers. */
const SUMMARY = FieldName.parse("summary");
const TAGS = FieldName.parse("tags");
/** The kind of account data that a person had remembered. */
export const MEMORY = "memory";
/** Bytes of one piece of a chat. */
const EXCERPT = 1200;
