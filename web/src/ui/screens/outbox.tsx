// What was written here and is not stored yet, and what lost against another device. Nothing is thrown away unseen.
import { useEffect, useState } from "preact/hooks";
import type { CopyLine, WaitingLine } from "../../client/core";
import { t, type Key } from "../i18n";
import { words as en } from "../lang/en";
import { Icon } from "../icons";
import { outbox } from "../state/account";
import { letGo } from "../state/draft";
import { core } from "../state/core";
import { lineOf } from "../state/list";
import { attempt, problemText } from "../state/notes";
import { titleOf } from "./list";
import { DrawerButton } from "./shell";

export function Outbox() {
  const [waiting, setWaiting] = useState<WaitingLine[]>([]);
  const [copies, setCopies] = useState<CopyLine[]>([]);
  const { waiting: w, copies: c } = outbox.value;
  const load = () =>
    attempt(async () => {
      setWaiting(await core().waiting());
      setCopies(await core().copies());
    });
  useEffect(() => void load(), [w, c]);
  return (
    <div class="sheet">
      <header class="head"><DrawerButton /><h1>{t("outbox")}</h1></header>
      <div class="scroll">
        <div class="page">
          <section>
            <h2>{t("outboxWaiting")}</h2>
            <p>{t(waiting.length === 0 ? "outboxNone" : "outboxNote")}</p>
            <ul class="lines">
              {waiting.map((line) => (
                <li key={line.number}>
                  <Icon name="wait" size={14} />
                  <span><b>{whatOf(line.what)}</b><small dir="auto">{chatOf(line.chat)}</small>{line.text ? <p class="raw" dir="auto">{line.text.slice(0, 400)}</p> : null}</span>
                  <small>{t(line.isSent ? "outboxSent" : "outboxUnsent")}</small>
                </li>
              ))}
            </ul>
          </section>
          <section>
            <h2>{t("copiesTitle")}</h2>
            <p>{t(copies.length === 0 ? "copiesNone" : "conflictedNote")}</p>
            {copies.map((copy) => <Copy key={copy.number} copy={copy} onDone={load} />)}
          </section>
        </div>
      </div>
    </div>
  );
}

function Copy({ copy, onDone }: { copy: CopyLine; onDone: () => void }) {
  const key = `why.${copy.why}`;
  const act = (work: Promise<void>) => attempt(() => work).then(onDone);
  return (
    <div class="card">
      <h3>{whatOf(copy.what)} <small dir="auto">{chatOf(copy.chat)}</small></h3>
      <p class="small">{key in en ? t(key as Key) : problemText(copy.why)}</p>
      {copy.text ? <p class="raw copy-text" dir="auto">{copy.text}</p> : null}
      <div class="row">
        <button type="button" class="button" onClick={() => void act(core().useCopy(copy.number))}>{t("conflictedUse")}</button>
        <button type="button" class="button" onClick={() => void act(core().discardCopy(copy.number)).then(letGo)}>{t("conflictedDiscard")}</button>
      </div>
    </div>
  );
}

function whatOf(what: string): string {
  const key = `what.${what}`;
  return key in en ? t(key as Key) : what;
}

function chatOf(chat: string | null): string {
  const line = chat === null ? undefined : lineOf(chat);
  return line ? titleOf(line) : "";
}
