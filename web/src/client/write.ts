// Seals what is written: items, the head that lists them, floors and manifest.
//
//   Change ─▶ items under the chat's newest key ─▶ list ─▶ live, chain ─▶ head ─▶ [floor ─▶ manifest]
//
// Nothing here is sent or kept: each function gives the request and what this device has once it was stored. Easy to get wrong:
// the newest key of a chat may be of an older generation; then the write brings a new one.

import { Digest, Entry, Floor, Head, Key, Manifest, Place, Refused, Ring, RingOf, Sealed, Shelf, Text, chain, live, sealRecord } from "../format/index";
import type { Account, Bytes, ChatId, DeviceId, ItemId, Mark, Pending } from "../format/index";
import { itemLimit } from "../protocol/index";
import type { DeleteChat, EncryptedChatMetadata, FloorPut, HeadPut, KeyEntry, ManifestPut, Put, UpdateManifest } from "../protocol/index";
import { MAX_DRAFT, MAX_FLOOR, MAX_PUTS, MAX_RECORD } from "../protocol/limits";
import { ClientError } from "./error";
import type { Change } from "./plan";
import { itemOf, revOf, type Room, type Slot } from "./room";
import type { Book, Keys } from "./state";

/** Who writes, and against what. */
export interface Scribe {
  readonly account: Account;
  readonly book: Book;
  readonly device: DeviceId;
  readonly now: number;
}

/** A write, and what this device has once it was stored. */
export interface Built {
  write: EncryptedChatMetadata;
  after: Room;
  /** The account, if floor and manifest are written as well. */
  book: Book | null;
}

/** A write to a chat; without a room, it creates the chat. */
export async function writeChat(scribe: Scribe, chat: ChatId, room: Room | undefined, change: Change): Promise<Built> {
  const { account, device, now } = scribe;
  const { keys, append } = await keysFor(scribe, chat, room);
  const ring = await Ring.fromKept(account.key, RingOf.chat(chat), keys);
  const held = ring.writer;
  if (held === null) throw new Refused("key-refused");
  const sealed = (place: Place, rev: number, json: Bytes) => sealRecord(held, account.id, place, rev, json);
  const items = new Map(room?.items);
  const puts: Put[] = [];
  for (const [item, json] of change.puts) {
    const expected = revOf(room?.items.get(item));
    const rev = next(Math.max(expected, change.seen.get(item) ?? 0));
    const envelope = within(await sealed(Place.item(chat, item), rev, json), itemLimit(item));
    const slot: Slot = { hash: await Digest.of(envelope), item: itemOf(item, { rev, json }) };
    items.set(item, slot);
    puts.push({ item, expected, envelope });
  }
  const gone = new Set(room?.gone);
  for (const item of change.removes) {
    items.delete(item);
    gone.add(item);
  }
  if (puts.length > MAX_PUTS || change.removes.length > MAX_PUTS) throw new ClientError("too-large");
  const before = room?.mark ?? NOTHING;
  const list = new Map([...items].map(([item, slot]): [ItemId, Digest] => [item, slot.hash]));
  const liveNow = await live(list);
  const chainNow = await chain(room?.head.chain ?? Digest.ZERO, before.envelope, liveNow);
  const head: Head = {
    key: held.n,
    kid: held.key.kid,
    count: list.size,
    live: liveNow,
    chain: chainNow,
    leaf: change.leaf,
    pending: pendingAfter(room, change),
    at: now,
    device,
  };
  const rev = next(before.rev);
  const sealedHead = within(await sealed(Place.head(chat), rev, Head.toJson(head)), MAX_RECORD);
  const mark: Mark = { rev, envelope: await Digest.of(sealedHead) };
  const listing = room === undefined ? await listHeads(scribe, [[chat, mark]]) : null;
  const floor = listing?.floors.at(-1);
  const write: EncryptedChatMetadata = {
    chat,
    expected: before.rev,
    ring: append,
    head: { envelope: sealedHead, live: liveNow, chain: chainNow },
    puts,
    removes: change.removes,
    floor,
    manifest: listing?.manifest,
  };
  const after: Room = {
    id: chat,
    keys,
    ring,
    head,
    mark,
    items,
    gone,
    titleV: room?.titleV ?? 0,
    draftV: room?.draftV ?? 0,
    draft: room?.draft ?? null,
    createdAt: room?.createdAt ?? now,
    updatedAt: now,
  };
  return { write, after, book: listing?.book ?? null };
}

/** The chat's keys for a write, and the new one if there has to be one. */
async function keysFor(scribe: Scribe, chat: ChatId, room: Room | undefined): Promise<{ keys: Keys; append: KeyEntry | undefined }> {
  const { key: ak, id } = scribe.account;
  // The ring may have been opened under an older account key.
  if (room !== undefined && room.ring.newest.born === ak.generation) return { keys: room.keys, append: undefined };
  const before = room?.keys ?? [];
  const key = await Key.random();
  const entry = await Entry.seal(ak, id, RingOf.chat(chat), before.length + 1, key, ak.generation);
  return { keys: [...before, { key, born: ak.generation }], append: { ...entry, subs: [...entry.subs] } };
}

