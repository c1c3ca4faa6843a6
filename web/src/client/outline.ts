// What stays of a message whose words went: a few small nodes, and a content id (cid) in place of the words.
//
//   whole ─▶ outline: role, parent, time, cid, and a node {type, lines, words, cid} for each part   ─▶ bare: the same without nodes
//                └ previews: the first words of each part, by cid, in a file of their own. They go first, and nobody misses them
//
//   cid = mac(account's key → "cid", "content", words)     equal words have one cid, and it tells nobody else which
//
// Easy to get wrong: taking an outline for a message. It is drawn and nothing else: what is asked, edited or sent is decided when the words
// are here again (thin.ts).

import { type Bytes, base64url, fromUtf8, utf8 } from "../format/bytes";
import type { ChatId, MessageId, Message, Role } from "../format/index";
import type { Key } from "../format/key";
import type { Device } from "./device";
import type { Room } from "./room";

/** A part of a message: what it is and how large, and not its words. */
export interface OutlineNode {
  type: "text" | "code" | "table" | "link" | "paste";
  lines: number;
  words: number;
  /** The language of code. */
  lang?: string;
  cid: string;
}

/** A message without its words. */
export interface Outline {
  role: Role;
  parent: MessageId | null;
  createdAt: number;
  model: string | null;
  cid: string;
  /** Missing where not even they found room. */
  nodes?: OutlineNode[];
}

/** A part of a message, with its words. */
interface Part extends Omit<OutlineNode, "cid"> {
  text: string;
}

/** The parts of a message, by their first characters. A reader of Markdown may cut finer; this is read where there is no room for one. */
export function partsOf(body: string): Part[] {
  const parts: Part[] = [];
  let open: { type: "text" | "code" | "table"; lines: string[]; fence?: string; lang?: string } | null = null;
  const close = () => {
    if (open !== null && open.lines.some((line) => line.trim() !== "")) parts.push(partOf(open.type, open.lines, open.lang));
    open = null;
  };
  for (const line of body.replace(/\r\n?/g, "\n").split("\n")) {
    const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)/.exec(line);
    const now = open as { type: string; lines: string[]; fence?: string } | null;
    if (now?.fence !== undefined) {
      if (line.trim() === now.fence) close();
      else now.lines.push(line);
    } else if (fence !== null) {
      close();
      open = { type: "code", lines: [], fence: fence[1] ?? "```", lang: (fence[2] ?? "").slice(0, 24) };
    } else {
      const type = /^\s*\|.*\|\s*$/.test(line) ? "table" : "text";
      if (now !== null && (now.type !== type || line.trim() === "")) close();
      if (line.trim() === "") continue;
      open ??= { type, lines: [] };
      open.lines.push(line);
    }
  }
  close();
  return parts;
}

function partOf(type: "text" | "code" | "table", lines: string[], lang?: string): Part {
  const text = lines.join("\n");
  const kind = type === "text" ? proseKind(text, lines.length) : type;
  return { type: kind, lines: lines.length, words: text.split(/\s+/).filter((word) => word !== "").length, text, ...(lang ? { lang } : {}) };
}

function proseKind(text: string, lines: number): Part["type"] {
  if (/^<?https?:\/\/\S+>?$/.test(text.trim())) return "link";
  return text.length > PASTE_CHARACTERS || lines > PASTE_LINES ? "paste" : "text";
}

/** The key that makes content ids; null before the account was verified. */
export function cidKey(device: Device): Key | null {
  return device.account?.ring.newest.key ?? null;
}

/** The content id of words. */
export async function cidOf(key: Key, text: string): Promise<string> {
  return base64url(await key.macUnder("cid", "content", utf8(text)));
}

/** A message as an outline, with the first words of its parts by their ids. */
export async function outlineOf(key: Key, message: Message): Promise<{ outline: Outline; previews: [string, string][] }> {
  const { role, parent, createdAt, body } = message;
  const about = { role, parent, createdAt, model: message.model ?? null, cid: await cidOf(key, body) };
  // Nodes would take more room than so few words.
  if (body.length < SHORT) return { outline: about, previews: [[about.cid, beginning(body)]] };
  const nodes: OutlineNode[] = [];
  const previews: [string, string][] = [];
  for (const { text, ...part } of partsOf(body).slice(0, MOST_NODES)) {
    const cid = await cidOf(key, text);
    nodes.push({ ...part, cid });
    previews.push([cid, beginning(text)]);
  }
  return { outline: { ...about, nodes }, previews };
}

/** Outlines of the branch that a chat showed, its first message first. Where not even an outline found room, one place stands for the rest. */
export function outlinedBranch(room: Room): { id: MessageId; outline: Outline; rev: number }[] {
  const path: { id: MessageId; outline: Outline; rev: number }[] = [];
  const met = new Set<MessageId>();
  for (let at = room.head.leaf; at !== null && !met.has(at); ) {
    met.add(at);
    const slot = room.items.get(at);
    if (slot === undefined) break;
    const { item } = slot;
    // What came after the words went is whole, and shown as such.
    if (item?.kind === "message") at = item.message.parent;
    else {
      const outline = slot.outline ?? { role: "assistant", parent: null, createdAt: room.updatedAt, model: null, cid: "" };
      path.push({ id: at, outline, rev: slot.seen ?? 0 });
      at = outline.parent;
    }
  }
  return path.reverse();
}

/** The first words, and not half of a character. */
function beginning(text: string): string {
  return text.slice(0, PREVIEW).replace(/[\ud800-\udbff]$/, "");
}

/** Where the previews of a chat are kept. */
export function previewsFile(chat: ChatId): string {
  return `${PREVIEWS}${chat}`;
}

export function previewsToJson(previews: Iterable<readonly [string, string]>): Bytes {
  return utf8(JSON.stringify([...new Map(previews)]));
}

/** First words of parts, by content id; none if there is no such file any more. */
export async function readPreviews(device: Device, chat: ChatId): Promise<[cid: string, text: string][]> {
  const bytes = await device.cabinet.read(previewsFile(chat)).catch(() => null);
  if (bytes === null) return [];
  // Sealed by this device, so its shape is known.
  return JSON.parse(fromUtf8(bytes) ?? "[]") as [string, string][];
}

export const PREVIEWS = "previews-";
/** Messages of a chat whose first words are kept: those that are seen when it is opened. */
export const PREVIEWED = 24;
const PREVIEW = 160;
const SHORT = 200;
const MOST_NODES = 40;
const PASTE_CHARACTERS = 4_000;
const PASTE_LINES = 60;
