// What a device remembers: the account, the session, what it has seen, and what it still has to send.
//
//   State ─┬─ who: account, device, session, account key
//          ├─ Book: the account's keys, manifest and floors, as last verified
//          ├─ Piece: account data by kind and name
//          └─ Queue: what is not sent yet, and copies that lost
//
// Easy to get wrong: keeping rows of a ring. They are sealed under one account key; the keys inside outlive it, so keys are kept, and rows
// are made from them. The file is this browser's own (names in camelCase, bytes in base64url): no other program reads it.

import { type Bytes, Digest, type PublicKey, base64url, fromBase64url, fromUtf8, utf8 } from "../format/bytes";
import { Sealed } from "../format/envelope";
import {
  Account,
  AccountKey,
  BoxKey,
  Entry,
  type Mark,
  Place,
  Ring,
  RingOf,
  type SeenAccount,
  type SentAccount,
  type Shared,
  Text,
  Trail,
  openRecord,
} from "../format/index";
import type { AccountId, ChatId, DeviceId, FieldName, MessageId, TurnId } from "../format/ids";
import { Key } from "../format/key";
import { Queue, type QueueJson } from "./queue";
import type { SessionKeys } from "./transport";

/** A key of a ring, with the generation that made it. */
export interface KeptKey {
  key: Key;
  born: number;
}

/** The keys of a ring, in order: the first has number 1. */
export type Keys = readonly KeptKey[];

export function keysOf(ring: Ring): Keys {
  return ring.held.map(({ key, born }) => ({ key, born }));
}

/** The ring's rows under this account key, as a server with the same keys has them. */
export function keysRows(keys: Keys, ak: AccountKey, account: AccountId, of: RingOf): Promise<Entry[]> {
  return Promise.all(keys.map(({ key, born }, at) => Entry.seal(ak, account, of, at + 1, key, born)));
}

export async function keysRing(keys: Keys, ak: AccountKey, account: AccountId, of: RingOf): Promise<Ring> {
  return Ring.open(ak, account, of, await keysRows(keys, ak, account, of));
}

/** The public halves of a mailbox's keys. */
export function keysPublics(keys: Keys): Promise<PublicKey[]> {
  return Promise.all(keys.map(async ({ key }) => (await BoxKey.fromKey(key)).publicKey));
}

/** A key, and the generation that made it, as files have them. */
export type KeptKeyJson = [string, number];

export function keysToJson(keys: Keys): KeptKeyJson[] {
  return keys.map(({ key, born }) => [keyText(key), born]);
}

export function keysFromJson(json: readonly KeptKeyJson[]): Promise<Keys> {
  return Promise.all(json.map(async ([key, born]) => ({ key: await keyOf(key), born })));
}

function keyText(key: Key): string {
  return base64url(key.dangerouslyExposeBytes());
}

function keyOf(text: string): Promise<Key> {
  return Key.fromBytes(bytesOf(text));
}

/** Bytes of a file that this device wrote. */
export function bytesOf(text: string): Bytes {
  const bytes = fromBase64url(text);
  if (bytes === null) throw new TypeError("not base64url");
  return bytes;
}

/** The account, as it was last verified. */
export interface Book {
  keys: Keys;
  boxes: Keys;
  boxPub: PublicKey;
  manifest: Sealed;
  floors: Sealed[];
}

/** The manifest's revision and envelope. */
export async function bookMark(book: Book): Promise<Mark> {
  return { rev: Sealed.rev(book.manifest) ?? 0, envelope: await Digest.of(book.manifest) };
}

/** Opens it again, with every check that needs no server. */
export async function openBook(book: Book, id: AccountId, ak: AccountKey): Promise<Account> {
  const sent: SentAccount = {
    ring: await keysRows(book.keys, ak, id, RingOf.ACCOUNT),
    boxRing: await keysRows(book.boxes, ak, id, RingOf.BOX),
    boxPub: book.boxPub,
    manifest: book.manifest,
    trail: Trail.NONE,
    floors: book.floors,
  };
  return Account.open(id, ak, sent, { generation: ak.generation, manifest: await bookMark(book) });
}

