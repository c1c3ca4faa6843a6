// Reads exports: this program's own JSON, the conversations of big assistants, and Markdown. Whatever cannot be read is left out, and counted.
//
//   {chats: [{fields, messages, embeds}], data}   this program: everything   ┐ the branch of the newest leaf; fields, memories
//   {title, fields, messages}                     this program: one chat     ┘ and what messages show, with them
//   [{title, mapping: {id: {message, parent}}, current_node}]   a tree; the branch that was shown is taken
//   [{name, chat_messages: [{sender, text}]}]                   a list
//   Markdown                                 "**You:** …", "**Assistant:** …", or headings with the same names
//   ZIP                                      an archive with such files (unzip.ts)
//
// Easy to get wrong: trusting the shape. Every step looks before it reads.
import type { Import, ImportedChat } from "../../client/core";
import { isArchive, unzip } from "./unzip";

/** What was found in a file. */
export interface Read extends Import {
  /** Messages and chats that cannot be read. */
  skipped: number;
}

type Json = Record<string, unknown>;
type Message = ImportedChat["messages"][number];

/** The chats of a file, or of the files in an archive. */
export async function readFile(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<Read> {
  if (!isArchive(bytes)) return readExport(name, new TextDecoder().decode(bytes));
  const all: Read = { chats: [], memories: [], skipped: 0 };
  const named = await unzip(bytes, (one) => /^conversations.*\.json$/i.test(one));
  const files = named.length > 0 ? named : await unzip(bytes, (one) => /\.(?:json|md)$/i.test(one));
  for (const one of files) {
    const { chats, memories, skipped } = readExport(one.name, one.text);
    all.chats.push(...chats);
    all.memories.push(...memories);
    all.skipped += skipped;
  }
  return all;
}

/** The chats of a text. */
export function readExport(name: string, text: string): Read {
  const read: Read = { chats: [], memories: [], skipped: 0 };
  const chats = name.toLowerCase().endsWith(".json") ? fromJson(text, read) : [fromMarkdown(text, name.replace(/\.[^.]*$/, ""))];
  read.chats = chats.filter((chat) => chat.messages.length > 0).map((chat) => ({ ...chat, title: chat.title?.slice(0, 120) || null }));
  return read;
}

function fromJson(text: string, read: Read): ImportedChat[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  if (isObject(value) && Array.isArray(value["chats"])) {
    read.memories = objects(value["data"], null).flatMap(({ kind, name, body }) => (kind === "memory" && typeof name === "string" && typeof body === "string" ? [{ name, body }] : []));
    return objects(value["chats"], read).map((chat) => fromOwn(chat, read));
  }
  if (isObject(value) && isObject(value["fields"])) return [fromOwn(value, read)];
  const list = Array.isArray(value) ? value : isObject(value) && Array.isArray(value["conversations"]) ? value["conversations"] : isObject(value) ? [value] : [];
  return objects(list, read).map((chat) => (isObject(chat["mapping"]) ? fromTree(chat, chat["mapping"], read) : fromList(chat, read)));
}

/** Our own: the messages form a tree, and the newest leaf's branch is taken. */
function fromOwn(chat: Json, read: Read): ImportedChat {
  const fields: Record<string, string> = {};
  for (const [name, body] of Object.entries(isObject(chat["fields"]) ? chat["fields"] : {})) if (typeof body === "string") fields[name] = body;
  const all = new Map<string, Json>();
  for (const message of objects(chat["messages"], read)) {
    if (typeof message["id"] === "string") all.set(message["id"], message);
    else read.skipped += 1;
  }
  const parents = new Set([...all.values()].map((message) => message["parent"]));
  const leaves = [...all.values()].filter((message) => !parents.has(message["id"]));
  const leaf = leaves.sort((one, two) => Number(two["created_at"] ?? 0) - Number(one["created_at"] ?? 0))[0];
  const messages: Message[] = [];
  let steps = all.size;
  for (let at: Json | undefined = leaf; at !== undefined && steps > 0; at = all.get(String(at["parent"])), steps -= 1) {
    const role = at["role"] === "tool" || at["role"] === "summary" ? at["role"] : null;
    const one = said(role === null ? at["role"] : "assistant", at["body"], at["model"], at["created_at"], read);
    const refs = Array.isArray(at["refs"]) ? at["refs"].filter((ref) => typeof ref === "string") : [];
    if (one !== null) messages.unshift({ ...one, ...(role === null ? {} : { role }), ...(refs.length > 0 ? { refs } : {}) });
  }
  const embeds = Object.entries(isObject(chat["embeds"]) ? chat["embeds"] : {}).filter((one): one is [string, string] => typeof one[1] === "string");
  const { title, ...others } = fields;
  const more = { ...(Object.keys(others).length > 0 ? { fields: others } : {}), ...(embeds.length > 0 ? { embeds: Object.fromEntries(embeds) } : {}) };
  return { title: asText(title ?? chat["title"]), messages, ...more };
}

function fromTree(chat: Json, mapping: Json, read: Read): ImportedChat {
  const messages: Message[] = [];
  let at: unknown = chat["current_node"];
  for (let steps = Object.keys(mapping).length; steps > 0 && typeof at === "string"; steps -= 1) {
    const node = mapping[at];
    if (!isObject(node)) break;
    const message = isObject(node["message"]) ? node["message"] : {};
    const author = isObject(message["author"]) ? message["author"]["role"] : null;
    const content = isObject(message["content"]) ? message["content"]["parts"] : null;
    const text = Array.isArray(content) && (content.length === 0 || content.some((part) => typeof part === "string")) ? content.filter((part) => typeof part === "string").join("\n\n") : null;
    const metadata = isObject(message["metadata"]) ? message["metadata"]["model_slug"] : undefined;
    const one = said(author, text, metadata, message["create_time"], read);
    if (one !== null) messages.unshift(one);
    at = node["parent"];
  }
  return { title: asText(chat["title"]), messages };
}

function fromList(chat: Json, read: Read): ImportedChat {
  const list = objects(chat["chat_messages"] ?? chat["messages"], read);
  const messages = list.map((one) => said(one["sender"] ?? one["role"], textOf(one), one["model"], one["created_at"], read)).filter((one) => one !== null);
  return { title: asText(chat["name"] ?? chat["title"]), messages };
}

function textOf(message: Json): unknown {
  const content = message["text"] ?? message["body"] ?? message["content"];
  if (!Array.isArray(content)) return content;
  return content.map((part) => (typeof part === "string" ? part : isObject(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}

const SPEAKER = /^(?:#{1,4}\s*|\*\*)(you|user|human|me|du|ich|assistant|model|ai|assistent)\b:?\s*(?:\*\*)?:?\s*/i;

function fromMarkdown(text: string, name: string): ImportedChat {
  let title: string | null = name;
  const messages: Message[] = [];
  for (const line of text.split(/\r?\n/)) {
    const speaker = SPEAKER.exec(line);
    const last = messages.at(-1);
    if (speaker !== null) {
      const role = /^(?:you|user|human|me|du|ich)$/i.test(speaker[1] ?? "") ? "user" : "assistant";
      messages.push({ role, body: line.slice(speaker[0].length) });
    } else if (last !== undefined) last.body += `\n${line}`;
    else if (/^#\s+\S/.test(line)) title = line.replace(/^#\s+/, "");
  }
  return { title, messages: messages.map((one) => ({ ...one, body: one.body.trim() })).filter((one) => one.body !== "") };
}

/** A message, if somebody said something. One without a text that can be read is counted; what a system says to itself is not one. */
function said(role: unknown, body: unknown, model: unknown, at: unknown, read: Read): Message | null {
  const who = role === "user" || role === "human" ? "user" : role === "assistant" || role === "model" ? "assistant" : null;
  if (who === null || (typeof body === "string" && body.trim() === "")) return null;
  if (typeof body !== "string") {
    read.skipped += 1;
    return null;
  }
  const createdAt = when(at);
  return { role: who, body, ...(typeof model === "string" && who === "assistant" ? { model } : {}), ...(createdAt === null ? {} : { createdAt }) };
}

/** When something was said, in milliseconds: seconds or milliseconds since 1970, or a date in words. */
function when(at: unknown): number | null {
  const ms = typeof at === "string" ? Date.parse(at) : typeof at === "number" ? (at < 1e11 ? at * 1000 : at) : Number.NaN;
  return Number.isFinite(ms) && ms > 0 ? Math.round(ms) : null;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects of a list; whatever else is in it is counted. */
function objects(value: unknown, read: Read | null): Json[] {
  const all: unknown[] = Array.isArray(value) ? value : [];
  const found = all.filter(isObject);
  if (read !== null) read.skipped += all.length - found.length;
  return found;
}

function asText(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}
