// A device: its files, its keys in memory, and its socket.
//
//   Device ─┬─ Cabinet: files          state first, then chats
//           ├─ State, Account, Rooms   what was verified
//           └─ Connection              requests by number; news wait in the inbox
//
// One owner drives it: nothing happens between two calls. Easy to get wrong: a request that is given up half-way. Its answer comes later
// and is dropped, since its number is known to nobody.

import { type Bytes, wipe } from "../format/bytes";
import { type Account, type AccountKey, AccountId, ChatId } from "../format/index";
import type { Key } from "../format/key";
import { type ClientEvent, ClientFrame, type ServerEvent, ServerFrame, readBody, writeBody } from "../protocol/index";
import { answersFile } from "./answer_notes";
import { Link } from "./credential";
import { ClientError, isDenied, isOwn, whenReading, whenWriting } from "./error";
import { Cabinet, type Files } from "./files";
import { previewsFile } from "./outline";
import { type Room, roomFromJson, roomToJson } from "./room";
import { type State, accountKeyOf, openBook, stateFromJson, stateToJson } from "./state";
import { type Connection, type Transport, fromTransport } from "./transport";
import { Turns, isTold } from "./turns";
import { WordIndex, wordsFile } from "./word_index";
import type { Scribe } from "./write";

/** Milliseconds since 1970. Passed in, so that tests have a time of their own. */
export type Clock = () => number;

/** What a device is made of. */
export interface Setup {
  /** The way to the server. */
  transport: Transport;
  /** Where its files are. */
  files: Files;
  /** The key that seals the files; null: one is kept beside them. */
  key: Key | null;
  /** What time it is. */
  clock: Clock;
}

/** A device of one account. */
export class Device {
  readonly link: Link;
  /** The account as last verified; null until the first sync under this account key. */
  account: Account | null = null;
  rooms = new Map<ChatId, Room>();
  /** Chats that are nowhere but here. */
  temporary = new Map<ChatId, Room>();
  /** What search looks at. */
  readonly words = new WordIndex();
  socket: Connection | null = null;
  /** Whether `hello` was answered on this socket. */
  isReady = false;
  nextId = 1;
  inbox: ServerFrame[] = [];
  /** Which socket this is: what was begun on one is not begun on the next. */
  socketNumber = 0;
  /** Turns that this device hears, or heard. */
  turns = new Turns();
  /**
   * The browser has no room for what was to be kept: it is in memory, and goes on from there. Without anybody who makes room, `quota` is
   * thrown in its place.
   */
  onFull: (() => void) | null = null;

  constructor(
    readonly setup: Setup,
    readonly cabinet: Cabinet,
    public state: State,
  ) {
    this.link = new Link(setup.transport, state.session);
  }

  get accountId(): AccountId {
    return this.state.account;
  }

  /** Whether there is a session. It may have ended on the server. */
  get isLoggedIn(): boolean {
    return this.state.session !== null;
  }

  /** Whether there is an open socket. */
  get isConnected(): boolean {
    return this.socket !== null && this.isReady;
  }

  /** The generation of the account key: how often it was replaced, and one. */
  get generation(): number {
    return this.state.generation;
  }

  get ak(): AccountKey {
    return accountKeyOf(this.state);
  }

  now(): number {
    return this.setup.clock();
  }

  /** What seals writes; needs a sync under this account key. */
  scribe(): Scribe {
    const { account } = this;
    const { book, device } = this.state;
    if (account === null || book === null) throw new ClientError("offline");
    return { account, book, device, now: this.now() };
  }
}

/** Opens a device that was here before, without asking the server; null if nobody registered or logged in here. */
export async function openDevice(setup: Setup): Promise<Device | null> {
  const cabinet = await Cabinet.open(setup.files, setup.key);
  const state = await readState(cabinet);
  if (state === null) return null;
  const device = new Device(setup, cabinet, state);
  await load(device);
  return device;
}

/** What a cabinet remembers; null if nobody is in it. */
export async function readState(cabinet: Cabinet): Promise<State | null> {
  const json = await cabinet.read(STATE);
  if (json === null) return null;
  const state = await stateFromJson(json);
  if (state === null) throw new ClientError("damaged");
  return state;
}

/** The files of a device that is being made: nobody's until now. */
export async function vacant(setup: Setup): Promise<Cabinet> {
  const cabinet = await Cabinet.open(setup.files, setup.key);
  if ((await cabinet.read(STATE)) !== null) throw new ClientError("occupied");
  return cabinet;
}

