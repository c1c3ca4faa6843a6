// The list of chats at the side: new chat, search on this device, groups by day, and at the foot who is here and whether it is locked.
import type { TargetedInputEvent } from "preact";
import type { ChatLine, Found, SearchResult } from "../../client/core";
import { t } from "../i18n";
import { Icon, Wax } from "../icons";
import { readable } from "../markdown/links";
import { After, IconButton, Spinner } from "../parts/basics";
import { account, connection, outbox } from "../state/account";
import { lock } from "../state/draft";
import { jumpTo } from "../state/jump";
import { found, groups, hasOlder, indexed, isListLoaded, loadOlder, query, search } from "../state/list";
import { isTemporary } from "../state/options";
import { go, hrefOf, route } from "../state/route";
import { isDrawerOpen } from "./shell";
import { hasDrawing, Topic } from "../topics";

export function SideBar() {
  return (
    <aside id="side" class={isDrawerOpen.value ? "side open" : "side"} aria-label={t("chats")}>
      <div class="brand"><Wax />Confidant<span class="phone"><IconButton icon="close" label={t("close")} onClick={() => { isDrawerOpen.value = false; }} /></span></div>
      <div class="new-row">
        <button type="button" class="new" onClick={() => startNew(false)}><span><Icon name="plus" />{t("newChat")}</span><kbd>Ctrl ⇧ O</kbd></button>
        <IconButton icon="ghost" label={t("temporaryChat")} onClick={() => startNew(true)} />
      </div>
      <label class="search">
        <Icon name="search" size={14} />
        <input
          id="search"
          type="search"
          aria-label={t("searchHere")}
          placeholder={t("searchHere")}
          value={query.value}
          onInput={(event: TargetedInputEvent<HTMLInputElement>) => void search(event.currentTarget.value)}
          onKeyDown={(event: KeyboardEvent) => {
            if (event.key === "Escape") void search("");
          }}
        />
      </label>
      {found.value === null ? <Groups /> : <Results result={found.value} />}
      <Foot />
    </aside>
  );
}

/** A chat that does not exist before its first question. */
export function startNew(temporary: boolean): void {
  isTemporary.value = temporary;
  isDrawerOpen.value = false;
  go({ page: "new" });
  requestAnimationFrame(() => document.getElementById("composer")?.focus());
}

function Groups() {
  if (!isListLoaded.value) return <nav class="chats"><After><p class="loading"><Spinner />{t("loading")}</p></After></nav>;
  return (
    <nav class="chats" aria-label={t("chats")}>
      {groups.value.length === 0 ? <p class="empty">{t("noChats")}</p> : null}
      {groups.value.map((group) => (
        <section key={group.name}>
          <h2>{t(`group.${group.name}`)}</h2>
          <ul>{group.chats.map((chat) => <li key={chat.id}><Line chat={chat} /></li>)}</ul>
        </section>
      ))}
      {hasOlder.value && groups.value.length > 0 ? <button type="button" class="text older" onClick={() => void loadOlder()}>{t("loadOlder")}</button> : null}
    </nav>
  );
}

function Line({ chat }: { chat: ChatLine }) {
  const isOn = route.value.page === "chat" && route.value.chat === chat.id;
  return (
    <a class={isOn ? "chat on" : "chat"} href={hrefOf({ page: "chat", chat: chat.id })} aria-current={isOn ? "page" : undefined} onClick={() => { isDrawerOpen.value = false; }}>
      <i class="ic" aria-hidden="true">{chat.isTemporary ? <Icon name="ghost" size={12} /> : chat.refused ? <Icon name="warn" size={12} /> : <Mark chat={chat} />}</i>
      <span>
        <span class="title" dir="auto">{titleOf(chat)}</span>
        <small dir="auto">{under(chat)}</small>
      </span>
      {chat.unread ? <b class="dot" role="img" aria-label={t("unread")} /> : chat.isAwaited ? <Spinner /> : chat.isWaiting ? <Icon name="wait" size={13} /> : null}
    </a>
  );
}

/** What it is about, if that is known; else a letter. */
export function Mark({ chat }: { chat: ChatLine }) {
  return chat.icon !== null && hasDrawing(chat.icon) ? <Topic icon={chat.icon} /> : <>{initial(chat)}</>;
}

/** What a chat is called. */
export function titleOf(chat: ChatLine): string {
  return readable(chat.title ?? "") || t(chat.isTemporary ? "temporaryChat" : "untitled");
}

function initial(chat: ChatLine): string {
  const first = [...titleOf(chat)].find((one) => /[\p{L}\p{N}]/u.test(one));
  return (first ?? "–").toUpperCase();
}

function under(chat: ChatLine): string {
  if (chat.refused) return t("cannotOpen");
  if (chat.isTemporary) return t("temporaryNote");
  if (chat.isWaiting) return t("unsentOne");
  if (chat.hasDraft) return t("draft");
  return readable(chat.summary ?? chat.tags.join(" · "));
}

function Results({ result: { hits, all, unsearched } }: { result: SearchResult }) {
  const { done, all: chats } = indexed.value;
  return (
    <nav class="chats" aria-label={t("searchResults")}>
      <h2><span role="status">{t("foundN", { n: all })}</span></h2>
      {done < chats ? <p class="search-note">{t("searchProgress", { done, all: chats })}</p> : null}
      {unsearched > 0 ? <p class="search-note">{t("unsearched", { n: unsearched })}</p> : null}
      <ul>{hits.map((hit) => <li key={hit.chat}><Result hit={hit} /></li>)}</ul>
      {all > hits.length ? <p class="search-note">{t("searchMore", { n: all - hits.length })}</p> : null}
    </nav>
  );
}

function Result({ hit }: { hit: Found }) {
  const { excerpt, at, length } = hit;
  return (
    <a class="chat" href={hrefOf({ page: "chat", chat: hit.chat })} onClick={() => { isDrawerOpen.value = false; jumpTo.value = hit.message === null ? null : { chat: hit.chat, message: hit.message }; }}>
      <i class="ic" aria-hidden="true"><Icon name="search" size={12} /></i>
      <span>
        <span class="title" dir="auto">{readable(hit.title ?? "") || t("untitled")}</span>
        {hit.isMissing === true
          ? <small>{t("searchMissing")}</small>
          : <small dir="auto">{readable(excerpt.slice(0, at))}{length > 0 ? <mark>{readable(excerpt.slice(at, at + length))}</mark> : null}{readable(excerpt.slice(at + length))}</small>}
      </span>
    </a>
  );
}

/** Who is here, how it stands with the server, and the lock: always visible. */
function Foot() {
  const who = account.value;
  const name = who?.state === "open" ? (who.login ?? t("you")) : "";
  return (
    <div class="foot">
      <span class="who"><b dir="auto">{name}</b><small><Standing /></small></span>
      <IconButton icon="settings" label={t("settings")} onClick={() => { isDrawerOpen.value = false; go({ page: "settings", part: "general" }); }} />
      <button type="button" class="lock" title={t("lockNow")} aria-label={t("lockNow")} onClick={() => void lock()}><Icon name="unlocked" size={14} /><span>{t("unlocked")}</span></button>
    </div>
  );
}

export function Standing() {
  const { waiting, copies } = outbox.value;
  if (waiting > 0 || copies > 0) return <a href={hrefOf({ page: "outbox" })}>{waiting > 0 ? t("unsent", { n: waiting }) : t("copiesN", { n: copies })}</a>;
  return <span role="status">{t(`connection.${connection.value.state}`)}</span>;
}
