// What this browser prefers: theme, language, whether Enter sends, and whether the page is kept for starts without a server. No secrets and no words, so localStorage is good enough;
// where it is not allowed, choices last as long as the page.
import { effect, signal } from "@preact/signals";
import { LANGUAGES, speak, type Language } from "../i18n";

export type Theme = "system" | "light" | "dark";

export const theme = signal<Theme>(read("theme", ["system", "light", "dark"]) ?? "system");
export const chosenLanguage = signal<Language | null>(read("language", LANGUAGES.map(({ code }) => code)));
export const enterSends = signal(read("enter", ["sends", "breaks"]) !== "breaks");
/** Whether the page itself is kept in this browser, so that it starts without a server. */
export const startsOffline = signal(read("offline", ["kept", "not"]) !== "not");

/** Applies the choices, and keeps them when they change. */
export async function startPrefs(): Promise<void> {
  effect(() => {
    const root = document.documentElement;
    if (theme.value === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme.value);
    write("theme", theme.value);
  });
  effect(() => write("enter", enterSends.value ? "sends" : "breaks"));
  effect(() => write("offline", startsOffline.value ? "kept" : "not"));
  effect(() => write("language", chosenLanguage.value));
  await speak(chosenLanguage.value).catch(() => undefined);
}

/** Speaks another language from now on. */
export async function chooseLanguage(code: Language | null): Promise<void> {
  chosenLanguage.value = code;
  await speak(code).catch(() => undefined);
}

function read<T extends string>(name: string, allowed: readonly T[]): T | null {
  try {
    const value = localStorage.getItem(`page.${name}`);
    return allowed.find((one) => one === value) ?? null;
  } catch {
    return null;
  }
}

function write(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`page.${name}`);
    else localStorage.setItem(`page.${name}`, value);
  } catch {
    // Not allowed here: the choice lasts as long as the page.
  }
}
