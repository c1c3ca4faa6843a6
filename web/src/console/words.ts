// Words of the administrator's page: which language, and how a text of it is made. The words themselves are in ui/lang/, a file a language.
// As in ui/i18n.ts, `t` reads a signal, so that what is drawn follows the language.
import { signal } from "@preact/signals";
import { LANGUAGES } from "languages:console";
import type { Administrator } from "../ui/lang/en";

export { LANGUAGES };
export type Key = keyof Administrator;
/** A language by its code, as its file is called. */
export type Language = string;

const ENGLISH = LANGUAGES[0];

export const language = signal<Language>("en");

/** A text of the page. */
export function t(key: Key, params: Record<string, string | number> = {}): string {
  return wordsOf(language.value)[key].replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    return value === undefined ? whole : typeof value === "number" ? number(value) : value;
  });
}

/** The words of a language; English where there is no such language. */
export function wordsOf(code: Language): Administrator {
  return (LANGUAGES.find((one) => one.code === code) ?? ENGLISH).words;
}

/** Words for a name that the server sent; the name itself where there are none. */
export function named(kind: string, name: string, otherwise = name): string {
  const key = `${kind}.${name}`;
  return key in wordsOf("en") ? t(key as Key) : otherwise;
}

/** Chooses a language; without one, the browser's. */
export function speak(chosen?: Language): void {
  const wanted = globalThis.navigator?.languages ?? [];
  const found = wanted.map((one) => LANGUAGES.find(({ code }) => one.toLowerCase().split("-")[0] === code)?.code).find((code) => code !== undefined);
  const one = LANGUAGES.find(({ code }) => code === (chosen ?? found)) ?? ENGLISH;
  language.value = one.code;
  [document.documentElement.lang, document.documentElement.dir] = [one.code, one.dir];
  document.title = `Confidant · ${t("title")}`;
}

/** A number; small ones with a digit behind the point. */
export function number(value: number): string {
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

export function percent(value: number): string {
  return new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 0 }).format(value);
}

/** How long something took. */
export function lasting(ms: number): string {
  const [value, unit] = ms < 1000 ? [Math.round(ms), "ms"] : ms < 60_000 ? [ms / 1000, "s"] : [ms / 60_000, "min"];
  return `${number(value)} ${unit}`;
}

/** A time of today, or a date with its time. */
export function when(ms: number, now = Date.now()): string {
  const isToday = new Date(ms).toDateString() === new Date(now).toDateString();
  const options: Intl.DateTimeFormatOptions = isToday ? { hour: "2-digit", minute: "2-digit", second: "2-digit" } : { dateStyle: "medium", timeStyle: "short" };
  return new Intl.DateTimeFormat(language.value, options).format(new Date(ms));
}
