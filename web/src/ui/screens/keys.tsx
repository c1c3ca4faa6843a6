// The keyboard map: what each key does, and the list of them behind `?`.
//
// Easy to get wrong: keys that are also letters. They do nothing while the focus is where one types.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { t, type Key } from "../i18n";
import { copyEmbed } from "../message/clipboard";
import { Dialog } from "../parts/dialog";
import { page, runningTurn, stop } from "../state/chat";
import { lock } from "../state/draft";
import { chats, groups } from "../state/list";
import { say } from "../state/notes";
import { go, route } from "../state/route";
import { startNew } from "./list";
import { isDrawerOpen } from "./shell";

export const areKeysShown = signal(false);

interface Binding {
  keys: string;
  name: Key;
  matches: (event: KeyboardEvent, isTyping: boolean) => boolean;
  run: () => void;
}

const command = (event: KeyboardEvent) => (event.ctrlKey || event.metaKey) && !event.altKey;

/** The map. What is listed is what works. */
export const BINDINGS: Binding[] = [
  { keys: "Ctrl K", name: "key.search", matches: (event) => command(event) && !event.shiftKey && event.key.toLowerCase() === "k", run: focusSearch },
  { keys: "Ctrl ⇧ O", name: "key.new", matches: (event) => command(event) && event.shiftKey && event.key.toLowerCase() === "o", run: () => startNew(false) },
  { keys: "/", name: "key.write", matches: (event, isTyping) => !isTyping && plain(event) && event.key === "/", run: () => document.getElementById("composer")?.focus() },
  { keys: "Esc", name: "key.stop", matches: (event) => event.key === "Escape" && plain(event), run: stopOrClose },
  { keys: "Ctrl ⇧ ;", name: "key.copyCode", matches: (event) => command(event) && event.shiftKey && (event.key === ";" || event.key === ":"), run: () => void copyLastCode() },
  { keys: "Alt ↑", name: "key.before", matches: (event) => event.altKey && event.key === "ArrowUp", run: () => step(-1) },
  { keys: "Alt ↓", name: "key.next", matches: (event) => event.altKey && event.key === "ArrowDown", run: () => step(1) },
  { keys: "Ctrl ⇧ L", name: "key.lock", matches: (event) => command(event) && event.shiftKey && event.key.toLowerCase() === "l", run: () => void lock() },
  { keys: "?", name: "key.help", matches: (event, isTyping) => !isTyping && !command(event) && event.key === "?", run: () => { areKeysShown.value = !areKeysShown.value; } },
];

/** Listens while the page is open. */
export function useKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
      const binding = BINDINGS.find((one) => one.matches(event, isTypingIn(event.target)));
      if (binding === undefined) return;
      if (event.key !== "Escape") event.preventDefault();
      binding.run();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

export function KeysDialog() {
  if (!areKeysShown.value) return null;
  return (
    <Dialog title={t("keysTitle")} onClose={() => { areKeysShown.value = false; }}>
      <dl class="keys">
        <dt><kbd>Enter</kbd></dt><dd>{t("hintSends")}</dd>
        <dt><kbd>Shift Enter</kbd></dt><dd>{t("hintLine")}</dd>
        {BINDINGS.map((binding) => [<dt key={binding.keys}><kbd>{binding.keys}</kbd></dt>, <dd key={`${binding.keys} `}>{t(binding.name)}</dd>])}
      </dl>
    </Dialog>
  );
}

function plain(event: KeyboardEvent): boolean {
  return !event.ctrlKey && !event.metaKey && !event.altKey;
}

function isTypingIn(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(): void {
  isDrawerOpen.value = true;
  const focus = () => document.getElementById("search")?.focus();
  // At once, for whoever types on; and again where it is shown only now, as on a phone.
  focus();
  requestAnimationFrame(focus);
}

function stopOrClose(): void {
  if (isDrawerOpen.value) isDrawerOpen.value = false;
  else {
    const turn = runningTurn();
    if (turn !== null) void stop(turn);
  }
}

/** The next chat of the list, as it stands there. */
function step(by: number): void {
  const order = groups.value.flatMap((group) => group.chats);
  if (order.length === 0 || chats.value.length === 0) return;
  const now = route.value.page === "chat" ? route.value.chat : "";
  const at = order.findIndex((chat) => chat.id === now);
  const next = order[Math.min(order.length - 1, Math.max(0, at + by))];
  if (next !== undefined) go({ page: "chat", chat: next.id });
}

/** Copies the last block of code of the chat. */
async function copyLastCode(): Promise<void> {
  const bodies = page.value?.messages.map((message) => message.body) ?? [];
  for (const body of bodies.reverse()) {
    const blocks = [...body.matchAll(/^(`{3,}|~{3,})([\w+#.-]*)[^\n]*\n([\s\S]*?)^\1[ \t]*$/gm)];
    const last = blocks.at(-1);
    if (last === undefined) continue;
    await copyEmbed({ type: "code", lang: last[2] ?? "", text: (last[3] ?? "").replace(/\n$/, "") });
    say(t("copied"), undefined, 1_500);
    return;
  }
}
