// Short notes at the foot of the page: something was done, and how to take it back; or something failed, by its name.
import { signal } from "@preact/signals";
import { t, type Key } from "../i18n";
import { words as en } from "../lang/en";
import { nameOf } from "./core";

export interface Note {
  id: number;
  text: string;
  kind: "done" | "problem";
  action?: { label: string; run: () => void };
}

export const notes = signal<Note[]>([]);
let next = 1;

/** Says something for a while. */
export function say(text: string, action?: Note["action"], ms = 6_000): number {
  return add({ text, kind: "done", ...(action ? { action } : {}) }, ms);
}

/** Says that something failed, by the name of the error: what happened, and what to do. */
export function sayProblem(error: unknown, ms = 9_000): void {
  add({ text: problemText(nameOf(error)), kind: "problem" }, ms);
}

/** Takes a note away. */
export function dismiss(id: number): void {
  notes.value = notes.value.filter((note) => note.id !== id);
}

/** The words for the name of an error: what happened, and what to do. */
export function problemText(name: string): string {
  const key = `error.${name}`;
  return key in en ? t(key as Key) : t("error.other", { name });
}

/** Runs a command; what goes wrong is said. Gives whether it was done. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    sayProblem(error);
    return false;
  }
}

function add(note: Omit<Note, "id">, ms: number): number {
  const id = next++;
  notes.value = [...notes.value.slice(-3), { ...note, id }];
  setTimeout(() => dismiss(id), ms);
  return id;
}
