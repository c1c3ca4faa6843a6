// Looks for words in what is on this device. Nothing leaves it.
//
//   query ─▶ words, each of which has to be somewhere in a chat
//     every chat ─▶ its words (word_index.ts), or, while they are not there yet, its texts: the same is found ─▶ the best ones are opened
//
// Chats are in order of how much of the query their title has, then of how many messages fit, then of when they were written to. Only those
// that are shown are opened, for the words around what was found. A chat whose words went to make room is found by the index; one that even
// the index does not know is counted, so that the page can say so. Easy to get wrong: what waits to be sent. It is in no index, so a chat
// with something in the queue is read.

import { FieldName, ItemId, type MessageId } from "../format/index";
import type { ChatId } from "../format/index";
import { chat as chatView, chats } from "./chats";
import type * as core from "./core";
import type { Device } from "./device";
import type { Pending } from "./queue";
import { type Room, isThin } from "./room";
import { textsOf } from "./texts";
import { type Notes, chatLine, opsByChat } from "./views";
import { type Hits, SEARCHED, searchedText } from "./word_index";
import { RUN, type Wanted, folded, isWanted, placesOf, wantedOf, wordsOf } from "./words";

/** A text of a chat, and what it belongs to. */
type Text = readonly [id: ItemId, text: string];

/** A chat that has every word. */
interface Match {
  chat: ChatId;
  hits: Hits;
  inTitle: number;
  count: number;
  at: number;
}

/** What is searched for: words, or signs that are in no word. */
interface Query {
  words: Wanted[];
  /** Every word, or every sign together: the text has all of these somewhere if it has the words. */
  needles: string[];
}

/** Looks through titles, summaries, tags and messages on this device. */
export function search(device: Device, notes: Notes, wanted: string): core.SearchResult {
  const query = queryOf(wanted);
  const matches: Match[] = [];
  let unsearched = 0;
  const waiting = opsByChat(device);
  for (const id of query === null ? [] : chats(device)) {
    if (notes.going.has(id) || query === null) continue;
    const ops = waiting.get(id) ?? [];
    const { hits, isWhole } = hitsIn(device, id, ops, query);
    const all = [...hits.values()].reduce((mask, one) => mask | one, 0);
    if (all === (1 << query.needles.length) - 1) matches.push(matchOf(device, id, hits));
    else if (!isWhole) unsearched += 1;
  }
  matches.sort((one, two) => two.inTitle - one.inTitle || two.count - one.count || two.at - one.at || (one.chat < two.chat ? -1 : 1));
  const shown = query === null ? [] : matches.slice(0, MOST_SHOWN).map((match) => foundIn(device, notes, match, waiting.get(match.chat) ?? [], query));
  return { hits: shown, all: matches.length, unsearched, index: device.words.progress(device) };
}

function queryOf(wanted: string): Query | null {
  const words = wantedOf(wanted);
  if (words.length > 0) return { words, needles: words.map(({ word }) => word) };
  const signs = folded(wanted.trim());
  return signs === "" ? null : { words, needles: [signs] };
}

/** What of a chat has some of the words, and whether all of it was looked at. */
function hitsIn(device: Device, id: ChatId, ops: readonly Pending[], query: Query): { hits: Hits; isWhole: boolean } {
  const room = device.rooms.get(id);
  if (room === undefined || ops.length > 0) return hitsInView(device, id, query);
  const words = query.words.length === 0 ? null : device.words.of(room);
  if (words !== null) return { hits: words.hits(query.words), isWhole: words.unknown === 0 };
  if (!isThin(room)) return { hits: hitsInTexts(textsOfRoom(room), query), isWhole: true };
  return hitsInThin(device, room, textsOfRoom(room), query);
}

/** Of a chat whose words went, as far as the index knows them. */
function hitsInThin(device: Device, room: Room, texts: Iterable<Text>, query: Query): { hits: Hits; isWhole: boolean } {
  const words = query.words.length === 0 ? null : device.words.ofThin(room);
  const hits = new Map([...(words?.someHits(query.words) ?? []), ...hitsInTexts(texts, query)]);
  return { hits, isWhole: words?.unknown === 0 };
}

/** Of a chat with something that waits: as it is shown. */
function hitsInView(device: Device, id: ChatId, query: Query): { hits: Hits; isWhole: boolean } {
  const room = device.rooms.get(id);
  const texts = textsOfView(device, id);
  if (room === undefined || !isThin(room)) return { hits: hitsInTexts(texts, query), isWhole: true };
  const { hits, isWhole } = hitsInThin(device, room, texts, query);
  for (const { act } of device.state.queue.ofChat(id)) if (act.do === "delete") hits.delete(act.id);
  return { hits, isWhole };
}

/** Which words are in which text. Most texts have none of them anywhere: only the others are cut into words. */
function hitsInTexts(texts: Iterable<Text>, query: Query): Hits {
  const hits: Hits = new Map();
  for (const [id, text] of texts) {
    const plain = folded(text);
    if (!query.needles.some((needle) => plain.includes(needle))) continue;
    const mask = query.words.length === 0 ? 1 : maskOf(wordsOf(text, query.needles), query.words);
    if (mask !== 0) hits.set(id, mask);
  }
  return hits;
}

function maskOf(words: Iterable<string>, wanted: readonly Wanted[]): number {
  let mask = 0;
  for (const word of words) for (const [bit, one] of wanted.entries()) if (isWanted(one, word)) mask |= 1 << bit;
  return mask;
}