/** A piece of account data. */
export interface Piece {
  kind: FieldName;
  name: FieldName;
  rev: number;
  /** What it says; null when it was removed. */
  body: string | null;
}

/** Opens a piece of account data: not under the account's keys, or not a text: `record-refused`. */
export async function openData(account: Account, kind: FieldName, name: FieldName, sealed: Sealed): Promise<[number, string]> {
  const opened = await openRecord(account.ring, account.id, Place.data(kind, name), sealed);
  return [opened.rev, Text.fromJson(opened.json).body];
}

/** A session, as it is kept. */
export interface Session extends SessionKeys {
  expiresAt: number;
}

/** A rotation that was begun: what the account has if it was committed. */
export interface Rotating {
  generation: number;
  ak: Key;
}

/** An answer that this device asked for: what goes with the question, besides its words. */
export interface Question {
  chat: ChatId;
  turn: TurnId;
  message: MessageId;
  reply: MessageId;
  /** Whether the server may keep the words for the next question. */
  isKept: boolean;
  focus: string | null;
  off: string[];
  available: string[];
  /** What the person gives: `settings`, `summary` or `search`; a name; the words. */
  given: [what: string, name: string, text: string][];
  /** Whether it was sent; the answer to that may have been lost. */
  isSent: boolean;
  /** The digest with the reply, once the server has the question. */
  begun: Digest | null;
  /** Whether anything was heard of its answer: words, or that there is none. Then only the person asks again. */
  isHeard: boolean;
  /** How often the server had lost it, so that it was asked once more. */
  again: number;
  /** Whether the person was there to be asked for more. Files of before have neither this nor the next. */
  isPerson?: boolean;
  /** What was given while the answer was made. */
  gave?: Shared[];
}

/** Everything but the chats. */
export interface State {
  account: AccountId;
  device: DeviceId;
  session: Session | null;
  generation: number;
  ak: Key;
  /** The newest revision of the wrap of each credential that this device logged in with. */
  wraps: Map<string, number>;
  accountRev: number;
  book: Book | null;
  /** What a pairing said about the manifest, before the first sync. */
  pinned: Mark | null;
  seq: number;
  /** Whether the server has chats older than those that were synced. */
  older: boolean;
  data: Piece[];
  queue: Queue;
  rotating: Rotating | null;
  /** The chat that was opened last, until the server has been told. */
  opened: ChatId | null;
  /** Chats that were opened here, the newest last. */
  recent: ChatId[];
  /** Answers that this device asked for and that are not stored yet. */
  asks: Question[];
  /** Answers that the server may forget once they are stored. */
  acks: [ChatId, TurnId][];
  /** Chats that this device saw go. */
  gone: Set<ChatId>;
  /** What was typed for a chat that does not exist yet. Files of before have none. */
  firstDraft?: string;
  /** Messages that somebody began to edit (edits.ts). */
  edits?: Edit[];
}

/** What was typed in the place of a message and not sent. */
export type Edit = [chat: ChatId, message: MessageId, body: string];

export function newState(account: AccountId, device: DeviceId, ak: AccountKey): State {
  return {
    account,
    device,
    session: null,
    generation: ak.generation,
    ak: ak.key,
    wraps: new Map(),
    accountRev: 0,
    book: null,
    pinned: null,
    seq: 0,
    older: false,
    data: [],
    queue: new Queue(),
    rotating: null,
    opened: null,
    recent: [],
    asks: [],
    acks: [],
    gone: new Set(),
  };
}

export function accountKeyOf(state: State): AccountKey {
  return new AccountKey(state.ak, state.generation);
}

export function setAccountKey(state: State, ak: AccountKey): void {
  [state.generation, state.ak] = [ak.generation, ak.key];
}

/** What to compare the next account state with. */
export async function seenAccount(state: State): Promise<SeenAccount> {
  const manifest = state.book === null ? state.pinned : await bookMark(state.book);
  return { generation: state.generation, manifest };
}

/** Remembers that a chat was opened. */
export function noteOpened(state: State, chat: ChatId): void {
  state.opened = chat;
  state.recent = [...state.recent.filter((one) => one !== chat), chat].slice(-MAX_RECENT);
}

