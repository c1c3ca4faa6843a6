// Starts the page over a core: the worker's, or a double in tests.
import { effect } from "@preact/signals";
import { render } from "preact";
import type { Core } from "../client/core";
import { App } from "./app";
import { language, t } from "./i18n";
import { isOpen, onLocked, startAccount, watchForNewPage } from "./state/account";
import { page, startChat } from "./state/chat";
import { core, setCore } from "./state/core";
import { flushDraft, startDraft } from "./state/draft";
import { startList } from "./state/list";
import { available, switchedOff } from "./state/options";
import { startPrefs } from "./state/prefs";
import { startRoute } from "./state/route";

export async function start(over: Core, root: Element): Promise<void> {
  setCore(over);
  await startPrefs();
  startRoute();
  render(<App />, root);
  startChat();
  startDraft();
  await startAccount();
  await startList();
  watchTitle();
  watchSwitches();
  watchForNewPage();
  addEventListener("pagehide", flushDraft);
}

/** The title of the window names no chat while it is locked. */
function watchTitle(): void {
  effect(() => {
    const title = page.value?.chat.title;
    document.title = title ? `${title} · Confidant` : language.value && t("appTitle");
  });
  onLocked(() => {
    document.title = t("appTitle");
  });
}

/** What is switched off, and which memories there are, by name. */
function watchSwitches(): void {
  const load = async () => {
    try {
      switchedOff.value = await core().switchedOff();
      available.value = (await core().dataOf("memories")).map((one) => one.name);
    } catch {
      // Locked meanwhile: it is asked again when it is open.
    }
  };
  effect(() => {
    if (isOpen.value) void load();
  });
  core().on((event) => {
    if (event.type === "data") void load();
  });
}
