// Reads exports: this program's own JSON, the conversations of big assistants, and Markdown. Whatever cannot be read is left out.
//
//   {chats: [{fields, messages}]}            this program
//   [{title, mapping: {id: {message, parent}}, current_node}]   a tree; the branch that was shown is taken
//   [{name, chat_messages: [{sender, text}]}]                   a list
//   Markdown                                 "**You:** …", "**Assistant:** …", or headings with the same names
//
// Easy to get wrong: trusting the shape. Every step looks before it reads.

export interface ImportedChat {
  title: string | null;
  messages: { role: "user" | "assistant"; body: string; model?: string }[];
}

type Json = Record<string, unknown>;

/** The chats of a file. */
export function readExport(name: string, text: string): ImportedChat[] {
  const chats = name.toLowerCase().endsWith(".json") ? fromJson(text) : [fromMarkdown(text, name.replace(/\.[^.]*$/, ""))];
  return chats.filter((chat) => chat.messages.length > 0).map((chat) => ({ ...chat, title: chat.title?.slice(0, 120) || null }));
}

function fromJson(text: string): ImportedChat[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [];
  }
  const own = isObject(value) && Array.isArray(value["chats"]) ? value["chats"] : null;
  if (own !== null) return own.filter(isObject).map(fromOwn);
  const list = Array.isArray(value) ? value : isObject(value) && Array.isArray(value["conversations"]) ? value["conversations"] : isObject(value) ? [value] : [];
  return list.filter(isObject).map((chat) => (isObject(chat["mapping"]) ? fromTree(chat, chat["mapping"]) : fromList(chat)));
}

/** Our own: the messages form a tree, and the newest leaf's branch is taken. */
function fromOwn(chat: Json): ImportedChat {
  const fields = isObject(chat["fields"]) ? chat["fields"] : {};
  const all = new Map<string, Json>();
  for (const message of asList(chat["messages"])) if (typeof message["id"] === "string") all.set(message["id"], message);
  const parents = new Set([...all.values()].map((message) => message["parent"]));
  const leaves = [...all.values()].filter((message) => !parents.has(message["id"]));
  const leaf = leaves.sort((one, two) => Number(two["created_at"] ?? 0) - Number(one["created_at"] ?? 0))[0];
  const messages: ImportedChat["messages"] = [];
  let steps = all.size;
  for (let at: Json | undefined = leaf; at !== undefined && steps > 0; at = all.get(String(at["parent"])), steps -= 1) {
    const one = said(at["role"], at["body"], at["model"]);
    if (one !== null) messages.unshift(one);
  }
  return { title: asText(fields["title"]), messages };
}

function fromTree(chat: Json, mapping: Json): ImportedChat {
  const messages: ImportedChat["messages"] = [];
  let at: unknown = chat["current_node"];
  for (let steps = Object.keys(mapping).length; steps > 0 && typeof at === "string"; steps -= 1) {
    const node = mapping[at];
    if (!isObject(node)) break;
    const message = isObject(node["message"]) ? node["message"] : {};
    const author = isObject(message["author"]) ? message["author"]["role"] : null;
    const content = isObject(message["content"]) ? message["content"]["parts"] : null;
    const text = Array.isArray(content) ? content.filter((part) => typeof part === "string").join("\n\n") : null;
    const metadata = isObject(message["metadata"]) ? message["metadata"]["model_slug"] : undefined;
    const one = said(author, text, metadata);
    if (one !== null) messages.unshift(one);
    at = node["parent"];
  }
  return { title: asText(chat["title"]), messages };
}

function fromList(chat: Json): ImportedChat {
  const list = asList(chat["chat_messages"] ?? chat["messages"]);
  const messages = list.map((one) => said(one["sender"] ?? one["role"], textOf(one), one["model"])).filter((one) => one !== null);
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
  const messages: ImportedChat["messages"] = [];
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

function said(role: unknown, body: unknown, model: unknown): ImportedChat["messages"][number] | null {
  const who = role === "user" || role === "human" ? "user" : role === "assistant" || role === "model" ? "assistant" : null;
  if (who === null || typeof body !== "string" || body.trim() === "") return null;
  return { role: who, body, ...(typeof model === "string" && who === "assistant" ? { model } : {}) };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asList(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function asText(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}
