// Messages of the open chat that are being edited. What is typed is kept, sealed on this device, so that it is there again after a lock or a
// reload.
//
// It comes with the messages, behind the door, so it looks by itself at which chat is open. Easy to get wrong: drawing every message again for each letter. Which messages are being edited is a signal; what is typed is not.
import { effect, signal } from "@preact/signals";
import { onLocked } from "./account";
import { page } from "./chat";
import { core } from "./core";
import { beforeLock } from "./draft";

interface Editing {
  /** What the box begins with. */
  body: string;
  /** Whether it was kept from before: then it does not take the focus. */
  isKept: boolean;
}

/** The messages that are being edited. */
export const editing = signal<ReadonlyMap<string, Editing>>(new Map());
/** Whose they are; "" if no chat is open. */
let place = "";
/** What was typed so far: a box that goes with its branch and comes back has it. */
const texts = new Map<string, string>();
/** What of it is not kept yet. */
const unkept = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

onLocked(() => {
  clearTimeout(timer);
  timer = undefined;
  unkept.clear();
  leave();
});

/** A chat is shown: what was begun in it before is there again. */
function showEdits(chat: string, kept: readonly { message: string; body: string }[]): void {
  if (chat === place) return;
  closeEdits();
  place = chat;
  editing.value = new Map(kept.map(({ message, body }) => [message, { body, isKept: true }]));
}

/** No chat is shown. */
function closeEdits(): void {
  void flushEdits();
  leave();
}

function leave(): void {
  place = "";
  texts.clear();
  if (editing.peek().size > 0) editing.value = new Map();
}

export function beginEdit(message: string, body: string): void {
  editing.value = new Map<string, Editing>([...editing.value, [message, { body, isKept: false }]]);
}

/** What a box shows when it appears. */
export function textOf(message: string, { body }: Editing): string {
  return texts.get(message) ?? body;
}

/** The person typed. */
export function typeEdit(message: string, body: string): void {
  texts.set(message, body);
  unkept.add(message);
  timer ??= setTimeout(() => void flushEdits(), SOON);
}

/** It was sent, or thrown away. */
export async function endEdit(message: string): Promise<void> {
  texts.delete(message);
  unkept.delete(message);
  editing.value = new Map([...editing.value].filter(([one]) => one !== message));
  await core().setEdit(place, message, null).catch(() => undefined);
}

/** Gives what was typed to the worker now; done when it is kept. */
async function flushEdits(): Promise<void> {
  clearTimeout(timer);
  timer = undefined;
  const [chat, all] = [place, [...texts].filter(([message]) => unkept.has(message))];
  unkept.clear();
  // All at once: what is thrown away after this is asked for after it.
  await Promise.all(all.map(([message, body]) => core().setEdit(chat, message, body).catch(() => undefined)));
}

beforeLock(flushEdits);
effect(() => {
  const shown = page.value;
  if (shown === null) closeEdits();
  else showEdits(shown.chat.id, shown.edits);
});

/** How long what was typed may be in the page only, in milliseconds. */
const SOON = 300;
