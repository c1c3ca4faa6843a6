// Which words are in which message of which chat: what search looks at in place of the messages.
//
//   Room ─▶ ChatWords: every word of the chat once, and for each message, attachment and title which of them ─▶ file words-chat_…, sealed
//
// Of a message it has which words are in it, not how often and not in which order. An entry counts for exactly one version of one item: it
// carries the hash that the chat's verified list has. So a file that is older than its chat, or damaged, or another chat's, is noticed, and
// what is missing is made again; only words that are not on this device cannot be. The files go with their chat, with the account, and under
// pressure before titles, drafts and keys (thin.ts). Temporary chats are not here.
//
// Easy to get wrong: the time that it takes. It is made in small steps between other things (keeper.ts), and it is never waited for: what is
// not here yet, search reads itself.

import { type Bytes, base64url, fromBase64url, fromUtf8, utf8 } from "../format/bytes";
import { ChatId, type Digest, ItemId } from "../format/index";
import type { Device } from "./device";
import { isOwn } from "./error";
import { type Room, type Slot, isThin } from "./room";
import { type Wanted, isWanted, piecesOf } from "./words";

/** Which of the wanted words an item has: a bit for each. */
export type Hits = Map<ItemId, number>;

interface Entry {
  readonly hash: Digest;
  /** Words of the chat by their numbers, ascending. */
  readonly at: readonly number[];
}

/** The words of one chat. */
export class ChatWords {
  constructor(
    /** What it was made from; other items are another state of the chat. Null: it was read from its file. */
    readonly items: ReadonlyMap<ItemId, Slot> | null,
    /** Every word of the chat, sorted. */
    private readonly words: readonly string[],
    private readonly entries: ReadonlyMap<ItemId, Entry>,
    /** How many messages it knows nothing of, since their words are not here. */
    readonly unknown: number,
  ) {}

  /** From the words of each item. */
  static of(items: ReadonlyMap<ItemId, Slot>, all: ReadonlyMap<ItemId, Iterable<string>>, unknown: number): ChatWords {
    const words = [...new Set([...all.values()].flatMap((some) => [...some]))].sort();
    const numbers = new Map(words.map((word, number) => [word, number]));
    const entries = new Map<ItemId, Entry>();
    for (const [id, some] of all) {
      const slot = items.get(id);
      const at = [...some].map((word) => numbers.get(word) ?? 0).sort((one, two) => one - two);
      if (slot !== undefined) entries.set(id, { hash: slot.hash, at });
    }
    return new ChatWords(items, words, entries, unknown);
  }

  /** What has some of these words; nothing, unless all of them are somewhere in the chat. */
  hits(wanted: readonly Wanted[]): Hits {
    const numbers = wanted.map((one) => this.#numbers(one));
    return numbers.every((some) => some.length > 0) ? this.#having(numbers) : new Map();
  }

  /** The same, also where only some of the words are. */
  someHits(wanted: readonly Wanted[]): Hits {
    return this.#having(wanted.map((one) => this.#numbers(one)));
  }

  #having(wanted: readonly (readonly number[])[]): Hits {
    const masks = new Map<number, number>();
    for (const [bit, numbers] of wanted.entries()) for (const number of numbers) masks.set(number, (masks.get(number) ?? 0) | (1 << bit));
    const hits: Hits = new Map();
    if (masks.size === 0) return hits;
    for (const [id, { at }] of this.entries) {
      let mask = 0;
      for (const number of at) mask |= masks.get(number) ?? 0;
      if (mask !== 0) hits.set(id, mask);
    }
    return hits;
  }

  /** The words of this version of an item; null if it is not known. */
  ofItem(id: ItemId, hash: Digest): string[] | null {
    const entry = this.entries.get(id);
    return entry === undefined || entry.hash !== hash ? null : entry.at.map((number) => this.words[number] ?? "");
  }

