// One message of a chat, and what can be done with it.
//
//   what the person said   a shape, shortened; edit, copy, delete, ‹1/2›
//   what the model said    text on paper; sealed, model, retry, copy, what the server saw, ‹2/3›
//   what a tool said       one folded line
import { useEffect, useMemo, useState } from "preact/hooks";
import type { MessageLine, MissingPart } from "../../client/core";
import { exactly, t, when } from "../i18n";
import { Icon } from "../icons";
import { readable } from "../markdown/links";
import { MessageBody } from "../message/body";
import { copyText } from "../message/clipboard";
import { MissingBody } from "../message/missing";
import { parseMessage } from "../message/parse";
import { shorten, type Shortened } from "../message/shorten";
import { CopyButton, IconButton } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { canWrite } from "../state/account";
import { askInstead, content, deleteMessage, page, retry, showBranch, wholeBody } from "../state/chat";
import { core } from "../state/core";
import { beginEdit, editing, endEdit, textOf, typeEdit } from "../state/edits";
import { ledTo } from "../state/jump";
import { attempt, say } from "../state/notes";
import { optionsFor } from "../state/options";
import { EditBox } from "./edit";
import { Ending } from "./ending";
import { Saw } from "./saw";
import { GENERAL } from "../topics";

/** A message. */
export function Message({ message }: { message: MessageLine }) {
  if (message.missing !== undefined) return <Away message={message} parts={message.missing} />;
  if (message.role === "user") return <Said message={message} />;
  if (message.role === "assistant") return <Answer message={message} />;
  return <Aside message={message} />;
}

/** A message whose words went to make room. */
function Away({ message, parts }: { message: MessageLine; parts: MissingPart[] }) {
  const isMine = message.role === "user";
  return (
    <article class={isMine ? "said" : "answer"} id={message.id} aria-label={t(isMine ? "youSaid" : "answerSaid")}>
      <div class={isMine ? "bubble" : undefined}><MissingBody message={message} parts={parts} /></div>
      <div class="meta"><Status message={message} /><span>{t("contentAway")}</span></div>
    </article>
  );
}

/** What the person wrote, shortened. The whole is loaded, opened and parsed when it is asked for. */
function Said({ message }: { message: MessageLine }) {
  const [whole, setWhole] = useState<string | null>(null);
  const edited = editing.value.get(message.id);
  const [isDeleting, setDeleting] = useState(false);
  const short = useMemo(() => shortened(message), [message.id, message.body, message.length]);
  useEffect(() => setWhole(null), [message.body, message.length, message.rev]);
  const withWhole = (use: (body: string) => unknown) => attempt(async () => use(await wholeBody(message)));
  const isLedTo = ledTo.value === message.id;
  // What was searched for may be behind its first words.
  useEffect(() => {
    if (isLedTo && short.isShortened) void withWhole(setWhole);
  }, [isLedTo]);
  if (edited !== undefined) {
    const resend = async (body: string) => {
      if (await askInstead(message.id, body, optionsFor(page.value?.chat.id ?? null))) await endEdit(message.id);
    };
    return <EditBox body={textOf(message.id, edited)} isKept={edited.isKept} onType={(text) => typeEdit(message.id, text)} onCancel={() => void endEdit(message.id)} onSend={resend} />;
  }
  return (
    <article class="said" id={message.id} aria-label={t("youSaid")}>
      <div class="bubble" dir="auto">
        {whole === null ? <MessageBody id={short.isShortened ? `${message.id}~` : message.id} body={short.body} isPart={short.isShortened} /> : <MessageBody id={message.id} body={whole} />}
        {short.isShortened ? (
          <button type="button" class="more" aria-expanded={whole !== null} onClick={() => (whole === null ? void withWhole(setWhole) : setWhole(null))}>{t(whole === null ? "showFull" : "showLess")}</button>
        ) : null}
      </div>
      <div class="meta">
        <span class="acts">
          {canWrite.value ? <IconButton icon="edit" label={t("editResend")} onClick={() => void withWhole((whole) => beginEdit(message.id, whole))} /> : null}
          <IconButton icon="copy" label={t("copyMessage")} onClick={() => void withWhole(copyWords)} />
          {canWrite.value ? <IconButton icon="trash" label={t("deleteMessage")} onClick={() => setDeleting(true)} /> : null}
        </span>
        <Status message={message} />
        <time dateTime={new Date(message.createdAt).toISOString()} title={exactly(message.createdAt)}>{when(message.createdAt)}</time>
        <Alternatives message={message} />
      </div>
      <Copies numbers={message.copies} />
      {isDeleting ? <Confirm title={t("deleteMessage")} text={t("deleteMessageNote")} yes={t("deleteChat")} onYes={() => { setDeleting(false); void deleteMessage(message.id); }} onClose={() => setDeleting(false)} /> : null}
    </article>
  );
}

/** What is shown of it at first. Where the page has the first words only, those are shortened. */
function shortened(message: MessageLine): Shortened {
  const short = shorten(message.body, parseMessage(`${message.id}~`, message.body, content));
  return message.length === undefined ? short : { ...short, isShortened: true };
}

