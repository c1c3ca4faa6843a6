// Temporary chats: only in this worker's memory. Nothing of them is sealed, stored or kept, here or on the server.
//
//   ask ─▶ the words, with keep = turn ─▶ request_chat_history: every time, since the server keeps nothing ─▶ words ─▶ memory
//
// A temporary chat is a Room like any other, with a key that nobody else has, so that the rules for giving words hold for it unchanged: for
// an open question of this device, on the socket that it went over, twice at most. Easy to get wrong: something of it in the queue, which is
// kept. Nothing here goes through the queue.

import { ChatId, Digest, Key, type Message, MessageId, Ring, RingOf, TurnId, wellFormed } from "../format/index";
import { type ChatMessageAdded, MAX_QUERY, utf8Length } from "../protocol/index";
import { type AskOptions, checkOptions, claimOf, listener, noted, sentWith, withoutOff } from "./asks";
import { besideMessage } from "./beside";
import { verified } from "./chats";
import type { ChatView } from "./chats";
import { type Device, connect, requestOne } from "./device";
import { ClientError } from "./error";
import type { Answer } from "./queue";
import { type Room, roomMessage } from "./room";
import type { Asked } from "./turns";
import { switchedOff } from "./wishes";

/** Begins a temporary chat. */
export async function newTemporary(device: Device): Promise<ChatId> {
  const id = ChatId.random();
  const keys = [{ key: await Key.random(), born: device.generation }];
  const ring = await Ring.fromKept(device.ak, RingOf.chat(id), keys);
  const at = device.now();
  device.temporary.set(id, {
    id,
    keys,
    ring,
    head: {
      key: 1,
      kid: ring.newest.key.kid,
      count: 0,
      live: Digest.ZERO,
      chain: Digest.ZERO,
      leaf: null,
      pending: [],
      at,
      device: device.state.device,
    },
    mark: { rev: 0, envelope: Digest.ZERO },
    items: new Map(),
    gone: new Set(),
    titleV: 0,
    draftV: 0,
    draft: null,
    createdAt: at,
    updatedAt: at,
  });
  return id;
}

export function isTemporary(device: Device, chat: ChatId): boolean {
  return device.temporary.has(chat);
}

/** The chat as a person sees it. */
export function temporaryView(device: Device, chat: ChatId): ChatView {
  return verified(roomHere(device, chat));
}

/** Asks: behind the last message, or behind what `instead` answers. Needs the server now: nothing waits in a queue. */
export async function askTemporary(
  device: Device,
  chat: ChatId,
  body: string,
  all: AskOptions,
  instead: MessageId | null = null,
): Promise<Asked> {
  const options = withoutOff(device, all);
  if (utf8Length(body) > MAX_QUERY) throw new ClientError("too-large");
  checkOptions(device, chat, options);
  const room = roomHere(device, chat);
  const parent = instead === null ? room.head.leaf : messageHere(room, instead).parent;
  const said: Message = {
    role: "user",
    parent,
    createdAt: device.now(),
    body: wellFormed(body),
    model: null,
    reason: null,
    refs: [],
    proof: null,
    shared: noted(options),
  };
  return begin(device, withMessage(room, MessageId.random(), said), options);
}

/** Asks for another answer to a message of the person, and gives nothing besides: that would be noted inside the message. */
export async function retryTemporary(device: Device, chat: ChatId, message: MessageId, all: AskOptions): Promise<Asked> {
  const room = roomHere(device, chat);
  const options = withoutOff(device, all);
  if (messageHere(room, message).role !== "user") throw new ClientError("no-such-message");
  checkOptions(device, chat, options);
  return begin(device, withHead(room, { leaf: message }), { ...options, given: [] });
}