  /** The same words for these items; null if it does not know all of them, or knows others. */
  for(items: ReadonlyMap<ItemId, Slot>): ChatWords | null {
    let [known, unknown] = [0, 0];
    for (const [id, slot] of items) {
      if (this.entries.get(id)?.hash === slot.hash) known += 1;
      else if (searchedText(id, slot) !== null) return null;
      else if (isUnknown(id, slot)) unknown += 1;
    }
    return known === this.entries.size ? new ChatWords(items, this.words, this.entries, unknown) : null;
  }

  #numbers(wanted: Wanted): number[] {
    const { words } = this;
    const numbers: number[] = [];
    // Sorted: words that begin alike are one behind the other.
    const from = wanted.is === "within" ? 0 : this.#from(wanted.word);
    for (let at = from; at < words.length; at++) {
      if (isWanted(wanted, words[at] ?? "")) numbers.push(at);
      else if (wanted.is !== "within") break;
    }
    return numbers;
  }

  /** The first word that is not before this one. */
  #from(word: string): number {
    let [low, high] = [0, this.words.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.words[middle] ?? "") < word) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  toJson(chat: ChatId): Bytes {
    const entries = [...this.entries].map(([id, { hash, at }]): EntryJson => [id, hash, base64url(packed(at))]);
    const file: WordsJson = { v: 1, chat, words: this.words.join(" "), entries };
    return utf8(JSON.stringify(file));
  }

  /** Null for a file of another version, or of another chat. */
  static fromJson(chat: ChatId, json: Bytes): ChatWords | null {
    try {
      const file = JSON.parse(fromUtf8(json) ?? "null") as WordsJson | null;
      if (file?.v !== 1 || file.chat !== chat) return null;
      const entries = file.entries.map(([id, hash, at]): [ItemId, Entry] => [id, { hash, at: unpacked(fromBase64url(at) ?? new Uint8Array(0)) }]);
      return new ChatWords(null, file.words === "" ? [] : file.words.split(" "), new Map(entries), 0);
    } catch {
      return null;
    }
  }
}

type EntryJson = [id: ItemId, hash: Digest, at: string];

/** The words of a chat, as their file has them. Words have no spaces inside. */
interface WordsJson {
  v: 1;
  chat: ChatId;
  words: string;
  entries: EntryJson[];
}

/** Ascending numbers as their distances, seven bits to a byte: most take one. */
function packed(numbers: readonly number[]): Bytes {
  const bytes: number[] = [];
  let before = 0;
  for (const number of numbers) {
    let distance = number - before;
    for (; distance > 0x7f; distance >>>= 7) bytes.push((distance & 0x7f) | 0x80);
    bytes.push(distance);
    before = number;
  }
  return Uint8Array.from(bytes);
}

function unpacked(bytes: Bytes): number[] {
  const numbers: number[] = [];
  let [before, distance, shift] = [0, 0, 0];
  for (const byte of bytes) {
    distance |= (byte & 0x7f) << shift;
    shift += 7;
    if (byte > 0x7f) continue;
    before += distance;
    numbers.push(before);
    [distance, shift] = [0, 0];
  }
  return numbers;
}

/** A chat that is being taken in. */
interface Begun {
  readonly items: Room["items"];
  /** Items that are done. */
  readonly made: Map<ItemId, Set<string>>;
  /** The one that is not: its words so far, and the pieces that are left. */
  open: { id: ItemId; words: Set<string>; pieces: Generator<string[], void> } | null;
}

/** The words of every chat of a device. */
export class WordIndex {
  readonly #chats = new Map<ChatId, ChatWords>();
  /** Chats whose file was looked for. */
  readonly #read = new Set<ChatId>();
  /** Chats whose file does not have what is here. */
  readonly #unwritten = new Set<ChatId>();
  /** A chat that takes more than one step. */
  #begun: Begun | null = null;
  /** Chats that are not in it, as far as anybody looked. */
  #order: ChatId[] = [];
  #isTidy = false;
  #isClosed = false;
  /** The files had no room: they are not written before then. */
  #pausedUntil = 0;

  /** The words of a chat as it is now; null if they are not all here yet. */
  of(room: Room): ChatWords | null {
    const words = this.#chats.get(room.id);
    return words?.items === room.items ? words : null;
  }

