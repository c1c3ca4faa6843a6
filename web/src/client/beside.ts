// What a chat has beside its branch: what tools said for an answer, and the beginning in few words.
//
//   question ─▶ answer ─▶ question ─▶ answer …            the branch, which a claim is made over
//                 ├─ tool ─▶ tool                          in the transcript: between question and answer
//                 └─ summary                               of all up to here; what follows is sent behind it
//
// The server's model or tool said them, and proved it; nobody answers them. Easy to get wrong: a summary of words that changed. It is kept
// only while a device finds the transcript that the server named, and goes in the write that changes one of the words.

import { type Digest, Kind, type Message, type MessageId, Transcript, type TurnId, besideId } from "../format/index";
import { type Beside, type Heard, MAX_QUERY, cutText } from "../protocol/index";
import { type Room, revOf, roomMessage, roomMessages } from "./room";
import type { BranchItem } from "./turns";

/** Something that is stored beside an answer. */
export interface BesideNote {
  id: MessageId;
  role: "tool" | "summary";
  /** The message that it belongs to. */
  parent: MessageId;
  body: string;
  proof: Digest;
}

/** Whether a message stands beside a branch, if it is not on it. */
export function isBeside(message: Pick<Message, "role" | "proof">): boolean {
  return (message.role === "tool" || message.role === "summary") && message.proof !== null;
}

/** What stands beside the branches of a chat, by the message that it belongs to. */
type Sides = Map<MessageId, [MessageId, Message][]>;

function sidesOf(room: Room): Sides {
  const sides: Sides = new Map();
  for (const [id, , message] of roomMessages(room)) {
    if (message.parent === null || !isBeside(message)) continue;
    const before = sides.get(message.parent);
    if (before === undefined) sides.set(message.parent, [[id, message]]);
    else before.push([id, message]);
  }
  return sides;
}

/** What tools said for an answer, in order. */
function toolsIn(sides: Sides, answer: MessageId): [MessageId, Message][] {
  const tools: [MessageId, Message][] = [];
  const toolOf = (id: MessageId) => sides.get(id)?.find(([, { role }]) => role === "tool");
  for (let tool = toolOf(answer); tool !== undefined; tool = toolOf(tool[0])) tools.push(tool);
  return tools;
}

/** The newest of these, which all belong to one message. */
function newestSummary(all: readonly [MessageId, Message][] | undefined): [MessageId, Message] | undefined {
  const summaries = (all ?? []).filter(([, { role }]) => role === "summary");
  return summaries.sort(([a, one], [b, two]) => one.createdAt - two.createdAt || (a < b ? -1 : 1)).at(-1);
}

/**
 * A branch as the server is sent it, its messages being as they were, else null: the newest summary in the place of what it sums up, what tools
 * said before the answers that came of it.
 */
export async function heardOf(room: Room, branch: readonly BranchItem[]): Promise<Heard[] | null> {
  const sides = sidesOf(room);
  const messages: [MessageId, Message][] = [];
  for (const [id, rev] of branch) {
    const message = roomMessage(room, id);
    if (message === undefined || revOf(room.items.get(id)) !== rev) return null;
    messages.push([id, message]);
  }
  const all: Heard[] = [];
  const last = messages.findLastIndex(([id]) => newestSummary(sides.get(id)) !== undefined);
  const summary = last < 0 ? undefined : newestSummary(sides.get(messages[last]![0]));
  if (summary !== undefined) {
    const transcript = await transcriptOf(sides, messages.slice(0, last + 1));
    all.push({ ...line(summary), count: last + 1, sumsUp: transcript.digest });
  }
  for (const message of messages.slice(last + 1)) {
    all.push(...toolsIn(sides, message[0]).map((tool) => ({ ...line(tool), count: 0 })), line(message));
  }
  return all;
}

function line([id, message]: [MessageId, Message]): Heard {
  const text = cutText(message.body, MAX_QUERY);
  return { id, by: message.role, text, proof: message.proof ?? undefined, count: undefined, sumsUp: undefined };
}

/** The transcript of the beginning of a branch, if the server takes its own proofs. */
async function transcriptOf(sides: Sides, messages: readonly [MessageId, Message][]): Promise<Transcript> {
  let at = await Transcript.start();
  for (const message of messages) {
    for (const [, { role, proof, body }] of [...toolsIn(sides, message[0]), message]) {
      const kind = role === "user" ? Kind.USER : proof === null ? Kind.QUOTED : KINDS[role];
      at = await at.after(kind, cutText(body, MAX_QUERY));
    }
  }
  return at;
}

const KINDS = { assistant: Kind.ASSISTANT, tool: Kind.TOOL, summary: Kind.SUMMARY } as const;

/** What is stored beside an answer to this question. A summary of other words than this device has is left out. */
export async function notesOf(
  room: Room | undefined,
  turn: TurnId,
  question: MessageId,
  reply: MessageId,
  sent: readonly Beside[] | undefined,
): Promise<BesideNote[]> {
  const notes: BesideNote[] = [];
  let last = reply;
  for (const [n, { by, text, proof, count, sumsUp }] of (sent ?? []).entries()) {
    const id = await besideId(turn, n);
    const parent = by === "tool" ? last : await summedUp(room, question, count, sumsUp);
    if (parent === null) continue;
    if (by === "tool") last = id;
    notes.push({ id, role: by, parent, body: text, proof });
  }
  return notes;
}

/** The last of the messages before a question that are summed up, if they are the ones that the server means. */
async function summedUp(room: Room | undefined, question: MessageId, count = 0, sumsUp?: Digest): Promise<MessageId | null> {
  if (room === undefined) return null;
  const covered = pathOf(room, roomMessage(room, question)?.parent ?? null).slice(0, count);
  const last = covered.at(-1);
  if (last === undefined || covered.length !== count) return null;
  const here = await transcriptOf(sidesOf(room), covered);
  return here.digest === sumsUp ? last[0] : null;
}

/** The messages up to this one, the first first. */
function pathOf(room: Room, last: MessageId | null): [MessageId, Message][] {
  const path: [MessageId, Message][] = [];
  for (let at = last; at !== null; ) {
    const message = roomMessage(room, at);
    if (message === undefined) return [];
    path.push([at, message]);
    at = message.parent;
  }
  return path.reverse();
}

/** A note as a message. */
export function besideMessage({ role, parent, body, proof }: BesideNote, { createdAt, model }: { createdAt: number; model: string | null }): Message {
  return { role, parent, createdAt, body, model: role === "summary" ? model : null, reason: null, refs: [], proof, shared: [] };
}

/** Summaries that tell of a message: they go when it changes. */
export function summariesOf(room: Room, id: MessageId): MessageId[] {
  const owner = ownerOf(room, id) ?? id;
  const summaries = roomMessages(room).filter(([, , one]) => one.role === "summary" && isBeside(one));
  return summaries.filter(([, , one]) => pathOf(room, one.parent).some(([at]) => at === owner)).map(([one]) => one);
}

/** What tools said for an answer: it goes with the answer. */
export function toolsOf(room: Room, answer: MessageId): MessageId[] {
  return toolsIn(sidesOf(room), answer).map(([id]) => id);
}

/** The answer that a tool said something for. */
export function ownerOf(room: Room, tool: MessageId): MessageId | null {
  let at: MessageId | null = tool;
  for (let message = roomMessage(room, tool); at !== null && message !== undefined; message = at === null ? undefined : roomMessage(room, at)) {
    if (message.role === "assistant") return at === tool ? null : at;
    if (message.role !== "tool" || !isBeside(message)) return null;
    at = message.parent;
  }
  return null;
}