/** Asks for an answer to the last message. If the server cannot be asked, the chat is as it was. */
async function begin(device: Device, room: Room, options: AskOptions): Promise<Asked> {
  const { id: chat } = room;
  const message = room.head.leaf;
  if (message === null) throw new ClientError("no-such-message");
  await connect(device);
  const [turn, reply] = [TurnId.random(), MessageId.random()];
  const pending = { turn, parent: message, reply };
  const [claim, branch] = await claimOf(room, message, reply);
  const off = new Set([...switchedOff(device), ...options.off, "suggestions"]);
  const before = device.temporary.get(chat);
  device.temporary.set(chat, withHead(room, { pending: [...room.head.pending, pending] }));
  const added: ChatMessageAdded = {
    chat,
    turn,
    message,
    reply,
    text: messageHere(room, message).body,
    count: claim.count,
    before: claim.before,
    after: claim.after,
    keep: "turn",
    history: false,
    titled: true,
    focus: options.focus ?? undefined,
    off: [...off],
    available: options.available,
    given: options.given,
    // Stored chats stay out of a temporary one, unless something of them is ticked for a question.
    asks: [],
  };
  const heard = listener(device, chat, pending, claim, branch, device.socketNumber);
  heard.sent = sentWith(added);
  device.turns.add(heard);
  try {
    const [, answer] = await requestOne(device, { type: "chat_message_added", ...added });
    if (answer.type !== "ai_task_initiated" && answer.type !== "message_queued") throw new ClientError("unexpected");
    const ahead = answer.type === "message_queued" ? answer.ahead : 0;
    device.turns.told.push({ chat, turn, what: { told: "begun", ahead } });
  } catch (error) {
    if (before !== undefined) device.temporary.set(chat, before);
    // It is not an open question any more: whoever asks for its history gets nothing.
    const asked = device.turns.find(turn);
    if (asked !== undefined) asked.stage = { at: "over", error: "not-found" };
    throw error;
  }
  return { turn, message, reply };
}

/** Takes in an answer; whether somebody waited for it. The server may forget it. */
export async function keepTemporary(device: Device, chat: ChatId, reply: MessageId, answer: Answer): Promise<boolean> {
  const room = roomHere(device, chat);
  const isWaited = room.head.pending.some((one) => one.reply === reply && one.turn === answer.turn && one.parent === answer.parent);
  if (isWaited) {
    const { parent, body, model, createdAt } = answer;
    const proof = Digest.parse(answer.proof);
    const settled = withHead(room, { pending: room.head.pending.filter((one) => one.reply !== reply) });
    const said: Message = { role: "assistant", parent, createdAt, body, model, reason: answer.reason ?? null, refs: [], proof, shared: [] };
    const beside = (answer.beside ?? []).reduce((room, note) => withMessage(room, note.id, besideMessage(note, answer)), settled);
    device.temporary.set(chat, withMessage(beside, reply, said));
  }
  // Whether it heard that is the server's own affair: it keeps the words of such a turn in memory only.
  await requestOne(device, { type: "ai_response_completed", chat, turn: answer.turn }).catch(() => {});
  return isWaited;
}

/** Waits no longer for a reply. */
export function giveUpTemporary(device: Device, chat: ChatId, turn: TurnId): void {
  const room = roomHere(device, chat);
  device.temporary.set(chat, withHead(room, { pending: room.head.pending.filter((one) => one.turn !== turn) }));
}

/** Shows the branch that ends in this message. */
export function showTemporary(device: Device, chat: ChatId, leaf: MessageId): void {
  const room = roomHere(device, chat);
  messageHere(room, leaf);
  device.temporary.set(chat, withHead(room, { leaf }));
}

function roomHere(device: Device, chat: ChatId): Room {
  const room = device.temporary.get(chat);
  if (room === undefined) throw new ClientError("no-such-chat");
  return room;
}

function messageHere(room: Room, id: MessageId): Message {
  const message = roomMessage(room, id);
  if (message === undefined) throw new ClientError("no-such-message");
  return message;
}

/** The chat with one message more, which is shown. */
function withMessage(room: Room, id: MessageId, message: Message): Room {
  const items = new Map(room.items);
  items.set(id, { hash: Digest.ZERO, item: { kind: "message", rev: 1, message } });
  return withHead({ ...room, items, updatedAt: message.createdAt }, { leaf: id });
}

function withHead(room: Room, head: Partial<Room["head"]>): Room {
  return { ...room, head: { ...room.head, ...head }, mark: { rev: room.mark.rev + 1, envelope: Digest.ZERO } };
}
