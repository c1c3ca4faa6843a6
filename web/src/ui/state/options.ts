// What goes with the next question, and nothing else does: whether the server may keep the words, a focus, what the person ticks for one
// question, and what they chose to have known with every question. Ticked things are for one question and are empty again afterwards.
import { computed, signal } from "@preact/signals";
import type { AskOptions, ChatLine, DataLine, GivenKind } from "../../client/core";
import { isFocusOff } from "../../client/switches";
import { onLocked } from "./account";
import { page } from "./chat";
import { core } from "./core";

export interface GivenItem {
  what: GivenKind;
  name: string;
  text: string;
}

/** A chat that does not exist yet is never to be cached. */
export const isNewUncached = signal(false);
export const focus = signal<string | null>(null);
export const given = signal<GivenItem[]>([]);
/** What the account remembers for the person. A question has the names only. */
export const memories = signal<DataLine[]>([]);
/** Memories that go with every question, by name. None at first. */
export const along = signal<string[]>([]);
/** What is switched off for every question. */
export const switchedOff = signal<string[]>([]);
/** A chat that does not exist yet is to be a temporary one. */
export const isTemporary = signal(false);

/** The kind of account data that a person had remembered, as every client spells it. */
export const MEMORY = "memory";
export const MAX_GIVEN = 3;
export const MAX_GIVEN_BYTES = 4096;
/** What the names of a profile begin with, and how much of it goes where `settings` are shared: as the command line does it. */
const PROFILE = "profile-";
const MOST_PROFILE = 2;
const LONGEST_PROFILE = 1024;
const MOST_NAMES = 200;

onLocked(() => {
  [given.value, memories.value, along.value, switchedOff.value] = [[], [], [], []];
  [focus.value, isTemporary.value, isNewUncached.value] = [null, false, false];
});

/** Loads what is switched off, and what there is to give. */
export async function loadOptions(): Promise<void> {
  switchedOff.value = await core().switchedOff();
  memories.value = await core().dataOf(MEMORY);
  along.value = listOf(await core().data("settings", "along"));
}

/** A list of texts, as a piece of account data has it; none if it is something else. */
export function listOf(body: string | null): string[] {
  try {
    const parsed: unknown = JSON.parse(body ?? "[]");
    return Array.isArray(parsed) ? parsed.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}

export async function setList(name: "along" | "interests", list: readonly string[]): Promise<void> {
  await core().setData("settings", name, list.length > 0 ? JSON.stringify(list) : null);
}

export function isOff(name: string): boolean {
  return switchedOff.value.includes(name);
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;
const sizeOf = (items: readonly GivenItem[]) => items.reduce((sum, item) => sum + bytesOf(item.text), 0);

export const givenBytes = computed(() => sizeOf(given.value));

/** What goes with the next question in this chat: what is ticked, then what goes with every question, as far as it fits. */
export function givenFor(chat: string | null): GivenItem[] {
  const all = given.value.filter(({ what }) => !isOff(what === "summary" ? "similar" : what));
  if (isOff("settings") || isTemporaryChat(chat)) return all;
  const shared = lineHere(chat)?.shares.includes("settings") ? profile() : [];
  for (const name of new Set([...along.value, ...shared])) {
    const memory = memories.value.find((one) => one.name === name);
    if (memory === undefined || all.some((item) => item.what === "settings" && item.name === name)) continue;
    const item: GivenItem = { what: "settings", name, text: memory.body };
    if (all.length < MAX_GIVEN && sizeOf([...all, item]) <= MAX_GIVEN_BYTES) all.push(item);
  }
  return all;
}

function profile(): string[] {
  const names = memories.value.filter(({ name, body }) => name.startsWith(PROFILE) && bytesOf(body) <= LONGEST_PROFILE);
  return names.slice(0, MOST_PROFILE).map(({ name }) => name);
}

function lineHere(chat: string | null): ChatLine | undefined {
  return page.value?.chat.id === chat ? page.value?.chat : undefined;
}

function isTemporaryChat(chat: string | null): boolean {
  return chat === null ? isTemporary.value : lineHere(chat)?.isTemporary === true;
}

/** Whether the server may keep the words of this chat for the next question. */
export function isKept(chat: string | null): boolean {
  if (isOff("cache") || isTemporaryChat(chat)) return false;
  return chat === null ? !isNewUncached.value : (lineHere(chat)?.isCached ?? true);
}

/** The options of the next question in this chat. */
export function optionsFor(chat: string | null): AskOptions {
  const items = givenFor(chat);
  const names = isOff("settings") ? [] : memories.value.map(({ name }) => name).slice(0, MOST_NAMES);
  return {
    keep: isKept(chat) ? "cache" : "turn",
    ...(focus.value !== null && !isFocusOff(switchedOff.value, focus.value) ? { focus: focus.value } : {}),
    ...(names.length > 0 ? { available: names } : {}),
    ...(items.length > 0 ? { given: items } : {}),
    isPerson: true,
  };
}

/** Gives something with the next question, or takes it back. False if it is too much. */
export function toggleGiven(item: GivenItem): boolean {
  const rest = given.value.filter((one) => !(one.what === item.what && one.name === item.name));
  if (rest.length < given.value.length) {
    given.value = rest;
    return true;
  }
  if (rest.length >= MAX_GIVEN || sizeOf([...rest, item]) > MAX_GIVEN_BYTES) return false;
  given.value = [...rest, item];
  return true;
}