/** Opens what the files have. A chat whose file does not open any more is loaded anew. */
export async function load(device: Device): Promise<void> {
  const { state, cabinet, ak } = device;
  device.account = state.book === null ? null : await openBook(state.book, state.account, ak).catch(() => null);
  const listed = (await cabinet.names(ROOM)).flatMap((name) => {
    const id = name.slice(ROOM.length);
    return ChatId.is(id) && device.account?.floors.has(id) !== false ? [id] : [];
  });
  for (let at = 0; at < listed.length; at += AT_ONCE) {
    const some = listed.slice(at, at + AT_ONCE);
    const rooms = await Promise.all(some.map((id) => readRoom(device, fileOf(id), id)));
    for (const room of rooms) if (room !== null) device.rooms.set(room.id, room);
  }
}

async function readRoom(device: Device, name: string, id: ChatId): Promise<Room | null> {
  let json;
  try {
    json = await device.cabinet.read(name);
  } catch (error) {
    if (isOwn(error, "damaged")) return null;
    throw error;
  }
  return json === null ? null : roomFromJson(id, device.ak, json).catch(() => null);
}

/** Keeps everything but the chats. Without room for it, see `Device.onFull`. */
export function save(device: Device): Promise<void> {
  return orFull(device, keepState(device));
}

/** The same; throws `quota`. */
export function keepState(device: Device): Promise<void> {
  return device.cabinet.write(STATE, stateToJson(device.state));
}

/** These chats, as they are given; throws `quota`. */
export function keepRooms(device: Device, rooms: Iterable<Room>): Promise<void> {
  return device.cabinet.writeAll([...rooms].map((room) => [fileOf(room.id), roomToJson(room)] as const));
}

async function orFull(device: Device, writing: Promise<void>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (device.onFull === null || !isOwn(error, "quota")) throw error;
    device.onFull();
  }
}

export function saveRoom(device: Device, chat: ChatId): Promise<void> {
  return saveRooms(device, [chat]);
}

/** Several chats; those that are gone lose their files. */
export async function saveRooms(device: Device, chats: Iterable<ChatId>): Promise<void> {
  const here: Room[] = [];
  for (const chat of new Set(chats)) {
    const room = device.rooms.get(chat);
    if (room !== undefined) here.push(room);
    else for (const name of [wordsFile(chat), previewsFile(chat), answersFile(chat), fileOf(chat)]) await device.cabinet.remove(name);
  }
  await orFull(device, keepRooms(device, here));
}

/** Opens a socket. Does nothing if there is one. */
export async function connect(device: Device): Promise<void> {
  if (device.isConnected) return;
  // One whose `hello` was given up half-way is good for nothing.
  disconnect(device);
  await greet(device, await dial(device));
}

/** A socket on which nobody has said `hello`, and the ticket for it. */
export interface Dialled {
  connection: Connection;
  ticket: Bytes;
}

/** Reaches the server. Changes nothing of the device, so other things may be done meanwhile. */
export async function dial(device: Device): Promise<Dialled> {
  const { session } = device.link;
  if (session === null) throw new ClientError("not-logged-in");
  const { ticket } = await device.link.post("/chats/ticket", {}).catch((error: unknown) => {
    throw isDenied(error, "unauthorised") ? ClientError.loggedOut("expired") : error;
  });
  try {
    return { connection: await device.link.transport.connect(session), ticket };
  } catch (error) {
    throw fromTransport(error);
  }
}

/** Takes over a socket, and says `hello` on it. */
export async function greet(device: Device, { connection, ticket }: Dialled): Promise<void> {
  device.socket = connection;
  device.socketNumber += 1;
  const seq = device.state.seq > 0 ? device.state.seq : undefined;
  try {
    const [, answer] = await requestOne(device, { type: "hello", v: 1, ticket, seq });
    if (answer.type !== "ready" || answer.account !== device.state.account) throw new ClientError("unexpected");
    device.isReady = true;
  } catch (error) {
    disconnect(device);
    throw error;
  }
}

/** Closes the socket. What was written is kept. */
export function disconnect(device: Device): void {
  device.socket?.close();
  [device.socket, device.isReady] = [null, false];
  device.inbox = [];
}

