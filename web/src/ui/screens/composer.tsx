// Where the person writes. What is typed is kept per chat; Enter sends and knows about input methods; what goes with the question is
// said in the row below it. Files and images are not taken, on the whole page: see no_files.ts.
import type { TargetedInputEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { embedMarkdown, EMBED_TYPE } from "../message/clipboard";
import { lazy } from "../parts/lazy";
import { IconButton } from "../parts/basics";
import { canWrite, connection, isStale } from "../state/account";
import { ask, page, pageError, runningTurn, stop } from "../state/chat";
import { core } from "../state/core";
import { clearDraft, draft, flushDraft, showDraft, type } from "../state/draft";
import { focus, given, givenFor, isKept, isNewUncached, isTemporary, optionsFor, switchedOff } from "../state/options";
import { attempt } from "../state/notes";
import { isFocusOff } from "../../client/switches";
import { sends } from "./enter";

const Give = lazy(async () => (await import("./give")).Give);

/** Where questions are written; `chat` is null for a chat that does not exist yet. */
export function Composer({ chat }: { chat: string | null }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [isGiving, setGiving] = useState(false);
  // Before anybody can type: what is typed belongs to the chat that is shown.
  useLayoutEffect(() => {
    showDraft(chat, page.value?.chat.id === chat ? page.value.draft : null);
  }, [chat, page.value?.chat.id]);
  useEffect(() => () => void flushDraft(), []);
  useLayoutEffect(() => grow(area.current), [draft.value]);
  const shown = page.value?.chat.id === chat ? page.value : null;
  const isEnded = shown?.chat.isEnded === true || shown?.messages.at(-1)?.finish === "ended" || (chat !== null && pageError.value !== null);
  if (isEnded) return <div class="write"><p class="closed"><Icon name="lock" />{t("chatEnded")}</p></div>;
  if (isStale.value) return <div class="write"><p class="closed"><Icon name="retry" />{t("staleShort")}</p></div>;
  const send = async () => {
    const body = draft.value.trim();
    if (body === "" || !canWrite.value) return;
    const options = optionsFor(chat);
    const gave = given.value;
    clearDraft();
    given.value = [];
    const isDone = await ask(body, options, { chat, temporary: isTemporary.value, uncached: isNewUncached.value });
    if (isDone) [isTemporary.value, isNewUncached.value] = [false, false];
    else {
      type(body);
      given.value = gave;
    }
    area.current?.focus();
  };
  return (
    <div class="write">
      <form
        class="box"
        onSubmit={(event: Event) => {
          event.preventDefault();
          void send();
        }}
      >
        {isGiving ? <Give chat={chat} onClose={() => setGiving(false)} /> : null}
        <textarea
          ref={area}
          id="composer"
          aria-label={t("writeLabel")}
          aria-describedby="only-text"
          placeholder={t("writePlaceholder")}
          value={draft.value}
          rows={1}
          dir="auto"
          onInput={(event: TargetedInputEvent<HTMLTextAreaElement>) => type(event.currentTarget.value)}
          onKeyDown={(event: KeyboardEvent) => {
            if (sends(event)) {
              event.preventDefault();
              void send();
            }
          }}
          onPaste={paste}
        />
        <Row chat={chat} isGiving={isGiving} onGive={() => setGiving(!isGiving)} />
      </form>
      <p class="hint"><span class="hint-keys"><kbd>Enter</kbd> {t("hintSends")} · <kbd>Shift Enter</kbd> {t("hintLine")} · <kbd>?</kbd> {t("hintKeys")} · </span><span id="only-text">{t("onlyText")}</span></p>
    </div>
  );
}

/** What goes with the question, and the button. */
function Row({ chat, isGiving, onGive }: { chat: string | null; isGiving: boolean; onGive: () => void }) {
  const isKeptHere = isKept(chat);
  const goes = givenFor(chat).length;
  const names = optionsFor(chat).available?.length ?? 0;
  const turn = runningTurn();
  const isTemp = chat === null ? isTemporary.value : page.value?.chat.isTemporary === true;
  return (
    <div class="row">
      <span class="chip good" title={t("sealedHereNote")}><Icon name="seal" size={13} /><span>{t(isTemp ? "notKept" : "sealedHere")}</span></span>
      <button type="button" class="chip" aria-pressed={!isKeptHere} title={t("keepNote")} disabled={isTemp || switchedOff.value.includes("cache")} onClick={() => toggleKept(chat)}>
        <Icon name={isKeptHere ? "wait" : "close"} size={13} />
        <span>{t(isKeptHere ? "keptDay" : "keptTurn")}</span>
      </button>
      <button type="button" class="chip" aria-expanded={isGiving} onClick={onGive}><Icon name="plus" size={13} /><span>{goes > 0 ? t("givenN", { n: goes }) : names > 0 ? t("namesN", { n: names }) : t("givenNone")}</span></button>
      {focus.value !== null && !isFocusOff(switchedOff.value, focus.value) ? <button type="button" class="chip" title={t("focusOff")} onClick={() => { focus.value = null; }}><span>{t("focusOn", { focus: focus.value })}</span></button> : null}
      {connection.value.state === "online" ? null : <span class="chip warn"><Icon name="wait" size={13} /><span>{t("willWait")}</span></span>}
      {turn ? (
        <IconButton icon="stop" label={t("stop")} kind="send" disabled={turn.isStopping.value} onClick={() => void stop(turn)} />
      ) : (
        <button type="submit" class="icon-button send" aria-label={t("send")} title={t("send")} disabled={draft.value.trim() === "" || !canWrite.value}><Icon name="send" /></button>
      )}
    </div>
  );
}

function toggleKept(chat: string | null): void {
  if (chat === null) isNewUncached.value = !isNewUncached.value;
  else void attempt(() => core().setCached(chat, !isKept(chat)));
}

function grow(element: HTMLTextAreaElement | null): void {
  if (element === null) return;
  element.style.height = "auto";
  element.style.height = `${Math.min(element.scrollHeight, Math.round(innerHeight * 0.4))}px`;
}

/** An embed that was copied here becomes the same Markdown again. */
function paste(event: ClipboardEvent): void {
  const data = event.clipboardData;
  if (data === null) return;
  const text = embedMarkdown(data.getData(EMBED_TYPE));
  if (text !== null) {
    event.preventDefault();
    const area = event.currentTarget as HTMLTextAreaElement;
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    type(area.value);
  }
}
