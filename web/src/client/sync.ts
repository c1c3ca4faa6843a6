// Sync in phases: the account first, then chats; only what changed since, and all of it checked.
//
//   account state ─▶ rings, manifest, floors ─▶ chats that are gone go
//   phases        ─▶ each chat: ring, head, list, items ─▶ Room
//   left over     ─▶ chats that this device has and that changed outside the phases
//
// Easy to get wrong: an honest race. A chat that another device creates or deletes between two frames is in one of them and not in
// the other; so such a chat is refused only if a second look at the account says the same.

import { Account, AccountKey, Digest, Place, Refused, Ring, RingOf, Sealed, Trail, openRecord } from "../format/index";
import type { ChatId, EmbedId, RefusedName } from "../format/index";
import { MAX_BATCH } from "../protocol/limits";
import type { AccountState, ChatSent, Phase, PhasedSyncComplete, Versions } from "../protocol/index";
import { resumeTurns } from "./answers";
import { listed } from "./chats";
import { connect, request, save, saveRoom, saveRooms, tell, type Device } from "./device";
import { ClientError, isConflict, isRefused } from "./error";
import { isThin, itemOf, join, receive, textOf, versionsOf, type Delta, type Received } from "./room";
import { keysOf, noteGone, noteOpened, openData, pieceOf, putPiece, seenAccount, setAccountKey, type Book, type Piece } from "./state";
import { isTold } from "./turns";

/** What a sync did. */
export interface Synced {
  /** Chats that are new or changed. */
  changed: ChatId[];
  /** Chats that are gone. */
  gone: ChatId[];
  /** Whether there are older chats, for `loadOlder`. */
  older: boolean;
}

export function nothingSynced(): Synced {
  return { changed: [], gone: [], older: false };
}

/** Chats in their parts, in the order of their ids. */
export type Parts = Map<ChatId, ChatSent[]>;

/** The parts of one answer to a sync. */
interface Phases {
  state: AccountState;
  chats: Parts;
  complete: PhasedSyncComplete;
}

/**
 * Connects if needed, and takes in what changed, up to this phase. A chat that is refused stays as it was; the others are taken
 * in, and the first refusal is the error. Asks for the answers that the chats wait for.
 */
export async function sync(device: Device, phase: Phase): Promise<Synced> {
  await connect(device);
  // What other devices did comes with the sync; what turns say does not.
  device.inbox = device.inbox.filter((frame) => isTold(frame.event));
  await tellOpened(device);
  const synced = nothingSynced();
  const refusal = new FirstRefusal();
  let doubt: RefusedName | null = null;
  try {
    doubt = await takePhases(device, phase, synced, refusal);
    await refusal.note(takeData(device));
    await refusal.note(checkFloors(device));
  } finally {
    // What was taken in is kept, also if the connection ended before the rest came.
    await save(device);
    synced.changed = [...new Set(synced.changed)].sort();
    await saveRooms(device, [...synced.changed, ...synced.gone]);
  }
  if (refusal.first !== null) throw refusal.first;
  if (doubt !== null) throw new Refused(doubt);
  await resumeTurns(device);
  return synced;
}

/** Takes in account and chats, again if they changed meanwhile; what is still doubtful after the last round. */
async function takePhases(device: Device, phase: Phase, synced: Synced, refusal: FirstRefusal): Promise<RefusedName | null> {
  let doubt: RefusedName | null = null;
  for (let round = 0; round < ROUNDS; round++) {
    const { state, chats, complete } = await askPhases(device, phase);
    synced.gone.push(...(await takeAccount(device, state)));
    await completed(device, chats);
    doubt = null;
    for (const [chat, parts] of chats) {
      if (isListed(device, chat)) await refusal.note(takeChat(device, chat, parts, synced));
      else doubt = "list-refused";
    }
    const whole = phase === "all" && !complete.older;
    for (const missing of await leftOver(device, state.chats, whole, synced, refusal)) {
      if (isListed(device, missing)) doubt = "withheld";
    }
    device.state.seq = Math.max(device.state.seq, complete.seq);
    device.state.older = synced.older = complete.older;
    if (doubt === null) break;
  }
  return doubt;
}

/** Keeps the first refusal and lets the others go on; everything else ends what is being done. */
export class FirstRefusal {
  first: Refused | null = null;

