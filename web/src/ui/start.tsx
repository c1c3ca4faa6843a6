// Starts the page over a core: the worker's, or a double in tests.
import { effect } from "@preact/signals";
import { render } from "preact";
import type { Core } from "../client/core";
import { App } from "./app";
import { language, t } from "./i18n";
import { readable } from "./markdown/links";
import { isOpen, onLocked, startAccount } from "./state/account";
import { startBrowser } from "./state/browser";
import { isWaitingForPerson, page, startChat } from "./state/chat";
import { core, setCore } from "./state/core";
import { flushDraft, startDraft } from "./state/draft";
import { startList } from "./state/list";
import { startOffline } from "./state/offline";
import { loadOptions } from "./state/options";
import { startPrefs } from "./state/prefs";
import { startRoute } from "./state/route";

export async function start(over: Core, root: Element): Promise<void> {
  setCore(over);
  const looked = startBrowser();
  await startPrefs();
  startRoute();
  await looked;
  render(<App />, root);
  startChat();
  startDraft();
  startOffline();
  await startAccount();
  await startList();
  watchTitle();
  watchSwitches();
  addEventListener("pagehide", () => void flushDraft());
}

/** The title of the window names no chat while it is locked. A dot says in a hidden tab that an answer waits for the person. */
function watchTitle(): void {
  effect(() => {
    const title = page.value?.chat.title;
    const name = title ? `${readable(title)} · Confidant` : language.value && t("appTitle");
    document.title = isWaitingForPerson() ? `● ${name}` : name;
  });
  onLocked(() => {
    document.title = t("appTitle");
  });
}

/** What is switched off, and which memories there are, by name. */
function watchSwitches(): void {
  const load = async () => {
    try {
      await loadOptions();
    } catch {
      // Locked meanwhile: it is asked again when it is open.
    }
  };
  effect(() => {
    if (isOpen.value) void load();
  });
  core().on((event) => {
    // A sync may have brought what another device switched.
    if (event.type === "data" || (event.type === "connection" && event.connection.state === "online")) void load();
  });
}
