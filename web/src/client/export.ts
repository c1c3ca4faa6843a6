// Everything out, in clear; and everything gone.
//
//   proof ─▶ frames, one per line ─▶ account, chats, embeds, data, snapshots, letters ─▶ the checks of a sync ─▶ plain JSON
//   proof ─▶ erased ─▶ receipt, and this device's files go
//
// An export is opened with the same checks as a sync, against what this device remembers. Easy to get wrong: an export that leaves something
// out without saying so. A chat of the sealed list that did not come is `withheld`.

import { type Bytes, fromUtf8 } from "../format/bytes";
import {
  Account,
  type ChatId,
  type Digest,
  EmbedId,
  type ItemId,
  Letter,
  type Message,
  type MessageId,
  Refused,
  Sealed,
  Snapshot,
  SnapshotKey,
  Trail,
  type TurnId,
} from "../format/index";
import { type AccountState, type DataSent, type LetterSent, ServerFrame, Signed, type SnapshotKept, readBody, writeBody } from "../protocol/index";
import { verified } from "./chats";
import type { Credential } from "./credential";
import { type Device, connect, disconnect } from "./device";
import { ClientError, isRefused } from "./error";
import { type Room, join, receive, roomMessages } from "./room";
import { openData, seenAccount } from "./state";
import { type Parts, collect, embed, joinAccount, sync } from "./sync";

/** A message of an export: its id, and the message as docs/FORMAT.md has it. */
export type ExportedMessage = { id: MessageId } & Record<string, unknown>;

/** An answer of an export that no device has taken yet. */
export interface ExportedLetter {
  /** The turn that it answers. */
  turn: TurnId;
  reply: ExportedMessage;
  /** What came after the answer. */
  more: string | null;
}

/** A snapshot of an export: what its link opens. */
export interface ExportedSnapshot {
  id: string;
  expires_at: number;
  made_at: number;
  title: string | null;
  messages: { role: string; created_at: number; body: string }[];
  /** What the messages show. */
  attachments: string[];
}

/** A chat of an export. Names as the Rust client writes them, so that one program reads both. */
export interface ExportedChat {
  id: ChatId;
  created_at: number;
  updated_at: number;
  /** Its fields, `title` among them. */
  fields: Record<string, string>;
  /** Its messages, in order of time. */
  messages: ExportedMessage[];
  /** What the messages show, by id. */
  embeds: Record<string, string>;
  /** What was typed and not sent. */
  draft: string | null;
  /** Answers that no device has taken yet. */
  letters: ExportedLetter[];
  /** What is shared of it. */
  snapshots: ExportedSnapshot[];
  /** What the server remembers of its safety, in JSON: scores and flags, without a word of it. */
  safety: string | null;
  /** What the server keeps of it beyond its words, because that was switched on: each in JSON, as it came. */
  remembered: string[];
}

/** Everything that the server has of an account, in clear. */
export interface Exported {
  v: 1;
  account: string;
  /** The generation of the account key. */
  generation: number;
  /** The chats, the one written to last first. */
  chats: ExportedChat[];
  data: { kind: string; name: string; body: string }[];
  /** The ids of the account's devices. */
  devices: string[];
}

/** What the frames of an export have. */
interface Sent {
  state: AccountState;
  chats: Parts;
  records: DataSent[];
  devices: string[];
  letters: Map<ChatId, LetterSent[]>;
  safety: Map<ChatId, string>;
  snapshots: Map<ChatId, SnapshotKept[]>;
  remembered: Map<ChatId, string[]>;
}

