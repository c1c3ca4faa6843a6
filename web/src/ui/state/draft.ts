// What was typed and not sent, per chat. The worker keeps it at once and sends it, sealed, at most every five seconds.
//
// Easy to get wrong: a draft of another device that arrives while the person types here. It does not replace what is being typed.
import { signal } from "@preact/signals";
import type { CoreEvent } from "../../client/core";
import { onLocked } from "./account";
import { core } from "./core";

/** The chat whose draft is being typed; "" is a chat that does not exist yet. */
let place = "";
let typedAt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

export const draft = signal("");
/** A chat that does not exist yet keeps its draft only here. */
let unborn = "";

export function startDraft(): void {
  core().on(hear);
  onLocked(() => {
    draft.value = "";
    unborn = "";
    place = "";
  });
}

/** Shows the draft of a chat; null for one that does not exist yet. */
export function showDraft(chat: string | null, text: string | null): void {
  const next = chat ?? "";
  if (next === place && Date.now() - typedAt < 30_000) return;
  flushDraft();
  place = next;
  typedAt = 0;
  draft.value = next === "" ? unborn : (text ?? "");
}

/** The person typed. */
export function type(text: string): void {
  draft.value = text;
  typedAt = Date.now();
  if (place === "") {
    unborn = text;
    return;
  }
  clearTimeout(timer);
  timer = setTimeout(flushDraft, 600);
}

/** It was sent, or thrown away. */
export function clearDraft(): void {
  clearTimeout(timer);
  timer = undefined;
  draft.value = "";
  typedAt = 0;
  if (place === "") unborn = "";
  else void core().setDraft(place, null).catch(() => undefined);
}

/** Gives what was typed to the worker now. */
export function flushDraft(): void {
  if (timer === undefined) return;
  clearTimeout(timer);
  timer = undefined;
  const text = draft.value;
  if (place !== "") void core().setDraft(place, text.trim() === "" ? null : text).catch(() => undefined);
}

function hear(event: CoreEvent): void {
  if (event.type === "draft" && event.chat === place && Date.now() - typedAt > 5_000) draft.value = event.draft ?? "";
}