function Answer({ message }: { message: MessageLine }) {
  const [isSeen, setSeen] = useState(false);
  const [isWhy, setWhy] = useState(false);
  const isLast = page.value?.messages.at(-1)?.id === message.id;
  const finish = message.finish ?? (isLast && page.value?.chat.isEnded ? "ended" : undefined);
  return (
    <article class={finish === "declined" ? "answer declined" : "answer"} id={message.id} aria-label={t("answerSaid")}>
      <MessageBody id={message.id} body={message.body} />
      <Ending finish={finish} words={message.body} isHelp={message.isHelp} />
      <div class="meta">
        <Status message={message} />
        {message.model ? <span class="model" title={message.heard?.focus ? t("modelFocus", { focus: message.heard.focus }) : undefined}>{readable(message.model)}{kindOf(message)}{message.reason ? <> <button type="button" class="text" aria-expanded={isWhy} onClick={() => setWhy(!isWhy)}>{t("whyModel")}</button></> : null}</span> : null}
        <Alternatives message={message} />
        <span class="acts shown">
          {canWrite.value && message.parent !== null && finish !== "ended" ? (
            <button type="button" class="quiet" onClick={() => message.parent !== null && void retry(message.parent, optionsFor(page.value?.chat.id ?? null))}>
              <Icon name="retry" />
              <span class="label">{t("retry")}</span>
            </button>
          ) : null}
          <CopyButton text={() => message.body} label={t("copy")} />
          <button type="button" class="quiet" aria-expanded={isSeen} onClick={() => setSeen(!isSeen)}>
            <Icon name="eye" />
            <span class="label">{t("whatServerSaw")}</span>
          </button>
        </span>
      </div>
      {isWhy && message.reason ? <p class="tools why"><span dir="auto">{readable(message.reason)}</span></p> : null}
      {message.heard && message.heard.tools.length > 0 ? <p class="tools"><Icon name="tool" size={13} />{t("toolsUsed", { tools: readable(message.heard.tools.join(", ")) })}</p> : null}
      {isSeen ? <Saw message={message} /> : null}
      <Copies numbers={message.copies} />
    </article>
  );
}

/** A tool's words, folded. */
function Aside({ message }: { message: MessageLine }) {
  return (
    <details class="aside" id={message.id} open={message.role === "summary"}>
      <summary><Icon name={message.role === "tool" ? "tool" : "branch"} size={13} />{t(message.role === "tool" ? "toolSaid" : "summarySaid")}</summary>
      <MessageBody id={message.id} body={message.body} />
    </details>
  );
}

/** What kind of request it was. */
function kindOf(message: MessageLine): string {
  const category = message.heard?.category;
  return category && category !== GENERAL ? ` · ${t("chosenFor", { category: readable(category) })}` : "";
}

function Status({ message }: { message: MessageLine }) {
  if (page.value?.chat.isTemporary) return <span class="status"><Icon name="ghost" size={13} />{t("notKept")}</span>;
  if (message.status === "sealed") return <span class="status good"><Icon name="seal" size={13} />{t("sealed")}</span>;
  if (message.status === "unsent") return <span class="status warn"><Icon name="wait" size={13} />{t("unsentOne")}</span>;
  return <span class="status warn"><Icon name="warn" size={13} />{t("conflicted")}</span>;
}

/** ‹2/3›: the same place, said otherwise. */
function Alternatives({ message }: { message: MessageLine }) {
  const { at, ids } = message.alternatives;
  if (ids.length < 2) return null;
  const to = (step: number) => {
    const next = ids[at + step];
    if (next !== undefined) void showBranch(next);
  };
  return (
    <span class="alternatives" role="group" aria-label={t("alternatives")}>
      <IconButton icon="left" label={t("alternativeBefore")} disabled={at === 0} onClick={() => to(-1)} />
      <span>{t("alternativeAt", { at: at + 1, n: ids.length })}</span>
      <IconButton icon="right" label={t("alternativeNext")} disabled={at === ids.length - 1} onClick={() => to(1)} />
    </span>
  );
}

/** What was written here and lost against another device: nothing is thrown away unseen. */
function Copies({ numbers }: { numbers: number[] }) {
  const [texts, setTexts] = useState<{ number: number; text: string | null }[] | null>(null);
  if (numbers.length === 0) return null;
  const show = () =>
    attempt(async () => {
      const all = await core().copies();
      setTexts(all.filter((copy) => numbers.includes(copy.number)).map(({ number, text }) => ({ number, text })));
    });
  return (
    <div class="card ask">
      <h3>{t("conflictedTitle")}</h3>
      <p>{t("conflictedNote")}</p>
      {texts === null ? <div class="row"><button type="button" class="button" onClick={show}>{t("conflictedShow")}</button></div> : null}
      {texts?.map(({ number, text }) => (
        <div key={number}>
          <p class="raw copy-text" dir="auto">{text ?? t("contentGone")}</p>
          <div class="row">
            <button type="button" class="button" onClick={() => attempt(() => core().useCopy(number))}>{t("conflictedUse")}</button>
            <button type="button" class="button" onClick={() => attempt(() => core().discardCopy(number))}>{t("conflictedDiscard")}</button>
          </div>
        </div>
      ))}
    </div>
  );
}

async function copyWords(text: string): Promise<void> {
  await copyText(text);
  say(t("copied"), undefined, 1_500);
}
