// What goes with the next question, and nothing else does: whether the server may keep the words, a focus, and what the person gives from
// this device by ticking it. Given things are for one question and are empty again afterwards.
import { computed, signal } from "@preact/signals";
import type { AskOptions, GivenKind } from "../../client/core";
import { onLocked } from "./account";

export interface GivenItem {
  what: GivenKind;
  name: string;
  text: string;
}

/** Chats whose words the server keeps only until the answer is stored. */
export const neverCached = signal<ReadonlySet<string>>(new Set());
export const focus = signal<string | null>(null);
export const given = signal<GivenItem[]>([]);
/** Names of settings and memories that could be given; their words stay here. */
export const available = signal<string[]>([]);
/** What is switched off for every question. */
export const switchedOff = signal<string[]>([]);
/** A chat that does not exist yet is to be a temporary one. */
export const isTemporary = signal(false);

export const MAX_GIVEN = 3;
export const MAX_GIVEN_BYTES = 4096;

onLocked(() => {
  neverCached.value = new Set();
  focus.value = null;
  given.value = [];
  available.value = [];
  switchedOff.value = [];
  isTemporary.value = false;
});

export const givenBytes = computed(() => given.value.reduce((sum, item) => sum + new TextEncoder().encode(item.text).length, 0));

/** The options of the next question in this chat. */
export function optionsFor(chat: string | null): AskOptions {
  const isKept = !(chat !== null && neverCached.value.has(chat)) && !isTemporary.value && !switchedOff.value.includes("cache");
  return {
    keep: isKept ? "cache" : "turn",
    ...(focus.value !== null && !switchedOff.value.includes("focus") ? { focus: focus.value } : {}),
    ...(available.value.length > 0 && !switchedOff.value.includes("settings") ? { available: available.value } : {}),
    ...(given.value.length > 0 ? { given: given.value } : {}),
  };
}

/** Gives something with the next question, or takes it back. False if it is too much. */
export function toggleGiven(item: GivenItem): boolean {
  const rest = given.value.filter((one) => !(one.what === item.what && one.name === item.name));
  if (rest.length < given.value.length) {
    given.value = rest;
    return true;
  }
  const bytes = givenBytes.value + new TextEncoder().encode(item.text).length;
  if (rest.length >= MAX_GIVEN || bytes > MAX_GIVEN_BYTES) return false;
  given.value = [...rest, item];
  return true;
}

export function setNeverCached(chat: string, isNever: boolean): void {
  const next = new Set(neverCached.value);
  if (isNever) next.add(chat);
  else next.delete(chat);
  neverCached.value = next;
}
