// The page of an account that is open: the list at the side, the chat in the middle. On a phone the list is a drawer.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { IconButton } from "../parts/basics";
import { lazy } from "../parts/lazy";
import { closeChat, openChat } from "../state/chat";
import { lock } from "../state/draft";
import { say } from "../state/notes";
import { isKeptHere } from "../state/offline";
import { route } from "../state/route";
import { Banners } from "./banners";
import { ChatHeader } from "./header";
import { KeysDialog, useKeys } from "./keys";
import { Composer } from "./composer";
import { SideBar } from "./list";
import { NewChat } from "./new";
import { refuseFiles } from "./no_files";
import { Thread } from "./thread";

export const isDrawerOpen = signal(false);

const closeDrawer = () => {
  isDrawerOpen.value = false;
};

const loadSettings = async () => (await import("./settings")).Settings;
const loadOutbox = async () => (await import("./outbox")).Outbox;
const Settings = lazy(loadSettings);
const Outbox = lazy(loadOutbox);

/** Loads what may be needed when the server cannot be reached any more, once there is nothing else to do; unless the browser has it anyway. */
function loadRest(): void {
  if (isKeptHere()) return;
  const load = () => void Promise.all([loadSettings(), loadOutbox(), import("./give"), import("./wish"), import("../markdown/highlight")]).catch(() => {});
  if ("requestIdleCallback" in globalThis) requestIdleCallback(load, { timeout: 5000 });
  else setTimeout(load, 1000);
}

export function Shell() {
  useKeys();
  useEffect(loadRest, []);
  useEffect(() => refuseFiles(globalThis, (what) => say(t(what === "all" ? "noFiles" : "noFilesText"))), []);
  const at = route.value;
  const chat = at.page === "chat" ? at.chat : null;
  // Whatever was chosen from the list is what one wants to see; and so it is after locking.
  useEffect(() => closeDrawer, [at]);
  useEffect(() => {
    if (chat === null) closeChat();
    else void openChat(chat);
  }, [chat]);
  return (
    <div class="app">
      <a class="skip" href="#composer" onClick={skip}>{t("skip")}</a>
      <SideBar />
      {isDrawerOpen.value ? <button type="button" class="veil" aria-label={t("close")} onClick={() => { isDrawerOpen.value = false; }} /> : null}
      <main>
        <Banners />
        {at.page === "settings" ? <Settings part={at.part} /> : at.page === "outbox" ? <Outbox /> : <Chat chat={chat} />}
      </main>
      <KeysDialog />
    </div>
  );
}

function Chat({ chat }: { chat: string | null }) {
  return (
    <div class="chat-page">
      <ChatHeader chat={chat} />
      {chat === null ? <NewChat /> : <Thread />}
      <Composer chat={chat} />
    </div>
  );
}

/** On a phone, at the head of whatever is shown: what opens the list, and, as long as the list does not say it, that the page is unlocked. */
export function DrawerButton() {
  return (
    <>
      <span class="phone"><IconButton icon="menu" label={t("chats")} onClick={() => { isDrawerOpen.value = true; }} /></span>
      {isDrawerOpen.value ? null : <span class="phone lock-here"><button type="button" class="lock" title={t("lockNow")} aria-label={t("lockNow")} onClick={() => void lock()}><Icon name="unlocked" size={16} /></button></span>}
    </>
  );
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("composer")?.focus();
}
