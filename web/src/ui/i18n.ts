// Words of the page in the person's language. One file a language: lang/en.ts says which keys there are; the others must have the same. The
// build lists them (languages.mjs).
//
//   t("unsent", { n: 3 })  ──▶  "3 messages not sent"     a text with {one, other} is chosen by the language's plural rules
//
// English is in the first load, other languages come when they are chosen. Easy to get wrong: reading `t` outside of a component. It
// reads a signal, so that a component draws again when the language changes.
import { signal } from "@preact/signals";
import { LANGUAGES } from "languages:page";
import { type Key, type Words, words as en } from "./lang/en";

export type { Key, Words };
/** A language by its code, as its file is called. */
export type Language = string;
export { LANGUAGES };

export const language = signal<Language>("en");
const words = signal<Words>(en);

/** A text of the page. */
export function t(key: Key, params?: Record<string, string | number>): string {
  return fill(words.value, language.value, key, params);
}

/** Chooses a language; `null` for the browser's. */
export async function speak(chosen: Language | null): Promise<void> {
  const code = chosen ?? preferred(globalThis.navigator?.languages ?? []);
  const found = LANGUAGES.find((one) => one.code === code) ?? LANGUAGES[0];
  words.value = await found.load();
  language.value = found.code;
  [document.documentElement.lang, document.documentElement.dir] = [found.code, found.dir];
}

/** The first language that there is. */
export function preferred(wanted: readonly string[]): Language {
  for (const one of wanted) {
    const found = LANGUAGES.find((has) => one.toLowerCase().split("-")[0] === has.code);
    if (found !== undefined) return found.code;
  }
  return "en";
}

/** Fills in a text of a language. Exported for tests. */
export function fill(from: Words, code: Language, key: Key, params: Record<string, string | number> = {}): string {
  const entry = from[key];
  const text = typeof entry === "string" ? entry : entry[plural(code, Number(params["n"] ?? 0))];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? number(code, value) : value;
  });
}

function plural(code: Language, n: number): "one" | "other" {
  return new Intl.PluralRules(code).select(n) === "one" ? "one" : "other";
}

function number(code: Language, value: number): string {
  return new Intl.NumberFormat(code).format(value);
}

/** A time of day, or a date where it was another day. */
export function when(ms: number, now = Date.now()): string {
  const date = new Date(ms);
  const isToday = date.toDateString() === new Date(now).toDateString();
  const options: Intl.DateTimeFormatOptions = isToday ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short", year: "numeric" };
  return new Intl.DateTimeFormat(language.value, options).format(date);
}

/** A day. */
export function onDay(ms: number): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeZone: "UTC" }).format(new Date(ms));
}

/** A date with its time. */
export function exactly(ms: number): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "short" }).format(new Date(ms));
}