  async note(done: Promise<unknown>): Promise<void> {
    try {
      await done;
    } catch (error) {
      if (!isRefused(error)) throw error;
      this.first ??= error;
    }
  }
}

/** The account only: keys, manifest, floors, and which chats are gone. */
export async function refreshAccount(device: Device): Promise<ChatId[]> {
  const { state } = await askPhases(device, "last_chat");
  const gone = await takeAccount(device, state);
  await save(device);
  for (const chat of gone) await saveRoom(device, chat);
  return gone;
}

/** Takes in one chat as the server has it now. One that is gone, and was by the account's own list, is gone here. */
export async function refreshChat(device: Device, chat: ChatId): Promise<void> {
  if (!isListed(device, chat)) return;
  const room = device.rooms.get(chat);
  const have = room === undefined || isThin(room) ? NONE : versionsOf(room);
  const { chats, missing } = await fetchChats(device, new Map([[chat, have]]));
  const parts = chats.get(chat);
  if (parts === undefined) {
    if (!missing.includes(chat)) throw new Refused("withheld");
    await refreshAccount(device);
    if (isListed(device, chat)) throw new Refused("withheld");
    return;
  }
  await takeChat(device, chat, parts, nothingSynced());
  await save(device);
  await saveRoom(device, chat);
  const now = device.rooms.get(chat);
  // All of it was asked for. Deciding about a chat whose words are not here would take its messages for deleted ones.
  if (now !== undefined && isThin(now)) throw new Refused("withheld");
}

/**
 * Chats older than those on this device; whether there are still older ones. The oldest one here may have been loaded by itself, because
 * somebody opened it: what lies between is asked for by the ids of the account's own list, once nothing older is left.
 */
export async function loadOlder(device: Device, limit: number): Promise<Synced> {
  await connect(device);
  const byAge = [...device.rooms.values()].sort((one, two) => one.updatedAt - two.updatedAt || (one.id < two.id ? -1 : 1));
  const synced = nothingSynced();
  const chats: Parts = new Map();
  for (const { event } of await request(device, { type: "load_more_chats", before: byAge[0]?.id, limit })) {
    if (event.type !== "load_more_chats_response") throw new ClientError("unexpected");
    synced.older = event.older;
    collect(chats, event.chats);
  }
  // The server sends these chats whole; what this device has of them is newer or the same.
  for (const chat of [...chats.keys()]) if (device.rooms.has(chat)) chats.delete(chat);
  if (![...chats.keys()].every((chat) => isListed(device, chat))) await refreshAccount(device);
  const missing: ChatId[] = [];
  if (!synced.older) {
    const between = listed(device).filter((chat) => !device.rooms.has(chat) && !chats.has(chat));
    for (const batch of chunks(between.slice(0, limit), MAX_BATCH)) {
      const found = await fetchChats(device, new Map(batch.map((chat) => [chat, NONE])));
      for (const [chat, parts] of found.chats) chats.set(chat, parts);
      missing.push(...batch.filter((chat) => !found.chats.has(chat)));
    }
    synced.older = between.length > limit;
  }
  await completed(device, chats);
  for (const [chat, parts] of chats) {
    await takeChat(device, chat, parts, synced);
    await saveRoom(device, chat);
  }
  device.state.older = synced.older;
  await save(device);
  // One that is not there went meanwhile, or is kept back: the account's own list says which.
  if (missing.length > 0) await refreshAccount(device);
  if (missing.some((chat) => isListed(device, chat))) throw new Refused("withheld");
  return synced;
}

/**
 * Loads one chat that is listed and not on this device yet, or what changed in one that is. Says that it is shown.
 *
 * Without a server the chat is what this device has of it; the server is told with the next sync, so that a new device loads this
 * chat first.
 */
export async function openChat(device: Device, chat: ChatId): Promise<void> {
  if (device.rooms.has(chat)) {
    noteOpened(device.state, chat);
    await save(device);
  }
  await connect(device);
  if (!isListed(device, chat)) await refreshAccount(device);
  if (!isListed(device, chat)) throw new ClientError("no-such-chat");
  await refreshChat(device, chat);
  noteOpened(device.state, chat);
  await tellOpened(device);
}