/** Floors with these heads, and the manifest: for each chat the head it has now, or null if it is gone. */
export async function listHeads(
  scribe: Scribe,
  heads: readonly (readonly [ChatId, Mark | null])[],
): Promise<{ floors: FloorPut[]; manifest: ManifestPut; book: Book }> {
  const { account, device, now } = scribe;
  const marks = new Map(account.floors);
  for (const [chat, mark] of heads) {
    if (mark === null) marks.delete(chat);
    else marks.set(chat, mark);
  }
  const held = account.ring.writer;
  if (held === null) throw new Refused("key-refused");
  const shelves = new Map<ChatId, Shelf>();
  for (const chat of [...marks.keys(), ...heads.map(([chat]) => chat)]) shelves.set(chat, await Shelf.of(chat));
  const floors: FloorPut[] = [];
  const all = [...scribe.book.floors];
  for (const shelf of new Set(heads.map(([chat]) => shelves.get(chat)))) {
    const before = shelf === undefined ? undefined : all[shelf];
    if (shelf === undefined || before === undefined) throw new ClientError("damaged");
    const expected = Sealed.rev(before) ?? 0;
    const chats = new Map([...marks].filter(([chat]) => shelves.get(chat) === shelf));
    const json = Floor.toJson({ chats });
    const envelope = within(await sealRecord(held, account.id, Place.floor(shelf), next(expected), json), MAX_FLOOR);
    all[shelf] = envelope;
    floors.push({ shelf, expected, envelope });
  }
  floors.sort((one, two) => one.shelf - two.shelf);
  const manifest: Manifest = { ...account.manifest, at: now, device };
  const book: Book = { ...scribe.book, floors: all };
  const head = await sealManifest(book, account.mark, account.manifest.chain, manifest, (rev, json) =>
    sealRecord(held, account.id, Place.MANIFEST, rev, json),
  );
  return { floors, manifest: { head }, book: { ...book, manifest: head.envelope } };
}

export async function updateFloors(
  scribe: Scribe,
  heads: readonly (readonly [ChatId, Mark | null])[],
): Promise<{ update: UpdateManifest; book: Book }> {
  const { floors, manifest, book } = await listHeads(scribe, heads);
  return { update: { floors, manifest }, book };
}

/** Deletes a chat whose head has this revision. */
export async function deletionOf(scribe: Scribe, chat: ChatId, expected: number): Promise<{ request: DeleteChat; book: Book }> {
  const { floors, manifest, book } = await listHeads(scribe, [[chat, null]]);
  const floor = floors.at(-1);
  if (floor === undefined) throw new ClientError("damaged");
  return { request: { chat, expected, floor, manifest }, book };
}

/** The manifest over the floors of `book`, after the one with this mark and chain. */
export async function sealManifest(
  book: Pick<Book, "floors">,
  before: Mark,
  chainBefore: Digest,
  manifest: Manifest,
  seal: (rev: number, json: Bytes) => Promise<Sealed>,
): Promise<HeadPut> {
  const floors = await Promise.all(book.floors.map((floor) => Digest.of(floor)));
  if (floors.length !== 16) throw new ClientError("damaged");
  const liveNow = await Manifest.live(floors);
  const chainNow = await chain(chainBefore, before.envelope, liveNow);
  const json = Manifest.toJson({ ...manifest, floors, chain: chainNow });
  const envelope = within(await seal(next(before.rev), json), MAX_RECORD);
  return { envelope, live: liveNow, chain: chainNow };
}

/** Replies that the head waits for after this change. */
function pendingAfter(room: Room | undefined, change: Change): Pending[] {
  const still = (room?.head.pending ?? []).filter((pending) => !change.settles.includes(pending.reply));
  return [...still, ...change.awaits];
}

/** The revision after this one. */
export function next(rev: number): number {
  if (rev >= 0xffff_ffff) throw new ClientError("too-large");
  return rev + 1;
}

/** The envelope, if the server takes one of this size. */
export function within(sealed: Sealed, most: number): Sealed {
  if (sealed.length > most) throw new ClientError("too-large");
  return sealed;
}

/** The envelope of a draft: filled up with spaces to a multiple of 1 KiB, so that its length tells little. */
export async function sealDraft(room: Room, account: Account["id"], rev: number, body: string): Promise<Sealed> {
  const json = Text.toJson({ body });
  const full = new Uint8Array(Math.ceil(json.length / 1024) * 1024).fill(SPACE);
  full.set(json);
  return within(await sealRecord(room.ring.newest, account, Place.draft(room.id), rev, full), MAX_DRAFT);
}

const SPACE = 0x20;

/** What stands before the first head. */
export const NOTHING: Mark = { rev: 0, envelope: Digest.ZERO };
