// The page of an account that is open: the list at the side, the chat in the middle. On a phone the list is a drawer.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t } from "../i18n";
import { IconButton } from "../parts/basics";
import { lazy } from "../parts/lazy";
import { closeChat, openChat } from "../state/chat";
import { route } from "../state/route";
import { Banners } from "./banners";
import { ChatHeader } from "./header";
import { KeysDialog, useKeys } from "./keys";
import { Composer } from "./composer";
import { SideBar } from "./list";
import { NewChat } from "./new";
import { Thread } from "./thread";

export const isDrawerOpen = signal(false);

const loadSettings = async () => (await import("./settings")).Settings;
const loadOutbox = async () => (await import("./outbox")).Outbox;
const Settings = lazy(loadSettings);
const Outbox = lazy(loadOutbox);

/** Loads what may be needed when the server cannot be reached any more, once there is nothing else to do. */
function loadRest(): void {
  const load = () => void Promise.all([loadSettings(), loadOutbox(), import("./give"), import("../markdown/highlight")]).catch(() => {});
  if ("requestIdleCallback" in globalThis) requestIdleCallback(load, { timeout: 5000 });
  else setTimeout(load, 1000);
}

export function Shell() {
  useKeys();
  useEffect(loadRest, []);
  const at = route.value;
  const chat = at.page === "chat" ? at.chat : null;
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

/** Opens the list on a phone. */
export function DrawerButton() {
  return <span class="phone"><IconButton icon="menu" label={t("chats")} onClick={() => { isDrawerOpen.value = true; }} /></span>;
}

function skip(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("composer")?.focus();
}
