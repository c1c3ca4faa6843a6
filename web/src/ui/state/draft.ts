// What was typed and not sent, per chat. The worker keeps it at once and sends it, sealed, at most every five seconds. What is typed for a
// chat that does not exist yet is kept on this device only; for a temporary chat nothing is kept.
//
// Easy to get wrong: a draft of another device that arrives while the person types here. It does not replace what is being typed.
import { effect, signal } from "@preact/signals";
import type { CoreEvent } from "../../client/core";
import { isOpen, onLocked } from "./account";
import { core } from "./core";
import { attempt } from "./notes";
import { isTemporary } from "./options";

/** The chat whose draft is being typed; "" is a chat that does not exist yet. */
let place = "";
let typedAt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

export const draft = signal("");
/** The draft of the chat that does not exist yet, and whether the device's own was read since it was opened. */
let unborn = "";
let isUnbornRead = false;

export function startDraft(): void {
  core().on(hear);
  onLocked(() => {
    clearTimeout(timer);
    [timer, place, unborn, isUnbornRead] = [undefined, "", "", false];
    draft.value = "";
  });
  effect(() => {
    if (isOpen.value) void readUnborn();
  });
  // A chat that becomes a temporary one is kept nowhere from then on.
  effect(() => {
    void isTemporary.value;
    if (place === "" && unborn !== "") keepSoon();
  });
}

/** What was typed before the page was loaded or locked. What was typed since stays, too. */
async function readUnborn(): Promise<void> {
  if (isUnbornRead) return;
  const kept = await core().firstDraft().catch(() => null);
  if (isUnbornRead || !isOpen.peek()) return;
  isUnbornRead = true;
  if (kept === null) return;
  unborn = unborn === "" ? kept : `${kept}\n${unborn}`;
  if (place === "") draft.value = unborn;
}

/** Shows the draft of a chat; null for one that does not exist yet. */
export function showDraft(chat: string | null, text: string | null): void {
  const next = chat ?? "";
  if (next === place && Date.now() - typedAt < 30_000) return;
  void flushDraft();
  place = next;
  typedAt = 0;
  draft.value = next === "" ? unborn : (text ?? "");
}

/** The person typed. */
export function type(text: string): void {
  draft.value = text;
  typedAt = Date.now();
  if (place === "") unborn = text;
  keepSoon();
}

/** Not after each letter; but while somebody types on, too. */
function keepSoon(): void {
  timer ??= setTimeout(() => void flushDraft(), SOON);
}

/** Nobody is typing any more: the next look at a chat shows the draft that it has. */
export function letGo(): void {
  typedAt = 0;
}

/** It was sent, or thrown away. */
export function clearDraft(): void {
  clearTimeout(timer);
  timer = undefined;
  draft.value = "";
  typedAt = 0;
  if (place === "") {
    unborn = "";
    void keepUnborn();
  } else void core().setDraft(place, null).catch(() => undefined);
}

/** Gives what was typed to the worker now; done when it is kept. */
export async function flushDraft(): Promise<void> {
  if (timer === undefined) return;
  clearTimeout(timer);
  timer = undefined;
  const text = draft.value;
  if (place === "") await keepUnborn();
  else await core().setDraft(place, text.trim() === "" ? null : text).catch(() => undefined);
}

async function keepUnborn(): Promise<void> {
  await readUnborn();
  if (!isUnbornRead) return;
  await core().setFirstDraft(isTemporary.peek() || unborn.trim() === "" ? null : unborn).catch(() => undefined);
}

const others: (() => Promise<void>)[] = [];

/** Runs before the account is locked: whatever else is typed somewhere is kept first. */
export function beforeLock(keep: () => Promise<void>): void {
  others.push(keep);
}

/** Locks, once what was typed is kept. */
export async function lock(): Promise<void> {
  await Promise.all([flushDraft(), ...others.map((keep) => keep())]);
  await attempt(() => core().lock());
}

function hear(event: CoreEvent): void {
  if (event.type === "draft" && event.chat === place && Date.now() - typedAt > 5_000) draft.value = event.draft ?? "";
}

/** How long what was typed may be in the page only, in milliseconds. */
const SOON = 300;