/** Ends the copy of every key that is in memory. The device is good for nothing afterwards. */
export function wipeKeys(device: Device): void {
  const { ak, book, rotating, session } = device.state;
  const rooms = [...device.rooms.values(), ...device.temporary.values()];
  const rings = [book?.keys ?? [], book?.boxes ?? [], ...rooms.map((room) => room.keys)];
  device.temporary.clear();
  device.words.close();
  for (const { key } of rings.flat()) key.wipe();
  ak.wipe();
  rotating?.ak.wipe();
  wipe(session?.secret, session?.id);
}

/** Sends a request that is not answered. */
export async function tell(device: Device, event: ClientEvent): Promise<void> {
  await send(device, event);
}

/** Sends a request and waits for all of its answer. News that come meanwhile wait in the inbox. */
export async function request(device: Device, event: ClientEvent): Promise<ServerFrame[]> {
  const id = await send(device, event);
  const answer: ServerFrame[] = [];
  for (;;) {
    const frame = await receive(device);
    if (frame.re === id) {
      if (frame.event.type === "refused") throw ClientError.denied(frame.event);
      answer.push(frame);
      if (ends(frame.event)) return answer;
    } else if (frame.re === undefined || isTold(frame.event)) {
      // Others are the answer to a request that was given up; but what a turn says follows its first answer.
      device.inbox.push(frame);
    }
    // No honest server sends so much: what this device has to keep stays small.
    if (Math.max(answer.length, device.inbox.length) > MAX_FRAMES) {
      disconnect(device);
      throw new ClientError("unexpected");
    }
  }
}

/** The single event that answers, with its `seq`. */
export async function requestOne(device: Device, event: ClientEvent): Promise<[seq: number | null, event: ServerEvent]> {
  const frames = await request(device, event);
  const frame = frames[0];
  if (frame === undefined || frames.length !== 1) throw new ClientError("unexpected");
  return [frame.seq ?? null, frame.event];
}

async function send(device: Device, event: ClientEvent): Promise<number> {
  const id = device.nextId;
  device.nextId = (device.nextId + 1) % 2 ** 32;
  let frame: string;
  try {
    frame = writeBody(ClientFrame, { id, event });
  } catch (error) {
    throw whenWriting(error);
  }
  const { socket } = device;
  if (socket === null) throw new ClientError("offline");
  await socket.send(frame).catch((error: unknown) => close(device, error));
  return id;
}

/** The next frame, whatever it is. The end of the session ends the socket. */
export async function receive(device: Device): Promise<ServerFrame> {
  const frame = await receiveUnless(device);
  // Without a signal nobody stops it.
  if (frame === null) throw new ClientError("offline");
  return frame;
}

/** The same, or null if it was stopped while it waited: no frame is lost then. */
export async function receiveUnless(device: Device, stop?: AbortSignal): Promise<ServerFrame | null> {
  const { socket } = device;
  if (socket === null) throw new ClientError("offline");
  const bytes = await socket.next(stop).catch((error: unknown) => close(device, error));
  if (bytes === null) return null;
  let frame: ServerFrame;
  try {
    frame = readBody(ServerFrame, bytes);
  } catch (error) {
    dropSocket(device);
    throw whenReading(error);
  }
  if (frame.event.type === "force_logout") {
    dropSocket(device);
    throw ClientError.loggedOut(frame.event.reason);
  }
  return frame;
}

function close(device: Device, error: unknown): never {
  dropSocket(device);
  throw fromTransport(error);
}

/** The socket is gone; news that came before stay. */
function dropSocket(device: Device): void {
  device.socket?.close();
  device.socket = null;
}

/** Whether an answer ends with this event. */
function ends(event: ServerEvent): boolean {
  switch (event.type) {
    case "account_state":
    case "phase_1_last_chat_ready":
    case "phase_2_last_20_chats_ready":
    case "phase_3_last_100_chats_ready":
      return false;
    case "chat_content_batch_response":
    case "load_more_chats_response":
    case "send_embed_data":
    case "data_records":
      return !event.more;
    default:
      return true;
  }
}

export function fileOf(chat: ChatId): string {
  return `${ROOM}${chat}`;
}

/** Files that are read at the same time. */
const AT_ONCE = 32;
/** Frames of one answer, and news that wait meanwhile. */
const MAX_FRAMES = 20_000;
export const STATE = "state";
const ROOM = "room-";