  /** The same for a chat whose words went: what is known of it, if its file was read. */
  ofThin(room: Room): ChatWords | null {
    const now = this.of(room);
    return now ?? (this.#read.has(room.id) && this.#chats.has(room.id) ? this.#take(room, () => false) : null);
  }

  /** How many chats are in it. */
  progress(device: Device): { done: number; all: number } {
    let done = 0;
    for (const room of device.rooms.values()) if (this.of(room) !== null) done += 1;
    return { done, all: device.rooms.size };
  }

  /** Whether there is something to do. */
  isDue(device: Device): boolean {
    if (this.#isClosed) return false;
    if (!this.#isTidy || (this.#unwritten.size > 0 && this.#mayWrite(device))) return true;
    for (const room of device.rooms.values()) if (this.of(room) === null) return true;
    return false;
  }

  /** Does some of it, for about so many milliseconds. */
  async step(device: Device, ms: number): Promise<void> {
    if (!this.#isTidy) await this.#tidy(device);
    for (const chat of [...this.#read]) if (!device.rooms.has(chat)) this.#forget(chat);
    const some = this.#next(device);
    await Promise.all(some.map((room) => this.#readFile(device, room.id)));
    const end = performance.now() + ms;
    const isLate = () => performance.now() > end;
    for (const room of some) {
      if (this.#isClosed) return;
      // It may have changed while files were read.
      if (device.rooms.get(room.id) === room && this.of(room) === null) this.#take(room, isLate);
      if (isLate()) break;
    }
    const isDone = this.#order.length === 0 && some.every((room) => this.of(room) !== null);
    if ((isDone || this.#unwritten.size >= AT_ONCE) && this.#mayWrite(device)) await this.keep(device);
  }

  /** The next chats that are not in it. What search cannot read itself comes first. */
  #next(device: Device): Room[] {
    const isWaiting = (room: Room | undefined) => room !== undefined && this.of(room) === null;
    this.#order = this.#order.filter((chat) => isWaiting(device.rooms.get(chat)));
    if (this.#order.length === 0) {
      const all = [...device.rooms.values()].filter(isWaiting).map((room) => ({ id: room.id, rank: isThin(room) ? 0 : 1 }));
      this.#order = all.sort((one, two) => one.rank - two.rank).map(({ id }) => id);
    }
    return this.#order.splice(0, AT_ONCE).flatMap((chat) => device.rooms.get(chat) ?? []);
  }

  /** Takes a chat in whose words are about to go, and keeps what is known of it if there is room. */
  async takeNow(device: Device, room: Room): Promise<void> {
    await this.#readFile(device, room.id);
    if (this.of(room) === null) this.#take(room, () => false);
    await this.keep(device, [room.id]);
  }

  /** Writes what is not written. Without room for it, it stays in memory, and nothing else is disturbed. */
  async keep(device: Device, chats: Iterable<ChatId> = this.#unwritten): Promise<void> {
    if (this.#isClosed || device.now() < this.#pausedUntil) return;
    const some = [...chats].filter((chat) => this.#unwritten.has(chat)).slice(0, MOST_WRITTEN);
    const files = some.flatMap((chat) => {
      const words = this.#chats.get(chat);
      return words === undefined ? [] : [[wordsFile(chat), words.toJson(chat)] as const];
    });
    if (files.length === 0) return;
    try {
      await device.cabinet.writeAll(files);
      for (const chat of some) this.#unwritten.delete(chat);
    } catch (error) {
      if (!isOwn(error, "quota") && !isOwn(error, "files")) throw error;
      this.#pausedUntil = device.now() + PAUSE;
    }
  }

  /** While an answer comes, nothing is written but what has to be. */
  #mayWrite(device: Device): boolean {
    return device.state.asks.length === 0 && device.now() >= this.#pausedUntil;
  }

  /** Removes the files, to make room. In memory everything stays. How many went. */
  async dropFiles(device: Device): Promise<number> {
    const names = await device.cabinet.names(WORDS);
    for (const name of names) await device.cabinet.remove(name);
    for (const chat of this.#chats.keys()) this.#unwritten.add(chat);
    this.#pausedUntil = device.now() + PAUSE;
    return names.length;
  }

  /** Whoever was here is locked out: nothing is written any more. */
  close(): void {
    this.#isClosed = true;
    this.#begun = null;
    for (const all of [this.#chats, this.#read, this.#unwritten]) all.clear();
  }

  /** Files of chats that went while nobody was here to remove them. */
  async #tidy(device: Device): Promise<void> {
    for (const name of await device.cabinet.names(WORDS)) {
      const id = name.slice(WORDS.length);
      if (!ChatId.is(id) || !device.rooms.has(id)) await device.cabinet.remove(name);
    }
    this.#isTidy = true;
  }

  #forget(chat: ChatId): void {
    this.#chats.delete(chat);
    this.#read.delete(chat);
    this.#unwritten.delete(chat);
  }

  async #readFile(device: Device, chat: ChatId): Promise<void> {
    if (this.#read.has(chat)) return;
    const bytes = await device.cabinet.read(wordsFile(chat)).catch(() => null);
    if (this.#isClosed || this.#read.has(chat)) return;
    this.#read.add(chat);
    const words = bytes === null ? null : ChatWords.fromJson(chat, bytes);
    if (words !== null) this.#chats.set(chat, words);
    else this.#unwritten.add(chat);
  }

  /** Makes what is missing of a chat. Null if it became too late: it goes on from there. */
  #take(room: Room, isLate: () => boolean): ChatWords | null {
    const { items } = room;
    const known = this.#chats.get(room.id);
    const same = known?.for(items);
    if (same !== undefined && same !== null) {
      this.#chats.set(room.id, same);
      return same;
    }
    if (this.#begun?.items !== items) this.#begun = { items, made: new Map(), open: null };
    const begun = this.#begun;
    const all = new Map<ItemId, Iterable<string>>();
    let [unknown, pieces] = [0, 0];
    for (const [id, slot] of items) {
      const before = known?.ofItem(id, slot.hash) ?? begun.made.get(id);
      const text = before === undefined ? searchedText(id, slot) : null;
      if (before !== undefined) all.set(id, before);
      else if (text !== null) {
        const open = begun.open?.id === id ? begun.open : { id, words: new Set<string>(), pieces: piecesOf(text) };
        begun.open = open;
        for (let isEnd = false; !isEnd; pieces++) {
          // One at least, or it would never end.
          if (pieces > 0 && isLate()) return null;
          const next = open.pieces.next();
          isEnd = next.done === true;
          if (next.done !== true) for (const word of next.value) open.words.add(word);
        }
        begun.made.set(id, open.words);
        all.set(id, open.words);
      } else if (isUnknown(id, slot)) unknown += 1;
    }
    const words = ChatWords.of(items, all, unknown);
    this.#begun = null;
    this.#chats.set(room.id, words);
    this.#unwritten.add(room.id);
    return words;
  }
}

/** What is searched of an item: messages, attachments that are here, and what is said of the chat. */
export function searchedText(id: ItemId, { item }: Slot): string | null {
  if (item === null) return null;
  if (item.kind === "message") return item.message.body;
  const field = ItemId.fieldOf(id);
  return field === null || (SEARCHED as readonly string[]).includes(field) ? item.text.body : null;
}

/** A message whose words are not on this device. */
function isUnknown(id: ItemId, { item }: Slot): boolean {
  return item === null && ItemId.isMessage(id);
}

/** Where the words of a chat are kept. */
export function wordsFile(chat: ChatId): string {
  return `${WORDS}${chat}`;
}

/** The fields of a chat that are searched, the most telling first. */
export const SEARCHED = ["title", "summary", "tags"] as const;
const WORDS = "words-";
/** Chats whose files are read, and written, at the same time. */
const AT_ONCE = 16;
const MOST_WRITTEN = 64;
/** After there was no room, the files are tried again after so many milliseconds. */
const PAUSE = 10 * 60_000;