/** Takes everything out and opens it. */
export async function exportAll(device: Device, by: Credential): Promise<Exported> {
  const signing = await device.link.ready(by);
  const signed = await device.link.signed("/account/export", { account: device.state.account }, signing);
  const [body] = await device.link.raw("/account/export", writeBody(Signed, signed));
  const { state, chats, records, devices, letters, safety, snapshots, remembered } = readFrames(body);
  const account = await openExported(device, state);
  account.checkChats(chats.keys());
  const exported: Exported = { v: 1, account: account.id, generation: account.key.generation, chats: [], data: [], devices };
  for (const [chat, parts] of chats) {
    const room = await exportedRoom(device, account, chat, parts);
    const shared = await exportedSnapshots(account, room, snapshots.get(chat) ?? []);
    const kept = { snapshots: shared, safety: safety.get(chat) ?? null, remembered: remembered.get(chat) ?? [] };
    exported.chats.push({ ...(await exportedChat(account, room, letters.get(chat) ?? [])), ...kept });
  }
  exported.chats.sort((one, two) => two.updated_at - one.updated_at);
  for (const { kind, name, data } of records) {
    const [, text] = await openData(account, kind, name, data);
    exported.data.push({ kind, name, body: text });
  }
  return exported;
}

function readFrames(body: Bytes): Sent {
  const text = fromUtf8(body);
  if (text === null) throw new ClientError("unexpected");
  let [state, isWhole]: [AccountState | null, boolean] = [null, false];
  const [chats, letters]: [Parts, Sent["letters"]] = [new Map(), new Map()];
  const safety: Sent["safety"] = new Map();
  const snapshots: Sent["snapshots"] = new Map();
  const remembered: Sent["remembered"] = new Map();
  const [records, devices]: [DataSent[], string[]] = [[], []];
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const event = frameOf(line);
    switch (event.type) {
      case "account_state":
        state = joinAccount(state, event);
        break;
      case "data_records":
        records.push(...event.records);
        break;
      case "devices":
        devices.push(...event.devices.map((one) => one.device));
        break;
      case "chat_content_batch_response":
        collect(chats, event.chats);
        break;
      case "letters_waiting":
        for (const letter of event.letters) letters.set(letter.chat, [...(letters.get(letter.chat) ?? []), letter]);
        break;
      case "safety_records":
        for (const { chat, record } of event.records) if (record !== undefined) safety.set(chat, record);
        break;
      case "snapshot_kept":
        snapshots.set(event.line.chat, [...(snapshots.get(event.line.chat) ?? []), event]);
        break;
      case "remembered_records":
        for (const { chat, record } of event.records) remembered.set(chat, [...(remembered.get(chat) ?? []), record]);
        break;
      case "phased_sync_complete":
        isWhole = true;
        break;
      case "refused":
        throw ClientError.denied(event);
      default:
        throw new ClientError("unexpected");
    }
  }
  if (state === null || !isWhole) throw new Refused("withheld");
  return { state, chats, records, devices, letters, safety, snapshots, remembered };
}

function frameOf(line: string) {
  try {
    return readBody(ServerFrame, line).event;
  } catch {
    throw new ClientError("unexpected");
  }
}

/** The account of an export. It has no trail: it is compared with what this device knows after a sync. */
async function openExported(device: Device, state: AccountState): Promise<Account> {
  const floors = [...state.floors].sort((one, two) => one.shelf - two.shelf).map(({ envelope }) => envelope);
  const { ring, mailbox: boxRing, boxPub, manifest } = state;
  const seen = await seenAccount(device.state);
  const rev = Sealed.rev(manifest) ?? 0;
  if (seen.manifest !== null && rev < seen.manifest.rev) throw new Refused("rolled-back");
  const same = seen.manifest?.rev === rev ? seen.manifest : null;
  const sent = { ring, boxRing, boxPub, manifest, trail: Trail.NONE, floors };
  return Account.open(device.state.account, device.ak, sent, { ...seen, manifest: same });
}

async function exportedRoom(device: Device, account: Account, chat: ChatId, parts: Parts extends Map<ChatId, infer P> ? P : never): Promise<Room> {
  const received = await receive(undefined, account, chat, join(parts));
  if (received.got === "room") {
    const known = device.rooms.get(chat)?.mark.rev ?? 0;
    if (received.room.mark.rev < known) throw new Refused("rolled-back");
    return received.room;
  }
  if ((account.floors.get(chat)?.rev ?? 0) === 0) throw new Refused("withheld");
  // A head ahead of its floor: the verified chat of this device has the trail.
  await connect(device);
  await sync(device, "all");
  const room = device.rooms.get(chat);
  if (room === undefined) throw new Refused("withheld");
  for (const item of room.items.keys()) if (EmbedId.is(item)) await embed(device, chat, item);
  // With the embeds that were loaded just now.
  return device.rooms.get(chat) ?? room;
}

