// The head of a chat: its title (a click tells what else is known of it: a phone has no room for tags beside it), and what can be done with it.
import type { TargetedInputEvent } from "preact";
import { useState } from "preact/hooks";
import type { ChatLine, ChatPage } from "../../client/core";
import { exactly, t, when } from "../i18n";
import { readable } from "../markdown/links";
import { Dialog, Menu } from "../parts/dialog";
import { useFocus } from "../parts/basics";
import { canWrite } from "../state/account";
import { page } from "../state/chat";
import { core } from "../state/core";
import { deleteChat, undoDelete } from "../state/list";
import { attempt, say } from "../state/notes";
import { isTemporary } from "../state/options";
import { go } from "../state/route";
import { download } from "./download";
import { titleOf } from "./list";
import { DrawerButton } from "./shell";
import { GENERAL, hasDrawing, Topic } from "../topics";

const UNDO_MS = 8_000;

export function ChatHeader({ chat }: { chat: string | null }) {
  const [isRenaming, setRenaming] = useState(false);
  const [isTelling, setTelling] = useState(false);
  const shown = page.value;
  const line = shown?.chat.id === chat ? shown?.chat : undefined;
  if (chat === null || line === undefined) {
    return <header class="head"><DrawerButton /><h1>{t(chat === null ? (isTemporary.value ? "temporaryChat" : "newChat") : "opening")}</h1></header>;
  }
  const items = [
    { label: t("rename"), icon: "edit" as const, run: () => setRenaming(true) },
    { label: t(line.pinned ? "unpin" : "pin"), icon: "pin" as const, run: () => void attempt(() => core().setPinned(line.id, !line.pinned)) },
    { label: t("exportMarkdown"), icon: "download" as const, run: () => void save(line.id, "markdown") },
    { label: t("exportJson"), icon: "download" as const, run: () => void save(line.id, "json") },
    { label: t("deleteChat"), icon: "trash" as const, isDanger: true, run: () => void remove(line.id) },
  ];
  return (
    <header class="head">
      <DrawerButton />
      {isRenaming ? <Rename chat={line.id} title={line.title ?? ""} onDone={() => setRenaming(false)} /> : <h1 dir="auto"><button type="button" class="about" aria-haspopup="dialog" title={t("aboutChat")} onClick={() => setTelling(true)}>{line.icon !== null && hasDrawing(line.icon) ? <Topic icon={line.icon} size={15} /> : null}{titleOf(line)}</button></h1>}
      <span class="tags" dir="auto">{about(line).slice(0, 4).map(readable).join(" · ")}</span>
      {shown?.asOf ? <span class="as-of" title={`${t("asOfNote")} ${exactly(shown.asOf.at)}`}>{t("asOf", { when: when(shown.asOf.at) })}</span> : null}
      {canWrite.value ? <Menu label={t("chatMenu")} items={line.isTemporary ? items.slice(4) : items} /> : null}
      {isTelling && shown != null ? <Details shown={shown} onClose={() => setTelling(false)} /> : null}
    </header>
  );
}

/** All that is known of a chat besides its messages. */
function Details({ shown: { chat, asOf }, onClose }: { shown: ChatPage; onClose: () => void }) {
  const rows: [string, string | null][] = [
    [t("category"), chat.category],
    [t("tags"), chat.tags.length > 0 ? chat.tags.map(readable).join(" · ") : null],
    [t("summary"), chat.summary],
    [t("asOfLabel"), asOf === null ? null : `${exactly(asOf.at)}. ${t("asOfNote")}`],
  ];
  return (
    <Dialog title={titleOf(chat)} onClose={onClose} kind="about-chat">
      {chat.isTemporary ? <p>{t("temporaryNote")}</p> : null}
      <dl>{rows.map(([name, value]) => (value === null || value === "" ? null : <div key={name}><dt>{name}</dt><dd dir="auto">{readable(value)}</dd></div>))}</dl>
    </Dialog>
  );
}

/** Its category, where that says something, and its tags. */
function about({ category, tags }: ChatLine): string[] {
  return [...new Set([...(category !== null && category !== GENERAL ? [category] : []), ...tags])];
}

function Rename({ chat, title, onDone }: { chat: string; title: string; onDone: () => void }) {
  const [text, setText] = useState(title);
  const save = async () => {
    onDone();
    if (text.trim() !== "" && text !== title) await attempt(() => core().rename(chat, text.trim()));
  };
  return (
    <form
      class="rename"
      onSubmit={(event: Event) => {
        event.preventDefault();
        void save();
      }}
    >
      <input
        aria-label={t("rename")}
        value={text}
        maxLength={120}
        dir="auto"
        ref={useFocus(true)}
        onInput={(event: TargetedInputEvent<HTMLInputElement>) => setText(event.currentTarget.value)}
        onBlur={() => void save()}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === "Escape") onDone();
        }}
      />
    </form>
  );
}

async function save(chat: string, as: "markdown" | "json"): Promise<void> {
  await attempt(async () => download(`chat.${as === "json" ? "json" : "md"}`, await core().exportChat(chat, as), as === "json" ? "application/json" : "text/markdown"));
}

async function remove(chat: string): Promise<void> {
  if (!(await deleteChat(chat, UNDO_MS))) return;
  go({ page: "new" });
  say(t("deletedChat"), { label: t("undo"), run: () => void undoDelete(chat).then(() => go({ page: "chat", chat })) }, UNDO_MS - 500);
}