/** Remembers that chats went. */
export function noteGone(state: State, chats: Iterable<ChatId>): void {
  const gone = [...chats];
  for (const chat of gone) state.gone.add(chat);
  forgetEdits(state, gone);
  if (state.gone.size <= MAX_GONE) return;
  state.gone = new Set([...state.gone].sort().slice(state.gone.size - MAX_GONE));
}

/** Forgets edits in these chats, or only that of one message. They are gone with what is saved next. */
export function forgetEdits(state: State, chats: readonly ChatId[], only: MessageId | null = null): void {
  if (state.edits === undefined) return;
  keepEdits(state, state.edits.filter(([chat, message]) => !chats.includes(chat) || (only !== null && message !== only)));
}

export function keepEdits(state: State, edits: Edit[]): void {
  if (edits.length === 0) delete state.edits;
  else state.edits = edits;
}

export function pieceOf(state: State, kind: FieldName, name: FieldName): Piece | undefined {
  return state.data.find((piece) => piece.kind === kind && piece.name === name);
}

export function putPiece(state: State, piece: Piece): void {
  state.data = state.data.filter((there) => there.kind !== piece.kind || there.name !== piece.name);
  state.data.push(piece);
}

/** The state as its file has it. */
interface StateJson {
  v: 1;
  account: AccountId;
  device: DeviceId;
  session: { id: string | null; secret: string; expiresAt: number } | null;
  generation: number;
  ak: string;
  wraps: [string, number][];
  accountRev: number;
  book: { keys: KeptKeyJson[]; boxes: KeptKeyJson[]; boxPub: PublicKey; manifest: string; floors: string[] } | null;
  pinned: Mark | null;
  seq: number;
  older: boolean;
  data: Piece[];
  queue: QueueJson;
  rotating: { generation: number; ak: string } | null;
  opened: ChatId | null;
  /** Missing in files of before. */
  recent?: ChatId[];
  asks: Question[];
  acks: [ChatId, TurnId][];
  gone: ChatId[];
  /** Missing if nothing was typed. */
  firstDraft?: string;
  edits?: Edit[];
}

export function stateToJson(state: State): Bytes {
  const { session, book, rotating, ak, wraps, queue, gone, ...plain } = state;
  const json: StateJson = {
    ...plain,
    v: 1,
    session: session && {
      id: session.id && base64url(session.id),
      secret: base64url(session.secret),
      expiresAt: session.expiresAt,
    },
    ak: keyText(ak),
    wraps: [...wraps],
    book: book && {
      keys: keysToJson(book.keys),
      boxes: keysToJson(book.boxes),
      boxPub: book.boxPub,
      manifest: base64url(book.manifest),
      floors: book.floors.map((floor) => base64url(floor)),
    },
    queue: queue.toJSON(),
    rotating: rotating && { generation: rotating.generation, ak: keyText(rotating.ak) },
    gone: [...gone],
  };
  return utf8(JSON.stringify(json));
}

/** Null for a file of another version. It was sealed by this device, so its shape is known. */
export async function stateFromJson(bytes: Bytes): Promise<State | null> {
  const json = JSON.parse(fromUtf8(bytes) ?? "null") as StateJson | null;
  if (json === null || json.v !== 1) return null;
  const { v: _, session, book, rotating, ak, wraps, queue, gone, ...plain } = json;
  return {
    ...plain,
    session: session && {
      id: session.id === null ? null : bytesOf(session.id),
      secret: bytesOf(session.secret),
      expiresAt: session.expiresAt,
    },
    ak: await keyOf(ak),
    wraps: new Map(wraps),
    book: book && {
      keys: await keysFromJson(book.keys),
      boxes: await keysFromJson(book.boxes),
      boxPub: book.boxPub,
      manifest: bytesOf(book.manifest),
      floors: book.floors.map(bytesOf),
    },
    recent: plain.recent ?? [],
    queue: Queue.fromJson(queue),
    rotating: rotating && { generation: rotating.generation, ak: await keyOf(rotating.ak) },
    gone: new Set(gone),
  };
}

/** Chats that went, remembered. */
const MAX_GONE = 10_000;
/** Chats whose opening is remembered. */
const MAX_RECENT = 500;