/** Erases the account on the server, and this device's files. Gives the receipt. */
export async function erase(device: Device, by: Credential): Promise<string> {
  const signing = await device.link.ready(by);
  const erased = await device.link.prove("/account/erase", { account: device.state.account }, signing);
  disconnect(device);
  // The account is gone, and there is one receipt: files that cannot be removed are no reason to lose it.
  await device.cabinet.clear().catch(() => {});
  return erased.receipt;
}

/**
 * The answers among the letters that the chat's head waits for. One that is in the chat already, or that a device has given up, is left
 * out.
 */
async function exportedLetters(account: Account, room: Room, letters: readonly LetterSent[]): Promise<ExportedLetter[]> {
  const list = new Map([...room.items].map(([item, slot]): [ItemId, Digest] => [item, slot.hash]));
  const opened: ExportedLetter[] = [];
  for (const { turn, reply, letter: wire, more } of letters) {
    const letter = new Letter({ account: account.id, chat: room.id, reply, turn });
    let message: Message;
    try {
      message = await letter.open(account.boxes, room.head, list, wire);
    } catch (error) {
      if (isRefused(error, "duplicate") || isRefused(error, "unasked")) continue;
      throw error;
    }
    const text = more === undefined ? null : await letter.openMore(account.boxes, room.head, more);
    opened.push({ turn, reply: exportedMessage(reply, message), more: text?.body ?? null });
  }
  return opened;
}

/** What is shared of a chat. One whose content the server has lost opens nothing, and is left out. */
async function exportedSnapshots(account: Account, room: Room, kept: SnapshotKept[]): Promise<ExportedSnapshot[]> {
  const opened: ExportedSnapshot[] = [];
  for (const { line, content } of kept) {
    if (content === undefined) continue;
    const key = await SnapshotKey.kept(room.ring, account.id, room.id, line.id, line.key);
    const items = content.items.map(({ item, envelope }) => [item, envelope] as const);
    // It was not over when it was made.
    const snapshot = await Snapshot.open(key, line.id, line.madeAt, { list: content.list, items });
    opened.push({
      id: line.id,
      expires_at: line.expiresAt,
      made_at: snapshot.at,
      title: snapshot.title,
      messages: snapshot.messages.map(({ role, createdAt, body }) => ({ role, created_at: createdAt, body })),
      attachments: [...snapshot.embeds.values()].map(({ body }) => body),
    });
  }
  return opened;
}

async function exportedChat(account: Account, room: Room, letters: readonly LetterSent[]): Promise<Omit<ExportedChat, "safety" | "snapshots" | "remembered">> {
  const messages = roomMessages(room).map(([id, , message]) => ({ id, message }));
  messages.sort((one, two) => one.message.createdAt - two.message.createdAt);
  const embeds: Record<string, string> = {};
  for (const [item, slot] of room.items) {
    if (!EmbedId.is(item)) continue;
    if (slot.item?.kind !== "text") throw new Refused("withheld");
    embeds[item] = slot.item.text.body;
  }
  return {
    id: room.id,
    created_at: room.createdAt,
    updated_at: room.updatedAt,
    fields: Object.fromEntries(verified(room).fields),
    messages: messages.map(({ id, message }) => exportedMessage(id, message)),
    embeds,
    draft: room.draft?.body ?? null,
    letters: await exportedLetters(account, room, letters),
  };
}

function exportedMessage(id: MessageId, message: Message): ExportedMessage {
  const { role, parent, createdAt, body, model, reason, refs, proof, shared } = message;
  return {
    id,
    v: 1,
    role,
    parent,
    created_at: createdAt,
    body,
    ...(model === null ? {} : { model }),
    ...((reason ?? null) === null ? {} : { reason }),
    refs,
    ...(proof === null ? {} : { proof }),
    ...(shared.length === 0 ? {} : { shared }),
  };
}