/** Tells the server which chat was opened last, if it does not know. */
async function tellOpened(device: Device): Promise<void> {
  const chat = device.state.opened;
  if (chat === null) return;
  if (isListed(device, chat)) await tell(device, { type: "set_active_chat", chat });
  device.state.opened = null;
  await save(device);
}

/** The text of an embed, loaded if it is not on this device. */
export async function embed(device: Device, chat: ChatId, id: EmbedId): Promise<string> {
  const slot = device.rooms.get(chat)?.items.get(id);
  if (!device.rooms.has(chat)) throw new ClientError("no-such-chat");
  if (slot === undefined) throw new ClientError("no-such-message");
  const known = textOf(slot.item);
  if (known !== null) return known;
  await connect(device);
  let sealed: Sealed | undefined;
  for (const { event } of await request(device, { type: "request_embed", chat, embeds: [id] })) {
    if (event.type === "send_embed_data") sealed ??= event.items.at(-1)?.envelope;
  }
  if (sealed === undefined) throw new Refused("withheld");
  if ((await Digest.of(sealed)) !== slot.hash) throw new Refused("record-refused");
  const room = device.rooms.get(chat);
  if (room === undefined) throw new ClientError("no-such-chat");
  const opened = await openRecord(room.ring, device.state.account, Place.item(chat, id), sealed);
  const item = itemOf(id, opened);
  // Another state of the chat, as ever: what looks at it sees that there is more.
  device.rooms.set(chat, { ...room, items: new Map(room.items).set(id, { hash: slot.hash, item }) });
  await saveRoom(device, chat);
  return textOf(item) ?? "";
}

/** Whether the account's sealed list has this chat. */
export function isListed(device: Device, chat: ChatId): boolean {
  return device.account?.floors.has(chat) === true;
}

/** Asks for the phases. A device that knows a manifest and has no floors gets them by asking as if it knew none. */
async function askPhases(device: Device, phase: Phase): Promise<Phases> {
  const known = (await seenAccount(device.state)).manifest?.rev ?? 0;
  for (let tries = ROUNDS; ; tries--) {
    try {
      const phases = await askPhasesSince(device, phase, known);
      const hasFloors = device.state.book !== null || phases.state.floors.length > 0;
      return hasFloors ? phases : await askPhasesSince(device, phase, 0);
    } catch (error) {
      // A chat changed between two of its parts.
      if (!isConflict(error) || tries <= 1) throw error;
    }
  }
}

async function askPhasesSince(device: Device, phase: Phase, manifest: number): Promise<Phases> {
  const clientChatVersions = new Map([...device.rooms].map(([chat, room]) => [chat, versionsOf(room)]));
  const frames = await request(device, { type: "phased_sync_request", phase, manifest, clientChatVersions });
  let state: AccountState | null = null;
  let complete: PhasedSyncComplete | null = null;
  const chats: Parts = new Map();
  for (const { event } of frames) {
    switch (event.type) {
      case "account_state":
        state = joinAccount(state, event);
        break;
      case "phase_1_last_chat_ready":
      case "phase_2_last_20_chats_ready":
      case "phase_3_last_100_chats_ready":
        collect(chats, event.chats);
        break;
      case "phased_sync_complete":
        complete = event;
        break;
      default:
        throw new ClientError("unexpected");
    }
  }
  if (state === null || complete === null || state.more) throw new ClientError("unexpected");
  return { state, chats: inOrder(chats), complete };
}

/** Checks the account as the server has it, and takes it over; says which chats are gone. */
async function takeAccount(device: Device, state: AccountState): Promise<ChatId[]> {
  const floors: Sealed[] = [...(device.state.book?.floors ?? Array.from({ length: 16 }, () => new Uint8Array(0)))];
  for (const { shelf, envelope } of state.floors) floors[shelf] = envelope;
  const sent = {
    ring: state.ring,
    boxRing: state.mailbox,
    boxPub: state.boxPub,
    manifest: state.manifest,
    trail: state.trail ?? Trail.NONE,
    floors,
  };
  const ak = keyOf(device, state.generation);
  const account = await Account.open(device.state.account, ak, sent, await seenAccount(device.state));
  account.checkChats(state.chats.keys());
  for (const [chat, floor] of account.floors) {
    const there = state.chats.get(chat);
    if (there !== undefined && there.messagesV < floor.rev) throw new Refused("rolled-back");
  }
  const boxes = await Ring.open(ak, device.state.account, RingOf.BOX, sent.boxRing);
  const book: Book = { keys: keysOf(account.ring), boxes: keysOf(boxes), boxPub: sent.boxPub, manifest: sent.manifest, floors };
  if (ak.generation > device.state.generation) await adopt(device, ak);
  // From here on nothing fails: the state is the old one, or the new one.
  device.state.book = book;
  device.state.accountRev = state.accountRev;
  device.state.pinned = null;
  const gone = [...device.rooms.keys()].filter((chat) => !account.floors.has(chat));
  for (const chat of gone) device.rooms.delete(chat);
  // Also those that were listed and never loaded here.
  noteGone(device.state, [...listed(device).filter((chat) => !account.floors.has(chat)), ...gone]);
  device.account = account;
  return gone;
}

