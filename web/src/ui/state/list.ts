// The list of chats, in groups by day, and what a search on this device finds.
import { computed, signal } from "@preact/signals";
import type { ChatLine, CoreEvent, SearchProgress, SearchResult } from "../../client/core";
import { isOpen, onLocked } from "./account";
import { core } from "./core";
import { attempt } from "./notes";

export const chats = signal<ChatLine[]>([]);
/** Whether the server has older chats: only a sync tells. */
export const hasOlder = signal(false);
export const isListLoaded = signal(false);
export const query = signal("");
export const found = signal<SearchResult | null>(null);
/** How far the index for search is. */
export const indexed = signal<SearchProgress>({ done: 0, all: 0 });
/** Chats that were just deleted, until it cannot be undone. */
export const hidden = signal<ReadonlySet<string>>(new Set());

export type GroupName = "pinned" | "today" | "yesterday" | "week" | "older";
export interface Group {
  name: GroupName;
  chats: ChatLine[];
}

export const groups = computed(() => grouped(chats.value.filter((chat) => !hidden.value.has(chat.id)), Date.now()));

/** Chats by day, the newest first; pinned ones before all. */
export function grouped(lines: ChatLine[], now: number): Group[] {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const nameOf = (chat: ChatLine): GroupName => {
    if (chat.pinned) return "pinned";
    if (chat.updatedAt >= midnight) return "today";
    if (chat.updatedAt >= midnight - day) return "yesterday";
    return chat.updatedAt >= midnight - 7 * day ? "week" : "older";
  };
  const order: GroupName[] = ["pinned", "today", "yesterday", "week", "older"];
  const sorted = [...lines].sort((one, two) => two.updatedAt - one.updatedAt);
  return order.map((name) => ({ name, chats: sorted.filter((chat) => nameOf(chat) === name) })).filter((group) => group.chats.length > 0);
}

/** One chat of the list. */
export function lineOf(chat: string): ChatLine | undefined {
  return chats.value.find((line) => line.id === chat);
}

export async function startList(): Promise<void> {
  core().on(hear);
  onLocked(() => {
    chats.value = [];
    found.value = null;
    query.value = "";
    indexed.value = { done: 0, all: 0 };
    isListLoaded.value = false;
  });
  if (isOpen.value) await loadList();
}

export async function loadList(): Promise<void> {
  await attempt(async () => {
    chats.value = await core().chats();
    isListLoaded.value = true;
    hasOlder.value = await core().hasOlder();
  });
}

/** Loads chats that are not on this device. */
export async function loadOlder(): Promise<void> {
  await attempt(async () => {
    hasOlder.value = await core().loadOlder();
    chats.value = await core().chats();
  });
}

let asked = 0;

/** Looks for words in everything that is on this device. Nothing leaves it. */
export async function search(words: string): Promise<void> {
  query.value = words;
  const mine = ++asked;
  // One letter says nothing; one sign of Chinese is a word.
  if (/^[\0-\u024f]?$/.test(words.trim())) {
    found.value = null;
    return;
  }
  await attempt(async () => {
    const result = await core().search(words.trim());
    if (mine !== asked) return;
    found.value = result;
    indexed.value = result.index;
  });
}

/** Deletes a chat in a while; until then it can be taken back. */
export async function deleteChat(chat: string, undoMs: number): Promise<boolean> {
  hidden.value = new Set([...hidden.value, chat]);
  const isDone = await attempt(() => core().deleteChat(chat, undoMs));
  if (!isDone) unhide(chat);
  return isDone;
}

export async function undoDelete(chat: string): Promise<void> {
  if (await attempt(() => core().undoDelete(chat))) unhide(chat);
}

function unhide(chat: string): void {
  hidden.value = new Set([...hidden.value].filter((one) => one !== chat));
}

function hear(event: CoreEvent): void {
  if (event.type === "account" && event.account.state === "open") void loadList();
  if (event.type === "connection" && event.connection.state === "online") void loadList();
  if (event.type === "search") {
    indexed.value = event.index;
    // What could not be searched may be found now.
    if (event.index.done === event.index.all && (found.value?.unsearched ?? 0) > 0) void search(query.value);
  }
  if (event.type !== "chats") return;
  const gone = new Set(event.gone);
  const changed = new Map(event.changed.map((line) => [line.id, line]));
  const kept = chats.value.filter((line) => !gone.has(line.id)).map((line) => changed.get(line.id) ?? line);
  const known = new Set(kept.map((line) => line.id));
  chats.value = [...kept, ...event.changed.filter((line) => !known.has(line.id) && !gone.has(line.id))];
}