function* textsOfRoom(room: Room): Iterable<Text> {
  for (const [id, slot] of room.items) {
    const text = searchedText(id, slot);
    if (text !== null) yield [id, text];
  }
}

/** With what waits laid over it. */
function* textsOfView(device: Device, id: ChatId): Iterable<Text> {
  const view = chatView(device, id);
  for (const name of FIELDS) {
    const body = view.fields.get(name);
    if (body !== undefined) yield [ItemId.field(name), body];
  }
  for (const { id: message, body } of view.messages.values()) yield [message, body];
  for (const [item, slot] of device.rooms.get(id)?.items ?? []) {
    const text = ItemId.isEmbed(item) ? searchedText(item, slot) : null;
    if (text !== null) yield [item, text];
  }
  for (const { act } of device.state.queue.ofChat(id)) if (act.do === "embed") yield [act.id, act.body];
}

function matchOf(device: Device, chat: ChatId, hits: Hits): Match {
  let count = 0;
  for (const [id, mask] of hits) if (ItemId.fieldOf(id) === null) count += bits(mask);
  return { chat, hits, inTitle: bits(hits.get(TITLE_ITEM) ?? 0), count, at: device.rooms.get(chat)?.updatedAt ?? Infinity };
}

/** The message of a chat that has most of the words, the newest of several; without one, its title or summary. */
function foundIn(device: Device, notes: Notes, { chat, hits }: Match, ops: readonly Pending[], query: Query): core.Found {
  const { title } = chatLine(device, notes, chat, ops);
  const texts = ops.length > 0 ? new Map(textsOfView(device, chat)) : null;
  const textOf = (id: ItemId): string | null => {
    const slot = device.rooms.get(chat)?.items.get(id);
    return texts?.get(id) ?? (slot === undefined ? null : searchedText(id, slot));
  };
  let best: { id: ItemId; score: number; at: number } | null = null;
  for (const [id, mask] of hits) {
    if (ItemId.fieldOf(id) !== null) continue;
    const [score, at] = [bits(mask), ItemId.isMessage(id) ? timeOf(device, chat, id) : 0];
    if (best === null || score > best.score || (score === best.score && at > best.at)) best = { id, score, at };
  }
  if (best !== null) {
    const text = textOf(best.id);
    const message = ItemId.isMessage(best.id) ? best.id : holderOf(device, chat, best.id);
    return { chat, title, message, ...(text === null ? MISSING : around(text, query)) };
  }
  const field = FIELDS.map((name) => ItemId.field(name)).find((id) => hits.has(id)) ?? TITLE_ITEM;
  const text = textOf(field) ?? "";
  return { chat, title, message: null, ...around(field === TAGS_ITEM ? textsOf(text).join(" · ") : text, query) };
}

function timeOf(device: Device, chat: ChatId, id: MessageId): number {
  const slot = device.rooms.get(chat)?.items.get(id);
  if (slot === undefined) return Infinity;
  return slot.item?.kind === "message" ? slot.item.message.createdAt : (slot.outline?.createdAt ?? 0);
}

/** The message that shows an attachment. */
function holderOf(device: Device, chat: ChatId, embed: ItemId): MessageId | null {
  for (const [id, { item }] of device.rooms.get(chat)?.items ?? []) {
    if (item?.kind === "message" && ItemId.isMessage(id) && (item.message.refs as readonly ItemId[]).includes(embed)) return id;
  }
  return null;
}

/** The words around the first place that fits, and where it is in them. */
function around(text: string, query: Query): Pick<core.Found, "excerpt" | "at" | "length"> {
  const { at, length } = placeIn(text, query);
  let from = Math.max(0, at - AROUND);
  // Not from inside of a character, and not to there.
  if (/[\udc00-\udfff]/.test(text.charAt(from))) from -= 1;
  const excerpt = text.slice(Math.max(0, from), at + length + AROUND).replace(/[\ud800-\udbff]$/, "");
  return { excerpt, at: at - from, length };
}

function placeIn(text: string, { words, needles }: Query): { at: number; length: number } {
  if (words.length === 0) {
    const at = text.indexOf(needles[0] ?? "");
    return at < 0 ? { at: 0, length: 0 } : { at, length: needles[0]?.length ?? 0 };
  }
  for (const { 0: run, index } of text.matchAll(RUN)) {
    const plain = folded(run);
    if (!needles.some((needle) => plain.includes(needle))) continue;
    for (const { word, at } of plain === "" ? [] : placesOf(plain, needles)) {
      const one = words.find((wanted) => isWanted(wanted, word));
      // Where folding keeps the length, places stay where they are; else the whole run is shown.
      const start = at + (one?.is === "within" ? word.indexOf(one.word) : 0);
      if (one !== undefined) return plain.length === run.length ? { at: index + start, length: one.word.length } : { at: index, length: run.length };
    }
  }
  return { at: 0, length: 0 };
}

function bits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

const FIELDS = SEARCHED.map((name) => FieldName.parse(name));
const TITLE_ITEM = ItemId.field(FieldName.parse("title"));
const TAGS_ITEM = ItemId.field(FieldName.parse("tags"));
const MISSING = { excerpt: "", at: 0, length: 0, isMissing: true } as const;
/** Chats that are opened and shown; the others are counted. */
const MOST_SHOWN = 60;
/** Characters before and after what was found. */
const AROUND = 60;