/** The account key of this generation: the one there is, or the one that this device was about to commit. */
function keyOf(device: Device, generation: number): AccountKey {
  const { rotating } = device.state;
  const isCommitted = rotating !== null && rotating.generation === generation && generation > device.state.generation;
  return isCommitted ? new AccountKey(rotating.ak, generation) : device.ak;
}

/** A rotation of this device was committed: its rooms are opened under the new key. */
export async function adopt(device: Device, ak: AccountKey): Promise<void> {
  const rooms = [...device.rooms.values()];
  const rings = await Promise.all(rooms.map((room) => Ring.fromKept(ak, RingOf.chat(room.id), room.keys)));
  rooms.forEach((room, at) => (room.ring = rings[at] ?? room.ring));
  setAccountKey(device.state, ak);
  device.state.rotating = null;
}

/** Takes in one chat from its parts, with everything that it needs. */
export async function takeChat(device: Device, chat: ChatId, parts: readonly ChatSent[], synced: Synced): Promise<void> {
  const received = await receiveChat(device, chat, join(parts));
  if (received.got !== "room") throw new Refused("withheld");
  device.state.queue.confirm(chat, received.stored);
  device.rooms.set(chat, received.room);
  synced.changed.push(chat);
}

/**
 * Asks once more, for all of them at once, where a device without memory needs to be shown how a head follows from its floor.
 */
async function completed(device: Device, chats: Parts): Promise<void> {
  const lacking = new Map<ChatId, Versions>();
  for (const [chat, parts] of chats) {
    const from = lacks(device, chat, parts);
    if (from !== null) lacking.set(chat, from);
  }
  for (const batch of chunks([...lacking], MAX_BATCH)) {
    const again = await fetchAsSent(device, new Map(batch));
    for (const [chat, since] of again.chats) {
      const parts = chats.get(chat);
      if (parts !== undefined) chats.set(chat, overlaid(parts, since));
    }
  }
}

/** What to ask from, if a chat came without a trail that it needs. */
function lacks(device: Device, chat: ChatId, parts: readonly ChatSent[]): Versions | null {
  const floor = device.account?.floors.get(chat);
  const last = parts.at(-1);
  if (floor === undefined || last === undefined) return null;
  const hasTrail = parts.some((part) => part.trail !== undefined);
  const room = device.rooms.get(chat);
  // One that was made thin is asked for as if it were not here, and has to follow from what is remembered all the same.
  const from = room === undefined ? floor.rev : isThin(room) ? room.mark.rev : Infinity;
  if (hasTrail || (Sealed.rev(last.head) ?? 0) <= from) return null;
  return { messagesV: from, titleV: 0, draftV: last.versions.draftV };
}

/** A chat as it was sent whole, brought up to date by what was sent since its floor. */
function overlaid(whole: readonly ChatSent[], since: readonly ChatSent[]): ChatSent[] {
  // What was removed since was removed before the whole was sent, or after: it is not there now.
  return [...whole.map((part) => ({ ...part, more: true })), ...since];
}

export async function receiveChat(device: Device, chat: ChatId, delta: Delta): Promise<Received> {
  if (device.account === null) throw new Refused("account-missing");
  return receive(device.rooms.get(chat), device.account, chat, delta);
}

/** Chats that changed outside the phases, and, where the phases were everything, chats that did not come. */
async function leftOver(
  device: Device,
  there: ReadonlyMap<ChatId, Versions>,
  whole: boolean,
  synced: Synced,
  refusal: FirstRefusal,
): Promise<ChatId[]> {
  const wanted: [ChatId, Versions][] = [];
  for (const [chat, versions] of refusal.first === null ? there : []) {
    const room = device.rooms.get(chat);
    // One that is ahead was written meanwhile; one that was refused is refused once.
    if (room !== undefined && isOlder(versionsOf(room), versions)) wanted.push([chat, versionsOf(room)]);
    else if (room === undefined && whole) wanted.push([chat, NONE]);
  }
  const gone: ChatId[] = [];
  for (const batch of chunks(wanted, MAX_BATCH)) {
    const { chats, missing } = await fetchChats(device, new Map(batch));
    for (const [chat, parts] of chats) await refusal.note(takeChat(device, chat, parts, synced));
    gone.push(...missing);
  }
  return gone;
}

/** Chats by id, with the trails that they need; and those that the server says are not there. */
export async function fetchChats(device: Device, have: Map<ChatId, Versions>): Promise<{ chats: Parts; missing: ChatId[] }> {
  const fetched = await fetchAsSent(device, have);
  await completed(device, fetched.chats);
  return fetched;
}

async function fetchAsSent(device: Device, have: Map<ChatId, Versions>): Promise<{ chats: Parts; missing: ChatId[] }> {
  const [chats, missing]: [Parts, ChatId[]] = [new Map(), []];
  for (const { event } of await request(device, { type: "request_chat_content_batch", chats: have })) {
    if (event.type !== "chat_content_batch_response") throw new ClientError("unexpected");
    collect(chats, event.chats);
    missing.push(...event.missing);
  }
  return { chats: inOrder(chats), missing };
}

/** Every chat on this device has reached its floor; else the server keeps something back. */
async function checkFloors(device: Device): Promise<void> {
  const floors = device.account?.floors;
  for (const [chat, room] of device.rooms) {
    if ((floors?.get(chat)?.rev ?? 0) > room.mark.rev) throw new Refused("withheld");
  }
}

async function takeData(device: Device): Promise<void> {
  const frames = await request(device, { type: "request_data" });
  const { account } = device;
  if (account === null) throw new ClientError("offline");
  const pieces: Piece[] = [];
  for (const { event } of frames) {
    if (event.type !== "data_records") throw new ClientError("unexpected");
    for (const { kind, name, data } of event.records) {
      const [rev, body] = await openData(account, kind, name, data);
      if (rev < (pieceOf(device.state, kind, name)?.rev ?? 0)) throw new Refused("rolled-back");
      pieces.push({ kind, name, rev, body });
    }
  }
  // What did not come was removed; its revision is remembered.
  for (const known of device.state.data) {
    if (!pieces.some((piece) => piece.kind === known.kind && piece.name === known.name)) known.body = null;
  }
  for (const piece of pieces) putPiece(device.state, piece);
}

function isOlder(have: Versions, there: Versions): boolean {
  return have.messagesV < there.messagesV || have.draftV < there.draftV || have.titleV < there.titleV;
}

/** Groups parts by chat, in their order. */
export function collect(chats: Parts, parts: readonly ChatSent[]): void {
  for (const part of parts) {
    const before = chats.get(part.chat);
    if (before === undefined) chats.set(part.chat, [part]);
    else before.push(part);
  }
}

function inOrder(chats: Parts): Parts {
  return new Map([...chats].sort(([one], [two]) => (one < two ? -1 : 1)));
}

/** Joins the parts of an account's state; its trail may be longer than one message. */
export function joinAccount(state: AccountState | null, part: AccountState): AccountState {
  if (state === null) return part;
  const trail = state.trail === undefined ? part.trail : { ...state.trail, steps: [...state.trail.steps, ...(part.trail?.steps ?? [])] };
  const chats = new Map([...state.chats, ...part.chats]);
  return { ...state, more: part.more, trail, floors: [...state.floors, ...part.floors], chats };
}

/** Parts of a list, each of at most so many. */
export function chunks<T>(all: readonly T[], most: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / most) }, (_, at) => all.slice(at * most, (at + 1) * most));
}

export const NONE: Versions = { messagesV: 0, titleV: 0, draftV: 0 };
/** How often the account is looked at again when it changes meanwhile. */
const ROUNDS = 4;
